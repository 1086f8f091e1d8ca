//! A page as it is stored to be compared later: its text, and of markup what tells a frame from a story.
//!
//! In: a page that was read. Out: a few hundred bytes to a few thousand, compressed; read again they are the page as it
//! was, whatever was learnt about frames in the meantime.

use serde::{Deserialize, Serialize};

use crate::page::Markup;
use crate::spill::as_bytes;

/// A page of HTML in its blocks, without what follows from its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredBlocks {
    pub(super) text: String,
    /// Where blocks end in the text.
    pub(super) ends: Vec<usize>,
    /// The place of each block in the markup.
    #[serde(with = "as_bytes")]
    pub(super) paths: Vec<u64>,
    /// What is known of each block, as bits.
    #[serde(with = "as_bytes")]
    pub(super) marks: Vec<u8>,
    pub(super) host: String,
    /// The signature of its markup.
    #[serde(with = "as_bytes")]
    pub(super) markup: Vec<u32>,
}

impl StoredBlocks {
    /// The host it is from; empty where that is not known.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The signature of its markup.
    pub(crate) fn markup(&self) -> &[u32] {
        &self.markup
    }
}

/// A page to be compared later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StoredContent {
    /// Plain text.
    Text(String),
    /// Markup whose frame is left out, once it is known.
    Blocks(StoredBlocks),
    /// Markup of which another part is compared.
    Html(String),
}

/// Bytes below which compressing does not pay.
const LEAST_COMPRESSED: usize = 48;
const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
/// A good deal smaller than the fastest level, and fast enough to be done for every page.
const LEVEL: i32 = 3;

/// Compresses and decompresses; keeps its buffers.
pub(crate) struct ContentCodec {
    compressor: zstd::bulk::Compressor<'static>,
    decompressor: zstd::bulk::Decompressor<'static>,
}

impl Default for ContentCodec {
    fn default() -> ContentCodec {
        let mut compressor = zstd::bulk::Compressor::new(LEVEL).expect("a context of zstd is made from memory alone");
        // The lengths are stored beside, and stores have checksums.
        for off in
            [zstd::zstd_safe::CParameter::ContentSizeFlag(false), zstd::zstd_safe::CParameter::ChecksumFlag(false)]
        {
            compressor.set_parameter(off).expect("a known parameter");
        }
        let decompressor = zstd::bulk::Decompressor::new().expect("a context of zstd is made from memory alone");
        ContentCodec { compressor, decompressor }
    }
}

impl ContentCodec {
    /// The bytes of a page.
    pub(crate) fn encode(&mut self, content: &StoredContent) -> Vec<u8> {
        let plain = postcard::to_extend(content, vec![PLAIN]).expect("writing to memory does not fail");
        if plain.len() < LEAST_COMPRESSED {
            return plain;
        }
        let Ok(packed) = self.compressor.compress(&plain[1..]) else { return plain };
        let mut bytes = vec![ZSTD];
        bytes = postcard::to_extend(&(plain.len() - 1), bytes).expect("writing to memory does not fail");
        if bytes.len() + packed.len() >= plain.len() {
            return plain;
        }
        bytes.extend_from_slice(&packed);
        bytes
    }

    /// The page that was stored as these bytes.
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> Result<StoredContent, String> {
        let wrong = |cause: &dyn std::fmt::Display| format!("the text of a stored page makes no sense: {cause}");
        match bytes.split_first() {
            Some((&PLAIN, plain)) => postcard::from_bytes(plain).map_err(|cause| wrong(&cause)),
            Some((&ZSTD, rest)) => {
                let (length, packed) = postcard::take_from_bytes::<usize>(rest).map_err(|cause| wrong(&cause))?;
                let plain = self.decompressor.decompress(packed, length).map_err(|cause| wrong(&cause))?;
                postcard::from_bytes(&plain).map_err(|cause| wrong(&cause))
            }
            _ => Err(wrong(&"it is of no known kind")),
        }
    }
}

impl StoredContent {
    /// The text as people read it; of markup that is stored as it was, the markup.
    pub(crate) fn text(&self) -> (&str, Markup) {
        match self {
            StoredContent::Text(text) => (text, Markup::Text),
            StoredContent::Blocks(blocks) => (&blocks.text, Markup::Text),
            StoredContent::Html(html) => (html, Markup::Html),
        }
    }

    /// The page in its blocks, if it is stored so.
    pub(crate) fn blocks(&self) -> Option<&StoredBlocks> {
        match self {
            StoredContent::Blocks(blocks) => Some(blocks),
            StoredContent::Text(_) | StoredContent::Html(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Body, RawPage};
    use crate::text::{PageReader, Scope, TextOptions};

    const PAGE: &str = "<html><title>Roses - Garden</title><body class=home><div id=nav><ul><li><a href=/a>Home</a><li><a href=/b>News</a></ul></div>\
        <main><h1>Roses</h1><p>A rose is a rose is a rose, said the gardener to the queen of all the gardens in the land, twice.</p><p></p>\
        <p>And nobody doubted it for as long as the summer of that year was warm enough for roses to grow.</p></main>\
        <footer>All rights reserved</footer></body></html>";

    #[test]
    fn a_page_that_was_stored_is_read_as_it_was() {
        let options = TextOptions { scope: Scope::Story, ..TextOptions::default() };
        let mut page = RawPage::new(Body::Text(PAGE.into()), Markup::Html);
        page.url = Some("http://garden.example/roses".into());
        let mut reader = PageReader::new(options);
        let (held, title) = reader.hold_with_text(&page).unwrap();
        assert_eq!(title, Some("Roses - Garden"));
        let stored = StoredContent::Blocks(held.stored());
        let mut codec = ContentCodec::default();
        let bytes = codec.encode(&stored);
        let StoredContent::Blocks(again) = codec.decode(&bytes).unwrap() else { panic!("blocks") };
        assert_eq!(StoredContent::Blocks(again.clone()), stored);
        let again = PageReader::new(options).hold_stored(&again);
        // What tells blocks apart is the same, and so is what is sampled and compared.
        assert_eq!(format!("{:?}", again.without_examples()), format!("{:?}", held.without_examples()));
        let tokens = |held| PageReader::new(options).read_held(held).tokens.to_vec();
        assert_eq!(tokens(&again), tokens(&held));
    }

    #[test]
    fn texts_are_compressed_where_that_pays_and_damage_is_found() {
        let mut codec = ContentCodec::default();
        for text in ["".to_owned(), "short".to_owned(), "the ferry had left the harbour ".repeat(40)] {
            let stored = StoredContent::Text(text.clone());
            let bytes = codec.encode(&stored);
            assert!(bytes.len() < text.len().max(100), "{}", bytes.len());
            assert_eq!(codec.decode(&bytes).unwrap(), stored);
            for length in 0..bytes.len() {
                assert_ne!(codec.decode(&bytes[..length]).ok(), Some(stored.clone()), "{length}");
            }
        }
        assert!(codec.decode(&[9, 1, 2]).is_err());
    }
}
