//! Candidate pairs → scored pairs, exactly.
//!
//! In: candidates, and the features of the pages in them. Out: accepted pairs and
//! near misses with their exact similarity, ascending. Exact up to collisions of 64-bit hashes.

pub mod jaccard;
pub mod leaders;
pub mod score;

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::candidate::band_join::Candidates;
use crate::error::Result;
use crate::observe::{Observer, check_cancelled};
use crate::page::{PageId, ScoredPair};
use crate::plan::{Plan, Verdict};
use crate::sketch::PageSketch;
use crate::sketch::page_sets::PageSets;
use crate::spill::LongList;
use leaders::{CappedBucket, CrowdPairs};
use score::{Score, score, score_if_close};

/// Pairs that are compared by one thread at a time.
const PAIRS_PER_TASK: usize = 512;
/// Pairs that are compared before what was found is added to the list.
const PAIRS_AT_A_TIME: usize = 1 << 16;

/// What verification found.
#[derive(Debug, Default)]
pub struct Verified {
    /// Near-duplicates, ascending.
    pub pairs: LongList<ScoredPair>,
    /// Close, but not near-duplicates, ascending.
    pub near_misses: LongList<ScoredPair>,
    /// Pairs that were compared.
    pub compared: u64,
    /// Buckets that were too common, and what was done about them.
    pub capped: Vec<CappedBucket>,
}

/// Compares two pages exactly.
///
/// # Panics
/// If `sets` has not both pages.
pub fn compare(sets: &PageSets, left: PageId, right: PageId, plan: &Plan) -> (ScoredPair, Verdict) {
    let (left, right) = (left.min(right), left.max(right));
    let scored = score(plan, sets.page(left), sets.page(right));
    (scored_pair(left, right, &scored), scored.verdict)
}

/// The same of two pages with what they are compared by; nothing where the pair is rejected.
fn compare_if_close(
    one: (PageId, PageSketch<'_>),
    other: (PageId, PageSketch<'_>),
    plan: &Plan,
) -> Option<(ScoredPair, Verdict)> {
    let (left, right) = if one.0 <= other.0 { (one, other) } else { (other, one) };
    let scored = score_if_close(plan, left.1, right.1)?;
    Some((scored_pair(left.0, right.0, &scored), scored.verdict))
}

fn scored_pair(left: PageId, right: PageId, scored: &Score) -> ScoredPair {
    ScoredPair {
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
    }
}

/// Compares all candidates; what is found goes into `list`, which is empty, and into one like it. `rank` orders the members of
/// crowded buckets; `is_wanted` refuses pairs that the user does not want to be compared; `observer` may stop it.
///
/// # Errors
/// When sets that were spilled to disk cannot be read back, or the run is to stop.
pub fn verify(
    candidates: &Candidates,
    sets: &PageSets,
    plan: &Plan,
    rank: &(dyn Fn(PageId) -> u32 + Sync),
    is_wanted: &(dyn Fn(PageId, PageId) -> bool + Sync),
    list: LongList<ScoredPair>,
    observer: &dyn Observer,
) -> Result<Verified> {
    let (mut close, mut accepted) = (list.another(), list);
    for some in candidates.pairs.chunks(PAIRS_AT_A_TIME) {
        let scored: Vec<Vec<(ScoredPair, Verdict)>> = some
            .par_chunks(PAIRS_PER_TASK)
            .map(|pairs| {
                check_cancelled(observer)?;
                let mut found = Vec::new();
                // Pairs are ascending: what is left in one is looked up once for all that follow.
                for of_left in pairs.chunk_by(|one, next| one.0 == next.0) {
                    let left = (of_left[0].0, sets.page(of_left[0].0));
                    let rights = of_left.iter().map(|&(_, right)| (right, sets.page(right)));
                    found.extend(rights.filter_map(|right| compare_if_close(left, right, plan)));
                }
                Ok(found)
            })
            .collect::<Result<_>>()?;
        for (pair, verdict) in scored.into_iter().flatten() {
            if verdict == Verdict::Accepted { accepted.push(pair)? } else { close.push(pair)? }
        }
    }
    let mut compared = candidates.pairs.len() as u64;
    let mut capped = Vec::new();
    let closest = Mutex::new(accepted.another());
    let in_crowds = Mutex::new(&mut accepted);
    let crowds: Vec<CappedBucket> = candidates
        .crowded
        .par_iter()
        .map(|bucket| {
            check_cancelled(observer)?;
            let mut emit = |found: CrowdPairs| {
                in_crowds.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&found.accepted)?;
                closest.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&found.near_misses)
            };
            leaders::compare(bucket, sets, plan, rank, is_wanted, &mut emit)
        })
        .collect::<Result<_>>()?;
    for crowd in crowds {
        compared += crowd.compared;
        capped.push(crowd);
    }
    let mut closest = closest.into_inner().unwrap_or_else(PoisonError::into_inner);
    leaders::keep_closest(&mut closest);
    closest.iter().try_for_each(|(_, pair)| close.push(*pair))?;
    for pairs in [&mut accepted, &mut close] {
        sort(pairs);
    }
    capped.sort_by(|a, b| b.size.cmp(&a.size).then(a.example.cmp(&b.example)));
    Ok(Verified { pairs: accepted, near_misses: close, compared, capped })
}

/// Brings pairs into their order, each once.
pub fn sort(pairs: &mut LongList<ScoredPair>) {
    let key = |pair: &ScoredPair| (pair.left, pair.right);
    if !pairs.is_sorted_by_key(key) {
        pairs.par_sort_unstable_by_key(key);
    }
    pairs.dedup_by_key(key);
}
