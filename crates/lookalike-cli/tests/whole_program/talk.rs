//! What commands say where nobody looks at a terminal: summaries on standard error, documents on standard output, the log.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::common::{dedup, document, documents, newsroom, ours, summary};

/// Two near-duplicates and a picture, in a directory.
fn small_pages(directory: &Path) {
    let story = crate::common::sentence(1, 200);
    fs::create_dir(directory.join("pages")).unwrap();
    fs::write(directory.join("pages/a.txt"), &story).unwrap();
    fs::write(directory.join("pages/b.txt"), format!("{story} Photo")).unwrap();
    fs::write(directory.join("pages/logo.png"), b"\x89PNG\r\n\x1a\n").unwrap();
}

#[test]
fn the_summary_is_on_standard_error_without_a_terminal_and_quiet_silences_it() {
    let root = tempfile::tempdir().unwrap();
    small_pages(root.path());
    let ran = ours(&["dedup", "pages", "--output", "out"], root.path());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    for line in ["  pages                             2", "  near-duplicates                   1   50.0 %"] {
        assert!(ran.stderr.lines().any(|found| found == line), "{line} in:\n{}", ran.stderr);
    }
    assert!(ran.stderr.contains("  ignored files                     1  not pages"), "{}", ran.stderr);
    assert!(!ran.stderr.contains('\x1b') && !ran.stderr.contains('\r'), "no bars: {:?}", ran.stderr);
    let again = ours(&["recluster", "out", "--threshold", "0.9", "--output", "strict"], root.path());
    assert!(again.stderr.contains("near-duplicates"), "{}", again.stderr);
    let quiet = ours(&["dedup", "pages", "--output", "quiet", "--quiet"], root.path());
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
}

#[test]
fn a_run_prints_its_summary_and_figures_as_one_document() {
    let root = tempfile::tempdir().unwrap();
    let output = root.path().join("out");
    let ran = dedup(&[&newsroom()], &output, &["--json", "--quiet"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let mut printed = document(&ran);
    let run_figures = printed["run"].take();
    assert!(run_figures["seconds"].as_f64().unwrap() > 0.0 && run_figures["stages"].is_array(), "{run_figures}");
    assert_eq!(printed["output"], output.to_str().unwrap());
    let fields = printed.as_object_mut().unwrap();
    fields.retain(|name, _| name != "run" && name != "output");
    assert_eq!(printed, summary(&output), "everything else is summary.json");

    let planned = document(&dedup(&[&newsroom()], &root.path().join("none"), &["--json", "--dry-run"]));
    assert_eq!((&planned["pages"], planned["sources"].as_array().unwrap().len()), (&78.into(), 78));
    let again = ours(&["recluster", "out", "--threshold", "0.95", "--json", "--output", "strict"], root.path());
    assert!(document(&again)["kept"].as_u64() > printed["kept"].as_u64(), "{}", again.stdout);
}

#[test]
fn every_command_that_does_something_can_print_a_document() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    small_pages(at);
    fs::write(at.join("qrels.txt"), "1 0 a.txt 1\n").unwrap();
    assert_eq!(ours(&["dedup", "pages", "--output", "out"], at).code, 0);
    for (arguments, key, expected) in [
        (&["index", "build", "seen", "pages"][..], "rows", 2),
        (&["index", "add", "seen", "pages/a.txt"], "added", 1),
        (&["index", "join", "seen", "--output", "pairs.jsonl"], "limited", 0),
        (&["index", "verify", "seen"], "rows", 3),
        (&["index", "compact", "seen"], "segments", 1),
        (&["index", "stats", "seen"], "rows", 3),
        (&["evaluate", "audit", "out"], "pairs", 1),
        (
            &["transfer", "--qrels", "qrels.txt", "--from", "pages", "--to", "pages", "--output", "carried"],
            "judgments",
            1,
        ),
    ] {
        let ran = ours(&[arguments, &["--json"]].concat(), at);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        assert_eq!(document(&ran)[key], expected, "{arguments:?}: {}", ran.stdout);
    }
}

#[test]
fn the_log_has_times_and_counts_of_every_stage() {
    let root = tempfile::tempdir().unwrap();
    small_pages(root.path());
    fs::write(root.path().join("pages/bad.jsonl"), "{\n").unwrap();
    let ran = ours(&["dedup", "pages", "--output", "out", "--log", "log"], root.path());
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let log = fs::read_to_string(root.path().join("log")).unwrap();
    let mut events = Vec::new();
    for line in log.lines() {
        let (time, event) = line.split_once(' ').unwrap();
        // As in 2026-11-18T01:31:05.123Z.
        let form: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(form, "0000-00-00T00:00:00.000Z", "{log}");
        events.push(event);
    }
    assert!(events[0].starts_with("read started bytes="), "{log}");
    let finished = |stage: &str, counts: &str| {
        assert!(
            events.iter().any(|event| event.starts_with(&format!("{stage} finished{counts} "))),
            "{stage} in {log}"
        );
    };
    finished("read", " pages=2");
    ["candidates", "verify", "cluster", "write"].iter().for_each(|stage| finished(stage, ""));
    assert!(events.iter().any(|event| event.starts_with("skipped bad_json: ")), "{log}");
    let last = "done pages=2 kept=1 dropped=1 clusters=1 pairs=1 ignored_files=1 skipped=1";
    assert_eq!(events.last(), Some(&last));
}

#[test]
fn a_dry_run_counts_the_time_that_xz_and_bzip2_take() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let lines: String = documents().iter().map(crate::common::Document::json).collect();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 6);
    xz.write_all(lines.as_bytes()).unwrap();
    fs::write(at("docs.jsonl.xz"), xz.finish().unwrap()).unwrap();
    fs::write(at("docs.jsonl"), &lines).unwrap();
    let planned = |name: &str, extra: &[&str]| -> (f64, f64) {
        let found = document(&dedup(&[&at(name)], &at("out"), &[&["--json", "--dry-run"], extra].concat()));
        (found["packing_seconds"].as_f64().unwrap(), found["seconds"].as_f64().unwrap())
    };
    let (packing, seconds) = planned("docs.jsonl.xz", &[]);
    assert!(packing > 0.0 && seconds > packing, "{packing} {seconds}");
    assert_eq!(planned("docs.jsonl.xz", &["--annotate"]).0, 2.0 * packing);
    assert_eq!(planned("docs.jsonl.xz", &["--removed"]).0, packing, "kept and removed records are all");
    for extra in [&["--kept-compression", "zstd"][..], &["--no-kept"], &["--kept-format", "parquet"]] {
        assert_eq!(planned("docs.jsonl.xz", extra).0, 0.0, "{extra:?}");
    }
    assert_eq!(planned("docs.jsonl", &[]).0, 0.0);
    let said = dedup(&[&at("docs.jsonl.xz")], &at("out"), &["--dry-run"]).stdout;
    assert!(said.contains("of that: xz, on one thread, and bzip2; --kept-compression zstd is faster"), "{said}");
}
