//! Frames that were learnt before, and the version that stands for them.

use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

use crate::text::frames::{FrameRow, Frames};

/// Frames that are known before pages are read. Two are equal if they have the same version. In files only the version is
/// written; whoever stores it stores the frames beside it.
#[derive(Debug, Clone)]
pub struct KnownFrames {
    version: u64,
    frames: Option<Arc<Frames>>,
}

impl KnownFrames {
    /// Frames, with the version that follows from them.
    pub(crate) fn new(frames: Arc<Frames>) -> KnownFrames {
        let version = xxh3_64(&KnownFrames::lines(&frames));
        KnownFrames { version, frames: Some(frames) }
    }

    /// The frames, unless only their version is known.
    pub(crate) fn frames(&self) -> Option<&Arc<Frames>> {
        self.frames.as_ref()
    }

    /// The frames as lines of JSON.
    pub(crate) fn lines(frames: &Frames) -> Vec<u8> {
        let mut lines = Vec::new();
        for row in frames.rows() {
            lines.extend(serde_json::to_vec(&row).expect("plain fields serialise"));
            lines.push(b'\n');
        }
        lines
    }

    /// The same version with its frames, from the lines that were stored beside it.
    ///
    /// # Errors
    /// What is wrong with the lines.
    pub(crate) fn read(&self, lines: &[u8]) -> Result<KnownFrames, String> {
        if xxh3_64(lines) != self.version {
            return Err("is not what it was when it was written".to_owned());
        }
        Ok(KnownFrames { version: self.version, frames: Some(Arc::new(KnownFrames::parse(lines)?)) })
    }

    /// The frames that were written as these lines.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn parse(lines: &[u8]) -> Result<Frames, String> {
        let rows = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let rows = rows.map(|line| serde_json::from_slice(line).map_err(|error| format!("has a bad line: {error}")));
        Frames::from_rows(rows.collect::<Result<Vec<FrameRow>, String>>()?)
    }
}

impl fmt::Display for KnownFrames {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.version)
    }
}

impl PartialEq for KnownFrames {
    fn eq(&self, other: &KnownFrames) -> bool {
        self.version == other.version
    }
}

impl Eq for KnownFrames {}

impl Serialize for KnownFrames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KnownFrames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KnownFrames, D::Error> {
        let digits = String::deserialize(deserializer)?;
        let version = u64::from_str_radix(&digits, 16).map_err(D::Error::custom)?;
        Ok(KnownFrames { version, frames: None })
    }
}
