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
    /// Differing bits of the fingerprints; null in a collection that is not searched by fingerprints
    #[schema(minimum = 0, maximum = 64)]
    distance: Option<u32>,
    /// Share of runs of words in common; 1 if what is compared is the same; null if nothing is stored to tell it from
    #[schema(minimum = 0, maximum = 1)]
    similarity: Option<f64>,
    /// The similarity from which these two are near-duplicates
    #[schema(minimum = 0, maximum = 1)]
    threshold: f64,
    /// Whether the similarity is estimated from sketches, because no text is stored
    estimated: bool,
    /// What was stored with it, with explain=true
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, required = false, nullable = false)]
    metadata: Option<Box<RawValue>>,
}

fn near_pages(compared: Vec<ComparedCandidate>) -> Vec<NearPage> {
    let named = compared.into_iter().take(MOST_NAMED);
    let near = |near: ComparedCandidate| {
        let ComparedCandidate { id, distance, similarity, threshold, is_estimated, .. } = near;
        NearPage { id, distance, similarity, threshold, estimated: is_estimated, metadata: None }
    };
    named.map(near).collect()
}

/// Adds what was stored with the pages; one that is gone in the meantime has nothing.
fn add_metadata(pages: &mut [NearPage], collection: &Collection) {
    for page in pages {
        page.metadata = raw(collection.online().get(&page.id).ok().flatten().and_then(|stored| stored.metadata));
    }
}

/// The reason for a verdict
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Explanation {
    /// In words
    why: String,
    /// The fingerprint, 16 hex digits; null in a collection that is not searched by fingerprints
    fingerprint: Option<String>,
    /// Words that were compared
    tokens: u32,
    /// Whether what the site puts around its texts is known, and was left out
    without_frame: bool,
    /// Differing bits up to which stored pages are candidates; null in a collection that is not searched by fingerprints
    radius: Option<u32>,
    /// Similarity from which texts are near-duplicates; where frames are left out, each compared page has its own
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
        let online = collection.online();
        let config = online.config();
        let radius = (!config.has_bands()).then_some(config.radius);
        Explanation {
            why: why(outcome, radius),
            fingerprint: outcome.fingerprint.map(hex),
            tokens: outcome.tokens,
            without_frame: outcome.has_story,
            radius,
            threshold: config.threshold,
            candidates: outcome.candidates,
            compared: outcome.of.len() + outcome.rejected.len(),
            rejected: near_pages(outcome.rejected.clone()),
        }
    }
}

/// A verdict in words; `radius` is that of a collection of fingerprints.
fn why(outcome: &CheckOutcome, radius: Option<u32>) -> String {
    match (outcome.verdict, outcome.of.first(), outcome.length) {
        (_, _, PageLength::Empty) => "It has no words, so it matches nothing.".to_owned(),
        (PageVerdict::Exact, Some(of), _) => format!("It has the same words in the same order as {}.", of.id),
        (PageVerdict::Near, Some(of), _) => {
            let found = match of.distance.zip(radius) {
                Some((bits, radius)) => format!(
                    "Its fingerprint differs from that of {} in {bits} of 64 bits ({radius} are allowed). ",
                    of.id
                ),
                None => String::new(),
            };
            let similarity = of.similarity.unwrap_or_default();
            let share = if of.is_estimated { format!("About {similarity:.2}") } else { format!("{similarity:.2}") };
            let (id, threshold) = (&of.id, of.threshold);
            let how = if of.is_estimated { ", estimated from their sketches" } else { "" };
            format!(
                "{found}{share} of all runs of words in it and in {id} are in both{how} ({threshold:.2} are needed)."
            )
        }
        (_, _, PageLength::Short) => {
            "It is too short to match anything but an exact copy, and no copy is stored.".to_owned()
        }
        _ => {
            let candidates = match radius {
                Some(radius) => format!("stored fingerprint is within {radius} bits of its own"),
                None => "stored page shares enough of its runs of words to be a candidate".to_owned(),
            };
            match outcome.rejected.first() {
                None if outcome.candidates == 0 => format!("No {candidates}."),
                None => "Stored fingerprints are near, but nothing else is stored of those pages to confirm a match."
                    .to_owned(),
                Some(best) => format!(
                    "The best of {} candidates, {}, has a similarity of {:.2} ({:.2} are needed).",
                    outcome.candidates,
                    best.id,
                    best.similarity.unwrap_or_default(),
                    best.threshold
                ),
            }
        }
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
