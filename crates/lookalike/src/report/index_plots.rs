//! How the fingerprints of an index are spread, as drawings (Manku et al. 2007, §4.2).

use crate::index::stats::IndexStats;
use crate::report::plots::{columns, standalone};

/// The two plots of §4.2, as SVG files: a name and the text of each.
#[must_use]
pub fn index_plots(stats: &IndexStats) -> [(&'static str, String); 2] {
    let leading = "Leading 1-bits of the XOR of neighbouring fingerprints (Manku et al. 2007, figure 2a)";
    let parts = "Different fingerprints in each 1/128 of the space (Manku et al. 2007, figure 2b)";
    let first: Vec<u64> = stats.leading_bits.iter().rev().copied().collect();
    [
        (
            "leading-bits.svg",
            standalone(leading, &columns(leading, "place of the leading 1-bit, from the highest", &first, 8)),
        ),
        ("buckets.svg", standalone(parts, &columns(parts, "1/128 of the space", &stats.parts, 16))),
    ]
}
