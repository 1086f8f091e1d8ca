//! How far coders agree: Cohen's kappa for each two of them.

use std::collections::{BTreeMap, BTreeSet};

use lookalike::evaluate::agreement::Agreement;

use super::failure::Outcome;
use super::people::TagSet;
use super::reader::Reader;

/// Two coders, and how far they agree about a tag set, or a tag of it.
pub(super) struct AgreementRow {
    pub(super) what: String,
    pub(super) coders: (String, String),
    pub(super) clusters: u64,
    pub(super) observed: f64,
    pub(super) kappa: Option<f64>,
}

/// The agreement of each two coders about what both tagged. Clusters are counted, by the tags of their kept pages: their
/// pages were mostly tagged at once, and are not as many opinions.
pub(super) fn agreement(reader: &Reader<'_>, sets: &[TagSet]) -> Outcome<Vec<AgreementRow>> {
    let coders = reader.coders()?;
    let mut rows = Vec::new();
    for set in sets {
        // For each coder the tags of this set on each cluster.
        let mut labels: BTreeMap<i64, BTreeMap<i64, BTreeSet<i64>>> = BTreeMap::new();
        let mut query = reader.connection().prepare_cached(
            "SELECT t.coder, p.n, t.tag FROM people.tagging t JOIN people.tag g ON g.id = t.tag JOIN page p ON p.id = t.page
             WHERE g.tag_set = ?1 AND p.n = p.grp",
        )?;
        let mut found = query.query([set.id])?;
        while let Some(row) = found.next()? {
            labels.entry(row.get(0)?).or_default().entry(row.get(1)?).or_default().insert(row.get(2)?);
        }
        for (at, (left, left_name)) in coders.iter().enumerate() {
            for (right, right_name) in &coders[at + 1..] {
                let (Some(one), Some(other)) = (labels.get(left), labels.get(right)) else { continue };
                let both: Vec<(&BTreeSet<i64>, &BTreeSet<i64>)> =
                    one.iter().filter_map(|(cluster, tags)| Some((tags, other.get(cluster)?))).collect();
                if both.is_empty() {
                    continue;
                }
                let mut row = |what: String, found: Agreement| {
                    let coders = (left_name.clone(), right_name.clone());
                    let (clusters, observed, kappa) = (found.items, found.observed, found.kappa());
                    rows.push(AgreementRow { what, coders, clusters, observed, kappa });
                };
                row(set.name.clone(), Agreement::of(both.iter().copied()));
                if !set.is_single {
                    for tag in &set.tags {
                        let has = both.iter().map(|(one, other)| (one.contains(&tag.id), other.contains(&tag.id)));
                        row(format!("{}: {}", set.name, tag.label), Agreement::of(has));
                    }
                }
            }
        }
    }
    Ok(rows)
}
