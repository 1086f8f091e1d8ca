//! Pages of a result, read again from where they came from.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::page::{PageId, PageOrigin, RawPage, SourceId};
use crate::plan::CorpusStats;
use crate::read::{Source, known_source};
use crate::report::stored::{StoredPages, StoredSummary};
use crate::sketcher::Sketcher;

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
    let corpus = summary.config.corpus(list);
    let mut wanted = stored.pages.wanted(&needed);
    for record in &mut wanted.0 {
        let place = numbers.binary_search(&record.source).expect("the sources are those of the pages that are needed");
        record.source = SourceId::from_index(place);
    }
    let stats = stored.frames.clone().map(|frames| CorpusStats { frames: Some(frames), ..CorpusStats::default() });
    let plan = summary.config.plan_with(stats.map(Arc::new));
    let mut read: HashMap<PageId, T> = HashMap::new();
    corpus.scan().for_each_of(
        &wanted,
        || Sketcher::of_plan(&plan),
        |sketcher, page, raw| {
            let is_same = sketcher.read(&raw).tokens == stored.pages.tokens[page];
            Ok(is_same.then(|| (page, visit(&raw))))
        },
        |(page, visited)| {
            read.insert(page, visited);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    if let Some(&missing) = needed.iter().find(|page| !read.contains_key(page)) {
        let place = stored.pages.place(missing);
        let source_name = stored.sources[place.source.index()].clone();
        return Err(Error::InputChanged { source_name, record: place.record });
    }
    Ok(read)
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
