//! What a person who repeats or extends the studies of the papers sets and asks for.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{Document, Ran, dedup, documents, fates, lookalike, run, sentence, summary, table, write_jsonl};

fn input(directory: &Path) -> PathBuf {
    let path = directory.join("pages.jsonl");
    write_jsonl(&path, &documents());
    path
}

/// Whether the report of a result says what decides.
fn says(output: &Path, rule: &str) -> bool {
    fs::read_to_string(output.join("report.html")).unwrap().contains(rule)
}

/// A page of text.
fn page(id: &str, text: String) -> Document {
    Document { id: id.to_owned(), text, url: String::new(), score: 0, date: String::new() }
}

fn json(ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn supershingles_have_any_number_and_size() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (input(root.path()), root.path().join("out"));
    let ran = dedup(&[&input], &output, &["--method", "shingle", "--bands", "20", "--rows", "3", "--agree", "4"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(says(&output, "at least 4 of 20 supershingles of word 8-grams equal"));
    let pairs = table(&output.join("pairs.parquet"));
    assert!(!pairs.is_empty());
    for pair in &pairs {
        assert!((4.0..=20.0).contains(&pair["score"].parse::<f64>().unwrap()), "{pair:?}");
    }
    let strict = root.path().join("strict");
    assert_eq!(dedup(&[&input], &strict, &["--method", "shingle"]).code, 0);
    assert!(table(&strict.join("pairs.parquet")).len() < pairs.len(), "shorter supershingles find more");
    for (wrong, what) in [
        (&["--agree", "7"][..], "--agree 7: must not be above --bands, which is 6"),
        (&["--bands", "200", "--rows", "14"], "--rows 14: must be at most 5 with 200 --bands"),
    ] {
        let ran = dedup(&[&input], &strict, &[&["--method", "combined", "--force"], wrong].concat());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(what), "{}", ran.stderr);
    }
    let ran = dedup(&[&input], &strict, &["--bands", "9", "--force"]);
    assert!(ran.code == 2 && ran.stderr.contains("--bands: needs --rows, too"), "{}", ran.stderr);
}

#[test]
fn bands_of_minhash_are_given_or_chosen() {
    let root = tempfile::tempdir().unwrap();
    let (input, chosen, given) = (input(root.path()), root.path().join("chosen"), root.path().join("given"));
    assert_eq!(dedup(&[&input], &chosen, &[]).code, 0);
    assert_eq!(dedup(&[&input], &given, &["--bands", "30", "--rows", "2"]).code, 0);
    assert_eq!(summary(&given)["layout"]["bands"], json!({"bands": 30, "rows": 2}));
    assert!(fates(&chosen) == fates(&given), "candidates differ, and what is verified does not");
}

#[test]
fn fingerprints_have_32_to_256_bits() {
    let root = tempfile::tempdir().unwrap();
    let input = input(root.path());
    let mut dropped = Vec::new();
    for bits in ["32", "64", "128", "256"] {
        let output = root.path().join(bits);
        let arguments = ["--method", "simhash", "--sketch-bits", bits, "--radius", "3", "--ngram", "1"];
        let ran = dedup(&[&input], &output, &arguments);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(says(&output, &format!("at most 3 of {bits} bits of a SimHash fingerprint differ")));
        for pair in table(&output.join("pairs.parquet")) {
            assert!(pair["score"].parse::<f64>().unwrap() <= 3.0, "{pair:?}");
        }
        dropped.push(summary(&output)["dropped"].as_u64().unwrap());
    }
    assert!(dropped.is_sorted_by(|fewer_bits, more_bits| fewer_bits >= more_bits), "{dropped:?}");
    assert!(dropped[3] >= 20, "copies are dropped at any size: {dropped:?}");
    let index = root.path().join("index");
    let build = run(lookalike().args(["index", "build"]).arg(&index).arg(&input));
    assert_eq!(build.code, 0, "{}", build.stderr);
    let against = ["--method", "simhash", "--sketch-bits", "128", "--against", index.to_str().unwrap()];
    let ran = dedup(&[&input], &root.path().join("x"), &against);
    assert!(ran.code == 2 && ran.stderr.contains("an index holds fingerprints"), "{}", ran.stderr);
}

#[test]
fn a_method_is_written_with_its_parameters() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (input(root.path()), root.path().join("out"));
    let ran = dedup(&[&input], &output, &["--method", "minhash threshold=0.5 ngram=3"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(says(&output, "exact Jaccard similarity of word 3-grams ≥ 0.5"));
    let ran = dedup(&[&input], &output, &["--method", "minhash agree=2", "--force"]);
    assert!(ran.code == 2 && ran.stderr.contains("--agree: belongs to shingle"), "{}", ran.stderr);
    let compared = run(lookalike()
        .args([
            "compare",
            "t0",
            "t0-near",
            "--json",
            "--method",
            "minhash,shingle",
            "--method",
            "minhash ngram=2",
            "--in",
        ])
        .arg(&input));
    let methods: Vec<String> = json(&compared)["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["method"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(methods, ["minhash", "shingle", "minhash ngram=2"]);
}

#[test]
fn what_looks_pages_up_and_in_which_order_is_set_for_spot_signatures() {
    let root = tempfile::tempdir().unwrap();
    let prose = |topic: usize| {
        let words = sentence(topic, 200);
        words
            .split(' ')
            .enumerate()
            .map(|(at, word)| if at % 4 == 0 { "the".to_owned() } else { word.to_owned() })
            .collect::<Vec<_>>()
            .join(" ")
    };
    let input = root.path().join("pages.jsonl");
    let near = |topic: usize| prose(topic) + " the end of it";
    let pages: Vec<Document> = (0..20)
        .flat_map(|topic| [page(&format!("b{topic}"), near(topic)), page(&format!("a{topic}"), prose(topic))])
        .collect();
    write_jsonl(&input, &pages);
    let run = |name: &str, extra: &[&str]| {
        let output = root.path().join(name);
        let ran = dedup(&[&input], &output, &[&["--method", "spotsigs antecedents=the:1"], extra].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        output
    };
    let with = run("with", &[]);
    for filters in [&["--no-prefix-filter"][..], &["--no-size-filter"], &["--no-prefix-filter", "--no-size-filter"]] {
        let without = run(&filters.join(""), filters);
        assert!(fs::read(with.join("pairs.parquet")).unwrap() == fs::read(without.join("pairs.parquet")).unwrap());
    }
    let given = run("given", &["--matching", "incremental", "--order", "given"]);
    let kept: Vec<String> = fates(&given).into_iter().filter(|(id, fate)| fate.1 == *id).map(|row| row.0).collect();
    assert!(kept.len() == 20 && kept.iter().all(|id| id.starts_with('b')), "the first of the input are kept: {kept:?}");
    let shuffled = run("shuffled", &["--matching", "incremental"]);
    assert_ne!(fates(&given), fates(&shuffled));
}

#[test]
fn bits_of_filters_decide_as_in_the_paper() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (input(root.path()), root.path().join("out"));
    let ran = dedup(&[&input], &output, &["--method", "bloom", "--chunk-size", "32", "--decide-by", "bits"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(says(&output, "of the bits of one page"));
    let pairs = table(&output.join("pairs.parquet"));
    assert!(!pairs.is_empty());
    for pair in &pairs {
        assert!(pair["score"].parse::<f64>().unwrap() >= 0.7, "{pair:?}");
    }
    let chunks = root.path().join("chunks");
    assert_eq!(dedup(&[&input], &chunks, &["--method", "bloom", "--chunk-size", "32"]).code, 0);
    assert!(pairs.len() >= table(&chunks.join("pairs.parquet")).len(), "bits agree by chance, too");
}

#[test]
fn containment_is_asked_of_minhash() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("pages.jsonl"), root.path().join("out"));
    let chapter = sentence(1, 150);
    let book = format!("{} {chapter} {}", sentence(2, 400), sentence(3, 400));
    write_jsonl(&input, &[page("chapter", chapter), page("book", book), page("other", sentence(4, 300))]);
    assert_eq!(dedup(&[&input], &output, &[]).code, 0);
    assert_eq!(summary(&output)["dropped"], 0, "they do not resemble each other");
    assert_eq!(dedup(&[&input], &output, &["--measure", "containment", "--force"]).code, 0);
    assert_eq!(fates(&output)["chapter"], ("contained".to_owned(), "book".to_owned()));
    assert_eq!(summary(&output)["dropped"], 1);
}

#[test]
fn pages_that_contain_an_item_of_a_test_set_are_dropped() {
    let root = tempfile::tempdir().unwrap();
    let (input, tests, output) =
        (root.path().join("train.jsonl"), root.path().join("tests.jsonl"), root.path().join("out"));
    let item = |number: usize| sentence(500 + number, 40);
    let around = |topic: usize, inner: &str| format!("{} {inner} {}", sentence(topic, 200), sentence(topic + 50, 200));
    let half = item(1).split(' ').take(20).collect::<Vec<_>>().join(" ");
    write_jsonl(
        &input,
        &[
            page("clean", sentence(1, 400)),
            page("leaked", around(2, &item(0))),
            page("half", around(3, &half)),
            // A copy within the training set is not what is asked for.
            page("clean-copy", sentence(1, 400) + " and one more"),
        ],
    );
    write_jsonl(&tests, &[page("q0", item(0)), page("q1", item(1))]);
    let against = tests.to_str().unwrap();
    let arguments = ["--measure", "contains", "--ngram", "13", "--threshold", "0.8", "--against", against];
    let ran = dedup(&[&input], &output, &arguments);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let fates = fates(&output);
    assert_eq!(fates["leaked"], ("contained".to_owned(), "q0".to_owned()));
    for id in ["clean", "clean-copy", "half"] {
        assert_eq!(fates[id].1, id, "{fates:?}");
    }
    let row = &table(&output.join("clusters.parquet"))[1];
    assert_eq!((row["id"].as_str(), row["similarity"].as_str()), ("leaked", "1"), "all of the item is in the page");
    let kept = fs::read_to_string(output.join("kept/train.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 3);
    let evidence = table(&output.join("against.parquet"));
    assert_eq!(evidence.len(), 1);
    // Half of an item is enough if less is asked for.
    let loose = ["--measure", "contains", "--ngram", "5", "--threshold", "0.4", "--against", against, "--force"];
    assert_eq!(dedup(&[&input], &output, &loose).code, 0);
    assert_eq!(summary(&output)["dropped"], 2);
    let ran = dedup(&[&input], &root.path().join("x"), &["--measure", "contains"]);
    assert!(ran.code == 2 && ran.stderr.contains("name that with --against"), "{}", ran.stderr);
    let empty = root.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let ran = dedup(&[&empty], &root.path().join("x"), &["--against", against]);
    assert!(ran.code != 0, "pages that are held against are not input: {}", ran.stderr);
    let ran = dedup(&[&input], &root.path().join("x"), &["--against", "nowhere"]);
    assert!(ran.code == 2 && ran.stderr.contains("--against nowhere"), "{}", ran.stderr);
}

#[test]
fn configurations_are_evaluated_side_by_side_and_over_grids() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    let pages = documents();
    write_jsonl(&at.join("pages.jsonl"), &pages);
    let rows: String =
        pages.iter().map(|page| format!("{}\t{}\n", page.id, page.id.split('-').next().unwrap())).collect();
    fs::write(at.join("gold.tsv"), format!("page\tcluster\n{rows}")).unwrap();
    let evaluate = |extra: &[&str]| {
        let fixed = ["evaluate", "clusters", "--gold", "gold.tsv", "pages.jsonl"];
        run(lookalike().args(fixed).args(extra).current_dir(at))
    };
    let found = json(&evaluate(&["--method", "minhash,shingle", "--method", "minhash threshold=0.9", "--json"]));
    let methods = found["methods"].as_array().unwrap();
    let names: Vec<&str> = methods.iter().map(|row| row["method"].as_str().unwrap()).collect();
    assert_eq!(names, ["minhash", "shingle", "minhash threshold=0.9"]);
    assert!(methods[2]["pairs"]["recall"].as_f64() < methods[0]["pairs"]["recall"].as_f64());
    assert_eq!(methods[2]["best"], methods[0]["best"], "the same pairs at all thresholds");
    let grid = [
        "--method",
        "minhash",
        "--grid",
        "ngram=1..3",
        "--grid",
        "threshold=0.5,0.7,0.9",
        "--report",
        "grid.html",
        "--json",
    ];
    let found = json(&evaluate(&grid));
    assert_eq!(found["methods"].as_array().unwrap().len(), 9);
    let page = fs::read_to_string(at.join("grid.html")).unwrap();
    assert!(
        page.matches("class=\"heat\"").count() == 2 * 18,
        "two surfaces of nine cells, for wide and for narrow screens"
    );
    let points = fs::read_to_string(at.join("grid.csv")).unwrap();
    assert_eq!(points.lines().count(), 1 + 18);
    let cell = |ngram: &str, threshold: &str| {
        let start = format!("minhash: F1 at the method's own threshold,,ngram,value,threshold {threshold},{ngram},");
        points.lines().find_map(|line| line.strip_prefix(&start)).unwrap().parse::<f64>().unwrap()
    };
    let row = found["methods"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["method"] == "minhash threshold=0.9 ngram=2")
        .unwrap();
    assert!((cell("2", "0.9") - row["pairs"]["f1"].as_f64().unwrap()).abs() < 1e-6);
    // Every setting once, called what it is; what is the same at all thresholds is said once.
    let methods = ["--method", "minhash", "--method", "minhash threshold=0.6"];
    let ran = evaluate(&[&methods[..], &["--grid", "threshold=0.5,0.9,0.5"]].concat());
    let (own, over_all) = ran.stdout.split_once("Over all thresholds").unwrap();
    assert!(own.contains("With the settings in the first column") && !ran.stdout.contains("default"), "{}", ran.stdout);
    assert_eq!(own.matches("\nminhash threshold=").count(), 2, "{own}");
    let over_all = over_all.split("\n\n").next().unwrap();
    assert_eq!(over_all.matches("\nminhash ").count(), 1, "{over_all}");
    let ran = evaluate(&["--method", "minhash"]);
    assert!(ran.stdout.contains("With default settings"), "{}", ran.stdout);
    let ran = evaluate(&["--method", "shingle", "--grid", "threshold=0.5"]);
    assert!(ran.code == 2 && ran.stderr.contains("--threshold: belongs to minhash"), "{}", ran.stderr);
}

#[test]
fn a_sample_is_drawn_and_judged_by_what_the_method_decides_by() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (input(root.path()), root.path().join("out"));
    let shingle = ["--method", "shingle", "--bands", "20", "--rows", "3", "--agree", "4"];
    assert_eq!(dedup(&[&input], &output, &shingle).code, 0);
    let audit = |extra: &[&str]| run(lookalike().args(["evaluate", "audit"]).arg(&output).args(extra));
    fs::write(root.path().join("rules.txt"), "Same: the same recipe.\nDifferent: another one.").unwrap();
    let ran = audit(&["--rubric", root.path().join("rules.txt").to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let page = fs::read_to_string(output.join("audit.html")).unwrap();
    assert!(page.contains("the same recipe") && !page.contains("detected difference"));
    assert!(
        audit(&[]).code == 0
            && fs::read_to_string(output.join("audit.html")).unwrap().contains("entry pages to the same site")
    );
    // Everything is the same page, but what has the fewest supershingles in common.
    let pairs = table(&output.join("pairs.parquet"));
    let least = pairs.iter().map(|pair| pair["score"].parse::<f64>().unwrap()).fold(f64::MAX, f64::min);
    let mut lines = vec![json!({"rubric": "as always"}).to_string()];
    let mut wrong = 0;
    for pair in &pairs {
        let is_least = pair["score"].parse::<f64>().unwrap() <= least;
        wrong += u64::from(is_least);
        let verdict = if is_least { "undecided" } else { "correct" };
        let judged = json!({"left": pair["left"], "right": pair["right"], "verdict": verdict, "reason": "form"});
        lines.push(judged.to_string());
    }
    let judgments = root.path().join("judgments.jsonl");
    fs::write(&judgments, lines.join("\n")).unwrap();
    let report = root.path().join("study.html");
    let given = ["--judgments", judgments.to_str().unwrap(), "--report", report.to_str().unwrap()];
    let found = json(&audit(&[&given[..], &["--json"]].concat()));
    let all = &found["tables"]["near_duplicates"][0];
    assert_eq!(all[1]["correct"].as_u64().unwrap() + wrong, pairs.len() as u64);
    assert_eq!(all[1]["forms"], wrong);
    let level = format!("{least} supershingles");
    let levels = found["tables"]["levels"].as_array().unwrap();
    let last = levels.last().unwrap();
    assert_eq!((&last["level"], &last["verdicts"]["undecided"]), (&level.into(), &wrong.into()));
    assert_eq!(last["recall"], 1.0);
    assert_eq!(found["tables"]["reasons"][0]["name"], "form");
    assert!(fs::read_to_string(report.with_extension("csv")).unwrap().contains("recall down to it"));
    let printed = audit(&given);
    assert!(printed.stdout.contains("Why they are unsure"), "{}", printed.stdout);
}

#[test]
fn chunks_are_set_when_search_results_are_folded() {
    let root = tempfile::tempdir().unwrap();
    let results: Vec<Value> =
        (0..6).map(|at| json!({"url": format!("http://x.example/{at}"), "text": sentence(at / 2, 300)})).collect();
    let path = root.path().join("answer.json");
    fs::write(&path, json!({ "results": results }).to_string()).unwrap();
    let refine = |extra: &[&str]| run(lookalike().arg("refine").arg(&path).args(extra));
    for extra in [
        &["--chunk-size", "128", "--filter-bits", "512", "--filter-hashes", "2"][..],
        &["--method", "bloom chunk_size=128"],
    ] {
        let ran = refine(&[extra, &["--json"]].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let ran = refine(&["--agree", "3"]);
    assert!(ran.code == 2 && ran.stderr.contains("--agree: belongs to shingle"), "{}", ran.stderr);
}

#[test]
fn a_threshold_that_is_named_can_be_set() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let gold = examples.join("clusters.tsv");
    let evaluate =
        ["evaluate", "clusters", "newsroom", "--method", "minhash ngram=1", "--method", "minhash", "--json", "--gold"];
    let found = json(&run(lookalike().args(evaluate).arg(&gold).current_dir(&examples)));
    for row in found["methods"].as_array().unwrap() {
        for at in [&row["best"], &row["halves"]] {
            // Stories have lower thresholds than texts, and are nearer than their similarity says.
            assert!((0.0..=1.0).contains(&at["threshold"].as_f64().unwrap()), "{at}");
        }
    }
}
