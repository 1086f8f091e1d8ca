//! `lookalike refine`

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lookalike::config::ClusterMode;
use lookalike::evaluate::runs::{FoldedMeasures, RunMeasures, measure_folding};
use lookalike::refine::{
    AnswerOptions, EvidenceSet, Folded, Lists, ResultFields, ResultList, RunCorpus, SearchResult, StoredSketch, lists,
    sketch_lists, spread, write_report,
};
use lookalike::transfer::qrels;
use lookalike::{Config, Error, Method, Refiner, RunOptions};
use serde_json::{Value, json};

use crate::Ending;
use crate::search_args::RefineArguments;
use crate::table::{TextTable, counted, not_an_input};

/// The list lengths for which the share of near-duplicates is reported, as in Jain et al. (2005).
const TOPS: [usize; 3] = [10, 20, 50];

pub(crate) fn run(arguments: &RefineArguments) -> Result<Ending> {
    let index = arguments.sketches.as_deref().filter(|name| Path::new(name).join("manifest.json").exists());
    let fields = ResultFields {
        results: arguments.fields.results_field.clone(),
        id: arguments.fields.id_field.clone(),
        url: arguments.fields.url_field.clone(),
        title: arguments.fields.title_field.clone(),
        text: arguments.fields.text_field.clone(),
        sketch: arguments.sketches.clone().filter(|_| index.is_none()),
    };
    let beside = ["json", "csv"].map(|ending| arguments.report.as_ref().map(|path| path.with_extension(ending)));
    let judged = [&arguments.run, &arguments.write_sketches, &arguments.write_qrels];
    let outputs = [&arguments.report, &beside[0], &beside[1]].into_iter().chain(judged).flatten();
    let outputs: Vec<&Path> = outputs.map(PathBuf::as_path).collect();
    let inputs: Vec<&Path> =
        [Some(&arguments.results), arguments.qrels.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
    not_an_input(&outputs, &inputs)?;
    let refiner = Refiner::new(config(arguments)?)?.with_evidence(arguments.evidence);
    let mut read = lists::read(&arguments.results, &fields, index.is_some())?;
    if let Some(depth) = arguments.depth {
        read.lists.iter_mut().for_each(|list| list.results.truncate(depth as usize));
    }
    check_for_runs(arguments, &read)?;
    if let Some(index) = index {
        return by_index(arguments, &refiner, &read, Path::new(index));
    }
    let corpus = RunCorpus {
        inputs: &arguments.corpus,
        allow_missing: arguments.allow_missing,
        threads: RunOptions::default_threads(),
    };
    let sketches = sketch_lists(&refiner, &read, corpus)?;
    if let Some(path) = &arguments.write_sketches {
        return write_sketches(&refiner, &read, &sketches, path);
    }
    let folded: Vec<Folded> = read
        .lists
        .iter()
        .zip(&sketches)
        .map(|(list, sketches)| refiner.fold_results(&list.results, sketches))
        .collect();
    if let Some(path) = &arguments.report {
        write_report(&spread(&refiner, &read, &sketches)?, &refiner, &read, &folded, path)?;
    }
    let without: usize = sketches.iter().flatten().filter(|sketch| sketch.is_none()).count();
    print(arguments, &refiner, &read, &folded, without)
}

/// Refuses what is only for runs, or only for other answers.
fn check_for_runs(arguments: &RefineArguments, read: &Lists) -> Result<(), Error> {
    if !read.is_run() && !arguments.corpus.is_empty() {
        return Err(Error::conflict("corpus", "is for TREC runs, and these results have their own texts"));
    }
    if read.is_run() && arguments.mark {
        return Err(Error::conflict("mark", "a TREC run has no place for marks; `json` lists its groups"));
    }
    let for_runs = [("run", arguments.run.is_some()), ("qrels", arguments.qrels.is_some())];
    match for_runs.iter().find(|(_, is_given)| *is_given && !read.is_run()) {
        Some((setting, _)) => {
            Err(Error::conflict(*setting, "needs a TREC run as input, and these results are not one"))
        }
        None => Ok(()),
    }
}

fn config(arguments: &RefineArguments) -> Result<Config, Error> {
    let mut method = Method::parse_with(&arguments.method, Method::for_results)?;
    method.set_all(arguments.parameters.0.iter().map(|(name, value)| (*name, value.as_str())))?;
    let mut config = Refiner::defaults(method.clone());
    config.method = method;
    config.groups.cluster = arguments.cluster;
    Ok(config)
}

/// Folds by the fingerprints in an index.
fn by_index(arguments: &RefineArguments, refiner: &Refiner, read: &Lists, index: &Path) -> Result<Ending> {
    if refiner.config().method.name() != "simhash" {
        return Err(Error::conflict(
            "sketches",
            format!(
                "{} is an index, which has fingerprints of simhash; use `method` simhash, or sketches in the results",
                index.display()
            ),
        )
        .into());
    }
    if arguments.report.is_some() || arguments.write_sketches.is_some() || arguments.cluster != ClusterMode::Star {
        return Err(Error::conflict(
            "sketches",
            "an index has only fingerprints; `report`, `write_sketches` and `cluster` need texts or sketches",
        )
        .into());
    }
    let found = lookalike::refine::by_fingerprints(read, index, refiner.config())?;
    let without = found.without;
    print(arguments, refiner, read, &found.lists, without)
}

fn print(
    arguments: &RefineArguments,
    refiner: &Refiner,
    read: &Lists,
    folded: &[Folded],
    without: usize,
) -> Result<Ending> {
    let measures = match &arguments.qrels {
        Some(path) => Some(measure(arguments, read, folded, path)?),
        None => None,
    };
    let mut out = io::stdout().lock();
    let is_run_printed = arguments.run.as_deref() == Some(Path::new("-"));
    if is_run_printed && arguments.json {
        return Err(Error::conflict("run", "and `json` cannot both be printed; name a file").into());
    }
    if let Some(path) = &arguments.run {
        let text = folded_run(read, folded);
        if is_run_printed {
            out.write_all(text.as_bytes())?;
        } else {
            std::fs::write(path, text).with_context(|| format!("{}: cannot write", path.display()))?;
        }
    }
    if arguments.json {
        writeln!(out, "{}", json(arguments, refiner, read, folded, measures.as_ref())?.trim_end())?;
    } else if !is_run_printed {
        for (list, folded) in read.lists.iter().zip(folded) {
            print_list(&mut out, list, folded)?;
        }
        if folded.len() > 1 {
            let means = TOPS.map(|top| {
                let shares: f64 = folded.iter().map(|list| list.duplicates(top)).sum();
                format!("{:.1} % of the first {top}", shares * 100.0 / folded.len() as f64)
            });
            writeln!(out, "near-duplicates in {} lists, on average: {}", folded.len(), means.join(", "))?;
        }
        if let Some(measures) = &measures {
            print_measures(&mut out, measures)?;
        }
    }
    if without > 0 {
        let results = counted(without as u64, "result", "results");
        let what = if arguments.sketches.is_some() { "text or sketch" } else { "text" };
        let were = if without == 1 { "was" } else { "were" };
        let compared = match arguments.evidence {
            EvidenceSet::TEXT => format!("{were} not grouped"),
            _ => format!("{were} compared by title and URL alone"),
        };
        writeln!(io::stderr(), "{results} had no {what} and {compared}")?;
        return Ok(Ending::Skipped);
    }
    Ok(Ending::Done)
}

/// The answer in its own shape; a run as lists of groups.
fn json(
    arguments: &RefineArguments,
    refiner: &Refiner,
    read: &Lists,
    folded: &[Folded],
    measures: Option<&FoldedMeasures>,
) -> Result<String> {
    if let (Some(answer), [list], [folded]) = (&read.answer, &read.lists[..], folded) {
        let options = AnswerOptions { mark: arguments.mark, group_field: arguments.group_field.clone() };
        let text = answer.folded(list, folded, refiner, &options);
        return Ok(text.map_err(|reason| Error::bad_input(&read.path, reason))?);
    }
    let lists: Vec<Value> = read.lists.iter().zip(folded).map(|(list, folded)| json_list(list, folded)).collect();
    let method = &refiner.config().method;
    let mut value = json!({
        "method": method.name(), "threshold": method.threshold(), "evidence": refiner.evidence(), "lists": lists,
    });
    if let Some(measures) = measures {
        value["measures"] = json!(measures);
    }
    Ok(serde_json::to_string_pretty(&value)?)
}

/// Measures a run before and after folding.
fn measure(arguments: &RefineArguments, read: &Lists, folded: &[Folded], qrels_path: &Path) -> Result<FoldedMeasures> {
    let (measures, unique) = measure_folding(read, folded, &qrels::read(qrels_path)?)?;
    if let Some(path) = &arguments.write_qrels {
        let row = |row: &'_ qrels::Judgment| (row.topic.clone(), row.iteration.clone(), row.page.clone(), row.grade);
        let rows: Vec<_> = unique.iter().map(row).collect();
        qrels::write(path, rows.iter().map(|row| (row.0.as_str(), row.1.as_str(), row.2.as_str(), row.3)))?;
    }
    Ok(measures)
}

fn print_measures(out: &mut impl Write, found: &FoldedMeasures) -> io::Result<()> {
    let mut table = TextTable::new(["", "run", "folded", "run, unique", "folded, unique"]);
    let values = |row: &RunMeasures| [row.ndcg_10, row.average_precision, row.precision_10, row.reciprocal_rank];
    let columns = [&found.run, &found.folded, &found.run_unique, &found.folded_unique].map(values);
    for (at, name) in ["nDCG@10", "AP", "P@10", "RR"].into_iter().enumerate() {
        let [run, folded, run_unique, folded_unique] = columns.map(|column| format!("{:.4}", column[at]));
        table.row([name.to_owned(), run, folded, run_unique, folded_unique]);
    }
    writeln!(out)?;
    table.print(out)?;
    let missing = match found.topics_without_results {
        0 => String::new(),
        count => format!(" ({count} without results, counted as 0)"),
    };
    writeln!(
        out,
        "{}{missing}; unique: near-duplicates of a better result count as not relevant, {} of {}",
        counted(found.topics as u64, "topic", "topics"),
        found.relevant_duplicates,
        counted(found.relevant_results as u64, "relevant result", "relevant results"),
    )?;
    if found.relevant_under_others > 0 {
        writeln!(
            out,
            "{} of them {} folded under a result that is not judged relevant: see the groups",
            found.relevant_under_others,
            if found.relevant_under_others == 1 { "is" } else { "are" }
        )?;
    }
    Ok(())
}

/// Without control characters: page text must not control the terminal.
fn harmless(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn describe(result: &SearchResult) -> String {
    let name = result.title.as_deref().or(result.id.as_deref()).unwrap_or_default();
    let url = result.url.as_deref().filter(|url| *url != name).unwrap_or_default();
    harmless(format!("{name}  {url}").trim())
}

fn print_list(out: &mut impl Write, list: &ResultList, folded: &Folded) -> io::Result<()> {
    if let Some(name) = &list.name {
        writeln!(out, "{}", harmless(name))?;
    }
    for group in &folded.groups {
        writeln!(out, "{:>4}. {}", group.best + 1, describe(&list.results[group.best]))?;
        for fold in &group.others {
            writeln!(
                out,
                "      {:>4}. {:.3} {:<15} by {:<11} {}",
                fold.at + 1,
                fold.similarity,
                fold.relation.name(),
                if fold.evidence == EvidenceSet::default() { "others".to_owned() } else { fold.evidence.to_string() },
                describe(&list.results[fold.at])
            )?;
        }
    }
    let shares = TOPS
        .iter()
        .filter(|&&top| top == TOPS[0] || folded.results > TOPS[0])
        .map(|&top| format!("{:.0} % of the first {}", folded.duplicates(top) * 100.0, folded.results.min(top)));
    writeln!(
        out,
        "{} in {}; near-duplicates of a better result: {}\n",
        counted(folded.results as u64, "result", "results"),
        counted(folded.groups.len() as u64, "group", "groups"),
        shares.collect::<Vec<_>>().join(", ")
    )
}

fn json_list(list: &ResultList, folded: &Folded) -> Value {
    let named = |at: usize| {
        let result = &list.results[at];
        json!({"rank": at + 1, "id": result.id, "url": result.url, "title": result.title, "score": result.score})
    };
    let groups: Vec<Value> = folded
        .groups
        .iter()
        .map(|group| {
            let others: Vec<Value> = group
                .others
                .iter()
                .map(|fold| {
                    let mut other = named(fold.at);
                    other["similarity"] = json!(fold.similarity);
                    other["relation"] = json!(fold.relation);
                    other["evidence"] = json!(fold.evidence);
                    other["in_best"] = json!(fold.in_best);
                    other["best_in_it"] = json!(fold.best_in_it);
                    other
                })
                .collect();
            let mut best = named(group.best);
            best["others"] = Value::Array(others);
            best
        })
        .collect();
    let tops: serde_json::Map<String, Value> =
        TOPS.iter().map(|&top| (format!("top_{top}"), json!(folded.duplicates(top)))).collect();
    json!({"query": list.name, "results": folded.results, "groups": groups, "near_duplicates": tops})
}

/// The best results of each group, as a run.
fn folded_run(read: &Lists, folded: &[Folded]) -> String {
    let mut text = String::new();
    for (list, folded) in read.lists.iter().zip(folded) {
        for (rank, group) in folded.groups.iter().enumerate() {
            let result = &list.results[group.best];
            text.push_str(&format!(
                "{} Q0 {} {} {} {}\n",
                list.name.as_deref().unwrap_or("1"),
                result.id.as_deref().unwrap_or_default(),
                rank + 1,
                result.score.unwrap_or_default(),
                result.record.as_str().unwrap_or("lookalike")
            ));
        }
    }
    text
}

fn write_sketches(
    refiner: &Refiner,
    read: &Lists,
    sketches: &[Vec<Option<StoredSketch>>],
    path: &Path,
) -> Result<Ending> {
    let records: Vec<Value> = read
        .lists
        .iter()
        .zip(sketches)
        .flat_map(|(list, sketches)| list.results.iter().zip(sketches))
        .map(|(result, sketch)| {
            let mut record = match &result.record {
                Value::Object(_) => result.record.clone(),
                // A line of a run.
                _ => json!({"id": result.id}),
            };
            if let Some(sketch) = sketch {
                record[lists::SKETCH_FIELD] = json!(sketch.to_text(refiner.config()));
            }
            record
        })
        .collect();
    let text = serde_json::to_string_pretty(&json!({"results": records}))? + "\n";
    std::fs::write(path, text).with_context(|| format!("{}: cannot write", path.display()))?;
    let is_whole = sketches.iter().flatten().all(Option::is_some);
    Ok(if is_whole { Ending::Done } else { Ending::Skipped })
}
