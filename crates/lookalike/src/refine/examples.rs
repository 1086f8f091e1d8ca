//! Results that were folded, as a table for people.

use crate::refine::{Folded, Lists, SearchResult};
use crate::report::links::web_address;
use crate::report::numbers::{counted, thousands};
use crate::report::plots::figures::{ExampleCell, ExampleTable};

/// Results that are shown.
const SHOWN: usize = 100;

/// The folded results of all lists, list by list; `folded` are those of `lists`.
pub(super) fn folded_results(lists: &Lists, folded: &[Folded]) -> ExampleTable {
    let mut rows = Vec::new();
    let all: usize = folded.iter().flat_map(|list| &list.groups).map(|group| group.others.len()).sum();
    for (number, (list, folded)) in lists.lists.iter().zip(folded).enumerate() {
        let name = list.name.clone().unwrap_or_else(|| format!("list {}", thousands(number + 1)));
        let places = folded.groups.iter().flat_map(|group| group.others.iter().map(move |fold| (group.best, fold)));
        for (best, fold) in places.take(SHOWN - rows.len()) {
            rows.push(vec![
                ExampleCell { text: name.clone(), ..ExampleCell::default() },
                result(list.results.get(fold.at), fold.at),
                result(list.results.get(best), best),
                ExampleCell { text: fold.relation.name().to_owned(), ..ExampleCell::default() },
                ExampleCell { text: format!("{:.3}", fold.similarity), ..ExampleCell::default() },
            ]);
        }
    }
    let note = if rows.len() < all {
        format!("The first {} of {}.", rows.len(), counted(all, "result"))
    } else {
        format!("{}, each with the better one that it was folded under.", counted(all, "result"))
    };
    let heads = vec!["list", "folded result", "under", "relation", "similarity"];
    ExampleTable { title: "Folded results", note, heads, rows }
}

/// A result by its title or whatever else it has, with its rank.
fn result(result: Option<&SearchResult>, at: usize) -> ExampleCell {
    let rank = thousands(at + 1);
    let Some(result) = result else { return ExampleCell { text: rank, ..ExampleCell::default() } };
    let name = [&result.title, &result.url, &result.id].into_iter().flatten().find(|name| !name.trim().is_empty());
    let name = name.map_or("", |name| name.as_str());
    let below = [&result.url, &result.id].into_iter().flatten().find(|text| text.as_str() != name);
    ExampleCell {
        text: format!("{rank}. {name}"),
        link: result.url.as_deref().and_then(web_address).map(str::to_owned),
        below: below.cloned().unwrap_or_default(),
    }
}
