//! `lookalike plan`

use std::io::{self, Write};

use anyhow::Result;
use lookalike::config::format_bytes;
use lookalike::index::planner::{
    Budget, Cut, Design, DesignEstimate, INDEXED_BITS, choose, designs, fewest_tables, largest_prefix,
};
use serde_json::json;

use crate::Ending;
use crate::index_args::PlanArguments;
use crate::table::thousands;

/// The table designs of Manku et al. (2007), Example 3.1, for radius 3.
const PAPER: [&str; 4] = ["4", "5", "4x4", "6"];

pub(crate) fn run(arguments: &PlanArguments) -> Result<Ending> {
    let PlanArguments { pages, bits, radius, memory, latency, tables, prefix, json } = *arguments;
    let budget = Budget { memory_bytes: memory, latency, tables };
    let mut all = designs(bits, pages, radius)?;
    let chosen = choose(bits, pages, radius, budget)?;
    let longest = tables.map(|tables| (tables, largest_prefix(bits, radius, tables)));
    let fewest = prefix.map(|prefix| (prefix, fewest_tables(bits, radius, prefix)));
    let paper = PAPER.iter().filter_map(|cut| cut.parse().ok()).filter(|_| radius == 3 && bits == INDEXED_BITS);
    let asked = fewest.iter().filter_map(|(_, found)| Some(Cut::Blocks(found.as_ref()?.1.clone())));
    for cut in paper.chain(asked).collect::<Vec<Cut>>() {
        if all.iter().all(|known| *known.design.cut() != cut) {
            all.extend(Design::new(bits, radius, cut).ok().map(|design| DesignEstimate::new(design, pages)));
        }
    }
    all.sort_by_key(|estimate| (estimate.design.tables().len(), estimate.design.probes()));
    let mut out = io::stdout().lock();
    if json {
        let rows: Vec<_> = all.iter().map(|estimate| row_json(estimate, &chosen)).collect();
        let longest = longest.and_then(|(_, found)| Some(found?.0));
        let fewest = fewest.and_then(|(prefix, found)| {
            let (tables, levels) = found?;
            Some(json!({"prefix_bits": prefix, "tables": tables, "design": Cut::Blocks(levels).to_string()}))
        });
        let plan = json!({
            "pages": pages, "bits": bits, "radius": radius, "designs": rows, "largest_prefix": longest, "fewest_tables": fewest,
            "estimates_for_bits": INDEXED_BITS,
        });
        writeln!(out, "{plan:#}")?;
        return Ok(Ending::Done);
    }
    writeln!(
        out,
        "{} fingerprints of {bits} bits; every match within {radius} bits of a query is found\n",
        thousands(pages)
    )?;
    writeln!(
        out,
        "{:>10} {:>7} {:>7} {:>7} {:>13} {:>13} {:>10} {:>9} {:>10}",
        "design", "tables", "prefix", "probes", "rows/probe", "rows/query", "bytes", "bytes/row", "time/query"
    )?;
    for estimate in &all {
        let prefixes = estimate.design.tables().iter().map(|table| table.prefix);
        let (least, most) = (prefixes.clone().min().unwrap_or(0), prefixes.max().unwrap_or(0));
        writeln!(
            out,
            "{} {:>8} {:>7} {:>7} {:>7} {:>13} {:>13} {:>10} {:>9.2} {:>10}",
            if estimate.design.cut() == chosen.design.cut() { "→" } else { " " },
            estimate.design.cut().to_string(),
            estimate.design.tables().len(),
            if least == most { least.to_string() } else { format!("{least}–{most}") },
            estimate.design.probes(),
            count(estimate.rows_per_probe),
            count(estimate.rows_per_query),
            format_bytes(estimate.bytes),
            estimate.bytes as f64 / pages.max(1) as f64,
            time(estimate.time.as_secs_f64())
        )?;
    }
    writeln!(
        out,
        "\n→ is {}{}.",
        if bits == INDEXED_BITS { "what lookalike index build chooses" } else { "the choice by these estimates" },
        if budget_is_given(&budget) { " within this budget" } else { "" }
    )?;
    writeln!(
        out,
        "Designs: 4 = four blocks, one table per choice of blocks; 4x4 = the remaining bits are cut again; flip2 = two\npieces, probed with flipped bits. Bytes are those of elias-fano tables without ids; times are estimates for\ntables in memory and one thread."
    )?;
    if bits != INDEXED_BITS {
        writeln!(
            out,
            "Bytes and times are estimates for {INDEXED_BITS} bits; tables, prefixes, probes and rows hold for {bits}."
        )?;
    }
    if let Some((tables, found)) = longest {
        write_longest(&mut out, tables, found)?;
    }
    if let Some((prefix, found)) = fewest {
        write_fewest(&mut out, prefix, found, bits - radius)?;
    }
    Ok(Ending::Done)
}

fn write_longest(out: &mut impl Write, tables: u64, found: Option<(u32, Vec<u32>)>) -> io::Result<()> {
    let Some((prefix, levels)) = found else {
        return writeln!(out, "No design of blocks has {tables} tables or fewer; a flip design has.");
    };
    let cut = Cut::Blocks(levels);
    writeln!(out, "With at most {tables} tables of blocks, the longest prefix is {prefix} bits (design {cut}).")
}

fn write_fewest(out: &mut impl Write, prefix: u32, found: Option<(u64, Vec<u32>)>, most: u32) -> io::Result<()> {
    let Some((tables, levels)) = found else {
        return writeln!(
            out,
            "No design of blocks has prefixes of {prefix} bits; the longest possible are {most} bits."
        );
    };
    let (cut, noun) = (Cut::Blocks(levels), if tables == 1 { "table" } else { "tables" });
    let tables = thousands(tables);
    writeln!(out, "With prefixes of at least {prefix} bits, the fewest are {tables} {noun} of blocks (design {cut}).")
}

fn budget_is_given(budget: &Budget) -> bool {
    budget.memory_bytes.is_some() || budget.latency.is_some() || budget.tables.is_some()
}

fn row_json(estimate: &DesignEstimate, chosen: &DesignEstimate) -> serde_json::Value {
    let prefixes: Vec<u32> = estimate.design.tables().iter().map(|table| table.prefix).collect();
    json!({
        "design": estimate.design.cut().to_string(),
        "chosen": estimate.design.cut() == chosen.design.cut(),
        "tables": estimate.design.tables().len(),
        "prefix_bits": prefixes,
        "probes": estimate.design.probes(),
        "rows_a_probe": estimate.rows_per_probe,
        "rows_a_query": estimate.rows_per_query,
        "bytes": estimate.bytes,
        "seconds_a_query": estimate.time.as_secs_f64(),
    })
}

/// A number; below ten, with one decimal.
fn count(number: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count of rows
    if number < 10.0 { format!("{number:.1}") } else { thousands(number.round() as u64) }
}

fn time(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{:.1} µs", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.1} s")
    }
}
