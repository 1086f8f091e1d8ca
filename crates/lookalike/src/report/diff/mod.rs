//! Two texts → what they share and where they differ, word by word.
//!
//! Words that are rare in both texts anchor the comparison (the histogram variant of patience diff, of imara-diff), so that
//! a long passage that only one text has does not hide that the rest is the same. The time is about linear in the words.

pub mod differences;
mod words;

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};
use serde::Serialize;

use words::{Word, join, words};

/// Words of each text that are compared; if there are more, the result says so.
pub(crate) const MOST_WORDS: usize = 100_000;
/// Shared words shown on each side of a difference.
const CONTEXT_WORDS: usize = 12;
/// Differing words shown in one place.
const SHOWN_WORDS: usize = 150;

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

/// What stands side by side: a run of shared words, or a place where the texts differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// The left text; where the texts differ, shared words between the differing ones are apart.
    pub left: Vec<Span>,
    /// The right text.
    pub right: Vec<Span>,
    /// Whether it is the core that both have: words in a row that are too many for an accident.
    pub is_core: bool,
}

impl Row {
    /// Words of the left text.
    #[must_use]
    pub fn words(&self) -> usize {
        self.left.iter().map(|span| span.words).sum()
    }
}

/// Two texts, row by row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SideBySide {
    /// The rows, in the order of both texts.
    pub rows: Vec<Row>,
    /// Words of both.
    pub shared: usize,
    /// Words of the left text alone.
    pub left_only: usize,
    /// Words of the right text alone.
    pub right_only: usize,
    /// Whether the texts were too long to be compared to the end.
    pub is_cut: bool,
}

impl SideBySide {
    /// Places where the texts differ.
    #[must_use]
    pub fn differences(&self) -> usize {
        self.rows.iter().filter(|row| !row.is_core).count()
    }
}

/// Words that both texts have, or the words of each at a place where they differ.
struct Step {
    left: Range<usize>,
    right: Range<usize>,
    is_shared: bool,
}

/// Two texts as words, and the steps through both.
struct Steps<'a> {
    left: Vec<Word<'a>>,
    right: Vec<Word<'a>>,
    steps: Vec<Step>,
    /// Words of the longer text.
    most: usize,
}

impl<'a> Steps<'a> {
    fn new(left: &'a str, right: &'a str) -> Steps<'a> {
        let (mut left, mut right) = (words(left), words(right));
        let most = left.len().max(right.len());
        left.truncate(MOST_WORDS);
        right.truncate(MOST_WORDS);
        let mut input = InternedInput::default();
        input.update_before(left.iter().map(|word| word.text));
        input.update_after(right.iter().map(|word| word.text));
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_no_heuristic(&input);
        let mut steps = Vec::new();
        let mut at = (0, 0);
        let share = |steps: &mut Vec<Step>, from: (usize, usize), to: (usize, usize)| {
            if from.0 < to.0 {
                steps.push(Step { left: from.0..to.0, right: from.1..to.1, is_shared: true });
            }
        };
        for hunk in diff.hunks() {
            let (old, new) = (range(&hunk.before), range(&hunk.after));
            share(&mut steps, at, (old.start, new.start));
            at = (old.end, new.end);
            steps.push(Step { left: old, right: new, is_shared: false });
        }
        share(&mut steps, at, (left.len(), right.len()));
        Steps { left, right, steps, most }
    }

    fn is_cut(&self) -> bool {
        self.most > MOST_WORDS
    }
}

fn range(words: &Range<u32>) -> Range<usize> {
    words.start as usize..words.end as usize
}

/// Sets two texts side by side.
#[must_use]
pub fn side_by_side(left: &str, right: &str) -> SideBySide {
    let steps = Steps::new(left, right);
    let mut sides = SideBySide { is_cut: steps.is_cut(), ..SideBySide::default() };
    let span = |words: &[Word<'_>], is_shared: bool| Span { text: join(words), words: words.len(), is_shared };
    let mut open = false;
    for step in &steps.steps {
        let (old, new) = (&steps.left[step.left.clone()], &steps.right[step.right.clone()]);
        let is_core = step.is_shared && old.len() >= CORE_WORDS;
        if step.is_shared {
            sides.shared += old.len();
        } else {
            sides.left_only += old.len();
            sides.right_only += new.len();
        }
        // A few shared words between differences belong to them.
        if is_core || !open {
            sides.rows.push(Row { is_core, ..Row::default() });
        }
        open = !is_core;
        let Some(row) = sides.rows.last_mut() else { continue };
        row.left.extend((!old.is_empty()).then(|| span(old, step.is_shared)));
        row.right.extend((!new.is_empty()).then(|| span(new, step.is_shared)));
    }
    // The same few words alone are no difference.
    for row in &mut sides.rows {
        row.is_core |= row.left.iter().chain(&row.right).all(|span| span.is_shared);
    }
    sides
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
    let Steps { left, right, steps, most } = Steps::new(left, right);
    let hunks = steps.into_iter().filter(|step| !step.is_shared).map(|step| Hunk {
        before: join(&left[step.left.start.saturating_sub(HUNK_CONTEXT)..step.left.start]),
        after: join(&left[step.left.end..(step.left.end + HUNK_CONTEXT).min(left.len())]),
        words: step.left.len() + step.right.len(),
        left: join(&left[step.left]),
        right: join(&right[step.right]),
    });
    (hunks.collect(), most)
}

/// Compares two texts.
#[must_use]
pub fn pieces(left: &str, right: &str) -> Vec<Piece> {
    let steps = Steps::new(left, right);
    let mut pieces = Vec::new();
    let last = steps.steps.len().saturating_sub(1);
    for (at, step) in steps.steps.iter().enumerate() {
        let (old, new) = (&steps.left[step.left.clone()], &steps.right[step.right.clone()]);
        if !step.is_shared {
            pieces.extend((!old.is_empty()).then(|| Piece::Left(shorten(old))));
            pieces.extend((!new.is_empty()).then(|| Piece::Right(shorten(new))));
            continue;
        }
        let before = if at == 0 { 0 } else { CONTEXT_WORDS };
        let after = if at == last { 0 } else { CONTEXT_WORDS };
        if old.len() <= before + after + CONTEXT_WORDS {
            pieces.push(Piece::Shared(join(old)));
            continue;
        }
        if before > 0 {
            pieces.push(Piece::Shared(join(&old[..before])));
        }
        pieces.push(Piece::Omitted(old.len() - before - after));
        if after > 0 {
            pieces.push(Piece::Shared(join(&old[old.len() - after..])));
        }
    }
    if steps.is_cut() {
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
    use crate::random::next_random;

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
        assert!(side_by_side(&long, "word").is_cut);
    }

    #[test]
    fn side_by_side_separates_core_and_frame() {
        let core = "one two three four five six seven eight nine";
        let sides = side_by_side(&format!("Home News {core} Copyright"), &format!("Menu {core} Contact us"));
        assert_eq!((sides.shared, sides.left_only, sides.right_only), (9, 3, 3));
        assert_eq!(sides.rows.iter().map(|row| row.is_core).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(sides.rows[1].left[0].text, core);
        assert_eq!((sides.differences(), sides.rows[1].words()), (2, 9));
        assert!(!sides.is_cut);
        assert_eq!(side_by_side("", ""), SideBySide::default());
        assert_eq!(side_by_side("two words", "two words").differences(), 0);
    }

    #[test]
    fn equal_and_empty_texts() {
        assert_eq!(pieces("a b", "a b"), [Piece::Shared("a b".to_owned())]);
        assert_eq!(pieces("", "x"), [Piece::Right("x".to_owned())]);
        assert!(pieces("", "").is_empty());
    }

    /// Words as texts have them: a few of them very often.
    fn text(random: &mut u64, words: usize) -> Vec<String> {
        let mut share = || (next_random(random) >> 11) as f64 / (1u64 << 53) as f64;
        (0..words).map(|_| format!("w{}", 3000f64.powf(share()).floor())).collect()
    }

    #[test]
    fn a_long_passage_of_one_text_does_not_hide_that_the_rest_is_the_same() {
        let mut random = 18;
        let (all, other) = (text(&mut random, 12_000), text(&mut random, 1_340));
        for at in [0, 5_000, 10_660] {
            let right = [&all[..at], &other, &all[at..10_660]].concat().join(" ");
            let sides = side_by_side(&all.join(" "), &right);
            assert!(sides.shared >= 10_660, "at {at}: {}", sides.shared);
        }
    }

    /// The words of both, as the definition has it: the longest common subsequence, by dynamic programming.
    fn longest_common(left: &[&str], right: &[&str]) -> usize {
        let mut row = vec![0; right.len() + 1];
        for &a in left {
            let mut diagonal = 0;
            for (at, &b) in right.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if a == b { diagonal + 1 } else { above.max(row[at]) };
                diagonal = above;
            }
        }
        row[right.len()]
    }

    #[test]
    fn steps_lead_through_both_texts_and_miss_hardly_a_shared_word() {
        let mut random = 7;
        for words in [1, 40, 400, 2_000] {
            let left = text(&mut random, words);
            let mut right = Vec::new();
            for word in &left {
                match next_random(&mut random) % 30 {
                    0 => {}
                    1 => right.extend(text(&mut random, 3)),
                    _ => right.push(word.clone()),
                }
            }
            let (left, right) = (left.join(" "), right.join(" "));
            let sides = side_by_side(&left, &right);
            for (whole, side) in [(&left, false), (&right, true)] {
                let spans = sides.rows.iter().flat_map(|row| if side { &row.right } else { &row.left });
                assert_eq!(&spans.map(|span| span.text.as_str()).collect::<Vec<_>>().join(" "), whole);
            }
            let (a, b) = (left.split(' ').collect::<Vec<_>>(), right.split(' ').collect::<Vec<_>>());
            let best = longest_common(&a, &b);
            assert!(sides.shared <= best && sides.shared * 100 >= best * 98, "{} of {best}", sides.shared);
        }
    }
}
