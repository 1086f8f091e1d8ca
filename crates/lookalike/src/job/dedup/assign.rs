//! From verified pairs to the page that is kept in each page's place.

use std::collections::{BTreeMap, BTreeSet};

use crate::candidate::band_join::Candidates;
use crate::cluster::components::{Components, smallest_ids};
use crate::cluster::decided::{self, PageDecision};
use crate::cluster::identity::IdentitySets;
use crate::cluster::{Chosen, ClusterMode, Direction, Fate, Fates, Link, Neighbours, components, star};
use crate::error::Result;
use crate::job::dedup::Run;
use crate::job::dedup::held_pages::HeldPages;
use crate::page::{Kind, PageId, PageVec, ScoredPair};
use crate::page_table::PageTable;
use crate::plan::Verdict;
use crate::read::Corpus;
use crate::sketch::page_sets::PageSets;
use crate::verify::leaders::MOST_COMPARED;
use crate::verify::{self, Verified};

/// Rounds in which members of crowds are compared with the pages that their leaders were dropped for.
pub(super) const ROUNDS: usize = 32;

/// What became of each page.
pub(crate) struct Groups {
    pub(crate) fates: Fates,
    /// For each page the page with the smallest id in its component.
    pub(crate) component: PageVec<PageId>,
}

/// Shows every kept page with each of the kept pages that a dropped neighbour of it is near to, if a crowd kept them apart.
pub(super) fn behind_dropped(
    order: &[PageId],
    chosen: &Chosen,
    neighbours: &Neighbours,
    is_in_crowd: &dyn Fn(PageId) -> bool,
    mut visit: impl FnMut(PageId, PageId) -> Result<()>,
) -> Result<()> {
    let is_kept = |page: PageId| chosen.is_kept(page);
    for &page in order.iter().filter(|&&page| is_kept(page)) {
        let concerns = |other: PageId| is_in_crowd(page) || is_in_crowd(other);
        let dropped = neighbours.of(page).iter().filter(|link| !is_kept(link.page) && concerns(link.page));
        let behind = dropped.flat_map(|link| neighbours.of(link.page)).map(|link| link.page);
        let mut behind: Vec<PageId> = behind.filter(|&kept| kept != page && is_kept(kept)).collect();
        behind.sort_unstable();
        behind.dedup();
        behind.into_iter().take(MOST_COMPARED).try_for_each(|kept| visit(page, kept))?;
    }
    Ok(())
}

impl Run<'_> {
    /// In a crowd, members are compared with its leaders only, and others with one of its members. Where
    /// that one page is itself dropped, those who were compared with it would stay; here they are
    /// compared with the kept pages that it was near to.
    pub(super) fn settle_crowds(
        &self,
        candidates: &Candidates,
        page_sets: &PageSets,
        order: &[PageId],
        pages: usize,
        is_wanted: &dyn Fn(PageId, PageId) -> bool,
        verified: &mut Verified,
    ) -> Result<()> {
        if self.config.groups.cluster != ClusterMode::Star || candidates.crowded.is_empty() {
            return Ok(());
        }
        let mut is_in_crowd = PageVec::filled(pages, false);
        candidates.crowded.iter().flat_map(|crowd| &crowd.members).for_each(|&page| is_in_crowd[page] = true);
        let mut tried: BTreeSet<(PageId, PageId)> = BTreeSet::new();
        for _ in 0..ROUNDS {
            let direction = Direction::of(self.plan, None);
            let (chosen, neighbours) =
                star::stars(pages, order, &verified.pairs, direction, self.plan.guess, self.list(pages as u64))?;
            let mut found = Vec::new();
            behind_dropped(order, &chosen, &neighbours, &|page| is_in_crowd[page], |page, kept| {
                if is_wanted(page, kept) && tried.insert((page.min(kept), page.max(kept))) {
                    let (pair, verdict) = verify::compare(page_sets, page, kept, self.plan);
                    verified.compared += 1;
                    found.extend((verdict == Verdict::Accepted).then_some(pair));
                }
                Ok(())
            })?;
            if found.is_empty() {
                return Ok(());
            }
            verified.pairs.extend_from_slice(&found)?;
            verify::sort(&mut verified.pairs);
        }
        Ok(())
    }

    /// Groups by verified pairs; those count from `threshold` on, where it is not the method's own.
    pub(crate) fn group(
        &self,
        (corpus, held): (&Corpus, Option<&HeldPages>),
        pages: &PageTable,
        sets: &IdentitySets,
        order: &[PageId],
        pairs: &[ScoredPair],
        threshold: Option<f64>,
    ) -> Result<Groups> {
        let direction = Direction::of(self.plan, threshold);
        let chosen = match self.config.groups.cluster {
            ClusterMode::Star => {
                let list = self.list(pages.len() as u64);
                star::stars(pages.len(), order, pairs, direction, self.plan.guess, list)?.0
            }
            ClusterMode::Components => {
                let chosen = components::assign(order, &mut Components::of(&sets.first, pairs), pages.len());
                self.link_chains((corpus, held), pages, order, &chosen, pairs, direction)?
            }
        };
        // Results of the first version do not say it.
        let is_same_text = |left: PageId, right: PageId| pages.text_hash(left) == pages.text_hash(right);
        let fates = Fates::new(sets, &chosen, &pages.tokens, self.config.pairs.min_tokens, &is_same_text);
        Ok(Groups { fates, component: smallest_ids(pages, sets, pairs)? })
    }

    /// Each page's link to the one that is `chosen` for it.
    fn link_chains(
        &self,
        reading: (&Corpus, Option<&HeldPages>),
        pages: &PageTable,
        order: &[PageId],
        chosen: &PageVec<PageId>,
        pairs: &[ScoredPair],
        direction: Direction,
    ) -> Result<Chosen> {
        let wanted: Vec<(PageId, PageId)> =
            order.iter().map(|&page| (page, chosen[page])).filter(|&(page, kept)| page != kept).collect();
        let links = self.links(reading, pages, &wanted, pairs, direction)?;
        Ok(Chosen::new(pages.len(), wanted.iter().map(|row| row.0).zip(links).collect()))
    }

    /// The link from the first page of each of these to the second. Those that were not compared before are compared now.
    fn links(
        &self,
        reading: (&Corpus, Option<&HeldPages>),
        pages: &PageTable,
        wanted: &[(PageId, PageId)],
        pairs: &[ScoredPair],
        direction: Direction,
    ) -> Result<Vec<Link>> {
        let known = |page: PageId, kept: PageId| {
            let key = (page.min(kept), page.max(kept));
            pairs.binary_search_by_key(&key, |pair| (pair.left, pair.right)).ok().map(|at| pairs[at])
        };
        let unknown = wanted.iter().filter(|&&(page, kept)| known(page, kept).is_none());
        let mut needed: Vec<PageId> = unknown.flat_map(|&(page, kept)| [page, kept]).collect();
        needed.sort_unstable();
        needed.dedup();
        let page_sets = self.page_sets(reading, pages, &needed, self.plan, None)?;
        let link = |&(page, kept): &(PageId, PageId)| {
            let pair = match known(page, kept) {
                Some(pair) => pair,
                None => verify::compare(&page_sets, page, kept, self.plan).0,
            };
            Ok(direction.any_link(&pair, page))
        };
        wanted.iter().map(link).collect()
    }

    /// Lets a person's decisions prevail: pages have another one kept in their place, whatever the threshold says, and the
    /// exact similarity to it. Returns how many pages that changes.
    pub(crate) fn follow_decisions(
        &self,
        reading: (&Corpus, Option<&HeldPages>),
        pages: &PageTable,
        sets: &IdentitySets,
        pairs: &[ScoredPair],
        decisions: &BTreeMap<PageId, PageDecision>,
        (rank, fates): (&dyn Fn(PageId) -> u32, &mut Fates),
    ) -> Result<u64> {
        let mut chosen = decided::apply(fates.all_kept(), decisions, rank);
        chosen.retain(|&page, stays| fates.kept(page) != *stays);
        let changed = chosen.len() as u64;
        let mut other_words = Vec::new();
        for (&page, &stays) in &chosen {
            if page == stays {
                fates.set(page, Fate::kept(page));
            } else if sets.first[page] == sets.first[stays] {
                fates.set(page, Fate::same_words(stays, pages.text_hash(page) == pages.text_hash(stays)));
            } else {
                other_words.push((page, stays));
            }
        }
        let wanted: Vec<(PageId, PageId)> =
            other_words.iter().map(|&(page, stays)| (sets.first[page], sets.first[stays])).collect();
        let direction = Direction::of(self.plan, None);
        for (&(page, kept), link) in other_words.iter().zip(self.links(reading, pages, &wanted, pairs, direction)?) {
            let kind = if link.is_containment { Kind::Contained } else { Kind::Near };
            fates.set(page, Fate { kept, similarity: link.similarity, page_similarity: None, kind });
        }
        fates.name_kept(&pages.tokens, self.config.pairs.min_tokens);
        Ok(changed)
    }
}
