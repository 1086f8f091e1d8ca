//! Values of parameters to go through: `ngram=1..8`, `threshold=0.1..0.9/0.2`, `weights=none,tf`.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::method::Method;

/// Most values on an axis.
const MOST_VALUES: usize = 1000;

/// A parameter and the values that it takes, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridAxis {
    /// The parameter.
    pub parameter: String,
    /// Its values, as they are written.
    pub values: Vec<String>,
}

/// A point of a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct GridPoint {
    /// The method with the values of this point.
    pub method: Method,
    /// What it is called without them.
    pub base: String,
    /// The values, one for each axis.
    pub values: Vec<String>,
}

impl std::str::FromStr for GridAxis {
    type Err = String;

    /// A name, `=`, and values: a list with commas, or a range, with its step behind a slash if it is not 1.
    fn from_str(text: &str) -> Result<GridAxis, String> {
        let expected =
            "is not a parameter and its values, such as ngram=1..8, threshold=0.1..0.9/0.2 or weights=none,tf";
        let (parameter, values) = text.split_once('=').ok_or_else(|| format!("'{text}' {expected}"))?;
        let parameter = parameter.trim().replace('-', "_");
        let values: Vec<String> = match values.split_once("..") {
            None => values.split(',').map(|value| value.trim().to_owned()).collect(),
            Some((from, rest)) => {
                let (to, step) = rest.split_once('/').unwrap_or((rest, "1"));
                range(from.trim(), to.trim(), step.trim()).ok_or_else(|| format!("'{text}' {expected}"))?
            }
        };
        if parameter.is_empty() || values.iter().any(String::is_empty) {
            return Err(format!("'{text}' {expected}"));
        }
        let mut seen = HashSet::new();
        let values = values.into_iter().filter(|value| seen.insert(value.clone())).collect();
        Ok(GridAxis { parameter, values })
    }
}

/// The values from one to another, both included, with as many decimals as they are written with.
fn range(from: &str, to: &str, step: &str) -> Option<Vec<String>> {
    let decimals = |text: &str| text.split_once('.').map_or(0, |(_, behind)| behind.len());
    let places = decimals(from).max(decimals(to)).max(decimals(step));
    let [first, last, step] = [from, to, step].map(|text| text.parse::<f64>().ok().filter(|number| number.is_finite()));
    let (first, last, step) = (first?, last?, step.filter(|step| *step > 0.0)?);
    let mut values = Vec::new();
    while values.len() < MOST_VALUES {
        let value = first + step * values.len() as f64;
        if value > last + step * 1e-6 {
            break;
        }
        values.push(format!("{value:.places$}"));
    }
    (!values.is_empty()).then_some(values)
}

impl GridAxis {
    /// All combinations of the values, for each of the methods. Methods that differ only in these parameters are one.
    ///
    /// # Errors
    /// When a method does not have a parameter, or not with such a value.
    pub fn points(axes: &[GridAxis], methods: &[Method]) -> Result<Vec<GridPoint>> {
        let mut points = Vec::new();
        for method in methods {
            let mut combinations: Vec<Vec<String>> = vec![Vec::new()];
            for axis in axes {
                let longer = combinations.iter().flat_map(|known| {
                    axis.values.iter().map(move |value| known.iter().chain([value]).cloned().collect())
                });
                combinations = longer.collect();
            }
            for values in combinations {
                let mut varied = method.clone();
                varied
                    .set_all(axes.iter().zip(&values).map(|(axis, value)| (axis.parameter.as_str(), value.as_str())))?;
                varied.check()?;
                if points.iter().all(|point: &GridPoint| point.method != varied) {
                    points.push(GridPoint { method: varied, base: method.label(), values });
                }
            }
        }
        if points.len() > MOST_VALUES {
            return Err(Error::invalid("grid", points.len(), format!("has more than {MOST_VALUES} points")));
        }
        Ok(points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        text.parse::<GridAxis>().unwrap().values
    }

    #[test]
    fn ranges_and_lists_are_spelled_out() {
        assert_eq!(values("ngram=1..4"), ["1", "2", "3", "4"]);
        assert_eq!(values("threshold=0.1..0.5/0.2"), ["0.1", "0.3", "0.5"]);
        assert_eq!(values("threshold=0.25..0.5/0.1"), ["0.25", "0.35", "0.45"]);
        assert_eq!(values("weights=none, tf"), ["none", "tf"]);
        assert_eq!(values("weights=tf,none,tf"), ["tf", "none"], "each once");
        assert_eq!("sketch-bits=64".parse::<GridAxis>().unwrap().parameter, "sketch_bits");
        for wrong in ["ngram", "ngram=", "=3", "ngram=1..x", "ngram=3..1", "ngram=1..8/0", "ngram=1,,2"] {
            assert!(wrong.parse::<GridAxis>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_method_gets_every_combination() {
        let axes = ["ngram=1..3", "threshold=0.5,0.7"].map(|axis| axis.parse::<GridAxis>().unwrap());
        let points = GridAxis::points(&axes, &[Method::default()]).unwrap();
        assert_eq!(points.len(), 6);
        assert_eq!(points[0].method.label(), "minhash threshold=0.5 ngram=1");
        assert_eq!(points[5].values, ["3", "0.7"]);
        assert_eq!(points[5].method.label(), "minhash ngram=3");
        let message = GridAxis::points(&axes, &[Method::named("simhash").unwrap()]).unwrap_err().to_string();
        assert!(message.contains("`threshold`"), "{message}");
    }
}
