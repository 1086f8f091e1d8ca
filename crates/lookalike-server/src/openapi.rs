//! The OpenAPI description of all calls, made from the code.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, ObjectBuilder, PathItem, Ref, RefOr, Required, ResponseBuilder, Type};

use crate::problem::ProblemKind;
use crate::{operations, pages, refine, replication, search};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "lookalike",
        description = "Have I seen this page? Paths under /v1 refer to the collection `default`; the same paths under /v1/collections/{name} refer to any other.",
    ),
    paths(
        pages::post,
        pages::batch::batch,
        pages::get,
        pages::many::find,
        pages::delete,
        pages::many::delete_found,
        search::fingerprints,
        refine::refine,
        search::compare_pages,
        operations::backup,
        operations::stats,
        operations::list,
        operations::show,
        operations::create,
        operations::change,
        operations::remove,
        replication::promote,
        operations::health,
        operations::ready,
        operations::metrics,
    ),
    components(schemas(crate::problem::Problem, pages::StoreInput, pages::AckInput, refine::RefineMethod))
)]
struct Description;

const COLLECTIONS: &str = "/v1/collections";
const NAMED: &str = "/v1/collections/{name}";
/// What is for the service, and not for a collection.
const PROMOTE: &str = "/v1/promote";
/// Paths that need no token.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];

/// The name of a token's security scheme.
const TOKEN: &str = "token";
/// The problem that an operation can have without a status of its own being listed.
const OTHER: &str = "default";

/// The description.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    let mut document = Description::openapi();
    let components = document.components.get_or_insert_default();
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.security_schemes.insert(TOKEN.to_owned(), RefOr::T(scheme));
    let problems = problems();
    components.responses.extend(problems.iter().map(|(_, name, response)| (name.clone(), response.clone().into())));
    for (path, item) in &mut document.paths.paths {
        let is_collection = path.starts_with("/v1/") && path != COLLECTIONS && path != PROMOTE;
        for (method, operation) in operations(item) {
            let is_stored = method != Method::Get && operation.tags.as_ref().is_none_or(|tags| tags[0] != "search");
            for (status, name, _) in &problems {
                let is_possible = match status.as_str() {
                    "404" | "409" => is_collection,
                    "405" => false,
                    "413" | "415" => operation.request_body.is_some(),
                    "422" => operation.request_body.is_some() || operation.parameters.is_some(),
                    "507" => is_stored,
                    _ => true,
                };
                if is_possible {
                    let reference = Ref::from_response_name(name);
                    operation.responses.responses.insert(status.clone(), RefOr::Ref(reference));
                }
            }
            // What creates, changes and removes collections does not look at their settings.
            if is_collection && (path.as_str() != NAMED || method == Method::Get) {
                operation.parameters.get_or_insert_default().push(RefOr::T(config_hash()));
            }
            if path.starts_with(COLLECTIONS) && is_collection {
                operation.parameters.get_or_insert_default().insert(0, RefOr::T(collection_name()));
            }
            if OPEN.contains(&path.as_str()) {
                operation.security = Some(vec![SecurityRequirement::default()]);
            }
        }
    }
    // Every call for a collection exists for all of them.
    let of_default: Vec<(String, PathItem)> = document.paths.paths.clone().into_iter().collect();
    for (path, mut item) in of_default {
        let Some(rest) = path.strip_prefix("/v1").filter(|_| !path.starts_with(COLLECTIONS) && path != PROMOTE) else {
            continue;
        };
        for (_, operation) in operations(&mut item) {
            operation.parameters.get_or_insert_default().insert(0, RefOr::T(collection_name()));
            operation.operation_id = operation.operation_id.take().map(|id| format!("{id}InCollection"));
        }
        document.paths.paths.insert(format!("{COLLECTIONS}/{{name}}{rest}"), item);
    }
    // A token is needed only if the service has any.
    document.security =
        Some(vec![SecurityRequirement::default(), SecurityRequirement::new(TOKEN, Vec::<String>::new())]);
    document
}

/// The responses to requests that fail: status, name, and what is said; the last is for any other status.
fn problems() -> Vec<(String, String, utoipa::openapi::Response)> {
    let mut kinds: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for kind in ProblemKind::ALL {
        let problem = kind.with("");
        kinds.entry(problem.status).or_default().push(format!("`{}`: {}", problem.kind, problem.title));
    }
    let response = |description: String| {
        let content = Content::new(Some(RefOr::<utoipa::openapi::Schema>::Ref(Ref::from_schema_name("Problem"))));
        ResponseBuilder::new().description(description).content("application/problem+json", content)
    };
    let mut problems = Vec::new();
    for (status, kinds) in kinds {
        let mut response = response(kinds.join("; "));
        if matches!(status, 429 | 503) {
            let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
            let header =
                HeaderBuilder::new().schema(Some(seconds)).description(Some("Seconds after which to try again"));
            response = response.header("Retry-After", header.build());
        }
        problems.push((status.to_string(), format!("Problem{status}"), response.build()));
    }
    let other = response("What went wrong, and what to do about it".to_owned()).build();
    problems.push((OTHER.to_owned(), "OtherProblem".to_owned(), other));
    problems
}

fn collection_name() -> Parameter {
    let name = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[a-z0-9_-]{1,64}$"));
    ParameterBuilder::new()
        .name("name")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some("The name of the collection"))
        .schema(Some(name))
        .build()
}

fn config_hash() -> Parameter {
    let hash = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[0-9a-f]{16}$"));
    ParameterBuilder::new()
        .name("Lookalike-Config")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "The config hash that the collection must have; the request is refused (409) if it has another",
        ))
        .schema(Some(hash))
        .build()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Get,
    Put,
    Post,
    Patch,
    Delete,
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let all = [
        (Method::Get, &mut item.get),
        (Method::Put, &mut item.put),
        (Method::Post, &mut item.post),
        (Method::Patch, &mut item.patch),
        (Method::Delete, &mut item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

pub(crate) async fn show() -> Response {
    static TEXT: LazyLock<String> =
        LazyLock::new(|| serde_json::to_string(&document()).expect("a description has string keys only"));
    let mut response = TEXT.as_str().into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::collection_routes;

    /// All paths of the router except that of this description.
    fn paths() -> BTreeSet<String> {
        let others = [COLLECTIONS, NAMED, PROMOTE, "/healthz", "/readyz", "/metrics"];
        let of_collections = collection_routes().map(|(path, _)| path);
        let both =
            of_collections.iter().flat_map(|path| [format!("/v1{path}"), format!("{COLLECTIONS}/{{name}}{path}")]);
        both.chain(others.map(str::to_owned)).collect()
    }

    #[test]
    fn every_path_is_described_and_no_other() {
        let document = document();
        assert_eq!(document.paths.paths.keys().cloned().collect::<BTreeSet<_>>(), paths());
        let mut ids = BTreeSet::new();
        for mut item in document.paths.paths.into_values() {
            for (_, operation) in operations(&mut item) {
                let id = operation.operation_id.clone().unwrap();
                assert!(ids.insert(id.clone()), "{id} twice");
                assert!(operation.summary.is_some(), "{id} is not described");
                assert!(operation.responses.responses.contains_key("default"), "{id} has no problem");
            }
        }
    }

    #[test]
    fn it_is_openapi_3_1_and_every_reference_leads_somewhere() {
        let document = serde_json::to_value(document()).unwrap();
        assert_eq!(document["openapi"], "3.1.0");
        let mut waiting = vec![&document];
        let mut references = 0;
        while let Some(value) = waiting.pop() {
            match value {
                serde_json::Value::Object(fields) => {
                    if let Some(reference) = fields.get("$ref").and_then(serde_json::Value::as_str) {
                        references += 1;
                        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
                    }
                    waiting.extend(fields.values());
                }
                serde_json::Value::Array(items) => waiting.extend(items),
                _ => {}
            }
        }
        assert!(references > 20);
    }
}
