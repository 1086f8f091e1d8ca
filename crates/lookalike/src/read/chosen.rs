//! Which pages of the input take part: a share of them, or the captures that an index of an archive names.
//!
//! A page is chosen by its id, or by its place where it has none, so that the same pages are chosen on every machine and
//! whatever else is read.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::error::{Error, Result, SkipKind, SkippedRecord};
use crate::page::{PageOrigin, RawPage};
use crate::read::{ReadConfig, Source};

/// Captures that are named by file and place, as in a CDXJ file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChosenCaptures {
    /// How many there are.
    pub captures: u64,
    /// What tells them from others, 16 hexadecimal digits.
    pub hash: String,
    /// Places by file; only while they are chosen.
    #[serde(skip)]
    files: Arc<BTreeMap<String, Vec<u64>>>,
    /// Where they are named.
    #[serde(skip)]
    path: String,
}

impl PartialEq for ChosenCaptures {
    fn eq(&self, other: &ChosenCaptures) -> bool {
        (self.captures, &self.hash) == (other.captures, &other.hash)
    }
}

impl ChosenCaptures {
    /// Reads a CDXJ file: in every line a key, a time, and a JSON object with `filename` and `offset`. Lines that are
    /// nothing but such an object, as the index server of Common Crawl sends them, will do.
    ///
    /// # Errors
    /// When it cannot be read, a line is not of that form, or there is none.
    pub fn open(path: &Path) -> Result<ChosenCaptures> {
        let bytes = std::fs::read(path).map_err(Error::io(path, "read"))?;
        let mut files: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        for (number, line) in (1u64..).zip(lines) {
            // Lines that begin so say what the others are.
            if line.is_empty() || line.starts_with(b"!") || line.starts_with(b"#") {
                continue;
            }
            let (file, offset) = place(line).map_err(|reason| {
                Error::bad_input(path, format!("line {number} is not a line of a CDXJ file: {reason}"))
            })?;
            files.entry(file).or_default().push(offset);
        }
        let mut hash = Xxh3::new();
        for (file, places) in &mut files {
            places.sort_unstable();
            places.dedup();
            hash.update(file.as_bytes());
            hash.update(b"\n");
            places.iter().for_each(|place| hash.update(&place.to_le_bytes()));
        }
        let captures = files.values().map(|places| places.len() as u64).sum();
        if captures == 0 {
            return Err(Error::bad_input(path, "names no capture"));
        }
        let path = path.display().to_string();
        Ok(ChosenCaptures { captures, hash: format!("{:016x}", hash.digest()), files: Arc::new(files), path })
    }
}

/// The file and the place that a line names.
fn place(line: &[u8]) -> Result<(String, u64), String> {
    let start = memchr::memchr(b'{', line).ok_or("it has no JSON object")?;
    let object: serde_json::Map<String, Value> =
        serde_json::from_slice(&line[start..]).map_err(|error| error.to_string())?;
    let file = object.get("filename").and_then(Value::as_str).ok_or("it has no 'filename'")?;
    let offset = object.get("offset").ok_or("it has no 'offset'")?;
    let offset = offset.as_u64().or_else(|| offset.as_str()?.parse().ok());
    Ok((file.to_owned(), offset.ok_or("its 'offset' is not a number")?))
}

/// What is chosen of the sources of a run.
#[derive(Debug)]
pub(crate) struct Chosen {
    sample: Option<f64>,
    /// For each source the places of the captures; without any, all are chosen.
    captures: Option<Vec<HashSet<u64>>>,
}

impl Chosen {
    /// What a config chooses; nothing if that is everything. Problems are added to `problems`.
    pub(crate) fn new(config: &ReadConfig, sources: &[Source], problems: &mut Vec<SkippedRecord>) -> Option<Chosen> {
        if config.sample.is_none() && config.cdxj.is_none() {
            return None;
        }
        let captures = config.cdxj.as_ref().map(|chosen| assign(chosen, sources, problems));
        Some(Chosen { sample: config.sample, captures })
    }

    /// Whether a page takes part.
    pub(crate) fn takes(&self, source: &Source, page: &RawPage<'_>) -> bool {
        if source.origin != PageOrigin::Input {
            return true;
        }
        if let Some(captures) = &self.captures
            && !page.offset.is_some_and(|offset| captures[page.source.index()].contains(&offset))
        {
            return false;
        }
        self.sample.is_none_or(|share| {
            let hash = match &page.id {
                Some(id) => xxh3_64(id.as_bytes()),
                None => {
                    let place = page.offset.unwrap_or(page.record);
                    xxh3_64(format!("{}\n{place}", source.name).as_bytes())
                }
            };
            // 53 bits are what a number between 0 and 1 holds.
            ((hash >> 11) as f64) / ((1u64 << 53) as f64) < share
        })
    }
}

impl Chosen {
    /// What was named and is not among the pages, file by file; `places` are those of the pages of a source.
    pub(crate) fn unmet(&self, sources: &[Source], places: impl Fn(usize) -> HashSet<u64>) -> Vec<SkippedRecord> {
        let Some(captures) = &self.captures else { return Vec::new() };
        let named = captures.iter().enumerate().filter(|(_, named)| !named.is_empty());
        let unmet = named.filter_map(|(at, named)| {
            let places = places(at);
            let missing = named.iter().filter(|place| !places.contains(*place)).count();
            let first = named.iter().filter(|place| !places.contains(*place)).min().copied()?;
            let why = if sources[at].is_seekable() {
                "no record begins there, or it is not a page (see `status` and `types`)"
            } else {
                "the file is packed as one stream, in which records have no places; pack every record by itself"
            };
            Some(SkippedRecord {
                kind: SkipKind::Unreadable,
                source: sources[at].display.clone(),
                record: None,
                byte: Some(first),
                reason: format!(
                    "{missing} of {} captures that were named in it are not among its pages: {why}",
                    named.len()
                ),
                first_bytes: String::new(),
            })
        });
        unmet.collect()
    }
}

/// The places in each source. A line may name a file by another path than the one where it is now: the name decides, and
/// where several sources have it, as much of the path as one of them has.
fn assign(chosen: &ChosenCaptures, sources: &[Source], problems: &mut Vec<SkippedRecord>) -> Vec<HashSet<u64>> {
    let mut places = vec![HashSet::new(); sources.len()];
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, source) in sources.iter().enumerate().filter(|(_, source)| source.origin == PageOrigin::Input) {
        by_name.entry(last_part(&source.display)).or_default().push(at);
    }
    let (mut missing, mut example) = (0, None);
    for (file, offsets) in chosen.files.iter() {
        let same_name = by_name.get(last_part(file)).map_or(&[][..], Vec::as_slice);
        let likeness = |at: usize| {
            let parts = sources[at].display.rsplit('/').zip(file.rsplit('/'));
            parts.take_while(|(ours, theirs)| ours == theirs).count()
        };
        let best = same_name.iter().map(|&at| likeness(at)).max();
        for &at in same_name.iter().filter(|&&at| Some(likeness(at)) == best) {
            places[at].extend(offsets);
        }
        if same_name.is_empty() {
            missing += offsets.len();
            example.get_or_insert(file);
        }
    }
    if let Some(example) = example {
        let are = if missing == 1 { "1 capture is in a file" } else { &format!("{missing} captures are in files") };
        let reason =
            format!("{are} that is not among the inputs: {example}").replace("files that is", "files that are");
        problems.push(SkippedRecord {
            kind: SkipKind::Unreadable,
            source: chosen.path.clone(),
            record: None,
            byte: None,
            reason,
            first_bytes: String::new(),
        });
    }
    places
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cdxj_and_of_the_server_name_places() {
        let line = br#"org,example)/ 20200101000000 {"url": "http://example.org/", "filename": "a/b.warc.gz", "offset": "784"}"#;
        assert_eq!(place(line), Ok(("a/b.warc.gz".to_owned(), 784)));
        assert_eq!(place(br#"{"filename": "b.warc.gz", "offset": 7}"#), Ok(("b.warc.gz".to_owned(), 7)));
        assert!(place(b"org,example)/ 20200101000000 http://example.org/ 200").is_err());
        assert!(place(br#"{"filename": "b.warc.gz"}"#).is_err());
    }

    #[test]
    fn a_sample_has_its_share_and_a_larger_one_contains_it() {
        let source = Source::in_memory("a.jsonl", b"{\"text\": \"x\"}".to_vec(), None).unwrap();
        let chosen = |share: f64| {
            let config = ReadConfig { sample: Some(share), ..ReadConfig::default() };
            let chosen = Chosen::new(&config, std::slice::from_ref(&source), &mut Vec::new()).unwrap();
            let takes = |n: &usize| {
                let page = RawPage { id: Some(n.to_string().into()), ..RawPage::text("x") };
                chosen.takes(&source, &page)
            };
            (0..10_000).filter(takes).collect::<HashSet<usize>>()
        };
        let (tenth, half) = (chosen(0.1), chosen(0.5));
        assert!((900..1100).contains(&tenth.len()) && (4800..5200).contains(&half.len()));
        assert!(tenth.is_subset(&half));
        assert_eq!(chosen(1.0).len(), 10_000);
    }
}
