//! The index of fingerprints.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{ArrayRef, LargeStringArray, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use lookalike::index::{Id, IdKind, IndexConfig, OpenOptions};
use lookalike::{Index, RunOptions};
use numpy::{PyArrayDyn, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use crate::errors::{InputError, InternalError, OrRaise, misspelt};
use crate::table::Table;

/// Rows from which they are sorted into a file of their own, not gathered in memory.
const BULK_ROWS: usize = 1 << 16;

/// Fingerprints on disk.
#[pyclass(frozen, module = "lookalike._lookalike")]
pub(crate) struct HammingIndex {
    /// Nothing once it was closed.
    index: Mutex<Option<Arc<Index>>>,
}

impl HammingIndex {
    fn new(index: Index) -> HammingIndex {
        HammingIndex { index: Mutex::new(Some(Arc::new(index))) }
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<Index>>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_index(&self) -> PyResult<Arc<Index>> {
        self.slot().clone().ok_or_else(|| PyValueError::new_err("the index is closed; open it again"))
    }
}

#[pymethods]
impl HammingIndex {
    /// Makes an empty index.
    #[staticmethod]
    fn create(directory: PathBuf, radius: u32, ids: &str, force: bool) -> PyResult<HammingIndex> {
        let kind: IdKind = ids.parse().map_err(|expected: String| misspelt("ids", ids, expected))?;
        let config = IndexConfig::given(kind, radius);
        let index = Index::create(&directory, config, RunOptions::default_memory_bytes(), force).or_raise()?;
        // Others can open it from now on.
        index.flush().or_raise()?;
        Ok(HammingIndex::new(index))
    }

    /// Opens an index.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        directory: PathBuf,
        writable: bool,
        check: bool,
        skip_damaged: bool,
    ) -> PyResult<HammingIndex> {
        let options = OpenOptions { write: writable, check, skip_damaged, ..OpenOptions::default() };
        Ok(HammingIndex::new(py.detach(|| Index::open(&directory, options)).or_raise()?))
    }

    /// Adds rows. Without ids, they are numbered.
    fn add(&self, py: Python<'_>, values: &Bound<'_, PyAny>, ids: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let index = self.open_index()?;
        let fingerprints = fingerprints(values)?;
        let kind = index.config().ids;
        let ids = match ids {
            Some(ids) => given_ids(ids, kind)?,
            None => {
                let first = index.next_id();
                let numbers = (first..).take(fingerprints.len());
                numbers.map(|number| numbered(number, kind)).collect()
            }
        };
        if ids.len() != fingerprints.len() {
            let message = format!("{} ids for {} fingerprints; give one for each", ids.len(), fingerprints.len());
            return Err(InputError::new_err(message));
        }
        let rows: Vec<(u64, Id)> = fingerprints.into_iter().zip(ids).collect();
        py.detach(|| {
            if rows.len() < BULK_ROWS {
                return index.insert(&rows);
            }
            let mut bulk = index.bulk_insert()?;
            rows.iter().try_for_each(|(fingerprint, id)| bulk.push(*fingerprint, id))?;
            bulk.finish()
        })
        .or_raise()
    }

    /// The rows near a fingerprint: ids, distances, fingerprints.
    fn query(
        &self,
        py: Python<'_>,
        fingerprint: u64,
        radius: Option<u32>,
        limit: usize,
    ) -> PyResult<Vec<(Py<PyAny>, u32, u64)>> {
        let index = self.open_index()?;
        let radius = radius.unwrap_or(index.config().radius);
        let found = py.detach(|| index.reader().query(fingerprint, radius, limit)).or_raise()?;
        found.matches.into_iter().map(|row| Ok((python_id(py, &row.id)?, row.distance, row.fingerprint))).collect()
    }

    /// The rows near many fingerprints, as a table: the place of the query, the id, the distance.
    fn query_all(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        radius: Option<u32>,
        limit: usize,
    ) -> PyResult<Table> {
        let index = self.open_index()?;
        let radius = radius.unwrap_or(index.config().radius);
        let queries: Vec<(u64, Id)> =
            fingerprints(values)?.into_iter().zip(0..).map(|(query, at)| (query, Id::Number(at))).collect();
        let (mut places, mut ids, mut distances) = (Vec::new(), Vec::new(), Vec::new());
        py.detach(|| {
            index.reader().batch_matches(&queries, radius, limit, &mut |query, row| {
                if let Id::Number(at) = query {
                    places.push(*at);
                }
                ids.push(row.id.clone());
                distances.push(row.distance);
                Ok(())
            })
        })
        .or_raise()?;
        let ids: ArrayRef = match index.config().ids {
            IdKind::Number => Arc::new(UInt64Array::from_iter(ids.iter().map(|id| match id {
                Id::Number(number) => Some(*number),
                Id::Text(_) => None,
            }))),
            IdKind::Text => Arc::new(LargeStringArray::from_iter_values(ids.iter().map(ToString::to_string))),
        };
        let fields = vec![
            Field::new("query", DataType::UInt64, false),
            Field::new("id", ids.data_type().clone(), true),
            Field::new("distance", DataType::UInt32, false),
        ];
        let schema = Arc::new(Schema::new(fields));
        let columns: Vec<ArrayRef> =
            vec![Arc::new(UInt64Array::from(places)), ids, Arc::new(UInt32Array::from(distances))];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns);
        let batch = batch.map_err(|error| InternalError::new_err(error.to_string()))?;
        Ok(Table::new(schema, vec![batch]))
    }

    /// Writes what is only in memory to the directory.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let index = self.open_index()?;
        py.detach(|| index.flush()).or_raise()
    }

    /// Writes all rows to a new index in another directory.
    fn save(&self, py: Python<'_>, directory: PathBuf, force: bool) -> PyResult<()> {
        let index = self.open_index()?;
        py.detach(|| {
            let memory = RunOptions::default_memory_bytes();
            let copy = Index::create(&directory, index.config().clone(), memory, force)?;
            let mut rows = copy.bulk_insert()?;
            index.reader().for_each_row(&mut |fingerprint, id| rows.push(fingerprint, id))?;
            rows.finish()
        })
        .or_raise()
    }

    /// Releases the directory; what was not flushed is lost.
    fn close(&self) {
        self.slot().take();
    }

    fn __len__(&self) -> PyResult<usize> {
        usize::try_from(self.open_index()?.reader().len().0).map_err(|error| InternalError::new_err(error.to_string()))
    }

    #[getter]
    fn directory(&self) -> PyResult<PathBuf> {
        Ok(self.open_index()?.directory().to_path_buf())
    }

    #[getter]
    fn radius(&self) -> PyResult<u32> {
        Ok(self.open_index()?.config().radius)
    }

    #[getter]
    fn id_kind(&self) -> PyResult<String> {
        Ok(self.open_index()?.config().ids.to_string())
    }
}

fn numbered(number: u64, kind: IdKind) -> Id {
    match kind {
        IdKind::Number => Id::Number(number),
        IdKind::Text => Id::Text(number.to_string().into()),
    }
}

fn python_id(py: Python<'_>, id: &Id) -> PyResult<Py<PyAny>> {
    Ok(match id {
        Id::Number(number) => number.into_pyobject(py)?.into_any().unbind(),
        Id::Text(text) => PyString::new(py, text).into_any().unbind(),
    })
}

fn given_ids(ids: &Bound<'_, PyAny>, kind: IdKind) -> PyResult<Vec<Id>> {
    let mut all = Vec::new();
    for (at, id) in ids.try_iter()?.enumerate() {
        let id = id?;
        let wrong =
            |expected: &str| PyTypeError::new_err(format!("id {at} is {id}, and the ids of this index are {expected}"));
        all.push(match kind {
            IdKind::Number => {
                Id::Number(id.extract().map_err(|_| wrong("numbers from 0 on; make it with ids=\"text\""))?)
            }
            IdKind::Text => Id::Text(id.extract::<String>().map_err(|_| wrong("strings"))?.into()),
        });
    }
    Ok(all)
}

/// 64-bit numbers: a numpy array, or an iterable of integers. An array may have gaps between its values.
fn fingerprints(values: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    if let Ok(array) = values.extract::<PyReadonlyArray1<'_, u64>>() {
        return Ok(array.as_array().iter().copied().collect());
    }
    if values.hasattr("dtype")? {
        let shape = values.cast::<PyArrayDyn<u64>>().map(|array| array.shape().to_vec());
        return Err(PyTypeError::new_err(match shape {
            Ok(shape) => format!("fingerprints have the shape {shape:?}, and must be one row; use array.reshape(-1)"),
            Err(_) => format!(
                "fingerprints are an array of {}, and must be of uint64; use array.astype(\"uint64\"), or .view(\"uint64\") for signed ones",
                values.getattr("dtype")?
            ),
        }));
    }
    if values.is_instance_of::<PyInt>() || values.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("fingerprints must be an array or a list; put a single one into [ ]"));
    }
    let numbers = values.try_iter()?.enumerate().map(|(at, value)| {
        let value = value?;
        value.extract().map_err(|_| {
            InputError::new_err(format!("fingerprint {at} is {value}, and must be a whole number from 0 to 2**64 - 1"))
        })
    });
    numbers.collect()
}
