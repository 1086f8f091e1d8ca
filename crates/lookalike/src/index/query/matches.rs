//! Pairs of fingerprints → pairs of rows, for batches and joins.

use crate::error::Result;
use crate::index::query::reader::{IndexReader, RowMatch};
use crate::index::segment::ids::Id;

/// How many pairs of rows were visited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MatchCounts {
    /// Pairs of rows.
    pub pairs: u64,
    /// Rows that have more matches than were asked for.
    pub limited: u64,
}

/// Counts the matches of one row.
struct MatchLimit {
    left: usize,
    taken: u64,
    is_reached: bool,
}

impl MatchLimit {
    fn new(limit: usize) -> MatchLimit {
        MatchLimit { left: if limit == 0 { usize::MAX } else { limit }, taken: 0, is_reached: false }
    }

    /// How many are worth looking up: one more than may be taken, to know whether there are more.
    fn lookups(&self) -> usize {
        self.left.saturating_add(1)
    }

    /// Takes one more, if it may.
    fn take(&mut self) -> bool {
        if self.left == 0 {
            self.is_reached = true;
            return false;
        }
        self.left -= 1;
        self.taken += 1;
        true
    }

    fn add_to(&self, counts: &mut MatchCounts) {
        counts.pairs += self.taken;
        counts.limited += u64::from(self.is_reached);
    }
}

impl IndexReader {
    /// Visits the rows within `radius` of every query, in the order of the queries, the nearest first; of each at
    /// most `limit`, or all for 0.
    ///
    /// # Errors
    /// As [`batch`](Self::batch), and when `visit` fails.
    pub fn batch_matches(
        &self,
        queries: &[(u64, Id)],
        radius: u32,
        limit: usize,
        visit: &mut dyn FnMut(&Id, &RowMatch) -> Result<()>,
    ) -> Result<MatchCounts> {
        let fingerprints: Vec<u64> = queries.iter().map(|query| query.0).collect();
        let pairs = self.batch(&fingerprints, radius)?;
        let mut counts = MatchCounts::default();
        for (fingerprint, id) in queries {
            let from = pairs.partition_point(|pair| pair.0 < *fingerprint);
            let near = pairs[from..].iter().take_while(|pair| pair.0 == *fingerprint).map(|pair| pair.1);
            self.visit_near(id, *fingerprint, near, limit, &mut counts, visit)?;
        }
        Ok(counts)
    }

    /// Visits the rows within `radius` of every row of `other`, by the fingerprints of those; of each at most
    /// `limit`, or all for 0.
    ///
    /// # Errors
    /// As [`batch`](Self::batch), and when `visit` fails.
    pub fn join_matches(
        &self,
        other: &IndexReader,
        radius: u32,
        limit: usize,
        visit: &mut dyn FnMut(&Id, &RowMatch) -> Result<()>,
    ) -> Result<MatchCounts> {
        let pairs = self.join(other, radius)?;
        let mut counts = MatchCounts::default();
        for near in pairs.chunk_by(|a, b| a.0 == b.0) {
            for id in other.ids(near[0].0, usize::MAX)? {
                self.visit_near(&id, near[0].0, near.iter().map(|pair| pair.1), limit, &mut counts, visit)?;
            }
        }
        Ok(counts)
    }

    fn visit_near(
        &self,
        query: &Id,
        fingerprint: u64,
        near: impl Iterator<Item = u64>,
        limit: usize,
        counts: &mut MatchCounts,
        visit: &mut dyn FnMut(&Id, &RowMatch) -> Result<()>,
    ) -> Result<()> {
        let mut near: Vec<(u32, u64)> = near.map(|near| ((near ^ fingerprint).count_ones(), near)).collect();
        near.sort_unstable();
        let mut count = MatchLimit::new(limit);
        'all: for (distance, near) in near {
            for id in self.ids(near, count.lookups())? {
                if !count.take() {
                    break 'all;
                }
                visit(query, &RowMatch { id, distance, fingerprint: near })?;
            }
        }
        count.add_to(counts);
        Ok(())
    }

    /// Visits all pairs of rows within `radius`, each once: those with equal fingerprints, and those with near ones;
    /// of each row at most `limit` with rows behind it, or all for 0.
    ///
    /// # Errors
    /// As [`batch`](Self::batch), and when `visit` fails.
    pub fn self_matches(
        &self,
        radius: u32,
        limit: usize,
        visit: &mut dyn FnMut(&Id, &RowMatch) -> Result<()>,
    ) -> Result<MatchCounts> {
        let pairs = self.self_join(radius)?;
        let mut lefts: Vec<u64> = pairs.iter().map(|pair| pair.0).collect();
        lefts.extend(self.repeated()?);
        lefts.sort_unstable();
        lefts.dedup();
        let mut counts = MatchCounts::default();
        for fingerprint in lefts {
            let ids = self.ids(fingerprint, usize::MAX)?;
            let from = pairs.partition_point(|pair| pair.0 < fingerprint);
            let near = pairs[from..].iter().take_while(|pair| pair.0 == fingerprint);
            let mut near: Vec<(u32, u64)> = near.map(|pair| ((pair.1 ^ fingerprint).count_ones(), pair.1)).collect();
            near.sort_unstable();
            for (at, id) in ids.iter().enumerate() {
                let mut count = MatchLimit::new(limit);
                for other in &ids[at + 1..] {
                    if !count.take() {
                        break;
                    }
                    visit(id, &RowMatch { id: other.clone(), distance: 0, fingerprint })?;
                }
                'all: for &(distance, near) in near.iter().take(if count.is_reached { 0 } else { usize::MAX }) {
                    for other in self.ids(near, count.lookups())? {
                        if !count.take() {
                            break 'all;
                        }
                        visit(id, &RowMatch { id: other, distance, fingerprint: near })?;
                    }
                }
                count.add_to(&mut counts);
            }
        }
        Ok(counts)
    }
}
