//! The table `captures`: the captures of each URL over time, and what changed from one to the next.
//!
//! In: pages of web archives. Out: a row per capture of a URL that was captured more than once, by URL and time. URLs are
//! the same that differ only in their scheme, a leading `www`, the case of their host, or what comes behind a `#`.

use std::collections::HashMap;
use std::path::Path;

use chrono::DateTime;
use url::{Host, Url};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Result;
use crate::page::{Captured, PageId};
use crate::report::sinks::{Sink, SinkContext};
use crate::report::table::{Cell, ColumnType, TableWriter};
use crate::report::{Findings, OutputOptions, files};
use crate::spill::Scratch;

const COLUMNS: [(&str, ColumnType); 12] = [
    ("url_key", ColumnType::Text),
    ("url", ColumnType::Text),
    ("timestamp?", ColumnType::Text),
    ("seconds?", ColumnType::Whole),
    ("id", ColumnType::Text),
    ("change", ColumnType::Text),
    ("previous_id?", ColumnType::Text),
    ("similarity?", ColumnType::Real),
    ("same_as?", ColumnType::Text),
    ("cluster", ColumnType::Text),
    ("kept", ColumnType::Truth),
    ("payload?", ColumnType::Text),
];

pub(super) struct Captures;

impl Sink for Captures {
    fn files(&self) -> &'static [&'static str] {
        &[files::CAPTURES.parquet, files::CAPTURES.jsonl]
    }

    fn applies(&self, findings: &Findings<'_>, _: OutputOptions) -> bool {
        !findings.pages.captured.is_empty()
    }

    fn write(&self, findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
        let pages = findings.pages;
        let urls = repeated_urls(findings)?;
        if urls.is_empty() {
            return Ok(());
        }
        let similarities = Similarities::new(findings, &urls);
        let mut table = TableWriter::create(directory, files::CAPTURES, &COLUMNS, context.options.jsonl)?;
        let (mut own, mut other) = (Scratch::default(), Scratch::default());
        for RepeatedUrl { key, captures } in &urls {
            for (at, (page, captured)) in captures.iter().enumerate() {
                let fate = findings.fates.of(*page);
                let strings = pages.strings(*page, &mut own)?;
                let previous = at.checked_sub(1).map(|at| &captures[at]);
                let (change, similarity) = previous
                    .map_or((Change::First, None), |previous| similarities.between(previous, &(*page, *captured)));
                let same = captures[..at].iter().find(|earlier| is_same(findings, earlier, &(*page, *captured)));
                let id_of = |row: Option<&(PageId, Captured)>| row.map(|row| pages.id(row.0)).transpose();
                let (previous_id, same_as) = (id_of(previous)?, id_of(same)?);
                let timestamp = captured.seconds.and_then(timestamp);
                let payload = (captured.payload != 0).then(|| format!("{:016x}", captured.payload));
                table.push(&[
                    Cell::Text(Some(key)),
                    Cell::Text(Some(strings.url.unwrap_or_default())),
                    Cell::Text(timestamp.as_deref()),
                    Cell::Whole(captured.seconds),
                    Cell::Text(Some(strings.id)),
                    Cell::Text(Some(change.name())),
                    Cell::Text(previous_id.as_deref()),
                    Cell::Real(similarity),
                    Cell::Text(same_as.as_deref()),
                    Cell::Text(Some(pages.strings(fate.kept, &mut other)?.id)),
                    Cell::Truth(Some(fate.keeps(*page))),
                    Cell::Text(payload.as_deref()),
                ])?;
            }
        }
        table.finish()
    }
}

/// A URL with all of its captures, by time.
struct RepeatedUrl {
    key: String,
    captures: Vec<(PageId, Captured)>,
}

/// The URLs that were captured more than once, by their keys. Only theirs are held in memory.
fn repeated_urls(findings: &Findings<'_>) -> Result<Vec<RepeatedUrl>> {
    let pages = findings.pages;
    let mut scratch = Scratch::default();
    let mut hashes: Vec<(u64, u32)> = Vec::with_capacity(pages.captured.len());
    for (row, (page, _)) in (0..).zip(&pages.captured) {
        if pages.is_input(*page)
            && pages.is_page(*page)
            && let Some(url) = pages.strings(*page, &mut scratch)?.url
        {
            hashes.push((xxh3_64(url_key(url).as_bytes()), row));
        }
    }
    hashes.sort_unstable();
    let mut urls: Vec<RepeatedUrl> = Vec::new();
    for same in hashes.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        let mut by_key: HashMap<String, Vec<(PageId, Captured)>> = HashMap::new();
        for &(_, row) in same {
            let capture = pages.captured[row as usize];
            let key = url_key(pages.strings(capture.0, &mut scratch)?.url.unwrap_or_default());
            by_key.entry(key).or_default().push(capture);
        }
        let repeated = by_key.into_iter().filter(|(_, captures)| captures.len() > 1);
        urls.extend(repeated.map(|(key, mut captures)| {
            captures.sort_unstable_by_key(|(page, captured)| (captured.seconds, *page));
            RepeatedUrl { key, captures }
        }));
    }
    urls.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    Ok(urls)
}

/// What a URL is sorted by, as indexes of archives have it: `org,example)/path?query`.
fn url_key(url: &str) -> String {
    let Ok(parsed) = Url::parse(url) else { return url.to_owned() };
    let host = match parsed.host() {
        Some(Host::Domain(domain)) => {
            let bare = domain.strip_prefix("www.").filter(|rest| rest.contains('.')).unwrap_or(domain);
            bare.rsplit('.').collect::<Vec<_>>().join(",")
        }
        Some(address) => address.to_string(),
        None => return url.to_owned(),
    };
    let port = parsed.port().map_or_else(String::new, |port| format!(":{port}"));
    let query = parsed.query().map_or_else(String::new, |query| format!("?{query}"));
    format!("{host}{port}){}{query}", parsed.path())
}

fn timestamp(seconds: u64) -> Option<String> {
    let time = DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)?;
    Some(time.format("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// What a capture is, compared with the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// There is none before it.
    First,
    /// The payload is the same, by the digest that the archive states.
    SamePayload,
    /// The whole text is the same.
    SameText,
    /// What is compared is the same: the rest, such as a frame, differs.
    SameCore,
    /// A verified near-duplicate.
    Near,
    /// Both were dropped for, or are, the same kept page; the two were not compared.
    SameCluster,
    /// None of these.
    Different,
}

impl Change {
    fn name(self) -> &'static str {
        match self {
            Change::First => "first",
            Change::SamePayload => "same_payload",
            Change::SameText => "same_text",
            Change::SameCore => "same_core",
            Change::Near => "near",
            Change::SameCluster => "same_cluster",
            Change::Different => "different",
        }
    }
}

/// Whether two captures have the same payload or text.
fn is_same(findings: &Findings<'_>, one: &(PageId, Captured), two: &(PageId, Captured)) -> bool {
    let text_hash = |page: PageId| findings.pages.text_hash(page);
    let is_equal = |one: u64, two: u64| one != 0 && one == two;
    is_equal(one.1.payload, two.1.payload) || is_equal(text_hash(one.0), text_hash(two.0))
}

/// The similarities that are known between captures of one URL.
struct Similarities<'a> {
    findings: &'a Findings<'a>,
    /// By the first pages of both identity sets: the similarity, and whether it was enough.
    pairs: HashMap<(PageId, PageId), (f64, bool)>,
}

impl<'a> Similarities<'a> {
    fn new(findings: &'a Findings<'a>, urls: &[RepeatedUrl]) -> Similarities<'a> {
        let first = |page: PageId| findings.sets.first[page];
        let mut pairs = HashMap::new();
        for captures in urls.iter().map(|url| &url.captures) {
            for (one, two) in captures.iter().zip(captures.iter().skip(1)) {
                let (one, two) = (first(one.0), first(two.0));
                if one != two {
                    pairs.insert((one.min(two), one.max(two)), (f64::NAN, false));
                }
            }
        }
        let verified = findings.verified;
        let known = verified.near_misses.iter().map(|pair| (pair, false));
        for (pair, is_near) in known.chain(verified.pairs.iter().map(|pair| (pair, true))) {
            if let Some(found) = pairs.get_mut(&(pair.left, pair.right)) {
                *found = (pair.similarity, is_near);
            }
        }
        Similarities { findings, pairs }
    }

    /// What became of a capture since the one before it.
    fn between(&self, before: &(PageId, Captured), after: &(PageId, Captured)) -> (Change, Option<f64>) {
        let findings = self.findings;
        let (one, two) = (findings.sets.first[before.0], findings.sets.first[after.0]);
        if before.1.payload != 0 && before.1.payload == after.1.payload {
            return (Change::SamePayload, Some(1.0));
        }
        if is_same(findings, before, after) {
            return (Change::SameText, Some(1.0));
        }
        if one == two {
            return (Change::SameCore, Some(1.0));
        }
        match self.pairs.get(&(one.min(two), one.max(two))) {
            Some(&(similarity, true)) => (Change::Near, Some(similarity)),
            _ if findings.fates.kept(before.0) == findings.fates.kept(after.0) => (Change::SameCluster, None),
            Some(&(similarity, false)) if !similarity.is_nan() => (Change::Different, Some(similarity)),
            _ => (Change::Different, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_archive_indexes() {
        for (url, key) in [
            ("http://www.Example.org/a/B?x=1#top", "org,example)/a/B?x=1"),
            ("https://example.org/a/B?x=1", "org,example)/a/B?x=1"),
            ("http://example.org:8080", "org,example:8080)/"),
            ("http://127.0.0.1/x", "127.0.0.1)/x"),
            ("https://www.com/", "com,www)/"),
            ("no url", "no url"),
        ] {
            assert_eq!(url_key(url), key, "{url}");
        }
    }

    #[test]
    fn times_are_written_as_archives_write_them() {
        assert_eq!(timestamp(1_209_588_505).as_deref(), Some("2008-04-30T20:48:25Z"));
    }
}
