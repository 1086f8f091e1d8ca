//! Verified pairs of one component → who is kept.

use std::collections::{BTreeSet, HashMap};

use arrow_array::RecordBatch;

use crate::cluster::{Direction, star};
use crate::error::Result;
use crate::job::dedup::assign::behind_dropped;
use crate::job::dedup::parts::rows::Kind::{Long, Real, Truth};
use crate::job::dedup::parts::rows::{Kind, RowBuilder, Rows, Value};
use crate::job::dedup::parts::{Emit, Part, Spec};
use crate::page::{PageId, ScoredPair};
use crate::plan::Plan;
use crate::spill::LongList;
use crate::union_find::UnionFind;

/// A page that is dropped, and the one that it is dropped for.
pub(super) const STARS: [(&str, Kind); 4] =
    [("page", Long), ("target", Long), ("similarity", Real), ("is_containment", Truth)];

/// Pages that are still to be compared.
pub(super) const WANTED: [(&str, Kind); 2] = [("left", Long), ("right", Long)];

/// Rows that are sent at a time.
const BATCH_ROWS: usize = 1 << 14;

/// A page of a component: its place among all pages, and in the order of preference.
#[derive(Clone, Copy)]
struct Node {
    rank: (i64, i64, i64),
    is_in_crowd: bool,
}

/// What is done with a component.
enum Task {
    /// Stars.
    Stars,
    /// Which pages are compared that crowds kept apart.
    Settle,
    /// Which page is the best of the component.
    Chains,
}

/// Groups the pages of components. Rows: pairs, in the order of components; with where each page is in the order of preference.
pub(super) struct Grouping {
    plan: Plan,
    task: Task,
    component: Option<i64>,
    nodes: HashMap<i64, Node>,
    pairs: Vec<(i64, i64, ScoredPair, bool)>,
    out: RowBuilder,
}

impl Grouping {
    pub(super) fn new(spec: &Spec, task: &str) -> Result<Grouping> {
        let (task, out) = match task {
            "stars" => (Task::Stars, RowBuilder::new(&STARS)),
            "settle" => (Task::Settle, RowBuilder::new(&WANTED)),
            _ => (Task::Chains, RowBuilder::new(&WANTED)),
        };
        let plan = spec.plan()?;
        Ok(Grouping { plan, task, component: None, nodes: HashMap::new(), pairs: Vec::new(), out })
    }

    fn group(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        let nodes = std::mem::take(&mut self.nodes);
        let mut positions: Vec<i64> = nodes.keys().copied().collect();
        positions.sort_unstable();
        let number = |position: i64| {
            PageId::from_index(positions.binary_search(&position).expect("both pages of a pair are known"))
        };
        let mut order: Vec<PageId> = PageId::first(positions.len()).collect();
        order.sort_by_key(|page| nodes[&positions[page.index()]].rank);
        let (mut pairs, mut tried): (Vec<ScoredPair>, BTreeSet<(PageId, PageId)>) = Default::default();
        for (left, right, pair, is_accepted) in self.pairs.drain(..) {
            let (left, right) = (number(left), number(right));
            if is_accepted {
                pairs.push(ScoredPair { left, right, ..pair });
            } else {
                tried.insert((left, right));
            }
        }
        pairs.sort_unstable_by_key(|pair| (pair.left, pair.right));
        let direction = Direction::of(&self.plan, None);
        let position = |page: PageId| Value::Long(Some(positions[page.index()]));
        match self.task {
            Task::Chains => {
                for &page in &order[1..] {
                    self.out.push(&[position(page), position(order[0])]);
                }
            }
            Task::Stars => {
                let (chosen, _) =
                    star::stars(positions.len(), &order, &pairs, direction, self.plan.guess, LongList::default())?;
                for &(page, link) in chosen.links() {
                    self.out.push(&[
                        position(page),
                        position(link.page),
                        Value::Real(Some(link.similarity)),
                        Value::Truth(Some(link.is_containment)),
                    ]);
                }
            }
            Task::Settle => {
                let is_in_crowd = |page: PageId| nodes[&positions[page.index()]].is_in_crowd;
                let (chosen, neighbours) =
                    star::stars(positions.len(), &order, &pairs, direction, self.plan.guess, LongList::default())?;
                behind_dropped(&order, &chosen, &neighbours, &is_in_crowd, |page, kept| {
                    let (left, right) = (page.min(kept), page.max(kept));
                    if tried.insert((left, right)) {
                        self.out.push(&[position(left), position(right)]);
                    }
                    Ok(())
                })?;
            }
        }
        if self.out.len() >= BATCH_ROWS { emit(self.out.take()?) } else { Ok(()) }
    }
}

impl Part for Grouping {
    fn push(&mut self, batch: &RecordBatch, emit: &mut Emit<'_>) -> Result<()> {
        let rows = Rows(batch);
        let of = |name: &str| rows.longs(name);
        let (components, lefts, rights) = (of("component")?, of("left")?, of("right")?);
        let scores = [rows.reals("similarity")?, rows.reals("left_in_right")?, rows.reals("right_in_left")?];
        let accepted = rows.truths("accepted")?;
        let ends = [
            (of("left_class")?, of("left_rank")?, of("left_best")?, rows.truths("left_in_crowd")?),
            (of("right_class")?, of("right_rank")?, of("right_best")?, rows.truths("right_in_crowd")?),
        ];
        for row in 0..rows.len() {
            let component = components.value(row);
            if self.component.is_some_and(|last| last != component) {
                self.group(emit)?;
            }
            self.component = Some(component);
            let (left, right) = (lefts.value(row), rights.value(row));
            for (page, (classes, ranks, bests, crowds)) in [left, right].into_iter().zip(ends) {
                let rank = (classes.value(row), ranks.value(row), bests.value(row));
                self.nodes.entry(page).or_insert(Node { rank, is_in_crowd: crowds.value(row) });
            }
            let [similarity, left_in_right, right_in_left] = scores.map(|column| column.value(row));
            let none = PageId::from_index(0);
            let pair = ScoredPair {
                left: none,
                right: none,
                similarity,
                left_in_right,
                right_in_left,
                score: 0.0,
                estimate: 0.0,
                page_similarity: None,
                same_site: None,
                is_short: false,
            };
            self.pairs.push((left, right, pair, accepted.value(row)));
        }
        Ok(())
    }

    fn finish(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        if self.component.is_some() {
            self.group(emit)?;
        }
        emit(self.out.take()?)
    }
}

/// The components of pairs that fit into memory: every page, and the first page of its component.
///
/// # Errors
/// When the columns are not `left` and `right`.
pub fn connected(pairs: &[RecordBatch]) -> Result<RecordBatch> {
    let mut positions = Vec::new();
    for batch in pairs {
        let (left, right) = (Rows(batch).longs("left")?, Rows(batch).longs("right")?);
        positions.extend(left.values().iter().chain(right.values()));
    }
    positions.sort_unstable();
    positions.dedup();
    let number = |position: &i64| u32::try_from(positions.partition_point(|known| known < position)).unwrap_or(0);
    let mut components = UnionFind::new(positions.len());
    for batch in pairs {
        let (left, right) = (Rows(batch).longs("left")?, Rows(batch).longs("right")?);
        for (left, right) in left.values().iter().zip(right.values()) {
            components.join(number(left), number(right));
        }
    }
    let mut rows = RowBuilder::new(&[("node", Long), ("component", Long)]);
    for (at, &position) in (0..).zip(&positions) {
        let root = components.root(at);
        rows.push(&[Value::Long(Some(position)), Value::Long(Some(positions[root as usize]))]);
    }
    rows.take()
}
