//! A folder of an object store, asked by threads that wait.
//!
//! Every call ends: a store that does not answer in time counts as one that failed, and the caller tries again; when all is
//! to stop, there is less time. A put whose answer is lost may have been done; callers put the same bytes again.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};

use crate::error::{Error, Result};
use crate::read::source::remote;

/// Time for one call; object_store tries several times within it.
const CALL_TIME: Duration = Duration::from_secs(20);
/// The same for a file.
const FILE_TIME: Duration = Duration::from_secs(3600);
/// The same for whatever is under way when all is to stop.
const LAST_TIME: Duration = Duration::from_secs(3);
/// How often a call looks whether all is to stop.
const LOOKED_EVERY: Duration = Duration::from_millis(100);
/// Parts of a large file.
const PART_BYTES: usize = 8 << 20;

/// A folder of an object store.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    store: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    url: String,
    /// Whether all is to stop.
    is_stopping: Arc<AtomicBool>,
}

/// An object that was read: what it holds, and what an update must name.
pub(super) struct Fetched {
    pub(super) bytes: Bytes,
    pub(super) version: UpdateVersion,
}

impl Bucket {
    /// The folder that a URL names, as in `s3://bucket/prefix`.
    pub(super) fn open(url: &str) -> Result<Bucket> {
        let opened = remote::open_store(url);
        let (store, prefix) = opened.map_err(|cause| Error::Remote { url: url.to_owned(), cause })?;
        Ok(Bucket { store, prefix, url: url.trim_end_matches('/').to_owned(), is_stopping: Arc::default() })
    }

    #[cfg(test)]
    pub(super) fn in_memory() -> Bucket {
        let store = Arc::new(object_store::memory::InMemory::new());
        Bucket { store, prefix: ObjectPath::from("seen"), url: "memory://seen".to_owned(), is_stopping: Arc::default() }
    }

    /// The same for a caller that may be stopped.
    pub(super) fn until(self, is_stopping: &Arc<AtomicBool>) -> Bucket {
        Bucket { is_stopping: Arc::clone(is_stopping), ..self }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    fn path(&self, name: &str) -> ObjectPath {
        name.split('/').fold(self.prefix.clone(), object_store::path::Path::join)
    }

    fn wait<T>(
        &self,
        name: &str,
        time: Duration,
        work: impl Future<Output = object_store::Result<T>>,
    ) -> Result<object_store::Result<T>> {
        let stopped = async {
            while !self.is_stopping.load(Ordering::Relaxed) {
                tokio::time::sleep(LOOKED_EVERY).await;
            }
            tokio::time::sleep(LAST_TIME).await;
        };
        let timed = async {
            let (work, stopped) = (pin!(tokio::time::timeout(time, work)), pin!(stopped));
            match select(work, stopped).await {
                Either::Left((Ok(done), _)) => Ok(Some(done)),
                Either::Left((Err(_), _)) | Either::Right(_) => Ok(None),
            }
        };
        let failed = |cause| Error::Remote { url: format!("{}/{name}", self.url), cause };
        match remote::wait(timed).map_err(failed)? {
            Some(done) => Ok(done),
            None => Err(failed(std::io::Error::new(std::io::ErrorKind::TimedOut, "the object store does not answer"))),
        }
    }

    fn failed(&self, name: &str, error: &object_store::Error) -> Error {
        Error::Remote { url: format!("{}/{name}", self.url), cause: remote::io_error(error) }
    }

    /// An object, if it is there.
    pub(super) fn get(&self, name: &str) -> Result<Option<Fetched>> {
        let path = self.path(name);
        let got = self.wait(name, CALL_TIME, async {
            let got = self.store.get(&path).await?;
            let version = UpdateVersion { e_tag: got.meta.e_tag.clone(), version: got.meta.version.clone() };
            Ok(Fetched { bytes: got.bytes().await?, version })
        })?;
        match got {
            Ok(fetched) => Ok(Some(fetched)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    /// Puts an object that is not there yet; says whether it was not. One with the same bytes counts as ours: the answer
    /// to an earlier attempt was lost.
    pub(super) fn create(&self, name: &str, bytes: &Bytes) -> Result<bool> {
        match self.put_as(name, bytes, PutMode::Create)? {
            Ok(()) => Ok(true),
            Err(error) if is_refused(&error) => Ok(self.get(name)?.is_some_and(|there| there.bytes == *bytes)),
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    /// Puts an object in the place of a version of it; says whether that was still the last.
    pub(super) fn replace(&self, name: &str, bytes: &Bytes, version: UpdateVersion) -> Result<bool> {
        match self.put_as(name, bytes, PutMode::Update(version))? {
            Ok(()) => Ok(true),
            Err(error) if is_refused(&error) => Ok(self.get(name)?.is_some_and(|there| there.bytes == *bytes)),
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    fn put_as(&self, name: &str, bytes: &Bytes, mode: PutMode) -> Result<object_store::Result<()>> {
        let path = self.path(name);
        let options = PutOptions { mode, ..PutOptions::default() };
        let payload = PutPayload::from_bytes(bytes.clone());
        self.wait(name, CALL_TIME, async { self.store.put_opts(&path, payload, options).await.map(drop) })
    }

    /// Puts an object, whatever was there.
    pub(super) fn put(&self, name: &str, bytes: &Bytes) -> Result<()> {
        self.put_as(name, bytes, PutMode::Overwrite)?.map_err(|error| self.failed(name, &error))
    }

    /// Puts a file, in parts where it is large.
    pub(super) fn put_file(&self, name: &str, file: &Path) -> Result<()> {
        let read = |cause| Error::io(file, "read")(cause);
        let size = std::fs::metadata(file).map_err(read)?.len();
        if size <= PART_BYTES as u64 {
            return self.put(name, &Bytes::from(std::fs::read(file).map_err(read)?));
        }
        let path = self.path(name);
        let put = self.wait(name, FILE_TIME, async {
            let mut reader = File::open(file).map_err(generic)?;
            let mut upload = self.store.put_multipart(&path).await?;
            loop {
                let mut part = Vec::with_capacity(PART_BYTES);
                (&mut reader).take(PART_BYTES as u64).read_to_end(&mut part).map_err(generic)?;
                if part.is_empty() {
                    return upload.complete().await.map(drop);
                }
                upload.put_part(PutPayload::from(part)).await?;
            }
        })?;
        put.map_err(|error| self.failed(name, &error))
    }

    /// Gets an object into a file.
    pub(super) fn get_file(&self, name: &str, file: &Path) -> Result<()> {
        let path = self.path(name);
        let got = self.wait(name, FILE_TIME, async {
            let mut stream = self.store.get(&path).await?.into_stream();
            let mut writer = File::create(file).map_err(generic)?;
            while let Some(part) = stream.next().await {
                writer.write_all(&part?).map_err(generic)?;
            }
            writer.sync_all().map_err(generic)
        })?;
        got.map_err(|error| self.failed(name, &error))
    }

    /// The names and sizes of all objects in a folder, in their order, from the one behind `after` on.
    pub(super) fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<(String, u64)>> {
        let path = self.path(folder);
        let listed = self.wait(folder, CALL_TIME, async {
            let stream = match after {
                Some(after) => self.store.list_with_offset(Some(&path), &path.clone().join(after)),
                None => self.store.list(Some(&path)),
            };
            stream.collect::<Vec<_>>().await.into_iter().collect::<object_store::Result<Vec<_>>>()
        })?;
        let listed = listed.map_err(|error| self.failed(folder, &error))?;
        let prefix = format!("{path}/");
        let name = |meta: &object_store::ObjectMeta| Some(meta.location.as_ref().strip_prefix(&prefix)?.to_owned());
        let mut names: Vec<(String, u64)> = listed.iter().filter_map(|meta| Some((name(meta)?, meta.size))).collect();
        names.sort();
        Ok(names)
    }

    /// The names of the folders in a folder.
    pub(super) fn folders(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.path(folder);
        let listed = self.wait(folder, CALL_TIME, self.store.list_with_delimiter(Some(&path)))?;
        let listed = listed.map_err(|error| self.failed(folder, &error))?;
        Ok(listed.common_prefixes.iter().filter_map(|path| Some(path.filename()?.to_owned())).collect())
    }

    /// Removes an object, if it is there.
    pub(super) fn delete(&self, name: &str) -> Result<()> {
        let path = self.path(name);
        match self.wait(name, CALL_TIME, self.store.delete(&path))? {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(name, &error)),
        }
    }
}

/// Whether the condition of a put did not hold.
fn is_refused(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. })
}

fn generic(cause: std::io::Error) -> object_store::Error {
    object_store::Error::Generic { store: "file", source: Box::new(cause) }
}
