//! `report.html`: the result for people, in one file.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::path::Path;

use askama::Template;

use crate::config::ClusterMode;
use crate::error::Result;
use crate::names::Named;
use crate::page::{PageId, RawPage, ScoredPair};
use crate::plan::Decision;
use crate::report::diff::differences::classify;
use crate::report::diff::{self, Piece};
use crate::report::numbers::{counted, percent, thousands};
use crate::report::plots;
use crate::report::sinks::{Sink, SinkContext};
use crate::report::summary::Summary;
use crate::report::{Findings, files, render};
use crate::size::format_bytes;
use crate::spill::Scratch;
use crate::text::{BlockPart, PageReader, Scope};

/// Clusters that are shown, and members of each.
const SHOWN_CLUSTERS: usize = 12;
const SHOWN_MEMBERS: usize = 8;
/// Pairs that are shown on each side of the threshold.
const SHOWN_PAIRS: usize = 3;
/// Text of a page that is kept for showing.
const TEXT_BYTES: usize = 40_000;
/// Words that stand for a page without a title.
const SNIPPET_WORDS: usize = 14;
const SNIPPET_CHARS: usize = 90;

#[derive(Template)]
#[template(path = "report.html")]
struct ReportTemplate<'a> {
    summary: &'a Summary,
    /// "3 of 10 pages are duplicates".
    headline: String,
    method: &'static str,
    rule: String,
    keep: String,
    grouping: &'static str,
    cards: Vec<Card>,
    stages: String,
    sizes: String,
    similarities: String,
    curve: String,
    curve_note: String,
    more: Vec<String>,
    clusters: Vec<ClusterView>,
    more_clusters: u64,
    above: Vec<PairView>,
    below: Vec<PairView>,
    source_bytes: String,
}

struct Card {
    number: String,
    label: &'static str,
    note: String,
}

struct ClusterView {
    size: String,
    kept: PageView,
    members: Vec<MemberView>,
    more: u64,
    weakest: String,
}

struct MemberView {
    page: PageView,
    similarity: String,
    page_similarity: String,
    kind: &'static str,
}

struct PageView {
    id: String,
    name: String,
    url: Option<String>,
}

struct PairView {
    left: PageView,
    right: PageView,
    similarity: String,
    page_similarity: String,
    left_out: String,
    score: String,
    estimate: String,
    left_in_right: String,
    right_in_left: String,
    difference: String,
    pieces: Vec<Piece>,
}

pub(super) struct ReportPage;

impl Sink for ReportPage {
    fn files(&self) -> &'static [&'static str] {
        &[files::REPORT]
    }

    fn write(&self, findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
        render::write(&directory.join(files::REPORT), html(findings, context.summary)?)
    }
}

fn html(findings: &Findings<'_>, summary: &Summary) -> Result<String> {
    let sizes = findings.cluster_sizes();
    let shown: Vec<(PageId, u64)> = sizes.iter().take(SHOWN_CLUSTERS).copied().collect();
    let members = members_of(findings, &shown);
    let (above, below) = pairs_at_the_threshold(findings);
    let mut needed: BTreeSet<PageId> = members.iter().flatten().copied().collect();
    needed.extend(shown.iter().map(|row| row.0));
    needed.extend(above.iter().chain(&below).flat_map(|pair| [pair.left, pair.right]));
    let paired: BTreeSet<PageId> = above.iter().chain(&below).flat_map(|pair| [pair.left, pair.right]).collect();
    let (texts, raw) = texts(findings, &needed.into_iter().collect::<Vec<_>>(), &paired)?;
    let viewer = Viewer { findings, texts, raw };

    let mut clusters = Vec::new();
    for ((kept, size), members) in shown.iter().zip(&members) {
        clusters.push(viewer.cluster(*kept, *size, members)?);
    }
    let threshold = findings.threshold();
    let curve = findings.plan.curve(threshold.unwrap_or(1.0));
    let report = ReportTemplate {
        summary,
        headline: headline(summary),
        method: method_name(findings),
        rule: findings.earlier.as_ref().map_or_else(|| findings.config.rule(), |earlier| earlier.rule.clone()),
        keep: findings.config.groups.keep.in_words(),
        grouping: match findings.config.groups.cluster {
            ClusterMode::Star => {
                "stars: every dropped page is a verified near-duplicate of the page that is kept in its place"
            }
            ClusterMode::Components => "connected components: a chain of verified pairs is one group",
        },
        cards: cards(summary),
        stages: plots::stages(&stage_rows(summary)),
        sizes: plots::cluster_sizes(&sizes.iter().map(|row| row.1).collect::<Vec<_>>()),
        similarities: plots::similarities(
            &similarities(&findings.verified.pairs),
            &similarities(&findings.verified.near_misses),
            threshold,
            findings.plan.similarity_name(),
        ),
        curve: curve.as_ref().map_or_else(String::new, |curve| {
            plots::s_curve(&curve.chance, threshold, findings.plan.similarity_name())
        }),
        curve_note: curve.map_or_else(String::new, |curve| curve.note),
        more: more(summary),
        more_clusters: (sizes.len() - shown.len()) as u64,
        clusters,
        above: above.iter().map(|pair| viewer.pair(pair)).collect::<Result<_>>()?,
        below: below.iter().map(|pair| viewer.pair(pair)).collect::<Result<_>>()?,
        source_bytes: format_bytes(summary.source_bytes),
    };
    render::html(&report)
}

impl Findings<'_> {
    /// The similarity that decides, where one does.
    fn threshold(&self) -> Option<f64> {
        let earlier = self.earlier.as_ref().map(|earlier| earlier.threshold);
        match self.plan.decision {
            Decision::Similarity { threshold, .. } => Some(earlier.unwrap_or(threshold)),
            Decision::Stories { text, between, within, .. } => {
                let has_stories = self.scopes.contains_key(Scope::Story.name());
                Some(earlier.unwrap_or(if has_stories { between.min(within) } else { text }))
            }
            _ => earlier,
        }
    }
}

fn headline(summary: &Summary) -> String {
    let verb = if summary.dropped == 1 { "is a duplicate" } else { "are duplicates" };
    format!("{} of {} {verb}", thousands(summary.dropped), counted(summary.pages, "page"))
}

fn method_name(findings: &Findings<'_>) -> &'static str {
    if findings.config.pairs.exact_only { "exact copies only" } else { findings.config.method.name() }
}

/// Sentences about what only some methods and inputs have.
fn more(summary: &Summary) -> Vec<String> {
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

fn cards(summary: &Summary) -> Vec<Card> {
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

fn stage_rows(summary: &Summary) -> Vec<(&'static str, u64)> {
    vec![
        ("pages read", summary.pages),
        ("different pages", summary.identity_sets),
        ("pages in candidate pairs", summary.candidate_pages),
        ("pairs compared exactly", summary.compared_pairs),
        ("pairs accepted", summary.pairs),
        ("pages kept", summary.kept),
    ]
}

fn similarities(pairs: &[ScoredPair]) -> Vec<f64> {
    pairs.iter().map(|pair| pair.similarity).collect()
}

/// The first members of each cluster, least similar first: these are the ones worth a look.
fn members_of(findings: &Findings<'_>, clusters: &[(PageId, u64)]) -> Vec<Vec<PageId>> {
    let place: HashMap<PageId, usize> = clusters.iter().enumerate().map(|(at, row)| (row.0, at)).collect();
    let mut members = vec![Vec::new(); clusters.len()];
    for (page, fate) in findings.fates.by_page() {
        if let Some(&at) = place.get(&fate.kept).filter(|_| !fate.keeps(page)) {
            members[at].push(page);
        }
    }
    let similarity = |page: PageId| findings.fates[page].similarity;
    for group in &mut members {
        group.sort_by(|&a, &b| similarity(a).total_cmp(&similarity(b)).then(a.cmp(&b)));
        group.truncate(SHOWN_MEMBERS);
    }
    members
}

/// The pairs closest to the threshold, on either side.
fn pairs_at_the_threshold(findings: &Findings<'_>) -> (Vec<ScoredPair>, Vec<ScoredPair>) {
    let is_larger_nearer = findings.plan.decision.larger_is_nearer();
    let order = |a: &ScoredPair, b: &ScoredPair| {
        let by_score = a.score.total_cmp(&b.score);
        (if is_larger_nearer { by_score } else { by_score.reverse() })
            .then(a.similarity.total_cmp(&b.similarity))
            .then((a.left, a.right).cmp(&(b.left, b.right)))
    };
    let mut above = findings.verified.pairs.clone();
    above.sort_by(order);
    above.truncate(SHOWN_PAIRS);
    let mut below = findings.verified.near_misses.clone();
    below.sort_by(|a, b| order(b, a));
    below.truncate(SHOWN_PAIRS);
    (above, below)
}

/// The texts of `pages`, which are ascending, cut to what is shown; those in `paired` also unchanged.
fn texts(findings: &Findings<'_>, pages: &[PageId], paired: &BTreeSet<PageId>) -> Result<Shown> {
    let wanted = findings.pages.wanted(pages);
    let frames = findings.plan.corpus.as_ref().and_then(|corpus| corpus.frames.clone());
    let (mut texts, mut whole) = (HashMap::new(), HashMap::new());
    findings.reading.scan().for_each_of(
        &wanted,
        || PageReader::new(findings.plan.text).without(frames.clone()),
        |reader, page, raw| {
            let mut text = ShownText::default();
            for block in reader.parts(&raw) {
                if block.part == BlockPart::Compared {
                    text.compared.push_str(&block.text);
                    text.compared.push('\n');
                } else {
                    text.left_out += block.text.split_whitespace().count();
                }
            }
            text.compared.truncate(text.compared.floor_char_boundary(TEXT_BYTES));
            Ok(Some((page, text, paired.contains(&page).then(|| raw.into_owned()))))
        },
        |(page, text, raw)| {
            texts.insert(page, text);
            whole.extend(raw.map(|raw| (page, raw)));
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok((texts, whole))
}

/// The first words of a page without a title.
fn snippet(text: &str) -> String {
    let words = text.split_whitespace().take(SNIPPET_WORDS).collect::<Vec<_>>().join(" ");
    words.chars().take(SNIPPET_CHARS).chain(" …".chars()).collect()
}

/// The text of a page, as far as it is compared, and how many words are not.
#[derive(Default)]
struct ShownText {
    compared: String,
    left_out: usize,
}

type Shown = (HashMap<PageId, ShownText>, HashMap<PageId, RawPage<'static>>);

struct Viewer<'a> {
    findings: &'a Findings<'a>,
    texts: HashMap<PageId, ShownText>,
    raw: HashMap<PageId, RawPage<'static>>,
}

impl Viewer<'_> {
    fn page(&self, page: PageId) -> Result<PageView> {
        let mut scratch = Scratch::default();
        let strings = self.findings.pages.strings(page, &mut scratch)?;
        let name = strings
            .title
            .map_or_else(|| self.texts.get(&page).map(|text| snippet(&text.compared)), |title| Some(title.to_owned()));
        Ok(PageView { id: strings.id.to_owned(), name: name.unwrap_or_default(), url: strings.url.map(str::to_owned) })
    }

    fn cluster(&self, kept: PageId, size: u64, members: &[PageId]) -> Result<ClusterView> {
        let views = members.iter().map(|&member| {
            let fate = &self.findings.fates[member];
            Ok(MemberView {
                page: self.page(member)?,
                similarity: format!("{:.3}", fate.similarity),
                page_similarity: fate.page_similarity.map_or_else(String::new, |of| format!("{of:.3}")),
                kind: fate.kind.name(),
            })
        });
        let weakest = members.first().map_or(1.0, |&member| self.findings.fates[member].similarity);
        Ok(ClusterView {
            size: thousands(size),
            kept: self.page(kept)?,
            members: views.collect::<Result<_>>()?,
            more: (size - 1).saturating_sub(members.len() as u64),
            weakest: format!("{weakest:.3}"),
        })
    }

    fn pair(&self, pair: &ScoredPair) -> Result<PairView> {
        // Pages of an index have no text.
        let text = |page: PageId| self.texts.get(&page).map_or("", |text| text.compared.as_str());
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        Ok(PairView {
            left: self.page(pair.left)?,
            right: self.page(pair.right)?,
            similarity: format!("{:.4}", pair.similarity),
            page_similarity: pair.page_similarity.map_or_else(String::new, |of| format!("{of:.4}")),
            left_out: match [pair.left, pair.right].map(|page| self.texts.get(&page).map_or(0, |text| text.left_out)) {
                [0, 0] => String::new(),
                [left, right] => format!("frame and menus left out: {left} and {right} words"),
            },
            score: match self.findings.plan.decision {
                Decision::Similarity { .. } | Decision::CommonBits { .. }
                    if self.findings.plan.sketch.filter.is_some() =>
                {
                    format!("share of common bits {:.3}", pair.score)
                }
                Decision::Similarity { .. } | Decision::Stories { .. } | Decision::CommonBits { .. } => String::new(),
                _ => format!("{} {}", pair.score, self.findings.config.method.unit().name()),
            },
            estimate: format!("{:.3}", pair.estimate),
            left_in_right: percent(pair.left_in_right),
            right_in_left: percent(pair.right_in_left),
            difference: match (self.raw.get(&pair.left), self.raw.get(&pair.right)) {
                (Some(left), Some(right)) => classify(left, right).label(),
                _ => String::new(),
            },
            pieces: diff::pieces(text(pair.left), text(pair.right)),
        })
    }
}
