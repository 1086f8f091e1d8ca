//! What a service recognises of pages that are sent to it one by one.
//!
//! In: pages in their order, each stored if it is new. Out: of those that have a near-duplicate among the stored ones, by a
//! measure that shares no code with the engine, how many are recognised; and how many are recognised wrongly.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lookalike::config::BandConfig;
use lookalike::index::IndexConfig;
use lookalike::online::{CheckOutcome, OnlineOptions, PageVerdict, StorePolicy};
use lookalike::unstable::{PageText, extract};
use lookalike::{Body, Markup, Online, RawPage};

use crate::labelled::{FramedDocs, Labelled, unpacked};
use crate::oracle::{is_unspaced, words};

/// A page that is sent.
pub struct SentPage {
    /// Its id.
    pub id: String,
    /// Where it is from, if that is said.
    pub url: Option<String>,
    /// Its text or markup.
    pub body: Vec<u8>,
    /// Which of them.
    pub markup: Markup,
}

/// A collection with the defaults of the service.
#[must_use]
pub fn default_collection() -> IndexConfig {
    IndexConfig::bands(BandConfig::default(), BandConfig::default().found_from)
}

/// Sends pages to an empty collection, and visits what comes back for each.
///
/// # Errors
/// When the collection fails.
pub fn send_one_by_one(
    config: IndexConfig,
    pages: &[SentPage],
    mut visit: impl FnMut(usize, &CheckOutcome) -> Result<()>,
) -> Result<()> {
    let directory = tempfile::tempdir()?;
    Online::create(directory.path(), config)?;
    let online = Online::open(directory.path(), OnlineOptions::default())?;
    for (number, page) in pages.iter().enumerate() {
        let body = match page.markup {
            Markup::Text => Body::Text(String::from_utf8_lossy(&page.body)),
            Markup::Html | Markup::Unknown => Body::Bytes((&page.body[..]).into()),
        };
        let mut raw = RawPage::new(body, page.markup);
        raw.id = Some(page.id.as_str().into());
        raw.url = page.url.as_deref().map(Into::into);
        visit(number, &online.insert(&raw, StorePolicy::IfNew)?)?;
    }
    online.close()?;
    Ok(())
}

/// How much of what is similar to a stored page was recognised.
#[derive(Debug, Clone, Default)]
pub struct Recognised {
    /// Pages with a stored page of similarity 0.8 to below 1, and those of them that were recognised.
    pub similar: (u64, u64),
    /// The same from 0.7 to below 0.8.
    pub less_similar: (u64, u64),
    /// Pages that were called near, and those whose similarity to all stored pages is below 0.5.
    pub near: (u64, u64),
    /// Copies, and those that were recognised.
    pub copies: (u64, u64),
    /// What was wrong or missed.
    pub mistakes: Vec<Mistake>,
}

/// Exact similarities of a text to those before it.
#[derive(Default)]
struct Before {
    by_run: HashMap<Vec<u32>, Vec<usize>>,
    sizes: Vec<usize>,
    words: HashMap<String, u32>,
}

impl Before {
    /// Runs of five words. A character of a script without spaces is half a word, as words of Japanese and Chinese have two
    /// characters on average.
    fn runs(&mut self, text: &str) -> Vec<Vec<u32>> {
        let mut numbers = Vec::new();
        for word in words(text) {
            let halves = if word.chars().all(is_unspaced) { 1 } else { 2 };
            let next = u32::try_from(self.words.len()).expect("few words");
            numbers.push((*self.words.entry(word).or_insert(next), halves));
        }
        let mut runs = Vec::new();
        for start in 0..numbers.len() {
            let (mut run, mut halves) = (Vec::with_capacity(5), 0);
            for (number, more) in &numbers[start..] {
                run.push(*number);
                halves += more;
                if halves >= 10 {
                    runs.push(run);
                    break;
                }
            }
        }
        runs.sort_unstable();
        runs.dedup();
        runs
    }

    /// The largest similarity to what was stored, and which of that it is.
    fn largest(&self, runs: &[Vec<u32>]) -> (f64, usize) {
        let mut shared: HashMap<usize, usize> = HashMap::new();
        for run in runs {
            self.by_run.get(run).into_iter().flatten().for_each(|&page| *shared.entry(page).or_default() += 1);
        }
        let similarity = |(page, both)| (both as f64 / (runs.len() + self.sizes[page] - both) as f64, page);
        shared.into_iter().map(similarity).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))).unwrap_or_default()
    }

    fn store(&mut self, runs: Vec<Vec<u32>>) {
        let number = self.sizes.len();
        self.sizes.push(runs.len());
        runs.into_iter().for_each(|run| self.by_run.entry(run).or_default().push(number));
    }
}

/// Sends texts one by one, and compares what comes back with exact similarities.
///
/// # Errors
/// When the collection fails.
pub fn texts(config: IndexConfig, pages: &[SentPage]) -> Result<Recognised> {
    let (mut found, mut before) = (Recognised::default(), Before::default());
    let mut stored: Vec<usize> = Vec::new();
    send_one_by_one(config, pages, |number, outcome| {
        let runs = before.runs(&String::from_utf8_lossy(&pages[number].body));
        let (largest, most_similar) = before.largest(&runs);
        let is_new = outcome.verdict == PageVerdict::New;
        let other = stored.get(most_similar).map_or("", |&other| &pages[other].id);
        let mut is_mistake = false;
        // Shorter ones are compared as copies only.
        if outcome.tokens >= 8 && !runs.is_empty() {
            let counted = match largest {
                1.0.. => Some(&mut found.copies),
                0.8.. => Some(&mut found.similar),
                0.7.. => Some(&mut found.less_similar),
                _ => None,
            };
            if let Some(counted) = counted {
                *counted = (counted.0 + 1, counted.1 + u64::from(!is_new));
                is_mistake = is_new;
            }
        }
        if outcome.verdict == PageVerdict::Near {
            found.near = (found.near.0 + 1, found.near.1 + u64::from(largest < 0.5));
            is_mistake |= largest < 0.5;
        }
        found.mistakes.extend(is_mistake.then(|| Mistake::new(&pages[number].id, other, largest, outcome)));
        if outcome.stored {
            before.store(runs);
            stored.push(number);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Of the pages of a labelled set that have a stored page of their cluster before them: how many there are, and how many
/// were recognised. Then pages that were called near, and those of them that were like no page of their cluster.
///
/// # Errors
/// When the collection fails.
pub fn by_label(config: IndexConfig, set: &Labelled) -> Result<[u64; 4]> {
    let pages = pages_of(&set.directory, |id| set.cluster_of.contains_key(id))?;
    let mut stored: HashMap<&str, u64> = HashMap::new();
    let mut counts = [0; 4];
    send_one_by_one(config, &pages, |number, outcome| {
        let cluster = set.cluster_of[&pages[number].id].as_str();
        if stored.contains_key(cluster) {
            counts[0] += 1;
            counts[1] += u64::from(outcome.verdict != PageVerdict::New);
        }
        if outcome.verdict == PageVerdict::Near {
            counts[2] += 1;
            let is_right = outcome.of.iter().any(|of| set.cluster_of.get(&of.id).is_some_and(|other| other == cluster));
            counts[3] += u64::from(!is_right);
        }
        if outcome.stored {
            *stored.entry(cluster).or_default() += 1;
        }
        Ok(())
    })?;
    Ok(counts)
}

/// What is recognised of the pages of a site, after those that its frame is learnt from.
#[derive(Debug, Clone, Default)]
pub struct FramedRecognised {
    /// Pages that were sent, the first ones included.
    pub pages: u64,
    /// Pages that were called near, and those of them whose main elements have a similarity below 0.5.
    pub near: (u64, u64),
    /// Pages with a stored page of similarity 0.8 or more, and those of them that were recognised.
    pub similar: (u64, u64),
    /// The same from 0.7 on.
    pub less_similar: (u64, u64),
    /// What was wrong or missed.
    pub mistakes: Vec<Mistake>,
}

/// A page that was called near by mistake, or new.
#[derive(Debug, Clone)]
pub struct Mistake {
    /// The page.
    pub id: String,
    /// The page that it was called near to, or the most similar one of the stored ones.
    pub other: String,
    /// The similarity of their main elements.
    pub similarity: f64,
    /// What the collection has for its similarity and the threshold, if it has compared them.
    pub compared: Option<(f64, f64)>,
    /// Whether it was called near.
    pub is_near: bool,
}

impl Mistake {
    fn new(id: &str, other: &str, similarity: f64, outcome: &CheckOutcome) -> Mistake {
        let compared = outcome.of.iter().chain(&outcome.rejected).find(|compared| compared.id == other);
        let compared = compared.map(|compared| (compared.similarity.unwrap_or_default(), compared.threshold));
        let is_near = outcome.verdict != PageVerdict::New;
        Mistake { id: id.to_owned(), other: other.to_owned(), similarity, compared, is_near }
    }
}

impl FramedRecognised {
    fn add(&mut self, other: &FramedRecognised) {
        let sum = |left: &mut (u64, u64), right: (u64, u64)| *left = (left.0 + right.0, left.1 + right.1);
        self.pages += other.pages;
        sum(&mut self.near, other.near);
        sum(&mut self.similar, other.similar);
        sum(&mut self.less_similar, other.less_similar);
        self.mistakes.extend_from_slice(&other.mistakes);
    }

    /// All sites together.
    #[must_use]
    pub fn total(sites: &BTreeMap<String, FramedRecognised>) -> FramedRecognised {
        let mut total = FramedRecognised::default();
        sites.values().for_each(|site| total.add(site));
        total
    }
}

/// What is recognised of pages in frames, from the hundredth page of each site on.
///
/// # Errors
/// When the collection fails.
pub fn in_frames(
    config: IndexConfig,
    docs: &FramedDocs,
    with_urls: bool,
) -> Result<BTreeMap<String, FramedRecognised>> {
    const KNOWN_FROM: u64 = 100;
    let mut pages = pages_of(&docs.directory, |_| true)?;
    if with_urls {
        for page in &mut pages {
            let (site, rest) = page.id.split_once('/').unwrap_or(("", &page.id));
            page.url = Some(format!("http://{site}.example/{rest}"));
        }
    }
    let mut sites: BTreeMap<String, FramedRecognised> = BTreeMap::new();
    let mut stored: Vec<usize> = Vec::new();
    send_one_by_one(config, &pages, |number, outcome| {
        let id = &pages[number].id;
        let site = id.split_once('/').map_or("", |(site, _)| site);
        let found = sites.entry(site.to_owned()).or_default();
        found.pages += 1;
        if found.pages > KNOWN_FROM {
            let is_new = outcome.verdict == PageVerdict::New;
            if outcome.verdict == PageVerdict::Near {
                let similarity = docs.similarity(id, &outcome.of[0].id);
                found.near = (found.near.0 + 1, found.near.1 + u64::from(similarity < 0.5));
                found
                    .mistakes
                    .extend((similarity < 0.5).then(|| Mistake::new(id, &outcome.of[0].id, similarity, outcome)));
            }
            let similarities = stored.iter().map(|&other| (docs.similarity(id, &pages[other].id), other));
            let (largest, other) = similarities.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
            for (least, counted) in [(0.8, &mut found.similar), (0.7, &mut found.less_similar)] {
                if largest >= least {
                    *counted = (counted.0 + 1, counted.1 + u64::from(!is_new));
                }
            }
            let is_missed = is_new && largest >= 0.7;
            found.mistakes.extend(is_missed.then(|| Mistake::new(id, &pages[other].id, largest, outcome)));
        }
        if outcome.stored {
            stored.push(number);
        }
        Ok(())
    })?;
    Ok(sites)
}

/// The pages of a folder, by their paths.
fn pages_of(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<SentPage>> {
    let mut paths = Vec::new();
    let mut folders = vec![directory.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { paths.push(path) }
        }
    }
    paths.sort();
    let mut pages = Vec::new();
    for path in paths {
        let id = path.strip_prefix(directory)?.to_string_lossy().into_owned();
        if is_wanted(&id) {
            pages.push(SentPage { id, url: None, body: fs::read(&path)?, markup: Markup::Html });
        }
    }
    Ok(pages)
}

/// The texts of the pages of a folder.
///
/// # Errors
/// When they cannot be read.
pub fn texts_of(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<SentPage>> {
    let mut text = PageText::default();
    let mut pages = pages_of(directory, is_wanted)?;
    for page in &mut pages {
        extract(&String::from_utf8_lossy(&page.body), None, &mut text);
        (page.body, page.markup) = (text.text.clone().into_bytes(), Markup::Text);
    }
    Ok(pages)
}

/// The stories of the Reuters collection, if they are there.
///
/// # Errors
/// When they cannot be read.
pub fn reuters() -> Result<Option<Vec<SentPage>>> {
    let Some(root) = unpacked("reuters21578.tar.zst", "reuters21578")? else { return Ok(None) };
    let mut files: Vec<PathBuf> = fs::read_dir(&root)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "sgm"));
    files.sort();
    let mut pages = Vec::new();
    for file in files {
        let bytes = fs::read(&file)?;
        let text = String::from_utf8_lossy(&bytes);
        for story in text.split("<REUTERS").skip(1) {
            let Some((_, rest)) = story.split_once("<BODY>") else { continue };
            let body = rest.split_once("</BODY>").map_or(rest, |(body, _)| body);
            let body = body.replace("&lt;", "<").replace("&gt;", ">").replace("&#3;", "").replace("&amp;", "&");
            let id = format!("story-{}", pages.len());
            pages.push(SentPage { id, url: None, body: body.into_bytes(), markup: Markup::Text });
        }
    }
    Ok(Some(pages))
}
