//! Two pages side by side: what both have and where they differ, what every method says, and the originals.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use lookalike::RawPage;
use lookalike::compare::{Comparison, Row, SideBySide, Span, side_by_side};

use super::{Frame, page, rendered, verdict};
use crate::workbench::failure::Outcome;
use crate::workbench::reader::{PageRow, Reader};
use crate::workbench::{Shared, Workbench};

/// A stretch of the mini-map: where it is, how long, and what it is.
pub(super) struct Stretch {
    pub(super) y: f64,
    pub(super) height: f64,
    pub(super) class: &'static str,
    pub(super) row: usize,
}

/// Characters of a span that are shown; one line of five million is not read.
const SPAN_CHARS: usize = 20_000;

/// A span as it is shown.
pub(super) fn shown(span: &Span) -> String {
    let end = span.text.char_indices().nth(SPAN_CHARS).map_or(span.text.len(), |(at, _)| at);
    let text = span.text[..end].replace('\0', "\u{fffd}");
    if end < span.text.len() { format!("{text} … (cut here)") } else { text }
}

/// Where two texts agree, from top to bottom, as shares of their rows' words.
pub(super) fn mini_map(rows: &[Row]) -> Vec<Stretch> {
    let words = |row: &Row| {
        let count = |spans: &[Span]| spans.iter().map(|span| span.words).sum::<usize>();
        count(&row.left).max(count(&row.right)).max(1)
    };
    let all: usize = rows.iter().map(words).sum();
    let (mut at, mut map) = (0.0, Vec::new());
    for (number, row) in rows.iter().enumerate() {
        let height = 100.0 * words(row) as f64 / all.max(1) as f64;
        let class = match (row.is_core, row.left.is_empty(), row.right.is_empty()) {
            (true, ..) => "same",
            (_, true, _) => "right",
            (_, _, true) => "left",
            _ => "both",
        };
        map.push(Stretch { y: at, height: height.max(0.4), class, row: number });
        at += height;
    }
    map
}

struct Side {
    page: PageRow,
    name: &'static str,
    left_out: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "workbench/pair.html")]
struct PairPage {
    frame: Frame,
    sides: [Side; 2],
    comparison: Comparison,
    rows: SideBySide,
    map: Vec<Stretch>,
    verdict: &'static str,
    is_accepted: bool,
    /// Whether both are of one cluster.
    same_cluster: bool,
}

/// Two pages by their numbers, read again.
pub(super) fn read(
    bench: &Workbench,
    reader: &Reader<'_>,
    numbers: [i64; 2],
) -> Outcome<([PageRow; 2], [RawPage<'static>; 2])> {
    let [(left, left_place), (right, right_place)] = [reader.page(numbers[0])?, reader.page(numbers[1])?];
    let mut pages = bench.originals.read(&[left_place, right_place])?;
    let (Some(right_page), Some(left_page)) = (pages.pop(), pages.pop()) else {
        return Err(lookalike::Error::internal("a page that was read again is missing").into());
    };
    Ok(([left, right], [left_page, right_page]))
}

pub(in crate::workbench) async fn show(
    State(bench): State<Shared>,
    Path((left, right)): Path<(i64, i64)>,
    headers: HeaderMap,
) -> Response {
    page(bench, move |bench| {
        bench.readers.ask(|reader| {
            let (rows, raw) = read(bench, reader, [left, right])?;
            let mut comparison = bench.originals.compare(&raw[0], &raw[1]);
            let sides = side_by_side(&comparison.left.text, &comparison.right.text);
            let own = comparison.methods.first();
            let is_accepted = comparison.identical || own.is_some_and(|method| method.near_duplicate);
            let similarity = own.map_or(0.0, |method| method.similarity);
            let verdict = verdict(similarity, Some(comparison.page_similarity), is_accepted);
            let mut left_out = |is_left: bool| {
                let side = if is_left { &mut comparison.left } else { &mut comparison.right };
                let blocks = std::mem::take(&mut side.left_out);
                blocks.into_iter().map(|block| (block.part.to_string(), cut_block(&block.text))).collect()
            };
            let (left_out, right_out) = (left_out(true), left_out(false));
            let [left, right] = rows;
            rendered(&PairPage {
                frame: Frame::new(bench, reader, &headers, "clusters")?,
                same_cluster: left.group == right.group,
                sides: [
                    Side { page: left, name: "left", left_out },
                    Side { page: right, name: "right", left_out: right_out },
                ],
                map: mini_map(&sides.rows),
                rows: sides,
                comparison,
                verdict,
                is_accepted,
            })
        })
    })
    .await
}

/// A block of a frame as it is shown.
fn cut_block(text: &str) -> String {
    text.chars().take(2000).collect()
}
