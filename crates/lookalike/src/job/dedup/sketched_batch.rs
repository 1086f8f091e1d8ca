//! One batch on its way from a worker to the table of pages, or to a file until its turn comes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cluster::Keep;
use crate::cluster::rank::rank_key;
use crate::error::{Result, SkippedRecord};
use crate::index::IndexReader;
use crate::names::Named;
use crate::page::{Capture, PageId, RawPage, SourceId};
use crate::plan::{Decision, Plan};
use crate::sketch::page_sets::SetBatch;
use crate::sketcher::Sketcher;

/// The pages of a batch and what else was found in it. Pages are counted from the start of the batch.
#[derive(Serialize, Deserialize)]
pub(super) struct SketchedBatch {
    pub(super) rows: Vec<BatchRow>,
    /// Ids, URLs and titles, one after the other.
    pub(super) strings: String,
    pub(super) columns: Vec<Vec<u64>>,
    pub(super) sets: Option<SetBatch>,
    #[serde(skip)]
    row_columns: Vec<u64>,
    pub(super) featureless: Vec<PageId>,
    /// The captures of a crawl, by row.
    pub(super) captures: Vec<(PageId, Capture)>,
    /// Records that are not pages, by what they are.
    pub(super) other_records: BTreeMap<String, u64>,
    /// Pages of HTML by the part of them that is compared.
    pub(super) scopes: BTreeMap<String, u64>,
    pub(super) skipped: Vec<SkippedRecord>,
    /// Rows that an index has something near to: the nearest id, and the distance.
    pub(super) near_rows: Vec<(PageId, String, u32)>,
}

/// One page.
#[derive(Serialize, Deserialize)]
pub(super) struct BatchRow {
    pub(super) source: SourceId,
    pub(super) record: u64,
    pub(super) offset: Option<u64>,
    pub(super) length: u64,
    pub(super) tokens: u32,
    pub(super) identity: u128,
    pub(super) rank_key: Option<f64>,
    /// Bytes of its strings; nothing where it has none.
    pub(super) id_bytes: Option<usize>,
    pub(super) url_bytes: Option<usize>,
    pub(super) title_bytes: Option<usize>,
}

impl SketchedBatch {
    pub(super) fn new(columns: usize, keeps_features: bool) -> SketchedBatch {
        SketchedBatch {
            rows: Vec::new(),
            strings: String::new(),
            columns: vec![Vec::new(); columns],
            sets: keeps_features.then(SetBatch::default),
            row_columns: Vec::new(),
            featureless: Vec::new(),
            captures: Vec::new(),
            other_records: BTreeMap::new(),
            scopes: BTreeMap::new(),
            skipped: Vec::new(),
            near_rows: Vec::new(),
        }
    }

    /// Adds a page; what is near to it in an index, if there is one, is noted.
    pub(super) fn push(
        &mut self,
        page: &RawPage<'_>,
        sketcher: &mut Sketcher,
        plan: &Plan,
        keep: &Keep,
        index: Option<&mut IndexReader>,
    ) -> Result<()> {
        let row = PageId::from_index(self.rows.len());
        self.captures.extend(page.capture.map(|capture| (row, capture)));
        let is_revisit = page.is_revisit();
        let facts = sketcher.read(page);
        if let Some(scope) = facts.scope.filter(|_| !is_revisit) {
            *self.scopes.entry(scope.name().to_owned()).or_default() += 1;
        }
        for text in [page.id.as_deref(), page.url.as_deref(), facts.title] {
            self.strings.push_str(text.unwrap_or_default());
        }
        self.rows.push(BatchRow {
            source: page.source,
            record: page.record,
            offset: page.offset,
            length: page.length,
            tokens: facts.tokens,
            identity: facts.identity,
            // A revisit has nothing that could be kept in place of its original.
            rank_key: rank_key(keep, page, facts.tokens).map(|key| if is_revisit { f64::INFINITY } else { key }),
            id_bytes: page.id.as_deref().map(str::len),
            url_bytes: page.url.as_deref().map(str::len),
            title_bytes: facts.title.map(str::len),
        });
        let is_long_enough = plan.is_long_enough(facts.tokens);
        if !self.columns.is_empty() {
            if is_long_enough {
                sketcher.columns(&mut self.row_columns);
            } else {
                self.row_columns.fill(0); // takes no part in the join
                self.row_columns.resize(self.columns.len(), 0);
            }
            self.columns.iter_mut().zip(&self.row_columns).for_each(|(column, &value)| column.push(value));
        }
        let has_features = !sketcher.sequence().is_empty();
        if is_long_enough && !has_features {
            self.featureless.push(row);
        }
        if let (Some(index), true, Some(&fingerprint), Decision::Distance { radius }) =
            (index, is_long_enough && has_features, self.row_columns.first(), plan.decision)
        {
            let nearest = index.query(fingerprint, radius, 1)?.matches.pop();
            self.near_rows.extend(nearest.map(|near| (row, near.id.to_string(), near.distance)));
        }
        if let Some(sets) = &mut self.sets
            && is_long_enough
        {
            sets.push(row, sketcher.sketch());
        }
        Ok(())
    }
}
