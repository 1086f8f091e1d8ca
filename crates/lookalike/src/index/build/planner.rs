//! Which table design to take: what each costs in bytes and in time (Manku et al. 2007, §3.1.1, §3.1.2).

use std::collections::HashMap;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::index::segment::packed::PackedShape;
pub use crate::plan::design::{Cut, Design, TableShape};
use crate::plan::design::{MOST_RADIUS, MOST_TABLES, binomial};
use crate::size::format_bytes;

/// What a design costs.
#[derive(Debug, Clone)]
pub struct DesignEstimate {
    /// The design.
    pub design: Design,
    /// Rows that share the prefix of a probe on average, in the table with the most.
    pub rows_per_probe: f64,
    /// Rows that a query compares, in all tables together.
    pub rows_per_query: f64,
    /// Bytes of all tables.
    pub bytes: u64,
    /// Time of a query, in memory, one thread.
    pub time: Duration,
}

/// Bits of the fingerprints of an index, for which bytes and times are estimated.
pub const INDEXED_BITS: u32 = 64;

/// Time of a probe that finds nothing: the directory and the first rows are not in the cache.
const PROBE_NANOSECONDS: f64 = 300.0;
/// Time of comparing a row that is not in the cache. Both are from `lookalike-bench hamming`, 20 and 50 million rows.
const ROW_NANOSECONDS: f64 = 2.0;

/// The fewest tables with prefixes of at least `least_prefix` bits, and how the bits are cut for it: the
/// recurrence X(f, k, d) of §3.1.2, in whole bits, where the shortest prefix counts.
#[must_use]
pub fn fewest_tables(bits: u32, radius: u32, least_prefix: u32) -> Option<(u64, Vec<u32>)> {
    fewest(bits, radius, least_prefix, &mut HashMap::new())
}

type KnownFewest = HashMap<(u32, u32), Option<(u64, Vec<u32>)>>;

fn fewest(bits: u32, radius: u32, needed: u32, known: &mut KnownFewest) -> Option<(u64, Vec<u32>)> {
    if needed == 0 {
        return Some((1, Vec::new()));
    }
    if let Some(answer) = known.get(&(bits, needed)) {
        return answer.clone();
    }
    let mut best: Option<(u64, Vec<u32>)> = None;
    for blocks in radius + 1..=bits {
        let ways = binomial(blocks, radius);
        if best.as_ref().is_some_and(|(tables, _)| ways >= *tables) {
            break;
        }
        let chosen = shortest_choice(bits, blocks, blocks - radius);
        if chosen == 0 {
            break;
        }
        let rest = fewest(bits - chosen, radius, needed.saturating_sub(chosen), known);
        if let Some((tables, levels)) = rest.map(|(tables, levels)| (tables.saturating_mul(ways), levels))
            && best.as_ref().is_none_or(|(fewest, _)| tables < *fewest)
        {
            best = Some((tables, [vec![blocks], levels].concat()));
        }
    }
    known.insert((bits, needed), best.clone());
    best
}

/// Bits in the shortest `chosen` of `blocks` blocks.
fn shortest_choice(bits: u32, blocks: u32, chosen: u32) -> u32 {
    let (short, longer) = (bits / blocks, bits % blocks);
    chosen * short + chosen.saturating_sub(blocks - longer)
}

/// The dual: the largest prefix that at most `tables` tables can have.
#[must_use]
pub fn largest_prefix(bits: u32, radius: u32, tables: u64) -> Option<(u32, Vec<u32>)> {
    let mut known = HashMap::new();
    (1..=bits).rev().find_map(|prefix| {
        let (needed, levels) = fewest(bits, radius, prefix, &mut known)?;
        (needed <= tables).then_some((prefix, levels))
    })
}

impl DesignEstimate {
    /// What `design` costs with `rows` different fingerprints. Bytes and time are those of rows of [`INDEXED_BITS`] bits.
    #[must_use]
    pub fn new(design: Design, rows: u64) -> DesignEstimate {
        let (mut rows_per_probe, mut rows_per_query, mut bytes, mut time) = (0f64, 0f64, 0, 0f64);
        for table in design.tables() {
            let shape = PackedShape::elias_fano(rows, table.prefix);
            let probes = table.probes() as f64;
            let matching = rows as f64 / f64::from(table.prefix).exp2();
            let looked_at = rows as f64 / f64::from(shape.directory_bits).exp2();
            rows_per_probe = rows_per_probe.max(matching);
            rows_per_query += probes * matching;
            bytes += shape.bytes(rows);
            time += probes * (PROBE_NANOSECONDS + looked_at * ROW_NANOSECONDS);
        }
        let time = Duration::from_secs_f64((time / 1e9).min(1e6));
        DesignEstimate { design, rows_per_probe, rows_per_query, bytes, time }
    }
}

/// What a design has to meet.
#[derive(Debug, Clone, Copy, Default)]
pub struct Budget {
    /// The most bytes of all tables.
    pub memory_bytes: Option<u64>,
    /// The most time of a query.
    pub latency: Option<Duration>,
    /// The most tables.
    pub tables: Option<u64>,
}

/// Designs for `rows` fingerprints of `bits` bits, from small to large, which is from slow to fast: none is both larger
/// and slower than another.
///
/// # Errors
/// When the radius is beyond what tables serve.
pub fn designs(bits: u32, rows: u64, radius: u32) -> Result<Vec<DesignEstimate>> {
    if radius > MOST_RADIUS {
        return Err(Error::invalid("radius", radius, format!("must be between 0 and {MOST_RADIUS} differing bits")));
    }
    let mut cuts: Vec<Cut> = (1..=radius).map(Cut::Flips).collect();
    let mut levels: Vec<Vec<u32>> = vec![Vec::new()];
    for _ in 0..3 {
        let deeper = levels
            .iter()
            .flat_map(|levels| (radius + 1..=radius + 6).map(|blocks| [levels.clone(), vec![blocks]].concat()));
        levels = deeper.collect();
        let ways = |levels: &[u32]| levels.iter().map(|&blocks| binomial(blocks, radius)).fold(1, u64::saturating_mul);
        cuts.extend(levels.iter().filter(|levels| ways(levels) <= MOST_TABLES / 4).cloned().map(Cut::Blocks));
    }
    let mut estimates: Vec<DesignEstimate> = cuts
        .into_iter()
        .filter_map(|cut| Design::new(bits, radius, cut).ok())
        .map(|design| DesignEstimate::new(design, rows))
        .collect();
    estimates.sort_by(|a, b| a.bytes.cmp(&b.bytes).then(a.time.cmp(&b.time)));
    let mut fastest = Duration::MAX;
    estimates.retain(|estimate| {
        let is_faster = estimate.time < fastest;
        fastest = fastest.min(estimate.time);
        is_faster
    });
    Ok(estimates)
}

/// The design to take: the smallest that takes at most twice the time of the fastest within the budget; with a latency,
/// the smallest that meets it.
///
/// # Errors
/// When nothing meets the budget.
pub fn choose(bits: u32, rows: u64, radius: u32, budget: Budget) -> Result<DesignEstimate> {
    let designs = designs(bits, rows, radius)?;
    let fits = |estimate: &&DesignEstimate| {
        budget.memory_bytes.is_none_or(|most| estimate.bytes <= most)
            && budget.tables.is_none_or(|most| estimate.design.tables().len() as u64 <= most)
            && budget.latency.is_none_or(|most| estimate.time <= most)
    };
    let fastest = designs.iter().rfind(fits).map_or(Duration::ZERO, |estimate| estimate.time);
    let is_fast = |estimate: &&DesignEstimate| budget.latency.is_some() || estimate.time <= 2 * fastest;
    if let Some(chosen) = designs.iter().find(|estimate| fits(estimate) && is_fast(estimate)) {
        return Ok(chosen.clone());
    }
    let (Some(smallest), Some(fastest)) = (designs.first(), designs.last()) else {
        return Err(Error::internal(format!("no table design serves radius {radius}")));
    };
    let setting = if budget.memory_bytes.is_some() {
        "memory"
    } else if budget.latency.is_some() {
        "latency"
    } else {
        "tables"
    };
    let reason = format!(
        "no design for {rows} fingerprints at radius {radius} meets this: the smallest takes {}, the fastest {:.1} µs per query; allow more, or leave it out to see all designs",
        format_bytes(smallest.bytes),
        fastest.time.as_secs_f64() * 1e6
    );
    Err(Error::conflict(setting, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recurrence_gives_the_known_answers() {
        let tables = |prefix| fewest_tables(64, 3, prefix).unwrap().0;
        assert_eq!([16, 25, 28, 31, 33].map(tables), [4, 10, 16, 20, 35]);
        assert_eq!(fewest_tables(64, 3, 28).unwrap().1, [4, 4]);
        assert_eq!(fewest_tables(64, 0, 64).unwrap().0, 1);
        assert!(fewest_tables(64, 3, 61).is_some() && fewest_tables(64, 3, 62).is_none());
    }

    /// X(f, k, d) as §3.1.2 writes it, in fractions of bits.
    fn by_the_paper(bits: f64, radius: u32, rows: f64) -> f64 {
        if bits <= rows {
            return 1.0;
        }
        let blocks = (radius + 1..=radius + 24).filter(|&blocks| bits / f64::from(blocks) >= 1.0);
        let ways = blocks.map(|blocks| {
            let rest = bits * f64::from(radius) / f64::from(blocks);
            binomial(blocks, radius) as f64 * by_the_paper(rest, radius, rows)
        });
        ways.fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn other_numbers_of_bits_follow_the_same_recurrence() {
        // Where blocks divide the bits, whole bits and fractions are the same.
        for (bits, radius, prefix) in [(128, 3, 32), (32, 3, 8), (64, 1, 32), (96, 2, 32), (256, 3, 64), (128, 3, 56)] {
            let tables = fewest_tables(bits, radius, prefix).unwrap().0;
            let expected = by_the_paper(f64::from(bits), radius, f64::from(bits - prefix));
            assert!((tables as f64 - expected).abs() < 1e-9, "{bits} {prefix}: {tables} {expected}");
        }
        for bits in [32, 64, 128, 256] {
            for tables in [4, 10, 16, 20, 35, 100] {
                let (prefix, levels) = largest_prefix(bits, 3, tables).unwrap();
                let design = Design::new(bits, 3, Cut::Blocks(levels)).unwrap();
                assert!(
                    design.tables().len() as u64 <= tables && design.shortest_prefix() >= prefix,
                    "{bits} {tables}"
                );
                assert!(fewest_tables(bits, 3, prefix + 1).is_none_or(|(more, _)| more > tables));
            }
            for estimate in designs(bits, 1_000_000, 3).unwrap() {
                assert!(estimate.design.bits() == bits && estimate.bytes > 0);
            }
        }
    }

    #[test]
    fn the_dual_gives_the_prefixes_back() {
        let prefix = |tables| largest_prefix(64, 3, tables).unwrap().0;
        assert_eq!([4, 10, 16, 20].map(prefix), [16, 25, 28, 31]);
        assert!(largest_prefix(64, 3, 3).is_none());
        for tables in 4..60 {
            assert!(fewest_tables(64, 3, prefix(tables)).unwrap().0 <= tables);
            assert!(fewest_tables(64, 3, prefix(tables) + 1).unwrap().0 > tables);
        }
    }

    #[test]
    fn what_the_recurrence_says_is_what_the_designs_have() {
        for radius in 1..=5 {
            for prefix in 1..=40 {
                let Some((tables, levels)) = fewest_tables(64, radius, prefix) else { continue };
                if tables <= 500 {
                    let design = Design::new(64, radius, Cut::Blocks(levels)).unwrap();
                    assert_eq!(design.tables().len() as u64, tables);
                    assert!(design.shortest_prefix() >= prefix);
                }
            }
        }
    }

    #[test]
    fn rows_of_a_query_at_the_paper_s_scale() {
        let rows = |cut: &str, rows: u64| {
            DesignEstimate::new(Design::new(64, 3, cut.parse().unwrap()).unwrap(), rows).rows_per_query.round()
        };
        assert_eq!(["6", "4x4", "5", "4"].map(|cut| rows(cut, 1 << 34)), [88.0, 1024.0, 3584.0, 1_048_576.0]);
        assert_eq!(rows("4", 50_000_000), 3052.0);
        // Naive probing: the whole ball, in one table.
        let naive = Design::new(64, 3, Cut::Flips(1)).unwrap();
        assert_eq!((naive.tables().len(), naive.probes()), (1, 43_745));
    }

    #[test]
    fn budgets_are_met_or_refused() {
        let chosen = choose(64, 50_000_000, 3, Budget::default()).unwrap();
        assert_eq!(chosen.design.cut(), &Cut::Blocks(vec![4]));
        let small = choose(64, 50_000_000, 3, Budget { memory_bytes: Some(600_000_000), ..Budget::default() }).unwrap();
        assert!(small.bytes <= 600_000_000 && small.time > chosen.time);
        let quick = Budget { latency: Some(chosen.time), ..Budget::default() };
        assert!(choose(64, 50_000_000, 3, quick).unwrap().time <= chosen.time);
        let none = Budget { memory_bytes: Some(1000), ..Budget::default() };
        assert!(choose(64, 50_000_000, 3, none).unwrap_err().to_string().contains("smallest"));
        assert!(choose(64, 1000, MOST_RADIUS + 1, Budget::default()).is_err());
        for radius in 0..=MOST_RADIUS {
            for rows in [0, 1, 1000, 1 << 34] {
                assert!(choose(64, rows, radius, Budget::default()).unwrap().design.gap().is_none());
            }
        }
    }
}
