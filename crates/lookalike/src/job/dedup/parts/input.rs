//! What is to be read: sources in their order, in units that are read side by side.

use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::config::{Config, Matching};
use crate::error::{Error, Result, SkippedRecord};
use crate::job::dedup::assign::ROUNDS;
use crate::job::dedup::parts::Spec;
use crate::page::PageOrigin;
use crate::plan::Decision;
use crate::read::compression::Compression;
use crate::read::{Corpus, Format, Location, Source, Stretch, UNIT_BYTES, Unit, discover, known_source};
use crate::verify::leaders::{LEADERS_PER_FEATURE, MOST_COMPARED};

/// The input of a job, and what is known of it before anything is read.
#[derive(Debug, Serialize)]
pub struct JobInput {
    /// What all parts of the job know.
    pub spec: serde_json::Value,
    /// A hash of the settings.
    pub config_hash: String,
    /// The units.
    pub units: Vec<UnitOfJob>,
    /// Files that could not be looked at.
    pub problems: Vec<SkippedRecord>,
    /// Whether frames are learnt.
    pub learns_frames: bool,
    /// Whether pages are found by their features, and not by keys.
    pub by_features: bool,
    /// Whether pairs are looked at before they are compared.
    pub filters: bool,
    /// Whether only copies are looked for.
    pub exact_only: bool,
    /// Whether groups follow chains.
    pub chains: bool,
    /// Pages in a bucket that are compared in all pairs.
    pub bucket_limit: usize,
    /// Pages in a bucket whose pairs are looked at, where they are.
    pub most_filtered: usize,
    /// Words of a page that is long enough to be compared.
    pub min_tokens: u32,
    /// The share of a page that another must have to stand for it, where that is not symmetric.
    pub stands_from: Option<f64>,
    /// Whether pages of the input are dropped that contain a page of another corpus.
    pub drops_containers: bool,
    /// The least share of the longer page that the shorter one must be.
    pub length_ratio: Option<f64>,
    /// How many leaders a feature has, and with how many a member of a crowd is compared.
    pub leaders: (usize, usize),
    /// Rounds in which what crowds kept apart is compared.
    pub settling_rounds: usize,
    /// What makes two pages near-duplicates, in words.
    pub rule: String,
    /// All bytes.
    pub bytes: u64,
}

/// A piece of the input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UnitOfJob {
    /// Its number.
    pub unit: usize,
    /// The number of its first source.
    pub first_source: usize,
    /// Its sources.
    pub sources: Vec<SourceOfJob>,
    /// If it is a part of its one source, where it begins, and where others do.
    pub stretch: Option<(u64, Vec<u64>)>,
    /// If it is some lines of its one source, where they begin, and their bytes.
    #[serde(default)]
    pub range: Option<(u64, u64)>,
    /// About how much it is.
    pub bytes: u64,
}

/// A file of the input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SourceOfJob {
    /// Where it is, on every machine.
    pub path: String,
    /// What it is called in the result.
    pub display: String,
    /// Its short name.
    pub name: String,
    /// What it holds.
    pub format: Format,
    /// Its place in the order of preferred sources.
    pub preference: usize,
    /// Whether it is part of the input, and not of another corpus.
    pub is_input: bool,
    /// Its bytes.
    pub bytes: u64,
    /// What changes when it does.
    pub version: String,
}

impl JobInput {
    /// Finds the sources, also those of another corpus that the input is held against.
    ///
    /// # Errors
    /// When an input does not exist, or the settings are none that a job in parts knows.
    pub fn open(config: &Config, inputs: &[String], against: &[String]) -> Result<JobInput> {
        config.check()?;
        check(config, against)?;
        let mut sources = discover(inputs, &config.read, Path::new(""), None)?;
        let preferences = config.groups.preferences(&sources.list)?;
        if !against.is_empty() {
            let theirs = discover(against, &config.read.of_all_files(), Path::new(""), None)?;
            for theirs in theirs.list {
                if let Some(own) = sources.list.iter().find(|own| own.is_same(&theirs)) {
                    let expected = format!("{} is also an input, all of which would be dropped", own.display);
                    return Err(Error::invalid("against", against.join(", "), expected));
                }
                sources.list.push(theirs.with_origin(PageOrigin::OtherCorpus));
            }
            sources.problems.extend(theirs.problems);
        }
        if sources.list.is_empty() {
            return Err(config.corpus(sources).no_pages(inputs, &[]));
        }
        let corpus = config.corpus(sources);
        let units = UnitOfJob::divided(UnitOfJob::all(&corpus, &preferences)?, &corpus)?;
        let plan = config.plan();
        let spec = Spec { config: config.clone(), frames: None, rows: 0, whole: false, all: false, counts: None };
        Ok(JobInput {
            units,
            spec: serde_json::to_value(spec).map_err(|error| Error::internal(error.to_string()))?,
            config_hash: format!("{:016x}", config.hash()),
            learns_frames: config.corpus_needs().frames,
            by_features: plan.keeps_features(),
            filters: !crate::candidate::pair_filter::PairFilter::is_idle(&plan),
            exact_only: config.pairs.exact_only,
            chains: config.groups.cluster == crate::config::ClusterMode::Components,
            bucket_limit: config.pairs.bucket_limit,
            most_filtered: crate::candidate::band_join::MOST_FILTERED,
            min_tokens: config.pairs.min_tokens,
            stands_from: match plan.decision {
                Decision::Similarity { threshold, .. } if plan.is_directed() => Some(threshold),
                _ => None,
            },
            drops_containers: plan.drops_containers,
            length_ratio: plan.pairs.length_ratio,
            leaders: (LEADERS_PER_FEATURE, MOST_COMPARED),
            settling_rounds: ROUNDS,
            rule: config.rule(),
            bytes: corpus.bytes(),
            problems: corpus.problems,
        })
    }
}

/// Where some lines of a file begin, one about every 32 MB; the first at 0.
fn line_starts(source: &Source) -> std::io::Result<Vec<u64>> {
    let mut file = source.location.open()?;
    let mut starts = vec![0];
    let mut buffer = vec![0; 1 << 16];
    let mut from = UNIT_BYTES;
    while from < source.bytes {
        file.seek_to(from)?;
        let mut at = from;
        let next = loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                return Ok(starts);
            }
            match memchr::memchr(b'\n', &buffer[..read]) {
                Some(end) => break at + end as u64 + 1,
                None => at += read as u64,
            }
        };
        if next < source.bytes {
            starts.push(next);
        }
        from = next + UNIT_BYTES;
    }
    Ok(starts)
}

/// Refuses what needs all pages in one place.
fn check(config: &Config, against: &[String]) -> Result<()> {
    let plan = config.plan();
    let needs = config.corpus_needs();
    if needs.rarity || needs.antecedents {
        let reason = "counts something in all pages first, which a job in parts does not; run it on one machine";
        return Err(Error::conflict("method", reason));
    }
    if plan.matching != Matching::Full {
        let reason =
            "goes through the pages one by one, which a job in parts cannot; use full, or run it on one machine";
        return Err(Error::conflict("matching", reason));
    }
    if config.method.name() == "bloom" {
        let reason = "finds pages by chunks, which a job in parts does not; use minhash, or run it on one machine";
        return Err(Error::conflict("method", reason));
    }
    if config.read.cdxj.is_some() {
        return Err(Error::conflict("cdxj", "is not known to a job in parts; run it on one machine"));
    }
    if config.content.frames.is_some() {
        return Err(Error::conflict("frames", "are learnt from all pages by a job in parts; leave this out"));
    }
    if plan.drops_containers && against.is_empty() {
        let reason = "contains drops pages that contain a page of another corpus: name that with `against`";
        return Err(Error::conflict("measure", reason));
    }
    Ok(())
}

impl SourceOfJob {
    fn new(source: &Source, preference: usize) -> Result<SourceOfJob> {
        let is_remote = source.display.contains("://");
        let path = if is_remote {
            source.display.clone()
        } else {
            // Other machines work in other directories.
            let path = Path::new(&source.display);
            std::path::absolute(path).map_err(Error::io(path, "find"))?.to_string_lossy().into_owned()
        };
        Ok(SourceOfJob {
            path,
            display: source.display.clone(),
            name: source.name.clone(),
            format: source.format,
            preference,
            is_input: source.origin == PageOrigin::Input,
            bytes: source.bytes,
            version: source.location.version().to_string(),
        })
    }

    fn open(&self) -> Result<Source> {
        let origin = if self.is_input { PageOrigin::Input } else { PageOrigin::OtherCorpus };
        let mut source = known_source(&self.path, &self.name, Some(self.format))?.with_origin(origin);
        source.display.clone_from(&self.display);
        Ok(source)
    }
}

impl UnitOfJob {
    /// The units of a corpus.
    pub(crate) fn all(corpus: &Corpus, preferences: &[usize]) -> Result<Vec<UnitOfJob>> {
        let listed: Vec<SourceOfJob> = corpus
            .sources
            .iter()
            .enumerate()
            .map(|(number, source)| SourceOfJob::new(source, preferences.get(number).copied().unwrap_or(0)))
            .collect::<Result<_>>()?;
        let units = (0..).zip(corpus.units()).map(|(unit, Unit { sources, stretch })| {
            let bytes = match &stretch {
                // A stretch is about as long as the way to the next one.
                Some(Stretch { from, stops }) => stops.first().copied().unwrap_or(listed[sources.start].bytes) - from,
                None => listed[sources.clone()].iter().map(|source| source.bytes).sum(),
            };
            UnitOfJob {
                unit,
                first_source: sources.start,
                sources: listed[sources].to_vec(),
                stretch: stretch.map(|stretch| (stretch.from, stretch.stops.to_vec())),
                range: None,
                bytes,
            }
        });
        Ok(units.collect())
    }

    /// The same, where large files of lines are several units.
    fn divided(units: Vec<UnitOfJob>, corpus: &Corpus) -> Result<Vec<UnitOfJob>> {
        let mut divided = Vec::new();
        for unit in units {
            let source = &corpus.sources[unit.first_source];
            let has_lines = source.format == Format::JSONL && source.compression == Compression::None;
            if !(has_lines && unit.sources.len() == 1 && source.bytes >= 2 * UNIT_BYTES) {
                divided.push(UnitOfJob { unit: divided.len(), ..unit });
                continue;
            }
            let starts = line_starts(source).map_err(Error::io(&source.path(), "read"))?;
            for (at, &start) in starts.iter().enumerate() {
                let bytes = starts.get(at + 1).copied().unwrap_or(source.bytes) - start;
                divided.push(UnitOfJob { unit: divided.len(), range: Some((start, bytes)), bytes, ..unit.clone() });
            }
        }
        Ok(divided)
    }

    /// The lines of the unit, if it is some lines of a file.
    pub(super) fn lines(&self) -> Result<Option<u64>> {
        let Some((offset, length)) = self.range else { return Ok(None) };
        let source = self.sources[0].open()?;
        let count = || -> std::io::Result<u64> {
            let mut file = source.location.open()?;
            file.seek_to(offset)?;
            let (mut left, mut lines, mut buffer) = (length, 0, vec![0; 1 << 20]);
            while left > 0 {
                let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let read = file.read(&mut buffer[..most])?;
                if read == 0 {
                    break;
                }
                lines += memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64;
                left -= read as u64;
            }
            Ok(lines)
        };
        Ok(Some(count().map_err(Error::io(&source.path(), "read"))?))
    }

    /// Where the unit begins in its file.
    pub(super) fn start(&self) -> u64 {
        self.range.map_or(0, |range| range.0)
    }

    /// The same where no file is divided.
    pub(crate) fn whole_files(corpus: &Corpus) -> Result<Vec<UnitOfJob>> {
        let units = UnitOfJob::all(corpus, &[])?.into_iter();
        let first = units.filter(|unit| unit.stretch.as_ref().is_none_or(|(from, _)| *from == 0));
        Ok(first.map(|unit| UnitOfJob { stretch: None, ..unit }).collect())
    }

    /// The sources of the unit, and the unit among them.
    pub(crate) fn open(&self, config: &Config) -> Result<(Corpus, Unit)> {
        let mut sources: Vec<Source> = self.sources.iter().map(SourceOfJob::open).collect::<Result<_>>()?;
        if let (Some((offset, length)), Some(source)) = (self.range, sources.first_mut()) {
            source.location = Location::Part { of: Box::new(source.location.clone()), offset, length };
            source.bytes = length;
        }
        let stretch = self.stretch.clone().map(|(from, stops)| Stretch { from, stops: stops.into() });
        let unit = Unit { sources: 0..sources.len(), stretch };
        Ok((config.corpus(sources), unit))
    }

    /// What ranks the pages of a source before any policy does, revisits apart.
    pub(super) fn class(&self, source: usize) -> i64 {
        let SourceOfJob { preference, is_input, .. } = &self.sources[source];
        i64::from(*is_input) << 40 | i64::try_from(*preference).unwrap_or(0)
    }
}
