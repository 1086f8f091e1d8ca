//! The core of a page: the blocks that read like prose.
//!
//! In: the tokens of a page and where its blocks end. Out: which blocks are its core, or that there is too little
//! prose to tell. Menus, teasers, footers and tables of links are short or have few function words;
//! stories and paragraphs are long and full of them. Of several stretches of prose the best one counts,
//! if it holds most of it: comments and legal notices stand apart from the story. One pass over the
//! tokens, no tree.

use std::ops::Range;

use crate::page::Token;
use crate::text::cut::ranges;
use crate::text::language::{FUNCTION_WORDS, Lang, language_masks};

/// Words that a block of prose has at the least.
const MIN_WORDS: usize = 12;
/// Words of prose that a page has at the least; else the whole page is taken.
const MIN_CORE: usize = 200;
/// Share of the page's words that are prose, at the least; else the whole page is taken.
const MIN_SHARE: f64 = 0.2;
/// What a block that is not prose costs a stretch of prose, in words.
const GAP: i64 = 5;
/// Share of the prose that the best stretch has at the least; else all prose is taken.
const MAIN: f64 = 0.5;

/// Share of function words in prose. Lists of languages that bend words or write none of them apart
/// cover less.
fn function_share(language: Option<usize>) -> f64 {
    match language.map(|at| FUNCTION_WORDS[at].0) {
        None => 0.0,
        Some(Lang::Cmn | Lang::Rus | Lang::Ces | Lang::Pol) => 0.08,
        Some(_) => 0.15,
    }
}

/// Finds cores; owns its buffers, one per thread.
#[derive(Default)]
pub struct CoreFinder {
    masks: Vec<u16>,
    is_prose: Vec<bool>,
    chosen: Vec<bool>,
}

impl CoreFinder {
    /// For every block whether it belongs to the core; nothing if the whole page is to be taken.
    /// `block_ends` are numbers of tokens, ascending, the last one all of them.
    pub fn find(&mut self, tokens: &[Token], block_ends: &[usize]) -> Option<&[bool]> {
        let known = language_masks();
        self.masks.clear();
        self.masks.extend(tokens.iter().map(|&token| known.of(token)));
        let language = language_of(&self.masks);
        let bit = language.map_or(0, |at| 1u16 << at);
        let share = function_share(language);
        self.is_prose.clear();
        let mut prose = 0;
        for block in ranges(block_ends) {
            let words = block.len();
            let is_prose = words >= MIN_WORDS && {
                let function_words = self.masks[block].iter().filter(|&mask| mask & bit != 0).count();
                function_words as f64 >= share * words as f64
            };
            prose += if is_prose { words } else { 0 };
            self.is_prose.push(is_prose);
        }
        let is_enough = |words: usize| words >= MIN_CORE && words as f64 >= MIN_SHARE * tokens.len() as f64;
        if !is_enough(prose) {
            return None;
        }
        let stretch = self.best_stretch(block_ends);
        let inside: usize = ranges(block_ends)
            .zip(&self.is_prose)
            .skip(stretch.start)
            .take(stretch.len())
            .filter(|(_, is_prose)| **is_prose)
            .map(|(block, _)| block.len())
            .sum();
        let stretch =
            if is_enough(inside) && inside as f64 >= MAIN * prose as f64 { stretch } else { 0..self.is_prose.len() };
        self.chosen.clear();
        self.chosen.extend(self.is_prose.iter().enumerate().map(|(at, &is_prose)| is_prose && stretch.contains(&at)));
        Some(&self.chosen)
    }

    /// The stretch of blocks with most prose, less what stands in between.
    fn best_stretch(&self, block_ends: &[usize]) -> Range<usize> {
        let (mut current, mut best) = (0i64, 0i64);
        let (mut start, mut stretch) = (0, 0..0);
        for (at, (block, &is_prose)) in ranges(block_ends).zip(&self.is_prose).enumerate() {
            if block.is_empty() {
                continue;
            }
            if current <= 0 {
                (current, start) = (0, at);
            }
            current += if is_prose { i64::try_from(block.len()).expect("a block is in memory") } else { -GAP };
            if current > best {
                best = current;
                stretch = start..at + 1;
            }
        }
        stretch
    }
}

/// The language with most function words, if it stands out; an index into [`FUNCTION_WORDS`].
fn language_of(masks: &[u16]) -> Option<usize> {
    const SAMPLE: usize = 2000;
    let from = masks.len().saturating_sub(SAMPLE) / 2;
    let sample = &masks[from..masks.len().min(from + SAMPLE)];
    let mut counts = [0u32; FUNCTION_WORDS.len()];
    for &mask in sample.iter().filter(|&&mask| mask != 0) {
        for (at, count) in counts.iter_mut().enumerate() {
            *count += u32::from(mask >> at & 1);
        }
    }
    let (best, &most) = counts.iter().enumerate().max_by_key(|(at, count)| (**count, std::cmp::Reverse(*at)))?;
    let second = counts.iter().enumerate().filter(|(at, _)| *at != best).map(|(_, count)| *count).max()?;
    let stands_out =
        most >= 4 && f64::from(most) >= 0.05 * sample.len() as f64 && f64::from(most) > 1.2 * f64::from(second);
    stands_out.then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tokenize::Tokenizer;

    const PROSE: &str = "The house that was built by the river is said to have been the first in the valley, and it was sold by its owner in the spring of that year to a man who had never seen it.";
    const LINKS: &str =
        "Home News Sports Weather Business Markets Opinion Video Photos Travel Health Science Arts Books Style Food";

    /// Which of the blocks are the core.
    fn core(blocks: &[&str]) -> Option<Vec<bool>> {
        let mut tokens = Vec::new();
        let mut ends = Vec::new();
        for block in blocks {
            Tokenizer::new(false).tokenize(block, &mut tokens);
            ends.push(tokens.len());
        }
        CoreFinder::default().find(&tokens, &ends).map(<[bool]>::to_vec)
    }

    #[test]
    fn menus_and_scattered_notes_are_no_core() {
        let note =
            "All rights reserved by the owners of this site, who are not to be held liable for what is said in it.";
        let mut page = vec![LINKS, ""];
        page.extend([PROSE; 4]);
        page.push("Photo: a house");
        page.extend([PROSE; 4]);
        page.extend([LINKS; 8]);
        page.push(note);
        let chosen = core(&page).unwrap();
        let expected: Vec<bool> = page.iter().map(|&block| block == PROSE).collect();
        assert_eq!(chosen, expected);
    }

    #[test]
    fn pages_with_little_prose_are_taken_whole() {
        assert_eq!(core(&[LINKS, PROSE, LINKS]), None, "few words of prose");
        let mut page = vec![LINKS; 60];
        page.extend([PROSE; 5]);
        assert_eq!(core(&page), None, "a small share of prose");
        assert_eq!(core(&[]), None);
    }

    #[test]
    fn several_stories_far_apart_are_all_core() {
        // No stretch has half of the prose, so all of it counts.
        let mut page = Vec::new();
        for _ in 0..3 {
            page.extend([PROSE; 8]);
            page.extend([LINKS; 70]);
        }
        let chosen = core(&page).unwrap();
        assert_eq!(chosen.iter().filter(|&&is_core| is_core).count(), 24);
    }

    #[test]
    fn languages_without_a_list_are_told_by_length() {
        let korean = "이 문서는 아파치 웹 서버를 설치하고 설정하는 방법을 자세히 설명하며 처음 사용하는 사람도 쉽게 따라 할 수 있도록 쓰였다";
        let menu = "모듈 지시어 자주 묻는 질문";
        let page: Vec<&str> = std::iter::repeat_n(menu, 3).chain(std::iter::repeat_n(korean, 16)).collect();
        let chosen = core(&page).unwrap();
        assert_eq!(chosen.iter().filter(|&&is_core| is_core).count(), 16);
        let japanese = "この文書では、ウェブサーバーをインストールして設定する方法について、はじめて使う人にもわかるように詳しく説明しています。";
        let page: Vec<&str> = std::iter::repeat_n("モジュール", 3).chain(std::iter::repeat_n(japanese, 16)).collect();
        assert_eq!(core(&page).unwrap().iter().filter(|&&is_core| is_core).count(), 16);
    }
}
