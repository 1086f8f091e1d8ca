//! `lookalike completions` and `lookalike man`, generated from the definitions of the arguments.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use clap_mangen::Man;

use crate::{Ending, help};

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Ending> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut help::full(), "lookalike", &mut script);
    io::Write::write_all(&mut io::stdout(), &script)?;
    Ok(Ending::Done)
}

pub(crate) fn man(directory: Option<&Path>) -> Result<Ending> {
    let command = help::full();
    let Some(directory) = directory else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        io::Write::write_all(&mut io::stdout(), &page)?;
        return Ok(Ending::Done);
    };
    fs::create_dir_all(directory).with_context(|| format!("{}: cannot create", directory.display()))?;
    clap_mangen::generate_to(command, directory).with_context(|| format!("{}: cannot write", directory.display()))?;
    Ok(Ending::Done)
}
