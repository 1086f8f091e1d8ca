//! The flags that choose a method and its parameters → [`Config`].

use lookalike::config::{CaptureFilter, ChosenCaptures, Fields};
use lookalike::{Config, Error, Method};

use crate::args::{DedupArguments, ReadingArguments};

/// The config that the arguments describe.
pub(crate) fn config(arguments: &DedupArguments) -> Result<Config, Error> {
    let chosen = &arguments.method;
    let mut method: Method = chosen.method.parse()?;
    let mut parameters: Vec<(&str, &str)> =
        chosen.parameters.0.iter().map(|(name, value)| (*name, value.as_str())).collect();
    if !arguments.seeds.is_empty() && parameters.iter().all(|(name, _)| *name != "matching") {
        parameters.push(("matching", "seeded"));
    }
    method.set_all(parameters)?;
    let mut config = Config::new(method);
    config.pairs.site = chosen.site;
    config.pairs.length_ratio = chosen.length_ratio;
    config.pairs.within = chosen.within;
    config.pairs.min_tokens = chosen.min_tokens;
    config.pairs.exact_only = chosen.exact_only;
    config.pairs.bucket_limit = chosen.bucket_limit;
    config.content.mask_volatile = chosen.mask.is_some();
    config.content.keep_case = chosen.keep_case;
    config.groups.cluster = arguments.groups.cluster;
    config.groups.keep = arguments.groups.keep.clone();
    config.groups.prefer.clone_from(&arguments.groups.prefer);
    read_as(&mut config, &arguments.reading)?;
    Ok(config)
}

/// How pages are read.
pub(crate) fn read_as(config: &mut Config, reading: &ReadingArguments) -> Result<(), Error> {
    config.read.max_page_bytes = reading.max_page;
    config.read.captures = CaptureFilter { statuses: reading.status.clone(), types: reading.types.clone() };
    config.read.format = reading.format;
    config.read.fields = Fields {
        id: reading.id_field.clone(),
        text: reading.text_field.clone(),
        url: reading.url_field.clone(),
        date: reading.date_field.clone(),
    };
    config.content.scope = reading.content;
    config.content.scripts = reading.scripts;
    config.read.read_as = reading.read_as;
    config.read.include.clone_from(&reading.include);
    config.read.exclude.clone_from(&reading.exclude);
    config.read.sample = reading.sample;
    config.read.cdxj = reading.cdxj.as_deref().map(ChosenCaptures::open).transpose()?;
    Ok(())
}
