//! Apache Parquet, a page a row.
//!
//! In: a file. Out: batches of rows with only the columns that have a role.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::error::{Result, SkipKind};
use crate::read::Chunks;
use crate::read::fields::FieldNames;
use crate::read::format::reader::{Annotations, Description, Input, Keeping, Likeness, Problem, Reader};
use crate::read::format::rows::{BATCH_ROWS, RowColumns, Rows};
use crate::read::source::file::Location;
use crate::read::split::batch::BatchSender;

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
        let mut reader = match RowReader::open(file, input.names()) {
            Ok(reader) => reader,
            Err(problem) => return batches.send(input.skipped(None, None, problem, &[])),
        };
        let mut record = 1;
        loop {
            match reader.next_rows(record) {
                Ok(Some((rows, count))) => {
                    batches.send(rows)?;
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

    fn annotations(&self) -> Option<Annotations> {
        Some(Annotations::Rows)
    }
}

/// Reads the columns that have a role.
struct RowReader {
    reader: ParquetRecordBatchReader,
    columns: RowColumns,
}

fn damaged(error: &dyn std::fmt::Display) -> Problem {
    (SkipKind::Damaged, format!("cannot be read as Parquet: {error}"))
}

impl RowReader {
    fn open(file: Chunks, names: &FieldNames) -> Result<RowReader, Problem> {
        let builder = guarded(|| open_file(file))?.map_err(|error| damaged(&error))?;
        let columns = RowColumns::find(builder.schema().fields(), names)?;
        let schema = builder.parquet_schema();
        let is_wanted = |leaf: &usize| {
            let column = schema.column(*leaf);
            columns.paths().any(|path| column.path().parts().starts_with(path))
        };
        let mask = ProjectionMask::leaves(schema, (0..schema.num_columns()).filter(is_wanted).collect::<Vec<_>>());
        let reader =
            builder.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(|error| damaged(&error))?;
        Ok(RowReader { reader, columns })
    }

    /// The next rows and how many they are; none at the end.
    fn next_rows(&mut self, first_record: u64) -> Result<Option<(Rows, u64)>, Problem> {
        let Some(batch) = guarded(|| self.reader.next())? else { return Ok(None) };
        let batch: RecordBatch = batch.map_err(|error| damaged(&error))?;
        Ok(Some((self.columns.rows(&batch, first_record), batch.num_rows() as u64)))
    }
}
