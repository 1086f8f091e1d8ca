//! Rules for the workspace as a whole that no compiler checks.
#![allow(clippy::unwrap_used)] // in a test, failing is the point

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The data sets by the names of their files; `warc` is a folder.
const DATA: [&str; 9] = [
    "apache2-manual.tar.zst",
    "edgi-page-pairs.tar.zst",
    "framed-docs-dev.tar.zst",
    "install-guide-dev.tar.zst",
    "llvm-docs-dev.tar.zst",
    "reuters21578.tar.zst",
    "same-core-dev.tar.zst",
    "trec-qrels.tar.zst",
    "webis-s3-pairs-dev.jsonl.xz",
];

#[test]
fn whatever_needs_labelled_data_says_so_when_it_is_missing() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let mut uses = 0;
    for path in files.iter().filter(|path| !path.ends_with("lookalike-bench/tests/workspace.rs")) {
        let text = fs::read_to_string(path).unwrap();
        // Only one place looks for the folder.
        let looks_itself = text.contains("\"LOOKALIKE_DATA\"") || text.contains("shared/data");
        assert!(
            !looks_itself || path.ends_with("lookalike-test-data/src/lib.rs"),
            "{}: use labelled_data",
            path.display()
        );
        for line in text.lines().filter(|line| DATA.iter().any(|name| line.contains(&format!("\"{name}\"")))) {
            // `unpacked` asks `labelled_data`.
            let asks = line.contains("labelled_data(") || line.contains("unpacked(");
            assert!(asks, "{}: {line}: use labelled_data", path.display());
            uses += 1;
        }
    }
    assert!(uses >= 8, "{uses}: the names are no longer those that are used");
}

/// What cargo says about the workspace and its dependencies on this platform.
fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = [
        "metadata",
        "--format-version",
        "1",
        "--all-features",
        "--locked",
        "--filter-platform",
        "x86_64-unknown-linux-gnu",
    ];
    let output = Command::new(cargo).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The crates of the workspace.
fn ours(metadata: &Value) -> Vec<&Value> {
    let members = metadata["workspace_members"].as_array().unwrap();
    metadata["packages"].as_array().unwrap().iter().filter(|package| members.contains(&package["id"])).collect()
}

fn is_published(package: &Value) -> bool {
    package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

#[test]
fn dependencies_keep_to_the_rules_in_deny_toml() {
    let rules: toml::Table = fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap();
    let allowed: Vec<spdx::Licensee> = rules["licenses"]["allow"]
        .as_array()
        .unwrap()
        .iter()
        .map(|licence| spdx::Licensee::parse(licence.as_str().unwrap()).unwrap())
        .collect();
    let banned: Vec<&str> =
        rules["bans"]["deny"].as_array().unwrap().iter().map(|ban| ban["crate"].as_str().unwrap()).collect();
    let metadata = metadata();
    let minimum = ours(&metadata)[0]["rust_version"].as_str().unwrap();
    // By the list of what is used: the packages also name what this platform does not need.
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let packages = metadata["packages"].as_array().unwrap();
        let package = packages.iter().find(|package| package["id"] == node["id"]).unwrap();
        let name = package["name"].as_str().unwrap();
        let source = package["source"].as_str();
        let is_known = source.is_none_or(|source| source == "registry+https://github.com/rust-lang/crates.io-index");
        assert!(is_known, "{name} comes from {source:?}");
        assert!(!banned.contains(&name), "{name} is banned");
        let licence = package["license"].as_str().unwrap_or_else(|| panic!("{name} has no licence"));
        let licence = spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX).unwrap();
        let is_allowed = licence.evaluate(|wanted| allowed.iter().any(|licensee| licensee.satisfies(wanted)));
        assert!(is_allowed, "{name} has the licence {licence}; see deny.toml");
        let needed = package["rust_version"].as_str().unwrap_or("1");
        assert!(version(needed) <= version(minimum), "{name} needs Rust {needed}, and we promise {minimum}");
    }
}

fn version(text: &str) -> Vec<u64> {
    text.split('.').map(|part| part.parse().unwrap()).collect()
}

#[test]
fn whatever_is_published_has_what_a_registry_wants() {
    let metadata = metadata();
    let ours = ours(&metadata);
    let published: Vec<&str> =
        ours.iter().filter(|package| is_published(package)).map(|package| package["name"].as_str().unwrap()).collect();
    assert_eq!(published, ["lookalike", "lookalike-cli", "lookalike-server", "lookalike-suffix"]);
    for package in ours.iter().filter(|package| is_published(package)) {
        let name = package["name"].as_str().unwrap();
        for key in ["description", "license", "readme", "rust_version"] {
            assert!(package[key].is_string(), "{name} has no {key}");
        }
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(folder.join(file).exists(), "{name} has no {file}");
        }
        for dependency in package["dependencies"].as_array().unwrap() {
            let (other, kind) = (dependency["name"].as_str().unwrap(), dependency["kind"].as_str());
            if dependency["path"].is_string() && kind != Some("dev") {
                let version =
                    ours.iter().find(|package| package["name"] == other).unwrap()["version"].as_str().unwrap();
                assert_eq!(dependency["req"], format!("^{version}"), "{name} needs {other}");
                assert!(published.contains(&other), "{name} needs {other}, which is not published");
            }
        }
    }
}

#[test]
fn no_lowered_level_of_optimisation_reaches_what_people_install() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(
        manifest.contains("[profile.release.package]"),
        "nothing is lowered any more: dist can inherit from release"
    );
    // Packages are inherited from the profile that another one is based on.
    assert!(manifest.contains("[profile.dist]\ninherits = \"dev\"\nopt-level = 3\n"));
    for lowered in ["[profile.dev", "[profile.dist."] {
        assert!(!manifest.contains(lowered), "{lowered}…] reaches the profile dist");
    }
}

#[test]
fn the_command_line_and_the_service_use_the_public_api_alone() {
    let mut files = Vec::new();
    sources(&root().join("crates/lookalike-cli"), &mut files);
    sources(&root().join("crates/lookalike-server"), &mut files);
    assert!(files.len() > 40, "{files:?}");
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("lookalike::unstable"), "{}: is for benchmarks and fuzzing", path.display());
    }
}
