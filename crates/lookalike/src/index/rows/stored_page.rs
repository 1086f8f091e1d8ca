//! What an online index keeps of a page, and its bytes.

use serde::{Deserialize, Serialize};

use crate::sketch::min_bytes::{MinBytes, PARTS};

/// The first byte of a stored page.
const PAGE_VERSION: u8 = 1;

/// What is known of a stored page. Bulk builds, and 0.1.0, store this as it is; what comes online is stored in two parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPage {
    /// Its fingerprint; none where the page is empty.
    pub fingerprint: Option<u64>,
    /// Hash of its token sequence.
    pub identity: u128,
    /// Tokens.
    pub tokens: u32,
    /// Whether it is too short to be like anything but its copy.
    pub is_short: bool,
    /// The sketch by which its similarity is estimated.
    #[serde(with = "bytes_of_sketch")]
    pub sketch: MinBytes,
    /// Where it came from.
    pub url: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// When it was stored, in seconds since 1970.
    pub stored_at: u64,
    /// When it goes, in seconds since 1970.
    #[serde(skip)]
    pub expires_at: Option<u64>,
    /// What its owner noted about it: a JSON object.
    #[serde(skip)]
    pub metadata: Option<String>,
    /// Whether its text is stored.
    #[serde(skip)]
    pub has_text: bool,
}

mod bytes_of_sketch {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::{MinBytes, PARTS};

    pub(crate) fn serialize<S: Serializer>(bytes: &MinBytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MinBytes, D::Error> {
        let bytes = <&[u8]>::deserialize(deserializer)?;
        bytes.try_into().map_err(|_| D::Error::invalid_length(bytes.len(), &PARTS.to_string().as_str()))
    }
}

impl StoredPage {
    pub(crate) fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![PAGE_VERSION]).expect("writing to memory does not fail")
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<StoredPage, String> {
        match bytes.split_first() {
            Some((&PAGE_VERSION, page)) => {
                postcard::from_bytes(page).map_err(|cause| format!("a stored page makes no sense: {cause}"))
            }
            Some((version, _)) => {
                Err(format!("a stored page has the format {version}, and this program reads {PAGE_VERSION}"))
            }
            None => Err("a stored page is empty".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    #[test]
    fn a_stored_page_is_the_same_bytes_on_every_machine_and_is_read_back() {
        let page = StoredPage {
            fingerprint: Some(0x0123_4567_89ab_cdef),
            identity: 7 << 100,
            tokens: 300,
            is_short: false,
            sketch: std::array::from_fn(|at| u8::try_from(at).unwrap()),
            url: Some("http://a.org/".to_owned()),
            title: None,
            stored_at: 1_800_000_000,
            expires_at: None,
            metadata: None,
            has_text: false,
        };
        let bytes = page.encode();
        assert_eq!(StoredPage::decode(&bytes).unwrap(), page);
        assert_eq!(xxh3_64(&bytes), 0x8f0e_fe79_7940_6f3f, "stored with every page; a change needs a new version");
        for length in 0..bytes.len() {
            assert!(StoredPage::decode(&bytes[..length]).is_err(), "{length}");
        }
        assert!(StoredPage::decode(&[2]).unwrap_err().contains("format 2"));
    }
}
