//! Spot signatures: what stands a little behind frequent words.
//!
//! In: a page's tokens and where its blocks end. Out: the set of its signatures, ascending. At every
//! occurrence of an antecedent the signature is the d-th word after it, for a chain `a(m, n)` the m-th
//! and the (m+n)-th; the antecedent and its distances are part of it. Words in between are not
//! skipped; where a block ends before the word is reached, there is no signature. Frequent words are
//! dense in sentences and rare in menus, so the signatures stand for the story and not for its frame.
//! Web-archives paper, §3.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasherDefault;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::page::Token;
use crate::text::language::{FUNCTION_WORDS, Lang, stop_words_of};
use crate::text::term::TokenHasher;
use crate::text::tokenize::{Tokenizer, Words};

/// The distances of an antecedent that is given without any.
pub const DEFAULT_DISTANCES: [u16; 2] = [2, 2];
/// Links of a chain.
const MOST_DISTANCES: usize = 8;

/// A word, and how far behind it the words of a signature stand.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Antecedent {
    /// The word; its case counts where case is kept.
    pub word: String,
    /// The distances, each counted from the word before.
    pub distances: Vec<u16>,
}

impl Antecedent {
    /// A word with the default distances.
    #[must_use]
    pub fn new(word: &str) -> Antecedent {
        Antecedent { word: word.to_owned(), distances: DEFAULT_DISTANCES.to_vec() }
    }
}

impl FromStr for Antecedent {
    type Err = String;

    fn from_str(text: &str) -> Result<Antecedent, String> {
        let help = || {
            format!(
                "'{text}' is not an antecedent; write word, word:distance or word:m:n, for example said:3 or that:4:2"
            )
        };
        let mut parts = text.split(':');
        let mut words = Words::default();
        Tokenizer::new(true).tokenize(parts.next().expect("a split has a first part"), &mut words);
        let mut found = words.iter();
        let (Some(word), None) = (found.next(), found.next()) else { return Err(help()) };
        let mut distances: Vec<u16> = Vec::new();
        for part in parts {
            distances.push(part.trim().parse().ok().filter(|distance| (1..=1000).contains(distance)).ok_or_else(help)?);
        }
        if distances.len() > MOST_DISTANCES {
            return Err(help());
        }
        if distances.is_empty() {
            distances.extend(DEFAULT_DISTANCES);
        }
        Ok(Antecedent { word: word.to_owned(), distances })
    }
}

impl fmt::Display for Antecedent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.word)?;
        self.distances.iter().try_for_each(|distance| write!(f, ":{distance}"))
    }
}

impl TryFrom<String> for Antecedent {
    type Error = String;

    fn try_from(text: String) -> Result<Antecedent, String> {
        text.parse()
    }
}

impl From<Antecedent> for String {
    fn from(antecedent: Antecedent) -> String {
        antecedent.to_string()
    }
}

/// Antecedents, ready to be looked for.
#[derive(Debug, Clone, Default)]
pub struct Spots {
    chains: HashMap<Token, Vec<Chain>, BuildHasherDefault<TokenHasher>>,
}

#[derive(Debug, Clone)]
struct Chain {
    /// What antecedent and distances come to.
    start: u64,
    distances: Vec<usize>,
}

impl Spots {
    /// For a list of antecedents; their case is folded unless it is kept in pages, too.
    #[must_use]
    pub fn new(antecedents: &[Antecedent], keep_case: bool) -> Spots {
        let mut spots = Spots::default();
        let mut tokenizer = Tokenizer::new(keep_case);
        let mut tokens: Vec<Token> = Vec::new();
        for antecedent in antecedents {
            tokens.clear();
            tokenizer.tokenize(&antecedent.word, &mut tokens);
            let [token] = tokens[..] else { continue };
            let start = antecedent.distances.iter().fold(token, |state, &distance| link(state, u64::from(distance)));
            let distances = antecedent.distances.iter().map(|&distance| usize::from(distance)).collect();
            spots.chains.entry(token).or_default().push(Chain { start, distances });
        }
        spots
    }

    /// Replaces `signatures` by the signatures of a page. `block_ends` may be empty: then nothing
    /// but the end of the page stops a chain.
    pub fn signatures(&self, tokens: &[Token], block_ends: &[usize], signatures: &mut Vec<u64>) {
        signatures.clear();
        let mut blocks = block_ends.iter().copied().peekable();
        for (at, token) in tokens.iter().enumerate() {
            let Some(chains) = self.chains.get(token) else { continue };
            while blocks.next_if(|&end| end <= at).is_some() {}
            let end = blocks.peek().copied().unwrap_or(tokens.len());
            signatures.extend(chains.iter().filter_map(|chain| chain.signature(&tokens[..end], at)));
        }
        signatures.sort_unstable();
        signatures.dedup();
    }
}

impl Chain {
    fn signature(&self, tokens: &[Token], mut at: usize) -> Option<u64> {
        self.distances.iter().try_fold(self.start, |state, distance| {
            at += distance;
            tokens.get(at).map(|&token| link(state, token))
        })
    }
}

fn link(state: u64, next: u64) -> u64 {
    let mut mixed = state.rotate_left(29) ^ next.wrapping_mul(0xd6e8_feb8_6659_fd93);
    crate::random::next_random(&mut mixed)
}

/// The built-in antecedents of a language; for a page whose language cannot be detected, those of all
/// languages that have a list of their own.
#[must_use]
pub fn built_in(language: Option<Lang>) -> Vec<Antecedent> {
    let list = |words: &str| -> Vec<Antecedent> { words.split(' ').map(Antecedent::new).collect() };
    let Some(language) = language else {
        let mut all: Vec<Antecedent> = FUNCTION_WORDS.iter().flat_map(|(_, words)| list(words)).collect();
        all.sort();
        all.dedup();
        return all;
    };
    if let Some((_, words)) = FUNCTION_WORDS.iter().find(|(listed, _)| *listed == language) {
        return list(words);
    }
    let stop_words = stop_words_of(language);
    if stop_words.is_empty() {
        return built_in(None);
    }
    stop_words.iter().filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::term::term_token;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn tokens(text: &str) -> Vec<Token> {
        text.split_whitespace().map(|word| term_token(word.as_bytes())).collect()
    }

    fn of(spots: &str, text: &str) -> Vec<u64> {
        let antecedents: Vec<Antecedent> = spots.split(',').map(|spot| spot.parse().unwrap()).collect();
        let mut found = Vec::new();
        Spots::new(&antecedents, false).signatures(&tokens(text), &[], &mut found);
        found
    }

    #[test]
    fn antecedents_are_written_as_they_are_read() {
        for text in ["is:3", "that:4:2", "the:2:2"] {
            assert_eq!(text.parse::<Antecedent>().unwrap().to_string(), text);
        }
        assert_eq!("said".parse::<Antecedent>().unwrap(), Antecedent::new("said"));
        let upper = ["Is:1".parse().unwrap()];
        let of = |keep_case, word: &str| {
            let mut found = Vec::new();
            Spots::new(&upper, keep_case).signatures(&tokens(&format!("{word} here")), &[], &mut found);
            found.len()
        };
        assert_eq!((of(false, "is"), of(true, "is"), of(true, "Is")), (1, 0, 1));
        for wrong in ["", ":3", "is:0", "is:x", "two words:3", "is:-1"] {
            assert!(wrong.parse::<Antecedent>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn distances_chains_and_the_end_of_the_page() {
        assert_eq!(of("is:1", "what is here"), of("is:1", "this is here now"));
        assert_eq!(of("is:3", "what is here"), Vec::<u64>::new());
        assert_eq!(of("is:1,is:2", "it is here now").len(), 2);
        // The antecedent and the distances are part of the signature.
        assert_ne!(of("is:1", "is x"), of("was:1", "was x"));
        assert_ne!(of("is:1", "is x"), of("is:2", "is y x"));
        // is(3,4) takes the third and the seventh word behind.
        let one = of("is:3:4", "is a b C d e f G");
        assert_eq!(one, of("is:3:4", "is q r C s t u G"));
        assert_ne!(one, of("is:3:4", "is q r C s t u H"));
        assert_eq!(of("is:3:4", "is a b C d e f"), Vec::<u64>::new());
    }

    #[test]
    fn chains_stop_at_block_ends() {
        let spots = Spots::new(&["is:1".parse().unwrap()], false);
        let tokens = tokens("this is next is here");
        let mut found = Vec::new();
        spots.signatures(&tokens, &[2, 5], &mut found);
        assert_eq!(found, of("is:1", "is here"));
        spots.signatures(&tokens, &[], &mut found);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn golden_signatures() {
        assert_eq!(of("the:2,is:1:2", "the rose is a red rose in the red sun"), GOLDEN);
    }

    const GOLDEN: [u64; 3] = [0x34cc_86fa_51e7_743e, 0x4c8a_60d0_9b00_d7e2, 0x93dc_a0b7_22dd_c35c];

    #[test]
    fn built_in_lists_are_lists_of_single_terms() {
        for (language, words) in FUNCTION_WORDS {
            for word in words.split(' ') {
                assert_eq!(word.parse::<Antecedent>().unwrap().word, word, "{language}");
            }
            assert!(built_in(Some(language)).len() > 20);
        }
        assert!(built_in(Some(Lang::Tur)).len() > 20, "other languages fall back to stop words");
        assert!(built_in(None).len() > 200);
    }

    proptest! {
        #[test]
        fn signatures_equal_the_definition(
            words in prop::collection::vec(0u8..5, 0..60),
            ends in prop::collection::btree_set(1usize..60, 0..6),
            has_blocks: bool,
            spots in prop::collection::btree_set((0u8..3, prop::collection::vec(1u16..5, 1..4)), 1..6),
        ) {
            let token = |word: u8| term_token(&[b'a' + word]);
            let antecedents: Vec<Antecedent> = spots
                .iter()
                .map(|(word, distances)| Antecedent { word: char::from(b'a' + word).into(), distances: distances.clone() })
                .collect();
            let ends: Vec<usize> = ends.into_iter().filter(|&end| has_blocks && end <= words.len()).collect();
            let tokens: Vec<Token> = words.iter().copied().map(token).collect();
            let mut found = vec![7]; // what is left of another page
            Spots::new(&antecedents, false).signatures(&tokens, &ends, &mut found);

            // Every antecedent at every place, by the text of the definition.
            let mut expected = BTreeSet::new();
            for (word, distances) in &spots {
                for at in (0..words.len()).filter(|&at| words[at] == *word) {
                    let places: Vec<usize> = (1..=distances.len())
                        .map(|links| at + distances[..links].iter().map(|&distance| usize::from(distance)).sum::<usize>())
                        .collect();
                    let last = places[places.len() - 1];
                    if last < words.len() && !ends.iter().any(|&end| at < end && end <= last) {
                        let chain: Vec<u8> = places.iter().map(|&place| words[place]).collect();
                        expected.insert((*word, distances, chain));
                    }
                }
            }
            let hashes: BTreeSet<u64> = expected
                .iter()
                .map(|(word, distances, chain)| {
                    let named = distances.iter().fold(token(*word), |state, &distance| link(state, u64::from(distance)));
                    chain.iter().fold(named, |state, &word| link(state, token(word)))
                })
                .collect();
            prop_assert_eq!(hashes.len(), expected.len(), "different signatures have different hashes");
            prop_assert_eq!(found, hashes.into_iter().collect::<Vec<_>>());
        }
    }
}
