//! The tables, asked: lists of groups, the pages of a group, their links, tags and decisions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use lookalike::result::{GroupDecision, PagePlace};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::failure::{Failure, Outcome};
use super::filter::Filter;
use super::groups::{Asks, Groups};
use super::people::{TagSet, tag_sets};
use super::texts::{TextState, Texts, place};

/// Groups on one page of a list, and pages on one page of a group.
pub(super) const LISTED: i64 = 50;
pub(super) const CARDS: i64 = 40;
/// Links of a group that are drawn.
const DRAWN_LINKS: i64 = 400;
/// Pairs that were close to a group and are listed.
const NEAR_MISSES: i64 = 20;

/// Connections for reading, used again and again.
pub(super) struct Readers {
    tables: PathBuf,
    people: PathBuf,
    texts: Arc<Texts>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(tables: &Path, people: &Path, texts: Arc<Texts>) -> Readers {
        Readers { tables: tables.to_path_buf(), people: people.to_path_buf(), texts, idle: Mutex::default() }
    }

    /// Asks something.
    pub(super) fn ask<T>(&self, ask: impl FnOnce(&Reader<'_>) -> Outcome<T>) -> Outcome<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = idle.map_or_else(|| self.connect(), Ok)?;
        let has_texts = self.texts.state() == TextState::Ready && attach_texts(&connection, &self.texts.path)?;
        let answer = ask(&Reader { connection: &connection, has_texts });
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        answer
    }

    fn connect(&self) -> Outcome<Connection> {
        let connection = Connection::open(&self.tables)?;
        connection.execute("ATTACH ?1 AS people", [self.people.to_string_lossy()])?;
        connection.execute_batch(
            "PRAGMA query_only = ON; PRAGMA busy_timeout = 10000; PRAGMA mmap_size = 1073741824; PRAGMA cache_size = -16384;",
        )?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    }
}

/// Attaches the texts, unless that was done before.
fn attach_texts(connection: &Connection, path: &Path) -> Outcome<bool> {
    let query = "SELECT 1 FROM pragma_database_list WHERE name = 'texts'";
    let known: Option<i64> = connection.prepare_cached(query)?.query_row([], |row| row.get(0)).optional()?;
    if known.is_none() {
        connection.execute("ATTACH ?1 AS texts", [path.to_string_lossy()])?;
    }
    Ok(true)
}

/// A tag on a group: how many of its pages have it, by whom.
#[derive(Debug, Clone)]
pub(super) struct GroupTag {
    pub(super) tag: i64,
    pub(super) coder: i64,
    pub(super) pages: i64,
}

/// A group in a list.
#[derive(Debug, Clone)]
pub(super) struct GroupRow {
    pub(super) n: i64,
    pub(super) pages: i64,
    pub(super) weakest: f64,
    pub(super) mean: f64,
    pub(super) sites: i64,
    pub(super) site: String,
    pub(super) kinds: u8,
    pub(super) kept: PageRow,
    pub(super) tags: Vec<GroupTag>,
}

/// A page.
#[derive(Debug, Clone)]
pub(super) struct PageRow {
    pub(super) n: i64,
    pub(super) id: String,
    pub(super) group: i64,
    pub(super) kind: String,
    pub(super) similarity: f64,
    pub(super) page_similarity: Option<f64>,
    pub(super) url: Option<String>,
    pub(super) title: Option<String>,
    pub(super) site: Option<String>,
    pub(super) seconds: Option<i64>,
    pub(super) words: i64,
    pub(super) beginning: String,
}

impl PageRow {
    pub(super) fn is_kept(&self) -> bool {
        self.n == self.group
    }
}

/// A verified pair, or one that was close.
#[derive(Debug, Clone)]
pub(super) struct LinkRow {
    pub(super) left: i64,
    pub(super) right: i64,
    pub(super) similarity: f64,
    pub(super) page_similarity: Option<f64>,
}

const PAGE_COLUMNS: &str =
    "p.n, p.id, p.grp, p.kind, p.similarity, p.page_similarity, p.url, p.title, p.site, p.seconds, p.words";

fn page_row(row: &Row<'_>, from: usize) -> rusqlite::Result<PageRow> {
    Ok(PageRow {
        n: row.get(from)?,
        id: row.get(from + 1)?,
        group: row.get(from + 2)?,
        kind: row.get(from + 3)?,
        similarity: row.get(from + 4)?,
        page_similarity: row.get(from + 5)?,
        url: row.get(from + 6)?,
        title: row.get(from + 7)?,
        site: row.get(from + 8)?,
        seconds: row.get(from + 9)?,
        words: row.get(from + 10)?,
        beginning: String::new(),
    })
}

/// Somebody who asks.
pub(super) struct Reader<'c> {
    connection: &'c Connection,
    has_texts: bool,
}

impl Reader<'_> {
    /// One page of the list of groups, and how many groups there are.
    pub(super) fn groups(&self, groups: &Groups, filter: &Filter, coder: Option<i64>) -> Outcome<(Vec<GroupRow>, i64)> {
        let from = usize::try_from(filter.page() * LISTED).unwrap_or(usize::MAX);
        let most = usize::try_from(LISTED).unwrap_or(usize::MAX);
        let (numbers, count) = groups.listed(self.connection, filter, self.asks(coder), from, most)?;
        let mut rows = numbers.iter().map(|&group| self.group(i64::from(group))).collect::<Outcome<Vec<_>>>()?;
        for group in &mut rows {
            group.kept.beginning = self.beginning(group.n)?;
        }
        Ok((rows, i64::try_from(count).unwrap_or(i64::MAX)))
    }

    /// The groups before and behind one in a list.
    pub(super) fn beside(
        &self,
        groups: &Groups,
        filter: &Filter,
        coder: Option<i64>,
        group: i64,
    ) -> Outcome<[Option<u32>; 2]> {
        let group = u32::try_from(group).unwrap_or(u32::MAX);
        groups.beside(self.connection, filter, self.asks(coder), group)
    }

    /// Nobody has tagged anything as somebody without a name.
    fn asks(&self, coder: Option<i64>) -> Asks {
        Asks { coder: coder.unwrap_or(0), has_texts: self.has_texts }
    }

    /// A group by its number.
    pub(super) fn group(&self, group: i64) -> Outcome<GroupRow> {
        let query = format!(
            "SELECT g.n, g.pages, g.weakest, g.mean, g.sites, g.site, g.kinds, {PAGE_COLUMNS}
             FROM grp g JOIN page p ON p.n = g.n WHERE g.n = ?"
        );
        let found = self.connection.prepare_cached(&query)?.query_row([group], |row| {
            Ok(GroupRow {
                n: row.get(0)?,
                pages: row.get(1)?,
                weakest: row.get(2)?,
                mean: row.get(3)?,
                sites: row.get(4)?,
                site: row.get(5)?,
                kinds: row.get(6)?,
                kept: page_row(row, 7)?,
                tags: Vec::new(),
            })
        });
        let mut found = found.optional()?.ok_or_else(|| Failure::NotFound("there is no such cluster".to_owned()))?;
        found.tags = self.group_tags(group)?;
        Ok(found)
    }

    /// Some pages of a group, the kept one first, then the most similar ones.
    pub(super) fn members(&self, group: i64, from: i64) -> Outcome<Vec<PageRow>> {
        let query = format!(
            "SELECT {PAGE_COLUMNS} FROM page p WHERE p.grp = ?1 ORDER BY p.n <> ?1, p.similarity DESC, p.n LIMIT ?2 OFFSET ?3"
        );
        let mut statement = self.connection.prepare_cached(&query)?;
        let rows = statement.query_map(params![group, CARDS, from], |row| page_row(row, 0))?;
        let mut pages: Vec<PageRow> = rows.collect::<Result<_, _>>()?;
        for page in &mut pages {
            page.beginning = self.beginning(page.n)?;
        }
        Ok(pages)
    }

    /// The ids of all pages of a group.
    pub(super) fn ids(&self, group: i64) -> Outcome<Vec<String>> {
        let mut query = self.connection.prepare_cached("SELECT id FROM page WHERE grp = ?1 ORDER BY n")?;
        let rows = query.query_map([group], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// A page by its number, and where it is; a revisit is where its original is.
    pub(super) fn page(&self, page: i64) -> Outcome<(PageRow, PagePlace)> {
        let query = format!(
            "SELECT {PAGE_COLUMNS}, s.name, t.record, t.start, t.length, t.words
             FROM page p JOIN page t ON t.n = ifnull(p.original, p.n) JOIN source s ON s.n = t.source WHERE p.n = ?"
        );
        let found = self
            .connection
            .prepare_cached(&query)?
            .query_row([page], |row| Ok((page_row(row, 0)?, place(row, 11)?)))
            .optional()?;
        found.ok_or_else(|| Failure::NotFound("there is no such page".to_owned()))
    }

    /// The number of a page by its id.
    pub(super) fn number(&self, id: &str) -> Outcome<Option<i64>> {
        let mut query = self.connection.prepare_cached("SELECT n FROM page WHERE id = ?1")?;
        Ok(query.query_row([id], |row| row.get(0)).optional()?)
    }

    /// How a page begins, if that is known.
    fn beginning(&self, page: i64) -> Outcome<String> {
        if !self.has_texts {
            return Ok(String::new());
        }
        let query = "SELECT text FROM texts.beginning WHERE page = (SELECT ifnull(original, n) FROM page WHERE n = ?1)";
        let found = self.connection.prepare_cached(query)?.query_row([page], |row| row.get(0)).optional()?;
        Ok(found.unwrap_or_default())
    }

    fn link_rows(&self, query: &str, values: impl rusqlite::Params) -> Outcome<Vec<LinkRow>> {
        let mut statement = self.connection.prepare_cached(query)?;
        let rows = statement.query_map(values, |row| {
            Ok(LinkRow { left: row.get(0)?, right: row.get(1)?, similarity: row.get(2)?, page_similarity: row.get(3)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The verified links within a group, those of the kept page first, then the most similar.
    pub(super) fn links(&self, group: i64) -> Outcome<Vec<LinkRow>> {
        self.link_rows(
            "SELECT left, right, similarity, page_similarity FROM link
             WHERE left_grp = ?1 AND right_grp = ?1 AND is_accepted
             ORDER BY left <> ?1 AND right <> ?1, similarity DESC LIMIT ?2",
            params![group, DRAWN_LINKS],
        )
    }

    /// The pairs with one page in a group that were close, and were not accepted.
    pub(super) fn near_misses(&self, group: i64) -> Outcome<Vec<LinkRow>> {
        self.link_rows(
            "SELECT left, right, similarity, page_similarity FROM (
                 SELECT * FROM link WHERE left_grp = ?1 AND NOT is_accepted UNION
                 SELECT * FROM link WHERE right_grp = ?1 AND NOT is_accepted)
             ORDER BY similarity DESC LIMIT ?2",
            params![group, NEAR_MISSES],
        )
    }

    fn group_tags(&self, group: i64) -> Outcome<Vec<GroupTag>> {
        let mut query = self.connection.prepare_cached("SELECT tag, coder, pages FROM grp_tag WHERE grp = ?1")?;
        let rows = query
            .query_map([group], |row| Ok(GroupTag { tag: row.get(0)?, coder: row.get(1)?, pages: row.get(2)? }))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// All tag sets.
    pub(super) fn tag_sets(&self) -> Outcome<Vec<TagSet>> {
        tag_sets(self.connection)
    }

    /// The tags that a coder gave to pages, and which pages are exceptions.
    pub(super) fn page_tags(&self, coder: i64, ids: &[String]) -> Outcome<HashMap<String, (Vec<i64>, bool)>> {
        let mut tags =
            self.connection.prepare_cached("SELECT tag FROM people.tagging WHERE coder = ?1 AND page = ?2")?;
        let mut own =
            self.connection.prepare_cached("SELECT 1 FROM people.exception WHERE coder = ?1 AND page = ?2")?;
        let mut found = HashMap::new();
        for id in ids {
            let rows = tags.query_map(params![coder, id], |row| row.get(0))?;
            let own = own.exists(params![coder, id])?;
            found.insert(id.clone(), (rows.collect::<Result<_, _>>()?, own));
        }
        Ok(found)
    }

    /// The pages of a group that a coder tagged on their own, and how many of a group there are.
    pub(super) fn exceptions(&self, coder: i64, group: i64) -> Outcome<Vec<String>> {
        let query =
            "SELECT e.page FROM people.exception e JOIN page p ON p.id = e.page WHERE e.coder = ?1 AND p.grp = ?2";
        let mut query = self.connection.prepare_cached(query)?;
        let rows = query.query_map([coder, group], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// What a coder noted about a page.
    pub(super) fn note(&self, coder: i64, id: &str) -> Outcome<Option<String>> {
        let mut query =
            self.connection.prepare_cached("SELECT text FROM people.note WHERE coder = ?1 AND page = ?2")?;
        Ok(query.query_row(params![coder, id], |row| row.get(0)).optional()?)
    }

    /// The notes of others about a page.
    pub(super) fn other_notes(&self, coder: Option<i64>, id: &str) -> Outcome<Vec<(String, String)>> {
        let mut query = self.connection.prepare_cached(
            "SELECT c.name, n.text FROM people.note n JOIN people.coder c ON c.id = n.coder
             WHERE n.page = ?1 AND n.coder IS NOT ?2 ORDER BY c.name",
        )?;
        let rows = query.query_map(params![id, coder], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The decision about a page.
    pub(super) fn decision(&self, id: &str) -> Outcome<Option<GroupDecision>> {
        let mut query = self.connection.prepare_cached("SELECT decision FROM people.decision WHERE page = ?1")?;
        let text: Option<String> = query.query_row([id], |row| row.get(0)).optional()?;
        Ok(text.map(|text| serde_json::from_str(&text)).transpose()?)
    }

    /// The coders, in the order in which they came.
    pub(super) fn coders(&self) -> Outcome<Vec<(i64, String)>> {
        let mut query = self.connection.prepare_cached("SELECT id, name FROM people.coder ORDER BY id")?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// One number.
    pub(super) fn count(&self, query: &str, values: impl rusqlite::Params) -> Outcome<i64> {
        Ok(self.connection.prepare_cached(query)?.query_row(values, |row| row.get(0))?)
    }

    /// The tables themselves, for longer questions.
    pub(super) fn connection(&self) -> &Connection {
        self.connection
    }

    /// A drawing that was made with the tables.
    pub(super) fn plot(&self, name: &str) -> Outcome<String> {
        Ok(self.connection.query_row("SELECT svg FROM plot WHERE name = ?1", [name], |row| row.get(0))?)
    }
}
