//! The records of a source as fields with values.

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::page::{Body, PageId, SourceId};
use crate::read::{Annotations, Input, Source, TableHead};
use crate::report::Findings;
use crate::report::sinks::records::arrow;
use crate::report::sinks::records::bytes::{Unpacked, stretch};
use crate::report::sinks::records::convert::arrow_values;
use crate::report::sinks::records::rows::{Types, for_each_batch};
use crate::spill::Scratch;
use crate::text::charset;

/// A value of a field, as far as formats tell values apart.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Truth(bool),
    /// In the digits of JSON.
    Number(Cow<'a, str>),
    Text(Cow<'a, str>),
    /// A list or an object, on one line.
    Json(Cow<'a, str>),
}

/// The fields of a record, in their order.
pub(super) type Record<'r> = [(Cow<'r, str>, Value<'r>)];

/// What pages become that have no fields of their own.
pub(super) const PAGE_FIELDS: [&str; 4] = ["id", "url", "title", "text"];

/// Shows the records of some pages of a source to `visit`, in order.
pub(super) fn for_each_record(
    findings: &Findings<'_>,
    id: SourceId,
    pages: &[PageId],
    visit: &mut dyn FnMut(&Record<'_>) -> Result<()>,
) -> Result<()> {
    let source = findings.reading.source(id);
    match source.format.reader().annotations() {
        Some(Annotations::Object) => for_each_stretch(findings, source, pages, |bytes| visit(&object(bytes, source)?)),
        Some(Annotations::Table(open)) => match open(&Input { corpus: findings.reading, id }) {
            Some(mut head) => for_each_stretch(findings, source, pages, |bytes| visit(&row(bytes, &mut head))),
            None => Ok(()),
        },
        Some(Annotations::Rows) => for_each_row(findings, source, pages, visit),
        Some(Annotations::ArrowRows) => arrow::for_each_batch(findings, source, pages, |schema, batch| {
            for_each_in_batch(source, schema, batch, visit)
        }),
        None => for_each_page(findings, pages, visit),
    }
}

/// Shows the rows of a batch.
fn for_each_in_batch(
    source: &Source,
    schema: &SchemaRef,
    batch: &RecordBatch,
    visit: &mut dyn FnMut(&Record<'_>) -> Result<()>,
) -> Result<()> {
    for at in 0..batch.num_rows() {
        let fields = schema.fields().iter().zip(batch.columns());
        let record = fields.map(|(field, column)| {
            let value = arrow_values::value(column, at).ok_or_else(|| arrow_values::unsupported(source, field))?;
            Ok((Cow::Borrowed(field.name().as_str()), value))
        });
        visit(&record.collect::<Result<Vec<_>>>()?)?;
    }
    Ok(())
}

/// Shows the bytes of records.
fn for_each_stretch(
    findings: &Findings<'_>,
    source: &Source,
    pages: &[PageId],
    mut visit: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut unpacked = Unpacked::open(findings, source)?;
    let mut record = Vec::new();
    for &page in pages {
        let (start, end) = stretch(findings, page)?;
        unpacked.skip_to(start)?;
        record.clear();
        unpacked.copy_to(end, &mut record, &source.path())?;
        visit(&record)?;
    }
    Ok(())
}

/// The fields of a JSON object. Of several with one name the last counts.
fn object<'r>(bytes: &'r [u8], source: &Source) -> Result<Vec<(Cow<'r, str>, Value<'r>)>> {
    let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let end = memchr::memrchr(b'}', start).map_or(start.len(), |at| at + 1);
    let mut deserializer = serde_json::Deserializer::from_slice(&start[..end]);
    deserializer
        .deserialize_map(ObjectVisitor)
        .map_err(|error| Error::corrupt(&source.path(), format!("changed while the run was reading it: {error}")))
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Vec<(Cow<'de, str>, Value<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields: Self::Value = Vec::new();
        while let Some((name, raw)) = map.next_entry::<String, &'de RawValue>()? {
            let value = json_value(raw.get());
            match fields.iter_mut().find(|field| field.0 == name) {
                Some(field) => field.1 = value,
                None => fields.push((Cow::Owned(name), value)),
            }
        }
        Ok(fields)
    }
}

/// From the text of one valid JSON value.
fn json_value(raw: &str) -> Value<'_> {
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str(raw).map_or(Value::Null, |text: String| Value::Text(Cow::Owned(text))),
        Some(b't') => Value::Truth(true),
        Some(b'f') => Value::Truth(false),
        Some(b'n') => Value::Null,
        // Line breaks in JSON are white space: those of strings are escaped.
        Some(b'[' | b'{') if raw.contains(['\n', '\r']) => Value::Json(Cow::Owned(raw.replace(['\n', '\r'], " "))),
        Some(b'[' | b'{') => Value::Json(Cow::Borrowed(raw)),
        _ => Value::Number(Cow::Borrowed(raw)),
    }
}

/// The cells of a record of a table by the names of its header.
fn row(bytes: &[u8], head: &mut TableHead) -> Vec<(Cow<'static, str>, Value<'static>)> {
    let names = head.names.clone();
    let text = |cell: &[u8]| Value::Text(Cow::Owned(String::from_utf8_lossy(cell).into_owned()));
    let mut cells = head.cells(bytes).map(text);
    names.into_iter().map(|name| (Cow::Owned(name), cells.next().unwrap_or(Value::Null))).collect()
}

fn for_each_row(
    findings: &Findings<'_>,
    source: &Source,
    pages: &[PageId],
    visit: &mut dyn FnMut(&Record<'_>) -> Result<()>,
) -> Result<()> {
    let rows: Vec<u64> = pages.iter().map(|&page| findings.pages.place(page).record).collect();
    let mut seen = 0;
    for_each_batch(source, Types::Parquet, |opened, batch| {
        let Some((first, batch)) = batch else { return Ok(()) };
        let numbers = first..first + batch.num_rows() as u64;
        let mask: BooleanArray = numbers.map(|number| Some(rows.binary_search(&number).is_ok())).collect();
        let batch = filter_record_batch(&batch, &mask)
            .map_err(|error| Error::internal(format!("rows cannot be filtered: {error}")))?;
        seen += batch.num_rows();
        for_each_in_batch(source, &opened.schema, &batch, visit)?;
        Ok(())
    })?;
    if seen == rows.len() {
        return Ok(());
    }
    let reason = format!(
        "only {seen} of {} rows can be read again: the file is damaged in a column that is not compared; repair it, or leave it out",
        rows.len()
    );
    Err(Error::corrupt(&source.path(), reason))
}

/// Pages without fields: what they are called, and all of their text or markup.
fn for_each_page(
    findings: &Findings<'_>,
    pages: &[PageId],
    visit: &mut dyn FnMut(&Record<'_>) -> Result<()>,
) -> Result<()> {
    let wanted = findings.pages.wanted(pages);
    let mut scratch = Scratch::default();
    let threads = rayon::current_num_threads();
    findings.reading.scan().threads(threads).without_revisits().for_each_of(
        &wanted,
        || (),
        |(), page, raw| {
            let text = match raw.body {
                Body::Text(text) => text.into_owned(),
                Body::Bytes(bytes) => charset::decode(&bytes, raw.charset.as_deref()).text.into_owned(),
            };
            Ok(Some((page, text)))
        },
        |(page, text)| {
            let strings = findings.pages.strings(page, &mut scratch)?;
            let text_or_null =
                |text: Option<&str>| text.map_or(Value::Null, |text| Value::Text(Cow::Owned(text.to_owned())));
            let values = [
                text_or_null(Some(strings.id)),
                text_or_null(strings.url),
                text_or_null(strings.title),
                Value::Text(Cow::Owned(text)),
            ];
            let record: Vec<(Cow<'_, str>, Value<'_>)> =
                PAGE_FIELDS.iter().map(|name| Cow::Borrowed(*name)).zip(values).collect();
            visit(&record)?;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_keep_order_numbers_and_what_is_nested() {
        let source = Source::in_memory("a.jsonl", b"{\"text\":\"a\"}".to_vec(), None).unwrap();
        let line =
            b"{\"z\":1.50,\"a\":\"x\\ny\",\"n\":null,\"m\":{\"b\": [1,\n2]},\"t\":true,\"z\":12345678901234567890}\n";
        let fields = object(line, &source).unwrap();
        let expected = [
            ("z", Value::Number("12345678901234567890".into())),
            ("a", Value::Text("x\ny".into())),
            ("n", Value::Null),
            ("m", Value::Json("{\"b\": [1, 2]}".into())),
            ("t", Value::Truth(true)),
        ];
        assert_eq!(fields, expected.map(|(name, value)| (Cow::Borrowed(name), value)));
    }
}
