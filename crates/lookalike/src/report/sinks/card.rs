//! `README.md`: the dataset card. What was done, with which settings, and what came of it, for whoever finds the files.
//!
//! Its front matter is that of the Hugging Face Hub. It says nothing that varies between runs of the same job.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::cluster::Keep;
use crate::error::{Error, Result};
use crate::names::Named;
use crate::page::{PageOrigin, SourceId};
use crate::read::Source;
use crate::report::numbers::{percent, thousands};
use crate::report::outputs::KeptFormat;
use crate::report::sinks::configurations::groups;
use crate::report::sinks::{Sink, SinkContext};
use crate::report::summary::Summary;
use crate::report::{Findings, OutputOptions, files, render};
use crate::size::format_bytes;
use crate::text::Scope;
use crate::work_dir::signed;

/// Files of the input that are listed; the rest is counted.
const LISTED_FILES: usize = 50;

pub(super) struct Card;

impl Sink for Card {
    fn files(&self) -> &'static [&'static str] {
        &[files::CARD, files::CARD_ASIDE]
    }

    fn write(&self, findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
        let configurations = configurations(findings, directory, context)?;
        let text = card(findings, context.summary, context.options, &configurations)
            .map_err(|error| Error::internal(format!("the dataset card could not be written: {error}")))?;
        render::write(&directory.join(files::CARD), signed(&text))
    }
}

fn card(
    findings: &Findings<'_>,
    summary: &Summary,
    options: OutputOptions,
    configurations: &[Configuration],
) -> std::result::Result<String, std::fmt::Error> {
    let mut out = String::new();
    front_matter(&mut out, summary, configurations)?;
    let (pages, dropped) = (summary.pages, summary.dropped);
    writeln!(out, "{{signature}}\n\n# Pages without near-duplicates\n")?;
    writeln!(
        out,
        "{} of {} pages are kept; {} ({}) were dropped because a kept page has the same text, or nearly the same.\n",
        thousands(summary.kept),
        thousands(pages),
        thousands(dropped),
        percent(dropped, pages)
    )?;
    counts(&mut out, summary)?;
    writeln!(out, "\n## How duplicates were found\n")?;
    let rule = findings.earlier.as_ref().map_or_else(|| summary.config.rule(), |earlier| earlier.rule.clone());
    let groups = &summary.config.groups;
    writeln!(out, "- Method: `{}`", summary.config.method.name())?;
    writeln!(out, "- A pair counts if: {rule}")?;
    writeln!(out, "- Groups: {} ({})", groups.cluster, about(groups.cluster))?;
    writeln!(out, "- Kept of each group: {}", kept(&groups.keep))?;
    if let Some(against) = &summary.against {
        let (path, dropped) = (cell(&against.path), thousands(against.dropped));
        writeln!(out, "- Held against: {path}, which has {dropped} of the dropped pages")?;
    }
    settings(&mut out, summary)?;
    sources(&mut out, findings, summary)?;
    contents(&mut out, options)?;
    writeln!(out, "\n## How to cite\n")?;
    writeln!(
        out,
        "> Near-duplicates were removed with lookalike {} (`lookalike dedup`, method `{}`, configuration `{}`).\n",
        summary.lookalike,
        summary.config.method.name(),
        summary.config_hash
    )?;
    writeln!(
        out,
        "The whole configuration is in `{}`; the same version with the same configuration and input gives the same bytes.",
        files::SUMMARY
    )?;
    Ok(out)
}

/// Which page of a group is kept.
fn kept(keep: &Keep) -> String {
    match keep {
        Keep::First => "the first page".to_owned(),
        Keep::Longest => "the longest page".to_owned(),
        Keep::Newest => "the newest page".to_owned(),
        Keep::ShortestUrl => "the page with the shortest URL".to_owned(),
        Keep::Max(field) => format!("the page with the largest `{}`", cell(field)),
    }
}

/// What a value of a list means.
fn about<T: Named>(value: T) -> &'static str {
    T::LIST.iter().find(|row| row.0 == value).map_or("", |row| row.2.trim())
}

/// What the Hub reads: tags, size, and where the records are.
fn front_matter(out: &mut String, summary: &Summary, configurations: &[Configuration]) -> std::fmt::Result {
    writeln!(out, "---\ntags:\n- deduplicated\n- lookalike\nsize_categories:\n- {}", size_category(summary.kept))?;
    if !configurations.is_empty() {
        writeln!(out, "configs:")?;
    }
    for Configuration { name, splits } in configurations {
        writeln!(out, "- config_name: {name}\n  data_files:")?;
        for (split, paths) in splits {
            match paths.as_slice() {
                [path] => writeln!(out, "  - split: {split}\n    path: {}", quoted(path))?,
                paths => {
                    writeln!(out, "  - split: {split}\n    path:")?;
                    paths.iter().try_for_each(|path| writeln!(out, "    - {}", quoted(path)))?;
                }
            }
        }
    }
    writeln!(out, "---\n")
}

/// A text in YAML, as JSON has it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Files that can be loaded together.
struct Configuration {
    name: String,
    /// The paths or patterns of the files of each split.
    splits: BTreeMap<String, Vec<String>>,
}

/// The directories of records that a loader can read, as one configuration, or as several where their files have different
/// columns.
fn configurations(findings: &Findings<'_>, output: &Path, context: &SinkContext<'_>) -> Result<Vec<Configuration>> {
    let options = context.options;
    let sources = (0..).map(SourceId::from_index).zip(&findings.reading.sources);
    let sources: Vec<(SourceId, &Source)> =
        { sources }.filter(|(_, source)| source.origin == PageOrigin::Input).collect();
    let formats: BTreeSet<&str> = sources.iter().map(|(_, source)| source.format.name()).collect();
    // Only files with dropped records are in removed/.
    let has_dropped = |id: SourceId| findings.pages.pages_of(id).any(|page| !findings.fates.keeps(page));
    let loadable = ["jsonl", "parquet", "csv", "tsv", "arrow"];
    let is_loadable = formats.len() == 1 && formats.iter().all(|format| loadable.contains(format));
    let is_converted = options.kept_format != KeptFormat::Same;
    let directories = [
        ("default", files::KEPT, !options.no_kept && (is_loadable || is_converted)),
        ("removed", files::REMOVED, options.removed && is_loadable && context.summary.dropped > 0),
        ("annotated", files::ANNOTATED, options.annotate && is_loadable),
    ];
    let mut configurations = Vec::new();
    for (name, directory, _) in directories.into_iter().filter(|directory| directory.2) {
        let groups = groups(&output.join(directory), findings.config)?;
        let below = |path: String| format!("{directory}/{path}");
        if groups.len() < 2 {
            let there = sources.iter().filter(|(id, _)| directory != files::REMOVED || has_dropped(*id));
            let splits = splits(&there.map(|row| row.1).collect::<Vec<_>>());
            let splits = splits.into_iter().map(|(split, path)| (split, vec![below(path)])).collect();
            configurations.push(Configuration { name: name.to_owned(), splits });
            continue;
        }
        for (group, number) in groups.into_iter().zip(1..) {
            let name = if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
            let mut splits: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for file in group.files {
                let split = shard(&file).map_or_else(|| "train".to_owned(), |found| found[2].to_owned());
                splits.entry(split).or_default().push(below(escaped(&file)));
            }
            configurations.push(Configuration { name, splits });
        }
    }
    Ok(configurations)
}

/// A path as a pattern that matches nothing else.
fn escaped(path: &str) -> String {
    path.replace('[', "[[]").replace('*', "[*]").replace('?', "[?]")
}

/// The name of a file as `data/train-00000-of-00002.parquet`: its folder, and its split.
fn shard(name: &str) -> Option<Captures<'_>> {
    static SHARD: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^((?:[^/]+/)*)([A-Za-z0-9._]+)-[0-9]{5}-of-[0-9]{5}[^/]*$").ok());
    SHARD.as_ref().and_then(|shard| shard.captures(name))
}

/// The splits of a dataset, by the names of its files: `data/train-00000-of-00002.parquet`. Others are all of `train`.
fn splits(sources: &[&Source]) -> BTreeMap<String, String> {
    let mut splits = BTreeMap::new();
    for source in sources {
        match shard(&source.name) {
            Some(found) => splits.insert(found[2].to_owned(), format!("{}{}-*", &found[1], &found[2])),
            None => return BTreeMap::from([("train".to_owned(), "**".to_owned())]),
        };
    }
    splits
}

/// As the Hub names sizes.
fn size_category(pages: u64) -> &'static str {
    match pages {
        0..1_000 => "n<1K",
        1_000..10_000 => "1K<n<10K",
        10_000..100_000 => "10K<n<100K",
        100_000..1_000_000 => "100K<n<1M",
        1_000_000..10_000_000 => "1M<n<10M",
        10_000_000..100_000_000 => "10M<n<100M",
        100_000_000..1_000_000_000 => "100M<n<1B",
        _ => "1B<n<10B",
    }
}

fn counts(out: &mut String, summary: &Summary) -> std::fmt::Result {
    let kind = |name: &str| summary.kinds.get(name).copied().unwrap_or(0);
    let skipped = summary.skipped.values().sum();
    let is_links = summary.config.content.scope == Scope::Links;
    let rows = [
        ("pages in the input", summary.pages),
        ("kept", summary.kept),
        ("dropped: the same text as a kept page", kind("exact")),
        (
            if is_links { "dropped: the same links" } else { "dropped: the same text in another frame" },
            kind("same_core"),
        ),
        ("dropped: nearly the same text", kind("near")),
        ("dropped: contained in a kept page", kind("contained")),
        ("groups of two pages or more", summary.clusters),
        ("pages of the largest group", summary.largest_cluster),
        ("records that could not be used", skipped),
    ];
    writeln!(out, "| | |\n|---|---:|")?;
    rows.iter()
        .filter(|row| row.1 > 0)
        .try_for_each(|(what, count)| writeln!(out, "| {what} | {} |", thousands(*count)))
}

/// Every setting that has a value.
fn settings(out: &mut String, summary: &Summary) -> std::fmt::Result {
    let config = serde_json::to_value(&summary.config).unwrap_or_default();
    let mut rows = Vec::new();
    flatten("", &config, &mut rows);
    writeln!(out, "\n| setting | value |\n|---|---|")?;
    rows.iter().try_for_each(|(name, value)| writeln!(out, "| `{name}` | {} |", cell(value)))
}

fn flatten(name: &str, value: &serde_json::Value, rows: &mut Vec<(String, String)>) {
    match value {
        serde_json::Value::Null => {}
        serde_json::Value::Object(fields) => {
            for (field, value) in fields {
                let name = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                flatten(&name, value, rows);
            }
        }
        serde_json::Value::Array(values) if values.is_empty() => {}
        serde_json::Value::String(text) => rows.push((name.to_owned(), text.clone())),
        other => rows.push((name.to_owned(), other.to_string())),
    }
}

fn sources(out: &mut String, findings: &Findings<'_>, summary: &Summary) -> std::fmt::Result {
    writeln!(out, "\n## Sources\n")?;
    let files = if summary.sources == 1 { "file" } else { "files" };
    writeln!(out, "{} {files}, {}.", thousands(summary.sources), format_bytes(summary.source_bytes))?;
    let others = findings.reading.sources.iter().filter(|source| source.origin != PageOrigin::Input);
    let others: BTreeSet<&str> = others.map(|source| source.display.as_str()).collect();
    let listed: Vec<_> = summary.files.iter().filter(|file| !others.contains(file.source.as_str())).collect();
    if listed.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n| file | format | pages | size |\n|---|---|---:|---:|")?;
    for file in listed.iter().take(LISTED_FILES) {
        let (pages, bytes) = (thousands(file.pages), format_bytes(file.bytes));
        writeln!(out, "| {} | {} | {pages} | {bytes} |", cell(&file.source), file.format.name())?;
    }
    if listed.len() > LISTED_FILES {
        writeln!(out, "\n… and {} more", thousands((listed.len() - LISTED_FILES) as u64))?;
    }
    Ok(())
}

/// What is in the directory.
fn contents(out: &mut String, options: OutputOptions) -> std::fmt::Result {
    let rows = [
        (format!("{}/", files::KEPT), "the kept records", !options.no_kept),
        (format!("{}/", files::REMOVED), "the dropped records", options.removed),
        (
            files::REMOVED_RECORDS.parquet.to_owned(),
            "what each of them was dropped for, and where it is",
            options.removed,
        ),
        (format!("{}/", files::ANNOTATED), "all records, with what became of each", options.annotate),
        (files::CLUSTERS.parquet.to_owned(), "what became of every page, and for which page it was dropped", true),
        (files::PAIRS.parquet.to_owned(), "the verified pairs: the evidence", true),
        (files::REPORT.to_owned(), "the same for people: numbers, plots, examples", true),
        (files::SUMMARY.to_owned(), "all counts and the whole configuration", true),
    ];
    writeln!(out, "\n## Files\n\n| | |\n|---|---|")?;
    rows.iter().filter(|row| row.2).try_for_each(|(name, what, _)| writeln!(out, "| `{name}` | {what} |"))
}

/// A text as a cell of a table.
fn cell(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('|', "\\|").replace(['\n', '\r'], " ");
    escaped.replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_of(names: &[&str]) -> BTreeMap<String, String> {
        let line = b"{\"text\": \"a\"}\n".to_vec();
        let sources: Vec<Source> =
            names.iter().map(|name| Source::in_memory(name, line.clone(), None).unwrap()).collect();
        splits(&sources.iter().collect::<Vec<_>>())
    }

    #[test]
    fn splits_are_those_of_the_file_names() {
        let names =
            ["data/train-00000-of-00002.jsonl", "data/train-00001-of-00002.jsonl", "data/test-00000-of-00001.jsonl"];
        let expected = [("test", "data/test-*"), ("train", "data/train-*")];
        assert_eq!(split_of(&names), expected.map(|(a, b)| (a.to_owned(), b.to_owned())).into());
        assert_eq!(split_of(&["a.jsonl", names[0]]), [("train".to_owned(), "**".to_owned())].into());
    }

    #[test]
    fn settings_are_listed_by_their_whole_names() {
        let config = serde_json::json!({"a": {"b": 1, "c": null, "d": []}, "e": "x|y"});
        let mut rows = Vec::new();
        flatten("", &config, &mut rows);
        assert_eq!(rows, [("a.b".to_owned(), "1".to_owned()), ("e".to_owned(), "x|y".to_owned())]);
        assert_eq!(cell(&rows[1].1), "x\\|y");
        assert_eq!((escaped("a[1]*.csv"), quoted("a\"b")), ("a[[]1][*].csv".to_owned(), "\"a\\\"b\"".to_owned()));
    }
}
