//! Files with search results → lists: our own JSON, responses of Elasticsearch, OpenSearch and SearXNG, and TREC
//! runs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::read::plain::plain_text;
use crate::refine::Answer;

/// A result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchResult {
    /// Its id.
    pub id: Option<String>,
    /// Its URL.
    pub url: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its text or HTML.
    pub text: Option<String>,
    /// The text is HTML, because a field of this name had it; otherwise it is looked at.
    pub is_html: bool,
    /// A sketch that was made before.
    pub sketch: Option<String>,
    /// The score that the search engine gave it.
    pub score: Option<f64>,
    /// The record itself.
    pub record: Value,
}

/// A list of results, best first.
#[derive(Debug, Clone, Default)]
pub struct ResultList {
    /// The query or topic, where it is known.
    pub name: Option<String>,
    /// The results.
    pub results: Vec<SearchResult>,
}

/// What a file holds.
#[derive(Debug, Clone)]
pub struct Lists {
    /// The file, for messages about what is in it.
    pub path: PathBuf,
    /// The lists.
    pub lists: Vec<ResultList>,
    /// The answer as it came; none for a TREC run, which has no texts.
    pub answer: Option<Answer>,
}

impl Lists {
    /// Whether it is a TREC run.
    #[must_use]
    pub fn is_run(&self) -> bool {
        self.answer.is_none()
    }
}

/// Which field is what; a dot leads into an object. Nothing: the usual names are tried.
#[derive(Debug, Clone, Default)]
pub struct ResultFields {
    /// The list of results itself.
    pub results: Option<String>,
    /// The id.
    pub id: Option<String>,
    /// The URL.
    pub url: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// The text or HTML.
    pub text: Option<String>,
    /// A sketch.
    pub sketch: Option<String>,
}

const TEXT_NAMES: &[&str] = &["text", "html", "content", "body", "raw_content"];
const ID_NAMES: &[&str] = &["id", "_id", "docno"];
const URL_NAMES: &[&str] = &["url", "link"];
const TITLE_NAMES: &[&str] = &["title", "name"];
/// The field for sketches.
pub const SKETCH_FIELD: &str = "sketch";

/// Reads a file of results; `ids_suffice` where texts are not needed.
///
/// # Errors
/// When it is in none of these formats, no result has a text, or a line of a run is malformed.
pub fn read(path: &Path, fields: &ResultFields, ids_suffice: bool) -> Result<Lists> {
    let text = if path == Path::new("-") {
        let text = std::io::read_to_string(std::io::stdin()).map_err(Error::io(path, "read"))?;
        text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)
    } else {
        plain_text(path)?
    };
    if !matches!(text.trim_start().as_bytes().first(), Some(b'{' | b'[')) {
        if let Some(name) = &fields.sketch {
            return Err(Error::bad_input(
                path,
                format!(
                    "is a TREC run, which has no sketches, and the index that `sketches` names, '{name}', does not exist"
                ),
            ));
        }
        return Ok(Lists { path: path.to_path_buf(), lists: run(path, &text)?, answer: None });
    }
    let (list, answer) = parse(text, fields, ids_suffice).map_err(|reason| Error::bad_input(path, reason))?;
    Ok(Lists { path: path.to_path_buf(), lists: vec![list], answer: Some(answer) })
}

/// Reads the JSON of an answer; `ids_suffice` where texts are not needed.
///
/// # Errors
/// When it is not JSON, has no list of results, or no result has a text; with the reason.
pub fn parse(text: String, fields: &ResultFields, ids_suffice: bool) -> Result<(ResultList, Answer), String> {
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("is not JSON: {error}"))?;
    let (path, list) = list(&value, fields, ids_suffice)?;
    // The value has a list there, so the text has one, too.
    let answer = Answer::new(text, path.as_deref()).ok_or("is not JSON with one list of results")?;
    Ok((list, answer))
}

/// What a dotted name leads to.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    // A field whose own name contains the dot takes precedence.
    value.get(path).or_else(|| path.split_once('.').and_then(|(first, rest)| at(value.get(first)?, rest)))
}

/// The list in an answer, and the dotted name of its place; no name where it is the whole.
fn list(value: &Value, fields: &ResultFields, ids_suffice: bool) -> Result<(Option<String>, ResultList), String> {
    let places = ["hits.hits", "results", "hits", "response.docs"];
    let found = match (&fields.results, value) {
        (Some(name), _) => at(value, name).and_then(Value::as_array).map(|list| (Some(name.clone()), list)),
        (None, Value::Array(list)) => Some((None, list)),
        (None, _) => places.iter().find_map(|place| Some((Some((*place).to_owned()), at(value, place)?.as_array()?))),
    };
    let Some((path, found)) = found else {
        return Err(match &fields.results {
            Some(name) => format!("has no list '{name}', which `results_field` names"),
            None => "has no list of results: neither hits.hits (Elasticsearch, OpenSearch) nor results (SearXNG, our own); name it with `results_field`".to_owned(),
        });
    };
    let results: Vec<SearchResult> = found.iter().map(|record| result(record, fields)).collect();
    if !ids_suffice
        && !results.is_empty()
        && results.iter().all(|result| result.text.is_none() && result.sketch.is_none())
    {
        let names = fields.text.clone().unwrap_or_else(|| TEXT_NAMES.join(", "));
        return Err(format!(
            "none of the {} results has a text: looked for {names}, also in _source; name the field with `text_field`, and make sure that the search engine returns it",
            results.len()
        ));
    }
    if let Some(name) =
        fields.sketch.as_ref().filter(|_| !results.is_empty() && results.iter().all(|result| result.sketch.is_none()))
    {
        return Err(format!("no result has a field '{name}', and there is no such index either; change `sketches`"));
    }
    let name = ["query", "q", "topic"].iter().find_map(|name| value.get(*name)?.as_str());
    Ok((path, ResultList { name: name.map(str::to_owned), results }))
}

fn result(record: &Value, fields: &ResultFields) -> SearchResult {
    let source = record.get("_source");
    let text_of = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        // Stored fields come as lists.
        Value::Array(parts) => {
            let parts: Option<Vec<&str>> = parts.iter().map(Value::as_str).collect();
            parts.filter(|parts| !parts.is_empty()).map(|parts| parts.join("\n"))
        }
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let find = |given: &Option<String>, usual: &[&str]| {
        let one = |name: &str| {
            let found = at(record, name).or_else(|| source.and_then(|source| at(source, name)));
            found.and_then(text_of).filter(|text| !text.trim().is_empty())
        };
        match given {
            Some(name) => one(name),
            None => usual.iter().find_map(|name| one(name)),
        }
    };
    let is_html = fields.text.is_none() && find(&None, &["text"]).is_none() && find(&None, &["html"]).is_some();
    SearchResult {
        is_html,
        id: find(&fields.id, ID_NAMES),
        url: find(&fields.url, URL_NAMES),
        title: find(&fields.title, TITLE_NAMES),
        text: find(&fields.text, TEXT_NAMES).map(|text| if is_html { text } else { without_highlights(text) }),
        sketch: sketch(record, fields),
        score: ["_score", "score"].iter().find_map(|name| record.get(*name)?.as_f64()),
        record: record.clone(),
    }
}

/// Tags that search engines put around the words that were asked for.
static HIGHLIGHTS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)</?(em|b|i|strong|mark|span)(\s[^<>]*)?>").expect("the expression is fixed"));

/// A snippet as it would be without the words that were asked for.
fn without_highlights(text: String) -> String {
    match HIGHLIGHTS.replace_all(&text, "") {
        Cow::Borrowed(_) => text,
        Cow::Owned(plain) => plain,
    }
}

/// A sketch. Anything else in its place is refused later, with the number of the result.
fn sketch(record: &Value, fields: &ResultFields) -> Option<String> {
    let name = fields.sketch.as_deref().unwrap_or(SKETCH_FIELD);
    let found = at(record, name).or_else(|| at(record.get("_source")?, name))?;
    match found {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) if parts.len() == 1 => parts[0].as_str().map(str::to_owned).or(Some(String::new())),
        _ => Some(String::new()),
    }
}

/// A TREC run: topic, Q0, page, rank, score, name of the run.
fn run(path: &Path, text: &str) -> Result<Vec<ResultList>> {
    let mut lists: Vec<ResultList> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut ranks: Vec<Vec<(f64, f64, usize)>> = Vec::new();
    let mut lines: HashMap<(usize, String), u64> = HashMap::new();
    for (number, line) in (1u64..).zip(text.lines()).filter(|row| !row.1.trim().is_empty()) {
        let wrong = |reason: String| Error::bad_line(path, number, reason);
        let cells: Vec<&str> = line.split_whitespace().collect();
        let [topic, _, page, rank, score, tag] = cells[..] else {
            return Err(wrong(format!(
                "has {} columns; a TREC run has six: topic, Q0, page, rank, score, name (JSON begins with {{ or [)",
                cells.len()
            )));
        };
        let rank: f64 = rank.parse().map_err(|_| wrong(format!("the rank '{rank}' is not a number")))?;
        let score: f64 = score.parse().map_err(|_| wrong(format!("the score '{score}' is not a number")))?;
        if !score.is_finite() || !rank.is_finite() {
            return Err(wrong(format!(
                "the rank {rank} or the score {score} is not a number that results can be ordered by"
            )));
        }
        let place = *places.entry(topic.to_owned()).or_insert_with(|| {
            lists.push(ResultList { name: Some(topic.to_owned()), results: Vec::new() });
            ranks.push(Vec::new());
            lists.len() - 1
        });
        let list = &mut lists[place];
        if let Some(before) = lines.insert((place, page.to_owned()), number) {
            return Err(wrong(format!("'{page}' is already in line {before}, for the same topic")));
        }
        ranks[place].push((score, rank, list.results.len()));
        list.results.push(SearchResult {
            id: Some(page.to_owned()),
            score: Some(score),
            record: Value::String(tag.to_owned()),
            ..SearchResult::default()
        });
    }
    if lists.is_empty() {
        return Err(Error::bad_input(path, "is empty: neither JSON nor a TREC run"));
    }
    for (list, mut order) in lists.iter_mut().zip(ranks) {
        // By score, as trec_eval does; ranks break ties.
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        list.results = order.iter().map(|&(_, _, at)| list.results[at].clone()).collect();
    }
    Ok(lists)
}
