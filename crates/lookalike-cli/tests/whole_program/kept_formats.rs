//! `kept/` in other formats, other compressions and parts, and the dataset card that says what is there.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use crate::common::{decompressed, fates, lookalike, run, sentence, summary, table};
use crate::crawl::{gzip, records};
use crate::dedup::write_parquet;
use crate::outputs::{batches, corpus, names, ran};

#[test]
fn kept_records_can_be_written_in_other_formats() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let line = |n: usize, extra: &str| format!("{{\"id\":\"p{n}\",\"text\":\"{}\"{extra}}}\n", sentence(n % 4, 60));
    let lines = line(0, ",\"n\":1,\"m\":{\"a\":[1, 2]},\"mixed\":1")
        + &line(1, ",\"n\":2.5,\"ok\":true,\"mixed\":\"x\"")
        + &line(4, ",\"gone\":1")
        + &line(2, ",\"n\":null,\"big\":12345678901234567890");
    fs::write(at("a.jsonl.gz"), gzip(lines.as_bytes())).unwrap();
    fs::write(at("b.jsonl"), line(3, ",\"late\":\"a, \\\"b\\\"\\nc\"")).unwrap();
    let inputs = [at("a.jsonl.gz"), at("b.jsonl")];
    let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    ran(&inputs, &at("out-parquet"), &["--kept-format", "parquet"]);
    assert_eq!(names(&at("out-parquet/kept")), ["a.parquet", "b.parquet"]);
    let schema: Vec<String> = batches(&at("out-parquet/kept/b.parquet"))[0]
        .schema()
        .fields()
        .iter()
        .map(|field| format!("{} {}", field.name(), field.data_type()))
        .collect();
    let expected = ["id Utf8", "text Utf8", "n Float64", "m Utf8", "mixed Utf8", "ok Boolean", "big Utf8", "late Utf8"];
    assert_eq!(schema, expected, "all files have the columns of all, without those of dropped records");
    let rows = table(&at("out-parquet/kept/a.parquet"));
    let of = |row: usize, name: &str| rows[row][name].clone();
    assert_eq!([of(0, "id"), of(0, "n"), of(0, "m"), of(0, "ok")], ["p0", "1", "{\"a\":[1, 2]}", ""]);
    assert_eq!([of(1, "n"), of(1, "ok"), of(1, "mixed")], ["2.5", "true", "x"]);
    assert_eq!(rows.iter().map(|row| row["id"].as_str()).collect::<Vec<_>>(), ["p0", "p1", "p2"]);
    assert_eq!(of(2, "big"), "12345678901234567890");

    ran(&inputs, &at("out-csv"), &["--kept-format", "csv", "--kept-compression", "gzip:9"]);
    assert_eq!(names(&at("out-csv/kept")), ["a.csv.gz", "b.csv.gz"]);
    let text = String::from_utf8(decompressed(&at("out-csv/kept/b.csv.gz"))).unwrap();
    let expected = format!("id,text,n,m,mixed,ok,big,late\np3,{},,,,,,\"a, \"\"b\"\"\nc\"\n", sentence(3, 60));
    assert_eq!(text, expected);
    // And back: the pages are the same.
    ran(&[&at("out-csv/kept")], &at("out-lines"), &["--kept-format", "jsonl", "--kept-compression", "none"]);
    assert_eq!(names(&at("out-lines/kept")), ["a.jsonl", "b.jsonl"]);
    let back: Value = serde_json::from_slice(&fs::read(at("out-lines/kept/b.jsonl")).unwrap()).unwrap();
    assert_eq!((&back["late"], &back["n"]), (&Value::from("a, \"b\"\nc"), &Value::from("")));

    write_parquet(&at("rows.parquet"));
    ran(&[&at("rows.parquet")], &at("out-rows"), &["--kept-format", "jsonl"]);
    ran(&[&at("rows.parquet")], &at("out-same"), &["--kept-compression", "zstd"]);
    let objects: Vec<Value> = decompressed(&at("out-rows/kept/rows.jsonl"))
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let same = table(&at("out-same/kept/rows.parquet"));
    assert_eq!(objects.len(), same.len());
    for (object, row) in objects.iter().zip(&same) {
        assert_eq!((&object["id"], &object["text"]), (&Value::from(&*row["id"]), &Value::from(&*row["text"])));
        assert!(object["score"].is_u64());
    }
    let metadata =
        ParquetRecordBatchReaderBuilder::try_new(File::open(at("out-same/kept/rows.parquet")).unwrap()).unwrap();
    let codec = metadata.metadata().row_group(0).column(0).compression();
    assert!(matches!(codec, parquet::basic::Compression::ZSTD(_)), "{codec:?}");
}

#[test]
fn pages_without_fields_become_records_with_the_page_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("pages")).unwrap();
    let page = |topic: usize| format!("<html><title>Topic {topic} é</title><p>{}</p></html>", sentence(topic, 80));
    for (name, topic) in [("a.html", 11), ("b.html", 12), ("c.html", 11)] {
        let latin: Vec<u8> = page(topic).chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        fs::write(at("pages").join(name), latin).unwrap();
    }
    fs::write(at("crawl.warc.gz"), records().iter().flat_map(|record| gzip(record)).collect::<Vec<u8>>()).unwrap();
    let (pages, crawl) = (at("pages"), at("crawl.warc.gz"));
    ran(&[&pages, &crawl], &at("out"), &["--kept-format", "jsonl", "--kept-compression", "none"]);
    assert_eq!(names(&at("out/kept")), ["crawl.jsonl", "pages.jsonl"]);
    let objects = |name: &str| -> Vec<Value> {
        let text = fs::read_to_string(at("out/kept").join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let files = objects("pages.jsonl");
    assert_eq!(files.len(), 2);
    assert_eq!((files[0]["id"].as_str(), files[0]["text"].as_str()), (Some("a.html"), Some(page(11).as_str())));
    assert_eq!(files[0]["title"], "Topic 11 é");
    let captures = objects("crawl.jsonl");
    assert_eq!(captures.len(), 6);
    assert_eq!((&captures[0]["id"], &captures[0]["url"]), (&"urn:uuid:page0".into(), &"http://site.example/0".into()));
    assert!(captures[0]["text"].as_str().unwrap().starts_with("<html><title>Topic 0</title>"));
    // They are pages again, with the same words.
    let words = |output: &str| -> BTreeMap<String, String> {
        let kept =
            fates(&at(output)).into_iter().filter(|(id, fate)| *id == fate.1).map(|row| row.0).collect::<Vec<_>>();
        let rows = table(&at(output).join("pages.parquet"));
        rows.into_iter()
            .filter(|row| kept.contains(&row["id"]))
            .map(|row| (row["id"].clone(), row["text_hash"].clone()))
            .collect()
    };
    ran(&[&at("out/kept")], &at("again"), &[]);
    assert_eq!(words("again"), words("out"));
}

#[test]
fn archives_in_another_compression_are_archives_of_the_same_records() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::write(at("crawl.warc"), records().concat()).unwrap();
    fs::write(at("members.warc.gz"), records().iter().flat_map(|record| gzip(record)).collect::<Vec<u8>>()).unwrap();
    ran(&[&at("crawl.warc")], &at("plain"), &[]);
    let expected = decompressed(&at("plain/kept/crawl.warc"));
    for (input, how, kept) in [
        ("crawl.warc", "gzip", "crawl.warc.gz"),
        ("crawl.warc", "zstd:9", "crawl.warc.zst"),
        ("members.warc.gz", "none", "members.warc"),
        ("members.warc.gz", "zstd", "members.warc.zst"),
    ] {
        let output = at(&format!("out-{input}-{}", &how[..4]));
        ran(&[&at(input)], &output, &["--kept-compression", how]);
        assert_eq!(names(&output.join("kept")), [kept]);
        assert!(decompressed(&output.join("kept").join(kept)) == expected, "{input} {how}");
    }
    // Every record is a member of its own: pages have places in the file.
    let packed = at("out-crawl.warc-gzip/kept/crawl.warc.gz");
    let members = fs::read(&packed).unwrap().windows(3).filter(|bytes| *bytes == [0x1f, 0x8b, 0x08]).count();
    assert!(members >= 16, "{members}");
    ran(&[&at("members.warc.gz")], &at("parts"), &["--split-size", "1KiB", "--removed"]);
    let parts = names(&at("parts/kept"));
    assert!(parts.len() > 2 && parts[0] == "members-00000.warc.gz", "{parts:?}");
    let together: Vec<u8> = parts.iter().flat_map(|part| decompressed(&at("parts/kept").join(part))).collect();
    assert!(together == expected);
}

#[test]
fn parts_of_datasets_keep_their_layout_and_the_card_says_what_they_are() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir_all(at("set/data")).unwrap();
    for name in ["train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"] {
        write_parquet(&at("set/data").join(format!("{name}.parquet")));
    }
    ran(&[&at("set")], &at("out"), &["--removed"]);
    let expected = ["test-00000-of-00001", "train-00000-of-00002", "train-00001-of-00002"];
    assert_eq!(names(&at("out/kept")), expected.map(|name| format!("data/{name}.parquet")));
    let card = fs::read_to_string(at("out/README.md")).unwrap();
    let front = "---\ntags:\n- deduplicated\n- lookalike\nsize_categories:\n- n<1K\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: \"kept/data/test-*\"\n  - split: train\n    path: \"kept/data/train-*\"\n- config_name: removed\n";
    assert!(card.starts_with(front), "{card}");
    let summary = summary(&at("out"));
    for fragment in [
        format!("| pages in the input | {} |", summary["pages"]),
        format!("| kept | {} |", summary["kept"]),
        format!("configuration `{}`", summary["config_hash"].as_str().unwrap()),
        "| `method.threshold` | 0.7 |".to_owned(),
        "data/test-00000-of-00001.parquet | parquet |".to_owned(),
    ] {
        assert!(card.contains(&fragment), "'{fragment}' is missing in: {card}");
    }
    ran(&[&at("set")], &at("parts"), &["--split-size", "2KiB"]);
    let parts = names(&at("parts/kept"));
    assert!(parts.len() > 3 && parts.iter().all(|name| name.starts_with("data/t")), "{parts:?}");
    let rows = |output: &str, stem: &str| -> Vec<BTreeMap<String, String>> {
        let files = names(&at(output).join("kept")).into_iter().filter(|name| name.starts_with(stem));
        files.flat_map(|name| table(&at(output).join("kept").join(name))).collect()
    };
    assert_eq!(rows("parts", "data/test-"), rows("out", "data/test-"));
}

/// The configurations of a dataset card: their names, and the paths of their splits.
fn configurations(output: &Path) -> Vec<(String, BTreeMap<String, Vec<String>>)> {
    let card = fs::read_to_string(output.join("README.md")).unwrap();
    let mut configurations: Vec<(String, BTreeMap<String, Vec<String>>)> = Vec::new();
    let mut split = String::new();
    for line in card.lines().skip(1).take_while(|line| *line != "---").map(str::trim_start) {
        if let Some(name) = line.strip_prefix("- config_name: ") {
            configurations.push((name.to_owned(), BTreeMap::new()));
        } else if let Some(name) = line.strip_prefix("- split: ") {
            split = name.to_owned();
        } else if let Some(path) = line.strip_prefix("path: \"").or_else(|| line.strip_prefix("- \"")) {
            let splits = &mut configurations.last_mut().unwrap().1;
            splits.entry(split.clone()).or_default().push(path.trim_end_matches('"').to_owned());
        }
    }
    configurations
}

#[test]
fn files_of_different_columns_are_configurations_of_their_own() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir_all(at("in/more")).unwrap();
    write_parquet(&at("in/rows.parquet"));
    write_parquet(&at("in/more/train-00000-of-00001.parquet"));
    let line = |topic: usize| format!("{{\"id\":\"l{topic}\",\"text\":\"{}\",\"n\":1}}\n", sentence(topic, 60));
    fs::write(at("in/lines.jsonl"), line(801) + &line(802)).unwrap();
    fs::write(at("in/table.csv"), format!("id,text\nc1,{}\n", sentence(803, 60))).unwrap();
    fs::write(at("in/page.html"), format!("<html><p>{}</p></html>", sentence(804, 60))).unwrap();
    for (name, extra) in [("whole", &[][..]), ("parts", &["--split-size", "2KiB"])] {
        let output = at(name);
        ran(&[&at("in")], &output, &[&["--kept-format", "parquet"], extra].concat());
        let found = configurations(&output);
        assert_eq!(found.iter().map(|row| row.0.as_str()).collect::<Vec<_>>(), ["default", "default-2"]);
        let columns = |path: &String| -> Vec<String> {
            let file = File::open(output.join(path)).unwrap();
            let schema = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().schema().clone();
            schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect()
        };
        let mut listed = Vec::new();
        for (configuration, splits) in &found {
            let paths: Vec<&String> = splits.values().flatten().collect();
            let first = columns(paths[0]);
            assert!(paths.iter().all(|path| columns(path) == first), "{configuration}: {paths:?}");
            listed.extend(paths.into_iter().map(|path| path["kept/".len()..].to_owned()));
        }
        listed.sort();
        assert_eq!(listed, names(&output.join("kept")), "every file is in one of them");
        assert_eq!(
            columns(&found[0].1["train"][0]),
            ["id Utf8", "score UInt32", "text Utf8", "url Utf8"],
            "the largest"
        );
        assert_eq!(columns(&found[1].1["train"][0])[..3], ["id Utf8", "url Utf8", "title Utf8"]);
    }
    // One schema: one configuration, whatever the inputs were.
    fs::remove_file(at("in/rows.parquet")).unwrap();
    fs::remove_dir_all(at("in/more")).unwrap();
    ran(&[&at("in")], &at("same"), &["--kept-format", "parquet"]);
    let all = BTreeMap::from([("train".to_owned(), vec!["kept/**".to_owned()])]);
    assert_eq!(configurations(&at("same")), [("default".to_owned(), all)]);
    // Tables with different headers, as they are.
    fs::write(at("in/other.csv"), format!("id,text,note\nc2,{},x\n", sentence(805, 60))).unwrap();
    ran(&[&at("in/table.csv"), &at("in/other.csv")], &at("tables"), &["--annotate"]);
    let found: Vec<String> = configurations(&at("tables")).into_iter().map(|row| row.0).collect();
    assert_eq!(found, ["default", "default-2", "annotated", "annotated-2"]);
}

#[test]
fn a_readme_of_somebody_else_is_never_overwritten() {
    let root = tempfile::tempdir().unwrap();
    let paths = corpus(root.path());
    let output = root.path().join("out");
    fs::create_dir(&output).unwrap();
    fs::write(output.join("README.md"), "my notes\n").unwrap();
    ran(&[&paths[0]], &output, &["--force"]);
    assert_eq!(fs::read_to_string(output.join("README.md")).unwrap(), "my notes\n");
    assert!(
        fs::read_to_string(output.join("README.lookalike.md")).unwrap().contains("# Pages without near-duplicates")
    );
    // The same on the way to a stricter result in the same place.
    assert_eq!(run(lookalike().arg("recluster").arg(&output).args(["--threshold", "0.95"])).code, 0);
    assert_eq!(fs::read_to_string(output.join("README.md")).unwrap(), "my notes\n");
}
