//! Stretches of a plain file → another plain file.
//!
//! In: stretches, ascending. Out: their bytes, one after the other. Long stretches are copied by the system, which need not move bytes
//! through this process; many short ones that are near each other are read together and written together, as a call for each of them
//! would take longer than the bytes.

use std::fs::File;
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::read::Source;
use crate::report::sinks::records::bytes::{Stretch, TO_THE_END};
use crate::report::sinks::records::target::Target;
use crate::report::sinks::records::truncated;

/// A stretch from this length on is copied by the system.
const LONG_BYTES: u64 = 256 << 10;
/// Bytes that are read together.
const WINDOW_BYTES: u64 = 1 << 20;
/// Bytes between two stretches that are read and not copied.
const MOST_BETWEEN_BYTES: u64 = 32 << 10;
/// Stretches that the system writes in one call.
const MOST_TOGETHER: usize = 1024;
/// Bytes that are copied between two looks at whether the run is to stop.
const BYTES_BETWEEN_CHECKS: u64 = 64 << 20;

/// Copies stretches from one file to others.
pub(super) struct PlainCopy<'a> {
    source: &'a Source,
    from: File,
    window: Vec<u8>,
    target: &'a Target<'a>,
    unchecked: u64,
}

impl<'a> PlainCopy<'a> {
    pub(super) fn new(source: &'a Source, from: File, target: &'a Target<'a>) -> PlainCopy<'a> {
        PlainCopy { source, from, window: Vec::new(), target, unchecked: BYTES_BETWEEN_CHECKS }
    }

    /// Copies to `out`, whose name is `path`.
    pub(super) fn copy(&mut self, mut stretches: &[Stretch], out: &mut File, path: &Path) -> Result<()> {
        while let Some(&(start, end)) = stretches.first() {
            let together = together(stretches);
            let (some, rest) = stretches.split_at(together.max(1));
            if together > 0 {
                self.copy_short(some, out, path)?;
            } else {
                self.copy_long(start, end, out, path)?;
            }
            stretches = rest;
        }
        Ok(())
    }

    fn copy_long(&mut self, start: u64, end: u64, out: &mut File, path: &Path) -> Result<()> {
        self.from.seek(SeekFrom::Start(start)).map_err(Error::io(&self.source.path(), "read"))?;
        let mut left = end - start;
        while left > 0 {
            self.check()?;
            let wanted = left.min(BYTES_BETWEEN_CHECKS);
            let copied = io::copy(&mut Read::take(&self.from, wanted), out).map_err(Error::io(path, "write"))?;
            (left, self.unchecked) = (left - copied, self.unchecked + copied);
            if copied < wanted {
                return if end == TO_THE_END { Ok(()) } else { Err(truncated(self.source)) };
            }
        }
        Ok(())
    }

    fn copy_short(&mut self, stretches: &[Stretch], out: &mut File, path: &Path) -> Result<()> {
        let (Some(&(first, _)), Some(&(_, end))) = (stretches.first(), stretches.last()) else { return Ok(()) };
        self.check()?;
        let index = |at: u64| usize::try_from(at - first).expect("a window is in memory");
        self.window.resize(index(end).max(self.window.len()), 0);
        self.from.read_exact_at(&mut self.window[..index(end)], first).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => truncated(self.source),
            _ => Error::io(&self.source.path(), "read")(error),
        })?;
        let mut slices: Vec<IoSlice<'_>> =
            stretches.iter().map(|&(start, end)| IoSlice::new(&self.window[index(start)..index(end)])).collect();
        write_all(out, &mut slices).map_err(Error::io(path, "write"))?;
        self.unchecked += end - first;
        Ok(())
    }

    /// Fails if the run is to stop.
    fn check(&mut self) -> Result<()> {
        if self.unchecked >= BYTES_BETWEEN_CHECKS {
            self.target.check()?;
            self.unchecked = 0;
        }
        Ok(())
    }
}

/// How many of the first stretches are read together; none if the first one is long.
fn together(stretches: &[Stretch]) -> usize {
    let Some(&(first, mut last)) = stretches.first() else { return 0 };
    let is_long = last - first >= LONG_BYTES;
    let is_near = |&&(start, end): &&Stretch| {
        let is_near = end - start < LONG_BYTES && end - first <= WINDOW_BYTES && start - last <= MOST_BETWEEN_BYTES;
        last = end;
        is_near
    };
    if is_long { 0 } else { 1 + stretches[1..].iter().take(MOST_TOGETHER - 1).take_while(is_near).count() }
}

fn write_all(out: &mut impl Write, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Empty ones would look like a file that takes no more.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match out.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // a small file
mod tests {
    use super::*;
    use crate::read::Source;
    use crate::report::outputs::KeptCompression;
    use crate::report::sinks::records::target::{Packing, names};
    use proptest::prelude::*;

    const FILE_BYTES: u64 = 3 << 20;

    fn copied(stretches: &[Stretch]) -> (Vec<u8>, Result<Vec<u8>>) {
        let bytes: Vec<u8> = (0..FILE_BYTES).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from.jsonl"), directory.path().join("to"));
        std::fs::write(&from, &bytes).unwrap();
        let source = Source::in_memory("from.jsonl", b"{}".to_vec(), None).unwrap();
        let name = names(std::slice::from_ref(&source), KeptCompression::Same, None, &[]).remove(0);
        let target = Target::new(directory.path(), name, None, Packing::new(&source, KeptCompression::Same));
        let mut copy = PlainCopy::new(&source, File::open(&from).unwrap(), &target);
        let done = copy.copy(stretches, &mut File::create(&to).unwrap(), &to);
        (bytes, done.map(|()| std::fs::read(&to).unwrap()))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn what_is_copied_is_what_stands_there(
            lengths in prop::collection::vec((0u64..40_000, prop_oneof![0u64..9000, 200_000u64..700_000]), 0..60),
            goes_to_the_end in any::<bool>(),
        ) {
            let (mut stretches, mut at): (Vec<Stretch>, u64) = (Vec::new(), 0);
            for (between, length) in lengths {
                let (start, end) = (at + between, at + between + length);
                if end <= FILE_BYTES {
                    stretches.push((start, end));
                    at = end;
                }
            }
            if goes_to_the_end {
                stretches.push((at, TO_THE_END));
            }
            let (bytes, found) = copied(&stretches);
            let index = |at: u64| usize::try_from(at.min(FILE_BYTES)).unwrap();
            let range = |&(start, end): &Stretch| &bytes[index(start)..index(end)];
            let expected: Vec<u8> = stretches.iter().flat_map(range).copied().collect();
            prop_assert!(found.unwrap() == expected);
        }
    }

    #[test]
    fn a_file_that_has_become_shorter_is_an_error() {
        for stretch in [(FILE_BYTES - 10, FILE_BYTES + 1), (10, FILE_BYTES + LONG_BYTES)] {
            let error = copied(&[(0, 5), stretch]).1.unwrap_err().to_string();
            assert!(error.contains("shorter than when it was read"), "{error}");
        }
    }
}
