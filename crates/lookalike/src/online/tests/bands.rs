//! Collections that are searched by bands: what is found, what is learnt, what is missed when it is gone.

use super::*;
use crate::text::Scope;

/// Words of a small vocabulary, so that other orders of them are other pages.
fn words(seed: u64, count: u64) -> Vec<String> {
    (0..count).map(|at| format!("w{}", crate::random::next_random(&mut (seed << 20 | at)) % 5000)).collect()
}

fn html(title: &str, menu: &str, story: &str) -> String {
    format!(
        "<html><head><title>{title}</title></head><body class=\"site\"><div class=\"top\"><p>{menu}</p></div><main class=\"text\"><p>{story}</p></main></body></html>"
    )
}

fn put_html(online: &Online, id: &str, url: Option<&str>, html: &str) -> CheckOutcome {
    let mut page = RawPage::new(Body::Text(html.into()), Markup::Html);
    page.id = Some(id.into());
    page.url = url.map(Into::into);
    online.insert(&page, StorePolicy::IfNew).unwrap()
}

#[test]
fn edited_copies_are_found_and_their_similarity_is_exact() {
    let directory = tempfile::tempdir().unwrap();
    let online = online_as(directory.path(), &banded());
    for number in 0..300 {
        put(&online, Some(&number.to_string()), &words(number, 60).join(" "), StorePolicy::IfNew).unwrap();
    }
    for number in 0..300 {
        // One word in the midst: five of 56 runs are lost, and five others come.
        let mut edited = words(number, 60);
        edited[30] = "elsewhere".to_owned();
        let outcome = online.check(&page(None, &edited.join(" "))).unwrap();
        let of = &outcome.of[0];
        assert_eq!((outcome.verdict, of.id.as_str()), (PageVerdict::Near, number.to_string().as_str()));
        assert!((of.similarity.unwrap() - 51.0 / 61.0).abs() < 1e-9 && !of.is_estimated, "{of:?}");
        // Half of it is another text.
        edited[..30].clone_from_slice(&words(1000 + number, 30));
        let outcome = online.check(&page(None, &edited.join(" "))).unwrap();
        assert_eq!(outcome.verdict, PageVerdict::New, "{outcome:?}");
    }
}

#[test]
fn without_texts_similarities_are_estimated() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = banded();
    let FingerprintOrigin::Bands(bands) = &mut config.fingerprints else { panic!("bands") };
    assert!(
        IndexConfig { keeps_text: false, fingerprints: FingerprintOrigin::Bands(bands.clone()), ..banded() }
            .check()
            .is_err()
    );
    bands.content.scope = Scope::Core;
    config.keeps_text = false;
    let online = online_as(directory.path(), &config);
    put(&online, Some("a"), &words(1, 400).join(" "), StorePolicy::IfNew).unwrap();
    assert!(online.text("a").unwrap().is_none() && !online.get("a").unwrap().unwrap().has_text);
    let outcome = online.check(&page(None, &format!("{} and more", words(1, 400).join(" ")))).unwrap();
    assert!(outcome.verdict == PageVerdict::Near && outcome.of[0].is_estimated, "{outcome:?}");
}

#[test]
fn copies_are_found_in_any_crowd_and_a_crowd_does_not_hide_them() {
    let directory = tempfile::tempdir().unwrap();
    let online = online_as(directory.path(), &banded());
    // Pages that share most of their text, and are stored all the same.
    let common = words(7, 200).join(" ");
    let member = |number: u64| format!("{common} {}", words(100 + number, 40).join(" "));
    for number in 0..600 {
        put(&online, Some(&number.to_string()), &member(number), StorePolicy::Always).unwrap();
    }
    for number in [0, 5, 300, 599] {
        let outcome = online.check(&page(None, &member(number))).unwrap();
        assert_eq!((outcome.verdict, outcome.of[0].id.clone()), (PageVerdict::Exact, number.to_string()));
    }
    // A copy of a copy that goes is still a copy of the others.
    put(&online, Some("again"), &member(5), StorePolicy::Always).unwrap();
    assert!(delete(&online, "5"));
    assert_eq!(online.check(&page(None, &member(5))).unwrap().of[0].id, "again");
    assert!(delete(&online, "again"));
    assert_ne!(online.check(&page(None, &member(5))).unwrap().verdict, PageVerdict::Exact);
}

#[test]
fn the_frame_of_a_site_is_learnt_and_its_stories_are_told_apart() {
    for with_urls in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let items: Vec<String> =
            (0..80).map(|at| format!("<li><a href=\"/{at}\">{}</a></li>", words(1000 + at, 4).join(" "))).collect();
        let menu = format!("<ul>{}</ul>", items.concat());
        let story = |number: u64| words(50 + number, 80).join(" ");
        let page_of = |number: u64| html(&format!("Story {number}"), &menu, &story(number));
        let url = |number: u64| with_urls.then(|| format!("http://site.example/{number}"));
        let send = |online: &Online, number: u64| {
            put_html(online, &number.to_string(), url(number).as_deref(), &page_of(number))
        };
        {
            let online = online_as(directory.path(), &banded());
            assert!(!send(&online, 0).has_story, "nothing is known of its site yet");
            let later: Vec<CheckOutcome> = (1..60).map(|number| send(&online, number)).collect();
            assert!(later.iter().all(|outcome| outcome.verdict == PageVerdict::New), "{later:?}");
            assert!(later.iter().skip(30).all(|outcome| outcome.has_story && outcome.tokens == 80), "{later:?}");
            // A page that came before is found by its story now.
            let elsewhere = format!(
                "<html><body id=\"blog\"><article class=\"entry\"><section class=\"intro\"><blockquote>{}</blockquote></section><section class=\"body\"><div>{}</div></section></article></body></html>",
                words(2, 20).join(" "),
                story(0)
            );
            let outcome = put_html(&online, "elsewhere", Some("http://other.example/0"), &elsewhere);
            assert_eq!(
                (outcome.verdict, outcome.of.first().map(|of| of.id.as_str())),
                (PageVerdict::Near, Some("0")),
                "{outcome:?}"
            );
            online.close().unwrap();
        }
        // What was learnt is there after a restart.
        let online = online_as(directory.path(), &banded());
        let outcome = send(&online, 1000);
        assert!(outcome.verdict == PageVerdict::New && outcome.has_story, "{with_urls}");
        assert_eq!(send(&online, 40).verdict, PageVerdict::Exact);
    }
}

#[test]
fn pages_go_when_their_time_is_over_and_keep_what_was_noted() {
    let directory = tempfile::tempdir().unwrap();
    let online = online_as(directory.path(), &banded());
    let put_for = |id: &str, seconds: Option<u64>| {
        let (sender, receiver) = sync_channel(1);
        let extras = PageExtras { ttl_seconds: seconds, metadata: Some("{\"job\": 7}".to_owned()) };
        let text = words(u64::from(id.as_bytes()[0]), 50).join(" ");
        online
            .put(&page(Some(id), &text), StorePolicy::Always, extras, move |done| sender.send(done).unwrap())
            .unwrap();
        receiver.recv().unwrap().unwrap();
        text
    };
    let stays = put_for("s", None);
    let goes = put_for("g", Some(1));
    assert_eq!(online.get("s").unwrap().unwrap().metadata.as_deref(), Some("{\"job\": 7}"));
    let deadline = Instant::now() + std::time::Duration::from_secs(60);
    while online.stats().pages > 1 {
        assert!(Instant::now() < deadline, "it is still there");
        std::thread::yield_now();
    }
    assert_eq!(online.check(&page(None, &goes)).unwrap().verdict, PageVerdict::New);
    assert_eq!(online.check(&page(None, &stays)).unwrap().verdict, PageVerdict::Exact);
    let ids: Vec<String> = online.list("", None, 10).unwrap().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["s"]);
}

#[test]
fn pages_are_listed_by_prefix_and_in_parts() {
    let directory = tempfile::tempdir().unwrap();
    let online = online_as(directory.path(), &banded());
    for number in 0..30 {
        put(
            &online,
            Some(&format!("{}/{number:02}", if number < 20 { "a" } else { "b" })),
            &text(number),
            StorePolicy::Always,
        )
        .unwrap();
    }
    let ids = |prefix: &str, after: Option<&str>, limit| -> Vec<String> {
        online.list(prefix, after, limit).unwrap().into_iter().map(|(id, _)| id).collect()
    };
    assert_eq!(ids("a/", None, 100).len(), 20);
    assert_eq!(ids("a/", Some("a/17"), 100), ["a/18", "a/19"]);
    assert_eq!(ids("", Some("a/19"), 2), ["b/20", "b/21"]);
    assert_eq!(ids("c", None, 5), Vec::<String>::new());
    assert_eq!(ids("b", Some("a/05"), 1), ["b/20"]);
}

#[test]
fn damage_after_a_clean_stop_is_found() {
    let fill = |directory: &Path| {
        let online = online_as(directory, &banded());
        for number in 0..300 {
            put(&online, Some(&number.to_string()), &text(number), StorePolicy::IfNew).unwrap();
        }
        assert!(delete(&online, "7"));
        online.close().unwrap();
    };
    let refused = |directory: &Path| {
        let opened = Online::open(directory, OnlineOptions::default()).err().map(|error| error.to_string());
        let verified = Index::open(directory, OpenOptions { skip_damaged: true, ..OpenOptions::default() });
        let verified = verified.map_or_else(|error| vec![error.to_string()], |index| index.verify());
        assert!(!verified.is_empty(), "verify calls it whole");
        opened.expect("it opens as if nothing were missing")
    };
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    fill(&whole);
    assert_eq!(Index::open(&whole, OpenOptions::default()).unwrap().verify(), Vec::<String>::new());
    let journals = |place: &Path| -> Vec<std::path::PathBuf> {
        let files = std::fs::read_dir(place.join("store")).unwrap().flatten().map(|entry| entry.path());
        files.filter(|path| path.extension().is_some_and(|end| end == "jnl")).collect()
    };
    // The journal cut in half, emptied and gone.
    for (name, keep) in [("half", Some(2)), ("empty", Some(usize::MAX)), ("gone", None)] {
        let place = root.path().join(name);
        fill(&place);
        for journal in journals(&place) {
            match keep {
                Some(part) => {
                    let bytes = std::fs::read(&journal).unwrap();
                    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap_or(0);
                    std::fs::write(&journal, &bytes[..used / part]).unwrap();
                }
                None => std::fs::remove_file(&journal).unwrap(),
            }
        }
        let error = refused(&place);
        assert!(error.contains("restore a backup"), "{name}: {error}");
    }
    // A table of the store: refused, unless the journal has all of it.
    for number in 0..5 {
        let place = root.path().join(format!("table-{number}"));
        fill(&place);
        let mut tables: Vec<_> = std::fs::read_dir(place.join("store/keyspaces")).unwrap().flatten().collect();
        tables.retain(|entry| entry.path().is_dir());
        tables.sort_by_key(std::fs::DirEntry::path);
        let Some(table) = tables.get(number) else { break };
        std::fs::remove_dir_all(table.path()).unwrap();
        if let Ok(online) = Online::open(&place, OnlineOptions::default()) {
            assert_eq!(online.stats().pages, 299);
            for number in (0..300).filter(|number| *number != 7) {
                let found = online.check(&page(None, &text(number))).unwrap();
                assert_eq!((found.verdict, found.of[0].id.clone()), (PageVerdict::Exact, number.to_string()));
                assert!(online.get(&number.to_string()).unwrap().is_some());
            }
        }
    }
}

#[test]
fn a_backup_that_was_damaged_is_not_restored() {
    let root = tempfile::tempdir().unwrap();
    let (copy, target) = (root.path().join("copy"), root.path().join("target"));
    let online = online_as(&root.path().join("seen"), &banded());
    (0..50)
        .for_each(|number| drop(put(&online, Some(&number.to_string()), &text(number), StorePolicy::IfNew).unwrap()));
    online.backup(&copy).unwrap();
    assert!(Backup::verify(&copy).unwrap().is_empty());
    assert_eq!(Backup::restore(&copy, &target, false).unwrap().pages, 50);
    assert!(Backup::restore(&copy, &target, false).is_err(), "there is an index");
    assert_eq!(Backup::restore(&copy, &target, true).unwrap().pages, 50);
    assert_eq!(online_as(&target, &banded()).check(&page(None, &text(3))).unwrap().of[0].id, "3");
    let mut journals = std::fs::read_dir(copy.join("store")).unwrap().flatten().map(|entry| entry.path());
    let journal = journals.find(|path| path.extension().is_some_and(|end| end == "jnl")).unwrap();
    let bytes = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, &bytes[..bytes.len() / 2]).unwrap();
    let error = Backup::restore(&copy, &root.path().join("other"), false).unwrap_err().to_string();
    assert!(error.contains("nothing was restored"), "{error}");
    assert!(Online::open(&copy, OnlineOptions::default()).is_err());
    std::fs::remove_file(copy.join("backup.json")).unwrap();
    assert!(Backup::restore(&copy, &root.path().join("other"), false).is_err());
}

#[test]
fn pages_of_one_host_may_share_a_frame_whatever_their_markup() {
    let directory = tempfile::tempdir().unwrap();
    let online = online_as(directory.path(), &banded());
    // More than half of the runs of two pages are the same.
    let page = |number: u64| [words(1, 100), words(100 + number, 35)].concat().join(" ");
    let plain = |text: &str| format!("<html><body><article><h2>One</h2><p>{text}</p></article></body></html>");
    let table = |text: &str| {
        let rows = text.split(' ').collect::<Vec<_>>().chunks(45).map(|row| row.join(" ")).collect::<Vec<_>>();
        let row = |row: &String| format!("<tr class=r><td><span class=x>{row}</span></td></tr>");
        let rows: String = rows.iter().map(row).collect();
        format!("<html><body><div id=a class=b><table class=t><tbody>{rows}</tbody></table></div></body></html>")
    };
    let first = put_html(&online, "a", Some("http://roses.example/a"), &plain(&page(1)));
    assert_eq!(first.verdict, PageVerdict::New);
    let same_host = put_html(&online, "b", Some("http://roses.example/b"), &table(&page(2)));
    assert_eq!(same_host.verdict, PageVerdict::New, "{same_host:?}");
    let other_host = put_html(&online, "c", Some("http://tulips.example/c"), &table(&page(3)));
    assert_eq!(other_host.verdict, PageVerdict::Near, "a story in another frame: {other_host:?}");
}

#[test]
fn stubs_of_one_site_need_what_texts_need() {
    let directory = tempfile::tempdir().unwrap();
    let online = online_as(directory.path(), &banded());
    let menu = words(7, 60).join(" ");
    let url = |name: &str| format!("http://roses.example/{name}");
    for number in 0..60 {
        let id = number.to_string();
        put_html(&online, &id, Some(&url(&id)), &html(&id, &menu, &words(100 + number, 80).join(" ")));
    }
    for (length, verdict) in [(24, PageVerdict::New), (44, PageVerdict::Near)] {
        // In the midst one word differs: of 20 runs five, of 40 ten.
        let mut story = words(900 + length, length);
        let middle = usize::try_from(length).unwrap() / 2;
        let (one, other) = (format!("stub-{length}"), format!("other-{length}"));
        let first = put_html(&online, &one, Some(&url(&one)), &html(&one, &menu, &story.join(" ")));
        assert_eq!((first.verdict, first.has_story), (PageVerdict::New, true));
        story[middle] = "elsewhere".to_owned();
        if length > 40 {
            story[middle + 10] = "another".to_owned();
        }
        let second = put_html(&online, &other, Some(&url(&other)), &html(&other, &menu, &story.join(" ")));
        assert_eq!(second.verdict, verdict, "{second:?}");
    }
}
