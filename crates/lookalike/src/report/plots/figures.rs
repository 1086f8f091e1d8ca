//! Plots with titles, captions and legends, for pages that show several.

use askama::Template;

use crate::error::Result;
use crate::report::plots::chart::{COLOURS, Scale, Series, draw};
use crate::report::plots::heat_map;
use crate::report::render;

/// A plot with its title, caption and legend.
pub(crate) struct Figure {
    pub(crate) title: String,
    /// Which figure of which paper it corresponds to, for the table of its points; empty if none.
    pub(crate) paper: &'static str,
    pub(crate) note: String,
    pub(crate) svg: String,
    /// Class and name of each series.
    pub(crate) legend: Vec<(usize, String)>,
    /// What the axes are.
    axes: [String; 2],
    /// What is drawn: the series, and its points as they are written.
    rows: Vec<[String; 3]>,
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
    // Shares take no more of the axis than they need.
    let fit = |scale: Scale, of: fn(&(f64, f64)) -> f64| match scale {
        Scale::SHARE => Scale::share_of(series.iter().flat_map(|series| &series.points).map(of)),
        scale => scale,
    };
    let (x, y) = ((x.0, fit(x.1, |point| point.0)), (y.0, fit(y.1, |point| point.1)));
    let legend = series.iter().enumerate().map(|(at, series)| (at % COLOURS, series.name.clone())).collect();
    let points = series.iter().flat_map(|series| series.points.iter().map(move |point| (&series.name, point)));
    let rows = points.map(|(name, (x, y))| [name.clone(), written(*x), written(*y)]).collect();
    let axes = [x.0.to_owned(), y.0.to_owned()];
    Figure { svg: draw(&title, x, y, series), title, paper, note: note.into(), legend, axes, rows }
}

/// Draws values over two lists of names, as shaded cells.
pub(crate) fn surface(
    title: impl Into<String>,
    note: impl Into<String>,
    x: (&str, &[String]),
    y: (&str, &[String]),
    value: impl Fn(usize, usize) -> Option<f64>,
) -> Figure {
    let title = title.into();
    let cells = (0..y.1.len()).flat_map(|row| (0..x.1.len()).map(move |column| (row, column)));
    let rows = cells.filter_map(|(row, column)| {
        Some([format!("{} {}", y.0, y.1[row]), x.1[column].clone(), written(value(row, column)?)])
    });
    let (rows, axes) = (rows.collect(), [x.0.to_owned(), "value".to_owned()]);
    Figure {
        svg: heat_map::draw(&title, x, y, value),
        title,
        paper: "",
        note: note.into(),
        legend: Vec::new(),
        axes,
        rows,
    }
}

/// A number as short as it can be told from its neighbours to six digits.
fn written(value: f64) -> String {
    let text = format!("{value:.6}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// What the figures show, as a table: one line for each point.
pub(crate) fn csv(figures: &[Figure]) -> String {
    let cell = |text: &str| {
        if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
    };
    let mut table = "figure,paper,x_axis,y_axis,series,x,y\n".to_owned();
    for figure in figures {
        for [series, x, y] in &figure.rows {
            let row = [&figure.title, figure.paper, &figure.axes[0], &figure.axes[1], series, x, y].map(cell);
            table.push_str(&row.join(","));
            table.push('\n');
        }
    }
    table
}

/// Examples under the figures.
pub(crate) struct ExampleTable {
    pub(crate) title: &'static str,
    pub(crate) note: String,
    pub(crate) heads: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<ExampleCell>>,
}

/// A cell of it.
#[derive(Default)]
pub(crate) struct ExampleCell {
    pub(crate) text: String,
    /// Where it leads.
    pub(crate) link: Option<String>,
    /// What stands below it.
    pub(crate) below: String,
}

#[derive(Template)]
#[template(path = "figures.html")]
struct Page<'a> {
    title: &'a str,
    lead: &'a str,
    figures: &'a [Figure],
    tables: &'a [ExampleTable],
    version: &'static str,
}

/// A page with figures.
pub(crate) fn page(title: &str, lead: &str, figures: &[Figure], tables: &[ExampleTable]) -> Result<String> {
    render::html(&Page { title, lead, figures, tables, version: env!("CARGO_PKG_VERSION") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_a_line_of_the_table() {
        let series = [Series::line("a, \"b\"", vec![(1.0, 0.25), (2.0, 1.0 / 3.0)])];
        let lines = figure("Title", "Paper, Figure 1", "", ("x", Scale::SHARE), ("y", Scale::SHARE), &series);
        let cells = surface("Cells", "", ("n", &["1".to_owned()]), ("m", &["2".to_owned()]), |_, _| Some(0.5));
        let table = csv(&[lines, cells]);
        let expected = [
            "figure,paper,x_axis,y_axis,series,x,y",
            "Title,\"Paper, Figure 1\",x,y,\"a, \"\"b\"\"\",1,0.25",
            "Title,\"Paper, Figure 1\",x,y,\"a, \"\"b\"\"\",2,0.333333",
            "Cells,,n,value,m 2,1,0.5",
        ];
        assert_eq!(table.lines().collect::<Vec<_>>(), expected);
    }
}
