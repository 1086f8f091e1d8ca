//! Files that released versions wrote, opened by this one. `tests/fixtures/README.md` says how they were made.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Ran, contents, lookalike, newsroom, run, table};

/// The fixtures of every release, each in a folder of its own that tests may write to.
fn releases() -> Vec<(String, TempDir)> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut releases: Vec<PathBuf> = files_of(&fixtures).into_iter().filter(|path| path.is_dir()).collect();
    assert!(!releases.is_empty());
    releases.sort();
    releases
        .into_iter()
        .map(|release| {
            let directory = tempfile::tempdir().unwrap();
            copy(&release, directory.path());
            for archive in files_of(&directory.path().join("indexes")).iter().filter(|path| path.is_file()) {
                let unpacked =
                    Command::new("tar").arg("--zstd").arg("-xf").arg(archive).current_dir(&directory).status();
                assert!(unpacked.unwrap().success(), "{}", archive.display());
            }
            (release.file_name().unwrap().to_string_lossy().into_owned(), directory)
        })
        .collect()
}

fn files_of(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in files_of(from) {
        let copied = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &copied);
        } else {
            fs::copy(&path, &copied).unwrap();
        }
    }
}

/// Runs a command that must succeed.
fn done(arguments: &[&str], at: &Path) -> Ran {
    let ran = run(lookalike().args(arguments).current_dir(at));
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    ran
}

fn json(arguments: &[&str], at: &Path) -> Value {
    serde_json::from_str(&done(arguments, at).stdout).unwrap()
}

fn results(at: &Path) -> Vec<String> {
    let mut names: Vec<String> = files_of(&at.join("results"))
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The columns of clusters in all versions.
const CLUSTER_COLUMNS: [&str; 7] = ["id", "cluster", "kept", "kept_id", "similarity", "kind", "component"];

/// Some columns of a table, one row per line.
fn columns(path: &Path, names: &[&str]) -> String {
    table(path).iter().fold(String::new(), |mut text, row| {
        let cells: Vec<&str> = names.iter().map(|&name| row[name].as_str()).collect();
        writeln!(text, "  {}", cells.join("  ")).unwrap();
        text
    })
}

/// The threshold of a method that decides by similarity; the others take every pair that they stored.
fn own_threshold(result: &str) -> &str {
    match result {
        "minhash" | "bloom" => "0.7",
        "minhash-settings" => "0.35",
        "bloom-settings" => "0.5",
        "spotsigs" => "0.25",
        "spotsigs-settings" => "0.3",
        _ => "0.01",
    }
}

#[test]
fn results_are_clustered_again() {
    for (release, directory) in releases() {
        let at = directory.path();
        let mut stricter = String::new();
        for result in results(at) {
            let stored = format!("results/{result}");
            let same = format!("same/{result}");
            done(&["recluster", &stored, "--threshold", own_threshold(&result), "--output", &same], at);
            let (stored_files, same_files) = (contents(&at.join(&stored)), contents(&at.join(&same)));
            for (name, bytes) in stored_files.iter().filter(|(name, _)| *name != "summary.json") {
                // The table of clusters has got a column more.
                if name.starts_with("clusters.") {
                    let table = "clusters.parquet";
                    let columns = |directory: &str| columns(&at.join(directory).join(table), &CLUSTER_COLUMNS);
                    assert_eq!(columns(&same), columns(&stored), "{release}: {result}");
                    continue;
                }
                assert!(same_files.get(name) == Some(bytes), "{release}: {result}: {name} differs");
            }
            // What was written now is read like what was written then.
            let strict = format!("strict/{result}");
            done(&["recluster", &same, "--threshold", "0.75", "--output", &strict], at);
            let in_place = done(&["recluster", &stored, "--threshold", "0.75"], at);
            assert_eq!(in_place.stdout, "");
            let clusters = at.join(&stored).join("clusters.parquet");
            assert_eq!(fs::read(&clusters).unwrap(), fs::read(at.join(&strict).join("clusters.parquet")).unwrap());
            let fates = columns(&clusters, &["id", "kind", "kept_id", "similarity"]);
            let others: String = fates.split_inclusive('\n').filter(|line| !line.contains(" unique ")).collect();
            write!(stricter, "{result}\n{others}").unwrap();
        }
        insta::assert_snapshot!(format!("{release}_recluster"), stricter);
    }
}

#[test]
fn every_page_of_a_result_is_explained() {
    for (release, directory) in releases() {
        let at = directory.path();
        for result in results(at) {
            let within = format!("results/{result}");
            let rows = table(&at.join(&within).join("clusters.parquet"));
            let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str()).collect();
            let found = json(&[&["explain", &within, "--json"], &ids[..]].concat(), at);
            let pages = found["pages"].as_array().unwrap();
            assert_eq!(pages.len(), rows.len(), "{release}: {result}");
            for (page, row) in pages.iter().zip(&rows) {
                let dropped = row["id"] != row["kept_id"];
                assert_eq!(page["is_kept"], !dropped, "{release}: {result}: {page}");
                // Near-duplicates have a verified pair, or a chain of them.
                let evidence = page.get("evidence").or(page.get("chain"));
                let is_near = row["kind"] == "near" || row["kind"] == "contained";
                assert_eq!(evidence.is_some(), is_near, "{release}: {result}: {page}");
            }
            let clusters = json(&["clusters", &within, "--json"], at);
            let listed =
                clusters["clusters"].as_array().unwrap().iter().map(|group| group["dropped"].as_array().unwrap());
            let dropped = rows.iter().filter(|row| row["id"] != row["kept_id"]).count();
            assert_eq!(listed.map(Vec::len).sum::<usize>(), dropped, "{release}: {result}");
        }
    }
}

#[test]
fn pages_of_results_are_compared() {
    for (release, directory) in releases() {
        let at = directory.path();
        let mut said = String::new();
        for result in results(at) {
            let within = format!("results/{result}");
            let pages = ["metro-now/bridge.html", "wire-north/bridge.html"];
            let compared = json(&["compare", pages[0], pages[1], "--json", "--in", &within], at);
            writeln!(said, "{result}: {} and {} words", compared["left"]["tokens"], compared["right"]["tokens"])
                .unwrap();
            if result == "minhash" {
                for method in compared["methods"].as_array().unwrap() {
                    let facts = ["method", "near_duplicate", "score", "similarity"].map(|key| method[key].to_string());
                    writeln!(said, "  {}", facts.join(" ")).unwrap();
                }
            }
        }
        insta::assert_snapshot!(format!("{release}_compare"), said);
    }
}

#[test]
fn a_new_corpus_is_held_against_results_and_indexes() {
    for (release, directory) in releases() {
        let at = directory.path();
        let valley_post = newsroom().join("valley-post");
        let valley_post = valley_post.to_str().unwrap();
        let mut dropped = String::new();
        for (against, input, method) in [
            ("results/minhash", valley_post, "minhash"),
            ("results/bloom", valley_post, "bloom"),
            ("results/spotsigs", valley_post, "spotsigs"),
            ("results/simhash", "morning-lantern", "simhash"),
            ("indexes/pages", "morning-lantern", "simhash"),
            ("indexes/pages-alone", "morning-lantern", "simhash"),
            ("indexes/served", "morning-lantern", "simhash"),
            ("indexes/killed", "pages.jsonl.gz", "simhash"),
        ] {
            let output = format!("against/{against}");
            // What was compared then by default.
            let flags = ["--method", method, "--content", "core", "--against", against, "--output", &output];
            done(&[&["dedup", input][..], &flags].concat(), at);
            let rows = columns(&at.join(&output).join("against.parquet"), &["id", "kind", "against_id", "similarity"]);
            write!(dropped, "{against}\n{rows}").unwrap();
        }
        insta::assert_snapshot!(format!("{release}_against"), dropped);
    }
}

#[test]
fn indexes_are_asked_checked_and_added_to() {
    for (release, directory) in releases() {
        let at = directory.path();
        let mut facts = String::new();
        let rows = |index: &str| json(&["index", "stats", index, "--json"], at)["rows"].as_u64().unwrap();
        for codec in ["raw", "huffman", "elias-fano"] {
            let index = format!("indexes/{codec}");
            assert!(done(&["index", "verify", &index], at).stdout.contains("7 rows"));
            let near = done(&["index", "query", &index, "0f0f0f0f0f0f0f0f"], at).stdout;
            let joined = done(&["index", "join", &index, "--radius", "1"], at).stdout;
            write!(facts, "{codec}\n{near}{joined}").unwrap();
            done(&["index", "add", &index, "fingerprints.tsv", "--fingerprints", "hex"], at);
            assert_eq!(rows(&index), 14, "{release}: {index}");
        }
        for name in ["pages", "pages-alone", "served", "killed"] {
            let index = format!("indexes/{name}");
            let before = rows(&index);
            done(&["index", "verify", &index], at);
            let page = newsroom().join("metro-now/bees.html");
            let near = done(&["index", "query", &index, "--page", page.to_str().unwrap()], at).stdout;
            let near = near.replace(page.to_str().unwrap(), "bees.html");
            let batch = done(&["index", "batch", &index, "pages.jsonl.gz", "--radius", "0"], at).stdout;
            write!(facts, "{name}: {before} rows\n{near}{batch}").unwrap();
            done(&["index", "add", &index, "morning-lantern"], at);
            done(&["index", "verify", &index], at);
            let added = json(&["index", "stats", &index, "--json"], at);
            writeln!(facts, "then {} rows, {} fingerprints", added["rows"], added["fingerprints"]).unwrap();
        }
        for name in ["served", "killed"] {
            assert_eq!(rows(&format!("indexes/{name}/collections/other")), 1, "{release}: {name}");
        }
        insta::assert_snapshot!(format!("{release}_index"), facts);
    }
}

#[test]
fn stored_sketches_are_folded() {
    for (release, directory) in releases() {
        let at = directory.path();
        let mut folded: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for method in ["bloom", "minhash", "projection", "simhash", "spotsigs"] {
            let sketches = format!("sketches/{method}.json");
            let groups = json(&["refine", &sketches, "--sketches", "sketch", "--method", method, "--json"], at);
            for group in groups["results"].as_array().unwrap() {
                let others = group["lookalike"]["others"].as_array().unwrap();
                let others: String =
                    others.iter().map(|row| format!(" + {} {}", row["id"], row["similarity"])).collect();
                folded.entry(method).or_default().push(format!("{}{others}", group["id"]));
            }
        }
        fs::write(at.join("run.txt"), "7 Q0 choir.html 1 2.0 tag\n7 Q0 choir-print.html 2 1.0 tag\n").unwrap();
        let by_index = json(&["refine", "run.txt", "--method", "simhash", "--sketches", "indexes/pages", "--json"], at);
        let groups = by_index["lists"][0]["groups"].as_array().unwrap();
        assert_eq!((groups.len(), &groups[0]["others"][0]["id"]), (1, &"choir-print.html".into()), "{release}");
        insta::assert_snapshot!(format!("{release}_refine"), format!("{folded:#?}"));
    }
}

#[test]
fn judgments_are_read() {
    for (release, directory) in releases() {
        let audit = ["evaluate", "audit", "results/minhash", "--judgments", "judgments.jsonl", "--json"];
        let found = json(&audit, directory.path());
        let said = serde_json::to_string_pretty(&found["strata"]).unwrap();
        insta::assert_snapshot!(format!("{release}_judgments"), said);
    }
}
