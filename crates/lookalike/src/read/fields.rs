//! Which field of a record is what.
//!
//! In: the names a person gave, or none. Out: for a field's name its role, with the usual names
//! tried in a fixed order; and the value of the field that a keep policy ranks by.

use chrono::{Days, NaiveDate};
use serde::{Deserialize, Serialize};

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
    /// Field with the text or markup.
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

/// Names for every role, in order of preference.
#[derive(Debug, Clone)]
pub struct FieldNames {
    names: Vec<(Role, Vec<String>)>,
    /// Whether the ranking field is a date.
    pub rank_is_date: bool,
}

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
        FieldNames {
            names: vec![
                (Role::Text, names(&fields.text, TEXT_FIELDS)),
                (Role::Id, names(&fields.id, ID_FIELDS)),
                (Role::Url, names(&fields.url, URL_FIELDS)),
                (Role::Title, names(&None, TITLE_FIELDS)),
                (Role::Rank, rank_names),
            ],
            rank_is_date: rank == RankField::Date,
        }
    }

    /// The roles of the field `name`, each with its preference: 0 is best.
    pub fn roles<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (Role, usize)> + 'a {
        self.names
            .iter()
            .filter_map(move |(role, names)| names.iter().position(|known| known == name).map(|at| (*role, at)))
    }

    /// The names tried for `role`, for messages.
    #[must_use]
    pub fn tried(&self, role: Role) -> String {
        self.names.iter().find(|row| row.0 == role).map_or(String::new(), |row| row.1.join(", "))
    }

    /// The field that the keep policy ranks by.
    #[must_use]
    pub fn rank_field(&self) -> Option<&str> {
        self.names.iter().find(|row| row.0 == Role::Rank)?.1.first().map(String::as_str)
    }

    /// The columns of a table by role: for each role the best one there is.
    #[must_use]
    pub fn columns(&self, header: &[String]) -> Columns {
        let mut best = [None::<(usize, usize)>; 5];
        for (column, name) in header.iter().enumerate() {
            for (role, preference) in self.roles(name) {
                let slot = &mut best[role as usize];
                if slot.is_none_or(|(_, known)| preference < known) {
                    *slot = Some((column, preference));
                }
            }
        }
        Columns(best.map(|slot| slot.map(|(column, _)| column)))
    }

    /// A ranking value in a field of text.
    #[must_use]
    pub fn rank_value(&self, text: &str) -> Option<f64> {
        let text = text.trim();
        let number = text.parse::<f64>().ok().filter(|value| value.is_finite());
        if self.rank_is_date { parse_date(text).or(number.map(unix_seconds)) } else { number }
    }
}

/// The column of each role.
#[derive(Debug, Clone, Copy)]
pub struct Columns([Option<usize>; 5]);

impl Columns {
    /// The column that has this role.
    #[must_use]
    pub fn of(&self, role: Role) -> Option<usize> {
        self.0[role as usize]
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

/// Seconds since 1970 for dates such as `2024-05-17`, `2024-05-17T08:09:10Z`, `20240517080910`,
/// `2024-05-17 08:09:10.5+02:00`.
fn parse_date(text: &str) -> Option<f64> {
    let digits = |range: std::ops::Range<usize>, from: &str| from.get(range)?.parse::<i64>().ok();
    let compact = matches!(text.len(), 8 | 14) && text.bytes().all(|b| b.is_ascii_digit());
    let (year, month, day, rest) = if compact {
        (digits(0..4, text)?, digits(4..6, text)?, digits(6..8, text)?, None)
    } else {
        if text.get(4..5) != Some("-") || text.get(7..8) != Some("-") {
            return None;
        }
        (digits(0..4, text)?, digits(5..7, text)?, digits(8..10, text)?, text.get(11..).filter(|rest| !rest.is_empty()))
    };
    // Some write the 31st of any month: that many days behind the first.
    let month = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, u32::try_from(month).ok()?, 1)?;
    let day = u64::try_from(day).ok().filter(|day| (1..=31).contains(day))?;
    let date = month.checked_add_days(Days::new(day - 1))?;
    let mut seconds = date.signed_duration_since(NaiveDate::default()).num_days() as f64 * 86_400.0;
    if compact && text.len() == 14 {
        seconds += (digits(8..10, text)? * 3600 + digits(10..12, text)? * 60 + digits(12..14, text)?) as f64;
    } else if let (false, Some(time)) = (compact, rest) {
        let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
        let (clock, zone) = time.split_at(zone_at);
        for (part, unit) in clock.trim().split(':').zip([3600.0, 60.0, 1.0]) {
            seconds += part.parse::<f64>().ok()? * unit;
        }
        if let Some(sign) = zone.chars().next().filter(|c| "+-".contains(*c)) {
            let zone = zone[1..].replace(':', "");
            let offset = (digits(0..2, &zone)? * 3600 + digits(2..4, &zone).unwrap_or(0) * 60) as f64;
            seconds -= if sign == '+' { offset } else { -offset };
        }
    }
    Some(seconds)
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
    }

    #[test]
    fn dates_of_every_shape_are_ordered_by_time() {
        let names = FieldNames::new(&Fields::default(), RankField::Date);
        let ordered = [
            "1969-12-31",
            "1999-12-31T23:59:59Z",
            "2000-02-29",
            "2024-05-17T08:00:00+02:00",
            "20240517070000",
            "2024-05-17T08:09:10.5Z",
            "2024-05-17 08:09:11",
            "20240518",
            "1800000000",
            "1800000001000",
        ];
        let values: Vec<f64> = ordered.iter().map(|text| names.rank_value(text).unwrap()).collect();
        assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
        assert_eq!(names.rank_value("1970-01-02"), Some(86_400.0));
        assert_eq!(names.rank_value("2023-02-31"), names.rank_value("2023-03-03"));
        assert_eq!(names.rank_value("0000-01-01"), Some(-62_167_219_200.0));
        assert_eq!(names.rank_value("yesterday"), None);
        assert_eq!(names.rank_value("2023-13-01"), None);
        assert_eq!(names.rank_value("2023-12-32"), None);
    }
}
