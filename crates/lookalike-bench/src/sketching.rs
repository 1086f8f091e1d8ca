//! Sketching alone, one thread: every sketch from the same tokens, as a multiple of the cost of
//! mixing each token's hash once more; chunking in bytes per second.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use lookalike::unstable::kernel::min_values_scalar;
use lookalike::unstable::{ChunkPlan, Chunker, MinHasher, Projection, fingerprint};

/// Pages, and tokens in each.
const PAGES: usize = 2000;
const TOKENS: usize = 450;
/// How often everything is measured; the fastest run of each counts.
const ROUNDS: usize = 9;

/// One measured job.
struct Row {
    name: &'static str,
    seconds: f64,
}

/// The yardstick: a full avalanche of one 64-bit hash.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let value = (value ^ (value >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ (value >> 33)
}

/// Prints a table of all.
pub(crate) fn run() -> io::Result<()> {
    let pages: Vec<Vec<u64>> = (0..PAGES as u64)
        .map(|page| (0..TOKENS as u64).map(|token| mix((page << 32) | ((token * token) % 997))).collect())
        .collect();
    let text: Vec<u8> =
        (0..8u64 << 20).map(|at| b"etaoin shrdlu"[usize::try_from(mix(at) % 13).unwrap_or(0)]).collect();
    let (projection, hasher) = (Projection::new(384, 1), MinHasher::new(84, 1));
    let chunker = Chunker::new(ChunkPlan::default());
    let (mut words, mut narrow, mut minima, mut ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (multipliers, offsets): (Vec<u32>, Vec<u32>) = (0..84u32).map(|n| (n * 2 + 1, n)).unzip();

    let mut mixed = Row { name: "mixing each hash once more", seconds: f64::MAX };
    let mut simhash = Row { name: "SimHash, 64 bits", seconds: f64::MAX };
    let mut projected = Row { name: "projection, 384 bits", seconds: f64::MAX };
    let mut min_values = Row { name: "84 min-values", seconds: f64::MAX };
    let mut scalar = Row { name: "84 min-values, the scalar twin", seconds: f64::MAX };
    let mut chunking = Row { name: "Rabin chunking", seconds: f64::MAX };
    for _ in 0..ROUNDS {
        mixed.measure(|| {
            pages.iter().map(|page| page.iter().fold(0, |sum, &hash| sum ^ mix(hash))).fold(0, |a, b| a ^ b)
        });
        simhash.measure(|| pages.iter().fold(0, |sum, page| sum ^ fingerprint(page)));
        projected.measure(|| {
            pages.iter().fold(0, |sum, page| {
                words.clear();
                projection.project(page, &mut words);
                sum ^ u64::from(words[0])
            })
        });
        min_values.measure(|| {
            pages.iter().fold(0, |sum, page| {
                hasher.min_values(page, &mut narrow, &mut minima);
                sum ^ u64::from(minima[0])
            })
        });
        scalar.measure(|| {
            pages[..PAGES / 10].iter().fold(0, |sum, page| {
                narrow.clear();
                #[allow(clippy::cast_possible_truncation)] // the low half is as good as any
                narrow.extend(page.iter().map(|&hash| hash as u32));
                min_values_scalar(&narrow, &multipliers, &offsets, &mut minima);
                sum ^ u64::from(minima[0])
            })
        });
        chunking.measure(|| {
            chunker.ends(&text, &mut ends);
            ends.len() as u64
        });
    }
    let tokens = (PAGES * TOKENS) as f64;
    let mut out = io::stdout().lock();
    writeln!(out, "{PAGES} pages of {TOKENS} tokens, one thread; the fastest of {ROUNDS} runs")?;
    writeln!(out, "\n| job | ns per token | relative to mixing | M tokens/s |\n|---|---|---|---|")?;
    let mut line = |row: &Row, tokens: f64| {
        let each = row.seconds / tokens;
        let times = each / (mixed.seconds / (PAGES * TOKENS) as f64);
        writeln!(out, "| {} | {:.2} | {times:.2} × | {:.0} |", row.name, each * 1e9, 1e-6 / each)
    };
    for row in [&mixed, &simhash, &projected, &min_values] {
        line(row, tokens)?;
    }
    line(&scalar, tokens / 10.0)?;
    writeln!(out, "\n{}: {:.0} MB/s", chunking.name, text.len() as f64 / chunking.seconds / 1e6)
}

impl Row {
    fn measure(&mut self, work: impl FnOnce() -> u64) {
        let started = Instant::now();
        black_box(work());
        self.seconds = self.seconds.min(started.elapsed().as_secs_f64());
    }
}
