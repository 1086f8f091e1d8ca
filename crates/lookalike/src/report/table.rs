//! A table that is written as Parquet and, on request, as JSON lines too.
//!
//! In: rows of cells that fit the columns. Out: files whose bytes depend on the rows alone.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::error::{Error, Result};
use crate::report::files::TableFiles;

/// Rows that are written at a time.
const BATCH_ROWS: usize = 1 << 15;

/// One value.
#[derive(Debug, Clone, Copy)]
pub enum Cell<'a> {
    /// Text, or none.
    Text(Option<&'a str>),
    /// A whole number, or none.
    Whole(Option<u64>),
    /// A real number, or none.
    Real(Option<f64>),
    /// True, false, or not known.
    Truth(Option<bool>),
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Text.
    Text,
    /// Whole numbers.
    Whole,
    /// Real numbers.
    Real,
    /// Truth values.
    Truth,
}

enum Builder {
    Text(StringBuilder),
    Whole(UInt64Builder),
    Real(Float64Builder),
    Truth(BooleanBuilder),
}

impl Builder {
    fn new(column: ColumnType) -> Builder {
        match column {
            ColumnType::Text => Builder::Text(StringBuilder::new()),
            ColumnType::Whole => Builder::Whole(UInt64Builder::new()),
            ColumnType::Real => Builder::Real(Float64Builder::new()),
            ColumnType::Truth => Builder::Truth(BooleanBuilder::new()),
        }
    }

    fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Builder::Text(builder), Cell::Text(text)) => builder.append_option(text),
            (Builder::Whole(builder), Cell::Whole(number)) => builder.append_option(number),
            (Builder::Real(builder), Cell::Real(number)) => builder.append_option(number),
            (Builder::Truth(builder), Cell::Truth(truth)) => builder.append_option(truth),
            (_, cell) => unreachable!("{cell:?} does not fit its column"),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Text(builder) => Arc::new(builder.finish()),
            Builder::Whole(builder) => Arc::new(builder.finish()),
            Builder::Real(builder) => Arc::new(builder.finish()),
            Builder::Truth(builder) => Arc::new(builder.finish()),
        }
    }
}

/// Writes one table.
pub struct TableWriter {
    path: PathBuf,
    schema: Arc<Schema>,
    builders: Vec<Builder>,
    rows: usize,
    parquet: ArrowWriter<File>,
    lines: Option<(PathBuf, BufWriter<File>)>,
}

impl TableWriter {
    /// Creates the files in `directory`, JSON lines only if asked for. A `?` at the end of a column's name in
    /// `columns` says that it may be empty.
    ///
    /// # Errors
    /// When a file cannot be created.
    pub fn create(
        directory: &Path,
        files: TableFiles,
        columns: &[(&str, ColumnType)],
        jsonl: bool,
    ) -> Result<TableWriter> {
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, column)| {
                let data_type = match column {
                    ColumnType::Text => DataType::Utf8,
                    ColumnType::Whole => DataType::UInt64,
                    ColumnType::Real => DataType::Float64,
                    ColumnType::Truth => DataType::Boolean,
                };
                Field::new(name.trim_end_matches('?'), data_type, name.ends_with('?'))
            })
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let path = directory.join(files.parquet);
        let file = File::create(&path).map_err(Error::io(&path, "create"))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by("lookalike".to_owned())
            // Ids, offsets and similarities hardly repeat: a dictionary of them is work for nothing.
            .set_dictionary_enabled(false)
            .set_column_dictionary_enabled("source".into(), true)
            .set_column_dictionary_enabled("kind".into(), true)
            .build();
        let parquet = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).map_err(cannot_write(&path))?;
        let lines = if jsonl {
            let path = directory.join(files.jsonl);
            let file = File::create(&path).map_err(Error::io(&path, "create"))?;
            Some((path, BufWriter::new(file)))
        } else {
            None
        };
        let builders = columns.iter().map(|(_, column)| Builder::new(*column)).collect();
        Ok(TableWriter { path, schema, builders, rows: 0, parquet, lines })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When a file cannot be written.
    ///
    /// # Panics
    /// When the cells do not fit the columns.
    pub fn push(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        assert_eq!(cells.len(), self.builders.len(), "a row has one cell per column");
        for (builder, &cell) in self.builders.iter_mut().zip(cells) {
            builder.push(cell);
        }
        if let Some((path, file)) = &mut self.lines {
            let names = self.schema.fields().iter().map(|field| field.name().as_str());
            write_line(file, names.zip(cells)).map_err(Error::io(path, "write"))?;
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS {
            self.write_batch()?;
        }
        Ok(())
    }

    fn write_batch(&mut self) -> Result<()> {
        let columns = self.builders.iter_mut().map(Builder::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| Error::internal(format!("a table does not fit its columns: {error}")))?;
        self.rows = 0;
        self.parquet.write(&batch).map_err(cannot_write(&self.path))
    }

    /// Closes the files.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn finish(mut self) -> Result<()> {
        self.write_batch()?;
        self.parquet.close().map_err(cannot_write(&self.path))?;
        if let Some((path, mut file)) = self.lines {
            file.flush().map_err(Error::io(&path, "write"))?;
        }
        Ok(())
    }
}

fn write_line<'a>(file: &mut impl Write, cells: impl Iterator<Item = (&'a str, &'a Cell<'a>)>) -> std::io::Result<()> {
    for (at, (name, cell)) in cells.enumerate() {
        write!(file, "{}\"{name}\":", if at == 0 { "{" } else { "," })?;
        match cell {
            Cell::Text(text) => serde_json::to_writer(&mut *file, text),
            Cell::Whole(number) => serde_json::to_writer(&mut *file, number),
            Cell::Real(number) => serde_json::to_writer(&mut *file, number),
            Cell::Truth(truth) => serde_json::to_writer(&mut *file, truth),
        }?;
    }
    file.write_all(b"}\n")
}

/// What the system said where that is behind a Parquet error, such as a full disk.
fn io_cause(error: &ParquetError) -> Option<std::io::Error> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(io) = current.downcast_ref::<std::io::Error>() {
            let copy = || std::io::Error::new(io.kind(), io.to_string());
            return Some(io.raw_os_error().map_or_else(copy, std::io::Error::from_raw_os_error));
        }
        cause = current.source();
    }
    None
}

/// For `map_err`: a Parquet file of ours could not be written.
pub(crate) fn cannot_write(path: &Path) -> impl FnOnce(ParquetError) -> Error {
    let path = path.to_path_buf();
    move |error| match io_cause(&error) {
        Some(cause) => Error::Io { path, action: "write", cause },
        None => Error::internal(format!("{}: cannot be written as Parquet: {error}", path.display())),
    }
}

/// For `map_err`: a Parquet file cannot be read.
pub(crate) fn cannot_read(path: &Path) -> impl FnOnce(ParquetError) -> Error {
    let path = path.to_path_buf();
    move |error| match io_cause(&error) {
        Some(cause) => Error::Io { path, action: "read", cause },
        None => Error::corrupt(&path, format!("cannot be read as Parquet: {error}")),
    }
}
