//! Formats in which documents stand one after the other in a stream of bytes, each of which can be parsed by itself.
//!
//! In: a source, and a [`Documents`] that finds where documents begin and end. Out: batches of whole
//! documents with their places. What stands between documents belongs to none.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::error::{Result, SkipKind};
use crate::page::RawPage;
use crate::read::WantedRecord;
use crate::read::fields::FieldNames;
use crate::read::format::reader::{Input, Unusable};
use crate::read::split::batch::{BatchSender, Content, Cut, Only, Visit, visit_places};
use crate::read::split::buffer::Buffer;
use crate::read::split::stream::{Pieces, Stream};

/// Finds documents, and makes pages of them.
pub(crate) trait Documents: Sync + 'static {
    /// The next document in `bytes`, from `from` on. `is_end`: nothing comes behind `bytes`.
    fn next(&self, bytes: &[u8], from: usize, is_end: bool) -> NextDocument;

    /// Where a document ends whose start was before `bytes`.
    fn end(&self, bytes: &[u8]) -> Option<usize>;

    /// The page in a document.
    fn page<'a>(&self, bytes: &'a [u8], names: &FieldNames) -> Result<RawPage<'a>, Unusable>;
}

/// What comes next in some bytes.
pub(crate) enum NextDocument {
    /// A whole document.
    Whole(Range<usize>),
    /// A document that begins here and whose end is not there yet.
    Begun(usize),
    /// None; one may begin from here on.
    None(usize),
}

/// Bytes of a document over the limit that are handed on.
const HEAD_BYTES: usize = 4096;
/// The longest mark that ends a document: half of it may be there.
const LONGEST_END: usize = 64;

/// Batches of documents.
pub(crate) fn split<D: Documents>(
    documents: &'static D,
    input: &Input<'_>,
    batches: &mut BatchSender<'_, '_>,
) -> ControlFlow<()> {
    let mut pieces = input.pieces_or_skip(batches)?;
    let mut record = 1;
    loop {
        pieces.fill();
        let is_end = matches!(pieces.state, Stream::Ended);
        let (mut cuts, mut done) = (Vec::new(), 0);
        let next = loop {
            match documents.next(&pieces.buffer, done, is_end) {
                NextDocument::Whole(Range { start, end }) => {
                    let (offset, length) = (Some(pieces.offset + start as u64), (end - start) as u64);
                    cuts.push(Cut { from: start, to: end, record, offset, length, cut_short: None });
                    record += 1;
                    done = end;
                }
                next => break next,
            }
        };
        let (waiting, is_begun) = match next {
            NextDocument::Begun(start) => (start, true),
            NextDocument::None(start) | NextDocument::Whole(Range { start, .. }) => (done.max(start), false),
        };
        let bytes = pieces.take(waiting);
        if !cuts.is_empty() {
            batches.send(Cuts { bytes, cuts, documents })?;
        }
        match &pieces.state {
            Stream::Open if is_begun && pieces.buffer.len() > input.most_bytes() => {
                batches.send(skip_document(documents, input, &mut pieces, record))?;
                record += 1;
            }
            Stream::Open => {}
            Stream::Broken(error) => return batches.send(input.damaged(record, &pieces, error)),
            Stream::Ended if !is_begun => return ControlFlow::Continue(()),
            Stream::Ended => {
                let problem = (SkipKind::BadRecord, "the file ends inside this document".to_owned());
                return batches.send(input.skipped(Some(record), Some(pieces.offset), problem, &pieces.buffer));
            }
        }
    }
}

/// Chosen documents, read from their places.
pub(crate) fn seek<D: Documents>(
    documents: &'static D,
    records: &[WantedRecord],
    batches: &mut BatchSender<'_, '_>,
) -> ControlFlow<()> {
    batches.send_places(records, |records| DocumentsAtPlaces { records, documents })
}

/// A document over the limit: its start is handed on, the rest skipped.
fn skip_document<D: Documents>(
    documents: &'static D,
    input: &Input<'_>,
    pieces: &mut Pieces<'_>,
    record: u64,
) -> Cuts<D> {
    let offset = pieces.offset;
    let head = pieces.buffer[..HEAD_BYTES.min(pieces.buffer.len())].to_vec();
    loop {
        if let Some(end) = documents.end(&pieces.buffer) {
            pieces.take(end);
            break;
        }
        if !matches!(pieces.state, Stream::Open) {
            pieces.take(pieces.buffer.len());
            break;
        }
        pieces.take(pieces.buffer.len().saturating_sub(LONGEST_END));
        pieces.fill();
    }
    let length = pieces.offset - offset;
    let cut = Cut { from: 0, to: head.len(), record, offset: Some(offset), length, cut_short: Some(length) };
    Cuts { bytes: Buffer::new(head, Arc::clone(&input.corpus.buffers)), cuts: vec![cut], documents }
}

struct Cuts<D: 'static> {
    bytes: Buffer,
    cuts: Vec<Cut>,
    documents: &'static D,
}

impl<D: Documents> Content for Cuts<D> {
    fn visit(&self, input: &Input<'_>, only: &Only, visit: Visit<'_>) -> Result<()> {
        let wanted = self.cuts.iter().filter(|cut| only.contains(cut.record));
        { wanted }.try_for_each(|cut| {
            let bytes = &self.bytes[cut.from..cut.to];
            visit(input.record(cut, bytes, page(self.documents, input, cut, bytes)))
        })
    }
}

struct DocumentsAtPlaces<D: 'static> {
    records: Vec<WantedRecord>,
    documents: &'static D,
}

impl<D: Documents> Content for DocumentsAtPlaces<D> {
    fn visit(&self, input: &Input<'_>, _: &Only, visit: Visit<'_>) -> Result<()> {
        visit_places(input, &self.records, visit, |place, visit| {
            let (to, length) = (place.bytes.len(), place.bytes.len() as u64);
            let cut = Cut { from: 0, to, record: place.record, offset: place.offset, length, cut_short: None };
            visit(input.record(&cut, place.bytes, page(self.documents, input, &cut, place.bytes)))
        })
    }
}

fn page<'a>(
    documents: &impl Documents,
    input: &Input<'_>,
    cut: &Cut,
    bytes: &'a [u8],
) -> Result<RawPage<'a>, Unusable> {
    let length = cut.cut_short.unwrap_or(bytes.len() as u64);
    if length > input.corpus.max_page_bytes {
        return Err(input.too_large(length).into());
    }
    documents.page(bytes, input.names())
}
