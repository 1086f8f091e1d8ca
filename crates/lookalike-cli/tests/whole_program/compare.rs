//! `lookalike compare`: files, ids of a result, URLs in a corpus.

use std::fs;

use crate::common::{Document, dedup, lookalike, newsroom, run, write_jsonl};

#[test]
fn two_files_by_every_method() {
    let (a, b) = (newsroom().join("daily-ledger/bakery.html"), newsroom().join("harbour-herald/bakery.html"));
    let ran = run(lookalike().arg("compare").args([&a, &b]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for method in ["minhash", "shingle", "projection", "combined", "routed", "simhash", "bloom", "spotsigs"] {
        assert!(ran.stdout.lines().any(|line| line.starts_with(method)), "{}", ran.stdout);
    }
    // Not a terminal: marks instead of colours.
    assert!(ran.stdout.contains("{+Harbour Herald") && ran.stdout.contains("[-Daily Ledger"), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\x1b'));

    let json: serde_json::Value =
        serde_json::from_str(&run(lookalike().arg("compare").args([&a, &b]).arg("--json")).stdout).unwrap();
    assert_eq!(json["methods"].as_array().unwrap().len(), 8);
    assert_eq!(json["methods"][0]["near_duplicate"], true);
    assert!(json["words"]["shared"].as_u64().unwrap() > 100);
    assert_eq!(json["identical"], false);
    assert_eq!(json["left"]["language"], "English");

    let root = tempfile::tempdir().unwrap();
    let html = root.path().join("compared.html");
    assert_eq!(run(lookalike().arg("compare").args([&a, &b]).arg("--html").arg(&html)).code, 0);
    let page = fs::read_to_string(html).unwrap();
    assert!(page.contains("class=\"row same\"") && page.contains("class=\"row differs\"") && page.contains("<ins>"));

    let same: serde_json::Value =
        serde_json::from_str(&run(lookalike().arg("compare").args([&a, &a]).arg("--json")).stdout).unwrap();
    assert_eq!(same["identical"], true);
    assert!(same["methods"].as_array().unwrap().iter().all(|word| word["near_duplicate"] == true), "{same}");
}

#[test]
fn pages_of_a_result_and_of_a_corpus() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("pages.jsonl");
    let page = |id: &str, url: &str, text: &str| Document {
        id: id.to_owned(),
        text: text.to_owned(),
        url: url.to_owned(),
        score: 0,
        date: String::new(),
    };
    let markup = "<script>alert(1)</script> one two three four five six seven eight";
    write_jsonl(&input, &[page("a", "http://a.example/", markup), page("b", "http://b.example/", "one two <b>")]);
    let output = root.path().join("out");
    assert_eq!(dedup(&[&input], &output, &[]).code, 0);
    for (left, right, within) in
        [("a", "b", &output), ("http://a.example/", "http://b.example/", &output), ("a", "http://b.example/", &input)]
    {
        let ran = run(lookalike().args(["compare", left, right, "--json", "--in"]).arg(within));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&json["left"]["url"], &json["same_site"]), (&"http://a.example/".into(), &false.into()));
    }
    let html = root.path().join("page.html");
    assert_eq!(run(lookalike().args(["compare", "a", "b", "--in"]).arg(&input).arg("--html").arg(&html)).code, 0);
    assert!(!fs::read_to_string(&html).unwrap().contains("<script>alert"), "what pages say is shown, not run");
}

#[test]
fn what_is_not_there_is_said_so() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("pages.jsonl");
    fs::write(&input, "{\"id\":\"a\",\"text\":\"x\"}\n").unwrap();
    let text = input.to_str().unwrap();
    for (arguments, word) in [
        (&["compare", "nothing.html", "x.html"][..], "--in"),
        (&["compare", text, text], "many pages"),
        (&["compare", "a", "zzz", "--in", text], "'zzz'"),
    ] {
        let ran = run(lookalike().args(arguments));
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(word), "{arguments:?}: {}", ran.stderr);
    }
}
