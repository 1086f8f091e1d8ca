//! What makes two pages near-duplicates: the one place where a pair is decided.
//!
//! In: what was found about two pages ([`Evidence`]), or a pair that a looser decision of the same kind accepted.
//! Out: a [`Verdict`]. `dedup` decides with it, `recluster` and `evaluate` decide again at other thresholds.

use crate::page::ScoredPair;

/// What became of a compared pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Near-duplicates.
    Accepted,
    /// Not, but close: worth a look in an audit.
    NearMiss,
    /// Not.
    Rejected,
}

/// Words from which on a story is long enough for what its site puts into every page not to decide.
pub const SHORT_STORY_WORDS: u32 = 100;
/// How far below the threshold a rejected pair is still reported, as a share of the threshold.
pub const NEAR_MISS_SHARE: f64 = 2.0 / 7.0;
/// How many equal bits too few of a projection.
pub const NEAR_MISS_BITS: u32 = 12;
/// How many differing bits too many of a fingerprint.
pub const NEAR_MISS_DISTANCE: u32 = 2;

/// What makes two pages near-duplicates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// The exact similarity, at or above; above, if `strictly`.
    Similarity {
        /// The threshold.
        threshold: f64,
        /// Whether the threshold itself is not enough.
        strictly: bool,
    },
    /// Equal supershingles, at least.
    Agreement {
        /// How many.
        agree: u32,
    },
    /// Equal bits, at least.
    EqualBits {
        /// How many.
        least: u32,
    },
    /// Equal supershingles and equal bits.
    Both {
        /// How many supershingles.
        agree: u32,
        /// How many bits.
        least: u32,
    },
    /// Equal bits between sites, both within a site.
    BySite {
        /// How many supershingles within a site.
        agree: u32,
        /// How many bits within a site.
        same: u32,
        /// How many bits between sites.
        other: u32,
    },
    /// The exact similarity of stories, at or above a threshold that depends on whether they are on one site: there
    /// pages have more in common than their story. Of pages whose frame is not known, and of plain text, another one.
    Stories {
        /// The threshold where either page is not a story without its frame.
        text: f64,
        /// The threshold within a site.
        within: f64,
        /// The threshold between sites.
        between: f64,
        /// The threshold where one of them has fewer than [`SHORT_STORY_WORDS`].
        short: f64,
    },
    /// Set bits of a Bloom filter that another has too, as a share of them, at or above.
    CommonBits {
        /// The threshold.
        threshold: f64,
    },
    /// Differing bits, at most.
    Distance {
        /// How many.
        radius: u32,
    },
}

/// What was found about two pages.
#[derive(Debug, Clone, Copy)]
pub struct Evidence {
    /// Exact similarity.
    pub similarity: f64,
    /// Equal supershingles.
    pub agreeing: u32,
    /// Equal bits.
    pub equal_bits: u32,
    /// Differing bits.
    pub differing_bits: u32,
    /// The share of one filter's bits that the other has too.
    pub common_bits: f64,
    /// Whether both are on the same site.
    pub same_site: bool,
    /// Whether both are on a site.
    pub have_sites: bool,
    /// Whether one of them has fewer than [`SHORT_STORY_WORDS`].
    pub is_short: bool,
}

impl Decision {
    /// The verdict on two pages.
    #[must_use]
    pub fn verdict(self, found: &Evidence) -> Verdict {
        let both = |agree: u32, least: u32| {
            if found.agreeing >= agree { at_least(found.equal_bits, least, NEAR_MISS_BITS) } else { Verdict::Rejected }
        };
        let value = if matches!(self, Decision::CommonBits { .. }) { found.common_bits } else { found.similarity };
        let at_or_above = |threshold: f64| {
            if self.reaches(value, threshold) {
                Verdict::Accepted
            } else if value >= threshold * (1.0 - NEAR_MISS_SHARE) {
                Verdict::NearMiss
            } else {
                Verdict::Rejected
            }
        };
        match self {
            Decision::Similarity { threshold, .. } | Decision::CommonBits { threshold } => at_or_above(threshold),
            Decision::Stories { .. } => {
                let same_site = found.have_sites.then_some(found.same_site);
                at_or_above(self.story_threshold(same_site, found.is_short))
            }
            Decision::Agreement { agree } => at_least(found.agreeing, agree, 1),
            Decision::EqualBits { least } => at_least(found.equal_bits, least, NEAR_MISS_BITS),
            Decision::Both { agree, least } => both(agree, least),
            Decision::BySite { agree, same, .. } if found.same_site => both(agree, same),
            Decision::BySite { other, .. } => at_least(found.equal_bits, other, NEAR_MISS_BITS),
            Decision::Distance { radius } => match found.differing_bits {
                differing if differing <= radius => Verdict::Accepted,
                differing if differing <= radius + NEAR_MISS_DISTANCE => Verdict::NearMiss,
                _ => Verdict::Rejected,
            },
        }
    }

    /// The similarity from which two stories are near-duplicates. `same_site` says whether they are on one site, if both
    /// are compared without their frames.
    #[must_use]
    pub fn story_threshold(self, same_site: Option<bool>, is_short: bool) -> f64 {
        match (self, same_site) {
            (Decision::Stories { text, .. }, None) => text,
            (Decision::Stories { within, between, short, .. }, Some(is_same)) => {
                let least = if is_same { within } else { between };
                if is_short { least.max(short) } else { least }
            }
            _ => self.least_nearness(),
        }
    }

    /// What a pair must reach, as in `≥ 372`; where it depends on the pages, what these two must.
    #[must_use]
    pub fn needed(self, same_site: Option<bool>, is_short: bool) -> String {
        match self {
            Decision::Similarity { threshold, strictly: true } => format!("> {threshold}"),
            Decision::Similarity { threshold, .. } | Decision::CommonBits { threshold } => format!("≥ {threshold}"),
            Decision::Stories { .. } => format!("≥ {}", self.story_threshold(same_site, is_short)),
            Decision::Agreement { agree } => format!("≥ {agree}"),
            Decision::EqualBits { least } => format!("≥ {least}"),
            Decision::Both { agree, least } => format!("≥ {least}, and {agree} supershingles"),
            Decision::BySite { agree, same, other } => {
                format!("≥ {other}; same site ≥ {same}, and {agree} supershingles")
            }
            Decision::Distance { radius } => format!("≤ {radius}"),
        }
    }

    /// Whether a similarity reaches a threshold: spot signatures must be above it.
    #[must_use]
    pub fn reaches(self, similarity: f64, threshold: f64) -> bool {
        let strictly = matches!(self, Decision::Similarity { strictly: true, .. });
        similarity > threshold || (!strictly && similarity >= threshold)
    }

    /// How near a pair is, in what decides; larger is nearer. Pairs on one site, which have a threshold of their own
    /// where it depends on the site, are shifted so that one threshold serves for all.
    #[must_use]
    pub fn nearness(self, pair: &ScoredPair, same_site: bool) -> f64 {
        match self {
            // As if all thresholds moved together.
            Decision::Stories { text, .. } => {
                pair.similarity * text / self.story_threshold(pair.same_site, pair.is_short)
            }
            Decision::Similarity { .. } => pair.similarity,
            Decision::Agreement { .. }
            | Decision::EqualBits { .. }
            | Decision::Both { .. }
            | Decision::CommonBits { .. } => pair.score,
            Decision::BySite { same, other, .. } if same_site => pair.score + f64::from(other) - f64::from(same),
            Decision::BySite { .. } => pair.score,
            Decision::Distance { .. } => -pair.score,
        }
    }

    /// The nearness from which a pair is accepted.
    #[must_use]
    pub fn least_nearness(self) -> f64 {
        match self {
            Decision::Similarity { threshold, .. } | Decision::CommonBits { threshold } => threshold,
            Decision::Stories { text, .. } => text,
            Decision::Agreement { agree } => f64::from(agree),
            Decision::EqualBits { least } | Decision::Both { least, .. } => f64::from(least),
            Decision::BySite { other, .. } => f64::from(other),
            Decision::Distance { radius } => -f64::from(radius),
        }
    }

    /// Whether a pair of this nearness, which a looser decision of the same kind accepted, is accepted by this one.
    #[must_use]
    pub fn still_accepts(self, nearness: f64) -> bool {
        self.reaches(nearness, self.least_nearness())
    }

    /// Whether a larger score is a nearer pair.
    #[must_use]
    pub fn larger_is_nearer(self) -> bool {
        !matches!(self, Decision::Distance { .. })
    }
}

/// The verdict on a count of which there should be at least `least`.
fn at_least(count: u32, least: u32, margin: u32) -> Verdict {
    if count >= least {
        Verdict::Accepted
    } else if count + margin >= least {
        Verdict::NearMiss
    } else {
        Verdict::Rejected
    }
}

/// The least similarity that a sweep looks at.
const LOOSEST_SIMILARITY: f64 = 0.1;
/// The most differing bits of a fingerprint that a sweep looks at.
const LOOSEST_DISTANCE: f64 = 12.0;
/// Bits of a projection (Henzinger 2006, §3.3).
pub(crate) const PAPER_BITS: u32 = 384;
/// The most differing bits of those that a sweep looks at.
const LOOSEST_DIFFERING: u32 = 54;

/// What a method's threshold counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A similarity in 0..1.
    Similarity,
    /// Equal supershingles.
    Supershingles {
        /// Of how many.
        of: u32,
    },
    /// Equal bits of a projection.
    EqualBits {
        /// Of how many.
        of: u32,
    },
    /// Differing bits of a fingerprint.
    DifferingBits,
}

impl Unit {
    /// Its name, for people and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Unit::Similarity => "similarity",
            Unit::Supershingles { .. } => "equal supershingles",
            Unit::EqualBits { .. } => "equal bits",
            Unit::DifferingBits => "differing bits",
        }
    }

    /// A value in this unit as one that grows with nearness, and back.
    #[must_use]
    pub fn nearness(self, value: f64) -> f64 {
        if self == Unit::DifferingBits { -value } else { value }
    }

    /// The looser of two thresholds.
    #[must_use]
    pub(crate) fn looser(self, one: f64, other: f64) -> f64 {
        if self.nearness(one) <= self.nearness(other) { one } else { other }
    }

    /// The loosest threshold that makes sense.
    #[must_use]
    pub(crate) fn loosest(self) -> f64 {
        match self {
            Unit::Similarity => LOOSEST_SIMILARITY,
            Unit::Supershingles { .. } => 1.0,
            Unit::EqualBits { of } => f64::from(of - of * LOOSEST_DIFFERING / PAPER_BITS),
            Unit::DifferingBits => LOOSEST_DISTANCE,
        }
    }

    /// The thresholds of a sweep, from the looser of `threshold` and the loosest that makes sense to the strictest.
    #[must_use]
    pub(crate) fn sweep(self, threshold: f64) -> Vec<f64> {
        let from = self.looser(threshold, self.loosest());
        let steps = |least: f64, step: f64| {
            let to = self.nearness(self.nearest());
            (0u32..).map(move |count| least + f64::from(count) * step).take_while(move |value| *value <= to)
        };
        match self {
            Unit::Similarity => (2..=20).map(|step| f64::from(step) / 20.0).collect(),
            Unit::Supershingles { .. } => steps(from, 1.0).collect(),
            Unit::EqualBits { .. } => steps(from, 3.0).collect(),
            Unit::DifferingBits => steps(-from, 1.0).map(|value| 0.0 - value).collect(),
        }
    }

    /// The value of pages that could not be nearer.
    #[must_use]
    pub fn nearest(self) -> f64 {
        match self {
            Unit::Similarity => 1.0,
            Unit::Supershingles { of } | Unit::EqualBits { of } => f64::from(of),
            Unit::DifferingBits => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageId;

    const DECISIONS: [Decision; 9] = [
        Decision::Similarity { threshold: 0.5, strictly: false },
        Decision::Similarity { threshold: 0.5, strictly: true },
        Decision::Agreement { agree: 3 },
        Decision::EqualBits { least: 20 },
        Decision::Both { agree: 3, least: 20 },
        Decision::BySite { agree: 3, same: 17, other: 20 },
        Decision::Distance { radius: 3 },
        Decision::Stories { text: 0.7, within: 0.5, between: 0.4, short: 0.6 },
        Decision::CommonBits { threshold: 0.5 },
    ];

    #[test]
    fn stories_on_one_site_must_have_more_in_common() {
        let decision = Decision::Stories { text: 0.7, within: 0.5, between: 0.4, short: 0.6 };
        let verdict = |similarity: f64, have_sites: bool, same_site: bool, is_short: bool| {
            let found = Evidence { similarity, have_sites, same_site, is_short, ..NOTHING };
            decision.verdict(&found)
        };
        for (least, have_sites, same_site, is_short) in [
            (0.7, false, false, false),
            (0.7, false, false, true),
            (0.5, true, true, false),
            (0.4, true, false, false),
            (0.6, true, true, true),
            (0.6, true, false, true),
        ] {
            assert_eq!(verdict(least, have_sites, same_site, is_short), Verdict::Accepted);
            assert_eq!(verdict(least - 0.01, have_sites, same_site, is_short), Verdict::NearMiss);
            assert_eq!(verdict(least * 0.7, have_sites, same_site, is_short), Verdict::Rejected);
        }
    }

    const NOTHING: Evidence = Evidence {
        similarity: 0.0,
        agreeing: 6,
        equal_bits: 0,
        differing_bits: 64,
        common_bits: 0.0,
        same_site: false,
        have_sites: false,
        is_short: false,
    };

    /// A decision made again from a stored pair is the decision that was made on the evidence.
    #[test]
    fn a_stored_pair_is_decided_as_its_evidence_was() {
        let first = PageId::new(0);
        for decision in DECISIONS {
            for step in 0..=32u32 {
                for same_site in [false, true] {
                    let similarity = f64::from(step) / 32.0;
                    let (equal_bits, differing_bits) = (step, 32 - step);
                    // Whatever else a pair needs it has: only the threshold moves.
                    let agreeing = if matches!(decision, Decision::Agreement { .. }) { step } else { 6 };
                    let (have_sites, is_short) = (step % 3 > 0, step % 2 == 0);
                    let common_bits = similarity;
                    let found = Evidence { similarity, agreeing, equal_bits, differing_bits, common_bits, ..NOTHING };
                    let evidence = Evidence { same_site, have_sites, is_short, ..found };
                    let score = match decision {
                        Decision::Similarity { .. } | Decision::Stories { .. } | Decision::CommonBits { .. } => {
                            similarity
                        }
                        Decision::Agreement { .. } => f64::from(agreeing),
                        Decision::Distance { .. } => f64::from(differing_bits),
                        _ => f64::from(equal_bits),
                    };
                    let pair = ScoredPair {
                        left: first,
                        right: first,
                        similarity,
                        left_in_right: similarity,
                        right_in_left: similarity,
                        score,
                        estimate: similarity,
                        page_similarity: None,
                        same_site: have_sites.then_some(same_site),
                        is_short,
                    };
                    let again = decision.still_accepts(decision.nearness(&pair, same_site));
                    assert_eq!(again, decision.verdict(&evidence) == Verdict::Accepted, "{decision:?} {evidence:?}");
                }
            }
        }
    }

    #[test]
    fn near_misses_lie_just_outside() {
        let none = NOTHING;
        let at = |decision: Decision, found: Evidence| decision.verdict(&found);
        assert_eq!(at(DECISIONS[0], Evidence { similarity: 0.36, ..none }), Verdict::NearMiss);
        assert_eq!(at(DECISIONS[0], Evidence { similarity: 0.35, ..none }), Verdict::Rejected);
        assert_eq!(at(DECISIONS[3], Evidence { equal_bits: 8, ..none }), Verdict::NearMiss);
        assert_eq!(at(DECISIONS[3], Evidence { equal_bits: 7, ..none }), Verdict::Rejected);
        assert_eq!(at(DECISIONS[4], Evidence { equal_bits: 19, agreeing: 2, ..none }), Verdict::Rejected);
        assert_eq!(at(DECISIONS[6], Evidence { differing_bits: 5, ..none }), Verdict::NearMiss);
        assert_eq!(at(DECISIONS[6], Evidence { differing_bits: 6, ..none }), Verdict::Rejected);
    }
}
