//! Web archives: every packing gives the same pages, and `kept/` is an archive again.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::common::{contents, decompressed, dedup, fates, sentence, summary, table};

/// A record of a WARC file.
pub fn record(kind: &str, id: &str, url: &str, fields: &str, block: &[u8]) -> Vec<u8> {
    let length = block.len();
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{id}>\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-05-17T00:00:0{}Z\r\n{fields}Content-Length: {length}\r\n\r\n",
        id.len() % 10
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// An HTTP response with a page about a topic.
pub fn response(topic: usize, words: usize) -> Vec<u8> {
    let page = format!("<html><title>Topic {topic}</title><p>{}</p></html>", sentence(topic, words));
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{page}").into_bytes()
}

/// Eight pages of six topics, each with its request; an image, a redirect, a DNS answer, metadata.
pub fn records() -> Vec<Vec<u8>> {
    let mut all = vec![record("warcinfo", "info", "", "Content-Type: application/warc-fields\r\n", b"software: test")];
    for (number, topic) in [0, 1, 2, 0, 3, 4, 5, 1].into_iter().enumerate() {
        let url = format!("http://site.example/{number}");
        let link = format!("WARC-Concurrent-To: <urn:uuid:page{number}>\r\n");
        all.push(record("request", &format!("ask{number}"), &url, &link, b"GET / HTTP/1.1\r\n\r\n"));
        all.push(record(
            "response",
            &format!("page{number}"),
            &url,
            "Content-Type: application/http\r\n",
            &response(topic, 100),
        ));
    }
    let image = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n\x89PNG";
    all.push(record("response", "image", "http://site.example/a.png", "", image));
    all.push(record(
        "response",
        "moved",
        "http://site.example/old",
        "",
        b"HTTP/1.1 302 Found\r\nContent-Type: text/html\r\n\r\n<p>moved",
    ));
    all.push(record(
        "response",
        "dns",
        "dns:site.example",
        "Content-Type: text/dns\r\n",
        b"20240517\nsite.example. A 10.0.0.1",
    ));
    all.push(record("metadata", "meta", "http://site.example/0", "", b"fetchTimeMs: 12"));
    all
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// zstd frames with a dictionary in a skippable frame in front, as archives use them.
fn with_dictionary(records: &[Vec<u8>], packed: bool) -> Vec<u8> {
    let dictionary = records[1..5].concat(); // any bytes serve
    let stored = if packed { zstd::encode_all(&dictionary[..], 3).unwrap() } else { dictionary.clone() };
    let mut file = vec![0x5d, 0x2a, 0x4d, 0x18];
    file.extend(u32::try_from(stored.len()).unwrap().to_le_bytes());
    file.extend(stored);
    for record in records {
        let mut encoder = zstd::stream::write::Encoder::with_dictionary(Vec::new(), 3, &dictionary).unwrap();
        encoder.write_all(record).unwrap();
        file.extend(encoder.finish().unwrap());
    }
    file
}

/// The same records in every packing there is.
fn packings(directory: &Path) -> Vec<PathBuf> {
    let records = records();
    let write = |name: &str, bytes: Vec<u8>| {
        let path = directory.join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let members = |pack: &dyn Fn(&[u8]) -> Vec<u8>| records.iter().flat_map(|record| pack(record)).collect::<Vec<u8>>();
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    let bzip2 = |bytes: &[u8]| {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let xz = |bytes: &[u8]| {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    // Blocks that end in the middle of records, as bgzip and pigz cut them.
    let blocks = records.concat().chunks(777).flat_map(gzip).collect();
    // Members of two records each, behind one of one.
    let pairs = records[..1].concat().chunks(1 << 20).chain([]).flat_map(gzip).collect::<Vec<u8>>();
    let pairs = pairs.into_iter().chain(records[1..].chunks(2).flat_map(|two| gzip(&two.concat()))).collect();
    vec![
        write("plain.warc", records.concat()),
        write("members.warc.gz", members(&gzip)),
        write("single.warc.gz", gzip(&records.concat())),
        write("blocks.warc.gz", blocks),
        write("pairs.warc.gz", pairs),
        write("frames.warc.zst", members(&zstd)),
        write("single.warc.zst", zstd(&records.concat())),
        write("dictionary.warc.zst", with_dictionary(&records, false)),
        write("packed-dictionary.warc.zst", with_dictionary(&records, true)),
        write("single.warc.bz2", bzip2(&records.concat())),
        write("members.warc.bz2", members(&bzip2)),
        write("single.warc.xz", xz(&records.concat())),
        write("members.warc.xz", members(&xz)),
    ]
}

#[test]
fn every_packing_gives_the_same_pages_and_an_archive_without_the_dropped_ones() {
    let root = tempfile::tempdir().unwrap();
    let expected: Vec<(&str, &str)> = vec![
        ("urn:uuid:page0", "representative"),
        ("urn:uuid:page1", "representative"),
        ("urn:uuid:page2", "unique"),
        ("urn:uuid:page3", "exact"),
        ("urn:uuid:page4", "unique"),
        ("urn:uuid:page5", "unique"),
        ("urn:uuid:page6", "unique"),
        ("urn:uuid:page7", "exact"),
    ];
    // Everything but the two dropped pages and the requests for them.
    let dropped = ["ask3", "page3", "ask7", "page7"].map(|id| format!("<urn:uuid:{id}>"));
    let is_kept = |record: &Vec<u8>| {
        let text = String::from_utf8_lossy(record);
        !dropped.iter().any(|id| text.contains(&format!("Record-ID: {id}")))
    };
    let kept: Vec<u8> = records().into_iter().filter(is_kept).flatten().collect();
    for path in packings(root.path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let output = root.path().join(format!("out-{name}"));
        let ran = dedup(&[&path], &output, &[]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        let found = fates(&output);
        let found: Vec<(&str, &str)> = found.iter().map(|(id, fate)| (id.as_str(), fate.0.as_str())).collect();
        assert_eq!(found, expected, "{name}");
        let other_records = &summary(&output)["other_records"];
        let others =
            serde_json::json!({"metadata": 1, "other_status": 1, "other_type": 2, "request": 8, "warcinfo": 1});
        assert_eq!(other_records, &others, "{name}");
        let packed = output.join("kept").join(&name);
        if name.contains("dictionary") {
            // No general decoder looks for the dictionary there; read it as an archive again.
            let again = root.path().join(format!("again-{name}"));
            assert_eq!(dedup(&[&packed], &again, &[]).code, 0, "{name}");
            assert_eq!(summary(&again)["pages"], 6, "{name}");
            assert_eq!(summary(&again)["other_records"]["request"], 6, "{name}");
        } else {
            assert!(decompressed(&packed) == kept, "{name}: kept/ differs");
        }
    }
}

#[test]
fn places_of_records_are_those_in_the_file_where_every_record_is_a_member() {
    let root = tempfile::tempdir().unwrap();
    let records = records();
    let (path, output) = (root.path().join("a.warc.gz"), root.path().join("out"));
    let members: Vec<Vec<u8>> = records.iter().map(|record| gzip(record)).collect();
    fs::write(&path, members.concat()).unwrap();
    assert_eq!(dedup(&[&path], &output, &[]).code, 0);
    let rows = table(&output.join("pages.parquet"));
    // Records 3, 5, 7, … are the pages.
    for (row, at) in rows.iter().zip([2, 4, 6]) {
        assert_eq!(row["record"], (at + 1).to_string());
        assert_eq!(row["offset"], members[..at].concat().len().to_string());
        assert_eq!(row["length"], members[at].len().to_string());
        assert!(row["title"].starts_with("Topic") && row["url"].starts_with("http://site.example/"));
    }
}

#[test]
fn revisits_are_exact_copies_of_their_originals_wherever_those_stand() {
    let root = tempfile::tempdir().unwrap();
    let digest = "WARC-Payload-Digest: sha1:ABC\r\n";
    let refers = "WARC-Refers-To: <urn:uuid:original>\r\n";
    let lost = "WARC-Payload-Digest: sha1:XYZ\r\nWARC-Refers-To-Target-URI: http://gone.example/\r\nWARC-Refers-To-Date: 2020-01-01T00:00:00Z\r\n";
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let style = b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\n";
    let file = [
        record("revisit", "before", "http://a.example/", refers, head),
        record("response", "original", "http://a.example/", digest, &response(1, 100)),
        record("revisit", "after", "http://b.example/", digest, b""),
        record("revisit", "of-revisit", "http://c.example/", "WARC-Refers-To: <urn:uuid:before>\r\n", head),
        record("revisit", "lost", "http://d.example/", lost, head),
        record("revisit", "style", "http://e.example/", lost, style),
        record("response", "near", "http://f.example/", "", &response(1, 101)),
    ];
    for keep in ["first", "longest", "newest", "shortest-url"] {
        let (path, output) = (root.path().join("a.warc"), root.path().join(format!("out-{keep}")));
        fs::write(&path, file.concat()).unwrap();
        let ran = dedup(&[&path], &output, &["--keep", keep]);
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        let found = fates(&output);
        let of = |id: &str| found.get(&format!("urn:uuid:{id}")).map(|fate| (fate.0.as_str(), fate.1.as_str()));
        let kept = if keep == "longest" { "urn:uuid:near" } else { "urn:uuid:original" };
        let kind = if keep == "longest" { "near" } else { "exact" };
        for id in ["before", "after", "of-revisit"] {
            assert_eq!(of(id), Some((kind, kept)), "{keep}: {id}");
        }
        assert_eq!((of("lost"), of("style")), (None, None));
        let summary = summary(&output);
        assert_eq!((&summary["pages"], &summary["revisits"]), (&5.into(), &3.into()));
        assert_eq!(summary["skipped"], serde_json::json!({"revisit": 1}));
        let rows = table(&output.join("pages.parquet"));
        assert_eq!(rows[0]["revisit_of"], "urn:uuid:original");
        assert_eq!(rows[0]["identity"], "urn:uuid:original");
        // Revisits hold nothing that could be dropped.
        let archive = String::from_utf8_lossy(&fs::read(output.join("kept/a.warc")).unwrap()).into_owned();
        assert_eq!(archive.matches("WARC-Type: revisit").count(), 5);
        // A second clustering knows them, too.
        let again = root.path().join(format!("again-{keep}"));
        let directory = output.to_string_lossy();
        let ran = crate::common::run(
            crate::common::lookalike().args(["recluster", &directory, "--threshold", "0.7", "--output"]).arg(&again),
        );
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(fates(&again), found, "{keep}");
    }
}

#[test]
fn dropped_pages_become_revisits_on_request() {
    let root = tempfile::tempdir().unwrap();
    let (path, output, again) = (root.path().join("a.warc.gz"), root.path().join("out"), root.path().join("again"));
    let digest = |letter: &str| format!("WARC-Payload-Digest: sha1:{letter}\r\n");
    let file = [
        record("response", "one", "http://a.example/", &digest("A"), &response(1, 100)),
        record(
            "request",
            "ask",
            "http://b.example/",
            "WARC-Concurrent-To: <urn:uuid:two>\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
        ),
        record("response", "two", "http://b.example/", &digest("A"), &response(1, 100)),
        record("response", "three", "http://c.example/", &digest("B"), &response(1, 101)),
    ];
    fs::write(&path, file.iter().flat_map(|record| gzip(record)).collect::<Vec<u8>>()).unwrap();
    assert_eq!(dedup(&[&path], &output, &["--revisit"]).code, 0);
    let kept = output.join("kept/a.warc.gz");
    let archive = String::from_utf8_lossy(&decompressed(&kept)).into_owned();
    assert!(archive.starts_with(&String::from_utf8_lossy(&file[..2].concat()).into_owned()), "the request stays");
    let [.., second, third] = archive.split("WARC/1.0\r\n").collect::<Vec<_>>()[..] else { panic!("{archive}") };
    for (record, id, profile) in [(second, "two", "identical-payload-digest"), (third, "three", "near-duplicate")] {
        assert!(record.starts_with("WARC-Type: revisit\r\n"), "{record}");
        assert!(record.contains(&format!("WARC-Record-ID: <urn:uuid:{id}>")), "{record}");
        assert!(record.contains("WARC-Refers-To: <urn:uuid:one>\r\nWARC-Refers-To-Target-URI: http://a.example/\r\nWARC-Refers-To-Date: 2024-05-17T00:00:03Z\r\n"), "{record}");
        assert!(record.contains(profile) && !record.contains("<html>"), "{record}");
    }
    assert!(third.contains("Lookalike-Similarity: 0.9"), "{third}");
    // It is an archive again, in which the identical one is known as a copy.
    assert_eq!(dedup(&[&kept], &again, &[]).code, 0);
    let found = fates(&again);
    assert_eq!(found["urn:uuid:two"], ("exact".to_owned(), "urn:uuid:one".to_owned()));
    assert_eq!(summary(&again)["other_records"]["near_duplicate"], 1);
}

#[test]
fn statuses_and_types_are_chosen() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.warc");
    fs::write(&path, records().concat()).unwrap();
    let pages = |flags: &[&str]| {
        let output = root.path().join("out");
        let ran = dedup(&[&path], &output, flags);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        summary(&output)["pages"].as_u64().unwrap()
    };
    assert_eq!(pages(&["--status", "2xx,302"]), 9);
    assert_eq!(pages(&["--types", "text/*"]), 9, "the DNS answer is text");
    let ran = dedup(&[&path], &root.path().join("out2"), &["--status", "fine"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("2xx"), "{}", ran.stderr);
}

#[test]
fn arc_files_are_read_plain_and_packed() {
    let root = tempfile::tempdir().unwrap();
    let entry = |url: &str, kind: &str, block: &[u8]| {
        let head = format!("{url} 10.0.0.1 20080430204825 {kind} {}\n", block.len());
        [head.as_bytes(), block, b"\n"].concat()
    };
    let version = b"1 1 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n";
    let records = [
        entry("filedesc://a.arc", "text/plain", version),
        entry("dns:a.example", "text/dns", b"20080430\na.example. A 10.0.0.1"),
        entry("http://a.example/one page", "text/html", &response(1, 100)),
        entry("http://a.example/two", "text/html", &response(1, 100)),
        entry("http://a.example/gif", "image/gif", b"HTTP/1.1 200 OK\nContent-Type: image/gif\n\nGIF89a"),
        entry("http://a.example/three", "text/html", &response(3, 100)),
    ];
    let plain = root.path().join("a.arc");
    fs::write(&plain, records.concat()).unwrap();
    let packed = root.path().join("b.arc.gz");
    fs::write(&packed, records.iter().flat_map(|record| gzip(record)).collect::<Vec<u8>>()).unwrap();
    for path in [plain, packed] {
        let output = root.path().join("out");
        let ran = dedup(&[&path], &output, &["--keep", "newest"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let rows = table(&output.join("pages.parquet"));
        let urls: Vec<&str> = rows.iter().map(|row| row["url"].as_str()).collect();
        assert_eq!(urls, ["http://a.example/one page", "http://a.example/two", "http://a.example/three"]);
        assert!(rows[0]["id"].ends_with(":3"), "{}", rows[0]["id"]);
        let kept = decompressed(&output.join("kept").join(path.file_name().unwrap()));
        assert!(kept == [&records[..3].concat()[..], &records[4..].concat()].concat());
    }
}

#[test]
fn texts_of_common_crawl_are_pages() {
    let root = tempfile::tempdir().unwrap();
    let text = format!("A line < with > signs.\n{}", sentence(3, 50));
    let file = [
        record("warcinfo", "info", "", "", b"software: test"),
        record("conversion", "text", "http://a.example/", "Content-Type: text/plain\r\n", text.as_bytes()),
    ];
    let path = root.path().join("a.warc.wet.gz");
    fs::write(&path, file.iter().flat_map(|record| gzip(record)).collect::<Vec<u8>>()).unwrap();
    let output = root.path().join("out");
    assert_eq!(dedup(&[&path], &output, &[]).code, 0);
    let rows = table(&output.join("pages.parquet"));
    assert_eq!((rows.len(), rows[0]["tokens"].as_str()), (1, "54"));
}

#[test]
fn archives_give_the_same_bytes_for_every_number_of_threads() {
    let root = tempfile::tempdir().unwrap();
    // No general decoder looks for a dictionary at the start of the file.
    packings(root.path())
        .iter()
        .filter(|path| path.ends_with("dictionary.warc.zst") || path.ends_with("packed-dictionary.warc.zst"))
        .for_each(|path| fs::remove_file(path).unwrap());
    let outputs = ["1", "2", "4"].map(|threads| {
        let output = root.path().join(format!("out-{threads}"));
        let ran = dedup(&[&root.path().join("*.warc*")], &output, &["--threads", threads]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        contents(&output)
    });
    assert!(outputs[0] == outputs[1] && outputs[1] == outputs[2]);
}

/// Pages in each file of the samples, counted with a script of a few lines that shares nothing with the
/// reader: records of the type `response` or `conversion` whose HTTP head says 200 and HTML or
/// plain text.
const SAMPLES: [(&str, u64); 13] = [
    ("aut-IAH-2008-blackbook.arc.gz", 130),
    ("aut-IAH-2008-blackbook.warc.gz", 130),
    ("aut-issue-514.warc", 1),
    ("cc-whirlwind.warc.gz", 1),
    ("cc-whirlwind.warc.wet.gz", 1),
    ("cc2009-small-sample.arc", 8),
    ("clueweb09-en0000-sample-00.warc", 23),
    ("clueweb09-sample-en0000-00.warc.gz", 23),
    ("copycat-wayback-topic-02.warc.gz", 128),
    ("dolma-sample-0000.warc.gz", 22),
    ("iipc-IAH-urls-wget.warc", 3),
    ("pywb-iana.warc.gz", 16),
    ("resiliparse-clueweb-quirk.warc.gz", 29),
];

#[test]
fn real_archives_have_as_many_pages_as_were_counted() {
    let Some(samples) = lookalike_test_data::labelled_data("warc") else { return };
    let root = tempfile::tempdir().unwrap();
    for (name, pages) in SAMPLES {
        let output = root.path().join(name);
        let ran = dedup(&[&samples.join(name)], &output, &[]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        assert_eq!(summary(&output)["pages"], pages, "{name}");
        // What is kept is an archive with as many pages as were kept, none of them a duplicate.
        let again = root.path().join(format!("{name}-again"));
        assert_eq!(dedup(&[&output.join("kept").join(name)], &again, &[]).code, 0, "{name}");
        assert_eq!(summary(&again)["pages"], summary(&output)["kept"], "{name}");
    }
    // The same crawl in two formats.
    let both = ["aut-IAH-2008-blackbook.arc.gz", "aut-IAH-2008-blackbook.warc.gz"].map(|name| {
        let rows = table(&root.path().join(name).join("pages.parquet"));
        let mut pages: Vec<(String, String)> =
            rows.iter().map(|row| (row["url"].clone(), row["tokens"].clone())).collect();
        pages.sort();
        pages
    });
    assert!(both[0] == both[1]);
}
