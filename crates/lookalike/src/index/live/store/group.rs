//! Changes, and the groups of them that are written as one.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::index::live::changes::RowChange;
use crate::index::rows::{PageEntry, Record};
use crate::index::segment::ids::Id;

/// Bytes of the key of a band.
const KEY_BYTES: usize = 6;

/// Bytes of a change in the log.
pub(super) fn encode_change(change: &RowChange) -> Vec<u8> {
    let row = |kind: u8, fingerprint: u64, id: &Id| {
        let mut bytes = vec![kind];
        bytes.extend(fingerprint.to_be_bytes());
        bytes.extend(id.to_string().as_bytes());
        bytes
    };
    match change {
        RowChange::Insert(fingerprint, id) => row(b'+', *fingerprint, id),
        RowChange::Delete(fingerprint, id) => row(b'-', *fingerprint, id),
        RowChange::Bands(keys) => {
            let keys = keys.iter().flat_map(|key| key.to_le_bytes().into_iter().take(KEY_BYTES));
            std::iter::once(b'b').chain(keys).collect()
        }
        RowChange::Gone(number) => [&b"x"[..], &number.to_be_bytes()].concat(),
    }
}

pub(super) fn decode_change(bytes: &[u8]) -> Option<RowChange> {
    let (kind, rest) = bytes.split_first()?;
    match kind {
        b'b' if rest.len().is_multiple_of(KEY_BYTES) => {
            let key = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |key, &byte| key << 8 | u64::from(byte));
            return Some(RowChange::Bands(rest.chunks_exact(KEY_BYTES).map(key).collect()));
        }
        b'x' => return rest.try_into().ok().map(|number| RowChange::Gone(u32::from_be_bytes(number))),
        _ => {}
    }
    let (fingerprint, id) = rest.split_first_chunk::<8>()?;
    let (fingerprint, id) = (u64::from_be_bytes(*fingerprint), Id::from(std::str::from_utf8(id).ok()?));
    match kind {
        b'+' => Some(RowChange::Insert(fingerprint, id)),
        b'-' => Some(RowChange::Delete(fingerprint, id)),
        _ => None,
    }
}

/// What a store has had so far: written with every group, so that whatever is lost is missed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// The number of the last change.
    pub(crate) last: u64,
    /// Groups that were written.
    pub(crate) groups: u64,
    /// Pages that are stored.
    pub(crate) pages: u64,
}

/// What is written and synced as one.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChangeGroup {
    /// The number of the first change.
    pub(crate) first: u64,
    #[serde(serialize_with = "serialize_changes", deserialize_with = "deserialize_changes")]
    pub(crate) changes: Vec<RowChange>,
    /// Pages by id; `None` for those that are removed.
    pub(crate) pages: Vec<(String, Option<PageEntry>)>,
    /// Records by number; `None` for those that are removed.
    pub(crate) records: Vec<(u32, Option<Record>)>,
    /// The numbers of the pages with an identity.
    pub(crate) copies: Vec<(u128, Vec<u32>)>,
    /// Pages in blocks, by a hash of their host: those that come and those that go.
    pub(crate) hosts: Vec<(u64, u32, bool)>,
    /// Pages that go at a time, in seconds since 1970: those that come and those that are gone.
    pub(crate) expiries: Vec<(u64, u32, bool)>,
    /// What was learnt, by a hash of the host.
    pub(crate) frames: Vec<(u64, Vec<u8>)>,
    pub(crate) totals: Totals,
}

impl ChangeGroup {
    /// The number of the last change; the one before the first where there is none.
    #[cfg(any(test, feature = "remote"))]
    pub(crate) fn last(&self) -> u64 {
        self.first + self.changes.len() as u64 - 1
    }
}

fn serialize_changes<S: Serializer>(changes: &[RowChange], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(changes.iter().map(encode_change))
}

fn deserialize_changes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RowChange>, D::Error> {
    let changes = Vec::<Vec<u8>>::deserialize(deserializer)?;
    let decode =
        |bytes: &Vec<u8>| decode_change(bytes).ok_or_else(|| serde::de::Error::custom("a change makes no sense"));
    changes.iter().map(decode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_the_same_bytes_on_every_machine_and_is_read_back() {
        let changes = [
            RowChange::Insert(0xab << 56, Id::from("ü")),
            RowChange::Delete(1, Id::from("")),
            RowChange::Bands([0x0102_0304_0506, 7].into()),
            RowChange::Gone(258),
        ];
        let encoded = [
            &b"+\xab\0\0\0\0\0\0\0\xc3\xbc"[..],
            b"-\0\0\0\0\0\0\0\x01",
            b"b\x06\x05\x04\x03\x02\x01\x07\0\0\0\0\0",
            b"x\0\0\x01\x02",
        ];
        for (change, bytes) in changes.iter().zip(encoded) {
            assert_eq!(encode_change(change), bytes);
            assert_eq!(decode_change(bytes).as_ref(), Some(change));
        }
        for wrong in [&b"?12345678"[..], b"+123", b"b12345", b"x123", b""] {
            assert_eq!(decode_change(wrong), None);
        }
    }

    #[test]
    fn a_group_is_read_back() {
        let group = ChangeGroup {
            first: 7,
            changes: vec![RowChange::Bands([1, 2].into()), RowChange::Gone(3)],
            pages: vec![("a".to_owned(), None)],
            records: vec![(8, Some(Record::new("b".to_owned(), 1, 2))), (3, None)],
            copies: vec![(1, vec![8])],
            hosts: vec![(9, 8, true)],
            expiries: vec![(10, 8, true)],
            frames: vec![(9, vec![1])],
            totals: Totals { last: 8, groups: 2, pages: 1 },
        };
        assert_eq!(group.last(), 8);
        let bytes = postcard::to_stdvec(&group).unwrap();
        assert_eq!(postcard::from_bytes::<ChangeGroup>(&bytes).unwrap(), group);
    }
}
