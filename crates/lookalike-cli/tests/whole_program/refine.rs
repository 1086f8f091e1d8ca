//! `lookalike refine`.

use std::fs;

use serde_json::{Value, json};

use crate::common::{Document, documents, ours, write_jsonl};

fn results() -> Vec<Value> {
    let wanted = ["t0", "t1", "t0-near", "t2", "t0-copy", "t2-near"];
    let documents = documents();
    let find = |id: &&str| documents.iter().find(|document| document.id == **id).unwrap().clone();
    let of = |document: Document| json!({"id": document.id, "url": document.url, "title": format!("About {}", document.id), "text": document.text});
    wanted.iter().map(find).map(of).collect()
}

/// The ids of each group of a run.
fn groups(value: &Value) -> Vec<Vec<String>> {
    let id = |row: &Value| row["id"].as_str().unwrap_or_default().to_owned();
    let of = |group: &Value| {
        let others = group["others"].as_array().unwrap().iter().map(id);
        std::iter::once(id(group)).chain(others).collect()
    };
    value["groups"].as_array().unwrap().iter().map(of).collect()
}

/// The ids of each group of an answer, whose list is at a pointer.
fn answer_groups(value: &Value, pointer: &str) -> Vec<Vec<String>> {
    let id = |row: &Value| row["id"].as_str().or(row["_id"].as_str()).unwrap_or_default().to_owned();
    let of = |result: &Value| {
        let others = result["lookalike"]["others"].as_array().unwrap().iter().map(id);
        std::iter::once(id(result)).chain(others).collect()
    };
    value.pointer(pointer).unwrap().as_array().unwrap().iter().map(of).collect()
}

/// Without what we added.
fn stripped(value: &Value) -> Value {
    let mut value = value.clone();
    value.as_object_mut().unwrap().remove("lookalike");
    value
}

const FOLDED: [&[&str]; 3] = [&["t0", "t0-near", "t0-copy"], &["t1"], &["t2", "t2-near"]];

/// Forms of the same list: name of the file, content, where the list is, flags.
fn forms() -> [(&'static str, Value, &'static str, Vec<&'static str>); 4] {
    let hits: Vec<Value> =
        results().into_iter().map(|row| json!({"_id": row["id"], "_score": 1.5, "_source": {"url": row["url"], "page": {"body": row["text"]}, "tags": ["a", null]}, "highlight": {}})).collect();
    let renamed: Vec<Value> = results()
        .into_iter()
        .map(|row| json!({"id": row["id"], "link": row["url"], "content": row["text"], "engines": ["x", "y"], "score": 0.25}))
        .collect();
    [
        ("own.json", json!({"query": "q", "results": results(), "page": 1}), "/results", vec![]),
        ("list.json", Value::Array(results()), "", vec![]),
        (
            "searxng.json",
            json!({"query": "q", "number_of_results": 6, "results": renamed, "suggestions": ["s"]}),
            "/results",
            vec![],
        ),
        (
            "elastic.json",
            json!({"took": 3, "_shards": {"total": 1}, "hits": {"total": {"value": 6}, "max_score": 1.5, "hits": hits}}),
            "/hits/hits",
            vec!["--text-field", "page.body"],
        ),
    ]
}

#[test]
fn every_form_of_results_comes_back_in_its_own_shape() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    for (name, form, pointer, flags) in forms() {
        fs::write(at.join(name), form.to_string()).unwrap();
        let given = form.pointer(pointer).unwrap().as_array().unwrap();
        for method in ["bloom", "minhash"] {
            let ran = ours(&[&["refine", name, "--json", "--method", method], &flags[..]].concat(), at);
            assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
            let value: Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(answer_groups(&value, pointer), FOLDED, "{name} by {method}");
            let kept = value.pointer(pointer).unwrap().as_array().unwrap();
            for (result, rank) in kept.iter().zip([1, 2, 4]) {
                assert_eq!(stripped(result), given[rank - 1], "{name}: every field is kept");
                assert_eq!((&result["lookalike"]["rank"], &result["lookalike"]["group"]), (&rank.into(), &rank.into()));
            }
            let copy = &kept[0]["lookalike"]["others"][1];
            assert_eq!(
                [&copy["relation"], &copy["similarity"], &copy["rank"], &copy["evidence"]],
                [&json!("exact"), &json!(1.0), &json!(5), &json!(["text"])]
            );
            assert_eq!(copy["result"], given[4], "{name}: a folded result is not lost");
            // Nothing else changed.
            if pointer.is_empty() {
                continue;
            }
            let mut rest = stripped(&value);
            *rest.pointer_mut(pointer).unwrap() = form.pointer(pointer).unwrap().clone();
            assert_eq!(rest, form, "{name}");
            let about = &value["lookalike"];
            assert_eq!(
                [
                    &about["method"],
                    &about["results"],
                    &about["groups"],
                    &about["folded"],
                    &about["near_duplicates"]["top_10"]
                ],
                [&json!(method), &json!(6), &json!(3), &json!(3), &json!(0.5)]
            );
        }
        let marked = ours(&[&["refine", name, "--json", "--mark"], &flags[..]].concat(), at);
        let value: Value = serde_json::from_str(&marked.stdout).unwrap();
        let all = value.pointer(pointer).unwrap().as_array().unwrap();
        assert_eq!(all.iter().map(stripped).collect::<Vec<_>>(), *given, "{name}: marks leave everything in its place");
        let group: Vec<&Value> = all.iter().map(|result| &result["lookalike"]["group"]).collect();
        assert_eq!(group, [1, 2, 1, 4, 1, 4], "{name}");
        assert_eq!(all[4]["lookalike"]["relation"], "exact");
        assert!(all[0]["lookalike"]["others"][0].get("result").is_none(), "it is in the list itself");
    }
}

#[test]
fn an_answer_is_the_same_byte_for_byte_but_for_what_is_folded() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let text = crate::common::sentence(7, 80);
    let record = |id: &str, end: &str| {
        format!(
            "    {{\n      \"id\": \"{id}\",\n      \"score\": 1.50e+01, \"z\": \"\\u00e9\\/\",\n      \"text\": \"{text}\",\n      \"a\": -0.0{end}\n    }}"
        )
    };
    let whole = |records: &[String]| {
        format!(
            " {{\n  \"took\" : 12345678901234567890123,\n  \"results\": [\n{}\n  ],\n  \"b\": 1, \"a\": 2",
            records.join(",\n")
        )
    };
    fs::write(at.join("in.json"), whole(&[record("x", ""), record("y", "")]) + "\n}\n").unwrap();
    let marked = ours(&["refine", "in.json", "--json", "--mark", "--group-field", "twins"], at);
    assert_eq!(marked.code, 0, "{}", marked.stderr);
    // Our fields have lines of their own, at the end of each object.
    let lines: Vec<&str> = marked
        .stdout
        .lines()
        .filter(|line| !line.starts_with("      \"twins\": ") && !line.starts_with("  \"twins\": "))
        .collect();
    assert_eq!(lines.len() + 3, marked.stdout.lines().count(), "two results and the whole");
    let cut = lines.join("\n").replace("-0.0,\n", "-0.0\n").replace("\"a\": 2,", "\"a\": 2");
    assert_eq!(cut, whole(&[record("x", ""), record("y", "")]) + "\n}");
    let ran = ours(&["refine", "in.json", "--json", "--group-field", "twins"], at);
    let parsed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(parsed["results"][0]["twins"]["others"][0]["id"], "y");
    assert!(ran.stdout.contains(&format!("\"result\":{}", record("y", "").trim_start())), "the folded record, too");

    fs::write(at.join("again.json"), &ran.stdout).unwrap();
    let again = ours(&["refine", "again.json", "--json", "--group-field", "twins"], at);
    assert!(
        again.code == 2
            && again.stderr.contains("result 1 already has a field 'twins'; name another one with --group-field"),
        "{}",
        again.stderr
    );
}

#[test]
fn an_empty_list_is_an_empty_answer() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    for (name, mut form, pointer, _) in forms() {
        *form.pointer_mut(pointer).unwrap() = json!([]);
        fs::write(at.join(name), form.to_string()).unwrap();
        let ran = ours(&["refine", name, "--json"], at);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        let value: Value = serde_json::from_str(&ran.stdout).unwrap();
        if pointer.is_empty() {
            assert_eq!(value, json!([]));
        } else {
            assert_eq!(stripped(&value), form, "{name}");
            assert_eq!((&value["lookalike"]["results"], &value["lookalike"]["groups"]), (&0.into(), &0.into()));
        }
        let people = ours(&["refine", name], at);
        assert!(
            people.code == 0 && people.stdout.contains("0 results in 0 groups"),
            "{} {}",
            people.stdout,
            people.stderr
        );
    }
}

#[test]
fn snippets_are_folded_by_titles_and_urls_and_the_output_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let row = |url: &str, title: &str, content: &str| json!({"url": url, "title": title, "content": content});
    let list = json!({"query": "night ferry", "results": [
        row("https://www.herald.org/ferry.html", "Night ferry returns after three winters - Herald", "The night ferry between Port Alder and the islands will sail again from Monday …"),
        row("https://ledger.net/2024/ferry", "Night ferry returns after three winters | Ledger", "… a single ticket costs eleven crowns, and the crossing takes four hours in good weather …"),
        row("http://herald.org/ferry.html?utm_source=mail", "Herald", "… three winters ago, when the old ship failed its inspection …"),
        row("https://a.org/lib/intro.html", "Introduction", "This chapter explains how threads share memory and what a lock costs …"),
        row("https://b.org/net/intro.html", "Introduction", "Sockets are the ends of a connection between two programs on the net …"),
        row("https://mirror.org/lib/intro.html", "Introduction", "… and what a lock costs on machines with several processors …"),
        row("https://c.org/nothing", "Ferries of the north", ""),
    ]});
    fs::write(at.join("snippets.json"), list.to_string()).unwrap();
    let folded = |evidence: &[&str]| {
        let ran = ours(&[&["refine", "snippets.json", "--json"], evidence].concat(), at);
        assert_eq!(ran.code, 3, "one has no text: {}", ran.stderr);
        let value: Value = serde_json::from_str(&ran.stdout).unwrap();
        let rows = value["results"].as_array().unwrap().iter().flat_map(|row| {
            let others = row["lookalike"]["others"].as_array().unwrap().clone();
            let best = row["lookalike"]["rank"].clone();
            others.into_iter().map(move |other| json!([best, other["rank"], other["relation"], other["evidence"]]))
        });
        Value::Array(rows.collect())
    };
    assert_eq!(
        folded(&[]),
        json!([[1, 2, "same-title", ["title"]], [1, 3, "same-url", ["url"]], [4, 6, "same-title", ["title", "url"]],])
    );
    assert_eq!(folded(&["--evidence", "text"]), json!([]));
    assert_eq!(folded(&["--evidence", "text,url"]), json!([[1, 3, "same-url", ["url"]]]));
    let people = ours(&["refine", "snippets.json"], at);
    assert!(people.stdout.contains("same title      by title "), "{}", people.stdout);
    assert!(people.stdout.contains("same URL        by url "), "{}", people.stdout);
    assert!(
        people.stderr.contains("1 result had no text and was compared by title and URL alone"),
        "{}",
        people.stderr
    );
    let wrong = ours(&["refine", "snippets.json", "--evidence", "title"], at);
    assert!(wrong.code == 2 && wrong.stderr.contains("must contain text"), "{}", wrong.stderr);
}

#[test]
fn lists_are_folded_for_people_and_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("own.json"), json!({"query": "q", "results": results()}).to_string()).unwrap();
    let ran = ours(&["refine", "own.json"], at);
    assert!(
        ran.stdout.contains("   1. About t0")
            && ran.stdout.contains("6 results in 3 groups")
            && ran.stdout.contains("50 % of the first 6"),
        "{}",
        ran.stdout
    );
    let top = ours(&["refine", "own.json", "--depth", "2"], at);
    assert!(top.stdout.contains("2 results in 2 groups"), "{}", top.stdout);
    let plot = ours(&["refine", "own.json", "--report", "lists.html"], at);
    assert_eq!(plot.code, 0, "{}", plot.stderr);
    let page = fs::read_to_string(at.join("lists.html")).unwrap();
    assert!(!page.contains("Jain et al."), "papers are in the documentation");
    assert_eq!(page.matches("<svg class=\"wide\"").count(), 4);
    // Three of six results, each under a better one.
    assert!(page.contains("3 results, each with the better one that it was folded under."));
    assert!(at.join("lists.json").exists());
    let points = fs::read_to_string(at.join("lists.csv")).unwrap();
    for figure in ["Figure 4", "Figures 5 to 7", "Figures 8 to 10"] {
        assert!(points.contains(&format!("Jain et al. 2005, {figure} ")), "{figure}");
    }
    assert!(points.lines().any(|line| line.starts_with("Near-duplicates in each list,") && line.ends_with(",6,3")));
}

#[test]
fn a_run_is_folded_with_its_corpus_sketches_and_fingerprints() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    write_jsonl(&at.join("corpus.jsonl"), &documents());
    let lines: Vec<String> = results()
        .iter()
        .enumerate()
        .map(|(rank, row)| format!("7 Q0 {} {} {} tag", row["id"].as_str().unwrap(), rank + 1, 9 - rank))
        .collect();
    fs::write(at.join("run.txt"), lines.join("\n")).unwrap();
    let ran = ours(&["refine", "run.txt", "--corpus", "corpus.jsonl", "--run", "folded.txt", "--json"], at);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(groups(&value["lists"][0]), FOLDED);
    assert_eq!(
        fs::read_to_string(at.join("folded.txt")).unwrap(),
        "7 Q0 t0 1 9 tag\n7 Q0 t1 2 8 tag\n7 Q0 t2 3 6 tag\n"
    );

    let made = ours(&["refine", "run.txt", "--corpus", "corpus.jsonl", "--write-sketches", "sketches.json"], at);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let stored = ours(&["refine", "sketches.json", "--json"], at);
    assert_eq!(answer_groups(&serde_json::from_str(&stored.stdout).unwrap(), "/results"), FOLDED, "without any text");
    let foreign = ours(&["refine", "sketches.json", "--method", "minhash"], at);
    assert!(
        foreign.code == 2 && foreign.stderr.contains("result 1: its sketch is a sketch of bloom"),
        "{}",
        foreign.stderr
    );

    assert_eq!(ours(&["index", "build", "index", "corpus.jsonl", "-q"], at).code, 0);
    let by_index = ours(&["refine", "run.txt", "--method", "simhash", "--sketches", "index", "--json"], at);
    let value: Value = serde_json::from_str(&by_index.stdout).unwrap();
    assert_eq!(groups(&value["lists"][0])[0][..1], ["t0"], "{}", by_index.stderr);
    assert!(groups(&value["lists"][0])[0].contains(&"t0-copy".to_owned()));
}

#[test]
fn a_run_is_measured_before_and_after_folding() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    write_jsonl(&at.join("corpus.jsonl"), &documents());
    let ids = ["t0", "t0-near", "t1", "t0-copy", "t2"];
    let lines: Vec<String> =
        ids.iter().enumerate().map(|(rank, id)| format!("7 Q0 {id} {} {} tag", rank + 1, 9 - rank)).collect();
    fs::write(at.join("run.txt"), lines.join("\n")).unwrap();
    fs::write(at.join("qrels.txt"), "7 0 t0 1\n7 0 t0-near 1\n7 0 t0-copy 2\n7 0 t1 0\n7 0 t2 1\n8 0 t5 1\n").unwrap();
    let base = ["refine", "run.txt", "--corpus", "corpus.jsonl", "--qrels", "qrels.txt"];
    let ran = ours(&[&base[..], &["--json", "--run", "folded.txt", "--write-qrels", "unique.txt"]].concat(), at);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let measures = &serde_json::from_str::<Value>(&ran.stdout).unwrap()["measures"];
    let of = |run: &str, name: &str| measures[run][name].as_f64().unwrap() * 2.0;
    // Topic 8 has no results and counts as 0: the means are over both.
    assert_eq!((&measures["topics"], &measures["topics_without_results"]), (&2.into(), &1.into()));
    assert!((of("run", "average_precision") - (1.0 + 1.0 + 3.0 / 4.0 + 4.0 / 5.0) / 4.0).abs() < 1e-12);
    assert!((of("run_unique", "average_precision") - (1.0 + 2.0 / 5.0) / 2.0).abs() < 1e-12);
    assert!((of("folded_unique", "average_precision") - (1.0 + 2.0 / 3.0) / 2.0).abs() < 1e-12);
    assert!((of("folded", "precision_10") - 0.2).abs() < 1e-12 && (of("run", "precision_10") - 0.4).abs() < 1e-12);
    assert_eq!((&measures["relevant_duplicates"], &measures["relevant_results"]), (&2.into(), &4.into()));
    assert_eq!(
        fs::read_to_string(at.join("unique.txt")).unwrap(),
        "7 0 t0 1\n7 0 t0-near 0\n7 0 t0-copy 0\n7 0 t1 0\n7 0 t2 1\n8 0 t5 1\n"
    );
    let people = ours(&base, at);
    for part in ["nDCG@10", "folded, unique", "2 topics (1 without results, counted as 0)", "2 of 4 relevant results"] {
        assert!(people.stdout.contains(part), "{part}: {}", people.stdout);
    }
    let printed = ours(&[&base[..], &["--run", "-"]].concat(), at);
    assert_eq!(printed.stdout, fs::read_to_string(at.join("folded.txt")).unwrap());
    fs::write(at.join("other.txt"), "9 0 t0 1\n").unwrap();
    for (arguments, complaint) in [
        (
            &["refine", "run.txt", "--corpus", "corpus.jsonl", "--qrels", "other.txt"][..],
            "--qrels: have no topic of the run: '9' there, '7' here",
        ),
        (&["refine", "run.txt", "--corpus", "corpus.jsonl", "--write-qrels", "x.txt"], "--qrels"),
        (
            &["refine", "run.txt", "--corpus", "corpus.jsonl", "--qrels", "qrels.txt", "--write-qrels", "qrels.txt"],
            "qrels.txt: is an input",
        ),
        (
            &["refine", "run.txt", "--corpus", "corpus.jsonl", "--json", "--mark"],
            "--mark: a TREC run has no place for marks",
        ),
    ] {
        let ran = ours(arguments, at);
        assert!(ran.code == 2 && ran.stderr.contains(complaint), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn results_that_cannot_be_folded_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    for (name, text, complaint) in [
        ("no-text.json", "{\"results\": [{\"url\": \"a\"}, {\"url\": \"b\"}]}", "none of the 2 results has a text"),
        ("other.json", "{\"answer\": 42}", "has no list of results"),
        ("broken.json", "{\"results\": [", "is not JSON"),
        ("short.txt", "7 Q0 a 1 1.0 tag\n7 Q0 b 2\n", "line 2: has 4 columns; a TREC run has six"),
        ("rank.txt", "7 Q0 a first 1.0 tag\n", "line 1: the rank 'first' is not a number"),
        ("nothing.txt", "\n", "is empty"),
        ("twice.txt", "7 Q0 a 1 2.0 tag\n8 Q0 a 1 1.0 tag\n7 Q0 a 2 1.0 tag\n", "line 3: 'a' is already in line 1"),
        (
            "sketch.json",
            "{\"results\": [{\"text\": \"x\", \"sketch\": {\"version\": 9}}]}",
            "result 1: its sketch is not a lookalike sketch",
        ),
        ("run.txt", "7 Q0 a 1 1.0 tag\n", "say where they are with --corpus"),
    ] {
        fs::write(at.join(name), text).unwrap();
        let ran = ours(&["refine", name], at);
        assert_eq!(ran.code, 2, "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(name) && ran.stderr.contains(complaint), "{name}: {}", ran.stderr);
    }
    let mut some = results();
    some.push(json!({"url": "http://x.org/"}));
    fs::write(at.join("some.json"), json!({"results": some}).to_string()).unwrap();
    let ran = ours(&["refine", "some.json"], at);
    assert!(
        ran.code == 3 && ran.stderr.contains("1 result had no text") && ran.stdout.contains("7 results in 4 groups"),
        "{}",
        ran.stderr
    );
    for (arguments, complaint) in [
        (vec!["refine", "some.json", "--sketches", "nowhere"], "no result has a field 'nowhere'"),
        (vec!["refine", "some.json", "--report", "some.html"], "some.json: is an input"),
        (vec!["refine", "some.json", "--write-sketches", "some.json"], "some.json: is an input"),
        (vec!["refine", "some.json", "--depth", "0"], "--depth"),
    ] {
        let ran = ours(&arguments, at);
        assert!(ran.code == 2 && ran.stderr.contains(complaint), "{arguments:?}: {}", ran.stderr);
    }
    let flag = ours(&["refine", "some.json", "--method", "simhash", "--threshold", "0.5"], at);
    assert!(
        flag.code == 2 && flag.stderr.contains("--threshold: belongs to minhash, bloom and spotsigs"),
        "{}",
        flag.stderr
    );
}

#[test]
fn pages_of_one_site_are_not_folded_by_their_title() {
    let directory = tempfile::tempdir().unwrap();
    let folded = |rows: &[(&str, &str, &str)]| {
        let rows = rows.iter().map(|(url, title, text)| json!({"url": url, "title": title, "content": text}));
        let list = json!({"results": rows.collect::<Vec<Value>>()});
        fs::write(directory.path().join("list.json"), list.to_string()).unwrap();
        let ran = ours(&["refine", "list.json", "--json"], directory.path());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()["lookalike"]["folded"].as_u64()
    };
    let (cats, dogs) = ("cats eat fish and sleep all day long", "dogs need walks in the park every morning");
    for (one, other, title) in [
        ("http://f.org/viewtopic.php?t=1", "http://f.org/viewtopic.php?t=2", "Forum"),
        ("http://f.org/question/101", "http://f.org/question/102", "Broken printer"),
        ("http://a.org/2024/01/01", "http://a.org/2024/01/02", "Daily briefing"),
        ("http://v.org/watch?v=AAA", "http://v.org/watch?v=BBB", "Official music video trailer - V"),
        ("http://en.wiki.org/w/Albert", "http://de.wiki.org/w/Albert", "Albert Einstein - Wiki"),
        ("http://a.org/x", "http://b.org/y", "Please log in to continue"),
    ] {
        assert_eq!(folded(&[(one, title, cats), (other, title, dogs)]), Some(0), "{one} {other}");
    }
    // Words that a search engine marks are words.
    let (plain, marked) =
        (format!("{cats} {dogs}"), format!("<em>cats</em> eat {} {dogs}", &cats["cats eat ".len()..]));
    assert_eq!(folded(&[("http://a.org/x", "One", &plain), ("http://b.org/y", "Two", &marked)]), Some(1));
}
