//! Candidate pairs → scored pairs, exactly.
//!
//! In: candidates, and the features of the pages in them. Out: accepted pairs and
//! near misses with their exact similarity, ascending. Exact up to collisions of 64-bit hashes.

pub mod jaccard;
pub mod leaders;
pub mod score;

use rayon::prelude::*;

use crate::candidate::band_join::Candidates;
use crate::error::Result;
use crate::observe::{Observer, check_cancelled};
use crate::page::{PageId, ScoredPair};
use crate::plan::{Plan, Verdict};
use crate::sketch::page_sets::{PageSets, PairScratch};
use leaders::{CappedBucket, CrowdPairs};
use score::score;

/// Pairs that are compared by one thread at a time.
const PAIRS_PER_TASK: usize = 512;

/// What verification found.
#[derive(Debug, Default)]
pub struct Verified {
    /// Near-duplicates, ascending.
    pub pairs: Vec<ScoredPair>,
    /// Close, but not near-duplicates, ascending.
    pub near_misses: Vec<ScoredPair>,
    /// Pairs that were compared.
    pub compared: u64,
    /// Buckets that were too common, and what was done about them.
    pub capped: Vec<CappedBucket>,
}

/// Compares two pages exactly.
///
/// # Errors
/// When features that were spilled to disk cannot be read back.
///
/// # Panics
/// If `sets` has not both pages.
pub fn compare(
    sets: &PageSets,
    left: PageId,
    right: PageId,
    plan: &Plan,
    scratch: &mut PairScratch,
) -> Result<(ScoredPair, Verdict)> {
    let (left, right) = (left.min(right), left.max(right));
    let (left_page, right_page) = sets.pair(left, right, scratch)?;
    let scored = score(plan, left_page, right_page);
    let pair = ScoredPair {
        left,
        right,
        similarity: scored.similarity,
        left_in_right: scored.left_in_right,
        right_in_left: scored.right_in_left,
        score: scored.score,
        estimate: scored.estimate,
        page_similarity: None,
        same_site: scored.same_site,
        is_short: scored.is_short,
    };
    Ok((pair, scored.verdict))
}

/// Compares all candidates. `rank` orders the members of crowded buckets; `is_wanted` refuses pairs
/// that the user does not want to be compared; `observer` may stop it.
///
/// # Errors
/// When sets that were spilled to disk cannot be read back, or the run is to stop.
pub fn verify(
    candidates: &Candidates,
    sets: &PageSets,
    plan: &Plan,
    rank: &(dyn Fn(PageId) -> u32 + Sync),
    is_wanted: &(dyn Fn(PageId, PageId) -> bool + Sync),
    observer: &dyn Observer,
) -> Result<Verified> {
    let scored: Vec<Vec<(ScoredPair, Verdict)>> = candidates
        .pairs
        .par_chunks(PAIRS_PER_TASK)
        .map_init(PairScratch::default, |scratch, pairs| {
            check_cancelled(observer)?;
            let mut found = Vec::new();
            for &(left, right) in pairs {
                if !plan.can_be_close(sets.feature_count_of(left), sets.feature_count_of(right)) {
                    continue;
                }
                let (pair, verdict) = compare(sets, left, right, plan, scratch)?;
                if verdict != Verdict::Rejected {
                    found.push((pair, verdict));
                }
            }
            Ok(found)
        })
        .collect::<Result<_>>()?;
    let mut found: Vec<(ScoredPair, Verdict)> = scored.into_iter().flatten().collect();
    let mut compared = candidates.pairs.len() as u64;
    let mut capped = Vec::new();
    let crowds: Vec<CrowdPairs> = candidates
        .crowded
        .par_iter()
        .map_init(PairScratch::default, |scratch, bucket| {
            check_cancelled(observer)?;
            leaders::compare(bucket, sets, plan, rank, is_wanted, scratch)
        })
        .collect::<Result<_>>()?;
    let mut near_misses = Vec::new();
    for crowd in crowds {
        compared += crowd.capped.compared;
        capped.push(crowd.capped);
        found.extend(crowd.accepted.into_iter().map(|pair| (pair, Verdict::Accepted)));
        near_misses.extend(crowd.near_misses);
    }
    found.extend(leaders::closest(near_misses).into_iter().map(|pair| (pair, Verdict::NearMiss)));
    found.par_sort_unstable_by_key(|(pair, _)| (pair.left, pair.right));
    found.dedup_by_key(|(pair, _)| (pair.left, pair.right));
    let (accepted, close): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, verdict)| *verdict == Verdict::Accepted);
    let pairs = |found: Vec<(ScoredPair, Verdict)>| found.into_iter().map(|(pair, _)| pair).collect();
    capped.sort_by(|a, b| b.size.cmp(&a.size).then(a.example.cmp(&b.example)));
    Ok(Verified { pairs: pairs(accepted), near_misses: pairs(close), compared, capped })
}
