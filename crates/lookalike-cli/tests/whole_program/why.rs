//! `lookalike explain`, `lookalike clusters`, and `lookalike recluster` without a threshold: why is it so, and what if?

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{
    contents, dedup, document, documents, fates, lookalike, newsroom, ours, run, sentence, table, write_jsonl,
};

/// The row of a table with this id.
fn row(path: &Path, id: &str) -> BTreeMap<String, String> {
    table(path).into_iter().find(|row| row["id"] == id).unwrap()
}

/// Three texts of which only neighbours are alike, a copy of the last, and one that is nearly like the first.
fn chained(directory: &Path) -> PathBuf {
    let words: Vec<String> = sentence(3, 260).split(' ').map(str::to_owned).collect();
    let part = |from: usize, to: usize| words[from..to].join(" ");
    let page = |id: &str, text: String| {
        let url = format!("http://{id}.example.org/x");
        json!({"id": id, "text": text, "url": url, "title": format!("Title of {id}\u{1b}[31m")}).to_string() + "\n"
    };
    let lines = [
        page("first", part(0, 200)),
        page("middle", part(30, 230)),
        page("last", part(60, 260)),
        page("copy", part(60, 260).to_uppercase()),
        page("missed", format!("{} {}", part(0, 160), sentence(77, 40))),
    ];
    let path = directory.join("pages.jsonl");
    fs::write(&path, lines.concat()).unwrap();
    path
}

#[test]
fn a_dropped_page_is_explained_with_its_evidence() {
    let root = tempfile::tempdir().unwrap();
    let output = root.path().join("out");
    assert_eq!(dedup(&[&newsroom()], &output, &["-q"]).code, 0);
    let clusters = table(&output.join("clusters.parquet"));
    let page = clusters.iter().find(|row| row["kind"] == "near").unwrap();
    let ran = ours(&["explain", "out", &page["id"]], root.path());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let number = |column: &str| format!("{:.4}", page[column].parse::<f64>().unwrap());
    for fact in [
        format!("{} was dropped: it is a near-duplicate of {}", page["id"], page["kept_id"]),
        format!("similarity of what was compared  {}  (needed ≥ 0.", number("similarity")),
        format!("similarity of the whole pages    {}", number("page_similarity")),
        "without their frames".to_owned(),
        format!("- only in {}   + only in {}", page["kept_id"], page["id"]),
        "Rule      exact Jaccard similarity of word 5-grams ≥ 0.7; of pages without their frame".to_owned(),
        "Settings  --method minhash --content story --cluster star --keep first".to_owned(),
    ] {
        assert!(ran.stdout.contains(&fact), "{fact}\nin: {}", ran.stdout);
    }
    assert!(ran.stdout.contains("[-") && ran.stdout.contains("{+"), "the difference: {}", ran.stdout);
    assert!(!ran.stdout.contains('\x1b'), "no colours without a terminal");

    // The same as a document, and everything with --full.
    let short = document(&ours(&["explain", "out", &page["id"], "--json"], root.path()));
    let found = &short["pages"][0];
    assert_eq!((&found["is_kept"], &found["kind"]), (&false.into(), &"near".into()));
    assert_eq!(found["kept_page"]["id"], page["kept_id"].as_str());
    assert_eq!(found["similarity"].as_f64().unwrap(), page["similarity"].parse::<f64>().unwrap());
    assert_eq!(short["config_hash"], crate::common::summary(&output)["config_hash"]);
    let full = document(&ours(&["explain", "out", &page["id"], "--json", "--full"], root.path()));
    let diff = full["pages"][0]["diff"].as_array().unwrap();
    assert!(diff.iter().all(|piece| piece.get("omitted").is_none()), "nothing is left out: {diff:?}");
    let count = |side: &str| -> u64 {
        diff.iter().filter_map(|piece| piece[side].as_str()).map(|text| text.split_whitespace().count() as u64).sum()
    };
    let words = &full["pages"][0]["words"];
    // As in the report, what only the kept page has comes first.
    for (name, side) in [("shared", "shared"), ("kept_only", "left"), ("page_only", "right")] {
        assert_eq!(words[name], count(side), "{name}");
    }

    // Copies of another frame are called that.
    let same = clusters.iter().find(|row| row["kind"] == "same_core").unwrap();
    let ran = ours(&["explain", "out", &same["id"]], root.path());
    assert!(
        ran.stdout.contains("in another frame") && ran.stdout.contains("no difference in what was compared"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_kept_page_has_its_group_and_the_nearest_that_was_rejected() {
    let root = tempfile::tempdir().unwrap();
    chained(root.path());
    assert_eq!(ours(&["dedup", "pages.jsonl", "--output", "out", "-q"], root.path()).code, 0);
    let ran = ours(&["explain", "out", "first"], root.path());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let miss = table(&root.path().join("out/near_misses.parquet"));
    let miss = miss.iter().find(|row| row["left"] == "first" && row["right"] == "missed").unwrap();
    for fact in [
        "first was kept: no kept page that ranks before it (by --keep first) is a near-duplicate of it; 1 other page was \
         dropped and is most similar to it"
            .to_owned(),
        "near-duplicate              middle".to_owned(),
        "nearest page that is not a near-duplicate of it: missed".to_owned(),
        format!("compared  {:.4}  (needed ≥ 0.7: plain text", miss["similarity"].parse::<f64>().unwrap()),
    ] {
        assert!(ran.stdout.contains(&fact), "{fact}\nin: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\x1b'), "titles do not control the terminal");

    // What stricter thresholds reject was accepted before.
    assert_eq!(ours(&["recluster", "out", "--threshold", "0.95", "-q"], root.path()).code, 0);
    let ran = ours(&["explain", "out", "http://middle.example.org/x"], root.path());
    assert!(ran.stdout.contains("middle was kept") && ran.stdout.contains("needed ≥ 0.95"), "{}", ran.stdout);
    let compared = ours(&["compare", "first", "middle", "--in", "out"], root.path());
    assert!(compared.stdout.contains("in this result: not near-duplicates"), "{}", compared.stdout);
}

#[test]
fn a_page_that_is_most_similar_to_one_behind_it_names_the_one_it_was_dropped_for() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    let words: Vec<String> = sentence(3, 250).split(' ').map(str::to_owned).collect();
    let page = |id: &str, from: usize, month: u32| {
        let text = words[from..from + 200].join(" ");
        json!({"id": id, "text": text, "date": format!("2024-{month:02}-01")}).to_string() + "\n"
    };
    // first and middle are alike, middle and last are more so, first and last are not.
    fs::write(at.join("gold.jsonl"), page("first", 0, 3) + &page("middle", 30, 2)).unwrap();
    fs::write(at.join("web.jsonl"), page("last", 50, 1)).unwrap();
    for (policy, order) in
        [(["--prefer", "gold*"], "(by --prefer, then by --keep first)"), (["--keep", "newest"], "(by --keep newest)")]
    {
        let ran = ours(
            &[&["dedup", "web.jsonl", "gold.jsonl", "--output", "out", "--replace", "-q"], &policy[..]].concat(),
            at,
        );
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let clusters = table(&at.join("out/clusters.parquet"));
        let kept: Vec<(&str, &str)> =
            clusters.iter().map(|row| (row["id"].as_str(), row["kept_id"].as_str())).collect();
        assert_eq!(kept, [("last", "last"), ("first", "first"), ("middle", "last")], "{policy:?}");
        let ran = ours(&["explain", "out", "middle"], at);
        for fact in [
            "middle was dropped: it is a near-duplicate of first, which is kept and ranks before it; the kept page that it \
             is most similar to is last",
            "dropped for: first",
            "most similar kept page: last",
            "- only in last   + only in middle",
        ] {
            assert!(ran.stdout.contains(fact), "{policy:?}: {fact}\nin: {}", ran.stdout);
        }
        let found = document(&ours(&["explain", "out", "middle", "--json"], at));
        let (reason, kept) = (&found["pages"][0]["dropped_for"], &found["pages"][0]["kept_page"]);
        assert_eq!((&reason["page"]["id"], &kept["id"]), (&"first".into(), &"last".into()));
        let pairs = table(&at.join("out/pairs.parquet"));
        let pair = pairs.iter().find(|row| row["left"] == "first" && row["right"] == "middle").unwrap();
        assert_eq!(reason["similarity"].as_f64().unwrap(), pair["similarity"].parse::<f64>().unwrap());
        let ran = ours(&["explain", "out", "last", "first"], at);
        let kept = format!(
            "last was kept: no kept page that ranks before it {order} is a near-duplicate of it; 1 other page was dropped"
        );
        assert!(ran.stdout.contains(&kept), "{kept}\nin: {}", ran.stdout);
        let kept = format!(
            "first was kept: no kept page that ranks before it {order} is a near-duplicate of it; 1 near-duplicate of it was \
             dropped and is more similar to another kept page"
        );
        assert!(ran.stdout.contains(&kept), "{kept}\nin: {}", ran.stdout);
        let found = document(&ours(&["explain", "out", "first", "last", "--json"], at));
        assert!(found["pages"].as_array().unwrap().iter().all(|page| page.get("dropped_for").is_none()));
    }
    // Dates are read again; without them, nothing wrong is said.
    fs::remove_file(at.join("gold.jsonl")).unwrap();
    let ran = ours(&["explain", "out", "middle"], at);
    assert!(ran.stdout.contains("middle was dropped: it is a near-duplicate of last"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("ranks before it"), "{}", ran.stdout);
}

#[test]
fn a_chain_is_shown_link_by_link() {
    let root = tempfile::tempdir().unwrap();
    chained(root.path());
    let ran = ours(&["dedup", "pages.jsonl", "--output", "out", "-q", "--cluster", "components"], root.path());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let pairs = table(&root.path().join("out/pairs.parquet"));
    let similarity = |left: &str, right: &str| -> Option<f64> {
        pairs.iter().find(|row| row["left"] == left && row["right"] == right)?["similarity"].parse().ok()
    };
    assert_eq!(similarity("first", "last"), None, "only neighbours are alike");
    let found = document(&ours(&["explain", "out", "copy", "--json"], root.path()));
    let chain = json!([
        {"from": "copy", "to": "last", "similarity": 1.0},
        {"from": "last", "to": "middle", "similarity": similarity("middle", "last")},
        {"from": "middle", "to": "first", "similarity": similarity("first", "middle")},
    ]);
    assert_eq!(found["pages"][0]["chain"], chain);
    assert!(found["pages"][0]["similarity"].as_f64().unwrap() < 0.7, "{found}");
    let ran = ours(&["explain", "out", "copy"], root.path());
    assert!(ran.stdout.contains("linked by verified pairs") && ran.stdout.contains("last – middle"), "{}", ran.stdout);
}

#[test]
fn names_that_are_nearly_right_are_suggested_and_inputs_that_are_gone_are_no_error() {
    let root = tempfile::tempdir().unwrap();
    let input = chained(root.path());
    assert_eq!(ours(&["dedup", "pages.jsonl", "--output", "out", "-q"], root.path()).code, 0);
    for command in [&["explain", "out", "midle"][..], &["text", "midle", "--in", "out"]] {
        let ran = ours(command, root.path());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("no page has the id or URL 'midle'; did you mean 'middle'"), "{}", ran.stderr);
    }
    let nothing = ours(&["explain", "out", "qqqqqq"], root.path());
    assert!(nothing.stderr.contains("pages.parquet") && !nothing.stderr.contains("did you mean"), "{}", nothing.stderr);

    fs::remove_file(input).unwrap();
    let ran = ours(&["explain", "out", "middle", "copy"], root.path());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("the texts cannot be shown: ") && ran.stdout.contains("pages.jsonl"), "{}", ran.stdout);
    assert!(ran.stdout.contains("copy was dropped: its whole text is the same as that of last"), "{}", ran.stdout);
}

#[test]
fn a_page_that_another_corpus_has_says_so() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    fs::rename(chained(at), at.join("seen.jsonl")).unwrap();
    fs::write(at.join("new.jsonl"), json!({"id": "news", "text": sentence(3, 200)}).to_string()).unwrap();
    assert_eq!(ours(&["dedup", "new.jsonl", "--against", "seen.jsonl", "--output", "out", "-q"], at).code, 0);
    let ran = ours(&["explain", "out", "news"], at);
    let reason = "news was dropped: its whole text is the same as that of first (of the other corpus)";
    assert!(ran.stdout.contains(reason) && ran.stdout.contains("seen.jsonl, record 1"), "{}", ran.stdout);
}

#[test]
fn clusters_are_listed_sorted_and_searched() {
    let root = tempfile::tempdir().unwrap();
    let output = root.path().join("out");
    assert_eq!(dedup(&[&newsroom()], &output, &["-q"]).code, 0);
    // What the table says, counted without the program.
    let mut expected: BTreeMap<String, (usize, f64)> = BTreeMap::new();
    for row in table(&output.join("clusters.parquet")).iter().filter(|row| row["id"] != row["kept_id"]) {
        let found = expected.entry(row["kept_id"].clone()).or_insert((1, 1.0));
        *found = (found.0 + 1, found.1.min(row["similarity"].parse().unwrap()));
    }
    let listed = |arguments: &[&str]| -> Vec<(String, usize, f64)> {
        let found = document(&ours(&[&["clusters", "out", "--json"], arguments].concat(), root.path()));
        let row = |cluster: &Value| {
            let id = cluster["kept"]["id"].as_str().unwrap().to_owned();
            assert_eq!(cluster["dropped"].as_array().unwrap().len() as u64 + 1, cluster["pages"].as_u64().unwrap());
            (id, usize::try_from(cluster["pages"].as_u64().unwrap()).unwrap(), cluster["weakest"].as_f64().unwrap())
        };
        found["clusters"].as_array().unwrap().iter().map(row).collect()
    };
    let all = listed(&[]);
    let found: BTreeMap<String, (usize, f64)> = all.iter().map(|row| (row.0.clone(), (row.1, row.2))).collect();
    assert_eq!(found, expected);
    assert!(all.is_sorted_by(|a, b| a.1 >= b.1), "the largest first: {all:?}");
    let doubtful = listed(&["--sort", "weakest", "--min", "3"]);
    assert!(doubtful.is_sorted_by(|a, b| a.2 <= b.2) && doubtful.iter().all(|row| row.1 >= 3), "{doubtful:?}");
    assert_eq!(doubtful.len(), expected.values().filter(|group| group.0 >= 3).count());
    let ferry = listed(&["--grep", "FERRY"]);
    assert!(!ferry.is_empty() && ferry.len() < all.len(), "{ferry:?}");

    let ran = ours(&["clusters", "out", "--members", "0"], root.path());
    let pages: usize = expected.values().map(|group| group.0).sum();
    assert_eq!(ran.stdout.lines().filter(|line| line.starts_with("    ")).count(), pages - expected.len());
    assert_eq!(ran.stderr, format!("{} groups of {pages} pages\n", expected.len()));
    let program = lookalike().get_program().to_string_lossy().into_owned();
    let piped = format!("{program} clusters {} | head -n 1 >/dev/null; exit ${{PIPESTATUS[0]}}", output.display());
    assert_eq!(run(Command::new("bash").arg("-c").arg(piped)).code, 0, "a closed pipe is not an error");
}

#[test]
fn another_page_of_each_group_is_kept_as_if_the_run_had_kept_it() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    write_jsonl(&at.join("pages.jsonl"), &documents());
    assert_eq!(ours(&["dedup", "pages.jsonl", "--output", "first", "-q"], at).code, 0);
    for policy in ["longest", "newest", "shortest-url", "max:score"] {
        assert_eq!(ours(&["dedup", "pages.jsonl", "--output", policy, "--keep", policy, "-q"], at).code, 0);
        let again = format!("again-{policy}");
        let ran = ours(&["recluster", "first", "--keep", policy, "--output", &again, "-q"], at);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(fates(&at.join(&again)), fates(&at.join(policy)), "{policy}");
        let kept = |directory: &str| contents(&at.join(directory).join("kept"));
        assert_eq!(kept(&again), kept(policy), "{policy}");
        assert_ne!(kept(&again), kept("first"), "{policy}");
    }
    // Preferred sources, of two files that have the same pages.
    fs::copy(at.join("pages.jsonl"), at.join("gold.jsonl")).unwrap();
    assert_eq!(ours(&["dedup", "pages.jsonl", "gold.jsonl", "--output", "both", "-q"], at).code, 0);
    let kept_lines = |directory: &str| {
        let lines =
            |name: &str| fs::read_to_string(at.join(directory).join("kept").join(name)).unwrap().lines().count();
        (lines("pages.jsonl"), lines("gold.jsonl"))
    };
    let (pages, gold) = kept_lines("both");
    assert!(pages > 0 && gold == 0);
    let ran = ours(&["recluster", "both", "--prefer", "gold*", "--output", "preferred", "-q"], at);
    assert_eq!((ran.code, kept_lines("preferred")), (0, (0, pages)), "{}", ran.stderr);
    let why = ours(&["explain", "preferred", "t1"], at);
    assert!(why.stdout.contains("t1 was dropped") && why.stdout.contains("--prefer gold*"), "{}", why.stdout);

    let none = ours(&["recluster", "first", "--keep", "max:stars", "--output", "none"], at);
    assert!(none.code == 2 && none.stderr.contains("no page has a number in the field 'stars'"), "{}", none.stderr);
    let wrong = ours(&["recluster", "first", "--keep", "best"], at);
    assert!(wrong.code == 2 && wrong.stderr.contains("first, longest, newest"), "{}", wrong.stderr);
    let nothing = ours(&["recluster", "first"], at);
    assert!(nothing.code == 2 && nothing.stderr.contains("--keep"), "{}", nothing.stderr);

    // The threshold of the last clustering still counts.
    assert_eq!(ours(&["recluster", "first", "--threshold", "0.97", "-q"], at).code, 0);
    let strict = fates(&at.join("first"));
    assert_eq!(ours(&["recluster", "first", "--cluster", "components", "-q"], at).code, 0);
    assert_eq!(fates(&at.join("first")), strict, "nothing but copies is left to group");
    assert!(row(&at.join("first/clusters.parquet"), "t0-near")["kept"] == "true");
}
