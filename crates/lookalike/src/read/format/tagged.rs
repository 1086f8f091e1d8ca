//! Documents that a pair of tags encloses: `<DOC>…</DOC>`, `<REUTERS …>…</REUTERS>`, `<page>…</page>`.

use std::borrow::Cow;

use memchr::memmem;

use crate::read::format::documents::NextDocument;

/// The start and the end of a document.
pub(super) struct Tags {
    /// Up to the name; an attribute or `>` follows.
    pub(super) open: &'static [u8],
    pub(super) close: &'static [u8],
}

impl Tags {
    /// The next document; see [`Documents::next`](crate::read::format::documents::Documents::next).
    pub(super) fn next(&self, bytes: &[u8], from: usize) -> NextDocument {
        match self.next_open(bytes, from) {
            Some(start) => match self.end(&bytes[start..]) {
                Some(length) => NextDocument::Whole(start..start + length),
                None => NextDocument::Begun(start),
            },
            // A tag may be half there.
            None => NextDocument::None(bytes.len().saturating_sub(self.open.len().max(self.close.len()))),
        }
    }

    /// Where a document ends.
    pub(super) fn end(&self, bytes: &[u8]) -> Option<usize> {
        memmem::find(bytes, self.close).map(|at| at + self.close.len())
    }

    /// Where the next document begins, from `from` on.
    fn next_open(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        while let Some(found) = memmem::find(&bytes[at..], self.open) {
            let start = at + found;
            match bytes.get(start + self.open.len()) {
                Some(b'>' | b' ' | b'\t' | b'\r' | b'\n') => return Some(start),
                _ => at = start + 1,
            }
        }
        None
    }
}

/// What stands between `<name …>` and `</name>`, from `bytes` on.
pub(super) fn element<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let open = format!("<{name}");
    let mut at = 0;
    loop {
        let start = at + memmem::find(&bytes[at..], open.as_bytes())? + open.len();
        match bytes.get(start)? {
            b'>' | b' ' | b'\t' | b'\r' | b'\n' => {
                let content = start + memchr::memchr(b'>', &bytes[start..])? + 1;
                if bytes[content - 2] == b'/' {
                    return Some(&[]);
                }
                let length = memmem::find(&bytes[content..], format!("</{name}>").as_bytes())?;
                return Some(&bytes[content..content + length]);
            }
            _ => at = start,
        }
    }
}

/// The same as text, without entities and white space around it.
pub(super) fn text_of<'a>(bytes: &'a [u8], name: &str) -> Option<Cow<'a, str>> {
    let text = String::from_utf8_lossy(element(bytes, name)?.trim_ascii());
    let text = if text.contains('&') { Cow::Owned(htmlize::unescape(text).into_owned()) } else { text };
    Some(text).filter(|text| !text.is_empty())
}
