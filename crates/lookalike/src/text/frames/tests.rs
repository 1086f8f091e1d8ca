use std::sync::Arc;

use super::*;
use crate::page::RawPage;
use crate::spill::Spill;
use crate::text::{PageReader, Scope, TextOptions};

const OPTIONS: TextOptions = TextOptions {
    no_images: false,
    scope: Scope::Story,
    content: true,
    keep_case: false,
    mask_volatile: false,
    raw: false,
    blocks: false,
    words: false,
    scripts: false,
};

/// Sentences that no other number has.
fn story(number: usize) -> String {
    let sentence = |n: usize| {
        format!("<p>Story {number} tells in part {n} what happened to keeper{number}x{n} of lamp{number}x{n} that day.")
    };
    (0..8).map(sentence).collect()
}

fn page(story: &str) -> String {
    format!(
        "<html><head><title>The Daily Lamp</title></head><body><div class='top'>The Daily Lamp</div>\
         <div class='links'><ul><li>Home<li>World<li>Sports<li>Weather today</ul></div>\
         <div class='text'>{story}</div>\
         <div class='bottom'><p>The Daily Lamp has been published at the harbour since the year the lighthouse was lit.</div>"
    )
}

fn learn<'p>(pages: impl IntoIterator<Item = &'p String>) -> Arc<Frames> {
    let mut learner = learner();
    let mut reader = PageReader::new(OPTIONS);
    pages.into_iter().for_each(|page| add(&mut learner, &mut reader, &RawPage::html(page)));
    Arc::new(learner.finish().unwrap())
}

fn learner() -> FrameLearner {
    FrameLearner::new(Spill::new("not-written".into(), usize::MAX))
}

fn add(learner: &mut FrameLearner, reader: &mut PageReader, page: &RawPage<'_>) {
    let sample = reader.hold(page, false, learner).and_then(|(held, _)| held.sample());
    sample.into_iter().for_each(|sample| learner.add(sample).unwrap());
}

/// What is left of a page.
fn left(frames: &Arc<Frames>, page: &str) -> String {
    let mut reader = PageReader::new(OPTIONS).without(Some(Arc::clone(frames)));
    let page = RawPage::html(page);
    reader.read(&page).content.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_frame_of_different_stories_is_left_out_and_the_stories_stay() {
    let pages: Vec<String> = (0..12).map(|number| page(&story(number))).collect();
    let frames = learn(&pages);
    for (number, page) in pages.iter().enumerate() {
        let left = left(&frames, page);
        assert!(!left.contains("Daily Lamp") && !left.contains("Sports") && !left.contains("harbour"), "{left}");
        assert!(left.starts_with(&format!("Story {number} tells in part 0")), "{left}");
        assert_eq!(left.matches("tells in part").count(), 8, "{left}");
    }
    // Also of a page that was not learnt from; a stub has its few words and nothing else.
    assert!(left(&frames, &page(&story(99))).starts_with("Story 99"));
    assert_eq!(left(&frames, &page("<p>This page has moved.")), "This page has moved.");
}

#[test]
fn copies_of_a_story_do_not_become_frame() {
    // Forty copies that differ in a date, among few other stories of the site.
    let copy = |day: usize| page(&format!("<p>Printed on day {day}{}", story(1)));
    let pages: Vec<String> = (0..40).map(copy).chain((2..12).map(|number| page(&story(number)))).collect();
    let frames = learn(&pages);
    assert_eq!(left(&frames, &pages[0]).matches("tells in part").count(), 8);
    // The same without any other story: nothing says what is frame.
    let frames = learn(&pages[..40]);
    assert!(left(&frames, &pages[0]).contains("tells in part 7"));
}

#[test]
fn little_is_learnt_from_little() {
    for pages in [vec![], vec![page(&story(1))], vec![page(&story(1)), page(&story(1))], vec![page("a"), page("b")]] {
        let frames = learn(&pages);
        assert!(frames.rows().all(|row| row.block.is_none()));
        assert!(left(&frames, &page(&story(1))).contains("tells in part 7"));
    }
    assert_eq!(left(&learn(&[]), ""), "");
}

#[test]
fn one_template_with_one_word_changed_is_not_a_frame() {
    // The rest of such a page is too little to say that it is another page.
    let pages: Vec<String> = (0..30).map(|number| page(&format!("<p>Number {number}"))).collect();
    assert!(left(&learn(&pages), &pages[0]).contains("lighthouse"));
}

#[test]
fn sites_that_look_different_are_learnt_apart() {
    let other = |number: usize| {
        format!(
            "<html><body><table class='shell'><tr><td class='navi'>News Archive Contact</td><td class='main'>{}</td></tr>\
             <tr><td class='imprint'>Published by Valley Press</td></tr></table>",
            story(number)
        )
    };
    // Each story stands on both sites, in two different frames: it is the story all the same.
    let pages: Vec<String> = (0..12).flat_map(|number| [page(&story(number)), other(number)]).collect();
    let frames = learn(&pages);
    assert_eq!(left(&frames, &pages[0]), left(&frames, &pages[1]));
    assert!(left(&frames, &pages[0]).starts_with("Story 0"));
}

#[test]
fn what_is_learnt_does_not_depend_on_the_order_and_survives_storing() {
    let pages: Vec<String> = (0..20).map(|number| page(&story(number))).collect();
    let one: Vec<FrameRow> = learn(&pages).rows().collect();
    let other: Vec<FrameRow> = learn(pages.iter().rev()).rows().collect();
    assert_eq!(one, other);
    assert!(one.iter().any(|row| row.example == "Sports" && row.pages == 20 && row.contexts == 20), "{one:?}");
    let again = Frames::from_rows(one.clone()).unwrap();
    assert_eq!(again.rows().collect::<Vec<_>>(), one);
    let mut wrong = one.clone();
    wrong[0].markup = Some("xyz".to_owned());
    assert!(Frames::from_rows(wrong).is_err());
    let first_block = one.iter().position(|row| row.block.is_some()).unwrap();
    assert!(Frames::from_rows(one[first_block..].to_vec()).is_err());
}

#[test]
fn markup_is_not_believed_where_it_calls_the_story_an_aside() {
    let pages: Vec<String> =
        (0..12).map(|number| page(&format!("<div class='sidebar'>{}</div>", story(number)))).collect();
    assert!(left(&learn(&pages), &pages[3]).contains("Story 3 tells in part 7"));
    let with_menu: Vec<String> =
        (0..12).map(|number| page(&format!("<div class='menu'>Topic {number}</div>{}", story(number)))).collect();
    assert!(!left(&learn(&with_menu), &with_menu[3]).contains("Topic"));
}

#[test]
fn copies_with_a_few_words_of_their_own_do_not_become_frame() {
    let own = |day: usize| (0..25).map(|n| format!("reader{day}x{n} ")).collect::<String>();
    for copies in [3, 8, 40] {
        let copy = |day: usize| page(&format!("{}<p>{}", story(1), own(day)));
        let pages: Vec<String> = (0..copies).map(copy).chain([page(&story(2))]).collect();
        assert_eq!(left(&learn(&pages), &pages[0]).matches("tells in part").count(), 8, "{copies} copies");
    }
}

#[test]
fn a_page_that_is_all_form_or_menu_is_not_emptied() {
    let table =
        |number: usize| (0..30).map(|n| format!("<tr><td>item {number}-{n}<td>{}", number * n)).collect::<String>();
    let pages: Vec<String> = (0..12)
        .map(|number| {
            format!("<html><body><p>Quote of the day<div class='menu'><table>{}</table></div>", table(number))
        })
        .collect();
    assert!(left(&learn(&pages), &pages[5]).contains("item 5-29"));
}

#[test]
fn many_hosts_are_learnt_from_in_little_memory_whatever_their_order() {
    let mut reader = PageReader::new(OPTIONS);
    let mut add = |learner: &mut FrameLearner, host: usize, number: usize| {
        let html = page(&story(number));
        let mut page = RawPage::html(&html);
        page.url = Some(format!("https://host{host}.example/").into());
        add(learner, &mut reader, &page);
    };
    let hosts: Vec<(usize, usize)> = (0..60).flat_map(|host| (0..6).map(move |number| (host, number))).collect();
    let (mut one, mut other) = (learner(), learner());
    hosts.iter().for_each(|&(host, number)| add(&mut one, host, number));
    hosts.iter().rev().for_each(|&(host, number)| add(&mut other, host, number));
    assert_eq!(one.pages, 360);
    let (one, other) = (one.finish().unwrap(), other.finish().unwrap());
    assert!(one.rows().eq(other.rows()));
    for level in &one.levels {
        assert_eq!(level.groups.leaders.len(), 60, "hosts have nothing in common: {:?}", level.by);
    }
}

#[test]
fn a_menu_that_is_all_there_is_on_a_short_page_is_frame_all_the_same() {
    // The markup says so; on pages with a story that is believed, on a page with a few words it is not.
    let menu: String = (0..40).map(|n| format!("<li><a href={n}>Chapter {n}</a>")).collect();
    let page =
        |story: &str| format!("<html><body><div class='toc'><ul>{menu}</ul></div><div class='text'>{story}</div>");
    let pages: Vec<String> = (0..12).map(|number| page(&story(number))).chain([page("<p>See below.")]).collect();
    assert_eq!(left(&learn(&pages), &pages[12]), "See below.");
}

#[test]
fn the_menu_of_a_small_section_is_frame() {
    // Four pages of each of twelve sections, which have menus of their own.
    let menu = |section: usize| (0..30).map(|n| format!("<li><a href=x>Item {section} of {n}</a>")).collect::<String>();
    let page = |section: usize, number: usize| {
        let story = story(section * 4 + number);
        format!("<html><body><div class='side'><ul>{}</ul></div><div class='text'>{story}</div>", menu(section))
    };
    let pages: Vec<String> = (0..48).map(|number| page(number / 4, number % 4)).collect();
    let frames = learn(&pages);
    for (number, page) in pages.iter().enumerate() {
        let left = left(&frames, page);
        assert!(left.starts_with(&format!("Story {number} tells")) && !left.contains("Item"), "{left}");
    }
}

#[test]
fn a_list_of_links_on_one_page_is_not_frame() {
    let links = |number: usize| (0..30).map(|n| format!("<li><a href=x>Link {number} to {n}</a>")).collect::<String>();
    let pages: Vec<String> = (0..12).map(|number| page(&format!("<ul>{}</ul>", links(number)))).collect();
    assert_eq!(left(&learn(&pages), &pages[3]).matches("Link 3 to").count(), 30);
}

#[test]
fn a_site_that_changed_its_template_has_two_frames() {
    let other = |story: &str| {
        format!(
            "<html><body><section class='masthead'><h1>The Daily Lamp, redesigned</h1></section><article>{story}</article>\
             <section class='colophon'><p>The Daily Lamp comes to you from the harbour, now in colours and twice a day.</section>"
        )
    };
    let pages: Vec<String> = (0..12).flat_map(|number| [page(&story(number)), other(&story(number + 100))]).collect();
    let frames = learn(&pages);
    assert!(left(&frames, &pages[4]).starts_with("Story 2 tells"));
    let new = left(&frames, &pages[5]);
    assert!(new.starts_with("Story 102 tells") && !new.contains("redesigned") && !new.contains("colours"), "{new}");
    // The same story in both is the same text.
    assert_eq!(left(&frames, &page(&story(50))), left(&frames, &other(&story(50))));
}

#[test]
fn a_name_or_a_date_in_a_frame_stays_and_the_rest_of_the_frame_goes() {
    let with_visitor = |number: usize| {
        page(&story(number)).replace(
            "<div class='text'>",
            &format!("<div class='you'>Hello visitor{number}, it is day {number}</div><div class='text'>"),
        )
    };
    let pages: Vec<String> = (0..12).map(with_visitor).collect();
    let left = left(&learn(&pages), &pages[7]);
    assert!(left.starts_with("Hello visitor7, it is day 7 Story 7 tells"), "{left}");
    assert!(!left.contains("Sports") && !left.contains("harbour"), "{left}");
}

#[test]
fn odd_pages_are_learnt_from_without_harm() {
    let huge = format!("<html><body><p>{}", "word ".repeat(2 << 20));
    let pages: Vec<String> = ["", "<html>", "<html><body><div></div><p>&nbsp;", &huge].map(str::to_owned).into();
    let frames = learn(&pages);
    assert!(frames.rows().all(|row| row.block.is_none()));
    assert_eq!(left(&frames, &huge).split(' ').count(), 2 << 20);
    assert_eq!(left(&frames, "<html><body><div></div>"), "");
}

#[test]
fn a_site_of_very_many_pages_is_learnt_from_a_sample() {
    let (mut learner, mut reader) = (learner(), PageReader::new(OPTIONS));
    for number in 0..100_000 {
        let html = page(&format!("<p>{}", (0..25).map(|n| format!("w{number}x{n} ")).collect::<String>()));
        add(&mut learner, &mut reader, &RawPage::html(&html));
    }
    assert_eq!(learner.pages, 4096);
    let frames = Arc::new(learner.finish().unwrap());
    let left = left(&frames, &page(&story(5)));
    assert!(left.starts_with("Story 5 tells") && !left.contains("Sports"), "{left}");
}

#[test]
fn many_small_sites_are_not_mixed() {
    // Three pages of each of 5,000 hosts, more than are learnt from: what is learnt is right, and the rest is not learnt.
    let (mut learner, mut reader) = (learner(), PageReader::new(OPTIONS));
    let html =
        |host: usize, number: usize| page(&story(host * 3 + number)).replace("The Daily Lamp", &format!("Lamp {host}"));
    for number in 0..3 {
        for host in 0..5_000 {
            let html = html(host, number);
            let mut page = RawPage::html(&html);
            page.url = Some(format!("https://host{host}.example/").into());
            add(&mut learner, &mut reader, &page);
        }
    }
    assert!(learner.pages <= 4096 && learner.pages > 4000, "{}", learner.pages);
    let frames = Arc::new(learner.finish().unwrap());
    let mut reader = PageReader::new(OPTIONS).without(Some(Arc::clone(&frames)));
    let mut known = 0;
    for host in (0..5_000).step_by(50) {
        let html = html(host, 1);
        let mut page = RawPage::html(&html);
        page.url = Some(format!("https://host{host}.example/").into());
        let read = reader.read(&page);
        known += usize::from(read.site.is_some());
        assert_eq!(read.content.matches("tells in part").count(), 8, "host {host}");
        assert!(read.site.is_none() || !read.content.contains("Sports"), "host {host}");
    }
    assert!((10..=50).contains(&known), "{known} of 100 hosts are known");
}

#[test]
fn markup_in_any_charset_is_held() {
    let html = page(&story(1));
    let wide: Vec<u8> = [0xfeff].into_iter().chain(html.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let mut reader = PageReader::new(OPTIONS);
    // What is held and what is read as HTML must be the same, or pages would be lost on the way.
    for page in [RawPage::bytes(html.as_bytes()), RawPage::bytes(&wide), RawPage::bytes(&b"no markup"[..])] {
        let is_held = reader.hold(&page, false, &learner()).is_some();
        assert_eq!(is_held, reader.read(&page).scope.is_some());
    }
}
