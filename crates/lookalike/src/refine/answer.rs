//! A search engine's answer with its near-duplicates folded, in the shape it came in.
//!
//! In: the JSON of an answer, and what was folded. Out: the same JSON, byte for byte but for the results that were folded, which are
//! taken out (or only marked), and one more field in each result and in the whole.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::refine::{EvidenceSet, Fold, Folded, Refiner, Relation, ResultList};

/// The field that is added to results and to the whole answer.
pub const GROUP_FIELD: &str = "lookalike";

/// List lengths for which the share of near-duplicates is said, as in Jain et al. (2005).
const TOPS: [usize; 3] = [10, 20, 50];

/// JSON with a list of results in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    text: String,
    /// Where the records stand.
    records: Vec<Range<usize>>,
    /// Where the list stands, with its brackets.
    list: Range<usize>,
}

/// How a folded answer is written.
#[derive(Debug, Clone)]
pub struct AnswerOptions {
    /// Every result stays, and says what group it belongs to.
    pub mark: bool,
    /// The name of the field that is added.
    pub group_field: String,
}

impl Default for AnswerOptions {
    fn default() -> AnswerOptions {
        AnswerOptions { mark: false, group_field: GROUP_FIELD.to_owned() }
    }
}

/// What is said of a whole answer.
#[derive(Serialize)]
struct AboutAnswer<'a> {
    method: &'a str,
    threshold: f64,
    evidence: EvidenceSet,
    results: usize,
    groups: usize,
    folded: usize,
    near_duplicates: BTreeMap<String, f64>,
}

/// What is said of a result.
#[derive(Serialize)]
struct AboutResult<'a> {
    /// Its place in the list that came in, from 1.
    rank: usize,
    /// The place of the best result of its group.
    group: usize,
    #[serde(flatten)]
    relation: Option<AboutFold>,
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<Vec<AboutOther<'a>>>,
}

/// How a result is related to the best one of its group.
#[derive(Serialize)]
struct AboutFold {
    similarity: f64,
    relation: Relation,
    evidence: EvidenceSet,
    in_best: f64,
    best_in_it: f64,
}

impl AboutFold {
    fn new(fold: &Fold) -> AboutFold {
        let Fold { similarity, relation, evidence, in_best, best_in_it, .. } = *fold;
        AboutFold { similarity, relation, evidence, in_best, best_in_it }
    }
}

/// A result that is folded under another.
#[derive(Serialize)]
struct AboutOther<'a> {
    rank: usize,
    id: Option<&'a str>,
    url: Option<&'a str>,
    title: Option<&'a str>,
    #[serde(flatten)]
    fold: AboutFold,
    /// The record as it came, where it is taken out of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
}

/// What a dotted name leads to; a field whose own name contains the dot takes precedence.
fn at<'t>(value: &'t RawValue, path: &str) -> Option<&'t RawValue> {
    let fields: BTreeMap<String, &'t RawValue> = serde_json::from_str(value.get()).ok()?;
    let below = || path.split_once('.').and_then(|(first, rest)| at(fields.get(first)?, rest));
    fields.get(path).copied().or_else(below)
}

/// Where a part stands in its text.
fn place(part: &RawValue, text: &str) -> Range<usize> {
    let start = part.get().as_ptr().addr() - text.as_ptr().addr();
    start..start + part.get().len()
}

impl Answer {
    /// Finds the list in an answer; `path` leads to it, and nothing is the whole.
    pub(super) fn new(text: String, path: Option<&str>) -> Option<Answer> {
        let whole: &RawValue = serde_json::from_str(&text).ok()?;
        let list = path.map_or(Some(whole), |path| at(whole, path))?;
        let records: Vec<&RawValue> = serde_json::from_str(list.get()).ok()?;
        let records = records.into_iter().map(|record| place(record, &text)).collect();
        let list = place(list, &text);
        Some(Answer { records, list, text })
    }

    /// The answer with its near-duplicates folded. Results behind the end of `list`, if that was cut, are left out.
    ///
    /// # Errors
    /// When the field that is to be added has no name, or a result or the whole already has it.
    pub fn folded(
        &self,
        list: &ResultList,
        folded: &Folded,
        refiner: &Refiner,
        options: &AnswerOptions,
    ) -> Result<String, String> {
        let name = options.group_field.as_str();
        if name.is_empty() {
            return Err("is not folded into a field without a name: `group_field` is empty".to_owned());
        }
        let mut about: Vec<Option<String>> = vec![None; list.results.len()];
        for group in &folded.groups {
            let other = |fold: &Fold| {
                let result = &list.results[fold.at];
                AboutOther {
                    rank: fold.at + 1,
                    id: result.id.as_deref(),
                    url: result.url.as_deref(),
                    title: result.title.as_deref(),
                    fold: AboutFold::new(fold),
                    result: serde_json::from_str(&self.text[self.records[fold.at].clone()])
                        .ok()
                        .filter(|_| !options.mark),
                }
            };
            let others = Some(group.others.iter().map(other).collect());
            let best = AboutResult { rank: group.best + 1, group: group.best + 1, relation: None, others };
            about[group.best] = Some(json(&best)?);
            for fold in group.others.iter().filter(|_| options.mark) {
                let relation = Some(AboutFold::new(fold));
                let under = AboutResult { rank: fold.at + 1, group: group.best + 1, relation, others: None };
                about[fold.at] = Some(json(&under)?);
            }
        }
        let mut records = String::new();
        let mut end = self.list.start + 1;
        for (number, (place, about)) in self.records.iter().zip(&about).enumerate() {
            if let Some(about) = about {
                // What stands before a record: white space, and a comma if it is not the first.
                records.push_str(&self.text[end..place.start]);
                let record = with_field(&self.text[place.clone()], name, about);
                records.push_str(&record.ok_or_else(|| {
                    format!("result {} already has a field '{name}'; name another one with `group_field`", number + 1)
                })?);
            }
            end = place.end;
        }
        let head = &self.text[..=self.list.start];
        let answer = format!("{head}{records}{}", &self.text[end..]);
        if !self.text.trim_start().starts_with('{') {
            return Ok(answer);
        }
        let duplicates = TOPS.iter().map(|&top| (format!("top_{top}"), folded.duplicates(top)));
        let method = &refiner.config().method;
        let whole = AboutAnswer {
            method: method.name(),
            threshold: method.threshold(),
            evidence: refiner.evidence(),
            results: folded.results,
            groups: folded.groups.len(),
            folded: folded.results - folded.groups.len(),
            near_duplicates: duplicates.collect(),
        };
        with_field(&answer, name, &json(&whole)?)
            .ok_or_else(|| format!("already has a field '{name}'; name another one with `group_field`"))
    }
}

fn json(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

/// An object with one more field at its end, in the style of its first; nothing if it has the field already. What is not an object stays
/// as it is.
fn with_field(object: &str, name: &str, value: &str) -> Option<String> {
    let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(object) else {
        return Some(object.to_owned());
    };
    if fields.contains_key(name) {
        return None;
    }
    let start = object.find('{')? + 1;
    let end = object.rfind('}')?;
    let inner = object[start..end].trim_end();
    let space = &inner[..inner.len() - inner.trim_start().len()];
    let comma = if fields.is_empty() { "" } else { "," };
    // Objects on one line have a space behind a comma, or not.
    let gap = if space.is_empty() && !fields.is_empty() && inner.contains("\": ") { " " } else { space };
    let colon = if inner.contains("\":") && !inner.contains("\": ") { ":" } else { ": " };
    let name = serde_json::to_string(name).ok()?;
    let (head, tail) = (&object[..start + inner.len()], &object[start + inner.len()..]);
    Some(format!("{head}{comma}{gap}{name}{colon}{value}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_added_in_the_style_of_the_object() {
        for (object, wanted) in [
            (r#"{"a":1}"#, r#"{"a":1,"n":2}"#),
            (r#"{"a": 1, "b": {}}"#, r#"{"a": 1, "b": {}, "n": 2}"#),
            ("{}", r#"{"n": 2}"#),
            (" { \"a\" : 1.50 } \n", " { \"a\" : 1.50, \"n\": 2 } \n"),
            ("{\n  \"a\": \"}\"\n}", "{\n  \"a\": \"}\",\n  \"n\": 2\n}"),
            ("[1]", "[1]"),
        ] {
            assert_eq!(with_field(object, "n", "2").as_deref(), Some(wanted), "{object}");
        }
        assert_eq!(with_field(r#"{"n": null}"#, "n", "2"), None);
    }

    #[test]
    fn the_list_is_found_where_it_stands() {
        let text = r#"{"took":3, "hits":{"total":1e3,"hits":[ {"_id":"x"} , 7]}}"#.to_owned();
        let answer = Answer::new(text.clone(), Some("hits.hits")).unwrap();
        assert_eq!(&text[answer.list.clone()], r#"[ {"_id":"x"} , 7]"#);
        let records: Vec<&str> = answer.records.iter().map(|place| &text[place.clone()]).collect();
        assert_eq!(records, [r#"{"_id":"x"}"#, "7"]);
        assert_eq!(Answer::new(text, Some("hits")), None, "not a list");
        assert_eq!(Answer::new("[[]]".to_owned(), None).unwrap().records.first(), Some(&(1..3)));
    }
}
