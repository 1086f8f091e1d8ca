//! The description of all calls, made from the code.

use std::sync::LazyLock;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, ObjectBuilder, PathItem, Ref, RefOr, Required, ResponseBuilder, Type};

use crate::{operations, pages, search};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "lookalike",
        description = "Have I seen this page? Paths under /v1 are about the collection `default`; the same paths under /v1/collections/{name} are about any other.",
    ),
    paths(
        pages::post,
        pages::batch,
        pages::get,
        pages::delete,
        search::fingerprints,
        search::refine,
        search::compare_pages,
        operations::backup,
        operations::stats,
        operations::list,
        operations::show,
        operations::make,
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
            .description("What went wrong, and what to do")
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
                .description(Some("The collection"))
                .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
                .build();
            operation.parameters.get_or_insert_default().insert(0, RefOr::T(name));
            operation.operation_id = operation.operation_id.take().map(|id| format!("{id}_in_collection"));
        }
        document.paths.paths.insert(format!("{COLLECTIONS}/{{name}}{rest}"), item);
    }
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().security_schemes.insert("token".to_owned(), RefOr::T(scheme));
    // A token is needed only where the service has some.
    document.security =
        Some(vec![SecurityRequirement::default(), SecurityRequirement::new("token", Vec::<String>::new())]);
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().filter_map(Option::as_mut)
}

pub(crate) async fn show() -> Response {
    static TEXT: LazyLock<String> = LazyLock::new(|| serde_json::to_string(&document()).unwrap_or_default());
    let mut response = TEXT.as_str().into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
