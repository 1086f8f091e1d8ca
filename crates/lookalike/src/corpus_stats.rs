//! What must be known about the whole corpus before pages are sketched.
//!
//! In: one reading of all pages. Out: how many pages have each feature (for weights by rarity), and
//! the words that carry the corpus's sentences (for antecedents chosen from it). Pages are counted in
//! their order, whatever the threads.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::feature::rarity::Rarity;
use crate::feature::shingle::into_set;
use crate::feature::spot::Antecedent;
use crate::observe::Observer;
use crate::plan::{CorpusStats, Plan};
use crate::read::Corpus;
use crate::sketcher::Sketcher;
use crate::spill::Spill;
use crate::text::frames::{FrameLearner, Frames};
use crate::text::{PageReader, TextOptions};

/// Antecedents that are chosen.
const CHOSEN: usize = 40;
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
        stats.antecedents = frequent_words(config, corpus, threads, observer)?;
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
                let learner = learner.read().unwrap_or_else(PoisonError::into_inner);
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

/// The words that occur again and again in many pages. A word counts for a page with the logarithm of
/// how often it stands there: those of sentences do so often, those of menus once or twice.
fn frequent_words(
    config: &Config,
    corpus: &Corpus,
    threads: usize,
    observer: &dyn Observer,
) -> Result<Vec<Antecedent>> {
    let options = TextOptions { words: true, blocks: false, ..config.plan().text };
    let mut scores: HashMap<String, u64> = HashMap::new();
    corpus.scan().threads(threads).progress_to(observer).for_each_batch(
        || PageReader::new(options),
        |reader, records| {
            let mut scores: HashMap<String, u64> = HashMap::new();
            records.for_each_page(|page| {
                let read = reader.read(&page);
                let mut counts: HashMap<&str, u64> = HashMap::new();
                for word in read.words.iter().filter(|word| word.chars().all(char::is_alphabetic)) {
                    *counts.entry(word).or_default() += 1;
                }
                for (word, count) in counts.into_iter().filter(|(_, count)| *count > 1) {
                    *scores.entry(word.to_owned()).or_default() += u64::from(count.ilog2());
                }
                Ok(())
            })?;
            Ok(scores)
        },
        |more| {
            for (word, score) in more {
                *scores.entry(word).or_default() += score;
            }
            // What is among the chosen in the end is far from the bottom now.
            let mut bar = 1;
            while scores.len() > MOST_WORDS {
                scores.retain(|_, score| *score > bar);
                bar *= 2;
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    let mut ranked: Vec<(String, u64)> = scores.into_iter().filter(|(_, score)| *score > 0).collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked.truncate(CHOSEN);
    let mut chosen: Vec<Antecedent> = ranked.into_iter().map(|(word, _)| Antecedent::new(&word)).collect();
    chosen.sort();
    Ok(chosen)
}
