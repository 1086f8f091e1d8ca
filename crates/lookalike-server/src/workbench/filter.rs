//! Which groups are listed, and in which order: what stands in the address of a list, as SQL.

use lookalike::result::fold_words;
use rusqlite::types::Value;
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

/// An order: its name, what it is called, the column, and whether the largest comes first.
pub(super) struct Sort {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    column: &'static str,
    is_descending: bool,
}

pub(super) const SORTS: [Sort; 5] = [
    Sort { name: "size", label: "largest", column: "pages", is_descending: true },
    Sort { name: "weakest", label: "weakest link", column: "weakest", is_descending: false },
    Sort { name: "similarity", label: "least similar on average", column: "mean", is_descending: false },
    Sort { name: "sites", label: "most sites", column: "sites", is_descending: true },
    Sort { name: "site", label: "by site", column: "site", is_descending: false },
];

/// Part of a query, with its values.
#[derive(Debug, Default)]
pub(super) struct Condition {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl Condition {
    fn and(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) {
        if !self.sql.is_empty() {
            self.sql.push_str(" AND ");
        }
        self.sql.push_str(sql);
        self.values.extend(values);
    }
}

impl Filter {
    pub(super) fn sort(&self) -> &'static Sort {
        SORTS.iter().find(|sort| sort.name == self.sort).unwrap_or(&SORTS[0])
    }

    /// The least pages of a group: two, unless something else was asked for.
    pub(super) fn least(&self) -> i64 {
        self.least.trim().parse().unwrap_or(2).max(1)
    }

    fn most(&self) -> Option<i64> {
        self.most.trim().parse().ok()
    }

    /// The number of the list's page, from 0.
    pub(super) fn page(&self) -> i64 {
        self.page.trim().parse().unwrap_or(1i64).clamp(1, 1 << 40) - 1
    }

    pub(super) fn is_tag(&self, id: &i64) -> bool {
        self.tag == id.to_string()
    }

    /// Whether something is left out by it.
    pub(super) fn is_narrow(&self) -> bool {
        [&self.q, &self.tag, &self.site, &self.kind, &self.most].iter().any(|part| !part.trim().is_empty())
            || self.least() != 2
    }

    /// What must hold for a group `g`; `coder` is who asks, `has_texts` whether texts can be searched.
    pub(super) fn condition(&self, coder: Option<i64>, has_texts: bool) -> Condition {
        let mut condition = Condition::default();
        if self.least() > 1 {
            // Spelled out, as the indexes have it.
            condition.and("g.pages > 1", []);
        }
        if self.least() > 2 {
            condition.and("g.pages >= ?", [self.least().into()]);
        }
        if let Some(most) = self.most() {
            condition.and("g.pages <= ?", [most.into()]);
        }
        if let Some(kind) = KINDS.iter().find(|kind| kind.0 == self.kind) {
            condition.and("g.kinds & ? <> 0", [kind.2.into()]);
        }
        let site = self.site.trim();
        if !site.is_empty() {
            condition.and("g.n IN (SELECT grp FROM grp_site WHERE site = ?)", [site.to_owned().into()]);
        }
        // Nobody has tagged anything as somebody without a name.
        let coder = coder.unwrap_or(0);
        match self.tag.as_str() {
            "todo" => {
                condition.and("NOT EXISTS (SELECT 1 FROM grp_tag t WHERE t.grp = g.n AND t.coder = ?)", [coder.into()]);
            }
            "mine" => {
                condition.and("EXISTS (SELECT 1 FROM grp_tag t WHERE t.grp = g.n AND t.coder = ?)", [coder.into()]);
            }
            "any" => condition.and("EXISTS (SELECT 1 FROM grp_tag t WHERE t.grp = g.n)", []),
            tag => {
                if let Ok(tag) = tag.parse::<i64>() {
                    condition.and("g.n IN (SELECT grp FROM grp_tag WHERE tag = ?)", [tag.into()]);
                }
            }
        }
        if !self.q.trim().is_empty() {
            let mut tables = vec![if has_texts { "grp_words" } else { "grp_names" }];
            if self.least() < 2 {
                tables.push("single_names");
            }
            let words = match_expression(&self.q);
            let parts: Vec<String> =
                tables.iter().map(|table| format!("SELECT rowid FROM {table} WHERE {table} MATCH ?")).collect();
            let values: Vec<Value> = tables.iter().map(|_| words.clone().into()).collect();
            if words.is_empty() {
                condition.and("FALSE", []);
            } else {
                condition.and(&format!("g.n IN ({})", parts.join(" UNION ALL ")), values);
            }
        }
        if condition.sql.is_empty() {
            condition.sql.push_str("TRUE");
        }
        condition
    }

    /// The order of groups `g`, forwards or backwards.
    pub(super) fn order(&self, is_backwards: bool) -> String {
        let Sort { column, is_descending, .. } = self.sort();
        let (by, then) = (direction(*is_descending != is_backwards), direction(is_backwards));
        format!("g.{column} {by}, g.n {then}")
    }

    /// What holds for the groups behind one, or before it; takes its value in the order twice, then its number.
    pub(super) fn beyond(&self, is_backwards: bool) -> String {
        let Sort { column, is_descending, .. } = self.sort();
        let by = if *is_descending != is_backwards { "<" } else { ">" };
        let then = if is_backwards { "<" } else { ">" };
        format!("(g.{column} {by} ? OR g.{column} IS ? AND g.n {then} ?)")
    }

    pub(super) fn column(&self) -> &'static str {
        self.sort().column
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

fn direction(is_descending: bool) -> &'static str {
    if is_descending { "DESC" } else { "ASC" }
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
