//! A stricter result from the pairs already verified: nothing is compared again.
//!
//! In: a result directory and a higher threshold. Out: the clusters, `kept/`, summary and report
//! that this threshold gives. The tables of pages and pairs stay as they are, so that one can go
//! back.

use std::collections::HashMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::cluster::identity::{IdentitySets, in_rank_order};
use crate::cluster::rank::rank_key;
use crate::config::{ClusterMode, Config, Keep};
use crate::corpus_stats;
use crate::error::{Error, Result, SkippedRecord};
use crate::job::RunOptions;
use crate::job::dedup::{Outcome, Run, thread_pool};
use crate::observe::{Observer, Stage};
use crate::page::{PageId, PageVec, ScoredPair, SourceId};
use crate::page_table::PageTable;
use crate::plan::{CorpusStats, Decision, NEAR_MISS_SHARE};
use crate::read::compression::Compression;
use crate::read::{Corpus, STDIN, Source, known_source};
use crate::report::run::Resources;
use crate::report::skipped::Skipped;
use crate::report::stored::{self, StoredPages, StoredSummary};
use crate::report::{self, Earlier, Findings, OutputOptions, files, sinks};
use crate::verify::Verified;
use crate::work_dir::WorkDir;

/// Stricter thresholds for a result; what is not given follows from what is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Thresholds {
    /// The similarity from which pairs count.
    pub threshold: Option<f64>,
    /// The same for two stories on one site.
    pub within_site: Option<f64>,
    /// The same for two stories on different sites.
    pub between_sites: Option<f64>,
}

impl From<f64> for Thresholds {
    fn from(threshold: f64) -> Thresholds {
        Thresholds { threshold: Some(threshold), ..Thresholds::default() }
    }
}

/// Which pairs still count.
struct Stricter {
    /// The similarity from which pairs count.
    threshold: f64,
    decision: Decision,
    /// What counts, in words.
    rule: String,
}

impl Stricter {
    fn new(given: Thresholds, config: &Config) -> Result<Stricter> {
        let stated = [
            ("threshold", given.threshold),
            ("within_site", given.within_site),
            ("between_sites", given.between_sites),
        ];
        for (name, value) in stated.iter().filter_map(|(name, value)| Some((*name, (*value)?))) {
            if !(value > 0.0 && value <= 1.0) {
                return Err(Error::invalid(name, value, "must be a similarity above 0 and at most 1"));
            }
        }
        if stated.iter().all(|row| row.1.is_none()) {
            return Err(Error::conflict("threshold", "is missing: give it, `within_site` or `between_sites`"));
        }
        let (own, is_similarity) = (config.method.threshold(), config.method.has_similarity_threshold());
        let threshold = given.threshold.unwrap_or(if is_similarity { own } else { 0.0 });
        let mut stricter = config.clone();
        if is_similarity && given.threshold.is_some() {
            stricter.method = config.method.with_threshold(threshold);
        }
        for (name, value) in stated.iter().skip(1).filter_map(|(name, value)| Some((*name, (*value)?))) {
            stricter.method.set(name, &value.to_string())?;
        }
        let too_loose = |name: &'static str, value: f64, own: f64| {
            let expected = format!(
                "is below {own}, the threshold of this result: looser pairs were not verified; run the whole job again"
            );
            Err(Error::invalid(name, value, expected))
        };
        if is_similarity && threshold < own {
            return too_loose("threshold", threshold, own);
        }
        let decision = match (config.plan().decision, stricter.plan().decision) {
            (
                Decision::Stories { within: least, between: least_between, short: least_short, .. },
                Decision::Stories { text, within, between, short },
            ) => {
                if given.within_site.is_some_and(|within| within < least) {
                    return too_loose("within_site", within, least);
                }
                if given.between_sites.is_some_and(|between| between < least_between) {
                    return too_loose("between_sites", between, least_between);
                }
                let (within, between) = (within.max(least), between.max(least_between));
                Decision::Stories { text, within, between, short: short.max(least_short) }
            }
            (_, other) if given.within_site.or(given.between_sites).is_none() => other,
            _ => {
                let reason = "is for results in which stories were compared; this one has none";
                return Err(Error::conflict("within_site", reason));
            }
        };
        Ok(Stricter { threshold, decision, rule: stricter.rule() })
    }

    /// The similarity from which a pair counts.
    fn least(&self, pair: &ScoredPair) -> f64 {
        match self.decision {
            Decision::Stories { .. } => self.decision.story_threshold(pair.same_site, pair.is_short),
            _ => self.threshold,
        }
    }
}

/// Clusters the pairs of the result in `directory` whose similarity reaches stricter `thresholds`;
/// `cluster` overrides how. Writes to `options.output`, which may be the same directory.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name);
/// use lookalike::{Config, RunOptions, Silent, dedup, recluster};
///
/// let story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. ";
/// let line = |id: &str, end: &str| format!("{{\"id\": \"{id}\", \"text\": \"{}\"}}\n", story.to_owned() + end);
/// std::fs::write(at("pages.jsonl"), line("a", "") + &line("b", "Photo: a reader.")).unwrap();
/// let input = [at("pages.jsonl").to_string_lossy().into_owned()];
/// let loose = dedup(&Config::default(), &RunOptions::new(input.clone(), at("loose")), &Silent)?;
/// let strict = recluster(&at("loose"), 0.95, None, &RunOptions::new(input, at("strict")), &Silent)?;
/// assert_eq!((loose.summary.kept, strict.summary.kept), (1, 2));
/// # Ok::<(), lookalike::Error>(())
/// ```
///
/// # Errors
/// When the directory is not a result, the threshold is below that of the result, or files are gone.
pub fn recluster(
    directory: &Path,
    thresholds: impl Into<Thresholds>,
    cluster: Option<ClusterMode>,
    options: &RunOptions,
    observer: &dyn Observer,
) -> Result<Outcome> {
    let stored = stored::summary(directory)?;
    let stricter = Stricter::new(thresholds.into(), &stored.config)?;
    let mut config = stored.config.clone();
    config.groups.cluster = cluster.unwrap_or(config.groups.cluster);
    let options = RunOptions { jsonl: directory.join(files::CLUSTERS.jsonl).exists(), ..options.clone() };
    let work = WorkDir::open(report::result_files(), &options.output, options.force, false)?;
    let is_in_place =
        directory.canonicalize().is_ok_and(|path| work.output().canonicalize().is_ok_and(|to| to == path));
    if !is_in_place && !options.replace && files::is_result(work.output()) {
        return Err(Error::OtherResult { path: options.output.clone() });
    }
    let outcome = thread_pool(options.threads)?.install(|| {
        let limit = usize::try_from(options.memory_bytes / 5).unwrap_or(usize::MAX);
        let loaded = stored::pages(directory, work.path(), limit)?;
        let sources = sources(&loaded, &stored)?;
        let corpus = config.corpus(sources);
        // Chains are compared again, with the same weights, and without the same frames.
        let needs = config.corpus_needs();
        let mut stats = CorpusStats::default();
        if (needs.rarity || needs.antecedents) && config.groups.cluster == ClusterMode::Components {
            stats = corpus_stats::count(&config, &corpus, options.threads, observer)?;
        }
        stats.frames = loaded.frames.clone();
        let plan = config.plan_with(Some(Arc::new(stats)));
        let resources = Resources::start();
        let run = Run {
            config: &config,
            options: &options,
            observer,
            plan: &plan,
            work: &work,
            resources,
            against: None,
            job: None,
        };
        cluster_again(run, directory, &stricter, &stored, loaded, &corpus)
    })?;
    work.publish()?;
    Ok(outcome)
}

fn cluster_again(
    mut run: Run<'_>,
    directory: &Path,
    stricter: &Stricter,
    stored: &StoredSummary,
    loaded: StoredPages,
    corpus: &Corpus,
) -> Result<Outcome> {
    let (pairs, weaker): (Vec<_>, Vec<_>) = loaded
        .pairs(directory, files::PAIRS)?
        .into_iter()
        .partition(|pair| run.plan.decision.reaches(pair.similarity, stricter.least(pair)));
    let mut near_misses = loaded.pairs(directory, files::NEAR_MISSES)?;
    near_misses.extend(weaker);
    near_misses.retain(|pair| pair.similarity >= stricter.least(pair) * (1.0 - NEAR_MISS_SHARE));
    near_misses.sort_by_key(|pair| (pair.left, pair.right));
    let mut verified = Verified { pairs, near_misses, compared: stored.compared_pairs, capped: Vec::new() };

    let StoredPages { mut pages, first, ids, .. } = loaded;
    pages.rank_keys = rank_keys(corpus, run.config, &pages, run.options.threads)?;
    let ranks = run.ranks(corpus, &pages)?;
    let sets = IdentitySets::from_first(first, &|page| ranks.of(page));
    let rank = |page: PageId| ranks.of(sets.best[page]);

    let groups = run.stage(Stage::Cluster, 0, |run| {
        let order = in_rank_order(&sets, &rank);
        let threshold = Some(stricter.threshold);
        let mut groups = run.group((corpus, None), &pages, &sets, &order, &verified.pairs, threshold)?;
        run.add_page_similarities((corpus, None), &pages, &mut verified, &mut groups.fates)?;
        Ok(groups)
    })?;
    // A stricter threshold gives no page another counterpart: it keeps its own, or is kept.
    let against_names = ids.against_names(directory)?;
    let skipped = count_skipped(directory)?;
    let findings = Findings {
        config: run.config,
        plan: run.plan,
        reading: corpus,
        pages: &pages,
        sets: &sets,
        verified: &verified,
        fates: &groups.fates,
        component: &groups.component,
        candidates: stored.candidate_pairs,
        candidate_pages: stored.candidate_pages,
        collisions: None,
        tables: None,
        filters: stored.filters,
        repeated_ids: stored.repeated_ids,
        ignored_files: stored.ignored_files,
        results_not_read: &stored.results_not_read,
        other_records: &stored.other_records,
        scopes: &stored.compared,
        skipped: &skipped,
        source_count: stored.sources,
        source_bytes: stored.source_bytes,
        earlier: Some(Earlier {
            threshold: stricter.threshold,
            rule: stricter.rule.clone(),
            files: stored.files.clone(),
            capped_buckets: stored.capped_buckets,
            capped: stored.capped.clone(),
            antecedents: stored.antecedents.clone(),
            tables: stored.tables,
            size_filter: stored.size_filter,
        }),
        against: stored.against.as_ref().map(|against| (Path::new(&against.path), &against_names)),
    };
    let summary = run.stage(Stage::Write, pages.len() as u64, |run| {
        // Copies that the first run made are made again.
        let copy_kept = run.options.copy_kept || sinks::has_copies(directory, &corpus.sources);
        let options = OutputOptions { copy_kept, ..run.options.output_options() };
        report::write_again(&findings, directory, run.work.path(), options, run.observer)
    })?;
    let stages = run.resources.write(run.work.path(), &run.options.facts(None, 0, &[]))?;
    Ok(Outcome {
        summary,
        skipped_examples: skipped.examples,
        stages,
        features_per_page: None,
        output: run.options.output.clone(),
    })
}

/// The sources of the earlier run, found again, and as large as they were.
fn sources(stored_pages: &StoredPages, stored: &StoredSummary) -> Result<Vec<Source>> {
    let files: HashMap<&str, _> = stored.files.iter().map(|file| (file.source.as_str(), file)).collect();
    let mut sources = Vec::new();
    for (index, display) in stored_pages.sources.iter().enumerate() {
        let origin = stored_pages.pages.origin(stored_pages.pages.pages_of(SourceId::from_index(index)).start());
        if display == STDIN {
            let reason = "this result was made from standard input, which cannot be read again; run the whole job with the new threshold";
            return Err(Error::conflict("threshold", reason));
        }
        let (source, bytes) = match files.get(display.as_str()) {
            Some(file) => (known_source(display, &file.name, Some(file.format))?, Some(file.bytes)),
            None => {
                let page = stored_pages.pages.pages_of(SourceId::from_index(index)).start();
                let name = page_file_name(&stored_pages.pages.id(page)?);
                let source = known_source(display, &name, stored.config.read.format)?;
                let bytes = stored_pages.pages.place(page).length;
                let is_plain = source.compression == Compression::None;
                (source, is_plain.then_some(bytes))
            }
        };
        if bytes.is_some_and(|bytes| bytes != source.bytes) {
            let reason = "is not the file it was when this result was made; run lookalike dedup again";
            return Err(Error::corrupt(&source.path(), reason));
        }
        sources.push(source.with_origin(origin));
    }
    Ok(sources)
}

/// The name of a page file from its page's id, which is the name unless that id was taken.
fn page_file_name(id: &str) -> String {
    let renamed = id.split_once('@').filter(|(name, rest)| rest.trim_end_matches('@') == format!("{name}:1"));
    renamed.map_or(id, |(name, _)| name).to_owned()
}

/// What the keep policy orders by. Dates and fields of the user's are not in the tables, so they
/// are read again.
fn rank_keys(corpus: &Corpus, config: &Config, pages: &PageTable, threads: usize) -> Result<PageVec<f64>> {
    if config.groups.keep == Keep::First {
        return Ok(PageVec::new());
    }
    let all: Vec<PageId> = pages.all().collect();
    let wanted = pages.wanted(&all);
    let mut keys = PageVec::filled(pages.len(), f64::INFINITY);
    corpus.scan().threads(threads).for_each_of(
        &wanted,
        || (),
        |(), page, raw| Ok(rank_key(&config.groups.keep, &raw, pages.tokens[page]).map(|key| (page, key))),
        |(page, key)| {
            keys[page] = key;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(keys)
}

/// Counts by kind from `skipped.jsonl`.
fn count_skipped(directory: &Path) -> Result<Skipped> {
    let path = directory.join(files::SKIPPED);
    let text = fs::read_to_string(&path).map_err(Error::io(&path, "read"))?;
    let mut skipped = Skipped::default();
    for line in text.lines() {
        let record: SkippedRecord = serde_json::from_str(line)
            .map_err(|error| Error::corrupt(&path, format!("cannot be understood: {error}")))?;
        skipped.count(&record);
    }
    Ok(skipped)
}
