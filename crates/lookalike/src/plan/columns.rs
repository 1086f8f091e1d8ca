//! What the first reading leaves of a page, in columns of numbers.

use crate::plan::{Plan, Search};

/// The columns of numbers that every page has after the first reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ColumnLayout {
    /// Band keys, the first columns.
    pub bands: usize,
    /// Band keys that only stories have; 0 for all others.
    pub story_bands: usize,
    /// Words of bits, the columns behind them.
    pub bits: usize,
    /// Whether the site follows.
    pub site: bool,
    /// Whether the group that is searched within follows.
    pub group: bool,
}

impl ColumnLayout {
    /// Columns in all.
    #[must_use]
    pub fn columns(self) -> usize {
        self.bands + self.story_bands + self.bits + usize::from(self.site) + usize::from(self.group)
    }

    /// The first column of bits.
    #[must_use]
    pub fn first_bits(self) -> usize {
        self.bands + self.story_bands
    }

    /// The column of the site.
    #[must_use]
    pub fn site_column(self) -> Option<usize> {
        self.site.then_some(self.first_bits() + self.bits)
    }

    /// The column of the group.
    #[must_use]
    pub fn group_column(self) -> Option<usize> {
        self.group.then(|| self.columns() - 1)
    }
}

impl Plan {
    /// The columns that a page has after the first reading.
    #[must_use]
    pub(crate) fn columns(&self) -> ColumnLayout {
        let bands = self.sketch.bands().map_or(0, |bands| bands.bands);
        let bits = self.sketch.bit_words() / 2;
        let (bands, bits) = match self.search {
            Search::Bands => (bands, 0),
            Search::Bits(_) => (0, bits),
            Search::BandsAndBits(_) => (bands, bits),
            Search::Features { .. } => (0, 0),
        };
        let story_bands = if bands > 0 { self.sketch.story_bands.map_or(0, |bands| bands.bands) } else { 0 };
        ColumnLayout { bands, story_bands, bits, site: self.sketch.site, group: self.pairs.within.is_some() }
    }
}
