//! Records with what became of them: `--annotate`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{decompressed, dedup, documents, table};
use crate::dedup::write_parquet;
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
    // Lines of every shape: spaces, carriage returns, no line end, no JSON, no text, and names that are taken.
    let mut text: Vec<u8> = b"\xef\xbb\xbf".to_vec();
    for (number, document) in documents().iter().enumerate() {
        let line = document.json();
        text.extend_from_slice(
            match number % 4 {
                0 => line.as_bytes().to_vec(),
                1 => line.replace("}\n", " } \r\n").into_bytes(),
                2 => line.replace("}\n", ",\"lookalike_kept\":\"mine\",\"x\":{\"y\":1}}\n").into_bytes(),
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
        let Some(from) = line.find(",\"lookalike_cluster\":").or_else(|| line.find(",\"lookalike_2_cluster\":")) else {
            without.extend_from_slice(line.as_bytes());
            continue;
        };
        let object: Value = serde_json::from_str(line.trim_start_matches('\u{feff}')).unwrap();
        let prefix = if object["lookalike_kept"] == "mine" { "lookalike_2_" } else { "lookalike_" };
        let found = FIELDS.map(|name| match &object[format!("{prefix}{name}")] {
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
    assert!(without == text, "nothing else changes");

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
    // Once more: the names are taken now.
    ran(&[&annotated], &at("out-twice"), &["--annotate"]);
    let twice = batches(&at("out-twice/annotated/rows.parquet"));
    assert_eq!(twice[0].schema().field(10).name(), "lookalike_2_cluster");
}
