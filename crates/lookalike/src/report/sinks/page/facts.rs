//! What the page says about the run as a whole, in words and numbers.

use crate::config::{ClusterMode, Scope};
use crate::report::Findings;
use crate::report::numbers::{counted, percent, thousands};
use crate::report::summary::Summary;

/// A number at the top of the page.
pub(super) struct Card {
    pub(super) number: String,
    pub(super) label: &'static str,
    pub(super) note: String,
}

pub(super) fn headline(summary: &Summary) -> String {
    let verb = if summary.dropped == 1 { "is a duplicate" } else { "are duplicates" };
    format!("{} of {} {verb}", thousands(summary.dropped), counted(summary.pages, "page"))
}

pub(super) fn method_name(findings: &Findings<'_>) -> &'static str {
    if findings.config.pairs.exact_only { "exact copies only" } else { findings.config.method.name() }
}

/// Sentences about what only some methods and inputs have.
pub(super) fn more(summary: &Summary) -> Vec<String> {
    let mut more = Vec::new();
    let pages_by = |scope: &str| summary.compared.get(scope).copied().unwrap_or_default();
    let whole = pages_by("page");
    for (scope, part) in [
        ("core", "the blocks that read like prose were"),
        ("main", "the main content was"),
        ("story", "what is not frame was"),
    ] {
        if pages_by(scope) > 0 {
            more.push(format!("In {}, only {part} compared.", counted(pages_by(scope), "HTML page")));
        }
    }
    if whole > 0 && whole < summary.compared.values().sum() {
        let verb = if whole == 1 { "was" } else { "were" };
        more.push(format!("{} had too little of it and {verb} compared as a whole.", counted(whole, "HTML page")));
    }
    if let Some(tables) = summary.tables {
        let promise = tables.exact_to_distance.map_or_else(
            || "; crowded buckets were compared through leaders, so some pairs may be missing.".to_owned(),
            |distance| format!(": no pair that differs in at most {distance} bits was missed."),
        );
        more.push(format!("Candidates were found through {}{promise}", counted(tables.tables as u64, "bit table")));
    }
    if let Some(filter) = summary.size_filter.filter(|filter| filter.collisions > 0) {
        more.push(format!(
            "The size filter skipped {} of the {} times that two pages shared a feature ({:.0} %).",
            thousands(filter.filtered),
            thousands(filter.collisions),
            filter.filtered as f64 * 100.0 / filter.collisions as f64
        ));
    }
    if let Some(filters) = summary.filters {
        more.push(format!(
            "Bloom filters have {} bits, of which each chunk sets {}; pages have {:.1} chunks on average. By chance alone, unrelated pages have {:.1} % of their bits in common; {:.2} % of the bits belong to chunks wrongly inferred to be shared. More than half full: {}.",
            filters.bits,
            filters.hashes,
            filters.chunks_per_page,
            filters.chance_level * 100.0,
            filters.false_match_ratio * 100.0,
            counted(filters.crowded_filters, "filter")
        ));
    }
    if !summary.antecedents.is_empty() {
        more.push(format!("Antecedents chosen from the corpus: {}.", summary.antecedents.join(", ")));
    }
    more
}

pub(super) fn cards(summary: &Summary) -> Vec<Card> {
    let share = |part: u64| format!("{} of the pages", percent(part, summary.pages));
    let skipped: u64 = summary.skipped.values().sum();
    let (exact, contained, same_core) =
        (summary.kinds["exact"], summary.kinds["contained"], summary.kinds["same_core"]);
    let near = summary.kinds["near"] + contained + same_core;
    let files = counted(summary.sources, "file");
    let label = |number: u64, one: &'static str, many: &'static str| if number == 1 { one } else { many };
    vec![
        Card {
            number: thousands(summary.pages),
            label: label(summary.pages, "page", "pages"),
            note: match summary.other_records.values().sum() {
                0 => format!("in {files}"),
                others => format!("in {files}, along with {}", counted(others, "other record")),
            },
        },
        Card { number: thousands(summary.kept), label: "kept", note: share(summary.kept) },
        Card {
            number: thousands(exact),
            label: label(exact, "exact copy dropped", "exact copies dropped"),
            note: share(exact),
        },
        Card {
            number: thousands(near),
            label: label(near, "near-duplicate dropped", "near-duplicates dropped"),
            note: match (contained, same_core) {
                (0, 0) => share(near),
                (0, same) if summary.config.content.scope == Scope::Links => {
                    format!("{} of them with the same links", thousands(same))
                }
                (0, same) => format!("{} of them the same text in another frame", thousands(same)),
                (contained, _) => format!("{} of them contained in the kept page", thousands(contained)),
            },
        },
        Card {
            number: thousands(summary.clusters),
            label: label(summary.clusters, "cluster", "clusters"),
            note: format!("largest: {}", counted(summary.largest_cluster, "page")),
        },
        Card {
            number: thousands(skipped),
            label: label(skipped, "record skipped", "records skipped"),
            note: if skipped == 0 { "all records were usable".to_owned() } else { "see below".to_owned() },
        },
    ]
}

pub(super) fn grouping(mode: ClusterMode) -> &'static str {
    match mode {
        ClusterMode::Star => "Every dropped page is a verified near-duplicate of the page that is kept in its place.",
        ClusterMode::Components => {
            "Groups are chains: each page is a verified near-duplicate of another page of its group."
        }
    }
}

/// What each stage passed on, of pages.
pub(super) fn page_rows(summary: &Summary) -> Vec<(&'static str, u64)> {
    vec![
        ("read", summary.pages),
        ("different texts", summary.identity_sets),
        ("in pairs worth comparing", summary.candidate_pages),
        ("kept", summary.kept),
    ]
}

/// What each stage passed on, of pairs.
pub(super) fn pair_rows(summary: &Summary) -> Vec<(&'static str, u64)> {
    vec![
        ("worth comparing", summary.candidate_pairs),
        ("compared exactly", summary.compared_pairs),
        ("accepted", summary.pairs),
    ]
}
