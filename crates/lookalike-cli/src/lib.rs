//! The command line: arguments → [`Config`](lookalike::Config) → library.
//!
//! A library with one function, so that the program and the Python package run the same commands.

mod args;
mod audit;
mod clusters;
mod compare;
mod dedup;
mod evaluate;
mod evaluate_args;
mod explain;
mod export_cdxj;
mod generate;
mod help;
mod index;
mod index_args;
mod ink;
mod interrupt;
mod json;
mod method;
mod one_page;
mod output_args;
mod parameters;
mod plan;
mod progress;
mod recluster;
mod refine;
mod search_args;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod serve_args;
mod table;
mod text;
mod transfer;
mod values;
mod view;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::FromArgMatches;
use lookalike::Error;
use lookalike::config::name_settings;

use args::{Arguments, Command};

/// How a command ended, other than by an error.
pub(crate) enum Ending {
    /// All done.
    Done,
    /// Done, but records were skipped.
    Skipped,
    /// Done, and the answer is no.
    No,
}

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;
const SKIPPED: u8 = 3;

/// Runs the command that the arguments describe, the name of the program first, and returns its exit code.
///
/// Ctrl-C in the middle of `dedup` ends the process, with a word about how to go on.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let parsed = help::on_a_screen().try_get_matches_from(arguments);
    let code = match parsed.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => exit_code(run(arguments)),
        Err(error) => {
            // If nobody reads it, there is nowhere left to report it.
            let _ = error.print();
            u8::try_from(error.exit_code()).unwrap_or(WRONG_USAGE)
        }
    };
    // What runs this may go on, or end without flushing what Rust has buffered.
    let _ = io::stdout().flush();
    code
}

fn exit_code(ending: anyhow::Result<Ending>) -> u8 {
    match ending {
        Ok(Ending::Done) => 0,
        Ok(Ending::Skipped) => SKIPPED,
        Ok(Ending::No) => FAILED,
        Err(error) if is_closed_pipe(&error) => 0,
        Err(error) => {
            // If standard error is closed too, there is nowhere left to report it.
            let _ = writeln!(io::stderr(), "error: {}", message(&error));
            let usage = error.downcast_ref().is_some_and(Error::is_usage);
            if usage { WRONG_USAGE } else { FAILED }
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<Ending> {
    match arguments.command {
        Command::Dedup(arguments) => dedup::run(*arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Clusters(arguments) => clusters::run(&arguments),
        Command::ExportCdxj(arguments) => export_cdxj::run(&arguments),
        Command::Recluster(arguments) => recluster::run(arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Text(arguments) => text::run(&arguments),
        Command::Evaluate(arguments) => evaluate::run(&arguments.command),
        Command::Index(arguments) => index::run(arguments.command),
        Command::Refine(arguments) => refine::run(&arguments),
        Command::Transfer(arguments) => transfer::run(&arguments),
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => serve::run(*arguments),
        Command::View(arguments) => view::run(arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Help { words } => help::run(&words),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { directory } => generate::man(directory.as_deref()),
    }
}

/// What the library says, with its settings as flags.
pub(crate) fn with_flags(text: &str) -> String {
    name_settings(text, |setting| format!("--{}", setting.replace('_', "-")))
}

/// The error as a person at the command line reads it: settings are flags.
fn message(error: &anyhow::Error) -> String {
    let Some(ours) = error.downcast_ref::<Error>() else { return format!("{error:#}") };
    let ours = with_flags(&ours.to_string());
    // The context that a command added, if any, comes first.
    let context: Vec<String> =
        error.chain().take_while(|cause| !cause.is::<Error>()).map(ToString::to_string).collect();
    context.into_iter().chain([ours]).collect::<Vec<_>>().join(": ")
}

/// The reader of our output closed the pipe; that is not an error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
