//! Tag sets and their tags, coders and their agreement, and what can be taken away as a file.

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::{Frame, page, rendered};
use crate::workbench::Shared;
use crate::workbench::agreement::{AgreementRow, agreement};
use crate::workbench::people::{COLOURS, RESERVED, TagSet};

#[derive(Template)]
#[template(path = "workbench/tags.html")]
struct TagsPage {
    frame: Frame,
    sets: Vec<TagSet>,
    /// Clusters that have each tag.
    uses: Vec<(i64, i64)>,
    colours: &'static [&'static str],
    coders: Vec<(String, i64, i64)>,
    agreement: Vec<AgreementRow>,
    decisions: i64,
    reserved: String,
}

impl TagsPage {
    fn uses(&self, tag: &i64) -> i64 {
        self.uses.iter().find(|row| row.0 == *tag).map_or(0, |row| row.1)
    }
}

pub(in crate::workbench) async fn show(State(bench): State<Shared>, headers: HeaderMap) -> Response {
    page(bench, move |bench| {
        bench.readers.ask(|reader| {
            let sets = reader.tag_sets()?;
            let connection = reader.connection();
            let mut query = connection.prepare_cached("SELECT tag, count(DISTINCT grp) FROM grp_tag GROUP BY tag")?;
            let uses = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
            let mut query = connection.prepare_cached(
                "SELECT c.name, (SELECT count(DISTINCT t.grp) FROM grp_tag t WHERE t.coder = c.id),
                        (SELECT count(DISTINCT t.page) FROM people.tagging t WHERE t.coder = c.id)
                 FROM people.coder c ORDER BY c.id",
            )?;
            let coders = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rendered(&TagsPage {
                frame: Frame::new(bench, reader, &headers, "tags")?,
                agreement: agreement(reader, &sets)?,
                coders: coders.collect::<Result<_, _>>()?,
                uses,
                colours: &COLOURS,
                decisions: reader.count("SELECT count(*) FROM people.decision", [])?,
                reserved: RESERVED.map(String::from).join(", "),
                sets,
            })
        })
    })
    .await
}
