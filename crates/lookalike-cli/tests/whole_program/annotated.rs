//! Records with what became of them: `--annotate`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_ipc::CompressionType;
use serde_json::Value;

use crate::common::{decompressed, dedup, documents, table, write_jsonl};
use crate::crawl::gzip;
use crate::dedup::{write_csv, write_parquet};
use crate::notations::{arrow, batch, read_arrow};
use crate::outputs::{batches, names, ran};

/// What `annotated/` must say of a page.
fn expected_fields(output: &Path) -> BTreeMap<String, [String; 6]> {
    let rows = table(&output.join("clusters.parquet"));
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    rows.iter().for_each(|row| *sizes.entry(&row["cluster"]).or_default() += 1);
    let fields = |row: &BTreeMap<String, String>| {
        let size = sizes[row["cluster"].as_str()].to_string();
        let of = |name: &str| row[name].clone();
        [of("cluster"), size, of("kept"), of("kept_id"), of("similarity"), of("kind")]
    };
    rows.iter().map(|row| (row["id"].clone(), fields(row))).collect()
}

const FIELDS: [&str; 6] = ["cluster", "cluster_size", "kept", "kept_id", "similarity", "kind"];

#[test]
fn annotated_records_are_the_input_with_what_became_of_them() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    // Lines of every shape: spaces, carriage returns, no line end, no JSON, no text, and names of before.
    let mut text: Vec<u8> = b"\xef\xbb\xbf".to_vec();
    for (number, document) in documents().iter().enumerate() {
        let line = document.json();
        text.extend_from_slice(
            match number % 4 {
                0 => line.as_bytes().to_vec(),
                1 => line.replace("}\n", " } \r\n").into_bytes(),
                2 => line.replace("}\n", ",\"lookalike_kept\":\"old\",\"x\":{\"lookalike_kept\":1}}\n").into_bytes(),
                _ => [b"\nnot JSON\n{\"id\": 5}\n".to_vec(), line.into_bytes()].concat(),
            }
            .as_slice(),
        );
    }
    text.pop();
    fs::write(at("docs.jsonl.zst"), zstd::encode_all(&text[..], 3).unwrap()).unwrap();
    let output = at("out");
    let result = dedup(&[&at("docs.jsonl.zst")], &output, &["--annotate"]);
    assert_eq!(result.code, 3, "{}", result.stderr);
    let expected = expected_fields(&output);
    let annotated = decompressed(&output.join("annotated/docs.jsonl.zst"));
    let mut without = Vec::new();
    let mut seen = 0;
    for line in annotated.split_inclusive(|&byte| byte == b'\n') {
        let line = String::from_utf8(line.to_vec()).unwrap();
        let Some(from) = line.find(",\"lookalike_cluster\":") else {
            without.extend_from_slice(line.as_bytes());
            continue;
        };
        let object: Value = serde_json::from_str(line.trim_start_matches('\u{feff}')).unwrap();
        let found = FIELDS.map(|name| match &object[format!("lookalike_{name}")] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.as_f64().unwrap().to_string(),
            other => other.to_string(),
        });
        assert_eq!(found, expected[object["id"].as_str().unwrap()]);
        let end = line.rfind('}').unwrap();
        without.extend_from_slice((line[..from].to_owned() + &line[end..]).as_bytes());
        seen += 1;
    }
    assert_eq!(seen, expected.len());
    let text = String::from_utf8(text).unwrap().replace(",\"lookalike_kept\":\"old\"", "");
    assert!(without == text.as_bytes(), "nothing else changes");

    // Tables: the header and every record get cells; a record without all cells gets empty ones first.
    let mut csv = String::from("id;text;note\r\n");
    for document in documents() {
        csv += &format!(
            "{};\"{}\"{}\r\n",
            document.id,
            document.text,
            if document.id.len() == 2 { "" } else { ";a \"\" b" }
        );
    }
    fs::write(at("table.csv"), &csv).unwrap();
    ran(&[&at("table.csv")], &at("out-csv"), &["--annotate", "--split-size", "4KiB"]);
    let parts = names(&at("out-csv/annotated"));
    assert!(parts.len() > 3 && parts[0] == "table-00000.csv", "{parts:?}");
    let mut records = Vec::new();
    for part in &parts {
        let text = fs::read_to_string(at("out-csv/annotated").join(part)).unwrap();
        let (header, rest) = text.split_once("\r\n").unwrap();
        assert_eq!(header, format!("id;text;note;{}", FIELDS.map(|name| format!("lookalike_{name}")).join(";")));
        records.extend(rest.lines().map(str::to_owned));
    }
    let expected = expected_fields(&at("out-csv"));
    assert_eq!(records.len(), expected.len());
    for (line, original) in records.iter().zip(csv.lines().skip(1)) {
        let id = original.split(';').next().unwrap();
        let padding = if id.len() == 2 { ";" } else { "" };
        assert_eq!(*line, format!("{original}{padding};{}", expected[id].join(";")));
    }

    // Parquet: columns behind the others, of which nothing changes.
    write_parquet(&at("rows.parquet"));
    ran(&[&at("rows.parquet")], &at("out-rows"), &["--annotate"]);
    let expected = expected_fields(&at("out-rows"));
    let annotated = at("out-rows/annotated/rows.parquet");
    let (before, after) = (batches(&at("rows.parquet")), batches(&annotated));
    let columns: Vec<usize> = (0..4).collect();
    assert_eq!(after[0].project(&columns).unwrap().columns(), before[0].columns());
    assert_eq!(after[0].schema().fields()[..4], before[0].schema().fields()[..]);
    for row in table(&annotated) {
        assert_eq!(FIELDS.map(|name| row[&format!("lookalike_{name}")].clone()), expected[&row["id"]]);
    }
}

/// Every record of an annotated file has the same fields, also where records had some of them before.
#[test]
fn what_an_earlier_run_added_is_replaced_in_every_format() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let documents = documents();
    write_jsonl(&at("docs.jsonl"), &documents);
    write_csv(&at("table.csv"), ',');
    write_parquet(&at("rows.parquet"));
    let rows = [batch(&documents[..40], false), batch(&documents[40..], false)];
    fs::write(at("file.arrow"), arrow(&rows, true, Some(CompressionType::LZ4_FRAME))).unwrap();
    fs::write(at("stream.arrow.gz"), gzip(&arrow(&rows, false, None))).unwrap();
    for name in ["docs.jsonl", "table.csv", "rows.parquet", "file.arrow", "stream.arrow.gz"] {
        let (once, twice, strict) =
            (at(&format!("once-{name}")), at(&format!("twice-{name}")), at(&format!("strict-{name}")));
        ran(&[&at(name)], &once, &["--annotate"]);
        let annotated = |output: &Path| output.join("annotated").join(name);
        ran(&[&annotated(&once)], &twice, &["--annotate"]);
        assert!(decompressed(&annotated(&twice)) == decompressed(&annotated(&once)), "{name}");
        // Other values in the same places.
        let exact = ["--annotate", "--exact-only"];
        ran(&[&annotated(&once)], &strict, &exact);
        let fresh = at(&format!("fresh-{name}"));
        ran(&[&at(name)], &fresh, &exact);
        assert!(decompressed(&annotated(&strict)) == decompressed(&annotated(&fresh)), "{name}");
        assert!(decompressed(&annotated(&strict)) != decompressed(&annotated(&once)), "{name}");
    }
}

#[test]
fn rows_of_arrow_get_columns() {
    let root = tempfile::tempdir().unwrap();
    let documents = documents();
    let rows = [batch(&documents[..40], true), batch(&documents[40..], true)];
    for (name, bytes) in [
        ("file.arrow", arrow(&rows, true, Some(CompressionType::ZSTD))),
        ("stream.arrow.gz", gzip(&arrow(&rows, false, None))),
    ] {
        let (path, output) = (root.path().join(name), root.path().join(format!("out-{name}")));
        fs::write(&path, bytes).unwrap();
        ran(&[&path], &output, &["--annotate", "--text-field", "doc.text"]);
        let expected = expected_fields(&output);
        let annotated = read_arrow(&output.join("annotated").join(name));
        assert_eq!(annotated.len(), rows.len());
        for (before, after) in rows.iter().zip(&annotated) {
            let (count, schema) = (before.num_columns(), after.schema());
            assert_eq!(after.project(&(0..count).collect::<Vec<_>>()).unwrap(), *before);
            let names: Vec<&str> = schema.fields()[count..].iter().map(|field| field.name().as_str()).collect();
            assert_eq!(names, FIELDS.map(|name| format!("lookalike_{name}")));
            let ids = after.column(0).as_string::<i32>();
            for row in 0..after.num_rows() {
                let column = |field: usize| after.column(count + field);
                let text = |field: usize| column(field).as_string::<i32>().value(row).to_owned();
                let found = [
                    text(0),
                    column(1).as_primitive::<UInt64Type>().value(row).to_string(),
                    column(2).as_boolean().value(row).to_string(),
                    text(3),
                    column(4).as_primitive::<Float64Type>().value(row).to_string(),
                    text(5),
                ];
                assert_eq!(found, expected[ids.value(row)]);
            }
        }
    }
}
