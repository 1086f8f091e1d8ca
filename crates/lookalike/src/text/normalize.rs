//! Unicode runs → folded terms: NFC, case folding, invisible characters out, scripts without
//! spaces segmented.
//!
//! In: a run of text that holds at least one character beyond ASCII and no ASCII separator. Out:
//! its terms, in order. Guaranteed: NFC and NFD of one text give the same terms; Han, Kana, Thai,
//! Lao, Khmer and Burmese runs become words, not one giant term.

use icu_segmenter::options::WordBreakInvariantOptions;
use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed};
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::text::tokenize::TermSink;

/// Turns runs into terms; owns the buffers it needs.
pub(crate) struct Normalizer {
    keep_case: bool,
    segmenter: WordSegmenterBorrowed<'static>,
    folded: String,
    composed: String,
}

impl Normalizer {
    pub(crate) fn new(keep_case: bool) -> Normalizer {
        Normalizer {
            keep_case,
            segmenter: WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()),
            folded: String::new(),
            composed: String::new(),
        }
    }

    /// Hands the terms of `run` to `terms`.
    pub(crate) fn terms_of_run(&mut self, run: &str, terms: &mut impl TermSink) {
        self.fold(run);
        let text = self.composed.as_str();
        let mut start = None;
        let mut needs_segmenting = false;
        for (at, c) in text.char_indices() {
            // A mark continues a term but never starts one, so that `=` + U+0338 and `≠` agree.
            let in_term = c.is_alphanumeric() || (start.is_some() && is_combining_mark(c));
            if in_term {
                start.get_or_insert(at);
                needs_segmenting |= is_unspaced(c);
            } else if let Some(from) = start.take() {
                push_term(self.segmenter, &text[from..at], needs_segmenting, terms);
                needs_segmenting = false;
            }
        }
        if let Some(from) = start {
            push_term(self.segmenter, &text[from..], needs_segmenting, terms);
        }
    }

    /// Leaves the folded, composed form of `run` in `self.composed`.
    fn fold(&mut self, run: &str) {
        self.folded.clear();
        self.composed.clear();
        // Compose first: some characters have a lower-case form only when composed. Compose again
        // afterwards: lower-casing may decompose.
        let fold_into = |folded: &mut String, c: char, keep_case: bool| {
            if is_invisible(c) {
            } else if keep_case {
                folded.push(c);
            } else if c.is_ascii() {
                folded.push(c.to_ascii_lowercase());
            } else {
                // Through upper case, so that ß meets SS, ς meets Σ and ﬁ meets FI.
                folded.extend(c.to_uppercase().flat_map(char::to_lowercase));
            }
        };
        if is_nfc_quick(run.chars()) == IsNormalized::Yes {
            run.chars().for_each(|c| fold_into(&mut self.folded, c, self.keep_case));
        } else {
            run.nfc().for_each(|c| fold_into(&mut self.folded, c, self.keep_case));
        }
        if is_nfc_quick(self.folded.chars()) == IsNormalized::Yes {
            std::mem::swap(&mut self.folded, &mut self.composed);
        } else {
            self.composed.extend(self.folded.nfc());
        }
    }
}

fn push_term(segmenter: WordSegmenterBorrowed<'static>, term: &str, needs_segmenting: bool, terms: &mut impl TermSink) {
    if !needs_segmenting {
        terms.term(term);
        return;
    }
    let mut from = 0;
    for to in segmenter.segment_str(term) {
        let word = &term[from..to];
        if word.chars().any(char::is_alphanumeric) {
            terms.term(word);
        }
        from = to;
    }
}

/// Characters that are not seen and do not part words: soft hyphen, joiners, byte order mark,
/// variation selectors.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
}

/// Scripts written without spaces between words.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'     // Thai, Lao
        | '\u{1000}'..='\u{109f}'   // Myanmar
        | '\u{1780}'..='\u{17ff}'   // Khmer
        | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30ff}'   // Hiragana, Katakana
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'   // Han
        | '\u{4e00}'..='\u{9fff}'
        | '\u{a9e0}'..='\u{a9ff}'
        | '\u{aa60}'..='\u{aa7f}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'   // half-width Katakana
        | '\u{20000}'..='\u{3ffff}')
}
