//! Apache Parquet, a page a row.
//!
//! In: a file. Out: batches of rows with only the columns that have a role. Text columns may be of
//! any string or binary type, ids also integers.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::error::{Result, SkipKind};
use crate::page::Markup;
use crate::read::Chunks;
use crate::read::fields::{FieldNames, Role};
use crate::read::format::fielded::{FieldedRecord, emit};
use crate::read::format::reader::{Description, Input, Keeping, Likeness, Problem, Reader};
use crate::read::split::batch::{BatchSender, Content, Only, Place, Visit};

/// Rows in a batch.
const BATCH_ROWS: usize = 1024;

/// Opens a file by its Parquet schema alone: what else its writer noted down about types is not
/// needed, and may be damaged.
pub(crate) fn open_file(file: Chunks) -> parquet::errors::Result<ParquetRecordBatchReaderBuilder<Chunks>> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)
}

/// Runs `read`; a panic of the Parquet library over a damaged file is damage, not the end of the run.
pub(crate) fn guarded<T>(read: impl FnOnce() -> T) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(read))
        .map_err(|_| (SkipKind::Damaged, "cannot be read as Parquet: it is damaged".to_owned()))
}

/// Apache Parquet.
pub(super) struct Parquet;

impl Reader for Parquet {
    fn description(&self) -> Description {
        Description { name: "parquet", endings: &["parquet"], what: "Apache Parquet, a page a row" }
    }

    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String> {
        Ok(head.starts_with(b"PAR1").then_some(Likeness::Signature))
    }

    fn may_be_compressed(&self) -> bool {
        false
    }

    fn split(&self, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        let source = input.source();
        let file = match Chunks::new(&source.location) {
            Ok(file) => file,
            Err(error) => return batches.send(input.unopened(&error)),
        };
        let mut reader = match RowReader::open(file, input.names()) {
            Ok(reader) => reader,
            Err(problem) => return batches.send(input.skipped(None, None, problem, &[])),
        };
        let mut record = 1;
        loop {
            match reader.next_rows() {
                Ok(Some(rows)) => {
                    let count = rows.length as u64;
                    batches.send(NumberedRows { rows, first_record: record })?;
                    record += count;
                }
                Ok(None) => break,
                Err(problem) => {
                    batches.send(input.skipped(Some(record), None, problem, &[]))?;
                    break;
                }
            }
        }
        input.corpus.count_bytes_read(source.bytes);
        ControlFlow::Continue(())
    }

    fn keeping(&self, _: &Input<'_>) -> Keeping {
        Keeping::Rows
    }
}

struct NumberedRows {
    rows: Rows,
    first_record: u64,
}

impl Content for NumberedRows {
    fn visit(&self, input: &Input<'_>, only: &Only, visit: Visit<'_>) -> Result<()> {
        for (at, record) in (0..self.rows.length).zip(self.first_record..) {
            if only.contains(record) {
                let fields = self.rows.fields_of(at, input.names());
                let length = fields.as_ref().map_or(0, |fields| fields.text.len() as u64);
                emit(input, &Place { record, offset: None, bytes: &[] }, length, || fields, visit)?;
            }
        }
        Ok(())
    }
}

/// The columns of a batch that have a role.
#[derive(Debug, Clone)]
struct Rows {
    columns: [Option<ArrayRef>; 5],
    markup: Markup,
    length: usize,
}

/// Reads the columns that have a role.
struct RowReader {
    reader: ParquetRecordBatchReader,
    /// For each role the column's place in the projection.
    columns: [Option<usize>; 5],
    markup: Markup,
}

const ROLES: [Role; 5] = [Role::Id, Role::Text, Role::Url, Role::Title, Role::Rank];

impl RowReader {
    fn open(file: Chunks, names: &FieldNames) -> Result<RowReader, Problem> {
        let damaged =
            |error: &dyn std::fmt::Display| (SkipKind::Damaged, format!("cannot be read as Parquet: {error}"));
        let builder = guarded(|| open_file(file))?.map_err(|error| damaged(&error))?;
        let header: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
        let found = names.columns(&header);
        let Some(text) = found.of(Role::Text) else {
            let reason = format!(
                "no text column: none of {} among the columns {} (use `text_field`)",
                names.tried(Role::Text),
                header.join(", ")
            );
            return Err((SkipKind::MissingField, reason));
        };
        let text_type = builder.schema().field(text).data_type();
        if !is_text(text_type) {
            return Err((
                SkipKind::WrongType,
                format!("the text column '{}' is {text_type}, not a string", header[text]),
            ));
        }
        let markup = if header[text] == "html" { Markup::Html } else { Markup::Unknown };
        let mut wanted: Vec<usize> = ROLES.iter().filter_map(|&role| found.of(role)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let columns = ROLES.map(|role| found.of(role).and_then(|column| wanted.binary_search(&column).ok()));
        let mask = ProjectionMask::roots(builder.parquet_schema(), wanted.iter().copied());
        let reader =
            builder.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(|error| damaged(&error))?;
        Ok(RowReader { reader, columns, markup })
    }

    /// The next rows; none at the end.
    fn next_rows(&mut self) -> Result<Option<Rows>, Problem> {
        let Some(batch) = guarded(|| self.reader.next())? else { return Ok(None) };
        let batch: RecordBatch =
            batch.map_err(|error| (SkipKind::Damaged, format!("cannot be read as Parquet: {error}")))?;
        let columns = self.columns.map(|column| column.map(|at| Arc::clone(batch.column(at))));
        Ok(Some(Rows { columns, markup: self.markup, length: batch.num_rows() }))
    }
}

impl Rows {
    fn column(&self, role: Role) -> Option<&ArrayRef> {
        ROLES.iter().position(|&known| known == role).and_then(|at| self.columns[at].as_ref())
    }

    /// The page in row `at`.
    fn fields_of(&self, at: usize, names: &FieldNames) -> Result<FieldedRecord<'_>, Problem> {
        let text = match self.column(Role::Text).map(|column| value(column, at)) {
            Some(Value::Text(text)) => text,
            Some(Value::Invalid) => return Err((SkipKind::InvalidUtf8, "invalid UTF-8 in the text column".to_owned())),
            _ => return Err((SkipKind::MissingField, "the text column is null in this row".to_owned())),
        };
        let string = |role: Role| self.column(role).and_then(|column| value(column, at).into_string());
        Ok(FieldedRecord {
            id: string(Role::Id),
            url: string(Role::Url),
            title: string(Role::Title),
            rank_value: self.column(Role::Rank).and_then(|column| match value(column, at) {
                Value::Number(number) => Some(number),
                Value::Integer(number) => names.rank_value(&number.to_string()),
                Value::Text(text) => names.rank_value(&text),
                Value::Null | Value::Invalid => None,
            }),
            text,
            markup: self.markup,
        })
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    )
}

enum Value<'a> {
    Text(Cow<'a, str>),
    Integer(i128),
    Number(f64),
    Null,
    Invalid,
}

impl<'a> Value<'a> {
    fn into_string(self) -> Option<Cow<'a, str>> {
        match self {
            Value::Text(text) => Some(text),
            Value::Integer(number) => Some(Cow::Owned(number.to_string())),
            Value::Number(number) => Some(Cow::Owned(number.to_string())),
            Value::Null | Value::Invalid => None,
        }
    }
}

fn value(column: &ArrayRef, at: usize) -> Value<'_> {
    if column.is_null(at) {
        return Value::Null;
    }
    macro_rules! integer {
        ($array:ty) => {
            Value::Integer(i128::from(column.as_primitive::<$array>().value(at)))
        };
    }
    macro_rules! seconds {
        ($array:ty, $units:expr) => {
            Value::Number(column.as_primitive::<$array>().value(at) as f64 / $units)
        };
    }
    let bytes = |bytes| std::str::from_utf8(bytes).map_or(Value::Invalid, |text| Value::Text(Cow::Borrowed(text)));
    match column.data_type() {
        DataType::Utf8 => Value::Text(Cow::Borrowed(column.as_string::<i32>().value(at))),
        DataType::LargeUtf8 => Value::Text(Cow::Borrowed(column.as_string::<i64>().value(at))),
        DataType::Utf8View => Value::Text(Cow::Borrowed(column.as_string_view().value(at))),
        DataType::Binary => bytes(column.as_binary::<i32>().value(at)),
        DataType::LargeBinary => bytes(column.as_binary::<i64>().value(at)),
        DataType::BinaryView => bytes(column.as_binary_view().value(at)),
        DataType::Int8 => integer!(Int8Type),
        DataType::Int16 => integer!(Int16Type),
        DataType::Int32 => integer!(Int32Type),
        DataType::Int64 => integer!(Int64Type),
        DataType::UInt8 => integer!(UInt8Type),
        DataType::UInt16 => integer!(UInt16Type),
        DataType::UInt32 => integer!(UInt32Type),
        DataType::UInt64 => integer!(UInt64Type),
        DataType::Boolean => Value::Integer(i128::from(column.as_boolean().value(at))),
        DataType::Decimal128(..) => {
            Value::Text(Cow::Owned(column.as_primitive::<Decimal128Type>().value_as_string(at)))
        }
        DataType::Date32 => Value::Number(f64::from(column.as_primitive::<Date32Type>().value(at)) * 86_400.0),
        DataType::Timestamp(TimeUnit::Second, _) => seconds!(TimestampSecondType, 1.0),
        DataType::Timestamp(TimeUnit::Millisecond, _) => seconds!(TimestampMillisecondType, 1e3),
        DataType::Timestamp(TimeUnit::Microsecond, _) => seconds!(TimestampMicrosecondType, 1e6),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => seconds!(TimestampNanosecondType, 1e9),
        DataType::Float32 => Value::Number(f64::from(column.as_primitive::<Float32Type>().value(at))),
        DataType::Float64 => Value::Number(column.as_primitive::<Float64Type>().value(at)),
        _ => Value::Null,
    }
}
