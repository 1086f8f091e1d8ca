//! Help: of each command the flags that are used most, on one screen; all others by topic.
//!
//! A topic is a heading of the flags. Whoever adds a flag has nothing to do here: it is found under its topic, and on the
//! screen if it is added to [`SCREENS`], or if its command is not listed there.

use anyhow::Result;
use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command, CommandFactory};

use crate::Ending;
use crate::args::Arguments;

/// What fits on a screen of a command with many flags.
struct Screen {
    command: &'static str,
    /// The flags that are used most, each with what it does in a line; nothing if its own help is short.
    flags: &'static [(&'static str, &'static str)],
    /// Examples in place of its own, if those are long.
    examples: Option<&'static str>,
}

/// Flags whose values are too many for a screen.
const MANY_VALUES: &[&str] = &["format"];

/// Commands that are not here show everything.
const SCREENS: &[Screen] = &[
    Screen {
        command: "dedup",
        flags: &[
            ("output", ""),
            ("method", "How near-duplicates are found"),
            ("threshold", "Similarity, 0..1, from which two pages are near-duplicates"),
            ("exact_only", "Find exact copies only"),
            ("cluster", "Groups in which every page is like the kept one, or chains, too"),
            ("keep", ""),
            ("prefer", "Files whose pages stay before all others, such as 'gold/**'"),
            ("against", "Drop what another corpus has: a result, files of pages, or an index"),
            ("removed", "Write the dropped records, too, and what each was dropped for"),
            ("annotate", "Write all records, with their clusters added"),
            ("format", "Read every input as this format [default: recognised]"),
            ("text_field", "Field with the text or HTML [default: text, content, html or body]"),
            ("content", ""),
            ("memory", "Ceiling on memory [default: half the machine's]"),
            ("threads", ""),
            ("resume", ""),
            ("replace", ""),
            ("dry_run", ""),
            ("quiet", ""),
            ("json", ""),
        ],
        examples: None,
    },
    Screen {
        command: "recluster",
        flags: &[
            ("threshold", ""),
            ("output", ""),
            ("cluster", ""),
            ("keep", ""),
            ("prefer", "Files whose pages stay before all others, such as 'gold/**'"),
            ("decisions", ""),
            ("replace", ""),
            ("quiet", ""),
            ("json", ""),
        ],
        examples: None,
    },
    Screen {
        command: "compare",
        flags: &[("within", ""), ("method", ""), ("json", ""), ("html", ""), ("content", ""), ("format", "")],
        examples: None,
    },
    Screen {
        command: "index build",
        flags: &[
            ("fingerprints", "The inputs are fingerprints in this notation, one per line, perhaps with an id"),
            ("radius", ""),
            ("force", ""),
            ("format", ""),
            ("text_field", "Field with the text or HTML [default: text, content, html or body]"),
            ("content", ""),
            ("memory", ""),
            ("quiet", ""),
            ("json", ""),
        ],
        examples: None,
    },
    Screen {
        command: "evaluate clusters",
        flags: &[
            ("gold", ""),
            ("method", "Methods to evaluate: all, or names separated by commas; can be repeated"),
            ("grid", "All values of a parameter: ngram=1..8, weights=none,tf; twice for a surface"),
            ("found", ""),
            ("allow_missing", ""),
            ("report", ""),
            ("text_field", "Field with the text or HTML [default: text, content, html or body]"),
            ("content", ""),
            ("json", ""),
        ],
        examples: None,
    },
    Screen {
        command: "evaluate page",
        flags: &[("method", ""), ("top", ""), ("report", ""), ("json", ""), ("text_field", ""), ("content", "")],
        examples: None,
    },
    Screen {
        command: "refine",
        flags: &[
            ("method", "Method that finds near-duplicates"),
            ("threshold", "Similarity, 0..1, from which two results are near-duplicates"),
            ("evidence", "What shows that two results are the same page: text, title, url"),
            ("depth", ""),
            ("corpus", ""),
            ("run", ""),
            ("qrels", ""),
            ("report", "Write an HTML report to this file; JSON and CSV beside it"),
            ("json", "Print the response in its own shape, folded, with groups in a field"),
            ("mark", ""),
            ("text_field", ""),
            ("title_field", ""),
        ],
        examples: Some(
            "Examples:\n  curl -s localhost:9200/pages/_search -d @query.json … | lookalike refine -\n  lookalike refine answer.json --json\n  lookalike refine run.txt --corpus crawl/*.warc.gz --run folded.txt",
        ),
    },
    Screen {
        command: "serve",
        flags: &[
            ("listen", ""),
            ("config", ""),
            ("tokens", "File of tokens, one per line: read, write or admin, and a secret"),
            ("tls_cert", "Certificates for HTTPS, in PEM form"),
            ("tls_key", "The private key of the certificate, in PEM form"),
            ("backups", ""),
            ("no_access_log", ""),
            ("log_format", ""),
            ("skip_damaged", ""),
            ("memory", ""),
            ("max_page", ""),
        ],
        examples: Some(
            "Examples:\n  lookalike serve seen\n  curl -s localhost:8700/v1/pages?store=if_new -H 'Content-Type: application/json' \\\n       -d '{\"url\": \"http://a.org/x\", \"text\": \"The ferry did not sail because of the storm\"}'\n  lookalike serve seen --listen 0.0.0.0:8700 --tokens tokens.txt\n\nAll calls: GET /openapi.json, and docs/service.md. SIGTERM finishes accepted requests, then stops;\nSIGHUP reads tokens, certificates, limits and host names again.",
        ),
    },
    Screen {
        command: "transfer",
        flags: &[
            ("qrels", ""),
            ("from", ""),
            ("to", ""),
            ("output", ""),
            ("threshold", ""),
            ("verified_only", ""),
            ("all_near", ""),
            ("format", ""),
            ("text_field", "Field with the text or HTML [default: text, content, html or body]"),
            ("quiet", ""),
            ("json", ""),
        ],
        examples: None,
    },
];

/// What a heading is called as a topic; others are called by their last word.
const TOPICS: &[(&str, &str)] = &[
    ("What counts as a near-duplicate", "matching"),
    ("What is kept", "keeping"),
    ("What is written", "output"),
    ("How the input is read", "input"),
    ("How it runs", "running"),
    ("What it reports", "reporting"),
    ("Fingerprints of pages", "fingerprints"),
    ("Columns of the gold standard", "columns"),
    ("Who may use it", "access"),
    ("What operators see", "operation"),
    ("What it may take", "resources"),
    ("Fields of the results; a dot descends into an object", "fields"),
];
/// Flags without a heading.
const GENERAL: &str = "options";
/// All topics.
const ALL: &str = "all";

/// The command line with everything, for manual pages, completions and topics.
pub(crate) fn full() -> Command {
    each(Arguments::command(), "", &|command, _| {
        let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).help("Print help");
        let help = help.help_heading(Resettable::Reset);
        command.disable_help_flag(true).disable_help_subcommand(true).arg(help)
    })
}

/// The same with help that fits a screen, for whoever uses it.
pub(crate) fn on_a_screen() -> Command {
    each(full(), "", &|command, path| match SCREENS.iter().find(|screen| screen.command == path) {
        Some(screen) => screen.of(command),
        None => command,
    })
}

/// Changes a command, which is called by `path`, and all below it.
fn each(command: Command, path: &str, change: &dyn Fn(Command, &str) -> Command) -> Command {
    let command = change(command, path);
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        let path = if path.is_empty() { name.clone() } else { format!("{path} {name}") };
        command.mut_subcommand(name, |subcommand| each(subcommand, &path, change))
    })
}

impl Screen {
    fn of(&self, command: Command) -> Command {
        let own = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (examples, topics) = (self.examples.unwrap_or(&own), topics(&command).join(" | "));
        let help =
            format!("{examples}\n\nAll flags, by topic: lookalike help {} TOPIC, with\n  {topics}", self.command);
        let command = command.after_help(help.trim_start().to_owned());
        command.mut_args(|arg| {
            let name = arg.get_id().as_str().to_owned();
            if arg.is_positional() || name == "help" {
                return arg;
            }
            let Some((_, line)) = self.flags.iter().find(|flag| flag.0 == name) else { return arg.hide(true) };
            let arg = arg.help_heading(Resettable::Reset);
            let arg = if line.is_empty() { arg } else { arg.help(*line) };
            if MANY_VALUES.contains(&name.as_str()) { arg.hide_possible_values(true) } else { arg }
        })
    }
}

/// The topic that a flag is found under.
fn topic(arg: &Arg) -> String {
    let Some(heading) = arg.get_help_heading() else { return GENERAL.to_owned() };
    let named = TOPICS.iter().find(|row| row.0 == heading).map(|row| row.1);
    let last = heading.rsplit(' ').next().unwrap_or(heading);
    named.map_or_else(|| last.to_lowercase(), str::to_owned)
}

/// The topics of a command, in the order of its flags.
fn topics(command: &Command) -> Vec<String> {
    let mut topics: Vec<String> = Vec::new();
    for arg in command.get_arguments().filter(|arg| !arg.is_positional() && arg.get_id() != "help") {
        let topic = topic(arg);
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    // General flags last, as their heading says least; and everything at once.
    topics.sort_by_key(|topic| topic == GENERAL);
    topics.push(ALL.to_owned());
    topics
}

/// The command that the first words name, and the words behind them.
fn find(mut root: Command, words: &[String]) -> (Command, &[String]) {
    root.build();
    let (mut found, mut rest) = (root, words);
    while let Some((word, behind)) = rest.split_first()
        && let Some(subcommand) = found.find_subcommand(word).cloned()
    {
        (found, rest) = (subcommand, behind);
    }
    (found, rest)
}

/// `lookalike help COMMAND… TOPIC`
pub(crate) fn run(words: &[String]) -> Result<Ending> {
    let mut root = full();
    let (found, rest) = find(root.clone(), words);
    let Some((wanted, behind)) = rest.split_first() else {
        find(on_a_screen(), words).0.print_help()?;
        return Ok(Ending::Done);
    };
    let topics = topics(&found);
    if !behind.is_empty() || !topics.contains(wanted) {
        let commands: Vec<&str> = found.get_subcommands().map(Command::get_name).collect();
        let (what, names) =
            if commands.is_empty() { ("topics", topics.join(", ")) } else { ("commands", commands.join(", ")) };
        let name = found.get_bin_name().unwrap_or("lookalike");
        let message = format!("'{}' is not a part of the help of {name}; there are the {what} {names}", rest.join(" "));
        root.error(ErrorKind::InvalidValue, message).exit();
    }
    let has_topic = |arg: &Arg| !arg.is_positional() && arg.get_id() != "help";
    let is_about = |arg: &Arg| wanted == ALL || (has_topic(arg) && topic(arg) == *wanted);
    let mut shown = found.mut_args(|arg| {
        let hides = !is_about(&arg);
        arg.hide(hides)
    });
    if wanted != ALL {
        shown = shown.after_help("").after_long_help("");
    }
    shown.print_long_help()?;
    Ok(Ending::Done)
}
