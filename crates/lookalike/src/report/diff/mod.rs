//! Two texts → what they share and where they differ, word by word.

pub mod differences;

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::text::is_unspaced;

/// Words of each text that are compared; if there are more, the result says so.
const MOST_WORDS: usize = 3000;
/// Shared words shown on each side of a difference.
const CONTEXT_WORDS: usize = 12;
/// Differing words shown in one place.
const SHOWN_WORDS: usize = 150;

/// Words of each text that are set side by side.
pub(crate) const MOST_WORDS_SIDE_BY_SIDE: usize = 12_000;
/// A run of shared words from this length on is part of the core.
pub const CORE_WORDS: usize = 8;

/// A piece of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Piece {
    /// In both.
    Shared(String),
    /// Words of both that are not shown.
    Omitted(usize),
    /// Only in the left text.
    Left(String),
    /// Only in the right text.
    Right(String),
    /// What follows was not compared.
    NotCompared,
}

/// A part of one text, beside the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Its words.
    pub text: String,
    /// How many there are.
    pub words: usize,
    /// Whether the other text has them too, at this place.
    pub is_shared: bool,
}

impl Span {
    /// Whether it belongs to what the two texts have in common, and is not a stray word.
    #[must_use]
    pub fn is_core(&self) -> bool {
        self.is_shared && self.words >= CORE_WORDS
    }
}

/// Two texts, each as parts that the other has and parts that it lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SideBySide {
    /// The left text.
    pub left: Vec<Span>,
    /// The right text.
    pub right: Vec<Span>,
    /// Words of both.
    pub shared: usize,
    /// Words of the left text alone.
    pub left_only: usize,
    /// Words of the right text alone.
    pub right_only: usize,
    /// Whether the texts were too long to be compared to the end.
    pub is_cut: bool,
}

/// Sets two texts side by side.
#[must_use]
pub fn side_by_side(left: &str, right: &str) -> SideBySide {
    let (mut left, mut right) = (words(left), words(right));
    let mut sides = SideBySide {
        is_cut: left.len() > MOST_WORDS_SIDE_BY_SIDE || right.len() > MOST_WORDS_SIDE_BY_SIDE,
        ..SideBySide::default()
    };
    left.truncate(MOST_WORDS_SIDE_BY_SIDE);
    right.truncate(MOST_WORDS_SIDE_BY_SIDE);
    let span = |words: &[Word<'_>], is_shared: bool| Span { text: join(words), words: words.len(), is_shared };
    for operation in capture_diff_slices(Algorithm::Myers, &left, &right) {
        let (old, new) = (&left[operation.old_range()], &right[operation.new_range()]);
        if matches!(operation, DiffOp::Equal { .. }) {
            sides.shared += old.len();
            sides.left.push(span(old, true));
            sides.right.push(span(new, true));
            continue;
        }
        sides.left_only += old.len();
        sides.right_only += new.len();
        if !old.is_empty() {
            sides.left.push(span(old, false));
        }
        if !new.is_empty() {
            sides.right.push(span(new, false));
        }
    }
    sides
}

/// A word, and whether white space follows it. In scripts without spaces every character is one.
#[derive(Debug, Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    space_after: bool,
}

/// White space makes no difference.
impl PartialEq for Word<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Word<'_> {}

impl std::hash::Hash for Word<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl PartialOrd for Word<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Word<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(other.text)
    }
}

fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for chunk in text.split_whitespace() {
        let mut from = 0;
        for (at, c) in chunk.char_indices().filter(|(_, c)| is_unspaced(*c)) {
            if at > from {
                words.push(Word { text: &chunk[from..at], space_after: false });
            }
            from = at + c.len_utf8();
            words.push(Word { text: &chunk[at..from], space_after: false });
        }
        if from < chunk.len() {
            words.push(Word { text: &chunk[from..], space_after: false });
        }
        if let Some(last) = words.last_mut() {
            last.space_after = true;
        }
    }
    words
}

fn join(words: &[Word<'_>]) -> String {
    let mut text = String::new();
    for (at, word) in words.iter().enumerate() {
        text.push_str(word.text);
        if word.space_after && at + 1 < words.len() {
            text.push(' ');
        }
    }
    text
}

/// One place where two texts differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// What both have before it.
    pub(crate) before: String,
    /// Only in the left text, or nothing.
    pub(crate) left: String,
    /// Only in the right text, or nothing.
    pub(crate) right: String,
    /// What both have after it.
    pub(crate) after: String,
    /// Words of both sides.
    pub(crate) words: usize,
}

/// Words before and after a difference, to understand it by.
const HUNK_CONTEXT: usize = 5;

/// The places where two texts differ, as far as they are compared; also the words of the longer text.
pub(crate) fn hunks(left: &str, right: &str) -> (Vec<Hunk>, usize) {
    let (mut left, mut right) = (words(left), words(right));
    let most = left.len().max(right.len());
    left.truncate(MOST_WORDS_SIDE_BY_SIDE);
    right.truncate(MOST_WORDS_SIDE_BY_SIDE);
    let operations = capture_diff_slices(Algorithm::Myers, &left, &right);
    let hunks = operations.iter().filter(|operation| !matches!(operation, DiffOp::Equal { .. })).map(|operation| {
        let (old, new) = (operation.old_range(), operation.new_range());
        Hunk {
            before: join(&left[old.start.saturating_sub(HUNK_CONTEXT)..old.start]),
            after: join(&left[old.end..(old.end + HUNK_CONTEXT).min(left.len())]),
            words: old.len() + new.len(),
            left: join(&left[old]),
            right: join(&right[new]),
        }
    });
    (hunks.collect(), most)
}

/// Compares two texts.
#[must_use]
pub fn pieces(left: &str, right: &str) -> Vec<Piece> {
    let (mut left, mut right) = (words(left), words(right));
    let is_cut = left.len() > MOST_WORDS || right.len() > MOST_WORDS;
    left.truncate(MOST_WORDS);
    right.truncate(MOST_WORDS);
    let mut pieces = Vec::new();
    let operations = capture_diff_slices(Algorithm::Myers, &left, &right);
    let last = operations.len().saturating_sub(1);
    for (at, operation) in operations.iter().enumerate() {
        match *operation {
            DiffOp::Equal { old_index, len, .. } => {
                let words = &left[old_index..old_index + len];
                let before = if at == 0 { 0 } else { CONTEXT_WORDS };
                let after = if at == last { 0 } else { CONTEXT_WORDS };
                if len <= before + after + CONTEXT_WORDS {
                    pieces.push(Piece::Shared(join(words)));
                    continue;
                }
                if before > 0 {
                    pieces.push(Piece::Shared(join(&words[..before])));
                }
                pieces.push(Piece::Omitted(len - before - after));
                if after > 0 {
                    pieces.push(Piece::Shared(join(&words[len - after..])));
                }
            }
            DiffOp::Delete { old_index, old_len, .. } => {
                pieces.push(Piece::Left(shorten(&left[old_index..old_index + old_len])));
            }
            DiffOp::Insert { new_index, new_len, .. } => {
                pieces.push(Piece::Right(shorten(&right[new_index..new_index + new_len])));
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                pieces.push(Piece::Left(shorten(&left[old_index..old_index + old_len])));
                pieces.push(Piece::Right(shorten(&right[new_index..new_index + new_len])));
            }
        }
    }
    if is_cut {
        pieces.push(Piece::NotCompared);
    }
    pieces
}

fn shorten(words: &[Word<'_>]) -> String {
    if words.len() <= SHOWN_WORDS {
        return join(words);
    }
    format!("{} … ({} more words)", join(&words[..SHOWN_WORDS]), words.len() - SHOWN_WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_shown_with_a_little_of_what_surrounds_them() {
        let words: Vec<String> = (0..100).map(|n| format!("w{n}")).collect();
        let left = words.join(" ");
        let right = left.replace("w50", "changed");
        let found = pieces(&left, &right);
        assert_eq!(found[0], Piece::Omitted(38));
        assert_eq!(found[2], Piece::Left("w50".to_owned()));
        assert_eq!(found[3], Piece::Right("changed".to_owned()));
        assert_eq!(found[5], Piece::Omitted(37));
    }

    #[test]
    fn scripts_without_spaces_are_compared_character_by_character() {
        let found = pieces("图书馆发现古地图 today", "图书馆出现古地图 today");
        let expected = [
            Piece::Shared("图书馆".to_owned()),
            Piece::Left("发".to_owned()),
            Piece::Right("出".to_owned()),
            Piece::Shared("现古地图 today".to_owned()),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn texts_that_are_too_long_say_so() {
        let long = "word ".repeat(MOST_WORDS + 1);
        assert_eq!(pieces(&long, &long).last(), Some(&Piece::NotCompared));
    }

    #[test]
    fn side_by_side_separates_core_and_frame() {
        let core = "one two three four five six seven eight nine";
        let sides = side_by_side(&format!("Home News {core} Copyright"), &format!("Menu {core} Contact us"));
        assert_eq!((sides.shared, sides.left_only, sides.right_only), (9, 3, 3));
        assert_eq!(
            sides.left.iter().filter(|span| span.is_core()).map(|span| &span.text[..]).collect::<Vec<_>>(),
            [core]
        );
        assert_eq!(sides.right.first().map(|span| span.is_shared), Some(false));
        assert!(!sides.is_cut);
        assert_eq!(side_by_side("", ""), SideBySide::default());
    }

    #[test]
    fn equal_and_empty_texts() {
        assert_eq!(pieces("a b", "a b"), [Piece::Shared("a b".to_owned())]);
        assert_eq!(pieces("", "x"), [Piece::Right("x".to_owned())]);
        assert!(pieces("", "").is_empty());
    }
}
