//! The original of a page, shown so that nothing in it can do anything.
//!
//! Two fences, each of which would do: the markup loses what runs, loads or leads away, and the browser is told that the page
//! is in a sandbox where nothing may run or be loaded.

use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use lol_html::html_content::{ContentType, Element};
use lol_html::{RewriteStrSettings, comments, element, rewrite_str, text};

use super::failure::Outcome;
use super::{Shared, Workbench, views};

/// What the browser may do with an original: show it.
const POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// Elements that run, load or lead somewhere; what stands in them is not the page's text.
const REMOVED: &str = "script, noscript, iframe, frame, frameset, object, embed, applet, portal, fencedframe, link, meta, base, audio, video, source, track, param, template, dialog";

/// Attributes that load something, lead somewhere, or could.
const EMPTIED: [&str; 20] = [
    "src",
    "srcset",
    "href",
    "xlink:href",
    "poster",
    "background",
    "data",
    "action",
    "formaction",
    "ping",
    "manifest",
    "longdesc",
    "cite",
    "classid",
    "codebase",
    "usemap",
    "profile",
    "srcdoc",
    "http-equiv",
    "target",
];

/// Characters of a page without markup that are shown; a browser has enough of it long before.
const SHOWN_CHARS: usize = 2_000_000;

pub(super) async fn show(State(bench): State<Shared>, Path(page): Path<i64>) -> Response {
    let shown = tokio::task::spawn_blocking(move || original(&bench, page)).await;
    let page = match shown {
        Ok(Ok(page)) => page,
        Ok(Err(failure)) => views::message_page(&failure.to_string()),
        Err(_) => views::message_page("this page cannot be shown"),
    };
    let mut response = Html(page).into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

fn original(bench: &Workbench, page: i64) -> Outcome<String> {
    let (_, place) = bench.readers.ask(|reader| reader.page(page))?;
    let pages = bench.originals.read(&[place])?;
    let Some(raw) = pages.first() else { return Ok(String::new()) };
    let text = raw.unicode();
    Ok(if raw.is_html(&text) { harmless(&text) } else { plain(&text) })
}

/// A text as a page.
fn plain(text: &str) -> String {
    let end = text.char_indices().nth(SHOWN_CHARS).map_or(text.len(), |(at, _)| at);
    let shown = text[..end].replace('\0', "\u{fffd}").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let more = if end < text.len() { "\n\n… (cut here)" } else { "" };
    format!(
        "<!doctype html><meta charset=utf-8><style>body{{margin:16px;font:15px/1.5 system-ui,sans-serif}}pre{{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit}}</style><pre dir=auto>{shown}{more}</pre>"
    )
}

/// Markup without what runs, loads or leads away.
pub(super) fn harmless(html: &str) -> String {
    let clean = |element: &mut Element<'_, '_>| {
        let names: Vec<String> = element.attributes().iter().map(lol_html::html_content::Attribute::name).collect();
        for name in names {
            if name.starts_with("on") || EMPTIED.contains(&name.as_str()) {
                // Where a link led can still be read.
                let lost = element.get_attribute(&name).filter(|_| name == "href" && element.tag_name() == "a");
                element.remove_attribute(&name);
                if let Some(address) = lost {
                    element.set_attribute("title", &address)?;
                }
            } else if name == "style" {
                let style = element.get_attribute("style").unwrap_or_default();
                element.set_attribute("style", &without_addresses(&style))?;
            }
        }
        Ok(())
    };
    let settings = RewriteStrSettings::new()
        .append_element_content_handler(element!(REMOVED, |element| {
            element.remove();
            Ok(())
        }))
        .append_element_content_handler(element!("*", clean))
        .append_element_content_handler(text!("style", |chunk| {
            let style = without_addresses(chunk.as_str());
            chunk.replace(&style, ContentType::Html);
            Ok(())
        }))
        .append_element_content_handler(comments!("*", |comment| {
            comment.remove();
            Ok(())
        }))
        // An ambiguous place does not end the rewriting; the fence of the browser stands in any case.
        .with_strict(false);
    let html = html.replace('\0', "\u{fffd}");
    let clean = rewrite_str(&html, settings);
    // What cannot be rewritten is shown as text.
    clean.map_or_else(
        |_| plain(&html),
        |clean| format!("<!doctype html><meta charset=utf-8>{}", without_doctype(&clean)),
    )
}

/// A second declaration would not be one.
fn without_doctype(html: &str) -> &str {
    let start = html.trim_start_matches('\u{feff}').trim_start();
    let is_declared = start.get(..9).is_some_and(|head| head.eq_ignore_ascii_case("<!doctype"));
    if is_declared { start.split_once('>').map_or("", |(_, rest)| rest) } else { start }
}

/// A style that loads nothing; it would not be let anyway, but then the console says so.
fn without_addresses(style: &str) -> String {
    let lower = style.to_ascii_lowercase();
    if !["url(", "@import", "image-set(", "src(", "\\"].iter().any(|mark| lower.contains(mark)) {
        return style.to_owned();
    }
    // Declarations are dropped whole; braces stay where they are.
    let mut out = String::new();
    for part in style.split_inclusive(['{', '}', ';']) {
        let lower = part.to_ascii_lowercase();
        let is_loading = ["url(", "@import", "image-set(", "src(", "\\"].iter().any(|mark| lower.contains(mark));
        if is_loading {
            out.extend(part.chars().filter(|c| "{};".contains(*c)));
        } else {
            out.push_str(part);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_runs_or_loads_is_left() {
        let page = "<!DOCTYPE html><html><head><base href='http://e.example/'><meta http-equiv=refresh content='0;url=http://e.example'>\
            <link rel=stylesheet href=http://e.example/a.css><link rel=preconnect href=http://e.example>\
            <style>@import 'http://e.example/b.css'; body { color: red; background: url(http://e.example/c.png) }</style>\
            <script>alert(1)</script></head><body onload=alert(2) background=http://e.example/d.png>\
            <p style='color:red;background:URL(http://e.example/e.png)'>Text <img src=http://e.example/f.png onerror=alert(3)>\
            <a href='javascript:alert(4)' ping=http://e.example>link</a><svg onload=alert(5)><use xlink:href=http://e.example/g.svg></use></svg>\
            <iframe srcdoc='<script>alert(6)</script>'></iframe><form action=http://e.example><button formaction=http://e.example>go</button></form>\
            <video src=http://e.example/h.mp4 poster=http://e.example/i.png></video></body></html>";
        let clean = harmless(page);
        let links = clean.replace("title=\"javascript:alert(4)\"", "");
        for bad in
            ["e.example", "alert", "<script", "<iframe", "<base", "<link", "refresh", "onload", "@import", "url("]
        {
            assert!(!links.to_ascii_lowercase().contains(bad), "{bad}: {links}");
        }
        assert!(clean.contains("color: red") && clean.contains("color:red") && clean.contains(">link</a>"));
        assert!(clean.starts_with("<!doctype html><meta charset=utf-8><html>"), "{clean}");
    }

    #[test]
    fn broken_and_huge_pages_are_shown() {
        for page in ["", "<", "<p", "<p <p <p>", "<style>", "<![CDATA[ x ]]>", "a\0b<b>c", "<textarea><script>"] {
            assert!(harmless(page).starts_with("<!doctype html>"), "{page}");
        }
        let line = format!("<p>{}</p>", "x".repeat(5_000_000));
        assert!(harmless(&line).len() >= 5_000_000);
        assert!(plain("<b>&\0").contains("&lt;b&gt;&amp;\u{fffd}"));
    }
}
