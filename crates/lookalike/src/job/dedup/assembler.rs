//! Batches → the table of pages, in order.

use std::collections::{BTreeMap, HashMap};

use xxhash_rust::xxh3::xxh3_128;

use crate::error::{Result, SkipKind, SkippedRecord};
use crate::job::dedup::Run;
use crate::job::dedup::against::IndexMatch;
use crate::job::dedup::first_reading::Sketched;
use crate::job::dedup::likely::LikelySets;
use crate::job::dedup::limits::{SKETCHES_SHARE, TABLE_SHARE};
use crate::job::dedup::sketched_batch::SketchedBatch;
use crate::page::{PageId, PageOrigin, SourceId};
use crate::page_table::{NewPage, PageStrings, PageTable};
use crate::plan::ColumnLayout;
use crate::read::{Captures, Corpus};
use crate::report::skipped::SkippedLog;
use crate::sketch::page_sets::PageSets;
use crate::sketcher::NO_KEY;
use crate::spill::Spill;

/// Adds batches to the table, in order.
pub(super) struct Assembler<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) corpus: &'a Corpus,
    pub(super) skipped: &'a mut SkippedLog,
    pub(super) captures: Captures,
    /// A source that is read in stretches, and the records of the stretches before this one.
    pub(super) base: (SourceId, u64),
    pub(super) sketched: Sketched,
    /// Pages that are near a row of an index: its id, and the distance.
    pub(super) near_rows: Vec<(PageId, String, u32)>,
    /// What likely candidates are compared by.
    pub(super) likely: Option<LikelySets>,
}

impl Assembler<'_> {
    pub(super) fn append(&mut self, mut batch: SketchedBatch) -> Result<()> {
        let base = |source: SourceId| if self.base.0 == source { self.base.1 } else { 0 };
        for record in &mut batch.skipped {
            let display = &self.corpus.source(self.base.0).display;
            if record.source == *display {
                record.record = record.record.map(|number| number + self.base.1);
            }
            self.run.observer.skipped(record);
            self.skipped.add(record)?;
        }
        let table = &mut self.sketched;
        let start = table.pages.len();
        table.featureless.extend(batch.featureless.iter().map(|row| row.from_start(start)));
        let near_rows = batch.near_rows.drain(..);
        self.near_rows.extend(near_rows.map(|(row, id, distance)| (row.from_start(start), id, distance)));
        let captured = batch.captures.iter().map(|(row, capture)| (row.from_start(start), capture.captured()));
        table.pages.captured.extend(captured);
        self.captures.extend(batch.captures.iter().map(|&(row, capture)| (row.from_start(start), capture)));
        add_counts(&mut table.other_records, &batch.other_records);
        add_counts(&mut table.scopes, &batch.scopes);
        if let Some(unread) = batch.unread_ranks.take() {
            match &mut table.unread_ranks {
                Some(known) => known.pages += unread.pages,
                none => *none = Some(unread),
            }
        }
        let mut strings = batch.strings.as_str();
        let mut take = |bytes: usize| {
            let (text, rest) = strings.split_at(bytes);
            strings = rest;
            text
        };
        for row in &batch.rows {
            let record = row.record + base(row.source);
            let numbered;
            let id = match row.id_bytes {
                Some(bytes) => take(bytes),
                None => {
                    numbered = format!("{}:{record}", self.corpus.source(row.source).name);
                    &numbered
                }
            };
            let url = row.url_bytes.map(&mut take);
            let title = row.title_bytes.map(&mut take);
            table.pages.push(&NewPage {
                origin: self.corpus.source(row.source).origin,
                source: row.source,
                record,
                offset: row.offset,
                length: row.length,
                tokens: row.tokens,
                identity: Some(row.identity),
                text_hash: row.text_hash,
                scope: row.scope,
                rank_key: row.rank_key,
                strings: PageStrings { id, url, title },
            })?;
        }
        let pages = table.pages.len() as u64;
        let limit = self.run.spill_limit(pages, SKETCHES_SHARE) / table.columns.len().max(1);
        for (column, values) in table.columns.iter_mut().zip(&batch.columns) {
            column.lower_limit(limit);
            column.append(values)?;
        }
        table.pages.lower_limit(self.run.spill_limit(pages, TABLE_SHARE));
        if let (Some(sets), Some(more)) = (&mut table.sets, &batch.sets) {
            sets.lower_limit(self.run.feature_bytes(pages));
            sets.append(more, start)?;
        }
        if let Some(likely) = &mut self.likely
            && !likely.append(&batch.likely, start, self.run.likely_bytes(pages))?
        {
            self.likely = None;
        }
        self.run.check_floor(pages)
    }

    /// Makes room for the bands of stories. What came before has none.
    pub(super) fn widen(&mut self, narrow: ColumnLayout, wide: ColumnLayout) -> Result<()> {
        let table = &mut self.sketched;
        if table.columns.is_empty() {
            return Ok(());
        }
        let zeros = vec![NO_KEY; table.pages.len()];
        let limit = self.run.spill_limit(table.pages.len() as u64, SKETCHES_SHARE) / wide.columns();
        for at in narrow.bands..narrow.bands + wide.story_bands - narrow.story_bands {
            let mut column = Spill::new(self.run.work.path().join(format!("story-column-{at}")), limit);
            column.append(&zeros)?;
            table.columns.insert(at, column);
        }
        Ok(())
    }

    /// Gives the rows of an index that pages are near to a place behind all pages.
    fn add_index_rows(&mut self) -> Result<()> {
        if self.near_rows.is_empty() {
            return Ok(());
        }
        let source = SourceId::from_index(self.corpus.sources.len());
        let table = &mut self.sketched;
        let mut places: HashMap<String, PageId> = HashMap::new();
        for (page, id, distance) in std::mem::take(&mut self.near_rows) {
            let row = match places.get(&id) {
                Some(&row) => row,
                None => {
                    let row = PageId::from_index(table.pages.len());
                    table.pages.push(&NewPage {
                        origin: PageOrigin::IndexRow,
                        source,
                        record: places.len() as u64 + 1,
                        offset: None,
                        length: 0,
                        // Neither empty nor short: nothing is known of its text.
                        tokens: self.run.config.pairs.min_tokens.max(1),
                        identity: Some(xxh3_128(format!("row {id}").as_bytes())),
                        text_hash: 0,
                        scope: None,
                        rank_key: (!table.pages.rank_keys.is_empty()).then_some(0.0),
                        strings: PageStrings { id: &id, url: None, title: None },
                    })?;
                    for column in &mut table.columns {
                        column.append(&[0])?;
                    }
                    table.featureless.push(row);
                    places.insert(id, row);
                    row
                }
            };
            table.index_matches.push(IndexMatch { page, row, distance });
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Sketched> {
        self.add_index_rows()?;
        let table = &mut self.sketched;
        table.likely = self.likely.take().map(LikelySets::into_sets);
        table.pages.finish()?;
        table.columns.iter_mut().try_for_each(Spill::finish)?;
        table.sets.iter_mut().try_for_each(PageSets::finish)?;
        for (page, original) in self.captures.resolve() {
            table.pages.set_revisit(page, original);
        }
        for (page, _) in table.pages.revisits().filter(|(_, original)| original.is_none()) {
            let record = lost_revisit(self.corpus, &table.pages, page);
            self.run.observer.skipped(&record);
            self.skipped.add(&record)?;
        }
        Ok(self.sketched)
    }
}

fn add_counts(all: &mut BTreeMap<String, u64>, some: &BTreeMap<String, u64>) {
    for (name, count) in some {
        *all.entry(name.clone()).or_default() += count;
    }
}

/// A revisit of something that is not in the input.
fn lost_revisit(corpus: &Corpus, pages: &PageTable, page: PageId) -> SkippedRecord {
    let place = pages.place(page);
    SkippedRecord {
        kind: SkipKind::Revisit,
        source: corpus.source(place.source).display.clone(),
        record: Some(place.record),
        byte: place.offset,
        reason: "says that a page was the same as in another capture, which is not among the pages of the input"
            .to_owned(),
        first_bytes: pages.id(page).unwrap_or_default(),
    }
}
