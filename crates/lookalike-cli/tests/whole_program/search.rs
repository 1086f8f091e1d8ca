//! `lookalike transfer`, `lookalike dedup --against`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Document, Ran, dedup, documents, fates, lookalike, ours, run, summary, table, write_jsonl};

/// Transfers judgments from a.jsonl to b.jsonl.
fn transfer(qrels: &str, output: &str, more: &[&str], directory: &Path) -> Ran {
    let base = ["transfer", "--qrels", qrels, "--from", "a.jsonl", "--to", "b.jsonl", "--output", output, "--replace"];
    ours(&[&base, more].concat(), directory)
}

/// Two versions of a small site: words in changing frames, some pages renamed, changed, new or gone.
fn versions(directory: &Path) {
    let mut lines = [String::new(), String::new()];
    let text = |topic: usize| crate::common::sentence(topic, 150);
    for topic in 0..40 {
        let page =
            |id: String, url: String, text: String| json!({"id": id, "url": url, "text": text}).to_string() + "\n";
        lines[0].push_str(&page(format!("a{topic}"), format!("http://www.a.org/p{topic}.html"), text(topic)));
        let url = if topic % 2 == 0 {
            format!("https://a.org/p{topic}.html")
        } else {
            format!("https://b.net/new/{}", topic * 7)
        };
        let text = match topic % 4 {
            // The same, changed a little, replaced altogether.
            0 | 1 => text(topic),
            2 if topic % 8 == 2 => text(topic + 500),
            _ => text(topic).replacen(" w", " changed w", 2),
        };
        if topic != 39 {
            lines[1].push_str(&page(format!("b{topic}"), url, text));
        }
    }
    fs::write(directory.join("a.jsonl"), &lines[0]).unwrap();
    fs::write(directory.join("b.jsonl"), &lines[1]).unwrap();
    let qrels: String =
        (0..40).map(|topic| format!("{} 0 a{topic} {}\n", 100 + topic % 3, topic as i64 % 5 - 2)).collect();
    fs::write(directory.join("qrels.txt"), qrels).unwrap();
}

#[test]
fn judgments_are_carried_by_url_and_by_content() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    versions(at);
    let base = ["transfer", "--qrels", "qrels.txt", "--from", "a.jsonl", "--to", "b.jsonl", "--output", "out"];
    let ran = ours(&base, at);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rows = table(&at.join("out/mapping.parquet"));
    let way: BTreeMap<&str, &str> = rows.iter().map(|row| (row["from_id"].as_str(), row["way"].as_str())).collect();
    for topic in 0..39usize {
        let id = format!("a{topic}");
        let expected = match topic {
            _ if topic % 8 == 2 => "url",
            _ if topic % 2 == 0 => "both",
            _ => "near",
        };
        assert_eq!(way.get(id.as_str()), Some(&expected), "{id}");
    }
    assert!(rows.iter().all(|row| row["to_id"][1..] == row["from_id"][1..]), "none to a page of another topic");
    assert!(rows.iter().all(|row| !row["similarity"].is_empty() && !row["distance"].is_empty()));
    let carried = fs::read_to_string(at.join("out/qrels.txt")).unwrap();
    assert_eq!(carried.lines().count(), 39);
    assert!(
        carried.lines().any(|line| line == "100 0 b0 -2") && carried.lines().any(|line| line == "101 0 b7 0"),
        "{carried}"
    );
    assert!(ran.stderr.contains("5 judged pages were carried over by URL alone"), "{}", ran.stderr);
    let report: Value = serde_json::from_slice(&fs::read(at.join("out/summary.json")).unwrap()).unwrap();
    assert_eq!(
        (&report["with_url"], &report["with_url_near"], &report["by_content_only"]),
        (&20.into(), &15.into(), &19.into())
    );
    assert_eq!(report["ngrams"].as_array().map(Vec::len), Some(8));
    let page = fs::read_to_string(at.join("out/report.html")).unwrap();
    assert!(page.contains("Carried over by content") && page.contains("Carried over by URL alone"));

    // The same bytes again, into the same directory.
    let before = crate::common::contents(&at.join("out"));
    assert_eq!(ours(&[&base[..], &["--threads", "1"]].concat(), at).code, 0);
    assert_eq!(crate::common::contents(&at.join("out")), before);

    assert_eq!(ours(&[&base[..], &["--verified-only"]].concat(), at).code, 1, "other settings");
    assert_eq!(ours(&[&base[..], &["--verified-only", "--replace"]].concat(), at).code, 0);
    assert_eq!(fs::read_to_string(at.join("out/qrels.txt")).unwrap().lines().count(), 34);
}

#[test]
fn indexes_are_corpora_too() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    versions(at);
    for (index, pages) in [("ia", "a.jsonl"), ("ib", "b.jsonl")] {
        assert_eq!(ours(&["index", "build", index, pages, "-q"], at).code, 0);
    }
    for (from, to) in [("ia", "ib"), ("a.jsonl", "ib"), ("ia", "b.jsonl")] {
        let base = ["transfer", "--qrels", "qrels.txt", "--from", from, "--to", to, "--output", "out"];
        if at.join("out").exists() {
            let refused = ours(&base, at);
            assert!(refused.code == 1 && refused.stderr.contains("--replace"), "{}", refused.stderr);
        }
        let ran = ours(&[&base[..], &["--replace"]].concat(), at);
        assert_eq!(ours(&base, at).code, 0, "the same command again is no danger");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let rows = table(&at.join("out/mapping.parquet"));
        let same: BTreeSet<usize> =
            rows.iter().filter(|row| row["way"] != "url").map(|row| row["from_id"][1..].parse().unwrap()).collect();
        assert!((0..39).filter(|topic| topic % 4 < 2).all(|topic| same.contains(&topic)), "{from} to {to}: {same:?}");
        assert!(rows.iter().all(|row| row["to_id"][1..] == row["from_id"][1..] && row["similarity"].is_empty()));
    }
}

#[test]
fn judgments_that_disagree_are_settled_and_listed() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let text = crate::common::sentence(1, 200);
    let near = text.replacen(" w", " other w", 3);
    let page = |id: &str, text: &str| json!({"id": id, "text": text}).to_string() + "\n";
    fs::write(at.join("a.jsonl"), page("exact", &text) + &page("close", &near)).unwrap();
    fs::write(at.join("b.jsonl"), page("target", &text)).unwrap();
    fs::write(at.join("qrels.txt"), "1 0 close 4\n1 0 exact 1\n2 0 close 3\n").unwrap();
    for (rule, first) in [("nearest", 1), ("highest", 4), ("lowest", 1)] {
        let ran = transfer("qrels.txt", "out", &["--on-conflict", rule], at);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(
            fs::read_to_string(at.join("out/qrels.txt")).unwrap(),
            format!("1 0 target {first}\n2 0 target 3\n"),
            "{rule}"
        );
        let listed = fs::read_to_string(at.join("out/conflicts.jsonl")).unwrap();
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(
            (&listed["topic"], &listed["to_id"], listed["from"].as_array().map(Vec::len)),
            (&"1".into(), &"target".into(), Some(2))
        );
        let listed = fs::read_to_string(at.join("out/contradictions.jsonl")).unwrap();
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let found =
            ["topic", "left_id", "left_grade", "right_id", "right_grade", "near"].map(|key| listed[key].clone());
        assert_eq!(found, [json!("1"), json!("exact"), json!(1), json!("close"), json!(4), json!(true)]);
        assert!(listed["similarity"].as_f64().is_some_and(|found| found > 0.7 && found < 1.0), "{listed}");
        assert_eq!(listed["carried_to"], json!(["target"]));
        assert_eq!(summary(&at.join("out"))["contradictions"], 1);
    }
}

#[test]
fn judged_near_duplicates_contradict_even_if_none_is_carried() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let text = crate::common::sentence(1, 200);
    let near = text.replacen(" w", " other w", 3);
    let other = crate::common::sentence(2, 200);
    let page = |id: &str, url: &str, text: &str| json!({"id": id, "url": url, "text": text}).to_string() + "\n";
    let urls = ["http://en.example.org/1", "http://en.example.org/2", "http://www.example.org/3"];
    let a = page("one", urls[0], &text) + &page("two", urls[1], &near) + &page("three", urls[2], &other);
    fs::write(at.join("a.jsonl"), a).unwrap();
    let changed = |seed| crate::common::sentence(seed, 200);
    let b = page("b1", urls[0], &changed(3)) + &page("b2", urls[1], &changed(4)) + &page("b3", urls[2], &changed(5));
    fs::write(at.join("b.jsonl"), b).unwrap();
    // Topic 2 agrees; the third page is like no other.
    fs::write(at.join("qrels.txt"), "1 0 one 0\n1 0 two 2\n1 0 three 1\n2 0 one 1\n2 0 two 1\n").unwrap();
    assert_eq!(transfer("qrels.txt", "out", &[], at).code, 0);
    let listed = fs::read_to_string(at.join("out/contradictions.jsonl")).unwrap();
    let listed: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((&listed[0]["left_id"], &listed[0]["right_id"]), (&json!("one"), &json!("two")));
    assert_eq!((&listed[0]["near"], &listed[0]["carried_to"]), (&json!(true), &json!([])));
    // Shared URLs by host, and by registrable domain.
    let sites = |output: &str| summary(&at.join(output))["shared_sites"].clone();
    assert_eq!(sites("out"), json!([["en.example.org", 2], ["example.org", 1]]));
    assert_eq!(transfer("qrels.txt", "whole", &["--domains", "registrable"], at).code, 0);
    assert_eq!(sites("whole"), json!([["example.org", 3]]));
}

#[test]
fn judgments_that_make_no_sense_are_refused_with_the_line() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    versions(at);
    for (text, complaint) in [
        ("1 0 a1\n", "line 1: has 3 columns"),
        ("1 0 a1 1\n1 0 a2 good\n", "line 2: the grade 'good' is not a whole number"),
        ("1 0 a1 1\n1 0 stranger -2\n", "line 2: stranger"),
        ("1 a1 1 0.5 2\n", "five columns are those of prels"),
    ] {
        fs::write(at.join("bad.txt"), text).unwrap();
        let ran = transfer("bad.txt", "out", &[], at);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(complaint), "{}", ran.stderr);
        assert!(!at.join("out").exists(), "nothing is left");
    }
    fs::write(at.join("bom.txt"), "\u{feff}1 0 a1 1\r\n").unwrap();
    let bom = transfer("bom.txt", "bom", &[], at);
    assert_eq!((bom.code, fs::read_to_string(at.join("bom/qrels.txt")).unwrap().as_str()), (0, "1 0 b1 1\n"));
    let over = transfer("bom/qrels.txt", "bom", &[], at);
    assert!(
        over.code == 2 && over.stderr.contains("--output: the judgments of the result would replace"),
        "{}",
        over.stderr
    );
    fs::write(at.join("broken.jsonl"), fs::read_to_string(at.join("a.jsonl")).unwrap() + "{oops\n").unwrap();
    let skipped = ours(
        &["transfer", "--qrels", "bom.txt", "--from", "broken.jsonl", "--to", "b.jsonl", "--output", "broken"],
        at,
    );
    assert!(skipped.code == 3 && skipped.stderr.contains("1 record was skipped"), "{}", skipped.stderr);
    fs::write(at.join("bad.txt"), "1 0 a1 1\n1 0 stranger -2\n").unwrap();
    let allowed = transfer("bad.txt", "out", &["--allow-missing"], at);
    assert!(allowed.code == 0 && allowed.stderr.contains("1 of them not in A"), "{}", allowed.stderr);
}

#[test]
fn what_another_corpus_has_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let all = documents();
    let (first, second): (Vec<Document>, Vec<Document>) =
        all.iter().cloned().partition(|document| !document.id.contains('-'));
    write_jsonl(&at.join("first.jsonl"), &first);
    // The second corpus has copies, near ones and long ones of the first, pages of its own, and an id of the first.
    let mut second = second;
    for topic in 900..905 {
        second.push(Document {
            id: format!("own{topic}"),
            text: crate::common::sentence(topic, 120),
            ..first[0].clone()
        });
    }
    second.push(Document { id: "t1".to_owned(), text: crate::common::sentence(990, 120), ..first[0].clone() });
    write_jsonl(&at.join("second.jsonl"), &second);
    assert_eq!(dedup(&[&at.join("first.jsonl")], &at.join("seen"), &[]).code, 0);
    assert_eq!(ours(&["index", "build", "index", "first.jsonl", "-q"], at).code, 0);

    for (against, flags) in [("seen", vec![]), ("index", vec!["--method", "simhash"])] {
        let flags = [&["--against", against, "--jsonl"], &flags[..]].concat();
        let ran = run(lookalike().args(["dedup", "second.jsonl", "--output", "out"]).args(&flags).current_dir(at));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let fates = fates(&at.join("out"));
        for topic in 900..905 {
            assert_ne!(fates[&format!("own{topic}")].0, "near", "{against}");
        }
        let rows = table(&at.join("out/against.parquet"));
        let both: BTreeMap<&str, &str> =
            rows.iter().map(|row| (row["id"].as_str(), row["against_id"].as_str())).collect();
        assert!(both.iter().all(|(id, theirs)| id.starts_with(&format!("{theirs}-"))), "{both:?}");
        assert!(
            (0..60).filter(|topic| topic % 3 == 0).all(|topic| both.contains_key(format!("t{topic}-copy").as_str())),
            "{against}: copies"
        );
        assert!(!both.contains_key("t1"), "the same id is not the same page");
        let counts = summary(&at.join("out"));
        assert_eq!(counts["pages"].as_u64(), Some(second.len() as u64), "theirs are not counted");
        assert_eq!(counts["against"]["dropped"].as_u64(), Some(rows.len() as u64));
        let kept = fs::read_to_string(at.join("out/kept/second.jsonl")).unwrap();
        assert_eq!(kept.lines().count() as u64, counts["kept"].as_u64().unwrap());
        assert!(at.join("out/against.jsonl").exists());
        if against == "seen" {
            assert_eq!(rows.len(), second.len() - 6, "minhash finds every copy, near one and long one");
            // A result made against another can be clustered again.
            let again = ours(&["recluster", "out", "--threshold", "0.9", "--output", "strict", "-q"], at);
            assert_eq!(again.code, 0, "{}", again.stderr);
        }
        fs::remove_dir_all(at.join("out")).unwrap();
    }
    // Files that are old and new at once: the old pages are dropped, and a second clustering knows which is which.
    let grown = run(lookalike()
        .args(["dedup", "first.jsonl", "second.jsonl", "--against", "seen", "--output", "grown"])
        .current_dir(at));
    assert_eq!(grown.code, 0, "{}", grown.stderr);
    let before = summary(&at.join("grown"));
    assert_eq!(
        (before["pages"].as_u64(), before["kept"].as_u64()),
        (Some((first.len() + second.len()) as u64), Some(6))
    );
    assert_eq!(ours(&["recluster", "grown", "--threshold", "0.71", "-q"], at).code, 0);
    let after = summary(&at.join("grown"));
    assert_eq!(
        (&after["pages"], &after["kept"], &after["against"]),
        (&before["pages"], &before["kept"], &before["against"])
    );
    for (flags, complaint) in [
        (vec!["--against", "seen", "--output", "seen"], "is also the --output"),
        (vec!["--against", "index"], "use --method simhash"),
        (vec!["--against", "index", "--method", "simhash", "--cluster", "components"], "an index has none; use star"),
        (vec!["--against", "."], "second.jsonl is also an input"),
        (
            vec!["--against", "nowhere.jsonl"],
            "is neither a result of lookalike dedup, nor an index, nor files of pages",
        ),
        (vec!["--against", "index", "--method", "simhash", "--ngram", "4"], "made with another --ngram"),
        (vec!["--against", "seen", "--method", "spotsigs", "--matching", "incremental"], "goes with --matching full"),
        (vec!["--against", "seen", "--text-field", "body"], "that run read other fields"),
    ] {
        let output: &[&str] = if flags.contains(&"--output") { &[] } else { &["--output", "out"] };
        let ran = run(lookalike().args(["dedup", "second.jsonl"]).args(output).args(&flags).current_dir(at));
        assert!(ran.code == 2 && ran.stderr.contains(complaint), "{flags:?}: {}", ran.stderr);
    }
}

#[test]
fn a_verified_page_under_the_same_url_is_the_only_one_that_is_carried_to() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let text = crate::common::sentence(5, 150);
    let page = |id: &str, url: &str, text: &str| json!({"id": id, "url": url, "text": text}).to_string() + "\n";
    fs::write(at.join("a.jsonl"), page("a", "http://a.org/p", &text)).unwrap();
    let changed = text.replacen(" w", " changed w", 1);
    let copies = page("copy1", "http://a.org/print", &text) + &page("copy2", "http://b.org/p", &text);
    fs::write(at.join("b.jsonl"), page("same", "https://www.a.org/p", &changed) + &copies).unwrap();
    fs::write(at.join("qrels.txt"), "1 0 a 2\n").unwrap();
    let carried = |more: &[&str]| -> Vec<(String, String)> {
        let ran = transfer("qrels.txt", "out", more, at);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let rows = table(&at.join("out/mapping.parquet"));
        assert_eq!(rows.len(), 3, "all are listed");
        let carried = rows.into_iter().filter(|row| row["carried"] == "true");
        carried.map(|row| (row["to_id"].clone(), row["way"].clone())).collect()
    };
    let named = |rows: &[(&str, &str)]| -> Vec<(String, String)> {
        rows.iter().map(|(id, way)| ((*id).to_owned(), (*way).to_owned())).collect()
    };
    assert_eq!(carried(&[]), named(&[("same", "both")]));
    assert_eq!(carried(&["--verified-only"]), named(&[("same", "both")]));
    assert_eq!(carried(&["--all-near"]), named(&[("copy1", "near"), ("copy2", "near"), ("same", "both")]));
    // What stands under the URL now is another page: the copies are carried to, and the URL as before.
    fs::write(at.join("b.jsonl"), page("same", "http://a.org/p", &crate::common::sentence(6, 150)) + &copies).unwrap();
    assert_eq!(carried(&[]), named(&[("copy1", "near"), ("copy2", "near"), ("same", "url")]));
    assert_eq!(carried(&["--verified-only"]), named(&[("copy1", "near"), ("copy2", "near")]));
}

/// The words of a manual page without its frame.
fn body(html: &str) -> Vec<String> {
    let start =
        html.find("<div class=\"body\" role=\"main\">").or_else(|| html.find("<div class=\"content\" role=\"main\">"));
    let rest = start.map_or(html, |start| &html[start..]);
    let end = ["<div class=\"clearer\">", "<div class=\"sphinxsidebar", "<div class=\"bottomnav\""]
        .iter()
        .filter_map(|mark| rest.find(mark))
        .min();
    let mut words = String::new();
    let mut inside = false;
    for c in rest[..end.unwrap_or(rest.len())].chars() {
        match c {
            '<' => inside = true,
            '>' => {
                inside = false;
                words.push(' ');
            }
            c if !inside => words.push(c),
            _ => {}
        }
    }
    words.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn judgments_of_real_manuals_survive_a_new_frame_and_new_urls() {
    let Some(archive) = lookalike_test_data::labelled_data("llvm-docs-dev.tar.zst") else { return };
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let unpacked = std::process::Command::new("sh")
        .arg("-c")
        .arg(r#"zstd -d --long=27 -c "$0" | tar -x -C "$1""#)
        .arg(&archive)
        .arg(at)
        .status()
        .unwrap();
    assert!(unpacked.success());
    for project in ["clang", "llvm"] {
        let mut bodies: [BTreeMap<String, Vec<String>>; 2] = Default::default();
        for (number, (version, file)) in [("13", "a.jsonl"), ("14", "b.jsonl")].into_iter().enumerate() {
            let root = at.join("llvm-docs").join(format!("{project}-{version}"));
            let (mut lines, mut waiting) = (String::new(), vec![root.clone()]);
            while let Some(folder) = waiting.pop() {
                for entry in fs::read_dir(folder).unwrap() {
                    let path = entry.unwrap().path();
                    if path.is_dir() {
                        waiting.push(path);
                    } else if path.extension().is_some_and(|ending| ending == "html") {
                        let html = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
                        let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                        // Every URL of the second version is another.
                        let url = if number == 0 {
                            format!("http://docs.org/{name}")
                        } else {
                            format!("http://new.net/{}", name.len() * 7919 + bodies[1].len())
                        };
                        lines.push_str(
                            &(json!({"id": format!("{number}/{name}"), "url": url, "html": html}).to_string() + "\n"),
                        );
                        bodies[number].insert(name, body(&html));
                    }
                }
            }
            fs::write(at.join(file), lines).unwrap();
        }
        let qrels: String = bodies[0]
            .keys()
            .enumerate()
            .map(|(number, name)| format!("{} 0 0/{name} {}\n", number % 50, number % 4))
            .collect();
        fs::write(at.join("qrels.txt"), qrels).unwrap();
        let ran = transfer("qrels.txt", "out", &[], at);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let carried: BTreeSet<(String, String)> = table(&at.join("out/mapping.parquet"))
            .into_iter()
            .filter(|row| row["carried"] == "true")
            .map(|row| (row["from_id"][2..].to_owned(), row["to_id"][2..].to_owned()))
            .collect();
        let unchanged: Vec<&String> =
            bodies[0].iter().filter(|(name, body)| bodies[1].get(*name) == Some(body)).map(|row| row.0).collect();
        let pages: BTreeSet<&String> = carried.iter().map(|row| &row.0).collect();
        println!(
            "{project}: {} pages, {} unchanged; {} carried over, to {} pages of the other version",
            bodies[0].len(),
            unchanged.len(),
            pages.len(),
            carried.len()
        );
        assert!(unchanged.len() > if project == "llvm" { 300 } else { 10 });
        for name in unchanged {
            assert!(carried.contains(&(name.clone(), name.clone())), "{project}: {name} was not carried over");
        }
        // A page may go to a page of another name only if that says the same: most of the words of one are in the other.
        for (from, to) in carried.iter().filter(|row| row.0 != row.1) {
            let (left, right): (BTreeSet<&String>, BTreeSet<&String>) =
                (bodies[0][from].iter().collect(), bodies[1][to].iter().collect());
            let shared = left.intersection(&right).count() as f64 / left.len().min(right.len()).max(1) as f64;
            assert!(shared > 0.6, "{project}: {from} went to {to}, {shared}");
        }
    }
}
