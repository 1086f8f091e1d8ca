//! The tables of `docs/methods.md`.

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use lookalike::config::{Named, Scope};
use lookalike::{Config, Method};
use lookalike_bench::labelled::{
    self, FramedDocs, Labelled, PairCounts, Variant, install_guide, pair_counts, same_core,
};
use lookalike_bench::{scopes, sites};

use crate::peers::environment;

/// Prints all tables.
pub(crate) fn run() -> Result<()> {
    let variants: Vec<Variant> = labelled::defaults().into_iter().chain(labelled::options()).collect();
    for set in [same_core()?, install_guide()?, labelled::llvm_docs()?].into_iter().flatten() {
        corpus(&set, &variants)?;
    }
    corpus(&labelled::boilerplate_site()?, &labelled::defaults())?;
    graded(&variants)
}

fn corpus(set: &Labelled, variants: &[Variant]) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "\n{}: {} pages", set.name, set.cluster_of.len())?;
    let mut parts: Vec<&String> = set.part_of.values().collect();
    parts.sort_unstable();
    parts.dedup();
    let more: String = parts.iter().map(|part| format!(" {part}: precision / recall |")).collect();
    writeln!(out, "\n| method | precision | recall | F1 | seconds |{more}")?;
    writeln!(out, "|---|---|---|---|---|{}", "---|".repeat(parts.len()))?;
    for variant in variants {
        let (all, by_part, seconds) = pair_counts(set, &variant.config)?;
        write!(out, "| {} | {} | {seconds:.1} |", variant.name, numbers(&all))?;
        for part in &parts {
            let counts = by_part.get(*part).copied().unwrap_or_default();
            write!(out, " {:.3} / {:.3} |", counts.precision(), counts.recall())?;
        }
        writeln!(out)?;
        out.flush()?;
    }
    Ok(())
}

fn graded(variants: &[Variant]) -> Result<()> {
    let mut out = io::stdout().lock();
    let Some(pairs) = labelled::graded_pairs()? else { return Ok(()) };
    writeln!(out, "\nwebis-s3-pairs-dev: {} pairs\n", pairs.len())?;
    writeln!(
        out,
        "| method | AUC, exact similarity | AUC, sketches alone | precision | recall | F1 |\n|---|---|---|---|---|---|"
    )?;
    for variant in variants.iter().filter(|variant| !variant.config.counts_corpus()) {
        let found = labelled::graded(&pairs, &variant.config);
        let bits = found.common_bits_area.map_or_else(String::new, |area| format!(" (common bits {area:.3})"));
        writeln!(
            out,
            "| {} | {:.3} | {:.3}{bits} | {} |",
            variant.name,
            found.area,
            found.estimate_area,
            numbers(&found.counts)
        )?;
    }
    Ok(())
}

fn numbers(counts: &PairCounts) -> String {
    format!("{:.3} | {:.3} | {:.3}", counts.precision(), counts.recall(), counts.f1())
}

/// Prints precision within a site and between sites.
pub(crate) fn sites() -> Result<()> {
    let mut out = io::stdout().lock();
    let docs = FramedDocs::open()?;
    let versions = labelled::llvm_docs()?;
    writeln!(out, "Precision of the reported pairs (and their number), within a site and between sites\n")?;
    writeln!(out, "| data | content | pairs | {} |", sites::METHODS.join(" | "))?;
    writeln!(out, "|---|---|---|{}", "---|".repeat(sites::METHODS.len()))?;
    for (name, is_there) in [("framed-docs-dev", docs.is_some()), ("llvm-docs-dev", versions.is_some())] {
        for scope in sites::SCOPES.into_iter().filter(|_| is_there) {
            let mut rows = [String::new(), String::new()];
            for method in sites::METHODS {
                let found = match (name, &docs, &versions) {
                    ("framed-docs-dev", Some(docs), _) => sites::on_framed_docs(docs, &sites::config(method, scope)?)?,
                    (_, _, Some(versions)) => sites::on_versions(versions, &sites::config(method, scope)?)?,
                    _ => continue,
                };
                for (row, reported) in rows.iter_mut().zip([found.same, found.different]) {
                    let precision = reported.precision().map_or_else(|| "–".to_owned(), |share| format!("{share:.2}"));
                    row.push_str(&format!(" {precision} ({}) |", reported.all));
                }
            }
            for (row, pairs) in rows.iter().zip(["same site", "different sites"]) {
                writeln!(out, "| {name} | {} | {pairs} |{row}", scope.name())?;
            }
            out.flush()?;
        }
    }
    Ok(())
}

/// Prints the default on documentation whose main elements are known.
pub(crate) fn made(directory: &Path) -> Result<()> {
    let docs = FramedDocs::at(directory)?;
    let mut out = io::stdout().lock();
    writeln!(out, "| content | precision | recall | dropped | wrongly | seconds |\n|---|---|---|---|---|---|")?;
    for scope in sites::SCOPES {
        let mut config = Config::default();
        config.content.scope = scope;
        let found = docs.measure(&config)?;
        writeln!(
            out,
            "| {} | {:.3} | {:.3} | {} | {} | {:.1} |",
            scope.name(),
            found.precision,
            found.recall,
            found.dropped,
            found.wrongly_dropped,
            found.seconds
        )?;
    }
    Ok(())
}

/// Prints what each part of a page does to each method.
pub(crate) fn scopes() -> Result<()> {
    let mut out = io::stdout().lock();
    for set in [same_core()?, install_guide()?, labelled::llvm_docs()?].into_iter().flatten() {
        writeln!(out, "\n{}: {} pages\n", set.name, set.cluster_of.len())?;
        writeln!(
            out,
            "| method | content | best F1 (at) | F1 | precision | recall | same frame among reported | compared whole | seconds |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|---|---|")?;
        for method in scopes::METHODS {
            for scope in [Scope::Page, Scope::Core, Scope::Main] {
                let found = scopes::measure(&set, method, scope)?;
                let same_frame = if set.frame_of.is_empty() {
                    "–".to_owned()
                } else {
                    format!("{} ({:.4})", found.same_frame, found.same_frame_share())
                };
                writeln!(
                    out,
                    "| {} | {} | {:.3} ({}) | {:.3} | {:.3} | {:.3} | {same_frame} | {} | {:.1} |",
                    method,
                    scope.name(),
                    found.best.f1(),
                    if found.best_at < f64::MAX { format!("{:.3}", found.best_at) } else { "copies".to_owned() },
                    found.default.f1(),
                    found.default.precision(),
                    found.default.recall(),
                    found.whole,
                    found.seconds
                )?;
                out.flush()?;
            }
        }
    }
    Ok(())
}

/// Methods whose figures are worth a row for every part of a page.
const FRAME_METHODS: [&str; 3] = ["minhash", "spotsigs", "simhash"];

/// What each part of a page is good for, at defaults, on pages whose stories are known; then ordinary extractors with
/// plain 5-grams on the same pages.
pub(crate) fn frames() -> Result<()> {
    let mut out = io::stdout().lock();
    let Some(framed) = FramedDocs::open()? else { anyhow::bail!("framed-docs-dev is not in LOOKALIKE_DATA") };
    let sets = (same_core()?, install_guide()?, labelled::llvm_docs()?);
    writeln!(
        out,
        "| method | compared | framed-docs-dev: precision | recall | wrongly dropped | same-core-dev: F1 | install-guide-dev: precision | recall | llvm-docs-dev: wrong within a version | s |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|---|")?;
    // A reader view takes its time, and is the same for all of them: it comes last, and once.
    let mut rows: Vec<(&str, Scope)> = Vec::new();
    for method in FRAME_METHODS {
        rows.extend([Scope::Page, Scope::Core, Scope::Story].map(|scope| (method, scope)));
    }
    rows.push((FRAME_METHODS[0], Scope::Main));
    for (method, scope) in rows {
        let started = Instant::now();
        let mut config = Config::new(Method::named(method)?);
        config.content.scope = scope;
        let found = framed.measure(&config)?;
        write!(
            out,
            "| `{method}` | `{scope}` | {:.3} | {:.3} | {} of {} ",
            found.precision, found.recall, found.wrongly_dropped, found.dropped
        )?;
        if let Some(set) = &sets.0 {
            write!(out, "| {:.3} ", pair_counts(set, &config)?.0.f1())?;
        }
        if let Some(set) = &sets.1 {
            let counts = pair_counts(set, &config)?.0;
            write!(out, "| {:.3} | {:.3} ", counts.precision(), counts.recall())?;
        }
        if let Some(set) = &sets.2 {
            let found = sites::on_versions(set, &config)?.same;
            write!(out, "| {} of {} ", found.wrong(), found.all)?;
        }
        writeln!(out, "| {:.1} |", started.elapsed().as_secs_f64())?;
        out.flush()?;
    }
    writeln!(out)?;
    out.flush()?;
    extractors(&framed, &[sets.0, sets.1, sets.2])
}

/// Runs the peers, which print tables of their own.
fn extractors(framed: &FramedDocs, sets: &[Option<Labelled>]) -> Result<()> {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
    let work = bench.join("../../target/bench");
    let python = environment(&work)?;
    let mut command = std::process::Command::new(python);
    command.arg(bench.join("peers/extractors.py")).arg("--cache").arg(work.join("extractors"));
    let root = framed.directory.parent().unwrap_or(&framed.directory);
    command.args(["--set", "framed-docs-dev"]).arg(root);
    for set in sets.iter().flatten() {
        // Pages of the first set are in a folder below its labels.
        let root = if set.name == "same-core-dev" { set.directory.parent() } else { None };
        command.args(["--set", set.name]).arg(root.unwrap_or(&set.directory));
    }
    anyhow::ensure!(command.status()?.success(), "the extractors failed");
    Ok(())
}
