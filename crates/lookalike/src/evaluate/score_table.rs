//! Methods side by side: a table of scores in which the best of each column is marked.

use crate::evaluate::metrics::shown_share;
use crate::evaluate::report::cells;
use crate::evaluate::{Evaluation, MethodEvaluation};
use crate::report::numbers::thousands;

/// What is better.
#[derive(Clone, Copy, PartialEq)]
enum Better {
    Larger,
    Smaller,
    /// Neither: it only describes.
    Neither,
}

/// One column: its head, what is better, the value, and how it is written.
struct Column {
    head: &'static str,
    better: Better,
    value: fn(&MethodEvaluation) -> Option<f64>,
    written: fn(f64) -> String,
}

/// A table, ready to be shown.
pub(super) struct ScoreTable {
    pub(super) heads: Vec<&'static str>,
    pub(super) rows: Vec<ScoreRow>,
}

/// A method's row.
pub(super) struct ScoreRow {
    pub(super) method: String,
    pub(super) rule: String,
    /// The text of each cell, and whether it is the best of its column.
    pub(super) cells: Vec<(String, bool)>,
}

fn three(value: f64) -> String {
    shown_share(value, 3)
}

fn whole(value: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count
    let count = value.round() as u64;
    thousands(count)
}

/// How good methods are, each with its own threshold.
pub(super) fn quality(found: &Evaluation) -> ScoreTable {
    let clusters = found.methods.iter().any(|row| row.clusters.is_some());
    let column = |head, value| Column { head, better: Better::Larger, value, written: three };
    let mut columns = vec![
        Column {
            head: "threshold",
            better: Better::Neither,
            value: |row| Some(row.threshold),
            written: |value| cells::number(&value),
        },
        column("pair precision", |row| (row.pairs.correct + row.pairs.wrong > 0).then(|| row.pairs.precision())),
        column("pair recall", |row| (row.pairs.gold > 0).then(|| row.pairs.recall())),
        column("pair F1", |row| Some(row.pairs.f1())),
    ];
    if clusters {
        columns.extend([
            column("cluster precision", |row| row.clusters.map(|scores| scores.cluster_precision)),
            column("cluster recall", |row| row.clusters.map(|scores| scores.cluster_recall)),
            column("cluster F1", |row| row.clusters.map(|scores| scores.cluster_f1)),
            column("adjusted Rand", |row| row.clusters.map(|scores| scores.adjusted_rand)),
            column("exact sets", |row| row.clusters.map(|scores| scores.exact_sets)),
            column("strict recall", |row| row.strict.filter(|strict| strict.gold > 0).map(|strict| strict.recall())),
        ]);
    }
    table(found, &columns, |row| row.is_capped)
}

/// What methods take.
pub(super) fn cost(found: &Evaluation) -> ScoreTable {
    let column = |head, value, written| Column { head, better: Better::Smaller, value, written };
    let columns = [
        column("CPU-seconds", |row| Some(row.cost.cpu_seconds), |value| format!("{value:.2}")),
        column("bytes per page", |row| Some(row.cost.bytes_per_page), whole),
        Column {
            head: "candidate pairs",
            better: Better::Neither,
            value: |row| Some(row.cost.candidates as f64),
            written: whole,
        },
        Column {
            head: "compared pairs",
            better: Better::Neither,
            value: |row| Some(row.cost.compared as f64),
            written: whole,
        },
    ];
    table(found, &columns, |row| row.is_capped)
}

fn table(found: &Evaluation, columns: &[Column], is_marked: fn(&MethodEvaluation) -> bool) -> ScoreTable {
    // Who finds nothing makes no mistake and takes little: that wins nothing.
    let finds = |row: &MethodEvaluation| row.pairs.correct > 0;
    let best = |column: &Column| {
        let values = found.methods.iter().filter(|row| finds(row)).filter_map(column.value);
        match column.better {
            Better::Larger => values.max_by(f64::total_cmp),
            Better::Smaller => values.min_by(f64::total_cmp),
            Better::Neither => None,
        }
    };
    let bests: Vec<Option<f64>> = columns.iter().map(best).collect();
    let rows = found.methods.iter().map(|row| ScoreRow {
        method: format!("{}{}", row.method, if is_marked(row) { " *" } else { "" }),
        rule: row.rule.clone(),
        cells: columns
            .iter()
            .zip(&bests)
            .map(|(column, best)| {
                let value = (column.value)(row);
                let text = value.map_or_else(|| "–".to_owned(), column.written);
                // What reads the same is equally good; with one method there is nothing to win.
                let is_best = found.methods.len() > 1
                    && value.is_some()
                    && finds(row)
                    && best.is_some_and(|best| (column.written)(best) == text);
                (text, is_best)
            })
            .collect(),
    });
    ScoreTable { heads: columns.iter().map(|column| column.head).collect(), rows: rows.collect() }
}
