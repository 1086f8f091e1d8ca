//! What is written besides the tables: kept and removed records, whole or in parts, the same again by `recluster` and on any
//! number of threads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::{
    contents, decompressed, dedup, documents, fates, lookalike, run, sentence, summary, table, write_jsonl,
};
use crate::crawl::{gzip, records};
use crate::dedup::{write_csv, write_parquet};

/// The lines of a file, decompressed, with their line ends.
fn lines(path: &Path) -> Vec<Vec<u8>> {
    decompressed(path).split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

pub fn batches(path: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    reader.map(Result::unwrap).collect()
}

/// The files below a directory, by name.
pub fn names(directory: &Path) -> Vec<String> {
    contents(directory).into_keys().collect()
}

pub fn ran(inputs: &[&Path], output: &Path, extra: &[&str]) {
    let ran = dedup(inputs, output, extra);
    assert_eq!(ran.code, 0, "{extra:?}: {}", ran.stderr);
}

/// The documents as lines, in two files, one of them compressed; some lines are not records.
pub fn corpus(directory: &Path) -> [PathBuf; 2] {
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
    // The same once more is no other result; another one is.
    let before = contents(&second);
    recluster(&second, &[]);
    assert!(contents(&second) == before);
    let other = run(lookalike().arg("recluster").arg(&first).args(["--threshold", "0.99", "--output"]).arg(&second));
    assert!(other.code == 1 && other.stderr.contains("--replace"), "{} {}", other.code, other.stderr);
    assert!(contents(&second) == before);
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
