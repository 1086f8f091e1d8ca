//! What handlers take from a request; `body.rs` has the bodies.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::Service;
use crate::collections::{Collection, DEFAULT};
use crate::problem::{Problem, ProblemKind};
use crate::tokens::{Access, Rights};

/// The header in which a client says which config it expects.
const CONFIG_HEADER: &str = "lookalike-config";

/// The collection that a request is about.
pub(crate) struct TargetCollection(pub(crate) Arc<Collection>);

impl FromRequestParts<Arc<Service>> for TargetCollection {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<TargetCollection, Problem> {
        let CollectionName(name) = CollectionName::from_request_parts(parts, service).await?;
        let collection = service.collections()?.get(&name).await?;
        if let Some(expected) = parts.headers.get(CONFIG_HEADER) {
            let hash = collection.hash();
            if expected.as_bytes() != hash.as_bytes() {
                let reason =
                    format!("this collection has the config hash {hash}, not that of the header Lookalike-Config");
                return Err(ProblemKind::Conflict.with(reason));
            }
        }
        Ok(TargetCollection(collection))
    }
}

/// The name of a collection in the path; `openapi.rs` describes it.
pub(crate) struct CollectionName(pub(crate) String);

impl FromRequestParts<Arc<Service>> for CollectionName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<CollectionName, Problem> {
        let name = path_parameter(parts, service, "name").await?.unwrap_or_else(|| DEFAULT.to_owned());
        access(parts).need_collection(&name)?;
        Ok(CollectionName(name))
    }
}

/// The id of a page in the path.
#[derive(IntoParams)]
#[into_params(names("id"), parameter_in = Path)]
pub(crate) struct PageId(
    /// The id, percent-encoded
    #[param(min_length = 1)]
    pub(crate) String,
);

impl FromRequestParts<Arc<Service>> for PageId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<PageId, Problem> {
        // The path of batches is also that of a page with this id.
        Ok(PageId(path_parameter(parts, service, "id").await?.unwrap_or_else(|| "batch".to_owned())))
    }
}

async fn path_parameter(parts: &mut Parts, service: &Arc<Service>, wanted: &str) -> Result<Option<String>, Problem> {
    let parameters = RawPathParams::from_request_parts(parts, service).await;
    let parameters = parameters.map_err(|_| ProblemKind::BadRequest.with("the decoded path is not UTF-8"))?;
    Ok(parameters.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned()))
}

/// The query string. Unlike axum's own extractor, it rejects with a problem document.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query<T>, Problem> {
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(query)) => Ok(Query(query)),
            Err(cause) => Err(ProblemKind::BadRequest.with(cause.body_text())),
        }
    }
}

/// What the client may do.
fn access(parts: &Parts) -> &Access {
    parts.extensions.get::<Access>().expect("the middleware sets what every request may do")
}

impl<S: Send + Sync> FromRequestParts<S> for Access {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Access, Infallible> {
        Ok(access(parts).clone())
    }
}

/// Refuses clients that may only read.
pub(crate) struct WriteAccess;

impl<S: Send + Sync> FromRequestParts<S> for WriteAccess {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<WriteAccess, Problem> {
        access(parts).need(Rights::Write).map(|()| WriteAccess)
    }
}

/// Refuses clients that may not change collections.
pub(crate) struct AdminAccess;

impl<S: Send + Sync> FromRequestParts<S> for AdminAccess {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<AdminAccess, Problem> {
        access(parts).need(Rights::Admin).map(|()| AdminAccess)
    }
}
