//! What the program says about itself.

use std::collections::BTreeSet;

use crate::common::{lookalike, run};

fn help(arguments: &[&str]) -> String {
    let ran = run(lookalike().args(arguments).env("COLUMNS", "100"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout
}

/// Lines of a terminal window that is not small.
const SCREEN: usize = 45;

/// Every command, as it is called.
fn commands() -> Vec<Vec<String>> {
    let (mut found, mut waiting) = (Vec::new(), vec![Vec::new()]);
    while let Some(path) = waiting.pop() {
        let text = help(&[&path.iter().map(String::as_str).collect::<Vec<_>>()[..], &["--help"]].concat());
        let listed = text.split("Commands:\n").nth(1).unwrap_or_default().split("\n\n").next().unwrap_or_default();
        // What a command does can take two lines; the second is indented further.
        for line in listed.lines().filter(|line| !line.starts_with("   ")) {
            let name = line.split_whitespace().next().unwrap().to_owned();
            waiting.push([&path[..], &[name]].concat());
        }
        found.push(path);
    }
    found
}

/// The flags in a help text.
fn flags(text: &str) -> BTreeSet<String> {
    let starts = |line: &&str| line.starts_with("  -") || line.starts_with("      --");
    let flag = |line: &str| line.split_whitespace().find(|word| word.starts_with("--")).unwrap().to_owned();
    text.lines().filter(starts).map(flag).collect()
}

#[test]
fn the_help_of_every_command_fits_a_screen_and_topics_have_the_rest() {
    let commands = commands();
    assert!(commands.len() > 20, "{commands:?}");
    for path in commands {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let text = help(&[&words[..], &["--help"]].concat());
        assert!(text.lines().count() <= SCREEN, "{} lines of help for {path:?}", text.lines().count());
        assert_eq!(text, help(&[&words[..], &["-h"]].concat()));
        assert_eq!(text, help(&[&["help"], &words[..]].concat()), "{path:?}");
        let Some((_, topics)) = text.split_once("TOPIC, with\n  ") else { continue };
        let topics: Vec<&str> = topics.split_whitespace().filter(|word| *word != "|").collect();
        let of = |topic: &&str| flags(&help(&[&["help"], &words[..], &[*topic]].concat()));
        let (all, by_topic) = topics.split_last().unwrap();
        let all = of(all);
        assert!(flags(&text).is_subset(&all) && all.len() > flags(&text).len(), "{path:?}");
        let topics: Vec<BTreeSet<String>> = by_topic.iter().map(of).collect();
        let union: BTreeSet<String> = topics.iter().flatten().cloned().collect();
        assert_eq!(union, &all - &BTreeSet::from(["--help".to_owned()]), "{path:?}");
        assert_eq!(topics.iter().map(BTreeSet::len).sum::<usize>(), union.len(), "in one topic each: {path:?}");
    }
    let wrong = run(lookalike().args(["help", "dedup", "weather"]));
    assert!(wrong.code == 2 && wrong.stderr.contains("topics matching, minhash"), "{}", wrong.stderr);
}

#[test]
fn no_help_refers_to_papers() {
    for words in
        [&["dedup"][..], &["evaluate", "clusters"], &["index", "build"], &["refine"], &["transfer"], &["compare"]]
    {
        let text = help(&[&["help"], words, &["all"]].concat());
        for name in ["Henzinger", "Manku", "Theobald", "Jain", "et al", " the paper"] {
            assert!(!text.contains(name), "{name} in the help of {words:?}");
        }
    }
}

#[test]
fn the_help_teaches() {
    insta::assert_snapshot!("help", help(&["--help"]));
    insta::assert_snapshot!("help_dedup", help(&["dedup", "--help"]));
    insta::assert_snapshot!("help_dedup_all", help(&["help", "dedup", "all"]));
    insta::assert_snapshot!("help_dedup_running", help(&["help", "dedup", "running"]));
    insta::assert_snapshot!("help_explain", help(&["explain", "--help"]));
    insta::assert_snapshot!("help_clusters", help(&["clusters", "--help"]));
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
    // Values, too, of lists and of forms.
    let bash = help(&["completions", "bash"]);
    for values in
        ["first longest newest shortest-url max:FIELD", "minhash shingle projection", "jsonl json parquet arrow csv"]
    {
        assert!(bash.contains(values), "{values}");
    }
    assert!(help(&["man"]).contains("lookalike\\-dedup(1)"));
    let directory = tempfile::tempdir().unwrap();
    help(&["man", directory.path().to_str().unwrap()]);
    let page = std::fs::read_to_string(directory.path().join("lookalike-dedup.1")).unwrap();
    assert!(page.contains("min\\-tokens"));
}
