//! What can be said about two pages before they are read again.
//!
//! In: the columns of the first reading. Out: whether a pair is worth comparing exactly. Refused is
//! only what the decision would refuse, near misses apart, or what the user asked not to compare.

use crate::page::{PageId, PageVec};
use crate::plan::{Decision, NEAR_MISS_BITS, NEAR_MISS_DISTANCE, Plan};

/// Refuses pairs.
pub struct PairFilter<'a> {
    /// Words in each page.
    pub tokens: &'a PageVec<u32>,
    /// Lengths may differ by this factor.
    pub length_ratio: Option<f64>,
    /// The group of each page; 0 for none.
    pub groups: Option<&'a [u64]>,
    /// The site of each page; 0 for none.
    pub sites: Option<&'a [u64]>,
    /// Band keys.
    pub bands: Vec<&'a [u64]>,
    /// Bits.
    pub bits: Vec<&'a [u64]>,
    /// Bits that are compared.
    pub compared_bits: u32,
    /// What will decide.
    pub decision: Decision,
    /// Where only pages of different corpora are compared, whether each is of the input.
    pub is_input: Option<Box<dyn Fn(PageId) -> bool + Sync + 'a>>,
}

impl PairFilter<'_> {
    /// Whether a filter for this decision needs band keys and bits beside what joins them.
    #[must_use]
    pub fn needs_columns(decision: Decision) -> bool {
        !matches!(
            decision,
            Decision::Similarity { .. }
                | Decision::Stories { .. }
                | Decision::Agreement { .. }
                | Decision::CommonBits { .. }
        )
    }

    /// Whether nothing would ever be refused.
    #[must_use]
    pub fn is_idle(plan: &Plan) -> bool {
        plan.pairs.length_ratio.is_none()
            && plan.pairs.within.is_none()
            && !plan.drops_containers
            && !PairFilter::needs_columns(plan.decision)
    }

    /// Whether two pages are worth comparing.
    #[must_use]
    pub fn passes(&self, left: PageId, right: PageId) -> bool {
        self.is_wanted(left, right) && self.can_be_accepted(left.index(), right.index())
    }

    /// Whether the user wants two pages to be compared.
    #[must_use]
    pub fn is_wanted(&self, left: PageId, right: PageId) -> bool {
        let in_one_group = self.groups.is_none_or(|groups| {
            let group = groups[left.index()];
            group == groups[right.index()] && group != 0
        });
        let between_corpora = self.is_input.as_ref().is_none_or(|is_input| is_input(left) != is_input(right));
        in_one_group
            && between_corpora
            && self.length_ratio.is_none_or(|ratio| {
                let (shorter, longer) =
                    (self.tokens[left].min(self.tokens[right]), self.tokens[left].max(self.tokens[right]));
                f64::from(shorter) / f64::from(longer.max(1)) >= ratio
            })
    }

    fn can_be_accepted(&self, left: usize, right: usize) -> bool {
        let differing = || self.bits.iter().map(|words| (words[left] ^ words[right]).count_ones()).sum::<u32>();
        let at_most = |least: u32| self.compared_bits - least + NEAR_MISS_BITS;
        let agreeing = || self.bands.iter().filter(|keys| keys[left] == keys[right]).count() as u64;
        match self.decision {
            Decision::Similarity { .. }
            | Decision::Stories { .. }
            | Decision::Agreement { .. }
            | Decision::CommonBits { .. } => true,
            Decision::EqualBits { least } => differing() <= at_most(least),
            Decision::Distance { radius } => differing() <= radius + NEAR_MISS_DISTANCE,
            Decision::Both { agree, .. } => agreeing() >= u64::from(agree),
            Decision::BySite { agree, same, other } => {
                let is_same = self.sites.is_some_and(|sites| sites[left] == sites[right] && sites[left] != 0);
                if is_same {
                    agreeing() >= u64::from(agree) && differing() <= at_most(same)
                } else {
                    differing() <= at_most(other)
                }
            }
        }
    }
}
