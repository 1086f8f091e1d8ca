//! Errors as clients see them: `application/problem+json` (RFC 9457) with a type that does not change.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lookalike::Error;
use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// The kind of problem: `urn:lookalike:` and a name that does not change
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The kind of problem in words
    pub(crate) title: &'static str,
    /// The HTTP status
    #[schema(minimum = 400, maximum = 599)]
    pub(crate) status: u16,
    /// What exactly went wrong, and what to do about it
    pub(crate) detail: Cow<'static, str>,
}

/// Each has a name that does not change, an HTTP status and a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProblemKind {
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
    TooManyRequests,
    TooBusy,
    NotReady,
    StoreFailed,
    ReadOnly,
    NotShipped,
    StorageFull,
}

impl ProblemKind {
    pub(crate) const ALL: [ProblemKind; 20] = [
        Self::BadRequest,
        Self::BadJson,
        Self::BadField,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::NoSuchCollection,
        Self::MethodNotAllowed,
        Self::Timeout,
        Self::Conflict,
        Self::TooLarge,
        Self::UnsupportedMedia,
        Self::Internal,
        Self::TooManyRequests,
        Self::TooBusy,
        Self::NotReady,
        Self::StoreFailed,
        Self::ReadOnly,
        Self::NotShipped,
        Self::StorageFull,
    ];

    /// Name, status and title.
    fn parts(self) -> (&'static str, StatusCode, &'static str) {
        match self {
            Self::BadRequest => ("bad-request", StatusCode::BAD_REQUEST, "The request cannot be understood"),
            Self::BadJson => ("bad-json", StatusCode::BAD_REQUEST, "The body is not the expected JSON"),
            Self::BadField => ("bad-field", StatusCode::UNPROCESSABLE_ENTITY, "A value is not allowed"),
            Self::Unauthorized => ("unauthorized", StatusCode::UNAUTHORIZED, "A valid token is required"),
            Self::Forbidden => ("forbidden", StatusCode::FORBIDDEN, "This is not allowed"),
            Self::NotFound => ("not-found", StatusCode::NOT_FOUND, "Not found"),
            Self::NoSuchCollection => ("no-such-collection", StatusCode::NOT_FOUND, "There is no such collection"),
            Self::MethodNotAllowed => {
                ("method-not-allowed", StatusCode::METHOD_NOT_ALLOWED, "The path does not support this method")
            }
            Self::Timeout => ("timeout", StatusCode::REQUEST_TIMEOUT, "The request took too long"),
            Self::Conflict => ("conflict", StatusCode::CONFLICT, "The request conflicts with what exists"),
            Self::TooLarge => ("too-large", StatusCode::PAYLOAD_TOO_LARGE, "The request is too large"),
            Self::UnsupportedMedia => (
                "unsupported-media",
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "The type or encoding of the body is not supported",
            ),
            Self::Internal => ("internal", StatusCode::INTERNAL_SERVER_ERROR, "Something went wrong in the server"),
            Self::TooManyRequests => {
                ("too-many-requests", StatusCode::TOO_MANY_REQUESTS, "The token is used more often than it may be")
            }
            Self::TooBusy => ("too-busy", StatusCode::SERVICE_UNAVAILABLE, "The service is overloaded"),
            Self::NotReady => ("not-ready", StatusCode::SERVICE_UNAVAILABLE, "The service is not ready"),
            Self::StoreFailed => {
                ("store-failed", StatusCode::SERVICE_UNAVAILABLE, "Nothing can be stored at the moment")
            }
            Self::ReadOnly => ("read-only", StatusCode::SERVICE_UNAVAILABLE, "The collection is read-only"),
            Self::NotShipped => {
                ("not-shipped", StatusCode::SERVICE_UNAVAILABLE, "The page is stored, but not shipped yet")
            }
            Self::StorageFull => ("storage-full", StatusCode::INSUFFICIENT_STORAGE, "The disk is full"),
        }
    }

    pub(crate) fn with(self, detail: impl Into<Cow<'static, str>>) -> Problem {
        let (name, status, title) = self.parts();
        Problem { kind: format!("urn:lookalike:{name}"), title, status: status.as_u16(), detail: detail.into() }
    }
}

impl Problem {
    /// Whether it is of this kind.
    pub(crate) fn is(&self, kind: ProblemKind) -> bool {
        self.kind.strip_prefix("urn:lookalike:") == Some(kind.parts().0)
    }
}

impl From<Error> for Problem {
    /// Clients do not name files: paths, and what is wrong with them, go to the log only.
    fn from(error: Error) -> Problem {
        match error {
            Error::InvalidSetting { .. } => ProblemKind::BadField.with(error.message(str::to_owned)),
            Error::Conflict { .. } => ProblemKind::Conflict.with(error.message(str::to_owned)),
            Error::Overloaded => {
                ProblemKind::TooBusy.with("too many pages are waiting to be stored; try again in a moment")
            }
            Error::ReadOnly { reason, .. } => ProblemKind::ReadOnly.with(reason),
            Error::StoreFull { .. } => storage_full(),
            Error::Io { ref cause, .. } if cause.kind() == std::io::ErrorKind::StorageFull => {
                log(&error);
                storage_full()
            }
            Error::Store { .. } => {
                log(&error);
                ProblemKind::StoreFailed.with("the store has failed; it is reopened when the next page arrives")
            }
            Error::IndexLocked { .. } => {
                log(&error);
                ProblemKind::Conflict.with("another program is writing to this collection; wait until it has stopped")
            }
            _ => {
                log(&error);
                internal()
            }
        }
    }
}

/// A fault of ours; the log explains it.
pub(crate) fn internal() -> Problem {
    ProblemKind::Internal.with("this is a fault of the server; see its log")
}

/// What was accepted and not stored yet is dropped.
pub(crate) fn dropped() -> Problem {
    ProblemKind::StoreFailed
        .with("the service is shutting down, or the thread that stores pages has failed; send it again to be sure that it is stored")
}

fn storage_full() -> Problem {
    ProblemKind::StorageFull.with("there is no space left to store anything; pages can still be looked up")
}

/// Writes an error to the log, with everything that caused it.
fn log(error: &Error) {
    tracing::error!(error = error as &dyn std::error::Error, "a request failed");
}

/// Seconds after which it is worth retrying.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(crate::to_json(&self)));
        let status = StatusCode::from_u16(self.status).expect("the status is that of a kind of problem");
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&status) {
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
        let names: std::collections::HashSet<_> = ProblemKind::ALL.iter().map(|kind| kind.parts().0).collect();
        assert_eq!(names.len(), ProblemKind::ALL.len());
        assert!(ProblemKind::ALL.iter().all(|kind| kind.parts().1.as_u16() >= 400));
        assert_eq!(ProblemKind::StorageFull.with("").kind, "urn:lookalike:storage-full");
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
            (io(std::io::ErrorKind::PermissionDenied), 500, "see its log"),
            (Error::bad_input(place, "is not a directory"), 500, "see its log"),
            (Error::corrupt(place, "a checksum is wrong"), 500, "see its log"),
            (Error::internal("a page without an id"), 500, "see its log"),
        ] {
            let problem = Problem::from(error);
            assert_eq!(problem.status, status, "{problem:?}");
            assert!(problem.detail.contains(detail) && !problem.detail.contains("/srv"), "{problem:?}");
        }
    }
}
