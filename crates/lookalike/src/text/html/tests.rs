//! The text that pages show, against another tokenizer.

use super::*;
use html5gum::{DefaultEmitter, Token as GumToken, Tokenizer as Gum};
use proptest::prelude::*;

fn words(html: &str) -> Vec<String> {
    let mut page = PageText::default();
    extract(html, None, &mut page);
    page.text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn formatting_vanishes_and_other_markup_parts_words() {
    assert_eq!(words("foo<b>bar</b>"), ["foobar"]);
    assert_eq!(words("<a>Home</a><a>News</a>"), ["Home", "News"]);
    assert_eq!(words("one<br>two<td>three</td>four"), ["one", "two", "three", "four"]);
    assert_eq!(words("H<SUB>2</SUB>O x<sup>2</sup>"), ["H2O", "x2"]);
}

#[test]
fn scripts_styles_and_comments_are_no_text() {
    assert_eq!(words("a<script>var x = '<b>no</b>';</script>b"), ["a", "b"]);
    assert_eq!(words("a<STYLE>p { }</STYLE >b<!-- no -- no > -->c<!-->d<!--->e"), ["a", "b", "c", "d", "e"]);
    assert_eq!(words("a<script>no"), ["a"]);
}

#[test]
fn templates_and_articles_in_scripts_are_text_on_request() {
    let html = "a<script type='text/x-handlebars-template'><p>one &amp; <b>two</b></p></script>b\
        <script type=\"application/ld+json\">{\"@graph\": [{\"articleBody\": \"the story\"}]}</script>c\
        <script type='application/ld+json'>{broken</script><script type=module>no</script><script>no</script>";
    let mut page = PageText::default();
    extract_with(html, None, true, &mut page);
    assert_eq!(page.text.split_whitespace().collect::<Vec<_>>(), ["a", "one", "&", "two", "b", "the", "story", "c"]);
    assert_eq!(words(html), ["a", "b", "c"]);
}

#[test]
fn entities_are_decoded_once() {
    assert_eq!(
        words("caf&eacute; &#x4e2d; A&amp;B &amp;lt; AT&T &copy 2020"),
        ["café", "中", "A&B", "&lt;", "AT&T", "©", "2020"]
    );
}

#[test]
fn broken_markup_keeps_its_text() {
    assert_eq!(words("1 < 2 </ x>and a<p class=\"never closed>b"), ["1", "<", "2", "and", "a"]);
    assert_eq!(words("a <b <i>c</i"), ["a", "c"]);
    assert_eq!(words("a</>b"), ["ab"]);
    assert_eq!(words("<p title='a > b'>text"), ["text"]);
}

#[test]
fn the_title_is_found_and_counts_as_text() {
    let mut page = PageText::default();
    extract("<html><title>Fish &amp; <b> chips</title><body>Menu</body>", None, &mut page);
    assert_eq!(page.title(), Some("Fish & <b> chips"));
    assert!(page.text.ends_with("Menu\n"));
}

#[test]
fn own_images_count_by_name_and_foreign_ones_by_url() {
    let token = |html: &str, url: Option<&str>| {
        let mut page = PageText::default();
        extract(html, url, &mut page);
        assert_eq!(page.images.len(), 1, "{html}");
        page.images[0].token
    };
    let own = term_token(b"cat.png");
    assert_eq!(token("<img src=/pictures/cat.png?w=3>", None), own);
    assert_eq!(token("<IMG alt=x SRC='http://a.org/p/Cat.png'>", Some("http://a.org/x")), own);
    assert_eq!(token("<img src=\"//a.org/cat.png\">", Some("https://a.org/")), own);
    let foreign = term_token(b"http://b.org/cat.png");
    assert_eq!(token("<img src=http://b.org/cat.png>", Some("http://a.org/")), foreign);
    assert_eq!(token("<img src=http://b.org/cat.png>", None), foreign);
}

#[test]
fn deep_nesting_and_long_attributes_take_linear_time() {
    // Quadratic behaviour would take minutes here.
    let deep = format!("{}x{}", "<div>".repeat(200_000), "</div>".repeat(200_000));
    assert_eq!(words(&deep), ["x"]);
    let attributes = format!("<p {}>x", "a=\"b\" ".repeat(200_000));
    assert_eq!(words(&attributes), ["x"]);
    let dashes = format!("<!-- {} -->x", "--".repeat(400_000));
    assert_eq!(words(&dashes), ["x"]);
    let open_scripts = "<script>".repeat(100_000);
    assert!(words(&open_scripts).is_empty());
}

/// The text html5gum finds, with every tag and comment a blank.
fn reference(html: &str) -> Vec<String> {
    let mut text = String::new();
    for token in Gum::new_with_emitter(html, DefaultEmitter::default()).flatten() {
        match token {
            GumToken::String(piece) => text.push_str(&String::from_utf8_lossy(&piece)),
            _ => text.push(' '),
        }
    }
    text.split_whitespace().map(str::to_owned).collect()
}

proptest! {
    /// Against an independent tokenizer, on markup without raw-text and formatting elements
    /// (those are ours to treat, above).
    #[test]
    fn text_equals_that_of_another_tokenizer(pieces in prop::collection::vec(prop::sample::select(vec![
        "word", " ", "<p>", "</p>", "<a href=\"x>y\">", "</a>", "<br/>", "<!-- c -->", "<!-->", "<!--->", "<!--a--!>",
        "<!doctype html>", "<?php ?>", "&amp;", "&eacute;", "&copy", "&#65;", "&notit;", "&", "<", ">", "</", "<td a=b c='d' e>",
        "</td x>", "<=>", "</ x>", "\"", "'", "=", "--", "<div/class=x>", "é", "中",
    ]), 0..40)) {
        let html = pieces.concat();
        // A file that ends inside a tag or comment is cut short by both, in slightly different
        // places; closing text avoids that.
        let html = format!("{html} \"'--> end");
        prop_assert_eq!(words(&html), reference(&html), "{}", html);
    }

    #[test]
    fn any_markup_is_survived(html in "[<>/!a-c='\" \\-&;#é]{0,80}") {
        words(&html);
    }
}

#[test]
fn links_are_found_where_they_are_followed() {
    let html = r##"<base href="/ignored/"><a href="b.html#part">b</a> <A HREF='../c?x=1&amp;y=2'>c</A> <area href=//other.example/>
        <!-- <a href="comment"> --><script>"<a href='script'>"</script><a name=x>no</a><a href="#top">top</a>
        <a href="mailto:a@b.example">m</a><a href="javascript:void(0)">j</a><a href=" http://Example.org:80/d ">d</a>"##;
    let mut page = PageText::default();
    extract_links(html, Some("http://site.example/a/x.html"), &mut page);
    let expected = [
        "http://site.example/a/b.html",
        "http://site.example/c?x=1&y=2",
        "http://other.example/",
        "http://example.org/d",
    ];
    assert_eq!(page.links, expected);
    // Without a URL, what is relative stays so: a mirrored page has the same links.
    extract_links(html, None, &mut page);
    assert_eq!(page.links, ["b.html", "../c?x=1&y=2", "http://other.example/", "http://example.org/d"]);
    assert!(page.text.contains("top"), "the text is there as ever");
}
