//! The chance that a pair is found and accepted, by its similarity.

use crate::plan::{Decision, Plan};
use crate::sketch::simhash::distance_of_cosine;

/// The chance that a pair is found and accepted, by its similarity.
pub struct Curve<'a> {
    /// The chance.
    pub chance: Box<dyn Fn(f64) -> f64 + 'a>,
    /// What it says, in a sentence.
    pub note: String,
}

impl Plan {
    /// The chance that a pair is found and accepted, where that is a matter of chance.
    #[must_use]
    pub fn curve(&self, threshold: f64) -> Option<Curve<'_>> {
        let bands = match (self.decision, self.sketch.story_bands) {
            // Bands of their own find what has less in common.
            (Decision::Stories { text, .. }, Some(bands)) if threshold < text => Some(bands),
            _ => self.sketch.bands(),
        };
        match (self.decision, bands) {
            (Decision::Similarity { .. } | Decision::Stories { .. }, Some(bands)) => Some(Curve {
                chance: Box::new(move |s| bands.probability(s, 1)),
                note: format!(
                    "{} bands of {} min-values. Of the pairs exactly at the threshold, {:.2} % are expected to be found; of those above it, more. Every pair that is found is then compared exactly.",
                    bands.bands,
                    bands.rows,
                    bands.probability(threshold, 1) * 100.0
                ),
            }),
            (Decision::Agreement { agree } | Decision::Both { agree, .. }, Some(bands)) => Some(Curve {
                chance: Box::new(move |s| bands.probability(s, agree)),
                note: format!(
                    "{} supershingles of {} min-values; the curve is the chance that a pair agrees in at least {agree}.",
                    bands.bands, bands.rows
                ),
            }),
            (Decision::EqualBits { least }, _) => {
                let bits = self.sketch.compared_bits();
                Some(bit_curve(bits, bits - least))
            }
            (Decision::Distance { radius }, _) => Some(bit_curve(64, radius)),
            (Decision::BySite { .. } | Decision::CommonBits { .. }, _) | (_, None) => None,
        }
    }
}

fn bit_curve<'a>(bits: u32, most: u32) -> Curve<'a> {
    Curve {
        chance: Box::new(move |cosine| at_most(bits, most, distance_of_cosine(cosine, bits) / f64::from(bits))),
        note: format!(
            "The chance that fingerprints of {bits} bits differ in at most {most}, by the cosine of the pages."
        ),
    }
}

/// The chance of at most `most` successes in `draws` draws.
fn at_most(draws: u32, most: u32, chance: f64) -> f64 {
    if chance <= 0.0 {
        return 1.0;
    }
    // Terms in logarithms: the powers are far too small.
    let mut choose = 0.0f64;
    let mut sum = 0.0;
    for successes in 0..=most.min(draws) {
        if successes > 0 {
            choose += (f64::from(draws - successes + 1) / f64::from(successes)).ln();
        }
        sum += (choose + f64::from(successes) * chance.ln() + f64::from(draws - successes) * (1.0 - chance).ln()).exp();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_falls_with_the_angle() {
        assert!((at_most(4, 1, 0.5) - 5.0 / 16.0).abs() < 1e-12);
        assert_eq!(at_most(64, 3, 0.0), 1.0);
        let curve = bit_curve(64, 3);
        assert!((curve.chance)(0.999) > 0.9 && (curve.chance)(0.9) < 0.05);
    }
}
