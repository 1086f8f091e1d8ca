//! An object whose fields are plain, which most are: looked through once, 64 bytes at a time.
//!
//! In: the bytes of one object. Out: what was found in it; nothing where the object is not JSON, or where anything in it needs
//! a closer look (names that lead into objects, escapes in the names of fields): then serde_json reads it, and says what is wrong.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{Slots, Value, Wanted};
use crate::kernel::plain_json_end;
use crate::read::fields::FieldNames;
use crate::read::format::json_text::text_from;

/// The fields of a plain object.
pub(super) fn slots<'a>(object: &'a [u8], names: &FieldNames) -> Option<Slots<'a>> {
    let (mut slots, mut rest) = (Slots::new(names), Rest { bytes: object, at: 0 });
    rest.expect(b'{')?;
    if rest.peek()? == b'}' {
        rest.at += 1;
        return rest.is_over().then_some(slots);
    }
    loop {
        let name = rest.name()?;
        rest.expect(b':')?;
        let first = rest.peek()?;
        let wanted = Wanted::new(names, names.top(), name);
        if !wanted.below.is_empty() {
            return None;
        }
        if wanted.here.is_empty() {
            rest.skip_value()?;
        } else if first == b'"' {
            let (text, end) = text_from(object, rest.at + 1)?;
            rest.at = end;
            slots.take_all(names, wanted.here, name, Value::Text(text));
        } else if wanted.is_raw(names) {
            let value = Value::from_raw(rest.value::<&RawValue>()?.get())?;
            slots.take_all(names, wanted.here, name, value);
        } else {
            return None;
        }
        match rest.next()? {
            b',' => {}
            b'}' => return rest.is_over().then_some(slots),
            _ => return None,
        }
    }
}

/// What is left of an object.
struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// The same, taken.
    fn next(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.at += 1;
        byte
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    fn is_over(&mut self) -> bool {
        self.peek().is_none()
    }

    /// The name of a field, if it has no escapes.
    fn name(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let end = plain_json_end(self.bytes, self.at);
        let name = str::from_utf8(self.bytes.get(self.at..end)?).ok()?;
        self.at = end;
        self.expect(b'"').map(|()| name)
    }

    /// Passes a value that nobody wants.
    fn skip_value(&mut self) -> Option<()> {
        if self.bytes.get(self.at) == Some(&b'"') {
            let end = plain_json_end(self.bytes, self.at + 1);
            if self.bytes.get(end) == Some(&b'"') {
                self.at = end + 1;
                return Some(());
            }
        }
        self.value::<IgnoredAny>().map(drop)
    }

    /// Any value, as serde_json sees it.
    fn value<T: serde::Deserialize<'a>>(&mut self) -> Option<T> {
        let mut values = serde_json::Deserializer::from_slice(self.bytes.get(self.at..)?).into_iter::<T>();
        let value = values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::slots as any_slots;
    use super::*;
    use crate::read::fields::{Fields, RankField};
    use proptest::prelude::*;

    fn names() -> [FieldNames; 3] {
        let fields = |id: Option<&str>, text: Option<&str>| Fields {
            id: id.map(str::to_owned),
            text: text.map(str::to_owned),
            ..Fields::default()
        };
        [
            FieldNames::new(&fields(None, None), RankField::None),
            FieldNames::new(&fields(Some("url"), Some("a,b")), RankField::Number("score")),
            FieldNames::new(&fields(None, Some("a.b")), RankField::Date),
        ]
    }

    /// What is found here is what serde_json finds; says whether anything was.
    fn check(object: &[u8]) -> bool {
        let mut is_plain = false;
        for names in names() {
            let Some(found) = slots(object, &names) else { continue };
            is_plain = true;
            let Ok(expected) = any_slots(object, &names) else {
                panic!("not JSON: {}", String::from_utf8_lossy(object))
            };
            assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{}", String::from_utf8_lossy(object));
        }
        is_plain
    }

    #[test]
    fn plain_objects_are_read_here() {
        for object in [
            "{}",
            " { } \n",
            r#"{"text":"one","id":7,"more":[1,{"a":"]"}],"url":"http:\/\/x","n":null,"b":true,"f":-1.5e3}"#,
            r#"{"id" : "é" , "text" : "a \"b\" \\ \u00e9" , "x" : "\n" , "html":"<p>"}"#,
            r#"{"text":null,"content":"c","text":"again"}"#,
            r#"{"id":12345678901234567890123,"text":"t"}"#,
            r#"{"text":{"a":1}}"#,
        ] {
            assert!(check(object.as_bytes()), "{object}");
        }
    }

    #[test]
    fn what_is_not_json_is_left_to_serde_json() {
        for object in [
            "",
            "{",
            "[1]",
            "{\"text\":\"a\"} x",
            "{\"text\":\"a\",}",
            "{\"text\" \"a\"}",
            "{\"text\":\"a\nb\"}",
            "{\"text\":\"\\x\"}",
            "{\"x\":\"\\x\"}",
            "{\"text\":01}",
            "{\"x\":tru}",
            "{,}",
            "{\"text\":\"a\"\"b\":1}",
            "{\"te\\u0078t\":\"a\"}",
            "{\"text\":\"\\",
            "{\"x\":\"a",
            "{\"x\":1 2}",
        ] {
            assert!(!check(object.as_bytes()), "{object}");
        }
        for object in [&b"{\"text\":\"\xff\"}"[..], b"{\"text\":\"\\ud800\"}"] {
            assert!(slots(object, &names()[0]).is_none());
        }
    }

    proptest! {
        #[test]
        fn equals_serde_json(pieces in prop::collection::vec(prop_oneof![
            "[{},:\\[\\] \"\\\\]", r#""(text|id|url|title|html|a|b|score|date|x)":"#, r#""[a-zé 漢]{0,80}""#,
            r#""([a-z ]|\\[nrt"\\/bfu]|\\u00e9|\\ud83d\\ude00){0,20}""#, "-?[0-9]{1,3}(\\.[0-9])?", "null|true|false", ",", "[\\x00-\\x1f]",
        ], 0..14)) {
            check(pieces.concat().as_bytes());
            check(format!("{{{}}}", pieces.concat()).as_bytes());
        }

        #[test]
        fn objects_of_fields_equal_serde_json(fields in prop::collection::vec((
            "(text|id|url|title|html|a|a\\.b|b|score|date|x|é)", any::<(bool, u8)>(), "\\PC{0,100}", any::<f64>(),
        ), 0..6)) {
            let value = |(is_string, kind): (bool, u8), text: &str, number: f64| match (is_string, kind % 4) {
                (true, _) => serde_json::Value::from(text),
                (false, 0) => serde_json::json!([text, { text: number }]),
                (false, 1) => serde_json::json!(number),
                (false, 2) => serde_json::json!(kind),
                (false, _) => serde_json::json!({ "b": text }),
            };
            let pairs = fields.iter().map(|(name, kind, text, number)| format!("{}:{}", serde_json::json!(name), value(*kind, text, *number)));
            check(format!("{{{}}}", pairs.collect::<Vec<_>>().join(",")).as_bytes());
        }
    }
}
