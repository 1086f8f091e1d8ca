//! `refine` on labelled lists of search results.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // in a test, failing is the point

use lookalike::Refiner;
use lookalike::method::Bloom;
use lookalike::refine::EvidenceSet;
use lookalike_bench::result_lists::{Half, Shown, count, folder, read};

fn refiner(evidence: EvidenceSet) -> Refiner {
    Refiner::new(Refiner::defaults(Bloom::default())).unwrap().with_evidence(evidence)
}

#[test]
fn whole_texts_and_snippets_are_folded_as_the_labels_say() {
    let lists = read(&folder()).unwrap();
    assert!(lists.len() >= 40);
    for half in [Half::Tuning, Half::HeldOut] {
        for (shown, bar) in [(Shown::WholeText, 0.9), (Shown::Snippet, 0.8)] {
            let counts = count(&lists, half, &refiner(EvidenceSet::ALL), shown);
            println!("{half:?} {shown:?}: {counts:?}, F1 {:.3}", counts.f1());
            assert!(counts.gold > 400 && counts.f1() >= bar, "{half:?} {shown:?}: {counts:?}, F1 {:.3}", counts.f1());
        }
        // Titles and URLs find more in whole texts, and hardly anything that is wrong.
        let [text, all] =
            [EvidenceSet::TEXT, EvidenceSet::ALL].map(|used| count(&lists, half, &refiner(used), Shown::WholeText));
        assert!(all.precision() >= 0.99 && all.recall() > text.recall(), "{text:?} {all:?}");
        // Without them, most windows of one page are strangers.
        assert!(count(&lists, half, &refiner(EvidenceSet::TEXT), Shown::Snippet).recall() < 0.4);
    }
}
