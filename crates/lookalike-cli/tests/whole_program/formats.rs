//! Corpora in which tags enclose each document, and pages whose text is only part of them.

use std::fs;

use crate::common::{decompressed, dedup, fates, sentence, summary};
use crate::crawl::gzip;

/// A corpus by its name, its documents, and what stands around them.
fn corpora() -> Vec<(&'static str, &'static str, Vec<String>, &'static str)> {
    let texts = [0, 1, 0, 2].map(|topic| sentence(topic, 60));
    let of = |make: &dyn Fn(usize, &str) -> String| texts.iter().enumerate().map(|(n, text)| make(n, text)).collect();
    vec![
        (
            "news.trec",
            "",
            of(&|n, text| format!("<DOC>\n<DOCNO> d{n} </DOCNO>\n<TEXT>\n<P>{text}</P>\n</TEXT>\n</DOC>\n")),
            "",
        ),
        (
            "news.sgm",
            "<!DOCTYPE lewis SYSTEM \"lewis.dtd\">\n",
            of(&|n, text| {
                format!(
                    "<REUTERS OLDID=\"9\" NEWID=\"d{n}\"><TEXT><TITLE>T</TITLE><BODY>{text} &lt;X></BODY></TEXT></REUTERS>\n"
                )
            }),
            "",
        ),
        (
            "dump.xml",
            "<mediawiki xml:lang=\"en\">\n<siteinfo></siteinfo>\n",
            of(&|n, text| {
                format!(
                    "<page><title>t{n}</title><ns>0</ns><id>d{n}</id><revision><id>7</id><text>{text}</text></revision></page>\n"
                )
            }),
            "</mediawiki>\n",
        ),
    ]
}

#[test]
fn documents_in_tags_are_read_and_kept_with_what_stands_around_them() {
    let root = tempfile::tempdir().unwrap();
    for (name, before, documents, after) in corpora() {
        let file = format!("{before}{}{after}", documents.concat());
        // The line end behind a document is not part of it.
        let without = format!("{before}{}\n{}{after}", documents[..2].concat(), documents[3]);
        for (name, bytes) in
            [(name.to_owned(), file.clone().into_bytes()), (format!("{name}.gz"), gzip(file.as_bytes()))]
        {
            let (path, output) = (root.path().join(&name), root.path().join(format!("out-{name}")));
            fs::write(&path, bytes).unwrap();
            let ran = dedup(&[&path], &output, &[]);
            assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
            let found = fates(&output);
            assert_eq!(found.keys().collect::<Vec<_>>(), ["d0", "d1", "d2", "d3"], "{name}");
            assert_eq!(found["d2"], ("exact".to_owned(), "d0".to_owned()), "{name}");
            let kept = String::from_utf8(decompressed(&output.join("kept").join(&name))).unwrap();
            assert_eq!(kept, without, "{name}");
        }
    }
}

#[test]
fn documents_that_are_cut_off_or_too_large_are_reported() {
    let root = tempfile::tempdir().unwrap();
    let document = |n: usize, text: &str| format!("<DOC><DOCNO>d{n}</DOCNO>{text}</DOC>\n");
    let huge = "word ".repeat(500_000);
    let file = format!(
        "{}{}{}<DOC><DOCNO>cut</DOCNO>{}",
        document(0, &sentence(0, 50)),
        document(1, &huge),
        document(2, &sentence(2, 50)),
        sentence(3, 50)
    );
    let (path, output) = (root.path().join("a.trec"), root.path().join("out"));
    fs::write(&path, file).unwrap();
    let ran = dedup(&[&path], &output, &["--max-page", "1MiB"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(fates(&output).keys().collect::<Vec<_>>(), ["d0", "d2"]);
    assert_eq!(summary(&output)["skipped"], serde_json::json!({"bad_record": 1, "too_large": 1}));
}

/// A story in a page frame.
fn framed(story: &str, frame: usize) -> String {
    let links: String =
        (0..40).map(|n| format!("<li><a href=/{n}>{}</a></li>", sentence(frame * 100 + n, 2))).collect();
    let notes: String = (0..10).map(|n| format!("<div>{}</div>", sentence(frame * 1000 + n, 9))).collect();
    format!("<html><body><ul>{links}</ul><div class=story>{story}</div>{notes}</body></html>")
}

/// A story that reads like one.
fn story(topic: usize) -> String {
    let sentences = (0..12).map(|n| {
        let words = sentence(topic * 50 + n, 16).split(' ').map(str::to_owned).collect::<Vec<_>>();
        format!(
            "<p>The {} of the {} was in the {} and it is a {} that {} for {} by {} to {} with {} on {}.</p>",
            words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7], words[8], words[9]
        )
    });
    sentences.collect()
}

#[test]
fn the_core_of_a_page_is_compared_where_no_frame_is_known() {
    let root = tempfile::tempdir().unwrap();
    let pages = root.path().join("pages");
    fs::create_dir(&pages).unwrap();
    for (name, topic, frame) in [("a", 1, 1), ("b", 1, 2), ("c", 2, 1)] {
        fs::write(pages.join(format!("{name}.html")), framed(&story(topic), frame)).unwrap();
    }
    fs::write(pages.join("menu.html"), framed("", 1)).unwrap();
    let kind_of_b = |flags: &[&str]| {
        let output = root.path().join("out");
        let ran = dedup(&[&pages], &output, flags);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        (fates(&output)["b.html"].0.clone(), summary(&output)["compared"].clone())
    };
    assert_eq!(kind_of_b(&[]), ("same_core".to_owned(), serde_json::json!({"core": 3, "page": 1})));
    assert_eq!(kind_of_b(&["--content", "page"]), ("unique".to_owned(), serde_json::json!({"page": 4})));
    let (kind, compared) = kind_of_b(&["--content", "main"]);
    assert!(kind == "same_core" && compared["main"].as_u64() >= Some(3), "{kind} {compared}");
    for method in ["shingle", "projection", "combined", "routed", "simhash", "bloom", "spotsigs"] {
        let (kind, _) = kind_of_b(&["--method", method]);
        assert_eq!(kind, "same_core", "{method}");
    }
}
