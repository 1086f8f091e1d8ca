//! `summary.json`: counts, config and its hash, what was skipped and capped. Nothing in it varies between runs of
//! the same job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cluster::decided::DecisionReport;
use crate::config::Config;
use crate::error::{Result, SkippedRecord};
use crate::page::{Kind, PageId, PageOrigin, SourceId};
use crate::plan::Plan;
use crate::plan::layout::Layout;
use crate::read::{Format, Source};
use crate::report::{Findings, OutputOptions};
use crate::sketch::page_sets::PageSets;
use crate::sketch::supershingle::Bands;

/// The version of a result's layout: 2 since the config is in parts.
pub const FORMAT_VERSION: u32 = 2;

/// Capped buckets and large clusters that are listed; the rest is counted.
const LISTED: usize = 20;

/// Pages that have something in the field that pages are ranked by, but neither a date nor a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadRanks {
    /// How many there are.
    pub pages: u64,
    /// What the first of them has there.
    pub first: String,
}

impl UnreadRanks {
    /// Of what is there, so much is shown.
    pub(crate) const MOST_CHARS: usize = 80;
}

/// The whole summary.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The version that wrote it; also marks a directory as ours.
    pub lookalike: String,
    /// The version of the files' layout.
    pub format_version: u32,
    /// Hash of the config, 16 hexadecimal digits.
    pub config_hash: String,
    /// The config.
    pub config: Config,
    /// If the clusters were made again from stored pairs: the threshold that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclustered_at: Option<f64>,
    /// The thresholds that were asked for then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclustered: Option<Thresholds>,
    /// What became of a person's decisions about groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions: Option<DecisionReport>,
    /// What was written besides the tables, if anything unusual was asked for.
    #[serde(skip_serializing_if = "OutputOptions::is_default")]
    pub outputs: OutputOptions,
    /// Files that were read.
    pub sources: u64,
    /// Their size on disk.
    pub source_bytes: u64,
    /// Files that hold many pages each, and what was found in them.
    pub files: Vec<SourceFile>,
    /// Files in directories that are clearly not pages.
    pub ignored_files: u64,
    /// Results of earlier runs in the directories that were named; they were not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results_not_read: Vec<String>,
    /// Records of web archives that are not pages, by what they are.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub other_records: BTreeMap<String, u64>,
    /// Pages of HTML by the part of them that was compared: `main`, `core`, or all of the `page` where
    /// those were not found.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub compared: BTreeMap<String, u64>,
    /// Pages that are revisits of others, and counted among `pages`.
    #[serde(skip_serializing_if = "is_zero")]
    pub revisits: u64,
    /// Pages.
    pub pages: u64,
    /// Pages that were kept.
    pub kept: u64,
    /// Pages that were dropped.
    pub dropped: u64,
    /// Pages by what became of them.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Different token sequences (every empty page counts).
    pub identity_sets: u64,
    /// Pages whose date, or number, for the keep policy could not be read: they come behind all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread_ranks: Option<UnreadRanks>,
    /// Pages that got another id because theirs was taken.
    pub repeated_ids: u64,
    /// Files with the examples that matching started from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<String>,
    /// Pages in them; they are not counted in `pages`, `kept`, `dropped` and `kinds`.
    #[serde(skip_serializing_if = "is_zero")]
    pub seed_pages: u64,
    /// The other corpus, and how many pages were dropped because it has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<AgainstReport>,
    /// Bands and rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bands: Option<Bands>,
    /// Why they are what they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// The same of the bands that stories have beside them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub story_layout: Option<Layout>,
    /// How bits were searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<TableReport>,
    /// What the size filter saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_filter: Option<SizeFilterReport>,
    /// What is expected of the Bloom filters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<FilterReport>,
    /// Antecedents that were chosen from the corpus.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub antecedents: Vec<String>,
    /// Pairs that were worth comparing.
    pub candidate_pairs: u64,
    /// Pages in those pairs or in crowded buckets.
    pub candidate_pages: u64,
    /// Pairs that were compared exactly.
    pub compared_pairs: u64,
    /// Pairs that were accepted.
    pub pairs: u64,
    /// Pairs that were close.
    pub near_misses: u64,
    /// Groups of two pages or more.
    pub clusters: u64,
    /// Pages of the largest group.
    pub largest_cluster: u64,
    /// Crowded buckets, in total.
    pub capped_buckets: u64,
    /// The largest of them.
    pub capped: Vec<Capped>,
    /// Groups that are suspiciously large.
    pub large_clusters: Vec<LargeCluster>,
    /// Skipped records by kind.
    pub skipped: BTreeMap<&'static str, u64>,
    /// The first of each kind.
    pub skipped_examples: Vec<SkippedRecord>,
}

/// Stricter thresholds for a result; what is not given follows from what is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Thresholds {
    /// The similarity from which pairs count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// The same for two stories on one site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_site: Option<f64>,
    /// The same for two stories on different sites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between_sites: Option<f64>,
}

impl From<f64> for Thresholds {
    fn from(threshold: f64) -> Thresholds {
        Thresholds { threshold: Some(threshold), ..Thresholds::default() }
    }
}

/// Tables of bits.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct TableReport {
    /// How many.
    pub tables: usize,
    /// No pair that differs in at most so many bits was missed; none where buckets were capped.
    pub exact_to_distance: Option<u32>,
}

/// What the size filter saved.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct SizeFilterReport {
    /// Times that two pages met at a feature.
    pub collisions: u64,
    /// Those that were skipped because the sizes of the pages differ too much.
    #[serde(alias = "passed_over")] // as 0.1.0 wrote it
    pub filtered: u64,
}

/// What is expected of Bloom filters of this size on these pages.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct FilterReport {
    /// Bits of a filter.
    pub bits: u32,
    /// Bits that a chunk sets.
    pub hashes: u32,
    /// Chunks of a page, on average.
    #[serde(alias = "chunks_a_page")] // as 0.1.0 wrote it
    pub chunks_per_page: f64,
    /// Share of its bits that a page is expected to have in common with an unrelated page.
    pub chance_level: f64,
    /// Share of its bits that belong to chunks wrongly inferred to be in an unrelated page.
    pub false_match_ratio: f64,
    /// Pages whose filter is more than half full: their bits say little.
    pub crowded_filters: u64,
}

impl FilterReport {
    /// For these pages; none where there are no filters.
    pub(crate) fn new(plan: &Plan, sets: Option<&PageSets>) -> Option<FilterReport> {
        let (filter, sets) = (plan.sketch.filter?, sets?);
        let pages = sets.len().max(1) as f64;
        let mean = |of: &dyn Fn(f64) -> f64| sets.feature_counts().map(|count| of(count as f64)).sum::<f64>() / pages;
        Some(FilterReport {
            bits: filter.bits,
            hashes: filter.hashes,
            chunks_per_page: mean(&|count| count),
            chance_level: mean(&|count| filter.fill(count)),
            false_match_ratio: mean(&|count| filter.false_match_ratio(count)),
            crowded_filters: sets.feature_counts().filter(|&count| filter.fill(count as f64) > 0.5).count() as u64,
        })
    }
}

/// What another corpus has.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgainstReport {
    /// The result or index.
    pub path: String,
    /// Pages that were dropped because it has them.
    pub dropped: u64,
}

/// A file that holds many pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SourceFile {
    /// Its path, as in `pages.parquet`.
    pub source: String,
    /// Its name in `kept/`.
    pub name: String,
    /// Its format.
    pub format: Format,
    /// Its size on disk.
    pub bytes: u64,
    /// Pages in it.
    pub pages: u64,
}

/// A bucket that was too crowded to be spelled out as pairs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Capped {
    /// The band it was found in.
    pub band: usize,
    /// Members.
    pub size: usize,
    /// Members that stand for the others in it.
    pub leaders: usize,
    /// Two of its members.
    pub example: [String; 2],
}

/// A group worth a look.
#[derive(Debug, Clone, Serialize)]
pub struct LargeCluster {
    /// The kept page.
    pub cluster: String,
    /// Pages.
    pub size: u64,
    /// The page least similar to the kept one.
    pub weakest: String,
    /// That similarity.
    pub weakest_similarity: f64,
}

impl Summary {
    /// Counts everything.
    pub(super) fn new(findings: &Findings<'_>, outputs: OutputOptions) -> Result<Summary> {
        let pages = findings.pages;
        let mut kinds: BTreeMap<&'static str, u64> = Kind::ALL.iter().map(|kind| (kind.name(), 0)).collect();
        let of_input = || findings.fates.by_page().filter(|(page, _)| pages.is_input(*page));
        for (_, fate) in of_input().filter(|(page, _)| pages.is_page(*page)) {
            *kinds.entry(fate.kind.name()).or_default() += 1;
        }
        let total = kinds.values().sum();
        let seed_pages = pages.page_count() - total;
        let dropped = kinds["exact"] + kinds["same_core"] + kinds["near"] + kinds["contained"];
        let sizes = findings.cluster_sizes();
        let mut capped = findings.earlier.as_ref().map_or_else(Vec::new, |earlier| earlier.capped.clone());
        for bucket in findings.verified.capped.iter().take(LISTED) {
            let example = [pages.id(bucket.example.0)?, pages.id(bucket.example.1)?];
            capped.push(Capped { band: bucket.band, size: bucket.size, leaders: bucket.leaders, example });
        }
        Ok(Summary {
            lookalike: env!("CARGO_PKG_VERSION").to_owned(),
            format_version: FORMAT_VERSION,
            config_hash: format!("{:016x}", findings.config.hash()),
            config: findings.config.clone(),
            reclustered_at: findings.earlier.as_ref().map(|earlier| earlier.threshold),
            reclustered: findings.earlier.as_ref().map(|earlier| earlier.asked),
            decisions: findings.earlier.as_ref().and_then(|earlier| earlier.decisions),
            outputs,
            sources: findings.source_count,
            source_bytes: findings.source_bytes,
            files: findings.earlier.as_ref().map_or_else(|| source_files(findings), |earlier| earlier.files.clone()),
            ignored_files: findings.ignored_files,
            results_not_read: findings.results_not_read.to_vec(),
            other_records: findings.other_records.clone(),
            compared: findings.scopes.clone(),
            revisits: pages.revisits().filter(|(_, original)| original.is_some()).count() as u64,
            pages: total,
            kept: total - dropped,
            dropped,
            kinds,
            identity_sets: findings.sets.count as u64 - (pages.len() as u64 - pages.page_count()),
            unread_ranks: findings.unread_ranks.cloned(),
            repeated_ids: findings.repeated_ids,
            against: findings.against.map(|(path, names)| AgainstReport {
                path: path.to_string_lossy().into_owned(),
                dropped: of_input()
                    .filter(|(page, fate)| pages.is_page(*page) && names.contains_key(&fate.kept))
                    .count() as u64,
            }),
            seeds: seeds(findings),
            seed_pages,
            bands: findings.plan.sketch.bands(),
            layout: findings.plan.layout,
            story_layout: findings.plan.story_layout,
            tables: findings.earlier.as_ref().map_or_else(
                || {
                    findings.tables.map(|(tables, distance)| TableReport {
                        tables,
                        exact_to_distance: findings.verified.capped.is_empty().then_some(distance),
                    })
                },
                |earlier| earlier.tables,
            ),
            size_filter: findings.earlier.as_ref().map_or_else(
                || findings.collisions.map(|met| SizeFilterReport { collisions: met.all, filtered: met.filtered }),
                |earlier| earlier.size_filter,
            ),
            filters: findings.filters,
            antecedents: antecedents(findings),
            candidate_pairs: findings.candidates,
            candidate_pages: findings.candidate_pages,
            compared_pairs: findings.verified.compared,
            pairs: findings.verified.pairs.len() as u64,
            near_misses: findings.verified.near_misses.len() as u64,
            clusters: sizes.len() as u64,
            largest_cluster: sizes.first().map_or(0, |row| row.1),
            capped_buckets: findings.earlier.as_ref().map_or(0, |earlier| earlier.capped_buckets)
                + findings.verified.capped.len() as u64,
            capped,
            large_clusters: large_clusters(findings, &sizes)?,
            skipped: findings.skipped.counts.iter().map(|(kind, count)| (kind.name(), *count)).collect(),
            skipped_examples: findings.skipped.examples.clone(),
        })
    }
}

fn antecedents(findings: &Findings<'_>) -> Vec<String> {
    match (&findings.earlier, &findings.plan.corpus) {
        (Some(earlier), _) => earlier.antecedents.clone(),
        (None, Some(corpus)) => corpus.antecedents.iter().map(ToString::to_string).collect(),
        (None, None) => Vec::new(),
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as the serialiser calls it
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn seeds(findings: &Findings<'_>) -> Vec<String> {
    let others = findings.reading.sources.iter().filter(|source| source.origin != PageOrigin::Input);
    others.map(|source| source.display.clone()).collect()
}

fn source_files(findings: &Findings<'_>) -> Vec<SourceFile> {
    let sources = findings.reading.sources.iter().enumerate().filter(|(_, source)| !source.format.is_page_file());
    let describe = |(index, source): (usize, &Source)| SourceFile {
        source: source.display.clone(),
        name: source.name.clone(),
        format: source.format,
        bytes: source.bytes,
        pages: findings.pages.pages_of(SourceId::from_index(index)).filter(|&page| findings.pages.is_page(page)).count()
            as u64,
    };
    sources.map(describe).collect()
}

/// Whether a group of `size` among `pages` is large enough to be worth a look: a thousand
/// pages, or a twentieth of the corpus and at least twenty.
fn is_suspicious(size: u64, pages: u64) -> bool {
    size >= 1000 || (size >= 20 && size * 20 >= pages)
}

fn large_clusters(findings: &Findings<'_>, sizes: &[(PageId, u64)]) -> Result<Vec<LargeCluster>> {
    let total = findings.pages.len() as u64;
    let suspicious = sizes.iter().take_while(|row| is_suspicious(row.1, total)).take(LISTED);
    let mut found = Vec::new();
    for &(kept, size) in suspicious {
        let members = findings.fates.by_page().filter(|(page, fate)| fate.kept == kept && *page != kept);
        let weakest = members.min_by(|a, b| a.1.similarity.total_cmp(&b.1.similarity).then(a.0.cmp(&b.0)));
        if let Some((weakest, fate)) = weakest {
            found.push(LargeCluster {
                cluster: findings.pages.id(kept)?,
                size,
                weakest: findings.pages.id(weakest)?,
                weakest_similarity: fate.similarity,
            });
        }
    }
    Ok(found)
}
