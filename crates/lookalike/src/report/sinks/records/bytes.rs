//! Records that are stretches of bytes: lines, records of tables, documents.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::page::{PageId, SourceId};
use crate::read::compression::Compression;
use crate::read::{Frame, Source};
use crate::report::Findings;
use crate::report::sinks::records::packed::PackedFile;
use crate::report::sinks::records::plain_copy::PlainCopy;
use crate::report::sinks::records::target::Target;
use crate::report::sinks::records::{Place, Selection, plain_file, truncated};

/// A stretch of decompressed bytes, from and up to.
pub(super) type Stretch = (u64, u64);

/// The end of a stretch that extends to the end of the file.
pub(super) const TO_THE_END: u64 = u64::MAX;

/// The longest line end.
const LINE_END_BYTES: u64 = 2;

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 128 << 10;

/// Records between two looks at whether the run is to stop.
const RECORDS_BETWEEN_CHECKS: u64 = 1024;
/// Bytes that are copied between two looks.
const BYTES_BETWEEN_CHECKS: u64 = 64 << 20;

/// Files of one target whose records are made one by one, part after part.
pub(super) struct ByteParts<'a> {
    target: &'a Target<'a>,
    /// What every part begins with.
    header: Vec<u8>,
    out: Option<(PackedFile, PathBuf)>,
    part: usize,
    bytes: u64,
    records: u64,
}

impl<'a> ByteParts<'a> {
    pub(super) fn new(target: &'a Target<'a>, header: Vec<u8>) -> ByteParts<'a> {
        ByteParts { target, header, out: None, part: 0, bytes: 0, records: 0 }
    }

    /// Writes a record; a new part begins if this one would become too large.
    pub(super) fn write(&mut self, record: &[u8]) -> Result<()> {
        let bytes = record.len() as u64;
        if self.target.limit.is_some_and(|limit| self.records > 0 && self.bytes + bytes > limit) {
            self.close()?;
            self.part += 1;
        }
        if self.records.is_multiple_of(RECORDS_BETWEEN_CHECKS) {
            self.target.check()?;
        }
        self.write_between(|out, path| out.write_all(record).map_err(Error::io(path, "write")))?;
        (self.bytes, self.records) = (self.bytes + bytes, self.records + 1);
        Ok(())
    }

    /// Writes what stands between records.
    pub(super) fn write_between(&mut self, fill: impl FnOnce(&mut dyn Write, &Path) -> Result<()>) -> Result<()> {
        let (out, path) = match &mut self.out {
            Some(open) => open,
            None => {
                let (file, path) = self.target.create(self.part)?;
                let mut out = self.target.packing.open(file).map_err(Error::io(&path, "write"))?;
                out.write_all(&self.header).map_err(Error::io(&path, "write"))?;
                (self.bytes, self.records) = (self.header.len() as u64, 0);
                self.out.insert((out, path))
            }
        };
        fill(out, path)
    }

    fn close(&mut self) -> Result<()> {
        match self.out.take() {
            Some((out, path)) => out.close().map_err(Error::io(&path, "write")),
            None => Ok(()),
        }
    }

    /// Closes the last part; without any records there is one, which has none.
    pub(super) fn finish(mut self) -> Result<()> {
        self.write_between(|_, _| Ok(()))?;
        self.close()
    }
}

/// Copies the records of the chosen pages, each part behind the header of the file.
pub(super) fn copy_records(
    findings: &Findings<'_>,
    source: &Source,
    target: &Target<'_>,
    header_bytes: u64,
    chosen: &[PageId],
) -> Result<Vec<Place>> {
    let mut parts: Vec<Vec<Stretch>> = vec![Vec::new()];
    let (mut places, mut bytes, mut record) = (Vec::with_capacity(chosen.len()), header_bytes, 0);
    for &page in chosen {
        let (start, end) = stretch(findings, page)?;
        if target.limit.is_some_and(|limit| record > 0 && bytes + (end - start) > limit) {
            parts.push(Vec::new());
            (bytes, record) = (header_bytes, 0);
        }
        let part = parts.len() - 1;
        match parts[part].last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => parts[part].push((start, end)),
        }
        (bytes, record) = (bytes + (end - start), record + 1);
        places.push(Place { part, record });
    }
    copy(findings, source, target, header_bytes, &parts)?;
    Ok(places)
}

/// Copies the documents of a selection. Kept: everything but the others. Removed: those alone, between what stands before
/// the first document and behind the last one.
pub(super) fn copy_documents(
    findings: &Findings<'_>,
    source_id: SourceId,
    target: &Target<'_>,
    selection: Selection,
) -> Result<Vec<Place>> {
    let source = findings.reading.source(source_id);
    let pages = || findings.pages.pages_of(source_id);
    let stretches_of = |pages: Vec<PageId>| -> Result<Vec<Stretch>> {
        pages.into_iter().map(|page| stretch(findings, page)).collect()
    };
    let (kept, removed): (Vec<PageId>, Vec<PageId>) = pages().partition(|&page| findings.fates.keeps(page));
    let (kept, removed) = (stretches_of(kept)?, stretches_of(removed)?);
    // Documents that were not chosen to be pages are in neither.
    let mut all = Vec::new();
    match findings.reading.with_all_pages(source_id) {
        Some(reading) => reading.for_each(|page| {
            let place = page.ok().and_then(|page| Some((page.offset?, page.length)));
            all.extend(place.map(|(start, length)| (start, start + length)));
        })?,
        None => all = stretches_of(pages().collect())?,
    }
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut from = 0;
    match selection {
        Selection::Kept => {
            for &(start, end) in all.iter().filter(|document| kept.binary_search(document).is_err()) {
                stretches.push((from, start));
                from = end;
            }
        }
        Selection::Removed => {
            stretches.extend(all.first().map(|first| (0, first.0)));
            for (at, &(start, end)) in all.iter().enumerate() {
                let next = all.get(at + 1).map_or(end, |next| next.0);
                if removed.binary_search(&(start, end)).is_ok() {
                    // A line end goes with the document before it.
                    stretches.push((start, if next - end <= LINE_END_BYTES { next } else { end }));
                }
                from = end;
            }
        }
    }
    stretches.push((from, TO_THE_END));
    copy(findings, source, target, 0, &[stretches])?;
    let count = if selection == Selection::Removed { removed.len() as u64 } else { 0 };
    Ok((1..=count).map(|record| Place { part: 0, record }).collect())
}

/// Copies the records of the chosen pages, with what makes one document of them.
pub(super) fn copy_framed(
    findings: &Findings<'_>,
    source: &Source,
    target: &Target<'_>,
    frame: &Frame,
    chosen: &[PageId],
) -> Result<Vec<Place>> {
    let mut unpacked = Unpacked::open(findings, source)?;
    let (file, path) = target.create(0)?;
    let cannot_write = |error| Error::io(&path, "write")(error);
    let mut out = target.packing.open(file).map_err(cannot_write)?;
    out.write_all(&frame.before).map_err(cannot_write)?;
    for (number, &page) in chosen.iter().enumerate() {
        let (start, end) = stretch(findings, page)?;
        if number > 0 {
            out.write_all(&frame.between).map_err(cannot_write)?;
        }
        unpacked.skip_to(start)?;
        unpacked.copy_to(end, &mut out, &path)?;
    }
    out.write_all(frame.after).map_err(cannot_write)?;
    out.close().map_err(cannot_write)?;
    Ok((1..=chosen.len() as u64).map(|record| Place { part: 0, record }).collect())
}

/// The bytes of a page's record in the decompressed source.
pub(super) fn stretch(findings: &Findings<'_>, page: PageId) -> Result<Stretch> {
    let place = findings.pages.place(page);
    let start = place.offset.ok_or_else(|| Error::internal("a record that is copied by its bytes has no offset"))?;
    Ok((start, start + place.length))
}

/// Copies stretches of the decompressed bytes, ascending through all parts, each part behind the first `header_bytes`.
fn copy(
    findings: &Findings<'_>,
    source: &Source,
    target: &Target<'_>,
    header_bytes: u64,
    parts: &[Vec<Stretch>],
) -> Result<()> {
    if source.compression == Compression::None
        && target.packing.compression == Compression::None
        && let Some(from) = plain_file(source)?
    {
        let mut copy = PlainCopy::new(source, from, target);
        for (part, stretches) in parts.iter().enumerate() {
            let (mut file, path) = target.create(part)?;
            copy.copy(&[(0, header_bytes)], &mut file, &path)?;
            copy.copy(stretches, &mut file, &path)?;
        }
        return Ok(());
    }
    let mut reader = Unpacked::open(findings, source)?;
    let (mut header, mut next_check) = (Vec::new(), 0);
    reader.copy_to(header_bytes, &mut header, &target.path(0))?;
    for (part, stretches) in parts.iter().enumerate() {
        let (file, path) = target.create(part)?;
        let cannot_write = |error| Error::io(&path, "write")(error);
        let mut out = target.packing.open(file).map_err(cannot_write)?;
        out.write_all(&header).map_err(cannot_write)?;
        for &(start, end) in stretches {
            if reader.at >= next_check {
                target.check()?;
                next_check = reader.at + BYTES_BETWEEN_CHECKS;
            }
            reader.skip_to(start)?;
            if end == TO_THE_END {
                reader.copy_rest(&mut out, &path)?;
            } else {
                reader.copy_to(end, &mut out, &path)?;
            }
        }
        out.close().map_err(cannot_write)?;
    }
    Ok(())
}

/// The decompressed bytes of a source, read from its start to its end.
pub(super) struct Unpacked<'a> {
    source: &'a Source,
    reader: Box<dyn Read + Send + 'a>,
    pub(super) at: u64,
}

impl<'a> Unpacked<'a> {
    pub(super) fn open(findings: &Findings<'_>, source: &'a Source) -> Result<Unpacked<'a>> {
        let reader = findings.reading.open_to_copy(source).map_err(Error::io(&source.path(), "read"))?;
        Ok(Unpacked { source, reader, at: 0 })
    }

    pub(super) fn skip_to(&mut self, offset: u64) -> Result<()> {
        self.copy_to(offset, &mut io::sink(), &self.source.path())
    }

    /// Copies the bytes up to `offset`; `path` is what they are written to.
    pub(super) fn copy_to(&mut self, offset: u64, out: &mut dyn Write, path: &Path) -> Result<()> {
        let wanted = offset.saturating_sub(self.at);
        let copied = io::copy(&mut self.reader.by_ref().take(wanted), out).map_err(Error::io(path, "write"))?;
        self.at += copied;
        if copied == wanted { Ok(()) } else { Err(truncated(self.source)) }
    }

    /// Copies all that is left; what cannot be read was reported when the source was.
    pub(super) fn copy_rest(&mut self, out: &mut dyn Write, path: &Path) -> Result<()> {
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Ok(count @ 1..) = self.reader.read(&mut buffer) {
            out.write_all(&buffer[..count]).map_err(Error::io(path, "write"))?;
        }
        Ok(())
    }
}
