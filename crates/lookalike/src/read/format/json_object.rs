//! A JSON object → a record.
//!
//! In: the bytes of one object. Out: the fields that have a role, borrowed wherever they have no escapes; the others are
//! skipped without allocation.

mod plain;

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Result, SkipKind};
use crate::read::fields::{FieldNames, Leads, NameLeft, Preference, Role};
use crate::read::format::fielded::{FieldedRecord, join};
use crate::read::format::json_text::text_of;
use crate::read::format::reader::Problem;

/// Parses one object.
pub(super) fn parse<'a>(object: &'a [u8], names: &FieldNames) -> Result<FieldedRecord<'a>, Problem> {
    let Slots { found, null_text, .. } = match plain::slots(object, names) {
        Some(slots) => slots,
        None => slots(object, names)?,
    };
    let (mut texts, mut others) = (Vec::new(), [None, None, None, None, None]);
    for (&role, slot) in names.slots().iter().zip(found) {
        match (role, slot) {
            (_, None) => {}
            (Role::Text, Some(Found { value: Value::Text(text), is_html, .. })) => texts.push((text, is_html)),
            (Role::Text, Some(Found { value, .. })) => {
                let name = names.tried(Role::Text);
                let what = format!("the text field '{name}' is {}, not a string", value.kind());
                return Err((SkipKind::WrongType, what));
            }
            (role, Some(Found { value, .. })) => others[role as usize] = Some(value),
        }
    }
    if texts.is_empty() {
        return Err(match null_text {
            Some(name) => (SkipKind::MissingField, format!("no text: the field '{name}' is null (use `text_field`)")),
            None => names.no_text("field", &fields_of(object)),
        });
    }
    let [id, _, url, title, rank] = others;
    if let Some(value @ (Value::Bool | Value::Other(_))) = id {
        return Err((SkipKind::WrongType, format!("the id field is {}, not a string or number", value.kind())));
    }
    let (text, markup) = join(texts, names.read_as);
    Ok(FieldedRecord {
        id: id.and_then(Value::into_string),
        url: url.and_then(Value::into_string),
        title: title.and_then(Value::into_string),
        rank: names.ranked(rank.and_then(Value::into_string)),
        text,
        markup,
    })
}

/// The fields of any object, or what is wrong with it.
fn slots<'a>(object: &'a [u8], names: &FieldNames) -> Result<Slots<'a>, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(object);
    let slots = ObjectSeed { names }.deserialize(&mut deserializer);
    let slots = slots.and_then(|slots| deserializer.end().map(|()| slots)).map_err(|error| bad_json(object, &error))?;
    if slots.has_bad_escape
        && let Err(error) = serde_json::from_slice::<serde_json::Value>(object)
    {
        return Err(bad_json(object, &error));
    }
    Ok(slots)
}

fn bad_json(object: &[u8], error: &serde_json::Error) -> Problem {
    if let Err(utf8) = std::str::from_utf8(object) {
        return (SkipKind::InvalidUtf8, format!("invalid UTF-8 at byte {} of the record", utf8.valid_up_to()));
    }
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(text, _)| text).to_owned();
    let place = match error.line() {
        0 | 1 => format!("column {}", error.column()),
        line => format!("line {line}, column {}", error.column()),
    };
    (SkipKind::BadJson, format!("not a JSON object: {message} ({place})"))
}

/// The names of the fields in an object, those of objects in it with dots; for messages.
fn fields_of(object: &[u8]) -> Vec<String> {
    const DEEPEST: usize = 4;
    fn add(names: &mut Vec<String>, before: &str, object: &serde_json::Map<String, serde_json::Value>, depth: usize) {
        for (name, value) in object {
            let name = format!("{before}{name}");
            match value {
                serde_json::Value::Object(below) if depth < DEEPEST && !below.is_empty() => {
                    add(names, &format!("{name}."), below, depth + 1);
                }
                _ => names.push(name),
            }
        }
    }
    let mut names = Vec::new();
    if let Ok(object) = serde_json::from_slice(object) {
        add(&mut names, "", &object, 0);
    }
    names
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
    /// From the text of one JSON value; nothing if it is a string with an escape that means no character.
    fn from_raw(raw: &'a str) -> Option<Value<'a>> {
        Some(match raw.as_bytes().first() {
            Some(b'"') => Value::Text(text_of(raw)?),
            Some(b't' | b'f') => Value::Bool,
            Some(b'n') => Value::Null,
            Some(b'[') => Value::Other("a list"),
            Some(b'{') => Value::Other("an object"),
            _ => Value::Number(raw.to_owned()),
        })
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

/// A value, and what is found in it if it is an object that names lead into.
struct ValueSeed<'n, 's, 'de> {
    names: &'n FieldNames,
    below: &'n [NameLeft],
    slots: &'s mut Slots<'de>,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_, '_, 'de> {
    type Value = Value<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_, '_, 'de> {
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
        if self.below.is_empty() {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        } else {
            self.slots.take_fields(self.names, self.below, &mut map)?;
        }
        Ok(Value::Other("an object"))
    }
}

/// What was found for each slot of the names.
#[derive(Debug)]
struct Slots<'a> {
    found: Vec<Option<Found<'a>>>,
    /// A field for the text that is null.
    null_text: Option<String>,
    /// Whether a string has an escape that means no character.
    has_bad_escape: bool,
}

/// The best value so far.
#[derive(Debug)]
struct Found<'a> {
    value: Value<'a>,
    preference: Preference,
    /// Whether its field is called `html`.
    is_html: bool,
}

/// What a field is wanted for: slots, and names that lead into it.
struct Wanted {
    here: Vec<(usize, Preference)>,
    below: Vec<NameLeft>,
}

impl Wanted {
    /// The field `name`, where the names in `wanted` are looked for.
    fn new(names: &FieldNames, wanted: &[NameLeft], name: &str) -> Wanted {
        let (mut here, mut below) = (Vec::new(), Vec::new());
        for &left in wanted {
            match names.leads(left, name) {
                Some(Leads::Here { slot, preference }) => here.push((slot, preference)),
                Some(Leads::Below(left)) => below.push(left),
                None => {}
            }
        }
        Wanted { here, below }
    }

    fn is_for(&self, names: &FieldNames, role: Role) -> bool {
        self.here.iter().any(|row| names.slots()[row.0] == role)
    }

    /// Whether the value is taken as it stands in JSON.
    fn is_raw(&self, names: &FieldNames) -> bool {
        self.is_for(names, Role::Id) || self.is_for(names, Role::Text)
    }
}

impl<'de> Slots<'de> {
    /// None has been found yet.
    fn new(names: &FieldNames) -> Slots<'de> {
        Slots { found: names.slots().iter().map(|_| None).collect(), null_text: None, has_bad_escape: false }
    }

    /// Takes the fields of an object that names lead to.
    fn take_fields<A: MapAccess<'de>>(
        &mut self,
        names: &FieldNames,
        wanted: &[NameLeft],
        map: &mut A,
    ) -> Result<(), A::Error> {
        while let Some(Key(name)) = map.next_key()? {
            let wanted = Wanted::new(names, wanted, &name);
            if wanted.here.is_empty() {
                if wanted.below.is_empty() {
                    map.next_value::<IgnoredAny>()?;
                } else {
                    map.next_value_seed(ValueSeed { names, below: &wanted.below, slots: self })?;
                }
                continue;
            }
            // An id that is a number keeps its digits; as a number it could lose some. A text is not copied more than once.
            let value = if wanted.below.is_empty() && wanted.is_raw(names) {
                let value = Value::from_raw(map.next_value::<&RawValue>()?.get());
                self.has_bad_escape |= value.is_none() && wanted.is_for(names, Role::Text);
                value.unwrap_or(Value::Null)
            } else {
                map.next_value_seed(ValueSeed { names, below: &wanted.below, slots: self })?
            };
            self.take_all(names, wanted.here, &name, value);
        }
        Ok(())
    }

    /// Takes a value for all slots that want it.
    fn take_all(&mut self, names: &FieldNames, mut here: Vec<(usize, Preference)>, name: &str, value: Value<'de>) {
        let Some(last) = here.pop() else { return };
        for (slot, preference) in here {
            self.take(names, slot, preference, name, value.clone());
        }
        self.take(names, last.0, last.1, name, value);
    }

    fn take(&mut self, names: &FieldNames, slot: usize, preference: Preference, name: &str, value: Value<'de>) {
        if matches!(value, Value::Null) {
            // The same as not being there.
            if names.slots()[slot] == Role::Text {
                self.null_text.get_or_insert_with(|| name.to_owned());
            }
            return;
        }
        let found = &mut self.found[slot];
        if found.as_ref().is_none_or(|known| preference < known.preference) {
            *found = Some(Found { value, preference, is_html: name == "html" });
        }
    }
}

struct ObjectSeed<'n> {
    names: &'n FieldNames,
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_> {
    type Value = Slots<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Slots<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectSeed<'_> {
    type Value = Slots<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Slots<'de>, A::Error> {
        let mut slots = Slots::new(self.names);
        slots.take_fields(self.names, self.names.top(), &mut map)?;
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
    use crate::page::Markup;
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

    fn with_text(fields: &str) -> FieldNames {
        FieldNames::new(&Fields { text: Some(fields.to_owned()), ..Fields::default() }, RankField::None)
    }

    #[test]
    fn names_lead_into_objects_and_a_field_of_that_very_name_comes_first() {
        let text = |line: &str, name: &str| {
            parse(line.as_bytes(), &with_text(name)).map(|record| record.text.into_owned()).map_err(|problem| problem.1)
        };
        let nested = r#"{"doc": {"x": 1, "body": {"text": "deep", "y": [{}]}, "body.html": "half"}, "z": 2}"#;
        assert_eq!(text(nested, "doc.body.text").as_deref(), Ok("deep"));
        assert_eq!(text(nested, "doc.body.html").as_deref(), Ok("half"));
        for literal in [r#"{"a.b": "literal", "a": {"b": "deep"}}"#, r#"{"a": {"b": "deep"}, "a.b": "literal"}"#] {
            assert_eq!(text(literal, "a.b").as_deref(), Ok("literal"));
        }
        let reason = text(nested, "doc.body").unwrap_err();
        assert_eq!(reason, "the text field 'doc.body' is an object, not a string");
        let reason = text(nested, "doc.text").unwrap_err();
        assert_eq!(
            reason,
            "no text: there is no field doc.text; there are doc.body.text, doc.body.y, doc.body.html, doc.x, z (use `text_field`)"
        );
    }

    #[test]
    fn several_texts_are_joined_in_the_order_in_which_they_were_named() {
        let line = br#"{"id": "7", "text": "body", "meta": {"lead": "lead"}, "title": "head", "note": null}"#;
        let record = parse(line, &with_text("title, meta.lead,text,note,absent")).unwrap();
        assert_eq!((record.text.as_ref(), record.title.as_deref()), ("head\n\nlead\n\nbody", Some("head")));
        assert_eq!(parse(line, &with_text("note,absent")).unwrap_err().0, SkipKind::MissingField);
    }

    #[test]
    fn null_is_called_null() {
        let (kind, reason) = parse(br#"{"id": 1, "text": null}"#, &names(RankField::None)).unwrap_err();
        assert_eq!(kind, SkipKind::MissingField);
        assert_eq!(reason, "no text: the field 'text' is null (use `text_field`)");
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
        let value = |line: &[u8]| parse(line, &names(rank)).unwrap().rank.value;
        assert_eq!(value(br#"{"text": "", "score": 2.5}"#), Some(2.5));
        assert_eq!(value(br#"{"text": "", "score": "3"}"#), Some(3.0));
        assert_eq!(value(br#"{"text": "", "score": "high"}"#), None);
        assert_eq!(value(br#"{"text": ""}"#), None);
        let by_id = RankField::Number("id");
        let line = parse(br#"{"text": "", "id": 12}"#, &names(by_id)).unwrap();
        assert_eq!((line.id.as_deref(), line.rank.value), (Some("12"), Some(12.0)));
    }
}
