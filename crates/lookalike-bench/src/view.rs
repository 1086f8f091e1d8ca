//! The workbench on a large result: how long the server takes for each view.
//!
//! One run: pages are generated, `lookalike dedup` groups them, `lookalike view` shows the result; clusters are tagged; then
//! each view is asked for many times, with other numbers and words each time.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use lookalike_bench::corpus::Random;

#[derive(Debug, Args)]
pub(crate) struct ViewArguments {
    /// Pages
    #[arg(long, default_value_t = 1_000_000)]
    pages: usize,
    /// Clusters of two pages or more
    #[arg(long, default_value_t = 100_000)]
    clusters: usize,
    /// Requests for each view
    #[arg(long, default_value_t = 200)]
    requests: usize,
    /// The command line that is measured; it must have been built with the feature `view`
    #[arg(long, default_value = "target/release/lookalike")]
    lookalike: PathBuf,
    /// Where the pages and the result go
    #[arg(long, default_value = "target/bench/view")]
    work: PathBuf,
}

/// Words of a page.
const WORDS: usize = 90;
const VOCABULARY: usize = 60_000;
/// Clusters that are tagged before the measurement.
const TAGGED: usize = 3_000;

/// A word by its number; small numbers are frequent.
fn word(random: &mut Random) -> String {
    // About as words are in texts: the logarithm of the rank is spread evenly.
    let share = random.below(1 << 20) as f64 / f64::from(1 << 20);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a rank below the vocabulary's size
    let rank = (VOCABULARY as f64).powf(share) as usize;
    format!("w{rank}")
}

/// Writes pages of which `clusters` groups are near-duplicates; half of all pages are in groups.
fn generate(path: &Path, pages: usize, clusters: usize) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut random = Random(7);
    let each = (pages / 2 / clusters.max(1)).max(2);
    let mut number = 0;
    for group in 0.. {
        if number >= pages {
            break;
        }
        let text: Vec<String> = (0..WORDS).map(|_| word(&mut random)).collect();
        let copies = if group < clusters { each } else { 1 };
        for copy in 0..copies.min(pages - number) {
            let mut own = text.clone();
            if copy > 0 {
                let at = random.below(WORDS);
                own[at] = format!("changed{number}");
            }
            let title = own[..6].join(" ");
            let site = random.below(5_000);
            let record = serde_json::json!({
                "id": format!("page-{number}"), "url": format!("https://site{site}.example/{number}"),
                "title": title, "text": own.join(" "),
            });
            writeln!(out, "{record}")?;
            number += 1;
        }
    }
    Ok(out.flush()?)
}

/// A running workbench.
struct Workbench {
    child: Child,
    address: String,
}

impl Drop for Workbench {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Workbench {
    fn start(program: &Path, result: &Path) -> Result<Workbench> {
        let mut child = Command::new(program)
            .args(["view", "--no-open", "--listen", "127.0.0.1:0"])
            .arg(result)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{}: cannot be started", program.display()))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("its output is piped")?).read_line(&mut line)?;
        let address = line.trim().trim_start_matches("http://").to_owned();
        ensure!(!address.is_empty(), "lookalike view did not start; was it built with --features view?");
        Ok(Workbench { child, address })
    }

    /// Sends a request; the time until all of the answer is there, and the answer.
    fn ask(&self, head: &str, body: &str) -> Result<(f64, String)> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        let start = Instant::now();
        write!(
            stream,
            "{head} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nX-Lookalike: 1\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let time = start.elapsed().as_secs_f64() * 1000.0;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        ensure!(answer.starts_with("HTTP/1.1 200"), "{head}: {}", answer.lines().next().unwrap_or_default());
        Ok((time, answer))
    }

    fn get(&self, path: &str) -> Result<(f64, String)> {
        self.ask(&format!("GET {path}"), "")
    }
}

pub(crate) fn run(arguments: &ViewArguments) -> Result<()> {
    fs::create_dir_all(&arguments.work)?;
    let mut out = std::io::stdout();
    let (pages, result) = (arguments.work.join("pages.jsonl"), arguments.work.join("result"));
    writeln!(out, "generating {} pages", arguments.pages)?;
    generate(&pages, arguments.pages, arguments.clusters)?;
    let start = Instant::now();
    let ran = Command::new(&arguments.lookalike)
        .args(["dedup", "--no-kept", "--replace", "--quiet", "--output"])
        .arg(&result)
        .arg(&pages)
        .status()?;
    ensure!(ran.success(), "lookalike dedup failed");
    writeln!(out, "dedup: {:.1} s", start.elapsed().as_secs_f64())?;
    let _ = fs::remove_dir_all(result.join(".lookalike-workbench"));
    let _ = fs::remove_file(result.join("workbench.sqlite"));

    let start = Instant::now();
    let bench = Workbench::start(&arguments.lookalike, &result)?;
    writeln!(out, "prepared for browsing: {:.1} s", start.elapsed().as_secs_f64())?;
    while bench.get("/clusters")?.1.contains("Texts are being read") {
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    writeln!(out, "texts searchable: {:.1} s", start.elapsed().as_secs_f64())?;
    let (_, list) = bench.get("/clusters?sort=site")?;
    let count = list.split(" of ").nth(1).and_then(|rest| rest.split('<').next()).unwrap_or_default();
    writeln!(out, "{count}")?;

    let mut random = Random(11);
    // Numbers of clusters, from pages of the list here and there.
    let mut clusters: Vec<String> = Vec::new();
    for _ in 0..60 {
        let page = 1 + random.below((arguments.clusters / 50).max(1));
        let (_, list) = bench.get(&format!("/clusters?sort=weakest&page={page}"))?;
        let rows = list.split("data-cluster=\"").skip(1).filter_map(|rest| rest.split('"').next());
        clusters.extend(rows.map(str::to_owned));
    }
    ensure!(!clusters.is_empty(), "there are no clusters");
    for (number, cluster) in clusters.iter().take(TAGGED).enumerate() {
        let body = format!("{{\"tag\": {}, \"on\": true, \"cluster\": {cluster}}}", 1 + number % 3);
        bench.ask("POST /api/tag", &body)?;
    }
    type Path<'a> = Box<dyn FnMut(&mut Random) -> String + 'a>;
    let cluster = |random: &mut Random| clusters[random.below(clusters.len())].clone();
    let page = |random: &mut Random| 1 + random.below((arguments.clusters / 50).max(1));
    let views: Vec<(&str, Path<'_>)> = vec![
        ("overview", Box::new(|_| "/".to_owned())),
        ("list, largest first", Box::new(|random| format!("/clusters?page={}", page(random)))),
        ("list, weakest link first", Box::new(|random| format!("/clusters?sort=weakest&page={}", page(random)))),
        ("list of a site", Box::new(|random| format!("/clusters?site=site{}.example&sort=sites", random.below(5_000)))),
        ("list of a tag", Box::new(|random| format!("/clusters?tag={}", 1 + random.below(3)))),
        ("list, not tagged by me", Box::new(|random| format!("/clusters?tag=todo&page={}", page(random)))),
        ("list of a kind and size", Box::new(|random| format!("/clusters?kind=near&least=3&page={}", page(random)))),
        ("search: a word of most texts", Box::new(|random| format!("/clusters?q=w{}", 1 + random.below(3)))),
        ("search: any word", Box::new(|random| format!("/clusters?q={}", word(random)))),
        ("search: two words, sorted", Box::new(|random| format!("/clusters?q=w2+{}&sort=weakest", word(random)))),
        ("search and a tag", Box::new(|random| format!("/clusters?q={}&tag=todo&sort=similarity", word(random)))),
        ("cluster", Box::new(|random| format!("/clusters/{}", cluster(random)))),
        ("cluster within a search", Box::new(|random| format!("/clusters/{}?q=w1&sort=weakest", cluster(random)))),
        ("cluster, not tagged by me", Box::new(|random| format!("/clusters/{}?tag=todo", cluster(random)))),
        ("tags", Box::new(|_| "/tags".to_owned())),
    ];
    writeln!(out, "\n| view | p50 ms | p95 ms | max ms |\n|---|---|---|---|")?;
    for (name, mut path) in views {
        let mut times = Vec::new();
        for _ in 0..arguments.requests {
            times.push(bench.get(&path(&mut random))?.0);
        }
        times.sort_by(f64::total_cmp);
        let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
        writeln!(out, "| {name} | {:.1} | {:.1} | {:.1} |", at(50), at(95), times[times.len() - 1])?;
    }
    Ok(())
}
