//! Sketches of single texts, and of many as arrays.

use std::borrow::Cow;

use arrow_array::ArrayRef;
use lookalike::config::Scope;
use lookalike::{Body, Config, Markup, Method, RawPage, RunOptions};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyString};
use rayon::prelude::*;

use crate::arrow::{arrays, broken, is_arrow, texts};
use crate::errors::{InputError, InternalError, OrRaise, invalid};
use crate::settings::{given, set_config, threads};

/// Texts between two looks for Ctrl-C.
const CHUNK: usize = 4096;
/// Texts that one thread takes at a time.
const TEXTS_PER_TASK: usize = 64;

/// Sketches texts by a method.
#[pyclass(frozen, module = "lookalike._lookalike")]
pub(crate) struct Sketcher {
    config: Config,
    threads: usize,
    /// 32-bit words of a sketch.
    words: usize,
}

fn page(text: &str) -> RawPage<'_> {
    RawPage::new(Body::Text(Cow::Borrowed(text)), Markup::Unknown)
}

#[pymethods]
impl Sketcher {
    #[new]
    fn new(method: &str, settings: &Bound<'_, PyDict>) -> PyResult<Sketcher> {
        let method: Method = method.parse().or_raise()?;
        let mut config = Config::new(method);
        // A text by itself has no frame that could be learnt.
        config.content.scope = Scope::Page;
        let (mut parameters, mut wanted_threads) = (Vec::new(), RunOptions::default_threads());
        for given in given(settings)? {
            if given.name == "threads" {
                wanted_threads = threads(&given)?;
            } else if !set_config(&mut config, &given)? {
                parameters.push((given.name.clone(), given.as_parameter()?));
            }
        }
        let parameters = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        config.method.set_all(parameters).or_raise()?;
        config.check().or_raise()?;
        if config.counts_corpus() {
            let message = "is counted in a whole corpus, and a sketch is of one text; use dedup for it";
            return Err(invalid("method", format_args!("{:?}", config.method.label()), message));
        }
        let mut sketcher = lookalike::Sketcher::new(&config);
        sketcher.read(&page(""));
        let words = sketcher.sketch().sketch.len();
        Ok(Sketcher { config, threads: wanted_threads, words })
    }

    /// 32-bit words of a sketch.
    #[getter]
    fn words(&self) -> usize {
        self.words
    }

    /// The rule by which the method decides.
    #[getter]
    fn rule(&self) -> String {
        self.config.rule()
    }

    /// The sketch of a text.
    fn sketch<'py>(&self, py: Python<'py>, text: PyBackedStr) -> Bound<'py, PyArray1<u32>> {
        let words = py.detach(|| {
            let mut sketcher = lookalike::Sketcher::new(&self.config);
            sketcher.read(&page(&text));
            sketcher.sketch().sketch.to_vec()
        });
        words.into_pyarray(py)
    }

    /// The features of a text, each once, in order.
    fn features<'py>(&self, py: Python<'py>, text: PyBackedStr) -> Bound<'py, PyArray1<u64>> {
        let features = py.detach(|| {
            let mut sketcher = lookalike::Sketcher::new(&self.config);
            sketcher.read(&page(&text));
            sketcher.sketch().features.to_vec()
        });
        features.into_pyarray(py)
    }

    /// The sketches of texts, one per row.
    fn sketch_all<'py>(&self, py: Python<'py>, source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build();
        let pool = pool.map_err(|error| InternalError::new_err(error.to_string()))?;
        let mut words: Vec<u32> = Vec::new();
        let mut rows = 0;
        let mut add = |texts: &[&str]| {
            words.resize(words.len() + texts.len() * self.words, 0);
            let from = words.len() - texts.len() * self.words;
            let out = &mut words[from..];
            py.detach(|| pool.install(|| self.fill(texts, out)));
            rows += texts.len();
            py.check_signals()
        };
        for_each_chunk(source, &mut add)?;
        if self.words == 0 {
            return Ok(PyArray2::zeros(py, [rows, 0], false));
        }
        words.into_pyarray(py).reshape([rows, self.words])
    }
}

impl Sketcher {
    fn fill(&self, texts: &[&str], out: &mut [u32]) {
        if self.words == 0 {
            return;
        }
        let rows = out.par_chunks_mut(self.words * TEXTS_PER_TASK).zip(texts.par_chunks(TEXTS_PER_TASK));
        rows.for_each_init(
            || lookalike::Sketcher::new(&self.config),
            |sketcher, (out, texts)| {
                for (out, text) in out.chunks_mut(self.words).zip(texts) {
                    sketcher.read(&page(text));
                    out.copy_from_slice(sketcher.sketch().sketch);
                }
            },
        );
    }
}

/// Shows the texts of a source to `visit`, some at a time.
fn for_each_chunk(source: &Bound<'_, PyAny>, visit: &mut dyn FnMut(&[&str]) -> PyResult<()>) -> PyResult<()> {
    if source.is_instance_of::<PyString>() {
        return Err(InputError::new_err("a single text; use sketch(text) for it, or a list of texts"));
    }
    if is_arrow(source)? {
        let mut reader = arrays(source)?;
        let field = reader.field();
        let mut row = 0;
        while let Some(array) = source.py().detach(|| reader.next()) {
            let array: ArrayRef = array.map_err(|error| broken(&error))?;
            for chunk in texts(&array, &field)?.chunks(CHUNK) {
                let texts = chunk.iter().enumerate().map(|(at, text)| text.ok_or_else(|| null_text(row + at)));
                visit(&texts.collect::<PyResult<Vec<&str>>>()?)?;
                row += chunk.len();
            }
        }
        return Ok(());
    }
    let mut chunk: Vec<PyBackedStr> = Vec::new();
    let mut flush = |chunk: &mut Vec<PyBackedStr>| {
        let texts: Vec<&str> = chunk.iter().map(AsRef::as_ref).collect();
        visit(&texts)?;
        chunk.clear();
        Ok::<(), PyErr>(())
    };
    for (row, item) in source.try_iter()?.enumerate() {
        let item = item?;
        if item.is_none() {
            return Err(null_text(row));
        }
        chunk.push(item.extract().map_err(|_| {
            let name = item.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
            InputError::new_err(format!("text {row} is of the type {name}, and must be a string"))
        })?);
        if chunk.len() == CHUNK {
            flush(&mut chunk)?;
        }
    }
    flush(&mut chunk)
}

fn null_text(row: usize) -> PyErr {
    InputError::new_err(format!("text {row} is null; drop nulls, or fill them with \"\""))
}
