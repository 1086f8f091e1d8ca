//! The main job on the real binary: what it finds, what it writes, that it is the same every time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use crate::common::{
    contents, decompressed, dedup, documents, fates, lookalike, newsroom, run, sentence, summary, table, write_jsonl,
};
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use flate2::Compression;
use flate2::write::GzEncoder;

#[test]
fn the_newsroom_shows_every_kind_of_page() {
    let root = tempfile::tempdir().unwrap();
    let output = root.path().join("out");
    let ran = dedup(&[&newsroom()], &output, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    let fates = fates(&output);
    assert!((60..=100).contains(&fates.len()));
    let fate = |id: &str| (fates[id].0.as_str(), fates[id].1.as_str());
    assert_eq!(
        fate("morning-lantern/choir.html"),
        ("same_core", "gazette-archive/choir.html"),
        "a story in another frame"
    );
    assert_eq!(
        fate("daily-ledger/strassenbahn.html"),
        ("exact", "daily-ledger/strassenbahn-1999.html"),
        "the same page in another charset"
    );
    assert_eq!(fate("wire-north/map-zh.html"), ("near", "gazette-archive/map-zh.html"), "a Chinese pair");
    assert_eq!(fate("wire-north/owl-ja.html"), ("near", "harbour-herald/owl-ja.html"), "a Japanese pair");
    assert_eq!(fates["metro-now/empty.html"].0, "empty");
    assert_eq!(fates["metro-now/error.html"].0, "short");
    assert_eq!(fates["morning-lantern/kite-week-2.html"].0, "near", "only the date and the visitor count differ");
    assert!(fates["harbour-herald/salt-broken.html"].0 != "unique", "a broken page is read as browsers read it");
    // A frame around different stories is not a near-duplicate; each is that of its story in another frame.
    for story in ["council", "football", "weather", "market"] {
        let other = format!("daily-ledger/{story}.html");
        assert_eq!(fate(&format!("metro-now/{story}.html")), ("near", other.as_str()));
    }
    // Where a story is contained in a longer page, that is visible.
    let pairs = table(&output.join("pairs.parquet"));
    let share = |row: &BTreeMap<String, String>, column: &str| row[column].parse::<f64>().unwrap();
    let contained = pairs.iter().any(|row| {
        row["left"] == "daily-ledger/tram.html"
            && row["right"] == "harbour-herald/week-in-review.html"
            && share(row, "left_in_right") > 0.9
            && share(row, "similarity") < 0.75
            && share(row, "page_similarity") < share(row, "similarity")
    });
    assert!(contained, "{pairs:?}");
    assert_eq!(
        fs::read_to_string(output.join("kept/kept.txt")).unwrap().lines().count(),
        fates.values().filter(|fate| !["exact", "same_core", "near"].contains(&fate.0.as_str())).count()
    );
}

#[test]
fn the_result_directory_is_complete_and_consistent() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("docs.jsonl"), root.path().join("out"));
    write_jsonl(&input, &documents());
    assert_eq!(dedup(&[&input], &output, &[]).code, 0);
    let names: BTreeSet<String> =
        fs::read_dir(&output).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    let expected = [
        "README.md",
        "clusters.parquet",
        "frames.parquet",
        "kept",
        "near_misses.parquet",
        "pages.parquet",
        "pairs.parquet",
        "report.html",
        "run.json",
        "skipped.jsonl",
        "summary.json",
    ];
    assert_eq!(names, expected.map(str::to_owned).into());

    let pages = table(&output.join("pages.parquet"));
    let clusters = table(&output.join("clusters.parquet"));
    let pairs = table(&output.join("pairs.parquet"));
    let keys = |row: &BTreeMap<String, String>| row.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(
        keys(&pages[0]),
        [
            "id",
            "source",
            "record",
            "offset",
            "length",
            "url",
            "title",
            "tokens",
            "identity",
            "revisit_of",
            "content",
            "text_hash"
        ]
        .map(str::to_owned)
        .into()
    );
    assert_eq!(
        keys(&clusters[0]),
        ["id", "cluster", "kept", "kept_id", "similarity", "page_similarity", "kind", "component"]
            .map(str::to_owned)
            .into()
    );
    assert_eq!(
        keys(&pairs[0]),
        [
            "left",
            "right",
            "similarity",
            "left_in_right",
            "right_in_left",
            "score",
            "estimate",
            "page_similarity",
            "same_site"
        ]
        .map(str::to_owned)
        .into()
    );

    // Offsets and lengths find the record's bytes again.
    let bytes = fs::read(&input).unwrap();
    for page in &pages {
        let start: usize = page["offset"].parse().unwrap();
        let record = &bytes[start..start + page["length"].parse::<usize>().unwrap()];
        let value: serde_json::Value = serde_json::from_slice(record).unwrap();
        assert_eq!(value["id"], page["id"].as_str());
    }
    // Promise 1: every dropped page names a kept page, and the pair is among the verified ones.
    let identity: HashMap<&str, &str> =
        pages.iter().map(|page| (page["id"].as_str(), page["identity"].as_str())).collect();
    let verified: HashMap<(&str, &str), &str> = pairs
        .iter()
        .map(|pair| ((pair["left"].as_str(), pair["right"].as_str()), pair["similarity"].as_str()))
        .collect();
    let kept: BTreeSet<&str> =
        clusters.iter().filter(|row| row["kept"] == "true").map(|row| row["id"].as_str()).collect();
    let mut near = 0;
    for row in &clusters {
        assert!(kept.contains(row["kept_id"].as_str()), "{row:?}");
        assert_eq!(row["cluster"], row["kept_id"]);
        let (own, other) = (identity[row["id"].as_str()], identity[row["kept_id"].as_str()]);
        match row["kind"].as_str() {
            "near" => {
                near += 1;
                let similarity = verified.get(&(own, other)).or_else(|| verified.get(&(other, own))).unwrap();
                assert_eq!(similarity, &row["similarity"]);
                assert!(row["similarity"].parse::<f64>().unwrap() >= 0.7);
            }
            "exact" => assert_eq!(own, other),
            _ => assert_eq!(row["id"], row["kept_id"]),
        }
    }
    assert!(near >= 30, "{near}");
    let summary = summary(&output);
    assert_eq!(summary["pages"], pages.len());
    assert_eq!(summary["kept"], kept.len());
    assert_eq!(summary["kinds"]["near"], near);
    // kept/ has the kept records, byte for byte and in order.
    let lines = String::from_utf8(bytes).unwrap();
    let expected: String = lines
        .lines()
        .zip(&clusters)
        .filter(|(_, row)| row["kept"] == "true")
        .map(|(line, _)| format!("{line}\n"))
        .collect();
    assert_eq!(fs::read_to_string(output.join("kept/docs.jsonl")).unwrap(), expected);
    let report = fs::read_to_string(output.join("report.html")).unwrap();
    assert!(report.contains("<svg") && !report.contains("src=") && !report.contains("<link"), "one file, no network");
}

pub fn write_csv(path: &Path, delimiter: char) {
    let mut text = format!("id{delimiter}url{delimiter}text\r\n");
    for document in documents() {
        text += &format!(
            "{}{delimiter}{}{delimiter}\"{}\"\r\n",
            document.id,
            document.url,
            document.text.replacen(' ', "\n", 1)
        );
    }
    fs::write(path, text).unwrap();
}

pub fn write_parquet(path: &Path) {
    let documents = documents();
    let column = |field: fn(&crate::common::Document) -> &str| {
        Arc::new(StringArray::from_iter_values(documents.iter().map(field))) as ArrayRef
    };
    let batch = RecordBatch::try_from_iter([
        ("id", column(|d| &d.id)),
        ("score", Arc::new(UInt32Array::from_iter_values(documents.iter().map(|d| d.score))) as ArrayRef),
        ("text", column(|d| &d.text)),
        ("url", column(|d| &d.url)),
    ])
    .unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn every_format_and_compression_gives_the_same_fates() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    write_jsonl(&at("plain.jsonl"), &documents());
    let lines = fs::read(at("plain.jsonl")).unwrap();
    // gzip of two members, split in the middle of a line.
    let (first, second) = lines.split_at(lines.len() / 2);
    let mut members = Vec::new();
    for part in [first, second] {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(part).unwrap();
        members.extend(encoder.finish().unwrap());
    }
    fs::write(at("members.jsonl.gz"), members).unwrap();
    fs::write(at("packed.jsonl.zst"), zstd::encode_all(&lines[..], 3).unwrap()).unwrap();
    fs::write(at("no-ending"), &lines).unwrap();
    write_csv(&at("table.csv"), ',');
    write_csv(&at("semicolons.csv"), ';');
    write_csv(&at("table.tsv"), '\t');
    write_parquet(&at("table.parquet"));
    fs::create_dir_all(at("folder/deep")).unwrap();
    for (number, document) in documents().iter().enumerate() {
        let place = if number % 2 == 0 { "folder" } else { "folder/deep" };
        fs::write(at(place).join(format!("{}.txt", document.id)), &document.text).unwrap();
    }
    let output = at("out");
    assert_eq!(dedup(&[&at("plain.jsonl")], &output, &[]).code, 0);
    let expected = fates(&output);
    let kept_lines = fs::read(output.join("kept/plain.jsonl")).unwrap();
    assert!(!kept_lines.is_empty());
    for name in [
        "members.jsonl.gz",
        "packed.jsonl.zst",
        "no-ending",
        "table.csv",
        "semicolons.csv",
        "table.tsv",
        "table.parquet",
    ] {
        let ran = dedup(&[&at(name)], &output, &[]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        assert_eq!(fates(&output), expected, "{name}");
        let kept = output.join("kept").join(name);
        if name.contains("jsonl") {
            assert_eq!(decompressed(&kept), kept_lines, "{name}");
            let magic = |path: &Path| fs::read(path).unwrap()[..2].to_vec();
            assert_eq!(magic(&kept), magic(&at(name)), "{name} keeps its compression");
        } else if name.ends_with("csv") || name.ends_with("tsv") {
            let text = fs::read_to_string(&kept).unwrap();
            assert!(text.starts_with("id") && text.contains("\r\n"));
            let again = root.path().join("again");
            assert_eq!(dedup(&[&kept], &again, &[]).code, 0);
            let summary = summary(&again);
            assert_eq!(summary["pages"], summary["kept"], "what is kept has no duplicates");
        } else if name.ends_with("parquet") {
            let rows = table(&kept);
            let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str()).collect();
            let kept_ids: Vec<String> = table(&output.join("clusters.parquet"))
                .into_iter()
                .filter(|row| row["kept"] == "true")
                .map(|row| row["id"].clone())
                .collect();
            assert_eq!(ids, kept_ids);
            assert!(rows[0].contains_key("score"), "all columns are kept");
        }
    }
    // Standard input.
    let mut child =
        lookalike().args(["dedup", "-", "--replace", "--output"]).arg(&output).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&lines).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(fates(&output), expected);
    assert_eq!(fs::read(output.join("kept/stdin.jsonl")).unwrap(), kept_lines);
    // A folder of files: the same groups under the names of the files; which one is kept depends on
    // the order of the names.
    assert_eq!(dedup(&[&at("folder")], &output, &["--copy-kept"]).code, 0);
    let groups = |fates: &BTreeMap<String, (String, String)>| {
        let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (id, (_, kept)) in fates {
            let name = |id: &str| id.trim_start_matches("deep/").trim_end_matches(".txt").to_owned();
            groups.entry(name(kept)).or_default().insert(name(id));
        }
        groups.into_values().collect::<BTreeSet<_>>()
    };
    assert_eq!(groups(&fates(&output)), groups(&expected));
    let list = fs::read_to_string(output.join("kept/kept.txt")).unwrap();
    for path in list.lines() {
        let copy = output.join("kept").join(Path::new(path).strip_prefix(at("folder")).unwrap());
        assert_eq!(fs::read(copy).unwrap(), fs::read(path).unwrap());
    }
}

#[test]
fn keep_policies_do_what_they_say() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("docs.jsonl"), root.path().join("out"));
    let documents = documents();
    write_jsonl(&input, &documents);
    let by_id: HashMap<&str, &crate::common::Document> =
        documents.iter().map(|document| (document.id.as_str(), document)).collect();
    type Better = fn(&crate::common::Document, &crate::common::Document) -> bool;
    let policies: [(&str, Better); 4] = [
        ("longest", |a, b| a.text.split_whitespace().count() >= b.text.split_whitespace().count()),
        ("newest", |a, b| a.date >= b.date),
        ("shortest-url", |a, b| a.url.len() <= b.url.len()),
        ("max:score", |a, b| a.score >= b.score),
    ];
    for (keep, better) in policies {
        assert_eq!(dedup(&[&input], &output, &["--keep", keep, "--cluster", "components"]).code, 0);
        for (id, (_, kept)) in fates(&output) {
            assert!(better(by_id[kept.as_str()], by_id[id.as_str()]), "--keep {keep} kept {kept} over {id}");
        }
    }
}

#[test]
fn little_memory_spills_to_disk_and_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let (input, plenty, little) =
        (root.path().join("docs.jsonl"), root.path().join("plenty"), root.path().join("little"));
    let documents: Vec<crate::common::Document> = (0..3000)
        .map(|number| crate::common::Document {
            id: format!("{number:080}"),
            text: sentence(number % 2000, 400) + if number >= 2000 { " tail" } else { "" },
            url: String::new(),
            score: 0,
            date: String::new(),
        })
        .collect();
    write_jsonl(&input, &documents);
    assert_eq!(dedup(&[&input], &plenty, &[]).code, 0);
    assert_eq!(dedup(&[&input], &little, &["--memory", "97MiB"]).code, 0);
    assert!(contents(&plenty) == contents(&little));
    let run: serde_json::Value = serde_json::from_slice(&fs::read(little.join("run.json")).unwrap()).unwrap();
    assert_eq!(run["spilled_to_disk"], serde_json::json!(["page strings", "sketches", "features", "pairs"]));
    assert_eq!(summary(&plenty)["kinds"]["near"], 1000);
    let ran = dedup(&[&input], &little, &["--memory", "50MiB"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("--memory 50.0 MiB is too little"), "{}", ran.stderr);
}

#[test]
fn empty_pages_match_nothing_and_short_ones_only_exactly() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("docs.jsonl"), root.path().join("out"));
    let texts = [
        "",
        "  \n ",
        "<html><script>x</script></html>",
        "page not found",
        "Page not found!",
        "page not there",
        "one two three four five six seven eight",
    ];
    let lines: String = texts
        .iter()
        .enumerate()
        .map(|(id, text)| serde_json::json!({"id": id, "text": text}).to_string() + "\n")
        .collect();
    fs::write(&input, lines).unwrap();
    assert_eq!(dedup(&[&input], &output, &[]).code, 0);
    let kinds: Vec<String> = fates(&output).into_values().map(|fate| fate.0).collect();
    assert_eq!(kinds, ["empty", "empty", "empty", "representative", "exact", "short", "unique"]);
}

#[test]
fn a_crowded_bucket_is_capped_reported_and_still_deduplicated() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("docs.jsonl"), root.path().join("out"));
    // 400 pages that differ in one word in the middle: every bucket holds nearly all of them.
    let base = sentence(1, 300);
    let documents: Vec<crate::common::Document> = (0..400)
        .map(|number| {
            let mut words: Vec<String> = base.split(' ').map(str::to_owned).collect();
            words[150] = format!("unique{number}");
            crate::common::Document {
                id: format!("p{number:03}"),
                text: words.join(" "),
                url: String::new(),
                score: 0,
                date: String::new(),
            }
        })
        .collect();
    write_jsonl(&input, &documents);
    assert_eq!(dedup(&[&input], &output, &["--bucket-limit", "50"]).code, 0);
    let result = summary(&output);
    assert_eq!(result["kept"], 1);
    // In each of 20 bands and a few more, every page with four leaders at the most.
    assert!(
        result["compared_pairs"].as_u64().unwrap() < 400 * 4 * 24,
        "linear, not quadratic: {}",
        result["compared_pairs"]
    );
    assert!(result["capped"][0]["size"].as_u64().unwrap() > 50);
    assert_eq!(result["capped"][0]["example"][0], "p000");
    assert_eq!(result["large_clusters"][0]["size"], 400);
    assert!(result["large_clusters"][0]["weakest_similarity"].as_f64().unwrap() > 0.9);
    let report = fs::read_to_string(output.join("report.html")).unwrap();
    assert!(report.contains("Suspiciously large clusters") && report.contains("Crowded buckets"));
}

#[test]
fn components_follow_chains_and_say_how_weak_they_are() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("docs.jsonl"), root.path().join("out"));
    // Each page shares four fifths of its words with the next: neighbours match, the ends do not.
    let words: Vec<String> = sentence(5, 400).split(' ').map(str::to_owned).collect();
    let texts: Vec<String> = (0..4).map(|step| words[step * 30..step * 30 + 250].join(" ")).collect();
    let lines: String = texts
        .iter()
        .zip("abcd".chars())
        .map(|(text, id)| serde_json::json!({"id": id.to_string(), "text": text}).to_string() + "\n")
        .collect();
    fs::write(&input, lines).unwrap();
    assert_eq!(dedup(&[&input], &output, &[]).code, 0);
    let star = table(&output.join("clusters.parquet"));
    assert!(star.iter().all(|row| row["kept"] == "true" || row["similarity"].parse::<f64>().unwrap() >= 0.7));
    assert!(star.iter().all(|row| row["component"] == "a"), "the chain is visible in any case");
    assert!(star.iter().filter(|row| row["kept"] == "true").count() >= 2, "stars do not follow it");
    assert_eq!(dedup(&[&input], &output, &["--cluster", "components"]).code, 0);
    let chained = table(&output.join("clusters.parquet"));
    assert!(chained.iter().all(|row| row["kept_id"] == "a"));
    let last: f64 = chained[3]["similarity"].parse().unwrap();
    assert!(last < 0.7 && last > 0.3, "the exact similarity of the ends: {last}");
}

#[test]
fn shingle_decides_by_supershingles_and_reports_b_similarity() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("docs.jsonl"), root.path().join("out"));
    // Long pages with one changed word: Jaccard similarity 0.97, nearly always B-similar.
    let long = |number: usize| {
        let mut words: Vec<String> = sentence(number / 2, 600).split(' ').map(str::to_owned).collect();
        words[number % 2 * 300] = "changed".to_owned();
        crate::common::Document {
            id: format!("d{number}"),
            text: words.join(" "),
            url: String::new(),
            score: 0,
            date: String::new(),
        }
    };
    write_jsonl(&input, &(0..100).map(long).collect::<Vec<_>>());
    assert_eq!(dedup(&[&input], &output, &["--method", "shingle"]).code, 0);
    let pairs = table(&output.join("pairs.parquet"));
    assert!((45..=50).contains(&pairs.len()), "{}", pairs.len());
    for pair in &pairs {
        let score: f64 = pair["score"].parse().unwrap();
        assert!((2.0..=6.0).contains(&score) && score.fract() == 0.0, "{pair:?}");
    }
    let strict = root.path().join("strict");
    assert_eq!(dedup(&[&input], &strict, &["--method", "shingle", "--agree", "5"]).code, 0);
    assert!(table(&strict.join("pairs.parquet")).len() < pairs.len());
    assert_eq!(summary(&output)["bands"], serde_json::json!({"bands": 6, "rows": 14}));
    assert_eq!(summary(&output)["config"]["method"]["ngram"], 8);
}

#[test]
fn exact_only_finds_copies_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("docs.jsonl"), root.path().join("out"));
    write_jsonl(&input, &documents());
    assert_eq!(dedup(&[&input], &output, &["--exact-only"]).code, 0);
    let result = summary(&output);
    assert_eq!(
        (&result["kinds"]["exact"], &result["kinds"]["near"], &result["pairs"]),
        (&20.into(), &0.into(), &0.into())
    );
}

#[test]
fn normal_forms_of_one_text_are_one_page() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("docs.jsonl"), root.path().join("out"));
    let composed = "Das Café in der Straße öffnet früh und schließt spät, sagt Zoë";
    let decomposed = composed
        .replace('é', "e\u{301}")
        .replace('ö', "o\u{308}")
        .replace('ü', "u\u{308}")
        .replace('ä', "a\u{308}")
        .replace('ë', "e\u{308}");
    assert_ne!(composed, decomposed);
    let lines: String =
        [composed, &decomposed].iter().map(|text| serde_json::json!({"text": text}).to_string() + "\n").collect();
    fs::write(&input, lines).unwrap();
    assert_eq!(dedup(&[&input], &output, &[]).code, 0);
    let fates = fates(&output);
    assert_eq!(
        fates["docs.jsonl:2"],
        ("exact".to_owned(), "docs.jsonl:1".to_owned()),
        "ids without a field are file:line"
    );
}

#[test]
fn recluster_is_stricter_goes_back_and_equals_the_run_it_came_from() {
    let root = tempfile::tempdir().unwrap();
    let (input, output, other) = (root.path().join("docs.jsonl"), root.path().join("out"), root.path().join("other"));
    write_jsonl(&input, &documents());
    for keep in ["first", "max:score"] {
        assert_eq!(dedup(&[&input], &output, &["--keep", keep]).code, 0);
        let before = contents(&output);
        let stricter = run(lookalike()
            .arg("recluster")
            .arg(&output)
            .args(["--replace", "--threshold", "0.93", "--output"])
            .arg(&other));
        assert_eq!(stricter.code, 0, "{}", stricter.stderr);
        assert!(contents(&output) == before, "--output leaves the first result alone");
        let rows = table(&other.join("clusters.parquet"));
        assert!(
            rows.iter()
                .filter(|row| row["kind"] == "near")
                .all(|row| row["similarity"].parse::<f64>().unwrap() >= 0.93)
        );
        let count = |output: &Path| summary(output)["kept"].as_u64().unwrap();
        assert!(count(&other) > count(&output));
        assert_eq!(fs::read_to_string(other.join("kept/docs.jsonl")).unwrap().lines().count() as u64, count(&other));
        // The same as a run with that threshold, where that run finds the same pairs.
        let fresh = root.path().join("fresh");
        assert_eq!(dedup(&[&input], &fresh, &["--keep", keep, "--threshold", "0.93"]).code, 0);
        assert_eq!(rows, table(&fresh.join("clusters.parquet")));
        // In place, and back again.
        assert_eq!(run(lookalike().arg("recluster").arg(&output).args(["--threshold", "0.93"])).code, 0);
        assert_eq!(table(&output.join("clusters.parquet")), rows);
        assert_eq!(run(lookalike().arg("recluster").arg(&output).args(["--threshold", "0.7"])).code, 0);
        for name in ["clusters.parquet", "pairs.parquet", "kept/docs.jsonl"] {
            assert!(contents(&output)[name] == before[name], "{name} after going back with --keep {keep}");
        }
    }
    let looser = run(lookalike().arg("recluster").arg(&output).args(["--threshold", "0.5"]));
    assert_eq!(looser.code, 2);
    assert!(looser.stderr.contains("run the whole job again"), "{}", looser.stderr);
    let nothing = run(lookalike().arg("recluster").arg(root.path()).args(["--threshold", "0.8"]));
    assert_eq!(nothing.code, 1);
    assert!(nothing.stderr.contains("is not a complete lookalike result"), "{}", nothing.stderr);
}

#[test]
fn a_dry_run_tells_and_writes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("docs.jsonl"), root.path().join("out"));
    write_jsonl(&input, &documents());
    let ran = dedup(&[&input], &output, &["--dry-run"]);
    assert_eq!(ran.code, 0);
    for word in ["would read 1 file,", "jsonl", "pages    122", "bands    17 of 4", "time", "memory", "disk"] {
        assert!(ran.stdout.contains(word), "{word} in:\n{}", ran.stdout);
    }
    assert!(!output.exists());
}
