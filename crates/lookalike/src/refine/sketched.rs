//! Lists → sketches: of the texts that results carry, of the pages of a corpus, or as they were made before.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::index::{Index, OpenOptions};
use crate::page::{Body, Markup, RawPage};
use crate::read::Corpus;
use crate::refine::{Fold, Folded, Group, Lists, Refiner, Relation, SearchResult, StoredSketch};
use crate::sketch::simhash::cosine_of_distance;

/// Missing pages that are named.
const NAMED: usize = 10;

/// What every result of every list is compared by; nothing where it has no text.
///
/// # Errors
/// When a sketch cannot be used; for a run, when there is no corpus, or it lacks pages that it must have.
pub fn sketch_lists(
    refiner: &Refiner,
    lists: &Lists,
    corpus: &[String],
    allow_missing: bool,
    threads: usize,
) -> Result<Vec<Vec<Option<StoredSketch>>>> {
    if lists.is_run {
        return of_run(refiner, lists, corpus, allow_missing, threads);
    }
    let mut sketcher = refiner.sketcher();
    let mut sketched = Vec::new();
    for list in &lists.lists {
        let mut row = Vec::new();
        for (at, result) in list.results.iter().enumerate() {
            row.push(match (&result.sketch, &result.text) {
                (Some(sketch), _) => Some(
                    refiner
                        .read_sketch(sketch)
                        .map_err(|reason| Error::Usage(format!("result {}: its sketch {reason}", at + 1)))?,
                ),
                (None, Some(text)) => Some(refiner.sketch(&page(result, text), &mut sketcher)),
                (None, None) => None,
            });
        }
        sketched.push(row);
    }
    Ok(sketched)
}

fn page<'a>(result: &'a SearchResult, text: &'a str) -> RawPage<'a> {
    RawPage {
        url: result.url.as_deref().map(Cow::Borrowed),
        ..RawPage::new(Body::Text(Cow::Borrowed(text)), Markup::Unknown)
    }
}

fn of_run(
    refiner: &Refiner,
    lists: &Lists,
    corpus: &[String],
    allow_missing: bool,
    threads: usize,
) -> Result<Vec<Vec<Option<StoredSketch>>>> {
    if corpus.is_empty() {
        return Err(Error::Usage(
            "is a TREC run, which names pages and has no texts; say where they are: --corpus FILES".to_owned(),
        ));
    }
    let results = || lists.lists.iter().flat_map(|list| &list.results);
    let wanted: HashSet<&str> = results().filter_map(|result| result.id.as_deref()).collect();
    let config = refiner.config();
    let corpus = Corpus::open(corpus, &config.read)?;
    let mut known: HashMap<String, StoredSketch> = HashMap::new();
    corpus.scan().threads(threads).without_revisits().for_each(
        || refiner.sketcher(),
        |sketcher, page| {
            let id = corpus.id_of(&page);
            Ok(wanted.contains(id.as_str()).then(|| (id, refiner.sketch(&page, sketcher))))
        },
        |(id, sketch)| {
            // The first page of an id is the one that is meant.
            known.entry(id).or_insert(sketch);
            Ok(if known.len() == wanted.len() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        },
    )?;
    let mut missing: Vec<&str> = wanted.into_iter().filter(|id| !known.contains_key(*id)).collect();
    missing.sort_unstable();
    if !missing.is_empty() && (!allow_missing || known.is_empty()) {
        let more = missing.len().saturating_sub(NAMED);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        return Err(Error::Usage(format!(
            "{} pages of the run are not in the corpus: {}{rest}; {}",
            missing.len(),
            missing[..missing.len().min(NAMED)].join(", "),
            if known.is_empty() { "check the ids" } else { "use --allow-missing to leave them by themselves" }
        )));
    }
    let of = |result: &SearchResult| result.id.as_deref().and_then(|id| known.get(id).cloned());
    Ok(lists.lists.iter().map(|list| list.results.iter().map(of).collect()).collect())
}

/// Lists that were folded by fingerprints alone.
#[derive(Debug, Clone)]
pub struct ByFingerprints {
    /// The lists.
    pub lists: Vec<Folded>,
    /// Results that the index does not have.
    pub without: usize,
}

/// Folds lists by the fingerprints that an index has under the results' ids. Similarities are cosines as the
/// distances tell them: there are no texts to compare.
///
/// # Errors
/// When the index cannot be read, or has none of the ids.
pub fn by_fingerprints(lists: &Lists, index: &Path, config: &Config) -> Result<ByFingerprints> {
    let opened = Index::open(index, OpenOptions::default())?;
    let radius = config.radius();
    let results = || lists.lists.iter().flat_map(|list| &list.results);
    let wanted: HashSet<&str> = results().filter_map(|result| result.id.as_deref()).collect();
    let mut known: HashMap<String, u64> = HashMap::new();
    opened.reader().for_each_row(&mut |fingerprint, id| {
        let id = id.to_string();
        if wanted.contains(id.as_str()) {
            known.insert(id, fingerprint);
        }
        Ok(())
    })?;
    if known.is_empty() {
        let example = wanted.iter().min().copied().unwrap_or_default();
        return Err(Error::Usage(format!(
            "{}: has none of the results' ids, '{example}' for example; --id-field says which field has them",
            index.display()
        )));
    }
    let mut folded = ByFingerprints { lists: Vec::new(), without: 0 };
    for list in &lists.lists {
        let values: Vec<Option<u64>> =
            list.results.iter().map(|result| known.get(result.id.as_deref()?).copied()).collect();
        folded.without += values.iter().filter(|value| value.is_none()).count();
        folded.lists.push(fold(&values, radius));
    }
    Ok(folded)
}

fn fold(values: &[Option<u64>], radius: u32) -> Folded {
    let mut groups: Vec<Group> = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let near = groups.iter_mut().filter_map(|group| {
            let distance = ((*value)? ^ values[group.best]?).count_ones();
            (distance <= radius).then_some((distance, group))
        });
        match near.min_by_key(|(distance, group)| (*distance, group.best)) {
            Some((distance, group)) => {
                let similarity = cosine_of_distance(distance, 64).max(0.0);
                let fold =
                    Fold { at, similarity, in_best: similarity, best_in_it: similarity, relation: Relation::Near };
                group.others.push(fold);
            }
            None => groups.push(Group { best: at, others: Vec::new() }),
        }
    }
    Folded { groups, results: values.len() }
}
