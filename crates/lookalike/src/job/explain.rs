//! Why a page of a result was dropped, or kept.
//!
//! In: a result directory, and pages by id or URL. Out: for each the page that was kept in its place with both
//! similarities, what decided, the page that it was dropped for where that is another one, the chain of verified links where
//! groups are components, the group, the nearest page that was rejected, and the two texts as they were compared. Nothing is
//! decided anew: all of it is read from the tables, but for dates and fields that pages rank by.

mod order;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;

use serde::Serialize;

use crate::config::{ClusterMode, Config, Scope};
use crate::error::{Error, Result};
use crate::job::compare::compared_page;
use crate::names::Named;
use crate::page::{Kind, PageId, PageOrigin, ScoredPair};
use crate::plan::Decision;
use crate::plan::decision::SHORT_STORY_WORDS;
use crate::report::comparison::{ComparedPage, PageFate};
use crate::report::files;
use crate::report::stored::groups::{close_names, for_each_fate};
use crate::report::stored::stricter::Stricter;
use crate::report::stored::{self, StoredPages, StoredSummary, texts};
use crate::report::summary::Thresholds;
use crate::spill::Scratch;

/// Why pages of a result were dropped or kept.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Explanations {
    /// What makes two pages near-duplicates in this result, in words.
    pub rule: String,
    /// The settings that decide, by name: those that are always worth knowing, and what is not at its default.
    pub settings: Vec<(String, String)>,
    /// All settings.
    pub config: Config,
    /// Their hash, as in `summary.json`.
    pub config_hash: String,
    /// The pages, as they were asked for; a URL can be that of several.
    pub pages: Vec<Explanation>,
}

/// A page of a result, as it is named in an explanation.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ExplainedPage {
    /// Its id.
    pub id: String,
    /// Its URL.
    pub url: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The file that it is in.
    pub source: Option<String>,
    /// Its number there, from 1.
    pub record: u64,
    /// Words that were compared.
    pub words: u32,
}

/// Why a page was dropped, or kept.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The page.
    pub page: ExplainedPage,
    /// Whether it was kept.
    pub is_kept: bool,
    /// The kind that it has in `clusters.parquet`.
    pub kind: String,
    /// Why, in words; settings are named in backquotes.
    pub reason: String,
    /// The page that was kept in its place: of all kept pages the most similar one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_page: Option<ExplainedPage>,
    /// Similarity to it, of what was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
    /// Similarity of the whole pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_similarity: Option<f64>,
    /// What was verified about the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The page that it was dropped for, where that is another one: a kept near-duplicate that ranks before it, which the most
    /// similar one need not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_for: Option<DroppedFor>,
    /// The verified links from the page to the kept one, where groups are components and the two are not linked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<ChainLink>,
    /// The dropped pages that the kept page is kept in place of, the most similar first.
    pub group: Vec<PageFate>,
    /// Of a kept page: the page that came nearest to being a near-duplicate, and was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest_rejected: Option<Rejected>,
    /// The page and the kept one, as they were compared.
    #[serde(skip)]
    pub texts: Option<(ComparedPage, ComparedPage)>,
    /// Why there are no texts, if there should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_texts: Option<String>,
}

/// The kept page that a page was dropped for.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct DroppedFor {
    /// The page.
    pub page: ExplainedPage,
    /// Similarity of what was compared.
    pub similarity: f64,
}

/// What was verified about a page and the kept one.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Evidence {
    /// What the method decided by, in its unit.
    pub score: f64,
    /// The unit.
    pub unit: &'static str,
    /// What it had to be, as in `≥ 0.4`.
    pub needed: String,
    /// Why that was needed, where it depends on the pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Share of the page that the kept one has too.
    pub page_in_kept: f64,
    /// Share of the kept page that this one has too.
    pub kept_in_page: f64,
}

/// A verified link.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ChainLink {
    /// The page that it starts at.
    pub from: String,
    /// The page that it leads to.
    pub to: String,
    /// Their similarity; 1 where the same was compared.
    pub similarity: f64,
}

/// A page that was compared with a kept one and rejected.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Rejected {
    /// The page.
    pub id: String,
    /// Similarity of what was compared.
    pub similarity: f64,
    /// Similarity of the whole pages.
    pub page_similarity: Option<f64>,
    /// What decided, in its unit.
    pub score: f64,
    /// The unit.
    pub unit: &'static str,
    /// What would have been needed, as in `≥ 0.4`.
    pub needed: String,
    /// Why that, where it depends on the pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// Says why pages of the result in `directory` were dropped or kept; they are named by id or URL.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name);
/// use lookalike::result::explain;
/// use lookalike::{Config, RunOptions, Silent};
///
/// let story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. ".repeat(5);
/// let line = |id: &str, text: &str| format!("{{\"id\": \"{id}\", \"text\": \"{text}\"}}\n");
/// std::fs::write(at("pages.jsonl"), line("a", &story) + &line("b", &(story.clone() + "Photo: a reader."))).unwrap();
/// let options = RunOptions::new([at("pages.jsonl").to_string_lossy()], at("out"));
/// lookalike::dedup(&Config::default(), &options, &Silent)?;
///
/// let found = explain(&at("out"), &["b"])?;
/// assert_eq!(found.pages[0].kept_page.as_ref().map(|page| page.id.as_str()), Some("a"));
/// assert_eq!(found.pages[0].evidence.as_ref().map(|evidence| evidence.needed.as_str()), Some("≥ 0.7"));
/// # Ok::<(), lookalike::Error>(())
/// ```
///
/// # Errors
/// When the directory is not a complete result, or no page has such an id or URL; the error names those that are much
/// like it. Inputs that are gone are not an error: the texts are missing then.
pub fn explain(directory: &Path, names: &[impl AsRef<str>]) -> Result<Explanations> {
    let (summary, stored) = stored::open(directory, &std::env::temp_dir())?;
    let mut asked = Vec::new();
    for name in names {
        asked.extend(pages_named(directory, &stored, name.as_ref())?);
    }
    let explainer = Explainer::new(directory, &summary, &stored)?;
    let pages = explainer.pages(&asked)?;
    Ok(Explanations {
        rule: explainer.stricter.rule(),
        settings: settings(&summary.config, summary.reclustered),
        config_hash: summary.config_hash.clone(),
        config: summary.config.clone(),
        pages,
    })
}

/// The page with an id, or all with a URL.
fn pages_named(directory: &Path, stored: &StoredPages, name: &str) -> Result<Vec<PageId>> {
    if let Some(page) = stored.ids.find(name) {
        return Ok(vec![page]);
    }
    let (mut found, mut scratch) = (Vec::new(), Scratch::default());
    for page in stored.pages.all() {
        if stored.pages.strings(page, &mut scratch)?.url == Some(name) {
            found.push(page);
        }
    }
    if found.is_empty() {
        return Err(unknown_page(directory, name)?);
    }
    Ok(found)
}

/// No page has this id or URL; names those that are much like it.
pub(crate) fn unknown_page(directory: &Path, name: &str) -> Result<Error> {
    let close = close_names(directory, name)?;
    let hint = if close.is_empty() {
        format!("ids are in the column id of {}", files::PAGES.parquet)
    } else {
        format!("did you mean {}?", close.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(" or "))
    };
    Ok(Error::bad_input(directory, format!("no page has the id or URL '{name}'; {hint}")))
}

/// The settings of a run that say most about its decisions, and all that are not at their defaults.
fn settings(config: &Config, reclustered: Option<Thresholds>) -> Vec<(String, String)> {
    let mut settings = vec![
        ("method".to_owned(), config.method.label()),
        ("content".to_owned(), config.content.scope.name().to_owned()),
        ("cluster".to_owned(), config.groups.cluster.name().to_owned()),
        ("keep".to_owned(), config.groups.keep.to_string()),
    ];
    settings.extend(config.groups.prefer.iter().map(|pattern| ("prefer".to_owned(), pattern.clone())));
    let defaults = Config::default();
    let (pairs, content) = (&config.pairs, &config.content);
    let mut add = |name: &str, value: Option<String>| settings.extend(value.map(|value| (name.to_owned(), value)));
    add("mask", content.mask_volatile.then(|| "volatile".to_owned()));
    add("keep_case", content.keep_case.then(String::new));
    add("scripts", content.scripts.then(String::new));
    add("within", pairs.within.map(|within| within.name().to_owned()));
    add("length_ratio", pairs.length_ratio.map(|ratio| ratio.to_string()));
    add("exact_only", pairs.exact_only.then(String::new));
    add("min_tokens", (pairs.min_tokens != defaults.pairs.min_tokens).then(|| pairs.min_tokens.to_string()));
    add("site", (pairs.site != defaults.pairs.site).then(|| pairs.site.name().to_owned()));
    // Made again from stored pairs: what counts since then.
    let again = reclustered.unwrap_or_default();
    add("threshold", again.threshold.map(|value| value.to_string()));
    add("within_site", again.within_site.map(|value| value.to_string()));
    add("between_sites", again.between_sites.map(|value| value.to_string()));
    settings
}

/// The tables of a result, as far as explanations need them.
struct Explainer<'a> {
    directory: &'a Path,
    summary: &'a StoredSummary,
    stored: &'a StoredPages,
    /// What decides, after the last clustering.
    stricter: Stricter,
    /// Verified pairs that count.
    pairs: HashMap<(PageId, PageId), ScoredPair>,
    /// Pairs that were compared and do not.
    rejected: Vec<ScoredPair>,
}

impl<'a> Explainer<'a> {
    fn new(directory: &'a Path, summary: &'a StoredSummary, stored: &'a StoredPages) -> Result<Explainer<'a>> {
        let stricter = Stricter::of(summary)?;
        let all = stored.pairs(directory, files::PAIRS)?;
        let (pairs, mut rejected): (Vec<_>, Vec<_>) = all.into_iter().partition(|pair| stricter.counts(pair));
        rejected.extend(stored.pairs(directory, files::NEAR_MISSES)?);
        let pairs = pairs.into_iter().map(|pair| ((pair.left, pair.right), pair)).collect();
        Ok(Explainer { directory, summary, stored, stricter, pairs, rejected })
    }

    fn pages(&self, asked: &[PageId]) -> Result<Vec<Explanation>> {
        let ids = asked.iter().map(|&page| self.stored.pages.id(page)).collect::<Result<Vec<String>>>()?;
        let reasons: Vec<Vec<PageId>> = asked.iter().map(|&page| self.possible_reasons(page)).collect();
        let reason_ids =
            { reasons.iter().flatten() }.map(|&page| self.stored.pages.id(page)).collect::<Result<Vec<_>>>()?;
        let wanted: HashSet<&str> = ids.iter().chain(&reason_ids).map(String::as_str).collect();
        let mut fates: HashMap<String, PageFate> = HashMap::new();
        for_each_fate(self.directory, |fate| {
            if wanted.contains(fate.id.as_str()) {
                fates.insert(fate.id.clone(), fate);
            }
        })?;
        let kept: HashSet<String> = ids.iter().filter_map(|id| Some(fates.get(id)?.kept_id.clone())).collect();
        let mut groups: HashMap<String, Vec<PageFate>> = HashMap::new();
        for_each_fate(self.directory, |fate| {
            if fate.id != fate.kept_id && kept.contains(&fate.kept_id) {
                groups.entry(fate.kept_id.clone()).or_default().push(fate);
            }
        })?;
        // Ties stay in the order of the table.
        groups.values_mut().for_each(|group| group.sort_by(|a, b| b.similarity.total_cmp(&a.similarity)));
        let explain = |((&page, id), reasons): ((&PageId, &String), &Vec<PageId>)| match fates.get(id) {
            Some(fate) => {
                let kept = { reasons.iter() }.filter_map(|&first| self.kept_of_set(first, &fates)).collect::<Vec<_>>();
                self.page(page, fate, groups.get(&fate.kept_id).cloned().unwrap_or_default(), &kept)
            }
            None => {
                let reason = format!(
                    "'{id}' is not a page that was decided about: a revisit of a page that is not in the input"
                );
                Err(Error::bad_input(self.directory, reason))
            }
        };
        asked.iter().zip(&ids).zip(&reasons).map(explain).collect()
    }

    /// The page that was kept of a set, if one was.
    fn kept_of_set(&self, first: PageId, fates: &HashMap<String, PageFate>) -> Option<PageId> {
        let fate = fates.get(&self.stored.pages.id(first).ok()?)?;
        self.stored.ids.find(&fate.kept_id).filter(|&kept| self.stored.first[kept] == first)
    }

    /// `like` are the kept pages that it was verified to be like.
    fn page(&self, page: PageId, fate: &PageFate, group: Vec<PageFate>, like: &[PageId]) -> Result<Explanation> {
        let is_kept = fate.id == fate.kept_id;
        let explained = self.described(page)?;
        let mut explanation = Explanation {
            is_kept,
            kind: fate.kind.clone(),
            reason: self.reason(fate, &explained, group.len(), self.pairs_of(page).count()),
            kept_page: None,
            similarity: None,
            page_similarity: None,
            evidence: None,
            dropped_for: None,
            chain: Vec::new(),
            group,
            nearest_rejected: None,
            texts: None,
            no_texts: None,
            page: explained,
        };
        if is_kept {
            explanation.nearest_rejected = self.nearest_rejected(page)?;
            return Ok(explanation);
        }
        let Some(kept) = self.stored.ids.find(&fate.kept_id) else {
            let reason = format!("the tables do not belong together: no page has the id '{}'", fate.kept_id);
            return Err(Error::corrupt(self.directory, reason));
        };
        explanation.reason.push_str(self.origin_in_words(kept));
        explanation.kept_page = Some(self.described(kept)?);
        (explanation.similarity, explanation.page_similarity) = (Some(fate.similarity), fate.page_similarity);
        explanation.evidence = self.evidence(page, kept);
        if let Some(other) = self.dropped_for(page, kept, like)? {
            let other_page = self.described(other)?;
            explanation.reason = format!(
                "it is a near-duplicate of {}{}, which is kept and ranks before it; the kept page that it is most similar to is {}{}",
                other_page.id,
                self.origin_in_words(other),
                fate.kept_id,
                self.origin_in_words(kept)
            );
            let similarity = self.pair(page, other).map_or(0.0, |pair| pair.similarity);
            explanation.dropped_for = Some(DroppedFor { page: other_page, similarity });
        }
        let is_linked = self.stored.first[page] == self.stored.first[kept] || explanation.evidence.is_some();
        if self.summary.config.groups.cluster == ClusterMode::Components && !is_linked {
            explanation.chain = self.chain(page, kept)?;
        }
        match self.texts(page, kept) {
            Ok(texts) => explanation.texts = Some(texts),
            Err(error) => explanation.no_texts = Some(error.to_string()),
        }
        Ok(explanation)
    }

    /// The page that a page was dropped for, where that is not the kept page that it was assigned to.
    fn dropped_for(&self, page: PageId, kept: PageId, like: &[PageId]) -> Result<Option<PageId>> {
        if like.len() < 2 || self.stored.first[page] == self.stored.first[kept] {
            return Ok(None);
        }
        Ok(self.first_by_rank(like)?.filter(|&other| other != kept))
    }

    /// Where a page comes from, if it is not from the input.
    fn origin_in_words(&self, page: PageId) -> &'static str {
        match self.stored.pages.origin(page) {
            PageOrigin::Input => "",
            PageOrigin::Example => " (one of the examples)",
            _ => " (of the other corpus)",
        }
    }

    fn described(&self, page: PageId) -> Result<ExplainedPage> {
        let mut scratch = Scratch::default();
        let (place, pages) = (self.stored.pages.place(page), &self.stored.pages);
        let strings = pages.strings(page, &mut scratch)?;
        Ok(ExplainedPage {
            id: strings.id.to_owned(),
            url: strings.url.map(str::to_owned),
            title: strings.title.map(str::to_owned),
            source: self.stored.sources.get(place.source.index()).cloned(),
            record: place.record,
            words: pages.tokens[page],
        })
    }

    /// Why, in words; `others` were dropped and assigned to it, `like` it are so many sets of pages.
    fn reason(&self, fate: &PageFate, page: &ExplainedPage, others: usize, like: usize) -> String {
        let kept_id = &fate.kept_id;
        let is = |kind: Kind| fate.kind == kind.name();
        if is(Kind::Exact) {
            format!("its whole text is the same as that of {kept_id}")
        } else if is(Kind::SameCore) && self.summary.config.content.scope == Scope::Links {
            format!("it has the same links as {kept_id}, which is what was compared")
        } else if is(Kind::SameCore) {
            format!(
                "it is the same text as {kept_id} in another frame: what was compared is the same, the rest differs"
            )
        } else if is(Kind::Contained) {
            format!("most of it is in {kept_id}, which has more besides")
        } else if is(Kind::Near) {
            format!("it is a near-duplicate of {kept_id}")
        } else if is(Kind::Empty) {
            "it has no words, and matches nothing".to_owned()
        } else if is(Kind::Short) {
            let least = self.summary.config.pairs.min_tokens;
            format!(
                "it has {} words to compare, fewer than `min_tokens` {least}, and matches only exact copies",
                page.words
            )
        } else if is(Kind::Representative) {
            let noun = if others == 1 { "page was" } else { "pages were" };
            let order = self.order_in_words();
            if self.summary.config.groups.cluster == ClusterMode::Components {
                return format!("of its group it ranks first ({order}); {others} other {noun} dropped for it");
            }
            // Pages that name it as the most similar kept one may rank before it.
            let are = if others == 1 { "is" } else { "are" };
            format!(
                "no kept page that ranks before it ({order}) is a near-duplicate of it; {others} other {noun} dropped and {are} \
                 most similar to it"
            )
        } else if like > 0 {
            let (were, are) =
                if like == 1 { ("near-duplicate of it was", "is") } else { ("near-duplicates of it were", "are") };
            format!(
                "no kept page that ranks before it ({}) is a near-duplicate of it; {like} {were} dropped and {are} more similar \
                 to another kept page",
                self.order_in_words()
            )
        } else {
            "no page is similar enough to it".to_owned()
        }
    }

    /// What pages rank by.
    fn order_in_words(&self) -> String {
        let groups = &self.summary.config.groups;
        let preferred = if groups.prefer.is_empty() { "" } else { "by `prefer`, then " };
        if self.stricter.config.plan().matches_in_order() {
            return format!("{preferred}in the order in which pages are matched");
        }
        format!("{preferred}by `keep` {}", groups.keep)
    }

    /// The verified pairs of a page's set.
    fn pairs_of(&self, page: PageId) -> impl Iterator<Item = &ScoredPair> {
        let first = self.stored.first[page];
        self.pairs.values().filter(move |pair| pair.left == first || pair.right == first)
    }

    /// The verified pair of two pages; copies have the pairs of the first one.
    fn pair(&self, left: PageId, right: PageId) -> Option<&ScoredPair> {
        let (left, right) = (self.stored.first[left], self.stored.first[right]);
        self.pairs.get(&(left.min(right), left.max(right)))
    }

    fn evidence(&self, page: PageId, kept: PageId) -> Option<Evidence> {
        let pair = self.pair(page, kept)?;
        let is_left = pair.left == self.stored.first[page];
        let (mut page_in_kept, mut kept_in_page) = (pair.left_in_right, pair.right_in_left);
        if !is_left {
            std::mem::swap(&mut page_in_kept, &mut kept_in_page);
        }
        let (score, unit) = self.score(pair);
        let (needed, because) = self.needed(pair);
        Some(Evidence { score, unit, needed, because, page_in_kept, kept_in_page })
    }

    /// What decided about a pair, and its unit.
    fn score(&self, pair: &ScoredPair) -> (f64, &'static str) {
        // The share of common bits decides nothing where the exact one does.
        let by_similarity = matches!(self.stricter.decision, Decision::Similarity { .. } | Decision::Stories { .. });
        (if by_similarity { pair.similarity } else { pair.score }, self.stricter.config.method.unit().name())
    }

    /// What a pair needed, and why that, where it depends on the pages.
    fn needed(&self, pair: &ScoredPair) -> (String, Option<String>) {
        let because = matches!(self.stricter.decision, Decision::Stories { .. }).then(|| {
            let mut because = match pair.same_site {
                None => "plain text, or pages whose frame is not known".to_owned(),
                Some(true) => "two pages of one site, without their frames".to_owned(),
                Some(false) => "two pages of different sites, without their frames".to_owned(),
            };
            if pair.is_short && pair.same_site.is_some() {
                because.push_str(&format!(", one with fewer than {SHORT_STORY_WORDS} words"));
            }
            because
        });
        (self.stricter.decision.needed(pair.same_site, pair.is_short), because)
    }

    /// The shortest way over verified links.
    fn chain(&self, page: PageId, kept: PageId) -> Result<Vec<ChainLink>> {
        let (from, to) = (self.stored.first[page], self.stored.first[kept]);
        let mut neighbours: HashMap<PageId, Vec<(PageId, f64)>> = HashMap::new();
        for pair in self.pairs.values() {
            neighbours.entry(pair.left).or_default().push((pair.right, pair.similarity));
            neighbours.entry(pair.right).or_default().push((pair.left, pair.similarity));
        }
        // The order of a hash map must not decide between ways of one length.
        neighbours.values_mut().for_each(|links| links.sort_by_key(|link| link.0));
        let mut came_from: HashMap<PageId, (PageId, f64)> = HashMap::new();
        let mut waiting = VecDeque::from([from]);
        while let Some(at) = waiting.pop_front().filter(|_| !came_from.contains_key(&to)) {
            for &(next, similarity) in neighbours.get(&at).into_iter().flatten() {
                if next != from && !came_from.contains_key(&next) {
                    came_from.insert(next, (at, similarity));
                    waiting.push_back(next);
                }
            }
        }
        // Backwards, from the kept page; copies of the first and last page are one more link.
        let mut steps = Vec::new();
        if to != kept {
            steps.push((to, kept, 1.0));
        }
        let mut at = to;
        while let Some(&(before, similarity)) = came_from.get(&at).filter(|_| at != from) {
            steps.push((before, at, similarity));
            at = before;
        }
        if from != page {
            steps.push((page, from, 1.0));
        }
        let link = |(from, to, similarity): (PageId, PageId, f64)| {
            Ok(ChainLink { from: self.stored.pages.id(from)?, to: self.stored.pages.id(to)?, similarity })
        };
        steps.into_iter().rev().map(link).collect()
    }

    /// The rejected pair of a page that came nearest.
    fn nearest_rejected(&self, page: PageId) -> Result<Option<Rejected>> {
        let first = self.stored.first[page];
        let own = self.rejected.iter().filter(|pair| pair.left == first || pair.right == first);
        let nearness = |pair: &ScoredPair| self.stricter.decision.nearness(pair, pair.same_site == Some(true));
        let nearest = own
            .max_by(|a, b| nearness(a).total_cmp(&nearness(b)).then(b.left.cmp(&a.left)).then(b.right.cmp(&a.right)));
        let Some(pair) = nearest else { return Ok(None) };
        let other = if pair.left == first { pair.right } else { pair.left };
        let ((score, unit), (needed, because)) = (self.score(pair), self.needed(pair));
        Ok(Some(Rejected {
            id: self.stored.pages.id(other)?,
            similarity: pair.similarity,
            page_similarity: pair.page_similarity,
            score,
            unit,
            needed,
            because,
        }))
    }

    /// Two pages, read again, as they were compared.
    fn texts(&self, page: PageId, kept: PageId) -> Result<(ComparedPage, ComparedPage)> {
        let read = texts::load(self.stored, self.summary, &[page, kept])?;
        let compared = |page: PageId| {
            let mut raw = read[&page].clone();
            raw.id = Some(self.stored.pages.id(page)?.into());
            let frames = self.stored.frames.clone();
            Ok(compared_page(&raw, self.stored.pages.tokens[page], &self.summary.config, frames))
        };
        Ok((compared(page)?, compared(kept)?))
    }
}
