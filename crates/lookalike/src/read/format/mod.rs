//! The formats we read: one list for `--format`, `--help`, the docs and the errors.

pub(super) mod arc;
pub(super) mod csv;
pub(super) mod jsonl;
pub(super) mod mediawiki;
pub(super) mod parquet;
pub(super) mod reuters;
pub(super) mod tagged;
pub(super) mod trec;
pub(super) mod warc;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::text::html::looks_like_html;

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A JSON object a line.
    Jsonl,
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values with a header; semicolons are recognised.
    Csv,
    /// Tab-separated values with a header.
    Tsv,
    /// Web archive, WARC 0.17 to 1.1, and the texts of Common Crawl (WET).
    Warc,
    /// Web archive, ARC.
    Arc,
    /// TREC documents, news or web pages.
    Trec,
    /// Stories in the SGML of Reuters-21578.
    Reuters,
    /// A dump of a MediaWiki.
    MediaWiki,
    /// One HTML page a file.
    Html,
    /// One text a file.
    Text,
}

impl Format {
    /// All of them, each with its name, usual endings, and what it is.
    pub const ALL: [(Format, &'static str, &'static [&'static str], &'static str); 11] = [
        (Format::Jsonl, "jsonl", &["jsonl", "ndjson", "json"], "a JSON object a line"),
        (Format::Parquet, "parquet", &["parquet"], "Apache Parquet, a page a row"),
        (Format::Csv, "csv", &["csv"], "comma-separated values with a header line"),
        (Format::Tsv, "tsv", &["tsv", "tab"], "tab-separated values with a header line"),
        (Format::Warc, "warc", &["warc", "wet"], "web archive, WARC 0.17 to 1.1; also WET"),
        (Format::Arc, "arc", &["arc"], "web archive, ARC version 1"),
        (Format::Trec, "trec", &["trec", "trectext", "trecweb"], "TREC documents, <DOC><DOCNO>…"),
        (Format::Reuters, "reuters", &["sgm", "sgml"], "stories in SGML, <REUTERS NEWID=…>"),
        (Format::MediaWiki, "mediawiki", &["mediawiki"], "XML dump of a wiki, its articles"),
        (Format::Html, "html", &["html", "htm", "xhtml", "shtml"], "a page a file"),
        (Format::Text, "text", &["txt", "text", "md"], "a text a file"),
    ];

    /// The name used with `--format`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// The names of all formats, for messages.
    #[must_use]
    pub fn list() -> String {
        Self::ALL.map(|row| row.1).join(", ") + " (each plain, gzip or zstd; Parquet as it is)"
    }

    /// Whether it holds what a crawler fetched, record by record.
    #[must_use]
    pub fn is_crawl(self) -> bool {
        matches!(self, Format::Warc | Format::Arc)
    }

    /// Whether tags enclose each document.
    #[must_use]
    pub fn is_tagged(self) -> bool {
        matches!(self, Format::Trec | Format::Reuters | Format::MediaWiki)
    }

    /// Whether its records have fields with names.
    #[must_use]
    pub fn has_fields(self) -> bool {
        matches!(self, Format::Jsonl | Format::Parquet | Format::Csv | Format::Tsv)
    }

    /// Whether each file is one page.
    #[must_use]
    pub fn is_page_file(self) -> bool {
        matches!(self, Format::Html | Format::Text)
    }

    /// By the file's name; endings of compression are looked through.
    #[must_use]
    pub fn by_name(path: &Path) -> Option<Format> {
        let extension = extension(path)?;
        Self::ALL.iter().find(|row| row.2.contains(&extension.as_str())).map(|row| row.0)
    }

    /// By the first decompressed bytes.
    ///
    /// # Errors
    /// What the bytes look like instead, for a person.
    pub fn by_content(head: &[u8]) -> Result<Format, String> {
        let start = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        if head.starts_with(b"PAR1") {
            return Ok(Format::Parquet);
        }
        if start.starts_with(b"WARC/") {
            return Ok(Format::Warc);
        }
        if head.starts_with(b"filedesc://") {
            return Ok(Format::Arc);
        }
        if let Some(format) = looks_like_documents(start) {
            return Ok(format);
        }
        if start.starts_with(b"[") && memchr::memchr(b'{', &start[..start.len().min(64)]).is_some() {
            return Err("is one JSON array; write one object a line instead (jq -c '.[]' FILE > FILE.jsonl)".to_owned());
        }
        if start.starts_with(b"{\"")
            || (start.starts_with(b"{") && memchr::memchr(b'"', &start[..start.len().min(64)]).is_some())
        {
            return Ok(Format::Jsonl);
        }
        if looks_like_html(head) {
            return Ok(Format::Html);
        }
        if let Some(table) = looks_like_table(start) {
            return Ok(table);
        }
        let odd = head.iter().filter(|&&b| b == 0 || (b < 32 && !b"\t\n\r\x0c\x1b".contains(&b))).count();
        if head.is_empty() || odd * 100 <= head.len() {
            Ok(Format::Text)
        } else {
            Err("is in no format that is known here (binary data)".to_owned())
        }
    }
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Format, String> {
        Self::ALL
            .iter()
            .find(|row| row.1 == name)
            .map(|row| row.0)
            .ok_or_else(|| format!("one of {}", Self::ALL.map(|row| row.1).join(", ")))
    }
}

/// Whether documents in tags follow.
fn looks_like_documents(start: &[u8]) -> Option<Format> {
    let has = |tag: &[u8]| memchr::memmem::find(start, tag).is_some();
    if start.starts_with(b"<DOC>") || (start.starts_with(b"<DOC") && has(b"<DOCNO>")) {
        Some(Format::Trec)
    } else if start.starts_with(b"<REUTERS") || start.starts_with(b"<!DOCTYPE lewis") {
        Some(Format::Reuters)
    } else if start.starts_with(b"<mediawiki") {
        Some(Format::MediaWiki)
    } else {
        None
    }
}

/// Whether the first line names fields of ours, and the second has as many.
fn looks_like_table(start: &[u8]) -> Option<Format> {
    let mut lines = start.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
    let (header, first) = (lines.next()?, lines.next().filter(|line| !line.is_empty())?);
    for (delimiter, format) in [(b'\t', Format::Tsv), (b',', Format::Csv), (b';', Format::Csv)] {
        let names: Vec<&[u8]> = header.split(|&byte| byte == delimiter).map(<[u8]>::trim_ascii).collect();
        let known = |name: &&[u8]| {
            let name = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name);
            [&b"id"[..], b"text", b"content", b"html", b"body", b"url"].contains(&name)
        };
        let fields = first.iter().filter(|&&byte| byte == delimiter).count() + 1;
        if names.len() >= 2 && fields >= names.len() && names.iter().filter(|name| known(name)).count() >= 2 {
            return Some(format);
        }
    }
    None
}

/// The ending of a name in lower case, without that of its compression.
fn extension(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let name = [".gz", ".gzip", ".zst", ".zstd"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    name.rsplit_once('.').map(|(_, extension)| extension.to_owned())
}

/// Whether a file in a directory of pages is plainly something else.
#[must_use]
pub fn is_no_page(path: &Path) -> bool {
    const OTHER: [&str; 36] = [
        "css", "js", "mjs", "map", "png", "jpg", "jpeg", "gif", "svg", "ico", "webp", "avif", "bmp", "tif", "tiff",
        "mp3", "mp4", "webm", "ogg", "wav", "woff", "woff2", "ttf", "otf", "eot", "pdf", "zip", "tar", "xz", "bz2",
        "7z", "exe", "so", "swf", "class", "wasm",
    ];
    extension(path).is_some_and(|extension| OTHER.contains(&extension.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_format_through_compression() {
        for (name, format) in [
            ("a.jsonl", Some(Format::Jsonl)),
            ("a.JSON.GZ", Some(Format::Jsonl)),
            ("b/c.csv.zst", Some(Format::Csv)),
            ("x.parquet", Some(Format::Parquet)),
            ("x.HTM", Some(Format::Html)),
            ("x", None),
            ("x.gz", None),
        ] {
            assert_eq!(Format::by_name(Path::new(name)), format, "{name}");
        }
    }

    #[test]
    fn content_tells_the_format() {
        assert_eq!(Format::by_content(b"PAR1\x15"), Ok(Format::Parquet));
        assert_eq!(Format::by_content(b" {\"text\": 1}"), Ok(Format::Jsonl));
        assert_eq!(Format::by_content(b"<!DOCTYPE html>"), Ok(Format::Html));
        assert_eq!(Format::by_content(b"Once upon a time"), Ok(Format::Text));
        assert_eq!(Format::by_content(b"id,text\n1,\"a, b\"\n"), Ok(Format::Csv));
        assert_eq!(Format::by_content(b"url;x;content\nu;1;c"), Ok(Format::Csv));
        assert_eq!(Format::by_content(b"id\ttext\r\n1\ta\r\n"), Ok(Format::Tsv));
        assert_eq!(Format::by_content(b"Dear text, dear id\nhello, you"), Ok(Format::Text));
        assert!(Format::by_content(b"[{\"text\": 1}]").is_err_and(|reason| reason.contains("jq")));
        assert_eq!(Format::by_content(b"WARC/1.0\r\n"), Ok(Format::Warc));
        assert_eq!(Format::by_content(b"filedesc://x.arc 0.0.0.0 20080430204825 text/plain 1300\n"), Ok(Format::Arc));
        assert_eq!(Format::by_content(b"<DOC>\n<DOCNO>1</DOCNO>"), Ok(Format::Trec));
        assert_eq!(Format::by_content(b"<!DOCTYPE lewis SYSTEM \"lewis.dtd\">\n<REUTERS"), Ok(Format::Reuters));
        assert_eq!(Format::by_content(b"<mediawiki xmlns=\"x\">"), Ok(Format::MediaWiki));
        assert!(Format::by_content(b"\x7fELF\0\0\0\0\0\0").is_err());
    }
}
