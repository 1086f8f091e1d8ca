//! Files of ready-made fingerprints: one per line, or Parquet.
//!
//! In: lines with a fingerprint and perhaps an id behind it; or columns `fingerprint` and `id`. Out: rows. A
//! line that is neither is skipped and counted.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

use crate::error::{Error, Result, SkipKind, SkippedRecord};
use crate::index::segment::ids::{Id, IdKind};
use crate::names::named;
use crate::read::compression::Compression;
use crate::read::guarded;

named! {
    /// How fingerprints are written in lines.
    pub enum Notation {
        /// Up to 16 hexadecimal digits
        Hex = "hex",
        /// Numbers from 0 to 2^64 - 1; negative ones stand for their bits
        Decimal = "decimal",
    }
}

impl Notation {
    /// The fingerprint that a text stands for.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<u64> {
        match self {
            Notation::Hex => {
                let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
                let is_hex =
                    !digits.is_empty() && digits.len() <= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
            }
            Notation::Decimal => text.parse::<u64>().ok().or_else(|| text.parse::<i64>().ok().map(i64::cast_unsigned)),
        }
    }
}

/// What was read.
#[derive(Debug, Default)]
pub struct FingerprintRows {
    /// Rows.
    pub rows: u64,
    /// Lines that hold no fingerprint.
    pub skipped: u64,
    /// Some of those.
    pub examples: Vec<SkippedRecord>,
}

const MOST_EXAMPLES: usize = 5;
/// Longer lines hold something else.
const MOST_LINE_BYTES: usize = 64 << 10;

/// Reads fingerprints from files.
pub struct FingerprintReader<'a> {
    notation: Notation,
    ids: IdKind,
    /// The number of the next row without an id.
    next: u64,
    visit: &'a mut dyn FnMut(u64, &Id) -> Result<()>,
    done: FingerprintRows,
}

/// Whether the first row of a file has a number for an id, or none.
///
/// # Errors
/// When the file cannot be read.
pub fn id_kind(path: &Path, notation: Notation) -> Result<IdKind> {
    let mut kind = IdKind::Number;
    if is_parquet(path)? {
        let (builder, columns) = open_parquet(path)?;
        if let Some(column) = columns[1] {
            let is_text = matches!(builder.schema().field(column).data_type(), DataType::Utf8 | DataType::LargeUtf8);
            kind = if is_text { IdKind::Text } else { IdKind::Number };
        }
        return Ok(kind);
    }
    let mut lines = open_lines(path)?;
    let mut line = Vec::new();
    while read_line(&mut lines, &mut line).map_err(Error::io(path, "read"))?.is_some() {
        if let Some((_, id)) = split(&line, notation) {
            let is_number = id.is_none_or(|id| number(id).is_some());
            kind = if is_number { IdKind::Number } else { IdKind::Text };
            break;
        }
    }
    Ok(kind)
}

impl<'a> FingerprintReader<'a> {
    /// Calls `visit` with every row; rows without an id are numbered from `first` on.
    pub fn new(notation: Notation, ids: IdKind, first: u64, visit: &'a mut dyn FnMut(u64, &Id) -> Result<()>) -> Self {
        FingerprintReader { notation, ids, next: first, visit, done: FingerprintRows::default() }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or an id is of the wrong kind.
    pub fn read(&mut self, path: &Path) -> Result<()> {
        if is_parquet(path)? { self.read_parquet(path) } else { self.read_lines(path) }
    }

    /// What was read in all.
    #[must_use]
    pub fn finish(self) -> FingerprintRows {
        self.done
    }

    fn row(&mut self, fingerprint: u64, id: Option<&str>, bad: impl FnOnce(String) -> Error) -> Result<()> {
        let ordinal = self.next;
        self.next += u64::from(id.is_none());
        let id = match (self.ids, id) {
            (IdKind::Number, None) => Id::Number(ordinal),
            (IdKind::Text, None) => Id::Text(ordinal.to_string().into()),
            (IdKind::Text, Some(id)) => Id::Text(id.into()),
            (IdKind::Number, Some(text)) => match number(text) {
                Some(number) => Id::Number(number),
                None => {
                    return Err(bad(format!(
                        "the id '{text}' is not a number, and the ids of this index are numbers (as the first was, or as `ids` says); build it with `ids` text"
                    )));
                }
            },
        };
        self.done.rows += 1;
        (self.visit)(fingerprint, &id)
    }

    fn skip(&mut self, path: &Path, record: u64, byte: Option<u64>, bytes: &[u8]) {
        self.done.skipped += 1;
        if self.done.examples.len() < MOST_EXAMPLES {
            let what = match self.notation {
                Notation::Hex => "up to 16 hexadecimal digits",
                Notation::Decimal => "a decimal number",
            };
            self.done.examples.push(SkippedRecord {
                kind: SkipKind::BadRecord,
                source: path.display().to_string(),
                record: Some(record),
                byte,
                reason: format!("is not a fingerprint: {what}, then perhaps a tab, comma or space and an id"),
                first_bytes: SkippedRecord::excerpt(bytes),
            });
        }
    }

    fn read_lines(&mut self, path: &Path) -> Result<()> {
        let mut lines = open_lines(path)?;
        let (mut line, mut record, mut byte) = (Vec::new(), 0, 0);
        while let Some(bytes) = read_line(&mut lines, &mut line).map_err(Error::io(path, "read"))? {
            record += 1;
            let at = byte;
            byte += bytes;
            if bytes > MOST_LINE_BYTES as u64 {
                self.skip(path, record, Some(at), &line);
                continue;
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            match split(&line, self.notation) {
                Some((fingerprint, id)) => {
                    self.row(fingerprint, id, |reason| Error::bad_line(path, record, reason))?;
                }
                None => self.skip(path, record, Some(at), line.trim_ascii_end()),
            }
        }
        Ok(())
    }

    fn read_parquet(&mut self, path: &Path) -> Result<()> {
        let (builder, columns) = open_parquet(path)?;
        let wanted = columns.iter().flatten().copied();
        let mask = ProjectionMask::roots(builder.parquet_schema(), wanted.clone());
        let names = columns.map(|column| column.map(|column| builder.schema().field(column).name().clone()));
        let parquet_error = |reason: String| Error::bad_input(path, reason);
        let reader = builder.with_projection(mask).build().map_err(|error| parquet_error(error.to_string()))?;
        let mut record = 0;
        let mut reader = reader;
        while let Some(batch) = guarded(|| reader.next()).map_err(|(_, reason)| parquet_error(reason))? {
            let batch: RecordBatch = batch.map_err(|error| parquet_error(error.to_string()))?;
            let column = |name: &Option<String>| name.as_ref().and_then(|name| batch.column_by_name(name)).cloned();
            let (fingerprints, ids) = (column(&names[0]), column(&names[1]));
            for row in 0..batch.num_rows() {
                record += 1;
                let id = ids.as_ref().and_then(|ids| text_of(ids, row));
                match fingerprints.as_ref().and_then(|column| number_of(column, row, self.notation)) {
                    Some(fingerprint) => {
                        let bad = |reason| Error::bad_input(path, format!("row {record}: {reason}"));
                        self.row(fingerprint, id.as_deref(), bad)?;
                    }
                    None => self.skip(path, record, None, b""),
                }
            }
        }
        Ok(())
    }
}

/// A number in the form in which numbers are printed, so that nothing is lost when it is kept as one.
fn number(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().filter(|number| number.to_string() == text)
}

fn is_parquet(path: &Path) -> Result<bool> {
    let mut head = [0; 4];
    let mut file = File::open(path).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound { path: path.to_path_buf() },
        _ => Error::io(path, "read")(cause),
    })?;
    let read = file.read(&mut head).map_err(Error::io(path, "read"))?;
    Ok(head[..read] == *b"PAR1")
}

type ParquetFile = (ParquetRecordBatchReaderBuilder<File>, [Option<usize>; 2]);

/// The file, and where its columns are.
fn open_parquet(path: &Path) -> Result<ParquetFile> {
    let bad = |reason: String| Error::bad_input(path, reason);
    let file = File::open(path).map_err(Error::io(path, "read"))?;
    let builder = guarded(|| {
        ParquetRecordBatchReaderBuilder::try_new_with_options(
            file,
            ArrowReaderOptions::new().with_skip_arrow_metadata(true),
        )
    })
    .map_err(|(_, reason)| bad(reason))?
    .map_err(|error| bad(error.to_string()))?;
    let place = |name: &str| builder.schema().fields().iter().position(|field| field.name() == name);
    let columns = [place("fingerprint"), place("id")];
    if columns[0].is_none() {
        let names: Vec<&str> = builder.schema().fields().iter().map(|field| field.name().as_str()).collect();
        return Err(bad(format!("has no column 'fingerprint'; its columns are {}", names.join(", "))));
    }
    for column in columns.into_iter().flatten() {
        let field = builder.schema().field(column);
        let is_text = matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8);
        let is_id = field.name() == "id" && matches!(field.data_type(), DataType::UInt32 | DataType::Int32);
        if !is_text && !is_id && !matches!(field.data_type(), DataType::UInt64 | DataType::Int64) {
            return Err(bad(format!(
                "the column '{}' is of the type {}; write 64-bit integers or text",
                field.name(),
                field.data_type()
            )));
        }
    }
    Ok((builder, columns))
}

fn number_of(column: &ArrayRef, row: usize, notation: Notation) -> Option<u64> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::UInt64 => Some(column.as_primitive::<UInt64Type>().value(row)),
        DataType::Int64 => Some(column.as_primitive::<Int64Type>().value(row).cast_unsigned()),
        DataType::Utf8 => notation.parse(column.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => notation.parse(column.as_string::<i64>().value(row)),
        _ => None,
    }
}

fn text_of(column: &ArrayRef, row: usize) -> Option<String> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::UInt64 => Some(column.as_primitive::<UInt64Type>().value(row).to_string()),
        DataType::Int64 => Some(column.as_primitive::<Int64Type>().value(row).to_string()),
        DataType::UInt32 => Some(column.as_primitive::<UInt32Type>().value(row).to_string()),
        DataType::Int32 => Some(column.as_primitive::<Int32Type>().value(row).to_string()),
        DataType::Utf8 => Some(column.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Some(column.as_string::<i64>().value(row).to_owned()),
        _ => None,
    }
}

fn open_lines(path: &Path) -> Result<BufReader<Box<dyn Read + Send>>> {
    let mut file = BufReader::new(File::open(path).map_err(Error::io(path, "read"))?);
    let head = file.fill_buf().map_err(Error::io(path, "read"))?;
    let compression = Compression::of(head);
    Ok(BufReader::with_capacity(1 << 18, compression.decode(file).map_err(Error::io(path, "read"))?))
}

/// The next line, cut where it is too long, and how long it really is; `None` at the end.
fn read_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<Option<u64>> {
    line.clear();
    let mut bytes = lines.take(MOST_LINE_BYTES as u64).read_until(b'\n', line)?;
    if bytes == MOST_LINE_BYTES && line.last() != Some(&b'\n') {
        bytes += lines.skip_until(b'\n')?.max(1);
    }
    Ok((bytes > 0).then_some(bytes as u64))
}

/// Fingerprint and id of a line.
fn split(line: &[u8], notation: Notation) -> Option<(u64, Option<&str>)> {
    let line = std::str::from_utf8(line).ok()?.trim();
    let (fingerprint, id) = match line.split_once(['\t', ',', ' ']) {
        Some((fingerprint, id)) => (fingerprint, Some(id.trim())),
        None => (line, None),
    };
    Some((notation.parse(fingerprint)?, id.filter(|id| !id.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_and_without_ids_and_bad_ones_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f.txt");
        std::fs::write(&path, "00000000000000ff\n\n0xFE\t77\nnot hex\n10000000000000000\nabc, 12 \n").unwrap();
        assert_eq!(id_kind(&path, Notation::Hex).unwrap(), IdKind::Number);
        let mut rows = Vec::new();
        let mut visit = |fingerprint, id: &Id| {
            rows.push((fingerprint, id.clone()));
            Ok(())
        };
        let mut reader = FingerprintReader::new(Notation::Hex, IdKind::Number, 0, &mut visit);
        reader.read(&path).unwrap();
        let read = reader.finish();
        assert_eq!((read.rows, read.skipped), (3, 2));
        assert_eq!((read.examples[0].record, read.examples[0].byte), (Some(4), Some(26)));
        assert_eq!(rows, [(255, Id::Number(0)), (254, Id::Number(77)), (0xabc, Id::Number(12))]);
    }

    #[test]
    fn decimal_numbers_may_be_negative_and_hex_may_not_be_too_long() {
        assert_eq!(Notation::Decimal.parse("-1"), Some(u64::MAX));
        assert_eq!(Notation::Decimal.parse("18446744073709551615"), Some(u64::MAX));
        assert_eq!(Notation::Decimal.parse("18446744073709551616"), None);
        assert_eq!(Notation::Hex.parse("+f"), None);
        assert_eq!(Notation::Hex.parse("0x"), None);
    }
}
