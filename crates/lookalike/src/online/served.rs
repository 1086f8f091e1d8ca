//! What all threads of a served index share: made once, asked by everybody.

use super::*;

impl ServedIndex {
    pub(super) fn new(index: Arc<Index>, store: ServedStore, refreshes: Sender<u64>, totals: Totals) -> ServedIndex {
        let wanted = index.config();
        let (config, threshold) = (wanted.page_config(), wanted.threshold);
        let has_stories =
            wanted.has_bands() && config.as_ref().is_some_and(|config| config.content.scope == Scope::Story);
        // Nothing is known of frames yet, but there will be: pages get the keys of stories, too.
        let none_known =
            || Arc::new(CorpusStats { frames: Some(Arc::new(Frames::default())), ..CorpusStats::default() });
        let plan = config.as_ref().map(|config| config.plan_with(has_stories.then(none_known)));
        let decision = match &wanted.fingerprints {
            FingerprintOrigin::Bands(bands) => {
                bands
                    .config(&wanted.read, wanted.min_tokens, threshold)
                    .plan_with(has_stories.then(none_known))
                    .decision
            }
            FingerprintOrigin::Given | FingerprintOrigin::Pages(_) => {
                Decision::Similarity { threshold, strictly: false }
            }
        };
        let columns = plan.as_ref().map(Plan::columns).unwrap_or_default();
        let counters = OnlineCounters {
            last: totals.last.into(),
            pages: totals.pages.into(),
            all_groups: totals.groups.into(),
            ..OnlineCounters::default()
        };
        ServedIndex {
            config,
            plan,
            decision,
            threshold,
            radius: wanted.radius,
            band_columns: columns.bands + columns.story_bands,
            store,
            sites: has_stories.then(Sites::default),
            refreshes,
            is_stopping: AtomicBool::new(false),
            removed: RemovedIds::default(),
            replica: Replica::default(),
            counters,
            opened: Instant::now(),
            index,
        }
    }

    /// What decides the keys of bands, if pages are found by them.
    pub(super) fn bands(&self) -> Option<&BandConfig> {
        match &self.index.config().fingerprints {
            FingerprintOrigin::Bands(bands) => Some(bands),
            FingerprintOrigin::Given | FingerprintOrigin::Pages(_) => None,
        }
    }

    /// A worker that reads pages.
    pub(super) fn worker(&self) -> Worker {
        // An index of other fingerprints has no pages to read; whoever asks about one is told so before.
        let plan = self.plan.clone().unwrap_or_else(|| Config::default().plan());
        Worker::new(Sketcher::of_plan(&plan).with_keys_before_frames())
    }

    /// What the store has had so far.
    pub(super) fn totals(&self) -> Totals {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let OnlineCounters { last, pages, all_groups, .. } = &self.counters;
        Totals { last: get(last), groups: get(all_groups), pages: get(pages) }
    }

    /// The number of the last group that is on disk, perhaps before it is visible.
    pub(super) fn last_group(&self) -> u64 {
        self.replica.written().max(self.totals().groups)
    }

    /// Time since the index was opened; never 0.
    pub(super) fn nanoseconds(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_nanos()).expect("less than five centuries").max(1)
    }

    /// Measures the store.
    pub(super) fn measure(&self) {
        if let Some(bytes) = self.store.bytes() {
            self.counters.store_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// All that is known of a page.
    pub(super) fn stored_page(&self, id: &str, found: FoundEntry) -> Result<Option<StoredPage>> {
        let entry = match found {
            FoundEntry::Whole(page, _) => return Ok(Some(*page)),
            FoundEntry::Entry(entry) => entry,
        };
        // It may have been replaced in between.
        Ok(self.store.record(entry.number)?.map(|record| stored_page(id, entry, &record)))
    }
}

fn stored_page(id: &str, entry: PageEntry, record: &Record) -> StoredPage {
    StoredPage {
        fingerprint: record.fingerprint,
        identity: record.identity,
        tokens: record.tokens,
        is_short: record.is_short,
        sketch: record.sketch(),
        url: if entry.is_url { Some(id.to_owned()) } else { entry.url },
        title: entry.title,
        stored_at: entry.stored_at,
        expires_at: entry.expires_at,
        metadata: entry.metadata,
        has_text: !record.content.is_empty(),
    }
}
