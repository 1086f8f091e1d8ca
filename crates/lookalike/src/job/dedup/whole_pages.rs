//! Similarities of whole pages, beside those of what was compared.
//!
//! In: verified pairs, and the page that is kept in each page's place. Out: for each of them the exact similarity of all
//! the two pages show, by the same features. Pages are read again only where something of them was left out.

use std::collections::HashMap;

use crate::cluster::Fates;
use crate::error::Result;
use crate::job::dedup::Run;
use crate::job::dedup::held_pages::HeldPages;
use crate::page::{PageId, PageOrigin};
use crate::page_table::PageTable;
use crate::read::Corpus;
use crate::sketch::page_sets::PairScratch;
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
        // One page for every text that has to be read.
        let mut page_of: HashMap<u64, PageId> = HashMap::new();
        let mut similarities: HashMap<Texts, f64> = HashMap::new();
        let mut want = |left: PageId, right: PageId| {
            if has_text(left) && has_text(right) {
                similarities.insert(texts(left, right), 0.0);
                for page in [left, right].map(|page| pages.with_text(page)) {
                    page_of.entry(pages.text_hash(page)).or_insert(page);
                }
            }
        };
        for pair in verified.pairs.iter_mut().chain(&mut verified.near_misses) {
            pair.page_similarity = pair.page_similarity.or_else(|| known(pair.left, pair.right, pair.similarity));
            if pair.page_similarity.is_none() {
                want(pair.left, pair.right);
            }
        }
        fates.complete(|page, kept, similarity| {
            let whole = known(page, kept, similarity);
            if whole.is_none() {
                want(page, kept);
            }
            whole
        });
        let mut needed: Vec<PageId> = page_of.values().copied().collect();
        needed.sort_unstable();
        let plan = self.plan.of_whole_pages();
        let sets = self.page_sets(reading, pages, &needed, &plan)?;
        let mut scratch = PairScratch::default();
        for (texts, similarity) in &mut similarities {
            let (left, right) = (page_of[&texts.0], page_of[&texts.1]);
            *similarity = verify::compare(&sets, left, right, &plan, &mut scratch)?.0.similarity;
        }
        let found = |left: PageId, right: PageId| similarities.get(&texts(left, right)).copied();
        for pair in verified.pairs.iter_mut().chain(&mut verified.near_misses) {
            pair.page_similarity = pair.page_similarity.or_else(|| found(pair.left, pair.right));
        }
        fates.complete(|page, kept, _| found(page, kept));
        Ok(())
    }
}
