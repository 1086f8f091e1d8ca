//! The main job on real HTML: the documentation that Debian packages, fetched with apt-get, a page a file; and the same
//! pages as one compressed archive.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::budget::{median, stages};
use crate::crawl::write_record;

/// Packages with large manuals, made by different generators.
const PACKAGES: [&str; 14] = [
    "cmake-doc",
    "erlang-doc",
    "ghc-doc",
    "git-doc",
    "libboost1.74-doc",
    "libgtk-4-doc",
    "libstdc++-12-doc",
    "llvm-14-doc",
    "openjdk-17-doc",
    "postgresql-doc-15",
    "python-pandas-doc",
    "python3.11-doc",
    "qtbase5-doc-html",
    "rust-doc",
];
/// How often each job is run; the median counts.
const ROUNDS: usize = 3;

/// Prints a table of both ways to read the pages.
pub(crate) fn run(work: &Path, threads: usize) -> Result<()> {
    fs::create_dir_all(work)?;
    let folder = work.join("debian-docs");
    if !folder.exists() {
        let unfinished = work.join("debian-docs.part");
        fetch(&unfinished)?;
        fs::rename(&unfinished, &folder)?;
    }
    let pages = pages(&folder)?;
    let archive = work.join("debian-docs.warc.gz");
    if !archive.exists() {
        let unfinished = archive.with_extension("part");
        write_archive(&pages, &folder, &unfinished)?;
        fs::rename(&unfinished, &archive)?;
    }
    let mut bytes = 0;
    for page in &pages {
        bytes += fs::metadata(page)?.len();
    }
    let megabytes = bytes as f64 / 1e6;
    let engine = std::env::current_exe()?.with_file_name("lookalike");
    ensure!(engine.exists(), "{} is not built: cargo build --release", engine.display());

    let inputs = [("a page a file", &folder), ("one archive, a gzip member a page", &archive)];
    let mut times = vec![Vec::new(); inputs.len()];
    for _ in 0..ROUNDS {
        for ((_, input), times) in inputs.iter().zip(&mut times) {
            times.push(stages(&engine, input, &work.join("html"), &["--no-kept"], threads)?);
        }
    }
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{} pages, {megabytes:.0} MB of HTML, threads: {threads}, medians of {ROUNDS} rounds\n",
        pages.len()
    )?;
    let names: Vec<&str> = times[0][0].iter().map(|(name, _)| name.as_str()).collect();
    writeln!(out, "| input | MB per CPU-second | {} |", names.join(" | "))?;
    writeln!(out, "|---|---|{}", "---|".repeat(names.len()))?;
    for ((name, _), rounds) in inputs.iter().zip(&times) {
        let column = |at: usize| median(&mut rounds.iter().map(|stages| stages[at].1).collect::<Vec<_>>());
        let seconds: Vec<f64> = (0..names.len()).map(column).collect();
        let cells: Vec<String> = seconds.iter().map(|seconds| format!("{seconds:.2}")).collect();
        writeln!(out, "| {name} | {:.0} | {} |", megabytes / seconds[names.len() - 1], cells.join(" | "))?;
    }
    Ok(())
}

/// Fetches the packages into `folder`, and keeps their pages alone.
fn fetch(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    for package in PACKAGES {
        let fetched = Command::new("apt-get").args(["download", "--quiet", package]).current_dir(folder).status();
        // A list of packages that is out of date misses some of them; the table says how much there was.
        if !fetched.context("apt-get is not here")?.success() {
            writeln!(io::stderr(), "{package} cannot be fetched; left out")?;
        }
    }
    for entry in fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()? {
        let path = entry.path();
        let package = path.file_stem().unwrap_or_default().to_string_lossy();
        let place = folder.join(package.split('_').next().unwrap_or_default());
        let unpacked = Command::new("dpkg-deb").arg("-x").arg(&path).arg(&place).stdout(Stdio::null()).status()?;
        ensure!(unpacked.success(), "dpkg-deb cannot unpack {}", path.display());
        fs::remove_file(&path)?;
    }
    for file in files(folder)? {
        if !is_page(&file) {
            fs::remove_file(file)?;
        }
    }
    Ok(())
}

fn is_page(path: &Path) -> bool {
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    !path.is_symlink() && ["html", "htm", "xhtml"].contains(&ending)
}

/// The pages below a folder, by name.
fn pages(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut pages: Vec<PathBuf> = files(folder)?.into_iter().filter(|path| is_page(path)).collect();
    ensure!(!pages.is_empty(), "no package could be fetched; run apt-get update");
    pages.sort();
    Ok(pages)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() { folders.push(entry.path()) } else { files.push(entry.path()) }
        }
    }
    Ok(files)
}

/// The same pages as an archive: a host per package.
fn write_archive(pages: &[PathBuf], folder: &Path, path: &Path) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for (number, page) in pages.iter().enumerate() {
        let url = format!("http://{}", page.strip_prefix(folder)?.to_string_lossy());
        write_record(&mut out, number, &url, &fs::read(page)?)?;
    }
    Ok(out.flush()?)
}
