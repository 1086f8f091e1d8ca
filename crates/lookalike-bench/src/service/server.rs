//! A server, the load on it, and what it used.

use std::cell::Cell;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Lines of a batch.
const BATCH_LINES: usize = 1000;

/// What a load did.
#[derive(Default)]
pub(super) struct Load {
    pub(super) requests: u64,
    pub(super) seconds: f64,
    /// Of the server.
    pub(super) cpu_seconds: f64,
    /// Sorted, in microseconds.
    pub(super) latencies: Vec<u32>,
}

impl Load {
    /// The latency that so many percent of the requests do not exceed, in milliseconds.
    pub(super) fn percentile(&self, percent: usize) -> f64 {
        let at = self.latencies.len().saturating_sub(1) * percent / 100;
        f64::from(self.latencies.get(at).copied().unwrap_or(0)) / 1e3
    }

    /// Of the server, for each request.
    pub(super) fn cpu_microseconds(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.requests as f64
    }

    pub(super) fn add(&mut self, more: Load) {
        self.requests += more.requests;
        self.seconds += more.seconds;
        self.cpu_seconds += more.cpu_seconds;
        self.latencies.extend(more.latencies);
        self.latencies.sort_unstable();
    }

    pub(super) fn rate(&self) -> f64 {
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

/// A server that says its address on standard output.
pub(super) struct Server {
    process: Child,
    address: String,
}

impl Server {
    pub(super) fn start(command: &mut Command) -> Result<Server> {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut address = String::new();
        BufReader::new(process.stdout.take().context("standard output")?).read_line(&mut address)?;
        let address = address.trim().trim_start_matches("http://").to_owned();
        ensure!(!address.is_empty(), "the server did not start: {command:?}");
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

    /// Anonymous memory of the process, and all of it that is in memory, in MiB.
    pub(super) fn memory(&self) -> Result<(f64, f64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
        };
        Ok((field("RssAnon:"), field("VmRSS:")))
    }

    /// Sends bodies over many connections for some time, one after the other and from the first again. One thread does it
    /// all, so that the server has to share its cores with little.
    pub(super) fn load(&self, path: &str, bodies: &[Vec<u8>], connections: usize, seconds: u64) -> Result<Load> {
        let until = Instant::now() + Duration::from_secs(seconds);
        self.send(path, bodies, connections, &|_| Instant::now() < until, &mut |_| ())
    }

    /// Sends every body once, and visits the answers.
    pub(super) fn send_all(
        &self,
        path: &str,
        bodies: &[Vec<u8>],
        connections: usize,
        mut visit: impl FnMut(&str),
    ) -> Result<Load> {
        self.send(path, bodies, connections, &|sent| sent < bodies.len(), &mut visit)
    }

    fn send(
        &self,
        path: &str,
        bodies: &[Vec<u8>],
        connections: usize,
        goes_on: &dyn Fn(usize) -> bool,
        visit: &mut dyn FnMut(&str),
    ) -> Result<Load> {
        let (cpu, start) = (cpu_of(self.process.id())?, Instant::now());
        let next = Cell::new(0);
        let visit = std::cell::RefCell::new(visit);
        let clients = (0..connections).map(|_| self.ask(path, bodies, &next, goes_on, &visit));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let mut latencies = runtime.block_on(futures_util::future::try_join_all(clients))?.concat();
        let seconds = start.elapsed().as_secs_f64();
        let cpu_seconds = cpu_of(self.process.id())? - cpu;
        latencies.sort_unstable();
        let requests = latencies.len() as u64;
        Ok(Load { requests, seconds, cpu_seconds, latencies })
    }

    /// What one connection does; gives the microseconds that answers took.
    async fn ask(
        &self,
        path: &str,
        bodies: &[Vec<u8>],
        next: &Cell<usize>,
        goes_on: &dyn Fn(usize) -> bool,
        visit: &std::cell::RefCell<&mut dyn FnMut(&str)>,
    ) -> Result<Vec<u32>> {
        let mut stream = tokio::net::TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (mut latencies, mut request, mut received) = (Vec::new(), Vec::new(), vec![0; 1 << 14]);
        while goes_on(next.get()) {
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
            let microseconds = u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX);
            let answer = String::from_utf8_lossy(&received[..filled]);
            ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            visit.borrow_mut()(&answer);
            latencies.push(microseconds);
        }
        Ok(latencies)
    }

    /// The load of `checked` while others store batches without pause; also the pages that these sent, and whether they
    /// had sent all they have before the end.
    pub(super) fn load_while_storing(
        &self,
        lines: &[Vec<u8>],
        clients: usize,
        load: impl FnOnce() -> Result<Load>,
    ) -> Result<(Load, f64)> {
        let batches: Vec<Vec<u8>> = lines.chunks_exact(BATCH_LINES).map(joined).collect();
        let (is_over, next) = (AtomicBool::new(false), AtomicUsize::new(0));
        let store = || -> Result<usize> {
            let stream = TcpStream::connect(&self.address)?;
            let mut answers = BufReader::new(stream.try_clone()?);
            let mut stored = 0;
            while !is_over.load(Ordering::Relaxed) {
                let batch = batches.get(next.fetch_add(1, Ordering::Relaxed)).context("all batches are sent")?;
                // Answers are read while the batch is sent.
                let sent = std::thread::scope(|scope| {
                    let sender = scope.spawn(|| send_batch(&stream, batch));
                    let read = read_batch(&mut answers);
                    sender.join().map_err(|_| anyhow!("a client panicked"))??;
                    read
                })?;
                ensure!(sent == BATCH_LINES, "{sent} answers to {BATCH_LINES} lines");
                stored += sent;
            }
            Ok(stored)
        };
        std::thread::scope(|scope| {
            let start = Instant::now();
            let clients: Vec<_> = (0..clients).map(|_| scope.spawn(store)).collect();
            let load = load();
            is_over.store(true, Ordering::Relaxed);
            let mut stored = 0;
            for client in clients {
                stored += client.join().map_err(|_| anyhow!("a client panicked"))??;
            }
            Ok((load?, stored as f64 / start.elapsed().as_secs_f64()))
        })
    }
}

fn joined(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.iter().chain(b"\n")).copied().collect()
}

fn send_batch(mut stream: &TcpStream, lines: &[u8]) -> Result<()> {
    write!(
        stream,
        "POST /v1/pages/batch?store=if_new HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n",
        lines.len()
    )?;
    Ok(stream.write_all(lines)?)
}

/// Reads the answers to a batch, which come in chunks; gives their number.
fn read_batch(stream: &mut impl BufRead) -> Result<usize> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    ensure!(line.starts_with("HTTP/1.1 200"), "{line}");
    while line.trim_end() != "" {
        line.clear();
        stream.read_line(&mut line)?;
    }
    let mut answers = 0;
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim_end(), 16).with_context(|| line.clone())?;
        let mut chunk = vec![0; length + 2];
        stream.read_exact(&mut chunk)?;
        if length == 0 {
            return Ok(answers);
        }
        ensure!(!chunk.windows(6).any(|bytes| bytes == b"\"type\""), "{}", String::from_utf8_lossy(&chunk));
        answers += chunk[..length].iter().filter(|&&byte| byte == b'\n').count();
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
