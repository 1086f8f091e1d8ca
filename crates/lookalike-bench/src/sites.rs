//! The algorithms of Henzinger (2006) within a site and between sites, on documentation in frames: whether B is below C is
//! below combined, with the frames of pages and without them.

use std::collections::{HashMap, HashSet};
use std::fs;

use anyhow::Result;
use lookalike::config::Scope;
use lookalike::{Config, Method, RawPage};

use crate::labelled::{FramedDocs, Labelled, found_pairs, on_pages};

/// The algorithms, in the order of the paper, and the default.
pub const METHODS: [&str; 5] = ["shingle", "projection", "combined", "routed", "minhash"];
/// The parts of a page.
pub const SCOPES: [Scope; 3] = [Scope::Page, Scope::Core, Scope::Story];

/// Reported pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reported {
    /// Those whose texts have a similarity of word 5-grams of 0.5 or more.
    pub correct: usize,
    /// All.
    pub all: usize,
}

impl Reported {
    fn add(&mut self, is_correct: bool) {
        self.all += 1;
        self.correct += usize::from(is_correct);
    }

    /// Those that are not correct.
    #[must_use]
    pub fn wrong(&self) -> usize {
        self.all - self.correct
    }

    /// The share of the correct ones, if there are any pairs.
    #[must_use]
    pub fn precision(&self) -> Option<f64> {
        (self.all > 0).then(|| self.correct as f64 / self.all as f64)
    }
}

/// Reported pairs by site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BySite {
    /// Within a site.
    pub same: Reported,
    /// Between sites.
    pub different: Reported,
}

/// The folder that a page is in, which is its site or the version of a manual.
fn site(page: &str) -> &str {
    page.split('/').next().unwrap_or(page)
}

/// A method on a part of the pages.
///
/// # Errors
/// When there is no such method.
pub fn config(method: &str, scope: Scope) -> Result<Config> {
    let mut config = Config::new(Method::named(method)?);
    config.content.scope = scope;
    Ok(config)
}

/// A config on pages whose main elements are known.
///
/// # Errors
/// When the run fails.
pub fn on_framed_docs(docs: &FramedDocs, config: &Config) -> Result<BySite> {
    let mut found = BySite::default();
    for pair in found_pairs(&docs.directory, config)?.pairs {
        let is_same = site(&pair.left) == site(&pair.right);
        let row = if is_same { &mut found.same } else { &mut found.different };
        row.add(docs.similarity(&pair.left, &pair.right) >= 0.5);
    }
    Ok(found)
}

/// A config on manuals in several versions; a version is a site, and its pages are all different.
///
/// # Errors
/// When the run fails, or a page cannot be read.
pub fn on_versions(set: &Labelled, config: &Config) -> Result<BySite> {
    let mut bodies: HashMap<String, HashSet<u64>> = HashMap::new();
    let mut found = BySite::default();
    for pair in found_pairs(&set.directory, config)?.pairs {
        for page in [&pair.left, &pair.right] {
            if !bodies.contains_key(page) {
                let html = fs::read(set.directory.join(page))?;
                bodies.insert(page.clone(), five_grams(body_of(&String::from_utf8_lossy(&html))));
            }
        }
        let (left, right) = (&bodies[&pair.left], &bodies[&pair.right]);
        let shared = left.intersection(right).count();
        let is_same = site(&pair.left) == site(&pair.right);
        let row = if is_same { &mut found.same } else { &mut found.different };
        row.add(2 * shared >= left.len() + right.len() - shared);
    }
    Ok(found)
}

/// The element that Sphinx puts the text of a page into; the whole page where there is none.
fn body_of(html: &str) -> &str {
    let Some(start) = html.find("<div class=\"body\"") else { return html };
    let (mut depth, mut at) = (0usize, start);
    while let Some(tag) = html[at..].find("<div").into_iter().chain(html[at..].find("</div")).min() {
        at += tag;
        if html[at..].starts_with("</") {
            depth -= 1;
            if depth == 0 {
                return &html[start..at];
            }
        } else {
            depth += 1;
        }
        at += 1;
    }
    &html[start..]
}

/// The word 5-grams of all text between tags; of fewer words, these.
fn five_grams(html: &str) -> HashSet<u64> {
    let mut sketcher = lookalike::Sketcher::new(&on_pages(Config::default().method));
    sketcher.read(&RawPage::html(html));
    sketcher.sketch().features.iter().copied().collect()
}
