//! Revisits → the captures that they are the same as.
//!
//! In: the names of all captures of a run. Out: for every revisit the page that has its text, if it is in
//! the input. Memory: 32 bytes a capture while the pages are read.

use crate::page::{Capture, CaptureKeys, PageId};

/// The captures of a run.
#[derive(Default)]
pub(crate) struct Captures {
    pages: Vec<(PageId, CaptureKeys)>,
    revisits: Vec<(PageId, CaptureKeys, CaptureKeys)>,
}

/// Revisits of revisits are followed this far.
const LONGEST_CHAIN: usize = 64;

impl Captures {
    pub(crate) fn extend(&mut self, captures: impl Iterator<Item = (PageId, Capture)>) {
        for (page, Capture { own, refers_to, .. }) in captures {
            match refers_to {
                None => self.pages.push((page, own)),
                Some(refers_to) => self.revisits.push((page, own, refers_to)),
            }
        }
    }

    /// Finds the original of every revisit: by record id, else by URL and time, else by digest.
    pub(crate) fn resolve(self) -> Vec<(PageId, Option<PageId>)> {
        if self.revisits.is_empty() {
            return Vec::new();
        }
        let names = |which: usize| -> Vec<(u64, PageId)> {
            let mut names: Vec<(u64, PageId)> =
                self.pages.iter().map(|(page, own)| (own[which], *page)).filter(|row| row.0 != 0).collect();
            names.sort_unstable();
            names
        };
        let by_name = [names(0), names(1), names(2)];
        let of_revisits = [0, 1].map(|which| {
            let mut names: Vec<(u64, usize)> =
                self.revisits.iter().enumerate().map(|(at, (_, own, _))| (own[which], at)).collect();
            names.sort_unstable();
            names
        });
        let original_of = |(page, _, refers_to): &(PageId, CaptureKeys, CaptureKeys)| {
            let mut wanted = *refers_to;
            let mut original = None;
            for _ in 0..LONGEST_CHAIN {
                original = by_name.iter().zip(wanted).find_map(|(names, key)| find(names, key));
                if original.is_some() {
                    break;
                }
                let Some(next) = of_revisits.iter().zip(wanted).find_map(|(names, key)| find(names, key)) else {
                    break;
                };
                wanted = self.revisits[next].2;
            }
            (*page, original)
        };
        self.revisits.iter().map(original_of).collect()
    }
}

/// The first that has this name.
fn find<T: Copy>(names: &[(u64, T)], key: u64) -> Option<T> {
    if key == 0 {
        return None;
    }
    let at = names.partition_point(|row| row.0 < key);
    names.get(at).filter(|row| row.0 == key).map(|row| row.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisits_are_followed_by_id_then_place_then_digest_and_through_each_other() {
        let mut captures = Captures::default();
        let capture = |own, refers_to| Capture { own, refers_to, taken: None };
        captures.extend(
            [
                (0, capture([1, 11, 21], None)),
                (1, capture([2, 12, 22], None)),
                (2, capture([3, 13, 21], Some([2, 11, 21]))), // the id comes first
                (3, capture([4, 14, 21], Some([0, 12, 21]))), // then the place
                (4, capture([5, 15, 99], Some([3, 0, 99]))),  // through a revisit
                (5, capture([6, 16, 98], Some([77, 78, 98]))), // not there
            ]
            .into_iter()
            .map(|(page, capture)| (PageId::new(page), capture)),
        );
        let page = PageId::new;
        let expected = [(2, Some(1)), (3, Some(1)), (4, Some(1)), (5, None)];
        assert_eq!(captures.resolve(), expected.map(|(revisit, original)| (page(revisit), original.map(page))));
    }
}
