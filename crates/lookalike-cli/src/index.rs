//! `lookalike index`

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use lookalike::config::{FingerprintConfig, format_bytes};
use lookalike::index::fingerprints::{FingerprintReader, Notation, id_kind};
use lookalike::index::{
    BulkInsert, FingerprintOrigin, Id, IdKind, IndexConfig, IndexReader, MatchCounts, OpenOptions, RowMatch,
    TableCodec, pages,
};
use lookalike::online::Backup;
use lookalike::result::{SkippedRecord, index_plots};
use lookalike::{Config, Error, Index, RunOptions, Silent};
use serde_json::json;

use crate::args::TalkingArguments;
use crate::index_args::{
    AddArguments, BatchArguments, BuildArguments, BuildRunning, IndexCommand, JoinArguments, LookupArguments,
    PairArguments, QueryArguments, StatsArguments,
};
use crate::progress::Progress;
use crate::table::{counted, thousands};
use crate::{Ending, with_flags};
use crate::{json, method};

pub(crate) fn run(command: IndexCommand) -> Result<Ending> {
    match command {
        IndexCommand::Build(arguments) => build(&arguments),
        IndexCommand::Add(arguments) => add(&arguments),
        IndexCommand::Query(arguments) => query(&arguments),
        IndexCommand::Batch(arguments) => batch(&arguments),
        IndexCommand::Join(arguments) => join(&arguments),
        IndexCommand::Stats(arguments) => stats(&arguments),
        IndexCommand::Verify { directory, json } => verify(&directory, json),
        IndexCommand::Restore { backup, directory, force } => {
            let restored = Backup::restore(&backup, &directory, force)?;
            let pages = counted(restored.pages, "page", "pages");
            writeln!(io::stdout(), "{}: restored, {pages}", directory.display())?;
            Ok(Ending::Done)
        }
        IndexCommand::Compact { directory, memory, json } => {
            let options = OpenOptions { write: true, memory_bytes: self::memory(memory)?, ..OpenOptions::default() };
            let index = Index::open(&directory, options)?;
            index.compact()?;
            let (rows, _) = index.reader().len();
            writeln!(io::stderr(), "{}: {} in one segment", directory.display(), counted(rows, "row", "rows"))?;
            if json {
                json::print(&json!({"index": directory, "rows": rows, "segments": index.stats()?.segments.len()}))?;
            }
            Ok(Ending::Done)
        }
    }
}

/// With less than this, sorting makes too many runs.
const LEAST_MEMORY: u64 = 64 << 20;

fn memory(given: Option<u64>) -> Result<u64> {
    match given {
        Some(bytes) if bytes < LEAST_MEMORY => {
            let expected = format!("must be at least {} to build an index", format_bytes(LEAST_MEMORY));
            Err(Error::invalid("memory", format_bytes(bytes), expected).into())
        }
        given => Ok(given.unwrap_or_else(RunOptions::default_memory_bytes)),
    }
}

/// What was added to an index.
struct Filled {
    rows: u64,
    without: u64,
    skipped: u64,
    examples: Vec<SkippedRecord>,
}

fn build(arguments: &BuildArguments) -> Result<Ending> {
    let ids = match (arguments.fingerprints, arguments.ids) {
        (None, _) => IdKind::Text,
        (Some(_), Some(kind)) => kind,
        (Some(written), None) => match files(&arguments.inputs)?.first() {
            Some(first) => id_kind(first, written)?,
            None => IdKind::Number,
        },
    };
    let mut config = match arguments.fingerprints {
        Some(_) => IndexConfig::given(ids, arguments.radius),
        None => page_config(arguments)?,
    };
    config.cut.clone_from(&arguments.design);
    config.codec = arguments.codec;
    if let Some(bytes) = arguments.huffman_block {
        if arguments.codec != TableCodec::Huffman {
            return Err(
                Error::conflict("huffman_block", "only the codec huffman has blocks; add `codec` huffman").into()
            );
        }
        config.huffman_block = bytes;
    }
    let memory = memory(arguments.running.memory)?;
    let progress = Progress::new(&arguments.talking)?;
    let threads = arguments.running.threads.map_or_else(RunOptions::default_threads, usize::from);
    config.learn_frames(&arguments.inputs, threads, &arguments.directory, &progress)?;
    let index = Index::create(&arguments.directory, config, memory, arguments.force)?;
    let written = arguments.fingerprints.unwrap_or(Notation::Hex);
    let filled = fill(&index, &arguments.inputs, written, &arguments.running, &progress)?;
    print_filled(&index, &filled, &arguments.talking)
}

/// Fails for a collection that has no fingerprints to ask about.
fn refuse_bands(index: &Index) -> Result<()> {
    if index.config().has_bands() {
        let reason = "is a collection of a service that finds pages by their bands, and has no fingerprints; ask it through lookalike serve";
        return Err(Error::bad_input(index.directory(), reason).into());
    }
    Ok(())
}

fn page_config(arguments: &BuildArguments) -> Result<IndexConfig> {
    let mut config = Config::default();
    method::read_as(&mut config, &arguments.reading)?;
    let fingerprinting = &arguments.fingerprinting;
    config.content.mask_volatile = fingerprinting.mask.is_some();
    config.content.keep_case = fingerprinting.keep_case;
    let mut fingerprints = FingerprintConfig::default();
    fingerprints.content = config.content;
    fingerprints.ngram = fingerprinting.ngram.map_or(fingerprints.ngram, usize::from);
    fingerprints.weights = fingerprinting.weights.unwrap_or(fingerprints.weights);
    let mut index = IndexConfig::pages(fingerprints, arguments.radius);
    index.min_tokens = fingerprinting.min_tokens;
    index.read = config.read;
    Ok(index)
}

fn add(arguments: &AddArguments) -> Result<Ending> {
    let memory_bytes = memory(arguments.running.memory)?;
    let index = Index::open(&arguments.directory, OpenOptions { write: true, memory_bytes, ..OpenOptions::default() })?;
    refuse_bands(&index)?;
    let progress = Progress::new(&arguments.talking)?;
    if arguments.fingerprints.is_some() && index.config().fingerprints != FingerprintOrigin::Given {
        return Err(Error::conflict("fingerprints", "this index was built from pages; add pages instead").into());
    }
    let written = arguments.fingerprints.unwrap_or(Notation::Hex);
    let filled = fill(&index, &arguments.inputs, written, &arguments.running, &progress)?;
    let ending = print_filled(&index, &filled, &arguments.talking)?;
    if let Err(error) = index.merge_like_sizes() {
        writeln!(io::stderr(), "the rows were added, but segments could not be merged: {error}")?;
    }
    Ok(ending)
}

/// Adds pages or fingerprints to the index, as one segment.
fn fill(
    index: &Index,
    inputs: &[String],
    written: Notation,
    running: &BuildRunning,
    progress: &Progress,
) -> Result<Filled> {
    let mut bulk = index.bulk_insert()?;
    let threads = running.threads.map_or_else(RunOptions::default_threads, usize::from);
    let filled = match index.config().page_config() {
        Some(config) => {
            let read = pages::for_each(
                &config,
                inputs,
                threads,
                index.directory(),
                progress,
                &mut |id, fingerprint, page| {
                    if !running.no_sketches {
                        bulk.keep(id, page)?;
                    }
                    bulk.push(fingerprint, id)
                },
            )?;
            Filled { rows: read.pages, without: read.without, skipped: read.skipped, examples: read.examples }
        }
        None => fill_given(index, &mut bulk, inputs, written)?,
    };
    bulk.finish()?;
    Ok(filled)
}

fn fill_given(index: &Index, bulk: &mut BulkInsert<'_>, inputs: &[String], written: Notation) -> Result<Filled> {
    let mut push = |fingerprint: u64, id: &Id| bulk.push(fingerprint, id);
    let first = index.next_id();
    let mut reader = FingerprintReader::new(written, index.config().ids, first, &mut push);
    for path in files(inputs)? {
        reader.read(&path)?;
    }
    let read = reader.finish();
    if read.rows == 0 {
        let first = read
            .examples
            .first()
            .map_or_else(String::new, |record| format!("; the first line:\n  {}", with_flags(&record.to_string())));
        let path = PathBuf::from(inputs.join(", "));
        return Err(Error::bad_input(&path, format!("no fingerprints found{first}")).into());
    }
    Ok(Filled { rows: read.rows, without: 0, skipped: read.skipped, examples: read.examples })
}

/// Files of fingerprints: those named, and those in the named directories.
fn files(inputs: &[String]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for input in inputs {
        let path = Path::new(input);
        if path.is_dir() {
            let mut inside: Vec<PathBuf> = fs::read_dir(path)?.flatten().map(|entry| entry.path()).collect();
            inside.retain(|path| path.is_file());
            inside.sort();
            files.extend(inside);
        } else if path.exists() {
            files.push(path.to_path_buf());
        } else {
            return Err(Error::NotFound { path: path.to_path_buf() }.into());
        }
    }
    Ok(files)
}

fn print_filled(index: &Index, filled: &Filled, talking: &TalkingArguments) -> Result<Ending> {
    let (mut out, quiet) = (io::stderr().lock(), talking.quiet);
    let (rows, _) = index.reader().len();
    for record in filled.examples.iter().filter(|_| !quiet) {
        writeln!(out, "skipped: {}", with_flags(&record.to_string()))?;
    }
    if !quiet {
        write!(
            out,
            "{}: {} added, {} in total",
            index.directory().display(),
            counted(filled.rows, "row", "rows"),
            thousands(rows)
        )?;
        if filled.without > 0 {
            let pages = counted(filled.without, "page is", "pages are");
            write!(out, "; {pages} empty or too short for a fingerprint")?;
        }
        if filled.skipped > 0 {
            write!(out, "; {} skipped", counted(filled.skipped, "record was", "records were"))?;
        }
        writeln!(out)?;
    }
    if talking.json {
        json::print(&json!({
            "index": index.directory(),
            "added": filled.rows,
            "rows": rows,
            "without_fingerprint": filled.without,
            "skipped": filled.skipped,
        }))?;
    }
    Ok(if filled.skipped > 0 { Ending::Skipped } else { Ending::Done })
}

fn open(directory: &Path, skip_damaged: bool) -> Result<Index> {
    let index = Index::open(directory, OpenOptions { skip_damaged, ..OpenOptions::default() })?;
    for damaged in index.damaged() {
        writeln!(io::stderr(), "skipped: {damaged}")?;
    }
    Ok(index)
}

fn ending(index: &Index, skipped: u64) -> Ending {
    if skipped > 0 || !index.damaged().is_empty() { Ending::Skipped } else { Ending::Done }
}

/// A path as it is in the ids of pages, which lead nowhere else.
fn as_in_ids(path: &str) -> PathBuf {
    let parts = Path::new(path).components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        Component::ParentDir => Some(OsStr::new("up")),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    parts.collect()
}

/// Files as they were named, by their last parts.
struct GivenNames<'a>(HashMap<&'a OsStr, Vec<&'a str>>);

impl<'a> GivenNames<'a> {
    fn new(inputs: &'a [String]) -> GivenNames<'a> {
        let mut names: HashMap<&OsStr, Vec<&str>> = HashMap::new();
        for input in inputs.iter().filter(|input| Path::new(input).is_file()) {
            names.entry(Path::new(input).file_name().unwrap_or_default()).or_default().push(input);
        }
        GivenNames(names)
    }

    /// What was given for the page with an id, which is the end of its path; or the id.
    fn of(&self, id: &Id) -> Id {
        let text = id.to_string();
        let id_path = Path::new(&text);
        let given = id_path.file_name().and_then(|name| self.0.get(name)).into_iter().flatten();
        let mut given = given.filter(|given| as_in_ids(given).ends_with(id_path));
        match (given.next(), given.next()) {
            (Some(given), None) => Id::from(*given),
            _ => id.clone(),
        }
    }
}

/// Fingerprints of pages, or from files; and how many records were skipped.
fn queries(index: &Index, inputs: &[String], written: Option<Notation>) -> Result<(Vec<(u64, Id)>, u64)> {
    let mut queries = Vec::new();
    let skipped = match (index.config().page_config(), written) {
        (Some(config), None) => {
            let given = GivenNames::new(inputs);
            let mut take = |id: &Id, fingerprint: u64, _| {
                queries.push((fingerprint, given.of(id)));
                Ok(())
            };
            let read =
                pages::for_each(&config, inputs, RunOptions::default_threads(), index.directory(), &Silent, &mut take)?;
            (read.skipped, read.examples)
        }
        _ => {
            let mut take = |fingerprint: u64, id: &Id| {
                queries.push((fingerprint, id.clone()));
                Ok(())
            };
            let mut reader = FingerprintReader::new(written.unwrap_or(Notation::Hex), IdKind::Text, 0, &mut take);
            for path in files(inputs)? {
                reader.read(&path)?;
            }
            let read = reader.finish();
            (read.skipped, read.examples)
        }
    };
    for record in skipped.1 {
        writeln!(io::stderr(), "skipped: {}", with_flags(&record.to_string()))?;
    }
    Ok((queries, skipped.0))
}

fn query(arguments: &QueryArguments) -> Result<Ending> {
    let index = open(&arguments.directory, arguments.lookup.skip_damaged)?;
    refuse_bands(&index)?;
    let written = arguments.fingerprints;
    let mut all: Vec<(u64, Option<Id>)> = Vec::new();
    for text in &arguments.queries {
        let Some(fingerprint) = written.parse(text) else {
            let reason = format!(
                "'{text}' is not a fingerprint; use up to 16 hexadecimal digits, or a number with `fingerprints` decimal (`file` is for a file of fingerprints, `page` for pages)"
            );
            return Err(Error::conflict("fingerprints", reason).into());
        };
        all.push((fingerprint, None));
    }
    let mut skipped = 0;
    if let Some(file) = &arguments.file {
        let name = [file.to_string_lossy().into_owned()];
        let (queries, bad) = queries(&index, &name, Some(arguments.fingerprints))?;
        all.extend(queries.into_iter().map(|(fingerprint, _)| (fingerprint, None)));
        skipped += bad;
    }
    if !arguments.page.is_empty() {
        if index.config().fingerprints == FingerprintOrigin::Given {
            let reason =
                "this index has ready-made fingerprints, and how they were made is unknown; look up fingerprints";
            return Err(Error::conflict("page", reason).into());
        }
        let (queries, bad) = queries(&index, &arguments.page, None)?;
        if queries.is_empty() {
            return Err(Error::conflict("page", "the page is empty or too short for a fingerprint").into());
        }
        all.extend(queries.into_iter().map(|(fingerprint, id)| (fingerprint, Some(id))));
        skipped += bad;
    }
    if let Some(file) = arguments.file.as_ref().filter(|_| all.is_empty() && skipped == 0) {
        return Err(Error::bad_input(file, "has no fingerprints").into());
    }
    let (mut out, mut reader) = (BufWriter::new(io::stdout().lock()), index.reader());
    let radius = radius(&index, &arguments.lookup);
    let mut all_found = true;
    for (fingerprint, id) in all {
        let name = id.map_or_else(|| format!("{fingerprint:016x}"), |id| id.to_string());
        if arguments.any {
            let any = reader.any(fingerprint, radius)?;
            all_found &= any;
            match arguments.lookup.json {
                true => writeln!(
                    out,
                    "{}",
                    json!({"query": name, "fingerprint": format!("{fingerprint:016x}"), "any": any})
                )?,
                false => writeln!(out, "{name}\t{}", if any { "yes" } else { "no" })?,
            }
            continue;
        }
        let limit = if arguments.limit == 0 { usize::MAX } else { arguments.limit };
        let answer = reader.query(fingerprint, radius, limit)?;
        if arguments.lookup.json {
            let matches: Vec<_> = answer.matches.iter().map(match_json).collect();
            let fingerprint = format!("{fingerprint:016x}");
            writeln!(
                out,
                "{}",
                json!({"query": name, "fingerprint": fingerprint, "count": answer.count, "matches": matches})
            )?;
            continue;
        }
        for found in &answer.matches {
            writeln!(
                out,
                "{}\t{}\t{}\t{:016x}",
                plain(&name),
                found.distance,
                plain(&found.id.to_string()),
                found.fingerprint
            )?;
        }
        if answer.count > answer.matches.len() as u64 {
            out.flush()?;
            writeln!(
                io::stderr(),
                "{name}: {} of {} rows shown (--limit)",
                answer.matches.len(),
                thousands(answer.count)
            )?;
        }
    }
    out.flush()?;
    Ok(if arguments.any && !all_found { Ending::No } else { ending(&index, skipped) })
}

/// Text for a column: tabs, line ends and other control characters are escaped.
fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escaped).collect())
}

fn match_json(found: &RowMatch) -> serde_json::Value {
    json!({"id": found.id, "distance": found.distance, "fingerprint": format!("{:016x}", found.fingerprint)})
}

fn radius(index: &Index, lookup: &LookupArguments) -> u32 {
    lookup.radius.unwrap_or(index.config().radius)
}

fn batch(arguments: &BatchArguments) -> Result<Ending> {
    let index = open(&arguments.directory, arguments.pairs.lookup.skip_damaged)?;
    refuse_bands(&index)?;
    let (queries, skipped) = queries(&index, &arguments.queries, arguments.fingerprints)?;
    let radius = radius(&index, &arguments.pairs.lookup);
    let mut reader = index.reader();
    if let Some(tables) = arguments.tables_over {
        reader = reader.with_tables_over(tables);
    }
    write_pairs(&arguments.pairs, |limit, visit| reader.batch_matches(&queries, radius, limit, visit))?;
    Ok(ending(&index, skipped))
}

fn join(arguments: &JoinArguments) -> Result<Ending> {
    let lookup = &arguments.pairs.lookup;
    let index = open(&arguments.directory, lookup.skip_damaged)?;
    refuse_bands(&index)?;
    let radius = radius(&index, lookup);
    let other = arguments.other.as_ref().map(|other| open(other, lookup.skip_damaged)).transpose()?;
    if let Some(other) = &other
        && other.config().fingerprints != index.config().fingerprints
    {
        let reason = format!(
            "its fingerprints were not made in the same way as those of {}, so their distances mean nothing; build one index again with the settings of the other",
            index.directory().display()
        );
        return Err(Error::bad_input(other.directory(), reason).into());
    }
    let reader: IndexReader = index.reader();
    write_pairs(&arguments.pairs, |limit, visit| match &other {
        // The first index's rows come first in a line.
        Some(other) => other.reader().join_matches(&reader, radius, limit, visit),
        None => reader.self_matches(radius, limit, visit),
    })?;
    let left_out = other.map_or(0, |other| other.damaged().len() as u64);
    Ok(ending(&index, left_out))
}

type VisitPair<'a> = dyn FnMut(&Id, &RowMatch) -> lookalike::Result<()> + 'a;

/// Writes pairs of rows, and reports how many.
fn write_pairs(
    arguments: &PairArguments,
    find: impl FnOnce(usize, &mut VisitPair<'_>) -> lookalike::Result<MatchCounts>,
) -> Result<()> {
    let mut out: Box<dyn Write> = match &arguments.output {
        Some(path) => Box::new(File::create(path).with_context(|| format!("{}: cannot write", path.display()))?),
        None => Box::new(io::stdout().lock()),
    };
    let mut out = BufWriter::with_capacity(1 << 18, &mut out);
    let target = arguments.output.clone().unwrap_or_else(|| PathBuf::from("standard output"));
    let written = find(arguments.limit, &mut |id, found| {
        let written = if arguments.lookup.json {
            writeln!(out, "{}", json!({"query": id, "distance": found.distance, "id": found.id}))
        } else {
            writeln!(out, "{}\t{}\t{}", plain(&id.to_string()), found.distance, plain(&found.id.to_string()))
        };
        written.map_err(Error::io(&target, "write"))
    });
    let written = match written {
        Err(Error::Io { cause, .. }) if cause.kind() == io::ErrorKind::BrokenPipe => return Err(cause.into()),
        written => written?,
    };
    out.flush()?;
    if let Some(path) = &arguments.output {
        writeln!(io::stderr(), "{}: {}", path.display(), counted(written.pairs, "pair", "pairs"))?;
        if arguments.lookup.json {
            json::print(&json!({"output": path, "pairs": written.pairs, "limited": written.limited}))?;
        }
    }
    if written.limited > 0 {
        let (rows, limit) = (counted(written.limited, "row has", "rows have"), arguments.limit);
        writeln!(
            io::stderr(),
            "{rows} more than {limit} matches, of which only {limit} were written; --limit 0 writes all"
        )?;
    }
    Ok(())
}

fn stats(arguments: &StatsArguments) -> Result<Ending> {
    let index = open(&arguments.directory, arguments.skip_damaged)?;
    let stats = index.stats()?;
    if let Some(directory) = &arguments.plots {
        fs::create_dir_all(directory).with_context(|| format!("{}: cannot create", directory.display()))?;
        for (name, text) in index_plots(&stats) {
            let path = directory.join(name);
            fs::write(&path, text).with_context(|| format!("{}: cannot write", path.display()))?;
        }
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &stats)?;
        writeln!(out)?;
        return Ok(ending(&index, 0));
    }
    writeln!(out, "rows           {}", thousands(stats.rows))?;
    writeln!(out, "fingerprints   {} different", thousands(stats.fingerprints))?;
    writeln!(out, "bytes          {} ({} of them ids)", format_bytes(stats.bytes), format_bytes(stats.id_bytes))?;
    for segment in &stats.segments {
        writeln!(
            out,
            "{}   {} rows, {} tables ({}, radius {}, {}), {:.2} bytes per fingerprint and table, {} in total{}",
            segment.file,
            thousands(segment.rows),
            segment.tables,
            segment.design,
            segment.radius,
            segment.codec,
            segment.bytes_per_row_and_table,
            format_bytes(segment.bytes),
            if segment.deleted > 0 { format!(", deletes {} older rows", segment.deleted) } else { String::new() }
        )?;
    }
    let most = stats.parts.iter().max().copied().unwrap_or(0);
    let even = stats.parts.iter().sum::<u64>() as f64 / stats.parts.len() as f64;
    if even > 0.0 {
        writeln!(out, "distribution   the fullest 1/128 of the space holds {:.1} × its share", most as f64 / even)?;
    }
    Ok(ending(&index, 0))
}

fn verify(directory: &Path, as_json: bool) -> Result<Ending> {
    let index = Index::open(directory, OpenOptions { skip_damaged: true, ..OpenOptions::default() })?;
    let wrong = index.verify();
    let rows = if index.config().has_bands() { index.stored_pages() } else { index.reader().len().0 };
    if as_json {
        json::print(&json!({"index": directory, "rows": rows, "damage": wrong}))?;
    }
    if wrong.is_empty() {
        if !as_json {
            writeln!(io::stdout(), "{}: no damage found, {}", directory.display(), counted(rows, "row", "rows"))?;
        }
        return Ok(Ending::Done);
    }
    Err(anyhow::anyhow!("{}", wrong.join("\nerror: ")))
}
