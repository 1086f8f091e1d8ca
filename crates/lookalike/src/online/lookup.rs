//! A page → the stored pages that it is like: candidates by fingerprint, confirmed by sketches.

use std::collections::HashSet;

use crate::error::Result;
use crate::index::{Id, IndexReader, QueryResult, RowMatch};
use crate::online::sequencer::PendingGroup;
use crate::online::{CheckOutcome, ComparedCandidate, IncomingPage, PageVerdict, ServedIndex};

/// Candidates that are compared, the nearest first.
const MOST_COMPARED: usize = 64;
/// The same if none of those is confirmed.
const MOST_TRIED: usize = 4096;

/// Rows with a fingerprint near that of a page.
pub(super) struct NearRows {
    reader: IndexReader,
    stored: QueryResult,
    /// What is about to be stored.
    pending: Vec<RowMatch>,
}

impl NearRows {
    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.stored.count + self.pending.len() as u64
    }
}

impl ServedIndex {
    /// Looks a page up among what is stored and what is about to be.
    pub(super) fn lookup(&self, incoming: &IncomingPage, pending: &PendingGroup) -> Result<CheckOutcome> {
        self.confirm(incoming, self.near_rows(incoming, pending)?, pending)
    }

    /// Finds what a page may be like.
    pub(super) fn near_rows(&self, incoming: &IncomingPage, pending: &PendingGroup) -> Result<NearRows> {
        let mut reader = self.index.reader();
        let Some(fingerprint) = incoming.page.fingerprint else {
            return Ok(NearRows { reader, stored: QueryResult::default(), pending: Vec::new() });
        };
        let radius = self.radius_for(incoming);
        let stored = reader.query(fingerprint, radius, MOST_COMPARED)?;
        Ok(NearRows { reader, stored, pending: pending.near(fingerprint, radius) })
    }

    fn radius_for(&self, incoming: &IncomingPage) -> u32 {
        if incoming.page.is_short { 0 } else { self.radius }
    }

    /// Decides which of the nearby rows are near-duplicates of the page.
    pub(super) fn confirm(
        &self,
        incoming: &IncomingPage,
        near: NearRows,
        pending: &PendingGroup,
    ) -> Result<CheckOutcome> {
        let mut outcome = incoming.outcome();
        outcome.candidates = near.count();
        let Some(fingerprint) = incoming.page.fingerprint.filter(|_| outcome.candidates > 0) else {
            return Ok(outcome);
        };
        let NearRows { mut reader, stored, pending: coming } = near;
        let radius = self.radius_for(incoming);
        let mut seen = HashSet::new();
        if outcome.candidates > MOST_COMPARED as u64 {
            // Its own older version must not be lost in a crowd.
            let own = incoming.id.as_deref().map_or(Ok(None), |id| self.page(id))?.and_then(|page| page.fingerprint);
            let own = own.zip(incoming.id.as_deref()).map(|(other, id)| RowMatch {
                id: Id::from(id),
                distance: (other ^ fingerprint).count_ones(),
                fingerprint: other,
            });
            let own = own.into_iter().filter(|own| own.distance <= radius);
            self.compare(incoming, own, pending, &mut seen, &mut outcome)?;
        }
        self.compare(incoming, coming.into_iter().chain(stored.matches), pending, &mut seen, &mut outcome)?;
        if outcome.of.is_empty() && stored.count > MOST_COMPARED as u64 {
            let more = reader.query(fingerprint, radius, MOST_TRIED)?.matches;
            self.compare(incoming, more.into_iter().skip(MOST_COMPARED), pending, &mut seen, &mut outcome)?;
        }
        // Only what was compared by its sketch is in `of`.
        let similarity = |compared: &ComparedCandidate| compared.similarity.unwrap_or(0.0);
        outcome.of.sort_by(|a, b| {
            let nearer = b.is_exact.cmp(&a.is_exact).then(similarity(b).total_cmp(&similarity(a)));
            nearer.then(a.distance.cmp(&b.distance)).then_with(|| a.id.cmp(&b.id))
        });
        outcome.verdict = match outcome.of.first() {
            Some(first) if first.is_exact => PageVerdict::Exact,
            Some(_) => PageVerdict::Near,
            None => PageVerdict::New,
        };
        Ok(outcome)
    }

    /// Compares candidates with what is stored of them.
    fn compare(
        &self,
        incoming: &IncomingPage,
        candidates: impl Iterator<Item = RowMatch>,
        pending: &PendingGroup,
        seen: &mut HashSet<String>,
        outcome: &mut CheckOutcome,
    ) -> Result<()> {
        for candidate in candidates {
            let id = candidate.id.to_string();
            let page = match pending.pages.get(&id) {
                Some(None) => continue,
                Some(Some(page)) => Some(page.clone()),
                None => self.page(&id)?,
            };
            // A row of what was replaced a moment ago.
            if page.as_ref().is_some_and(|page| page.fingerprint != Some(candidate.fingerprint)) {
                continue;
            }
            if !seen.insert(id.clone()) {
                continue;
            }
            let compared = incoming.compare(&id, candidate.distance, page.as_ref());
            let is_short = incoming.page.is_short || page.is_some_and(|page| page.is_short);
            match compared.similarity {
                None => outcome.unconfirmed.push(compared),
                Some(similarity) if compared.is_exact || (!is_short && similarity >= self.threshold) => {
                    outcome.of.push(compared);
                }
                Some(_) => outcome.rejected.push(compared),
            }
        }
        Ok(())
    }
}
