//! The main job in parts, for `lookalike.spark`: a part works on a thread of its own, and rows come and go.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{MutexGuard, PoisonError};
use std::thread;

use arrow_array::RecordBatch;
use lookalike::parts;
use lookalike::transfer::TransferOptions;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};
use pyo3_arrow::{PyRecordBatch, PyTable};

use crate::errors::{InternalError, OrRaise, exception, misspelt};
use crate::settings::{Settings, given, set_config};
use crate::table::Table;

/// Batches that wait to be taken.
const WAITING: usize = 4;

/// What is to be read, in units, and what is known before it is: as JSON.
#[pyfunction]
pub(crate) fn job_input(
    py: Python<'_>,
    inputs: Vec<String>,
    method: &str,
    settings: &Bound<'_, PyDict>,
    against: Vec<String>,
) -> PyResult<String> {
    let Settings { config, options } = Settings::new(inputs, "-".into(), method, settings)?;
    let input = py.detach(|| parts::JobInput::open(&config, &options.inputs, &against)).or_raise()?;
    serde_json::to_string(&input).map_err(|error| InternalError::new_err(error.to_string()))
}

/// The columns of a part's rows, in SQL.
#[pyfunction]
pub(crate) fn part_columns(name: &str) -> PyResult<String> {
    parts::columns(name).or_raise()
}

/// What samples teach about frames, as JSON.
#[pyfunction]
pub(crate) fn learn_frames(py: Python<'_>, samples: PyTable) -> PyResult<String> {
    let (batches, _) = samples.into_inner();
    py.detach(|| parts::learn(&batches)).or_raise()
}

/// The components of pairs.
#[pyfunction]
pub(crate) fn connected(py: Python<'_>, pairs: PyTable) -> PyResult<Table> {
    let (batches, _) = pairs.into_inner();
    let found = py.detach(|| parts::connected(&batches)).or_raise()?;
    Ok(Table::new(found.schema(), vec![found]))
}

/// The settings of a transfer.
fn transfer_options(settings: &Bound<'_, PyDict>) -> PyResult<TransferOptions> {
    let mut options = TransferOptions::new("".into(), Vec::new(), Vec::new(), "".into());
    for given in given(settings)? {
        match given.name.as_str() {
            "qrels" => options.qrels = given.text()?.into(),
            "from" => options.from = given.texts()?,
            "to" => options.to = given.texts()?,
            "output" => options.output = given.text()?.into(),
            "threshold" => options.threshold = given.value.extract()?,
            "radius" => options.config.method.set("radius", &given.as_parameter()?).or_raise()?,
            "allow_missing" => options.allow_missing = given.value.is_truthy()?,
            "verified_only" => options.verified_only = given.value.is_truthy()?,
            "all_near" => options.all_near = given.value.is_truthy()?,
            "on_conflict" => options.on_conflict = given.parsed()?,
            "domains" => options.domains = given.parsed()?,
            // The directory has the stages of the transfer.
            "force" => options.force = given.value.is_truthy()?,
            "replace" => options.replace = given.value.is_truthy()?,
            name => {
                if !set_config(&mut options.config, &given)? {
                    let names = "qrels, from, to, output, threshold, radius, allow_missing, verified_only, all_near, on_conflict, domains, and how pages are read";
                    return Err(misspelt(
                        name,
                        &given.as_parameter()?,
                        format!("a transfer has no such setting; it has {names}"),
                    ));
                }
            }
        }
    }
    Ok(options)
}

/// What is to be read for a transfer, in units: as JSON.
#[pyfunction]
pub(crate) fn transfer_input(py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<String> {
    let options = transfer_options(settings)?;
    let input = py.detach(|| parts::TransferInput::open(&options)).or_raise()?;
    serde_json::to_string(&input).map_err(|error| InternalError::new_err(error.to_string()))
}

/// The judged pages, as every machine gets them.
#[pyfunction]
pub(crate) fn transfer_judged(py: Python<'_>, found: Vec<Vec<u8>>) -> PyResult<String> {
    py.detach(|| parts::judged_pages(&found)).or_raise()
}

/// Writes the result of a transfer; returns its report as JSON.
#[pyfunction]
pub(crate) fn transfer_finish(
    py: Python<'_>,
    settings: &Bound<'_, PyDict>,
    spec: &str,
    judged: &str,
    counterparts: Vec<Vec<u8>>,
    counts: &str,
) -> PyResult<String> {
    let options = transfer_options(settings)?;
    let counts = serde_json::from_str(counts).map_err(|error| InternalError::new_err(error.to_string()))?;
    let report = py.detach(|| parts::finish(&options, spec, judged, &counterparts, counts)).or_raise()?;
    serde_json::to_string(&report).map_err(|error| InternalError::new_err(error.to_string()))
}

/// What a part says.
enum Said {
    Rows(RecordBatch),
    /// It wants more.
    Ready,
    Failed(lookalike::Error),
    /// All rows have been sent.
    Done,
}

/// A part at work, as an iterator over its batches.
#[pyclass(module = "lookalike")]
pub(crate) struct PartRows {
    given: Py<PyIterator>,
    /// Nothing once all rows have been sent.
    rows: Option<SyncSender<RecordBatch>>,
    said: Mutex<Receiver<Said>>,
}

/// Starts a part on the batches of an iterator.
#[pyfunction]
pub(crate) fn run_part(name: String, spec: String, batches: &Bound<'_, PyAny>) -> PyResult<PartRows> {
    let (rows, given) = sync_channel::<RecordBatch>(1);
    let (say, said) = sync_channel(WAITING);
    thread::Builder::new().name(format!("lookalike {name}")).spawn(move || {
        let last = work(&name, &spec, &given, &say).map_or_else(Said::Failed, |()| Said::Done);
        // Whoever does not listen any more has an error of his own.
        let _ = say.send(last);
    })?;
    Ok(PartRows { given: batches.try_iter()?.unbind(), rows: Some(rows), said: Mutex::new(said) })
}

fn work(name: &str, spec: &str, given: &Receiver<RecordBatch>, say: &SyncSender<Said>) -> lookalike::Result<()> {
    let mut part = parts::part(name, spec)?;
    let mut emit = |rows: RecordBatch| {
        if rows.num_rows() > 0 {
            // Nobody listens any more.
            say.send(Said::Rows(rows)).map_err(|_| lookalike::Error::Cancelled)?;
        }
        Ok(())
    };
    while say.send(Said::Ready).is_ok() {
        match given.recv() {
            Ok(rows) => part.push(&rows, &mut emit)?,
            Err(_) => return part.finish(&mut emit),
        }
    }
    Ok(())
}

impl PartRows {
    fn said(&self) -> MutexGuard<'_, Receiver<Said>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PartRows {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            let said = py.detach(|| self.said().recv());
            match said {
                Ok(Said::Rows(rows)) => return PyRecordBatch::new(rows).into_pyarrow(py).map(Some),
                Ok(Said::Failed(error)) => return Err(exception(&error)),
                Ok(Said::Ready) => match self.given.bind(py).clone().next() {
                    Some(batch) => {
                        let batch: PyRecordBatch = batch?.extract()?;
                        if let Some(rows) = &self.rows {
                            // If the part is gone, it has said why.
                            let _ = rows.send(batch.into_inner());
                        }
                    }
                    None => self.rows = None,
                },
                Ok(Said::Done) => return Ok(None),
                Err(_) => {
                    return Err(InternalError::new_err(
                        "a part panicked; this is a bug in lookalike, please report it",
                    ));
                }
            }
        }
    }
}
