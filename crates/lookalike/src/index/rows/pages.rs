//! Pages → fingerprints, for an index.

use std::ops::ControlFlow;
use std::path::Path;

use crate::config::Config;
use crate::error::{Result, SkippedRecord};
use crate::feature::shingle::shingles;
use crate::index::rows::StoredPage;
use crate::index::segment::ids::Id;
use crate::observe::{Observer, Stage};
use crate::page::RawPage;
use crate::read::{Corpus, Scanned, discover};
use crate::sketch::min_bytes::{MinBytes, PARTS, min_bytes};
use crate::sketcher::Sketcher;

/// What was read.
#[derive(Debug, Default)]
pub struct FingerprintedPages {
    /// Pages with a fingerprint.
    pub pages: u64,
    /// Pages that are empty, or too short to have one.
    pub without: u64,
    /// Records that could not be used.
    pub skipped: u64,
    /// Some of those.
    pub examples: Vec<SkippedRecord>,
}

/// Examples that are kept.
const MOST_EXAMPLES: usize = 5;

/// The fingerprint of one page; `None` where it is empty or too short.
#[must_use]
pub fn fingerprint(page: &RawPage<'_>, sketcher: &mut Sketcher) -> Option<u64> {
    let tokens = sketcher.read(page).tokens;
    fingerprint_of_read(tokens, sketcher)
}

fn fingerprint_of_read(tokens: u32, sketcher: &mut Sketcher) -> Option<u64> {
    if !sketcher.plan().is_long_enough(tokens) || sketcher.sequence().is_empty() {
        return None;
    }
    let mut columns = Vec::new();
    sketcher.columns(&mut columns);
    columns.first().copied()
}

/// Words in a run by which a service confirms what fingerprints say: other features than those of the fingerprint, in
/// which the order of words counts, and how often they are repeated does not.
pub(crate) const CONFIRMING_WORDS: usize = 5;

/// What an online index keeps of a page.
#[must_use]
pub fn stored_page(page: &RawPage<'_>, sketcher: &mut Sketcher) -> StoredPage {
    let read = page_without_sketch(page, sketcher);
    StoredPage { sketch: sketch_of_read(sketcher), ..read }
}

/// The sketch that confirms candidates of the page that was read last.
pub(crate) fn sketch_of_read(sketcher: &Sketcher) -> MinBytes {
    let mut runs = Vec::with_capacity(sketcher.tokens().len());
    shingles(sketcher.tokens(), CONFIRMING_WORDS, &mut runs);
    min_bytes(&runs)
}

/// What an online index keeps of a page, without the sketch that confirms candidates: if there are none, nobody needs it.
/// A page that is too short has half of the hash of its words for a fingerprint, so that its copies are found.
pub(crate) fn page_without_sketch(page: &RawPage<'_>, sketcher: &mut Sketcher) -> StoredPage {
    let facts = sketcher.read(page);
    let (tokens, identity, title) = (facts.tokens, facts.identity, facts.title.map(str::to_owned));
    let fingerprint = fingerprint_of_read(tokens, sketcher);
    #[allow(clippy::cast_possible_truncation)] // half of a hash is a hash
    let short = identity as u64;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    StoredPage {
        fingerprint: fingerprint.or((tokens > 0).then_some(short)),
        identity,
        tokens,
        is_short: fingerprint.is_none(),
        sketch: [0; PARTS],
        url: page.url.as_deref().map(str::to_owned),
        title,
        // A clock before 1970 is not worth an error.
        stored_at: now.map_or(0, |now| now.as_secs()),
        expires_at: None,
        metadata: None,
        has_text: false,
    }
}

/// Reads pages and visits each one that has a fingerprint, with its id and what else is kept of it, in the order of the
/// input.
///
/// # Errors
/// When the input cannot be read; bad records are counted.
pub fn for_each(
    config: &Config,
    inputs: &[String],
    threads: usize,
    index: &Path,
    observer: &dyn Observer,
    visit: &mut dyn FnMut(&Id, u64, StoredPage) -> Result<()>,
) -> Result<FingerprintedPages> {
    let corpus = Corpus::new(discover(inputs, &config.read, index, None)?, &config.read);
    let plan = config.plan();
    let mut done = FingerprintedPages::default();
    for problem in &corpus.problems {
        observer.skipped(problem);
    }
    observer.start(Stage::Read, corpus.bytes());
    let scan = corpus.scan().threads(threads).observed_by(observer).without_revisits();
    let Scanned { skipped, examples, .. } = scan.for_each(
        || Sketcher::of_plan(&plan),
        |sketcher, page| Ok(Some((Id::Text(corpus.id_of(&page).into()), stored_page(&page, sketcher)))),
        |(id, page)| {
            match page.fingerprint.filter(|_| !page.is_short) {
                Some(fingerprint) => {
                    done.pages += 1;
                    visit(&id, fingerprint, page)?;
                }
                None => done.without += 1,
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    observer.finish(Stage::Read);
    done.skipped = corpus.problems.len() as u64 + skipped;
    let more = MOST_EXAMPLES.saturating_sub(corpus.problems.len());
    done.examples = corpus.problems.iter().cloned().chain(examples.into_iter().take(more)).collect();
    if done.pages + done.without == 0 {
        return Err(corpus.no_pages(inputs, &done.examples));
    }
    Ok(done)
}
