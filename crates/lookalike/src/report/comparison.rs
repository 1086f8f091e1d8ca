//! Two pages side by side: what every method decides, and the comparison as a page for people (one file, no network).

use askama::Template;
use serde::Serialize;

use crate::error::Result;
use crate::report::diff::SideBySide;
use crate::report::diff::differences::Differences;
use crate::report::render;
use crate::text::PageBlock;

/// Two pages, compared by every method.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The first page.
    pub left: ComparedPage,
    /// The second.
    pub right: ComparedPage,
    /// Whether the words are the same, in the same order.
    pub identical: bool,
    /// Whether the sites are the same; unknown without URLs.
    pub same_site: Option<bool>,
    /// The kinds of differences between them.
    pub differences: Differences,
    /// The same in words.
    pub difference: String,
    /// Similarity of the whole pages, whatever of them is compared.
    pub page_similarity: f64,
    /// What a result says about them, if they were found in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ResultVerdict>,
    /// What each method decides.
    pub methods: Vec<MethodDecision>,
}

/// What a result says about two of its pages.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ResultVerdict {
    /// The decision of its method with its settings.
    pub decision: MethodDecision,
    /// What became of the first page.
    pub left: PageFate,
    /// What became of the second.
    pub right: PageFate,
}

/// What became of a page.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PageFate {
    /// Its id.
    pub id: String,
    /// The page that was kept in its place; itself, if it was kept.
    pub kept_id: String,
    /// The kind that it has in `clusters.parquet`.
    pub kind: String,
    /// Similarity to the kept page, of what was compared.
    pub similarity: f64,
    /// Similarity of the whole pages; nothing where it is not known.
    pub page_similarity: Option<f64>,
}

impl PageFate {
    /// A page that was kept.
    pub(crate) fn kept(id: String, kind: &str) -> PageFate {
        PageFate { kept_id: id.clone(), id, kind: kind.to_owned(), similarity: 1.0, page_similarity: Some(1.0) }
    }

    /// In words.
    #[must_use]
    pub fn text(&self) -> String {
        if self.id == self.kept_id {
            return format!("kept ({})", self.kind);
        }
        format!("dropped for {} ({}, {:.4})", self.kept_id, self.kind, self.similarity)
    }
}

/// One of the pages.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedPage {
    /// The name it was asked for by.
    pub name: String,
    /// Its URL.
    pub url: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its words.
    pub tokens: u32,
    /// Its language, as detected.
    pub language: Option<&'static str>,
    /// Its text, as far as it is compared.
    #[serde(skip)]
    pub text: String,
    /// Blocks that are not compared.
    pub left_out: Vec<PageBlock>,
}

/// What one method decides, and by what.
#[derive(Debug, Clone, Serialize)]
pub struct MethodDecision {
    /// The method, with the parameters that are not at their defaults.
    pub method: String,
    /// Whether it calls the pages near-duplicates.
    pub near_duplicate: bool,
    /// Exact similarity, 0..1.
    pub similarity: f64,
    /// Share of the first page's features that the second has too.
    pub left_in_right: f64,
    /// Share of the second page's features that the first has too.
    pub right_in_left: f64,
    /// What it decides by.
    pub score: f64,
    /// The unit of that.
    pub unit: &'static str,
    /// What the score must reach, as in `≥ 372`.
    pub needed: String,
    /// Equal supershingles, where these decide as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supershingles: Option<u32>,
    /// The paper's share of common bits, where there are Bloom filters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_bits: Option<f64>,
    /// The similarity estimated from the sketches alone.
    pub estimate: f64,
    /// The rule in words.
    pub rule: String,
}

impl MethodDecision {
    /// What it decides by, for people.
    #[must_use]
    pub fn score_text(&self) -> String {
        let digits = if self.unit == "similarity" { 4 } else { 0 };
        let beside = self.supershingles.map_or_else(String::new, |count| format!(", {count} supershingles"));
        format!("{:.digits$} {}{beside}", self.score, self.unit)
    }
}

#[derive(Template)]
#[template(path = "comparison.html")]
struct Page<'a> {
    found: &'a Comparison,
    sides: &'a SideBySide,
    /// Each page, on which side it is, and what of it is not compared.
    columns: [(&'a ComparedPage, &'static str, &'a [PageBlock]); 2],
    accepting: usize,
    version: &'static str,
}

/// The comparison as HTML.
///
/// # Errors
/// When the template cannot be filled in.
pub fn html(found: &Comparison, sides: &SideBySide) -> Result<String> {
    let accepting = found.methods.iter().filter(|decision| decision.near_duplicate).count();
    let columns = [(&found.left, "left", &found.left.left_out[..]), (&found.right, "right", &found.right.left_out[..])];
    render::html(&Page { found, sides, columns, accepting, version: env!("CARGO_PKG_VERSION") })
}

/// A share in whole percent.
#[must_use]
pub fn percent(share: &f64) -> String {
    format!("{:.0}", share * 100.0)
}

/// A share as the length of a bar of 90.
pub(crate) fn meter(share: &f64) -> String {
    format!("{:.1}", share * 90.0)
}
