//! The pages of a result, read again from where they came from, a few at a time, and compared as they were there.
//!
//! In: places, as `pages.parquet` has them. Out: pages. Nothing is held in memory but what the result learnt.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{Config, Method};
use crate::error::{Error, Result};
use crate::job::compare::compare_by;
use crate::page::{PageId, RawPage, SourceId};
use crate::plan::Plan;
use crate::read::{Format, STDIN, Source, Wanted, WantedRecord, known_source};
use crate::report::comparison::Comparison;
use crate::report::plots;
use crate::report::stored::rows::PagePlace;
use crate::report::stored::stricter::Stricter;
use crate::report::stored::{StoredSummary, frames, summary, texts};
use crate::text::frames::Frames;
use crate::text::{PageBlock, PageReader};

/// The pages that a result is about.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name);
/// use lookalike::result::{Originals, for_each_page};
/// use lookalike::{Config, RunOptions, Silent};
///
/// let story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. ".repeat(5);
/// let line = |id: &str, text: &str| format!("{{\"id\": \"{id}\", \"text\": \"{text}\"}}\n");
/// std::fs::write(at("pages.jsonl"), line("a", &story) + &line("b", &story)).unwrap();
/// let options = RunOptions::new([at("pages.jsonl").to_string_lossy()], at("out"));
/// lookalike::dedup(&Config::default(), &options, &Silent)?;
///
/// let mut places = Vec::new();
/// for_each_page(&at("out"), |page| places.push(page.place()))?;
/// let originals = Originals::open(&at("out"))?;
/// let pages = originals.read(&places)?;
/// assert!(originals.compare(&pages[0], &pages[1]).identical);
/// # Ok::<(), lookalike::Error>(())
/// ```
pub struct Originals {
    directory: PathBuf,
    summary: StoredSummary,
    /// With the thresholds of the last clustering.
    config: Config,
    formats: HashMap<String, Format>,
    frames: Option<Arc<Frames>>,
    plan: Plan,
}

impl std::fmt::Debug for Originals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Originals").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Originals {
    /// Those of the result in `directory`.
    ///
    /// # Errors
    /// When it is not a complete result.
    pub fn open(directory: &Path) -> Result<Originals> {
        let (summary, frames) = (summary(directory)?, frames(directory)?);
        Ok(Originals {
            directory: directory.to_path_buf(),
            config: Stricter::of(&summary)?.config,
            formats: summary.files.iter().map(|file| (file.source.clone(), file.format)).collect(),
            plan: texts::plan(&summary, frames.clone()),
            summary,
            frames,
        })
    }

    /// The settings of the result, with the thresholds of its last clustering.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The pages at these places.
    ///
    /// # Errors
    /// When a source is missing or has changed.
    pub fn read(&self, places: &[PagePlace]) -> Result<Vec<RawPage<'static>>> {
        let mut pages: Vec<Option<RawPage<'static>>> = vec![None; places.len()];
        self.for_each(
            places,
            || (),
            |(), raw| raw.clone().into_owned(),
            |number, page| {
                pages[number] = Some(page);
                Ok(())
            },
        )?;
        pages
            .into_iter()
            .map(|page| page.ok_or_else(|| Error::internal("a page that was read again is missing")))
            .collect()
    }

    /// Hands on what `visit` makes of the blocks of each of these pages, as they are seen when pages are compared, with the page's
    /// number in the list, in the order of their sources; `visit` may be called from different threads.
    ///
    /// # Errors
    /// When a source is missing or has changed, or the one that `emit` returns.
    pub fn for_each_blocks<T: Send + Clone>(
        &self,
        places: &[PagePlace],
        visit: impl Fn(Vec<PageBlock>) -> T + Sync,
        emit: impl FnMut(usize, T) -> Result<()>,
    ) -> Result<()> {
        self.for_each(places, || self.reader(), |reader, raw| visit(reader.parts(raw)), emit)
    }

    /// The same for whole pages; each thread has a state of its own.
    fn for_each<S: Send, T: Send + Clone>(
        &self,
        places: &[PagePlace],
        state: impl Fn() -> S + Sync,
        visit: impl Fn(&mut S, &RawPage<'_>) -> T + Sync,
        mut emit: impl FnMut(usize, T) -> Result<()>,
    ) -> Result<()> {
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|&number| &places[number]);
        let mut sources: Vec<Source> = Vec::new();
        let mut wanted = Wanted::default();
        // The places of each record that is read: it may be asked for more than once.
        let mut numbers: Vec<Vec<usize>> = Vec::new();
        for &number in &order {
            let place = &places[number];
            if numbers.last().is_some_and(|same| places[same[0]] == *place) {
                numbers.last_mut().expect("there is one").push(number);
                continue;
            }
            if sources.last().is_none_or(|last| last.display != place.source) {
                sources.push(self.source(&place.source)?);
            }
            wanted.0.push(WantedRecord {
                source: SourceId::from_index(sources.len() - 1),
                record: place.record,
                offset: place.offset,
                length: place.length,
                page: PageId::from_index(numbers.len()),
            });
            numbers.push(vec![number]);
        }
        let corpus = self.summary.config.corpus(sources);
        texts::read_again(
            &corpus,
            &self.plan,
            &wanted,
            &|page| places[numbers[page.index()][0]].tokens,
            state,
            |state, _, raw| visit(state, raw),
            |page, visited| numbers[page.index()].iter().try_for_each(|&number| emit(number, visited.clone())),
        )
    }

    fn source(&self, display: &str) -> Result<Source> {
        if display == STDIN {
            let reason = "this result was made from standard input, which cannot be read again";
            return Err(Error::bad_input(Path::new(STDIN), reason));
        }
        let format = self.formats.get(display).copied().or(self.summary.config.read.format);
        known_source(display, display, format)
    }

    /// Two pages, compared by every method: that of the result with its settings, and without the frames that were learnt.
    #[must_use]
    pub fn compare(&self, left: &RawPage<'_>, right: &RawPage<'_>) -> Comparison {
        let own = &self.config.method;
        let mut methods: Vec<Method> = Method::all();
        methods.retain(|method| method.name() != own.name());
        methods.insert(0, own.clone());
        compare_by(left, right, &self.config, &methods, self.frames.clone())
    }

    /// A page block by block, as it is seen when pages are compared.
    #[must_use]
    pub fn blocks(&self, page: &RawPage<'_>) -> Vec<PageBlock> {
        self.reader().parts(page)
    }

    fn reader(&self) -> PageReader {
        PageReader::new(self.plan.text).without(self.frames.clone())
    }

    /// Drawings for an overview: how large groups are, and how similar the pairs that were accepted and those that were close.
    #[must_use]
    pub fn plots(&self, sizes: &[u64], accepted: &[f64], near_misses: &[f64]) -> [String; 2] {
        let similarities = plots::similarities(
            accepted.iter().copied(),
            near_misses.iter().copied(),
            &[],
            self.plan.similarity_name(),
        );
        [plots::cluster_sizes(sizes), similarities]
    }

    /// The site that a URL belongs to, by the result's rule.
    #[must_use]
    pub fn site(&self, url: &str) -> Option<String> {
        self.config.pairs.site.site(url)
    }
}
