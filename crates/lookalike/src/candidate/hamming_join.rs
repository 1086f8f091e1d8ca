//! All pairs of fingerprints within a distance (Manku et al. 2007, §3.3).
//!
//! In: fingerprints on two sides, each sorted and without repeats. Out: the pairs, sorted, each once.
//! Tables over one side, the queries, are made once; the other side comes in chunks, each of which is
//! brought into the order of each table and compared bucket by bucket, where both are in the cache. What is
//! found in several tables counts in the first.

use rayon::prelude::*;

use crate::kernel::near_pairs;
use crate::plan::design::{Cut, Design, TableShape};

/// Fingerprints of a chunk: 64 MiB.
pub const CHUNK: usize = (64 << 20) / 8;

/// Cost of bringing a fingerprint into the order of a table, in comparisons of two fingerprints.
const SORT_COST: f64 = 100.0;
/// Blocks beyond the radius that are tried.
const MOST_EXTRA_BLOCKS: u32 = 4;

/// The cheapest blocks for comparing `left` fingerprints with `right` others.
///
/// The radius must be below 64.
#[must_use]
pub fn join_design(left: u64, right: u64, radius: u32) -> Design {
    let (left, right) = (left as f64, right as f64);
    let cost = |design: &Design| -> f64 {
        let tables = design.tables().iter();
        tables.map(|table| (left + right) * SORT_COST + left * right / f64::from(table.prefix).exp2()).sum()
    };
    let designs = (radius + 1..=radius + MOST_EXTRA_BLOCKS)
        .filter_map(|blocks| Design::new(64, radius, Cut::Blocks(vec![blocks])).ok());
    let best = designs.min_by(|a, b| cost(a).total_cmp(&cost(b)));
    best.unwrap_or_else(|| Design::pieces(64, radius + 1))
}

/// Queries in the order of every table.
pub struct QueryTables<'d> {
    design: &'d Design,
    tables: Vec<Bucketed>,
}

/// Keys by their first bits; in no order otherwise.
struct Bucketed {
    keys: Vec<u64>,
    starts: Vec<u32>,
}

/// Fingerprints of a bucket that are compared with the rest of it at a time.
const FEW: usize = 16;
/// Keys of a bucket that are worth a bucket of their own.
const BUCKET: u64 = 8;
/// The first bits of a key that make a bucket, at the most.
const MOST_BUCKET_BITS: u32 = 22;

impl Bucketed {
    fn bits(shape: &TableShape, keys: usize) -> u32 {
        shape.prefix.min((keys as u64 / BUCKET).max(1).ilog2()).min(MOST_BUCKET_BITS)
    }

    fn new(values: &[u64], shape: &TableShape, bits: u32) -> Bucketed {
        // Two passes, so that each writes to few places.
        let late = bits / 2;
        let bucket = |key: u64| bucket_of(key, bits);
        let keys = values.iter().map(|&value| shape.permute(value));
        let (keys, _) = scattered(keys, values.len(), late, |key| bucket(key) & ((1 << late) - 1), Vec::new());
        let (keys, _) = scattered(keys.iter().copied(), keys.len(), bits - late, |key| bucket(key) >> late, Vec::new());
        let mut starts = vec![0u32; (1 << bits) + 1];
        for &key in &keys {
            starts[bucket(key) + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        Bucketed { keys, starts }
    }

    fn bucket(&self, number: usize) -> &[u64] {
        &self.keys[self.starts[number] as usize..self.starts[number + 1] as usize]
    }
}

/// The first `bits` bits of a key.
fn bucket_of(key: u64, bits: u32) -> usize {
    usize::try_from(key.unbounded_shr(64 - bits)).expect("a bucket is numbered by at most 22 bits")
}

/// Keys by a digit of `bits` bits, in the room of `sorted`, those with the same digit in the order in which they
/// came; and where each digit's keys end.
fn scattered(
    keys: impl Iterator<Item = u64> + Clone,
    count: usize,
    bits: u32,
    digit: impl Fn(u64) -> usize,
    mut sorted: Vec<u64>,
) -> (Vec<u64>, Vec<usize>) {
    let mut places = vec![0usize; 1 << bits];
    for key in keys.clone() {
        places[digit(key)] += 1;
    }
    let mut start = 0;
    for place in &mut places {
        start += std::mem::replace(place, start);
    }
    if sorted.len() < count {
        sorted.resize(count, 0);
    }
    for key in keys {
        let place = &mut places[digit(key)];
        sorted[*place] = key;
        *place += 1;
    }
    (sorted, places)
}

impl<'d> QueryTables<'d> {
    /// Tables over `queries`.
    #[must_use]
    pub fn new(queries: &[u64], design: &'d Design) -> QueryTables<'d> {
        let table =
            |shape: &TableShape| Bucketed::new(queries, shape, Bucketed::bits(shape, queries.len().max(1 << 12)));
        QueryTables { design, tables: design.tables().par_iter().map(table).collect() }
    }

    /// Pairs of a query and a fingerprint of the chunk within `radius`, each once, in no order.
    #[must_use]
    pub fn join(&self, chunk: &[u64], radius: u32) -> Vec<(u64, u64)> {
        self.in_all_tables(|number, queries| self.join_table(number, queries, chunk, radius))
    }

    /// Pairs of two different queries within `radius`, the smaller first, each once, in no order.
    #[must_use]
    pub fn join_self(&self, radius: u32) -> Vec<(u64, u64)> {
        self.in_all_tables(|number, queries| {
            let (mut pairs, mut found) = (Vec::new(), Vec::new());
            for bucket in 0..queries.starts.len() - 1 {
                let mut rest = queries.bucket(bucket);
                while !rest.is_empty() {
                    // A few with all that follow.
                    let few = &rest[..rest.len().min(FEW)];
                    self.join_bucket(number, few, rest, radius, &mut found, &mut |(query, row), left, right| {
                        if query < row {
                            pairs.push((left.min(right), left.max(right)));
                        }
                    });
                    rest = &rest[few.len()..];
                }
            }
            pairs
        })
    }

    fn in_all_tables(&self, join: impl Fn(usize, &Bucketed) -> Vec<(u64, u64)> + Sync) -> Vec<(u64, u64)> {
        let tables = self.tables.par_iter().enumerate();
        let pairs: Vec<Vec<(u64, u64)>> = tables.map(|(number, queries)| join(number, queries)).collect();
        pairs.concat()
    }

    /// Emits the pairs of a bucket, where they are and what, unless an earlier table has them.
    fn join_bucket(
        &self,
        number: usize,
        queries: &[u64],
        near: &[u64],
        radius: u32,
        found: &mut Vec<(u32, u32)>,
        emit: &mut impl FnMut((u32, u32), u64, u64),
    ) {
        let shape = &self.design.tables()[number];
        found.clear();
        near_pairs(queries, near, radius, found);
        for &(query, row) in &*found {
            let key = queries[query as usize];
            let difference = shape.restore(near[row as usize] ^ key);
            if self.design.first_table(difference) == Some(number) {
                let left = shape.restore(key);
                emit((query, row), left, left ^ difference);
            }
        }
    }

    fn join_table(&self, number: usize, queries: &Bucketed, chunk: &[u64], radius: u32) -> Vec<(u64, u64)> {
        let shape = &self.design.tables()[number];
        let bits = (queries.starts.len() - 1).ilog2();
        // By the first half of the bits in one pass; then part by part, each of which fits the cache.
        let late = bits / 2;
        let bucket = |key: u64| bucket_of(key, bits);
        let keys = chunk.iter().map(|&value| shape.permute(value));
        let (keys, ends) = scattered(keys, chunk.len(), bits - late, |key| bucket(key) >> late, Vec::new());
        let (mut pairs, mut found, mut room, mut from) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for (part, end) in ends.into_iter().enumerate() {
            let keys = keys[from..end].iter().copied();
            let (rows, row_ends) = scattered(keys, end - from, late, |key| bucket(key) & ((1 << late) - 1), room);
            from = end;
            let mut row_from = 0;
            for (within, row_end) in row_ends.into_iter().enumerate() {
                let (queries, near) = (queries.bucket(part << late | within), &rows[row_from..row_end]);
                row_from = row_end;
                self.join_bucket(number, queries, near, radius, &mut found, &mut |_, left, right| {
                    pairs.push((left, right));
                });
            }
            room = rows;
        }
        pairs
    }
}

/// All pairs of different fingerprints of one side within `radius`, the smaller first; sorted.
#[must_use]
pub fn self_join(fingerprints: &[u64], radius: u32) -> Vec<(u64, u64)> {
    let design = join_design(fingerprints.len() as u64, fingerprints.len() as u64, radius);
    let mut pairs = Vec::new();
    let mut chunks = fingerprints.chunks(CHUNK);
    while let Some(queries) = chunks.next() {
        let tables = QueryTables::new(queries, &design);
        pairs.extend(tables.join_self(radius));
        // All of them are larger.
        chunks.clone().for_each(|chunk| pairs.extend(tables.join(chunk, radius)));
    }
    pairs.par_sort_unstable();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::next_random;

    /// Random fingerprints with neighbours at every distance up to 12.
    fn fingerprints(count: usize, state: &mut u64) -> Vec<u64> {
        let mut all: Vec<u64> = (0..count).map(|_| next_random(state)).collect();
        for at in 0..count / 2 {
            let mut near = all[at];
            for _ in 0..at % 13 {
                near ^= 1 << (next_random(state) % 64);
            }
            all.push(near);
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    fn all_pairs(left: &[u64], right: &[u64], radius: u32) -> Vec<(u64, u64)> {
        let pairs = left.iter().flat_map(|&a| right.iter().map(move |&b| (a, b)));
        pairs.filter(|(a, b)| (a ^ b).count_ones() <= radius).collect()
    }

    #[test]
    fn the_join_equals_brute_force_at_every_radius() {
        let mut state = 3;
        for radius in 0..=10 {
            let (left, right) = (fingerprints(300, &mut state), fingerprints(500, &mut state));
            let mut right: Vec<u64> = right.iter().chain(&left[..100]).copied().collect();
            right.sort_unstable();
            right.dedup();
            let expected = all_pairs(&left, &right, radius);
            for blocks in radius + 1..=radius + 2 {
                let design = Design::new(64, radius, Cut::Blocks(vec![blocks])).unwrap();
                let mut found = QueryTables::new(&left, &design).join(&right, radius);
                found.sort_unstable();
                assert_eq!(found, expected, "radius {radius}, {blocks} blocks");
            }
            let expected: Vec<(u64, u64)> =
                all_pairs(&right, &right, radius).into_iter().filter(|(a, b)| a < b).collect();
            assert!(radius == 0 || !expected.is_empty());
            assert_eq!(self_join(&right, radius), expected, "radius {radius}");
        }
    }

    #[test]
    fn more_fingerprints_get_longer_prefixes() {
        assert_eq!(join_design(10_000, 10_000, 3).tables().len(), 4);
        assert!(join_design(1 << 34, 1 << 34, 3).tables().len() >= 10);
        assert_eq!(join_design(1000, 1000, 0).tables().len(), 1);
    }
}
