//! Titles of a list of results: what of each names the page.
//!
//! In: titles as search engines show them, with the name of the site and perhaps cut. Out: the words that name the page, and how much they
//! say: `Introduction` is the title of a thousand pages.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use crate::page::Token;
use crate::text::html::extract;
use crate::text::page_text::PageText;
use crate::text::tokenize::{Tokenizer, Words};

/// Words that name a kind of page rather than a page.
const PLAIN_WORDS: &str = "\
    a an the of and or to in for on with by from at is are as your how what s \
    introduction intro overview index home homepage welcome contents table reference references manual guide guides tutorial \
    tutorials installation install installing getting started start quick quickstart release releases notes changelog changes \
    change log new news latest history faq faqs frequently asked questions example examples glossary rationale design acknowledgements \
    acknowledgments credits license licence copyright legal privacy policy terms imprint configuration configuring settings options \
    about contact documentation docs doc api search results help support features usage user users untitled page document readme login \
    sign log please continue just moment loading redirecting attention required access denied forbidden verify verification captcha cookies \
    cookie javascript enable browser session expired unavailable maintenance register main appendix summary conclusion conclusions background motivation requirements basics concepts definitions \
    bibliography preface foreword chapter section part notation error found not download downloads blog archive archives category \
    startseite inhalt inhaltsverzeichnis einleitung einführung übersicht impressum hilfe anleitung handbuch \
    accueil introduction sommaire aide contactez inicio índice introducción ayuda guía";
/// Words in a title from which on nothing else has to agree, even if the site has another page of this title.
const LONG_TITLE: usize = 4;
/// Specific words from which on a title names a page.
const NAMING_WORDS: usize = 2;
/// Words that a cut title must show to be compared.
const CUT_WORDS: usize = 5;
/// So many pages of a site with the same first part in their titles: it is the name of the site.
const SITE_TITLES: usize = 3;

static SEPARATORS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\s+[—–|·•»-]+\s+|\s*\|\s*|\s+::\s+").expect("the expression is fixed"));
static PLAIN: LazyLock<HashSet<&str>> = LazyLock::new(|| PLAIN_WORDS.split_whitespace().collect());

/// The title of a result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Title {
    /// The words that name the page.
    pub(super) words: Vec<String>,
    /// The last of them, and what follows, may be missing.
    is_cut: bool,
    /// How much it says.
    says: Naming,
}

/// A title as it is shown.
struct ShownTitle {
    /// The words of each part, between separators.
    parts: Vec<Vec<String>>,
    /// Its end is missing.
    is_cut: bool,
}

/// How much a title says about which page it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Naming {
    /// What kind of page it is, or what several pages of the site are called.
    #[default]
    Kind,
    /// One word that is not of this kind.
    Word,
    /// The page.
    Page,
}

/// Titles → what of them names the page; `hosts` are those of the results.
pub(super) fn titles(titles: &[Option<&str>], hosts: &[Option<&str>], reader: &mut WordReader) -> Vec<Option<Title>> {
    let shown: Vec<Option<ShownTitle>> = titles.iter().map(|title| shown_title((*title)?, reader)).collect();
    // First part of a title → what stands behind it on the pages of one site, whatever the version.
    let mut behind: HashMap<_, HashSet<Vec<&str>>> = HashMap::new();
    for (at, title) in shown.iter().enumerate().filter_map(|(at, title)| Some((at, title.as_ref()?))) {
        if let [first, rest @ ..] = &title.parts[..]
            && !rest.is_empty()
        {
            let rest = rest.iter().flatten().map(String::as_str).filter(|word| !is_number(word)).collect();
            behind.entry((hosts[at], &first[..])).or_default().insert(rest);
        }
    }
    let naming = |(at, title): (usize, &Option<ShownTitle>)| {
        let ShownTitle { parts, is_cut } = title.as_ref()?;
        let (named, is_cut) = match &parts[..] {
            [] => return None,
            [only] => (only.clone(), *is_cut),
            [first, rest @ ..]
                if behind.get(&(hosts[at], &first[..])).is_some_and(|rests| rests.len() >= SITE_TITLES) =>
            {
                (rest.concat(), *is_cut)
            }
            // The name of the site comes last, and is what was cut.
            [named @ .., _] => (named.concat(), false),
        };
        Some(Title { says: says(&named), words: named, is_cut })
    };
    shown.iter().enumerate().map(naming).collect()
}

/// Titles that one site gives to several pages name none of them, unless they are long. `paths` are those of the results.
pub(super) fn without_repeated(titles: &mut [Option<Title>], hosts: &[Option<&str>], paths: &[&[String]]) {
    let mut pages: HashMap<(&str, Vec<String>), HashSet<&[String]>> = HashMap::new();
    for (at, title) in titles.iter().enumerate() {
        if let (Some(host), Some(title)) = (hosts[at], title) {
            pages.entry((host, title.words.clone())).or_default().insert(paths[at]);
        }
    }
    let repeated: HashSet<Vec<String>> =
        pages.into_iter().filter(|(_, paths)| paths.len() > 1).map(|((_, words), _)| words).collect();
    for title in titles.iter_mut().flatten() {
        if specific(&title.words) < LONG_TITLE && repeated.contains(&title.words) {
            title.says = Naming::Kind;
        }
    }
}

impl Title {
    /// How much two titles say together that are the same; nothing where they are not.
    pub(super) fn agrees(&self, other: &Title) -> Option<Naming> {
        let begins = |cut: &Title, whole: &Title| {
            // The last word may be cut, too.
            let (_, shown) = cut.words.split_last()?;
            (cut.is_cut && cut.words.len() >= CUT_WORDS && whole.words.starts_with(shown)).then_some(cut.says)
        };
        if self.words == other.words {
            return Some(self.says.min(other.says));
        }
        begins(self, other).or_else(|| begins(other, self))
    }
}

/// The parts of a title; none where it has no words.
fn shown_title(title: &str, reader: &mut WordReader) -> Option<ShownTitle> {
    let title = title.trim();
    let shown = title.trim_end_matches(['…', '.']).trim_end();
    let is_cut = title.ends_with('…') || title.ends_with("...");
    let shown = if is_cut { shown } else { title };
    let parts: Vec<Vec<String>> =
        SEPARATORS.split(shown).map(|part| reader.words(part)).filter(|words| !words.is_empty()).collect();
    (!parts.is_empty()).then_some(ShownTitle { parts, is_cut })
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit())
}

/// Words that do not only name a kind of page.
fn specific(words: &[String]) -> usize {
    words.iter().filter(|word| word.len() > 1 && !is_number(word) && !PLAIN.contains(word.as_str())).count()
}

fn says(words: &[String]) -> Naming {
    match specific(words) {
        0 => Naming::Kind,
        count if count < NAMING_WORDS => Naming::Word,
        _ => Naming::Page,
    }
}

/// Reads words out of titles and texts, with or without markup.
pub(super) struct WordReader {
    tokenizer: Tokenizer,
    words: Words,
    page: PageText,
}

impl WordReader {
    pub(super) fn new() -> WordReader {
        WordReader { tokenizer: Tokenizer::new(false), words: Words::default(), page: PageText::default() }
    }

    /// What is shown of a text.
    fn shown<'t>(page: &'t mut PageText, text: &'t str) -> &'t str {
        if !text.contains(['<', '&']) {
            return text;
        }
        extract(text, None, page);
        &page.text
    }

    fn words(&mut self, text: &str) -> Vec<String> {
        self.words.clear();
        self.tokenizer.tokenize(Self::shown(&mut self.page, text), &mut self.words);
        self.words.iter().map(str::to_owned).collect()
    }

    /// The words of a text, as numbers.
    pub(super) fn tokens(&mut self, text: &str) -> Vec<Token> {
        let mut tokens: Vec<Token> = Vec::new();
        self.tokenizer.tokenize(Self::shown(&mut self.page, text), &mut tokens);
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(shown: &[&str], host: &str) -> Vec<Title> {
        let given: Vec<Option<&str>> = shown.iter().map(|title| Some(*title)).collect();
        let hosts = vec![Some(host); shown.len()];
        titles(&given, &hosts, &mut WordReader::new()).into_iter().flatten().collect()
    }

    fn named(titles: &[Title]) -> Vec<String> {
        titles.iter().map(|title| title.words.join(" ")).collect()
    }

    #[test]
    fn the_name_of_the_site_is_no_part_of_the_title() {
        let last = of(
            &["csv — Reading tables — Python 3.11 documentation", "Storms | Herald", "Storms &amp; tides - Herald"],
            "a.org",
        );
        assert_eq!(named(&last), ["csv reading tables", "storms", "storms tides"]);
        let first = of(&["Herald - Ferry is late", "Herald - Bridge is shut", "Herald - Choir sings"], "a.org");
        assert_eq!(named(&first), ["ferry is late", "bridge is shut", "choir sings"]);
        let versions = of(&["Thin linking — Clang 13", "Thin linking — Clang 14", "Thin linking — Clang 15"], "a.org");
        assert_eq!(named(&versions), ["thin linking"; 3], "the same page of three editions");
    }

    #[test]
    fn some_titles_name_a_kind_of_page() {
        let says = |title: &str| of(&[title], "a.org")[0].says;
        for kind in [
            "Introduction",
            "Release Notes",
            "1.2. Getting Started — Manual",
            "Frequently Asked Questions",
            "Einführung",
        ] {
            assert_eq!(says(kind), Naming::Kind, "{kind}");
        }
        assert_eq!(says("Remarks | Site"), Naming::Word);
        assert_eq!(says("Introduction to Boost Lockfree"), Naming::Page);
        assert_eq!(says("夜の渡し船"), Naming::Page);
    }

    #[test]
    fn cut_titles_agree_with_whole_ones() {
        let titles = of(
            &[
                "Hospital drones cut the journey of blood samples to nine ...",
                "Hospital drones cut the journey of blood samples to nine minutes - Wire North",
                "Hospital drones cut the jour…",
                "Hospital drones cut the bill - Wire North",
                "Hospital …",
            ],
            "a.org",
        );
        assert_eq!(titles[0].agrees(&titles[1]), Some(Naming::Page));
        assert_eq!(titles[2].agrees(&titles[1]), Some(Naming::Page));
        assert_eq!(titles[3].agrees(&titles[1]), None);
        assert_eq!(titles[4].agrees(&titles[1]), None, "too little is shown");
    }

    #[test]
    fn titles_that_a_site_repeats_name_no_page() {
        let mut repeated: Vec<Option<Title>> = of(
            &[
                "Struct template value",
                "Struct template value",
                "Ferry returns after three winters",
                "Ferry returns after three winters",
            ],
            "a.org",
        )
        .into_iter()
        .map(Some)
        .collect();
        let paths: Vec<Vec<String>> = ["a", "b", "c", "d"].iter().map(|part| vec![(*part).to_owned()]).collect();
        let paths: Vec<&[String]> = paths.iter().map(Vec::as_slice).collect();
        without_repeated(&mut repeated, &[Some("a.org"); 4], &paths);
        let says: Vec<Naming> = repeated.iter().flatten().map(|title| title.says).collect();
        assert_eq!(
            says,
            [Naming::Kind, Naming::Kind, Naming::Page, Naming::Page],
            "a long title names a page all the same"
        );
    }
}
