//! A result as tables that can be asked: pages, groups, links between them, and the words of their titles.
//!
//! In: a result directory. Out: an SQLite file beside it, made once for a result and made again when the result changes.
//! Nothing in it is anybody's work: it can be deleted. Pages are numbers, in the order of `pages.parquet`; a group has the
//! number of its kept page.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use lookalike::result::{Originals, files, fold_words};
use lookalike::result::{for_each_capture, for_each_page, for_each_page_fate, for_each_pair};
use rusqlite::{Connection, params};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::failure::{Failure, Outcome};

/// The version of the layout; another one is made anew.
const FORMAT: u64 = 3;

const SCHEMA: &str = "
CREATE TABLE page (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL, grp INTEGER NOT NULL, kind TEXT NOT NULL, similarity REAL NOT NULL,
    page_similarity REAL, url TEXT, title TEXT, site TEXT, seconds INTEGER, words INTEGER NOT NULL, source INTEGER NOT NULL,
    record INTEGER NOT NULL, start INTEGER, length INTEGER NOT NULL, original INTEGER);
CREATE TABLE grp (
    n INTEGER PRIMARY KEY, pages INTEGER NOT NULL, weakest REAL NOT NULL, mean REAL NOT NULL, sites INTEGER NOT NULL,
    site TEXT NOT NULL, kinds INTEGER NOT NULL);
CREATE TABLE grp_site (site TEXT NOT NULL, grp INTEGER NOT NULL, PRIMARY KEY (site, grp)) WITHOUT ROWID;
CREATE TABLE link (
    left INTEGER NOT NULL, right INTEGER NOT NULL, left_grp INTEGER NOT NULL, right_grp INTEGER NOT NULL,
    similarity REAL NOT NULL, page_similarity REAL, is_accepted INTEGER NOT NULL);
CREATE TABLE source (n INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE grp_tag (
    tag INTEGER NOT NULL, coder INTEGER NOT NULL, grp INTEGER NOT NULL, pages INTEGER NOT NULL,
    PRIMARY KEY (tag, grp, coder)) WITHOUT ROWID;
CREATE TABLE plot (name TEXT PRIMARY KEY, svg TEXT NOT NULL);
CREATE VIRTUAL TABLE grp_names USING fts5 (names, content='', detail=full, tokenize=\"unicode61 remove_diacritics 0\");
CREATE VIRTUAL TABLE single_names USING fts5 (names, content='', detail=full, tokenize=\"unicode61 remove_diacritics 0\");
";

/// Made after the rows, which is faster.
const INDEXES: &str = "
CREATE INDEX page_by_grp ON page (grp, similarity DESC, n);
CREATE INDEX page_by_id ON page (id);
CREATE INDEX grp_tag_by_grp ON grp_tag (grp);
CREATE INDEX link_by_left ON link (left_grp);
CREATE INDEX link_by_right ON link (right_grp);
ANALYZE;
";

/// The kinds of pages in a group, as bits.
pub(super) const KINDS: [(&str, &str, u8); 4] = [
    ("exact", "exact copies", 1),
    ("same_core", "same text in another frame", 2),
    ("near", "near-duplicates", 4),
    ("contained", "contained in it", 8),
];

/// Characters of a title that are searched; the rest is hardly a title.
const TITLE_CHARS: usize = 1000;

/// What a result is recognised by: another run, or another clustering, has another one.
pub(super) fn fingerprint(directory: &Path) -> Outcome<String> {
    let mut facts = fs::read(directory.join(files::SUMMARY))?;
    for table in [files::PAGES, files::CLUSTERS, files::PAIRS, files::NEAR_MISSES] {
        let metadata = fs::metadata(directory.join(table.parquet))?;
        facts.extend(format!("{} {:?}", metadata.len(), metadata.modified()?).into_bytes());
    }
    Ok(format!("{FORMAT}-{:016x}", xxh3_64(&facts)))
}

/// Held by whoever shows a result.
const LOCK: &str = "lock";

/// Keeps a second workbench away from a result: each would not know what the other one changes.
pub(super) fn lock(directory: &Path) -> Outcome<fs::File> {
    let home = directory.join(files::WORKBENCH_INDEX);
    let unwritable =
        |error: std::io::Error| Failure::Refused(format!("cannot be written to, and tags are saved there: {error}"));
    fs::create_dir_all(&home).map_err(unwritable)?;
    let lock = fs::File::create(home.join(LOCK)).map_err(unwritable)?;
    match lock.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Err(Failure::Refused(
            "is already shown by another lookalike view; open its address, or stop it first".to_owned(),
        )),
        // File systems without locks are used at one's own risk.
        _ => Ok(lock),
    }
}

/// The file with the tables of a result, made if it is not there.
pub(super) fn prepare(
    directory: &Path,
    input_pages: u64,
    originals: &Originals,
    say: &mut dyn FnMut(&str),
) -> Outcome<PathBuf> {
    let home = directory.join(files::WORKBENCH_INDEX);
    let path = home.join(format!("tables-{}.sqlite", fingerprint(directory)?));
    if path.exists() {
        return Ok(path);
    }
    say("preparing the result for browsing; this is done once");
    // What an earlier result left.
    for entry in fs::read_dir(&home)? {
        let entry = entry?;
        if entry.file_name() != LOCK {
            fs::remove_file(entry.path())?;
        }
    }
    let unfinished = home.join("unfinished.sqlite");
    build(directory, input_pages, originals, &unfinished)?;
    fs::rename(&unfinished, &path)?;
    Ok(path)
}

/// What is counted of a group.
#[derive(Default)]
struct Count {
    pages: u64,
    /// Those of the input; the others are of another corpus, which it was held against.
    of_input: u64,
    weakest: f64,
    sum: f64,
    kinds: u8,
    sites: HashSet<u32>,
    kept_site: Option<u32>,
}

/// What became of a page.
struct Fate {
    group: u32,
    kind: String,
    similarity: f64,
    page_similarity: Option<f64>,
}

/// Sites as numbers.
#[derive(Default)]
struct Sites {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl Sites {
    fn number(&mut self, site: &str) -> u32 {
        if let Some(&number) = self.numbers.get(site) {
            return number;
        }
        let number = count_of(self.names.len());
        self.numbers.insert(site.to_owned(), number);
        self.names.push(site.to_owned());
        number
    }
}

/// Pages are numbered with 32 bits, as everywhere.
fn count_of(pages: usize) -> u32 {
    u32::try_from(pages).unwrap_or(u32::MAX)
}

/// A whole number as SQLite has them.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What the tables say of each page, by its number.
struct Tables<'a> {
    directory: &'a Path,
    numbers: HashMap<u128, u32>,
    fates: Vec<Fate>,
    seconds: HashMap<u32, u64>,
    counts: HashMap<u32, Count>,
    sites: Sites,
}

impl Tables<'_> {
    fn read(directory: &Path, input_pages: u64) -> Outcome<Tables<'_>> {
        let mut numbers: HashMap<u128, u32> = HashMap::new();
        for_each_page(directory, |page| {
            numbers.insert(xxh3_128(page.id.as_bytes()), count_of(numbers.len()));
        })?;
        let number = |id: &str| numbers.get(&xxh3_128(id.as_bytes())).copied();
        let mut fates: Vec<Fate> = Vec::with_capacity(numbers.len());
        for_each_page_fate(directory, |fate| {
            let group = number(&fate.kept_id).unwrap_or(count_of(fates.len()));
            let (kind, similarity, page_similarity) = (fate.kind, fate.similarity, fate.page_similarity);
            fates.push(Fate { group, kind, similarity, page_similarity });
        })?;
        let mut seconds: HashMap<u32, u64> = HashMap::new();
        for_each_capture(directory, |id, at| seconds.extend(number(id).map(|page| (page, at))))?;
        let mut counts: HashMap<u32, Count> = HashMap::new();
        for (page, fate) in (0u64..).zip(&fates) {
            let count = counts.entry(fate.group).or_insert_with(|| Count { weakest: 1.0, ..Count::default() });
            count.pages += 1;
            count.of_input += u64::from(page < input_pages);
            count.weakest = count.weakest.min(fate.similarity);
            count.sum += fate.similarity;
            count.kinds |= KINDS.iter().find(|kind| kind.0 == fate.kind).map_or(0, |kind| kind.2);
        }
        Ok(Tables { directory, numbers, fates, seconds, counts, sites: Sites::default() })
    }

    fn number(&self, id: &str) -> Option<u32> {
        self.numbers.get(&xxh3_128(id.as_bytes())).copied()
    }

    /// The pages; also counts the sites of each group.
    fn insert_pages(&mut self, connection: &Connection, originals: &Originals) -> Outcome<()> {
        let mut insert = connection.prepare(
            "INSERT INTO page VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        )?;
        let mut insert_source = connection.prepare("INSERT INTO source VALUES (?1, ?2)")?;
        let (mut page, mut source, mut source_name) = (0u32, -1i64, String::new());
        let mut failed: Option<rusqlite::Error> = None;
        let mut found: Vec<(u32, u32, String)> = Vec::new();
        for_each_page(self.directory, |row| {
            let Some(fate) = self.fates.get(page as usize).filter(|_| failed.is_none()) else { return };
            let site = row.url.and_then(|url| originals.site(url));
            let original = row.revisit_of.and_then(|id| self.number(id));
            let mut store = || {
                if source < 0 || source_name != row.source {
                    source += 1;
                    row.source.clone_into(&mut source_name);
                    insert_source.execute(params![source, source_name])?;
                }
                insert.execute(params![
                    page,
                    row.id,
                    fate.group,
                    fate.kind,
                    fate.similarity,
                    fate.page_similarity,
                    row.url,
                    row.title,
                    site,
                    self.seconds.get(&page).map(|&at| stored(at)),
                    row.tokens,
                    source,
                    stored(row.record),
                    row.offset.map(stored),
                    stored(row.length),
                    original,
                ])
            };
            failed = store().err();
            found.extend(site.map(|site| (fate.group, page, site)));
            page += 1;
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        for (group, page, site) in found {
            let site = self.sites.number(&site);
            let count = self.counts.entry(group).or_default();
            count.sites.insert(site);
            if group == page {
                count.kept_site = Some(site);
            }
        }
        Ok(())
    }

    fn insert_groups(&self, connection: &Connection) -> Outcome<()> {
        let mut insert = connection.prepare("INSERT INTO grp VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
        let mut insert_site = connection.prepare("INSERT INTO grp_site VALUES (?1, ?2)")?;
        let mut groups: Vec<(&u32, &Count)> = self.counts.iter().collect();
        // A cluster of another corpus alone is nobody's work here.
        groups.retain(|row| row.1.of_input > 0);
        groups.sort_unstable_by_key(|row| row.0);
        for (group, count) in groups {
            let site = count.kept_site.map_or("", |site| &self.sites.names[site as usize]);
            let mean = count.sum / count.pages.max(1) as f64;
            let (pages, sites) = (stored(count.pages), count_of(count.sites.len()));
            insert.execute(params![group, pages, count.weakest, mean, sites, site, count.kinds])?;
            for &site in &count.sites {
                insert_site.execute(params![self.sites.names[site as usize], group])?;
            }
        }
        Ok(())
    }

    /// The words of what pages are called: titles, addresses, ids.
    fn insert_names(&self, connection: &Connection) -> Outcome<()> {
        for (table, sizes) in [("grp_names", "pages > 1"), ("single_names", "pages = 1")] {
            let mut query = connection.prepare(&format!(
                "SELECT p.grp, p.title, p.url, p.id FROM page p JOIN grp g ON g.n = p.grp WHERE g.{sizes} ORDER BY p.grp"
            ))?;
            let mut insert = connection.prepare(&format!("INSERT INTO {table} (rowid, names) VALUES (?1, ?2)"))?;
            let mut rows = query.query([])?;
            let (mut group, mut names, mut seen) = (None, String::new(), HashSet::new());
            while let Some(row) = rows.next()? {
                let next: i64 = row.get(0)?;
                if group != Some(next) {
                    if let Some(group) = group {
                        insert.execute(params![group, names])?;
                    }
                    group = Some(next);
                    names.clear();
                    seen.clear();
                }
                for column in 1..4 {
                    let text: Option<String> = row.get(column)?;
                    let text: String = text.unwrap_or_default().chars().take(TITLE_CHARS).collect();
                    // Many pages of a group have the same title.
                    if !text.is_empty() && seen.insert(xxh3_64(text.as_bytes())) {
                        names.push_str(&fold_words(&text));
                        names.push_str("\u{1} ");
                    }
                }
            }
            if let Some(group) = group {
                insert.execute(params![group, names])?;
            }
        }
        Ok(())
    }

    fn insert_links(&self, connection: &Connection) -> Outcome<()> {
        let mut insert = connection.prepare("INSERT INTO link VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
        let mut failed: Option<rusqlite::Error> = None;
        for_each_pair(self.directory, |pair| {
            let (Some(left), Some(right)) = (self.number(pair.left), self.number(pair.right)) else { return };
            let group = |page: u32| self.fates.get(page as usize).map(|fate| fate.group);
            let row = params![
                left,
                right,
                group(left),
                group(right),
                pair.similarity,
                pair.page_similarity,
                pair.is_accepted
            ];
            if failed.is_none() {
                failed = insert.execute(row).err();
            }
        })?;
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    fn insert_plots(&self, connection: &Connection, originals: &Originals) -> Outcome<()> {
        let sizes = self.counts.values().filter(|count| count.pages > 1 && count.of_input > 0).map(|count| count.pages);
        let sizes: Vec<u64> = sizes.collect();
        let (mut accepted, mut close) = (Vec::new(), Vec::new());
        for_each_pair(self.directory, |pair| {
            if pair.is_accepted { &mut accepted } else { &mut close }.push(pair.similarity);
        })?;
        for (name, svg) in ["sizes", "similarities"].iter().zip(originals.plots(&sizes, &accepted, &close)) {
            connection.execute("INSERT INTO plot VALUES (?1, ?2)", params![name, svg])?;
        }
        Ok(())
    }
}

fn build(directory: &Path, input_pages: u64, originals: &Originals, path: &Path) -> Outcome<()> {
    let mut connection = Connection::open(path)?;
    // If it is not finished it is made anew: nothing has to be safe on the way.
    connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;")?;
    connection.execute_batch(SCHEMA)?;
    let mut tables = Tables::read(directory, input_pages)?;
    let transaction = connection.transaction()?;
    tables.insert_pages(&transaction, originals)?;
    tables.insert_groups(&transaction)?;
    tables.insert_links(&transaction)?;
    tables.insert_plots(&transaction, originals)?;
    transaction.execute_batch(INDEXES)?;
    tables.insert_names(&transaction)?;
    transaction.commit()?;
    connection.execute_batch("PRAGMA journal_mode = WAL;")?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(())
}
