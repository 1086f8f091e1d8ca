//! Fields with values → JSON lines, Parquet, CSV.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::file::properties::WriterProperties;

use crate::error::{Error, Result};
use crate::report::outputs::{KeptCompression, KeptFormat};
use crate::report::sinks::records::bytes::ByteParts;
use crate::report::sinks::records::convert::columns::{Columns, Holds};
use crate::report::sinks::records::convert::fields::{Record, Value};
use crate::report::sinks::records::rows::{RowParts, Types};
use crate::report::sinks::records::target::{Packing, Target, usual_codec};

/// Rows, and bytes of text, that are held before they are written.
const BATCH_ROWS: usize = 4096;
const BATCH_BYTES: usize = 16 << 20;

/// Writes records of any fields in a format.
pub(super) enum RecordWriter<'a> {
    Lines(ByteParts<'a>),
    Table(ByteParts<'a>, &'a Columns),
    Rows(Box<RowWriter<'a>>),
}

impl<'a> RecordWriter<'a> {
    pub(super) fn new(
        format: KeptFormat,
        target: &'a Target<'a>,
        columns: &'a Columns,
        asked: KeptCompression,
    ) -> RecordWriter<'a> {
        match format {
            KeptFormat::Same | KeptFormat::Jsonl => RecordWriter::Lines(ByteParts::new(target, Vec::new())),
            KeptFormat::Csv => {
                let names: Vec<Option<&str>> = columns.list.iter().map(|column| Some(column.0.as_str())).collect();
                RecordWriter::Table(ByteParts::new(target, csv_line(&names)), columns)
            }
            KeptFormat::Parquet => RecordWriter::Rows(Box::new(RowWriter::new(target, columns, asked))),
        }
    }

    pub(super) fn write(&mut self, record: &Record<'_>) -> Result<()> {
        match self {
            RecordWriter::Lines(parts) => {
                let mut line = String::new();
                for (name, value) in record {
                    line.push(if line.is_empty() { '{' } else { ',' });
                    line.push_str(&serde_json::Value::from(name.as_ref()).to_string());
                    line.push(':');
                    value.push_json(&mut line);
                }
                line.push_str("}\n");
                parts.write(line.as_bytes())
            }
            RecordWriter::Table(parts, columns) => {
                let row = columns.arrange(record);
                let cells: Vec<Option<&str>> = row.iter().map(|value| value.and_then(Value::as_text)).collect();
                parts.write(&csv_line(&cells))
            }
            RecordWriter::Rows(rows) => rows.push(record),
        }
    }

    pub(super) fn finish(self) -> Result<()> {
        match self {
            RecordWriter::Lines(parts) | RecordWriter::Table(parts, _) => parts.finish(),
            RecordWriter::Rows(rows) => rows.finish(),
        }
    }
}

fn csv_line(cells: &[Option<&str>]) -> Vec<u8> {
    let mut line = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            line.push(b',');
        }
        csv_cell(&mut line, cell.unwrap_or_default(), b',');
    }
    line.push(b'\n');
    line
}

/// Adds a cell to a record of a table, in quotes where it needs them.
pub(in crate::report::sinks::records) fn csv_cell(line: &mut Vec<u8>, cell: &str, delimiter: u8) {
    let needs_quotes =
        cell.bytes().any(|byte| byte == delimiter || matches!(byte, b'"' | b'\n' | b'\r')) || cell.starts_with(' ');
    if needs_quotes {
        line.push(b'"');
        line.extend_from_slice(cell.replace('"', "\"\"").as_bytes());
        line.push(b'"');
    } else {
        line.extend_from_slice(cell.as_bytes());
    }
}

enum Builder {
    Truth(BooleanBuilder),
    Whole(Int64Builder),
    Real(Float64Builder),
    Text(StringBuilder),
}

/// Writes rows of a Parquet file.
pub(super) struct RowWriter<'a> {
    columns: &'a Columns,
    schema: Arc<Schema>,
    builders: Vec<Builder>,
    rows: usize,
    bytes: usize,
    parts: RowParts<'a>,
}

impl<'a> RowWriter<'a> {
    fn new(target: &'a Target<'a>, columns: &'a Columns, asked: KeptCompression) -> RowWriter<'a> {
        let data_type = |holds: Holds| match holds {
            Holds::Truth => DataType::Boolean,
            Holds::Whole => DataType::Int64,
            Holds::Real => DataType::Float64,
            Holds::Text | Holds::Nothing => DataType::Utf8,
        };
        let fields: Vec<Field> =
            columns.list.iter().map(|(name, holds)| Field::new(name, data_type(*holds), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder()
            .set_created_by("lookalike".to_owned())
            .set_compression(Packing::codec(asked).unwrap_or_else(usual_codec))
            .build();
        let builders = columns.list.iter().map(|(_, holds)| match holds {
            Holds::Truth => Builder::Truth(BooleanBuilder::new()),
            Holds::Whole => Builder::Whole(Int64Builder::new()),
            Holds::Real => Builder::Real(Float64Builder::new()),
            Holds::Text | Holds::Nothing => Builder::Text(StringBuilder::new()),
        });
        RowWriter {
            columns,
            builders: builders.collect(),
            rows: 0,
            bytes: 0,
            parts: RowParts::new(target, Arc::clone(&schema), properties, Types::Noted),
            schema,
        }
    }

    fn push(&mut self, record: &Record<'_>) -> Result<()> {
        let row = self.columns.arrange(record);
        for (builder, value) in self.builders.iter_mut().zip(row) {
            let text = value.and_then(Value::as_text);
            self.bytes += text.map_or(0, str::len);
            match builder {
                Builder::Truth(builder) => builder.append_option(match value {
                    Some(Value::Truth(truth)) => Some(*truth),
                    _ => None,
                }),
                Builder::Whole(builder) => builder.append_option(text.and_then(|digits| digits.parse().ok())),
                Builder::Real(builder) => builder.append_option(text.and_then(|digits| digits.parse().ok())),
                Builder::Text(builder) => builder.append_option(text),
            }
        }
        self.rows += 1;
        if self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES { self.write_batch() } else { Ok(()) }
    }

    fn write_batch(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let columns: Vec<ArrayRef> = self
            .builders
            .iter_mut()
            .map(|builder| -> ArrayRef {
                match builder {
                    Builder::Truth(builder) => Arc::new(builder.finish()),
                    Builder::Whole(builder) => Arc::new(builder.finish()),
                    Builder::Real(builder) => Arc::new(builder.finish()),
                    Builder::Text(builder) => Arc::new(builder.finish()),
                }
            })
            .collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| Error::internal(format!("records do not fit their columns: {error}")))?;
        (self.rows, self.bytes) = (0, 0);
        self.parts.write(&batch, &mut Vec::new())
    }

    fn finish(mut self) -> Result<()> {
        self.write_batch()?;
        self.parts.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let cells = [Some("a"), None, Some("b,c"), Some("say \"x\""), Some("1\n2"), Some(" d")];
        assert_eq!(csv_line(&cells), b"a,,\"b,c\",\"say \"\"x\"\"\",\"1\n2\",\" d\"\n");
    }
}
