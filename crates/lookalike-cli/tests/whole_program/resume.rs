//! Runs that failed go on, and large files are read in several places at once, with the same bytes in
//! the end.

use std::fs;
use std::path::Path;

use crate::common::{contents, dedup, dedup_once, documents, sentence, summary, table, write_jsonl};
use crate::crawl::{gzip, record};

/// A page that hardly compresses, about a topic.
fn large_response(topic: usize, number: usize) -> Vec<u8> {
    let mut state = number as u64 + 1;
    let noise: String = (0..60_000)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b'!' + u8::try_from(state % 90).unwrap_or(0))
        })
        .map(|c| if c == '-' { '+' } else { c })
        .collect();
    let page = format!("<html><p>{}</p><!-- {noise} --></html>", sentence(topic, 80));
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{page}").into_bytes()
}

/// An archive of more than two units, with archives inside it that look like members of it.
fn large_archive(path: &Path) {
    let mut file = Vec::new();
    for number in 0..1500 {
        let url = format!("http://a.example/{number}");
        let id = format!("p{number}");
        file.extend(gzip(&record("response", &id, &url, "", &large_response(number % 1000, number))));
        if number % 50 == 0 {
            // Compressed bytes are stored as they are: the members of this stand in the file in plain sight.
            let inner: Vec<u8> = (0..30)
                .flat_map(|n| gzip(&record("response", &format!("inner{n}"), &url, "", &large_response(5000 + n, n))))
                .collect();
            let block = [&b"HTTP/1.1 200 OK\r\nContent-Type: application/gzip\r\n\r\n"[..], &inner].concat();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
            std::io::Write::write_all(&mut encoder, &record("response", &format!("a{number}"), &url, "", &block))
                .unwrap();
            file.extend(encoder.finish().unwrap());
        }
    }
    assert!(file.len() > 80 << 20, "{}", file.len());
    fs::write(path, file).unwrap();
}

#[test]
fn a_large_archive_is_read_in_several_places_at_once_with_the_same_result() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("large.warc.gz");
    large_archive(&path);
    let outputs = ["1", "3"].map(|threads| {
        let output = root.path().join(format!("out-{threads}"));
        let ran = dedup(&[&path], &output, &["--threads", threads]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        output
    });
    let rows = table(&outputs[0].join("pages.parquet"));
    assert_eq!(rows.len(), 1500, "none of the archives inside is taken for a part of this one");
    // Every record has the number that it has in the file.
    let mut expected = 0;
    for (number, row) in rows.iter().enumerate() {
        expected += 1;
        assert_eq!(
            (row["id"].as_str(), row["record"].as_str()),
            (&*format!("urn:uuid:p{number}"), &*expected.to_string())
        );
        expected += usize::from(number % 50 == 0);
    }
    assert_eq!(summary(&outputs[0])["other_records"]["other_type"], 30);
    assert!(contents(&outputs[0]) == contents(&outputs[1]));
}

#[test]
fn a_run_that_failed_goes_on_with_what_it_has_read() {
    let root = tempfile::tempdir().unwrap();
    let inputs = root.path().join("in");
    fs::create_dir(&inputs).unwrap();
    // Units of 32 MiB: one of small files, three of large ones, the last of which has a bad line.
    write_jsonl(&inputs.join("a.jsonl"), &documents());
    for (name, first) in [("b.jsonl", ""), ("c.jsonl", ""), ("d.jsonl", "not JSON\n")] {
        let filler = "x".repeat(34 << 20);
        let text = sentence(7, 120);
        let line = format!("{{\"id\": \"{name}\", \"text\": \"{text}\", \"other\": \"{filler}\"}}\n");
        fs::write(inputs.join(name), first.to_owned() + &line).unwrap();
    }
    let whole = root.path().join("whole");
    assert_eq!(dedup(&[&inputs], &whole, &[]).code, 3);

    let output = root.path().join("out");
    let ran = dedup(&[&inputs], &output, &["--strict", "--threads", "1"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("--resume"), "{}", ran.stderr);
    let work = output.join(".lookalike-work");
    assert!(work.join("read-key").exists() && work.join("read-0002").exists());
    assert!(!output.join("summary.json").exists());
    // Another job does not take them for its own.
    let other = dedup(&[&inputs], &output, &["--resume", "--threshold", "0.9"]);
    assert_eq!(other.code, 2);
    assert!(other.stderr.contains("another job"), "{}", other.stderr);

    // A unit that is not whole is read again.
    let part = work.join("read-0001");
    let bytes = fs::read(&part).unwrap();
    fs::write(&part, &bytes[..bytes.len() - 3]).unwrap();
    let resumed = dedup(&[&inputs], &output, &["--resume"]);
    assert_eq!(resumed.code, 3, "{}", resumed.stderr);
    assert!(contents(&output) == contents(&whole));
    assert!(!work.exists());
    // With nothing to go on with, it is a run like any other; a result that is complete needs none.
    assert_eq!(dedup(&[&inputs], &root.path().join("new"), &["--resume"]).code, 3);
    assert!(contents(&root.path().join("new")) == contents(&whole));
    let written = fs::metadata(output.join("summary.json")).unwrap().modified().unwrap();
    let complete = dedup_once(&[&inputs], &output, &["--resume"]);
    assert_eq!((complete.code, complete.stderr.contains("nothing to resume")), (0, true), "{}", complete.stderr);
    assert_eq!(fs::metadata(output.join("summary.json")).unwrap().modified().unwrap(), written);
}
