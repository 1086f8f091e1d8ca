//! Files of entries, each with its length and a checksum: what a killed run has written of one is known.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};

/// The length and the checksum in front of an entry.
const HEAD_BYTES: usize = 16;

/// Writes a file entry by entry.
pub(super) struct EntryWriter {
    path: PathBuf,
    file: BufWriter<File>,
}

impl EntryWriter {
    /// Begins a file.
    pub(super) fn create(path: &Path) -> Result<EntryWriter> {
        let file = File::create(path).map_err(Error::io(path, "create"))?;
        Ok(EntryWriter { path: path.to_path_buf(), file: BufWriter::new(file) })
    }

    /// Goes on behind the first `bytes` of a file; what follows them is cut off.
    pub(super) fn go_on(path: &Path, bytes: u64) -> Result<EntryWriter> {
        let file = File::options().append(true).open(path).map_err(Error::io(path, "write"))?;
        file.set_len(bytes).map_err(Error::io(path, "write"))?;
        Ok(EntryWriter { path: path.to_path_buf(), file: BufWriter::new(file) })
    }

    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let write = |file: &mut BufWriter<File>| {
            file.write_all(&(bytes.len() as u64).to_le_bytes())?;
            file.write_all(&xxh3_64(bytes).to_le_bytes())?;
            file.write_all(bytes)
        };
        write(&mut self.file).map_err(Error::io(&self.path, "write"))
    }

    /// What was added can be read from now on.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(Error::io(&self.path, "write"))
    }
}

/// Reads a file entry by entry: the bytes of each.
pub(super) struct Entries {
    path: PathBuf,
    file: BufReader<File>,
    /// Bytes that have been read.
    at: u64,
    length: u64,
}

impl Entries {
    pub(super) fn open(path: &Path) -> Result<Entries> {
        let file = File::open(path).map_err(Error::io(path, "read"))?;
        let length = file.metadata().map_err(Error::io(path, "read"))?.len();
        Ok(Entries { path: path.to_path_buf(), file: BufReader::new(file), at: 0, length })
    }

    /// The same for a file that may not be there, as it had no entry.
    pub(super) fn open_if_any(path: &Path) -> Result<Option<Entries>> {
        if path.exists() { Entries::open(path).map(Some) } else { Ok(None) }
    }

    /// Where the last entry ended that was read.
    pub(super) fn position(&self) -> u64 {
        self.at
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; HEAD_BYTES];
        self.file.read_exact(&mut head)?;
        let (length, sum) = head.split_at(8);
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let length = number(length);
        let end = (self.at + HEAD_BYTES as u64).checked_add(length).filter(|&end| end <= self.length);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut bytes = Vec::with_capacity(usize::try_from(length).map_err(|_| io::ErrorKind::InvalidData)?);
        (&mut self.file).take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if xxh3_64(&bytes) != number(sum) {
            return Err(io::Error::other("a checksum is wrong"));
        }
        self.at = end;
        Ok(bytes)
    }
}

impl Iterator for Entries {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.length {
            return None;
        }
        let entry = self.read().map_err(|error| broken(&self.path, &error.to_string()));
        if entry.is_err() {
            self.length = self.at;
        }
        Some(entry)
    }
}

/// A file of an earlier run that is not what it should be.
pub(super) fn broken(path: &Path, reason: &str) -> Error {
    Error::corrupt(path, format!("cannot be used ({reason}); run without `resume`"))
}

/// Writes a small file so that it is there whole or not at all.
pub(super) fn write_whole(path: &Path, text: &str) -> Result<()> {
    let begun = path.with_extension("begun");
    fs::write(&begun, text).map_err(Error::io(path, "write"))?;
    fs::rename(&begun, path).map_err(Error::io(path, "write"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries_of(path: &Path) -> (Vec<Vec<u8>>, bool, u64) {
        let mut entries = Entries::open(path).unwrap();
        let mut found = Vec::new();
        let mut is_whole = true;
        for entry in &mut entries {
            match entry {
                Ok(bytes) => found.push(bytes),
                Err(_) => is_whole = false,
            }
        }
        (found, is_whole, entries.position())
    }

    #[test]
    fn a_file_that_was_cut_off_anywhere_goes_on_behind_its_last_whole_entry() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("entries");
        let all: Vec<Vec<u8>> = [3, 0, 200, 7].map(|length| vec![length; usize::from(length)]).into();
        let mut writer = EntryWriter::create(&path).unwrap();
        all.iter().for_each(|entry| writer.add(entry).unwrap());
        writer.flush().unwrap();
        let whole = fs::read(&path).unwrap();
        assert_eq!(entries_of(&path), (all.clone(), true, whole.len() as u64));
        let mut ends = vec![0];
        all.iter().for_each(|entry| ends.push(ends[ends.len() - 1] + 16 + entry.len()));
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let count = ends.iter().filter(|&&end| end <= length).count() - 1;
            let (found, is_whole, position) = entries_of(&path);
            assert_eq!((&found[..], position), (&all[..count], ends[count] as u64), "{length}");
            assert_eq!(is_whole, ends.contains(&length), "{length}");
            let mut writer = EntryWriter::go_on(&path, position).unwrap();
            all[count..].iter().for_each(|entry| writer.add(entry).unwrap());
            writer.flush().unwrap();
            assert!(fs::read(&path).unwrap() == whole, "{length}");
        }
    }

    #[test]
    fn an_entry_with_other_bytes_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("entries");
        let mut writer = EntryWriter::create(&path).unwrap();
        writer.add(b"words").unwrap();
        writer.add(b"other words").unwrap();
        writer.flush().unwrap();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, bytes).unwrap();
            let (found, is_whole, _) = entries_of(&path);
            assert!(!is_whole && found.len() == usize::from(at >= 16 + 5), "{at}");
        }
    }
}
