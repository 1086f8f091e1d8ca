//! JSON documents: one array of objects, or objects one after the other, over as many lines as they like.
//!
//! In: a source. Out: batches of whole objects with their places, found by counting brackets outside strings, so that
//! many threads can parse them and their bytes can be copied. What is no object is a record that cannot be used. Behind
//! an object that never ends, reading goes on with the next one that begins a line in the same column.

use std::ops::{ControlFlow, Range};

use memchr::{memchr, memchr2, memmem, memrchr};

use crate::error::{Result, SkipKind};
use crate::read::WantedRecord;
use crate::read::format::fielded::emit;
use crate::read::format::reader::{Annotations, Description, Input, Keeping, Likeness, Reader, text_start};
use crate::read::format::{Format, json_object};
use crate::read::split::batch::{BatchSender, Content, Cut, Only, Place, Visit, visit_places};
use crate::read::split::buffer::Buffer;
use crate::read::split::stream::{Pieces, Stream};

/// JSON documents.
pub(super) struct Json;

impl Reader for Json {
    fn description(&self) -> Description {
        Description {
            name: "json",
            endings: &["json"],
            what: "one JSON array of objects, or objects over several lines",
        }
    }

    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String> {
        Ok((shape(head) == Some(Shape::Documents)).then_some(Likeness::Signature))
    }

    fn rather(&self, head: &[u8]) -> Option<Format> {
        (shape(head) == Some(Shape::Lines)).then_some(Format::JSONL)
    }

    fn split(&self, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        let mut pieces = input.pieces_or_skip(batches)?;
        let mut finder = Finder::default();
        let (mut record, mut odd) = (1, 0);
        let mut is_first = true;
        loop {
            pieces.fill();
            let is_end = !matches!(pieces.state, Stream::Open);
            if std::mem::take(&mut is_first) && is_something_else(&pieces.buffer) {
                let reason = "not JSON: neither an object nor an array of objects begins here; the file was not read";
                let problem = (SkipKind::BadJson, reason.to_owned());
                return batches.send(input.skipped(None, Some(0), problem, &pieces.buffer));
            }
            let mut cuts = Vec::new();
            while let Some(element) = finder.next(&pieces.buffer, is_end) {
                let (from, to) = (element.start, element.end);
                odd += usize::from(pieces.buffer[from] != b'{');
                let (offset, length) = (Some(pieces.offset + from as u64), (to - from) as u64);
                cuts.push(Cut { from, to, record, offset, length, cut_short: None });
                record += 1;
                if odd > MOST_ODD {
                    break;
                }
            }
            let bytes = pieces.take(finder.forget());
            if !cuts.is_empty() {
                batches.send(Objects { bytes, cuts })?;
            }
            if odd > MOST_ODD {
                let reason = "too much here is no JSON object; the rest of the file was not read".to_owned();
                return batches.send(input.skipped(
                    Some(record),
                    Some(pieces.offset),
                    (SkipKind::BadJson, reason),
                    &pieces.buffer,
                ));
            }
            match &pieces.state {
                Stream::Open if finder.is_inside() && pieces.buffer.len() > input.most_bytes() => {
                    let scanned = finder.at;
                    let end = |bytes: &[u8]| finder.end_of_object(bytes);
                    batches.send(input.skip_record(record, &mut pieces, scanned, end))?;
                    finder = Finder::default();
                    record += 1;
                }
                Stream::Open => {}
                Stream::Broken(error) => return batches.send(input.damaged(record, &pieces, error)),
                Stream::Ended if !finder.is_inside() => return ControlFlow::Continue(()),
                Stream::Ended => {
                    odd += 1;
                    let problem = (SkipKind::BadJson, "this object has no end".to_owned());
                    batches.send(input.skipped(Some(record), Some(pieces.offset), problem, &pieces.buffer))?;
                    record += 1;
                    let Some(next) = finder.next_like(&pieces.buffer) else { return ControlFlow::Continue(()) };
                    pieces.take(next);
                    finder = Finder { column: finder.column, ..Finder::default() };
                }
            }
        }
    }

    fn seek(&self, _: &Input<'_>, records: &[WantedRecord], batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        batches.send_places(records, ObjectsAtPlaces)
    }

    fn keeping(&self, input: &Input<'_>) -> Keeping {
        input.pieces().map_or(Keeping::Nothing, |pieces| Keeping::Framed(Frame::of(input, pieces)))
    }

    fn annotations(&self) -> Option<Annotations> {
        Some(Annotations::Object)
    }
}

/// Elements of a file that are no objects, after which the rest of it is given up.
const MOST_ODD: usize = 100;

/// How a file of JSON is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// An object a line.
    Lines,
    /// Anything else: an array, objects over several lines, or several in one.
    Documents,
}

/// The layout, as far as the first bytes show it.
pub(super) fn shape(head: &[u8]) -> Option<Shape> {
    let start = text_start(head);
    let object = match start.first()? {
        b'[' => start[1..].trim_ascii_start(),
        b'{' => start,
        _ => return None,
    };
    let inside = object.strip_prefix(b"{")?.trim_ascii_start();
    if !matches!(inside.first(), Some(b'"' | b'}') | None) {
        return None;
    }
    if start[0] == b'[' {
        return Some(Shape::Documents);
    }
    let line = memchr(b'\n', start).unwrap_or(start.len());
    let mut finder = Finder::default();
    let is_documents = match finder.next(&start[..line], false) {
        // Another object in the same line.
        Some(first) => start[first.end..line].trim_ascii_start().starts_with(b"{"),
        // A line of JSON lines can be cut off; then the next one is an object again.
        None if finder.in_string || line == start.len() => false,
        None => !start[line..].trim_ascii_start().starts_with(b"{"),
    };
    Some(if is_documents { Shape::Documents } else { Shape::Lines })
}

/// Whether the first bytes cannot be those of objects.
fn is_something_else(bytes: &[u8]) -> bool {
    let start = text_start(bytes);
    let first = start.strip_prefix(b"[").unwrap_or(start).trim_ascii_start();
    let is_empty_array = start.starts_with(b"[") && first.starts_with(b"]");
    !is_empty_array && !matches!(first.first(), None | Some(b'{'))
}

/// Finds the elements of an array, or the objects of a stream.
#[derive(Debug, Clone, Default)]
struct Finder {
    /// Everything before this is looked at.
    at: usize,
    /// Where the element under way begins.
    start: Option<usize>,
    /// Brackets that are open in it.
    depth: usize,
    in_string: bool,
    /// Whether a backslash stands before the next byte.
    is_escaped: bool,
    /// The column of the first object, by which others are recognised.
    column: Option<usize>,
}

impl Finder {
    /// The next element in `bytes`. `is_end`: nothing comes behind them.
    fn next(&mut self, bytes: &[u8], is_end: bool) -> Option<Range<usize>> {
        loop {
            if let Some(start) = self.start {
                let end = match self.depth {
                    0 => self.end_of_odd(bytes, is_end)?,
                    _ => {
                        self.at
                            + self.end_of_object(&bytes[self.at..]).or_else(|| {
                                self.at = bytes.len();
                                None
                            })?
                    }
                };
                (self.at, self.start) = (end, None);
                return Some(start..end);
            }
            let byte = *bytes.get(self.at)?;
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b'[' | b']' => self.at += 1,
                b'{' => {
                    (self.start, self.depth) = (Some(self.at), 1);
                    self.column.get_or_insert(column(bytes, self.at));
                    self.at += 1;
                }
                0xef if self.at == 0 && bytes.starts_with(b"\xef\xbb\xbf") => self.at += 3,
                _ => self.start = Some(self.at),
            }
        }
    }

    /// Where the object under way ends in the bytes that come next.
    fn end_of_object(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if std::mem::take(&mut self.is_escaped) {
                at += 1;
                continue;
            }
            if self.in_string {
                at += memchr2(b'"', b'\\', &bytes[at..])?;
                match bytes[at] {
                    b'"' => self.in_string = false,
                    _ => self.is_escaped = true,
                }
                at += 1;
                continue;
            }
            at += 1;
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Where something that is no object ends.
    fn end_of_odd(&mut self, bytes: &[u8], is_end: bool) -> Option<usize> {
        let is_string = bytes[self.at] == b'"';
        let (mut is_escaped, from) = (false, self.at + 1);
        for (at, &byte) in (from..).zip(&bytes[from..]) {
            match byte {
                b'\n' => return Some(at),
                _ if std::mem::take(&mut is_escaped) => {}
                b'\\' => is_escaped = is_string,
                b'"' if is_string => return Some(at + 1),
                b',' | b'{' | b'[' | b']' if !is_string => return Some(at),
                _ => {}
            }
        }
        is_end.then_some(bytes.len())
    }

    fn is_inside(&self) -> bool {
        self.start.is_some()
    }

    /// How many bytes are done with; the places of the others begin there from now on.
    fn forget(&mut self) -> usize {
        let done = self.start.unwrap_or(self.at);
        self.at -= done;
        self.start = self.start.map(|_| 0);
        done
    }

    /// Behind the start of an object that has no end: the next one that begins a line in the same column.
    fn next_like(&self, bytes: &[u8]) -> Option<usize> {
        let mark = [&b"\n"[..], &b" ".repeat(self.column?), b"{"].concat();
        memmem::find(bytes, &mark).map(|found| found + mark.len() - 1)
    }
}

/// How many bytes of its line stand before a place.
fn column(bytes: &[u8], at: usize) -> usize {
    at - memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1)
}

/// What stands around and between the kept objects of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) before: Vec<u8>,
    pub(crate) between: Vec<u8>,
    pub(crate) after: &'static [u8],
}

impl Frame {
    /// As in the source, where that is valid JSON.
    fn of(input: &Input<'_>, mut pieces: Pieces<'_>) -> Frame {
        let mut finder = Finder::default();
        let mut found = Vec::new();
        loop {
            pieces.fill();
            let is_end = !matches!(pieces.state, Stream::Open);
            while found.len() < 2
                && let Some(element) = finder.next(&pieces.buffer, is_end)
            {
                found.push(element);
            }
            if is_end || found.len() == 2 || pieces.buffer.len() > input.most_bytes() {
                break;
            }
        }
        let bytes = &pieces.buffer;
        let before = &bytes[..found.first().map_or(0, |first| first.start)];
        let is_array = text_start(bytes).starts_with(b"[");
        let only = |bytes: &[u8], mark: &[u8]| bytes.trim_ascii() == mark;
        let (bracket, comma, end): (&[u8], &[u8], &'static [u8]) = match (is_array, before.contains(&b'\n')) {
            (true, true) => (b"[", b",", b"\n]\n"),
            (true, false) => (b"[", b",", b"]\n"),
            (false, _) => (b"", b"", b"\n"),
        };
        let before = if only(text_start(before), bracket) { before } else { bracket };
        let between = match found.as_slice() {
            [first, second] if only(&bytes[first.end..second.start], comma) => &bytes[first.end..second.start],
            _ => &[comma, b"\n"].concat(),
        };
        Frame { before: before.to_vec(), between: between.to_vec(), after: end }
    }
}

struct Objects {
    bytes: Buffer,
    cuts: Vec<Cut>,
}

impl Content for Objects {
    fn visit(&self, input: &Input<'_>, only: &Only, visit: Visit<'_>) -> Result<()> {
        let wanted = self.cuts.iter().filter(|cut| only.contains(cut.record));
        { wanted }.try_for_each(|cut| {
            let place = Place { record: cut.record, offset: cut.offset, bytes: &self.bytes[cut.from..cut.to] };
            visit_object(input, &place, visit)
        })
    }
}

struct ObjectsAtPlaces(Vec<WantedRecord>);

impl Content for ObjectsAtPlaces {
    fn visit(&self, input: &Input<'_>, _: &Only, visit: Visit<'_>) -> Result<()> {
        visit_places(input, &self.0, visit, |place, visit| visit_object(input, place, visit))
    }
}

fn visit_object(input: &Input<'_>, place: &Place<'_>, visit: Visit<'_>) -> Result<()> {
    emit(input, place, place.bytes.len() as u64, || json_object::parse(place.bytes, input.names()), visit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(bytes: &[u8]) -> Vec<String> {
        let mut finder = Finder::default();
        let found = std::iter::from_fn(|| finder.next(bytes, true));
        found.map(|range| String::from_utf8_lossy(&bytes[range]).into_owned()).collect()
    }

    #[test]
    fn elements_are_found_whatever_stands_in_their_strings() {
        assert_eq!(
            elements(br#" [{"a": "}\"]{\\"}, {"b": [{}, {"c": 1}]}]"#),
            [r#"{"a": "}\"]{\\"}"#, r#"{"b": [{}, {"c": 1}]}"#]
        );
        assert_eq!(elements(b"{\n  \"a\": 1\n}\n{\"b\": 2}{}"), ["{\n  \"a\": 1\n}", "{\"b\": 2}", "{}"]);
        assert_eq!(elements(b"[1, {}, \"x\"]"), ["1", "{}", "\"x\""]);
        assert_eq!(elements(b"[\"{\\\"\", {}, \"\n{}]"), ["\"{\\\"\"", "{}", "\"", "{}"]);
        assert_eq!(elements(b"[]"), [""; 0]);
    }

    #[test]
    fn elements_are_the_same_however_the_bytes_arrive() {
        let bytes = br#"[{"a": "x\\\"}", "b": {"c": [1, 2]}}, null, {"d": "\\"},{"e":1} ]"#;
        let expected = elements(bytes);
        for step in 1..bytes.len() {
            let (mut finder, mut buffer, mut found) = (Finder::default(), Vec::new(), Vec::new());
            for chunk in bytes.chunks(step) {
                buffer.extend_from_slice(chunk);
                while let Some(range) = finder.next(&buffer, false) {
                    found.push(String::from_utf8_lossy(&buffer[range]).into_owned());
                }
                buffer.drain(..finder.forget());
            }
            assert_eq!(found, expected, "{step}");
        }
    }

    #[test]
    fn lines_are_told_from_documents() {
        let shape = |head: &str| shape(head.as_bytes());
        for lines in [
            "{\"a\": 1}\n{\"b\": 2}\n",
            "{\"a\": 1",
            "{\"text\": \"cut\n{\"b\": 2}",
            "{\"a\": 1,\n{\"b\": 2}\n",
            "{}\nx",
        ] {
            assert_eq!(shape(lines), Some(Shape::Lines), "{lines}");
        }
        for documents in
            ["[{\"a\": 1}]", "\u{feff} [\n  {\n", "{\n  \"a\": 1", "{\"a\": 1}{\"b\": 2}", "{\"a\": [\n1]}"]
        {
            assert_eq!(shape(documents), Some(Shape::Documents), "{documents}");
        }
        for other in ["[Music] Once", "{brackets}", "x", "", "[1, 2]"] {
            assert_eq!(shape(other), None, "{other}");
        }
    }
}
