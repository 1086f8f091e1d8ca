//! What the search and the comparison have found, in a file: a run that is stopped later need not do them again.
//!
//! Pairs are written and read a few at a time, so that no second copy of them is in memory.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::job::dedup::Run;
use crate::job::dedup::entries::{Entries, EntryWriter, broken};
use crate::job::dedup::verification::{Compared, Counted};
use crate::page::ScoredPair;
use crate::verify::Verified;
use crate::verify::leaders::CappedBucket;
use crate::work_dir::READ_PREFIX;

/// Pairs in an entry.
const ENTRY_PAIRS: usize = 4096;

/// What the file holds: pairs, near misses, and the rest of it at its end.
#[derive(Serialize, Deserialize)]
enum Entry<P> {
    Pairs(P),
    NearMisses(P),
    Rest { compared: u64, capped: Vec<CappedBucket>, counted: Counted },
}

impl Run<'_> {
    /// What an earlier run has found of so many pages, if it came so far.
    pub(super) fn known_comparison(&self, pages: u64) -> Result<Option<Compared>> {
        let path = self.work.path().join(file_name());
        if !self.work.can_resume() {
            return Ok(None);
        }
        let Some(entries) = Entries::open_if_any(&path)? else { return Ok(None) };
        let mut pairs = self.list(pages);
        let mut near_misses = pairs.another();
        for bytes in entries {
            // One that was cut off is made again.
            let Ok(bytes) = bytes else { return Ok(None) };
            match postcard::from_bytes(&bytes).map_err(|error| broken(&path, &error.to_string()))? {
                Entry::Pairs::<Vec<ScoredPair>>(some) => pairs.extend_from_slice(&some)?,
                Entry::NearMisses(some) => near_misses.extend_from_slice(&some)?,
                Entry::Rest { compared, capped, counted } => {
                    return Ok(Some(Compared { verified: Verified { pairs, near_misses, compared, capped }, counted }));
                }
            }
        }
        Ok(None)
    }

    /// Stores what was found for a later run, if there can be one.
    pub(super) fn keep_comparison(&self, found: &Compared) -> Result<()> {
        if !self.work.can_resume() {
            return Ok(());
        }
        let mut file = EntryWriter::create(&self.work.path().join(file_name()))?;
        let Verified { pairs, near_misses, compared, capped } = &found.verified;
        let mut add = |entry: &Entry<&[ScoredPair]>| file.add(&entry.to_bytes()?);
        pairs.chunks(ENTRY_PAIRS).try_for_each(|some| add(&Entry::Pairs(some)))?;
        near_misses.chunks(ENTRY_PAIRS).try_for_each(|some| add(&Entry::NearMisses(some)))?;
        add(&Entry::Rest { compared: *compared, capped: capped.clone(), counted: found.counted.clone() })?;
        file.flush()
    }
}

impl<P: Serialize> Entry<P> {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        postcard::to_stdvec(self)
            .map_err(|error| crate::error::Error::internal(format!("pairs cannot be written: {error}")))
    }
}

fn file_name() -> String {
    format!("{READ_PREFIX}compared")
}
