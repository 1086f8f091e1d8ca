//! `lookalike compare`

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result};
use lookalike::compare::{ComparedPage, Comparison, compare_pages, html, pieces, side_by_side};
use lookalike::config::Named;
use lookalike::{Config, Error};
use serde_json::json;

use crate::Ending;
use crate::args::CompareArguments;
use crate::ink::{Ink, harmless};
use crate::values::EvaluatedMethods;

pub(crate) fn run(arguments: &CompareArguments) -> Result<Ending> {
    let mut config = Config::default();
    config.content.keep_case = arguments.keep_case;
    config.content.scope = arguments.content.unwrap_or(config.content.scope);
    config.content.mask_volatile = arguments.mask.is_some();
    config.pairs.site = arguments.site;
    config.read.format = arguments.format;
    config.read.fields.id.clone_from(&arguments.id_field);
    config.read.fields.text.clone_from(&arguments.text_field);
    config.read.fields.url.clone_from(&arguments.url_field);
    let within = arguments.within.as_deref();
    let found =
        compare_pages(&arguments.left, &arguments.right, within, &config, &EvaluatedMethods::all(&arguments.method))?;
    let is_result = found.verdict.is_some();
    if is_result && (arguments.content.is_some() || arguments.keep_case || arguments.mask.is_some()) {
        let reason =
            "is a result, whose pages are compared with its settings: leave out `content`, `mask` and `keep_case`";
        return Err(Error::conflict("in", reason).into());
    }

    if let Some(path) = &arguments.html {
        let page = html(&found, &side_by_side(&found.left.text, &found.right.text))?;
        std::fs::write(path, page).with_context(|| format!("{}: cannot write", path.display()))?;
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        let sides = side_by_side(&found.left.text, &found.right.text);
        let words = json!({ "shared": sides.shared, "left_only": sides.left_only, "right_only": sides.right_only });
        let mut value = serde_json::to_value(&found)?;
        value["words"] = words;
        value["diff"] = serde_json::to_value(pieces(&found.left.text, &found.right.text))?;
        writeln!(out, "{}", serde_json::to_string_pretty(&value)?)?;
    } else if arguments.html.is_none() || out.is_terminal() {
        let ink = Ink::new();
        print_table(&mut out, &found, &ink)?;
        print_difference(&mut out, &found, &ink)?;
    }
    Ok(Ending::Done)
}

/// Blocks that are not compared, and how much of each, in a terminal; `lookalike text` shows them all.
const SHOWN_BLOCKS: usize = 5;
const SHOWN_CHARS: usize = 80;

fn print_table(out: &mut impl Write, found: &Comparison, ink: &Ink) -> io::Result<()> {
    for (sign, code, page) in [("-", "31", &found.left), ("+", "32", &found.right)] {
        writeln!(out, "{} {}", ink.paint(code, sign), describe(page))?;
    }
    if let Some(verdict) = &found.verdict {
        let decision = &verdict.decision;
        let answer = if decision.near_duplicate { "near-duplicates" } else { "not near-duplicates" };
        writeln!(out, "\nin this result: {answer} ({:.4}, needed {})", decision.similarity, decision.needed)?;
        writeln!(out, "  {} {}", ink.paint("31", "-"), harmless(&verdict.left.text()))?;
        writeln!(out, "  {} {}", ink.paint("32", "+"), harmless(&verdict.right.text()))?;
    }
    writeln!(out, "\nsimilarity of the whole pages: {:.4}", found.page_similarity)?;
    if found.identical {
        writeln!(out, "\nthe same words in the same order")?;
    } else {
        writeln!(out, "\nthey differ in: {}", found.difference)?;
    }
    if let Some(same) = found.same_site {
        writeln!(out, "\n{}", if same { "on the same site" } else { "on different sites" })?;
    }
    let width = found.methods.iter().map(|decision| decision.method.chars().count()).max().unwrap_or(0).max(11);
    writeln!(
        out,
        "\n{:<width$} {:<5} {:>10}  {:>7} {:>7}  {:<34} needed",
        "method", "near?", "similarity", "- in +", "+ in -", "decides by"
    )?;
    for decision in &found.methods {
        // Padded before it is coloured: escape codes have no width.
        let verdict = format!("{:<5}", if decision.near_duplicate { "yes" } else { "no" });
        let verdict = if decision.near_duplicate { ink.paint("1;32", &verdict) } else { verdict };
        writeln!(
            out,
            "{:<width$} {verdict} {:>10.4}  {:>5.0} % {:>5.0} %  {:<34} {}",
            decision.method,
            decision.similarity,
            decision.left_in_right * 100.0,
            decision.right_in_left * 100.0,
            decision.score_text(),
            decision.needed
        )?;
    }
    Ok(())
}

fn describe(page: &ComparedPage) -> String {
    let mut text = page.name.clone();
    if let Some(url) = page.url.as_ref().filter(|url| **url != page.name) {
        text.push_str(&format!("  {url}"));
    }
    if let Some(title) = &page.title {
        text.push_str(&format!("  “{}”", title.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    text.push_str(&format!("  ({} words", page.tokens));
    if let Some(language) = page.language {
        text.push_str(&format!(", {language}"));
    }
    harmless(&text) + ")"
}

fn print_difference(out: &mut impl Write, found: &Comparison, ink: &Ink) -> io::Result<()> {
    writeln!(out)?;
    ink.print_pieces(out, &pieces(&found.left.text, &found.right.text), 0)?;
    for (sign, code, page) in [("-", "31", &found.left), ("+", "32", &found.right)] {
        if !page.left_out.is_empty() {
            let words: usize = page.left_out.iter().map(|block| block.text.split_whitespace().count()).sum();
            let blocks = page.left_out.len();
            writeln!(out, "\n{} not compared: {words} words in {blocks} blocks", ink.paint(code, sign))?;
        }
        for block in page.left_out.iter().take(SHOWN_BLOCKS) {
            let text: String = harmless(&block.text).chars().take(SHOWN_CHARS).collect();
            writeln!(out, "  {}", ink.paint("2", &format!("{:<6} {text}", block.part.name())))?;
        }
    }
    Ok(())
}
