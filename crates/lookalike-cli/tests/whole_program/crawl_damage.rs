//! Damaged, cut off, huge and hostile archives: everything before and after is read, and it is said what
//! was not.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{dedup, summary, table};
use crate::crawl::{gzip, record, response};

/// Twelve pages, all different.
fn records() -> Vec<Vec<u8>> {
    let page = |n: usize| record("response", &format!("p{n}"), &format!("http://a.example/{n}"), "", &response(n, 400));
    (0..12).map(page).collect()
}

/// Ids that were read, and what was skipped.
fn read(root: &Path, name: &str, bytes: &[u8], flags: &[&str]) -> (BTreeSet<String>, Vec<Value>) {
    let (path, output) = (root.join(name), root.join(format!("out-{name}")));
    fs::write(&path, bytes).unwrap();
    let ran = dedup(&[&path], &output, flags);
    assert!(ran.code == 3 || ran.code == 0, "{}", ran.stderr);
    let ids = table(&output.join("pages.parquet")).into_iter().map(|row| row["id"].replace("urn:uuid:", "")).collect();
    let skipped = fs::read_to_string(output.join("skipped.jsonl")).unwrap();
    let skipped: Vec<Value> = skipped.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(ran.code == 3, !skipped.is_empty());
    (ids, skipped)
}

fn pages(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<String> {
    numbers.into_iter().map(|n| format!("p{n}")).collect()
}

#[test]
fn a_damaged_member_costs_its_own_page_and_no_other() {
    let root = tempfile::tempdir().unwrap();
    let members: Vec<Vec<u8>> = records().iter().map(|record| gzip(record)).collect();
    let starts: Vec<usize> = (0..12).map(|at| members[..at].concat().len()).collect();
    for (victim, tenths) in [(5, 1), (5, 5), (0, 4), (11, 6)] {
        let mut file = members.concat();
        let length = members[victim].len();
        let at = starts[victim] + length * tenths / 10;
        file[at..at + 8].iter_mut().for_each(|byte| *byte ^= 0x5a);
        let (ids, skipped) = read(root.path(), "bytes.warc.gz", &file, &[]);
        assert_eq!(ids, pages((0..12).filter(|&n| n != victim)), "{victim} at {tenths}");
        // The first member is also what the packing is recognised by; then places are counted unpacked.
        assert_eq!(skipped.len(), 1, "{skipped:?}");
        if victim > 0 {
            assert_eq!(skipped[0]["byte"], starts[victim], "{skipped:?}");
        }
        assert_eq!(skipped[0]["kind"], "damaged");
    }
    // A wrong checksum is damage, too.
    let mut file = members.concat();
    let end = starts[6];
    file[end - 6] ^= 1;
    let (ids, skipped) = read(root.path(), "checksum.warc.gz", &file, &[]);
    assert_eq!((ids, skipped.len()), (pages((0..12).filter(|&n| n != 5)), 1));
    // Bytes lost, bytes added, and the end cut off.
    let mut file = members.concat();
    file.drain(starts[4] + 10..starts[7] - 5);
    let (ids, skipped) = read(root.path(), "lost.warc.gz", &file, &[]);
    assert_eq!(ids, pages((0..4).chain(7..12)));
    assert!(!skipped.is_empty());
    let file = [&members[..3].concat()[..], b"garbage between members", &members[3..].concat()].concat();
    let (ids, skipped) = read(root.path(), "garbage.warc.gz", &file, &[]);
    assert_eq!((ids, skipped.len()), (pages(0..12), 1));
    let file = members.concat();
    let (ids, skipped) = read(root.path(), "cut.warc.gz", &file[..starts[11] + 100], &[]);
    assert_eq!(ids, pages(0..11));
    assert!(skipped[0]["reason"].as_str().unwrap().contains("ends inside"), "{skipped:?}");
}

#[test]
fn a_damaged_stream_gives_everything_before_it() {
    let root = tempfile::tempdir().unwrap();
    let mut file = gzip(&records().concat());
    let middle = file.len() / 2;
    file[middle..middle + 8].iter_mut().for_each(|byte| *byte ^= 0x5a);
    let (ids, skipped) = read(root.path(), "single.warc.gz", &file, &[]);
    assert!(ids.is_superset(&pages(0..4)) && ids.len() < 12, "{ids:?}");
    let reasons: Vec<&str> = skipped.iter().map(|row| row["reason"].as_str().unwrap()).collect();
    assert!(reasons.last().unwrap().contains("gzip data is damaged"), "{reasons:?}");
}

#[test]
fn a_plain_file_is_read_on_behind_rubbish_and_wrong_lengths() {
    let root = tempfile::tempdir().unwrap();
    let records = records();
    let rubbish = b"\x00\x01 something else\nWARC-Type: no\n".repeat(50);
    let file = [&records[..3].concat()[..], &rubbish, &records[3..].concat()].concat();
    let (ids, skipped) = read(root.path(), "rubbish.warc", &file, &[]);
    assert_eq!((ids, skipped.len()), (pages(0..12), 1));
    assert_eq!(skipped[0]["byte"], records[..3].concat().len());
    // A length that is too long swallows what follows, no more; one that is too short is noticed.
    let with_length = |n: usize, change: i64| {
        let text = String::from_utf8(records[n].clone()).unwrap();
        let length: i64 = text.split("Content-Length: ").nth(1).unwrap().split('\r').next().unwrap().parse().unwrap();
        text.replacen(&format!("Content-Length: {length}"), &format!("Content-Length: {}", length + change), 1)
            .into_bytes()
    };
    let mut short = records.clone();
    short[4] = with_length(4, -50);
    let (ids, skipped) = read(root.path(), "short.warc", &short.concat(), &[]);
    assert_eq!((ids, skipped.len()), (pages(0..12), 1));
    let mut long = records.clone();
    long[4] = with_length(4, 100);
    let (ids, skipped) = read(root.path(), "long.warc", &long.concat(), &[]);
    assert!(ids.is_superset(&pages((0..5).chain(6..12))), "{ids:?}");
    assert_eq!(skipped.len(), 1);
    // The file ends inside a record.
    let file = records.concat();
    let (ids, skipped) = read(root.path(), "cut.warc", &file[..file.len() - 700], &[]);
    assert_eq!((ids, skipped.len()), (pages(0..11), 1));
}

#[test]
fn a_wrong_length_in_a_member_of_its_own_does_no_harm() {
    let root = tempfile::tempdir().unwrap();
    let mut records = records();
    for (n, length) in [(3, "99999999"), (4, "10"), (5, "soon"), (6, "18446744073709551615")] {
        let text = String::from_utf8(records[n].clone()).unwrap();
        let (before, after) = text.split_once("Content-Length: ").unwrap();
        let rest = after.split_once('\r').unwrap().1;
        records[n] = format!("{before}Content-Length: {length}\r{rest}").into_bytes();
    }
    let file: Vec<u8> = records.iter().flat_map(|record| gzip(record)).collect();
    let (ids, _) = read(root.path(), "lengths.warc.gz", &file, &[]);
    assert_eq!(ids, pages(0..12));
}

#[test]
fn what_is_too_large_is_counted_and_skipped() {
    let root = tempfile::tempdir().unwrap();
    let records = records();
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
    let huge = [&head[..], b"\r\n", &vec![b'x'; 3 << 20]].concat();
    let bomb = [&head[..], b"Content-Encoding: gzip\r\n\r\n", &gzip(&vec![b'y'; 30 << 20])].concat();
    let endless = [
        &head[..],
        b"Transfer-Encoding: chunked\r\n\r\n",
        &b"400\r\n".iter().chain(&[b'z'; 1024]).chain(b"\r\n").copied().collect::<Vec<u8>>().repeat(4000),
    ]
    .concat();
    let video = [&b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n"[..], &vec![7; 3 << 20]].concat();
    let mut all = records[..2].to_vec();
    for (name, block) in [("huge", huge), ("bomb", bomb), ("endless", endless), ("video", video)] {
        all.push(record("response", name, "http://b.example/", "", &block));
    }
    all.extend_from_slice(&records[2..]);
    let members: Vec<u8> = all.iter().flat_map(|record| gzip(record)).collect();
    for (name, bytes) in
        [("huge.warc", all.concat()), ("huge.warc.gz", members), ("single.warc.gz", gzip(&all.concat()))]
    {
        let (ids, skipped) = read(root.path(), name, &bytes, &["--max-page", "1MiB"]);
        assert_eq!(ids, pages(0..12), "{name}");
        let kinds: Vec<&str> = skipped.iter().map(|row| row["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["too_large"; 3], "{name}: {skipped:?}");
        assert_eq!(summary(&root.path().join(format!("out-{name}")))["other_records"]["other_type"], 1);
        // Records that could not be compared were not dropped.
        let again = root.path().join(format!("again-{name}"));
        let kept = root.path().join(format!("out-{name}/kept/{name}"));
        assert_eq!(dedup(&[&kept], &again, &["--max-page", "1MiB"]).code, 3);
        assert_eq!(summary(&again)["pages"], 12, "{name}");
        assert_eq!(summary(&again)["skipped"]["too_large"], 3, "{name}");
    }
}

#[test]
fn a_record_without_a_length_ends_where_the_next_one_begins_or_is_given_up() {
    let root = tempfile::tempdir().unwrap();
    let records = records();
    let without = |n: usize, filler: usize| {
        let text = String::from_utf8(records[n].clone()).unwrap();
        let (before, after) = text.split_once("Content-Length: ").unwrap();
        [before.as_bytes(), after.split_once("\r\n").unwrap().1.as_bytes(), &vec![b'x'; filler]].concat()
    };
    let file = [
        &records[..3].concat()[..],
        &without(3, 0),
        &records[4..6].concat(),
        &without(6, 4 << 20),
        b"\n",
        &records[7..].concat(),
    ]
    .concat();
    let (ids, skipped) = read(root.path(), "lengthless.warc", &file, &["--max-page", "1MiB"]);
    assert_eq!(ids, pages((0..12).filter(|&n| n != 6)));
    assert_eq!((skipped.len(), skipped[0]["kind"].as_str()), (1, Some("damaged")), "{skipped:?}");
}

#[test]
fn a_file_that_is_no_archive_at_all_is_said_to_be_none() {
    let root = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("text.warc", b"not an archive".to_vec()),
        ("text.warc.gz", gzip(b"not an archive")),
        ("cut.warc.gz", gzip(&records().concat())[..40].to_vec()),
        ("zeros.arc", vec![0; 5000]),
        ("empty.warc", Vec::new()),
    ] {
        let path = root.path().join(name);
        fs::write(&path, bytes).unwrap();
        let ran = dedup(&[&path], &root.path().join("out"), &[]);
        assert_eq!(ran.code, 1, "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains("no pages found"), "{name}: {}", ran.stderr);
    }
}
