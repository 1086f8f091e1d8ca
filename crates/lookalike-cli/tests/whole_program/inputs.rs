//! Inputs as people have them: which files are read, and which pages of them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use serde_json::{Value, json};

use crate::common::{contents, decompressed, dedup, documents, fates, lookalike, sentence, summary, write_jsonl};
use crate::crawl::{gzip, records};
use crate::notations::{arrow, batch, kept_ids};

#[test]
fn files_are_named_by_a_list_and_chosen_by_patterns() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("in");
    for (name, topic) in [("news/a.txt", 1), ("news/old/b.txt", 1), ("news/c.html", 2), ("blog/d.txt", 3)] {
        let path = input.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, sentence(topic, 40)).unwrap();
    }
    let ids = |flags: &[&str], number: usize| {
        let output = root.path().join(format!("out{number}"));
        let ran = dedup(&[&input], &output, flags);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        fates(&output).into_keys().collect::<Vec<_>>()
    };
    assert_eq!(ids(&["--include", "*.txt"], 1), ["blog/d.txt", "news/a.txt", "news/old/b.txt"]);
    assert_eq!(ids(&["--include", "news/*.txt", "--include", "blog/"], 2), ["blog/d.txt", "news/a.txt"]);
    assert_eq!(ids(&["--exclude", "news/**"], 3), ["blog/d.txt"]);
    let none = dedup(&[&input], &root.path().join("none"), &["--include", "*.pdf"]);
    assert!(none.code == 1 && none.stderr.contains("--include and --exclude leave out all 4 files"), "{}", none.stderr);

    let list = format!("{}\n\n{}\n", input.join("blog/d.txt").display(), input.join("news").display());
    let path = root.path().join("list");
    fs::write(&path, &list).unwrap();
    let of_list = |name: &str, stdin: Stdio| {
        let output = root.path().join(format!("listed{}", name.len()));
        let mut command = lookalike();
        command.args(["dedup", "--files-from", name, "--output"]).arg(&output).stdin(stdin);
        let ran = crate::common::run(&mut command);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        fates(&output)
    };
    let from_file = of_list(path.to_str().unwrap(), Stdio::null());
    assert_eq!(from_file.len(), 4);
    assert_eq!(of_list("-", fs::File::open(&path).unwrap().into()), from_file);
}

#[test]
fn a_sample_is_the_same_pages_every_time_and_kept_holds_no_others() {
    let root = tempfile::tempdir().unwrap();
    let documents = documents();
    let lines = root.path().join("a.jsonl");
    write_jsonl(&lines, &documents);
    let trec = root.path().join("a.trec");
    let text: String = documents
        .iter()
        .map(|document| format!("<DOC><DOCNO>{}</DOCNO><TEXT>{}</TEXT></DOC>\n", document.id, document.text))
        .collect();
    fs::write(&trec, text).unwrap();
    let run = |path: &Path, share: &str, threads: &str| {
        let name = path.extension().unwrap().to_string_lossy().into_owned();
        let output = root.path().join(format!("out-{name}-{share}-{threads}"));
        let ran = dedup(&[path], &output, &["--sample", share, "--threads", threads]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        output
    };
    let output = run(&lines, "0.4", "1");
    assert!(contents(&output) == contents(&run(&lines, "0.4", "4")));
    let sampled = fates(&output);
    assert!((30..70).contains(&sampled.len()), "{} of {}", sampled.len(), documents.len());
    assert_eq!(summary(&output)["other_records"]["not_chosen"], documents.len() - sampled.len());
    assert_eq!(summary(&output)["config"]["read"]["sample"], 0.4);
    let of_trec = run(&trec, "0.4", "2");
    assert_eq!(fates(&of_trec), sampled, "the format makes no difference");
    let kept = fs::read_to_string(of_trec.join("kept/a.trec")).unwrap();
    for document in &documents {
        let is_kept = sampled.get(&document.id).is_some_and(|fate| fate.1 == document.id);
        assert_eq!(kept.contains(&format!("<DOCNO>{}</DOCNO>", document.id)), is_kept, "{}", document.id);
    }
    let larger = fates(&run(&lines, "0.8", "2"));
    assert!(sampled.keys().all(|id| larger.contains_key(id)));
    let wrong = dedup(&[&lines], &root.path().join("none"), &["--sample", "10"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("--sample"), "{}", wrong.stderr);
}

/// A WACZ file: the archive, and what else such files hold.
fn wacz(path: &Path, archives: &[(&str, Vec<u8>)]) {
    let mut zip = zip::ZipWriter::new(fs::File::create(path).unwrap());
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    zip.start_file("pages/pages.jsonl", stored).unwrap();
    zip.write_all(b"{\"format\": \"json-pages-1.0\"}\n").unwrap();
    for (name, bytes) in archives {
        zip.start_file(format!("archive/{name}"), stored).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
}

#[test]
fn the_archives_in_wacz_files_are_read_kept_and_found_again() {
    let root = tempfile::tempdir().unwrap();
    let members: Vec<u8> = records().iter().flat_map(|record| gzip(record)).collect();
    let plain = root.path().join("data.warc.gz");
    fs::write(&plain, &members).unwrap();
    let of_plain = root.path().join("plain");
    assert_eq!(dedup(&[&plain], &of_plain, &[]).code, 0);
    let crawl = root.path().join("crawl");
    fs::create_dir(&crawl).unwrap();
    wacz(&crawl.join("a.wacz"), &[("data.warc.gz", members.clone())]);
    let output = root.path().join("out");
    let ran = dedup(&[&crawl], &output, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(fates(&output), fates(&of_plain));
    let name = "kept/a.wacz/archive/data.warc.gz";
    assert!(decompressed(&output.join(name)) == decompressed(&of_plain.join("kept/data.warc.gz")));
    // Later commands find the pages in it again.
    let compared =
        lookalike().args(["compare", "urn:uuid:page0", "urn:uuid:page3", "--in"]).arg(&output).output().unwrap();
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stderr));
    let again = lookalike().arg("recluster").arg(&output).args(["--threshold", "0.9"]).output().unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));

    // Damage is a note, in a directory, and an error where the file was named.
    let whole = fs::read(crawl.join("a.wacz")).unwrap();
    fs::write(crawl.join("b.wacz"), &whole[..whole.len() / 2]).unwrap();
    let damaged = root.path().join("damaged");
    let ran = dedup(&[&crawl], &damaged, &[]);
    assert!(ran.code == 3 && ran.stderr.contains("b.wacz"), "{}", ran.stderr);
    assert_eq!(fates(&damaged).len(), 8);
    let ran = dedup(&[&crawl.join("b.wacz")], &root.path().join("none"), &[]);
    assert!(ran.code == 2 && ran.stderr.contains("b.wacz"), "{}", ran.stderr);
}

#[test]
fn captures_are_chosen_by_a_cdxj_file() {
    let root = tempfile::tempdir().unwrap();
    let members: Vec<Vec<u8>> = records().iter().map(|record| gzip(record)).collect();
    let path = root.path().join("data.warc.gz");
    fs::write(&path, members.concat()).unwrap();
    // Records 2, 4, 6, … are pages 0, 1, 2, …
    let line = |page: usize, file: &str| {
        let offset = members[..2 * page + 2].concat().len();
        format!(
            "example,site)/{page} 20240517000000 {{\"url\": \"http://site.example/{page}\", \"filename\": \"{file}\", \"offset\": \"{offset}\"}}\n"
        )
    };
    let cdxj = root.path().join("index.cdxj");
    let lines = [
        "!meta 0 {}\n".to_owned(),
        line(0, "crawl/2024/data.warc.gz"),
        line(3, "data.warc.gz"),
        line(4, "data.warc.gz"),
    ];
    fs::write(&cdxj, lines.concat()).unwrap();
    let output = root.path().join("out");
    let flag = ["--cdxj", cdxj.to_str().unwrap()];
    let ran = dedup(&[&path], &output, &flag);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(fates(&output).keys().collect::<Vec<_>>(), ["urn:uuid:page0", "urn:uuid:page3", "urn:uuid:page4"]);
    assert_eq!(fates(&output)["urn:uuid:page3"].1, "urn:uuid:page0");
    assert_eq!(summary(&output)["config"]["read"]["cdxj"]["captures"], 3);
    let kept = String::from_utf8(decompressed(&output.join("kept/data.warc.gz"))).unwrap();
    for (id, is_kept) in [
        ("page0", true),
        ("ask0", true),
        ("page3", false),
        ("ask3", false),
        ("page1", false),
        ("image", false),
        ("info", true),
    ] {
        assert_eq!(kept.contains(&format!("WARC-Record-ID: <urn:uuid:{id}>")), is_kept, "{id}");
    }
    // The same through a WACZ file, and a file that is not there is noted.
    let packed = root.path().join("a.wacz");
    wacz(&packed, &[("data.warc.gz", members.concat())]);
    fs::write(&cdxj, lines.concat() + &line(5, "elsewhere.warc.gz")).unwrap();
    let of_wacz = root.path().join("of-wacz");
    let ran = dedup(&[&packed], &of_wacz, &flag);
    assert!(ran.code == 3 && ran.stderr.contains("elsewhere.warc.gz"), "{}", ran.stderr);
    assert_eq!(fates(&of_wacz), fates(&output));
    // A place where no record begins is noted, too.
    fs::write(&cdxj, lines.concat() + "{\"filename\": \"data.warc.gz\", \"offset\": 7}\n").unwrap();
    let ran = dedup(&[&path], &output, &flag);
    assert!(ran.code == 3 && ran.stderr.contains("1 of 4 captures that were named in it"), "{}", ran.stderr);
    let stream = root.path().join("stream/data.warc.gz");
    fs::create_dir(stream.parent().unwrap()).unwrap();
    fs::write(&stream, gzip(&records().concat())).unwrap();
    let ran = dedup(&[&stream], &root.path().join("none"), &flag);
    assert!(ran.code == 1 && ran.stderr.contains("packed as one stream"), "{}", ran.stderr);
    fs::write(&cdxj, "example,site)/ 20240517000000 http://site.example/ text/html 200\n").unwrap();
    let wrong = dedup(&[&path], &root.path().join("none"), &flag);
    assert!(wrong.code != 0 && wrong.stderr.contains("line 1 is not a line of a CDXJ file"), "{}", wrong.stderr);
}

#[test]
fn links_that_lead_nowhere_are_one_note() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("in");
    fs::create_dir(&input).unwrap();
    fs::write(input.join("a.txt"), sentence(1, 40)).unwrap();
    for number in 0..30 {
        std::os::unix::fs::symlink("nowhere", input.join(format!("link{number:02}.txt"))).unwrap();
    }
    let output = root.path().join("out");
    let ran = dedup(&[&input], &output, &[]);
    assert!(ran.code == 3 && ran.stderr.contains("30 links lead nowhere"), "{}", ran.stderr);
    assert_eq!(summary(&output)["skipped"], json!({"unreadable": 1}));
}

#[test]
fn new_formats_go_on_where_a_run_failed() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("in");
    fs::create_dir(&input).unwrap();
    // Each file is a unit, and the last one has a bad record.
    let filler = "x".repeat(34 << 20);
    let object = |n: usize| json!({"id": format!("j{n}"), "text": sentence(n, 60), "filler": filler}).to_string();
    fs::write(input.join("a.json"), format!("[\n{}\n]", object(1))).unwrap();
    let rows = batch(&documents()[..20], false);
    let fill: ArrayRef = Arc::new(StringArray::from_iter_values((0..20).map(|_| &filler[..2 << 20])));
    let columns = [("id", rows.column(0)), ("text", rows.column(1)), ("fill", &fill)];
    let rows = RecordBatch::try_from_iter(columns.map(|(name, column)| (name, Arc::clone(column)))).unwrap();
    fs::write(input.join("b.arrow"), arrow(&[rows], false, None)).unwrap();
    fs::write(input.join("c.json"), format!("[\n{},\n{{\"id\": 7}}\n]", object(1))).unwrap();
    let whole = root.path().join("whole");
    assert_eq!(dedup(&[&input], &whole, &[]).code, 3);
    let output = root.path().join("out");
    let ran = dedup(&[&input], &output, &["--strict", "--threads", "1"]);
    assert!(ran.code == 1 && ran.stderr.contains("--resume"), "{}", ran.stderr);
    assert!(output.join(".lookalike-work/read-0001").exists());
    assert_eq!(dedup(&[&input], &output, &["--resume"]).code, 3);
    assert!(contents(&output) == contents(&whole));
}

#[test]
fn folders_of_datasets_are_read_and_kept_with_their_layout() {
    let root = tempfile::tempdir().unwrap();
    let documents = documents();
    let input = root.path().join("news");
    fs::create_dir_all(input.join("data")).unwrap();
    let middle = documents.len() / 2;
    for (name, part) in [("train-00000-of-00001", &documents[..middle]), ("test-00000-of-00001", &documents[middle..])]
    {
        let rows = batch(part, false);
        let file = fs::File::create(input.join(format!("data/{name}.parquet"))).unwrap();
        let mut writer = parquet::arrow::ArrowWriter::try_new(file, rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
    }
    let split = |name: &str, count: usize| json!({"name": name, "num_bytes": 5, "num_examples": count});
    let info = json!({
        "features": {"text": {"dtype": "string"}},
        "splits": {"train": split("train", middle), "test": split("test", documents.len() - middle)},
        "dataset_size": 10,
    });
    fs::write(input.join("dataset_info.json"), info.to_string()).unwrap();
    fs::write(input.join("README.md"), "---\nlicense: mit\n---\n# News\nA dataset.").unwrap();
    fs::write(input.join(".gitattributes"), "*.parquet filter=lfs\n").unwrap();
    let output = root.path().join("out");
    let ran = dedup(&[&input], &output, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let found = fates(&output);
    assert_eq!((found.len(), &summary(&output)["ignored_files"]), (documents.len(), &json!(2)));
    let kept: Value = serde_json::from_slice(&fs::read(output.join("kept/dataset_info.json")).unwrap()).unwrap();
    let mut all = 0;
    for name in ["train", "test"] {
        let file = fs::File::open(output.join(format!("kept/data/{name}-00000-of-00001.parquet"))).unwrap();
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let rows = reader.metadata().file_metadata().num_rows();
        assert_eq!(kept["splits"][name], json!({"name": name, "num_examples": rows}));
        all += rows;
    }
    assert_eq!(usize::try_from(all).unwrap(), kept_ids(&found).len());
    assert_eq!((&kept["features"], &kept["dataset_size"]), (&info["features"], &Value::Null));
}
