//! Collections that are built anew while they are in use.

use super::*;
use crate::online::Rebuild;

static STAYS: AtomicBool = AtomicBool::new(false);

/// 60 words of which those in `other` are not those of the page with the same number.
fn edited(number: u64, other: std::ops::Range<u64>) -> String {
    let word = |at: u64| {
        let seed = if other.contains(&at) { number + 5000 } else { number };
        format!("w{:x}", crate::random::next_random(&mut (seed << 16 | at)) >> 40)
    };
    (0..60).map(word).collect::<Vec<_>>().join(" ")
}

/// Of 40 pages the numbers whose edited copy is recognised.
fn recognised(online: &Online, other: std::ops::Range<u64>) -> Vec<u64> {
    let is_known = |number: &u64| online.check(&page(None, &edited(*number, other.clone()))).unwrap();
    (0..40).filter(|number| is_known(number).verdict != PageVerdict::New).collect()
}

/// A collection that is searched by fingerprints, and keeps texts.
fn by_fingerprints(radius: u32) -> IndexConfig {
    IndexConfig { radius, keeps_text: true, ..config() }
}

fn with_threshold(threshold: f64) -> IndexConfig {
    let bands = BandConfig { found_from: threshold, ..BandConfig::default() };
    IndexConfig::bands(bands, threshold)
}

#[test]
fn a_collection_gets_another_threshold_and_another_method_while_pages_come_and_go() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut current = Arc::new(online_as(directory, &banded()));
    for number in 0..40 {
        put(&current, Some(&number.to_string()), &edited(number, 0..0), StorePolicy::Always).unwrap();
    }
    // Of 56 runs 28 are left when 24 words at the end are others: 0.36.
    assert!(recognised(&current, 32..60).is_empty());
    let configs = [with_threshold(0.3), by_fingerprints(3), with_threshold(0.7), by_fingerprints(5)];
    for (round, wanted) in (1..).zip(configs) {
        let mut rebuild = Rebuild::begin(Arc::clone(&current), wanted.clone(), OnlineOptions::default()).unwrap();
        let mut told = 0;
        assert_eq!(rebuild.catch_up(&STAYS, |part| told += part).unwrap(), 40);
        assert_eq!(told, 40);
        // The old one answers and stores meanwhile: one page goes, one comes, one is replaced.
        assert!(delete(&current, "7"));
        put(&current, Some("late"), &text(99), StorePolicy::IfNew).unwrap();
        put(&current, Some("8"), &text(100 + round), StorePolicy::Always).unwrap();
        let new = rebuild.finish(&STAYS).unwrap();
        assert_eq!(current.stats().pages, 40);
        drop(std::mem::replace(&mut current, Arc::new(new)));
        assert_eq!(current.config(), &wanted);
        assert_eq!(current.stats().pages, 40);
        for (id, words) in [("late", text(99)), ("8", text(100 + round)), ("3", edited(3, 0..0))] {
            let outcome = current.check(&page(None, &words)).unwrap();
            assert_eq!((outcome.verdict, outcome.of[0].id.as_str()), (PageVerdict::Exact, id), "round {round}");
        }
        assert!(current.get("7").unwrap().is_none());
        let all: Vec<u64> = (0..40).filter(|number| ![7, 8].contains(number)).collect();
        match round {
            1 => assert_eq!(recognised(&current, 32..60), all),
            3 => assert!(recognised(&current, 32..60).is_empty() && recognised(&current, 57..60) == all),
            _ => assert!(current.get("3").unwrap().unwrap().fingerprint.is_some()),
        }
        // It is there after a crash and after a stop, and nothing else is.
        drop(current);
        current = Arc::new(online_as(directory, &wanted));
        Arc::into_inner(current).unwrap().close().unwrap();
        assert!(Index::open(directory, OpenOptions::default()).unwrap().verify().is_empty());
        let mut names: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["lock", "manifest.json", format!("rebuilt-{round}").as_str()]);
        let read_only = Online::open_read_only(directory, OnlineOptions::default()).unwrap();
        assert_eq!(read_only.stats().pages, 40);
        drop(read_only);
        current = Arc::new(online_as(directory, &wanted));
        // As it was for the next round.
        delete(&current, "late");
        put(&current, Some("7"), &edited(7, 0..0), StorePolicy::Always).unwrap();
        put(&current, Some("8"), &edited(8, 0..0), StorePolicy::Always).unwrap();
    }
}

#[test]
fn what_is_not_finished_leaves_the_collection_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let current = Arc::new(online_as(directory, &banded()));
    put(&current, Some("a"), &text(1), StorePolicy::IfNew).unwrap();
    let begin = |config| Rebuild::begin(Arc::clone(&current), config, OnlineOptions::default());
    let mut rebuild = begin(with_threshold(0.5)).unwrap();
    assert!(rebuild.catch_up(&AtomicBool::new(true), |_| {}).unwrap_err().to_string().contains("stops"));
    drop(rebuild);
    assert!(!directory.join("rebuilt-1").exists());
    // The last step fails: the manifest cannot be written.
    let mut rebuild = begin(with_threshold(0.5)).unwrap();
    rebuild.catch_up(&STAYS, |_| {}).unwrap();
    std::fs::create_dir(directory.join("manifest.json.new")).unwrap();
    assert!(rebuild.finish(&STAYS).is_err());
    assert!(!directory.join("rebuilt-1").exists());
    std::fs::remove_dir(directory.join("manifest.json.new")).unwrap();
    assert_eq!(current.check(&page(None, &text(1))).unwrap().verdict, PageVerdict::Exact);
    // As after a crash in the midst of it.
    std::mem::forget(begin(with_threshold(0.5)).unwrap());
    assert!(directory.join("rebuilt-1").exists());
    drop(current);
    let copy = tempfile::tempdir().unwrap();
    let status = std::process::Command::new("cp").arg("-r").arg(directory).arg(copy.path().join("copy")).status();
    assert!(status.unwrap().success());
    let again = online_as(&copy.path().join("copy"), &banded());
    assert_eq!((again.stats().pages, again.config().threshold), (1, 0.7));
    assert!(!copy.path().join("copy/rebuilt-1").exists());
}

#[test]
fn what_cannot_be_read_again_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let without = IndexConfig { keeps_text: false, ..config() };
    let current = Arc::new(online_as(directory.path(), &without));
    put(&current, Some("a"), &text(1), StorePolicy::IfNew).unwrap();
    let begin = |config| Rebuild::begin(Arc::clone(&current), config, OnlineOptions::default());
    assert!(begin(banded()).map(drop).unwrap_err().to_string().contains("were not kept"));
    assert!(begin(by_fingerprints(3)).map(drop).unwrap_err().to_string().contains("are gone"));
    // Fingerprints stay what they are at another radius.
    let mut wider = begin(IndexConfig { radius: 6, ..without.clone() }).unwrap();
    assert_eq!(wider.catch_up(&STAYS, |_| {}).unwrap(), 1);
    let wider = wider.finish(&STAYS).unwrap();
    assert_eq!(wider.check(&page(None, &text(1))).unwrap().verdict, PageVerdict::Exact);
    let story = tempfile::tempdir().unwrap();
    let story = Arc::new(online_as(story.path(), &banded()));
    let mut links = BandConfig::default();
    links.content.scope = Scope::Links;
    let links = IndexConfig::bands(links, 0.7);
    let refused = Rebuild::begin(story, links, OnlineOptions::default()).map(drop).unwrap_err();
    assert!(refused.to_string().contains("without their markup"), "{refused}");
}

#[test]
fn pages_in_blocks_keep_their_frames_or_get_the_core_of_their_text() {
    let directory = tempfile::tempdir().unwrap();
    let current = Arc::new(online_as(directory.path(), &banded()));
    let frame = text(7).split(' ').take(80).collect::<Vec<_>>().join(" ");
    let html = |number: u64| {
        let story = edited(number, 0..0);
        format!(
            "<html><title>{number}</title><body><div class=top><p>{frame}</p></div><main><h1>{number}</h1><p>{story}</p></main></body></html>"
        )
    };
    let put_html = |online: &Online, number: u64| {
        let (text, id) = (html(number), number.to_string());
        let url = format!("http://roses.example/{number}");
        let mut page = RawPage::new(Body::Text(text.into()), Markup::Html);
        (page.id, page.url) = (Some(id.into()), Some(url.into()));
        online.insert(&page, StorePolicy::IfNew).unwrap().verdict
    };
    // Until the frame is learnt, pages are like each other for it; then each is new.
    let news = (0..60).filter(|&number| put_html(&current, number) == PageVerdict::New).count();
    assert!(news > 30, "{news}");
    let change = |from: Arc<Online>, config: IndexConfig| {
        let mut rebuild = Rebuild::begin(Arc::clone(&from), config, OnlineOptions::default()).unwrap();
        rebuild.catch_up(&STAYS, |_| {}).unwrap();
        Arc::new(rebuild.finish(&STAYS).unwrap())
    };
    let stored = current.stats().pages;
    let lower = change(current, with_threshold(0.6));
    assert_eq!(lower.stats().pages, stored);
    assert_eq!(put_html(&lower, 1000), PageVerdict::New, "its frame is known at once");
    assert_eq!(put_html(&lower, 59), PageVerdict::Exact);
    let by_fingerprint = change(lower, by_fingerprints(3));
    assert_eq!(put_html(&by_fingerprint, 59), PageVerdict::Exact, "its core is that of the page that comes");
    let back = change(by_fingerprint, banded());
    assert_eq!(back.stats().pages, stored + 1);
    assert_eq!(put_html(&back, 59), PageVerdict::Exact);
    assert_eq!(put_html(&back, 1001), PageVerdict::New, "frames are learnt anew from what was stored");
}
