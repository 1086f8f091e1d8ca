//! The part of a page that a reader view would show, by dom_smoothie.
//!
//! It builds a tree, whose cost grows with the square of the nesting; so deep and very large pages are not
//! given to it. Where it finds nothing, or next to nothing, the caller goes on without it.

use std::panic::catch_unwind;

use dom_smoothie::Readability;
use url::Url;

use crate::text::html;
use crate::text::page_text::PageText;

/// Open elements that a page may have at a time.
const MOST_DEPTH: usize = 512;
/// Pages larger than this are not made into trees.
const MOST_BYTES: usize = 8 << 20;
/// Words below which nothing was found.
const FEW_WORDS: usize = 50;

/// Replaces `main` by the text of the main content; false if there is none.
pub(super) fn extract(html: &str, url: Option<&str>, main: &mut PageText) -> bool {
    if html.len() > MOST_BYTES || depth(html) > MOST_DEPTH {
        return false;
    }
    let base = url.filter(|url| Url::parse(url).is_ok());
    // A panic in a parser of other people's pages costs this page its reader view, not the run.
    let article = catch_unwind(|| Readability::new(html, base, None).and_then(|mut page| page.parse()));
    let Ok(Ok(article)) = article else { return false };
    html::extract(&article.content, url, main);
    main.text.split_whitespace().nth(FEW_WORDS).is_some()
}

/// How many elements are open at a time, at the most; those that close by themselves are not counted.
fn depth(html: &str) -> usize {
    const CLOSED_BY_THEMSELVES: [&[u8]; 25] = [
        b"p",
        b"li",
        b"td",
        b"th",
        b"tr",
        b"dt",
        b"dd",
        b"option",
        b"thead",
        b"tbody",
        b"tfoot",
        b"colgroup",
        b"br",
        b"hr",
        b"img",
        b"input",
        b"meta",
        b"link",
        b"col",
        b"area",
        b"base",
        b"wbr",
        b"source",
        b"embed",
        b"param",
    ];
    let bytes = html.as_bytes();
    let (mut now, mut most) = (0usize, 0);
    for at in memchr::memchr_iter(b'<', bytes) {
        let is_end = bytes.get(at + 1) == Some(&b'/');
        let name = &bytes[at + 1 + usize::from(is_end)..];
        let length = name.iter().take(12).take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let name = name[..length].to_ascii_lowercase();
        if name.is_empty() || CLOSED_BY_THEMSELVES.contains(&name.as_slice()) {
            continue;
        }
        now = if is_end { now.saturating_sub(1) } else { now + 1 };
        most = most.max(now);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_story_is_found_and_the_menu_is_not() {
        let paragraph = "<p>The council said on Monday that the bridge over the river would be closed for repairs, and that it would not be opened again before the end of the year, as the work was harder than had been thought.</p>";
        let menu = "<ul><li><a href=/a>Home</a><li><a href=/b>News</a><li><a href=/c>Sports</a></ul>";
        let page = format!(
            "<html><body><div id=nav>{menu}</div><div class=article>{}</div></body></html>",
            paragraph.repeat(6)
        );
        let mut main = PageText::default();
        assert!(extract(&page, Some("http://a.example/"), &mut main));
        assert!(main.text.contains("The council said") && !main.text.contains("Sports"), "{}", main.text);
        assert!(!extract(&format!("<html><body>{menu}</body></html>"), None, &mut main));
    }

    #[test]
    fn deep_pages_are_not_made_into_trees() {
        let deep = format!("{}{}{}", "<div>".repeat(100_000), "word ".repeat(200), "</div>".repeat(100_000));
        assert!(!extract(&deep, None, &mut PageText::default()));
        assert_eq!(depth("<p><p><p><div><b>x</b></div><br>"), 2);
    }
}
