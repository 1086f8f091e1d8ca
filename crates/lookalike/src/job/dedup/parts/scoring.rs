//! What two pages are compared by → what they have in common; and who leads in buckets that are too full.

use arrow_array::RecordBatch;

use crate::error::Result;
use crate::job::dedup::parts::rows::Kind::{Long, Real, Truth};
use crate::job::dedup::parts::rows::{Kind, RowBuilder, Rows, Value, numbers};
use crate::job::dedup::parts::{Emit, Part, Spec};
use crate::plan::{Plan, Verdict};
use crate::sketch::PageSketch;
use crate::verify::leaders::looked_at;
use crate::verify::score::score;

/// A page of a crowd at one of the features that its leaders are found by.
pub(super) const LEADS: [(&str, Kind); 3] = [("crowd", Long), ("position", Long), ("feature", Long)];

/// A pair that was compared: near-duplicates, or pages that just are none; rejected ones are left out unless whole pages are
/// compared.
pub(super) const SCORES: [(&str, Kind); 10] = [
    ("left", Long),
    ("right", Long),
    ("similarity", Real),
    ("left_in_right", Real),
    ("right_in_left", Real),
    ("score", Real),
    ("estimate", Real),
    ("same_site", Truth),
    ("accepted", Truth),
    ("near_miss", Truth),
];

/// Rows that are sent at a time.
const BATCH_ROWS: usize = 1 << 14;

/// The features of crowds' members by which leaders are found.
pub(super) struct Leads {
    out: RowBuilder,
}

impl Leads {
    pub(super) fn new() -> Leads {
        Leads { out: RowBuilder::new(&LEADS) }
    }
}

impl Part for Leads {
    fn push(&mut self, batch: &RecordBatch, emit: &mut Emit<'_>) -> Result<()> {
        let rows = Rows(batch);
        let (crowds, positions, features) = (rows.longs("crowd")?, rows.longs("position")?, rows.bytes("features")?);
        for row in 0..rows.len() {
            for &feature in looked_at(&numbers(features.value(row))) {
                self.out.push(&[
                    Value::Long(Some(crowds.value(row))),
                    Value::Long(Some(positions.value(row))),
                    Value::bits(feature),
                ]);
            }
            if self.out.len() >= BATCH_ROWS {
                emit(self.out.take()?)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        emit(self.out.take()?)
    }
}

/// Compares the two pages of each row.
pub(super) struct Compare {
    plan: Plan,
    /// Whether every pair is handed on.
    is_whole: bool,
    out: RowBuilder,
}

impl Compare {
    pub(super) fn new(spec: &Spec) -> Result<Compare> {
        let plan = spec.plan()?;
        let plan = if spec.whole { plan.of_whole_pages() } else { plan };
        Ok(Compare { plan, is_whole: spec.whole || spec.all, out: RowBuilder::new(&SCORES) })
    }
}

impl Part for Compare {
    fn push(&mut self, batch: &RecordBatch, emit: &mut Emit<'_>) -> Result<()> {
        let rows = Rows(batch);
        let (lefts, rights) = (rows.longs("left")?, rows.longs("right")?);
        let sets = [rows.bytes("left_features")?, rows.bytes("right_features")?];
        let weights = [rows.bytes("left_weights")?, rows.bytes("right_weights")?];
        let sketches = [rows.bytes("left_sketch")?, rows.bytes("right_sketch")?];
        for row in 0..rows.len() {
            let [left, right]: [Vec<u64>; 2] = sets.map(|column| numbers(column.value(row)));
            if !self.is_whole && !self.plan.can_be_close(left.len() as u64, right.len() as u64) {
                continue;
            }
            let [left_weights, right_weights]: [Vec<u32>; 2] = weights.map(|column| numbers(column.value(row)));
            let [left_sketch, right_sketch]: [Vec<u32>; 2] = sketches.map(|column| numbers(column.value(row)));
            let found = score(
                &self.plan,
                PageSketch { features: &left, weights: &left_weights, sketch: &left_sketch },
                PageSketch { features: &right, weights: &right_weights, sketch: &right_sketch },
            );
            if found.verdict == Verdict::Rejected && !self.is_whole {
                continue;
            }
            self.out.push(&[
                Value::Long(Some(lefts.value(row))),
                Value::Long(Some(rights.value(row))),
                Value::Real(Some(found.similarity)),
                Value::Real(Some(found.left_in_right)),
                Value::Real(Some(found.right_in_left)),
                Value::Real(Some(found.score)),
                Value::Real(Some(found.estimate)),
                Value::Truth(found.same_site),
                Value::Truth(Some(found.verdict == Verdict::Accepted)),
                Value::Truth(Some(found.verdict == Verdict::NearMiss)),
            ]);
        }
        emit(self.out.take()?)
    }

    fn finish(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        emit(self.out.take()?)
    }
}
