//! The columns of a table that has room for every record.

use std::collections::HashMap;

use crate::error::Result;
use crate::page::SourceId;
use crate::read::{Annotations, Input};
use crate::report::Findings;
use crate::report::sinks::records::convert::fields::{PAGE_FIELDS, Record, Value, for_each_record};
use crate::report::sinks::records::{Selection, chosen};

/// What a column holds: the least that has room for all of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Nothing,
    Truth,
    Whole,
    Real,
    Text,
}

impl Holds {
    fn of(value: &Value<'_>) -> Holds {
        match value {
            Value::Null => Holds::Nothing,
            Value::Truth(_) => Holds::Truth,
            Value::Number(digits) if digits.parse::<i64>().is_ok() => Holds::Whole,
            // A number that is too long for its type would lose digits.
            Value::Number(digits) if digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') => Holds::Text,
            Value::Number(_) => Holds::Real,
            Value::Text(_) | Value::Json(_) => Holds::Text,
        }
    }

    fn and(self, other: Holds) -> Holds {
        match (self, other) {
            (Holds::Nothing, holds) | (holds, Holds::Nothing) => holds,
            (one, two) if one == two => one,
            (Holds::Whole, Holds::Real) | (Holds::Real, Holds::Whole) => Holds::Real,
            _ => Holds::Text,
        }
    }
}

/// The columns, in the order in which they were met.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) list: Vec<(String, Holds)>,
    places: HashMap<String, usize>,
}

impl Columns {
    /// Makes room for the kept records of a source.
    pub(super) fn learn(&mut self, findings: &Findings<'_>, id: SourceId) -> Result<()> {
        match findings.reading.source(id).format.reader().annotations() {
            Some(Annotations::Table(open)) => {
                let head = open(&Input { corpus: findings.reading, id });
                head.into_iter().flat_map(|head| head.names).for_each(|name| self.add(&name, Holds::Text));
                Ok(())
            }
            None => {
                PAGE_FIELDS.iter().for_each(|name| self.add(name, Holds::Text));
                Ok(())
            }
            Some(Annotations::Object | Annotations::Rows | Annotations::ArrowRows) => {
                let kept = chosen(findings, id, Selection::Kept);
                for_each_record(findings, id, &kept, &mut |record| {
                    self.add_record(record);
                    Ok(())
                })
            }
        }
    }

    fn add_record(&mut self, record: &Record<'_>) {
        for (name, value) in record {
            self.add(name, Holds::of(value));
        }
    }

    fn add(&mut self, name: &str, holds: Holds) {
        match self.places.get(name) {
            Some(&place) => self.list[place].1 = self.list[place].1.and(holds),
            None => {
                self.places.insert(name.to_owned(), self.list.len());
                self.list.push((name.to_owned(), holds));
            }
        }
    }

    /// The values of a record by column.
    pub(super) fn arrange<'v, 'r>(&self, record: &'v Record<'r>) -> Vec<Option<&'v Value<'r>>> {
        let mut row = vec![None; self.list.len()];
        for (name, value) in record {
            if let Some(&place) = self.places.get(name.as_ref()) {
                row[place] = Some(value);
            }
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn a_column_has_room_for_all_of_its_values() {
        let mut columns = Columns::default();
        let number = |digits: &'static str| Value::Number(Cow::Borrowed(digits));
        for (name, value) in [
            ("a", number("1")),
            ("b", Value::Null),
            ("a", number("2.5")),
            ("c", number("1")),
            ("b", Value::Truth(true)),
            ("c", Value::Truth(true)),
            ("d", number("12345678901234567890")),
            ("e", Value::Json("[]".into())),
            ("f", Value::Null),
        ] {
            columns.add_record(&[(Cow::Borrowed(name), value)]);
        }
        let expected = [
            ("a", Holds::Real),
            ("b", Holds::Truth),
            ("c", Holds::Text),
            ("d", Holds::Text),
            ("e", Holds::Text),
            ("f", Holds::Nothing),
        ];
        assert_eq!(columns.list, expected.map(|(name, holds)| (name.to_owned(), holds)));
    }
}
