//! `lookalike export-cdxj`: the index of a web archive, with the groups of a result.
//!
//! An archive has an index already, made by its own tools, with digests, types and canonical URLs as they want them. Its
//! lines are copied as they are; a capture that is a page of the result, by the name of its file and its offset, gets fields,
//! or is left out. pywb shows and filters fields it does not know; OutbackCDX may refuse them, so `--only` adds none.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use lookalike::Error;
use lookalike::result::{for_each_page, for_each_page_fate};
use serde_json::{Map, Value, json};

use crate::args::{CdxjLines, ExportCdxjArguments};
use crate::table::counted;
use crate::{Ending, json};

/// The fields of a line, all of them texts, as pywb expects.
const FIELDS: [&str; 6] = [
    "lookalike_kept",
    "lookalike_cluster",
    "lookalike_kind",
    "lookalike_similarity",
    "lookalike_url",
    "lookalike_timestamp",
];

pub(crate) fn run(arguments: &ExportCdxjArguments) -> Result<Ending> {
    let captures = Captures::read(&arguments.directory)?;
    let index = &arguments.index;
    let kept = captures.kept_captures(index)?;
    let counts = match &arguments.output {
        None => copy(index, &captures, &kept, arguments.only, &mut BufWriter::new(io::stdout().lock()))?,
        Some(output) => {
            let failed = || format!("{}: cannot write", output.display());
            let file = File::create_new(output).with_context(failed)?;
            copy(index, &captures, &kept, arguments.only, &mut BufWriter::new(file)).with_context(failed)?
        }
    };
    let Counts { written, kept, dropped, other } = counts;
    if kept + dropped == 0 {
        let reason =
            "names no capture of this result: the names of the archives and the offsets must be those of pages.parquet";
        return Err(Error::bad_input(index, reason).into());
    }
    if arguments.json {
        let document = json!({"result": arguments.directory, "index": index, "output": arguments.output, "written": written, "kept": kept, "dropped": dropped, "other": other});
        json::print(&document)?;
    } else {
        let lines = counted(written, "line was written", "lines were written");
        writeln!(
            io::stderr(),
            "{lines}; captures in the index: {kept} kept, {dropped} dropped, {other} not in the result"
        )?;
    }
    Ok(Ending::Done)
}

/// What became of a capture.
struct Capture {
    source: String,
    id: String,
    kept_id: String,
    kind: String,
    similarity: f64,
}

impl Capture {
    fn is_kept(&self) -> bool {
        self.id == self.kept_id
    }
}

/// The pages of a result by their places.
struct Captures {
    /// By the last part of the file's name, and the offset.
    by_place: HashMap<(String, u64), Vec<Capture>>,
    /// The pages that others were dropped for.
    leaders: HashSet<String>,
}

impl Captures {
    fn read(directory: &Path) -> Result<Captures> {
        let mut fates = Vec::new();
        for_each_page_fate(directory, |fate| fates.push(fate))?;
        let leaders = fates.iter().filter(|fate| fate.id != fate.kept_id).map(|fate| fate.kept_id.clone()).collect();
        // Both tables have the same pages in the same order.
        let mut fates = fates.into_iter();
        let mut by_place: HashMap<(String, u64), Vec<Capture>> = HashMap::new();
        for_each_page(directory, |page| {
            let (Some(fate), Some(offset)) = (fates.next(), page.offset) else { return };
            let capture = Capture {
                source: page.source.to_owned(),
                id: fate.id,
                kept_id: fate.kept_id,
                kind: fate.kind,
                similarity: fate.similarity,
            };
            by_place.entry((last_part(page.source).to_owned(), offset)).or_default().push(capture);
        })?;
        Ok(Captures { by_place, leaders })
    }

    /// The page at the place that a line names. Where several files have that name, as much of the path as one has decides.
    fn find(&self, line: &Line<'_>) -> Option<&Capture> {
        let likeness = |capture: &&Capture| {
            let parts = capture.source.rsplit('/').zip(line.file.rsplit('/'));
            parts.take_while(|(ours, theirs)| ours == theirs).count()
        };
        self.by_place.get(&(last_part(&line.file).to_owned(), line.offset))?.iter().max_by_key(likeness)
    }

    /// URL and time of the captures that others were dropped for, by id.
    fn kept_captures(&self, index: &Path) -> Result<BTreeMap<String, (String, String)>> {
        let mut found = BTreeMap::new();
        for_each_line(index, |_, line| {
            if let Some(line) = line
                && let Some(capture) = self.find(&line)
                && self.leaders.contains(&capture.id)
            {
                let url = line.object.get("url").and_then(Value::as_str).unwrap_or_default();
                found.insert(capture.id.clone(), (url.to_owned(), line.timestamp()));
            }
            Ok(())
        })?;
        Ok(found)
    }
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A line that names a capture.
struct Line<'a> {
    /// What stands before the object: a key and a time.
    head: &'a str,
    object: Map<String, Value>,
    file: String,
    offset: u64,
}

impl<'a> Line<'a> {
    fn parse(text: &'a str) -> std::result::Result<Line<'a>, String> {
        let start = text.find('{').ok_or("it has no JSON object")?;
        let object: Map<String, Value> = serde_json::from_str(&text[start..]).map_err(|error| error.to_string())?;
        let file = object.get("filename").and_then(Value::as_str).ok_or("it has no 'filename'")?.to_owned();
        let offset = object.get("offset").ok_or("it has no 'offset'")?;
        let offset = offset.as_u64().or_else(|| offset.as_str()?.parse().ok()).ok_or("its 'offset' is not a number")?;
        Ok(Line { head: &text[..start], object, file, offset })
    }

    fn timestamp(&self) -> String {
        let own = self.object.get("timestamp").and_then(Value::as_str);
        self.head.split_whitespace().nth(1).or(own).unwrap_or_default().to_owned()
    }
}

/// Shows every line, and what it names; lines that describe the others name nothing.
fn for_each_line(index: &Path, mut visit: impl FnMut(&str, Option<Line<'_>>) -> Result<()>) -> Result<()> {
    let failed = |cause| Error::io(index, "read")(cause);
    for (number, text) in (1u64..).zip(BufReader::new(File::open(index).map_err(failed)?).lines()) {
        let text = text.map_err(failed)?;
        let is_other = text.trim().is_empty() || text.starts_with('!') || text.starts_with('#');
        let line = if is_other { None } else { Some(Line::parse(text.trim_end())) };
        let line = line.transpose().map_err(|reason| {
            Error::bad_input(index, format!("line {number} is not a line of a CDXJ file: {reason}"))
        })?;
        visit(&text, line)?;
    }
    Ok(())
}

#[derive(Default)]
struct Counts {
    written: u64,
    kept: u64,
    dropped: u64,
    other: u64,
}

/// Copies the lines that are wanted.
fn copy(
    index: &Path,
    captures: &Captures,
    kept: &BTreeMap<String, (String, String)>,
    only: Option<CdxjLines>,
    out: &mut impl Write,
) -> Result<Counts> {
    let mut counts = Counts::default();
    for_each_line(index, |text, line| {
        let is_capture = line.is_some();
        let capture = line.as_ref().and_then(|line| captures.find(line));
        match capture {
            Some(capture) if capture.is_kept() => counts.kept += 1,
            Some(_) => counts.dropped += 1,
            None => counts.other += u64::from(is_capture),
        }
        let is_dropped = capture.is_some_and(|capture| !capture.is_kept());
        let is_wanted = match only {
            None => true,
            Some(CdxjLines::Kept) => !is_dropped,
            Some(CdxjLines::Dropped) => is_dropped,
        };
        if !is_wanted {
            return Ok(());
        }
        match (only, capture, line) {
            (None, Some(capture), Some(line)) => {
                writeln!(out, "{}", with_fields(text, line, capture, kept.get(&capture.kept_id)))?;
            }
            _ => writeln!(out, "{text}")?,
        }
        counts.written += u64::from(is_capture);
        Ok(())
    })?;
    out.flush()?;
    Ok(counts)
}

/// A line with the fields of its group at the end of its object.
fn with_fields(text: &str, mut line: Line<'_>, capture: &Capture, kept: Option<&(String, String)>) -> String {
    let (url, timestamp) = kept.map_or((None, None), |(url, timestamp)| (Some(url.clone()), Some(timestamp.clone())));
    let values = [
        Some(capture.is_kept().to_string()),
        Some(capture.kept_id.clone()),
        Some(capture.kind.clone()),
        Some(format!("{:.4}", capture.similarity)),
        url.filter(|_| !capture.is_kept()),
        timestamp.filter(|_| !capture.is_kept()),
    ];
    let added: Vec<String> = FIELDS
        .iter()
        .zip(values)
        .filter_map(|(name, value)| Some(format!("{}: {}", Value::from(*name), Value::from(value?))))
        .collect();
    // Fields of an earlier result are replaced.
    let is_new = FIELDS.iter().map(|name| line.object.remove(*name)).all(|old| old.is_none());
    let own = if is_new { text.trim_end().to_owned() } else { format!("{}{}", line.head, Value::from(line.object)) };
    let own = own.strip_suffix('}').unwrap_or(&own).trim_end();
    format!("{own}, {}}}", added.join(", "))
}
