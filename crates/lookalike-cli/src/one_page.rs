//! `lookalike evaluate page`

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use lookalike::evaluate::{OnePage, OnePageOptions, one_page, write_one_page};
use lookalike::{Config, Method};

use crate::Ending;
use crate::evaluate_args::PageArguments;
use crate::ink::harmless;
use crate::method::read_as;
use crate::table::{TextTable, counted, not_an_input};

pub(crate) fn run(arguments: &PageArguments) -> Result<Ending> {
    let mut config = Config::new(arguments.method.parse::<Method>()?);
    read_as(&mut config, &arguments.reading)?;
    if let Some(report) = &arguments.report {
        let outputs = [report.clone(), report.with_extension("json"), report.with_extension("csv")];
        let inputs: Vec<&Path> = arguments.inputs.iter().chain([&arguments.page]).map(Path::new).collect();
        not_an_input(&outputs.each_ref().map(PathBuf::as_path), &inputs)?;
    }
    let mut options = OnePageOptions::new(&arguments.page, &arguments.inputs, config);
    options.threads = arguments.threads.map_or(options.threads, usize::from);
    let found = one_page(&options)?;
    if let Some(report) = &arguments.report {
        write_one_page(&found, report)?;
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&found)?)?;
    } else {
        print(&mut out, &found, arguments.top)?;
    }
    if found.skipped > 0 {
        let records = counted(found.skipped, "record of the input was", "records of the input were");
        writeln!(io::stderr(), "{records} skipped")?;
        return Ok(Ending::Skipped);
    }
    Ok(Ending::Done)
}

fn print(out: &mut impl Write, found: &OnePage, top: usize) -> io::Result<()> {
    writeln!(
        out,
        "{} compared with {}: {} by {} ({})\n",
        counted(found.others.len() as u64, "page", "pages"),
        harmless(&found.page),
        counted(found.near_duplicates as u64, "near-duplicate", "near-duplicates"),
        found.method,
        found.rule
    )?;
    let mut table = TextTable::new(["rank", "near?", found.unit, "similar", "page in it", "it in page", "id"]);
    // Counts have no fractions.
    let places = if found.others.iter().all(|other| other.score.fract() == 0.0) { 0 } else { 4 };
    for (at, other) in found.others.iter().enumerate().take(top) {
        let near = match (other.identical, other.near_duplicate) {
            (true, _) => "copy",
            (false, true) => "yes",
            (false, false) => "no",
        };
        table.row([
            (at + 1).to_string(),
            near.to_owned(),
            format!("{:.places$}", other.score),
            format!("{:.4}", other.similarity),
            format!("{:.0} %", other.page_in_it * 100.0),
            format!("{:.0} %", other.it_in_page * 100.0),
            harmless(&other.id),
        ]);
    }
    table.print(out)?;
    if found.others.len() > top {
        let more = counted((found.others.len() - top) as u64, "page is", "pages are");
        writeln!(out, "\n{more} farther away; use --top N or --json to see them")?;
    }
    Ok(())
}
