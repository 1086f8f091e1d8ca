//! Folding a list of results, against MinHash of datasketch in all pairs.
//!
//! The same 80 results of 10 kB in one file for both; each reads the file and times what comes behind that.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use lookalike::method::Bloom;
use lookalike::refine::{EvidenceSet, StoredSketch};
use lookalike::{Body, Markup, Method, RawPage, Refiner};
use lookalike_bench::corpus::Random;
use lookalike_bench::result_lists::{self, Half, Shown};

use crate::peers::environment;

const RESULTS: usize = 80;
/// Bytes of a result.
pub(crate) const BYTES: usize = 10_000;
const ROUNDS: usize = 20;

/// Results of which one in `every` is a near-duplicate of the one before it.
pub(crate) fn results(count: usize, every: usize) -> Vec<String> {
    let mut random = Random(5);
    let mut texts: Vec<String> = Vec::new();
    for number in 0..count {
        let mut text = String::new();
        if number % every == every - 1 {
            text.clone_from(&texts[number - 1]);
            let at = text.char_indices().nth(BYTES / 2).map_or(0, |place| place.0);
            text.insert_str(at, " and this is new here, ");
        }
        while text.len() < BYTES {
            let word: String = (0..2 + random.below(8))
                .map(|_| char::from(b'a' + u8::try_from(random.below(26)).unwrap_or(0)))
                .collect();
            text.push_str(&word);
            text.push(if random.below(12) == 0 { '\n' } else { ' ' });
        }
        texts.push(text);
    }
    texts
}

/// Measures and prints.
///
/// # Errors
/// When the peer cannot be installed or run.
pub fn run(work: &Path) -> Result<()> {
    fs::create_dir_all(work)?;
    let texts = results(RESULTS, 4);
    let file = work.join("results.json");
    fs::write(&file, serde_json::to_string(&texts)?)?;
    let refiner = Refiner::new(Refiner::defaults(Bloom::default()))?;
    let sketch = || {
        let mut sketcher = refiner.sketcher();
        texts
            .iter()
            .map(|text| {
                let page = RawPage::new(Body::Text(Cow::Borrowed(text)), Markup::Text);
                Some(refiner.sketch(&page, &mut sketcher))
            })
            .collect::<Vec<Option<StoredSketch>>>()
    };
    let best = |work: &mut dyn FnMut()| {
        let mut least = f64::INFINITY;
        for _ in 0..ROUNDS {
            let started = Instant::now();
            work();
            least = least.min(started.elapsed().as_secs_f64());
        }
        least
    };
    let mut groups = 0;
    let whole = best(&mut || groups = refiner.fold(&sketch()).groups.len());
    let stored = sketch();
    let folding = best(&mut || groups = refiner.fold(&stored).groups.len());
    let carried: Vec<String> = stored.iter().flatten().map(|sketch| sketch.to_text(refiner.config())).collect();
    let parsing = best(&mut || {
        let read: Vec<Option<StoredSketch>> = carried.iter().map(|text| refiner.read_sketch(text).ok()).collect();
        groups = refiner.fold(&read).groups.len();
    });
    ensure!(groups == RESULTS - RESULTS / 4, "{groups} groups instead of {}", RESULTS - RESULTS / 4);

    let peer = peer(work, &file)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{RESULTS} results of {BYTES} bytes, {groups} groups; one thread, the best of {ROUNDS} rounds")?;
    writeln!(out)?;
    writeln!(out, "| job | ms | |")?;
    writeln!(out, "|---|---|---|")?;
    writeln!(out, "| refine, nothing precomputed | {:.2} | 1/{:.0} of datasketch |", whole * 1e3, peer / whole)?;
    writeln!(out, "| refine, sketches in memory | {:.3} | |", folding * 1e3)?;
    writeln!(out, "| refine, sketches as text in the results | {:.3} | |", parsing * 1e3)?;
    writeln!(out, "| datasketch MinHash(128), all pairs | {:.1} | |", peer * 1e3)?;
    Ok(())
}

/// Folds the labelled lists and prints a table.
///
/// # Errors
/// When the lists cannot be read.
pub fn on_lists(directory: Option<&Path>, held_out: bool, mistakes: bool) -> Result<()> {
    let lists = result_lists::read(&directory.map_or_else(result_lists::folder, Path::to_path_buf))?;
    let mut out = io::stdout().lock();
    let halves = if held_out {
        &[("tuning", Half::Tuning), ("held out", Half::HeldOut)][..]
    } else {
        &[("tuning", Half::Tuning)]
    };
    writeln!(out, "| lists | shown | method | evidence | precision | recall | F1 |")?;
    writeln!(out, "|---|---|---|---|---|---|---|")?;
    for &(half_name, half) in halves {
        for (shown_name, shown) in [("whole texts", Shown::WholeText), ("snippets", Shown::Snippet)] {
            for method in ["bloom", "minhash", "spotsigs"] {
                for evidence in [EvidenceSet::TEXT, EvidenceSet::ALL] {
                    let refiner = Refiner::new(Refiner::defaults(Method::named(method)?))?.with_evidence(evidence);
                    let counts = result_lists::count(&lists, half, &refiner, shown);
                    let (precision, recall, f1) = (counts.precision(), counts.recall(), counts.f1());
                    let evidence = evidence.to_string().replace(',', ", ");
                    writeln!(
                        out,
                        "| {half_name} | {shown_name} | {method} | {evidence} | {precision:.3} | {recall:.3} | {f1:.3} |"
                    )?;
                }
            }
        }
    }
    if mistakes {
        let refiner = Refiner::new(Refiner::defaults(Bloom::default()))?;
        for (name, shown) in [("whole texts", Shown::WholeText), ("snippets", Shown::Snippet)] {
            for list in lists.iter().filter(|list| list.half == Half::Tuning) {
                for mistake in list.mistakes(&list.fold(&refiner, shown)) {
                    writeln!(out, "{name}: {mistake}")?;
                }
            }
        }
    }
    Ok(())
}

fn peer(work: &Path, file: &Path) -> Result<f64> {
    let python = environment(work)?;
    let script = work.join("datasketch_all_pairs.py");
    fs::write(&script, include_str!("../peers/datasketch_all_pairs.py"))?;
    let ran = Command::new(&python).arg(&script).arg(file).output()?;
    ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).trim().parse().context("datasketch said no number")
}
