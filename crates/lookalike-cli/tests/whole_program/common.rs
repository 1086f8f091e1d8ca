//! What the whole-program tests share: the real binary, small corpora, and a reader of results.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// The binary under test.
pub fn lookalike() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("lookalike"))
}

/// What a run said and how it ended.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

pub fn run(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Ran {
        code: status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// A command of ours, run in a directory.
pub fn ours(arguments: &[&str], directory: &Path) -> Ran {
    run(lookalike().args(arguments).current_dir(directory))
}

/// The one document on standard output.
pub fn document(ran: &Ran) -> serde_json::Value {
    let parsed = serde_json::from_str(&ran.stdout);
    assert!(parsed.is_ok(), "{}\n{}", ran.stdout, ran.stderr);
    parsed.unwrap()
}

/// `lookalike dedup INPUT… --output OUTPUT --replace EXTRA…`: tests write one result over another.
pub fn dedup(inputs: &[&Path], output: &Path, extra: &[&str]) -> Ran {
    dedup_once(inputs, output, &[&["--replace"], extra].concat())
}

/// `lookalike dedup INPUT… --output OUTPUT EXTRA…`
pub fn dedup_once(inputs: &[&Path], output: &Path, extra: &[&str]) -> Ran {
    run(lookalike().arg("dedup").args(inputs).arg("--output").arg(output).args(extra))
}

pub fn newsroom() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/newsroom")
}

/// A table as rows of text by column name.
pub fn table(path: &Path) -> Vec<BTreeMap<String, String>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            let mut cells = BTreeMap::new();
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                let text = if column.is_null(row) {
                    String::new()
                } else if let Some(text) = column.as_string_opt::<i32>() {
                    text.value(row).to_owned()
                } else if let Some(number) = column.as_primitive_opt::<UInt64Type>() {
                    number.value(row).to_string()
                } else if let Some(number) = column.as_primitive_opt::<Float64Type>() {
                    number.value(row).to_string()
                } else {
                    column.as_boolean_opt().map_or_else(String::new, |truth| truth.value(row).to_string())
                };
                cells.insert(field.name().clone(), text);
            }
            rows.push(cells);
        }
    }
    rows
}

/// Kind and kept page of every page.
pub fn fates(output: &Path) -> BTreeMap<String, (String, String)> {
    table(&output.join("clusters.parquet"))
        .into_iter()
        .map(|row| (row["id"].clone(), (row["kind"].clone(), row["kept_id"].clone())))
        .collect()
}

pub fn summary(output: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(output.join("summary.json")).unwrap()).unwrap()
}

/// Every file below a directory with its bytes, compressed ones decompressed, without `run.json`.
pub fn contents(output: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut waiting = vec![output.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(output).unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                waiting.push(path);
            } else if name != "run.json" {
                files.insert(name, decompressed(&path));
            }
        }
    }
    files
}

pub fn decompressed(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = File::open(path).unwrap();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(file), &mut bytes).unwrap(),
        Some("bz2") => std::io::Read::read_to_end(&mut bzip2::read::MultiBzDecoder::new(file), &mut bytes).unwrap(),
        Some("xz") => {
            let mut reader = liblzma::read::XzDecoder::new_multi_decoder(file);
            std::io::Read::read_to_end(&mut reader, &mut bytes).unwrap()
        }
        Some("zst") => std::io::Read::read_to_end(&mut zstd::Decoder::new(file).unwrap(), &mut bytes).unwrap(),
        _ => std::io::Read::read_to_end(&mut { file }, &mut bytes).unwrap(),
    };
    bytes
}

/// The words that documents of the small corpora are made of.
pub fn sentence(topic: usize, words: usize) -> String {
    let mut state = topic as u64 * 7919 + 17;
    let mut text = Vec::new();
    for _ in 0..words {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push(format!("w{}", (state >> 40) % 3000));
    }
    text.join(" ")
}

/// A document of the small corpora: ids, texts, urls, scores.
#[derive(Clone)]
pub struct Document {
    pub id: String,
    pub text: String,
    pub url: String,
    pub score: u32,
    pub date: String,
}

impl Document {
    pub fn json(&self) -> String {
        serde_json::json!({"id": self.id, "text": self.text, "url": self.url, "score": self.score, "date": self.date})
            .to_string()
            + "\n"
    }
}

/// Sixty topics; every third has an exact copy with other punctuation, every second a near-duplicate
/// (a word changed), every fifth a longer one.
pub fn documents() -> Vec<Document> {
    let mut documents = Vec::new();
    let mut add = |id: String, text: String| {
        let number = documents.len();
        documents.push(Document {
            url: format!("http://site{}.example/{}", number % 7, "p".repeat(number % 5 + 1)),
            score: u32::try_from(number * 37 % 101).unwrap(),
            date: format!("2024-{:02}-{:02}", number * 5 % 12 + 1, number * 11 % 28 + 1),
            id,
            text,
        });
    };
    for topic in 0..60 {
        let text = sentence(topic, 120);
        add(format!("t{topic}"), text.clone());
        if topic % 3 == 0 {
            add(format!("t{topic}-copy"), format!("{}!", text.to_uppercase().replace(' ', ", ")));
        }
        if topic % 2 == 0 {
            let mut words: Vec<&str> = text.split(' ').collect();
            words[60] = "changed";
            add(format!("t{topic}-near"), words.join(" "));
        }
        if topic % 5 == 0 {
            add(format!("t{topic}-long"), format!("{text} {}", sentence(topic + 1000, 20)));
        }
    }
    documents
}

pub fn write_jsonl(path: &Path, documents: &[Document]) {
    let lines: String = documents.iter().map(Document::json).collect();
    fs::write(path, lines).unwrap();
}

/// Fails unless a page has all fragments, one after the other.
pub fn assert_in_order(page: &str, fragments: &[&str]) {
    let mut rest = page;
    for fragment in fragments {
        let found = rest.split_once(fragment);
        assert!(found.is_some(), "'{fragment}' is missing, or not where it should be, in: {rest}");
        rest = found.map_or("", |parts| parts.1);
    }
}
