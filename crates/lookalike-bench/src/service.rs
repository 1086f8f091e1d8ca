//! The service under load: CPU of a check against what it cannot do without, latencies, durable inserts, memory.
//!
//! One run: the index with its rows; by turns the library alone, a handler that only parses the bodies, one that parses
//! and calls the library, and the service; then inserts. CPU times are those of the processes, as the system counts them.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use lookalike::config::FingerprintConfig;
use lookalike::index::{Id, IndexConfig, OpenOptions, pages};
use lookalike::method::Simhash;
use lookalike::unstable::cpu_seconds;
use lookalike::{Body, Config, Index, Markup, RawPage, Sketcher};
use lookalike_bench::corpus::{Corpus, CorpusPlan, Random};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[derive(Debug, Args)]
pub(crate) struct ServiceArguments {
    /// Rows in the index
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
    /// Where the index goes
    #[arg(long, default_value = "target/bench")]
    work: PathBuf,
}

/// Bytes of a page.
const PAGE_BYTES: usize = 8192;
const RADIUS: u32 = 3;

/// Pages that are like no other: paragraphs of generated documents, in an order of their own.
struct Pages {
    paragraphs: Vec<String>,
}

impl Pages {
    fn new() -> Result<Pages> {
        let mut lines = Vec::new();
        Corpus::new(CorpusPlan { documents: 4000, seed: 11, ..CorpusPlan::default() }).write(&mut lines)?;
        let mut paragraphs = Vec::new();
        for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let document: serde_json::Value = serde_json::from_slice(line)?;
            let words: Vec<&str> = document["text"].as_str().unwrap_or_default().split_whitespace().collect();
            paragraphs.extend(words.chunks_exact(120).map(|words| words.join(" ")));
        }
        Ok(Pages { paragraphs })
    }

    /// Page number `number`.
    fn html(&self, number: u64) -> String {
        let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut html = format!("<html><head><title>Page {number}</title></head><body>");
        while html.len() < PAGE_BYTES {
            html.push_str("<p>");
            html.push_str(&self.paragraphs[random.below(self.paragraphs.len())]);
            html.push_str("</p>\n");
        }
        html.push_str("</body></html>");
        html
    }

    /// Bodies of requests, made before anything is measured: who asks a service is on another machine, as a rule.
    fn bodies(&self, numbers: std::ops::Range<u64>) -> Vec<Vec<u8>> {
        let body =
            |number| serde_json::json!({ "url": format!("http://a.example/{number}"), "html": self.html(number) });
        numbers.map(|number| body(number).to_string().into_bytes()).collect()
    }
}

/// What is compared is measured by turns, so that a slow moment of the machine is everybody's.
const TURNS: u64 = 5;
/// Pages of the library in a turn.
const TURN_PAGES: u64 = 4000;

/// Pages that are asked for, again and again: nothing remembers them.
const ASKED: u64 = 8192;
/// Pages to insert for every second that is measured: more than are.
const INSERTED_A_SECOND: u64 = 8000;

/// What a load did.
#[derive(Default)]
struct Load {
    requests: u64,
    seconds: f64,
    /// Of the server.
    cpu_seconds: f64,
    /// Sorted, in microseconds.
    latencies: Vec<u32>,
}

impl Load {
    /// The latency that so many percent of the requests do not exceed.
    fn percentile(&self, percent: usize) -> f64 {
        let at = self.latencies.len().saturating_sub(1) * percent / 100;
        f64::from(self.latencies.get(at).copied().unwrap_or(0))
    }

    /// Of the server, for each request.
    fn cpu_microseconds(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.requests as f64
    }

    fn add(&mut self, more: Load) {
        self.requests += more.requests;
        self.seconds += more.seconds;
        self.cpu_seconds += more.cpu_seconds;
        self.latencies.extend(more.latencies);
        self.latencies.sort_unstable();
    }

    fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }
}

/// CPU seconds that a process has used.
fn cpu_of(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).context("/proc/…/stat");
    // In hundredths of a second on every Linux.
    Ok((ticks(11)? + ticks(12)?) as f64 / 100.0)
}

/// Anonymous memory of a process, and all of it that is in memory, in MiB.
fn memory_of(pid: u32) -> Result<(f64, f64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
    };
    Ok((field("RssAnon:"), field("VmRSS:")))
}

/// A server that says its address on standard output.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(command: &mut Command) -> Result<Server> {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut address = String::new();
        BufReader::new(process.stdout.take().context("standard output")?).read_line(&mut address)?;
        let address = address.trim().trim_start_matches("http://").to_owned();
        ensure!(!address.is_empty(), "the server did not start");
        loop {
            let mut stream = TcpStream::connect(&address)?;
            stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            if answer.contains(" 200 ") {
                return Ok(Server { process, address });
            }
        }
    }

    /// Sends bodies over many connections for some time, one after the other and from the first again. One thread does it
    /// all, so that the server has to share its cores with little.
    fn load(&self, path: &str, bodies: &[Vec<u8>], connections: usize, seconds: u64) -> Result<Load> {
        let (cpu, start) = (cpu_of(self.process.id())?, Instant::now());
        let until = start + Duration::from_secs(seconds);
        let next = Cell::new(0);
        let clients = (0..connections).map(|_| self.ask(path, bodies, &next, until));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let mut latencies = runtime.block_on(futures_util::future::try_join_all(clients))?.concat();
        let seconds = start.elapsed().as_secs_f64();
        let cpu_seconds = cpu_of(self.process.id())? - cpu;
        latencies.sort_unstable();
        let requests = latencies.len() as u64;
        Ok(Load { requests, seconds, cpu_seconds, latencies })
    }

    /// What one connection does; gives the microseconds that answers took.
    async fn ask(&self, path: &str, bodies: &[Vec<u8>], next: &Cell<usize>, until: Instant) -> Result<Vec<u32>> {
        let mut stream = tokio::net::TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (mut latencies, mut request, mut received) = (Vec::new(), Vec::new(), vec![0; 4096]);
        while Instant::now() < until {
            let body = &bodies[next.replace(next.get() + 1) % bodies.len()];
            request.clear();
            write!(
                request,
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                body.len()
            )?;
            request.extend_from_slice(body);
            let sent = Instant::now();
            stream.write_all(&request).await?;
            let mut filled = 0;
            // Answers are small and have a length.
            while !is_whole(&received[..filled]) {
                let count = stream.read(&mut received[filled..]).await?;
                ensure!(count > 0, "the server closed the connection");
                filled += count;
            }
            ensure!(received.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&received[..filled]));
            latencies.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
        Ok(latencies)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether the whole answer is there.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    length.is_some_and(|length| answer.len() >= end + 4 + length)
}

/// Copies the files of an index; it has no directories.
fn copy_directory(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

fn build(directory: &Path, rows: u64) -> Result<()> {
    let config = IndexConfig::pages(FingerprintConfig::default(), RADIUS);
    let index = Index::create(directory, config, 4 << 30, true)?;
    let mut bulk = index.bulk_insert()?;
    let mut random = Random(3);
    for row in 0..rows {
        bulk.push(random.number(), &Id::from(format!("r{row}").as_str()))?;
    }
    bulk.finish()?;
    Ok(())
}

/// The library alone: sketch and query, on some threads at once.
fn library(index: &Index, texts: &[String], threads: usize) -> Result<Load> {
    let check_all = || {
        let mut checker = Checker::new(index);
        texts.iter().map(|text| checker.check(text)).sum::<u64>()
    };
    let now = || cpu_seconds().context("CPU time");
    let start = now()?;
    let found: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(check_all)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(u64::MAX)).max().unwrap_or(0)
    });
    ensure!(found < 100, "the pages are like those in the index");
    Ok(Load { requests: (threads * texts.len()) as u64, cpu_seconds: now()? - start, ..Load::default() })
}

/// What the library does for a check.
struct Checker<'a> {
    sketcher: Sketcher,
    index: &'a Index,
}

impl Checker<'_> {
    fn new(index: &Index) -> Checker<'_> {
        Checker { sketcher: Sketcher::new(&Config::new(Simhash::default())), index }
    }

    /// Rows that are near.
    fn check(&mut self, html: &str) -> u64 {
        let page = RawPage::new(Body::Text(html.into()), Markup::Html);
        let fingerprint = pages::fingerprint(&page, &mut self.sketcher).unwrap_or(0);
        self.index.reader().query(fingerprint, RADIUS, 64).map_or(0, |answer| answer.count)
    }
}

/// Measures and prints.
pub(crate) fn run(arguments: &ServiceArguments) -> Result<()> {
    let mut out = io::stdout().lock();
    let directory = arguments.work.join("service");
    fs::create_dir_all(&arguments.work)?;
    let pages = Pages::new()?;
    build(&directory, arguments.rows)?;
    writeln!(
        out,
        "{} rows, pages of {} bytes, {} connections\n",
        arguments.rows,
        pages.html(1).len(),
        arguments.connections
    )?;
    let asked = pages.bodies(0..ASKED);
    let load = |server: &Server, path: &str, seconds: u64| server.load(path, &asked, arguments.connections, seconds);

    let bare =
        |index: Option<&Path>| Server::start(Command::new(std::env::current_exe()?).arg("service-parser").args(index));
    // Whoever serves an index has it for himself.
    let copy = arguments.work.join("service-copy");
    copy_directory(&directory, &copy)?;
    let (parser, caller) = (bare(None)?, bare(Some(&copy))?);
    let service = Server::start(
        Command::new(&arguments.lookalike).arg("serve").arg(&directory).args(["--listen", "127.0.0.1:0"]),
    )?;
    let index = Index::open(&copy, OpenOptions::default())?;
    let cores = std::thread::available_parallelism()?.get();
    let [mut alone, mut on_all, mut parsed, mut called, mut checked] = std::array::from_fn(|_| Load::default());
    for turn in 0..=TURNS {
        let texts: Vec<String> = (0..TURN_PAGES).map(|number| pages.html((turn + 1) << 40 | number)).collect();
        let seconds = (arguments.seconds / TURNS).max(1);
        let measured = [
            library(&index, &texts, 1)?,
            library(&index, &texts, cores)?,
            load(&parser, "/", seconds)?,
            load(&caller, "/", seconds)?,
            load(&service, "/v1/pages", seconds)?,
        ];
        // The first turn is there to fill caches.
        if turn > 0 {
            [&mut alone, &mut on_all, &mut parsed, &mut called, &mut checked]
                .into_iter()
                .zip(measured)
                .for_each(|(all, more)| all.add(more));
        }
    }
    drop((parser, caller));
    writeln!(out, "| what | CPU per page | pages per second | p50 | p99 |\n|---|---|---|---|---|")?;
    let row = |name: &str, load: &Load| -> String {
        let (p50, p99) = (load.percentile(50) / 1e3, load.percentile(99) / 1e3);
        format!("| {name} | {:.1} µs | {:.0} | {p50:.2} ms | {p99:.2} ms |", load.cpu_microseconds(), load.rate())
    };
    writeln!(out, "{}", row("a handler that only parses the body", &parsed))?;
    writeln!(out, "| the library: sketch and query, on one core | {:.1} µs | | | |", alone.cpu_microseconds())?;
    writeln!(out, "| the same on all cores at once | {:.1} µs | | | |", on_all.cpu_microseconds())?;
    writeln!(out, "{}", row("a handler that parses and calls the library", &called))?;
    writeln!(out, "{}", row("the service: check", &checked))?;
    let new = pages.bodies(ASKED..ASKED + INSERTED_A_SECOND * arguments.seconds);
    let inserted = service.load("/v1/pages?store=if_new", &new, arguments.connections, arguments.seconds)?;
    ensure!(inserted.requests <= new.len() as u64, "more pages were sent than there are");
    writeln!(out, "{}", row("the service: check and durable insert", &inserted))?;
    writeln!(
        out,
        "\ncheck: {:.2} × the handler with the library in it",
        checked.cpu_microseconds() / called.cpu_microseconds()
    )?;
    let sums = [("on all cores at once", &on_all), ("on one core with nothing beside it", &alone)];
    for (how, library) in sums {
        let times = checked.cpu_microseconds() / (parsed.cpu_microseconds() + library.cpu_microseconds());
        writeln!(out, "check: {times:.2} × the sum of the handler that parses and the library {how}")?;
    }
    writeln!(out, "p99: {:.1} × p50", checked.percentile(99) / checked.percentile(50))?;
    writeln!(out, "inserts: {:.0} % of the checks per second", 100.0 * inserted.rate() / checked.rate())?;
    out.flush()?;
    let minutes = arguments.soak / 60;
    for minute in 0..minutes {
        load(&service, "/v1/pages", 60)?;
        let (own, all) = memory_of(service.process.id())?;
        writeln!(out, "after {} min of checks: {own:.0} MiB of its own, {all:.0} MiB with mapped files", minute + 1)?;
        out.flush()?;
    }
    Ok(())
}

/// A server that does nothing but what nobody can do without: it parses bodies; with an index, it sketches the page and
/// asks the index.
#[tokio::main]
pub(crate) async fn parser(index: Option<PathBuf>) -> Result<()> {
    use axum::routing::{get, post};

    let index = index.map(|index| Index::open(&index, OpenOptions::default())).transpose()?;
    let index: &'static Option<Index> = Box::leak(Box::new(index));
    let handle = async move |body: axum::body::Bytes| match serde_json::from_slice::<BarePage<'_>>(&body) {
        Ok(page) => (axum::http::StatusCode::OK, format!("{}", answer(&page, index.as_ref()))),
        Err(error) => (axum::http::StatusCode::BAD_REQUEST, error.to_string()),
    };
    let router = axum::Router::new().route("/", post(handle)).route("/readyz", get(async || "ready"));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "http://{}", listener.local_addr()?)?;
    axum::serve(listener, router).await?;
    Ok(())
}

#[derive(serde::Deserialize)]
struct BarePage<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(borrow)]
    html: Cow<'a, str>,
}

fn answer(page: &BarePage<'_>, index: Option<&'static Index>) -> u64 {
    thread_local! {
        static CHECKER: RefCell<Option<Checker<'static>>> = const { RefCell::new(None) };
    }
    let Some(index) = index else { return (page.url.len() + page.html.len()) as u64 };
    CHECKER.with_borrow_mut(|checker| checker.get_or_insert_with(|| Checker::new(index)).check(&page.html))
}
