//! What a format must say so that it can be read: the trait that every file in this folder implements.

use std::ops::ControlFlow;

use crate::error::{SkipKind, SkippedRecord};
use crate::page::{RawPage, SourceId};
use crate::read::fields::FieldNames;
use crate::read::format::Format;
use crate::read::format::csv::TableHead;
use crate::read::format::json::Frame;
use crate::read::format::page_file::Files;
use crate::read::source::file::SourceFile;
use crate::read::split::batch::{BatchSender, Cut};
use crate::read::split::units::{Stretch, UnitEnd};
use crate::read::{Corpus, NotAPage, Record, Source, WantedRecord};

/// Reads a format.
///
/// A source is cut into batches of whole records in one thread ([`split`](Reader::split)), as fast as it can be; batches
/// are parsed in many ([`Content`](crate::read::split::batch::Content)). Records are numbered from 1 in the order of the
/// source, whether or not they are pages. What is wrong with a record is handed on in its place; nothing but the end of
/// the pass ends the reading of a source.
pub(crate) trait Reader: Sync {
    /// What it is called.
    fn description(&self) -> Description;

    /// How much `head`, the first bytes of a file behind its compression, look like this format. An error says that
    /// they nearly do, and what to do about it.
    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String>;

    /// The format of a file that has the name of this one, where its first bytes tell better.
    fn rather(&self, _head: &[u8]) -> Option<Format> {
        None
    }

    /// Cuts a source into batches. Memory must stay bounded, whatever the source holds.
    fn split(&self, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        batches.send(Files(vec![input.id]))
    }

    /// Reads chosen records again, each from its place, which all of them have here. Formats that cannot do it read the
    /// whole source again.
    fn seek(&self, input: &Input<'_>, records: &[WantedRecord], batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        self.split(input, &mut batches.only(records))
    }

    /// How the kept part of a source is written.
    fn keeping(&self, input: &Input<'_>) -> Keeping;

    /// How fields are added to its records; nothing where they cannot have any.
    fn annotations(&self) -> Option<Annotations> {
        None
    }

    /// Where every file is one page: makes a page of its bytes.
    fn file_parser(&self) -> Option<FileParser> {
        None
    }

    /// Whether files can be compressed as a whole.
    fn may_be_compressed(&self) -> bool {
        true
    }

    /// For formats whose records may be compressed each by itself.
    fn members(&self) -> Option<&dyn Members> {
        None
    }
}

/// What a format is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Description {
    /// The name used for the setting `format`, in lower case.
    pub(crate) name: &'static str,
    /// What names of such files end with, the ending of their compression left out.
    pub(crate) endings: &'static [&'static str],
    /// What it is, in a few words.
    pub(crate) what: &'static str,
}

/// How much a file looks like a format; the least is best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    /// It begins as nothing else does.
    Signature,
    /// It looks like markup.
    Markup,
    /// Its first lines have the shape.
    Shape,
    /// It may be, if it is nothing else.
    Possible,
}

/// How the kept part of a source is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// The bytes of the kept records, behind a header.
    Records {
        /// Bytes at the start of the source that are always kept.
        header_bytes: u64,
    },
    /// All bytes but those of the dropped records.
    AllButDropped,
    /// The bytes of the kept records, in a frame that makes them one document.
    Framed(Frame),
    /// The rows of a Parquet file.
    Rows,
    /// The rows of an Arrow file or stream.
    ArrowRows,
    /// The records of a crawl, among which pages are only some.
    Captures,
    /// The file, which is one page.
    File,
    /// Nothing: no record of the source could be read.
    Nothing,
}

/// How fields are added to the records of a format.
#[derive(Clone, Copy)]
pub(crate) enum Annotations {
    /// Every record is a JSON object.
    Object,
    /// Every record is a row of cells behind a header; nothing if that cannot be read.
    Table(fn(&Input<'_>) -> Option<TableHead>),
    /// The rows of a Parquet file.
    Rows,
    /// The rows of an Arrow file or stream.
    ArrowRows,
}

/// What is wrong with a record.
pub(crate) type Problem = (SkipKind, String);

/// Why bytes are not a page: a record that is something else, by name, or one that cannot be used.
pub(crate) enum Unusable {
    Other(&'static str),
    Problem(Problem),
}

impl From<Problem> for Unusable {
    fn from(problem: Problem) -> Unusable {
        Unusable::Problem(problem)
    }
}

/// Makes a page of a whole file.
pub(crate) type FileParser = for<'a> fn(&'a [u8], &FieldNames) -> Result<RawPage<'a>, Problem>;

/// Sources in which every record is a member of its own, so that reading can begin in the middle.
pub(crate) trait Members: Sync {
    /// Whether it is so in this source.
    fn is_by_member(&self, source: &Source) -> bool;

    /// Where stretches of the source begin, one about every `bytes`; the first at 0.
    fn starts(&self, source: &Source, bytes: u64) -> Vec<u64>;

    /// Cuts a stretch of a source into batches.
    fn split(
        &self,
        input: &Input<'_>,
        stretch: &Stretch,
        batches: &mut BatchSender<'_, '_>,
    ) -> std::io::Result<UnitEnd>;
}

/// A source of a corpus.
#[derive(Clone, Copy)]
pub(crate) struct Input<'c> {
    pub(crate) corpus: &'c Corpus,
    pub(crate) id: SourceId,
}

impl<'c> Input<'c> {
    pub(crate) fn source(&self) -> &'c Source {
        self.corpus.source(self.id)
    }

    pub(crate) fn names(&self) -> &'c FieldNames {
        &self.corpus.names
    }

    /// Opens the source as it is; what is read is counted.
    pub(crate) fn file(&self) -> std::io::Result<SourceFile<'c>> {
        self.corpus.file(self.source())
    }

    /// A record that cannot be used.
    pub(crate) fn skipped(
        &self,
        record: Option<u64>,
        byte: Option<u64>,
        (kind, reason): Problem,
        bytes: &[u8],
    ) -> SkippedRecord {
        let source = self.source().display.clone();
        SkippedRecord { kind, source, record, byte, reason, first_bytes: SkippedRecord::excerpt(bytes) }
    }

    /// The same about the source as a whole, which cannot be opened.
    pub(crate) fn unopened(&self, error: &std::io::Error) -> SkippedRecord {
        self.skipped(None, None, (SkipKind::Unreadable, format!("cannot be opened: {error}")), &[])
    }

    /// What is wrong with a record of so many bytes.
    pub(crate) fn too_large(&self, length: u64) -> Problem {
        let limit = crate::size::format_bytes(self.corpus.max_page_bytes);
        let reason = format!("the record has {length} bytes or more, above the limit of {limit} (use `max_page`)");
        (SkipKind::TooLarge, reason)
    }

    /// A parsed record, with its place.
    pub(crate) fn record<'a>(&self, cut: &Cut, bytes: &'a [u8], page: Result<RawPage<'a>, Unusable>) -> Record<'a> {
        match page {
            Ok(page) => {
                let Cut { record, offset, length, .. } = *cut;
                Ok(RawPage { source: self.id, record, offset, length, ..page })
            }
            Err(Unusable::Other(what)) => Err(NotAPage::Other(what)),
            Err(Unusable::Problem(problem)) => {
                Err(NotAPage::Skipped(self.skipped(Some(cut.record), cut.offset, problem, bytes)))
            }
        }
    }
}

/// The start of a file without byte order mark and white space.
pub(crate) fn text_start(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}
