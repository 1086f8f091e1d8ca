//! Rows of Parquet files.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue};
use parquet::file::properties::WriterProperties;

use crate::error::{Error, Result};
use crate::page::PageId;
use crate::read::{Chunks, Source, guarded, open_parquet, open_typed_parquet};
use crate::report::Findings;
use crate::report::outputs::KeptCompression;
use crate::report::sinks::records::Place;
use crate::report::sinks::records::target::{Packing, Target};
use crate::report::table::{cannot_read, cannot_write};

/// The size of a part is looked at this often on its way to the limit.
const SLICES: u64 = 8;
/// Rows that are written between two looks, at the most.
const MOST_SLICE_ROWS: u64 = 1024;

/// Parquet files of one target, part after part.
pub(super) struct RowParts<'a> {
    target: &'a Target<'a>,
    schema: SchemaRef,
    properties: WriterProperties,
    types: Types,
    writer: Option<(ArrowWriter<File>, PathBuf)>,
    part: usize,
    rows: u64,
}

impl<'a> RowParts<'a> {
    pub(super) fn new(
        target: &'a Target<'a>,
        schema: SchemaRef,
        properties: WriterProperties,
        types: Types,
    ) -> RowParts<'a> {
        RowParts { target, schema, properties, types, writer: None, part: 0, rows: 0 }
    }

    /// Writes rows, and says of each where it went.
    pub(super) fn write(&mut self, batch: &RecordBatch, places: &mut Vec<Place>) -> Result<()> {
        self.target.check()?;
        let Some(limit) = self.target.limit else { return self.write_slice(batch, places) };
        let rows_of = |bytes: u64| batch.num_rows() as u64 * bytes / (batch.get_array_memory_size() as u64).max(1);
        let slice_rows = usize::try_from(rows_of(limit / SLICES).clamp(1, MOST_SLICE_ROWS)).unwrap_or(1);
        let mut from = 0;
        while from < batch.num_rows() {
            let slice = batch.slice(from, slice_rows.min(batch.num_rows() - from));
            self.write_slice(&slice, places)?;
            from += slice.num_rows();
            let size = |(writer, _): &(ArrowWriter<File>, _)| writer.bytes_written() + writer.in_progress_size();
            if self.writer.as_ref().map(size).is_some_and(|bytes| bytes as u64 >= limit) {
                self.close()?;
                (self.part, self.rows) = (self.part + 1, 0);
            }
        }
        Ok(())
    }

    fn write_slice(&mut self, batch: &RecordBatch, places: &mut Vec<Place>) -> Result<()> {
        if self.writer.is_none() {
            self.open()?;
        }
        if let Some((writer, path)) = &mut self.writer {
            writer.write(batch).map_err(cannot_write(path))?;
        }
        let count = batch.num_rows() as u64;
        places.extend((self.rows + 1..=self.rows + count).map(|record| Place { part: self.part, record }));
        self.rows += count;
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        let (file, path) = self.target.create(self.part)?;
        let options = ArrowWriterOptions::new()
            .with_properties(self.properties.clone())
            .with_skip_arrow_metadata(self.types == Types::Parquet);
        let writer = ArrowWriter::try_new_with_options(file, Arc::clone(&self.schema), options);
        self.writer = Some((writer.map_err(cannot_write(&path))?, path));
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        match self.writer.take() {
            Some((writer, path)) => writer.close().map(|_| ()).map_err(cannot_write(&path)),
            None => Ok(()),
        }
    }

    /// Closes the last part; without any rows there is one, which has none.
    pub(super) fn finish(mut self) -> Result<()> {
        if self.writer.is_none() && self.part == 0 {
            self.open()?;
        }
        self.close()
    }
}

/// Copies the rows of the chosen pages. Only now are all columns read, so damage that the first reading did not meet can
/// show here; rows are never lost silently.
pub(super) fn copy(
    findings: &Findings<'_>,
    source: &Source,
    target: &Target<'_>,
    asked: KeptCompression,
    chosen: &[PageId],
) -> Result<Vec<Place>> {
    let rows: Vec<u64> = chosen.iter().map(|&page| findings.pages.place(page).record).collect();
    let mut places = Vec::with_capacity(rows.len());
    let mut parts = None;
    for_each_batch(source, Types::Parquet, |opened, batch| {
        let parts = parts.get_or_insert_with(|| {
            RowParts::new(target, Arc::clone(&opened.schema), opened.properties(asked), Types::Parquet)
        });
        let Some((first, batch)) = batch else { return Ok(()) };
        let numbers = first..first + batch.num_rows() as u64;
        let mask: BooleanArray = numbers.map(|number| Some(rows.binary_search(&number).is_ok())).collect();
        let filtered = filter_record_batch(&batch, &mask)
            .map_err(|error| Error::internal(format!("rows cannot be filtered: {error}")))?;
        parts.write(&filtered, &mut places)
    })?;
    if let Some(parts) = parts {
        parts.finish()?;
    }
    if places.len() == rows.len() {
        return Ok(places);
    }
    let reason = format!(
        "only {} of {} rows can be copied: the file is damaged in a column that is not compared; repair it, or leave it out",
        places.len(),
        rows.len()
    );
    Err(Error::corrupt(&source.path(), reason))
}

/// What is known of a Parquet file before its rows are read.
pub(super) struct Opened {
    pub(super) schema: SchemaRef,
    codec: Option<parquet::basic::Compression>,
    notes: Option<Vec<KeyValue>>,
    types: Types,
}

/// Where the types of Arrow are noted down.
const ARROW_SCHEMA: &str = "ARROW:schema";

impl Opened {
    /// How a file is written like this one.
    pub(super) fn properties(&self, asked: KeptCompression) -> WriterProperties {
        let notes = self.notes.clone().map(|notes| {
            notes
                .into_iter()
                .filter(|note| self.types == Types::Parquet || note.key != ARROW_SCHEMA)
                .collect::<Vec<_>>()
        });
        let properties = WriterProperties::builder().set_key_value_metadata(notes);
        match Packing::codec(asked).or(self.codec) {
            Some(codec) => properties.set_compression(codec).build(),
            None => properties.build(),
        }
    }
}

/// Which types the columns of a file are read with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Types {
    /// Those of Parquet: what its writer noted down besides is copied as it is.
    Parquet,
    /// Those that its writer noted down.
    Noted,
}

/// Shows what is known of a file to `visit`, and then its rows, batch by batch, with the number of the first one, from 1.
/// What cannot be read was reported when the source was, and ends the file.
pub(super) fn for_each_batch(
    source: &Source,
    types: Types,
    mut visit: impl FnMut(&Opened, Option<(u64, RecordBatch)>) -> Result<()>,
) -> Result<()> {
    let damaged = |(_, reason): (_, String)| Error::corrupt(&source.path(), reason);
    let file = Chunks::new(&source.location).map_err(Error::io(&source.path(), "read"))?;
    let builder = match types {
        Types::Parquet => guarded(|| open_parquet(file)).map_err(damaged)?,
        Types::Noted => guarded(|| open_typed_parquet(&source.location)).map_err(damaged)?,
    };
    let Ok(builder) = builder else { return Ok(()) };
    let metadata = Arc::clone(builder.metadata());
    let first_column = metadata.row_groups().first().and_then(|group| group.columns().first());
    let opened = Opened {
        schema: Arc::clone(builder.schema()),
        codec: first_column.map(ColumnChunkMetaData::compression),
        notes: metadata.file_metadata().key_value_metadata().cloned(),
        types,
    };
    visit(&opened, None)?;
    let mut reader = guarded(|| builder.build()).map_err(damaged)?.map_err(cannot_read(&source.path()))?;
    let mut row = 1;
    while let Some(Ok(batch)) = guarded(|| reader.next()).map_err(damaged)? {
        let count = batch.num_rows() as u64;
        visit(&opened, Some((row, batch)))?;
        row += count;
    }
    Ok(())
}
