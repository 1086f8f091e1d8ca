//! Making and opening an index: its directory, its lock, its segments, and what its store has beyond them.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;

use crate::error::{Error, Result};
use crate::index::bands::{BandMemory, BandTable};
use crate::index::live::backup_list::check_restored;
use crate::index::live::frames::{read_frames, write_frames};
use crate::index::live::manifest::{IndexConfig, Manifest, belongs_to_index, clear_building, sync_directory};
use crate::index::live::place::{clear_others, place};
use crate::index::live::state::{IndexState, StoreState};
use crate::index::live::{Access, Index, LOCK, Numbers};
use crate::index::segment::Segment;
use crate::index::segment::file::SegmentFile;

/// Rows in memory from which they are written to a file, unless something else is wanted.
const MEMORY_ROWS: u64 = 1 << 18;
/// What building may use, unless something else is wanted.
const MEMORY_BYTES: u64 = 2 << 30;

/// How an index is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenOptions {
    /// Rows are to be added or removed.
    pub write: bool,
    /// Segments that cannot be used are left out.
    pub skip_damaged: bool,
    /// All checksums are checked now, not when a part is first read.
    pub check: bool,
    /// What building may use; 0 for 2 GiB.
    pub memory_bytes: u64,
    /// Rows in memory from which they are written to a file; 0 for 262,144.
    pub memory_rows: u64,
}

impl Index {
    /// Makes an empty index in `directory`, which must not hold one unless `replace` is set. Others can open it once
    /// something was written to it.
    ///
    /// # Errors
    /// When there is one, when the directory holds other things, or when it cannot be written.
    pub fn create(directory: &Path, config: IndexConfig, memory_bytes: u64, replace: bool) -> Result<Index> {
        config.check()?;
        make_directory(directory)?;
        // Whoever uses one that is to be replaced has the lock where its files are.
        let current = place(directory)?;
        let _current = if current.is_dir() && current != directory { Some(lock(&current)?) } else { None };
        let lock = lock(directory)?;
        let holds_index = Manifest::path(directory).exists();
        if holds_index && !replace {
            return Err(Error::bad_input(directory, "holds an index already; add to it, or use `force` to replace it"));
        }
        let entries = std::fs::read_dir(directory).map_err(Error::io(directory, "read"))?;
        let mut others = entries.flatten().filter(|entry| !belongs_to_index(&entry.file_name().to_string_lossy()));
        if !holds_index && !replace && others.next().is_some() {
            let reason = "the directory holds other things; choose another, or use `force` (they stay)";
            return Err(Error::bad_input(directory, reason));
        }
        write_frames(directory, &config)?;
        // An index that is there stays until the first segment of the new one is written.
        let mut manifest = Manifest::new(config);
        manifest.next = manifest.free_number(directory);
        let options = OpenOptions { write: true, memory_bytes, ..OpenOptions::default() };
        Index::load(directory, manifest, StoreState::Unwritten, Access::Write { _lock: lock }, options)
    }

    /// Opens the index in `directory`.
    ///
    /// Its segments are mapped into memory: no other program may change or shorten them while the index is open.
    /// (Copying or removing them does no harm, nor does another process that uses the index through this library.)
    ///
    /// # Errors
    /// When there is none, when a part of it is damaged, or when another process writes to it and
    /// `write` is set.
    pub fn open(directory: &Path, options: OpenOptions) -> Result<Index> {
        let mut index = Index::open_segments(directory, options)?;
        if !matches!(index.state.load().store, StoreState::Ahead { .. }) {
            return Ok(index);
        }
        let directory = &place(directory)?;
        if !options.write {
            // A server has it, or had it and was killed; under the lock, what it had done until a moment ago counts.
            let lock = lock(directory)?;
            index = Index::open_segments(directory, options)?;
            index.access = Access::ReadStore { _lock: lock };
        }
        let totals = index.read_store(&index.open_store(options.skip_damaged, 0)?, options.skip_damaged)?;
        if options.write {
            index.flush()?;
            index.mark_store_settled(totals)?;
        }
        Ok(index)
    }

    /// Opens the index for a caller that reads the store itself, which nobody else may then.
    pub(crate) fn open_to_serve(directory: &Path, options: OpenOptions) -> Result<Index> {
        if options.write {
            return Index::open_segments(directory, options);
        }
        let directory = &place(directory)?;
        Manifest::read(directory)?;
        let lock = lock(directory)?;
        let mut index = Index::open_segments(directory, options)?;
        index.access = Access::ReadStore { _lock: lock };
        Ok(index)
    }

    /// Opens the index without what only its store has.
    fn open_segments(directory: &Path, options: OpenOptions) -> Result<Index> {
        if options.write && options.skip_damaged {
            let reason = "an index without its damaged segments cannot be written to: they would be lost for good";
            return Err(Error::conflict("skip_damaged", reason));
        }
        let given = directory;
        let directory = &place(given)?;
        if options.write && Manifest::path(directory).exists() {
            let lock = lock(directory)?;
            clear_others(given, directory)?;
            check_restored(directory, true)?;
            let manifest = Manifest::read(directory)?;
            manifest.remove_unlisted(directory)?;
            let store = manifest.store();
            return Index::load(directory, manifest, store, Access::Write { _lock: lock }, options);
        }
        check_restored(directory, false)?;
        loop {
            let manifest = Manifest::read(directory)?;
            let (listed, store) = (manifest.files(), manifest.store());
            let is_gone = listed.iter().any(|name| !directory.join(name).exists());
            let opened = Index::load(directory, manifest, store, Access::ReadSegments, options);
            let not_found = |error: &Error| matches!(error, Error::Io { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound);
            // A writer may have replaced what the manifest listed a moment ago.
            if is_gone || opened.as_ref().is_err_and(not_found) {
                if place(given)? != *directory {
                    return Index::open_segments(given, options);
                }
                if Manifest::read(directory)?.files() != listed {
                    continue;
                }
            }
            return opened;
        }
    }

    fn load(
        directory: &Path,
        mut manifest: Manifest,
        store: StoreState,
        access: Access,
        options: OpenOptions,
    ) -> Result<Index> {
        read_frames(directory, &mut manifest.config)?;
        if options.write {
            clear_building(directory)?;
        }
        let next = manifest.free_number(directory);
        let (mut segments, mut bands, mut damaged) = (Vec::new(), Vec::new(), Vec::new());
        // Damage that would be met later must be known now.
        let check = |file: &SegmentFile| match options.skip_damaged || options.check {
            true => file.check_all().into_iter().next().map_or(Ok(()), Err),
            false => Ok(()),
        };
        for name in &manifest.segments {
            let opened = open_segment(&directory.join(name), &manifest.config);
            let whole = opened.and_then(|segment| check(segment.file()).map(|()| segment));
            segments.extend(unless_damaged(whole, options, &mut damaged)?.map(Arc::new));
        }
        for name in &manifest.bands {
            let opened = open_bands(&directory.join(name), &manifest.config);
            let whole = opened.and_then(|table| check(table.file()).map(|()| table));
            bands.extend(unless_damaged(whole, options, &mut damaged)?.map(Arc::new));
        }
        let settled = manifest.totals();
        Ok(Index {
            directory: directory.to_path_buf(),
            config: manifest.config,
            state: ArcSwap::from_pointee(IndexState {
                segments,
                tail: Arc::default(),
                bands,
                frozen: Vec::new(),
                band_memory: Arc::new(BandMemory::new(0)),
                damaged,
                store,
            }),
            band_tail: Mutex::default(),
            settled: Mutex::new(settled),
            writing: Mutex::default(),
            merging: Mutex::default(),
            numbers: Numbers { segment: next.into(), row: manifest.next_id.into(), build: 0.into() },
            memory_rows: if options.memory_rows == 0 { MEMORY_ROWS } else { options.memory_rows },
            memory_bytes: if options.memory_bytes == 0 { MEMORY_BYTES } else { options.memory_bytes },
            access,
        })
    }
}

/// Opens a segment of an index with this config.
pub(super) fn open_segment(path: &Path, config: &IndexConfig) -> Result<Segment> {
    let segment = Segment::open(path)?;
    let hash = config.hash();
    if segment.meta.config != format!("{hash:016x}") || segment.meta.ids != config.ids {
        return Err(segment.file().corrupt(format!(
            "holds fingerprints that were made in another way (config {}) than those of this index ({hash:016x}); it belongs to another index",
            segment.meta.config
        )));
    }
    Ok(segment)
}

/// Opens a table of band keys of an index with this config.
pub(super) fn open_bands(path: &Path, config: &IndexConfig) -> Result<BandTable> {
    let table = BandTable::open(path)?;
    let hash = config.hash();
    if table.meta.config != format!("{hash:016x}") {
        return Err(table.file().corrupt(format!(
            "holds keys that were made in another way (config {}) than those of this index ({hash:016x}); it belongs to another index",
            table.meta.config
        )));
    }
    Ok(table)
}

/// What was opened, or nothing where it is damaged and that is to be skipped.
fn unless_damaged<T>(opened: Result<T>, options: OpenOptions, damaged: &mut Vec<String>) -> Result<Option<T>> {
    match opened {
        Err(error) if options.skip_damaged => {
            damaged.push(error.to_string());
            Ok(None)
        }
        Err(Error::Corrupt { path, reason }) => {
            Err(Error::corrupt(&path, format!("{reason} (`skip_damaged` serves the other segments)")))
        }
        opened => opened.map(Some),
    }
}

/// Makes a directory, and those above it, so that they survive a crash.
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
