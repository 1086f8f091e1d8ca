//! Values that are chosen from a list: the names and their explanations are the library's.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command};
use lookalike::Method;
use lookalike::config::{Format, Keep, Named};

use crate::with_flags;

/// Takes the names of a list.
pub(crate) fn named<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let values = T::LIST.iter().map(|&(_, name, help)| PossibleValue::new(name).help(help.trim()));
    PossibleValuesParser::new(values).map(|name| T::named(&name).expect("only listed names are taken"))
}

/// Takes a method: a name, or a name with parameters, such as `spotsigs threshold=0.4`. The names are offered to shells and
/// in help texts.
#[derive(Debug, Clone)]
pub(crate) struct MethodParser;

impl TypedValueParser for MethodParser {
    type Value = String;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        let wrong = |message: String| clap::Error::raw(ErrorKind::InvalidValue, message + "\n").with_cmd(command);
        let text = value.to_str().ok_or_else(|| wrong("a method has a plain name".to_owned()))?;
        let parsed = text.parse::<Method>();
        parsed.map(|_| text.to_owned()).map_err(|error| wrong(with_flags(&error.to_string())))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = Method::all();
        let values: Vec<PossibleValue> =
            values.iter().map(|method| PossibleValue::new(method.name()).help(method.about())).collect();
        Some(Box::new(values.into_iter()))
    }
}

/// Takes a value that is written as text; some ways to write it are offered to shells and in help texts.
macro_rules! offered {
    ($(#[$meta:meta])* $parser:ident takes $type:ty, offers $offers:expr) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        pub(crate) struct $parser;

        impl TypedValueParser for $parser {
            type Value = $type;

            fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<$type, clap::Error> {
                let text = value.to_string_lossy();
                text.parse::<$type>().map_err(|expected| {
                    let flag = arg.map_or_else(String::new, |arg| format!(" for '{arg}'"));
                    let message = format!("invalid value '{text}'{flag}: {}\n", with_flags(&expected.to_string()));
                    clap::Error::raw(ErrorKind::InvalidValue, message).with_cmd(command)
                })
            }

            fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
                let offers: Vec<PossibleValue> = $offers;
                Some(Box::new(offers.into_iter()))
            }
        }
    };
}

offered! {
    /// Takes a keep policy.
    KeepParser takes Keep, offers [
        ("first", "The first: inputs in the order given, files of a directory by name"),
        ("longest", "The one with most words"),
        ("newest", "The one with the latest date"),
        ("shortest-url", "The one with the shortest URL"),
        ("max:FIELD", "The one with the largest number in a field, such as max:score"),
    ].map(|(name, help)| PossibleValue::new(name).help(help)).into()
}

offered! {
    /// Takes the name of a format.
    FormatParser takes Format,
    offers Format::all().map(|format| PossibleValue::new(format.name()).help(format.description())).collect()
}

offered! {
    /// Takes the methods that are evaluated.
    MethodsParser takes EvaluatedMethods, offers {
        let methods = Method::all();
        let names = methods.iter().map(|method| PossibleValue::new(method.name()).help(method.about()));
        [PossibleValue::new("all").help("All methods")].into_iter().chain(names).collect()
    }
}

/// The name of a method.
pub(crate) fn method_name() -> impl TypedValueParser<Value = String> {
    let methods = Method::all();
    let values = methods.iter().map(|method| PossibleValue::new(method.name()).help(method.about()));
    PossibleValuesParser::new(values.collect::<Vec<_>>())
}

/// The methods that are evaluated.
#[derive(Debug, Clone)]
pub(crate) struct EvaluatedMethods(pub(crate) Vec<Method>);

impl std::str::FromStr for EvaluatedMethods {
    type Err = String;

    /// `all`, names separated by commas, or one method with its parameters.
    fn from_str(text: &str) -> Result<EvaluatedMethods, String> {
        if text == "all" {
            return Ok(EvaluatedMethods(Method::all()));
        }
        let parsed = |text: &str| text.parse::<Method>().map_err(|error| with_flags(&error.to_string()));
        if text.contains('=') {
            return Ok(EvaluatedMethods(vec![parsed(text)?]));
        }
        text.split(',').map(|name| parsed(name.trim())).collect::<Result<_, String>>().map(EvaluatedMethods)
    }
}

impl EvaluatedMethods {
    /// All that were named, each once.
    pub(crate) fn all(named: &[EvaluatedMethods]) -> Vec<Method> {
        let mut all: Vec<Method> = Vec::new();
        for method in named.iter().flat_map(|methods| &methods.0) {
            if !all.contains(method) {
                all.push(method.clone());
            }
        }
        all
    }
}
