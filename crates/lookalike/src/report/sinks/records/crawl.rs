//! Web archives. Kept: all records except dropped pages and the requests for them. Removed: the others.
//!
//! The bytes of records are copied unchanged; where every record is a compressed member of its own, its
//! compressed bytes are. With `revisit`, dropped pages become revisit records in `kept/` that name the page they
//! duplicate, and their requests stay there. In another compression, every record is a member of its own.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::page::{PageId, SourceId};
use crate::read::compression::Compression;
use crate::read::crawl::{ArchiveKind, Cutter, Piece};
use crate::read::{Format, NEAR_PROFILE, Source, Unpacker, head_length, record_names, warc_head};
use crate::report::Findings;
use crate::report::sinks::records::target::{Packing, Target};
use crate::report::sinks::records::{Place, Selection, truncated};

const SAME_PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// Records that hold something that was captured.
const CAPTURES: [&[u8]; 4] = [b"response", b"resource", b"revisit", b"conversion"];

/// What a file is made of, in order.
enum Item {
    /// Bytes of the source: of the file itself where records have places in it, else decompressed.
    Range(u64, u64),
    /// A new record.
    Record(Vec<u8>),
}

impl Item {
    fn bytes(&self) -> u64 {
        match self {
            Item::Range(from, to) => to - from,
            Item::Record(record) => record.len() as u64,
        }
    }
}

/// Where the removed pages of an archive were written.
pub(super) struct Placed(HashMap<PageId, Place>);

impl Placed {
    /// The places of these pages. Revisits have none: they are no pages of their own, and stay where they are.
    pub(super) fn of(&self, pages: &[PageId]) -> Vec<Option<Place>> {
        pages.iter().map(|page| self.0.get(page).copied()).collect()
    }
}

/// Writes the selected part of a crawl file.
pub(super) fn write(
    findings: &Findings<'_>,
    index: SourceId,
    target: &Target<'_>,
    selection: Selection,
    revisit: bool,
) -> Result<Placed> {
    let source = findings.reading.source(index);
    let dropped: HashMap<u64, PageId> = findings
        .pages
        .pages_of(index)
        .filter(|&page| !findings.pages.is_revisit(page) && !findings.fates.keeps(page))
        .map(|page| (findings.pages.place(page).record, page))
        .collect();
    let packing = target.packing;
    let chosen = findings.reading.chosen.as_ref().map(|_| {
        let pages = findings.pages.pages_of(index);
        pages.map(|page| findings.pages.place(page).record).collect::<HashSet<u64>>()
    });
    if dropped.is_empty() {
        if selection == Selection::Removed {
            return Ok(Placed(HashMap::new()));
        }
        if packing.is_same && target.limit.is_none() && chosen.is_none() {
            super::copy_whole(source, target)?;
            return Ok(Placed(HashMap::new()));
        }
    }
    let plan = CrawlPlan { findings, dropped: &dropped, chosen: chosen.as_ref(), selection, revisit };
    let in_file = if packing.is_same { plan.items(source)? } else { None };
    let chosen = match in_file {
        Some(items) => (items, source.is_seekable()),
        None => {
            let items = plan.items(&Source { by_member: false, ..source.clone() })?;
            (items.ok_or_else(|| Error::internal("a record of a decompressed web archive has no offset"))?, false)
        }
    };
    let ((header, items), is_raw) = chosen;
    let (parts, placed) = divide(items, header, target.limit, packing.is_same);
    match (is_raw, packing.is_same) {
        (true, _) => copy_raw(source, target, &parts)?,
        (false, true) => copy_stream(source, target, &parts)?,
        (false, false) => copy_packed(source, target, &parts)?,
    }
    Ok(placed)
}

/// A record that is written, and the page that it is, if one was asked for.
type Written = (Item, Option<PageId>);

/// What every part of a file begins with, and the records that are written.
type Chosen = (Option<(u64, u64)>, Vec<Written>);

/// The records in parts, each behind the header, and where pages are in them. Records that follow each other become one
/// range, unless each is to be compressed by itself.
fn divide(
    items: Vec<Written>,
    header: Option<(u64, u64)>,
    limit: Option<u64>,
    merges: bool,
) -> (Vec<Vec<Item>>, Placed) {
    let header = || header.map(|(from, to)| Item::Range(from, to)).into_iter().collect::<Vec<Item>>();
    let header_bytes = header().first().map_or(0, Item::bytes);
    let mut parts = vec![header()];
    let mut placed = HashMap::new();
    let (mut bytes, mut record) = (header_bytes, 0);
    for (item, page) in items {
        if limit.is_some_and(|limit| record > 0 && bytes + item.bytes() > limit) {
            parts.push(header());
            (bytes, record) = (header_bytes, 0);
        }
        (bytes, record) = (bytes + item.bytes(), record + 1);
        let part = parts.len() - 1;
        placed.extend(page.map(|page| (page, Place { part, record })));
        match (parts[part].last_mut(), item) {
            (Some(Item::Range(_, end)), Item::Range(from, to)) if *end == from && merges => *end = to,
            (_, item) => parts[part].push(item),
        }
    }
    (parts, Placed(placed))
}

struct CrawlPlan<'a> {
    findings: &'a Findings<'a>,
    dropped: &'a HashMap<u64, PageId>,
    /// The pages, if others were not chosen to be any.
    chosen: Option<&'a HashSet<u64>>,
    selection: Selection,
    revisit: bool,
}

/// A record on its way to being an item.
struct Entry {
    from: u64,
    to: u64,
    id: Vec<u8>,
    concurrent_to: Vec<u8>,
    is_request: bool,
    dropped: Option<PageId>,
    /// Whether it was not chosen to be a page.
    is_left_out: bool,
    instead: Option<Vec<u8>>,
}

impl CrawlPlan<'_> {
    /// What is written of `source`, and what every part of it begins with; `None` if a record has no offset in it.
    fn items(&self, source: &Source) -> Result<Option<Chosen>> {
        let reading = self.findings.reading;
        let file = source.location.open().map_err(Error::io(&source.path(), "read"))?;
        let mut cutter =
            Cutter::new(file, source, reading.max_page_bytes).map_err(Error::io(&source.path(), "read"))?;
        let mut entries = Vec::new();
        let mut names = HashMap::new();
        while let Some(piece) = cutter.next(Vec::new) {
            let Piece::Records(bytes, cuts) = piece else { continue };
            for cut in cuts {
                let Some(offset) = cut.offset else { return Ok(None) };
                let record = &bytes[cut.from..cut.to];
                let head = if source.format == Format::WARC { warc_head(record) } else { None };
                let named = |name: Option<&[u8]>| name.unwrap_or_default().to_vec();
                let dropped = self.dropped.get(&cut.record).copied();
                let instead = match dropped {
                    Some(page) if self.revisit && self.selection == Selection::Kept => {
                        self.revisit_record(page, record, &mut names)?
                    }
                    _ => None,
                };
                let is_left_out = self.chosen.is_some_and(|chosen| !chosen.contains(&cut.record))
                    && head.as_ref().is_none_or(|head| CAPTURES.contains(&head.kind))
                    && !record.starts_with(b"filedesc:");
                entries.push(Entry {
                    from: offset,
                    to: offset + cut.length,
                    id: named(head.as_ref().and_then(|head| head.id)),
                    concurrent_to: named(head.as_ref().and_then(|head| head.concurrent_to)),
                    is_request: head.is_some_and(|head| head.kind == b"request"),
                    dropped,
                    is_left_out,
                    instead,
                });
            }
        }
        // The dictionary that all members of a zstd file need.
        let has_dictionary = source.compression == Compression::Zstd && source.by_member;
        let first = entries.first().map(|entry| entry.from).filter(|&first| has_dictionary && first > 0);
        Ok(Some((first.map(|first| (0, first)), self.choose(entries))))
    }

    fn choose(&self, entries: Vec<Entry>) -> Vec<Written> {
        let names_of = |is_gone: &dyn Fn(&Entry) -> bool| -> HashSet<Vec<u8>> {
            let gone = entries.iter().filter(|entry| is_gone(entry));
            let names = gone.flat_map(|entry| [entry.id.clone(), entry.concurrent_to.clone()]);
            names.filter(|name| !name.is_empty()).collect()
        };
        let dropped = names_of(&|entry| entry.dropped.is_some() && !self.revisit);
        let left_out = names_of(&|entry| entry.is_left_out);
        let mut items = Vec::new();
        for entry in entries {
            if let Some(record) = entry.instead {
                items.push((Item::Record(record), None));
                continue;
            }
            let is_request_for = |names: &HashSet<Vec<u8>>| {
                entry.is_request && (names.contains(&entry.id) || names.contains(&entry.concurrent_to))
            };
            let is_removed = entry.dropped.is_some() || is_request_for(&dropped);
            if !is_removed && (entry.is_left_out || is_request_for(&left_out)) {
                continue;
            }
            if is_removed == (self.selection == Selection::Removed) {
                items.push((Item::Range(entry.from, entry.to), entry.dropped));
            }
        }
        items
    }

    /// The revisit that stands for a dropped page; `None` for a record that is not a WARC record.
    fn revisit_record(
        &self,
        page: PageId,
        record: &[u8],
        names: &mut HashMap<PageId, Vec<(&'static str, Vec<u8>)>>,
    ) -> Result<Option<Vec<u8>>> {
        let Some(head) = warc_head(record) else { return Ok(None) };
        let fate = self.findings.fates.of(page);
        let kept_names = match names.get(&fate.kept) {
            Some(known) => known,
            None => {
                let found = self.kept_names(fate.kept)?;
                names.entry(fate.kept).or_insert(found)
            }
        };
        let kept_digest = kept_names.iter().find(|row| row.0 == DIGEST).map(|row| row.1.as_slice());
        let is_same = head.payload_digest.is_some() && head.payload_digest == kept_digest;
        // The response's head is what the server sent; its body is that of the kept page.
        let block = record.get(head.length..).unwrap_or_default();
        let block = if block.starts_with(b"HTTP/") { &block[..head_length(block).unwrap_or(0)] } else { &[] };
        let mut out = Vec::new();
        let mut line = |name: &str, value: &[u8]| {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        };
        line("WARC-Type", b"revisit");
        for (name, value) in head.fields() {
            let replaced = ["warc-type", "content-length", "warc-block-digest", "warc-truncated", "warc-profile"];
            if !replaced.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())) {
                line(&String::from_utf8_lossy(name), value);
            }
        }
        line("WARC-Profile", if is_same { SAME_PROFILE } else { NEAR_PROFILE }.as_bytes());
        for (name, value) in kept_names.iter().filter(|row| row.0 != DIGEST) {
            line(name, value);
        }
        line("WARC-Truncated", b"length");
        if !is_same {
            line("Lookalike-Similarity", fate.similarity.to_string().as_bytes());
        }
        line("Content-Length", block.len().to_string().as_bytes());
        let version = record.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii_end();
        Ok(Some([version, b"\r\n", &out, b"\r\n", block, b"\r\n\r\n"].concat()))
    }

    /// What a revisit says of the page that it refers to.
    fn kept_names(&self, page: PageId) -> Result<Vec<(&'static str, Vec<u8>)>> {
        let place = self.findings.pages.place(page);
        let source = self.findings.reading.source(place.source);
        if let Some(names) = record_names(source, &place).filter(|_| source.format == Format::WARC) {
            let known = [
                ("WARC-Refers-To", names.id.map(|id| [b"<", id.as_slice(), b">"].concat())),
                ("WARC-Refers-To-Target-URI", names.url),
                ("WARC-Refers-To-Date", names.date),
                (DIGEST, names.payload_digest),
            ];
            return Ok(known.into_iter().filter_map(|(name, value)| Some((name, value?))).collect());
        }
        // A page of another format, or of a file that cannot be read from the middle.
        let mut scratch = crate::spill::Scratch::default();
        let strings = self.findings.pages.strings(page, &mut scratch)?;
        let mut names = Vec::new();
        if strings.id.starts_with("urn:") {
            names.push(("WARC-Refers-To", format!("<{}>", strings.id).into_bytes()));
        }
        names.extend(strings.url.map(|url| ("WARC-Refers-To-Target-URI", url.as_bytes().to_vec())));
        Ok(names)
    }
}

/// Not written, only compared.
const DIGEST: &str = "WARC-Payload-Digest";

/// Copies bytes of the file itself; new records are compressed each by itself.
fn copy_raw(source: &Source, target: &Target<'_>, parts: &[Vec<Item>]) -> Result<()> {
    let mut file = source.location.open().map_err(Error::io(&source.path(), "read"))?;
    for (part, items) in parts.iter().enumerate() {
        let (mut out, path) = target.create(part)?;
        for item in items {
            match item {
                Item::Range(from, to) => {
                    file.seek_to(*from).map_err(Error::io(&source.path(), "read"))?;
                    let copied =
                        io::copy(&mut file.by_ref().take(to - from), &mut out).map_err(Error::io(&path, "write"))?;
                    if copied != to - from {
                        return Err(truncated(source));
                    }
                }
                Item::Record(record) => {
                    let packed = source.compression.pack(record).map_err(Error::io(&path, "write"))?;
                    out.write_all(&packed).map_err(Error::io(&path, "write"))?;
                }
            }
        }
    }
    Ok(())
}

/// The decompressed bytes of an archive, without what is damaged.
struct ArchiveBytes<'a> {
    source: &'a Source,
    reader: Box<dyn Read + 'a>,
    at: u64,
}

impl<'a> ArchiveBytes<'a> {
    fn open(source: &'a Source) -> Result<ArchiveBytes<'a>> {
        let file = source.location.open().map_err(Error::io(&source.path(), "read"))?;
        let unpacker = Unpacker::new(file, source.compression, ArchiveKind::of(source).start_test());
        let reader = unpacker.map_err(Error::io(&source.path(), "read"))?.into_reader();
        Ok(ArchiveBytes { source, reader: Box::new(reader), at: 0 })
    }

    /// Writes an item; ranges come in their order.
    fn copy(&mut self, item: &Item, out: &mut dyn Write, path: &Path) -> Result<()> {
        let cannot_write = |error| Error::io(path, "write")(error);
        match item {
            Item::Range(from, to) => {
                io::copy(&mut self.reader.by_ref().take(from - self.at), &mut io::sink()).map_err(cannot_write)?;
                let copied = io::copy(&mut self.reader.by_ref().take(to - from), out).map_err(cannot_write)?;
                self.at = *to;
                if copied == to - from { Ok(()) } else { Err(truncated(self.source)) }
            }
            Item::Record(record) => out.write_all(record).map_err(cannot_write),
        }
    }
}

/// Copies decompressed bytes into files that are compressed as a whole.
fn copy_stream(source: &Source, target: &Target<'_>, parts: &[Vec<Item>]) -> Result<()> {
    let mut archive = ArchiveBytes::open(source)?;
    for (part, items) in parts.iter().enumerate() {
        let (file, path) = target.create(part)?;
        let mut out = target.packing.open_stream(file).map_err(Error::io(&path, "write"))?;
        items.iter().try_for_each(|item| archive.copy(item, &mut out, &path))?;
        out.finish().and_then(|mut file| file.flush()).map_err(Error::io(&path, "write"))?;
    }
    Ok(())
}

/// Copies records, each of which becomes a compressed member of its own, as archives are read.
fn copy_packed(source: &Source, target: &Target<'_>, parts: &[Vec<Item>]) -> Result<()> {
    let mut archive = ArchiveBytes::open(source)?;
    let Packing { compression, level, .. } = target.packing;
    for (part, items) in parts.iter().enumerate() {
        let (file, path) = target.create(part)?;
        let mut file = BufWriter::new(file);
        for item in items {
            let mut member = compression.encoder(&mut file, level).map_err(Error::io(&path, "write"))?;
            archive.copy(item, &mut member, &path)?;
            member.finish().map_err(Error::io(&path, "write"))?;
        }
        file.flush().map_err(Error::io(&path, "write"))?;
    }
    Ok(())
}
