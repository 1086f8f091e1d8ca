//! `lookalike index` and `lookalike plan`.

use std::fs;
use std::path::Path;

use crate::common::{Ran, lookalike, newsroom, run};

fn index(arguments: &[&str], directory: &Path) -> Ran {
    run(lookalike().arg("index").args(arguments).current_dir(directory))
}

fn plan(arguments: &[&str]) -> Ran {
    run(lookalike().arg("plan").args(arguments))
}

/// Fingerprints with known neighbours: 0 to 5 bits from the first.
const LINES: &str = "0f0f0f0f0f0f0f0f\tfirst\n0f0f0f0f0f0f0f0e\tone\n0f0f0f0f0f0f0f0c\ttwo\n0f0f0f0f0f0f0f08\tthree\n0f0f0f0f0f0f0f00\tfour\n0f0f0f0f0f0f0f0f\tagain\nffffffffffffffff\tfar\n";

#[test]
fn fingerprints_are_built_asked_added_and_joined() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("f.tsv"), LINES).unwrap();
    for codec in ["raw", "huffman", "elias-fano"] {
        let built = index(&["build", codec, "f.tsv", "--fingerprints", "hex", "--codec", codec], at);
        assert_eq!(built.code, 0, "{}", built.stderr);
        assert!(built.stderr.contains("7 rows added"), "{}", built.stderr);
        let asked = index(&["query", codec, "0f0f0f0f0f0f0f0f", "--radius", "2"], at);
        assert_eq!(
            asked.stdout,
            "0f0f0f0f0f0f0f0f\t0\tfirst\t0f0f0f0f0f0f0f0f\n0f0f0f0f0f0f0f0f\t0\tagain\t0f0f0f0f0f0f0f0f\n0f0f0f0f0f0f0f0f\t1\tone\t0f0f0f0f0f0f0f0e\n0f0f0f0f0f0f0f0f\t2\ttwo\t0f0f0f0f0f0f0f0c\n"
        );
        let json = index(&["query", codec, "0f0f0f0f0f0f0f0f", "--json", "--limit", "1"], at).stdout;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((json["count"].as_u64(), json["matches"].as_array().map(Vec::len)), (Some(5), Some(1)));
        assert_eq!(index(&["query", codec, "ffffffffffffffff", "--any"], at).stdout, "ffffffffffffffff\tyes\n");
        let none = index(&["query", codec, "00000000ffffffff", "--any"], at);
        assert_eq!((none.code, none.stdout.as_str()), (1, "00000000ffffffff\tno\n"));

        fs::write(at.join("more.txt"), "18446744073709551614 near-far\n").unwrap();
        assert_eq!(index(&["add", codec, "more.txt", "--fingerprints", "decimal"], at).code, 0);
        let joined = index(&["join", codec, "--radius", "1"], at);
        let mut lines: Vec<&str> = joined.stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.len(), 7, "{lines:?}");
        assert!(lines.contains(&"first\t0\tagain") && joined.stdout.contains("near-far"), "{lines:?}");
        let batch = index(&["batch", codec, "more.txt", "--fingerprints", "decimal", "--radius", "1"], at).stdout;
        assert_eq!(batch, "near-far\t0\tnear-far\nnear-far\t1\tfar\n");
        for tables in ["queries", "rows"] {
            let whole =
                |tables: &[&str]| index(&[&["batch", codec, "f.tsv", "--fingerprints"], tables].concat(), at).stdout;
            let found = whole(&["--tables-over", tables]);
            assert!(found.lines().count() > 20 && found == whole(&[]), "{tables}: {found}");
        }
        let beyond = ["batch", codec, "more.txt", "--fingerprints", "decimal", "--radius", "5", "--tables-over"];
        assert_eq!(index(&[&beyond[..], &["queries"]].concat(), at).code, 0);
        let refused = index(&[&beyond[..], &["rows"]].concat(), at);
        assert!(refused.code == 2 && refused.stderr.contains("--radius 5: must be at most 3"), "{}", refused.stderr);

        assert!(index(&["stats", codec], at).stdout.contains("rows           8"));
        assert_eq!(index(&["compact", codec], at).code, 0);
        let stats: serde_json::Value =
            serde_json::from_str(&index(&["stats", codec, "--json", "--plots", "plots"], at).stdout).unwrap();
        assert_eq!((stats["rows"].as_u64(), stats["segments"].as_array().map(Vec::len)), (Some(8), Some(1)));
        assert!(fs::read_to_string(at.join("plots/leading-bits.svg")).unwrap().starts_with("<svg xmlns="));
        assert!(fs::read_to_string(at.join("plots/buckets.svg")).unwrap().contains("</svg>"));
        assert_eq!(fs::read_to_string(at.join("plots/plots.csv")).unwrap().lines().count(), 1 + 64 + 128);
        assert!(index(&["verify", codec], at).stdout.contains("no damage found, 8 rows"));
    }
}

#[test]
fn pages_are_found_by_their_text_in_one_index_and_between_two() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let newsroom = newsroom();
    let newsroom = newsroom.to_string_lossy();
    let built = index(&["build", "seen", &newsroom], at);
    assert_eq!(built.code, 0, "{}", built.stderr);
    assert!(built.stderr.contains("empty or too short"), "{}", built.stderr);
    let page = format!("{newsroom}/morning-lantern/choir.html");
    let found = index(&["query", "seen", "--page", &page], at).stdout;
    assert!(found.contains("morning-lantern/choir-print.html"), "{found}");
    // Answers come in the order of the pages, each under the name that was given.
    let other = format!("{newsroom}/gazette-archive/choir.html");
    for pages in [[&page, &other], [&other, &page]] {
        let found = index(&["query", "seen", "--page", pages[0], "--page", pages[1], "--radius", "0"], at).stdout;
        let mut names: Vec<&str> = found.lines().filter_map(|line| line.split('\t').next()).collect();
        names.dedup();
        assert_eq!(names, pages.map(String::as_str), "{found}");
    }
    let one = index(&["query", "seen", "--page", &page], at).stdout;
    assert!(one.lines().count() > 0 && one.lines().all(|line| line.starts_with(&page)), "{one}");

    // The same pages under other names: every one is found again.
    let batch = index(&["batch", "seen", &newsroom, "--radius", "0"], at).stdout;
    let own = batch.lines().filter(|line| line.split('\t').next() == line.split('\t').nth(2)).count();
    let stats: serde_json::Value = serde_json::from_str(&index(&["stats", "seen", "--json"], at).stdout).unwrap();
    assert_eq!(own as u64, stats["rows"].as_u64().unwrap());
    assert_eq!(index(&["build", "other", &newsroom, "--radius", "1"], at).code, 0);
    assert_eq!(index(&["join", "seen", "other", "--radius", "0"], at).stdout.lines().count(), batch.lines().count());

    // Fingerprints that were made in another way are not compared.
    assert_eq!(index(&["build", "bigrams", &newsroom, "--ngram", "2"], at).code, 0);
    let refused = index(&["join", "seen", "bigrams"], at);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("not made in the same way"), "{}", refused.stderr);
    let refused = index(&["build", "idf", &newsroom, "--weights", "tf-idf"], at);
    assert!(refused.code == 2 && refused.stderr.contains("whole corpus"), "{}", refused.stderr);
    // What failed left nothing behind that would be in the way.
    assert_eq!(index(&["build", "idf", &newsroom], at).code, 0);
}

#[test]
fn what_cannot_be_done_is_said_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("f.tsv"), LINES).unwrap();
    fs::write(at.join("bad.tsv"), "0f0f\nnot a fingerprint\n\n12345678901234567\nff\t7\n").unwrap();
    let built = index(&["build", "i", "bad.tsv", "--fingerprints"], at);
    assert_eq!(built.code, 3);
    assert!(
        built.stderr.contains("record 2 at byte 5") && built.stderr.contains("2 records were skipped"),
        "{}",
        built.stderr
    );
    let cases: &[(&[&str], i32, &str)] = &[
        (&["build", "i", "f.tsv", "--fingerprints"], 2, "use --force to replace it"),
        (&["build", "x", "missing.tsv", "--fingerprints"], 1, "no such file"),
        (&["build", "x", "f.tsv", "--fingerprints", "--radius", "16"], 2, "--radius 16: must be between 0 and 15"),
        (
            &["build", "x", "f.tsv", "--fingerprints", "--design", "3"],
            2,
            "--design 3: radius 3 needs at least 4 blocks",
        ),
        (&["build", "x", "f.tsv", "--fingerprints", "--design", "four"], 2, "not a table design"),
        (
            &["build", "x", "f.tsv", "--fingerprints", "--codec", "huffman", "--huffman-block", "1000"],
            2,
            "--huffman-block 1000: must be a power of two from 256 to 65536",
        ),
        (&["build", "x", "f.tsv", "--fingerprints", "--huffman-block", "2048"], 2, "--codec huffman"),
        (&["build", ".", "f.tsv", "--fingerprints"], 2, "other things"),
        (&["build", "x", "f.tsv", "--fingerprints", "--ids", "number"], 2, "--ids text"),
        (&["build", "i", "missing.tsv", "--fingerprints", "--force"], 1, "no such file"),
        (&["build", "x", "f.tsv", "--fingerprints", "--memory", "1MB"], 2, "64.0 MiB"),
        (&["query", "i", "0f0f", "--radius", "4"], 2, "--radius 4: must be at most 3"),
        (&["query", "i", "xyz"], 2, "hexadecimal"),
        (&["query", "i"], 2, "FINGERPRINT"),
        (&["query", "i", "--page", "f.tsv"], 2, "ready-made"),
        (&["query", "nowhere", "0f0f"], 2, "nowhere: holds no index"),
        (&["join", "i", "--radius", "40"], 2, "between 0 and 15"),
        (&["add", "nowhere", "f.tsv"], 2, "nowhere: holds no index"),
    ];
    for (arguments, code, part) in cases {
        let ran = index(arguments, at);
        assert_eq!(ran.code, *code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{arguments:?}: {}", ran.stderr);
    }
    // A segment that was cut, changed, or is something else.
    let segment = at.join("i/segment-000001.seg");
    let whole = fs::read(&segment).unwrap();
    let mut changed = whole.clone();
    changed[20] ^= 0x40;
    let mut newer = whole.clone();
    newer[8] = 9;
    for (bytes, part) in [
        (&whole[..whole.len() / 2], "cut off"),
        (&changed[..], "checksum"),
        (&newer[..], "format 9"),
        (b"something else", "not a segment"),
    ] {
        fs::write(&segment, bytes).unwrap();
        for arguments in [&["query", "i", "0f0f"][..], &["verify", "i"]] {
            let ran = index(arguments, at);
            assert_eq!(ran.code, 1, "{part}");
            assert!(ran.stderr.contains("segment-000001.seg") && ran.stderr.contains(part), "{}", ran.stderr);
        }
        let rest = index(&["query", "i", "0f0f", "--skip-damaged"], at);
        assert!(rest.code == 3 && rest.stderr.contains("skipped: "), "{}", rest.stderr);
    }
}

#[test]
fn many_equal_rows_are_written_no_further_than_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let lines: String = (0..20_000).map(|row| if row % 2 == 0 { "ff\n" } else { "fe\n" }).collect();
    fs::write(at.join("same.txt"), lines).unwrap();
    assert_eq!(index(&["build", "same", "same.txt", "--fingerprints"], at).code, 0);
    let batch = index(&["batch", "same", "same.txt", "--fingerprints", "--limit", "2"], at);
    assert_eq!(batch.stdout.lines().count(), 40_000);
    assert!(batch.stderr.contains("20,000 rows have more than 2 matches"), "{}", batch.stderr);
    let join = index(&["join", "same", "--limit", "1"], at);
    // All but the last of those that have nothing behind them.
    assert_eq!(join.stdout.lines().count(), 19_999);
    let answer = index(&["query", "same", "ff", "--limit", "0"], at);
    assert_eq!(answer.stdout.lines().count(), 20_000);
}

#[test]
fn plans_show_the_designs_and_keep_to_the_budget() {
    let all = plan(&["--pages", "8e9", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&all.stdout).unwrap();
    let tables: Vec<u64> = all["designs"].as_array().unwrap().iter().filter_map(|row| row["tables"].as_u64()).collect();
    for known in [4, 10, 16, 20] {
        assert!(tables.contains(&known), "{tables:?}");
    }
    let chosen = |arguments: &[&str]| -> serde_json::Value {
        let ran = plan(arguments);
        let all: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
        all["designs"].as_array().unwrap().iter().find(|row| row["chosen"] == true).cloned().unwrap()
    };
    let small = chosen(&["--pages", "50e6", "--memory", "600MB", "--json"]);
    assert!(small["bytes"].as_f64().unwrap() <= 600e6);
    let quick = chosen(&["--pages", "50e6", "--latency", "10us", "--json"]);
    assert!(quick["seconds_a_query"].as_f64().unwrap() <= 10e-6);
    let dual = plan(&["--pages", "8e9", "--tables", "10"]).stdout;
    assert!(dual.contains("the longest prefix is 25 bits"), "{dual}");
    let none = plan(&["--pages", "8e9", "--memory", "1GB"]);
    assert!(none.code == 2 && none.stderr.contains("the smallest takes"), "{}", none.stderr);
    assert_eq!(plan(&["--pages", "many"]).code, 2);
}

#[test]
fn plans_answer_the_recurrence_and_its_dual() {
    let json = |arguments: &[&str]| -> serde_json::Value {
        let ran = plan(&[&["--pages", "8e9", "--json"], arguments].concat());
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr))
    };
    for (prefix, tables) in [("16", 4), ("25", 10), ("28", 16), ("31", 20), ("33", 35)] {
        let said = json(&["--prefix", prefix]);
        assert_eq!(said["fewest_tables"]["tables"], tables, "{prefix}");
        // Its row is among the designs.
        let design = &said["fewest_tables"]["design"];
        let row = said["designs"].as_array().unwrap().iter().find(|row| row["design"] == *design).unwrap();
        assert_eq!(row["tables"], tables);
        let said = plan(&["--pages", "8e9", "--prefix", prefix]).stdout;
        assert!(said.contains(&format!("at least {prefix} bits, the fewest are {tables} tables of blocks")), "{said}");
        let dual = json(&["--tables", &tables.to_string()]);
        assert!(dual["largest_prefix"].as_u64() >= prefix.parse().ok(), "{tables}");
        assert!(dual["fewest_tables"].is_null());
    }
    assert_eq!(json(&["--bits", "128", "--prefix", "32"])["fewest_tables"]["tables"], 4);
    let other = plan(&["--pages", "8e9", "--bits", "128", "--prefix", "32"]).stdout;
    assert!(other.contains("fingerprints of 128 bits") && other.contains("estimates for 64 bits"), "{other}");
    let none = plan(&["--pages", "8e9", "--prefix", "62"]).stdout;
    assert!(none.contains("the longest possible are 61 bits"), "{none}");
    for wrong in [["--bits", "31"], ["--bits", "257"], ["--prefix", "0"]] {
        assert_eq!(plan(&[&["--pages", "8e9"], &wrong[..]].concat()).code, 2, "{wrong:?}");
    }
}
