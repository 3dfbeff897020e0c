//! Events of a provider's stream, decoded. Knows no provider and no HTTP; [`larder_text::sse`] splits.

use larder_text::sse::{EventPiece, EventSplitter, MAX_EVENT_BYTES, fields};

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    /// The `event` field, empty when there is none.
    pub event: String,
    /// The `data` fields, joined by line feeds.
    pub data: String,
}

/// The stream is not an event stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event is larger than any reply needs.
    #[error("one event has more than {MAX_EVENT_BYTES} bytes")]
    TooLarge,
    /// The bytes of an event are not text.
    #[error("an event is not UTF-8")]
    NotUtf8,
}

/// An incremental parser that follows the WHATWG specification, with one exception: an event cut short by the end of
/// the stream still counts, because some servers omit the last blank line.
#[derive(Debug, Default)]
pub struct SseParser {
    splitter: EventSplitter,
    has_begun: bool,
}

impl SseParser {
    /// Takes the next bytes and appends the events they complete to `events`.
    ///
    /// # Errors
    /// When an event is too large or not UTF-8; the parser is of no use after that.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<StreamEvent>) -> Result<(), SseError> {
        self.splitter.push(bytes);
        while let Some(piece) = self.splitter.next_piece() {
            events.extend(self.read(piece)?);
        }
        Ok(())
    }

    /// Ends the stream: appends the unfinished event, if it has data.
    ///
    /// # Errors
    /// When that event is not UTF-8.
    pub fn finish(mut self, events: &mut Vec<StreamEvent>) -> Result<(), SseError> {
        if let Some(piece) = self.splitter.rest() {
            events.extend(self.read(piece)?);
        }
        Ok(())
    }

    /// The event, if it has data.
    fn read(&mut self, piece: EventPiece) -> Result<Option<StreamEvent>, SseError> {
        let EventPiece::Event(bytes) = piece else { return Err(SseError::TooLarge) };
        let mut text = std::str::from_utf8(&bytes).map_err(|_| SseError::NotUtf8)?;
        if !std::mem::replace(&mut self.has_begun, true) {
            text = text.strip_prefix('\u{feff}').unwrap_or(text);
        }
        let (mut event, mut data) = ("", None::<String>);
        for (name, value) in fields(text) {
            match (name, &mut data) {
                ("event", _) => event = value,
                ("data", None) => data = Some(value.to_owned()),
                ("data", Some(data)) => {
                    data.push('\n');
                    data.push_str(value);
                }
                _ => {}
            }
        }
        Ok(data.map(|data| StreamEvent { event: event.to_owned(), data }))
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
