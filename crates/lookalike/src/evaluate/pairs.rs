//! Labelled pairs of texts → what every method makes of them.

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::evaluate::metrics::{Counts, RankedScores, ranked};
use crate::job::compare::by_plan;
use crate::page::{Body, Markup, RawPage};
use crate::read::plain::plain_text;
use crate::sketcher::Sketcher;

/// Which field is what.
#[derive(Debug, Clone)]
pub struct PairFields {
    /// The first text.
    pub left: String,
    /// The second.
    pub right: String,
    /// The grade.
    pub label: String,
    /// Somebody else's similarity, to be judged beside ours.
    pub score: Option<String>,
}

impl Default for PairFields {
    fn default() -> PairFields {
        PairFields { left: "text_a".to_owned(), right: "text_b".to_owned(), label: "label".to_owned(), score: None }
    }
}

/// A labelled pair.
#[derive(Debug, Clone)]
pub struct LabelledPair {
    /// The first text.
    pub left: String,
    /// The second.
    pub right: String,
    /// The grade.
    pub label: f64,
    /// Somebody else's similarity.
    pub score: Option<f64>,
}

/// Methods on pairs.
#[derive(Debug, Clone, Serialize)]
pub struct PairEvaluation {
    /// Pairs.
    pub pairs: usize,
    /// Those that count as near-duplicates.
    pub positive: usize,
    /// The least grade of those.
    pub positive_from: f64,
    /// The methods.
    pub methods: Vec<PairMethod>,
}

/// One method on pairs.
#[derive(Debug, Clone, Serialize)]
pub struct PairMethod {
    /// The method, or the field whose similarity is judged.
    pub method: String,
    /// What is looked at.
    pub measure: &'static str,
    /// The pairs in the order of this measure.
    pub ranked: RankedScores,
    /// The method's own threshold: the default, unless another one was given.
    pub threshold: Option<f64>,
    /// Pairs, at that threshold.
    pub at_default: Option<Counts>,
}

/// Reads a file of pairs.
///
/// # Errors
/// When it cannot be read; with the line, when a line is not a pair.
pub fn read(path: &Path, fields: &PairFields) -> Result<Vec<LabelledPair>> {
    let text = plain_text(path)?;
    let mut pairs = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|row| !row.1.trim().is_empty()) {
        let wrong = |reason: String| Error::bad_line(path, number as u64 + 1, reason);
        let value: Value = serde_json::from_str(line).map_err(|error| wrong(format!("is not JSON: {error}")))?;
        let text = |name: &str| {
            value.get(name).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| {
                wrong(format!("has no text in the field '{name}' (`left_field` and `right_field` name others)"))
            })
        };
        let real = |name: &str| {
            let value = value.get(name);
            value.and_then(Value::as_f64).or_else(|| match value {
                Some(Value::Bool(truth)) => Some(f64::from(u8::from(*truth))),
                Some(Value::String(text)) => text.trim().parse().ok(),
                _ => None,
            })
        };
        let label = real(&fields.label).filter(|label| label.is_finite());
        pairs.push(LabelledPair {
            left: text(&fields.left)?,
            right: text(&fields.right)?,
            label: label.ok_or_else(|| {
                wrong(format!("has no grade in the field '{}' (`label_field` names another)", fields.label))
            })?,
            score: match &fields.score {
                None => None,
                Some(name) => {
                    Some(real(name).filter(|score| !score.is_nan()).ok_or_else(|| {
                        wrong(format!("has no number in the field '{name}', which `score_field` names"))
                    })?)
                }
            },
        });
    }
    if pairs.is_empty() {
        return Err(Error::bad_input(path, "holds no pair"));
    }
    Ok(pairs)
}

/// Judges methods by pairs; a near-duplicate has a grade of at least `positive`.
///
/// # Errors
/// When all pairs are near-duplicates, or none is.
pub fn evaluate_pairs(
    pairs: &[LabelledPair],
    positive: f64,
    configs: &[Config],
    score_field: Option<&str>,
) -> Result<PairEvaluation> {
    if !positive.is_finite() {
        return Err(Error::invalid("positive", positive, "must be a number"));
    }
    let is_near = |pair: &LabelledPair| pair.label >= positive;
    let near = pairs.iter().filter(|pair| is_near(pair)).count();
    if near == 0 || near == pairs.len() {
        let expected = format!(
            "{near} of {} pairs have this grade or more; both kinds are needed (it says from which grade on a pair is a near-duplicate)",
            pairs.len()
        );
        return Err(Error::invalid("positive", positive, expected));
    }
    let mut methods = Vec::new();
    let judge = |scores: &[(f64, bool)]| {
        ranked(scores).ok_or_else(|| Error::conflict("positive", "both near-duplicates and others are needed"))
    };
    if let Some(field) = score_field {
        let scores: Vec<(f64, bool)> = pairs.iter().filter_map(|pair| Some((pair.score?, is_near(pair)))).collect();
        methods.push(PairMethod {
            method: field.to_owned(),
            measure: "as given",
            ranked: judge(&scores)?,
            threshold: None,
            at_default: None,
        });
    }
    for config in configs {
        let plan = config.plan();
        let unit = config.method.unit();
        let mut sketcher = Sketcher::of_plan(&plan);
        let mut counts = Counts { gold: near as u64, ..Counts::default() };
        let (mut decided, mut exact) = (Vec::new(), Vec::new());
        for pair in pairs {
            let page = |text: &str| RawPage::new(Body::Text(Cow::Owned(text.to_owned())), Markup::Unknown);
            let (word, facts) = by_plan(&page(&pair.left), &page(&pair.right), config, &plan, &mut sketcher);
            let is_copy = facts[0].0 > 0 && facts[0].1 == facts[1].1;
            let is_accepted = word.near_duplicate || is_copy;
            counts.correct += u64::from(is_accepted && is_near(pair));
            counts.wrong += u64::from(is_accepted && !is_near(pair));
            // Copies are near-duplicates by every method, whatever its features make of them.
            let value = unit.nearness(if is_copy { unit.nearest() } else { word.score });
            decided.push((value, is_near(pair)));
            exact.push((word.similarity, is_near(pair)));
        }
        let mut add = |measure: &'static str, scores: &[(f64, bool)], is_decisive: bool| {
            let mut ranked = judge(scores)?;
            if is_decisive {
                ranked.best_at = unit.nearness(ranked.best_at);
            }
            methods.push(PairMethod {
                method: config.method.label(),
                measure,
                ranked,
                threshold: is_decisive.then(|| config.method.threshold()),
                at_default: is_decisive.then_some(counts),
            });
            Ok::<(), Error>(())
        };
        let by_similarity = config.method.has_similarity_threshold();
        add(if by_similarity { plan.similarity_name() } else { unit.name() }, &decided, true)?;
        if !by_similarity {
            add(plan.similarity_name(), &exact, false)?;
        }
    }
    Ok(PairEvaluation { pairs: pairs.len(), positive: near, positive_from: positive, methods })
}
