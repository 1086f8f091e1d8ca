//! `annotated/`: the input with what became of each page added to its record.
//!
//! JSON objects get fields at their end, tables, Parquet and Arrow files columns; nothing else changes. The names are the same
//! in every record of every run: what already has one of them, such as the fields of an earlier run, is replaced. Records that
//! are not pages are copied as they are (Parquet and Arrow: nulls).

mod columns;
mod members;

use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::error::{Error, Result};
use crate::observe::Observer;
use crate::page::{PageId, PageVec, SourceId};
use crate::read::{Annotations, Input, Source, TableHead};
use crate::report::outputs::KeptCompression;
use crate::report::sinks::records::bytes::{ByteParts, Unpacked, stretch};
use crate::report::sinks::records::convert::csv_cell;
use crate::report::sinks::records::rows::{RowParts, Types, for_each_batch};
use crate::report::sinks::records::target::Target;
use crate::report::sinks::records::{Selection, arrow, targets};
use crate::report::{Findings, OutputOptions};
use crate::spill::Scratch;
use columns::{AddedColumns, annotated, annotated_schema};

/// The fields that are added.
const FIELDS: [&str; 6] = [
    "lookalike_cluster",
    "lookalike_cluster_size",
    "lookalike_kept",
    "lookalike_kept_id",
    "lookalike_similarity",
    "lookalike_kind",
];

/// Writes the records of the input, with the fields, into `directory`.
pub(in crate::report::sinks) fn write(
    findings: &Findings<'_>,
    directory: &Path,
    options: OutputOptions,
    observer: &dyn Observer,
) -> Result<()> {
    let mut sizes = PageVec::filled(findings.fates.len(), 0u32);
    findings.fates.all_kept().iter().for_each(|&kept| sizes[kept] += 1);
    let mut annotator = Annotator { findings, sizes, scratch: Scratch::default() };
    for (id, target) in targets(findings, directory, Selection::Removed, options, KeptCompression::Same, observer) {
        let source = findings.reading.source(id);
        match source.format.reader().annotations() {
            Some(Annotations::Object) => annotator.objects(id, source, &target)?,
            Some(Annotations::Table(open)) => {
                if let Some(head) = open(&Input { corpus: findings.reading, id }) {
                    annotator.table(id, source, &target, head)?;
                }
            }
            Some(Annotations::Rows) => annotator.rows(id, source, &target)?,
            Some(Annotations::ArrowRows) => annotator.arrow_rows(id, source, &target)?,
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
    sizes: PageVec<u32>,
    scratch: Scratch<u8>,
}

impl Annotator<'_> {
    fn of(&mut self, page: PageId) -> Result<Annotation<'_>> {
        let fate = self.findings.fates.of(page);
        Ok(Annotation {
            kept_id: self.findings.pages.strings(fate.kept, &mut self.scratch)?.id,
            cluster_size: u64::from(self.sizes[fate.kept]),
            kept: fate.keeps(page),
            similarity: fate.similarity,
            kind: fate.kind.name(),
        })
    }

    fn objects(&mut self, id: SourceId, source: &Source, target: &Target<'_>) -> Result<()> {
        self.records(
            id,
            source,
            ByteParts::new(target, Vec::new()),
            Unpacked::open(self.findings, source)?,
            &mut |record, added| {
                members::replace(record, &FIELDS, &added.json()?);
                Ok(())
            },
        )
    }

    fn table(&mut self, id: SourceId, source: &Source, target: &Target<'_>, mut head: TableHead) -> Result<()> {
        let mut unpacked = Unpacked::open(self.findings, source)?;
        let mut header = Vec::new();
        unpacked.copy_to(head.header_bytes, &mut header, &source.path())?;
        let places = FIELDS.map(|field| head.names.iter().position(|name| name == field));
        let new: Vec<String> =
            FIELDS.iter().zip(places).filter(|row| row.1.is_none()).map(|row| row.0.to_string()).collect();
        append_cells(&mut header, head.delimiter, 0, &new);
        self.records(id, source, ByteParts::new(target, header), unpacked, &mut |record, added| {
            let cells = head.cells(record).len();
            // A record with more cells than the header would have them under wrong names.
            let Some(missing) = head.names.len().checked_sub(cells) else { return Ok(()) };
            let (mut new, mut replaced) = (Vec::new(), Vec::new());
            for (place, cell) in places.into_iter().zip(added.cells()) {
                match place {
                    Some(place) => replaced.push((place, cell)),
                    None => new.push(cell),
                }
            }
            append_cells(record, head.delimiter, missing, &new);
            if !replaced.is_empty() {
                replace_cells(record, &head, &replaced);
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
        let mut pages = self.rows_of(id);
        let mut parts = None;
        let mut places = Vec::new();
        for_each_batch(source, Types::Noted, |opened, batch| {
            let schema = annotated_schema(&opened.schema);
            let parts = parts.get_or_insert_with(|| {
                RowParts::new(target, Arc::clone(&schema), opened.properties(KeptCompression::Same), Types::Noted)
            });
            let Some((first, batch)) = batch else { return Ok(()) };
            let added = self.added(&mut pages, first, &batch)?;
            places.clear();
            parts.write(&annotated(&batch, &schema, added)?, &mut places)
        })?;
        self.all_written(&mut pages, source)?;
        parts.map_or(Ok(()), RowParts::finish)
    }

    fn arrow_rows(&mut self, id: SourceId, source: &Source, target: &Target<'_>) -> Result<()> {
        let mut pages = self.rows_of(id);
        arrow::rewrite(source, target, annotated_schema, |schema, first, batch| {
            let added = self.added(&mut pages, first, batch)?;
            annotated(batch, schema, added)
        })?;
        self.all_written(&mut pages, source)
    }

    /// The pages of a source, in the order of its rows.
    fn rows_of(&self, id: SourceId) -> Pages {
        self.findings.pages.pages_of(id).collect::<Vec<_>>().into_iter().peekable()
    }

    /// What is added to the rows of a batch, of which the first has this number.
    fn added(&mut self, pages: &mut Pages, first: u64, batch: &RecordBatch) -> Result<AddedColumns> {
        let findings = self.findings;
        let mut added = AddedColumns::default();
        for number in first..first + batch.num_rows() as u64 {
            match pages.next_if(|&page| findings.pages.place(page).record == number) {
                Some(page) => added.push(Some(&self.of(page)?)),
                None => added.push(None),
            }
        }
        Ok(added)
    }

    /// Refuses to lose rows.
    fn all_written(&self, pages: &mut Pages, source: &Source) -> Result<()> {
        let Some(page) = pages.next() else { return Ok(()) };
        let reason = format!(
            "row {} can no longer be read: the file is damaged in a column that is not compared; repair it, or leave it out",
            self.findings.pages.place(page).record
        );
        Err(Error::corrupt(&source.path(), reason))
    }
}

/// Pages whose rows are still to come.
type Pages = std::iter::Peekable<std::vec::IntoIter<PageId>>;

impl Annotation<'_> {
    /// The values as JSON has them.
    fn json(&self) -> Result<[String; 6]> {
        let id = serde_json::to_string(self.kept_id).map_err(|error| Error::internal(error.to_string()))?;
        Ok([
            id.clone(),
            self.cluster_size.to_string(),
            self.kept.to_string(),
            id,
            serde_json::Value::from(self.similarity).to_string(),
            format!("\"{}\"", self.kind),
        ])
    }

    fn cells(&self) -> [String; 6] {
        [
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

/// Puts other values into cells of a record that has them.
fn replace_cells(record: &mut Vec<u8>, head: &TableHead, values: &[(usize, String)]) {
    let stretches = head.stretches(record);
    let mut replaced = Vec::with_capacity(record.len());
    let mut copied = 0;
    for (place, stretch) in stretches.into_iter().enumerate() {
        if let Some((_, value)) = values.iter().find(|value| value.0 == place) {
            replaced.extend_from_slice(&record[copied..stretch.start]);
            csv_cell(&mut replaced, value, head.delimiter);
            copied = stretch.end;
        }
    }
    replaced.extend_from_slice(&record[copied..]);
    *record = replaced;
}

#[cfg(test)]
mod tests {
    use super::*;

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
