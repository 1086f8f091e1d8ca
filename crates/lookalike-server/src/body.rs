//! Bodies of requests: read within their limits, and parsed. Bodies of responses, with what lasts until they are sent.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::Service;
use crate::admission::Admission;
use crate::budget::Reservation;
use crate::decode::Decoder;
use crate::limits::Limits;
use crate::problem::{Problem, ProblemKind};

/// Time over which the rate of a body is judged that is not a batch.
const RATE_TIME: Duration = Duration::from_secs(10);

/// Refuses bodies of a type other than those named.
pub(crate) fn check_type(headers: &HeaderMap, wanted: &[&str]) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let given = given.split_once(';').map_or(given, |(essence, _)| essence).trim();
    if wanted.iter().any(|wanted| given.eq_ignore_ascii_case(wanted)) {
        return Ok(());
    }
    Err(ProblemKind::UnsupportedMedia.with(format!("send the header Content-Type: {}", wanted[0])))
}

/// How fast a client must send.
struct Pace {
    bytes_per_second: usize,
    /// Time over which the rate is judged.
    window: Duration,
    /// How long the client was waited for in this window, and what came.
    waited: Duration,
    received: usize,
    /// Lines that the client has sent and has no response to: it may be waiting for that.
    unanswered: Arc<AtomicUsize>,
}

impl Pace {
    fn new(limits: &Limits, window: Duration, unanswered: Arc<AtomicUsize>) -> Pace {
        Pace { bytes_per_second: limits.least_rate, window, waited: Duration::ZERO, received: 0, unanswered }
    }

    /// Waits for the next part, or says that the client is too slow.
    async fn keep<T>(
        &mut self,
        mut next: impl Future<Output = T> + Unpin,
        size: impl Fn(&T) -> usize,
    ) -> Result<T, Problem> {
        loop {
            let start = Instant::now();
            let arrived = tokio::time::timeout(self.window.saturating_sub(self.waited), &mut next).await;
            self.waited += start.elapsed();
            self.received += arrived.as_ref().map_or(0, &size);
            if self.waited >= self.window {
                let wanted = self.window.as_secs_f64() * self.bytes_per_second as f64;
                let is_excused = self.unanswered.load(Ordering::Relaxed) > 0;
                if !is_excused && (self.received == 0 || (self.received as f64) < wanted) {
                    return Err(ProblemKind::Timeout.with(format!(
                        "{} bytes of the body arrived in {} seconds; at least {} bytes per second must (limits.least_rate)",
                        self.received,
                        self.window.as_secs(),
                        self.bytes_per_second
                    )));
                }
                (self.waited, self.received) = (Duration::ZERO, 0);
            }
            if let Ok(arrived) = arrived {
                return Ok(arrived);
            }
        }
    }
}

/// A body that arrives in parts.
pub(crate) struct BodyReader {
    body: Body,
    decoder: Decoder,
    pace: Pace,
    /// For the part that was last returned.
    part_memory: Reservation,
}

impl BodyReader {
    /// A whole body.
    fn new(service: &Service, headers: &HeaderMap, body: Body) -> Result<BodyReader, Problem> {
        let limits = service.limits();
        let window = RATE_TIME.min(limits.request_time);
        BodyReader::with_pace(service, headers, body, Pace::new(&limits, window, Arc::default()))
    }

    /// The body of a batch, which has all the time it needs while lines are `unanswered`.
    pub(crate) fn of_batch(
        service: &Service,
        headers: &HeaderMap,
        body: Body,
        unanswered: Arc<AtomicUsize>,
    ) -> Result<BodyReader, Problem> {
        let limits = service.limits();
        BodyReader::with_pace(service, headers, body, Pace::new(&limits, limits.request_time, unanswered))
    }

    fn with_pace(service: &Service, headers: &HeaderMap, body: Body, pace: Pace) -> Result<BodyReader, Problem> {
        let decoder = Decoder::new(headers, service.limits().body_bytes, &service.memory)?;
        Ok(BodyReader { body, decoder, pace, part_memory: service.memory.reservation() })
    }

    /// The next part; none at the end. The part before it counts as gone.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let size = |frame: &Option<Result<hyper::body::Frame<Bytes>, _>>| {
                frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref().map(Bytes::len)).unwrap_or(0)
            };
            let Some(frame) = self.pace.keep(self.body.frame(), size).await? else {
                self.decoder.finish()?;
                return Ok(None);
            };
            let frame = frame.map_err(|error| ProblemKind::BadRequest.with(format!("the body broke off: {error}")))?;
            if let Ok(bytes) = frame.into_data() {
                let (part, memory) = self.decoder.decode(bytes)?;
                self.part_memory = memory;
                return Ok(Some(part));
            }
        }
    }

    /// Reads on for a while: a client that is still sending would not see the response.
    async fn drain(&mut self, limit: usize) {
        let mut left = most_drained(limit);
        while let Some(Ok(frame)) = self.body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    }
}

/// Bytes that are read of a body that is too large.
fn most_drained(limit: usize) -> usize {
    limit.saturating_mul(8)
}

/// A whole body, and the memory that it takes.
async fn read_to_end(service: &Service, headers: &HeaderMap, body: Body) -> Result<(Bytes, Reservation), Problem> {
    let limit = service.limits().body_bytes;
    let too_large = || ProblemKind::TooLarge.with(format!("the body is larger than the limit of {limit} bytes"));
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let mut reader = BodyReader::new(service, headers, body)?;
    if let Some(length) = length.filter(|length| *length > limit) {
        if length <= most_drained(limit) {
            reader.drain(limit).await;
        }
        return Err(too_large());
    }
    let mut memory = service.memory.reservation();
    let Some(first) = reader.next().await? else { return Ok((Bytes::new(), memory)) };
    memory.grow_to(first.len())?;
    let Some(second) = reader.next().await? else {
        return if first.len() > limit { Err(too_large()) } else { Ok((first, memory)) };
    };
    let mut all = first.to_vec();
    let mut next = Some(second);
    while let Some(part) = next {
        if all.len() + part.len() > limit {
            reader.drain(limit).await;
            return Err(too_large());
        }
        // What the client announces is not held for it: it may never send it.
        if all.capacity() < all.len() + part.len() {
            let wanted = (all.capacity() * 2)
                .max(all.len() + part.len())
                .min(length.unwrap_or(limit).max(all.len() + part.len()));
            memory.grow_to(wanted)?;
            all.reserve_exact(wanted - all.len());
        }
        all.extend_from_slice(&part);
        next = reader.next().await?;
    }
    Ok((all.into(), memory))
}

/// An object of this shape. Without this, serde would also take a list of the values of its fields.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
            }
        }
        deserializer.deserialize_map(Fields(PhantomData))
    }
}

/// JSON of the shape that is wanted.
pub(crate) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Problem> {
    if bytes.is_empty() {
        return Err(ProblemKind::BadJson.with("the body is empty"));
    }
    let parsed = serde_json::from_slice::<Object<T>>(bytes);
    parsed.map(|object| object.0).map_err(|cause| ProblemKind::BadJson.with(cause.to_string()))
}

/// The body of a request that is JSON; [`parse`] reads it. Only when it has arrived, the request counts as one that is worked on.
pub(crate) struct JsonBody(pub(crate) Bytes);

impl FromRequest<Arc<Service>> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, service: &Arc<Service>) -> Result<JsonBody, Problem> {
        let (parts, body) = request.into_parts();
        check_type(&parts.headers, &["application/json"])?;
        let (bytes, memory) = read_to_end(service, &parts.headers, body).await?;
        if let Some(admission) = parts.extensions.get::<Arc<Admission>>() {
            admission.begin(service)?;
            admission.hold(memory);
        }
        Ok(JsonBody(bytes))
    }
}

/// The body of a response, with something that is dropped when its last part is sent.
pub(crate) struct HoldingBody<T> {
    body: Body,
    _held: T,
}

impl<T: Send + Unpin + 'static> HoldingBody<T> {
    pub(crate) fn wrap(body: Body, held: T) -> Body {
        Body::new(HoldingBody { body, _held: held })
    }
}

impl<T: Unpin> HttpBody for HoldingBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
