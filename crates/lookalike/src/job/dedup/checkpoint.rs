//! What has been read, in files: for units whose turn has not come, and for a run that goes on with
//! what a killed one has done.
//!
//! A file a unit, `read-0000`, … in the work directory: batches, each with its length and a checksum,
//! and at the end a mark that the unit is whole. `read-key` says which job they belong to. A job of one
//! unit writes none, unless its pages have to wait until frames are known.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::files::READ_KEY;
use crate::job::dedup::sketched_batch::SketchedBatch;
use crate::job::dedup::{Against, Run};
use crate::read::{Corpus, STDIN, Source, Unit, UnitEnd};
use crate::work_dir::READ_PREFIX;

/// What a file holds, one after the other.
#[derive(Serialize, Deserialize)]
pub(super) enum Entry<B> {
    Batch(B),
    End(UnitEnd),
}

/// The files of a run.
pub(super) struct Checkpoints {
    directory: PathBuf,
    /// Whether there are files at all.
    is_used: bool,
    open: HashMap<usize, BufWriter<File>>,
    ends: HashMap<usize, UnitEnd>,
    key: String,
}

impl Checkpoints {
    /// Takes over what an earlier run has left, if that is wanted and it was the same job.
    pub(super) fn open(run: &Run<'_>, corpus: &Corpus, units: &[Unit]) -> Result<Checkpoints> {
        let directory = run.work.path().to_path_buf();
        let key = key(run, corpus, units);
        let (open, ends) = (HashMap::new(), HashMap::new());
        let mut checkpoints = Checkpoints { directory, is_used: false, open, ends, key };
        let path = checkpoints.directory.join(READ_KEY);
        if run.options.resume && path.exists() {
            let known = fs::read_to_string(&path).map_err(Error::io(&path, "read"))?;
            if known != checkpoints.key {
                let reason = format!(
                    "{} holds the work of another job: other options, another version, or files that have changed since; run without `resume` to start over",
                    checkpoints.directory.display()
                );
                return Err(Error::conflict("resume", reason));
            }
            for unit in 0..units.len() {
                match checkpoints.whole_end(unit) {
                    Some(end) => drop(checkpoints.ends.insert(unit, end)),
                    None => checkpoints.drop_unit(unit)?,
                }
            }
        }
        if units.len() > 1 || !checkpoints.ends.is_empty() {
            checkpoints.start_writing(run)?;
        }
        Ok(checkpoints)
    }

    /// What comes from now on is written, if it was not before; says whether it was.
    pub(super) fn start_writing(&mut self, run: &Run<'_>) -> Result<bool> {
        if self.is_used {
            return Ok(true);
        }
        let path = self.directory.join(READ_KEY);
        fs::write(&path, &self.key).map_err(Error::io(&path, "write"))?;
        run.work.keep_for_resuming();
        self.is_used = true;
        Ok(false)
    }

    /// Whether a unit has been read to its end.
    pub(super) fn is_done(&self, unit: usize) -> bool {
        self.ends.contains_key(&unit)
    }

    /// Where a unit ended, if it has.
    pub(super) fn end_of(&self, unit: usize) -> Option<UnitEnd> {
        self.ends.get(&unit).copied()
    }

    /// Adds a batch to a unit.
    pub(super) fn add(&mut self, unit: usize, batch: &SketchedBatch) -> Result<()> {
        self.write(unit, &Entry::Batch(batch))
    }

    /// A unit has been read to its end.
    pub(super) fn finish(&mut self, unit: usize, end: UnitEnd) -> Result<()> {
        self.write(unit, &Entry::<&SketchedBatch>::End(end))?;
        if let Some(mut file) = self.open.remove(&unit) {
            file.flush().map_err(Error::io(&self.path(unit), "write"))?;
        }
        self.ends.insert(unit, end);
        Ok(())
    }

    /// The batches of a unit so far.
    pub(super) fn batches(&mut self, unit: usize) -> Result<impl Iterator<Item = Result<SketchedBatch>> + use<>> {
        let path = self.path(unit);
        if let Some(file) = self.open.get_mut(&unit) {
            file.flush().map_err(Error::io(&path, "write"))?;
        }
        let entries = if self.is_used && path.exists() { Some(Entries::open(&path)?) } else { None };
        let entries = entries.into_iter().flatten().map(move |bytes| decode(&path, &bytes?));
        Ok(entries.filter_map(|entry| match entry {
            Ok(Entry::Batch(batch)) => Some(Ok(batch)),
            Ok(Entry::End(_)) => None,
            Err(error) => Some(Err(error)),
        }))
    }

    /// A unit is not needed.
    pub(super) fn drop_unit(&mut self, unit: usize) -> Result<()> {
        self.open.remove(&unit);
        let path = self.path(unit);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(&path, "remove")(error)),
            _ => Ok(()),
        }
    }

    /// The files of units that have been read to their ends, from `first` on.
    pub(super) fn files(&mut self, first: usize, units: usize) -> Result<Vec<(usize, PathBuf, UnitEnd)>> {
        for (&unit, file) in &mut self.open {
            let path = self.directory.join(name(unit));
            file.flush().map_err(Error::io(&path, "write"))?;
        }
        let files = (first..units).filter_map(|unit| Some((unit, self.path(unit), self.end_of(unit)?)));
        Ok(files.collect())
    }

    fn path(&self, unit: usize) -> PathBuf {
        self.directory.join(name(unit))
    }

    fn write(&mut self, unit: usize, entry: &Entry<&SketchedBatch>) -> Result<()> {
        if !self.is_used {
            return Ok(());
        }
        self.add_entry(unit, &to_bytes(entry)?)
    }

    /// Adds a batch in its bytes to a unit.
    pub(super) fn add_entry(&mut self, unit: usize, bytes: &[u8]) -> Result<()> {
        let path = self.path(unit);
        let file = match self.open.entry(unit) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(BufWriter::new(File::create(&path).map_err(Error::io(&path, "create"))?))
            }
        };
        let write = |file: &mut BufWriter<File>| {
            file.write_all(&(bytes.len() as u64).to_le_bytes())?;
            file.write_all(&xxh3_64(bytes).to_le_bytes())?;
            file.write_all(bytes)
        };
        write(file).map_err(Error::io(&path, "write"))
    }

    /// Where a unit of an earlier run ended; nothing if it is not whole.
    fn whole_end(&self, unit: usize) -> Option<UnitEnd> {
        let mut end = None;
        let path = self.path(unit);
        for entry in Entries::open(&path).ok()? {
            match decode(&path, &entry.ok()?).ok()? {
                Entry::Batch(_) => {}
                Entry::End(found) => end = Some(found),
            }
        }
        end
    }
}

/// What the files are good for: the same config on the same input, by the same version.
fn key(run: &Run<'_>, corpus: &Corpus, units: &[Unit]) -> String {
    let mut key = format!("lookalike {}\n{}", env!("CARGO_PKG_VERSION"), job_text(run.config, corpus, run.against));
    for unit in units {
        key += &format!("{:?} {}\n", unit.sources, unit.stretch.as_ref().map_or(0, |stretch| stretch.from));
    }
    key
}

/// What decides a result: the config, and what was read.
fn job_text(config: &Config, corpus: &Corpus, against: Option<&Against>) -> String {
    let mut text = format!("{:016x}\n", config.hash());
    for source in &corpus.sources {
        text += &format!("{} {} {}\n", source.bytes, source.location.version(), source.display);
    }
    // What an index says of a page depends on the index.
    if let Some(index) = against.and_then(Against::index) {
        text += &format!("index {:016x}\n", index.version());
    }
    text
}

/// The job as a number; none where its input was read from a stream, which nobody can compare.
pub(super) fn job(config: &Config, corpus: &Corpus, against: Option<&Against>) -> Option<u64> {
    let is_stream = |source: &Source| source.display == STDIN;
    (!corpus.sources.iter().any(is_stream)).then(|| xxh3_64(job_text(config, corpus, against).as_bytes()))
}

fn broken(path: &Path, reason: &str) -> Error {
    Error::corrupt(path, format!("cannot be used ({reason}); run without `resume`"))
}

/// The bytes of a batch.
pub(super) fn encode(batch: &SketchedBatch) -> Result<Vec<u8>> {
    to_bytes(&Entry::Batch(batch))
}

fn to_bytes(entry: &Entry<&SketchedBatch>) -> Result<Vec<u8>> {
    let expected = if let Entry::Batch(batch) = entry { batch.expected_bytes() } else { 0 };
    postcard::serialize_with_flavor(entry, Growing(Vec::with_capacity(expected)))
        .map_err(|error| Error::internal(format!("a batch cannot be written: {error}")))
}

/// Bytes that are written into room that is there: a batch is large, and growing step by step would copy it several times.
struct Growing(Vec<u8>);

impl Flavor for Growing {
    type Output = Vec<u8>;

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

/// The name of a unit's file.
fn name(unit: usize) -> String {
    format!("{READ_PREFIX}{unit:04}")
}

/// Whether the bytes are those of a batch.
pub(super) fn is_batch(bytes: &[u8]) -> bool {
    bytes.first() == Some(&0)
}

/// An entry from its bytes.
pub(super) fn decode(path: &Path, bytes: &[u8]) -> Result<Entry<SketchedBatch>> {
    postcard::from_bytes(bytes).map_err(|error| broken(path, &error.to_string()))
}

/// Reads a file entry by entry: the bytes of each.
pub(super) struct Entries {
    path: PathBuf,
    file: BufReader<File>,
    left: u64,
}

impl Entries {
    pub(super) fn open(path: &Path) -> Result<Entries> {
        let file = File::open(path).map_err(Error::io(path, "read"))?;
        let left = file.metadata().map_err(Error::io(path, "read"))?.len();
        Ok(Entries { path: path.to_path_buf(), file: BufReader::new(file), left })
    }

    /// The same for a unit that may have left no file, as it had no batch.
    pub(super) fn open_if_any(path: &Path) -> Result<Option<Entries>> {
        if path.exists() { Entries::open(path).map(Some) } else { Ok(None) }
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 16];
        self.file.read_exact(&mut head)?;
        let (length, sum) = head.split_at(8);
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let length = number(length);
        self.left = self.left.checked_sub(16 + length).ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| io::ErrorKind::InvalidData)?];
        self.file.read_exact(&mut bytes)?;
        if xxh3_64(&bytes) == number(sum) { Ok(bytes) } else { Err(io::Error::other("a checksum is wrong")) }
    }
}

impl Iterator for Entries {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let entry = self.read().map_err(|error| broken(&self.path, &error.to_string()));
        if entry.is_err() {
            self.left = 0;
        }
        Some(entry)
    }
}
