//! Whole flows, with an object store in memory.

use std::time::Instant;

use super::*;
use crate::config::BandConfig;
use crate::index::IndexConfig;
use crate::online::ship::base::Base;
use crate::online::ship::layout::{LogObject, PrimaryRecord};
use crate::online::{OnlineOptions, PageVerdict, StorePolicy};
use crate::page::RawPage;

fn options(name: &str) -> ShipOptions {
    ShipOptions { url: "memory://seen".to_owned(), name: name.to_owned(), keep_bases: 2 }
}

/// A page like no other number's.
fn page(number: u32) -> RawPage<'static> {
    let words: Vec<String> = (0..60).map(|word| format!("w{}x{}", number, word * 7 + number)).collect();
    let mut page = RawPage::text(words.join(" "));
    page.id = Some(format!("page-{number}").into());
    page
}

fn primary(directory: &Path, bucket: &Bucket) -> Online {
    if !directory.join("manifest.json").exists() {
        Online::create(directory, IndexConfig::bands(BandConfig::default(), 0.7)).unwrap();
    }
    let online = Online::open(directory, OnlineOptions::default()).unwrap();
    online.ship_to(bucket.clone(), &options("one")).unwrap();
    online
}

fn follower(directory: &Path, bucket: &Bucket) -> Online {
    until(|| follower::prepare(directory, bucket).unwrap());
    let online = Online::open(directory, OnlineOptions::default()).unwrap();
    online.follow_from(bucket.clone(), &options("two")).unwrap();
    online
}

fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "it does not come about");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn until_role(online: &Online, role: ReplicationRole) {
    until(|| online.replication().unwrap().role == role);
}

fn store(online: &Online, numbers: std::ops::Range<u32>) {
    for number in numbers {
        assert_eq!(online.insert(&page(number), StorePolicy::IfNew).unwrap().verdict, PageVerdict::New);
    }
}

fn wait_until_shipped(online: &Online) -> Result<()> {
    let (sender, shipped) = mpsc::channel();
    online.when_shipped(online.group_reader()(), move |done| sender.send(done).unwrap())?;
    shipped.recv_timeout(Duration::from_secs(60)).expect("it is answered")
}

fn verdicts(online: &Online, numbers: std::ops::Range<u32>) -> Vec<PageVerdict> {
    numbers.map(|number| online.check(&page(number)).unwrap().verdict).collect()
}

fn until_caught_up(follower: &Online, group: u64) {
    until(|| follower.served.totals().groups >= group);
    assert_eq!(follower.served.totals().groups, group, "a follower is never ahead");
}

#[test]
fn a_follower_answers_what_the_primary_stored_and_takes_over() {
    let (bucket, one, two) = (Bucket::in_memory(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let old = primary(one.path(), &bucket);
    until_role(&old, ReplicationRole::Primary);
    store(&old, 0..20);
    let copy = follower(two.path(), &bucket);
    assert!(copy.insert(&page(99), StorePolicy::IfNew).unwrap_err().to_string().contains("follows"));
    store(&old, 20..30);
    let deleted = mpsc::channel();
    old.delete("page-3", move |done| deleted.0.send(done.unwrap()).unwrap()).unwrap();
    assert!(deleted.1.recv().unwrap());
    wait_until_shipped(&old).unwrap();
    until_caught_up(&copy, old.served.totals().groups);
    assert_eq!(copy.served.totals(), old.served.totals());
    assert_eq!(verdicts(&copy, 0..31), verdicts(&old, 0..31));
    assert_eq!(copy.text("page-7").unwrap(), old.text("page-7").unwrap());
    let stats = copy.replication().unwrap();
    assert!(stats.primary.unwrap().starts_with("one-") && stats.trouble.is_none());

    // What was acknowledged as shipped until now is there afterwards, and the old primary acknowledges no more.
    store(&old, 40..45);
    wait_until_shipped(&old).unwrap();
    assert_eq!(copy.promote().unwrap(), 2);
    assert_eq!(verdicts(&copy, 40..45), [PageVerdict::Exact; 5]);
    store(&copy, 50..55);
    wait_until_shipped(&copy).unwrap();
    // The old one may store until it has looked, but not in the line of groups.
    let _ = old.insert(&page(60), StorePolicy::IfNew);
    assert!(wait_until_shipped(&old).unwrap_err().to_string().contains("fenced off"));
    until_role(&old, ReplicationRole::Fenced);
    let refused = old.insert(&page(61), StorePolicy::IfNew).unwrap_err().to_string();
    assert!(refused.contains("another primary has epoch 2"), "{refused}");
    assert!(copy.promote().is_err(), "it is the primary");

    // A third one follows through both epochs.
    let three = tempfile::tempdir().unwrap();
    let third = follower(three.path(), &bucket);
    until_caught_up(&third, copy.served.totals().groups);
    assert_eq!(verdicts(&third, 0..62), verdicts(&copy, 0..62));
    assert_eq!(third.check(&page(60)).unwrap().verdict, PageVerdict::New, "it is not in the line");
    old.close().unwrap();
    let back = primary(one.path(), &bucket);
    until_role(&back, ReplicationRole::Fenced);
    assert!(follower::prepare(one.path(), &bucket).is_err(), "its pages are not those of the line");
    copy.close().unwrap();
    assert!(follower::prepare(two.path(), &bucket).is_err(), "it is the primary");
    let again = primary(two.path(), &bucket);
    until_role(&again, ReplicationRole::Primary);
    assert_eq!(again.replication().unwrap().epoch, 3);
    store(&again, 70..72);
    wait_until_shipped(&again).unwrap();
    until_caught_up(&third, again.served.totals().groups);
}

#[test]
fn groups_that_were_not_shipped_before_the_end_are_shipped_after_it() {
    let (bucket, one) = (Bucket::in_memory(), tempfile::tempdir().unwrap());
    let online = primary(one.path(), &bucket);
    until_role(&online, ReplicationRole::Primary);
    store(&online, 0..3);
    wait_until_shipped(&online).unwrap();
    let groups = online.served.totals().groups;
    drop(online);
    // As if it had been killed before the last two were shipped.
    for object in LogObject::list(&bucket).unwrap() {
        if object.last + 2 > groups {
            bucket.delete(&object.name()).unwrap();
        }
    }
    let bases = Base::list(&bucket).unwrap();
    let online = primary(one.path(), &bucket);
    until_role(&online, ReplicationRole::Primary);
    wait_until_shipped(&online).unwrap();
    // They were not waiting any more, so that a base has them.
    assert!(Base::list(&bucket).unwrap().len() > bases.len());
    let two = tempfile::tempdir().unwrap();
    let copy = follower(two.path(), &bucket);
    until_caught_up(&copy, groups);
    assert_eq!(verdicts(&copy, 0..3), [PageVerdict::Exact; 3]);
}

#[test]
fn a_follower_whose_log_is_gone_says_so_and_begins_again_from_a_base() {
    let (bucket, one, two) = (Bucket::in_memory(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let online = primary(one.path(), &bucket);
    until_role(&online, ReplicationRole::Primary);
    store(&online, 0..3);
    wait_until_shipped(&online).unwrap();
    let copy = follower(two.path(), &bucket);
    until_caught_up(&copy, online.served.totals().groups);
    copy.close().unwrap();
    // It writes without shipping for a while.
    online.close().unwrap();
    let alone = Online::open(one.path(), OnlineOptions::default()).unwrap();
    store(&alone, 3..6);
    alone.close().unwrap();
    let online = primary(one.path(), &bucket);
    until_role(&online, ReplicationRole::Primary);
    store(&online, 6..8);
    wait_until_shipped(&online).unwrap();
    let stale = Online::open(two.path(), OnlineOptions::default()).unwrap();
    stale.follow_from(bucket.clone(), &options("two")).unwrap();
    until(|| stale.replication().unwrap().trouble.is_some());
    assert!(stale.promote().unwrap_err().to_string().contains("newer base"));
    drop(stale);
    drop(online);
    // Whoever promotes after a failed attempt begins with an epoch of its own.
    let copy = follower(two.path(), &bucket);
    assert_eq!(copy.promote().unwrap(), PrimaryRecord::read(&bucket).unwrap().unwrap().epoch);
    assert_eq!(verdicts(&copy, 0..8), [PageVerdict::Exact; 8]);
}

#[test]
fn an_older_copy_of_a_primary_does_not_ship() {
    let (bucket, one, two) = (Bucket::in_memory(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let online = primary(one.path(), &bucket);
    until_role(&online, ReplicationRole::Primary);
    store(&online, 0..2);
    wait_until_shipped(&online).unwrap();
    online.close().unwrap();
    let owner = std::fs::read_to_string(one.path().join(SHIPPING).join(OWNER)).unwrap();
    std::fs::create_dir_all(two.path().join(SHIPPING)).unwrap();
    std::fs::write(two.path().join(SHIPPING).join(OWNER), owner).unwrap();
    Online::create(two.path(), IndexConfig::bands(BandConfig::default(), 0.7)).unwrap();
    let older = Online::open(two.path(), OnlineOptions::default()).unwrap();
    older.ship_to(bucket, &options("one")).unwrap();
    until(|| older.replication().unwrap().trouble.is_some());
    assert!(older.insert(&page(1), StorePolicy::IfNew).unwrap_err().to_string().contains("older copy"));
}
