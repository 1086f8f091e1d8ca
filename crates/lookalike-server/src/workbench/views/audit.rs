//! The audit: pairs of a sample, judged blindly, one after the other; then what the judgments say.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use lookalike::compare::{SideBySide, side_by_side};
use lookalike::evaluate::audit::{Audit, StratifyBy, judge};

use super::pair::{Stretch, mini_map, read};
use super::{Frame, page, rendered};
use crate::workbench::Shared;
use crate::workbench::export::judgments;
use crate::workbench::failure::{Failure, Outcome};
use crate::workbench::reader::{PageRow, Reader};

/// A sample that was drawn.
struct Sample {
    id: i64,
    made: String,
    pairs: i64,
    /// Pairs that whoever asks has judged.
    judged: i64,
    /// The first that they have not.
    next: i64,
    /// What the judgments say, once all are there.
    result: Option<Verdicts>,
}

struct Verdicts {
    precision: Option<(f64, f64, f64)>,
    recall: Option<f64>,
}

#[derive(Template)]
#[template(path = "workbench/audit.html")]
struct AuditOverview {
    frame: Frame,
    samples: Vec<Sample>,
}

#[derive(Template)]
#[template(path = "workbench/judge.html")]
struct JudgePage {
    frame: Frame,
    sample: i64,
    position: i64,
    pairs: i64,
    judged: i64,
    verdict: Option<String>,
    reason: Option<String>,
    rubric: Vec<String>,
    pages: [PageRow; 2],
    rows: SideBySide,
    map: Vec<Stretch>,
}

fn samples(reader: &Reader<'_>, coder: i64) -> Outcome<Vec<Sample>> {
    let mut query = reader.connection().prepare_cached(
        "SELECT s.id, s.made, (SELECT count(*) FROM people.sample_pair p WHERE p.sample = s.id),
                (SELECT count(*) FROM people.judgment j WHERE j.sample = s.id AND j.coder = ?1),
                (SELECT min(p.position) FROM people.sample_pair p WHERE p.sample = s.id AND NOT EXISTS (
                     SELECT 1 FROM people.judgment j WHERE j.sample = s.id AND j.coder = ?1 AND j.position = p.position))
         FROM people.sample s ORDER BY s.id DESC",
    )?;
    let rows = query.query_map([coder], |row| {
        Ok(Sample {
            id: row.get(0)?,
            made: row.get(1)?,
            pairs: row.get(2)?,
            judged: row.get(3)?,
            next: row.get::<_, Option<i64>>(4)?.unwrap_or(1),
            result: None,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What the judgments of a sample say about the result.
fn result(directory: &std::path::Path, lines: &str) -> Outcome<Verdicts> {
    let mut file = tempfile::NamedTempFile::new()?;
    std::io::Write::write_all(&mut file, lines.as_bytes())?;
    let Audit { precision, recall_of_near_misses: recall, .. } =
        judge(directory, file.path(), 0.95, StratifyBy::Method)?;
    Ok(Verdicts { precision, recall })
}

pub(in crate::workbench) async fn overview(State(bench): State<Shared>, headers: HeaderMap) -> Response {
    page(bench, move |bench| {
        bench.readers.ask(|reader| {
            let frame = Frame::new(bench, reader, &headers, "audit")?;
            let coder = frame.coder_id.unwrap_or(0);
            let mut samples = samples(reader, coder)?;
            for sample in samples.iter_mut().filter(|sample| sample.judged == sample.pairs) {
                // A sample of an earlier result may have pairs that are no longer there.
                sample.result = result(&bench.settings.directory, &judgments(reader, sample.id, coder)?).ok();
            }
            rendered(&AuditOverview { frame, samples })
        })
    })
    .await
}

pub(in crate::workbench) async fn pair(
    State(bench): State<Shared>,
    Path((sample, position)): Path<(i64, i64)>,
    headers: HeaderMap,
) -> Response {
    page(bench, move |bench| {
        bench.readers.ask(|reader| {
            let frame = Frame::new(bench, reader, &headers, "audit")?;
            let coder = frame.coder_id.unwrap_or(0);
            let connection = reader.connection();
            let gone = |_| Failure::NotFound("there is no such pair".to_owned());
            let (left, right, rubric): (String, String, String) = connection
                .prepare_cached(
                    "SELECT p.left, p.right, s.rubric FROM people.sample_pair p JOIN people.sample s ON s.id = p.sample
                     WHERE p.sample = ?1 AND p.position = ?2",
                )?
                .query_row([sample, position], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .map_err(gone)?;
            let number = |id: &str| {
                reader.number(id)?.ok_or_else(|| Failure::NotFound(format!("this result has no page '{id}' any more")))
            };
            let (pages, raw) = read(bench, reader, [number(&left)?, number(&right)?])?;
            // What whoever judges sees: the whole texts. Not how similar they are, nor what was left out, nor what was decided.
            let [left, right] = raw.map(|page| {
                let blocks = bench.originals.blocks(&page).into_iter().map(|block| block.text);
                blocks.collect::<Vec<_>>().join("\n")
            });
            let rows = side_by_side(&left, &right);
            let mut query = connection.prepare_cached(
                "SELECT verdict, reason FROM people.judgment WHERE coder = ?1 AND sample = ?2 AND position = ?3",
            )?;
            let own = query.query_row([coder, sample, position], |row| Ok((row.get(0)?, row.get(1)?)));
            let (verdict, reason) = own.unwrap_or((None, None));
            let count = |query: &str, values: &[i64]| reader.count(query, rusqlite::params_from_iter(values));
            rendered(&JudgePage {
                pairs: count("SELECT count(*) FROM people.sample_pair WHERE sample = ?", &[sample])?,
                judged: count("SELECT count(*) FROM people.judgment WHERE sample = ? AND coder = ?", &[sample, coder])?,
                rubric: rubric.lines().map(str::to_owned).collect(),
                map: mini_map(&rows.rows),
                sample,
                position,
                verdict,
                reason,
                pages,
                rows,
                frame,
            })
        })
    })
    .await
}
