//! The first reading: every page once, for its identity, its tokens, its sketch and its strings.
//!
//! Several units of the input are read side by side. What comes before its turn waits in a file; what
//! is done stays in files until the run is, so that a killed run can go on. Where frames are learnt, pages of HTML wait in
//! these files, too, as tokens, and are sketched when all have been seen: markup is read once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use crate::corpus_stats::SAMPLE_BYTES;
use crate::error::{Result, SkippedRecord};
use crate::index::Index;
use crate::job::dedup::Run;
use crate::job::dedup::against::{Against, IndexMatch};
use crate::job::dedup::assembler::Assembler;
use crate::job::dedup::checkpoint::{self, Checkpoints};
use crate::job::dedup::held_pages::HeldPages;
use crate::job::dedup::limits::{SKETCHES_SHARE, TABLE_SHARE};
use crate::job::dedup::sketched_batch::{SketchedBatch, SketchedWith};
use crate::page::{PageId, SourceId};
use crate::page_table::PageTable;
use crate::parallel::Event;
use crate::plan::{ColumnLayout, Plan};
use crate::read::{Captures, Corpus, NotAPage, Unit, UnitEnd};
use crate::report::files;
use crate::report::skipped::{Skipped, SkippedLog};
use crate::report::summary::UnreadRanks;
use crate::sketch::page_sets::PageSets;
use crate::sketcher::Sketcher;
use crate::spill::Spill;
use crate::text::frames::{FrameLearner, SamplePage};

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
    /// Pages whose rank could not be read.
    pub(super) unread_ranks: Option<UnreadRanks>,
    /// What likely candidates are compared by.
    pub(super) likely: Option<PageSets>,
    /// Pages that waited until frames were known, and the plan that knows them.
    pub(super) held: Option<(HeldPages, Plan)>,
}

impl Sketched {
    /// Pages that waited until frames were known.
    pub(super) fn held(&self) -> Option<&HeldPages> {
        self.held.as_ref().map(|held| &held.0)
    }

    /// Whether any column is on disk.
    pub(super) fn is_spilled(&self) -> bool {
        self.columns.iter().any(Spill::is_spilled)
    }

    /// Frees what only the search needs: all columns but that of the groups.
    pub(super) fn free_keys(&mut self, layout: ColumnLayout) {
        let group = layout.group_column();
        for (_, column) in self.columns.iter_mut().enumerate().filter(|row| Some(row.0) != group) {
            std::mem::replace(column, Spill::new(PathBuf::new(), 0)).remove();
        }
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
        for unmet in unmet_captures(corpus, &sketched.pages) {
            self.observer.skipped(&unmet);
            skipped.add(&unmet)?;
        }
        sketched.skipped = skipped.finish()?;
        // Examples and pages of another corpus are not input.
        let is_page = |page: PageId| sketched.pages.is_page(page) && sketched.pages.is_input(page);
        if !sketched.pages.all().any(is_page) {
            return Err(corpus.no_pages(&self.options.inputs, &sketched.skipped.examples));
        }
        self.check_policy(&sketched.pages, sketched.unread_ranks.as_ref())?;
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
        let limit = self.spill_limit(0, SKETCHES_SHARE) / count.max(1);
        let keeps_features = self.plan.keeps_features() && !is_exact_only;
        let mut table = Assembler {
            run: self,
            corpus,
            skipped,
            captures: Captures::default(),
            base: (SourceId::from_index(0), 0),
            sketched: Sketched {
                pages: PageTable::new(work, self.spill_limit(0, TABLE_SHARE)),
                columns: (0..count).map(|column| Spill::new(work.join(format!("column-{column}")), limit)).collect(),
                sets: keeps_features.then(|| {
                    PageSets::new(work, self.feature_bytes(0), self.plan.sketch.words(), self.plan.is_weighted())
                }),
                featureless: Vec::new(),
                other_records: BTreeMap::new(),
                scopes: BTreeMap::new(),
                index_matches: Vec::new(),
                repeated_ids: 0,
                against_names: HashMap::new(),
                skipped: Skipped::default(),
                unread_ranks: None,
                likely: None,
                held: None,
            },
            near_rows: Vec::new(),
            likely: self.likely_sets(corpus),
        };
        let index = self.against.and_then(Against::index);
        let learner = self
            .learns_while_reading()
            .then(|| RwLock::new(FrameLearner::new(Spill::new(work.join("frame-sample"), SAMPLE_BYTES))));
        let learn = |samples: Vec<SamplePage>| -> Result<()> {
            let Some(learner) = learner.as_ref().filter(|_| !samples.is_empty()) else { return Ok(()) };
            let mut learner = learner.write().unwrap_or_else(PoisonError::into_inner);
            samples.into_iter().try_for_each(|sample| learner.add(sample))
        };
        let likely = table.likely.as_ref().map(|likely| Arc::clone(&likely.pages));
        let with = SketchedWith { plan: self.plan, keep: &self.config.groups.keep, likely: likely.as_deref() };
        let units = corpus.units();
        let mut checkpoints = Checkpoints::open(self, corpus, &units)?;
        // What an earlier run has read is not read again.
        let pending: Vec<usize> = (0..units.len()).filter(|&unit| !checkpoints.is_done(unit)).collect();
        let batches_done: Vec<u64> = pending.iter().map(|&unit| checkpoints.batches_begun(unit)).collect();
        for unit in (0..units.len()).filter(|_| learner.is_some()) {
            checkpoints.batches(unit)?.try_for_each(|batch| learn(batch?.samples()))?;
        }
        let mut turn = Turn { units: &units, unit: 0, next: 0, taken: 0, is_holding: false };
        turn.advance(&mut checkpoints, &mut table)?;
        let pending_units: Vec<&Unit> = pending.iter().map(|&unit| &units[unit]).collect();
        corpus.scan().threads(self.options.threads).progress_to(self.observer).behind(&batches_done).for_each_unit(
            &pending_units,
            || (Sketcher::of_plan(self.plan), index.map(Index::reader)),
            |(sketcher, index), records| {
                let mut out = SketchedBatch::new(count, keeps_features);
                records.for_each(|found| {
                    match found {
                        Ok(page) => {
                            let is_held =
                                learner.as_ref().is_some_and(|learner| out.hold(&page, sketcher, &with, learner));
                            if !is_held {
                                out.push(&page, sketcher, &with, index.as_mut())?;
                            }
                        }
                        Err(NotAPage::Skipped(record)) => out.skipped.push(record),
                        Err(NotAPage::Other(what)) => *out.other_records.entry(what.to_owned()).or_default() += 1,
                    }
                    Ok(())
                })?;
                // What has to wait is written; here, where the memory is that it takes.
                if out.held.is_empty() { Ok(ReadBatch::Sketched(Box::new(out))) } else { ReadBatch::held(&out) }
            },
            |event| {
                match event {
                    Event::Result(at, batch) => {
                        let unit = pending[at];
                        let is_turn = unit == turn.unit && !turn.is_holding;
                        match batch {
                            ReadBatch::Held(entry, samples) => {
                                self.start_learning()?;
                                learn(samples)?;
                                if !checkpoints.start_writing() {
                                    // The batches before this one are not in the file.
                                    turn.taken = 0;
                                }
                                checkpoints.add_entry(unit, &entry)?;
                                turn.is_holding |= is_turn;
                            }
                            ReadBatch::Sketched(batch) => {
                                checkpoints.add(unit, &batch)?;
                                if is_turn {
                                    turn.take(*batch, &mut table)?;
                                }
                            }
                        }
                    }
                    Event::End(at, end) => {
                        checkpoints.finish(pending[at], end)?;
                        if pending[at] == turn.unit && !turn.is_holding {
                            turn.end(end, &mut table);
                            turn.advance(&mut checkpoints, &mut table)?;
                        }
                    }
                }
                Ok(())
            },
        )?;
        if turn.is_holding
            && let Some(learner) = learner
        {
            let learner = learner.into_inner().unwrap_or_else(PoisonError::into_inner);
            self.sketch_held(learner, turn, &mut checkpoints, &mut table)?;
        }
        table.finish()
    }
}

/// A batch that was read.
enum ReadBatch {
    Sketched(Box<SketchedBatch>),
    /// It has pages that have to wait: its bytes, and what can be learnt from it.
    Held(Vec<u8>, Vec<SamplePage>),
}

impl ReadBatch {
    fn held(batch: &SketchedBatch) -> Result<ReadBatch> {
        Ok(ReadBatch::Held(checkpoint::encode(batch)?, batch.samples()))
    }
}

/// Which unit's turn it is to be added to the table.
pub(super) struct Turn<'u> {
    pub(super) units: &'u [Unit],
    pub(super) unit: usize,
    /// Where the stretch that was read last ended.
    next: u64,
    /// Batches of the unit that have been added.
    pub(super) taken: usize,
    /// Whether what comes has to wait until frames are known.
    is_holding: bool,
}

impl Turn<'_> {
    /// Adds a batch, unless it has to wait, as all behind it then have to.
    fn take(&mut self, batch: SketchedBatch, table: &mut Assembler<'_>) -> Result<()> {
        if !batch.held.is_empty() {
            table.run.start_learning()?;
            self.is_holding = true;
        }
        if self.is_holding {
            return Ok(());
        }
        self.taken += 1;
        table.append(batch)
    }

    /// The unit is over.
    pub(super) fn end(&mut self, end: UnitEnd, table: &mut Assembler<'_>) {
        let unit = &self.units[self.unit];
        if unit.stretch.is_some() {
            let source = SourceId::from_index(unit.sources.start);
            let before = if table.base.0 == source { table.base.1 } else { 0 };
            table.base = (source, before + end.records);
            self.next = end.next;
        }
        (self.unit, self.taken) = (self.unit + 1, 0);
    }

    /// Whether the unit whose turn it is has pages of its own; it is over if it has none.
    pub(super) fn begin(&mut self, table: &mut Assembler<'_>) -> bool {
        if let Some(stretch) = self.units.get(self.unit).and_then(|unit| unit.stretch.as_ref()) {
            if stretch.from == 0 {
                (table.base, self.next) = ((SourceId::from_index(self.units[self.unit].sources.start), 0), 0);
            } else if stretch.from < self.next {
                // What looked like the start of a member was part of one.
                (self.unit, self.taken) = (self.unit + 1, 0);
                return false;
            }
        }
        true
    }

    /// Adds all units that have been read in the meantime, and what there is of the next one.
    fn advance(&mut self, checkpoints: &mut Checkpoints, table: &mut Assembler<'_>) -> Result<()> {
        while self.unit < self.units.len() && !self.is_holding {
            let unit = self.unit;
            if !self.begin(table) {
                checkpoints.drop_unit(unit)?;
                continue;
            }
            for batch in checkpoints.batches(unit)? {
                self.take(batch?, table)?;
                if self.is_holding {
                    return Ok(());
                }
            }
            match checkpoints.end_of(unit) {
                Some(end) => self.end(end, table),
                None => break,
            }
        }
        Ok(())
    }
}

/// Captures that were named and are not among the pages.
fn unmet_captures(corpus: &Corpus, pages: &PageTable) -> Vec<SkippedRecord> {
    let places = |source: usize| {
        let pages_of = pages.pages_of(SourceId::from_index(source));
        pages_of.filter_map(|page| pages.place(page).offset).collect::<HashSet<u64>>()
    };
    corpus.chosen.as_ref().map_or_else(Vec::new, |chosen| chosen.unmet(&corpus.sources, places))
}
