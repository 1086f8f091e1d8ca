//! Records of the input → directories that mirror it: `kept/`, `removed/` and `annotated/`.
//!
//! In: a selection of the pages. Out: one file per input file, or numbered parts of it, with its name, format and
//! compression unless others are asked for; the bytes of records unchanged (Parquet: the rows, same schema), in order.
//! What a format's records are copied by is its [`Keeping`]; a selection is made here, once for all formats.

mod annotate;
mod arrow;
mod bytes;
mod convert;
mod crawl;
mod packed;
mod plain_copy;
mod rows;
mod target;
mod whole;

use std::fs::{self, File};
use std::io;
use std::path::Path;

pub(super) use annotate::write as write_annotated;
pub(super) use whole::WholeFiles;

use crate::error::{Error, Result};
use crate::observe::Observer;
use crate::page::{PageId, PageOrigin, SourceId};
use crate::read::{Input, Keeping, Source};
use crate::report::outputs::{KeptCompression, KeptFormat};
use crate::report::{Findings, OutputOptions, files};
use target::{Packing, Target};

/// Which records a directory takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Selection {
    Kept,
    Removed,
}

/// Where the record of a page was written: which part of the file, and the number of the record in it, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    part: usize,
    record: u64,
}

/// The page files of a directory, which are listed or copied.
#[derive(Debug, Default)]
struct PageFiles {
    list: String,
}

/// Writes the kept records into `directory`, all but the files that are `whole`.
pub(super) fn write_kept(
    findings: &Findings<'_>,
    directory: &Path,
    options: OutputOptions,
    whole: &mut WholeFiles,
    observer: &dyn Observer,
) -> Result<()> {
    fs::create_dir_all(directory).map_err(Error::io(directory, "create"))?;
    if options.kept_format != KeptFormat::Same {
        return convert::write(findings, directory, options, whole, observer);
    }
    let mut page_files = PageFiles::default();
    for (id, target) in targets(findings, directory, Selection::Kept, options, options.kept_compression, observer) {
        target.check()?;
        if !whole.has(id, &target) {
            let chosen: Vec<PageId> = chosen(findings, id, Selection::Kept);
            copy(findings, id, &target, &chosen, Selection::Kept, options, &mut page_files)?;
            // Page files are listed, and quickly copied.
            if !findings.reading.source(id).format.is_page_file() {
                whole.add(id, &target)?;
            }
        }
    }
    if !page_files.list.is_empty() {
        let path = directory.join(files::KEPT_LIST);
        fs::write(&path, page_files.list).map_err(Error::io(&path, "write"))?;
    }
    Ok(())
}

/// Writes the removed records into `directory`. `placed` learns of every removed page the file that has it and
/// the number of its record in there, or nothing where its record is not copied, page by page in their order.
pub(super) fn write_removed(
    findings: &Findings<'_>,
    directory: &Path,
    options: OutputOptions,
    observer: &dyn Observer,
    mut placed: impl FnMut(PageId, Option<(&str, u64)>) -> Result<()>,
) -> Result<()> {
    fs::create_dir_all(directory).map_err(Error::io(directory, "create"))?;
    // What is removed stays as it is.
    let mut page_files = PageFiles::default();
    for (id, target) in targets(findings, directory, Selection::Removed, options, KeptCompression::Same, observer) {
        target.check()?;
        let chosen: Vec<PageId> = chosen(findings, id, Selection::Removed);
        if chosen.is_empty() {
            continue;
        }
        let places = copy(findings, id, &target, &chosen, Selection::Removed, options, &mut page_files)?;
        let mut places = places.into_iter();
        for page in chosen {
            let place = places.next().flatten();
            let name = place.map(|place| target.name(place.part));
            placed(page, name.as_deref().zip(place.map(|place| place.record)))?;
        }
    }
    Ok(())
}

/// Copies the chosen records of a source in the way of its format; says where each went.
fn copy(
    findings: &Findings<'_>,
    id: SourceId,
    target: &Target<'_>,
    chosen: &[PageId],
    selection: Selection,
    options: OutputOptions,
    page_files: &mut PageFiles,
) -> Result<Vec<Option<Place>>> {
    let source = findings.reading.source(id);
    let asked = if selection == Selection::Kept { options.kept_compression } else { KeptCompression::Same };
    Ok(match source.format.reader().keeping(&Input { corpus: findings.reading, id }) {
        Keeping::File => page_files.add(source, target, chosen, selection, options)?,
        Keeping::Captures => crawl::write(findings, id, target, selection, options.revisit)?.of(chosen),
        Keeping::Rows => some(rows::copy(findings, source, target, asked, chosen)?),
        Keeping::ArrowRows => some(arrow::copy(findings, source, target, chosen)?),
        Keeping::Framed(frame) => some(bytes::copy_framed(findings, source, target, &frame, chosen)?),
        Keeping::AllButDropped => some(bytes::copy_documents(findings, id, target, selection)?),
        Keeping::Records { header_bytes } => some(bytes::copy_records(findings, source, target, header_bytes, chosen)?),
        Keeping::Nothing => Vec::new(), // reported as skipped
    })
}

fn some(places: Vec<Place>) -> Vec<Option<Place>> {
    places.into_iter().map(Some).collect()
}

/// The pages of a source that a selection takes, ascending.
fn chosen(findings: &Findings<'_>, source: SourceId, selection: Selection) -> Vec<PageId> {
    let is_kept = |page: PageId| findings.fates.keeps(page);
    let pages = findings.pages.pages_of(source).filter(|&page| findings.pages.is_page(page));
    pages.filter(|&page| is_kept(page) == (selection == Selection::Kept)).collect()
}

/// The sources of the input.
fn input_sources<'a>(findings: &Findings<'a>) -> impl Iterator<Item = (SourceId, &'a Source)> + use<'a> {
    let sources = (0..).map(SourceId::from_index).zip(&findings.reading.sources);
    sources.filter(|(_, source)| source.origin == PageOrigin::Input)
}

/// The files that the records of each source go to.
fn targets<'a>(
    findings: &Findings<'_>,
    directory: &'a Path,
    selection: Selection,
    options: OutputOptions,
    asked: KeptCompression,
    observer: &'a dyn Observer,
) -> Vec<(SourceId, Target<'a>)> {
    let (ids, sources): (Vec<SourceId>, Vec<Source>) =
        input_sources(findings).map(|(id, source)| (id, source.clone())).unzip();
    let taken: &[&str] = if selection == Selection::Kept { &[files::KEPT_LIST] } else { &[] };
    let names = target::names(&sources, asked, None, taken);
    let named = ids.into_iter().zip(&sources).zip(names);
    named
        .map(|((id, source), name)| {
            // A page file is one record, documents stand in a frame, Arrow has batches of its own: none is divided.
            let keeping = source.format.reader().keeping(&Input { corpus: findings.reading, id });
            let is_whole = !matches!(keeping, Keeping::Records { .. } | Keeping::Rows | Keeping::Captures);
            let limit = options.split_size.filter(|_| !is_whole);
            (id, Target::new(directory, name, limit, Packing::new(source, asked)).watched_by(observer))
        })
        .collect()
}

/// Whether the result in `directory` has copies of kept page files.
pub(crate) fn has_copies(directory: &Path, sources: &[Source]) -> bool {
    let kept = directory.join(files::KEPT);
    let names = target::names(sources, KeptCompression::Same, None, &[files::KEPT_LIST]);
    let packing = |source: &Source| Packing::new(source, KeptCompression::Same);
    let mut named = sources.iter().zip(names);
    named.any(|(source, name)| {
        source.format.is_page_file() && Target::new(&kept, name, None, packing(source)).path(0).exists()
    })
}

impl PageFiles {
    /// Lists the file of a chosen page, and copies it if that is wanted.
    fn add(
        &mut self,
        source: &Source,
        target: &Target<'_>,
        chosen: &[PageId],
        selection: Selection,
        options: OutputOptions,
    ) -> Result<Vec<Option<Place>>> {
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        self.list.push_str(&source.display);
        self.list.push('\n');
        if selection == Selection::Kept && !options.copy_kept {
            return Ok(vec![None; chosen.len()]);
        }
        copy_whole(source, target)?;
        Ok(vec![Some(Place { part: 0, record: 1 }); chosen.len()])
    }
}

/// Copies a file as it is.
fn copy_whole(source: &Source, target: &Target<'_>) -> Result<()> {
    let (mut out, path) = target.create(0)?;
    if let Some(file) = source.location.path() {
        fs::copy(file, &path).map_err(Error::io(&path, "write"))?;
        return Ok(());
    }
    let mut reader = source.location.open().map_err(Error::io(&source.path(), "read"))?;
    io::copy(&mut reader, &mut out).map_err(Error::io(&path, "write"))?;
    Ok(())
}

/// The source has fewer bytes than when it was read.
fn truncated(source: &Source) -> Error {
    Error::corrupt(&source.path(), "is shorter than when it was read; run the job again when nothing writes to it")
}

/// A plain file, opened for copies from file to file, which the system does without moving bytes through this process.
fn plain_file(source: &Source) -> Result<Option<File>> {
    let Some(path) = source.location.path() else { return Ok(None) };
    File::open(path).map(Some).map_err(Error::io(path, "read"))
}
