//! The indexes of a service: `default` in the directory itself, the others under `collections/`.
//!
//! Each open collection has threads, files and memory of its own, so only so many are open at once: others are opened when
//! they are asked for, and closed when nobody has asked for a while, or for another to be opened.

mod change;
mod remove;
mod settings;

pub(crate) use change::RebuildResponse;
pub use settings::{CollectionMethod, CollectionSettings, ContentScope};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lookalike::index::{COLLECTIONS, IndexConfig};
use lookalike::online::{OnlineOptions, PageVerdict};
use lookalike::{Error, Online, Result};
use metrics::Counter;

use crate::problem::{Problem, ProblemKind, internal};
use crate::replication::Replication;
use crate::settings::Settings;
use change::RebuildState;

/// The collection that paths without a name are about.
pub(crate) const DEFAULT: &str = "default";
/// How often a collection is tried to be opened while all others are in use, and how long to wait in between.
const OPENING_TRIES: u32 = 20;
const OPENING_PAUSE: Duration = Duration::from_millis(25);
/// Collections of a service, open or not.
const MOST_COLLECTIONS: usize = 4096;

/// What `default` keeps in memory of the files of its store.
const OWN_CACHE: u64 = 64 << 20;
/// The same of all others that may be open at once.
const SHARED_CACHE: u64 = 192 << 20;
/// And of each at least.
const LEAST_CACHE: u64 = 2 << 20;

/// One collection.
pub(crate) struct Collection {
    pub(crate) name: String,
    pub(crate) place: PathBuf,
    /// Another one takes its place when the collection is built anew.
    online: RwLock<Arc<Online>>,
    /// Read by whoever writes to the index, so that nobody does while another takes its place.
    gate: tokio::sync::RwLock<()>,
    rebuild: Mutex<Option<RebuildState>>,
    opened: Instant,
    /// When it was last asked for, in milliseconds since it was opened.
    used: AtomicU64,
    /// Pages that were looked up, by verdict: new, near, exact.
    lookups: [Counter; 3],
    /// How far a follower may be behind before it counts as not ready; 0 for any time.
    pub(crate) most_lag: Duration,
}

impl Collection {
    fn new(name: &str, place: PathBuf, online: Online, most_lag: Duration) -> Collection {
        let lookups = ["new", "near", "exact"].map(
            |verdict| metrics::counter!("lookalike_pages_total", "collection" => name.to_owned(), "verdict" => verdict),
        );
        Collection {
            name: name.to_owned(),
            place,
            online: RwLock::new(Arc::new(online)),
            gate: tokio::sync::RwLock::default(),
            rebuild: Mutex::default(),
            opened: Instant::now(),
            used: AtomicU64::new(0),
            lookups,
            most_lag,
        }
    }

    /// Its index at this moment. Whoever writes to it holds [`writing`](Collection::writing) meanwhile.
    pub(crate) fn online(&self) -> Arc<Online> {
        Arc::clone(&self.online.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps the index in its place.
    pub(crate) async fn writing(&self) -> tokio::sync::RwLockReadGuard<'_, ()> {
        self.gate.read().await
    }

    /// Writes everything to segments and releases the directory.
    fn close(self) -> Result<()> {
        let online = self.online.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Whoever has it also has the collection, which nobody else has.
        Arc::into_inner(online).map_or(Ok(()), Online::close)
    }

    fn touch(&self) {
        let now = u64::try_from(self.opened.elapsed().as_millis()).expect("less than a million years");
        self.used.store(now, Ordering::Relaxed);
    }

    /// How long nobody has asked for it.
    fn idle_time(&self) -> Duration {
        self.opened.elapsed().saturating_sub(Duration::from_millis(self.used.load(Ordering::Relaxed)))
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
        format!("{:016x}", self.online().config().hash())
    }
}

/// All collections of a service.
pub(crate) struct Collections {
    directory: PathBuf,
    options: OnlineOptions,
    replication: Replication,
    /// By name; what exists and is not open has what was known of it when it was closed.
    known: RwLock<BTreeMap<String, State>>,
    most_open: AtomicUsize,
    /// Threads that build collections anew, and what ends them early.
    rebuilding: Mutex<Vec<JoinHandle<()>>>,
    is_stopping: Arc<AtomicBool>,
    /// Held while a collection is created, opened or closed.
    changing: Arc<tokio::sync::Mutex<()>>,
}

/// A collection that exists.
#[derive(Clone)]
enum State {
    Open(Arc<Collection>),
    Closed(Arc<ClosedCollection>),
}

/// What is known of a collection that is not open.
pub(crate) struct ClosedCollection {
    pub(crate) config: IndexConfig,
    pub(crate) rows: u64,
}

/// A collection as lists show it.
pub(crate) enum Listed {
    Open(Arc<Collection>),
    Closed(String, Arc<ClosedCollection>),
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
    /// Opens the collections that exist, one after the other so that damage is found, and creates those that the settings ask
    /// for. As many stay open as may be.
    pub(crate) fn open_all(settings: &Settings) -> Result<Arc<Collections>> {
        let collections = Arc::new(Collections {
            directory: settings.directory.clone(),
            options: OnlineOptions {
                cache_bytes: 0,
                skip_damaged: settings.skip_damaged,
                memory_bytes: settings.memory_bytes,
                memory_rows: settings.memory_rows,
            },
            replication: Replication::new(settings),
            known: RwLock::default(),
            most_open: settings.limits.open_collections.into(),
            rebuilding: Mutex::default(),
            is_stopping: Arc::default(),
            changing: Arc::default(),
        });
        if !settings.read_only {
            remove::remove_left_overs(&settings.directory.join(COLLECTIONS))?;
        }
        let mut wanted = settings.collections.clone();
        for name in existing(&settings.directory.join(COLLECTIONS))? {
            wanted.entry(name).or_default();
        }
        #[cfg(feature = "remote")]
        wanted.extend(collections.replication.followed().into_iter().map(|name| (name, CollectionSettings::default())));
        let of_default = wanted.remove(DEFAULT).unwrap_or_default();
        // The last one to be opened stays open.
        let others = wanted.iter().map(|(name, wanted)| (name.as_str(), wanted));
        for (name, wanted) in others.chain([(DEFAULT, &of_default)]) {
            collections.create_now(name, wanted).map_err(|error| match error {
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

    /// How a collection is opened: all of them together keep so much of their files in memory.
    fn options(&self, name: &str) -> OnlineOptions {
        let others = self.most_open.load(Ordering::Relaxed).max(2) as u64 - 1;
        let share = (SHARED_CACHE / others).clamp(LEAST_CACHE, OWN_CACHE);
        OnlineOptions { cache_bytes: if name == DEFAULT { OWN_CACHE } else { share }, ..self.options }
    }

    fn state(&self, name: &str) -> Option<State> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn set_state(&self, name: &str, state: State) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), state);
    }

    /// What they are to those of other services.
    pub(crate) fn replication(&self) -> &Replication {
        &self.replication
    }

    /// How many collections may be open at once from now on.
    pub(crate) fn set_most_open(&self, most: usize) {
        self.most_open.store(most, Ordering::Relaxed);
    }

    /// Opens a collection, which is created if it does not exist; returns whether it existed.
    pub(crate) async fn create(
        self: &Arc<Collections>,
        name: &str,
        wanted: &CollectionSettings,
    ) -> std::result::Result<(Arc<Collection>, bool), Problem> {
        let changing = Arc::clone(&self.changing).lock_owned().await;
        let (collections, name, wanted) = (Arc::clone(self), name.to_owned(), wanted.clone());
        // It goes on in its thread if the client disconnects.
        let created = tokio::task::spawn_blocking(move || {
            let _changing = changing;
            collections.create_now(&name, &wanted)
        });
        match created.await.map_err(|_| internal())? {
            Err(Error::Overloaded) => Err(ProblemKind::TooBusy.with(
                "as many collections are in use as may be open at once (limits.open_collections); try again in a moment",
            )),
            created => Ok(created?),
        }
    }

    /// The same by a thread that may take its time.
    fn create_now(&self, name: &str, wanted: &CollectionSettings) -> Result<(Arc<Collection>, bool)> {
        check_name(name)?;
        let state = self.state(name);
        if let Some(State::Open(existing)) = &state {
            wanted.check_met_by(existing.online().config())?;
            return Ok((Arc::clone(existing), true));
        }
        let count = self.known.read().unwrap_or_else(PoisonError::into_inner).len();
        if state.is_none() && count == MOST_COLLECTIONS {
            return Err(Error::conflict(
                "name",
                format!("there are {MOST_COLLECTIONS} collections, and there cannot be more"),
            ));
        }
        let place = self.place(name);
        self.replication.prepare(name, &place)?;
        let existed = place.join("manifest.json").exists();
        if !existed {
            Online::create(&place, wanted.config()?)?;
        }
        self.make_room()?;
        let online = self.replication.open(name, &place, self.options(name))?;
        wanted.check_met_by(online.config())?;
        let collection = Arc::new(Collection::new(name, place, online, self.replication.most_lag));
        self.set_state(name, State::Open(Arc::clone(&collection)));
        Ok((collection, existed))
    }

    /// Closes collections until one more may be open: those first that nobody has asked for for the longest time.
    fn make_room(&self) -> Result<()> {
        let most = self.most_open.load(Ordering::Relaxed);
        let mut open = self.open();
        open.sort_by_key(|collection| std::cmp::Reverse(collection.idle_time()));
        let mut left = open.len();
        for collection in open {
            if left < most {
                break;
            }
            left -= usize::from(self.close_one(collection));
        }
        // All of them are in use: the next one is tried again in a moment.
        if left < most { Ok(()) } else { Err(Error::Overloaded) }
    }

    /// Closes a collection if nobody uses it; returns whether it is closed.
    fn close_one(&self, collection: Arc<Collection>) -> bool {
        let name = collection.name.clone();
        let collection = {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            // One is in the table and one is ours; others cannot come while the table is locked.
            if Arc::strong_count(&collection) > 2 {
                return false;
            }
            let (rows, config) = (collection.online().stats().rows, collection.online().config().clone());
            let closed = ClosedCollection { config, rows };
            known.insert(name.clone(), State::Closed(Arc::new(closed)));
            collection
        };
        let Some(collection) = Arc::into_inner(collection) else { return false };
        if let Err(error) = collection.close() {
            tracing::error!("collection {name}: {error}");
        }
        true
    }

    /// The collection with a name, which is opened if it is not open.
    pub(crate) async fn get(self: &Arc<Collections>, name: &str) -> std::result::Result<Arc<Collection>, Problem> {
        let found = match self.state(name) {
            None => return Err(ProblemKind::NoSuchCollection.with("create it with PUT /v1/collections/{name}")),
            Some(State::Open(collection)) => collection,
            Some(State::Closed(_)) => self.open_again(name).await?,
        };
        found.touch();
        Ok(found)
    }

    /// Opens a collection that was closed; waits a moment if all that are open are in use.
    async fn open_again(self: &Arc<Collections>, name: &str) -> std::result::Result<Arc<Collection>, Problem> {
        let mut tries = OPENING_TRIES;
        loop {
            tries -= 1;
            match self.create(name, &CollectionSettings::default()).await {
                Err(problem) if tries > 0 && problem.is(ProblemKind::TooBusy) => {
                    tokio::time::sleep(OPENING_PAUSE).await;
                }
                opened => return opened.map(|(collection, _)| collection),
            }
        }
    }

    /// All that are open.
    pub(crate) fn open(&self) -> Vec<Arc<Collection>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let open = known.values().filter_map(|state| match state {
            State::Open(collection) => Some(Arc::clone(collection)),
            State::Closed(_) => None,
        });
        open.collect()
    }

    /// All collections, by name.
    pub(crate) fn list(&self) -> Vec<Listed> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let listed = known.iter().map(|(name, state)| match state {
            State::Open(collection) => Listed::Open(Arc::clone(collection)),
            State::Closed(closed) => Listed::Closed(name.clone(), Arc::clone(closed)),
        });
        listed.collect()
    }

    /// Closes collections that nobody has asked for for a while; `default` stays open.
    pub(crate) async fn close_idle(self: &Arc<Collections>, idle_time: Duration) {
        let is_idle = move |one: &Arc<Collection>| one.name != DEFAULT && one.idle_time() > idle_time;
        if !self.open().iter().any(is_idle) {
            return;
        }
        let Ok(changing) = Arc::clone(&self.changing).try_lock_owned() else { return };
        let collections = Arc::clone(self);
        // The next round tries again what a thread did not do.
        let _ = tokio::task::spawn_blocking(move || {
            let _changing = changing;
            for collection in collections.open().into_iter().filter(is_idle) {
                collections.close_one(collection);
            }
        })
        .await;
    }

    /// Writes everything to segments and releases the directories.
    pub(crate) fn close(&self) -> Result<()> {
        self.end_rebuilds();
        let all = std::mem::take(&mut *self.known.write().unwrap_or_else(PoisonError::into_inner));
        let mut last = Ok(());
        for (name, state) in all {
            let State::Open(collection) = state else { continue };
            match Arc::into_inner(collection) {
                Some(collection) => {
                    if let Err(error) = collection.close() {
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
            let collections = Collections::open_all(&settings).unwrap();
            let (_, existed) = collections.create_now("news", &german).unwrap();
            assert_eq!(existed, round == 1);
            assert!(
                collections.create_now("news", &CollectionSettings::default()).is_ok(),
                "no setting is given, so none differs"
            );
            let other = CollectionSettings { ngram: Some(4), ..german.clone() };
            let refused = collections.create_now("news", &other).err();
            assert!(matches!(&refused, Some(Error::Conflict { setting, .. }) if setting == "ngram"), "{refused:?}");
            assert!(collections.state("other").is_none());
            collections.close().unwrap();
        }
        let wrong = CollectionSettings { radius: Some(5), ..CollectionSettings::default() };
        let settings = Settings { collections: BTreeMap::from([("news".to_owned(), wrong)]), ..settings };
        assert!(Collections::open_all(&settings).err().unwrap().to_string().contains("news"));
    }

    #[tokio::test]
    async fn only_so_many_are_open_and_others_are_opened_when_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(directory.path().to_path_buf());
        settings.limits.open_collections = 2;
        let collections = Collections::open_all(&settings).unwrap();
        for name in ["a", "b", "c"] {
            collections.create_now(name, &CollectionSettings::default()).unwrap();
        }
        let open = || collections.open().iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        assert_eq!((open().len(), collections.list().len()), (2, 4));
        let first = collections.get("a").await.unwrap();
        let second = collections.get("b").await.unwrap();
        assert_eq!(open(), ["a", "b"]);
        assert_eq!(collections.get("c").await.map(drop).map_err(|problem| problem.status), Err(503), "both are in use");
        drop(first);
        assert!(collections.get("c").await.is_ok());
        assert_eq!(open(), ["b", "c"]);
        drop(second);
        collections.close_idle(Duration::ZERO).await;
        assert!(open().is_empty());
        collections.close().unwrap();
    }
}
