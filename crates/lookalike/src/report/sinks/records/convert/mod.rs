//! Kept records → JSON lines, Parquet or CSV, whatever they were before.
//!
//! Records with fields keep all of them; pages without fields (files, web archives, documents) become `id`, `url`,
//! `title` and `text`, the last being the page as it was, in UTF-8. Files that are in the format already are copied.
//! Guaranteed: the files that are not copied have the same columns, whose types are those that hold all of their values; lists and
//! objects become JSON text where a format has no room for them.

mod arrow_values;
mod columns;
mod fields;
mod writers;

use std::path::Path;

pub(super) use writers::csv_cell;

use crate::error::Result;
use crate::observe::Observer;
use crate::page::{PageId, SourceId};
use crate::read::compression::Compression;
use crate::read::{Format, Input, Keeping, Source};
use crate::report::outputs::{KeptCompression, KeptFormat};
use crate::report::sinks::records::target::{self, Packing, Target, TargetName};
use crate::report::sinks::records::{Selection, WholeFiles, bytes, chosen, input_sources, rows};
use crate::report::{Findings, OutputOptions};
use columns::Columns;
use fields::for_each_record;
use writers::RecordWriter;

/// What the file of all page files is called.
const PAGES: &str = "pages";

/// Records that go to one file.
struct Group<'a> {
    target: Target<'a>,
    sources: Vec<SourceId>,
    /// Whether they are copied as they are.
    is_copied: bool,
}

/// Writes the kept records into `directory`, all but the files that are `whole`.
pub(super) fn write(
    findings: &Findings<'_>,
    directory: &Path,
    options: OutputOptions,
    whole: &mut WholeFiles,
    observer: &dyn Observer,
) -> Result<()> {
    let groups = groups(findings, directory, options, observer);
    let mut columns = Columns::default();
    if options.kept_format != KeptFormat::Jsonl {
        for source in groups.iter().filter(|group| !group.is_copied).flat_map(|group| &group.sources) {
            columns.learn(findings, *source)?;
        }
    }
    for Group { target, sources, is_copied } in groups {
        target.check()?;
        let Some(&first) = sources.first() else { continue };
        if whole.has(first, &target) {
            continue;
        }
        if is_copied {
            sources.into_iter().try_for_each(|id| copy(findings, id, &target, options.kept_compression))?;
        } else {
            let mut writer = RecordWriter::new(options.kept_format, &target, &columns, options.kept_compression);
            for id in sources {
                let kept = chosen(findings, id, Selection::Kept);
                for_each_record(findings, id, &kept, &mut |record| writer.write(record))?;
            }
            writer.finish()?;
        }
        whole.add(first, &target)?;
    }
    Ok(())
}

/// The files that are written, and what goes into each: the page files all into one.
fn groups<'a>(
    findings: &Findings<'_>,
    directory: &'a Path,
    options: OutputOptions,
    observer: &'a dyn Observer,
) -> Vec<Group<'a>> {
    let (format, ending) = match options.kept_format {
        KeptFormat::Same | KeptFormat::Jsonl => (Some(Format::JSONL), ".jsonl"),
        KeptFormat::Parquet => (Some(Format::PARQUET), ".parquet"),
        KeptFormat::Csv => (Format::all().find(|format| format.name() == "csv"), ".csv"),
    };
    let asked = options.kept_compression;
    let is_page_file = |id: SourceId, source: &Source| {
        let keeping = source.format.reader().keeping(&Input { corpus: findings.reading, id });
        keeping == Keeping::File
    };
    let (page_files, others): (Vec<_>, Vec<_>) =
        input_sources(findings).partition(|&(id, source)| is_page_file(id, source));
    let mut groups = Vec::new();
    let mut taken: Vec<String> = Vec::new();
    if !page_files.is_empty() {
        let compression = match asked {
            KeptCompression::To { compression, .. } if ending != ".parquet" => compression,
            _ => Compression::None,
        };
        let level = if let KeptCompression::To { level, .. } = asked { level } else { None };
        let packing = Packing { compression, level, is_same: false };
        let ending = format!("{ending}{}", compression.ending());
        taken.push(format!("{PAGES}{ending}"));
        let name = TargetName::new(PAGES, ending);
        groups.push(Group {
            target: Target::new(directory, name, options.split_size, packing).watched_by(observer),
            sources: page_files.iter().map(|row| row.0).collect(),
            is_copied: false,
        });
    }
    let sources: Vec<Source> = others.iter().map(|(_, source)| (*source).clone()).collect();
    let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
    let names = target::names(&sources, asked, Some(ending), &taken);
    groups.extend(others.iter().zip(names).map(|(&(id, source), name)| Group {
        target: Target::new(directory, name, options.split_size, Packing::new(source, asked)).watched_by(observer),
        sources: vec![id],
        is_copied: Some(source.format) == format,
    }));
    groups
}

/// Copies the records of a source that is in the format already.
fn copy(findings: &Findings<'_>, id: SourceId, target: &Target<'_>, asked: KeptCompression) -> Result<()> {
    let source = findings.reading.source(id);
    let kept: Vec<PageId> = chosen(findings, id, Selection::Kept);
    match source.format.reader().keeping(&Input { corpus: findings.reading, id }) {
        Keeping::Rows => rows::copy(findings, source, target, asked, &kept).map(|_| ()),
        Keeping::Records { header_bytes } => {
            bytes::copy_records(findings, source, target, header_bytes, &kept).map(|_| ())
        }
        _ => Ok(()), // nothing of it could be read
    }
}
