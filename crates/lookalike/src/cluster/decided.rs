//! What a person decided about groups, and what becomes of them.
//!
//! In: groups, and decisions about pages by their ids, so that they hold for another run over the same pages. Out: for every
//! page of the groups concerned, the page that is kept in its place. A group that nobody decided about stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::page::{PageId, PageVec};

/// What a person decided about a page.
///
/// ```
/// use lookalike::result::GroupDecision;
///
/// let kept: GroupDecision = serde_json::from_str(r#"{"page": "a", "keep": true}"#)?;
/// let apart: GroupDecision = serde_json::from_str(r#"{"page": "b", "apart_from": "a"}"#)?;
/// assert!(kept.keep && apart.group.is_none());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupDecision {
    /// The page, by its id.
    pub page: String,
    /// It is the one that stays of its group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// It does not belong to the group of this page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart_from: Option<String>,
    /// Pages that are apart from the same group under one name form a group; a page without a name stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// How many decisions there were, and what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionReport {
    /// Decisions that were made.
    pub decisions: u64,
    /// Those about pages that the result does not have.
    pub unknown_pages: u64,
    /// Pages that have another group, or another page kept in their place.
    pub changed_pages: u64,
}

/// Reads decisions, one JSON object per line.
///
/// # Errors
/// When the file cannot be read, or with the line that is not a decision.
pub fn read_decisions(path: &Path) -> Result<Vec<GroupDecision>> {
    let text = std::fs::read_to_string(path).map_err(Error::io(path, "read"))?;
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    lines
        .map(|(line, number)| {
            serde_json::from_str(line)
                .map_err(|error| Error::bad_line(path, number, format!("is not a decision: {error}").replace('`', "'")))
        })
        .collect()
}

/// A decision about a page of this run.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageDecision {
    pub(crate) keep: bool,
    /// The page whose group it is apart from, and the name of its own.
    pub(crate) apart: Option<(PageId, Option<String>)>,
}

/// A part of a group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Rest,
    Named(PageId, String),
    Alone(PageId),
}

/// For every page of a group that was decided about, the page that is kept in its place: one that a person chose, else the
/// one that was kept, else the best-ranked.
pub(crate) fn apply(
    kept: &PageVec<PageId>,
    decisions: &BTreeMap<PageId, PageDecision>,
    rank: &dyn Fn(PageId) -> u32,
) -> BTreeMap<PageId, PageId> {
    let concerned: BTreeSet<PageId> = decisions.keys().map(|&page| kept[page]).collect();
    let mut parts: BTreeMap<(PageId, Part), Vec<PageId>> = BTreeMap::new();
    for (page, &group) in kept.by_page().filter(|(_, group)| concerned.contains(group)) {
        let part = match decisions.get(&page).and_then(|decision| decision.apart.as_ref()) {
            // Another run may have grouped them apart by itself.
            Some((from, _)) if kept[*from] != group || *from == page => Part::Rest,
            Some((from, Some(name))) => Part::Named(*from, name.clone()),
            Some((_, None)) => Part::Alone(page),
            None => Part::Rest,
        };
        parts.entry((group, part)).or_default().push(page);
    }
    let mut chosen = BTreeMap::new();
    for ((group, _), pages) in parts {
        let is_marked = |page: &&PageId| decisions.get(page).is_some_and(|decision| decision.keep);
        let best = |pages: &mut dyn Iterator<Item = &PageId>| pages.copied().min_by_key(|&page| rank(page));
        let stays = best(&mut pages.iter().filter(is_marked))
            .or_else(|| pages.contains(&group).then_some(group))
            .or_else(|| best(&mut pages.iter()));
        chosen.extend(pages.iter().filter_map(|&page| Some((page, stays?))));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::page_vec;

    fn page(number: u32) -> PageId {
        PageId::new(number)
    }

    /// A page, whether it stays, and what it is apart from.
    type Decided<'a> = (u32, bool, Option<(u32, Option<&'a str>)>);

    fn chosen(kept: &PageVec<PageId>, decisions: &[Decided<'_>]) -> Vec<(u32, u32)> {
        let decisions = decisions.iter().map(|&(number, keep, apart)| {
            let apart = apart.map(|(from, name)| (page(from), name.map(str::to_owned)));
            (page(number), PageDecision { keep, apart })
        });
        let found = apply(kept, &decisions.collect(), &PageId::number);
        found.into_iter().map(|(page, kept)| (page.number(), kept.number())).collect()
    }

    #[test]
    fn the_kept_mark_moves_and_other_groups_stay() {
        let kept = page_vec([0, 0, 0, 3, 3]);
        assert_eq!(chosen(&kept, &[(2, true, None)]), [(0, 2), (1, 2), (2, 2)]);
        assert_eq!(chosen(&kept, &[]), []);
        // Of two that were marked, the better-ranked one.
        assert_eq!(chosen(&kept, &[(2, true, None), (1, true, None)]), [(0, 1), (1, 1), (2, 1)]);
    }

    #[test]
    fn pages_are_split_off_together_or_alone() {
        let kept = page_vec([0, 0, 0, 0, 0]);
        let off = |name| Some((0, name));
        assert_eq!(chosen(&kept, &[(3, false, off(None))]), [(0, 0), (1, 0), (2, 0), (3, 3), (4, 0)]);
        assert_eq!(
            chosen(&kept, &[(2, false, off(Some("x"))), (4, true, off(Some("x"))), (3, false, off(Some("y")))]),
            [(0, 0), (1, 0), (2, 4), (3, 3), (4, 4)]
        );
    }

    #[test]
    fn the_page_that_was_kept_can_be_split_off_itself() {
        let kept = page_vec([2, 2, 2]);
        assert_eq!(chosen(&kept, &[(2, false, Some((0, None)))]), [(0, 0), (1, 0), (2, 2)]);
    }

    #[test]
    fn a_page_that_is_no_longer_in_that_group_stays_where_it_is() {
        let kept = page_vec([0, 0, 2, 2]);
        assert_eq!(chosen(&kept, &[(3, false, Some((0, None)))]), [(2, 2), (3, 2)]);
    }
}
