//! A crowd of pages that are like each other: what it costs others, and what it must not hide.

use super::*;
use crate::random::next_random;

/// Pages whose records are looked at for one page: those that share most, and more of them where fingerprints are near and
/// nothing is confirmed.
const MOST_LOOKED_AT: usize = 64;
const MOST_TRIED: usize = 256;
/// Pages whose texts are read for one page.
const MOST_READ: usize = 16;

for_both_kinds! {
    a_crowd_of_the_same_words_costs_others_nothing_and_hides_no_copy,
    a_crowd_of_near_duplicates_costs_others_nothing_and_hides_no_copy,
}

fn numbered(seed: u64, count: u64) -> Vec<String> {
    (0..count).map(|at| format!("w{:x}", next_random(&mut (seed << 20 | at)))).collect()
}

/// The same words in an order that follows from `number`.
fn permutation(number: u64) -> String {
    let (mut words, mut state) = (numbered(1, 45), number + 1);
    for at in (1..words.len()).rev() {
        words.swap(at, usize::try_from(next_random(&mut state) % (at as u64 + 1)).unwrap());
    }
    words.join(" ")
}

/// Nine of ten words are the same.
fn sibling(number: u64) -> String {
    format!("{} {}", numbered(2, 90).join(" "), numbered(1000 + number, 10).join(" "))
}

/// Stores texts in any case; many wait at once, so that one sync serves them.
fn put_all(online: &Online, texts: &[String]) {
    for (part, texts) in texts.chunks(500).enumerate() {
        let (sender, stored) = mpsc::channel();
        for (at, text) in texts.iter().enumerate() {
            let (sender, id) = (sender.clone(), format!("{part}-{at}"));
            let done = move |outcome| sender.send(outcome).unwrap();
            online.put(&page(Some(&id), text), StorePolicy::Always, PageExtras::default(), done).unwrap();
        }
        texts.iter().for_each(|_| assert!(stored.recv().unwrap().unwrap().stored));
    }
}

fn a_crowd(config: &IndexConfig, count: u64, member: fn(u64) -> String) {
    let directory = tempfile::tempdir().unwrap();
    let online = online_as(directory.path(), config);
    let others_find_nothing = |numbers: std::ops::Range<u64>| {
        for number in numbers {
            let outcome = put(&online, None, &text(number), StorePolicy::IfNew).unwrap();
            assert!(outcome.stored && outcome.candidates == 0, "{outcome:?}");
        }
    };
    others_find_nothing(0..50);
    put_all(&online, &(0..count).map(member).collect::<Vec<_>>());
    others_find_nothing(50..100);

    // One of the crowd has no more work than the limits allow, however large the crowd is.
    for number in count..count + 20 {
        let outcome = online.check(&page(None, &member(number))).unwrap();
        let looked_at: Vec<&ComparedCandidate> = outcome.of.iter().chain(&outcome.rejected).collect();
        let read = looked_at.iter().filter(|other| !other.is_estimated).count();
        let most = if config.has_bands() { MOST_LOOKED_AT } else { MOST_TRIED };
        let most_read = if config.has_bands() { MOST_READ } else { 2 * MOST_READ };
        assert!(looked_at.len() <= most && read <= most_read, "{} looked at, {read} read", looked_at.len());
    }

    // Its first copy may be new; those that follow are copies.
    let copied = member(count + 100);
    put(&online, Some("original"), &copied, StorePolicy::Always).unwrap();
    for number in 0..200 {
        let outcome = put(&online, Some(&format!("copy-{number}")), &copied, StorePolicy::IfNew).unwrap();
        assert_eq!((outcome.verdict, outcome.of[0].id.as_str()), (PageVerdict::Exact, "original"), "{number}");
    }
}

fn a_crowd_of_the_same_words_costs_others_nothing_and_hides_no_copy(config: &IndexConfig) {
    a_crowd(config, 10_000, permutation);
}

fn a_crowd_of_near_duplicates_costs_others_nothing_and_hides_no_copy(config: &IndexConfig) {
    a_crowd(config, 2000, sibling);
}
