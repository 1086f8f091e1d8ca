//! Pages of HTML that wait until it is known what is frame.
//!
//! In: the files of the first reading, whose batches have held pages as tokens. Out: the frames that were learnt, and every
//! page sketched without them, in order. Later, chosen pages once more, from the same files: markup is not read again.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::index::Index;
use crate::job::dedup::Run;
use crate::job::dedup::against::Against;
use crate::job::dedup::assembler::Assembler;
use crate::job::dedup::checkpoint::{Checkpoints, Entry, decode, is_batch};
use crate::job::dedup::entries::Entries;
use crate::job::dedup::first_reading::Turn;
use crate::job::dedup::sketched_batch::{HeldAbout, SketchedWith};
use crate::observe::check_cancelled;
use crate::page::PageId;
use crate::parallel::in_order;
use crate::plan::CorpusStats;
use crate::read::UnitEnd;
use crate::sketcher::Sketcher;
use crate::text::HeldPage;
use crate::text::frames::FrameLearner;

/// Where the held pages are.
pub(crate) struct HeldPages {
    /// The files, and how many of their first batches have none.
    files: Vec<(PathBuf, usize)>,
    /// The first page of each batch, and at the end the page behind the last.
    starts: Vec<PageId>,
}

/// What is read from the files: for every unit its start, its batches and its end.
enum Step<B> {
    /// The unit's file, and how many batches of it have been added before.
    Start(PathBuf, usize),
    Batch(B),
    End(UnitEnd),
}

impl Run<'_> {
    /// Whether frames are learnt in the first reading. Where something else has to be counted without them, they are
    /// known before it.
    pub(super) fn learns_while_reading(&self) -> bool {
        self.config.corpus_needs().frames && self.plan.corpus.is_none()
    }

    /// Sketches what was held, and adds it to the table.
    pub(super) fn sketch_held(
        &self,
        learner: FrameLearner,
        mut turn: Turn<'_>,
        checkpoints: &mut Checkpoints,
        table: &mut Assembler<'_>,
    ) -> Result<()> {
        let stats = CorpusStats { frames: Some(Arc::new(learner.finish()?)), ..CorpusStats::default() };
        let plan = self.config.plan_with(Some(Arc::new(stats)));
        let narrow = self.plan.columns();
        // What was kept has the sketches of the plan before.
        table.likely = None;
        table.widen(narrow, plan.columns())?;
        let units = checkpoints.files(turn.unit, turn.units.len())?;
        let first = (turn.unit, turn.taken);
        let index = self.against.and_then(Against::index);
        let with = SketchedWith { plan: &plan, keep: &self.config.groups.keep, likely: None };
        let mut held = HeldPages { files: Vec::new(), starts: Vec::new() };
        let mut is_skipped = false;
        in_order(
            self.options.threads,
            |jobs| {
                for (unit, path, end) in &units {
                    let taken = if *unit == first.0 { first.1 } else { 0 };
                    let mut goes_on = jobs.send(Step::Start(path.clone(), taken));
                    for batch in Entries::open_if_any(path)?.into_iter().flatten().skip(taken) {
                        goes_on = goes_on && jobs.send(Step::Batch((path.clone(), batch?)));
                    }
                    if !(goes_on && jobs.send(Step::End(*end))) {
                        break;
                    }
                }
                Ok(())
            },
            || (Sketcher::of_plan(&plan), index.map(Index::reader)),
            |(sketcher, index), step| {
                Ok(match step {
                    Step::Start(path, taken) => Step::Start(path, taken),
                    Step::End(end) => Step::End(end),
                    Step::Batch((path, bytes)) => Step::Batch(match decode(&path, &bytes)? {
                        Entry::Batch(batch) => Some(batch.completed(narrow, sketcher, &with, index.as_mut())?),
                        Entry::End(_) => None,
                    }),
                })
            },
            |step| {
                match step {
                    Step::Start(path, taken) => {
                        // The first unit has begun already.
                        is_skipped = !held.files.is_empty() && !turn.begin(table);
                        if !is_skipped {
                            held.files.push((path, taken));
                        }
                    }
                    Step::Batch(batch) => {
                        check_cancelled(self.observer)?;
                        if let Some(batch) = batch.filter(|_| !is_skipped) {
                            held.starts.push(PageId::from_index(table.sketched.pages.len()));
                            table.append(batch)?;
                        }
                    }
                    Step::End(end) if !is_skipped => turn.end(end, table),
                    Step::End(_) => {}
                }
                Ok(ControlFlow::Continue(()))
            },
        )?;
        held.starts.push(PageId::from_index(table.sketched.pages.len()));
        table.sketched.held = Some((held, plan));
        Ok(())
    }
}

impl HeldPages {
    /// Whether a page is in one of the files.
    pub(super) fn has(&self, page: PageId) -> bool {
        self.starts.first().is_some_and(|&first| page >= first) && self.starts.last().is_some_and(|&end| page < end)
    }

    /// Shows those of `wanted`, ascending, that were held to `work`, in batches; it may be called from different threads.
    pub(super) fn for_each<W, R: Send>(
        &self,
        wanted: &[PageId],
        threads: usize,
        new_worker: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, &[(PageId, HeldPage, HeldAbout)]) -> Result<R> + Sync,
        mut collect: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        let of_batch = |number: usize| {
            let at = |page: PageId| wanted.partition_point(|&wanted| wanted < page);
            &wanted[at(self.starts[number])..at(self.starts[number + 1])]
        };
        in_order(
            threads,
            |jobs| {
                let mut number = 0;
                for (path, taken) in &self.files {
                    let batches = self.starts.len() - 1;
                    for bytes in Entries::open_if_any(path)?.into_iter().flatten().skip(*taken) {
                        // The last entry is the mark that the file is whole.
                        let bytes = bytes?;
                        if number < batches && is_batch(&bytes) {
                            if !of_batch(number).is_empty() && !jobs.send((number, path.clone(), bytes)) {
                                return Ok(());
                            }
                            number += 1;
                        }
                    }
                }
                Ok(())
            },
            new_worker,
            |worker, (number, path, bytes)| {
                let Entry::Batch(batch) = decode(&path, &bytes)? else {
                    return Err(Error::internal("a batch of held pages is none"));
                };
                let start = self.starts[number].index();
                let wanted = of_batch(number);
                let is_wanted = |page: PageId| wanted.binary_search(&page).is_ok();
                work(worker, &batch.into_held(start, &is_wanted))
            },
            |made| collect(made).map(|()| ControlFlow::Continue(())),
        )
    }
}
