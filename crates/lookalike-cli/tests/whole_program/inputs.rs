//! Inputs as people have them: which files are read, which fields, which pages, in which notation.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields};
use serde_json::{Value, json};

use crate::common::{
    Document, contents, decompressed, dedup, documents, fates, lookalike, sentence, summary, write_jsonl,
};
use crate::crawl::{gzip, records};

/// What became of every page, and the ids that are kept.
type Fates = BTreeMap<String, (String, String)>;

/// The result of the documents as JSON lines, which every other way to write them must give.
fn expected(root: &Path, documents: &[Document]) -> Fates {
    let path = root.join("expected.jsonl");
    write_jsonl(&path, documents);
    let output = root.join("expected");
    assert_eq!(dedup(&[&path], &output, &[]).code, 0);
    fates(&output)
}

fn kept_ids(fates: &Fates) -> Vec<&str> {
    fates.iter().filter(|(id, fate)| fate.1 == **id).map(|(id, _)| id.as_str()).collect()
}

#[test]
fn json_arrays_and_objects_over_several_lines_are_read_and_kept_as_such() {
    let root = tempfile::tempdir().unwrap();
    let documents = documents();
    let expected = expected(root.path(), &documents);
    let values: Vec<Value> = documents.iter().map(|document| serde_json::from_str(&document.json()).unwrap()).collect();
    let pretty: Vec<String> = values.iter().map(|value| serde_json::to_string_pretty(value).unwrap()).collect();
    let files = [
        ("compact.json", serde_json::to_string(&values).unwrap()),
        ("pretty.json", serde_json::to_string_pretty(&values).unwrap()),
        ("objects.json", pretty.join("\n") + "\n"),
        ("misnamed.jsonl", pretty.join("\n\n")),
    ];
    for (name, text) in files {
        for packed in ["", ".gz", ".bz2", ".xz"] {
            let name = format!("{name}{packed}");
            let path = root.path().join(&name);
            fs::write(&path, pack(packed, text.as_bytes())).unwrap();
            let output = root.path().join(format!("out-{name}"));
            let ran = dedup(&[&path], &output, &["--threads", "4"]);
            assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
            assert_eq!(fates(&output), expected, "{name}");
            assert_eq!(summary(&output)["files"][0]["format"], "json", "{name}");
            let single = root.path().join("single");
            assert_eq!(dedup(&[&path], &single, &["--threads", "1"]).code, 0);
            assert!(contents(&output) == contents(&single), "{name}");
            fs::remove_dir_all(single).unwrap();

            let kept = String::from_utf8(decompressed(&output.join("kept").join(&name))).unwrap();
            let found: Vec<Value> = if text.starts_with('[') {
                serde_json::from_str(&kept).unwrap()
            } else {
                serde_json::Deserializer::from_str(&kept).into_iter().collect::<Result<_, _>>().unwrap()
            };
            let mut ids: Vec<&str> = found.iter().map(|value| value["id"].as_str().unwrap()).collect();
            ids.sort_unstable();
            assert_eq!(ids, kept_ids(&expected), "{name}");
            // The bytes of what is kept are those of the input.
            for (value, pretty) in values.iter().zip(&pretty) {
                let bytes = match &text[..2] {
                    "[{" => value.to_string(),
                    "[\n" => pretty.replace('\n', "\n  "),
                    _ => pretty.clone(),
                };
                let is_kept = ids.contains(&value["id"].as_str().unwrap());
                assert_eq!(kept.contains(&bytes), is_kept, "{name}: {bytes}");
            }
        }
    }
}

fn pack(ending: &str, bytes: &[u8]) -> Vec<u8> {
    match ending {
        ".gz" => gzip(bytes),
        ".bz2" => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        ".xz" => {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        _ => bytes.to_vec(),
    }
}

#[test]
fn what_is_not_json_at_all_is_one_note_and_damage_costs_only_what_it_hits() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("in");
    fs::create_dir(&input).unwrap();
    write_jsonl(&input.join("good.jsonl"), &documents()[..10]);
    let words: String = (0..20_000).map(|n| sentence(n, 5) + "\n").collect();
    fs::write(input.join("words.jsonl"), &words).unwrap();
    fs::write(input.join("words.json"), &words).unwrap();
    let one = |n: usize| format!("  {{\n    \"id\": \"n{n}\",\n    \"text\": \"{}\"\n  }}", sentence(500 + n, 30));
    // The second object has no end, the last one is cut off.
    let broken = one(1).trim_end().trim_end_matches('}').to_owned();
    fs::write(input.join("array.json"), format!("[\n{},\n{broken},\n{},\n{}", one(0), one(2), &one(3)[..60])).unwrap();
    fs::write(input.join("odd.json"), format!("[{}, 17, \"{{\"]", one(4))).unwrap();
    let output = root.path().join("out");
    let ran = dedup(&[&input], &output, &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let found = fates(&output);
    for id in ["n0", "n2", "n4"] {
        assert!(found.contains_key(id), "{id}: {:?}", found.keys());
    }
    assert_eq!(found.len(), 13);
    assert_eq!(
        summary(&output)["skipped"],
        json!({"bad_json": 6}),
        "{}",
        fs::read_to_string(output.join("skipped.jsonl")).unwrap()
    );
    assert!(ran.stderr.contains("bad_json"), "{}", ran.stderr);
    // What is left of the array is an array.
    for name in ["array.json", "odd.json"] {
        let kept: Vec<Value> = serde_json::from_slice(&fs::read(output.join("kept").join(name)).unwrap()).unwrap();
        assert_eq!(kept.len(), if name == "odd.json" { 1 } else { 2 });
    }
}

/// The documents as a batch of rows; the text is inside a structure if `nested`.
fn batch(documents: &[Document], nested: bool) -> RecordBatch {
    let column = |of: &dyn Fn(&Document) -> String| -> ArrayRef {
        Arc::new(documents.iter().map(|document| Some(of(document))).collect::<StringArray>())
    };
    let text = column(&|document| document.text.clone());
    let body: ArrayRef = if nested {
        let fields =
            Fields::from(vec![Field::new("text", DataType::Utf8, true), Field::new("lead", DataType::Utf8, true)]);
        let empty = column(&|_| String::new());
        Arc::new(StructArray::new(fields, vec![text, empty], None))
    } else {
        text
    };
    let id = column(&|document| document.id.clone());
    RecordBatch::try_from_iter([("id", id), (if nested { "doc" } else { "text" }, body)]).unwrap()
}

fn arrow(batches: &[RecordBatch], is_file: bool, packing: Option<arrow_ipc::CompressionType>) -> Vec<u8> {
    let options = arrow_ipc::writer::IpcWriteOptions::default().try_with_compression(packing).unwrap();
    let schema = batches[0].schema();
    let mut bytes = Vec::new();
    if is_file {
        let mut writer = arrow_ipc::writer::FileWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    } else {
        let mut writer = arrow_ipc::writer::StreamWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    }
    bytes
}

fn read_arrow(path: &Path) -> Vec<RecordBatch> {
    let bytes = decompressed(path);
    if bytes.starts_with(b"ARROW1") {
        let reader = arrow_ipc::reader::FileReader::try_new(std::io::Cursor::new(bytes), None).unwrap();
        reader.collect::<Result<_, _>>().unwrap()
    } else {
        let reader = arrow_ipc::reader::StreamReader::try_new(std::io::Cursor::new(bytes), None).unwrap();
        reader.collect::<Result<_, _>>().unwrap()
    }
}

#[test]
fn arrow_files_and_streams_are_read_and_kept_in_every_packing() {
    let root = tempfile::tempdir().unwrap();
    let documents = documents();
    let expected = expected(root.path(), &documents);
    let batches = [batch(&documents[..50], false), batch(&documents[50..], false)];
    let files = [
        ("a.arrow", arrow(&batches, true, None)),
        ("a.feather", arrow(&batches, true, Some(arrow_ipc::CompressionType::LZ4_FRAME))),
        ("stream.arrow", arrow(&batches, false, Some(arrow_ipc::CompressionType::ZSTD))),
        ("unnamed", arrow(&batches, false, None)),
        ("stream.arrow.gz", gzip(&arrow(&batches, false, None))),
    ];
    for (name, bytes) in &files {
        let (path, output) = (root.path().join(name), root.path().join(format!("out-{name}")));
        fs::write(&path, bytes).unwrap();
        let ran = dedup(&[&path], &output, &["--threads", "4"]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        assert_eq!(fates(&output), expected, "{name}");
        let kept = output.join("kept").join(name);
        assert_eq!(decompressed(&kept).starts_with(b"ARROW1"), decompressed(&path).starts_with(b"ARROW1"), "{name}");
        let read = read_arrow(&kept);
        assert_eq!(read[0].schema(), batches[0].schema(), "{name}");
        let rows: usize = read.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, kept_ids(&expected).len(), "{name}");
        // Another result from the same pairs finds the rows again.
        let again = lookalike().arg("recluster").arg(&output).args(["--threshold", "0.99"]).output().unwrap();
        assert!(again.status.success(), "{name}: {}", String::from_utf8_lossy(&again.stderr));
    }
    // A file that is cut off gives what comes before the cut.
    let (path, output) = (root.path().join("cut.arrow"), root.path().join("out-cut"));
    let whole = &files[0].1;
    fs::write(&path, &whole[..whole.len() * 7 / 10]).unwrap();
    let ran = dedup(&[&path], &output, &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!((fates(&output).len(), &summary(&output)["skipped"]), (50, &json!({"damaged": 1})));
}

#[test]
fn fields_inside_objects_and_several_texts_are_compared_as_one() {
    let root = tempfile::tempdir().unwrap();
    let documents = documents();
    let expected = expected(root.path(), &documents);
    let half = |text: &str| {
        let middle = text.match_indices(' ').nth(20).unwrap().0;
        (text[..middle].to_owned(), text[middle + 1..].to_owned())
    };
    let lines = |of: &dyn Fn(&Document) -> Value| -> String {
        documents.iter().map(|document| of(document).to_string() + "\n").collect()
    };
    let table: String = documents
        .iter()
        .map(|document| {
            let (head, rest) = half(&document.text);
            format!("{},\"{head}\",\"{rest}\"\n", document.id)
        })
        .collect();
    let nested = batch(&documents, true);
    let mut parquet = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut parquet, nested.schema(), None).unwrap();
    writer.write(&nested).unwrap();
    writer.close().unwrap();
    let files: [(&str, &str, Vec<u8>); 5] = [
        (
            "nested.jsonl",
            "doc.body.text",
            lines(&|document| json!({"id": document.id, "doc": {"lang": "en", "body": {"text": document.text}}}))
                .into(),
        ),
        (
            "several.jsonl",
            "title,doc.rest",
            lines(&|document| {
                let (head, rest) = half(&document.text);
                json!({"id": document.id, "doc": {"rest": rest}, "title": head})
            })
            .into(),
        ),
        ("several.csv", "head,rest", format!("id,head,rest\n{table}").into()),
        ("nested.parquet", "doc.text", parquet),
        ("nested.arrow", "doc.text", arrow(&[nested], true, None)),
    ];
    for (name, field, bytes) in files {
        let (path, output) = (root.path().join(name), root.path().join(format!("out-{name}")));
        fs::write(&path, bytes).unwrap();
        let ran = dedup(&[&path], &output, &["--text-field", field]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        assert_eq!(fates(&output), expected, "{name}");
        // Without it, the fields that are there are listed.
        let ran = dedup(&[&path], &root.path().join("none"), &[]);
        let first = field.split(',').next().unwrap();
        assert!(
            ran.code == 1 && ran.stderr.contains("there are ") && ran.stderr.contains(first),
            "{name}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains("--text-field"), "{}", ran.stderr);
    }
    let wrong = dedup(&[&root.path().join("nested.jsonl")], &root.path().join("none"), &["--text-field", "a,,b"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
}

#[test]
fn null_is_called_null() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.jsonl");
    fs::write(&path, "{\"id\": 1, \"text\": null}\n{\"id\": 2, \"text\": \"x\"}\n").unwrap();
    let ran = dedup(&[&path], &root.path().join("out"), &[]);
    assert!(ran.code == 3 && ran.stderr.contains("the field 'text' is null"), "{}", ran.stderr);
}

#[test]
fn a_story_that_begins_with_angle_brackets_is_a_story() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.jsonl");
    let text = "<Metal Traders Ltd> said that it had bought <Body Works Inc> for <p>ten</p> dollars";
    fs::write(&path, json!({"id": "a", "text": text}).to_string()).unwrap();
    let tokens = |flags: &[&str]| {
        let output = root.path().join("out");
        let ran = dedup(&[&path], &output, &[flags, &["--force"]].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let tokens = crate::common::table(&output.join("pages.parquet"))[0]["tokens"].clone();
        fs::remove_dir_all(output).unwrap();
        tokens
    };
    assert_eq!(tokens(&[]), "16");
    assert_eq!(tokens(&["--read-as", "text"]), "16");
    assert_eq!(tokens(&["--read-as", "html"]), "8");
}

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
fn dates_of_any_notation_rank_pages_and_others_are_shown() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.jsonl");
    let text = sentence(1, 60);
    let line = |(id, date): (&str, Value)| json!({"id": id, "text": text, "date": date}).to_string() + "\n";
    let rows = [
        ("iso", json!("2024-05-17T08:00:00+02:00")),
        ("mail", json!("Sat, 18 May 2024 08:00:00 +0200")),
        ("epoch", json!(1_700_000_000)),
        ("words", json!("the day before yesterday")),
    ];
    fs::write(&path, rows.clone().map(line).concat()).unwrap();
    let output = root.path().join("out");
    let ran = dedup(&[&path], &output, &["--keep", "newest"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(fates(&output).values().all(|fate| fate.1 == "mail"));
    assert_eq!(summary(&output)["unread_ranks"], json!({"pages": 1, "first": "the day before yesterday"}));
    fs::write(&path, line(rows[3].clone())).unwrap();
    let ran = dedup(&[&path], &root.path().join("none"), &["--keep", "newest"]);
    assert!(ran.code == 2 && ran.stderr.contains("the first one has 'the day before yesterday'"), "{}", ran.stderr);
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
