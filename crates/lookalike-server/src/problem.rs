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
    fn from(error: Error) -> Problem {
        // Where the index lies is nobody's business but the log's.
        match error {
            Error::Usage(reason) => Kind::BadField.with(without_flags(&reason)),
            error @ (Error::InvalidSetting { .. } | Error::Conflict { .. }) => {
                Kind::BadField.with(error.message(str::to_owned))
            }
            Error::Overloaded => Kind::TooBusy.with("too many pages are waiting to be stored; try again in a moment"),
            Error::StoreFull { .. } => {
                Kind::StorageFull.with("there is no space left to store anything; questions are still answered")
            }
            Error::ReadOnly { reason, .. } => Kind::ReadOnly.with(reason),
            error @ Error::Store { .. } => {
                tracing::error!("{error}");
                Kind::StoreFailed.with("the store has failed; it is opened again when the next page comes")
            }
            error => {
                tracing::error!("{error}");
                Kind::Internal.with("the server's log says more")
            }
        }
    }
}

/// What the library says of a value, with the name that it has in a body: `min_tokens`, not `--min-tokens`.
fn without_flags(reason: &str) -> String {
    let field = |word: &str| match word.strip_prefix("--") {
        Some(flag) if flag.starts_with(|c: char| c.is_ascii_lowercase()) => {
            let end = flag.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(flag.len());
            format!("{}{}", flag[..end].replace('-', "_"), &flag[end..])
        }
        _ => word.to_owned(),
    };
    reason.split(' ').map(field).collect::<Vec<_>>().join(" ")
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
    fn values_have_the_names_of_bodies() {
        let reason = "--min-tokens 9 must not be below --radius 3; a well-known thing - as --chunk-size";
        let wanted = "min_tokens 9 must not be below radius 3; a well-known thing - as chunk_size";
        assert_eq!(without_flags(reason), wanted);
        assert_eq!(without_flags("'a--b' is -- no known  language"), "'a--b' is -- no known  language");
    }
}
