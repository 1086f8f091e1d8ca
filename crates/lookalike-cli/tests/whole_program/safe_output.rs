//! Nothing of the user's is lost or mixed, and what was named first stays.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{
    contents, dedup, dedup_once, fates, lookalike, newsroom, run, sentence, summary, table, write_jsonl,
};

fn page(id: &str, topic: usize) -> crate::common::Document {
    let text = sentence(topic, 60);
    crate::common::Document { id: id.to_owned(), text, url: String::new(), score: 0, date: String::new() }
}

#[test]
fn a_result_of_other_inputs_or_settings_is_replaced_only_on_request() {
    let root = tempfile::tempdir().unwrap();
    let (one, two, output) = (root.path().join("one.jsonl"), root.path().join("two.jsonl"), root.path().join("out"));
    write_jsonl(&one, &[page("a", 1), page("b", 1), page("c", 2)]);
    write_jsonl(&two, &[page("d", 3)]);
    assert_eq!(dedup_once(&[&one], &output, &[]).code, 0);
    let first = contents(&output);

    for (inputs, extra) in
        [(vec![&*two], vec![]), (vec![&*one], vec!["--threshold", "0.9"]), (vec![&*one, &*two], vec![])]
    {
        let refused = dedup_once(&inputs, &output, &extra);
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(refused.stderr.contains("other inputs or settings") && refused.stderr.contains("--replace"));
        assert!(contents(&output) == first, "the result is as it was");
    }
    // The same command again is no danger, whatever the threads.
    let again = dedup_once(&[&one], &output, &["--threads", "1"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(contents(&output) == first);
    // Other words in the file are another input.
    write_jsonl(&one, &[page("a", 1), page("b", 1), page("c", 2), page("e", 4)]);
    assert_eq!(dedup_once(&[&one], &output, &[]).code, 1);
    assert_eq!(dedup_once(&[&one], &output, &["--replace"]).code, 0);
    assert_eq!(summary(&output)["pages"], 4);
    // A stream cannot be compared with what was read before.
    let mut piped = lookalike();
    let piped = piped.args(["dedup", "-", "--format", "jsonl", "--output"]).arg(&output);
    assert_eq!(run(piped.stdin(fs::File::open(&one).unwrap())).code, 1);

    let strict = root.path().join("strict");
    let recluster = |extra: &[&str]| {
        run(lookalike()
            .arg("recluster")
            .arg(&output)
            .arg("--output")
            .arg(&strict)
            .args(["--threshold", "0.95"])
            .args(extra))
    };
    assert_eq!(recluster(&[]).code, 0);
    assert_eq!(recluster(&[]).code, 0, "the same once more");
    let refused = recluster(&["--keep", "longest"]);
    assert_eq!((refused.code, refused.stderr.contains("--replace")), (1, true), "{}", refused.stderr);
    assert_eq!(recluster(&["--keep", "longest", "--replace"]).code, 0);
    // Another result that is clustered in the same way.
    assert_eq!(dedup_once(&[&two], &output, &["--replace"]).code, 0);
    assert_eq!(recluster(&["--keep", "longest"]).code, 1);
}

#[test]
fn results_among_the_inputs_are_not_read() {
    let root = tempfile::tempdir().unwrap();
    write_jsonl(&root.path().join("pages.jsonl"), &[page("a", 1), page("b", 1), page("c", 2)]);
    let in_root = |arguments: &[&str]| run(lookalike().current_dir(root.path()).arg("dedup").args(arguments));
    assert_eq!(in_root(&[".", "--output", "first"]).code, 0);
    let second = in_root(&[".", "--output", "second"]);
    assert_eq!(second.code, 0, "{}", second.stderr);
    let second = summary(&root.path().join("second"));
    assert_eq!((&second["pages"], &second["results_not_read"][0]), (&3.into(), &"first".into()));
    // By its name it is read: what it kept.
    assert_eq!(in_root(&["first", "--output", "third"]).code, 0);
    assert_eq!(summary(&root.path().join("third"))["pages"], 2);
    let only = in_root(&["[st]*", "--output", "fourth"]);
    assert!(only.code == 1 && only.stderr.contains("only results of earlier runs"), "{}", only.stderr);
}

#[test]
fn groups_that_no_page_is_in_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let pages = root.path().join("pages.jsonl");
    write_jsonl(&pages, &[page("a", 1), page("b", 1)]);
    let text = fs::read_to_string(&pages).unwrap().replace("\"url\":", "\"link\":");
    fs::write(&pages, text).unwrap();
    for extra in [&["--within", "site"][..], &["--within", "site", "--exact-only"]] {
        let refused = dedup(&[&pages], &root.path().join("out"), extra);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains("--within site: no page has a URL"), "{}", refused.stderr);
    }
    let named = dedup(&[&pages], &root.path().join("out"), &["--within", "site", "--url-field", "id"]);
    assert_eq!(named.code, 0, "{}", named.stderr);
}

#[test]
fn the_page_that_was_named_first_stays() {
    let root = tempfile::tempdir().unwrap();
    let [gold, web, old] = ["gold/x.jsonl", "web/a.jsonl", "web/old/b.jsonl"].map(|name| root.path().join(name));
    for (path, id) in [(&gold, "gold"), (&web, "web"), (&old, "old")] {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_jsonl(path, &[page(id, 1), page(&format!("{id}-only"), id.len() * 10 + usize::from(id == "web"))]);
    }
    let output = root.path().join("out");
    let kept = |inputs: &[&Path], extra: &[&str]| {
        let ran = dedup(inputs, &output, extra);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        fates(&output)["web"].1.clone()
    };
    assert_eq!(kept(&[&web, &gold, &old], &[]), "web");
    assert_eq!(kept(&[&old, &gold, &web], &[]), "old");
    assert_eq!(kept(&[&gold, &web, &old, &gold], &[]), "gold");
    // The files of a directory count by name, wherever it stands.
    assert_eq!(kept(&[root.path()], &[]), "gold");
    let rows = table(&output.join("pages.parquet"));
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str()).collect();
    assert_eq!(ids, ["gold", "gold-only", "web", "web-only", "old", "old-only"]);

    // Preferred sources come before the order, before any policy, and before the order of matching.
    let prefer = |patterns: &[&str], extra: &[&str]| {
        let flags: Vec<&str> =
            patterns.iter().flat_map(|pattern| ["--prefer", pattern]).chain(extra.iter().copied()).collect();
        kept(&[root.path()], &flags)
    };
    assert_eq!(prefer(&["web/*"], &[]), "web");
    assert_eq!(prefer(&["web/old/**"], &[]), "old");
    assert_eq!(prefer(&["**/b.jsonl", "web/**"], &["--keep", "longest"]), "old");
    assert_eq!(prefer(&["**/old/*"], &["--method", "spotsigs antecedents=w3,w5,w7 matching=incremental"]), "old");
    let refused = dedup(&[root.path()], &output, &["--prefer", "golden/**"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("--prefer golden/**: matches none of the input files, such as"),
        "{}",
        refused.stderr
    );
    assert_eq!(dedup(&[root.path()], &output, &["--prefer", "a["]).code, 2);
}

#[test]
fn preference_is_part_of_what_decides() {
    let root = tempfile::tempdir().unwrap();
    let hashes: BTreeMap<&str, String> = [("", ""), ("--prefer", "daily-ledger/**")]
        .map(|(flag, value)| {
            let output = root.path().join(format!("out{flag}"));
            let extra: Vec<&str> = [flag, value].into_iter().filter(|text| !text.is_empty()).collect();
            assert_eq!(dedup(&[&newsroom()], &output, &extra).code, 0);
            (flag, summary(&output)["config_hash"].as_str().unwrap().to_owned())
        })
        .into();
    assert_ne!(hashes[""], hashes["--prefer"]);
}
