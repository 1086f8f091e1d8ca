//! The main job, from files to evidence. Read this first: it wires the stages.
//!
//! read → text → features → sketch → candidates → verify → cluster → report

mod against;
mod assembler;
mod assign;
mod checkpoint;
mod comparison;
mod entries;
mod first_reading;
mod held_pages;
mod inputs;
mod likely;
mod limits;
pub mod parts;
mod search;
mod second_reading;
mod sketched_batch;
mod verification;
mod whole_pages;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::config::Config;
use crate::corpus_stats;
use crate::error::{Error, Result, SkippedRecord};
use crate::files;
use crate::job::RunOptions;
use crate::observe::{Observer, Stage, check_cancelled};
use crate::plan::Plan;
use crate::read::{Corpus, STDIN, Source};
use crate::report::run::{Resources, StageUse};
use crate::report::summary::Summary;
use crate::report::{self, Findings};
use crate::work_dir::WorkDir;
pub(crate) use against::Against;
use inputs::Inputs;
pub(crate) use limits::{
    BASE_BYTES, FEATURES_SHARE, INDEX_BYTES_PER_FEATURE, LEARNING_BYTES, LEAST_INDEX_BYTES, MOST_ROOM_BYTES,
    SKETCHES_SHARE, TABLE_SHARE,
};

/// What a run leaves behind, beside the files.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The counts, as in `summary.json`.
    pub summary: Summary,
    /// The first skipped record of each kind.
    pub skipped_examples: Vec<SkippedRecord>,
    /// Time and bytes of each stage.
    pub stages: Vec<StageUse>,
    /// Features that were held of a page, on average, where candidates are found by them.
    pub features_per_page: Option<f64>,
    /// The output directory.
    pub output: PathBuf,
}

/// Finds and removes near-duplicates: the whole of `lookalike dedup`.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
/// use lookalike::{Config, Method, RunOptions, Silent, dedup};
///
/// let story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. ".repeat(5);
/// std::fs::write(at("pages.csv"), format!("id,text\na,{story:?}\nb,{:?}\n", story.to_uppercase())).unwrap();
///
/// let mut config = Config::new(Method::named("simhash")?);
/// config.groups.keep = "longest".parse().unwrap();
/// let mut options = RunOptions::new([at("pages.csv")], at("out"));
/// options.threads = 1;
/// let outcome = dedup(&config, &options, &Silent)?;
/// assert_eq!((outcome.summary.pages, outcome.summary.dropped), (2, 1));
/// # Ok::<(), lookalike::Error>(())
/// ```
///
/// # Errors
/// Whatever stops the run; bad records do not, unless `strict` is set. Nothing half-written stays.
pub fn dedup(config: &Config, options: &RunOptions, observer: &dyn Observer) -> Result<Outcome> {
    config.check()?;
    options.outputs.check()?;
    let work = WorkDir::open(report::result_files(), &options.output, options.force, options.resume)?;
    if options.inputs.iter().any(|input| input == STDIN) {
        check_earlier(options, &work, None)?; // before all of it is copied
    }
    let inputs = Inputs::open(config, options, &work)?;
    dedup_inputs(config, options, inputs, work, observer)
}

/// The same of sources that need not be files; `inputs` of the options are only what they are called.
///
/// # Errors
/// As [`dedup`].
pub fn dedup_sources(
    config: &Config,
    options: &RunOptions,
    sources: Vec<Source>,
    observer: &dyn Observer,
) -> Result<Outcome> {
    config.check()?;
    let work = WorkDir::open(report::result_files(), &options.output, options.force, options.resume)?;
    let inputs = Inputs { corpus: config.corpus(sources), against: None };
    dedup_inputs(config, options, inputs, work, observer)
}

fn dedup_inputs(
    config: &Config,
    options: &RunOptions,
    inputs: Inputs,
    work: WorkDir,
    observer: &dyn Observer,
) -> Result<Outcome> {
    let Inputs { corpus, against } = inputs;
    let corpus = corpus.unpacked_by(options.threads);
    options.outputs.check_sources(&corpus)?;
    let config = &Against::config(against.as_ref(), config);
    let job = checkpoint::job(config, &corpus, against.as_ref());
    if let Err(error) = check_earlier(options, &work, job) {
        if matches!(error, Error::Complete { .. }) {
            work.nothing_to_resume();
        }
        return Err(error);
    }
    let outcome = thread_pool(options.threads)?.install(|| {
        let mut resources = Resources::start();
        let plan = plan(config, options, &corpus, observer, &mut resources)?;
        let against = against.as_ref();
        let learns = AtomicBool::default();
        let run = Run { config, options, observer, plan: &plan, work: &work, resources, against, job, learns };
        run.run(&corpus)
    })?;
    work.publish()?;
    Ok(outcome)
}

/// A result of another job is not replaced unless that is wanted; one of the same job is made again, or is what a
/// resumed run would come to.
fn check_earlier(options: &RunOptions, work: &WorkDir, job: Option<u64>) -> Result<()> {
    if !files::is_result(work.output()) || options.replace {
        return Ok(());
    }
    let path = options.output.clone();
    match (report::run::is_of_job(work.output(), job), options.resume) {
        (false, _) => Err(Error::OtherResult { path }),
        (true, true) => Err(Error::Complete { path }),
        (true, false) => Ok(()),
    }
}

/// The method's plan, with what it has to know of the whole corpus.
fn plan(
    config: &Config,
    options: &RunOptions,
    corpus: &Corpus,
    observer: &dyn Observer,
    resources: &mut Resources,
) -> Result<Plan> {
    let needs = config.corpus_needs();
    // Frames alone are learnt while pages are read.
    if !needs.rarity && !needs.antecedents {
        return Ok(config.plan());
    }
    observer.start(Stage::Count, needs.passes() * corpus.bytes());
    let started = Instant::now();
    let stats = corpus_stats::count(config, corpus, options.threads, observer)?;
    resources.add(Stage::Count, started.elapsed(), 0);
    observer.finish(Stage::Count);
    if needs.antecedents && stats.antecedents.is_empty() {
        let expected = "no word occurs twice in any page, so none can be chosen; give a list, for example is,the,said";
        return Err(Error::invalid("antecedents", "auto", expected));
    }
    Ok(config.plan_with(Some(Arc::new(stats))))
}

pub(crate) fn thread_pool(threads: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Error::invalid("threads", threads, format!("cannot start the threads: {error}")))
}

/// Everything the stages share.
pub(crate) struct Run<'a> {
    pub(crate) config: &'a Config,
    pub(crate) options: &'a RunOptions,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) plan: &'a Plan,
    pub(crate) work: &'a WorkDir,
    pub(crate) resources: Resources,
    pub(crate) against: Option<&'a Against>,
    /// What decides the result, as a number.
    pub(crate) job: Option<u64>,
    /// Whether there was a page of HTML, so that frames are learnt.
    pub(crate) learns: AtomicBool,
}

impl Run<'_> {
    /// The stages, one after the other.
    fn run(mut self, corpus: &Corpus) -> Result<Outcome> {
        let source_bytes = corpus.bytes();
        let mut sketched = self.stage(Stage::Read, source_bytes, |run| run.read(corpus))?;
        let plan = sketched.held.as_ref().map_or(self.plan, |held| &held.1).clone();
        let mut run = Run { plan: &plan, ..self };
        let known = run.known_comparison(sketched.pages.len() as u64)?;
        let searched = run.stage(Stage::Candidates, 0, |run| run.search(corpus, &sketched, known.is_some()))?;
        let columns_spilled = sketched.is_spilled();
        sketched.free_keys(run.plan.columns());
        let likely = sketched.likely.take();
        let mut compared = match known {
            Some(known) => known,
            None => {
                let bytes_again = sketched.bytes_to_read_again(&searched.candidate_pages, likely.as_ref());
                let compared =
                    run.stage(Stage::Verify, bytes_again, |run| run.verify(corpus, &sketched, &searched, likely))?;
                run.keep_comparison(&compared)?;
                compared
            }
        };
        sketched.free_sketches();
        let (pages, held) = (&sketched.pages, sketched.held());
        let groups = run.stage(Stage::Cluster, 0, |run| {
            let pairs = &compared.verified.pairs;
            let mut groups = run.group((corpus, held), pages, &searched.sets, &searched.order, pairs, None)?;
            run.add_page_similarities((corpus, held), pages, &mut compared.verified, &mut groups.fates)?;
            Ok(groups)
        })?;

        let findings = Findings {
            config: run.config,
            plan: run.plan,
            reading: corpus,
            pages,
            sets: &searched.sets,
            verified: &compared.verified,
            fates: &groups.fates,
            component: &groups.component,
            candidates: compared.counted.candidates,
            candidate_pages: compared.counted.candidate_pages,
            collisions: compared.counted.collisions,
            tables: compared.counted.tables,
            filters: compared.counted.filters,
            repeated_ids: sketched.repeated_ids,
            ignored_files: corpus.ignored_files,
            results_not_read: &corpus.results_not_read,
            other_records: &sketched.other_records,
            scopes: &sketched.scopes,
            skipped: &sketched.skipped,
            unread_ranks: sketched.unread_ranks.as_ref(),
            source_count: corpus.sources.len() as u64,
            source_bytes,
            earlier: None,
            against: run.options.against.as_deref().map(|path| (path, &sketched.against_names)),
        };
        let summary = run.stage(Stage::Write, pages.len() as u64, |run| {
            report::write(&findings, run.work.path(), &run.options.output, run.options.outputs, run.observer)
        })?;
        let spilled = [
            ("page strings", pages.is_spilled()),
            ("sketches", columns_spilled),
            ("features", compared.counted.features_spilled),
            ("pairs", searched.candidates.pairs.is_spilled() || compared.verified.pairs.is_spilled()),
        ];
        let stages = run.resources.write(run.work.path(), &run.options.facts(run.job, source_bytes, &spilled))?;
        Ok(Outcome {
            summary,
            skipped_examples: sketched.skipped.examples,
            stages,
            features_per_page: compared.counted.features_per_page,
            output: run.options.output.clone(),
        })
    }

    /// Runs one stage, reported to the observer and timed.
    pub(crate) fn stage<T>(
        &mut self,
        stage: Stage,
        total: u64,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        check_cancelled(self.observer)?;
        self.observer.start(stage, total);
        let started = Instant::now();
        let result = work(self)?;
        self.resources.add(stage, started.elapsed(), total);
        self.observer.finish(stage);
        Ok(result)
    }
}
