//! Volatile tokens out: dates, times, counters, session ids.
//!
//! In: text. Out: the text without what changes from one visit to the next, so that pages that
//! differ in nothing else become exact copies. Manku et al. 2007, §6; what correct near-duplicates
//! differ in, Henzinger 2006, Tables 3 and 6.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// What changes from one visit to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Volatile {
    /// A date or a time of day.
    TimeStamp,
    /// Visitors, views, comments.
    Counter,
    /// How long something took, or how long ago it was.
    Duration,
    /// A session, a message, anything that is only a name for a machine.
    Id,
}

/// The patterns of each kind.
fn patterns() -> [(Volatile, Vec<String>); 4] {
    let month = "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)";
    // The months that are not also another word.
    let month_only = month.replace("may|", "");
    let weekday = "(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?)";
    let counted = "(?:visitors?|visits?|views?|hits?|page\\s?views|comments?|replies|clicks|downloads|shares|likes|users?\\s+online|guests?)";
    let times = vec![
        // A time of day, with seconds, fraction, am or pm, zone.
        r"\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[ap]\.?m\b\.?)?(?:\s?(?:utc|gmt|[ecmp][sd]t|cet|cest|z|[+-]\d{2}:?\d{2})\b)?".to_owned(),
        r"\b\d{1,2}\s?[ap]\.?m\b\.?".to_owned(),
        // 2006-03-05 and 2006-03-05T, 05/03/2006, 5.3.2006
        r"\b(?:19|20)\d{2}[-/.]\d{1,2}[-/.]\d{1,2}(?:T\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:z|[+-]\d{2}:?\d{2})?)?\b".to_owned(),
        r"\b(?:0?[1-9]|[12]\d|3[01])/(?:0?[1-9]|[12]\d|3[01])/(?:(?:19|20)\d{2}|\d{2})\b".to_owned(),
        r"\b(?:0?[1-9]|[12]\d|3[01])(?:-(?:0?[1-9]|1[0-2])-|\.(?:0?[1-9]|1[0-2])\.)(?:19|20)\d{2}\b".to_owned(),
        // Sunday, 5 March 2006; March 5th, 2006; Mar 2006
        format!(r"(?:\b{weekday},?\s+)?\b\d{{1,2}}(?:st|nd|rd|th)?\.?\s+(?:of\s+)?(?:{month}\b\.?,?\s+(?:19|20)\d{{2}}\b|{month_only}\b)"),
        format!(r"(?:\b{weekday},?\s+)?\b{month}\b\.?\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s+(?:19|20)\d{{2}}\b)?"),
        format!(r"\b{month}\b\.?,?\s+(?:19|20)\d{{2}}\b"),
        r"\b(?:19|20)\d{2}年\d{1,2}月\d{1,2}日".to_owned(),
    ];
    // 1,234 visitors; views: 99
    let counters = vec![format!(r"\b\d[\d,.]*\s+{counted}\b"), format!(r"\b{counted}\s*:\s*\d[\d,.]*\b")];
    let durations =
        vec![r"\b\d+(?:[.,]\d+)?\s?(?:ms|milliseconds?|secs?|seconds?|minutes?|hours?|days?)(?:\s+ago)?\b".to_owned()];
    let ids = vec![
        // Session ids: named ones, UUIDs, long hexadecimal strings
        r"\b(?:phpsessid|jsessionid|aspsessionid\w*|session_?id|sess_?id|sid|request_?id|trace_?id|message_?id)\s*[=:]\s*[\w-]+".to_owned(),
        r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b".to_owned(),
        r"\b[0-9a-f]{16,}\b".to_owned(),
    ];
    [(Volatile::TimeStamp, times), (Volatile::Counter, counters), (Volatile::Duration, durations), (Volatile::Id, ids)]
}

#[allow(clippy::expect_used)] // the patterns are constants; a test compiles them
fn any_of(patterns: &[String]) -> Regex {
    // ASCII classes: with Unicode ones the fast engine gives up at every letter beyond ASCII.
    Regex::new(&format!("(?i-u:{})", patterns.join("|"))).expect("a valid pattern")
}

/// Everything that is volatile, in one alternation.
static VOLATILE: LazyLock<Regex> =
    LazyLock::new(|| any_of(&patterns().into_iter().flat_map(|row| row.1).collect::<Vec<_>>()));

/// Each kind by itself.
pub(crate) static BY_KIND: LazyLock<[(Volatile, Regex); 4]> =
    LazyLock::new(|| patterns().map(|(kind, patterns)| (kind, any_of(&patterns))));

/// The text without volatile tokens; a blank stands in their place.
#[must_use]
pub fn without_volatile(text: &str) -> Cow<'_, str> {
    VOLATILE.replace_all(text, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        without_volatile(text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_changes_between_visits_goes() {
        for (text, left) in [
            ("Updated 12:34:56 GMT today", "Updated today"),
            ("at 3 p.m. on Sunday, 5 March 2006 in", "at on in"),
            ("on March 5th, 2006 and Mar 2007", "on and"),
            ("2006-03-05T10:11:12Z end", "end"),
            ("05/03/2006 or 5.3.2006 or 12/24/99", "or or"),
            ("You are visitor; 1,234 visitors, views: 99", "You are visitor; ,"),
            ("Page made in 0.1234 seconds", "Page made in"),
            ("PHPSESSID=ab12cd34 next", "next"),
            ("id 550e8400-e29b-41d4-a716-446655440000.", "id ."),
            ("hash d41d8cd98f00b204e9800998ecf8427e", "hash"),
        ] {
            assert_eq!(words(text), left, "{text}");
        }
    }

    #[test]
    fn what_a_page_is_about_stays() {
        for text in [
            "chapter 12 of 30",
            "the decade of facade",
            "costs 1,234 dollars",
            "version 3.5 may come",
            "A320 and B747",
            "release 3.10.12 at 10.20.30.40",
        ] {
            assert_eq!(words(text), text);
        }
    }
}
