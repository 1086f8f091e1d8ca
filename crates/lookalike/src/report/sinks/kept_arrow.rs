//! `kept/` for Arrow: the kept rows, as a file or a stream like the source, with its schema and packing.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::ArrowError;
use arrow_select::filter::filter_record_batch;

use crate::error::{Error, Result};
use crate::read::{ArrowStream, Source};

/// Copies the rows whose numbers, from 1, are in `kept`, ascending; returns how many were copied.
pub(super) fn copy_rows(source: &Source, target: &Path, kept: &[u64]) -> Result<u64> {
    let opened = source.location.open().and_then(|file| source.compression.decode(file));
    let reader = opened.map_err(Error::io(&source.path(), "read"))?;
    let Ok(mut stream) = ArrowStream::open(reader) else { return Ok(0) }; // reported as skipped
    // How batches are packed is known with the first of them.
    let mut next = stream.next_batch();
    let packing = IpcWriteOptions::default().try_with_compression(stream.packing);
    let options = packing.map_err(|error| Error::internal(format!("the rows cannot be packed: {error}")))?;
    let file = File::create(target).map_err(Error::io(target, "create"))?;
    let mut copied = 0;
    let fill = |file: &mut dyn Write| {
        let mut writer = Writer::new(file, &stream, options).map_err(io::Error::other)?;
        let mut row = 0u64;
        // Damage was reported when the rows were read; what is missing behind it is noticed by its number.
        while let Ok(Some(batch)) = next {
            let rows = row + 1..row + 1 + batch.num_rows() as u64;
            let mask: BooleanArray = rows.map(|number| Some(kept.binary_search(&number).is_ok())).collect();
            row += batch.num_rows() as u64;
            let filtered = filter_record_batch(&batch, &mask).map_err(io::Error::other)?;
            copied += filtered.num_rows() as u64;
            if filtered.num_rows() > 0 {
                writer.write(&filtered).map_err(io::Error::other)?;
            }
            next = stream.next_batch();
        }
        writer.finish().map_err(io::Error::other)
    };
    source.compression.write(file, fill).map_err(Error::io(target, "write"))?;
    Ok(copied)
}

enum Writer<W: Write> {
    File(FileWriter<W>),
    Stream(StreamWriter<W>),
}

impl<W: Write> Writer<W> {
    fn new(out: W, stream: &ArrowStream<'_>, options: IpcWriteOptions) -> Result<Writer<W>, ArrowError> {
        Ok(if stream.is_file {
            Writer::File(FileWriter::try_new_with_options(out, &stream.schema, options)?)
        } else {
            Writer::Stream(StreamWriter::try_new_with_options(out, &stream.schema, options)?)
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Writer::File(writer) => writer.write(batch),
            Writer::Stream(writer) => writer.write(batch),
        }
    }

    fn finish(&mut self) -> Result<(), ArrowError> {
        match self {
            Writer::File(writer) => writer.finish(),
            Writer::Stream(writer) => writer.finish(),
        }
    }
}
