//! Samples of pages → frames; and pages of HTML, once it is known what is frame.

use arrow_array::RecordBatch;

use crate::config::Keep;
use crate::error::{Error, Result};
use crate::job::dedup::parts::reading::{FEATURES, add_features, identity_bytes, new_learner, ordered, temporary};
use crate::job::dedup::parts::rows::Kind::{Bytes, Long, Text, Truth};
use crate::job::dedup::parts::rows::{Kind, RowBuilder, Rows, Value, bytes, encoded, long, numbers, text};
use crate::job::dedup::parts::{Emit, Part, Spec};
use crate::names::Named;
use crate::page::SourceId;
use crate::plan::{ColumnLayout, Plan};
use crate::sketcher::{NO_KEY, PageAbout, Sketcher};
use crate::text::HeldPage;
use crate::text::frames::{FrameLearner, SamplePage};

/// Columns of samples.
pub(crate) const SAMPLES: [(&str, Kind); 3] = [("host", Long), ("key", Long), ("sample", Bytes)];

/// Columns of pages.
pub(super) const PAGES: [(&str, Kind); 26] = [
    ("unit", Long),
    ("row", Long),
    ("source", Long),
    ("record", Long),
    ("offset", Long),
    ("length", Long),
    ("id", Text),
    ("url", Text),
    ("title", Text),
    ("tokens", Long),
    ("identity", Bytes),
    ("text_hash", Long),
    ("scope", Text),
    ("is_revisit", Truth),
    ("class", Long),
    ("rank", Long),
    ("columns", Bytes),
    ("own_id", Long),
    ("own_place", Long),
    ("own_digest", Long),
    ("ref_id", Long),
    ("ref_place", Long),
    ("ref_digest", Long),
    ("site", Long),
    ("has_features", Truth),
    ("is_held", Truth),
];

/// Rows that are sent at a time.
const BATCH_ROWS: usize = 1024;

/// What a sample is chosen by, and its bytes.
pub(super) fn sample_row(sample: &SamplePage) -> Result<(u64, Vec<u8>)> {
    let bytes =
        postcard::to_stdvec(sample).map_err(|error| Error::internal(format!("a sample cannot be written: {error}")))?;
    Ok((sample.key(), bytes))
}

fn add_samples(learner: &mut FrameLearner, rows: &RecordBatch) -> Result<()> {
    for sample in Rows(rows).bytes("sample")?.iter().flatten() {
        let sample: SamplePage = postcard::from_bytes(sample)
            .map_err(|error| Error::internal(format!("a sample cannot be read: {error}")))?;
        learner.add(sample)?;
    }
    Ok(())
}

/// Of samples that are in one place, those that are learnt from.
pub(super) struct MergeSamples {
    learner: Option<FrameLearner>,
    directory: Option<tempfile::TempDir>,
}

impl MergeSamples {
    pub(super) fn new() -> MergeSamples {
        MergeSamples { learner: None, directory: None }
    }
}

impl Part for MergeSamples {
    fn push(&mut self, rows: &RecordBatch, _: &mut Emit<'_>) -> Result<()> {
        if self.learner.is_none() {
            let directory = temporary()?;
            self.learner = Some(new_learner(&directory));
            self.directory = Some(directory);
        }
        self.learner.as_mut().map_or(Ok(()), |learner| add_samples(learner, rows))
    }

    fn finish(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        let Some(learner) = self.learner.take() else { return Ok(()) };
        emit_samples(learner, emit)
    }
}

/// Sends what a learner has gathered.
pub(crate) fn emit_samples(learner: FrameLearner, emit: &mut Emit<'_>) -> Result<()> {
    let mut rows = RowBuilder::new(&SAMPLES);
    learner.into_samples(|host, sample| {
        let (key, bytes) = sample_row(&sample)?;
        rows.push(&[Value::bits(host), Value::bits(key), Value::Bytes(Some(&bytes))]);
        if rows.len() >= BATCH_ROWS { emit(rows.take()?) } else { Ok(()) }
    })?;
    emit(rows.take()?)
}

/// What samples teach about frames, as JSON.
///
/// # Errors
/// When a sample cannot be read.
pub fn learn(samples: &[RecordBatch]) -> Result<String> {
    let directory = temporary()?;
    let mut learner = new_learner(&directory);
    samples.iter().try_for_each(|rows| add_samples(&mut learner, rows))?;
    let frames = learner.finish()?;
    let rows: Vec<_> = frames.rows().collect();
    serde_json::to_string(&rows).map_err(|error| Error::internal(error.to_string()))
}

/// Sees the pages that were held without their frames; all others pass.
pub(super) struct Complete {
    keep: Keep,
    plan: Plan,
    narrow: ColumnLayout,
    sketcher: Sketcher,
    made: Vec<u64>,
}

impl Complete {
    pub(super) fn new(spec: &Spec) -> Result<Complete> {
        let plan = spec.plan()?;
        let sketcher = Sketcher::of_plan(&plan);
        let narrow = spec.config.plan().columns();
        Ok(Complete { keep: spec.config.groups.keep.clone(), plan, narrow, sketcher, made: Vec::new() })
    }

    /// The columns of a page that was not held, with room for the bands of stories.
    fn widened(&self, columns: &[u64]) -> Vec<u64> {
        let (narrow, wide) = (self.narrow, self.plan.columns());
        if columns.is_empty() {
            return Vec::new();
        }
        let (bands, others) = columns.split_at(narrow.bands);
        let new = std::iter::repeat_n(NO_KEY, wide.story_bands - narrow.story_bands);
        bands.iter().copied().chain(new).chain(others.iter().copied()).collect()
    }
}

fn held_page(bytes: &[u8]) -> Result<HeldPage> {
    postcard::from_bytes(bytes)
        .map_err(|error| Error::internal(format!("a page that was held cannot be read: {error}")))
}

impl Part for Complete {
    fn push(&mut self, batch: &RecordBatch, emit: &mut Emit<'_>) -> Result<()> {
        let rows = Rows(batch);
        let mut out = RowBuilder::new(&PAGES);
        let numbers_of = |name: &str| rows.longs(name);
        let (units, row_numbers, sources, records) =
            (numbers_of("unit")?, numbers_of("row")?, numbers_of("source")?, numbers_of("record")?);
        let (offsets, lengths, tokens) = (numbers_of("offset")?, numbers_of("length")?, numbers_of("tokens")?);
        let (text_hashes, classes, ranks) = (numbers_of("text_hash")?, numbers_of("class")?, numbers_of("rank")?);
        let captures: Vec<_> = ["own_id", "own_place", "own_digest", "ref_id", "ref_place", "ref_digest"]
            .map(numbers_of)
            .into_iter()
            .collect::<Result<_>>()?;
        let (sites, has_features, revisits) =
            (numbers_of("site")?, rows.truths("has_features")?, rows.truths("is_revisit")?);
        let (ids, urls, titles, scopes) =
            (rows.texts("id")?, rows.texts("url")?, rows.texts("title")?, rows.texts("scope")?);
        let (identities, columns, helds) = (rows.bytes("identity")?, rows.bytes("columns")?, rows.bytes("held")?);
        for row in 0..rows.len() {
            let (mut count, mut text_hash) = (tokens.value(row), text_hashes.value(row));
            let mut identity = identities.value(row).to_vec();
            let (mut scope, mut rank, mut has_features) =
                (text(scopes, row), ranks.value(row), has_features.value(row));
            let own: Vec<u64> = numbers(columns.value(row));
            let url = text(urls, row);
            let held = bytes(helds, row);
            let made = if let Some(held) = held {
                let source = SourceId::from_index(usize::try_from(sources.value(row)).unwrap_or(0));
                let record = records.value(row).cast_unsigned();
                let about = PageAbout { url, title: None, source, record };
                let facts = self.sketcher.read_held(&held_page(held)?, about);
                (count, scope) = (i64::from(facts.tokens), facts.scope.map(Named::name));
                (text_hash, identity) = (facts.text_hash.cast_signed(), facts.identity.to_le_bytes().to_vec());
                let (words, hash) = (facts.tokens, facts.identity);
                if self.keep == Keep::Longest {
                    rank = ordered(-f64::from(words));
                }
                let is_long_enough = self.plan.is_long_enough(words);
                if !own.is_empty() {
                    if is_long_enough {
                        self.sketcher.columns(&mut self.made);
                    } else {
                        self.made.clear();
                        self.made.resize(self.plan.columns().columns(), NO_KEY);
                    }
                    let place = (
                        usize::try_from(units.value(row)).unwrap_or(0),
                        row_numbers.value(row).cast_unsigned(),
                        record,
                    );
                    identity = identity_bytes(hash, &self.plan, &self.made, place).to_vec();
                } else {
                    self.made.clear();
                }
                has_features = !(is_long_enough && self.sketcher.sequence().is_empty());
                encoded(&self.made)
            } else {
                encoded(&self.widened(&own))
            };
            let mut values = vec![
                Value::Long(long(units, row)),
                Value::Long(long(row_numbers, row)),
                Value::Long(long(sources, row)),
                Value::Long(long(records, row)),
                Value::Long(long(offsets, row)),
                Value::Long(long(lengths, row)),
                Value::Text(text(ids, row)),
                Value::Text(url),
                Value::Text(text(titles, row)),
                Value::Long(Some(count)),
                Value::Bytes(Some(&identity)),
                Value::Long(Some(text_hash)),
                Value::Text(scope),
                Value::Truth(Some(revisits.value(row))),
                Value::Long(long(classes, row)),
                Value::Long(Some(rank)),
                Value::Bytes(Some(&made)),
            ];
            values.extend(captures.iter().map(|column| Value::Long(long(column, row))));
            values.push(Value::Long(long(sites, row)));
            values.push(Value::Truth(Some(has_features)));
            values.push(Value::Truth(Some(held.is_some())));
            out.push(&values);
        }
        emit(out.take()?)
    }

    fn finish(&mut self, _: &mut Emit<'_>) -> Result<()> {
        Ok(())
    }
}

/// What held pages are compared by.
pub(super) struct HeldFeatures {
    sketcher: Sketcher,
}

impl HeldFeatures {
    pub(super) fn new(spec: &Spec) -> Result<HeldFeatures> {
        let plan = spec.plan()?;
        let plan = if spec.whole { plan.of_whole_pages() } else { plan };
        Ok(HeldFeatures { sketcher: Sketcher::of_plan(&plan) })
    }
}

impl Part for HeldFeatures {
    fn push(&mut self, batch: &RecordBatch, emit: &mut Emit<'_>) -> Result<()> {
        let rows = Rows(batch);
        let (positions, urls, helds) = (rows.longs("position")?, rows.texts("url")?, rows.bytes("held")?);
        let mut out = RowBuilder::new(&FEATURES);
        for row in 0..rows.len() {
            let about = PageAbout { url: text(urls, row), title: None, source: SourceId::from_index(0), record: 0 };
            self.sketcher.read_held(&held_page(helds.value(row))?, about);
            let group = self.sketcher.group();
            add_features(&mut out, positions.value(row), self.sketcher.sketch(), group);
        }
        emit(out.take()?)
    }

    fn finish(&mut self, _: &mut Emit<'_>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::page::RawPage;
    use crate::text::PageReader;

    /// Samples of pages that have a menu in common.
    fn samples() -> Vec<RecordBatch> {
        let directory = temporary().unwrap();
        let learner = new_learner(&directory);
        let mut reader = PageReader::new(Config::default().content.text_options());
        let menu = ["home", "news", "sport", "weather"].map(|name| format!("<li><a href=/{name}>{name}</a>")).concat();
        let pages = (0..40).map(|number| {
            let story: String = (0..60).map(|word| format!("word{} ", word * 7 + number * 1000)).collect();
            format!("<html><body><ul id=menu>{menu}</ul><div class=story><p>{story}</p></div></body></html>")
        });
        let mut rows = RowBuilder::new(&SAMPLES);
        pages
            .map(|page| {
                let (held, _) = reader.hold(&RawPage::html(&page), false, &learner).unwrap();
                let (key, bytes) = sample_row(&held.sample().unwrap()).unwrap();
                rows.push(&[Value::bits(0), Value::bits(key), Value::Bytes(Some(&bytes))]);
                rows.take().unwrap()
            })
            .collect()
    }

    #[test]
    fn what_is_learnt_in_parts_is_what_is_learnt_at_once() {
        let samples = samples();
        let at_once = learn(&samples).unwrap();
        assert!(at_once.contains("\"example\":\"weather\""), "the menu is frame");
        let mut merged = Vec::new();
        for part in samples.chunks(7).rev() {
            let mut merge = MergeSamples::new();
            let mut emit = |rows: RecordBatch| {
                merged.push(rows);
                Ok(())
            };
            part.iter().for_each(|rows| merge.push(rows, &mut emit).unwrap());
            merge.finish(&mut emit).unwrap();
        }
        assert_eq!(learn(&merged).unwrap(), at_once);
    }
}
