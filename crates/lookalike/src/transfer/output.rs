//! Counterparts → judgments of the other corpus, the mapping, conflicts, and the report.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use askama::Template;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::report::plots::chart::{Scale, Series};
use crate::report::plots::figures::{Figure, figure};
use crate::report::table::{Cell, ColumnType, TableWriter};
use crate::report::{files, render};
use crate::transfer::contradictions::contradictions;
use crate::transfer::counterparts::{CounterpartSearch, Counterparts};
use crate::transfer::judged::JudgedPages;
use crate::transfer::ngrams::COUNT;
use crate::transfer::qrels::{self, Judgment};

use crate::transfer::{Counterpart, OnConflict, TransferOptions, Way};

/// What was carried over, in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The version that wrote it; also marks a directory as ours.
    pub lookalike: &'static str,
    /// Which judgments, corpora and settings it was made with, as a number.
    pub job: String,
    /// Judgments that were given.
    pub judgments: u64,
    /// Pages that they are about.
    pub judged_pages: u64,
    /// Those of them that the first corpus has.
    pub judged_pages_found: u64,
    /// Records of both that could not be used.
    pub skipped: u64,
    /// Pages of the first corpus.
    pub from_pages: u64,
    /// Pages of the second.
    pub to_pages: u64,
    /// Judged pages whose URL the second corpus has.
    pub with_url: u64,
    /// Those whose page under that URL is a near-duplicate.
    pub with_url_near: u64,
    /// Judged pages found by their content under another URL only.
    pub by_content_only: u64,
    /// Judged pages with a near-duplicate, under whatever URL.
    pub near: u64,
    /// Judged pages with a counterpart whose judgment was carried over.
    pub carried_pages: u64,
    /// Judgments of pages of the second corpus.
    pub carried_judgments: u64,
    /// Pages that judgments disagreed about.
    pub conflicts: u64,
    /// What was done about them.
    pub conflict_rule: &'static str,
    /// Pairs of judged pages with different grades for a topic that are near-duplicates, or were carried to the same page.
    pub contradictions: u64,
    /// Pages of the second corpus whose URL the first has, too.
    pub shared_urls: u64,
    /// What those are counted by: `host` or `registrable`.
    pub domains: String,
    /// The domains with most of them.
    pub shared_sites: Vec<(String, u64)>,
    /// By length of word n-grams; empty where only fingerprints were at hand.
    pub ngrams: Vec<NgramRow>,
}

/// Whether a directory holds a result that was made with other judgments, corpora or settings.
pub(super) fn is_of_other_job(directory: &Path, job: &str) -> bool {
    let summary = std::fs::read(directory.join(files::SUMMARY)).unwrap_or_default();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap_or_default();
    files::is_result(directory) && summary["job"] != job
}

/// What n-grams of one length find.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct NgramRow {
    /// Words in an n-gram.
    pub ngram: usize,
    /// By near SimHash fingerprints.
    pub simhash: NgramFound,
    /// By the exact similarity of n-grams that MinHash estimates.
    pub minhash: NgramFound,
}

/// What one method finds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct NgramFound {
    /// Judged pages with a near-duplicate.
    pub pages: u64,
    /// Those without a page under their own URL.
    pub by_content_only: u64,
    /// Of the judged pages whose URL the second corpus has, the share whose page there is near.
    pub share_of_urls: f64,
    /// Of all pairs it finds, the share whose word 5-grams are similar, too.
    pub verified: f64,
}

/// Judgments that disagree about a page.
#[derive(Debug, Clone, Serialize)]
pub struct Conflict {
    /// The topic.
    pub topic: String,
    /// The page of the second corpus.
    pub to_id: String,
    /// The grade it gets.
    pub grade: i64,
    /// The judged pages, with grade, way and similarity.
    pub from: Vec<Claim>,
}

/// A judgment that a page could get.
#[derive(Debug, Clone, Serialize)]
pub struct Claim {
    /// The judged page.
    pub from_id: String,
    /// Its grade.
    pub grade: i64,
    /// How the page was found.
    pub way: &'static str,
    /// How similar it is.
    pub similarity: Option<f64>,
    #[serde(skip)]
    distance: Option<u32>,
    #[serde(skip)]
    iteration: String,
}

const MAPPING: [(&str, ColumnType); 8] = [
    ("from_id", ColumnType::Text),
    ("to_id", ColumnType::Text),
    ("way", ColumnType::Text),
    ("distance?", ColumnType::Whole),
    ("similarity?", ColumnType::Real),
    ("carried", ColumnType::Truth),
    ("from_url?", ColumnType::Text),
    ("to_url?", ColumnType::Text),
];

/// The files of the result, in the order in which they are put into place; the last one makes it complete.
pub(super) const FILES: [&str; 6] =
    [files::QRELS, files::MAPPING.parquet, files::CONFLICTS, files::CONTRADICTIONS, files::REPORT, files::SUMMARY];

/// Domains that are listed.
const LISTED: usize = 20;

impl OnConflict {
    fn rule(self) -> &'static str {
        match self {
            OnConflict::Nearest => "the judgment of the most similar page counts; of equally similar ones the highest",
            OnConflict::Highest => "the highest grade counts",
            OnConflict::Lowest => "the lowest grade counts",
        }
    }

    fn choose(self, claims: &[Claim]) -> Option<&Claim> {
        // Without texts, the distance says how near; under the same URL alone, nothing does.
        let nearness = |claim: &Claim| {
            let by_distance = claim.distance.map_or(-1.0, |distance| 1.0 - f64::from(distance) / 64.0);
            claim.similarity.unwrap_or(by_distance)
        };
        match self {
            OnConflict::Nearest => {
                claims.iter().max_by(|a, b| nearness(a).total_cmp(&nearness(b)).then(a.grade.cmp(&b.grade)))
            }
            OnConflict::Highest => claims.iter().max_by_key(|claim| claim.grade),
            OnConflict::Lowest => claims.iter().min_by_key(|claim| claim.grade),
        }
    }
}

/// Writes everything into `directory`.
pub(super) fn write(
    judgments: &[Judgment],
    search: &CounterpartSearch<'_>,
    found: &Counterparts,
    options: &TransferOptions,
    directory: &Path,
) -> Result<Report> {
    let judged = search.judged;
    let mut counterparts: Vec<&Counterpart> = found.rows.iter().filter(|row| row.way.is_some()).collect();
    counterparts.sort_by(|a, b| (a.judged, &a.id).cmp(&(b.judged, &b.id)));
    let nearest = nearest(&counterparts);
    // The page that is known by its URL and its content is the page; others that are like it are other pages.
    let verified: HashSet<u32> =
        counterparts.iter().filter(|row| row.way == Some(Way::Both)).map(|row| row.judged).collect();
    let is_carried = |row: &Counterpart| match row.way {
        None => false,
        Some(Way::Url) => !options.verified_only,
        Some(Way::Both) => true,
        Some(Way::Near) if options.all_near => true,
        Some(Way::Near) if verified.contains(&row.judged) => false,
        Some(Way::Near) => nearest.get(&row.judged).is_some_and(|best| nearness(row) >= *best),
    };
    write_mapping(&counterparts, judged, &is_carried, directory)?;

    let mut of_page: HashMap<u32, Vec<&Counterpart>> = HashMap::new();
    for row in counterparts.iter().filter(|row| is_carried(row)) {
        of_page.entry(row.judged).or_default().push(row);
    }
    // Topics stay in the order of the judgments.
    let mut topics: HashMap<&str, usize> = HashMap::new();
    for judgment in judgments {
        let next = topics.len();
        topics.entry(&judgment.topic).or_insert(next);
    }
    let mut claims: BTreeMap<(usize, &str, &str), Vec<Claim>> = BTreeMap::new();
    for judgment in judgments {
        let Some(number) = judged.number(&judgment.page) else { continue };
        for row in of_page.get(&number).into_iter().flatten() {
            let key = (topics[judgment.topic.as_str()], judgment.topic.as_str(), row.id.as_str());
            claims.entry(key).or_default().push(Claim {
                from_id: judgment.page.clone(),
                grade: judgment.grade,
                way: row.way.map_or("", Way::name),
                similarity: row.similarity,
                distance: row.distance,
                iteration: judgment.iteration.clone(),
            });
        }
    }
    let mut conflicts = Vec::new();
    let mut carried = Vec::new();
    for ((_, topic, page), claims) in &claims {
        let Some(chosen) = options.on_conflict.choose(claims) else { continue };
        carried.push((*topic, chosen.iteration.as_str(), *page, chosen.grade));
        if claims.iter().any(|claim| claim.grade != chosen.grade) {
            conflicts.push(Conflict {
                topic: (*topic).to_owned(),
                to_id: (*page).to_owned(),
                grade: chosen.grade,
                from: claims.clone(),
            });
        }
    }
    if let Some(row) = carried.iter().find(|row| row.2.contains(char::is_whitespace)) {
        let reason = format!(
            "the page '{}' of {} has a blank in its id, which judgments in TREC format cannot hold; rename it, or name a field with other ids with `id_field`",
            row.2,
            options.to.join(", ")
        );
        return Err(Error::conflict("to", reason));
    }
    qrels::write(&directory.join(files::QRELS), carried.iter().copied())?;
    let lines: String = conflicts.iter().map(render::json_line).collect::<Result<_>>()?;
    render::write(&directory.join(files::CONFLICTS), lines)?;
    let contradictions = contradictions(judgments, &conflicts, search);
    let lines: String = contradictions.iter().map(render::json_line).collect::<Result<_>>()?;
    render::write(&directory.join(files::CONTRADICTIONS), lines)?;

    let carried = (carried.len() as u64, of_page.len() as u64);
    let disagreements = (conflicts.len() as u64, contradictions.len() as u64);
    let report = report(judgments, judged, found, options, carried, disagreements);
    let examples = examples(judgments, judged, &counterparts, &is_carried);
    write_report(&report, examples, &conflicts, options, directory)?;
    Ok(report)
}

/// Counterparts that are shown of each sort, and conflicts.
const SHOWN: usize = 20;

/// A counterpart, as it is shown.
struct Example {
    /// The judged page: its id and URL.
    from: (String, Option<String>),
    to: (String, Option<String>),
    way: &'static str,
    similarity: String,
    judgments: String,
}

/// A title, a sentence and the counterparts that belong to it.
type Examples = Vec<(&'static str, &'static str, Vec<Example>)>;

/// Some of what was carried over, and of what was not.
fn examples(
    judgments: &[Judgment],
    judged: &JudgedPages,
    rows: &[&Counterpart],
    is_carried: &dyn Fn(&Counterpart) -> bool,
) -> Examples {
    let mut graded: HashMap<u32, Vec<String>> = HashMap::new();
    for judgment in judgments {
        if let Some(number) = judged.number(&judgment.page) {
            graded.entry(number).or_default().push(format!("topic {}: {}", judgment.topic, judgment.grade));
        }
    }
    let example = |row: &Counterpart| {
        let from = &judged.pages[row.judged as usize];
        Example {
            from: (from.id.clone(), from.url.clone()),
            to: (row.id.clone(), row.url.clone()),
            way: match row.way {
                Some(Way::Url) => "its URL",
                Some(Way::Both) => "its URL and its content",
                _ => "its content",
            },
            similarity: match (row.similarity, row.distance) {
                (Some(similarity), _) => format!("{similarity:.3}"),
                (None, Some(1)) => "1 differing bit".to_owned(),
                (None, Some(distance)) => format!("{distance} differing bits"),
                (None, None) => "–".to_owned(),
            },
            judgments: graded.get(&row.judged).map_or_else(String::new, |graded| graded.join(", ")),
        }
    };
    let some = |wanted: &dyn Fn(&Counterpart) -> bool| {
        let mut chosen: Vec<&Counterpart> = rows.iter().copied().filter(|row| wanted(row)).collect();
        // Those that are worth a look: the farthest.
        chosen.sort_by(|a, b| nearness(a).total_cmp(&nearness(b)));
        chosen.into_iter().take(SHOWN).map(example).collect::<Vec<_>>()
    };
    vec![
        (
            "Carried over by content",
            "The least similar of the near-duplicates that took over judgments.",
            some(&|row| is_carried(row) && row.way != Some(Way::Url)),
        ),
        (
            "Carried over by URL alone",
            "The pages have the same URL, and their texts are not near-duplicates: the judgments may not hold any more.",
            some(&|row| is_carried(row) && row.way == Some(Way::Url)),
        ),
        ("Found, but not carried over", "Counterparts that took over nothing.", some(&|row| !is_carried(row))),
    ]
}

/// How near a counterpart is: by its similarity, or by its distance where there are no texts.
fn nearness(row: &Counterpart) -> f64 {
    row.similarity.unwrap_or_else(|| row.distance.map_or(0.0, |distance| 1.0 - f64::from(distance) / 64.0))
}

/// For each judged page how near its nearest counterpart is.
fn nearest(rows: &[&Counterpart]) -> HashMap<u32, f64> {
    let mut nearest: HashMap<u32, f64> = HashMap::new();
    for row in rows.iter().filter(|row| row.way != Some(Way::Url)) {
        let best = nearest.entry(row.judged).or_insert(0.0);
        *best = best.max(nearness(row));
    }
    nearest
}

fn write_mapping(
    rows: &[&Counterpart],
    judged: &JudgedPages,
    is_carried: &dyn Fn(&Counterpart) -> bool,
    directory: &Path,
) -> Result<()> {
    let mut table = TableWriter::create(directory, files::MAPPING, &MAPPING, false)?;
    for row in rows {
        let from = &judged.pages[row.judged as usize];
        table.push(&[
            Cell::Text(Some(&from.id)),
            Cell::Text(Some(&row.id)),
            Cell::Text(row.way.map(Way::name)),
            Cell::Whole(row.distance.map(u64::from)),
            Cell::Real(row.similarity),
            Cell::Truth(Some(is_carried(row))),
            Cell::Text(from.url.as_deref()),
            Cell::Text(row.url.as_deref()),
        ])?;
    }
    table.finish()
}

fn report(
    judgments: &[Judgment],
    judged: &JudgedPages,
    found: &Counterparts,
    options: &TransferOptions,
    (carried_judgments, carried_pages): (u64, u64),
    (conflicts, contradictions): (u64, u64),
) -> Report {
    let pages = |wanted: &dyn Fn(&Counterpart) -> bool| -> BTreeSet<u32> {
        found.rows.iter().filter(|row| wanted(row)).map(|row| row.judged).collect()
    };
    let with_url = pages(&|row| matches!(row.way, Some(Way::Url | Way::Both)));
    let near = pages(&|row| matches!(row.way, Some(Way::Near | Way::Both)));
    let by_content_only = |found: &BTreeSet<u32>| found.difference(&with_url).count() as u64;
    let same_url_near = |test: &dyn Fn(&Counterpart) -> bool| {
        pages(&|row| matches!(row.way, Some(Way::Url | Way::Both)) && test(row)).len() as f64
            / with_url.len().max(1) as f64
    };
    let of = |test: &dyn Fn(&Counterpart) -> bool| {
        let hits = pages(test);
        let pairs = found.rows.iter().filter(|row| test(row));
        let verified = pairs.clone().filter(|row| row.similarity.is_some_and(|found| found >= options.threshold));
        NgramFound {
            pages: hits.len() as u64,
            by_content_only: by_content_only(&hits),
            share_of_urls: same_url_near(test),
            verified: verified.count() as f64 / pairs.count().max(1) as f64,
        }
    };
    let ngrams = (1..=COUNT).map(|ngram| NgramRow {
        ngram,
        simhash: of(&|row| row.near_fingerprints & (1 << (ngram - 1)) != 0),
        minhash: of(&|row| row.near_sets & (1 << (ngram - 1)) != 0),
    });
    let mut shared_sites: Vec<(String, u64)> = found.sites.iter().map(|(site, count)| (site.clone(), *count)).collect();
    shared_sites.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    shared_sites.truncate(LISTED);
    let judged_ids: BTreeSet<&str> = judgments.iter().map(|row| row.page.as_str()).collect();
    Report {
        job: options.job(judgments),
        lookalike: env!("CARGO_PKG_VERSION"),
        judgments: judgments.len() as u64,
        judged_pages: judged_ids.len() as u64,
        judged_pages_found: judged.pages.len() as u64,
        skipped: judged.counts.skipped + found.counts.skipped,
        from_pages: judged.counts.pages,
        to_pages: found.counts.pages,
        with_url: with_url.len() as u64,
        with_url_near: pages(&|row| row.way == Some(Way::Both)).len() as u64,
        by_content_only: by_content_only(&near),
        near: near.len() as u64,
        carried_pages,
        carried_judgments,
        conflicts,
        conflict_rule: options.on_conflict.rule(),
        contradictions,
        shared_urls: found.shared_urls,
        domains: options.domains.to_string(),
        shared_sites,
        ngrams: if found.has_texts { ngrams.collect() } else { Vec::new() },
    }
}

#[derive(Template)]
#[template(path = "transfer.html")]
struct Page<'a> {
    report: &'a Report,
    from: String,
    to: String,
    threshold: f64,
    examples: Examples,
    conflicts: &'a [Conflict],
    figures: Vec<Figure>,
    version: &'static str,
}

fn write_report(
    report: &Report,
    examples: Examples,
    conflicts: &[Conflict],
    options: &TransferOptions,
    directory: &Path,
) -> Result<()> {
    let line = |name: &str, of: &dyn Fn(&NgramRow) -> f64| {
        Series::line(name, report.ngrams.iter().map(|row| (row.ngram as f64, of(row))).collect())
    };
    let mut figures = Vec::new();
    if !report.ngrams.is_empty() {
        let x = ("words in an n-gram", Scale::Linear(1.0, 8.0));
        let most = report.ngrams.iter().flat_map(|row| [row.simhash.pages as f64, row.minhash.pages as f64]);
        figures.push(figure(
            "Judged pages with a near-duplicate, by n-gram length",
            "ClueWeb slides, search for judged pages (2) to (4): fewer are found as n-grams grow longer",
            "SimHash: fingerprints within the distance. MinHash: the exact similarity of n-grams that it estimates.",
            x,
            ("judged pages", Scale::from_zero(most)),
            &[line("SimHash", &|row| row.simhash.pages as f64), line("MinHash", &|row| row.minhash.pages as f64)],
        ));
        figures.push(figure(
            "Share of what is found that is verified, by n-gram length",
            "ClueWeb slides, search for judged pages (4): quality rises with the length of n-grams",
            "Verified: the exact similarity of word 5-grams (2-grams of pages under 40 words) reaches the threshold.",
            x,
            ("share of pairs", Scale::SHARE),
            &[line("SimHash", &|row| row.simhash.verified), line("MinHash", &|row| row.minhash.verified)],
        ));
    }
    let page = Page {
        report,
        from: options.from.join(", "),
        to: options.to.join(", "),
        threshold: options.threshold,
        examples,
        conflicts: &conflicts[..conflicts.len().min(SHOWN)],
        figures,
        version: env!("CARGO_PKG_VERSION"),
    };
    render::write(&directory.join(files::REPORT), render::html(&page)?)?;
    render::write(&directory.join(files::SUMMARY), render::json(report)?)
}
