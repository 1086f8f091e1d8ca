//! From verified pairs to the page that is kept in each page's place.

use crate::cluster::covering::coverers_first;
use crate::cluster::identity::IdentitySets;
use crate::cluster::{Direction, Link, Neighbours, components, star};
use crate::config::{ClusterMode, Guess, Method};
use crate::error::Result;
use crate::page::{PageId, ScoredPair};
use crate::page_table::PageTable;
use crate::pipeline::Run;
use crate::read::Reading;
use crate::verify::sets::Room;

impl Run<'_> {
    /// For every set the set that is kept in its place. Pairs count from `threshold` on, where the
    /// method is one that looks at which page covers the other.
    pub(crate) fn assign(
        &self,
        reading: &Reading<'_>,
        pages: &PageTable,
        sets: &IdentitySets,
        order: &[PageId],
        pairs: &[ScoredPair],
        threshold: f64,
    ) -> Result<Vec<Link>> {
        let direction = if self.plan.is_directed() { Direction::Covering(threshold) } else { Direction::Either };
        if self.config.cluster == ClusterMode::Star {
            let neighbours = Neighbours::new(pages.len(), pairs, direction);
            let guess = if self.config.method == Method::Spotsigs { self.config.spots.guess } else { Guess::Best };
            if direction == Direction::Either {
                return Ok(star::assign(pages.len(), order, &neighbours, guess));
            }
            return Ok(star::assign(pages.len(), &coverers_first(order, pairs, direction), &neighbours, guess));
        }
        let chosen = components::assign(order, &mut components::Components::of(&sets.first, pairs), pages.len());
        let known = |page: PageId, kept: PageId| {
            let key = (page.min(kept), page.max(kept));
            pairs.binary_search_by_key(&key, |pair| (pair.left, pair.right)).ok().map(|at| pairs[at])
        };
        // Pages that only a chain connects to the kept one are compared with it now.
        let unknown: Vec<(PageId, PageId)> = order
            .iter()
            .map(|&page| (page, chosen[page as usize]))
            .filter(|&(page, kept)| page != kept && known(page, kept).is_none())
            .collect();
        let mut needed: Vec<PageId> = unknown.iter().flat_map(|&(page, kept)| [page, kept]).collect();
        needed.sort_unstable();
        needed.dedup();
        let page_sets = self.page_sets(reading, pages, &needed)?;
        let mut assigned: Vec<Link> = (0..).take(pages.len()).map(Link::to_itself).collect();
        let mut room = Room::default();
        for &page in order {
            let kept = chosen[page as usize];
            if page != kept {
                let pair = match known(page, kept) {
                    Some(pair) => pair,
                    None => page_sets.compare(page, kept, self.plan, &mut room)?.0,
                };
                assigned[page as usize] = direction.any_link(&pair, page);
            }
        }
        Ok(assigned)
    }
}
