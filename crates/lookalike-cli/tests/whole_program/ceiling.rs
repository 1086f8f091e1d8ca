//! `--memory` is a ceiling: runs of real size stay below it, and find the same.
#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{contents, lookalike, summary};

/// The floor of docs/memory.md: a fixed part, one for learning frames where there is HTML, and so much per page.
const FIXED_BYTES: u64 = 96 << 20;
const LEARNING_BYTES: u64 = 64 << 20;
const BYTES_PER_PAGE: u64 = 80;

/// Runs a job, on one thread, as each has batches of its own; the most anonymous memory that it was seen with.
fn peak_of(input: &Path, output: &Path, memory: u64, extra: &[&str]) -> u64 {
    let mut command = lookalike();
    command.arg("dedup").arg(input).arg("--output").arg(output).args(["--threads", "1", "--no-kept", "--quiet"]);
    command.args(["--memory", &memory.to_string()]).args(extra);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB"));
        peak = peak.max(line.map_or(0, |kib| kib.parse::<u64>().unwrap() * 1024));
        std::thread::sleep(Duration::from_millis(1));
    }
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    peak
}

/// At the floor, a bit above it, and at twice as much: below the ceiling, and the same bytes.
fn check(input: &Path, fixed: u64, pages: u64, extra: &[&str]) -> serde_json::Value {
    let root = tempfile::tempdir().unwrap();
    let floor = fixed + pages * BYTES_PER_PAGE;
    let mut first = None;
    for (number, memory) in [2 * floor, floor + (16 << 20), floor].into_iter().enumerate() {
        let output = root.path().join(number.to_string());
        let peak = peak_of(input, &output, memory, extra);
        assert!(peak <= memory, "{peak} bytes of memory with --memory {memory}, where the floor is {floor}");
        assert!(peak > 10 << 20, "it was looked at");
        let found = contents(&output);
        assert!(*first.get_or_insert_with(|| found.clone()) == found, "--memory {memory} changes the result");
    }
    summary(&root.path().join("0"))
}

/// Words in families: a page has those of its family, and one or two of its own.
fn words(page: u64, of_family: u64, family: u64) -> String {
    let mut text = String::new();
    let own = [page % of_family, (page * 7) % of_family];
    for place in 0..of_family {
        let word = if own.contains(&place) { page * 64 + place } else { family * 64 + place };
        write!(text, "w{:x} ", word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24).unwrap();
    }
    text
}

#[test]
fn many_pairs_of_short_pages_stay_below_the_ceiling() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("pages.jsonl");
    let mut out = BufWriter::new(File::create(&input).unwrap());
    let pages = 120_000;
    for page in 0..pages {
        writeln!(out, "{{\"id\":\"p{page}\",\"text\":\"{}\"}}", words(page, 24, page / 10)).unwrap();
    }
    drop(out);
    let found = check(&input, FIXED_BYTES, pages, &["--threshold", "0.3"]);
    assert!(found["pairs"].as_u64().unwrap() > 100_000, "{}", found["pairs"]);
}

#[test]
fn pages_of_html_stay_below_the_ceiling() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("pages.jsonl");
    let mut out = BufWriter::new(File::create(&input).unwrap());
    let pages = 12_000;
    for page in 0..pages {
        let text = words(page, 60, page / 5);
        let html = format!(
            "<html><body><nav><a href='/'>Home</a> <a href='/all'>All pages</a></nav><p>{text}</p><footer>Imprint and contact</footer></body></html>"
        );
        let url = format!("http://site{}.example/{page}", page % 40);
        writeln!(out, "{{\"id\":\"p{page}\",\"url\":\"{url}\",\"html\":\"{html}\"}}").unwrap();
    }
    drop(out);
    let output = root.path().join("refused");
    let mut command = lookalike();
    command
        .arg("dedup")
        .arg(&input)
        .arg("--output")
        .arg(&output)
        .args(["--memory", &(FIXED_BYTES + LEARNING_BYTES - 1).to_string()]);
    let refused = command.output().unwrap();
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("is too little"));
    let found = check(&input, FIXED_BYTES + LEARNING_BYTES, pages, &[]);
    assert!(found["pairs"].as_u64().unwrap() > 1_000, "{}", found["pairs"]);
}
