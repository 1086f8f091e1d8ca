//! All pairs of documents at or above a Jaccard similarity, exactly.
//!
//! Nothing of the engine is used: words are split and folded here, n-grams are compared as strings,
//! candidates come from an inverted index over each document's rarest n-grams (prefix filter: two
//! sets of similarity ≥ t must share one of the |A| − ⌈t·|A|⌉ + 1 rarest members).

use std::collections::{HashMap, HashSet};

/// A pair and its exact similarity; `left < right`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OraclePair {
    /// Index of the first document.
    pub left: usize,
    /// Index of the second document.
    pub right: usize,
    /// Exact Jaccard similarity.
    pub similarity: f64,
}

/// Lower-case runs of letters and digits. Of scripts that are written without spaces every character is a word; a sentence
/// would be one otherwise, and one changed character would change five runs of five sentences.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let length =
                if is_unspaced(first) { first.len_utf8() } else { rest.find(is_unspaced).unwrap_or(rest.len()) };
            words.push(rest[..length].to_lowercase());
            rest = &rest[length..];
        }
    }
    words
}

/// Whether a character is of a script that is written without spaces: Thai, Lao, Burmese, Khmer, Kana, Han.
#[must_use]
pub fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c), 0xE00..=0xEFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3005..=0x3007 | 0x3040..=0x30FF
        | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0xFF66..=0xFF9F | 0x20000..=0x3FFFF)
}

/// All pairs of `texts` whose sets of word n-grams are at least `threshold` similar. Texts with
/// fewer than `min_words` words take no part.
#[must_use]
pub fn all_pairs(texts: &[String], ngram: usize, threshold: f64, min_words: usize) -> Vec<OraclePair> {
    let mut number_of: HashMap<String, usize> = HashMap::new();
    let mut frequency: Vec<usize> = Vec::new();
    let mut sets: Vec<Vec<usize>> = Vec::with_capacity(texts.len());
    for text in texts {
        let words = words(text);
        let mut set = HashSet::new();
        if words.len() >= min_words {
            for gram in words.windows(ngram.min(words.len())) {
                let next = number_of.len();
                let number = *number_of.entry(gram.join(" ")).or_insert(next);
                if number == frequency.len() {
                    frequency.push(0);
                }
                if set.insert(number) {
                    frequency[number] += 1;
                }
            }
        }
        sets.push(set.into_iter().collect());
    }
    for set in &mut sets {
        set.sort_unstable_by_key(|&gram| (frequency[gram], gram));
    }
    let lookup: Vec<HashSet<usize>> = sets.iter().map(|set| set.iter().copied().collect()).collect();
    let mut index: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut pairs = Vec::new();
    for (right, set) in sets.iter().enumerate().filter(|(_, set)| !set.is_empty()) {
        let mut candidates = HashSet::new();
        let prefix = set.len() - least_shared(set.len(), threshold) + 1;
        for gram in &set[..prefix] {
            let earlier = index.entry(*gram).or_default();
            candidates.extend(earlier.iter().copied());
            earlier.push(right);
        }
        for left in candidates {
            let shared = set.iter().filter(|gram| lookup[left].contains(gram)).count();
            let similarity = shared as f64 / (set.len() + sets[left].len() - shared) as f64;
            if similarity >= threshold {
                pairs.push(OraclePair { left, right, similarity });
            }
        }
    }
    pairs.sort_by_key(|pair| (pair.left, pair.right));
    pairs
}

/// The least number of members a set must share with another of similarity `threshold`.
fn least_shared(size: usize, threshold: f64) -> usize {
    (1..=size).find(|&shared| shared as f64 >= threshold * size as f64 - 1e-9).unwrap_or(size).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_without_spaces_is_not_one_word() {
        assert_eq!(
            words("Debian GNU/Linux をインストール。"),
            "debian gnu linux を イ ン ス ト ー ル".split(' ').collect::<Vec<_>>()
        );
        assert_eq!(words("第3章x2"), ["第", "3", "章", "x2"]);
        assert_eq!(words("Über 한국어 안녕"), ["über", "한국어", "안녕"]);
    }

    #[test]
    fn the_oracle_equals_plain_brute_force() {
        let vocabulary = ["a", "b", "c", "d", "e", "f"];
        let mut state = 7usize;
        let mut texts = Vec::new();
        for _ in 0..60 {
            let mut text = Vec::new();
            for _ in 0..20 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push(vocabulary[(state >> 33) % vocabulary.len()]);
            }
            texts.push(text.join(" "));
        }
        let sets: Vec<HashSet<String>> =
            texts.iter().map(|text| words(text).windows(2).map(|gram| gram.join(" ")).collect()).collect();
        for threshold in [0.3, 0.5, 0.8] {
            let mut expected = Vec::new();
            for right in 0..sets.len() {
                for left in 0..right {
                    let shared = sets[left].intersection(&sets[right]).count();
                    let similarity = shared as f64 / sets[left].union(&sets[right]).count() as f64;
                    if similarity >= threshold {
                        expected.push(OraclePair { left, right, similarity });
                    }
                }
            }
            expected.sort_by_key(|pair| (pair.left, pair.right));
            assert_eq!(all_pairs(&texts, 2, threshold, 2), expected);
            assert!(threshold > 0.5 || !expected.is_empty());
        }
    }
}
