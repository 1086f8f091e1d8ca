//! The job of `peers` with gaoya's crate, in a process of its own.
//!
//! Its Python package hashes a document when it is inserted and once more when it is asked for, in the bulk calls too,
//! and takes no ready signature. The crate does: here every document is hashed once. All else is as the package does
//! it: words in lower case between ASCII punctuation and white space, runs of five, hashing on all cores. Ids are in
//! small vectors, which gaoya recommends where few documents are alike and none is removed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher32, SmallVecContainer};
use gaoya::text::whitespace_split;
use rayon::prelude::*;
use serde::Deserialize;

const BANDS: usize = 25;
const HASHES_PER_BAND: usize = 5;
const THRESHOLD: f64 = 0.7;
const NGRAM: usize = 5;
/// Lines that are hashed side by side.
const BATCH: usize = 1000;

#[derive(Deserialize)]
struct Document {
    text: String,
}

/// Reads the corpus and lists the documents that have an earlier near-duplicate.
pub(crate) fn run(corpus: &Path, found_file: &Path) -> Result<()> {
    let hasher = MinHasher32::new(BANDS * HASHES_PER_BAND);
    let signature = |line: &String| -> Result<Vec<u32>> {
        let text = serde_json::from_str::<Document>(line)?.text.to_lowercase();
        let words: Vec<&str> = whitespace_split(&text).collect();
        Ok(hasher.create_signature(words.windows(NGRAM)))
    };
    let mut index = MinHashIndex::<u32, u32, SmallVecContainer<u32, 2>>::new_index(BANDS, HASHES_PER_BAND, THRESHOLD);
    let mut lines = BufReader::new(File::open(corpus).with_context(|| corpus.display().to_string())?).lines();
    let (mut number, mut matched) = (0, Vec::new());
    loop {
        let batch = lines.by_ref().take(BATCH).collect::<Result<Vec<String>, _>>()?;
        if batch.is_empty() {
            break;
        }
        for signature in batch.par_iter().map(signature).collect::<Result<Vec<_>>>()? {
            if !index.query(&signature).is_empty() {
                matched.push(number.to_string());
            }
            index.insert(number, signature);
            number += 1;
        }
    }
    fs::write(found_file, matched.join("\n"))?;
    Ok(())
}
