//! The index of fingerprints: exactness, bytes, time of building, queries, batches and joins, against FAISS on the
//! same rows in the same run.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lookalike::config::Named;
use lookalike::index::{Id, IdKind, IndexConfig, IndexReader, OpenOptions, TableCodec, pages};
use lookalike::unstable::{cpu_seconds, peak_memory_bytes, self_join};
use lookalike::{Config, Index, Silent};
use lookalike_bench::corpus::Random;
use lookalike_bench::labelled;

use crate::peers::environment;

/// Queries that are timed one by one.
const QUERIES: usize = 20_000;
const RADIUS: u32 = 3;
const BATCH: usize = 1_000_000;
/// Queries that are compared with a scan of all rows.
const SCANNED: usize = 50;

/// What is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct HammingArguments {
    /// Random rows, with planted neighbours
    #[arg(long, default_value_t = 50_000_000)]
    rows: usize,
    /// Rows of the self-join
    #[arg(long, default_value_t = 10_000_000)]
    join_rows: usize,
    /// Where rows, indexes and the peer's virtual environment go
    #[arg(long, default_value = "target/bench")]
    work: PathBuf,
    /// Leave FAISS out
    #[arg(long)]
    alone: bool,
}

fn flipped(fingerprint: u64, bits: u32, random: &mut Random) -> u64 {
    let mut flipped = fingerprint;
    while (flipped ^ fingerprint).count_ones() < bits {
        flipped ^= 1 << (random.number() % 64);
    }
    flipped
}

/// A query, and how far away a row was planted.
struct Query {
    fingerprint: u64,
    planted: Option<u32>,
}

/// Queries: every second one at a distance of 0 to 4 from a row, the others anywhere.
fn queries(rows: &[u64], count: usize, random: &mut Random) -> Vec<Query> {
    (0..count)
        .map(|at| {
            let distance = u32::try_from(at / 2 % 5).unwrap_or(0);
            match at % 2 {
                0 => Query {
                    fingerprint: flipped(rows[random.below(rows.len())], distance, random),
                    planted: Some(distance),
                },
                _ => Query { fingerprint: random.number(), planted: None },
            }
        })
        .collect()
}

fn cpu() -> f64 {
    cpu_seconds().unwrap_or(f64::NAN)
}

/// CPU-seconds of a job, and what it gives.
fn timed<T>(job: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let before = cpu();
    let result = job()?;
    Ok((cpu() - before, result))
}

fn build(directory: &Path, codec: TableCodec, rows: &[u64]) -> Result<Index> {
    let mut config = IndexConfig::given(IdKind::Number, RADIUS);
    config.codec = codec;
    let index = Index::create(directory, config, 8 << 30, true)?;
    let mut bulk = index.bulk_insert()?;
    for (id, &row) in (0..).zip(rows) {
        bulk.push(row, &Id::Number(id))?;
    }
    bulk.finish()?;
    Ok(index)
}

/// The times of single queries, sorted.
fn query_times(reader: &mut IndexReader, queries: &[Query]) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(queries.len());
    for query in queries {
        let started = Instant::now();
        let answer = reader.query(query.fingerprint, RADIUS, 10)?;
        times.push(started.elapsed());
        let is_planted = query.planted.is_some_and(|distance| distance <= RADIUS);
        ensure!(!is_planted || answer.count > 0, "a planted row was missed at {:016x}", query.fingerprint);
    }
    times.sort_unstable();
    Ok(times)
}

fn check_against_scan(reader: &mut IndexReader, rows: &[u64], queries: &[Query]) -> Result<()> {
    for query in queries.iter().take(SCANNED) {
        let near = rows.iter().filter(|&&row| (row ^ query.fingerprint).count_ones() <= RADIUS).count() as u64;
        let answer = reader.query(query.fingerprint, RADIUS, 10)?;
        ensure!(answer.count == near, "{:016x}: {} instead of {near}", query.fingerprint, answer.count);
    }
    Ok(())
}

pub(crate) fn run(arguments: &HammingArguments) -> Result<()> {
    let HammingArguments { rows: count, join_rows, work, alone } = arguments;
    fs::create_dir_all(work)?;
    let mut out = io::stdout().lock();
    let mut random = Random(64);
    let rows: Vec<u64> = (0..*count).map(|_| random.number()).collect();
    let queries = queries(&rows, QUERIES, &mut random);
    writeln!(out, "{count} random rows, radius {RADIUS}; {QUERIES} queries, one thread, after as many others\n")?;
    writeln!(
        out,
        "| index | build, CPU s | bytes per row and table | total bytes per row | of which ids | p50 µs | p99 µs | open, ms |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|")?;
    let micros = |times: &[Duration], share: usize| times[times.len() * share / 100].as_secs_f64() * 1e6;
    for codec in [TableCodec::Raw, TableCodec::Huffman, TableCodec::EliasFano] {
        let directory = work.join(format!("hamming-{}", codec.name()));
        let (seconds, index) = timed(|| build(&directory, codec, &rows))?;
        drop(index);
        let started = Instant::now();
        let index = Index::open(&directory, OpenOptions::default())?;
        let opened = started.elapsed();
        let mut reader = index.reader();
        query_times(&mut reader, &queries)?;
        let times = query_times(&mut reader, &queries)?;
        check_against_scan(&mut reader, &rows, &queries)?;
        let stats = index.stats()?;
        let segment = stats.segments.first().context("there is no segment")?;
        let a_row = |bytes: u64| bytes as f64 / *count as f64;
        writeln!(
            out,
            "| {}, {} tables | {seconds:.1} | {:.3} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
            codec.name(),
            segment.tables,
            segment.bytes_per_row_and_table,
            a_row(stats.bytes),
            a_row(stats.id_bytes),
            micros(&times, 50),
            micros(&times, 99),
            opened.as_secs_f64() * 1e3
        )?;
        out.flush()?;
        if codec == TableCodec::EliasFano {
            let many: Vec<u64> =
                self::queries(&rows, BATCH, &mut random).iter().map(|query| query.fingerprint).collect();
            let (seconds, pairs) = timed(|| Ok(reader.batch(&many, RADIUS)?))?;
            let found = |query: &u64| pairs.binary_search_by_key(query, |pair| pair.0).is_ok();
            for query in many.iter().step_by(1000) {
                ensure!(found(query) == reader.any(*query, RADIUS)?, "the batch and a query differ at {query:016x}");
            }
            writeln!(out, "\nbatch: {BATCH} queries against {count} rows: {seconds:.2} CPU s, {} pairs", pairs.len())?;
        } else {
            fs::remove_dir_all(&directory)?;
        }
    }
    let mut some: Vec<u64> = (0..*join_rows).map(|_| random.number()).collect();
    for at in 0..some.len() / 1000 {
        let planted = u32::try_from(at % 4).unwrap_or(0);
        let near = flipped(some[at], planted, &mut random);
        some.push(near);
    }
    some.sort_unstable();
    some.dedup();
    let (seconds, pairs) = timed(|| Ok(self_join(&some, RADIUS)))?;
    writeln!(out, "self-join: {} rows: {seconds:.2} CPU s, {} pairs", some.len(), pairs.len())?;
    skew(work, &rows, &mut out)?;
    if !alone {
        faiss(work, &rows, &queries, &mut out)?;
    }
    real(&mut out)?;
    writeln!(out, "\npeak memory {:.1} GB", peak_memory_bytes().unwrap_or(0) as f64 / 1e9)?;
    Ok(())
}

/// A tenth of the rows equal, another tenth within two bits of one.
fn skew(work: &Path, rows: &[u64], out: &mut impl Write) -> Result<()> {
    let mut random = Random(77);
    let tenth = rows.len() / 10;
    let (equal, centre) = (random.number(), random.number());
    let mut skewed = rows.to_vec();
    for (at, row) in skewed.iter_mut().take(2 * tenth).enumerate() {
        *row = if at < tenth { equal } else { flipped(centre, u32::try_from(at % 3).unwrap_or(0), &mut random) };
    }
    let directory = work.join("hamming-skewed");
    let index = build(&directory, TableCodec::EliasFano, &skewed)?;
    let mut reader = index.reader();
    writeln!(out, "\nskewed, {tenth} rows equal, {tenth} within two bits of one:")?;
    for (name, query) in
        [("the equal one", equal), ("the centre", centre), ("near the centre", flipped(centre, 1, &mut random))]
    {
        let expected = skewed.iter().filter(|&&row| (row ^ query).count_ones() <= RADIUS).count() as u64;
        let mut times = Vec::new();
        for _ in 0..101 {
            let started = Instant::now();
            let answer = reader.query(query, RADIUS, 100)?;
            times.push(started.elapsed());
            ensure!(answer.count == expected && answer.matches.len() == 100, "{} instead of {expected}", answer.count);
        }
        times.sort_unstable();
        writeln!(
            out,
            "- {name}: {expected} rows, median {:.0} µs, slowest {:.0} µs",
            times[50].as_secs_f64() * 1e6,
            times[100].as_secs_f64() * 1e6
        )?;
    }
    fs::remove_dir_all(&directory)?;
    Ok(())
}

fn faiss(work: &Path, rows: &[u64], queries: &[Query], out: &mut impl Write) -> Result<()> {
    let python = environment(work)?;
    let write = |name: &str, values: &mut dyn Iterator<Item = u64>| -> Result<PathBuf> {
        let path = work.join(name);
        let mut file = io::BufWriter::new(fs::File::create(&path)?);
        for value in values {
            file.write_all(&value.to_le_bytes())?;
        }
        file.flush()?;
        Ok(path)
    };
    let rows = write("rows.u64", &mut rows.iter().copied())?;
    let queries = write("queries.u64", &mut queries.iter().map(|query| query.fingerprint))?;
    let script = work.join("faiss_hamming.py");
    fs::write(&script, include_str!("../peers/faiss_hamming.py"))?;
    let output = Command::new(&python).arg(&script).arg(&rows).arg(&queries).output()?;
    ensure!(output.status.success(), "FAISS failed:\n{}", String::from_utf8_lossy(&output.stderr));
    writeln!(out, "\n{}", String::from_utf8_lossy(&output.stdout).trim())?;
    fs::remove_file(rows)?;
    Ok(())
}

/// Fingerprints of real pages: every query against a scan, and how they are spread.
fn real(out: &mut impl Write) -> Result<()> {
    let sets = [labelled::install_guide()?, labelled::llvm_docs()?, labelled::same_core()?];
    let inputs: Vec<String> =
        sets.into_iter().flatten().map(|set| set.directory.to_string_lossy().into_owned()).collect();
    if inputs.is_empty() {
        return Ok(writeln!(out, "\nreal pages: skipped, the labelled data was not found; set LOOKALIKE_DATA")?);
    }
    let config = Config::new(lookalike::method::Simhash::default());
    let directory = tempfile::tempdir()?;
    let mut rows: Vec<(u64, Id)> = Vec::new();
    pages::for_each(&config, &inputs, 2, directory.path(), &Silent, &mut |id, fingerprint, _| {
        rows.push((fingerprint, id.clone()));
        Ok(())
    })?;
    let index = Index::create(directory.path(), IndexConfig::given(IdKind::Text, RADIUS), 1 << 30, true)?;
    let mut bulk = index.bulk_insert()?;
    rows.iter().try_for_each(|(fingerprint, id)| bulk.push(*fingerprint, id))?;
    bulk.finish()?;
    let mut reader = index.reader();
    let (mut near, mut times) = (0, Vec::new());
    for (query, _) in &rows {
        let expected = rows.iter().filter(|(row, _)| (row ^ query).count_ones() <= RADIUS).count() as u64;
        let started = Instant::now();
        let answer = reader.query(*query, RADIUS, 10)?;
        times.push(started.elapsed());
        ensure!(answer.count == expected, "{query:016x}: {} instead of {expected}", answer.count);
        near += expected - 1;
    }
    times.sort_unstable();
    let stats = index.stats()?;
    writeln!(
        out,
        "\nreal pages: {} fingerprints, {} different; each has {:.1} others within {RADIUS} bits on average, as a scan says; p50 {:.2} µs, p99 {:.2} µs; the fullest 1/128 of the space holds {:.1} × its share",
        stats.rows,
        stats.fingerprints,
        near as f64 / rows.len() as f64,
        times[times.len() / 2].as_secs_f64() * 1e6,
        times[times.len() * 99 / 100].as_secs_f64() * 1e6,
        stats.parts.iter().max().copied().unwrap_or(0) as f64 * 128.0 / stats.fingerprints as f64
    )?;
    Ok(())
}

/// Many rows in segments of bounded memory: built and asked once.
pub(crate) fn scale(count: u64, memory_bytes: u64, work: &Path) -> Result<()> {
    let directory = work.join("hamming-scale");
    let config = IndexConfig::given(IdKind::Number, RADIUS);
    let index = Index::create(&directory, config, memory_bytes, true)?;
    let mut out = io::stdout().lock();
    let (mut random, started) = (Random(64), Instant::now());
    let mut planted = Vec::new();
    let (seconds, ()) = timed(|| {
        let mut bulk = index.bulk_insert()?;
        for id in 0..count {
            let row = random.number();
            if id.is_multiple_of(count / 10_000) {
                planted.push((row, id));
            }
            bulk.push(row, &Id::Number(id))?;
        }
        Ok(bulk.finish()?)
    })?;
    let stats_of = |index: &Index| -> Result<(u64, f64)> {
        let bytes = fs::read_dir(index.directory())?
            .flatten()
            .filter_map(|entry| entry.metadata().ok())
            .map(|meta| meta.len())
            .sum();
        Ok((bytes, bytes as f64 / count as f64))
    };
    let (bytes, a_row) = stats_of(&index)?;
    writeln!(
        out,
        "{count} rows: built in {:.0} s ({seconds:.0} CPU s) with --memory {:.1} GB, peak {:.1} GB; {:.2} GB on disk, {a_row:.2} bytes per row with ids",
        started.elapsed().as_secs_f64(),
        memory_bytes as f64 / 1e9,
        peak_memory_bytes().unwrap_or(0) as f64 / 1e9,
        bytes as f64 / 1e9
    )?;
    let mut reader = index.reader();
    for round in ["cold", "again", "again"] {
        let mut times = Vec::new();
        for (row, id) in &planted {
            let query = flipped(*row, u32::try_from(id % 4).unwrap_or(0), &mut random);
            let started = Instant::now();
            let answer = reader.query(query, RADIUS, 10)?;
            times.push(started.elapsed());
            ensure!(answer.matches.iter().any(|found| found.id == Id::Number(*id)), "row {id} was missed");
        }
        times.sort_unstable();
        let micros = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1e6;
        writeln!(out, "{} queries, {round}: p50 {:.1} µs, p99 {:.1} µs", times.len(), micros(50), micros(99))?;
    }
    Ok(())
}
