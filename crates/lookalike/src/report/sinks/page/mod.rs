//! `report.html`: the result for people, in one file.
//!
//! Numbers and plots, the pairs next to the threshold, and a table of all clusters: an index of them is written into the file
//! (`cluster_index.rs`), with the differences of some pairs (`evidence.rs`), and the page's script shows what is asked for.

mod cluster_index;
mod evidence;
mod facts;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use askama::Template;

use crate::error::{Error, Result};
use crate::names::Named;
use crate::page::{PageId, PageOrigin, ScoredPair};
use crate::plan::Decision;
use crate::report::diff::differences::{FRAME_ONLY, classify};
use crate::report::diff::{self, Piece};
use crate::report::links::{path_link, relative_path, web_address};
use crate::report::numbers::thousands;
use crate::report::plots::{self, ThresholdMark};
use crate::report::sinks::{Sink, SinkContext};
use crate::report::summary::Summary;
use crate::report::{Findings, files, render};
use crate::size::format_bytes;
use crate::spill::Scratch;
use crate::text::Scope;
use cluster_index::{ClusterIndex, Clusters};
use evidence::{Evidence, ShownDiff};
use facts::Card;

/// Pairs that are shown on each side of the threshold.
const SHOWN_PAIRS: usize = 3;
/// Where the index of clusters goes.
const INDEX_PLACE: &str = "[the clusters]";

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
    page_stages: String,
    pair_stages: String,
    sizes: String,
    similarities: String,
    curve: String,
    curve_note: String,
    more: Vec<String>,
    clusters: usize,
    /// Clusters in the table, and members of each.
    listed: usize,
    members: usize,
    diffs: &'a [ShownDiff],
    above: Vec<PairView>,
    below: Vec<PairView>,
    source_bytes: String,
}

struct PageView {
    id: String,
    name: String,
    /// Where the original is.
    link: Option<String>,
    /// The address, or the file and the record.
    place: String,
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
        let clusters = Clusters::new(findings);
        let (above, below) = pairs_at_the_threshold(findings);
        let pairs: Vec<ScoredPair> = above.iter().chain(&below).copied().collect();
        let evidence = Evidence::new(findings, &clusters, &pairs)?;
        let viewer = Viewer { findings, evidence: &evidence, output: context.output };
        let mut index = ClusterIndex::new(findings, &clusters, &evidence, context.output, cluster_index::MOST_BYTES)?;
        let view = |pairs: &[ScoredPair]| pairs.iter().map(|pair| viewer.pair(pair)).collect::<Result<Vec<_>>>();
        let page = html(findings, context.summary, &clusters, &index, &evidence, [view(&above)?, view(&below)?])?;
        let path = directory.join(files::REPORT);
        // The index can be large: it is written between what stands before it and after it.
        let (before, after) = page.split_once(INDEX_PLACE).unwrap_or((&page, ""));
        let mut out = BufWriter::new(File::create(&path).map_err(Error::io(&path, "create"))?);
        out.write_all(before.as_bytes()).map_err(Error::io(&path, "write"))?;
        index.write(&mut out, &path)?;
        out.write_all(after.as_bytes()).and_then(|()| out.flush()).map_err(Error::io(&path, "write"))
    }
}

fn html(
    findings: &Findings<'_>,
    summary: &Summary,
    clusters: &Clusters,
    index: &ClusterIndex<'_>,
    evidence: &Evidence,
    [above, below]: [Vec<PairView>; 2],
) -> Result<String> {
    let threshold = findings.threshold();
    let curve = findings.plan.curve(threshold.unwrap_or(1.0));
    let name = findings.plan.similarity_name();
    let report = ReportTemplate {
        summary,
        headline: facts::headline(summary),
        method: facts::method_name(findings),
        rule: findings.earlier.as_ref().map_or_else(|| findings.config.rule(), |earlier| earlier.rule.clone()),
        keep: findings.config.groups.keep.in_words(),
        grouping: facts::grouping(findings.config.groups.cluster),
        cards: facts::cards(summary),
        page_stages: plots::stages("Pages after each stage", &facts::page_rows(summary)),
        pair_stages: plots::stages("Pairs after each stage", &facts::pair_rows(summary)),
        sizes: plots::cluster_sizes(&clusters.rows.iter().map(|row| row.1).collect::<Vec<_>>()),
        similarities: plots::similarities(
            similarities(&findings.verified.pairs),
            similarities(&findings.verified.near_misses),
            &findings.thresholds(),
            name,
        ),
        curve: curve.as_ref().map_or_else(String::new, |curve| plots::s_curve(&curve.chance, threshold, name)),
        curve_note: curve.map_or_else(String::new, |curve| curve.note),
        more: facts::more(summary),
        clusters: clusters.rows.len(),
        listed: index.listed,
        members: index.members,
        diffs: &evidence.diffs,
        above,
        below,
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

impl Findings<'_> {
    /// The similarities that decide about the pairs at hand, ascending, with what each is for.
    fn thresholds(&self) -> Vec<ThresholdMark> {
        let decision = self.earlier.as_ref().map_or(self.plan.decision, |earlier| earlier.decision);
        let pairs = || self.verified.pairs.iter().chain(self.verified.near_misses.iter());
        if !matches!(decision, Decision::Stories { .. }) || pairs().next().is_none() {
            return self.threshold().map(|at| ThresholdMark { at, name: "threshold".to_owned() }).into_iter().collect();
        }
        let kinds: BTreeSet<(Option<bool>, bool)> =
            pairs().map(|pair| (pair.same_site, pair.is_short && pair.same_site.is_some())).collect();
        let mut marks: Vec<ThresholdMark> = Vec::new();
        for (same_site, is_short) in kinds {
            let at = decision.story_threshold(same_site, is_short);
            let name = match (same_site, is_short) {
                (None, _) => "plain text",
                (_, true) => "short pages",
                (Some(true), _) => "within a site",
                (Some(false), _) => "between sites",
            };
            match marks.iter_mut().find(|mark| mark.at.total_cmp(&at).is_eq()) {
                Some(mark) if mark.name.contains(name) => {}
                Some(mark) => mark.name = format!("{}, {name}", mark.name),
                None => marks.push(ThresholdMark { at, name: name.to_owned() }),
            }
        }
        if let [only] = marks.as_mut_slice() {
            only.name = "threshold".to_owned();
        }
        marks.sort_by(|a, b| a.at.total_cmp(&b.at));
        marks
    }
}

fn similarities(pairs: &[ScoredPair]) -> impl Iterator<Item = f64> + Clone {
    pairs.iter().map(|pair| pair.similarity)
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
    let above = first_of(&findings.verified.pairs, order);
    let below = first_of(&findings.verified.near_misses, |a, b| order(b, a));
    (above, below)
}

/// The pairs that come first in an order.
fn first_of(pairs: &[ScoredPair], order: impl Fn(&ScoredPair, &ScoredPair) -> Ordering) -> Vec<ScoredPair> {
    let mut first: Vec<ScoredPair> = Vec::new();
    for pair in pairs {
        let at = first.partition_point(|known| order(known, pair).is_le());
        if at < SHOWN_PAIRS {
            first.insert(at, *pair);
            first.truncate(SHOWN_PAIRS);
        }
    }
    first
}

struct Viewer<'a> {
    findings: &'a Findings<'a>,
    evidence: &'a Evidence,
    output: &'a Path,
}

impl Viewer<'_> {
    fn page(&self, page: PageId) -> Result<PageView> {
        let mut scratch = Scratch::default();
        let strings = self.findings.pages.strings(page, &mut scratch)?;
        let name = strings.title.map(str::to_owned).or_else(|| self.evidence.snippet(page)).unwrap_or_default();
        let (link, place) = match strings.url {
            Some(url) => (web_address(url).map(str::to_owned), url.to_owned()),
            None if self.findings.pages.origin(page) == PageOrigin::IndexRow => (None, String::new()),
            None => {
                let place = self.findings.pages.place(page);
                let source = self.findings.reading.source(place.source);
                let way = source.location.path().and_then(|path| relative_path(self.output, path));
                let name = if source.format.is_page_file() {
                    strings.id.to_owned()
                } else {
                    format!("{}, record {}", source.display, thousands(place.record))
                };
                (way.as_deref().map(path_link), name)
            }
        };
        Ok(PageView { id: strings.id.to_owned(), name, link, place })
    }

    fn pair(&self, pair: &ScoredPair) -> Result<PairView> {
        let text = |page: PageId| self.evidence.text(page).map_or("", |text| text.compared.as_str());
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let left_out = [pair.left, pair.right].map(|page| self.evidence.text(page).map_or(0, |text| text.left_out));
        Ok(PairView {
            left: self.page(pair.left)?,
            right: self.page(pair.right)?,
            similarity: format!("{:.4}", pair.similarity),
            page_similarity: pair.page_similarity.map_or_else(String::new, |of| format!("{of:.4}")),
            left_out: match left_out.map(|words| thousands(words as u64)) {
                _ if left_out == [0, 0] => String::new(),
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
            difference: match (self.evidence.raw(pair.left), self.evidence.raw(pair.right)) {
                (Some(left), Some(right)) if text(pair.left) != text(pair.right) => classify(left, right).label(),
                (Some(_), Some(_)) => FRAME_ONLY.to_owned(),
                _ => String::new(),
            },
            pieces: diff::pieces(text(pair.left), text(pair.right)),
        })
    }
}
