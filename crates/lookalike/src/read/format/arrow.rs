//! Apache Arrow's own format, as a file (Feather) or a stream, a page a row.
//!
//! In: a source. Out: batches of rows. A file is a stream behind a mark and with an index behind it, so that both are read
//! in one way, and a file that is cut off gives what comes before the cut. Memory follows what the source holds, not what
//! it claims: no message is believed before its bytes are there.

use std::collections::HashMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{CompressionType, MessageHeader, root_as_message};
use arrow_schema::SchemaRef;

use crate::error::{Result, SkipKind};
use crate::read::format::reader::{Annotations, Description, Input, Keeping, Likeness, Problem, Reader};
use crate::read::format::rows::{BATCH_ROWS, RowColumns};
use crate::read::split::batch::BatchSender;

/// Arrow files and streams.
pub(super) struct Arrow;

impl Reader for Arrow {
    fn description(&self) -> Description {
        Description {
            name: "arrow",
            endings: &["arrow", "arrows", "feather", "ipc"],
            what: "Apache Arrow, file (Feather) or stream, a page a row",
        }
    }

    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String> {
        if head.starts_with(b"FEA1") {
            return Err("is Feather of version 1; write it again as version 2".to_owned());
        }
        // The first message of a stream is its schema, which is not long.
        let is_stream = matches!(head, [0xff, 0xff, 0xff, 0xff, _, _, length, 0, ..] if *length < 16);
        Ok((head.starts_with(MARK) || is_stream).then_some(Likeness::Signature))
    }

    fn split(&self, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        let reader = match input.corpus.open_source(input.source()) {
            Ok(reader) => reader,
            Err(error) => return batches.send(input.unopened(&error)),
        };
        let opened = ArrowStream::open(reader).and_then(|mut stream| {
            let columns = RowColumns::find(stream.schema.fields(), input.names())?;
            let wanted = |index: &usize| {
                let name = stream.schema.field(*index).name();
                columns.paths().any(|path| path.first() == Some(name))
            };
            stream.columns = Some((0..stream.schema.fields().len()).filter(wanted).collect());
            Ok((stream, columns))
        });
        let (mut stream, columns) = match opened {
            Ok(opened) => opened,
            Err(problem) => return batches.send(input.skipped(None, None, problem, &[])),
        };
        let mut record = 1;
        loop {
            match stream.next_batch() {
                Ok(Some(batch)) => {
                    for from in (0..batch.num_rows()).step_by(BATCH_ROWS) {
                        let rows = batch.slice(from, BATCH_ROWS.min(batch.num_rows() - from));
                        batches.send(columns.rows(&rows, record))?;
                        record += rows.num_rows() as u64;
                    }
                }
                Ok(None) => return ControlFlow::Continue(()),
                Err(problem) => return batches.send(input.skipped(Some(record), None, problem, &[])),
            }
        }
    }

    fn keeping(&self, _: &Input<'_>) -> Keeping {
        Keeping::ArrowRows
    }

    fn annotations(&self) -> Option<Annotations> {
        Some(Annotations::ArrowRows)
    }
}

/// What a file begins with; a stream does not.
const MARK: &[u8] = b"ARROW1";
/// The mark with what fills it up.
const MARK_BYTES: u64 = 8;
/// Zeros that may follow the mark.
const MOST_ZEROS: usize = 4096;
/// The longest description of a message that is believed.
const MOST_HEAD_BYTES: u32 = 256 << 20;
/// The most bytes that a batch may have, before and after it is unpacked.
const MOST_BATCH_BYTES: u64 = 4 << 30;
/// Room that is made for a message before its bytes are there.
const FIRST_ROOM: u64 = 16 << 20;

/// The batches of a stream, one after the other.
pub(crate) struct ArrowStream<'r> {
    reader: Box<dyn Read + Send + 'r>,
    pub(crate) schema: SchemaRef,
    dictionaries: HashMap<i64, ArrayRef>,
    /// The columns that are read; without them, all.
    columns: Option<Vec<usize>>,
    /// Whether it is a file, which has an end mark and an index.
    pub(crate) is_file: bool,
    /// How its batches are packed, once there was one.
    pub(crate) packing: Option<CompressionType>,
}

struct Message {
    head: Vec<u8>,
    body: Vec<u8>,
}

fn damaged(reason: impl std::fmt::Display) -> Problem {
    (SkipKind::Damaged, format!("cannot be read as Arrow: {reason}"))
}

/// Runs `read`; a panic of the Arrow library over damaged data is damage, not the end of the run.
fn guarded<T>(read: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(damaged("its data contradicts itself")))
}

impl<'r> ArrowStream<'r> {
    /// Reads up to the schema.
    pub(crate) fn open(mut reader: Box<dyn Read + Send + 'r>) -> Result<ArrowStream<'r>, Problem> {
        let mut start = read_up_to(&mut reader, MARK_BYTES)?;
        let is_file = start.starts_with(MARK);
        if is_file {
            // Zeros may follow, up to where the first message is aligned.
            for _ in 0..MOST_ZEROS / 4 {
                start = read_up_to(&mut reader, 4)?;
                if start != [0; 4] {
                    break;
                }
            }
        }
        let reader: Box<dyn Read + Send + 'r> = Box::new(std::io::Cursor::new(start).chain(reader));
        let schema = Arc::new(arrow_schema::Schema::empty());
        let mut stream =
            ArrowStream { reader, schema, dictionaries: HashMap::new(), columns: None, is_file, packing: None };
        let first = stream.next_message()?.ok_or_else(|| damaged("it has no schema"))?;
        stream.schema = guarded(|| {
            let message = root_as_message(&first.head).map_err(damaged)?;
            let schema = message.header_as_schema().ok_or_else(|| damaged("it does not begin with a schema"))?;
            Ok(Arc::new(arrow_ipc::convert::fb_to_schema(schema)))
        })?;
        Ok(stream)
    }

    /// The next batch of rows; none at the end.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>, Problem> {
        while let Some(Message { head, body }) = self.next_message()? {
            let found = guarded(|| self.take_message(&head, body))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn take_message(&mut self, head: &[u8], body: Vec<u8>) -> Result<Option<RecordBatch>, Problem> {
        let message = root_as_message(head).map_err(damaged)?;
        let version = message.version();
        match message.header_type() {
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch().ok_or_else(|| damaged("a batch has no head"))?;
                check_buffers(&batch, &body)?;
                self.packing = self.packing.or(batch.compression().map(|packing| packing.codec()));
                let (schema, columns) = (Arc::clone(&self.schema), self.columns.as_deref());
                read_record_batch(&body.into(), batch, schema, &self.dictionaries, columns, &version)
                    .map(Some)
                    .map_err(damaged)
            }
            MessageHeader::DictionaryBatch => {
                let batch = message.header_as_dictionary_batch().ok_or_else(|| damaged("a dictionary has no head"))?;
                let values = batch.data().ok_or_else(|| damaged("a dictionary has no values"))?;
                check_buffers(&values, &body)?;
                read_dictionary(&body.into(), batch, &self.schema, &mut self.dictionaries, &version)
                    .map(|()| None)
                    .map_err(damaged)
            }
            // Tensors and the like.
            _ => Ok(None),
        }
    }

    /// A length, a head, a body.
    fn next_message(&mut self) -> Result<Option<Message>, Problem> {
        let mut length = read_up_to(&mut self.reader, 4)?;
        if length == [0xff; 4] {
            length = read_up_to(&mut self.reader, 4)?;
            if length.is_empty() {
                return Err(damaged("it ends inside a message"));
            }
        }
        let length = match <[u8; 4]>::try_from(length.as_slice()) {
            Ok(length) => u32::from_le_bytes(length),
            // A stream may end without a mark.
            Err(_) if length.is_empty() && !self.is_file => 0,
            Err(_) => return Err(damaged("it ends before its end mark; what comes before was read")),
        };
        if length == 0 {
            return Ok(None);
        }
        if length > MOST_HEAD_BYTES {
            return Err(damaged(format_args!("a message claims a head of {length} bytes")));
        }
        let head = read_all(&mut self.reader, u64::from(length))?;
        let body_length = guarded(|| Ok(root_as_message(&head).map_err(damaged)?.bodyLength()))?;
        let body_length = u64::try_from(body_length)
            .ok()
            .filter(|&length| length <= MOST_BATCH_BYTES)
            .ok_or_else(|| damaged(format_args!("a message claims {body_length} bytes")))?;
        let body = read_all(&mut self.reader, body_length)?;
        Ok(Some(Message { head, body }))
    }
}

fn read_up_to(reader: &mut dyn Read, length: u64) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::with_capacity(usize::try_from(length.min(FIRST_ROOM)).unwrap_or(0));
    reader.take(length).read_to_end(&mut bytes).map_err(damaged)?;
    Ok(bytes)
}

fn read_all(reader: &mut dyn Read, length: u64) -> Result<Vec<u8>, Problem> {
    let bytes = read_up_to(reader, length)?;
    if bytes.len() as u64 == length {
        Ok(bytes)
    } else {
        Err(damaged("it ends inside a message; what comes before was read"))
    }
}

/// Refuses buffers outside the body, and packed ones that claim more than fits into memory.
fn check_buffers(batch: &arrow_ipc::RecordBatch<'_>, body: &[u8]) -> Result<(), Problem> {
    let is_packed = batch.compression().is_some();
    let mut unpacked = 0u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = range
            .and_then(|(from, length)| body.get(from..from.checked_add(length)?))
            .ok_or_else(|| damaged("a column lies outside its batch"))?;
        if let Some(length) = bytes.first_chunk::<8>().filter(|_| is_packed) {
            // -1: this buffer alone is not packed.
            unpacked = unpacked.saturating_add(i64::from_le_bytes(*length).max(0).unsigned_abs());
        }
    }
    if unpacked > MOST_BATCH_BYTES {
        return Err(damaged(format_args!("a batch claims to unpack to {unpacked} bytes")));
    }
    Ok(())
}
