//! What the program says about itself.

use crate::common::{lookalike, run};

fn help(arguments: &[&str]) -> String {
    let ran = run(lookalike().args(arguments).env("COLUMNS", "100"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout
}

#[test]
fn the_help_teaches() {
    insta::assert_snapshot!("help", help(&["--help"]));
    insta::assert_snapshot!("help_dedup", help(&["dedup", "--help"]));
    insta::assert_snapshot!("help_recluster", help(&["recluster", "--help"]));
    insta::assert_snapshot!("help_compare", help(&["compare", "--help"]));
    insta::assert_snapshot!("help_text", help(&["text", "--help"]));
    insta::assert_snapshot!("help_index", help(&["index", "--help"]));
    insta::assert_snapshot!("help_index_build", help(&["index", "build", "--help"]));
    insta::assert_snapshot!("help_index_query", help(&["index", "query", "--help"]));
    insta::assert_snapshot!("help_evaluate", help(&["evaluate", "--help"]));
    insta::assert_snapshot!("help_evaluate_clusters", help(&["evaluate", "clusters", "--help"]));
    insta::assert_snapshot!("help_evaluate_page", help(&["evaluate", "page", "--help"]));
    insta::assert_snapshot!("help_refine", help(&["refine", "--help"]));
    insta::assert_snapshot!("help_transfer", help(&["transfer", "--help"]));
    insta::assert_snapshot!("help_plan", help(&["plan", "--help"]));
}

#[test]
fn completions_and_manual_come_from_the_same_source() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            help(&["completions", shell]).contains("--min-tokens")
                || help(&["completions", shell]).contains("min-tokens"),
            "{shell}"
        );
    }
    assert!(help(&["man"]).contains("lookalike\\-dedup(1)"));
    let directory = tempfile::tempdir().unwrap();
    help(&["man", directory.path().to_str().unwrap()]);
    let page = std::fs::read_to_string(directory.path().join("lookalike-dedup.1")).unwrap();
    assert!(page.contains("min\\-tokens"));
}
