//! What is in the object store, and who may write it.
//!
//! ```text
//! PREFIX/primary.json                      who is the primary: an epoch, changed by conditional puts alone
//! PREFIX/log/EPOCH/FIRST-LAST              groups FIRST to LAST, as bytes, with a checksum
//! PREFIX/base/GROUP-EPOCH/base.json        a copy of the index after GROUP: its files, written last
//! PREFIX/files/EPOCH/CHECKSUM-SIZE         the files of bases
//! ```
//!
//! A group belongs to the last epoch that began at it or before it; what others wrote under its number does not count.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::online::ship::bucket::{Bucket, Fetched};

/// The object that says who the primary is.
pub(super) const PRIMARY: &str = "primary.json";
pub(super) const LOG: &str = "log";
pub(super) const BASES: &str = "base";
pub(super) const FILES: &str = "files";
/// What every object of the log begins with.
const MAGIC: &[u8; 8] = b"LKGROUP1";
/// Bytes before the groups of an object: magic, epoch, config, first and last group.
const HEAD: usize = 40;
/// Earlier epochs that are remembered.
const MOST_EPOCHS: usize = 1024;

/// When an epoch began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EpochStart {
    pub(super) epoch: u64,
    /// The first group that is its own.
    pub(super) from: u64,
}

/// Who the primary is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PrimaryRecord {
    pub(super) epoch: u64,
    /// Which index is the primary.
    pub(super) owner: String,
    /// The first group of this epoch; nothing while its owner still reads what others have shipped.
    pub(super) from: Option<u64>,
    /// Earlier epochs, in their order.
    pub(super) earlier: Vec<EpochStart>,
}

impl PrimaryRecord {
    /// The record of the next epoch.
    pub(super) fn next(before: Option<&PrimaryRecord>, owner: &str, from: Option<u64>) -> PrimaryRecord {
        let mut earlier = before.map(PrimaryRecord::starts).unwrap_or_default();
        // Of an epoch that begins before another one ends, nothing is left.
        earlier.retain(|start| from.is_none_or(|from| start.from < from));
        let surplus = earlier.len().saturating_sub(MOST_EPOCHS);
        earlier.drain(..surplus);
        let epoch = before.map_or(1, |before| before.epoch + 1);
        PrimaryRecord { epoch, owner: owner.to_owned(), from, earlier }
    }

    /// All epochs that have begun, in their order.
    fn starts(&self) -> Vec<EpochStart> {
        let own = self.from.map(|from| EpochStart { epoch: self.epoch, from });
        self.earlier.iter().copied().chain(own).collect()
    }

    /// The first group that counts no more of what was written in an epoch; nothing if all does.
    pub(super) fn end_of(&self, epoch: u64) -> Option<u64> {
        self.starts().iter().filter(|start| start.epoch > epoch).map(|start| start.from).min()
    }

    /// What counts of the groups from `first` to `last` that were written in an epoch: the last that does.
    pub(super) fn last_valid(&self, epoch: u64, first: u64, last: u64) -> Option<u64> {
        let last = self.end_of(epoch).map_or(last, |end| last.min(end.saturating_sub(1)));
        (first <= last && epoch <= self.epoch).then_some(last)
    }

    /// The epoch that a group belongs to, or will.
    pub(super) fn epoch_of(&self, group: u64) -> u64 {
        let starts = self.starts();
        starts.iter().rev().find(|start| start.from <= group).map_or(self.epoch, |start| start.epoch)
    }

    fn bytes(&self) -> Bytes {
        serde_json::to_vec_pretty(self).expect("plain fields serialise").into()
    }

    fn parse(bucket: &Bucket, fetched: &Fetched) -> Result<PrimaryRecord> {
        serde_json::from_slice(&fetched.bytes).map_err(|cause| damaged(bucket, PRIMARY, cause))
    }

    /// Who the primary is now.
    pub(super) fn read(bucket: &Bucket) -> Result<Option<PrimaryRecord>> {
        bucket.get(PRIMARY)?.map(|fetched| PrimaryRecord::parse(bucket, &fetched)).transpose()
    }

    /// Changes who the primary is, if `decide` still wants that when nobody else does so meanwhile.
    pub(super) fn change(
        bucket: &Bucket,
        mut decide: impl FnMut(Option<&PrimaryRecord>) -> Result<PrimaryRecord>,
    ) -> Result<PrimaryRecord> {
        loop {
            let fetched = bucket.get(PRIMARY)?;
            let before = fetched.as_ref().map(|fetched| PrimaryRecord::parse(bucket, fetched)).transpose()?;
            let after = decide(before.as_ref())?;
            let is_done = match fetched {
                Some(fetched) => bucket.replace(PRIMARY, &after.bytes(), fetched.version)?,
                None => bucket.create(PRIMARY, &after.bytes())?,
            };
            if is_done {
                return Ok(after);
            }
        }
    }
}

/// An error about an object that makes no sense.
pub(super) fn damaged(bucket: &Bucket, name: &str, reason: impl std::fmt::Display) -> Error {
    let cause = std::io::Error::new(std::io::ErrorKind::InvalidData, format!("is damaged: {reason}"));
    Error::Remote { url: format!("{}/{name}", bucket.url()), cause }
}

/// An object of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogObject {
    pub(super) epoch: u64,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) size: u64,
}

impl LogObject {
    pub(super) fn name(&self) -> String {
        format!("{LOG}/{:010}/{:020}-{:020}", self.epoch, self.first, self.last)
    }

    /// From its name in the folder of the log.
    fn parse((name, size): &(String, u64)) -> Option<LogObject> {
        let (epoch, groups) = name.split_once('/')?;
        let (first, last) = groups.split_once('-')?;
        let (epoch, first, last) = (epoch.parse().ok()?, first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some(LogObject { epoch, first, last, size: *size })
    }

    /// All that there are, by epoch and group.
    pub(super) fn list(bucket: &Bucket) -> Result<Vec<LogObject>> {
        Ok(bucket.list(LOG, None)?.iter().filter_map(LogObject::parse).collect())
    }

    /// Those of an epoch that begin with `group` or later.
    pub(super) fn list_from(bucket: &Bucket, epoch: u64, group: u64) -> Result<Vec<LogObject>> {
        let listed = bucket.list(&format!("{LOG}/{epoch:010}"), Some(&format!("{group:020}")))?;
        let parse = |(name, size): &(String, u64)| LogObject::parse(&(format!("{epoch:010}/{name}"), *size));
        Ok(listed.iter().filter_map(parse).collect())
    }
}

/// Groups as the bytes of an object.
pub(super) fn encode_groups(object: &LogObject, config: u64, groups: &[(u64, Vec<u8>)]) -> Bytes {
    let mut bytes = MAGIC.to_vec();
    for number in [object.epoch, config, object.first, object.last] {
        bytes.extend(number.to_le_bytes());
    }
    for (_, group) in groups {
        bytes.extend(u32::try_from(group.len()).expect("a group is smaller than 4 GiB").to_le_bytes());
        bytes.extend(group);
    }
    bytes.extend(xxh3_64(&bytes).to_le_bytes());
    bytes.into()
}

/// The groups in the bytes of an object, by number.
pub(super) fn decode_groups(
    object: &LogObject,
    config: u64,
    bytes: &[u8],
) -> std::result::Result<Vec<(u64, Vec<u8>)>, String> {
    let (content, check) = bytes.split_last_chunk::<8>().ok_or("it is too short")?;
    if xxh3_64(content).to_le_bytes() != *check {
        return Err("its checksum is wrong".to_owned());
    }
    let number = |at: usize| content.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    if content.get(..8) != Some(MAGIC) {
        return Err("it is not a log, or one of another version".to_owned());
    }
    if (number(8), number(24), number(32)) != (Some(object.epoch), Some(object.first), Some(object.last)) {
        return Err("it is another part of the log than its name says".to_owned());
    }
    if number(16) != Some(config) {
        return Err("its pages were read in another way than those of this index".to_owned());
    }
    let (mut rest, mut groups) = (content.get(HEAD..).ok_or("it is too short")?, Vec::new());
    for number in object.first..=object.last {
        let (length, after) = rest.split_first_chunk::<4>().ok_or("groups are missing")?;
        let length = u32::from_le_bytes(*length) as usize;
        groups.push((number, after.get(..length).ok_or("groups are missing")?.to_vec()));
        rest = &after[length..];
    }
    if rest.is_empty() { Ok(groups) } else { Err("it has more groups than its name says".to_owned()) }
}

/// The number of the last group that is in the store, counting bases.
pub(super) fn last_shipped(record: &PrimaryRecord, log: &[LogObject], bases: &[(u64, u64)]) -> u64 {
    let of_log = log.iter().filter_map(|object| record.last_valid(object.epoch, object.first, object.last));
    let of_bases = bases.iter().filter(|base| is_valid_base(record, **base)).map(|(group, _)| *group);
    of_log.chain(of_bases).max().unwrap_or(0)
}

/// Whether a base, by its group and epoch, holds nothing that a later primary does not have.
pub(super) fn is_valid_base(record: &PrimaryRecord, (group, epoch): (u64, u64)) -> bool {
    epoch <= record.epoch && record.end_of(epoch).is_none_or(|end| group < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read_back_and_damage_is_refused() {
        let object = LogObject { epoch: 3, first: 7, last: 8, size: 0 };
        let groups = vec![(7, b"one".to_vec()), (8, Vec::new())];
        let bytes = encode_groups(&object, 5, &groups);
        assert_eq!(decode_groups(&object, 5, &bytes).unwrap(), groups);
        assert!(decode_groups(&object, 6, &bytes).unwrap_err().contains("another way"));
        assert!(decode_groups(&LogObject { last: 9, ..object.clone() }, 5, &bytes).is_err());
        for at in 0..bytes.len() {
            let mut wrong = bytes.to_vec();
            wrong[at] ^= 1;
            assert!(decode_groups(&object, 5, &wrong).is_err(), "byte {at}");
            assert!(decode_groups(&object, 5, &bytes[..at]).is_err(), "cut at {at}");
        }
        let listed = (object.name().strip_prefix("log/").unwrap().to_owned(), 0);
        assert_eq!(LogObject::parse(&listed), Some(object));
        assert_eq!(LogObject::parse(&("1/9-8".to_owned(), 0)), None);
    }

    #[test]
    fn what_an_older_epoch_wrote_beyond_its_end_does_not_count() {
        let first = PrimaryRecord::next(None, "a", Some(1));
        let claimed = PrimaryRecord::next(Some(&first), "b", None);
        assert_eq!((claimed.epoch, claimed.from, claimed.end_of(1)), (2, None, None), "it has not begun yet");
        let second = PrimaryRecord { from: Some(11), ..claimed };
        let third = PrimaryRecord::next(Some(&second), "b", Some(15));
        assert_eq!((third.end_of(1), third.end_of(2), third.end_of(3)), (Some(11), Some(15), None));
        assert_eq!(third.last_valid(1, 9, 12), Some(10));
        assert_eq!(third.last_valid(1, 11, 12), None);
        assert_eq!(third.last_valid(2, 11, 14), Some(14));
        assert_eq!(third.last_valid(4, 16, 17), None, "nobody knows of this epoch");
        let log =
            [LogObject { epoch: 1, first: 9, last: 40, size: 1 }, LogObject { epoch: 2, first: 11, last: 13, size: 1 }];
        assert_eq!(last_shipped(&third, &log, &[(50, 1), (12, 2)]), 13);
        assert_eq!(last_shipped(&third, &[], &[(10, 1), (11, 1)]), 10);
        // An epoch that ends where it begins leaves nothing.
        let fourth = PrimaryRecord::next(Some(&third), "a", Some(13));
        assert_eq!((fourth.end_of(2), fourth.last_valid(3, 15, 16)), (Some(13), None));
    }

    #[test]
    fn of_two_that_claim_an_epoch_one_must_look_again() {
        let bucket = Bucket::in_memory();
        let claim = |owner: &'static str| {
            PrimaryRecord::change(&bucket, |before| Ok(PrimaryRecord::next(before, owner, Some(1)))).unwrap()
        };
        assert_eq!(claim("a").epoch, 1);
        let mut tries = 0;
        let record = PrimaryRecord::change(&bucket, |before| {
            tries += 1;
            if tries == 1 {
                // Another one is faster.
                assert_eq!(claim("b").epoch, 2);
            }
            Ok(PrimaryRecord::next(before, "c", Some(1)))
        });
        assert_eq!((record.unwrap().epoch, tries), (3, 2));
        assert_eq!(PrimaryRecord::read(&bucket).unwrap().unwrap().owner, "c");
    }
}
