//! The service under load: CPU of a check against what it cannot do without, latencies, durable inserts, memory.
//!
//! One run: the collection with its rows; by turns the library alone, a handler that only parses the bodies, one that parses
//! and calls the library, the service, and the service with a collection of fingerprints; then checks while others store, inserts,
//! and a crowd. CPU times are those of the processes, as the system counts them.

mod crowd;
mod filled;
mod library;
mod pages;
mod server;

pub(crate) use filled::Method;
pub(crate) use library::parser;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use clap::Args;

use filled::{bytes_of, copied, filled, remove};
use library::Library;
use pages::Pages;
use server::{Load, Server};

#[derive(Debug, Args)]
pub(crate) struct ServiceArguments {
    /// What pages are found by; with minhash, checks are compared with those of simhash
    #[arg(long, value_enum, default_value_t = Method::Minhash)]
    method: Method,
    /// Rows in the collection
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
    /// Connections
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Seconds for each measurement
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Seconds of checks during which memory is watched
    #[arg(long, default_value_t = 600)]
    soak: u64,
    /// The command line that is measured
    #[arg(long, default_value = "target/release/lookalike")]
    lookalike: PathBuf,
    /// Where collections are kept once they are filled, and used again if they have as many rows; they go at the end if
    /// this is not given
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Where everything else goes
    #[arg(long, default_value = "target/bench")]
    work: PathBuf,
}

/// What is compared is measured by turns, so that a slow moment of the machine is everybody's.
const TURNS: u64 = 5;
/// Pages of the library in a turn.
const TURN_PAGES: u64 = 4000;

/// Pages that are asked for, again and again: nothing remembers them.
const ASKED: u64 = 8192;
/// Pages to insert for every second that is measured: more than are.
const INSERTED_A_SECOND: u64 = 8000;
/// Short texts to store in batches for every second that is measured: more than are.
const BATCHED_A_SECOND: u64 = 40_000;
/// Connections that ask while others store.
const ASKING: usize = 8;
/// Connections that store without pause.
const STORING: usize = 2;

/// Serves a collection.
fn serve(lookalike: &Path, directory: &Path) -> Result<Server> {
    Server::start(Command::new(lookalike).arg("serve").arg(directory).args(["--listen", "127.0.0.1:0"]))
}

fn row(name: &str, load: &Load) -> String {
    let (p50, p99) = (load.percentile(50), load.percentile(99));
    format!("| {name} | {:.1} µs | {:.0} | {p50:.2} ms | {p99:.2} ms |", load.cpu_microseconds(), load.rate())
}

/// Measures and prints.
pub(crate) fn run(arguments: &ServiceArguments) -> Result<()> {
    let root = arguments.directory.clone().unwrap_or_else(|| arguments.work.join("service"));
    if arguments.directory.is_none() {
        remove(&root)?;
    }
    fs::create_dir_all(&root)?;
    let copies = root.join("copies");
    let done = measure(arguments, &root, &copies);
    remove(if arguments.directory.is_none() { &root } else { &copies })?;
    done
}

/// The collections of a run, and who asks them.
struct Measured<'a> {
    arguments: &'a ServiceArguments,
    pages: Pages,
    asked: Vec<Vec<u8>>,
    service: Server,
    /// Of fingerprints, beside it.
    beside: Option<Server>,
}

fn measure(arguments: &ServiceArguments, root: &Path, copies: &Path) -> Result<()> {
    let out = &mut io::stdout().lock();
    let (method, pages) = (arguments.method, Pages::new());
    let fill = |method| filled(root, method, arguments.rows, &pages);
    let (directory, how) = fill(method)?;
    how.into_iter().try_for_each(|how| writeln!(out, "{how}"))?;
    let copy_of = |directory: &Path, name: &str| copied(directory, &copies.join(name));
    let beside = match method {
        Method::Minhash => Some(copy_of(&fill(Method::Simhash)?.0, "beside")?),
        Method::Simhash => None,
    };
    writeln!(
        out,
        "{}: {} rows, {:.0} bytes of disk each; pages of {} bytes, {} connections\n",
        method.name(),
        arguments.rows,
        bytes_of(&directory)? as f64 / arguments.rows as f64,
        pages.html(1).len(),
        arguments.connections
    )?;
    out.flush()?;
    let measured = Measured {
        arguments,
        asked: pages.html_bodies(0..ASKED),
        pages,
        service: serve(&arguments.lookalike, &copy_of(&directory, "service")?)?,
        beside: beside.map(|beside| serve(&arguments.lookalike, &beside)).transpose()?,
    };
    let checked = measured.checks(&copy_of(&directory, "caller")?, &copy_of(&directory, "library")?, out)?;
    measured.checks_while_storing(out)?;
    measured.inserts(&checked, out)?;
    measured.soak(out)?;
    drop(measured.beside);
    drop(measured.service);
    crowd::measure(&arguments.lookalike, method, copies, &measured.pages, out)
}

impl Measured<'_> {
    fn check(&self, server: &Server, path: &str, seconds: u64) -> Result<Load> {
        server.load(path, &self.asked, self.arguments.connections, seconds)
    }

    /// CPU and latencies of checks, beside what they cannot do without.
    fn checks(&self, for_caller: &Path, for_library: &Path, out: &mut impl Write) -> Result<Load> {
        let method = self.arguments.method;
        let bare = |directory: Option<&Path>| {
            let mut command = Command::new(std::env::current_exe()?);
            Server::start(command.args(["service-parser", "--method", method.name()]).args(directory))
        };
        let (parser, caller) = (bare(None)?, bare(Some(for_caller))?);
        let library = Library::open(for_library, method)?;
        let cores = std::thread::available_parallelism()?.get();
        let [mut alone, mut on_all, mut parsed, mut called, mut checked, mut beside] =
            std::array::from_fn(|_| Load::default());
        for turn in 0..=TURNS {
            let texts: Vec<String> = (0..TURN_PAGES).map(|number| self.pages.html((turn + 1) << 40 | number)).collect();
            let seconds = (self.arguments.seconds / TURNS).max(1);
            let measured = [
                library.load(&texts, 1)?,
                library.load(&texts, cores)?,
                self.check(&parser, "/", seconds)?,
                self.check(&caller, "/", seconds)?,
                self.check(&self.service, "/v1/pages", seconds)?,
                self.beside.as_ref().map_or(Ok(Load::default()), |beside| self.check(beside, "/v1/pages", seconds))?,
            ];
            // The first turn is there to fill caches.
            if turn > 0 {
                [&mut alone, &mut on_all, &mut parsed, &mut called, &mut checked, &mut beside]
                    .into_iter()
                    .zip(measured)
                    .for_each(|(all, more)| all.add(more));
            }
        }
        writeln!(out, "| what | CPU per page | pages per second | p50 | p99 |\n|---|---|---|---|---|")?;
        writeln!(out, "{}", row("a handler that only parses the body", &parsed))?;
        writeln!(out, "| the library: read and look up, on one core | {:.1} µs | | | |", alone.cpu_microseconds())?;
        writeln!(out, "| the same on all cores at once | {:.1} µs | | | |", on_all.cpu_microseconds())?;
        writeln!(out, "{}", row("a handler that parses and calls the library", &called))?;
        writeln!(out, "{}", row("the service: check", &checked))?;
        let per_check = checked.cpu_microseconds();
        if self.beside.is_some() {
            writeln!(out, "{}", row("the service: check in a collection of fingerprints", &beside))?;
            writeln!(out, "\ncheck: {:.2} × that by fingerprints", per_check / beside.cpu_microseconds())?;
        }
        writeln!(out, "check: {:.2} × the handler with the library in it", per_check / called.cpu_microseconds())?;
        let sums = [("on all cores at once", &on_all), ("on one core with nothing beside it", &alone)];
        for (how, library) in sums {
            let times = per_check / (parsed.cpu_microseconds() + library.cpu_microseconds());
            writeln!(out, "check: {times:.2} × the sum of the handler that parses and the library {how}")?;
        }
        writeln!(out, "p99: {:.1} × p50\n", checked.percentile(99) / checked.percentile(50))?;
        out.flush()?;
        Ok(checked)
    }

    /// Latencies of checks while others store short texts without pause.
    fn checks_while_storing(&self, out: &mut impl Write) -> Result<()> {
        let seconds = self.arguments.seconds;
        let texts = self.pages.text_bodies(0, ASKED);
        writeln!(
            out,
            "{ASKING} connections ask, {STORING} send batches of short texts\n\n| asked about | batches | checks per second | p50 | p99 | stored per second |\n|---|---|---|---|---|---|"
        )?;
        for (series, (name, bodies)) in (1..).zip([("pages", &self.asked), ("short texts", &texts)]) {
            let load = || self.service.load("/v1/pages", bodies, ASKING, seconds);
            let lines = self.pages.text_bodies(series, BATCHED_A_SECOND * seconds);
            let quiet = (load()?, 0.0);
            let busy = self.service.load_while_storing(&lines, STORING, load)?;
            for (how, (load, stored)) in [("no", quiet), ("yes", busy)] {
                let (rate, p50, p99) = (load.rate(), load.percentile(50), load.percentile(99));
                writeln!(out, "| {name} | {how} | {rate:.0} | {p50:.2} ms | {p99:.2} ms | {stored:.0} |")?;
            }
        }
        writeln!(out)?;
        Ok(out.flush()?)
    }

    fn inserts(&self, checked: &Load, out: &mut impl Write) -> Result<()> {
        let ServiceArguments { connections, seconds, .. } = *self.arguments;
        let new = self.pages.html_bodies(ASKED..ASKED + INSERTED_A_SECOND * seconds);
        let inserted = self.service.load("/v1/pages?store=if_new", &new, connections, seconds)?;
        ensure!(inserted.requests <= new.len() as u64, "more pages were sent than there are");
        writeln!(out, "| what | CPU per page | pages per second | p50 | p99 |\n|---|---|---|---|---|")?;
        writeln!(out, "{}", row("the service: check and durable insert", &inserted))?;
        writeln!(out, "\ninserts: {:.0} % of the checks per second", 100.0 * inserted.rate() / checked.rate())?;
        Ok(out.flush()?)
    }

    /// Memory under checks.
    fn soak(&self, out: &mut impl Write) -> Result<()> {
        for minute in 0..self.arguments.soak / 60 {
            self.check(&self.service, "/v1/pages", 60)?;
            let (own, all) = self.service.memory()?;
            writeln!(
                out,
                "after {} min of checks: {own:.0} MiB of its own, {all:.0} MiB with mapped files",
                minute + 1
            )?;
            out.flush()?;
        }
        Ok(())
    }
}
