//! The totals that were acknowledged last, in a file beside the store.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::index::live::MARK;
use crate::index::live::store::Totals;

/// What was acknowledged last: fjall takes a journal whose end is damaged for one that ended there. The file is not
/// synced; it may be behind, never ahead.
pub(crate) struct AcknowledgedMark(File);

impl AcknowledgedMark {
    pub(crate) fn open(directory: &Path) -> Result<AcknowledgedMark> {
        let path = directory.join(MARK);
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        file.map(AcknowledgedMark).map_err(Error::io(&path, "create"))
    }

    /// The totals; `None` if there is no mark that can be trusted. 0.1.0 wrote the number of the last change alone.
    pub(crate) fn read(directory: &Path) -> Option<Totals> {
        let bytes = std::fs::read(directory.join(MARK)).ok()?;
        let (numbers, check) = bytes.split_last_chunk::<8>()?;
        let number = |at: usize| Some(u64::from_le_bytes(numbers.get(at * 8..at * 8 + 8)?.try_into().ok()?));
        let totals = Totals { last: number(0)?, groups: number(1).unwrap_or(0), pages: number(2).unwrap_or(0) };
        (xxh3_64(numbers).to_le_bytes() == *check).then_some(totals)
    }

    /// Moves the mark; one that cannot be written stays behind.
    pub(crate) fn write(&mut self, totals: Totals) {
        let numbers: Vec<u8> =
            [totals.last, totals.groups, totals.pages].into_iter().flat_map(u64::to_le_bytes).collect();
        let bytes = [&numbers[..], &xxh3_64(&numbers).to_le_bytes()].concat();
        let _ = self.0.seek(SeekFrom::Start(0)).and_then(|_| self.0.write_all(&bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_and_damage_is_not_trusted() {
        let directory = tempfile::tempdir().unwrap();
        let totals = Totals { last: 9, groups: 4, pages: 7 };
        AcknowledgedMark::open(directory.path()).unwrap().write(totals);
        assert_eq!(AcknowledgedMark::read(directory.path()), Some(totals));
        let path = directory.path().join(MARK);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[3] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(AcknowledgedMark::read(directory.path()), None);
        // As 0.1.0 wrote it.
        std::fs::write(&path, [&5u64.to_le_bytes()[..], &xxh3_64(&5u64.to_le_bytes()).to_le_bytes()].concat()).unwrap();
        assert_eq!(AcknowledgedMark::read(directory.path()), Some(Totals { last: 5, ..Totals::default() }));
    }
}
