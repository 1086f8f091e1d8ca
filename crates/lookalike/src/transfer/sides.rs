//! The two corpora: judged pages of one, and their counterparts in the other, found in one reading of each.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::candidate::hamming_join::QueryTables;
use crate::config::{Config, FingerprintConfig};
use crate::error::{Error, Result};
use crate::index::pages::fingerprint;
use crate::index::{FingerprintOrigin, Id, Index, OpenOptions};
use crate::method::DEFAULT_SEED;
use crate::observe::{Observer, Stage};
use crate::page::{RawPage, Token};
use crate::plan::Plan;
use crate::read::{Corpus, ReadConfig};
use crate::sketcher::Sketcher;
use crate::text::site::SiteRule;
use crate::text::{PageReader, TextOptions};
use crate::transfer::frames::Frame;
use crate::transfer::ngrams::{self, BandTable, Near, Room};
use crate::transfer::qrels::Judgment;
use crate::transfer::{Counterpart, TransferOptions, Way, urls};

/// A corpus: pages, or fingerprints of them.
pub(super) enum Side {
    Pages(Box<Corpus>, Vec<String>),
    Index(Box<Index>),
}

impl Side {
    pub(super) fn new(inputs: &[String], config: &ReadConfig) -> Result<Side> {
        if let [only] = inputs
            && Path::new(only).join("manifest.json").exists()
        {
            let path = PathBuf::from(only);
            let index = Index::open(&path, OpenOptions::default())?;
            return Ok(Side::Index(Box::new(index)));
        }
        Ok(Side::Pages(Box::new(Corpus::open(inputs, config)?), inputs.to_vec()))
    }

    fn meaning(&self) -> Option<&FingerprintOrigin> {
        match self {
            Side::Index(index) => Some(&index.config().fingerprints),
            Side::Pages(..) => None,
        }
    }
}

/// The config that both sides' fingerprints are made with.
pub(super) fn common_config(from: &Side, to: &Side, given: &Config) -> Result<Config> {
    let of_index = |fingerprints: &FingerprintConfig| {
        let config = fingerprints.config(&given.read, given.pairs.min_tokens);
        config.with_method(config.method.with_threshold(f64::from(given.radius())))
    };
    let config = match (from.meaning(), to.meaning()) {
        (None, None) => given.clone(),
        (Some(FingerprintOrigin::Pages(config)), None) | (None, Some(FingerprintOrigin::Pages(config))) => {
            of_index(config)
        }
        (Some(FingerprintOrigin::Given), None) | (None, Some(FingerprintOrigin::Given)) => {
            return Err(Error::Usage(
                "the fingerprints of the index come from elsewhere, so pages cannot be given matching ones; use an index that was made of pages".to_owned(),
            ));
        }
        (Some(left), Some(right)) if left == right => match left {
            FingerprintOrigin::Pages(config) => of_index(config),
            FingerprintOrigin::Given => given.clone(),
        },
        (Some(_), Some(_)) => {
            return Err(Error::Usage(
                "the two indexes hold fingerprints of different kinds; build one of them again with the settings of the other (lookalike index stats shows them)".to_owned(),
            ));
        }
    };
    FingerprintConfig::of_config(&config)
        .ok_or_else(|| Error::invalid("method", config.method.name(), "must be simhash: fingerprints are compared"))?
        .check()?;
    Ok(config)
}

/// A judged page.
pub(super) struct JudgedPage {
    pub(super) id: String,
    pub(super) url: Option<String>,
    pub(super) fingerprint: Option<u64>,
    /// What of it is compared; nothing where only its fingerprint is known.
    tokens: Option<Vec<Token>>,
}

/// The judged pages of a corpus.
pub(super) struct JudgedPages {
    pub(super) pages: Vec<JudgedPage>,
    by_id: HashMap<String, u32>,
    by_url: HashMap<String, Vec<u32>>,
    by_words: HashMap<u64, Vec<u32>>,
    /// Hashes of all normalised URLs of the corpus, sorted, each once.
    urls: Vec<u64>,
    /// Pages of the corpus.
    pub(super) corpus_pages: u64,
    /// Records that could not be used.
    pub(super) skipped: u64,
}

/// The counterparts that were found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) counterparts: Vec<Counterpart>,
    /// Pages of the other corpus.
    pub(super) corpus_pages: u64,
    /// Pages of the other corpus whose URL the first has, too.
    pub(super) shared_urls: u64,
    /// Sites of those.
    pub(super) sites: BTreeMap<String, u64>,
    /// Whether texts of both sides were compared.
    pub(super) has_texts: bool,
    /// Records that could not be used.
    pub(super) skipped: u64,
}

/// The URL that a page is known by: its own, or its path where it is a file of its own.
fn url_of(page: &RawPage<'_>, corpus: &Corpus) -> Option<String> {
    match page.url.as_deref() {
        Some(url) => urls::normalized(url),
        None if corpus.source(page.source).format.is_page_file() => urls::path(page.id.as_deref()?),
        None => None,
    }
}

/// What one thread needs to read a page both ways.
struct Eyes {
    sketcher: Sketcher,
    reader: PageReader,
    room: Room,
}

impl Eyes {
    fn new(plan: &Plan, config: &Config) -> Eyes {
        let options = TextOptions { words: false, blocks: true, ..config.plan().text };
        Eyes { sketcher: Sketcher::new(plan), reader: PageReader::new(options), room: Room::default() }
    }
}

fn words_hash(tokens: &[Token]) -> u64 {
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    xxh3_64(&bytes)
}

impl JudgedPages {
    /// The number of a judged page.
    pub(super) fn number(&self, id: &str) -> Option<u32> {
        self.by_id.get(id).copied()
    }

    pub(super) fn read(
        side: &Side,
        judgments: &[Judgment],
        config: &Config,
        options: &TransferOptions,
        observer: &dyn Observer,
    ) -> Result<JudgedPages> {
        let wanted: std::collections::HashSet<&str> = judgments.iter().map(|row| row.page.as_str()).collect();
        let mut judged = JudgedPages {
            pages: Vec::new(),
            by_id: HashMap::new(),
            by_url: HashMap::new(),
            by_words: HashMap::new(),
            urls: Vec::new(),
            corpus_pages: 0,
            skipped: 0,
        };
        match side {
            Side::Index(index) => {
                index.reader().for_each_row(&mut |value, id| {
                    let id = id.to_string();
                    judged.corpus_pages += 1;
                    let url = id.contains("://").then(|| id.clone());
                    judged.urls.extend(url.as_deref().and_then(urls::normalized).map(|url| xxh3_64(url.as_bytes())));
                    if wanted.contains(id.as_str()) {
                        let key = url.as_deref().and_then(urls::normalized);
                        judged.push(JudgedPage { id, url, fingerprint: Some(value), tokens: None }, key);
                    }
                    Ok(())
                })?;
            }
            Side::Pages(corpus, inputs) => {
                let plan = config.plan();
                let frame = Frame::find(corpus, config, options.threads)?;
                observer.start(Stage::Read, corpus.bytes());
                let scan = corpus.scan().threads(options.threads).observed_by(observer).without_revisits();
                let scanned = scan.for_each(
                    || Eyes::new(&plan, config),
                    |eyes, page| {
                        let (id, key) = (corpus.id_of(&page), url_of(&page, corpus));
                        let hash = key.as_deref().map(|key| xxh3_64(key.as_bytes()));
                        let is_judged = wanted.contains(id.as_str());
                        let judged = is_judged.then(|| JudgedPage {
                            id,
                            url: page.url.as_deref().map(str::to_owned),
                            fingerprint: fingerprint(&page, &mut eyes.sketcher),
                            tokens: Some(frame.without(&page, &mut eyes.reader)),
                        });
                        Ok(Some((hash, judged.map(|page| (page, key)))))
                    },
                    |(hash, found)| {
                        judged.urls.extend(hash);
                        found.into_iter().for_each(|(page, key)| judged.push(page, key));
                        Ok(ControlFlow::Continue(()))
                    },
                )?;
                observer.finish(Stage::Read);
                judged.corpus_pages = scanned.pages;
                judged.skipped = scanned.skipped;
                if judged.corpus_pages == 0 {
                    return Err(corpus.no_pages(inputs, &[]));
                }
            }
        }
        judged.urls.sort_unstable();
        judged.urls.dedup();
        Ok(judged)
    }

    fn push(&mut self, page: JudgedPage, key: Option<String>) {
        // The first page of an id is the one that is meant.
        if self.by_id.contains_key(&page.id) {
            return;
        }
        let number = u32::try_from(self.pages.len()).unwrap_or(u32::MAX);
        self.by_id.insert(page.id.clone(), number);
        if let Some(key) = key {
            self.by_url.entry(key).or_default().push(number);
        }
        if let Some(tokens) = page.tokens.as_ref().filter(|tokens| !tokens.is_empty()) {
            self.by_words.entry(words_hash(tokens)).or_default().push(number);
        }
        self.pages.push(page);
    }

    fn fingerprints(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        (0u32..).zip(&self.pages).filter_map(|(number, page)| Some((number, page.fingerprint?)))
    }

    /// Finds the counterparts of all judged pages.
    pub(super) fn find_in(
        &self,
        side: &Side,
        config: &Config,
        options: &TransferOptions,
        observer: &dyn Observer,
    ) -> Result<Found> {
        match side {
            Side::Index(index) => self.find_in_index(index, config),
            Side::Pages(corpus, inputs) => self.find_in_pages(corpus, inputs, config, options, observer),
        }
    }

    /// Fingerprints alone decide: there is no text to compare.
    fn find_in_index(&self, index: &Index, config: &Config) -> Result<Found> {
        let reader = index.reader();
        let near = Near::new(self.fingerprints(), reader.len().1, config.radius());
        let mut found = Found { corpus_pages: reader.len().0, ..Found::default() };
        let mut rows: HashMap<(u32, String), Counterpart> = HashMap::new();
        for (value, stored) in reader.batch(near.values(), config.radius())? {
            for id in reader.ids(stored, usize::MAX)? {
                for &judged in near.who(value) {
                    let distance = Some((value ^ stored).count_ones());
                    let row = rows.entry((judged, id.to_string()));
                    row.or_insert_with(|| counterpart(judged, &id, Way::Near)).distance = distance;
                }
            }
        }
        reader.for_each_row(&mut |value, id| {
            let name = id.to_string();
            let Some(key) = name.contains("://").then(|| urls::normalized(&name)).flatten() else { return Ok(()) };
            if self.urls.binary_search(&xxh3_64(key.as_bytes())).is_ok() {
                found.shared_urls += 1;
                *found.sites.entry(SiteRule::Registrable.site(&name).unwrap_or_default()).or_default() += 1;
            }
            for &judged in self.by_url.get(&key).into_iter().flatten() {
                let distance = self.pages[judged as usize].fingerprint.map(|own| (own ^ value).count_ones());
                let row = rows.entry((judged, name.clone())).or_insert_with(|| counterpart(judged, id, Way::Url));
                let is_near = distance.is_some_and(|distance| distance <= config.radius());
                row.way = Some(if is_near { Way::Both } else { Way::Url });
                row.distance = distance;
            }
            Ok(())
        })?;
        found.counterparts = rows.into_values().collect();
        Ok(found)
    }

    fn find_in_pages(
        &self,
        corpus: &Corpus,
        inputs: &[String],
        config: &Config,
        options: &TransferOptions,
        observer: &dyn Observer,
    ) -> Result<Found> {
        let plan = config.plan();
        let frame = Frame::find(corpus, config, options.threads)?;
        let search = Search::new(self, config, options);
        let tables = search.tables();
        let mut found = Found { has_texts: self.pages.iter().any(|page| page.tokens.is_some()), ..Found::default() };
        observer.start(Stage::Read, corpus.bytes());
        let scan = corpus.scan().threads(options.threads).observed_by(observer).without_revisits();
        let scanned = scan.for_each_batch(
            || Eyes::new(&plan, config),
            |eyes, records| {
                let mut rows = Vec::new();
                records.for_each_page(|page| {
                    rows.push(OtherPage {
                        id: corpus.id_of(&page),
                        key: url_of(&page, corpus),
                        url: page.url.as_deref().map(str::to_owned),
                        fingerprint: fingerprint(&page, &mut eyes.sketcher),
                        tokens: frame.without(&page, &mut eyes.reader),
                    });
                    Ok(())
                })?;
                let counterparts = search.counterparts(&rows, &tables, &mut eyes.room);
                let shared: Vec<Option<String>> = rows
                    .iter()
                    .filter(|row| {
                        let hash = row.key.as_ref().map(|key| xxh3_64(key.as_bytes()));
                        hash.is_some_and(|hash| self.urls.binary_search(&hash).is_ok())
                    })
                    .map(|row| row.url.as_deref().and_then(|url| SiteRule::Registrable.site(url)))
                    .collect();
                Ok((counterparts, shared))
            },
            |(counterparts, shared)| {
                found.counterparts.extend(counterparts);
                found.shared_urls += shared.len() as u64;
                for site in shared.into_iter().flatten() {
                    *found.sites.entry(site).or_default() += 1;
                }
                Ok(ControlFlow::Continue(()))
            },
        )?;
        observer.finish(Stage::Read);
        found.corpus_pages = scanned.pages;
        found.skipped = scanned.skipped;
        if found.corpus_pages == 0 {
            return Err(corpus.no_pages(inputs, &[]));
        }
        Ok(found)
    }
}

fn counterpart(judged: u32, id: &Id, way: Way) -> Counterpart {
    let id = id.to_string();
    let url = id.contains("://").then(|| id.clone());
    Counterpart {
        judged,
        id,
        url,
        way: Some(way),
        distance: None,
        similarity: None,
        near_fingerprints: 0,
        near_sets: 0,
    }
}

/// A page of the other corpus.
struct OtherPage {
    id: String,
    url: Option<String>,
    /// Its URL, normalised.
    key: Option<String>,
    fingerprint: Option<u64>,
    tokens: Vec<Token>,
}

/// Everything that judged pages are found by.
struct Search<'a> {
    judged: &'a JudgedPages,
    near: Near,
    /// By length of n-grams.
    fingerprints: Vec<Near>,
    bands: Vec<BandTable>,
    threshold: f64,
    min_tokens: usize,
    radius: u32,
}

/// Tables over all fingerprints: the page's own, and those of n-grams.
struct Tables<'a> {
    own: QueryTables<'a>,
    ngrams: Vec<QueryTables<'a>>,
}

/// The length of n-grams whose exact similarity decides.
const DECIDING: usize = 5;
/// The same for pages with few words, of which one that differs changes too many long n-grams.
const DECIDING_OF_FEW: usize = 2;
const FEW: usize = 40;
/// The number of pages that tables are laid out for: a batch.
const BATCH_PAGES: u64 = 256;

impl<'a> Search<'a> {
    fn new(judged: &'a JudgedPages, config: &Config, options: &TransferOptions) -> Search<'a> {
        let mut room = Room::default();
        let (mut fingerprints, mut bands) = (Vec::new(), Vec::new());
        for n in ngrams::LENGTHS {
            let mut table = BandTable::new(n, options.threshold, DEFAULT_SEED);
            let mut values = Vec::new();
            for (number, page) in (0u32..).zip(&judged.pages) {
                let long =
                    page.tokens.as_ref().filter(|tokens| tokens.len() >= config.pairs.min_tokens.max(1) as usize);
                if let Some(tokens) = long {
                    table.add(number, tokens, &mut room);
                    values.extend(ngrams::simhash(tokens, n, &mut room).map(|value| (number, value)));
                }
            }
            bands.push(table);
            fingerprints.push(Near::new(values.into_iter(), BATCH_PAGES, config.radius()));
        }
        Search {
            judged,
            near: Near::new(judged.fingerprints(), BATCH_PAGES, config.radius()),
            fingerprints,
            bands,
            threshold: options.threshold,
            min_tokens: config.pairs.min_tokens.max(1) as usize,
            radius: config.radius(),
        }
    }

    fn tables(&self) -> Tables<'_> {
        Tables { own: self.near.tables(), ngrams: self.fingerprints.iter().map(Near::tables).collect() }
    }

    /// The judged pages that pages of a batch are counterparts of.
    fn counterparts(&self, rows: &[OtherPage], tables: &Tables<'_>, room: &mut Room) -> Vec<Counterpart> {
        // For each judged page and page of the batch: n-grams at which fingerprints are near.
        let mut candidates: BTreeMap<(usize, u32), u8> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            let mut add = |judged: &[u32]| {
                judged.iter().for_each(|&judged| {
                    candidates.entry((at, judged)).or_default();
                });
            };
            if let Some(key) = &row.key {
                add(self.judged.by_url.get(key).map_or(&[], Vec::as_slice));
            }
            if !row.tokens.is_empty() {
                add(self.judged.by_words.get(&words_hash(&row.tokens)).map_or(&[], Vec::as_slice));
            }
            if row.tokens.len() >= self.min_tokens {
                self.bands.iter().for_each(|table| add(&table.find(&row.tokens, room)));
            }
        }
        let (places, values): (Vec<usize>, Vec<u64>) =
            rows.iter().enumerate().filter_map(|(at, row)| Some((at, row.fingerprint?))).unzip();
        for (at, judged, _) in self.near.find(&tables.own, &values) {
            candidates.entry((places[at], judged)).or_default();
        }
        for (n, (near, tables)) in self.fingerprints.iter().zip(&tables.ngrams).enumerate() {
            let long = rows.iter().enumerate().filter(|row| row.1.tokens.len() >= self.min_tokens);
            let (places, values): (Vec<usize>, Vec<u64>) =
                long.filter_map(|(at, row)| Some((at, ngrams::simhash(&row.tokens, n + 1, room)?))).unzip();
            for (at, judged, _) in near.find(tables, &values) {
                *candidates.entry((places[at], judged)).or_default() |= 1 << n;
            }
        }
        let found = candidates.into_iter();
        found.filter_map(|((at, judged), near)| self.compare(&rows[at], judged, near)).collect()
    }

    fn compare(&self, other: &OtherPage, number: u32, near_fingerprints: u8) -> Option<Counterpart> {
        let judged = &self.judged.pages[number as usize];
        let key = other.key.as_ref();
        let same_url = key.is_some_and(|key| self.judged.by_url.get(key).is_some_and(|who| who.contains(&number)));
        let distance = judged.fingerprint.zip(other.fingerprint).map(|(a, b)| (a ^ b).count_ones());
        let (mut similarity, mut near_sets) = (None, 0u8);
        if let Some(tokens) = &judged.tokens {
            let is_long = tokens.len() >= self.min_tokens && other.tokens.len() >= self.min_tokens;
            let exact = |n: usize| match is_long || *tokens == other.tokens {
                true => ngrams::similarity(tokens, &other.tokens, n),
                // Short pages are the same only if they are the same.
                false => 0.0,
            };
            let is_few = tokens.len().min(other.tokens.len()) < FEW;
            let deciding = if is_few { DECIDING_OF_FEW } else { DECIDING };
            for n in ngrams::LENGTHS {
                let found = exact(n);
                near_sets |= u8::from(found >= self.threshold) << (n - 1);
                if n == deciding {
                    similarity = Some(found);
                }
            }
        }
        let is_near = match similarity {
            Some(similarity) => similarity >= self.threshold,
            None => distance.is_some_and(|distance| distance <= self.radius),
        };
        let way = match (same_url, is_near) {
            (true, true) => Some(Way::Both),
            (true, false) => Some(Way::Url),
            (false, true) => Some(Way::Near),
            (false, false) if near_fingerprints != 0 || near_sets != 0 => None,
            (false, false) => return None,
        };
        Some(Counterpart {
            judged: number,
            id: other.id.clone(),
            url: other.url.clone(),
            way,
            distance,
            similarity,
            near_fingerprints,
            near_sets,
        })
    }
}
