//! What goes wrong in the workbench, and how it is answered.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::json;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The library says why.
    #[error(transparent)]
    Library(#[from] lookalike::Error),
    /// SQLite says why.
    #[error("the workbench's file: {0}")]
    Store(#[from] rusqlite::Error),
    /// What is stored is not what was written.
    #[error("the workbench's file: {0}")]
    Json(#[from] serde_json::Error),
    /// A file cannot be written.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// It is not allowed, for this reason.
    #[error("{0}")]
    Refused(String),
    /// It is still used so many times.
    #[error("{0} pages are tagged with it")]
    InUse(i64),
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
}

pub(super) type Outcome<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Failure::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Failure::InUse(_) => StatusCode::CONFLICT,
            Failure::NotFound(_) => StatusCode::NOT_FOUND,
            // Pages that are gone or have changed are no fault of ours.
            Failure::Library(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Failure::Store(_) | Failure::Json(_) | Failure::File(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// For calls of the page's script; pages say it themselves.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let in_use = matches!(self, Failure::InUse(_));
        json(self.status(), &serde_json::json!({"error": self.to_string(), "in_use": in_use}))
    }
}
