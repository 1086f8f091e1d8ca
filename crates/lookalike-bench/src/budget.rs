//! Where the CPU time of the main job goes, stage by stage, beside floors that are measured in the same run: what it takes
//! to read the bytes, to copy them, to find the texts in them, to look at every word once, to unpack them.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use lookalike::result::files;
use serde_json::Value;

/// Bytes that are read at once.
const BLOCK: usize = 1 << 20;
/// How often everything is measured; the median counts.
const ROUNDS: usize = 5;

/// Prints the tables.
pub(crate) fn run(documents: usize, work: &Path) -> Result<()> {
    let corpus = crate::generated(work, documents)?;
    let bytes = fs::read(&corpus)?;
    let packed = pack(&bytes)?;
    let megabytes = bytes.len() as f64 / 1e6;
    let engine = std::env::current_exe()?.with_file_name("lookalike");
    ensure!(engine.exists(), "{} is not built: cargo build --release", engine.display());

    let mut copy = vec![0; BLOCK];
    type Floor<'a> = (&'static str, Box<dyn FnMut() -> Result<u64> + 'a>);
    let mut floors: [Floor<'_>; 5] = [
        ("read the bytes of the file", Box::new(|| read_file(&corpus))),
        ("copy them in memory", Box::new(|| Ok(bytes.chunks(BLOCK).map(|block| copy_block(block, &mut copy)).sum()))),
        (
            "find the string of the text in each line",
            Box::new(|| Ok(texts(&bytes).map(|text| text.len() as u64).sum())),
        ),
        ("classify every byte of the texts and hash every word", Box::new(|| Ok(texts(&bytes).map(hash_words).sum()))),
        ("unpack them with gzip", Box::new(|| Ok(io::copy(&mut MultiGzDecoder::new(&packed[..]), &mut io::sink())?))),
    ];
    let (mut floor_times, mut stage_times) = (vec![Vec::new(); floors.len()], Vec::new());
    for _ in 0..ROUNDS {
        for ((_, work), times) in floors.iter_mut().zip(&mut floor_times) {
            let before = thread_seconds()?;
            black_box(work()?);
            times.push(thread_seconds()? - before);
        }
        stage_times.push(stages(&engine, &corpus, &work.join("budget"), &[], 1)?);
    }

    let mut out = io::stdout().lock();
    writeln!(out, "{documents} documents, {megabytes:.0} MB of JSON lines, one thread, medians of {ROUNDS} rounds\n")?;
    writeln!(out, "| floor | CPU-seconds | MB per CPU-second |\n|---|---|---|")?;
    for ((name, _), times) in floors.iter().zip(&mut floor_times) {
        let seconds = median(times);
        writeln!(out, "| {name} | {seconds:.2} | {:.0} |", megabytes / seconds)?;
    }
    writeln!(out, "\n| stage | CPU-seconds | share |\n|---|---|---|")?;
    let names: Vec<String> = stage_times[0].iter().map(|(name, _)| name.clone()).collect();
    let column = |at: usize| median(&mut stage_times.iter().map(|stages| stages[at].1).collect::<Vec<_>>());
    let total = column(names.len() - 1);
    for (at, name) in names.iter().enumerate() {
        writeln!(out, "| {name} | {:.2} | {:.0} % |", column(at), 100.0 * column(at) / total)?;
    }
    writeln!(out, "\n{:.0} MB per CPU-second in all", megabytes / total)?;
    Ok(())
}

pub(crate) fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// CPU time of this thread, as the scheduler counts it.
fn thread_seconds() -> Result<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").context("the system does not count CPU time")?;
    let nanoseconds = text.split(' ').next().unwrap_or_default();
    Ok(nanoseconds.parse::<f64>()? / 1e9)
}

/// As files of crawls are: members of a megabyte.
pub(crate) fn pack(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut packed = Vec::new();
    for block in bytes.chunks(BLOCK) {
        let mut encoder = GzEncoder::new(packed, Compression::default());
        encoder.write_all(block)?;
        packed = encoder.finish()?;
    }
    Ok(packed)
}

fn read_file(path: &Path) -> Result<u64> {
    let (mut file, mut block, mut read) = (File::open(path)?, vec![0; BLOCK], 0);
    loop {
        match file.read(&mut block)? {
            0 => return Ok(read),
            count => read += count as u64,
        }
    }
}

fn copy_block(block: &[u8], copy: &mut [u8]) -> u64 {
    copy[..block.len()].copy_from_slice(black_box(block));
    u64::from(black_box(&copy)[0])
}

/// The texts of the lines, with their escapes.
fn texts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    const BEGIN: &[u8] = b"\"text\":\"";
    let mut from = 0;
    std::iter::from_fn(move || {
        let begin = from + memchr::memmem::find(&bytes[from..], BEGIN)? + BEGIN.len();
        let mut end = begin;
        loop {
            end += memchr::memchr2(b'"', b'\\', &bytes[end..])?;
            if bytes[end] == b'"' {
                break;
            }
            end += 2;
        }
        from = end;
        Some(&bytes[begin..end])
    })
}

/// Every word once: letters and digits, without their case, multiplied together.
fn hash_words(text: &[u8]) -> u64 {
    let (mut sum, mut word) = (0u64, 0u64);
    for &byte in text {
        if byte.is_ascii_alphanumeric() || byte >= 0x80 {
            word = (word ^ u64::from(byte | 0x20)).wrapping_mul(0x0100_0000_01b3);
        } else {
            sum ^= word;
            word = 0;
        }
    }
    sum ^ word
}

/// The CPU-seconds of each stage of a run, and of all of it.
pub(crate) fn stages(
    engine: &Path,
    corpus: &Path,
    output: &Path,
    flags: &[&str],
    threads: usize,
) -> Result<Vec<(String, f64)>> {
    if output.exists() {
        fs::remove_dir_all(output)?;
    }
    let mut command = Command::new(engine);
    command.arg("dedup").arg(corpus).arg("--output").arg(output).args(flags);
    command.args(["--threads", &threads.to_string(), "--quiet"]);
    ensure!(command.status()?.success(), "{command:?} failed");
    let run: Value = serde_json::from_slice(&fs::read(output.join(files::RUN))?)?;
    let seconds = |value: &Value| value["cpu_seconds"].as_f64().context("run.json has no CPU time");
    let stages = run["stages"].as_array().context("run.json has no stages")?;
    let mut all = Vec::new();
    for stage in stages {
        all.push((stage["stage"].as_str().unwrap_or_default().to_owned(), seconds(stage)?));
    }
    all.push(("all".to_owned(), seconds(&run)?));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_their_own_quotes() {
        let lines = b"{\"id\":1,\"text\":\"one \\\"two\\\" \\\\\"}\n{\"text\":\"\"}\n{\"text\":\"three\"}\n";
        let found: Vec<&[u8]> = texts(lines).collect();
        assert_eq!(found, [&b"one \\\"two\\\" \\\\"[..], b"", b"three"]);
        assert_eq!(hash_words(b"One, two"), hash_words(b"one two"));
        assert_ne!(hash_words(b"one two"), hash_words(b"one three"));
    }
}
