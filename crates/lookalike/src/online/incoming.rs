//! What comes in: a page that is read, and all that it is looked up, compared and stored by.

use crate::error::Result;
use crate::feature::shingle::{into_set, shingles};
use crate::index::pages::CONFIRMING_WORDS;
use crate::index::{PageEntry, Record, short_key};
use crate::online::outcome::{CheckOutcome, PageLength, PageVerdict};
use crate::online::{Jobs, ServedIndex};
use crate::page::RawPage;
use crate::sketch::min_bytes::min_bytes;
use crate::sketcher::{PageAbout, Sketcher};
use crate::text::frames::host_hash;
use crate::text::{ContentCodec, Scope, StoredBlocks, StoredContent};

/// What its owner says about a page that is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageExtras {
    /// Seconds after which it goes; as the collection says where it is not given.
    pub ttl_seconds: Option<u64>,
    /// A JSON object that comes back with the page.
    pub metadata: Option<String>,
}

/// A page that was read.
#[derive(Debug, Clone)]
pub(super) struct IncomingPage {
    pub(super) id: Option<String>,
    /// What is kept of it, without its number.
    pub(super) entry: PageEntry,
    /// The same, without its id.
    pub(super) record: Record,
    /// The keys of its bands.
    pub(super) keys: Vec<u64>,
    /// What it is compared by, ascending.
    pub(super) features: Vec<u64>,
    /// The signature of its markup, if it is in blocks.
    pub(super) markup: Option<Vec<u32>>,
    /// Whether it is compared without its frame, which is known.
    has_story: bool,
}

impl IncomingPage {
    /// A page that is stored elsewhere, as it is there; nothing is known of its words.
    pub(super) fn copy(record: &Record, entry: &PageEntry) -> IncomingPage {
        IncomingPage {
            id: Some(record.id.clone()),
            entry: entry.clone(),
            record: record.clone(),
            keys: Vec::new(),
            features: Vec::new(),
            markup: None,
            has_story: false,
        }
    }
}

/// What a stored page is compared by now.
pub(super) struct ComparedText {
    /// Ascending.
    pub(super) features: Vec<u64>,
    /// What stands for its site; 0 where its frame is not known.
    pub(super) site: u64,
    pub(super) tokens: u32,
    /// The signature of its markup, if it is in blocks.
    pub(super) markup: Option<Vec<u32>>,
}

/// Seconds since 1970; a clock before that says 0.
pub(super) fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_secs())
}

/// A worker that reads pages, those that come and those that are stored.
pub(super) struct Worker {
    pub(super) sketcher: Sketcher,
    pub(super) codec: ContentCodec,
    columns: Vec<u64>,
}

impl Worker {
    pub(super) fn new(sketcher: Sketcher) -> Worker {
        Worker { sketcher, codec: ContentCodec::default(), columns: Vec::new() }
    }

    /// What the page that was read last is compared by.
    fn features(&self, ngram: usize) -> Vec<u64> {
        let mut features = Vec::with_capacity(self.sketcher.tokens().len());
        shingles(self.sketcher.tokens(), ngram, &mut features);
        into_set(&mut features);
        features
    }

    /// Whether the page that was read last has a sketch.
    fn is_sketched(&self, tokens: u32) -> bool {
        self.sketcher.plan().is_long_enough(tokens) && !self.sketcher.sequence().is_empty()
    }
}

impl ServedIndex {
    /// Words in a run by which pages are compared.
    pub(super) fn compared_words(&self) -> usize {
        self.bands().map_or(CONFIRMING_WORDS, |bands| bands.ngram)
    }

    /// Reads a page. With `jobs`, it is to be stored: it is learnt from, and its text is kept if texts are.
    pub(super) fn read(
        &self,
        page: &RawPage<'_>,
        extras: PageExtras,
        jobs: Option<&Jobs>,
        worker: &mut Worker,
    ) -> Result<IncomingPage> {
        let url = page.url.as_deref();
        // A URL is a name for a page that has no other.
        let id = page.id.as_deref().or(url).map(str::to_owned);
        let keeps_text = jobs.is_some() && self.index.config().keeps_text;
        let (mut content, mut host, has_story, mut markup);
        let (tokens, identity, title);
        if let Some(held) = self.sites.as_ref().and_then(|_| worker.sketcher.hold_with_text(page)) {
            let known_title = worker.sketcher.title().map(str::to_owned);
            let hash = host_hash(held.host());
            if let Some(jobs) = jobs {
                self.learn_from(hash, &held, jobs, worker)?;
            }
            worker.sketcher.set_frames(self.frames_of(hash)?);
            content = keeps_text.then(|| StoredContent::Blocks(held.stored()));
            let about = PageAbout { url, title: known_title.as_deref(), source: page.source, record: page.record };
            let facts = worker.sketcher.read_held(&held, about);
            (tokens, identity) = (facts.tokens, facts.identity);
            has_story = facts.scope == Some(Scope::Story);
            title = known_title;
            host = Some(hash);
            markup = Some(held.markup().to_vec());
        } else {
            let facts = worker.sketcher.read(page);
            (tokens, identity) = (facts.tokens, facts.identity);
            has_story = false;
            title = facts.title.map(str::to_owned);
            (host, markup) = (None, None);
            content = keeps_text.then(|| worker.sketcher.content_of(page));
        }
        if tokens == 0 {
            // An empty page is like nothing, whatever becomes known of its frame.
            (content, host, markup) = (None, None, None);
        }
        let mut incoming = IncomingPage {
            entry: PageEntry {
                number: 0,
                is_url: url.is_some() && url == id.as_deref(),
                url: url.filter(|url| Some(*url) != id.as_deref()).map(str::to_owned),
                title,
                stored_at: now(),
                expires_at: extras.ttl_seconds.or(self.index.config().ttl_seconds).map(|ttl| now().saturating_add(ttl)),
                metadata: extras.metadata,
            },
            id,
            record: Record::new(String::new(), identity, tokens),
            keys: Vec::new(),
            features: Vec::new(),
            markup,
            has_story,
        };
        incoming.record.host = host;
        incoming.record.expires_at = incoming.entry.expires_at;
        self.sketch(&mut incoming, worker);
        if let Some(content) = content {
            incoming.record.content = worker.codec.encode(&content);
        }
        Ok(incoming)
    }

    /// Reads a stored page again, with what is known of frames now; nothing where its text was not kept.
    pub(super) fn read_again(
        &self,
        record: &Record,
        entry: &PageEntry,
        worker: &mut Worker,
    ) -> Result<Option<IncomingPage>> {
        let Some(content) = self.content(record, worker)? else { return Ok(None) };
        let url = if entry.is_url { Some(record.id.as_str()) } else { entry.url.as_deref() };
        if let Some(host) = record.host {
            worker.sketcher.set_frames(self.frames_of(host)?);
        }
        let facts = worker.sketcher.read_stored(&content, url);
        let (tokens, identity, scope) = (facts.tokens, facts.identity, facts.scope);
        let mut incoming = IncomingPage {
            id: Some(record.id.clone()),
            entry: entry.clone(),
            record: Record::new(record.id.clone(), identity, tokens),
            keys: Vec::new(),
            features: Vec::new(),
            markup: content.blocks().map(|blocks| blocks.markup().to_vec()),
            has_story: scope == Some(Scope::Story),
        };
        incoming.record.host = record.host;
        incoming.record.content.clone_from(&record.content);
        incoming.record.expires_at = record.expires_at;
        self.sketch(&mut incoming, worker);
        Ok(Some(incoming))
    }

    /// The text of a stored page, if it was kept.
    fn content(&self, record: &Record, worker: &mut Worker) -> Result<Option<StoredContent>> {
        record.text(&mut worker.codec).map_err(|reason| crate::Error::corrupt(self.index.directory(), reason))
    }

    /// What the page that was read last is found and compared by.
    fn sketch(&self, incoming: &mut IncomingPage, worker: &mut Worker) {
        let record = &mut incoming.record;
        record.is_short = !worker.is_sketched(record.tokens);
        if record.tokens == 0 {
            return;
        }
        incoming.features = worker.features(self.compared_words());
        if self.bands().is_none() {
            let mut columns = std::mem::take(&mut worker.columns);
            if !record.is_short {
                worker.sketcher.columns(&mut columns);
            }
            #[allow(clippy::cast_possible_truncation)] // half of a hash is a hash
            let short = record.identity as u64;
            // A page that is too short has half of the hash of its words, so that its copies are found.
            record.fingerprint = Some(columns.first().copied().filter(|_| !record.is_short).unwrap_or(short));
            worker.columns = columns;
        } else if !record.is_short {
            let mut columns = std::mem::take(&mut worker.columns);
            worker.sketcher.columns(&mut columns);
            let bands = self.band_columns;
            incoming.keys.extend(columns.iter().take(bands).filter_map(|&key| short_key(key)));
            // A page without a story has no keys of stories.
            record.site = columns.get(bands).copied().unwrap_or(0);
            incoming.keys.sort_unstable();
            incoming.keys.dedup();
            worker.columns = columns;
        }
        record.set_sketch(&min_bytes(&incoming.features));
    }

    /// What a stored page is compared by, with what is known of frames now; nothing where its text was not kept.
    pub(super) fn compared_text(&self, record: &Record, worker: &mut Worker) -> Result<Option<ComparedText>> {
        let Some(content) = self.content(record, worker)? else { return Ok(None) };
        if let Some(host) = record.host {
            worker.sketcher.set_frames(self.frames_of(host)?);
        }
        // The site of a story follows from its host or its markup, not from the rest of its URL.
        let host = content.blocks().map(StoredBlocks::host).filter(|host| !host.is_empty());
        let url = host.map(|host| format!("http://{host}/"));
        let tokens = worker.sketcher.read_stored(&content, url.as_deref()).tokens;
        Ok(Some(ComparedText {
            features: worker.features(self.compared_words()),
            site: worker.sketcher.site(),
            tokens,
            markup: content.blocks().map(|blocks| blocks.markup().to_vec()),
        }))
    }
}

impl IncomingPage {
    /// The outcome before anything was found.
    pub(super) fn outcome(&self) -> CheckOutcome {
        let length = match self.record.tokens {
            0 => PageLength::Empty,
            _ if self.record.is_short => PageLength::Short,
            _ => PageLength::Enough,
        };
        CheckOutcome {
            id: self.id.clone(),
            verdict: PageVerdict::New,
            of: Vec::new(),
            rejected: Vec::new(),
            unconfirmed: Vec::new(),
            candidates: 0,
            stored: false,
            replaced: false,
            tokens: self.record.tokens,
            fingerprint: self.record.fingerprint,
            length,
            has_story: self.has_story,
        }
    }
}
