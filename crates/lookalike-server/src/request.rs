//! What handlers take from a request.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::Service;
use crate::access::Rights;
use crate::collections::{Collection, DEFAULT};
use crate::problem::{Kind, Problem};

/// A header in which a client says which config it means.
pub(crate) const CONFIG_HEADER: &str = "lookalike-config";

/// The collection that a request is about.
pub(crate) struct Chosen(pub(crate) Arc<Collection>);

impl FromRequestParts<Arc<Service>> for Chosen {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Chosen, Problem> {
        let name = path_parameter(parts, service, "name").await?;
        let collection = service.collections()?.get(name.as_deref().unwrap_or(DEFAULT))?;
        if let Some(meant) = parts.headers.get(CONFIG_HEADER) {
            let hash = collection.hash();
            if meant.as_bytes() != hash.as_bytes() {
                return Err(Kind::Conflict
                    .with(format!("the config of this collection has the hash {hash}, and another was meant")));
            }
        }
        Ok(Chosen(collection))
    }
}

async fn path_parameter(parts: &mut Parts, service: &Arc<Service>, wanted: &str) -> Result<Option<String>, Problem> {
    let parameters = RawPathParams::from_request_parts(parts, service).await;
    let parameters = parameters.map_err(|_| Kind::BadRequest.with("the path is not UTF-8 when it is decoded"))?;
    Ok(parameters.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned()))
}

/// The name of a collection in the path.
pub(crate) struct PathName(pub(crate) String);

impl FromRequestParts<Arc<Service>> for PathName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<PathName, Problem> {
        Ok(PathName(path_parameter(parts, service, "name").await?.unwrap_or_else(|| DEFAULT.to_owned())))
    }
}

/// The id of a page in the path.
pub(crate) struct PathId(pub(crate) String);

impl FromRequestParts<Arc<Service>> for PathId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<PathId, Problem> {
        // The path of batches is that of a page with this name, too.
        Ok(PathId(path_parameter(parts, service, "id").await?.unwrap_or_else(|| "batch".to_owned())))
    }
}

/// What stands behind the question mark.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query<T>, Problem> {
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(query)) => Ok(Query(query)),
            Err(cause) => Err(Kind::BadRequest.with(cause.body_text())),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Rights {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Rights, Problem> {
        // Set for every request before it is handed on.
        parts.extensions.get().copied().ok_or_else(|| Kind::Unauthorized.with("no rights"))
    }
}

impl Rights {
    /// Refuses whoever may only ask.
    pub(crate) fn to_write(self) -> Result<(), Problem> {
        if self == Rights::Write {
            Ok(())
        } else {
            Err(Kind::Forbidden.with("this token allows to ask, not to change anything"))
        }
    }
}
