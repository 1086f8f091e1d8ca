//! The public API, as another crate uses it: nothing but the names at the top, and what belongs to them.

#![allow(clippy::unwrap_used)] // a test

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use lookalike::config::{FingerprintConfig, Keep, Scope};
use lookalike::evaluate::EvaluateOptions;
use lookalike::evaluate::gold::{Gold, GoldColumns};
use lookalike::index::{Id, IdKind, IndexConfig, OpenOptions};
use lookalike::online::{OnlineOptions, PageVerdict, StorePolicy};
use lookalike::result::{SkippedRecord, files};
use lookalike::transfer::TransferOptions;
use lookalike::{
    Config, Corpus, Error, Index, Method, Observer, Online, RawPage, ReadConfig, Refiner, RunOptions, Silent, Sketcher,
    Stage,
};

/// Sentences that differ from each other, `seed` by `seed`.
fn story(seed: usize) -> String {
    let words = ["harbour", "ferry", "storm", "bread", "council", "bridge", "orchard", "winter", "engine", "letter"];
    let word = |n: usize| words[(seed * 7 + n * (seed + 3)) % words.len()];
    let sentence =
        |n: usize| format!("In {seed} the {} near the {} was seen by {n} people. ", word(n), word(n * 3 + 1));
    (0..20).map(sentence).collect()
}

fn line(id: &str, text: &str) -> String {
    serde_json::json!({"id": id, "text": text}).to_string() + "\n"
}

/// Two stories, one of them twice with other endings, in a file.
fn pages(directory: &Path) -> PathBuf {
    let path = directory.join("pages.jsonl");
    let lines = line("a", &story(1)) + &line("b", &(story(1) + "Photo: a reader.")) + &line("c", &story(2));
    std::fs::write(&path, lines).unwrap();
    path
}

fn named(path: &Path) -> Vec<String> {
    vec![path.to_string_lossy().into_owned()]
}

/// Counts what it sees.
#[derive(Default)]
struct Counting(Mutex<BTreeMap<&'static str, u64>>);

impl Observer for Counting {
    fn start(&self, stage: Stage, _total: u64) {
        *self.0.lock().unwrap().entry(stage.name()).or_default() += 1;
    }

    fn skipped(&self, record: &SkippedRecord) {
        assert!(record.to_string().contains("record 4"), "{record}");
        *self.0.lock().unwrap().entry("skipped").or_default() += 1;
    }
}

#[test]
fn dedup_then_recluster() {
    let directory = tempfile::tempdir().unwrap();
    let input = pages(directory.path());
    std::fs::write(&input, std::fs::read_to_string(&input).unwrap() + "damage\n").unwrap();
    let mut config = Config::default();
    config.groups.keep = Keep::Longest;
    let observer = Counting::default();
    let options = RunOptions::new(named(&input), directory.path().join("out"));
    let estimate = lookalike::estimate(&config, &options).unwrap();
    assert_eq!((estimate.pages, estimate.skipped, estimate.exact), (3, 1, true));
    assert!(!options.output.exists(), "an estimate writes nothing");

    let outcome = lookalike::dedup(&config, &options, &observer).unwrap();
    assert_eq!((outcome.summary.pages, outcome.summary.kept, outcome.skipped_examples.len()), (3, 2, 1));
    let seen = observer.0.into_inner().unwrap();
    assert_eq!((seen["read"], seen["verify"], seen["write"], seen["skipped"]), (1, 1, 1, 1));
    let kept = std::fs::read_to_string(options.output.join(files::KEPT).join("pages.jsonl")).unwrap();
    assert!(!kept.contains("\"a\"") && kept.contains("Photo"), "the longest is kept: {kept}");

    let strict = RunOptions::new(named(&input), directory.path().join("strict"));
    let outcome = lookalike::recluster(&options.output, 0.999, &strict, &Silent).unwrap();
    assert_eq!(outcome.summary.kept, 3);
}

#[test]
fn compare_says_what_every_method_thinks() {
    let page = RawPage::html(format!("<p>{}", story(1)));
    let comparison = lookalike::compare(&page, &RawPage::text(story(2)), &Config::default());
    let names: Vec<&str> = comparison.methods.iter().map(|decision| decision.method.as_str()).collect();
    let known: Vec<&str> = Method::all().iter().map(Method::name).collect();
    assert_eq!(names, known);
    assert!(lookalike::compare(&page, &RawPage::text(story(1)), &Config::default()).identical);
}

#[test]
fn a_config_is_checked_hashed_and_stored() {
    let mut config = Config::new("spotsigs threshold=0.5".parse::<Method>().unwrap());
    config.content.scope = Scope::Core;
    config.check().unwrap();
    let stored = serde_json::to_string(&config).unwrap();
    let again: Config = serde_json::from_str(&stored).unwrap();
    assert_eq!((&again, again.hash()), (&config, config.hash()));
    assert_ne!(config.hash(), Config::default().hash());
    assert!(config.method.set("threshold", "7").is_err());
}

#[test]
fn a_corpus_is_a_stream_of_pages() {
    let directory = tempfile::tempdir().unwrap();
    let corpus = Corpus::open(&[pages(directory.path()).to_string_lossy()], &ReadConfig::default()).unwrap();
    let mut ids = Vec::new();
    corpus.for_each(|page| ids.extend(page.ok().map(|page| corpus.id_of(&page)))).unwrap();
    assert_eq!(ids, ["a", "b", "c"]);
    // With threads, in the same order, and stopped by the caller.
    let mut first = Vec::new();
    let scan = corpus.scan().threads(2).for_each(
        || Sketcher::new(&Config::default()),
        |sketcher, page| Ok(Some(sketcher.read(&page).tokens)),
        |tokens| {
            first.push(tokens);
            Ok(std::ops::ControlFlow::Break(()))
        },
    );
    assert!(scan.is_ok() && first.len() == 1 && first[0] > 100, "{first:?}");
}

#[test]
fn sketches_of_near_pages_share_most_of_their_features() {
    let mut sketcher = Sketcher::new(&Config::default());
    let mut features = |text: &str| {
        let _ = sketcher.read(&RawPage::text(text));
        sketcher.sketch().features.to_vec()
    };
    let (one, near, other) = (features(&story(1)), features(&(story(1) + "Photo")), features(&story(2)));
    let shared = |left: &[u64], right: &[u64]| left.iter().filter(|feature| right.contains(feature)).count();
    assert!(shared(&one, &near) > 9 * one.len() / 10);
    assert!(shared(&one, &other) < one.len() / 2);
}

#[test]
fn an_index_finds_fingerprints_within_a_distance_and_keeps_them() {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::create(directory.path(), IndexConfig::given(IdKind::Text, 3), 1 << 28, false).unwrap();
    index.insert(&[(0b1111, Id::from("near")), (u64::MAX, Id::from("far"))]).unwrap();
    index.flush().unwrap();
    drop(index);
    let index = Index::open(directory.path(), OpenOptions::default()).unwrap();
    let found = index.reader().query(0b1000, 3, 10).unwrap();
    assert_eq!((found.count, found.matches[0].distance), (1, 3));
    assert_eq!(found.matches[0].id.to_string(), "near");
    let message = index.reader().query(0, 4, 10).unwrap_err().to_string();
    assert!(message.contains("`radius` 4"), "{message}");
}

#[test]
fn the_online_index_answers_and_remembers() {
    let directory = tempfile::tempdir().unwrap();
    Online::create(directory.path(), IndexConfig::pages(FingerprintConfig::default(), 3)).unwrap();
    let page = |id: &str, text: String| {
        let mut page = RawPage::text(text);
        page.id = Some(id.to_owned().into());
        page
    };
    let online = Online::open(directory.path(), OnlineOptions::default()).unwrap();
    let stored = online.insert(&page("a", story(1)), StorePolicy::IfNew).unwrap();
    assert!(stored.stored && stored.verdict == PageVerdict::New);
    online.close().unwrap();
    let online = Online::open(directory.path(), OnlineOptions::default()).unwrap();
    let again = online.insert(&page("b", story(1)), StorePolicy::IfNew).unwrap();
    assert_eq!((again.verdict, again.stored, again.of[0].id.as_str()), (PageVerdict::Exact, false, "a"));
    assert_eq!(online.check(&page("c", story(2))).unwrap().verdict, PageVerdict::New);
}

#[test]
fn a_refiner_folds_under_the_better_result() {
    let refiner = Refiner::new(Refiner::defaults(Method::named("bloom").unwrap())).unwrap();
    let mut sketcher = refiner.sketcher();
    let texts = [story(1), story(2), story(1) + "Photo", story(2)];
    let sketches = texts.map(|text| Some(refiner.sketch(&RawPage::text(text), &mut sketcher)));
    let folded = refiner.fold(&sketches);
    let groups: Vec<(usize, Vec<usize>)> =
        folded.groups.iter().map(|group| (group.best, group.others.iter().map(|other| other.at).collect())).collect();
    assert_eq!(groups, [(0, vec![2]), (1, vec![3])]);
}

#[test]
fn methods_are_evaluated_on_labelled_pages() {
    let directory = tempfile::tempdir().unwrap();
    let input = pages(directory.path());
    let gold = directory.path().join("gold.tsv");
    std::fs::write(&gold, "page\tcluster\na\tone\nb\tone\nc\ttwo\n").unwrap();
    let gold = Gold::read(&gold, &GoldColumns::default(), 1.0).unwrap();
    let options = EvaluateOptions::new(named(&input), Method::all().into_iter().map(Config::new).collect());
    let announced = Mutex::new(Vec::new());
    let announce = |name: &str| announced.lock().unwrap().push(name.to_owned());
    let evaluation = lookalike::evaluate(&gold, &options, &announce).unwrap();
    assert_eq!((evaluation.pages, evaluation.gold_pairs), (3, 1));
    assert_eq!(announced.into_inner().unwrap().len(), Method::all().len());
    let minhash = &evaluation.methods[0];
    assert_eq!((minhash.method.as_str(), minhash.pairs.precision(), minhash.pairs.recall()), ("minhash", 1.0, 1.0));
}

#[test]
fn judgments_are_transferred_to_the_counterpart() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("later.jsonl"), line("z", &(story(1) + "Updated.")) + &line("y", &story(3))).unwrap();
    std::fs::write(at("qrels.txt"), "7 0 a 2\n7 0 c 1\n").unwrap();
    let from = named(&pages(directory.path()));
    let options = TransferOptions::new(at("qrels.txt"), from, named(&at("later.jsonl")), at("out"));
    lookalike::transfer(&options, &Silent).unwrap();
    assert_eq!(std::fs::read_to_string(at("out").join(files::QRELS)).unwrap(), "7 0 z 2\n");
}

#[test]
fn errors_carry_facts_and_say_whose_fault_it_is() {
    let options = RunOptions::new(["no-such-file.jsonl"], std::env::temp_dir().join("lookalike-not-written"));
    let error = lookalike::dedup(&Config::default(), &options, &Silent).unwrap_err();
    assert!(matches!(&error, Error::NotFound { path } if path == Path::new("no-such-file.jsonl")), "{error}");
    assert!(!options.output.exists(), "nothing is left behind");
    let mut config = Config::default();
    config.content.language = Some("klingon".to_owned());
    let error = config.check().unwrap_err();
    assert!(error.is_usage(), "{error}");
    let message = error.message(|setting| format!("--{setting}"));
    assert!(message.starts_with("--language klingon"), "{message}");
}

/// Names that `lib.rs` exports.
fn names_at_the_top() -> Vec<String> {
    let source = include_str!("../src/lib.rs");
    // Modules are written out in full and closed by a brace in the first column; their content is not at the top.
    let mut names = Vec::new();
    for line in source.lines() {
        if let Some(module) = line.strip_prefix("pub mod ") {
            names.push(module.trim_end_matches([';', '{', ' ']).to_owned());
        } else if let Some(path) = line.strip_prefix("pub use ") {
            let last = path.trim_end_matches(';').rsplit("::").next().unwrap();
            let list = path.split_once('{').map_or(last, |(_, list)| list.trim_end_matches([';', '}']));
            names.extend(list.split(", ").map(str::to_owned));
        }
    }
    names
}

#[test]
fn there_are_few_names_at_the_top() {
    let names = names_at_the_top();
    assert!(names.contains(&"dedup".to_owned()) && names.contains(&"Observer".to_owned()), "{names:?}");
    assert!(names.len() <= 40, "{}: {names:?}", names.len());
}
