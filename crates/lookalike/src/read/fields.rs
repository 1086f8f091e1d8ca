//! Which field of a record is what.
//!
//! In: the names a person gave, or none. Out: for a field's name its role, with the usual names
//! tried in a fixed order; and the value of the field that a keep policy ranks by.

mod date;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::SkipKind;
use crate::names::named;
use crate::page::Markup;
use crate::read::format::reader::Problem;

const ID_FIELDS: &[&str] = &["id"];
const TEXT_FIELDS: &[&str] = &["text", "content", "html", "body"];
const URL_FIELDS: &[&str] = &["url"];
const TITLE_FIELDS: &[&str] = &["title"];
const DATE_FIELDS: &[&str] =
    &["date", "timestamp", "time", "crawl_date", "published", "published_at", "created", "created_at"];

/// Field names for records that have fields. `None`: the usual names are tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fields {
    /// Field with the page's id.
    pub id: Option<String>,
    /// Field with the text or markup; several, with commas between them, make one text.
    pub text: Option<String>,
    /// Field with the URL.
    pub url: Option<String>,
    /// Field with the date, for keeping the newest page.
    pub date: Option<String>,
}

/// The field whose value pages are ranked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankField<'a> {
    /// None.
    None,
    /// The date.
    Date,
    /// A number in the field of this name.
    Number(&'a str),
}

/// What a field is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The page's id.
    Id,
    /// The page's text or markup.
    Text,
    /// The page's URL.
    Url,
    /// The page's title.
    Title,
    /// What the keep policy ranks by.
    Rank,
}

named! {
    /// How bodies are read, whatever they look like.
    pub enum ReadAs {
        /// Plain text: what looks like a tag is text.
        Text = "text",
        /// HTML: tags are not text.
        Html = "html",
    }
}

impl ReadAs {
    /// The markup that it stands for.
    #[must_use]
    pub(crate) fn markup(self) -> Markup {
        match self {
            ReadAs::Text => Markup::Text,
            ReadAs::Html => Markup::Html,
        }
    }
}

/// Names for every role, in order of preference. A name with dots also leads into objects, `doc.body` to the field `body`
/// of the field `doc`; a field that is called so itself comes first. Several texts, with commas between their names, are
/// one text.
#[derive(Debug, Clone)]
pub struct FieldNames {
    /// What is looked for: a role, and for several texts which of them.
    slots: Vec<Role>,
    names: Vec<Name>,
    top: Vec<NameLeft>,
    /// Whether the ranking field is a date.
    pub rank_is_date: bool,
    /// How all bodies are read.
    pub(crate) read_as: Option<ReadAs>,
}

#[derive(Debug, Clone)]
struct Name {
    slot: usize,
    /// Among the names of the slot; 0 is best.
    order: usize,
    path: String,
}

/// A name that is looked for, from the object on that has been reached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameLeft {
    name: usize,
    /// Bytes of the name that led here.
    from: usize,
}

/// How good a field is for what it was found for; the least is best.
pub(crate) type Preference = (usize, usize);

/// Where a name leads.
pub(crate) enum Leads {
    /// To this field.
    Here {
        /// What the field is taken for.
        slot: usize,
        preference: Preference,
    },
    /// Into this field, if it is an object.
    Below(NameLeft),
}

/// Fields that messages list.
const LISTED_FIELDS: usize = 20;

impl FieldNames {
    /// The names for a run.
    #[must_use]
    pub fn new(fields: &Fields, rank: RankField<'_>) -> FieldNames {
        let names = |given: &Option<String>, usual: &[&str]| match given {
            Some(name) => vec![name.clone()],
            None => usual.iter().map(|&name| name.to_owned()).collect(),
        };
        let rank_names = match rank {
            RankField::Date => names(&fields.date, DATE_FIELDS),
            RankField::Number(field) => vec![field.to_owned()],
            RankField::None => Vec::new(),
        };
        let texts = match &fields.text {
            Some(given) => given.split(',').map(|name| vec![name.trim().to_owned()]).collect(),
            None => vec![names(&None, TEXT_FIELDS)],
        };
        let mut slots: Vec<(Role, Vec<String>)> = texts.into_iter().map(|names| (Role::Text, names)).collect();
        slots.extend([
            (Role::Id, names(&fields.id, ID_FIELDS)),
            (Role::Url, names(&fields.url, URL_FIELDS)),
            (Role::Title, names(&None, TITLE_FIELDS)),
            (Role::Rank, rank_names),
        ]);
        let mut all = Vec::new();
        for (slot, (_, names)) in slots.iter().enumerate() {
            all.extend(names.iter().enumerate().map(|(order, path)| Name { slot, order, path: path.clone() }));
        }
        FieldNames {
            slots: slots.into_iter().map(|(role, _)| role).collect(),
            top: (0..all.len()).map(|name| NameLeft { name, from: 0 }).collect(),
            names: all,
            rank_is_date: rank == RankField::Date,
            read_as: None,
        }
    }

    /// The same, for bodies that are read in one way.
    #[must_use]
    pub(crate) fn reading_as(self, read_as: Option<ReadAs>) -> FieldNames {
        FieldNames { read_as, ..self }
    }

    /// All names, for the fields of a record.
    pub(crate) fn top(&self) -> &[NameLeft] {
        &self.top
    }

    /// What is looked for.
    pub(crate) fn slots(&self) -> &[Role] {
        &self.slots
    }

    /// Where a name leads at a field.
    pub(crate) fn leads(&self, left: NameLeft, field: &str) -> Option<Leads> {
        let Name { slot, order, path } = &self.names[left.name];
        let rest = path[left.from..].strip_prefix(field)?;
        if rest.is_empty() {
            return Some(Leads::Here { slot: *slot, preference: (*order, left.from) });
        }
        let below = rest.strip_prefix('.').filter(|below| !below.is_empty())?;
        Some(Leads::Below(NameLeft { name: left.name, from: path.len() - below.len() }))
    }

    /// What a field is looked at for, or for a field inside it.
    pub(crate) fn role_of(&self, field: &str) -> Option<Role> {
        let name = self.top.iter().find(|&&left| self.leads(left, field).is_some())?;
        self.slots.get(self.names[name.name].slot).copied()
    }

    /// The names tried for `role`, for messages.
    #[must_use]
    pub fn tried(&self, role: Role) -> String {
        let names = self.names.iter().filter(|name| self.slots[name.slot] == role);
        names.map(|name| name.path.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Says that a record has no text although it has these fields.
    pub(crate) fn no_text(&self, what: &str, there: &[String]) -> Problem {
        let tried = self.tried(Role::Text);
        let none = if self.names.iter().filter(|name| self.slots[name.slot] == Role::Text).count() == 1 {
            format!("there is no {what} {tried}")
        } else {
            format!("none of the {what}s {tried} is there")
        };
        let mut listed = there.iter().take(LISTED_FIELDS).map(String::as_str).collect::<Vec<_>>().join(", ");
        if there.len() > LISTED_FIELDS {
            listed.push_str(&format!(" and {} more", there.len() - LISTED_FIELDS));
        }
        let only = if there.is_empty() { ", nor any other".to_owned() } else { format!("; there are {listed}") };
        (SkipKind::MissingField, format!("no text: {none}{only} (use `text_field`)"))
    }

    /// The field that the keep policy ranks by.
    #[must_use]
    pub fn rank_field(&self) -> Option<&str> {
        self.names.iter().find(|name| self.slots[name.slot] == Role::Rank).map(|name| name.path.as_str())
    }

    /// The columns of a table: for whatever is looked for the best one there is.
    #[must_use]
    pub fn columns(&self, header: &[String]) -> Columns {
        let mut best = vec![None::<(usize, Preference)>; self.slots.len()];
        for (column, name) in header.iter().enumerate() {
            for &left in &self.top {
                let Some(Leads::Here { slot, preference }) = self.leads(left, name) else { continue };
                if best[slot].is_none_or(|(_, known)| preference < known) {
                    best[slot] = Some((column, preference));
                }
            }
        }
        let found = self.slots.iter().zip(best);
        Columns(found.filter_map(|(&role, slot)| Some((role, slot?.0))).collect())
    }

    /// A ranking value in a field of text.
    #[must_use]
    pub fn rank_value(&self, text: &str) -> Option<f64> {
        let text = text.trim();
        let number = text.parse::<f64>().ok().filter(|value| value.is_finite());
        if self.rank_is_date { date::parse(text).or(number.map(unix_seconds)) } else { number }
    }

    /// The same, with what could not be understood.
    pub(crate) fn ranked<'a>(&self, text: Option<Cow<'a, str>>) -> Ranked<'a> {
        let Some(text) = text.filter(|text| !text.trim_ascii().is_empty()) else { return Ranked::default() };
        match self.rank_value(&text) {
            Some(value) => Ranked { value: Some(value), unread: None },
            None => Ranked { value: None, unread: Some(text) },
        }
    }
}

/// What a field says of a page's rank.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ranked<'a> {
    pub(crate) value: Option<f64>,
    /// What is there instead of a value.
    pub(crate) unread: Option<Cow<'a, str>>,
}

/// The columns that have a role.
#[derive(Debug, Clone)]
pub struct Columns(Vec<(Role, usize)>);

impl Columns {
    /// The column that has this role.
    #[must_use]
    pub fn of(&self, role: Role) -> Option<usize> {
        self.all(role).next()
    }

    /// The columns that have this role, in the order in which they were named.
    pub fn all(&self, role: Role) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().filter(move |column| column.0 == role).map(|column| column.1)
    }
}

/// A time stamp in seconds, milli-, micro- or nanoseconds as seconds: which it is shows in its size.
fn unix_seconds(mut stamp: f64) -> f64 {
    const YEAR_5138: f64 = 1e11;
    while stamp.abs() >= YEAR_5138 {
        stamp /= 1000.0;
    }
    stamp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_names_are_tried_in_order_and_a_given_name_alone() {
        let usual = FieldNames::new(&Fields::default(), RankField::None);
        let header: Vec<String> = ["body", "url", "content", "id", "x"].map(str::to_owned).to_vec();
        let columns = usual.columns(&header);
        assert_eq!(columns.of(Role::Text), Some(2));
        assert_eq!(columns.of(Role::Id), Some(3));
        assert_eq!(columns.of(Role::Rank), None);
        let given =
            FieldNames::new(&Fields { text: Some("x".to_owned()), ..Fields::default() }, RankField::Number("x"));
        assert_eq!(given.columns(&header).of(Role::Text), Some(4));
        assert_eq!(given.columns(&header).of(Role::Rank), Some(4));
        let several = Fields { text: Some("x, body,nowhere".to_owned()), ..Fields::default() };
        let several = FieldNames::new(&several, RankField::None).columns(&header);
        assert_eq!(several.all(Role::Text).collect::<Vec<_>>(), [4, 0]);
    }

    #[test]
    fn what_is_there_is_listed_where_the_text_is_not() {
        let names = FieldNames::new(&Fields::default(), RankField::None);
        let there: Vec<String> = (0..22).map(|n| format!("f{n}")).collect();
        let (kind, reason) = names.no_text("field", &there[..2]);
        assert_eq!(kind, SkipKind::MissingField);
        assert_eq!(
            reason,
            "no text: none of the fields text, content, html, body is there; there are f0, f1 (use `text_field`)"
        );
        assert!(names.no_text("field", &there).1.contains("f19 and 2 more"));
    }
}
