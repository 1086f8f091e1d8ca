//! Lists → sketches: of the texts in the results, of the pages of a corpus, or sketches made before.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use crate::config::Config;
use crate::error::{Error, Result, first_names};
use crate::index::{Index, OpenOptions};
use crate::page::{Body, Markup, RawPage};
use crate::read::Corpus;
use crate::refine::{
    EvidenceSet, Fold, Folded, Group, Lists, Refiner, Relation, ResultList, SearchResult, StoredSketch,
};
use crate::sketch::simhash::cosine_of_distance;

/// Where the texts of a TREC run are.
#[derive(Debug, Clone, Copy)]
pub struct RunCorpus<'a> {
    /// Files of pages.
    pub inputs: &'a [String],
    /// Pages of the run may be missing from it.
    pub allow_missing: bool,
    /// Threads that read it.
    pub threads: usize,
}

/// The sketches of every list, in the order of its results; none where a result has no text.
pub type ListSketches = Vec<Vec<Option<StoredSketch>>>;

/// Sketches every result of every list. The corpus is for TREC runs, which have no texts.
///
/// # Errors
/// When a sketch cannot be used; for a run, when there is no corpus, or it lacks pages that it must have.
pub fn sketch_lists(refiner: &Refiner, lists: &Lists, corpus: RunCorpus<'_>) -> Result<ListSketches> {
    if lists.is_run() {
        return of_run(refiner, lists, corpus);
    }
    let of = |list| sketch_list(refiner, list).map_err(|reason| Error::bad_input(&lists.path, reason));
    lists.lists.iter().map(of).collect()
}

/// Sketches every result of a list that is not of a run; none where a result has no text.
///
/// # Errors
/// When a sketch that a result brings cannot be used; with the reason.
pub fn sketch_list(refiner: &Refiner, list: &ResultList) -> Result<Vec<Option<StoredSketch>>, String> {
    let mut sketcher = refiner.sketcher();
    let mut sketch = |(at, result): (usize, &SearchResult)| match (&result.sketch, &result.text) {
        (Some(sketch), _) => {
            let read = refiner.read_sketch(sketch);
            read.map(Some).map_err(|reason| format!("result {}: its sketch {reason}", at + 1))
        }
        (None, Some(text)) => Ok(Some(refiner.sketch(&page(result, text), &mut sketcher))),
        (None, None) => Ok(None),
    };
    list.results.iter().enumerate().map(&mut sketch).collect()
}

fn page<'a>(result: &'a SearchResult, text: &'a str) -> RawPage<'a> {
    let markup = if result.is_html { Markup::Html } else { Markup::Unknown };
    RawPage { url: result.url.as_deref().map(Cow::Borrowed), ..RawPage::new(Body::Text(Cow::Borrowed(text)), markup) }
}

fn of_run(refiner: &Refiner, lists: &Lists, corpus: RunCorpus<'_>) -> Result<ListSketches> {
    if corpus.inputs.is_empty() {
        let reason = "is a TREC run, which names pages but has no texts; say where they are with `corpus`";
        return Err(Error::bad_input(&lists.path, reason));
    }
    let results = || lists.lists.iter().flat_map(|list| &list.results);
    let wanted: HashSet<&str> = results().filter_map(|result| result.id.as_deref()).collect();
    let config = refiner.config();
    let pages = Corpus::open(corpus.inputs, &config.read)?;
    let mut known: HashMap<String, StoredSketch> = HashMap::new();
    pages.scan().threads(corpus.threads).without_revisits().for_each(
        || refiner.sketcher(),
        |sketcher, page| {
            let id = pages.id_of(&page);
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
    if !missing.is_empty() && (!corpus.allow_missing || known.is_empty()) {
        let reason = format!(
            "{} of the {} pages of the run are not in the corpus:\n{}\n{}",
            missing.len(),
            missing.len() + known.len(),
            first_names(&missing),
            if known.is_empty() { "check the ids" } else { "use `allow_missing` to leave them by themselves" }
        );
        return Err(Error::bad_input(&lists.path, reason));
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

/// Folds lists by the fingerprints that an index has under the results' ids. Similarities are cosines estimated from
/// the distances: there are no texts to compare.
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
        let reason = format!(
            "has none of the results' ids, '{example}' for example; name the field that has them with `id_field`"
        );
        return Err(Error::bad_input(index, reason));
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
                let (relation, evidence) = (Relation::Near, EvidenceSet::TEXT);
                let fold = Fold { at, similarity, in_best: similarity, best_in_it: similarity, relation, evidence };
                group.others.push(fold);
            }
            None => groups.push(Group { best: at, others: Vec::new() }),
        }
    }
    Folded { groups, results: values.len() }
}
