//! A JSON object a line.

use std::ops::ControlFlow;

use memchr::{memchr, memchr_iter, memrchr};

use crate::error::{Result, SkipKind};
use crate::read::WantedRecord;
use crate::read::format::fielded::emit;
use crate::read::format::json::{Shape, shape};
use crate::read::format::reader::{Annotations, Description, Input, Keeping, Likeness, Reader};
use crate::read::format::{Format, json_object};
use crate::read::split::batch::{BatchSender, Content, Only, Place, Visit, visit_places};
use crate::read::split::buffer::Buffer;
use crate::read::split::stream::Stream;

/// JSON lines.
pub(super) struct Jsonl;

impl Reader for Jsonl {
    fn description(&self) -> Description {
        Description { name: "jsonl", endings: &["jsonl", "ndjson"], what: "a JSON object a line" }
    }

    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String> {
        Ok((shape(head) == Some(Shape::Lines)).then_some(Likeness::Signature))
    }

    fn rather(&self, head: &[u8]) -> Option<Format> {
        (shape(head) == Some(Shape::Documents)).then_some(Format::JSON)
    }

    fn split(&self, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        let mut pieces = input.pieces_or_skip(batches)?;
        let mut record = 1;
        pieces.fill();
        if let Some(lines) = lines_of_something_else(&pieces.buffer) {
            let reason = format!(
                "not JSON lines: none of the first {lines} lines is an object; the file was not read (use `format` to say what it is)"
            );
            return batches.send(input.skipped(None, Some(0), (SkipKind::BadJson, reason), &pieces.buffer));
        }
        loop {
            let whole = match pieces.state {
                Stream::Ended => pieces.buffer.len(),
                _ => memrchr(b'\n', &pieces.buffer).map_or(0, |at| at + 1),
            };
            if whole > 0 {
                let offset = pieces.offset;
                let bytes = pieces.take(whole);
                let count = memchr_iter(b'\n', &bytes).count() as u64;
                batches.send(Lines { bytes, first_record: record, offset })?;
                record += count;
            } else if pieces.buffer.len() > input.most_bytes() && matches!(pieces.state, Stream::Open) {
                let next_line = |bytes: &[u8]| memchr(b'\n', bytes).map(|at| at + 1);
                batches.send(input.skip_record(record, &mut pieces, 0, next_line))?;
                record += 1;
            }
            match &pieces.state {
                Stream::Open => pieces.fill(),
                Stream::Ended if pieces.buffer.is_empty() => return ControlFlow::Continue(()),
                Stream::Ended => {}
                Stream::Broken(error) => return batches.send(input.damaged(record, &pieces, error)),
            }
        }
    }

    fn seek(&self, _: &Input<'_>, records: &[WantedRecord], batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        batches.send_places(records, LinesAtPlaces)
    }

    fn keeping(&self, _: &Input<'_>) -> Keeping {
        Keeping::Records { header_bytes: 0 }
    }

    fn annotations(&self) -> Option<Annotations> {
        Some(Annotations::Object)
    }
}

/// Lines at the start of a file that are looked at, and how many there must be before it is given up.
const TRIED_LINES: usize = 1000;
const FEWEST_LINES: usize = 10;

/// How many lines were tried, if none of them is an object, whatever may be wrong with it.
fn lines_of_something_else(bytes: &[u8]) -> Option<usize> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut count = 0;
    for line in bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
        if line.starts_with(b"{") && line.ends_with(b"}") {
            return None;
        }
        count += 1;
        if count == TRIED_LINES {
            break;
        }
    }
    (count >= FEWEST_LINES).then_some(count)
}

struct Lines {
    bytes: Buffer,
    first_record: u64,
    offset: u64,
}

impl Content for Lines {
    fn visit(&self, input: &Input<'_>, only: &Only, visit: Visit<'_>) -> Result<()> {
        let Lines { bytes, first_record, offset } = self;
        let (mut at, mut record) = (0, *first_record);
        while at < bytes.len() {
            let end = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length + 1);
            if only.contains(record) {
                let place = Place { record, offset: Some(offset + at as u64), bytes: &bytes[at..end] };
                visit_line(input, &place, visit)?;
            }
            at = end;
            record += 1;
        }
        Ok(())
    }
}

struct LinesAtPlaces(Vec<WantedRecord>);

impl Content for LinesAtPlaces {
    fn visit(&self, input: &Input<'_>, _: &Only, visit: Visit<'_>) -> Result<()> {
        visit_places(input, &self.0, visit, |place, visit| visit_line(input, place, visit))
    }
}

fn visit_line(input: &Input<'_>, place: &Place<'_>, visit: Visit<'_>) -> Result<()> {
    let mut line = place.bytes.trim_ascii();
    if place.offset == Some(0) {
        line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    }
    if line.is_empty() {
        return Ok(());
    }
    emit(input, place, place.bytes.len() as u64, || json_object::parse(line, input.names()), visit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_something_else_is_told_from_damaged_lines() {
        let text = b"Once upon a time\n".repeat(50);
        assert_eq!(lines_of_something_else(&text), Some(50));
        assert_eq!(lines_of_something_else(&[&text[..], b"{\"text\": \xff}\n"].concat()), None);
        assert_eq!(lines_of_something_else(b"garbage\n{\"text\": \"\n"), None, "too few to be sure");
        assert_eq!(lines_of_something_else(b""), None);
    }
}
