//! The leader rule: a bucket that is far too common, in linear time.
//!
//! In: a crowded bucket. Out: pairs between its members and its leaders. The members come in rank
//! order; each is compared with the leaders found so far, at most [`MOST_LEADERS`], and becomes a
//! leader if it matches none. Guaranteed: at most `MOST_LEADERS` comparisons a member; the result
//! depends neither on threads nor on how the work is divided.

use crate::candidate::band_join::CrowdedBucket;
use crate::error::Result;
use crate::method::{Plan, Verdict};
use crate::page::{PageId, ScoredPair};
use crate::verify::sets::{PageSets, Room};

/// Leaders a bucket can have.
pub const MOST_LEADERS: usize = 64;

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
    room: &mut Room,
) -> Result<(CappedBucket, Vec<(ScoredPair, Verdict)>)> {
    let mut members = bucket.members.clone();
    members.sort_unstable_by_key(|&page| rank(page));
    let mut leaders: Vec<PageId> = Vec::new();
    let mut found = Vec::new();
    let mut compared = 0;
    for &member in &members {
        let mut matched = false;
        // Of what a member just misses only the closest is kept: a template has many near misses.
        let mut closest: Option<ScoredPair> = None;
        for &leader in &leaders {
            if !is_wanted(leader, member) {
                continue;
            }
            let (pair, verdict) = sets.compare(leader, member, plan, room)?;
            compared += 1;
            match verdict {
                Verdict::Accepted => {
                    // A member that only has the leader in it is not told by it.
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
        if !matched && leaders.len() < MOST_LEADERS {
            leaders.push(member);
        }
    }
    let example = (members[0], members[1]);
    Ok((CappedBucket { band: bucket.band, size: members.len(), leaders: leaders.len(), compared, example }, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::collections::BTreeSet;

    /// Pages 0..n, each with the shingles its group has and a few of its own.
    fn sets(groups: &[u64], directory: &std::path::Path, plan: &Plan) -> PageSets {
        let mut sets = PageSets::for_plan(directory, 1 << 20, plan);
        let (hasher, _) = plan.sketch.min_values.as_ref().unwrap();
        let (mut narrow, mut values) = (Vec::new(), Vec::new());
        for (page, &group) in (0u32..).zip(groups) {
            let mut set: Vec<u64> = (0..95).map(|n| group * 1000 + n).collect();
            set.extend((0..5).map(|n| 1_000_000 + u64::from(page) * 10 + n));
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
        let plan = Plan::new(&Config::default());
        let groups: Vec<u64> = (0..300).map(|page| page % 3).collect();
        let sets = sets(&groups, directory.path(), &plan);
        let bucket = CrowdedBucket { band: 4, members: (0..300).collect() };
        // The last page ranks first.
        let rank = |page: PageId| 1000 - page;
        let (capped, pairs) = compare(&bucket, &sets, &plan, &rank, &|_, _| true, &mut Room::default()).unwrap();
        assert_eq!((capped.size, capped.leaders, capped.band), (300, 3, 4));
        assert_eq!(capped.example, (299, 298));
        let pairs: Vec<ScoredPair> = pairs.into_iter().map(|(pair, _)| pair).collect();
        let matched: BTreeSet<PageId> = pairs.iter().map(|pair| pair.left).collect();
        assert_eq!(matched.len(), 297, "all but the leaders are matched");
        assert!(
            pairs.iter().all(|pair| pair.right >= 297 && groups[pair.left as usize] == groups[pair.right as usize])
        );
    }

    #[test]
    fn a_crowd_of_strangers_costs_at_most_64_comparisons_a_member() {
        let directory = tempfile::tempdir().unwrap();
        let plan = Plan::new(&Config::default());
        let groups: Vec<u64> = (0..500).collect();
        let sets = sets(&groups, directory.path(), &plan);
        let bucket = CrowdedBucket { band: 0, members: (0..500).collect() };
        let (capped, pairs) = compare(&bucket, &sets, &plan, &|page| page, &|_, _| true, &mut Room::default()).unwrap();
        assert_eq!(capped.leaders, MOST_LEADERS);
        assert!(capped.compared <= 500 * MOST_LEADERS as u64);
        assert!(pairs.is_empty());
    }
}
