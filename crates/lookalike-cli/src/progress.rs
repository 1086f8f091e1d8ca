//! Progress: one line per stage on a terminal, nothing elsewhere, a log file on request; and how a run ended.
//!
//! A line of the log is a time (RFC 3339, UTC), what happened, and counts as `name=number`.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use chrono::{DateTime, SecondsFormat, Utc};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressState, ProgressStyle};
use lookalike::result::{Outcome, SkippedRecord};
use lookalike::{Observer, Stage};

use crate::args::TalkingArguments;
use crate::{json, table, with_flags};

/// Shows and logs the progress of a run.
pub(crate) struct Progress {
    visible: bool,
    state: Mutex<State>,
}

struct State {
    bar: ProgressBar,
    log: Option<File>,
    started: Instant,
    done: u64,
    pages: u64,
}

impl Progress {
    pub(crate) fn new(talking: &TalkingArguments) -> Result<Progress> {
        let log = match &talking.log {
            Some(path) => {
                Some(File::create(path).with_context(|| format!("{}: cannot write the log", path.display()))?)
            }
            None => None,
        };
        let state = State { bar: ProgressBar::hidden(), log, started: Instant::now(), done: 0, pages: 0 };
        Ok(Progress { visible: !talking.quiet && io::stderr().is_terminal(), state: Mutex::new(state) })
    }

    /// The end of a run: its counts in the log, the summary for people on standard error, on request the one for
    /// programs on standard output.
    pub(crate) fn report(&self, outcome: &Outcome, talking: &TalkingArguments) -> Result<()> {
        let summary = &outcome.summary;
        let skipped: u64 = summary.skipped.values().sum();
        self.state().log(&format!(
            "done pages={} kept={} dropped={} clusters={} pairs={} ignored_files={} skipped={skipped}",
            summary.pages, summary.kept, summary.dropped, summary.clusters, summary.pairs, summary.ignored_files
        ));
        table::print(outcome, talking)?;
        if talking.json {
            json::print(&json::of_run(outcome)?)?;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn log(&mut self, line: &str) {
        if let Some(file) = &mut self.log {
            let now = DateTime::<Utc>::from(SystemTime::now()).to_rfc3339_opts(SecondsFormat::Millis, true);
            // A log that cannot be written does not stop the work.
            let _ = writeln!(file, "{now} {line}");
        }
    }
}

/// Whether a stage's units are bytes.
fn counts_bytes(stage: Stage) -> bool {
    matches!(stage, Stage::Read | Stage::Verify)
}

fn unit(stage: Stage) -> &'static str {
    if counts_bytes(stage) { "bytes" } else { "pages" }
}

impl Observer for Progress {
    fn start(&self, stage: Stage, total: u64) {
        let mut state = self.state();
        state.started = Instant::now();
        (state.done, state.pages) = (0, 0);
        let ahead = if total == 0 { String::new() } else { format!(" {}={total}", unit(stage)) };
        state.log(&format!("{} started{ahead}", stage.name()));
        if !self.visible {
            return;
        }
        let style = if total == 0 {
            ProgressStyle::with_template("{prefix:>10} {spinner} {elapsed}")
        } else if counts_bytes(stage) {
            ProgressStyle::with_template(
                "{prefix:>10} [{bar:30}] {bytes}/{total_bytes} {rate}, {msg} pages, {eta} left",
            )
        } else {
            ProgressStyle::with_template("{prefix:>10} [{bar:30}] {human_pos}/{human_len} pages, {eta} left")
        };
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ").with_key(
            "rate",
            |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a rate for people
                let rate = state.per_sec() as u64;
                let _ = write!(out, "{}/s", HumanBytes(rate));
            },
        );
        state.bar = ProgressBar::new(total).with_style(style).with_prefix(stage.name());
        state.bar.enable_steady_tick(Duration::from_millis(100));
    }

    fn advance(&self, done: u64, pages: u64) {
        let mut state = self.state();
        state.pages += pages;
        state.done += done;
        if self.visible {
            state.bar.set_message(HumanCount(state.pages).to_string());
            state.bar.inc(done);
        }
    }

    fn skipped(&self, record: &SkippedRecord) {
        let mut state = self.state();
        state.log(&format!("skipped {}: {}", record.kind.name(), with_flags(&record.to_string())));
    }

    fn finish(&self, stage: Stage) {
        let mut state = self.state();
        let seconds = state.started.elapsed().as_secs_f64();
        let mut counts = String::new();
        if state.pages > 0 {
            counts.push_str(&format!(" pages={}", state.pages));
        }
        if counts_bytes(stage) {
            counts.push_str(&format!(" bytes={}", state.done));
        }
        state.log(&format!("{} finished{counts} seconds={seconds:.3}", stage.name()));
        state.bar.finish_and_clear();
        if self.visible {
            let pages = if state.pages > 0 { format!(", {} pages", HumanCount(state.pages)) } else { String::new() };
            let _ = writeln!(io::stderr(), "{:>10} {seconds:.1} s{pages}", stage.name());
        }
    }
}
