//! The tables of a result, as Arrow.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{Field, SchemaRef};
use lookalike::result::files::{CLUSTERS, PAGES};
use numpy::{IntoPyArray, PyArray1};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};

use crate::errors::{CorruptFile, StorageError};

/// A table in memory, which other libraries take over without copying it.
#[pyclass(frozen, module = "lookalike")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Table {
        Table { schema, batches }
    }

    fn field(&self) -> Field {
        Field::new_struct("", self.schema.fields().clone(), false)
    }
}

#[pymethods]
impl Table {
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn __repr__(&self) -> String {
        let columns = self.schema.fields().iter().map(|field| format!("  {}: {}", field.name(), field.data_type()));
        format!("lookalike.Table of {} rows\n{}", self.num_rows(), columns.collect::<Vec<_>>().join("\n"))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = self.batches.clone().into_iter().map(|batch| Ok(Arc::new(StructArray::from(batch)) as ArrayRef));
        let reader = ArrayIterator::new(batches, Arc::new(self.field()));
        Ok(to_stream_pycapsule(py, Box::new(reader), requested_schema)?)
    }

    /// The table as a `pyarrow.Table`.
    fn to_pyarrow<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// The table as a `pandas.DataFrame`, made by pyarrow.
    fn to_pandas<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Table::to_pyarrow(slf)?.call_method0("to_pandas")
    }

    /// The table as a `polars.DataFrame`.
    fn to_polars<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }
}

fn damaged(path: &Path, error: &dyn std::fmt::Display) -> PyErr {
    CorruptFile::new_err(format!("{}: cannot be read: {error}; run dedup again", path.display()))
}

/// Reads all of a Parquet file, or some of its columns.
fn read(path: &Path, columns: Option<&[&str]>) -> PyResult<Table> {
    let file = File::open(path).map_err(|error| {
        StorageError::new_err(format!("{}: cannot read: {error}; is this the output of dedup?", path.display()))
    })?;
    let mut builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| damaged(path, &error))?;
    if let Some(columns) = columns {
        let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
        builder = builder.with_projection(mask);
    }
    let reader = builder.with_batch_size(1 << 16).build().map_err(|error| damaged(path, &error))?;
    let schema = arrow_array::RecordBatchReader::schema(&reader);
    let batches: Result<Vec<RecordBatch>, _> = reader.collect();
    Ok(Table { schema, batches: batches.map_err(|error| damaged(path, &error))? })
}

/// A Parquet file as a table.
#[pyfunction]
pub(crate) fn read_table(py: Python<'_>, path: PathBuf) -> PyResult<Table> {
    py.detach(|| read(&path, None))
}

/// Which of the rows of a source are kept: one value for each, false for those that could not be used. Without a number of
/// rows, one value for each page.
#[pyfunction]
#[pyo3(signature = (directory, rows))]
pub(crate) fn keep_mask<'py>(
    py: Python<'py>,
    directory: PathBuf,
    rows: Option<usize>,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let mask = py.detach(|| {
        let clusters_path = directory.join(CLUSTERS.parquet);
        let clusters = read(&clusters_path, Some(&["kept"]))?;
        let mut kept = Vec::new();
        for batch in &clusters.batches {
            let column =
                batch.column(0).as_boolean_opt().ok_or_else(|| damaged(&clusters_path, &"'kept' is no flag"))?;
            kept.extend(column.iter().map(|flag| flag.unwrap_or(false)));
        }
        let Some(rows) = rows else { return Ok(kept) };
        // Both tables have the pages in the same order.
        let pages_path = directory.join(PAGES.parquet);
        let pages = read(&pages_path, Some(&["record"]))?;
        let mut mask = vec![false; rows];
        let mut flags = kept.into_iter();
        for batch in &pages.batches {
            let records = batch.column(0).as_primitive_opt::<UInt64Type>();
            for record in records.ok_or_else(|| damaged(&pages_path, &"'record' is not a number"))?.values() {
                let at = usize::try_from(*record).ok().and_then(|record| record.checked_sub(1));
                if let (Some(slot), Some(flag)) = (at.and_then(|at| mask.get_mut(at)), flags.next()) {
                    *slot = flag;
                }
            }
        }
        Ok(mask)
    });
    mask.map(|mask| mask.into_pyarray(py))
}
