//! What people did: coders, tag sets, tags, notes, decisions, judgments; and the way back.
//!
//! One SQLite file in the result directory. Everything is about pages by their ids, so that it holds for another run over
//! the same pages. A change is on disk when it is acknowledged: it survives a kill.

use std::path::Path;

use lookalike::result::GroupDecision;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};

use super::failure::{Failure, Outcome};

/// The version of the file's layout.
const FORMAT: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS coder (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS tag_set (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, is_single INTEGER NOT NULL, position INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS tag (
    id INTEGER PRIMARY KEY, tag_set INTEGER NOT NULL REFERENCES tag_set ON DELETE CASCADE, label TEXT NOT NULL,
    colour INTEGER NOT NULL, key TEXT NOT NULL, position INTEGER NOT NULL, UNIQUE (tag_set, label));
CREATE TABLE IF NOT EXISTS tagging (
    coder INTEGER NOT NULL REFERENCES coder, page TEXT NOT NULL, tag INTEGER NOT NULL REFERENCES tag ON DELETE CASCADE,
    PRIMARY KEY (coder, page, tag)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tagging_by_tag ON tagging (tag);
CREATE INDEX IF NOT EXISTS tagging_by_page ON tagging (page);
CREATE TABLE IF NOT EXISTS exception (
    coder INTEGER NOT NULL REFERENCES coder, page TEXT NOT NULL, PRIMARY KEY (coder, page)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS note (
    coder INTEGER NOT NULL REFERENCES coder, page TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (coder, page)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS decision (page TEXT PRIMARY KEY, decision TEXT NOT NULL, coder INTEGER NOT NULL REFERENCES coder);
CREATE TABLE IF NOT EXISTS action (
    id INTEGER PRIMARY KEY AUTOINCREMENT, coder INTEGER NOT NULL REFERENCES coder, at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    label TEXT NOT NULL, changes TEXT NOT NULL, is_undone INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS sample (
    id INTEGER PRIMARY KEY, options TEXT NOT NULL, rubric TEXT NOT NULL, made TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE IF NOT EXISTS sample_pair (
    sample INTEGER NOT NULL REFERENCES sample ON DELETE CASCADE, position INTEGER NOT NULL, left TEXT NOT NULL, right TEXT NOT NULL,
    PRIMARY KEY (sample, position)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS judgment (
    coder INTEGER NOT NULL REFERENCES coder, sample INTEGER NOT NULL REFERENCES sample ON DELETE CASCADE, position INTEGER NOT NULL,
    verdict TEXT NOT NULL, reason TEXT, PRIMARY KEY (coder, sample, position)) WITHOUT ROWID;
";

/// The tags that a new file begins with, so that there is something to press.
const FIRST_SET: (&str, [(&str, i64, &str); 3]) =
    ("Relevance", [("relevant", 2, "1"), ("not relevant", 1, "2"), ("unclear", 4, "3")]);

/// Colours that a tag can have; the style sheet has a class for each.
pub(super) const COLOURS: [&str; 8] = ["blue", "red", "green", "violet", "ochre", "teal", "pink", "grey"];

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Tag {
    pub(super) id: i64,
    pub(super) set: i64,
    pub(super) label: String,
    pub(super) colour: i64,
    pub(super) key: String,
}

/// A set of tags, of which a page has one, or any number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct TagSet {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) is_single: bool,
    pub(super) tags: Vec<Tag>,
}

/// One thing that changed; its opposite takes it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Change {
    /// A page has a tag, or no longer has it.
    Tag { page: String, tag: i64, on: bool },
    /// The tags of a page are its own, and no longer those of its group.
    Exception { page: String, on: bool },
    /// A note.
    Note { page: String, before: Option<String>, after: Option<String> },
    /// A decision about a page.
    Decision { before: Option<GroupDecision>, after: Option<GroupDecision> },
}

impl Change {
    fn opposite(self) -> Change {
        match self {
            Change::Tag { page, tag, on } => Change::Tag { page, tag, on: !on },
            Change::Exception { page, on } => Change::Exception { page, on: !on },
            Change::Note { page, before, after } => Change::Note { page, before: after, after: before },
            Change::Decision { before, after } => Change::Decision { before: after, after: before },
        }
    }

    /// The page that it is about.
    pub(super) fn page(&self) -> &str {
        match self {
            Change::Tag { page, .. } | Change::Exception { page, .. } | Change::Note { page, .. } => page,
            Change::Decision { before, after } => {
                after.as_ref().or(before.as_ref()).map_or("", |decision| decision.page.as_str())
            }
        }
    }
}

/// A change that was made, or taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) label: String,
    pub(super) changes: Vec<Change>,
}

/// The file.
pub(super) struct People {
    connection: Connection,
}

impl People {
    /// Opens or makes it.
    pub(super) fn open(path: &Path) -> Outcome<People> {
        let connection = Connection::open(path)?;
        // Acknowledged is on disk, also if the machine stops.
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 10000;",
        )?;
        let format: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if format > FORMAT {
            return Err(Failure::Refused(format!(
                "{}: was written by a newer version of lookalike (format {format}; this one reads {FORMAT})",
                path.display()
            )));
        }
        let mut people = People { connection };
        if format == 0 {
            let transaction = people.connection.transaction()?;
            transaction.execute_batch(SCHEMA)?;
            transaction.execute("INSERT INTO tag_set (name, is_single, position) VALUES (?1, 1, 1)", [FIRST_SET.0])?;
            let set = transaction.last_insert_rowid();
            for (position, (label, colour, key)) in (1i64..).zip(FIRST_SET.1) {
                transaction.execute(
                    "INSERT INTO tag (tag_set, label, colour, key, position) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![set, label, colour, key, position],
                )?;
            }
            transaction.pragma_update(None, "user_version", FORMAT)?;
            transaction.commit()?;
        }
        Ok(people)
    }

    /// For whoever asks it directly.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The number of a coder, who is new if nobody has this name.
    pub(super) fn coder(&mut self, name: &str) -> Outcome<i64> {
        let known =
            self.connection.query_row("SELECT id FROM coder WHERE name = ?1", [name], |row| row.get(0)).optional()?;
        if let Some(id) = known {
            return Ok(id);
        }
        self.connection.execute("INSERT INTO coder (name) VALUES (?1)", [name])?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Makes changes as one action of a coder, all or none.
    pub(super) fn act(&mut self, coder: i64, label: &str, changes: Vec<Change>) -> Outcome<Done> {
        let transaction = self.connection.transaction()?;
        changes.iter().try_for_each(|change| apply(&transaction, coder, change))?;
        let text = serde_json::to_string(&changes)?;
        transaction
            .execute("INSERT INTO action (coder, label, changes) VALUES (?1, ?2, ?3)", params![coder, label, text])?;
        transaction.commit()?;
        Ok(Done { label: label.to_owned(), changes })
    }

    /// Takes the last action of a coder back, if there is one.
    pub(super) fn undo(&mut self, coder: i64) -> Outcome<Option<Done>> {
        let transaction = self.connection.transaction()?;
        let last: Option<(i64, String, String)> = transaction
            .query_row(
                "SELECT id, label, changes FROM action WHERE coder = ?1 AND is_undone = 0 ORDER BY id DESC LIMIT 1",
                [coder],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .optional()?;
        let Some((id, label, changes)) = last else { return Ok(None) };
        let changes: Vec<Change> = serde_json::from_str(&changes)?;
        let changes: Vec<Change> = changes.into_iter().rev().map(Change::opposite).collect();
        changes.iter().try_for_each(|change| apply(&transaction, coder, change))?;
        transaction.execute("UPDATE action SET is_undone = 1 WHERE id = ?1", [id])?;
        transaction.commit()?;
        Ok(Some(Done { label, changes }))
    }

    /// All decisions, by page.
    pub(super) fn decisions(&self) -> Outcome<Vec<GroupDecision>> {
        let mut query = self.connection.prepare_cached("SELECT decision FROM decision ORDER BY page")?;
        let rows = query.query_map([], |row| row.get::<_, String>(0))?;
        rows.map(|row| Ok(serde_json::from_str(&row?)?)).collect()
    }

    /// Adds a set of tags.
    pub(super) fn add_set(&mut self, name: &str, is_single: bool) -> Outcome<()> {
        let name = short(name, "the name of a tag set")?;
        let added = self.connection.execute(
            "INSERT OR IGNORE INTO tag_set (name, is_single, position)
             VALUES (?1, ?2, (SELECT ifnull(max(position), 0) + 1 FROM tag_set))",
            params![name, is_single],
        )?;
        if added == 0 { Err(Failure::Refused(format!("there is already a tag set called '{name}'"))) } else { Ok(()) }
    }

    /// Adds a tag, or changes the one with this number.
    pub(super) fn put_tag(&mut self, tag: Option<i64>, set: i64, label: &str, colour: i64, key: &str) -> Outcome<()> {
        let label = short(label, "the label of a tag")?;
        if label.contains('|') {
            return Err(Failure::Refused(
                "a label must not contain |, which separates tags in exported files".to_owned(),
            ));
        }
        let key = key.trim();
        if key.chars().count() > 1 || key.chars().any(|c| !c.is_ascii_alphanumeric() || RESERVED.contains(&c)) {
            let reserved = RESERVED.map(String::from).join(", ");
            return Err(Failure::Refused(format!(
                "the key of a tag must be one letter or digit, and not one that moves around ({reserved})"
            )));
        }
        if usize::try_from(colour).map_or(true, |colour| colour >= COLOURS.len()) {
            return Err(Failure::Refused("there is no such colour".to_owned()));
        }
        let taken: Option<String> = self
            .connection
            .query_row(
                "SELECT label FROM tag WHERE key = ?1 AND key <> '' AND id IS NOT ?2",
                params![key, tag],
                |row| row.get(0),
            )
            .optional()?;
        if let Some(taken) = taken {
            return Err(Failure::Refused(format!("the key {key} is that of '{taken}'")));
        }
        let is_taken: Option<i64> = self
            .connection
            .query_row(
                "SELECT id FROM tag WHERE tag_set = ?1 AND label = ?2 AND id IS NOT ?3",
                params![set, label, tag],
                |row| row.get(0),
            )
            .optional()?;
        if is_taken.is_some() {
            return Err(Failure::Refused(format!("this set already has a tag '{label}'")));
        }
        match tag {
            Some(tag) => self.connection.execute(
                "UPDATE tag SET label = ?2, colour = ?3, key = ?4 WHERE id = ?1",
                params![tag, label, colour, key],
            )?,
            None => self.connection.execute(
                "INSERT INTO tag (tag_set, label, colour, key, position)
                 VALUES (?1, ?2, ?3, ?4, (SELECT ifnull(max(position), 0) + 1 FROM tag WHERE tag_set = ?1))",
                params![set, label, colour, key],
            )?,
        };
        Ok(())
    }

    /// Removes a tag, or a set, that nobody has used; `force` removes it with what was tagged.
    pub(super) fn remove(&mut self, table: Removable, id: i64, force: bool) -> Outcome<()> {
        let (used, remove) = match table {
            Removable::Tag => ("SELECT count(*) FROM tagging WHERE tag = ?1", "DELETE FROM tag WHERE id = ?1"),
            Removable::Set => (
                "SELECT count(*) FROM tagging WHERE tag IN (SELECT id FROM tag WHERE tag_set = ?1)",
                "DELETE FROM tag_set WHERE id = ?1",
            ),
        };
        let used: i64 = self.connection.query_row(used, [id], |row| row.get(0))?;
        if used > 0 && !force {
            return Err(Failure::InUse(used));
        }
        self.connection.execute(remove, [id])?;
        Ok(())
    }
}

/// What can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Removable {
    Tag,
    Set,
}

/// Keys that move around and cannot be those of tags.
pub(super) const RESERVED: [char; 11] = ['j', 'k', 'u', 'n', 'g', 'o', 's', 'x', 'p', 'f', 'm'];

/// A name for people: something, and not too much.
pub(super) fn short<'t>(text: &'t str, what: &str) -> Outcome<&'t str> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > 60 || text.chars().any(char::is_control) {
        return Err(Failure::Refused(format!("{what} must have 1 to 60 characters")));
    }
    Ok(text)
}

/// All sets with their tags, in their order.
pub(super) fn tag_sets(connection: &Connection) -> Outcome<Vec<TagSet>> {
    let mut query = connection.prepare_cached("SELECT id, name, is_single FROM tag_set ORDER BY position, id")?;
    let rows = query.query_map([], |row| {
        Ok(TagSet { id: row.get(0)?, name: row.get(1)?, is_single: row.get(2)?, tags: Vec::new() })
    })?;
    let mut sets: Vec<TagSet> = rows.collect::<Result<_, _>>()?;
    let mut query =
        connection.prepare_cached("SELECT id, tag_set, label, colour, key FROM tag ORDER BY position, id")?;
    let tags = query.query_map([], |row| {
        Ok(Tag { id: row.get(0)?, set: row.get(1)?, label: row.get(2)?, colour: row.get(3)?, key: row.get(4)? })
    })?;
    for tag in tags {
        let tag = tag?;
        if let Some(set) = sets.iter_mut().find(|set| set.id == tag.set) {
            set.tags.push(tag);
        }
    }
    Ok(sets)
}

fn apply(transaction: &Transaction<'_>, coder: i64, change: &Change) -> Outcome<()> {
    match change {
        Change::Tag { page, tag, on } => {
            let query = if *on {
                "INSERT OR IGNORE INTO tagging (coder, page, tag) SELECT ?1, ?2, id FROM tag WHERE id = ?3"
            } else {
                "DELETE FROM tagging WHERE coder = ?1 AND page = ?2 AND tag = ?3"
            };
            transaction.prepare_cached(query)?.execute(params![coder, page, tag])?;
        }
        Change::Exception { page, on } => {
            let query = if *on {
                "INSERT OR IGNORE INTO exception (coder, page) VALUES (?1, ?2)"
            } else {
                "DELETE FROM exception WHERE coder = ?1 AND page = ?2"
            };
            transaction.prepare_cached(query)?.execute(params![coder, page])?;
        }
        Change::Note { page, after: Some(text), .. } => {
            transaction.execute(
                "INSERT OR REPLACE INTO note (coder, page, text) VALUES (?1, ?2, ?3)",
                params![coder, page, text],
            )?;
        }
        Change::Note { page, after: None, .. } => {
            transaction.execute("DELETE FROM note WHERE coder = ?1 AND page = ?2", params![coder, page])?;
        }
        Change::Decision { after: Some(decision), .. } => {
            let text = serde_json::to_string(decision)?;
            transaction.execute(
                "INSERT OR REPLACE INTO decision (page, decision, coder) VALUES (?1, ?2, ?3)",
                params![decision.page, text, coder],
            )?;
        }
        Change::Decision { before, after: None } => {
            let page = before.as_ref().map_or("", |decision| decision.page.as_str());
            transaction.execute("DELETE FROM decision WHERE page = ?1", [page])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people() -> (tempfile::TempDir, People) {
        let directory = tempfile::tempdir().unwrap();
        let people = People::open(&directory.path().join("workbench.sqlite")).unwrap();
        (directory, people)
    }

    fn tagged(people: &People) -> Vec<(i64, String, i64)> {
        let mut query =
            people.connection.prepare("SELECT coder, page, tag FROM tagging ORDER BY coder, page, tag").unwrap();
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }

    fn tag(page: &str, tag: i64) -> Change {
        Change::Tag { page: page.to_owned(), tag, on: true }
    }

    #[test]
    fn each_coder_undoes_their_own_last_action() {
        let (_directory, mut people) = people();
        let (ann, bob) = (people.coder("Ann").unwrap(), people.coder("Bob").unwrap());
        assert_eq!(people.coder("Ann").unwrap(), ann);
        people.act(ann, "one", vec![tag("a", 1), tag("b", 1)]).unwrap();
        people.act(bob, "two", vec![tag("a", 2)]).unwrap();
        people.act(ann, "three", vec![Change::Tag { page: "a".to_owned(), tag: 1, on: false }, tag("a", 3)]).unwrap();
        assert_eq!(people.undo(ann).unwrap().unwrap().label, "three");
        assert_eq!(tagged(&people), [(ann, "a".to_owned(), 1), (ann, "b".to_owned(), 1), (bob, "a".to_owned(), 2)]);
        assert_eq!(people.undo(ann).unwrap().unwrap().label, "one");
        assert_eq!(people.undo(ann).unwrap(), None);
        assert_eq!(tagged(&people), [(bob, "a".to_owned(), 2)]);
    }

    #[test]
    fn notes_and_decisions_come_back_as_they_were() {
        let (_directory, mut people) = people();
        let ann = people.coder("Ann").unwrap();
        let note = |before: Option<&str>, after: Option<&str>| Change::Note {
            page: "a".to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
        };
        let decision = GroupDecision { page: "a".to_owned(), keep: true, ..GroupDecision::default() };
        people.act(ann, "note", vec![note(None, Some("first"))]).unwrap();
        people.act(ann, "note", vec![note(Some("first"), Some("second"))]).unwrap();
        people.act(ann, "keep", vec![Change::Decision { before: None, after: Some(decision.clone()) }]).unwrap();
        assert_eq!(people.decisions().unwrap(), [decision]);
        people.undo(ann).unwrap();
        assert!(people.decisions().unwrap().is_empty());
        people.undo(ann).unwrap();
        let text: String = people.connection.query_row("SELECT text FROM note", [], |row| row.get(0)).unwrap();
        assert_eq!(text, "first");
    }

    #[test]
    fn tags_that_were_used_are_not_removed_by_accident() {
        let (_directory, mut people) = people();
        let ann = people.coder("Ann").unwrap();
        people.act(ann, "one", vec![tag("a", 1)]).unwrap();
        assert!(matches!(people.remove(Removable::Tag, 1, false), Err(Failure::InUse(1))));
        people.remove(Removable::Tag, 1, true).unwrap();
        assert!(tagged(&people).is_empty());
        // Its removal does not come back with what was done with it.
        people.undo(ann).unwrap();
        assert!(tagged(&people).is_empty());
    }

    #[test]
    fn keys_and_names_are_checked() {
        let (_directory, mut people) = people();
        for (label, key) in [("", "a"), ("x", "ab"), ("x", "j"), ("a|b", ""), ("x", "1"), ("relevant", "a"), ("x", "!")]
        {
            assert!(people.put_tag(None, 1, label, 0, key).is_err(), "{label} {key}");
        }
        people.put_tag(None, 1, "x", 0, "a").unwrap();
        people.put_tag(None, 1, "y", 0, "").unwrap();
        people.put_tag(Some(1), 1, "relevant", 5, "1").unwrap();
        assert!(people.add_set("Relevance", true).is_err());
        assert_eq!(tag_sets(&people.connection).unwrap()[0].tags.len(), 5);
    }

    #[test]
    fn a_file_of_a_newer_version_is_refused() {
        let (directory, people) = people();
        people.connection.pragma_update(None, "user_version", FORMAT + 1).unwrap();
        drop(people);
        assert!(People::open(&directory.path().join("workbench.sqlite")).is_err());
    }
}
