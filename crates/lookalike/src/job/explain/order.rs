//! The page that a page was dropped for, where it is another one than the page it was assigned to.
//!
//! In: a dropped page of a star, and what became of the pages that it was verified to be like. Out: of those that were kept, the
//! one that ranks first. Stars look at pages in rank order and keep a page unless a kept one is like it, so that this one ranks
//! before the dropped page, while the most similar one, which `clusters.parquet` names, can rank behind it.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::candidate::matching::seeded_order_key;
use crate::cluster::Direction;
use crate::cluster::rank::{rank_key, url_key};
use crate::config::{ClusterMode, Keep};
use crate::error::Result;
use crate::job::explain::Explainer;
use crate::job::recluster::page_file_name;
use crate::page::{PageId, PageOrigin};
use crate::plan::{Guess, MatchingOrder, Plan};
use crate::report::stored::texts;
use crate::spill::Scratch;

/// A page's place in the order of preference, to be compared with that of others.
struct Place {
    class: (bool, bool, usize),
    policy: f64,
    order: u64,
    page: PageId,
}

impl Place {
    fn cmp(&self, other: &Place) -> Ordering {
        let by_class = self.class.cmp(&other.class);
        by_class
            .then(self.policy.total_cmp(&other.policy))
            .then(self.order.cmp(&other.order))
            .then(self.page.cmp(&other.page))
    }
}

impl Explainer<'_> {
    /// The first pages of the sets that a page can have been dropped for, whether or not they were kept. None where groups are
    /// not made by rank, or a page always names the one that it was dropped for.
    pub(super) fn possible_reasons(&self, page: PageId) -> Vec<PageId> {
        let plan = self.stricter.config.plan();
        let direction = Direction::of(&plan, Some(self.stricter.threshold));
        let is_star = self.summary.config.groups.cluster == ClusterMode::Star;
        // A page that covers another one comes before it, whatever their ranks are.
        if !is_star || plan.guess == Guess::First || matches!(direction, Direction::Covering(_)) {
            return Vec::new();
        }
        let first = self.stored.first[page];
        let mut reasons: Vec<PageId> =
            self.pairs_of(page).filter_map(|pair| Some(direction.link(pair, first)?.page)).collect();
        reasons.sort_unstable();
        reasons
    }

    /// Of some kept pages, the one that ranks first; nothing where that cannot be known, since the input is gone.
    pub(super) fn first_by_rank(&self, pages: &[PageId]) -> Result<Option<PageId>> {
        let plan = self.stricter.config.plan();
        let keys = match &self.summary.config.groups.keep {
            keep @ (Keep::Newest | Keep::Max(_)) if !plan.matches_in_order() => {
                // Rows of an index rank before all else, by their class.
                let own = pages.iter().copied().filter(|&page| self.stored.pages.origin(page) != PageOrigin::IndexRow);
                let own: Vec<PageId> = own.collect();
                let read = texts::for_each(self.stored, self.summary, &own, |raw| rank_key(keep, raw, 0));
                let Ok(read) = read else { return Ok(None) };
                read.into_iter().filter_map(|(page, key)| Some((page, key?))).collect()
            }
            _ => HashMap::new(),
        };
        let mut places = Vec::with_capacity(pages.len());
        for &page in pages {
            places.push(self.place(page, &plan, &keys)?);
        }
        Ok(places.into_iter().min_by(Place::cmp).map(|place| place.page))
    }

    fn place(&self, page: PageId, plan: &Plan, keys: &HashMap<PageId, f64>) -> Result<Place> {
        let pages = &self.stored.pages;
        let mut scratch = Scratch::default();
        let (mut policy, mut order) = (0.0, 0);
        if plan.matches_in_order() {
            order = match plan.order {
                MatchingOrder::Shuffled => seeded_order_key(&pages.id(page)?, plan.seed),
                MatchingOrder::Given => page.index() as u64,
            };
        } else {
            policy = match self.summary.config.groups.keep {
                Keep::First => 0.0,
                Keep::Longest => -f64::from(pages.tokens[page]),
                Keep::ShortestUrl => url_key(pages.strings(page, &mut scratch)?.url),
                Keep::Newest | Keep::Max(_) => keys.get(&pages.with_text(page)).copied().unwrap_or(f64::INFINITY),
            };
        }
        Ok(Place { class: pages.rank_class(page, self.preference(page)?), policy, order, page })
    }

    /// The place of a page's source in the order of preferred ones.
    fn preference(&self, page: PageId) -> Result<usize> {
        let groups = &self.summary.config.groups;
        if groups.prefer.is_empty() || !self.stored.pages.is_input(page) {
            return Ok(0);
        }
        let source = self.stored.pages.place(page).source;
        let Some(display) = self.stored.sources.get(source.index()) else { return Ok(0) };
        let file = self.summary.files.iter().find(|file| file.source == *display);
        // Files that are one page each are not listed.
        let name =
            file.map_or_else(|| Ok(page_file_name(&self.stored.pages.id(page)?)), |file| Ok(file.name.clone()))?;
        groups.preference(display, &name)
    }
}
