//! One batch on its way from a worker to the table of pages, or to a file until its turn comes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cluster::Keep;
use crate::cluster::rank::rank_key;
use crate::error::{Result, SkippedRecord};
use crate::index::IndexReader;
use crate::job::dedup::likely::LikelyPages;
use crate::names::Named;
use crate::page::{Capture, PageId, RawPage, SourceId};
use crate::plan::{ColumnLayout, Decision, Plan};
use crate::report::summary::UnreadRanks;
use crate::sketch::page_sets::SetBatch;
use crate::sketcher::{NO_KEY, PageAbout, Sketcher};
use crate::text::frames::{Learns, SamplePage};
use crate::text::{HeldPage, Scope};

/// The pages of a batch and what else was found in it. Pages are counted from the start of the batch.
#[derive(Serialize, Deserialize)]
pub(super) struct SketchedBatch {
    pub(super) rows: Vec<BatchRow>,
    /// Ids, URLs and titles, one after the other.
    pub(super) strings: String,
    pub(super) columns: Vec<Vec<u64>>,
    pub(super) sets: Option<SetBatch>,
    /// What likely candidates are compared by; not kept in files.
    #[serde(skip)]
    pub(super) likely: SetBatch,
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
    /// Pages whose rank could not be read.
    pub(super) unread_ranks: Option<UnreadRanks>,
    /// Rows that an index has something near to: the nearest id, and the distance.
    pub(super) near_rows: Vec<(PageId, String, u32)>,
    /// Pages that cannot be sketched before frames are known.
    pub(super) held: Vec<(PageId, HeldPage)>,
}

/// One page.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct BatchRow {
    pub(super) source: SourceId,
    pub(super) record: u64,
    pub(super) offset: Option<u64>,
    pub(super) length: u64,
    pub(super) tokens: u32,
    pub(super) identity: u128,
    pub(super) text_hash: u64,
    pub(super) scope: Option<Scope>,
    pub(super) is_revisit: bool,
    pub(super) rank_key: Option<f64>,
    /// Bytes of its strings; nothing where it has none.
    pub(super) id_bytes: Option<usize>,
    pub(super) url_bytes: Option<usize>,
    pub(super) title_bytes: Option<usize>,
}

/// What pages are sketched with, beside the sketcher.
pub(super) struct SketchedWith<'a> {
    pub(super) plan: &'a Plan,
    pub(super) keep: &'a Keep,
    /// Who guesses which pages will be compared.
    pub(super) likely: Option<&'a LikelyPages>,
}

/// What is known of a held page beside its text.
pub(super) struct HeldAbout {
    url: Option<String>,
    source: SourceId,
    record: u64,
}

impl HeldAbout {
    pub(super) fn about(&self) -> PageAbout<'_> {
        PageAbout { url: self.url.as_deref(), title: None, source: self.source, record: self.record }
    }
}

impl SketchedBatch {
    pub(super) fn new(columns: usize, keeps_features: bool) -> SketchedBatch {
        SketchedBatch {
            rows: Vec::new(),
            strings: String::new(),
            columns: vec![Vec::new(); columns],
            sets: keeps_features.then(SetBatch::default),
            likely: SetBatch::default(),
            row_columns: Vec::new(),
            featureless: Vec::new(),
            captures: Vec::new(),
            other_records: BTreeMap::new(),
            scopes: BTreeMap::new(),
            skipped: Vec::new(),
            unread_ranks: None,
            near_rows: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Adds a page; what is near to it in an index, if there is one, is noted.
    pub(super) fn push(
        &mut self,
        page: &RawPage<'_>,
        sketcher: &mut Sketcher,
        with: &SketchedWith<'_>,
        index: Option<&mut IndexReader>,
    ) -> Result<()> {
        let facts = sketcher.read(page);
        let (tokens, identity, text_hash, scope) = (facts.tokens, facts.identity, facts.text_hash, facts.scope);
        let row = self.row(page, facts.title, with.keep);
        self.add(BatchRow { tokens, identity, text_hash, scope, ..row }, sketcher, with, index)
    }

    /// Adds a page without its sketch, if that has to wait until frames are known; says whether it did.
    pub(super) fn hold(
        &mut self,
        page: &RawPage<'_>,
        sketcher: &mut Sketcher,
        with: &SketchedWith<'_>,
        learner: &dyn Learns,
    ) -> bool {
        if page.is_revisit() {
            return false;
        }
        let Some((held, title)) = sketcher.hold(page, learner) else { return false };
        let row = self.row(page, title, with.keep);
        self.held.push((PageId::from_index(self.rows.len()), held));
        self.rows.push(row);
        self.columns.iter_mut().for_each(|column| column.push(NO_KEY));
        true
    }

    /// The row of a page of which nothing is known yet, with its strings.
    fn row(&mut self, page: &RawPage<'_>, title: Option<&str>, keep: &Keep) -> BatchRow {
        self.captures.extend(page.capture.map(|capture| (PageId::from_index(self.rows.len()), capture)));
        for text in [page.id.as_deref(), page.url.as_deref(), title] {
            self.strings.push_str(text.unwrap_or_default());
        }
        if let Some(value) = &page.rank_unread {
            let first = || UnreadRanks { pages: 0, first: value.chars().take(UnreadRanks::MOST_CHARS).collect() };
            self.unread_ranks.get_or_insert_with(first).pages += 1;
        }
        let is_revisit = page.is_revisit();
        BatchRow {
            source: page.source,
            record: page.record,
            offset: page.offset,
            length: page.length,
            tokens: 0,
            identity: 0,
            text_hash: 0,
            scope: None,
            is_revisit,
            // A revisit has nothing that could be kept in place of its original.
            rank_key: rank_key(keep, page, 0).map(|key| if is_revisit { f64::INFINITY } else { key }),
            id_bytes: page.id.as_deref().map(str::len),
            url_bytes: page.url.as_deref().map(str::len),
            title_bytes: title.map(str::len),
        }
    }

    /// Adds the page that the sketcher has just read.
    fn add(
        &mut self,
        mut row: BatchRow,
        sketcher: &mut Sketcher,
        with: &SketchedWith<'_>,
        index: Option<&mut IndexReader>,
    ) -> Result<()> {
        let number = PageId::from_index(self.rows.len());
        if let Some(scope) = row.scope.filter(|_| !row.is_revisit) {
            *self.scopes.entry(scope.name().to_owned()).or_default() += 1;
        }
        if *with.keep == Keep::Longest && !row.is_revisit {
            row.rank_key = Some(-f64::from(row.tokens));
        }
        let is_long_enough = with.plan.is_long_enough(row.tokens);
        self.rows.push(row);
        if !self.columns.is_empty() {
            if is_long_enough {
                sketcher.columns(&mut self.row_columns);
                if with.likely.is_some_and(|likely| likely.is_likely(&self.row_columns)) {
                    self.likely.push(number, sketcher.sketch_with_columns());
                }
            } else {
                self.row_columns.fill(NO_KEY); // takes no part in the join
                self.row_columns.resize(self.columns.len(), NO_KEY);
            }
            self.columns.iter_mut().zip(&self.row_columns).for_each(|(column, &value)| column.push(value));
        }
        let has_features = !sketcher.sequence().is_empty();
        if is_long_enough && !has_features {
            self.featureless.push(number);
        }
        if let (Some(index), true, Some(&fingerprint), Decision::Distance { radius }) =
            (index, is_long_enough && has_features, self.row_columns.first(), with.plan.decision)
        {
            let nearest = index.query(fingerprint, radius, 1)?.matches.pop();
            self.near_rows.extend(nearest.map(|near| (number, near.id.to_string(), near.distance)));
        }
        if let Some(sets) = &mut self.sets
            && is_long_enough
        {
            sets.push(number, sketcher.sketch());
        }
        Ok(())
    }

    /// About how many bytes it is stored in.
    pub(super) fn expected_bytes(&self) -> usize {
        let held = self.held.iter().map(|(_, page)| page.expected_bytes()).sum::<usize>();
        let columns = self.columns.len() * self.rows.len() * size_of::<u64>();
        held + columns + self.strings.len() + self.rows.len() * size_of::<BatchRow>()
    }

    /// What can be learnt about frames from the pages that were held.
    pub(super) fn samples(&self) -> Vec<SamplePage> {
        self.held.iter().filter_map(|(_, page)| page.sample()).collect()
    }

    /// The pages that were held, as far as they are wanted; the batch begins with the page `start`.
    pub(super) fn into_held(
        mut self,
        start: usize,
        is_wanted: &dyn Fn(PageId) -> bool,
    ) -> Vec<(PageId, HeldPage, HeldAbout)> {
        let mut string_at = 0;
        let mut abouts: Vec<Option<HeldAbout>> = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let url_at = string_at + row.id_bytes.unwrap_or(0);
            let title_at = url_at + row.url_bytes.unwrap_or(0);
            string_at = title_at + row.title_bytes.unwrap_or(0);
            let url = row.url_bytes.map(|_| self.strings[url_at..title_at].to_owned());
            abouts.push(Some(HeldAbout { url, source: row.source, record: row.record }));
        }
        let held = std::mem::take(&mut self.held).into_iter();
        let wanted = held.filter(|(row, _)| is_wanted(row.from_start(start)));
        wanted.filter_map(|(row, page)| Some((row.from_start(start), page, abouts[row.index()].take()?))).collect()
    }

    /// The same batch with the pages that were held; frames are known to the sketcher and the plan. What was sketched
    /// before has the columns of `narrow`.
    pub(super) fn completed(
        mut self,
        narrow: ColumnLayout,
        sketcher: &mut Sketcher,
        with: &SketchedWith<'_>,
        mut index: Option<&mut IndexReader>,
    ) -> Result<SketchedBatch> {
        let wide = with.plan.columns();
        let columns = if self.columns.is_empty() { 0 } else { wide.columns() };
        let mut out = SketchedBatch::new(columns, self.sets.is_some());
        let rows = std::mem::take(&mut self.rows);
        let mut held = std::mem::take(&mut self.held).into_iter().peekable();
        let (mut string_at, mut sets_taken, mut next_featureless) = (0, 0, self.featureless.iter().peekable());
        let mut near_rows = std::mem::take(&mut self.near_rows).into_iter().peekable();
        for (number, row) in (0..).map(PageId::from_index).zip(rows) {
            let url_at = string_at + row.id_bytes.unwrap_or(0);
            let title_at = url_at + row.url_bytes.unwrap_or(0);
            string_at = title_at + row.title_bytes.unwrap_or(0);
            if let Some((_, page)) = held.next_if(|(page, _)| *page == number) {
                let url = row.url_bytes.map(|_| &self.strings[url_at..title_at]);
                let about = PageAbout { url, title: None, source: row.source, record: row.record };
                let facts = sketcher.read_held(&page, about);
                let (tokens, identity, text_hash, scope) = (facts.tokens, facts.identity, facts.text_hash, facts.scope);
                out.add(BatchRow { tokens, identity, text_hash, scope, ..row }, sketcher, with, index.as_deref_mut())?;
                continue;
            }
            for (at, column) in self.columns.iter().enumerate() {
                let at = if at < narrow.bands { at } else { at + wide.story_bands - narrow.story_bands };
                out.columns[at].push(column[number.index()]);
            }
            for at in narrow.bands..narrow.bands + wide.story_bands - narrow.story_bands {
                out.columns.get_mut(at).into_iter().for_each(|column| column.push(NO_KEY));
            }
            out.featureless.extend(next_featureless.next_if(|page| **page == number));
            out.near_rows.extend(near_rows.next_if(|near| near.0 == number));
            if let (Some(sets), Some(known)) = (&mut out.sets, &self.sets)
                && known.page_after(sets_taken) == Some(number)
            {
                sets.push_of(known, sets_taken, number);
                sets_taken += 1;
            }
            out.rows.push(row);
        }
        for (scope, count) in self.scopes {
            *out.scopes.entry(scope).or_default() += count;
        }
        let SketchedBatch { strings, captures, other_records, skipped, .. } = self;
        Ok(SketchedBatch { strings, captures, other_records, skipped, ..out })
    }
}
