//! What every method says of two pages.
//!
//! In: two pages, named as files, or by id or URL within a result or a corpus. Out: every method's
//! similarity and decision with its threshold, and the two texts. Methods that weigh by a corpus are
//! compared without it, as two pages are none.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::config::{Config, Method};
use crate::error::{Error, Result, first_names};
use crate::job::explain::unknown_page;
use crate::page::{Body, Markup, PageId, RawPage};
use crate::plan::{CorpusStats, Decision, Plan, Verdict};
use crate::read::{Corpus, known_source};
use crate::report::comparison::{MethodDecision, ResultVerdict};
use crate::report::diff::differences::{FRAME_ONLY, classify};
use crate::report::files;
use crate::report::stored::stricter::Stricter;
use crate::report::stored::{self, texts};
use crate::sketch::PageSketch;
use crate::sketcher::Sketcher;
use crate::spill::Scratch;
use crate::text::frames::Frames;
use crate::text::language;
use crate::text::{BlockPart, PageBlock, PageReader, TextOptions};
use crate::verify::score::score;

pub use crate::report::comparison::{ComparedPage, Comparison};

/// Compares two pages by every method, at its defaults but for what `common` says about text, site and
/// masking.
///
/// ```
/// use lookalike::{Config, RawPage, compare};
///
/// let story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. ".repeat(5);
/// let (left, right) = (RawPage::text(&story), RawPage::html(format!("<h1>News</h1><p>{story}")));
/// let comparison = compare(&left, &right, &Config::default());
/// let minhash = &comparison.methods[0];
/// assert!(minhash.near_duplicate && minhash.similarity > 0.9 && !comparison.identical);
/// ```
#[must_use]
pub fn compare(left: &RawPage<'_>, right: &RawPage<'_>, common: &Config) -> Comparison {
    compare_by(left, right, common, &Method::all(), None)
}

/// The same for pages by their names, by these methods, or by all. In a result they are compared with its settings and without
/// the frames that were learnt there, and its verdict is part of the comparison.
///
/// # Errors
/// As [`find_page`], and when the result is damaged.
pub fn compare_pages(
    left: &str,
    right: &str,
    within: Option<&str>,
    common: &Config,
    methods: &[Method],
) -> Result<Comparison> {
    methods.iter().try_for_each(Method::check)?;
    let methods = if methods.is_empty() { Method::all() } else { methods.to_vec() };
    let pages = (find_page(left, within, common)?, find_page(right, within, common)?);
    let Some(directory) = within.map(Path::new).filter(|directory| directory.join(files::SUMMARY).exists()) else {
        return Ok(compare_by(&pages.0, &pages.1, common, &methods, None));
    };
    let (summary, frames) = (stored::summary(directory)?, stored::frames(directory)?);
    // With the thresholds of its last clustering.
    let config = Stricter::of(&summary)?.config;
    // The result's own method takes the place of its defaults.
    let own = |method: Method| if method.label() == config.method.name() { config.method.clone() } else { method };
    let mut methods: Vec<Method> = methods.into_iter().map(own).collect();
    if !methods.contains(&config.method) {
        methods.insert(0, config.method.clone());
    }
    let mut found = compare_by(&pages.0, &pages.1, &config, &methods, frames);
    let decision = found.methods.iter().find(|decision| decision.method == config.method.label()).cloned();
    if let Some(decision) = decision {
        let fate = |name: &str, page: &RawPage<'_>| stored::fate(directory, name, page.url.as_deref());
        let (left, right) = (fate(left, &pages.0)?, fate(right, &pages.1)?);
        found.verdict = left.zip(right).map(|(left, right)| ResultVerdict { decision, left, right });
    }
    Ok(found)
}

pub(crate) fn compare_by(
    left: &RawPage<'_>,
    right: &RawPage<'_>,
    common: &Config,
    methods: &[Method],
    frames: Option<Arc<Frames>>,
) -> Comparison {
    let stats = frames.clone().map(|frames| Arc::new(CorpusStats { frames: Some(frames), ..CorpusStats::default() }));
    let mut facts = [(0, 0u128), (0, 0)];
    let methods = methods.iter().map(|method| {
        let config = common.with_method(method.clone());
        let plan = config.plan_with(stats.clone());
        let (decision, tokens) = by_plan(left, right, &config, &plan, &mut Sketcher::of_plan(&plan));
        facts = tokens;
        decision
    });
    let methods: Vec<MethodDecision> = methods.collect();
    let plan = common.plan().of_whole_pages();
    let whole = by_plan(left, right, common, &plan, &mut Sketcher::of_plan(&plan));
    let site = |page: &RawPage<'_>| page.url.as_deref().and_then(|url| common.pairs.site.site(url));
    let differences = classify(left, right);
    let page = |page: &RawPage<'_>, tokens: u32| compared_page(page, tokens, common, frames.clone());
    let is_same = |facts: [(u32, u128); 2]| facts[0].1 == facts[1].1 && facts[0].0 > 0;
    let identical = is_same(whole.1);
    Comparison {
        difference: if is_same(facts) && !identical { FRAME_ONLY.to_owned() } else { differences.label() },
        differences,
        left: page(left, facts[0].0),
        right: page(right, facts[1].0),
        identical,
        same_site: site(left).zip(site(right)).map(|(left, right)| left == right),
        page_similarity: whole.0.similarity,
        verdict: None,
        methods,
    }
}

/// Compares two pages as a config says; also the words of each and the hash of their sequence.
#[must_use]
pub fn by_config(left: &RawPage<'_>, right: &RawPage<'_>, config: &Config) -> (MethodDecision, [(u32, u128); 2]) {
    let plan = config.plan();
    by_plan(left, right, config, &plan, &mut Sketcher::of_plan(&plan))
}

/// The same with a plan and a sketcher that serve for many pairs.
pub(crate) fn by_plan(
    left: &RawPage<'_>,
    right: &RawPage<'_>,
    config: &Config,
    plan: &Plan,
    sketcher: &mut Sketcher,
) -> (MethodDecision, [(u32, u128); 2]) {
    let l = PageFeatures::new(sketcher, left);
    let r = PageFeatures::new(sketcher, right);
    (decide(plan, config, l.view(), r.view()), [(l.tokens, l.identity), (r.tokens, r.identity)])
}

/// What a method makes of a page.
pub(crate) struct PageFeatures {
    pub(crate) tokens: u32,
    pub(crate) identity: u128,
    features: Vec<u64>,
    weights: Vec<u32>,
    pub(crate) sketch: Vec<u32>,
}

impl PageFeatures {
    pub(crate) fn new(sketcher: &mut Sketcher, page: &RawPage<'_>) -> PageFeatures {
        let facts = sketcher.read(page);
        let (tokens, identity) = (facts.tokens, facts.identity);
        let sketch = sketcher.sketch();
        PageFeatures {
            tokens,
            identity,
            features: sketch.features.to_vec(),
            weights: sketch.weights.to_vec(),
            sketch: sketch.sketch.to_vec(),
        }
    }

    pub(crate) fn view(&self) -> PageSketch<'_> {
        PageSketch { features: &self.features, weights: &self.weights, sketch: &self.sketch }
    }
}

fn decide(plan: &Plan, config: &Config, left: PageSketch<'_>, right: PageSketch<'_>) -> MethodDecision {
    let found = score(plan, left, right);
    let is_bloom = plan.sketch.filter.is_some();
    MethodDecision {
        method: config.method.label(),
        near_duplicate: found.verdict == Verdict::Accepted,
        similarity: found.similarity,
        left_in_right: found.left_in_right,
        right_in_left: found.right_in_left,
        // The share of common bits decides nothing; the exact one does.
        score: if is_bloom { found.similarity } else { found.score },
        unit: config.method.unit().name(),
        needed: plan.decision.needed(found.same_site, found.is_short),
        supershingles: matches!(plan.decision, Decision::Both { .. } | Decision::BySite { .. })
            .then_some(found.agreeing),
        common_bits: is_bloom.then_some(found.score),
        estimate: found.estimate,
        rule: config.rule(),
    }
}

/// A page as it is compared: without its frame, which is listed beside it.
pub(crate) fn compared_page(
    page: &RawPage<'_>,
    tokens: u32,
    config: &Config,
    frames: Option<Arc<Frames>>,
) -> ComparedPage {
    let parts = PageReader::new(config.plan().text).without(frames).parts(page);
    let (compared, left_out): (Vec<PageBlock>, _) =
        parts.into_iter().partition(|block| block.part == BlockPart::Compared);
    let text = compared.into_iter().map(|block| block.text).collect::<Vec<_>>().join("\n");
    let mut reader = PageReader::new(TextOptions::default());
    let read = reader.read(page);
    let language = language::detect(&read.text, read.tokens).map(language::Lang::eng_name);
    let title = read.title.map(str::to_owned);
    ComparedPage {
        name: page.id.as_deref().unwrap_or_default().to_owned(),
        url: page.url.as_deref().map(str::to_owned),
        title: title.or_else(|| page.title.as_deref().map(str::to_owned)),
        tokens,
        language,
        text,
        left_out,
    }
}

/// A page block by block, as it is seen when pages are compared: which blocks are, and why the others are not. In a
/// result, the page is seen with its settings, and without the frames that were learnt there.
///
/// # Errors
/// As [`find_page`].
pub fn page_blocks(name: &str, within: Option<&str>, config: &Config) -> Result<Vec<PageBlock>> {
    let page = find_page(name, within, config)?;
    let result = within.map(Path::new).filter(|directory| directory.join(files::SUMMARY).exists());
    let (plan, frames) = match result {
        Some(directory) => (stored::summary(directory)?.config.plan(), stored::frames(directory)?),
        None => (config.plan(), None),
    };
    Ok(PageReader::new(plan.text).without(frames).parts(&page))
}

/// Finds a page: a file, or, in a result or corpus, the page with this id or URL.
///
/// # Errors
/// When there is no such page, or it cannot be read.
pub fn find_page(name: &str, within: Option<&str>, config: &Config) -> Result<RawPage<'static>> {
    if let Some(within) = within {
        let directory = Path::new(within);
        if directory.join(files::SUMMARY).exists() {
            return match find_in_result(name, directory)? {
                Some(page) => Ok(page),
                None => Err(unknown_page(directory, name)?),
            };
        }
        let reason = || Error::bad_input(directory, format!("no page has the id or URL '{name}'"));
        return find_in_corpus(name, within, config)?.ok_or_else(reason);
    }
    let path = Path::new(name);
    if !path.is_file() {
        let reason = "there is no such file; to name a page by its id or URL, say where it is: `in` DIR, a result, or `in` FILES";
        return Err(Error::bad_input(path, reason));
    }
    read_file(name, path, config)
}

/// A file that is one page. A file of many has to be searched with `in`.
fn read_file(name: &str, path: &Path, config: &Config) -> Result<RawPage<'static>> {
    let source = known_source(name, name, config.read.format).ok();
    if source.as_ref().is_some_and(|source| !source.format.is_page_file()) {
        let reason = format!("holds many pages; name one of them by its id or URL and say `in` {name}");
        return Err(Error::bad_input(path, reason));
    }
    if let Some(source) = source {
        let corpus = Corpus::new(vec![source], &config.read);
        if let Some(page) = first_page(&corpus, |_| true, name)? {
            return Ok(page);
        }
    }
    // Whatever it is called: its bytes are a page.
    let bytes = std::fs::read(path).map_err(Error::io(path, "read"))?;
    let page = RawPage::new(Body::Bytes(Cow::Owned(bytes)), Markup::Unknown);
    Ok(RawPage { id: Some(Cow::Owned(name.to_owned())), ..page })
}

fn find_in_corpus(name: &str, within: &str, config: &Config) -> Result<Option<RawPage<'static>>> {
    let corpus = Corpus::open(&[within.to_owned()], &config.read)?;
    first_page(&corpus, |page| page.url.as_deref() == Some(name) || corpus.id_of(page) == name, name)
}

/// The first page for which `is_it` holds, under the name it was asked for.
pub(crate) fn first_page(
    corpus: &Corpus,
    is_it: impl Fn(&RawPage<'_>) -> bool + Sync,
    name: &str,
) -> Result<Option<RawPage<'static>>> {
    let mut found: Option<RawPage<'static>> = None;
    corpus.scan().for_each(
        || (),
        |(), page| Ok(is_it(&page).then(|| RawPage { id: Some(Cow::Owned(name.to_owned())), ..page.into_owned() })),
        |page| {
            found = Some(page);
            Ok(ControlFlow::Break(()))
        },
    )?;
    Ok(found)
}

fn find_in_result(name: &str, directory: &Path) -> Result<Option<RawPage<'static>>> {
    let (stored, loaded) = stored::open(directory, &std::env::temp_dir())?;
    let mut page: Option<PageId> = loaded.ids.find(name);
    if page.is_none() {
        let mut scratch = Scratch::default();
        let mut same_url = Vec::new();
        for candidate in loaded.pages.all() {
            if loaded.pages.strings(candidate, &mut scratch)?.url == Some(name) {
                same_url.push(candidate);
            }
        }
        if same_url.len() > 1 {
            let ids: Vec<String> = same_url.iter().map(|&page| loaded.pages.id(page)).collect::<Result<_>>()?;
            let reason = format!("is the URL of {} pages; name one by its id:\n{}", ids.len(), first_names(&ids));
            return Err(Error::bad_input(Path::new(name), reason));
        }
        page = same_url.pop();
    }
    let Some(page) = page else { return Ok(None) };
    let found = texts::load(&loaded, &stored, &[page])?.remove(&page);
    Ok(found.map(|raw| RawPage { id: Some(Cow::Owned(name.to_owned())), ..raw }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> RawPage<'static> {
        RawPage::new(Body::Text(Cow::Owned(text.to_owned())), Markup::Text)
    }

    #[test]
    fn every_method_decides_about_equal_and_unlike_pages() {
        let one: String = (0..300).map(|n| format!("the word{n} is here and ")).collect();
        let other: String = (0..300).map(|n| format!("a term{} was over there ", n * 7)).collect();
        let same = compare(&page(&one), &page(&one), &Config::default());
        assert!(same.identical);
        assert_eq!(same.methods.len(), Method::all().len());
        for decision in &same.methods {
            assert!(decision.near_duplicate, "{decision:?}");
            assert!((decision.similarity - 1.0).abs() < 1e-12, "{decision:?}");
        }
        let unlike = compare(&page(&one), &page(&other), &Config::default());
        assert!(!unlike.identical);
        assert!(unlike.methods.iter().all(|decision| !decision.near_duplicate), "{unlike:?}");
    }
}
