//! The index of fingerprints: exactness, bytes, time of building, queries, batches and joins, against FAISS on the
//! same rows in the same run.
//!
//! Queries are cold at first: the files of the index are not in the page cache. Then come others that warm it up, and
//! others again that are timed. FAISS is loaded from a file that is not in the page cache, and gets the same queries.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use lookalike::config::Named;
use lookalike::index::{Id, IdKind, IndexConfig, IndexReader, OpenOptions, TableCodec, pages};
use lookalike::unstable::{cpu_seconds, peak_memory_bytes, self_join};
use lookalike::{Config, Index, Silent};
use lookalike_bench::corpus::Random;
use lookalike_bench::labelled;
use serde::Deserialize;

use crate::peers::environment;

/// Queries that warm an index up: enough to touch nearly every block of 50 million rows.
const WARMING: usize = 100_000;
/// The first of them, which are timed as cold.
const COLD: usize = 500;
/// Other queries, timed one by one after that.
const TIMED: usize = 20_000;
/// The same for `scale`.
const SCALE_TIMED: usize = 10_000;
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

/// Writes files to disk and drops them from the page cache, in Python because the standard library there can.
const EVICT: &str = "
import os, sys
for path in sys.argv[1:]:
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
";

/// Drops the files of a directory from the page cache. Nothing may have them mapped.
fn evict(directory: &Path) -> Result<()> {
    let entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    let files = entries.iter().map(fs::DirEntry::path).filter(|path| path.is_file());
    let status = Command::new("python3").arg("-c").arg(EVICT).args(files).status()?;
    ensure!(status.success(), "the page cache could not be dropped");
    Ok(())
}

/// Two of the times of single queries, in microseconds.
#[derive(Deserialize)]
struct Latency {
    p50: f64,
    p99: f64,
}

impl Latency {
    fn of(mut times: Vec<Duration>) -> Latency {
        times.sort_unstable();
        let micros = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1e6;
        Latency { p50: micros(50), p99: micros(99) }
    }
}

/// How long single queries take, and how many of them have a match.
fn ask(reader: &mut IndexReader, queries: &[Query]) -> Result<(Latency, usize)> {
    let (mut times, mut matched) = (Vec::with_capacity(queries.len()), 0);
    for query in queries {
        let started = Instant::now();
        let answer = reader.query(query.fingerprint, RADIUS, 10)?;
        times.push(started.elapsed());
        let is_planted = query.planted.is_some_and(|distance| distance <= RADIUS);
        ensure!(!is_planted || answer.count > 0, "a planted row was missed at {:016x}", query.fingerprint);
        matched += usize::from(answer.count > 0);
    }
    Ok((Latency::of(times), matched))
}

/// The queries, the same for every index.
struct QuerySets {
    warming: Vec<Query>,
    timed: Vec<Query>,
}

impl QuerySets {
    /// Queries that warm up are planted at other rows than those that are timed.
    fn new(rows: &[u64], random: &mut Random) -> Result<QuerySets> {
        let (some, others) = rows.split_at(rows.len() / 2);
        let sets = QuerySets { warming: queries(some, WARMING, random), timed: queries(others, TIMED, random) };
        let warming: HashSet<u64> = sets.warming.iter().map(|query| query.fingerprint).collect();
        ensure!(sets.timed.iter().all(|query| !warming.contains(&query.fingerprint)), "a query is in both sets");
        Ok(sets)
    }
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
    let sets = QuerySets::new(&rows, &mut random)?;
    writeln!(
        out,
        "{count} random rows, radius {RADIUS}, one thread. Cold: {COLD} queries, nothing in the page cache; warm: {TIMED} queries after {WARMING} others\n"
    )?;
    writeln!(
        out,
        "| index | build, CPU s | bytes per row and table | bytes per row with ids: on disk | in memory | open, ms | cold p50 µs | cold p99 µs | warm p50 µs | warm p99 µs |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|---|")?;
    let (mut matched, mut side_by_side) = (0, String::new());
    for codec in [TableCodec::Raw, TableCodec::Huffman, TableCodec::EliasFano] {
        matched = codec_row(work, codec, &rows, &sets, &mut side_by_side, &mut out)?;
    }
    if !alone {
        faiss(work, &rows, &sets, matched, &mut out)?;
    }
    writeln!(
        out,
        "\nWarm queries by many threads at once:\n\n| index | threads | queries per second | CPU per query, µs |\n|---|---|---|---|\n{side_by_side}"
    )?;
    batch(&work.join(directory_name(TableCodec::EliasFano)), &rows, &mut random, &mut out)?;
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
    labelled_pages(&mut out)?;
    writeln!(out, "\npeak memory {:.1} GB", peak_memory_bytes().unwrap_or(0) as f64 / 1e9)?;
    Ok(())
}

fn directory_name(codec: TableCodec) -> String {
    format!("hamming-{}", codec.name())
}

/// The same queries by some threads at once, as a row of a table.
fn threads_row(index: &Index, codec: TableCodec, threads: usize, queries: &[Query]) -> Result<String> {
    let started = Instant::now();
    let (seconds, ()) = timed(|| {
        std::thread::scope(|scope| {
            let ask_all = || ask(&mut index.reader(), queries).map(drop);
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(ask_all)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?)
        })
    })?;
    let asked = (threads * queries.len()) as f64;
    let (rate, each) = (asked / started.elapsed().as_secs_f64(), seconds * 1e6 / asked);
    Ok(format!("| {} | {threads} | {rate:.0} | {each:.2} |\n", codec.name()))
}

/// One of our indexes; how many of the timed queries have a match. The last one stays on disk.
fn codec_row(
    work: &Path,
    codec: TableCodec,
    rows: &[u64],
    sets: &QuerySets,
    side_by_side: &mut String,
    out: &mut impl Write,
) -> Result<usize> {
    let directory = work.join(directory_name(codec));
    let (seconds, index) = timed(|| build(&directory, codec, rows))?;
    drop(index);
    evict(&directory)?;
    let started = Instant::now();
    let index = Index::open(&directory, OpenOptions::default())?;
    let opened = started.elapsed();
    let mut reader = index.reader();
    let (cold, _) = ask(&mut reader, &sets.warming[..COLD])?;
    ask(&mut reader, &sets.warming[COLD..])?;
    let (warm, matched) = ask(&mut reader, &sets.timed)?;
    check_against_scan(&mut reader, rows, &sets.timed)?;
    for threads in 1..=std::thread::available_parallelism()?.get() {
        side_by_side.push_str(&threads_row(&index, codec, threads, &sets.timed)?);
    }
    let stats = index.stats()?;
    let segment = stats.segments.first().context("there is no segment")?;
    writeln!(
        out,
        "| {}, {} tables | {seconds:.1} | {:.3} | {:.2} | mapped | {:.2} | {:.0} | {:.0} | {:.2} | {:.2} |",
        codec.name(),
        segment.tables,
        segment.bytes_per_row_and_table,
        stats.bytes as f64 / rows.len() as f64,
        opened.as_secs_f64() * 1e3,
        cold.p50,
        cold.p99,
        warm.p50,
        warm.p99
    )?;
    out.flush()?;
    if codec != TableCodec::EliasFano {
        fs::remove_dir_all(&directory)?;
    }
    Ok(matched)
}

/// Many queries at once.
fn batch(directory: &Path, rows: &[u64], random: &mut Random, out: &mut impl Write) -> Result<()> {
    let index = Index::open(directory, OpenOptions::default())?;
    let mut reader = index.reader();
    let many: Vec<u64> = queries(rows, BATCH, random).iter().map(|query| query.fingerprint).collect();
    let (seconds, pairs) = timed(|| Ok(reader.batch(&many, RADIUS)?))?;
    let found = |query: &u64| pairs.binary_search_by_key(query, |pair| pair.0).is_ok();
    for query in many.iter().step_by(1000) {
        ensure!(found(query) == reader.any(*query, RADIUS)?, "the batch and a query differ at {query:016x}");
    }
    writeln!(out, "\nbatch: {BATCH} queries against {} rows: {seconds:.2} CPU s, {} pairs", rows.len(), pairs.len())?;
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

/// What `peers/faiss_hamming.py build` prints.
#[derive(Deserialize)]
struct FaissBuild {
    seconds: f64,
}

/// What `peers/faiss_hamming.py ask` prints.
#[derive(Deserialize)]
struct FaissAnswers {
    version: String,
    file_bytes: f64,
    memory_bytes: f64,
    load_ms: f64,
    cold: Latency,
    warm: Latency,
    matched: usize,
    batch_per_second: f64,
}

fn faiss(work: &Path, rows: &[u64], sets: &QuerySets, matched: usize, out: &mut impl Write) -> Result<()> {
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
    let row_file = write("rows.u64", &mut rows.iter().copied())?;
    let warming = write("warming.u64", &mut sets.warming.iter().map(|query| query.fingerprint))?;
    let timed = write("timed.u64", &mut sets.timed.iter().map(|query| query.fingerprint))?;
    let script = work.join("faiss_hamming.py");
    fs::write(&script, include_str!("../peers/faiss_hamming.py"))?;
    let run = |arguments: &[&Path]| -> Result<Vec<u8>> {
        let output = Command::new(&python).arg(&script).args(arguments).output()?;
        ensure!(output.status.success(), "FAISS failed:\n{}", String::from_utf8_lossy(&output.stderr));
        Ok(output.stdout)
    };
    let index = work.join("faiss.index");
    let built: FaissBuild = serde_json::from_slice(&run(&[Path::new("build"), &row_file, &index])?)?;
    let cold = COLD.to_string();
    let answers = run(&[Path::new("ask"), &index, &warming, &timed, Path::new(&cold)])?;
    let found: FaissAnswers = serde_json::from_slice(&answers)?;
    ensure!(found.matched == matched, "FAISS has {} queries with a match instead of {matched}", found.matched);
    let a_row = |bytes: f64| bytes / rows.len() as f64;
    writeln!(
        out,
        "| FAISS {}, IndexBinaryMultiHash 4 × 16 | {:.1} | | {:.2} | {:.2} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
        found.version,
        built.seconds,
        a_row(found.file_bytes),
        a_row(found.memory_bytes),
        found.load_ms,
        found.cold.p50,
        found.cold.p99,
        found.warm.p50,
        found.warm.p99
    )?;
    writeln!(out, "\nFAISS in a batch: {:.0} queries per CPU-second", found.batch_per_second)?;
    fs::remove_file(row_file)?;
    fs::remove_file(index)?;
    Ok(())
}

/// Fingerprints of labelled pages: every query against a scan, and how they are spread.
fn labelled_pages(out: &mut impl Write) -> Result<()> {
    let sets = [labelled::install_guide()?, labelled::llvm_docs()?, labelled::same_core()?];
    let inputs: Vec<String> =
        sets.into_iter().flatten().map(|set| set.directory.to_string_lossy().into_owned()).collect();
    if inputs.is_empty() {
        return Ok(writeln!(out, "\nlabelled pages: skipped, the labelled data was not found; set LOOKALIKE_DATA")?);
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
        "\nlabelled pages: {} fingerprints, {} different; each has {:.1} others within {RADIUS} bits on average, as a scan says; p50 {:.2} µs, p99 {:.2} µs; the fullest 1/128 of the space holds {:.1} × its share",
        stats.rows,
        stats.fingerprints,
        near as f64 / rows.len() as f64,
        times[times.len() / 2].as_secs_f64() * 1e6,
        times[times.len() * 99 / 100].as_secs_f64() * 1e6,
        stats.parts.iter().max().copied().unwrap_or(0) as f64 * 128.0 / stats.rows as f64
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
    let every = (count / (WARMING + SCALE_TIMED) as u64).max(1);
    let mut asked = Vec::new();
    let (seconds, ()) = timed(|| {
        let mut bulk = index.bulk_insert()?;
        for id in 0..count {
            let row = random.number();
            if id.is_multiple_of(every) {
                asked.push(row);
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
    drop(index);
    evict(&directory)?;
    let index = Index::open(&directory, OpenOptions::default())?;
    let mut reader = index.reader();
    // All of them near rows: the ids of what is found have to be warm, too.
    let near = |(at, row): (usize, u64)| {
        let distance = u32::try_from(at % 4).unwrap_or(0);
        Query { fingerprint: flipped(row, distance, &mut random), planted: Some(distance) }
    };
    let queries: Vec<Query> = asked.into_iter().enumerate().map(near).collect();
    ensure!(queries.len() >= WARMING + SCALE_TIMED, "{count} rows are too few");
    let (timed, warming) = queries.split_at(SCALE_TIMED);
    let (cold, _) = ask(&mut reader, &warming[..COLD])?;
    writeln!(out, "{COLD} queries, nothing in the page cache: p50 {:.1} µs, p99 {:.1} µs", cold.p50, cold.p99)?;
    ask(&mut reader, &warming[COLD..])?;
    let (warm, _) = ask(&mut reader, timed)?;
    let others = warming.len();
    writeln!(out, "{SCALE_TIMED} queries after {others} others: p50 {:.1} µs, p99 {:.1} µs", warm.p50, warm.p99)?;
    Ok(())
}
