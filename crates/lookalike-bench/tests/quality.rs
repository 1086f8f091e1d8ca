//! Recall and precision of the engine against the exact oracle.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // in a test, failing is the point

use std::path::PathBuf;

use lookalike_bench::corpus::{Corpus, CorpusPlan};
use lookalike_bench::quality::measure;

fn check(texts: &[String], name: &str) {
    let directory = tempfile::tempdir().unwrap();
    for threshold in [0.5, 0.7, 0.9] {
        let quality = measure(texts, threshold, directory.path()).unwrap();
        let (recall, precision) = (quality.recall(), quality.precision());
        println!("{name} at {threshold}: {quality:?} recall {recall:.4} precision {precision:.4}");
        assert!(quality.expected > 100, "{name} at {threshold}: only {} pairs to find", quality.expected);
        assert_eq!(quality.capped, 0);
        assert!(recall >= 0.99, "{name} at {threshold}: recall {recall}");
        assert_eq!(quality.found, quality.both, "{name} at {threshold}: precision {precision}");
    }
}

#[test]
fn generated_corpus_with_known_edits() {
    let mut bytes = Vec::new();
    Corpus::new(CorpusPlan { documents: 6000, words: 120, copy_every: 3, seed: 11 }).write(&mut bytes).unwrap();
    let lines = std::str::from_utf8(&bytes).unwrap().lines();
    let texts: Vec<String> = lines
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].as_str().unwrap().to_owned())
        .collect();
    check(&texts, "generated");
}

/// The folder with the labelled data, if it is there: `LOOKALIKE_DATA`, or `shared/data` beside the
/// project.
fn reuters() -> Option<Vec<String>> {
    let root = std::env::var_os("LOOKALIKE_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let archive = root.join("reuters21578.tar.zst");
    if !archive.exists() {
        return None;
    }
    let output = std::process::Command::new("sh")
        .arg("-c")
        .arg(r#"zstd -d --long=27 -c "$0" | tar -xO --wildcards '*.sgm'"#)
        .arg(&archive)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}: cannot be unpacked", archive.display());
    let sgml = String::from_utf8_lossy(&output.stdout).into_owned();
    let between = |text: &str, open: &str, close: &str| {
        let start = text.find(open)? + open.len();
        Some(text[start..start + text[start..].find(close)?].to_owned())
    };
    let stories = sgml.split("<REUTERS ").skip(1);
    Some(stories.filter_map(|story| between(story, "<BODY>", "</BODY>")).collect())
}

#[test]
fn reuters_news_stories() {
    let Some(texts) = reuters() else {
        println!("skipped: reuters21578.tar.zst is not here (set LOOKALIKE_DATA to the folder that holds it)");
        return;
    };
    assert!(texts.len() > 15_000, "{} stories", texts.len());
    check(&texts, "reuters21578");
}
