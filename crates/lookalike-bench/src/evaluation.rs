//! Evaluates every method on the labelled sets and writes the tables of `docs/evaluation.md`, with the papers' figures.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use lookalike::compare::find_page;
use lookalike::config::Scope;
use lookalike::evaluate::gold::{Gold, GoldColumns};
use lookalike::evaluate::metrics::Counts;
use lookalike::evaluate::pairs::{LabelledPair, evaluate_pairs};
use lookalike::evaluate::{EvaluateOptions, Evaluation, MethodEvaluation, write_report};
use lookalike::{Config, Method, compare};
use lookalike_bench::labelled::{self, Labelled};
use serde_json::Value;

const BEGIN: &str = "<!-- The tables below are written by: cargo run --release -p lookalike-bench -- evaluation -->";
const END: &str = "<!-- End of the generated tables -->";

/// Evaluates, and replaces the tables in `docs/evaluation.md`.
///
/// # Errors
/// If the data is not found, or a run fails.
pub fn run(work: &Path) -> Result<()> {
    let mut text = String::new();
    let sets = [labelled::same_core()?, labelled::install_guide()?, labelled::llvm_docs()?];
    let mut found = Vec::new();
    for set in sets.into_iter().flatten() {
        writeln!(io::stderr(), "{} …", set.name)?;
        let started = Instant::now();
        let (evaluation, experiments) = evaluate_set(&set, work)?;
        write_set(&mut text, &set, &evaluation, started.elapsed().as_secs_f64())?;
        found.push((set.name, evaluation, experiments));
    }
    ensure!(!found.is_empty(), "the labelled data was not found: set LOOKALIKE_DATA to the folder that holds it");
    write_pairs(&mut text)?;
    write_papers(&mut text, &found)?;
    write_differences(&mut text)?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evaluation.md");
    let page = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let (before, rest) =
        page.split_once(BEGIN).context("docs/evaluation.md does not have the line that begins the tables")?;
    let (_, after) = rest.split_once(END).context("docs/evaluation.md does not have the line that ends the tables")?;
    fs::write(&path, format!("{before}{BEGIN}\n\n{}\n{END}{after}", text.trim()))?;
    writeln!(io::stderr(), "{} is up to date; the reports are in {}", path.display(), work.display())?;
    Ok(())
}

fn evaluate_set(set: &Labelled, work: &Path) -> Result<(Evaluation, Value)> {
    fs::create_dir_all(work)?;
    let path = work.join(format!("{}.tsv", set.name));
    let mut rows = String::from("page\tcluster\tkind\tsite\n");
    let of = |map: &std::collections::HashMap<String, String>, page: &str| map.get(page).cloned().unwrap_or_default();
    let mut pages: Vec<&String> = set.cluster_of.keys().collect();
    pages.sort_unstable();
    for page in pages {
        // The manuals of one version are a site.
        let version = page.split('/').next().unwrap_or_default().to_owned();
        let site = if set.frame_of.is_empty() { version } else { of(&set.frame_of, page) };
        writeln!(rows, "{page}\t{}\t{}\t{site}", set.cluster_of[page], of(&set.part_of, page))?;
    }
    fs::write(&path, rows)?;
    let gold = Gold::read(&path, &GoldColumns::default(), 1.0)?;
    // Each page is read for itself, as in the papers: no frames are learnt from the others.
    let core = |method: Method| {
        let mut config = Config::new(method);
        config.content.scope = Scope::Core;
        config
    };
    let configs = Method::all().into_iter().map(core).collect();
    let mut options = EvaluateOptions::new([set.directory.to_string_lossy()], configs);
    (options.threads, options.memory_bytes) = (2, Some(4 << 30));
    options.allow_missing = true;
    options.equal_recall = Some("shingle".to_owned());
    let report = work.join(format!("{}.html", set.name));
    let evaluation = write_report(&gold, &options, &report, &|_| {})?;
    let json: Value = serde_json::from_slice(&fs::read(report.with_extension("json"))?)?;
    Ok((evaluation, json["experiments"].clone()))
}

fn share(value: f64) -> String {
    format!("{value:.3}")
}

fn precision(counts: &Counts) -> String {
    if counts.correct + counts.wrong == 0 { "–".to_owned() } else { share(counts.precision()) }
}

fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn write_set(text: &mut String, set: &Labelled, found: &Evaluation, seconds: f64) -> Result<()> {
    writeln!(
        text,
        "### {}\n\n{} pages, {} clusters of two or more, {} pairs that belong together; evaluated in {seconds:.0} s on 2 threads, with the report and all its experiments.\n",
        set.name, found.pages, found.gold_clusters, found.gold_pairs
    )?;
    writeln!(
        text,
        "| method | at | pair precision | recall | F1 | B³ F1 | adjusted Rand | exact sets | strict recall | best F1 (at) | half: at, F1 on the other | precision at the recall of shingle | CPU-s | bytes per page | candidates | compared |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")?;
    for row in &found.methods {
        let clusters = row.clusters.as_ref();
        let of = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), share);
        let equal = row.equal_recall.as_ref().and_then(|equal| equal.at);
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} ({}) | {}, {} | {} | {:.2} | {:.0} | {} | {} |",
            row.method,
            number(row.threshold),
            precision(&row.pairs),
            share(row.pairs.recall()),
            share(row.pairs.f1()),
            of(clusters.map(|scores| scores.cluster_f1)),
            of(clusters.map(|scores| scores.adjusted_rand)),
            of(clusters.map(|scores| scores.exact_sets)),
            of(row.strict.as_ref().map(Counts::recall)),
            share(row.best.pairs.f1()),
            number(row.best.threshold),
            number(row.halves.threshold),
            share(row.halves.tested_on.f1()),
            equal.map_or_else(|| "–".to_owned(), |at| precision(&at.pairs)),
            row.cost.cpu_seconds,
            row.cost.bytes_per_page,
            row.cost.candidates,
            row.cost.compared
        )?;
    }
    writeln!(text)?;
    Ok(())
}

fn write_pairs(text: &mut String) -> Result<()> {
    let Some(graded) = labelled::graded_pairs()? else { return Ok(()) };
    let pairs: Vec<LabelledPair> = graded
        .into_iter()
        .map(|(left, right, label)| LabelledPair { left, right, label: label as f64, score: None })
        .collect();
    let found = evaluate_pairs(&pairs, 1.0, &Method::all().into_iter().map(Config::new).collect::<Vec<_>>(), None)?;
    writeln!(
        text,
        "### webis-s3-pairs-dev\n\n{} pairs graded by people, {} of them near-duplicates (grade 1 or more). The first row is the exact Jaccard similarity of word 5-grams.\n",
        found.pairs, found.positive
    )?;
    writeln!(text, "| method | measure | AUC | average precision | best F1 | at | default F1 | precision | recall |")?;
    writeln!(text, "|---|---|---|---|---|---|---|---|---|")?;
    for row in &found.methods {
        let come = row.at_default.as_ref();
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.method,
            row.measure,
            share(row.ranked.area),
            share(row.ranked.average_precision),
            share(row.ranked.best_f1),
            number(row.ranked.best_at),
            come.map_or_else(|| "–".to_owned(), |counts| share(counts.f1())),
            come.map_or_else(|| "–".to_owned(), precision),
            come.map_or_else(|| "–".to_owned(), |counts| share(counts.recall())),
        )?;
    }
    writeln!(text)?;
    Ok(())
}

/// The papers' figures, with ours on each set.
fn write_papers(text: &mut String, found: &[(&str, Evaluation, Value)]) -> Result<()> {
    let names: Vec<&str> = found.iter().map(|row| row.0).collect();
    writeln!(text, "### The papers' figures and ours\n")?;
    writeln!(text, "| figure | paper | {} |", names.join(" | "))?;
    writeln!(text, "|---|---|{}", "---|".repeat(names.len()))?;
    let method = |evaluation: &Evaluation, name: &str| -> Option<MethodEvaluation> {
        evaluation.methods.iter().find(|row| row.method == name).cloned()
    };
    let mut line = |what: &str, paper: &str, ours: &dyn Fn(&Evaluation, &Value) -> Option<String>| {
        let cells: Vec<String> = found
            .iter()
            .map(|(_, evaluation, more)| ours(evaluation, more).unwrap_or_else(|| "–".to_owned()))
            .collect();
        writeln!(text, "| {what} | {paper} | {} |", cells.join(" | "))
    };
    for (name, paper) in [
        ("shingle", "0.38"),
        ("projection", "0.50"),
        ("combined", "0.79"),
        ("routed", "0.85 printed, about 0.82 recomputed"),
    ] {
        line(&format!("precision of {name} (Henzinger §3)"), paper, &|found, _| {
            Some(precision(&method(found, name)?.pairs))
        })?;
    }
    for (name, paper) in [("shingle", "0.34 / 0.86"), ("projection", "0.36 / 0.90"), ("combined", "0.74 / 0.99")] {
        line(&format!("{name}, same / different site (Tables 2, 5, 12)"), paper, &|found, _| {
            let row = method(found, name)?;
            let of = |counts: &Option<Counts>| counts.as_ref().map_or_else(|| "–".to_owned(), precision);
            Some(format!("{} / {}", of(&row.same_site), of(&row.different_site)))
        })?;
    }
    line("B-similarity 2, 3, 4, 5, 6 (Table 2)", "0.24, 0.42, 0.55, 0.71, 0.85", &|found, _| {
        let row = method(found, "shingle")?;
        let of = |level: u32| {
            let level = row.levels.iter().find(|row| row.level == level.to_string());
            level.map_or_else(|| "–".to_owned(), |level| format!("{:.2}", level.correct as f64 / level.pairs as f64))
        };
        Some((2..=6).map(of).collect::<Vec<_>>().join(", "))
    })?;
    line("mean C-similarity at B-similarity 2 to 6 (Table 9)", "331.5, 342.4, 352.4, 358.9, 370.9", &|_, more| {
        let by_b = more["b_and_c"]["bits_by_supershingles"].as_object()?;
        let of = |level: u32| {
            let bits = by_b.get(&level.to_string()).and_then(Value::as_object);
            bits.map_or_else(
                || "–".to_owned(),
                |bits| {
                    let (mut sum, mut pairs) = (0.0, 0.0);
                    for (value, count) in bits {
                        let count = count.as_f64().unwrap_or_default();
                        sum += value.parse::<f64>().unwrap_or_default() * count;
                        pairs += count;
                    }
                    format!("{:.1}", sum / f64::max(pairs, 1.0))
                },
            )
        };
        Some((2..=6).map(of).collect::<Vec<_>>().join(", "))
    })?;
    line("exponent of the degrees, B / C (Figures 1, 3)", "−1.3 / −1.4", &|_, more| {
        let of = |name: &str| {
            let row = more["degrees"].as_array()?.iter().find(|row| row["method"] == name)?;
            Some(row["exponent"].as_f64().map_or_else(|| "–".to_owned(), |slope| format!("{slope:.2}")))
        };
        Some(format!("{} / {}", of("shingle")?, of("projection")?))
    })?;
    line("median term difference, B / C (Figures 2, 4)", "11 / 7", &|_, more| {
        let of = |name: &str| {
            let row = more["differences"].as_array()?.iter().find(|row| row["method"] == name)?;
            let words = row["words"].as_array()?;
            Some(words.get(words.len() / 2).map_or_else(|| "–".to_owned(), ToString::to_string))
        };
        Some(format!("{} / {}", of("shingle")?, of("projection")?))
    })?;
    line("SimHash at distance 3: precision / recall (Manku, Figure 1)", "about 0.75 / 0.75", &|found, _| {
        let row = method(found, "simhash")?;
        Some(format!("{} / {}", precision(&row.pairs), share(row.pairs.recall())))
    })?;
    line("SpotSigs: precision / strict recall", "> 0.93 / > 0.85", &|found, _| {
        let counts = method(found, "spotsigs")?.strict?;
        Some(format!("{} / {}", precision(&counts), share(counts.recall())))
    })?;
    line(
        "SpotSigs, full, default antecedents, best F1 over thresholds: first / best guess (Figure 11)",
        "best guess is better",
        &|_, more| {
            let of = |name: &str| {
                let curve = more["spots"]["matching"].as_array()?.iter().find(|row| row["name"] == name)?;
                let points = curve["points"].as_array()?.iter();
                points.filter_map(|point| point[1]["f1"].as_f64()).reduce(f64::max)
            };
            Some(format!("{:.3} / {:.3}", of("full, first guess")?, of("full, best guess")?))
        },
    )?;
    line("SpotSigs with 1, 2, 3, 7 antecedents: F1 (Figure 21)", "rises with the third, `said`", &|_, more| {
        let rows = more["spots"]["antecedents"].as_array()?;
        let of = |at: usize| rows.get(at)?[1]["f1"].as_f64().map(|f1| format!("{f1:.3}"));
        Some([of(0)?, of(1)?, of(2)?, of(6)?].join(", "))
    })?;
    line("SpotSigs at distance 1, 3, 10, 100: F1 (Figure 22)", "falls", &|_, more| {
        let rows = more["spots"]["distances"].as_array()?;
        let of = |distance: u64| {
            let row = rows.iter().find(|row| row[0] == distance)?;
            row[1]["f1"].as_f64().map(|f1| format!("{f1:.3}"))
        };
        Some([of(1)?, of(3)?, of(10)?, of(100)?].join(", "))
    })?;
    line(
        "SimHash by 1, 3, 5, 8-grams: precision / recall (ClueWeb slides)",
        "precision rises, fewer are found",
        &|_, more| {
            let rows = more["ngrams"].as_array()?;
            let of = |n: u64| {
                let row = rows.iter().find(|row| row["method"] == "simhash" && row["ngram"] == n)?;
                let of = |key: &str| {
                    row["pairs"][key].as_f64().map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"))
                };
                Some(format!("{} / {}", of("precision"), of("recall")))
            };
            Some([of(1)?, of(3)?, of(5)?, of(8)?].join(", "))
        },
    )?;
    writeln!(text)?;
    Ok(())
}

/// Pairs of pages, labelled by hand with what they differ in.
const LABELS: &str = include_str!("../labels/differences.tsv");

fn write_differences(text: &mut String) -> Result<()> {
    let (mut rows, mut invented, mut right, mut by_kind) =
        (0, 0, 0, std::collections::BTreeMap::<String, [u64; 3]>::new());
    for line in LABELS.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let [set, left, other, label] = line.split('\t').collect::<Vec<_>>()[..] else {
            anyhow::bail!("labels/differences.tsv: '{line}' does not have four columns");
        };
        let Some(root) = root_of(set)? else { continue };
        let page = |name: &str| {
            let path = root.join(name).to_string_lossy().into_owned();
            find_page(&path, None, &Config::default()).with_context(|| path)
        };
        let found = compare(&page(left)?, &page(other)?, &Config::default());
        let reported: Vec<&str> = found.differences.kinds.iter().map(|kind| kind.name()).collect();
        let labelled: Vec<&str> = label.split(", ").filter(|kind| *kind != "none").collect();
        rows += 1;
        invented += u64::from(set == "newsroom");
        right += u64::from(reported == labelled);
        for kind in reported.iter().chain(&labelled) {
            by_kind.entry((*kind).to_owned()).or_default();
        }
        for (kind, row) in &mut by_kind {
            let (is_reported, is_labelled) = (reported.contains(&kind.as_str()), labelled.contains(&kind.as_str()));
            row[0] += u64::from(is_reported && is_labelled);
            row[1] += u64::from(is_reported && !is_labelled);
            row[2] += u64::from(!is_reported && is_labelled);
        }
        if reported != labelled {
            writeln!(io::stderr(), "{left} / {other}: {reported:?} instead of {labelled:?}")?;
        }
    }
    writeln!(
        text,
        "### What pairs differ in\n\nThe classification of differences on {rows} pairs labelled by hand, {invented} of them from the invented pages of examples/newsroom (crates/lookalike-bench/labels/differences.tsv): all kinds are correct for {right} pairs.\n"
    )?;
    writeln!(text, "| kind | precision | recall | reported | labelled |\n|---|---|---|---|---|")?;
    for (kind, [both, wrong, missed]) in by_kind {
        let of = |part: u64, whole: u64| {
            if whole == 0 { "–".to_owned() } else { format!("{:.2}", part as f64 / whole as f64) }
        };
        writeln!(
            text,
            "| {kind} | {} | {} | {} | {} |",
            of(both, both + wrong),
            of(both, both + missed),
            both + wrong,
            both + missed
        )?;
    }
    Ok(())
}

fn root_of(set: &str) -> Result<Option<PathBuf>> {
    Ok(match set {
        "newsroom" => Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/newsroom")),
        "llvm-docs" => labelled::unpacked("llvm-docs-dev.tar.zst", "llvm-docs")?,
        "install-guide" => labelled::unpacked("install-guide-dev.tar.zst", "debian-install-guide")?,
        "edgi" => labelled::unpacked("edgi-page-pairs.tar.zst", "edgi-page-pairs")?,
        _ => anyhow::bail!("labels/differences.tsv: there is no set called {set}"),
    })
}
