//! Questions that need no stored page: fingerprints, lists of results, two pages.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use lookalike::config::Method;
use lookalike::job::compare::compare;
use lookalike::refine::{Refiner, Relation};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::{self, Object};
use crate::pages::{PageInput, PageSchema};
use crate::problem::{Kind, Problem};
use crate::request::Chosen;
use crate::{Service, reply};

/// Fingerprints of one question at the most.
const MOST_FINGERPRINTS: usize = 10_000;
/// Rows for each at the most.
const MOST_MATCHES: usize = 1000;
const DEFAULT_MATCHES: usize = 100;
/// Rows of an answer at the most.
const MOST_ROWS: usize = 100_000;
/// Results of a list at the most.
const MOST_RESULTS: usize = 1000;

/// Fingerprints to look for
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FingerprintsInput<'a> {
    /// 16 hex digits each
    #[serde(borrow)]
    #[schema(min_items = 1, max_items = 10_000, value_type = Vec<String>, pattern = "^[0-9a-fA-F]{16}$")]
    fingerprints: Vec<Cow<'a, str>>,
    /// Differing bits, at most those of the collection, which are the default
    #[schema(minimum = 0, maximum = 10)]
    radius: Option<u32>,
    /// Rows named for each fingerprint
    #[schema(minimum = 0, maximum = 1000, default = 100)]
    limit: Option<usize>,
}

/// Rows near each fingerprint, in the order of the question
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FingerprintsAnswer {
    matches: Vec<FingerprintMatches>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FingerprintMatches {
    fingerprint: String,
    /// How many there are
    count: u64,
    /// The nearest of them
    matches: Vec<FingerprintMatch>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FingerprintMatch {
    #[schema(value_type = String)]
    id: lookalike::index::Id,
    distance: u32,
    fingerprint: String,
}

/// Which stored fingerprints are near these?
#[utoipa::path(
    post,
    path = "/v1/fingerprints/query",
    tag = "search",
    request_body(content = inline(FingerprintsInput<'static>), content_type = "application/json"),
    responses((status = 200, body = FingerprintsAnswer))
)]
pub(crate) async fn fingerprints(
    State(service): State<Arc<Service>>,
    Chosen(collection): Chosen,
    request: Request,
) -> Result<Response, Problem> {
    let bytes = body::json(request, service.settings.limits.body_bytes).await?;
    let input: FingerprintsInput<'_> = body::parse(&bytes)?;
    if !(1..=MOST_FINGERPRINTS).contains(&input.fingerprints.len()) {
        return Err(Kind::BadField.with(format!("fingerprints: 1 to {MOST_FINGERPRINTS} are answered at once")));
    }
    let most = collection.online.config().radius;
    let radius = input.radius.unwrap_or(most);
    if radius > most {
        return Err(
            Kind::BadField.with(format!("radius: the tables of this collection serve at most {most} differing bits"))
        );
    }
    let limit = input.limit.unwrap_or(DEFAULT_MATCHES.min(MOST_ROWS / input.fingerprints.len()));
    if limit > MOST_MATCHES || limit * input.fingerprints.len() > MOST_ROWS {
        return Err(Kind::BadField.with(format!(
            "limit: at most {MOST_MATCHES} rows are named for a fingerprint, and {MOST_ROWS} in one answer"
        )));
    }
    let parse = |text: &str| match u64::from_str_radix(text, 16) {
        Ok(fingerprint) if text.len() == 16 && !text.starts_with('+') => Ok(fingerprint),
        _ => Err(Kind::BadField.with("fingerprints: each is 16 hex digits")),
    };
    let wanted = input.fingerprints.iter().map(|text| parse(text)).collect::<Result<Vec<u64>, Problem>>()?;
    let _heavy = service.heavy().await;
    let matches = tokio::task::block_in_place(|| {
        let mut reader = collection.online.reader();
        wanted
            .into_iter()
            .map(|fingerprint| {
                let answer = reader.query(fingerprint, radius, limit)?;
                let matches = answer.matches.into_iter().map(|row| FingerprintMatch {
                    id: row.id,
                    distance: row.distance,
                    fingerprint: format!("{:016x}", row.fingerprint),
                });
                let fingerprint = format!("{fingerprint:016x}");
                Ok(FingerprintMatches { fingerprint, count: answer.count, matches: matches.collect() })
            })
            .collect::<Result<Vec<_>, lookalike::error::Error>>()
    })?;
    Ok(reply(StatusCode::OK, &FingerprintsAnswer { matches }))
}

/// A list of search results, best first
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefineInput<'a> {
    /// Each with its html or text
    #[serde(borrow)]
    #[schema(min_items = 1, max_items = 1000, value_type = Vec<PageSchema>)]
    results: Vec<Object<PageInput<'a>>>,
    /// Similarity from which results are near-duplicates; 0.7 where nothing is said (spotsigs: 0.25)
    #[schema(exclusive_minimum = 0, maximum = 1)]
    threshold: Option<f64>,
    method: Option<RefineMethod>,
}

/// How near-duplicates are found; bloom where nothing is said
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RefineMethod {
    Minhash,
    Bloom,
    Spotsigs,
}

/// The list folded
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefineAnswer {
    /// Groups, by the rank of their best result
    groups: Vec<RefinedGroup>,
    /// Results in the list
    results: usize,
    /// Results that are under another
    folded: usize,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefinedGroup {
    best: RefinedResult,
    others: Vec<RefinedOther>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefinedResult {
    /// Its place in the list, from 1
    rank: usize,
    id: Option<String>,
    url: Option<String>,
    title: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefinedOther {
    #[serde(flatten)]
    result: RefinedResult,
    /// Exact similarity to the best result of the group
    similarity: f64,
    /// Share of it that is in the best result
    in_best: f64,
    /// Share of the best result that is in it
    best_in_it: f64,
    /// Which way
    #[schema(value_type = String)]
    relation: Relation,
}

/// Folds near-duplicates in a list of search results
#[utoipa::path(
    post,
    path = "/v1/refine",
    tag = "search",
    request_body(content = inline(RefineInput<'static>), content_type = "application/json"),
    responses((status = 200, body = RefineAnswer))
)]
pub(crate) async fn refine(
    State(service): State<Arc<Service>>,
    Chosen(collection): Chosen,
    request: Request,
) -> Result<Response, Problem> {
    let bytes = body::json(request, service.settings.limits.body_bytes).await?;
    let input: RefineInput<'_> = body::parse(&bytes)?;
    if !(1..=MOST_RESULTS).contains(&input.results.len()) {
        return Err(Kind::BadField.with(format!("results: 1 to {MOST_RESULTS} are folded at once")));
    }
    let mut config = Refiner::defaults(Method::named(match input.method {
        Some(RefineMethod::Minhash) => "minhash",
        Some(RefineMethod::Spotsigs) => "spotsigs",
        Some(RefineMethod::Bloom) | None => "bloom",
    })?);
    if let Ok(pages) = collection.online.page_config() {
        config.content = pages.content.clone();
    }
    if let Some(threshold) = input.threshold {
        config.method = config.method.with_threshold(threshold);
    }
    let refiner = Refiner::new(config)?;
    let most = service.settings.limits.page_bytes;
    let pages = input.results.iter().map(|result| result.0.page(most)).collect::<Result<Vec<_>, Problem>>()?;
    let _heavy = service.heavy().await;
    let folded = tokio::task::block_in_place(|| {
        let mut sketcher = refiner.sketcher();
        let sketches: Vec<_> = pages.iter().map(|page| Some(refiner.sketch(page, &mut sketcher))).collect();
        refiner.fold(&sketches)
    });
    let result = |at: usize| {
        let page = &pages[at];
        let text = |text: &Option<Cow<'_, str>>| text.as_deref().map(str::to_owned);
        RefinedResult { rank: at + 1, id: text(&page.id), url: text(&page.url), title: text(&page.title) }
    };
    let groups: Vec<RefinedGroup> = folded
        .groups
        .iter()
        .map(|group| RefinedGroup {
            best: result(group.best),
            others: group
                .others
                .iter()
                .map(|fold| RefinedOther {
                    result: result(fold.at),
                    similarity: fold.similarity,
                    in_best: fold.in_best,
                    best_in_it: fold.best_in_it,
                    relation: fold.relation,
                })
                .collect(),
        })
        .collect();
    let folded = pages.len() - groups.len();
    Ok(reply(StatusCode::OK, &RefineAnswer { groups, results: pages.len(), folded }))
}

/// Two pages
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompareInput<'a> {
    #[serde(borrow)]
    #[schema(value_type = PageSchema)]
    left: Object<PageInput<'a>>,
    #[serde(borrow)]
    #[schema(value_type = PageSchema)]
    right: Object<PageInput<'a>>,
}

/// What every method says of two pages
#[utoipa::path(
    post,
    path = "/v1/compare",
    tag = "search",
    request_body(content = inline(CompareInput<'static>), content_type = "application/json"),
    responses((status = 200, body = Object, description = "As `lookalike compare --json` has it: `identical`, `differences`, and for each of `methods` the verdict, the similarity, the score and the rule"))
)]
pub(crate) async fn compare_pages(
    State(service): State<Arc<Service>>,
    Chosen(collection): Chosen,
    request: Request,
) -> Result<Response, Problem> {
    let bytes = body::json(request, service.settings.limits.body_bytes).await?;
    let input: CompareInput<'_> = body::parse(&bytes)?;
    let most = service.settings.limits.page_bytes;
    let (left, right) = (input.left.0.page(most)?, input.right.0.page(most)?);
    let defaults = lookalike::config::Config::default();
    let common = collection.online.page_config().unwrap_or(&defaults);
    let _heavy = service.heavy().await;
    let compared = tokio::task::block_in_place(|| compare(&left, &right, common));
    Ok(reply(StatusCode::OK, &compared))
}
