//! The groups of a result, for whoever browses them; and pages by names that are nearly right.
//!
//! In: a result directory. Out: groups of two pages or more, sorted and filtered. Only pages that were dropped, and those
//! kept in their place, are held in memory.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use arrow_array::Array;
use serde::Serialize;

use crate::error::Result;
use crate::names::named;
use crate::report::comparison::PageFate;
use crate::report::files;
use crate::report::stored::{for_each_batch, real, summary, text};

named! {
    /// The order in which groups are listed.
    pub enum ClusterSort default Size {
        /// The largest first
        Size = "size",
        /// The one with the page least similar to the kept one first
        Weakest = "weakest",
        /// By the site of the kept page, the largest of a site first
        Site = "site",
    }
}

/// Which groups are listed, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClusterQuery {
    /// The order.
    pub sort: ClusterSort,
    /// Pages that a group must have.
    pub least_pages: usize,
    /// What the id, URL or title of one of its pages must contain, in whatever case.
    pub contains: Option<String>,
}

impl Default for ClusterQuery {
    /// All groups of two pages or more, the largest first.
    fn default() -> ClusterQuery {
        ClusterQuery { sort: ClusterSort::Size, least_pages: 2, contains: None }
    }
}

/// A page of a group.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ClusterPage {
    /// Its id.
    pub id: String,
    /// Its URL.
    pub url: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The kind that it has in `clusters.parquet`.
    pub kind: String,
    /// Similarity to the kept page, of what was compared.
    pub similarity: f64,
    /// Similarity of the whole pages.
    pub page_similarity: Option<f64>,
}

/// A group.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Cluster {
    /// The page that was kept.
    pub kept: ClusterPage,
    /// The site of its URL.
    pub site: Option<String>,
    /// Pages, with the kept one.
    pub pages: usize,
    /// The lowest similarity to the kept page.
    pub weakest: f64,
    /// The pages that were dropped for it, the most similar first.
    pub dropped: Vec<ClusterPage>,
}

/// The groups of the result in `directory`.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name);
/// use lookalike::result::{ClusterQuery, clusters};
/// use lookalike::{Config, RunOptions, Silent};
///
/// let story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. ".repeat(5);
/// let line = |id: &str, text: &str| format!("{{\"id\": \"{id}\", \"text\": \"{text}\"}}\n");
/// std::fs::write(at("pages.jsonl"), line("a", &story) + &line("b", &story)).unwrap();
/// let options = RunOptions::new([at("pages.jsonl").to_string_lossy()], at("out"));
/// lookalike::dedup(&Config::default(), &options, &Silent)?;
///
/// let found = clusters(&at("out"), &ClusterQuery::default())?;
/// assert_eq!((found.len(), found[0].pages, found[0].kept.id.as_str()), (1, 2, "a"));
/// # Ok::<(), lookalike::Error>(())
/// ```
///
/// # Errors
/// When the directory is not a complete result.
pub fn clusters(directory: &Path, query: &ClusterQuery) -> Result<Vec<Cluster>> {
    let site_rule = summary(directory)?.config.pairs.site;
    let mut dropped: HashMap<String, Vec<PageFate>> = HashMap::new();
    for_each_fate(directory, |fate| {
        if fate.id != fate.kept_id {
            dropped.entry(fate.kept_id.clone()).or_default().push(fate);
        }
    })?;
    dropped.retain(|_, pages| pages.len() + 1 >= query.least_pages);

    let named: HashSet<&str> = dropped
        .iter()
        .flat_map(|(kept, pages)| pages.iter().map(|page| page.id.as_str()).chain([kept.as_str()]))
        .collect();
    let mut labels: HashMap<String, (Option<String>, Option<String>)> = HashMap::new();
    for_each_batch(&directory.join(files::PAGES.parquet), |batch| {
        let (ids, urls, titles) = (text(batch, "id")?, text(batch, "url")?, text(batch, "title")?);
        for row in (0..batch.num_rows()).filter(|&row| named.contains(ids.value(row))) {
            let optional =
                |column: &arrow_array::StringArray| column.is_valid(row).then(|| column.value(row).to_owned());
            labels.insert(ids.value(row).to_owned(), (optional(urls), optional(titles)));
        }
        Ok(())
    })?;

    let page = |fate: PageFate| {
        let (url, title) = labels.get(&fate.id).cloned().unwrap_or_default();
        let PageFate { id, kind, similarity, page_similarity, .. } = fate;
        ClusterPage { id, url, title, kind, similarity, page_similarity }
    };
    let mut found: Vec<Cluster> = Vec::new();
    for (kept, fates) in dropped {
        let kept = page(PageFate::kept(kept, "representative"));
        let mut dropped: Vec<ClusterPage> = fates.into_iter().map(page).collect();
        // Ties stay in the order of the table.
        dropped.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
        found.push(Cluster {
            site: kept.url.as_deref().and_then(|url| site_rule.site(url)),
            pages: dropped.len() + 1,
            weakest: dropped.last().map_or(1.0, |page| page.similarity),
            kept,
            dropped,
        });
    }
    if let Some(wanted) = &query.contains {
        let wanted = wanted.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        let is_it = |page: &ClusterPage| {
            has(&page.id) || page.url.as_deref().is_some_and(has) || page.title.as_deref().is_some_and(has)
        };
        found.retain(|cluster| is_it(&cluster.kept) || cluster.dropped.iter().any(is_it));
    }
    found.sort_by(|a, b| {
        let by_size = || b.pages.cmp(&a.pages).then_with(|| a.kept.id.cmp(&b.kept.id));
        match query.sort {
            ClusterSort::Size => by_size(),
            ClusterSort::Weakest => a.weakest.total_cmp(&b.weakest).then_with(by_size),
            // Pages without a site come last.
            ClusterSort::Site => (a.site.is_none(), &a.site).cmp(&(b.site.is_none(), &b.site)).then_with(by_size),
        }
    });
    Ok(found)
}

/// Shows what became of every page, in the order of the table.
pub(crate) fn for_each_fate(directory: &Path, mut visit: impl FnMut(PageFate)) -> Result<()> {
    for_each_batch(&directory.join(files::CLUSTERS.parquet), |batch| {
        let (ids, kept, kinds) = (text(batch, "id")?, text(batch, "kept_id")?, text(batch, "kind")?);
        let similarity = real(batch, "similarity")?;
        // Results of the first version have no such column.
        let page_similarity = real(batch, "page_similarity").ok();
        for row in 0..batch.num_rows() {
            visit(PageFate {
                id: ids.value(row).to_owned(),
                kept_id: kept.value(row).to_owned(),
                kind: kinds.value(row).to_owned(),
                similarity: similarity.value(row),
                page_similarity: page_similarity.filter(|column| column.is_valid(row)).map(|column| column.value(row)),
            });
        }
        Ok(())
    })
}

/// Names that are suggested.
const SUGGESTED: usize = 3;
/// The share of three-character runs that a suggestion has in common with what was asked for.
const LEAST_ALIKE: f64 = 0.3;

/// Ids and URLs of a result that are much like a name that none has, the most similar first.
///
/// # Errors
/// When the directory is not a result.
pub(crate) fn close_names(directory: &Path, name: &str) -> Result<Vec<String>> {
    let wanted = runs(name);
    let mut best: Vec<(f64, String)> = Vec::new();
    let mut offer = |candidate: &str| {
        let own = runs(candidate);
        let shared = wanted.intersection(&own).count();
        let alike = 2.0 * shared as f64 / (wanted.len() + own.len()).max(1) as f64;
        let is_better = best.len() < SUGGESTED || best.last().is_some_and(|last| alike > last.0);
        if alike >= LEAST_ALIKE && is_better && best.iter().all(|known| known.1 != candidate) {
            let at = best.partition_point(|known| known.0 >= alike);
            best.insert(at, (alike, candidate.to_owned()));
            best.truncate(SUGGESTED);
        }
    };
    for_each_batch(&directory.join(files::PAGES.parquet), |batch| {
        let (ids, urls) = (text(batch, "id")?, text(batch, "url")?);
        for row in 0..batch.num_rows() {
            offer(ids.value(row));
            if urls.is_valid(row) {
                offer(urls.value(row));
            }
        }
        Ok(())
    })?;
    Ok(best.into_iter().map(|known| known.1).collect())
}

/// The runs of three characters of a text, in lower case, with its beginning and end.
fn runs(text: &str) -> HashSet<[char; 3]> {
    let ends = ['\u{2}', '\u{3}'];
    let chars: Vec<char> = [ends[0]].into_iter().chain(text.to_lowercase().chars()).chain([ends[1]]).collect();
    chars.windows(3).map(|run| [run[0], run[1], run[2]]).collect()
}
