//! Comma- or tab-separated values with a header.
//!
//! In: the bytes of a table. Out: where each record ends, found without parsing it, so that the
//! records of one file can be parsed by many threads and copied byte for byte; and the fields of a
//! record that have a role.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
use memchr::memchr;

use crate::error::{Result, SkipKind, SkippedRecord};
use crate::read::WantedRecord;
use crate::read::fields::{Columns, FieldNames, Role};
use crate::read::format::fielded::{FieldedRecord, emit, join};
use crate::read::format::reader::{
    Annotations, Description, Input, Keeping, Likeness, Problem, Reader as FormatReader, text_start,
};
use crate::read::split::batch::{BatchSender, Content, Only, Place, Visit, visit_places};
use crate::read::split::buffer::Buffer;
use crate::read::split::stream::{Pieces, Stream};

/// Comma-separated values; semicolons are recognised.
pub(super) struct Csv;
/// Tab-separated values.
pub(super) struct Tsv;

impl FormatReader for Csv {
    fn description(&self) -> Description {
        Description { name: "csv", endings: &["csv"], what: "comma-separated values with a header line" }
    }

    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String> {
        Ok(matches!(likely_delimiter(head), Some(b',' | b';')).then_some(Likeness::Shape))
    }

    fn split(&self, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        split(input, None, batches)
    }

    fn seek(&self, input: &Input<'_>, records: &[WantedRecord], batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        seek(input, None, records, batches)
    }

    fn keeping(&self, input: &Input<'_>) -> Keeping {
        keeping(input, None)
    }

    fn annotations(&self) -> Option<Annotations> {
        Some(Annotations::Table(|input| table_head(input, None)))
    }
}

impl FormatReader for Tsv {
    fn description(&self) -> Description {
        Description { name: "tsv", endings: &["tsv", "tab"], what: "tab-separated values with a header line" }
    }

    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String> {
        Ok((likely_delimiter(head) == Some(b'\t')).then_some(Likeness::Shape))
    }

    fn split(&self, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        split(input, Some(b'\t'), batches)
    }

    fn seek(&self, input: &Input<'_>, records: &[WantedRecord], batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        seek(input, Some(b'\t'), records, batches)
    }

    fn keeping(&self, input: &Input<'_>) -> Keeping {
        keeping(input, Some(b'\t'))
    }

    fn annotations(&self) -> Option<Annotations> {
        Some(Annotations::Table(|input| table_head(input, Some(b'\t'))))
    }
}

/// The delimiter of what looks like a table: the first line names fields of ours, and the second has as many.
fn likely_delimiter(head: &[u8]) -> Option<u8> {
    let mut lines = text_start(head).split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
    let (header, first) = (lines.next()?, lines.next().filter(|line| !line.is_empty())?);
    let is_delimiter = |delimiter: &u8| {
        let names: Vec<&[u8]> = header.split(|byte| byte == delimiter).map(<[u8]>::trim_ascii).collect();
        let known = |name: &&[u8]| {
            let name = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name);
            [&b"id"[..], b"text", b"content", b"html", b"body", b"url"].contains(&name)
        };
        let fields = first.iter().filter(|&byte| byte == delimiter).count() + 1;
        names.len() >= 2 && fields >= names.len() && names.iter().filter(|name| known(name)).count() >= 2
    };
    [b'\t', b',', b';'].into_iter().find(is_delimiter)
}

/// Chosen records, read from their places.
fn seek(
    input: &Input<'_>,
    delimiter: Option<u8>,
    records: &[WantedRecord],
    batches: &mut BatchSender<'_, '_>,
) -> ControlFlow<()> {
    let header = match open_table(input, delimiter) {
        Ok(Some((_, header))) => Arc::new(header),
        Ok(None) => {
            let problem = (SkipKind::BadCsv, "the table is empty".to_owned());
            return batches.send(input.skipped(None, Some(0), problem, &[]));
        }
        Err(skipped) => return batches.send(skipped),
    };
    batches.send_places(records, |records| TableAtPlaces { records, header: Arc::clone(&header) })
}

fn keeping(input: &Input<'_>, delimiter: Option<u8>) -> Keeping {
    match open_table(input, delimiter) {
        Ok(Some((pieces, _))) => Keeping::Records { header_bytes: pieces.offset },
        Ok(None) | Err(_) => Keeping::Nothing,
    }
}

/// The header of a table, with what parses its records, for whoever writes them again.
pub(crate) struct TableHead {
    /// Bytes at the start of the source that the header takes, with what is in front of it.
    pub(crate) header_bytes: u64,
    pub(crate) delimiter: u8,
    pub(crate) names: Vec<String>,
    parser: RecordParser,
}

fn table_head(input: &Input<'_>, delimiter: Option<u8>) -> Option<TableHead> {
    let (pieces, Header { delimiter, names, .. }) = open_table(input, delimiter).ok()??;
    Some(TableHead { header_bytes: pieces.offset, delimiter, names, parser: RecordParser::new(delimiter) })
}

impl TableHead {
    /// The cells of a record.
    pub(crate) fn cells<'h>(&'h mut self, record: &[u8]) -> impl ExactSizeIterator<Item = &'h [u8]> + use<'h> {
        self.parser.parse(record);
        let parser = &self.parser;
        (0..parser.fields()).map(|at| parser.field(at))
    }

    /// Where the cells of a record stand in its bytes, with their quotes.
    pub(crate) fn stretches(&self, record: &[u8]) -> Vec<Range<usize>> {
        let line = record.strip_suffix(b"\n").unwrap_or(record);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (mut stretches, mut start, mut splitter) = (Vec::new(), 0, Splitter::FieldStart);
        for (at, &byte) in line.iter().enumerate() {
            let is_quoted = splitter == Splitter::Quoted;
            splitter.ends_at(byte, self.delimiter);
            if byte == self.delimiter && !is_quoted {
                stretches.push(start..at);
                start = at + 1;
            }
        }
        stretches.push(start..line.len());
        stretches
    }
}

struct Table {
    bytes: Buffer,
    ends: Vec<usize>,
    first_record: u64,
    offset: u64,
    header: Arc<Header>,
}

impl Content for Table {
    fn visit(&self, input: &Input<'_>, only: &Only, visit: Visit<'_>) -> Result<()> {
        let mut parser = RecordParser::new(self.header.delimiter);
        let mut at = 0;
        for (&end, record) in self.ends.iter().zip(self.first_record..) {
            if only.contains(record) {
                let place = Place { record, offset: Some(self.offset + at as u64), bytes: &self.bytes[at..end] };
                visit_record(input, &place, &self.header, &mut parser, visit)?;
            }
            at = end;
        }
        Ok(())
    }
}

struct TableAtPlaces {
    records: Vec<WantedRecord>,
    header: Arc<Header>,
}

impl Content for TableAtPlaces {
    fn visit(&self, input: &Input<'_>, _: &Only, visit: Visit<'_>) -> Result<()> {
        let mut parser = RecordParser::new(self.header.delimiter);
        visit_places(input, &self.records, visit, |place, visit| {
            visit_record(input, place, &self.header, &mut parser, visit)
        })
    }
}

fn visit_record(
    input: &Input<'_>,
    place: &Place<'_>,
    header: &Header,
    parser: &mut RecordParser,
    visit: Visit<'_>,
) -> Result<()> {
    if matches!(place.bytes, b"" | b"\n" | b"\r\n") {
        return Ok(());
    }
    emit(input, place, place.bytes.len() as u64, || parser.fields_of(place.bytes, header, input.names()), visit)
}

/// Batches of whole records of a table.
fn split(input: &Input<'_>, delimiter: Option<u8>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
    let (mut pieces, header) = match open_table(input, delimiter) {
        Ok(Some(opened)) => opened,
        Ok(None) => return ControlFlow::Continue(()),
        Err(skipped) => return batches.send(skipped),
    };
    let header = Arc::new(header);
    let mut record = 1;
    let mut splitter = Splitter::FieldStart;
    let mut scanned = 0;
    let mut ends = Vec::new();
    let mut unclosed = 0;
    loop {
        let unread = pieces.buffer[scanned..].iter().zip(scanned + 1..);
        ends.extend(unread.filter_map(|(&byte, end)| splitter.ends_at(byte, header.delimiter).then_some(end)));
        scanned = pieces.buffer.len();
        let ended = matches!(pieces.state, Stream::Ended);
        if ended && splitter != Splitter::Quoted && ends.last() != Some(&scanned) && scanned > 0 {
            ends.push(scanned); // the last record may lack its line end
        }
        if let Some(&whole) = ends.last() {
            let count = ends.len() as u64;
            let offset = pieces.offset;
            let bytes = pieces.take(whole);
            scanned -= whole;
            let ends = std::mem::take(&mut ends);
            batches.send(Table { bytes, ends, first_record: record, offset, header: Arc::clone(&header) })?;
            record += count;
        }
        let too_large = pieces.buffer.len() > input.most_bytes();
        if !pieces.buffer.is_empty() && (too_large || ended) {
            // What is left is one record whose end is not in sight.
            let skipped = if ended {
                unclosed += 1;
                skip_quote(input, record, unclosed, &mut pieces)
            } else {
                let next_record = |bytes: &[u8]| {
                    bytes.iter().position(|&byte| splitter.ends_at(byte, header.delimiter)).map(|at| at + 1)
                };
                input.skip_record(record, &mut pieces, scanned, next_record)
            };
            batches.send(skipped)?;
            record += 1;
            scanned = 0;
            splitter = Splitter::FieldStart;
            continue;
        }
        match &pieces.state {
            Stream::Open => pieces.fill(),
            Stream::Ended => return ControlFlow::Continue(()),
            Stream::Broken(error) => return batches.send(input.damaged(record, &pieces, error)),
        }
    }
}

/// Unclosed quotes in one table after which the rest of it is given up: each costs a second look at
/// what follows.
const MOST_UNCLOSED: usize = 100;

/// Drops the first line of a record whose quote is never closed; what follows is read again.
fn skip_quote(input: &Input<'_>, record: u64, unclosed: usize, pieces: &mut Pieces<'_>) -> SkippedRecord {
    let start = pieces.offset;
    let line = memchr(b'\n', &pieces.buffer).map_or(pieces.buffer.len(), |at| at + 1);
    let mut reason = "a quote is opened in this record and never closed".to_owned();
    if unclosed > MOST_UNCLOSED {
        reason.push_str("; there are too many of these, the rest of the file was not read");
        pieces.state = Stream::Ended;
    }
    let dropped = pieces.take(if unclosed > MOST_UNCLOSED { pieces.buffer.len() } else { line });
    input.skipped(Some(record), Some(start), (SkipKind::BadCsv, reason), &dropped)
}

/// Opens a table behind its header; none if there is nothing in it.
fn open_table<'c>(input: &Input<'c>, delimiter: Option<u8>) -> Result<Option<(Pieces<'c>, Header)>, SkippedRecord> {
    let mut pieces = input.pieces()?;
    loop {
        let end = end_of_header(input, &mut pieces, delimiter.unwrap_or(b','));
        if let (true, Stream::Broken(error)) = (pieces.buffer.is_empty(), &pieces.state) {
            let problem = (SkipKind::Damaged, format!("the compressed data is damaged ({error})"));
            return Err(input.skipped(None, Some(0), problem, &[]));
        }
        if pieces.buffer.is_empty() {
            return Ok(None);
        }
        let first = pieces.take(end);
        if first.trim_ascii().is_empty() {
            continue; // blank lines in front of the header
        }
        return match Header::parse(&first, delimiter, input.names()) {
            Ok(header) => Ok(Some((pieces, header))),
            Err(problem) => Err(input.skipped(None, Some(0), problem, &first)),
        };
    }
}

/// Where the first record in the buffer ends; reads on until it is known.
fn end_of_header(input: &Input<'_>, pieces: &mut Pieces<'_>, delimiter: u8) -> usize {
    let mut splitter = Splitter::FieldStart;
    let mut scanned = 0;
    loop {
        let unread = pieces.buffer[scanned..].iter().zip(scanned + 1..);
        if let Some(end) = { unread }.find_map(|(&byte, end)| splitter.ends_at(byte, delimiter).then_some(end)) {
            return end;
        }
        scanned = pieces.buffer.len();
        if !matches!(pieces.state, Stream::Open) || scanned > input.most_bytes() {
            return scanned;
        }
        pieces.fill();
    }
}

/// What the first line of a table says.
#[derive(Debug, Clone)]
struct Header {
    delimiter: u8,
    columns: Columns,
    names: Vec<String>,
}

impl Header {
    /// Parses the first record. `delimiter` is detected if it is not given.
    fn parse(record: &[u8], delimiter: Option<u8>, names: &FieldNames) -> Result<Header, Problem> {
        let record = record.strip_prefix(b"\xef\xbb\xbf").unwrap_or(record);
        if record.trim_ascii_end().contains(&b'\r') {
            let reason = "the lines of this table end with a bare carriage return; convert them (tr '\\r' '\\n')";
            return Err((SkipKind::BadCsv, reason.to_owned()));
        }
        let delimiter = delimiter.unwrap_or_else(|| {
            let mut quoted = false;
            let mut count = [0, 0];
            for &byte in record {
                quoted ^= byte == b'"';
                count[0] += usize::from(!quoted && byte == b',');
                count[1] += usize::from(!quoted && byte == b';');
            }
            if count[1] > count[0] { b';' } else { b',' }
        });
        let mut parser = RecordParser::new(delimiter);
        parser.parse(record);
        let header: Vec<String> =
            (0..parser.fields()).map(|at| String::from_utf8_lossy(parser.field(at)).trim().to_owned()).collect();
        let columns = names.columns(&header);
        if columns.of(Role::Text).is_none() {
            return Err(names.no_text("column", &header));
        }
        Ok(Header { delimiter, columns, names: header })
    }
}

/// Finds the ends of records in a stream: a line break outside quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Splitter {
    FieldStart,
    Unquoted,
    Quoted,
    QuoteInQuoted,
}

impl Splitter {
    /// Takes the next byte; true if a record ends with it.
    #[inline]
    fn ends_at(&mut self, byte: u8, delimiter: u8) -> bool {
        *self = match (*self, byte) {
            (Splitter::Quoted, b'"') => Splitter::QuoteInQuoted,
            (Splitter::Quoted, _) | (Splitter::QuoteInQuoted | Splitter::FieldStart, b'"') => Splitter::Quoted,
            (_, b'\n') => {
                *self = Splitter::FieldStart;
                return true;
            }
            (_, byte) if byte == delimiter => Splitter::FieldStart,
            _ => Splitter::Unquoted,
        };
        false
    }
}

/// Parses records one at a time into buffers of its own.
struct RecordParser {
    reader: Reader,
    output: Vec<u8>,
    ends: Vec<usize>,
    count: usize,
}

impl RecordParser {
    fn new(delimiter: u8) -> RecordParser {
        RecordParser {
            reader: ReaderBuilder::new().delimiter(delimiter).terminator(Terminator::Any(b'\n')).build(),
            output: vec![0; 4096],
            ends: vec![0; 64],
            count: 0,
        }
    }

    /// Parses one whole record. Its line end is not part of it; a carriage return inside it is.
    fn parse(&mut self, record: &[u8]) {
        let record = record.strip_suffix(b"\n").unwrap_or(record);
        let record = record.strip_suffix(b"\r").unwrap_or(record);
        self.reader.reset();
        let (mut read, mut written, mut ended) = (0, 0, 0);
        loop {
            let (result, consumed, wrote, ends) =
                self.reader.read_record(&record[read..], &mut self.output[written..], &mut self.ends[ended..]);
            read += consumed;
            written += wrote;
            ended += ends;
            match result {
                ReadRecordResult::OutputFull => self.output.resize(self.output.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                // An empty slice signals to the parser that the input is over.
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record | ReadRecordResult::End => break,
            }
        }
        self.count = ended;
    }

    fn fields(&self) -> usize {
        self.count
    }

    fn field(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.output[start..self.ends[at]]
    }

    /// The fields of `record` that have a role.
    fn fields_of<'a>(
        &'a mut self,
        record: &[u8],
        header: &Header,
        names: &FieldNames,
    ) -> Result<FieldedRecord<'a>, Problem> {
        self.parse(record);
        let value = |column: usize| -> Result<&str, Problem> {
            std::str::from_utf8(self.field(column)).map_err(|error| {
                (
                    SkipKind::InvalidUtf8,
                    format!("invalid UTF-8 at byte {} of the field '{}'", error.valid_up_to(), header.names[column]),
                )
            })
        };
        let is_there = |column: &usize| *column < self.fields();
        let field = |role: Role| header.columns.of(role).filter(is_there).map(value).transpose();
        let mut texts = Vec::new();
        for column in header.columns.all(Role::Text).filter(is_there) {
            texts.push((Cow::Borrowed(value(column)?), header.names[column] == "html"));
        }
        if texts.is_empty() {
            return Err((
                SkipKind::MissingField,
                format!("the record has {} of {} fields and no text", self.fields(), header.names.len()),
            ));
        }
        let (text, markup) = join(texts, names.read_as);
        let some = |value: Option<&'a str>| value.map(Cow::Borrowed);
        Ok(FieldedRecord {
            id: some(field(Role::Id)?),
            url: some(field(Role::Url)?),
            title: some(field(Role::Title)?),
            rank: names.ranked(some(field(Role::Rank)?)),
            text,
            markup,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::fields::{Fields, RankField};

    fn split(table: &[u8]) -> Vec<&[u8]> {
        let mut splitter = Splitter::FieldStart;
        let mut records = Vec::new();
        let mut from = 0;
        for (at, &byte) in table.iter().enumerate() {
            if splitter.ends_at(byte, b',') {
                records.push(&table[from..=at]);
                from = at + 1;
            }
        }
        records.push(&table[from..]);
        records
    }

    #[test]
    fn records_end_at_line_breaks_outside_quotes() {
        let table = b"id,text\r\n1,\"a\nb \"\"c\"\"\"\r\n2,5\" disk\n3,x";
        assert_eq!(split(table), [&b"id,text\r\n"[..], b"1,\"a\nb \"\"c\"\"\"\r\n", b"2,5\" disk\n", b"3,x"]);
    }

    #[test]
    fn fields_are_found_by_the_header() {
        let names = FieldNames::new(&Fields::default(), RankField::None);
        let header = Header::parse(b"url;n;content\n", None, &names).unwrap();
        assert_eq!(header.delimiter, b';');
        let mut parser = RecordParser::new(header.delimiter);
        let record = parser.fields_of(b"http://x;1;\"so; \"\"it\"\" is\"\r\n", &header, &names).unwrap();
        assert_eq!((record.url.as_deref(), record.text.as_ref(), record.id), (Some("http://x"), "so; \"it\" is", None));
        assert_eq!(parser.fields_of(b"http://x\n", &header, &names).unwrap_err().0, SkipKind::MissingField);
        assert_eq!(parser.fields_of(b"a;b;\xff\n", &header, &names).unwrap_err().0, SkipKind::InvalidUtf8);
        assert_eq!(Header::parse(b"a,b\n", None, &names).unwrap_err().0, SkipKind::MissingField);
    }

    #[test]
    fn a_carriage_return_inside_a_record_does_not_cut_it() {
        let names = FieldNames::new(&Fields::default(), RankField::None);
        let header = Header::parse(b"id,text\n", None, &names).unwrap();
        let mut parser = RecordParser::new(b',');
        assert_eq!(parser.fields_of(b"1,first\rsecond\r\n", &header, &names).unwrap().text, "first\rsecond");
        assert_eq!(Header::parse(b"id,text\r1,a\r2,b\r", None, &names).unwrap_err().0, SkipKind::BadCsv);
    }

    #[test]
    fn delimiters_in_quotes_do_not_count() {
        let names = FieldNames::new(&Fields::default(), RankField::None);
        assert_eq!(Header::parse(b"id,text,\"a;b;c;d\"\n", None, &names).unwrap().delimiter, b',');
    }

    #[test]
    fn long_records_grow_the_buffers() {
        let names = FieldNames::new(&Fields::default(), RankField::None);
        let header = Header::parse(b"id,text\n", None, &names).unwrap();
        let mut parser = RecordParser::new(b',');
        let record = format!("1,{}\n", "word ".repeat(10_000));
        assert_eq!(parser.fields_of(record.as_bytes(), &header, &names).unwrap().text.len(), 50_000);
    }
}
