//! Collections with many rows: filled once, and copied for everybody who serves them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use lookalike::config::FingerprintConfig;
use lookalike::index::{Id, IndexConfig};
use lookalike::online::{OnlineOptions, PageExtras, StorePolicy};
use lookalike::unstable::cpu_seconds;
use lookalike::{Index, Online, RawPage};
use lookalike_bench::corpus::Random;
use lookalike_bench::recognised::default_collection;

use super::pages::Pages;

/// What the pages of a collection are found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Method {
    /// Bands of min-values, the default of the service
    Minhash,
    /// Fingerprints
    Simhash,
}

pub(super) const RADIUS: u32 = 3;

/// Pages that wait to be stored, of each thread that fills.
const MOST_WAITING: usize = 2048;
const FILLING_THREADS: u64 = 2;
/// Files from this size on that are not journals are never changed, only replaced.
const LINKED_BYTES: u64 = 1 << 20;

impl Method {
    pub(super) fn name(self) -> &'static str {
        match self {
            Method::Minhash => "minhash",
            Method::Simhash => "simhash",
        }
    }

    /// Of a collection with default settings.
    pub(super) fn config(self) -> IndexConfig {
        match self {
            Method::Minhash => default_collection(),
            Method::Simhash => IndexConfig::pages(FingerprintConfig::default(), RADIUS),
        }
    }
}

/// Returns the directory of a collection with so many rows in `root`, and makes it if it is not there; says what that took.
pub(super) fn filled(root: &Path, method: Method, rows: u64, pages: &Pages) -> Result<(PathBuf, Option<String>)> {
    let directory = root.join(format!("{}-{rows}", method.name()));
    if directory.exists() {
        return Ok((directory, None));
    }
    // Half a collection must not be taken for a whole one.
    let aside = root.join(format!("{}-{rows}-filling", method.name()));
    let (start, cpu) = (Instant::now(), cpu_seconds().context("CPU time")?);
    let added = match method {
        Method::Minhash => fill_with_texts(&aside, rows, pages)?,
        Method::Simhash => fill_with_fingerprints(&aside, rows)?,
    };
    fs::rename(&aside, &directory)?;
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds().context("CPU time")? - cpu);
    let (rate, each) = (added as f64 / seconds, cpu * 1e6 / added as f64);
    let how = format!(
        "{}: {added} rows stored in {seconds:.0} s, {rate:.0} per second, {each:.1} µs of CPU each",
        method.name()
    );
    Ok((directory, Some(how)))
}

/// Random fingerprints: nothing else is stored of a row. Returns how many were added.
fn fill_with_fingerprints(directory: &Path, rows: u64) -> Result<u64> {
    let index = Index::create(directory, Method::Simhash.config(), 4 << 30, true)?;
    let mut bulk = index.bulk_insert()?;
    let mut random = Random(3);
    for row in 0..rows {
        bulk.push(random.number(), &Id::from(format!("r{row}").as_str()))?;
    }
    bulk.finish()?;
    Ok(rows)
}

/// Short texts, stored durably, whatever is stored already. Returns how many were added.
fn fill_with_texts(directory: &Path, rows: u64, pages: &Pages) -> Result<u64> {
    if !directory.join("manifest.json").exists() {
        Online::create(directory, Method::Minhash.config())?;
    }
    let online = Online::open(directory, OnlineOptions::default())?;
    // What was filled before an interruption stays; what follows are other texts.
    let before = online.stats().pages;
    let next = AtomicU64::new(before);
    let fill = |seed: u64| -> Result<()> {
        let mut text = pages.texts(seed);
        let (sender, stored) = mpsc::channel();
        let mut waiting = 0;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            while waiting == MOST_WAITING || (number >= rows && waiting > 0) {
                stored.recv()??;
                waiting -= 1;
            }
            if number >= rows {
                return Ok(());
            }
            let mut page = RawPage::text(text());
            page.url = Some(format!("http://site{}.example/{number}", number % 997).into());
            let sender = sender.clone();
            // Nobody listens once another page could not be stored.
            let done = move |outcome| drop(sender.send(outcome));
            online.put(&page, StorePolicy::Always, PageExtras::default(), done)?;
            waiting += 1;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..FILLING_THREADS).map(|thread| scope.spawn(move || fill(before << 8 | thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread that fills panicked"))?)
    })?;
    online.close()?;
    Ok(rows.saturating_sub(before))
}

/// Copies a collection; whoever serves one has it for himself. What never changes is linked, so that many of them take
/// the disk and the memory of one.
pub(super) fn copied(from: &Path, to: &Path) -> Result<PathBuf> {
    remove(to)?;
    copy(from, to)?;
    Ok(to.to_owned())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let is_journal = path.extension().is_some_and(|extension| extension == "jnl");
        if path.is_dir() {
            copy(&path, &target)?;
        } else if entry.metadata()?.len() >= LINKED_BYTES && !is_journal {
            fs::hard_link(&path, &target)?;
        } else {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

pub(super) fn remove(directory: &Path) -> Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    Ok(())
}

/// Bytes on disk.
pub(super) fn bytes_of(directory: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // A journal has its space reserved, and does not use all of it.
        bytes += if entry.path().is_dir() { bytes_of(&entry.path())? } else { entry.metadata()?.blocks() * 512 };
    }
    Ok(bytes)
}
