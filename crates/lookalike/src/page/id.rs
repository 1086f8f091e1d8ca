//! The numbers of pages and sources, and values by page.

use std::iter::FusedIterator;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// The number of a page in one run: its place in the order (source, record), from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PageId(u32);

impl PageId {
    /// The most pages that a run can have.
    pub const MOST_PAGES: u64 = u32::MAX as u64;

    /// The page of this number.
    #[inline]
    #[must_use]
    pub const fn new(number: u32) -> PageId {
        PageId(number)
    }

    /// The page at this place of a table.
    ///
    /// # Panics
    /// Beyond the largest number there is. A table of pages is refused before it grows that far.
    #[inline]
    #[must_use]
    pub fn from_index(index: usize) -> PageId {
        PageId(u32::try_from(index).expect("a run has fewer than 2^32 pages"))
    }

    /// Its place in a table.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Its number.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The page that is this one in a part of the table that starts at `start`.
    ///
    /// # Panics
    /// As [`from_index`](Self::from_index).
    #[inline]
    #[must_use]
    pub fn from_start(self, start: usize) -> PageId {
        PageId::from_index(start + self.index())
    }

    /// The first `count` pages, ascending.
    ///
    /// # Panics
    /// As [`from_index`](Self::from_index).
    #[inline]
    #[must_use]
    pub(crate) fn first(count: usize) -> PageRange {
        PageRange { next: 0, end: PageId::from_index(count).0 }
    }

    /// All numbers from 0 on, for what comes in the order of the pages.
    #[inline]
    #[must_use]
    pub(crate) const fn counting() -> PageRange {
        PageRange { next: 0, end: u32::MAX }
    }

    /// The pages from this one up to, and without, `end`.
    #[inline]
    #[must_use]
    pub(crate) const fn up_to(self, end: PageId) -> PageRange {
        PageRange { next: self.0, end: end.0 }
    }
}

/// The number of a source in one run: its place in the list of sources, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceId(u32);

impl SourceId {
    /// The source at this place of the list.
    ///
    /// # Panics
    /// Beyond the largest number there is; that many names would not fit into memory.
    #[inline]
    #[must_use]
    pub fn from_index(index: usize) -> SourceId {
        SourceId(u32::try_from(index).expect("a run has fewer than 2^32 sources"))
    }

    /// Its place in the list.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Consecutive pages, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRange {
    next: u32,
    end: u32,
}

impl PageRange {
    /// The first page of the range, and of what would follow if it is empty.
    #[must_use]
    pub const fn start(&self) -> PageId {
        PageId(self.next)
    }
}

impl Iterator for PageRange {
    type Item = PageId;

    #[inline]
    fn next(&mut self) -> Option<PageId> {
        if self.next >= self.end {
            return None;
        }
        let page = PageId(self.next);
        self.next += 1;
        Some(page)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.saturating_sub(self.next) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for PageRange {}
impl FusedIterator for PageRange {}

/// A value for every page of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PageVec<T>(Vec<T>);

impl<T> PageVec<T> {
    /// No pages yet.
    #[must_use]
    pub const fn new() -> PageVec<T> {
        PageVec(Vec::new())
    }

    /// The same value for each of `pages` pages.
    #[must_use]
    pub fn filled(pages: usize, value: T) -> PageVec<T>
    where
        T: Clone,
    {
        PageVec(vec![value; pages])
    }

    /// The value that `value` gives for each of `pages` pages.
    #[must_use]
    pub fn from_fn(pages: usize, value: impl FnMut(PageId) -> T) -> PageVec<T> {
        PageId::first(pages).map(value).collect()
    }

    /// The value of the next page.
    #[inline]
    pub fn push(&mut self, value: T) {
        self.0.push(value);
    }

    /// How many pages have a value.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no page has a value.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a page, if it has one.
    #[inline]
    #[must_use]
    pub fn get(&self, page: PageId) -> Option<&T> {
        self.0.get(page.index())
    }

    /// The pages.
    #[must_use]
    pub(crate) fn pages(&self) -> PageRange {
        PageId::first(self.0.len())
    }

    /// The values, in the order of the pages.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// The values, to be changed, in the order of the pages.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }

    /// Every page with its value.
    pub fn by_page(&self) -> impl ExactSizeIterator<Item = (PageId, &T)> + Clone {
        self.pages().zip(&self.0)
    }
}

impl<T> Index<PageId> for PageVec<T> {
    type Output = T;

    #[inline]
    fn index(&self, page: PageId) -> &T {
        &self.0[page.index()]
    }
}

impl<T> IndexMut<PageId> for PageVec<T> {
    #[inline]
    fn index_mut(&mut self, page: PageId) -> &mut T {
        &mut self.0[page.index()]
    }
}

impl<T> From<Vec<T>> for PageVec<T> {
    fn from(values: Vec<T>) -> PageVec<T> {
        PageVec(values)
    }
}

impl<T> FromIterator<T> for PageVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> PageVec<T> {
        PageVec(values.into_iter().collect())
    }
}

impl<T> Extend<T> for PageVec<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        self.0.extend(values);
    }
}

impl<'a, T> IntoIterator for &'a PageVec<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T> IntoIterator for PageVec<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_pages_is_what_the_range_of_their_numbers_is() {
        for (from, to) in [(0, 0), (0, 5), (3, 7), (7, 3)] {
            let pages = PageId::new(from).up_to(PageId::new(to));
            assert_eq!(pages.len(), (from..to).len());
            assert_eq!(pages.map(PageId::number).collect::<Vec<_>>(), (from..to).collect::<Vec<_>>());
        }
        assert_eq!(PageId::first(3), PageId::new(0).up_to(PageId::from_index(3)));
    }

    #[test]
    fn a_page_is_stored_as_its_number() {
        assert_eq!(serde_json::to_string(&PageId::new(7)).unwrap(), "7");
        assert_eq!(postcard::to_stdvec(&PageId::new(300)).unwrap(), postcard::to_stdvec(&300u32).unwrap());
    }
}
