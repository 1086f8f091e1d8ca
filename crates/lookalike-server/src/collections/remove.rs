//! Removing a collection with all its pages.

use std::fs::{self, File};
use std::path::Path;
use std::sync::{Arc, PoisonError};

use lookalike::index::COLLECTIONS;
use lookalike::{Error, Result};

use super::{Collection, Collections, DEFAULT, OPENING_PAUSE, OPENING_TRIES, State};
use crate::problem::{Problem, ProblemKind, internal};

/// What a directory is called that is being removed. No collection can have such a name.
const REMOVED: &str = ".removed-";

impl Collections {
    /// Removes a collection. It is gone at once, also for the next start; its files follow.
    pub(crate) async fn remove(self: &Arc<Collections>, name: &str) -> std::result::Result<(), Problem> {
        if name == DEFAULT {
            let reason = "the collection 'default' belongs to the service itself; remove its pages instead";
            return Err(ProblemKind::Conflict.with(reason));
        }
        // Nobody opens or creates it meanwhile.
        let changing = Arc::clone(&self.changing).lock_owned().await;
        let taken = self.take_unused(name).await?;
        let (collections, name) = (Arc::clone(self), name.to_owned());
        // It goes on in its thread if the client disconnects.
        let removed = tokio::task::spawn_blocking(move || {
            let _changing = changing;
            collections.remove_files(&name, taken)
        });
        Ok(removed.await.map_err(|_| internal())??)
    }

    /// Takes a collection out of the table when no request uses it; nothing if it is not open.
    async fn take_unused(&self, name: &str) -> std::result::Result<Option<Collection>, Problem> {
        for _ in 0..OPENING_TRIES {
            {
                let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
                match known.remove(name) {
                    None => return Err(ProblemKind::NoSuchCollection.with("there is nothing to remove")),
                    Some(State::Closed(_)) => return Ok(None),
                    Some(State::Open(collection)) => match Arc::try_unwrap(collection) {
                        Ok(collection) => return Ok(Some(collection)),
                        Err(in_use) => drop(known.insert(name.to_owned(), State::Open(in_use))),
                    },
                }
            }
            tokio::time::sleep(OPENING_PAUSE).await;
        }
        Err(ProblemKind::TooBusy.with("requests are still using this collection; try again when they have ended"))
    }

    fn remove_files(&self, name: &str, taken: Option<Collection>) -> Result<()> {
        if let Some(collection) = taken
            && let Err(error) = collection.close()
        {
            // What could not be written is not wanted any more.
            tracing::warn!("collection {name}, which is removed: {error}");
        }
        let all = self.directory.join(COLLECTIONS);
        let (place, aside) = (self.place(name), all.join(format!("{REMOVED}{name}")));
        // What an earlier attempt left would be in the way.
        remove_all(&aside)?;
        fs::rename(&place, &aside).map_err(Error::io(&place, "remove"))?;
        File::open(&all).and_then(|all| all.sync_all()).map_err(Error::io(&all, "sync"))?;
        remove_all(&aside)
    }
}

/// Removes what was left of collections when a service ended in the midst of removing them.
pub(super) fn remove_left_overs(all: &Path) -> Result<()> {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(REMOVED) {
            remove_all(&entry.path())?;
        }
    }
    Ok(())
}

fn remove_all(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(Error::io(directory, "remove")(cause)),
        _ => Ok(()),
    }
}
