//! What was learnt of sites: the pages that are learnt from, the frames, and which stored pages are whose.
//!
//! Samples are not synced: what is lost of them in a crash is learnt again.

use crate::error::Result;
use crate::index::live::store::Store;

const SAMPLE: u8 = b's';
const FRAMES: u8 = b'f';
const HOST: u8 = b'h';
const EXPIRY: u8 = b'e';

fn key_of(kind: u8, host: u64) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend(host.to_be_bytes());
    key
}

/// The key of a stored page of a host.
pub(super) fn host_key(host: u64, number: u32) -> Vec<u8> {
    let mut key = key_of(HOST, host);
    key.extend(number.to_be_bytes());
    key
}

/// The key of what was learnt of a host.
pub(super) fn frames_key(host: u64) -> Vec<u8> {
    key_of(FRAMES, host)
}

/// The key of a page that goes at a time.
pub(super) fn expiry_key(time: u64, number: u32) -> Vec<u8> {
    let mut key = key_of(EXPIRY, time);
    key.extend(number.to_be_bytes());
    key
}

impl Store {
    /// The numbers of pages that were to go up to a time, with that time, at most `most`.
    pub(crate) fn expired(&self, until: u64, most: usize) -> Result<Vec<(u64, u32)>> {
        let entries = self.tables.learnt.range(expiry_key(0, 0)..=expiry_key(until, u32::MAX));
        let number = |entry: fjall::Guard| {
            let key = entry.key().map_err(|cause| self.failed(&cause))?;
            let parts = key.get(1..9).zip(key.get(9..13));
            let parts = parts.and_then(|(time, number)| Some((time.try_into().ok()?, number.try_into().ok()?)));
            let (time, number) = parts.ok_or_else(|| self.corrupt("a page that goes has no number"))?;
            Ok((u64::from_be_bytes(time), u32::from_be_bytes(number)))
        };
        entries.take(most).map(number).collect()
    }

    /// Keeps a page of a host to learn from, by its own key.
    pub(crate) fn keep_sample(&self, host: u64, key: u64, sample: Vec<u8>) -> Result<()> {
        let key = [key_of(SAMPLE, host), key.to_be_bytes().to_vec()].concat();
        self.tables.learnt.insert(key, sample).map_err(|cause| self.failed(&cause))
    }

    /// Forgets a page that was learnt from.
    pub(crate) fn forget_sample(&self, host: u64, key: u64) -> Result<()> {
        let key = [key_of(SAMPLE, host), key.to_be_bytes().to_vec()].concat();
        self.tables.learnt.remove(key).map_err(|cause| self.failed(&cause))
    }

    /// Visits the pages of a host that are learnt from, by their keys.
    pub(crate) fn for_each_sample(&self, host: u64, visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        for entry in self.tables.learnt.prefix(key_of(SAMPLE, host)) {
            let (key, value) = entry.into_inner().map_err(|cause| self.failed(&cause))?;
            let number = key.last_chunk::<8>().copied().map(u64::from_be_bytes);
            visit(number.ok_or_else(|| self.corrupt("a sample has no key"))?, &value)?;
        }
        Ok(())
    }

    /// Keeps what another store has learnt of sites, and what from.
    pub(crate) fn copy_learnt(&self, from: &Store) -> Result<()> {
        for kind in [SAMPLE, FRAMES] {
            for entry in from.tables.learnt.prefix([kind]) {
                let (key, value) = entry.into_inner().map_err(|cause| from.failed(&cause))?;
                self.tables.learnt.insert(key, value).map_err(|cause| self.failed(&cause))?;
            }
        }
        Ok(())
    }

    /// What was learnt of a host.
    pub(crate) fn frames(&self, host: u64) -> Result<Option<fjall::UserValue>> {
        self.get(&self.tables.learnt, &key_of(FRAMES, host))
    }

    /// The numbers of stored pages of a host, from `from` on, at most `most`.
    pub(crate) fn numbers_of_host(&self, host: u64, from: u32, most: usize) -> Result<Vec<u32>> {
        let entries = self.tables.learnt.range(host_key(host, from)..=host_key(host, u32::MAX));
        let number = |entry: fjall::Guard| {
            let key = entry.key().map_err(|cause| self.failed(&cause))?;
            let number = key.last_chunk::<4>().copied().map(u32::from_be_bytes);
            number.ok_or_else(|| self.corrupt("a page of a host has no number"))
        };
        entries.take(most).map(number).collect()
    }
}
