//! What the pages say: texts that are read again, and differences between dropped pages and those kept in their place.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use rayon::prelude::*;

use crate::error::Result;
use crate::page::{Kind, PageId, PageOrigin, RawPage, ScoredPair};
use crate::report::Findings;
use crate::report::diff::{self, Piece};
use crate::report::sinks::page::cluster_index::Clusters;
use crate::text::{BlockPart, PageReader};

/// Pairs whose differences are in the page.
pub(super) const MOST_DIFFS: usize = 500;
/// Half of them are the weakest links of the largest clusters, the other half the weakest of all.
const OF_LARGEST: usize = MOST_DIFFS / 2;
/// Letters of the differences of one pair.
const DIFF_LETTERS: usize = 5000;
/// Text of a page that is kept for showing, and of all of them.
const TEXT_BYTES: u64 = 40_000;
const ALL_BYTES: u64 = 16 << 20;
/// Words that stand for a page without a title.
const SNIPPET_WORDS: usize = 14;
const SNIPPET_CHARS: usize = 90;

/// The text of a page, as far as it is compared, and how many words are not.
#[derive(Default)]
pub(super) struct ShownText {
    pub(super) compared: String,
    pub(super) left_out: usize,
}

/// What a dropped page and the one kept in its place differ in.
pub(super) struct ShownDiff {
    pub(super) pieces: Vec<Piece>,
    /// Differences that are not shown.
    pub(super) hidden: usize,
}

/// Texts, and differences by the number that the page knows them by.
pub(super) struct Evidence {
    texts: HashMap<PageId, ShownText>,
    raw: HashMap<PageId, RawPage<'static>>,
    pub(super) diffs: Vec<ShownDiff>,
    numbers: HashMap<PageId, usize>,
}

impl Evidence {
    /// Reads what is needed for `pairs` and for the pairs of clusters that are worth a look.
    pub(super) fn new(findings: &Findings<'_>, clusters: &Clusters, pairs: &[ScoredPair]) -> Result<Evidence> {
        let paired: BTreeSet<PageId> = pairs.iter().flat_map(|pair| [pair.left, pair.right]).collect();
        let chosen = worth_a_look(findings, clusters);
        let mut needed = paired.clone();
        needed.extend(chosen.iter().flat_map(|&page| [page, findings.fates.kept(page)]));
        // Names of the first rows, where pages have no titles.
        needed.extend(clusters.rows.iter().take(SNIPPETS).map(|row| row.0));
        let (texts, raw) = read(findings, &needed, &paired)?;
        let text = |page: PageId| texts.get(&page).map_or("", |text: &ShownText| text.compared.as_str());
        let diffs = chosen
            .par_iter()
            .map(|&page| shortened(diff::pieces(text(findings.fates.kept(page)), text(page)), DIFF_LETTERS));
        let diffs = diffs.collect();
        Ok(Evidence {
            diffs,
            numbers: chosen.into_iter().enumerate().map(|(at, page)| (page, at)).collect(),
            texts,
            raw,
        })
    }

    /// The number of the differences between a dropped page and the one kept in its place, if they are in the page.
    pub(super) fn diff_of(&self, page: PageId) -> Option<usize> {
        self.numbers.get(&page).copied()
    }

    /// The text of a page; pages of an index have none.
    pub(super) fn text(&self, page: PageId) -> Option<&ShownText> {
        self.texts.get(&page)
    }

    /// A page as it was read.
    pub(super) fn raw(&self, page: PageId) -> Option<&RawPage<'static>> {
        self.raw.get(&page)
    }

    /// The first words of a page without a title.
    pub(super) fn snippet(&self, page: PageId) -> Option<String> {
        let text = &self.texts.get(&page)?.compared;
        let words = text.split_whitespace().take(SNIPPET_WORDS).collect::<Vec<_>>().join(" ");
        (!words.is_empty()).then(|| words.chars().take(SNIPPET_CHARS).chain(" …".chars()).collect())
    }
}

/// Clusters whose kept page is named by its first words.
const SNIPPETS: usize = 100;

/// Dropped pages whose differences from the kept page are shown: the weakest links of the largest clusters, then the weakest
/// of all.
fn worth_a_look(findings: &Findings<'_>, clusters: &Clusters) -> Vec<PageId> {
    let has_text = |page: PageId| findings.pages.origin(page) != PageOrigin::IndexRow;
    let differs = |page: &PageId| {
        let fate = findings.fates.of(*page);
        matches!(fate.kind, Kind::Near | Kind::Contained) && has_text(*page) && has_text(fate.kept)
    };
    let weakest = |at: usize| clusters.members(at).iter().copied().find(|page| differs(page));
    let largest = (0..clusters.rows.len()).filter_map(weakest).take(OF_LARGEST);
    let mut rest: Vec<PageId> =
        (0..clusters.rows.len()).flat_map(|at| clusters.members(at)).copied().filter(differs).collect();
    let order = |a: &PageId, b: &PageId| {
        findings.fates.of(*a).similarity.total_cmp(&findings.fates.of(*b).similarity).then(a.cmp(b))
    };
    if rest.len() > MOST_DIFFS {
        rest.select_nth_unstable_by(MOST_DIFFS, order);
        rest.truncate(MOST_DIFFS);
    }
    rest.sort_unstable_by(order);
    let bytes = |page: PageId| findings.pages.place(page).length.min(TEXT_BYTES);
    let (mut chosen, mut seen, mut room) = (Vec::new(), BTreeSet::new(), ALL_BYTES);
    for page in largest.chain(rest) {
        let takes = bytes(page) + bytes(findings.fates.kept(page));
        if chosen.len() < MOST_DIFFS && takes <= room && seen.insert(page) {
            room -= takes;
            chosen.push(page);
        }
    }
    chosen
}

/// As many pieces as fit, whole places of difference; at least the first.
fn shortened(mut pieces: Vec<Piece>, letters: usize) -> ShownDiff {
    let mut used = 0;
    let end = pieces.iter().position(|piece| {
        used += match piece {
            Piece::Shared(text) | Piece::Left(text) | Piece::Right(text) => text.len(),
            Piece::Omitted(_) | Piece::NotCompared => 0,
        };
        used > letters
    });
    let is_difference = |piece: &Piece| matches!(piece, Piece::Left(_) | Piece::Right(_));
    let end = end.unwrap_or(pieces.len()).max(pieces.iter().position(is_difference).map_or(0, |first| first + 1));
    let hidden = pieces[end..].iter().filter(|piece| is_difference(piece)).count();
    if hidden > 0 {
        pieces.truncate(end);
    }
    ShownDiff { pieces, hidden }
}

type Read = (HashMap<PageId, ShownText>, HashMap<PageId, RawPage<'static>>);

/// The texts of pages, cut to what is shown; those in `paired` also unchanged.
fn read(findings: &Findings<'_>, pages: &BTreeSet<PageId>, paired: &BTreeSet<PageId>) -> Result<Read> {
    let wanted = findings.pages.wanted(&pages.iter().copied().collect::<Vec<_>>());
    let frames = findings.plan.corpus.as_ref().and_then(|corpus| corpus.frames.clone());
    let most = usize::try_from(TEXT_BYTES).unwrap_or(usize::MAX);
    let (mut texts, mut whole) = (HashMap::new(), HashMap::new());
    findings.reading.scan().threads(rayon::current_num_threads()).for_each_of(
        &wanted,
        || PageReader::new(findings.plan.text).without(frames.clone()),
        |reader, page, raw| {
            let mut text = ShownText::default();
            for block in reader.parts(&raw) {
                if block.part == BlockPart::Compared {
                    text.compared.push_str(&block.text);
                    text.compared.push('\n');
                } else {
                    text.left_out += block.text.split_whitespace().count();
                }
            }
            text.compared.truncate(text.compared.floor_char_boundary(most));
            text.compared.shrink_to_fit();
            Ok(Some((page, text, paired.contains(&page).then(|| raw.into_owned()))))
        },
        |(page, text, raw)| {
            texts.insert(page, text);
            whole.extend(raw.map(|raw| (page, raw)));
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok((texts, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_differences_are_cut_at_whole_places_and_counted() {
        let pieces = || {
            (0..10)
                .flat_map(|n| [Piece::Shared("same words".to_owned()), Piece::Left(format!("changed {n}"))])
                .collect()
        };
        let all = shortened(pieces(), 1000);
        assert_eq!((all.pieces.len(), all.hidden), (20, 0));
        let few = shortened(pieces(), 40);
        assert_eq!((few.pieces.len(), few.hidden), (4, 8));
        // One place is shown however long it is.
        let long = shortened(vec![Piece::Omitted(5), Piece::Left("x".repeat(100)), Piece::Right("y".to_owned())], 10);
        assert_eq!((long.pieces.len(), long.hidden), (2, 1));
    }
}
