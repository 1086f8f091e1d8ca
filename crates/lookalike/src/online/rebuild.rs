//! An index that is built anew with another config while it is in use.
//!
//! In: an index that goes on answering and storing. Out: one with the same pages, found and compared in another way, in the
//! place of the old one. Pages are read again from their stored texts, in the order in which they came; every stored page
//! has a number above those before it, so that what came meanwhile is copied by going on from the last number. What was
//! removed meanwhile is noted. When little is left, the caller keeps writers out, the rest is copied, and the manifest
//! names the new directory: there is no moment at which a crash loses either.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::{ContentConfig, Scope};
use crate::error::{Error, Result};
use crate::index::{FingerprintOrigin, FoundEntry, IndexConfig, PageEntry, Record, StoredPage, place};
use crate::online::incoming::{IncomingPage, PageExtras, Worker};
use crate::online::sequencer::SequencerJob;
use crate::online::{Jobs, Online, OnlineOptions, ServedIndex};
use crate::page::{Body, Markup, RawPage};
use crate::text::StoredContent;
use crate::text::frames::host_hash;

/// Pages that are read and not written yet.
const CHUNK: usize = 256;

/// The ids of pages that were removed, while somebody wants to know.
#[derive(Default)]
pub(super) struct RemovedIds(Mutex<Option<Vec<String>>>);

impl RemovedIds {
    fn set(&self, ids: Option<Vec<String>>) -> Option<Vec<String>> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), ids)
    }

    pub(super) fn note(&self, id: &str) {
        if let Some(ids) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            ids.push(id.to_owned());
        }
    }
}

/// Removes the files of an index that was replaced when nobody has them open any more.
#[derive(Default)]
pub(super) struct Replaced(Mutex<Option<(PathBuf, PathBuf)>>);

impl Drop for Replaced {
    fn drop(&mut self) {
        let replaced = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // What cannot be removed now is removed when the index is next opened.
        let _ = replaced.map(|(root, place)| place::clear_others(&root, &place));
    }
}

/// An index that is being built anew.
pub struct Rebuild {
    from: Arc<Online>,
    into: Option<Online>,
    place: PathBuf,
    /// The number of the next page to be copied.
    next: u32,
    /// Whether a page keeps its fingerprint.
    same_meaning: bool,
    /// Whether sites are learnt anew.
    learns: bool,
    worker: Worker,
}

/// What of a page is compared.
fn content(config: &IndexConfig) -> Option<ContentConfig> {
    let content = match &config.fingerprints {
        FingerprintOrigin::Given => return None,
        FingerprintOrigin::Pages(pages) => &pages.content,
        FingerprintOrigin::Bands(bands) => &bands.content,
    };
    Some(ContentConfig { frames: None, ..content.clone() })
}

impl Rebuild {
    /// Begins to build `from` anew with another config, in a directory beside its files; what it needs to know that no
    /// other reads or writes there is the lock that `from` holds.
    ///
    /// # Errors
    /// When the config makes no sense, when pages cannot be read again as it says, and when `from` is shared with others.
    pub fn begin(from: Arc<Online>, config: IndexConfig, options: OnlineOptions) -> Result<Rebuild> {
        config.check()?;
        from.jobs()?;
        if from.replication().is_some() {
            let reason = "it is shipped to others, who would have to begin anew: serve it without `ship`, change it, and ship it to another prefix";
            return Err(Error::conflict("collection", reason));
        }
        let old = from.config();
        let (Some(was), Some(becomes)) = (content(old), content(&config)) else {
            return Err(Error::conflict("fingerprints", "were made elsewhere; nobody can make them in another way"));
        };
        let same_meaning = !config.has_bands() && !old.has_bands() && config.hash() == old.hash();
        if !old.keeps_text && !same_meaning {
            let reason = "its texts were not kept, and pages cannot be read again; send them to another collection";
            return Err(Error::conflict("keep_text", reason));
        }
        if config.keeps_text && !old.keeps_text {
            return Err(Error::conflict(
                "keep_text",
                "the texts of its pages are gone; send them to another collection",
            ));
        }
        if was.scope == Scope::Story && matches!(becomes.scope, Scope::Main | Scope::Links) {
            let reason = "its pages were stored without their markup: story, core and page can be had of them";
            return Err(Error::conflict("content", reason));
        }
        let root = place::root(from.served.index.directory());
        let place = place::free_place(root);
        let learns = was != becomes;
        Online::create(&place, config)?;
        let into = Online::open(&place, options)?;
        if !learns && into.served.sites.is_some() && from.served.sites.is_some() {
            into.served.store.copy_learnt(&from.served.store)?;
        }
        from.served.removed.set(Some(Vec::new()));
        let worker = into.served.worker();
        Ok(Rebuild { from, into: Some(into), place, next: 0, same_meaning, learns, worker })
    }

    /// Copies what was stored since this was last called, at first everything, unless it is to stop. Returns how many pages
    /// that were; `copied` is told after each part.
    ///
    /// # Errors
    /// When a page cannot be read or stored.
    pub fn catch_up(&mut self, is_stopping: &AtomicBool, mut copied: impl FnMut(u64)) -> Result<u64> {
        let mut count = 0;
        if self.next == 0 {
            count += self.copy_old_pages(&mut copied)?;
            self.next = 1;
        }
        loop {
            let records = self.from.served.store.records_from(self.next, CHUNK)?;
            let Some((last, _)) = records.last() else { return Ok(count) };
            self.next = last.saturating_add(1);
            let mut pages = Vec::with_capacity(records.len());
            for (number, record) in records {
                match self.from.served.store.entry(&record.id)? {
                    Some(FoundEntry::Entry(entry)) if entry.number == number => pages.push((record, entry)),
                    // It was replaced, and comes again with another number, or removed.
                    _ => {}
                }
            }
            count += pages.len() as u64;
            let part = pages.len() as u64;
            self.copy(pages)?;
            copied(part);
            if is_stopping.load(Ordering::Relaxed) {
                return Err(Error::conflict("collection", "the service stops; ask for the change again"));
            }
        }
    }

    /// Copies pages of 0.1.0 and of bulk builds, which have no numbers.
    fn copy_old_pages(&mut self, copied: &mut impl FnMut(u64)) -> Result<u64> {
        if self.from.config().has_bands() {
            return Ok(0);
        }
        let (mut count, mut after) = (0, None::<String>);
        loop {
            let (mut pages, from) = (Vec::new(), after.clone());
            let mut visit = |id: String, entry: FoundEntry| {
                if let FoundEntry::Whole(page, record) = entry {
                    pages.push((*record, entry_of(&id, &page)));
                }
                after = Some(id);
                Ok(pages.len() < CHUNK)
            };
            self.from.served.store.for_each_entry("", from.as_deref(), &mut visit)?;
            if pages.is_empty() {
                return Ok(count);
            }
            count += pages.len() as u64;
            let part = pages.len() as u64;
            self.copy(pages)?;
            copied(part);
        }
    }

    /// Copies some pages, and returns when they are on disk.
    fn copy(&mut self, pages: Vec<(Record, PageEntry)>) -> Result<()> {
        let into = self.into.as_ref().ok_or_else(|| Error::internal("a rebuild has ended"))?;
        let jobs = into.jobs()?;
        let (sender, answers) = sync_channel(pages.len());
        let sent = pages.len();
        for (record, entry) in pages {
            let page = into.served.copy_of(&record, &entry, self.same_meaning, self.learns, jobs, &mut self.worker)?;
            let sender = sender.clone();
            let done = Box::new(move |copied| drop(sender.send(copied)));
            jobs.send_waiting(SequencerJob::Copy { page: Box::new(page), done })?;
        }
        drop(sender);
        answers.iter().take(sent).collect()
    }

    /// Puts the new index in the place of the old one, and returns it, open. The caller sees to it that nobody writes to
    /// the old one any more, which answers until it is dropped, and takes its files with it then.
    ///
    /// # Errors
    /// When a page cannot be read or stored; the old index stays in its place.
    pub fn finish(mut self, is_stopping: &AtomicBool) -> Result<Online> {
        // What was accepted is done before this is.
        self.from.jobs()?.wait_for(|done| SequencerJob::Delete { id: "\0".to_owned(), done })?;
        self.catch_up(is_stopping, |_| {})?;
        let removed = self.from.served.removed.set(None).unwrap_or_default();
        let into = self.into.as_ref().ok_or_else(|| Error::internal("a rebuild has ended"))?;
        for id in removed {
            if self.from.served.store.entry(&id)?.is_none() {
                into.jobs()?.wait_for(|done| SequencerJob::Delete { id, done })?;
            }
        }
        let root = place::root(self.from.served.index.directory()).to_path_buf();
        if let Err(error) = place::move_to(&root, &self.place) {
            // The manifest may name the new index all the same, and then its files stay.
            if place::place(&root).is_ok_and(|place| place == self.place) {
                self.into = None;
            }
            return Err(error);
        }
        let into = self.into.take().ok_or_else(|| Error::internal("a rebuild has ended"))?;
        *self.from.replaced.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((root, self.place.clone()));
        Ok(into)
    }
}

impl Drop for Rebuild {
    /// What was not finished is removed.
    fn drop(&mut self) {
        self.from.served.removed.set(None);
        if let Some(into) = self.into.take() {
            drop(into);
            // What cannot be removed now is removed when the index is next opened.
            let _ = std::fs::remove_dir_all(&self.place);
        }
    }
}

/// The entry of a page that 0.1.0, or a bulk build, stored.
fn entry_of(id: &str, page: &StoredPage) -> PageEntry {
    PageEntry {
        number: 0,
        is_url: page.url.as_deref() == Some(id),
        url: page.url.clone().filter(|url| url != id),
        title: page.title.clone(),
        stored_at: page.stored_at,
        expires_at: page.expires_at,
        metadata: page.metadata.clone(),
    }
}

impl ServedIndex {
    /// A page of another index as this one stores it.
    fn copy_of(
        &self,
        record: &Record,
        entry: &PageEntry,
        same_meaning: bool,
        learns: bool,
        jobs: &Jobs,
        worker: &mut Worker,
    ) -> Result<IncomingPage> {
        let wrong = |reason| Error::corrupt(self.index.directory(), reason);
        let mut page = match record.text(&mut worker.codec).map_err(wrong)? {
            None if same_meaning || record.tokens == 0 => IncomingPage::copy(record, entry),
            None => {
                let reason = format!(
                    "the text of {} was not kept, and it cannot be read again; remove it, or send all pages to another collection",
                    record.id
                );
                return Err(Error::conflict("collection", reason));
            }
            Some(StoredContent::Html(html)) => {
                let mut page = RawPage::new(Body::Text(html.into()), Markup::Html);
                page.id = Some(record.id.as_str().into());
                page.url = if entry.is_url { page.id.clone() } else { entry.url.as_deref().map(Into::into) };
                self.read(&page, PageExtras::default(), Some(jobs), worker)?
            }
            Some(content) => {
                let mut record = record.clone();
                record.host = content.blocks().filter(|_| self.sites.is_some()).map(|blocks| host_hash(blocks.host()));
                if let Some((host, blocks)) = record.host.filter(|_| learns).zip(content.blocks()) {
                    let held = worker.sketcher.hold_stored(blocks);
                    self.learn_from(host, &held, jobs, worker)?;
                }
                let again = self.read_again(&record, entry, worker)?;
                again.ok_or_else(|| Error::internal("a text that was there is gone"))?
            }
        };
        page.entry.clone_from(entry);
        page.record.id.clone_from(&record.id);
        page.record.expires_at = entry.expires_at;
        if !self.index.config().keeps_text {
            page.record.content.clear();
        }
        Ok(page)
    }
}
