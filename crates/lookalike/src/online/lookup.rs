//! A page → the stored pages that it is like: candidates by bands or by fingerprint, decided by what is stored of them.

use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::index::{FoundEntry, Id, IndexReader, QueryResult, Record, RowMatch};
use crate::online::incoming::{IncomingPage, Worker, now};
use crate::online::sequencer::PendingGroup;
use crate::online::sites::NAMELESS;
use crate::online::{CheckOutcome, ComparedCandidate, ServedIndex};
use crate::plan::decision::{Evidence, SHORT_STORY_WORDS};
use crate::sketch::min_bytes::{MinBytes, similarity};
use crate::text::frames::markup_similarity;
use crate::verify::jaccard::{jaccard, shared};

/// Candidates whose records are looked at, those that share most first.
const MOST_COMPARED: usize = 64;
/// Candidates whose texts are compared, those with the best estimates first.
const MOST_READ: usize = 16;
/// Pages of one band key that become candidates.
const MOST_OF_KEY: usize = 64;
/// Copies that are named.
const MOST_COPIES: usize = 16;
/// Candidates by fingerprint that are tried if none of the nearest is confirmed.
const MOST_TRIED: usize = 256;
/// How far an estimate may be below the threshold for the texts to be compared: more than three times its error.
const ESTIMATE_MARGIN: f64 = 0.15;

/// Similarity of the markup of two pages from which they may be of one site, as where frames are learnt.
const LIKE_MARKUP: f64 = 0.3;

/// Words below which a story needs a higher similarity to another one of its site; more than in `dedup`, where what was
/// dropped is looked through.
const SHORT_ON_SITE: u32 = 200;

/// Words below which a story of a site needs the similarity of plain texts: a single word that differs changes a third of its
/// runs, and may be all that it says, as in "No usage of CLASS".
const TINY_ON_SITE: u32 = 32;

/// How much more is asked of stories of different sites than `dedup` asks, where a group is looked through and its kept page
/// stays; here a page that is called near is gone at once. Not where a frame is still unknown: a part of it counts there.
const MORE_BETWEEN_SITES: f64 = 1.125;

/// Whether a pair of which one has so many words counts as short.
fn is_short(words: u32, evidence: &Evidence) -> bool {
    words < if evidence.same_site { SHORT_ON_SITE } else { SHORT_STORY_WORDS }
}

/// A candidate and what is stored of it.
struct Candidate {
    record: Record,
    distance: Option<u32>,
    estimate: f64,
}

/// A page that is looked up: what its candidates are compared with.
struct Asked<'p> {
    page: &'p IncomingPage,
    sketch: MinBytes,
}

impl ServedIndex {
    /// Looks a page up among what is stored, as far as it came after change `since`, and what is about to be.
    pub(super) fn lookup(
        &self,
        incoming: &IncomingPage,
        since: u32,
        pending: &PendingGroup,
        worker: &mut Worker,
    ) -> Result<CheckOutcome> {
        let mut outcome = incoming.outcome();
        if incoming.record.tokens == 0 {
            return Ok(outcome);
        }
        let mut seen = HashSet::new();
        self.add_copies(incoming, pending, &mut seen, &mut outcome)?;
        if self.bands().is_some() {
            self.look_up_bands(incoming, since, pending, &mut seen, worker, &mut outcome)?;
        } else {
            self.look_up_fingerprint(incoming, pending, &mut seen, worker, &mut outcome)?;
        }
        outcome.decide();
        Ok(outcome)
    }

    /// Pages with the same identity: found in any crowd.
    fn add_copies(
        &self,
        incoming: &IncomingPage,
        pending: &PendingGroup,
        seen: &mut HashSet<String>,
        outcome: &mut CheckOutcome,
    ) -> Result<()> {
        let identity = incoming.record.identity;
        let numbers = match pending.copies.get(&identity) {
            Some(numbers) => numbers.clone(),
            None => self.store.copies(identity)?,
        };
        for number in numbers.into_iter().take(MOST_COPIES) {
            let Some(record) = self.record(number, pending)? else { continue };
            if record.identity == identity && seen.insert(record.id.clone()) {
                let distance = record.fingerprint.map(|_| 0);
                outcome.candidates += 1;
                outcome.of.push(ComparedCandidate {
                    id: record.id,
                    distance,
                    similarity: Some(1.0),
                    is_estimated: false,
                    threshold: self.threshold,
                    is_exact: true,
                });
            }
        }
        Ok(())
    }

    /// The record with a number, unless it is gone or has expired.
    fn record(&self, number: u32, pending: &PendingGroup) -> Result<Option<Record>> {
        let record = match pending.records.get(&number) {
            Some(record) => record.clone(),
            None => self.store.record(number)?,
        };
        Ok(record.filter(|record| record.expires_at.is_none_or(|time| time > now())))
    }

    fn look_up_bands(
        &self,
        incoming: &IncomingPage,
        since: u32,
        pending: &PendingGroup,
        seen: &mut HashSet<String>,
        worker: &mut Worker,
        outcome: &mut CheckOutcome,
    ) -> Result<()> {
        let state = self.index.state();
        let mut numbers = Vec::new();
        state.pages_with(&incoming.keys, since, MOST_OF_KEY, &mut numbers)?;
        for key in &incoming.keys {
            numbers.extend(pending.keys.get(key).into_iter().flatten());
        }
        numbers.retain(|&number| number > since);
        numbers.sort_unstable();
        // Those that share most first; the older ones of equal ones.
        let mut candidates: Vec<(usize, u32)> =
            numbers.chunk_by(|a, b| a == b).map(|same| (same.len(), same[0])).collect();
        candidates.sort_unstable_by_key(|&(shared, number)| (std::cmp::Reverse(shared), number));
        outcome.candidates += candidates.len() as u64;
        let asked = Asked { page: incoming, sketch: incoming.record.sketch() };
        let mut looked_at = Vec::new();
        for (_, number) in candidates.into_iter().take(MOST_COMPARED) {
            let Some(record) = self.record(number, pending)? else {
                // It is gone, and its rows are still there.
                outcome.candidates -= 1;
                continue;
            };
            if !record.is_short && seen.insert(record.id.clone()) {
                let estimate = similarity(&asked.sketch, &record.sketch());
                looked_at.push(Candidate { record, distance: None, estimate });
            }
        }
        self.decide(&asked, looked_at, worker, outcome)
    }

    /// Decides on candidates, those with the best estimates first.
    fn decide(
        &self,
        asked: &Asked<'_>,
        mut candidates: Vec<Candidate>,
        worker: &mut Worker,
        outcome: &mut CheckOutcome,
    ) -> Result<()> {
        candidates.sort_by(|a, b| b.estimate.total_cmp(&a.estimate).then_with(|| a.record.id.cmp(&b.record.id)));
        for (at, candidate) in candidates.into_iter().enumerate() {
            let (is_near, compared) = self.compare(asked, &candidate, at < MOST_READ, worker)?;
            if is_near { outcome.of.push(compared) } else { outcome.rejected.push(compared) }
        }
        Ok(())
    }

    /// Compares a page with a candidate, by their texts where `is_read` says so and one is kept.
    fn compare(
        &self,
        asked: &Asked<'_>,
        candidate: &Candidate,
        is_read: bool,
        worker: &mut Worker,
    ) -> Result<(bool, ComparedCandidate)> {
        let (page, record) = (&asked.page.record, &candidate.record);
        let is_exact = page.identity == record.identity;
        let mut compared = ComparedCandidate {
            id: record.id.clone(),
            distance: candidate.distance,
            similarity: Some(if is_exact { 1.0 } else { candidate.estimate }),
            is_estimated: !is_exact,
            threshold: self.threshold,
            is_exact,
        };
        let mut evidence = Evidence {
            similarity: candidate.estimate,
            agreeing: 0,
            equal_bits: 0,
            differing_bits: 0,
            common_bits: 0.0,
            same_site: page.site == record.site,
            have_sites: page.site != 0 && record.site != 0,
            is_short: false,
        };
        let words = page.tokens.min(record.tokens);
        evidence.is_short = is_short(words, &evidence);
        let needed = |evidence: &Evidence, are_stories: bool, words: u32| {
            let is_tiny = evidence.same_site && words < TINY_ON_SITE;
            let same_site = (evidence.have_sites && !is_tiny).then_some(evidence.same_site);
            let least = self.decision.story_threshold(same_site, evidence.is_short);
            if are_stories && same_site == Some(false) { least * MORE_BETWEEN_SITES } else { least }
        };
        compared.threshold = needed(&evidence, evidence.have_sites, words);
        if is_exact {
            return Ok((true, compared));
        }
        if page.is_short || record.is_short {
            // It matches nothing but its copy.
            return Ok((false, compared));
        }
        // What pages in blocks are compared by, and at which threshold, is known when both are read.
        let is_hopeless = candidate.estimate + ESTIMATE_MARGIN < compared.threshold
            && !(page.host.is_some() && record.host.is_some());
        if is_read
            && !is_hopeless
            && let Some(text) = self.compared_text(record, worker)?
        {
            let both = shared(&asked.page.features, &text.features);
            evidence.similarity = jaccard(both, asked.page.features.len(), text.features.len());
            evidence.same_site = page.site == text.site;
            evidence.have_sites = page.site != 0 && text.site != 0;
            if let Some((left, right)) = asked.page.markup.as_ref().zip(text.markup.as_ref()) {
                let same_host = page.host == record.host && page.host != Some(NAMELESS);
                let is_like = same_host || markup_similarity(left, right) >= LIKE_MARKUP;
                // Pages of one host may share a frame, whatever their markup, and so may pages with like markup, whatever
                // their hosts. Others do not, even if nothing is known of their frames yet.
                evidence.same_site = is_like || evidence.have_sites && evidence.same_site;
                evidence.have_sites |= !is_like;
            }
            let words = page.tokens.min(text.tokens);
            evidence.is_short = is_short(words, &evidence);
            compared.similarity = Some(evidence.similarity);
            compared.is_estimated = false;
            compared.threshold = needed(&evidence, page.site != 0 && text.site != 0, words);
        }
        Ok((self.decision.reaches(evidence.similarity, compared.threshold), compared))
    }

    fn look_up_fingerprint(
        &self,
        incoming: &IncomingPage,
        pending: &PendingGroup,
        seen: &mut HashSet<String>,
        worker: &mut Worker,
        outcome: &mut CheckOutcome,
    ) -> Result<()> {
        let Some(fingerprint) = incoming.record.fingerprint else { return Ok(()) };
        let radius = if incoming.record.is_short { 0 } else { self.radius };
        let mut reader: IndexReader = self.index.reader();
        let QueryResult { count, matches } = reader.query(fingerprint, radius, MOST_COMPARED)?;
        let coming = pending.near(fingerprint, radius);
        outcome.candidates += count + coming.len() as u64;
        let asked = Asked { page: incoming, sketch: incoming.record.sketch() };
        let found = self.records_of(coming.into_iter().chain(matches), pending, seen, &asked, outcome)?;
        self.decide(&asked, found, worker, outcome)?;
        if outcome.of.is_empty() && count > MOST_COMPARED as u64 {
            let more = reader.query(fingerprint, radius, MOST_TRIED)?.matches.into_iter().skip(MOST_COMPARED);
            let found = self.records_of(more, pending, seen, &asked, outcome)?;
            self.decide(&asked, found, worker, outcome)?;
        }
        Ok(())
    }

    /// What is stored of rows near a fingerprint.
    fn records_of(
        &self,
        rows: impl Iterator<Item = RowMatch>,
        pending: &PendingGroup,
        seen: &mut HashSet<String>,
        asked: &Asked<'_>,
        outcome: &mut CheckOutcome,
    ) -> Result<Vec<Candidate>> {
        let mut found = Vec::new();
        for row in rows {
            let id = row.id.to_string();
            let record = match self.entry(&id, pending)? {
                Some(FoundEntry::Entry(entry)) => self.record(entry.number, pending)?,
                Some(FoundEntry::Whole(_, record)) => Some(*record),
                // It was removed a moment ago, or nothing but its fingerprint was ever stored.
                None if pending.pages.contains_key(&id) => continue,
                None => None,
            };
            // A row of what was replaced a moment ago.
            if record.as_ref().is_some_and(|record| record.fingerprint != Some(row.fingerprint)) {
                continue;
            }
            if !seen.insert(id.clone()) {
                continue;
            }
            let distance = Some(row.distance);
            match record {
                Some(record) => {
                    let estimate = similarity(&asked.sketch, &record.sketch());
                    found.push(Candidate { record, distance, estimate });
                }
                None => outcome.unconfirmed.push(ComparedCandidate {
                    id,
                    distance,
                    similarity: None,
                    is_estimated: true,
                    threshold: self.threshold,
                    is_exact: false,
                }),
            }
        }
        Ok(found)
    }

    /// What is known by an id.
    pub(super) fn entry(&self, id: &str, pending: &PendingGroup) -> Result<Option<FoundEntry>> {
        match pending.pages.get(id) {
            Some(entry) => Ok(entry.clone().map(FoundEntry::Entry)),
            None => self.store.entry(id),
        }
    }
}

/// Rows that come, by the key that they are found by.
pub(super) type PendingKeys = HashMap<u64, Vec<u32>>;

/// A row near a fingerprint, of those that come.
pub(super) fn near_rows(rows: &[(u64, Id)], fingerprint: u64, radius: u32) -> Vec<RowMatch> {
    let distances = rows.iter().map(|row| ((row.0 ^ fingerprint).count_ones(), row));
    let near = distances.filter(|(distance, _)| *distance <= radius);
    near.map(|(distance, (fingerprint, id))| RowMatch { id: id.clone(), distance, fingerprint: *fingerprint }).collect()
}
