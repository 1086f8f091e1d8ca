//! Which groups are listed, and in which order: what stands in the address of a list.

use lookalike::result::fold_words;
use serde::Deserialize;

use super::catalogue::KINDS;

/// What is asked for, as the address has it. Whatever cannot be understood is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Filter {
    /// Words that a group must have in a title or text.
    pub(super) q: String,
    /// One of [`SORTS`].
    pub(super) sort: String,
    /// The number of a tag, or `todo`, `mine`, `any`.
    pub(super) tag: String,
    /// A site that one of its pages is on.
    pub(super) site: String,
    /// A kind that one of its pages is of.
    pub(super) kind: String,
    /// The least and the most pages.
    pub(super) least: String,
    pub(super) most: String,
    /// The number of the list's page, from 1.
    pub(super) page: String,
}

/// An order: its name, and what it is called.
pub(super) struct Sort {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
}

pub(super) const SORTS: [Sort; 5] = [
    Sort { name: "size", label: "largest" },
    Sort { name: "weakest", label: "weakest link" },
    Sort { name: "similarity", label: "least similar on average" },
    Sort { name: "sites", label: "most sites" },
    Sort { name: "site", label: "by site" },
];

impl Filter {
    /// The place of its order among [`SORTS`].
    pub(super) fn sort_number(&self) -> usize {
        SORTS.iter().position(|sort| sort.name == self.sort).unwrap_or(0)
    }

    /// The least pages of a group: two, unless something else was asked for.
    pub(super) fn least(&self) -> u32 {
        self.least.trim().parse().unwrap_or(2).max(1)
    }

    /// The most pages of a group.
    pub(super) fn most(&self) -> u32 {
        self.most.trim().parse().unwrap_or(u32::MAX)
    }

    /// The kind that one of its pages must be of; 0 for any.
    pub(super) fn kind_bit(&self) -> u8 {
        KINDS.iter().find(|kind| kind.0 == self.kind).map_or(0, |kind| kind.2)
    }

    /// The number of the list's page, from 0.
    pub(super) fn page(&self) -> i64 {
        self.page.trim().parse().unwrap_or(1i64).clamp(1, 1 << 32) - 1
    }

    pub(super) fn is_tag(&self, id: &i64) -> bool {
        self.tag == id.to_string()
    }

    /// Whether something is left out by it.
    pub(super) fn is_narrow(&self) -> bool {
        [&self.q, &self.tag, &self.site, &self.kind, &self.most].iter().any(|part| !part.trim().is_empty())
            || self.least() != 2
    }

    /// As it stands in an address, on another page of the list.
    pub(super) fn address(&self, page: Option<i64>) -> String {
        let page = page.map(|page| page.to_string()).unwrap_or_default();
        let parts = [
            ("q", &self.q),
            ("sort", &self.sort),
            ("tag", &self.tag),
            ("site", &self.site),
            ("kind", &self.kind),
            ("least", &self.least),
            ("most", &self.most),
            ("page", &page),
        ];
        let given = parts.iter().filter(|part| !part.1.trim().is_empty());
        let pairs: Vec<String> = given.map(|(name, value)| format!("{name}={}", encode(value))).collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }
}

/// A text as it stands in an address.
pub(super) fn encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Words, "phrases in quotes" and beginnings of words* as SQLite's search has them; all of them must be there.
pub(super) fn match_expression(text: &str) -> String {
    let mut parts = Vec::new();
    for (number, part) in text.split('"').enumerate() {
        if number % 2 == 1 {
            let phrase = fold_words(part);
            parts.extend((!phrase.trim().is_empty()).then(|| format!("\"{}\"", phrase.trim())));
            continue;
        }
        for word in part.split_whitespace() {
            let folded = fold_words(word);
            let star = if word.ends_with('*') { "*" } else { "" };
            // A word with a hyphen, or one of a script without spaces, is several in a row.
            parts.extend((!folded.trim().is_empty()).then(|| format!("\"{}\"{star}", folded.trim())));
        }
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_a_search_that_cannot_be_misread() {
        assert_eq!(match_expression("Ferry \"left the Harbour\" stor*"), "\"ferry\" \"left the harbour\" \"stor\"*");
        assert_eq!(match_expression("a-b OR NEAR(x)"), "\"a b\" \"or\" \"near x\"");
        assert_eq!(match_expression("\"unclosed phrase"), "\"unclosed phrase\"");
        assert_eq!(match_expression("!? \"\" *"), "");
    }

    #[test]
    fn addresses_are_what_was_asked_for() {
        let filter =
            Filter { q: "a&b ü".to_owned(), sort: "weakest".to_owned(), page: "3".to_owned(), ..Filter::default() };
        assert_eq!(filter.address(Some(4)), "?q=a%26b%20%C3%BC&sort=weakest&page=4");
        assert_eq!(Filter::default().address(None), "");
        assert!(!Filter::default().is_narrow() && filter.is_narrow());
    }
}
