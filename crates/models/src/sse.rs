//! Server-sent events: bytes in any chunking → whole events. Knows no provider and no HTTP.

/// Bytes one event may have; more is an error, so that a hostile stream cannot fill the memory.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field, empty when there is none.
    pub event: String,
    /// The `data` fields, joined by line feeds.
    pub data: String,
}

/// A stream that is no event stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event is larger than any reply needs.
    #[error("one event has more than {MAX_EVENT_BYTES} bytes")]
    TooLarge,
    /// The bytes of an event are not text.
    #[error("an event is not UTF-8")]
    NotUtf8,
}

/// An incremental parser after the WHATWG specification. It differs in one point: an event that the stream's end
/// cuts short is still given out, because some servers leave out the last blank line.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    event: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    past_first_line: bool,
}

impl SseParser {
    /// Takes the next bytes and appends the events they complete to `events`.
    ///
    /// # Errors
    /// When an event is too large or not UTF-8; the parser is of no use after that.
    pub fn push(&mut self, mut bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (text, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.line.len() + self.data.len() + text.len() > MAX_EVENT_BYTES {
                return Err(SseError::TooLarge);
            }
            self.line.extend_from_slice(text);
            let Some((&line_end, rest)) = rest.split_first() else { break };
            self.after_cr = line_end == b'\r';
            bytes = rest;
            self.end_line(events)?;
        }
        Ok(())
    }

    /// The stream has ended: gives the event that was under way, if it holds data.
    ///
    /// # Errors
    /// When that event is not UTF-8.
    pub fn finish(mut self, events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        self.end_line(events)?;
        self.dispatch(events)
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        let mut rest = line.as_slice();
        if !std::mem::replace(&mut self.past_first_line, true) {
            rest = rest.strip_prefix("\u{feff}".as_bytes()).unwrap_or(rest);
        }
        if rest.is_empty() {
            self.dispatch(events)?;
        } else {
            self.field(rest);
        }
        self.line = line;
        self.line.clear();
        Ok(())
    }

    /// `name: value`, `name:value` or `name`; a line that begins with a colon is a comment.
    fn field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => value.clone_into(&mut self.event),
            _ => {}
        }
    }

    fn dispatch(&mut self, events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let (event, data) = (std::mem::take(&mut self.event), std::mem::take(&mut self.data));
        if std::mem::take(&mut self.has_data) {
            let text = |bytes| String::from_utf8(bytes).map_err(|_| SseError::NotUtf8);
            events.push(SseEvent { event: text(event)?, data: text(data)? });
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
