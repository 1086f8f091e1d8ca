//! The frames that the fingerprints of an index leave out: a file beside the segments, named by its version.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{KnownFrames, Scope};
use crate::corpus_stats;
use crate::error::{Error, Result};
use crate::index::live::manifest::{FingerprintOrigin, IndexConfig, sync_directory};
use crate::observe::{Observer, Stage};
use crate::read::{Corpus, discover};

const PREFIX: &str = "frames-";
const SUFFIX: &str = ".jsonl";

/// The file with the frames that fingerprints leave out.
fn frames_path(directory: &Path, known: &KnownFrames) -> PathBuf {
    directory.join(frames_name(known))
}

fn frames_name(known: &KnownFrames) -> String {
    format!("{PREFIX}{known}{SUFFIX}")
}

/// Whether a file of this name holds frames.
pub(super) fn is_frames(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|rest| rest.ends_with(SUFFIX))
}

impl IndexConfig {
    /// The file with the frames that its fingerprints leave out, if they do.
    pub(crate) fn frames_file(&self) -> Option<String> {
        match &self.fingerprints {
            // What is known of the frames of pages with bands is in the store.
            FingerprintOrigin::Given | FingerprintOrigin::Bands(_) => None,
            FingerprintOrigin::Pages(pages) => pages.content.frames.as_ref().map(frames_name),
        }
    }

    /// Learns what sites put around their texts from the pages that the index is made of, if its fingerprints leave that
    /// out and it is not known yet. What is learnt belongs to the index: pages that are added later, and pages that are
    /// looked for, are read without the same frames.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn learn_frames(
        &mut self,
        inputs: &[String],
        threads: usize,
        directory: &Path,
        observer: &dyn Observer,
    ) -> Result<()> {
        let FingerprintOrigin::Pages(pages) = &mut self.fingerprints else { return Ok(()) };
        if pages.content.scope != Scope::Story || pages.content.frames.is_some() {
            return Ok(());
        }
        let corpus = Corpus::new(discover(inputs, &self.read, directory, None)?, &self.read);
        observer.start(Stage::Count, corpus.bytes());
        let frames = corpus_stats::learn_frames(pages.content.text_options(), &[&corpus], threads, observer)?;
        observer.finish(Stage::Count);
        pages.content.frames = Some(KnownFrames::new(Arc::new(frames)));
        Ok(())
    }
}

/// Writes the frames that fingerprints leave out, if they do.
pub(super) fn write_frames(directory: &Path, config: &IndexConfig) -> Result<()> {
    let FingerprintOrigin::Pages(pages) = &config.fingerprints else { return Ok(()) };
    let Some(known) = &pages.content.frames else { return Ok(()) };
    let Some(frames) = known.frames() else {
        return Err(Error::internal("an index is to leave out frames that nobody has"));
    };
    let path = frames_path(directory, known);
    let mut file = File::create(&path).map_err(Error::io(&path, "create"))?;
    file.write_all(&KnownFrames::lines(frames)).map_err(Error::io(&path, "write"))?;
    file.sync_all().map_err(Error::io(&path, "write"))?;
    sync_directory(directory)
}

/// Reads the frames that fingerprints leave out, if they do.
pub(super) fn read_frames(directory: &Path, config: &mut IndexConfig) -> Result<()> {
    let FingerprintOrigin::Pages(pages) = &mut config.fingerprints else { return Ok(()) };
    let Some(known) = pages.content.frames.as_mut().filter(|known| known.frames().is_none()) else { return Ok(()) };
    let path = frames_path(directory, known);
    let lines = std::fs::read(&path).map_err(Error::io(&path, "read"))?;
    *known = known.read(&lines).map_err(|reason| Error::corrupt(&path, reason))?;
    Ok(())
}
