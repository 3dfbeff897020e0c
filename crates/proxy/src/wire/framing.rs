//! How the events of a streamed reply are laid out in bytes: as server-sent events, or as frames of Amazon's event
//! streams. Knows no format's events.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use larder_text::frames::{self, Frame, FrameSplitter};
use larder_text::json::{self, Document, Edit, Value, encoded};
use larder_text::sse::{self, EventPiece, EventSplitter};

/// The layout of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events.
    Events,
    /// Frames named after their event, whose payload is its data.
    Frames,
    /// Frames whose payload has the data of an event of the model's maker, in base64.
    Chunks,
}

/// An event that can be read.
pub(super) struct StreamedEvent<'e> {
    /// What a frame is called; empty for server-sent events, which say it in their data.
    pub kind: &'e str,
    /// The data.
    pub data: Cow<'e, str>,
    /// Whether it is the frame with which a failed stream ends.
    pub fails: bool,
}

/// Splits a stream.
#[derive(Debug)]
pub(super) enum StreamSplitter {
    Events(EventSplitter),
    Frames(FrameSplitter),
}

impl Framing {
    pub fn splitter(self) -> StreamSplitter {
        match self {
            Self::Events => StreamSplitter::Events(EventSplitter::new()),
            Self::Frames | Self::Chunks => StreamSplitter::Frames(FrameSplitter::default()),
        }
    }

    /// The content type of the stream.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream",
            Self::Frames | Self::Chunks => frames::CONTENT_TYPE,
        }
    }

    /// Reads an event; `None` if it has no data or cannot be read.
    pub fn read(self, event: &[u8]) -> Option<StreamedEvent<'_>> {
        if self == Self::Events {
            let (data, _) = sse::data(event)?;
            return Some(StreamedEvent { kind: "", data, fails: false });
        }
        let frame = Frame::read(event).ok()?;
        let fails = frame.is_failure();
        let data = if self == Self::Frames || fails { frame.text() } else { inside(frame.payload)?.into() };
        Some(StreamedEvent { kind: frame.kind(), data, fails })
    }

    /// The event with edits applied to its data.
    pub fn edited(self, event: Vec<u8>, edits: Vec<Edit>) -> Vec<u8> {
        if edits.is_empty() || self == Self::Events {
            return sse::edited(event, edits);
        }
        let new = self.read(&event).and_then(|old| json::apply(&old.data, edits).ok());
        match Frame::read(&event).ok().zip(new) {
            Some((frame, new)) if self == Self::Frames => frame.with_payload(new.as_bytes()),
            Some((frame, new)) => frame.with_payload(&chunk(&new)),
            None => event,
        }
    }

    /// Events written as server-sent events in this layout.
    pub fn laid_out(self, events: String) -> Vec<u8> {
        if self == Self::Events {
            return events.into_bytes();
        }
        let mut bytes = Vec::new();
        for event in events.split_terminator("\n\n") {
            let mut fields = sse::fields(event);
            let kind = fields.find(|(name, _)| *name == "event").map_or("", |(_, kind)| kind);
            let data = fields.find(|(name, _)| *name == "data").map_or("", |(_, data)| data);
            bytes.extend(match self {
                _ if kind.ends_with("Exception") => frames::exception(kind, data.as_bytes()),
                Self::Chunks => frames::event("chunk", &chunk(data)),
                _ => frames::event(kind, data.as_bytes()),
            });
        }
        bytes
    }

    /// Whole events as server-sent events, for those who read a record of the stream.
    pub fn readable(self, events: &[u8]) -> Cow<'_, [u8]> {
        if self == Self::Events {
            return Cow::Borrowed(events);
        }
        let (mut splitter, mut text) = (FrameSplitter::default(), String::new());
        splitter.push(events);
        while let Ok(Some(frame)) = splitter.next_frame() {
            if let Some(event) = self.read(&frame) {
                text.push_str(&format!("event: {}\ndata: {}\n\n", event.kind, event.data));
            }
        }
        Cow::Owned(text.into_bytes())
    }
}

impl StreamSplitter {
    pub fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Events(splitter) => splitter.push(bytes),
            Self::Frames(splitter) => splitter.push(bytes),
        }
    }

    pub fn next_piece(&mut self) -> Option<EventPiece> {
        match self {
            Self::Events(splitter) => splitter.next_piece(),
            Self::Frames(splitter) => match splitter.next_frame() {
                Ok(frame) => frame.map(EventPiece::Event),
                // No frame will be found after these bytes.
                Err(_) => Some(EventPiece::TooLong(splitter.rest())),
            },
        }
    }

    pub fn rest(&mut self) -> Option<EventPiece> {
        match self {
            Self::Events(splitter) => splitter.rest(),
            Self::Frames(splitter) => {
                Some(splitter.rest()).filter(|rest| !rest.is_empty()).map(EventPiece::Event)
            }
        }
    }
}

/// The payload of a frame with the data of an event.
fn chunk(data: &str) -> Vec<u8> {
    format!(r#"{{"bytes":{}}}"#, encoded(&STANDARD.encode(data))).into_bytes()
}

/// The data in the payload of such a frame.
fn inside(payload: &[u8]) -> Option<String> {
    let doc = Document::parse(std::str::from_utf8(payload).ok()?).ok()?;
    let bytes = STANDARD.decode(&*doc.root().given("bytes").and_then(Value::text)?).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_survives_every_layout() {
        let written = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        for (framing, kind) in
            [(Framing::Events, ""), (Framing::Frames, "message_stop"), (Framing::Chunks, "chunk")]
        {
            let bytes = framing.laid_out(written.to_owned());
            let event = framing.read(&bytes).unwrap();
            assert_eq!((event.kind, &*event.data, event.fails), (kind, r#"{"type":"message_stop"}"#, false));
            let edited = framing.edited(bytes.clone(), vec![Edit::replace(0..event.data.len(), "{}")]);
            assert_eq!(framing.read(&edited).unwrap().data, "{}");
            assert!(
                String::from_utf8_lossy(&framing.readable(&bytes))
                    .contains(r#"data: {"type":"message_stop"}"#)
            );
        }
    }

    #[test]
    fn errors_are_exceptions_in_frames() {
        let written = "event: throttlingException\ndata: {\"message\":\"slow\"}\n\n";
        for framing in [Framing::Frames, Framing::Chunks] {
            let bytes = framing.laid_out(written.to_owned());
            let event = framing.read(&bytes).unwrap();
            assert_eq!(
                (event.kind, &*event.data, event.fails),
                ("throttlingException", r#"{"message":"slow"}"#, true)
            );
        }
    }
}
