use std::collections::HashSet;
use std::path::Path;
use std::sync::Barrier;
use std::sync::mpsc::sync_channel;

use super::*;
use crate::config::{FingerprintConfig, ReadConfig};
use crate::index::store::{CACHE_BYTES, ChangeGroup, Store};
use crate::index::{Id, RowChange};
use crate::page::{Body, Markup};

/// A collection that is searched by fingerprints.
fn config() -> IndexConfig {
    IndexConfig::pages(FingerprintConfig::default(), 3)
}

/// One that is searched by bands.
fn banded() -> IndexConfig {
    IndexConfig::bands(BandConfig::default(), 0.7)
}

fn online(directory: &Path) -> Online {
    online_as(directory, &config())
}

fn online_as(directory: &Path, config: &IndexConfig) -> Online {
    if !directory.join("manifest.json").exists() {
        Online::create(directory, config.clone()).unwrap();
    }
    Online::open(directory, OnlineOptions::default()).unwrap()
}

/// What holds for both kinds of collections.
macro_rules! for_both_kinds {
    ($($name:ident),* $(,)?) => {
        mod with_fingerprints {
            $(#[test] fn $name() { super::$name(&super::config()); })*
        }
        mod with_bands {
            $(#[test] fn $name() { super::$name(&super::banded()); })*
        }
    };
}

mod bands;
mod crowd;
mod rebuild;

for_both_kinds! {
    new_near_exact_short_and_empty,
    of_many_like_pages_at_once_one_is_new,
    what_was_acknowledged_is_there_after_a_stop_and_after_a_crash,
    pages_are_replaced_and_removed,
    a_backup_is_a_snapshot_of_an_index_in_use,
    changes_that_are_in_segments_leave_the_log,
    empty_pages_get_names_and_take_no_page_away,
    parts_of_an_index_that_are_gone_are_missed,
    a_damaged_segment_is_named_and_the_rest_is_served_on_request,
}

/// Words that no other number has.
fn text(number: u64) -> String {
    let word = |at: u64| format!("w{:x}", crate::random::next_random(&mut (number << 16 | at)));
    (0..600).map(word).collect::<Vec<_>>().join(" ")
}

fn page<'a>(id: Option<&'a str>, text: &'a str) -> RawPage<'a> {
    let mut page = RawPage::new(Body::Text(text.into()), Markup::Text);
    page.id = id.map(Into::into);
    page
}

fn put(online: &Online, id: Option<&str>, text: &str, policy: StorePolicy) -> Result<CheckOutcome> {
    let (sender, receiver) = sync_channel(1);
    online.put(&page(id, text), policy, PageExtras::default(), move |outcome| sender.send(outcome).unwrap())?;
    receiver.recv().unwrap()
}

fn delete(online: &Online, id: &str) -> bool {
    let (sender, receiver) = sync_channel(1);
    online.delete(id, move |outcome| sender.send(outcome).unwrap()).unwrap();
    receiver.recv().unwrap().unwrap()
}

fn new_near_exact_short_and_empty(config: &IndexConfig) {
    let directory = tempfile::tempdir().unwrap();
    let online = online_as(directory.path(), config);
    let first = text(1);
    let outcome = put(&online, Some("a"), &first, StorePolicy::IfNew).unwrap();
    assert_eq!((outcome.verdict, outcome.stored, outcome.length), (PageVerdict::New, true, PageLength::Enough));

    let outcome = put(&online, Some("b"), &first, StorePolicy::IfNew).unwrap();
    assert_eq!((outcome.verdict, outcome.stored), (PageVerdict::Exact, false));
    let distance = (!config.has_bands()).then_some(0);
    assert_eq!(
        (outcome.of[0].id.as_str(), outcome.of[0].distance, outcome.of[0].similarity),
        ("a", distance, Some(1.0))
    );

    let near = format!("{first} and one more");
    let outcome = online.check(&page(None, &near)).unwrap();
    assert_eq!((outcome.verdict, outcome.id), (PageVerdict::Near, None));
    assert!(outcome.of[0].similarity.unwrap() > 0.8, "{:?}", outcome.of);

    assert_eq!(put(&online, Some("s"), "too short", StorePolicy::IfNew).unwrap().length, PageLength::Short);
    assert_eq!(online.check(&page(None, "too short")).unwrap().verdict, PageVerdict::Exact);
    assert_eq!(online.check(&page(None, "two short")).unwrap().verdict, PageVerdict::New);
    for id in ["e1", "e2"] {
        let outcome = put(&online, Some(id), " . ", StorePolicy::IfNew).unwrap();
        assert_eq!((outcome.verdict, outcome.stored, outcome.length), (PageVerdict::New, true, PageLength::Empty));
    }
    assert!(online.get("e2").unwrap().is_some() && online.get("b").unwrap().is_none());
}

/// An index of fingerprints of single words, and a text that decides such a fingerprint: it is said a thousand times.
fn by_words(directory: &Path) -> (Online, String) {
    let words = FingerprintConfig { ngram: 1, ..FingerprintConfig::default() };
    Online::create(directory, IndexConfig::pages(words, 3)).unwrap();
    let frame = [("thunder ", 1000), ("rain ", 3000), ("sunshine ", 9000)];
    (online(directory), frame.map(|(word, times)| word.repeat(times)).concat())
}

#[test]
fn a_near_fingerprint_alone_is_not_a_near_duplicate() {
    let directory = tempfile::tempdir().unwrap();
    let (online, frame) = by_words(directory.path());
    let (left, right) = (format!("{frame} {}", text(1)), format!("{frame} {}", text(2)));
    put(&online, Some("left"), &left, StorePolicy::IfNew).unwrap();
    let outcome = online.check(&page(None, &right)).unwrap();
    assert_eq!((outcome.verdict, outcome.candidates), (PageVerdict::New, 1));
    assert_eq!(outcome.rejected[0].id, "left");
    assert!(outcome.rejected[0].distance <= Some(3) && outcome.rejected[0].similarity.unwrap() < 0.3, "{outcome:?}");
}

fn of_many_like_pages_at_once_one_is_new(config: &IndexConfig) {
    let directory = tempfile::tempdir().unwrap();
    let online = online_as(directory.path(), config);
    let threads = 16;
    for round in 0..20u64 {
        let barrier = Barrier::new(threads);
        let outcomes: Vec<CheckOutcome> = std::thread::scope(|scope| {
            let put = |thread: usize| {
                // All but one word is the same.
                let words: Vec<String> = (0..10).map(|part| text(1000 + round * 10 + part)).collect();
                let text = format!("{} ending{thread}", words.join(" "));
                barrier.wait();
                put(&online, Some(&format!("{round}-{thread}")), &text, StorePolicy::IfNew).unwrap()
            };
            let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || put(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let stored: Vec<&CheckOutcome> = outcomes.iter().filter(|outcome| outcome.stored).collect();
        assert_eq!(stored.len(), 1, "{outcomes:?}");
        for other in outcomes.iter().filter(|outcome| !outcome.stored) {
            assert_eq!((other.verdict, Some(&other.of[0].id)), (PageVerdict::Near, stored[0].id.as_ref()));
        }
    }
}

fn what_was_acknowledged_is_there_after_a_stop_and_after_a_crash(config: &IndexConfig) {
    let directory = tempfile::tempdir().unwrap();
    let all = |online: &Online, count: u64| {
        for number in 0..count {
            let id = number.to_string();
            let outcome = online.check(&page(None, &text(number))).unwrap();
            assert_eq!(outcome.of.iter().map(|near| &near.id).collect::<Vec<_>>(), [&id], "{number}");
            assert!(online.get(&id).unwrap().is_some());
        }
        assert_eq!(online.stats().pages, count);
    };
    let mut count = 0;
    for (round, is_stopped) in [true, false, false, true].into_iter().enumerate() {
        let online = online_as(directory.path(), config);
        all(&online, count);
        for number in count..count + 400 {
            put(&online, Some(&number.to_string()), &text(number), StorePolicy::IfNew).unwrap();
        }
        count += 400;
        all(&online, count);
        let refused = Index::open(directory.path(), OpenOptions::default()).err().unwrap();
        assert!(matches!(refused, Error::IndexLocked { .. }), "{refused}");
        if is_stopped {
            online.close().unwrap();
        } else {
            drop(online);
            // Whoever reads without a server sees all that the store has.
            let index = Index::open(directory.path(), OpenOptions::default()).unwrap();
            let rows = index.tiers().rows / if config.has_bands() { 17 } else { 1 };
            assert_eq!(rows, count, "round {round}");
            assert_eq!(index.verify(), Vec::<String>::new());
        }
    }
    let index = Index::open(directory.path(), OpenOptions { write: true, ..OpenOptions::default() }).unwrap();
    assert_eq!((index.reader().len().0, index.covered()), (if config.has_bands() { 0 } else { count }, count));
}

fn pages_are_replaced_and_removed(config: &IndexConfig) {
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (text(1), text(2));
    {
        let online = online_as(directory.path(), config);
        assert!(!put(&online, Some("a"), &old, StorePolicy::Always).unwrap().replaced);
        assert!(put(&online, Some("a"), &new, StorePolicy::Always).unwrap().replaced);
        assert_eq!(online.check(&page(None, &old)).unwrap().verdict, PageVerdict::New);
        assert_eq!(online.check(&page(None, &new)).unwrap().verdict, PageVerdict::Exact);
        put(&online, Some("b"), &old, StorePolicy::Always).unwrap();
        assert!(delete(&online, "b") && !delete(&online, "b") && !delete(&online, "c"));
        assert_eq!(online.check(&page(None, &old)).unwrap().candidates, 0);
        // Without an id, one is made.
        let made = put(&online, None, &text(3), StorePolicy::IfNew).unwrap().id.unwrap();
        assert_eq!(online.check(&page(None, &text(3))).unwrap().of[0].id, made);
    }
    let online = online_as(directory.path(), config);
    assert_eq!(online.check(&page(None, &old)).unwrap().candidates, 0);
    assert_eq!(online.check(&page(None, &new)).unwrap().of[0].id, "a");
    online.close().unwrap();
    let index = Index::open(directory.path(), OpenOptions::default()).unwrap();
    assert_eq!(index.verify(), Vec::<String>::new());
    if config.has_bands() {
        return;
    }
    let mut ids = Vec::new();
    let mut take = |_, id: &Id| {
        ids.push(id.to_string());
        Ok(())
    };
    index.reader().for_each_row(&mut take).unwrap();
    ids.sort();
    assert_eq!(ids.len(), 2, "{ids:?}");
}

#[test]
fn a_hole_in_the_journal_is_found_and_what_is_left_is_served_on_request() {
    let directory = tempfile::tempdir().unwrap();
    drop(online(directory.path()));
    {
        let store = Store::open(directory.path(), CACHE_BYTES).unwrap();
        for number in [1, 2, 4, 5] {
            let changes = vec![RowChange::Insert(number << 32, Id::from(format!("{number}").as_str()))];
            store.write(&ChangeGroup { first: number, changes, ..ChangeGroup::default() }, true).unwrap();
        }
    }
    let error = Online::open(directory.path(), OnlineOptions::default()).err().unwrap().to_string();
    assert!(error.contains("changes 3 to 3 are missing, and 4 is there"), "{error}");
    let options = OnlineOptions { skip_damaged: true, ..OnlineOptions::default() };
    let online = Online::open(directory.path(), options).unwrap();
    assert_eq!(online.reader().len().0, 4);
    let refused = put(&online, Some("a"), &text(1), StorePolicy::Always).unwrap_err();
    assert!(matches!(refused, Error::ReadOnly { .. }), "{refused}");
}

fn a_damaged_segment_is_named_and_the_rest_is_served_on_request(config: &IndexConfig) {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..2u64 {
        let online = online_as(directory.path(), config);
        (0..300).for_each(|number| drop(put(&online, None, &text(round << 10 | number), StorePolicy::IfNew).unwrap()));
        online.close().unwrap();
    }
    let mut segments: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().flatten().map(|entry| entry.path()).collect();
    segments.retain(|path| path.extension().is_some_and(|extension| extension == "seg"));
    segments.sort();
    assert_eq!(segments.len(), 2);
    let mut bytes = std::fs::read(&segments[0]).unwrap();
    let length = bytes.len();
    // In the middle: not where opening looks.
    bytes[length / 3] ^= 1;
    std::fs::write(&segments[0], bytes).unwrap();
    let error = Online::open(directory.path(), OnlineOptions::default()).err().unwrap().to_string();
    assert!((error.contains("segment-") || error.contains("bands-")) && error.contains("`skip_damaged`"), "{error}");
    let options = OnlineOptions { skip_damaged: true, ..OnlineOptions::default() };
    let online = Online::open(directory.path(), options).unwrap();
    assert_eq!((online.stats().damaged.len(), online.stats().pages), (1, 600));
    assert_eq!(online.check(&page(None, &text(1 << 10))).unwrap().verdict, PageVerdict::Exact);
}

fn a_backup_is_a_snapshot_of_an_index_in_use(config: &IndexConfig) {
    let directory = tempfile::tempdir().unwrap();
    let copies = tempfile::tempdir().unwrap();
    let online = online_as(directory.path(), config);
    for number in 0..900u64 {
        put(&online, Some(&number.to_string()), &text(number), StorePolicy::IfNew).unwrap();
    }
    let copy = copies.path().join("copy");
    let made = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 900..1200u64 {
                put(&online, Some(&number.to_string()), &text(number), StorePolicy::IfNew).unwrap();
            }
        });
        let made = online.backup(&copy).unwrap();
        writer.join().unwrap();
        made
    });
    assert!(made.pages >= 900 && (config.has_bands() || made.rows == made.pages), "{made:?}");
    assert!(online.backup(&copy).is_err(), "there already");
    drop(online);
    let copy = Online::open(&copy, OnlineOptions::default()).unwrap();
    for number in 0..900u64 {
        let outcome = copy.check(&page(None, &text(number))).unwrap();
        assert_eq!((outcome.of.len(), outcome.of[0].id.clone()), (1, number.to_string()));
    }
    copy.close().unwrap();
}

fn changes_that_are_in_segments_leave_the_log(config: &IndexConfig) {
    let directory = tempfile::tempdir().unwrap();
    let online = online_as(directory.path(), config);
    for number in 0..300u64 {
        put(&online, None, &text(number), StorePolicy::IfNew).unwrap();
    }
    online.served.index.flush().unwrap();
    put(&online, None, &text(1000), StorePolicy::IfNew).unwrap();
    put(&online, None, &text(1001), StorePolicy::IfNew).unwrap();
    let first = online.served.store.first();
    assert_eq!((first, online.stats().covered, online.stats().last_change), (Some(301), 300, 302));
}

#[test]
fn an_index_that_was_built_is_served_with_its_sketches() {
    let directory = tempfile::tempdir().unwrap();
    let build = |numbers: std::ops::Range<u64>, is_replaced: bool| {
        let index = Index::create(directory.path(), config(), 0, is_replaced).unwrap();
        let mut bulk = index.bulk_insert().unwrap();
        let FingerprintOrigin::Pages(pages) = config().fingerprints else { panic!("pages") };
        let mut sketcher = Sketcher::new(&pages.config(&ReadConfig::default(), config().min_tokens));
        for number in numbers {
            let kept = crate::index::pages::stored_page(&page(None, &text(number)), &mut sketcher);
            let id = Id::from(number.to_string().as_str());
            bulk.push(kept.fingerprint.unwrap(), &id).unwrap();
            bulk.keep(&id, kept).unwrap();
        }
        bulk.finish().unwrap();
    };
    build(0..100, false);
    {
        let online = online(directory.path());
        let near = format!("{} and one more", text(7));
        let outcome = online.check(&page(None, &near)).unwrap();
        assert_eq!((outcome.verdict, outcome.of[0].id.as_str()), (PageVerdict::Near, "7"));
        put(&online, Some("online"), &text(1000), StorePolicy::IfNew).unwrap();
        assert!(delete(&online, "8"));
        assert_eq!(online.check(&page(None, &text(8))).unwrap().candidates, 0);
    }
    // What was stored online belongs to the index that is replaced.
    build(50..150, true);
    let online = online(directory.path());
    assert_eq!(online.stats().rows, 100);
    assert_eq!(online.check(&page(None, &text(1000))).unwrap().candidates, 0);
    assert!(online.get("online").unwrap().is_none() && online.get("7").unwrap().is_none());
    assert_eq!(online.check(&page(None, &text(140))).unwrap().of[0].id, "140");
}

#[test]
fn changes_are_covered_when_segments_are_written_and_not_before() {
    let directory = tempfile::tempdir().unwrap();
    Online::create(directory.path(), config()).unwrap();
    let options = OnlineOptions { memory_rows: 100, ..OnlineOptions::default() };
    let mut count = 0;
    for _ in 0..3 {
        let online = Online::open(directory.path(), options).unwrap();
        assert_eq!(online.stats().rows, count);
        for number in count..count + 700 {
            put(&online, Some(&number.to_string()), &text(number), StorePolicy::IfNew).unwrap();
            let stats = online.stats();
            // What the manifest says is on disk, and nothing of the rest has left the log.
            let manifest = std::fs::read_to_string(directory.path().join("manifest.json")).unwrap();
            let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
            assert!(manifest["store"]["covered"].as_u64().unwrap() >= stats.covered);
            let first = online.served.store.first().unwrap_or(u64::MAX);
            assert!(first <= manifest["store"]["covered"].as_u64().unwrap() + 1 || first == u64::MAX);
        }
        count += 700;
    }
    let online = Online::open(directory.path(), options).unwrap();
    assert!(online.stats().segments > 0 && online.stats().covered > 0);
    for number in 0..count {
        assert_eq!(online.check(&page(None, &text(number))).unwrap().of[0].id, number.to_string());
    }
}

#[test]
fn a_page_in_a_crowd_of_near_fingerprints_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let (online, frame) = by_words(directory.path());
    let crowd = 150;
    for round in 0..2 {
        for number in 0..crowd {
            let text = format!("{frame} {}", text(number));
            let outcome = put(&online, Some(&format!("{round}-{number}")), &text, StorePolicy::IfNew).unwrap();
            assert_eq!(outcome.stored, round == 0, "{number}");
            assert!(round == 0 || outcome.of[0].id == format!("0-{number}"), "{outcome:?}");
        }
    }
    // A page that is sent again is itself.
    let again = put(&online, Some("0-149"), &format!("{frame} {}", text(149)), StorePolicy::IfNew).unwrap();
    assert_eq!((again.verdict, again.of[0].id.as_str()), (PageVerdict::Exact, "0-149"));
}

fn empty_pages_get_names_and_take_no_page_away(config: &IndexConfig) {
    let directory = tempfile::tempdir().unwrap();
    let online = online_as(directory.path(), config);
    let names: HashSet<String> =
        (0..500).map(|_| put(&online, None, ".", StorePolicy::IfNew).unwrap().id.unwrap()).collect();
    assert_eq!(names.len(), 500);
    put(&online, Some("a"), &text(1), StorePolicy::IfNew).unwrap();
    let outcome = put(&online, Some("a"), ".", StorePolicy::IfNew).unwrap();
    assert_eq!((outcome.stored, outcome.length), (false, PageLength::Empty));
    assert_eq!(online.check(&page(None, &text(1))).unwrap().of[0].id, "a");
}

fn parts_of_an_index_that_are_gone_are_missed(config: &IndexConfig) {
    let directory = tempfile::tempdir().unwrap();
    let fill = |directory: &Path| {
        let online = online_as(directory, config);
        (0..200).for_each(|number| drop(put(&online, None, &text(number), StorePolicy::IfNew).unwrap()));
    };
    let refused = |directory: &Path| {
        let error = Online::open(directory, OnlineOptions::default()).err().unwrap().to_string();
        let options = OnlineOptions { skip_damaged: true, ..OnlineOptions::default() };
        // A journal in which nothing can be read any more cannot be skipped.
        assert!(Online::open(directory, options).is_ok() || error.contains("its journal is damaged"), "{error}");
        error
    };
    // The end of the journal.
    let place = directory.path().join("journal");
    fill(&place);
    let journal = place.join("store/0.jnl");
    let mut bytes = std::fs::read(&journal).unwrap();
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    bytes[used / 2..used / 2 + 1000].fill(0);
    std::fs::write(&journal, bytes).unwrap();
    let error = refused(&place);
    assert!(
        error.contains("were acknowledged and are not there") && error.contains("200")
            || error.contains("its journal is damaged"),
        "{error}"
    );
    // The store.
    let place = directory.path().join("store");
    fill(&place);
    std::fs::remove_dir_all(place.join("store")).unwrap();
    assert!(refused(&place).contains("it is gone"));
    // The manifest.
    let place = directory.path().join("manifest");
    fill(&place);
    std::fs::remove_file(place.join("manifest.json")).unwrap();
    let error = Online::create(&place, config.clone()).unwrap_err().to_string();
    assert!(error.contains("no manifest.json") && place.join("store").exists(), "{error}");
}
