//! An index that changes: the manifest, rows that come and go, the store of what came online.

pub(crate) mod background;
pub(crate) mod changes;
pub(crate) mod manifest;
pub(crate) mod snapshot;
pub(crate) mod store;
