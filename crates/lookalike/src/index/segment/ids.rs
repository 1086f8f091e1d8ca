//! The ids of rows: numbers, or text; written once, in the order of the fingerprints.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::index::segment::file::{Section, SegmentFile, SegmentWriter};
use crate::names::named;
use crate::spill::{Scratch, Spill};

/// The id of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// A number.
    Number(u64),
    /// A text.
    Text(Arc<str>),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Number(number) => write!(f, "{number}"),
            Id::Text(text) => write!(f, "{text}"),
        }
    }
}

impl Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Id::Number(number) => serializer.serialize_u64(*number),
            Id::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Id {
        Id::Text(text.into())
    }
}

named! {
    /// What kind of ids an index has.
    pub enum IdKind {
        /// Whole numbers, a few bytes each
        Number = "number",
        /// Anything
        Text = "text",
    }
}

impl Id {
    /// The kind it is of.
    #[must_use]
    pub fn kind(&self) -> IdKind {
        match self {
            Id::Number(_) => IdKind::Number,
            Id::Text(_) => IdKind::Text,
        }
    }
}

/// Ids that wait for their place: 8 bytes stand for each of them while rows are sorted.
pub(crate) enum PendingIds {
    Numbers {
        largest: u64,
    },
    /// A length of four bytes, then the text.
    Texts(Spill<u8>),
}

/// Bytes of a text that are read at once; most are shorter.
const READ_BYTES: u64 = 124;
/// Bytes that are collected before they are written.
const WRITE_BYTES: usize = 64 << 10;

impl PendingIds {
    pub(crate) fn new(kind: IdKind, directory: &Path, memory_bytes: u64) -> PendingIds {
        match kind {
            IdKind::Number => PendingIds::Numbers { largest: 0 },
            IdKind::Text => {
                // More than the address space is not a limit.
                let limit = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
                PendingIds::Texts(Spill::new(directory.join("ids"), limit))
            }
        }
    }

    /// Takes an id; returns what stands for it.
    pub(crate) fn put(&mut self, id: &Id) -> Result<u64> {
        match (self, id) {
            (PendingIds::Numbers { largest }, Id::Number(number)) => {
                *largest = (*largest).max(*number);
                Ok(*number)
            }
            (PendingIds::Texts(texts), id) => {
                let text = id.to_string();
                let length = u32::try_from(text.len())
                    .map_err(|_| Error::invalid("id", format!("of {} bytes", text.len()), "must be below 4 GiB"))?;
                let at = texts.append(&length.to_le_bytes())?;
                texts.append(text.as_bytes())?;
                Ok(at)
            }
            (PendingIds::Numbers { .. }, Id::Text(text)) => {
                Err(Error::internal(format!("the id '{text}' was not checked: the ids of this index are numbers")))
            }
        }
    }

    /// Writes ids in the order in which `visit_all` visits what stands for them; returns the bytes of a number.
    pub(crate) fn write<W: Write>(
        &mut self,
        name: &str,
        count: u64,
        visit_all: impl FnOnce(&mut dyn FnMut(u64) -> Result<()>) -> Result<()>,
        directory: &Path,
        out: &mut SegmentWriter<W>,
    ) -> Result<usize> {
        out.begin(name)?;
        let texts = match self {
            PendingIds::Texts(texts) => texts,
            PendingIds::Numbers { largest } => {
                let width = bytes_of(*largest);
                let mut bytes = Vec::with_capacity(WRITE_BYTES + 8);
                visit_all(&mut |id| {
                    bytes.extend_from_slice(&id.to_le_bytes()[..width]);
                    if bytes.len() >= WRITE_BYTES {
                        out.write(&bytes)?;
                        bytes.clear();
                    }
                    Ok(())
                })?;
                out.write(&bytes)?;
                return Ok(width);
            }
        };
        texts.finish()?;
        let (mut scratch, mut position) = (Scratch::default(), 0u64);
        // Segments that are made in memory have no directory.
        let limit = if directory.as_os_str().is_empty() { usize::MAX } else { 64 << 20 };
        let mut offsets = Spill::<u64>::new(directory.join("id-offsets"), limit);
        offsets.append(&[0])?;
        visit_all(&mut |at| {
            let mut bytes = texts.read(at..(at + 4 + READ_BYTES).min(texts.len()), &mut scratch)?;
            let length = u32::from_le_bytes(*bytes.first_chunk().expect("every text follows its length"));
            if u64::from(length) > READ_BYTES {
                bytes = texts.read(at..at + 4 + u64::from(length), &mut scratch)?;
            }
            out.write(&bytes[4..4 + length as usize])?;
            position += u64::from(length);
            offsets.append(&[position])?;
            Ok(())
        })?;
        offsets.finish()?;
        let width = bytes_of(position);
        out.begin(format!("{name}-offset"))?;
        let mut scratch = Scratch::default();
        let mut from = 0;
        while from <= count {
            let to = (from + 65_536).min(count + 1);
            for offset in offsets.read(from..to, &mut scratch)? {
                out.write(&offset.to_le_bytes()[..width])?;
            }
            from = to;
        }
        Ok(width)
    }
}

/// Bytes that a number takes.
fn bytes_of(largest: u64) -> usize {
    (64 - largest.leading_zeros()).div_ceil(8).max(1) as usize
}

/// The ids of a segment.
pub(crate) struct Ids {
    file: Arc<SegmentFile>,
    kind: IdKind,
    width: usize,
    ids: Section,
    offsets: Section,
}

impl Ids {
    pub(crate) fn open(file: &Arc<SegmentFile>, name: &str, kind: IdKind, width: usize, rows: u64) -> Result<Ids> {
        let offsets = file.section(&format!("{name}-offset"));
        let ids = Ids { file: Arc::clone(file), kind, width, ids: file.section(name), offsets };
        let (numbers, count) = match kind {
            IdKind::Number => (&ids.ids, rows),
            IdKind::Text => (&ids.offsets, rows.saturating_add(1)),
        };
        if !(1..=8).contains(&width) || Some(numbers.len() as u64) != count.checked_mul(width as u64) {
            return Err(file.corrupt("is damaged: the ids are not as many as the rows"));
        }
        Ok(ids)
    }

    pub(crate) fn get(&self, row: u64) -> Result<Id> {
        let at = usize::try_from(row).expect("a segment has fewer than 2^32 rows");
        match self.kind {
            IdKind::Number => Ok(Id::Number(self.ids.number(at, self.width)?)),
            IdKind::Text => {
                let (from, to) = (self.offsets.number(at, self.width)?, self.offsets.number(at + 1, self.width)?);
                let range = usize::try_from(from).ok().zip(usize::try_from(to).ok());
                let range = range.filter(|&(from, to)| from <= to && to <= self.ids.len());
                let Some((from, to)) = range else {
                    return Err(self.file.corrupt("is damaged: an id lies outside of the ids"));
                };
                match std::str::from_utf8(self.ids.bytes(from..to)?) {
                    Ok(text) => Ok(Id::from(text)),
                    Err(_) => Err(self.file.corrupt("is damaged: an id is not UTF-8")),
                }
            }
        }
    }
}
