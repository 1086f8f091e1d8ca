//! Rows of columns → records: what Parquet and Arrow have in common.
//!
//! In: batches of rows. Out: the columns that have a role, also those inside columns of structures, and the record in each
//! row. Texts may be of any string or binary type, and dictionaries of them; ids also numbers.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Fields, TimeUnit};

use crate::error::{Result, SkipKind};
use crate::read::fields::{FieldNames, Leads, NameLeft, Preference, Ranked, Role};
use crate::read::format::fielded::{FieldedRecord, emit, join};
use crate::read::format::reader::{Input, Problem};
use crate::read::split::batch::{Content, Only, Place, Visit};

/// Rows in a batch.
pub(super) const BATCH_ROWS: usize = 1024;

/// The columns of a file that have a role.
#[derive(Debug, Clone)]
pub(super) struct RowColumns(Vec<(Role, Vec<String>)>);

impl RowColumns {
    /// For each role the best column of a schema.
    pub(super) fn find(schema: &Fields, names: &FieldNames) -> Result<RowColumns, Problem> {
        let mut best: Vec<Option<Candidate<'_>>> = names.slots().iter().map(|_| None).collect();
        look(schema, names, names.top(), &mut Vec::new(), &mut best);
        let mut columns = Vec::new();
        for (&role, found) in names.slots().iter().zip(best) {
            let Some(Candidate { path, data_type, .. }) = found else { continue };
            if role == Role::Text && !is_text(data_type) {
                let reason = format!("the text column '{}' is {data_type}, not a string", path.join("."));
                return Err((SkipKind::WrongType, reason));
            }
            columns.push((role, path));
        }
        if columns.iter().any(|column| column.0 == Role::Text) {
            return Ok(RowColumns(columns));
        }
        let mut there = Vec::new();
        list(schema, "", &mut there);
        Err(names.no_text("column", &there))
    }

    /// The way to each column, from the top.
    pub(super) fn paths(&self) -> impl Iterator<Item = &[String]> {
        self.0.iter().map(|column| column.1.as_slice())
    }

    /// The columns of a batch, whose rows are numbered from `first_record` on.
    pub(super) fn rows(&self, batch: &RecordBatch, first_record: u64) -> Rows {
        let column = |(role, path): &(Role, Vec<String>)| Some((*role, Column::find(batch, path)?));
        Rows { columns: self.0.iter().filter_map(column).collect(), length: batch.num_rows(), first_record }
    }
}

struct Candidate<'s> {
    path: Vec<String>,
    data_type: &'s DataType,
    preference: Preference,
}

fn look<'s>(
    fields: &'s Fields,
    names: &FieldNames,
    wanted: &[NameLeft],
    path: &mut Vec<String>,
    best: &mut [Option<Candidate<'s>>],
) {
    for field in fields {
        path.push(field.name().clone());
        let mut below = Vec::new();
        for &left in wanted {
            match names.leads(left, field.name()) {
                Some(Leads::Here { slot, preference })
                    if best[slot].as_ref().is_none_or(|known| preference < known.preference) =>
                {
                    best[slot] = Some(Candidate { path: path.clone(), data_type: field.data_type(), preference });
                }
                Some(Leads::Here { .. }) | None => {}
                Some(Leads::Below(left)) => below.push(left),
            }
        }
        if let (DataType::Struct(fields), false) = (field.data_type(), below.is_empty()) {
            look(fields, names, &below, path, best);
        }
        path.pop();
    }
}

/// The names of all columns, for messages.
fn list(fields: &Fields, before: &str, names: &mut Vec<String>) {
    for field in fields {
        let name = format!("{before}{}", field.name());
        match field.data_type() {
            DataType::Struct(below) if !below.is_empty() => list(below, &format!("{name}."), names),
            _ => names.push(name),
        }
    }
}

/// Some rows, with the columns that have a role.
pub(super) struct Rows {
    columns: Vec<(Role, Column)>,
    length: usize,
    first_record: u64,
}

/// A column, and the structures that it is in.
struct Column {
    name: String,
    outer: Vec<ArrayRef>,
    values: ArrayRef,
}

impl Column {
    fn find(batch: &RecordBatch, path: &[String]) -> Option<Column> {
        let (first, rest) = path.split_first()?;
        let mut values = Arc::clone(batch.column_by_name(first)?);
        let mut outer = Vec::new();
        for name in rest {
            let inner = Arc::clone(values.as_struct_opt()?.column_by_name(name)?);
            outer.push(std::mem::replace(&mut values, inner));
        }
        Some(Column { name: path.join("."), outer, values })
    }

    fn value(&self, at: usize) -> Value<'_> {
        if self.outer.iter().any(|outer| outer.is_null(at)) { Value::Null } else { value_of(&self.values, at) }
    }
}

impl Content for Rows {
    fn visit(&self, input: &Input<'_>, only: &Only, visit: Visit<'_>) -> Result<()> {
        for (at, record) in (0..self.length).zip(self.first_record..) {
            if only.contains(record) {
                let fields = self.fields_of(at, input.names());
                let length = fields.as_ref().map_or(0, |fields| fields.text.len() as u64);
                emit(input, &Place { record, offset: None, bytes: &[] }, length, || fields, visit)?;
            }
        }
        Ok(())
    }
}

impl Rows {
    /// The record in row `at`.
    fn fields_of(&self, at: usize, names: &FieldNames) -> Result<FieldedRecord<'_>, Problem> {
        let mut texts = Vec::new();
        for (_, column) in self.columns.iter().filter(|column| column.0 == Role::Text) {
            match column.value(at) {
                Value::Text(text) => texts.push((text, column.name.rsplit('.').next() == Some("html"))),
                Value::Invalid => {
                    return Err((SkipKind::InvalidUtf8, format!("invalid UTF-8 in the column '{}'", column.name)));
                }
                _ => {}
            }
        }
        if texts.is_empty() {
            let columns = self.columns.iter().filter(|column| column.0 == Role::Text);
            let columns: Vec<&str> = columns.map(|column| column.1.name.as_str()).collect();
            let reason = format!("no text: the column '{}' is null in this row", columns.join(", "));
            return Err((SkipKind::MissingField, reason));
        }
        let value = |role: Role| self.columns.iter().find(|column| column.0 == role).map(|column| column.1.value(at));
        let string = |role: Role| value(role).and_then(Value::into_string);
        let (text, markup) = join(texts, names.read_as);
        Ok(FieldedRecord {
            id: string(Role::Id),
            url: string(Role::Url),
            title: string(Role::Title),
            rank: match value(Role::Rank) {
                Some(Value::Number(number)) => Ranked { value: Some(number), unread: None },
                other => names.ranked(other.and_then(Value::into_string)),
            },
            text,
            markup,
        })
    }
}

fn is_text(data_type: &DataType) -> bool {
    if let DataType::Dictionary(_, values) = data_type {
        return is_text(values);
    }
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

fn value_of(column: &dyn Array, at: usize) -> Value<'_> {
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
        DataType::Date64 => seconds!(Date64Type, 1e3),
        DataType::Dictionary(..) => {
            dictionary_value(column, at).map_or(Value::Null, |(values, key)| value_of(values.as_ref(), key))
        }
        _ => Value::Null,
    }
}

/// The values of a dictionary, and the place of that of a row among them; nothing if the row has none.
pub(crate) fn dictionary_value(column: &dyn Array, at: usize) -> Option<(&ArrayRef, usize)> {
    let dictionary = column.as_any_dictionary_opt()?;
    match value_of(dictionary.keys(), at) {
        Value::Integer(key) => Some((dictionary.values(), usize::try_from(key).ok()?)),
        _ => None,
    }
}
