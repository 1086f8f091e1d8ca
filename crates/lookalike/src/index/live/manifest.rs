//! What an index is for, and which segments it has: `manifest.json`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::config::{BandConfig, Config, ConfigV1, FingerprintConfig, PairConfig, ReadConfig};
use crate::error::{Error, Result};
use crate::index::live::backup_list::BACKUP;
use crate::index::live::frames::is_frames;
use crate::index::live::place::is_rebuilt;
use crate::index::live::state::StoreState;
use crate::index::live::store::Totals;
use crate::index::live::{BUILDING, COLLECTIONS, LOCK, MARK, NEW_STORE, SHIPPING, STORE};
use crate::index::segment::huffman::check_block;
use crate::index::segment::ids::IdKind;
use crate::index::segment::{TableCodec, TableFormat, default_huffman_block, is_default_huffman_block};
use crate::names::Named;
use crate::plan::design::{Cut, Design, MOST_RADIUS};
use crate::text::Scope;

/// A manifest that is being written.
const NEW: &str = "manifest.json.new";

/// Where the fingerprints of an index come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FingerprintOrigin {
    /// From elsewhere: nothing is known about how they were made.
    Given,
    /// From pages, made as this says.
    Pages(Box<FingerprintConfig>),
    /// There are none: pages are found by the keys of their bands, made as this says.
    Bands(Box<BandConfig>),
}

/// What an index is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IndexConfig {
    /// Where fingerprints come from.
    pub fingerprints: FingerprintOrigin,
    /// Pages with fewer tokens have no fingerprint.
    #[serde(default = "default_min_tokens")]
    pub min_tokens: u32,
    /// How the pages of files are read that are added; does not decide a fingerprint.
    #[serde(default)]
    pub read: ReadConfig,
    /// What ids are.
    pub ids: IdKind,
    /// Differing bits up to which nothing is missed.
    pub radius: u32,
    /// The table design; without one, the planner chooses for every segment.
    pub cut: Option<Cut>,
    /// How tables are stored.
    pub codec: TableCodec,
    /// Bytes of a block of the codec `huffman`: a power of two from 256 to 65,536; 1024 in the paper.
    #[serde(default = "default_huffman_block", skip_serializing_if = "is_default_huffman_block")]
    pub huffman_block: u32,
    /// Estimated similarity from which a stored page that is near by its fingerprint is a near-duplicate.
    #[serde(default = "default_threshold")]
    pub threshold: f64,
    /// Whether the compared text is kept with every page that is stored online, so that candidates are compared exactly.
    #[serde(default)]
    pub keeps_text: bool,
    /// Seconds after which pages that are stored online go, unless a page says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// What stands for the fingerprints in segments that 0.1.0 wrote, where that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) segment_hash: Option<u64>,
}

fn default_min_tokens() -> u32 {
    PairConfig::default().min_tokens
}

fn default_threshold() -> f64 {
    IndexConfig::THRESHOLD
}

impl IndexConfig {
    /// The threshold where none is given.
    pub const THRESHOLD: f64 = 0.6;

    /// For fingerprints that come with ids.
    #[must_use]
    pub fn given(ids: IdKind, radius: u32) -> IndexConfig {
        IndexConfig {
            fingerprints: FingerprintOrigin::Given,
            min_tokens: default_min_tokens(),
            read: ReadConfig::default(),
            ids,
            radius,
            cut: None,
            codec: TableCodec::EliasFano,
            huffman_block: default_huffman_block(),
            threshold: IndexConfig::THRESHOLD,
            keeps_text: false,
            ttl_seconds: None,
            segment_hash: None,
        }
    }

    /// For pages whose fingerprints are made as `fingerprints` says.
    #[must_use]
    pub fn pages(fingerprints: FingerprintConfig, radius: u32) -> IndexConfig {
        let fingerprints = FingerprintOrigin::Pages(Box::new(fingerprints));
        IndexConfig { fingerprints, ..IndexConfig::given(IdKind::Text, radius) }
    }

    /// For pages that are found by their bands, and decided as `dedup` does.
    #[must_use]
    pub fn bands(bands: BandConfig, threshold: f64) -> IndexConfig {
        let fingerprints = FingerprintOrigin::Bands(Box::new(bands));
        IndexConfig { fingerprints, threshold, keeps_text: true, ..IndexConfig::given(IdKind::Number, 0) }
    }

    /// Whether pages are found by the keys of their bands.
    #[must_use]
    pub fn has_bands(&self) -> bool {
        matches!(self.fingerprints, FingerprintOrigin::Bands(_))
    }

    /// The config that its pages are read with; nothing where its fingerprints are not of pages.
    #[must_use]
    pub fn page_config(&self) -> Option<Config> {
        match &self.fingerprints {
            FingerprintOrigin::Given => None,
            FingerprintOrigin::Pages(fingerprints) => Some(fingerprints.config(&self.read, self.min_tokens)),
            FingerprintOrigin::Bands(bands) => Some(bands.config(&self.read, self.min_tokens, bands.found_from)),
        }
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    /// With what does not.
    pub fn check(&self) -> Result<()> {
        if self.radius > MOST_RADIUS {
            let expected = format!("must be between 0 and {MOST_RADIUS} differing bits");
            return Err(Error::invalid("radius", self.radius, expected));
        }
        if !(0.0..=1.0).contains(&self.threshold) {
            return Err(Error::invalid("threshold", self.threshold, "must be between 0 and 1"));
        }
        match &self.fingerprints {
            FingerprintOrigin::Given => {}
            FingerprintOrigin::Pages(pages) => pages.check()?,
            FingerprintOrigin::Bands(bands) => {
                bands.check(self.threshold)?;
                if !self.keeps_text && bands.content.scope == Scope::Story {
                    let reason = "needs the text of stored pages, of which frames are left out as they are learnt; use core, main or page, or keep the text";
                    return Err(Error::conflict("content", reason));
                }
            }
        }
        check_block(self.huffman_block)
            .map_err(|expected| Error::invalid("huffman_block", self.huffman_block, expected))?;
        if self.codec != TableCodec::Huffman && !is_default_huffman_block(&self.huffman_block) {
            let reason =
                format!("only the codec huffman has blocks, not {}; set `codec` to huffman", self.codec.name());
            return Err(Error::conflict("huffman_block", reason));
        }
        if let Some(cut) = &self.cut {
            Design::new(64, self.radius, cut.clone()).map_err(|reason| Error::invalid("design", cut, reason))?;
        }
        Ok(())
    }

    /// How tables are written.
    pub(crate) fn table_format(&self) -> TableFormat {
        TableFormat { codec: self.codec, huffman_block: self.huffman_block }
    }

    /// Stands for what the fingerprints mean: segments with another one are not mixed in. The same on
    /// every machine; radius, design, codec and threshold do not count.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.segment_hash.unwrap_or_else(|| match &self.fingerprints {
            FingerprintOrigin::Given => hash_of(&MeaningV1::Given, self.ids),
            FingerprintOrigin::Pages(pages) => {
                let config = pages.config(&ReadConfig::default(), self.min_tokens);
                let hash = hash_of(&MeaningV1::Pages(Box::new(ConfigV1::from(&config))), self.ids);
                // Only words are reduced to stems.
                let is_as_ever = pages.content.guesses_language || pages.ngram > 0 || pages.content.language.is_some();
                if is_as_ever { hash } else { xxh3_64(&[&hash.to_le_bytes()[..], b"sure"].concat()) }
            }
            FingerprintOrigin::Bands(bands) => bands.hash(self.min_tokens),
        })
    }
}

/// Where fingerprints come from, as 0.1.0 wrote it: with everything that a run is described by. Segments carry its hash.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MeaningV1 {
    Given,
    Pages(Box<ConfigV1>),
}

fn hash_of(meaning: &MeaningV1, ids: IdKind) -> u64 {
    xxh3_64(&serde_json::to_vec(&(meaning, ids)).expect("plain fields serialise"))
}

/// Turns a manifest of 0.1.0 into one of today.
fn upgrade(manifest: &mut serde_json::Value) -> Result<(), String> {
    let config = &mut manifest["config"];
    let meaning: MeaningV1 =
        serde_json::from_value(config["fingerprints"].clone()).map_err(|error| error.to_string())?;
    let ids: IdKind = serde_json::from_value(config["ids"].clone()).map_err(|error| error.to_string())?;
    if let MeaningV1::Pages(pages) = &meaning {
        let mut whole = pages.upgrade().map_err(|error| error.to_string())?;
        whole.content.guesses_language = true;
        let fingerprints =
            FingerprintConfig::of_config(&whole).ok_or("its pages have no fingerprints: another method made it")?;
        let min_tokens = whole.pairs.min_tokens;
        let today = IndexConfig { ids, min_tokens, ..IndexConfig::pages(fingerprints.clone(), 0) };
        let written = hash_of(&meaning, ids);
        let to_value = |value: serde_json::Result<serde_json::Value>| value.map_err(|error| error.to_string());
        config["fingerprints"] = to_value(serde_json::to_value(FingerprintOrigin::Pages(Box::new(fingerprints))))?;
        config["min_tokens"] = min_tokens.into();
        config["read"] = to_value(serde_json::to_value(&whole.read))?;
        if written != today.hash() {
            config["segment_hash"] = written.into();
        }
    }
    Ok(())
}

/// The list of segments.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    format: u32,
    pub(crate) config: IndexConfig,
    /// From old to new.
    pub(crate) segments: Vec<String>,
    /// Tables of band keys, from old to new.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) bands: Vec<String>,
    /// The number of the next segment.
    pub(crate) next: u64,
    /// The number of the next row without an id.
    pub(crate) next_id: u64,
    /// What a store beside the segments has, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store: Option<StoreEntry>,
}

/// A [`StoreState`] as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct StoreEntry {
    /// The number of the last change that is in segments, with all before it.
    covered: u64,
    /// Whether there may be changes after that.
    open: bool,
    /// What the store has had when it was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    totals: Option<Totals>,
}

/// The format of a manifest: 1 and 2 (with a store) are those of 0.1.0, which wrote all of a run's config; 4 may have band
/// keys, and what the store must have.
const MANIFEST_FORMAT: u32 = 4;
/// The first format that has today's config.
const CONFIG_FORMAT: u64 = 3;

impl Manifest {
    pub(crate) fn new(config: IndexConfig) -> Manifest {
        let (segments, bands) = (Vec::new(), Vec::new());
        Manifest { format: MANIFEST_FORMAT, config, segments, bands, next: 1, next_id: 0, store: None }
    }

    /// Notes where the store stands, and what it has had when it was closed.
    pub(crate) fn set_store(&mut self, store: StoreState, totals: Option<Totals>) {
        self.store = match store {
            StoreState::Unwritten | StoreState::Absent => None,
            StoreState::Settled { covered } => Some(StoreEntry { covered, open: false, totals }),
            StoreState::Ahead { covered } => Some(StoreEntry { covered, open: true, totals: None }),
        };
    }

    /// What the store must have, if it was closed.
    pub(crate) fn totals(&self) -> Option<Totals> {
        self.store.and_then(|store| store.totals)
    }

    /// The names of its files.
    pub(crate) fn files(&self) -> Vec<String> {
        self.segments.iter().chain(&self.bands).cloned().collect()
    }

    pub(crate) fn store(&self) -> StoreState {
        match self.store {
            None => StoreState::Absent,
            Some(StoreEntry { covered, open: false, .. }) => StoreState::Settled { covered },
            Some(StoreEntry { covered, open: true, .. }) => StoreState::Ahead { covered },
        }
    }

    pub(crate) fn path(directory: &Path) -> PathBuf {
        directory.join("manifest.json")
    }

    pub(crate) fn read(directory: &Path) -> Result<Manifest> {
        let path = Manifest::path(directory);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::bad_input(directory, "holds no index; check the path, or build one there"));
            }
            Err(cause) => return Err(Error::io(&path, "read")(cause)),
        };
        let bad = |reason: String| Error::corrupt(&path, reason);
        let mut value: serde_json::Value = serde_json::from_slice(&bytes)
            .map_err(|cause| bad(format!("is damaged ({cause}); restore it from a copy")))?;
        let Some(format) = value.get("format").and_then(serde_json::Value::as_u64) else {
            return Err(bad("is damaged: it has no format number; restore it from a copy".to_owned()));
        };
        if !(1..=u64::from(MANIFEST_FORMAT)).contains(&format) {
            return Err(bad(format!(
                "has the format {format}, and this program reads 1 to {MANIFEST_FORMAT}; use the version of lookalike that wrote it, or a newer one"
            )));
        }
        if format < CONFIG_FORMAT {
            upgrade(&mut value).map_err(|reason| bad(format!("makes no sense ({reason}); restore it from a copy")))?;
        }
        value["format"] = MANIFEST_FORMAT.into();
        let manifest: Manifest = serde_json::from_value(value)
            .map_err(|cause| bad(format!("makes no sense ({cause}); restore it from a copy")))?;
        if let Some(name) = manifest.files().iter().find(|name| segment_number(name).is_none()) {
            return Err(bad(format!("lists '{name}', which is not the name of a segment")));
        }
        let checked = manifest.config.check();
        checked.map_err(|cause| bad(format!("makes no sense ({cause}); restore it from a copy")))?;
        Ok(manifest)
    }

    /// Atomically takes the place of the manifest that is there.
    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self)
            .map_err(|cause| Error::internal(format!("a manifest cannot be serialised: {cause}")))?;
        write_whole(directory, &text)
    }

    /// A number that no segment in the directory has had, as far as that can be seen.
    pub(crate) fn free_number(&self, directory: &Path) -> u64 {
        let there = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let there = there.filter_map(|entry| segment_number(&entry.file_name().to_string_lossy()));
        there.map(|number| number.saturating_add(1)).fold(self.next, u64::max)
    }

    /// Removes segments that the manifest does not list: what a killed run left, or an index that was replaced.
    pub(crate) fn remove_unlisted(&self, directory: &Path) -> Result<()> {
        let entries = std::fs::read_dir(directory).map_err(Error::io(directory, "read"))?;
        let listed = self.files();
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_old_frame = is_frames(&name) && self.config.frames_file().as_ref() != Some(&name);
            if name == NEW || is_old_frame || segment_number(&name).is_some() && !listed.contains(&name) {
                std::fs::remove_file(entry.path()).map_err(Error::io(&entry.path(), "remove"))?;
            }
        }
        Ok(())
    }
}

/// Atomically puts these bytes in the place of the manifest of a directory.
pub(crate) fn write_whole(directory: &Path, bytes: &[u8]) -> Result<()> {
    let (path, aside) = (Manifest::path(directory), directory.join(NEW));
    let mut file = File::create(&aside).map_err(Error::io(&aside, "create"))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(Error::io(&aside, "write"))?;
    std::fs::rename(&aside, &path).map_err(Error::io(&path, "write"))?;
    sync_directory(directory)
}

/// Removes what killed runs were building.
pub(crate) fn clear_building(directory: &Path) -> Result<()> {
    for left in [directory.join(BUILDING), directory.join(NEW_STORE)] {
        if left.exists() {
            std::fs::remove_dir_all(&left).map_err(Error::io(&left, "remove"))?;
        }
    }
    Ok(())
}

/// Whether a file of this name belongs to an index.
pub(crate) fn belongs_to_index(name: &str) -> bool {
    [LOCK, BUILDING, NEW, STORE, NEW_STORE, COLLECTIONS, MARK, BACKUP, SHIPPING].contains(&name)
        || segment_number(name).is_some()
        || is_frames(name)
        || is_rebuilt(name)
}

/// The name of a segment.
pub(crate) fn segment_name(number: u64) -> String {
    format!("segment-{number:06}.seg")
}

/// The name of a table of band keys.
pub(crate) fn bands_name(number: u64) -> String {
    format!("bands-{number:06}.seg")
}

fn segment_number(name: &str) -> Option<u64> {
    name.strip_prefix("segment-").or(name.strip_prefix("bands-"))?.strip_suffix(".seg")?.parse().ok()
}

/// Makes sure that files which were made or renamed in a directory are there after a crash.
pub(crate) fn sync_directory(directory: &Path) -> Result<()> {
    File::open(directory).and_then(|file| file.sync_all()).map_err(Error::io(directory, "sync"))
}
