//! The four tables of a result: pages, clusters, pairs, near misses.

use std::path::Path;

use crate::error::Result;
use crate::observe::Observer;
use crate::page::ScoredPair;
use crate::report::Findings;
use crate::report::table::{Cell, ColumnType, TableWriter};
use crate::spill::Scratch;

const PAGES: [(&str, ColumnType); 10] = [
    ("id", ColumnType::Text),
    ("source", ColumnType::Text),
    ("record", ColumnType::Whole),
    ("offset?", ColumnType::Whole),
    ("length", ColumnType::Whole),
    ("url?", ColumnType::Text),
    ("title?", ColumnType::Text),
    ("tokens", ColumnType::Whole),
    ("identity", ColumnType::Text),
    ("revisit_of?", ColumnType::Text),
];

const CLUSTERS: [(&str, ColumnType); 7] = [
    ("id", ColumnType::Text),
    ("cluster", ColumnType::Text),
    ("kept", ColumnType::Truth),
    ("kept_id", ColumnType::Text),
    ("similarity", ColumnType::Real),
    ("kind", ColumnType::Text),
    ("component", ColumnType::Text),
];

const PAIRS: [(&str, ColumnType); 8] = [
    ("left", ColumnType::Text),
    ("right", ColumnType::Text),
    ("similarity", ColumnType::Real),
    ("left_in_right", ColumnType::Real),
    ("right_in_left", ColumnType::Real),
    ("score", ColumnType::Real),
    ("estimate", ColumnType::Real),
    ("same_site?", ColumnType::Truth),
];

const AGAINST: [(&str, ColumnType); 4] = [
    ("id", ColumnType::Text),
    ("against_id", ColumnType::Text),
    ("similarity", ColumnType::Real),
    ("kind", ColumnType::Text),
];

/// Pages between two signs of life.
const PROGRESS_PAGES: usize = 4096;

/// Writes `pages`.
pub(super) fn write_pages(findings: &Findings<'_>, directory: &Path, jsonl: bool) -> Result<()> {
    let pages = findings.pages;
    let mut table = TableWriter::create(directory, "pages", &PAGES, jsonl)?;
    let (mut own, mut other, mut third) = (Scratch::default(), Scratch::default(), Scratch::default());
    for (page, &first) in (0u32..).zip(&findings.sets.first).filter(|(page, _)| pages.is_page(*page)) {
        let strings = pages.strings(page, &mut own)?;
        let place = pages.place(page);
        table.push(&[
            Cell::Text(Some(strings.id)),
            Cell::Text(Some(&findings.reading.sources[place.source as usize].display)),
            Cell::Whole(Some(place.record)),
            Cell::Whole(place.offset),
            Cell::Whole(Some(place.length)),
            Cell::Text(strings.url),
            Cell::Text(strings.title),
            Cell::Whole(Some(u64::from(pages.tokens[page as usize]))),
            Cell::Text(Some(pages.strings(first, &mut other)?.id)),
            Cell::Text(match pages.original(page) {
                Some(original) => Some(pages.strings(original, &mut third)?.id),
                None => None,
            }),
        ])?;
    }
    table.finish()
}

/// Writes `clusters`.
pub(super) fn write_clusters(
    findings: &Findings<'_>,
    directory: &Path,
    jsonl: bool,
    observer: &dyn Observer,
) -> Result<()> {
    let pages = findings.pages;
    let mut table = TableWriter::create(directory, "clusters", &CLUSTERS, jsonl)?;
    let (mut own, mut other, mut third) = (Scratch::default(), Scratch::default(), Scratch::default());
    for (page, fate) in (0u32..).zip(findings.fates).filter(|(page, _)| pages.is_page(*page)) {
        let at = page as usize;
        let kept = pages.strings(fate.kept, &mut other)?.id;
        table.push(&[
            Cell::Text(Some(pages.strings(page, &mut own)?.id)),
            Cell::Text(Some(kept)),
            Cell::Truth(Some(fate.keeps(page))),
            Cell::Text(Some(kept)),
            Cell::Real(Some(fate.similarity)),
            Cell::Text(Some(fate.kind.name())),
            Cell::Text(Some(pages.strings(findings.component[at], &mut third)?.id)),
        ])?;
        if at.is_multiple_of(PROGRESS_PAGES) && at > 0 {
            observer.advance(PROGRESS_PAGES as u64, PROGRESS_PAGES as u64);
        }
    }
    table.finish()
}

/// Writes `against`: what was dropped because another corpus has it, with both ids.
pub(super) fn write_against(findings: &Findings<'_>, directory: &Path, jsonl: bool) -> Result<()> {
    let Some((_, names)) = findings.against else { return Ok(()) };
    let mut table = TableWriter::create(directory, "against", &AGAINST, jsonl)?;
    let mut room = Scratch::default();
    for (page, fate) in (0u32..).zip(findings.fates).filter(|(page, fate)| !fate.keeps(*page)) {
        if let Some(theirs) = names.get(&fate.kept).filter(|_| !names.contains_key(&page)) {
            table.push(&[
                Cell::Text(Some(findings.pages.strings(page, &mut room)?.id)),
                Cell::Text(Some(theirs)),
                Cell::Real(Some(fate.similarity)),
                Cell::Text(Some(fate.kind.name())),
            ])?;
        }
    }
    table.finish()
}

/// Writes a table of pairs.
pub(super) fn write_pairs(
    pairs: &[ScoredPair],
    findings: &Findings<'_>,
    directory: &Path,
    name: &str,
    jsonl: bool,
) -> Result<()> {
    let (pages, site_rule) = (findings.pages, findings.config.site);
    let mut table = TableWriter::create(directory, name, &PAIRS, jsonl)?;
    let (mut left_room, mut right_room) = (Scratch::default(), Scratch::default());
    for pair in pairs {
        let left = pages.strings(pair.left, &mut left_room)?;
        let right = pages.strings(pair.right, &mut right_room)?;
        let site = |url: Option<&str>| url.and_then(|url| site_rule.site(url));
        let sites = (site(left.url), site(right.url));
        table.push(&[
            Cell::Text(Some(left.id)),
            Cell::Text(Some(right.id)),
            Cell::Real(Some(pair.similarity)),
            Cell::Real(Some(pair.left_in_right)),
            Cell::Real(Some(pair.right_in_left)),
            Cell::Real(Some(pair.score)),
            Cell::Real(Some(pair.estimate)),
            Cell::Truth(sites.0.zip(sites.1).map(|(left, right)| left == right)),
        ])?;
    }
    table.finish()
}
