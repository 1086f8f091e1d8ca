//! Fingerprints and pairs of pages: nothing here is stored.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lookalike::{Error, compare};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::{self, JsonBody, Object};
use crate::pages::{PageInput, hex};
use crate::problem::{Problem, ProblemKind};
use crate::request::TargetCollection;
use crate::{Service, json};

/// Fingerprints per request.
const MOST_FINGERPRINTS: usize = 10_000;
/// Matches per fingerprint.
const MOST_MATCHES: usize = 1000;
const DEFAULT_MATCHES: usize = 100;
/// Matches per response.
const MOST_MATCHES_IN_ALL: usize = 100_000;

/// Refuses lists that are empty or too long.
fn check_count(field: &str, count: usize, most: usize) -> Result<(), Problem> {
    if (1..=most).contains(&count) {
        return Ok(());
    }
    Err(ProblemKind::BadField.with(format!("{field} must have 1 to {most} items, not {count}")))
}

/// Fingerprints to look for
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Fingerprints)]
#[serde(deny_unknown_fields)]
pub(crate) struct FingerprintsInput<'a> {
    /// Each of 16 hex digits
    #[serde(borrow)]
    #[schema(min_items = 1, max_items = 10_000, value_type = Vec<String>, pattern = "^[0-9a-fA-F]{16}$")]
    fingerprints: Vec<Cow<'a, str>>,
    /// Differing bits; at most the radius of the collection, which is the default
    #[schema(minimum = 0, maximum = 15)]
    radius: Option<u32>,
    /// Matches returned per fingerprint
    #[schema(minimum = 0, maximum = 1000, default = 100)]
    limit: Option<usize>,
}

/// The matches of each fingerprint, in the order of the request
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FingerprintsResponse {
    matches: Vec<FingerprintMatches>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FingerprintMatches {
    fingerprint: String,
    /// Number of matches in the index
    count: u64,
    /// The nearest matches
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
    operation_id = "queryFingerprints",
    tag = "search",
    request_body(content = FingerprintsInput<'static>, content_type = "application/json"),
    responses((status = 200, body = FingerprintsResponse, description = "The matches of each"))
)]
pub(crate) async fn fingerprints(
    State(service): State<Arc<Service>>,
    TargetCollection(collection): TargetCollection,
    JsonBody(bytes): JsonBody,
) -> Result<Response, Problem> {
    let input: FingerprintsInput<'_> = body::parse(&bytes)?;
    check_count("fingerprints", input.fingerprints.len(), MOST_FINGERPRINTS)?;
    let online = collection.online();
    let most = online.config().radius;
    let radius = input.radius.unwrap_or(most);
    if radius > most {
        let expected = format!("must be at most {most}, the radius of this collection");
        return Err(Error::invalid("radius", radius, expected).into());
    }
    let limit = input.limit.unwrap_or(DEFAULT_MATCHES.min(MOST_MATCHES_IN_ALL / input.fingerprints.len()));
    if limit > MOST_MATCHES || limit * input.fingerprints.len() > MOST_MATCHES_IN_ALL {
        let expected =
            format!("must be at most {MOST_MATCHES}, and {MOST_MATCHES_IN_ALL} divided by the number of fingerprints");
        return Err(Error::invalid("limit", limit, expected).into());
    }
    let parse = |text: &str| match u64::from_str_radix(text, 16) {
        Ok(fingerprint) if text.len() == 16 && !text.starts_with('+') => Ok(fingerprint),
        _ => Err(ProblemKind::BadField.with("fingerprints must be 16 hex digits each")),
    };
    let wanted = input.fingerprints.iter().map(|text| parse(text)).collect::<Result<Vec<u64>, Problem>>()?;
    if online.config().has_bands() {
        let reason = "this collection finds pages by their bands, and has no fingerprints; ask it about pages, or create one with `method` simhash";
        return Err(Error::conflict("method", reason).into());
    }
    let look_up = || {
        let mut reader = online.reader();
        let look_up_one = |fingerprint| {
            let found = reader.query(fingerprint, radius, limit)?;
            let matches = found.matches.into_iter().map(|row| FingerprintMatch {
                id: row.id,
                distance: row.distance,
                fingerprint: hex(row.fingerprint),
            });
            Ok(FingerprintMatches { fingerprint: hex(fingerprint), count: found.count, matches: matches.collect() })
        };
        wanted.into_iter().map(look_up_one).collect::<Result<Vec<_>, Problem>>()
    };
    let matches = service.run_heavy(look_up).await?;
    Ok(json(StatusCode::OK, &FingerprintsResponse { matches }))
}

/// Two pages
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = TwoPages)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompareInput<'a> {
    #[serde(borrow)]
    #[schema(value_type = PageInput<'static>)]
    left: Object<PageInput<'a>>,
    #[serde(borrow)]
    #[schema(value_type = PageInput<'static>)]
    right: Object<PageInput<'a>>,
}

/// What every method says about two pages
#[utoipa::path(
    post,
    path = "/v1/compare",
    operation_id = "comparePages",
    tag = "search",
    request_body(content = CompareInput<'static>, content_type = "application/json"),
    responses((status = 200, body = Object, description = "The same as `lookalike compare --json`: `identical`, `differences`, and for each of `methods` the verdict, the similarity, the score and the rule"))
)]
pub(crate) async fn compare_pages(
    State(service): State<Arc<Service>>,
    TargetCollection(collection): TargetCollection,
    JsonBody(bytes): JsonBody,
) -> Result<Response, Problem> {
    let input: CompareInput<'_> = body::parse(&bytes)?;
    let most = service.limits().page_bytes;
    let (left, right) = (input.left.0.page(most)?, input.right.0.page(most)?);
    let defaults = lookalike::Config::default();
    let online = collection.online();
    let common = online.page_config().unwrap_or(&defaults);
    let compared = service.run_heavy(|| compare(&left, &right, common)).await;
    Ok(json(StatusCode::OK, &compared))
}
