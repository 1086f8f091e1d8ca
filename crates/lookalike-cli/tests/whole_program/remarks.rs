//! What the papers mention in passing: links as features, antecedents that grow, domains by prefix, judgments that
//! contradict each other.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{Ran, dedup, fates, lookalike, run, sentence, summary, write_jsonl};

/// Writes a page of a topic with links to some targets.
fn linked(path: &Path, topic: usize, targets: impl Iterator<Item = usize>) {
    let links: String = targets.map(|target| format!("<li><a href=\"t{target}.html#top\">more</a></li>")).collect();
    fs::write(path, format!("<html><title>t</title><p>{}</p><ul>{links}</ul></html>", sentence(topic, 80))).unwrap();
}

#[test]
fn pages_are_near_duplicates_by_their_links() {
    let root = tempfile::tempdir().unwrap();
    let pages = root.path().join("pages");
    fs::create_dir(&pages).unwrap();
    linked(&pages.join("a.html"), 1, 0..20);
    linked(&pages.join("b.html"), 2, (0..20).rev().filter(|target| *target != 7));
    linked(&pages.join("c.html"), 1, 100..120);
    fs::write(pages.join("d.txt"), sentence(1, 80)).unwrap();
    let output = root.path().join("out");
    for method in ["minhash", "simhash radius=15", "minhash ngram=1"] {
        let ran = dedup(&[&pages], &output, &["--content", "links", "--method", method]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let fates = fates(&output);
        assert_eq!(fates["b.html"], ("near".to_owned(), "a.html".to_owned()), "19 of 20 links, other words: {method}");
        assert_eq!(fates["c.html"].0, "unique", "the same words, other links");
        assert_eq!(fates["d.txt"].0, "empty", "a text has no links");
    }
    // The order counts only where runs of links are asked for.
    assert_eq!(dedup(&[&pages], &output, &["--content", "links", "--ngram", "3"]).code, 0);
    assert_eq!(fates(&output)["b.html"].0, "unique");
    let refused = dedup(&[&pages], &output, &["--content", "links", "--method", "spotsigs"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("--content: links have neither sentences nor chunks"), "{}", refused.stderr);
    let shown = run(lookalike().arg("text").arg(pages.join("a.html")).args(["--content", "links", "--plain"]));
    assert_eq!(shown.stdout.lines().next(), Some("t0.html"), "{}", shown.stdout);
}

#[test]
fn antecedents_grow_while_pages_are_read() {
    let root = tempfile::tempdir().unwrap();
    // Two languages; the list has a word of the first alone.
    let text = |words: &[&str], topic: usize| {
        let filler = sentence(topic, 60);
        filler
            .split(' ')
            .enumerate()
            .map(|(at, word)| format!("{word} {} ", words[at % words.len()]))
            .collect::<String>()
    };
    let page = |id: &str, text: String| crate::common::Document {
        id: id.to_owned(),
        text,
        url: String::new(),
        score: 0,
        date: String::new(),
    };
    let pages = root.path().join("pages.jsonl");
    let rows = [
        page("a", text(&["the", "a"], 1)),
        page("b", text(&["the", "a"], 1) + "and so on"),
        page("c", text(&["der", "und"], 2)),
        page("d", text(&["der", "und"], 2) + "und so weiter"),
    ];
    write_jsonl(&pages, &rows);
    let output = root.path().join("out");
    let method = |antecedents: &str| format!("spotsigs antecedents={antecedents}");
    assert_eq!(dedup(&[&pages], &output, &["--method", &method("the:2")]).code, 0);
    let fixed = fates(&output);
    assert_eq!((&*fixed["b"].0, &*fixed["d"].0), ("near", "unique"), "no signature stands for the other language");
    let mut before = None;
    for threads in ["1", "4"] {
        let ran = dedup(&[&pages], &output, &["--method", &method("the:2,+"), "--threads", threads]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(fates(&output)["d"], ("near".to_owned(), "c".to_owned()));
        let grown = summary(&output)["antecedents"].clone();
        assert_eq!((&grown[0], grown.as_array().unwrap().len()), (&"the:2".into(), 2), "{grown}");
        assert!(before.replace(grown.clone()).is_none_or(|before| before == grown));
    }
}

fn evaluate(directory: &Path, gold: &str) -> Ran {
    let arguments = ["evaluate", "clusters", "--gold", gold, "pages.jsonl", "--method", "minhash", "--json"];
    run(lookalike().current_dir(directory).args(arguments))
}

#[test]
fn judgments_that_cannot_both_hold_are_listed() {
    let root = tempfile::tempdir().unwrap();
    let page = |id: &str, topic: usize| crate::common::Document {
        id: id.to_owned(),
        text: sentence(topic, 60),
        url: String::new(),
        score: 0,
        date: String::new(),
    };
    // b is a copy of a; e is one of d.
    let rows = [page("a", 1), page("b", 1), page("c", 3), page("d", 4), page("e", 4)];
    write_jsonl(&root.path().join("pages.jsonl"), &rows);
    fs::write(root.path().join("clusters.tsv"), "page\tcluster\na\tx\nb\ty\nc\tx\nd\tz\ne\tz\n").unwrap();
    let found = |gold: &str| -> Value {
        let ran = evaluate(root.path(), gold);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()["contradictions"].clone()
    };
    assert_eq!(found("clusters.tsv"), serde_json::json!([{"left": "a", "right": "b", "against": "same_text"}]));
    let pairs = "left\tright\tlabel\na\tc\t1\nc\td\t1\na\te\t0\nb\tc\t0\na\tb\t1\nd\te\t1\n";
    fs::write(root.path().join("pairs.tsv"), pairs).unwrap();
    let expected = serde_json::json!([
        {"left": "a", "right": "e", "against": "chain", "through": ["c"]},
        {"left": "b", "right": "c", "against": "chain"},
    ]);
    assert_eq!(found("pairs.tsv"), expected);
    let fine = "page\tcluster\na\tx\nb\tx\nc\ty\nd\tz\ne\tz\n";
    fs::write(root.path().join("fine.tsv"), fine).unwrap();
    assert_eq!(found("fine.tsv"), Value::Null);
    let mut command = lookalike();
    command.current_dir(root.path()).args([
        "evaluate",
        "clusters",
        "--gold",
        "pairs.tsv",
        "pages.jsonl",
        "-m",
        "minhash",
    ]);
    let printed = run(&mut command).stdout;
    assert!(printed.contains("2 pairs are judged to be different pages, against other evidence"), "{printed}");
    assert!(printed.contains("a  e: judged to be the same through c"), "{printed}");
    assert!(printed.contains("b  c: their copies are judged to be the same"), "{printed}");
}
