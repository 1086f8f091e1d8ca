//! Pages → keys, and pairs of pages that share one.

use arrow_array::RecordBatch;

use crate::candidate::band_join::BandJoin;
use crate::candidate::hamming_join::join_design;
use crate::candidate::inverted::Sharing;
use crate::candidate::pair_filter::PairFilter;
use crate::error::{Error, Result};
use crate::feature::rarity::{Prefix, Rarity};
use crate::job::dedup::parts::rows::Kind::{Bytes, Long, Real, Truth};
use crate::job::dedup::parts::rows::{Kind, RowBuilder, Rows, Value, numbers};
use crate::job::dedup::parts::{Emit, Part, Spec};
use crate::page::{PageId, PageVec};
use crate::plan::design::Design;
use crate::plan::{BitSearch, Plan, Search};
use crate::sketcher::NO_KEY;
use crate::spill::LongList;

/// A page's key in a band, with what its pairs are looked at by.
pub(super) const KEYS: [(&str, Kind); 6] =
    [("band", Long), ("key", Long), ("position", Long), ("tokens", Long), ("is_input", Truth), ("columns", Bytes)];

/// A pair; or a member of a bucket that is too full, where `right` is nothing.
pub(super) const PAIRS: [(&str, Kind); 4] = [("left", Long), ("right", Long), ("band", Long), ("key", Long)];

/// A page at one of its rarest features, or the count of a counter where `feature` is nothing.
pub(super) const SPOTS: [(&str, Kind); 9] = [
    ("feature", Long),
    ("position", Long),
    ("total", Long),
    ("rest", Long),
    ("last_count", Long),
    ("last_feature", Long),
    ("tokens", Long),
    ("is_input", Truth),
    ("group", Long),
];

/// Two pages that met at a feature: what they can share beside those where they meet, and what they must.
pub(super) const MEETINGS: [(&str, Kind); 4] = [("left", Long), ("right", Long), ("rest", Long), ("needed", Real)];

/// Rows that are sent at a time.
const BATCH_ROWS: usize = 1 << 14;
/// Members of buckets that are looked at together.
const JOINED_ROWS: usize = 1 << 16;

/// Makes the keys of pages that stand for their sets.
pub(super) struct Keys {
    plan: Plan,
    design: Option<Design>,
    filters: bool,
    out: RowBuilder,
}

impl Keys {
    pub(super) fn new(spec: &Spec) -> Result<Keys> {
        let plan = spec.plan()?;
        let design = match &plan.search {
            Search::Bits(BitSearch::Pieces(design)) | Search::BandsAndBits(BitSearch::Pieces(design)) => {
                Some(design.clone())
            }
            Search::Bits(BitSearch::Radius(radius)) | Search::BandsAndBits(BitSearch::Radius(radius)) => {
                Some(join_design(spec.rows, spec.rows, *radius))
            }
            Search::Bands | Search::Features { .. } => None,
        };
        let filters = !PairFilter::is_idle(&plan);
        Ok(Keys { plan, design, filters, out: RowBuilder::new(&KEYS) })
    }
}

impl Part for Keys {
    fn push(&mut self, batch: &RecordBatch, emit: &mut Emit<'_>) -> Result<()> {
        let rows = Rows(batch);
        let (positions, tokens) = (rows.longs("position")?, rows.longs("tokens")?);
        let (inputs, columns) = (rows.truths("is_input")?, rows.bytes("columns")?);
        let layout = self.plan.columns();
        for row in 0..rows.len() {
            let own: Vec<u64> = numbers(columns.value(row));
            let group = layout.group_column().map_or(0, |column| own[column].rotate_left(17));
            let bits = &own[layout.first_bits()..layout.first_bits() + layout.bits];
            let bands = own[..layout.first_bits()].iter().copied().enumerate();
            let bands = bands.filter(|&(band, key)| band < layout.bands || key != NO_KEY);
            let tables = self.design.iter().flat_map(|design| design.tables().iter().enumerate());
            let tables = tables.map(|(number, table)| (layout.first_bits() + number, table.key(|word| bits[word])));
            for (band, key) in bands.chain(tables) {
                self.out.push(&[
                    Value::count(band as u64),
                    Value::bits(key ^ group),
                    Value::Long(Some(positions.value(row))),
                    Value::Long(Some(tokens.value(row))),
                    Value::Truth(Some(inputs.value(row))),
                    Value::Bytes(self.filters.then(|| columns.value(row))),
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

/// A member of a bucket.
struct Member {
    bucket: (i64, i64),
    position: i64,
    tokens: u32,
    is_input: bool,
    columns: Vec<u64>,
}

/// Makes pairs of what shares a key. Rows: in the order of band, key and position.
pub(super) struct Pairs {
    plan: Plan,
    bucket_limit: usize,
    members: Vec<Member>,
    out: RowBuilder,
}

impl Pairs {
    pub(super) fn new(spec: &Spec) -> Result<Pairs> {
        let bucket_limit = spec.config.pairs.bucket_limit;
        Ok(Pairs { plan: spec.plan()?, bucket_limit, members: Vec::new(), out: RowBuilder::new(&PAIRS) })
    }

    /// The pairs of whole buckets.
    fn join(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        let members = std::mem::take(&mut self.members);
        let layout = self.plan.columns();
        let column = |at: usize| members.iter().map(|member| member.columns.get(at).copied().unwrap_or(0)).collect();
        let filters = !PairFilter::is_idle(&self.plan);
        let tokens: PageVec<u32> = members.iter().map(|member| member.tokens).collect();
        let columns: Vec<Vec<u64>> = (0..if filters { layout.columns() } else { 0 }).map(column).collect();
        let of = |range: std::ops::Range<usize>| -> Vec<&[u64]> {
            columns.get(range).into_iter().flatten().map(Vec::as_slice).collect()
        };
        let one = |column: Option<usize>| column.and_then(|at| columns.get(at)).map(Vec::as_slice);
        let is_input: Box<dyn Fn(PageId) -> bool + Sync> = Box::new(|page| members[page.index()].is_input);
        let filter = PairFilter {
            tokens: &tokens,
            length_ratio: self.plan.pairs.length_ratio,
            groups: one(layout.group_column()),
            sites: one(layout.site_column()),
            bands: of(0..layout.bands),
            bits: of(layout.first_bits()..layout.first_bits() + layout.bits),
            compared_bits: self.plan.sketch.compared_bits(),
            decision: self.plan.decision,
            is_input: self.plan.drops_containers.then_some(is_input),
        };
        let passes = |left: PageId, right: PageId| filter.passes(left, right);
        let everyone = |_: PageId| true;
        let mut join = BandJoin::new(
            &everyone,
            if filters { Some(&passes) } else { None },
            self.bucket_limit,
            LongList::default(),
        );
        let mut bucket = 0u64;
        let keys = members.iter().enumerate().map(|(at, member)| {
            bucket += u64::from(at > 0 && members[at - 1].bucket != member.bucket);
            (bucket, PageId::from_index(at))
        });
        join.add(0, keys.collect::<Vec<_>>().into_iter())?;
        let found = join.finish()?;
        let position = |page: PageId| Value::Long(Some(members[page.index()].position));
        for &(left, right) in &found.pairs {
            self.out.push(&[position(left), position(right), Value::Long(None), Value::Long(None)]);
            if self.out.len() >= BATCH_ROWS {
                emit(self.out.take()?)?;
            }
        }
        for page in found.crowded.iter().flat_map(|crowd| &crowd.members) {
            let (band, key) = members[page.index()].bucket;
            self.out.push(&[position(*page), Value::Long(None), Value::Long(Some(band)), Value::Long(Some(key))]);
        }
        emit(self.out.take()?)
    }
}

impl Part for Pairs {
    fn push(&mut self, batch: &RecordBatch, emit: &mut Emit<'_>) -> Result<()> {
        let rows = Rows(batch);
        let (bands, keys, positions) = (rows.longs("band")?, rows.longs("key")?, rows.longs("position")?);
        let (tokens, inputs, columns) = (rows.longs("tokens")?, rows.truths("is_input")?, rows.bytes("columns")?);
        for row in 0..rows.len() {
            let bucket = (bands.value(row), keys.value(row));
            if self.members.len() >= JOINED_ROWS && self.members.last().is_some_and(|last| last.bucket != bucket) {
                self.join(emit)?;
            }
            self.members.push(Member {
                bucket,
                position: positions.value(row),
                tokens: u32::try_from(tokens.value(row)).unwrap_or(u32::MAX),
                is_input: inputs.value(row),
                columns: numbers(columns.value(row)),
            });
        }
        Ok(())
    }

    fn finish(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        self.join(emit)
    }
}

fn sharing(plan: &Plan, bucket_limit: usize) -> Result<Sharing> {
    let Search::Features { threshold, size_filter, prefix_filter } = plan.search else {
        return Err(Error::internal("pages are not found by their features"));
    };
    Ok(Sharing { measure: plan.measure, threshold, size_filter, prefix_filter, bucket_limit })
}

/// Counts features, without counts; with them, puts pages at their rarest ones.
pub(super) struct Spots {
    sharing: Sharing,
    counted: Option<Rarity>,
    counts: Rarity,
    prefix: Prefix,
    out: RowBuilder,
}

impl Spots {
    pub(super) fn new(spec: &Spec) -> Result<Spots> {
        let sharing = sharing(&spec.plan()?, spec.config.pairs.bucket_limit)?;
        let counted = spec.counts.as_ref().map(|counts| Rarity::of_counts(counts.iter().copied()));
        let (counts, prefix) = (Rarity::default(), Prefix::default());
        Ok(Spots { sharing, counted, counts, prefix, out: RowBuilder::new(&SPOTS) })
    }
}

impl Part for Spots {
    fn push(&mut self, batch: &RecordBatch, emit: &mut Emit<'_>) -> Result<()> {
        let rows = Rows(batch);
        let features = rows.bytes("features")?;
        let Some(rarity) = &self.counted else {
            (0..rows.len()).for_each(|row| self.counts.add(&numbers(features.value(row))));
            return Ok(());
        };
        let (positions, tokens) = (rows.longs("position")?, rows.longs("tokens")?);
        let (inputs, groups) = (rows.truths("is_input")?, rows.longs("group")?);
        for row in 0..rows.len() {
            let own: Vec<u64> = numbers(features.value(row));
            self.prefix.fill(&own, &[], rarity, self.sharing.prefix_threshold());
            let Some(&((last_count, last_feature), _)) =
                self.prefix.length.checked_sub(1).and_then(|last| self.prefix.ranked().get(last))
            else {
                continue;
            };
            for ((_, feature), _) in &self.prefix.ranked()[..self.prefix.length] {
                self.out.push(&[
                    Value::bits(*feature),
                    Value::Long(Some(positions.value(row))),
                    Value::count(self.prefix.total),
                    Value::count(self.prefix.rest),
                    Value::count(u64::from(last_count)),
                    Value::bits(last_feature),
                    Value::Long(Some(tokens.value(row))),
                    Value::Truth(Some(inputs.value(row))),
                    Value::Long(Some(groups.value(row))),
                ]);
            }
            if self.out.len() >= BATCH_ROWS {
                emit(self.out.take()?)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        if self.counted.is_none() {
            for (counter, count) in self.counts.counts() {
                let none = Value::Long(None);
                let (counter, count) = (Value::count(counter as u64), Value::count(u64::from(count)));
                self.out.push(&[none, counter, count, none, none, none, none, Value::Truth(None), none]);
                if self.out.len() >= BATCH_ROWS {
                    emit(self.out.take()?)?;
                }
            }
        }
        emit(self.out.take()?)
    }
}

/// A page at a feature.
struct Meeting {
    position: i64,
    total: u64,
    rest: u64,
    last: (u32, u64),
    tokens: u32,
    is_input: bool,
    group: u64,
}

/// Makes pairs of pages that meet at a feature. Rows: in the order of feature.
pub(super) struct Meetings {
    plan: Plan,
    sharing: Sharing,
    feature: Option<i64>,
    list: Vec<Meeting>,
    out: RowBuilder,
}

impl Meetings {
    pub(super) fn new(spec: &Spec) -> Result<Meetings> {
        let plan = spec.plan()?;
        let sharing = sharing(&plan, spec.config.pairs.bucket_limit)?;
        Ok(Meetings { plan, sharing, feature: None, list: Vec::new(), out: RowBuilder::new(&MEETINGS) })
    }

    fn meet(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        let mut list = std::mem::take(&mut self.list);
        // From light to heavy.
        list.sort_by_key(|page| (page.total, page.position));
        let tokens: PageVec<u32> = list.iter().map(|page| page.tokens).collect();
        let groups: Vec<u64> = list.iter().map(|page| page.group).collect();
        let is_input: Box<dyn Fn(PageId) -> bool + Sync> = Box::new(|page| list[page.index()].is_input);
        let filter = PairFilter {
            tokens: &tokens,
            length_ratio: self.plan.pairs.length_ratio,
            groups: self.plan.pairs.within.map(|_| groups.as_slice()),
            sites: None,
            bands: Vec::new(),
            bits: Vec::new(),
            compared_bits: self.plan.sketch.compared_bits(),
            decision: self.plan.decision,
            is_input: self.plan.drops_containers.then_some(is_input),
        };
        for (at, page) in list.iter().enumerate() {
            let lightest = self.sharing.lightest(page.total);
            let from = if self.sharing.size_filter {
                list.partition_point(|other| (other.total as f64) < lightest)
            } else {
                0
            };
            for (number, other) in list.iter().enumerate().take(at).skip(from) {
                if !filter.is_wanted(PageId::from_index(at), PageId::from_index(number)) {
                    continue;
                }
                let rest = if page.last <= other.last { page.rest } else { other.rest };
                let needed = self.sharing.needed(page.total, other.total) * (1.0 - 1e-9);
                let (left, right) = (page.position.min(other.position), page.position.max(other.position));
                self.out.push(&[
                    Value::Long(Some(left)),
                    Value::Long(Some(right)),
                    Value::count(rest),
                    Value::Real(Some(needed)),
                ]);
                if self.out.len() >= BATCH_ROWS {
                    emit(self.out.take()?)?;
                }
            }
        }
        Ok(())
    }
}

impl Part for Meetings {
    fn push(&mut self, batch: &RecordBatch, emit: &mut Emit<'_>) -> Result<()> {
        let rows = Rows(batch);
        let of = |name: &str| rows.longs(name);
        let (features, positions, totals, rests) = (of("feature")?, of("position")?, of("total")?, of("rest")?);
        let (last_counts, last_features, tokens) = (of("last_count")?, of("last_feature")?, of("tokens")?);
        let (inputs, groups) = (rows.truths("is_input")?, of("group")?);
        for row in 0..rows.len() {
            let feature = features.value(row);
            if self.feature.is_some_and(|last| last != feature) {
                self.meet(emit)?;
            }
            self.feature = Some(feature);
            self.list.push(Meeting {
                position: positions.value(row),
                total: totals.value(row).cast_unsigned(),
                rest: rests.value(row).cast_unsigned(),
                last: (
                    u32::try_from(last_counts.value(row)).unwrap_or(u32::MAX),
                    last_features.value(row).cast_unsigned(),
                ),
                tokens: u32::try_from(tokens.value(row)).unwrap_or(u32::MAX),
                is_input: inputs.value(row),
                group: groups.value(row).cast_unsigned(),
            });
        }
        Ok(())
    }

    fn finish(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        self.meet(emit)?;
        emit(self.out.take()?)
    }
}
