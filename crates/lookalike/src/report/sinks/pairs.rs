//! The tables `pairs` and `near_misses`: pairs of pages with their scores.

use std::path::Path;

use crate::error::Result;
use crate::page::ScoredPair;
use crate::report::Findings;
use crate::report::files::{self, TableFiles};
use crate::report::sinks::{Sink, SinkContext};
use crate::report::table::{Cell, ColumnType, TableWriter};
use crate::spill::Scratch;
use crate::verify::Verified;

const COLUMNS: [(&str, ColumnType); 9] = [
    ("left", ColumnType::Text),
    ("right", ColumnType::Text),
    ("similarity", ColumnType::Real),
    ("left_in_right", ColumnType::Real),
    ("right_in_left", ColumnType::Real),
    ("score", ColumnType::Real),
    ("estimate", ColumnType::Real),
    ("page_similarity?", ColumnType::Real),
    ("same_site?", ColumnType::Truth),
];

pub(super) struct Pairs {
    table: TableFiles,
    names: &'static [&'static str],
    of: fn(&Verified) -> &[ScoredPair],
}

pub(super) static ACCEPTED: Pairs =
    Pairs { table: files::PAIRS, names: &[files::PAIRS.parquet, files::PAIRS.jsonl], of: |verified| &verified.pairs };

pub(super) static NEAR_MISSES: Pairs = Pairs {
    table: files::NEAR_MISSES,
    names: &[files::NEAR_MISSES.parquet, files::NEAR_MISSES.jsonl],
    of: |verified| &verified.near_misses,
};

impl Sink for Pairs {
    fn files(&self) -> &'static [&'static str] {
        self.names
    }

    fn depends_on_clusters(&self) -> bool {
        false
    }

    fn write(&self, findings: &Findings<'_>, directory: &Path, context: &SinkContext<'_>) -> Result<()> {
        let (pages, site_rule) = (findings.pages, findings.config.pairs.site);
        let mut table = TableWriter::create(directory, self.table, &COLUMNS, context.options.jsonl)?;
        let (mut left_scratch, mut right_scratch) = (Scratch::default(), Scratch::default());
        for (row, pair) in (self.of)(findings.verified).iter().enumerate() {
            context.check_at(row)?;
            let left = pages.strings(pair.left, &mut left_scratch)?;
            let right = pages.strings(pair.right, &mut right_scratch)?;
            let site = |url: Option<&str>| url.and_then(|url| site_rule.site(url));
            let sites = (site(left.url), site(right.url));
            table.push(&[
                Cell::Text(Some(left.id)),
                Cell::Text(Some(right.id)),
                Cell::Real(Some(pair.similarity)),
                Cell::Real(Some(pair.left_in_right)),
                Cell::Real(Some(pair.right_in_left)),
                Cell::Real(Some(pair.score)),
                Cell::Real(Some(pair.estimate)),
                Cell::Real(pair.page_similarity),
                // What decided, or what the URLs say.
                Cell::Truth(pair.same_site.or_else(|| sites.0.zip(sites.1).map(|(left, right)| left == right))),
            ])?;
        }
        table.finish()
    }
}
