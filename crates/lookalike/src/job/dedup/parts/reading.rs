//! Units of the input → a row for every page; and chosen pages again, for what they are compared by.

use std::ops::ControlFlow;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::config::{Config, SiteRule};
use crate::corpus_stats::SAMPLE_BYTES;
use crate::error::{Error, Result, SkippedRecord};
use crate::job::dedup::parts::frames::sample_row;
use crate::job::dedup::parts::input::UnitOfJob;
use crate::job::dedup::parts::rows::Kind::{Bytes, Long, Text, Truth};
use crate::job::dedup::parts::rows::{Kind, RowBuilder, Rows, Value, encoded, other_kind};
use crate::job::dedup::parts::{Emit, Part, Spec};
use crate::job::dedup::sketched_batch::{SketchedBatch, SketchedWith};
use crate::names::Named;
use crate::page::{PageId, SourceId};
use crate::parallel::Event;
use crate::plan::Plan;
use crate::read::{NotAPage, Wanted, WantedRecord};
use crate::sketcher::{PageSketch, Sketcher};
use crate::spill::Spill;
use crate::text::frames::FrameLearner;

/// What a row of the first reading is.
const PAGE: i64 = 0;
const NOTE: i64 = 1;
pub(super) const SAMPLE: i64 = 2;

/// Columns of the first reading. `row` counts the pages of a unit; `record` those of a stretch from its start.
pub(super) const SIGNATURES: [(&str, Kind); 28] = [
    ("kind", Long),
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
    ("held", Bytes),
    ("own_id", Long),
    ("own_place", Long),
    ("own_digest", Long),
    ("ref_id", Long),
    ("ref_place", Long),
    ("ref_digest", Long),
    ("site", Long),
    ("has_features", Truth),
    ("note", Text),
];

/// What pages are compared by.
pub(super) const FEATURES: [(&str, Kind); 6] = [
    ("position", Long),
    ("features", Bytes),
    ("weights", Bytes),
    ("sketch", Bytes),
    ("count", Long),
    ("set_hash", Long),
];

/// A number that orders as a real number does, all of them.
pub(super) fn ordered(key: f64) -> i64 {
    let bits = key.to_bits().cast_signed();
    bits ^ (((bits >> 63).cast_unsigned()) >> 1).cast_signed()
}

/// Pages that are not compared with any other, in whose place none can stand.
pub(super) fn identity_bytes(identity: u128, plan: &Plan, columns: &[u64], place: (usize, u64, u64)) -> [u8; 16] {
    let group = plan.columns().group_column().and_then(|column| columns.get(column));
    if plan.pairs.within.is_some() && group == Some(&0) {
        let (unit, row, record) = place;
        return xxh3_128(&encoded(&[unit as u64, row, record])).to_le_bytes();
    }
    identity.to_le_bytes()
}

/// Reads units.
pub(super) struct Read {
    config: Config,
    plan: Plan,
    learner: Option<FrameLearner>,
    _directory: tempfile::TempDir,
    rows: RowBuilder,
}

impl Read {
    pub(super) fn new(spec: &Spec) -> Result<Read> {
        let directory = temporary()?;
        let learns = spec.config.corpus_needs().frames;
        Ok(Read {
            config: spec.config.clone(),
            plan: spec.plan()?,
            learner: learns.then(|| new_learner(&directory)),
            _directory: directory,
            rows: RowBuilder::new(&SIGNATURES),
        })
    }

    fn unit(&mut self, unit: &UnitOfJob, emit: &mut Emit<'_>) -> Result<()> {
        let (corpus, piece) = unit.open(&self.config)?;
        let lines = unit.lines()?;
        let count = if self.config.pairs.exact_only { 0 } else { self.plan.columns().columns() };
        let with = SketchedWith { plan: &self.plan, keep: &self.config.groups.keep, likely: None };
        let learner = std::sync::RwLock::new(self.learner.take());
        let read_lock = || learner.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (rows, mut taken) = (&mut self.rows, 0);
        let site = self.config.pairs.site;
        let result = corpus.scan().for_each_unit(
            &[&piece],
            || Sketcher::of_plan(with.plan),
            |sketcher, records| {
                let mut out = SketchedBatch::new(count, false);
                records.for_each(|found| {
                    match found {
                        Ok(page) => {
                            let is_held =
                                read_lock().as_ref().is_some_and(|learner| out.hold(&page, sketcher, &with, learner));
                            if !is_held {
                                out.push(&page, sketcher, &with, None)?;
                            }
                        }
                        Err(NotAPage::Skipped(record)) => out.skipped.push(record),
                        Err(NotAPage::Other(what)) => *out.other_records.entry(what.to_owned()).or_default() += 1,
                    }
                    Ok(())
                })?;
                Ok(out)
            },
            |event| {
                match event {
                    Event::Result(_, batch) => {
                        let mut known = learner.write().unwrap_or_else(std::sync::PoisonError::into_inner);
                        if let Some(learner) = known.as_mut() {
                            batch.samples().into_iter().try_for_each(|sample| learner.add(sample))?;
                        }
                        drop(known);
                        taken = add_pages(rows, unit, &batch, with.plan, site, taken)?;
                    }
                    Event::End(_, end) => {
                        let records = lines.unwrap_or(end.records);
                        let note = serde_json::json!({"end": [records, end.next]});
                        add_note(rows, unit.unit, &note);
                    }
                }
                emit(rows.take()?)
            },
        );
        self.learner = learner.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        result
    }
}

/// A directory for what does not fit into memory.
pub(crate) fn temporary() -> Result<tempfile::TempDir> {
    tempfile::tempdir().map_err(Error::io(&std::env::temp_dir(), "write to"))
}

pub(crate) fn new_learner(directory: &tempfile::TempDir) -> FrameLearner {
    FrameLearner::new(Spill::new(directory.path().join("frame-sample"), SAMPLE_BYTES))
}

impl Part for Read {
    fn push(&mut self, rows: &RecordBatch, emit: &mut Emit<'_>) -> Result<()> {
        let rows = Rows(rows);
        let specs = rows.texts("spec")?;
        for row in 0..rows.len() {
            self.unit(&unit(specs.value(row))?, emit)?;
        }
        Ok(())
    }

    fn finish(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        let Some(learner) = self.learner.take() else { return Ok(()) };
        learner.into_samples(|host, sample| {
            let (key, bytes) = sample_row(&sample)?;
            let mut values = nothing(SAMPLE, -1);
            values[18] = Value::Bytes(Some(&bytes));
            (values[19], values[20]) = (Value::bits(host), Value::bits(key));
            self.rows.push(&values);
            if self.rows.len() >= 256 {
                emit(self.rows.take()?)?;
            }
            Ok(())
        })?;
        emit(self.rows.take()?)
    }
}

/// A unit from its description.
pub(crate) fn unit(spec: &str) -> Result<UnitOfJob> {
    serde_json::from_str(spec).map_err(|error| Error::internal(format!("a unit cannot be understood: {error}")))
}

/// A row without anything but what it is.
fn nothing(kind: i64, unit: i64) -> Vec<Value<'static>> {
    let mut values: Vec<Value<'static>> = SIGNATURES
        .iter()
        .map(|(_, kind)| match kind {
            Long => Value::Long(None),
            Kind::Real => Value::Real(None),
            Text => Value::Text(None),
            Bytes => Value::Bytes(None),
            Truth => Value::Truth(None),
        })
        .collect();
    (values[0], values[1]) = (Value::Long(Some(kind)), Value::Long(Some(unit)));
    values
}

fn add_note(rows: &mut RowBuilder, unit: usize, note: &serde_json::Value) {
    let text = note.to_string();
    let mut values: Vec<Value<'_>> = nothing(NOTE, i64::try_from(unit).unwrap_or(-1));
    values[27] = Value::Text(Some(&text));
    rows.push(&values);
}

/// Adds the pages of a batch, and notes on what is none; returns how many pages the unit has by now.
fn add_pages(
    rows: &mut RowBuilder,
    unit: &UnitOfJob,
    batch: &SketchedBatch,
    plan: &Plan,
    site: SiteRule,
    taken: u64,
) -> Result<u64> {
    for record in &batch.skipped {
        let byte = record.byte.map(|byte| byte + unit.start());
        add_note(rows, unit.unit, &serde_json::json!({"skipped": SkippedRecord { byte, ..record.clone() }}));
    }
    if !batch.other_records.is_empty() {
        add_note(rows, unit.unit, &serde_json::json!({"other": batch.other_records}));
    }
    let mut strings = batch.strings.as_str();
    let mut take = |bytes: Option<usize>| {
        let (text, rest) = strings.split_at(bytes?);
        strings = rest;
        Some(text)
    };
    let (mut held, mut captures) = (batch.held.iter().peekable(), batch.captures.iter().peekable());
    let mut featureless = batch.featureless.iter().peekable();
    let mut columns = Vec::with_capacity(batch.columns.len());
    for (at, row) in batch.rows.iter().enumerate() {
        let number = PageId::from_index(at);
        let (id, url, title) = (take(row.id_bytes), take(row.url_bytes), take(row.title_bytes));
        let held = match held.next_if(|(page, _)| *page == number) {
            Some((_, page)) => Some(
                postcard::to_stdvec(page)
                    .map_err(|error| Error::internal(format!("a page cannot be held: {error}")))?,
            ),
            None => None,
        };
        let capture = captures.next_if(|(page, _)| *page == number).map(|row| row.1);
        let has_features = featureless.next_if(|page| **page == number).is_none();
        columns.clear();
        columns.extend(batch.columns.iter().map(|column| column[at]));
        let source = row.source.index();
        let row_number = taken + at as u64;
        let identity = identity_bytes(row.identity, plan, &columns, (unit.unit, row_number, row.record));
        let key = |keys: Option<[u64; 3]>, which: usize| {
            keys.map(|keys| keys[which]).filter(|&key| key != 0).map_or(Value::Long(None), Value::bits)
        };
        let (own, refers_to) = (capture.map(|capture| capture.own), capture.and_then(|capture| capture.refers_to));
        let site = url.and_then(|url| site.site(url)).map(|site| xxh3_64(site.as_bytes()).cast_signed());
        rows.push(&[
            Value::Long(Some(PAGE)),
            Value::count(unit.unit as u64),
            Value::count(row_number),
            Value::count((unit.first_source + source) as u64),
            Value::count(row.record),
            row.offset.map_or(Value::Long(None), |offset| Value::count(offset + unit.start())),
            Value::count(row.length),
            Value::Text(id),
            Value::Text(url),
            Value::Text(title),
            Value::count(u64::from(row.tokens)),
            Value::Bytes(Some(&identity)),
            Value::bits(row.text_hash),
            Value::Text(row.scope.map(Named::name)),
            Value::Truth(Some(row.is_revisit)),
            Value::Long(Some(unit.class(source) | i64::from(row.is_revisit) << 32)),
            Value::Long(Some(ordered(row.rank_key.unwrap_or(0.0)))),
            Value::Bytes(Some(&encoded(&columns))),
            Value::Bytes(held.as_deref()),
            key(own, 0),
            key(own, 1),
            key(own, 2),
            key(refers_to, 0),
            key(refers_to, 1),
            key(refers_to, 2),
            Value::Long(site),
            Value::Truth(Some(has_features)),
            Value::Text(None),
        ]);
    }
    Ok(taken + batch.rows.len() as u64)
}

/// Reads chosen pages again. Rows: a unit, and the records in it that are wanted, ascending.
pub(super) struct Features {
    config: Config,
    plan: Plan,
}

impl Features {
    pub(super) fn new(spec: &Spec) -> Result<Features> {
        let plan = spec.plan()?;
        let plan = if spec.whole { plan.of_whole_pages() } else { plan };
        Ok(Features { config: spec.config.clone(), plan })
    }
}

/// Adds what a page is compared by.
pub(super) fn add_features(rows: &mut RowBuilder, position: i64, sketch: PageSketch<'_>, group: u64) {
    let features = encoded(sketch.features);
    let set_hash = xxh3_64(&[features.as_slice(), &group.to_le_bytes()].concat());
    rows.push(&[
        Value::Long(Some(position)),
        Value::Bytes(Some(&features)),
        Value::Bytes(Some(&encoded(sketch.weights))),
        Value::Bytes(Some(&encoded(sketch.sketch))),
        Value::count(sketch.features.len() as u64),
        Value::bits(set_hash),
    ]);
}

impl Part for Features {
    fn push(&mut self, rows: &RecordBatch, emit: &mut Emit<'_>) -> Result<()> {
        let rows = Rows(rows);
        let (specs, lists) = (rows.texts("spec")?, rows.column("wanted")?);
        let lists = lists.as_list_opt::<i32>().ok_or_else(|| other_kind("wanted"))?;
        for row in 0..rows.len() {
            let unit = unit(specs.value(row))?;
            let list = lists.value(row);
            let list = list.as_struct_opt().ok_or_else(|| other_kind("wanted"))?;
            let numbers = |name: &str| {
                let column = list.column_by_name(name).and_then(|column| column.as_primitive_opt::<Int64Type>());
                column.ok_or_else(|| other_kind(name))
            };
            let (positions, sources, records) = (numbers("position")?, numbers("source")?, numbers("record")?);
            let (offsets, lengths) = (numbers("offset")?, numbers("length")?);
            let mut wanted: Vec<WantedRecord> = (0..list.len())
                .map(|at| WantedRecord {
                    source: SourceId::from_index(
                        usize::try_from(sources.value(at)).unwrap_or(0).saturating_sub(unit.first_source),
                    ),
                    record: records.value(at).cast_unsigned(),
                    offset: offsets.is_valid(at).then(|| offsets.value(at).cast_unsigned() - unit.start()),
                    length: lengths.value(at).cast_unsigned(),
                    page: PageId::from_index(at),
                })
                .collect();
            wanted.sort_by_key(|record| (record.source, record.record));
            let wanted = Wanted(wanted);
            let (corpus, _) = unit.open(&self.config)?;
            let mut missing = wanted.0.len();
            corpus.scan().for_each_batch_of(
                &wanted,
                || Sketcher::of_plan(&self.plan),
                |sketcher, records| {
                    let mut made = RowBuilder::new(&FEATURES);
                    records.for_each_page(|raw| {
                        if let Some(page) = wanted.page_of(raw.source, raw.record) {
                            sketcher.read(&raw);
                            let group = sketcher.group();
                            add_features(&mut made, positions.value(page.index()), sketcher.sketch(), group);
                        }
                        Ok(())
                    })?;
                    let count = made.len();
                    Ok((made.take()?, count))
                },
                |(made, count)| {
                    missing -= count.min(missing);
                    emit(made)?;
                    Ok(ControlFlow::Continue(()))
                },
            )?;
            if missing > 0 {
                let source = unit.sources.first().map_or("", |source| source.display.as_str());
                return Err(Error::InputChanged { source_name: source.to_owned(), record: 0 });
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut Emit<'_>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whole_numbers_order_as_real_ones(left in any::<f64>(), right in any::<f64>()) {
            prop_assert_eq!(ordered(left).cmp(&ordered(right)), left.total_cmp(&right));
        }
    }
}
