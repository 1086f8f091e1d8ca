//! The second reading: candidate pages again, and only them, for the exact comparison.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::job::dedup::Run;
use crate::page::PageId;
use crate::page_table::{BYTES_A_PAGE, PageTable};
use crate::parallel::in_order;
use crate::read::{Batch, Reading};
use crate::sketcher::Sketcher;
use crate::verify::sets::{PageSets, SetBatch};

impl Run<'_> {
    /// Reads pages again, and only them: features and sketches.
    pub(super) fn page_sets(
        &self,
        reading: &Reading<'_>,
        pages: &PageTable,
        wanted_pages: &[PageId],
    ) -> Result<PageSets> {
        let wanted = pages.wanted(wanted_pages);
        let table_bytes = usize::try_from(pages.len() as u64 * BYTES_A_PAGE).unwrap_or(usize::MAX);
        let limit = self.spill_limit(1.0).saturating_sub(table_bytes) / 2;
        let mut sets = PageSets::for_plan(self.work.path(), limit, self.plan);
        let shingles = wanted_pages.iter().map(|&page| pages.tokens[page as usize] as usize).sum();
        sets.reserve(wanted_pages.len(), shingles);
        // Batches go round, like the readers' buffers and for the same reason.
        let spare: Mutex<Vec<SetBatch>> = Mutex::default();
        let spare_batches = || spare.lock().unwrap_or_else(PoisonError::into_inner);
        in_order(
            self.options.threads,
            |jobs| reading.read_wanted(&wanted, jobs),
            || Sketcher::new(self.plan),
            |sketcher, batch: Batch| {
                let mut read = spare_batches().pop().unwrap_or_default();
                let mut bytes = 0;
                batch.visit(reading, &mut |found| {
                    // Damage was reported in the first reading.
                    let Ok(raw) = found else { return Ok(()) };
                    let Some(page) = wanted.page_of(raw.source, raw.record) else { return Ok(()) };
                    let known = pages.identity.get(page as usize);
                    let found = sketcher.read(&raw).identity;
                    if known.is_some_and(|known| *known != found) {
                        return Err(changed(reading, raw.source, raw.record));
                    }
                    read.push(page, sketcher.sketch());
                    bytes += raw.length;
                    Ok(())
                })?;
                Ok((read, bytes))
            },
            |(mut read, bytes)| {
                sets.append(&read, 0)?;
                self.observer.advance(bytes, read.len() as u64);
                read.clear();
                spare_batches().push(read);
                Ok(ControlFlow::Continue(()))
            },
        )?;
        if sets.len() != wanted_pages.len() {
            let missing = wanted.0.iter().find(|wanted| !sets.contains(wanted.page));
            return Err(missing.map_or_else(
                || Error::Usage("candidate pages could not be read again".to_owned()),
                |missing| changed(reading, missing.source, missing.record),
            ));
        }
        sets.finish()?;
        Ok(sets)
    }
}

fn changed(reading: &Reading<'_>, source: u32, record: u64) -> Error {
    Error::InputChanged { source_name: reading.sources[source as usize].display.clone(), record }
}
