//! Pages that meet in lists of shared features, and which of them may share enough.
//!
//! In: the lists. Out: for a page that asks, those that may share enough with it. With Jaccard's similarity the heavier page
//! asks, with coverage the lighter. Meetings are gone through for as many askers at a time as memory holds the meetings of; how
//! many these are changes nothing.

use std::ops::Range;

use crate::candidate::inverted::{Collisions, Sharing};
use crate::candidate::shared_lists::{Member, PagesByWeight, SharedLists, Weighed};
use crate::error::Result;
use crate::page::PageId;
use crate::plan::Measure;

/// Who meets whom, as far as it has been counted.
pub(super) struct Meetings<'a> {
    pages: &'a PagesByWeight,
    lists: &'a SharedLists,
    sharing: Sharing,
    /// The place from which on pages are not too light for each one that asks; empty if none are.
    from: Vec<u32>,
    /// How many each page that asks meets, features counted.
    counts: Vec<u32>,
    /// Of all.
    pub(super) collisions: Collisions,
}

/// The meetings of some pages.
pub(super) struct Block<'a> {
    meetings: &'a Meetings<'a>,
    pub(super) askers: Range<u32>,
    /// For each asker where its meetings start.
    starts: Vec<usize>,
    others: Vec<u32>,
    /// Of the features; none if all weigh 1.
    weights: Vec<u32>,
}

impl<'a> Meetings<'a> {
    /// Counts all meetings.
    pub(super) fn new(pages: &'a PagesByWeight, lists: &'a SharedLists, sharing: Sharing) -> Result<Meetings<'a>> {
        let filters = sharing.size_filter && sharing.measure != Measure::Coverage;
        let mut lightest = 0;
        let from = |page: &Weighed| {
            // Who is too light for a page is too light for a heavier one.
            while (pages.weighed[lightest].total as f64) < sharing.lightest(page.total) {
                lightest += 1;
            }
            as_u32(lightest)
        };
        let from: Vec<u32> = if filters { pages.weighed.iter().map(from).collect() } else { Vec::new() };
        let mut meetings = Meetings {
            pages,
            lists,
            sharing,
            from,
            counts: vec![0; pages.order.len()],
            collisions: Collisions::default(),
        };
        let (mut counts, mut collisions) = (std::mem::take(&mut meetings.counts), Collisions::default());
        lists.for_each(|_, members| {
            meetings.visit(members, &mut |asker, others, skipped| {
                let count = &mut counts[asker as usize];
                *count = count.saturating_add(as_u32(others.len()));
                collisions.all += (others.len() + skipped) as u64;
                collisions.filtered += skipped as u64;
            });
        })?;
        (meetings.counts, meetings.collisions) = (counts, collisions);
        Ok(meetings)
    }

    /// Shows who of a list asks, for whom, and how many others are too light.
    #[inline]
    fn visit(&self, members: &[Member], met: &mut impl FnMut(u32, &[Member], usize)) {
        // A page is in a list twice where two of its features became one; it does not meet itself.
        let (mut same, mut from) = (0, 0);
        for (at, member) in members.iter().enumerate() {
            let place = member.place();
            if self.sharing.measure == Measure::Coverage {
                if member.is_looked_up() {
                    let behind = members[at..].iter().take_while(|other| other.place() == place).count();
                    met(place, &members[at + behind..], 0);
                }
                continue;
            }
            if members[same].place() != place {
                same = at;
            }
            if let Some(&least) = self.from.get(place as usize) {
                while members[from].place() < least {
                    from += 1;
                }
            }
            met(place, &members[from.min(same)..same], from.min(same));
        }
    }

    /// The askers whose meetings fit into so many bytes, from a place on; one at least.
    fn range(&self, start: u32, bytes: usize) -> Range<u32> {
        let each = if self.lists.is_weighted() { 8 } else { 4 };
        let mut left = bytes / each;
        let counts = self.counts[start as usize..].iter();
        let fitting = counts.take_while(|&&count| {
            let fits = count as usize <= left;
            left = left.saturating_sub(count as usize);
            fits
        });
        start..start + as_u32(fitting.count()).max(1)
    }

    /// The meetings of pages from `start` on, as many as fit into so many bytes; nothing if no page is left.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub(super) fn block(&'a self, start: u32, bytes: usize) -> Result<Option<Block<'a>>> {
        if start as usize >= self.counts.len() {
            return Ok(None);
        }
        let askers = self.range(start, bytes);
        let counts = &self.counts[start as usize..askers.end as usize];
        let mut sum = 0;
        let mut starts = vec![0];
        starts.extend(counts.iter().map(|&count| {
            sum += count as usize;
            sum
        }));
        let mut next = starts.clone();
        let mut others = vec![0; sum];
        let mut weights = vec![0; if self.lists.is_weighted() { sum } else { 0 }];
        let is_all = counts.len() == self.counts.len();
        self.lists.for_each(|weight, members| {
            if !is_all && !members.iter().any(|member| askers.contains(&member.place())) {
                return;
            }
            self.visit(members, &mut |asker, met, _| {
                if !askers.contains(&asker) {
                    return;
                }
                let at = &mut next[(asker - start) as usize];
                for (room, other) in others[*at..].iter_mut().zip(met) {
                    *room = other.place();
                }
                if !weights.is_empty() {
                    weights[*at..*at + met.len()].fill(weight);
                }
                *at += met.len();
            });
        })?;
        Ok(Some(Block { meetings: self, askers, starts, others, weights }))
    }
}

impl Block<'_> {
    /// Leaves the candidates of one page in `lookup.found`.
    pub(super) fn look_up(&self, asker: u32, is_wanted: &(dyn Fn(PageId, PageId) -> bool + Sync), lookup: &mut Lookup) {
        let Meetings { pages, sharing, .. } = self.meetings;
        let at = (asker - self.askers.start) as usize;
        let met = self.starts[at]..self.starts[at + 1];
        lookup.shared.resize(pages.order.len(), 0);
        if self.weights.is_empty() {
            self.others[met].iter().for_each(|&other| lookup.add(other, 1));
        } else {
            let weighted = self.others[met.clone()].iter().zip(&self.weights[met]);
            weighted.for_each(|(&other, &weight)| lookup.add(other, weight));
        }
        let own = &pages.weighed[asker as usize];
        lookup.found.clear();
        for other in lookup.met.drain(..) {
            let shared = std::mem::take(&mut lookup.shared[other as usize]);
            let theirs = &pages.weighed[other as usize];
            // Behind the prefix that ends first, nothing was counted; no more than that can come.
            let is_first = sharing.measure == Measure::Coverage || own.last <= theirs.last;
            let left = if is_first { own.rest } else { theirs.rest };
            let needed = sharing.needed(own.total, theirs.total);
            if (u64::from(shared) + left) as f64 >= needed * (1.0 - 1e-9)
                && is_wanted(pages.order[asker as usize], pages.order[other as usize])
            {
                lookup.found.push(other);
            }
        }
    }
}

/// Of a number of places, which are those of pages.
pub(super) fn as_u32(places: usize) -> u32 {
    u32::try_from(places).expect("pages, and so their places, are numbered by 32 bits")
}

/// What one page shares with those it has met; one per thread.
#[derive(Default)]
pub(super) struct Lookup {
    shared: Vec<u32>,
    met: Vec<u32>,
    /// The places of the last page's candidates.
    pub(super) found: Vec<u32>,
}

impl Lookup {
    #[inline]
    fn add(&mut self, other: u32, weight: u32) {
        let shared = &mut self.shared[other as usize];
        if *shared == 0 {
            self.met.push(other);
        }
        *shared = shared.saturating_add(weight);
    }
}
