//! Bloom filters of one fixed size, and what the bits of two of them say.
//!
//! In: a page's elements, 64-bit hashes without repetition. Out: `bits` bits, as 32-bit words.
//! Filters that are compared share size, number of functions and seed. The share of one filter's
//! bits that the other has too is the paper's similarity; chance alone makes it large, so the number
//! of shared *elements* is estimated from the bits instead. Jain et al. 2005, §2.

use crate::random::next_random;

/// Size and functions of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterPlan {
    /// Bits of the filter.
    pub bits: u32,
    /// Bits an element sets.
    pub hashes: u32,
    /// Seeds the functions.
    pub seed: u64,
}

/// What two filters have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedBits {
    /// Bits set in the left filter.
    pub left: u32,
    /// Bits set in the right filter.
    pub right: u32,
    /// Bits set in both.
    pub both: u32,
}

impl FilterPlan {
    /// 32-bit words of a filter.
    #[must_use]
    pub fn words(self) -> usize {
        self.bits.div_ceil(32) as usize
    }

    /// Appends the filter of `elements` to `sketch`.
    pub fn filter(self, elements: &[u64], sketch: &mut Vec<u32>) {
        let start = sketch.len();
        sketch.resize(start + self.words(), 0);
        for &element in elements {
            let mut state = element ^ self.seed;
            for _ in 0..self.hashes {
                // The high part of a product maps 64 random bits evenly to 0..bits.
                #[allow(clippy::cast_possible_truncation)] // below `bits`
                let bit = ((u128::from(next_random(&mut state)) * u128::from(self.bits)) >> 64) as usize;
                sketch[start + bit / 32] |= 1 << (bit % 32);
            }
        }
    }

    /// How many elements a filter with `set` bits set is expected to have.
    #[must_use]
    pub fn elements(self, set: u32) -> f64 {
        let bits = f64::from(self.bits);
        // A full filter says nothing but "many"; half a bit short of full gives that a number.
        let empty = (bits - f64::from(set)).max(0.5) / bits;
        -bits / f64::from(self.hashes.max(1)) * empty.ln()
    }

    /// How many elements two filters are expected to share, corrected for chance: the filter of the
    /// union is the OR of the filters, so |A| + |B| − |A ∪ B| can be read off the bits.
    #[must_use]
    pub fn shared_elements(self, bits: SharedBits) -> f64 {
        let union = self.elements(bits.left + bits.right - bits.both);
        (self.elements(bits.left) + self.elements(bits.right) - union).max(0.0)
    }

    /// The share of a filter that is expected to be set by `elements` elements.
    #[must_use]
    pub fn fill(self, elements: f64) -> f64 {
        fill(f64::from(self.bits), elements, f64::from(self.hashes))
    }

    /// The share of its bits that a page of `elements` elements is expected to have in common with
    /// an unrelated one through elements *inferred* to be common: 2(1 − 0.5^(0.6185^(m/n))) at the
    /// optimal number of functions (§2.3.1).
    #[must_use]
    pub fn false_match_ratio(self, elements: f64) -> f64 {
        false_match_ratio(f64::from(self.bits), elements, f64::from(self.hashes))
    }
}

/// The share of `bits` bits that is expected to be set.
fn fill(bits: f64, elements: f64, hashes: f64) -> f64 {
    1.0 - (-elements * hashes / bits).exp()
}

fn false_match_ratio(bits: f64, elements: f64, hashes: f64) -> f64 {
    let set = fill(bits, elements, hashes);
    if set <= 0.0 {
        return 0.0;
    }
    fill(bits, elements * set.powf(hashes), hashes) / set
}

impl SharedBits {
    /// Counts the bits of two filters.
    #[must_use]
    pub fn new(left: &[u32], right: &[u32]) -> SharedBits {
        let ones = |words: &[u32]| words.iter().map(|word| word.count_ones()).sum();
        let both = left.iter().zip(right).map(|(a, b)| (a & b).count_ones()).sum();
        SharedBits { left: ones(left), right: ones(right), both }
    }

    /// The paper's similarity of the left page to the right one: the share of its bits in common.
    #[must_use]
    pub fn left_ratio(self) -> f64 {
        f64::from(self.both) / f64::from(self.left.max(1))
    }

    /// The same the other way.
    #[must_use]
    pub fn right_ratio(self) -> f64 {
        f64::from(self.both) / f64::from(self.right.max(1))
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small numbers of a simulation
mod tests {
    use super::*;

    fn filter(plan: FilterPlan, elements: &[u64]) -> Vec<u32> {
        let mut words = Vec::new();
        plan.filter(elements, &mut words);
        words
    }

    #[test]
    fn golden_filters() {
        assert_eq!(filter(FilterPlan { bits: 100, hashes: 3, seed: 7 }, &[1, 2, 3, 4, 5]), GOLDEN);
    }

    const GOLDEN: [u32; 4] = [0x0080_0820, 0x2800_1840, 0x0220_0e40, 0x0000_0000];

    #[test]
    fn the_false_match_formula_has_the_paper_s_values() {
        for (ratio, known) in
            [(1.0, 0.6973), (2.0, 0.4658), (4.0, 0.1929), (8.0, 0.0295), (10.0, 0.0113), (11.0, 0.0070)]
        {
            // At the optimal number of functions, which is not a whole number.
            let value = false_match_ratio(ratio * 1e6, 1e6, ratio * std::f64::consts::LN_2);
            assert!((value - known).abs() < 1e-4, "{value} instead of {known}");
        }
    }

    /// A filter with a real-valued number of functions: every element has one of the two nearest
    /// whole numbers, in the right proportion.
    struct RealFilter {
        bits: u32,
        hashes: f64,
    }

    impl RealFilter {
        fn bits_of(&self, element: u64) -> Vec<u32> {
            let mut state = element;
            let drawn = next_random(&mut state) as f64 / 2f64.powi(64);
            let hashes = self.hashes.floor() + f64::from(u8::from(drawn < self.hashes.fract()));
            (0..hashes as usize).map(|_| (next_random(&mut state) % u64::from(self.bits)) as u32).collect()
        }

        fn filter(&self, elements: impl Iterator<Item = u64>) -> Vec<bool> {
            let mut set = vec![false; self.bits as usize];
            for element in elements {
                self.bits_of(element).iter().for_each(|&bit| set[bit as usize] = true);
            }
            set
        }
    }

    #[test]
    fn the_false_match_formula_holds_on_elements() {
        let elements = 256u64;
        let rounds = 300;
        for (ratio, known) in [(4.0, 0.1929), (8.0, 0.0295), (10.0, 0.0113), (11.0, 0.0070)] {
            let plan = RealFilter { bits: (ratio * 256.0) as u32, hashes: ratio * std::f64::consts::LN_2 };
            let (mut matched, mut set) = (0usize, 0usize);
            let mut state = 41;
            for _ in 0..rounds {
                // The functions continue the same sequence, so elements are drawn from another one.
                let mut draw = || next_random(&mut state).rotate_left(31) ^ 0x5bd1_e995;
                let page: Vec<u64> = (0..elements).map(|_| draw()).collect();
                let filter = plan.filter(page.iter().copied());
                let inferred = (0..elements)
                    .map(|_| draw())
                    .filter(|&element| plan.bits_of(element).iter().all(|&bit| filter[bit as usize]));
                matched += plan.filter(inferred).iter().filter(|bit| **bit).count();
                set += filter.iter().filter(|bit| **bit).count();
            }
            let found = matched as f64 / set as f64;
            assert!((found / known - 1.0).abs() < 0.1, "m/n {ratio}: {found} instead of {known}");
        }
    }

    #[test]
    fn whole_functions_follow_the_general_formula() {
        // Eight bits an element and five functions: close to the optimum of 5.5.
        let plan = FilterPlan { bits: 2048, hashes: 5, seed: 0 };
        assert!((plan.false_match_ratio(256.0) - 0.0295).abs() < 0.002, "{}", plan.false_match_ratio(256.0));
        assert!((plan.fill(256.0) - 0.465).abs() < 0.01);
        assert_eq!(plan.false_match_ratio(0.0), 0.0);
    }

    /// Two pages with `own` elements of their own and `shared` common ones, many times.
    fn pairs(plan: FilterPlan, own: usize, shared: usize, rounds: u64) -> Vec<SharedBits> {
        let mut state = 99;
        (0..rounds)
            .map(|_| {
                let mut draw = |count: usize| -> Vec<u64> { (0..count).map(|_| next_random(&mut state)).collect() };
                let (common, left, right) = (draw(shared), draw(own), draw(own));
                let filter = |own: &[u64]| filter(plan, &[own, &common].concat());
                SharedBits::new(&filter(&left), &filter(&right))
            })
            .collect()
    }

    fn mean(values: impl Iterator<Item = f64>) -> f64 {
        let values: Vec<f64> = values.collect();
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn at_the_optimum_unrelated_pages_agree_in_half_their_bits() {
        // k = (m/n) ln 2 = 5.5 at 256 elements; 4 bits an element with 3 functions are half full too.
        let plan = FilterPlan { bits: 1110, hashes: 3, seed: 1 };
        let unrelated = mean(pairs(plan, 256, 0, 200).into_iter().map(SharedBits::left_ratio));
        assert!((unrelated - 0.5).abs() < 0.01, "{unrelated}");
        let half = mean(pairs(plan, 128, 128, 200).into_iter().map(SharedBits::left_ratio));
        assert!((half - 0.707).abs() < 0.01, "half-shared pages already look similar: {half}");
    }

    #[test]
    fn the_corrected_estimate_is_unbiased() {
        let plan = FilterPlan { bits: 2048, hashes: 4, seed: 5 };
        for (own, shared) in [(200, 0), (100, 100), (60, 140), (10, 190), (5, 5)] {
            let estimates: Vec<f64> =
                pairs(plan, own, shared, 400).into_iter().map(|bits| plan.shared_elements(bits)).collect();
            let centre = mean(estimates.iter().copied());
            let spread = mean(estimates.iter().map(|e| (e - centre).powi(2))).sqrt();
            // At nothing shared the estimate is cut off at zero, which lifts its mean by 0.4 spreads.
            let bound = if shared == 0 { spread } else { 5.0 * spread / 20.0 + 0.3 };
            assert!((centre - shared as f64).abs() < bound, "{centre} instead of {shared}, bound {bound}");
        }
    }

    #[test]
    fn a_full_filter_gives_a_number_all_the_same() {
        let plan = FilterPlan { bits: 64, hashes: 4, seed: 5 };
        let many: Vec<u64> = (0..10_000).collect();
        let full = filter(plan, &many);
        let bits = SharedBits::new(&full, &full);
        assert_eq!(bits, SharedBits { left: 64, right: 64, both: 64 });
        assert!(plan.shared_elements(bits).is_finite());
    }
}
