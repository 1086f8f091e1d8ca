//! Content words and phrases: stop words out, stems, pairs of neighbours.
//!
//! In: a page's words and what is known about its language. Out: a feature for every content word
//! and one for every two content words that stand side by side; repetitions stay, they are the
//! weight. Manku et al. 2007, §2.

use crate::text::language::LanguageWords;
use crate::text::tokenize::Words;

/// Replaces `features` by the features of `words`.
pub fn words_and_phrases(words: &Words, language: &mut LanguageWords, features: &mut Vec<u64>) {
    features.clear();
    features.reserve(2 * words.count());
    let mut before: Option<u64> = None;
    for token in language.content_tokens(words) {
        if let Some(token) = token {
            features.push(token);
            features.extend(before.map(|before| phrase(before, token)));
        }
        before = token;
    }
}

/// A feature that knows the order of two tokens.
fn phrase(first: u64, second: u64) -> u64 {
    let mut state = first.rotate_left(23) ^ second.wrapping_mul(0xd6e8_feb8_6659_fd93);
    crate::random::next_random(&mut state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::language::{Lang, Languages};
    use crate::text::tokenize::Tokenizer;

    fn features(text: &str) -> Vec<u64> {
        let (mut words, mut features) = (Words::default(), Vec::new());
        Tokenizer::new(false).tokenize(text, &mut words);
        words_and_phrases(&words, Languages::default().of(Some(Lang::Eng)), &mut features);
        features
    }

    #[test]
    fn stop_words_part_phrases_and_inflections_do_not() {
        let found = features("The dogs chase cats and birds");
        assert_eq!(found.len(), 4 + 2, "dog chase cat bird, dog-chase chase-cat");
        assert_eq!(features("dogs chase"), features("the dog chased"));
        assert_ne!(features("chase dogs")[1..], features("dogs chase")[1..], "a phrase knows its order");
    }

    #[test]
    fn golden_features() {
        assert_eq!(features("Roses are red, violets are blue"), GOLDEN);
    }

    const GOLDEN: [u64; 5] = [
        0x516a_2c5b_235c_f848,
        0xeb5d_36dc_6281_b838,
        0x2cff_f79f_d74a_cf1c,
        0xcfcd_91bb_3848_5fd2,
        0xa305_785c_53ca_23a9,
    ];
}
