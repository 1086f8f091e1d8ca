//! Text → tokens.
//!
//! In: text, as a page shows it. Out: the fingerprints of its terms, in order. A term is a maximal
//! alphanumeric run (Unicode), case folded; a URL in the text so falls apart at slashes and dots.
//! Fast on ASCII: 64 bytes are classified at once and nothing is copied; everything else goes through
//! `normalize`. Henzinger 2006, §2.

use crate::kernel::{LANES, WordSink, ascii_words};
use crate::page::Token;
use crate::text::normalize::Normalizer;
use crate::text::term::{ascii_token, folded_token, term_token};

const BREAK: u8 = 0;
const WORD: u8 = 1;
const WIDE: u8 = 2;

/// What a byte is: a separator, an ASCII letter or digit, or part of a wider character.
const CLASS: [u8; 256] = {
    let mut class = [BREAK; 256];
    let mut byte = 0;
    while byte < 256 {
        #[allow(clippy::cast_possible_truncation)] // the loop ends at 255
        let b = byte as u8;
        if b.is_ascii_alphanumeric() {
            class[byte] = WORD;
        } else if !b.is_ascii() {
            class[byte] = WIDE;
        }
        byte += 1;
    }
    class
};

/// What becomes of the terms that are found.
pub trait TermSink {
    /// A term of ASCII letters and digits, `text[start..end]`, to be folded unless case is kept.
    fn ascii(&mut self, text: &[u8], start: usize, end: usize, keep_case: bool);
    /// Any other term, folded.
    fn term(&mut self, term: &str);
    /// The terms that follow stand in a run that starts here.
    fn run(&mut self, _start: usize) {}
}

/// Tokens: the terms' fingerprints.
impl TermSink for Vec<Token> {
    #[inline(always)]
    fn ascii(&mut self, text: &[u8], start: usize, end: usize, keep_case: bool) {
        self.push(if keep_case { folded_token(text, start, end) } else { ascii_token(text, start, end) });
    }

    fn term(&mut self, term: &str) {
        self.push(term_token(term.as_bytes()));
    }
}

/// Tokens, and how many of them there are at certain places of the text: no term spans these.
pub struct TokensAt<'a> {
    /// The tokens.
    pub tokens: &'a mut Vec<Token>,
    /// Where the text that is tokenised begins among all.
    pub base: usize,
    /// The places that are still to come, ascending.
    pub places: &'a [usize],
    /// For each place before the last term the number of tokens there.
    pub counts: &'a mut Vec<usize>,
}

impl TokensAt<'_> {
    /// Notes how many tokens stand before the places up to `end`.
    #[inline(never)]
    fn pass_places(&mut self, end: usize) {
        while let Some((_, rest)) = self.places.split_first().filter(|(place, _)| **place <= end) {
            self.counts.push(self.tokens.len());
            self.places = rest;
        }
    }
}

impl TermSink for TokensAt<'_> {
    #[inline(always)]
    fn ascii(&mut self, text: &[u8], start: usize, end: usize, keep_case: bool) {
        self.run(start);
        self.tokens.ascii(text, start, end, keep_case);
    }

    fn term(&mut self, term: &str) {
        self.tokens.term(term);
    }

    #[inline(always)]
    fn run(&mut self, start: usize) {
        if self.places.first().is_some_and(|&place| place <= self.base + start) {
            self.pass_places(self.base + start);
        }
    }
}

/// Words: the terms themselves, for those who must look into them.
#[derive(Debug, Default)]
pub struct Words {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Words {
    /// Forgets all words.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The words, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.with_tokens().map(|(_, word)| str::from_utf8(word).unwrap_or_default())
    }

    /// The words in order, each behind its token; as bytes, which nobody has to look at who knows the token.
    pub fn with_tokens(&self) -> impl Iterator<Item = (Token, &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let start = std::mem::replace(&mut start, end);
            (folded_token(&self.text, start, end), &self.text[start..end])
        })
    }
}

/// Bytes that are copied of a word at once.
const WORD_ROOM: usize = 16;

impl TermSink for Words {
    #[inline(always)]
    fn ascii(&mut self, text: &[u8], start: usize, end: usize, keep_case: bool) {
        let from = self.text.len();
        // Nearly every word is copied with what follows it, which is one load and one store.
        let wide = text.get(start..start + WORD_ROOM).and_then(|wide| <[u8; WORD_ROOM]>::try_from(wide).ok());
        match wide.filter(|_| end - start <= WORD_ROOM) {
            Some(mut wide) => {
                if !keep_case {
                    wide.make_ascii_lowercase();
                }
                self.text.extend_from_slice(&wide);
                self.text.truncate(from + (end - start));
            }
            None => {
                self.text.extend_from_slice(&text[start..end]);
                if !keep_case {
                    self.text[from..].make_ascii_lowercase();
                }
            }
        }
        self.ends.push(self.text.len());
    }

    fn term(&mut self, term: &str) {
        self.text.extend_from_slice(term.as_bytes());
        self.ends.push(self.text.len());
    }
}

/// The words of a text as they are compared, folded, with a blank behind each: for searching, in whatever script.
///
/// ```
/// use lookalike::result::fold_words;
///
/// assert_eq!(fold_words("The CAFÉ, 図書館!").split(' ').next(), Some("the"));
/// ```
#[must_use]
pub fn fold_words(text: &str) -> String {
    let (mut words, mut line) = (Words::default(), String::with_capacity(text.len()));
    Tokenizer::new(false).tokenize(text, &mut words);
    for word in words.iter() {
        line.push_str(word);
        line.push(' ');
    }
    line
}

/// Words of ASCII letters and digits are terms.
struct AsciiTerms<'a, S> {
    text: &'a [u8],
    keep_case: bool,
    terms: &'a mut S,
}

impl<S: TermSink> WordSink for AsciiTerms<'_, S> {
    #[inline(always)]
    fn word(&mut self, start: usize, end: usize) {
        self.terms.ascii(self.text, start, end, self.keep_case);
    }
}

/// Turns text into terms; reusable, one per thread.
pub struct Tokenizer {
    keep_case: bool,
    normalizer: Normalizer,
}

impl Tokenizer {
    /// A tokenizer that folds case unless asked to keep it.
    #[must_use]
    pub fn new(keep_case: bool) -> Tokenizer {
        Tokenizer { keep_case, normalizer: Normalizer::new(keep_case) }
    }

    /// Hands the terms of `text` to `terms`.
    pub fn tokenize<S: TermSink>(&mut self, text: &str, terms: &mut S) {
        let bytes = text.as_bytes();
        // `at` is never inside a term, except of one that starts there.
        let mut at = 0;
        loop {
            at = ascii_words(bytes, at, &mut AsciiTerms { text: bytes, keep_case: self.keep_case, terms });
            let Some(block) = bytes.get(at..at + LANES) else { break };
            // A block with wider characters, or a word that is longer than the block.
            let until = if block.is_ascii() { at + 1 } else { at + LANES };
            at = self.tokenize_bytes(text, at, until, terms);
        }
        self.tokenize_bytes(text, at, bytes.len(), terms);
    }

    /// Byte by byte, every term that starts before `until`; returns where the last one ended, or
    /// `until`.
    fn tokenize_bytes<S: TermSink>(&mut self, text: &str, from: usize, until: usize, terms: &mut S) -> usize {
        let bytes = text.as_bytes();
        let mut at = from;
        while at < until {
            let start = at;
            match CLASS[usize::from(bytes[at])] {
                BREAK => {
                    at += 1;
                    continue;
                }
                WORD => {
                    at = end_of(bytes, at, |class| class == WORD);
                    if at == bytes.len() || CLASS[usize::from(bytes[at])] == BREAK {
                        terms.ascii(bytes, start, at, self.keep_case);
                        continue;
                    }
                }
                _ => {}
            }
            // A wider character in the word: normalise up to the next ASCII separator.
            at = end_of(bytes, at, |class| class != BREAK);
            terms.run(start);
            self.normalizer.terms_of_run(&text[start..at], terms);
        }
        at
    }
}

#[inline]
fn end_of(bytes: &[u8], from: usize, belongs: impl Fn(u8) -> bool) -> usize {
    bytes[from..]
        .iter()
        .position(|&byte| !belongs(CLASS[usize::from(byte)]))
        .map_or(bytes.len(), |length| from + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    fn tokens(text: &str) -> Vec<Token> {
        let mut out = Vec::new();
        Tokenizer::new(false).tokenize(text, &mut out);
        out
    }

    fn terms(words: &[&str]) -> Vec<Token> {
        words.iter().map(|word| term_token(word.as_bytes())).collect()
    }

    #[test]
    fn terms_are_maximal_alphanumeric_runs() {
        assert_eq!(tokens("It's 3 o'clock_now."), terms(&["it", "s", "3", "o", "clock", "now"]));
        assert_eq!(tokens("  "), terms(&[]));
        assert_eq!(tokens("naïve CAFÉ x"), terms(&["naïve", "café", "x"]));
    }

    #[test]
    fn a_url_is_broken_at_slashes_and_dots() {
        assert_eq!(
            tokens("see http://www.a.org/b/c.html"),
            terms(&["see", "http", "www", "a", "org", "b", "c", "html"])
        );
    }

    #[test]
    fn case_is_folded_beyond_ascii_and_kept_on_request() {
        assert_eq!(tokens("ΟΔΟΣ ΣΊΣΥΦΟΣ"), tokens("οδος σίσυφος"));
        assert_eq!(tokens("ÄRGER"), tokens("ärger"));
        assert_eq!(tokens("STRASSE ﬁn"), tokens("Straße FIN"));
        let mut kept = Vec::new();
        Tokenizer::new(true).tokenize("Rose rose Ärger ärger", &mut kept);
        assert_ne!(kept[0], kept[1]);
        assert_ne!(kept[2], kept[3]);
        assert_eq!(kept[1], term_token(b"rose"));
    }

    #[test]
    fn invisible_characters_do_not_part_a_word() {
        assert_eq!(tokens("im\u{ad}por\u{ad}tant"), terms(&["important"]));
        assert_eq!(tokens("ab\u{feff}cd é"), terms(&["abcd", "é"]));
    }

    #[test]
    fn marks_of_indic_scripts_stay_in_their_word() {
        assert_eq!(tokens("हिन्दी में").len(), 2);
    }

    #[test]
    fn scripts_without_spaces_are_segmented() {
        // The sentence is one alphanumeric run; as one term it would match nothing but itself.
        assert!(tokens("我们在北京大学学习中文和历史").len() >= 6);
        assert!(tokens("東京都知事は今日の記者会見で発表した").len() >= 6);
        assert!(tokens("ภาษาไทยเป็นภาษาที่มีระดับเสียงของคำแน่นอน").len() >= 6);
        assert_eq!(tokens("iPhone手机").first(), terms(&["iphone"]).first());
    }

    #[test]
    fn one_changed_word_changes_few_tokens_of_a_han_text() {
        let one = tokens("昨天下午市政府宣布新的地铁线路将于明年春天开通");
        let two = tokens("昨天上午市政府宣布新的地铁线路将于明年春天开通");
        let shared = one.iter().filter(|token| two.contains(token)).count();
        assert!(shared + 3 >= one.len(), "{shared} of {}", one.len());
    }

    #[test]
    fn a_mark_on_a_separator_is_no_term() {
        assert_eq!(tokens("a =\u{338} b"), tokens("a ≠ b"));
    }

    #[test]
    fn words_and_tokens_are_the_same_terms() {
        let text = "The Straße of IPv6 我们在北京大学学习 internationalisation-rules x";
        for keep_case in [false, true] {
            let (mut words, mut tokens) = (Words::default(), Vec::new());
            Tokenizer::new(keep_case).tokenize(text, &mut words);
            Tokenizer::new(keep_case).tokenize(text, &mut tokens);
            assert_eq!(words.iter().map(|word| term_token(word.as_bytes())).collect::<Vec<_>>(), tokens);
            assert_eq!(words.with_tokens().map(|(token, _)| token).collect::<Vec<_>>(), tokens);
        }
    }

    proptest! {
        #[test]
        fn normal_forms_of_one_text_are_one_text(text in "\\PC{0,40}") {
            let composed: String = text.nfc().collect();
            let decomposed: String = text.nfd().collect();
            prop_assert_eq!(tokens(&composed), tokens(&decomposed));
            prop_assert_eq!(tokens(&text), tokens(&composed));
        }

        #[test]
        fn ascii_words_equal_the_definition(text in "[ -~\\n\\t]{0,200}") {
            let expected: Vec<Token> = text
                .split(|c: char| !c.is_ascii_alphanumeric())
                .filter(|word| !word.is_empty())
                .map(|word| term_token(word.to_ascii_lowercase().as_bytes()))
                .collect();
            prop_assert_eq!(tokens(&text), expected);
        }

        #[test]
        fn blocks_and_bytes_give_the_same_tokens(text in "([a-zA-Z0-9]{1,90}|[ .,]{1,20}|[é中ß“]{1,3}){0,30}") {
            let mut by_bytes = Vec::new();
            Tokenizer::new(false).tokenize_bytes(&text, 0, text.len(), &mut by_bytes);
            prop_assert_eq!(tokens(&text), by_bytes);
        }

        #[test]
        fn any_text_is_survived(text in any::<String>()) {
            tokens(&text);
        }
    }
}
