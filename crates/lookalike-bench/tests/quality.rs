//! Recall and precision of the engine against the exact oracle.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // in a test, failing is the point

use lookalike_bench::corpus::{Corpus, CorpusPlan};
use lookalike_bench::quality::measure;
use lookalike_test_data::labelled_data;

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

fn reuters() -> Option<Vec<String>> {
    let archive = labelled_data("reuters21578.tar.zst")?;
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
    let Some(texts) = reuters() else { return };
    assert!(texts.len() > 15_000, "{} stories", texts.len());
    check(&texts, "reuters21578");
}
