//! `kept/` for web archives: all records except dropped pages and the requests for them.
//!
//! The bytes of kept records are copied unchanged; where every record is a compressed member of its own, its
//! compressed bytes are. With `revisit`, dropped pages become revisit records that name the page they
//! duplicate, and their requests stay.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::page::{PageId, SourceId};
use crate::read::compression::Compression;
use crate::read::crawl::{ArchiveKind, Cutter, Piece};
use crate::read::{Format, NEAR_PROFILE, Source, Unpacker, head_length, record_names, warc_head};
use crate::report::Findings;

const SAME_PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// Records that hold something that was captured.
const CAPTURES: [&[u8]; 4] = [b"response", b"resource", b"revisit", b"conversion"];

/// What the kept file is made of, in order.
enum Item {
    /// Bytes of the source: of the file itself where records have places in it, else decompressed.
    Range(u64, u64),
    /// A new record.
    Record(Vec<u8>),
}

/// Writes the kept part of a crawl file.
pub(super) fn write(findings: &Findings<'_>, index: SourceId, target: &Path, revisit: bool) -> Result<()> {
    let source = findings.reading.source(index);
    let dropped: HashMap<u64, PageId> = findings
        .pages
        .pages_of(index)
        .filter(|&page| !findings.pages.is_revisit(page) && !findings.fates[page].keeps(page))
        .map(|page| (findings.pages.place(page).record, page))
        .collect();
    let reading = findings.reading;
    let chosen = reading.chosen.as_ref().map(|_| {
        let pages = findings.pages.pages_of(index);
        pages.map(|page| findings.pages.place(page).record).collect::<HashSet<u64>>()
    });
    if dropped.is_empty() && chosen.is_none() {
        return super::kept::copy_whole(source, target);
    }
    let plan = KeptPlan { findings, dropped: &dropped, chosen: chosen.as_ref(), revisit };
    let (items, is_raw) = match plan.items(source)? {
        Some(items) => (items, source.is_seekable()),
        None => {
            let items = plan.items(&Source { by_member: false, ..source.clone() })?;
            (items.ok_or_else(|| Error::internal("a record of a decompressed web archive has no offset"))?, false)
        }
    };
    if is_raw { copy_raw(source, target, &items) } else { copy_stream(source, target, &items) }
}

struct KeptPlan<'a> {
    findings: &'a Findings<'a>,
    dropped: &'a HashMap<u64, PageId>,
    /// The pages, if others were not chosen to be any.
    chosen: Option<&'a HashSet<u64>>,
    revisit: bool,
}

/// A record on its way to being an item.
struct Entry {
    from: u64,
    to: u64,
    id: Vec<u8>,
    concurrent_to: Vec<u8>,
    is_request: bool,
    is_dropped: bool,
    instead: Option<Vec<u8>>,
}

impl KeptPlan<'_> {
    /// What is kept of `source`; `None` if a record has no offset in it.
    fn items(&self, source: &Source) -> Result<Option<Vec<Item>>> {
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
                    Some(page) if self.revisit => self.revisit_record(page, record, &mut names)?,
                    _ => None,
                };
                let is_left_out = || {
                    self.chosen.is_some_and(|chosen| !chosen.contains(&cut.record))
                        && head.as_ref().is_none_or(|head| CAPTURES.contains(&head.kind))
                        && !record.starts_with(b"filedesc:")
                };
                entries.push(Entry {
                    from: offset,
                    to: offset + cut.length,
                    id: named(head.as_ref().and_then(|head| head.id)),
                    concurrent_to: named(head.as_ref().and_then(|head| head.concurrent_to)),
                    is_request: head.as_ref().is_some_and(|head| head.kind == b"request"),
                    is_dropped: dropped.is_some() || is_left_out(),
                    instead,
                });
            }
        }
        Ok(Some(self.choose(source, entries)))
    }

    fn choose(&self, source: &Source, entries: Vec<Entry>) -> Vec<Item> {
        let gone: HashSet<Vec<u8>> = if self.revisit {
            HashSet::new()
        } else {
            let dropped = entries.iter().filter(|entry| entry.is_dropped);
            let names = dropped.flat_map(|entry| [entry.id.clone(), entry.concurrent_to.clone()]);
            names.filter(|name| !name.is_empty()).collect()
        };
        let mut items: Vec<Item> = Vec::new();
        if let Some(first) = entries.first()
            && source.compression == Compression::Zstd
            && source.by_member
            && first.from > 0
        {
            items.push(Item::Range(0, first.from)); // the dictionary
        }
        for entry in entries {
            if let Some(record) = entry.instead {
                items.push(Item::Record(record));
                continue;
            }
            let is_for_dropped = entry.is_request && (gone.contains(&entry.id) || gone.contains(&entry.concurrent_to));
            if entry.is_dropped || is_for_dropped {
                continue;
            }
            match items.last_mut() {
                Some(Item::Range(_, end)) if *end == entry.from => *end = entry.to,
                _ => items.push(Item::Range(entry.from, entry.to)),
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
        let fate = self.findings.fates[page];
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
fn copy_raw(source: &Source, target: &Path, items: &[Item]) -> Result<()> {
    let mut out = File::create(target).map_err(Error::io(target, "create"))?;
    let mut file = source.location.open().map_err(Error::io(&source.path(), "read"))?;
    for item in items {
        match item {
            Item::Range(from, to) => {
                file.seek_to(*from).map_err(Error::io(&source.path(), "read"))?;
                let copied =
                    io::copy(&mut file.by_ref().take(to - from), &mut out).map_err(Error::io(target, "write"))?;
                if copied != to - from {
                    return Err(super::kept::truncated(source));
                }
            }
            Item::Record(record) => {
                let packed = source.compression.pack(record).map_err(Error::io(target, "write"))?;
                out.write_all(&packed).map_err(Error::io(target, "write"))?;
            }
        }
    }
    Ok(())
}

/// Copies decompressed bytes into a file that is compressed as a whole.
fn copy_stream(source: &Source, target: &Path, items: &[Item]) -> Result<()> {
    let file = source.location.open().map_err(Error::io(&source.path(), "read"))?;
    let unpacker = Unpacker::new(file, source.compression, ArchiveKind::of(source).start_test());
    let mut reader = unpacker.map_err(Error::io(&source.path(), "read"))?.into_reader();
    let out = File::create(target).map_err(Error::io(target, "create"))?;
    let mut is_short = false;
    let fill = |writer: &mut dyn Write| {
        let mut at = 0;
        for item in items {
            match item {
                Item::Range(from, to) => {
                    io::copy(&mut reader.by_ref().take(from - at), &mut io::sink())?;
                    is_short |= io::copy(&mut reader.by_ref().take(to - from), writer)? != to - from;
                    at = *to;
                }
                Item::Record(record) => writer.write_all(record)?,
            }
        }
        Ok(())
    };
    source.compression.write(out, fill).map_err(Error::io(target, "write"))?;
    if is_short { Err(super::kept::truncated(source)) } else { Ok(()) }
}
