//! What a service recognises of real pages holds the level it has.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // in a test, failing is the point

use lookalike_bench::labelled::{FramedDocs, install_guide, llvm_docs, same_core};
use lookalike_bench::recognised::{
    FramedRecognised, SentPage, by_label, default_collection, in_frames, reuters, texts, texts_of,
};

/// Stories of the Reuters collection that are sent: finding exact similarities takes most of the time.
const STORIES: usize = 8000;

fn share((all, part): (u64, u64)) -> f64 {
    part as f64 / all.max(1) as f64
}

fn check(name: &str, pages: &[SentPage], least_of_less_similar: f64) {
    let found = texts(default_collection(), pages).unwrap();
    println!("{name}: {found:?}");
    assert!(found.similar.0 > 20 && share(found.similar) >= 0.99, "{name}: {found:?}");
    assert!(share(found.less_similar) >= least_of_less_similar, "{name}: {found:?}");
    assert!((share(found.copies) - 1.0).abs() < 1e-9, "{name}: {found:?}");
    assert!(found.near.0 > 20 && share(found.near) <= 0.002, "{name}: {found:?}");
}

#[test]
fn edited_texts_are_recognised() {
    if let Some(mut stories) = reuters().unwrap() {
        stories.truncate(STORIES);
        check("reuters", &stories, 0.97);
    }
    if let Some(set) = llvm_docs().unwrap() {
        check(set.name, &texts_of(&set.directory, |_| true).unwrap(), 0.97);
    }
    if let Some(set) = install_guide().unwrap() {
        // A third of it is Japanese, which the engine cuts into words and what checks it into characters.
        check(set.name, &texts_of(&set.directory, |_| true).unwrap(), 0.92);
    }
}

#[test]
fn stories_are_recognised_in_other_frames() {
    let Some(set) = same_core().unwrap() else { return };
    let [known, recognised, near, wrong] = by_label(default_collection(), &set).unwrap();
    println!("{recognised} of {known}, {wrong} of {near} wrong");
    assert!(share((known, recognised)) >= 0.95, "{recognised} of {known}");
    assert!(share((near, wrong)) <= 0.005, "{wrong} of {near}");
}

#[test]
fn pages_of_a_site_are_told_apart_once_its_frame_is_known() {
    let Some(docs) = FramedDocs::open().unwrap() else { return };
    // Four pages in each row are Chinese, which the gold standard cuts into words otherwise.
    for (with_urls, most_wrong) in [(true, 0.02), (false, 0.022)] {
        let found = FramedRecognised::total(&in_frames(default_collection(), &docs, with_urls).unwrap());
        println!("{found:?}");
        assert!(found.near.0 > 100 && share(found.near) <= most_wrong, "{found:?}");
        assert!(share(found.less_similar) >= 0.9, "{found:?}");
    }
}
