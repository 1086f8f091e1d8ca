//! Corpora in which a pair of tags encloses each document → records.
//!
//! In: a file with `<DOC>…</DOC>`, `<REUTERS …>…</REUTERS>` or `<page>…</page>`. Out: batches of whole
//! documents with their places. What stands between documents belongs to none.

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memmem;

use crate::error::SkipKind;
use crate::page::SourceId;
use crate::read::crawl::Cut;
use crate::read::format::{mediawiki, reuters, trec};
use crate::read::split::batch::{Content, Found, NoPage};
use crate::read::split::buffer::Buffer;
use crate::read::split::stream::{Pieces, Stream};
use crate::read::{Corpus, Format};

/// The start and the end of a document.
pub(crate) struct Tags {
    /// Up to the name; an attribute or `>` follows.
    pub(crate) open: &'static [u8],
    pub(crate) close: &'static [u8],
}

/// The tags of a format.
pub(crate) fn tags(format: Format) -> &'static Tags {
    match format {
        Format::Reuters => &reuters::TAGS,
        Format::MediaWiki => &mediawiki::TAGS,
        _ => &trec::TAGS,
    }
}

/// Bytes of a document over the limit that are handed on.
const HEAD_BYTES: usize = 4096;

/// Where the next document begins, from `from` on.
fn next_open(bytes: &[u8], from: usize, tags: &Tags) -> Option<usize> {
    let mut at = from;
    while let Some(found) = memmem::find(&bytes[at..], tags.open) {
        let start = at + found;
        match bytes.get(start + tags.open.len()) {
            Some(b'>' | b' ' | b'\t' | b'\r' | b'\n') => return Some(start),
            _ => at = start + 1,
        }
    }
    None
}

/// Batches of documents.
pub(crate) fn documents(corpus: &Corpus, source: SourceId, send: &mut dyn FnMut(Content) -> bool) -> bool {
    let tags = tags(corpus.source(source).format);
    let mut pieces = match corpus.pieces(source) {
        Ok(pieces) => pieces,
        Err(skipped) => return send(Content::Skipped(skipped)),
    };
    let mut record = 1;
    loop {
        pieces.fill();
        // Cut all whole documents.
        let (mut cuts, mut done) = (Vec::new(), 0);
        let mut open = next_open(&pieces.buffer, 0, tags);
        while let Some(start) = open {
            let Some(length) = memmem::find(&pieces.buffer[start..], tags.close) else { break };
            let end = start + length + tags.close.len();
            let offset = Some(pieces.offset + start as u64);
            cuts.push(Cut { from: start, to: end, record, offset, length: (end - start) as u64, cut_short: None });
            record += 1;
            done = end;
            open = next_open(&pieces.buffer, end, tags);
        }
        // What is before the next document is passed over; its tag may be half there.
        let half = tags.open.len().max(tags.close.len());
        let waiting = open.unwrap_or_else(|| done.max(pieces.buffer.len().saturating_sub(half)));
        let bytes = pieces.take(waiting);
        if !cuts.is_empty() && !send(Content::Records { bytes, cuts }) {
            return false;
        }
        match &pieces.state {
            Stream::Open if open.is_some() && pieces.buffer.len() > corpus.most_bytes() => {
                if !send(pass_over(corpus, &mut pieces, tags, record)) {
                    return false;
                }
                record += 1;
            }
            Stream::Open => {}
            Stream::Broken(error) => return send(corpus.damaged(source, record, &pieces, error)),
            Stream::Ended if open.is_none() => return true,
            Stream::Ended => {
                let problem = (SkipKind::BadRecord, "the file ends inside this document".to_owned());
                let byte = Some(pieces.offset);
                return send(Content::Skipped(corpus.skipped(source, Some(record), byte, problem, &pieces.buffer)));
            }
        }
    }
}

/// A document over the limit: its start is handed on, the rest passed over.
fn pass_over(corpus: &Corpus, pieces: &mut Pieces<'_>, tags: &Tags, record: u64) -> Content {
    let offset = pieces.offset;
    let head = pieces.buffer[..HEAD_BYTES.min(pieces.buffer.len())].to_vec();
    loop {
        if let Some(found) = memmem::find(&pieces.buffer, tags.close) {
            pieces.take(found + tags.close.len());
            break;
        }
        if !matches!(pieces.state, Stream::Open) {
            pieces.take(pieces.buffer.len());
            break;
        }
        pieces.take(pieces.buffer.len().saturating_sub(tags.close.len()));
        pieces.fill();
    }
    let length = pieces.offset - offset;
    let cut = Cut { from: 0, to: head.len(), record, offset: Some(offset), length, cut_short: Some(length) };
    Content::Records { bytes: Buffer::new(head, Arc::clone(&corpus.buffers)), cuts: vec![cut] }
}

/// What one document is.
pub(crate) fn found<'a>(corpus: &Corpus, source: SourceId, cut: &Cut, bytes: &'a [u8]) -> Found<'a> {
    let length = cut.cut_short.unwrap_or(bytes.len() as u64);
    if length > corpus.max_page_bytes {
        let skipped = corpus.skipped(source, Some(cut.record), cut.offset, corpus.too_large(length), bytes);
        return Err(NoPage::Skipped(skipped));
    }
    let page = match corpus.source(source).format {
        Format::Reuters => reuters::page(bytes, &corpus.names),
        Format::MediaWiki => mediawiki::page(bytes, &corpus.names),
        _ => trec::page(bytes, &corpus.names),
    };
    match page {
        Ok(mut page) => {
            (page.source, page.record, page.offset, page.length) = (source, cut.record, cut.offset, cut.length);
            Ok(page)
        }
        Err(what) => Err(NoPage::Other(what)),
    }
}

/// What stands between `<name …>` and `</name>`, from `bytes` on.
pub(crate) fn element<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let open = format!("<{name}");
    let mut at = 0;
    loop {
        let start = at + memmem::find(&bytes[at..], open.as_bytes())? + open.len();
        match bytes.get(start)? {
            b'>' | b' ' | b'\t' | b'\r' | b'\n' => {
                let content = start + memchr::memchr(b'>', &bytes[start..])? + 1;
                if bytes[content - 2] == b'/' {
                    return Some(&[]);
                }
                let length = memmem::find(&bytes[content..], format!("</{name}>").as_bytes())?;
                return Some(&bytes[content..content + length]);
            }
            _ => at = start,
        }
    }
}

/// The same as text, without entities and white space around it.
pub(crate) fn text_of<'a>(bytes: &'a [u8], name: &str) -> Option<Cow<'a, str>> {
    let text = String::from_utf8_lossy(element(bytes, name)?.trim_ascii());
    let text = if text.contains('&') { Cow::Owned(htmlize::unescape(text).into_owned()) } else { text };
    Some(text).filter(|text| !text.is_empty())
}
