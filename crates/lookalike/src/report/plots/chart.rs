//! Curves → SVG: axes, ticks, lines or points. Colours come from the page's style sheet, by the class of a series.

use std::fmt::Write as _;

use crate::report::numbers::thousands;
use crate::report::plots::{BOTTOM, Canvas, LEFT, RIGHT, TOP, escape, for_all_screens};

/// How values map to positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scale {
    /// Between two numbers.
    Linear(f64, f64),
    /// Between two numbers above 0, by their logarithms.
    Log(f64, f64),
}

impl Scale {
    /// From 0 to 1.
    pub(crate) const SHARE: Scale = Scale::Linear(0.0, 1.0);

    /// Wide enough for all values, from 0 on.
    pub(crate) fn from_zero(values: impl Iterator<Item = f64>) -> Scale {
        let most = values.fold(1.0, f64::max);
        Scale::Linear(0.0, step(most) * (most / step(most)).ceil())
    }

    /// As much of 0 to 1 as the values take, from a round number to a round number.
    pub(crate) fn share_of(values: impl Iterator<Item = f64>) -> Scale {
        let (least, most) = values.fold((1.0f64, 0.0f64), |(least, most), value| (least.min(value), most.max(value)));
        if most <= least {
            return Scale::SHARE;
        }
        let step = step(most - least);
        let (from, to) = ((least / step).floor() * step, (most / step).ceil() * step);
        Scale::Linear(from.max(0.0), to.min(1.0))
    }

    /// Wide enough for all values, as powers of ten.
    pub(crate) fn powers(values: impl Iterator<Item = f64>) -> Scale {
        let most = values.fold(10.0, f64::max);
        Scale::Log(1.0, 10f64.powf(most.log10().ceil()))
    }

    fn share(self, value: f64) -> f64 {
        match self {
            Scale::Linear(from, to) => (value - from) / (to - from),
            Scale::Log(from, to) => (value.max(from).ln() - from.ln()) / (to.ln() - from.ln()),
        }
    }

    fn ticks(self) -> Vec<f64> {
        match self {
            Scale::Linear(from, to) => {
                let step = step(to - from);
                let first = (from / step).ceil();
                let mut ticks = Vec::new();
                let mut at = first;
                while at * step <= to + step * 1e-6 {
                    ticks.push(at * step);
                    at += 1.0;
                }
                ticks
            }
            Scale::Log(from, to) => {
                let mut ticks = vec![from];
                while ticks.last().is_some_and(|last| *last < to * 0.999) {
                    ticks.push(ticks[ticks.len() - 1] * 10.0);
                }
                ticks
            }
        }
    }
}

/// A round step that divides a range into about five.
fn step(range: f64) -> f64 {
    let unit = 10f64.powf((range / 5.0).log10().floor());
    let parts = range / 5.0 / unit;
    unit * if parts <= 1.0 {
        1.0
    } else if parts <= 2.0 {
        2.0
    } else if parts <= 5.0 {
        5.0
    } else {
        10.0
    }
}

/// Points that belong together.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether a line goes through them.
    pub(crate) is_line: bool,
}

impl Series {
    pub(crate) fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, is_line: true }
    }

    pub(crate) fn dots(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, is_line: false }
    }
}

/// Draws series over two axes; each has the class `c0`, `c1`, ….
pub(crate) fn draw(label: &str, x: (&str, Scale), y: (&str, Scale), series: &[Series]) -> String {
    for_all_screens(|canvas| {
        let height = if canvas.is_narrow() { 260.0 } else { 300.0 };
        draw_on(canvas.of_height(height), label, x, y, series)
    })
}

fn draw_on(
    canvas: Canvas,
    label: &str,
    (x_name, x): (&str, Scale),
    (y_name, y): (&str, Scale),
    series: &[Series],
) -> String {
    let at_x = |value: f64| canvas.x(x.share(value).clamp(0.0, 1.0));
    let at_y = |value: f64| canvas.y(y.share(value).clamp(0.0, 1.0));
    let mut svg = canvas.open(label);
    for tick in y.ticks() {
        let place = at_y(tick);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{place:.1}\" y2=\"{place:.1}\"/><text class=\"tick\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            canvas.width - RIGHT,
            LEFT - 6.0,
            place + 4.0,
            number(tick)
        );
    }
    for tick in x.ticks() {
        let _ = write!(
            svg,
            "<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            at_x(tick),
            canvas.height - BOTTOM + 16.0,
            number(tick)
        );
    }
    let _ = write!(
        svg,
        "<text class=\"axis\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text><text class=\"axis\" text-anchor=\"middle\" transform=\"translate(12 {:.1}) rotate(-90)\">{}</text>",
        canvas.x(0.5),
        canvas.height - 6.0,
        escape(x_name),
        (TOP + canvas.height - BOTTOM) / 2.0,
        escape(y_name)
    );
    for (number_of, series) in series.iter().enumerate() {
        let class = number_of % COLOURS;
        if series.is_line && series.points.len() > 1 {
            let mut path = String::new();
            for (at, &(a, b)) in series.points.iter().enumerate() {
                let _ = write!(path, "{}{:.1} {:.1}", if at == 0 { "M" } else { "L" }, at_x(a), at_y(b));
            }
            let _ = write!(svg, "<path class=\"curve c{class}\" d=\"{path}\"/>");
        }
        for &(a, b) in &series.points {
            let _ = write!(
                svg,
                "<circle class=\"dot c{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{}\"><title>{}: {}, {}</title></circle>",
                at_x(a),
                at_y(b),
                if series.is_line { 2.6 } else { 3.0 },
                escape(&series.name),
                number(a),
                number(b)
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

/// Colours that the style sheet has.
pub(crate) const COLOURS: usize = 8;

/// A number without meaningless digits.
pub(super) fn number(value: f64) -> String {
    if value.abs() >= 1000.0 && value.fract() == 0.0 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count
        let count = value as u64;
        return thousands(count);
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let written = |scale: Scale| scale.ticks().into_iter().map(number).collect::<Vec<_>>();
        assert_eq!(written(Scale::SHARE), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(written(Scale::from_zero([7.0, 1234.0].into_iter())), ["0", "500", "1,000", "1,500"]);
        assert_eq!(written(Scale::Log(1.0, 1000.0)), ["1", "10", "100", "1,000"]);
        assert_eq!(written(Scale::Linear(330.0, 384.0)).first().map(String::as_str), Some("340"));
    }

    #[test]
    fn shares_take_the_room_that_there_is() {
        assert_eq!(Scale::share_of([0.83, 0.97].into_iter()), Scale::Linear(0.8, 1.0));
        assert_eq!(Scale::share_of([0.1, 1.0].into_iter()), Scale::Linear(0.0, 1.0));
        assert_eq!(Scale::share_of([0.5].into_iter()), Scale::SHARE);
        assert_eq!(Scale::share_of(std::iter::empty()), Scale::SHARE);
    }

    #[test]
    fn every_point_is_drawn_and_names_are_harmless() {
        let series = [Series::line("a<b", vec![(0.0, 0.0), (1.0, 1.0)]), Series::dots("c", vec![(0.5, 2.0)])];
        let svg = draw("x \"y\"", ("x", Scale::SHARE), ("y", Scale::SHARE), &series);
        // Once for wide screens, once for narrow ones.
        assert_eq!(svg.matches("<circle").count(), 2 * 3);
        assert_eq!(svg.matches("<path").count(), 2);
        assert!(svg.contains("a&lt;b: 0, 0") && !svg.contains("a<b"));
    }
}
