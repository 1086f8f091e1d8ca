//! `lookalike evaluate`: clusters, pairs, page, audit.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{Ran, assert_in_order, dedup, documents, lookalike, newsroom, run, write_jsonl};

fn evaluate(arguments: &[&str], directory: &Path) -> Ran {
    run(lookalike().arg("evaluate").args(arguments).current_dir(directory))
}

/// The small corpus and its gold standard: a topic is a cluster.
fn labelled(directory: &Path) {
    let documents = documents();
    write_jsonl(&directory.join("pages.jsonl"), &documents);
    let topic = |id: &str| id.split('-').next().unwrap_or(id).to_owned();
    let rows: String = documents
        .iter()
        .map(|document| {
            let kind = if document.id.contains("-copy") { "copy" } else { "other" };
            format!("{}\t{}\t{kind}\n", document.id, topic(&document.id))
        })
        .collect();
    fs::write(directory.join("gold.tsv"), format!("page\tcluster\tkind\n{rows}")).unwrap();
}

fn json(ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn every_method_is_judged_with_its_cost() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    labelled(at);
    let all = ["clusters", "--gold", "gold.tsv", "pages.jsonl", "--equal-recall", "shingle"];
    let ran = evaluate(&all, at);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let found = json(&evaluate(&[&all[..], &["--json"]].concat(), at));
    let methods = found["methods"].as_array().unwrap();
    assert_eq!(methods.len(), 8);
    // 20 copies, 30 near ones and 12 long ones beside 60 topics.
    let sizes = (0..60u64).map(|t| 1 + u64::from(t % 3 == 0) + u64::from(t % 2 == 0) + u64::from(t % 5 == 0));
    assert_eq!(found["gold_pairs"], sizes.map(|size| size * (size - 1) / 2).sum::<u64>());
    for row in methods {
        let name = row["method"].as_str().unwrap();
        assert!(ran.stdout.contains(name));
        assert_eq!(row["pairs"]["wrong"], 0, "{name}: no two topics are alike");
        assert!(row["pairs"]["recall"].as_f64().unwrap() > 0.2, "{name}: copies at least");
        // These words have no antecedents among them.
        assert!(name == "spotsigs" || row["cost"]["bytes_per_page"].as_f64().unwrap() > 0.0, "{name}");
        assert!(row["best"]["pairs"]["f1"].as_f64().unwrap() >= row["pairs"]["f1"].as_f64().unwrap() - 1e-12, "{name}");
        let halves = &row["halves"];
        let halves = [&halves["chosen_on"]["gold"], &halves["tested_on"]["gold"]].map(|half| half.as_u64().unwrap());
        assert_eq!(halves[0] + halves[1], found["gold_pairs"].as_u64().unwrap());
        assert!(halves[0] > 10 && halves[1] > 10, "{halves:?}");
        assert_eq!(row["equal_recall"]["with"], "shingle");
        assert!(row["kinds"]["between kinds"]["gold"].as_u64().unwrap() > 0);
        // A stricter threshold finds no more.
        let found: Vec<u64> = row["sweep"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cut| cut["pairs"]["correct"].as_u64().unwrap() + cut["pairs"]["wrong"].as_u64().unwrap())
            .collect();
        assert!(found.is_sorted_by(|a, b| a >= b), "{name}: {found:?}");
    }
    let minhash = &methods[0];
    assert_eq!(minhash["pairs"]["recall"], 1.0, "every pair of a topic has a similarity above 0.7");
    for score in ["adjusted_rand", "exact_sets", "cluster_f1"] {
        assert_eq!(minhash["clusters"][score], 1.0, "{score}");
    }
    assert_eq!(minhash["strict"]["recall"], 1.0);
    let of_sites = ["same_site", "different_site"].map(|split| minhash[split]["gold"].as_u64().unwrap_or_default());
    assert_eq!(of_sites[0] + of_sites[1], found["gold_pairs"].as_u64().unwrap());
}

#[test]
fn the_report_has_every_plot_and_its_numbers_are_those_counted_by_hand() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    labelled(at);
    let ran = evaluate(&["clusters", "--gold", "gold.tsv", "pages.jsonl", "--report", "report.html"], at);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let page = fs::read_to_string(at.join("report.html")).unwrap();
    assert!(!page.contains("src=") && !page.contains("<script"), "one file, no network");
    assert!(!page.contains("Henzinger") && !page.contains("et al."), "papers are in the documentation");
    for title in [
        "Precision against recall, all methods",
        "bloom: precision and recall against the threshold",
        "How many near-duplicates a page has",
        "Term differences of accepted pairs",
        "Equal bits of pairs with equal supershingles",
        "Combined: precision against",
        "Precision and recall by n-gram length",
        "SimHash at each distance",
        "Spot signatures by the number of antecedents",
        "Spot signatures by spot distance",
        "Spot signatures: recall by threshold and way of matching",
        "Spot signatures: how the index grows",
        "Spot signatures: mistakes in each batch",
    ] {
        assert!(page.contains(title), "{title}");
    }
    let beside: Value = serde_json::from_slice(&fs::read(at.join("report.json")).unwrap()).unwrap();
    // The method with the best F1 comes first, and is marked.
    let best = |row: &Value| row["best"]["pairs"]["f1"].as_f64().unwrap();
    let methods = beside["methods"].as_array().unwrap();
    let winner = methods.iter().rev().max_by(|a, b| best(a).total_cmp(&best(b))).unwrap();
    let conclusion =
        format!("<h1>{} is best on these pages: F1 {:.3} at ", winner["method"].as_str().unwrap(), best(winner));
    assert!(page.contains(&conclusion), "{conclusion}");
    assert!(page.contains(&format!("<td class=\"number best\">{:.3}</td>", best(winner))));
    let page = page.replace(" class=\"number best\"", "").replace(" class=\"number\"", "");
    methods_are_shown_as_they_were_counted(&page, &beside["methods"]);

    // 20 pairs of copies; with changed words 40 pairs at 111/121, with more words 16 at 116/136, and 6 at 111/141.
    let lead =
        "122 pages of pages.jsonl; 122 of them judged, 44 clusters of two or more, 82 pairs that belong together.";
    assert_in_order(
        &page,
        &[
            lead,
            "<td><b>minhash</b></td><td>similarity</td><td>0.787</td><td>1.000</td><td>1.000</td><td>1.000</td>",
            "<b>minhash: precision and recall against the threshold</b>",
            "<title>recall: 0.75, 1</title>",
            "<title>recall: 0.8, 0.927</title>",
            "<title>recall: 0.85, 0.927</title>",
            "<title>recall: 0.9, 0.732</title>",
            "<title>recall: 0.95, 0.244</title>",
            "<title>recall: 1, 0.244</title>",
            "The default is 0.7; F1 is best at 0.787.",
            // Of 102 different pages, 60 have one that is like them and 18 have two.
            "<b>How many near-duplicates a page has</b>",
            "<title>minhash: 1, 60</title>",
            "<title>minhash: 2, 18</title>",
            // 30 pairs differ in 2 words, 12 in 20, 6 in 22.
            "<b>Term differences of accepted pairs</b>",
            "<title>minhash (median 2, 0 of 48 at 200 or more): 0, 0.625</title>",
            "<title>minhash (median 2, 0 of 48 at 200 or more): 10, 0</title>",
            "<title>minhash (median 2, 0 of 48 at 200 or more): 20, 0.375</title>",
            "<h2>Precision by level of similarity</h2>",
            "<h3>minhash <span class=\"soft\">similarity</span></h3>",
            "<tr><td>copies</td><td>20</td><td>1.000</td><td>–</td><td>1.000 (20)</td></tr>",
            "<tr><td>0.9–1.0</td><td>40</td><td>1.000</td><td>–</td><td>1.000 (40)</td></tr>",
            "<tr><td>0.8–0.9</td><td>16</td><td>1.000</td><td>–</td><td>1.000 (16)</td></tr>",
            "<tr><td>0.7–0.8</td><td>6</td><td>1.000</td><td>–</td><td>1.000 (6)</td></tr>",
        ],
    );
    let ngrams = beside["experiments"]["ngrams"].as_array().unwrap();
    for (row, length) in ngrams.iter().filter(|row| row["method"] == "minhash").zip(1..) {
        assert_eq!(
            (&row["ngram"], &row["pairs"]["correct"], &row["pairs"]["wrong"]),
            (&length.into(), &82.into(), &0.into())
        );
    }
    assert_eq!(ngrams.len(), 16);
    // These words have no antecedents among them, so nothing collides. Of 122 pages, 62 are not the first of their topic, 44
    // topics have more than one page (106 pages), and every curve is the sum of three orders.
    let spots = &beside["experiments"]["spots"];
    let to_find = |name: &str| match name {
        name if name.starts_with("full") => 3 * 106,
        _ => 3 * 62,
    };
    let curves = ["matching", "by_chain", "antecedents", "distances"].map(|group| spots[group].as_array().unwrap());
    assert_eq!(curves.map(Vec::len), [6, 2, 2, 2]);
    for curve in curves.into_iter().flatten() {
        for point in curve["points"].as_array().unwrap() {
            let counts = ["correct", "wrong", "gold"].map(|key| point[1][key].as_u64().unwrap());
            assert_eq!(counts, [0, 0, to_find(curve["name"].as_str().unwrap())], "{}: {point}", curve["name"]);
        }
    }
    for cost in spots["costs"].as_array().unwrap() {
        assert!(cost["points"].as_array().unwrap().iter().all(|point| point["collisions"] == 0.0), "{cost}");
    }
    // All pages enter the index, 62 of them though their topic was there.
    for growth in spots["growth"].as_array().unwrap() {
        let batches: Vec<[f64; 4]> = serde_json::from_value(growth["batches"].clone()).unwrap();
        let sizes: Vec<[f64; 2]> = batches.iter().map(|batch| [batch[0], batch[1]]).collect();
        assert!(
            sizes.iter().flatten().zip([100.0, 100.0, 122.0, 122.0]).all(|(size, known)| (size - known).abs() < 1e-9)
        );
        assert!((batches.iter().map(|batch| batch[3]).sum::<f64>() - 62.0).abs() < 1e-9, "{batches:?}");
    }
}

/// Fails unless the rows and points of every method are those of the JSON beside the page, and these fit together.
fn methods_are_shown_as_they_were_counted(page: &str, methods: &Value) {
    let number = |value: f64| format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_owned();
    for row in methods.as_array().unwrap() {
        let name = row["method"].as_str().unwrap();
        let shares = |counts: &Value| {
            let [correct, wrong, gold] = ["correct", "wrong", "gold"].map(|key| counts[key].as_f64().unwrap());
            (correct / (correct + wrong), correct / gold, 2.0 * correct / (correct + wrong + gold))
        };
        let (precision, recall, f1) = shares(&row["pairs"]);
        let cells = format!(
            "<td><b>{name}</b></td><td>{}</td><td>{precision:.3}</td><td>{recall:.3}</td><td>{f1:.3}</td>",
            number(row["threshold"].as_f64().unwrap())
        );
        assert!(page.contains(&cells), "{cells}");
        let plot =
            page.split_once("<b>Precision against recall, all methods</b>").unwrap().1.split_once("</svg>").unwrap().0;
        let shown: Vec<&str> = plot
            .split("<title>")
            .filter_map(|title| title.strip_prefix(&format!("{name}: "))?.split('<').next())
            .collect();
        let sweep = row["sweep"].as_array().unwrap();
        let counted: Vec<String> = sweep
            .iter()
            .map(|cut| shares(&cut["pairs"]))
            .map(|(precision, recall, _)| format!("{}, {}", number(recall), number(precision)))
            .collect();
        assert_eq!(shown, counted, "{name}");
        // The default threshold is one among others.
        let at_default = sweep.iter().filter(|cut| cut["threshold"] == row["threshold"]);
        assert!(at_default.clone().all(|cut| cut["pairs"] == row["pairs"]), "{name}: {at_default:?}");
    }
}

#[test]
fn gold_that_makes_no_sense_is_refused_with_the_line() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    labelled(at);
    fs::write(at.join("two.tsv"), "t1\t1\nt2\t1\nt1\t2\n").unwrap();
    let two = evaluate(&["clusters", "--gold", "two.tsv", "pages.jsonl"], at);
    assert_eq!(two.code, 2);
    assert!(two.stderr.contains("two.tsv: line 3: 't1' is in cluster '2' here and in '1' in line 1"), "{}", two.stderr);
    fs::write(at.join("missing.tsv"), "t1\t1\nt2\t1\nnowhere\t1\n").unwrap();
    let missing = evaluate(&["clusters", "--gold", "missing.tsv", "pages.jsonl", "--method", "minhash"], at);
    assert_eq!(missing.code, 2);
    assert!(
        missing.stderr.contains("1 of the 3 judged pages") && missing.stderr.contains("line 3: nowhere"),
        "{}",
        missing.stderr
    );
    let allowed =
        evaluate(&["clusters", "--gold", "missing.tsv", "pages.jsonl", "--method", "minhash", "--allow-missing"], at);
    assert!(allowed.code == 0 && allowed.stdout.contains("1 judged page is not in the input"), "{}", allowed.stdout);
    let wrong = evaluate(&["clusters", "--gold", "gold.tsv", "pages.jsonl", "--method", "md5"], at);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("--method md5: must be one of minhash, shingle"),
        "{}",
        wrong.stderr
    );
    fs::write(at.join("bom.tsv"), "\u{feff}page\tcluster\r\nt0\tx\r\nt0-near\tx\r\n").unwrap();
    assert_eq!(evaluate(&["clusters", "--gold", "bom.tsv", "pages.jsonl", "--method", "minhash"], at).code, 0);
    fs::write(at.join("bytes.tsv"), b"t0\t1\nt\xff\t1\n").unwrap();
    let bytes = evaluate(&["clusters", "--gold", "bytes.tsv", "pages.jsonl"], at);
    assert!(bytes.code == 2 && bytes.stderr.contains("bytes.tsv: line 2: is not UTF-8"), "{}", bytes.stderr);
    fs::write(at.join("single.tsv"), "t0\t1\nt1\t2\n").unwrap();
    let single = evaluate(&["clusters", "--gold", "single.tsv", "pages.jsonl", "--method", "minhash"], at);
    assert!(single.code == 2 && single.stderr.contains("nothing to find"), "{}", single.stderr);
    let none = evaluate(&["clusters", "--gold", "none.tsv", "pages.jsonl"], at);
    assert!(none.stderr.contains("none.tsv: no such file"), "{}", none.stderr);
}

#[test]
fn gold_pairs_and_found_clusters() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    labelled(at);
    fs::write(at.join("pairs.tsv"), "left\tright\tlabel\nt0\tt0-copy\t2\nt0\tt1\t0\nt2\tt2-near\t1\nt7\tt9\t1\n")
        .unwrap();
    let found =
        json(&evaluate(&["clusters", "--gold", "pairs.tsv", "pages.jsonl", "--method", "minhash", "--json"], at));
    let row = &found["methods"][0];
    assert_eq!(
        (&row["pairs"]["correct"], &row["pairs"]["wrong"], &row["pairs"]["gold"]),
        (&2.into(), &0.into(), &3.into())
    );
    assert!(row["clusters"].is_null(), "pairs are not clusters");

    assert_eq!(dedup(&[&at.join("pages.jsonl")], &at.join("out"), &[]).code, 0);
    let ours = json(&evaluate(&["clusters", "--gold", "gold.tsv", "--found", "out", "--json"], at));
    assert_eq!(ours["clusters"]["adjusted_rand"], 1.0);
    fs::write(at.join("theirs.jsonl"), "{\"id\": \"t0\", \"cluster\": \"x\"}\n").unwrap();
    let theirs = evaluate(&["clusters", "--gold", "gold.tsv", "--found", "theirs.jsonl"], at);
    assert!(theirs.code == 2 && theirs.stderr.contains("are in no found cluster"), "{}", theirs.stderr);
}

#[test]
fn pairs_of_texts() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let documents = documents();
    let text = |id: &str| documents.iter().find(|document| document.id == id).unwrap().text.clone();
    let line = |a: &str, b: &str, label: u32| {
        serde_json::json!({"text_a": text(a), "text_b": text(b), "label": label, "theirs": label}).to_string()
    };
    let lines = [line("t0", "t0-near", 2), line("t0", "t0-copy", 3), line("t0", "t1", 0), line("t2", "t9", 0)];
    fs::write(at.join("pairs.jsonl"), lines.join("\n")).unwrap();
    let found = json(&evaluate(&["pairs", "pairs.jsonl", "--score-field", "theirs", "--json"], at));
    let rows = found["methods"].as_array().unwrap();
    assert_eq!((&found["pairs"], &found["positive"]), (&4.into(), &2.into()));
    // A changed word in 120 leaves no supershingle, and there are no antecedents here.
    let is_wordy = |row: &&Value| !["spotsigs", "shingle", "bloom"].contains(&row["method"].as_str().unwrap());
    assert!(rows.iter().filter(is_wordy).all(|row| row["ranked"]["area"] == 1.0), "{rows:?}");
    assert_eq!(rows[0]["method"], "theirs");
    fs::write(at.join("bad.jsonl"), format!("{}\n{{\"text_a\": \"x\"}}\n", lines[0])).unwrap();
    let bad = evaluate(&["pairs", "bad.jsonl"], at);
    assert!(
        bad.code == 2 && bad.stderr.contains("bad.jsonl: line 2: has no text in the field 'text_b'"),
        "{}",
        bad.stderr
    );
    let one_kind = evaluate(&["pairs", "pairs.jsonl", "--positive", "9"], at);
    assert!(one_kind.stderr.contains("0 of 4 pairs have this grade or more"), "{}", one_kind.stderr);
}

#[test]
fn one_page_is_compared_with_all_others() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    labelled(at);
    let ran = evaluate(&["page", "t0", "pages.jsonl", "--top", "5", "--report", "one.html"], at);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rows: Vec<&str> = ran.stdout.lines().filter(|line| line.trim_start().starts_with(char::is_numeric)).collect();
    assert!(rows[0].starts_with("121 pages compared with t0: "), "{}", ran.stdout);
    assert!(rows[1].contains("  copy ") && rows[1].ends_with("t0-copy"), "{}", ran.stdout);
    assert_eq!(rows.len(), 1 + 5 + 1, "title, pages, what is left out: {}", ran.stdout);
    assert!(ran.stdout.contains("116 pages are farther away"), "{}", ran.stdout);
    let page = fs::read_to_string(at.join("one.html")).unwrap();
    assert!(page.contains("Pages by nearness to t0") && page.matches("<svg class=\"wide\"").count() == 1);
    assert!(fs::read_to_string(at.join("one.csv")).unwrap().lines().count() > 4 * 121);

    let found = json(&evaluate(&["page", "t0", "pages.jsonl", "--json"], at));
    let beside: Value = serde_json::from_slice(&fs::read(at.join("one.json")).unwrap()).unwrap();
    assert_eq!(found, beside);
    let others = found["others"].as_array().unwrap();
    assert_eq!((others.len(), &others[0]["id"]), (121, &"t0-copy".into()));
    let scores: Vec<f64> = others[1..].iter().map(|other| other["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    let minhash = json(&evaluate(&["page", "t0", "pages.jsonl", "--json", "--method", "minhash"], at));
    let near = minhash["others"].as_array().unwrap().iter().filter(|other| other["near_duplicate"] == true);
    let near: Vec<&str> = near.map(|other| other["id"].as_str().unwrap()).collect();
    assert_eq!(near, ["t0-copy", "t0-near", "t0-long"]);

    // A file of the input, by its path.
    let bees = newsroom().join("daily-ledger/bees.html");
    let ran = run(lookalike().args(["evaluate", "page", "--json"]).arg(&bees).arg(newsroom()));
    let found = json(&ran);
    assert_eq!(found["others"].as_array().map(Vec::len), Some(77), "all but itself");
    assert!(found["others"][0]["id"].as_str().unwrap().ends_with("bees.html"), "{}", found["others"][0]);

    let nobody = evaluate(&["page", "t99", "pages.jsonl"], at);
    assert!(nobody.code == 2 && nobody.stderr.contains("t99: is neither the id or URL"), "{}", nobody.stderr);
    let over = evaluate(&["page", "t0", "pages.jsonl", "--report", "pages.jsonl"], at);
    assert!(over.code == 2 && over.stderr.contains("pages.jsonl: is an input"), "{}", over.stderr);
}

#[test]
fn a_person_judges_a_result() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    assert_eq!(dedup(&[&newsroom()], &at.join("out"), &["--url-field", "url"]).code, 0);
    let sample = evaluate(&["audit", "out", "--page", "audit.html", "--sample", "30"], at);
    assert_eq!(sample.code, 0, "{}", sample.stderr);
    let page = fs::read_to_string(at.join("audit.html")).unwrap();
    let again = evaluate(&["audit", "out", "--page", "again.html", "--sample", "30"], at);
    assert_eq!((again.code, fs::read_to_string(at.join("again.html")).unwrap()), (0, page.clone()), "the same sample");
    assert_eq!(evaluate(&["audit", "out", "--sample", "30"], at).code, 0);
    assert_eq!(
        fs::read_to_string(at.join("out/audit.html")).unwrap(),
        page,
        "beside the result, if nothing else is said"
    );
    let mut pairs = Vec::new();
    for section in page.split("<section ").skip(1) {
        let attribute = |name: &str| section.split(&format!("{name}=\"")).nth(1).unwrap().split('"').next().unwrap();
        pairs.push((attribute("data-left").to_owned(), attribute("data-right").to_owned()));
    }
    assert_eq!(pairs.len(), 30);
    assert!(!page.contains("detected difference"), "nothing that primes whoever judges");
    // Whoever judges calls everything of the same name the same story.
    let name = |id: &str| id.rsplit('/').next().unwrap().to_owned();
    let lines: Vec<String> = pairs
        .iter()
        .enumerate()
        .map(|(number, (left, right))| {
            let verdict = if number == 0 {
                "undecided"
            } else if name(left) == name(right) {
                "correct"
            } else {
                "incorrect"
            };
            serde_json::json!({"left": left, "right": right, "verdict": verdict, "reason": "form"}).to_string()
        })
        .collect();
    fs::write(at.join("judgments.jsonl"), lines.join("\n")).unwrap();
    let said = evaluate(&["audit", "out", "--judgments", "judgments.jsonl", "--target", "0.5"], at);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(
        said.stdout.contains("precision of the near-duplicates:")
            && said.stdout.contains("Why they are unsure")
            && said.stdout.lines().any(|line| line.split_whitespace().collect::<Vec<_>>()
                == ["form", "0", "/", "0", "/", "1", "0", "/", "0", "/", "0"]),
        "{}",
        said.stdout
    );
    let found = json(&evaluate(&["audit", "out", "--judgments", "judgments.jsonl", "--target", "0.5", "--json"], at));
    let strata = found["strata"].as_array().unwrap();
    let judged: u64 = strata
        .iter()
        .map(|row| ["correct", "incorrect", "undecided"].map(|key| row[key].as_u64().unwrap()).iter().sum::<u64>())
        .sum();
    assert_eq!(judged, 30);
    assert!(strata.iter().all(|row| {
        let (low, high) = (row["interval"][0].as_f64().unwrap(), row["interval"][1].as_f64().unwrap());
        (low..=high).contains(&row["precision"].as_f64().unwrap())
    }));
    assert!(found["suggestion"]["threshold"].as_f64().is_some(), "{found}");

    fs::write(
        at.join("wrong.jsonl"),
        format!("{}\n{{\"left\": \"a\", \"right\": \"b\", \"verdict\": \"correct\"}}\n", lines[0]),
    )
    .unwrap();
    let wrong = evaluate(&["audit", "out", "--judgments", "wrong.jsonl"], at);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("wrong.jsonl: line 2: the result has no page 'a'"),
        "{}",
        wrong.stderr
    );
    fs::write(at.join("wrong.jsonl"), "{\"left\": \"a\", \"right\": \"b\", \"verdict\": \"perhaps\"}\n").unwrap();
    let wrong = evaluate(&["audit", "out", "--judgments", "wrong.jsonl"], at);
    assert!(wrong.stderr.contains("line 1: is not a judgment"), "{}", wrong.stderr);
    let (first, other) =
        (&lines[1], lines[1].replace("\"correct\"", "\"undecided\"").replace("\"incorrect\"", "\"undecided\""));
    fs::write(at.join("wrong.jsonl"), format!("{first}\n{other}\n")).unwrap();
    let wrong = evaluate(&["audit", "out", "--judgments", "wrong.jsonl"], at);
    assert!(
        wrong.stderr.contains("line 2:") && wrong.stderr.contains("were judged differently in line 1"),
        "{}",
        wrong.stderr
    );
    let no_result = evaluate(&["audit", ".", "--page", "x.html"], at);
    assert!(
        no_result.code == 1 && no_result.stderr.contains("is not a complete lookalike result"),
        "{}",
        no_result.stderr
    );
}
