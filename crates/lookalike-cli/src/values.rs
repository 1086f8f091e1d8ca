//! Values that are chosen from a list: the names and their explanations are the library's.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use lookalike::Method;
use lookalike::config::Named;

/// Takes the names of a list.
pub(crate) fn named<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let values = T::LIST.iter().map(|&(_, name, help)| PossibleValue::new(name).help(help.trim()));
    PossibleValuesParser::new(values).map(|name| T::named(&name).expect("only listed names are taken"))
}

/// Takes the name of a method.
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

    fn from_str(text: &str) -> Result<EvaluatedMethods, String> {
        let all = Method::all();
        if text == "all" {
            return Ok(EvaluatedMethods(all));
        }
        let mut methods: Vec<Method> = Vec::new();
        for name in text.split(',') {
            let Some(method) = all.iter().find(|method| method.name() == name.trim()) else {
                let names: Vec<&str> = all.iter().map(Method::name).collect();
                return Err(format!("'{name}' is not a method; use all, or any of {}", names.join(", ")));
            };
            if !methods.contains(method) {
                methods.push(method.clone());
            }
        }
        Ok(EvaluatedMethods(methods))
    }
}
