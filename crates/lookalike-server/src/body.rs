//! Bodies of requests: read, unpacked and parsed, within limits.

use std::fmt;
use std::io::Write;
use std::marker::PhantomData;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::BodyExt;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::problem::{Kind, Problem};

/// How a body is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
}

fn packing(headers: &HeaderMap) -> Result<Packing, Problem> {
    let Some(value) = headers.get(header::CONTENT_ENCODING) else { return Ok(Packing::Plain) };
    match value.to_str().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "" | "identity" => Ok(Packing::Plain),
        "gzip" | "x-gzip" => Ok(Packing::Gzip),
        "zstd" => Ok(Packing::Zstd),
        _ => {
            Err(Kind::UnsupportedMedia
                .with("Content-Encoding: bodies are read as they are, or packed with gzip or zstd"))
        }
    }
}

/// Refuses bodies of another type than those named.
pub(crate) fn check_type(headers: &HeaderMap, wanted: &[&str]) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let given = given.split(';').next().unwrap_or_default().trim();
    if wanted.iter().any(|wanted| given.eq_ignore_ascii_case(wanted)) {
        return Ok(());
    }
    Err(Kind::UnsupportedMedia.with(format!("send the header Content-Type: {}", wanted[0])))
}

/// What is unpacked, as long as it is not too much.
struct Unpacked {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Unpacked {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Unpacks a body part by part.
enum Unpacker {
    Plain,
    Gzip(Box<flate2::write::MultiGzDecoder<Unpacked>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Unpacked>>),
}

impl Unpacker {
    fn new(packing: Packing, limit: usize) -> Result<Unpacker, Problem> {
        let out = Unpacked { bytes: Vec::new(), limit };
        Ok(match packing {
            Packing::Plain => Unpacker::Plain,
            Packing::Gzip => Unpacker::Gzip(Box::new(flate2::write::MultiGzDecoder::new(out))),
            Packing::Zstd => {
                Unpacker::Zstd(Box::new(zstd::stream::write::Decoder::new(out).map_err(|error| damaged(&error))?))
            }
        })
    }

    fn unpack(&mut self, bytes: Bytes) -> Result<Bytes, Problem> {
        let taken = match self {
            Unpacker::Plain => return Ok(bytes),
            Unpacker::Gzip(decoder) => decoder
                .write_all(&bytes)
                .and_then(|()| decoder.flush())
                .map(|()| std::mem::take(&mut decoder.get_mut().bytes)),
            Unpacker::Zstd(decoder) => decoder
                .write_all(&bytes)
                .and_then(|()| decoder.flush())
                .map(|()| std::mem::take(&mut decoder.get_mut().bytes)),
        };
        taken.map(Bytes::from).map_err(|error| damaged(&error))
    }

    /// Whether the end is where it should be.
    fn finish(&mut self) -> Result<(), Problem> {
        match self {
            Unpacker::Plain => Ok(()),
            Unpacker::Gzip(decoder) => decoder.try_finish(),
            Unpacker::Zstd(decoder) => decoder.do_finish(),
        }
        .map_err(|error| damaged(&error))
    }
}

fn damaged(error: &std::io::Error) -> Problem {
    match error.kind() {
        std::io::ErrorKind::FileTooLarge => {
            Kind::TooLarge.with("the body is larger than this service takes when it is unpacked")
        }
        _ => Kind::BadRequest.with(format!("the body cannot be unpacked: {error}")),
    }
}

/// A body that comes in parts.
pub(crate) struct Parts {
    body: Body,
    unpacker: Unpacker,
}

impl Parts {
    /// `limit` is what one part may be unpacked.
    pub(crate) fn new(headers: &HeaderMap, body: Body, limit: usize) -> Result<Parts, Problem> {
        Ok(Parts { body, unpacker: Unpacker::new(packing(headers)?, limit)? })
    }

    /// The next part; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let Some(frame) = self.body.frame().await else {
                self.unpacker.finish()?;
                return Ok(None);
            };
            let frame = frame.map_err(|error| Kind::BadRequest.with(format!("the body broke off: {error}")))?;
            if let Ok(bytes) = frame.into_data() {
                return self.unpacker.unpack(bytes).map(Some);
            }
        }
    }
}

impl Parts {
    /// Reads on for a while: a client that is still sending would not see the answer.
    async fn drop_rest(&mut self, limit: usize) {
        let mut left = limit.saturating_mul(8);
        while let Some(Ok(frame)) = self.body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    }
}

/// A whole body of at most `limit` bytes.
async fn whole(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Problem> {
    let too_large =
        || Kind::TooLarge.with(format!("the body is larger than the {limit} bytes that this service takes"));
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let mut parts = Parts::new(headers, body, limit)?;
    if let Some(length) = length.filter(|length| *length > limit) {
        if length <= limit.saturating_mul(8) {
            parts.drop_rest(limit).await;
        }
        return Err(too_large());
    }
    let Some(first) = parts.next().await? else { return Ok(Bytes::new()) };
    let Some(second) = parts.next().await? else {
        return if first.len() > limit { Err(too_large()) } else { Ok(first) };
    };
    let mut all = Vec::with_capacity(length.unwrap_or(0).max(first.len() + second.len()));
    all.extend_from_slice(&first);
    let mut next = Some(second);
    while let Some(part) = next {
        if all.len() + part.len() > limit {
            parts.drop_rest(limit).await;
            return Err(too_large());
        }
        all.extend_from_slice(&part);
        next = parts.next().await?;
    }
    Ok(all.into())
}

/// An object of this shape. Without this, a list of the values of its fields would do as well.
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
        return Err(Kind::BadJson.with("the body is empty"));
    }
    let parsed = serde_json::from_slice::<Object<T>>(bytes);
    parsed.map(|object| object.0).map_err(|cause| Kind::BadJson.with(cause.to_string()))
}

/// The body of a request that is JSON.
pub(crate) async fn json(request: Request, limit: usize) -> Result<Bytes, Problem> {
    let (parts, body) = request.into_parts();
    check_type(&parts.headers, &["application/json"])?;
    whole(&parts.headers, body, limit).await
}
