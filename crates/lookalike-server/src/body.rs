//! Bodies of requests: read, decompressed and parsed, within limits.

use std::fmt;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::BodyExt;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::Service;
use crate::problem::{Problem, ProblemKind};

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentEncoding {
    Identity,
    Gzip,
    Zstd,
}

impl ContentEncoding {
    fn of(headers: &HeaderMap) -> Result<ContentEncoding, Problem> {
        let Some(value) = headers.get(header::CONTENT_ENCODING) else { return Ok(ContentEncoding::Identity) };
        // What is not ASCII is not supported either.
        match value.to_str().unwrap_or("?").trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(ContentEncoding::Identity),
            "gzip" | "x-gzip" => Ok(ContentEncoding::Gzip),
            "zstd" => Ok(ContentEncoding::Zstd),
            _ => Err(ProblemKind::UnsupportedMedia.with("Content-Encoding must be gzip, zstd or identity")),
        }
    }
}

/// Refuses bodies of a type other than those named.
pub(crate) fn check_type(headers: &HeaderMap, wanted: &[&str]) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let given = given.split_once(';').map_or(given, |(essence, _)| essence).trim();
    if wanted.iter().any(|wanted| given.eq_ignore_ascii_case(wanted)) {
        return Ok(());
    }
    Err(ProblemKind::UnsupportedMedia.with(format!("send the header Content-Type: {}", wanted[0])))
}

/// Decompressed bytes, up to a limit.
struct LimitedBuffer {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for LimitedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Decompresses a body part by part.
enum Decoder {
    Identity,
    Gzip(Box<flate2::write::MultiGzDecoder<LimitedBuffer>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, LimitedBuffer>>),
}

impl Decoder {
    fn new(encoding: ContentEncoding, limit: usize) -> Result<Decoder, Problem> {
        let out = LimitedBuffer { bytes: Vec::new(), limit };
        Ok(match encoding {
            ContentEncoding::Identity => Decoder::Identity,
            ContentEncoding::Gzip => Decoder::Gzip(Box::new(flate2::write::MultiGzDecoder::new(out))),
            ContentEncoding::Zstd => {
                Decoder::Zstd(Box::new(zstd::stream::write::Decoder::new(out).map_err(|error| undecodable(&error))?))
            }
        })
    }

    fn decode(&mut self, bytes: Bytes) -> Result<Bytes, Problem> {
        let decoded = match self {
            Decoder::Identity => return Ok(bytes),
            Decoder::Gzip(decoder) => write_through(&mut **decoder, &bytes).map(|()| decoder.get_mut()),
            Decoder::Zstd(decoder) => write_through(&mut **decoder, &bytes).map(|()| decoder.get_mut()),
        };
        let decoded = decoded.map_err(|error| undecodable(&error))?;
        Ok(std::mem::take(&mut decoded.bytes).into())
    }

    /// Whether the end is where it should be.
    fn finish(&mut self) -> Result<(), Problem> {
        match self {
            Decoder::Identity => Ok(()),
            Decoder::Gzip(decoder) => decoder.try_finish(),
            Decoder::Zstd(decoder) => decoder.do_finish(),
        }
        .map_err(|error| undecodable(&error))
    }
}

fn write_through(decoder: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    decoder.write_all(bytes)?;
    decoder.flush()
}

fn undecodable(error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::FileTooLarge => {
            ProblemKind::TooLarge.with("the decompressed body is larger than this service accepts")
        }
        _ => ProblemKind::BadRequest.with(format!("the body cannot be decompressed: {error}")),
    }
}

/// A body that arrives in parts.
pub(crate) struct BodyReader {
    body: Body,
    decoder: Decoder,
}

impl BodyReader {
    /// `limit` is for one part when it is decompressed.
    pub(crate) fn new(headers: &HeaderMap, body: Body, limit: usize) -> Result<BodyReader, Problem> {
        Ok(BodyReader { body, decoder: Decoder::new(ContentEncoding::of(headers)?, limit)? })
    }

    /// The next part; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let Some(frame) = self.body.frame().await else {
                self.decoder.finish()?;
                return Ok(None);
            };
            let frame = frame.map_err(|error| ProblemKind::BadRequest.with(format!("the body broke off: {error}")))?;
            if let Ok(bytes) = frame.into_data() {
                return self.decoder.decode(bytes).map(Some);
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

/// A whole body of at most `limit` bytes.
async fn read_to_end(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Problem> {
    let too_large = || ProblemKind::TooLarge.with(format!("the body is larger than the limit of {limit} bytes"));
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let mut reader = BodyReader::new(headers, body, limit)?;
    if let Some(length) = length.filter(|length| *length > limit) {
        if length <= most_drained(limit) {
            reader.drain(limit).await;
        }
        return Err(too_large());
    }
    let Some(first) = reader.next().await? else { return Ok(Bytes::new()) };
    let Some(second) = reader.next().await? else {
        return if first.len() > limit { Err(too_large()) } else { Ok(first) };
    };
    let mut all = Vec::with_capacity(length.unwrap_or(0).max(first.len() + second.len()));
    all.extend_from_slice(&first);
    let mut next = Some(second);
    while let Some(part) = next {
        if all.len() + part.len() > limit {
            reader.drain(limit).await;
            return Err(too_large());
        }
        all.extend_from_slice(&part);
        next = reader.next().await?;
    }
    Ok(all.into())
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

/// The body of a request that is JSON; [`parse`] reads it.
pub(crate) struct JsonBody(pub(crate) Bytes);

impl FromRequest<Arc<Service>> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, service: &Arc<Service>) -> Result<JsonBody, Problem> {
        let (parts, body) = request.into_parts();
        check_type(&parts.headers, &["application/json"])?;
        read_to_end(&parts.headers, body, service.settings.limits.body_bytes).await.map(JsonBody)
    }
}
