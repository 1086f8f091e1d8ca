//! What stands for a page while candidates are looked for.

use crate::sketch::bloom::FilterPlan;
use crate::sketch::minhash::MinHasher;
use crate::sketch::projection::Projection;
use crate::sketch::supershingle::Bands;

/// What stands for a page: 32-bit words, these parts one after the other.
#[derive(Debug, Clone, Default)]
pub struct SketchPlan {
    /// Min-values of the features, and how they are grouped.
    pub min_values: Option<(MinHasher, Bands)>,
    /// How those of stories are grouped once more, to find what is less alike.
    pub story_bands: Option<Bands>,
    /// A projection of the tokens, or of the features where those are longer than a token.
    pub projection: Option<Projection>,
    /// A SimHash fingerprint of the features, of so many bits.
    pub simhash: Option<u32>,
    /// A Bloom filter of the features.
    pub filter: Option<FilterPlan>,
    /// The site.
    pub site: bool,
    /// The number of words.
    pub length: bool,
}

impl SketchPlan {
    /// Bands, if there are min-values.
    #[must_use]
    pub fn bands(&self) -> Option<Bands> {
        self.min_values.as_ref().map(|(_, bands)| *bands)
    }

    /// Min-values.
    fn functions(&self) -> usize {
        self.min_values.as_ref().map_or(0, |(hasher, _)| hasher.functions())
    }

    /// Bits that are compared place by place, as a projection or a fingerprint.
    #[must_use]
    pub fn compared_bits(&self) -> u32 {
        self.projection.as_ref().map_or(self.simhash.unwrap_or(0), Projection::bits)
    }

    /// 32-bit words of those.
    #[must_use]
    pub fn bit_words(&self) -> usize {
        // Two of them make a column.
        let of_fingerprint = || self.simhash.map_or(0, |bits| 2 * bits.div_ceil(64) as usize);
        self.projection.as_ref().map_or_else(of_fingerprint, Projection::words)
    }

    /// 32-bit words in all.
    #[must_use]
    pub fn words(&self) -> usize {
        let min_values = self.functions();
        let filter = self.filter.map_or(0, FilterPlan::words);
        min_values + self.bit_words() + filter + if self.site { 2 } else { 0 } + usize::from(self.length)
    }

    /// The parts of a sketch.
    #[must_use]
    pub fn parts<'a>(&self, sketch: &'a [u32]) -> SketchParts<'a> {
        let mut rest = sketch;
        let mut take = |words: usize| {
            let (part, left) = rest.split_at(words.min(rest.len()));
            rest = left;
            part
        };
        SketchParts {
            min_values: take(self.functions()),
            bits: take(self.bit_words()),
            filter: take(self.filter.map_or(0, FilterPlan::words)),
            site: take(if self.site { 2 } else { 0 }),
            words: take(usize::from(self.length)),
        }
    }
}

/// The parts of a sketch; empty where there is none.
#[derive(Debug, Clone, Copy)]
pub struct SketchParts<'a> {
    /// Min-values.
    pub min_values: &'a [u32],
    /// Projection or fingerprint.
    pub bits: &'a [u32],
    /// Bloom filter.
    pub filter: &'a [u32],
    /// Hash of the site, 0 where there is none.
    pub site: &'a [u32],
    /// The number of words.
    pub words: &'a [u32],
}
