//! What must be known about the whole corpus before pages are sketched.
//!
//! In: one reading of all pages. Out: how many pages have each feature (for weights by rarity), and
//! the words that carry the corpus's sentences (for antecedents chosen from it). Pages are counted in
//! their order, whatever the threads.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::feature::rarity::Rarity;
use crate::feature::shingle::into_set;
use crate::feature::spot::Antecedent;
use crate::method::{Antecedents, Spotsigs};
use crate::observe::Observer;
use crate::plan::{CorpusStats, Plan};
use crate::read::Corpus;
use crate::sketcher::Sketcher;
use crate::spill::Spill;
use crate::text::frames::{FrameLearner, Frames};
use crate::text::{PageReader, ReadPage, TextOptions};

/// Antecedents that are chosen.
const CHOSEN: usize = 40;
/// A page with fewer places of antecedents makes their set grow, until there are this many.
const FEW_PLACES: u64 = 16;
/// Antecedents that a set may grow to.
const MOST_GROWN: usize = 200;
/// Bytes of sample pages that stay in memory while frames are learnt.
pub(crate) const SAMPLE_BYTES: usize = 16 << 20;
/// Words that are counted at a time; the rarest go when there are more.
const MOST_WORDS: usize = 200_000;

/// Reads everything once for each thing that the config needs.
///
/// # Errors
/// When the input cannot be read.
pub fn count(config: &Config, corpus: &Corpus, threads: usize, observer: &dyn Observer) -> Result<CorpusStats> {
    let needs = config.corpus_needs();
    let mut stats = CorpusStats::default();
    if needs.frames {
        stats.frames = Some(Arc::new(learn_frames(config.content.text_options(), &[corpus], threads, observer)?));
    }
    if needs.antecedents {
        let grown_from = match Spotsigs::of(&config.method).map(|spotsigs| &spotsigs.antecedents) {
            Some(Antecedents::Growing(first)) => Some(first.as_slice()),
            _ => None,
        };
        stats.antecedents = match grown_from {
            Some(first) => growing_words(first, config, corpus, threads, observer)?,
            None => frequent_words(config, corpus, threads, observer)?,
        };
    }
    if needs.rarity {
        let plan = config.plan_with(Some(Arc::new(stats.clone())));
        stats.rarity = count_features(&plan, corpus, threads, observer)?;
    }
    Ok(stats)
}

/// Learns what sites put around their stories, in a pass of its own. From several corpora one thing is learnt: pages with
/// like markup are taken for pages of one site, whatever their hosts, so that the same is left out of each.
///
/// # Errors
/// When the input cannot be read.
pub(crate) fn learn_frames(
    options: TextOptions,
    corpora: &[&Corpus],
    threads: usize,
    observer: &dyn Observer,
) -> Result<Frames> {
    let file = tempfile::NamedTempFile::new().map_err(Error::io(&std::env::temp_dir(), "create"))?;
    let learner = RwLock::new(FrameLearner::new(Spill::new(file.path().to_path_buf(), SAMPLE_BYTES)));
    for corpus in corpora {
        corpus.scan().threads(threads).progress_to(observer).without_revisits().for_each(
            || PageReader::new(options),
            |reader, mut page| {
                page.url = page.url.filter(|_| corpora.len() == 1);
                Ok(reader.hold(&page, false, &learner).and_then(|(held, _)| held.sample()))
            },
            |page| {
                learner.write().unwrap_or_else(PoisonError::into_inner).add(page)?;
                Ok(ControlFlow::Continue(()))
            },
        )?;
    }
    learner.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
}

fn count_features(plan: &Plan, corpus: &Corpus, threads: usize, observer: &dyn Observer) -> Result<Rarity> {
    let mut rarity = Rarity::default();
    corpus.scan().threads(threads).progress_to(observer).for_each(
        || Sketcher::of_plan(plan),
        |sketcher, page| {
            sketcher.read(&page);
            let mut set = sketcher.sequence().to_vec();
            into_set(&mut set);
            Ok(Some(set))
        },
        |set| {
            rarity.add(&set);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(rarity)
}

/// How often each word stands in a page.
fn word_counts<'a>(read: &'a ReadPage<'_>) -> HashMap<&'a str, u64> {
    let mut counts = HashMap::new();
    for word in read.words.iter().filter(|word| word.chars().all(char::is_alphabetic)) {
        *counts.entry(word).or_default() += 1;
    }
    counts
}

/// How much each word carries sentences: for a page, the logarithm of how often it stands there.
#[derive(Default)]
struct WordScores(HashMap<String, u64>);

impl WordScores {
    fn add(&mut self, counts: &HashMap<impl AsRef<str>, u64>) {
        for (word, count) in counts.iter().filter(|(_, count)| **count > 1) {
            *self.0.entry(word.as_ref().to_owned()).or_default() += u64::from(count.ilog2());
        }
    }

    fn merge(&mut self, more: WordScores) {
        for (word, score) in more.0 {
            *self.0.entry(word).or_default() += score;
        }
        self.forget_rare();
    }

    /// What is among the chosen in the end is far from the bottom now.
    fn forget_rare(&mut self) {
        let mut bar = 1;
        while self.0.len() > MOST_WORDS {
            self.0.retain(|_, score| *score > bar);
            bar *= 2;
        }
    }
}

/// Antecedents that start with a few and grow while pages are read in their order: where one has few of them, the words
/// that stand in it twice or more are added, those first that carry most sentences so far.
fn growing_words(
    first: &[Antecedent],
    config: &Config,
    corpus: &Corpus,
    threads: usize,
    observer: &dyn Observer,
) -> Result<Vec<Antecedent>> {
    let options = TextOptions { words: true, blocks: false, ..config.plan().text };
    let mut grown = GrowingWords::new(first);
    corpus.scan().threads(threads).progress_to(observer).for_each(
        || PageReader::new(options),
        |reader, page| {
            let read = reader.read(&page);
            let counts: HashMap<String, u64> =
                word_counts(&read).into_iter().map(|(word, count)| (word.to_owned(), count)).collect();
            Ok(Some(counts))
        },
        |counts| {
            grown.add(&counts);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(grown.antecedents)
}

/// A set of antecedents while it grows.
struct GrowingWords {
    antecedents: Vec<Antecedent>,
    words: HashSet<String>,
    scores: WordScores,
}

impl GrowingWords {
    fn new(first: &[Antecedent]) -> GrowingWords {
        let words = first.iter().map(|antecedent| antecedent.word.to_lowercase()).collect();
        GrowingWords { antecedents: first.to_vec(), words, scores: WordScores::default() }
    }

    /// A page, by how often each word stands in it.
    fn add(&mut self, counts: &HashMap<String, u64>) {
        self.scores.add(counts);
        self.scores.forget_rare();
        let mut places: u64 = counts.iter().filter(|(word, _)| self.words.contains(*word)).map(|row| row.1).sum();
        if places >= FEW_PLACES {
            return;
        }
        let mut candidates: Vec<(&String, u64)> = counts
            .iter()
            .filter(|(word, count)| **count > 1 && !self.words.contains(*word))
            .map(|(word, &count)| (word, count))
            .collect();
        let score = |word: &String| self.scores.0.get(word).copied().unwrap_or(0);
        candidates.sort_by(|a, b| score(b.0).cmp(&score(a.0)).then(a.0.cmp(b.0)));
        let added: Vec<(&String, u64)> = candidates
            .into_iter()
            .take(MOST_GROWN.saturating_sub(self.antecedents.len()))
            .take_while(|(_, count)| {
                let is_needed = places < FEW_PLACES;
                places += count;
                is_needed
            })
            .collect();
        for (word, _) in added {
            self.words.insert(word.clone());
            self.antecedents.push(Antecedent::new(word));
        }
    }
}

/// The words that occur again and again in many pages. A word counts for a page with the logarithm of
/// how often it stands there: those of sentences do so often, those of menus once or twice.
fn frequent_words(
    config: &Config,
    corpus: &Corpus,
    threads: usize,
    observer: &dyn Observer,
) -> Result<Vec<Antecedent>> {
    let options = TextOptions { words: true, blocks: false, ..config.plan().text };
    let mut scores = WordScores::default();
    corpus.scan().threads(threads).progress_to(observer).for_each_batch(
        || PageReader::new(options),
        |reader, records| {
            let mut scores = WordScores::default();
            records.for_each_page(|page| {
                scores.add(&word_counts(&reader.read(&page)));
                Ok(())
            })?;
            Ok(scores)
        },
        |more| {
            scores.merge(more);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    let mut ranked: Vec<(String, u64)> = scores.0.into_iter().filter(|(_, score)| *score > 0).collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked.truncate(CHOSEN);
    let mut chosen: Vec<Antecedent> = ranked.into_iter().map(|(word, _)| Antecedent::new(&word)).collect();
    chosen.sort();
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(words: &[(&str, u64)]) -> HashMap<String, u64> {
        words.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect()
    }

    #[test]
    fn antecedents_grow_for_pages_that_have_few_of_them() {
        let mut grown = GrowingWords::new(&["said:3".parse().unwrap()]);
        let words = |grown: &GrowingWords| grown.antecedents.iter().map(ToString::to_string).collect::<Vec<_>>();
        grown.add(&page(&[("said", FEW_PLACES), ("the", 90)]));
        assert_eq!(words(&grown), ["said:3"], "a page that has enough adds none");
        // The most common word so far comes first, then whatever is needed; what stands there once carries nothing.
        grown.add(&page(&[("said", 1), ("rare", 4), ("the", 10), ("a", 5), ("once", 1)]));
        assert_eq!(words(&grown), ["said:3", "the:2:2", "a:2:2"]);
        grown.add(&page(&[("der", 30), ("und", 30)]));
        assert_eq!(words(&grown)[3..], ["der:2:2"], "no more than are needed");
        grown.add(&page(&[("the", FEW_PLACES - 2), ("neu", 2)]));
        assert_eq!(grown.antecedents.len(), 5);
    }
}
