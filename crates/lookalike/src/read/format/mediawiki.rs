//! MediaWiki dumps: `<page>…</page>` in XML, the text of the last revision in it. Articles only: pages of
//! other name spaces and redirects are passed over. Wiki markup is text.

use std::borrow::Cow;

use memchr::memmem;

use crate::page::{Body, Markup, RawPage};
use crate::read::fields::FieldNames;
use crate::read::format::tagged::{Tags, element, text_of};

pub(crate) const TAGS: Tags = Tags { open: b"<page", close: b"</page>" };

/// The article in a page.
pub(crate) fn page<'a>(bytes: &'a [u8], names: &FieldNames) -> Result<RawPage<'a>, &'static str> {
    if text_of(bytes, "ns").is_some_and(|space| space != "0") {
        return Err("other_namespace");
    }
    let revision = memmem::rfind(bytes, b"<revision").map_or(bytes, |at| &bytes[at..]);
    if memmem::find(&bytes[..bytes.len() - revision.len()], b"<redirect").is_some() {
        return Err("redirect");
    }
    let text = String::from_utf8_lossy(element(revision, "text").unwrap_or_default());
    let text = if text.contains('&') { Cow::Owned(htmlize::unescape(text).into_owned()) } else { text };
    let rank = if names.rank_is_date { Some("timestamp") } else { names.rank_field() };
    Ok(RawPage {
        id: text_of(bytes, "id"),
        title: text_of(bytes, "title"),
        rank_value: rank.and_then(|field| text_of(revision, field)).and_then(|value| names.rank_value(&value)),
        ..RawPage::new(Body::Text(text), Markup::Text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::fields::{Fields, RankField};

    #[test]
    fn articles_are_pages_and_talk_is_not() {
        let names = FieldNames::new(&Fields::default(), RankField::Date);
        let article = "<page>\n<title>Fish &amp; chips</title><ns>0</ns><id>12</id><revision><id>99</id><timestamp>2024-01-02T00:00:00Z</timestamp><text bytes=\"9\" xml:space=\"preserve\">A ''dish'' &lt;ref&gt;x&lt;/ref&gt;</text></revision></page>";
        let found = page(article.as_bytes(), &names).unwrap();
        assert_eq!((found.id.as_deref(), found.title.as_deref()), (Some("12"), Some("Fish & chips")));
        assert!(matches!(&found.body, Body::Text(text) if text == "A ''dish'' <ref>x</ref>"));
        assert!(found.rank_value.is_some());
        assert_eq!(page(b"<page><ns>1</ns></page>", &names).err(), Some("other_namespace"));
        assert_eq!(page(b"<page><redirect title=\"x\"/><revision></revision></page>", &names).err(), Some("redirect"));
        assert!(page(b"<page></page>", &names).is_ok());
    }
}
