//! Looking up one page of a request, and storing it.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use lookalike::online::{CheckOutcome, StorePolicy};
use lookalike::{Error, Result as LibraryResult};
use serde::Deserialize;
use tokio::sync::oneshot;
use utoipa::{IntoParams, ToSchema};

use crate::Service;
use crate::body;
use crate::collections::Collection;
use crate::pages::input::PageInput;
use crate::problem::{Problem, dropped};
use crate::request::{Query, WriteAccess};

/// A page from this size on is not read by a thread that others wait for.
const LARGE_BYTES: usize = 256 << 10;

/// Whether a page is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Store)]
pub(crate) enum StoreInput {
    /// It is only looked up.
    #[default]
    Never,
    /// If nothing that is stored is like it.
    IfNew,
    /// In any case; it replaces a page with the same id.
    Always,
}

/// When a page that is stored is acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Ack)]
pub(crate) enum AckInput {
    /// When it is on the disk of this service.
    #[default]
    Stored,
    /// When it is in the object store, too: no failure of this machine loses it.
    Shipped,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct LookupQuery {
    /// Whether the page is stored
    pub(super) store: StoreInput,
    /// When a page that is stored is acknowledged
    pub(super) ack: AckInput,
    /// Whether the response explains the verdict
    pub(super) explain: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for LookupQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<LookupQuery, Problem> {
        let Query(query) = Query::<LookupQuery>::from_request_parts(parts, state).await?;
        if query.store != StoreInput::Never {
            WriteAccess::from_request_parts(parts, state).await?;
        }
        Ok(query)
    }
}

/// A lookup that is done, or waits until the page is on disk.
pub(super) enum Lookup {
    Done(Result<CheckOutcome, Problem>),
    /// With the number of the last group that was written by then.
    Storing(oneshot::Receiver<(LibraryResult<CheckOutcome>, u64)>),
    /// Too many pages wait to be stored.
    Refused,
}

impl Lookup {
    /// Starts with the page in `bytes`. Waits first if the page is large and all cores are busy with such.
    pub(super) async fn start(service: &Service, collection: &Collection, bytes: &[u8], store: StoreInput) -> Lookup {
        // Until the page is handed over, no other index takes the place of the one that gets it.
        let writing = if store == StoreInput::Never { None } else { Some(collection.writing().await) };
        let online = collection.online();
        let look = || -> Result<Lookup, Problem> {
            let input: PageInput<'_> = body::parse(bytes)?;
            let limits = service.limits();
            let page = input.page(limits.page_bytes)?;
            let extras = input.extras(limits.metadata_bytes)?;
            let policy = match store {
                StoreInput::Never => return Ok(Lookup::Done(Ok(online.check(&page)?))),
                StoreInput::IfNew => StorePolicy::IfNew,
                StoreInput::Always => StorePolicy::Always,
            };
            let (sender, receiver) = oneshot::channel();
            // The client may be gone by then.
            let group = online.group_reader();
            let done = move |outcome| drop(sender.send((outcome, group())));
            match online.put(&page, policy, extras, done) {
                Ok(()) => Ok(Lookup::Storing(receiver)),
                Err(Error::Overloaded) => Ok(Lookup::Refused),
                Err(error) => Err(error.into()),
            }
        };
        let started = if bytes.len() >= LARGE_BYTES { service.run_heavy(look).await } else { look() };
        drop(writing);
        started.unwrap_or_else(|problem| Lookup::Done(Err(problem)))
    }

    /// What was found, and, if a page was to be stored, the last group that this may depend on.
    pub(super) async fn finish(self) -> Result<(CheckOutcome, Option<u64>), Problem> {
        match self {
            Lookup::Done(outcome) => Ok((outcome?, None)),
            Lookup::Refused => Err(Error::Overloaded.into()),
            Lookup::Storing(receiver) => {
                let (outcome, group) = receiver.await.map_err(|_| dropped())?;
                Ok((outcome?, Some(group)))
            }
        }
    }
}
