//! Garbage in, report out: every kind of bad input on the real binary.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::common::{Ran, dedup, documents, fates, lookalike, run, sentence, summary, table, write_jsonl};
use flate2::Compression;
use flate2::write::GzEncoder;

/// A run on one file of these bytes; the result directory is returned if there is one.
fn run_on(name: &str, bytes: &[u8], extra: &[&str]) -> (Ran, tempfile::TempDir) {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join(name);
    fs::write(&input, bytes).unwrap();
    (dedup(&[&input], &root.path().join("out"), extra), root)
}

#[test]
fn no_such_file() {
    let root = tempfile::tempdir().unwrap();
    let ran = dedup(&[Path::new("missing.jsonl")], &root.path().join("out"), &[]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.stderr, "error: missing.jsonl: no such file or directory\n");
    assert!(!root.path().join("out").exists());
    let ran = dedup(&[&root.path().join("*.jsonl")], &root.path().join("out"), &[]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("matches no file"), "{}", ran.stderr);
}

#[test]
fn a_directory_without_pages() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("in");
    fs::create_dir(&input).unwrap();
    let ran = dedup(&[&input], &root.path().join("out"), &[]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("no pages found") && ran.stderr.contains("there are no files to read"),
        "{}",
        ran.stderr
    );
    fs::write(input.join("logo.png"), b"\x89PNG\r\n").unwrap();
    let ran = dedup(&[&input], &root.path().join("out"), &[]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("1 files are there, none of a format that is read"), "{}", ran.stderr);
    assert!(!root.path().join("out").exists());
}

#[test]
fn unknown_formats_are_refused_with_the_list_of_known_ones() {
    let (ran, _) = run_on("program", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", &[]);
    assert_eq!(ran.code, 1);
    for part in ["binary data", "jsonl, json, parquet, arrow, csv", "--format"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    let (ran, _) = run_on("old.feather", b"FEA1\0\0\0\0\0\0", &[]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("write it again as version 2"), "{}", ran.stderr);
    let (ran, _) = run_on("x.jsonl", b"{}", &["--format", "xml"]);
    assert_eq!(ran.code, 2);
}

#[test]
fn bad_records_are_skipped_counted_and_the_first_of_each_kind_is_named() {
    let good = sentence(1, 30);
    let mut lines = Vec::new();
    for line in [
        format!("{{\"id\": 1, \"text\": \"{good}\"}}").into_bytes(),
        b"{\"id\": 2, \"text\": \"cut of".to_vec(),
        b"not json at all".to_vec(),
        b"{\"id\": 3}".to_vec(),
        b"{\"id\": 4, \"text\": 5}".to_vec(),
        b"{\"id\": 5, \"text\": \"\xff\xfe\"}".to_vec(),
        b"".to_vec(),
        format!("{{\"id\": 6, \"text\": \"{good} more\"}}").into_bytes(),
    ] {
        lines.extend(line);
        lines.push(b'\n');
    }
    let (ran, root) = run_on("bad.jsonl", &lines, &[]);
    let output = root.path().join("out");
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("5 records were skipped"), "{}", ran.stderr);
    for (kind, place) in [
        ("bad_json", "record 2 at byte"),
        ("missing_field", "record 4 at byte"),
        ("wrong_type", "record 5 at byte"),
        ("invalid_utf8", "record 6 at byte"),
    ] {
        let line = ran.stderr.lines().find(|line| line.contains(kind)).unwrap();
        assert!(line.contains(place) && line.contains("bad.jsonl"), "{line}");
    }
    let summary = summary(&output);
    assert_eq!(
        summary["skipped"],
        serde_json::json!({"bad_json": 2, "missing_field": 1, "wrong_type": 1, "invalid_utf8": 1})
    );
    let skipped = fs::read_to_string(output.join("skipped.jsonl")).unwrap();
    let skipped: Vec<serde_json::Value> = skipped.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(skipped.len(), 5);
    assert_eq!((&skipped[1]["record"], &skipped[1]["first_bytes"]), (&3.into(), &"not json at all\n".into()));
    let byte = usize::try_from(skipped[1]["byte"].as_u64().unwrap()).unwrap();
    assert!(lines[byte..].starts_with(b"not json"));
    assert_eq!(fates(&output).len(), 2, "the rest is done");
    assert_eq!(
        fs::read_to_string(output.join("kept/bad.jsonl")).unwrap().lines().count(),
        1,
        "and the near-duplicate found"
    );

    let (ran, root) = run_on("bad.jsonl", &lines, &["--strict"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("record 2 at byte") && ran.stderr.contains("--strict"), "{}", ran.stderr);
    assert!(!root.path().join("out").exists(), "nothing half-written is left");
}

#[test]
fn a_file_in_which_nothing_is_usable() {
    let (ran, root) = run_on("bad.jsonl", b"{\"body_text\": \"x\"}\n{\"body_text\": \"y\"}\n", &[]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("every record had to be skipped") && ran.stderr.contains("--text-field"),
        "{}",
        ran.stderr
    );
    assert!(!root.path().join("out").exists());
    let (ran, _) = run_on("bad.jsonl", b"{\"body_text\": \"x\"}\n", &["--text-field", "body_text"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let (ran, _) = run_on("table.csv", b"a,b\n1,2\n", &[]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("there are a, b"), "{}", ran.stderr);
}

#[test]
fn a_truncated_gzip_gives_what_comes_before_the_damage() {
    let documents = documents();
    let lines: String = documents.iter().map(crate::common::Document::json).collect();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(lines.as_bytes()).unwrap();
    let mut bytes = encoder.finish().unwrap();
    bytes.truncate(bytes.len() / 2);
    let (ran, root) = run_on("cut.jsonl.gz", &bytes, &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("damaged") && ran.stderr.contains("cut.jsonl.gz"), "{}", ran.stderr);
    let pages = fates(&root.path().join("out")).len();
    assert!(pages > 10 && pages < documents.len(), "{pages}");
    // The kept file is whole again.
    let kept = crate::common::decompressed(&root.path().join("out/kept/cut.jsonl.gz"));
    assert!(lines.as_bytes().starts_with(kept.split(|&b| b == b'\n').next().unwrap()) && kept.ends_with(b"\n"));
}

#[test]
fn a_single_line_of_200_mb_is_skipped_in_bounded_memory() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("long.jsonl"), root.path().join("out"));
    let mut file = BufWriter::new(File::create(&input).unwrap());
    writeln!(file, "{{\"id\": \"before\", \"text\": \"{}\"}}", sentence(1, 30)).unwrap();
    write!(file, "{{\"id\": \"giant\", \"text\": \"").unwrap();
    let chunk = "word ".repeat(200_000);
    for _ in 0..200 {
        file.write_all(chunk.as_bytes()).unwrap();
    }
    writeln!(file, "\"}}").unwrap();
    write!(file, "{{\"id\": \"after\", \"text\": \"{}\"}}", sentence(2, 30)).unwrap();
    file.into_inner().unwrap();
    let ran = dedup(&[&input], &output, &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("too_large")
            && ran.stderr.contains("record 2 at byte")
            && ran.stderr.contains("--max-page"),
        "{}",
        ran.stderr
    );
    assert_eq!(fates(&output).keys().collect::<Vec<_>>(), ["after", "before"]);
    let run: serde_json::Value = serde_json::from_slice(&fs::read(output.join("run.json")).unwrap()).unwrap();
    assert!(run["peak_memory_bytes"].as_u64().unwrap() < 400_000_000, "{}", run["peak_memory_bytes"]);
    // It can be asked for.
    assert_eq!(dedup(&[&input], &output, &["--max-page", "300MB"]).code, 0);
    assert_eq!(fates(&output).len(), 3);
}

#[test]
fn a_hundred_thousand_nested_tags() {
    let deep = format!(
        "<html><body>{}{}{}",
        "<div><table><tr><td>".repeat(100_000),
        sentence(3, 50),
        "</td></tr></table></div>".repeat(100_000)
    );
    let (ran, root) = run_on("deep.html", deep.as_bytes(), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(table(&root.path().join("out/pages.parquet"))[0]["tokens"], "50");
}

#[test]
fn repeated_ids_are_renamed_and_counted() {
    let text = sentence(1, 30);
    let lines: String = (0..3).map(|n| format!("{{\"id\": \"same\", \"text\": \"{text} {n}\"}}\n")).collect();
    let (ran, root) = run_on("ids.jsonl", lines.as_bytes(), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let output = root.path().join("out");
    assert_eq!(fates(&output).keys().collect::<Vec<_>>(), ["same", "same@ids.jsonl:2", "same@ids.jsonl:3"]);
    assert_eq!(summary(&output)["repeated_ids"], 2);
}

#[test]
fn inputs_of_different_formats_work_together() {
    let root = tempfile::tempdir().unwrap();
    let text = sentence(1, 40);
    let at = |name: &str| root.path().join(name);
    fs::write(at("a.jsonl"), format!("{{\"id\": \"a\", \"text\": \"{text}\"}}\n")).unwrap();
    fs::write(at("b.csv"), format!("id,content\nb,{text}\n")).unwrap();
    fs::write(at("c.html"), format!("<html><p>{text}</p></html>")).unwrap();
    let ran = dedup(&[&at("c.html"), &at("b.csv"), &at("a.jsonl")], &at("out"), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let kinds: Vec<(String, String)> = fates(&at("out")).into_values().collect();
    assert_eq!(kinds.iter().filter(|fate| **fate == ("exact".to_owned(), "c.html".to_owned())).count(), 2);
    // A format that is forced upon a file of another one: its records are bad records.
    let ran = dedup(&[&at("b.csv"), &at("a.jsonl")], &at("out"), &["--format", "jsonl"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("bad_json") && ran.stderr.contains("b.csv"), "{}", ran.stderr);
}

#[test]
fn an_output_directory_of_somebody_else() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("docs.jsonl"), root.path().join("thesis"));
    write_jsonl(&input, &documents());
    fs::create_dir(&output).unwrap();
    fs::write(output.join("chapter1.tex"), "precious").unwrap();
    let ran = dedup(&[&input], &output, &[]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("is not a lookalike result") && ran.stderr.contains("--force"), "{}", ran.stderr);
    assert_eq!(fs::read_dir(&output).unwrap().count(), 1);
    assert_eq!(dedup(&[&input], &output, &["--force"]).code, 0);
    assert_eq!(fs::read_to_string(output.join("chapter1.tex")).unwrap(), "precious");
    assert_eq!(dedup(&[&input], &output, &[]).code, 0, "a result of ours is replaced");
    let ran = dedup(&[&input], &input, &[]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("is not a directory"), "{}", ran.stderr);
}

#[test]
fn an_output_directory_that_cannot_be_written() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("docs.jsonl");
    write_jsonl(&input, &documents());
    // A file where a directory should be stops everybody, whoever runs the test.
    let ran = dedup(&[&input], &input.join("out"), &[]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("cannot create") && ran.stderr.contains("docs.jsonl/out"), "{}", ran.stderr);
    let locked = root.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    if File::create(locked.join("probe")).is_ok() {
        println!("skipped: permissions do not bind this user");
        return;
    }
    let ran = dedup(&[&input], &locked.join("out"), &[]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("check the permissions"), "{}", ran.stderr);
}

#[test]
fn a_disk_that_fills_is_said_and_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("docs.jsonl");
    // More kept bytes than the disk has, whatever is dropped.
    let many: Vec<crate::common::Document> = (0..40)
        .flat_map(|round| {
            documents().into_iter().map(move |mut d| {
                d.text = format!("{} {}", sentence(round * 100_000 + usize::try_from(d.score).unwrap(), 200), d.id);
                d.id = format!("{}-{round}", d.id);
                d
            })
        })
        .collect();
    write_jsonl(&input, &many);
    let disk = root.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=700k tmpfs {disk} || exit 99; {binary} dedup {input} --output {disk}/out; code=$?; ls -A {disk}; exit $code",
        disk = disk.display(),
        binary = lookalike().get_program().to_string_lossy(),
        input = input.display(),
    );
    let ran = run(Command::new("unshare").args(["--mount", "--map-root-user", "sh", "-c", &script]));
    if ran.code == 99 || ran.stderr.contains("unshare") {
        println!("skipped: a small disk cannot be mounted here: {}", ran.stderr);
        return;
    }
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("free some space"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "", "nothing half-written is left");
}

#[test]
fn a_second_run_is_kept_out() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("docs.jsonl"), root.path().join("out"));
    write_jsonl(&input, &documents());
    let work = output.join(".lookalike-work");
    fs::create_dir_all(&work).unwrap();
    let lock = File::create(work.join("lock")).unwrap();
    lock.lock().unwrap();
    let ran = dedup(&[&input], &output, &[]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("another lookalike run"), "{}", ran.stderr);
    drop(lock);
    assert_eq!(dedup(&[&input], &output, &[]).code, 0, "a lock whose owner is gone does not count");
}

#[test]
fn the_output_is_never_read_as_input() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a.html"), "<p>one page").unwrap();
    for _ in 0..2 {
        let ran = run(lookalike().current_dir(root.path()).args(["dedup", ".", "--output", "out"]));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(summary(&root.path().join("out"))["pages"], 1);
    }
}

#[test]
fn wrong_usage_names_the_right_flag() {
    for (arguments, word) in [
        (&["--method", "shingle", "--threshold", "0.8"][..], "--agree"),
        (&["--agree", "3"], "--threshold"),
        (&["--method", "shingle", "--recall", "0.9"], "belongs to minhash"),
        (&["--method", "projection", "--threshold", "0.9"], "--bits"),
        (&["--method", "combined", "--threshold", "0.9"], "--bits"),
        (&["--method", "routed", "--radius", "3"], "--same-site-bits"),
        (&["--method", "simhash", "--bits", "60"], "--radius"),
        (&["--method", "simhash", "--ngram", "9"], "between 0 and 8"),
        (&["--method", "bloom", "--ngram", "3"], "--threshold"),
        (&["--method", "bloom", "--chunk-size", "300"], "power of two"),
        (&["--method", "spotsigs", "--agree", "2"], "--threshold"),
        (&["--method", "spotsigs", "--antecedents", "two words:3"], "said:3"),
        (&["--method", "spotsigs", "--matching", "seeded"], "--seeds"),
        (&["--method", "spotsigs", "--matching", "incremental", "--keep", "longest"], "--matching full"),
        (&["--method", "spotsigs", "--matching", "incremental", "--index-duplicates"], "--cluster components"),
        (&["--raw"], "belongs to spotsigs"),
        (&["--weights", "idf"], "none or tf"),
        (&["--length-ratio", "1.5"], "at most 1"),
        (&["--method", "projection", "--bits", "400"], "between 1 and 384"),
        (&["--threshold", "70"], "above 0 and at most 1"),
        (&["--keep", "oldest"], "max:FIELD"),
        (&["--memory", "lots"], "512MB"),
        (&["--ngram", "0"], "between 1 and 32"),
        (&["--treshold", "0.8"], "--threshold"),
    ] {
        let ran = run(lookalike().args(["dedup", "x", "--output", "never"]).args(arguments));
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(word), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(run(&mut lookalike()).code, 2);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let ran = run(Command::new("bash").arg("-c").arg(format!(
        "{} man | head -c 1 >/dev/null; exit ${{PIPESTATUS[0]}}",
        lookalike().get_program().to_string_lossy()
    )));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn recluster_with_copies_never_touches_the_input() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("pages"), root.path().join("out"));
    fs::create_dir(&input).unwrap();
    for number in 0..3 {
        fs::write(input.join(format!("{number}.txt")), sentence(number, 40)).unwrap();
    }
    assert_eq!(dedup(&[&input], &output, &["--copy-kept"]).code, 0);
    let ran = run(lookalike().arg("recluster").arg(&output).args(["--threshold", "0.9"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for number in 0..3 {
        let name = format!("{number}.txt");
        assert_eq!(fs::read_to_string(input.join(&name)).unwrap(), sentence(number, 40));
        assert_eq!(
            fs::read_to_string(output.join("kept").join(&name)).unwrap(),
            sentence(number, 40),
            "copies are made again"
        );
    }
}

#[test]
fn recluster_notices_that_the_input_has_changed() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("docs.jsonl"), root.path().join("out"));
    write_jsonl(&input, &documents());
    assert_eq!(dedup(&[&input], &output, &[]).code, 0);
    let before = crate::common::contents(&output);
    write_jsonl(&input, &documents()[1..]);
    let ran = run(lookalike().arg("recluster").arg(&output).args(["--threshold", "0.9"]));
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("is not the file it was"), "{}", ran.stderr);
    assert!(crate::common::contents(&output) == before);
    fs::remove_file(&input).unwrap();
    let ran = run(lookalike().arg("recluster").arg(&output).args(["--threshold", "0.9"]));
    assert!(ran.code == 1 && ran.stderr.contains("is not there now"), "{}", ran.stderr);
}

#[test]
fn an_input_in_the_output_directory_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("pages.jsonl");
    write_jsonl(&input, &documents());
    let before = fs::read(&input).unwrap();
    let ran = dedup(&[&input], root.path(), &["--force"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("lies in the output directory"), "{}", ran.stderr);
    assert_eq!(fs::read(&input).unwrap(), before);
}

#[test]
fn sources_of_one_name_all_keep_their_records() {
    let root = tempfile::tempdir().unwrap();
    let mut inputs = Vec::new();
    for (number, directory) in ["x", "y", "dd/x"].iter().enumerate() {
        let path = root.path().join(directory).join("a.jsonl");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("{{\"text\": \"{}\"}}\n", sentence(number, 40))).unwrap();
        inputs.push(path);
    }
    let output = root.path().join("out");
    let ran = run(lookalike()
        .current_dir(root.path())
        .args(["dedup", "dd", "x/a.jsonl", "y/a.jsonl", "--output"])
        .arg(&output));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let kept: Vec<Vec<u8>> = crate::common::contents(&output.join("kept")).into_values().collect();
    assert_eq!(kept.len(), 3);
    for input in inputs {
        assert!(kept.contains(&fs::read(input).unwrap()));
    }
}

#[test]
fn pipes_are_read_as_files_are() {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("docs.jsonl"), root.path().join("out"));
    write_jsonl(&input, &documents());
    let binary = lookalike().get_program().to_string_lossy().into_owned();
    for pack in ["cat", "gzip -c"] {
        let script = format!("{binary} dedup <({pack} {}) --replace --output {}", input.display(), output.display());
        let ran = run(Command::new("bash").arg("-c").arg(script));
        assert_eq!(ran.code, 0, "{pack}: {}", ran.stderr);
        assert_eq!(fates(&output).len(), documents().len());
    }
}

/// The number of rows of a Parquet file, whatever its columns are.
fn rows(path: &Path) -> usize {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    usize::try_from(reader.metadata().file_metadata().num_rows()).unwrap()
}

#[test]
fn damaged_parquet_is_skipped_and_the_rest_is_done() {
    let root = tempfile::tempdir().unwrap();
    let (good, bad) = (root.path().join("good.jsonl"), root.path().join("bad.parquet"));
    write_jsonl(&good, &documents());
    let text: arrow_array::ArrayRef = std::sync::Arc::new(arrow_array::StringArray::from(vec![sentence(1, 30); 50]));
    let other: arrow_array::ArrayRef = std::sync::Arc::new(arrow_array::UInt32Array::from_iter_values(0..50));
    let batch = arrow_array::RecordBatch::try_from_iter([("text", text), ("other", other)]).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let bytes = writer.into_inner().unwrap();
    // Every eighth byte, one at a time: no damage may stop the run.
    let (mut skipped, mut read, mut refused) = (0, 0, 0);
    let output = root.path().join("out");
    for at in (4..bytes.len() - 8).step_by(8) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        fs::write(&bad, &damaged).unwrap();
        let ran = dedup(&[&good, &bad], &output, &["--exact-only", "--quiet", "--min-tokens", "0"]);
        match ran.code {
            0 => {
                // What counts as kept is there.
                read += 1;
                let clusters = table(&output.join("clusters.parquet"));
                let kept =
                    clusters.iter().filter(|row| row["kept"] == "true" && row["id"].starts_with("bad.parquet")).count();
                assert_eq!(rows(&output.join("kept/bad.parquet")), kept, "byte {at}");
            }
            3 => skipped += 1,
            // A column that is not compared is damaged: its rows cannot be copied, and that is said.
            1 if ran.stderr.contains("bad.parquet") => refused += 1,
            code => panic!("byte {at}: exit code {code}: {}", ran.stderr),
        }
    }
    assert!(skipped > 10 && read > 0, "{skipped} {read} {refused}");
}

#[test]
fn tables_with_bad_quotes_lose_only_the_bad_records() {
    let mut table = String::from("id\ttext\n");
    for number in 0..10 {
        let quote = if number == 2 { "\"" } else { "" };
        table += &format!("{number}\t{quote}{}\n", sentence(number, 30));
    }
    let (ran, root) = run_on("table.tsv", table.as_bytes(), &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("never closed") && ran.stderr.contains("record 3 at byte"), "{}", ran.stderr);
    let ids: Vec<String> = fates(&root.path().join("out")).into_keys().collect();
    assert_eq!(ids, ["0", "1", "3", "4", "5", "6", "7", "8", "9"]);
    // A giant record in the middle.
    let giant = format!("id,text\n1,{}\n2,{}\n3,{}\n", sentence(1, 30), "word ".repeat(300_000), sentence(3, 30));
    let (ran, root) = run_on("table.csv", giant.as_bytes(), &["--max-page", "100KB"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(fates(&root.path().join("out")).into_keys().collect::<Vec<_>>(), ["1", "3"]);
    // The same in quotes, with line breaks in it.
    let quoted = giant.replace(&"word ".repeat(300_000), &format!("\"{}\"", "word \n".repeat(300_000)));
    let (ran, root) = run_on("table.csv", quoted.as_bytes(), &["--max-page", "100KB"]);
    assert!(ran.code == 3 && ran.stderr.contains("too_large"), "{}", ran.stderr);
    assert_eq!(fates(&root.path().join("out")).into_keys().collect::<Vec<_>>(), ["1", "3"]);
    // A row of empty fields is an empty page, not a blank line.
    let (ran, root) = run_on("table.tsv", b"id\ttext\n\t\nx\ty\n", &[]);
    assert_eq!((ran.code, summary(&root.path().join("out"))["kinds"]["empty"].clone()), (0, 1.into()));
    let (ran, _) = run_on("empty.csv", b"", &[]);
    assert!(ran.code == 1 && ran.stderr.contains("the files hold no records"), "{}", ran.stderr);
}

#[test]
fn a_policy_without_values_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("docs.jsonl");
    write_jsonl(&input, &documents());
    let ran = dedup(&[&input], &root.path().join("out"), &["--keep", "max:qualty"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("no page has a number in the field 'qualty'"), "{}", ran.stderr);
}

#[test]
fn one_odd_file_in_a_directory_does_not_stop_the_run() {
    let root = tempfile::tempdir().unwrap();
    let input = root.path().join("site");
    fs::create_dir(&input).unwrap();
    fs::write(input.join("a.html"), format!("<p>{}", sentence(1, 30))).unwrap();
    fs::write(input.join("data.json"), "[{\"a\": 1}]").unwrap();
    let ran = dedup(&[&input], &root.path().join("out"), &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("data.json") && ran.stderr.contains("there are a"), "{}", ran.stderr);
}
