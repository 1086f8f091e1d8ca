//! A corpus on one side of a transfer: files of pages, or an index with their fingerprints.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::config::{Config, FingerprintConfig, KnownFrames};
use crate::corpus_stats;
use crate::error::{Error, Result};
use crate::index::pages::fingerprint;
use crate::index::{FingerprintOrigin, Index, OpenOptions};
use crate::observe::{Observer, Stage};
use crate::page::{RawPage, Token};
use crate::plan::Plan;
use crate::read::{Corpus, ReadConfig};
use crate::sketcher::Sketcher;
use crate::text::{PageReader, Scope, TextOptions};
use crate::transfer::ngrams::NgramScratch;
use crate::transfer::urls;

/// A corpus: pages, or fingerprints of them.
pub(super) enum Side {
    Pages(Box<PageFiles>),
    Index(Box<Index>),
}

/// Files of pages.
pub(super) struct PageFiles {
    corpus: Corpus,
    /// As they were given.
    inputs: Vec<String>,
}

impl Side {
    pub(super) fn new(inputs: &[String], config: &ReadConfig) -> Result<Side> {
        if let [only] = inputs
            && Path::new(only).join("manifest.json").exists()
        {
            return Ok(Side::Index(Box::new(Index::open(Path::new(only), OpenOptions::default())?)));
        }
        let corpus = Corpus::open(inputs, config)?;
        Ok(Side::Pages(Box::new(PageFiles { corpus, inputs: inputs.to_vec() })))
    }

    fn origin(&self) -> Option<&FingerprintOrigin> {
        match self {
            Side::Index(index) => Some(&index.config().fingerprints),
            Side::Pages(_) => None,
        }
    }
}

/// The config that both sides' fingerprints are made with.
pub(super) fn common_config(from: &Side, to: &Side, given: &Config) -> Result<Config> {
    let of_index = |fingerprints: &FingerprintConfig| {
        let config = fingerprints.config(&given.read, given.pairs.min_tokens);
        config.with_method(config.method.with_threshold(f64::from(given.radius())))
    };
    let foreign = "the fingerprints of this index were not made by lookalike, so pages cannot be given matching ones; use an index of pages";
    let without = "this is a collection of a service that is searched by bands, and holds no fingerprints; use an index that lookalike index build made";
    let config = match (from.origin(), to.origin()) {
        (None, None) => given.clone(),
        (Some(FingerprintOrigin::Pages(config)), None) | (None, Some(FingerprintOrigin::Pages(config))) => {
            of_index(config)
        }
        (Some(FingerprintOrigin::Bands(_)), _) => return Err(Error::conflict("from", without)),
        (_, Some(FingerprintOrigin::Bands(_))) => return Err(Error::conflict("to", without)),
        (Some(FingerprintOrigin::Given), None) => return Err(Error::conflict("from", foreign)),
        (None, Some(FingerprintOrigin::Given)) => return Err(Error::conflict("to", foreign)),
        (Some(left), Some(right)) if left == right => match left {
            FingerprintOrigin::Pages(config) => of_index(config),
            FingerprintOrigin::Given | FingerprintOrigin::Bands(_) => given.clone(),
        },
        (Some(_), Some(_)) => {
            return Err(Error::conflict(
                "to",
                "its fingerprints are not of the same kind as those of `from`; build one of the indexes again with the settings of the other (their statistics show them)",
            ));
        }
    };
    let mut fingerprints = FingerprintConfig::of_config(&config)
        .ok_or_else(|| Error::invalid("method", config.method.name(), "must be simhash: fingerprints are compared"))?;
    if config.corpus_needs().frames {
        // They are learnt from the pages of each side.
        fingerprints.content.scope = Scope::Core;
    }
    fingerprints.check()?;
    Ok(config)
}

/// The config with what the sites of both sides put around their texts, unless the frames of an index are known.
pub(super) fn with_frames(
    mut config: Config,
    sides: [&Side; 2],
    threads: usize,
    observer: &dyn Observer,
) -> Result<Config> {
    if config.corpus_needs().frames {
        let corpora = sides.iter().filter_map(|side| match side {
            Side::Pages(pages) => Some(&pages.corpus),
            Side::Index(_) => None,
        });
        let corpora: Vec<&Corpus> = corpora.collect();
        observer.start(Stage::Count, corpora.iter().map(|corpus| corpus.bytes()).sum());
        let frames = corpus_stats::learn_frames(config.content.text_options(), &corpora, threads, observer)?;
        observer.finish(Stage::Count);
        config.content.frames = Some(KnownFrames::new(Arc::new(frames)));
    }
    Ok(config)
}

/// The URL in a row's id, where the id is one.
pub(super) fn url_in_id(id: &str) -> Option<&str> {
    id.contains("://").then_some(id)
}

/// What one thread needs to describe pages.
pub(super) struct PageWorker<'a> {
    corpus: &'a Corpus,
    sketcher: Sketcher,
    reader: PageReader,
    pub(super) scratch: NgramScratch,
}

impl<'a> PageWorker<'a> {
    pub(super) fn new(corpus: &'a Corpus, plan: &Plan) -> PageWorker<'a> {
        let frames = plan.corpus.as_ref().and_then(|corpus| corpus.frames.clone());
        let options = TextOptions { words: false, blocks: true, ..plan.text };
        PageWorker {
            corpus,
            sketcher: Sketcher::of_plan(plan),
            reader: PageReader::new(options).without(frames),
            scratch: NgramScratch::default(),
        }
    }

    pub(super) fn id(&self, page: &RawPage<'_>) -> String {
        self.corpus.id_of(page)
    }

    /// The normalised URL that a page is known by: its own, or its path where it is a file of its own.
    pub(super) fn url_key(&self, page: &RawPage<'_>) -> Option<String> {
        match page.url.as_deref() {
            Some(url) => urls::normalized(url),
            None if self.corpus.source(page.source).format.is_page_file() => Some(urls::path(page.id.as_deref()?)),
            None => None,
        }
    }

    pub(super) fn fingerprint(&mut self, page: &RawPage<'_>) -> Option<u64> {
        fingerprint(page, &mut self.sketcher)
    }

    /// The words by which a page is compared.
    pub(super) fn tokens(&mut self, page: &RawPage<'_>) -> Vec<Token> {
        self.reader.read(page).tokens.to_vec()
    }
}

/// What was read of a corpus.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReadCounts {
    pub(super) pages: u64,
    /// Records that could not be used.
    pub(super) skipped: u64,
}

impl PageFiles {
    pub(super) fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// Reads all pages: `describe` makes a row of each, `finish` makes something of the rows of a batch, `collect`
    /// gets that in the order of the input.
    pub(super) fn read<Row, Made: Send>(
        &self,
        config: &Config,
        threads: usize,
        observer: &dyn Observer,
        describe: impl Fn(&mut PageWorker<'_>, &RawPage<'_>) -> Row + Sync,
        finish: impl Fn(&mut PageWorker<'_>, Vec<Row>) -> Made + Sync,
        mut collect: impl FnMut(Made),
    ) -> Result<ReadCounts> {
        let corpus = &self.corpus;
        let plan = config.plan();
        observer.start(Stage::Read, corpus.bytes());
        let scanned = corpus.scan().threads(threads).observed_by(observer).without_revisits().for_each_batch(
            || PageWorker::new(corpus, &plan),
            |worker, records| {
                let mut rows = Vec::new();
                records.for_each_page(|page| {
                    rows.push(describe(worker, &page));
                    Ok(())
                })?;
                Ok(finish(worker, rows))
            },
            |made| {
                collect(made);
                Ok(ControlFlow::Continue(()))
            },
        )?;
        observer.finish(Stage::Read);
        if scanned.pages == 0 {
            return Err(corpus.no_pages(&self.inputs, &[]));
        }
        Ok(ReadCounts { pages: scanned.pages, skipped: scanned.skipped })
    }
}
