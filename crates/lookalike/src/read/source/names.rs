//! Names for sources: short where that is clear, never the same twice.
//!
//! Guaranteed: no two names are equal, none is a directory in the path of another, none leads out of
//! the directory it will stand in.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use crate::read::source::{STDIN, Source};

/// A path as text. Bytes that are not UTF-8 are written as `\\xff`, so that different paths stay
/// different.
pub(crate) fn readable(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Gives every source its name; the sources are sorted, and come with the name they would like.
pub(crate) fn assign_names(sources: &mut [Source]) {
    let mut wished: HashMap<String, usize> = HashMap::new();
    for source in sources.iter() {
        *wished.entry(source.name.clone()).or_default() += 1;
    }
    let mut names = HashSet::new();
    let mut directories = HashSet::new();
    for source in sources {
        let short = inside(Path::new(&source.name));
        let long = if source.display == STDIN { short.clone() } else { inside(Path::new(&source.display)) };
        let clear = wished.get(&source.name) == Some(&1);
        let numbered = (2..).map(|number| format!("{long}~{number}"));
        let candidates = clear.then_some(short).into_iter().chain([long.clone()]).chain(numbered);
        let is_free = |name: &String| {
            !name.is_empty()
                && !names.contains(name)
                && !directories.contains(name)
                && parents(name).all(|parent| !names.contains(parent))
        };
        source.name = { candidates }.find(is_free).unwrap_or(long);
        // From the longest on: the parents of a directory that is known are known.
        for parent in parents(&source.name).rev() {
            if directories.contains(parent) {
                break;
            }
            directories.insert(parent.to_owned());
        }
        names.insert(source.name.clone());
    }
}

/// The directories in the path of a name.
fn parents(name: &str) -> impl DoubleEndedIterator<Item = &str> {
    name.match_indices('/').map(|(at, _)| &name[..at])
}

/// A path that stays inside the directory it is joined to.
fn inside(path: &Path) -> String {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(part) => Some(readable(Path::new(OsStr::new(part)))),
        Component::ParentDir => Some("up".to_owned()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageOrigin;
    use crate::read::Format;
    use crate::read::source::compression::Compression;
    use crate::read::source::file::Location;

    fn named(sources: &[(&str, &str)]) -> Vec<String> {
        let mut list: Vec<Source> = sources
            .iter()
            .map(|(display, name)| Source {
                origin: PageOrigin::Input,
                location: Location::File((*display).into()),
                display: (*display).to_owned(),
                name: (*name).to_owned(),
                format: Format::JSONL,
                compression: Compression::None,
                by_member: false,
                bytes: 0,
            })
            .collect();
        assign_names(&mut list);
        list.into_iter().map(|source| source.name).collect()
    }

    #[test]
    fn short_names_where_they_are_clear() {
        assert_eq!(named(&[("x/a.jsonl", "a.jsonl"), ("y/b.jsonl", "b.jsonl")]), ["a.jsonl", "b.jsonl"]);
        assert_eq!(named(&[("x/a.jsonl", "a.jsonl"), ("y/a.jsonl", "a.jsonl")]), ["x/a.jsonl", "y/a.jsonl"]);
    }

    #[test]
    fn no_two_sources_share_a_name_and_none_is_the_directory_of_another() {
        // A file in a given directory has the very path that tells two others apart.
        let three = named(&[("dd/x/a", "x/a"), ("x/a", "a"), ("y/a", "a")]);
        assert_eq!(three, ["x/a", "x/a~2", "y/a"]);
        assert_eq!(named(&[("../a", "a"), ("up/a", "a")]), ["up/a", "up/a~2"]);
        let nested = named(&[("n1/a", "a"), ("n2/a/b", "a/b")]);
        assert_eq!(nested, ["a", "n2/a/b"]);
        assert_eq!(named(&[("n1/a/b", "a/b"), ("n2/a", "a")]), ["a/b", "n2/a"]);
        assert_eq!(named(&[("-", "stdin.jsonl"), ("stdin.jsonl", "stdin.jsonl")]), ["stdin.jsonl", "stdin.jsonl~2"]);
    }

    #[test]
    fn names_stay_inside() {
        assert_eq!(named(&[("/etc/x", "/etc/x")]), ["etc/x"]);
        assert_eq!(named(&[("../../x", "../../x")]), ["up/up/x"]);
    }

    #[test]
    fn paths_that_are_no_utf8_stay_different() {
        let name = |bytes: &'static [u8]| readable(Path::new(OsStr::from_bytes(bytes)));
        assert_eq!(name(b"q\xff.txt"), "q\\xff.txt");
        assert_ne!(name(b"q\xff.txt"), name(b"q\xfe.txt"));
    }
}
