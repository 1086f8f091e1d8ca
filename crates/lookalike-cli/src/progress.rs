//! Progress: one line per stage on a terminal, nothing elsewhere, a log file on request.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressState, ProgressStyle};
use lookalike::result::SkippedRecord;
use lookalike::{Observer, Stage};

use crate::args::TalkingArguments;
use crate::with_flags;

/// Shows and logs the progress of a run.
pub(crate) struct Progress {
    visible: bool,
    state: Mutex<State>,
}

struct State {
    bar: ProgressBar,
    log: Option<File>,
    started: Instant,
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
        let state = State { bar: ProgressBar::hidden(), log, started: Instant::now(), pages: 0 };
        Ok(Progress { visible: !talking.quiet && io::stderr().is_terminal(), state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn log(&mut self, line: &str) {
        if let Some(file) = &mut self.log {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            // A log that cannot be written does not stop the work.
            let _ = writeln!(file, "{now:.3} {line}");
        }
    }
}

/// Whether a stage's units are bytes.
fn counts_bytes(stage: Stage) -> bool {
    matches!(stage, Stage::Read | Stage::Verify)
}

impl Observer for Progress {
    fn start(&self, stage: Stage, total: u64) {
        let mut state = self.state();
        state.started = Instant::now();
        state.pages = 0;
        state.log(&format!("{} started", stage.name()));
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
        state.log(&format!("{} finished in {seconds:.3} s", stage.name()));
        state.bar.finish_and_clear();
        if self.visible {
            let pages = if state.pages > 0 { format!(", {} pages", HumanCount(state.pages)) } else { String::new() };
            let _ = writeln!(io::stderr(), "{:>10} {seconds:.1} s{pages}", stage.name());
        }
    }
}
