//! Plots with titles, captions and legends, for pages that show several.

use askama::Template;

use crate::error::Result;
use crate::report::plots::chart::{COLOURS, Scale, Series, draw};
use crate::report::render;

/// A plot with its title, caption and legend.
pub(crate) struct Figure {
    pub(crate) title: String,
    /// Which figure of which paper it corresponds to.
    pub(crate) paper: &'static str,
    pub(crate) note: String,
    pub(crate) svg: String,
    /// Class and name of each series.
    pub(crate) legend: Vec<(usize, String)>,
}

/// Draws a figure.
pub(crate) fn figure(
    title: impl Into<String>,
    paper: &'static str,
    note: impl Into<String>,
    x: (&str, Scale),
    y: (&str, Scale),
    series: &[Series],
) -> Figure {
    let title = title.into();
    let legend = series.iter().enumerate().map(|(at, series)| (at % COLOURS, series.name.clone())).collect();
    Figure { svg: draw(&title, x, y, series), title, paper, note: note.into(), legend }
}

#[derive(Template)]
#[template(path = "figures.html")]
struct Page<'a> {
    title: &'a str,
    lead: &'a str,
    figures: &'a [Figure],
    version: &'static str,
}

/// A page with figures.
pub(crate) fn page(title: &str, lead: &str, figures: &[Figure]) -> Result<String> {
    render::html(&Page { title, lead, figures, version: env!("CARGO_PKG_VERSION") })
}
