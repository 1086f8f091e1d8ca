//! Groups that wait to be shipped, in files of the index.
//!
//! In: groups, in their order, from the thread that stores: each before it is written to the store, and once more when it is.
//! Out: those that are written, oldest first, until they are shipped. The files are not synced: they survive the death of
//! the process, and of what a machine loses when its power fails is noticed that it is missing. Then, and when too much
//! waits, nothing of it is left, and a base is shipped instead.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};

/// Bytes of a file before the next one is begun.
const FILE_BYTES: u64 = 32 << 20;
/// Bytes that may wait.
const MOST_BYTES: u64 = 4 << 30;
/// Bytes before a group: its length, number and checksum.
const HEAD: usize = 20;

struct OutboxFile {
    path: PathBuf,
    bytes: u64,
}

/// Groups that wait to be shipped.
pub(super) struct Outbox {
    directory: PathBuf,
    files: VecDeque<OutboxFile>,
    /// The last file, open for writing.
    writer: Option<File>,
    /// Where the next group is read, in the first file.
    read_at: u64,
    /// The numbers of the first and the last group that wait.
    waiting: Option<(u64, u64)>,
    /// Where the last group begins in the last file.
    last_start: u64,
    /// The number of the last group that is on disk.
    committed: u64,
    /// Whether groups are missing, so that a base must be shipped.
    has_gap: bool,
    most_bytes: u64,
}

impl Outbox {
    /// What waits in a directory.
    pub(super) fn open(directory: &Path) -> Result<Outbox> {
        std::fs::create_dir_all(directory).map_err(Error::io(directory, "create"))?;
        let entries = std::fs::read_dir(directory).map_err(Error::io(directory, "read"))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let mut outbox = Outbox {
            directory: directory.to_path_buf(),
            files: VecDeque::new(),
            writer: None,
            read_at: 0,
            waiting: None,
            last_start: 0,
            committed: 0,
            has_gap: false,
            most_bytes: MOST_BYTES,
        };
        for path in paths {
            let mut file = File::open(&path).map_err(Error::io(&path, "read"))?;
            let mut end = 0;
            while let Some((number, bytes)) = read_group(&mut file) {
                let (first, last) = outbox.waiting.unwrap_or((number, number - 1));
                outbox.has_gap |= number != last + 1;
                outbox.waiting = Some((first, number));
                outbox.last_start = end;
                end += (HEAD + bytes.len()) as u64;
            }
            if end == 0 {
                // Whoever began it was killed.
                std::fs::remove_file(&path).map_err(Error::io(&path, "remove"))?;
                continue;
            }
            outbox.files.push_back(OutboxFile { path, bytes: end });
        }
        Ok(outbox)
    }

    /// The numbers of the first and the last group that wait.
    pub(super) fn waiting(&self) -> Option<(u64, u64)> {
        self.waiting
    }

    pub(super) fn has_gap(&self) -> bool {
        self.has_gap
    }

    /// The group with this number is on disk, with all before it.
    pub(super) fn commit(&mut self, number: u64) {
        self.committed = number;
    }

    /// Takes a group, in the place of one with the same number that could not be written.
    pub(super) fn push(&mut self, number: u64, bytes: &[u8]) {
        self.drop_after(number - 1);
        // Whoever goes on has found the one before on disk.
        self.committed = self.committed.max(number - 1);
        if self.waiting.is_some_and(|(_, last)| number != last + 1)
            || self.files.iter().map(|file| file.bytes).sum::<u64>() > self.most_bytes
        {
            self.clear();
            self.has_gap = true;
        }
        if self.has_gap {
            return;
        }
        // Whatever cannot be written is missed when it is to be shipped.
        if self.write(number, bytes).is_err() {
            self.clear();
            self.has_gap = true;
            return;
        }
        self.waiting = Some((self.waiting.map_or(number, |(first, _)| first), number));
    }

    /// Forgets the last group, if its number is larger.
    pub(super) fn drop_after(&mut self, number: u64) {
        let Some((first, last)) = self.waiting.filter(|(_, last)| *last > number) else { return };
        if last != number + 1 {
            self.clear();
            self.has_gap = true;
            return;
        }
        self.waiting = (first < last).then_some((first, number));
        self.writer = None;
        if let Some(file) = self.files.back_mut() {
            file.bytes = self.last_start;
            let cut = File::options().write(true).open(&file.path).and_then(|open| open.set_len(self.last_start));
            self.has_gap |= cut.is_err();
        }
        if self.last_start == 0
            && let Some(file) = self.files.pop_back()
        {
            // What stays is not a group, and is dropped at the next start.
            let _ = std::fs::remove_file(&file.path);
        }
        if self.waiting.is_none() {
            self.clear();
        }
    }

    fn write(&mut self, number: u64, bytes: &[u8]) -> std::io::Result<()> {
        if self.writer.is_none() || self.files.back().is_none_or(|file| file.bytes >= FILE_BYTES) {
            let path = self.directory.join(format!("{number:020}.groups"));
            self.writer = Some(File::create(&path)?);
            self.files.push_back(OutboxFile { path, bytes: 0 });
        }
        let mut framed = u32::try_from(bytes.len()).map_err(std::io::Error::other)?.to_le_bytes().to_vec();
        framed.extend(number.to_le_bytes());
        framed.extend(xxh3_64(bytes).to_le_bytes());
        framed.extend(bytes);
        if let (Some(writer), Some(file)) = (&mut self.writer, self.files.back_mut()) {
            self.last_start = file.bytes;
            writer.write_all(&framed)?;
            file.bytes += framed.len() as u64;
        }
        Ok(())
    }

    /// The oldest groups that are on disk, about `most_bytes` of them.
    pub(super) fn peek(&mut self, most_bytes: usize) -> Vec<(u64, Vec<u8>)> {
        let (mut groups, mut bytes) = (Vec::new(), 0);
        let Some((first, _)) = self.waiting.filter(|(first, _)| *first <= self.committed) else { return groups };
        let mut at = self.read_at;
        for file in &self.files {
            let Ok(mut reader) = File::open(&file.path) else { break };
            if reader.seek(SeekFrom::Start(at)).is_err() {
                break;
            }
            while at < file.bytes && bytes < most_bytes {
                let Some((number, group)) = read_group(&mut reader) else { break };
                if number > self.committed {
                    break;
                }
                at += (HEAD + group.len()) as u64;
                bytes += group.len();
                groups.push((number, group));
            }
            if at < file.bytes {
                break;
            }
            at = 0;
        }
        let is_whole = groups.iter().zip(first..).all(|((number, _), expected)| *number == expected);
        if groups.is_empty() || !is_whole {
            self.clear();
            self.has_gap = true;
            groups.clear();
        }
        groups
    }

    /// Forgets the oldest groups, up to and with the one with this number, which `peek` has returned with all before it.
    pub(super) fn shipped(&mut self, groups: &[(u64, Vec<u8>)]) {
        let Some((first, last)) = self.waiting else { return };
        let mut next = first;
        for (number, bytes) in groups {
            // It may have been cleared meanwhile.
            if *number != next || *number > last {
                return;
            }
            next += 1;
            self.read_at += (HEAD + bytes.len()) as u64;
            self.waiting = (next <= last).then_some((next, last));
            if self.files.front().is_some_and(|file| self.read_at >= file.bytes) {
                self.drop_first();
            }
        }
    }

    /// Forgets groups up to and with this one.
    pub(super) fn forget_until(&mut self, group: u64) {
        if self.waiting.is_some_and(|(_, last)| last <= group) {
            self.clear();
        }
        while let Some((first, last)) = self.waiting.filter(|(first, _)| *first <= group) {
            let groups = self.peek(1);
            if groups.is_empty() {
                return;
            }
            self.shipped(&groups);
            if self.waiting == Some((first, last)) {
                return;
            }
        }
    }

    fn drop_first(&mut self) {
        if let Some(file) = self.files.pop_front() {
            // What stays is met again, and dropped, at the next start.
            let _ = std::fs::remove_file(&file.path);
        }
        if self.files.is_empty() {
            self.writer = None;
        }
        self.read_at = 0;
    }

    /// Forgets all that waits.
    pub(super) fn clear(&mut self) {
        while !self.files.is_empty() {
            self.drop_first();
        }
        (self.writer, self.read_at, self.waiting) = (None, 0, None);
    }

    /// From now on groups are taken again: a base has all that are missing.
    pub(super) fn begin_anew(&mut self) {
        self.clear();
        self.has_gap = false;
    }
}

fn read_group(reader: &mut File) -> Option<(u64, Vec<u8>)> {
    let mut head = [0; HEAD];
    reader.read_exact(&mut head).ok()?;
    let length = u32::from_le_bytes(head[..4].try_into().ok()?);
    let number = u64::from_le_bytes(head[4..12].try_into().ok()?);
    let mut bytes = Vec::new();
    reader.take(length.into()).read_to_end(&mut bytes).ok()?;
    let is_whole = bytes.len() == length as usize && xxh3_64(&bytes).to_le_bytes() == head[12..];
    (is_whole && number > 0).then_some((number, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(number: u64) -> (u64, Vec<u8>) {
        (number, vec![u8::try_from(number).unwrap(); 100])
    }

    fn push(outbox: &mut Outbox, numbers: std::ops::RangeInclusive<u64>) {
        for (number, bytes) in numbers.map(group) {
            outbox.push(number, &bytes);
            outbox.commit(number);
        }
    }

    #[test]
    fn groups_wait_in_their_order_and_survive_the_process() {
        let directory = tempfile::tempdir().unwrap();
        let mut outbox = Outbox::open(directory.path()).unwrap();
        push(&mut outbox, 5..=9);
        let two = outbox.peek(150);
        assert_eq!(two, [group(5), group(6)]);
        assert_eq!(outbox.peek(150), two, "they stay until they are shipped");
        drop(outbox);
        let mut outbox = Outbox::open(directory.path()).unwrap();
        assert_eq!((outbox.waiting(), outbox.has_gap()), (Some((5, 9)), false));
        assert!(outbox.peek(1).is_empty(), "nobody has said yet that they are on disk");
        outbox.commit(9);
        outbox.forget_until(6);
        assert_eq!(outbox.waiting(), Some((7, 9)));
        let rest = outbox.peek(usize::MAX);
        push(&mut outbox, 10..=10);
        outbox.shipped(&rest);
        assert_eq!((outbox.waiting(), outbox.peek(1)), (Some((10, 10)), vec![group(10)]));
        outbox.forget_until(10);
        assert_eq!((outbox.waiting(), std::fs::read_dir(directory.path()).unwrap().count()), (None, 0));
        push(&mut outbox, 11..=11);
        assert_eq!(outbox.peek(1), [group(11)]);
    }

    #[test]
    fn a_group_that_was_not_written_is_neither_shipped_nor_missed() {
        let directory = tempfile::tempdir().unwrap();
        let mut outbox = Outbox::open(directory.path()).unwrap();
        push(&mut outbox, 1..=2);
        outbox.push(3, b"it fails");
        assert_eq!(outbox.peek(usize::MAX), [group(1), group(2)]);
        push(&mut outbox, 3..=3);
        assert_eq!(outbox.peek(usize::MAX), [group(1), group(2), group(3)], "another one has its number");
        outbox.push(4, &group(4).1);
        // It was there all the same, when the store was opened again.
        push(&mut outbox, 5..=5);
        assert_eq!(outbox.peek(usize::MAX).len(), 5);
        outbox.push(6, b"killed before it was written");
        drop(outbox);
        let path = std::fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        for cut in [0, 1, 40] {
            std::fs::write(&path, &bytes[..bytes.len() - cut]).unwrap();
            let mut outbox = Outbox::open(directory.path()).unwrap();
            outbox.drop_after(5);
            outbox.commit(5);
            assert_eq!((outbox.waiting(), outbox.has_gap()), (Some((1, 5)), false));
            let all = outbox.peek(usize::MAX);
            push(&mut outbox, 6..=6);
            assert_eq!((all.len(), outbox.peek(usize::MAX).len()), (5, 6));
            outbox.drop_after(5);
        }
        let mut outbox = Outbox::open(directory.path()).unwrap();
        outbox.commit(5);
        outbox.forget_until(5);
        outbox.push(6, b"alone");
        outbox.drop_after(5);
        assert_eq!((outbox.waiting(), outbox.has_gap()), (None, false));
        push(&mut outbox, 6..=6);
        assert_eq!(outbox.peek(1), [group(6)]);
    }

    #[test]
    fn what_is_missing_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let mut outbox = Outbox::open(directory.path()).unwrap();
        push(&mut outbox, 1..=1);
        push(&mut outbox, 3..=3);
        assert_eq!((outbox.has_gap(), outbox.waiting()), (true, None));
        push(&mut outbox, 4..=4);
        assert_eq!(outbox.waiting(), None, "a base will have it");
        outbox.begin_anew();
        push(&mut outbox, 5..=6);
        outbox.most_bytes = 150;
        push(&mut outbox, 7..=7);
        assert!(outbox.has_gap(), "too much waits");
    }
}
