//! `lookalike recluster --decisions`: what people decided prevails, and nothing else changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{contents, dedup, newsroom, ours, sentence, summary, table};

/// Pages that are alike: five of one story, three of another, two copies, one alone.
fn pages(directory: &Path) {
    let words = |topic: usize| sentence(topic, 120).split(' ').map(str::to_owned).collect::<Vec<_>>();
    let changed = |topic: usize, at: usize| {
        let mut words = words(topic);
        words[at] = format!("changed{at}");
        words.join(" ")
    };
    let mut lines = String::new();
    let mut page = |id: &str, text: String| lines.push_str(&format!("{{\"id\": \"{id}\", \"text\": \"{text}\"}}\n"));
    for (number, id) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        page(id, changed(1, 7 * number));
    }
    for (number, id) in ["x", "y", "z"].into_iter().enumerate() {
        page(id, changed(2, 11 * number));
    }
    page("one", words(3).join(" "));
    page("same", words(3).join(" "));
    page("alone", words(4).join(" "));
    fs::write(directory.join("pages.jsonl"), lines).unwrap();
}

fn kept(output: &Path) -> BTreeMap<String, String> {
    table(&output.join("clusters.parquet")).into_iter().map(|row| (row["id"].clone(), row["kept_id"].clone())).collect()
}

#[test]
fn recluster_follows_decisions_and_leaves_all_else_alone() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    pages(root.path());
    assert_eq!(dedup(&[&at("pages.jsonl")], &at("out"), &["-q"]).code, 0);
    let before = kept(&at("out"));
    assert_eq!((&*before["e"], &*before["z"], &*before["same"]), ("a", "x", "one"));
    let missing = ours(&["recluster", "out", "--decisions"], root.path());
    assert!(missing.code == 1 && missing.stderr.contains("there are no decisions yet"), "{}", missing.stderr);

    let decisions = r#"{"page": "c", "keep": true}
{"page": "d", "apart_from": "a", "group": "d"}
{"page": "e", "apart_from": "a", "group": "d"}
{"page": "x", "apart_from": "y"}
{"page": "same", "apart_from": "one"}
{"page": "gone", "keep": true}
{"page": "alone", "apart_from": "gone"}
"#;
    fs::write(at("out/decisions.jsonl"), decisions).unwrap();
    let ran = ours(&["recluster", "out", "--decisions", "--output", "decided"], root.path());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("by 7 decisions, 2 about pages that are not here"), "{}", ran.stderr);
    let expected = [
        ("a", "c"),
        ("b", "c"),
        ("c", "c"),
        ("d", "d"),
        ("e", "d"),
        ("x", "x"),
        ("y", "y"),
        ("z", "y"),
        ("one", "one"),
        ("same", "same"),
        ("alone", "alone"),
    ];
    let after = kept(&at("decided"));
    assert_eq!(after, expected.map(|(id, kept)| (id.to_owned(), kept.to_owned())).into());
    assert_eq!(summary(&at("decided"))["decisions"]["changed_pages"], 8);
    // Each similarity is that of the two pages, which compare says too.
    for row in table(&at("decided/clusters.parquet")).iter().filter(|row| row["kept"] == "false") {
        let compared = ours(&["compare", &row["id"], &row["kept_id"], "--in", "out", "--json"], root.path());
        let compared: serde_json::Value = serde_json::from_str(&compared.stdout).unwrap();
        let similarity = compared["methods"][0]["similarity"].as_f64().unwrap();
        assert!((row["similarity"].parse::<f64>().unwrap() - similarity).abs() < 1e-12, "{row:?}");
        assert_eq!(row["kind"], "near");
    }
    let ids: Vec<String> = fs::read_to_string(at("decided/kept/pages.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids, ["c", "d", "x", "y", "one", "same", "alone"]);
    // Again, and from a file of another name: the same bytes. Other decisions are another result.
    fs::rename(at("out/decisions.jsonl"), at("mine.jsonl")).unwrap();
    let once = contents(&at("decided"));
    assert_eq!(ours(&["recluster", "out", "--decisions=mine.jsonl", "-o", "decided", "-q"], root.path()).code, 0);
    assert_eq!(contents(&at("decided")), once);
    fs::write(at("mine.jsonl"), "{\"page\": \"b\", \"keep\": true}\n").unwrap();
    assert_eq!(ours(&["recluster", "out", "--decisions=mine.jsonl", "-o", "decided", "-q"], root.path()).code, 1);
    let explained = ours(&["explain", "decided", "d"], root.path());
    assert!(explained.stdout.contains("8 pages were put elsewhere by people's decisions"), "{}", explained.stdout);
    fs::write(at("mine.jsonl"), "{\"page\": \"b\"}\n").unwrap();
    let empty = ours(&["recluster", "out", "--decisions=mine.jsonl", "-o", "none"], root.path());
    assert!(empty.code == 1 && empty.stderr.contains("nothing is decided about 'b'"), "{}", empty.stderr);
    // Without decisions, everything is as it was.
    fs::write(at("mine.jsonl"), "").unwrap();
    assert_eq!(ours(&["recluster", "out", "--decisions=mine.jsonl", "-o", "same", "-q"], root.path()).code, 0);
    assert_eq!(kept(&at("same")), before);
}

#[test]
fn a_line_that_is_not_a_decision_is_named() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(dedup(&[&newsroom()], &root.path().join("out"), &["-q"]).code, 0);
    fs::write(
        root.path().join("bad.jsonl"),
        "{\"page\": \"a\", \"keep\": true}\n\n{\"page\": \"b\", \"kept\": true}\n",
    )
    .unwrap();
    let ran = ours(&["recluster", "out", "--decisions=bad.jsonl"], root.path());
    assert!(ran.code != 0 && ran.stderr.contains("bad.jsonl") && ran.stderr.contains("3"), "{}", ran.stderr);
    assert!(ran.stderr.contains("is not a decision: unknown field 'kept'"), "{}", ran.stderr);
}
