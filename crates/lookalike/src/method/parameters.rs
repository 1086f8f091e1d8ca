//! Parameters that are declared once: type, default, allowed values and explanation.
//!
//! A method declares its parameters with `parameters!`. From this one declaration come the struct with its
//! defaults, its form in files, the checks, and the access by name that the command line, HTTP and lists such as
//! `spotsigs threshold=0.4` are made of.

use std::fmt::Display;

use crate::error::{Error, Result};
use crate::names::Named;
use crate::size::parse_bytes;

/// A parameter, for whoever offers it to people.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Its name, in snake case.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub help: String,
    /// What stands for its value in help texts; empty for a switch.
    pub value_name: &'static str,
    /// Its default, as it would be written.
    pub default: String,
    /// The values to choose from, with what each means; empty where it is not a choice.
    pub choices: Vec<(&'static str, &'static str)>,
}

impl Parameter {
    /// Whether it is on or off.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.value_name.is_empty()
    }
}

/// What is declared of a method, and access to its parameters by name.
pub(crate) trait Parameters {
    /// Its name on the command line and in files.
    fn name(&self) -> &'static str;

    /// What it is, in a line.
    fn about(&self) -> &'static str;

    /// What it decides by, in a line; parameters are named in backquotes.
    fn decides_by(&self) -> &'static str;

    /// All parameters, in the order in which they are set: a later one may depend on an earlier one.
    fn declared(&self) -> Vec<Parameter>;

    /// The value of a parameter, as it would be written.
    fn get(&self, name: &str) -> Option<String>;

    /// Sets a parameter; `None` if there is none of this name.
    fn set(&mut self, name: &str, value: &str) -> Option<Result<()>>;

    /// Whether every value is allowed by itself.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`].
    fn check_values(&self) -> Result<()>;
}

/// A type that parameters can have.
pub(crate) trait Value: Sized {
    /// From what a person wrote.
    ///
    /// # Errors
    /// What was expected.
    fn parse(text: &str) -> Result<Self, String>;
    /// As a person would write it.
    fn show(&self) -> String;
    /// The values to choose from.
    fn choices() -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
}

impl Value for f64 {
    fn parse(text: &str) -> Result<f64, String> {
        text.parse().map_err(|_| "must be a number".to_owned())
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for u32 {
    fn parse(text: &str) -> Result<u32, String> {
        text.parse().map_err(|_| "must be a whole number".to_owned())
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for usize {
    fn parse(text: &str) -> Result<usize, String> {
        text.parse().map_err(|_| "must be a whole number".to_owned())
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for u64 {
    fn parse(text: &str) -> Result<u64, String> {
        let expected = "must be a whole number, in decimal, as 0x… or as a size such as 64KiB";
        let parsed = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok().or_else(|| parse_bytes(text).ok()),
        };
        parsed.ok_or_else(|| expected.to_owned())
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    fn parse(text: &str) -> Result<bool, String> {
        text.parse().map_err(|_| "must be true or false".to_owned())
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl<T: Named> Value for T {
    fn parse(text: &str) -> Result<T, String> {
        T::named(text).ok_or_else(|| format!("must be {}", T::one_of()))
    }
    fn show(&self) -> String {
        self.name().to_owned()
    }
    fn choices() -> Vec<(&'static str, &'static str)> {
        T::LIST.iter().map(|row| (row.1, row.2.trim())).collect()
    }
}

/// The values that a parameter may have.
pub(super) struct Allowed<T> {
    expected: String,
    holds: Box<dyn Fn(&T) -> bool>,
}

impl<T: Value> Allowed<T> {
    /// Refuses a value that is not allowed.
    pub(super) fn check(&self, name: &'static str, value: &T) -> Result<()> {
        if (self.holds)(value) { Ok(()) } else { Err(Error::invalid(name, value.show(), self.expected.clone())) }
    }
}

/// Any value of the type.
pub(super) fn any<T>() -> Allowed<T> {
    Allowed { expected: String::new(), holds: Box::new(|_| true) }
}

/// From `low` to `high`, both included.
pub(super) fn between<T: PartialOrd + Copy + Display + 'static>(low: T, high: T) -> Allowed<T> {
    Allowed {
        expected: format!("must be between {low} and {high}"),
        holds: Box::new(move |value| *value >= low && *value <= high),
    }
}

/// A threshold of similarities.
pub(super) fn similarity() -> Allowed<f64> {
    Allowed {
        expected: "must be a similarity above 0 and at most 1".to_owned(),
        holds: Box::new(|value| *value > 0.0 && *value <= 1.0),
    }
}

/// A share that is neither nothing nor all.
pub(super) fn proper_share() -> Allowed<f64> {
    Allowed {
        expected: "must be between 0 and 1, both excluded".to_owned(),
        holds: Box::new(|value| *value > 0.0 && *value < 1.0),
    }
}

/// A power of two up to `high`.
pub(super) fn power_of_two(high: u64) -> Allowed<u64> {
    Allowed {
        expected: format!("must be a power of two between 2 and {high}"),
        holds: Box::new(move |value| value.is_power_of_two() && (2..=high).contains(value)),
    }
}

/// One of these.
pub(super) fn one_of<T: Named>(values: &'static [T]) -> Allowed<T> {
    let names: Vec<&str> = values.iter().map(|value| value.name()).collect();
    Allowed { expected: format!("must be {}", names.join(" or ")), holds: Box::new(|value| values.contains(value)) }
}

/// Declares a method: what it is called, and its parameters as a struct with defaults, serialisation, checks and access
/// by name.
macro_rules! parameters {
    (
        $(#[doc = $about:literal])+
        pub struct $type:ident named $name:literal, decides by $decides_by:literal {
            $( $(#[doc = $help:literal])+ $field:ident: $value:ty as $value_name:literal = $default:expr, $allowed:expr; )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        #[non_exhaustive]
        pub struct $type {
            $( $(#[doc = $help])+ pub $field: $value, )+
        }

        impl Default for $type {
            fn default() -> $type {
                $type { $( $field: $default, )+ }
            }
        }

        impl $crate::method::parameters::Parameters for $type {
            fn name(&self) -> &'static str {
                $name
            }

            fn about(&self) -> &'static str {
                concat!($($about),+).trim().trim_end_matches('.')
            }

            fn decides_by(&self) -> &'static str {
                $decides_by
            }

            fn declared(&self) -> Vec<$crate::method::parameters::Parameter> {
                use $crate::method::parameters::{Parameter, Value};
                let defaults = $type::default();
                vec![$( Parameter {
                    name: stringify!($field),
                    help: concat!($($help),+).trim().trim_end_matches('.').to_owned(),
                    value_name: $value_name,
                    default: defaults.$field.show(),
                    choices: <$value as Value>::choices(),
                }, )+]
            }

            fn get(&self, name: &str) -> Option<String> {
                use $crate::method::parameters::Value;
                match name {
                    $( stringify!($field) => Some(self.$field.show()), )+
                    _ => None,
                }
            }

            fn set(&mut self, name: &str, value: &str) -> Option<$crate::error::Result<()>> {
                use $crate::method::parameters::{Allowed, Value};
                match name {
                    $( stringify!($field) => {
                        let allowed: Allowed<$value> = $allowed;
                        let parsed = <$value as Value>::parse(value)
                            .map_err(|expected| $crate::error::Error::invalid(stringify!($field), value, expected))
                            .and_then(|parsed| allowed.check(stringify!($field), &parsed).map(|()| parsed));
                        Some(parsed.map(|parsed| self.$field = parsed))
                    } )+
                    _ => None,
                }
            }

            fn check_values(&self) -> $crate::error::Result<()> {
                $(
                    let allowed: $crate::method::parameters::Allowed<$value> = $allowed;
                    allowed.check(stringify!($field), &self.$field)?;
                )+
                Ok(())
            }
        }
    };
}

pub(super) use parameters;
