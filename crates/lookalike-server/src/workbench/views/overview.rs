//! The overview: numbers and plots of the result, and how far people are.

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::Value;

use super::{Frame, page, rendered, thousands};
use crate::workbench::Shared;

#[derive(Template)]
#[template(path = "workbench/overview.html")]
struct Overview {
    frame: Frame,
    headline: String,
    cards: Vec<(&'static str, i64, String)>,
    sizes: String,
    similarities: String,
    method: String,
    clusters: i64,
    progress: Vec<(String, i64)>,
    decisions: i64,
    tagged: i64,
}

pub(in crate::workbench) async fn show(State(bench): State<Shared>, headers: HeaderMap) -> Response {
    page(bench, move |bench| {
        bench.readers.ask(|reader| {
            let number = |value: &Value| value.as_i64().unwrap_or(0);
            let summary = &bench.summary;
            let (pages, kept) = (number(&summary["pages"]), number(&summary["kept"]));
            let share = |part: i64| format!("{:.1} %", part as f64 * 100.0 / pages.max(1) as f64);
            let kinds = &summary["kinds"];
            let mut cards = vec![
                ("pages", pages, String::new()),
                ("kept", kept, share(kept)),
                ("exact copies", number(&kinds["exact"]), share(number(&kinds["exact"]))),
            ];
            for (kind, label) in [
                ("same_core", "same text, other frame"),
                ("near", "near-duplicates"),
                ("contained", "contained in others"),
                ("short", "too short to compare"),
                ("empty", "empty"),
            ] {
                let count = number(&kinds[kind]);
                if count > 0 {
                    cards.push((label, count, share(count)));
                }
            }
            cards.push(("clusters", number(&summary["clusters"]), String::new()));
            cards.push(("largest cluster", number(&summary["largest_cluster"]), "pages".to_owned()));
            cards.push(("verified pairs", number(&summary["pairs"]), String::new()));
            let mut query = reader.connection().prepare_cached(
                "SELECT c.name, count(DISTINCT t.grp) FROM people.coder c JOIN grp_tag t ON t.coder = c.id
                 JOIN grp g ON g.n = t.grp WHERE g.pages > 1 GROUP BY c.id ORDER BY c.id",
            )?;
            let progress = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
            rendered(&Overview {
                frame: Frame::new(bench, reader, &headers, "overview")?,
                headline: format!("{} of {} pages are duplicates", thousands(&(pages - kept)), thousands(&pages)),
                cards,
                sizes: reader.plot("sizes")?,
                similarities: reader.plot("similarities")?,
                method: bench.originals.config().method.label(),
                clusters: number(&summary["clusters"]),
                progress,
                decisions: reader.count("SELECT count(*) FROM people.decision", [])?,
                tagged: reader.count(
                    "SELECT count(DISTINCT t.grp) FROM grp_tag t JOIN grp g ON g.n = t.grp WHERE g.pages > 1",
                    [],
                )?,
            })
        })
    })
    .await
}
