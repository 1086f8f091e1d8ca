//! The pages, one file each, and what they have in common.

pub(super) mod audit;
pub(super) mod cluster;
pub(super) mod clusters;
pub(super) mod overview;
pub(super) mod pair;
pub(super) mod tags;

use std::sync::atomic::Ordering;

use askama::Template;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use chrono::DateTime;

use super::change::coder_name;
use super::failure::{Failure, Outcome};
use super::people::TagSet;
use super::reader::{GroupTag, PageRow, Reader};
use super::texts::TextState;
use super::{Shared, Workbench};

/// What every page shows around its own matter.
pub(super) struct Frame {
    /// Which of the places in the bar at the top it is.
    place: &'static str,
    /// Who asks.
    coder: String,
    coder_id: Option<i64>,
    /// What to say about texts that cannot be searched yet, or about a result that is no longer there.
    texts: Option<String>,
    version: u64,
    directory: String,
}

impl Frame {
    fn new(bench: &Workbench, reader: &Reader<'_>, headers: &HeaderMap, place: &'static str) -> Outcome<Frame> {
        let coder = coder_name(bench, headers);
        let known = reader.coders()?.into_iter().find(|known| known.1 == coder);
        let texts = match bench.texts.state() {
            _ if bench.is_outdated() => {
                Some("The result was made again. Stop lookalike view and start it again to see the new one.".to_owned())
            }
            TextState::Ready => None,
            TextState::Reading(_, 0) => {
                Some("Texts are being read; until then, titles and addresses are searched.".to_owned())
            }
            TextState::Reading(done, all) => Some(format!(
                "Texts are being read ({} %); until then, titles and addresses are searched.",
                done * 100 / all.max(1)
            )),
            TextState::Failed(reason) => Some(format!("Texts cannot be searched or shown: {reason}")),
        };
        Ok(Frame {
            place,
            coder_id: known.map(|known| known.0),
            coder,
            texts,
            version: bench.version.load(Ordering::Relaxed),
            directory: bench.settings.directory.display().to_string(),
        })
    }
}

#[derive(Template)]
#[template(path = "workbench/message.html")]
struct MessagePage<'a> {
    message: &'a str,
}

#[derive(Template)]
#[template(path = "workbench/sign_in.html")]
struct SignInPage;

fn rendered(page: &impl Template) -> Outcome<String> {
    page.render().map_err(|error| {
        Failure::Library(lookalike::Error::internal(format!("a template could not be rendered: {error}")))
    })
}

/// A page that says one thing.
pub(super) fn message_page(message: &str) -> String {
    MessagePage { message }.render().unwrap_or_default()
}

/// The page on which a token is given.
pub(super) fn sign_in_page() -> String {
    SignInPage.render().unwrap_or_default()
}

pub(super) async fn not_found() -> Response {
    (StatusCode::NOT_FOUND, Html(message_page("There is no such page."))).into_response()
}

/// Answers with a page, made where it may take its time.
async fn page(bench: Shared, make: impl FnOnce(&Workbench) -> Outcome<String> + Send + 'static) -> Response {
    match tokio::task::spawn_blocking(move || make(&bench)).await {
        Ok(Ok(page)) => Html(page).into_response(),
        Ok(Err(failure)) => (failure.status(), Html(message_page(&failure.to_string()))).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, Html(message_page("This page cannot be shown."))).into_response(),
    }
}

/// Style and script.
pub(super) async fn asset(Path(name): Path<String>) -> Response {
    let (kind, body) = match name.as_str() {
        "workbench.css" => ("text/css; charset=utf-8", include_str!("../../../templates/workbench/workbench.css")),
        "workbench.js" => ("text/javascript; charset=utf-8", include_str!("../../../templates/workbench/workbench.js")),
        "icon.svg" => ("image/svg+xml", include_str!("../../../templates/workbench/icon.svg")),
        _ => return not_found().await,
    };
    let mut response = body.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A number with a comma every three digits.
fn thousands(number: &i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if *number < 0 { format!("-{out}") } else { out }
}

/// A number and what it counts.
fn counted(number: &i64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(number), if *number == 1 { "" } else { "s" })
}

/// A similarity for people; 1 is only what is the same.
fn similarity(value: &f64) -> String {
    format!("{:.3}", (value * 1000.0).floor() / 1000.0)
}

/// A day, from seconds since 1970.
fn day(seconds: &i64) -> String {
    DateTime::from_timestamp(*seconds, 0).map_or_else(String::new, |time| time.format("%Y-%m-%d %H:%M").to_string())
}

/// Characters of a name that are shown.
const NAME_CHARS: usize = 160;

/// A text cut to what fits.
fn cut(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).take(NAME_CHARS + 1).collect();
    if text.chars().count() > NAME_CHARS { text.chars().take(NAME_CHARS).chain(['…']).collect() } else { text }
}

/// What a page is called: its title, the beginning of its text, or its id.
fn name(page: &PageRow) -> String {
    let title = page.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
    let beginning = Some(page.beginning.as_str()).filter(|text| !text.is_empty());
    cut(title.or(beginning).unwrap_or(&page.id))
}

/// The address of a page, if a browser can go there without running anything.
fn web_address(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once("://")?;
    ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)).then_some(url)
}

/// What became of a page, in words.
fn kind_name(kind: &str) -> &str {
    match kind {
        "representative" => "kept",
        "unique" => "only one",
        "exact" => "exact copy",
        "same_core" => "same text in another frame",
        "near" => "near-duplicate",
        "contained" => "contained in it",
        kind => kind,
    }
}

/// What two pages have in common, by the similarity of what was compared and that of the whole pages.
fn verdict(similarity: f64, page_similarity: Option<f64>, is_accepted: bool) -> &'static str {
    /// Whole pages are the same page, as people see it, from here on.
    const SAME_PAGE: f64 = 0.7;
    /// If whole pages are less similar than what was compared by more than this, the rest is another frame.
    const OTHER_FRAME: f64 = 0.1;
    match (is_accepted, page_similarity) {
        (true, Some(whole)) if similarity - whole > OTHER_FRAME => "same core, other frame",
        (true, Some(_)) => "same core, same frame",
        (true, None) => "same core",
        (false, Some(whole)) if whole >= SAME_PAGE => "same frame, other core",
        (false, _) => "other core",
    }
}

/// A tag on a cluster, for people.
struct Chip {
    label: String,
    colour: i64,
    /// Who gave it, and to how many pages if not to all.
    note: String,
}

/// The tags of a cluster: one chip per tag.
fn chips(tags: &[GroupTag], sets: &[TagSet], coders: &[(i64, String)], pages: i64) -> Vec<Chip> {
    let mut chips = Vec::new();
    for tag in sets.iter().flat_map(|set| &set.tags) {
        let given: Vec<&GroupTag> = tags.iter().filter(|given| given.tag == tag.id).collect();
        if given.is_empty() {
            continue;
        }
        let names: Vec<String> = given
            .iter()
            .map(|given| {
                let name = coders.iter().find(|coder| coder.0 == given.coder).map_or("?", |coder| coder.1.as_str());
                if given.pages == pages { name.to_owned() } else { format!("{name} ({} of {pages})", given.pages) }
            })
            .collect();
        chips.push(Chip { label: tag.label.clone(), colour: tag.colour, note: names.join(", ") });
    }
    chips
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_the_same_is_shown_as_one() {
        assert_eq!([1.0, 0.9999, 0.5].map(|value| similarity(&value)), ["1.000", "0.999", "0.500"]);
    }

    #[test]
    fn core_and_frame_are_told_apart() {
        assert_eq!(verdict(0.9, Some(0.3), true), "same core, other frame");
        assert_eq!(verdict(0.98, Some(0.82), true), "same core, other frame");
        assert_eq!(verdict(0.9, Some(0.85), true), "same core, same frame");
        assert_eq!(verdict(0.2, Some(0.8), false), "same frame, other core");
        assert_eq!(verdict(0.3, Some(0.3), false), "other core");
    }

    #[test]
    fn names_are_cut_and_numbers_grouped() {
        assert_eq!(cut("a\u{0}b\nc"), "abc");
        assert_eq!(cut(&"x".repeat(1000)).chars().count(), NAME_CHARS + 1);
        assert_eq!((thousands(&1_234_567), counted(&1, "page")), ("1,234,567".to_owned(), "1 page".to_owned()));
        assert_eq!(web_address("javascript:alert(1)"), None);
    }
}
