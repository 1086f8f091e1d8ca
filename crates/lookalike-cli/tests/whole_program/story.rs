//! `--content story`: pages are compared without what their site puts around them.

use std::fs;
use std::path::Path;

use crate::common::{contents, dedup, fates, lookalike, run, sentence, summary, table};

/// Words of a story.
const STORY_WORDS: usize = 60;

/// A page: a story in a frame that is much longer.
fn page(site: &str, paragraphs: &[String]) -> String {
    let menu: String = (0..60).map(|n| format!("<li><a href=/{n}>{site} topic {n} and more</a>")).collect();
    let notice = sentence(site.bytes().map(usize::from).sum(), 120);
    format!(
        "<html><head><title>{site}</title></head><body class='{site}'><div class='{site}-head'>{site} daily</div>\
         <div class='{site}-links'><ul>{menu}</ul></div><div class='{site}-text'>{}</div>\
         <div class='{site}-low'><p>{notice}</div></body></html>",
        paragraphs.iter().map(|text| format!("<p>{text}</p>")).collect::<String>()
    )
}

fn story(number: usize) -> Vec<String> {
    (0..3).map(|part| sentence(number * 10 + part, STORY_WORDS / 3)).collect()
}

/// Two sites with different stories; the story number 1 is on both, and twice on the first.
fn write_sites(at: &Path) {
    fs::create_dir_all(at).unwrap();
    for number in 0..8 {
        fs::write(at.join(format!("lamp-{number}.html")), page("lamp", &story(number))).unwrap();
        fs::write(at.join(format!("tide-{number}.html")), page("tide", &story(number + 100))).unwrap();
    }
    let mut edited = story(1);
    edited.push("Photo by a reader of this page.".to_owned());
    fs::write(at.join("lamp-copy.html"), page("lamp", &edited)).unwrap();
    fs::write(at.join("tide-copy.html"), page("tide", &story(1))).unwrap();
    fs::write(at.join("lamp-stub.html"), page("lamp", &["Nothing was found here.".to_owned()])).unwrap();
    fs::write(at.join("lamp-stub-2.html"), page("lamp", &["Please log in to read on.".to_owned()])).unwrap();
}

#[test]
fn pages_are_dropped_for_their_story_and_not_for_their_frame() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("pages"), root.path().join("out"));
    write_sites(&input);
    // Whole pages are all alike on each site.
    assert_eq!(dedup(&[&input], &output, &["--content", "page"]).code, 0);
    assert!(summary(&output)["dropped"].as_u64().unwrap() > 10);

    let ran = dedup(&[&input], &output, &["--content", "story"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let fates = fates(&output);
    let dropped: Vec<&str> = fates.iter().filter(|(id, fate)| **id != fate.1).map(|(id, _)| id.as_str()).collect();
    assert_eq!(dropped, ["lamp-copy.html", "tide-copy.html"].map(|name| fates.get_key_value(name).unwrap().0.as_str()));
    assert!(dropped.iter().all(|name| fates[*name].1 == "lamp-1.html"), "{fates:?}");
    assert_eq!(fates["lamp-stub.html"].0, "short", "a stub is compared by its few words");
    assert_eq!(summary(&output)["compared"]["story"], 20);
    let frames = table(&output.join("frames.parquet"));
    let notice = frames
        .iter()
        .find(|row| row["example"].starts_with(&sentence("lamp".bytes().map(usize::from).sum(), 5)))
        .unwrap();
    assert_eq!((notice["pages"].as_str(), notice["site"].as_str()), ("11", ""), "{notice:?}");
    assert!(notice["contexts"].parse::<u32>().unwrap() >= 8, "{notice:?}");
    assert!(!frames.iter().any(|row| row["example"].starts_with(&sentence(10, 5))), "no story is frame");
}

#[test]
fn what_is_learnt_is_the_same_every_time_and_found_again() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    write_sites(&at("pages"));
    let story = |output: &str, threads: &str| {
        let ran = dedup(&[&at("pages")], &at(output), &["--content", "story", "--threads", threads, "--jsonl"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    };
    story("one", "1");
    story("four", "4");
    assert_eq!(contents(&at("one")), contents(&at("four")));
    // Commands on the result read its pages as that run did.
    let out = at("one").to_string_lossy().into_owned();
    let ran = run(lookalike().args(["compare", "lamp-1.html", "tide-copy.html", "--in", &out]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = run(lookalike().args(["recluster", &out, "--threshold", "0.99", "--output"]).arg(at("strict")));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(summary(&at("strict"))["dropped"], 2, "the thresholds for stories follow");
    let ran =
        run(lookalike().args(["recluster", &out, "--within-site", "0.99", "--replace", "--output"]).arg(at("strict")));
    assert_eq!((ran.code, summary(&at("strict"))["dropped"].as_u64()), (0, Some(1)), "the edited copy stays");
    let ran = run(lookalike().args(["recluster", &out, "--within-site", "0.3"]));
    assert!(ran.code == 2 && ran.stderr.contains("--within-site 0.3: is below 0.5"), "{}", ran.stderr);
    let ran = run(lookalike().args(["recluster", &out]));
    assert!(ran.code == 2 && ran.stderr.contains("--threshold: is missing"), "{}", ran.stderr);
    assert!(at("strict").join("frames.parquet").exists());
    let chains = ["--cluster", "components", "--threshold", "0.75", "--output"];
    let ran = run(lookalike().args(["recluster", &out]).args(chains).arg(at("chains")));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = run(lookalike().args(["evaluate", "audit", &out]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // What another result has is dropped, whatever was learnt there.
    fs::create_dir(at("more")).unwrap();
    fs::copy(at("pages").join("lamp-3.html"), at("more").join("again.html")).unwrap();
    let ran = dedup(&[&at("more")], &at("rest"), &["--content", "story", "--against", &out]);
    assert_eq!((ran.code, summary(&at("rest"))["dropped"].as_u64()), (0, Some(1)), "{}", ran.stderr);
    fs::write(at("one").join("frames.parquet"), "damage").unwrap();
    let ran = run(lookalike().args(["compare", "lamp-1.html", "tide-copy.html", "--in", &out]));
    assert!(ran.code == 1 && ran.stderr.contains("frames.parquet: cannot be read"), "{}", ran.stderr);
}

#[test]
fn the_thresholds_for_stories_follow_the_one_that_is_given() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("pages"), root.path().join("out"));
    write_sites(&input);
    let ran = dedup(&[&input], &output, &["--content", "story", "--threshold", "0.84"]);
    assert_eq!((ran.code, summary(&output)["dropped"].as_u64()), (0, Some(2)), "{}", ran.stderr);
    let method = summary(&output)["config"]["method"].clone();
    assert_eq!((method["within_site"].as_f64(), method["between_sites"].as_f64()), (Some(0.6), Some(0.48)));
    let ran = dedup(&[&input], &output, &["--content", "story", "--within-site", "0.99"]);
    assert_eq!((ran.code, summary(&output)["dropped"].as_u64()), (0, Some(1)), "the edited copy stays: {}", ran.stderr);
}

#[test]
fn a_stricter_threshold_is_the_same_for_short_stories_afterwards() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    write_sites(&at("pages"));
    // 56 5-grams of 71: enough for a story of a few words at 0.6, but not at 0.6 · 0.95 / 0.7.
    let mut longer = story(2);
    longer.push(sentence(99, 15));
    fs::write(at("pages").join("lamp-longer.html"), page("lamp", &longer)).unwrap();
    assert_eq!(dedup(&[&at("pages")], &at("out"), &["--content", "story"]).code, 0);
    assert_eq!(fates(&at("out"))["lamp-longer.html"].1, "lamp-2.html");
    assert_eq!(dedup(&[&at("pages")], &at("strict"), &["--content", "story", "--threshold", "0.95"]).code, 0);
    assert_eq!(fates(&at("strict"))["lamp-longer.html"].1, "lamp-longer.html");
    let ran =
        run(lookalike().arg("recluster").arg(at("out")).args(["--threshold", "0.95", "--output"]).arg(at("again")));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(fates(&at("again")), fates(&at("strict")));
}

#[test]
fn an_index_carries_its_frames() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    write_sites(&at("pages"));
    let index = |arguments: &[&str]| run(lookalike().arg("index").args(arguments).current_dir(root.path()));
    let ran = index(&["build", "seen", "pages"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let frames: Vec<String> = fs::read_dir(at("seen"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("frames-"))
        .collect();
    assert_eq!(frames.len(), 1, "{frames:?}");
    // A page in another frame is found by its story.
    let ran = index(&["query", "seen", "--page", "pages/tide-copy.html"]);
    assert!(ran.code == 0 && ran.stdout.contains("lamp-1.html"), "{} {}", ran.stdout, ran.stderr);
    // Pages that are held against it are read without the same frames.
    fs::create_dir(at("more")).unwrap();
    fs::copy(at("pages/tide-copy.html"), at("more/again.html")).unwrap();
    let ran = dedup(&[&at("more")], &at("rest"), &["--method", "simhash", "--against", &at("seen").to_string_lossy()]);
    assert_eq!((ran.code, summary(&at("rest"))["dropped"].as_u64()), (0, Some(1)), "{}", ran.stderr);
    // Without its frames it is not what it was.
    let path = at("seen").join(&frames[0]);
    let lines = fs::read_to_string(&path).unwrap();
    fs::write(&path, lines.replacen("lamp", "lamb", 1)).unwrap();
    let ran = index(&["stats", "seen"]);
    assert!(ran.code == 1 && ran.stderr.contains("is not what it was when it was written"), "{}", ran.stderr);
}

#[test]
fn judgments_are_carried_by_stories() {
    let root = tempfile::tempdir().unwrap();
    write_sites(&root.path().join("pages"));
    fs::write(root.path().join("qrels.txt"), "1 0 lamp-1.html 1\n").unwrap();
    let transfer = ["transfer", "--qrels", "qrels.txt", "--from", "pages", "--to", "pages", "--output", "moved"];
    let ran = run(lookalike().args(transfer).current_dir(root.path()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_page_is_shown_as_it_is_compared() {
    let root = tempfile::tempdir().unwrap();
    write_sites(&root.path().join("pages"));
    let ran = dedup(&[&root.path().join("pages")], &root.path().join("out"), &["--content", "story"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = |arguments: &[&str]| {
        let ran = run(lookalike().arg("text").args(arguments).current_dir(root.path()));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    let shown = text(&["lamp-3.html", "--in", "out"]);
    assert!(shown.contains("frame       11  lamp daily\n"), "{shown}");
    assert!(shown.contains(&format!("compared        {}", story(3)[0])), "{shown}");
    assert_eq!(text(&["lamp-3.html", "--in", "out", "--plain"]), story(3).join("\n") + "\n");
    let first: serde_json::Value =
        serde_json::from_str(text(&["lamp-3.html", "--in", "out", "--json"]).lines().next().unwrap()).unwrap();
    assert_eq!((first["page"].as_str(), first["part"].as_str()), (Some("lamp-3.html"), Some("frame")), "{first}");
    // A file by itself: nothing was learnt about it.
    let whole = text(&["pages/lamp-3.html", "--content", "page", "--plain"]);
    assert!(whole.starts_with("lamp\nlamp daily\n") && whole.contains(&story(3)[2]), "{whole}");
    let two = text(&["lamp-3.html", "lamp-stub.html", "--in", "out"]);
    assert!(two.starts_with("lamp-3.html\n") && two.contains("\n\nlamp-stub.html\n"), "{two}");
    let ran = run(lookalike().args(["text", "nobody", "--in", "out"]).current_dir(root.path()));
    assert!(ran.code == 2 && ran.stderr.contains("out: no page has the id or URL 'nobody'"), "{}", ran.stderr);
}

#[test]
fn the_similarity_of_whole_pages_is_the_same_in_every_command() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    write_sites(&at("pages"));
    // Pictures of their own on every page.
    for (number, entry) in fs::read_dir(at("pages")).unwrap().enumerate() {
        let path = entry.unwrap().path();
        let images: String = (0..9).map(|image| format!("<img src='own-{number}-{image}.png'>")).collect();
        let html = fs::read_to_string(&path).unwrap().replace("</body>", &format!("{images}</body>"));
        fs::write(&path, html).unwrap();
    }
    assert_eq!(dedup(&[&at("pages")], &at("out"), &[]).code, 0);
    let out = at("out").to_string_lossy().into_owned();
    let ran = run(lookalike().args(["recluster", &out, "--keep", "longest", "--output"]).arg(at("longest")));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let pairs = table(&at("out").join("pairs.parquet"));
    let rows = table(&at("longest").join("clusters.parquet"));
    let mut compared = 0;
    for row in rows.iter().filter(|row| row["kind"] == "near") {
        let (id, kept) = (&row["id"], &row["kept_id"]);
        let is_pair = |pair: &&std::collections::BTreeMap<String, String>| {
            [&pair["left"], &pair["right"]] == [id, kept] || [&pair["left"], &pair["right"]] == [kept, id]
        };
        let Some(pair) = pairs.iter().find(is_pair) else { continue };
        assert_eq!(row["page_similarity"], pair["page_similarity"], "{id} and {kept}");
        let ran = run(lookalike().args(["compare", id, kept, "--in", &out]));
        let similarity: f64 = pair["page_similarity"].parse().unwrap();
        assert!(ran.stdout.contains(&format!("{similarity:.4}")), "{similarity}: {}", ran.stdout);
        compared += 1;
    }
    assert!(compared > 0, "{rows:?}");
}
