//! HTML and text: every file is one page.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read};
use std::time::UNIX_EPOCH;

use crate::error::{Result, SkipKind};
use crate::page::{Body, Markup, RawPage, SourceId, looks_like_html};
use crate::read::format::reader::{Description, FileParser, Input, Keeping, Likeness, Reader};
use crate::read::source::compression::Compression;
use crate::read::split::batch::{Content, Only, Visit};
use crate::read::{Corpus, NotAPage};

/// One HTML page per file.
pub(super) struct Html;

impl Reader for Html {
    fn description(&self) -> Description {
        Description { name: "html", endings: &["html", "htm", "xhtml", "shtml"], what: "a page a file" }
    }

    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String> {
        Ok(looks_like_html(head).then_some(Likeness::Markup))
    }

    fn file_parser(&self) -> Option<FileParser> {
        Some(|bytes, _| Ok(RawPage::new(Body::Bytes(Cow::Borrowed(bytes)), Markup::Html)))
    }

    fn keeping(&self, _: &Input<'_>) -> Keeping {
        Keeping::File
    }
}

/// One text per file.
pub(super) struct Text;

impl Reader for Text {
    fn description(&self) -> Description {
        Description { name: "text", endings: &["txt", "text", "md"], what: "a text a file" }
    }

    /// Whatever is not plainly binary.
    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String> {
        let is_odd = |byte: u8| byte == 0 || (byte < 32 && !b"\t\n\r\x0c\x1b".contains(&byte));
        let odd = head.iter().filter(|&&byte| is_odd(byte)).count();
        Ok((odd * 100 <= head.len()).then_some(Likeness::Possible))
    }

    fn file_parser(&self) -> Option<FileParser> {
        Some(|bytes, _| Ok(RawPage::new(Body::Bytes(Cow::Borrowed(bytes)), Markup::Text)))
    }

    fn keeping(&self, _: &Input<'_>) -> Keeping {
        Keeping::File
    }
}

/// Sources, by index, each of which is a page.
pub(crate) struct Files(pub(crate) Vec<SourceId>);

impl Content for Files {
    fn visit(&self, input: &Input<'_>, _: &Only, visit: Visit<'_>) -> Result<()> {
        let mut buffer = FileBuffer::default();
        self.0.iter().try_for_each(|&id| visit_file(input.corpus, id, &mut buffer, visit))
    }
}

/// Bytes of a file that are read at first, where its size does not say.
const FIRST_BYTES: usize = 1 << 16;

/// A buffer for one file after another: what is in it is not cleared in between.
#[derive(Default)]
struct FileBuffer {
    bytes: Vec<u8>,
    filled: usize,
}

impl FileBuffer {
    /// The file that was read last, as far as it could be.
    fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Reads on up to `limit` bytes; about `expected` are there.
    fn read(&mut self, reader: &mut dyn Read, expected: usize, limit: usize) -> io::Result<()> {
        let mut room = expected.min(limit);
        while self.filled < limit {
            if self.filled == room {
                room = (room * 2).min(limit);
            }
            if self.bytes.len() < room {
                self.bytes.resize(room, 0);
            }
            match reader.read(&mut self.bytes[self.filled..room]) {
                Ok(0) => break,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Reads a page file, decompressed, up to the size limit.
fn visit_file(corpus: &Corpus, id: SourceId, buffer: &mut FileBuffer, visit: Visit<'_>) -> Result<()> {
    let input = Input { corpus, id };
    let source = input.source();
    let is_plain = source.compression == Compression::None;
    // One more than there are, to see that there are no more.
    let expected = usize::try_from(source.bytes).unwrap_or(usize::MAX).saturating_add(1);
    let limit = usize::try_from(corpus.max_page_bytes).unwrap_or(usize::MAX).saturating_add(1);
    let expected = if is_plain { expected } else { FIRST_BYTES };
    buffer.filled = 0;
    let read = corpus.open_source(source).and_then(|mut reader| buffer.read(&mut *reader, expected, limit));
    let bytes = buffer.filled();
    if let Err(error) = read {
        let kind = if is_plain { SkipKind::Unreadable } else { SkipKind::Damaged };
        let problem = (kind, format!("cannot be read: {error}"));
        return visit(Err(NotAPage::Skipped(input.skipped(None, Some(bytes.len() as u64), problem, bytes))));
    }
    let length = bytes.len() as u64;
    let parse = source.format.file_parser().expect("only page files are batched as such");
    let page = if length > corpus.max_page_bytes { Err(input.too_large(length)) } else { parse(bytes, input.names()) };
    let modified = || fs::metadata(source.location.path()?).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok();
    match page {
        Ok(page) => visit(Ok(RawPage {
            source: id,
            record: 1,
            offset: Some(0),
            length,
            id: page.id.or(Some(Cow::Borrowed(&source.name))),
            rank_value: if corpus.names.rank_is_date {
                modified().map(|age| age.as_secs_f64())
            } else {
                page.rank_value
            },
            ..page
        })),
        Err(problem) => visit(Err(NotAPage::Skipped(input.skipped(None, Some(0), problem, bytes)))),
    }
}
