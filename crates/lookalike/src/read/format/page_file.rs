//! HTML and text: every file is one page.

use std::borrow::Cow;
use std::fs;
use std::io::Read;
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
        let mut bytes = Vec::new();
        self.0.iter().try_for_each(|&id| visit_file(input.corpus, id, &mut bytes, visit))
    }
}

/// Reads a page file, decompressed, up to the size limit.
fn visit_file(corpus: &Corpus, id: SourceId, bytes: &mut Vec<u8>, visit: Visit<'_>) -> Result<()> {
    let input = Input { corpus, id };
    let source = input.source();
    bytes.clear();
    let limit = corpus.max_page_bytes.saturating_add(1);
    let read = corpus.open_source(source).and_then(|reader| reader.take(limit).read_to_end(bytes));
    if let Err(error) = read {
        let kind = if source.compression == Compression::None { SkipKind::Unreadable } else { SkipKind::Damaged };
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
