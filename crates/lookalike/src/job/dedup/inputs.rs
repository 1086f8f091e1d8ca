//! What a run reads, in this order: the input, examples, another corpus; and what does not go together.

use std::path::Path;

use crate::config::{ClusterMode, Config, Matching};
use crate::error::{Error, Result};
use crate::job::RunOptions;
use crate::job::dedup::Against;
use crate::page::PageOrigin;
use crate::read::{Corpus, Sources, discover};
use crate::work_dir::WorkDir;

/// Everything that is read.
pub(super) struct Inputs {
    pub(super) corpus: Corpus,
    pub(super) against: Option<Against>,
}

impl Inputs {
    /// Finds the sources, and opens what they are held against.
    pub(super) fn open(config: &Config, options: &RunOptions, work: &WorkDir) -> Result<Inputs> {
        check_examples(config, options)?;
        let mut sources = discover(&options.inputs, &config.read, work.output(), Some(work.path()))?;
        if !options.seeds.is_empty() {
            add_examples(&mut sources, config, options, work)?;
        }
        let against = open_against(config, options, work)?;
        if let Some(against) = &against {
            let theirs = against.sources();
            if against.is_files()
                && let Some(own) = sources.list.iter().find(|own| theirs.iter().any(|source| source.is_same(own)))
            {
                let expected = format!("{} is also an input, all of which would be dropped", own.display);
                return Err(Error::invalid(
                    "against",
                    options.against.as_deref().unwrap_or(Path::new("")).display(),
                    expected,
                ));
            }
            sources.list.extend(theirs);
        }
        Ok(Inputs { corpus: config.corpus(sources), against })
    }
}

/// Examples and the way of matching that starts from them need each other.
fn check_examples(config: &Config, options: &RunOptions) -> Result<()> {
    match config.plan().matching {
        Matching::Seeded if options.seeds.is_empty() => {
            Err(Error::conflict("matching", "seeded starts from examples: name files of pages with `seeds`"))
        }
        Matching::Full | Matching::Incremental if !options.seeds.is_empty() => {
            Err(Error::conflict("seeds", "is for `matching` seeded"))
        }
        _ => Ok(()),
    }
}

fn add_examples(sources: &mut Sources, config: &Config, options: &RunOptions, work: &WorkDir) -> Result<()> {
    let examples = discover(&options.seeds, &config.read.of_all_files(), work.output(), Some(work.path()))?;
    for example in examples.list {
        if let Some(source) = sources.list.iter().find(|source| source.is_same(&example)) {
            let expected = "this file is also an input; a page is either an example or matched with one";
            return Err(Error::invalid("seeds", &source.display, expected));
        }
        sources.list.push(example.with_origin(PageOrigin::Example));
    }
    sources.problems.extend(examples.problems);
    Ok(())
}

fn open_against(config: &Config, options: &RunOptions, work: &WorkDir) -> Result<Option<Against>> {
    let Some(path) = &options.against else {
        if config.plan().drops_containers {
            let reason = "contains drops pages that contain a page of another corpus: name that with `against`";
            return Err(Error::conflict("measure", reason));
        }
        return Ok(None);
    };
    if !options.seeds.is_empty() || config.plan().matching != Matching::Full {
        let reason = "goes with `matching` full: one pass and examples have an order of their own";
        return Err(Error::conflict("against", reason));
    }
    if path.canonicalize().is_ok_and(|path| work.output().canonicalize().is_ok_and(|output| output == path)) {
        let expected = "is also the `output`, which would replace it; choose another";
        return Err(Error::invalid("against", path.display(), expected));
    }
    let against = Against::open(path, config, work.path())?;
    if config.groups.cluster == ClusterMode::Components && against.index().is_some() {
        let reason = "components compares the ends of chains by their texts, and an index has none; use star, or hold the input against a result";
        return Err(Error::conflict("cluster", reason));
    }
    Ok(Some(against))
}
