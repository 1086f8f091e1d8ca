//! The pages of a run, with what the gold says of them.

use std::collections::{BTreeMap, HashMap};

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::evaluate::gold::Gold;
use crate::page::{PageId, PageVec};
use crate::report::stored::StoredPages;
use crate::spill::Scratch;
use crate::text::site::SiteRule;

/// Missing pages that are named.
const NAMED: usize = 10;

/// For each page what is known of it.
pub(super) struct Labels<'g> {
    gold: &'g Gold,
    /// Its place in the gold.
    judged: PageVec<Option<u32>>,
    /// Where the pages of the gold are.
    page_of: Vec<Option<PageId>>,
    /// Its site, by number.
    site: PageVec<Option<u32>>,
    site_names: Vec<String>,
    /// Pages of the gold that the input does not have.
    pub(super) missing: usize,
}

/// How a pair counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PairFacts {
    pub(super) same_site: Option<bool>,
    /// Which half of the labels it is in.
    pub(super) half: usize,
}

impl<'g> Labels<'g> {
    /// Finds the pages of the gold among those of a run.
    pub(super) fn new(gold: &'g Gold, stored: &StoredPages, rule: SiteRule, allow_missing: bool) -> Result<Labels<'g>> {
        let pages = stored.pages.len();
        let mut labels = Labels {
            gold,
            judged: PageVec::filled(pages, None),
            page_of: vec![None; gold.pages.len()],
            site: PageVec::filled(pages, None),
            site_names: Vec::new(),
            missing: 0,
        };
        let mut names = Vec::new();
        for (number, page) in (0u32..).zip(&gold.pages) {
            match stored.ids.find(&page.id) {
                Some(found) => {
                    labels.judged[found] = Some(number);
                    labels.page_of[number as usize] = Some(found);
                }
                None => {
                    labels.missing += 1;
                    if names.len() < NAMED {
                        names.push(format!("  line {}: {}", page.line, page.id));
                    }
                }
            }
        }
        if labels.missing > 0 && (!allow_missing || labels.missing == gold.pages.len()) {
            let more = labels.missing - names.len();
            let rest = if more > 0 { format!("\n  … and {more} more") } else { String::new() };
            let example = stored
                .pages
                .id(PageId::new(0))
                .map(|id| format!("; the input's ids look like '{id}'"))
                .unwrap_or_default();
            return Err(Error::conflict(
                "gold",
                format!(
                    "{} of the {} judged pages are not in the input{example}:\n{}{rest}\n{}",
                    labels.missing,
                    gold.pages.len(),
                    names.join("\n"),
                    if labels.missing == gold.pages.len() {
                        "so there is nothing to judge by"
                    } else {
                        "use `allow_missing` to judge by the others alone"
                    }
                ),
            ));
        }
        labels.find_sites(stored, rule)?;
        Ok(labels)
    }

    fn find_sites(&mut self, stored: &StoredPages, rule: SiteRule) -> Result<()> {
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut scratch = Scratch::default();
        for page in stored.pages.all() {
            let given = self.judged[page].and_then(|number| self.gold.pages[number as usize].site.clone());
            let site = match given {
                Some(site) => Some(site),
                None => stored.pages.strings(page, &mut scratch)?.url.and_then(|url| rule.site(url)),
            };
            self.site[page] = site.map(|site| {
                let next = u32::try_from(numbers.len()).expect("there are fewer sites than pages");
                *numbers.entry(site.clone()).or_insert_with(|| {
                    self.site_names.push(site);
                    next
                })
            });
        }
        Ok(())
    }

    /// Whether pages are said to belong together; nothing where nobody said so.
    pub(super) fn verdict(&self, left: PageId, right: PageId) -> Option<bool> {
        let (a, b) = (self.judged[left]?, self.judged[right]?);
        match &self.gold.pairs {
            Some(pairs) => {
                let listed = pairs.get(&(a.min(b), a.max(b))).copied();
                listed.or(self.gold.others_are_wrong.then_some(false))
            }
            None => Some(self.gold.pages[a as usize].cluster? == self.gold.pages[b as usize].cluster?),
        }
    }

    /// The pairs that are judged one by one and are in the input, in order, with their verdicts.
    pub(super) fn listed_pairs(&self) -> Vec<(PageId, PageId, bool)> {
        let at = |number: u32| self.page_of[number as usize];
        let listed = self.gold.pairs.iter().flatten();
        let listed = listed.filter_map(|(&(a, b), &verdict)| Some((at(a)?, at(b)?, verdict)));
        let mut pairs: Vec<_> = listed.map(|(a, b, verdict)| (a.min(b), a.max(b), verdict)).collect();
        pairs.sort_unstable();
        pairs
    }

    /// Whether anything is known of a page.
    pub(super) fn is_judged(&self, page: PageId) -> bool {
        self.judged[page].is_some()
    }

    /// All pairs that belong together.
    pub(super) fn true_pairs(&self) -> Vec<(PageId, PageId)> {
        if self.gold.pairs.is_some() {
            let pairs = self.listed_pairs().into_iter().filter(|row| row.2);
            return pairs.map(|(left, right, _)| (left, right)).collect();
        }
        let at = |number: u32| self.page_of[number as usize];
        let mut members: BTreeMap<u32, Vec<PageId>> = BTreeMap::new();
        for (number, page) in (0u32..).zip(&self.gold.pages) {
            if let (Some(cluster), Some(found)) = (page.cluster, at(number)) {
                members.entry(cluster).or_default().push(found);
            }
        }
        let mut pairs = Vec::new();
        for mut pages in members.into_values() {
            pages.sort_unstable();
            for (at, &left) in pages.iter().enumerate() {
                pairs.extend(pages[at + 1..].iter().map(|&right| (left, right)));
            }
        }
        pairs
    }

    /// What splits a pair belongs to.
    pub(super) fn facts(&self, left: PageId, right: PageId) -> PairFacts {
        let same_site = self.site[left].zip(self.site[right]).map(|(a, b)| a == b);
        // Pairs of one cluster are not independent: a cluster is in one half with all its pairs, and a pair
        // between two in that of the one with the smaller hash.
        let half = |page: PageId| {
            let page = self.judged[page].map(|number| &self.gold.pages[number as usize]);
            page.map_or(0, |page| match page.cluster {
                Some(cluster) => xxh3_64(self.gold.clusters[cluster as usize].as_bytes()),
                None => xxh3_64(page.id.as_bytes()),
            })
        };
        PairFacts { same_site, half: usize::from(half(left).min(half(right)) & 1 == 1) }
    }

    /// What kind a pair is of: that of both pages.
    pub(super) fn kind(&self, left: PageId, right: PageId) -> Option<&str> {
        let kind = |page: PageId| self.gold.pages[self.judged[page]? as usize].kind.as_deref();
        let (a, b) = (kind(left)?, kind(right)?);
        Some(if a == b { a } else { "between kinds" })
    }

    pub(super) fn site_of(&self, page: PageId) -> Option<&str> {
        self.site[page].map(|site| self.site_names[site as usize].as_str())
    }

    /// The judged pages that have clusters: the page, and the cluster.
    pub(super) fn clustered(&self) -> Vec<(PageId, u32)> {
        let mut rows: Vec<(PageId, u32)> = (0u32..)
            .zip(&self.gold.pages)
            .filter_map(|(number, page)| Some((self.page_of[number as usize]?, page.cluster?)))
            .collect();
        rows.sort_unstable();
        rows
    }

    /// Judged pages that are there.
    pub(super) fn judged_pages(&self) -> usize {
        self.gold.pages.len() - self.missing
    }
}
