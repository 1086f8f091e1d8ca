//! What another corpus already has: the kept pages of an earlier result, pages in files, or the fingerprints of an index.
//!
//! Pages of a result and of files are read with the input, behind it, and are compared with it like any others; they are
//! always kept, and what is like one of them is dropped. An index has no texts: `simhash` asks it for every
//! fingerprint while the input is read, and each row that is near gets a place in the table of pages.

use std::collections::HashMap;
use std::path::Path;

use crate::config::{Config, FingerprintConfig};
use crate::error::{Error, Result};
use crate::index::{FingerprintOrigin, Index, OpenOptions};
use crate::page::{PageId, PageOrigin, ScoredPair, SourceId};
use crate::page_table::PageTable;
use crate::read::{Corpus, Source, discover, known_source};
use crate::report::{files, stored};
use crate::sketch::simhash::cosine_of_distance;

/// Another corpus.
pub(crate) enum Against {
    /// A result: its kept pages, and what they are called there, source by source.
    Pages(Vec<(Source, Vec<Theirs>)>),
    /// Files of pages.
    Files(Vec<Source>),
    /// An index, and its path as it was given.
    Index(Box<Index>, String),
}

/// A kept page of a result.
pub(crate) struct Theirs {
    id: String,
    /// Its words, where this run reads pages as that one did.
    tokens: Option<u32>,
}

/// A page of the input near a row of an index.
pub(super) struct IndexMatch {
    pub(super) page: PageId,
    /// The page that stands for the row.
    pub(super) row: PageId,
    pub(super) distance: u32,
}

impl Against {
    /// Opens a result or an index.
    pub(super) fn open(path: &Path, config: &Config, work: &Path) -> Result<Against> {
        if path.join("manifest.json").exists() {
            return Against::open_index(path, config);
        }
        if !path.join(files::SUMMARY).exists() {
            return Against::open_files(path, config, work);
        }
        let (summary, stored) = stored::open(path, work)?;
        if summary.config.read.captures != config.read.captures
            || summary.config.read.max_page_bytes != config.read.max_page_bytes
        {
            let expected =
                "that run took other records for pages; give it and this one the same `status`, `types` and `max_page`";
            return Err(Error::invalid("against", path.display(), expected));
        }
        if summary.config.read.fields != config.read.fields && !summary.files.is_empty() {
            let expected =
                "that run read other fields; give it and this one the same `text_field`, `id_field` and `url_field`";
            return Err(Error::invalid("against", path.display(), expected));
        }
        let kept = stored.ids.kept(path)?;
        // What is frame depends on all pages of a run.
        let learns = config.corpus_needs().frames;
        let reads_alike = summary.config.plan().text == config.plan().text && !learns;
        let files: HashMap<&str, _> = summary.files.iter().map(|file| (file.source.as_str(), file)).collect();
        let mut sources = Vec::new();
        for (number, display) in stored.sources.iter().enumerate() {
            let mut ids = Vec::new();
            let is_kept = |page: PageId| kept.get(page) == Some(&page) && !stored.pages.is_revisit(page);
            let own = stored.pages.pages_of(SourceId::from_index(number)).filter(|&page| stored.pages.is_input(page));
            for page in own.filter(|&page| is_kept(page)) {
                let tokens = reads_alike.then(|| stored.pages.tokens[page]);
                ids.push(Theirs { id: stored.pages.id(page)?, tokens });
            }
            if ids.is_empty() {
                continue;
            }
            // Files of many pages were copied without what was dropped; files of one page stand where they stood.
            let source = match files.get(display.as_str()) {
                Some(file) => {
                    let copy = path.join(files::KEPT).join(&file.name);
                    known_source(&copy.to_string_lossy(), &file.name, Some(file.format))?
                }
                None => known_source(display, display, summary.config.read.format)?,
            };
            sources.push((source.with_origin(PageOrigin::OtherCorpus), ids));
        }
        Ok(Against::Pages(sources))
    }

    /// Pages that nobody has looked at yet.
    fn open_files(path: &Path, config: &Config, work: &Path) -> Result<Against> {
        let given = path.to_string_lossy().into_owned();
        let found = discover(&[given], &config.read.of_all_files(), Path::new(""), Some(work));
        let sources = found.map_err(|error| {
            let expected = format!("is neither a result of lookalike dedup, nor an index, nor files of pages: {error}");
            Error::invalid("against", path.display(), expected)
        })?;
        if sources.list.is_empty() {
            let expected = "holds no pages, and is neither a result of lookalike dedup nor an index";
            return Err(Error::invalid("against", path.display(), expected));
        }
        let other = |source: Source| source.with_origin(PageOrigin::OtherCorpus);
        Ok(Against::Files(sources.list.into_iter().map(other).collect()))
    }

    fn open_index(path: &Path, config: &Config) -> Result<Against> {
        let index = Index::open(path, OpenOptions::default())?;
        let ours = FingerprintConfig::of_config(&Against::adopt(&index, config));
        let complaint = match (&index.config().fingerprints, ours) {
            (_, None) => Some("an index holds fingerprints: use `method` simhash, or name a result".to_owned()),
            (FingerprintOrigin::Given, _) => {
                Some("its fingerprints come from elsewhere, so those of pages do not fit".to_owned())
            }
            (FingerprintOrigin::Bands(_), _) => Some(
                "it is a collection of a service that is searched by bands, and holds no fingerprints; name a result, or an index of simhash"
                    .to_owned(),
            ),
            (FingerprintOrigin::Pages(theirs), Some(ours)) => theirs
                .difference(&ours)
                .map(|setting| format!("its fingerprints were made with another `{setting}`; give the same")),
        };
        if let Some(complaint) = complaint {
            return Err(Error::conflict("against", format!("{}: {complaint}", path.display())));
        }
        Ok(Against::Index(Box::new(index), path.to_string_lossy().into_owned()))
    }

    /// The config with the frames that the fingerprints of an index leave out, where frames would be learnt, and with the
    /// way in which languages were told when it was made.
    fn adopt(index: &Index, config: &Config) -> Config {
        let mut config = config.clone();
        if let FingerprintOrigin::Pages(pages) = &index.config().fingerprints {
            config.content.guesses_language = pages.content.guesses_language;
            if config.corpus_needs().frames {
                config.content.frames.clone_from(&pages.content.frames);
            }
        }
        config
    }

    /// The config that pages are read with beside this corpus.
    pub(super) fn config(this: Option<&Against>, config: &Config) -> Config {
        match this.and_then(Against::index) {
            Some(index) => Against::adopt(index, config),
            None => config.clone(),
        }
    }

    /// Whether it is files that nobody has looked at yet.
    pub(super) fn is_files(&self) -> bool {
        matches!(self, Against::Files(_))
    }

    /// The sources that are read behind the input.
    pub(super) fn sources(&self) -> Vec<Source> {
        match self {
            Against::Pages(sources) => sources.iter().map(|row| row.0.clone()).collect(),
            Against::Files(sources) => sources.clone(),
            Against::Index(..) => Vec::new(),
        }
    }

    /// What a source is called: rows of an index have the index as theirs.
    pub(super) fn source_name<'a>(this: Option<&'a Against>, corpus: &'a Corpus, source: SourceId) -> &'a str {
        match (corpus.sources.get(source.index()), this) {
            (Some(source), _) => &source.name,
            (None, Some(Against::Index(_, path))) => path,
            (None, _) => "",
        }
    }

    pub(super) fn index(&self) -> Option<&Index> {
        match self {
            Against::Pages(_) | Against::Files(_) => None,
            Against::Index(index, _) => Some(index),
        }
    }

    /// Gives the pages of the other corpus the names that they have there; returns these names.
    pub(super) fn name_pages(&self, corpus: &Corpus, pages: &mut PageTable) -> Result<HashMap<PageId, String>> {
        let mut names = HashMap::new();
        let numbers = (0..).map(SourceId::from_index).zip(&corpus.sources);
        let numbers = numbers.filter(|(_, source)| source.origin == PageOrigin::OtherCorpus).map(|(number, _)| number);
        match self {
            Against::Pages(sources) => {
                for (number, (source, ids)) in numbers.zip(sources) {
                    // Revisits have no text of their own, and were not counted among the kept.
                    let is_counted = |page: PageId| pages.is_page(page) && !pages.is_revisit(page);
                    let here: Vec<PageId> = pages.pages_of(number).filter(|&page| is_counted(page)).collect();
                    if here.len() != ids.len() {
                        let reason = format!(
                            "has {} pages, and {} were kept when the result was made; make it again",
                            here.len(),
                            ids.len()
                        );
                        return Err(Error::corrupt(&source.path(), reason));
                    }
                    for (page, theirs) in here.into_iter().zip(ids) {
                        if theirs.tokens.is_some_and(|tokens| tokens != pages.tokens[page]) {
                            let reason = format!(
                                "'{}' is not the page it was when that result was made; make it again",
                                theirs.id
                            );
                            return Err(Error::corrupt(&source.path(), reason));
                        }
                        names.insert(page, theirs.id.clone());
                    }
                }
                names.iter().for_each(|(&page, name)| pages.rename(page, name.clone()));
            }
            Against::Files(_) => {
                for number in numbers {
                    for page in pages.pages_of(number).filter(|&page| pages.is_page(page)) {
                        names.insert(page, pages.id(page)?);
                    }
                }
            }
            Against::Index(..) => {
                for page in pages.all().filter(|&page| pages.origin(page) == PageOrigin::IndexRow) {
                    names.insert(page, pages.id(page)?);
                }
            }
        }
        Ok(names)
    }
}

impl IndexMatch {
    /// As a pair; its similarity is the cosine that the distance stands for.
    pub(super) fn pair(&self) -> ScoredPair {
        let similarity = cosine_of_distance(self.distance, 64).max(0.0);
        ScoredPair {
            left: self.page,
            right: self.row,
            similarity,
            left_in_right: similarity,
            right_in_left: similarity,
            score: f64::from(self.distance),
            estimate: similarity,
            page_similarity: None,
            same_site: None,
            is_short: false,
        }
    }
}
