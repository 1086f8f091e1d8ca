//! `lookalike explain`

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use lookalike::compare::{ComparedPage, pieces, side_by_side};
use lookalike::result::{DroppedFor, ExplainedPage, Explanation, Explanations, Rejected, explain, files};
use serde_json::{Value, json};

use crate::args::ExplainArguments;
use crate::ink::{Ink, all_pieces, harmless, title};
use crate::table::{counted, kind_name};
use crate::{Ending, json, with_flags};

/// Characters of a difference that are shown, and pages of a group.
const SHOWN_CHARS: usize = 2000;
const SHOWN_PAGES: usize = 10;

pub(crate) fn run(arguments: &ExplainArguments) -> Result<Ending> {
    let found = explain(&arguments.directory, &arguments.pages)?;
    if arguments.json {
        json::print(&document(&found, arguments)?)?;
        return Ok(Ending::Done);
    }
    let (mut out, ink) = (io::stdout().lock(), Ink::new());
    for (number, page) in found.pages.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        print(&mut out, page, arguments, &ink)?;
    }
    writeln!(out, "\n{}  {}", ink.bold("Rule    "), found.rule)?;
    if let Some(pages) = decided_pages(&arguments.directory) {
        let changed = counted(pages, "page was", "pages were");
        writeln!(out, "          {changed} put elsewhere by people's decisions, which prevail over the rule")?;
    }
    writeln!(out, "{}  {}", ink.bold("Settings"), harmless(&flags(&found.settings)))?;
    Ok(Ending::Done)
}

/// How many pages of a result are where people decided, if it follows decisions.
fn decided_pages(directory: &Path) -> Option<u64> {
    let summary = std::fs::read(directory.join(files::SUMMARY)).ok()?;
    let summary: Value = serde_json::from_slice(&summary).ok()?;
    summary["decisions"]["changed_pages"].as_u64().filter(|&pages| pages > 0)
}

/// Everything, with the differences: all of them with `--full`.
fn document(found: &Explanations, arguments: &ExplainArguments) -> Result<Value> {
    let mut document = serde_json::to_value(found)?;
    document["result"] = json!(arguments.directory);
    for (number, page) in found.pages.iter().enumerate() {
        let Some((own, kept)) = &page.texts else { continue };
        let sides = side_by_side(&kept.text, &own.text);
        document["pages"][number]["words"] =
            json!({"shared": sides.shared, "page_only": sides.right_only, "kept_only": sides.left_only});
        let all = if arguments.full { all_pieces(sides) } else { pieces(&kept.text, &own.text) };
        document["pages"][number]["diff"] = serde_json::to_value(all)?;
    }
    Ok(document)
}

/// Settings as they would be written on the command line.
fn flags(settings: &[(String, String)]) -> String {
    let flag = |(name, value): &(String, String)| {
        let name = name.replace('_', "-");
        match value.as_str() {
            "" => format!("--{name}"),
            value if value.contains(' ') => format!("--{name} \"{value}\""),
            value => format!("--{name} {value}"),
        }
    };
    settings.iter().map(flag).collect::<Vec<_>>().join(" ")
}

fn print(out: &mut impl Write, page: &Explanation, arguments: &ExplainArguments, ink: &Ink) -> io::Result<()> {
    let verdict = if page.is_kept { "was kept" } else { "was dropped" };
    let reason = harmless(&with_flags(&page.reason));
    writeln!(out, "{}: {reason}", ink.bold(&format!("{} {verdict}", harmless(&page.page.id))))?;
    writeln!(out, "  {}", describe(&page.page))?;
    match &page.kept_page {
        Some(kept) => print_dropped(out, page, kept, arguments, ink),
        None => print_kept(out, page, arguments),
    }
}

fn describe(page: &ExplainedPage) -> String {
    let mut parts = Vec::new();
    parts.extend(page.title.as_deref().map(title));
    parts.extend(page.url.as_deref().filter(|url| *url != page.id).map(harmless));
    parts.extend(page.source.as_ref().map(|source| format!("{}, record {}", harmless(source), page.record)));
    parts.push(format!("{} compared", counted(page.words.into(), "word", "words")));
    parts.join("  ")
}

fn print_dropped(
    out: &mut impl Write,
    page: &Explanation,
    kept: &ExplainedPage,
    arguments: &ExplainArguments,
    ink: &Ink,
) -> io::Result<()> {
    if let Some(DroppedFor { page: other, similarity, .. }) = &page.dropped_for {
        writeln!(out, "\n{}: {}\n  {}", ink.bold("dropped for"), harmless(&other.id), describe(other))?;
        writeln!(out, "  similarity of what was compared  {similarity:.4}")?;
    }
    let label = if page.dropped_for.is_some() { "most similar kept page" } else { "kept in its place" };
    writeln!(out, "\n{}: {}\n  {}\n", ink.bold(label), harmless(&kept.id), describe(kept))?;
    if let Some(similarity) = page.similarity {
        let needed = page.evidence.as_ref().map_or_else(String::new, |evidence| {
            let because = evidence.because.as_ref().map_or_else(String::new, |because| format!(": {because}"));
            let score = match evidence.unit {
                "similarity" => String::new(),
                unit => format!("{} {unit}, ", evidence.score),
            };
            format!("  ({score}needed {}{because})", evidence.needed)
        });
        writeln!(out, "  similarity of what was compared  {similarity:.4}{needed}")?;
    }
    match page.page_similarity {
        Some(similarity) => writeln!(out, "  similarity of the whole pages    {similarity:.4}")?,
        None => writeln!(out, "  similarity of the whole pages    not known")?,
    }
    if let Some(evidence) = &page.evidence {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let (own, theirs) = (percent(evidence.page_in_kept), percent(evidence.kept_in_page));
        writeln!(out, "  {own} of this page is in the kept one, {theirs} of the kept one is in this page")?;
    }
    if !page.chain.is_empty() {
        writeln!(out, "\n  not compared directly, but linked by verified pairs:")?;
        for link in &page.chain {
            writeln!(out, "    {:.4}  {} – {}", link.similarity, harmless(&link.from), harmless(&link.to))?;
        }
    }
    if page.group.len() > 1 {
        let (others, id) = (counted(page.group.len() as u64 - 1, "other page", "other pages"), harmless(&kept.id));
        writeln!(
            out,
            "  kept in place of {others}, too; lookalike explain {} {id} lists them",
            arguments.directory.display()
        )?;
    }
    if let Some((own, theirs)) = &page.texts {
        print_difference(out, own, theirs, arguments, ink)?;
    }
    if let Some(reason) = &page.no_texts {
        writeln!(out, "\nthe texts cannot be shown: {}", harmless(&with_flags(reason)))?;
    }
    Ok(())
}

fn print_difference(
    out: &mut impl Write,
    own: &ComparedPage,
    kept: &ComparedPage,
    arguments: &ExplainArguments,
    ink: &Ink,
) -> io::Result<()> {
    let (minus, plus) = ink.signs();
    if own.text == kept.text {
        writeln!(out, "\nno difference in what was compared")?;
    } else {
        // As in the report: what the kept page has comes first.
        writeln!(out, "\n{minus} only in {}   {plus} only in {}", harmless(&kept.name), harmless(&own.name))?;
        let all = match arguments.full {
            true => all_pieces(side_by_side(&kept.text, &own.text)),
            false => pieces(&kept.text, &own.text),
        };
        let left = ink.print_pieces(out, &all, if arguments.full { 0 } else { SHOWN_CHARS })?;
        if left > 0 {
            let more = counted(left as u64, "more difference", "more differences");
            writeln!(out, "{}", ink.dim(&format!("[… {more}; --full shows everything]")))?;
        }
    }
    for (sign, page) in [(minus, kept), (plus, own)] {
        let words: usize = page.left_out.iter().map(|block| block.text.split_whitespace().count()).sum();
        if words > 0 {
            let (words, id) = (counted(words as u64, "word", "words"), harmless(&page.name));
            let directory = arguments.directory.display();
            writeln!(out, "{sign} {words} of its frame not compared; lookalike text {id} --in {directory} shows them")?;
        }
    }
    Ok(())
}

fn print_kept(out: &mut impl Write, page: &Explanation, arguments: &ExplainArguments) -> io::Result<()> {
    let directory = arguments.directory.display();
    if !page.group.is_empty() {
        writeln!(out, "\nkept in place of:")?;
        let shown = if arguments.full { page.group.len() } else { SHOWN_PAGES };
        for fate in page.group.iter().take(shown) {
            writeln!(out, "  {:.4}  {:<26}  {}", fate.similarity, kind_name(&fate.kind), harmless(&fate.id))?;
        }
        if page.group.len() > shown {
            writeln!(out, "  … and {} more; --full lists all", page.group.len() - shown)?;
        }
    }
    match &page.nearest_rejected {
        Some(Rejected { id, similarity, page_similarity, score, unit, needed, because, .. }) => {
            let because = because.as_ref().map_or_else(String::new, |because| format!(": {because}"));
            let score = if *unit == "similarity" { String::new() } else { format!("{score} {unit}, ") };
            writeln!(out, "\nnearest page that is not a near-duplicate of it: {}", harmless(id))?;
            writeln!(out, "  similarity of what was compared  {similarity:.4}  ({score}needed {needed}{because})")?;
            if let Some(similarity) = page_similarity {
                writeln!(out, "  similarity of the whole pages    {similarity:.4}")?;
            }
            let (own, id) = (harmless(&page.page.id), harmless(id));
            writeln!(out, "  lookalike compare {own} {id} --in {directory} shows both")
        }
        None => writeln!(out, "\nno other page came near the threshold"),
    }
}
