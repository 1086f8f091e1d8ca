//! Runs of the library on a thread of their own, while this one watches for Ctrl-C and shows progress.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lookalike::result::{Outcome, Thresholds};
use lookalike::{Observer, Regrouping, RunOptions, Stage};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{InternalError, exception};
use crate::settings::{Settings, given};

/// How often signals are looked for, and progress is shown.
const POLL: Duration = Duration::from_millis(50);
/// How long a run that was cancelled may take to end. Then Python goes on, and the run ends by itself at the next
/// batch or stage.
const GRACE: Duration = Duration::from_millis(700);

/// How far a run is, and whether it is to stop.
#[derive(Default)]
struct Watch {
    is_cancelled: AtomicBool,
    stages: Mutex<Vec<Progress>>,
}

/// How far a stage is.
#[derive(Clone, Copy, PartialEq)]
struct Progress {
    stage: Stage,
    done: u64,
    total: u64,
    pages: u64,
}

impl Watch {
    /// The stages that have not been shown to their end, the current one last.
    fn stages(&self) -> MutexGuard<'_, Vec<Progress>> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stages that are over, which are taken, and the current one, which stays.
    fn take_stages(&self) -> Vec<Progress> {
        let mut stages = self.stages();
        let taken = stages.clone();
        let over = stages.len().saturating_sub(1);
        stages.drain(..over);
        taken
    }
}

impl Observer for Watch {
    fn start(&self, stage: Stage, total: u64) {
        self.stages().push(Progress { stage, done: 0, total, pages: 0 });
    }

    fn advance(&self, done: u64, pages: u64) {
        if let Some(current) = self.stages().last_mut() {
            current.done += done;
            current.pages += pages;
        }
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}

/// Runs `work` without the GIL. `progress` is called with the stage, what is done, what there is to do (0 if that is not
/// known) and the pages so far.
fn watched<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    work: impl FnOnce(&dyn Observer) -> lookalike::Result<T> + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let (sender, receiver) = mpsc::channel();
    let observer = Arc::clone(&watch);
    thread::Builder::new().name("lookalike".to_owned()).spawn(move || {
        // Nobody listens any more if the run was cancelled and took too long to end.
        let _ = sender.send(work(observer.as_ref()));
    })?;
    let receiver = Mutex::new(receiver);
    let mut stopped: Option<(PyErr, Instant)> = None;
    let mut shown = None;
    loop {
        let received = py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(POLL));
        match (received, stopped.take()) {
            (Ok(_) | Err(RecvTimeoutError::Disconnected), Some((error, _))) => return Err(error),
            (Ok(result), None) => {
                // Stages may come and go between two looks.
                show(progress.as_ref(), &mut shown, watch.take_stages())?;
                return result.map_err(|error| exception(&error));
            }
            (Err(RecvTimeoutError::Disconnected), None) => {
                return Err(InternalError::new_err("the run panicked; this is a bug in lookalike, please report it"));
            }
            (Err(RecvTimeoutError::Timeout), Some((error, since))) if since.elapsed() > GRACE => return Err(error),
            (Err(RecvTimeoutError::Timeout), Some(waiting)) => stopped = Some(waiting),
            (Err(RecvTimeoutError::Timeout), None) => {
                let stages = watch.take_stages();
                if let Err(error) = py.check_signals().and_then(|()| show(progress.as_ref(), &mut shown, stages)) {
                    watch.is_cancelled.store(true, Ordering::Relaxed);
                    stopped = Some((error, Instant::now()));
                }
            }
        }
    }
}

/// Calls `progress` with every stage that is not as it was shown last.
fn show(progress: Option<&Bound<'_, PyAny>>, shown: &mut Option<Progress>, stages: Vec<Progress>) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    for now in stages {
        if *shown != Some(now) {
            *shown = Some(now);
            progress.call1((now.stage.name(), now.done, now.total, now.pages))?;
        }
    }
    Ok(())
}

/// What a run leaves behind, as JSON: `summary.json`.
fn summary(outcome: &Outcome) -> PyResult<String> {
    serde_json::to_string(&outcome.summary).map_err(|error| InternalError::new_err(error.to_string()))
}

/// Finds and removes near-duplicates. Returns the counts as JSON.
#[pyfunction]
#[pyo3(signature = (inputs, output, method, settings, progress))]
pub(crate) fn dedup(
    py: Python<'_>,
    inputs: Vec<String>,
    output: PathBuf,
    method: &str,
    settings: &Bound<'_, PyDict>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let Settings { config, options } = Settings::new(inputs, output, method, settings)?;
    let outcome = watched(py, progress, move |observer| lookalike::dedup(&config, &options, observer))?;
    summary(&outcome)
}

/// Another result from the pairs already verified. Returns the counts as JSON.
#[pyfunction]
#[pyo3(signature = (directory, output, thresholds, settings, progress))]
pub(crate) fn recluster(
    py: Python<'_>,
    directory: PathBuf,
    output: PathBuf,
    thresholds: [Option<f64>; 3],
    settings: &Bound<'_, PyDict>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let [threshold, within_site, between_sites] = thresholds;
    let mut regrouping = Regrouping::from(Thresholds { threshold, within_site, between_sites });
    let mut options = RunOptions::new([text_of(&directory)], output);
    for given in given(settings)? {
        match given.name.as_str() {
            "cluster" => regrouping.cluster = Some(given.parsed()?),
            "keep" => regrouping.keep = Some(given.parsed()?),
            "prefer" => regrouping.prefer = Some(given.texts()?),
            "no_kept" => options.outputs.no_kept = given.value.is_truthy()?,
            "replace" => options.replace = given.value.is_truthy()?,
            other => return Err(InternalError::new_err(format!("recluster has no setting {other}"))),
        }
    }
    let again = move |observer: &dyn Observer| lookalike::recluster(&directory, regrouping, &options, observer);
    summary(&watched(py, progress, again)?)
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
