//! The page for people: its numbers are those of the result.

use std::fs;

use crate::common::{assert_in_order, dedup};

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
    // Bars of 35 for each page or pair.
    assert_in_order(
        &report,
        &[
            "<h3>From pages to pairs</h3>",
            "width=\"280.0\" height=\"19.0\" rx=\"1.5\"><title>pages read: 8</title>",
            "width=\"245.0\" height=\"19.0\" rx=\"1.5\"><title>different pages: 7</title>",
            "width=\"210.0\" height=\"19.0\" rx=\"1.5\"><title>pages in candidate pairs: 6</title>",
            "width=\"105.0\" height=\"19.0\" rx=\"1.5\"><title>pairs compared exactly: 3</title>",
            "width=\"70.0\" height=\"19.0\" rx=\"1.5\"><title>pairs accepted: 2</title>",
            "width=\"175.0\" height=\"19.0\" rx=\"1.5\"><title>pages kept: 5</title>",
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
            "L300.0 75.4L",
            "0.9906 at 0.7</text>",
        ],
    );
    assert_eq!(report.matches("pair accepted").count() + report.matches("pair rejected").count(), 3);
    assert_in_order(
        &report,
        &[
            "<h2>Largest clusters</h2>",
            "3 pages</span>",
            "<span class=\"id\">a</span></span><span class=\"pill\">weakest 0.901</span>",
            "<td class=\"number\">0.901</td><td class=\"number\">0.901</td><td>near</td>",
            "<span class=\"id\">a-near</span>",
            "<td class=\"number\">1.000</td><td class=\"number\">1.000</td><td>exact</td>",
            "<span class=\"id\">a-copy</span>",
            "2 pages</span>",
            "<span class=\"id\">d</span></span><span class=\"pill\">weakest 0.811</span>",
            "<td class=\"number\">0.811</td><td class=\"number\">0.811</td><td>near</td>",
            "<span class=\"id\">d-near</span>",
            "<h2>Just above the threshold: accepted</h2>",
            "<span class=\"id\">d</span><br>90 % of it is in the other page",
            "<span class=\"id\">d-near</span><br>90 % of it is in the other page",
            "similarity <b>0.8113</b>, of whole pages 0.8113,",
            "<del>d30</del> <ins>other30</ins>",
            "<span class=\"id\">a</span><br>95 % of it is in the other page",
            "<span class=\"id\">a-near</span><br>95 % of it is in the other page",
            "similarity <b>0.9010</b>, of whole pages 0.9010,",
            "<del>a50</del> <ins>other50</ins>",
            "<h2>Just below the threshold: rejected</h2>",
            "<span class=\"id\">b</span><br>100 % of it is in the other page",
            "<span class=\"id\">b-long</span><br>66 % of it is in the other page",
            "similarity <b>0.6575</b>, of whole pages 0.6575,",
            "<h2>Skipped records</h2>",
            "<tr><td>bad_json</td><td class=\"number\">1</td></tr>",
        ],
    );
}
