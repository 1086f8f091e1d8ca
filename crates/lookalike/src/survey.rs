//! What must be known about the whole corpus before pages are sketched.
//!
//! In: one reading of all pages. Out: how many pages have each feature (for weights by rarity), and
//! the words that carry the corpus's sentences (for antecedents chosen from it). Pages are counted in
//! their order, whatever the threads.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::candidate::rarity::Rarity;
use crate::config::{Antecedents, Config, Method};
use crate::error::Result;
use crate::feature::shingle::into_set;
use crate::feature::spot::Antecedent;
use crate::method::Plan;
use crate::observe::Observer;
use crate::parallel::in_order;
use crate::read::{Batch, Reading};
use crate::sketch::sketcher::Sketcher;
use crate::text::{PageReader, TextOptions};

/// Antecedents that are chosen.
const CHOSEN: usize = 40;
/// Words that are counted at a time; the rarest go when there are more.
const MOST_WORDS: usize = 200_000;

/// What was counted.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Pages that have each feature.
    pub rarity: Rarity,
    /// The antecedents chosen from the corpus.
    pub antecedents: Vec<Antecedent>,
}

impl Survey {
    /// Whether a config needs one.
    #[must_use]
    pub fn is_needed(config: &Config) -> bool {
        !config.exact_only && (config.weights.needs_corpus() || chooses_antecedents(config))
    }

    /// Reads everything once.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn take(config: &Config, reading: &Reading<'_>, threads: usize, observer: &dyn Observer) -> Result<Survey> {
        let mut survey = Survey::default();
        if chooses_antecedents(config) {
            survey.antecedents = frequent_words(config, reading, threads, observer)?;
        }
        if config.weights.needs_corpus() {
            let plan = Plan::with_survey(config, Some(std::sync::Arc::new(survey.clone())));
            survey.rarity = count_features(config, &plan, reading, threads, observer)?;
        }
        Ok(survey)
    }
}

fn chooses_antecedents(config: &Config) -> bool {
    config.method == Method::Spotsigs && config.spots.antecedents == Antecedents::Auto
}

fn count_features(
    config: &Config,
    plan: &Plan,
    reading: &Reading<'_>,
    threads: usize,
    observer: &dyn Observer,
) -> Result<Rarity> {
    let mut rarity = Rarity::default();
    in_order(
        threads,
        |jobs| reading.read_all(jobs),
        || Sketcher::new(plan, config),
        |sketcher, batch: Batch| {
            let mut sets: Vec<Vec<u64>> = Vec::new();
            batch.visit(reading, &mut |found| {
                if let Ok(page) = found {
                    sketcher.read(&page);
                    let mut set = sketcher.sequence().to_vec();
                    into_set(&mut set);
                    sets.push(set);
                }
                Ok(())
            })?;
            Ok(sets)
        },
        |sets| {
            sets.iter().for_each(|set| rarity.add(set));
            observer.advance(0, sets.len() as u64);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(rarity)
}

/// The words that occur again and again in many pages. A word counts for a page with the logarithm of
/// how often it stands there: those of sentences do so often, those of menus once or twice.
fn frequent_words(
    config: &Config,
    reading: &Reading<'_>,
    threads: usize,
    observer: &dyn Observer,
) -> Result<Vec<Antecedent>> {
    let options = TextOptions { words: true, blocks: false, ..config.text_options() };
    let mut scores: HashMap<String, u64> = HashMap::new();
    in_order(
        threads,
        |jobs| reading.read_all(jobs),
        || PageReader::new(options),
        |reader, batch: Batch| {
            let mut scores: HashMap<String, u64> = HashMap::new();
            let mut pages = 0u64;
            batch.visit(reading, &mut |found| {
                let Ok(page) = found else { return Ok(()) };
                let read = reader.read(&page);
                let mut counts: HashMap<&str, u64> = HashMap::new();
                for word in read.words.iter().filter(|word| word.chars().all(char::is_alphabetic)) {
                    *counts.entry(word).or_default() += 1;
                }
                for (word, count) in counts.into_iter().filter(|(_, count)| *count > 1) {
                    *scores.entry(word.to_owned()).or_default() += u64::from(count.ilog2());
                }
                pages += 1;
                Ok(())
            })?;
            Ok((scores, pages))
        },
        |(more, pages)| {
            for (word, score) in more {
                *scores.entry(word).or_default() += score;
            }
            // What is among the chosen in the end is far from the bottom now.
            let mut bar = 1;
            while scores.len() > MOST_WORDS {
                scores.retain(|_, score| *score > bar);
                bar *= 2;
            }
            observer.advance(0, pages);
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
