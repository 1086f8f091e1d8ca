//! A run that is to stop does so the next time it looks, and it looks often: counted, not timed.
#![allow(clippy::unwrap_used)] // in a test, failing is the point

use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;

use lookalike::{Config, Error, Method, Observer, RunOptions, Stage, dedup};

/// Says that the run is to stop when it is asked for the `last`th time, and counts how often each stage asks.
struct Watch {
    last: usize,
    asked: Mutex<(usize, Vec<(Stage, usize)>)>,
}

impl Watch {
    fn until(last: usize) -> Watch {
        Watch { last, asked: Mutex::default() }
    }
}

impl Observer for Watch {
    fn start(&self, stage: Stage, _: u64) {
        self.asked.lock().unwrap().1.push((stage, 0));
    }

    fn is_cancelled(&self) -> bool {
        let mut asked = self.asked.lock().unwrap();
        asked.0 += 1;
        asked.1.last_mut().into_iter().for_each(|stage| stage.1 += 1);
        asked.0 >= self.last
    }
}

const TOPICS: usize = 3000;

/// Topics of three pages each, of which every two are near-duplicates.
fn corpus(path: &Path) {
    let mut lines = String::new();
    for page in 0..3 * TOPICS {
        let (topic, copy) = (page / 3, page % 3);
        let words: Vec<String> = (0..60).map(|word| format!("the t{topic}w{word} of")).collect();
        writeln!(lines, r#"{{"id": {page}, "text": "{} copy{copy}"}}"#, words.join(" ")).unwrap();
    }
    std::fs::write(path, lines).unwrap();
}

fn name_and_matching(method: &str) -> (&str, &str) {
    method.split_once(' ').unwrap_or((method, "full"))
}

fn run(method: &str, input: &Path, output: &Path, watch: &Watch) -> Result<(), Error> {
    let (name, matching) = name_and_matching(method);
    let mut chosen = Method::named(name).unwrap();
    if name == "spotsigs" {
        chosen.set("matching", matching).unwrap();
    }
    let config = Config::new(chosen);
    let mut options = RunOptions::new([input.to_string_lossy().into_owned()], output);
    options.threads = 1;
    options.outputs.annotate = true;
    dedup(&config, &options, watch).map(drop)
}

#[test]
fn every_stage_asks_often_and_ends_when_it_is_told_to() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("pages.jsonl");
    corpus(&input);
    let batches = std::fs::metadata(&input).unwrap().len() >> 20;
    for method in ["minhash", "simhash", "spotsigs", "spotsigs incremental"] {
        let matching = name_and_matching(method).1;
        let watch = Watch::until(usize::MAX);
        run(method, &input, &root.path().join("whole"), &watch).unwrap();
        std::fs::remove_dir_all(root.path().join("whole")).unwrap();
        let (all, stages) = watch.asked.into_inner().unwrap();
        // Once between stages, and once in a megabyte, in so many pairs or rows.
        let asked = |stage: Stage| stages.iter().filter(|row| row.0 == stage).map(|row| row.1).sum::<usize>();
        assert!(asked(Stage::Read) as u64 >= batches, "{method}: {stages:?}");
        // Pages that are matched in their order are found while they are compared.
        assert!(asked(Stage::Candidates) >= if matching == "full" { 2 } else { 1 }, "{method}: {stages:?}");
        let pairs = if matching == "full" { 3 * TOPICS } else { 2 * TOPICS };
        assert!(asked(Stage::Verify) >= pairs / 512, "{method}: {stages:?}");
        // Two tables of all pages, and one of their pairs; the kept and the annotated records.
        assert!(asked(Stage::Write) >= 3 * (3 * TOPICS / 4096) + 4, "{method}: {stages:?}");
        for last in (1..=all).step_by(1 + all / 12).chain([all]) {
            let (watch, output) = (Watch::until(last), root.path().join("stopped"));
            assert!(matches!(run(method, &input, &output, &watch), Err(Error::Cancelled)), "{method}: {last} of {all}");
            // Of the four lists of outputs, the other three may ask once more.
            let (asked, stages) = watch.asked.into_inner().unwrap();
            assert!(asked <= last + 3, "{method}: {asked} for {last} of {all} in {stages:?}");
            assert!(!output.exists(), "{method}: nothing half-written is left");
        }
    }
}
