//! A search engine's answer with its near-duplicates folded; nothing here is stored.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use lookalike::config::name_settings;
use lookalike::method::{Bloom, Minhash, Spotsigs};
use lookalike::refine::{AnswerOptions, EvidenceSet, GROUP_FIELD, ResultFields, lists, sketch_list};
use lookalike::{Error, Method, Refiner};
use serde::Deserialize;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, SchemaType};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::Service;
use crate::body::JsonBody;
use crate::problem::{Problem, ProblemKind};
use crate::request::{Query, TargetCollection};

/// Results per list.
const MOST_RESULTS: usize = 1000;

/// How near-duplicates are found
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RefineMethod {
    Minhash,
    #[default]
    Bloom,
    Spotsigs,
}

/// The settings, all of them optional.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct RefineQuery {
    /// How near-duplicates are found; the default is bloom
    method: Option<RefineMethod>,
    /// Similarity from which results are near-duplicates; the default is 0.7 (spotsigs: 0.25)
    #[param(exclusive_minimum = 0, maximum = 1)]
    threshold: Option<f64>,
    /// What can show that two results are the same page: text, title, url, separated by commas; the default is all three
    evidence: Option<String>,
    /// Whether folded results stay in the list, and only say which group they belong to
    mark: bool,
    /// The name of the field that is added; the default is lookalike
    #[param(min_length = 1)]
    group_field: Option<String>,
    /// Where the list of results is; a dot descends into an object. The default is hits.hits or results
    results_field: Option<String>,
    /// The field of a result's text or HTML
    text_field: Option<String>,
    /// The field of its URL
    url_field: Option<String>,
    /// The field of its title
    title_field: Option<String>,
    /// The field of its id
    id_field: Option<String>,
}

/// Settings that a body of our own shape may have, too.
#[derive(Debug, Default, Deserialize)]
struct BodySettings {
    method: Option<RefineMethod>,
    threshold: Option<f64>,
}

/// The answer of a search engine, in any of the shapes that are recognised.
pub(crate) struct AnswerSchema;

impl PartialSchema for AnswerSchema {
    fn schema() -> RefOr<Schema> {
        let results = || {
            let any = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Object));
            ArrayBuilder::new().items(any).max_items(Some(MOST_RESULTS))
        };
        let ours = ObjectBuilder::new().property("results", results()).required("results");
        let inner = ObjectBuilder::new().property("hits", results()).required("hits");
        let elastic = ObjectBuilder::new().property("hits", inner).required("hits");
        let description = "A search engine's answer, best result first: `results` (SearXNG, our own), `hits.hits` (Elasticsearch, OpenSearch), or the list alone. Each result has a text or HTML, and perhaps a title, a URL and an id";
        AnyOfBuilder::new().description(Some(description)).item(ours).item(elastic).item(results()).into()
    }
}

impl ToSchema for AnswerSchema {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("SearchAnswer")
    }
}

/// Folds near-duplicates in a search engine's answer
#[utoipa::path(
    post,
    path = "/v1/refine",
    operation_id = "refine",
    tag = "search",
    params(RefineQuery),
    request_body(content = AnswerSchema, content_type = "application/json"),
    responses((status = 200, body = serde_json::Value, description = "The answer in the shape it came in, the same as `lookalike refine --json`: without the folded results, with the field `lookalike` in each result (`rank`, `group`, `others`) and in the whole"))
)]
pub(crate) async fn refine(
    State(service): State<Arc<Service>>,
    TargetCollection(collection): TargetCollection,
    Query(query): Query<RefineQuery>,
    JsonBody(bytes): JsonBody,
) -> Result<Response, Problem> {
    let text = str::from_utf8(&bytes).map_err(|_| ProblemKind::BadJson.with("the body is not UTF-8"))?;
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map_err(|cause| ProblemKind::BadJson.with(cause.to_string()))?;
    let body = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|cause| ProblemKind::BadJson.with(cause.to_string()))?
    } else {
        BodySettings::default()
    };
    let refiner = refiner(&query, &body, collection.online().page_config().ok())?;
    let fields = ResultFields {
        results: query.results_field,
        id: query.id_field,
        url: query.url_field,
        title: query.title_field,
        text: query.text_field,
        sketch: None,
    };
    let bad_field =
        |reason: String| ProblemKind::BadField.with(format!("the body: {}", name_settings(&reason, str::to_owned)));
    let (list, answer) = lists::parse(text.to_owned(), &fields, false).map_err(bad_field)?;
    check_list(&list, service.limits().page_bytes)?;
    let options =
        AnswerOptions { mark: query.mark, group_field: query.group_field.unwrap_or_else(|| GROUP_FIELD.to_owned()) };
    let fold = || {
        let sketches = sketch_list(&refiner, &list)?;
        answer.folded(&list, &refiner.fold_results(&list.results, &sketches), &refiner, &options)
    };
    let answer = service.run_heavy(fold).await.map_err(bad_field)?;
    let mut response = Response::new(Body::from(answer));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Folds as the query says, the body, or the defaults; pages are read as in the collection.
fn refiner(query: &RefineQuery, body: &BodySettings, pages: Option<&lookalike::Config>) -> Result<Refiner, Problem> {
    let method: Method = match query.method.or(body.method).unwrap_or_default() {
        RefineMethod::Minhash => Minhash::default().into(),
        RefineMethod::Spotsigs => Spotsigs::default().into(),
        RefineMethod::Bloom => Bloom::default().into(),
    };
    let mut config = Refiner::defaults(method);
    if let Some(pages) = pages {
        config.content = pages.content.clone();
    }
    if let Some(threshold) = query.threshold.or(body.threshold) {
        config.method = config.method.with_threshold(threshold);
    }
    let evidence = match &query.evidence {
        Some(names) => names.parse().map_err(|reason: String| Error::invalid("evidence", names, reason))?,
        None => EvidenceSet::ALL,
    };
    Ok(Refiner::new(config)?.with_evidence(evidence))
}

/// Refuses lists that are too long, and what is not a result in them.
fn check_list(list: &lookalike::refine::ResultList, page_bytes: usize) -> Result<(), Problem> {
    let count = list.results.len();
    if count > MOST_RESULTS {
        let reason = format!("results must have at most {MOST_RESULTS} items, not {count}");
        return Err(ProblemKind::BadField.with(reason));
    }
    for (at, result) in list.results.iter().enumerate() {
        if !result.record.is_object() {
            return Err(ProblemKind::BadField.with(format!("result {} is not an object", at + 1)));
        }
        let bytes = result.text.as_ref().map_or(0, String::len);
        if bytes > page_bytes {
            let reason = format!("result {} has {bytes} bytes; the limit is {page_bytes}", at + 1);
            return Err(ProblemKind::TooLarge.with(reason));
        }
    }
    Ok(())
}
