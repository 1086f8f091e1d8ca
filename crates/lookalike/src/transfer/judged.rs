//! The judged pages of the first corpus, found in one reading of it.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::config::Config;
use crate::error::Result;
use crate::observe::Observer;
use crate::page::{RawPage, Token};
use crate::transfer::ngrams::sequence_hash;
use crate::transfer::qrels::Judgment;
use crate::transfer::side::{PageWorker, ReadCounts, Side, url_in_id};
use crate::transfer::{TransferOptions, urls};

/// A judged page.
#[derive(Serialize, Deserialize)]
pub(super) struct JudgedPage {
    pub(super) id: String,
    pub(super) url: Option<String>,
    pub(super) fingerprint: Option<u64>,
    /// The words by which it is compared; none where only its fingerprint is known.
    pub(super) tokens: Option<Vec<Token>>,
}

/// A judged page, with its normalised URL.
pub(super) type KeyedPage = (JudgedPage, Option<String>);

/// Any page of the corpus.
pub(super) struct CorpusPage {
    /// What stands for its normalised URL.
    pub(super) url_hash: Option<u64>,
    /// If it is judged: the page and its normalised URL.
    pub(super) judged: Option<KeyedPage>,
}

impl CorpusPage {
    /// A page, which is judged if its id is `wanted`.
    pub(super) fn new(worker: &mut PageWorker<'_>, page: &RawPage<'_>, wanted: &HashSet<&str>) -> CorpusPage {
        let (id, key) = (worker.id(page), worker.url_key(page));
        let hash = key.as_deref().map(url_hash);
        let found = wanted.contains(id.as_str()).then(|| JudgedPage {
            id,
            url: page.url.as_deref().map(str::to_owned),
            fingerprint: worker.fingerprint(page),
            tokens: Some(worker.tokens(page)),
        });
        CorpusPage { url_hash: hash, judged: found.map(|page| (page, key)) }
    }
}

/// The judged pages of a corpus.
#[derive(Default)]
pub(super) struct JudgedPages {
    pub(super) pages: Vec<JudgedPage>,
    by_id: HashMap<String, u32>,
    by_url: HashMap<String, Vec<u32>>,
    by_words: HashMap<u64, Vec<u32>>,
    /// Hashes of all normalised URLs of the corpus, sorted, each once.
    urls: Vec<u64>,
    /// What was read of the corpus.
    pub(super) counts: ReadCounts,
}

impl JudgedPages {
    pub(super) fn read(
        side: &Side,
        judgments: &[Judgment],
        config: &Config,
        options: &TransferOptions,
        observer: &dyn Observer,
    ) -> Result<JudgedPages> {
        let wanted: HashSet<&str> = judgments.iter().map(|row| row.page.as_str()).collect();
        let mut judged = JudgedPages::default();
        match side {
            Side::Index(index) => {
                index.reader().for_each_row(&mut |value, id| {
                    let id = id.to_string();
                    judged.counts.pages += 1;
                    let url = url_in_id(&id).map(str::to_owned);
                    let key = url.as_deref().and_then(urls::normalized);
                    judged.urls.extend(key.as_deref().map(url_hash));
                    if wanted.contains(id.as_str()) {
                        judged.push(JudgedPage { id, url, fingerprint: Some(value), tokens: None }, key);
                    }
                    Ok(())
                })?;
            }
            Side::Pages(files) => {
                let describe = |worker: &mut PageWorker<'_>, page: &RawPage<'_>| CorpusPage::new(worker, page, &wanted);
                let collect = |rows: Vec<CorpusPage>| {
                    for row in rows {
                        judged.urls.extend(row.url_hash);
                        if let Some((page, key)) = row.judged {
                            judged.push(page, key);
                        }
                    }
                };
                let counts = files.read(config, options.threads, observer, describe, |_, rows| rows, collect)?;
                judged.counts = counts;
            }
        }
        judged.urls.sort_unstable();
        judged.urls.dedup();
        Ok(judged)
    }

    /// Adds a page, with its normalised URL.
    pub(super) fn push(&mut self, page: JudgedPage, key: Option<String>) {
        // The first page of an id is the one that is meant.
        if self.by_id.contains_key(&page.id) {
            return;
        }
        let number = u32::try_from(self.pages.len()).expect("there are fewer than 2^32 judged pages");
        self.by_id.insert(page.id.clone(), number);
        if let Some(key) = key {
            self.by_url.entry(key).or_default().push(number);
        }
        if let Some(tokens) = page.tokens.as_ref().filter(|tokens| !tokens.is_empty()) {
            self.by_words.entry(sequence_hash(tokens)).or_default().push(number);
        }
        self.pages.push(page);
    }

    /// The number of a judged page.
    pub(super) fn number(&self, id: &str) -> Option<u32> {
        self.by_id.get(id).copied()
    }

    /// The judged pages with this normalised URL.
    pub(super) fn with_url(&self, key: &str) -> &[u32] {
        self.by_url.get(key).map_or(&[], Vec::as_slice)
    }

    /// The judged pages with exactly these words.
    pub(super) fn with_words(&self, tokens: &[Token]) -> &[u32] {
        if tokens.is_empty() {
            return &[];
        }
        self.by_words.get(&sequence_hash(tokens)).map_or(&[], Vec::as_slice)
    }

    /// Whether any page of the corpus has this normalised URL.
    pub(super) fn corpus_has_url(&self, key: &str) -> bool {
        self.urls.binary_search(&url_hash(key)).is_ok()
    }

    /// Numbers and fingerprints of the pages that have one.
    pub(super) fn fingerprints(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        (0u32..).zip(&self.pages).filter_map(|(number, page)| Some((number, page.fingerprint?)))
    }
}

/// What stands for a normalised URL.
pub(super) fn url_hash(key: &str) -> u64 {
    xxh3_64(key.as_bytes())
}
