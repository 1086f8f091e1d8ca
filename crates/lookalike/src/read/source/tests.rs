//! Which files are found, in which order, and under which names.

use super::*;

fn names(inputs: &[&Path]) -> Vec<(String, String)> {
    let inputs: Vec<String> = inputs.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let nowhere = Path::new("/nonexistent");
    let sources = discover(&inputs, &ReadConfig::default(), nowhere, None).unwrap();
    sources.list.into_iter().map(|source| (source.name, source.format.name().to_owned())).collect()
}

#[test]
fn names_are_unique_and_sources_come_in_the_order_of_the_arguments() {
    let root = tempfile::tempdir().unwrap();
    for (file, content) in [
        ("a/x.html", "<p>"),
        ("a/deep/y.txt", "y"),
        ("b/x.html", "<p>"),
        ("b/logo.png", "png"),
        ("b/.hidden", "no"),
        ("c.jsonl", "{}"),
    ] {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let (a, b, c) = (root.path().join("a"), root.path().join("b"), root.path().join("c.jsonl"));
    let expected = [("a/deep/y.txt", "text"), ("a/x.html", "html"), ("b/x.html", "html"), ("c.jsonl", "jsonl")];
    let expected: Vec<(String, String)> =
        expected.iter().map(|(name, format)| ((*name).to_owned(), (*format).to_owned())).collect();
    assert_eq!(names(&[&a, &b, &c]), expected);
    let [deep, ax, bx, c_file] = [0, 1, 2, 3].map(|at: usize| expected[at].clone());
    assert_eq!(names(&[&c, &b, &a, &c]), [c_file, bx, deep, ax]);
    assert_eq!(names(&[&a]), [("deep/y.txt".to_owned(), "text".to_owned()), ("x.html".to_owned(), "html".to_owned())]);
    // What is reached in two ways stands where it is named first.
    let places = |inputs: &[&Path]| names(inputs).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(places(&[&a, &a.join("deep")]), ["a/deep/y.txt", "a/x.html"]);
    assert_eq!(places(&[&a.join("x.html"), &a]), ["x.html", "deep/y.txt"]);
    let pattern = root.path().join("[ab]");
    assert_eq!(places(&[&c, &pattern]), ["c.jsonl", "a/deep/y.txt", "a/x.html", "b/x.html"]);
}

#[test]
fn results_of_earlier_runs_are_read_only_if_they_are_named() {
    let root = tempfile::tempdir().unwrap();
    for file in ["a.jsonl", "out/kept/a.jsonl", "out/pages.jsonl", "other/summary.json"] {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "{}").unwrap();
    }
    fs::write(root.path().join("out/summary.json"), r#"{"lookalike": "1.0.0"}"#).unwrap();
    let found = |inputs: &[&str]| {
        let inputs: Vec<String> = inputs.iter().map(|name| root.path().join(name).display().to_string()).collect();
        let sources = discover(&inputs, &ReadConfig::default(), Path::new("/nonexistent"), None).unwrap();
        let names: Vec<String> = sources.list.into_iter().map(|source| source.name).collect();
        (names.join(" "), sources.results.len())
    };
    assert_eq!(found(&[""]), ("a.jsonl other/summary.json".to_owned(), 1));
    assert_eq!(found(&["**/*.jsonl"]), ("a.jsonl".to_owned(), 1));
    assert_eq!(found(&["o*"]), ("other/summary.json".to_owned(), 1));
    // Whoever names a result means what it kept.
    assert_eq!(found(&["out"]), ("a.jsonl".to_owned(), 0));
    assert_eq!(found(&["out/kept"]), ("a.jsonl".to_owned(), 0));
    assert_eq!(found(&["out/*/*.jsonl"]), ("a.jsonl".to_owned(), 0));
    fs::write(root.path().join("out/kept/kept.txt"), "x.html").unwrap();
    let inputs = [root.path().join("out").display().to_string()];
    let refused = discover(&inputs, &ReadConfig::default(), Path::new("/nonexistent"), None).unwrap_err();
    assert!(refused.to_string().contains("files_from"), "{refused}");
}

#[test]
fn hidden_files_and_directories_are_left_out_and_other_things_are_counted() {
    let root = tempfile::tempdir().unwrap();
    let inside = root.path().join(".in"); // whoever names a hidden directory means it
    for folder in [".git", "sub/.cache", "sub/deep"] {
        fs::create_dir_all(inside.join(folder)).unwrap();
        fs::write(inside.join(folder).join("a.txt"), "a").unwrap();
    }
    std::os::unix::fs::symlink("nowhere", inside.join(".broken")).unwrap();
    std::os::unix::net::UnixListener::bind(inside.join("socket")).unwrap();
    let inputs = [inside.to_string_lossy().into_owned()];
    let sources = discover(&inputs, &ReadConfig::default(), Path::new("/nonexistent"), None).unwrap();
    let names: Vec<&str> = sources.list.iter().map(|source| source.name.as_str()).collect();
    assert_eq!((names, sources.ignored, sources.problems.len()), (vec!["sub/deep/a.txt"], 1, 0));
}

#[test]
fn of_two_ways_to_a_directory_the_last_is_taken() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("a.txt"), "a").unwrap();
    for link in ["b", "a", "c"] {
        std::os::unix::fs::symlink(elsewhere.path(), root.path().join(link)).unwrap();
    }
    let inputs = [root.path().to_string_lossy().into_owned()];
    let sources = discover(&inputs, &ReadConfig::default(), Path::new("/nonexistent"), None).unwrap();
    assert_eq!(sources.list.iter().map(|source| source.name.as_str()).collect::<Vec<_>>(), ["c/a.txt"]);
}

#[test]
fn loops_of_links_are_walked_once_and_broken_links_are_reported() {
    let root = tempfile::tempdir().unwrap();
    let inside = root.path().join("in");
    fs::create_dir(&inside).unwrap();
    fs::write(inside.join("a.txt"), "a").unwrap();
    std::os::unix::fs::symlink(&inside, inside.join("loop")).unwrap();
    std::os::unix::fs::symlink("nowhere", inside.join("broken.txt")).unwrap();
    std::os::unix::fs::symlink("nowhere", inside.join("lost.txt")).unwrap();
    let inputs = [inside.to_string_lossy().into_owned()];
    let sources = discover(&inputs, &ReadConfig::default(), Path::new("/nonexistent"), None).unwrap();
    assert_eq!((sources.list.len(), sources.problems.len()), (1, 1));
    let note = &sources.problems[0];
    assert!(note.source.ends_with("broken.txt") && note.reason.contains("2 links"), "{note:?}");
}

#[test]
fn patterns_choose_files_by_their_paths_below_the_input() {
    let root = tempfile::tempdir().unwrap();
    for file in ["a/x.html", "a/deep/y.html", "a/deep/y.txt", "b/x.html"] {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "<p>").unwrap();
    }
    let inputs = ["a", "b"].map(|name| root.path().join(name).to_string_lossy().into_owned());
    let found = |include: &[&str], exclude: &[&str]| {
        let own = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        let config = ReadConfig { include: own(include), exclude: own(exclude), ..ReadConfig::default() };
        let sources = discover(&inputs, &config, Path::new("/nonexistent"), None).unwrap();
        (sources.list.into_iter().map(|source| source.name).collect::<Vec<_>>(), sources.left_out)
    };
    assert_eq!(found(&["*.txt"], &[]), (vec!["a/deep/y.txt".to_owned()], 3));
    assert_eq!(found(&["deep/**"], &["*.txt"]), (vec!["a/deep/y.html".to_owned()], 3));
    assert_eq!(found(&[], &["x.html", "deep/"]), (vec![], 4));
    let wrong = ReadConfig { include: vec!["[".to_owned()], ..ReadConfig::default() };
    assert!(discover(&inputs, &wrong, Path::new("/nonexistent"), None).is_err());
}
