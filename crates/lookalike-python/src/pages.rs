//! Two pages, one page of a result, a list of search results: each as JSON, which Python makes objects of.

use std::borrow::Cow;
use std::path::PathBuf;

use lookalike::compare::{Comparison, compare_pages, html, side_by_side};
use lookalike::refine::{EvidenceSet, ResultFields, lists, sketch_list};
use lookalike::result;
use lookalike::{Body, Config, Markup, Method, RawPage, Refiner};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use serde_json::{Value, json};

use crate::errors::{InputError, InternalError, OrRaise, misspelt};
use crate::settings::{given, set_config};

/// A page: its text, markup or bytes, and its URL.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Page {
    text: Option<String>,
    html: Option<String>,
    bytes: Option<Vec<u8>>,
    url: Option<String>,
    title: Option<String>,
}

impl Page {
    fn raw(self) -> RawPage<'static> {
        let mut page = match (self.html, self.bytes, self.text) {
            (Some(html), _, _) => RawPage::html(html),
            (None, Some(bytes), _) => RawPage::bytes(bytes),
            (None, None, text) => RawPage::new(Body::Text(Cow::Owned(text.unwrap_or_default())), Markup::Unknown),
        };
        page.url = self.url.map(Cow::Owned);
        page.title = self.title.map(Cow::Owned);
        page
    }
}

fn json_of(value: &impl Serialize) -> PyResult<Value> {
    serde_json::to_value(value).map_err(|error| InternalError::new_err(error.to_string()))
}

/// A comparison with the texts, and the page for people.
fn comparison(found: &Comparison) -> PyResult<(String, String)> {
    let mut value = json_of(found)?;
    value["left"]["text"] = json!(found.left.text);
    value["right"]["text"] = json!(found.right.text);
    let sides = side_by_side(&found.left.text, &found.right.text);
    Ok((value.to_string(), html(found, &sides).or_raise()?))
}

/// What every method says of two pages: JSON, and a page for people.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    left: Page,
    right: Page,
    settings: &Bound<'_, PyDict>,
) -> PyResult<(String, String)> {
    let mut config = Config::default();
    for given in given(settings)? {
        set_config(&mut config, &given)?;
    }
    config.check().or_raise()?;
    let (left, right) = (left.raw(), right.raw());
    py.detach(|| comparison(&lookalike::compare(&left, &right, &config)))
}

/// The same for two pages of a result, with its settings and its verdict.
#[pyfunction]
pub(crate) fn compare_in(py: Python<'_>, directory: &str, left: &str, right: &str) -> PyResult<(String, String)> {
    py.detach(|| {
        let found = compare_pages(left, right, Some(directory), &Config::default(), &[]).or_raise()?;
        comparison(&found)
    })
}

/// Why pages of a result were dropped or kept, as JSON.
#[pyfunction]
pub(crate) fn explain(py: Python<'_>, directory: PathBuf, pages: Vec<String>) -> PyResult<String> {
    py.detach(|| Ok(json_of(&result::explain(&directory, &pages).or_raise()?)?.to_string()))
}

/// Folds a list of search results, as JSON: groups of places in the list, from 0.
#[pyfunction]
pub(crate) fn refine(
    py: Python<'_>,
    answer: String,
    method: &str,
    evidence: Option<&str>,
    fields: [Option<String>; 5],
    settings: &Bound<'_, PyDict>,
) -> PyResult<String> {
    let method = Method::parse_with(method, Method::for_results).or_raise()?;
    let mut config = Refiner::defaults(method.clone());
    config.method = method;
    let mut parameters = Vec::new();
    for given in given(settings)? {
        if !set_config(&mut config, &given)? {
            parameters.push((given.name.clone(), given.as_parameter()?));
        }
    }
    let parameters = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    config.method.set_all(parameters).or_raise()?;
    let mut refiner = Refiner::new(config).or_raise()?;
    if let Some(evidence) = evidence {
        let set: EvidenceSet = evidence.parse().map_err(|expected| misspelt("evidence", evidence, expected))?;
        refiner = refiner.with_evidence(set);
    }
    let [results, id, url, title, text] = fields;
    let fields = ResultFields { results, id, url, title, text, sketch: None };
    py.detach(|| {
        let bad = |reason: String| InputError::new_err(lookalike::config::name_settings(&reason, str::to_owned));
        let (list, _) = lists::parse(answer, &fields, false).map_err(bad)?;
        let sketches = sketch_list(&refiner, &list).map_err(bad)?;
        Ok(json_of(&refiner.fold_results(&list.results, &sketches))?.to_string())
    })
}
