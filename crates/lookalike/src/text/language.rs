//! Which language a page is in, and what follows from it: stop words and stems.

use std::collections::{HashMap, HashSet};

use rust_stemmers::{Algorithm, Stemmer};
pub use whatlang::Lang;

use crate::page::Token;
use crate::text::term::term_token;

/// Bytes of a page that are looked at.
const SAMPLE_BYTES: usize = 4096;
/// Letters below which nothing is said.
const FEW_LETTERS: usize = 20;

/// The language of a text, where it can be told. The middle of the text is looked at: pages begin
/// and end with frames.
#[must_use]
pub fn detect(text: &str) -> Option<Lang> {
    let from = text.len().saturating_sub(SAMPLE_BYTES) / 2;
    let (from, to) = (text.floor_char_boundary(from), text.floor_char_boundary(from + SAMPLE_BYTES));
    let sample = &text[from..to];
    if sample.chars().filter(|c| c.is_alphabetic()).take(FEW_LETTERS).count() < FEW_LETTERS {
        return None;
    }
    whatlang::detect_lang(sample)
}

/// What is done to words of one language.
pub struct LanguageWords {
    stop_words: HashSet<Token>,
    stemmer: Option<Stemmer>,
}

impl LanguageWords {
    fn new(language: Option<Lang>) -> LanguageWords {
        let stop_words = language.and_then(two_letters).map_or(&[][..], stop_words::get);
        LanguageWords {
            stop_words: stop_words.iter().map(|word| term_token(word.to_lowercase().as_bytes())).collect(),
            stemmer: language.and_then(stemming).map(Stemmer::create),
        }
    }

    /// The token of a word's stem; nothing for a stop word.
    #[must_use]
    pub fn content_token(&self, word: &str) -> Option<Token> {
        let token = term_token(word.as_bytes());
        if self.stop_words.contains(&token) {
            return None;
        }
        Some(self.stemmer.as_ref().map_or(token, |stemmer| term_token(stemmer.stem(word).as_bytes())))
    }
}

/// The words of all languages met so far; one per thread.
#[derive(Default)]
pub struct Languages(HashMap<Option<Lang>, LanguageWords>);

impl Languages {
    /// What is known about a language.
    pub fn of(&mut self, language: Option<Lang>) -> &LanguageWords {
        self.0.entry(language).or_insert_with(|| LanguageWords::new(language))
    }
}

/// The stop words of a language, as they are written.
#[must_use]
pub fn stop_words_of(language: Lang) -> &'static [&'static str] {
    two_letters(language).map_or(&[], stop_words::get)
}

/// Languages with a list of stop words, by the code the list is found under.
fn two_letters(language: Lang) -> Option<&'static str> {
    Some(match language {
        Lang::Afr => "af",
        Lang::Ara => "ar",
        Lang::Ben => "bn",
        Lang::Bul => "bg",
        Lang::Cat => "ca",
        Lang::Ces => "cs",
        Lang::Cmn => "zh",
        Lang::Dan => "da",
        Lang::Deu => "de",
        Lang::Ell => "el",
        Lang::Eng => "en",
        Lang::Epo => "eo",
        Lang::Est => "et",
        Lang::Fin => "fi",
        Lang::Fra => "fr",
        Lang::Guj => "gu",
        Lang::Heb => "he",
        Lang::Hin => "hi",
        Lang::Hrv => "hr",
        Lang::Hun => "hu",
        Lang::Hye => "hy",
        Lang::Ind => "id",
        Lang::Ita => "it",
        Lang::Jpn => "ja",
        Lang::Kor => "ko",
        Lang::Lat => "la",
        Lang::Lav => "lv",
        Lang::Lit => "lt",
        Lang::Mar => "mr",
        Lang::Nld => "nl",
        Lang::Nob => "no",
        Lang::Pes => "fa",
        Lang::Pol => "pl",
        Lang::Por => "pt",
        Lang::Ron => "ro",
        Lang::Rus => "ru",
        Lang::Slk => "sk",
        Lang::Slv => "sl",
        Lang::Spa => "es",
        Lang::Swe => "sv",
        Lang::Tgl => "tl",
        Lang::Tha => "th",
        Lang::Tur => "tr",
        Lang::Ukr => "uk",
        Lang::Urd => "ur",
        Lang::Vie => "vi",
        Lang::Zul => "zu",
        _ => return None,
    })
}

fn stemming(language: Lang) -> Option<Algorithm> {
    Some(match language {
        Lang::Ara => Algorithm::Arabic,
        Lang::Dan => Algorithm::Danish,
        Lang::Nld => Algorithm::Dutch,
        Lang::Eng => Algorithm::English,
        Lang::Fin => Algorithm::Finnish,
        Lang::Fra => Algorithm::French,
        Lang::Deu => Algorithm::German,
        Lang::Ell => Algorithm::Greek,
        Lang::Hun => Algorithm::Hungarian,
        Lang::Ita => Algorithm::Italian,
        Lang::Nob => Algorithm::Norwegian,
        Lang::Por => Algorithm::Portuguese,
        Lang::Ron => Algorithm::Romanian,
        Lang::Rus => Algorithm::Russian,
        Lang::Spa => Algorithm::Spanish,
        Lang::Swe => Algorithm::Swedish,
        Lang::Tam => Algorithm::Tamil,
        Lang::Tur => Algorithm::Turkish,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_apart() {
        assert_eq!(
            detect("The committee said on Tuesday that it would publish the report next week."),
            Some(Lang::Eng)
        );
        assert_eq!(
            detect("Der Ausschuss teilte mit, dass er den Bericht in der nächsten Woche veröffentlicht."),
            Some(Lang::Deu)
        );
        assert_eq!(detect("委員会は来週に報告書を公表すると火曜日に発表しました。"), Some(Lang::Jpn));
        assert_eq!(detect("1234 5678 + 12"), None);
    }

    #[test]
    fn stop_words_vanish_and_inflections_meet() {
        let mut languages = Languages::default();
        let english = languages.of(Some(Lang::Eng));
        assert_eq!(english.content_token("the"), None);
        assert_eq!(english.content_token("houses"), english.content_token("house"));
        let german = languages.of(Some(Lang::Deu));
        assert_eq!(german.content_token("und"), None);
        assert_ne!(german.content_token("the"), None);
        assert_eq!(languages.of(None).content_token("houses"), Some(term_token(b"houses")));
    }

    #[test]
    fn every_listed_language_has_its_stop_words() {
        for language in Lang::all().iter().filter(|language| two_letters(**language).is_some()) {
            assert!(!stop_words_of(*language).is_empty(), "{language}");
        }
    }
}
