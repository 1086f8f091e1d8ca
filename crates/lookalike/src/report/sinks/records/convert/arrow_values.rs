//! Values of Arrow arrays as JSON has them.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, TimeUnit};

use crate::error::Error;
use crate::read::{Source, dictionary_value};
use crate::report::sinks::records::convert::fields::Value;

/// What a column cannot be written as.
pub(super) fn unsupported(source: &Source, field: &Field) -> Error {
    let reason = format!(
        "the column '{}' is {}, which cannot be written in another format; use `kept_format` same",
        field.name(),
        field.data_type()
    );
    Error::bad_input(&source.path(), reason)
}

/// The value in a row of a column; nothing for types that JSON has no place for.
pub(super) fn value(column: &ArrayRef, at: usize) -> Option<Value<'_>> {
    if column.is_null(at) {
        return Some(Value::Null);
    }
    macro_rules! number {
        ($array:ty) => {
            Some(Value::Number(Cow::Owned(column.as_primitive::<$array>().value(at).to_string())))
        };
    }
    macro_rules! real {
        ($array:ty) => {{
            let number = f64::from(column.as_primitive::<$array>().value(at));
            // JSON has no infinities.
            Some(
                serde_json::Number::from_f64(number)
                    .map_or(Value::Null, |number| Value::Number(Cow::Owned(number.to_string()))),
            )
        }};
    }
    macro_rules! time {
        ($array:ty, $zone:expr) => {{
            let time = column.as_primitive::<$array>().value_as_datetime(at)?;
            let zone = if $zone.is_some() { "Z" } else { "" };
            Some(Value::Text(Cow::Owned(format!("{}{zone}", time.format("%Y-%m-%dT%H:%M:%S%.f")))))
        }};
    }
    match column.data_type() {
        DataType::Null => Some(Value::Null),
        DataType::Boolean => Some(Value::Truth(column.as_boolean().value(at))),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => real!(Float32Type),
        DataType::Float64 => real!(Float64Type),
        DataType::Decimal128(..) => {
            Some(Value::Number(Cow::Owned(column.as_primitive::<Decimal128Type>().value_as_string(at))))
        }
        DataType::Utf8 => text(column.as_string::<i32>().value(at)),
        DataType::LargeUtf8 => text(column.as_string::<i64>().value(at)),
        DataType::Utf8View => text(column.as_string_view().value(at)),
        DataType::Binary => bytes(column.as_binary::<i32>().value(at)),
        DataType::LargeBinary => bytes(column.as_binary::<i64>().value(at)),
        DataType::BinaryView => bytes(column.as_binary_view().value(at)),
        DataType::FixedSizeBinary(_) => bytes(column.as_fixed_size_binary().value(at)),
        DataType::Date32 => {
            let date = column.as_primitive::<Date32Type>().value_as_date(at)?;
            Some(Value::Text(Cow::Owned(date.format("%Y-%m-%d").to_string())))
        }
        DataType::Timestamp(TimeUnit::Second, zone) => time!(TimestampSecondType, zone),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => time!(TimestampMillisecondType, zone),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => time!(TimestampMicrosecondType, zone),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => time!(TimestampNanosecondType, zone),
        DataType::Dictionary(..) => {
            let (values, key) = dictionary_value(column, at)?;
            value(values, key)
        }
        DataType::List(_) => list(&column.as_list::<i32>().value(at)),
        DataType::LargeList(_) => list(&column.as_list::<i64>().value(at)),
        DataType::FixedSizeList(..) => list(&column.as_fixed_size_list().value(at)),
        DataType::Struct(fields) => {
            let columns = column.as_struct().columns();
            let mut out = String::from("{");
            for (number, (field, column)) in fields.iter().zip(columns).enumerate() {
                out.push_str(if number == 0 { "" } else { "," });
                out.push_str(&serde_json::Value::from(field.name().as_str()).to_string());
                out.push(':');
                value(column, at)?.push_json(&mut out);
            }
            Some(Value::Json(Cow::Owned(out + "}")))
        }
        DataType::Map(..) => {
            let entries = column.as_map().value(at);
            let (keys, values) = (entries.column(0), entries.column(1));
            let mut out = String::from("{");
            for at in 0..entries.len() {
                out.push_str(if at == 0 { "" } else { "," });
                let (Value::Text(key) | Value::Number(key)) = value(keys, at)? else { return None };
                out.push_str(&serde_json::Value::from(key.as_ref()).to_string());
                out.push(':');
                value(values, at)?.push_json(&mut out);
            }
            Some(Value::Json(Cow::Owned(out + "}")))
        }
        _ => None,
    }
}

fn text(text: &str) -> Option<Value<'_>> {
    Some(Value::Text(Cow::Borrowed(text)))
}

/// Bytes that are text as text, others in hexadecimal digits.
fn bytes(bytes: &[u8]) -> Option<Value<'_>> {
    let digits = || bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Some(Value::Text(std::str::from_utf8(bytes).map_or_else(|_| Cow::Owned(digits()), Cow::Borrowed)))
}

fn list(values: &ArrayRef) -> Option<Value<'static>> {
    let mut out = String::from("[");
    for at in 0..values.len() {
        out.push_str(if at == 0 { "" } else { "," });
        value(values, at)?.push_json(&mut out);
    }
    Some(Value::Json(Cow::Owned(out + "]")))
}

impl Value<'_> {
    /// Adds it to a line of JSON.
    pub(super) fn push_json(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Truth(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Value::Number(raw) | Value::Json(raw) => out.push_str(raw),
            Value::Text(text) => out.push_str(&serde_json::Value::from(text.as_ref()).to_string()),
        }
    }

    /// The value as the text of a cell; nothing for null.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Value::Null => None,
            Value::Truth(truth) => Some(if *truth { "true" } else { "false" }),
            Value::Number(text) | Value::Json(text) | Value::Text(text) => Some(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::{Int64Builder, ListBuilder};
    use arrow_array::{BinaryArray, DictionaryArray, Float64Array, StringArray, StructArray};
    use std::sync::Arc;

    fn json(column: ArrayRef, at: usize) -> String {
        let mut out = String::new();
        value(&column, at).unwrap().push_json(&mut out);
        out
    }

    #[test]
    fn nested_values_become_json() {
        let mut lists = ListBuilder::new(Int64Builder::new());
        lists.values().append_value(1);
        lists.values().append_null();
        lists.append(true);
        let lists: ArrayRef = Arc::new(lists.finish());
        assert_eq!(json(Arc::clone(&lists), 0), "[1,null]");
        let names: ArrayRef = Arc::new(StringArray::from(vec!["a \"b\""]));
        let record = StructArray::from(vec![
            (Arc::new(Field::new("l", lists.data_type().clone(), true)), lists),
            (Arc::new(Field::new("name", DataType::Utf8, true)), names),
        ]);
        assert_eq!(json(Arc::new(record), 0), r#"{"l":[1,null],"name":"a \"b\""}"#);
    }

    #[test]
    fn rows_of_a_dictionary_have_its_values() {
        let texts: DictionaryArray<Int8Type> = [Some("a"), None, Some("b"), Some("a")].into_iter().collect();
        let column: ArrayRef = Arc::new(texts);
        assert_eq!((0..4).map(|at| json(Arc::clone(&column), at)).collect::<String>(), "\"a\"null\"b\"\"a\"");
    }

    #[test]
    fn what_json_has_no_room_for_is_null_or_digits() {
        assert_eq!(json(Arc::new(Float64Array::from(vec![f64::NAN])), 0), "null");
        assert_eq!(json(Arc::new(BinaryArray::from(vec![&b"\xff\x01"[..]])), 0), "\"ff01\"");
    }
}
