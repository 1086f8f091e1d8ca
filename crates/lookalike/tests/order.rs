//! The order of the stages: a folder of the library uses only folders before it.

#![allow(clippy::unwrap_used)] // a test

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The order, as ARCHITECTURE.md draws it. Names in one row may use each other.
const ORDER: &[&[&str]] = &[
    &[
        "error",
        "files",
        "names",
        "size",
        "random",
        "page",
        "observe",
        "parallel",
        "spill",
        "union_find",
        "kernel",
        "machine",
    ],
    &["read"],
    &["text"],
    &["feature"],
    &["sketch"],
    &["plan"],
    &["sketcher"],
    &["page_table"],
    &["candidate"],
    &["verify"],
    &["cluster"],
    &["method"],
    &["config"],
    &["corpus_stats"],
    &["work_dir"],
    &["index"],
    &["online"],
    &["report"],
    &["job"],
    &["refine"],
    &["transfer"],
    &["evaluate"],
    &["unstable"],
];

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The folder or file below `src` that a module belongs to.
fn stage(path: &Path, source: &Path) -> String {
    let first = path.strip_prefix(source).unwrap().components().next().unwrap();
    first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned()
}

#[test]
fn stages_use_only_stages_before_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    files(&source, &mut found);
    let place = |stage: &str| ORDER.iter().position(|row| row.contains(&stage));
    let mut against: BTreeSet<(String, String)> = BTreeSet::new();
    for path in found {
        let stage = stage(&path, &source);
        if stage == "lib" || path.ends_with("tests.rs") {
            continue;
        }
        let own = place(&stage).unwrap_or_else(|| panic!("{stage} has no place in the order"));
        let text = fs::read_to_string(&path).unwrap();
        // Unit tests end a file, and may use anything.
        let end = text.rfind("\n#[cfg(test)]\n").filter(|&at| text[at..].contains("\nmod tests {"));
        let text = &text[..end.unwrap_or(text.len())];
        for part in text.split("crate::").skip(1) {
            let used: String = part.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            if used != stage && place(&used).is_some_and(|used| used > own) {
                against.insert((stage.clone(), used));
            }
        }
    }
    assert!(against.is_empty(), "these use what comes after them: {against:?}");
}
