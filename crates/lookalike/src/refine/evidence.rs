//! What shows that two results are the same page: their texts, and where these are short, titles and URLs.
//!
//! In: the titles, URLs and short texts of a list. Out: for two results, which of them agree. The rule, in the order in
//! which it is applied:
//!
//! 1. texts that the method takes for near-duplicates are the same page;
//! 2. where one text is short (a snippet), the same URL is the same page, whatever its variant; so is the same title if it names a page
//!    (two words that are not of a kind of page, and no other page of the site in the list has it) and the two are not two pages of
//!    one site or of its editions in two languages, if it has one such
//!    word and the last part of both paths is the same, or if it names a kind of page (`Introduction`) and the last two parts of both paths are
//!    the same, or the texts have eight consecutive words in common;
//! 3. where both texts are long, the same title or URL lets less similar texts suffice.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::names::{Named, named};
use crate::page::Token;
use crate::refine::SearchResult;
use crate::refine::address::Address;
use crate::refine::title::{Naming, Title, WordReader, titles, without_repeated};

named! {
    /// What can show that two results are the same page.
    pub enum Evidence {
        /// The texts, as the method compares them
        Text = "text",
        /// The titles
        Title = "title",
        /// The URLs
        Url = "url",
    }
}

/// Some of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EvidenceSet {
    text: bool,
    title: bool,
    url: bool,
}

impl EvidenceSet {
    /// The texts alone.
    pub const TEXT: EvidenceSet = EvidenceSet { text: true, title: false, url: false };
    /// All there is.
    pub const ALL: EvidenceSet = EvidenceSet { text: true, title: true, url: true };

    /// These alone.
    #[must_use]
    pub fn of(evidence: &[Evidence]) -> EvidenceSet {
        let has = |one: Evidence| evidence.contains(&one);
        EvidenceSet { text: has(Evidence::Text), title: has(Evidence::Title), url: has(Evidence::Url) }
    }

    /// Whether it has this one.
    #[must_use]
    pub fn has(self, evidence: Evidence) -> bool {
        match evidence {
            Evidence::Text => self.text,
            Evidence::Title => self.title,
            Evidence::Url => self.url,
        }
    }

    /// In the order of the list.
    pub fn iter(self) -> impl Iterator<Item = Evidence> {
        Evidence::LIST.iter().map(|row| row.0).filter(move |one| self.has(*one))
    }
}

impl fmt::Display for EvidenceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Named::name).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for EvidenceSet {
    type Err = String;

    /// Names, separated by commas; texts always count.
    fn from_str(text: &str) -> Result<EvidenceSet, String> {
        let named: Vec<Evidence> = text.split(',').map(|name| name.trim().parse()).collect::<Result<_, String>>()?;
        if !named.contains(&Evidence::Text) {
            return Err("must contain text: titles and URLs only add to what the texts say".to_owned());
        }
        Ok(EvidenceSet::of(&named))
    }
}

impl Serialize for EvidenceSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// Words that short texts have in common, one behind the other, if they are windows of the same page.
const COMMON_WORDS: usize = 8;
/// Parts at the end of two paths that are the same if the title says little.
const COMMON_PATH: usize = 2;

/// Titles, URLs and texts of a list.
pub(super) struct Signs {
    titles: Vec<Option<Title>>,
    addresses: Vec<Option<Address>>,
    texts: Vec<Vec<Token>>,
    used: EvidenceSet,
}

impl Signs {
    /// Reads the results of a list; `is_short` says which texts are short.
    pub(super) fn of(results: &[SearchResult], used: EvidenceSet, is_short: impl Fn(usize) -> bool) -> Signs {
        let mut reader = WordReader::new();
        let addresses: Vec<Option<Address>> =
            results.iter().map(|result| result.url.as_deref().and_then(Address::of)).collect();
        let hosts: Vec<Option<&str>> =
            addresses.iter().map(|address| address.as_ref().map(|address| address.host.as_str())).collect();
        let paths: Vec<&[String]> =
            addresses.iter().map(|address| address.as_ref().map_or(&[][..], |address| &address.path)).collect();
        let given: Vec<Option<&str>> = results.iter().map(|result| result.title.as_deref()).collect();
        let mut titles = titles(&given, &hosts, &mut reader);
        without_repeated(&mut titles, &hosts, &paths);
        let text = |(at, result): (usize, &SearchResult)| match &result.text {
            Some(text) if used.title && is_short(at) => reader.tokens(text),
            _ => Vec::new(),
        };
        let texts = results.iter().enumerate().map(text).collect();
        Signs { titles, addresses, texts, used }
    }

    /// What agrees so well that two results are the same page, if one of the texts is short.
    pub(super) fn decide(&self, left: usize, right: usize) -> Option<EvidenceSet> {
        if self.have_same_url(left, right) {
            return Some(EvidenceSet::of(&[Evidence::Url]));
        }
        let naming = self.titles_agree(left, right)?;
        let addresses = self.addresses[left].as_ref().zip(self.addresses[right].as_ref());
        // Two pages of one site, or of one site in two languages, may well have the same title.
        let are_neighbours = addresses.is_some_and(|(a, b)| a.is_neighbour(b));
        if naming == Naming::Page && !are_neighbours {
            return Some(EvidenceSet::of(&[Evidence::Title]));
        }
        let common_end = match (&self.addresses[left], &self.addresses[right]) {
            (Some(a), Some(b)) if self.used.url && !a.is_in_another_language(b) => a.common_end(b),
            _ => 0,
        };
        if common_end >= if naming == Naming::Kind { COMMON_PATH } else { 1 } {
            return Some(EvidenceSet::of(&[Evidence::Title, Evidence::Url]));
        }
        let is_window = has_common_run(&self.texts[left], &self.texts[right], COMMON_WORDS);
        is_window.then(|| EvidenceSet::of(&[Evidence::Title, Evidence::Text]))
    }

    /// What agrees at all: enough where the texts are long, and similar besides.
    pub(super) fn supports(&self, left: usize, right: usize) -> Option<EvidenceSet> {
        if self.have_same_url(left, right) {
            return Some(EvidenceSet::of(&[Evidence::Text, Evidence::Url]));
        }
        self.titles_agree(left, right).map(|_| EvidenceSet::of(&[Evidence::Text, Evidence::Title]))
    }

    fn have_same_url(&self, left: usize, right: usize) -> bool {
        match (&self.addresses[left], &self.addresses[right]) {
            (Some(a), Some(b)) => self.used.url && a.key == b.key,
            _ => false,
        }
    }

    fn titles_agree(&self, left: usize, right: usize) -> Option<Naming> {
        match (&self.titles[left], &self.titles[right]) {
            (Some(a), Some(b)) if self.used.title => a.agrees(b),
            _ => None,
        }
    }
}

/// Whether two texts have so many consecutive words in common.
fn has_common_run(left: &[Token], right: &[Token], length: usize) -> bool {
    left.windows(length).any(|run| right.windows(length).any(|other| run == other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(url: &str, title: &str, text: &str) -> SearchResult {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        SearchResult { url: given(url), title: given(title), text: given(text), ..SearchResult::default() }
    }

    fn decided(used: EvidenceSet, left: &SearchResult, right: &SearchResult) -> Option<String> {
        let signs = Signs::of(&[left.clone(), right.clone()], used, |_| true);
        signs.decide(0, 1).map(|found| found.to_string())
    }

    #[test]
    fn each_part_of_the_rule_decides() {
        let window = "one two three four five six seven eight nine";
        for (left, right, found) in [
            (result("http://a.org/x?utm_source=1", "A", ""), result("https://www.a.org/x", "B", ""), Some("url")),
            (
                result("http://a.org/x", "Night ferry returns", "a"),
                result("http://b.org/y", "Night Ferry Returns | B", "b"),
                Some("title"),
            ),
            (
                result("http://a.org/13/remarks.html", "Remarks", ""),
                result("http://b.org/remarks", "Remarks", ""),
                Some("title,url"),
            ),
            (result("http://a.org/13/remarks.html", "Remarks", ""), result("http://b.org/r", "Remarks", ""), None),
            (
                result("http://a.org/lib/intro", "Introduction", ""),
                result("http://b.org/2/lib/intro", "Introduction", ""),
                Some("title,url"),
            ),
            (
                result("http://a.org/lib/intro", "Introduction", ""),
                result("http://b.org/other/intro", "Introduction", ""),
                None,
            ),
            (
                result("", "Introduction", &format!("x {window}")),
                result("", "Introduction", &format!("{window} y z")),
                Some("text,title"),
            ),
            (result("", "Introduction", window), result("", "Overview", window), None),
            (result("", "", window), result("", "", window), None),
        ] {
            assert_eq!(decided(EvidenceSet::ALL, &left, &right).as_deref(), found, "{left:?} {right:?}");
            assert_eq!(decided(EvidenceSet::TEXT, &left, &right), None, "titles and URLs are not asked");
        }
    }

    #[test]
    fn sets_have_names() {
        assert_eq!("url, text".parse::<EvidenceSet>().unwrap().to_string(), "text,url");
        assert_eq!(serde_json::to_string(&EvidenceSet::ALL).unwrap(), r#"["text","title","url"]"#);
        assert!("title".parse::<EvidenceSet>().unwrap_err().contains("must contain text"));
        assert!("text,date".parse::<EvidenceSet>().unwrap_err().contains("one of text, title, url"));
    }
}
