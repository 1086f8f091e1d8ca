//! Where the blocks of a page stand in its markup.
//!
//! In: tags, as the extractor meets them. Out: for every block its place (the elements around it, by name and first
//! class), whether the markup calls it navigation or the like, and how much of it is links. A stack of open elements
//! of bounded depth, no tree: end tags that are missing or wrong cost a few places, never time.

use xxhash_rust::xxh3::xxh3_64;

/// Open elements that are kept.
const MOST_DEPTH: usize = 256;
/// Open elements that an end tag is looked for in.
const MOST_SEARCHED: usize = 64;
/// Names of elements that are kept of a page.
const MOST_NAMES: usize = 4096;

/// Words in the names that people give to what is not the story.
const CUES: [&str; 34] = [
    "ad",
    "ads",
    "advert",
    "advertisement",
    "banner",
    "breadcrumb",
    "breadcrumbs",
    "comment",
    "comments",
    "copyright",
    "footer",
    "header",
    "headerlink",
    "login",
    "menu",
    "nav",
    "navbar",
    "navigation",
    "pager",
    "pagination",
    "promo",
    "related",
    "search",
    "share",
    "sharing",
    "sidebar",
    "sidenav",
    "signup",
    "social",
    "sponsor",
    "subscribe",
    "toc",
    "topbar",
    "widget",
];

/// Roles of elements that are not the story.
const ROLES: [&str; 5] = ["navigation", "banner", "contentinfo", "complementary", "search"];

/// Where a block stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    /// A hash of the elements around it.
    pub path: u64,
    /// Whether the markup calls it something else than the story.
    pub is_aside: bool,
    /// Bytes of its text that are links.
    pub link_bytes: usize,
}

struct OpenElement {
    name: ElementName,
    path: u64,
    is_aside: bool,
}

/// The elements that are open.
#[derive(Default)]
pub(super) struct Outline {
    open: Vec<OpenElement>,
    /// Where the text of the link begins that is open.
    link_start: Option<usize>,
    link_bytes: usize,
}

impl Outline {
    /// The place of the block that ends here.
    pub(super) fn place(&mut self, text_end: usize) -> BlockPlace {
        // A link ends with its block: many are never closed.
        if let Some(start) = self.link_start.take() {
            self.link_bytes += text_end.saturating_sub(start);
        }
        let (path, is_aside) = self.open.last().map_or((0, false), |element| (element.path, element.is_aside));
        BlockPlace { path, is_aside, link_bytes: std::mem::take(&mut self.link_bytes) }
    }

    /// A start tag; only what parts blocks is a place.
    pub(super) fn open(&mut self, name: &[u8], parts_blocks: bool, [classes, id, role]: [&str; 3], text_end: usize) {
        if name.eq_ignore_ascii_case(b"a") {
            self.link_start = Some(text_end);
        }
        if !parts_blocks || is_void(name) {
            return;
        }
        let name = ElementName::new(name);
        while self.open.last().is_some_and(|open| is_closed_by(open.name, name)) {
            self.open.pop();
        }
        if self.open.len() == MOST_DEPTH {
            return;
        }
        let (path, is_aside) = self.open.last().map_or((0, false), |element| (element.path, element.is_aside));
        let class = classes.split_ascii_whitespace().next().unwrap_or_default();
        let is_aside = match name.as_bytes() {
            b"main" => false,
            _ if role.trim() == "main" => false,
            b"nav" | b"aside" | b"footer" | b"header" => true,
            // Names of the whole page say how it is laid out.
            b"html" | b"body" => false,
            _ => is_aside || ROLES.contains(&role.trim()) || has_cue(classes) || has_cue(id),
        };
        let mut place = [0; 24];
        for (part, number) in place.chunks_exact_mut(8).zip([path, xxh3_64(name.as_bytes()), name_hash(class)]) {
            part.copy_from_slice(&number.to_le_bytes());
        }
        self.open.push(OpenElement { name, path: xxh3_64(&place), is_aside });
    }

    /// An end tag.
    pub(super) fn close(&mut self, name: &[u8], text_end: usize) {
        if name.eq_ignore_ascii_case(b"a")
            && let Some(start) = self.link_start.take()
        {
            self.link_bytes += text_end.saturating_sub(start);
        }
        let name = ElementName::new(name);
        let found = self.open.iter().rev().take(MOST_SEARCHED).position(|open| open.name == name);
        if let Some(above) = found {
            self.open.truncate(self.open.len() - above - 1);
        }
    }

    /// Adds the names of an element.
    pub(super) fn names(&self, classes: &str, id: &str, names: &mut Vec<u64>) {
        let room = MOST_NAMES.saturating_sub(names.len());
        let all = classes.split_ascii_whitespace().chain(id.split_ascii_whitespace());
        names.extend(all.take(room).map(name_hash));
    }
}

/// A name with every run of digits as one: `post-17` and `post-18` are names of the same thing.
fn name_hash(name: &str) -> u64 {
    if !name.bytes().any(|byte| byte.is_ascii_digit()) {
        return xxh3_64(name.as_bytes());
    }
    let mut plain = Vec::with_capacity(name.len());
    for byte in name.bytes() {
        let byte = if byte.is_ascii_digit() { b'0' } else { byte };
        if byte != b'0' || plain.last() != Some(&b'0') {
            plain.push(byte);
        }
    }
    xxh3_64(&plain)
}

/// Whether a name has a word that says: not the story.
fn has_cue(names: &str) -> bool {
    let is_cue = |word: &str| CUES.binary_search(&word).is_ok();
    let words = names.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter(|word| (2..=16).contains(&word.len())).any(|word| {
        if word.bytes().any(|byte| byte.is_ascii_uppercase()) {
            is_cue(&word.to_ascii_lowercase())
        } else {
            is_cue(word)
        }
    })
}

fn is_void(name: &[u8]) -> bool {
    [&b"br"[..], b"hr", b"frame"].iter().any(|void| name.eq_ignore_ascii_case(void))
}

/// The name of an element that parts blocks, in lower case; none of them is longer than this.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ElementName {
    bytes: [u8; ElementName::BYTES],
    start: usize,
}

impl ElementName {
    const BYTES: usize = 16;

    fn new(name: &[u8]) -> ElementName {
        let name = &name[..name.len().min(ElementName::BYTES)];
        let packed = name.iter().fold(0u128, |packed, byte| packed << 8 | u128::from(byte.to_ascii_lowercase()));
        ElementName { bytes: packed.to_be_bytes(), start: ElementName::BYTES - name.len() }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// Whether an open element ends where `name` starts, although nobody closed it.
fn is_closed_by(open: ElementName, name: ElementName) -> bool {
    let ends: &[&[u8]] = match name.as_bytes() {
        b"li" => &[b"li", b"p"],
        b"dt" | b"dd" => &[b"dt", b"dd", b"p"],
        b"td" | b"th" => &[b"td", b"th", b"p"],
        b"tr" => &[b"tr", b"td", b"th", b"p"],
        b"option" => &[b"option"],
        b"body" => &[b"head"],
        _ => &[b"p"],
    };
    ends.contains(&open.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::html::{PageText, extract_with_places};

    fn page(html: &str) -> PageText {
        let mut page = PageText::default();
        extract_with_places(html, None, false, &mut page);
        page
    }

    /// The text and the place of every block that has text.
    fn blocks(page: &PageText) -> Vec<(&str, BlockPlace)> {
        let ends = page.block_ends.iter().copied().chain([page.text.len()]);
        let mut from = 0;
        assert_eq!(page.places.len(), page.block_ends.len() + 1);
        let texts = ends.map(|end| page.text[std::mem::replace(&mut from, end)..end].trim());
        texts.zip(page.places.iter().copied()).filter(|(text, _)| !text.is_empty()).collect()
    }

    #[test]
    fn blocks_have_the_place_of_the_element_they_stand_in() {
        let page =
            page("<body><div class='a b'><p>one<p>two</p></div><ul><li>three<li>four</ul><div class=c>five</div>");
        let blocks = blocks(&page);
        let texts: Vec<&str> = blocks.iter().map(|block| block.0).collect();
        assert_eq!(texts, ["one", "two", "three", "four", "five"]);
        let paths: Vec<u64> = blocks.iter().map(|block| block.1.path).collect();
        assert!(
            paths[0] == paths[1] && paths[2] == paths[3] && paths[0] != paths[2] && paths[4] != paths[0],
            "{paths:?}"
        );
        let numbered = self::page("<body><div class='post-17'>x</div><div class='post-2018'>y</div>");
        let paths: Vec<u64> = self::blocks(&numbered).iter().map(|block| block.1.path).collect();
        assert_eq!(paths[0], paths[1]);
    }

    #[test]
    fn markup_says_what_is_not_the_story() {
        let page = page(
            "<body><nav>a</nav><div id=main-content>b<div class='left sideBar sidebar'><p>c</div>d</div>\
             <div role=navigation>e</div><div class=download>f</div><FOOTER>g</FOOTER>h",
        );
        let asides: Vec<&str> =
            blocks(&page).into_iter().filter(|block| block.1.is_aside).map(|block| block.0).collect();
        assert_eq!(asides, ["a", "c", "e", "g"]);
    }

    #[test]
    fn links_are_measured() {
        let page = page("<p>see <a href=x>the other page</a> now<p><a>all of it</a><p>none");
        let links: Vec<usize> = blocks(&page).iter().map(|block| block.1.link_bytes).collect();
        assert_eq!(links.iter().map(|bytes| bytes / 4).collect::<Vec<_>>(), [3, 2, 0], "{links:?}");
    }

    #[test]
    fn broken_markup_costs_places_and_not_time() {
        let deep = format!("{}x{}", "<div>".repeat(100_000), "</section>".repeat(100_000));
        assert_eq!(blocks(&page(&deep)).len(), 1);
        assert!(CUES.is_sorted());
    }
}
