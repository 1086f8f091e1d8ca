//! Rows of Arrow files and streams: written like the source, with its schema and packing.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;

use crate::error::{Error, Result};
use crate::page::PageId;
use crate::read::{ArrowStream, Source};
use crate::report::Findings;
use crate::report::sinks::records::Place;
use crate::report::sinks::records::target::Target;

/// Copies the rows of the chosen pages.
pub(super) fn copy(
    findings: &Findings<'_>,
    source: &Source,
    target: &Target<'_>,
    chosen: &[PageId],
) -> Result<Vec<Place>> {
    let rows = numbers(findings, chosen);
    let mut copied = 0;
    let is_there = rewrite(source, target, Arc::clone, |_, first, batch| {
        let filtered = filtered(batch, first, &rows)?;
        copied += filtered.num_rows();
        Ok(filtered)
    })?;
    if !is_there {
        return Ok(Vec::new());
    }
    all_read(source, copied, rows.len())?;
    Ok((1..=rows.len() as u64).map(|record| Place { part: 0, record }).collect())
}

/// Writes a source again, with the schema that `schema` makes of its own and the rows that `change` makes of each batch and
/// the number of its first row. False where there is nothing to write, as was reported.
pub(super) fn rewrite(
    source: &Source,
    target: &Target<'_>,
    schema: impl FnOnce(&SchemaRef) -> SchemaRef,
    mut change: impl FnMut(&SchemaRef, u64, &RecordBatch) -> Result<RecordBatch>,
) -> Result<bool> {
    let Some(mut stream) = open(source)? else { return Ok(false) };
    // How batches are packed is known with the first of them.
    let mut next = stream.next_batch();
    let packing = IpcWriteOptions::default().try_with_compression(stream.packing);
    let options = packing.map_err(|error| Error::internal(format!("the rows cannot be packed: {error}")))?;
    let schema = schema(&stream.schema);
    let (file, path) = target.create(0)?;
    let cannot_write = |error: ArrowError| Error::io(&path, "write")(std::io::Error::other(error));
    let mut out = target.packing.open(file).map_err(Error::io(&path, "write"))?;
    let mut writer = Writer::new(&mut out, stream.is_file, &schema, options).map_err(cannot_write)?;
    let mut first = 1;
    // Damage was reported when the rows were read; what is missing behind it is noticed by its number.
    while let Ok(Some(batch)) = next {
        let changed = change(&schema, first, &batch)?;
        first += batch.num_rows() as u64;
        if changed.num_rows() > 0 {
            writer.write(&changed).map_err(cannot_write)?;
        }
        next = stream.next_batch();
    }
    writer.finish().map_err(cannot_write)?;
    drop(writer);
    out.close().map_err(Error::io(&path, "write"))?;
    Ok(true)
}

/// Shows the rows of some pages to `visit`, batch by batch.
pub(super) fn for_each_batch(
    findings: &Findings<'_>,
    source: &Source,
    pages: &[PageId],
    mut visit: impl FnMut(&SchemaRef, &RecordBatch) -> Result<()>,
) -> Result<()> {
    let rows = numbers(findings, pages);
    let Some(mut stream) = open(source)? else { return Ok(()) };
    let (mut first, mut seen) = (1, 0);
    while let Ok(Some(batch)) = stream.next_batch() {
        let filtered = filtered(&batch, first, &rows)?;
        first += batch.num_rows() as u64;
        seen += filtered.num_rows();
        visit(&stream.schema, &filtered)?;
    }
    all_read(source, seen, rows.len())
}

fn numbers(findings: &Findings<'_>, pages: &[PageId]) -> Vec<u64> {
    pages.iter().map(|&page| findings.pages.place(page).record).collect()
}

/// Nothing where it was reported as skipped.
fn open(source: &Source) -> Result<Option<ArrowStream<'static>>> {
    let opened = source.location.open().and_then(|file| source.compression.decode(file));
    Ok(ArrowStream::open(opened.map_err(Error::io(&source.path(), "read"))?).ok())
}

/// The rows of a batch, which begins with the row `first`, whose numbers are in `rows`, ascending.
fn filtered(batch: &RecordBatch, first: u64, rows: &[u64]) -> Result<RecordBatch> {
    let numbers = first..first + batch.num_rows() as u64;
    let mask: BooleanArray = numbers.map(|number| Some(rows.binary_search(&number).is_ok())).collect();
    filter_record_batch(batch, &mask).map_err(|error| Error::internal(format!("rows cannot be filtered: {error}")))
}

/// Refuses to lose rows.
fn all_read(source: &Source, read: usize, wanted: usize) -> Result<()> {
    if read == wanted {
        return Ok(());
    }
    let reason = format!(
        "only {read} of {wanted} rows can be copied: the file is damaged in a column that is not compared; repair it, or leave it out"
    );
    Err(Error::corrupt(&source.path(), reason))
}

enum Writer<W: Write> {
    File(FileWriter<W>),
    Stream(StreamWriter<W>),
}

impl<W: Write> Writer<W> {
    fn new(out: W, is_file: bool, schema: &Schema, options: IpcWriteOptions) -> Result<Writer<W>, ArrowError> {
        Ok(if is_file {
            Writer::File(FileWriter::try_new_with_options(out, schema, options)?)
        } else {
            Writer::Stream(StreamWriter::try_new_with_options(out, schema, options)?)
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Writer::File(writer) => writer.write(batch),
            Writer::Stream(writer) => writer.write(batch),
        }
    }

    fn finish(&mut self) -> Result<(), ArrowError> {
        match self {
            Writer::File(writer) => writer.finish(),
            Writer::Stream(writer) => writer.finish(),
        }
    }
}
