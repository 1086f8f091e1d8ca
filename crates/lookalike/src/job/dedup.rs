//! The main job, from files to evidence. Read this first: it wires the stages.
//!
//! read → text → features → sketch → candidates → verify → cluster → report

mod against;
mod assign;
mod checkpoint;
mod first_reading;
mod search;
mod second_reading;
mod sketched_batch;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::candidate::matching::seeded_order_key;
use crate::candidate::pair_filter::PairFilter;
use crate::cluster::components::smallest_ids;
use crate::cluster::fates;
use crate::cluster::identity::{IdentitySets, in_rank_order};
use crate::cluster::rank::Ranks;
use crate::config::{Config, Keep, Matching};
use crate::corpus_stats;
use crate::error::{Error, Result, SkippedRecord};
use crate::job::RunOptions;
use crate::observe::{Observer, Stage};
use crate::page::{PageId, PageVec};
use crate::page_table::{BYTES_PER_PAGE, PageTable};
use crate::plan::Plan;
use crate::read::{Corpus, discover};
use crate::report::run::{Resources, StageUse};
use crate::report::skipped::SkippedLog;
use crate::report::summary::Summary;
use crate::report::{self, Findings, files};
use crate::sketch::page_sets::PageSets;
use crate::spill::Spill;
use crate::verify::{Verified, verify};
use crate::work_dir::WorkDir;
pub(crate) use against::Against;
use against::IndexMatch;

/// What a run leaves behind, beside the files.
#[derive(Debug)]
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

/// Memory that is not for pages: code, buffers of readers and writers, the report.
pub const BASE_BYTES: u64 = 96 << 20;

/// Memory that an inverted index takes for each feature, while it is made.
pub const INDEX_BYTES_PER_FEATURE: u64 = 40;

/// Finds and removes near-duplicates: the whole of `lookalike dedup`.
///
/// # Errors
/// Whatever stops the run; bad records do not, unless `strict` is set. Nothing half-written stays.
pub fn dedup(config: &Config, options: &RunOptions, observer: &dyn Observer) -> Result<Outcome> {
    config.check()?;
    check_seeds(config, options)?;
    let work = WorkDir::open(&options.output, options.force, options.resume)?;
    let mut sources = discover(&options.inputs, config.read.format, work.output(), Some(work.path()))?;
    let first_seed = sources.list.len();
    if !options.seeds.is_empty() {
        let seeds = discover(&options.seeds, config.read.format, work.output(), Some(work.path()))?;
        for seed in &seeds.list {
            if let Some(source) = sources.list.iter().find(|source| source.is_same(seed)) {
                let expected = "this file is also an input; a page is either an example or matched with one";
                return Err(Error::invalid("seeds", &source.display, expected));
            }
        }
        sources.list.extend(seeds.list);
        sources.problems.extend(seeds.problems);
    }
    let against = match &options.against {
        None => None,
        Some(_) if !options.seeds.is_empty() || config.plan().matching != Matching::Full => {
            let reason = "goes with `matching` full: one pass and examples have an order of their own";
            return Err(Error::conflict("against", reason));
        }
        Some(path)
            if path
                .canonicalize()
                .is_ok_and(|path| work.output().canonicalize().is_ok_and(|output| output == path)) =>
        {
            let expected = "is also the `output`, which would replace it; choose another";
            return Err(Error::invalid("against", path.display(), expected));
        }
        Some(path) => Some(Against::open(path, config, work.path())?),
    };
    if let Some(against) = &against {
        sources.list.extend(against.sources());
    }
    let corpus = config.corpus(sources);
    let pool = thread_pool(options.threads)?;
    pool.install(|| {
        let mut resources = Resources::start();
        let stats = if config.corpus_needs().any() {
            observer.start(Stage::Count, config.corpus_needs().passes() * corpus.bytes());
            let started = Instant::now();
            let stats = corpus_stats::count(config, &corpus, options.threads, observer)?;
            resources.add(Stage::Count, started.elapsed(), 0);
            observer.finish(Stage::Count);
            if config.corpus_needs().antecedents && stats.antecedents.is_empty() {
                let expected =
                    "no word occurs twice in any page, so none can be chosen; give a list, for example is,the,said";
                return Err(Error::invalid("antecedents", "auto", expected));
            }
            Some(Arc::new(stats))
        } else {
            None
        };
        let plan = config.plan_with(stats);
        let run = Run { config, options, observer, plan: &plan, work: &work, resources, against: against.as_ref() };
        run.run(&corpus, first_seed)
    })
    .and_then(|outcome| work.publish().map(|()| outcome))
}

/// Examples and the way of matching that starts from them need each other.
fn check_seeds(config: &Config, options: &RunOptions) -> Result<()> {
    match config.plan().matching {
        Matching::Seeded if options.seeds.is_empty() => {
            Err(Error::conflict("matching", "seeded starts from examples: name files of pages with `seeds`"))
        }
        Matching::Full | Matching::Incremental if !options.seeds.is_empty() => {
            Err(Error::conflict("seeds", "is for `matching` seeded"))
        }
        _ => Ok(()),
    }
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
}

impl Run<'_> {
    /// Sources from `first_seed` on are examples, and no part of what is cleaned.
    fn run(mut self, corpus: &Corpus, first_seed: usize) -> Result<Outcome> {
        let mut skipped = SkippedLog::create(&self.work.path().join(files::SKIPPED), self.options.strict)?;
        for problem in &corpus.problems {
            self.observer.skipped(problem);
            skipped.add(problem)?;
        }
        let total_bytes = corpus.bytes();
        let mut sketched = self.stage(Stage::Read, total_bytes, |run| run.sketch_pages(corpus, &mut skipped))?;
        let skipped = skipped.finish()?;
        if sketched.pages.page_count() == 0 {
            return Err(corpus.no_pages(&self.options.inputs, &skipped.examples));
        }
        self.check_policy(&sketched.pages)?;
        let against_names = match self.against {
            Some(against) => against.name_pages(&mut sketched.pages, first_seed)?,
            None => HashMap::new(),
        };
        let repeated_ids = sketched.pages.rename_repeated_ids(&corpus.sources)?;
        let is_seed = |pages: &PageTable, page: PageId| pages.place(page).source.index() >= first_seed;

        let (ranks, sets, searched) = self.stage(Stage::Candidates, 0, |run| {
            let pages = &sketched.pages;
            let ranks = run.ranks(pages, &|page| is_seed(pages, page))?;
            let sets = IdentitySets::new(&pages.identity, &pages.tokens, &|page| !pages.is_revisit(page), &|page| {
                ranks.of(page)
            });
            let searched = if run.plan.matches_in_order() {
                search::Searched::default()
            } else {
                run.search(&sketched, &sets, &|page| ranks.of(sets.best[page]))?
            };
            Ok((ranks, sets, searched))
        })?;
        let columns_spilled = sketched.columns.iter().any(Spill::is_spilled);
        let rank = |page: PageId| ranks.of(sets.best[page]);
        let order = in_rank_order(&sets, &rank);

        let candidates = &searched.candidates;
        let candidate_pages = candidates.pages();
        let is_read_again = sketched.sets.is_none();
        let wanted = sketched.pages.wanted(&candidate_pages);
        let bytes = if is_read_again { wanted.0.iter().map(|wanted| wanted.length).sum() } else { 0 };
        let mut collisions = searched.collisions;
        let (verified, sets_spilled) = self.stage(Stage::Verify, bytes, |run| {
            let pages = &sketched.pages;
            if run.plan.matches_in_order() {
                let seeds = order.partition_point(|&page| is_seed(pages, sets.best[page]));
                let is_spilled = sketched.sets.as_ref().is_some_and(PageSets::is_spilled);
                let (verified, met) = run.match_pages(&sketched, &order, seeds)?;
                collisions = met;
                return Ok((verified, is_spilled));
            }
            let groups = run.groups(&sketched)?;
            let filter = run.wanted_filter(pages, groups.as_deref());
            let is_wanted = |left: PageId, right: PageId| filter.is_wanted(left, right);
            let read_again;
            let page_sets = match &sketched.sets {
                Some(sets) => sets,
                None => {
                    read_again = run.page_sets(corpus, pages, &candidate_pages)?;
                    &read_again
                }
            };
            let mut verified = verify(candidates, page_sets, run.plan, &rank, &is_wanted)?;
            run.settle_crowds(candidates, page_sets, &order, pages.len(), &is_wanted, &mut verified)?;
            if run.against.is_some() {
                let is_theirs = |page: PageId| is_seed(pages, sets.best[page]);
                run.against_pairs(&mut verified, &sketched.index_matches, &sets, &is_theirs);
            }
            Ok((verified, page_sets.is_spilled()))
        })?;
        let features_per_page =
            sketched.sets.as_ref().map(|sets| sets.feature_count() as f64 / sets.len().max(1) as f64);
        let filters = report::summary::FilterReport::new(self.plan, sketched.sets.as_ref());
        sketched.columns.clear();
        sketched.sets = None;
        let pages = &sketched.pages;

        let (fates, component) = self.stage(Stage::Cluster, 0, |run| {
            let chosen = run.assign(corpus, pages, &sets, &order, &verified.pairs, None)?;
            let fates = fates(&sets, &chosen, &pages.tokens, run.config.pairs.min_tokens);
            Ok((fates, smallest_ids(pages, &sets, &verified.pairs)?))
        })?;

        let findings = Findings {
            config: self.config,
            plan: self.plan,
            reading: corpus,
            first_seed,
            pages,
            sets: &sets,
            verified: &verified,
            fates: &fates,
            component: &component,
            candidates: if self.plan.matches_in_order() { verified.compared } else { candidates.pairs.len() as u64 },
            candidate_pages: candidate_pages.len() as u64,
            collisions,
            tables: searched.tables,
            filters,
            repeated_ids,
            ignored_files: corpus.ignored_files,
            passed_over: &sketched.passed_over,
            scopes: &sketched.scopes,
            skipped: &skipped,
            source_count: corpus.sources.len() as u64,
            source_bytes: total_bytes,
            earlier: None,
            against: self.options.against.as_deref().map(|path| (path, &against_names)),
        };
        let total = pages.len() as u64;
        let summary = self.stage(Stage::Write, total, |run| {
            report::write(&findings, run.work.path(), run.options.output_options(), run.observer)
        })?;
        let spilled = [("page strings", pages.is_spilled()), ("sketches", columns_spilled), ("features", sets_spilled)];
        let stages = self.resources.write(self.work.path(), &self.options.facts(total_bytes, &spilled))?;
        Ok(Outcome {
            summary,
            skipped_examples: skipped.examples,
            stages,
            features_per_page,
            output: self.options.output.clone(),
        })
    }

    /// Pages of another corpus are not compared with each other, and are not dropped for ours.
    fn against_pairs(
        &self,
        verified: &mut Verified,
        rows: &[IndexMatch],
        sets: &IdentitySets,
        is_theirs: &dyn Fn(PageId) -> bool,
    ) {
        verified.pairs.retain(|pair| match (is_theirs(pair.left), is_theirs(pair.right)) {
            (true, true) => false,
            (false, false) => true,
            (true, false) => self.plan.can_stand_for(pair, pair.right),
            (false, true) => self.plan.can_stand_for(pair, pair.left),
        });
        verified.pairs.extend(rows.iter().filter(|row| sets.is_first(row.page)).map(IndexMatch::pair));
        verified.pairs.sort_unstable_by_key(|pair| (pair.left, pair.right));
    }

    /// The order of preference: that of the keep policy, or the one that pages are matched in, which
    /// starts with the examples.
    pub(crate) fn ranks(&self, pages: &PageTable, is_seed: &dyn Fn(PageId) -> bool) -> Result<Ranks> {
        if !self.plan.matches_in_order() {
            // What another corpus has is kept before anything of this one; revisits come last.
            let class = |page: PageId| if is_seed(page) { 0 } else { 1 + u8::from(pages.is_revisit(page)) };
            let classes: PageVec<u8> = pages.all().map(class).collect();
            return Ok(if classes.iter().all(|&class| class == 1) {
                Ranks::new(&pages.rank_keys)
            } else {
                Ranks::in_classes(&pages.rank_keys, &classes)
            });
        }
        let mut keys = PageVec::new();
        for page in pages.all() {
            let key = seeded_order_key(&pages.id(page)?, self.plan.seed);
            keys.push((!is_seed(page), pages.is_revisit(page), key));
        }
        Ok(Ranks::by_key(&keys))
    }

    /// Runs one stage, told to the observer and timed.
    pub(crate) fn stage<T>(
        &mut self,
        stage: Stage,
        total: u64,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.observer.start(stage, total);
        let started = Instant::now();
        let result = work(self)?;
        self.resources.add(stage, started.elapsed(), total);
        self.observer.finish(stage);
        Ok(result)
    }

    /// A share of the memory that is left for arrays that can spill.
    pub(crate) fn spill_limit(&self, share: f64) -> usize {
        let free = self.options.memory_bytes.saturating_sub(BASE_BYTES) as f64;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of a size is a size
        let limit = (free * share) as usize;
        limit
    }

    /// Memory a page takes, beside what can spill.
    fn bytes_per_page(&self) -> u64 {
        let is_loaded = PairFilter::needs_columns(self.plan.decision);
        let columns = if is_loaded { self.plan.columns().columns() } else { 0 };
        BYTES_PER_PAGE + 8 * columns as u64
    }
    /// A policy that no page has a value for would silently be another one.
    fn check_policy(&self, pages: &PageTable) -> Result<()> {
        if pages.rank_keys.is_empty() || pages.rank_keys.iter().any(|key| key.is_finite()) {
            return Ok(());
        }
        Err(match &self.config.groups.keep {
            Keep::Max(field) => {
                Error::invalid("keep", format!("max:{field}"), format!("no page has a number in the field '{field}'"))
            }
            Keep::Newest => {
                Error::invalid("keep", "newest", "no page has a date in a field of a usual name; use `date_field`")
            }
            _ => Error::invalid("keep", "shortest-url", "no page has a URL; use `url_field`"),
        })
    }

    fn check_floor(&self, pages: u64) -> Result<()> {
        let bytes_per_page = self.bytes_per_page();
        let needed = BASE_BYTES + pages * bytes_per_page;
        let given = self.options.memory_bytes;
        if needed > given {
            return Err(Error::MemoryFloor { given, needed, pages, bytes_per_page });
        }
        if pages > PageId::MOST_PAGES {
            return Err(Error::conflict(
                "inputs",
                format!("more than {} pages in one run: split the input", PageId::MOST_PAGES),
            ));
        }
        Ok(())
    }
}
