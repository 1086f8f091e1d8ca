//! Tables and iterables in memory → a file that the engine reads, as often as it needs to.
//!
//! In: anything with the Arrow C stream interface, or an iterable of strings or dicts. Out: a file with one record per row,
//! and the number of rows. Whatever comes in is written batch by batch and never held whole. Records without an id get
//! the number of their row, from 0.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use lookalike::Config;
use lookalike::config::Role;
use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyMapping, PyString};

use crate::arrow::{arrays, broken, not_text};
use crate::errors::{InputError, InvalidSetting, StorageError};
use crate::settings::{given, set_config};

/// Most rows of a batch: many enough that what is said of each batch does not count.
const BATCH_ROWS: usize = 4096;
/// About the most bytes of a batch, which is read as a whole.
const BATCH_BYTES: usize = 64 << 20;
/// Texts of an iterable that are gathered before they are written.
const BATCH_TEXTS: u64 = 1024;
/// Items between two looks for Ctrl-C.
const SIGNAL_ITEMS: usize = 256;
/// The column of texts that come without a table.
const TEXT: &str = "text";
/// The field of the id, if no other is named.
const ID: &str = "id";

fn unwritten(path: &Path, error: &dyn std::fmt::Display) -> PyErr {
    StorageError::new_err(format!(
        "{}: cannot write a copy of the table: {error}; make room there, or set TMPDIR to a directory with more",
        path.display()
    ))
}

/// Batches on their way into a file.
struct ArrowFile {
    path: PathBuf,
    writer: StreamWriter<BufWriter<File>>,
    schema: SchemaRef,
    /// Which columns of the source are written; none where it is no table but texts.
    columns: Option<Vec<usize>>,
    is_numbered: bool,
    rows: u64,
}

impl ArrowFile {
    fn create(
        path: PathBuf,
        fields: Vec<Arc<Field>>,
        columns: Option<Vec<usize>>,
        is_numbered: bool,
    ) -> PyResult<Self> {
        let mut fields = fields;
        if is_numbered {
            fields.push(Arc::new(Field::new(ID, DataType::UInt64, false)));
        }
        let schema = Arc::new(Schema::new(fields));
        let file = File::create(&path).map_err(|error| unwritten(&path, &error))?;
        let writer = StreamWriter::try_new(BufWriter::with_capacity(1 << 20, file), &schema)
            .map_err(|error| unwritten(&path, &error))?;
        Ok(ArrowFile { path, writer, schema, columns, is_numbered, rows: 0 })
    }

    /// Writes the rows of an array: of a structure its columns, of anything else the array itself.
    fn push(&mut self, array: &ArrayRef) -> Result<(), ArrowError> {
        let most = (BATCH_BYTES / (bytes_of(array) / array.len().max(1)).max(1)).clamp(1, BATCH_ROWS);
        for from in (0..array.len()).step_by(most) {
            let rows = array.slice(from, most.min(array.len() - from));
            let mut columns: Vec<ArrayRef> = match (&self.columns, rows.as_struct_opt()) {
                (Some(chosen), Some(table)) => chosen.iter().map(|&at| compact(table.column(at))).collect(),
                _ => vec![compact(&rows)],
            };
            let count = rows.len() as u64;
            if self.is_numbered {
                columns.push(Arc::new(UInt64Array::from_iter_values(self.rows..self.rows + count)));
            }
            self.writer.write(&RecordBatch::try_new(Arc::clone(&self.schema), columns)?)?;
            self.rows += count;
        }
        Ok(())
    }

    fn finish(mut self) -> PyResult<u64> {
        let done = self.writer.finish().and_then(|()| Ok(self.writer.get_mut().flush()?));
        done.map_err(|error| unwritten(&self.path, &error))?;
        Ok(self.rows)
    }
}

/// About the bytes of an array, without what it was cut from.
fn bytes_of(array: &ArrayRef) -> usize {
    match array.data_type() {
        DataType::Utf8View => array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => array.as_binary_view().total_buffer_bytes_used(),
        DataType::Struct(_) => array.as_struct().columns().iter().map(bytes_of).sum(),
        _ => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_buffer_memory_size()),
    }
}

/// Views of a slice keep all that they were cut from; without this, every batch would be written with all of it.
fn compact(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()),
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
        _ => Arc::clone(column),
    }
}

/// Writes a table, or an array of texts, to `path`. Returns the number of rows.
///
/// Columns that the run does not look at are left out, unless `is_whole`.
#[pyfunction]
pub(crate) fn spool_arrow(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    path: PathBuf,
    settings: &Bound<'_, PyDict>,
    is_whole: bool,
) -> PyResult<u64> {
    let mut config = Config::default();
    for given in given(settings)? {
        set_config(&mut config, &given)?;
    }
    let mut reader = arrays(source)?;
    let field = reader.field();
    let mut file = match field.data_type() {
        DataType::Struct(fields) => {
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            check_text(&config, &names)?;
            let is_numbered = !has_id(&config, &names)?;
            let is_read = |name: &str| is_whole || config.role_of(name).is_some();
            let chosen = fields.iter().enumerate().filter(|(_, field)| is_read(field.name()));
            let (places, fields) = chosen.map(|(at, field)| (at, Arc::clone(field))).unzip();
            ArrowFile::create(path, fields, Some(places), is_numbered)?
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let name = config.read.fields.text.clone().unwrap_or_else(|| TEXT.to_owned());
            let texts = Field::new(name, field.data_type().clone(), true);
            ArrowFile::create(path, vec![Arc::new(texts)], None, true)?
        }
        _ => return Err(not_text(&field)),
    };
    // Whatever makes the batches may be Python, and takes the GIL for itself.
    while let Some(array) = py.detach(|| reader.next()) {
        let array = array.map_err(|error| broken(&error))?;
        py.detach(|| file.push(&array)).map_err(|error| unwritten(&file.path, &error))?;
        py.check_signals()?;
    }
    file.finish()
}

/// Whether one of the columns has the texts.
fn check_text(config: &Config, names: &[&str]) -> PyResult<()> {
    if names.iter().any(|name| config.role_of(name) == Some(Role::Text)) {
        return Ok(());
    }
    let columns = names.join(", ");
    Err(match &config.read.fields.text {
        Some(field) => {
            InvalidSetting::new_err(format!("text_field={field:?}: the table has no such column; it has {columns}"))
        }
        None => InputError::new_err(format!(
            "no column of the table is known to have the texts; it has {columns}; say which one it is with `text_field`"
        )),
    })
}

/// Whether rows bring their ids along.
fn has_id(config: &Config, names: &[&str]) -> PyResult<bool> {
    let wanted = config.read.fields.id.as_deref();
    let leads_to = |field: &str| names.iter().any(|name| field == *name || field.starts_with(&format!("{name}.")));
    match wanted {
        Some(field) if !leads_to(field) => Err(InvalidSetting::new_err(format!(
            "id_field={field:?}: the table has no such column; it has {}",
            names.join(", ")
        ))),
        Some(_) => Ok(true),
        None => Ok(names.contains(&ID)),
    }
}

/// Writes the items of an iterable to a file in `directory`: strings as Arrow, dicts as JSON lines. Returns the name of the
/// file and the number of rows. `encode` makes JSON of a dict.
#[pyfunction]
pub(crate) fn spool_items(
    py: Python<'_>,
    items: &Bound<'_, PyAny>,
    directory: PathBuf,
    id_field: Option<&str>,
    encode: &Bound<'_, PyAny>,
) -> PyResult<(PathBuf, u64)> {
    let mut items = items.try_iter()?;
    let mut nulls = 0;
    // What the first item is decides; nulls may come before it.
    while let Some(item) = items.next() {
        let item = item?;
        if item.is_none() {
            nulls += 1;
        } else if item.is_instance_of::<PyString>() {
            let mut texts = Texts::create(directory.join("texts.arrows"))?;
            (0..nulls).try_for_each(|_| texts.push(None))?;
            texts.push(Some(text_of(&item, nulls)?))?;
            texts.push_all(py, items)?;
            return Ok((texts.file.path.clone(), texts.finish()?));
        } else if item.cast::<PyMapping>().is_ok() {
            let mut records = Records::create(directory.join("records.jsonl"), id_field, encode.clone())?;
            (0..nulls).try_for_each(|_| records.push_null())?;
            records.push(&item)?;
            records.push_all(py, items)?;
            return Ok((records.path.clone(), records.finish()?));
        } else {
            return Err(wrong_item(&item, nulls, "a string or a dict"));
        }
    }
    Err(InputError::new_err(match nulls {
        0 => "the iterable is empty: there is nothing to compare",
        _ => "every item of the iterable is None: there is nothing to compare",
    }))
}

fn wrong_item(item: &Bound<'_, PyAny>, at: u64, expected: &str) -> PyErr {
    let name = item.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    InputError::new_err(format!("item {at} is of the type {name}, and must be {expected}, or None to skip it"))
}

/// The text of an item; surrogates without their other half have no place in UTF-8.
fn text_of<'a>(item: &'a Bound<'_, PyAny>, at: u64) -> PyResult<&'a str> {
    let text = item.cast::<PyString>().map_err(|_| wrong_item(item, at, "a string, as the items before it"))?;
    text.to_str().map_err(|error| not_unicode(item.py(), error, at))
}

fn not_unicode(py: Python<'_>, error: PyErr, at: u64) -> PyErr {
    if !error.is_instance_of::<PyUnicodeEncodeError>(py) {
        return error;
    }
    let remedy = "replace what is not Unicode with text.encode('utf-8', 'replace').decode()";
    InputError::new_err(format!("item {at} is not valid Unicode ({error}); {remedy}"))
}

struct Texts {
    file: ArrowFile,
    waiting: LargeStringBuilder,
    count: u64,
}

impl Texts {
    fn create(path: PathBuf) -> PyResult<Texts> {
        let texts = Field::new(TEXT, DataType::LargeUtf8, true);
        let file = ArrowFile::create(path, vec![Arc::new(texts)], None, true)?;
        Ok(Texts { file, waiting: LargeStringBuilder::new(), count: 0 })
    }

    fn push(&mut self, text: Option<&str>) -> PyResult<()> {
        self.waiting.append_option(text);
        self.count += 1;
        let is_full = self.count.is_multiple_of(BATCH_TEXTS) || self.waiting.values_slice().len() > BATCH_BYTES;
        if is_full { self.write() } else { Ok(()) }
    }

    fn push_all(&mut self, py: Python<'_>, items: Bound<'_, PyIterator>) -> PyResult<()> {
        for (number, item) in items.enumerate() {
            let item = item?;
            let text = if item.is_none() { None } else { Some(text_of(&item, self.count)?) };
            self.push(text)?;
            check_signals(py, number)?;
        }
        Ok(())
    }

    fn write(&mut self) -> PyResult<()> {
        let texts: ArrayRef = Arc::new(self.waiting.finish());
        self.file.push(&texts).map_err(|error| unwritten(&self.file.path, &error))
    }

    fn finish(mut self) -> PyResult<u64> {
        self.write()?;
        self.file.finish()
    }
}

fn check_signals(py: Python<'_>, number: usize) -> PyResult<()> {
    if number.is_multiple_of(SIGNAL_ITEMS) { py.check_signals() } else { Ok(()) }
}

struct Records<'py> {
    path: PathBuf,
    out: BufWriter<File>,
    id_field: String,
    encode: Bound<'py, PyAny>,
    count: u64,
}

impl<'py> Records<'py> {
    fn create(path: PathBuf, id_field: Option<&str>, encode: Bound<'py, PyAny>) -> PyResult<Records<'py>> {
        let file = File::create(&path).map_err(|error| unwritten(&path, &error))?;
        let out = BufWriter::with_capacity(1 << 20, file);
        Ok(Records { path, out, id_field: id_field.unwrap_or(ID).to_owned(), encode, count: 0 })
    }

    fn push_null(&mut self) -> PyResult<()> {
        self.write(|out, _| writeln!(out, "null"))
    }

    fn push(&mut self, item: &Bound<'py, PyAny>) -> PyResult<()> {
        let at = self.count;
        let record = item.cast::<PyMapping>().map_err(|_| wrong_item(item, at, "a dict, as the items before it"))?;
        let top = self.id_field.split('.').next().unwrap_or(ID);
        let has_id = record.contains(top)? || record.contains(self.id_field.as_str())?;
        let is_empty = record.is_empty()?;
        let json = self.encode.call1((item,)).map_err(|error| not_unicode(item.py(), error, at))?;
        let json = json.cast::<PyBytes>()?.as_bytes();
        let field = serde_json::Value::from(self.id_field.as_str());
        self.write(|out, number| match json.split_first() {
            // The object with one more field.
            Some((b'{', rest)) if !has_id => {
                let comma = if is_empty { "" } else { ", " };
                write!(out, "{{{field}: \"{number}\"{comma}")?;
                out.write_all(rest)?;
                writeln!(out)
            }
            _ => out.write_all(json).and_then(|()| writeln!(out)),
        })
    }

    fn push_all(&mut self, py: Python<'py>, items: Bound<'py, PyIterator>) -> PyResult<()> {
        for (number, item) in items.enumerate() {
            let item = item?;
            if item.is_none() {
                self.push_null()?;
            } else {
                self.push(&item)?;
            }
            check_signals(py, number)?;
        }
        Ok(())
    }

    fn write(&mut self, write: impl FnOnce(&mut BufWriter<File>, u64) -> std::io::Result<()>) -> PyResult<()> {
        write(&mut self.out, self.count).map_err(|error| unwritten(&self.path, &error))?;
        self.count += 1;
        Ok(())
    }

    fn finish(mut self) -> PyResult<u64> {
        self.out.flush().map_err(|error| unwritten(&self.path, &error))?;
        Ok(self.count)
    }
}
