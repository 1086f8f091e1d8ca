//! A collection that gets other settings: it is built anew beside what is there, which goes on answering and storing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use lookalike::Result;
use lookalike::index::{FingerprintOrigin, IndexConfig};
use lookalike::online::Rebuild;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Collection, CollectionSettings, Collections};
use crate::problem::{Problem, ProblemKind, internal};

/// Settings whose defaults depend on the method.
const OF_METHOD: [&str; 5] = ["ngram", "radius", "threshold", "min_tokens", "content"];
/// Pages that may be left when writers have to wait for them.
const FEW_PAGES: u64 = 256;
/// How often that is tried while pages come faster than they are copied.
const MOST_ROUNDS: u32 = 20;
/// How often it is looked whether anybody still reads what was replaced.
const PAUSE: Duration = Duration::from_millis(10);

/// How far a collection is with other settings.
pub(super) struct RebuildState {
    config: IndexConfig,
    copied: Arc<AtomicU64>,
    failed: Option<String>,
}

/// How far a collection is with other settings
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RebuildResponse {
    /// The settings it will have
    config: Option<CollectionSettings>,
    /// Pages that were read again, of `rows`
    copied: u64,
    /// Why it ended early: the collection stays as it was, until it is asked for again
    failed: Option<String>,
}

impl Collection {
    /// How far it is with other settings, if it is asked to have any.
    pub(crate) fn rebuild(&self) -> Option<RebuildResponse> {
        let rebuild = self.rebuild.lock().unwrap_or_else(PoisonError::into_inner);
        rebuild.as_ref().map(|state| RebuildResponse {
            config: CollectionSettings::of(&state.config),
            copied: state.copied.load(Ordering::Relaxed),
            failed: state.failed.clone(),
        })
    }

    /// Builds the index anew, and puts the new one in the place of the old one.
    fn build_anew(&self, mut rebuild: Rebuild, collections: &Collections, copied: &AtomicU64) -> Result<()> {
        let is_stopping = &*collections.is_stopping;
        for _ in 0..MOST_ROUNDS {
            let tell = |part| {
                copied.fetch_add(part, Ordering::Relaxed);
            };
            if rebuild.catch_up(is_stopping, tell)? <= FEW_PAGES {
                break;
            }
        }
        let old = {
            let _gate = self.gate.blocking_write();
            let new = Arc::new(rebuild.finish(is_stopping)?);
            std::mem::replace(&mut *self.online.write().unwrap_or_else(PoisonError::into_inner), new)
        };
        // Whoever drops it last ends its threads and removes its files, which no request should have to do.
        while Arc::strong_count(&old) > 1 && !is_stopping.load(Ordering::Relaxed) {
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

impl CollectionSettings {
    /// These settings with some of them changed: those that are left out stay, null takes the default. Where the method
    /// becomes another one, settings whose defaults depend on it take these.
    fn patched(&self, patch: Value) -> std::result::Result<CollectionSettings, Problem> {
        let Value::Object(patch) = patch else {
            return Err(ProblemKind::BadJson.with("expected an object of settings"));
        };
        let Ok(Value::Object(mut settings)) = serde_json::to_value(self) else { return Err(internal()) };
        let implied = patch.get("radius").filter(|radius| !radius.is_null()).map(|_| Value::from("simhash"));
        let method = patch.get("method").cloned().or(implied);
        if method.as_ref().is_some_and(|method| Some(method) != settings.get("method")) {
            OF_METHOD.iter().for_each(|setting| drop(settings.remove(*setting)));
            settings.extend(method.map(|method| ("method".to_owned(), method)));
        }
        settings.extend(patch);
        let settings: Map<String, Value> = settings.into_iter().filter(|(_, value)| !value.is_null()).collect();
        serde_json::from_value(Value::Object(settings)).map_err(|cause| ProblemKind::BadJson.with(cause.to_string()))
    }
}

impl Collections {
    /// Begins to give a collection other settings; returns whether it has to.
    pub(crate) async fn change(
        self: &Arc<Collections>,
        collection: &Arc<Collection>,
        patch: Value,
    ) -> std::result::Result<bool, Problem> {
        let online = collection.online();
        let Some(existing) = CollectionSettings::of(online.config()) else {
            return Err(
                ProblemKind::Conflict.with("it holds fingerprints that were made elsewhere, and has no settings")
            );
        };
        let mut config = existing.patched(patch)?.config()?;
        if CollectionSettings::of(&config).as_ref() == Some(&existing) {
            return Ok(false);
        }
        let is_pages = |config: &IndexConfig| matches!(config.fingerprints, FingerprintOrigin::Pages(_));
        config.read.clone_from(&online.config().read);
        if is_pages(&config) && is_pages(online.config()) {
            (config.codec, config.huffman_block) = (online.config().codec, online.config().huffman_block);
        }
        let copied = Arc::new(AtomicU64::new(0));
        {
            let mut rebuild = collection.rebuild.lock().unwrap_or_else(PoisonError::into_inner);
            if rebuild.as_ref().is_some_and(|state| state.failed.is_none()) {
                let reason = "it is being built anew for an earlier change; wait until `rebuild` is null";
                return Err(ProblemKind::Conflict.with(reason));
            }
            *rebuild = Some(RebuildState { config: config.clone(), copied: Arc::clone(&copied), failed: None });
        }
        let (collections, kept) = (Arc::clone(self), Arc::clone(collection));
        let begun = tokio::task::spawn_blocking(move || {
            let rebuild = Rebuild::begin(online, config, collections.options(&kept.name))?;
            collections.build_in_background(kept, rebuild, copied)
        });
        let begun = begun.await.map_err(|_| internal()).and_then(|begun| Ok(begun?));
        if begun.is_err() {
            *collection.rebuild.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        begun.map(|()| true)
    }

    fn build_in_background(
        self: Arc<Collections>,
        collection: Arc<Collection>,
        rebuild: Rebuild,
        copied: Arc<AtomicU64>,
    ) -> Result<()> {
        let (collections, place) = (Arc::clone(&self), collection.place.clone());
        let work = move || {
            let name = &collection.name;
            tracing::info!("collection {name} is built anew");
            let built = collection.build_anew(rebuild, &collections, &copied);
            let mut state = collection.rebuild.lock().unwrap_or_else(PoisonError::into_inner);
            match built {
                Ok(()) => {
                    *state = None;
                    tracing::info!("collection {name} is built anew: config {}", collection.hash());
                }
                Err(error) => {
                    tracing::error!("collection {name} stays as it was: {error}");
                    state.iter_mut().for_each(|state| state.failed = Some(error.to_string()));
                }
            }
        };
        let thread = std::thread::Builder::new().name("rebuild".to_owned()).spawn(work);
        let thread = thread.map_err(lookalike::Error::io(&place, "start a thread for"))?;
        let mut rebuilding = self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner);
        rebuilding.retain(|thread| !thread.is_finished());
        rebuilding.push(thread);
        Ok(())
    }

    /// Ends what is under way; collections stay as they were.
    pub(super) fn end_rebuilds(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        let threads = std::mem::take(&mut *self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread that built a collection anew has panicked");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::collections::CollectionMethod;

    #[test]
    fn settings_that_are_left_out_stay_and_those_of_another_method_do_not() {
        let given = json!({"ngram": 4, "threshold": 0.8, "language": "deu", "ttl": 60});
        let existing: CollectionSettings = serde_json::from_value(given).unwrap();
        let existing = CollectionSettings::of(&existing.config().unwrap()).unwrap();
        let patched = |patch: Value| existing.patched(patch).map(|settings| settings.config().unwrap());
        let of = |patch: Value| CollectionSettings::of(&patched(patch).unwrap()).unwrap();
        assert_eq!(of(json!({})), existing);
        assert_eq!(of(json!({"threshold": 0.5})), CollectionSettings { threshold: Some(0.5), ..existing.clone() });
        assert_eq!(of(json!({"ttl": null})).ttl, None);
        let by_radius = of(json!({"radius": 4}));
        assert_eq!((by_radius.method, by_radius.radius), (Some(CollectionMethod::Simhash), Some(4)));
        assert_eq!((by_radius.threshold, by_radius.ngram), (Some(0.6), Some(0)), "the defaults of the method");
        assert_eq!((by_radius.language.as_deref(), by_radius.ttl), (Some("deu"), Some(60)));
        assert_eq!(of(json!({"method": "minhash"})), existing);
        assert!(patched(json!({"thresold": 1})).unwrap_err().detail.contains("thresold"));
        assert!(patched(json!([])).is_err());
    }
}
