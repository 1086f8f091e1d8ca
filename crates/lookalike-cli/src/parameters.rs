//! The parameters of all methods as flags, made from the methods' own declarations.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use lookalike::Method;
use lookalike::method::Parameter;

/// A default longer than this is not shown.
const SHOWN_DEFAULT: usize = 12;
/// The heading of what decides, and of what several methods have.
const COMMON: &str = "What counts as a near-duplicate";

/// The parameters that were given, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParameterFlags(pub(crate) Vec<(&'static str, String)>);

/// A parameter and the methods that have it, each with its default.
struct Shared {
    parameter: Parameter,
    owners: Vec<(&'static str, String)>,
    decides: bool,
}

fn shared() -> Vec<Shared> {
    let mut all: Vec<Shared> = Vec::new();
    for method in Method::all() {
        let decides_by = method.decides_by();
        for parameter in method.parameters() {
            let owner = (method.name(), parameter.default.clone());
            let decides = decides_by.contains(&format!("`{}`", parameter.name));
            match all.iter_mut().find(|shared| shared.parameter.name == parameter.name) {
                Some(shared) => {
                    shared.owners.push(owner);
                    shared.decides |= decides;
                }
                None => all.push(Shared { parameter, owners: vec![owner], decides }),
            }
        }
    }
    all.sort_by_key(|shared| (!shared.decides, shared.owners.len() == 1));
    all
}

impl Shared {
    /// A switch that is on has a flag that switches it off.
    fn is_on(&self) -> bool {
        self.parameter.is_switch() && self.parameter.default == "true"
    }

    fn flag(&self) -> String {
        let name = self.parameter.name.replace('_', "-");
        if self.is_on() { format!("no-{name}") } else { name }
    }

    fn heading(&self) -> String {
        match &self.owners[..] {
            [(method, _)] if !self.decides => format!("Only for {method}"),
            _ => COMMON.to_owned(),
        }
    }

    fn help(&self) -> String {
        let mut help = self.parameter.help.clone();
        if self.is_on() {
            help = format!("Do not {}{}", help[..1].to_lowercase(), &help[1..]);
        }
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for (method, default) in &self.owners {
            match groups.iter_mut().find(|group| group.0 == default) {
                Some(group) => group.1.push(method),
                None => groups.push((default, vec![method])),
            }
        }
        let owners: Vec<&str> = self.owners.iter().map(|owner| owner.0).collect();
        let has_heading = self.owners.len() == 1 && !self.decides;
        let is_shown = !self.parameter.is_switch() && groups.iter().all(|group| group.0.len() <= SHOWN_DEFAULT);
        match &groups[..] {
            [(default, _)] if is_shown => help.push_str(&format!(" [default: {default}]")),
            groups if is_shown => {
                let groups: Vec<String> =
                    groups.iter().map(|(default, methods)| format!("{} {default}", methods.join(", "))).collect();
                return format!("{help} [default: {}]", groups.join("; "));
            }
            _ => {}
        }
        if has_heading { help } else { format!("{help} ({})", owners.join(", ")) }
    }
}

impl FromArgMatches for ParameterFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ParameterFlags, clap::Error> {
        let mut given = Vec::new();
        for shared in shared() {
            let name = shared.parameter.name;
            if shared.parameter.is_switch() {
                if matches.get_flag(name) {
                    given.push((name, (!shared.is_on()).to_string()));
                }
            } else if let Some(value) = matches.get_one::<String>(name) {
                given.push((name, value.clone()));
            }
        }
        Ok(ParameterFlags(given))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ParameterFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ParameterFlags {
    fn augment_args(command: Command) -> Command {
        command.args(shared().into_iter().map(|shared| {
            let mut arg =
                Arg::new(shared.parameter.name).long(shared.flag()).help(shared.help()).help_heading(shared.heading());
            if shared.parameter.name == "threshold" {
                arg = arg.short('t');
            }
            if shared.parameter.is_switch() {
                return arg.action(ArgAction::SetTrue);
            }
            arg = arg.value_name(shared.parameter.value_name);
            if shared.parameter.choices.is_empty() {
                return arg;
            }
            let choices = shared.parameter.choices.iter().map(|&(name, help)| PossibleValue::new(name).help(help));
            arg.value_parser(PossibleValuesParser::new(choices.collect::<Vec<_>>()))
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        ParameterFlags::augment_args(command)
    }
}
