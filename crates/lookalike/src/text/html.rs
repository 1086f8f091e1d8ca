//! HTML → the text a page shows.
//!
//! In: markup. Out: text in which markup has become white space (a line break where a block ends,
//! a blank elsewhere) and formatting tags have vanished; the images, each as one term with its
//! place; the title. One pass, linear whatever the nesting, with the tokenizer rules of the HTML
//! standard and no tree. Henzinger 2006, §2.

use std::ops::Range;

use memchr::{memchr, memmem};
use url::Url;

use crate::text::entities::push_unescaped;
use crate::text::outline::Outline;
use crate::text::page_text::{ImageTerm, PageText};
use crate::text::tag_name::{TagName, equal_bytes, find_byte, first_byte, word_at};
use crate::text::term::term_token;

/// What a tag does to the text around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    /// Vanishes: `foo<b>bar</b>` is one term.
    Formatting,
    /// Parts words.
    Inline,
    /// Parts blocks.
    Block,
    /// Its content is not text.
    Hidden,
    /// Its content is text without tags; entities count.
    Title,
    TextArea,
    /// Everything behind it is text.
    PlainText,
    Image,
    /// Parts words, and leads elsewhere.
    Link,
}

impl Tag {
    /// Whether it opens an element like any other.
    fn is_element(self) -> bool {
        matches!(self, Tag::Formatting | Tag::Inline | Tag::Block | Tag::Link)
    }
}

/// What the tags do whose names have at most eight bytes; all others are [`Tag::Inline`], but for those in [`classify`].
const TAGS: [(Tag, &[&str]); 7] = [
    (
        Tag::Formatting,
        &["b", "i", "em", "strong", "font", "span", "u", "s", "small", "big", "tt", "mark", "sub", "sup"],
    ),
    (Tag::Hidden, &["script", "style", "xmp", "iframe", "noembed", "noframes"]),
    (Tag::Title, &["title"]),
    (Tag::TextArea, &["textarea"]),
    (Tag::Image, &["img"]),
    (Tag::Link, &["a", "area"]),
    (
        Tag::Block,
        &[
            "address", "article", "aside", "body", "br", "button", "caption", "center", "dd", "details", "dialog",
            "dir", "div", "dl", "dt", "fieldset", "figure", "footer", "form", "frame", "frameset", "h1", "h2", "h3",
            "h4", "h5", "h6", "head", "header", "hr", "html", "legend", "li", "main", "menu", "nav", "ol", "option",
            "p", "pre", "section", "select", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
        ],
    ),
];

/// The same by their names as numbers: each is in the first free slot from the one on that its number leads to.
const SLOTS: usize = 256;
static TAGS_BY_NAME: [(u64, Tag); SLOTS] = {
    let mut slots = [(0, Tag::Inline); SLOTS];
    let mut kind = 0;
    while kind < TAGS.len() {
        let (tag, names) = TAGS[kind];
        let mut at = 0;
        while at < names.len() {
            let name = TagName::of(names[at].as_bytes()).short().expect("names in the table are short");
            let mut slot = first_slot(name);
            while slots[slot].0 != 0 {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = (name, tag);
            at += 1;
        }
        kind += 1;
    }
    slots
};

#[inline]
const fn first_slot(name: u64) -> usize {
    (name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % SLOTS
}

#[inline]
fn classify(name: TagName) -> Tag {
    let Some(short) = name.short() else {
        return match name {
            BLOCKQUOTE | FIGCAPTION => Tag::Block,
            PLAINTEXT => Tag::PlainText,
            _ => Tag::Inline,
        };
    };
    let mut slot = first_slot(short);
    loop {
        match TAGS_BY_NAME[slot] {
            (found, tag) if found == short => return tag,
            (0, _) => return Tag::Inline,
            _ => slot = (slot + 1) % SLOTS,
        }
    }
}

const BLOCKQUOTE: TagName = TagName::of(b"blockquote");
const FIGCAPTION: TagName = TagName::of(b"figcaption");
const PLAINTEXT: TagName = TagName::of(b"plaintext");

/// What a byte ends: the name of an attribute, a value without quotes; and what stands between attributes.
const ENDS_NAME: u8 = 1;
const ENDS_VALUE: u8 = 2;
const BETWEEN: u8 = 4;
static BYTE_ENDS: [u8; 256] = {
    let mut ends = [0; 256];
    let mut at = 0;
    let spaces = b" \t\n\x0c\r";
    while at < spaces.len() {
        ends[spaces[at] as usize] = ENDS_NAME | ENDS_VALUE | BETWEEN;
        at += 1;
    }
    ends[b'/' as usize] = ENDS_NAME | BETWEEN;
    ends[b'>' as usize] = ENDS_NAME | ENDS_VALUE;
    ends[b'=' as usize] = ENDS_NAME;
    ends
};

/// Extracts the text of `html` into `page`; by `page_url`, own images are distinguished from those of other hosts.
pub fn extract(html: &str, page_url: Option<&str>, page: &mut PageText) {
    extract_with(html, page_url, false, page);
}

/// The same; with `scripts`, templates and the text of articles in scripts are text.
pub fn extract_with(html: &str, page_url: Option<&str>, scripts: bool, page: &mut PageText) {
    page.clear();
    Extractor { html, bytes: html.as_bytes(), page_url, scripts, wants_links: false, outline: None, page }.run();
}

/// The same, with where its hyperlinks lead.
pub fn extract_links(html: &str, page_url: Option<&str>, page: &mut PageText) {
    page.clear();
    Extractor { html, bytes: html.as_bytes(), page_url, scripts: false, wants_links: true, outline: None, page }.run();
}

/// The same, with where each block stands in the markup.
pub fn extract_with_places(html: &str, page_url: Option<&str>, scripts: bool, page: &mut PageText) {
    page.clear();
    let mut outline = std::mem::take(&mut page.outline);
    outline.clear();
    let bytes = html.as_bytes();
    Extractor { html, bytes, page_url, scripts, wants_links: false, outline: Some(&mut outline), page }.run();
    page.places.push(outline.place(page.text.len()));
    page.outline = outline;
}

struct Extractor<'h, 'p> {
    html: &'h str,
    bytes: &'h [u8],
    page_url: Option<&'h str>,
    scripts: bool,
    wants_links: bool,
    /// The elements that are open, where places are asked for.
    outline: Option<&'p mut Outline>,
    page: &'p mut PageText,
}

/// Attributes that are looked for, and the range of the value of each; empty until it is found.
struct Wanted {
    names: &'static [&'static [u8]],
    values: [Range<usize>; 3],
}

impl Wanted {
    fn new(names: &'static [&'static [u8]]) -> Wanted {
        Wanted { names, values: [0..0, 0..0, 0..0] }
    }
}

impl Extractor<'_, '_> {
    fn run(mut self) {
        let mut at = 0;
        while at < self.bytes.len() {
            at = self.text_from(at);
            at = match self.bytes.get(at + 1) {
                Some(b'/') => self.end_tag(at),
                Some(byte) if byte.is_ascii_alphabetic() => self.start_tag(at),
                Some(b'!') => self.declaration(at),
                Some(b'?') => self.bogus_comment(at),
                _ => {
                    self.text(at..(at + 1).min(self.bytes.len()));
                    at + 1
                }
            };
        }
    }

    /// Adds the text from `from` on; returns where the next markup may begin.
    #[inline]
    fn text_from(&mut self, from: usize) -> usize {
        let (mut at, mut has_entities) = (from, false);
        // Most texts are short: calling a search would take longer than the search.
        for _ in 0..4 {
            let Some(word) = word_at(self.bytes, at) else { break };
            let (markup, entities) = (equal_bytes(word, b'<'), equal_bytes(word, b'&'));
            if markup != 0 {
                has_entities |= entities & (markup & markup.wrapping_neg()).wrapping_sub(1) != 0;
                at += first_byte(markup);
                self.add_text(from..at, has_entities);
                return at;
            }
            has_entities |= entities != 0;
            at += 8;
        }
        let end = memchr(b'<', &self.bytes[at..]).map_or(self.bytes.len(), |found| at + found);
        has_entities |= memchr(b'&', &self.bytes[at..end]).is_some();
        self.add_text(from..end, has_entities);
        end
    }

    fn text(&mut self, range: Range<usize>) {
        let has_entities = self.bytes[range.clone()].contains(&b'&');
        self.add_text(range, has_entities);
    }

    #[inline]
    fn add_text(&mut self, range: Range<usize>, has_entities: bool) {
        let piece = &self.html[range];
        if has_entities {
            push_unescaped(piece, &mut self.page.text);
        } else {
            self.page.text.push_str(piece);
        }
    }

    fn part(&mut self, with: char) {
        if with == '\n' && self.page.block_ends.last() != Some(&self.page.text.len()) {
            self.page.block_ends.push(self.page.text.len());
            if let Some(outline) = &mut self.outline {
                self.page.places.push(outline.place(self.page.text.len()));
            }
        }
        match self.page.text.as_bytes().last() {
            None | Some(b'\n') => {}
            Some(b' ') if with == ' ' => {}
            _ => self.page.text.push(with),
        }
    }

    fn declaration(&mut self, at: usize) -> usize {
        if !self.bytes[at..].starts_with(b"<!--") {
            return self.bogus_comment(at);
        }
        self.part(' ');
        let body = at + 4;
        // `<!-->` and `<!--->` are whole comments.
        if self.bytes[body..].starts_with(b">") {
            return body + 1;
        }
        if self.bytes[body..].starts_with(b"->") {
            return body + 2;
        }
        // A comment ends at `-->` or `--!>`.
        let mut from = body;
        while let Some(found) = memmem::find(&self.bytes[from..], b"--") {
            let dashes = from + found;
            match (self.bytes.get(dashes + 2), self.bytes.get(dashes + 3)) {
                (Some(b'>'), _) => return dashes + 3,
                (Some(b'!'), Some(b'>')) => return dashes + 4,
                _ => from = dashes + 1,
            }
        }
        self.bytes.len()
    }

    fn bogus_comment(&mut self, at: usize) -> usize {
        self.part(' ');
        memchr(b'>', &self.bytes[at..]).map_or(self.bytes.len(), |found| at + found + 1)
    }

    fn end_tag(&mut self, at: usize) -> usize {
        match self.bytes.get(at + 2) {
            Some(byte) if byte.is_ascii_alphabetic() => {
                let (name, name_end) = TagName::read(self.bytes, at + 2);
                let end = self.attributes(name_end, &mut Wanted::new(&[]));
                self.part_at(classify(name));
                if let Some(outline) = &mut self.outline {
                    outline.close(name, self.page.text.len());
                }
                end
            }
            Some(b'>') => at + 3,
            Some(_) => self.bogus_comment(at),
            None => {
                self.text(at..self.bytes.len());
                self.bytes.len()
            }
        }
    }

    fn start_tag(&mut self, at: usize) -> usize {
        let (name, name_end) = TagName::read(self.bytes, at + 1);
        let tag = classify(name);
        let names: &'static [&'static [u8]] = match tag {
            Tag::Image => &[b"src"],
            Tag::Hidden if self.scripts => &[b"type"],
            Tag::Link if self.wants_links => &[b"href"],
            tag if tag.is_element() && self.outline.is_some() => &[b"class", b"id", b"role"],
            _ => &[],
        };
        let mut wanted = Wanted::new(names);
        let end = self.attributes(name_end, &mut wanted);
        if end == self.bytes.len() && self.bytes.last() != Some(&b'>') {
            return end; // the file ends inside the tag: it is dropped
        }
        self.part_at(tag);
        let [first, second, third] = wanted.values;
        if let Some(outline) = self.outline.as_mut().filter(|_| tag.is_element()) {
            let called = [&self.html[first.clone()], &self.html[second], &self.html[third]];
            outline.open(name, tag == Tag::Block, called, self.page.text.len(), &mut self.page.names);
        }
        let name = at + 1..name_end;
        match tag {
            Tag::Image => {
                if !first.is_empty() {
                    self.image(first);
                }
                end
            }
            Tag::Hidden => {
                let (close, after) = self.closing_tag(end, name);
                if !first.is_empty() {
                    self.script(first, end..close);
                }
                after
            }
            Tag::Title | Tag::TextArea => {
                let (close, after) = self.closing_tag(end, name);
                let from = self.page.text.len();
                self.text(end..close);
                if tag == Tag::Title && self.page.title.is_empty() {
                    self.page.title = from..self.page.text.len();
                }
                self.part('\n');
                after
            }
            Tag::PlainText => {
                let length = self.bytes.len();
                self.page.text.push_str(&self.html[end..length]);
                length
            }
            Tag::Link => {
                if !first.is_empty() && self.wants_links {
                    self.link(first);
                }
                end
            }
            Tag::Formatting | Tag::Inline | Tag::Block => end,
        }
    }

    fn part_at(&mut self, tag: Tag) {
        match tag {
            Tag::Formatting => {}
            Tag::Block | Tag::Title | Tag::TextArea => self.part('\n'),
            _ => self.part(' '),
        }
    }

    /// The text in a script of a type: a template of the page, or an article's text in JSON-LD.
    fn script(&mut self, script_type: Range<usize>, content: Range<usize>) {
        let script_type = self.html[script_type].trim().to_ascii_lowercase();
        let content = &self.html[content];
        let is_template = script_type == "text/html"
            || ["template", "tmpl", "handlebars", "mustache"].iter().any(|word| script_type.contains(word));
        if is_template {
            self.part('\n');
            // Scripts in a template are scripts; they are not looked into again.
            let template = Extractor {
                html: content,
                bytes: content.as_bytes(),
                page_url: self.page_url,
                wants_links: false,
                scripts: false,
                outline: self.outline.as_deref_mut(),
                page: &mut *self.page,
            };
            template.run();
            self.part('\n');
        } else if script_type == "application/ld+json"
            && let Ok(value) = serde_json::from_str(content)
        {
            self.articles(&value);
        }
    }

    /// All texts of articles in a value.
    fn articles(&mut self, value: &serde_json::Value) {
        match value {
            serde_json::Value::Array(items) => items.iter().for_each(|item| self.articles(item)),
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    match value.as_str().filter(|_| name == "articleBody") {
                        Some(text) => {
                            self.part('\n');
                            self.page.text.push_str(&htmlize::unescape(text));
                            self.part('\n');
                        }
                        None => self.articles(value),
                    }
                }
            }
            _ => {}
        }
    }

    /// Skips the attributes of a tag; returns what follows its `>`.
    #[inline]
    fn attributes(&self, at: usize, wanted: &mut Wanted) -> usize {
        if self.bytes.get(at) == Some(&b'>') { at + 1 } else { self.find_attributes(at, wanted) }
    }

    fn find_attributes(&self, mut at: usize, wanted: &mut Wanted) -> usize {
        let bytes = self.bytes;
        let ends = |at: usize, what: u8| bytes.get(at).is_none_or(|&byte| BYTE_ENDS[usize::from(byte)] & what != 0);
        let is_space = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_whitespace);
        loop {
            while at < bytes.len() && ends(at, BETWEEN) {
                at += 1;
            }
            match bytes.get(at) {
                None => return bytes.len(),
                Some(b'>') => return at + 1,
                Some(_) => {}
            }
            let name = at;
            at += 1; // a name may start with `=`
            while !ends(at, ENDS_NAME) {
                at += 1;
            }
            let name = &bytes[name..at];
            let mut equals = at;
            while is_space(equals) {
                equals += 1;
            }
            if bytes.get(equals) != Some(&b'=') {
                continue;
            }
            at = equals + 1;
            while is_space(at) {
                at += 1;
            }
            let value = match bytes.get(at) {
                None => return bytes.len(),
                Some(b'>') => return at + 1,
                Some(&quote @ (b'"' | b'\'')) => {
                    let start = at + 1;
                    let Some(end) = find_byte(bytes, start..bytes.len(), quote) else { return bytes.len() };
                    at = end + 1;
                    start..end
                }
                Some(_) => {
                    let start = at;
                    while !ends(at, ENDS_VALUE) {
                        at += 1;
                    }
                    start..at
                }
            };
            for (wanted_name, found) in wanted.names.iter().zip(&mut wanted.values) {
                if Range::is_empty(found) && name.eq_ignore_ascii_case(wanted_name) {
                    found.clone_from(&value);
                }
            }
        }
    }

    /// The end tag that closes raw text: where it starts, and what follows it.
    fn closing_tag(&self, from: usize, name: Range<usize>) -> (usize, usize) {
        let name = &self.bytes[name];
        let mut at = from;
        while let Some(found) = memmem::find(&self.bytes[at..], b"</") {
            let start = at + found;
            let after_name = start + 2 + name.len();
            let closes = self.bytes.get(start + 2..after_name).is_some_and(|bytes| bytes.eq_ignore_ascii_case(name))
                && self.bytes.get(after_name).is_some_and(|b| b.is_ascii_whitespace() || *b == b'/' || *b == b'>');
            if closes {
                return (start, self.attributes(after_name, &mut Wanted::new(&[])));
            }
            at = start + 2;
        }
        (self.bytes.len(), self.bytes.len())
    }

    /// Where a link leads, without the place in the page; as it stands where it is relative and the page's own URL is not
    /// known. Links within the page and those that lead to no page do not count.
    fn link(&mut self, target: Range<usize>) {
        let target = htmlize::unescape_attribute(&self.html[target]);
        let target = target.trim().split('#').next().unwrap_or_default();
        if target.is_empty() {
            return;
        }
        let resolved = match self.page_url.and_then(|url| Url::parse(url).ok()) {
            Some(base) => base.join(target),
            None if target.starts_with("//") => Url::parse(&format!("http:{target}")),
            None => Url::parse(target),
        };
        match resolved {
            Ok(url) if url.has_host() => self.page.links.push(url.into()),
            Err(url::ParseError::RelativeUrlWithoutBase) => self.page.links.push(target.to_owned()),
            _ => {}
        }
    }

    /// An image is one term: the whole URL if it points to another host, else the file name, so
    /// that a page mirrored together with its images has the same tokens.
    fn image(&mut self, source: Range<usize>) {
        let source = htmlize::unescape_attribute(&self.html[source]);
        let source = source.trim();
        let page_host =
            self.page_url.and_then(|url| Url::parse(url).ok()).and_then(|url| url.host_str().map(str::to_owned));
        let absolute = match source.strip_prefix("//") {
            Some(rest) => Url::parse(&format!("http://{rest}")).ok(),
            None => Url::parse(source).ok(),
        };
        let own_host = match &absolute {
            Some(url) => page_host.is_some() && url.host_str() == page_host.as_deref(),
            None => true,
        };
        let term = if own_host {
            let path = source.split(['?', '#']).next().unwrap_or(source);
            path.rsplit('/').next().unwrap_or(path)
        } else {
            source
        };
        if !term.is_empty() {
            let token = term_token(term.to_lowercase().as_bytes());
            self.page.images.push(ImageTerm { at: self.page.text.len(), token });
        }
    }
}

#[cfg(test)]
mod tests;
