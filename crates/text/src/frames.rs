//! Amazon's event streams (`application/vnd.amazon.eventstream`) as bytes: takes chunks of any size and returns whole
//! frames. Knows nothing of HTTP or of the format of the payloads.
//!
//! A frame is its length and that of its headers, a checksum of both, the headers, the payload, and a checksum of all
//! of it; numbers are big-endian. Only headers whose value is text are read, as no other says anything here.

use std::borrow::Cow;

use crate::sse::MAX_EVENT_BYTES;

/// The content type of a stream of frames.
pub const CONTENT_TYPE: &str = "application/vnd.amazon.eventstream";

/// Lengths and their checksum.
const PRELUDE: usize = 12;
/// The checksum at the end.
const CHECKSUM: usize = 4;
/// The code of a header whose value is text.
const TEXT: u8 = 7;

/// The bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame is larger than any reply needs, or smaller than a frame can be.
    #[error("the event stream has a frame of {0} bytes")]
    Length(usize),
    /// The bytes were changed, or are something else.
    #[error("a frame of the event stream does not match its checksum")]
    Checksum,
    /// A header ends behind the headers, or is of unknown kind.
    #[error("a frame of the event stream has malformed headers")]
    Headers,
}

/// Splits a stream of bytes into frames.
#[derive(Debug, Default)]
pub struct FrameSplitter {
    buffer: Vec<u8>,
    start: usize,
}

impl FrameSplitter {
    /// Adds the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame; `None` if more bytes are needed.
    ///
    /// # Errors
    /// If the bytes cannot be a frame; where the next one begins is then unknown.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let left = &self.buffer[self.start..];
        let Some(length) = number(left, 0) else { return Ok(None) };
        if !(PRELUDE + CHECKSUM..=MAX_EVENT_BYTES).contains(&length) {
            return Err(FrameError::Length(length));
        }
        let Some(frame) = left.get(..length) else { return Ok(None) };
        let frame = frame.to_vec();
        self.start += length;
        Ok(Some(frame))
    }

    /// The bytes that have not been returned.
    pub fn rest(&mut self) -> Vec<u8> {
        let rest = self.buffer.split_off(std::mem::take(&mut self.start));
        self.buffer.clear();
        rest
    }
}

/// A frame, read.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'b> {
    headers: &'b [u8],
    /// What the headers describe.
    pub payload: &'b [u8],
}

impl<'b> Frame<'b> {
    /// Reads a whole frame.
    ///
    /// # Errors
    /// If its lengths, checksums or headers are wrong.
    pub fn read(bytes: &'b [u8]) -> Result<Self, FrameError> {
        let wrong = FrameError::Length(bytes.len());
        let (length, headers) = (number(bytes, 0).ok_or(wrong)?, number(bytes, 4).ok_or(wrong)?);
        let end = length.checked_sub(CHECKSUM).filter(|_| length == bytes.len()).ok_or(wrong)?;
        let payload_at = headers.checked_add(PRELUDE).filter(|at| *at <= end).ok_or(wrong)?;
        let holds = |range: &[u8], at: usize| number(bytes, at) == Some(checksum(range));
        if !holds(&bytes[..8], 8) || !holds(&bytes[..end], end) {
            return Err(FrameError::Checksum);
        }
        let frame = Self { headers: &bytes[PRELUDE..payload_at], payload: &bytes[payload_at..end] };
        frame.headers().try_for_each(|header| header.map(drop))?;
        Ok(frame)
    }

    /// The value of a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&'b str> {
        self.headers().filter_map(Result::ok).find(|(header, _)| *header == name)?.1
    }

    /// The same headers with another payload.
    pub fn with_payload(&self, payload: &[u8]) -> Vec<u8> {
        assembled(self.headers, payload)
    }

    /// What the frame is called: the type of its event, or of the exception or error that ends the stream.
    pub fn kind(&self) -> &'b str {
        let names = [":event-type", ":exception-type", ":error-code"];
        names.into_iter().find_map(|name| self.header(name)).unwrap_or_default()
    }

    /// Whether the frame reports that the reply failed.
    pub fn is_failure(&self) -> bool {
        self.header(":message-type").is_some_and(|kind| kind != "event")
    }

    /// The payload as text, or for an error without one its message.
    pub fn text(&self) -> Cow<'b, str> {
        match self.header(":error-message").filter(|_| self.payload.is_empty()) {
            Some(message) => Cow::Borrowed(message),
            None => String::from_utf8_lossy(self.payload),
        }
    }

    fn headers(&self) -> impl Iterator<Item = Result<(&'b str, Option<&'b str>), FrameError>> {
        let mut left = self.headers;
        std::iter::from_fn(move || {
            if left.is_empty() {
                return None;
            }
            let header = take_header(&mut left).ok_or(FrameError::Headers);
            if header.is_err() {
                left = &[];
            }
            Some(header)
        })
    }
}

/// Writes a frame whose headers are text.
pub fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in headers {
        // Names and values of headers are constants and types of events, all far shorter than these lengths allow.
        bytes.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        bytes.extend(name.bytes().take(usize::from(u8::MAX)));
        bytes.push(TEXT);
        bytes.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend(value.bytes().take(usize::from(u16::MAX)));
    }
    assembled(&bytes, payload)
}

/// Writes an event with a JSON payload.
pub fn event(kind: &str, payload: &[u8]) -> Vec<u8> {
    let headers = [(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")];
    frame(&headers, payload)
}

/// Writes an exception with a JSON payload, which ends a stream.
pub fn exception(kind: &str, payload: &[u8]) -> Vec<u8> {
    let headers =
        [(":exception-type", kind), (":content-type", "application/json"), (":message-type", "exception")];
    frame(&headers, payload)
}

fn assembled(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = PRELUDE + headers.len() + payload.len() + CHECKSUM;
    let mut bytes = Vec::with_capacity(length);
    for number in [length, headers.len()] {
        bytes.extend(u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
    }
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend_from_slice(headers);
    bytes.extend_from_slice(payload);
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

fn checksum(bytes: &[u8]) -> usize {
    crc32fast::hash(bytes) as usize
}

/// The 32-bit number at an offset.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_be_bytes(*four)).ok()
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, left) = bytes.split_at_checked(count)?;
    *bytes = left;
    Some(taken)
}

/// The next header, with its value if that is text.
fn take_header<'b>(bytes: &mut &'b [u8]) -> Option<(&'b str, Option<&'b str>)> {
    let length = usize::from(*take(bytes, 1)?.first()?);
    let name = std::str::from_utf8(take(bytes, length)?).ok()?;
    let kind = *take(bytes, 1)?.first()?;
    let length = match kind {
        // True, false; numbers of 1, 2, 4 and 8 bytes; bytes, text; a time; an id.
        0 | 1 => 0,
        2 => 1,
        3 => 2,
        4 => 4,
        5 | 8 => 8,
        6 | TEXT => usize::from(u16::from_be_bytes(*take(bytes, 2)?.first_chunk()?)),
        9 => 16,
        _ => return None,
    };
    let value = take(bytes, length)?;
    let text = if kind == TEXT { Some(std::str::from_utf8(value).ok()?) } else { None };
    Some((name, text))
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
