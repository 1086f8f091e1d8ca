//! What has been read, in files: for units whose turn has not come, and for a run that goes on with
//! what a killed one has done.
//!
//! A file a unit, `read-0000`, … in the work directory: batches, and at the end a mark that the unit is whole. A unit of
//! files on disk that is not whole is gone on with behind its last batch. `read-key` says which job they belong to. A small
//! job of one unit cannot be resumed, and writes no files unless its pages have to wait until frames are known.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::files::READ_KEY;
use crate::job::dedup::entries::{Entries, EntryWriter, broken, write_whole};
use crate::job::dedup::sketched_batch::SketchedBatch;
use crate::job::dedup::{Against, Run};
use crate::read::{Corpus, STDIN, Source, UNIT_BYTES, Unit, UnitEnd};
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
    open: HashMap<usize, EntryWriter>,
    ends: HashMap<usize, UnitEnd>,
    /// Batches of units that an earlier run began.
    begun: HashMap<usize, u64>,
}

impl Checkpoints {
    /// Takes over what an earlier run has left, if that is wanted and it was the same job.
    pub(super) fn open(run: &Run<'_>, corpus: &Corpus, units: &[Unit]) -> Result<Checkpoints> {
        let directory = run.work.path().to_path_buf();
        let key = key(run, corpus, units);
        let (open, ends, begun) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut checkpoints = Checkpoints { directory, is_used: false, open, ends, begun };
        let path = checkpoints.directory.join(READ_KEY);
        let goes_on = run.options.resume && path.exists();
        if goes_on {
            let known = fs::read_to_string(&path).map_err(Error::io(&path, "read"))?;
            if known != key {
                let reason = format!(
                    "{} holds the work of another job: other options, another version, or files that have changed since; run without `resume` to start over",
                    checkpoints.directory.display()
                );
                return Err(Error::conflict("resume", reason));
            }
            for (number, unit) in units.iter().enumerate() {
                checkpoints.take_over(number, &corpus.sources[unit.sources.clone()])?;
            }
        }
        let is_stream = corpus.sources.iter().all(|source| source.display == STDIN);
        if goes_on || !is_stream && (units.len() > 1 || corpus.bytes() >= 2 * UNIT_BYTES) {
            write_whole(&path, &key)?;
            run.work.keep_for_resuming();
            checkpoints.is_used = true;
        }
        Ok(checkpoints)
    }

    /// What comes from now on is written, if it was not before; says whether it was. What was written from the first batch
    /// on is what a later run can go on with.
    pub(super) fn start_writing(&mut self) -> bool {
        std::mem::replace(&mut self.is_used, true)
    }

    /// Whether a unit has been read to its end.
    pub(super) fn is_done(&self, unit: usize) -> bool {
        self.ends.contains_key(&unit)
    }

    /// How many batches of a unit an earlier run has left that did not come to its end.
    pub(super) fn batches_begun(&self, unit: usize) -> u64 {
        self.begun.get(&unit).copied().unwrap_or(0)
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
            file.flush()?;
        }
        self.ends.insert(unit, end);
        Ok(())
    }

    /// The batches of a unit so far.
    pub(super) fn batches(&mut self, unit: usize) -> Result<impl Iterator<Item = Result<SketchedBatch>> + use<>> {
        let path = self.path(unit);
        if let Some(file) = self.open.get_mut(&unit) {
            file.flush()?;
        }
        let entries = if self.is_used { Entries::open_if_any(&path)? } else { None };
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
        self.open.values_mut().try_for_each(EntryWriter::flush)?;
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
            std::collections::hash_map::Entry::Vacant(new) => new.insert(EntryWriter::create(&path)?),
        };
        file.add(bytes)
    }

    /// Looks for what an earlier run has left of a unit of these sources: all of it, or its first batches.
    fn take_over(&mut self, unit: usize, sources: &[Source]) -> Result<()> {
        let path = self.path(unit);
        let Some(mut entries) = Entries::open_if_any(&path)? else { return Ok(()) };
        let (mut batches, mut good_bytes) = (0, 0);
        while let Some(Ok(bytes)) = entries.next() {
            if !is_batch(&bytes) {
                if let Ok(Entry::End(end)) = decode(&path, &bytes) {
                    self.ends.insert(unit, end);
                    return Ok(());
                }
                break;
            }
            batches += 1;
            good_bytes = entries.position();
        }
        // What comes from afar may be cut into other batches the next time.
        if batches == 0 || !sources.iter().all(|source| source.location.path().is_some()) {
            return self.drop_unit(unit);
        }
        self.open.insert(unit, EntryWriter::go_on(&path, good_bytes)?);
        self.begun.insert(unit, batches);
        Ok(())
    }
}

/// What the files are good for: the same config on the same input, by the same version.
fn key(run: &Run<'_>, corpus: &Corpus, units: &[Unit]) -> String {
    // All files were asked for their versions once, for the number of the job: asking again takes time where they are many.
    let job = match run.job {
        Some(job) => format!("{job:016x}\n"),
        None => job_text(run.config, corpus, run.against),
    };
    let mut key = format!("lookalike {}\n{job}", env!("CARGO_PKG_VERSION"));
    for unit in units {
        key += &format!("{:?} {}\n", unit.sources, unit.stretch.as_ref().map_or(0, |stretch| stretch.from));
    }
    key
}

/// What decides a result: the config, and what was read.
fn job_text(config: &Config, corpus: &Corpus, against: Option<&Against>) -> String {
    let mut text = format!("{:016x}\n", config.hash());
    for source in &corpus.sources {
        let _ = writeln!(text, "{} {} {}", source.bytes, source.location.version(), source.display);
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
