//! Another result from the pairs already verified: nothing is compared again.
//!
//! In: a result directory, and a higher threshold, other groups, or another page to keep of each. Out: the clusters,
//! `kept/`, summary and report that this gives. The tables of pages and pairs stay as they are, so that one can go
//! back.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use xxhash_rust::xxh3::Xxh3;

use crate::cluster::decided::{DecisionReport, GroupDecision, PageDecision};
use crate::cluster::identity::{IdentitySets, in_rank_order};
use crate::cluster::rank::{rank_key, url_key};
use crate::config::{ClusterMode, Config, Keep};
use crate::corpus_stats;
use crate::error::{Error, Result, SkippedRecord};
use crate::job::RunOptions;
use crate::job::dedup::{Outcome, Run, thread_pool};
use crate::observe::{Observer, Stage};
use crate::page::{PageId, PageVec, SourceId};
use crate::page_table::PageTable;
use crate::plan::{CorpusStats, NEAR_MISS_SHARE};
use crate::read::compression::Compression;
use crate::read::{Corpus, STDIN, Source, known_source};
use crate::report::outputs::KeptFormat;
use crate::report::run::Resources;
use crate::report::skipped::Skipped;
use crate::report::stored::stricter::Stricter;
use crate::report::stored::{self, PageIds, StoredPages, StoredSummary};
use crate::report::summary::Thresholds;
use crate::report::{self, Earlier, Findings, files, sinks};
use crate::spill::Scratch;
use crate::verify::{self, Verified};
use crate::work_dir::WorkDir;

/// What is done in another way than before; what is not given stays as it was.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Regrouping {
    /// Stricter thresholds.
    pub thresholds: Thresholds,
    /// How pairs become groups.
    pub cluster: Option<ClusterMode>,
    /// Which page of a group stays.
    pub keep: Option<Keep>,
    /// Patterns of sources whose pages stay before those of all others; an empty list prefers none.
    pub prefer: Option<Vec<String>>,
    /// What a person decided about groups: it prevails.
    pub decisions: Option<Vec<GroupDecision>>,
}

impl From<f64> for Regrouping {
    fn from(threshold: f64) -> Regrouping {
        Thresholds::from(threshold).into()
    }
}

impl From<Thresholds> for Regrouping {
    fn from(thresholds: Thresholds) -> Regrouping {
        Regrouping { thresholds, ..Regrouping::default() }
    }
}

/// Clusters the pairs of the result in `directory` again, in another way: by stricter thresholds, in other groups, or with
/// another page of each group. Writes to `options.output`, which may be the same directory.
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
/// let strict = recluster(&at("loose"), 0.95, &RunOptions::new(input, at("strict")), &Silent)?;
/// assert_eq!((loose.summary.kept, strict.summary.kept), (1, 2));
/// # Ok::<(), lookalike::Error>(())
/// ```
///
/// # Errors
/// When the directory is not a result, the threshold is below that of the result, or files are gone.
pub fn recluster(
    directory: &Path,
    regrouping: impl Into<Regrouping>,
    options: &RunOptions,
    observer: &dyn Observer,
) -> Result<Outcome> {
    let stored = stored::summary(directory)?;
    let regrouping = regrouping.into();
    if regrouping == Regrouping::default() {
        let reason = "is missing: say what changes: `threshold`, `within_site`, `between_sites`, `cluster`, `keep`, `prefer` or `decisions`";
        return Err(Error::conflict("threshold", reason));
    }
    let Regrouping { thresholds, cluster, keep, prefer, decisions } = regrouping;
    // Without new thresholds, those of the last clustering still count.
    let asked = if thresholds == Thresholds::default() { stored.reclustered.unwrap_or_default() } else { thresholds };
    let stricter = Stricter::new(asked, &stored.config)?;
    let mut config = stored.config.clone();
    config.groups.cluster = cluster.unwrap_or(config.groups.cluster);
    config.groups.keep = keep.unwrap_or(config.groups.keep);
    config.groups.prefer = prefer.unwrap_or(config.groups.prefer);
    config.check()?;
    let mut outputs = options.outputs.or(stored.outputs);
    outputs.jsonl |= directory.join(files::CLUSTERS.jsonl).exists();
    outputs.check()?;
    let options = RunOptions { outputs, ..options.clone() };
    let work = WorkDir::open(report::result_files(), &options.output, options.force, false)?;
    let is_in_place =
        directory.canonicalize().is_ok_and(|path| work.output().canonicalize().is_ok_and(|to| to == path));
    let job = job(directory, &config, asked, decisions.as_deref())?;
    let is_other = || files::is_result(work.output()) && !report::run::is_of_job(work.output(), Some(job));
    if !is_in_place && !options.replace && is_other() {
        return Err(Error::OtherResult { path: options.output.clone() });
    }
    let outcome = thread_pool(options.threads)?.install(|| {
        let limit = usize::try_from(options.memory_limit() / 5).unwrap_or(usize::MAX);
        let loaded = stored::pages(directory, work.path(), limit)?;
        let sources = sources(&loaded, &stored)?;
        let corpus = config.corpus(sources);
        outputs.check_sources(&corpus)?;
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
            job: Some(job),
            learns: AtomicBool::default(),
        };
        cluster_again(run, directory, (&stricter, decisions.as_deref()), &stored, loaded, &corpus)
    })?;
    work.publish()?;
    Ok(outcome)
}

/// What is done to which pairs, as a number. The tables of pages and pairs stay the same in every clustering of them.
fn job(directory: &Path, config: &Config, asked: Thresholds, decisions: Option<&[GroupDecision]>) -> Result<u64> {
    let mut hash = Xxh3::new();
    hash.update(format!("recluster {:016x} {asked:?} {decisions:?}", config.hash()).as_bytes());
    let mut buffer = vec![0; 1 << 20];
    for table in [files::PAGES, files::PAIRS] {
        let path = directory.join(table.parquet);
        let mut file = fs::File::open(&path).map_err(Error::io(&path, "read"))?;
        loop {
            let read = file.read(&mut buffer).map_err(Error::io(&path, "read"))?;
            if read == 0 {
                break;
            }
            hash.update(&buffer[..read]);
        }
    }
    Ok(hash.digest())
}

fn cluster_again(
    mut run: Run<'_>,
    directory: &Path,
    (stricter, decisions): (&Stricter, Option<&[GroupDecision]>),
    stored: &StoredSummary,
    loaded: StoredPages,
    corpus: &Corpus,
) -> Result<Outcome> {
    let mut pairs = run.list(loaded.pages.len() as u64);
    let mut near_misses = pairs.another();
    for (table, was_accepted) in [(files::PAIRS, true), (files::NEAR_MISSES, false)] {
        loaded.for_each_pair(directory, table, |pair| {
            if was_accepted && stricter.counts(&pair) {
                pairs.push(pair)
            } else if pair.similarity >= stricter.least(&pair) * (1.0 - NEAR_MISS_SHARE) {
                near_misses.push(pair)
            } else {
                Ok(())
            }
        })?;
    }
    verify::sort(&mut near_misses);
    let mut verified = Verified { pairs, near_misses, compared: stored.compared_pairs, capped: Vec::new() };

    let StoredPages { mut pages, first, ids, .. } = loaded;
    pages.rank_keys = rank_keys(corpus, run.config, &pages, run.options.threads)?;
    run.check_policy(&pages, None)?;
    let ranks = run.ranks(corpus, &pages)?;
    let sets = IdentitySets::from_first(first, &|page| ranks.of(page));
    let rank = |page: PageId| ranks.of(sets.best[page]);

    let mut report = decisions.map(|_| DecisionReport::default());
    let groups = run.stage(Stage::Cluster, 0, |run| {
        let order = in_rank_order(&sets, &rank);
        let threshold = Some(stricter.threshold);
        let mut groups = run.group((corpus, None), &pages, &sets, &order, &verified.pairs, threshold)?;
        if let (Some(report), Some(decisions)) = (&mut report, decisions) {
            let decided = about_pages(decisions, &ids, report);
            let of_page = |page: PageId| ranks.of(page);
            report.changed_pages = run.follow_decisions(
                (corpus, None),
                &pages,
                &sets,
                &verified.pairs,
                &decided,
                (&of_page, &mut groups.fates),
            )?;
        }
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
        unread_ranks: None,
        source_count: stored.sources,
        source_bytes: stored.source_bytes,
        earlier: Some(Earlier {
            threshold: stricter.threshold,
            decision: stricter.decision,
            asked: stricter.asked,
            rule: stricter.rule(),
            files: stored.files.clone(),
            capped_buckets: stored.capped_buckets,
            capped: stored.capped.clone(),
            antecedents: stored.antecedents.clone(),
            tables: stored.tables,
            size_filter: stored.size_filter,
            decisions: report,
        }),
        against: stored.against.as_ref().map(|against| (Path::new(&against.path), &against_names)),
    };
    let summary = run.stage(Stage::Write, pages.len() as u64, |run| {
        // Copies that the first run made are made again.
        let mut options = run.options.outputs;
        let is_listed = !options.no_kept && options.kept_format == KeptFormat::Same;
        options.copy_kept |= is_listed && sinks::has_copies(directory, &corpus.sources);
        report::write_again(&findings, directory, run.work.path(), &run.options.output, options, run.observer)
    })?;
    let stages = run.resources.write(run.work.path(), &run.options.facts(run.job, 0, &[]))?;
    Ok(Outcome {
        summary,
        skipped_examples: skipped.examples,
        stages,
        features_per_page: None,
        output: run.options.output.clone(),
    })
}

/// Decisions by the pages of this run; of two about one page, the later one counts.
fn about_pages(
    decisions: &[GroupDecision],
    ids: &PageIds,
    report: &mut DecisionReport,
) -> BTreeMap<PageId, PageDecision> {
    let mut found: BTreeMap<PageId, PageDecision> = BTreeMap::new();
    for decision in decisions {
        report.decisions += 1;
        let from = decision.apart_from.as_deref().map(|id| ids.find(id));
        let (Some(page), false) = (ids.find(&decision.page), from == Some(None)) else {
            report.unknown_pages += 1;
            continue;
        };
        let apart = from.flatten().map(|from| (from, decision.group.clone()));
        found.insert(page, PageDecision { keep: decision.keep, apart });
    }
    found
}

/// The sources of the earlier run, found again, and as large as they were.
fn sources(stored_pages: &StoredPages, stored: &StoredSummary) -> Result<Vec<Source>> {
    let files: HashMap<&str, _> = stored.files.iter().map(|file| (file.source.as_str(), file)).collect();
    let mut sources = Vec::new();
    for (index, display) in stored_pages.sources.iter().enumerate() {
        let origin = stored_pages.pages.origin(stored_pages.pages.pages_of(SourceId::from_index(index)).start());
        if display == STDIN {
            let reason = "this result was made from standard input, which cannot be read again; run the whole job with the new settings";
            return Err(Error::bad_input(Path::new(STDIN), reason));
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
pub(crate) fn page_file_name(id: &str) -> String {
    let renamed = id.split_once('@').filter(|(name, rest)| rest.trim_end_matches('@') == format!("{name}:1"));
    renamed.map_or(id, |(name, _)| name).to_owned()
}

/// What the keep policy orders by. Dates and fields of the user's are not in the tables, so they
/// are read again.
fn rank_keys(corpus: &Corpus, config: &Config, pages: &PageTable, threads: usize) -> Result<PageVec<f64>> {
    let keep = &config.groups.keep;
    match keep {
        Keep::First => return Ok(PageVec::new()),
        Keep::Longest => return Ok(pages.tokens.iter().map(|&tokens| -f64::from(tokens)).collect()),
        Keep::ShortestUrl => {
            let (mut keys, mut scratch) = (PageVec::new(), Scratch::default());
            for page in pages.all() {
                keys.push(url_key(pages.strings(page, &mut scratch)?.url));
            }
            return Ok(keys);
        }
        Keep::Newest | Keep::Max(_) => {}
    }
    let all: Vec<PageId> = pages.all().collect();
    let wanted = pages.wanted(&all);
    let mut keys = PageVec::filled(pages.len(), f64::INFINITY);
    corpus.scan().threads(threads).for_each_of(
        &wanted,
        || (),
        |(), page, raw| Ok(rank_key(keep, &raw, pages.tokens[page]).map(|key| (page, key))),
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
