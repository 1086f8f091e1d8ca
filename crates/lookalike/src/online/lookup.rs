//! A page → the stored pages that it is like: candidates by fingerprint, confirmed by sketches.

use std::collections::HashSet;

use crate::error::Result;
use crate::index::{self, Id, IndexReader, RowMatch};
use crate::online::sequencer::PendingGroup;
use crate::online::{CheckOutcome, ComparedCandidate, IncomingPage, PageVerdict, ServedIndex};

/// Candidates that are compared, the nearest first.
const MOST_COMPARED: usize = 64;
/// The same if none of those is confirmed.
const MOST_TRIED: usize = 4096;

/// Candidates for a page.
pub(super) struct NearRows {
    reader: IndexReader,
    /// What is stored, and what is about to be.
    stored: index::QueryResult,
    coming: Vec<RowMatch>,
}

impl NearRows {
    /// How many there are.
    pub(super) fn candidates(&self) -> u64 {
        self.stored.count + self.coming.len() as u64
    }
}

impl ServedIndex {
    /// Looks for a page among what is stored and what is about to be.
    pub(super) fn look(&self, asked: &IncomingPage, pending: &PendingGroup) -> Result<CheckOutcome> {
        self.judge(asked, self.find(asked, pending)?, pending)
    }

    /// Finds what a page may be like.
    pub(super) fn find(&self, asked: &IncomingPage, pending: &PendingGroup) -> Result<NearRows> {
        let mut reader = self.index.reader();
        let Some(fingerprint) = asked.page.fingerprint else {
            return Ok(NearRows { reader, stored: index::QueryResult::default(), coming: Vec::new() });
        };
        let radius = self.radius_for(asked);
        let stored = reader.query(fingerprint, radius, MOST_COMPARED)?;
        Ok(NearRows { reader, stored, coming: pending.near(fingerprint, radius) })
    }

    fn radius_for(&self, asked: &IncomingPage) -> u32 {
        if asked.page.is_short { 0 } else { self.radius }
    }

    /// Says which of the candidates a page is like.
    pub(super) fn judge(&self, asked: &IncomingPage, found: NearRows, pending: &PendingGroup) -> Result<CheckOutcome> {
        let mut answer = asked.answer();
        answer.candidates = found.candidates();
        let Some(fingerprint) = asked.page.fingerprint.filter(|_| answer.candidates > 0) else { return Ok(answer) };
        let NearRows { mut reader, stored: found, coming: near } = found;
        let radius = self.radius_for(asked);
        let mut seen = HashSet::new();
        if answer.candidates > MOST_COMPARED as u64 {
            // Its own older version must not be lost in a crowd.
            let own = asked.id.as_deref().map_or(Ok(None), |id| self.page(id))?.and_then(|page| page.fingerprint);
            let own = own.zip(asked.id.as_deref()).map(|(other, id)| RowMatch {
                id: Id::from(id),
                distance: (other ^ fingerprint).count_ones(),
                fingerprint: other,
            });
            self.compare(asked, own.into_iter().filter(|own| own.distance <= radius), pending, &mut seen, &mut answer)?;
        }
        self.compare(asked, near.into_iter().chain(found.matches), pending, &mut seen, &mut answer)?;
        if answer.of.is_empty() && found.count > MOST_COMPARED as u64 {
            let more = reader.query(fingerprint, radius, MOST_TRIED)?.matches;
            self.compare(asked, more.into_iter().skip(MOST_COMPARED), pending, &mut seen, &mut answer)?;
        }
        let similarity = |compared: &ComparedCandidate| compared.similarity.unwrap_or(0.0);
        answer.of.sort_by(|a, b| {
            let nearer = b.is_exact.cmp(&a.is_exact).then(similarity(b).total_cmp(&similarity(a)));
            nearer.then(a.distance.cmp(&b.distance)).then_with(|| a.id.cmp(&b.id))
        });
        answer.verdict = match answer.of.first() {
            Some(first) if first.is_exact => PageVerdict::Exact,
            Some(_) => PageVerdict::Near,
            None => PageVerdict::New,
        };
        Ok(answer)
    }

    /// Compares candidates with what is stored of them.
    fn compare(
        &self,
        asked: &IncomingPage,
        candidates: impl Iterator<Item = RowMatch>,
        pending: &PendingGroup,
        seen: &mut HashSet<String>,
        answer: &mut CheckOutcome,
    ) -> Result<()> {
        for candidate in candidates {
            let id = candidate.id.to_string();
            let page = match pending.pages.get(&id) {
                Some(None) => continue,
                Some(Some(page)) => Some(page.clone()),
                None => self.page(&id)?,
            };
            // Rows of what was replaced a moment ago.
            if page.as_ref().is_some_and(|page| page.fingerprint != Some(candidate.fingerprint)) {
                continue;
            }
            if !seen.insert(id.clone()) {
                continue;
            }
            let compared = asked.compare(&id, candidate.distance, page.as_ref());
            let is_short = asked.page.is_short || page.is_some_and(|page| page.is_short);
            match compared.similarity {
                None => answer.unconfirmed.push(compared),
                Some(similarity) if compared.is_exact || (!is_short && similarity >= self.threshold) => {
                    answer.of.push(compared);
                }
                Some(_) => answer.rejected.push(compared),
            }
        }
        Ok(())
    }
}
