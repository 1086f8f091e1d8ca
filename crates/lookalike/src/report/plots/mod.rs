//! Numbers → SVG. No script, no fonts, no network; colours come from the page's style sheet.
//!
//! Every drawing for a page is made twice, for wide screens and for narrow ones, with letters of the same size; the style
//! sheet shows the one that fits.

pub(crate) mod chart;
pub(crate) mod figures;
pub(crate) mod heat_map;

use std::fmt::Write as _;

use crate::report::numbers::{counted, thousands};

/// The room that a drawing has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Canvas {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// The class by which the style sheet finds it.
    class: &'static str,
}

const WIDE: Canvas = Canvas { width: 560.0, height: 240.0, class: "wide" };
const NARROW: Canvas = Canvas { width: 340.0, height: 220.0, class: "narrow" };

/// What the axes leave free.
const LEFT: f64 = 54.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 42.0;
/// The width of a letter, about.
const LETTER: f64 = 6.4;

impl Canvas {
    pub(crate) fn is_narrow(self) -> bool {
        self.width < WIDE.width
    }

    /// The same with another height.
    pub(crate) fn of_height(self, height: f64) -> Canvas {
        Canvas { height, ..self }
    }

    fn inner_width(self) -> f64 {
        self.width - LEFT - RIGHT
    }

    pub(crate) fn x(self, share: f64) -> f64 {
        LEFT + share * self.inner_width()
    }

    pub(crate) fn y(self, share: f64) -> f64 {
        self.height - BOTTOM - share * (self.height - TOP - BOTTOM)
    }

    /// The element that holds a drawing.
    pub(crate) fn open(self, label: &str) -> String {
        let Canvas { width, height, class } = self;
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">",
            escape(label)
        )
    }
}

/// A drawing for wide screens and one for narrow ones.
pub(crate) fn for_all_screens(draw: impl Fn(Canvas) -> String) -> String {
    [WIDE, NARROW].map(draw).concat()
}

/// Text in markup.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// A drawing under construction. Writing to a string cannot fail.
struct Drawing {
    canvas: Canvas,
    svg: String,
}

impl Drawing {
    fn new(canvas: Canvas, label: &str) -> Drawing {
        Drawing { canvas, svg: canvas.open(label) }
    }

    fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ =
            write!(self.svg, "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>");
    }

    fn text(&mut self, class: &str, anchor: &str, (x, y): (f64, f64), text: &str) {
        let _ = write!(
            self.svg,
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
        );
    }

    fn bar(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), hover: &str) {
        let _ = write!(
            self.svg,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"1.5\"><title>{hover}</title></rect>"
        );
    }

    fn finish(mut self) -> String {
        self.svg.push_str("</svg>");
        self.svg
    }
}

/// A round number at or above `value`, with its grid lines: at most six.
fn grid(value: u64) -> (f64, Vec<u64>) {
    let mut unit = 1u64;
    loop {
        for step in [unit, unit * 2, unit * 5] {
            if step.saturating_mul(5) >= value {
                let parts = value.div_ceil(step).max(1);
                return ((step * parts) as f64, (0..=parts).map(|part| part * step).collect());
            }
        }
        unit = unit.saturating_mul(10);
    }
}

/// A number that fits beside an axis.
fn short(number: u64) -> String {
    match number {
        0..100_000 => thousands(number),
        100_000..10_000_000 => format!("{}k", thousands(number / 1000)),
        _ => format!("{}M", thousands(number / 1_000_000)),
    }
}

fn frame(drawing: &mut Drawing, most: u64, x_label: &str) -> f64 {
    let canvas = drawing.canvas;
    let (top, lines) = grid(most);
    for value in lines {
        let y = canvas.y(value as f64 / top);
        drawing.line("grid", (LEFT, y), (canvas.width - RIGHT, y));
        drawing.text("tick", "end", (LEFT - 6.0, y + 4.0), &short(value));
    }
    drawing.text("axis", "middle", (canvas.x(0.5), canvas.height - 6.0), x_label);
    top
}

/// Every how many of `labels` can be written, each in `width`.
fn step_for(labels: &[String], width: f64) -> usize {
    let longest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0) as f64 * LETTER + 4.0;
    (1..labels.len()).find(|&step| step as f64 * width >= longest).unwrap_or(labels.len().max(1))
}

/// Sizes that are counted together: each by itself, or in doubling steps where sizes vary a lot.
fn size_classes(largest: u64) -> Vec<(u64, u64)> {
    if largest <= 16 {
        return (2..=largest.max(8)).map(|size| (size, size)).collect();
    }
    let mut classes = vec![(2, 2), (3, 4)];
    while classes.last().is_some_and(|class| class.1 < largest) {
        let from = classes.last().map_or(2, |class| class.1) + 1;
        classes.push((from, (from - 1) * 2));
    }
    classes
}

/// The number of groups by size.
pub(crate) fn cluster_sizes(sizes: &[u64]) -> String {
    let classes = size_classes(sizes.iter().copied().max().unwrap_or(0));
    let count = |class: &(u64, u64)| sizes.iter().filter(|size| (class.0..=class.1).contains(size)).count() as u64;
    let counts: Vec<u64> = classes.iter().map(count).collect();
    let labels: Vec<String> = classes
        .iter()
        .map(|&(from, to)| if from == to { thousands(from) } else { format!("{}–{}", thousands(from), thousands(to)) })
        .collect();
    for_all_screens(|canvas| {
        let mut drawing = Drawing::new(canvas, "Number of clusters by size");
        let top = frame(&mut drawing, counts.iter().copied().max().unwrap_or(0), "pages in the cluster");
        let width = canvas.inner_width() / classes.len().max(1) as f64;
        let step = step_for(&labels, width);
        for (at, (&found, label)) in counts.iter().zip(&labels).enumerate() {
            let x = LEFT + at as f64 * width;
            let y = canvas.y(found as f64 / top);
            let hover = format!("{} of {label} pages", counted(found, "cluster"));
            drawing.bar("bar", (x + width * 0.12, y), (width * 0.76, canvas.y(0.0) - y), &hover);
            let value = short(found);
            if found > 0 && value.chars().count() as f64 * LETTER <= width + 6.0 {
                drawing.text("value", "middle", (x + width / 2.0, y - 4.0), &value);
            }
            if at % step == 0 {
                drawing.text("tick", "middle", (x + width / 2.0, canvas.height - BOTTOM + 15.0), label);
            }
        }
        drawing.finish()
    })
}

/// Where bars of a histogram begin and end: between `from` and 1, with a border exactly at each of the thresholds, ascending, so
/// that what reaches one is on its right.
fn borders(from: f64, thresholds: &[f64], bins: usize) -> Vec<f64> {
    let inside: Vec<f64> = thresholds.iter().copied().filter(|&at| at > from && at < 1.0).take(bins - 1).collect();
    let (mut borders, mut start, mut used) = (Vec::with_capacity(bins + 1), from, 0);
    for (at, end) in inside.iter().copied().chain([1.0]).enumerate() {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of the bins
        let share = ((end - from) / (1.0 - from) * bins as f64).round() as usize;
        // Each stretch has a bar, and those behind it too.
        let until = share.clamp(used + 1, bins - (inside.len() - at));
        let parts = until - used;
        borders.extend((0..parts).map(|part| start + (end - start) * part as f64 / parts as f64));
        (start, used) = (end, until);
    }
    borders.push(1.0);
    borders
}

/// A similarity from which pairs are accepted, and which pairs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ThresholdMark {
    pub(crate) at: f64,
    pub(crate) name: String,
}

/// How similar the compared pairs are, with the thresholds, ascending.
pub(crate) fn similarities(
    accepted: impl Iterator<Item = f64> + Clone,
    near_misses: impl Iterator<Item = f64> + Clone,
    thresholds: &[ThresholdMark],
    name: &str,
) -> String {
    const BINS: usize = 40;
    const LINE_HEIGHT: f64 = 14.0;
    let marks: Vec<f64> = thresholds.iter().map(|threshold| threshold.at).collect();
    let lowest = accepted.clone().chain(near_misses.clone()).chain(marks.iter().copied()).fold(1.0, f64::min);
    let from = ((lowest - 0.05) * 10.0).floor().clamp(0.0, 9.0) / 10.0;
    let borders = borders(from, &marks, BINS);
    let bin = |similarity: f64| (borders.partition_point(|&border| border <= similarity).max(1) - 1).min(BINS - 1);
    let mut counts = [[0u64; 2]; BINS];
    accepted.for_each(|similarity| counts[bin(similarity)][0] += 1);
    near_misses.for_each(|similarity| counts[bin(similarity)][1] += 1);
    let most = counts.iter().map(|[a, b]| a + b).max().unwrap_or(0);
    for_all_screens(|canvas| {
        let mut drawing = Drawing::new(canvas, "Similarity of verified pairs");
        let top = frame(&mut drawing, most, name);
        let at = |similarity: f64| canvas.x((similarity - from) / (1.0 - from));
        let gap = if canvas.is_narrow() { 0.5 } else { 0.8 };
        for (range, [good, bad]) in borders.windows(2).zip(counts) {
            let (low, high) = (range[0], range[1]);
            let mut base = canvas.y(0.0);
            for (count, class, word) in [(good, "bar", "accepted"), (bad, "bar miss", "rejected")] {
                let height = canvas.y(0.0) - canvas.y(count as f64 / top);
                base -= height;
                if count > 0 {
                    let hover = format!("{} {word}, {low:.3} to {high:.3}", counted(count, "pair"));
                    drawing.bar(class, (at(low) + gap, base), (at(high) - at(low) - 2.0 * gap, height), &hover);
                }
            }
        }
        for tick in 0..=10 {
            let value = f64::from(tick) / 10.0;
            if value >= from - 1e-9 {
                drawing.text("tick", "middle", (at(value), canvas.height - BOTTOM + 15.0), &format!("{value:.1}"));
            }
        }
        for (row, ThresholdMark { at: threshold, name }) in thresholds.iter().enumerate() {
            let x = at(*threshold);
            drawing.line("mark", (x, TOP), (x, canvas.y(0.0)));
            // On the side that has room for it, one below the other.
            let (anchor, beside) = if x > canvas.width / 3.0 { ("end", x - 5.0) } else { ("start", x + 5.0) };
            let y = TOP + 10.0 + row as f64 * LINE_HEIGHT;
            drawing.text("mark-label", anchor, (beside, y), &format!("{name} {threshold}"));
        }
        drawing.finish()
    })
}

/// The chance to become a candidate, by similarity, with the threshold.
pub(super) fn s_curve(probability: impl Fn(f64) -> f64, threshold: Option<f64>, name: &str) -> String {
    const STEPS: u32 = 140;
    for_all_screens(|canvas| {
        let mut drawing = Drawing::new(canvas, "Chance that a pair is found, by similarity");
        for tick in 0..=5 {
            let value = f64::from(tick) / 5.0;
            drawing.line("grid", (LEFT, canvas.y(value)), (canvas.width - RIGHT, canvas.y(value)));
            drawing.text("tick", "end", (LEFT - 6.0, canvas.y(value) + 4.0), &format!("{value:.1}"));
        }
        for tick in 0..=10 {
            let value = f64::from(tick) / 10.0;
            drawing.text("tick", "middle", (canvas.x(value), canvas.height - BOTTOM + 15.0), &format!("{value:.1}"));
        }
        drawing.text("axis", "middle", (canvas.x(0.5), canvas.height - 6.0), name);
        let mut path = String::new();
        for step in 0..=STEPS {
            let s = f64::from(step) / f64::from(STEPS);
            let sign = if step == 0 { "M" } else { "L" };
            let _ = write!(path, "{sign}{:.1} {:.1}", canvas.x(s), canvas.y(probability(s)));
        }
        let _ = write!(drawing.svg, "<path class=\"curve\" d=\"{path}\"/>");
        if let Some(threshold) = threshold {
            let (x, recall) = (canvas.x(threshold), probability(threshold));
            drawing.line("mark", (x, TOP), (x, canvas.y(0.0)));
            let _ =
                write!(drawing.svg, "<circle class=\"point\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"4\"/>", canvas.y(recall));
            // Low, where the curve is far away on either side.
            let (anchor, beside) = if threshold > 0.6 { ("end", -8.0) } else { ("start", 8.0) };
            drawing.text("mark-label", anchor, (x + beside, canvas.y(0.13)), &format!("{recall:.4} at {threshold}"));
        }
        drawing.finish()
    })
}

/// What each stage leaves, as horizontal bars: all of one kind, so that their lengths can be compared.
pub(super) fn stages(label: &str, rows: &[(&str, u64)]) -> String {
    const HEIGHT: f64 = 17.0;
    let most = rows.iter().map(|row| row.1).max().unwrap_or(1).max(1);
    for_all_screens(|canvas| {
        // On narrow screens, names stand above the bars.
        let (row_height, left, above) = if canvas.is_narrow() { (40.0, 0.0, 15.0) } else { (28.0, 170.0, 0.0) };
        let number = thousands(most).chars().count() as f64 * LETTER + 14.0;
        let mut drawing = Drawing::new(canvas.of_height(row_height * rows.len() as f64 + 2.0), label);
        for (at, (name, count)) in rows.iter().enumerate() {
            let y = at as f64 * row_height + 2.0;
            let width = (*count as f64 / most as f64 * (canvas.width - left - number)).max(1.0);
            if canvas.is_narrow() {
                drawing.text("stage", "start", (0.0, y + 10.0), name);
            } else {
                drawing.text("stage", "end", (left - 10.0, y + 13.0), name);
            }
            drawing.bar("bar", (left, y + above), (width, HEIGHT), &format!("{name}: {}", thousands(*count)));
            drawing.text("value", "start", (left + width + 6.0, y + above + 13.0), &thousands(*count));
        }
        drawing.finish()
    })
}

/// Numbers as columns, side by side; every `step`-th is labelled with its index.
pub(crate) fn columns(title: &str, x_label: &str, values: &[u64], step: usize) -> String {
    let canvas = WIDE;
    let mut drawing = Drawing::new(canvas, title);
    let top = frame(&mut drawing, values.iter().copied().max().unwrap_or(0), x_label);
    let width = canvas.inner_width() / values.len().max(1) as f64;
    for (at, &value) in values.iter().enumerate() {
        let x = LEFT + at as f64 * width;
        let y = canvas.y(value as f64 / top);
        if value > 0 {
            drawing.bar("bar", (x, y), (width * 0.9, canvas.y(0.0) - y), &format!("{at}: {}", thousands(value)));
        }
        if at % step == 0 {
            drawing.text("tick", "middle", (x + width / 2.0, canvas.height - BOTTOM + 15.0), &at.to_string());
        }
    }
    drawing.finish()
}

/// A drawing as a file of its own, with its title and its colours.
pub(crate) fn standalone(title: &str, drawing: &str) -> String {
    let style = "<style>svg{font:11px system-ui,sans-serif;background:#fff}.grid{stroke:#ddd}.bar{fill:#3b6ea5}text{fill:#333}.axis{fill:#555}</style>";
    let size = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" ", WIDE.width * 1.5);
    let named = drawing.replacen("<svg ", &size, 1);
    match named.split_once('>') {
        Some((open, rest)) => {
            let heading = format!("<text x=\"{LEFT}\" y=\"10\">{title}</text>");
            format!("{open}><title>{title}</title>{style}{heading}{rest}\n")
        }
        None => named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(thresholds: &[f64]) -> Vec<ThresholdMark> {
        thresholds.iter().map(|&at| ThresholdMark { at, name: "threshold".to_owned() }).collect()
    }

    #[test]
    fn every_threshold_has_a_line_with_its_name() {
        let thresholds = [(0.4, "between sites"), (0.7, "plain text")];
        let thresholds = thresholds.map(|(at, name)| ThresholdMark { at, name: name.to_owned() });
        let plot = similarities([0.45, 0.9].into_iter(), [0.65].into_iter(), &thresholds, "similarity");
        assert_eq!(plot.matches("class=\"mark\"").count(), 2 * 2, "on wide and narrow screens");
        assert!(plot.contains("between sites 0.4</text>") && plot.contains("plain text 0.7</text>"), "{plot}");
    }

    #[test]
    fn grids_are_round_and_large_enough() {
        assert_eq!(grid(0), (1.0, vec![0, 1]));
        assert_eq!(grid(7), (8.0, vec![0, 2, 4, 6, 8]));
        assert_eq!(grid(9).0, 10.0);
        assert_eq!(grid(1234), (1500.0, vec![0, 500, 1000, 1500]));
        assert!((0..2000).all(|value| grid(value).0 >= value as f64 && grid(value).1.len() <= 6));
        assert_eq!([999, 12_345, 400_000, 20_000_000].map(short), ["999", "12,345", "400k", "20M"]);
    }

    #[test]
    fn every_pair_is_in_a_bar() {
        let plot = similarities([0.7, 0.9, 1.0].into_iter(), [0.55].into_iter(), &marks(&[0.7]), "similarity");
        let wide = &plot[..plot.find("</svg>").unwrap()];
        assert_eq!(wide.matches("1 pair accepted").count(), 3);
        assert_eq!(wide.matches("1 pair rejected").count(), 1);
        assert!(wide.contains("threshold 0.7"));
        assert!(similarities([].into_iter(), [].into_iter(), &[], "similarity").ends_with("</svg>"));
        assert!(cluster_sizes(&[]).ends_with("</svg>"));
        assert!(cluster_sizes(&[2, 900]).contains("1 cluster of 513–1,024 pages"));
    }

    #[test]
    fn a_pair_at_exactly_the_threshold_is_on_its_right() {
        for threshold in [0.43, 0.5, 0.62, 0.7, 0.9001] {
            let below = threshold - 1e-9;
            let plot = similarities([threshold].into_iter(), [below].into_iter(), &marks(&[threshold]), "similarity");
            let place = |class: &str| -> (f64, f64) {
                let (_, bar) = plot.split_once(&format!("<rect class=\"{class}\"")).unwrap();
                let number = |name: &str| {
                    let (_, rest) = bar.split_once(name).unwrap();
                    rest.split_once('"').unwrap().0.parse::<f64>().unwrap()
                };
                (number(" x=\""), number(" width=\""))
            };
            let (_, line) = plot.split_once("<line class=\"mark\" x1=\"").unwrap();
            let line: f64 = line.split_once('"').unwrap().0.parse().unwrap();
            let (accepted, rejected) = (place("bar"), place("bar miss"));
            assert!(accepted.0 >= line, "{threshold}: {accepted:?} {line}");
            assert!(rejected.0 + rejected.1 <= line, "{threshold}: {rejected:?} {line}");
        }
        assert_eq!(borders(0.0, &[], 4), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(borders(0.0, &[0.4, 0.45, 0.9], 5), [0.0, 0.2, 0.4, 0.45, 0.9, 1.0]);
    }

    #[test]
    fn labels_that_do_not_fit_are_left_out() {
        let labels: Vec<String> = ["2", "3–4", "5–8"].map(str::to_owned).to_vec();
        assert_eq!((step_for(&labels, 40.0), step_for(&labels, 12.0)), (1, 2));
        assert_eq!(step_for(&[], 10.0), 1);
    }
}
