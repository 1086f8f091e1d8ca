//! The summary printed at the end of a run, and how numbers are written for people.

use std::io::{self, Write};
use std::path::Path;

use lookalike::Error;
use lookalike::config::Scope;
use lookalike::result::{Outcome, files};

use crate::args::TalkingArguments;
use crate::with_flags;

/// A number with a comma every three digits.
pub(crate) fn thousands(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// A number and what it counts: "1 record was", "2 records were".
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(number), if number == 1 { one } else { many })
}

/// What became of a page, in words.
pub(crate) fn kind_name(kind: &str) -> &str {
    match kind {
        "exact" => "exact copy",
        "same_core" => "same text in another frame",
        "near" => "near-duplicate",
        "contained" => "contained in it",
        kind => kind,
    }
}

/// A table for a terminal: columns as wide as their content, numbers to the right.
pub(crate) struct TextTable<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> TextTable<N> {
    /// A table with these titles.
    pub(crate) fn new(titles: [&str; N]) -> TextTable<N> {
        TextTable { rows: vec![titles.map(str::to_owned)] }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// Prints it; a column with a letter in any row but the first reads from the left.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let is_text = |column: usize| self.rows[1..].iter().any(|row| row[column].starts_with(char::is_alphabetic));
        let columns: [(usize, bool); N] = std::array::from_fn(|column| (width(column), is_text(column)));
        for row in &self.rows {
            let cells = row.iter().zip(columns).map(|(cell, (width, is_text))| {
                if is_text { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// Refuses to overwrite an input.
pub(crate) fn not_an_input(outputs: &[&Path], inputs: &[&Path]) -> Result<(), Error> {
    let same = |path: &Path| path.canonicalize().ok();
    for output in outputs {
        if let Some(input) = inputs.iter().find(|input| same(input).is_some() && same(input) == same(output)) {
            return Err(Error::bad_input(input, "is an input and would be overwritten; choose another output"));
        }
    }
    Ok(())
}

/// Seconds for people.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 90.0 {
        format!("{seconds:.1} s")
    } else if seconds < 5400.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}

/// Prints the summary to standard error, be it a terminal or not.
pub(crate) fn print(outcome: &Outcome, talking: &TalkingArguments) -> io::Result<()> {
    if talking.quiet {
        return Ok(());
    }
    let mut out = io::stderr().lock();
    let summary = &outcome.summary;
    let skipped: u64 = summary.skipped.values().sum();
    if skipped > 0 {
        writeln!(
            out,
            "{} skipped; see {}",
            counted(skipped, "record was", "records were"),
            outcome.output.join(files::SKIPPED).display()
        )?;
        for (record, count) in
            outcome.skipped_examples.iter().map(|record| (record, summary.skipped[record.kind.name()]))
        {
            let first = with_flags(&record.to_string());
            writeln!(out, "  {:<14} {:>8}  first: {first}", record.kind.name(), thousands(count))?;
        }
    }
    let share = |part: u64| format!("{:5.1} %", part as f64 * 100.0 / summary.pages.max(1) as f64);
    let mut row = |label: &str, number: u64, note: String| {
        let line = format!("  {label:<22} {:>12}  {note}", thousands(number));
        writeln!(out, "{}", line.trim_end())
    };
    row("pages", summary.pages, String::new())?;
    row("kept", summary.kept, share(summary.kept))?;
    row("exact copies", summary.kinds["exact"], share(summary.kinds["exact"]))?;
    if summary.kinds["same_core"] > 0 {
        let is_links = summary.config.content.scope == Scope::Links;
        row(
            if is_links { "same links" } else { "same text, other frame" },
            summary.kinds["same_core"],
            share(summary.kinds["same_core"]),
        )?;
    }
    row("near-duplicates", summary.kinds["near"], share(summary.kinds["near"]))?;
    if summary.kinds["contained"] > 0 {
        row("contained in others", summary.kinds["contained"], share(summary.kinds["contained"]))?;
    }
    if let Some(against) = &summary.against {
        row("in the other corpus", against.dropped, format!("{}, included above", share(against.dropped)))?;
    }
    if let Some(decided) = summary.decisions {
        let unknown = match decided.unknown_pages {
            0 => String::new(),
            pages => format!(", {} about pages that are not here", thousands(pages)),
        };
        let note = format!("by {}{unknown}", counted(decided.decisions, "decision", "decisions"));
        row("regrouped by people", decided.changed_pages, note)?;
    }
    row("clusters", summary.clusters, format!("largest {}", thousands(summary.largest_cluster)))?;
    row("verified pairs", summary.pairs, format!("of {} compared", thousands(summary.compared_pairs)))?;
    for (kind, label) in [("short", "too short to compare"), ("empty", "empty")] {
        if summary.kinds[kind] > 0 {
            row(label, summary.kinds[kind], "kept".to_owned())?;
        }
    }
    for (scope, label) in
        [("story", "compared: no frame"), ("main", "compared: main content"), ("core", "compared: core")]
    {
        if let Some(&count) = summary.compared.get(scope) {
            row(label, count, share(count))?;
        }
    }
    if summary.revisits > 0 {
        row("revisits", summary.revisits, "of pages in the input".to_owned())?;
    }
    if !summary.other_records.is_empty() {
        let kinds: Vec<String> =
            summary.other_records.iter().map(|(what, count)| format!("{what} {}", thousands(*count))).collect();
        row("other records", summary.other_records.values().sum(), kinds.join(", "))?;
    }
    if summary.ignored_files > 0 {
        row("ignored files", summary.ignored_files, "not pages: images, style sheets, …".to_owned())?;
    }
    if let Some(first) = summary.results_not_read.first() {
        row(
            "results not read",
            summary.results_not_read.len() as u64,
            format!("such as {first}; name one to read it"),
        )?;
    }
    if let Some(unread) = &summary.unread_ranks {
        row("not ranked", unread.pages, format!("no date or number, the first has '{}'", unread.first))?;
    }
    if summary.repeated_ids > 0 {
        row("repeated ids", summary.repeated_ids, "renamed id@file:record".to_owned())?;
    }
    if summary.capped_buckets > 0 {
        row("crowded buckets", summary.capped_buckets, "see the report".to_owned())?;
    }
    if let Some(large) = summary.large_clusters.first() {
        row(
            "large clusters",
            summary.large_clusters.len() as u64,
            format!("largest: {} ({} pages)", large.cluster, thousands(large.size)),
        )?;
    }
    let seconds: f64 = outcome.stages.iter().map(|stage| stage.elapsed.as_secs_f64()).sum();
    writeln!(
        out,
        "\n  {} written in {}; open {}",
        outcome.output.display(),
        duration(seconds),
        outcome.output.join(files::REPORT).display()
    )
}
