//! Captures of a URL over time.

use std::fs;

use crate::common::{lookalike, run, sentence, table};
use crate::crawl::{gzip, record, response};
use crate::outputs::ran;

#[test]
fn captures_of_a_url_are_listed_over_time_with_what_changed() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("crawl.warc.gz");
    let near = |topic: usize| {
        let page = sentence(topic, 100).replacen(" w", " changed w", 1);
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><p>{page}</p></html>").into_bytes()
    };
    let capture = |id: &str, url: &str, day: u32, digest: &str, block: Vec<u8>| {
        let fields = format!("WARC-Payload-Digest: sha1:{digest}\r\n");
        let bytes = record("response", id, url, &fields, &block);
        let text = String::from_utf8(bytes).unwrap();
        let from = text.find("WARC-Date: ").unwrap() + "WARC-Date: ".len();
        text.replacen(&text[from..from + 20], &format!("2024-05-{day:02}T00:00:00Z"), 1).into_bytes()
    };
    // Not in the order of time.
    let all = [
        capture("changed", "http://news.example/", 4, "D4", response(2, 100)),
        capture("first", "http://news.example/", 1, "D1", response(1, 100)),
        capture("same", "https://www.news.example/", 2, "D1", response(1, 100)),
        capture("near", "http://news.example/", 3, "D3", near(1)),
        capture("back", "http://news.example/", 5, "D5", response(1, 100)),
        capture("once", "http://news.example/once", 1, "D6", response(3, 100)),
        capture("other1", "http://a.example/x", 1, "D7", response(4, 100)),
        capture("other2", "http://a.example/x", 2, "D8", response(4, 100)),
    ];
    fs::write(&path, all.iter().flat_map(|record| gzip(record)).collect::<Vec<u8>>()).unwrap();
    let output = root.path().join("out");
    ran(&[&path], &output, &["--jsonl"]);
    let rows = table(&output.join("captures.parquet"));
    let seen: Vec<[&str; 5]> = rows
        .iter()
        .map(|row| ["url_key", "timestamp", "id", "change", "same_as"].map(|name| row[name].as_str()))
        .collect();
    let row = |key: &'static str, day: &'static str, id: &'static str, change: &'static str, same: &'static str| {
        [key, day, id, change, same]
    };
    let expected = [
        row("example,a)/x", "2024-05-01T00:00:00Z", "urn:uuid:other1", "first", ""),
        row("example,a)/x", "2024-05-02T00:00:00Z", "urn:uuid:other2", "same_text", "urn:uuid:other1"),
        row("example,news)/", "2024-05-01T00:00:00Z", "urn:uuid:first", "first", ""),
        row("example,news)/", "2024-05-02T00:00:00Z", "urn:uuid:same", "same_payload", "urn:uuid:first"),
        row("example,news)/", "2024-05-03T00:00:00Z", "urn:uuid:near", "near", ""),
        row("example,news)/", "2024-05-04T00:00:00Z", "urn:uuid:changed", "different", ""),
        row("example,news)/", "2024-05-05T00:00:00Z", "urn:uuid:back", "different", "urn:uuid:first"),
    ];
    assert_eq!(seen, expected);
    let pairs = table(&output.join("pairs.parquet"));
    assert_eq!(pairs.len(), 1);
    assert_eq!(rows[4]["similarity"], pairs[0]["similarity"]);
    assert_eq!(rows[4]["previous_id"], "urn:uuid:same");
    assert_eq!(fs::read_to_string(output.join("captures.jsonl")).unwrap().lines().count(), 7);
    // The table of clusters in the report says when: seconds since 1970, in front of the address.
    let report = fs::read_to_string(output.join("report.html")).unwrap();
    for (id, seconds) in [("near", 1_714_694_400), ("back", 1_714_867_200)] {
        assert!(report.contains(&format!("{id}\t{seconds}u")), "{id}");
    }
    // With a stricter threshold, the near one is another page; all else stays.
    let strict = root.path().join("strict");
    let again = run(lookalike().arg("recluster").arg(&output).args(["--threshold", "0.999", "--output"]).arg(&strict));
    assert_eq!(again.code, 0, "{}", again.stderr);
    let changes = table(&strict.join("captures.parquet")).into_iter().map(|row| row["change"].clone());
    assert_eq!(
        changes.collect::<Vec<_>>(),
        ["first", "same_text", "first", "same_payload", "different", "different", "different"]
    );
}
