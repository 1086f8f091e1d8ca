//! Numbers → SVG. No script, no fonts, no network; colours come from the page's style sheet.

pub(crate) mod chart;
pub(crate) mod figures;
pub(crate) mod heat_map;

use std::fmt::Write as _;

use crate::report::numbers::{counted, thousands};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 240.0;
/// What the axes leave free.
const LEFT: f64 = 54.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 42.0;

/// A drawing under construction. Writing to a string cannot fail.
struct Drawing(String);

impl Drawing {
    fn new(height: f64, label: &str) -> Drawing {
        Drawing(format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{label}\">"))
    }

    fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = write!(self.0, "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>");
    }

    fn text(&mut self, class: &str, anchor: &str, (x, y): (f64, f64), text: &str) {
        let _ =
            write!(self.0, "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
    }

    fn bar(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), hover: &str) {
        let _ = write!(
            self.0,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"1.5\"><title>{hover}</title></rect>"
        );
    }

    fn finish(mut self) -> String {
        self.0.push_str("</svg>");
        self.0
    }
}

fn x_of(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

fn y_of(share: f64) -> f64 {
    HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
}

/// A round number at or above `value`, with its grid lines.
fn grid(value: u64) -> (f64, Vec<u64>) {
    let mut unit = 1u64;
    loop {
        for step in [unit, unit * 2, unit * 5] {
            if step.saturating_mul(4) >= value {
                return ((step * 4) as f64, (0..=4).map(|n| n * step).collect());
            }
        }
        unit = unit.saturating_mul(10);
    }
}

fn frame(drawing: &mut Drawing, most: u64, x_label: &str) -> f64 {
    let (top, lines) = grid(most);
    for value in lines {
        let y = y_of(value as f64 / top);
        drawing.line("grid", (LEFT, y), (WIDTH - RIGHT, y));
        drawing.text("tick", "end", (LEFT - 6.0, y + 4.0), &thousands(value));
    }
    drawing.text("axis", "middle", (x_of(0.5), HEIGHT - 6.0), x_label);
    top
}

/// The number of groups by size; in doubling steps where sizes vary a lot.
pub(super) fn cluster_sizes(sizes: &[u64]) -> String {
    let mut drawing = Drawing::new(HEIGHT, "Number of clusters by size");
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let classes: Vec<(u64, u64)> = if largest <= 16 {
        (2..=largest.max(8)).map(|size| (size, size)).collect()
    } else {
        let mut classes = vec![(2, 2), (3, 4)];
        while classes.last().is_some_and(|class| class.1 < largest) {
            let from = classes.last().map_or(2, |class| class.1) + 1;
            classes.push((from, (from - 1) * 2));
        }
        classes
    };
    let count = |class: &(u64, u64)| sizes.iter().filter(|size| (class.0..=class.1).contains(size)).count() as u64;
    let most = classes.iter().map(count).max().unwrap_or(0);
    let top = frame(&mut drawing, most, "pages in the cluster");
    let width = (WIDTH - LEFT - RIGHT) / classes.len().max(1) as f64;
    for (at, class) in classes.iter().enumerate() {
        let x = LEFT + at as f64 * width;
        let label = if class.0 == class.1 { class.0.to_string() } else { format!("{}–{}", class.0, class.1) };
        let found = count(class);
        let y = y_of(found as f64 / top);
        drawing.bar(
            "bar",
            (x + width * 0.12, y),
            (width * 0.76, y_of(0.0) - y),
            &format!("{} of {label} pages", counted(found, "cluster")),
        );
        if found > 0 {
            drawing.text("value", "middle", (x + width / 2.0, y - 4.0), &thousands(found));
        }
        drawing.text("tick", "middle", (x + width / 2.0, HEIGHT - BOTTOM + 15.0), &label);
    }
    drawing.finish()
}

/// How similar the compared pairs are, with the threshold.
pub(super) fn similarities(accepted: &[f64], near_misses: &[f64], threshold: Option<f64>, name: &str) -> String {
    const BINS: usize = 40;
    let mut drawing = Drawing::new(HEIGHT, "Similarity of verified pairs");
    let all = || accepted.iter().chain(near_misses).copied();
    let lowest = all().fold(threshold.unwrap_or(1.0), f64::min);
    let from = ((lowest - 0.05) * 10.0).floor().clamp(0.0, 9.0) / 10.0;
    let bin = |similarity: f64| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and BINS
        let at = (((similarity - from) / (1.0 - from)).clamp(0.0, 1.0) * BINS as f64) as usize;
        at.min(BINS - 1)
    };
    let mut counts = [[0u64; 2]; BINS];
    accepted.iter().for_each(|&similarity| counts[bin(similarity)][0] += 1);
    near_misses.iter().for_each(|&similarity| counts[bin(similarity)][1] += 1);
    let most = counts.iter().map(|[a, b]| a + b).max().unwrap_or(0);
    let top = frame(&mut drawing, most, name);
    let width = (WIDTH - LEFT - RIGHT) / BINS as f64;
    for (at, [good, bad]) in counts.iter().enumerate() {
        let x = LEFT + at as f64 * width;
        let (low, high) =
            (from + (1.0 - from) * at as f64 / BINS as f64, from + (1.0 - from) * (at + 1) as f64 / BINS as f64);
        let mut base = y_of(0.0);
        for (count, class, word) in [(*good, "bar", "accepted"), (*bad, "bar miss", "rejected")] {
            let height = y_of(0.0) - y_of(count as f64 / top);
            base -= height;
            if count > 0 {
                drawing.bar(
                    class,
                    (x + 0.8, base),
                    (width - 1.6, height),
                    &format!("{} {word}, {low:.3} to {high:.3}", counted(count, "pair")),
                );
            }
        }
    }
    for tick in 0..=10 {
        let value = f64::from(tick) / 10.0;
        if value >= from - 1e-9 {
            drawing.text(
                "tick",
                "middle",
                (x_of((value - from) / (1.0 - from)), HEIGHT - BOTTOM + 15.0),
                &format!("{value:.1}"),
            );
        }
    }
    if let Some(threshold) = threshold {
        let x = x_of((threshold - from) / (1.0 - from));
        drawing.line("mark", (x, TOP), (x, y_of(0.0)));
        // On the side that has room for it.
        let (anchor, at) = if x > WIDTH / 3.0 { ("end", x - 5.0) } else { ("start", x + 5.0) };
        drawing.text("mark-label", anchor, (at, TOP + 10.0), &format!("threshold {threshold}"));
    }
    drawing.finish()
}

/// The chance to become a candidate, by similarity, with the threshold.
pub(super) fn s_curve(probability: impl Fn(f64) -> f64, threshold: Option<f64>, name: &str) -> String {
    const STEPS: u32 = 140;
    let mut drawing = Drawing::new(HEIGHT, "Chance that a pair is found, by similarity");
    for tick in 0..=5 {
        let value = f64::from(tick) / 5.0;
        drawing.line("grid", (LEFT, y_of(value)), (WIDTH - RIGHT, y_of(value)));
        drawing.text("tick", "end", (LEFT - 6.0, y_of(value) + 4.0), &format!("{value:.1}"));
    }
    for tick in 0..=10 {
        drawing.text(
            "tick",
            "middle",
            (x_of(f64::from(tick) / 10.0), HEIGHT - BOTTOM + 15.0),
            &format!("{:.1}", f64::from(tick) / 10.0),
        );
    }
    drawing.text("axis", "middle", (x_of(0.5), HEIGHT - 6.0), name);
    let mut path = String::new();
    for step in 0..=STEPS {
        let s = f64::from(step) / f64::from(STEPS);
        let _ = write!(path, "{}{:.1} {:.1}", if step == 0 { "M" } else { "L" }, x_of(s), y_of(probability(s)));
    }
    let _ = write!(drawing.0, "<path class=\"curve\" d=\"{path}\"/>");
    if let Some(threshold) = threshold {
        let (x, recall) = (x_of(threshold), probability(threshold));
        drawing.line("mark", (x, TOP), (x, y_of(0.0)));
        let _ = write!(drawing.0, "<circle class=\"point\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"4\"/>", y_of(recall));
        let (anchor, beside) = if threshold > 0.75 { ("end", -8.0) } else { ("start", 8.0) };
        drawing.text("mark-label", anchor, (x + beside, y_of(0.5)), &format!("{recall:.4} at {threshold}"));
    }
    drawing.finish()
}

/// What each stage leaves, as horizontal bars.
pub(super) fn stages(rows: &[(&str, u64)]) -> String {
    const ROW: f64 = 30.0;
    const LABEL: f64 = 190.0;
    let mut drawing = Drawing::new(ROW * rows.len() as f64 + 6.0, "Pages and pairs after each stage");
    let most = rows.iter().map(|row| row.1).max().unwrap_or(1).max(1) as f64;
    for (at, (label, count)) in rows.iter().enumerate() {
        let y = at as f64 * ROW + 6.0;
        let width = (*count as f64 / most) * (WIDTH - LABEL - 90.0);
        drawing.text("stage", "end", (LABEL - 10.0, y + 14.0), label);
        drawing.bar("bar", (LABEL, y), (width.max(1.0), 19.0), &format!("{label}: {}", thousands(*count)));
        drawing.text("value", "start", (LABEL + width.max(1.0) + 6.0, y + 14.0), &thousands(*count));
    }
    drawing.finish()
}

/// Numbers as columns, side by side; every `step`-th is labelled with its index.
pub(crate) fn columns(title: &str, x_label: &str, values: &[u64], step: usize) -> String {
    let mut drawing = Drawing::new(HEIGHT, title);
    let top = frame(&mut drawing, values.iter().copied().max().unwrap_or(0), x_label);
    let width = (WIDTH - LEFT - RIGHT) / values.len().max(1) as f64;
    for (at, &value) in values.iter().enumerate() {
        let x = LEFT + at as f64 * width;
        let y = y_of(value as f64 / top);
        if value > 0 {
            drawing.bar("bar", (x, y), (width * 0.9, y_of(0.0) - y), &format!("{at}: {}", thousands(value)));
        }
        if at % step == 0 {
            drawing.text("tick", "middle", (x + width / 2.0, HEIGHT - BOTTOM + 15.0), &at.to_string());
        }
    }
    drawing.finish()
}

/// A drawing as a file of its own, with its title and its colours.
pub(crate) fn standalone(title: &str, drawing: &str) -> String {
    let style = "<style>svg{font:11px system-ui,sans-serif;background:#fff}.grid{stroke:#ddd}.bar{fill:#3b6ea5}text{fill:#333}.axis{fill:#555}</style>";
    let named =
        drawing.replacen("<svg ", &format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" ", WIDTH * 1.5), 1);
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

    #[test]
    fn grids_are_round_and_large_enough() {
        assert_eq!(grid(0), (4.0, vec![0, 1, 2, 3, 4]));
        assert_eq!(grid(7).0, 8.0);
        assert_eq!(grid(1234).0, 2000.0);
    }

    #[test]
    fn every_pair_is_in_a_bar() {
        let plot = similarities(&[0.7, 0.9, 1.0], &[0.55], Some(0.7), "similarity");
        assert_eq!(plot.matches("1 pair accepted").count(), 3);
        assert_eq!(plot.matches("1 pair rejected").count(), 1);
        assert!(plot.contains("threshold 0.7"));
        assert!(similarities(&[], &[], None, "similarity").ends_with("</svg>"));
        assert!(cluster_sizes(&[]).ends_with("</svg>"));
        assert!(cluster_sizes(&[2, 900]).contains("1 cluster of 513–1024 pages"));
    }
}
