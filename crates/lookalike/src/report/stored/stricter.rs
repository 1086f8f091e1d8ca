//! Which of a result's verified pairs count: all, or those that reach stricter thresholds.

use crate::config::Config;
use crate::error::{Error, Result};
use crate::page::ScoredPair;
use crate::plan::Decision;
use crate::report::stored::StoredSummary;
use crate::report::summary::Thresholds;

/// Which pairs of a result count.
pub(crate) struct Stricter {
    /// The thresholds that were asked for.
    pub(crate) asked: Thresholds,
    /// The similarity from which pairs count.
    pub(crate) threshold: f64,
    /// What decides.
    pub(crate) decision: Decision,
    /// The config with these thresholds, as far as its method has them.
    pub(crate) config: Config,
}

impl Stricter {
    /// As the last clustering of a result was made.
    pub(crate) fn of(summary: &StoredSummary) -> Result<Stricter> {
        Stricter::new(summary.reclustered.unwrap_or_default(), &summary.config)
    }

    /// With these thresholds, or those of the result.
    ///
    /// # Errors
    /// When they are looser than those of the result, or not for its method.
    pub(crate) fn new(given: Thresholds, config: &Config) -> Result<Stricter> {
        let stated = [
            ("threshold", given.threshold),
            ("within_site", given.within_site),
            ("between_sites", given.between_sites),
        ];
        for (name, value) in stated.iter().filter_map(|(name, value)| Some((*name, (*value)?))) {
            if !(value > 0.0 && value <= 1.0) {
                return Err(Error::invalid(name, value, "must be a similarity above 0 and at most 1"));
            }
        }
        let (own, is_similarity) = (config.method.threshold(), config.method.has_similarity_threshold());
        let threshold = given.threshold.unwrap_or(if is_similarity { own } else { 0.0 });
        let mut stricter = config.clone();
        if is_similarity && given.threshold.is_some() {
            stricter.method = config.method.with_threshold(threshold);
        }
        for (name, value) in stated.iter().skip(1).filter_map(|(name, value)| Some((*name, (*value)?))) {
            stricter.method.set(name, &value.to_string())?;
        }
        let too_loose = |name: &'static str, value: f64, own: f64| {
            let expected = format!(
                "is below {own}, the threshold of this result: looser pairs were not verified; run the whole job again"
            );
            Err(Error::invalid(name, value, expected))
        };
        if is_similarity && threshold < own {
            return too_loose("threshold", threshold, own);
        }
        let decision = match (config.plan().decision, stricter.plan().decision) {
            (
                Decision::Stories { within: least, between: least_between, short: least_short, .. },
                Decision::Stories { text, within, between, short },
            ) => {
                if given.within_site.is_some_and(|within| within < least) {
                    return too_loose("within_site", within, least);
                }
                if given.between_sites.is_some_and(|between| between < least_between) {
                    return too_loose("between_sites", between, least_between);
                }
                let (within, between) = (within.max(least), between.max(least_between));
                Decision::Stories { text, within, between, short: short.max(least_short) }
            }
            (_, other) if given.within_site.or(given.between_sites).is_none() => other,
            _ => {
                let reason = "is for results in which stories were compared; this one has none";
                return Err(Error::conflict("within_site", reason));
            }
        };
        Ok(Stricter { asked: given, threshold, decision, config: stricter })
    }

    /// The similarity from which a pair counts.
    pub(crate) fn least(&self, pair: &ScoredPair) -> f64 {
        match self.decision {
            Decision::Stories { .. } => self.decision.story_threshold(pair.same_site, pair.is_short),
            _ => self.threshold,
        }
    }

    /// Whether a pair that the result has counts.
    pub(crate) fn counts(&self, pair: &ScoredPair) -> bool {
        self.asked == Thresholds::default() || self.decision.reaches(pair.similarity, self.least(pair))
    }

    /// What counts, in words.
    pub(crate) fn rule(&self) -> String {
        match self.asked.threshold.filter(|_| !self.config.method.has_similarity_threshold()) {
            Some(threshold) => format!("{}; similarity ≥ {threshold}", self.config.rule()),
            None => self.config.rule(),
        }
    }
}
