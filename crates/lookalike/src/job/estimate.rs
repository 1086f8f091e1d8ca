//! A dry run: what would be read, and what it would take, from a sample of the input.

use std::ops::ControlFlow;
use std::time::Instant;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::job::RunOptions;
use crate::job::dedup::{
    BASE_BYTES, FEATURES_SHARE, INDEX_BYTES_PER_FEATURE, LEARNING_BYTES, LEAST_INDEX_BYTES, MOST_ROOM_BYTES,
    SKETCHES_SHARE, TABLE_SHARE,
};
use crate::page_table::{BYTES_PER_PAGE, TABLE_BYTES_PER_PAGE};
use crate::read::compression::Compression;
use crate::read::{Corpus, Format, Source, UNIT_BYTES, discover};
use crate::report::outputs::{KeptCompression, KeptFormat};
use crate::sketch::supershingle::Bands;
use crate::sketcher::Sketcher;

/// Bytes that are read to estimate the rest from.
const SAMPLE_BYTES: u64 = 16 << 20;

/// Candidate pages are assumed to be this share of all pages.
const CANDIDATE_SHARE: f64 = 0.3;
/// Bytes of the tables and the report.
const RESULT_BYTES_PER_PAGE: u64 = 100;
/// What comes after sketching, in units of the time it takes.
const LATER_STAGES: f64 = 0.6;

/// xz files are written on one thread, bzip2 files on all, each at so many bytes per second: of xz packed ones, since
/// its time depends on what the data holds (75 MB of manuals, 3.9 MB packed: 18.0 s; 23 MB of news, 4.8 MB packed: 19.1 s), of
/// bzip2 unpacked ones, what is unpacked again for it included (9.0 s and 2.3 s for the same files). gzip and zstd take less
/// than a tenth of that.
const XZ_PACKED_BYTES_PER_SECOND: f64 = 230e3;
const BZIP2_BYTES_PER_SECOND: f64 = 8e6;

/// What a run would take.
#[derive(Debug)]
pub struct Estimate {
    /// What would be read.
    pub corpus: Corpus,
    /// Size of all sources on disk.
    pub bytes: u64,
    /// Pages, estimated unless all were read.
    pub pages: u64,
    /// Whether the sample was the whole input.
    pub exact: bool,
    /// Tokens per page.
    pub tokens_per_page: f64,
    /// Wall-clock time.
    pub seconds: f64,
    /// The part of it in which xz and bzip2 files are written, on one thread.
    pub packing_seconds: f64,
    /// Memory that would be used below the ceiling.
    pub memory_bytes: u64,
    /// The least `memory` that is accepted.
    pub memory_floor_bytes: u64,
    /// Size of the result, and of temporary files at the same time.
    pub disk_bytes: u64,
    /// Records of the sample that could not be used.
    pub skipped: u64,
    /// Bands and rows that would be used, where the method has them.
    pub bands: Option<Bands>,
}

/// Reads a sample and estimates; writes nothing.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
/// use lookalike::{Config, RunOptions, estimate};
///
/// std::fs::write(at("pages.jsonl"), "{\"text\": \"Once upon a time\"}\n").unwrap();
/// let estimate = estimate(&Config::default(), &RunOptions::new([at("pages.jsonl")], at("out")))?;
/// assert_eq!((estimate.pages, estimate.exact), (1, true));
/// # Ok::<(), lookalike::Error>(())
/// ```
///
/// # Errors
/// As the run itself would: missing inputs, unknown formats.
pub fn estimate(config: &Config, options: &RunOptions) -> Result<Estimate> {
    config.check()?;
    if options.inputs.iter().any(|input| input == "-") {
        let reason = "cannot look at standard input without using it up; give a file";
        return Err(Error::conflict("dry_run", reason));
    }
    let sources = discover(&options.inputs, &config.read, &options.output, None)?;
    estimate_of(config, options, Corpus::new(sources, &config.read))
}

/// The same of sources that need not be files.
///
/// # Errors
/// As [`estimate`].
pub fn estimate_sources(config: &Config, options: &RunOptions, sources: Vec<Source>) -> Result<Estimate> {
    estimate_of(config, options, Corpus::new(sources, &config.read))
}

fn estimate_of(config: &Config, options: &RunOptions, corpus: Corpus) -> Result<Estimate> {
    let plan = config.plan();
    let bytes = corpus.bytes();
    let (mut tokens, mut text_bytes, mut features, mut html_tokens, mut exact) = (0u64, 0u64, 0u64, 0u64, true);
    let started = Instant::now();
    let scanned = corpus.scan().threads(options.threads).for_each_batch(
        || (Sketcher::of_plan(&plan), Vec::new()),
        |(sketcher, columns), records| {
            let mut sums = [0u64; 4];
            records.for_each_page(|page| {
                let facts = sketcher.read(&page);
                sums[0] += u64::from(facts.tokens);
                sums[1] += page.length;
                sums[3] += facts.scope.map_or(0, |_| u64::from(facts.tokens));
                if facts.tokens > 0 {
                    if plan.keeps_features() {
                        sums[2] += sketcher.sketch().features.len() as u64;
                    } else {
                        sketcher.columns(columns);
                    }
                }
                Ok(())
            })?;
            Ok(sums)
        },
        |[more_tokens, more_bytes, more_features, more_html]| {
            tokens += more_tokens;
            text_bytes += more_bytes;
            features += more_features;
            html_tokens += more_html;
            exact = text_bytes < SAMPLE_BYTES;
            Ok(if exact { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        },
    )?;
    let (pages, skipped) = (scanned.pages, scanned.skipped);
    if pages == 0 {
        let hint = if skipped > 0 { ": every record would have to be skipped" } else { "" };
        return Err(Error::NoPages { inputs: options.inputs.join(", "), hint: hint.to_owned() });
    }
    let elapsed = started.elapsed().as_secs_f64();
    // Where records are plain bytes their lengths say how much of the input the sample is; elsewhere
    // what was taken from disk does, which runs a little ahead of what was worked on.
    let is_plain = |source: &Source| source.compression == Compression::None && source.format != Format::PARQUET;
    let read = if corpus.sources.iter().all(is_plain) { text_bytes } else { corpus.bytes_read() }.max(1);
    let factor = if exact { 1.0 } else { (bytes as f64 / read as f64).max(1.0) };
    let all_pages = scale(pages, factor);
    let tokens_per_page = tokens as f64 / pages.max(1) as f64;
    let keys = plan.columns().columns() as u64 * 8 * all_pages;
    let sets = scale(tokens, factor * CANDIDATE_SHARE) * 8;
    let index = match (plan.keeps_features(), plan.matches_in_order()) {
        (false, _) => 0,
        (true, false) => LEAST_INDEX_BYTES,
        (true, true) => scale(features, factor) * INDEX_BYTES_PER_FEATURE,
    };
    let learns = config.leaves_out_frames() && html_tokens > 0;
    let floor = BASE_BYTES + all_pages * BYTES_PER_PAGE + index + if learns { LEARNING_BYTES } else { 0 };
    let table = all_pages * TABLE_BYTES_PER_PAGE;
    let wanted = floor + table + keys + sets;
    let allowed = options.memory_bytes.unwrap_or(floor + MOST_ROOM_BYTES).max(floor);
    // Pages wait as tokens until it is known what is frame.
    let held = if learns { scale(html_tokens, factor) * 8 } else { 0 };
    let kept = if options.outputs.no_kept { 0 } else { bytes };
    // What outgrows its share moves to a file as a whole.
    let room = allowed - floor;
    let moved = |bytes: u64, share: f64| if bytes > scale(room, share) { bytes } else { 0 };
    let spilled =
        moved(table, TABLE_SHARE) + moved(keys, SKETCHES_SHARE) + moved(table + sets, FEATURES_SHARE).min(sets);
    // What has been read, for a run that goes on with it.
    let resumed = if bytes >= 2 * UNIT_BYTES { table + keys } else { 0 };
    let packing_seconds = packing_seconds(&corpus, text_bytes as f64 * factor, options);
    Ok(Estimate {
        bytes,
        pages: all_pages,
        exact,
        tokens_per_page,
        seconds: elapsed * factor * (1.0 + LATER_STAGES) + packing_seconds,
        packing_seconds,
        memory_bytes: wanted.min(allowed),
        memory_floor_bytes: floor,
        disk_bytes: kept + all_pages * RESULT_BYTES_PER_PAGE + spilled + resumed + held,
        skipped,
        bands: plan.sketch.bands(),
        corpus,
    })
}

/// The time in which xz and bzip2 files are written, as copies of sources that are packed so. Nothing is known of what will be
/// kept: kept and removed records together are all.
fn packing_seconds(corpus: &Corpus, unpacked_bytes: f64, options: &RunOptions) -> f64 {
    let outputs = options.outputs;
    let packs_kept = !outputs.no_kept
        && outputs.kept_compression == KeptCompression::Same
        && outputs.kept_format != KeptFormat::Parquet;
    let kept = if packs_kept {
        1.0
    } else if outputs.removed {
        CANDIDATE_SHARE
    } else {
        0.0
    };
    let copies = kept + f64::from(u8::from(outputs.annotate));
    let of = |compression: Compression| -> f64 {
        let packed = corpus.sources.iter().filter(|source| source.compression == compression);
        { packed }.filter(|source| !source.format.is_page_file()).map(|source| source.bytes as f64).sum()
    };
    let unpacked = unpacked_bytes / (corpus.bytes() as f64).max(1.0);
    let bzip2 = of(Compression::Bzip2) * unpacked / BZIP2_BYTES_PER_SECOND / options.threads.max(1) as f64;
    copies * (of(Compression::Xz) / XZ_PACKED_BYTES_PER_SECOND + bzip2)
}

fn scale(count: u64, factor: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an estimate of something countable
    let scaled = (count as f64 * factor).round() as u64;
    scaled
}
