//! The indexes of a service: `default` in the directory itself, the others under `collections/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use lookalike::config::{FingerprintConfig, Scope, language};
use lookalike::index::{COLLECTIONS, FingerprintOrigin, IndexConfig};
use lookalike::online::{OnlineOptions, PageVerdict};
use lookalike::{Error, Online, Result};
use metrics::Counter;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::{Problem, ProblemKind};
use crate::settings::Settings;

/// The collection that paths without a name are about.
pub(crate) const DEFAULT: &str = "default";
/// The default of `min_tokens`, the same as that of `lookalike index build`.
const MIN_TOKENS: u32 = 5;
/// Each collection has threads and files of its own.
const MOST_COLLECTIONS: usize = 256;

/// How the pages of a collection are read and compared. The defaults are those of `lookalike index build`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectionSettings {
    /// Words per feature; 0 for content words and phrases of two
    #[schema(minimum = 0, maximum = 8)]
    pub ngram: Option<usize>,
    /// Differing bits of fingerprints up to which pages are candidates
    #[schema(minimum = 0, maximum = 15)]
    pub radius: Option<u32>,
    /// Estimated similarity from which a candidate is a near-duplicate
    #[schema(minimum = 0, maximum = 1)]
    pub threshold: Option<f64>,
    /// The language of all pages, by its code of three letters (eng) or its English name; by default, the language of each page is detected
    #[schema(example = "eng")]
    pub language: Option<String>,
    /// Pages with fewer tokens match only as exact copies
    #[schema(minimum = 0)]
    pub min_tokens: Option<u32>,
    /// Upper and lower case are distinguished
    pub keep_case: Option<bool>,
    /// Dates, times, counters and the like are ignored
    pub mask_volatile: Option<bool>,
    /// Which part of an HTML page counts
    pub content: Option<ContentScope>,
}

/// Which part of an HTML page counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContentScope {
    /// All of it.
    Page,
    /// Blocks that read like prose.
    Core,
    /// What a reader view shows.
    Main,
    /// All but the frames that are known to the index.
    Story,
    /// Its hyperlinks.
    Links,
}

impl CollectionSettings {
    fn config(&self) -> Result<IndexConfig> {
        let mut fingerprints = FingerprintConfig::default();
        let content = self.content.map(|content| match content {
            ContentScope::Page => Scope::Page,
            ContentScope::Core => Scope::Core,
            ContentScope::Main => Scope::Main,
            ContentScope::Story => Scope::Story,
            ContentScope::Links => Scope::Links,
        });
        fingerprints.ngram = self.ngram.unwrap_or(fingerprints.ngram);
        // The check below refuses unknown names.
        fingerprints.content.language = self
            .language
            .as_deref()
            .map(|name| language::by_name(name).map_or_else(|| name.to_owned(), |language| language.code().to_owned()));
        fingerprints.content.keep_case = self.keep_case.unwrap_or(fingerprints.content.keep_case);
        fingerprints.content.mask_volatile = self.mask_volatile.unwrap_or(fingerprints.content.mask_volatile);
        fingerprints.content.scope = content.unwrap_or(fingerprints.content.scope);
        let mut index = IndexConfig::pages(fingerprints, self.radius.unwrap_or(3));
        index.min_tokens = self.min_tokens.unwrap_or(MIN_TOKENS);
        index.threshold = self.threshold.unwrap_or(index.threshold);
        index.check()?;
        Ok(index)
    }

    /// The settings of an index; none if its fingerprints were not made from pages.
    pub(crate) fn of(index: &IndexConfig) -> Option<CollectionSettings> {
        let FingerprintOrigin::Pages(pages) = &index.fingerprints else { return None };
        Some(CollectionSettings {
            ngram: Some(pages.ngram),
            radius: Some(index.radius),
            threshold: Some(index.threshold),
            language: pages.content.language.clone(),
            min_tokens: Some(index.min_tokens),
            keep_case: Some(pages.content.keep_case),
            mask_volatile: Some(pages.content.mask_volatile),
            content: Some(match pages.content.scope {
                Scope::Page => ContentScope::Page,
                Scope::Core => ContentScope::Core,
                Scope::Story => ContentScope::Story,
                Scope::Main => ContentScope::Main,
                Scope::Links => ContentScope::Links,
            }),
        })
    }

    /// Refuses an index with other settings; those that are left out may have any value.
    fn check_met_by(&self, index: &IndexConfig) -> Result<()> {
        let wanted = CollectionSettings::of(&self.config()?).expect("these settings are those of an index of pages");
        // An index of other fingerprints has none of these settings.
        let existing = CollectionSettings::of(index).unwrap_or_default();
        let differs = [
            ("ngram", self.ngram.is_some() && wanted.ngram != existing.ngram),
            ("radius", self.radius.is_some() && wanted.radius != existing.radius),
            ("threshold", self.threshold.is_some() && wanted.threshold != existing.threshold),
            ("language", self.language.is_some() && wanted.language != existing.language),
            ("min_tokens", self.min_tokens.is_some() && wanted.min_tokens != existing.min_tokens),
            ("keep_case", self.keep_case.is_some() && wanted.keep_case != existing.keep_case),
            ("mask_volatile", self.mask_volatile.is_some() && wanted.mask_volatile != existing.mask_volatile),
            ("content", self.content.is_some() && wanted.content != existing.content),
        ];
        match differs.into_iter().find(|(_, differs)| *differs) {
            None => Ok(()),
            Some((setting, _)) => Err(Error::conflict(
                setting,
                "the collection exists with another value; ask for the collection to see its settings, or choose another name",
            )),
        }
    }
}

/// One collection.
pub(crate) struct Collection {
    pub(crate) name: String,
    pub(crate) online: Online,
    /// Pages that were looked up, by verdict: new, near, exact.
    lookups: [Counter; 3],
}

impl Collection {
    fn new(name: &str, online: Online) -> Collection {
        let lookups = ["new", "near", "exact"].map(
            |verdict| metrics::counter!("lookalike_pages_total", "collection" => name.to_owned(), "verdict" => verdict),
        );
        Collection { name: name.to_owned(), online, lookups }
    }

    /// Counts a page that was looked up.
    pub(crate) fn count(&self, verdict: PageVerdict) {
        let [new, near, exact] = &self.lookups;
        match verdict {
            PageVerdict::New => new.increment(1),
            PageVerdict::Near => near.increment(1),
            PageVerdict::Exact => exact.increment(1),
        }
    }

    pub(crate) fn hash(&self) -> String {
        format!("{:016x}", self.online.config().hash())
    }
}

/// All collections of a service.
pub(crate) struct Collections {
    directory: PathBuf,
    options: OnlineOptions,
    open: ArcSwap<BTreeMap<String, Arc<Collection>>>,
    /// Held while a collection is created.
    creating: Mutex<()>,
}

/// Names are used in paths: only letters, digits, - and _ are allowed.
fn check_name(name: &str) -> Result<()> {
    let is_fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    if (1..=64).contains(&name.len()) && name.bytes().all(is_fine) {
        return Ok(());
    }
    Err(Error::invalid("name", name, "must be 1 to 64 lower-case letters, digits, - and _"))
}

/// The names of the collections in a directory.
fn existing(directory: &Path) -> Result<Vec<String>> {
    let entries = match std::fs::read_dir(directory) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Error::io(directory, "read"))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io(directory, "read"))?;
        // Whatever has another name, or is not an index, is not ours.
        if let Some(name) = entry.file_name().to_str()
            && check_name(name).is_ok()
            && entry.path().join("manifest.json").exists()
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

impl Collections {
    /// Opens the collections that exist and creates those that the settings ask for.
    pub(crate) fn open(settings: &Settings) -> Result<Collections> {
        let collections = Collections {
            directory: settings.directory.clone(),
            options: OnlineOptions {
                cache_bytes: 0,
                skip_damaged: settings.skip_damaged,
                memory_bytes: settings.memory_bytes,
                memory_rows: settings.memory_rows,
            },
            open: ArcSwap::default(),
            creating: Mutex::default(),
        };
        let mut wanted = settings.collections.clone();
        wanted.entry(DEFAULT.to_owned()).or_default();
        for name in existing(&settings.directory.join(COLLECTIONS))? {
            wanted.entry(name).or_default();
        }
        for (name, wanted) in &wanted {
            collections.create(name, wanted).map_err(|error| match error {
                Error::InvalidSetting { .. } | Error::Conflict { .. } => {
                    // These settings have no flags.
                    Error::bad_input(&collections.place(name), error.message(str::to_owned))
                }
                other => other,
            })?;
        }
        Ok(collections)
    }

    fn place(&self, name: &str) -> PathBuf {
        if name == DEFAULT { self.directory.clone() } else { self.directory.join(COLLECTIONS).join(name) }
    }

    /// Opens a collection, which is created if it does not exist; returns whether it existed.
    pub(crate) fn create(&self, name: &str, wanted: &CollectionSettings) -> Result<(Arc<Collection>, bool)> {
        check_name(name)?;
        let _creating = self.creating.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(existing) = self.open.load().get(name) {
            wanted.check_met_by(existing.online.config())?;
            return Ok((Arc::clone(existing), true));
        }
        if self.open.load().len() == MOST_COLLECTIONS {
            return Err(Error::conflict(
                "name",
                format!("there are {MOST_COLLECTIONS} collections, and no more are served at once"),
            ));
        }
        let place = self.place(name);
        let existed = place.join("manifest.json").exists();
        if !existed {
            Online::create(&place, wanted.config()?)?;
        }
        let online = Online::open(&place, self.options)?;
        wanted.check_met_by(online.config())?;
        let collection = Arc::new(Collection::new(name, online));
        let mut all = BTreeMap::clone(&self.open.load());
        all.insert(name.to_owned(), Arc::clone(&collection));
        self.open.store(Arc::new(all));
        Ok((collection, existed))
    }

    /// The collection with a name.
    pub(crate) fn get(&self, name: &str) -> std::result::Result<Arc<Collection>, Problem> {
        let found = self.open.load().get(name).cloned();
        found.ok_or_else(|| ProblemKind::NoSuchCollection.with("create it with PUT /v1/collections/{name}"))
    }

    /// All collections, by name.
    pub(crate) fn all(&self) -> Arc<BTreeMap<String, Arc<Collection>>> {
        self.open.load_full()
    }

    /// Writes everything to segments and releases the directories.
    pub(crate) fn close(&self) -> Result<()> {
        let all = self.open.swap(Arc::default());
        let mut last = Ok(());
        for (name, collection) in Arc::unwrap_or_clone(all) {
            match Arc::into_inner(collection) {
                Some(collection) => {
                    if let Err(error) = collection.online.close() {
                        tracing::error!("collection {name}: {error}");
                        last = Err(error);
                    }
                }
                // A request that was cut off still holds it.
                None => tracing::warn!("collection {name} is still in use and is not closed; its store has everything"),
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_the_directory_are_refused() {
        for name in ["news", "a-b_2"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "a/b", "../x", "A", "a b", "é", &"a".repeat(65), "a\0"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_collection_that_exists_keeps_its_settings() {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings::new(directory.path().to_path_buf());
        let german =
            CollectionSettings { language: Some("deu".to_owned()), ngram: Some(3), ..CollectionSettings::default() };
        for round in 0..2 {
            let collections = Collections::open(&settings).unwrap();
            let (_, existed) = collections.create("news", &german).unwrap();
            assert_eq!(existed, round == 1);
            assert!(
                collections.create("news", &CollectionSettings::default()).is_ok(),
                "no setting is given, so none differs"
            );
            let other = CollectionSettings { ngram: Some(4), ..german.clone() };
            let refused = collections.create("news", &other).err();
            assert!(matches!(&refused, Some(Error::Conflict { setting, .. }) if setting == "ngram"), "{refused:?}");
            assert!(collections.get("other").is_err());
            collections.close().unwrap();
        }
        let wrong = CollectionSettings { radius: Some(5), ..CollectionSettings::default() };
        let settings = Settings { collections: BTreeMap::from([("news".to_owned(), wrong)]), ..settings };
        assert!(Collections::open(&settings).err().unwrap().to_string().contains("news"));
    }
}
