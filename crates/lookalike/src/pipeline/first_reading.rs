//! The first reading: every page once, for its identity, its tokens, its sketch and its strings.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use crate::cluster::rank::rank_key;
use crate::config::Config;
use crate::error::{Result, SkipKind, SkippedRecord};
use crate::page::{Capture, PageId, RawPage};
use crate::page_table::{NewPage, PageStrings, PageTable};
use crate::parallel::in_order;
use crate::pipeline::Run;
use crate::pipeline::revisits::Captures;
use crate::read::{Batch, NoPage, Reading, Source};
use crate::report::skipped::SkippedLog;
use crate::sketch::sketcher::Sketcher;
use crate::spill::Spill;
use crate::verify::sets::{PageSets, SetBatch};

/// What the first reading gives.
pub(super) struct Sketched {
    pub(super) pages: PageTable,
    /// The columns that candidates are found by, each with a number for every page.
    pub(super) columns: Vec<Spill<u64>>,
    /// The features of all pages, where candidates are found by them.
    pub(super) sets: Option<PageSets>,
    /// Pages that are long enough and have no feature all the same, ascending.
    pub(super) featureless: Vec<PageId>,
    /// Records that are no pages, by what they are.
    pub(super) passed_over: BTreeMap<String, u64>,
    /// Pages of HTML by the part of them that is compared.
    pub(super) scopes: BTreeMap<String, u64>,
}

impl Run<'_> {
    /// Reads every page once.
    pub(super) fn sketch_pages(&self, reading: &Reading<'_>, skipped: &mut SkippedLog) -> Result<Sketched> {
        let work = self.work.path();
        let mut pages = PageTable::new(work, self.spill_limit(0.1));
        let is_exact_only = self.config.exact_only;
        let count = if is_exact_only { 0 } else { self.plan.columns(self.config.within).columns() };
        let limit = self.spill_limit(0.3) / count.max(1);
        let mut columns: Vec<Spill<u64>> =
            (0..count).map(|column| Spill::new(work.join(format!("column-{column}")), limit)).collect();
        let keeps_features = self.plan.keeps_features() && !is_exact_only;
        let mut sets = keeps_features.then(|| PageSets::for_plan(work, self.spill_limit(0.4), self.plan));
        let mut featureless = Vec::new();
        let (mut passed_over, mut scopes) = (BTreeMap::new(), BTreeMap::new());
        let mut captures = Captures::default();
        let mut bytes_seen = 0;
        in_order(
            self.options.threads,
            |jobs| reading.read_all(jobs),
            || Sketcher::new(self.plan, self.config),
            |sketcher, batch: Batch| {
                let mut out = SketchedBatch::new(count, keeps_features);
                batch.visit(reading, &mut |found| {
                    match found {
                        Ok(page) => {
                            out.push(&page, sketcher, &reading.sources[page.source as usize], self.config);
                        }
                        Err(NoPage::Skipped(record)) => out.skipped.push(record),
                        Err(NoPage::Other(what)) => *out.passed_over.entry(what.to_owned()).or_default() += 1,
                    }
                    Ok(())
                })?;
                Ok(out)
            },
            |batch| {
                for record in &batch.skipped {
                    self.observer.skipped(record);
                    skipped.add(record)?;
                }
                let count = batch.rows.len() as u64;
                let from = PageId::try_from(pages.len()).unwrap_or(PageId::MAX);
                featureless.extend(batch.featureless.iter().map(|row| row + from));
                captures.extend(batch.captures.iter().map(|&(row, capture)| (row + from, capture)));
                add_counts(&mut passed_over, &batch.passed_over);
                add_counts(&mut scopes, &batch.scopes);
                batch.append_to(&mut pages, &mut columns, sets.as_mut())?;
                self.check_floor(pages.len() as u64)?;
                let bytes_read = reading.bytes_read.load(Ordering::Relaxed);
                self.observer.advance(bytes_read - bytes_seen, count);
                bytes_seen = bytes_read;
                Ok(ControlFlow::Continue(()))
            },
        )?;
        pages.finish()?;
        columns.iter_mut().try_for_each(Spill::finish)?;
        sets.iter_mut().try_for_each(PageSets::finish)?;
        captures.resolve(&mut pages);
        for (page, _) in pages.revisits().filter(|(_, original)| original.is_none()) {
            let record = lost_revisit(reading, &pages, page);
            self.observer.skipped(&record);
            skipped.add(&record)?;
        }
        Ok(Sketched { pages, columns, sets, featureless, passed_over, scopes })
    }
}

fn add_counts(all: &mut BTreeMap<String, u64>, some: &BTreeMap<String, u64>) {
    for (name, count) in some {
        *all.entry(name.clone()).or_default() += count;
    }
}

/// A revisit of something that is not in the input.
fn lost_revisit(reading: &Reading<'_>, pages: &PageTable, page: PageId) -> SkippedRecord {
    let place = pages.place(page);
    SkippedRecord {
        kind: SkipKind::Revisit,
        source: reading.sources[place.source as usize].display.clone(),
        record: Some(place.record),
        byte: place.offset,
        reason: "says that a page was the same as in another capture, which is not among the pages of the input"
            .to_owned(),
        first_bytes: pages.id(page).unwrap_or_default(),
    }
}

/// One batch on its way from a worker to the table.
struct SketchedBatch {
    rows: Vec<BatchRow>,
    strings: String,
    columns: Vec<Vec<u64>>,
    sets: Option<SetBatch>,
    row_columns: Vec<u64>,
    featureless: Vec<PageId>,
    /// The captures of a crawl, by row.
    captures: Vec<(PageId, Capture)>,
    passed_over: BTreeMap<String, u64>,
    /// Pages of HTML by the part of them that is compared.
    scopes: BTreeMap<String, u64>,
    skipped: Vec<SkippedRecord>,
}

struct BatchRow {
    source: u32,
    record: u64,
    offset: Option<u64>,
    length: u64,
    tokens: u32,
    identity: u128,
    rank_key: Option<f64>,
    id_bytes: usize,
    url_bytes: Option<usize>,
    title_bytes: Option<usize>,
}

impl SketchedBatch {
    fn new(columns: usize, keeps_features: bool) -> SketchedBatch {
        SketchedBatch {
            rows: Vec::new(),
            strings: String::new(),
            columns: vec![Vec::new(); columns],
            sets: keeps_features.then(SetBatch::default),
            row_columns: Vec::new(),
            featureless: Vec::new(),
            captures: Vec::new(),
            passed_over: BTreeMap::new(),
            scopes: BTreeMap::new(),
            skipped: Vec::new(),
        }
    }

    fn push(&mut self, page: &RawPage<'_>, sketcher: &mut Sketcher<'_>, source: &Source, config: &Config) {
        let row = PageId::try_from(self.rows.len()).unwrap_or(PageId::MAX);
        self.captures.extend(page.capture.map(|capture| (row, capture)));
        let is_revisit = page.capture.is_some_and(|capture| capture.refers_to.is_some());
        let facts = sketcher.read(page);
        if let Some(scope) = facts.scope.filter(|_| !is_revisit) {
            *self.scopes.entry(scope.name().to_owned()).or_default() += 1;
        }
        let start = self.strings.len();
        match page.id.as_deref() {
            Some(id) => self.strings.push_str(id),
            None => self.strings.push_str(&format!("{}:{}", source.name, page.record)),
        }
        let id_bytes = self.strings.len() - start;
        self.strings.push_str(page.url.as_deref().unwrap_or_default());
        self.strings.push_str(facts.title.unwrap_or_default());
        self.rows.push(BatchRow {
            source: page.source,
            record: page.record,
            offset: page.offset,
            length: page.length,
            tokens: facts.tokens,
            identity: facts.identity,
            // A revisit has nothing that could be kept in place of its original.
            rank_key: rank_key(config, page, facts.tokens).map(|key| if is_revisit { f64::INFINITY } else { key }),
            id_bytes,
            url_bytes: page.url.as_deref().map(str::len),
            title_bytes: facts.title.map(str::len),
        });
        let is_long_enough = facts.tokens >= config.min_tokens.max(1);
        if !self.columns.is_empty() {
            if is_long_enough {
                sketcher.columns(&mut self.row_columns);
            } else {
                self.row_columns.fill(0); // takes no part in the join
                self.row_columns.resize(self.columns.len(), 0);
            }
            self.columns.iter_mut().zip(&self.row_columns).for_each(|(column, &value)| column.push(value));
        }
        if is_long_enough && sketcher.sequence().is_empty() {
            self.featureless.push(row);
        }
        if let Some(sets) = &mut self.sets
            && is_long_enough
        {
            sets.push(row, sketcher.sketch());
        }
    }

    fn append_to(self, pages: &mut PageTable, columns: &mut [Spill<u64>], sets: Option<&mut PageSets>) -> Result<()> {
        let from = PageId::try_from(pages.len()).unwrap_or(PageId::MAX);
        let mut strings = self.strings.as_str();
        let mut take = |bytes: usize| {
            let (text, rest) = strings.split_at(bytes);
            strings = rest;
            text
        };
        for row in &self.rows {
            let id = take(row.id_bytes);
            let url = row.url_bytes.map(&mut take);
            let title = row.title_bytes.map(&mut take);
            pages.push(&NewPage {
                source: row.source,
                record: row.record,
                offset: row.offset,
                length: row.length,
                tokens: row.tokens,
                identity: Some(row.identity),
                rank_key: row.rank_key,
                strings: PageStrings { id, url, title },
            })?;
        }
        for (column, batch) in columns.iter_mut().zip(&self.columns) {
            column.append(batch)?;
        }
        match (sets, &self.sets) {
            (Some(sets), Some(batch)) => sets.append(batch, from),
            _ => Ok(()),
        }
    }
}
