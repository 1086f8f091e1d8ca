//! Which language a page is in, and what follows from it: stop words and stems.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};
pub use whatlang::Lang;

use crate::page::Token;
use crate::text::term::{TokenHasher, term_token};
use crate::text::tokenize::{Tokenizer, Words};

/// Bytes of a page that are looked at.
const SAMPLE_BYTES: usize = 4096;
/// Letters below which nothing is said.
const FEW_LETTERS: usize = 20;

/// Tokens below which no language is sure.
const LINE_TOKENS: usize = 30;

/// Tokens of a page that are looked at.
const SAMPLE_TOKENS: usize = 2000;
/// Share of the tokens that must be function words of a language for them to decide.
const FUNCTION_WORD_SHARE: f64 = 0.1;

/// The language of a page, where it can be detected. Its function words decide if they are many and
/// plainly of one language; else the trigrams in the middle of the text do: pages begin and end with
/// frames.
#[must_use]
pub fn detect(text: &str, tokens: &[Token]) -> Option<Lang> {
    by_function_words(tokens).or_else(|| by_trigrams(text))
}

/// The same where it is sure: told from more than a line, and not a guess that a few other words would change.
#[must_use]
pub fn detect_surely(text: &str, tokens: &[Token]) -> Option<Lang> {
    if tokens.len() < LINE_TOKENS {
        return None;
    }
    let by_trigrams = || whatlang::detect(sample(text)).filter(whatlang::Info::is_reliable).map(|found| found.lang());
    by_function_words(tokens).or_else(by_trigrams)
}

/// A language by its code (`eng`) or its English name.
#[must_use]
pub fn by_name(name: &str) -> Option<Lang> {
    Lang::from_code(name.to_lowercase())
        .or_else(|| Lang::all().iter().copied().find(|language| language.eng_name().eq_ignore_ascii_case(name)))
}

fn by_function_words(tokens: &[Token]) -> Option<Lang> {
    let from = tokens.len().saturating_sub(SAMPLE_TOKENS) / 2;
    let sample = &tokens[from..tokens.len().min(from + SAMPLE_TOKENS)];
    let mut counts = [0u32; 2 * LANES];
    let masks = language_masks();
    for tokens in sample.chunks(MOST_LANE) {
        // Every language counts in a byte of its own.
        let (mut first, mut second) = (0u64, 0u64);
        for mask in tokens.iter().map(|&token| usize::from(masks.of(token))) {
            first += SPREAD[mask % SPREAD.len()];
            second += SPREAD[mask / SPREAD.len()];
        }
        let lanes = first.to_le_bytes().into_iter().take(LANES).chain(second.to_le_bytes().into_iter().take(LANES));
        counts.iter_mut().zip(lanes).for_each(|(count, lane)| *count += u32::from(lane));
    }
    let counts = &counts[..FUNCTION_WORDS.len()];
    let (best, &most) = counts.iter().enumerate().max_by_key(|(at, count)| (**count, std::cmp::Reverse(*at)))?;
    let second = counts.iter().enumerate().filter(|(at, _)| *at != best).map(|(_, count)| *count).max()?;
    let is_plain = f64::from(most) >= FUNCTION_WORD_SHARE * sample.len() as f64 && most >= 2 * second && most >= 4;
    is_plain.then_some(FUNCTION_WORDS[best].0)
}

/// Languages that are counted in one word of bytes.
const LANES: usize = 7;
/// What a byte can count to.
const MOST_LANE: usize = 255;
const _: () = assert!(FUNCTION_WORDS.len() <= 2 * LANES);

/// The bits of a number, a byte each.
const SPREAD: [u64; 1 << LANES] = {
    let mut spread = [0; 1 << LANES];
    let mut bits = 0;
    while bits < spread.len() {
        let mut lane = 0;
        while lane < LANES {
            spread[bits] |= ((bits >> lane & 1) as u64) << (8 * lane);
            lane += 1;
        }
        bits += 1;
    }
    spread
};

/// For each function word the languages that have it, a bit each. Looked into once a token: a table
/// with open addressing and many empty slots, small enough for the nearest cache.
pub struct LanguageMasks(Vec<Slot>);

/// The upper bits of a token, and below them the languages that have it: half as many bytes as both by themselves.
type Slot = u64;

/// The bits of a slot that say which languages.
const MASK: Slot = (1 << FUNCTION_WORDS.len()) - 1;

const SLOTS: usize = 2048;

impl LanguageMasks {
    fn new() -> LanguageMasks {
        let mut slots: Vec<Slot> = vec![0; SLOTS];
        for (at, (_, words)) in FUNCTION_WORDS.iter().enumerate() {
            for word in words.split(' ') {
                let token = term_token(word.as_bytes());
                let mut slot = first_slot(token);
                while slots[slot] != 0 && (slots[slot] ^ token) & !MASK != 0 {
                    slot = (slot + 1) % SLOTS;
                }
                slots[slot] = token & !MASK | slots[slot] & MASK | 1 << at;
            }
        }
        LanguageMasks(slots)
    }

    /// The languages of a function word, bits in the order of [`FUNCTION_WORDS`]; 0 for other words.
    #[inline]
    #[must_use]
    pub fn of(&self, token: Token) -> u16 {
        let mut slot = first_slot(token);
        loop {
            let known = self.0[slot];
            if (known ^ token) & !MASK == 0 || known == 0 {
                #[allow(clippy::cast_possible_truncation)] // there are fewer languages than bits
                return (known & MASK) as u16;
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

#[inline]
fn first_slot(token: Token) -> usize {
    usize::try_from(token % SLOTS as u64).unwrap_or(0)
}

/// The one table of function words.
pub fn language_masks() -> &'static LanguageMasks {
    static MASKS: LazyLock<LanguageMasks> = LazyLock::new(LanguageMasks::new);
    &MASKS
}

/// The middle of a text.
fn sample(text: &str) -> &str {
    let from = text.len().saturating_sub(SAMPLE_BYTES) / 2;
    &text[text.floor_char_boundary(from)..text.floor_char_boundary(from + SAMPLE_BYTES)]
}

fn by_trigrams(text: &str) -> Option<Lang> {
    let sample = sample(text);
    if sample.chars().filter(|c| c.is_alphabetic()).take(FEW_LETTERS).count() < FEW_LETTERS {
        return None;
    }
    whatlang::detect_lang(sample)
}

/// Words that carry sentences and seldom stand in menus.
pub const FUNCTION_WORDS: [(Lang, &str); 14] = [
    (
        Lang::Eng,
        "a an and are as at be been but by for from had has have he his in is it its not of on said she that the their they this to was were which who will with would",
    ),
    (
        Lang::Deu,
        "als auch auf aus bei bis das dass dem den der des die durch ein eine einem einen einer er es für hat im in ist mit nach nicht noch sich sie sind um und von vor war werden wie wird wurde zu zum zur über",
    ),
    (
        Lang::Fra,
        "a au aux avec ce cette dans de des du elle en est et il la le les leur mais ne on ont ou par pas plus pour qu que qui sa se ses son sont sur un une été",
    ),
    (
        Lang::Spa,
        "a al como con de del el ella en entre era es esta este fue ha han la las le lo los más no para pero por que se sin sobre son su sus un una y",
    ),
    (
        Lang::Ita,
        "a al alla anche che ci come con da dal de del della delle di e ha hanno i il in la le lo ma nel nella non per più si sono su sua suo un una è",
    ),
    (
        Lang::Por,
        "a ao aos as com como da das de do dos e em entre era foi mais mas na nas no nos não o os para pela pelo por que se sem ser seu sua são um uma é",
    ),
    (
        Lang::Nld,
        "aan als bij dat de der die door een en er het hij in is maar met na naar niet nog ook of om op over te tot uit van voor was werd worden wordt ze zijn",
    ),
    (
        Lang::Swe,
        "att av de den det efter en ett för från han har hon i inte kan man med men och om på sig ska som till under var vid är",
    ),
    (
        Lang::Dan,
        "af at de den der det efter en er et for fra han har hun i ikke kan man med men og om på sig skal som til var ved vil",
    ),
    (
        Lang::Pol,
        "a ale był było być co czy dla do i jak jako jego jest już na nie o od oraz po przez przy się są tak także to w we z za ze że",
    ),
    (
        Lang::Ces,
        "a aby ale by byl bylo být do i jak jako jeho je jsou k na o od po pod pro při s se si že to u v ve z za",
    ),
    (
        Lang::Rus,
        "а без был была было быть в во все для до его если же за и из или их к как который на не но о он она они от по при с так также то у что это",
    ),
    (Lang::Jpn, "が から こと する て で です と という な ない に の は へ ます まで も や よう より れる を 年 日"),
    (
        Lang::Cmn,
        "不 与 个 中 为 也 了 于 从 他 他们 以 会 但 到 和 在 地 对 将 就 已 并 我们 把 是 有 的 着 而 说 被 让 这 还 都",
    ),
];

/// Bits of a token that say where its stem is remembered: 2 MiB, in which nearly all words of a language are found again. To make a
/// stem takes far longer than to fetch one from there.
const KNOWN_BITS: u32 = 15;
/// Words that are remembered in one place: as many as fill a cache line.
const KNOWN_WAYS: usize = 4;
/// Stands for the stem of a stop word.
const STOP: Token = Token::MAX;

type TokenSet = HashSet<Token, BuildHasherDefault<TokenHasher>>;

/// What is done to words of one language.
pub struct LanguageWords {
    stop_words: TokenSet,
    stemmer: Option<Stemmer>,
    /// Words met before, with their stems: most words of a page are.
    known: Vec<Known>,
    /// The stems of a page's words.
    stems: Vec<Token>,
}

/// Words of one place with their stems.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Known([(Token, Token); KNOWN_WAYS]);

/// Places for all words, filled with tokens that belong to other places.
fn nothing_known() -> Vec<Known> {
    let mut known = vec![Known([(0, STOP); KNOWN_WAYS]); 1 << KNOWN_BITS];
    known[0] = Known([(Token::MAX, STOP); KNOWN_WAYS]);
    known
}

impl LanguageWords {
    fn new(language: Option<Lang>) -> LanguageWords {
        let listed = language.and_then(two_letters).map_or(&[][..], stop_words::get);
        // Folded as pages are; "don't" is two terms of a page, each in the list on its own.
        let mut tokenizer = Tokenizer::new(false);
        let mut stop_words = Vec::new();
        listed.iter().for_each(|word| tokenizer.tokenize(word, &mut stop_words));
        let stemmer = language.and_then(stemming).map(Stemmer::create);
        LanguageWords {
            stop_words: stop_words.into_iter().collect(),
            known: if stemmer.is_some() { nothing_known() } else { Vec::new() },
            stemmer,
            stems: Vec::new(),
        }
    }

    /// For each word the token of its stem; nothing for a stop word.
    pub fn content_tokens(&mut self, words: &Words) -> impl Iterator<Item = Option<Token>> {
        self.stems.clear();
        // All of them before anybody looks at one: nothing has to wait until a stem has come from memory.
        for (token, word) in words.with_tokens() {
            let stem = self.stem(token, word);
            self.stems.push(stem);
        }
        self.stems.iter().map(|&stem| (stem != STOP).then_some(stem))
    }

    /// The token of the stem of a word, of which the token is known.
    fn stem(&mut self, token: Token, word: &[u8]) -> Token {
        let Some(stemmer) = &self.stemmer else {
            return if self.stop_words.contains(&token) { STOP } else { token };
        };
        let Known(known) = &mut self.known[usize::try_from(token >> (64 - KNOWN_BITS)).unwrap_or(0)];
        // All are looked at: nobody could guess which one it is.
        let (mut is_known, mut stem) = (false, STOP);
        for &(met, its_stem) in &*known {
            is_known |= met == token;
            stem = if met == token { its_stem } else { stem };
        }
        if !is_known {
            if !self.stop_words.contains(&token) {
                stem = term_token(stemmer.stem(str::from_utf8(word).unwrap_or_default()).as_bytes());
            }
            known.rotate_right(1);
            known[0] = (token, stem);
        }
        stem
    }
}

/// The words of all languages met so far; one per thread.
#[derive(Default)]
pub struct Languages(HashMap<Option<Lang>, LanguageWords>);

impl Languages {
    /// What is known about a language.
    pub fn of(&mut self, language: Option<Lang>) -> &mut LanguageWords {
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
        for (text, language) in [
            ("The committee said on Tuesday that it would publish the report next week.", Some(Lang::Eng)),
            ("Der Ausschuss teilte mit, dass er den Bericht in der nächsten Woche vorlegt.", Some(Lang::Deu)),
            ("委員会は来週に報告書を公表すると火曜日に発表しました。", Some(Lang::Jpn)),
            ("1234 5678 + 12", None),
        ] {
            let mut tokens: Vec<Token> = Vec::new();
            Tokenizer::new(false).tokenize(text, &mut tokens);
            assert_eq!(detect(text, &tokens), language, "{text}");
            assert_eq!(by_trigrams(text), language, "{text}");
        }
    }

    #[test]
    fn a_line_is_not_enough_to_be_sure_and_a_list_of_names_never_is() {
        let surely = |text: &str| {
            let mut tokens: Vec<Token> = Vec::new();
            Tokenizer::new(false).tokenize(text, &mut tokens);
            detect_surely(text, &tokens)
        };
        let line = "The committee said on Tuesday that it would publish the report next week.";
        assert_eq!(surely(line), None);
        let words: Vec<&str> = line.split(' ').cycle().take(LINE_TOKENS + 5).collect();
        assert_eq!(surely(&words.join(" ")), Some(Lang::Eng));
        // A guess is made of these, and another one when two are left out.
        let names = "Anna Berta Carla Dora Emil Frida Gustav Heinz Ida Jakob Karl Lena Mona Nora Otto Paula Quirin Rosa Sven Tina Ute Vera Willi Xaver Yara Zoe Arno Bruno Clara Doris Elsa";
        assert_eq!(surely(names), None);
    }

    #[test]
    fn a_frame_in_another_language_does_not_decide() {
        let menu = "Startseite Nachrichten Sport Wetter Kontakt Impressum Datenschutz ".repeat(20);
        let story =
            "The bridge was opened by the mayor on Friday, and it is the first of its kind in the county. ".repeat(6);
        let mut tokens: Vec<Token> = Vec::new();
        Tokenizer::new(false).tokenize(&(menu + &story), &mut tokens);
        assert_eq!(by_function_words(&tokens), Some(Lang::Eng));
    }

    #[test]
    fn function_words_are_counted_beyond_what_a_byte_holds() {
        let tokens = |words: &str| words.split(' ').map(|word| term_token(word.as_bytes())).collect::<Vec<Token>>();
        let (english, polish) = (tokens("the and which"), tokens("się przez jest"));
        for (more, less) in [(&english, &polish), (&polish, &english)] {
            let page = [more.repeat(201), less.repeat(100)].concat();
            assert_eq!(by_function_words(&page), Some(if more == &english { Lang::Eng } else { Lang::Pol }));
            let page = [more.repeat(199), less.repeat(100)].concat();
            assert_eq!(by_function_words(&page), None, "not twice as many");
        }
    }

    #[test]
    fn stop_words_vanish_and_inflections_meet() {
        let mut languages = Languages::default();
        let mut content_token = |language, word: &str| {
            let mut words = Words::default();
            Tokenizer::new(false).tokenize(word, &mut words);
            languages.of(language).content_tokens(&words).next().flatten()
        };
        let (english, german, greek) = (Some(Lang::Eng), Some(Lang::Deu), Some(Lang::Ell));
        assert_eq!(content_token(english, "the"), None);
        assert_eq!(content_token(english, "houses"), content_token(english, "house"));
        assert_eq!(content_token(greek, "τουσ"), None, "folded as pages are");
        assert_eq!(content_token(german, "und"), None);
        assert_ne!(content_token(german, "the"), None);
        assert_eq!(content_token(None, "houses"), Some(term_token(b"houses")));
    }

    #[test]
    fn what_is_remembered_is_what_was_found() {
        let mut languages = Languages::default();
        let english = languages.of(Some(Lang::Eng));
        let stemmer = Stemmer::create(Algorithm::English);
        // A word with the token 0, which is what empty places have.
        let zero = "swdneaaaahc2sz16";
        assert_eq!(term_token(zero.as_bytes()), 0);
        assert_eq!(english.stem(0, zero.as_bytes()), term_token(stemmer.stem(zero).as_bytes()));
        // More words than are remembered, each twice in a row and again after all others.
        for number in (0..200_000).chain(0..200_000) {
            let word = format!("w{number}ing");
            let token = term_token(word.as_bytes());
            for _ in 0..2 {
                let wanted = term_token(stemmer.stem(&word).as_bytes());
                assert_eq!(english.stem(token, word.as_bytes()), wanted, "{word}");
            }
        }
    }

    #[test]
    fn every_listed_language_has_its_stop_words() {
        for language in Lang::all().iter().filter(|language| two_letters(**language).is_some()) {
            assert!(!stop_words_of(*language).is_empty(), "{language}");
        }
    }
}
