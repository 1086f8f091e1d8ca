//! The list of clusters: sorted, filtered, searched, page by page.

use askama::Template;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Response;

use super::{Chip, Frame, chips, page, rendered};
use crate::workbench::Shared;
use crate::workbench::catalogue::KINDS;
use crate::workbench::filter::{Filter, SORTS, Sort};
use crate::workbench::people::TagSet;
use crate::workbench::reader::{GroupRow, LISTED};

struct ListedCluster {
    row: GroupRow,
    chips: Vec<Chip>,
    kinds: Vec<&'static str>,
}

#[derive(Template)]
#[template(path = "workbench/clusters.html")]
struct ClusterList {
    frame: Frame,
    filter: Filter,
    clusters: Vec<ListedCluster>,
    count: i64,
    first: i64,
    last: i64,
    pages: i64,
    sets: Vec<TagSet>,
    sorts: &'static [Sort],
    kinds: &'static [(&'static str, &'static str, u8)],
    /// Sites with the most clusters, to choose from.
    sites: Vec<(String, i64)>,
}

pub(in crate::workbench) async fn show(
    State(bench): State<Shared>,
    Query(filter): Query<Filter>,
    headers: HeaderMap,
) -> Response {
    page(bench, move |bench| {
        bench.readers.ask(|reader| {
            let frame = Frame::new(bench, reader, &headers, "clusters")?;
            let (rows, count) = reader.groups(&bench.groups, &filter, frame.coder_id)?;
            let (sets, coders) = (reader.tag_sets()?, reader.coders()?);
            let first = filter.page() * LISTED;
            let last = first + i64::try_from(rows.len()).unwrap_or(LISTED);
            let clusters = rows.into_iter().map(|row| ListedCluster {
                chips: chips(&row.tags, &sets, &coders, row.pages),
                kinds: KINDS.iter().filter(|kind| row.kinds & kind.2 != 0).map(|kind| kind.1).collect(),
                row,
            });
            rendered(&ClusterList {
                clusters: clusters.collect(),
                count,
                first: first + 1,
                last,
                pages: (count + LISTED - 1) / LISTED,
                sorts: &SORTS,
                kinds: &KINDS,
                sites: bench.groups.sites.clone(),
                sets,
                frame,
                filter,
            })
        })
    })
    .await
}
