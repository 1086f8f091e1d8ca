//! Every method on the real binary: what it promises, and what its options change.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Document, lookalike};
use crate::common::{contents, dedup, documents, fates, newsroom, run, sentence, summary, table, write_jsonl};

const METHODS: [&str; 8] = ["minhash", "shingle", "projection", "combined", "routed", "simhash", "bloom", "spotsigs"];

fn page(id: &str, url: &str, text: String) -> Document {
    Document { id: id.to_owned(), text, url: url.to_owned(), score: 0, date: String::new() }
}

fn input(root: &Path, pages: &[Document]) -> PathBuf {
    let path = root.join("pages.jsonl");
    write_jsonl(&path, pages);
    path
}

fn kept(output: &Path) -> Vec<String> {
    fates(output).into_iter().filter(|(id, fate)| *id == fate.1).map(|(id, _)| id).collect()
}

/// A text of prose: function words between the words of a topic.
fn prose(topic: usize, words: usize) -> String {
    let small = ["the", "of", "is", "that", "was", "to", "and", "in", "said", "a"];
    let topic = sentence(topic, words);
    let mut woven = Vec::new();
    for (at, word) in topic.split(' ').enumerate() {
        if at % 3 == 0 || at % 5 == 0 {
            woven.push(small[at * 7 % small.len()]);
        }
        woven.push(word);
    }
    woven.join(" ")
}

#[test]
fn every_method_keeps_the_promises_with_any_number_of_threads() {
    let root = tempfile::tempdir().unwrap();
    for method in METHODS {
        let outputs: Vec<_> = ["1", "3"]
            .iter()
            .map(|threads| {
                let output = root.path().join(format!("{method}-{threads}"));
                let ran = dedup(&[&newsroom()], &output, &["--method", method, "--threads", threads, "--jsonl"]);
                assert_eq!(ran.code, 0, "{method}: {}", ran.stderr);
                output
            })
            .collect();
        assert!(contents(&outputs[0]) == contents(&outputs[1]), "{method} differs with the threads");
        let fates = fates(&outputs[0]);
        let pairs = table(&outputs[0].join("pairs.parquet"));
        let identity: BTreeMap<String, String> = table(&outputs[0].join("pages.parquet"))
            .into_iter()
            .map(|row| (row["id"].clone(), row["identity"].clone()))
            .collect();
        for (id, (kind, kept_id)) in &fates {
            assert_eq!(&fates[kept_id].1, kept_id, "{method}: {id} names a page that is not kept");
            if kind == "near" || kind == "contained" {
                let (a, b) = (&identity[id], &identity[kept_id]);
                let is_it = |row: &&BTreeMap<String, String>| {
                    (row["left"] == *a && row["right"] == *b) || (row["left"] == *b && row["right"] == *a)
                };
                assert!(pairs.iter().any(|row| is_it(&row)), "{method}: {id} was dropped on hearsay");
            }
        }
        assert_eq!(fates["metro-now/empty.html"].0, "empty", "{method}");
        let found = summary(&outputs[0]);
        assert_eq!(found["config"]["method"]["name"], method);
        assert_eq!(found["pages"].as_u64(), Some(fates.len() as u64));
    }
}

#[test]
fn every_method_finds_a_page_with_one_word_changed_and_no_other() {
    let root = tempfile::tempdir().unwrap();
    let mut pages = Vec::new();
    for topic in 0..6 {
        let text = prose(topic, 700);
        let mut words: Vec<&str> = text.split(' ').collect();
        words[601] = "changed";
        pages.push(page(&format!("{topic}a"), &format!("http://www.one.example/{topic}"), text.clone()));
        pages.push(page(&format!("{topic}b"), &format!("http://www.two.example/{topic}"), words.join(" ")));
    }
    let input = input(root.path(), &pages);
    for method in METHODS {
        let output = root.path().join(method);
        let ran = dedup(&[&input], &output, &["--method", method]);
        assert_eq!(ran.code, 0, "{method}: {}", ran.stderr);
        let expected: Vec<String> = (0..6).map(|topic| format!("{topic}a")).collect();
        assert_eq!(kept(&output), expected, "{method}");
        for row in table(&output.join("pairs.parquet")) {
            let similarity: f64 = row["similarity"].parse().unwrap();
            assert!(similarity > 0.7 && similarity < 1.0, "{method}: {row:?}");
            assert_eq!(row["same_site"], "false");
        }
    }
}

#[test]
fn pages_without_features_match_nothing() {
    let root = tempfile::tempdir().unwrap();
    let pages = [
        page("a", "", "Who are you and what are you doing here with all of them?".to_owned()),
        page("b", "", "It is not that we should have been there, but they were.".to_owned()),
        page("c", "", "?! … — *** !!".to_owned()),
        page("d", "", "--- ::: ...".to_owned()),
    ];
    let input = input(root.path(), &pages);
    for method in METHODS {
        let output = root.path().join(method);
        assert_eq!(dedup(&[&input], &output, &["--method", method, "--min-tokens", "1"]).code, 0);
        assert_eq!(kept(&output).len(), 4, "{method}");
    }
}

#[test]
fn bloom_keeps_the_whole_and_calls_its_part_contained() {
    let root = tempfile::tempdir().unwrap();
    let whole = prose(1, 3000);
    let part: String = whole.split(' ').skip(500).take(2500).collect::<Vec<_>>().join(" ");
    let pages = [page("part", "", part), page("whole", "", whole), page("other", "", prose(2, 900))];
    let input = input(root.path(), &pages);
    let output = root.path().join("out");
    assert_eq!(dedup(&[&input], &output, &["--method", "bloom"]).code, 0);
    let fates = fates(&output);
    assert_eq!(fates["part"], ("contained".to_owned(), "whole".to_owned()), "although it came first");
    assert_eq!(fates["whole"].0, "representative");
    let row = &table(&output.join("pairs.parquet"))[0];
    let share = |name: &str| row[name].parse::<f64>().unwrap();
    assert!(share("left_in_right") > 0.9 && share("right_in_left") < 0.6, "{row:?}");
    assert!((share("similarity") - share("left_in_right")).abs() < 1e-12);
    assert!((share("estimate") - share("similarity")).abs() < 0.1, "{row:?}");
    let filters = &summary(&output)["filters"];
    assert!(filters["chance_level"].as_f64().unwrap() > 0.0 && filters["false_match_ratio"].as_f64().is_some());
}

#[test]
fn spotsigs_finds_the_story_in_another_frame_and_not_the_frame_with_another_story() {
    let root = tempfile::tempdir().unwrap();
    let frame = |name: &str, story: &str| {
        let menu: String = (0..80).map(|n| format!("<li><a href=#>{name} item {n}</a></li>")).collect();
        format!("<html><body><ul>{menu}</ul><p>{story}</p><div>Copyright {name}</div></body></html>")
    };
    let (one, two) = (prose(1, 120), prose(2, 120));
    let pages = [
        page("a", "", frame("Ledger", &one)),
        page("b", "", frame("Herald", &one)),
        page("c", "", frame("Ledger", &two)),
        page("d", "", frame("Ledger", &(one.clone() + " " + &prose(3, 1500)))),
        page("e", "", frame("Herald", &prose(3, 1500))),
        page("f", "", frame("Lantern", &prose(3, 1500))),
    ];
    let input = input(root.path(), &pages);
    let output = root.path().join("out");
    assert_eq!(dedup(&[&input], &output, &["--method", "spotsigs", "--content", "page"]).code, 0);
    assert_eq!(kept(&output), ["a", "c", "d"]);
    let minhash = root.path().join("minhash");
    assert_eq!(dedup(&[&input], &minhash, &["--content", "page"]).code, 0);
    assert!(kept(&minhash).contains(&"b".to_owned()), "whole pages are too different");
    // The size filter saves and changes nothing.
    let unfiltered = root.path().join("unfiltered");
    assert_eq!(
        dedup(&[&input], &unfiltered, &["--method", "spotsigs", "--content", "page", "--no-size-filter"]).code,
        0
    );
    assert!(fs::read(output.join("pairs.parquet")).unwrap() == fs::read(unfiltered.join("pairs.parquet")).unwrap());
    assert!(summary(&unfiltered)["size_filter"].is_null());
    assert!(summary(&output)["size_filter"]["filtered"].as_u64().unwrap() > 0, "the long page is filtered");
}

#[test]
fn seeds_are_what_pages_match_and_no_part_of_what_is_kept() {
    let root = tempfile::tempdir().unwrap();
    let near = |topic: usize| prose(topic, 120) + " and a little more at the end";
    let pages = [page("x", "", near(1)), page("y", "", near(2)), page("z", "", prose(2, 120))];
    let input = input(root.path(), &pages);
    let seeds = root.path().join("seeds.jsonl");
    write_jsonl(&seeds, &[page("seed", "", prose(1, 120))]);
    let output = root.path().join("out");
    let ran = dedup(&[&input], &output, &["--method", "spotsigs", "--seeds", seeds.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let fates = fates(&output);
    assert_eq!(fates["x"], ("near".to_owned(), "seed".to_owned()));
    assert_eq!(fates["seed"].0, "representative");
    assert_ne!(fates["y"].1 == "y", fates["z"].1 == "z", "the two are matched with each other");
    let found = summary(&output);
    assert_eq!((&found["pages"], &found["kept"], &found["seed_pages"]), (&3.into(), &1.into(), &1.into()));
    assert_eq!(fs::read_dir(output.join("kept")).unwrap().count(), 1);
    let same = dedup(&[&input], &output, &["--method", "spotsigs", "--seeds", input.to_str().unwrap()]);
    assert_eq!(same.code, 2);
    assert!(same.stderr.contains("also an input"), "{}", same.stderr);
}

#[test]
fn incremental_matching_depends_on_the_seeded_order_of_ids_and_not_on_the_input() {
    let root = tempfile::tempdir().unwrap();
    let corpus = documents();
    let (one, two) = (root.path().join("one"), root.path().join("two"));
    for (directory, turned) in [(&one, false), (&two, true)] {
        fs::create_dir(directory).unwrap();
        let mut pages = corpus.clone();
        if turned {
            pages.reverse();
        }
        write_jsonl(&directory.join("pages.jsonl"), &pages);
    }
    let arguments =
        ["--method", "spotsigs", "--matching", "incremental", "--antecedents", "w1,w2,w3,w4,w5,w6,w7,w8,w9"];
    let outputs = [root.path().join("out-1"), root.path().join("out-2")];
    for (input, output) in [&one, &two].into_iter().zip(&outputs) {
        let ran = dedup(&[input], output, &arguments);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let near = |output: &Path| -> Vec<(String, String)> {
        fates(output).into_iter().filter(|(_, fate)| fate.0 == "near").map(|(id, fate)| (id, fate.1)).collect()
    };
    assert_eq!(near(&outputs[0]), near(&outputs[1]));
}

#[test]
fn antecedents_are_chosen_from_the_corpus_and_reported() {
    let root = tempfile::tempdir().unwrap();
    let pages: Vec<Document> = (0..8).map(|n| page(&format!("{n}"), "", prose(n / 2, 120 + n % 2))).collect();
    let corpus = input(root.path(), &pages);
    let output = root.path().join("out");
    let arguments = ["--method", "spotsigs", "--antecedents", "auto"];
    assert_eq!(dedup(&[&corpus], &output, &arguments).code, 0);
    assert_eq!(kept(&output).len(), 4);
    let chosen = summary(&output)["antecedents"].to_string();
    assert!(["the:2:2", "said:2:2"].iter().all(|word| chosen.contains(word)), "{chosen}");
    let few = input(root.path(), &[page("a", "", "every word in here once and never again".to_owned())]);
    let ran = dedup(&[&few], &output, &arguments);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("give a list"), "{}", ran.stderr);
}

#[test]
fn options_narrow_what_is_compared() {
    let root = tempfile::tempdir().unwrap();
    let text = prose(1, 300);
    let longer = text.clone() + " " + &prose(2, 100);
    let pages = [
        page("a", "http://www.one.example/a", text.clone() + " first"),
        page("b", "http://www.one.example/b", text.clone() + " second"),
        page("c", "http://www.two.example/c", text.clone() + " third"),
        page("d", "", longer),
    ];
    let input = input(root.path(), &pages);
    let pairs = |name: &str, extra: &[&str]| {
        let output = root.path().join(name);
        let ran = dedup(&[&input], &output, extra);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let rows = table(&output.join("pairs.parquet"));
        rows.iter().map(|row| row["left"].clone() + &row["right"]).collect::<Vec<_>>()
    };
    assert_eq!(pairs("all", &["-t", "0.6"]), ["ab", "ac", "ad", "bc", "bd", "cd"]);
    assert_eq!(pairs("length", &["-t", "0.6", "--length-ratio", "0.9"]), ["ab", "ac", "bc"]);
    assert_eq!(pairs("site", &["-t", "0.6", "--within", "site"]), ["ab"]);
    assert_eq!(pairs("registrable", &["-t", "0.6", "--within", "site", "--site", "registrable"]), ["ab"]);
    // A copy on another site is another page, when only sites are searched.
    let copies = [page("a", "http://www.one.example/", text.clone()), page("b", "http://www.two.example/", text)];
    write_jsonl(&input, &copies);
    assert_eq!(pairs("copies", &["--within", "site"]), Vec::<String>::new());
    assert_eq!(kept(&root.path().join("copies")).len(), 2);
}

#[test]
fn masked_pages_that_differ_in_dates_and_counters_are_exact_copies() {
    let root = tempfile::tempdir().unwrap();
    let text = prose(3, 60);
    let pages = [
        page("a", "", format!("Updated 2006-03-05 10:11:12. {text} 1,234 visitors; PHPSESSID=ab12")),
        page("b", "", format!("Updated 2007-11-30 23:59:01. {text} 98 visitors; PHPSESSID=ff98")),
    ];
    let input = input(root.path(), &pages);
    let output = root.path().join("out");
    assert_eq!(dedup(&[&input], &output, &["--mask", "volatile"]).code, 0);
    assert_eq!(fates(&output)["b"], ("exact".to_owned(), "a".to_owned()));
    assert_eq!(dedup(&[&input], &output, &[]).code, 0);
    assert_eq!(fates(&output)["b"].0, "near");
}

#[test]
fn a_crowd_of_nearly_equal_pages_is_deduplicated_in_bounded_memory_by_every_method() {
    let root = tempfile::tempdir().unwrap();
    let pages: Vec<Document> =
        (0..700).map(|n| page(&format!("p{n:03}"), "", prose(1, 1200) + &format!(" unique{n}"))).collect();
    let input = input(root.path(), &pages);
    for method in METHODS {
        let output = root.path().join(method);
        assert_eq!(dedup(&[&input], &output, &["--method", method, "--bucket-limit", "50"]).code, 0);
        let found = summary(&output);
        assert!(found["kept"].as_u64().unwrap() <= 3, "{method}: {} kept", found["kept"]);
        assert!(found["pairs"].as_u64().unwrap() < 700 * 50, "{method}: {} pairs", found["pairs"]);
    }
}

#[test]
fn recluster_keeps_to_the_method() {
    let root = tempfile::tempdir().unwrap();
    // Jaccard similarity of the spot signatures is exactly 0.5, which is not above 0.5.
    let (x, y) = (
        "is a1 a2 a3 a4 a5 a6 is b1 b2 b3 b4 b5 b6 is c1 c2 c3",
        "is a1 a2 a3 a4 a5 a6 is b1 b2 b3 b4 b5 b6 is d1 c2 c3",
    );
    let input = input(root.path(), &[page("x", "", x.to_owned()), page("y", "", y.to_owned())]);
    let output = root.path().join("out");
    assert_eq!(dedup(&[&input], &output, &["--method", "spotsigs", "--antecedents", "is:1", "-t", "0.3"]).code, 0);
    assert_eq!(kept(&output), ["x"]);
    assert_eq!(run(lookalike().args(["recluster", "-t", "0.5"]).arg(&output)).code, 0);
    assert_eq!(kept(&output), ["x", "y"]);
    assert_eq!(run(lookalike().args(["recluster", "-t", "0.2"]).arg(&output)).code, 2, "looser than it was");
}
