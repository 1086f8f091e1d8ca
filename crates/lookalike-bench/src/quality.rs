//! Recall and precision of a result against the oracle, pair by pair.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use arrow_array::cast::AsArray;
use lookalike::method::Minhash;
use lookalike::result::files;
use lookalike::{Config, RunOptions, Silent, dedup};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::oracle::{OraclePair, all_pairs};

/// What was measured.
#[derive(Debug, Clone, Copy)]
pub struct Quality {
    /// Pairs the oracle has.
    pub expected: usize,
    /// Pairs the result has, identity sets spelled out.
    pub found: usize,
    /// Pairs both have.
    pub both: usize,
    /// Buckets that were capped.
    pub capped: u64,
}

impl Quality {
    /// Share of the oracle's pairs that were found.
    #[must_use]
    pub fn recall(&self) -> f64 {
        self.both as f64 / self.expected.max(1) as f64
    }

    /// Share of the found pairs that the oracle has.
    #[must_use]
    pub fn precision(&self) -> f64 {
        self.both as f64 / self.found.max(1) as f64
    }
}

/// Runs the engine on `texts` with default settings but `threshold`, and the oracle, and compares.
///
/// # Errors
/// When the run fails.
pub fn measure(texts: &[String], threshold: f64, directory: &Path) -> Result<Quality> {
    let input = directory.join("texts.jsonl");
    let lines: Vec<String> = texts
        .iter()
        .enumerate()
        .map(|(id, text)| serde_json::json!({"id": id.to_string(), "text": text}).to_string() + "\n")
        .collect();
    std::fs::write(&input, lines.concat())?;
    let config = Config::new(Config::default().method.with_threshold(threshold));
    let output = directory.join(format!("out-{threshold}"));
    let input = input.to_string_lossy().into_owned();
    let mut options = RunOptions::new([input], &output);
    (options.threads, options.strict) = (2, true);
    let summary = dedup(&config, &options, &Silent)?.summary;
    let expected = all_pairs(texts, Minhash::default().ngram, threshold, config.pairs.min_tokens as usize);
    let found = pairs_of(&output)?;
    let both = expected.iter().filter(|pair| found.contains(&(pair.left, pair.right))).count();
    similarities_agree(&output, &expected)?;
    Ok(Quality { expected: expected.len(), found: found.len(), both, capped: summary.capped_buckets })
}

/// The pairs of a result whose ids are numbers, with identity sets spelled out.
fn pairs_of(output: &Path) -> Result<HashSet<(usize, usize)>> {
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    for row in columns(&output.join(files::PAGES.parquet), &["id", "identity", "tokens"])? {
        members.entry(row[1].parse()?).or_default().push(row[0].parse()?);
    }
    let mut pairs = HashSet::new();
    for set in members.values() {
        for (at, &left) in set.iter().enumerate() {
            pairs.extend(set[at + 1..].iter().map(|&right| (left.min(right), left.max(right))));
        }
    }
    for row in columns(&output.join(files::PAIRS.parquet), &["left", "right"])? {
        let (left, right): (usize, usize) = (row[0].parse()?, row[1].parse()?);
        for &a in &members[&left] {
            pairs.extend(members[&right].iter().map(|&b| (a.min(b), a.max(b))));
        }
    }
    Ok(pairs)
}

/// Every similarity in the result is the oracle's.
fn similarities_agree(output: &Path, expected: &[OraclePair]) -> Result<()> {
    let exact: HashMap<(usize, usize), f64> =
        expected.iter().map(|pair| ((pair.left, pair.right), pair.similarity)).collect();
    for row in columns(&output.join(files::PAIRS.parquet), &["left", "right", "similarity"])? {
        let key: (usize, usize) = (row[0].parse()?, row[1].parse()?);
        let (found, known) = (row[2].parse::<f64>()?, exact.get(&(key.0.min(key.1), key.0.max(key.1))));
        anyhow::ensure!(
            known.is_some_and(|known| (known - found).abs() < 1e-12),
            "{key:?}: {found}, the oracle says {known:?}"
        );
    }
    Ok(())
}

/// Columns of a Parquet table as text.
///
/// # Errors
/// When the table cannot be read or lacks a column.
pub fn columns(path: &Path, names: &[&str]) -> Result<Vec<Vec<String>>> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let mut rows = Vec::new();
    for batch in ParquetRecordBatchReaderBuilder::try_new(file)?.build()? {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let mut cells = Vec::new();
            for name in names {
                let column = batch.column_by_name(name).with_context(|| format!("no column {name}"))?;
                cells.push(if let Some(text) = column.as_string_opt::<i32>() {
                    text.value(row).to_owned()
                } else if let Some(real) = column.as_primitive_opt::<arrow_array::types::Float64Type>() {
                    real.value(row).to_string()
                } else {
                    column
                        .as_primitive_opt::<arrow_array::types::UInt64Type>()
                        .map_or_else(String::new, |whole| whole.value(row).to_string())
                });
            }
            rows.push(cells);
        }
    }
    Ok(rows)
}
