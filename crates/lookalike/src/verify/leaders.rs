//! The rule for buckets that are far too common: members are compared with leaders, not with each other.
//!
//! In: a crowded bucket. Out: pairs between its members and its leaders. The leaders of a feature are the best-ranked members
//! that have it among their [`LOOKED_AT`] smallest, at most [`LEADERS_PER_FEATURE`]; a member is compared with those leaders of
//! its own smallest features that share most of them, at most [`MOST_COMPARED`]. Who leads is a minimum, so a bucket can be
//! worked on in parts that know nothing of each other, and the result depends neither on them nor on threads.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Serialize};

use crate::candidate::band_join::CrowdedBucket;
use crate::error::Result;
use crate::page::{PageId, ScoredPair};
use crate::plan::{Plan, Verdict};
use crate::sketch::page_sets::PageSets;
use crate::spill::LongList;
use crate::text::term::TokenHasher;
use crate::verify;

/// Features by which the leaders of a page are found, those of smallest hash.
pub const LOOKED_AT: usize = 64;
/// Leaders that a feature has.
pub const LEADERS_PER_FEATURE: usize = 4;
/// Leaders that a member is compared with.
pub const MOST_COMPARED: usize = 64;

/// The features of a page by which its leaders are found, of all its features in ascending order.
#[must_use]
pub fn looked_at(features: &[u64]) -> &[u64] {
    &features[..features.len().min(LOOKED_AT)]
}

/// A crowded bucket, for the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CappedBucket {
    /// The band it was found in.
    pub band: usize,
    /// Members.
    pub size: usize,
    /// Members that others were compared with.
    pub leaders: usize,
    /// Comparisons made.
    pub compared: u64,
    /// The two best-ranked members.
    pub example: (PageId, PageId),
}

/// Pairs that are found in a bucket before they are handed on.
const PAIRS_AT_A_TIME: usize = 1 << 12;

/// What was found in a part of a bucket.
#[derive(Debug, Default)]
pub struct CrowdPairs {
    /// Near-duplicates.
    pub accepted: Vec<ScoredPair>,
    /// Pairs that just miss, each with the member that was compared with a leader; the closest of each member.
    pub near_misses: Vec<(PageId, ScoredPair)>,
}

/// Compares the members of a bucket with its leaders, and hands on what is found, part by part.
///
/// # Errors
/// When sets that were spilled to disk cannot be read back, or what was found cannot be stored.
pub fn compare(
    bucket: &CrowdedBucket,
    sets: &PageSets,
    plan: &Plan,
    rank: &(dyn Fn(PageId) -> u32 + Sync),
    is_wanted: &(dyn Fn(PageId, PageId) -> bool + Sync),
    emit: &mut dyn FnMut(CrowdPairs) -> Result<()>,
) -> Result<CappedBucket> {
    let mut members = bucket.members.clone();
    members.sort_unstable_by_key(|&page| rank(page));
    let mut led: HashMap<u64, Vec<u32>, BuildHasherDefault<TokenHasher>> = HashMap::default();
    let mut leaders: Vec<u32> = Vec::new();
    let mut is_leader = vec![false; members.len()];
    let (mut found, mut compared) = (CrowdPairs::default(), 0);
    for (place, &member) in (0..).zip(&members) {
        let own = sets.page(member);
        let mut near_miss: Option<ScoredPair> = None;
        leaders.clear();
        for &feature in looked_at(own.features) {
            // In the order of ranks, those who come first lead.
            let known = led.entry(feature).or_default();
            leaders.extend_from_slice(known);
            if known.len() < LEADERS_PER_FEATURE {
                known.push(place);
            }
        }
        for leader in nearest(&mut leaders) {
            let number = leader as usize;
            let leader = members[number];
            if !is_wanted(leader, member) {
                continue;
            }
            is_leader[number] = true;
            compared += 1;
            match verify::compare_if_close((leader, sets.page(leader)), (member, own), plan) {
                Some((pair, Verdict::Accepted)) => found.accepted.push(pair),
                Some((pair, Verdict::NearMiss)) => {
                    near_miss =
                        Some(near_miss.map_or(pair, |known| if closer(&pair, &known).is_lt() { pair } else { known }));
                }
                Some((_, Verdict::Rejected)) | None => {}
            }
        }
        found.near_misses.extend(near_miss.map(|pair| (member, pair)));
        if found.accepted.len().max(found.near_misses.len()) >= PAIRS_AT_A_TIME {
            emit(std::mem::take(&mut found))?;
        }
    }
    emit(found)?;
    let example = (members[0], members[1]);
    Ok(CappedBucket {
        band: bucket.band,
        size: members.len(),
        leaders: is_leader.iter().filter(|is| **is).count(),
        compared,
        example,
    })
}

/// Of leaders, each as often as it shares a feature, those who share most; of equals, the better-ranked.
pub(crate) fn nearest(leaders: &mut [u32]) -> Vec<u32> {
    leaders.sort_unstable();
    let mut shared: Vec<(usize, u32)> = leaders.chunk_by(|a, b| a == b).map(|same| (same.len(), same[0])).collect();
    shared.sort_unstable_by_key(|&(count, leader)| (Reverse(count), leader));
    shared.into_iter().take(MOST_COMPARED).map(|row| row.1).collect()
}

/// Of what a page just misses in crowds only the closest is kept: a template has many near misses.
pub fn keep_closest(near_misses: &mut LongList<(PageId, ScoredPair)>) {
    near_misses.sort_unstable_by(|(page, one), (other, two)| page.cmp(other).then(closer(one, two)));
    near_misses.dedup_by_key(|(page, _)| *page);
}

/// The closer of two pairs comes first.
fn closer(one: &ScoredPair, two: &ScoredPair) -> Ordering {
    two.similarity.total_cmp(&one.similarity).then((one.left, one.right).cmp(&(two.left, two.right)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Scope};
    use std::collections::BTreeSet;

    fn plan() -> Plan {
        let mut config = Config::default();
        config.content.scope = Scope::Page;
        config.plan()
    }

    /// Pages 0..n, each with the shingles its group has and a few of its own.
    fn sets(groups: &[u64], directory: &std::path::Path, plan: &Plan) -> PageSets {
        let mut sets = PageSets::new(directory, 1 << 20, plan.sketch.words(), plan.is_weighted());
        let (hasher, _) = plan.sketch.min_values.as_ref().unwrap();
        let (mut narrow, mut values) = (Vec::new(), Vec::new());
        for (page, &group) in PageId::counting().zip(groups) {
            let mut set: Vec<u64> = (0..95).map(|n| group * 1000 + n).collect();
            set.extend((0..5).map(|n| 1_000_000 + u64::from(page.number()) * 10 + n));
            set.sort_unstable();
            hasher.min_values(&set, &mut narrow, &mut values);
            sets.push(page, &set, &[], &values).unwrap();
        }
        sets.finish().unwrap();
        sets
    }

    /// What `compare` finds in all.
    fn found(
        bucket: &CrowdedBucket,
        sets: &PageSets,
        rank: &(dyn Fn(PageId) -> u32 + Sync),
    ) -> (CappedBucket, Vec<ScoredPair>) {
        let mut pairs = Vec::new();
        let mut emit = |found: CrowdPairs| {
            pairs.extend(found.accepted);
            Ok(())
        };
        let capped = compare(bucket, sets, &plan(), rank, &|_, _| true, &mut emit).unwrap();
        (capped, pairs)
    }

    #[test]
    fn members_match_the_best_ranked_of_their_group() {
        let directory = tempfile::tempdir().unwrap();
        let plan = plan();
        let groups: Vec<u64> = (0..300).map(|page| page % 3).collect();
        let sets = sets(&groups, directory.path(), &plan);
        let bucket = CrowdedBucket { band: 4, members: PageId::first(300).collect() };
        // The last page ranks first.
        let rank = |page: PageId| 1000 - page.number();
        let (capped, pairs) = found(&bucket, &sets, &rank);
        assert_eq!((capped.size, capped.leaders, capped.band), (300, 12, 4));
        assert_eq!(capped.example, (PageId::new(299), PageId::new(298)));
        let matched: BTreeSet<PageId> = pairs.iter().map(|pair| pair.left).collect();
        assert_eq!(matched.len(), 297, "all but the best of each group are matched");
        assert!(
            pairs
                .iter()
                .all(|pair| pair.right.number() >= 288 && groups[pair.left.index()] == groups[pair.right.index()])
        );
    }

    #[test]
    fn more_families_than_comparisons_are_all_found() {
        let directory = tempfile::tempdir().unwrap();
        let plan = plan();
        let groups: Vec<u64> = (0..1200).map(|page| page % 300).collect();
        let sets = sets(&groups, directory.path(), &plan);
        let bucket = CrowdedBucket { band: 0, members: PageId::first(1200).collect() };
        let (capped, pairs) = found(&bucket, &sets, &PageId::number);
        // Three of every four members come behind one leader, two and three.
        assert_eq!((capped.leaders, pairs.len()), (900, 300 * (1 + 2 + 3)));
    }

    #[test]
    fn a_crowd_of_strangers_costs_at_most_64_comparisons_per_member() {
        let directory = tempfile::tempdir().unwrap();
        let plan = plan();
        let groups: Vec<u64> = (0..500).collect();
        let sets = sets(&groups, directory.path(), &plan);
        let bucket = CrowdedBucket { band: 0, members: PageId::first(500).collect() };
        let (capped, pairs) = found(&bucket, &sets, &PageId::number);
        assert!(capped.compared <= 500 * MOST_COMPARED as u64);
        assert!(pairs.is_empty());
    }
}
