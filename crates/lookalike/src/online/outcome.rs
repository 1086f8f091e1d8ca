//! What goes out: what the lookup of a page found.

/// What a page is to those that are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageVerdict {
    /// Like nothing that is stored.
    New,
    /// Like a page that is stored.
    Near,
    /// What is compared of it is the same, word for word, as of a page that is stored.
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
    /// Differing bits of the fingerprints, where pages have them.
    pub distance: Option<u32>,
    /// Similarity, 1 for a copy; `None` where nothing is stored that it could be told from.
    pub similarity: Option<f64>,
    /// Whether the similarity is estimated from sketches, and not exact.
    pub is_estimated: bool,
    /// The similarity from which on they are near-duplicates.
    pub threshold: f64,
    /// Whether what is compared is the same.
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
    /// How many candidates there are; only the best of a crowd are compared.
    pub candidates: u64,
    /// Whether it is stored now, and was not before this call.
    pub stored: bool,
    /// Whether it took the place of a page with the same id.
    pub replaced: bool,
    /// Its tokens.
    pub tokens: u32,
    /// Its fingerprint, where pages have them and it is not empty.
    pub fingerprint: Option<u64>,
    /// Whether it is long enough to be compared.
    pub length: PageLength,
    /// Whether it was compared without the frame of its site, which is known.
    pub has_story: bool,
}

impl CheckOutcome {
    /// Puts what was found in its order, and decides.
    pub(super) fn decide(&mut self) {
        let similarity = |compared: &ComparedCandidate| compared.similarity.unwrap_or(0.0);
        self.of.sort_by(|a, b| {
            let nearer = b.is_exact.cmp(&a.is_exact).then(similarity(b).total_cmp(&similarity(a)));
            nearer.then(a.distance.cmp(&b.distance)).then_with(|| a.id.cmp(&b.id))
        });
        self.of.dedup_by(|a, b| a.id == b.id);
        self.verdict = match self.of.first() {
            Some(first) if first.is_exact => PageVerdict::Exact,
            Some(_) => PageVerdict::Near,
            None => PageVerdict::New,
        };
    }
}
