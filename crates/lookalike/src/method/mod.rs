//! The methods. Each is one file: its parameters with defaults and checks, its plan, its unit, its threshold and its
//! rule in words. This file is the registry and what all methods have in common.

mod grid;
pub(crate) mod parameters;

use serde::{Deserialize, Serialize};

use crate::cluster::GroupConfig;
use crate::error::{Error, Result};
pub use crate::feature::spot::Antecedent;
pub use crate::plan::Unit;
use crate::plan::{CorpusNeeds, CorpusStats, Decision, PairConfig, Plan};
use crate::text::ContentConfig;
pub use grid::{GridAxis, GridPoint};
pub use parameters::Parameter;
use parameters::Parameters;

/// Lists the methods: the file, the type of its parameters.
macro_rules! methods {
    ($( $file:ident::$type:ident, )+) => {
        $( mod $file; pub use $file::$type; )+

        /// A method with its parameters.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "name", rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Method {
            $( #[doc = concat!("See [`", stringify!($type), "`].")] $type($type), )+
        }

        impl Method {
            /// All methods with their default parameters, in the order in which they are listed.
            #[must_use]
            pub fn all() -> Vec<Method> {
                vec![$( Method::$type($type::default()), )+]
            }

            /// The method.
            #[must_use]
            pub(crate) fn definition(&self) -> &dyn MethodDefinition {
                match self { $( Method::$type(method) => method, )+ }
            }

            fn definition_mut(&mut self) -> &mut dyn MethodDefinition {
                match self { $( Method::$type(method) => method, )+ }
            }
        }

        $(
            impl From<$type> for Method {
                fn from(method: $type) -> Method {
                    Method::$type(method)
                }
            }

            impl $type {
                /// The parameters, if it is this method.
                #[must_use]
                pub fn of(method: &Method) -> Option<&$type> {
                    match method {
                        Method::$type(method) => Some(method),
                        _ => None,
                    }
                }
            }
        )+
    };
}

methods! {
    minhash::Minhash,
    shingle::Shingle,
    projection::Projection,
    combined::Combined,
    routed::Routed,
    simhash::Simhash,
    bloom::Bloom,
    spotsigs::Spotsigs,
}

pub use bloom::DecideBy;
pub use spotsigs::Antecedents;

/// Seeds whatever is random in a method.
pub const DEFAULT_SEED: u64 = 0x6c6f_6f6b_616c_696b;

/// What a method is.
pub(crate) trait MethodDefinition: Parameters {
    /// What makes two pages near-duplicates, with the values in force.
    fn rule(&self) -> String;

    /// Its threshold, and what it counts.
    fn threshold(&self) -> (f64, Unit);

    /// Sets its threshold.
    fn set_threshold(&mut self, threshold: f64);

    /// Accepts whatever any sensible threshold would.
    fn loosen(&mut self) {
        let (threshold, unit) = self.threshold();
        self.set_threshold(unit.looser(threshold, unit.loosest()));
    }

    /// The thresholds of a sweep, from loose to strict.
    fn thresholds(&self) -> Vec<f64> {
        let (threshold, unit) = self.threshold();
        unit.sweep(threshold)
    }

    /// What makes two pages near-duplicates.
    fn decision(&self) -> Decision;

    /// Its way through the stages.
    fn plan(&self, content: &ContentConfig, corpus: Option<&CorpusStats>) -> Plan;

    /// What it must know about the whole corpus first.
    fn corpus_needs(&self) -> CorpusNeeds {
        CorpusNeeds::default()
    }

    /// Adapts what depends on a parameter that has just been set.
    fn adapt_to(&mut self, _name: &str) {}

    /// Whether the parameters go with each other.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`] or [`Error::Conflict`].
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Whether the parameters go with which pairs are looked at, and with how groups are made.
    ///
    /// # Errors
    /// [`Error::Conflict`].
    fn check_with(&self, _pairs: &PairConfig, _groups: &GroupConfig) -> Result<()> {
        Ok(())
    }

    /// Changes defaults to those for lists of search results.
    fn adapt_to_results(&mut self) {}

    /// Resets what decides about pairs and not about sketches.
    fn forget_decision(&mut self) {}
}

impl Method {
    /// The method of a name, with its default parameters.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`], with all names.
    pub fn named(name: &str) -> Result<Method> {
        Method::all().into_iter().find(|method| method.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Method::all().iter().map(Method::name).collect();
            Error::invalid("method", name, format!("must be one of {}", names.join(", ")))
        })
    }

    /// Its name on the command line and in files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.definition().name()
    }

    /// Its name, and the parameters that are not at their defaults, as it would be written: `spotsigs threshold=0.4`.
    #[must_use]
    pub fn label(&self) -> String {
        let definition = self.definition();
        let mut label = definition.name().to_owned();
        let Ok(mut written) = Method::named(definition.name()) else { return label };
        for parameter in definition.declared() {
            let value = definition.get(parameter.name).unwrap_or_default();
            // What follows from a parameter that was written before is not written.
            if written.get(parameter.name).as_ref() != Some(&value) && written.set(parameter.name, &value).is_ok() {
                label.push_str(&format!(" {}={value}", parameter.name));
            }
        }
        label
    }

    /// What it is, in a line.
    #[must_use]
    pub fn about(&self) -> &'static str {
        self.definition().about()
    }

    /// What it decides by, in a line; parameters are named in backquotes.
    #[must_use]
    pub fn decides_by(&self) -> &'static str {
        self.definition().decides_by()
    }

    /// What makes two pages near-duplicates, with the values in force.
    #[must_use]
    pub fn rule(&self) -> String {
        self.definition().rule()
    }

    /// Its parameters, as they are declared.
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameter> {
        self.definition().declared()
    }

    /// The value of a parameter, as it is written.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        self.definition().get(name)
    }

    /// Sets a parameter by name, and what depends on it.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`] for a value that it cannot have, [`Error::Conflict`] for a parameter of another
    /// method.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let method = self.definition_mut();
        match method.set(name, value) {
            Some(result) => result.map(|()| method.adapt_to(name)),
            None => Err(self.no_parameter(name)),
        }
    }

    /// Sets several parameters by name, in the order in which they are declared.
    ///
    /// # Errors
    /// As [`set`](Method::set).
    pub fn set_all<'v>(&mut self, values: impl IntoIterator<Item = (&'v str, &'v str)>) -> Result<()> {
        let order = self.definition().declared();
        let mut values: Vec<(&str, &str)> = values.into_iter().collect();
        values.sort_by_key(|(name, _)| order.iter().position(|parameter| parameter.name == *name));
        values.into_iter().try_for_each(|(name, value)| self.set(name, value))
    }

    /// What its threshold counts.
    #[must_use]
    pub fn unit(&self) -> Unit {
        self.definition().threshold().1
    }

    /// Whether a similarity in 0..1 decides.
    #[must_use]
    pub fn has_similarity_threshold(&self) -> bool {
        self.unit() == Unit::Similarity
    }

    /// Its threshold, in its unit.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.definition().threshold().0
    }

    /// The method with another threshold, in its unit.
    #[must_use]
    pub fn with_threshold(&self, threshold: f64) -> Method {
        let mut method = self.clone();
        method.definition_mut().set_threshold(threshold);
        method
    }

    /// The method as loose as makes sense.
    #[must_use]
    pub fn loosest(&self) -> Method {
        let mut method = self.clone();
        method.definition_mut().loosen();
        method
    }

    /// The method with its defaults for lists of search results.
    #[must_use]
    pub fn for_results(mut self) -> Method {
        self.definition_mut().adapt_to_results();
        self
    }

    /// The method with what decides about pairs, and not about sketches, at its defaults.
    #[must_use]
    pub fn without_decision(mut self) -> Method {
        self.definition_mut().forget_decision();
        self
    }

    /// Whether it can run.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`] or [`Error::Conflict`].
    pub fn check(&self) -> Result<()> {
        self.definition().check_values()?;
        self.definition().check()
    }

    /// A method as it is written, with other defaults than its own.
    ///
    /// # Errors
    /// As [`named`](Method::named) and [`set_all`](Method::set_all).
    pub fn parse_with(text: &str, defaults: impl FnOnce(Method) -> Method) -> Result<Method> {
        let mut words = text.split_whitespace();
        let mut method = defaults(Method::named(words.next().unwrap_or_default())?);
        let mut parameters = Vec::new();
        for word in words {
            let pair = word.split_once('=');
            parameters.push(pair.ok_or_else(|| {
                Error::invalid("method", text, format!("has '{word}' where a parameter=value is expected"))
            })?);
        }
        method.set_all(parameters)?;
        Ok(method)
    }

    fn no_parameter(&self, name: &str) -> Error {
        let owners: Vec<(&'static str, Parameter)> = Method::all()
            .iter()
            .flat_map(|method| method.definition().declared().into_iter().map(|parameter| (method.name(), parameter)))
            .filter(|(_, parameter)| parameter.name == name)
            .collect();
        let decides = format!("{} decides by {}", self.name(), self.definition().decides_by());
        let Some((_, parameter)) = owners.first() else {
            let own: Vec<&str> = self.definition().declared().iter().map(|parameter| parameter.name).collect();
            let reason = format!("is not a parameter of {}, which has {}", self.name(), own.join(", "));
            return Error::conflict(name.to_owned(), reason);
        };
        let names: Vec<&str> = owners.iter().map(|owner| owner.0).collect();
        let owners = match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        };
        Error::conflict(parameter.name, format!("belongs to {owners}; {decides}"))
    }
}

impl std::str::FromStr for Method {
    type Err = Error;

    /// A name, and parameters as `name=value`, with blanks between them: `spotsigs threshold=0.4 antecedents=is:3,the:3`.
    fn from_str(text: &str) -> Result<Method> {
        Method::parse_with(text, |method| method)
    }
}

impl Default for Method {
    fn default() -> Method {
        Minhash::default().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for method in Method::all() {
            assert_eq!(Method::named(method.name()).unwrap(), method);
            let json = serde_json::to_value(&method).unwrap();
            assert_eq!(json["name"], method.name(), "the name in files is the name everywhere");
            assert_eq!(serde_json::from_value::<Method>(json).unwrap(), method);
        }
        let message = Method::named("simhush").unwrap_err().to_string();
        assert!(message.contains("minhash, shingle"), "{message}");
    }

    #[test]
    fn defaults_are_allowed_and_said() {
        for method in Method::all() {
            method.check().unwrap();
            assert!(method.definition().rule().len() > 20, "{method:?}");
            for parameter in method.definition().declared() {
                assert_eq!(method.definition().get(parameter.name).as_ref(), Some(&parameter.default), "{parameter:?}");
                assert!(parameter.help.len() > 10, "{parameter:?}");
                let mut again = method.clone();
                again.set(parameter.name, &parameter.default).unwrap();
                assert_eq!(again, method, "{parameter:?}: the default, written and read, changes nothing");
            }
        }
    }

    #[test]
    fn a_threshold_is_set_loosened_and_swept_in_one_unit() {
        for method in Method::all() {
            assert_eq!(method.with_threshold(method.threshold()), method, "{}", method.name());
            let loosest = method.loosest();
            loosest.check().unwrap();
            let unit = method.unit();
            assert!(unit.nearness(loosest.threshold()) <= unit.nearness(method.threshold()), "{}", method.name());
            let thresholds = loosest.definition().thresholds();
            let nearness: Vec<f64> = thresholds.iter().map(|&value| unit.nearness(value)).collect();
            assert!(thresholds.len() > 4 && nearness.is_sorted(), "{}: {thresholds:?}", method.name());
            for threshold in thresholds {
                let decision = method.with_threshold(threshold).definition().decision();
                assert_eq!(decision.least_nearness(), unit.nearness(threshold), "{}", method.name());
            }
        }
    }

    #[test]
    fn a_parameter_of_another_method_is_refused_with_the_right_one() {
        let message = Method::default().set("agree", "3").unwrap_err().to_string();
        assert!(message.contains("shingle, combined and routed") && message.contains("`threshold`"), "{message}");
        let message = Method::default().set("colour", "3").unwrap_err().to_string();
        assert!(message.contains("`colour`") && message.contains("threshold"), "{message}");
        let message = Method::default().set("ngram", "many").unwrap_err().to_string();
        assert_eq!(message, "`ngram` many: must be a whole number");
        let message = Method::default().set("ngram", "33").unwrap_err().to_string();
        assert_eq!(message, "`ngram` 33: must be between 1 and 32");
    }

    #[test]
    fn a_method_is_written_with_its_parameters() {
        let method: Method = "spotsigs threshold=0.4 antecedents=is:3,the:3".parse().unwrap();
        assert_eq!(method.definition().rule(), "Jaccard similarity of spot signatures > 0.4");
        assert_eq!(method.definition().get("antecedents").as_deref(), Some("is:3,the:3"));
        for wrong in ["", "nothing", "minhash 0.5", "minhash agree=2", "minhash threshold=2"] {
            assert!(wrong.parse::<Method>().unwrap_err().is_usage(), "{wrong}");
        }
    }

    #[test]
    fn a_label_is_what_one_would_write() {
        for method in Method::all() {
            assert_eq!(method.label(), method.name());
        }
        for text in ["minhash threshold=0.5", "projection sketch_bits=96 pieces=9", "spotsigs antecedents=is:3,the:3"] {
            let method: Method = text.parse().unwrap();
            assert_eq!(method.label(), text);
            assert_eq!(method.label().parse::<Method>().unwrap(), method);
        }
    }

    #[test]
    fn parameters_that_depend_on_others_follow_in_any_order() {
        let mut method = Method::named("projection").unwrap();
        method.set_all([("pieces", "9"), ("bits", "90"), ("sketch_bits", "96")]).unwrap();
        let value = |name: &str| method.definition().get(name).unwrap();
        assert_eq!((value("sketch_bits"), value("bits"), value("pieces")), ("96".into(), "90".into(), "9".into()));
        let mut method = Method::named("projection").unwrap();
        method.set("sketch_bits", "96").unwrap();
        assert_eq!(method.definition().get("pieces").unwrap(), "4");
    }
}
