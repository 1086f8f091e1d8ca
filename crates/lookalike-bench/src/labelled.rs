//! Methods on labelled data: what they find of the pairs that belong together, and what else.
//!
//! The data is not part of the project: `lookalike-test-data` finds it. It is unpacked into `target/bench/data`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use lookalike::config::{Scope, Within};
use lookalike::method::Unit;
use lookalike::result::files;
use lookalike::unstable::by_config;
use lookalike::{Body, Config, Markup, Method, RawPage, RunOptions, Silent, dedup};
use lookalike_test_data::labelled_data;
use serde_json::Value;

use crate::quality::columns;

/// Pages and the clusters they belong to.
pub struct Labelled {
    /// What it is called.
    pub name: &'static str,
    /// Where the pages are.
    pub directory: PathBuf,
    /// The cluster of each page, by the id that it gets.
    pub cluster_of: HashMap<String, String>,
    /// The part of the data that each page is in, such as its language.
    pub part_of: HashMap<String, String>,
    /// The frame that each page's story stands in, where that is known.
    pub frame_of: HashMap<String, String>,
}

/// Pairs found, against pairs of one cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PairCounts {
    /// Found, and of one cluster.
    pub correct: u64,
    /// Found, and of two clusters.
    pub wrong: u64,
    /// Of one cluster.
    pub gold: u64,
}

impl PairCounts {
    /// Share of the found that are of one cluster.
    #[must_use]
    pub fn precision(&self) -> f64 {
        self.correct as f64 / (self.correct + self.wrong).max(1) as f64
    }

    /// Share of those of one cluster that were found.
    #[must_use]
    pub fn recall(&self) -> f64 {
        self.correct as f64 / self.gold.max(1) as f64
    }

    /// The harmonic mean of both.
    #[must_use]
    pub fn f1(&self) -> f64 {
        2.0 * self.correct as f64 / (self.correct + self.wrong + self.gold).max(1) as f64
    }
}

/// A config with a name for the table.
pub struct Variant {
    /// The method and what is not at its default.
    pub name: String,
    /// What they mean.
    pub config: Config,
}

/// A method at its defaults, but on whole pages, as the papers have it.
pub(crate) fn on_pages(method: Method) -> Config {
    let mut config = Config::new(method);
    config.content.scope = Scope::Page;
    config
}

/// Every method at its defaults, on whole pages.
#[must_use]
pub fn defaults() -> Vec<Variant> {
    Method::all()
        .into_iter()
        .map(|method| Variant { name: method.name().to_owned(), config: on_pages(method) })
        .collect()
}

/// What the papers name as promising.
#[must_use]
pub fn options() -> Vec<Variant> {
    let method = |text: &str| text.parse::<Method>().expect("the parameters below are the methods' own");
    let methods = [
        "minhash threshold=0.5",
        "shingle ngram=5",
        "shingle weights=tf",
        "minhash weights=tf",
        "projection ngram=2",
        "projection ngram=8",
        "projection sketch_bits=192",
        "projection sketch_bits=96",
        "simhash weights=tf-idf",
        "simhash ngram=1",
        "simhash ngram=2",
        "simhash ngram=3",
        "simhash ngram=5",
        "simhash ngram=8",
        "spotsigs antecedents=auto",
        "spotsigs antecedents=is:3,the:3,said:3",
        "spotsigs weights=idf",
        "spotsigs spill=true",
        "spotsigs raw=true",
    ];
    let mut all: Vec<Variant> =
        methods.map(|text| Variant { name: text.to_owned(), config: on_pages(method(text)) }).into();
    type Change = fn(&mut Config);
    let pairs: [(&str, Change); 3] = [
        ("length_ratio=0.8", |config| config.pairs.length_ratio = Some(0.8)),
        ("within=language", |config| config.pairs.within = Some(Within::Language)),
        ("mask=volatile", |config| config.content.mask_volatile = true),
    ];
    for (name, change) in pairs {
        let mut config = on_pages(Config::default().method);
        change(&mut config);
        all.push(Variant { name: format!("minhash {name}"), config });
    }
    all
}

/// Runs the engine and counts pairs, in all and by the parts of the data; also the seconds it took.
///
/// # Errors
/// When the run fails.
pub fn pair_counts(set: &Labelled, config: &Config) -> Result<(PairCounts, HashMap<String, PairCounts>, f64)> {
    let found = found_pairs(&set.directory, config)?;
    let mut counter = Counter { set, all: PairCounts::default(), parts: HashMap::new() };
    found.pairs.iter().for_each(|pair| counter.add(&pair.left, &pair.right));
    counter.gold();
    Ok((counter.all, counter.parts, found.seconds))
}

/// What a run finds.
pub struct FoundPairs {
    /// Near-duplicates, copies included.
    pub pairs: Vec<FoundPair>,
    /// Dropped pages, each with the page that was kept in its place.
    pub dropped: Vec<(String, String)>,
    /// HTML pages that were compared whole.
    pub whole_pages: u64,
    /// How long it took.
    pub seconds: f64,
}

/// A near-duplicate, by the ids of its pages.
pub struct FoundPair {
    /// One page.
    pub left: String,
    /// The other.
    pub right: String,
    /// How near they are, in what the method decides by; larger is nearer, copies are nearest.
    pub nearness: f64,
}

/// Runs a config on the pages of a directory.
///
/// # Errors
/// When the run fails.
pub fn found_pairs(directory: &Path, config: &Config) -> Result<FoundPairs> {
    let output = tempfile::tempdir()?;
    let mut options = RunOptions::new([directory.to_string_lossy()], output.path().join("out"));
    options.threads = 2;
    let started = Instant::now();
    let summary = dedup(config, &options, &Silent)?.summary;
    let seconds = started.elapsed().as_secs_f64();

    let mut members: HashMap<String, Vec<String>> = HashMap::new();
    for mut row in columns(&options.output.join(files::PAGES.parquet), &["id", "identity"])? {
        let identity = row.swap_remove(1);
        members.entry(identity).or_default().push(row.swap_remove(0));
    }
    let mut pairs = Vec::new();
    let pair =
        |left: &String, right: &String, nearness: f64| FoundPair { left: left.clone(), right: right.clone(), nearness };
    for same in members.values() {
        for (at, left) in same.iter().enumerate() {
            pairs.extend(same[at + 1..].iter().map(|right| pair(left, right, f64::MAX)));
        }
    }
    let unit = config.method.unit();
    let column = if unit == Unit::Similarity { "similarity" } else { "score" };
    for row in columns(&options.output.join(files::PAIRS.parquet), &["left", "right", column])? {
        let nearness = unit.nearness(row[2].parse()?);
        for left in &members[&row[0]] {
            pairs.extend(members[&row[1]].iter().map(|right| pair(left, right, nearness)));
        }
    }
    let mut dropped = Vec::new();
    for mut row in columns(&options.output.join(files::CLUSTERS.parquet), &["id", "kept_id"])? {
        let kept = row.swap_remove(1);
        dropped.extend(Some((row.swap_remove(0), kept)).filter(|(page, kept)| page != kept));
    }
    let whole_pages = summary.compared.get("page").copied().unwrap_or_default();
    Ok(FoundPairs { pairs, dropped, whole_pages, seconds })
}

struct Counter<'a> {
    set: &'a Labelled,
    all: PairCounts,
    parts: HashMap<String, PairCounts>,
}

impl Counter<'_> {
    fn add(&mut self, left: &str, right: &str) {
        let (Some(a), Some(b)) = (self.set.cluster_of.get(left), self.set.cluster_of.get(right)) else { return };
        let part = self.set.part_of.get(left).map(|part| self.parts.entry(part.clone()).or_default());
        for counts in [Some(&mut self.all), part].into_iter().flatten() {
            if a == b {
                counts.correct += 1;
            } else {
                counts.wrong += 1;
            }
        }
    }

    fn gold(&mut self) {
        let mut sizes: HashMap<(&str, &str), u64> = HashMap::new();
        for (page, cluster) in &self.set.cluster_of {
            let part = self.set.part_of.get(page).map_or("", String::as_str);
            *sizes.entry((cluster, part)).or_default() += 1;
        }
        for ((_, part), size) in sizes {
            let pairs = size * (size - 1) / 2;
            self.all.gold += pairs;
            if !part.is_empty() {
                self.parts.entry(part.to_owned()).or_default().gold += pairs;
            }
        }
    }
}

/// The pages with real stories in real frames.
///
/// # Errors
/// When the archive is there and cannot be unpacked.
pub fn same_core() -> Result<Option<Labelled>> {
    let Some(root) = unpacked("same-core-dev.tar.zst", "same-core-dev")? else { return Ok(None) };
    let rows = tab_separated(&root.join("clusters.tsv"))?;
    let cluster_of = rows.iter().map(|row| (row["page"].clone(), row["cluster"].clone())).collect();
    let frame_of = rows.iter().map(|row| (row["page"].clone(), row["frame"].clone())).collect();
    let directory = root.join("pages");
    Ok(Some(Labelled { name: "same-core-dev", directory, cluster_of, part_of: HashMap::new(), frame_of }))
}

/// One manual for nine machine types in three languages.
///
/// # Errors
/// When the archive is there and cannot be unpacked.
pub fn install_guide() -> Result<Option<Labelled>> {
    let Some(root) = unpacked("install-guide-dev.tar.zst", "debian-install-guide")? else { return Ok(None) };
    let rows = tab_separated(&root.join("clusters-dev.tsv"))?;
    Ok(Some(Labelled {
        name: "install-guide-dev",
        cluster_of: rows.iter().map(|row| (row["path"].clone(), row["cluster"].clone())).collect(),
        part_of: rows.iter().map(|row| (row["path"].clone(), row["lang"].clone())).collect(),
        frame_of: HashMap::new(),
        directory: root,
    }))
}

/// Manuals of several versions: a page belongs together with the same page of another version.
///
/// # Errors
/// When the archive is there and cannot be unpacked.
pub fn llvm_docs() -> Result<Option<Labelled>> {
    let Some(root) = unpacked("llvm-docs-dev.tar.zst", "llvm-docs")? else { return Ok(None) };
    let mut cluster_of = HashMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let id = path.strip_prefix(&root)?.to_string_lossy().into_owned();
            // clang-13/x.html and clang-16/x.html are one page.
            if let Some((version, rest)) = id.split_once('/').filter(|_| id.ends_with(".html")) {
                let project = version.split('-').next().unwrap_or(version);
                cluster_of.insert(id.clone(), format!("{project}/{rest}"));
            }
        }
    }
    Ok(Some(Labelled {
        name: "llvm-docs-dev",
        directory: root,
        cluster_of,
        part_of: HashMap::new(),
        frame_of: HashMap::new(),
    }))
}

/// Pages of documentation sites, in frames that are often longer than their text.
pub struct FramedDocs {
    /// Where the pages are.
    pub directory: PathBuf,
    /// Exact similarity of the main elements of two pages, where it is 0.3 or more; the smaller id first.
    similarity: HashMap<(String, String), f64>,
}

/// What a config finds of pages in frames.
#[derive(Debug, Clone, Copy)]
pub struct FramedCounts {
    /// Share of the reported pairs whose main elements have a similarity of 0.5 or more.
    pub precision: f64,
    /// Share of the pairs whose main elements have a similarity of 0.7 or more that are reported.
    pub recall: f64,
    /// Dropped pages.
    pub dropped: usize,
    /// Those that were dropped for a page whose main element has a similarity below 0.5.
    pub wrongly_dropped: usize,
    /// How long it took.
    pub seconds: f64,
}

impl FramedDocs {
    /// The pages, if they are there.
    ///
    /// # Errors
    /// When the archive is there and cannot be unpacked.
    pub fn open() -> Result<Option<FramedDocs>> {
        let Some(root) = unpacked("framed-docs-dev.tar.zst", "framed-docs-dev")? else { return Ok(None) };
        FramedDocs::at(&root).map(Some)
    }

    /// The same of pages with their gold standard in a folder, as `scripts/make-framed-docs` leaves them.
    ///
    /// # Errors
    /// When the gold standard cannot be read.
    pub fn at(root: &Path) -> Result<FramedDocs> {
        let gold = root.join("gold.tsv");
        let mut similarity = HashMap::new();
        for line in fs::read_to_string(&gold).with_context(|| gold.display().to_string())?.lines() {
            let mut cells = line.split('\t');
            let (Some(left), Some(right), Some(value)) = (cells.next(), cells.next(), cells.next()) else {
                anyhow::bail!("{}: '{line}' is not a pair", gold.display());
            };
            similarity.insert(in_order(left, right), value.parse()?);
        }
        Ok(FramedDocs { directory: root.join("pages"), similarity })
    }

    /// The similarity of the main elements of two pages; 0 where it is below 0.3.
    #[must_use]
    pub fn similarity(&self, left: &str, right: &str) -> f64 {
        self.similarity.get(&in_order(left, right)).copied().unwrap_or(0.0)
    }

    /// Runs a config.
    ///
    /// # Errors
    /// When the run fails.
    pub fn measure(&self, config: &Config) -> Result<FramedCounts> {
        let found = found_pairs(&self.directory, config)?;
        let of = |pair: &(String, String)| self.similarity(&pair.0, &pair.1);
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        let reported: HashSet<(String, String)> =
            found.pairs.iter().map(|pair| in_order(&pair.left, &pair.right)).collect();
        let wanted: Vec<_> = self.similarity.iter().filter(|(_, value)| **value >= 0.7).map(|(pair, _)| pair).collect();
        Ok(FramedCounts {
            precision: share(reported.iter().filter(|pair| of(pair) >= 0.5).count(), reported.len()),
            recall: share(wanted.iter().filter(|pair| reported.contains(**pair)).count(), wanted.len()),
            dropped: found.dropped.len(),
            wrongly_dropped: found.dropped.iter().filter(|pair| of(pair) < 0.5).count(),
            seconds: found.seconds,
        })
    }
}

fn in_order(left: &str, right: &str) -> (String, String) {
    (left.min(right).to_owned(), left.max(right).to_owned())
}

/// Page pairs that people graded: the two texts, and the grade 0..3.
///
/// # Errors
/// When the file is there and cannot be read.
pub fn graded_pairs() -> Result<Option<Vec<(String, String, u64)>>> {
    let Some(path) = labelled_data("webis-s3-pairs-dev.jsonl.xz") else { return Ok(None) };
    let output = Command::new("xz").args(["-dc"]).arg(&path).output().context("xz is not installed")?;
    ensure!(output.status.success(), "{}: cannot be unpacked", path.display());
    let lines = std::str::from_utf8(&output.stdout)?.lines();
    let pairs = lines.map(|line| {
        let value: Value = serde_json::from_str(line)?;
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        Ok((text("text_a"), text("text_b"), value["label"].as_u64().unwrap_or_default()))
    });
    Ok(Some(pairs.collect::<Result<_>>()?))
}

/// What a config makes of graded pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GradedResult {
    /// The chance that a near-duplicate pair has a higher similarity than another pair.
    pub area: f64,
    /// The same for what the sketches alone say.
    pub estimate_area: f64,
    /// The same for the share of common bits of Bloom filters.
    pub common_bits_area: Option<f64>,
    /// Pairs by the config's own decision.
    pub counts: PairCounts,
}

/// Compares graded pairs; a near-duplicate has a grade of 1 or more.
#[must_use]
pub fn graded(pairs: &[(String, String, u64)], config: &Config) -> GradedResult {
    let (mut similar, mut estimated, mut common) = (Vec::new(), Vec::new(), Vec::new());
    let mut counts = PairCounts::default();
    for (left, right, grade) in pairs {
        let (word, facts) = by_config(&page(left), &page(right), config);
        let is_near = *grade >= 1;
        let is_accepted = word.near_duplicate || facts[0].1 == facts[1].1;
        counts.gold += u64::from(is_near);
        counts.correct += u64::from(is_accepted && is_near);
        counts.wrong += u64::from(is_accepted && !is_near);
        similar.push((word.similarity, is_near));
        estimated.push((word.estimate, is_near));
        common.extend(word.common_bits.map(|share| (share, is_near)));
    }
    let common_bits_area = (!common.is_empty()).then(|| area(&common));
    GradedResult { area: area(&similar), estimate_area: area(&estimated), common_bits_area, counts }
}

/// The chance that a near-duplicate pair has a higher value than another pair.
fn area(values: &[(f64, bool)]) -> f64 {
    let of = |wanted: bool| -> Vec<f64> { values.iter().filter(|row| row.1 == wanted).map(|row| row.0).collect() };
    let (near, other) = (of(true), of(false));
    let win = |a: f64, b: f64| match a.total_cmp(&b) {
        std::cmp::Ordering::Greater => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Less => 0.0,
    };
    let wins: f64 = near.iter().flat_map(|&a| other.iter().map(move |&b| win(a, b))).sum();
    wins / (near.len() * other.len()).max(1) as f64
}

fn page(text: &str) -> RawPage<'_> {
    RawPage::new(Body::Text(text.into()), Markup::Text)
}

/// The folder of an archive, unpacked; nothing if the archive is not here.
///
/// # Errors
/// When the archive is there and cannot be unpacked.
pub fn unpacked(archive: &str, folder: &str) -> Result<Option<PathBuf>> {
    let Some(archive) = labelled_data(archive) else { return Ok(None) };
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/bench/data");
    let unpacked = target.join(folder);
    if !unpacked.exists() {
        // Unpacked aside, so that nobody sees a half of it.
        fs::create_dir_all(&target)?;
        let aside = tempfile::tempdir_in(&target)?;
        let status = Command::new("sh")
            .arg("-c")
            .arg(r#"zstd -d --long=27 -c "$0" | tar -x -C "$1""#)
            .arg(&archive)
            .arg(aside.path())
            .status()?;
        ensure!(status.success(), "{}: cannot be unpacked", archive.display());
        let inside = aside.path().join(folder);
        let whole = if inside.exists() { inside } else { aside.path().to_path_buf() };
        // Another test may have been faster.
        if fs::rename(whole, &unpacked).is_err() {
            ensure!(unpacked.exists(), "{}: has no folder {folder}", archive.display());
        }
    }
    Ok(Some(unpacked))
}

fn tab_separated(path: &Path) -> Result<Vec<HashMap<String, String>>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let row = |line: &str| names.iter().zip(line.split('\t')).map(|(a, b)| ((*a).to_owned(), b.to_owned())).collect();
    Ok(lines.map(row).collect())
}

/// Sections of the generated site, items in each, and times each item was fetched.
const SECTIONS: u64 = 8;
const ITEMS: u64 = 40;
const FETCHES: u64 = 3;

/// A generated site of database pages, as Henzinger (2006, Table 3 to 7) describes what fools the
/// algorithms: every section has its boilerplate, every page an item of 10 to 30 words in the midst of
/// it. Fetched again, an item differs in time stamp, visitor count and session id alone, and belongs
/// together; two items of a section do not.
///
/// # Errors
/// When the file cannot be written.
pub fn boilerplate_site() -> Result<Labelled> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/bench/boilerplate");
    fs::create_dir_all(&directory)?;
    let mut state = 2006u64;
    let mut draw = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut lines, mut cluster_of) = (String::new(), HashMap::new());
    for section in 0..SECTIONS {
        let boilerplate: Vec<String> = (0..300 + 100 * section).map(|_| word(draw(1 << 20))).collect();
        let middle = boilerplate.len() / 2;
        for item in 0..ITEMS {
            let text: Vec<String> = (0..10 + draw(21)).map(|_| word(draw(1 << 20))).collect();
            for fetch in 0..FETCHES {
                let id = format!("{section}-{item}-{fetch}");
                let body = format!(
                    "Updated {}:{} {} item {item} {} {} You are visitor {} session s{:x}",
                    draw(24),
                    draw(60),
                    boilerplate[..middle].join(" "),
                    text.join(" "),
                    boilerplate[middle..].join(" "),
                    draw(100_000),
                    draw(1 << 30)
                );
                let url = format!("http://www.shop.example/{section}/{item}?fetch={fetch}");
                lines += &(serde_json::json!({"id": id, "url": url, "text": body}).to_string() + "\n");
                cluster_of.insert(id, format!("{section}-{item}"));
            }
        }
    }
    let path = directory.join("pages.jsonl");
    fs::write(&path, lines)?;
    Ok(Labelled {
        name: "a generated site of database pages",
        directory: path,
        cluster_of,
        part_of: HashMap::new(),
        frame_of: HashMap::new(),
    })
}

/// A word whose frequency falls with its rank, as in a language.
fn word(drawn: u64) -> String {
    let rank = (1.0 + drawn as f64).powf(0.6);
    format!("w{rank:.0}")
}
