//! The calls of the pages' script: everything that changes something.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lookalike::evaluate::audit::{self, SampleOptions};
use lookalike::result::GroupDecision;
use rusqlite::params;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::failure::{Failure, Outcome};
use super::filter::encode;
use super::guard::{TOKEN, cookie};
use super::people::{Change, Removable, short};
use super::{Shared, Workbench};

/// Characters of a note.
const NOTE_CHARS: usize = 10_000;
/// Pairs of a sample for judging.
const MOST_PAIRS: usize = 5_000;

/// Answers with what some work returns, done where it may take its time.
async fn answer(bench: Shared, work: impl FnOnce(&Workbench) -> Outcome<Value> + Send + 'static) -> Response {
    let done = tokio::task::spawn_blocking(move || work(&bench)).await;
    match done {
        Ok(Ok(value)) => crate::json(StatusCode::OK, &value),
        Ok(Err(failure)) => failure.into_response(),
        Err(_) => crate::problem::internal().into_response(),
    }
}

fn parse<T: DeserializeOwned>(body: &Bytes) -> Outcome<T> {
    serde_json::from_slice(body).map_err(|error| Failure::Refused(format!("the call cannot be understood: {error}")))
}

/// What somebody who asks is called.
pub(super) fn coder_name(bench: &Workbench, headers: &HeaderMap) -> String {
    let given = cookie(headers, "lookalike-coder").map(decode).unwrap_or_default();
    short(&given, "a name").map_or_else(|_| bench.settings.coder.clone(), str::to_owned)
}

/// A text as it was before it stood in a cookie.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let hex =
            text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(hex.unwrap_or(bytes[at]));
        at += if hex.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

pub(super) async fn version(State(bench): State<Shared>) -> Response {
    crate::json(StatusCode::OK, &json!({"version": bench.version.load(Ordering::Relaxed)}))
}

fn with_cookie(mut response: Response, name: &str, value: &str, more: &str) -> Response {
    let cookie = format!("{name}={value}; Path=/; SameSite=Strict; Max-Age=31536000{more}");
    if let Ok(value) = HeaderValue::try_from(cookie) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    response
}

/// Remembers a token.
pub(super) async fn sign_in(State(bench): State<Shared>, body: Bytes) -> Response {
    #[derive(Deserialize)]
    struct Call {
        token: String,
    }
    let call: Call = match parse(&body) {
        Ok(call) => call,
        Err(failure) => return failure.into_response(),
    };
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::try_from(format!("Bearer {}", call.token.trim())) {
        headers.insert(header::AUTHORIZATION, value);
    }
    match bench.settings.tokens.rights(&headers) {
        Ok(_) => {
            let response = crate::json(StatusCode::OK, &json!({}));
            with_cookie(response, TOKEN, call.token.trim(), "; HttpOnly")
        }
        Err(_) => crate::json(StatusCode::UNAUTHORIZED, &json!({"error": "this is not one of the tokens"})),
    }
}

/// Says who tags.
pub(super) async fn coder(State(bench): State<Shared>, body: Bytes) -> Response {
    #[derive(Deserialize)]
    struct Call {
        name: String,
    }
    let named = parse::<Call>(&body).and_then(|call| {
        let name = short(&call.name, "your name")?.to_owned();
        bench.people().coder(&name)?;
        Ok(name)
    });
    match named {
        Ok(name) => {
            bench.has_changed();
            with_cookie(crate::json(StatusCode::OK, &json!({"name": name})), "lookalike-coder", &encode(&name), "")
        }
        Err(failure) => failure.into_response(),
    }
}

#[derive(Deserialize)]
struct TagCall {
    tag: i64,
    on: bool,
    /// All pages of a cluster, or one page.
    cluster: Option<i64>,
    page: Option<i64>,
}

/// Tags a cluster, or a page of it as an exception.
pub(super) async fn tag(State(bench): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    answer(Arc::clone(&bench), move |bench| {
        let call: TagCall = parse(&body)?;
        let mut people = bench.people();
        let coder = people.coder(&coder_name(bench, &headers))?;
        let (label, changes) = bench.readers.ask(|reader| {
            let sets = reader.tag_sets()?;
            let set = sets.iter().find(|set| set.tags.iter().any(|tag| tag.id == call.tag));
            let set = set.ok_or_else(|| Failure::NotFound("there is no such tag".to_owned()))?;
            let (ids, is_exception) = match (call.cluster, call.page) {
                (Some(cluster), None) => {
                    reader.group(cluster)?;
                    let own = reader.exceptions(coder, cluster)?;
                    let mut ids = reader.ids(cluster)?;
                    ids.retain(|id| !own.contains(id));
                    (ids, false)
                }
                (None, Some(page)) => (vec![reader.page(page)?.0.id], true),
                _ => return Err(Failure::Refused("name a cluster or a page".to_owned())),
            };
            let known = reader.page_tags(coder, &ids)?;
            let mut changes = Vec::new();
            for page in ids {
                let (tags, is_own) = &known[&page];
                if is_exception && !is_own {
                    changes.push(Change::Exception { page: page.clone(), on: true });
                }
                // Of a set with one choice, the others go.
                let others = set.tags.iter().filter(|tag| tag.id != call.tag && set.is_single && call.on);
                for other in others.filter(|other| tags.contains(&other.id)) {
                    changes.push(Change::Tag { page: page.clone(), tag: other.id, on: false });
                }
                if tags.contains(&call.tag) != call.on {
                    changes.push(Change::Tag { page, tag: call.tag, on: call.on });
                }
            }
            let label = set.tags.iter().find(|tag| tag.id == call.tag).map_or("", |tag| tag.label.as_str());
            Ok((format!("{} {label}", if call.on { "tag" } else { "untag" }), changes))
        })?;
        if changes.is_empty() {
            return Ok(json!({"pages": 0}));
        }
        let done = people.act(coder, &label, changes)?;
        bench.follow_up(&people, &done)?;
        Ok(json!({"done": done.label}))
    })
    .await
}

/// Notes something about a page.
pub(super) async fn note(State(bench): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    #[derive(Deserialize)]
    struct Call {
        page: i64,
        text: String,
    }
    answer(Arc::clone(&bench), move |bench| {
        let call: Call = parse(&body)?;
        if call.text.chars().count() > NOTE_CHARS {
            return Err(Failure::Refused(format!("a note has at most {NOTE_CHARS} characters")));
        }
        let mut people = bench.people();
        let coder = people.coder(&coder_name(bench, &headers))?;
        let (page, before) = bench.readers.ask(|reader| {
            let page = reader.page(call.page)?.0.id;
            let before = reader.note(coder, &page)?;
            Ok((page, before))
        })?;
        let after = Some(call.text.trim().to_owned()).filter(|text| !text.is_empty());
        if before == after {
            return Ok(json!({}));
        }
        let done = people.act(coder, "note", vec![Change::Note { page, before, after }])?;
        bench.follow_up(&people, &done)?;
        Ok(json!({"done": done.label}))
    })
    .await
}

/// What is decided about pages of a cluster.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// The page stays, and the others go.
    Keep,
    /// Each of the pages stands alone: it is not a duplicate.
    Apart,
    /// The pages form a cluster of their own.
    Split,
    /// As it was.
    Restore,
}

/// Decides about pages of a cluster.
pub(super) async fn decide(State(bench): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    #[derive(Deserialize)]
    struct Call {
        verdict: Verdict,
        pages: Vec<i64>,
    }
    answer(Arc::clone(&bench), move |bench| {
        let call: Call = parse(&body)?;
        let mut people = bench.people();
        let coder = people.coder(&coder_name(bench, &headers))?;
        let (label, changes) = bench.readers.ask(|reader| {
            let mut pages = call.pages.iter().map(|&page| Ok(reader.page(page)?.0)).collect::<Outcome<Vec<_>>>()?;
            pages.sort_by_key(|page| page.n);
            let Some(first) = pages.first() else { return Err(Failure::Refused("choose a page first".to_owned())) };
            let (group, name) = (first.group, first.id.clone());
            if pages.iter().any(|page| page.group != group) {
                return Err(Failure::Refused("the pages are not in the same cluster".to_owned()));
            }
            let all = reader.ids(group)?;
            let mut decisions: Vec<GroupDecision> = Vec::new();
            if call.verdict == Verdict::Keep {
                // One page stays: the mark moves.
                for id in all.iter().filter(|id| **id != name) {
                    decisions.extend(
                        reader
                            .decision(id)?
                            .filter(|known| known.keep)
                            .map(|known| GroupDecision { keep: false, ..known }),
                    );
                }
            }
            // Apart from whoever is left: the kept page, or the first one if that is split off itself.
            let rest = reader.group(group)?.kept.id;
            let rest = if pages.iter().any(|page| page.id == rest) {
                let other = all.iter().find(|id| pages.iter().all(|page| page.id != **id));
                other.cloned().ok_or_else(|| {
                    Failure::Refused("all pages are chosen: nothing is left to be apart from".to_owned())
                })
            } else {
                Ok(rest)
            };
            for page in &pages {
                let known = reader.decision(&page.id)?.unwrap_or_default();
                let (id, from) = (page.id.clone(), || rest.as_ref().map(|rest| Some(rest.clone())));
                decisions.push(match call.verdict {
                    Verdict::Keep => GroupDecision { page: id, keep: true, ..known },
                    Verdict::Apart => {
                        GroupDecision { page: id, keep: false, apart_from: from().map_err(again)?, group: None }
                    }
                    Verdict::Split => GroupDecision {
                        page: id,
                        keep: known.keep,
                        apart_from: from().map_err(again)?,
                        group: Some(name.clone()),
                    },
                    Verdict::Restore => GroupDecision { page: id, ..GroupDecision::default() },
                });
            }
            let mut changes = Vec::new();
            for after in decisions {
                let before = reader.decision(&after.page)?;
                // Nothing is decided about a page that neither stays nor goes.
                let after = Some(after).filter(|after| after.keep || after.apart_from.is_some());
                if before != after {
                    changes.push(Change::Decision { before, after });
                }
            }
            let label = match call.verdict {
                Verdict::Keep => "keep",
                Verdict::Apart => "not a duplicate",
                Verdict::Split => "split off",
                Verdict::Restore => "restore",
            };
            Ok((label, changes))
        })?;
        if changes.is_empty() {
            return Ok(json!({}));
        }
        let done = people.act(coder, label, changes)?;
        bench.follow_up(&people, &done)?;
        Ok(json!({"done": done.label}))
    })
    .await
}

/// The same refusal, for another page.
fn again(failure: &Failure) -> Failure {
    Failure::Refused(failure.to_string())
}

/// Takes the last action of a coder back.
pub(super) async fn undo(State(bench): State<Shared>, headers: HeaderMap) -> Response {
    answer(Arc::clone(&bench), move |bench| {
        let mut people = bench.people();
        let coder = people.coder(&coder_name(bench, &headers))?;
        match people.undo(coder)? {
            Some(done) => {
                bench.follow_up(&people, &done)?;
                Ok(json!({"undone": done.label}))
            }
            None => Ok(json!({"undone": null})),
        }
    })
    .await
}

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum TagsCall {
    AddSet {
        name: String,
        is_single: bool,
    },
    PutTag {
        tag: Option<i64>,
        set: i64,
        label: String,
        colour: i64,
        key: String,
    },
    Remove {
        what: Removable,
        id: i64,
        #[serde(default)]
        force: bool,
    },
}

/// Changes the tag sets.
pub(super) async fn tags(State(bench): State<Shared>, body: Bytes) -> Response {
    answer(Arc::clone(&bench), move |bench| {
        let mut people = bench.people();
        match parse(&body)? {
            TagsCall::AddSet { name, is_single } => people.add_set(&name, is_single)?,
            TagsCall::PutTag { tag, set, label, colour, key } => people.put_tag(tag, set, &label, colour, &key)?,
            TagsCall::Remove { what, id, force } => people.remove(what, id, force)?,
        }
        drop(people);
        // A tag that is gone is on no cluster.
        bench.count_all_tags()?;
        bench.has_changed();
        Ok(json!({}))
    })
    .await
}

/// Draws a sample of pairs for judging.
pub(super) async fn sample(State(bench): State<Shared>, body: Bytes) -> Response {
    #[derive(Deserialize)]
    struct Call {
        pairs: usize,
        seed: u64,
        #[serde(default)]
        rubric: String,
    }
    answer(Arc::clone(&bench), move |bench| {
        let call: Call = parse(&body)?;
        let mut options = SampleOptions::default();
        options.pairs = call.pairs.clamp(1, MOST_PAIRS);
        options.seed = call.seed;
        options.rubric = Some(call.rubric).filter(|rubric| !rubric.trim().is_empty());
        let drawn = audit::draw(&bench.settings.directory, &options)?;
        let people = bench.people();
        let transaction = people.connection().unchecked_transaction()?;
        let described = json!({"pairs": drawn.pairs.len(), "seed": options.seed}).to_string();
        transaction
            .execute("INSERT INTO sample (options, rubric) VALUES (?1, ?2)", params![described, drawn.rubric])?;
        let sample = transaction.last_insert_rowid();
        for (position, (left, right)) in (1i64..).zip(&drawn.pairs) {
            transaction
                .execute("INSERT INTO sample_pair VALUES (?1, ?2, ?3, ?4)", params![sample, position, left, right])?;
        }
        transaction.commit()?;
        bench.has_changed();
        Ok(json!({"sample": sample}))
    })
    .await
}

/// Judges a pair of a sample.
pub(super) async fn judge(State(bench): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    #[derive(Deserialize)]
    struct Call {
        sample: i64,
        position: i64,
        verdict: String,
        reason: Option<String>,
    }
    answer(Arc::clone(&bench), move |bench| {
        let call: Call = parse(&body)?;
        if !["correct", "incorrect", "undecided"].contains(&call.verdict.as_str()) {
            return Err(Failure::Refused("a pair is judged correct, incorrect or undecided".to_owned()));
        }
        let reason = call.reason.filter(|_| call.verdict == "undecided");
        let mut people = bench.people();
        let coder = people.coder(&coder_name(bench, &headers))?;
        let changed = people.connection().execute(
            "INSERT OR REPLACE INTO judgment (coder, sample, position, verdict, reason)
             SELECT ?1, sample, position, ?4, ?5 FROM sample_pair WHERE sample = ?2 AND position = ?3",
            params![coder, call.sample, call.position, call.verdict, reason],
        )?;
        if changed == 0 {
            return Err(Failure::NotFound("there is no such pair".to_owned()));
        }
        bench.has_changed();
        Ok(json!({}))
    })
    .await
}
