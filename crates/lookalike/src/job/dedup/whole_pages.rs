//! Similarities of whole pages, beside those of what was compared.
//!
//! In: verified pairs, and the page that is kept in each page's place. Out: for each of them the exact similarity of all
//! the two pages show, by the same features. Pages are read again only where something of them was left out.

use rayon::prelude::*;

use crate::cluster::Fates;
use crate::error::{Error, Result};
use crate::job::dedup::Run;
use crate::job::dedup::held_pages::HeldPages;
use crate::page::{PageId, PageOrigin};
use crate::page_table::PageTable;
use crate::read::Corpus;
use crate::spill::LongList;
use crate::text::Scope;
use crate::verify::{self, Verified};

/// Two texts, by their hashes.
type Texts = (u64, u64);

impl Run<'_> {
    /// Adds the similarities of whole pages to pairs and fates that have none.
    pub(crate) fn add_page_similarities(
        &self,
        reading: (&Corpus, Option<&HeldPages>),
        pages: &PageTable,
        verified: &mut Verified,
        fates: &mut Fates,
    ) -> Result<()> {
        let is_whole = |page: PageId| pages.scope[page].is_none_or(|scope| scope == Scope::Page);
        let has_text = |page: PageId| pages.origin(page) != PageOrigin::IndexRow && pages.text_hash(page) != 0;
        let texts = |left: PageId, right: PageId| {
            let (left, right) = (pages.text_hash(left), pages.text_hash(right));
            (left.min(right), left.max(right))
        };
        let known = |left: PageId, right: PageId, similarity: f64| {
            if is_whole(left) && is_whole(right) {
                return Some(similarity);
            }
            (has_text(left) && pages.text_hash(left) == pages.text_hash(right)).then_some(1.0)
        };
        // Pairs of texts that have to be compared, and a page of each.
        let mut similarities: LongList<(Texts, f64)> = self.list(pages.len() as u64);
        let mut page_of: LongList<(u64, PageId)> = similarities.another();
        let mut want = |left: PageId, right: PageId| -> Result<()> {
            if has_text(left) && has_text(right) {
                similarities.push((texts(left, right), 0.0))?;
                for page in [left, right].map(|page| pages.with_text(page)) {
                    page_of.push((pages.text_hash(page), page))?;
                }
            }
            Ok(())
        };
        for pair in verified.pairs.iter_mut().chain(verified.near_misses.iter_mut()) {
            pair.page_similarity = pair.page_similarity.or_else(|| known(pair.left, pair.right, pair.similarity));
            if pair.page_similarity.is_none() {
                want(pair.left, pair.right)?;
            }
        }
        let mut all = Ok(());
        fates.complete(|page, kept, similarity| {
            let whole = known(page, kept, similarity);
            if whole.is_none() && all.is_ok() {
                all = want(page, kept);
            }
            whole
        });
        all?;
        similarities.par_sort_unstable_by_key(|row| row.0);
        similarities.dedup_by_key(|row| row.0);
        page_of.par_sort_unstable();
        page_of.dedup_by_key(|row| row.0);
        let mut needed: Vec<PageId> = page_of.iter().map(|row| row.1).collect();
        needed.sort_unstable();
        let plan = self.plan.of_whole_pages();
        let sets = self.page_sets(reading, pages, &needed, &plan, None)?;
        let page = |text: u64| {
            let at = page_of.binary_search_by_key(&text, |row| row.0);
            at.map(|at| page_of[at].1).map_err(|_| Error::internal("a text that is compared belongs to no page"))
        };
        similarities.par_iter_mut().try_for_each(|((left, right), similarity)| {
            *similarity = verify::compare(&sets, page(*left)?, page(*right)?, &plan).0.similarity;
            Ok::<(), Error>(())
        })?;
        let found = |left: PageId, right: PageId| {
            let at = similarities.binary_search_by_key(&texts(left, right), |row| row.0);
            at.ok().map(|at| similarities[at].1)
        };
        for pair in verified.pairs.iter_mut().chain(verified.near_misses.iter_mut()) {
            pair.page_similarity = pair.page_similarity.or_else(|| found(pair.left, pair.right));
        }
        fates.complete(|page, kept, _| found(page, kept));
        Ok(())
    }
}
