//! The ids of rows: numbers, or text; written once, in the order of the fingerprints.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::error::Result;
use crate::index::segment::file::{Section, SegmentFile, SegmentWriter};
use crate::names::named;
use crate::spill::{Scratch, Spill};

/// What a row is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// By a number.
    Number(u64),
    /// By a text.
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
    /// What the ids of an index are.
    pub enum IdKind {
        /// Whole numbers, a few bytes each
        Number = "number",
        /// Anything
        Text = "text",
    }
}

impl Id {
    /// What it is.
    #[must_use]
    pub fn kind(&self) -> IdKind {
        match self {
            Id::Number(_) => IdKind::Number,
            Id::Text(_) => IdKind::Text,
        }
    }
}

/// Ids that wait for their place: 8 bytes each stand for them while rows are sorted.
pub(crate) enum PendingIds {
    Numbers {
        largest: u64,
    },
    /// A length of four bytes, then the text.
    Texts(Spill<u8>),
}

/// Bytes of a text that are read at once; most are shorter.
const READ: u64 = 124;
/// Bytes that are collected before they are written.
const WRITE: usize = 64 << 10;

impl PendingIds {
    pub(crate) fn new(kind: IdKind, directory: &Path, memory_bytes: u64) -> PendingIds {
        match kind {
            IdKind::Number => PendingIds::Numbers { largest: 0 },
            IdKind::Text => {
                let limit = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
                PendingIds::Texts(Spill::new(directory.join("ids"), limit))
            }
        }
    }

    /// Takes an id; gives what stands for it.
    pub(crate) fn put(&mut self, id: &Id) -> Result<u64> {
        match (self, id) {
            (PendingIds::Numbers { largest }, Id::Number(number)) => {
                *largest = (*largest).max(*number);
                Ok(*number)
            }
            (PendingIds::Texts(texts), id) => {
                let text = id.to_string();
                let at = texts.append(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes())?;
                texts.append(text.as_bytes())?;
                Ok(at)
            }
            (PendingIds::Numbers { .. }, Id::Text(text)) => {
                Err(crate::error::Error::Usage(format!("'{text}' is no number, and the ids of this index are numbers")))
            }
        }
    }

    /// Bytes a number takes, or none for texts.
    fn number_width(&self) -> Option<usize> {
        match self {
            PendingIds::Numbers { largest } => Some(bytes_of(*largest)),
            PendingIds::Texts(_) => None,
        }
    }

    /// Writes ids in the order in which `each` tells what stands for them.
    pub(crate) fn write<W: Write>(
        &mut self,
        name: &str,
        count: u64,
        each: impl FnOnce(&mut dyn FnMut(u64) -> Result<()>) -> Result<()>,
        directory: &Path,
        out: &mut SegmentWriter<W>,
    ) -> Result<usize> {
        out.begin(name)?;
        if let Some(width) = self.number_width() {
            let mut bytes = Vec::with_capacity(WRITE + 8);
            each(&mut |id| {
                bytes.extend_from_slice(&id.to_le_bytes()[..width]);
                if bytes.len() >= WRITE {
                    out.write(&bytes)?;
                    bytes.clear();
                }
                Ok(())
            })?;
            out.write(&bytes)?;
            return Ok(width);
        }
        let PendingIds::Texts(texts) = self else { return Ok(0) };
        texts.finish()?;
        let (mut scratch, mut position) = (Scratch::default(), 0u64);
        // Segments that are made in memory have no directory.
        let limit = if directory.as_os_str().is_empty() { usize::MAX } else { 64 << 20 };
        let mut offsets = Spill::<u64>::new(directory.join("id-offsets"), limit);
        offsets.append(&[0])?;
        each(&mut |at| {
            let mut bytes = texts.read(at..(at + 4 + READ).min(texts.len()), &mut scratch)?;
            let mut length = [0; 4];
            length.copy_from_slice(bytes.get(..4).unwrap_or(&[0; 4]));
            let length = u64::from(u32::from_le_bytes(length));
            if length > READ {
                bytes = texts.read(at..at + 4 + length, &mut scratch)?;
            }
            let text = bytes.get(4..4 + usize::try_from(length).unwrap_or(0)).unwrap_or_default();
            out.write(text)?;
            position += length;
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
    kind: IdKind,
    width: usize,
    ids: Section,
    offsets: Section,
}

impl Ids {
    pub(crate) fn open(file: &Arc<SegmentFile>, name: &str, kind: IdKind, width: usize, rows: u64) -> Result<Ids> {
        let ids = Ids { kind, width, ids: file.section(name), offsets: file.section(&format!("{name}-offset")) };
        let (numbers, count) = match kind {
            IdKind::Number => (&ids.ids, rows),
            IdKind::Text => (&ids.offsets, rows.saturating_add(1)),
        };
        if !(1..=8).contains(&width) || Some(numbers.len() as u64) != count.checked_mul(width as u64) {
            return Err(file.bad("is damaged: the ids are not as many as the rows"));
        }
        Ok(ids)
    }

    pub(crate) fn get(&self, row: u64) -> Result<Id> {
        let at = usize::try_from(row).unwrap_or(usize::MAX);
        match self.kind {
            IdKind::Number => Ok(Id::Number(self.ids.number(at, self.width)?)),
            IdKind::Text => {
                let offset =
                    |at: usize| Ok(usize::try_from(self.offsets.number(at, self.width)?).unwrap_or(usize::MAX));
                let (from, to): (usize, usize) = (offset(at)?, offset(at + 1)?);
                Ok(Id::Text(String::from_utf8_lossy(self.ids.bytes(from..to)?).into()))
            }
        }
    }
}
