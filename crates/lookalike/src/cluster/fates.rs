//! What became of each page: kept, or dropped for which one, and why.
//!
//! In: identity sets, and the set that each was assigned to. Out: a [`Fate`] for every page. Most pages are kept, or are the same
//! as one that is: they take five bytes; only what is similar by degrees has more.

use crate::cluster::identity::IdentitySets;
use crate::cluster::{Chosen, Link};
use crate::page::{Kind, PageId, PageVec};

/// What became of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fate {
    /// The page that is kept in its place; itself, if it is kept.
    pub kept: PageId,
    /// Similarity to that page.
    pub similarity: f64,
    /// Similarity of the whole pages, whatever of them was compared; nothing while it is not known.
    pub page_similarity: Option<f64>,
    /// What became of it.
    pub kind: Kind,
}

impl Fate {
    /// That of a page with the same words as the kept one.
    pub(crate) fn same_words(kept: PageId, is_same_text: bool) -> Fate {
        let (page_similarity, kind) = if is_same_text { (Some(1.0), Kind::Exact) } else { (None, Kind::SameCore) };
        Fate { kept, similarity: 1.0, page_similarity, kind }
    }

    /// That of a page which stays.
    pub(crate) fn kept(page: PageId) -> Fate {
        Fate { kept: page, similarity: 1.0, page_similarity: Some(1.0), kind: Kind::Unique }
    }

    /// Whether the page of this number is kept.
    #[must_use]
    pub fn keeps(&self, page: PageId) -> bool {
        self.kept == page
    }

    /// Whether it is the same as the kept page in every way.
    fn is_whole(&self) -> bool {
        self.similarity >= 1.0 && self.page_similarity.is_some_and(|whole| whole >= 1.0)
    }
}

/// The similarity of a page to the kept one where it is not 1, of what was compared and of all.
#[derive(Debug, Clone, Copy)]
struct Measured {
    page: PageId,
    similarity: f64,
    /// Not a number while it is not known.
    page_similarity: f64,
}

/// What became of every page.
#[derive(Debug)]
pub struct Fates {
    kept: PageVec<PageId>,
    kinds: PageVec<Kind>,
    /// Ascending.
    measured: Vec<Measured>,
}

impl Fates {
    /// From the groups of identity sets to the fate of every page.
    ///
    /// `chosen` has the set that a set was assigned to; `tokens` shows which pages are empty or short, `is_same_text`
    /// whether all of two pages is the same.
    #[must_use]
    pub fn new(
        sets: &IdentitySets,
        chosen: &Chosen,
        tokens: &PageVec<u32>,
        min_tokens: u32,
        is_same_text: &dyn Fn(PageId, PageId) -> bool,
    ) -> Fates {
        let mut fates = Fates { kept: PageVec::new(), kinds: PageVec::new(), measured: Vec::new() };
        for (page, &first) in sets.first.by_page() {
            let target = chosen.target(first);
            let kept = sets.best[target];
            fates.push(if kept == page {
                Fate::kept(page)
            } else if target == first {
                Fate::same_words(kept, is_same_text(page, kept))
            } else {
                let Link { similarity, is_containment, .. } = chosen.link(first);
                let kind = if is_containment { Kind::Contained } else { Kind::Near };
                Fate { kept, similarity, page_similarity: None, kind }
            });
        }
        fates.name_kept(tokens, min_tokens);
        fates
    }

    /// The fate of the next page.
    fn push(&mut self, fate: Fate) {
        let page = PageId::from_index(self.kept.len());
        self.kept.push(fate.kept);
        self.kinds.push(fate.kind);
        self.measured.extend((!fate.is_whole()).then(|| Measured::new(page, &fate)));
    }

    /// Says of each page that is kept what it is.
    pub(crate) fn name_kept(&mut self, tokens: &PageVec<u32>, min_tokens: u32) {
        let mut stands_for_others = PageVec::filled(self.len(), false);
        for (_, &kept) in self.kept.by_page().filter(|(page, kept)| page != *kept) {
            stands_for_others[kept] = true;
        }
        for (page, _) in self.kept.by_page().filter(|(page, kept)| page == *kept) {
            self.kinds[page] = match tokens[page] {
                0 => Kind::Empty,
                _ if stands_for_others[page] => Kind::Representative,
                few if few < min_tokens => Kind::Short,
                _ => Kind::Unique,
            };
        }
    }

    /// Number of pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// The page that is kept in a page's place.
    #[must_use]
    pub fn kept(&self, page: PageId) -> PageId {
        self.kept[page]
    }

    /// Whether a page is kept.
    #[must_use]
    pub fn keeps(&self, page: PageId) -> bool {
        self.kept[page] == page
    }

    /// For every page the one that is kept in its place.
    #[must_use]
    pub(crate) fn all_kept(&self) -> &PageVec<PageId> {
        &self.kept
    }

    /// What became of a page.
    #[must_use]
    pub fn of(&self, page: PageId) -> Fate {
        let measured = self.measured.binary_search_by_key(&page, |measured| measured.page);
        self.with(page, measured.ok().map(|at| &self.measured[at]))
    }

    /// What became of each page, in their order.
    pub fn by_page(&self) -> impl Iterator<Item = (PageId, Fate)> {
        let mut measured = self.measured.iter().peekable();
        self.kept.pages().map(move |page| {
            let own = measured.next_if(|next| next.page == page);
            (page, self.with(page, own))
        })
    }

    fn with(&self, page: PageId, measured: Option<&Measured>) -> Fate {
        let (similarity, page_similarity) = measured.map_or((1.0, 1.0), |own| (own.similarity, own.page_similarity));
        let page_similarity = Some(page_similarity).filter(|whole| !whole.is_nan());
        Fate { kept: self.kept[page], similarity, page_similarity, kind: self.kinds[page] }
    }

    /// Gives a page another fate.
    pub(crate) fn set(&mut self, page: PageId, fate: Fate) {
        (self.kept[page], self.kinds[page]) = (fate.kept, fate.kind);
        match self.measured.binary_search_by_key(&page, |measured| measured.page) {
            Ok(at) => self.measured[at] = Measured::new(page, &fate),
            Err(at) if !fate.is_whole() => self.measured.insert(at, Measured::new(page, &fate)),
            Err(_) => {}
        }
    }

    /// Asks for the similarity of whole pages wherever it is not known: of which page to which kept one, and how similar they
    /// are in what was compared.
    pub(crate) fn complete(&mut self, mut whole: impl FnMut(PageId, PageId, f64) -> Option<f64>) {
        for measured in self.measured.iter_mut().filter(|measured| measured.page_similarity.is_nan()) {
            let found = whole(measured.page, self.kept[measured.page], measured.similarity);
            measured.page_similarity = found.unwrap_or(f64::NAN);
        }
    }
}

impl Measured {
    fn new(page: PageId, fate: &Fate) -> Measured {
        Measured { page, similarity: fate.similarity, page_similarity: fate.page_similarity.unwrap_or(f64::NAN) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::page_vec;

    #[test]
    fn every_kind_of_fate() {
        // 0 and 1 are the same page, 2 is near them, 3 empty, 4 short, 5 unique, 6 and 7 short copies, 8 is 1 in another frame.
        let first = page_vec([0, 0, 2, 3, 4, 5, 6, 6, 0]);
        let sets = IdentitySets { first, best: page_vec([1, 0, 2, 3, 4, 5, 6, 0, 0]), count: 6 };
        let near = PageId::new(2);
        let chosen = Chosen::new(9, vec![(near, Link { similarity: 0.8, ..Link::to_itself(PageId::new(0)) })]);
        let is_same_text = |left: PageId, right: PageId| left.max(right) != PageId::new(8);
        let mut fates = Fates::new(&sets, &chosen, &vec![50, 50, 50, 0, 3, 50, 3, 3, 50].into(), 8, &is_same_text);
        let kinds: Vec<Kind> = fates.by_page().map(|(_, fate)| fate.kind).collect();
        let expected = [
            Kind::Exact,
            Kind::Representative,
            Kind::Near,
            Kind::Empty,
            Kind::Short,
            Kind::Unique,
            Kind::Representative,
            Kind::Exact,
            Kind::SameCore,
        ];
        assert_eq!(kinds, expected);
        assert_eq!(
            (fates.of(near).kept, fates.of(near).similarity),
            (PageId::new(1), 0.8),
            "the best-ranked copy is the one that is kept"
        );
        // Page 8 is the same core; how much of the whole is the same is asked of it and of the near one alone.
        let mut asked = Vec::new();
        fates.complete(|page, kept, similarity| {
            asked.push((page.number(), kept.number(), similarity));
            (page == near).then_some(0.4)
        });
        assert_eq!(asked, [(2, 1, 0.8), (8, 1, 1.0)]);
        let whole: Vec<Option<f64>> = fates.by_page().map(|(_, fate)| fate.page_similarity).collect();
        assert_eq!((whole[2], whole[8], whole[0]), (Some(0.4), None, Some(1.0)));
        fates.set(near, Fate::kept(near));
        fates.set(PageId::new(5), Fate { kept: near, similarity: 0.6, page_similarity: None, kind: Kind::Near });
        assert!(fates.by_page().all(|(page, fate)| fate == fates.of(page)));
        assert_eq!((fates.of(near), fates.of(PageId::new(5)).similarity), (Fate::kept(near), 0.6));
    }
}
