//! Lists with known duplicates.

use crate::method::Bloom;
use std::borrow::Cow;

use super::*;
use crate::page::{Body, Markup};

fn bloom() -> Config {
    Refiner::defaults(Bloom::default())
}

/// The config with other parameters.
fn with(config: &Config, parameters: &[(&str, &str)]) -> Config {
    let mut config = config.clone();
    config.method.set_all(parameters.iter().copied()).unwrap();
    config
}

fn words(topic: u32, count: u32) -> String {
    (0..count).map(|n| format!("w{}x{topic} ", n * 7 % 1000)).collect()
}

fn sketches(refiner: &Refiner, texts: &[String]) -> Vec<Option<StoredSketch>> {
    let mut sketcher = refiner.sketcher();
    let page = |text: &String| RawPage::new(Body::Text(Cow::Owned(text.clone())), Markup::Text);
    texts.iter().map(|text| Some(refiner.sketch(&page(text), &mut sketcher))).collect()
}

fn texts() -> Vec<String> {
    vec![
        words(1, 900),                                 // 0
        words(2, 900),                                 // 1
        format!("{}and an end", words(1, 890)),        // 2: near 0
        words(1, 900),                                 // 3: a copy of 0
        words(2, 300),                                 // 4: a part of 1
        words(3, 900),                                 // 5
        format!("{}{}", words(4, 900), words(3, 900)), // 6: contains 5
    ]
}

#[test]
fn groups_come_in_the_order_of_their_best_rank() {
    let refiner = Refiner::new(bloom()).unwrap();
    let folded = refiner.fold(&sketches(&refiner, &texts()));
    let shape: Vec<(usize, Vec<(usize, Relation)>)> = folded
        .groups
        .iter()
        .map(|group| (group.best, group.others.iter().map(|fold| (fold.at, fold.relation)).collect()))
        .collect();
    assert_eq!(
        shape,
        [
            (0, vec![(2, Relation::Near), (3, Relation::Exact)]),
            (1, vec![(4, Relation::ContainedIn)]),
            (5, vec![(6, Relation::Contains)]),
        ]
    );
    assert!((folded.duplicates(5) - 3.0 / 5.0).abs() < 1e-12, "2, 3 and 4 of the first five");
    assert!((folded.duplicates(10) - 4.0 / 7.0).abs() < 1e-12);
    assert!((folded.duplicates(1)).abs() < 1e-12);
}

#[test]
fn every_method_folds_copies_and_no_strangers() {
    for method in Method::all() {
        let refiner = Refiner::new(Refiner::defaults(method.clone())).unwrap();
        let texts = [words(1, 500), words(2, 500), words(1, 500), String::new(), String::new()];
        let folded = refiner.fold(&sketches(&refiner, &texts));
        let bests: Vec<usize> = folded.groups.iter().map(|group| group.best).collect();
        assert_eq!(bests, [0, 1, 3, 4], "{}: empty results are like nothing", method.name());
        assert_eq!(folded.groups[0].others[0].relation, Relation::Exact);
    }
}

#[test]
fn chains_are_folded_only_on_request() {
    // Each has half of the one before it.
    let part = |from: u32| (from..from + 4).map(|topic| words(topic, 300)).collect::<String>();
    let list = [part(10), part(11), part(12), part(13)];
    let star = Refiner::new(with(&bloom(), &[("threshold", "0.6")])).unwrap();
    let folded = star.fold(&sketches(&star, &list));
    assert!(folded.groups.len() > 1, "{folded:?}");
    assert!(folded.groups.iter().flat_map(|group| &group.others).all(|fold| fold.similarity >= 0.6));
    let mut chains = star.config().clone();
    chains.groups.cluster = ClusterMode::Components;
    let chains = Refiner::new(chains).unwrap();
    assert_eq!(chains.fold(&sketches(&chains, &list)).groups.len(), 1);
}

#[test]
fn stored_sketches_fold_like_texts() {
    for method in Method::all() {
        let refiner = Refiner::new(Refiner::defaults(method.clone())).unwrap();
        let fresh = sketches(&refiner, &texts());
        let text = |sketch: &Option<StoredSketch>| sketch.as_ref().unwrap().to_text(refiner.config());
        let stored: Vec<_> = fresh.iter().map(|sketch| refiner.read_sketch(&text(sketch)).ok()).collect();
        assert_eq!(stored, fresh, "{}", method.name());
        assert_eq!(refiner.fold(&stored), refiner.fold(&fresh));
    }
}

#[test]
fn golden_sketch_and_foreign_ones() {
    let refiner = Refiner::new(with(&bloom(), &[("filter_bits", "64")])).unwrap();
    let made = sketches(&refiner, &["one two three four five six seven eight nine".to_owned()]);
    let text = made[0].as_ref().unwrap().to_text(refiner.config());
    assert_eq!(text, GOLDEN);
    let looser = Refiner::new(with(refiner.config(), &[("threshold", "0.5")])).unwrap();
    assert!(looser.read_sketch(&text).is_ok(), "the threshold is not part of a sketch");
    for (other, complaint) in [
        (with(refiner.config(), &[("filter_bits", "128")]), "other settings"),
        (Config::default(), "is a sketch of bloom"),
    ] {
        let error = Refiner::new(other).unwrap().read_sketch(&text).unwrap_err();
        assert!(error.contains(complaint), "{error}");
    }
    let damaged = "is damaged: cut short, or changed";
    let (head, digits) = text.rsplit_once('.').unwrap();
    let changed = |change: fn(&mut StoredSketch)| {
        let mut sketch = made[0].clone().unwrap();
        change(&mut sketch);
        sketch.to_text(refiner.config())
    };
    for (broken, complaint) in [
        ("hello".to_owned(), "is not a lookalike sketch"),
        ("2.bloom.0.00".to_owned(), "is a sketch of version 2; this program reads version 1"),
        (text[..text.len() - 1].to_owned(), damaged),
        (text[..text.len() - 2].to_owned(), damaged),
        (format!("{head}.zz{}", &digits[2..]), damaged),
        (changed(|sketch| sketch.sketch.truncate(1)), damaged),
        (changed(|sketch| sketch.features.reverse()), damaged),
        (changed(|sketch| sketch.weights.push(1)), damaged),
    ] {
        assert_eq!(refiner.read_sketch(&broken), Err(complaint.to_owned()), "{broken}");
    }
}

const GOLDEN: &str = "1.bloom.4abcec6b5fa9db37.090000003db32e6a376ed917a72b456238636f7603000000000000007e5c9a68b2c339190f262c126f5b2498c322d1ece69501ef1088001800a08603";

#[test]
fn filters_rule_out_nothing_that_is_similar() {
    let refiner = Refiner::new(with(&bloom(), &[("threshold", "0.4"), ("filter_bits", "256")])).unwrap();
    // Texts that share more and more with each other, in filters that are far too full.
    let list: Vec<String> =
        (0..24).map(|n| (n % 5..n % 5 + 1 + n % 7).map(|topic| words(topic, 60)).collect()).collect();
    let sketches = sketches(&refiner, &list);
    let links = refiner.links(&sketches);
    let mut near = 0;
    for right in 0..list.len() {
        for left in 0..right {
            let (a, b) = (sketches[left].as_ref().unwrap(), sketches[right].as_ref().unwrap());
            let is_near = refiner.score(Some(a), Some(b)).verdict == Verdict::Accepted;
            near += usize::from(is_near);
            assert_eq!(links.contains_key(&(left, right)), is_near || a.identity == b.identity, "{left} {right}");
        }
    }
    assert!(near > 40, "{near}");
}

/// Lists of these sketches, with names for all but the first.
fn named(sketches: &ListSketches) -> Lists {
    let lists =
        (0..sketches.len()).map(|at| ResultList { name: (at > 0).then(|| format!("query {at}")), results: Vec::new() });
    Lists { path: "lists.json".into(), lists: lists.collect(), answer: None }
}

#[test]
fn what_is_plotted_is_what_folding_each_beginning_gives() {
    // 70 results of 9 stories, each a little longer than the last, and a short list.
    let text = |n: u32| format!("{}{}", words(n * n % 9, 400), words(100 + n % 7, 20 * (n % 7)));
    let (long, short): (Vec<String>, Vec<String>) = ((0..70).map(text).collect(), (5..17).map(text).collect());
    for cluster in [ClusterMode::Star, ClusterMode::Components] {
        let mut config = bloom();
        config.groups.cluster = cluster;
        let refiner = Refiner::new(config.clone()).unwrap();
        let sketches = vec![sketches(&refiner, &long), sketches(&refiner, &short)];
        let found = spread(&refiner, &named(&sketches), &sketches).unwrap();
        assert_eq!(found.lengths, [10, 20, 30, 40, 50, 70]);
        assert_eq!(found.lists, [2, 1, 1, 1, 1, 1]);
        for (at, &threshold) in found.thresholds.iter().enumerate() {
            let strict = Refiner::new(config.with_method(config.method.with_threshold(threshold))).unwrap();
            for (place, &length) in found.lengths.iter().enumerate() {
                let long_enough = sketches.iter().filter(|list| list.len() >= length);
                let groups: Vec<usize> = long_enough.map(|list| strict.fold(&list[..length]).groups.len()).collect();
                let mean = groups.iter().sum::<usize>() as f64 / groups.len() as f64;
                assert!((found.groups[at][place] - mean).abs() < 1e-12, "{threshold} {length}");
                assert!((found.duplicates[at][place] - (1.0 - mean / length as f64)).abs() < 1e-12);
            }
        }
        assert_eq!(found.by_list.iter().map(|list| list.name.as_str()).collect::<Vec<_>>(), ["list 1", "query 1"]);
        assert_eq!(found.by_list[1].duplicates.iter().map(|point| point.0).collect::<Vec<_>>(), [10, 12]);
        for (list, row) in sketches.iter().zip(&found.by_list) {
            for &(length, duplicates) in &row.duplicates {
                assert_eq!(duplicates, length - refiner.fold(&list[..length]).groups.len(), "{} {length}", row.name);
            }
        }
        assert!(found.by_list[0].duplicates.last().is_some_and(|last| last.1 > 40), "{found:?}");
        assert_eq!(found.first.iter().map(|row| row.results).collect::<Vec<_>>(), [10, 20, 30, 40, 50]);
        let ten: Vec<f64> = sketches.iter().map(|list| refiner.fold(&list[..10]).duplicates(10)).collect();
        let (first, ends) = (&found.first[0], (ten[0].min(ten[1]), ten[0].max(ten[1])));
        assert_eq!((first.lists, first.minimum, first.maximum), (2, ends.0, ends.1));
        assert!((first.mean - (ten[0] + ten[1]) / 2.0).abs() < 1e-12);
    }
    let refiner = Refiner::new(Refiner::defaults(Method::named("simhash").unwrap())).unwrap();
    assert!(spread(&refiner, &named(&Vec::new()), &Vec::new()).is_err());
}

#[test]
fn every_list_has_its_curve_in_figures_of_eight() {
    let refiner = Refiner::new(bloom()).unwrap();
    let sketches: ListSketches = (0..9).map(|n| sketches(&refiner, &texts()[..3 + n % 4])).collect();
    let lists = named(&sketches);
    let folded: Vec<Folded> = sketches.iter().map(|list| refiner.fold(list)).collect();
    let found = spread(&refiner, &lists, &sketches).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lists.html");
    write_report(&found, &refiner, &lists, &folded, &path).unwrap();
    let page = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        page.matches("<svg class=\"wide\"").count(),
        5,
        "two of Figure 4, two of Figures 5 to 7, one of Figures 8 to 10"
    );
    let all: usize = folded.iter().flat_map(|list| &list.groups).map(|group| group.others.len()).sum();
    assert!(all > 0 && page.contains("<h2>Folded results</h2>") && page.matches("<tr><td").count() == all);
    let table = std::fs::read_to_string(path.with_extension("csv")).unwrap();
    assert!(["Figure 4", "Figures 5 to 7", "Figures 8 to 10"].iter().all(|figure| table.contains(figure)));
    assert!(table.contains("part 2 of 2") && table.contains(",query 8,3,1\n"), "{table}");
    assert!(path.with_extension("json").exists());
    for ending in ["json", "csv"] {
        assert!(write_report(&found, &refiner, &lists, &folded, &path.with_extension(ending)).is_err());
    }
    let nothing = spread(&refiner, &named(&Vec::new()), &Vec::new()).unwrap();
    write_report(&nothing, &refiner, &named(&Vec::new()), &[], &path).unwrap();
}

#[test]
fn the_same_title_lets_less_similar_long_texts_suffice() {
    let refiner = Refiner::new(bloom()).unwrap();
    let texts = [words(1, 900), format!("{}{}", words(1, 540), words(5, 360)), words(6, 900)];
    let sketches = sketches(&refiner, &texts);
    assert_eq!(refiner.fold(&sketches).groups.len(), 3, "the texts alone are not similar enough");
    let list = |titles: [&str; 3]| {
        titles.map(|title| SearchResult { title: Some(title.to_owned()), ..SearchResult::default() })
    };
    let folded = refiner.fold_results(&list(["Storms at sea", "Storms at sea | Herald", "Storms at sea"]), &sketches);
    let found: Vec<(usize, String)> =
        folded.groups[0].others.iter().map(|fold| (fold.at, fold.evidence.to_string())).collect();
    assert_eq!(
        found,
        [(1, "text,title".to_owned())],
        "a long text that has nothing in common stays, whatever its title"
    );
    assert_eq!(
        refiner.fold_results(&list(["Storms at sea", "Calm seas", "Storms"]), &sketches),
        refiner.fold(&sketches)
    );
}

#[test]
fn results_without_texts_are_folded_by_their_urls() {
    let refiner = Refiner::new(bloom()).unwrap();
    let result = |url: &str| SearchResult { url: Some(url.to_owned()), ..SearchResult::default() };
    let results = [result("http://a.org/x"), result("https://www.a.org/x?utm_source=y"), result("http://a.org/z")];
    let folded = refiner.fold_results(&results, &[None, None, None]);
    assert_eq!(folded.groups.len(), 2);
    let fold = folded.groups[0].others[0];
    assert_eq!((fold.at, fold.relation, fold.similarity), (1, Relation::SameUrl, 0.0));
}
