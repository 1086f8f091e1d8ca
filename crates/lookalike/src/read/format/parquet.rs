//! Apache Parquet, a page a row.
//!
//! In: a file. Out: batches of rows with only the columns that have a role. A batch is a stretch of rows, which its worker takes
//! out of the file; only rows of large groups of a file without an index of its pages are read one after the other.

use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};
use parquet::file::metadata::PageIndexPolicy;

use crate::error::{Result, SkipKind};
use crate::read::Chunks;
use crate::read::fields::FieldNames;
use crate::read::format::reader::{Annotations, Description, Input, Keeping, Likeness, Problem, Reader};
use crate::read::format::rows::{BATCH_ROWS, RowColumns, Rows};
use crate::read::source::file::Location;
use crate::read::split::batch::{BatchSender, Content, NotAPage, Only, Visit};

/// Bytes of a stretch of rows, in memory: what stands on its first and last pages is unpacked twice.
const STRETCH_BYTES: u64 = 32 << 20;
/// Rows up to which a group is taken apart without an index of its pages: each stretch passes those before it.
const MOST_UNINDEXED_ROWS: u64 = 1 << 16;
/// Batches of a stretch, at the most.
const MOST_BATCHES: usize = 16;

/// Opens a file by its Parquet schema alone: what else its writer noted down about types is not
/// needed, and may be damaged.
pub(crate) fn open_file(file: Chunks) -> parquet::errors::Result<ParquetRecordBatchReaderBuilder<Chunks>> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)
}

/// Opens a file with the types that its writer noted down, as far as they fit what is in it.
pub(crate) fn open_typed(location: &Location) -> parquet::errors::Result<ParquetRecordBatchReaderBuilder<Chunks>> {
    match guarded(|| ParquetRecordBatchReaderBuilder::try_new(Chunks::new(location)?)) {
        Ok(Ok(builder)) => Ok(builder),
        _ => open_file(Chunks::new(location)?),
    }
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
        let file = match RowFile::open(file, input.names()) {
            Ok(file) => Arc::new(file),
            Err(problem) => return batches.send(input.skipped(None, None, problem, &[])),
        };
        let mut record = 1;
        for number in 0..file.metadata.metadata().num_row_groups() {
            let rows = usize::try_from(file.metadata.metadata().row_group(number).num_rows()).unwrap_or(0);
            let group = Stretch { file: Arc::clone(&file), group: number, rows: 0..rows, first_record: record };
            match file.stretch_rows(number, source.bytes) {
                Some(length) => (0..rows)
                    .step_by(length)
                    .try_for_each(|from| batches.send(group.part(from..rows.min(from + length))))?,
                None => group.send_rows(input, batches)?,
            }
            record += rows as u64;
        }
        input.corpus.count_bytes_read(source.bytes);
        ControlFlow::Continue(())
    }

    fn keeping(&self, _: &Input<'_>) -> Keeping {
        Keeping::Rows
    }

    fn annotations(&self) -> Option<Annotations> {
        Some(Annotations::Rows)
    }
}

fn damaged(error: &dyn std::fmt::Display) -> Problem {
    (SkipKind::Damaged, format!("cannot be read as Parquet: {error}"))
}

/// A file, and its columns that have a role.
struct RowFile {
    file: Chunks,
    metadata: ArrowReaderMetadata,
    columns: RowColumns,
    mask: ProjectionMask,
}

impl RowFile {
    fn open(file: Chunks, names: &FieldNames) -> Result<RowFile, Problem> {
        let load = |index: PageIndexPolicy| {
            let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true).with_offset_index_policy(index);
            guarded(|| ArrowReaderMetadata::load(&file, options))?.map_err(|error| damaged(&error))
        };
        // An index that is damaged is not needed.
        let metadata = load(PageIndexPolicy::Optional).or_else(|_| load(PageIndexPolicy::Skip))?;
        let columns = RowColumns::find(metadata.schema().fields(), names)?;
        let schema = metadata.parquet_schema();
        let is_wanted = |leaf: &usize| {
            let column = schema.column(*leaf);
            columns.paths().any(|path| column.path().parts().starts_with(path))
        };
        let mask = ProjectionMask::leaves(schema, (0..schema.num_columns()).filter(is_wanted).collect::<Vec<_>>());
        Ok(RowFile { file, metadata, columns, mask })
    }

    /// The rows of a stretch of a group; nothing if it is read as a whole. `file_bytes` are what a claim to have many rows is
    /// measured by.
    fn stretch_rows(&self, group: usize, file_bytes: u64) -> Option<usize> {
        let group = &self.metadata.metadata().row_groups()[group];
        let rows = u64::try_from(group.num_rows()).ok().filter(|&rows| (1..=file_bytes).contains(&rows))?;
        let wanted = || (0..group.num_columns()).filter(|&leaf| self.mask.leaf_included(leaf));
        // It is there for all columns of all groups, or not at all.
        let has_index = self.metadata.metadata().offset_index().is_some();
        if !has_index && rows > MOST_UNINDEXED_ROWS {
            return None;
        }
        let bytes =
            wanted().map(|leaf| u64::try_from(group.column(leaf).uncompressed_size()).unwrap_or(0)).sum::<u64>();
        let fitting = STRETCH_BYTES / (bytes / rows).max(1);
        usize::try_from(fitting).ok().map(|fitting| (fitting / BATCH_ROWS).clamp(1, MOST_BATCHES) * BATCH_ROWS)
    }
}

/// Some rows of a group; the first of them is the record `first_record`.
struct Stretch {
    file: Arc<RowFile>,
    group: usize,
    rows: Range<usize>,
    first_record: u64,
}

impl Stretch {
    /// Some of its rows, counted from its first one.
    fn part(&self, rows: Range<usize>) -> Stretch {
        let (start, end) = (self.rows.start + rows.start, self.rows.start + rows.end);
        let first_record = self.first_record + rows.start as u64;
        Stretch { file: Arc::clone(&self.file), group: self.group, rows: start..end, first_record }
    }

    /// Hands the rows on, which are read here.
    fn send_rows(&self, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        let mut reader = RowReader::new(self);
        loop {
            match reader.next_rows() {
                Ok(Some(rows)) => batches.send(rows)?,
                Ok(None) => return ControlFlow::Continue(()),
                Err(problem) => return batches.send(input.skipped(Some(reader.record), None, problem, &[])),
            }
        }
    }
}

impl Content for Stretch {
    fn visit(&self, input: &Input<'_>, only: &Only, visit: Visit<'_>) -> Result<()> {
        let records = self.first_record..self.first_record + self.rows.len() as u64;
        for wanted in only.stretches(records, BATCH_ROWS as u64) {
            let row = |record: u64| usize::try_from(record - self.first_record).unwrap_or(usize::MAX);
            let stretch = self.part(row(wanted.start)..row(wanted.end));
            let mut reader = RowReader::new(&stretch);
            loop {
                match reader.next_rows() {
                    Ok(Some(rows)) => rows.visit(input, only, visit)?,
                    Ok(None) => break,
                    Err(problem) => {
                        let skipped = input.skipped(Some(reader.record), None, problem, &[]);
                        visit(Err(NotAPage::Skipped(skipped)))?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reads the rows of a stretch.
struct RowReader<'s> {
    stretch: &'s Stretch,
    reader: Option<ParquetRecordBatchReader>,
    /// The record of the next row.
    record: u64,
}

impl RowReader<'_> {
    fn new(stretch: &Stretch) -> RowReader<'_> {
        RowReader { stretch, reader: None, record: stretch.first_record }
    }

    /// The next rows; none at the end.
    fn next_rows(&mut self) -> Result<Option<Rows>, Problem> {
        let Stretch { file, group, rows, .. } = self.stretch;
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => {
                let open = || {
                    let builder =
                        ParquetRecordBatchReaderBuilder::new_with_metadata(file.file.clone(), file.metadata.clone());
                    let selectors = vec![RowSelector::skip(rows.start), RowSelector::select(rows.len())];
                    let builder =
                        builder.with_row_groups(vec![*group]).with_row_selection(RowSelection::from(selectors));
                    builder.with_projection(file.mask.clone()).with_batch_size(BATCH_ROWS).build()
                };
                self.reader.insert(guarded(open)?.map_err(|error| damaged(&error))?)
            }
        };
        let Some(batch) = guarded(|| reader.next())? else {
            let missing = (self.stretch.first_record + rows.len() as u64).saturating_sub(self.record);
            return if missing == 0 { Ok(None) } else { Err(damaged(&format!("{missing} rows are not there"))) };
        };
        let batch: RecordBatch = batch.map_err(|error| damaged(&error))?;
        let rows = file.columns.rows(&batch, self.record);
        self.record += batch.num_rows() as u64;
        Ok(Some(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{PageId, SourceId};
    use crate::read::{Corpus, ReadConfig, Source, Wanted, WantedRecord};
    use arrow_array::{ArrayRef, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::{EnabledStatistics, WriterProperties};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use std::ops::ControlFlow;

    fn file(rows: usize, group: usize, has_index: bool) -> Vec<u8> {
        let column = |name: fn(usize) -> String| -> ArrayRef {
            Arc::new((0..rows).map(|n| Some(name(n))).collect::<StringArray>())
        };
        let columns = [("id", column(|n| format!("r{n}"))), ("text", column(|n| format!("the text of row {n}")))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(group))
            .set_data_page_row_count_limit(700)
            .set_write_batch_size(100)
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(!has_index);
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    fn corpus(file: Vec<u8>) -> Corpus {
        let source = Source::in_memory("a.parquet", file, None).unwrap();
        Corpus::new(vec![source], &ReadConfig::default())
    }

    /// The ids of all pages with the numbers of their records, and how many records were skipped.
    fn read(file: Vec<u8>) -> (Vec<(String, u64)>, u64) {
        let (corpus, mut found) = (corpus(file), Vec::new());
        let scanned = corpus.scan().threads(3).for_each(
            || (),
            |(), page| Ok(page.id.map(|id| (id.into_owned(), page.record))),
            |row| {
                found.push(row);
                Ok(ControlFlow::Continue(()))
            },
        );
        (found, scanned.unwrap().skipped)
    }

    fn row(number: usize) -> (String, u64) {
        (format!("r{number}"), number as u64 + 1)
    }

    #[test]
    fn stretches_of_groups_of_every_size_give_all_rows_in_order() {
        for (rows, group) in [(1, 10), (BATCH_ROWS, BATCH_ROWS), (40_000, 100_000), (40_000, 17_000), (9_000, 999)] {
            for has_index in [true, false] {
                let found = read(file(rows, group, has_index));
                assert!(found == ((0..rows).map(row).collect(), 0), "{rows} rows in groups of {group}, {has_index}");
            }
        }
    }

    #[test]
    fn a_long_group_is_taken_apart_if_its_pages_are_known_and_gives_the_same_otherwise() {
        let rows = usize::try_from(MOST_UNINDEXED_ROWS).unwrap() + 5000;
        for has_index in [true, false] {
            let bytes = file(rows, rows, has_index);
            let corpus = corpus(bytes.clone());
            let source = &corpus.sources[0];
            let opened =
                RowFile::open(Chunks::new(&source.location).unwrap(), &corpus.names).map_err(|problem| problem.1);
            assert_eq!(opened.unwrap().stretch_rows(0, source.bytes).is_some(), has_index);
            assert!(read(bytes) == ((0..rows).map(row).collect(), 0), "{has_index}");
        }
    }

    #[test]
    fn chosen_rows_are_found_wherever_they_are() {
        let corpus = corpus(file(40_000, 25_000, true));
        let chosen: Vec<usize> =
            (0..40_000).step_by(7001).chain([39_999]).flat_map(|row| [row, row + 3, row + 2000]).collect();
        let chosen: Vec<usize> = chosen
            .into_iter()
            .filter(|&row| row < 40_000)
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        let records = chosen.iter().map(|&row| WantedRecord {
            source: SourceId::from_index(0),
            record: row as u64 + 1,
            offset: None,
            length: 1,
            page: PageId::from_index(row),
        });
        let (wanted, mut found) = (Wanted(records.collect()), Vec::new());
        let scan = corpus.scan().threads(2).for_each_of(
            &wanted,
            || (),
            |(), page, raw| Ok(raw.id.map(|id| (page.index(), id.into_owned()))),
            |row| {
                found.push(row);
                Ok(ControlFlow::Continue(()))
            },
        );
        scan.unwrap();
        assert_eq!(found, chosen.iter().map(|&row| (row, format!("r{row}"))).collect::<Vec<_>>());
    }

    #[test]
    fn a_damaged_page_costs_the_rows_behind_it_in_its_stretch_and_is_told() {
        let mut bytes = file(9_000, 3_000, true);
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes.clone())).unwrap();
        let at = usize::try_from(reader.metadata().row_group(1).column(1).data_page_offset()).unwrap();
        bytes[at..at + 16].fill(0xff);
        let (found, skipped) = read(bytes);
        assert_eq!(skipped, 1);
        assert!(found == (0..3_000).chain(6_000..9_000).map(row).collect::<Vec<_>>(), "{} rows", found.len());
    }
}
