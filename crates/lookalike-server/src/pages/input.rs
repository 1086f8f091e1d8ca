//! A page in the body of a request.

use std::borrow::Cow;

use lookalike::online::PageExtras;
use lookalike::{Body, Markup, RawPage};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::problem::{Problem, ProblemKind};

/// Longest id or URL, in bytes.
const MOST_NAME_BYTES: usize = 2048;

/// A page, with exactly one of `html` and `text`
// One plain object, since generators make little of an alternative between fields.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Page)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageInput<'a> {
    /// Its name; the URL if there is none
    #[serde(borrow, default)]
    #[schema(min_length = 1, max_length = 2048, pattern = r"^[^\x00-\x1f\x7f]+$")]
    id: Option<Cow<'a, str>>,
    /// Where it was fetched from
    #[serde(borrow, default)]
    #[schema(min_length = 1, max_length = 2048, pattern = r"^[^\x00-\x1f\x7f]+$")]
    url: Option<Cow<'a, str>>,
    /// The title of a text; HTML has its own
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
    /// Its markup
    #[serde(borrow, default)]
    html: Option<Cow<'a, str>>,
    /// Its text
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    /// An object that is stored with it and comes back with it
    #[serde(borrow, default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<&'a RawValue>,
    /// Seconds for which it is stored; otherwise as the collection says
    #[serde(default)]
    #[schema(minimum = 1)]
    ttl: Option<u64>,
}

impl PageInput<'_> {
    /// The page, if it is one and has at most `most_bytes`.
    pub(crate) fn page(&self, most_bytes: usize) -> Result<RawPage<'_>, Problem> {
        let (body, markup) = match (&self.html, &self.text) {
            (Some(html), None) => (html, Markup::Html),
            (None, Some(text)) => (text, Markup::Text),
            (None, None) => return Err(ProblemKind::BadField.with("a page needs html or text")),
            (Some(_), Some(_)) => return Err(ProblemKind::BadField.with("a page has either html or text, not both")),
        };
        if body.len() > most_bytes {
            let reason = format!("the page has {} bytes; the limit is {most_bytes}", body.len());
            return Err(ProblemKind::TooLarge.with(reason));
        }
        for (name, value) in [("id", &self.id), ("url", &self.url)] {
            if let Some(value) = value {
                check_name(name, value)?;
            }
        }
        let own = |text: &Option<Cow<'_, str>>| text.as_deref().map(|text| Cow::Owned(text.to_owned()));
        let mut page = RawPage::new(Body::Text(Cow::Borrowed(body)), markup);
        (page.id, page.url, page.title) = (own(&self.id), own(&self.url), own(&self.title));
        Ok(page)
    }

    /// What is stored with the page.
    pub(super) fn extras(&self, most_metadata: usize) -> Result<PageExtras, Problem> {
        let metadata = self.metadata.map(|json| json.get().trim()).filter(|json| *json != "null");
        if metadata.is_some_and(|json| !json.starts_with('{')) {
            return Err(ProblemKind::BadField.with("metadata must be an object"));
        }
        if let Some(json) = metadata.filter(|json| json.len() > most_metadata) {
            let reason = format!("the metadata has {} bytes; the limit is {most_metadata}", json.len());
            return Err(ProblemKind::TooLarge.with(reason));
        }
        if self.ttl == Some(0) {
            return Err(ProblemKind::BadField.with("ttl must be at least 1 second"));
        }
        Ok(PageExtras { ttl_seconds: self.ttl, metadata: metadata.map(str::to_owned) })
    }
}

fn check_name(name: &str, value: &str) -> Result<(), Problem> {
    let is_fine = (1..=MOST_NAME_BYTES).contains(&value.len()) && !value.chars().any(|c| c.is_ascii_control());
    if is_fine {
        return Ok(());
    }
    Err(ProblemKind::BadField.with(format!("{name} must be 1 to {MOST_NAME_BYTES} bytes without control characters")))
}
