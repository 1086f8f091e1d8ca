//! Values of arguments that are chosen from a list.

use clap::ValueEnum;
use lookalike::index::fingerprints::Notation;
use lookalike::index::{IdKind, TableCodec};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodName {
    /// Banded MinHash on word 5-grams, every candidate verified by exact Jaccard similarity
    Minhash,
    /// Algorithm B of Henzinger (2006): equal supershingles of word 8-grams
    Shingle,
    /// Algorithm C of Henzinger (2006): equal bits of a random projection of the words
    Projection,
    /// Pairs of Algorithm B that Algorithm C does not contradict
    Combined,
    /// Algorithm C between sites, the combined one within a site
    Routed,
    /// SimHash fingerprints of 64 bits that differ in few (Manku et al. 2007)
    Simhash,
    /// Content-defined chunks and Bloom filters (Jain et al. 2005); finds pages contained in others
    Bloom,
    /// Spot signatures: the same story in different page frames
    Spotsigs,
}

/// The methods that are evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EvaluatedMethods(pub(crate) Vec<MethodName>);

impl std::str::FromStr for EvaluatedMethods {
    type Err = String;

    fn from_str(text: &str) -> Result<EvaluatedMethods, String> {
        if text == "all" {
            return Ok(EvaluatedMethods(MethodName::value_variants().to_vec()));
        }
        let named = |name: &str| {
            MethodName::from_str(name.trim(), false).map_err(|_| {
                let all = MethodName::value_variants().iter().filter_map(MethodName::to_possible_value);
                let all: Vec<String> = all.map(|value| value.get_name().to_owned()).collect();
                format!("'{name}' is no method; there are all, {}", all.join(", "))
            })
        };
        let mut methods = Vec::new();
        for name in text.split(',') {
            let method = named(name)?;
            if !methods.contains(&method) {
                methods.push(method);
            }
        }
        Ok(EvaluatedMethods(methods))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WeightsName {
    /// Every feature counts once
    None,
    /// As often as it occurs
    Tf,
    /// More, the fewer pages have it (spotsigs)
    Idf,
    /// Both (simhash)
    TfIdf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MaskName {
    /// Dates, times, counters, session ids
    Volatile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WithinName {
    /// The language, as detected
    Language,
    /// The site of the URL
    Site,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SiteName {
    /// The host without its first label, if it has more than one dot
    Paper,
    /// The registrable domain, after the public suffix list
    Registrable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MatchingName {
    /// With all pages
    Full,
    /// In one pass, with the pages before it that were no duplicates
    Incremental,
    /// The same, starting from --seeds
    Seeded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GuessName {
    /// The first above the threshold
    First,
    /// The most similar
    Best,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClusterName {
    /// Every dropped page is a verified near-duplicate of the kept page it names
    Star,
    /// Everything reachable over verified pairs is one group
    Components,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConflictName {
    /// That of the most similar page; of equally similar ones the highest
    Nearest,
    /// The highest
    Highest,
    /// The lowest
    Lowest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeName {
    /// All of its text
    Page,
    /// The blocks that read like prose; all of it where there are too few
    Core,
    /// What a reader view would show; slow
    Main,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NotationName {
    /// Up to 16 hexadecimal digits
    Hex,
    /// Numbers from 0 to 2^64 - 1; negative ones stand for their bits
    Decimal,
}

pub(crate) fn notation(name: NotationName) -> Notation {
    match name {
        NotationName::Hex => Notation::Hex,
        NotationName::Decimal => Notation::Decimal,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IdKindName {
    /// Whole numbers, a few bytes each
    Number,
    /// Anything
    Text,
}

pub(crate) fn id_kind_of(name: IdKindName) -> IdKind {
    match name {
        IdKindName::Number => IdKind::Number,
        IdKindName::Text => IdKind::Text,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CodecName {
    /// Eight bytes a fingerprint
    Raw,
    /// The code of Manku et al. (2007)
    Huffman,
    /// Smallest, and as fast as raw
    EliasFano,
}

pub(crate) fn codec(name: CodecName) -> TableCodec {
    match name {
        CodecName::Raw => TableCodec::Raw,
        CodecName::Huffman => TableCodec::Huffman,
        CodecName::EliasFano => TableCodec::EliasFano,
    }
}
