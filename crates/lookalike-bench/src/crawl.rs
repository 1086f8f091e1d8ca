//! Reading an archive and taking the text out of its pages, against FastWARC and Resiliparse, on the same
//! file and one processor; and ways to turn markup into text, side by side.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use lookalike::config::{Format, Scope};
use lookalike::unstable::{PageReader, PageText, TextOptions, decode, extract};
use lookalike::{Body, Corpus, Markup, RawPage, ReadConfig};
use lookalike_bench::labelled;

use crate::peers::{environment, measure};

/// Pages are repeated until the archive holds this much markup.
const ARCHIVE_BYTES: usize = 400 << 20;

/// What is done to each page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum What {
    /// Nothing but reading it.
    Bodies,
    /// Its text is taken out.
    Text,
}

/// The pages of the labelled sets that are here: manuals, and real stories put into real frames.
fn labelled_pages() -> Result<Vec<Vec<u8>>> {
    let sets = [labelled::same_core()?, labelled::install_guide()?, labelled::llvm_docs()?];
    let mut paths: Vec<PathBuf> = Vec::new();
    for set in sets.into_iter().flatten() {
        let mut folders = vec![set.directory];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "html") {
                    paths.push(path);
                }
            }
        }
    }
    ensure!(!paths.is_empty(), "the labelled data is not here; set LOOKALIKE_DATA");
    paths.sort();
    paths.iter().map(|path| fs::read(path).with_context(|| path.display().to_string())).collect()
}

/// Writes a page as a record of an archive, a gzip member.
pub(crate) fn write_record(out: &mut impl Write, number: usize, url: &str, page: &[u8]) -> io::Result<()> {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let fields = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{number:08}>\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-05-17T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n",
        head.len() + page.len()
    );
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    for piece in [fields.as_bytes(), head, page, b"\r\n\r\n"] {
        encoder.write_all(piece)?;
    }
    out.write_all(&encoder.finish()?)
}

/// Writes the archive.
fn write_archive(path: &Path) -> Result<()> {
    let pages = labelled_pages()?;
    let mut out = BufWriter::new(File::create(path)?);
    let mut written = 0;
    for (number, page) in pages.iter().cycle().enumerate() {
        if written >= ARCHIVE_BYTES {
            break;
        }
        written += page.len();
        write_record(&mut out, number, &format!("http://a.example/{number}"), page)?;
    }
    Ok(out.flush()?)
}

/// One job of ours, in a process of its own.
pub(crate) fn read(what: What, path: &Path) -> Result<()> {
    let name = path.to_string_lossy();
    let mut config = ReadConfig::default();
    config.format = Some(Format::WARC);
    let corpus = Corpus::open(&[name], &config)?;
    let mut bytes = 0usize;
    corpus.scan().for_each(
        || PageReader::new(TextOptions::default()),
        |reader, page| {
            Ok(Some(match (what, &page.body) {
                (What::Text, _) => reader.text(&page).len(),
                (What::Bodies, Body::Bytes(body)) => body.len(),
                (What::Bodies, Body::Text(body)) => body.len(),
            }))
        },
        |count| {
            bytes += count;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    writeln!(io::stdout(), "{bytes}")?;
    Ok(())
}

/// Prints both tables.
pub(crate) fn run(work: &Path) -> Result<()> {
    fs::create_dir_all(work)?;
    let archive = work.join("pages.warc.gz");
    if !archive.exists() {
        let unfinished = archive.with_extension("part");
        write_archive(&unfinished)?;
        fs::rename(&unfinished, &archive)?;
    }
    archives(work, &archive)?;
    markup()
}

fn archives(work: &Path, archive: &Path) -> Result<()> {
    let engine = std::env::current_exe()?;
    let (engine, file) = (engine.to_string_lossy(), archive.to_string_lossy());
    let python = environment(work)?;
    let script = work.join("crawl.py");
    fs::write(&script, include_str!("../peers/crawl.py"))?;
    let script = script.to_string_lossy();
    let megabytes = ARCHIVE_BYTES as f64 / 1e6;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "one archive, {megabytes:.0} MB of HTML in {:.0} MB, one processor\n",
        fs::metadata(archive)?.len() as f64 / 1e6
    )?;
    writeln!(out, "| job | tool | MB of HTML per CPU-second | ratio | peak memory |\n|---|---|---|---|---|")?;
    for (job, what, peer) in
        [("bodies alone", "bodies", "FastWARC"), ("text", "text", "FastWARC and Resiliparse extract_plain_text")]
    {
        let ours = ["taskset", "-c", "0", engine.as_ref(), "crawl-read", what, file.as_ref()];
        let theirs = ["taskset", "-c", "0", python.as_str(), script.as_ref(), what, file.as_ref()];
        let ours = measure("python3", "lookalike", &ours, archive, megabytes)?;
        let theirs = measure("python3", peer, &theirs, archive, megabytes)?;
        for row in [&ours, &theirs] {
            writeln!(
                out,
                "| {job} | {} | {:.0} | {:.2} | {:.0} MB |",
                row.name,
                row.megabytes / row.cpu,
                theirs.cpu / row.cpu,
                row.peak_kib * 1024.0 / 1e6
            )?;
        }
    }
    Ok(())
}

/// Times a way to go through all pages, three times; the best counts. Megabytes per second.
fn speed(pages: &[String], mut run: impl FnMut(&str)) -> f64 {
    let bytes: usize = pages.iter().map(String::len).sum();
    let best = (0..3)
        .map(|_| {
            let started = Instant::now();
            pages.iter().for_each(|page| run(page));
            started.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    bytes as f64 / 1e6 / best
}

fn markup() -> Result<()> {
    let pages: Vec<String> = labelled_pages()?.iter().map(|bytes| decode(bytes, None).text.into_owned()).collect();
    let mut out = io::stdout().lock();
    writeln!(out, "\n{} pages, one thread\n\n| markup → | MB/s |\n|---|---|", pages.len())?;
    let mut page_text = PageText::default();
    let ours = speed(&pages, |page| {
        extract(page, None, &mut page_text);
        black_box(page_text.text.len());
    });
    let html5gum = speed(&pages, |page| {
        let mut text = Vec::new();
        for token in html5gum::Tokenizer::new(page).flatten() {
            if let html5gum::Token::String(piece) = token {
                text.extend_from_slice(&piece);
            }
        }
        black_box(text.len());
    });
    let lol_html = speed(&pages, |page| {
        let mut text = String::new();
        let handler = lol_html::text!("*", |chunk| {
            text.push_str(chunk.as_str());
            Ok(())
        });
        let settings = lol_html::RewriteStrSettings::new().append_element_content_handler(handler);
        let _ = black_box(lol_html::rewrite_str(page, settings));
        black_box(text.len());
    });
    for (name, speed) in [
        ("text, ours (entities decoded, blocks, images, title)", ours),
        ("text, html5gum with its default emitter", html5gum),
        ("text, lol_html with a text handler", lol_html),
    ] {
        writeln!(out, "| {name} | {speed:.0} |")?;
    }
    let tokens = |scope: Scope| {
        let mut reader = PageReader::new(TextOptions { scope, ..TextOptions::default() });
        speed(&pages, |page| {
            let page = RawPage::new(Body::Text(page.into()), Markup::Html);
            black_box(reader.read(&page).tokens.len());
        })
    };
    let (page, core, main) = (tokens(Scope::Page), tokens(Scope::Core), tokens(Scope::Main));
    writeln!(out, "| tokens of the page | {page:.0} |")?;
    writeln!(out, "| tokens of its core | {core:.0} ({:.2} × the time of the page) |", page / core)?;
    writeln!(out, "| tokens of its main content | {main:.0} |")?;
    Ok(())
}
