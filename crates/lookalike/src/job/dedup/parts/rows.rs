//! Rows on their way between machines: Arrow batches with columns of five kinds.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::spill::Fixed;

/// What a column holds. Numbers without a sign are stored as the number with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Long,
    Real,
    Text,
    Bytes,
    Truth,
}

/// The columns of a table.
pub(crate) type Columns = [(&'static str, Kind)];

/// The same as a list of names and types in SQL.
pub(crate) fn ddl(columns: &Columns) -> String {
    let typed = columns.iter().map(|(name, kind)| {
        let kind = match kind {
            Kind::Long => "bigint",
            Kind::Real => "double",
            Kind::Text => "string",
            Kind::Bytes => "binary",
            Kind::Truth => "boolean",
        };
        format!("{name} {kind}")
    });
    typed.collect::<Vec<_>>().join(", ")
}

/// One value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Long(Option<i64>),
    Real(Option<f64>),
    Text(Option<&'a str>),
    Bytes(Option<&'a [u8]>),
    Truth(Option<bool>),
}

impl Value<'_> {
    /// A number without a sign.
    pub(crate) fn bits(number: u64) -> Value<'static> {
        Value::Long(Some(number.cast_signed()))
    }

    /// A count.
    pub(crate) fn count(number: u64) -> Value<'static> {
        Value::Long(Some(i64::try_from(number).unwrap_or(i64::MAX)))
    }
}

enum Builder {
    Long(Int64Builder),
    Real(Float64Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Truth(BooleanBuilder),
}

/// Makes a batch, row by row.
pub(crate) struct RowBuilder {
    schema: SchemaRef,
    builders: Vec<Builder>,
    rows: usize,
}

impl RowBuilder {
    pub(crate) fn new(columns: &Columns) -> RowBuilder {
        let mut fields = Vec::new();
        let mut builders = Vec::new();
        for (name, kind) in columns {
            let (data_type, builder) = match kind {
                Kind::Long => (DataType::Int64, Builder::Long(Int64Builder::new())),
                Kind::Real => (DataType::Float64, Builder::Real(Float64Builder::new())),
                Kind::Text => (DataType::Utf8, Builder::Text(StringBuilder::new())),
                Kind::Bytes => (DataType::Binary, Builder::Bytes(BinaryBuilder::new())),
                Kind::Truth => (DataType::Boolean, Builder::Truth(BooleanBuilder::new())),
            };
            fields.push(Field::new(*name, data_type, true));
            builders.push(builder);
        }
        RowBuilder { schema: Arc::new(Schema::new(fields)), builders, rows: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    pub(crate) fn push(&mut self, values: &[Value<'_>]) {
        assert_eq!(values.len(), self.builders.len(), "a row has one value per column");
        for (builder, value) in self.builders.iter_mut().zip(values) {
            match (builder, *value) {
                (Builder::Long(builder), Value::Long(number)) => builder.append_option(number),
                (Builder::Real(builder), Value::Real(number)) => builder.append_option(number),
                (Builder::Text(builder), Value::Text(text)) => builder.append_option(text),
                (Builder::Bytes(builder), Value::Bytes(bytes)) => builder.append_option(bytes),
                (Builder::Truth(builder), Value::Truth(truth)) => builder.append_option(truth),
                (_, value) => unreachable!("{value:?} does not fit its column"),
            }
        }
        self.rows += 1;
    }

    /// The rows so far.
    pub(crate) fn take(&mut self) -> Result<RecordBatch> {
        self.rows = 0;
        let columns = self.builders.iter_mut().map(|builder| match builder {
            Builder::Long(builder) => Arc::new(builder.finish()) as ArrayRef,
            Builder::Real(builder) => Arc::new(builder.finish()),
            Builder::Text(builder) => Arc::new(builder.finish()),
            Builder::Bytes(builder) => Arc::new(builder.finish()),
            Builder::Truth(builder) => Arc::new(builder.finish()),
        });
        RecordBatch::try_new(Arc::clone(&self.schema), columns.collect())
            .map_err(|error| Error::internal(format!("rows do not fit their columns: {error}")))
    }
}

/// Columns of a batch by their names.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a>(pub(crate) &'a RecordBatch);

impl<'a> Rows<'a> {
    pub(crate) fn len(self) -> usize {
        self.0.num_rows()
    }

    pub(crate) fn column(self, name: &str) -> Result<&'a ArrayRef> {
        self.0.column_by_name(name).ok_or_else(|| Error::internal(format!("rows have no column {name}")))
    }

    pub(crate) fn longs(self, name: &str) -> Result<&'a Int64Array> {
        self.column(name)?.as_primitive_opt::<Int64Type>().ok_or_else(|| other_kind(name))
    }

    pub(crate) fn reals(self, name: &str) -> Result<&'a Float64Array> {
        self.column(name)?.as_primitive_opt::<Float64Type>().ok_or_else(|| other_kind(name))
    }

    pub(crate) fn texts(self, name: &str) -> Result<&'a StringArray> {
        self.column(name)?.as_string_opt::<i32>().ok_or_else(|| other_kind(name))
    }

    pub(crate) fn bytes(self, name: &str) -> Result<&'a BinaryArray> {
        self.column(name)?.as_binary_opt::<i32>().ok_or_else(|| other_kind(name))
    }

    pub(crate) fn truths(self, name: &str) -> Result<&'a BooleanArray> {
        self.column(name)?.as_boolean_opt().ok_or_else(|| other_kind(name))
    }
}

pub(crate) fn other_kind(name: &str) -> Error {
    Error::internal(format!("rows have another kind of column {name}"))
}

/// A value, if there is one.
pub(crate) fn long(column: &Int64Array, row: usize) -> Option<i64> {
    column.is_valid(row).then(|| column.value(row))
}

/// A text, if there is one.
pub(crate) fn text(column: &StringArray, row: usize) -> Option<&str> {
    column.is_valid(row).then(|| column.value(row))
}

/// Bytes, if there are any.
pub(crate) fn bytes(column: &BinaryArray, row: usize) -> Option<&[u8]> {
    column.is_valid(row).then(|| column.value(row))
}

/// Numbers from their bytes.
pub(crate) fn numbers<T: Fixed>(bytes: &[u8]) -> Vec<T> {
    let mut items = Vec::with_capacity(bytes.len() / T::BYTES);
    T::decode(bytes, &mut items);
    items
}

/// Numbers as bytes.
pub(crate) fn encoded<T: Fixed>(items: &[T]) -> Vec<u8> {
    let mut bytes = Vec::new();
    T::encode(items, &mut bytes);
    bytes
}
