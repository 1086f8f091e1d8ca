//! A JSON object a line.
//!
//! In: one line. Out: a page whose strings are borrowed from the line wherever it has no escapes.
//! Only the fields that have a role are kept; the others are skipped without allocation.

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;

use memchr::{memchr, memchr_iter, memrchr};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Result, SkipKind};
use crate::page::Markup;
use crate::read::WantedRecord;
use crate::read::fields::{FieldNames, Role};
use crate::read::format::fielded::{FieldedRecord, emit};
use crate::read::format::reader::{Description, Input, Keeping, Likeness, Problem, Reader, text_start};
use crate::read::split::batch::{BatchSender, Content, Only, Place, Visit, visit_places};
use crate::read::split::buffer::Buffer;
use crate::read::split::stream::Stream;

/// JSON lines.
pub(super) struct Jsonl;

impl Reader for Jsonl {
    fn description(&self) -> Description {
        Description { name: "jsonl", endings: &["jsonl", "ndjson", "json"], what: "a JSON object a line" }
    }

    fn recognise(&self, head: &[u8]) -> Result<Option<Likeness>, String> {
        let start = text_start(head);
        let has_early = |byte: u8| memchr(byte, &start[..start.len().min(64)]).is_some();
        match start.first() {
            Some(b'[') if has_early(b'{') => {
                Err("is one JSON array; write one object a line instead (jq -c '.[]' FILE > FILE.jsonl)".to_owned())
            }
            Some(b'{') if has_early(b'"') => Ok(Some(Likeness::Signature)),
            _ => Ok(None),
        }
    }

    fn split(&self, input: &Input<'_>, batches: &mut BatchSender<'_, '_>) -> ControlFlow<()> {
        let mut pieces = input.pieces_or_skip(batches)?;
        let mut record = 1;
        loop {
            pieces.fill();
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
                Stream::Open => {}
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
    emit(input, place, place.bytes.len() as u64, || parse(line, input.names()), visit)
}

/// Parses one line.
fn parse<'a>(line: &'a [u8], names: &FieldNames) -> Result<FieldedRecord<'a>, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let fields =
        LineSeed { names }.deserialize(&mut deserializer).and_then(|fields| deserializer.end().map(|()| fields));
    let fields = fields.map_err(|error| match std::str::from_utf8(line) {
        Err(utf8) => (SkipKind::InvalidUtf8, format!("invalid UTF-8 at byte {} of the record", utf8.valid_up_to())),
        Ok(_) => {
            let column = error.column();
            let message = error.to_string();
            let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(text, _)| text).to_owned();
            (SkipKind::BadJson, format!("not a JSON object: {message} (column {column})"))
        }
    })?;
    let Slots { found, text_is_html } = fields;
    let [id, text, url, title, rank] = found.map(|slot| slot.map(|(value, _)| value));
    let text = match text {
        Some(Value::Text(text)) => text,
        None => {
            let tried = names.tried(Role::Text);
            let reason = format!("no text: none of the fields {tried} is there (use `text_field`)");
            return Err((SkipKind::MissingField, reason));
        }
        Some(other) => return Err((SkipKind::WrongType, format!("the text field is {}, not a string", other.kind()))),
    };
    if let Some(value @ (Value::Bool | Value::Other(_))) = id {
        return Err((SkipKind::WrongType, format!("the id field is {}, not a string or number", value.kind())));
    }
    Ok(FieldedRecord {
        id: id.and_then(Value::into_string),
        url: url.and_then(Value::into_string),
        title: title.and_then(Value::into_string),
        rank_value: rank.and_then(Value::into_string).and_then(|value| names.rank_value(&value)),
        text,
        markup: if text_is_html { Markup::Html } else { Markup::Unknown },
    })
}

/// A JSON value, as far as we care.
#[derive(Debug, Clone)]
enum Value<'a> {
    Text(Cow<'a, str>),
    Number(String),
    Bool,
    Null,
    Other(&'static str),
}

impl<'a> Value<'a> {
    /// From the text of one valid JSON value.
    fn from_raw(raw: &'a str) -> Value<'a> {
        match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str(raw).map_or(Value::Null, |Key(text)| Value::Text(text)),
            Some(b't' | b'f') => Value::Bool,
            Some(b'n') => Value::Null,
            Some(b'[') => Value::Other("a list"),
            Some(b'{') => Value::Other("an object"),
            _ => Value::Number(raw.to_owned()),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Number(_) => "a number",
            Value::Bool => "a boolean",
            Value::Null => "null",
            Value::Other(kind) => kind,
        }
    }

    fn into_string(self) -> Option<Cow<'a, str>> {
        match self {
            Value::Text(text) => Some(text),
            Value::Number(number) => Some(Cow::Owned(number)),
            Value::Bool | Value::Null | Value::Other(_) => None,
        }
    }
}

impl<'de> serde::Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value<'de>, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_string<E>(self, text: String) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(text)))
    }
    fn visit_bool<E>(self, _: bool) -> Result<Value<'de>, E> {
        Ok(Value::Bool)
    }
    fn visit_i64<E>(self, number: i64) -> Result<Value<'de>, E> {
        Ok(Value::Number(number.to_string()))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Value<'de>, E> {
        Ok(Value::Number(number.to_string()))
    }
    fn visit_f64<E>(self, number: f64) -> Result<Value<'de>, E> {
        Ok(Value::Number(number.to_string()))
    }
    fn visit_unit<E>(self) -> Result<Value<'de>, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other("a list"))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other("an object"))
    }
}

/// The best value found for each role, with the preference of the name it was found under.
#[derive(Default)]
struct Slots<'a> {
    found: [Option<(Value<'a>, usize)>; 5],
    /// Whether the field of the text is called `html`.
    text_is_html: bool,
}

struct LineSeed<'n> {
    names: &'n FieldNames,
}

impl<'de> DeserializeSeed<'de> for LineSeed<'_> {
    type Value = Slots<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Slots<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for LineSeed<'_> {
    type Value = Slots<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Slots<'de>, A::Error> {
        let mut slots = Slots::default();
        while let Some(Key(name)) = map.next_key()? {
            if self.names.roles(&name).next().is_none() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            // An id that is a number keeps its digits; as a number it could lose some.
            let is_id = self.names.roles(&name).any(|(role, _)| role == Role::Id);
            let value = if is_id { Value::from_raw(map.next_value::<&RawValue>()?.get()) } else { map.next_value()? };
            if matches!(value, Value::Null) {
                continue; // the same as not being there
            }
            for (role, preference) in self.names.roles(&name) {
                let slot = &mut slots.found[role as usize];
                if slot.as_ref().is_none_or(|(_, known)| preference < *known) {
                    *slot = Some((value.clone(), preference));
                    if role == Role::Text {
                        slots.text_is_html = name == "html";
                    }
                }
            }
        }
        Ok(slots)
    }
}

/// A key, borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key<'de>, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::fields::{Fields, RankField};

    fn names(rank: RankField<'_>) -> FieldNames {
        FieldNames::new(&Fields::default(), rank)
    }

    #[test]
    fn fields_are_found_in_any_order_among_others() {
        let line =
            br#"{"meta": {"text": [1, {}]}, "body": "late", "text": "a\nb", "id": 7, "url": "http://x", "n": null}"#;
        let line = parse(line, &names(RankField::None)).unwrap();
        assert_eq!(line.text, "a\nb");
        assert_eq!(line.id.as_deref(), Some("7"));
        assert_eq!(line.url.as_deref(), Some("http://x"));
        assert_eq!(line.markup, Markup::Unknown);
        assert_eq!(parse(br#"{"html": "<p>"}"#, &names(RankField::None)).unwrap().markup, Markup::Html);
    }

    #[test]
    fn a_field_can_have_two_roles_and_null_is_as_good_as_nothing() {
        let fields = Fields { id: Some("url".to_owned()), ..Fields::default() };
        let line =
            parse(br#"{"url": "http://x", "text": null, "content": "c"}"#, &FieldNames::new(&fields, RankField::None))
                .unwrap();
        assert_eq!(
            (line.id.as_deref(), line.url.as_deref(), line.text.as_ref()),
            (Some("http://x"), Some("http://x"), "c")
        );
    }

    #[test]
    fn ids_that_are_numbers_keep_their_digits() {
        for id in ["12345678901234567890123", "1.0", "-7", "1e3"] {
            let line = format!("{{\"id\": {id}, \"text\": \"t\"}}");
            assert_eq!(parse(line.as_bytes(), &names(RankField::None)).unwrap().id.as_deref(), Some(id));
        }
    }

    #[test]
    fn plain_strings_are_borrowed() {
        let line = parse(br#"{"text": "plain"}"#, &names(RankField::None)).unwrap();
        assert!(matches!(line.text, Cow::Borrowed(_)));
    }

    #[test]
    fn every_way_to_be_unusable_has_its_kind() {
        let kind = |line: &[u8]| parse(line, &names(RankField::None)).unwrap_err().0;
        assert_eq!(kind(b"{\"text\": "), SkipKind::BadJson);
        assert_eq!(kind(b"[1]"), SkipKind::BadJson);
        assert_eq!(kind(b"{\"text\": \"a\"} x"), SkipKind::BadJson);
        assert_eq!(kind(b"{\"id\": 1}"), SkipKind::MissingField);
        assert_eq!(kind(b"{\"text\": null}"), SkipKind::MissingField);
        assert_eq!(kind(b"{\"text\": 5}"), SkipKind::WrongType);
        assert_eq!(kind(b"{\"text\": [\"a\"]}"), SkipKind::WrongType);
        assert_eq!(kind(b"{\"text\": \"a\", \"id\": {}}"), SkipKind::WrongType);
        assert_eq!(kind(b"{\"text\": \"\xff\"}"), SkipKind::InvalidUtf8);
    }

    #[test]
    fn ranking_values_come_from_numbers_and_strings() {
        let rank = RankField::Number("score");
        let value = |line: &[u8]| parse(line, &names(rank)).unwrap().rank_value;
        assert_eq!(value(br#"{"text": "", "score": 2.5}"#), Some(2.5));
        assert_eq!(value(br#"{"text": "", "score": "3"}"#), Some(3.0));
        assert_eq!(value(br#"{"text": "", "score": "high"}"#), None);
        assert_eq!(value(br#"{"text": ""}"#), None);
        let by_id = RankField::Number("id");
        let line = parse(br#"{"text": "", "id": 12}"#, &names(by_id)).unwrap();
        assert_eq!((line.id.as_deref(), line.rank_value), (Some("12"), Some(12.0)));
    }
}
