//! A file that was found → a source: its compression and its format, recognised by its name and its first bytes; a WACZ file
//! is as many sources as it holds web archives. A file in a directory that is nothing of the kind is skipped, or noted;
//! one that was named is refused.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, SkipKind, SkippedRecord};
use crate::page::PageOrigin;
use crate::read::format::{Format, is_no_page};
use crate::read::source::compression::Compression;
use crate::read::source::file::Location;
use crate::read::source::{ListedFile, STDIN, Source, Sources, dataset, remote, unreadable, wacz};

/// How much of a file is looked at to recognise its format.
const HEAD_BYTES: usize = 4096;

/// Adds the source, or sources, that a file is; or what is wrong with it.
pub(super) fn look_at(file: ListedFile, forced: Option<Format>, sources: &mut Sources) -> Result<()> {
    let ListedFile { display, mut name, location, in_directory, .. } = file;
    let is_other = forced.is_none() && is_no_page(Path::new(&name));
    if in_directory && (is_other || location.path().is_some_and(dataset::is_description)) {
        sources.ignored += 1;
        return Ok(());
    }
    let head = location.open().and_then(|mut file| Ok((read_head(&mut file)?, file.size(&location)?)));
    let (raw, bytes) = match head {
        Ok(head) => head,
        Err(error) if in_directory => {
            sources.problems.push(unreadable(display, &error));
            return Ok(());
        }
        Err(error) => return Err(Error::io(Path::new(&display), "read")(error)),
    };
    if let Some(archives) = wacz::archives(&raw, &location) {
        return look_into(&archives, &display, &name, in_directory, sources);
    }
    let compression = Compression::of(&raw);
    let is_empty = raw.is_empty();
    let head = match compression {
        Compression::None => raw,
        // A damaged start is found again, and reported, when the file is read.
        _ => location
            .open()
            .and_then(|file| compression.decode(file))
            .and_then(|mut file| read_head(&mut file))
            .unwrap_or_default(),
    };
    if display == STDIN && is_empty {
        return Ok(());
    }
    // The name of an object on the web ends where its query begins.
    let named = if location.path().is_some() { display.as_str() } else { name.as_str() };
    let known = forced.or_else(|| Format::by_name(Path::new(named)));
    let known = match (forced, known) {
        (None, Some(named)) => Some(named.reader().rather(&head).unwrap_or(named)),
        _ => known,
    };
    let format = match known {
        // A name or a setting says it, unless its reader knows better.
        Some(format) => format.reader().recognise(&head).map(|_| format),
        None => match Format::by_content(&head) {
            Err(_) if in_directory => {
                sources.ignored += 1;
                return Ok(());
            }
            found => found,
        },
    };
    let format = format.and_then(|format| match compression {
        Compression::None => Ok(format),
        _ if format.reader().may_be_compressed() => Ok(format),
        _ => Err(format!("is {} inside another compression; unpack it first", format.name())),
    });
    let format = match format {
        Ok(format) => format,
        Err(reason) if in_directory => {
            let (source, first_bytes) = (display, SkippedRecord::excerpt(&head));
            let kind = SkipKind::Unreadable;
            sources.problems.push(SkippedRecord { kind, source, record: None, byte: None, reason, first_bytes });
            return Ok(());
        }
        Err(reason) => return Err(Error::UnknownFormat { path: display.into(), reason, formats: Format::list() }),
    };
    if display == STDIN {
        name = format!("{name}.{}{}", format.name(), compression.ending());
    }
    let mut source =
        Source { origin: PageOrigin::Input, display, name, location, format, compression, by_member: false, bytes };
    source.by_member = format.members().is_some_and(|members| members.is_by_member(&source));
    sources.list.push(source);
    Ok(())
}

/// The web archives in a WACZ file, each a source.
fn look_into(
    archives: &io::Result<Vec<wacz::Archive>>,
    display: &str,
    name: &str,
    in_directory: bool,
    sources: &mut Sources,
) -> Result<()> {
    let archives = match archives {
        Ok(archives) => archives,
        Err(error) if in_directory => {
            sources.problems.push(unreadable(display.to_owned(), error));
            return Ok(());
        }
        Err(error) => return Err(Error::bad_input(Path::new(display), error.to_string())),
    };
    for archive in archives {
        let display = format!("{display}/{}", archive.name);
        let name = format!("{name}/{}", archive.name);
        match &archive.location {
            Ok(location) => {
                let location = location.clone();
                look_at(ListedFile { display, name, location, in_directory: true, below: 0 }, None, sources)?;
            }
            Err(reason) => sources.problems.push(unreadable(display, &io::Error::other(*reason))),
        }
    }
    Ok(())
}

/// A source that is known from an earlier run.
///
/// # Errors
/// When the file is gone or cannot be read.
pub fn known_source(display: &str, name: &str, format: Option<Format>) -> Result<Source> {
    let path = PathBuf::from(display);
    if remote::is_remote(display) {
        let mut found = remote::find(display).map_err(|cause| Error::Remote { url: display.to_owned(), cause })?;
        if let Some(object) = found.pop().filter(|_| found.is_empty()) {
            let mut sources = Sources::default();
            let location = Location::Remote(object);
            let file = ListedFile {
                display: display.to_owned(),
                name: name.to_owned(),
                location,
                in_directory: false,
                below: 0,
            };
            look_at(file, format, &mut sources)?;
            return sources.list.pop().ok_or(Error::NotFound { path });
        }
    }
    if let Some(location) = wacz::find(&path) {
        let mut sources = Sources::default();
        let file =
            ListedFile { display: display.to_owned(), name: name.to_owned(), location, in_directory: false, below: 0 };
        look_at(file, format, &mut sources)?;
        return sources.list.pop().ok_or(Error::NotFound { path });
    }
    if !path.is_file() {
        let reason = "was read by the run that made this result and is not there now; run this from the same folder";
        return Err(Error::corrupt(&path, reason));
    }
    let mut sources = Sources::default();
    let location = Location::File(path.clone());
    let file =
        ListedFile { display: display.to_owned(), name: name.to_owned(), location, in_directory: false, below: 0 };
    look_at(file, format, &mut sources)?;
    sources.list.pop().ok_or(Error::NotFound { path })
}

fn read_head(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
    // A vector that grows from nothing is filled in a dozen small reads.
    let (mut head, mut filled) = (vec![0; HEAD_BYTES], 0);
    while filled < HEAD_BYTES {
        match reader.read(&mut head[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    head.truncate(filled);
    Ok(head)
}
