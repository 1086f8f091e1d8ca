//! Spot signatures matched as their paper does it (§3.3 and §4), in memory, so that every setting can be tried on one
//! reading of the pages.
//!
//! In: the tokens of all pages. Out: for each page the page that it is taken for a duplicate of. Every page that shares a
//! signature collides; the Jaccard similarity decides; pages of too different sizes are left out before, if that is wanted.
//! This is the definition: `dedup` finds the same with fewer comparisons.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::ControlFlow;
use std::time::Instant;

use crate::candidate::matching::seeded_order_key;
use crate::config::{Config, Guess};
use crate::corpus_stats;
use crate::error::Result;
use crate::evaluate::metrics::Counts;
use crate::feature::spot::{Antecedent, Spots};
use crate::observe::Silent;
use crate::page::{PageId, PageVec, Token};
use crate::read::Corpus;
use crate::report::stored::StoredPages;
use crate::text::PageReader;
use crate::text::term::TokenHasher;

/// A page as spot signatures see it.
#[derive(Default, Clone)]
pub(super) struct StudyPage {
    pub(super) tokens: Vec<Token>,
    block_ends: Vec<usize>,
}

/// The pages, and the clusters that they belong to.
pub(super) struct SpotStudy {
    pages: PageVec<StudyPage>,
    ids: PageVec<String>,
    pub(super) clusters: HashMap<PageId, u32>,
    keep_case: bool,
}

/// The signatures of all pages.
pub(super) type Signatures = PageVec<Vec<u64>>;

/// How pages are matched.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpotMatching {
    pub(super) threshold: f64,
    pub(super) guess: Guess,
    /// All pages are indexed before the first is matched.
    pub(super) is_full: bool,
    /// Duplicates are indexed, too.
    pub(super) index_duplicates: bool,
    /// Pages of too different sizes are not compared.
    pub(super) size_filter: bool,
    /// One page of each cluster is indexed before the first is matched.
    pub(super) is_seeded: bool,
}

impl SpotMatching {
    /// Incremental, with the best guess.
    pub(super) fn incremental(threshold: f64) -> SpotMatching {
        SpotMatching {
            threshold,
            guess: Guess::Best,
            is_full: false,
            index_duplicates: false,
            size_filter: true,
            is_seeded: false,
        }
    }
}

/// What became of a page when its turn came.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpotStep {
    pub(super) page: PageId,
    /// The page that it is a duplicate of.
    pub(super) duplicate_of: Option<PageId>,
    /// Indexed pages that share a signature with it.
    pub(super) collisions: usize,
    /// Those that it was compared with.
    pub(super) compared: usize,
    pub(super) seconds: f64,
    /// Pages in the index afterwards.
    pub(super) indexed: usize,
}

impl SpotStudy {
    /// Reads all pages once.
    pub(super) fn read(
        config: &Config,
        inputs: &[String],
        threads: usize,
        stored: &StoredPages,
        clustered: &[(PageId, u32)],
    ) -> Result<SpotStudy> {
        let corpus = Corpus::open(inputs, &config.read)?;
        let stats = corpus_stats::count(config, &corpus, threads, &Silent)?;
        let options = config.plan().text;
        let count = stored.pages.len();
        let (mut pages, mut ids) =
            (PageVec::filled(count, StudyPage::default()), PageVec::filled(count, String::new()));
        corpus.scan().threads(threads).for_each(
            || PageReader::new(options).without(stats.frames.clone()),
            |reader, page| {
                let read = reader.read(&page);
                let own = StudyPage { tokens: read.tokens.to_vec(), block_ends: read.block_ends.to_vec() };
                Ok(Some((corpus.id_of(&page), own)))
            },
            |(id, page)| {
                if let Some(number) = stored.ids.find(&id) {
                    pages[number] = page;
                    ids[number] = id;
                }
                Ok(ControlFlow::Continue(()))
            },
        )?;
        let clusters = clustered.iter().copied().collect();
        Ok(SpotStudy { pages, ids, clusters, keep_case: config.content.keep_case })
    }

    /// The tokens of a page.
    pub(super) fn tokens(&self, page: PageId) -> &[Token] {
        &self.pages[page].tokens
    }

    /// The signatures of all pages for some antecedents.
    pub(super) fn signatures(&self, antecedents: &[Antecedent]) -> Signatures {
        let spots = Spots::new(antecedents, self.keep_case);
        let of_page = |page: &StudyPage| {
            let mut signatures = Vec::new();
            spots.signatures(&page.tokens, &page.block_ends, &mut signatures);
            signatures
        };
        self.pages.iter().map(of_page).collect()
    }

    /// Pages in a random order.
    pub(super) fn shuffled(&self, seed: u64) -> Vec<PageId> {
        let mut order: Vec<PageId> = self.pages.pages().filter(|&page| !self.ids[page].is_empty()).collect();
        order.sort_by_key(|&page| (seeded_order_key(&self.ids[page], seed), page));
        order
    }

    /// Matches all pages, one after the other; examples are not matched.
    pub(super) fn matched(&self, signatures: &Signatures, order: &[PageId], how: SpotMatching) -> Vec<SpotStep> {
        let mut index = SpotIndex::new(signatures);
        let mut examples = std::collections::HashSet::new();
        if how.is_seeded {
            let mut known = std::collections::HashSet::new();
            for &page in order {
                if self.clusters.get(&page).is_some_and(|cluster| known.insert(*cluster)) {
                    examples.insert(page);
                    index.add(page);
                }
            }
        }
        if how.is_full {
            order.iter().for_each(|&page| index.add(page));
        }
        let mut steps = Vec::new();
        for &page in order.iter().filter(|page| !examples.contains(page)) {
            let started = Instant::now();
            let (duplicate_of, collisions, compared) = index.find(page, how);
            if !how.is_full && (duplicate_of.is_none() || how.index_duplicates) {
                index.add(page);
            }
            let seconds = started.elapsed().as_secs_f64();
            let indexed = index.pages.len();
            steps.push(SpotStep { page, duplicate_of, collisions, compared, seconds, indexed });
        }
        steps
    }

    /// Whether a page was taken for a duplicate rightly; nothing if it was not taken for one, or is not judged.
    pub(super) fn verdict(&self, step: &SpotStep) -> Option<bool> {
        let own = self.clusters.get(&step.page)?;
        Some(self.clusters.get(&step.duplicate_of?) == Some(own))
    }

    /// Precision and strict recall (§3.2). The duplicates to be found are all pages of a cluster but the first; where all
    /// pages are indexed beforehand, and where examples are, all that are matched.
    pub(super) fn scores(&self, steps: &[SpotStep], how: SpotMatching) -> Counts {
        let mut sizes: HashMap<u32, u64> = HashMap::new();
        for step in steps {
            if let Some(cluster) = self.clusters.get(&step.page) {
                *sizes.entry(*cluster).or_default() += 1;
            }
        }
        let to_find = |size: u64| match (how.is_seeded, how.is_full) {
            (true, _) => size,
            (false, true) if size > 1 => size,
            (false, _) => size - 1,
        };
        let mut counts = Counts { gold: sizes.values().map(|&size| to_find(size)).sum(), ..Counts::default() };
        for verdict in steps.iter().filter_map(|step| self.verdict(step)) {
            counts.correct += u64::from(verdict);
            counts.wrong += u64::from(!verdict);
        }
        counts
    }
}

/// Who has which signature.
struct SpotIndex<'s> {
    signatures: &'s Signatures,
    /// In the order in which they were added.
    pages: Vec<PageId>,
    places: HashMap<u64, Vec<u32>, BuildHasherDefault<TokenHasher>>,
}

impl SpotIndex<'_> {
    fn new(signatures: &Signatures) -> SpotIndex<'_> {
        SpotIndex { signatures, pages: Vec::new(), places: HashMap::default() }
    }

    fn add(&mut self, page: PageId) {
        let place = u32::try_from(self.pages.len()).expect("pages are numbered by 32 bits");
        self.pages.push(page);
        for &signature in &self.signatures[page] {
            self.places.entry(signature).or_default().push(place);
        }
    }

    /// The page that `page` is a duplicate of, how many pages collide with it, and how many were compared.
    fn find(&self, page: PageId, how: SpotMatching) -> (Option<PageId>, usize, usize) {
        let own = &self.signatures[page];
        let mut met: Vec<u32> =
            own.iter().filter_map(|signature| self.places.get(signature)).flatten().copied().collect();
        met.sort_unstable();
        met.dedup();
        met.retain(|&place| self.pages[place as usize] != page);
        let (collisions, mut compared) = (met.len(), 0);
        let mut best: Option<(PageId, f64)> = None;
        for other in met.into_iter().map(|place| self.pages[place as usize]) {
            let theirs = &self.signatures[other];
            let (fewer, more) = (own.len().min(theirs.len()) as f64, own.len().max(theirs.len()) as f64);
            if how.size_filter && fewer < how.threshold * more {
                continue;
            }
            compared += 1;
            let similarity = jaccard(own, theirs);
            if similarity > how.threshold && best.is_none_or(|known| similarity > known.1) {
                best = Some((other, similarity));
                if how.guess == Guess::First {
                    break;
                }
            }
        }
        (best.map(|found| found.0), collisions, compared)
    }
}

/// Of two sorted sets.
fn jaccard(left: &[u64], right: &[u64]) -> f64 {
    let (mut at, mut shared) = (0, 0);
    for value in left {
        while right.get(at).is_some_and(|other| other < value) {
            at += 1;
        }
        shared += usize::from(right.get(at) == Some(value));
    }
    shared as f64 / (left.len() + right.len() - shared).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(clusters: &[(u32, u32)]) -> SpotStudy {
        let pages = clusters.len();
        SpotStudy {
            pages: PageVec::filled(pages, StudyPage::default()),
            ids: (0..pages).map(|page| page.to_string()).collect(),
            clusters: clusters.iter().map(|&(page, cluster)| (PageId::new(page), cluster)).collect(),
            keep_case: false,
        }
    }

    /// Two stories in three and two copies, and a page of its own that shares one signature with all.
    fn example() -> (SpotStudy, Signatures, Vec<PageId>) {
        let study = study(&[(0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (5, 2)]);
        let signatures: Signatures = [
            vec![1, 2, 3, 4, 9],
            vec![1, 2, 3, 5, 9],
            vec![1, 2, 4, 6, 9],
            vec![9, 10, 11, 12],
            vec![9, 10, 11, 12],
            vec![9, 20, 21],
        ]
        .into_iter()
        .collect();
        let order = (0..6).map(PageId::new).collect();
        (study, signatures, order)
    }

    #[test]
    fn incremental_and_full_matching_follow_the_definition() {
        let (study, signatures, order) = example();
        let how = SpotMatching::incremental(0.4);
        let steps = study.matched(&signatures, &order, how);
        let of: Vec<Option<u32>> = steps.iter().map(|step| step.duplicate_of.map(PageId::number)).collect();
        // 1 and 0 share 4 of 6, 2 and 0 as many; 4 and 3 are equal; 5 shares one signature with everyone.
        assert_eq!(of, [None, Some(0), Some(0), None, Some(3), None]);
        assert_eq!(steps.iter().map(|step| step.indexed).collect::<Vec<_>>(), [1, 1, 1, 2, 2, 3]);
        assert_eq!(steps[5].collisions, 2);
        assert_eq!(study.scores(&steps, how), Counts { correct: 3, wrong: 0, gold: 3 });
        let full = SpotMatching { is_full: true, ..how };
        let steps = study.matched(&signatures, &order, full);
        let of: Vec<Option<u32>> = steps.iter().map(|step| step.duplicate_of.map(PageId::number)).collect();
        assert_eq!(of, [Some(1), Some(0), Some(0), Some(4), Some(3), None], "all pages, not only kept ones");
        assert_eq!(study.scores(&steps, full), Counts { correct: 5, wrong: 0, gold: 5 });
    }

    #[test]
    fn examples_are_matched_and_not_judged() {
        let (study, signatures, order) = example();
        let seeded = SpotMatching { is_seeded: true, ..SpotMatching::incremental(0.4) };
        let steps = study.matched(&signatures, &order, seeded);
        assert_eq!(steps.iter().map(|step| step.page.number()).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(study.scores(&steps, seeded), Counts { correct: 3, wrong: 0, gold: 3 });
    }

    #[test]
    fn the_size_filter_saves_comparisons_and_changes_nothing_else() {
        let (study, signatures, order) = example();
        let how = SpotMatching::incremental(0.7);
        let (with, without) = (
            study.matched(&signatures, &order, how),
            study.matched(&signatures, &order, SpotMatching { size_filter: false, ..how }),
        );
        let compared = |steps: &[SpotStep]| steps.iter().map(|step| step.compared).sum::<usize>();
        assert!(compared(&with) < compared(&without), "{with:?}");
        assert_eq!(compared(&without), without.iter().map(|step| step.collisions).sum::<usize>());
        assert!(with.iter().zip(&without).all(|(one, other)| one.duplicate_of == other.duplicate_of));
    }

    #[test]
    fn the_first_guess_is_the_first_above_the_threshold() {
        let study = study(&[(0, 0), (1, 1), (2, 1)]);
        let signatures: Signatures =
            [vec![1, 2, 3, 4], vec![3, 4, 5, 6, 7], vec![3, 4, 5, 6, 7, 8]].into_iter().collect();
        let order: Vec<PageId> = (0..3).map(PageId::new).collect();
        let first = SpotMatching { guess: Guess::First, ..SpotMatching::incremental(0.2) };
        let last = |how: SpotMatching| {
            let signatures: &Signatures = &signatures;
            let how = SpotMatching { index_duplicates: true, ..how };
            study.matched(signatures, &order, how)[2].duplicate_of.map(PageId::number)
        };
        assert_eq!(last(first), Some(0));
        assert_eq!(last(SpotMatching::incremental(0.2)), Some(1));
    }
}
