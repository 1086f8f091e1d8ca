//! The evaluation as a page with tables and plots, and as JSON beside it.

use std::path::Path;

use askama::Template;
use serde::Serialize;

use crate::error::Result;
use crate::evaluate::experiments::{Experiments, experiments};
use crate::evaluate::figures::figures;
use crate::evaluate::gold::Gold;
use crate::evaluate::grid::grid_figures;
use crate::evaluate::labels::Labels;
use crate::evaluate::score_table::{ScoreTable, cost, quality};
use crate::evaluate::{EvaluateOptions, Evaluation, MethodEvaluation, PairPage, evaluate_keeping};
use crate::report::links::{path_link, relative_path, web_address};
use crate::report::plots::figures::{Figure, csv};
use crate::report::render;

#[derive(Template)]
#[template(path = "evaluation.html")]
struct Page<'a> {
    found: &'a Evaluation,
    /// The method with the best F1 of pairs at its best threshold.
    winner: &'a MethodEvaluation,
    quality: ScoreTable,
    cost: ScoreTable,
    more: Option<&'a Experiments>,
    figures: &'a [Figure],
    inputs: String,
    /// Where the page is written, from which files are linked.
    directory: &'a Path,
    has_equal_recall: bool,
    is_capped: bool,
    is_loosest_capped: bool,
    has_splits: bool,
    has_sites: bool,
    has_errors: bool,
    version: &'static str,
}

impl Page<'_> {
    /// Where a page of a pair is found.
    fn link(&self, page: &PairPage) -> Option<String> {
        let address = page.url.as_deref().and_then(web_address).map(str::to_owned);
        let file = || relative_path(self.directory, Path::new(page.file.as_deref()?)).map(|way| path_link(&way));
        address.or_else(file)
    }

    fn is_winner(&self, row: &MethodEvaluation) -> bool {
        self.found.sweeps().len() > 1 && row.best.pairs.f1() >= self.winner.best.pairs.f1()
    }
}

/// The method with the best F1 of pairs at its best threshold; the first of several.
fn winner(found: &Evaluation) -> Option<&MethodEvaluation> {
    found.methods.iter().rev().max_by(|a, b| a.best.pairs.f1().total_cmp(&b.best.pairs.f1()))
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    evaluation: &'a Evaluation,
    #[serde(skip_serializing_if = "Option::is_none")]
    experiments: Option<&'a Experiments>,
}

/// Evaluates, and writes the page to `path`, everything as JSON to the same path with the ending `json`, and what the figures
/// show to the same path with the ending `csv`.
///
/// # Errors
/// As [`evaluate`](super::evaluate); also when a file cannot be written.
pub fn write_report(
    gold: &Gold,
    options: &EvaluateOptions,
    path: &Path,
    announce: &dyn Fn(&str),
) -> Result<Evaluation> {
    render::check_page_name(path)?;
    let (evaluation, runs) = evaluate_keeping(gold, options, options.grid.is_none(), announce)?;
    let more = match runs.first() {
        Some(first) => {
            let labels = Labels::new(gold, &first.run.stored, first.run.config.pairs.site, options.allow_missing)?;
            Some(experiments(options, &runs, &labels, announce)?)
        }
        None => None,
    };
    let figures = match (&options.grid, &more) {
        (Some(grid), _) => grid_figures(grid, &evaluation.methods),
        (None, Some(more)) => figures(&evaluation, more),
        (None, None) => Vec::new(),
    };
    let Some(winner) = winner(&evaluation) else { return Ok(evaluation) };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let any = |test: fn(&MethodEvaluation) -> bool| evaluation.methods.iter().any(test);
    let page = Page {
        found: &evaluation,
        winner,
        quality: quality(&evaluation),
        cost: cost(&evaluation),
        directory,
        more: more.as_ref(),
        figures: &figures,
        inputs: options.inputs.join(", "),
        has_equal_recall: any(|row| row.equal_recall.is_some()),
        is_loosest_capped: any(|row| row.is_loosest_capped),
        is_capped: any(|row| row.is_capped),
        has_splits: any(|row| !row.splits().is_empty()),
        has_sites: any(|row| !row.sites.is_empty()),
        has_errors: any(|row| !row.wrong.is_empty() || !row.missed.is_empty()),
        version: env!("CARGO_PKG_VERSION"),
    };
    render::write(path, render::html(&page)?)?;
    let written = Written { evaluation: &evaluation, experiments: more.as_ref() };
    render::write(&path.with_extension("json"), render::json(&written)?)?;
    render::write(&path.with_extension("csv"), csv(&figures))?;
    Ok(evaluation)
}

/// Numbers of the tables of the page.
pub(super) mod cells {
    use crate::evaluate::levels::Level;
    use crate::evaluate::metrics::{Counts, shown_share};
    use crate::report::numbers::thousands;

    /// A share, or a dash.
    pub fn share(value: &Option<f64>) -> String {
        value.map_or_else(|| "–".to_owned(), |value| shown_share(value, 3))
    }

    /// The precision of a level.
    pub fn at_level(level: &Level) -> String {
        share(&level.precision())
    }

    /// A share that is always known.
    pub fn known(value: &f64) -> String {
        shown_share(*value, 3)
    }

    /// F1.
    pub fn f1(counts: &Counts) -> String {
        shown_share(counts.f1(), 3)
    }

    /// Precision, or a dash where nothing was found.
    pub fn precision(counts: &Counts) -> String {
        share(&(counts.correct + counts.wrong > 0).then(|| counts.precision()))
    }

    /// Recall, or a dash where there is nothing to find.
    pub fn recall(counts: &Counts) -> String {
        share(&(counts.gold > 0).then(|| counts.recall()))
    }

    /// A threshold, without digits that say nothing.
    pub fn number(value: &f64) -> String {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// A unit after a number, where the number does not say it.
    pub fn unit(unit: &str) -> &str {
        if unit == "similarity" { "" } else { unit }
    }

    /// A share of a count.
    pub fn of(row: &(u64, u64)) -> String {
        let share = |row: &(u64, u64)| shown_share(row.1 as f64 / row.0 as f64, 3);
        if row.0 == 0 { "–".to_owned() } else { format!("{} ({})", share(row), thousands(row.0)) }
    }
}
