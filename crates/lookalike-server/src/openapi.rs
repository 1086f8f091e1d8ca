//! The OpenAPI description of all calls, made from the code.

use std::sync::LazyLock;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, ObjectBuilder, PathItem, Ref, RefOr, Required, ResponseBuilder, Type};

use crate::{operations, pages, refine, search};

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
        pages::delete,
        search::fingerprints,
        refine::refine,
        search::compare_pages,
        operations::backup,
        operations::stats,
        operations::list,
        operations::show,
        operations::create,
        operations::health,
        operations::ready,
        operations::metrics,
    ),
    components(schemas(crate::problem::Problem))
)]
struct Description;

const COLLECTIONS: &str = "/v1/collections";

/// The description.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    let mut document = Description::openapi();
    let problem = || {
        let content = Content::new(Some(RefOr::<utoipa::openapi::Schema>::Ref(Ref::from_schema_name("Problem"))));
        ResponseBuilder::new()
            .description("What went wrong, and what to do about it")
            .content("application/problem+json", content)
            .build()
    };
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            operation.responses.responses.insert("default".to_owned(), problem().into());
        }
    }
    // Every call for a collection exists for all of them.
    let of_default: Vec<(String, PathItem)> = document.paths.paths.clone().into_iter().collect();
    for (path, mut item) in of_default {
        let Some(rest) = path.strip_prefix("/v1").filter(|_| !path.starts_with(COLLECTIONS)) else { continue };
        for operation in operations(&mut item) {
            let name = ParameterBuilder::new()
                .name("name")
                .parameter_in(ParameterIn::Path)
                .required(Required::True)
                .description(Some("The name of the collection"))
                .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
                .build();
            operation.parameters.get_or_insert_default().insert(0, RefOr::T(name));
            operation.operation_id = operation.operation_id.take().map(|id| format!("{id}_in_collection"));
        }
        document.paths.paths.insert(format!("{COLLECTIONS}/{{name}}{rest}"), item);
    }
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().security_schemes.insert("token".to_owned(), RefOr::T(scheme));
    // A token is needed only if the service has any.
    document.security =
        Some(vec![SecurityRequirement::default(), SecurityRequirement::new("token", Vec::<String>::new())]);
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().filter_map(Option::as_mut)
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
        let others = ["/v1/collections", "/v1/collections/{name}", "/healthz", "/readyz", "/metrics"];
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
            for operation in operations(&mut item) {
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
