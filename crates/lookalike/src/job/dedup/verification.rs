//! The exact comparison of all candidates.

use serde::{Deserialize, Serialize};

use crate::candidate::inverted::Collisions;
use crate::error::Result;
use crate::job::dedup::Run;
use crate::job::dedup::against::IndexMatch;
use crate::job::dedup::first_reading::Sketched;
use crate::job::dedup::search::Searched;
use crate::page::PageId;
use crate::read::Corpus;
use crate::report::summary::FilterReport;
use crate::sketch::page_sets::PageSets;
use crate::verify::{self, Verified};

/// What the comparison found, and what it took.
pub(super) struct Compared {
    pub(super) verified: Verified,
    pub(super) counted: Counted,
}

/// What is told of the search and the comparison.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Counted {
    pub(super) candidates: u64,
    pub(super) candidate_pages: u64,
    /// Tables of bits, if there were any, and the distance to which they miss nothing.
    pub(super) tables: Option<(usize, u32)>,
    /// How often pages met at a feature, where they are found by features.
    pub(super) collisions: Option<Collisions>,
    /// What is expected of the Bloom filters, if there are any.
    pub(super) filters: Option<FilterReport>,
    /// Features that were held of a page, on average, where all pages' were held.
    pub(super) features_per_page: Option<f64>,
    /// Whether features are on disk.
    pub(super) features_spilled: bool,
}

impl Sketched {
    /// Bytes of the pages that are read once more.
    pub(super) fn bytes_to_read_again(&self, pages: &[PageId], likely: Option<&PageSets>) -> u64 {
        if self.sets.is_some() {
            return 0;
        }
        let is_kept = |page: PageId| likely.is_some_and(|likely| likely.contains(page));
        pages.iter().filter(|&&page| !is_kept(page)).map(|&page| self.pages.place(page).length).sum()
    }
}

impl Run<'_> {
    /// Compares what the search found; of some pages, what they are compared by may have been kept.
    pub(super) fn verify(
        &self,
        corpus: &Corpus,
        sketched: &Sketched,
        searched: &Searched,
        likely: Option<PageSets>,
    ) -> Result<Compared> {
        let held = sketched.sets.as_ref();
        let (verified, collisions, features_spilled) = if self.plan.matches_in_order() {
            let (verified, collisions) = self.match_pages(sketched, searched)?;
            (verified, collisions, held.is_some_and(PageSets::is_spilled))
        } else {
            let read_again;
            let page_sets = match held {
                Some(sets) => sets,
                None => {
                    read_again = self.page_sets(
                        (corpus, sketched.held()),
                        &sketched.pages,
                        &searched.candidate_pages,
                        self.plan,
                        likely,
                    )?;
                    &read_again
                }
            };
            (self.verify_candidates(sketched, searched, page_sets)?, None, page_sets.is_spilled())
        };
        let counted = Counted {
            candidates: if self.plan.matches_in_order() {
                verified.compared
            } else {
                searched.candidates.pairs.len() as u64
            },
            candidate_pages: searched.candidate_pages.len() as u64,
            tables: searched.tables,
            collisions: collisions.or(searched.collisions),
            filters: FilterReport::new(self.plan, held),
            features_per_page: held.map(|sets| sets.feature_count() as f64 / sets.len().max(1) as f64),
            features_spilled,
        };
        Ok(Compared { verified, counted })
    }

    fn verify_candidates(&self, sketched: &Sketched, searched: &Searched, page_sets: &PageSets) -> Result<Verified> {
        let pages = &sketched.pages;
        let groups = self.groups(sketched)?;
        let filter = self.wanted_filter(pages, groups.as_deref());
        let is_wanted = |left: PageId, right: PageId| filter.is_wanted(left, right);
        let rank = |page: PageId| searched.rank(page);
        let list = self.list(pages.len() as u64);
        let mut verified =
            verify::verify(&searched.candidates, page_sets, self.plan, &rank, &is_wanted, list, self.observer)?;
        self.settle_crowds(&searched.candidates, page_sets, &searched.order, pages.len(), &is_wanted, &mut verified)?;
        if self.against.is_some() {
            let is_theirs = |page: PageId| !pages.is_input(searched.sets.best[page]);
            self.keep_theirs(&mut verified, &is_theirs);
            let near = sketched.index_matches.iter().filter(|row| searched.sets.is_first(row.page));
            near.map(IndexMatch::pair).try_for_each(|pair| verified.pairs.push(pair))?;
            verify::sort(&mut verified.pairs);
        }
        Ok(verified)
    }

    /// Pages of another corpus are not compared with each other, and are not dropped for ours.
    fn keep_theirs(&self, verified: &mut Verified, is_theirs: &dyn Fn(PageId) -> bool) {
        verified.pairs.retain(|pair| match (is_theirs(pair.left), is_theirs(pair.right)) {
            (true, true) => false,
            (false, false) => true,
            (true, false) => self.plan.can_stand_for(pair, pair.right),
            (false, true) => self.plan.can_stand_for(pair, pair.left),
        });
    }
}
