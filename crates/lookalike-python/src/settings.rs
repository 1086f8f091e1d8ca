//! Keyword arguments → [`Config`] and [`RunOptions`].
//!
//! The names are those of the command line's flags; what is none of them is a parameter of the method.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use lookalike::config::{CaptureFilter, ChosenCaptures, parse_bytes};
use lookalike::{Config, Method, RunOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};

use crate::errors::{OrRaise, invalid, misspelt};

/// A keyword argument.
pub(crate) struct Given<'py> {
    pub(crate) name: String,
    pub(crate) value: Bound<'py, PyAny>,
}

/// The keyword arguments that are not None.
pub(crate) fn given<'py>(settings: &Bound<'py, PyDict>) -> PyResult<Vec<Given<'py>>> {
    let all = settings.iter().filter(|(_, value)| !value.is_none());
    all.map(|(name, value)| Ok(Given { name: name.extract()?, value })).collect()
}

impl Given<'_> {
    /// A value of another type than it must have.
    pub(crate) fn wrong(&self, expected: &str) -> PyErr {
        let shown = self.value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
        invalid(&self.name, shown, &format!("must be {expected}"))
    }

    /// A string, or a path.
    pub(crate) fn text(&self) -> PyResult<String> {
        if let Ok(text) = self.value.cast::<PyString>() {
            return Ok(text.to_str()?.to_owned());
        }
        if self.value.hasattr("__fspath__")? {
            return self.value.call_method0("__fspath__")?.extract();
        }
        Err(self.wrong("a string"))
    }

    /// One string, or several.
    pub(crate) fn texts(&self) -> PyResult<Vec<String>> {
        if let Ok(one) = self.text() {
            return Ok(vec![one]);
        }
        let each = self.value.try_iter().map_err(|_| self.wrong("a string, or a list of strings"))?;
        each.map(|value| Given { name: self.name.clone(), value: value? }.text()).collect()
    }

    fn flag(&self) -> PyResult<bool> {
        self.value.cast::<PyBool>().map(PyBoolMethods::is_true).map_err(|_| self.wrong("True or False"))
    }

    fn number<T>(&self, expected: &str) -> PyResult<T>
    where
        for<'a, 'p> T: FromPyObject<'a, 'p>,
    {
        if self.value.is_instance_of::<PyBool>() {
            return Err(self.wrong(expected));
        }
        self.value.extract().map_err(|_| self.wrong(expected))
    }

    /// Bytes: a number, or a text such as "4GB".
    fn bytes(&self) -> PyResult<u64> {
        let expected = "a number of bytes, or a text such as \"4GB\"";
        match self.value.cast::<PyString>() {
            Ok(text) => parse_bytes(text.to_str()?).map_err(|_| self.wrong(expected)),
            Err(_) => self.number(expected),
        }
    }

    /// A text that stands for a value.
    pub(crate) fn parsed<T: FromStr<Err: Display>>(&self) -> PyResult<T> {
        let text = self.text()?;
        text.parse().map_err(|expected: T::Err| misspelt(&self.name, &text, expected))
    }

    /// The value as a parameter of a method is written.
    pub(crate) fn as_parameter(&self) -> PyResult<String> {
        if let Ok(flag) = self.value.cast::<PyBool>() {
            return Ok(flag.is_true().to_string());
        }
        if self.value.is_instance_of::<PyList>() || self.value.is_instance_of::<PyTuple>() {
            return Ok(self.texts()?.join(","));
        }
        Ok(self.value.str()?.to_str()?.to_owned())
    }
}

/// What a run is to do, and where.
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) options: RunOptions,
}

impl Settings {
    /// The settings of a run; `method` may have parameters, too, as in `spotsigs threshold=0.4`.
    pub(crate) fn new(
        inputs: Vec<String>,
        output: PathBuf,
        method: &str,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<Settings> {
        let method: Method = method.parse().or_raise()?;
        let mut made = Settings { config: Config::new(method), options: RunOptions::new(inputs, output) };
        let mut parameters = Vec::new();
        for given in given(settings)? {
            if !made.set_option(&given)? && !set_config(&mut made.config, &given)? {
                parameters.push((given.name.clone(), given.as_parameter()?));
            }
        }
        if !made.options.seeds.is_empty() && parameters.iter().all(|(name, _)| name != "matching") {
            parameters.push(("matching".to_owned(), "seeded".to_owned()));
        }
        let parameters = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        made.config.method.set_all(parameters).or_raise()?;
        made.config.check().or_raise()?;
        Ok(made)
    }

    /// Sets what changes nothing about decisions; false if it is something else.
    fn set_option(&mut self, given: &Given<'_>) -> PyResult<bool> {
        let options = &mut self.options;
        let outputs = &mut options.outputs;
        match given.name.as_str() {
            "memory" => options.memory_bytes = Some(given.bytes()?),
            "threads" => options.threads = threads(given)?,
            "strict" => options.strict = given.flag()?,
            "force" => options.force = given.flag()?,
            "replace" => options.replace = given.flag()?,
            "resume" => options.resume = given.flag()?,
            "seeds" => options.seeds = given.texts()?,
            "against" => options.against = Some(given.text()?.into()),
            "jsonl" => outputs.jsonl = given.flag()?,
            "copy_kept" => outputs.copy_kept = given.flag()?,
            "revisit" => outputs.revisit = given.flag()?,
            "no_kept" => outputs.no_kept = given.flag()?,
            "removed" => outputs.removed = given.flag()?,
            "annotate" => outputs.annotate = given.flag()?,
            "kept_format" => outputs.kept_format = given.parsed()?,
            "kept_compression" => outputs.kept_compression = given.parsed()?,
            "split_size" => outputs.split_size = Some(given.bytes()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Worker threads.
pub(crate) fn threads(given: &Given<'_>) -> PyResult<usize> {
    let expected = "a number from 1 to 1024";
    let threads: usize = given.number(expected)?;
    if (1..=1024).contains(&threads) { Ok(threads) } else { Err(given.wrong(expected)) }
}

/// Sets what decides about pages, except the parameters of methods; false if it is something else.
pub(crate) fn set_config(config: &mut Config, given: &Given<'_>) -> PyResult<bool> {
    let Config { read, content, pairs, groups, .. } = config;
    match given.name.as_str() {
        "format" => read.format = Some(given.parsed()?),
        "id_field" => read.fields.id = Some(given.text()?),
        "text_field" => read.fields.text = Some(given.texts()?.join(",")),
        "url_field" => read.fields.url = Some(given.text()?),
        "date_field" => read.fields.date = Some(given.text()?),
        "read_as" => read.read_as = Some(given.parsed()?),
        "include" => read.include = given.texts()?,
        "exclude" => read.exclude = given.texts()?,
        "sample" => read.sample = Some(given.number("a share of the pages, such as 0.1")?),
        "cdxj" => read.cdxj = Some(ChosenCaptures::open(given.text()?.as_ref()).or_raise()?),
        "status" => read.captures = CaptureFilter { statuses: given.parsed()?, types: read.captures.types.clone() },
        "types" => read.captures = CaptureFilter { types: given.parsed()?, statuses: read.captures.statuses.clone() },
        "max_page" => read.max_page_bytes = given.bytes()?,
        "content" => content.scope = given.parsed()?,
        "scripts" => content.scripts = given.flag()?,
        "keep_case" => content.keep_case = given.flag()?,
        "language" => content.language = Some(given.text()?),
        "mask" => {
            content.mask_volatile = given.text()? == "volatile";
            if !content.mask_volatile {
                return Err(given.wrong("\"volatile\""));
            }
        }
        "within" => pairs.within = Some(given.parsed()?),
        "site" => pairs.site = given.parsed()?,
        "length_ratio" => pairs.length_ratio = Some(given.number("a number, such as 0.8")?),
        "min_tokens" => pairs.min_tokens = given.number("a whole number")?,
        "exact_only" => pairs.exact_only = given.flag()?,
        "bucket_limit" => pairs.bucket_limit = given.number("a whole number")?,
        "cluster" => groups.cluster = given.parsed()?,
        "keep" => groups.keep = given.parsed()?,
        "prefer" => groups.prefer = given.texts()?,
        _ => return Ok(false),
    }
    Ok(true)
}
