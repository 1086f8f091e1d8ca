//! What people say belongs together: a file → judged pages and pairs.
//!
//! Three forms, recognised by their first line: lines of page and cluster with tabs between them, JSON lines with
//! the same fields, and pairs (`left`, `right`, and perhaps a `label`) in either notation. Lines are counted
//! from 1 in all complaints.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Error, Result};
use crate::read::plain::plain_text;

/// Which columns or fields are what; nothing: the usual names are tried.
#[derive(Debug, Clone, Default)]
pub struct GoldColumns {
    /// The page's id.
    pub page: Option<String>,
    /// The cluster.
    pub cluster: Option<String>,
    /// What kind of page it is, for a split of the scores.
    pub kind: Option<String>,
    /// The page's site, where URLs do not say it.
    pub site: Option<String>,
}

const PAGE_NAMES: &[&str] = &["page", "id", "path", "docno", "document", "url"];
const CLUSTER_NAMES: &[&str] = &["cluster", "group", "gold", "class"];
const KIND_NAMES: &[&str] = &["kind"];
const SITE_NAMES: &[&str] = &["site"];
const LEFT_NAMES: &[&str] = &["left", "a", "id_a", "page_a"];
const RIGHT_NAMES: &[&str] = &["right", "b", "id_b", "page_b"];
const LABEL_NAMES: &[&str] = &["label", "grade", "judgment"];

/// One judged page.
#[derive(Debug, Clone)]
pub struct GoldPage {
    /// Its id.
    pub id: String,
    /// The number of its cluster, where clusters are given.
    pub cluster: Option<u32>,
    /// Its kind.
    pub kind: Option<String>,
    /// Its site.
    pub site: Option<String>,
    /// The line it stands in.
    pub line: usize,
}

/// All that was judged.
#[derive(Debug, Clone, Default)]
pub struct Gold {
    /// Judged pages, in the order of the file.
    pub pages: Vec<GoldPage>,
    /// Names of the clusters, by number.
    pub clusters: Vec<String>,
    /// Judged pairs with their verdicts, where pairs are given: smaller number first.
    pub pairs: Option<HashMap<(u32, u32), bool>>,
    /// Whether pairs that are not listed are judged, too: as being none.
    pub others_are_wrong: bool,
    by_id: HashMap<String, u32>,
}

/// A file with what went before it, for complaints.
struct Lines {
    path: PathBuf,
}

impl Lines {
    fn wrong(&self, line: usize, reason: impl std::fmt::Display) -> Error {
        Error::bad_line(&self.path, line as u64, reason.to_string())
    }
}

/// The cells of a line, by name.
struct Row {
    line: usize,
    cells: Vec<(String, String)>,
}

impl Row {
    fn get(&self, given: Option<&str>, usual: &[&str]) -> Option<&str> {
        let find = |name: &str| self.cells.iter().find(|cell| cell.0 == name).map(|cell| cell.1.as_str());
        match given {
            Some(name) => find(name),
            None => usual.iter().find_map(|name| find(name)),
        }
    }
}

impl Gold {
    /// Reads a file; labels of pairs count as "the same" from `positive` on.
    ///
    /// # Errors
    /// When it cannot be read; with the line, when a line makes no sense or a page is in two clusters.
    pub fn read(path: &Path, columns: &GoldColumns, positive: f64) -> Result<Gold> {
        if !positive.is_finite() {
            return Err(Error::invalid("positive", positive, "must be a number"));
        }
        let text = plain_text(path)?;
        let lines = Lines { path: path.to_path_buf() };
        let mut gold = Gold::default();
        let mut names = HashMap::new();
        let is_json = text.trim_start().starts_with('{');
        let header = if is_json { None } else { header(&text, columns) };
        for (number, content) in text.lines().enumerate() {
            let line = number + 1;
            if content.trim().is_empty() || content.starts_with('#') || header.as_ref().is_some_and(|it| it.0 == number)
            {
                continue;
            }
            let row = if is_json {
                json_row(content, line).map_err(|reason| lines.wrong(line, reason))?
            } else {
                table_row(content, line, header.as_ref().map(|it| it.1.as_slice()))
                    .map_err(|reason| lines.wrong(line, reason))?
            };
            gold.add(&row, columns, positive, &mut names, &lines)?;
        }
        if gold.pages.is_empty() {
            let reason = "holds no judgment; write a page and its cluster in each line, with a tab between them";
            return Err(Error::bad_input(path, reason));
        }
        Ok(gold)
    }

    /// Clusters that are already known, as `(page, cluster)`.
    #[must_use]
    pub fn of_clusters<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Gold {
        let (mut gold, mut names) = (Gold::default(), HashMap::new());
        for (line, (page, cluster)) in rows.into_iter().enumerate() {
            let cluster = gold.cluster(cluster, &mut names);
            let page = gold.page(page, line + 1);
            gold.pages[page as usize].cluster = Some(cluster);
        }
        gold
    }

    /// The number of a page.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<u32> {
        self.by_id.get(id).copied()
    }

    fn page(&mut self, id: &str, line: usize) -> u32 {
        if let Some(&known) = self.by_id.get(id) {
            return known;
        }
        let number = u32::try_from(self.pages.len()).expect("a gold standard has fewer than 2^32 pages");
        self.by_id.insert(id.to_owned(), number);
        self.pages.push(GoldPage { id: id.to_owned(), cluster: None, kind: None, site: None, line });
        number
    }

    fn cluster(&mut self, name: &str, names: &mut HashMap<String, u32>) -> u32 {
        if let Some(&known) = names.get(name) {
            return known;
        }
        let number = u32::try_from(self.clusters.len()).expect("there are fewer clusters than pages");
        names.insert(name.to_owned(), number);
        self.clusters.push(name.to_owned());
        number
    }

    fn add(
        &mut self,
        row: &Row,
        columns: &GoldColumns,
        positive: f64,
        names: &mut HashMap<String, u32>,
        lines: &Lines,
    ) -> Result<()> {
        let line = row.line;
        if let (Some(left), Some(right)) = (row.get(None, LEFT_NAMES), row.get(None, RIGHT_NAMES)) {
            if !self.clusters.is_empty() {
                return Err(lines.wrong(line, "is a pair, and the lines before it name clusters; use one form"));
            }
            let verdict = match row.get(None, LABEL_NAMES) {
                None => {
                    self.others_are_wrong = true;
                    true
                }
                Some(label) => verdict(label, positive).map_err(|reason| lines.wrong(line, reason))?,
            };
            if left == right {
                return Err(lines.wrong(line, format!("'{left}' is paired with itself")));
            }
            let (a, b) = (self.page(left, line), self.page(right, line));
            let known = self.pairs.get_or_insert_default().insert((a.min(b), a.max(b)), verdict);
            if known.is_some_and(|known| known != verdict) {
                return Err(lines.wrong(line, format!("'{left}' and '{right}' were judged differently before")));
            }
            return Ok(());
        }
        if self.pairs.is_some() {
            return Err(lines.wrong(line, "is not a pair, and the lines before it are; use one form"));
        }
        let id = row.get(columns.page.as_deref(), PAGE_NAMES).ok_or_else(|| {
            let name = columns.page.as_deref().unwrap_or("page");
            lines.wrong(line, format!("has no field '{name}' (`page_column` names another)"))
        })?;
        let cluster = row.get(columns.cluster.as_deref(), CLUSTER_NAMES).ok_or_else(|| {
            let name = columns.cluster.as_deref().unwrap_or("cluster");
            lines.wrong(line, format!("has no field '{name}' (`cluster_column` names another)"))
        })?;
        if cluster.trim().is_empty() || id.is_empty() {
            return Err(lines.wrong(line, "names no page, or no cluster: leave pages without a judgment out"));
        }
        let cluster = self.cluster(cluster, names);
        let known = self.pages.len();
        let page = self.page(id, line) as usize;
        if page < known && self.pages[page].cluster != Some(cluster) {
            let before = self.pages[page].cluster.map_or("?", |number| &self.clusters[number as usize]);
            return Err(lines.wrong(
                line,
                format!(
                    "'{id}' is in cluster '{}' here and in '{before}' in line {}; a page belongs to one cluster",
                    self.clusters[cluster as usize], self.pages[page].line
                ),
            ));
        }
        let (kind, site) = (row.get(columns.kind.as_deref(), KIND_NAMES), row.get(columns.site.as_deref(), SITE_NAMES));
        for (given, found, flag) in [(&columns.kind, kind, "`kind_column`"), (&columns.site, site, "`site_column`")] {
            if let (Some(name), None) = (given, found) {
                return Err(lines.wrong(line, format!("has no field '{name}', which {flag} names")));
            }
        }
        let named = |text: Option<&str>| text.filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let (kind, site) = (named(kind), named(site));
        let page = &mut self.pages[page];
        (page.cluster, page.kind, page.site) = (Some(cluster), kind, site);
        Ok(())
    }
}

fn verdict(label: &str, positive: f64) -> Result<bool, String> {
    match label.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "correct" | "duplicate" => Ok(true),
        "false" | "no" | "incorrect" => Ok(false),
        number => number
            .parse::<f64>()
            .map(|grade| grade >= positive)
            .map_err(|_| format!("the label '{label}' is neither a number nor true or false")),
    }
}

/// The line with the names of the columns, and the names.
fn header<'a>(text: &'a str, columns: &GoldColumns) -> Option<(usize, Vec<&'a str>)> {
    let (number, first) =
        text.lines().enumerate().find(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))?;
    let names: Vec<&str> = first.split('\t').map(str::trim).collect();
    let has = |given: &Option<String>, usual: &[&str]| match given {
        Some(name) => names.contains(&name.as_str()),
        None => usual.iter().any(|name| names.contains(name)),
    };
    let is_clusters = has(&columns.page, PAGE_NAMES) && has(&columns.cluster, CLUSTER_NAMES);
    let is_pairs = has(&None, LEFT_NAMES) && has(&None, RIGHT_NAMES);
    (is_clusters || is_pairs).then_some((number, names))
}

fn table_row(content: &str, line: usize, header: Option<&[&str]>) -> Result<Row, String> {
    let cells: Vec<&str> = content.trim_end_matches('\r').split('\t').collect();
    let names: &[&str] = header.unwrap_or(&["page", "cluster", "kind"]);
    let needed = names.len().min(if header.is_some() { usize::MAX } else { 2 });
    if cells.len() < needed {
        let what = if header.is_some() { "the first line names" } else { "page and cluster need" };
        return Err(format!("has {} columns, {what} {needed}; columns are separated by tabs", cells.len()));
    }
    Ok(Row { line, cells: names.iter().zip(cells).map(|(name, cell)| ((*name).to_owned(), cell.to_owned())).collect() })
}

fn json_row(content: &str, line: usize) -> Result<Row, String> {
    let value: Value = serde_json::from_str(content).map_err(|error| format!("is not JSON: {error}"))?;
    let Value::Object(object) = value else { return Err("is not a JSON object".to_owned()) };
    let cells = object.into_iter().map(|(name, value)| match value {
        Value::String(text) => (name, text),
        Value::Null => (name, String::new()),
        other => (name, other.to_string()),
    });
    Ok(Row { line, cells: cells.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Gold> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gold");
        std::fs::write(&path, text).unwrap();
        Gold::read(&path, &GoldColumns::default(), 1.0)
    }

    #[test]
    fn every_form_is_read() {
        let forms = [
            "a\t1\nb\t1\nc\t2\n",
            "# a note\npage\tcluster\tkind\na\t1\tnews\nb\t1\tnews\nc\t2\tshop\n",
            "cluster\tpath\n1\ta\r\n1\tb\r\n2\tc\r\n",
            "{\"id\": \"a\", \"cluster\": 1}\n{\"id\": \"b\", \"cluster\": 1}\n{\"id\": \"c\", \"cluster\": 2}\n",
        ];
        for form in forms {
            let gold = read(form).unwrap();
            let of = |id: &str| gold.pages[gold.find(id).unwrap() as usize].cluster;
            assert_eq!((of("a"), of("b") == of("a"), of("c") == of("a")), (Some(0), true, false), "{form}");
        }
        let gold = read("left\tright\tlabel\na\tb\t2\na\tc\t0\n").unwrap();
        assert_eq!(gold.pairs.unwrap(), HashMap::from([((0, 1), true), ((0, 2), false)]));
        assert!(!gold.others_are_wrong);
        assert!(read("{\"left\": \"a\", \"right\": \"b\"}\n").unwrap().others_are_wrong);
    }

    #[test]
    fn complaints_name_the_line() {
        for (text, complaint) in [
            ("a\t1\nb\t2\na\t2\n", "line 3: 'a' is in cluster '2' here and in '1' in line 1"),
            ("a\t1\nb\n", "line 2: has 1 columns"),
            ("{\"id\": 1, \"cluster\": 1}\n{\"id\": 2}\n", "line 2: has no field 'cluster'"),
            ("{\"id\": 1, \"cluster\": 1}\n{\n", "line 2: is not JSON"),
            ("left\tright\tlabel\na\tb\tmaybe\n", "line 2: the label 'maybe'"),
            ("left\tright\na\ta\n", "line 2: 'a' is paired with itself"),
            ("\n\n", "holds no judgment"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(complaint), "{text:?}: {error}");
        }
    }
}
