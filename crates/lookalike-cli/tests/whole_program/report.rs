//! The page for people: its numbers are those of the result.

use std::fs;

use crate::common::{assert_in_order, dedup, lookalike, run};

#[test]
fn the_report_shows_the_numbers_of_the_result() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("docs.jsonl"), root.path().join("out"));
    let words = |name: &str, count: usize| (0..count).map(|n| format!("{name}{n}")).collect::<Vec<_>>();
    let changed = |name: &str, places: &[usize]| {
        let mut words = words(name, 100);
        places.iter().for_each(|&place| words[place] = format!("other{place}"));
        words
    };
    // 100 words have 96 5-grams, of which a changed word takes 5; a page that is half as long again has 146.
    let lines: String = [
        ("a", words("a", 100)),
        ("a-copy", words("A", 100)),
        ("a-near", changed("a", &[50])),
        ("b", words("b", 100)),
        ("b-long", [words("b", 100), words("x", 50)].concat()),
        ("c", words("c", 100)),
        ("d", words("d", 100)),
        ("d-near", changed("d", &[30, 70])),
    ]
    .iter()
    .map(|(id, words)| serde_json::json!({"id": id, "text": words.join(" ")}).to_string() + "\n")
    .collect();
    fs::write(&input, lines + "not JSON\n").unwrap();
    assert_eq!(dedup(&[&input], &output, &[]).code, 3);
    let report = fs::read_to_string(output.join("report.html")).unwrap();
    assert_in_order(
        &report,
        &[
            "<h1>3 of 8 pages are duplicates of a page that is kept</h1>",
            "Method <b>minhash</b>: exact Jaccard similarity of word 5-grams ≥ 0.7",
            "<b>8</b>pages<small>in 1 file</small>",
            "<b>5</b>kept<small>62.5 % of the pages</small>",
            "<b>1</b>exact copy dropped<small>12.5 % of the pages</small>",
            "<b>2</b>near-duplicates dropped<small>25.0 % of the pages</small>",
            "<b>2</b>clusters<small>largest: 3 pages</small>",
            "<b>1</b>record skipped<small>see below</small>",
        ],
    );
    // The longest bar of each kind is 369.6 long: pages are compared with pages, pairs with pairs.
    assert_in_order(
        &report,
        &[
            "<h3>Pages</h3>",
            "width=\"369.6\" height=\"17.0\" rx=\"1.5\"><title>read: 8</title>",
            "width=\"323.4\" height=\"17.0\" rx=\"1.5\"><title>different texts: 7</title>",
            "width=\"277.2\" height=\"17.0\" rx=\"1.5\"><title>in pairs worth comparing: 6</title>",
            "width=\"231.0\" height=\"17.0\" rx=\"1.5\"><title>kept: 5</title>",
            "Pairs</h3>",
            "width=\"369.6\" height=\"17.0\" rx=\"1.5\"><title>compared exactly: 3</title>",
            "width=\"246.4\" height=\"17.0\" rx=\"1.5\"><title>accepted: 2</title>",
            "<h3>Clusters by size</h3>",
            "<title>1 cluster of 2 pages</title>",
            "<title>1 cluster of 3 pages</title>",
            "<title>0 clusters of 4 pages</title>",
        ],
    );
    // 96/146, 86/106 and 91/101; 1 - (1 - s⁴)¹⁷ is 0.6662 at 0.5 and 0.9906 at 0.7.
    assert_in_order(
        &report,
        &[
            "<h3>Similarity of the compared pairs</h3>",
            "<title>1 pair rejected, 0.650 to 0.660</title>",
            "<title>1 pair accepted, 0.810 to 0.820</title>",
            "<title>1 pair accepted, 0.900 to 0.910</title>",
            "threshold 0.7</text>",
            "17 bands of 4 min-values. Of the pairs exactly at the threshold, 99.06 % are expected to be found",
            "L300.0 78.1L",
            "0.9906 at 0.7</text>",
        ],
    );
    // Each once for wide screens and once for narrow ones.
    assert_eq!(report.matches("pair accepted").count() + report.matches("pair rejected").count(), 2 * 3);
    assert_in_order(
        &report,
        &[
            "<h2>Just above the threshold: accepted</h2>",
            "<bdi class=\"id\">d</bdi>",
            "90 % of it is in the other page",
            "<bdi class=\"id\">d-near</bdi>",
            "90 % of it is in the other page",
            "similarity <b>0.8113</b>, of whole pages 0.8113,",
            "<del>d30</del> <ins>other30</ins>",
            "<bdi class=\"id\">a</bdi>",
            "95 % of it is in the other page",
            "<bdi class=\"id\">a-near</bdi>",
            "95 % of it is in the other page",
            "similarity <b>0.9010</b>, of whole pages 0.9010,",
            "<del>a50</del> <ins>other50</ins>",
            "<h2>Just below the threshold: rejected</h2>",
            "<bdi class=\"id\">b</bdi>",
            "100 % of it is in the other page",
            "<bdi class=\"id\">b-long</bdi>",
            "66 % of it is in the other page",
            "similarity <b>0.6575</b>, of whole pages 0.6575,",
            "<h2>Skipped records</h2>",
            "<tr><td>bad_json</td><td class=\"number\">1</td></tr>",
        ],
    );
    // The table: for each cluster its numbers and the kept page, then what was dropped, with the number of the differences.
    let words = |name: &str| (0..14).map(|n| format!("{name}{n}")).collect::<Vec<_>>().join(" ");
    let (_, index) = report.split_once("<script type=\"text/plain\" id=\"index\"").unwrap();
    let (index, _) = index.split_once('>').unwrap().1.split_once("</script>").unwrap();
    let lines: Vec<&str> = index.lines().collect();
    assert_eq!(lines[..3], [input.to_str().unwrap(), "../docs.jsonl", ""]);
    let a = format!(
        "3\t1\t9010\ta\t#0:1\t{} …\t1:-near\t#0:3\t=\t9010\t9010\tn\t0\t1:-copy\t#0:2\t\t10000\t10000\te\t",
        words("a")
    );
    let d = format!("2\t1\t8113\td\t#0:7\t{} …\t1:-near\t#0:8\t=\t8113\t8113\tn\t1", words("d"));
    assert_eq!(lines[3..], [a, d]);
    assert_in_order(
        &report,
        &["<template id=\"d0\">", "<del>a50</del> <ins>other50</ins>", "<template id=\"d1\">", "<del>d30</del>"],
    );
}

#[test]
fn no_page_of_ours_loads_or_runs_anything_but_itself() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    let text = |word: &str| (0..100).map(|n| format!("{word}{n} ")).collect::<String>();
    let line = |id: &str, text: &str| {
        serde_json::json!({"id": id, "url": "javascript:alert(1)", "title": "</script><script>alert(1)</script>", "text": text})
            .to_string()
            + "\n"
    };
    let lines =
        line("<b>", &text("a")) + &line("near", &(text("a") + "<script>alert(1)</script>")) + &line("c", &text("c"));
    fs::write(at.join("pages.jsonl"), lines).unwrap();
    fs::write(at.join("gold.tsv"), "page\tcluster\n<b>\tone\nnear\tone\nc\ttwo\n").unwrap();
    fs::write(at.join("qrels.txt"), "1 0 near 1\n").unwrap();
    let list = r#"{"results": [{"title": "<script>", "text": "a b c"}, {"title": "<script>", "text": "a b c"}]}"#;
    fs::write(at.join("list.json"), list).unwrap();
    let commands: [&[&str]; 8] = [
        &["dedup", "pages.jsonl", "--output", "out"],
        &["compare", "<b>", "near", "--in", "out", "--html", "compared.html"],
        &["text", "near", "--in", "out", "--html", "text.html"],
        &["evaluate", "audit", "out", "--page", "audit.html"],
        &["evaluate", "clusters", "--gold", "gold.tsv", "pages.jsonl", "--report", "evaluated.html"],
        &["evaluate", "page", "near", "pages.jsonl", "--report", "one.html"],
        &["transfer", "--qrels", "qrels.txt", "--from", "pages.jsonl", "--to", "pages.jsonl", "--output", "carried"],
        &["refine", "list.json", "--report", "lists.html"],
    ];
    for command in commands {
        let ran = run(lookalike().args(command).current_dir(at));
        assert_eq!(ran.code, 0, "{command:?}: {}", ran.stderr);
    }
    let pages = ["out/report.html", "compared.html", "text.html", "audit.html", "evaluated.html", "one.html"];
    for name in pages.into_iter().chain(["carried/report.html", "lists.html"]) {
        let page = fs::read_to_string(at.join(name)).unwrap();
        let policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-";
        assert!(page.contains(policy) && !page.contains("unsafe-"), "{name}");
        // Only our own script, and data that is not run.
        assert!(!page.contains("<script>alert") && !page.contains("href=\"javascript"), "{name}");
        for foreign in ["<link", "<iframe", "<img", "src=", "@import", "url(", " style="] {
            assert!(!page.contains(foreign), "{name}: {foreign}");
        }
    }
}
