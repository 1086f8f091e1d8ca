//! The main job, from files to evidence. Read this first: it wires the stages.
//!
//! read → text → features → sketch → candidates → verify → cluster → report

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::candidate::band_join::{BandJoin, Candidates};
use crate::cluster::identity::IdentitySets;
use crate::cluster::rank::Ranks;
use crate::cluster::{Neighbours, components, fates, star};
use crate::config::{ClusterMode, Config, Keep, RunOptions};
use crate::error::{Error, Result, SkippedRecord};
use crate::method::Plan;
use crate::observe::{Observer, Stage};
use crate::page::{PageId, RawPage, ScoredPair};
use crate::page_table::{BYTES_A_PAGE, NewPage, PageStrings, PageTable};
use crate::parallel::in_order;
use crate::read::fields::FieldNames;
use crate::read::{Batch, Reading, Source, Sources, discover};
use crate::report::run::{Resources, StageUse};
use crate::report::skipped::SkippedLog;
use crate::report::summary::Summary;
use crate::report::{self, Findings};
use crate::sketch::sketcher::Sketcher;
use crate::spill::Spill;
use crate::verify::sets::{PageSets, Room, SetBatch};
use crate::verify::verify;
use crate::work_dir::WorkDir;

/// What a run leaves behind, beside the files.
#[derive(Debug)]
pub struct Outcome {
    /// The counts, as in `summary.json`.
    pub summary: Summary,
    /// The first skipped record of each kind.
    pub skipped_examples: Vec<SkippedRecord>,
    /// Time and bytes of each stage.
    pub stages: Vec<StageUse>,
    /// The output directory.
    pub output: PathBuf,
}

/// Memory that is not for pages: code, buffers of readers and writers, the report.
pub const BASE_BYTES: u64 = 96 << 20;

/// Finds and removes near-duplicates: the whole of `lookalike dedup`.
///
/// # Errors
/// Whatever stops the run; bad records do not, unless `strict` is set. Nothing half-written stays.
pub fn dedup(config: &Config, options: &RunOptions, observer: &dyn Observer) -> Result<Outcome> {
    config.check()?;
    let plan = Plan::new(config);
    let work = WorkDir::open(&options.output, options.force)?;
    let sources = discover(&options.inputs, config.format, work.output(), Some(work.path()))?;
    let pool = thread_pool(options.threads)?;
    pool.install(|| {
        Run { config, options, observer, plan: &plan, work: &work, resources: Resources::start() }.run(&sources)
    })
    .and_then(|outcome| work.publish().map(|()| outcome))
}

pub(crate) fn thread_pool(threads: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Error::Usage(format!("--threads {threads}: cannot start the threads: {error}")))
}

/// Everything the stages share.
pub(crate) struct Run<'a> {
    pub(crate) config: &'a Config,
    pub(crate) options: &'a RunOptions,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) plan: &'a Plan,
    pub(crate) work: &'a WorkDir,
    pub(crate) resources: Resources,
}

/// What the first reading gives.
struct Sketched {
    pages: PageTable,
    /// For each band the keys of all pages.
    keys: Vec<Spill<u64>>,
}

impl Run<'_> {
    fn run(mut self, sources: &Sources) -> Result<Outcome> {
        let mut skipped = SkippedLog::create(&self.work.path().join("skipped.jsonl"), self.options.strict)?;
        for problem in &sources.problems {
            self.observer.skipped(problem);
            skipped.add(problem)?;
        }
        let reading = new_reading(self.config, &sources.list);

        let total_bytes = sources.list.iter().map(|source| source.bytes).sum();
        let mut sketched = self.stage(Stage::Read, total_bytes, |run| run.sketch_pages(&reading, &mut skipped))?;
        let skipped = skipped.finish()?;
        if sketched.pages.is_empty() {
            return Err(no_pages(self.options, sources, &skipped.examples));
        }
        self.check_policy(&sketched.pages)?;
        let repeated_ids = sketched.pages.rename_repeated_ids(&sources.list)?;
        let pages = &sketched.pages;

        let (ranks, sets, candidates) = self.stage(Stage::Candidates, 0, |run| {
            let ranks = Ranks::new(&pages.rank_keys);
            let sets = IdentitySets::new(&pages.identity, &pages.tokens, &|page| ranks.of(page));
            let candidates = run.candidates(pages, &sets, &sketched.keys)?;
            Ok((ranks, sets, candidates))
        })?;
        let keys_spilled = sketched.keys.iter().any(Spill::is_spilled);
        drop(sketched.keys);
        let rank = |page: PageId| ranks.of(sets.best[page as usize]);

        let candidate_pages = candidates.pages();
        let bytes = pages.wanted(&candidate_pages).0.iter().map(|wanted| wanted.length).sum();
        let (verified, sets_spilled) = self.stage(Stage::Verify, bytes, |run| {
            let page_sets = run.page_sets(&reading, pages, &candidate_pages)?;
            Ok((verify(&candidates, &page_sets, run.plan, &rank)?, page_sets.is_spilled()))
        })?;

        let (fates, component) = self.stage(Stage::Cluster, 0, |run| {
            let order = in_rank_order(&sets, &rank);
            let chosen = run.assign(&reading, pages, &sets, &order, &verified.pairs)?;
            Ok((
                fates(&sets, &chosen, &pages.tokens, run.config.min_tokens),
                smallest_ids(pages, &sets, &verified.pairs)?,
            ))
        })?;

        let findings = Findings {
            config: self.config,
            plan: self.plan,
            reading: &reading,
            pages,
            sets: &sets,
            verified: &verified,
            fates: &fates,
            component: &component,
            candidates: candidates.pairs.len() as u64,
            candidate_pages: candidate_pages.len() as u64,
            repeated_ids,
            ignored_files: sources.ignored,
            skipped: &skipped,
            source_count: sources.list.len() as u64,
            source_bytes: total_bytes,
            earlier: None,
        };
        let total = pages.len() as u64;
        let summary = self
            .stage(Stage::Write, total, |run| report::write(&findings, run.work.path(), run.options, run.observer))?;
        let spilled =
            [("page strings", pages.is_spilled()), ("band keys", keys_spilled), ("candidate sets", sets_spilled)];
        let stages = self.resources.write(&self.work.path().join("run.json"), self.options, total_bytes, &spilled)?;
        Ok(Outcome { summary, skipped_examples: skipped.examples, stages, output: self.options.output.clone() })
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

    /// Reads every page once: identity, tokens, band keys, strings.
    fn sketch_pages(&self, reading: &Reading<'_>, skipped: &mut SkippedLog) -> Result<Sketched> {
        let work = self.work.path();
        let mut pages = PageTable::new(work, self.spill_limit(0.1));
        let bands = if self.config.exact_only { 0 } else { self.plan.bands.bands };
        let limit = self.spill_limit(0.3) / bands.max(1);
        let mut keys: Vec<Spill<u64>> =
            (0..bands).map(|band| Spill::new(work.join(format!("band-{band}")), limit)).collect();
        let min_tokens = self.config.min_tokens;
        let mut bytes_seen = 0;
        in_order(
            self.options.threads,
            |jobs| reading.read_all(jobs),
            || Sketcher::new(self.plan, self.config.keep_case),
            |sketcher, batch: Batch| {
                let mut out = SketchedBatch {
                    rows: Vec::new(),
                    strings: String::new(),
                    keys: vec![Vec::new(); bands],
                    skipped: Vec::new(),
                };
                batch.visit(reading, &mut |found| {
                    match found {
                        Ok(page) => {
                            out.push(&page, sketcher, &reading.sources[page.source as usize], self.config, min_tokens);
                        }
                        Err(record) => out.skipped.push(record),
                    }
                    Ok(())
                })?;
                Ok(out)
            },
            |batch| {
                for record in &batch.skipped {
                    self.observer.skipped(record);
                    skipped.add(record)?;
                }
                let count = batch.rows.len() as u64;
                batch.append_to(&mut pages, &mut keys)?;
                self.check_floor(pages.len() as u64)?;
                let bytes_read = reading.bytes_read.load(Ordering::Relaxed);
                self.observer.advance(bytes_read - bytes_seen, count);
                bytes_seen = bytes_read;
                Ok(ControlFlow::Continue(()))
            },
        )?;
        pages.finish()?;
        keys.iter_mut().try_for_each(Spill::finish)?;
        Ok(Sketched { pages, keys })
    }

    /// A policy that no page has a value for would silently be another one.
    fn check_policy(&self, pages: &PageTable) -> Result<()> {
        if pages.rank_keys.is_empty() || pages.rank_keys.iter().any(|key| key.is_finite()) {
            return Ok(());
        }
        Err(Error::Usage(match &self.config.keep {
            Keep::Max(field) => format!("--keep max:{field}: no page has a number in the field '{field}'"),
            Keep::Newest => "--keep newest: no page has a date in a field of a usual name; use --date-field".to_owned(),
            _ => "--keep shortest-url: no page has a URL; use --url-field".to_owned(),
        }))
    }

    fn check_floor(&self, pages: u64) -> Result<()> {
        let needed = BASE_BYTES + pages * BYTES_A_PAGE;
        let given = self.options.memory_bytes;
        if needed > given {
            return Err(Error::MemoryFloor { given, needed, pages, bytes_a_page: BYTES_A_PAGE });
        }
        if pages > u64::from(PageId::MAX) {
            return Err(Error::Usage(format!("more than {} pages in one run: split the input", PageId::MAX)));
        }
        Ok(())
    }

    /// Pages that stand for their identity set and are long enough, joined by their band keys.
    fn candidates(&self, pages: &PageTable, sets: &IdentitySets, keys: &[Spill<u64>]) -> Result<Candidates> {
        let takes_part =
            |page: PageId| sets.is_first(page) && pages.tokens[page as usize] >= self.config.min_tokens.max(1);
        let mut join = BandJoin::new(&takes_part, self.config.bucket_limit);
        let mut scratch = crate::spill::Scratch::default();
        for (band, keys) in keys.iter().enumerate() {
            join.add(band, keys.read(0..keys.len(), &mut scratch)?);
        }
        Ok(join.finish())
    }

    /// Reads the candidate pages again, and only them: shingle sets and min-values.
    fn page_sets(&self, reading: &Reading<'_>, pages: &PageTable, wanted_pages: &[PageId]) -> Result<PageSets> {
        let wanted = pages.wanted(wanted_pages);
        let table_bytes = usize::try_from(pages.len() as u64 * BYTES_A_PAGE).unwrap_or(usize::MAX);
        let limit = self.spill_limit(1.0).saturating_sub(table_bytes) / 2;
        let mut sets = PageSets::new(self.work.path(), limit, self.plan.hasher.functions());
        let shingles = wanted_pages.iter().map(|&page| pages.tokens[page as usize] as usize).sum();
        sets.reserve(wanted_pages.len(), shingles);
        // Batches go round, like the readers' buffers and for the same reason.
        let spare: Mutex<Vec<SetBatch>> = Mutex::default();
        let spare_batches = || spare.lock().unwrap_or_else(PoisonError::into_inner);
        in_order(
            self.options.threads,
            |jobs| reading.read_wanted(&wanted, jobs),
            || Sketcher::new(self.plan, self.config.keep_case),
            |sketcher, batch: Batch| {
                let mut read = spare_batches().pop().unwrap_or_default();
                let mut bytes = 0;
                batch.visit(reading, &mut |found| {
                    // Damage was reported in the first reading.
                    let Ok(raw) = found else { return Ok(()) };
                    let Some(page) = wanted.page_of(raw.source, raw.record) else { return Ok(()) };
                    let known = pages.identity.get(page as usize);
                    let found = sketcher.read(&raw).identity;
                    if known.is_some_and(|known| *known != found) {
                        return Err(changed(reading, raw.source, raw.record));
                    }
                    read.push(page, sketcher.set());
                    bytes += raw.length;
                    Ok(())
                })?;
                Ok((read, bytes))
            },
            |(mut read, bytes)| {
                sets.append(&read)?;
                self.observer.advance(bytes, read.len() as u64);
                read.clear();
                spare_batches().push(read);
                Ok(ControlFlow::Continue(()))
            },
        )?;
        if sets.len() != wanted_pages.len() {
            let missing = wanted.0.iter().find(|wanted| !sets.contains(wanted.page));
            return Err(missing.map_or_else(
                || Error::Usage("candidate pages could not be read again".to_owned()),
                |missing| changed(reading, missing.source, missing.record),
            ));
        }
        sets.finish()?;
        Ok(sets)
    }

    /// For every set the set that is kept in its place, and the exact similarity to it.
    pub(crate) fn assign(
        &self,
        reading: &Reading<'_>,
        pages: &PageTable,
        sets: &IdentitySets,
        order: &[PageId],
        pairs: &[ScoredPair],
    ) -> Result<Vec<(PageId, f64)>> {
        if self.config.cluster == ClusterMode::Star {
            return Ok(star::assign(pages.len(), order, &Neighbours::new(pages.len(), pairs)));
        }
        let chosen = components::assign(order, &mut components::Components::of(&sets.first, pairs), pages.len());
        let known = |page: PageId, kept: PageId| {
            let key = (page.min(kept), page.max(kept));
            pairs.binary_search_by_key(&key, |pair| (pair.left, pair.right)).ok().map(|at| pairs[at].similarity)
        };
        // Pages that only a chain connects to the kept one are compared with it now.
        let unknown: Vec<(PageId, PageId)> = order
            .iter()
            .map(|&page| (page, chosen[page as usize]))
            .filter(|&(page, kept)| page != kept && known(page, kept).is_none())
            .collect();
        let mut needed: Vec<PageId> = unknown.iter().flat_map(|&(page, kept)| [page, kept]).collect();
        needed.sort_unstable();
        needed.dedup();
        let page_sets = self.page_sets(reading, pages, &needed)?;
        let mut assigned: Vec<(PageId, f64)> = (0..).take(pages.len()).map(|page| (page, 1.0)).collect();
        let mut room = Room::default();
        for &page in order {
            let kept = chosen[page as usize];
            if page != kept {
                let similarity = match known(page, kept) {
                    Some(similarity) => similarity,
                    None => page_sets.compare(page, kept, self.plan, &mut room)?.similarity,
                };
                assigned[page as usize] = (kept, similarity);
            }
        }
        Ok(assigned)
    }
}

/// One batch on its way from a worker to the table.
struct SketchedBatch {
    rows: Vec<BatchRow>,
    strings: String,
    keys: Vec<Vec<u64>>,
    skipped: Vec<SkippedRecord>,
}

struct BatchRow {
    source: u32,
    record: u64,
    offset: Option<u64>,
    length: u64,
    tokens: u32,
    identity: u128,
    rank_key: Option<f64>,
    id_bytes: usize,
    url_bytes: Option<usize>,
    title_bytes: Option<usize>,
}

impl SketchedBatch {
    fn push(
        &mut self,
        page: &RawPage<'_>,
        sketcher: &mut Sketcher<'_>,
        source: &Source,
        config: &Config,
        min_tokens: u32,
    ) {
        let facts = sketcher.read(page);
        let start = self.strings.len();
        match page.id.as_deref() {
            Some(id) => self.strings.push_str(id),
            None => self.strings.push_str(&format!("{}:{}", source.name, page.record)),
        }
        let id_bytes = self.strings.len() - start;
        self.strings.push_str(page.url.as_deref().unwrap_or_default());
        self.strings.push_str(facts.title.unwrap_or_default());
        self.rows.push(BatchRow {
            source: page.source,
            record: page.record,
            offset: page.offset,
            length: page.length,
            tokens: facts.tokens,
            identity: facts.identity,
            rank_key: rank_key(config, page, facts.tokens),
            id_bytes,
            url_bytes: page.url.as_deref().map(str::len),
            title_bytes: facts.title.map(str::len),
        });
        if self.keys.is_empty() {
            return;
        }
        if facts.tokens >= min_tokens.max(1) {
            for (keys, key) in self.keys.iter_mut().zip(sketcher.keys()) {
                keys.push(key);
            }
        } else {
            self.keys.iter_mut().for_each(|keys| keys.push(0)); // takes no part in the join
        }
    }

    fn append_to(self, pages: &mut PageTable, keys: &mut [Spill<u64>]) -> Result<()> {
        let mut strings = self.strings.as_str();
        let mut take = |bytes: usize| {
            let (text, rest) = strings.split_at(bytes);
            strings = rest;
            text
        };
        for row in &self.rows {
            let id = take(row.id_bytes);
            let url = row.url_bytes.map(&mut take);
            let title = row.title_bytes.map(&mut take);
            pages.push(&NewPage {
                source: row.source,
                record: row.record,
                offset: row.offset,
                length: row.length,
                tokens: row.tokens,
                identity: Some(row.identity),
                rank_key: row.rank_key,
                strings: PageStrings { id, url, title },
            })?;
        }
        for (band, batch) in keys.iter_mut().zip(&self.keys) {
            band.append(batch)?;
        }
        Ok(())
    }
}

/// What the keep policy orders by, ascending; nothing if it is the position.
pub(crate) fn rank_key(config: &Config, page: &RawPage<'_>, tokens: u32) -> Option<f64> {
    match config.keep {
        Keep::First => None,
        Keep::Longest => Some(-f64::from(tokens)),
        Keep::ShortestUrl => Some(page.url.as_deref().map_or(f64::INFINITY, |url| url.chars().count() as f64)),
        Keep::Newest | Keep::Max(_) => {
            Some(page.rank_value.filter(|value| value.is_finite()).map_or(f64::INFINITY, |value| -value))
        }
    }
}

pub(crate) fn new_reading<'s>(config: &Config, sources: &'s [Source]) -> Reading<'s> {
    Reading {
        sources,
        names: FieldNames::new(&config.fields, &config.keep),
        max_page_bytes: config.max_page_bytes,
        bytes_read: AtomicU64::new(0),
        buffers: Arc::default(),
    }
}

/// The sets in the order of their best-ranked pages.
pub(crate) fn in_rank_order(sets: &IdentitySets, rank: &dyn Fn(PageId) -> u32) -> Vec<PageId> {
    let mut order: Vec<PageId> = (0..).take(sets.first.len()).filter(|&page| sets.is_first(page)).collect();
    order.sort_by_key(|&page| rank(page));
    order
}

/// For every page the page with the smallest id that is reachable over verified pairs.
pub(crate) fn smallest_ids(pages: &PageTable, sets: &IdentitySets, pairs: &[ScoredPair]) -> Result<Vec<PageId>> {
    let mut components = components::Components::of(&sets.first, pairs);
    let roots: Vec<PageId> = (0..).take(pages.len()).map(|page| components.root(page)).collect();
    let mut smallest: std::collections::HashMap<PageId, (String, PageId)> = std::collections::HashMap::new();
    let mut size = vec![0u32; pages.len()];
    roots.iter().for_each(|&root| size[root as usize] += 1);
    for (page, &root) in (0..).zip(&roots).filter(|(_, root)| size[**root as usize] > 1) {
        let id = pages.id(page)?;
        match smallest.get(&root) {
            Some((known, _)) if *known <= id => {}
            _ => {
                smallest.insert(root, (id, page));
            }
        }
    }
    Ok((0..).zip(&roots).map(|(page, root)| smallest.get(root).map_or(page, |(_, page)| *page)).collect())
}

fn changed(reading: &Reading<'_>, source: u32, record: u64) -> Error {
    Error::InputChanged { source_name: reading.sources[source as usize].display.clone(), record }
}

fn no_pages(options: &RunOptions, sources: &Sources, skipped: &[SkippedRecord]) -> Error {
    let hint = match (skipped.first(), sources.list.len(), sources.ignored) {
        (Some(first), ..) => format!(": every record had to be skipped; the first one:\n  {first}"),
        (None, 0, 0) => ": there is no file to read".to_owned(),
        (None, 0, ignored) => {
            format!(": {ignored} files are there, none of a format that is read ({})", crate::read::Format::list())
        }
        (None, ..) => ": the files hold no records".to_owned(),
    };
    Error::NoPages { inputs: options.inputs.join(", "), hint }
}
