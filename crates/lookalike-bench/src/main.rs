//! Benchmarks, each one command: `cargo run --release -p lookalike-bench -- peers`.

mod bloom;
mod budget;
mod confirm;
mod crawl;
mod evaluation;
mod gaoya_peer;
mod hamming;
mod html;
mod kernels;
mod labelled_tables;
mod languages;
mod peers;
mod recognised_tables;
mod refine;
mod scale_dedup;
mod service;
mod sketching;
mod threads;
mod view;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use lookalike_bench::corpus::{Corpus, CorpusPlan};

/// As in the program that is measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures lookalike, and compares it with others.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the generated corpus as JSON lines
    Generate {
        /// The file
        #[arg(long)]
        output: PathBuf,
        /// Documents in it
        #[arg(long, default_value_t = 100_000)]
        documents: usize,
    },
    /// The whole job against gaoya and rensa, on the same file, in CPU-seconds
    Peers {
        /// Documents in the generated file
        #[arg(long, default_value_t = 100_000)]
        documents: usize,
        /// Where the corpus, the results and the peers' virtual environment go
        #[arg(long, default_value = "target/bench")]
        work: PathBuf,
        /// Leave the peers out
        #[arg(long)]
        alone: bool,
        /// Draw the speeds into this SVG file
        #[arg(long)]
        plot: Option<PathBuf>,
    },
    /// Where the CPU time of the main job goes, beside floors that are measured in the same run
    Budget {
        /// Documents in the generated file
        #[arg(long, default_value_t = 100_000)]
        documents: usize,
        /// Where the corpus and the results go
        #[arg(long, default_value = "target/bench")]
        work: PathBuf,
    },
    /// The main job on one core and on two, stage by stage
    Threads {
        /// Documents in the generated file
        #[arg(long, default_value_t = 100_000)]
        documents: usize,
        /// Where the inputs and the results go
        #[arg(long, default_value = "target/bench")]
        work: PathBuf,
    },
    /// The job of `peers` with gaoya
    #[command(hide = true)]
    PeersGaoya {
        /// The generated file
        corpus: PathBuf,
        /// Where the numbers of the documents with a match go
        found: PathBuf,
    },
    /// Reading archives and taking text out of pages, against FastWARC and Resiliparse
    Crawl {
        /// Where the archive and the peers' virtual environment go
        #[arg(long, default_value = "target/bench")]
        work: PathBuf,
    },
    /// The main job on real HTML: documentation packages of Debian, one page per file and as one archive
    Html {
        /// Where the packages and the results go
        #[arg(long, default_value = "target/bench")]
        work: PathBuf,
        /// How many threads it has
        #[arg(long, default_value_t = 1)]
        threads: usize,
    },
    /// One job of `crawl`
    #[command(hide = true)]
    CrawlRead {
        /// What is done to each page
        what: crawl::What,
        /// The archive
        file: PathBuf,
    },
    /// What a service recognises of labelled pages that are sent to it one by one
    Recognised {
        /// A folder that `scripts/make-framed-docs` made [default: the labelled sets that are here]
        directory: Option<PathBuf>,
        /// List the pages that are wrong or missed
        #[arg(long)]
        mistakes: bool,
    },
    /// The index of fingerprints: size, build, queries, batches, joins, skew; against FAISS
    Hamming(hamming::HammingArguments),
    /// An index of many rows, built in bounded memory and asked once
    Scale {
        /// Random rows
        #[arg(long, default_value_t = 500_000_000)]
        rows: u64,
        /// What building may use, in GiB
        #[arg(long, default_value_t = 8)]
        memory: u64,
        /// Where the index goes
        #[arg(long, default_value = "target/bench")]
        work: PathBuf,
    },
    /// The main job on growing corpora that are made in the process: CPU time per page, memory, disk
    ScaleDedup(scale_dedup::ScaleArguments),
    /// Every method on the labelled sets, into docs/evaluation.md
    Evaluation {
        /// Where the reports go
        #[arg(long, default_value = "target/bench/evaluation")]
        work: PathBuf,
    },
    /// Chunks and Bloom filters: the cost tables of Jain et al. (2005) on this machine, as Markdown
    Bloom,
    /// Folding a list of search results, against datasketch
    Refine {
        /// Where the peer's virtual environment goes
        #[arg(long, default_value = "target/bench")]
        work: PathBuf,
    },
    /// Folding labelled lists of search results: precision, recall and F1 by whole texts and by snippets
    ResultLists {
        /// Also the half that is only for final figures
        #[arg(long)]
        held_out: bool,
        /// List the pairs of the tuning half that are wrong or missed
        #[arg(long)]
        mistakes: bool,
        /// The folder that `scripts/make-result-lists` made [default: the one of the repository]
        directory: Option<PathBuf>,
    },
    /// The workbench on a large result: time of each view
    View(view::ViewArguments),
    /// What confirms that pages with near fingerprints are near-duplicates, on labelled data
    Confirm,
    /// The kernels on every vector unit of this machine
    Kernels {
        /// One of them, by its number, so often, and nothing is printed: for counting instructions
        #[arg(long, requires = "unit")]
        only: Option<usize>,
        /// On this vector unit; ends with 3 if there is none
        #[arg(long)]
        unit: Option<String>,
        /// How often
        #[arg(long, default_value_t = 200)]
        calls: usize,
    },
    /// Every method and option on labelled data, as tables
    Labelled,
    /// Whole pages, their cores and their main contents on labelled data
    Scopes,
    /// Frames: parts of a page on labelled data, at defaults, beside Resiliparse and trafilatura
    Frames,
    /// Henzinger's algorithms within a site and between sites, with frames and without them
    Sites,
    /// The default on documentation made by `scripts/make-framed-docs`: precision, recall, pages wrongly dropped
    Made {
        /// The folder that was made
        directory: PathBuf,
    },
    /// Pages in many languages, each against the text of its main element
    Languages {
        /// A folder with LANGUAGE/html/NAME.html and LANGUAGE/text/NAME.txt
        directory: PathBuf,
    },
    /// The service under load: CPU of a check, latencies, durable inserts, memory
    Service(service::ServiceArguments),
    /// A server that only parses, for `service`
    #[command(hide = true)]
    ServiceParser {
        /// What the pages of the collection are found by
        #[arg(long)]
        method: service::Method,
        /// The collection that is asked
        directory: Option<PathBuf>,
    },
    /// Sketching alone, one thread, as a multiple of mixing each token's hash once more
    Sketching,
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Generate { output, documents } => generate(&output, documents),
        Command::Crawl { work } => crawl::run(&work),
        Command::Html { work, threads } => html::run(&work, threads),
        Command::CrawlRead { what, file } => crawl::read(what, &file),
        Command::Recognised { directory: None, mistakes } => recognised_tables::print(mistakes),
        Command::Recognised { directory: Some(directory), mistakes } => {
            recognised_tables::print_made(&directory, mistakes)
        }
        Command::Hamming(arguments) => hamming::run(&arguments),
        Command::Scale { rows, memory, work } => hamming::scale(rows, memory << 30, &work),
        Command::ScaleDedup(arguments) => scale_dedup::run(&arguments),
        Command::Evaluation { work } => evaluation::run(&work),
        Command::Refine { work } => refine::run(&work),
        Command::ResultLists { held_out, mistakes, directory } => {
            refine::on_lists(directory.as_deref(), held_out, mistakes)
        }
        Command::Bloom => bloom::run(),
        Command::View(arguments) => view::run(&arguments),
        Command::Confirm => confirm::run(),
        Command::Kernels { only: Some(number), unit: Some(unit), calls } => kernels::repeat(number, &unit, calls),
        Command::Kernels { .. } => Ok(kernels::run()?),
        Command::Labelled => labelled_tables::run(),
        Command::Scopes => labelled_tables::scopes(),
        Command::Frames => labelled_tables::frames(),
        Command::Sites => labelled_tables::sites(),
        Command::Made { directory } => labelled_tables::made(&directory),
        Command::Languages { directory } => languages::run(&directory),
        Command::Service(arguments) => service::run(&arguments),
        Command::ServiceParser { method, directory } => service::parser(directory, method),
        Command::Sketching => Ok(sketching::run()?),
        Command::Peers { documents, work, alone, plot } => peers::run(documents, &work, alone, plot.as_deref()),
        Command::Threads { documents, work } => threads::run(documents, &work),
        Command::Budget { documents, work } => budget::run(documents, &work),
        Command::PeersGaoya { corpus, found } => gaoya_peer::run(&corpus, &found),
    }
}

/// The generated corpus of so many documents in `work`, which is made if it is not there.
pub(crate) fn generated(work: &std::path::Path, documents: usize) -> Result<PathBuf> {
    std::fs::create_dir_all(work)?;
    let corpus = work.join(format!("corpus-{documents}.jsonl"));
    if !corpus.exists() {
        let unfinished = corpus.with_extension("part");
        generate(&unfinished, documents)?;
        std::fs::rename(&unfinished, &corpus)?;
    }
    Ok(corpus)
}

fn generate(path: &std::path::Path, documents: usize) -> Result<()> {
    let file = File::create(path).with_context(|| path.display().to_string())?;
    let mut out = BufWriter::new(file);
    Corpus::new(CorpusPlan { documents, ..CorpusPlan::default() }).write(&mut out)?;
    out.flush().with_context(|| path.display().to_string())
}
