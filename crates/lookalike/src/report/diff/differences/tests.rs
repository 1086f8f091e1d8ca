//! A labelled set: pairs of small pages, and what a person says they differ in.

use std::borrow::Cow;

use super::*;
use crate::page::Markup;
use Difference::{Counter, ExecutionTime, Form, Id, Invisible, MainItem, MinorItem, ServerName, TimeStamp, Url};

const STORY: &str = "The old salt works behind the station will be turned into a store for the heat of summer, the council decided on Monday evening after a debate of four hours. Warm water is to be pumped into the chambers from May on and taken out again when the first frost comes. Two engineers of the town had proposed the plan nine years ago, and nobody had listened to them until the price of gas doubled.";
const OTHER: &str = "A choir of forty retired miners has won the open song contest of the province, ahead of two student choirs and a group from the state opera. The oldest of the singers is ninety-one, and only six of them can read music. They had come to see the exhibition and put down their names because it was raining, said the man who drove the bus.";

/// A page: what stands in the head, the menu, the story, the footer.
fn page(url: &str, title: &str, story: &str, footer: &str) -> RawPage<'static> {
    let html = format!(
        "<html><head><title>{title} - Valley Post</title></head><body><ul><li>Home</li><li>Villages</li><li>Markets</li></ul><h1>{title}</h1><p>{story}</p><div>{footer}</div></body></html>"
    );
    RawPage { url: Some(Cow::Owned(url.to_owned())), ..RawPage::new(Body::Text(Cow::Owned(html)), Markup::Html) }
}

/// Two pages that differ in their footers.
fn footers(left: &str, right: &str) -> (RawPage<'static>, RawPage<'static>) {
    let of = |footer: &str| page("http://valley.example/salt", "Salt works", STORY, footer);
    (of(left), of(right))
}

fn kinds(pair: &(RawPage<'static>, RawPage<'static>)) -> Vec<Difference> {
    classify(&pair.0, &pair.1).kinds.into_iter().collect()
}

/// Footers, and the label of a person.
const FOOTERS: &[(&str, &str, &[Difference])] = &[
    // Time stamps.
    ("Last changed 12 March 2006", "Last changed 14 April 2006", &[TimeStamp]),
    ("Updated 2006-03-12 10:11:12", "Updated 2006-03-13 08:00:59", &[TimeStamp]),
    ("It is 12:31 in town", "It is 09:59 in town", &[TimeStamp]),
    ("Sunday, March 5, 2006", "Monday, March 6, 2006", &[TimeStamp]),
    ("Printed on Tuesday", "Printed on Friday", &[TimeStamp]),
    ("posted 5 minutes ago", "posted 3 hours ago", &[TimeStamp]),
    ("© Copyright 2003-2022, the authors", "© Copyright 2003-2023, the authors", &[TimeStamp]),
    ("archived 20060312101112", "archived 20070101000000", &[TimeStamp]),
    ("05/03/2006", "06/03/2006", &[TimeStamp]),
    // Execution times.
    ("Page generated in 0.1234 seconds", "Page generated in 0.0871 seconds", &[ExecutionTime]),
    ("Took 12 ms and 8 queries", "Took 19 ms and 8 queries", &[ExecutionTime]),
    ("Rendered in 0.031s", "Rendered in 0.118s", &[ExecutionTime]),
    ("Query took 1.5 secs", "Query took 2.25 secs", &[ExecutionTime]),
    // Ids.
    ("Message-ID: 20060312.GA1234@mail", "Message-ID: 20060313.GA9876@mail", &[Id]),
    ("PHPSESSID=ab12cd34ef", "PHPSESSID=99ffcc0012", &[Id]),
    ("session 550e8400-e29b-41d4-a716-446655440000", "session 123e4567-e89b-12d3-a456-426614174000", &[Id]),
    ("request id: 8f3a91c2d4", "request id: 77b0e1f9aa", &[Id]),
    ("token d41d8cd98f00b204e9800998ecf8427e", "token 9e107d9d372bb6826bd81d3542a419d6", &[Id]),
    ("Ticket #4711001 was opened", "Ticket #4711987 was opened", &[Id]),
    // Counters.
    ("1,234 visitors so far", "1,301 visitors so far", &[Counter]),
    ("Views: 99", "Views: 112", &[Counter]),
    ("You are visitor number 5412", "You are visitor number 5977", &[Counter]),
    ("This page was read 31 times", "This page was read 48 times", &[Counter]),
    ("3 comments", "11 comments", &[Counter]),
    ("17 users online", "4 users online", &[Counter]),
    ("Downloads: 10,001", "Downloads: 10,455", &[Counter]),
    // Servers.
    ("served by web03", "served by web11", &[ServerName]),
    ("Server: srv-12.valley.example", "Server: srv-07.valley.example", &[ServerName]),
    ("host node4", "host node9", &[ServerName]),
    ("backend app-2 answered", "backend app-7 answered", &[ServerName]),
    // Several of them.
    ("12 March 2006, 99 visitors", "13 March 2006, 104 visitors", &[TimeStamp, Counter]),
    (
        "Updated 10:00. Generated in 0.2 seconds by web03",
        "Updated 11:30. Generated in 0.7 seconds by web04",
        &[TimeStamp, ExecutionTime, ServerName],
    ),
    // Minor items.
    ("See also: bakery saved", "See also: night ferry returns", &[MinorItem]),
    ("Advertisement: buy boots", "Advertisement: rent a boat", &[MinorItem]),
    ("version 13", "version 14", &[MinorItem]),
    ("Weather: rain", "Weather: fog", &[MinorItem]),
    ("Poll: more trams? 12 March 2006", "Poll: fewer cars? 13 March 2006", &[TimeStamp, MinorItem]),
    // Not what they look like.
    ("costs 1,234 crowns", "costs 1,301 crowns", &[MinorItem]),
    ("chapter 12", "chapter 13", &[MinorItem]),
    ("the A320", "the B747", &[MinorItem]),
    ("by Anna May", "by Otto June", &[MinorItem]),
];

#[test]
fn footers_of_the_labelled_set() {
    let mut wrong = Vec::new();
    for (left, right, label) in FOOTERS {
        let found = kinds(&footers(left, right));
        if found != *label {
            wrong.push(format!("{left} / {right}: {found:?} instead of {label:?}"));
        }
    }
    assert!(wrong.len() * 20 <= FOOTERS.len(), "{} of {}:\n{}", wrong.len(), FOOTERS.len(), wrong.join("\n"));
}

#[test]
fn the_page_s_own_url() {
    let of = |url: &str, name: &str| page(url, "For sale", &STORY.replace("The old salt works", name), "Buy this name");
    let parked =
        (of("http://alpha-shop.example/", "alpha-shop.example"), of("http://beta-shop.example/", "beta-shop.example"));
    assert_eq!(kinds(&parked), [Url]);
    let link = (
        page("http://a.example/x1", "Salt", STORY, "Link to this page: http://a.example/x1"),
        page("http://a.example/x2", "Salt", STORY, "Link to this page: http://a.example/x2"),
    );
    assert_eq!(kinds(&link), [Url]);
}

#[test]
fn a_word_of_the_path_may_be_what_the_page_is_about() {
    let of = |what: &str| {
        page(
            &format!("http://shop.example/{what}"),
            &format!("{what} for sale"),
            &STORY.replace("salt works", what),
            "",
        )
    };
    assert_eq!(kinds(&(of("camera"), of("lens"))), [MainItem]);
}

#[test]
fn what_the_page_is_about() {
    let same = |story: &str, title: &str| page("http://a.example/", title, story, "Home of the salt");
    assert_eq!(kinds(&(same(STORY, "News"), same(OTHER, "News"))), [MainItem]);
    assert_eq!(kinds(&(same(STORY, "Salt works"), same(STORY, "Old choir"))), [MainItem], "the title is another");
    let edited = STORY.replace("nobody had listened to them", "the mayor had laughed at them");
    assert_eq!(kinds(&(same(STORY, "Salt"), same(&edited, "Salt"))), [MainItem]);
    assert_eq!(kinds(&(same(STORY, "Salt"), same(STORY, "Salt"))), []);
}

#[test]
fn what_nobody_sees_and_what_a_form_is_filled_with() {
    let with = |more: &str| page("http://a.example/", "Salt", &format!("{STORY}{more}"), "");
    assert_eq!(kinds(&(with("<img src=a.png>"), with("<img src=b.png>"))), [Invisible]);
    let form = |name: &str| with(&format!("<form>Name <input type=text name=n value=\"{name}\"></form>"));
    assert_eq!(kinds(&(form("Anna"), form("Otto"))), [Form]);
    let hidden = |value: &str| with(&format!("<form><input type=hidden name=n value={value}></form>"));
    assert_eq!(kinds(&(hidden("1"), hidden("2"))), [], "neither seen nor filled in");
    let area = |text: &str| with(&format!("<form><textarea>{text}</textarea></form>"));
    assert_eq!(kinds(&(area("Dear editor"), area("To whom"))), [Form]);
}

#[test]
fn labels_and_verdicts() {
    let of = |kinds: &[Difference]| {
        let found = Differences { kinds: kinds.iter().copied().collect(), words: 2 };
        (found.label(), found.kind(), found.verdict())
    };
    let expected = |label: &str, kind: &str, verdict: &'static str| (label.to_owned(), kind.to_owned(), verdict);
    assert_eq!(of(&[]), expected("nothing", "none", "correct"));
    assert_eq!(of(&[Url]), expected("the URL only", "URL only", "correct"));
    assert_eq!(of(&[Counter, TimeStamp]), expected("a date or time and a counter", "combination", "correct"));
    assert_eq!(of(&[Form]).2, "undecided");
    assert_eq!(of(&[MainItem, TimeStamp]), expected("the main text (also a date or time)", "main item", "incorrect"));
}

#[test]
fn strange_input_is_no_trouble() {
    let text = |text: &str| RawPage::new(Body::Text(Cow::Owned(text.to_owned())), Markup::Unknown);
    for (left, right) in
        [("", ""), ("", "a"), ("<input value=", "<textarea>"), ("日本語", "日本"), ("<html>\u{0}", "<html><p>é")]
    {
        let _ = classify(&text(left), &text(right));
    }
    let bytes = RawPage::new(Body::Bytes(Cow::Owned(vec![0xff, 0xfe, b'<', b'p', b'>', 0x80])), Markup::Html);
    let _ = classify(&bytes, &text("x"));
}
