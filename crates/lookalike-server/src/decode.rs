//! Bodies that are compressed.
//!
//! Memory is bounded before it is used: what is decompressed counts against the budget of all clients while it is
//! written, and the window of zstd, which a few bytes can make as large as 2 GiB, is read from the first frame and counted
//! before anything is allocated.

use std::io::{self, Write};
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use bytes::Bytes;

use crate::budget::{MemoryBudget, Reservation};
use crate::problem::{Problem, ProblemKind};

/// The largest window of zstd, as a power of two: 8 MiB, as much as `zstd -19` uses.
const MOST_WINDOW_LOG: u32 = 23;
/// A window of this size is allowed whatever the first frame says.
const LEAST_WINDOW_LOG: u32 = 17;
/// What zstd needs besides the window.
const ZSTD_BYTES: usize = 512 << 10;
/// What gzip needs.
const GZIP_BYTES: usize = 64 << 10;

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

/// Decompressed bytes, up to a limit.
struct LimitedBuffer {
    bytes: Vec<u8>,
    limit: usize,
    budget: Arc<MemoryBudget>,
    memory: Reservation,
}

impl Write for LimitedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.bytes.len() + bytes.len();
        if length > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if length > self.bytes.capacity() {
            let wanted = length.next_power_of_two().min(self.limit);
            self.memory.grow_to(wanted).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LimitedBuffer {
    fn take(&mut self) -> (Bytes, Reservation) {
        let memory = std::mem::replace(&mut self.memory, self.budget.reservation());
        (std::mem::take(&mut self.bytes).into(), memory)
    }
}

/// Decompresses a body part by part.
pub(crate) struct Decoder {
    state: DecoderState,
    budget: Arc<MemoryBudget>,
    limit: usize,
    /// For the decoder itself.
    memory: Reservation,
}

enum DecoderState {
    Identity,
    Gzip(Box<flate2::write::MultiGzDecoder<LimitedBuffer>>),
    /// The beginning of a frame, until its window is known.
    ZstdHead(Vec<u8>),
    Zstd(Box<zstd::stream::write::Decoder<'static, LimitedBuffer>>),
}

impl Decoder {
    /// `limit` is for one part when it is decompressed.
    pub(crate) fn new(headers: &HeaderMap, limit: usize, budget: &Arc<MemoryBudget>) -> Result<Decoder, Problem> {
        let budget = Arc::clone(budget);
        let mut decoder = Decoder { state: DecoderState::Identity, memory: budget.reservation(), budget, limit };
        match ContentEncoding::of(headers)? {
            ContentEncoding::Identity => {}
            ContentEncoding::Gzip => {
                decoder.memory.grow_to(GZIP_BYTES)?;
                decoder.state = DecoderState::Gzip(Box::new(flate2::write::MultiGzDecoder::new(decoder.buffer())));
            }
            ContentEncoding::Zstd => decoder.state = DecoderState::ZstdHead(Vec::new()),
        }
        Ok(decoder)
    }

    fn buffer(&self) -> LimitedBuffer {
        let budget = Arc::clone(&self.budget);
        LimitedBuffer { bytes: Vec::new(), limit: self.limit, memory: budget.reservation(), budget }
    }

    /// What is in some bytes, and the memory that it takes.
    pub(crate) fn decode(&mut self, bytes: Bytes) -> Result<(Bytes, Reservation), Problem> {
        if let DecoderState::ZstdHead(head) = &mut self.state {
            head.extend_from_slice(&bytes);
            let Some(window) = zstd_window(head) else { return Ok((Bytes::new(), self.budget.reservation())) };
            let head = std::mem::take(head);
            self.start_zstd(window)?;
            return self.decode(head.into());
        }
        let (written, buffer) = match &mut self.state {
            DecoderState::Identity | DecoderState::ZstdHead(_) => return Ok((bytes, self.budget.reservation())),
            DecoderState::Gzip(decoder) => (write_through(&mut **decoder, &bytes), decoder.get_mut()),
            DecoderState::Zstd(decoder) => (write_through(&mut **decoder, &bytes), decoder.get_mut()),
        };
        written.map_err(|error| undecodable(&error))?;
        Ok(buffer.take())
    }

    /// Later frames may not have a larger window than the first: its memory is what is counted.
    fn start_zstd(&mut self, window: u64) -> Result<(), Problem> {
        let log =
            window.max(1).checked_next_power_of_two().map_or(u64::BITS, u64::trailing_zeros).max(LEAST_WINDOW_LOG);
        if log > MOST_WINDOW_LOG {
            let reason = format!("the zstd window has {window} bytes; at most {} are allowed", 1 << MOST_WINDOW_LOG);
            return Err(ProblemKind::TooLarge.with(reason));
        }
        self.memory.grow_to((1 << log) + ZSTD_BYTES)?;
        let mut decoder = zstd::stream::write::Decoder::new(self.buffer()).map_err(|error| undecodable(&error))?;
        decoder.window_log_max(log).map_err(|error| undecodable(&error))?;
        self.state = DecoderState::Zstd(Box::new(decoder));
        Ok(())
    }

    /// Whether the end is where it should be.
    pub(crate) fn finish(&mut self) -> Result<(), Problem> {
        match &mut self.state {
            DecoderState::Identity => Ok(()),
            DecoderState::ZstdHead(head) if head.is_empty() => Ok(()),
            DecoderState::ZstdHead(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            DecoderState::Gzip(decoder) => decoder.try_finish(),
            DecoderState::Zstd(decoder) => decoder.do_finish(),
        }
        .map_err(|error| undecodable(&error))
    }
}

/// The window of a frame of zstd, once enough of its head is there (RFC 8878, 3.1.1.1). What is not a frame has none, and
/// is refused by the decoder.
fn zstd_window(head: &[u8]) -> Option<u64> {
    let magic = head.first_chunk::<4>()?;
    if *magic != 0xFD2F_B528_u32.to_le_bytes() {
        // A frame that is skipped, perhaps: what comes after it is not known yet.
        return Some(1 << MOST_WINDOW_LOG);
    }
    let descriptor = *head.get(4)?;
    let is_single_segment = descriptor & 0x20 != 0;
    if !is_single_segment {
        let window = *head.get(5)?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_bytes = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let size = head.get(5 + dictionary_bytes..5 + dictionary_bytes + size_bytes)?;
    let mut bytes = [0; 8];
    bytes[..size_bytes].copy_from_slice(size);
    let offset = if size_bytes == 2 { 256 } else { 0 };
    Some(u64::from_le_bytes(bytes).saturating_add(offset))
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
        io::ErrorKind::OutOfMemory => crate::budget::no_memory(),
        _ => ProblemKind::BadRequest.with(format!("the body cannot be decompressed: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoder(encoding: &str, budget: &Arc<MemoryBudget>) -> Decoder {
        let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, encoding.parse().unwrap())]);
        Decoder::new(&headers, 1 << 20, budget).unwrap()
    }

    fn packed(bytes: &[u8], window_log: u32) -> Vec<u8> {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(window_log).unwrap();
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_window_is_counted_before_it_is_used_and_large_ones_are_refused() {
        let budget = Arc::new(MemoryBudget::new(64 << 20));
        let text = b"the ferry did not sail ".repeat(100);
        for (log, status) in [(17, 200), (21, 200), (23, 200), (24, 413), (27, 413)] {
            let packed = packed(&text, log);
            assert_eq!(zstd_window(&packed), Some(1 << log));
            let mut decoder = decoder("zstd", &budget);
            let mut found = Vec::new();
            // In two parts, the first of which is only a piece of the head.
            let decoded = [&packed[..3], &packed[3..]].iter().try_for_each(|part| {
                decoder.decode(Bytes::copy_from_slice(part)).map(|(part, _)| found.extend_from_slice(&part))
            });
            let decoded = decoded.and_then(|()| decoder.finish());
            assert_eq!(decoded.map_or_else(|problem| problem.status, |()| 200), status, "{log}");
            if status == 200 {
                assert!(found == text && budget.used() >= 1 << log, "{log}");
            }
        }
        assert_eq!(budget.used(), 0);
        // A frame of which all is known at once, and a second one with a larger window than the first.
        let single = zstd::bulk::compress(&text, 1).unwrap();
        assert_eq!(zstd_window(&single), Some(text.len() as u64));
        let mut decoder = decoder("zstd", &budget);
        assert!(decoder.decode(single.into()).is_ok());
        assert!(decoder.decode(packed(&text, 22).into()).is_err());
    }

    #[test]
    fn what_is_decompressed_counts_against_the_budget() {
        let budget = Arc::new(MemoryBudget::new(2 << 20));
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![b'a'; 700 << 10]).unwrap();
        let packed = Bytes::from(encoder.finish().unwrap());
        let mut first = decoder("gzip", &budget);
        let held = first.decode(packed.clone()).unwrap();
        assert!(held.1.bytes() >= 700 << 10);
        let mut second = decoder("gzip", &budget);
        assert_eq!(second.decode(packed.clone()).map(drop).map_err(|problem| problem.status), Err(503));
        drop((held, first, second));
        assert!(decoder("gzip", &budget).decode(packed).is_ok());
    }
}
