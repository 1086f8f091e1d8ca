//! Pages of a result, read again from where they came from.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::page::{PageId, PageOrigin, RawPage, SourceId};
use crate::plan::{CorpusStats, Plan};
use crate::read::{Corpus, Source, Wanted, known_source};
use crate::report::stored::{StoredPages, StoredSummary};
use crate::sketcher::Sketcher;
use crate::text::frames::Frames;

/// The sources of a result, as far as some pages need them.
fn sources(stored: &StoredPages, summary: &StoredSummary, pages: &[PageId]) -> Result<HashMap<SourceId, Source>> {
    let files: HashMap<&str, _> = summary.files.iter().map(|file| (file.source.as_str(), file.format)).collect();
    let mut found = HashMap::new();
    for &page in pages {
        let place = stored.pages.place(page);
        if stored.pages.origin(page) == PageOrigin::IndexRow {
            let reason = format!("'{}' is a row of an index, which has no text to read", stored.pages.id(page)?);
            return Err(Error::conflict("in", reason));
        }
        if let std::collections::hash_map::Entry::Vacant(entry) = found.entry(place.source) {
            let display = &stored.sources[place.source.index()];
            let format = files.get(display.as_str()).copied().or(summary.config.read.format);
            entry.insert(known_source(display, display, format)?);
        }
    }
    Ok(found)
}

/// What `visit` makes of each of `pages`; it may be called from different threads.
///
/// # Errors
/// When a source is missing or has changed.
pub(crate) fn for_each<T: Send>(
    stored: &StoredPages,
    summary: &StoredSummary,
    pages: &[PageId],
    visit: impl Fn(&RawPage<'_>) -> T + Sync,
) -> Result<HashMap<PageId, T>> {
    let mut needed: Vec<PageId> = pages.iter().map(|&page| stored.pages.with_text(page)).collect();
    needed.sort_unstable();
    needed.dedup();
    let by_number = sources(stored, summary, &needed)?;
    // Sources are numbered anew: only those that are needed are there.
    let mut numbers: Vec<SourceId> = by_number.keys().copied().collect();
    numbers.sort_unstable();
    let list: Vec<Source> = numbers.iter().map(|number| by_number[number].clone()).collect();
    let mut wanted = stored.pages.wanted(&needed);
    for record in &mut wanted.0 {
        let place = numbers.binary_search(&record.source).expect("the sources are those of the pages that are needed");
        record.source = SourceId::from_index(place);
    }
    let corpus = summary.config.corpus(list);
    let plan = plan(summary, stored.frames.clone());
    let mut read: HashMap<PageId, T> = HashMap::new();
    let tokens = |page: PageId| stored.pages.tokens[page];
    read_again(
        &corpus,
        &plan,
        &wanted,
        &tokens,
        || (),
        |(), _, raw| visit(raw),
        |page, visited| {
            read.insert(page, visited);
            Ok(())
        },
    )?;
    Ok(read)
}

/// The plan of a result, with what it learnt.
pub(crate) fn plan(summary: &StoredSummary, frames: Option<Arc<Frames>>) -> Plan {
    let stats = frames.map(|frames| CorpusStats { frames: Some(frames), ..CorpusStats::default() });
    summary.config.plan_with(stats.map(Arc::new))
}

/// Reads the `wanted` records again, and hands on what `visit` makes of each; that may be called from different
/// threads, each with a state of its own.
///
/// # Errors
/// When a source is missing, or a page has not as many tokens as it had.
pub(crate) fn read_again<S: Send, T: Send>(
    corpus: &Corpus,
    plan: &Plan,
    wanted: &Wanted,
    tokens: &(impl Fn(PageId) -> u32 + Sync),
    state: impl Fn() -> S + Sync,
    visit: impl Fn(&mut S, PageId, &RawPage<'_>) -> T + Sync,
    mut emit: impl FnMut(PageId, T) -> Result<()>,
) -> Result<()> {
    let mut is_read: HashSet<PageId> = HashSet::with_capacity(wanted.0.len());
    corpus.scan().for_each_of(
        wanted,
        || (Sketcher::of_plan(plan), state()),
        |(sketcher, state), page, raw| {
            let is_same = sketcher.read(&raw).tokens == tokens(page);
            Ok(is_same.then(|| (page, visit(state, page, &raw))))
        },
        |(page, visited)| {
            is_read.insert(page);
            emit(page, visited)?;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    match wanted.0.iter().find(|record| !is_read.contains(&record.page)) {
        Some(missing) => {
            let source_name = corpus.source(missing.source).display.clone();
            Err(Error::InputChanged { source_name, record: missing.record })
        }
        None => Ok(()),
    }
}

/// Pages of a result by their numbers, whole.
///
/// # Errors
/// As [`for_each`].
pub(crate) fn load(
    stored: &StoredPages,
    summary: &StoredSummary,
    pages: &[PageId],
) -> Result<HashMap<PageId, RawPage<'static>>> {
    let read = for_each(stored, summary, pages, |raw| raw.clone().into_owned())?;
    let text_of = |page: PageId| read[&stored.pages.with_text(page)].clone();
    Ok(pages.iter().map(|&page| (page, text_of(page))).collect())
}
