//! What is to be read: files, directories, globs and standard input → a sorted list of sources.
//!
//! Guaranteed: the same files in any order of the arguments give the same list; each source has a
//! name of its own, which its ids and its file in `kept/` are made of.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result, SkipKind, SkippedRecord};
use crate::read::compression::Compression;
use crate::read::format::{Format, is_no_page};

/// How much of a file is looked at to tell its format.
const HEAD_BYTES: u64 = 4096;

/// One file to read.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// Its name in the output files: the path as it was given.
    pub display: String,
    /// Its unique short name: ids and the file in `kept/` are made of it.
    pub name: String,
    /// What it holds.
    pub format: Format,
    /// How it is packed.
    pub compression: Compression,
    /// Its size on disk.
    pub bytes: u64,
}

/// All sources of a run.
#[derive(Debug, Default)]
pub struct Sources {
    /// The sources, by name.
    pub list: Vec<Source>,
    /// Files in directories that are plainly no pages (images, style sheets, …).
    pub ignored: u64,
    /// Files that could not be looked at.
    pub problems: Vec<SkippedRecord>,
}

/// A file that was found, before it was looked at.
struct Found {
    path: PathBuf,
    name: String,
    in_directory: bool,
}

/// Finds all sources. `exclude` (the output directory) is never read; standard input is copied to
/// `spool`.
///
/// # Errors
/// When an input does not exist, is in no known format, or cannot be read.
pub fn discover(inputs: &[String], format: Option<Format>, exclude: &Path, spool: &Path) -> Result<Sources> {
    let mut sources = Sources::default();
    let mut found = Vec::new();
    let directories = inputs.iter().filter(|input| Path::new(input).is_dir()).count();
    let mut read_stdin = false;
    for input in inputs {
        if input == "-" {
            read_stdin = true;
            continue;
        }
        let path = PathBuf::from(input);
        if path.exists() {
            visit(&path, directories > 1, exclude, &mut found, &mut sources)?;
            continue;
        }
        if !input.contains(['*', '?', '[']) {
            return Err(Error::NotFound { path });
        }
        let matches =
            glob::glob(input).map_err(|error| Error::Usage(format!("{input}: not a valid pattern: {error}")))?;
        let matches: Vec<PathBuf> = matches.filter_map(Result::ok).collect();
        if matches.is_empty() {
            return Err(Error::NoPages { inputs: input.clone(), hint: ": the pattern matches no file".to_owned() });
        }
        let many = matches.iter().filter(|path| path.is_dir()).count() + directories > 1;
        for path in matches {
            visit(&path, many, exclude, &mut found, &mut sources)?;
        }
    }
    found.sort_by_key(|a| display(&a.path));
    make_unique(&mut found);
    for file in found {
        look_at(file, format, &mut sources)?;
    }
    if read_stdin {
        let source = spool_stdin(format, spool)?;
        let at = sources.list.partition_point(|known| known.display < source.display);
        sources.list.insert(at, source);
    }
    Ok(sources)
}

/// Whether `path` lies in the output directory.
fn is_excluded(path: &Path, exclude: &Path) -> bool {
    exclude.canonicalize().is_ok_and(|exclude| path.canonicalize().is_ok_and(|path| path.starts_with(exclude)))
}

fn visit(path: &Path, prefix: bool, exclude: &Path, found: &mut Vec<Found>, sources: &mut Sources) -> Result<()> {
    if !path.is_dir() {
        let name = path.file_name().map_or_else(|| display(path), |name| name.to_string_lossy().into_owned());
        found.push(Found { path: path.to_path_buf(), name, in_directory: false });
        return Ok(());
    }
    let stem =
        path.canonicalize().ok().and_then(|full| full.file_name().map(|name| name.to_string_lossy().into_owned()));
    let stem = stem.filter(|_| prefix).map_or_else(String::new, |name| name + "/");
    fs::read_dir(path).map_err(Error::io(path, "read"))?;
    let mut waiting = vec![path.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        if is_excluded(&directory, exclude) {
            continue;
        }
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) => {
                sources.problems.push(unreadable(display(&directory), &error));
                continue;
            }
        };
        for entry in entries {
            let entry = entry.map_err(Error::io(&directory, "read"))?;
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            let kind = entry.file_type().map_err(Error::io(&entry.path(), "read"))?;
            if hidden {
                continue;
            }
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if entry.path().is_file() {
                let relative = entry.path();
                let relative = relative.strip_prefix(path).unwrap_or(&relative).to_string_lossy().into_owned();
                found.push(Found { path: entry.path(), name: format!("{stem}{relative}"), in_directory: true });
            }
        }
    }
    Ok(())
}

/// One entry a file, each with a name that no other has.
fn make_unique(found: &mut Vec<Found>) {
    let mut seen = HashMap::new();
    found.retain(|file| {
        let full = file.path.canonicalize().unwrap_or_else(|_| file.path.clone());
        seen.insert(full, ()).is_none()
    });
    let mut count: HashMap<String, usize> = HashMap::new();
    for file in found.iter() {
        *count.entry(file.name.clone()).or_default() += 1;
    }
    for file in found.iter_mut().filter(|file| count.get(&file.name).is_some_and(|&count| count > 1)) {
        // The path itself, less what cannot stand in a path below another directory.
        let parts: Vec<String> = file
            .path
            .components()
            .filter_map(|part| match part {
                Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
                Component::ParentDir => Some("up".to_owned()),
                _ => None,
            })
            .collect();
        file.name = parts.join("/");
    }
}

fn look_at(file: Found, forced: Option<Format>, sources: &mut Sources) -> Result<()> {
    let Found { path, name, in_directory } = file;
    if in_directory && forced.is_none() && is_no_page(&path) {
        sources.ignored += 1;
        return Ok(());
    }
    let raw = read_head(&mut match File::open(&path) {
        Ok(file) => file,
        Err(error) if in_directory => {
            sources.problems.push(unreadable(display(&path), &error));
            return Ok(());
        }
        Err(error) => return Err(Error::Io { path, action: "open", source: error }),
    });
    let raw = raw.map_err(Error::io(&path, "read"))?;
    let compression = Compression::of(&raw);
    let head = match compression {
        Compression::None => raw,
        // A damaged start is found again, and reported, when the file is read.
        _ => compression.open(&path).and_then(|mut file| read_head(&mut file)).unwrap_or_default(),
    };
    let known = forced.or_else(|| Format::by_name(&path));
    let format = match (known, Format::by_content(&head)) {
        // A name or a flag says it, unless it says JSON lines and the file is one array.
        (Some(Format::Jsonl), Err(reason)) if head.trim_ascii_start().starts_with(b"[") => {
            return Err(Error::UnknownFormat { path, reason });
        }
        (Some(format), _) | (None, Ok(format)) => format,
        (None, Err(_)) if in_directory => {
            sources.ignored += 1;
            return Ok(());
        }
        (None, Err(reason)) => return Err(Error::UnknownFormat { path, reason }),
    };
    let bytes = fs::metadata(&path).map_err(Error::io(&path, "read"))?.len();
    sources.list.push(Source { display: display(&path), name, path, format, compression, bytes });
    Ok(())
}

/// A source that is known from an earlier run.
///
/// # Errors
/// When the file is gone or cannot be read.
pub fn known_source(display: &str, name: &str, format: Option<Format>) -> Result<Source> {
    let mut sources = Sources::default();
    let path = PathBuf::from(display);
    if !path.exists() {
        let reason =
            "was read by the run that made this result and is not there now; run this from the same folder".to_owned();
        return Err(Error::BadResult { path, reason });
    }
    look_at(Found { path: path.clone(), name: name.to_owned(), in_directory: false }, format, &mut sources)?;
    sources.list.pop().ok_or(Error::NotFound { path })
}

fn spool_stdin(forced: Option<Format>, spool: &Path) -> Result<Source> {
    let mut file = File::create(spool).map_err(Error::io(spool, "create"))?;
    let bytes = io::copy(&mut io::stdin().lock(), &mut file).map_err(Error::io(spool, "write"))?;
    let stdin = Path::new("-");
    let raw = read_head(&mut File::open(spool).map_err(Error::io(spool, "read"))?).map_err(Error::io(spool, "read"))?;
    let compression = Compression::of(&raw);
    let head = match compression {
        Compression::None => raw,
        _ => compression.open(spool).and_then(|mut file| read_head(&mut file)).unwrap_or_default(),
    };
    let format = match forced {
        Some(format) => format,
        None => {
            Format::by_content(&head).map_err(|reason| Error::UnknownFormat { path: stdin.to_path_buf(), reason })?
        }
    };
    let ending = match compression {
        Compression::None => "",
        Compression::Gzip => ".gz",
        Compression::Zstd => ".zst",
    };
    let name = format!("stdin.{}{ending}", format.name());
    Ok(Source { path: spool.to_path_buf(), display: "-".to_owned(), name, format, compression, bytes })
}

fn read_head(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

fn unreadable(source: String, error: &io::Error) -> SkippedRecord {
    let reason = format!("cannot be read: {error}");
    SkippedRecord { kind: SkipKind::Unreadable, source, record: None, byte: None, reason, first_bytes: String::new() }
}

fn display(path: &Path) -> String {
    path.strip_prefix("./").unwrap_or(path).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(inputs: &[&Path]) -> Vec<(String, String)> {
        let inputs: Vec<String> = inputs.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let nowhere = Path::new("/nonexistent");
        let sources = discover(&inputs, None, nowhere, nowhere).unwrap();
        sources.list.into_iter().map(|source| (source.name, source.format.name().to_owned())).collect()
    }

    #[test]
    fn names_are_unique_and_do_not_depend_on_the_order_of_the_arguments() {
        let root = tempfile::tempdir().unwrap();
        for (file, content) in [
            ("a/x.html", "<p>"),
            ("a/deep/y.txt", "y"),
            ("b/x.html", "<p>"),
            ("b/logo.png", "png"),
            ("b/.hidden", "no"),
            ("c.jsonl", "{}"),
        ] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let (a, b, c) = (root.path().join("a"), root.path().join("b"), root.path().join("c.jsonl"));
        let expected = [("a/deep/y.txt", "text"), ("a/x.html", "html"), ("b/x.html", "html"), ("c.jsonl", "jsonl")];
        let expected: Vec<(String, String)> =
            expected.iter().map(|(name, format)| ((*name).to_owned(), (*format).to_owned())).collect();
        assert_eq!(names(&[&a, &b, &c]), expected);
        assert_eq!(names(&[&c, &b, &a, &c]), expected);
        assert_eq!(
            names(&[&a]),
            [("deep/y.txt".to_owned(), "text".to_owned()), ("x.html".to_owned(), "html".to_owned())]
        );
        // Two files of one name: the whole path tells them apart.
        let both = names(&[&a.join("x.html"), &b.join("x.html")]);
        assert!(both[0].0.ends_with("a/x.html") && both[1].0.ends_with("b/x.html"));
    }
}
