//! What comes in and what goes out: a page that was read, and what the lookup found.

use crate::index::StoredPage;
use crate::page::RawPage;
use crate::sketch::min_bytes::similarity;

/// What a page is to those that are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageVerdict {
    /// Like nothing that is stored.
    New,
    /// Like a page that is stored.
    Near,
    /// The same words in the same order as a page that is stored.
    Exact,
}

/// Whether a page is long enough to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageLength {
    /// Enough.
    Enough,
    /// Too short to be like anything but its copy.
    Short,
    /// No words: like no page, not even another empty one.
    Empty,
}

/// A stored page that was compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedCandidate {
    /// Its id.
    pub id: String,
    /// Differing bits of the fingerprints.
    pub distance: u32,
    /// Estimated similarity, 1 for a copy; `None` where no sketch is stored.
    pub similarity: Option<f64>,
    /// Whether the words are the same.
    pub is_exact: bool,
}

/// What is known of a page after it was looked up.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckOutcome {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// What it is to those that are stored.
    pub verdict: PageVerdict,
    /// The stored pages that it is like, the most similar first.
    pub of: Vec<ComparedCandidate>,
    /// Candidates that are not like it after all.
    pub rejected: Vec<ComparedCandidate>,
    /// Candidates of which nothing but the fingerprint is known; they do not count.
    pub unconfirmed: Vec<ComparedCandidate>,
    /// How many candidates there are; at most 64 are compared, and 4,096 if none of those is confirmed.
    pub candidates: u64,
    /// Whether it is stored now, and was not before this call.
    pub stored: bool,
    /// Whether it took the place of a page with the same id.
    pub replaced: bool,
    /// Its tokens.
    pub tokens: u32,
    /// Its fingerprint; `None` where it is empty.
    pub fingerprint: Option<u64>,
    /// Whether it is long enough to be compared.
    pub length: PageLength,
}

/// A page that was read.
#[derive(Debug, Clone)]
pub(super) struct IncomingPage {
    pub(super) id: Option<String>,
    pub(super) page: StoredPage,
}

impl IncomingPage {
    pub(super) fn new(page: &RawPage<'_>, read: StoredPage) -> IncomingPage {
        // A URL is a name for a page that has no other.
        IncomingPage { id: page.id.as_deref().or(page.url.as_deref()).map(str::to_owned), page: read }
    }

    /// The outcome before anything was found.
    pub(super) fn outcome(&self) -> CheckOutcome {
        let length = match self.page.fingerprint {
            None => PageLength::Empty,
            Some(_) if self.page.is_short => PageLength::Short,
            Some(_) => PageLength::Enough,
        };
        CheckOutcome {
            id: self.id.clone(),
            verdict: PageVerdict::New,
            of: Vec::new(),
            rejected: Vec::new(),
            unconfirmed: Vec::new(),
            candidates: 0,
            stored: false,
            replaced: false,
            tokens: self.page.tokens,
            fingerprint: self.page.fingerprint,
            length,
        }
    }

    /// Compares it with what is stored of the page with an id.
    pub(super) fn compare(&self, id: &str, distance: u32, stored: Option<&StoredPage>) -> ComparedCandidate {
        let is_exact = stored.is_some_and(|stored| stored.identity == self.page.identity);
        let estimate = |stored: &StoredPage| if is_exact { 1.0 } else { similarity(&self.page.sketch, &stored.sketch) };
        ComparedCandidate { id: id.to_owned(), distance, similarity: stored.map(estimate), is_exact }
    }
}
