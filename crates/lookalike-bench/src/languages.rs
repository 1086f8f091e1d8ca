//! Pages in many languages, each beside the text of its main element: does a page match its own text?
//!
//! In: a folder with a folder for each language, which has `html/NAME.html` and `text/NAME.txt`. Out: for each language how
//! many pages are near-duplicates of their own text, at defaults.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use lookalike::Config;
use lookalike_bench::labelled::found_pairs;

/// Prints a row for each language.
pub(crate) fn run(directory: &Path) -> Result<()> {
    let mut out = io::stdout().lock();
    let mut languages: Vec<_> = fs::read_dir(directory)
        .with_context(|| directory.display().to_string())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("html").is_dir() && path.join("text").is_dir())
        .collect();
    languages.sort();
    ensure!(!languages.is_empty(), "{}: has no LANGUAGE/html and LANGUAGE/text", directory.display());
    writeln!(out, "| language | pages | match their own text | share |\n|---|---|---|---|")?;
    for path in languages {
        let found = found_pairs(&path, &Config::default())?;
        let name = |id: &str, folder: &str| {
            let name = id.strip_prefix(folder)?.strip_prefix('/')?;
            Some(name.rsplit_once('.').map_or(name, |(name, _)| name).to_owned())
        };
        let is_own = |html: &str, text: &str| name(html, "html").is_some_and(|page| name(text, "text") == Some(page));
        let matched =
            found.pairs.iter().filter(|pair| is_own(&pair.left, &pair.right) || is_own(&pair.right, &pair.left));
        let (matched, pages) = (matched.count(), fs::read_dir(path.join("html"))?.count());
        let language = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        writeln!(out, "| {language} | {pages} | {matched} | {:.3} |", matched as f64 / pages.max(1) as f64)?;
        out.flush()?;
    }
    Ok(())
}
