//! The second reading: candidate pages again, and only them, for the exact comparison.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::job::dedup::Run;
use crate::job::dedup::held_pages::HeldPages;
use crate::job::dedup::limits::FEATURES_SHARE;
use crate::observe::check_cancelled;
use crate::page::{PageId, SourceId};
use crate::page_table::PageTable;
use crate::plan::Plan;
use crate::read::Corpus;
use crate::sketch::page_sets::{PageSets, SetBatch};
use crate::sketcher::Sketcher;

/// Bytes of markup that a word takes with what stands around it; few pages have more words.
const LEAST_BYTES_PER_WORD: u64 = 8;

impl Run<'_> {
    /// Reads pages again, and only them: features and sketches by `plan`. Those that were kept in the first reading are not read.
    pub(super) fn page_sets(
        &self,
        (corpus, held): (&Corpus, Option<&HeldPages>),
        pages: &PageTable,
        wanted_pages: &[PageId],
        plan: &Plan,
        kept: Option<PageSets>,
    ) -> Result<PageSets> {
        let limit = self.spill_limit(pages.len() as u64, FEATURES_SHARE).saturating_sub(pages.memory_bytes());
        let mut sets = match kept {
            Some(mut kept) => {
                kept.lower_limit(limit);
                kept
            }
            None => PageSets::new(self.work.path(), limit, plan.sketch.words(), plan.is_weighted()),
        };
        let wanted_pages: Vec<PageId> = wanted_pages.iter().copied().filter(|&page| !sets.contains(page)).collect();
        let all_pages = sets.len() + wanted_pages.len();
        let is_of_same_text = plan.text.scope == self.plan.text.scope;
        let most_shingles = |page: PageId| {
            // Of more than was counted it is not known how many words there are; memory that is not used is not taken.
            let by_length = pages.place(page).length / LEAST_BYTES_PER_WORD;
            if is_of_same_text { u64::from(pages.tokens[page]) } else { by_length }
        };
        let shingles = wanted_pages.iter().map(|&page| most_shingles(page)).sum::<u64>();
        sets.reserve(wanted_pages.len(), usize::try_from(shingles).unwrap_or(usize::MAX));
        // Batches go round, like the readers' buffers and for the same reason.
        let spare: Mutex<Vec<SetBatch>> = Mutex::default();
        let spare_batches = || spare.lock().unwrap_or_else(PoisonError::into_inner);
        let mut add = |mut read: SetBatch| {
            check_cancelled(self.observer)?;
            sets.append(&read, 0)?;
            read.clear();
            spare_batches().push(read);
            Ok(())
        };
        let is_held = |page: PageId| held.is_some_and(|held| held.has(page) && pages.scope[page].is_some());
        let (from_files, from_input): (Vec<PageId>, Vec<PageId>) =
            wanted_pages.iter().partition(|&&page| is_held(page));
        let is_as_before = |page: PageId, found: u128| {
            // A page that is seen in another way has another hash.
            plan.text.scope != self.plan.text.scope || pages.identity(page).is_none_or(|known| known == found)
        };
        if let Some(held) = held.filter(|_| !from_files.is_empty()) {
            let new_worker = || Sketcher::of_plan(plan);
            held.for_each(
                &from_files,
                self.options.threads,
                new_worker,
                |sketcher, found| {
                    let mut read = spare_batches().pop().unwrap_or_default();
                    for (page, held, about) in found {
                        let identity = sketcher.read_held(held, about.about()).identity;
                        if !is_as_before(*page, identity) {
                            return Err(Error::internal("a page is not what it was when frames were learnt"));
                        }
                        read.push(*page, sketcher.sketch());
                    }
                    Ok(read)
                },
                &mut add,
            )?;
        }
        // Damage was reported in the first reading.
        let wanted = pages.wanted(&from_input);
        corpus.scan().threads(self.options.threads).progress_to(self.observer).for_each_batch_of(
            &wanted,
            || Sketcher::of_plan(plan),
            |sketcher, records| {
                let mut read = spare_batches().pop().unwrap_or_default();
                records.for_each_page(|raw| {
                    let Some(page) = wanted.page_of(raw.source, raw.record) else { return Ok(()) };
                    let found = sketcher.read(&raw).identity;
                    if !is_as_before(page, found) {
                        return Err(changed(corpus, raw.source, raw.record));
                    }
                    read.push(page, sketcher.sketch());
                    Ok(())
                })?;
                Ok(read)
            },
            |read| add(read).map(|()| ControlFlow::Continue(())),
        )?;
        sets.finish()?;
        if sets.len() != all_pages {
            let missing = wanted_pages.iter().find(|&&page| !sets.contains(page)).map(|&page| pages.place(page));
            return Err(missing.map_or_else(
                || Error::internal("candidate pages were not read again, and none is missing"),
                |missing| changed(corpus, missing.source, missing.record),
            ));
        }
        Ok(sets)
    }
}

fn changed(corpus: &Corpus, source: SourceId, record: u64) -> Error {
    Error::InputChanged { source_name: corpus.source(source).display.clone(), record }
}
