//! In place of `remote.rs`, where the library is built without it: nothing is in a store.

use std::io::{self, Read};

/// An object in a store; there is none.
#[derive(Debug, Clone)]
pub struct RemoteObject {
    pub(super) size: u64,
    pub(super) version: String,
    pub(super) url: String,
}

/// Whether an argument names an object in a store.
pub(super) fn is_remote(input: &str) -> bool {
    ["s3://", "gs://", "az://", "http://", "https://"].iter().any(|scheme| input.starts_with(scheme))
}

/// Says that stores cannot be read.
pub(super) fn find(_: &str) -> io::Result<Vec<RemoteObject>> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "this build does not read from stores; make one that does: cargo install --path crates/lookalike-cli --features remote",
    ))
}

/// Reads nothing.
pub(super) struct RemoteReader;

impl RemoteReader {
    pub(super) fn new(_: RemoteObject) -> RemoteReader {
        RemoteReader
    }

    #[allow(clippy::unused_self)] // as the real one
    pub(super) fn seek_to(&mut self, _: u64) {}

    pub(super) fn read_exact_at(&self, _: &mut [u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Read for RemoteReader {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
