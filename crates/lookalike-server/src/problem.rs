//! Errors as clients get them: `application/problem+json` (RFC 9457) with a type that does not change.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lookalike::error::Error;
use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Problem {
    /// The kind of problem: `urn:lookalike:` and a name that does not change
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in words
    pub title: &'static str,
    /// The HTTP status
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// What exactly, and what to do about it
    pub detail: Cow<'static, str>,
}

/// The kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    BadRequest,
    BadJson,
    BadField,
    Unauthorized,
    Forbidden,
    NotFound,
    NoSuchCollection,
    MethodNotAllowed,
    Timeout,
    Conflict,
    TooLarge,
    UnsupportedMedia,
    Internal,
    TooBusy,
    NotReady,
    StoreFailed,
    ReadOnly,
    StorageFull,
}

impl Kind {
    #[cfg(test)]
    pub(crate) const ALL: [Kind; 18] = [
        Kind::BadRequest,
        Kind::BadJson,
        Kind::BadField,
        Kind::Unauthorized,
        Kind::Forbidden,
        Kind::NotFound,
        Kind::NoSuchCollection,
        Kind::MethodNotAllowed,
        Kind::Timeout,
        Kind::Conflict,
        Kind::TooLarge,
        Kind::UnsupportedMedia,
        Kind::Internal,
        Kind::TooBusy,
        Kind::NotReady,
        Kind::StoreFailed,
        Kind::ReadOnly,
        Kind::StorageFull,
    ];

    /// Name, status and words.
    pub(crate) fn parts(self) -> (&'static str, StatusCode, &'static str) {
        match self {
            Kind::BadRequest => ("bad-request", StatusCode::BAD_REQUEST, "The request cannot be understood"),
            Kind::BadJson => ("bad-json", StatusCode::BAD_REQUEST, "The body is not the JSON that is expected"),
            Kind::BadField => ("bad-field", StatusCode::UNPROCESSABLE_ENTITY, "A value is outside what is allowed"),
            Kind::Unauthorized => ("unauthorized", StatusCode::UNAUTHORIZED, "A token is needed"),
            Kind::Forbidden => ("forbidden", StatusCode::FORBIDDEN, "This is not allowed"),
            Kind::NotFound => ("not-found", StatusCode::NOT_FOUND, "There is no such thing"),
            Kind::NoSuchCollection => ("no-such-collection", StatusCode::NOT_FOUND, "There is no such collection"),
            Kind::MethodNotAllowed => {
                ("method-not-allowed", StatusCode::METHOD_NOT_ALLOWED, "The path does not take this method")
            }
            Kind::Timeout => ("timeout", StatusCode::REQUEST_TIMEOUT, "The request took too long"),
            Kind::Conflict => ("conflict", StatusCode::CONFLICT, "This does not fit what is there"),
            Kind::TooLarge => ("too-large", StatusCode::PAYLOAD_TOO_LARGE, "The request is too large"),
            Kind::UnsupportedMedia => {
                ("unsupported-media", StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is of a kind that is not read")
            }
            Kind::Internal => ("internal", StatusCode::INTERNAL_SERVER_ERROR, "Something went wrong in the server"),
            Kind::TooBusy => ("too-busy", StatusCode::SERVICE_UNAVAILABLE, "Too much is going on"),
            Kind::NotReady => ("not-ready", StatusCode::SERVICE_UNAVAILABLE, "The index is still being opened"),
            Kind::StoreFailed => ("store-failed", StatusCode::SERVICE_UNAVAILABLE, "Nothing can be stored now"),
            Kind::ReadOnly => ("read-only", StatusCode::SERVICE_UNAVAILABLE, "Nothing is stored here"),
            Kind::StorageFull => ("storage-full", StatusCode::INSUFFICIENT_STORAGE, "The disk is full"),
        }
    }

    pub(crate) fn with(self, detail: impl Into<Cow<'static, str>>) -> Problem {
        let (name, status, title) = self.parts();
        Problem { kind: format!("urn:lookalike:{name}"), title, status: status.as_u16(), detail: detail.into() }
    }
}

impl From<Error> for Problem {
    /// Clients name no files, so where something lies, and what is wrong with it, is for the log.
    fn from(error: Error) -> Problem {
        match error {
            Error::InvalidSetting { .. } | Error::Usage(_) => Kind::BadField.with(error.message(str::to_owned)),
            Error::Conflict { .. } => Kind::Conflict.with(error.message(str::to_owned)),
            Error::Overloaded => Kind::TooBusy.with("too many pages are waiting to be stored; try again in a moment"),
            Error::ReadOnly { reason, .. } => Kind::ReadOnly.with(reason),
            Error::StoreFull { .. } => storage_full(),
            Error::Io { ref cause, .. } if cause.kind() == std::io::ErrorKind::StorageFull => {
                log(&error);
                storage_full()
            }
            Error::Store { .. } => {
                log(&error);
                Kind::StoreFailed.with("the store has failed; it is opened again when the next page comes")
            }
            Error::IndexLocked { .. } => {
                log(&error);
                Kind::Conflict.with("another program is writing to this collection; wait until it has stopped")
            }
            _ => {
                log(&error);
                internal()
            }
        }
    }
}

/// A fault on this side, which the log explains.
pub(crate) fn internal() -> Problem {
    Kind::Internal.with("this is a fault of the server; its log says more")
}

fn storage_full() -> Problem {
    Kind::StorageFull.with("there is no space left to store anything; pages can still be looked up")
}

/// Writes an error to the log, with everything that caused it.
fn log(error: &Error) {
    tracing::error!(error = error as &dyn std::error::Error, "a request failed");
}

/// Seconds after which it is worth trying again.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(serde_json::to_vec(&self).unwrap_or_default()));
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, RETRY_SECONDS);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own_and_a_status_of_an_error() {
        let names: std::collections::HashSet<_> = Kind::ALL.iter().map(|kind| kind.parts().0).collect();
        assert_eq!(names.len(), Kind::ALL.len());
        assert!(Kind::ALL.iter().all(|kind| kind.parts().1.as_u16() >= 400));
        assert_eq!(Kind::StorageFull.with("").kind, "urn:lookalike:storage-full");
    }

    #[test]
    fn errors_of_the_library_become_problems_that_name_fields_and_no_paths() {
        let place = std::path::Path::new("/srv/seen");
        let io = |kind: std::io::ErrorKind| Error::io(place, "write")(kind.into());
        for (error, status, detail) in [
            (Error::invalid("min_tokens", 0, "must be at least 1"), 422, "min_tokens 0: must be at least 1"),
            (Error::conflict("radius", "this collection has 3"), 409, "radius: this collection has 3"),
            (Error::Overloaded, 503, "too many pages"),
            (Error::StoreFull { path: place.into() }, 507, "no space left"),
            (io(std::io::ErrorKind::StorageFull), 507, "no space left"),
            (Error::IndexLocked { path: place.into() }, 409, "another program"),
            (io(std::io::ErrorKind::PermissionDenied), 500, "its log says more"),
            (Error::bad_input(place, "is not a directory"), 500, "its log says more"),
            (Error::corrupt(place, "a checksum is wrong"), 500, "its log says more"),
            (Error::internal("a page without an id"), 500, "its log says more"),
        ] {
            let problem = Problem::from(error);
            assert_eq!(problem.status, status, "{problem:?}");
            assert!(problem.detail.contains(detail) && !problem.detail.contains("/srv"), "{problem:?}");
        }
    }
}
