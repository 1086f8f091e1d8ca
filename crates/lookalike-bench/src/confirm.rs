//! What confirms a near fingerprint: 128 bytes of min-values of runs of five words, which a service stores with a page,
//! the same of the words and phrases that the fingerprint is made of, or 384 bits of a projection.
//!
//! All pairs of pages of a labelled set within a radius are candidates; how many of them are of one cluster, and how many
//! of those are kept when a sketch has its say?

use std::collections::HashMap;
use std::io::{self, Write};

use anyhow::Result;
use lookalike::index::pages;
use lookalike::method::{Projection, Simhash};
use lookalike::unstable::{MinBytes, distance, min_bytes, similarity};
use lookalike::{Body, Config, Markup, RawPage, Silent, Sketcher};
use lookalike_bench::labelled::{Labelled, install_guide, llvm_docs, same_core};

struct Page {
    cluster: String,
    fingerprint: u64,
    runs: MinBytes,
    words: MinBytes,
    projection: Vec<u32>,
}

/// A candidate, by what could confirm it.
struct Candidate {
    is_right: bool,
    runs: f64,
    words: f64,
    equal_bits: u32,
}

fn read(set: &Labelled) -> Result<Vec<Page>> {
    let config = Config::new(Simhash::default());
    let projection = Config::new(Projection::default());
    let mut projecting = Sketcher::new(&projection);
    let mut by_words = Sketcher::new(&config);
    let mut found = Vec::new();
    let inputs = [set.directory.display().to_string()];
    pages::for_each(&config, &inputs, 2, &set.directory.join("none"), &Silent, &mut |id, fingerprint, page| {
        let id = id.to_string();
        if let Some(cluster) = set.cluster_of.get(&id) {
            found.push((id, cluster.clone(), fingerprint, page.sketch));
        }
        Ok(())
    })?;
    let mut read = Vec::new();
    for (id, cluster, fingerprint, runs) in found {
        let bytes = std::fs::read(set.directory.join(&id))?;
        let page = RawPage::new(Body::Bytes(bytes.into()), Markup::Unknown);
        projecting.read(&page);
        by_words.read(&page);
        let words = min_bytes(by_words.sequence());
        read.push(Page { cluster, fingerprint, runs, words, projection: projecting.sketch().sketch.to_vec() });
    }
    Ok(read)
}

fn candidates(pages: &[Page], radius: u32) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (at, left) in pages.iter().enumerate() {
        for right in &pages[at + 1..] {
            if (left.fingerprint ^ right.fingerprint).count_ones() <= radius {
                let bits = u32::try_from(left.projection.len() * 32).unwrap_or(0);
                found.push(Candidate {
                    is_right: left.cluster == right.cluster,
                    runs: similarity(&left.runs, &right.runs),
                    words: similarity(&left.words, &right.words),
                    equal_bits: bits - distance(&left.projection, &right.projection),
                });
            }
        }
    }
    found
}

/// Measures and prints.
pub(crate) fn run() -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| set | radius | confirmed by | pairs | of one cluster | kept of those | found of all |\n|---|---|---|---|---|---|---|"
    )?;
    for set in [same_core()?, install_guide()?, llvm_docs()?].into_iter().flatten() {
        let pages = read(&set)?;
        let mut sizes: HashMap<&str, usize> = HashMap::new();
        pages.iter().for_each(|page| *sizes.entry(&page.cluster).or_default() += 1);
        let gold: usize = sizes.values().map(|size| size * (size - 1) / 2).sum();
        for radius in [3, 6, 10] {
            let all = candidates(&pages, radius);
            let right = all.iter().filter(|candidate| candidate.is_right).count();
            let mut row = |name: &str, accept: &dyn Fn(&Candidate) -> bool| {
                let accepted = all.iter().filter(|candidate| accept(candidate)).count();
                let correct = all.iter().filter(|candidate| accept(candidate) && candidate.is_right).count();
                let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
                let (precision, kept, recall) = (share(correct, accepted), share(correct, right), share(correct, gold));
                writeln!(
                    out,
                    "| {} | {radius} | {name} | {accepted} | {precision:.3} | {kept:.3} | {recall:.3} |",
                    set.name
                )
            };
            row("nothing", &|_| true)?;
            for threshold in [0.5, 0.6, 0.7] {
                row(&format!("runs of five words ≥ {threshold}"), &|candidate| candidate.runs >= threshold)?;
            }
            for threshold in [0.5, 0.7] {
                row(&format!("words and phrases ≥ {threshold}"), &|candidate| candidate.words >= threshold)?;
            }
            for bits in [340, 355, 372] {
                row(&format!("384 bits, {bits} equal"), &|candidate| candidate.equal_bits >= bits)?;
            }
        }
    }
    Ok(())
}
