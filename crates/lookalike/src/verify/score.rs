//! Two pages' features and sketches → what they have in common, and what the method says to it.

use crate::kernel::shared_at_least;
use crate::plan::decision::{Evidence, SHORT_STORY_WORDS};
use crate::plan::{Decision, Measure, Plan, SketchParts, Verdict};
use crate::sketch::PageSketch;
use crate::sketch::bloom::SharedBits;
use crate::sketch::minhash::agreement;
use crate::sketch::projection::distance;
use crate::sketch::simhash::cosine_of_distance;
use crate::verify::jaccard::{jaccard, share, shared};

/// What was found about two pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Exact similarity, 0..1.
    pub similarity: f64,
    /// Share of the left page's features that the right one has too.
    pub left_in_right: f64,
    /// Share of the right page's features that the left one has too.
    pub right_in_left: f64,
    /// What the method decides by, in its own unit.
    pub score: f64,
    /// What the sketches alone say, 0..1.
    pub estimate: f64,
    /// Equal bands or supershingles, where there are any.
    pub agreeing: u32,
    /// Whether both are on the same site, where that decides.
    pub same_site: Option<bool>,
    /// Whether one of them is short, where that decides.
    pub is_short: bool,
    /// The decision.
    pub verdict: Verdict,
}

/// Compares two pages.
#[must_use]
pub fn score(plan: &Plan, left: PageSketch<'_>, right: PageSketch<'_>) -> Score {
    if left.features.is_empty() || right.features.is_empty() {
        // A page without features is similar to nothing, whatever its sketch looks like.
        let (similarity, score) = (0.0, if plan.decision.larger_is_nearer() { 0.0 } else { 64.0 });
        let verdict = Verdict::Rejected;
        return Score {
            similarity,
            left_in_right: 0.0,
            right_in_left: 0.0,
            score,
            estimate: 0.0,
            agreeing: 0,
            same_site: None,
            is_short: false,
            verdict,
        };
    }
    score_of(plan, left, right, Overlap::new(plan.measure, left, right))
}

/// The same, and nothing where the pair is rejected: most candidates are, and few of their features are looked at.
#[must_use]
pub fn score_if_close(plan: &Plan, left: PageSketch<'_>, right: PageSketch<'_>) -> Option<Score> {
    let (l, r) = (left.features.len(), right.features.len());
    if l == 0 || r == 0 || !plan.can_be_close(l as u64, r as u64) {
        return None;
    }
    let sites = SitesAndLengths::new(&plan.sketch.parts(left.sketch), &plan.sketch.parts(right.sketch));
    let overlap = match plan.least_close_similarity(sites.have_sites.then_some(sites.same_site), sites.is_short) {
        Some(least) => {
            let both = shared_at_least(left.features, right.features, least_shared(least, l, r))?;
            Overlap::of_shared(plan.measure, both, l, r)
        }
        None => Overlap::new(plan.measure, left, right),
    };
    Some(score_of(plan, left, right, overlap)).filter(|score| score.verdict != Verdict::Rejected)
}

/// Features that two sets must share, at the least, to have this Jaccard similarity; one fewer, as numbers are rounded.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of sizes is a size
fn least_shared(similarity: f64, left: usize, right: usize) -> usize {
    let least = similarity * (left + right) as f64 / (1.0 + similarity);
    (least as usize).saturating_sub(1)
}

/// What is known of two pages beside their features.
struct SitesAndLengths {
    have_sites: bool,
    same_site: bool,
    is_short: bool,
}

impl SitesAndLengths {
    fn new(left: &SketchParts<'_>, right: &SketchParts<'_>) -> SitesAndLengths {
        let has_site = |site: &[u32]| site.iter().any(|&half| half != 0);
        let have_sites = has_site(left.site) && has_site(right.site);
        let same_site = have_sites && left.site == right.site;
        let is_short = left.words.iter().chain(right.words).any(|&words| words < SHORT_STORY_WORDS);
        SitesAndLengths { have_sites, same_site, is_short }
    }
}

/// The score of two pages that have features, of which so many are shared.
fn score_of(plan: &Plan, left: PageSketch<'_>, right: PageSketch<'_>, overlap: Overlap) -> Score {
    let (l, r) = (plan.sketch.parts(left.sketch), plan.sketch.parts(right.sketch));
    let agreeing = plan.sketch.bands().map_or(0, |bands| bands.agreeing(l.min_values, r.min_values));
    let differing = distance(l.bits, r.bits);
    let all_bits = plan.sketch.compared_bits();
    let equal = all_bits - differing.min(all_bits);
    let by_bits = cosine_of_distance(differing, all_bits).max(0.0);

    let SitesAndLengths { have_sites, same_site, is_short } = SitesAndLengths::new(&l, &r);
    let (similarity, equal_bits, differing_bits) = (overlap.similarity, equal, differing);
    let shared_bits = plan.sketch.filter.map(|_| SharedBits::new(l.filter, r.filter));
    let common_bits = shared_bits.map_or(0.0, |bits| bits.left_ratio().max(bits.right_ratio()));
    let evidence =
        Evidence { similarity, agreeing, equal_bits, differing_bits, common_bits, same_site, have_sites, is_short };
    let verdict = plan.decision.verdict(&evidence);
    let (score, estimate) = match plan.decision {
        Decision::Similarity { .. } | Decision::Stories { .. } | Decision::CommonBits { .. } => {
            if let Some((filter, bits)) = plan.sketch.filter.zip(shared_bits) {
                let fewer = filter.elements(bits.left.min(bits.right)).max(1.0);
                let estimate = (filter.shared_elements(bits) / fewer).min(1.0);
                (common_bits, estimate)
            } else if l.min_values.is_empty() {
                (similarity, similarity)
            } else {
                (similarity, agreement(l.min_values, r.min_values))
            }
        }
        Decision::Agreement { .. } => (f64::from(agreeing), agreement(l.min_values, r.min_values)),
        Decision::EqualBits { .. } | Decision::Both { .. } | Decision::BySite { .. } => (f64::from(equal), by_bits),
        Decision::Distance { .. } => (f64::from(differing), by_bits),
    };
    Score {
        similarity: overlap.similarity,
        left_in_right: overlap.left_in_right,
        right_in_left: overlap.right_in_left,
        score,
        estimate,
        agreeing,
        same_site: have_sites.then_some(same_site),
        is_short,
        verdict,
    }
}

/// What two sets of features have in common.
struct Overlap {
    similarity: f64,
    left_in_right: f64,
    right_in_left: f64,
}

impl Overlap {
    /// Of sets without weights, by how many features both have and how many each has.
    fn of_shared(measure: Measure, both: usize, left: usize, right: usize) -> Overlap {
        let similarity = match measure {
            Measure::Jaccard => jaccard(both, left, right),
            Measure::Coverage => share(both, left.min(right)),
            Measure::Cosine if both == 0 => 0.0,
            Measure::Cosine => both as f64 / (left as f64 * right as f64).sqrt(),
        };
        Overlap { similarity, left_in_right: share(both, left), right_in_left: share(both, right) }
    }

    fn new(measure: Measure, left: PageSketch<'_>, right: PageSketch<'_>) -> Overlap {
        if left.weights.is_empty() && right.weights.is_empty() {
            let both = shared(left.features, right.features);
            return Overlap::of_shared(measure, both, left.features.len(), right.features.len());
        }
        let sums = WeightSums::new(left, right);
        let part = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let similarity = match measure {
            Measure::Jaccard => part(sums.both, sums.left + sums.right - sums.both),
            Measure::Coverage => part(sums.both, sums.left.min(sums.right)),
            Measure::Cosine => part(sums.product, (sums.left_squares * sums.right_squares).sqrt()).min(1.0),
        };
        Overlap { similarity, left_in_right: part(sums.both, sums.left), right_in_left: part(sums.both, sums.right) }
    }
}

#[derive(Default)]
struct WeightSums {
    left: f64,
    right: f64,
    left_squares: f64,
    right_squares: f64,
    /// Of the smaller weight of each shared feature.
    both: f64,
    product: f64,
}

impl WeightSums {
    fn new(left: PageSketch<'_>, right: PageSketch<'_>) -> WeightSums {
        let weight = |page: &PageSketch<'_>, at: usize| f64::from(page.weight(at));
        let mut sums = WeightSums::default();
        for at in 0..left.features.len() {
            sums.left += weight(&left, at);
            sums.left_squares += weight(&left, at).powi(2);
        }
        for at in 0..right.features.len() {
            sums.right += weight(&right, at);
            sums.right_squares += weight(&right, at).powi(2);
        }
        let (mut i, mut j) = (0, 0);
        while i < left.features.len() && j < right.features.len() {
            match left.features[i].cmp(&right.features[j]) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => {
                    sums.both += weight(&left, i).min(weight(&right, j));
                    sums.product += weight(&left, i) * weight(&right, j);
                    i += 1;
                    j += 1;
                }
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Method};
    use crate::method::Spotsigs;
    use crate::text::term::term_token;

    fn page<'a>(features: &'a [u64], weights: &'a [u32]) -> PageSketch<'a> {
        PageSketch { features, weights, sketch: &[] }
    }

    #[test]
    fn weighted_measures_equal_their_definitions() {
        let (left, right) = (page(&[1, 2, 3], &[2, 1, 4]), page(&[2, 3, 9], &[3, 1, 5]));
        let jaccard = Overlap::new(Measure::Jaccard, left, right);
        assert!((jaccard.similarity - 2.0 / (7.0 + 9.0 - 2.0)).abs() < 1e-12);
        assert!((jaccard.left_in_right - 2.0 / 7.0).abs() < 1e-12);
        let cosine = Overlap::new(Measure::Cosine, left, right);
        assert!((cosine.similarity - (3.0 + 4.0) / (21.0f64 * 35.0).sqrt()).abs() < 1e-12);
        let coverage = Overlap::new(Measure::Coverage, left, right);
        assert!((coverage.similarity - 2.0 / 7.0).abs() < 1e-12);
    }

    #[test]
    fn the_example_of_the_spot_signature_paper() {
        // Figures 4 and 7: the signatures of pages A, B and C.
        let page_of = |signatures: &[&str]| {
            let mut set: Vec<u64> = signatures.iter().map(|text| term_token(text.as_bytes())).collect();
            set.sort_unstable();
            set
        };
        let a = page_of(&["is(3) pants", "is(2) here", "the(4) already", "the(4) knowing", "the(4) to"]);
        let b = page_of(&["is(3) year", "is(3) this", "is(2) this", "is(2) expected"]);
        let c = page_of(&["is(3) pants", "is(2) here", "the(4) passes", "the(4) knowing"]);
        let similarity = |left: &[u64], right: &[u64], threshold: f64| {
            let config = Config::new(Method::from(Spotsigs::default()).with_threshold(threshold));
            let found = score(&config.plan(), page(left, &[]), page(right, &[]));
            (found.similarity, found.verdict == Verdict::Accepted)
        };
        assert_eq!(similarity(&a, &c, 0.5), (0.5, false), "at the threshold is not above it");
        assert_eq!(similarity(&a, &c, 0.49), (0.5, true));
        assert_eq!((similarity(&a, &b, 0.1).0, similarity(&b, &c, 0.1).0), (0.0, 0.0));
    }

    #[test]
    fn what_is_not_close_is_what_is_rejected() {
        let sets = |shared: u64, own: u64| {
            let of = |own: std::ops::Range<u64>| (0..shared).chain(own).map(|n| n << 40).collect::<Vec<u64>>();
            (of(1000..1000 + own), of(2000..2000 + own / 2))
        };
        let shingles = Config::new(Method::named("shingle").unwrap());
        for config in [Config::default(), shingles, Config::new(Method::from(Spotsigs::default()))] {
            let plan = config.plan();
            let sketch_of = |words: u32, site: u32| {
                let mut sketch = vec![0; plan.sketch.words()];
                let length = usize::from(plan.sketch.length);
                if plan.sketch.site {
                    let at = sketch.len() - length - 1;
                    sketch[at] = site;
                }
                sketch.iter_mut().rev().take(length).for_each(|last| *last = words);
                sketch
            };
            for (shared, own) in (0..60).flat_map(|shared| (0..60).map(move |own| (shared, own))) {
                let (left, right) = sets(shared, own);
                for (words, other) in [(50, 1), (200, 1), (200, 2), (200, 0)] {
                    let (one, two) = (sketch_of(200, 1), sketch_of(words, other));
                    let left = PageSketch { features: &left, weights: &[], sketch: &one };
                    let right = PageSketch { features: &right, weights: &[], sketch: &two };
                    let all = score(&plan, left, right);
                    let expected = Some(all).filter(|all| all.verdict != Verdict::Rejected);
                    assert_eq!(score_if_close(&plan, left, right), expected, "{shared} and {own}");
                }
            }
        }
    }

    #[test]
    fn weights_of_one_change_nothing() {
        for measure in [Measure::Jaccard, Measure::Cosine, Measure::Coverage] {
            let (a, b) = ([1, 2, 3, 4], [3, 4, 5]);
            let plain = Overlap::new(measure, page(&a, &[]), page(&b, &[]));
            let weighted = Overlap::new(measure, page(&a, &[1; 4]), page(&b, &[1; 3]));
            assert!((plain.similarity - weighted.similarity).abs() < 1e-12);
            assert!((plain.right_in_left - weighted.right_in_left).abs() < 1e-12);
        }
    }

    #[test]
    fn nothing_is_like_nothing() {
        for measure in [Measure::Jaccard, Measure::Cosine, Measure::Coverage] {
            assert_eq!(Overlap::new(measure, page(&[], &[]), page(&[], &[])).similarity, 0.0);
            assert_eq!(Overlap::new(measure, page(&[], &[]), page(&[1], &[1])).similarity, 0.0);
        }
    }
}
