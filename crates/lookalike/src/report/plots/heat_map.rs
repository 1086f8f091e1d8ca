//! Values over two lists of names → SVG: a table of shaded cells.

use std::fmt::Write as _;

use crate::report::numbers::shown_share;
use crate::report::plots::{Canvas, LEFT, RIGHT, TOP, escape, for_all_screens};

const CELL_HEIGHT: f64 = 26.0;
/// Below the cells: the names of the columns, and what they are.
const FOOT: f64 = 44.0;
/// Left of the cells: the names of the rows.
const ROW_NAMES: f64 = LEFT + 30.0;

/// Draws a row of cells for each of `rows`, a cell for each of `columns`; values are shares, darker if they are larger.
pub(crate) fn draw(
    label: &str,
    x: (&str, &[String]),
    y: (&str, &[String]),
    value: impl Fn(usize, usize) -> Option<f64>,
) -> String {
    for_all_screens(|canvas| draw_on(canvas, label, x, y, &value))
}

fn draw_on(
    canvas: Canvas,
    label: &str,
    (x_name, columns): (&str, &[String]),
    (y_name, rows): (&str, &[String]),
    value: &impl Fn(usize, usize) -> Option<f64>,
) -> String {
    let width = (canvas.width - ROW_NAMES - RIGHT) / columns.len().max(1) as f64;
    let height = TOP + CELL_HEIGHT * rows.len() as f64 + FOOT;
    let mut svg = canvas.of_height(height).open(label);
    let mut text = |class: &str, anchor: &str, (x, y): (f64, f64), text: &str| {
        let text = escape(text);
        let _ = write!(svg, "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
    };
    for (column, name) in columns.iter().enumerate() {
        text("tick", "middle", (ROW_NAMES + width * (column as f64 + 0.5), height - FOOT + 16.0), name);
    }
    text("axis", "middle", ((ROW_NAMES + canvas.width - RIGHT) / 2.0, height - 8.0), x_name);
    text("axis", "start", (0.0, TOP - 3.0), y_name);
    let best = |of: &dyn Fn(f64, f64) -> f64, from: f64| {
        let cells = (0..rows.len()).flat_map(|row| (0..columns.len()).map(move |column| (row, column)));
        cells.filter_map(|(row, column)| value(row, column)).fold(from, of)
    };
    let (least, most) = (best(&f64::min, f64::INFINITY), best(&f64::max, 0.0));
    for (row, name) in rows.iter().enumerate() {
        let y = TOP + CELL_HEIGHT * row as f64;
        let middle = y + CELL_HEIGHT / 2.0 + 4.0;
        let _ = write!(
            svg,
            "<text class=\"tick\" text-anchor=\"end\" x=\"{:.1}\" y=\"{middle:.1}\">{}</text>",
            ROW_NAMES - 6.0,
            escape(name)
        );
        for column in 0..columns.len() {
            let x = ROW_NAMES + width * column as f64;
            let Some(share) = value(row, column) else { continue };
            let shade = if most > least { (share - least) / (most - least) } else { 1.0 };
            let _ = write!(
                svg,
                "<rect class=\"heat\" fill-opacity=\"{:.2}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/><text class=\"value\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{middle:.1}\">{}</text>",
                0.06 + 0.6 * shade,
                width - 2.0,
                CELL_HEIGHT - 2.0,
                x + width / 2.0 - 1.0,
                shown_share(share, 3),
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_cell_and_the_best_is_the_darkest() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let (columns, rows) = (names(&["1", "2<3"]), names(&["a", "b"]));
        let value = |row: usize, column: usize| (row + column < 2).then_some(0.25 * (1 + row + 2 * column) as f64);
        let svg = draw("x", ("n", &columns), ("m", &rows), value);
        let svg = &svg[..svg.find("</svg>").unwrap()];
        assert_eq!(svg.matches("<rect").count(), 3);
        assert!(
            svg.contains("2&lt;3") && svg.contains(">0.250<") && svg.contains(">0.500<") && svg.contains(">0.750<")
        );
        assert_eq!(svg.matches("fill-opacity=\"0.66\"").count(), 1);
    }
}
