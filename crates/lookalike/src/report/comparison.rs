//! Two pages side by side, as a page for people: one file, no network.

use askama::Template;

use crate::error::Result;
use crate::job::compare::{ComparedPage, Comparison};
use crate::report::diff::{SideBySide, Span};
use crate::report::render;

#[derive(Template)]
#[template(path = "comparison.html")]
struct Page<'a> {
    found: &'a Comparison,
    sides: &'a SideBySide,
    columns: [(&'a ComparedPage, &'a [Span], &'static str); 2],
    accepting: usize,
    version: &'static str,
}

/// The comparison as HTML.
///
/// # Errors
/// When the template cannot be filled in.
pub fn html(found: &Comparison, sides: &SideBySide) -> Result<String> {
    let accepting = found.methods.iter().filter(|word| word.near_duplicate).count();
    let columns = [(&found.left, &sides.left[..], "left"), (&found.right, &sides.right[..], "right")];
    render::html(&Page { found, sides, columns, accepting, version: env!("CARGO_PKG_VERSION") })
}

/// A share in whole percent.
#[must_use]
pub fn percent(share: &f64) -> String {
    format!("{:.0}", share * 100.0)
}
