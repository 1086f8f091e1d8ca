//! `kept/` for folders as Hugging Face's `datasets` lays them out: what describes a dataset goes along, with the numbers of
//! the rows that are left.
//!
//! In: the kept rows of every source. Out: `dataset_info.json` and `dataset_infos.json` with new numbers, without sizes and
//! checksums of the files of before; `state.json` with another fingerprint, so that nothing that was computed from the old
//! rows is taken for these; `dataset_dict.json` as it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::page::{PageOrigin, SourceId};
use crate::report::Findings;

const INFO: &str = "dataset_info.json";
const INFOS: &str = "dataset_infos.json";
const STATE: &str = "state.json";
const DICTIONARY: &str = "dataset_dict.json";

/// Files that describe a dataset and have none of its rows.
pub(super) const DESCRIPTIONS: [&str; 4] = [INFO, INFOS, STATE, DICTIONARY];

/// Of the files of before.
const STALE: [&str; 5] =
    ["dataset_size", "download_size", "size_in_bytes", "download_checksums", "post_processing_size"];
const STALE_IN_SPLITS: [&str; 2] = ["num_bytes", "shard_lengths"];

/// Kept rows by the path of their file below a folder.
type Rows<'a> = Vec<(&'a str, u64)>;

/// Writes what describes the datasets among the sources.
pub(super) fn write(findings: &Findings<'_>, directory: &Path) -> Result<()> {
    let mut folders: BTreeMap<(PathBuf, String), Rows<'_>> = BTreeMap::new();
    let sources = (0..).map(SourceId::from_index).zip(&findings.reading.sources);
    for (index, source) in sources.filter(|(_, source)| source.origin == PageOrigin::Input) {
        let Some(path) = source.location.path().filter(|_| !source.format.is_page_file()) else { continue };
        let kept = findings.pages.pages_of(index).filter(|&page| findings.fates.keeps(page)).count() as u64;
        // A file is in its folder, and in those above it up to the input.
        for (folder, (at, _)) in path.ancestors().skip(1).zip(source.name.rmatch_indices('/').chain([(0, "")])) {
            let below = source.name[at..].trim_start_matches('/');
            folders.entry((folder.to_path_buf(), source.name[..at].to_owned())).or_default().push((below, kept));
        }
    }
    for ((folder, name), rows) in folders {
        let target = directory.join(name);
        let read = |file: &str| -> Option<Value> { serde_json::from_slice(&fs::read(folder.join(file)).ok()?).ok() };
        let put = |file: &str, value: &Value| {
            let path = target.join(file);
            let text = serde_json::to_string_pretty(value).expect("what was parsed can be written");
            fs::write(&path, text + "\n").map_err(Error::io(&path, "write"))
        };
        if let Some(Value::Object(info)) = read(INFO) {
            put(INFO, &Value::Object(counted(info, &rows)))?;
        }
        if let Some(Value::Object(infos)) = read(INFOS) {
            let is_only = infos.len() == 1;
            let info = |(config, info): (String, Value)| {
                let Value::Object(info) = info else { return (config, info) };
                let prefix = format!("{config}/");
                let own: Rows<'_> = if is_only {
                    rows.clone()
                } else {
                    rows.iter().filter_map(|&(path, kept)| Some((path.strip_prefix(&*prefix)?, kept))).collect()
                };
                (config, Value::Object(counted(info, &own)))
            };
            put(INFOS, &Value::Object(infos.into_iter().map(info).collect()))?;
        }
        if let Some(Value::Object(mut state)) = read(STATE).filter(|_| folder.join(INFO).is_file()) {
            let seed = format!(
                "{} {:016x} {rows:?}",
                state.get("_fingerprint").unwrap_or(&Value::Null),
                findings.config.hash()
            );
            state.insert("_fingerprint".to_owned(), format!("{:016x}", xxh3_64(seed.as_bytes())).into());
            put(STATE, &Value::Object(state))?;
        }
        if let Some(splits) = read(DICTIONARY) {
            put(DICTIONARY, &splits)?;
        }
    }
    Ok(())
}

/// A description with the numbers of the kept rows. A split that no file belongs to is left out.
fn counted(mut info: Map<String, Value>, rows: &[(&str, u64)]) -> Map<String, Value> {
    STALE.iter().for_each(|field| drop(info.remove(*field)));
    let Some(Value::Object(splits)) = info.get_mut("splits") else { return info };
    let names: Vec<String> = splits.keys().cloned().collect();
    let of_rows = splits_of(rows, &names);
    splits.retain(|name, split| {
        let own = rows.iter().zip(&of_rows).filter(|row| *row.1 == Some(name.as_str())).map(|row| row.0);
        let counts: Vec<u64> = own.map(|row| row.1).collect();
        if let Value::Object(split) = split {
            STALE_IN_SPLITS.iter().for_each(|field| drop(split.remove(*field)));
            split.insert("num_examples".to_owned(), counts.iter().sum::<u64>().into());
        }
        !counts.is_empty()
    });
    info
}

/// Names that files of the usual splits have, as `datasets` recognises them.
const SPLIT_WORDS: [&[&str]; 3] =
    [&["train", "training"], &["validation", "valid", "val", "dev"], &["test", "testing", "eval", "evaluation"]];

/// The split that each file belongs to: by its name, `train-00000-of-00002.parquet`, or by its folder, or because there is no
/// other and nothing says that it is of one that is not described.
fn splits_of<'n>(rows: &[(&str, u64)], names: &'n [String]) -> Vec<Option<&'n str>> {
    let by_name: Vec<Option<&str>> = rows.iter().map(|(path, _)| split_named(path, names)).collect();
    let only = match names {
        [only] if by_name.iter().all(Option::is_none) => Some(only.as_str()),
        _ => None,
    };
    let is_of = |path: &str, only: &str| {
        let usual =
            SPLIT_WORDS.iter().find(|words| path.split('/').any(|part| words.iter().any(|word| is_named(part, word))));
        usual.is_none_or(|words| words.contains(&only))
    };
    let files = rows.iter().zip(by_name);
    files.map(|((path, _), named)| named.or_else(|| only.filter(|only| is_of(path, only)))).collect()
}

/// Whether a file or folder has the name of a split.
fn is_named(part: &str, split: &str) -> bool {
    part.strip_prefix(split).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
}

/// The split that a path names.
fn split_named<'n>(path: &str, names: &'n [String]) -> Option<&'n str> {
    path.rsplit('/').find_map(|part| names.iter().find(|name| is_named(part, name))).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_those_of_the_rows_that_are_left() {
        let info = json!({
            "description": "x",
            "dataset_size": 9,
            "splits": {
                "train": {"name": "train", "num_examples": 10, "num_bytes": 9, "shard_lengths": [5, 5]},
                "test": {"name": "test", "num_examples": 3},
                "other": {"name": "other", "num_examples": 3},
            },
        });
        let Value::Object(info) = info else { panic!() };
        let rows = [
            ("data/train-00000-of-00002.parquet", 4),
            ("data/train-00001-of-00002.parquet", 2),
            ("test/data.arrow", 1),
        ];
        assert_eq!(
            Value::Object(counted(info, &rows)),
            json!({
                "description": "x",
                "splits": {"train": {"name": "train", "num_examples": 6}, "test": {"name": "test", "num_examples": 1}},
            })
        );
    }

    #[test]
    fn files_of_a_split_that_is_not_described_are_not_counted_for_another() {
        let splits = |paths: &[&'static str], names: &[&str]| -> Vec<Option<String>> {
            let rows: Vec<(&str, u64)> = paths.iter().map(|path| (*path, 1)).collect();
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            splits_of(&rows, &names).into_iter().map(|split| split.map(str::to_owned)).collect()
        };
        let train = || Some("train".to_owned());
        assert_eq!(splits(&["data-00000-of-00001.arrow"], &["train"]), [train()]);
        assert_eq!(splits(&["training.parquet"], &["train", "test"]), [None]);
        assert_eq!(splits(&["training.parquet"], &["train"]), [train()]);
        assert_eq!(splits(&["data/train-00000.parquet", "data/test-00000.parquet"], &["train"]), [train(), None]);
        assert_eq!(splits(&["data/train-00000.parquet", "data/more-00000.parquet"], &["train"]), [train(), None]);
        assert_eq!(splits(&["data/test-00000.parquet"], &["train"]), [None]);
        assert_eq!(splits(&["dev/rows.jsonl"], &["validation"]), [Some("validation".to_owned())]);
    }
}
