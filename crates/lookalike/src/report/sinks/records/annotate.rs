//! `annotated/`: the input with what became of each page added to its record.
//!
//! JSON objects get fields at their end, tables and Parquet files columns; nothing else changes. Records that are not
//! pages are copied without the fields (Parquet: nulls).

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use memchr::{memmem, memrchr};

use crate::error::{Error, Result};
use crate::page::{PageId, PageVec, SourceId};
use crate::read::{Annotations, Input, Source, TableHead};
use crate::report::outputs::KeptCompression;
use crate::report::sinks::records::bytes::{ByteParts, Unpacked, stretch};
use crate::report::sinks::records::convert::csv_cell;
use crate::report::sinks::records::rows::{RowParts, Types, for_each_batch};
use crate::report::sinks::records::target::Target;
use crate::report::sinks::records::{Selection, targets};
use crate::report::{Findings, OutputOptions};
use crate::spill::Scratch;

/// The fields that are added, without what their names begin with.
const FIELDS: [&str; 6] = ["cluster", "cluster_size", "kept", "kept_id", "similarity", "kind"];

/// Writes the records of the input, with the fields, into `directory`.
pub(in crate::report::sinks) fn write(findings: &Findings<'_>, directory: &Path, options: OutputOptions) -> Result<()> {
    let mut sizes = PageVec::filled(findings.fates.len(), 0u64);
    for fate in findings.fates {
        sizes[fate.kept] += 1;
    }
    let mut annotator = Annotator { findings, sizes, scratch: Scratch::default() };
    for (id, target) in targets(findings, directory, Selection::Removed, options, KeptCompression::Same) {
        let source = findings.reading.source(id);
        match source.format.reader().annotations() {
            Some(Annotations::Object) => annotator.objects(id, source, &target)?,
            Some(Annotations::Table(open)) => {
                if let Some(head) = open(&Input { corpus: findings.reading, id }) {
                    annotator.table(id, source, &target, head)?;
                }
            }
            Some(Annotations::Rows) => annotator.rows(id, source, &target)?,
            None => return Err(Error::internal("records without fields were to be annotated")),
        }
    }
    Ok(())
}

/// What is added to the record of a page.
struct Annotation<'a> {
    kept_id: &'a str,
    cluster_size: u64,
    kept: bool,
    similarity: f64,
    kind: &'static str,
}

struct Annotator<'a> {
    findings: &'a Findings<'a>,
    /// Pages of each group, by its kept page.
    sizes: PageVec<u64>,
    scratch: Scratch<u8>,
}

impl Annotator<'_> {
    fn of(&mut self, page: PageId) -> Result<Annotation<'_>> {
        let fate = &self.findings.fates[page];
        Ok(Annotation {
            kept_id: self.findings.pages.strings(fate.kept, &mut self.scratch)?.id,
            cluster_size: self.sizes[fate.kept],
            kept: fate.keeps(page),
            similarity: fate.similarity,
            kind: fate.kind.name(),
        })
    }

    fn objects(&mut self, id: SourceId, source: &Source, target: &Target<'_>) -> Result<()> {
        self.records(id, source, ByteParts::new(target, Vec::new()), Unpacked::open(source)?, &mut |record, added| {
            let end = memrchr(b'}', record).unwrap_or(record.len());
            let fields = added.json(prefix_for_object(record))?;
            record.splice(end..end, fields);
            Ok(())
        })
    }

    fn table(&mut self, id: SourceId, source: &Source, target: &Target<'_>, mut head: TableHead) -> Result<()> {
        let mut unpacked = Unpacked::open(source)?;
        let mut header = Vec::new();
        unpacked.copy_to(head.header_bytes, &mut header, &source.path())?;
        let prefix = prefix_for(|name| head.names.iter().any(|known| known == name));
        let names: Vec<String> = FIELDS.iter().map(|name| format!("{prefix}{name}")).collect();
        append_cells(&mut header, head.delimiter, 0, &names);
        self.records(id, source, ByteParts::new(target, header), unpacked, &mut |record, added| {
            let cells = head.cells(record).len();
            // A record with more cells than the header would have them under wrong names.
            if let Some(missing) = head.names.len().checked_sub(cells) {
                append_cells(record, head.delimiter, missing, &added.cells());
            }
            Ok(())
        })
    }

    /// Copies all bytes of a source; `add` changes the records of pages.
    fn records(
        &mut self,
        id: SourceId,
        source: &Source,
        mut parts: ByteParts<'_>,
        mut unpacked: Unpacked<'_>,
        add: &mut dyn FnMut(&mut Vec<u8>, &Annotation<'_>) -> Result<()>,
    ) -> Result<()> {
        let findings = self.findings;
        let mut record = Vec::new();
        for page in findings.pages.pages_of(id) {
            let (start, end) = stretch(findings, page)?;
            if unpacked.at < start {
                parts.write_between(|out, path| unpacked.copy_to(start, out, path))?;
            }
            record.clear();
            unpacked.copy_to(end, &mut record, &source.path())?;
            add(&mut record, &self.of(page)?)?;
            parts.write(&record)?;
        }
        parts.write_between(|out, path| unpacked.copy_rest(out, path))?;
        parts.finish()
    }

    fn rows(&mut self, id: SourceId, source: &Source, target: &Target<'_>) -> Result<()> {
        let findings = self.findings;
        let mut pages = findings.pages.pages_of(id).peekable();
        let mut parts = None;
        let mut places = Vec::new();
        for_each_batch(source, Types::Noted, |opened, batch| {
            let schema = annotated_schema(&opened.schema);
            let parts = parts.get_or_insert_with(|| {
                RowParts::new(target, Arc::clone(&schema), opened.properties(KeptCompression::Same), Types::Noted)
            });
            let Some((first, batch)) = batch else { return Ok(()) };
            let mut added = AddedColumns::default();
            for number in first..first + batch.num_rows() as u64 {
                match pages.next_if(|&page| findings.pages.place(page).record == number) {
                    Some(page) => added.push(Some(&self.of(page)?)),
                    None => added.push(None),
                }
            }
            let columns = batch.columns().iter().cloned().chain(added.finish()).collect();
            let batch = RecordBatch::try_new(schema, columns)
                .map_err(|error| Error::internal(format!("columns do not fit their rows: {error}")))?;
            places.clear();
            parts.write(&batch, &mut places)
        })?;
        if let Some(page) = pages.next() {
            let reason = format!(
                "row {} can no longer be read: the file is damaged in a column that is not compared; repair it, or leave it out",
                findings.pages.place(page).record
            );
            return Err(Error::corrupt(&source.path(), reason));
        }
        parts.map_or(Ok(()), RowParts::finish)
    }
}

/// What the names of the fields begin with, where some names are taken: `lookalike_`, else `lookalike_2_`, ….
fn prefix_for(is_taken: impl Fn(&str) -> bool) -> String {
    let prefix = |number: usize| if number == 1 { "lookalike_".to_owned() } else { format!("lookalike_{number}_") };
    let is_free = |prefix: &String| FIELDS.iter().all(|name| !is_taken(&format!("{prefix}{name}")));
    (1..).map(prefix).find(is_free).unwrap_or_default()
}

/// The same for a JSON object. Its fields are parsed only where it may have such names.
fn prefix_for_object(record: &[u8]) -> String {
    if memmem::find(record, b"\"lookalike_").is_none() {
        return prefix_for(|_| false);
    }
    let start = record.strip_prefix(b"\xef\xbb\xbf").unwrap_or(record);
    let end = memrchr(b'}', start).map_or(start.len(), |at| at + 1);
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&start[..end]).unwrap_or_default();
    prefix_for(|name| object.contains_key(name))
}

impl Annotation<'_> {
    /// The fields as the end of a JSON object that has others.
    fn json(&self, prefix: String) -> Result<Vec<u8>> {
        let id = serde_json::to_string(self.kept_id).map_err(|error| Error::internal(error.to_string()))?;
        let values = [
            id.clone(),
            self.cluster_size.to_string(),
            self.kept.to_string(),
            id,
            serde_json::Value::from(self.similarity).to_string(),
            format!("\"{}\"", self.kind),
        ];
        let fields = FIELDS.iter().zip(values).map(|(name, value)| format!(",\"{prefix}{name}\":{value}"));
        Ok(fields.collect::<String>().into_bytes())
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.kept_id.to_owned(),
            self.cluster_size.to_string(),
            self.kept.to_string(),
            self.kept_id.to_owned(),
            self.similarity.to_string(),
            self.kind.to_owned(),
        ]
    }
}

/// Adds cells to a record of a table, in front of its line end, behind as many empty ones as it lacks.
fn append_cells(record: &mut Vec<u8>, delimiter: u8, missing: usize, cells: &[String]) {
    let line = record.strip_suffix(b"\n").unwrap_or(record);
    let end = line.strip_suffix(b"\r").unwrap_or(line).len();
    let mut added = vec![delimiter; missing];
    for cell in cells {
        added.push(delimiter);
        csv_cell(&mut added, cell, delimiter);
    }
    record.splice(end..end, added);
}

fn annotated_schema(schema: &Schema) -> Arc<Schema> {
    let prefix = prefix_for(|name| schema.fields().iter().any(|field| field.name() == name));
    let types =
        [DataType::Utf8, DataType::UInt64, DataType::Boolean, DataType::Utf8, DataType::Float64, DataType::Utf8];
    let added = FIELDS.iter().zip(types).map(|(name, of)| Arc::new(Field::new(format!("{prefix}{name}"), of, true)));
    let fields: Vec<Arc<Field>> = schema.fields().iter().cloned().chain(added).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The added columns of some rows.
#[derive(Default)]
struct AddedColumns {
    cluster: StringBuilder,
    cluster_size: UInt64Builder,
    kept: BooleanBuilder,
    similarity: Float64Builder,
    kind: StringBuilder,
}

impl AddedColumns {
    fn push(&mut self, added: Option<&Annotation<'_>>) {
        self.cluster.append_option(added.map(|added| added.kept_id));
        self.cluster_size.append_option(added.map(|added| added.cluster_size));
        self.kept.append_option(added.map(|added| added.kept));
        self.similarity.append_option(added.map(|added| added.similarity));
        self.kind.append_option(added.map(|added| added.kind));
    }

    fn finish(mut self) -> [ArrayRef; 6] {
        // A group is named by its kept page.
        let cluster: ArrayRef = Arc::new(self.cluster.finish());
        [
            Arc::clone(&cluster),
            Arc::new(self.cluster_size.finish()),
            Arc::new(self.kept.finish()),
            cluster,
            Arc::new(self.similarity.finish()),
            Arc::new(self.kind.finish()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_taken_get_another_prefix() {
        assert_eq!(prefix_for_object(b"{\"text\":\"the \\\"lookalike_kept\\\" field\"}\n"), "lookalike_");
        assert_eq!(prefix_for_object(b"{\"text\":\"x\",\"lookalike_kept\":true}"), "lookalike_2_");
        assert_eq!(prefix_for_object(b"{\"lookalike_kept\":1,\"lookalike_2_kind\":2}"), "lookalike_3_");
        assert_eq!(prefix_for_object(b"{\"a\":{\"lookalike_kept\":1}}"), "lookalike_");
    }

    #[test]
    fn cells_go_before_the_line_end_and_under_their_names() {
        let cells = ["a;b".to_owned(), "c".to_owned()];
        for (record, missing, expected) in [
            (&b"1;x\r\n"[..], 0, &b"1;x;\"a;b\";c\r\n"[..]),
            (b"1\n", 1, b"1;;\"a;b\";c\n"),
            (b"1;x", 0, b"1;x;\"a;b\";c"),
        ] {
            let mut record = record.to_vec();
            append_cells(&mut record, b';', missing, &cells);
            assert_eq!(record, expected);
        }
    }
}
