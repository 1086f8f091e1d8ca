//! Where the blocks of a page stand in its markup.
//!
//! In: tags, as the extractor meets them. Out: for every block its place (the elements around it, by name and first
//! class), whether the markup calls it navigation or the like, and how much of it is links. A stack of open elements
//! of bounded depth, no tree: end tags that are missing or wrong cost a few places, never time.

use xxhash_rust::xxh3::xxh3_64;

use crate::text::tag_name::{TagName, word_at};

/// Open elements that are kept.
const MOST_DEPTH: usize = 256;
/// Open elements that an end tag is looked for in.
const MOST_SEARCHED: usize = 64;
/// Bytes of a name that needs no memory of its own.
const SHORT_NAME: usize = 64;
/// Names of elements that are kept of a page.
const MOST_NAMES: usize = 4096;
/// Attributes that are remembered, and the bytes and names that each has at the most.
const KNOWN_CLASSES: usize = 128;
const KNOWN_BYTES: usize = 48;
const KNOWN_NAMES: usize = 6;

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

/// The longest of them.
const CUE_BYTES: usize = 13;
/// By the length of a word, the letters that a cue so long begins with, as bits.
static CUE_LETTERS: [u32; CUE_BYTES + 1] = {
    let mut letters = [0; CUE_BYTES + 1];
    let mut at = 0;
    while at < CUES.len() {
        let cue = CUES[at].as_bytes();
        letters[cue.len()] |= 1 << (cue[0] - b'a');
        at += 1;
    }
    letters
};

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

#[derive(Debug)]
struct OpenElement {
    name: TagName,
    path: u64,
    is_aside: bool,
}

/// What the names in a `class` come to. The same few stand at most elements of a site, so that they are kept.
#[derive(Debug, Clone, Copy)]
struct KnownClasses {
    /// The attribute, with zeros behind it.
    classes: [u8; KNOWN_BYTES],
    length: usize,
    /// Of the names; the first is that of an empty one where there is none.
    hashes: [u64; KNOWN_NAMES],
    names: usize,
    has_cue: bool,
}

impl KnownClasses {
    const NONE: KnownClasses =
        KnownClasses { classes: [0; KNOWN_BYTES], length: 0, hashes: [0; KNOWN_NAMES], names: 0, has_cue: false };

    /// Nothing if they are too long or too many to be kept.
    fn of(classes: &str) -> Option<KnownClasses> {
        let mut known = KnownClasses { length: classes.len(), ..KnownClasses::NONE };
        known.classes.get_mut(..classes.len())?.copy_from_slice(classes.as_bytes());
        (known.hashes[0], known.has_cue) = (name_hash(""), has_cue(classes));
        for name in classes.split_ascii_whitespace() {
            *known.hashes.get_mut(known.names)? = name_hash(name);
            known.names += 1;
        }
        Some(known)
    }

    fn is_of(&self, classes: &str) -> bool {
        self.length == classes.len() && &self.classes[..self.length] == classes.as_bytes()
    }
}

/// The elements that are open.
#[derive(Debug, Default)]
pub(super) struct Outline {
    open: Vec<OpenElement>,
    /// Classes that were met before, each in the place that its bytes lead to.
    known: Vec<KnownClasses>,
    /// Where the text of the link begins that is open.
    link_start: Option<usize>,
    link_bytes: usize,
}

impl Outline {
    /// Forgets the elements of a page.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        (self.link_start, self.link_bytes) = (None, 0);
    }

    /// The place of the block that ends here.
    pub(super) fn place(&mut self, text_end: usize) -> BlockPlace {
        // A link ends with its block: many are never closed.
        if let Some(start) = self.link_start.take() {
            self.link_bytes += text_end.saturating_sub(start);
        }
        let (path, is_aside) = self.open.last().map_or((0, false), |element| (element.path, element.is_aside));
        BlockPlace { path, is_aside, link_bytes: std::mem::take(&mut self.link_bytes) }
    }

    /// A start tag; only what parts blocks is a place. The names that the element is called by are added to `names`.
    #[inline]
    pub(super) fn open(
        &mut self,
        name: TagName,
        parts_blocks: bool,
        called: [&str; 3],
        text_end: usize,
        names: &mut Vec<u64>,
    ) {
        if name == A {
            self.link_start = Some(text_end);
        }
        let [classes, id, role] = called;
        let is_named = !(classes.is_empty() && id.is_empty());
        if !is_named && !parts_blocks {
            return;
        }
        let place = self.place_of(classes);
        let known = place.map(|place| &self.known[place]);
        let room = MOST_NAMES.saturating_sub(names.len());
        if is_named && room > 0 {
            let ids = id.split_ascii_whitespace().map(name_hash);
            match known {
                Some(known) => names.extend(known.hashes[..known.names].iter().copied().chain(ids).take(room)),
                None => names.extend(classes.split_ascii_whitespace().map(name_hash).chain(ids).take(room)),
            }
        }
        if parts_blocks {
            let first = || name_hash(classes.split_ascii_whitespace().next().unwrap_or_default());
            let class = known.map_or_else(first, |known| known.hashes[0]);
            let is_called_aside = known.map_or_else(|| has_cue(classes), |known| known.has_cue);
            self.open_block(name, class, is_called_aside, id, role);
        }
    }

    /// Where it is kept what classes come to, if they are short and few.
    fn place_of(&mut self, classes: &str) -> Option<usize> {
        let bytes = classes.as_bytes();
        // Names that differ do so at their ends most often.
        let end = word_at(bytes, bytes.len().saturating_sub(8));
        let end = end.unwrap_or_else(|| bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        let place = (end.wrapping_add(bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as usize;
        if self.known.is_empty() {
            self.known.resize(KNOWN_CLASSES, KnownClasses::of("")?);
        }
        if !self.known[place].is_of(classes) {
            self.known[place] = KnownClasses::of(classes)?;
        }
        Some(place)
    }

    fn open_block(&mut self, name: TagName, class: u64, is_called_aside: bool, id: &str, role: &str) {
        if [BR, HR, FRAME].contains(&name) {
            return; // nothing stands in these
        }
        while self.open.last().is_some_and(|open| is_closed_by(open.name, name)) {
            self.open.pop();
        }
        if self.open.len() == MOST_DEPTH {
            return;
        }
        let (path, is_aside) = self.open.last().map_or((0, false), |element| (element.path, element.is_aside));
        let role = role.trim();
        let is_aside = match name {
            MAIN => false,
            _ if role == "main" => false,
            NAV | ASIDE | FOOTER | HEADER => true,
            // Names of the whole page say how it is laid out.
            HTML | BODY => false,
            _ => is_aside || is_called_aside || ROLES.contains(&role) || has_cue(id),
        };
        let mut place = [0; 24];
        for (part, number) in place.chunks_exact_mut(8).zip([path, name.hash(), class]) {
            part.copy_from_slice(&number.to_le_bytes());
        }
        self.open.push(OpenElement { name, path: xxh3_64(&place), is_aside });
    }

    /// An end tag.
    #[inline]
    pub(super) fn close(&mut self, name: TagName, text_end: usize) {
        if name == A
            && let Some(start) = self.link_start.take()
        {
            self.link_bytes += text_end.saturating_sub(start);
        }
        let found = self.open.iter().rev().take(MOST_SEARCHED).position(|open| open.name == name);
        if let Some(above) = found {
            self.open.truncate(self.open.len() - above - 1);
        }
    }
}

/// A name with every run of digits as one: `post-17` and `post-18` are names of the same thing.
fn name_hash(name: &str) -> u64 {
    if !name.bytes().any(|byte| byte.is_ascii_digit()) {
        return xxh3_64(name.as_bytes());
    }
    let (mut short, mut long);
    let plain: &mut [u8] = if name.len() <= SHORT_NAME {
        short = [0; SHORT_NAME];
        &mut short
    } else {
        long = vec![0; name.len()];
        &mut long
    };
    let mut length = 0;
    for byte in name.bytes() {
        let byte = if byte.is_ascii_digit() { b'0' } else { byte };
        if byte != b'0' || length == 0 || plain[length - 1] != b'0' {
            plain[length] = byte;
            length += 1;
        }
    }
    xxh3_64(&plain[..length])
}

/// Whether a name has a word that says: not the story.
fn has_cue(names: &str) -> bool {
    let words = names.as_bytes().split(|byte| !byte.is_ascii_alphanumeric());
    words.filter(|word| may_be_cue(word)).any(|word| {
        let mut lower = [0; CUE_BYTES];
        let lower = &mut lower[..word.len()];
        lower.copy_from_slice(word);
        lower.make_ascii_lowercase();
        CUES.binary_search_by(|cue| cue.as_bytes().cmp(lower)).is_ok()
    })
}

/// Whether a word has the length and the first letter of a cue.
#[inline]
fn may_be_cue(word: &[u8]) -> bool {
    match (word.first(), CUE_LETTERS.get(word.len())) {
        (Some(first), Some(letters)) => {
            first.is_ascii_alphabetic() && letters >> (first.to_ascii_lowercase() - b'a') & 1 == 1
        }
        _ => false,
    }
}

const A: TagName = TagName::of(b"a");
const ASIDE: TagName = TagName::of(b"aside");
const BODY: TagName = TagName::of(b"body");
const BR: TagName = TagName::of(b"br");
const DD: TagName = TagName::of(b"dd");
const DT: TagName = TagName::of(b"dt");
const FOOTER: TagName = TagName::of(b"footer");
const FRAME: TagName = TagName::of(b"frame");
const HEAD: TagName = TagName::of(b"head");
const HEADER: TagName = TagName::of(b"header");
const HR: TagName = TagName::of(b"hr");
const HTML: TagName = TagName::of(b"html");
const LI: TagName = TagName::of(b"li");
const MAIN: TagName = TagName::of(b"main");
const NAV: TagName = TagName::of(b"nav");
const OPTION: TagName = TagName::of(b"option");
const P: TagName = TagName::of(b"p");
const TD: TagName = TagName::of(b"td");
const TH: TagName = TagName::of(b"th");
const TR: TagName = TagName::of(b"tr");

/// Whether an open element ends where `name` starts, although nobody closed it.
fn is_closed_by(open: TagName, name: TagName) -> bool {
    let ends: &[TagName] = match name {
        LI => &[LI, P],
        DT | DD => &[DT, DD, P],
        TD | TH => &[TD, TH, P],
        TR => &[TR, TD, TH, P],
        OPTION => &[OPTION],
        BODY => &[HEAD],
        _ => &[P],
    };
    ends.contains(&open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::html::extract_with_places;
    use crate::text::page_text::PageText;

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
    fn classes_that_are_remembered_are_those_of_the_page() {
        let classes = [
            String::new(),
            " ".to_owned(),
            "a b c d".to_owned(),
            "a b c d e f g".to_owned(),
            "sidebar".to_owned(),
            "x sidebar".to_owned(),
            format!("{} menu", "long".repeat(12)),
            "post-17".to_owned(),
            "post-17 nav".to_owned(),
        ];
        let many = (0..400).map(|number| format!("n{number}x{} t{}", number % 7, number / 9));
        let all: Vec<String> = classes.into_iter().chain(many).collect();
        let (mut outline, mut names) = (Outline::default(), Vec::new());
        for (round, classes) in all.iter().chain(&all).enumerate() {
            let id = if round % 3 == 0 { "an id" } else { "" };
            names.clear();
            outline.clear();
            outline.open(TagName::of(b"div"), true, [classes, id, ""], 0, &mut names);
            let called: Vec<&str> = classes.split_ascii_whitespace().chain(id.split_ascii_whitespace()).collect();
            assert_eq!(names, called.iter().map(|name| name_hash(name)).collect::<Vec<_>>(), "{classes:?}");
            let place = outline.place(0);
            assert_eq!(place.is_aside, has_cue(classes), "{classes:?}");
            let class = name_hash(classes.split_ascii_whitespace().next().unwrap_or_default());
            let path: Vec<u8> = [0, TagName::of(b"div").hash(), class].iter().flat_map(|n| n.to_le_bytes()).collect();
            assert_eq!(place.path, xxh3_64(&path), "{classes:?}");
        }
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
