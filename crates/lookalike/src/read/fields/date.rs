//! Dates as people write them → seconds since 1970.

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime};

/// Seconds since 1970 for a date in any notation that leaves no doubt: ISO 8601 and RFC 3339, 14 digits as in web archives,
/// RFC 2822 and HTTP, a month by its name, a year.
pub(super) fn parse(text: &str) -> Option<f64> {
    iso(text).or_else(|| named_month(text)).or_else(|| year_first(text))
}

/// `Fri, 17 May 2024 08:09:10 +0200`, and as servers, `date` and people write it.
fn named_month(text: &str) -> Option<f64> {
    if !text.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    if let Ok(date) = DateTime::parse_from_rfc2822(text) {
        return Some(date.timestamp() as f64);
    }
    const TIMES: [&str; 5] = [
        "%A, %d-%b-%y %H:%M:%S GMT",
        "%d-%b-%Y %H:%M:%S%.f",
        "%a %b %e %H:%M:%S %Y",
        "%d %B %Y %H:%M:%S",
        "%d/%b/%Y:%H:%M:%S",
    ];
    const DAYS: [&str; 4] = ["%d %B %Y", "%B %d, %Y", "%B %d %Y", "%d-%b-%Y"];
    let time = TIMES.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let day = || DAYS.iter().find_map(|format| NaiveDate::parse_from_str(text, format).ok());
    let time = time.or_else(|| day()?.and_hms_opt(0, 0, 0))?;
    Some(time.and_utc().timestamp() as f64)
}

/// `2024/05/17 08:09:10`, `2024-05`, `2024`.
fn year_first(text: &str) -> Option<f64> {
    let is_year = |text: &str| text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    if text.get(..4).is_some_and(is_year) && text.get(4..5) == Some("/") {
        return iso(&text.replace('/', "-"));
    }
    match text.split_once('-') {
        Some((year, month)) if is_year(year) && month.len() == 2 => iso(&format!("{text}-01")),
        // A time stamp so small would be of the first hour of 1970.
        None if is_year(text) && ("1000".."3000").contains(&text) => iso(&format!("{text}-01-01")),
        _ => None,
    }
}

/// `2024-05-17`, `2024-05-17T08:09:10Z`, `20240517080910`, `2024-05-17 08:09:10.5+02:00`.
fn iso(text: &str) -> Option<f64> {
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
    use crate::read::fields::{FieldNames, Fields, RankField};

    #[test]
    fn dates_of_every_shape_are_ordered_by_time() {
        let names = FieldNames::new(&Fields::default(), RankField::Date);
        let ordered = [
            "1969-12-31",
            "1998",
            "1999-11",
            "1999-12-31T23:59:59Z",
            "2000-02-29",
            "2024-05-17T08:00:00+02:00",
            "20240517070000",
            "2024-05-17T08:09:10.5Z",
            "2024-05-17 08:09:11",
            "Fri, 17 May 2024 11:09:12 +0300",
            "Fri, 17 May 2024 08:09:13 GMT",
            "Friday, 17-May-24 08:09:14 GMT",
            "Fri May 17 08:09:15 2024",
            "2024/05/17 08:09:16",
            "20240518",
            "19 May 2024",
            "May 20, 2024",
            "2024/05/21",
            "1800000000",
            "1800000001000",
        ];
        let values: Vec<f64> =
            ordered.iter().map(|text| names.rank_value(text).unwrap_or_else(|| panic!("{text}"))).collect();
        assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
        assert_eq!(names.rank_value("1970-01-02"), Some(86_400.0));
        assert_eq!(names.rank_value("2 January 1970"), Some(86_400.0));
        assert_eq!(names.rank_value("2-JAN-1970 00:00:01.50"), Some(86_401.0));
        assert_eq!(names.rank_value("2023-02-31"), names.rank_value("2023-03-03"));
        assert_eq!(names.rank_value("0000-01-01"), Some(-62_167_219_200.0));
        // Day or month first: nobody knows.
        for unclear in ["yesterday", "2023-13-01", "2023-12-32", "05/06/2024", "may"] {
            assert_eq!(names.rank_value(unclear), None, "{unclear}");
        }
    }
}
