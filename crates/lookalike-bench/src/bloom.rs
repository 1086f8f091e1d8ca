//! What chunks and Bloom filters cost on this machine: Tables 1 to 4 of Jain et al. (2005), one thread.
//!
//! Beside every time is its ratio to a floor that is measured in the same rounds: the least that any program does to the
//! same bytes.

use std::borrow::Cow;
use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use anyhow::Result;
use lookalike::config::ClusterMode;
use lookalike::refine::StoredSketch;
use lookalike::unstable::{ChunkPlan, Chunker, FilterPlan, SharedBits, number_copies};
use lookalike::{Body, Markup, Method, RawPage, Refiner};
use lookalike_bench::corpus::Random;

use crate::refine::{BYTES, results};

/// The paper's sizes of files.
const FILES: [(&str, usize); 4] = [("10 KB", 10 << 10), ("100 KB", 100 << 10), ("1 MB", 1 << 20), ("10 MB", 10 << 20)];
/// The paper's expected sizes of chunks, in bytes.
const CHUNKS: [u64; 4] = [256, 512, 2048, 8192];
/// The paper's numbers of hash functions.
const FUNCTIONS: [u32; 3] = [2, 4, 8];
/// The paper's sizes of filters, in bits.
const FILTERS: [u32; 6] = [100, 300, 625, 1250, 2500, 5000];
/// The paper's lengths of lists.
const LISTS: [usize; 6] = [10, 20, 40, 80, 160, 320];
/// Bits of a filter for each expected chunk (§3.1.1).
const BITS_PER_CHUNK: u64 = 8;
/// How often everything is measured; the fastest round counts.
const ROUNDS: usize = 9;
/// What a round takes at least, so that the clock's steps do not count.
const ROUND_SECONDS: f64 = 0.002;

/// Prints all tables.
///
/// # Errors
/// When the tables cannot be printed.
pub(crate) fn run() -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "One thread; the fastest of {ROUNDS} rounds. In parentheses: times the floor.\n")?;
    let text = text(FILES[FILES.len() - 1].1);
    chunking(&mut out, &text)?;
    filters(&mut out, &text)?;
    matching(&mut out)?;
    folding(&mut out)
}

fn text(bytes: usize) -> Vec<u8> {
    let mut random = Random(7);
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        text.extend((0..2 + random.below(8)).map(|_| b'a' + u8::try_from(random.below(26)).unwrap_or(0)));
        text.push(b' ');
    }
    text.truncate(bytes);
    text
}

/// Seconds of one call of each job, the fastest round of each; the jobs take turns.
fn fastest<const N: usize>(mut jobs: [&mut dyn FnMut(); N]) -> [f64; N] {
    let timed = |job: &mut dyn FnMut(), calls: u32| {
        let started = Instant::now();
        (0..calls).for_each(|_| job());
        started.elapsed().as_secs_f64()
    };
    let calls = jobs.each_mut().map(|job| {
        let mut calls = 1;
        while calls < 1 << 24 && timed(&mut **job, calls) < ROUND_SECONDS {
            calls *= 2;
        }
        calls
    });
    let mut least = [f64::INFINITY; N];
    for _ in 0..ROUNDS {
        for ((least, job), calls) in least.iter_mut().zip(&mut jobs).zip(calls) {
            *least = least.min(timed(&mut **job, calls) / f64::from(calls));
        }
    }
    least
}

/// A time in milliseconds with three digits that count, and its ratio to the floor.
fn cell(seconds: f64, floor: f64) -> String {
    format!("{} ({:.1})", digits(seconds * 1e3), seconds / floor)
}

/// Three digits that count.
fn digits(value: f64) -> String {
    let places = [100.0, 10.0, 1.0, 0.1, 0.01, 0.001].iter().position(|&least| value >= least).unwrap_or(6);
    format!("{value:.places$}")
}

fn head(out: &mut impl Write, cells: &[String]) -> io::Result<()> {
    writeln!(out, "| {} |", cells.join(" | "))?;
    writeln!(out, "|{}", "---|".repeat(cells.len()))
}

/// Table 1.
fn chunking(out: &mut impl Write, text: &[u8]) -> Result<()> {
    writeln!(out, "Table 1: cutting a file into chunks and hashing them, ms; the floor is copying the file\n")?;
    let sizes = CHUNKS.map(|size| format!("{size} bytes"));
    head(out, &[&["file".to_owned()][..], &sizes, &["floor".to_owned()]].concat())?;
    for (name, bytes) in FILES {
        let file = &text[..bytes];
        let mut room = vec![0u8; bytes];
        let mut copy = || {
            room.copy_from_slice(black_box(file));
            black_box(&room);
        };
        let mut chunk = CHUNKS.map(|size| {
            let (chunker, mut ends, mut chunks) =
                (Chunker::new(ChunkPlan { size, ..ChunkPlan::default() }), Vec::new(), Vec::new());
            move || {
                chunker.chunks(black_box(file), &mut ends, &mut chunks);
                black_box(&chunks);
            }
        });
        let [a, b, c, d] = &mut chunk;
        let [floor, times @ ..] = fastest([&mut copy, a, b, c, d]);
        let cells = times.map(|seconds| cell(seconds, floor)).join(" | ");
        writeln!(out, "| {name} | {cells} | {} |", digits(floor * 1e3))?;
    }
    Ok(writeln!(out)?)
}

/// Table 2.
fn filters(out: &mut impl Write, text: &[u8]) -> Result<()> {
    writeln!(
        out,
        "Table 2: from chunks to the filter, ms; {} bytes per chunk, {BITS_PER_CHUNK} bits per expected chunk; the floor is copying the chunks' hashes\n",
        CHUNKS[0]
    )?;
    let functions = FUNCTIONS.map(|k| format!("k = {k}"));
    let titles = ["file".to_owned(), "chunks".to_owned()];
    head(out, &[&titles[..], &functions, &["floor".to_owned()]].concat())?;
    let chunker = Chunker::new(ChunkPlan { size: CHUNKS[0], ..ChunkPlan::default() });
    for (name, bytes) in FILES {
        let (mut ends, mut chunks) = (Vec::new(), Vec::new());
        chunker.chunks(&text[..bytes], &mut ends, &mut chunks);
        let bits = u32::try_from(bytes as u64 / CHUNKS[0] * BITS_PER_CHUNK)?;
        let mut room = Vec::new();
        let mut copy = || {
            room.clear();
            room.extend_from_slice(black_box(&chunks));
            black_box(&room);
        };
        let mut make = FUNCTIONS.map(|hashes| {
            let (chunks, mut elements, mut filter) = (&chunks, Vec::new(), Vec::new());
            move || {
                elements.clear();
                elements.extend_from_slice(black_box(chunks));
                // Copies of a chunk are elements of their own; this also sorts.
                number_copies(&mut elements);
                filter.clear();
                FilterPlan { bits, hashes, seed: 1 }.filter(&elements, &mut filter);
                black_box(&filter);
            }
        });
        let [a, b, c] = &mut make;
        let [floor, times @ ..] = fastest([&mut copy, a, b, c]);
        let cells = times.map(|seconds| cell(seconds, floor)).join(" | ");
        writeln!(out, "| {name} | {} | {cells} | {} |", chunks.len(), digits(floor * 1e3))?;
    }
    Ok(writeln!(out)?)
}

/// Table 3.
fn matching(out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "Table 3: the AND of two filters, with the bits of each and of both counted, ns; the floor is reading the words of both\n"
    )?;
    let sizes = FILTERS.map(|bits| format!("{bits} bits"));
    head(out, &[&[String::new()][..], &sizes].concat())?;
    let (mut ands, mut floors) = (Vec::new(), Vec::new());
    for bits in FILTERS {
        let plan = FilterPlan { bits, hashes: 4, seed: 1 };
        let mut random = Random(u64::from(bits));
        let [left, right] = [0, 1].map(|_| {
            let elements: Vec<u64> = (0..bits / 8).map(|_| random.number()).collect();
            let mut filter = Vec::new();
            plan.filter(&elements, &mut filter);
            filter
        });
        let sum = |words: &[u32]| words.iter().fold(0u32, |sum, &word| sum.wrapping_add(word));
        let [floor, and] = fastest([
            &mut || {
                black_box(sum(black_box(&left)) ^ sum(black_box(&right)));
            },
            &mut || {
                black_box(SharedBits::new(black_box(&left), black_box(&right)));
            },
        ]);
        ands.push(format!("{} ({:.1})", digits(and * 1e9), and / floor));
        floors.push(digits(floor * 1e9));
    }
    writeln!(out, "| AND | {} |\n| floor | {} |\n", ands.join(" | "), floors.join(" | "))?;
    Ok(())
}

/// Table 4.
fn folding(out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "Table 4: matching and clustering a list of results of {} KB with their filters at hand, ms; the floor is reading the words of both filters of every pair\n",
        BYTES / 1000
    )?;
    let lengths = LISTS.map(|results| results.to_string());
    head(out, &[&["near-duplicates, decided by, groups".to_owned()][..], &lengths].concat())?;
    let longest = LISTS[LISTS.len() - 1];
    let mut floors = Vec::new();
    for (share, every) in [("none", usize::MAX), ("1 in 4", 4), ("1 in 2", 2)] {
        let texts = results(longest, every);
        let ways = [
            ("chunks, stars", "bloom chunk_size=64", ClusterMode::Star),
            ("bits, chains", "bloom chunk_size=64 decide_by=bits", ClusterMode::Components),
        ];
        for (way, method, cluster) in ways {
            let mut config = Refiner::defaults(method.parse::<Method>()?);
            config.groups.cluster = cluster;
            let refiner = Refiner::new(config)?;
            let mut sketcher = refiner.sketcher();
            let pages = texts.iter().map(|text| RawPage::new(Body::Text(Cow::Borrowed(text)), Markup::Text));
            let sketches: Vec<Option<StoredSketch>> =
                pages.map(|page| Some(refiner.sketch(&page, &mut sketcher))).collect();
            let mut cells = Vec::new();
            for length in LISTS {
                let words = vec![vec![1u32; FILTER_WORDS]; length];
                let [floor, fold] = fastest([&mut || read_pairs(black_box(&words)), &mut || {
                    black_box(refiner.fold(black_box(&sketches[..length])));
                }]);
                cells.push(cell(fold, floor));
                if floors.len() < LISTS.len() {
                    floors.push(digits(floor * 1e3));
                }
            }
            writeln!(out, "| {share}, {way} | {} |", cells.join(" | "))?;
        }
    }
    writeln!(out, "| floor | {} |", floors.join(" | "))?;
    Ok(())
}

/// Words of a filter at its default size.
const FILTER_WORDS: usize = 64;

/// Reads both filters of every pair.
fn read_pairs(filters: &[Vec<u32>]) {
    let sum = |words: &[u32]| words.iter().fold(0u32, |sum, &word| sum.wrapping_add(word));
    for (at, right) in filters.iter().enumerate() {
        for left in &filters[..at] {
            black_box(sum(black_box(left)) ^ sum(black_box(right)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_count() {
        assert_eq!([1234.5, 45.67, 4.567, 0.4567, 0.004567].map(digits), ["1234", "45.7", "4.57", "0.457", "0.00457"]);
    }
}
