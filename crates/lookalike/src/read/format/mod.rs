//! The formats that are read, one file each: one list for settings, help, docs and errors.
//!
//! A new format is one more file with a `Reader`, and one more line in `FORMATS`.

pub(super) mod arc;
pub(super) mod arrow;
pub(super) mod csv;
pub(super) mod documents;
pub(super) mod fielded;
pub(super) mod json;
mod json_object;
mod json_text;
pub(super) mod jsonl;
pub(super) mod mediawiki;
pub(super) mod page_file;
pub(super) mod parquet;
pub(super) mod reader;
pub(super) mod reuters;
pub(super) mod rows;
pub(super) mod tagged;
pub(super) mod trec;
pub(super) mod warc;

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::read::source::compression::Compression;
use reader::{FileParser, Members, Reader};

/// All of them, in the order in which they are listed.
const FORMATS: &[Format] = &[
    Format::JSONL,
    Format::JSON,
    Format::PARQUET,
    Format(&arrow::Arrow),
    Format(&csv::Csv),
    Format(&csv::Tsv),
    Format::WARC,
    Format::ARC,
    Format(&trec::Trec),
    Format(&reuters::Reuters),
    Format(&mediawiki::MediaWiki),
    Format(&page_file::Html),
    Format(&page_file::Text),
];

/// A file format.
///
/// ```
/// use lookalike::config::Format;
///
/// let format: Format = "csv".parse().unwrap();
/// assert!(Format::all().any(|known| known == format));
/// assert_eq!(format.endings(), ["csv"]);
/// ```
#[derive(Clone, Copy)]
pub struct Format(&'static dyn Reader);

impl Format {
    /// A JSON object per line.
    pub const JSONL: Format = Format(&jsonl::Jsonl);
    /// One JSON array, or objects over several lines.
    pub const JSON: Format = Format(&json::Json);
    /// Apache Parquet.
    pub const PARQUET: Format = Format(&parquet::Parquet);
    /// Web archive, WARC.
    pub const WARC: Format = Format(&warc::Warc);
    /// Web archive, ARC.
    pub const ARC: Format = Format(&arc::Arc);

    /// All formats.
    pub fn all() -> impl Iterator<Item = Format> {
        FORMATS.iter().copied()
    }

    /// The name used for the setting `format`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.description().name
    }

    /// What names of such files usually end with.
    #[must_use]
    pub fn endings(self) -> &'static [&'static str] {
        self.0.description().endings
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn description(self) -> &'static str {
        self.0.description().what
    }

    /// The names of all formats, for messages.
    #[must_use]
    pub fn list() -> String {
        names() + " (each plain, or packed with gzip, zstd, bzip2 or xz; Parquet as it is)"
    }

    /// Whether each file is one page.
    #[must_use]
    pub fn is_page_file(self) -> bool {
        self.file_parser().is_some()
    }

    pub(crate) fn reader(self) -> &'static dyn Reader {
        self.0
    }

    pub(super) fn file_parser(self) -> Option<FileParser> {
        self.0.file_parser()
    }

    pub(super) fn members(self) -> Option<&'static dyn Members> {
        self.0.members()
    }

    /// By the file's name; endings of compression are looked through.
    #[must_use]
    pub fn by_name(path: &Path) -> Option<Format> {
        let extension = extension(path)?;
        Format::all().find(|format| format.endings().contains(&extension.as_str()))
    }

    /// By the first decompressed bytes.
    ///
    /// # Errors
    /// What the bytes look like instead, for a person.
    pub fn by_content(head: &[u8]) -> Result<Format, String> {
        let mut best = None;
        for format in Format::all() {
            let Some(likeness) = format.0.recognise(head)? else { continue };
            if best.is_none_or(|(known, _)| likeness < known) {
                best = Some((likeness, format));
            }
        }
        best.map(|(_, format)| format).ok_or_else(|| "is in no format that is known here (binary data)".to_owned())
    }
}

fn names() -> String {
    Format::all().map(Format::name).collect::<Vec<_>>().join(", ")
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Format, String> {
        Format::all().find(|format| format.name() == name).ok_or_else(|| format!("one of {}", names()))
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Format, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(|expected| serde::de::Error::custom(format!("'{name}' is not a format: {expected}")))
    }
}

/// The ending of a name in lower case, without that of its compression.
fn extension(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let packed = name.rfind('.').filter(|&at| Compression::is_ending(&name[at..]));
    name[..packed.unwrap_or(name.len())].rsplit_once('.').map(|(_, extension)| extension.to_owned())
}

/// Whether a file in a directory of pages is plainly something else.
#[must_use]
pub fn is_no_page(path: &Path) -> bool {
    const OTHER: [&str; 34] = [
        "css", "js", "mjs", "map", "png", "jpg", "jpeg", "gif", "svg", "ico", "webp", "avif", "bmp", "tif", "tiff",
        "mp3", "mp4", "webm", "ogg", "wav", "woff", "woff2", "ttf", "otf", "eot", "pdf", "zip", "tar", "7z", "exe",
        "so", "swf", "class", "wasm",
    ];
    // What Spark and Hadoop write beside the parts of a table.
    const BESIDE: [&str; 3] = ["_SUCCESS", "_metadata", "_common_metadata"];
    let is_beside = path.file_name().is_some_and(|name| BESIDE.iter().any(|beside| name == *beside));
    let is_sum = path.extension().is_some_and(|ending| ending == "crc") && is_hidden(path);
    is_beside || is_sum || extension(path).is_some_and(|extension| OTHER.contains(&extension.as_str()))
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_spark_writes_beside_a_table_is_no_page() {
        for name in ["out/_SUCCESS", "out/_metadata", "out/.part-0.parquet.crc", "style.css"] {
            assert!(is_no_page(Path::new(name)), "{name}");
        }
        for name in ["out/part-0.parquet", "SUCCESS", "_index.html", "notes.crc"] {
            assert!(!is_no_page(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn names_and_endings_are_unique() {
        let mut names: Vec<&str> = Format::all().map(Format::name).collect();
        let mut endings: Vec<&str> = Format::all().flat_map(Format::endings).copied().collect();
        let (formats, all) = (names.len(), endings.len());
        names.sort_unstable();
        names.dedup();
        endings.sort_unstable();
        endings.dedup();
        assert_eq!((names.len(), endings.len()), (formats, all));
    }

    #[test]
    fn names_tell_the_format_through_compression() {
        for (name, format) in [
            ("a.jsonl", Some("jsonl")),
            ("a.JSON.GZ", Some("json")),
            ("b/c.csv.zst", Some("csv")),
            ("b/c.csv.xz", Some("csv")),
            ("c.ndjson.bz2", Some("jsonl")),
            ("x.parquet", Some("parquet")),
            ("x.HTM", Some("html")),
            ("x", None),
            ("x.gz", None),
        ] {
            assert_eq!(Format::by_name(Path::new(name)).map(Format::name), format, "{name}");
        }
    }

    #[test]
    fn content_tells_the_format() {
        let name = |head: &[u8]| Format::by_content(head).map(Format::name);
        assert_eq!(name(b"PAR1\x15"), Ok("parquet"));
        assert_eq!(name(b" {\"text\": 1}"), Ok("jsonl"));
        assert_eq!(name(b"<!DOCTYPE html>"), Ok("html"));
        assert_eq!(name(b"Once upon a time"), Ok("text"));
        assert_eq!(name(b""), Ok("text"));
        assert_eq!(name(b"id,text\n1,\"a, b\"\n"), Ok("csv"));
        assert_eq!(name(b"url;x;content\nu;1;c"), Ok("csv"));
        assert_eq!(name(b"id\ttext\r\n1\ta\r\n"), Ok("tsv"));
        assert_eq!(name(b"Dear text, dear id\nhello, you"), Ok("text"));
        assert_eq!(name(b"[{\"text\": 1}]"), Ok("json"));
        assert_eq!(name(b"{\n  \"text\": 1\n}"), Ok("json"));
        assert_eq!(name(b"WARC/1.0\r\n"), Ok("warc"));
        assert_eq!(name(b"filedesc://x.arc 0.0.0.0 20080430204825 text/plain 1300\n"), Ok("arc"));
        assert_eq!(name(b"<DOC>\n<DOCNO>1</DOCNO>"), Ok("trec"));
        assert_eq!(name(b"<!DOCTYPE lewis SYSTEM \"lewis.dtd\">\n<REUTERS"), Ok("reuters"));
        assert_eq!(name(b"<mediawiki xmlns=\"x\">"), Ok("mediawiki"));
        assert!(name(b"\x7fELF\0\0\0\0\0\0").is_err());
    }
}
