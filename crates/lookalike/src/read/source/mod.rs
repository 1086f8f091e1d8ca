//! What is to be read: files, directories, globs and standard input → a list of sources.
//!
//! Guaranteed: sources come in the order of the arguments, the files of a directory or a pattern by name, and what is
//! named twice stands where it is named first. Each source has a name of its own, which its ids and its file in `kept/`
//! are made of. Results of earlier runs are not read unless they are named. What cannot be read twice (standard input,
//! pipes) is copied to a file first.

pub mod compression;
mod dataset;
pub(super) mod file;
pub(super) mod gzip;
mod look;
pub(super) mod names;
pub(crate) mod patterns;
pub(crate) mod plain;
#[cfg(feature = "remote")]
pub(crate) mod remote;
#[cfg(not(feature = "remote"))]
#[path = "remote_absent.rs"]
pub(super) mod remote;
mod side_by_side;
mod wacz;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use walkdir::WalkDir;

use crate::error::{Error, Result, SkipKind, SkippedRecord};
use crate::files;
use crate::page::PageOrigin;
use crate::read::ReadConfig;
use crate::read::format::Format;
use crate::read::source::compression::Compression;
use crate::read::source::file::{Location, MadeBytes};
pub use crate::read::source::look::known_source;
use crate::read::source::look::look_at;
use crate::read::source::names::{assign_names, readable};
use crate::read::source::patterns::Patterns;

/// How standard input is named, as an argument and in the result.
pub const STDIN: &str = "-";

/// One file to read.
#[derive(Debug, Clone)]
pub struct Source {
    /// What its pages are read for.
    pub(crate) origin: PageOrigin,
    /// Where its bytes are.
    pub(crate) location: Location,
    /// Its name in the output files: the path as it was given.
    pub display: String,
    /// Its unique short name: ids and the file in `kept/` are made of it.
    pub name: String,
    /// What it holds.
    pub format: Format,
    /// How it is packed.
    pub compression: Compression,
    /// Whether every record is compressed by itself, so that each has a place in the file (crawls).
    pub by_member: bool,
    /// Its size on disk.
    pub bytes: u64,
}

impl Source {
    /// Whether a record can be read from its place, without what comes before it.
    #[must_use]
    pub fn is_seekable(&self) -> bool {
        self.compression == Compression::None || self.by_member
    }

    /// Its name, for errors.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(&self.display)
    }

    /// The same source, read for another reason.
    #[must_use]
    pub(crate) fn with_origin(self, origin: PageOrigin) -> Source {
        Source { origin, ..self }
    }

    /// Whether two sources are the same file.
    #[must_use]
    pub fn is_same(&self, other: &Source) -> bool {
        match (self.location.path(), other.location.path()) {
            (Some(one), Some(two)) => one.canonicalize().ok() == two.canonicalize().ok(),
            (None, None) => self.display == other.display,
            _ => false,
        }
    }

    /// Bytes that are already here, as a source.
    ///
    /// # Errors
    /// When they are in no known format.
    pub fn in_memory(name: &str, bytes: Vec<u8>, format: Option<Format>) -> Result<Source> {
        Source::at(name, Location::Memory(bytes.into()), format)
    }

    /// Bytes that are made when they are read, as a source.
    ///
    /// # Errors
    /// When they are in no known format.
    pub fn made(name: &str, bytes: Arc<dyn MadeBytes>) -> Result<Source> {
        Source::at(name, Location::Made(bytes), None)
    }

    fn at(name: &str, location: Location, format: Option<Format>) -> Result<Source> {
        let mut sources = Sources::default();
        let file =
            ListedFile { display: name.to_owned(), name: name.to_owned(), location, in_directory: false, below: 0 };
        look_at(file, format, &mut sources)?;
        sources.list.pop().ok_or_else(|| Error::NotFound { path: name.into() })
    }
}

/// All sources of a run.
#[derive(Debug, Default)]
pub struct Sources {
    /// The sources, in the order in which they were named.
    pub list: Vec<Source>,
    /// Files in directories that are clearly not pages (images, style sheets, …).
    pub ignored: u64,
    /// Results of earlier runs, which are not read because nobody named them.
    pub results: Vec<String>,
    /// Files that patterns leave out.
    pub left_out: u64,
    /// Files that could not be looked at, or are in no format we read.
    pub problems: Vec<SkippedRecord>,
}

impl From<Vec<Source>> for Sources {
    fn from(list: Vec<Source>) -> Sources {
        Sources { list, ..Sources::default() }
    }
}

/// A file that was found, before it was looked at.
struct ListedFile {
    display: String,
    name: String,
    location: Location,
    in_directory: bool,
    /// Where in `name` its path below the input begins.
    below: usize,
}

/// Finds all sources. `output` is never read. What can be read only once is copied to the directory
/// `spool`; without one it is refused.
///
/// # Errors
/// When an input does not exist, is in no known format, lies in the output, or cannot be read.
pub fn discover(inputs: &[String], config: &ReadConfig, output: &Path, spool: Option<&Path>) -> Result<Sources> {
    let patterns = Patterns::new(config)?;
    let mut finder = Finder {
        output: output.canonicalize().ok(),
        spool,
        found: Vec::new(),
        directories: HashSet::new(),
        resolved: HashMap::new(),
        links: HashSet::new(),
        broken_links: Vec::new(),
        sources: Sources::default(),
    };
    let named = expand(inputs)?;
    let prefix = named.iter().filter(|named| named.path().is_some_and(Path::is_dir)).count() > 1;
    for named in &named {
        let before = finder.found.len();
        match named {
            Named::Remote(url) => finder.add_remote(url)?,
            Named::Path(path) => finder.add(path, prefix)?,
            Named::Matched { path, results } => {
                if let Some(result) = results.iter().chain([path]).find(|path| files::is_result(path)) {
                    finder.sources.results.push(display(result));
                } else {
                    finder.add(path, prefix)?;
                }
            }
        }
        finder.found[before..].sort_by(|a, b| (&a.display, &a.name).cmp(&(&b.display, &b.name)));
    }
    let Finder { mut found, mut sources, broken_links, resolved, links, .. } = finder;
    sources.problems.extend(note_links(&broken_links));
    // Resolving a path asks about each of its directories: those that were walked are known.
    let resolve = |path: &Path| {
        let directory = path.parent().and_then(|parent| resolved.get(parent)).filter(|_| !links.contains(path));
        match (directory, path.file_name()) {
            (Some(directory), Some(name)) => directory.join(name),
            _ => path.canonicalize().unwrap_or_else(|_| path.to_path_buf()),
        }
    };
    let mut seen = HashSet::new();
    found.retain(|file| seen.insert(file.location.path().map_or_else(|| PathBuf::from(&file.display), resolve)));
    for file in found {
        if patterns.take(&file.name[file.below..]) {
            look_at(file, config.format, &mut sources)?;
        } else {
            sources.left_out += 1;
        }
    }
    sources.results.sort();
    sources.results.dedup();
    assign_names(&mut sources.list);
    Ok(sources)
}

/// An argument, or one of the paths that it stands for.
enum Named {
    Remote(String),
    Path(PathBuf),
    /// What a pattern matched, and the directories above it that the pattern does not spell out.
    Matched {
        path: PathBuf,
        results: Vec<PathBuf>,
    },
}

impl Named {
    fn path(&self) -> Option<&Path> {
        match self {
            Named::Remote(_) => None,
            Named::Path(path) | Named::Matched { path, .. } => Some(path),
        }
    }
}

/// The arguments in their order, patterns resolved.
fn expand(inputs: &[String]) -> Result<Vec<Named>> {
    let is_pattern = |text: &str| text.contains(['*', '?', '[']);
    let mut named = Vec::new();
    for input in inputs {
        let path = PathBuf::from(input);
        if remote::is_remote(input) {
            named.push(Named::Remote(input.clone()));
        } else if *input == STDIN || path.exists() {
            named.push(Named::Path(path));
        } else if !is_pattern(input) {
            return Err(Error::NotFound { path });
        } else {
            let spelled_out = path.components().take_while(|part| !is_pattern(&part.as_os_str().to_string_lossy()));
            let spelled_out = spelled_out.collect::<PathBuf>();
            let matches = glob::glob(input)
                .map_err(|error| Error::bad_input(Path::new(input), format!("not a valid pattern: {error}")))?;
            let before = named.len();
            named.extend(matches.filter_map(Result::ok).map(|path| {
                let above = path.ancestors().skip(1).take_while(|above| *above != spelled_out);
                let results = above.filter(|above| !above.as_os_str().is_empty()).map(Path::to_path_buf).collect();
                Named::Matched { path, results }
            }));
            if named.len() == before {
                let hint = ": the pattern matches no file".to_owned();
                return Err(Error::NoPages { inputs: input.clone(), hint });
            }
        }
    }
    Ok(named)
}

struct Finder<'a> {
    output: Option<PathBuf>,
    spool: Option<&'a Path>,
    found: Vec<ListedFile>,
    /// Directories that have been walked, links resolved: a loop of links is walked once.
    directories: HashSet<PathBuf>,
    /// The same by their paths, and where each is.
    resolved: HashMap<PathBuf, PathBuf>,
    /// Files that are links.
    links: HashSet<PathBuf>,
    /// Links that lead nowhere.
    broken_links: Vec<PathBuf>,
    sources: Sources,
}

impl Finder<'_> {
    fn is_in_output(&self, path: &Path) -> bool {
        self.output.as_ref().is_some_and(|output| path.canonicalize().is_ok_and(|path| path.starts_with(output)))
    }

    fn add(&mut self, path: &Path, prefix: bool) -> Result<()> {
        if path != Path::new(STDIN) && self.is_in_output(path) {
            let reason = "lies in the output directory, which the result is written to; choose another `output`";
            return Err(Error::bad_input(path, reason));
        }
        if path.is_dir() {
            let stem = path.canonicalize().ok().and_then(|full| full.file_name().map(|name| readable(name.as_ref())));
            let stem = stem.filter(|_| prefix).map_or_else(String::new, |name| name + "/");
            fs::read_dir(path).map_err(Error::io(path, "read"))?;
            return if files::is_result(path) { self.add_result(path, &stem) } else { self.walk(path, &stem) };
        }
        let is_stdin = path == Path::new(STDIN);
        let name = if is_stdin {
            "stdin".to_owned()
        } else {
            path.file_name().map_or_else(String::new, |name| readable(name.as_ref()))
        };
        let path_to_read =
            if !is_stdin && path.is_file() { path.to_path_buf() } else { self.copy_stream(path, is_stdin)? };
        let location = Location::File(path_to_read);
        self.found.push(ListedFile { display: display(path), name, location, in_directory: false, below: 0 });
        Ok(())
    }

    /// A result that was named: what it kept.
    fn add_result(&mut self, result: &Path, stem: &str) -> Result<()> {
        let kept = result.join(files::KEPT);
        if !kept.is_dir() {
            let reason = "is a lookalike result without kept records; name the files that it was made from";
            return Err(Error::bad_input(result, reason));
        }
        let list = kept.join(files::KEPT_LIST);
        if list.exists() {
            let reason = format!(
                "is a lookalike result of page files, which {} lists; use `files_from` with that list, or make the result with `copy_kept`",
                display(&list)
            );
            return Err(Error::bad_input(result, reason));
        }
        self.walk(&kept, stem)
    }

    /// Objects in a store.
    fn add_remote(&mut self, input: &str) -> Result<()> {
        let objects = remote::find(input).map_err(|cause| Error::Remote { url: input.to_owned(), cause })?;
        let is_alone = objects.len() == 1 && objects[0].url == input;
        for object in objects {
            let path = object.url.split(['?', '#']).next().unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            let display = object.url.clone();
            let location = Location::Remote(object);
            self.found.push(ListedFile { display, name, location, in_directory: !is_alone, below: 0 });
        }
        Ok(())
    }

    /// Adds the files below a directory. Links are followed; of several ways to a directory, the last one is taken.
    fn walk(&mut self, root: &Path, stem: &str) -> Result<()> {
        let mut entries =
            WalkDir::new(root).follow_links(true).sort_by(|a, b| b.file_name().cmp(a.file_name())).into_iter();
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.note_unreadable(root, error)?;
                    continue;
                }
            };
            let is_ours = entry.depth() == 0 || !is_hidden(entry.path());
            if entry.file_type().is_dir() {
                let is_result = is_ours && entry.depth() > 0 && files::is_result(entry.path());
                if is_result {
                    self.sources.results.push(display(entry.path()));
                }
                if !is_ours || is_result || !self.is_new_directory(entry.path()) {
                    entries.skip_current_dir();
                }
            } else if is_ours && entry.file_type().is_file() {
                let relative = readable(entry.path().strip_prefix(root).expect("entries are below the root"));
                if entry.path_is_symlink() {
                    self.links.insert(entry.path().to_path_buf());
                }
                self.found.push(ListedFile {
                    display: display(entry.path()),
                    name: format!("{stem}{relative}"),
                    location: Location::File(entry.into_path()),
                    in_directory: true,
                    below: stem.len(),
                });
            } else if is_ours {
                self.sources.ignored += 1; // a socket, a pipe, a device
            }
        }
        Ok(())
    }

    /// Whether a directory has not been walked yet, and is not the output.
    fn is_new_directory(&mut self, directory: &Path) -> bool {
        let Ok(resolved) = directory.canonicalize() else { return self.directories.insert(directory.to_path_buf()) };
        let is_output = self.output.as_ref().is_some_and(|output| resolved.starts_with(output));
        self.resolved.insert(directory.to_path_buf(), resolved.clone());
        !is_output && self.directories.insert(resolved)
    }

    /// Something below a directory that cannot be looked at: reported, unless it is hidden.
    fn note_unreadable(&mut self, root: &Path, error: walkdir::Error) -> Result<()> {
        match (error.path(), error.io_error()) {
            (_, None) => {} // a link that leads back: what is there is walked already
            (None, Some(_)) => return Err(Error::io(root, "read")(error.into())),
            (Some(path), Some(_)) if !is_hidden(path) && path.is_symlink() && !path.exists() => {
                self.broken_links.push(path.to_path_buf());
            }
            (Some(path), Some(cause)) if !is_hidden(path) => {
                self.sources.problems.push(unreadable(display(path), cause));
            }
            (Some(_), Some(_)) => {}
        }
        Ok(())
    }

    /// Copies what can be read only once.
    fn copy_stream(&self, path: &Path, is_stdin: bool) -> Result<PathBuf> {
        let Some(spool) = self.spool else {
            let reason = "can be read only once, so `dry_run` would use it up; give a file";
            return Err(Error::bad_input(path, reason));
        };
        let copy = spool.join(format!("input-{}", self.found.len()));
        let mut file = File::create(&copy).map_err(Error::io(&copy, "create"))?;
        let copied = if is_stdin {
            io::copy(&mut io::stdin().lock(), &mut file)
        } else {
            let mut stream = File::open(path).map_err(Error::io(path, "read"))?;
            io::copy(&mut stream, &mut file)
        };
        copied.map_err(Error::io(&copy, "write"))?;
        Ok(copy)
    }
}

/// By its name.
fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// One note on all links that lead nowhere.
fn note_links(links: &[PathBuf]) -> Option<SkippedRecord> {
    let first = links.iter().min()?;
    let error = match links.len() {
        1 => io::Error::other("the link leads nowhere"),
        count => io::Error::other(format!("{count} links lead nowhere, of which this is the first")),
    };
    Some(unreadable(display(first), &error))
}

fn unreadable(source: String, error: &io::Error) -> SkippedRecord {
    let reason = format!("cannot be read: {error}");
    SkippedRecord { kind: SkipKind::Unreadable, source, record: None, byte: None, reason, first_bytes: String::new() }
}

fn display(path: &Path) -> String {
    readable(path.strip_prefix("./").unwrap_or(path))
}

#[cfg(test)]
mod tests;
