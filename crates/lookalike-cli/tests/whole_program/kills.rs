//! Runs that are killed or interrupted anywhere, or whose disk fills, go on with the same bytes in the end. Where a run
//! is stopped is counted in its system calls, so that no clock decides.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{Ran, contents, dedup_once, lookalike, run, sentence};
use crate::crawl::record;

/// What changes something on disk.
const CALLS: [&str; 7] = ["write", "openat", "rename", "unlink", "mkdir", "copy_file_range", "ftruncate"];
/// Writes one after the other that are looked at.
const MOST_WRITES: usize = 6;
/// Where the system tells about itself: nothing happens there.
const SYSTEM: [&str; 2] = ["\"/sys/", "\"/proc/"];

/// The `count`th time that a thread makes a system call.
#[derive(Clone)]
struct Moment {
    call: String,
    count: usize,
    line: String,
}

/// What is said of it where a test fails.
impl std::fmt::Debug for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "killed at {} number {}: {}", self.call, self.count, self.line)
    }
}

/// A run, with one thread for each kind of work: what a thread does comes in the same order every time.
fn dedup_of(inputs: &Path, output: &Path, extra: &[&str]) -> Vec<String> {
    let run = ["dedup", &inputs.to_string_lossy(), "--output", &output.to_string_lossy(), "--threads", "1", "-q"];
    run.iter().chain(extra).map(|&argument| argument.to_owned()).collect()
}

/// `strace OPTIONS… lookalike ARGUMENTS…`
fn traced(options: &[String], arguments: &[String]) -> Output {
    let program = lookalike().get_program().to_owned();
    Command::new("strace").args(["-f", "-qq"]).args(options).arg(program).args(arguments).output().unwrap()
}

/// Whether programs can be traced here.
fn can_trace() -> bool {
    let tried = Command::new("strace").args(["-e", "trace=none", "true"]).output();
    let can = tried.is_ok_and(|tried| tried.status.success());
    if !can {
        println!("skipped: strace is not installed, or not permitted");
    }
    can
}

/// The moments of a whole run from when it has its work directory, in their order.
fn moments(log: &Path, inputs: &Path, output: &Path, extra: &[&str]) -> Vec<Moment> {
    let options = ["-o", &log.to_string_lossy(), "-s", "200", "-e", &format!("trace={}", CALLS.join(","))];
    let whole = traced(&options.map(str::to_owned), &dedup_of(inputs, output, extra));
    assert!(whole.status.success(), "{whole:?}");
    let mut by_thread: HashMap<(String, String), usize> = HashMap::new();
    let mut most: HashMap<String, usize> = HashMap::new();
    let (mut moments, mut has_begun): (Vec<Moment>, bool) = (Vec::new(), false);
    for line in String::from_utf8_lossy(&fs::read(log).unwrap()).lines() {
        let Some((thread, called)) = line.split_once(' ') else { continue };
        let Some((call, _)) = called.trim_start().split_once('(').filter(|(call, _)| CALLS.contains(call)) else {
            continue;
        };
        let count = by_thread.entry((thread.to_owned(), call.to_owned())).or_default();
        *count += 1;
        has_begun |= line.contains(".lookalike-work");
        // Whoever is the first to come so far meets the signal.
        let most = most.entry(call.to_owned()).or_default();
        if *count > *most {
            *most = *count;
            // A long file is no reason to be killed in it more often.
            let is_same = |moment: &&Moment| moment.call == "write" && call == "write";
            let in_a_row = moments.iter().rev().take_while(is_same).count();
            if has_begun && in_a_row < MOST_WRITES && !SYSTEM.iter().any(|place| line.contains(place)) {
                moments.push(Moment { call: call.to_owned(), count: *count, line: line.to_owned() });
            }
        }
    }
    moments
}

/// A run that gets a signal at a moment.
fn stopped(moment: &Moment, signal: &str, inputs: &Path, output: &Path, extra: &[&str]) -> Output {
    let Moment { call, count, .. } = moment;
    let inject = format!("inject={call}:signal={signal}:when={count}");
    let options = ["-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject].map(str::to_owned);
    traced(&options, &dedup_of(inputs, output, extra))
}

/// So many moments, one at random of every part of a run.
fn spread(moments: &[Moment], count: usize, mut seed: u64) -> Vec<Moment> {
    assert!(moments.len() > 2 * count, "{}", moments.len());
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap()
    };
    let bounds: Vec<usize> = (0..=count).map(|part| part * moments.len() / count).collect();
    bounds.windows(2).map(|part| moments[part[0] + random() % (part[1] - part[0])].clone()).collect()
}

/// Which files the work directory of a stopped run holds.
fn left(output: &Path) -> BTreeSet<String> {
    let work = output.join(".lookalike-work");
    let entries = fs::read_dir(work).map(|entries| entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>());
    entries.unwrap_or_default().into_iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

fn resumed(inputs: &Path, output: &Path, extra: &[&str]) -> Ran {
    dedup_once(&[inputs], output, &[&["--resume", "--threads", "2"], extra].concat())
}

/// Documents in lines that are mostly filler; `changed` has other words in its first ones.
fn lines(path: &Path, first: usize, count: usize) {
    let filler = "x".repeat(300 << 10);
    let line = |number: usize| {
        // The first one is like no other: it is read only once.
        let mut text = sentence(if number == first { 1000 + first } else { number % 40 }, 120);
        if number.is_multiple_of(3) {
            text += " and more";
        }
        format!("{{\"id\": \"p{number}\", \"text\": \"{text}\", \"other\": \"{filler}\"}}\n")
    };
    fs::write(path, (first..first + count).map(line).collect::<String>()).unwrap();
}

/// Three files, of which the second is a large unit of its own.
fn json_input(root: &Path) -> PathBuf {
    let inputs = root.join("in");
    fs::create_dir(&inputs).unwrap();
    for (name, first, count) in [("a.jsonl", 0, 30), ("b.jsonl", 30, 150), ("c.jsonl", 180, 90)] {
        lines(&inputs.join(name), first, count);
    }
    inputs
}

/// Archives of pages of a site with a menu, two of them with markup that is mostly a comment.
fn html_input(root: &Path) -> PathBuf {
    let inputs = root.join("in");
    fs::create_dir(&inputs).unwrap();
    let menu = "<ul><li>Home</li><li>News of the day</li><li>Contact us here</li></ul>";
    for (file, pages) in [20, 40, 40].into_iter().enumerate() {
        let mut archive = Vec::new();
        for page in 0..pages {
            let number = file * 100 + page;
            let filler = "y".repeat(if page % 2 == 0 { 1 << 20 } else { 900 });
            let story: String =
                (0..4).map(|part| format!("<p>{}</p>", sentence(number % 30 + 100 * part, 40))).collect();
            let html = format!("<html><body>{menu}<!-- {filler} -->{story}{menu}</body></html>");
            let response = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{html}");
            let url = format!("http://a.example/{number}");
            archive.extend(record("response", &format!("p{number}"), &url, "", response.as_bytes()));
        }
        fs::write(inputs.join(format!("{file}.warc")), archive).unwrap();
    }
    inputs
}

/// Kills runs at 20 moments, and resumes each; says what was left, and how often.
fn kill_everywhere(root: &Path, inputs: &Path, extra: &[&str], seed: u64) -> BTreeMap<String, usize> {
    let whole = root.join("whole");
    let moments = moments(&root.join("log"), inputs, &whole, extra);
    let expected = contents(&whole);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (number, moment) in spread(&moments, 20, seed).iter().enumerate() {
        let output = root.join(format!("out-{number}"));
        let killed = stopped(moment, "KILL", inputs, &output, extra);
        let was_killed = killed.status.signal() == Some(9) || killed.status.code() == Some(137);
        assert!(was_killed || killed.status.success(), "{moment:?}: {killed:?}");
        for name in left(&output) {
            *seen.entry(name).or_default() += 1;
        }
        let again = resumed(inputs, &output, extra);
        assert_eq!(again.code, 0, "{moment:?}: {}", again.stderr);
        let found = contents(&output);
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected), "{moment:?}");
        let differing: Vec<&String> =
            expected.iter().filter(|(name, bytes)| found[*name] != **bytes).map(|row| row.0).collect();
        assert!(differing.is_empty(), "{moment:?}: {differing:?}");
        fs::remove_dir_all(&output).unwrap();
    }
    seen
}

#[test]
fn a_run_on_json_lines_that_is_killed_anywhere_goes_on_with_the_same_bytes() {
    if !can_trace() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let inputs = json_input(root.path());
    let seen = kill_everywhere(root.path(), &inputs, &["--removed"], 1);
    for name in ["read-key", "read-0000", "read-0001", "read-compared", "read-kept-whole", "pages.parquet"] {
        assert!(seen.contains_key(name), "no run was killed while there was a {name}: {seen:?}");
    }
}

#[test]
fn a_run_on_pages_of_a_site_that_is_killed_anywhere_goes_on_with_the_same_bytes() {
    if !can_trace() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let inputs = html_input(root.path());
    let seen = kill_everywhere(root.path(), &inputs, &[], 2);
    for name in ["read-key", "read-0000", "read-0001", "read-compared", "read-kept-whole"] {
        assert!(seen.contains_key(name), "no run was killed while there was a {name}: {seen:?}");
    }
}

#[test]
fn an_interrupted_run_ends_at_once_and_goes_on() {
    if !can_trace() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let inputs = json_input(root.path());
    let whole = root.path().join("whole");
    let moments = moments(&root.path().join("log"), &inputs, &whole, &[]);
    for (number, moment) in spread(&moments, 8, 3).iter().enumerate() {
        let output = root.path().join(format!("out-{number}"));
        let ended = stopped(moment, "INT", &inputs, &output, &[]);
        let said = String::from_utf8_lossy(&ended.stderr);
        if ended.status.success() {
            continue; // the signal came when all was done
        }
        assert_eq!(ended.status.code(), Some(130), "{moment:?}: {said}");
        // Which of the two depends on how far the run gets while that is looked for; it goes on in either case.
        let is_told = ["what was read so far is in", "there is nothing to go on with yet"]
            .iter()
            .any(|what| said.contains(&format!("interrupted; {what}")));
        assert!(is_told, "{moment:?}: {said}");
        let again = resumed(&inputs, &output, &[]);
        assert_eq!(again.code, 0, "{moment:?}: {}", again.stderr);
        assert!(contents(&output) == contents(&whole), "{moment:?}");
    }
}

/// A run that is killed the `count`th time that it makes a call about one file of its work directory.
fn killed_at(file: &str, (call, count): (&str, usize), inputs: &Path, output: &Path) {
    let path = output.join(".lookalike-work").join(file).to_string_lossy().into_owned();
    let inject = format!("inject={call}:signal=KILL:when={count}");
    let options = ["-o", "/dev/null", "-P", &path, "-e", &format!("trace={call}"), "-e", &inject].map(str::to_owned);
    let killed = traced(&options, &dedup_of(inputs, output, &[]));
    assert!(!killed.status.success(), "{file} {call} {count}");
}

/// How often a whole run writes to one file of its work directory.
fn writes_to(file: &str, log: &Path, inputs: &Path, output: &Path) -> usize {
    let path = output.join(".lookalike-work").join(file).to_string_lossy().into_owned();
    let options = ["-o", &log.to_string_lossy(), "-P", &path, "-e", "trace=write"].map(str::to_owned);
    assert!(traced(&options, &dedup_of(inputs, output, &[])).status.success());
    fs::read_to_string(log).unwrap().lines().filter(|line| line.contains("write(")).count()
}

#[test]
fn what_is_done_is_not_done_again() {
    if !can_trace() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let inputs = json_input(root.path());
    let whole = root.path().join("whole");
    let writes = writes_to("read-0001", &root.path().join("log"), &inputs, &whole);
    // While the third file of `kept` is written: everything but this file is there.
    let output = root.path().join("writing");
    killed_at("kept/c.jsonl", ("openat", 1), &inputs, &output);
    let begun = output.join(".lookalike-work/kept");
    let modified = |path: PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    let (a, b) = (modified(begun.join("a.jsonl")), modified(begun.join("b.jsonl")));
    assert_eq!(resumed(&inputs, &output, &[]).code, 0);
    assert_eq!((modified(output.join("kept/a.jsonl")), modified(output.join("kept/b.jsonl"))), (a, b));
    let stages = |output: &Path| {
        let run: serde_json::Value = serde_json::from_slice(&fs::read(output.join("run.json")).unwrap()).unwrap();
        run["stages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["stage"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(stages(&whole), ["read", "candidates", "verify", "cluster", "write"]);
    assert_eq!(stages(&output), ["read", "candidates", "cluster", "write"]);
    assert!(contents(&output) == contents(&whole));

    // Files that other options have written are not taken over.
    let other = root.path().join("other");
    killed_at("kept/c.jsonl", ("openat", 1), &inputs, &other);
    assert_eq!(resumed(&inputs, &other, &["--kept-compression", "gzip"]).code, 0);
    let names: Vec<String> = contents(&other).into_keys().filter(|name| name.starts_with("kept/")).collect();
    assert_eq!(names, ["kept/a.jsonl.gz", "kept/b.jsonl.gz", "kept/c.jsonl.gz"]);

    // In the midst of the second file: its first lines are not read again. Other words in them, which nothing about the
    // file tells, are not seen.
    let output = root.path().join("reading");
    killed_at("read-0001", ("write", writes.div_ceil(2)), &inputs, &output);
    assert!(left(&output).contains("read-0001") && !left(&output).contains("read-0002"), "{:?}", left(&output));
    let second = inputs.join("b.jsonl");
    let when = modified(second.clone());
    let mut bytes = fs::read(&second).unwrap();
    let at = bytes.windows(10).position(|window| window == b"\"text\": \"w").unwrap() + 9;
    bytes[at] = b'v';
    fs::write(&second, bytes).unwrap();
    fs::File::options().append(true).open(&second).unwrap().set_modified(when).unwrap();
    assert_eq!(resumed(&inputs, &output, &["--no-kept"]).code, 0);
    let pages = |output: &Path| crate::common::table(&output.join("pages.parquet"));
    assert_eq!(pages(&output), pages(&whole));
    assert_eq!(dedup_once(&[&inputs], &root.path().join("anew"), &["--no-kept"]).code, 0);
    assert_ne!(pages(&root.path().join("anew")), pages(&whole), "they are seen where the file is read");
}

#[test]
fn a_disk_that_fills_stops_a_run_that_goes_on_when_there_is_space() {
    let root = tempfile::tempdir().unwrap();
    let inputs = json_input(root.path());
    // As deep as the other one: the report links to the input.
    let whole = root.path().join("whole/out");
    assert_eq!(dedup_once(&[&inputs], &whole, &[]).code, 0);
    let disk = root.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mut full = BTreeSet::new();
    for (number, size) in ["4k", "16k", "60k", "80k", "120k", "400k", "2m"].into_iter().enumerate() {
        let saved = root.path().join(format!("saved-{number}"));
        let script = format!(
            "mount -t tmpfs -o size={size} tmpfs {disk} || exit 99
             {binary} dedup {inputs} --output {disk}/out --threads 1 -q; code=$?
             ls -A {disk}/out
             mount -o remount,size=1g {disk} || exit 99
             {binary} dedup {inputs} --output {disk}/out -q --resume > {root}/again 2>&1; echo again $?
             cp -a {disk}/out {saved}; exit $code",
            disk = disk.display(),
            binary = lookalike().get_program().to_string_lossy(),
            inputs = inputs.display(),
            root = root.path().display(),
            saved = saved.display(),
        );
        let ran = run(Command::new("unshare").args(["--mount", "--map-root-user", "sh", "-c", &script]));
        if ran.code == 99 || ran.stderr.contains("unshare") {
            println!("skipped: a small disk cannot be mounted here: {}", ran.stderr);
            return;
        }
        assert_eq!(ran.code, 1, "{size}: {}", ran.stderr);
        assert!(ran.stderr.contains("free some space"), "{size}: {}", ran.stderr);
        // Nothing but what can be gone on with, if there is any.
        let names: Vec<&str> = ran.stdout.lines().collect();
        assert!([&["again 0"][..], &[".lookalike-work", "again 0"]].contains(&&names[..]), "{size}: {}", ran.stdout);
        if names.len() == 2 {
            assert!(ran.stderr.contains("--resume"), "{size}: {}", ran.stderr);
        }
        let path = ran.stderr.split(": cannot ").next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        full.insert(path.split(['-', '.']).next().unwrap_or_default().to_owned());
        assert!(
            contents(&saved) == contents(&whole),
            "{size}: {}",
            fs::read_to_string(root.path().join("again")).unwrap()
        );
        fs::remove_dir_all(&saved).unwrap();
    }
    // While pages are read, and while the result is written: outputs are written side by side, and one error is told.
    assert!(full.len() > 1, "it filled in the same place every time: {full:?}");
}
