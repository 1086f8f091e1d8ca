//! The index on disk: which fingerprints are near this one?
//!
//! In: rows, a fingerprint of 64 bits and an id each. Out: the rows within a distance of a query, exactly.
//! An index is a directory: a manifest, and segments, which are immutable files with sorted tables
//! ([`Design`](crate::plan::design::Design)) that are mapped into memory. New rows gather in memory, in a
//! small tail and in segments that have no file yet; merging makes few large segments of many small ones.
//! Readers hold what was there when they began; they wait for nobody.

mod build;
mod live;
mod query;
mod rows;
mod segment;

pub use build::planner;
pub use live::background::{MergeStats, MergeThread};
pub use live::changes::{BulkInsert, RowChange};
pub use live::manifest::{FingerprintOrigin, IndexConfig};
pub(crate) use live::manifest::{is_ours, sync_directory};
pub(crate) use live::snapshot::IndexSnapshot;
pub(crate) use live::store;
pub use query::matches::MatchCounts;
pub use query::reader::{IndexReader, QueryResult, RowMatch};
pub use query::stats;
pub use rows::{fingerprints, pages};
pub use segment::file::FORMAT_VERSION;
pub use segment::ids::{Id, IdKind};
pub use segment::packed::PackedShape;
pub use segment::{MOST_RADIUS, TableCodec};
pub use store::StoredPage;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::error::{Error, Result};
use live::changes::Tail;
use live::manifest::{Manifest, clear_building};
use segment::Segment;

/// Where segments are made.
const BUILDING: &str = "building";
const LOCK: &str = "lock";
/// The number of the last change that was acknowledged.
const MARK: &str = "acknowledged";
/// What was stored online.
const STORE: &str = "store";
/// The same of an index that is to replace another.
const NEW_STORE: &str = "store.new";
/// Other indexes of the same server.
pub const COLLECTIONS: &str = "collections";

/// An index.
///
/// ```
/// use lookalike::index::{Id, IdKind, Index, IndexConfig};
///
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// let index = Index::create(directory, IndexConfig::given(IdKind::Text, 3), 1 << 30, false)?;
/// index.insert(&[(0x0123_4567_89ab_cdef, Id::from("page-1"))])?;
/// let answer = index.reader().query(0x0123_4567_89ab_cdee, 3, 10)?;
/// assert_eq!((answer.count, answer.matches[0].distance), (1, 1));
/// index.flush()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Index {
    directory: PathBuf,
    config: IndexConfig,
    state: ArcSwap<IndexState>,
    /// Held while the state is changed, not while it is read.
    writing: Mutex<()>,
    /// Held while segments are merged.
    merging: Mutex<()>,
    /// The number of the next segment.
    next: std::sync::atomic::AtomicU64,
    /// The number of the next row without an id.
    next_id: std::sync::atomic::AtomicU64,
    /// Whether what else is there goes away with the first manifest.
    replaces: std::sync::atomic::AtomicBool,
    /// Builds so far.
    builds: std::sync::atomic::AtomicU64,
    memory_bytes: u64,
    /// Rows in memory from which they are written to a file.
    memory_rows: u64,
    /// The number of the last change that is in files.
    covered: std::sync::atomic::AtomicU64,
    /// Whether there is a store, and whether it has more than the segments.
    store: Mutex<Option<bool>>,
    /// Whoever has this writes.
    lock: Option<File>,
    /// Keeps a server out while rows of its store are read.
    reading: Option<File>,
}

/// What there is at one moment.
pub(crate) struct IndexState {
    /// From old to new; most of those without a file come last.
    segments: Vec<Arc<Segment>>,
    tail: Arc<Tail>,
    /// Segments that could not be opened, and were left out.
    damaged: Vec<String>,
}

/// How an index is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenOptions {
    /// Rows are to be added or removed.
    pub write: bool,
    /// Segments that cannot be used are left out.
    pub skip_damaged: bool,
    /// All checksums are looked at now, and not when a part is first asked for.
    pub check: bool,
    /// What building may use; 0 for 2 GiB.
    pub memory_bytes: u64,
    /// Rows in memory from which they are written to a file; 0 for 262,144.
    pub memory_rows: u64,
}

impl Index {
    /// Makes an empty index in `directory`, which must not hold one unless `replace` is set. A new one is there for
    /// others when something was written to it.
    ///
    /// # Errors
    /// When there is one, when the directory holds other things, or when it cannot be written.
    pub fn create(directory: &Path, config: IndexConfig, memory_bytes: u64, replace: bool) -> Result<Index> {
        config.check()?;
        make_directory(directory)?;
        let lock = lock(directory)?;
        let holds_index = Manifest::path(directory).exists();
        if holds_index && !replace {
            return Err(Error::Usage(format!(
                "{}: there is an index already; use lookalike index add to add to it, or --force to replace it",
                directory.display()
            )));
        }
        let entries = std::fs::read_dir(directory).map_err(Error::io(directory, "read"))?;
        let mut others = entries.flatten().filter(|entry| !is_ours(&entry.file_name().to_string_lossy()));
        if !holds_index && !replace && others.next().is_some() {
            return Err(Error::Usage(format!(
                "{}: the directory holds other things; choose another, or use --force (they stay)",
                directory.display()
            )));
        }
        // An index that is there stays until the first segment of the new one is.
        let mut manifest = Manifest::new(config);
        manifest.next = manifest.free_number(directory);
        let options = OpenOptions { write: true, memory_bytes, ..OpenOptions::default() };
        let mut index = Index::with(directory, manifest, Some(lock), options)?;
        index.replaces = true.into();
        Ok(index)
    }

    /// Opens the index in `directory`.
    ///
    /// Its segments are mapped into memory: no other program may change or shorten them while the index is open.
    /// (Copying or removing them does no harm, nor does another process that uses the index through this library.)
    ///
    /// # Errors
    /// When there is none, when a part of it is damaged, or when somebody else writes to it and
    /// `write` is set.
    pub fn open(directory: &Path, options: OpenOptions) -> Result<Index> {
        let mut index = Index::open_segments(directory, options)?;
        if *index.store.lock().unwrap_or_else(PoisonError::into_inner) != Some(true) {
            return Ok(index);
        }
        if !options.write {
            // A server has it, or had it and was killed; what it had done until a moment ago counts.
            let reading = lock(directory)?;
            index = Index::open_segments(directory, options)?;
            index.reading = Some(reading);
        }
        index.read_store(&index.open_store(options.skip_damaged)?, options.skip_damaged)?;
        if options.write {
            index.flush()?;
            index.set_store(false)?;
        }
        Ok(index)
    }

    /// The same for whoever reads the store, which nobody else may then.
    pub(crate) fn open_to_serve(directory: &Path, options: OpenOptions) -> Result<Index> {
        if options.write {
            return Index::open_segments(directory, options);
        }
        Manifest::read(directory)?;
        let reading = lock(directory)?;
        let mut index = Index::open_segments(directory, options)?;
        index.reading = Some(reading);
        Ok(index)
    }

    /// What the segments have.
    fn open_segments(directory: &Path, options: OpenOptions) -> Result<Index> {
        if options.write && options.skip_damaged {
            return Err(Error::Usage(
                "an index without its damaged segments is not written to: they would be lost for good".to_owned(),
            ));
        }
        let lock = if options.write && Manifest::path(directory).exists() { Some(lock(directory)?) } else { None };
        loop {
            let manifest = Manifest::read(directory)?;
            if lock.is_some() {
                manifest.remove_strangers(directory)?;
                return Index::with(directory, manifest, lock, options);
            }
            let listed = manifest.segments.clone();
            let is_gone = listed.iter().any(|name| !directory.join(name).exists());
            let opened = Index::with(directory, manifest, None, options);
            let not_found = |error: &Error| matches!(error, Error::Io { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound);
            // A writer may have replaced what the manifest listed a moment ago.
            if (is_gone || opened.as_ref().is_err_and(not_found)) && Manifest::read(directory)?.segments != listed {
                continue;
            }
            return opened;
        }
    }

    fn with(directory: &Path, manifest: Manifest, lock: Option<File>, options: OpenOptions) -> Result<Index> {
        if options.write {
            clear_building(directory)?;
        }
        let hash = manifest.config.hash();
        let next = manifest.free_number(directory);
        let (mut segments, mut damaged) = (Vec::new(), Vec::new());
        for name in &manifest.segments {
            let whole = open_segment(&directory.join(name), hash).and_then(|segment| {
                match options.skip_damaged || options.check {
                    // Damage that would be met later must be known now.
                    true => segment.file().check_all().into_iter().next().map_or(Ok(segment), Err),
                    false => Ok(segment),
                }
            });
            match whole {
                Ok(segment) => segments.push(Arc::new(segment)),
                Err(error) if options.skip_damaged => damaged.push(error.to_string()),
                Err(Error::BadSegment { path, reason }) => {
                    let reason = format!("{reason} (--skip-damaged serves the other segments)");
                    return Err(Error::BadSegment { path, reason });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Index {
            directory: directory.to_path_buf(),
            config: manifest.config,
            state: ArcSwap::from_pointee(IndexState { segments, tail: Arc::default(), damaged }),
            writing: Mutex::default(),
            merging: Mutex::default(),
            next: next.into(),
            next_id: manifest.next_id.into(),
            covered: manifest.store.map_or(0, |store| store.covered).into(),
            store: Mutex::new(manifest.store.map(|store| store.open)),
            builds: 0.into(),
            replaces: false.into(),
            memory_rows: if options.memory_rows == 0 { live::changes::MEMORY_ROWS } else { options.memory_rows },
            memory_bytes: if options.memory_bytes == 0 { 2 << 30 } else { options.memory_bytes },
            lock,
            reading: None,
        })
    }

    /// What the index is for.
    #[must_use]
    pub fn config(&self) -> &IndexConfig {
        &self.config
    }

    /// A number that is another when the index has other rows.
    #[must_use]
    pub fn version(&self) -> u64 {
        let state = self.state.load();
        let mut names = format!("{:016x}", self.config.hash());
        for segment in &state.segments {
            names.push_str(&format!(" {} {} {}", segment.meta.rows, segment.meta.fingerprints, segment.deleted.len()));
        }
        names.push_str(&format!(" {}", state.tail.rows.len()));
        xxhash_rust::xxh3::xxh3_64(names.as_bytes())
    }

    /// Where it is.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What is there now, for queries; does not change when rows come or go.
    #[must_use]
    pub fn reader(&self) -> IndexReader {
        IndexReader::new(self.state.load_full())
    }

    /// The number that a row without an id gets: above all numbers that rows have had.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.next_id.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Segments that were left out because they are damaged.
    #[must_use]
    pub fn damaged(&self) -> Vec<String> {
        self.state.load().damaged.clone()
    }
}

fn open_segment(path: &Path, hash: u64) -> Result<Segment> {
    let segment = Segment::open(path)?;
    if segment.meta.config != format!("{hash:016x}") {
        return Err(Error::BadSegment {
            path: path.to_path_buf(),
            reason: format!(
                "holds fingerprints that were made in another way (config {}) than those of this index ({hash:016x}); it belongs to another index",
                segment.meta.config
            ),
        });
    }
    Ok(segment)
}

/// Makes a directory, and those above it, so that they are there after a crash.
fn make_directory(directory: &Path) -> Result<()> {
    let made: Vec<&Path> =
        directory.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.exists()).collect();
    std::fs::create_dir_all(directory).map_err(Error::io(directory, "create"))?;
    for parent in made.iter().filter_map(|made| made.parent()) {
        sync_directory(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })?;
    }
    Ok(())
}

/// Keeps other writers out.
fn lock(directory: &Path) -> Result<File> {
    let path = directory.join(LOCK);
    let file = File::create(&path).map_err(Error::io(&path, "create"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::IndexLocked { path: directory.to_path_buf() }),
        Err(TryLockError::Error(cause)) => Err(Error::Io { path, action: "lock", cause }),
    }
}

/// What fuzzing calls: any bytes as a segment.
pub(crate) fn exercise(bytes: &[u8], sealed: bool) -> usize {
    let bytes = if sealed { segment::file::seal(bytes) } else { bytes.to_vec() };
    let Ok(segment) = Segment::in_memory(bytes) else { return 0 };
    let (mut room, mut hits, mut keys) = (segment::packed::ProbeScratch::default(), Vec::new(), Vec::new());
    // Whatever it answers, it answers.
    let _ = segment.decode(0..segment.fingerprints().min(1000), &mut keys);
    let queries = keys.iter().copied().take(50).chain([0, u64::MAX, 0x0123_4567_89ab_cdef]);
    for query in queries.collect::<Vec<u64>>() {
        let _ = segment.near(query, segment.design.radius(), false, &mut room, &mut hits);
        let _ = segment.find(query);
        hits.truncate(1000);
    }
    for hit in &hits {
        if let Ok(positions) = segment.positions(hit) {
            let _ = segment.id(positions.start);
        }
    }
    let wrong = if segment.design.radius() <= 3 { segment.verify().len() } else { 0 };
    hits.len() + wrong
}

#[cfg(test)]
mod tests;
