//! What is written besides the tables: kept, removed and annotated records, in their own or in other formats, whole or in
//! parts; the dataset card; captures over time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use crate::common::{
    contents, decompressed, dedup, documents, fates, lookalike, run, sentence, summary, table, write_jsonl,
};
use crate::crawl::{gzip, record, records, response};
use crate::dedup::{write_csv, write_parquet};

/// The lines of a file, decompressed, with their line ends.
fn lines(path: &Path) -> Vec<Vec<u8>> {
    decompressed(path).split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn batches(path: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    reader.map(Result::unwrap).collect()
}

/// The files below a directory, by name.
fn names(directory: &Path) -> Vec<String> {
    contents(directory).into_keys().collect()
}

fn ran(inputs: &[&Path], output: &Path, extra: &[&str]) {
    let ran = dedup(inputs, output, extra);
    assert_eq!(ran.code, 0, "{extra:?}: {}", ran.stderr);
}

/// The documents as lines, in two files, one of them compressed; some lines are not records.
fn corpus(directory: &Path) -> [PathBuf; 2] {
    let all = documents();
    let (first, second) = all.split_at(all.len() / 3);
    let paths = [directory.join("a.jsonl"), directory.join("b.jsonl.gz")];
    write_jsonl(&paths[0], first);
    let plain = directory.join("plain");
    write_jsonl(&plain, second);
    fs::write(&paths[1], gzip(&fs::read(&plain).unwrap())).unwrap();
    fs::remove_file(plain).unwrap();
    paths
}

#[test]
fn kept_and_removed_lines_are_the_input_and_the_table_says_which_is_where() {
    let root = tempfile::tempdir().unwrap();
    let paths = corpus(root.path());
    for split in [None, Some("2KiB")] {
        let extra =
            ["--removed", "--jsonl"].into_iter().chain(split.into_iter().flat_map(|size| ["--split-size", size]));
        let extra: Vec<&str> = extra.collect();
        let output = root.path().join(format!("out-{}", split.unwrap_or_default()));
        ran(&[&paths[0], &paths[1]], &output, &extra);
        let fates = fates(&output);
        let rows = table(&output.join("removed.parquet"));
        assert_eq!(rows.len() as u64, summary(&output)["dropped"].as_u64().unwrap());
        let as_lines = fs::read_to_string(output.join("removed.jsonl")).unwrap();
        assert_eq!(as_lines.lines().count(), rows.len());
        let mut of_source: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
        for row in &rows {
            let input = lines(Path::new(&row["source"]));
            let file = lines(&output.join("removed").join(&row["removed_file"]));
            let number = |name: &str| row[name].parse::<usize>().unwrap() - 1;
            assert_eq!(file[number("removed_record")], input[number("record")], "{row:?}");
            let kind = &fates[&row["id"]];
            assert_eq!((&row["kind"], &row["kept_id"]), (&kind.0, &kind.1));
            of_source.entry(&row["source"]).or_default().push(file[number("removed_record")].clone());
        }
        for path in &paths {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let (stem, ending) = name.split_once('.').unwrap();
            let parts = |directory: &str| -> Vec<Vec<u8>> {
                let files = names(&output.join(directory)).into_iter().filter(|file| file.starts_with(stem));
                let files: Vec<String> = files.collect();
                match split {
                    None => assert_eq!(files, std::slice::from_ref(&name)),
                    Some(_) => {
                        assert!(files.len() > 1, "{files:?}");
                        for (number, file) in files.iter().enumerate() {
                            assert_eq!(*file, format!("{stem}-{number:05}.{ending}"));
                            let path = output.join(directory).join(file);
                            assert!(decompressed(&path).len() <= 2048 || lines(&path).len() == 1, "{file}");
                        }
                    }
                }
                files.iter().flat_map(|file| lines(&output.join(directory).join(file))).collect()
            };
            let (kept, removed, input) = (parts("kept"), parts("removed"), lines(path));
            assert_eq!(of_source[path.to_str().unwrap()], removed, "all that is there is in the table");
            let mut together = [kept, removed].concat();
            let mut input = input.clone();
            together.sort();
            input.sort();
            assert_eq!(together, input);
        }
    }
}

#[test]
fn kept_and_removed_records_of_every_format_are_the_input() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    write_csv(&at("table.csv"), ',');
    write_parquet(&at("rows.parquet"));
    let news: String = documents()
        .iter()
        .map(|d| format!("<DOC>\n<DOCNO> {} </DOCNO>\n<TEXT>\n{}\n</TEXT>\n</DOC>\n", d.id, d.text))
        .collect();
    fs::write(at("news.trec"), &news).unwrap();
    fs::write(at("crawl.warc"), records().concat()).unwrap();
    fs::write(at("members.warc.gz"), records().iter().flat_map(|record| gzip(record)).collect::<Vec<u8>>()).unwrap();
    fs::write(at("stream.warc.gz"), gzip(&records().concat())).unwrap();
    fs::create_dir(at("pages")).unwrap();
    for document in documents() {
        fs::write(at("pages").join(format!("{}.txt", document.id)), &document.text).unwrap();
    }
    for name in ["table.csv", "rows.parquet", "news.trec", "crawl.warc", "members.warc.gz", "stream.warc.gz"] {
        let output = at(&format!("out-{name}"));
        ran(&[&at(name)], &output, &["--removed"]);
        let (kept, removed) = (output.join("kept").join(name), output.join("removed").join(name));
        let rows = table(&output.join("removed.parquet"));
        assert!(rows.len() > 1 && rows.iter().all(|row| row["removed_file"] == name), "{name}: {rows:?}");
        // What is removed is input again, with the ids and in the order of the table.
        let again = at(&format!("again-{name}"));
        ran(&[&removed], &again, &[]);
        let pages = table(&again.join("pages.parquet"));
        let places = |row: &BTreeMap<String, String>, record: &str| (row["id"].clone(), row[record].clone());
        assert_eq!(
            pages.iter().map(|row| places(row, "record")).collect::<Vec<_>>(),
            rows.iter().map(|row| places(row, "removed_record")).collect::<Vec<_>>(),
            "{name}"
        );
        let sorted = |mut records: Vec<Vec<u8>>| {
            records.sort();
            records
        };
        match name {
            "table.csv" => {
                let of = |path: &Path| {
                    let text = String::from_utf8(decompressed(path)).unwrap();
                    text.split_inclusive("\r\n").map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>()
                };
                let (kept, removed, all) = (of(&kept), of(&removed), of(&at(name)));
                assert_eq!((&kept[0], &removed[0]), (&all[0], &all[0]), "both have the header");
                assert_eq!(sorted([&kept[1..], &removed[1..]].concat()), sorted(all[1..].to_vec()));
            }
            "rows.parquet" => {
                let rows = |path: &Path| table(path).into_iter().map(|row| format!("{row:?}").into_bytes()).collect();
                assert_eq!(sorted([rows(&kept), rows(&removed)].concat()), sorted(rows(&at(name))));
                assert_eq!(batches(&removed)[0].schema(), batches(&at(name))[0].schema());
            }
            "news.trec" => {
                let of = |path: &Path| {
                    let text = String::from_utf8(decompressed(path)).unwrap();
                    text.split_inclusive("</DOC>").map(|doc| doc.trim_start().as_bytes().to_vec()).collect::<Vec<_>>()
                };
                let together = sorted([of(&kept), of(&removed)].concat());
                let together: Vec<_> = together.into_iter().filter(|doc| !doc.is_empty()).collect();
                assert_eq!(together, sorted(of(&at(name)).into_iter().filter(|doc| !doc.is_empty()).collect()));
            }
            _ => {
                let of = |path: &Path| {
                    let text = String::from_utf8_lossy(&decompressed(path)).into_owned();
                    text.split("WARC/1.0\r\n").skip(1).map(|record| record.as_bytes().to_vec()).collect::<Vec<_>>()
                };
                assert_eq!(sorted([of(&kept), of(&removed)].concat()), sorted(of(&at(name))));
            }
        }
    }
    let output = at("out-pages");
    ran(&[&at("pages")], &output, &["--removed", "--copy-kept"]);
    let (kept, removed) = (contents(&output.join("kept")), contents(&output.join("removed")));
    let mut together: BTreeMap<String, Vec<u8>> = kept.into_iter().chain(removed.clone()).collect();
    together.remove("kept.txt").unwrap();
    assert_eq!(together, contents(&at("pages")));
    let rows = table(&output.join("removed.parquet"));
    assert_eq!(
        rows.iter().map(|row| row["removed_file"].clone()).collect::<BTreeSet<_>>(),
        removed.into_keys().collect()
    );
}

/// What `annotated/` must say of a page.
fn expected_fields(output: &Path) -> BTreeMap<String, [String; 6]> {
    let rows = table(&output.join("clusters.parquet"));
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    rows.iter().for_each(|row| *sizes.entry(&row["cluster"]).or_default() += 1);
    let fields = |row: &BTreeMap<String, String>| {
        let size = sizes[row["cluster"].as_str()].to_string();
        let of = |name: &str| row[name].clone();
        [of("cluster"), size, of("kept"), of("kept_id"), of("similarity"), of("kind")]
    };
    rows.iter().map(|row| (row["id"].clone(), fields(row))).collect()
}

const FIELDS: [&str; 6] = ["cluster", "cluster_size", "kept", "kept_id", "similarity", "kind"];

#[test]
fn annotated_records_are_the_input_with_what_became_of_them() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    // Lines of every shape: spaces, carriage returns, no line end, no JSON, no text, and names that are taken.
    let mut text: Vec<u8> = b"\xef\xbb\xbf".to_vec();
    for (number, document) in documents().iter().enumerate() {
        let line = document.json();
        text.extend_from_slice(
            match number % 4 {
                0 => line.as_bytes().to_vec(),
                1 => line.replace("}\n", " } \r\n").into_bytes(),
                2 => line.replace("}\n", ",\"lookalike_kept\":\"mine\",\"x\":{\"y\":1}}\n").into_bytes(),
                _ => [b"\nnot JSON\n{\"id\": 5}\n".to_vec(), line.into_bytes()].concat(),
            }
            .as_slice(),
        );
    }
    text.pop();
    fs::write(at("docs.jsonl.zst"), zstd::encode_all(&text[..], 3).unwrap()).unwrap();
    let output = at("out");
    let result = dedup(&[&at("docs.jsonl.zst")], &output, &["--annotate"]);
    assert_eq!(result.code, 3, "{}", result.stderr);
    let expected = expected_fields(&output);
    let annotated = decompressed(&output.join("annotated/docs.jsonl.zst"));
    let mut without = Vec::new();
    let mut seen = 0;
    for line in annotated.split_inclusive(|&byte| byte == b'\n') {
        let line = String::from_utf8(line.to_vec()).unwrap();
        let Some(from) = line.find(",\"lookalike_cluster\":").or_else(|| line.find(",\"lookalike_2_cluster\":")) else {
            without.extend_from_slice(line.as_bytes());
            continue;
        };
        let object: Value = serde_json::from_str(line.trim_start_matches('\u{feff}')).unwrap();
        let prefix = if object["lookalike_kept"] == "mine" { "lookalike_2_" } else { "lookalike_" };
        let found = FIELDS.map(|name| match &object[format!("{prefix}{name}")] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.as_f64().unwrap().to_string(),
            other => other.to_string(),
        });
        assert_eq!(found, expected[object["id"].as_str().unwrap()]);
        let end = line.rfind('}').unwrap();
        without.extend_from_slice((line[..from].to_owned() + &line[end..]).as_bytes());
        seen += 1;
    }
    assert_eq!(seen, expected.len());
    assert!(without == text, "nothing else changes");

    // Tables: the header and every record get cells; a record without all cells gets empty ones first.
    let mut csv = String::from("id;text;note\r\n");
    for document in documents() {
        csv += &format!(
            "{};\"{}\"{}\r\n",
            document.id,
            document.text,
            if document.id.len() == 2 { "" } else { ";a \"\" b" }
        );
    }
    fs::write(at("table.csv"), &csv).unwrap();
    ran(&[&at("table.csv")], &at("out-csv"), &["--annotate", "--split-size", "4KiB"]);
    let parts = names(&at("out-csv/annotated"));
    assert!(parts.len() > 3 && parts[0] == "table-00000.csv", "{parts:?}");
    let mut records = Vec::new();
    for part in &parts {
        let text = fs::read_to_string(at("out-csv/annotated").join(part)).unwrap();
        let (header, rest) = text.split_once("\r\n").unwrap();
        assert_eq!(header, format!("id;text;note;{}", FIELDS.map(|name| format!("lookalike_{name}")).join(";")));
        records.extend(rest.lines().map(str::to_owned));
    }
    let expected = expected_fields(&at("out-csv"));
    assert_eq!(records.len(), expected.len());
    for (line, original) in records.iter().zip(csv.lines().skip(1)) {
        let id = original.split(';').next().unwrap();
        let padding = if id.len() == 2 { ";" } else { "" };
        assert_eq!(*line, format!("{original}{padding};{}", expected[id].join(";")));
    }

    // Parquet: columns behind the others, of which nothing changes.
    write_parquet(&at("rows.parquet"));
    ran(&[&at("rows.parquet")], &at("out-rows"), &["--annotate"]);
    let expected = expected_fields(&at("out-rows"));
    let annotated = at("out-rows/annotated/rows.parquet");
    let (before, after) = (batches(&at("rows.parquet")), batches(&annotated));
    let columns: Vec<usize> = (0..4).collect();
    assert_eq!(after[0].project(&columns).unwrap().columns(), before[0].columns());
    assert_eq!(after[0].schema().fields()[..4], before[0].schema().fields()[..]);
    for row in table(&annotated) {
        assert_eq!(FIELDS.map(|name| row[&format!("lookalike_{name}")].clone()), expected[&row["id"]]);
    }
    // Once more: the names are taken now.
    ran(&[&annotated], &at("out-twice"), &["--annotate"]);
    let twice = batches(&at("out-twice/annotated/rows.parquet"));
    assert_eq!(twice[0].schema().field(10).name(), "lookalike_2_cluster");
}

#[test]
fn what_cannot_be_is_refused_at_the_start() {
    let root = tempfile::tempdir().unwrap();
    let (archive, output) = (root.path().join("crawl.warc"), root.path().join("out"));
    fs::write(&archive, records().concat()).unwrap();
    for (extra, message) in [
        (&["--annotate"][..], "clusters.parquet"),
        (&["--no-kept", "--kept-format", "jsonl"], "--no-kept"),
        (&["--no-kept", "--revisit"], "--no-kept"),
        (&["--kept-format", "csv", "--revisit"], "--kept-format"),
        (&["--kept-compression", "zstd:99"], "zstd:22"),
        (&["--kept-format", "xml"], "parquet"),
        (&["--split-size", "10"], "1 KiB"),
    ] {
        let refused = dedup(&[&archive], &output, extra);
        assert_eq!(refused.code, 2, "{extra:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(message), "{extra:?}: {}", refused.stderr);
        assert!(!output.exists());
    }
    ran(&[&archive], &output, &["--no-kept", "--removed"]);
    assert!(!output.join("kept").exists() && output.join("removed/crawl.warc").exists());
}

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

#[test]
fn recluster_writes_what_the_first_run_wrote() {
    let root = tempfile::tempdir().unwrap();
    let paths = corpus(root.path());
    let (first, second) = (root.path().join("first"), root.path().join("second"));
    let extra = ["--removed", "--annotate", "--kept-format", "parquet", "--split-size", "2KiB"];
    ran(&[&paths[0], &paths[1]], &first, &extra);
    let recluster = |output: &Path, extra: &[&str]| {
        let ran = run(lookalike()
            .arg("recluster")
            .arg(&first)
            .args(["--threshold", "0.97", "--output"])
            .arg(output)
            .args(extra));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    };
    recluster(&second, &[]);
    // What that threshold gives when it is asked for from the start.
    let fresh = root.path().join("fresh");
    ran(&[&paths[0], &paths[1]], &fresh, &[&extra[..], &["--threshold", "0.97"]].concat());
    assert!(table(&second.join("removed.parquet")).len() < table(&first.join("removed.parquet")).len());
    assert_eq!(table(&second.join("removed.parquet")), table(&fresh.join("removed.parquet")));
    for directory in ["kept", "removed", "annotated"] {
        assert!(contents(&second.join(directory)) == contents(&fresh.join(directory)), "{directory}");
    }
    let third = root.path().join("third");
    recluster(&third, &["--kept-format", "csv"]);
    assert_eq!(names(&third.join("kept"))[0], "a-00000.csv");
}

#[test]
fn all_outputs_have_the_same_bytes_on_any_number_of_threads_and_after_a_failure() {
    let root = tempfile::tempdir().unwrap();
    let inputs = root.path().join("in");
    fs::create_dir(&inputs).unwrap();
    write_jsonl(&inputs.join("a.jsonl"), &documents());
    // A unit of its own, with a line that stops a strict run.
    let filler = "x".repeat(34 << 20);
    let line = format!("{{\"id\": \"b\", \"text\": \"{}\", \"other\": \"{filler}\"}}\nnot JSON\n", sentence(7, 120));
    fs::write(inputs.join("b.jsonl"), line).unwrap();
    let extra = ["--removed", "--annotate", "--kept-format", "csv", "--split-size", "64KiB", "--jsonl"];
    let outputs = ["1", "4"].map(|threads| {
        let output = root.path().join(format!("out-{threads}"));
        let done = dedup(&[&inputs], &output, &[&extra[..], &["--threads", threads]].concat());
        assert_eq!(done.code, 3, "{}", done.stderr);
        contents(&output)
    });
    assert!(outputs[0] == outputs[1]);
    for name in ["README.md", "removed.parquet", "removed.jsonl"] {
        assert!(outputs[0].contains_key(name), "{name}");
    }
    let resumed = root.path().join("resumed");
    assert_eq!(dedup(&[&inputs], &resumed, &[&extra[..], &["--strict"]].concat()).code, 1);
    assert_eq!(dedup(&[&inputs], &resumed, &[&extra[..], &["--resume"]].concat()).code, 3);
    assert!(contents(&resumed) == outputs[0]);
}

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
