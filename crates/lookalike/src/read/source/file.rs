//! The bytes of a source, wherever they are.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::file::reader::{ChunkReader, Length};

use crate::read::source::remote::{RemoteObject, RemoteReader};

/// Bytes that are made when they are read, the same ones every time: a corpus that need not be stored.
pub trait MadeBytes: Debug + Send + Sync {
    /// How many there are.
    fn size(&self) -> u64;

    /// Fills `bytes` from `offset` on.
    fn fill(&self, bytes: &mut [u8], offset: u64);
}

/// Where the bytes of a source are.
#[derive(Debug, Clone)]
pub enum Location {
    /// In a file.
    File(PathBuf),
    /// In a store.
    Remote(RemoteObject),
    /// Here.
    Memory(Arc<[u8]>),
    /// Nowhere: they are made.
    Made(Arc<dyn MadeBytes>),
    /// A stretch of another one.
    Part {
        /// What it is a part of.
        of: Box<Location>,
        /// Where it begins there.
        offset: u64,
        /// Its bytes.
        length: u64,
    },
}

impl Location {
    /// Opens it; nothing is counted.
    pub(crate) fn open(&self) -> io::Result<SourceFile<'static>> {
        self.source_file(None)
    }

    /// Opens it; what is read is added to `bytes_read`.
    pub(crate) fn open_counted<'r>(&self, bytes_read: &'r AtomicU64) -> io::Result<SourceFile<'r>> {
        self.source_file(Some(bytes_read))
    }

    fn source_file<'r>(&self, bytes_read: Option<&'r AtomicU64>) -> io::Result<SourceFile<'r>> {
        let window = match self {
            Location::Part { offset, length, .. } => Some(Window { start: *offset, length: *length, at: 0 }),
            _ => None,
        };
        let mut file = SourceFile { inner: self.inner()?, window, bytes_read };
        if file.window.is_some() {
            file.seek_to(0)?;
        }
        Ok(file)
    }

    /// The bytes there are.
    pub(crate) fn size(&self) -> io::Result<u64> {
        match self {
            Location::File(path) => Ok(std::fs::metadata(path)?.len()),
            Location::Remote(object) => Ok(object.size),
            Location::Memory(bytes) => Ok(bytes.len() as u64),
            Location::Made(bytes) => Ok(bytes.size()),
            Location::Part { length, .. } => Ok(*length),
        }
    }

    /// What is different once the bytes are others: a time, a version.
    pub(crate) fn version(&self) -> String {
        match self {
            Location::File(path) => {
                let modified = std::fs::metadata(path).and_then(|found| found.modified()).ok();
                modified.map_or_else(String::new, |time| format!("{time:?}"))
            }
            Location::Remote(object) => object.version.clone(),
            Location::Memory(_) | Location::Made(_) => String::new(),
            Location::Part { of, .. } => of.version(),
        }
    }

    /// The file, if it is one.
    #[must_use]
    pub fn path(&self) -> Option<&std::path::Path> {
        match self {
            Location::File(path) => Some(path),
            Location::Remote(_) | Location::Memory(_) | Location::Made(_) | Location::Part { .. } => None,
        }
    }

    fn inner(&self) -> io::Result<Inner> {
        Ok(match self {
            Location::File(path) => Inner::File(File::open(path)?),
            Location::Remote(object) => Inner::Remote(Box::new(RemoteReader::new(object.clone()))),
            Location::Memory(bytes) => Inner::Memory { bytes: Arc::clone(bytes), at: 0 },
            Location::Made(bytes) => Inner::Made { bytes: Arc::clone(bytes), at: 0 },
            Location::Part { of, .. } => of.inner()?,
        })
    }
}

enum Inner {
    File(File),
    Remote(Box<RemoteReader>),
    Memory { bytes: Arc<[u8]>, at: usize },
    Made { bytes: Arc<dyn MadeBytes>, at: u64 },
}

/// The stretch of a file that is read, and how far it has been.
struct Window {
    start: u64,
    length: u64,
    at: u64,
}

/// An open source: read on, or from a place.
pub(crate) struct SourceFile<'r> {
    inner: Inner,
    window: Option<Window>,
    bytes_read: Option<&'r AtomicU64>,
}

impl SourceFile<'_> {
    /// The bytes there are in `location`, which this is opened from.
    pub(crate) fn size(&self, location: &Location) -> io::Result<u64> {
        match &self.inner {
            Inner::File(file) if self.window.is_none() => Ok(file.metadata()?.len()),
            _ => location.size(),
        }
    }

    /// Goes on reading from `offset`.
    pub(crate) fn seek_to(&mut self, offset: u64) -> io::Result<()> {
        let offset = match &mut self.window {
            Some(window) => {
                window.at = offset.min(window.length);
                window.start + window.at
            }
            None => offset,
        };
        match &mut self.inner {
            Inner::File(file) => file.seek(SeekFrom::Start(offset)).map(|_| ()),
            Inner::Remote(reader) => {
                reader.seek_to(offset);
                Ok(())
            }
            Inner::Memory { bytes, at } => {
                *at = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                Ok(())
            }
            Inner::Made { bytes, at } => {
                *at = offset.min(bytes.size());
                Ok(())
            }
        }
    }

    /// Fills `bytes` from `offset` on.
    pub(crate) fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let offset = match &self.window {
            Some(window) if offset.saturating_add(bytes.len() as u64) > window.length => {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Some(window) => window.start + offset,
            None => offset,
        };
        match &self.inner {
            Inner::File(file) => file.read_exact_at(bytes, offset)?,
            Inner::Remote(reader) => reader.read_exact_at(bytes, offset)?,
            Inner::Memory { bytes: all, .. } => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let end = start.saturating_add(bytes.len());
                bytes.copy_from_slice(all.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?);
            }
            Inner::Made { bytes: all, .. } => {
                if offset.saturating_add(bytes.len() as u64) > all.size() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                all.fill(bytes, offset);
            }
        }
        self.count(bytes.len());
        Ok(())
    }

    fn count(&self, bytes: usize) {
        if let Some(total) = self.bytes_read {
            total.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }
}

impl Read for SourceFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = self
            .window
            .as_ref()
            .map_or(usize::MAX, |window| usize::try_from(window.length - window.at).unwrap_or(usize::MAX));
        let room = room.min(buffer.len());
        let buffer = &mut buffer[..room];
        let count = match &mut self.inner {
            Inner::File(file) => file.read(buffer)?,
            Inner::Remote(reader) => reader.read(buffer)?,
            Inner::Memory { bytes, at } => {
                let count = buffer.len().min(bytes.len() - *at);
                buffer[..count].copy_from_slice(&bytes[*at..*at + count]);
                *at += count;
                count
            }
            Inner::Made { bytes, at } => {
                let count = usize::try_from(bytes.size() - *at).unwrap_or(usize::MAX).min(buffer.len());
                bytes.fill(&mut buffer[..count], *at);
                *at += count as u64;
                count
            }
        };
        if let Some(window) = &mut self.window {
            window.at += count as u64;
        }
        self.count(count);
        Ok(count)
    }
}

/// What the Parquet library reads from.
#[derive(Clone)]
pub(crate) struct Chunks {
    location: Location,
    size: u64,
}

impl Chunks {
    pub(crate) fn new(location: &Location) -> io::Result<Chunks> {
        location.open()?; // a file that is not there is better reported now
        Ok(Chunks { location: location.clone(), size: location.size()? })
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Chunks {
    type T = io::BufReader<SourceFile<'static>>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        let mut file = self.location.open()?;
        file.seek_to(start)?;
        Ok(io::BufReader::new(file))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<bytes::Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.size) {
            return Err(parquet::errors::ParquetError::EOF("the file ends before its data".to_owned()));
        }
        let mut bytes = vec![0; length];
        self.location.open()?.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}
