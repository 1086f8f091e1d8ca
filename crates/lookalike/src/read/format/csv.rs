//! Comma- or tab-separated values with a header.
//!
//! In: the bytes of a table. Out: where each record ends, found without parsing it, so that the
//! records of one file can be parsed by many threads and copied byte for byte; and the fields of a
//! record that have a role.

use std::borrow::Cow;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

use crate::error::SkipKind;
use crate::page::Markup;
use crate::read::fields::{Columns, FieldNames, Role};
use crate::read::format::jsonl::Line;

/// What the first line of a table says.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub(crate) delimiter: u8,
    pub(crate) columns: Columns,
    names: Vec<String>,
}

impl Header {
    /// Parses the first record. `delimiter` is found out if it is not given.
    pub(crate) fn parse(
        record: &[u8],
        delimiter: Option<u8>,
        names: &FieldNames,
    ) -> Result<Header, (SkipKind, String)> {
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
            return Err((
                SkipKind::MissingField,
                format!(
                    "no text column: none of {} among the columns {} (use --text-field)",
                    names.tried(Role::Text),
                    header.join(", ")
                ),
            ));
        }
        Ok(Header { delimiter, columns, names: header })
    }
}

/// Finds the ends of records in a stream: a line break outside quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Splitter {
    FieldStart,
    Unquoted,
    Quoted,
    QuoteInQuoted,
}

impl Splitter {
    /// Takes the next byte; true if a record ends with it.
    #[inline]
    pub(crate) fn ends_at(&mut self, byte: u8, delimiter: u8) -> bool {
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
pub(crate) struct RecordParser {
    reader: Reader,
    output: Vec<u8>,
    ends: Vec<usize>,
    count: usize,
}

impl RecordParser {
    pub(crate) fn new(delimiter: u8) -> RecordParser {
        RecordParser {
            reader: ReaderBuilder::new().delimiter(delimiter).terminator(Terminator::Any(b'\n')).build(),
            output: vec![0; 4096],
            ends: vec![0; 64],
            count: 0,
        }
    }

    /// Parses one whole record. Its line end is no part of it; a carriage return inside it is.
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
                // An empty slice tells the parser that the input is over.
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
    pub(crate) fn line<'a>(
        &'a mut self,
        record: &[u8],
        header: &Header,
        names: &FieldNames,
    ) -> Result<Line<'a>, (SkipKind, String)> {
        self.parse(record);
        let field = |role: Role| -> Result<Option<&str>, (SkipKind, String)> {
            let Some(column) = header.columns.of(role).filter(|&column| column < self.fields()) else {
                return Ok(None);
            };
            std::str::from_utf8(self.field(column)).map(Some).map_err(|error| {
                (
                    SkipKind::InvalidUtf8,
                    format!("invalid UTF-8 at byte {} of the field '{}'", error.valid_up_to(), header.names[column]),
                )
            })
        };
        let text = field(Role::Text)?.ok_or_else(|| {
            (
                SkipKind::MissingField,
                format!("the record has {} of {} fields and no text", self.fields(), header.names.len()),
            )
        })?;
        let named_html = header.columns.of(Role::Text).is_some_and(|column| header.names[column] == "html");
        let some = |value: Option<&'a str>| value.map(Cow::Borrowed);
        Ok(Line {
            id: some(field(Role::Id)?),
            url: some(field(Role::Url)?),
            title: some(field(Role::Title)?),
            rank_value: field(Role::Rank)?.and_then(|value| names.rank_value(value)),
            text: Cow::Borrowed(text),
            markup: if named_html { Markup::Html } else { Markup::Unknown },
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
        let line = parser.line(b"http://x;1;\"so; \"\"it\"\" is\"\r\n", &header, &names).unwrap();
        assert_eq!((line.url.as_deref(), line.text.as_ref(), line.id), (Some("http://x"), "so; \"it\" is", None));
        assert_eq!(parser.line(b"http://x\n", &header, &names).unwrap_err().0, SkipKind::MissingField);
        assert_eq!(parser.line(b"a;b;\xff\n", &header, &names).unwrap_err().0, SkipKind::InvalidUtf8);
        assert_eq!(Header::parse(b"a,b\n", None, &names).unwrap_err().0, SkipKind::MissingField);
    }

    #[test]
    fn a_carriage_return_inside_a_record_does_not_cut_it() {
        let names = FieldNames::new(&Fields::default(), RankField::None);
        let header = Header::parse(b"id,text\n", None, &names).unwrap();
        let mut parser = RecordParser::new(b',');
        assert_eq!(parser.line(b"1,first\rsecond\r\n", &header, &names).unwrap().text, "first\rsecond");
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
        assert_eq!(parser.line(record.as_bytes(), &header, &names).unwrap().text.len(), 50_000);
    }
}
