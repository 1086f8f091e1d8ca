//! Shingles: every run of `k` tokens, as a 64-bit fingerprint.
//!
//! In: a page's tokens. Out: n − k + 1 fingerprints, in order, no wrap-around; a page with fewer
//! than `k` tokens is one shingle, an empty one has none. The fingerprint is a polynomial in the
//! tokens, and then a bijective mix (`kernel/runs.rs`).
//! Henzinger 2006, §2.

use crate::kernel::runs;
use crate::page::Token;

/// Replaces the content of `shingles` by the shingles of `tokens`.
pub fn shingles(tokens: &[Token], k: usize, shingles: &mut Vec<u64>) {
    shingles.clear();
    runs(tokens, k.min(tokens.len()).max(1), shingles);
}

/// Sorts and removes duplicates: a page's shingles as a set.
pub fn into_set(shingles: &mut Vec<u64>) {
    shingles.sort_unstable();
    shingles.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::term::term_token;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    fn of(tokens: &[Token], k: usize) -> Vec<u64> {
        let mut out = Vec::new();
        shingles(tokens, k, &mut out);
        out
    }

    #[test]
    fn golden_shingles() {
        let tokens: Vec<Token> =
            "a rose is a rose is a rose".split(' ').map(|word| term_token(word.as_bytes())).collect();
        assert_eq!(of(&tokens, 4), GOLDEN);
        assert_eq!(
            of(&tokens, 4).iter().collect::<HashSet<_>>().len(),
            3,
            "Broder's rose has three distinct 4-shingles"
        );
    }

    const GOLDEN: [u64; 5] = [
        0xc154_c6cf_3d51_077f,
        0xa291_a206_689d_6a1c,
        0x069f_32fd_787c_7543,
        0xc154_c6cf_3d51_077f,
        0xa291_a206_689d_6a1c,
    ];

    #[test]
    fn short_and_empty_pages() {
        assert_eq!(of(&[], 5), Vec::<u64>::new());
        assert_eq!(of(&[1, 2], 5), of(&[1, 2], 2));
        assert_eq!(of(&[1, 2], 5).len(), 1);
    }

    #[test]
    fn changed_tokens_change_the_shingles_that_hold_them() {
        // Twenty consecutive changes at k = 8 change 27 shingles (x + y + k − 1).
        let before: Vec<Token> = (0..200).map(|n| term_token(format!("{n}").as_bytes())).collect();
        let mut after = before.clone();
        after[90..110].iter_mut().for_each(|token| *token ^= 0xffff);
        let kept: HashSet<u64> = of(&before, 8).into_iter().collect();
        assert_eq!(of(&after, 8).iter().filter(|shingle| !kept.contains(shingle)).count(), 27);
    }

    proptest! {
        #[test]
        fn equal_runs_and_only_they_have_equal_shingles(words in prop::collection::vec(0u8..4, 1..60), k in 1usize..9) {
            let tokens: Vec<Token> = words.iter().map(|&word| term_token(&[b'a' + word])).collect();
            let found = of(&tokens, k);
            let length = k.min(tokens.len());
            prop_assert_eq!(found.len(), tokens.len() - length + 1);
            let mut run_of: HashMap<u64, &[u8]> = HashMap::new();
            for (shingle, run) in found.iter().zip(words.windows(length)) {
                prop_assert_eq!(*run_of.entry(*shingle).or_insert(run), run);
            }
            let runs: HashSet<&[u8]> = words.windows(length).collect();
            prop_assert_eq!(run_of.len(), runs.len());
        }
    }
}
