//! A cluster: its pages as cards, its links as a graph, its tags, and what was decided about it.

use std::collections::HashMap;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use lookalike::result::GroupDecision;
use serde::Deserialize;

use super::{Frame, cut, message_page, name, page, rendered, verdict};
use crate::workbench::Shared;
use crate::workbench::filter::Filter;
use crate::workbench::graph::{self, Graph};
use crate::workbench::people::{Tag, TagSet};
use crate::workbench::reader::{CARDS, GroupRow, LinkRow, PageRow};

/// A page of the cluster.
struct Card {
    page: PageRow,
    verdict: &'static str,
    /// The tags of whoever asks; shown where they differ from those of the cluster.
    tags: Vec<Tag>,
    is_exception: bool,
    decision: Option<GroupDecision>,
}

impl Card {
    /// What was decided, in words.
    fn decided(&self) -> Option<String> {
        let decision = self.decision.as_ref()?;
        let apart = match (&decision.apart_from, &decision.group) {
            (Some(_), Some(group)) => Some(format!("split off with {}", cut(group))),
            (Some(_), None) => Some("not a duplicate".to_owned()),
            (None, _) => None,
        };
        let keep = decision.keep.then(|| "stays".to_owned());
        Some([apart, keep].into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// A tag as a button: on for all pages of the cluster, for some, or for none.
struct Button {
    tag: Tag,
    state: &'static str,
}

struct ButtonSet {
    set: TagSet,
    buttons: Vec<Button>,
}

struct NearMiss {
    link: LinkRow,
    other: PageRow,
    verdict: &'static str,
}

#[derive(Template)]
#[template(path = "workbench/cluster.html")]
struct ClusterPage {
    frame: Frame,
    filter: Filter,
    group: GroupRow,
    cards: Vec<Card>,
    sets: Vec<ButtonSet>,
    graph: Graph,
    near_misses: Vec<NearMiss>,
    note: String,
    other_notes: Vec<(String, String)>,
    others: Vec<super::Chip>,
    previous: Option<u32>,
    next: Option<u32>,
    /// The first and the last page that is shown, from 1.
    from: i64,
    to: i64,
    /// Pages of cards.
    parts: i64,
    part: i64,
    decided: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::workbench) struct Part {
    part: String,
}

pub(in crate::workbench) async fn show(
    State(bench): State<Shared>,
    Path(n): Path<i64>,
    Query(filter): Query<Filter>,
    Query(part): Query<Part>,
    headers: HeaderMap,
) -> Response {
    page(bench, move |bench| {
        bench.readers.ask(|reader| {
            let frame = Frame::new(bench, reader, &headers, "clusters")?;
            let group = reader.group(n)?;
            let parts = (group.pages + CARDS - 1) / CARDS;
            let part = part.part.parse().unwrap_or(1i64).clamp(1, parts.max(1));
            let pages = reader.members(n, (part - 1) * CARDS)?;
            let (all_sets, coders) = (reader.tag_sets()?, reader.coders()?);
            let me = frame.coder_id.unwrap_or(0);
            let ids: Vec<String> = pages.iter().map(|page| page.id.clone()).collect();
            let own = reader.page_tags(me, &ids)?;
            let mut cards = Vec::new();
            for page in pages {
                let (tags, is_exception) = own.get(&page.id).cloned().unwrap_or_default();
                let tags = all_sets.iter().flat_map(|set| &set.tags).filter(|tag| tags.contains(&tag.id));
                cards.push(Card {
                    verdict: if page.is_kept() { "" } else { verdict(page.similarity, page.page_similarity, true) },
                    tags: tags.cloned().collect(),
                    is_exception,
                    decision: reader.decision(&page.id)?,
                    page,
                });
            }
            let exceptions = i64::try_from(reader.exceptions(me, n)?.len()).unwrap_or(0);
            let state = |tag: &Tag| {
                let pages: i64 =
                    group.tags.iter().filter(|row| row.tag == tag.id && row.coder == me).map(|row| row.pages).sum();
                match pages {
                    0 => "off",
                    pages if pages >= group.pages - exceptions => "on",
                    _ => "some",
                }
            };
            let sets = all_sets.iter().map(|set| ButtonSet {
                buttons: set.tags.iter().map(|tag| Button { tag: tag.clone(), state: state(tag) }).collect(),
                set: set.clone(),
            });
            let sets = sets.collect();
            let links = reader.links(n)?;
            let mut labels: HashMap<i64, String> = HashMap::new();
            for node in links.iter().flat_map(|link| [link.left, link.right]).chain([n]) {
                if labels.len() <= graph::MOST_NODES && !labels.contains_key(&node) {
                    labels.insert(node, name(&reader.page(node)?.0));
                }
            }
            let mut near_misses = Vec::new();
            for link in reader.near_misses(n)? {
                let left = reader.page(link.left)?.0;
                let other = if left.group == n { reader.page(link.right)?.0 } else { left };
                let verdict = verdict(link.similarity, link.page_similarity, false);
                near_misses.push(NearMiss { link, other, verdict });
            }
            let others: Vec<_> = group.tags.iter().filter(|row| row.coder != me).cloned().collect();
            let [previous, next] = reader.beside(&bench.groups, &filter, frame.coder_id, n)?;
            rendered(&ClusterPage {
                previous,
                next,
                graph: graph::draw(n, &links, &labels),
                note: reader.note(me, &group.kept.id)?.unwrap_or_default(),
                other_notes: reader.other_notes(frame.coder_id, &group.kept.id)?,
                others: super::chips(&others, &all_sets, &coders, group.pages),
                decided: reader.count(
                    "SELECT count(*) FROM people.decision d JOIN page p ON p.id = d.page WHERE p.grp = ?1",
                    [n],
                )?,
                from: (part - 1) * CARDS + 1,
                to: (part * CARDS).min(group.pages),
                near_misses,
                parts,
                part,
                cards,
                sets,
                group,
                filter,
                frame,
            })
        })
    })
    .await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::workbench) struct Wanted {
    id: String,
}

/// The cluster of a page by its id: an address that holds for another run, too.
pub(in crate::workbench) async fn find(State(bench): State<Shared>, Query(wanted): Query<Wanted>) -> Response {
    let found = tokio::task::spawn_blocking(move || {
        bench.readers.ask(|reader| match reader.number(&wanted.id)? {
            Some(number) => Ok(Some(reader.page(number)?.0.group)),
            None => Ok(None),
        })
    })
    .await;
    match found {
        Ok(Ok(Some(group))) => Redirect::to(&format!("/clusters/{group}")).into_response(),
        _ => {
            let page = axum::response::Html(message_page("No page of this result has this id."));
            (axum::http::StatusCode::NOT_FOUND, page).into_response()
        }
    }
}
