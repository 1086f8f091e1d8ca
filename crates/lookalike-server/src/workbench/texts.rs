//! The texts of groups, made searchable in the background.
//!
//! In: the pages of groups of two or more, read again. Out: an SQLite file with the words of each group, and the beginning of
//! each page. A passage that several pages of a group have is in it once. It is made once for a result; while it is made,
//! titles, addresses and ids are searched.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike::compare::{BlockPart, PageBlock};
use lookalike::result::{Originals, PagePlace, fold_words};
use rusqlite::{Connection, OpenFlags, params};
use xxhash_rust::xxh3::xxh3_64;

use super::failure::{Failure, Outcome};

const SCHEMA: &str = "
CREATE VIRTUAL TABLE grp_words USING fts5 (words, content='', detail=full, tokenize=\"unicode61 remove_diacritics 0\");
CREATE TABLE beginning (page INTEGER PRIMARY KEY, text TEXT NOT NULL);
";

/// Characters of a page's beginning that are shown.
const BEGINNING_CHARS: usize = 280;
/// Groups whose words are written at once.
const GROUPS_PER_COMMIT: usize = 2000;

/// How far the texts are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextState {
    /// So many pages of so many have been read.
    Reading(u64, u64),
    /// All can be searched.
    Ready,
    /// They cannot, for this reason.
    Failed(String),
}

/// The texts of a result.
pub(super) struct Texts {
    pub(super) path: PathBuf,
    state: Mutex<TextState>,
    done: AtomicU64,
}

impl Texts {
    /// Those that stand beside the tables of a result.
    pub(super) fn beside(tables: &Path) -> Texts {
        let name = tables.file_name().map(|name| name.to_string_lossy().replace("tables-", "texts-"));
        let path = tables.with_file_name(name.unwrap_or_default());
        let state = if path.exists() { TextState::Ready } else { TextState::Reading(0, 0) };
        Texts { path, state: Mutex::new(state), done: AtomicU64::new(0) }
    }

    pub(super) fn state(&self) -> TextState {
        let state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        match state {
            TextState::Reading(_, all) => TextState::Reading(self.done.load(Ordering::Relaxed), all),
            other => other,
        }
    }

    fn set(&self, state: TextState) {
        *self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = state;
    }

    /// Reads the texts, unless that was done before.
    pub(super) fn prepare(&self, tables: &Path, originals: &Originals) {
        if self.state() == TextState::Ready {
            return;
        }
        match self.build(tables, originals) {
            Ok(()) => self.set(TextState::Ready),
            Err(failure) => {
                tracing::warn!("texts cannot be searched: {failure}");
                self.set(TextState::Failed(failure.to_string()));
            }
        }
    }

    fn build(&self, tables: &Path, originals: &Originals) -> Outcome<()> {
        let tables = Connection::open_with_flags(tables, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let (pages, places) = pages_of_groups(&tables)?;
        self.set(TextState::Reading(0, places.len() as u64));
        let unfinished = self.path.with_extension("unfinished");
        let _ = std::fs::remove_file(&unfinished);
        let mut connection = Connection::open(&unfinished)?;
        connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")?;
        connection.execute_batch(SCHEMA)?;

        // Pages come in the order of their sources, and are needed group by group.
        let spill = tempfile::tempfile_in(self.path.parent().unwrap_or(Path::new(".")))?;
        let mut spill = BufWriter::new(spill);
        let (mut chunks, mut at) = (Vec::with_capacity(places.len()), 0u64);
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT OR REPLACE INTO beginning VALUES (?1, ?2)")?;
            originals.for_each_blocks(
                &places,
                |blocks| compared(&blocks),
                |number, (beginning, text)| {
                    self.done.fetch_add(1, Ordering::Relaxed);
                    let (page, group) = pages[number];
                    let internal = |error: String| lookalike::Error::internal(error);
                    insert.execute(params![page, beginning]).map_err(|error| internal(error.to_string()))?;
                    spill.write_all(text.as_bytes()).map_err(lookalike::Error::io(&self.path, "write"))?;
                    chunks.push((group, page, at, text.len()));
                    at += text.len() as u64;
                    Ok(())
                },
            )?;
        }
        transaction.commit()?;
        chunks.sort_unstable();
        let mut spill = spill.into_inner().map_err(|error| Failure::File(error.into_error()))?;
        write_words(&mut connection, &tables, &mut spill, &chunks)?;
        connection.close().map_err(|(_, error)| error)?;
        std::fs::rename(&unfinished, &self.path)?;
        Ok(())
    }
}

/// Pages, each with its group.
type PagesAndGroups = Vec<(u32, u32)>;

/// The pages of groups that have a text of their own, with their groups, and where they are.
fn pages_of_groups(tables: &Connection) -> Outcome<(PagesAndGroups, Vec<PagePlace>)> {
    let mut query = tables.prepare(
        "SELECT p.n, p.grp, s.name, p.record, p.start, p.length, p.words FROM page p
         JOIN grp g ON g.n = p.grp JOIN source s ON s.n = p.source
         WHERE g.pages > 1 AND p.original IS NULL AND p.words > 0 ORDER BY p.n",
    )?;
    let (mut pages, mut places) = (Vec::new(), Vec::new());
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        pages.push((row.get(0)?, row.get(1)?));
        places.push(place(row, 2)?);
    }
    Ok((pages, places))
}

/// A place from five columns of a row.
pub(super) fn place(row: &rusqlite::Row<'_>, from: usize) -> rusqlite::Result<PagePlace> {
    let whole = |column: usize| row.get(column).map(|number: i64| number.unsigned_abs());
    Ok(PagePlace {
        source: row.get(from)?,
        record: whole(from + 1)?,
        offset: row.get::<_, Option<i64>>(from + 2)?.map(i64::unsigned_abs),
        length: whole(from + 3)?,
        tokens: row.get(from + 4)?,
    })
}

/// The beginning of a page, and its compared blocks, one per line.
fn compared(blocks: &[PageBlock]) -> (String, String) {
    let mut text = String::new();
    for block in blocks.iter().filter(|block| block.part == BlockPart::Compared) {
        text.push_str(&block.text.replace('\n', " "));
        text.push('\n');
    }
    (beginning(&text), text)
}

/// As much of a text as is shown of it, on one line.
pub(super) fn beginning(text: &str) -> String {
    let mut line: String = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|c| !c.is_control()).take(BEGINNING_CHARS));
        if line.chars().count() >= BEGINNING_CHARS {
            let end = line.char_indices().nth(BEGINNING_CHARS).map_or(line.len(), |(at, _)| at);
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line
}

/// Writes the words of every group: its names, and each passage once.
fn write_words(
    connection: &mut Connection,
    tables: &Connection,
    spill: &mut File,
    chunks: &[(u32, u32, u64, usize)],
) -> Outcome<()> {
    let groups: Vec<&[(u32, u32, u64, usize)]> = chunks.chunk_by(|a, b| a.0 == b.0).collect();
    let mut names = tables.prepare("SELECT title, url, id FROM page WHERE grp = ?1")?;
    for some in groups.chunks(GROUPS_PER_COMMIT) {
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT INTO grp_words (rowid, words) VALUES (?1, ?2)")?;
            for group in some {
                let (mut words, mut seen) = (String::new(), HashSet::new());
                let mut add = |text: &str| {
                    if !text.is_empty() && seen.insert(xxh3_64(text.as_bytes())) {
                        words.push_str(&fold_words(text));
                    }
                };
                let number = group[0].0;
                let mut rows = names.query([number])?;
                while let Some(row) = rows.next()? {
                    (0..3).try_for_each(|column| {
                        row.get::<_, Option<String>>(column).map(|name| name.iter().for_each(|name| add(name)))
                    })?;
                }
                for &(_, _, at, length) in *group {
                    let mut bytes = vec![0; length];
                    spill.seek(SeekFrom::Start(at))?;
                    spill.read_exact(&mut bytes)?;
                    String::from_utf8_lossy(&bytes).lines().for_each(&mut add);
                }
                insert.execute(params![number, words])?;
            }
        }
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_are_short_and_on_one_line() {
        assert_eq!(beginning("one\n two\u{0}\u{7} \t three"), "one two three");
        assert_eq!(beginning(""), "");
        let long = beginning(&"word ".repeat(1000));
        assert!(long.chars().count() <= BEGINNING_CHARS + 1 && long.ends_with('…'));
        assert!(beginning(&"x".repeat(5_000_000)).len() <= BEGINNING_CHARS + 4);
    }
}
