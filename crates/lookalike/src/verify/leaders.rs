//! The leader rule: a bucket that is far too common, in linear time.
//!
//! In: a crowded bucket. Out: pairs between its members and its leaders. The members come in rank
//! order; each is compared with those leaders found so far that share most with it, at most
//! [`MOST_COMPARED`], and becomes a leader if it matches none. Guaranteed: at most `MOST_COMPARED`
//! comparisons per member; the result depends neither on threads nor on how the work is divided.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::candidate::band_join::CrowdedBucket;
use crate::error::Result;
use crate::page::{PageId, ScoredPair};
use crate::plan::{Plan, Verdict};
use crate::sketch::page_sets::{PageSets, PairScratch};
use crate::spill::Scratch;
use crate::text::term::TokenHasher;
use crate::verify;

/// Leaders a member is compared with.
pub const MOST_COMPARED: usize = 64;
/// Features by which a leader is found, those of smallest hash.
const FEATURES_PER_LEADER: usize = 32;
/// A feature that more leaders have than this distinguishes none of them.
const LEADERS_PER_FEATURE: usize = 256;

/// The leaders of a bucket, found by what they share with a page.
#[derive(Default)]
struct Leaders {
    pages: Vec<PageId>,
    of_feature: HashMap<u64, Vec<u32>, BuildHasherDefault<TokenHasher>>,
    shared: Vec<u32>,
    met: Vec<u32>,
}

impl Leaders {
    fn add(&mut self, page: PageId, features: &[u64]) {
        let number = u32::try_from(self.pages.len()).expect("leaders are pages, which are numbered by 32 bits");
        self.pages.push(page);
        self.shared.push(0);
        for &feature in features.iter().take(FEATURES_PER_LEADER) {
            let leaders = self.of_feature.entry(feature).or_default();
            if leaders.len() < LEADERS_PER_FEATURE {
                leaders.push(number);
            }
        }
    }

    /// The leaders that share most with a page: all while there are few.
    fn nearest(&mut self, features: &[u64]) -> Vec<PageId> {
        if self.pages.len() <= MOST_COMPARED {
            return self.pages.clone();
        }
        for leader in features.iter().filter_map(|feature| self.of_feature.get(feature)).flatten() {
            if self.shared[*leader as usize] == 0 {
                self.met.push(*leader);
            }
            self.shared[*leader as usize] += 1;
        }
        self.met.sort_unstable_by_key(|&leader| (std::cmp::Reverse(self.shared[leader as usize]), leader));
        let nearest = self.met.iter().take(MOST_COMPARED).map(|&leader| self.pages[leader as usize]).collect();
        for leader in self.met.drain(..) {
            self.shared[leader as usize] = 0;
        }
        nearest
    }
}

/// A crowded bucket, for the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CappedBucket {
    /// The band it was found in.
    pub band: usize,
    /// Members.
    pub size: usize,
    /// Members that no earlier leader matched.
    pub leaders: usize,
    /// Comparisons made.
    pub compared: u64,
    /// The two best-ranked members.
    pub example: (PageId, PageId),
}

/// Compares the members of a bucket with its leaders.
///
/// # Errors
/// When sets that were spilled to disk cannot be read back.
pub fn compare(
    bucket: &CrowdedBucket,
    sets: &PageSets,
    plan: &Plan,
    rank: &(dyn Fn(PageId) -> u32 + Sync),
    is_wanted: &(dyn Fn(PageId, PageId) -> bool + Sync),
    scratch: &mut PairScratch,
) -> Result<(CappedBucket, Vec<(ScoredPair, Verdict)>)> {
    let mut members = bucket.members.clone();
    members.sort_unstable_by_key(|&page| rank(page));
    let mut leaders = Leaders::default();
    let mut features = Scratch::default();
    let mut found = Vec::new();
    let mut compared = 0;
    for &member in &members {
        let mut matched = false;
        // Of what a member just misses only the closest is kept: a template has many near misses.
        let mut closest: Option<ScoredPair> = None;
        let own = sets.features(member, &mut features)?;
        for leader in leaders.nearest(own) {
            if !is_wanted(leader, member) {
                continue;
            }
            compared += 1;
            if !plan.can_be_close(sets.feature_count_of(leader), own.len() as u64) {
                continue;
            }
            let (pair, verdict) = verify::compare(sets, leader, member, plan, scratch)?;
            match verdict {
                Verdict::Accepted => {
                    // A member that merely contains the leader still has to stand for itself.
                    matched |= plan.can_stand_for(&pair, member);
                    found.push((pair, verdict));
                }
                Verdict::NearMiss if closest.is_none_or(|best| pair.similarity > best.similarity) => {
                    closest = Some(pair);
                }
                Verdict::NearMiss | Verdict::Rejected => {}
            }
        }
        found.extend(closest.map(|pair| (pair, Verdict::NearMiss)));
        if !matched {
            leaders.add(member, own);
        }
    }
    let example = (members[0], members[1]);
    Ok((
        CappedBucket { band: bucket.band, size: members.len(), leaders: leaders.pages.len(), compared, example },
        found,
    ))
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

    #[test]
    fn members_match_the_best_ranked_of_their_group() {
        let directory = tempfile::tempdir().unwrap();
        let plan = plan();
        let groups: Vec<u64> = (0..300).map(|page| page % 3).collect();
        let sets = sets(&groups, directory.path(), &plan);
        let bucket = CrowdedBucket { band: 4, members: PageId::first(300).collect() };
        // The last page ranks first.
        let rank = |page: PageId| 1000 - page.number();
        let (capped, pairs) = compare(&bucket, &sets, &plan, &rank, &|_, _| true, &mut PairScratch::default()).unwrap();
        assert_eq!((capped.size, capped.leaders, capped.band), (300, 3, 4));
        assert_eq!(capped.example, (PageId::new(299), PageId::new(298)));
        let pairs: Vec<ScoredPair> = pairs.into_iter().map(|(pair, _)| pair).collect();
        let matched: BTreeSet<PageId> = pairs.iter().map(|pair| pair.left).collect();
        assert_eq!(matched.len(), 297, "all but the leaders are matched");
        assert!(
            pairs
                .iter()
                .all(|pair| pair.right.number() >= 297 && groups[pair.left.index()] == groups[pair.right.index()])
        );
    }

    #[test]
    fn more_families_than_comparisons_are_all_found() {
        let directory = tempfile::tempdir().unwrap();
        let plan = plan();
        let groups: Vec<u64> = (0..1200).map(|page| page % 300).collect();
        let sets = sets(&groups, directory.path(), &plan);
        let bucket = CrowdedBucket { band: 0, members: PageId::first(1200).collect() };
        let (capped, pairs) =
            compare(&bucket, &sets, &plan, &PageId::number, &|_, _| true, &mut PairScratch::default()).unwrap();
        assert_eq!((capped.leaders, pairs.len()), (300, 900));
    }

    #[test]
    fn a_crowd_of_strangers_costs_at_most_64_comparisons_per_member() {
        let directory = tempfile::tempdir().unwrap();
        let plan = plan();
        let groups: Vec<u64> = (0..500).collect();
        let sets = sets(&groups, directory.path(), &plan);
        let bucket = CrowdedBucket { band: 0, members: PageId::first(500).collect() };
        let (capped, pairs) =
            compare(&bucket, &sets, &plan, &PageId::number, &|_, _| true, &mut PairScratch::default()).unwrap();
        assert_eq!(capped.leaders, 500);
        assert!(capped.compared <= 500 * MOST_COMPARED as u64);
        assert!(pairs.is_empty());
    }
}
