//! The indexes of a service: `default`, which lies in the directory itself, and others under `collections/`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use lookalike::config::FingerprintConfig;
use lookalike::error::{Error, Result};
use lookalike::index::{COLLECTIONS, FingerprintOrigin, IndexConfig};
use lookalike::online::{Online, OnlineOptions, PageVerdict};
use lookalike::text::{Scope, language};
use metrics::Counter;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::{Kind, Problem};
use crate::settings::Settings;

/// The collection that is meant where none is named.
pub(crate) const DEFAULT: &str = "default";
/// Fewer tokens make no fingerprint: as `lookalike index build` has it.
const MIN_TOKENS: u32 = 5;
/// Collections at the most: each has threads and files of its own.
const MOST: usize = 256;

/// How the pages of a collection are read and compared. What is left out is as `lookalike index build` has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectionInput {
    /// Words in a feature; 0 for content words and phrases of two
    #[schema(minimum = 0, maximum = 8)]
    pub ngram: Option<usize>,
    /// Differing bits of fingerprints up to which pages are candidates
    #[schema(minimum = 0, maximum = 10)]
    pub radius: Option<u32>,
    /// Estimated similarity from which a candidate is a near-duplicate
    #[schema(minimum = 0, maximum = 1)]
    pub threshold: Option<f64>,
    /// The language of all pages, by its code of three letters (eng) or its English name; without it, each page's is found out
    #[schema(example = "eng")]
    pub language: Option<String>,
    /// Pages with fewer tokens match only as exact copies
    #[schema(minimum = 0)]
    pub min_tokens: Option<u32>,
    /// Upper and lower case are kept apart
    pub keep_case: Option<bool>,
    /// Dates, times, counters and the like are left out
    pub mask_volatile: Option<bool>,
    /// Which part of an HTML page counts
    pub content: Option<ContentInput>,
}

/// Which part of an HTML page counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContentInput {
    /// All of it.
    Page,
    /// Blocks that read like prose.
    Core,
    /// What a reader view shows.
    Main,
}

impl CollectionInput {
    fn config(&self) -> Result<IndexConfig> {
        let mut fingerprints = FingerprintConfig::default();
        let content = self.content.map(|content| match content {
            ContentInput::Page => Scope::Page,
            ContentInput::Core => Scope::Core,
            ContentInput::Main => Scope::Main,
        });
        fingerprints.ngram = self.ngram.unwrap_or(fingerprints.ngram);
        // What is not known is refused by the check.
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

    /// What an index is like, in the same words; nothing if its fingerprints are not of pages.
    pub(crate) fn of(index: &IndexConfig) -> Option<CollectionInput> {
        let FingerprintOrigin::Pages(pages) = &index.fingerprints else { return None };
        Some(CollectionInput {
            ngram: Some(pages.ngram),
            radius: Some(index.radius),
            threshold: Some(index.threshold),
            language: pages.content.language.clone(),
            min_tokens: Some(index.min_tokens),
            keep_case: Some(pages.content.keep_case),
            mask_volatile: Some(pages.content.mask_volatile),
            content: Some(match pages.content.scope {
                Scope::Page => ContentInput::Page,
                Scope::Core => ContentInput::Core,
                Scope::Main => ContentInput::Main,
            }),
        })
    }

    /// Refuses an index that is not what is described; what is left out may have any value.
    fn check_met_by(&self, index: &IndexConfig) -> Result<()> {
        let wanted = CollectionInput::of(&self.config()?).expect("what is described here is an index of pages");
        // An index of other fingerprints has none of these settings.
        let there = CollectionInput::of(index).unwrap_or_default();
        let differs = [
            ("ngram", self.ngram.is_some() && wanted.ngram != there.ngram),
            ("radius", self.radius.is_some() && wanted.radius != there.radius),
            ("threshold", self.threshold.is_some() && wanted.threshold != there.threshold),
            ("language", self.language.is_some() && wanted.language != there.language),
            ("min_tokens", self.min_tokens.is_some() && wanted.min_tokens != there.min_tokens),
            ("keep_case", self.keep_case.is_some() && wanted.keep_case != there.keep_case),
            ("mask_volatile", self.mask_volatile.is_some() && wanted.mask_volatile != there.mask_volatile),
            ("content", self.content.is_some() && wanted.content != there.content),
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
    /// Answers, by their verdict: new, near, exact.
    answers: [Counter; 3],
}

impl Collection {
    fn new(name: &str, online: Online) -> Collection {
        let answers = ["new", "near", "exact"].map(
            |verdict| metrics::counter!("lookalike_pages_total", "collection" => name.to_owned(), "verdict" => verdict),
        );
        Collection { name: name.to_owned(), online, answers }
    }

    /// Counts an answer.
    pub(crate) fn count(&self, verdict: PageVerdict) {
        let [new, near, exact] = &self.answers;
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

/// All of them.
pub(crate) struct Collections {
    directory: PathBuf,
    options: OnlineOptions,
    open: ArcSwap<BTreeMap<String, Arc<Collection>>>,
    /// Held while one is made.
    making: Mutex<()>,
}

/// Names are parts of paths: letters, digits, - and _ only.
fn check_name(name: &str) -> Result<()> {
    let is_fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    if (1..=64).contains(&name.len()) && name.bytes().all(is_fine) {
        return Ok(());
    }
    Err(Error::invalid("name", name, "must be 1 to 64 lower-case letters, digits, - and _"))
}

impl Collections {
    /// Opens what is there and makes what is wanted.
    pub(crate) fn open(settings: &Settings) -> Result<Collections> {
        let collections = Collections {
            directory: settings.directory.clone(),
            options: OnlineOptions {
                skip_damaged: settings.skip_damaged,
                memory_bytes: settings.memory_bytes,
                memory_rows: settings.memory_rows,
            },
            open: ArcSwap::default(),
            making: Mutex::default(),
        };
        let mut wanted = settings.collections.clone();
        wanted.entry(DEFAULT.to_owned()).or_default();
        let others = settings.directory.join(COLLECTIONS);
        for entry in std::fs::read_dir(&others).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if check_name(&name).is_ok() && entry.path().join("manifest.json").exists() {
                wanted.entry(name).or_default();
            }
        }
        for (name, input) in &wanted {
            collections.make(name, input).map_err(|error| match error {
                Error::InvalidSetting { .. } | Error::Conflict { .. } => {
                    // Their settings have no flags.
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

    /// Opens a collection, which is made if it is not there; gives whether it was.
    pub(crate) fn make(&self, name: &str, input: &CollectionInput) -> Result<(Arc<Collection>, bool)> {
        check_name(name)?;
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = self.open.load().get(name) {
            input.check_met_by(there.online.config())?;
            return Ok((Arc::clone(there), true));
        }
        if self.open.load().len() == MOST {
            return Err(Error::conflict(
                "name",
                format!("there are {MOST} collections, and no more are served at once"),
            ));
        }
        let place = self.place(name);
        let was_there = place.join("manifest.json").exists();
        if !was_there {
            Online::create(&place, input.config()?)?;
        }
        let online = Online::open(&place, self.options)?;
        input.check_met_by(online.config())?;
        let collection = Arc::new(Collection::new(name, online));
        let mut all = BTreeMap::clone(&self.open.load());
        all.insert(name.to_owned(), Arc::clone(&collection));
        self.open.store(Arc::new(all));
        Ok((collection, was_there))
    }

    /// The collection with a name.
    pub(crate) fn get(&self, name: &str) -> std::result::Result<Arc<Collection>, Problem> {
        let found = self.open.load().get(name).cloned();
        found.ok_or_else(|| Kind::NoSuchCollection.with("make it with PUT /v1/collections/{name}"))
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> Arc<BTreeMap<String, Arc<Collection>>> {
        self.open.load_full()
    }

    /// Writes everything to segments and gives the directories free.
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
                // A request was cut off and still holds it; its store has everything.
                None => tracing::warn!("collection {name} is still in use, and is left as it is"),
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_part_of_a_path_of_ours_are_refused() {
        for name in ["news", "a-b_2"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "a/b", "../x", "A", "a b", "é", &"a".repeat(65), "a\0"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_collection_that_is_there_is_not_made_in_another_way() {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings::new(directory.path().to_path_buf());
        let german = CollectionInput { language: Some("deu".to_owned()), ngram: Some(3), ..CollectionInput::default() };
        for round in 0..2 {
            let collections = Collections::open(&settings).unwrap();
            let (_, was_there) = collections.make("news", &german).unwrap();
            assert_eq!(was_there, round == 1);
            assert!(
                collections.make("news", &CollectionInput::default()).is_ok(),
                "nothing is said, so nothing differs"
            );
            let other = CollectionInput { ngram: Some(4), ..german.clone() };
            let refused = collections.make("news", &other).err();
            assert!(matches!(&refused, Some(Error::Conflict { setting, .. }) if setting == "ngram"), "{refused:?}");
            assert!(collections.get("other").is_err());
            collections.close().unwrap();
        }
        let wrong = CollectionInput { radius: Some(5), ..CollectionInput::default() };
        let settings = Settings { collections: BTreeMap::from([("news".to_owned(), wrong)]), ..settings };
        assert!(Collections::open(&settings).err().unwrap().to_string().contains("news"));
    }
}
