//! WACZ: a zip file that holds the web archives of a crawl, and what describes them.
//!
//! In: such a file. Out: where in it each web archive lies. They are stored as they are, so that each is a stretch of the
//! file, and records are read from their places in it. The rest (indexes, the list of pages, logs) is not read.

use std::borrow::Cow;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use zip::{CompressionMethod, ZipArchive};

use crate::read::source::file::{Location, SourceFile};

/// A web archive in a WACZ file.
pub(super) struct Archive {
    /// Its path there.
    pub(super) name: String,
    /// Where it is; or why it cannot be read there.
    pub(super) location: Result<Location, &'static str>,
}

/// What a zip file begins with.
const MAGIC: &[u8] = b"PK\x03\x04";
/// Where the web archives are.
const FOLDER: &str = "archive/";

/// The web archives in a file, by name; nothing if it is not WACZ.
pub(super) fn archives(head: &[u8], location: &Location) -> Option<io::Result<Vec<Archive>>> {
    if !head.starts_with(MAGIC) {
        return None;
    }
    match list(location) {
        Ok(archives) if archives.is_empty() => None,
        found => Some(found),
    }
}

/// A web archive by its path through a WACZ file, as sources name it.
pub(super) fn find(path: &Path) -> Option<Location> {
    let file = path.ancestors().skip(1).find(|outer| outer.is_file())?;
    let inner = path.strip_prefix(file).ok()?.to_str()?;
    let archives = list(&Location::File(file.to_path_buf())).ok()?;
    archives.into_iter().find(|archive| archive.name == inner)?.location.ok()
}

fn list(location: &Location) -> io::Result<Vec<Archive>> {
    let size = location.size()?;
    let mut zip = ZipArchive::new(io::BufReader::new(SeekableFile { file: location.open()?, at: 0, size }))
        .map_err(|error| io::Error::other(format!("cannot be read as WACZ (a zip file): {error}")))?;
    let mut archives = Vec::new();
    for number in 0..zip.len() {
        let entry = zip
            .by_index_raw(number)
            .map_err(|error| io::Error::other(format!("cannot be read as WACZ (a zip file): {error}")))?;
        let Ok(name) = entry.name().map(Cow::into_owned) else { continue };
        let lower = name.to_ascii_lowercase();
        let is_archive = [".warc", ".warc.gz", ".warc.zst"].iter().any(|ending| lower.ends_with(ending));
        if !name.starts_with(FOLDER) || !is_archive {
            continue;
        }
        let (offset, length) = (entry.data_start().unwrap_or(u64::MAX), entry.compressed_size());
        let place = if entry.encrypted() {
            Err("is encrypted")
        } else if entry.compression() != CompressionMethod::Stored {
            Err(
                "is packed once more inside the WACZ file; make that with zip -0, which stores files as they are, or unpack it first",
            )
        } else if offset.checked_add(length).is_none_or(|end| end > size) {
            Err("lies beyond the end of the WACZ file, which is cut off")
        } else {
            Ok(Location::Part { of: Box::new(location.clone()), offset, length })
        };
        archives.push(Archive { name, location: place });
    }
    archives.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(archives)
}

/// What the zip library reads from.
struct SeekableFile {
    file: SourceFile<'static>,
    at: u64,
    size: u64,
}

impl Read for SeekableFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for SeekableFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        self.file.seek_to(self.at)?;
        Ok(self.at)
    }
}
