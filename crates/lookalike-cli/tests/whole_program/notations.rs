//! The same records in every notation that people have them in: JSON, Arrow, fields inside fields, dates.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields};
use serde_json::{Value, json};

use crate::common::{
    Document, contents, decompressed, dedup, documents, fates, lookalike, sentence, summary, write_jsonl,
};
use crate::crawl::gzip;

/// What became of every page, and the ids that are kept.
pub type Fates = BTreeMap<String, (String, String)>;

/// The result of the documents as JSON lines, which every other way to write them must give.
fn expected(root: &Path, documents: &[Document]) -> Fates {
    let path = root.join("expected.jsonl");
    write_jsonl(&path, documents);
    let output = root.join("expected");
    assert_eq!(dedup(&[&path], &output, &[]).code, 0);
    fates(&output)
}

pub fn kept_ids(fates: &Fates) -> Vec<&str> {
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
pub fn batch(documents: &[Document], nested: bool) -> RecordBatch {
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

pub fn arrow(batches: &[RecordBatch], is_file: bool, packing: Option<arrow_ipc::CompressionType>) -> Vec<u8> {
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

pub fn read_arrow(path: &Path) -> Vec<RecordBatch> {
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
