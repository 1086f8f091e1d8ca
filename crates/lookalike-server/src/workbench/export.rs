//! What people did, as files: tags as CSV and Parquet, one row per page; judgments as lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde::Deserialize;
use serde_json::json;

use super::change::coder_name;
use super::failure::{Failure, Outcome};
use super::people::TagSet;
use super::reader::Reader;
use super::{Shared, Workbench};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    /// `all` for every page of the result; else those that somebody tagged or wrote about.
    pages: String,
    sample: Option<i64>,
}

pub(super) async fn download(
    State(bench): State<Shared>,
    Path(file): Path<String>,
    Query(choice): Query<Choice>,
    headers: HeaderMap,
) -> Response {
    let name = file.clone();
    let made = tokio::task::spawn_blocking(move || make(&bench, &file, &choice, &headers)).await;
    match made {
        Ok(Ok((kind, bytes))) => {
            let mut response = (StatusCode::OK, bytes).into_response();
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            if let Ok(value) = HeaderValue::try_from(format!("attachment; filename=\"{name}\"")) {
                headers.insert(header::CONTENT_DISPOSITION, value);
            }
            response
        }
        Ok(Err(failure)) => failure.into_response(),
        Err(_) => crate::problem::internal().into_response(),
    }
}

fn make(bench: &Workbench, file: &str, choice: &Choice, headers: &HeaderMap) -> Outcome<(&'static str, Vec<u8>)> {
    bench.readers.ask(|reader| match file {
        "tags.csv" => Ok(("text/csv; charset=utf-8", csv(&table(reader, choice)?))),
        "tags.parquet" => Ok(("application/vnd.apache.parquet", parquet(&table(reader, choice)?)?)),
        "judgments.jsonl" => {
            let coders = reader.coders()?;
            let name = coder_name(bench, headers);
            let coder = coders.iter().find(|coder| coder.1 == name).map_or(0, |coder| coder.0);
            let lines = judgments(reader, choice.sample.unwrap_or(0), coder)?;
            Ok(("application/jsonl", lines.into_bytes()))
        }
        _ => Err(Failure::NotFound(
            "there is no such file; there are tags.csv, tags.parquet and judgments.jsonl".to_owned(),
        )),
    })
}

/// A row per page, and a column per tag set and coder.
struct Table {
    /// The names of the columns behind those that every table has.
    columns: Vec<String>,
    rows: Vec<ExportRow>,
}

struct ExportRow {
    id: String,
    url: Option<String>,
    title: Option<String>,
    cluster: String,
    is_kept: bool,
    kind: String,
    similarity: f64,
    cells: Vec<Option<String>>,
}

fn table(reader: &Reader<'_>, choice: &Choice) -> Outcome<Table> {
    let (sets, coders) = (reader.tag_sets()?, reader.coders()?);
    let mut columns = Vec::new();
    for set in &sets {
        columns.extend(coders.iter().map(|coder| format!("{}:{}", set.name, coder.1)));
    }
    columns.extend(coders.iter().map(|coder| format!("note:{}", coder.1)));
    columns.push("decision".to_owned());
    let which = if choice.pages == "all" {
        ""
    } else {
        "WHERE p.id IN (SELECT page FROM people.tagging UNION SELECT page FROM people.note UNION SELECT page FROM people.decision)"
    };
    let query = format!(
        "SELECT p.id, p.url, p.title, k.id, p.n = p.grp, p.kind, p.similarity
         FROM page p JOIN grp g ON g.n = p.grp JOIN page k ON k.n = p.grp {which} ORDER BY p.n"
    );
    let mut query = reader.connection().prepare(&query)?;
    let found = query.query_map([], |row| {
        Ok(ExportRow {
            id: row.get(0)?,
            url: row.get(1)?,
            title: row.get(2)?,
            cluster: row.get(3)?,
            is_kept: row.get(4)?,
            kind: row.get(5)?,
            similarity: row.get(6)?,
            cells: Vec::new(),
        })
    })?;
    let mut rows: Vec<ExportRow> = found.collect::<Result<_, _>>()?;
    for row in &mut rows {
        row.cells = cells(reader, &row.id, &sets, &coders)?;
    }
    Ok(Table { columns, rows })
}

/// What everybody said about a page.
fn cells(reader: &Reader<'_>, id: &str, sets: &[TagSet], coders: &[(i64, String)]) -> Outcome<Vec<Option<String>>> {
    let mut query = reader.connection().prepare_cached("SELECT coder, tag FROM people.tagging WHERE page = ?1")?;
    let mut tags: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let mut found = query.query([id])?;
    while let Some(row) = found.next()? {
        tags.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    let mut cells = Vec::new();
    for set in sets {
        for (coder, _) in coders {
            let own = tags.get(coder).map_or(&[][..], Vec::as_slice);
            let labels: Vec<&str> =
                set.tags.iter().filter(|tag| own.contains(&tag.id)).map(|tag| tag.label.as_str()).collect();
            cells.push((!labels.is_empty()).then(|| labels.join("|")));
        }
    }
    for (coder, _) in coders {
        cells.push(reader.note(*coder, id)?);
    }
    let decision = reader.decision(id)?;
    cells.push(decision.map(|decision| match (decision.keep, decision.apart_from, decision.group) {
        (_, Some(_), Some(group)) => format!("split off with {group}"),
        (_, Some(_), None) => "not a duplicate".to_owned(),
        _ => "keep".to_owned(),
    }));
    Ok(cells)
}

/// The columns that every table has.
const FIXED: [&str; 7] = ["id", "url", "title", "cluster", "kept", "kind", "similarity"];

fn csv(table: &Table) -> Vec<u8> {
    let mut out = String::new();
    let line = |cells: &mut dyn Iterator<Item = &str>, out: &mut String| {
        for (number, cell) in cells.enumerate() {
            if number > 0 {
                out.push(',');
            }
            if cell.contains(['"', ',', '\n', '\r']) {
                out.push('"');
                out.push_str(&cell.replace('"', "\"\""));
                out.push('"');
            } else {
                out.push_str(cell);
            }
        }
        out.push_str("\r\n");
    };
    line(&mut FIXED.into_iter().chain(table.columns.iter().map(String::as_str)), &mut out);
    for row in &table.rows {
        let similarity = row.similarity.to_string();
        let kept = if row.is_kept { "true" } else { "false" };
        let fixed: [&str; 7] = [
            &row.id,
            row.url.as_deref().unwrap_or(""),
            row.title.as_deref().unwrap_or(""),
            &row.cluster,
            kept,
            &row.kind,
            &similarity,
        ];
        let cells = row.cells.iter().map(|cell| cell.as_deref().unwrap_or(""));
        line(&mut fixed.into_iter().chain(cells), &mut out);
    }
    out.into_bytes()
}

fn parquet(table: &Table) -> Outcome<Vec<u8>> {
    let texts = |text: &dyn Fn(&ExportRow) -> Option<String>| -> ArrayRef {
        Arc::new(table.rows.iter().map(text).collect::<StringArray>())
    };
    let mut fields = vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("url", DataType::Utf8, true),
        Field::new("title", DataType::Utf8, true),
        Field::new("cluster", DataType::Utf8, false),
        Field::new("kept", DataType::Boolean, false),
        Field::new("kind", DataType::Utf8, false),
        Field::new("similarity", DataType::Float64, false),
    ];
    let mut columns: Vec<ArrayRef> = vec![
        texts(&|row| Some(row.id.clone())),
        texts(&|row| row.url.clone()),
        texts(&|row| row.title.clone()),
        texts(&|row| Some(row.cluster.clone())),
        Arc::new(table.rows.iter().map(|row| Some(row.is_kept)).collect::<BooleanArray>()),
        texts(&|row| Some(row.kind.clone())),
        Arc::new(table.rows.iter().map(|row| Some(row.similarity)).collect::<Float64Array>()),
    ];
    for (number, name) in table.columns.iter().enumerate() {
        fields.push(Field::new(name, DataType::Utf8, true));
        columns.push(texts(&|row| row.cells[number].clone()));
    }
    let wrong = |error: String| Failure::Library(lookalike::Error::internal(error));
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(|error| wrong(error.to_string()))?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut bytes = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut bytes, schema, Some(properties)).map_err(|error| wrong(error.to_string()))?;
    writer.write(&batch).map_err(|error| wrong(error.to_string()))?;
    writer.close().map_err(|error| wrong(error.to_string()))?;
    Ok(bytes)
}

/// The judgments of a coder, as `evaluate audit` reads them.
pub(super) fn judgments(reader: &Reader<'_>, sample: i64, coder: i64) -> Outcome<String> {
    let rubric = reader
        .connection()
        .prepare_cached("SELECT rubric FROM people.sample WHERE id = ?1")?
        .query_row([sample], |row| row.get::<_, String>(0));
    let rubric = rubric.map_err(|_| Failure::NotFound("there is no such sample".to_owned()))?;
    let mut lines = json!({"rubric": rubric}).to_string() + "\n";
    let mut query = reader.connection().prepare_cached(
        "SELECT s.left, s.right, j.verdict, j.reason FROM people.judgment j
         JOIN people.sample_pair s ON s.sample = j.sample AND s.position = j.position
         WHERE j.sample = ?1 AND j.coder = ?2 ORDER BY s.position",
    )?;
    let mut found = query.query([sample, coder])?;
    while let Some(row) = found.next()? {
        let [left, right, verdict]: [String; 3] = [row.get(0)?, row.get(1)?, row.get(2)?];
        let mut line = json!({"left": left, "right": right, "verdict": verdict});
        if let Some(reason) = row.get::<_, Option<String>>(3)? {
            line["reason"] = reason.into();
        }
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    Ok(lines)
}
