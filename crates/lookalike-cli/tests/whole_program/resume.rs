//! Runs that were killed go on, and large files are read in several places at once, with the same bytes in
//! the end.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{contents, dedup, dedup_once, documents, lookalike, sentence, summary, table, write_jsonl};
use crate::crawl::{gzip, record, response};

/// A page that hardly compresses, about a topic.
fn large_response(topic: usize, number: usize) -> Vec<u8> {
    let mut state = number as u64 + 1;
    let noise: String = (0..60_000)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b'!' + u8::try_from(state % 90).unwrap_or(0))
        })
        .map(|c| if c == '-' { '+' } else { c })
        .collect();
    let page = format!("<html><p>{}</p><!-- {noise} --></html>", sentence(topic, 80));
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{page}").into_bytes()
}

/// An archive of more than two units, with archives inside it that look like members of it.
fn large_archive(path: &Path) {
    let mut file = Vec::new();
    for number in 0..1500 {
        let url = format!("http://a.example/{number}");
        let id = format!("p{number}");
        file.extend(gzip(&record("response", &id, &url, "", &large_response(number % 1000, number))));
        if number % 50 == 0 {
            // Compressed bytes are stored as they are: the members of this stand in the file in plain sight.
            let inner: Vec<u8> = (0..30)
                .flat_map(|n| gzip(&record("response", &format!("inner{n}"), &url, "", &large_response(5000 + n, n))))
                .collect();
            let block = [&b"HTTP/1.1 200 OK\r\nContent-Type: application/gzip\r\n\r\n"[..], &inner].concat();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
            std::io::Write::write_all(&mut encoder, &record("response", &format!("a{number}"), &url, "", &block))
                .unwrap();
            file.extend(encoder.finish().unwrap());
        }
    }
    assert!(file.len() > 80 << 20, "{}", file.len());
    fs::write(path, file).unwrap();
}

#[test]
fn a_large_archive_is_read_in_several_places_at_once_with_the_same_result() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("large.warc.gz");
    large_archive(&path);
    let outputs = ["1", "3"].map(|threads| {
        let output = root.path().join(format!("out-{threads}"));
        let ran = dedup(&[&path], &output, &["--threads", threads]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        output
    });
    let rows = table(&outputs[0].join("pages.parquet"));
    assert_eq!(rows.len(), 1500, "none of the archives inside is taken for a part of this one");
    // Every record has the number that it has in the file.
    let mut expected = 0;
    for (number, row) in rows.iter().enumerate() {
        expected += 1;
        assert_eq!(
            (row["id"].as_str(), row["record"].as_str()),
            (&*format!("urn:uuid:p{number}"), &*expected.to_string())
        );
        expected += usize::from(number % 50 == 0);
    }
    assert_eq!(summary(&outputs[0])["other_records"]["other_type"], 30);
    assert!(contents(&outputs[0]) == contents(&outputs[1]));
}

#[test]
fn a_run_that_failed_goes_on_with_what_it_has_read() {
    let root = tempfile::tempdir().unwrap();
    let inputs = root.path().join("in");
    fs::create_dir(&inputs).unwrap();
    // Units of 32 MiB: one of small files, three of large ones, the last of which has a bad line.
    write_jsonl(&inputs.join("a.jsonl"), &documents());
    for (name, first) in [("b.jsonl", ""), ("c.jsonl", ""), ("d.jsonl", "not JSON\n")] {
        let filler = "x".repeat(34 << 20);
        let text = sentence(7, 120);
        let line = format!("{{\"id\": \"{name}\", \"text\": \"{text}\", \"other\": \"{filler}\"}}\n");
        fs::write(inputs.join(name), first.to_owned() + &line).unwrap();
    }
    let whole = root.path().join("whole");
    assert_eq!(dedup(&[&inputs], &whole, &[]).code, 3);

    let output = root.path().join("out");
    let ran = dedup(&[&inputs], &output, &["--strict", "--threads", "1"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("--resume"), "{}", ran.stderr);
    let work = output.join(".lookalike-work");
    assert!(work.join("read-key").exists() && work.join("read-0002").exists());
    assert!(!output.join("summary.json").exists());
    // Another job does not take them for its own.
    let other = dedup(&[&inputs], &output, &["--resume", "--threshold", "0.9"]);
    assert_eq!(other.code, 2);
    assert!(other.stderr.contains("another job"), "{}", other.stderr);

    // A unit that is not whole is read again.
    let part = work.join("read-0001");
    let bytes = fs::read(&part).unwrap();
    fs::write(&part, &bytes[..bytes.len() - 3]).unwrap();
    let resumed = dedup(&[&inputs], &output, &["--resume"]);
    assert_eq!(resumed.code, 3, "{}", resumed.stderr);
    assert!(contents(&output) == contents(&whole));
    assert!(!work.exists());
    // With nothing to go on with, it is a run like any other; a result that is complete needs none.
    assert_eq!(dedup(&[&inputs], &root.path().join("new"), &["--resume"]).code, 3);
    assert!(contents(&root.path().join("new")) == contents(&whole));
    let written = fs::metadata(output.join("summary.json")).unwrap().modified().unwrap();
    let complete = dedup_once(&[&inputs], &output, &["--resume"]);
    assert_eq!((complete.code, complete.stderr.contains("nothing to resume")), (0, true), "{}", complete.stderr);
    assert_eq!(fs::metadata(output.join("summary.json")).unwrap().modified().unwrap(), written);
}

/// How long a run may take to read its first files: far more than it does on a slow machine.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Starts a run that cannot come to its end, as the file of its third unit is a pipe without another end, and sends it a
/// signal when it is at its second.
fn stopped_in_the_middle(inputs: &Path, output: &Path, signal: &str) -> Output {
    let work = output.join(".lookalike-work");
    fs::create_dir_all(&work).unwrap();
    let pipe = work.join("read-0002");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = lookalike();
    command.arg("dedup").arg(inputs).arg("--output").arg(output).args(["-q", "--resume", "--threads", "1"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    let is_at_second = || work.join("read-0001").exists();
    while !is_at_second() && child.try_wait().unwrap().is_none() && started.elapsed() < LONGEST_WAIT {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(is_at_second());
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    fs::remove_file(&pipe).unwrap();
    ended
}

/// Four archives, each of which is a unit. The page of the first is like no other, so that it is read only once.
fn four_units(inputs: &Path) {
    fs::create_dir(inputs).unwrap();
    for (number, topic) in [9, 1, 2, 1].into_iter().enumerate() {
        let filler = "y".repeat(33 << 20);
        let page = record("response", &format!("big{number}"), "http://a.example/", "", &response(topic, 200));
        let other = record("resource", "filler", "metadata:x", "", filler.as_bytes());
        fs::write(inputs.join(format!("{number}.warc")), [page, other].concat()).unwrap();
    }
}

#[test]
fn whoever_interrupts_a_run_learns_how_to_go_on() {
    let root = tempfile::tempdir().unwrap();
    let (inputs, output) = (root.path().join("in"), root.path().join("out"));
    four_units(&inputs);
    let ended = stopped_in_the_middle(&inputs, &output, "-INT");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted; what was read so far is in"), "{said}");
    assert!(said.contains("run the same command with --resume to continue"), "{said}");
    assert_eq!(dedup_once(&[&inputs], &output, &["--resume"]).code, 0);
}

#[test]
fn a_killed_run_goes_on() {
    let root = tempfile::tempdir().unwrap();
    let inputs = root.path().join("in");
    four_units(&inputs);
    let whole = root.path().join("whole");
    assert_eq!(dedup(&[&inputs], &whole, &[]).code, 0);

    let output = root.path().join("out");
    let work = output.join(".lookalike-work");
    let killed = stopped_in_the_middle(&inputs, &output, "-KILL");
    assert_eq!(killed.status.signal(), Some(9), "{killed:?}");
    assert!(!output.join("summary.json").exists() && !output.join("kept").exists());

    let again = root.path().join("again");
    fs::create_dir_all(again.join(".lookalike-work")).unwrap();
    for name in ["read-key", "read-0000"] {
        fs::copy(work.join(name), again.join(".lookalike-work").join(name)).unwrap();
    }
    assert_eq!(dedup(&[&inputs], &output, &["--resume"]).code, 0);
    assert!(contents(&output) == contents(&whole));

    // What was read is not read again: other words in the first file, which nothing about it tells, are not seen.
    let first = inputs.join("0.warc");
    let modified = fs::metadata(&first).unwrap().modified().unwrap();
    let words = fs::read(&first).unwrap().into_iter().map(|byte| if byte == b'w' { b'v' } else { byte });
    fs::write(&first, words.collect::<Vec<u8>>()).unwrap();
    File::options().append(true).open(&first).unwrap().set_modified(modified).unwrap();
    let pages = |output: &Path| table(&output.join("pages.parquet"));
    assert_eq!(dedup(&[&inputs], &again, &["--resume"]).code, 0);
    assert_eq!(pages(&again), pages(&whole));
    assert_eq!(dedup(&[&inputs], &again, &[]).code, 0);
    assert_ne!(pages(&again), pages(&whole), "they are seen where the file is read");
}
