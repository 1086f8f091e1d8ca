//! Objects in stores: `s3://`, `gs://`, `az://`, `http(s)://`.
//!
//! Credentials and endpoints come from the environment, under the names that the stores' own tools
//! use. Objects are streamed; a stream that breaks off is taken up again where it was.

use std::io::{self, Read};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// The network is waited for here; the engine's own threads block.
static RUNTIME: LazyLock<io::Result<Runtime>> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).thread_name("remote").enable_all().build());

/// Times that a broken stream is taken up again.
const ATTEMPTS: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The schemes that name a store.
const SCHEMES: [&str; 9] = ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https"];

/// An object in a store.
#[derive(Debug, Clone)]
pub struct RemoteObject {
    store: Arc<dyn ObjectStore>,
    path: ObjectPath,
    /// The bytes it has.
    pub size: u64,
    /// What changes when the object does.
    pub version: String,
    /// As it was given, or as it was found.
    pub url: String,
}

/// Whether an argument names an object in a store, or many.
#[must_use]
pub fn is_remote(input: &str) -> bool {
    input.split_once("://").is_some_and(|(scheme, _)| SCHEMES.contains(&scheme))
}

/// Waits for a store.
pub(crate) fn wait<T>(work: impl Future<Output = object_store::Result<T>>) -> io::Result<T> {
    let runtime = RUNTIME.as_ref().map_err(|error| io::Error::other(error.to_string()))?;
    runtime.block_on(work).map_err(|error| io_error(&error))
}

/// What a store said.
pub(crate) fn io_error(error: &object_store::Error) -> io::Error {
    let kind = match error {
        object_store::Error::NotFound { .. } => io::ErrorKind::NotFound,
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, said(error))
}

/// The store that a URL names, and the path in it.
pub(crate) fn open_store(url: &str) -> io::Result<(Arc<dyn ObjectStore>, ObjectPath)> {
    let invalid = |error: &dyn std::error::Error| io::Error::new(io::ErrorKind::InvalidInput, said(error));
    let parsed = Url::parse(url).map_err(|error| invalid(&error))?;
    let options = std::env::vars().map(|(name, value)| (name.to_ascii_lowercase(), value));
    // Whoever writes http:// means it.
    let options = options.chain(url.starts_with("http://").then(|| ("allow_http".to_owned(), "true".to_owned())));
    let (store, path) = object_store::parse_url_opts(&parsed, options).map_err(|error| invalid(&error))?;
    Ok((Arc::from(store), path))
}

/// An error with all that caused it.
fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// The objects that a URL names: one, those below a folder, or those that match a pattern.
///
/// # Errors
/// When there are none, or the store cannot be asked.
pub fn find(input: &str) -> io::Result<Vec<RemoteObject>> {
    let invalid = |error: &dyn std::error::Error| io::Error::new(io::ErrorKind::InvalidInput, said(error));
    // A query is part of an object's address on the web, and no pattern.
    let is_web = input.starts_with("http");
    let pattern = Some(input).filter(|input| !is_web && input.contains(['*', '?', '[']));
    let folder = pattern.map(|pattern| {
        let fixed = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
        &pattern[..pattern[..fixed].rfind('/').map_or(fixed, |at| at + 1)]
    });
    let url = Url::parse(folder.unwrap_or(input)).map_err(|error| invalid(&error))?;
    let (store, path) = open_store(folder.unwrap_or(input))?;
    let found = |path: ObjectPath, url: String, size: u64, tag: Option<String>, modified: String| RemoteObject {
        store: Arc::clone(&store),
        path,
        size,
        version: tag.unwrap_or(modified),
        url,
    };
    if pattern.is_none() && !input.ends_with('/') {
        match wait(store.head(&path)) {
            Ok(meta) => {
                let modified = meta.last_modified.to_rfc3339();
                return Ok(vec![found(path, input.to_owned(), meta.size, meta.e_tag, modified)]);
            }
            // It may be a folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_web => {}
            Err(error) => return Err(error),
        }
    }
    let base = &input[..input.find("://").map_or(0, |at| at + 3)];
    let host = url.host_str().unwrap_or_default();
    let matcher = match pattern {
        Some(pattern) => Some(glob::Pattern::new(pattern).map_err(|error| invalid(&error))?),
        None => None,
    };
    let listed = wait(async {
        let mut listed = store.list(Some(&path)).collect::<Vec<_>>().await;
        listed.drain(..).collect::<object_store::Result<Vec<_>>>()
    })?;
    let prefix = if path.as_ref().is_empty() { String::new() } else { format!("{path}/") };
    let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::default() };
    let mut objects: Vec<RemoteObject> = listed
        .into_iter()
        .filter(|meta| meta.size > 0 && meta.location.as_ref().starts_with(&prefix))
        .map(|meta| {
            let url = format!("{base}{host}/{}", meta.location);
            found(meta.location, url, meta.size, meta.e_tag, meta.last_modified.to_rfc3339())
        })
        .filter(|object| matcher.as_ref().is_none_or(|pattern| pattern.matches_with(&object.url, options)))
        .collect();
    objects.sort_by(|a, b| a.url.cmp(&b.url));
    if objects.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such object"));
    }
    Ok(objects)
}

/// Waits longer and longer before the next attempt, until there have been enough.
#[derive(Default)]
struct Pauses(u32);

impl Pauses {
    fn wait_after(&mut self, problem: io::Error) -> io::Result<()> {
        let may_pass = matches!(problem.kind(), io::ErrorKind::Other | io::ErrorKind::UnexpectedEof);
        if !may_pass || self.0 + 1 >= ATTEMPTS {
            return Err(problem);
        }
        std::thread::sleep(FIRST_PAUSE * 2u32.pow(self.0));
        self.0 += 1;
        Ok(())
    }
}

/// Reads an object from a place on.
pub(super) struct RemoteReader {
    object: RemoteObject,
    at: u64,
    stream: Option<BoxStream<'static, object_store::Result<Bytes>>>,
    chunk: Bytes,
}

impl RemoteReader {
    pub(super) fn new(object: RemoteObject) -> RemoteReader {
        RemoteReader { object, at: 0, stream: None, chunk: Bytes::new() }
    }

    pub(super) fn seek_to(&mut self, offset: u64) {
        let ahead = offset.checked_sub(self.at).and_then(|ahead| usize::try_from(ahead).ok());
        match ahead.filter(|&ahead| ahead <= self.chunk.len()) {
            Some(ahead) => self.chunk.advance(ahead),
            None => {
                self.stream = None;
                self.chunk.clear();
            }
        }
        self.at = offset;
    }

    pub(super) fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let range = offset..offset + bytes.len() as u64;
        let mut pauses = Pauses::default();
        loop {
            match wait(self.object.store.get_range(&self.object.path, range.clone())) {
                Ok(found) if found.len() == bytes.len() => {
                    bytes.copy_from_slice(&found);
                    return Ok(());
                }
                Ok(_) => pauses.wait_after(io::ErrorKind::UnexpectedEof.into())?,
                Err(error) => pauses.wait_after(error)?,
            }
        }
    }

    /// The next bytes of the stream; nothing at the end.
    fn next_chunk(&mut self) -> io::Result<Option<Bytes>> {
        if self.at >= self.object.size {
            return Ok(None);
        }
        if self.stream.is_none() {
            let options = GetOptions { range: Some(GetRange::Offset(self.at)), ..GetOptions::default() };
            let got = wait(self.object.store.get_opts(&self.object.path, options))?;
            self.stream = Some(got.into_stream());
        }
        let Some(stream) = &mut self.stream else { return Ok(None) };
        wait(async { stream.next().await.transpose() })
    }
}

impl Read for RemoteReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut pauses = Pauses::default();
        while self.chunk.is_empty() {
            let problem = match self.next_chunk() {
                Ok(Some(chunk)) => {
                    self.chunk = chunk;
                    continue;
                }
                Ok(None) if self.at >= self.object.size => return Ok(0),
                // The connection ended before the object did.
                Ok(None) => io::ErrorKind::UnexpectedEof.into(),
                Err(error) => error,
            };
            self.stream = None;
            pauses.wait_after(problem)?;
        }
        let count = buffer.len().min(self.chunk.len());
        buffer[..count].copy_from_slice(&self.chunk.split_to(count));
        self.at += count as u64;
        Ok(count)
    }
}
