//! Same command, same bytes out: any threads, any memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;

use crate::common::{contents, dedup, documents, fates, sentence, summary, write_jsonl};
use flate2::Compression;
use flate2::write::GzEncoder;

#[test]
fn the_same_bytes_for_any_threads_with_every_keep_policy() {
    let root = tempfile::tempdir().unwrap();
    let documents = documents();
    let mut inputs = Vec::new();
    for (number, part) in documents.chunks(documents.len() / 5 + 1).enumerate() {
        let path = root.path().join(format!("part-{number}.jsonl"));
        write_jsonl(&path, part);
        inputs.push(path);
    }
    let packed = root.path().join("part-9.jsonl.gz");
    let mut encoder = GzEncoder::new(File::create(&packed).unwrap(), Compression::default());
    encoder
        .write_all(crate::common::Document { id: "again".to_owned(), ..documents[7].clone() }.json().as_bytes())
        .unwrap();
    encoder.finish().unwrap();
    inputs.push(packed);
    let mut kept_pages = BTreeSet::new();
    for keep in ["first", "longest", "newest", "shortest-url", "max:score"] {
        let mut first = None;
        let order = [2, 4, 0, 5, 1, 3].map(|at: usize| inputs[at].as_path());
        for threads in ["1", "2", "4"] {
            let output = root.path().join(format!("out-{threads}"));
            let ran = dedup(&order, &output, &["--keep", keep, "--threads", threads, "--jsonl"]);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            let bytes = contents(&output);
            assert!(bytes.len() >= 15, "{:?}", bytes.keys());
            match &first {
                None => first = Some(bytes),
                Some(first) => {
                    for (name, content) in first {
                        assert!(
                            bytes.get(name) == Some(content),
                            "{name} differs with {threads} threads and --keep {keep}"
                        );
                    }
                    assert_eq!(first.len(), bytes.len());
                }
            }
        }
        let output = root.path().join("out-1");
        kept_pages.insert(
            fates(&output).into_iter().filter(|(id, fate)| *id == fate.1).map(|(id, _)| id).collect::<Vec<_>>(),
        );
    }
    assert_eq!(kept_pages.len(), 5, "every policy keeps other pages");
}

#[test]
fn the_same_bytes_with_many_batches_crowded_buckets_chains_and_little_memory() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("docs.jsonl");
    // Several megabytes: groups of pages that share a window of their topic's words, shifted a
    // little from page to page, so that there are chains, crowds and near misses.
    let page = |number: usize| {
        let words: Vec<String> = sentence(number / 12, 520).split(' ').map(str::to_owned).collect();
        let shift = number % 12 * 9;
        let text = words[shift..shift + 400].join(" ");
        crate::common::Document { id: format!("p{number}"), text, url: String::new(), score: 0, date: String::new() }
    };
    write_jsonl(&input, &(0..2400).map(page).collect::<Vec<_>>());
    assert!(fs::metadata(&input).unwrap().len() > 4 << 20);
    for cluster in ["star", "components"] {
        let mut first: Option<BTreeMap<String, Vec<u8>>> = None;
        for (threads, memory) in [("1", "1GiB"), ("2", "98MiB"), ("4", "1GiB")] {
            let output = root.path().join(format!("out-{threads}"));
            let extra = ["--cluster", cluster, "--bucket-limit", "8", "--threads", threads, "--memory", memory];
            assert_eq!(dedup(&[&input], &output, &extra).code, 0);
            let bytes = contents(&output);
            assert!(first.as_ref().is_none_or(|first| *first == bytes), "{cluster} with {threads} threads");
            first = Some(bytes);
        }
        let summary = summary(&root.path().join("out-1"));
        assert!(summary["capped_buckets"].as_u64().unwrap() > 0 && summary["near_misses"].as_u64().unwrap() > 0);
    }
}
