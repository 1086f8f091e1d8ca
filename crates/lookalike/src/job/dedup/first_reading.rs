//! The first reading: every page once, for its identity, its tokens, its sketch and its strings.
//!
//! Several units of the input are read side by side. What comes before its turn waits in a file; what
//! is done stays in files until the run is, so that a killed run can go on.

use std::collections::{BTreeMap, HashMap};

use xxhash_rust::xxh3::xxh3_128;

use crate::error::{Result, SkipKind, SkippedRecord};
use crate::index::Index;
use crate::job::dedup::Run;
use crate::job::dedup::against::{Against, IndexMatch};
use crate::job::dedup::checkpoint::Checkpoints;
use crate::job::dedup::sketched_batch::SketchedBatch;
use crate::page::{PageId, PageOrigin, SourceId};
use crate::page_table::{NewPage, PageStrings, PageTable};
use crate::parallel::Event;
use crate::read::{Captures, Corpus, NotAPage, Unit, UnitEnd};
use crate::report::files;
use crate::report::skipped::{Skipped, SkippedLog};
use crate::sketch::page_sets::PageSets;
use crate::sketcher::Sketcher;
use crate::spill::Spill;

/// What the first reading gives.
pub(super) struct Sketched {
    pub(super) pages: PageTable,
    /// The columns that candidates are found by, each with a number for every page.
    pub(super) columns: Vec<Spill<u64>>,
    /// The features of all pages, where candidates are found by them.
    pub(super) sets: Option<PageSets>,
    /// Pages that are long enough and have no feature all the same, ascending.
    pub(super) featureless: Vec<PageId>,
    /// Records that are not pages, by what they are.
    pub(super) other_records: BTreeMap<String, u64>,
    /// Pages of HTML by the part of them that is compared.
    pub(super) scopes: BTreeMap<String, u64>,
    /// Pages that are near a row of an index.
    pub(super) index_matches: Vec<IndexMatch>,
    /// Pages that got another id because theirs was taken.
    pub(super) repeated_ids: u64,
    /// What pages of another corpus are called there.
    pub(super) against_names: HashMap<PageId, String>,
    /// Records that could not be used.
    pub(super) skipped: Skipped,
}

impl Sketched {
    /// Whether any column is on disk.
    pub(super) fn is_spilled(&self) -> bool {
        self.columns.iter().any(Spill::is_spilled)
    }

    /// Frees what only the search and the comparison need.
    pub(super) fn free_sketches(&mut self) {
        self.columns.clear();
        self.sets = None;
    }
}

impl Run<'_> {
    /// Reads every page once, and names it.
    pub(super) fn read(&self, corpus: &Corpus) -> Result<Sketched> {
        let mut skipped = SkippedLog::create(&self.work.path().join(files::SKIPPED), self.options.strict)?;
        for problem in &corpus.problems {
            self.observer.skipped(problem);
            skipped.add(problem)?;
        }
        let mut sketched = self.sketch_pages(corpus, &mut skipped)?;
        sketched.skipped = skipped.finish()?;
        if sketched.pages.page_count() == 0 {
            return Err(corpus.no_pages(&self.options.inputs, &sketched.skipped.examples));
        }
        self.check_policy(&sketched.pages)?;
        if let Some(against) = self.against {
            sketched.against_names = against.name_pages(corpus, &mut sketched.pages)?;
        }
        let name = |source: SourceId| Against::source_name(self.against, corpus, source);
        sketched.repeated_ids = sketched.pages.rename_repeated_ids(name)?;
        Ok(sketched)
    }

    fn sketch_pages(&self, corpus: &Corpus, skipped: &mut SkippedLog) -> Result<Sketched> {
        let work = self.work.path();
        let is_exact_only = self.config.pairs.exact_only;
        let count = if is_exact_only { 0 } else { self.plan.columns().columns() };
        let limit = self.spill_limit(0.3) / count.max(1);
        let keeps_features = self.plan.keeps_features() && !is_exact_only;
        let mut table = Assembler {
            run: self,
            corpus,
            skipped,
            captures: Captures::default(),
            base: (SourceId::from_index(0), 0),
            sketched: Sketched {
                pages: PageTable::new(work, self.spill_limit(0.1)),
                columns: (0..count).map(|column| Spill::new(work.join(format!("column-{column}")), limit)).collect(),
                sets: keeps_features.then(|| {
                    PageSets::new(work, self.spill_limit(0.4), self.plan.sketch.words(), self.plan.is_weighted())
                }),
                featureless: Vec::new(),
                other_records: BTreeMap::new(),
                scopes: BTreeMap::new(),
                index_matches: Vec::new(),
                repeated_ids: 0,
                against_names: HashMap::new(),
                skipped: Skipped::default(),
            },
            near_rows: Vec::new(),
        };
        let index = self.against.and_then(Against::index);
        let units = corpus.units();
        let mut checkpoints = Checkpoints::open(self, corpus, &units)?;
        // What an earlier run has read is not read again.
        let pending: Vec<usize> = (0..units.len()).filter(|&unit| !checkpoints.is_done(unit)).collect();
        let mut turn = Turn { units: &units, unit: 0, next: 0 };
        turn.advance(&mut checkpoints, &mut table)?;
        let pending_units: Vec<&Unit> = pending.iter().map(|&unit| &units[unit]).collect();
        corpus.scan().threads(self.options.threads).progress_to(self.observer).for_each_unit(
            &pending_units,
            || (Sketcher::of_plan(self.plan), index.map(Index::reader)),
            |(sketcher, index), records| {
                let mut out = SketchedBatch::new(count, keeps_features);
                records.for_each(|found| {
                    match found {
                        Ok(page) => out.push(&page, sketcher, self.plan, &self.config.groups.keep, index.as_mut())?,
                        Err(NotAPage::Skipped(record)) => out.skipped.push(record),
                        Err(NotAPage::Other(what)) => *out.other_records.entry(what.to_owned()).or_default() += 1,
                    }
                    Ok(())
                })?;
                Ok(out)
            },
            |event| {
                match event {
                    Event::Result(at, batch) => {
                        let unit = pending[at];
                        checkpoints.add(unit, &batch)?;
                        if unit == turn.unit {
                            table.append(batch)?;
                        }
                    }
                    Event::End(at, end) => {
                        checkpoints.finish(pending[at], end)?;
                        if pending[at] == turn.unit {
                            turn.end(end, &mut table);
                            turn.advance(&mut checkpoints, &mut table)?;
                        }
                    }
                }
                Ok(())
            },
        )?;
        table.finish()
    }
}

/// Which unit's turn it is to be added to the table.
struct Turn<'u> {
    units: &'u [Unit],
    unit: usize,
    /// Where the stretch that was read last ended.
    next: u64,
}

impl Turn<'_> {
    /// The unit is over.
    fn end(&mut self, end: UnitEnd, table: &mut Assembler<'_>) {
        let unit = &self.units[self.unit];
        if unit.stretch.is_some() {
            let source = SourceId::from_index(unit.sources.start);
            let before = if table.base.0 == source { table.base.1 } else { 0 };
            table.base = (source, before + end.records);
            self.next = end.next;
        }
        self.unit += 1;
    }

    /// Adds all units that have been read in the meantime, and what there is of the next one.
    fn advance(&mut self, checkpoints: &mut Checkpoints, table: &mut Assembler<'_>) -> Result<()> {
        while let Some(unit) = self.units.get(self.unit) {
            if let Some(stretch) = &unit.stretch {
                if stretch.from == 0 {
                    (table.base, self.next) = ((SourceId::from_index(unit.sources.start), 0), 0);
                } else if stretch.from < self.next {
                    // What looked like the start of a member was part of one.
                    checkpoints.drop_unit(self.unit)?;
                    self.unit += 1;
                    continue;
                }
            }
            for batch in checkpoints.batches(self.unit)? {
                table.append(batch?)?;
            }
            match checkpoints.end_of(self.unit) {
                Some(end) => self.end(end, table),
                None => break,
            }
        }
        Ok(())
    }
}

/// Adds batches to the table, in order.
struct Assembler<'a> {
    run: &'a Run<'a>,
    corpus: &'a Corpus,
    skipped: &'a mut SkippedLog,
    captures: Captures,
    /// A source that is read in stretches, and the records of the stretches before this one.
    base: (SourceId, u64),
    sketched: Sketched,
    /// Pages that are near a row of an index: its id, and the distance.
    near_rows: Vec<(PageId, String, u32)>,
}

impl Assembler<'_> {
    fn append(&mut self, mut batch: SketchedBatch) -> Result<()> {
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
        self.captures.extend(batch.captures.iter().map(|&(row, capture)| (row.from_start(start), capture)));
        add_counts(&mut table.other_records, &batch.other_records);
        add_counts(&mut table.scopes, &batch.scopes);
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
                rank_key: row.rank_key,
                strings: PageStrings { id, url, title },
            })?;
        }
        for (column, values) in table.columns.iter_mut().zip(&batch.columns) {
            column.append(values)?;
        }
        if let (Some(sets), Some(more)) = (&mut table.sets, &batch.sets) {
            sets.append(more, start)?;
        }
        self.run.check_floor(table.pages.len() as u64)
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

    fn finish(mut self) -> Result<Sketched> {
        self.add_index_rows()?;
        let table = &mut self.sketched;
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
