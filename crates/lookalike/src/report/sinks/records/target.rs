//! The files of a directory that mirrors the input: what they are called, how they are compressed, where one part ends
//! and the next begins.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use parquet::basic::{Compression as Codec, GzipLevel, ZstdLevel};

use crate::error::{Error, Result};
use crate::observe::{Observer, Silent, check_cancelled};
use crate::read::Source;
use crate::read::compression::{Compression, ZSTD_LEVEL};
use crate::report::outputs::KeptCompression;

/// A file, or the numbered parts that it is divided into.
pub(super) struct Target<'a> {
    directory: &'a Path,
    name: TargetName,
    /// The size that parts stay below, unless one record is larger.
    pub(super) limit: Option<u64>,
    pub(super) packing: Packing,
    /// May stop the run.
    observer: &'a dyn Observer,
}

/// What a file is called, in two pieces: the number of a part comes between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TargetName {
    stem: String,
    ending: String,
}

impl<'a> Target<'a> {
    pub(super) fn new(directory: &'a Path, name: TargetName, limit: Option<u64>, packing: Packing) -> Target<'a> {
        Target { directory, name, limit, packing, observer: &Silent }
    }

    pub(super) fn watched_by(self, observer: &'a dyn Observer) -> Target<'a> {
        Target { observer, ..self }
    }

    /// Fails if the run is to stop.
    pub(super) fn check(&self) -> Result<()> {
        check_cancelled(self.observer)
    }

    /// The name of a part below the directory, counted from 0.
    pub(super) fn name(&self, part: usize) -> String {
        let TargetName { stem, ending } = &self.name;
        if self.limit.is_some() { format!("{stem}-{part:05}{ending}") } else { format!("{stem}{ending}") }
    }

    pub(super) fn path(&self, part: usize) -> PathBuf {
        self.directory.join(self.name(part))
    }

    /// Creates the file of a part.
    pub(super) fn create(&self, part: usize) -> Result<(File, PathBuf)> {
        let path = self.path(part);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(Error::io(parent, "create"))?;
        }
        let file = File::create(&path).map_err(Error::io(&path, "create"))?;
        Ok((file, path))
    }
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packing {
    pub(super) compression: Compression,
    pub(super) level: Option<i32>,
    /// Whether that is how its source is compressed.
    pub(super) is_same: bool,
}

impl Packing {
    pub(super) fn new(source: &Source, asked: KeptCompression) -> Packing {
        match asked {
            KeptCompression::Same => Packing { compression: source.compression, level: None, is_same: true },
            KeptCompression::To { compression, level } => {
                Packing { compression, level, is_same: compression == source.compression && level.is_none() }
            }
        }
    }

    /// The codec of a Parquet file, where one was asked for.
    pub(super) fn codec(asked: KeptCompression) -> Option<Codec> {
        let KeptCompression::To { compression, level } = asked else { return None };
        Some(match compression {
            Compression::Gzip => {
                let level = level.and_then(|level| GzipLevel::try_new(u32::try_from(level).ok()?).ok());
                Codec::GZIP(level.unwrap_or_default())
            }
            Compression::Zstd => {
                let level = level.and_then(|level| ZstdLevel::try_new(level).ok());
                level.map_or_else(usual_codec, Codec::ZSTD)
            }
            _ => Codec::UNCOMPRESSED,
        })
    }
}

/// The codec of Parquet files whose records were not in Parquet before: zstd, at the level of other files.
pub(super) fn usual_codec() -> Codec {
    Codec::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL).unwrap_or_default())
}

/// What the files of these sources are called in a directory in which some names are `taken`. `ending` is that of
/// another format, where they are written in one.
pub(super) fn names(
    sources: &[Source],
    asked: KeptCompression,
    ending: Option<&str>,
    taken: &[&str],
) -> Vec<TargetName> {
    let wished: Vec<TargetName> = sources.iter().map(|source| wished(source, asked, ending)).collect();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for name in &wished {
        *counts.entry(name.whole()).or_default() += 1;
    }
    let mut names: HashSet<String> = taken.iter().map(|&name| name.to_owned()).collect();
    let mut directories: HashSet<String> = HashSet::new();
    let mut given = Vec::with_capacity(sources.len());
    for (source, wish) in sources.iter().zip(wished) {
        let is_clear = counts.get(&wish.whole()) == Some(&1);
        // Two files that become one: each keeps its whole name.
        let is_changed = wish.whole() != source.name;
        let longer = |number: usize| {
            let stem = if number == 1 { source.name.clone() } else { format!("{}~{number}", source.name) };
            TargetName { stem, ending: if is_changed { wish.ending.clone() } else { String::new() } }
        };
        let candidates = is_clear.then(|| wish.clone()).into_iter().chain((1..).map(longer));
        let is_free = |name: &TargetName| {
            let whole = name.whole();
            !names.contains(&whole)
                && !directories.contains(&whole)
                && parents(&whole).all(|parent| !names.contains(parent))
        };
        let name = { candidates }.find(is_free).unwrap_or(wish);
        directories.extend(parents(&name.whole()).map(str::to_owned));
        names.insert(name.whole());
        given.push(name);
    }
    given
}

fn parents(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').map(|(at, _)| &name[..at])
}

impl TargetName {
    pub(super) fn new(stem: &str, ending: String) -> TargetName {
        TargetName { stem: stem.to_owned(), ending }
    }

    fn whole(&self) -> String {
        format!("{}{}", self.stem, self.ending)
    }
}

/// The name of a source, with other endings where its format or compression change.
fn wished(source: &Source, asked: KeptCompression, ending: Option<&str>) -> TargetName {
    let (bare, packed) = without_compression(source);
    let start = bare.rfind('/').map_or(0, |at| at + 1);
    let dot = bare[start..].rfind('.').map(|at| start + at).filter(|&at| at > start);
    let is_known = |at: usize| source.format.endings().contains(&bare[at + 1..].to_ascii_lowercase().as_str());
    let (stem, own) = dot.filter(|&at| is_known(at)).map_or((bare, ""), |at| bare.split_at(at));
    let packed = match asked {
        KeptCompression::To { compression, .. } if ending.is_some() || source.format.reader().may_be_compressed() => {
            compression.ending()
        }
        _ => packed,
    };
    let packed = if ending == Some(".parquet") { "" } else { packed };
    TargetName { stem: stem.to_owned(), ending: format!("{}{packed}", ending.unwrap_or(own)) }
}

/// The name of a source without the ending of its compression, and that ending.
fn without_compression(source: &Source) -> (&str, &str) {
    let name = source.name.as_str();
    let is_packed = source.compression != Compression::None;
    match name.rfind('.').filter(|&at| is_packed && Compression::is_ending(&name[at..])) {
        Some(at) => name.split_at(at),
        None => (name, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(files: &[(&str, Vec<u8>)], asked: &str, ending: Option<&str>) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(name, bytes)| Source::in_memory(name, bytes.clone(), None).unwrap()).collect();
        let names = names(&sources, asked.parse().unwrap(), ending, &["kept.txt"]);
        names.iter().map(TargetName::whole).collect()
    }

    fn lines() -> Vec<u8> {
        b"{\"text\": \"a\"}\n".to_vec()
    }

    fn packed() -> Vec<u8> {
        Compression::Gzip.pack(&lines()).unwrap()
    }

    #[test]
    fn names_follow_the_format_and_compression_and_stay_different() {
        let files = [("x/a.jsonl", lines()), ("b.jsonl.gz", packed()), ("a.b.gz", packed())];
        assert_eq!(named(&files, "same", None), ["x/a.jsonl", "b.jsonl.gz", "a.b.gz"]);
        assert_eq!(named(&files, "zstd", None), ["x/a.jsonl.zst", "b.jsonl.zst", "a.b.zst"]);
        assert_eq!(named(&files, "none", Some(".csv")), ["x/a.csv", "b.csv", "a.b.csv"]);
        assert_eq!(named(&files, "gzip", Some(".parquet")), ["x/a.parquet", "b.parquet", "a.b.parquet"]);
        let same = [("a.jsonl", lines()), ("a.jsonl.gz", packed()), ("a.ndjson", lines())];
        assert_eq!(named(&same, "none", None), ["a.jsonl", "a.jsonl.gz.jsonl", "a.ndjson"]);
        assert_eq!(
            named(&same, "same", Some(".parquet")),
            ["a.jsonl.parquet", "a.jsonl.gz.parquet", "a.ndjson.parquet"]
        );
        assert_eq!(named(&[("kept.txt", b"words".to_vec())], "same", None), ["kept.txt~2"]);
    }

    #[test]
    fn parts_are_numbered_before_the_endings() {
        let source = Source::in_memory("data/train-00000-of-00002.jsonl.gz", packed(), None).unwrap();
        let name = names(std::slice::from_ref(&source), KeptCompression::Same, None, &[]).remove(0);
        let packing = Packing::new(&source, KeptCompression::Same);
        let target = Target::new(Path::new("kept"), name, Some(1 << 20), packing);
        assert_eq!(target.name(3), "data/train-00000-of-00002-00003.jsonl.gz");
    }
}
