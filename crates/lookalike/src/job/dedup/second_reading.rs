//! The second reading: candidate pages again, and only them, for the exact comparison.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::job::dedup::Run;
use crate::page::{PageId, SourceId};
use crate::page_table::{BYTES_PER_PAGE, PageTable};
use crate::read::Corpus;
use crate::sketch::page_sets::{PageSets, SetBatch};
use crate::sketcher::Sketcher;

impl Run<'_> {
    /// Reads pages again, and only them: features and sketches.
    pub(super) fn page_sets(&self, corpus: &Corpus, pages: &PageTable, wanted_pages: &[PageId]) -> Result<PageSets> {
        let wanted = pages.wanted(wanted_pages);
        let table_bytes = usize::try_from(pages.len() as u64 * BYTES_PER_PAGE).unwrap_or(usize::MAX);
        let limit = self.spill_limit(1.0).saturating_sub(table_bytes) / 2;
        let mut sets = PageSets::new(self.work.path(), limit, self.plan.sketch.words(), self.plan.is_weighted());
        let shingles = wanted_pages.iter().map(|&page| pages.tokens[page] as usize).sum();
        sets.reserve(wanted_pages.len(), shingles);
        // Batches go round, like the readers' buffers and for the same reason.
        let spare: Mutex<Vec<SetBatch>> = Mutex::default();
        let spare_batches = || spare.lock().unwrap_or_else(PoisonError::into_inner);
        // Damage was reported in the first reading.
        corpus.scan().threads(self.options.threads).progress_to(self.observer).for_each_batch_of(
            &wanted,
            || Sketcher::of_plan(self.plan),
            |sketcher, records| {
                let mut read = spare_batches().pop().unwrap_or_default();
                records.for_each_page(|raw| {
                    let Some(page) = wanted.page_of(raw.source, raw.record) else { return Ok(()) };
                    let known = pages.identity.get(page);
                    let found = sketcher.read(&raw).identity;
                    if known.is_some_and(|known| *known != found) {
                        return Err(changed(corpus, raw.source, raw.record));
                    }
                    read.push(page, sketcher.sketch());
                    Ok(())
                })?;
                Ok(read)
            },
            |mut read| {
                sets.append(&read, 0)?;
                read.clear();
                spare_batches().push(read);
                Ok(ControlFlow::Continue(()))
            },
        )?;
        if sets.len() != wanted_pages.len() {
            let missing = wanted.0.iter().find(|wanted| !sets.contains(wanted.page));
            return Err(missing.map_or_else(
                || Error::internal("candidate pages were not read again, and none is missing"),
                |missing| changed(corpus, missing.source, missing.record),
            ));
        }
        sets.finish()?;
        Ok(sets)
    }
}

fn changed(corpus: &Corpus, source: SourceId, record: u64) -> Error {
    Error::InputChanged { source_name: corpus.source(source).display.clone(), record }
}
