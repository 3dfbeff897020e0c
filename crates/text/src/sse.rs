//! Server-sent events (WHATWG) as bytes: takes chunks of any size and returns whole, unmodified events. Knows nothing
//! of HTTP or of the format of the data.

use std::borrow::Cow;

use crate::json::{self, Edit};

/// The maximum size of one event in bytes, so that a hostile stream cannot exhaust memory.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// Splits a stream of bytes into events, each up to and including the empty line that ends it.
#[derive(Debug)]
pub struct EventSplitter {
    buffer: Vec<u8>,
    /// Where the current event starts.
    start: usize,
    /// How far the buffer has been scanned.
    seen: usize,
    line_is_empty: bool,
    /// The last byte was a carriage return; a following line feed belongs to it.
    after_return: bool,
    /// The event is complete unless that line feed follows.
    over: bool,
    /// The event is too long, and its beginning has already been returned.
    too_long: bool,
}

/// A piece of the stream.
#[derive(Debug)]
pub enum EventPiece {
    /// A whole event.
    Event(Vec<u8>),
    /// Part of an event longer than [`MAX_EVENT_BYTES`].
    TooLong(Vec<u8>),
}

impl Default for EventSplitter {
    fn default() -> Self {
        Self::new()
    }
}

impl EventSplitter {
    /// Creates a splitter for the start of a stream.
    pub const fn new() -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            seen: 0,
            line_is_empty: true,
            after_return: false,
            over: false,
            too_long: false,
        }
    }

    /// Adds the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.seen -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next piece; `None` if more bytes are needed.
    pub fn next_piece(&mut self) -> Option<EventPiece> {
        while let Some(&byte) = self.buffer.get(self.seen) {
            let follows_return = std::mem::take(&mut self.after_return);
            if self.over && byte != b'\n' {
                return Some(self.cut());
            }
            self.seen += 1;
            match byte {
                b'\n' if self.over => return Some(self.cut()),
                b'\n' if follows_return => {}
                b'\n' if self.line_is_empty => return Some(self.cut()),
                b'\r' if self.line_is_empty => (self.over, self.after_return) = (true, true),
                b'\n' => self.line_is_empty = true,
                b'\r' => (self.line_is_empty, self.after_return) = (true, true),
                _ => self.line_is_empty = false,
            }
        }
        if self.seen - self.start > MAX_EVENT_BYTES {
            self.too_long = true;
            return Some(self.take());
        }
        None
    }

    /// The rest of the stream after it ends: an event without its closing empty line, which some servers omit.
    pub fn rest(&mut self) -> Option<EventPiece> {
        (self.start < self.buffer.len()).then(|| self.cut())
    }

    /// Bytes buffered until the end of their event arrives.
    pub const fn buffered(&self) -> usize {
        self.buffer.len()
    }

    fn cut(&mut self) -> EventPiece {
        let piece = self.take();
        (self.line_is_empty, self.over, self.too_long) = (true, false, false);
        piece
    }

    fn take(&mut self) -> EventPiece {
        let bytes = self.buffer[self.start..self.seen].to_vec();
        self.start = self.seen;
        if self.too_long || bytes.len() > MAX_EVENT_BYTES {
            EventPiece::TooLong(bytes)
        } else {
            EventPiece::Event(bytes)
        }
    }
}

/// The fields of an event in order: `name: value`, `name:value` or `name`. A line that starts with a colon is a
/// comment, returned with an empty name.
pub fn fields(event: &str) -> impl Iterator<Item = (&str, &str)> {
    lines(event).filter(|line| !line.is_empty()).map(|line| {
        let (name, value) = line.split_once(':').unwrap_or((line, &line[line.len()..]));
        (name, value.strip_prefix(' ').unwrap_or(value))
    })
}

/// The data of an event with its lines joined, and its offset in the event if it is on a single line. `None` if the
/// event has no data or is not UTF-8.
pub fn data(event: &[u8]) -> Option<(Cow<'_, str>, Option<usize>)> {
    let text = std::str::from_utf8(event).ok()?;
    let mut found: Option<(Cow<'_, str>, Option<usize>)> = None;
    for (_, value) in fields(text).filter(|(name, _)| *name == "data") {
        found = Some(match found {
            None => (Cow::Borrowed(value), Some(value.as_ptr() as usize - text.as_ptr() as usize)),
            Some((first, _)) => (Cow::Owned(format!("{first}\n{value}")), None),
        });
    }
    found
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// The event with edits applied to its data; its other lines are unchanged.
pub fn edited(event: Vec<u8>, edits: Vec<Edit>) -> Vec<u8> {
    if edits.is_empty() {
        return event;
    }
    let Some((old, at)) = data(&event) else { return event };
    let Ok(new) = json::apply(&old, edits) else { return event };
    if let Some(at) = at {
        return [&event[..at], new.as_bytes(), &event[at + old.len()..]].concat();
    }
    let text = std::str::from_utf8(&event).unwrap_or_default();
    let others = lines(text).filter(|line| !line.is_empty() && !line.starts_with("data"));
    let data = new.split('\n').map(|line| format!("data: {line}"));
    let all: Vec<String> = others.map(str::to_owned).chain(data).collect();
    format!("{}\n\n", all.join("\n")).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(stream: &[u8], chunk: usize) -> Vec<Vec<u8>> {
        let (mut splitter, mut events) = (EventSplitter::new(), Vec::new());
        let mut take = |piece| match piece {
            EventPiece::Event(event) => events.push(event),
            EventPiece::TooLong(_) => unreachable!("no event is too long"),
        };
        for bytes in stream.chunks(chunk) {
            splitter.push(bytes);
            while let Some(piece) = splitter.next_piece() {
                take(piece);
            }
        }
        splitter.rest().into_iter().for_each(take);
        events
    }

    #[test]
    fn events_are_the_same_however_the_stream_is_cut() {
        for line_end in ["\n", "\r\n", "\r"] {
            let stream = ["event: delta", "data: a", "data:b", "", ": comment", "", "data"].join(line_end);
            for chunk in [1, 2, 3, 1_000] {
                let events = split(stream.as_bytes(), chunk);
                assert_eq!(events.concat(), stream.as_bytes(), "no byte is lost");
                let read: Vec<_> = events.iter().map(|event| data(event).map(|(data, _)| data)).collect();
                assert_eq!(read, [Some("a\nb".into()), None, Some("".into())], "{line_end:?} by {chunk}");
            }
        }
    }

    #[test]
    fn data_is_edited_in_place_and_other_lines_stay() {
        let edit = || vec![Edit::replace(0..1, "2".to_owned())];
        assert_eq!(edited(b"id: 7\ndata: 1\n\n".to_vec(), edit()), b"id: 7\ndata: 2\n\n");
        let two_lines = b"data: 1\nid: 7\ndata:  \n\n".to_vec();
        assert_eq!(edited(two_lines, edit()), b"id: 7\ndata: 2\ndata:  \n\n");
        let unread = b"data: \xff\n\n".to_vec();
        assert_eq!(edited(unread.clone(), edit()), unread);
    }
}
