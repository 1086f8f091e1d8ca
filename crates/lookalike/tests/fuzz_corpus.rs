//! Everything in the fuzzing corpus goes through the same entry points, on any compiler.
#![allow(clippy::unwrap_used)] // in a test, failing is the point

use std::fs;
use std::path::Path;

use lookalike::config::Format;
use lookalike::unstable::fuzzing;

fn each(target: &str, run: impl Fn(Vec<u8>) -> usize) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5, "{}", folder.display());
    files.iter().map(|file| run(fs::read(file).unwrap())).sum()
}

fn reader(target: &str, format: &str) -> usize {
    each(target, |bytes| fuzzing::reader(format, bytes).unwrap_or(0))
}

#[test]
fn readers_survive_their_corpus_and_find_pages_in_it() {
    for (target, format) in [
        ("warc", "warc"),
        ("arc", "arc"),
        ("jsonl", "jsonl"),
        ("json", "json"),
        ("csv", "csv"),
        ("parquet", "parquet"),
        ("arrow", "arrow"),
        ("tagged", "trec"),
        ("tagged", "reuters"),
        ("tagged", "mediawiki"),
    ] {
        assert!(reader(target, format) > 0, "{target} {format}");
    }
}

#[test]
fn pages_and_responses_survive_their_corpus() {
    assert!(each("html", |bytes| fuzzing::page(&bytes, None)) > 0);
    assert!(each("http", |bytes| fuzzing::response(&bytes)) > 0);
}

#[test]
fn segments_survive_their_corpus_and_whole_ones_find_rows() {
    let found = each("segment", |bytes| fuzzing::segment(&bytes[1..], bytes[0] & 1 == 1));
    assert!(found > 100, "{found}");
    // Every byte changed, behind checksums that fit.
    each("segment", |bytes| {
        let mut changed = bytes.clone();
        (1..bytes.len())
            .step_by(7)
            .map(|at| {
                changed[at] = changed[at].wrapping_mul(31).wrapping_add(at.to_le_bytes()[0]);
                let found = fuzzing::segment(&changed[1..], true);
                changed[at] = bytes[at];
                found
            })
            .sum()
    });
}

/// Whatever a file is said to be, it is read to its end.
#[test]
fn every_reader_survives_the_files_of_all_others() {
    for target in ["warc", "arc", "jsonl", "json", "csv", "parquet", "arrow", "tagged", "html", "http"] {
        for format in Format::all() {
            reader(target, format.name());
        }
        each(target, |bytes| fuzzing::page(&bytes, Some("shift_jis")));
    }
}
