//! What is said about a page.

use lookalike::online::{CheckOutcome, ComparedCandidate, PageLength, PageVerdict};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::collections::Collection;
use crate::pages::raw;

/// Stored pages that one list of a response names at most.
const MOST_NAMED: usize = 10;

/// What is known about a page
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageResponse {
    /// Its id, if it was given one or is stored
    id: Option<String>,
    verdict: VerdictName,
    /// The stored pages it is like, at most ten, most similar first
    of: Vec<NearPage>,
    /// Whether this call stored it
    stored: bool,
    /// Whether it replaced a page with the same id
    replaced: bool,
    crawl: CrawlAdvice,
    length: LengthName,
    /// Stored pages with a near fingerprint that have no stored sketch to confirm the match
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    unconfirmed: Vec<NearPage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    explanation: Option<Explanation>,
}

impl PageResponse {
    pub(crate) fn new(outcome: CheckOutcome, collection: &Collection, is_explained: bool) -> PageResponse {
        let explanation = is_explained.then(|| Explanation::new(&outcome, collection));
        let mut of = near_pages(outcome.of);
        if is_explained {
            add_metadata(&mut of, collection);
        }
        PageResponse {
            id: outcome.id,
            verdict: outcome.verdict.into(),
            of,
            stored: outcome.stored,
            replaced: outcome.replaced,
            crawl: outcome.verdict.into(),
            length: outcome.length.into(),
            unconfirmed: near_pages(outcome.unconfirmed),
            explanation,
        }
    }
}

/// New, or near or identical to stored pages
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum VerdictName {
    New,
    Near,
    Exact,
}

impl From<PageVerdict> for VerdictName {
    fn from(verdict: PageVerdict) -> VerdictName {
        match verdict {
            PageVerdict::New => VerdictName::New,
            PageVerdict::Near => VerdictName::Near,
            PageVerdict::Exact => VerdictName::Exact,
        }
    }
}

/// What a crawler does with the page: both if it is new; neither if it is a near-duplicate or an exact copy, whose
/// links probably lead to near-duplicates of pages that the stored page links to (Manku et al. 2007, §1)
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct CrawlAdvice {
    /// Whether its links are worth following
    follow_links: bool,
    /// Whether it is worth storing
    store: bool,
}

impl From<PageVerdict> for CrawlAdvice {
    fn from(verdict: PageVerdict) -> CrawlAdvice {
        let is_new = verdict == PageVerdict::New;
        CrawlAdvice { follow_links: is_new, store: is_new }
    }
}

/// Whether a page has enough words to be compared: a short one matches only its exact copies, an empty one nothing
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LengthName {
    Enough,
    Short,
    Empty,
}

impl From<PageLength> for LengthName {
    fn from(length: PageLength) -> LengthName {
        match length {
            PageLength::Enough => LengthName::Enough,
            PageLength::Short => LengthName::Short,
            PageLength::Empty => LengthName::Empty,
        }
    }
}

/// A stored page that was compared
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NearPage {
    id: String,
    /// Differing bits of the fingerprints
    #[schema(minimum = 0, maximum = 64)]
    distance: u32,
    /// Estimated share of runs of five words in common; 1 for the same words in the same order; null if no sketch is stored
    #[schema(minimum = 0, maximum = 1)]
    similarity: Option<f64>,
    /// What was stored with it, with explain=true
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, required = false, nullable = false)]
    metadata: Option<Box<RawValue>>,
}

fn near_pages(compared: Vec<ComparedCandidate>) -> Vec<NearPage> {
    let named = compared.into_iter().take(MOST_NAMED);
    let near = |near: ComparedCandidate| {
        let ComparedCandidate { id, distance, similarity, .. } = near;
        NearPage { id, distance, similarity, metadata: None }
    };
    named.map(near).collect()
}

/// Adds what was stored with the pages; one that is gone in the meantime has nothing.
fn add_metadata(pages: &mut [NearPage], collection: &Collection) {
    for page in pages {
        page.metadata = raw(collection.online.get(&page.id).ok().flatten().and_then(|stored| stored.metadata));
    }
}

/// The reason for a verdict
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Explanation {
    /// In words
    why: String,
    /// The fingerprint, 16 hex digits
    fingerprint: Option<String>,
    tokens: u32,
    /// Differing bits up to which stored pages are candidates
    radius: u32,
    /// Estimated similarity from which a candidate is a near-duplicate
    threshold: f64,
    /// Number of candidates
    candidates: u64,
    /// Number of candidates that were compared, nearest first
    compared: usize,
    /// Candidates that the comparison rejected
    rejected: Vec<NearPage>,
}

impl Explanation {
    fn new(outcome: &CheckOutcome, collection: &Collection) -> Explanation {
        let config = collection.online.config();
        let (radius, threshold) = (config.radius, config.threshold);
        Explanation {
            why: why(outcome, radius, threshold),
            fingerprint: outcome.fingerprint.map(hex),
            tokens: outcome.tokens,
            radius,
            threshold,
            candidates: outcome.candidates,
            compared: outcome.of.len() + outcome.rejected.len(),
            rejected: near_pages(outcome.rejected.clone()),
        }
    }
}

fn why(outcome: &CheckOutcome, radius: u32, threshold: f64) -> String {
    match (outcome.verdict, outcome.of.first(), outcome.length) {
        (_, _, PageLength::Empty) => "It has no words, so it matches nothing.".to_owned(),
        (PageVerdict::Exact, Some(of), _) => format!("It has the same words in the same order as {}.", of.id),
        (PageVerdict::Near, Some(of), _) => format!(
            "Its fingerprint differs from that of {} in {} of 64 bits ({radius} are allowed), and the stored sketch confirms the match: about {:.2} of their runs of five words are common ({threshold} are needed).",
            of.id,
            of.distance,
            of.similarity.expect("nothing is near that no sketch has confirmed")
        ),
        (_, _, PageLength::Short) => {
            "It is too short to match anything but an exact copy, and no copy is stored.".to_owned()
        }
        _ if outcome.candidates == 0 => format!("No stored fingerprint is within {radius} bits of its own."),
        _ => match outcome.rejected.len() {
            0 => "Stored fingerprints are near, but those pages have no stored sketch to confirm a match.".to_owned(),
            1 => format!(
                "1 stored fingerprint is within {radius} bits, but the sketch rejects it: fewer than {threshold} of the runs of five words are common."
            ),
            rejected => format!(
                "{rejected} stored fingerprints are within {radius} bits, but the sketches reject them: fewer than {threshold} of the runs of five words are common."
            ),
        },
    }
}

/// A fingerprint as clients see it.
pub(crate) fn hex(fingerprint: u64) -> String {
    format!("{fingerprint:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_pages_are_followed_and_stored() {
        for (verdict, expected) in [(PageVerdict::New, true), (PageVerdict::Near, false), (PageVerdict::Exact, false)] {
            assert_eq!(CrawlAdvice::from(verdict), CrawlAdvice { follow_links: expected, store: expected });
        }
    }
}
