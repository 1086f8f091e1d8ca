//! What two near-duplicates differ in, as far as a program can tell.
//!
//! In: two pages. Out: the kinds of differences of Henzinger (2006), Tables 3, 4, 6 and 7. Every place where the
//! visible texts differ is examined with the words around it: what is a part of the page's URL, a date, a
//! duration, a number of visitors, an id or the name of a server is said to be so; of the rest, what lies
//! outside the blocks that read like prose is a minor item, and what lies in them is the main item.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use crate::page::{Body, RawPage};
use crate::report::diff::{Hunk, MOST_WORDS, hunks};
use crate::text::mask::{BY_KIND, Volatile};
use crate::text::{PageReader, Scope, TextOptions, charset};

/// A kind of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// The page's own URL, or a part of it, in its text.
    Url,
    /// A date or a time.
    TimeStamp,
    /// How long making the page took.
    ExecutionTime,
    /// The id of a session, a message, a request.
    Id,
    /// Visitors, views, comments.
    Counter,
    /// The name of the machine that served the page.
    ServerName,
    /// Nothing that a visitor sees.
    Invisible,
    /// The values that a form is filled with.
    Form,
    /// Something beside what the page is about.
    MinorItem,
    /// What the page is about.
    MainItem,
}

impl Difference {
    /// All, in the order in which they are listed.
    pub const ALL: [Difference; 10] = [
        Difference::Url,
        Difference::TimeStamp,
        Difference::ExecutionTime,
        Difference::Id,
        Difference::Counter,
        Difference::ServerName,
        Difference::Invisible,
        Difference::Form,
        Difference::MinorItem,
        Difference::MainItem,
    ];

    /// What differs, in a sentence for people.
    fn words(self) -> &'static str {
        match self {
            Difference::Url => "the URL",
            Difference::TimeStamp => "a date or time",
            Difference::ExecutionTime => "how long it took to make the page",
            Difference::Id => "an id of a message or session",
            Difference::Counter => "a counter",
            Difference::ServerName => "the name of a server",
            Difference::Invisible => "something that no visitor sees",
            Difference::Form => "what a form is filled with",
            Difference::MinorItem => "something beside the main text",
            Difference::MainItem => "the main text",
        }
    }

    /// The name in tables and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Difference::Url => "URL",
            Difference::TimeStamp => "time stamp",
            Difference::ExecutionTime => "execution time",
            Difference::Id => "message or session id",
            Difference::Counter => "counter",
            Difference::ServerName => "server name",
            Difference::Invisible => "invisible",
            Difference::Form => "prefilled form",
            Difference::MinorItem => "minor item",
            Difference::MainItem => "main item",
        }
    }
}

/// What two pages differ in of which the same is compared, and the rest is not the same.
pub(crate) const FRAME_ONLY: &str = "the frame only: the same text in another frame";

/// What two pages differ in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Differences {
    /// The kinds that were found; none if the pages are the same.
    pub kinds: BTreeSet<Difference>,
    /// Words that only one of the pages has.
    pub words: usize,
}

impl Differences {
    /// One line for people.
    #[must_use]
    pub fn label(&self) -> String {
        let names: Vec<&str> = self.kinds.iter().map(|kind| kind.words()).collect();
        match names.as_slice() {
            [] => "nothing".to_owned(),
            [one] => format!("{one} only"),
            [more @ .., main] if self.kinds.contains(&Difference::MainItem) => {
                format!("{main} (also {})", more.join(", "))
            }
            [more @ .., last] => format!("{} and {last}", more.join(", ")),
        }
    }

    /// Without details, as tables of a study have it.
    #[must_use]
    pub fn kind(&self) -> String {
        match self.kinds.iter().collect::<Vec<_>>().as_slice() {
            [] => "none".to_owned(),
            [one] => format!("{} only", one.name()),
            _ if self.kinds.contains(&Difference::MainItem) => Difference::MainItem.name().to_owned(),
            _ => "combination".to_owned(),
        }
    }

    /// The verdict by Henzinger's rules: correct, incorrect, or undecided.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        if self.kinds.contains(&Difference::MainItem) {
            "incorrect"
        } else if self.kinds.contains(&Difference::Form) || self.kinds.contains(&Difference::MinorItem) {
            "undecided"
        } else {
            "correct"
        }
    }
}

/// Everything about one page that differences are judged by.
struct PageAspects {
    text: String,
    title: String,
    /// Its main content by each way to find it, with single spaces; empty where none finds any.
    cores: Vec<String>,
    /// Its longer blocks.
    paragraphs: Vec<String>,
    /// What its forms are filled with.
    forms: Vec<String>,
    tokens: Vec<u64>,
    url: String,
}

/// Shorter blocks are menus, captions, footers.
const PARAGRAPH_CHARS: usize = 80;

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn aspects(page: &RawPage<'_>) -> PageAspects {
    let mut whole = PageReader::new(TextOptions::default());
    let text = whole.text(page);
    let read = whole.read(page);
    let (tokens, title) = (read.tokens.to_vec(), squeeze(read.title.unwrap_or_default()));
    let title = if title.is_empty() { page.title.as_deref().map(squeeze).unwrap_or_default() } else { title };
    // The blocks that read like prose, and what a reader view would show: either contains some of the frame at times.
    let mut cores = Vec::new();
    for scope in [Scope::Core, Scope::Main] {
        let mut reader = PageReader::new(TextOptions { scope, content: true, ..TextOptions::default() });
        let read = reader.read(page);
        if read.scope.is_some_and(|scope| scope != Scope::Page) {
            cores.push(squeeze(read.content));
        }
    }
    let blocks = whole.blocks(page).into_iter().map(|block| squeeze(&block));
    let paragraphs = blocks.filter(|block| block.chars().count() >= PARAGRAPH_CHARS).collect();
    let body = match &page.body {
        Body::Text(text) => text.to_string(),
        Body::Bytes(bytes) => charset::decode(bytes, page.charset.as_deref()).text.into_owned(),
    };
    PageAspects {
        text,
        title,
        cores,
        paragraphs,
        forms: forms(&body),
        tokens,
        url: page.url.as_deref().unwrap_or_default().to_lowercase(),
    }
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("patterns are constants, and a test compiles them all")
}

/// The values of form fields, in their order.
fn forms(html: &str) -> Vec<String> {
    static INPUT: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r#"(?is)<input\b[^>]*?\bvalue\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))|<textarea\b[^>]*>(.*?)</textarea|<option\b[^>]*\bselected\b[^>]*>([^<]*)"#,
        )
    });
    static HIDDEN: LazyLock<Regex> =
        LazyLock::new(|| pattern(r#"(?is)type\s*=\s*["']?(?:hidden|submit|button|image)"#));
    let values = INPUT.captures_iter(html).filter(|found| {
        let whole = found.get(0).map_or("", |all| all.as_str());
        let is_input = whole.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("<input"));
        // What visitors cannot fill in is not a form to them.
        let rest = found.get(0).map_or("", |all| &html[all.end()..]);
        let tag_end = rest.find('>').map_or("", |end| &rest[..end]);
        !(HIDDEN.is_match(whole) || (is_input && HIDDEN.is_match(tag_end)))
    });
    values
        .map(|found| {
            (1..=5).find_map(|group| found.get(group)).map_or_else(String::new, |value| squeeze(value.as_str()))
        })
        .collect()
}

/// Compares two pages.
#[must_use]
pub fn classify(left: &RawPage<'_>, right: &RawPage<'_>) -> Differences {
    let (left, right) = (aspects(left), aspects(right));
    let (found, words) = hunks(&left.text, &right.text);
    let mut differences = Differences { words: found.iter().map(|hunk| hunk.words).sum(), ..Differences::default() };
    let forms_differ = left.forms != right.forms;
    if found.is_empty() {
        if forms_differ {
            differences.kinds.insert(Difference::Form);
        } else if left.tokens != right.tokens {
            // What follows the words that are compared is not known to be invisible.
            let is_cut = words > MOST_WORDS && left.text != right.text;
            differences.kinds.insert(if is_cut { Difference::MainItem } else { Difference::Invisible });
        }
        return differences;
    }
    let mut rest = Vec::new();
    for hunk in &found {
        match volatile(hunk, &left.url, &right.url) {
            Some(kind) => {
                differences.kinds.insert(kind);
            }
            None if forms_differ && is_in_form(hunk, &left.forms, &right.forms) => {
                differences.kinds.insert(Difference::Form);
            }
            None => rest.push(hunk),
        }
    }
    if !rest.is_empty() {
        differences.kinds.insert(item(&rest, &left, &right, words));
    }
    differences
}

fn is_in_form(hunk: &Hunk, left: &[String], right: &[String]) -> bool {
    let inside = |text: &str, values: &[String]| text.is_empty() || values.iter().any(|value| value.contains(text));
    inside(&hunk.left, left) && inside(&hunk.right, right)
}

/// What kind of volatile thing a difference is, if both sides are such a thing.
fn volatile(hunk: &Hunk, left_url: &str, right_url: &str) -> Option<Difference> {
    let sides = [(hunk.left.as_str(), left_url), (hunk.right.as_str(), right_url)];
    let filled: Vec<(&str, &str)> = sides.into_iter().filter(|side| !side.0.is_empty()).collect();
    if filled.iter().all(|(text, url)| is_url(text, url)) {
        return Some(Difference::Url);
    }
    let kinds =
        [Difference::ServerName, Difference::TimeStamp, Difference::Counter, Difference::ExecutionTime, Difference::Id];
    kinds.into_iter().find(|&kind| filled.iter().all(|(text, _)| is_covered(kind, hunk, text)))
}

/// Whether every word is a URL or a host, or the page's own host or path without what belongs to it.
fn is_url(text: &str, own: &str) -> bool {
    static SHAPE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)^(?:[a-z][a-z0-9+.-]*://\S+|www\.\S+|(?:[a-z0-9-]+\.)+[a-z]{2,}(?:[:/]\S*)?)$"));
    let bare = own.split_once("://").map_or(own, |(_, rest)| rest);
    let host = bare.split(['/', '?', '#']).next().unwrap_or_default();
    let name = host.strip_prefix("www.").unwrap_or(host);
    let label = name.split('.').next().unwrap_or_default();
    let part = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        // A single word of a path may be what the page is about; the name of the site is not.
        let is_own = word.len() >= 3 && (word == name || word == label || word == bare.trim_end_matches('/'));
        is_own || (SHAPE.is_match(&word) && word.chars().any(char::is_alphabetic) && !is_number_with_unit(&word))
    };
    text.split_whitespace().all(|word| part(word) || !word.chars().any(char::is_alphanumeric))
}

/// `3.5mm` has the shape of a host.
fn is_number_with_unit(word: &str) -> bool {
    word.chars().next().is_some_and(|first| first.is_ascii_digit()) && !word.contains('/')
}

/// Whether every word of one side belongs to a thing of this kind, seen with the words around it.
fn is_covered(kind: Difference, hunk: &Hunk, side: &str) -> bool {
    let line = format!("{} {side} {}", hunk.before, hunk.after);
    let start = hunk.before.len() + 1;
    let end = start + side.len();
    let spans = spans(kind, &line);
    let mut at = start;
    side.split_whitespace().all(|word| {
        let from = line[at..end].find(word).map_or(at, |found| at + found);
        at = from + word.len();
        if !word.chars().any(char::is_alphanumeric) {
            return true;
        }
        spans.iter().any(|span| span.start < at && from < span.end)
    })
}

fn spans(kind: Difference, line: &str) -> Vec<std::ops::Range<usize>> {
    static SERVER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:served (?:by|from)|server(?: name)?|host(?:name)?|node|backend|machine|worker|instance|cluster member)\s*(?:[:=#]|is)?\s*[a-z0-9][a-z0-9.-]*\d[a-z0-9.-]*|\b(?:web|www|srv|app|node|server|cache|proxy|mirror|frontend|backend|fe|be|vm|ip)[-_]?\d+(?:[.-][a-z0-9.-]+)?\b",
        )
    });
    static TOOK: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b\d+(?:[.,]\d+)?(?:e-\d+)?\s?(?:µs|us|ms|msecs?|milliseconds?|s|secs?|seconds?)\b|\b(?:in|took|time:?|seconds:?)\s+\d+\.\d{2,}\b",
        )
    });
    static COUNTED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:visitors?|visits?|views?|hits?|reads?|read|viewed|visited|downloaded|accessed|online|counter|comments?|replies|votes?|members|guests?|users|posts|times|number|no\.?|nr\.?)(?:\s+(?:today|now|number|no\.?|nr\.?|online|since|is|was|of))*\s*[:#(]?\s*\d[\d,.]*\b|\b\d[\d,.]*(?:st|nd|rd|th)?\)?\s+(?:(?:unique|registered|total|page|people|persons?|other|active|guest)\s+)*(?:visitors?|visits?|views?|hits?|reads?|times|comments?|replies|votes?|members|guests?|users|online|downloads|likes|shares|people|persons?)\b",
        )
    });
    static NAMED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:session|sess|sid|message|msg|mail|request|req|trace|transaction|ticket|reference|ref|token|nonce|order|build|revision|rev|id|uuid|guid|key)(?:[ _-]?(?:id|no\.?|number|nr\.?|key|token))?\s*[:=#]?\s*[<(\[]?[a-z0-9][a-z0-9_.@:-]*\d[a-z0-9_.@:-]*|\b[0-9a-z]*(?:\d[a-z]+\d|[a-z]\d+[a-z]+\d|\d[a-z]\d)[0-9a-z]{4,}\b|\b\d{9,}\b|\b(?:[0-9a-f]{2,}[-_]){2,}[0-9a-f]+\b",
        )
    });
    static AGO: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:(?:an?|\d+)\s+(?:second|minute|hour|day|week|month|year)s?\s+ago|today|yesterday|just now)\b|\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b,?|\b(?:jan(?:uary)?|feb(?:ruary)?|march|april|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b|(?:©|\(c\)|copyright)\s*(?:19|20)\d{2}(?:\s*(?:-|–)\s*(?:19|20)\d{2})?|\b(?:19|20)\d{12}\b",
        )
    });
    let mut found = Vec::new();
    let mut add = |pattern: &Regex| found.extend(pattern.find_iter(line).map(|found| found.range()));
    let known = |wanted: Volatile| BY_KIND.iter().filter(move |row| row.0 == wanted).map(|row| &row.1);
    let (volatile, own) = match kind {
        Difference::TimeStamp => (Some(Volatile::TimeStamp), &AGO),
        Difference::Counter => (Some(Volatile::Counter), &COUNTED),
        Difference::ExecutionTime => (None, &TOOK),
        Difference::Id => (Some(Volatile::Id), &NAMED),
        _ => (None, &SERVER),
    };
    volatile.into_iter().flat_map(known).for_each(&mut add);
    add(own);
    found
}

/// Words, and share of the page, up to which a difference in a text without prose is a minor item.
const MINOR_WORDS: usize = 12;
const MINOR_SHARE: f64 = 0.03;

/// Whether what is left lies in what the page is about.
fn item(rest: &[&Hunk], left: &PageAspects, right: &PageAspects, words: usize) -> Difference {
    let titles_touched = rest.iter().any(|hunk| touches(&left.title, &hunk.left) || touches(&right.title, &hunk.right));
    if titles_touched && !share_a_part(&left.title, &right.title) {
        return Difference::MainItem;
    }
    let is_minor = if left.cores.is_empty() || right.cores.is_empty() {
        let differing: usize = rest.iter().map(|hunk| hunk.words).sum();
        differing <= MINOR_WORDS && (differing as f64) <= MINOR_SHARE * words as f64
    } else {
        let inside = |hunk: &Hunk, side: &str, page: &PageAspects| {
            page.cores.iter().all(|core| is_inside(hunk, side, core))
                && page.paragraphs.iter().any(|text| is_inside(hunk, side, text))
        };
        !rest.iter().any(|hunk| inside(hunk, &hunk.left, left) || inside(hunk, &hunk.right, right))
    };
    if is_minor { Difference::MinorItem } else { Difference::MainItem }
}

/// What stands between the parts of a title.
const SEPARATORS: [&str; 7] = [" - ", " – ", " — ", " | ", " :: ", " » ", " · "];

/// Whether two titles are the same but for what a site adds to all of its titles.
fn share_a_part(left: &str, right: &str) -> bool {
    let parts = |title: &str| -> Vec<String> {
        let parts = SEPARATORS.iter().fold(title.to_owned(), |title, mark| title.replace(mark, "\n"));
        parts.lines().map(|part| part.trim().to_lowercase()).filter(|part| !part.is_empty()).collect()
    };
    let right = parts(right);
    // The first part is the page's own; the last one is often the site's.
    parts(left).first().is_some_and(|part| right.contains(part))
}

/// Whether a title has a word of a difference that means something.
fn touches(title: &str, side: &str) -> bool {
    side.split_whitespace()
        .filter(|word| word.chars().count() > 3)
        .any(|word| title.split_whitespace().any(|known| known == word))
}

/// Words of a difference that are enough to find it in the prose.
const WINDOW: usize = 6;

/// Whether one side of a difference stands in the prose of its page.
fn is_inside(hunk: &Hunk, side: &str, core: &str) -> bool {
    let words: Vec<&str> = side.split_whitespace().collect();
    if words.is_empty() {
        return false;
    }
    if words.len() >= WINDOW {
        return words.windows(WINDOW).any(|window| core.contains(&window.join(" ")));
    }
    // Few words may stand anywhere: those around them say where.
    let before: Vec<&str> = hunk.before.split_whitespace().collect();
    let after: Vec<&str> = hunk.after.split_whitespace().collect();
    let near = WINDOW - words.len();
    let with_before = [&before[before.len().saturating_sub(near)..], &words[..]].concat().join(" ");
    let with_after = [&words[..], &after[..near.min(after.len())]].concat().join(" ");
    core.contains(&with_before) || core.contains(&with_after)
}

#[cfg(test)]
mod tests;
