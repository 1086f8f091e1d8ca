//! The second corpus → the counterparts of judged pages, found in one reading of it.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;

use crate::candidate::hamming_join::QueryTables;
use crate::config::Config;
use crate::error::Result;
use crate::index::{Id, Index};
use crate::method::DEFAULT_SEED;
use crate::observe::Observer;
use crate::page::{RawPage, Token};
use crate::transfer::judged::{JudgedPage, JudgedPages};
use crate::transfer::ngrams::{self, BandTable, NearFingerprints, NgramScratch};
use crate::transfer::side::{PageFiles, PageWorker, ReadCounts, Side, url_in_id};
use crate::transfer::{Counterpart, DomainRule, TransferOptions, Way, urls};

/// The counterparts that were found.
#[derive(Default)]
pub(super) struct Counterparts {
    pub(super) rows: Vec<Counterpart>,
    /// What was read of the second corpus.
    pub(super) counts: ReadCounts,
    /// Pages of the second corpus whose URL the first has, too.
    pub(super) shared_urls: u64,
    /// Domains of those.
    pub(super) sites: BTreeMap<String, u64>,
    /// Whether texts of both sides were compared.
    pub(super) has_texts: bool,
}

impl Counterparts {
    /// Finds the counterparts of all judged pages.
    pub(super) fn find(
        search: &CounterpartSearch<'_>,
        side: &Side,
        config: &Config,
        options: &TransferOptions,
        observer: &dyn Observer,
    ) -> Result<Counterparts> {
        match side {
            Side::Index(index) => find_in_index(search.judged, index, config, &options.domains),
            Side::Pages(files) => find_in_pages(search, files, config, options, observer),
        }
    }
}

/// An index stores no text, so its fingerprints decide.
fn find_in_index(judged: &JudgedPages, index: &Index, config: &Config, domains: &DomainRule) -> Result<Counterparts> {
    let reader = index.reader();
    let near = NearFingerprints::new(judged.fingerprints(), reader.len().1, config.radius());
    let counts = ReadCounts { pages: reader.len().0, skipped: 0 };
    let mut found = Counterparts { counts, ..Counterparts::default() };
    let mut rows: HashMap<(u32, String), Counterpart> = HashMap::new();
    for (value, stored) in reader.batch(near.values(), config.radius())? {
        for id in reader.ids(stored, usize::MAX)? {
            for &number in near.pages_with(value) {
                let distance = Some((value ^ stored).count_ones());
                let row = rows.entry((number, id.to_string()));
                row.or_insert_with(|| by_id(number, &id, Way::Near)).distance = distance;
            }
        }
    }
    reader.for_each_row(&mut |value, id| {
        let name = id.to_string();
        let Some(key) = url_in_id(&name).and_then(urls::normalized) else { return Ok(()) };
        if judged.corpus_has_url(&key) {
            found.shared_urls += 1;
            if let Some(domain) = domains.domain(&name) {
                *found.sites.entry(domain).or_default() += 1;
            }
        }
        for &number in judged.with_url(&key) {
            let distance = judged.pages[number as usize].fingerprint.map(|own| (own ^ value).count_ones());
            let row = rows.entry((number, name.clone())).or_insert_with(|| by_id(number, id, Way::Url));
            let is_near = distance.is_some_and(|distance| distance <= config.radius());
            row.way = Some(if is_near { Way::Both } else { Way::Url });
            row.distance = distance;
        }
        Ok(())
    })?;
    found.rows = rows.into_values().collect();
    Ok(found)
}

/// A counterpart of which an index knows the id alone.
fn by_id(judged: u32, id: &Id, way: Way) -> Counterpart {
    let id = id.to_string();
    Counterpart {
        judged,
        url: url_in_id(&id).map(str::to_owned),
        id,
        way: Some(way),
        distance: None,
        similarity: None,
        near_fingerprints: 0,
        near_sets: 0,
    }
}

fn find_in_pages(
    search: &CounterpartSearch<'_>,
    files: &PageFiles,
    config: &Config,
    options: &TransferOptions,
    observer: &dyn Observer,
) -> Result<Counterparts> {
    let judged = search.judged;
    let tables = search.tables();
    let has_texts = judged.pages.iter().any(|page| page.tokens.is_some());
    let mut found = Counterparts { has_texts, ..Counterparts::default() };
    let describe = OtherPage::new;
    let finish = |worker: &mut PageWorker<'_>, rows: Vec<OtherPage>| {
        let shared = rows.iter().filter(|row| row.key.as_deref().is_some_and(|key| judged.corpus_has_url(key)));
        let site = |row: &OtherPage| row.url.as_deref().and_then(|url| options.domains.domain(url));
        let shared_sites: Vec<Option<String>> = shared.map(site).collect();
        (search.counterparts(&rows, &tables, &mut worker.scratch), shared_sites)
    };
    let collect = |(rows, shared_sites): (Vec<Counterpart>, Vec<Option<String>>)| {
        found.rows.extend(rows);
        found.shared_urls += shared_sites.len() as u64;
        for site in shared_sites.into_iter().flatten() {
            *found.sites.entry(site).or_default() += 1;
        }
    };
    let counts = files.read(config, options.threads, observer, describe, finish, collect)?;
    found.counts = counts;
    Ok(found)
}

/// A page of the other corpus.
pub(super) struct OtherPage {
    id: String,
    pub(super) url: Option<String>,
    /// Its URL, normalised.
    pub(super) key: Option<String>,
    fingerprint: Option<u64>,
    tokens: Vec<Token>,
}

impl OtherPage {
    pub(super) fn new(worker: &mut PageWorker<'_>, page: &RawPage<'_>) -> OtherPage {
        OtherPage {
            id: worker.id(page),
            key: worker.url_key(page),
            url: page.url.as_deref().map(str::to_owned),
            fingerprint: worker.fingerprint(page),
            tokens: worker.tokens(page),
        }
    }
}

/// Everything that judged pages are found by.
pub(super) struct CounterpartSearch<'a> {
    pub(super) judged: &'a JudgedPages,
    near: NearFingerprints,
    /// By length of n-grams.
    fingerprints: Vec<NearFingerprints>,
    bands: Vec<BandTable>,
    threshold: f64,
    min_tokens: usize,
    radius: u32,
}

/// How two pages are alike.
pub(super) struct Likeness {
    /// Differing bits of the fingerprints, where both have one.
    pub(super) distance: Option<u32>,
    /// Exact similarity, where both texts are at hand.
    pub(super) similarity: Option<f64>,
    /// Lengths of n-grams at which the exact similarity reaches the threshold.
    near_sets: u8,
    /// Whether they are near-duplicates.
    is_near: bool,
}

/// Tables over all fingerprints: the page's own, and those of n-grams.
pub(super) struct SearchTables<'a> {
    own: QueryTables<'a>,
    ngrams: Vec<QueryTables<'a>>,
}

/// The length of n-grams whose exact similarity decides.
const DECIDING: usize = 5;
/// The same for pages with few words, of which one that differs changes too many long n-grams.
const DECIDING_OF_FEW: usize = 2;
const FEW: usize = 40;
/// The number of pages that tables are laid out for: a batch.
pub(super) const BATCH: usize = 256;
const BATCH_PAGES: u64 = BATCH as u64;

impl<'a> CounterpartSearch<'a> {
    pub(super) fn new(judged: &'a JudgedPages, config: &Config, options: &TransferOptions) -> CounterpartSearch<'a> {
        let mut scratch = NgramScratch::default();
        let (mut fingerprints, mut bands) = (Vec::new(), Vec::new());
        for n in ngrams::LENGTHS {
            let mut table = BandTable::new(n, options.threshold, DEFAULT_SEED);
            let mut values = Vec::new();
            for (number, page) in (0u32..).zip(&judged.pages) {
                let long =
                    page.tokens.as_ref().filter(|tokens| tokens.len() >= config.pairs.min_tokens.max(1) as usize);
                if let Some(tokens) = long {
                    table.add(number, tokens, &mut scratch);
                    values.extend(ngrams::simhash(tokens, n, &mut scratch).map(|value| (number, value)));
                }
            }
            bands.push(table);
            fingerprints.push(NearFingerprints::new(values.into_iter(), BATCH_PAGES, config.radius()));
        }
        CounterpartSearch {
            judged,
            near: NearFingerprints::new(judged.fingerprints(), BATCH_PAGES, config.radius()),
            fingerprints,
            bands,
            threshold: options.threshold,
            min_tokens: config.pairs.min_tokens.max(1) as usize,
            radius: config.radius(),
        }
    }

    pub(super) fn tables(&self) -> SearchTables<'_> {
        SearchTables {
            own: self.near.tables(),
            ngrams: self.fingerprints.iter().map(NearFingerprints::tables).collect(),
        }
    }

    /// The judged pages that pages of a batch are counterparts of.
    pub(super) fn counterparts(
        &self,
        rows: &[OtherPage],
        tables: &SearchTables<'_>,
        scratch: &mut NgramScratch,
    ) -> Vec<Counterpart> {
        // For each judged page and page of the batch: n-grams at which fingerprints are near.
        let mut candidates: BTreeMap<(usize, u32), u8> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            let mut add = |judged: &[u32]| {
                judged.iter().for_each(|&judged| {
                    candidates.entry((at, judged)).or_default();
                });
            };
            if let Some(key) = &row.key {
                add(self.judged.with_url(key));
            }
            add(self.judged.with_words(&row.tokens));
            if row.tokens.len() >= self.min_tokens {
                self.bands.iter().for_each(|table| add(&table.find(&row.tokens, scratch)));
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
                long.filter_map(|(at, row)| Some((at, ngrams::simhash(&row.tokens, n + 1, scratch)?))).unzip();
            for (at, judged, _) in near.find(tables, &values) {
                *candidates.entry((places[at], judged)).or_default() |= 1 << n;
            }
        }
        let found = candidates.into_iter();
        found.filter_map(|((at, judged), near)| self.compare(&rows[at], judged, near)).collect()
    }

    fn compare(&self, other: &OtherPage, number: u32, near_fingerprints: u8) -> Option<Counterpart> {
        let judged = &self.judged.pages[number as usize];
        let same_url = other.key.as_deref().is_some_and(|key| self.judged.with_url(key).contains(&number));
        let Likeness { distance, similarity, near_sets, is_near } =
            self.likeness(judged, &other.tokens, other.fingerprint);
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

    /// How a judged page is like a page with these words and this fingerprint.
    fn likeness(&self, judged: &JudgedPage, others: &[Token], fingerprint: Option<u64>) -> Likeness {
        let distance = judged.fingerprint.zip(fingerprint).map(|(a, b)| (a ^ b).count_ones());
        let (mut similarity, mut near_sets) = (None, 0u8);
        if let Some(tokens) = judged.tokens.as_deref() {
            let is_long = tokens.len() >= self.min_tokens && others.len() >= self.min_tokens;
            let exact = |n: usize| match is_long || tokens == others {
                true => ngrams::similarity(tokens, others, n),
                // Short pages are the same only if they are the same.
                false => 0.0,
            };
            let is_few = tokens.len().min(others.len()) < FEW;
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
        Likeness { distance, similarity, near_sets, is_near }
    }

    /// How two judged pages are alike.
    pub(super) fn likeness_of(&self, left: u32, right: u32) -> Likeness {
        let [left, right] = [left, right].map(|number| &self.judged.pages[number as usize]);
        self.likeness(left, right.tokens.as_deref().unwrap_or_default(), right.fingerprint)
    }

    /// Pairs of judged pages that are near-duplicates, each once, ascending.
    pub(super) fn near_judged(&self) -> Vec<(u32, u32)> {
        let tables = self.tables();
        let near_some = |some: &[JudgedPage]| {
            let row = |page: &JudgedPage| OtherPage {
                id: page.id.clone(),
                url: None,
                key: None,
                fingerprint: page.fingerprint,
                tokens: page.tokens.clone().unwrap_or_default(),
            };
            let rows: Vec<OtherPage> = some.iter().map(row).collect();
            let found = self.counterparts(&rows, &tables, &mut NgramScratch::default()).into_iter();
            let near = found.filter(|row| row.way.is_some());
            let pairs = near.filter_map(|row| Some((self.judged.number(&row.id)?, row.judged)));
            pairs.filter(|(left, right)| left < right).collect::<Vec<(u32, u32)>>()
        };
        let batches = self.judged.pages.par_chunks(BATCH);
        let mut pairs: Vec<(u32, u32)> = batches.flat_map_iter(near_some).collect();
        pairs.sort_unstable();
        pairs
    }
}
