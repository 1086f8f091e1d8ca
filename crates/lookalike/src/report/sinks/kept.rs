//! `kept/`: the input without what was dropped.
//!
//! In: which pages are kept. Out: one file per input file, with its name, format and compression; the
//! bytes of kept records unchanged (Parquet: the rows, same schema). Directories of pages: the list
//! `kept.txt`, and copies on request.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::BooleanArray;
use arrow_select::filter::filter_record_batch;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::file::properties::WriterProperties;

use crate::error::{Error, Result};
use crate::page::{PageId, PageOrigin, SourceId};
use crate::read::compression::Compression;
use crate::read::{Chunks, Frame, Input, Keeping, Source, guarded, open_parquet as open_file};
use crate::report::sinks::{Sink, SinkContext, kept_arrow, kept_crawl, kept_dataset};
use crate::report::table::{cannot_read, cannot_write};
use crate::report::{Findings, OutputOptions, files};

pub(super) struct Kept;

impl Sink for Kept {
    fn files(&self) -> &'static [&'static str] {
        &[files::KEPT]
    }

    fn write(&self, findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
        write(findings, &directory.join(files::KEPT), context.options)
    }
}

fn write(findings: &Findings<'_>, directory: &Path, options: OutputOptions) -> Result<()> {
    fs::create_dir_all(directory).map_err(Error::io(directory, "create"))?;
    let mut list = String::new();
    let sources = (0..).map(SourceId::from_index).zip(&findings.reading.sources);
    for (index, source) in sources.filter(|(_, source)| source.origin == PageOrigin::Input) {
        let pages = findings.pages.pages_of(index);
        let is_kept = |page: PageId| findings.fates[page].keeps(page);
        let target = target(directory, source);
        let keeping = source.format.reader().keeping(&Input { corpus: findings.reading, id: index });
        if keeping != Keeping::File {
            create_parent(&target)?;
        }
        match keeping {
            Keeping::File => {
                if pages.into_iter().any(is_kept) {
                    list.push_str(&source.display);
                    list.push('\n');
                    if options.copy_kept {
                        create_parent(&target)?;
                        copy_whole(source, &target)?;
                    }
                }
            }
            Keeping::Captures => kept_crawl::write(findings, index, &target, options.revisit)?,
            Keeping::Rows => {
                let kept: Vec<u64> =
                    pages.filter(|&page| is_kept(page)).map(|page| findings.pages.place(page).record).collect();
                copy_rows(source, &target, &kept)?;
            }
            Keeping::ArrowRows => {
                let kept: Vec<u64> =
                    pages.filter(|&page| is_kept(page)).map(|page| findings.pages.place(page).record).collect();
                let copied = kept_arrow::copy_rows(source, &target, &kept)?;
                all_copied(source, copied, kept.len() as u64)?;
            }
            Keeping::AllButDropped => {
                // What stands around documents stays.
                let mut ranges: Vec<(u64, u64)> = Vec::new();
                let mut from = 0;
                for (start, end) in dropped_documents(findings, index)? {
                    ranges.push((from, start));
                    from = end;
                }
                ranges.push((from, TO_THE_END));
                copy_ranges(source, &target, &ranges)?;
            }
            Keeping::Records { header_bytes } => {
                let mut ranges: Vec<(u64, u64)> = Vec::new();
                if header_bytes > 0 {
                    ranges.push((0, header_bytes));
                }
                for page in pages.filter(|&page| is_kept(page)) {
                    let (start, end) = range_of(findings, page)?;
                    match ranges.last_mut() {
                        Some(last) if last.1 == start => last.1 = end,
                        _ => ranges.push((start, end)),
                    }
                }
                copy_ranges(source, &target, &ranges)?;
            }
            Keeping::Framed(frame) => {
                let kept = pages.filter(|&page| is_kept(page)).map(|page| range_of(findings, page));
                copy_framed(source, &target, &frame, &kept.collect::<Result<Vec<_>>>()?)?;
            }
            Keeping::Nothing => {} // reported as skipped
        }
    }
    kept_dataset::write(findings, directory)?;
    let list_path = directory.join(files::KEPT_LIST);
    if !list.is_empty() {
        fs::write(&list_path, list).map_err(Error::io(&list_path, "write"))?;
    }
    Ok(())
}

/// The documents of a source that are dropped, or were not chosen, ascending.
fn dropped_documents(findings: &Findings<'_>, index: SourceId) -> Result<Vec<(u64, u64)>> {
    let pages = findings.pages.pages_of(index);
    let (kept, dropped): (Vec<PageId>, Vec<PageId>) = pages.partition(|&page| findings.fates[page].keeps(page));
    let ranges =
        |pages: Vec<PageId>| pages.into_iter().map(|page| range_of(findings, page)).collect::<Result<Vec<_>>>();
    let Some(all) = findings.reading.with_all_pages(index) else { return ranges(dropped) };
    let kept = ranges(kept)?;
    let mut others = Vec::new();
    all.for_each(|page| {
        if let Some((start, length)) = page.ok().and_then(|page| Some((page.offset?, page.length))) {
            others.push((start, start + length));
        }
    })?;
    others.retain(|range| kept.binary_search(range).is_err());
    Ok(others)
}

/// The bytes of a page's record in the decompressed source.
fn range_of(findings: &Findings<'_>, page: PageId) -> Result<(u64, u64)> {
    let place = findings.pages.place(page);
    let start = place.offset.ok_or_else(|| Error::internal("a record that is copied by its bytes has no offset"))?;
    Ok((start, start + place.length))
}

/// The end of a range that extends to the end of the file.
const TO_THE_END: u64 = u64::MAX;

/// Where the kept part of a source goes.
fn target(directory: &Path, source: &Source) -> PathBuf {
    // A page file of that name makes way for the list.
    if source.name == files::KEPT_LIST {
        directory.join(format!("{}~2", source.name))
    } else {
        directory.join(&source.name)
    }
}

/// Whether the result in `directory` has copies of kept page files.
pub(crate) fn has_copies(directory: &Path, sources: &[Source]) -> bool {
    let kept = directory.join(files::KEPT);
    sources.iter().any(|source| source.format.is_page_file() && target(&kept, source).exists())
}

fn create_parent(target: &Path) -> Result<()> {
    match target.parent() {
        Some(parent) => fs::create_dir_all(parent).map_err(Error::io(parent, "create")),
        None => Ok(()),
    }
}

/// Copies ranges of the decompressed bytes, ascending, into a file of the same compression.
fn copy_ranges(source: &Source, target: &Path, ranges: &[(u64, u64)]) -> Result<()> {
    let file = File::create(target).map_err(Error::io(target, "create"))?;
    if source.compression == Compression::None {
        // File to file: the system copies without moving the bytes through this process.
        let Some(path) = source.location.path() else { return copy_parts(source, file, target, ranges) };
        let mut from = File::open(path).map_err(Error::io(path, "read"))?;
        let mut file = file;
        for &(start, end) in ranges {
            io::Seek::seek(&mut from, io::SeekFrom::Start(start)).map_err(Error::io(path, "read"))?;
            let copied =
                io::copy(&mut Read::take(&from, end - start), &mut file).map_err(Error::io(target, "write"))?;
            if copied != end - start && end != TO_THE_END {
                return Err(truncated(source));
            }
        }
        return Ok(());
    }
    copy_parts(source, file, target, ranges)
}

/// Copies a file as it is.
pub(super) fn copy_whole(source: &Source, target: &Path) -> Result<()> {
    if let Some(path) = source.location.path() {
        fs::copy(path, target).map_err(Error::io(target, "write"))?;
        return Ok(());
    }
    let mut reader = source.location.open().map_err(Error::io(&source.path(), "read"))?;
    let mut out = File::create(target).map_err(Error::io(target, "create"))?;
    io::copy(&mut reader, &mut out).map_err(Error::io(target, "write"))?;
    Ok(())
}

/// Copies ranges of the decompressed bytes by reading through all of them.
fn copy_parts(source: &Source, file: File, target: &Path, ranges: &[(u64, u64)]) -> Result<()> {
    let opened = source.location.open().and_then(|opened| source.compression.decode(opened));
    let mut reader = opened.map_err(Error::io(&source.path(), "read"))?;
    let mut is_short = false;
    let fill = |writer: &mut dyn Write| {
        let mut at = 0;
        for &(start, end) in ranges {
            io::copy(&mut reader.by_ref().take(start - at), &mut io::sink())?;
            if io::copy(&mut reader.by_ref().take(end - start), writer)? != end - start && end != TO_THE_END {
                is_short = true;
            }
            at = end;
        }
        Ok(())
    };
    source.compression.write(file, fill).map_err(Error::io(target, "write"))?;
    if is_short { Err(truncated(source)) } else { Ok(()) }
}

/// Copies ranges of the decompressed bytes, ascending, with what makes one document of them.
fn copy_framed(source: &Source, target: &Path, frame: &Frame, ranges: &[(u64, u64)]) -> Result<()> {
    let reader = source.location.open().and_then(|file| source.compression.decode(file));
    let mut reader = reader.map_err(Error::io(&source.path(), "read"))?;
    let file = File::create(target).map_err(Error::io(target, "create"))?;
    let mut is_short = false;
    let fill = |writer: &mut dyn Write| {
        writer.write_all(&frame.before)?;
        let mut at = 0;
        for &(start, end) in ranges {
            if at > 0 {
                writer.write_all(&frame.between)?;
            }
            io::copy(&mut reader.by_ref().take(start - at), &mut io::sink())?;
            is_short |= io::copy(&mut reader.by_ref().take(end - start), writer)? != end - start;
            at = end;
        }
        writer.write_all(frame.after)
    };
    source.compression.write(file, fill).map_err(Error::io(target, "write"))?;
    if is_short { Err(truncated(source)) } else { Ok(()) }
}

/// The source has fewer bytes than when it was read.
pub(super) fn truncated(source: &Source) -> Error {
    Error::corrupt(&source.path(), "is shorter than when it was read; run the job again when nothing writes to it")
}

/// Copies the rows whose numbers, from 1, are in `kept`, ascending. Only now are all columns read, so
/// damage that the first reading did not meet can show here; rows are never lost silently.
fn copy_rows(source: &Source, target: &Path, kept: &[u64]) -> Result<()> {
    let copied = guarded(|| try_copy_rows(source, target, kept));
    let copied = copied.map_err(|(_, reason)| Error::corrupt(&source.path(), reason))??;
    all_copied(source, copied, kept.len() as u64)
}

/// Refuses to lose rows.
fn all_copied(source: &Source, copied: u64, kept: u64) -> Result<()> {
    if copied == kept {
        return Ok(());
    }
    let reason = format!(
        "only {copied} of {kept} kept rows can be copied: the file is damaged in a column that is not compared; repair it, or leave it out"
    );
    Err(Error::corrupt(&source.path(), reason))
}

/// Returns the number of rows that were copied.
fn try_copy_rows(source: &Source, target: &Path, kept: &[u64]) -> Result<u64> {
    let file = Chunks::new(&source.location).map_err(Error::io(&source.path(), "read"))?;
    let Ok(builder) = open_file(file) else { return Ok(0) }; // reported as skipped
    let metadata = Arc::clone(builder.metadata());
    let compression = metadata
        .row_groups()
        .first()
        .and_then(|group| group.columns().first())
        .map(parquet::file::metadata::ColumnChunkMetaData::compression);
    let key_values = metadata.file_metadata().key_value_metadata().cloned();
    let mut properties = WriterProperties::builder().set_key_value_metadata(key_values);
    if let Some(compression) = compression {
        properties = properties.set_compression(compression);
    }
    let out = File::create(target).map_err(Error::io(target, "create"))?;
    // What the writer of the input noted down about types is copied as it is.
    let options = ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
    let schema = Arc::clone(builder.schema());
    let mut writer = ArrowWriter::try_new_with_options(out, schema, options).map_err(cannot_write(target))?;
    let (mut row, mut copied) = (0u64, 0u64);
    for batch in builder.build().map_err(cannot_read(&source.path()))? {
        let Ok(batch) = batch else { break };
        let rows = row + 1..row + 1 + batch.num_rows() as u64;
        let mask: BooleanArray = rows.map(|number| Some(kept.binary_search(&number).is_ok())).collect();
        row += batch.num_rows() as u64;
        let filtered = filter_record_batch(&batch, &mask)
            .map_err(|error| Error::internal(format!("rows cannot be filtered: {error}")))?;
        copied += filtered.num_rows() as u64;
        writer.write(&filtered).map_err(cannot_write(target))?;
    }
    writer.close().map_err(cannot_write(target))?;
    Ok(copied)
}
