//! What an online index keeps of a page, and its bytes: an entry by the page's id, a record by its number.

use serde::{Deserialize, Serialize};

use crate::index::rows::StoredPage;
use crate::sketch::min_bytes::{MinBytes, PARTS};
use crate::text::{ContentCodec, StoredContent};

/// The first byte of an entry; 1 is a page of 0.1.0, which has all in one.
const ENTRY_VERSION: u8 = 2;
/// The first byte of a record.
const RECORD_VERSION: u8 = 1;

/// What is known of a page by its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PageEntry {
    /// The number of its record.
    pub(crate) number: u32,
    /// Where it came from, if that is not its id.
    pub(crate) url: Option<String>,
    /// Whether its id is where it came from.
    pub(crate) is_url: bool,
    pub(crate) title: Option<String>,
    /// When it was stored, in seconds since 1970.
    pub(crate) stored_at: u64,
    /// When it goes, in seconds since 1970.
    pub(crate) expires_at: Option<u64>,
    /// What its owner noted about it: a JSON object.
    pub(crate) metadata: Option<String>,
}

/// What pages are compared by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) identity: u128,
    pub(crate) tokens: u32,
    /// Whether it is too short to be like anything but its copy.
    pub(crate) is_short: bool,
    /// Its fingerprint, in a collection that is searched by fingerprints.
    pub(crate) fingerprint: Option<u64>,
    /// What stands for its site, if it is compared without its frame; 0 otherwise.
    pub(crate) site: u64,
    /// What stands for its host, if it is stored in blocks.
    pub(crate) host: Option<u64>,
    /// When it goes, in seconds since 1970.
    pub(crate) expires_at: Option<u64>,
    /// Parts of the sketch that are not 0.
    filled: u128,
    #[serde(with = "crate::spill::as_bytes")]
    sketch: Vec<u8>,
    /// The compared text, as [`ContentCodec`] writes it; empty where texts are not kept.
    #[serde(with = "crate::spill::as_bytes")]
    pub(crate) content: Vec<u8>,
}

impl Record {
    pub(crate) fn set_sketch(&mut self, sketch: &MinBytes) {
        self.filled = sketch.iter().enumerate().fold(0, |bits, (at, &byte)| bits | u128::from(byte > 0) << at);
        self.sketch = sketch.iter().copied().filter(|&byte| byte > 0).collect();
    }

    /// The sketch by which its similarity is estimated.
    pub(crate) fn sketch(&self) -> MinBytes {
        let mut sketch = [0; PARTS];
        let places = (0..PARTS).filter(|at| self.filled >> at & 1 == 1);
        places.zip(&self.sketch).for_each(|(at, &byte)| sketch[at] = byte);
        sketch
    }

    /// The record of a page that 0.1.0 stored.
    fn of_stored(id: &str, page: &StoredPage) -> Record {
        let mut record = Record {
            id: id.to_owned(),
            identity: page.identity,
            tokens: page.tokens,
            is_short: page.is_short,
            fingerprint: page.fingerprint,
            site: 0,
            host: None,
            expires_at: None,
            filled: 0,
            sketch: Vec::new(),
            content: Vec::new(),
        };
        record.set_sketch(&page.sketch);
        record
    }

    /// A record without a sketch and without a text.
    pub(crate) fn new(id: String, identity: u128, tokens: u32) -> Record {
        let (fingerprint, host, expires_at) = (None, None, None);
        let (sketch, content) = (Vec::new(), Vec::new());
        let (is_short, site, filled) = (false, 0, 0);
        Record { id, identity, tokens, is_short, fingerprint, site, host, expires_at, filled, sketch, content }
    }

    /// The text, if it was kept.
    pub(crate) fn text(&self, codec: &mut ContentCodec) -> Result<Option<StoredContent>, String> {
        if self.content.is_empty() { Ok(None) } else { codec.decode(&self.content).map(Some) }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![RECORD_VERSION]).expect("writing to memory does not fail")
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Record, String> {
        match bytes.split_first() {
            Some((&RECORD_VERSION, record)) => {
                postcard::from_bytes(record).map_err(|cause| format!("a record makes no sense: {cause}"))
            }
            Some((version, _)) => {
                Err(format!("a record has the format {version}, and this program reads {RECORD_VERSION}"))
            }
            None => Err("a record is empty".to_owned()),
        }
    }
}

/// What is found by an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FoundEntry {
    /// An entry, whose record is found by its number.
    Entry(PageEntry),
    /// A page that 0.1.0, or a bulk build, stored: all that is known of it.
    Whole(Box<StoredPage>, Box<Record>),
}

impl PageEntry {
    pub(crate) fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![ENTRY_VERSION]).expect("writing to memory does not fail")
    }
}

impl FoundEntry {
    pub(crate) fn decode(id: &str, bytes: &[u8]) -> Result<FoundEntry, String> {
        match bytes.split_first() {
            Some((&ENTRY_VERSION, entry)) => postcard::from_bytes(entry)
                .map(FoundEntry::Entry)
                .map_err(|cause| format!("a stored page makes no sense: {cause}")),
            _ => StoredPage::decode(bytes).map(|page| {
                let record = Record::of_stored(id, &page);
                FoundEntry::Whole(Box::new(page), Box::new(record))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    #[test]
    fn entries_and_records_are_the_same_bytes_on_every_machine_and_are_read_back() {
        let entry = PageEntry {
            number: 300,
            url: None,
            is_url: true,
            title: Some("Roses".to_owned()),
            stored_at: 1_800_000_000,
            expires_at: Some(1_900_000_000),
            metadata: Some("{}".to_owned()),
        };
        let bytes = entry.encode();
        assert_eq!(FoundEntry::decode("a", &bytes).unwrap(), FoundEntry::Entry(entry));
        assert_eq!(xxh3_64(&bytes), 0xd963_45a8_a73b_0889, "stored with every page; a change needs a new version");
        let mut record = Record::new("a".to_owned(), 7 << 100, 300);
        let sketch: MinBytes = std::array::from_fn(|at| u8::try_from(at * 2 % 256).unwrap());
        record.set_sketch(&sketch);
        record.content = vec![0, 1, 2];
        let bytes = record.encode();
        let again = Record::decode(&bytes).unwrap();
        assert_eq!((&again, again.sketch()), (&record, sketch));
        assert_eq!(xxh3_64(&bytes), 0x3d6e_23bd_d8df_cc00, "stored with every page; a change needs a new version");
        for length in 0..bytes.len() {
            assert!(Record::decode(&bytes[..length]).is_err(), "{length}");
        }
        assert!(Record::decode(&[9]).unwrap_err().contains("format 9"));
    }

    #[test]
    fn a_sketch_of_a_few_words_takes_a_few_bytes() {
        let mut record = Record::new("a".to_owned(), 0, 1);
        let mut sketch = [0; PARTS];
        (sketch[3], sketch[127]) = (9, 1);
        record.set_sketch(&sketch);
        assert_eq!(record.sketch(), sketch);
        assert!(record.encode().len() < 40, "{}", record.encode().len());
    }
}
