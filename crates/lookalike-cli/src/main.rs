//! The command line: arguments → [`Config`](lookalike::Config) → library.

mod args;
mod audit;
mod clusters;
mod compare;
mod dedup;
mod evaluate;
mod evaluate_args;
mod explain;
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

use std::io::{self, Write};
use std::process::ExitCode;

use clap::FromArgMatches;
use lookalike::Error;
use lookalike::config::name_settings;

use args::{Arguments, Command};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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

fn main() -> ExitCode {
    let arguments = Arguments::from_arg_matches(&help::on_a_screen().get_matches());
    match run(arguments.unwrap_or_else(|error| error.exit())) {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::Skipped) => ExitCode::from(SKIPPED),
        Ok(Ending::No) => ExitCode::from(FAILED),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed too, there is nowhere left to report it.
            let _ = writeln!(io::stderr(), "error: {}", message(&error));
            let usage = error.downcast_ref().is_some_and(Error::is_usage);
            ExitCode::from(if usage { WRONG_USAGE } else { FAILED })
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<Ending> {
    match arguments.command {
        Command::Dedup(arguments) => dedup::run(*arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Clusters(arguments) => clusters::run(&arguments),
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
