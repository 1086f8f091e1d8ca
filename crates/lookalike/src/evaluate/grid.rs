//! A grid of parameters, evaluated: curves over one parameter, surfaces over two.

use crate::evaluate::metrics::Counts;
use crate::evaluate::{Grid, MethodEvaluation};
use crate::report::plots::chart::{Scale, Series};
use crate::report::plots::figures::{Figure, figure, surface};

/// Scores that are drawn, each with its name and where it comes from.
type Score = (&'static str, fn(&MethodEvaluation) -> f64);

const AT_OWN: &str = "F1 at the method's own threshold";
const AT_BEST: &str = "F1 at the best threshold";

pub(super) fn grid_figures(grid: &Grid, found: &[MethodEvaluation]) -> Vec<Figure> {
    let mut bases: Vec<&str> = grid.points.iter().map(|point| point.base.as_str()).collect();
    bases.dedup();
    bases.into_iter().flat_map(|base| of_method(grid, found, base)).collect()
}

/// The figures of one method.
fn of_method(grid: &Grid, found: &[MethodEvaluation], base: &str) -> Vec<Figure> {
    let points = || grid.points.iter().zip(found).filter(|(point, _)| point.base == base);
    let Some(first) = grid.axes.first() else { return Vec::new() };
    let numbers: Option<Vec<f64>> = first.values.iter().map(|value| value.parse().ok()).collect();
    let values: [Score; 2] = [(AT_OWN, |row| row.pairs.f1()), (AT_BEST, |row| row.best.pairs.f1())];
    match (grid.axes.get(1), numbers) {
        (None, Some(numbers)) => {
            let curve = |name: &str, of: &dyn Fn(&MethodEvaluation) -> f64| {
                Series::line(name, numbers.iter().copied().zip(points().map(|(_, row)| of(row))).collect())
            };
            let series = [
                curve("precision", &|row| Counts::precision(&row.pairs)),
                curve("recall", &|row| Counts::recall(&row.pairs)),
                curve(AT_OWN, &values[0].1),
                curve(AT_BEST, &values[1].1),
            ];
            let ends = numbers
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), &value| (value.min(from), value.max(to)));
            let scale = Scale::Linear(ends.0, if ends.1 > ends.0 { ends.1 } else { ends.0 + 1.0 });
            vec![figure(
                format!("{base} by {}", first.parameter),
                "",
                "Pairs of pages, exact copies included.",
                (&first.parameter, scale),
                ("share", Scale::SHARE),
                &series,
            )]
        }
        (second, _) => {
            let one = [String::new()];
            let (y_name, rows) = second.map_or(("", &one[..]), |axis| (axis.parameter.as_str(), &axis.values));
            let value = |of: fn(&MethodEvaluation) -> f64| {
                move |row: usize, column: usize| {
                    let is_here = |values: &[String]| {
                        values[0] == first.values[column] && values.get(1).is_none_or(|value| *value == rows[row])
                    };
                    let here = grid.points.iter().zip(found);
                    let mut here = here.filter(|(point, _)| point.base == base && is_here(&point.values));
                    here.next().map(|(_, row)| of(row))
                }
            };
            let draw = |(name, of): Score| {
                surface(
                    format!("{base}: {name}"),
                    "Pairs of pages, exact copies included; darker is better.",
                    (&first.parameter, &first.values),
                    (y_name, rows),
                    value(of),
                )
            };
            values.map(draw).into()
        }
    }
}
