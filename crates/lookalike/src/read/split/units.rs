//! Pieces of the input that are read side by side and taken up again one by one.
//!
//! A unit is a run of small sources, one source, or a stretch of a large one whose records are compressed
//! each by itself. The units of an input are always the same, whatever the number of threads, and so are the batches of a
//! unit of files on disk: a run can go on with what an earlier one has read, in the midst of a unit.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Result, SkipKind};
use crate::page::SourceId;
use crate::parallel::JobSender;
use crate::read::Corpus;
use crate::read::format::reader::Input;
use crate::read::split::batch::{Batch, BatchSender};

/// Bytes of small sources in a unit, and of a large one in a stretch of it.
pub(crate) const UNIT_BYTES: u64 = 32 << 20;

/// A piece of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The sources in it.
    pub(crate) sources: Range<usize>,
    /// If it is a part of its one source, which.
    pub(crate) stretch: Option<Stretch>,
}

/// A stretch of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The first member in it.
    pub(crate) from: u64,
    /// Where the stretches behind it begin; it ends at the first of these that is the start of a member.
    pub(crate) stops: Arc<Vec<u64>>,
}

/// Where a unit ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct UnitEnd {
    /// Records in it, if it is a stretch.
    pub(crate) records: u64,
    /// The stretch that goes on where it ended begins here.
    pub(crate) next: u64,
}

impl Corpus {
    /// The units of the input.
    #[must_use]
    pub(crate) fn units(&self) -> Vec<Unit> {
        let mut units: Vec<Unit> = Vec::new();
        let mut bytes = 0;
        for (here, source) in self.sources.iter().enumerate() {
            if let Some(members) =
                source.format.members().filter(|_| source.by_member && source.bytes >= 2 * UNIT_BYTES)
            {
                let starts = members.starts(source, UNIT_BYTES);
                for (at, &from) in starts.iter().enumerate() {
                    let stops = Arc::new(starts[at + 1..].to_vec());
                    units.push(Unit { sources: here..here + 1, stretch: Some(Stretch { from, stops }) });
                }
                bytes = UNIT_BYTES; // nothing is added to a stretch
                continue;
            }
            match units.last_mut().filter(|_| bytes + source.bytes <= UNIT_BYTES) {
                Some(unit) => unit.sources.end = here + 1,
                None => {
                    units.push(Unit { sources: here..here + 1, stretch: None });
                    bytes = 0;
                }
            }
            bytes += source.bytes;
        }
        units
    }

    /// Hands all records of a unit to `jobs`, in order. The records of a stretch are numbered from 1.
    ///
    /// # Errors
    /// Never for bad records; those are handed on as such.
    pub(in crate::read) fn read_unit(&self, unit: &Unit, jobs: &mut JobSender<'_, Batch>) -> Result<UnitEnd> {
        let Some(stretch) = &unit.stretch else {
            self.read_sources(unit.sources.clone(), jobs)?;
            return Ok(UnitEnd::default());
        };
        let input = Input { corpus: self, id: SourceId::from_index(unit.sources.start) };
        let mut batches = BatchSender::new(jobs, input.id);
        let members = input.source().format.members().expect("only sources of members are read in stretches");
        Ok(members.split(&input, stretch, &mut batches).unwrap_or_else(|error| {
            let problem = (SkipKind::Unreadable, format!("cannot be opened: {error}"));
            // Break or not: this was the last batch.
            let _ = batches.send(input.skipped(None, Some(stretch.from), problem, &[]));
            UnitEnd { records: 0, next: stretch.stops.first().copied().unwrap_or(u64::MAX) }
        }))
    }
}
