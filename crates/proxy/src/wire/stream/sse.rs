//! Server-sent events as bytes: any chunking in, whole events out, none of them changed. Knows no format of data.

use std::borrow::Cow;

use larder_text::json::{self, Edit};

/// Bytes that one event may have. A longer one is passed on in pieces and not looked at.
pub(super) const MAX_EVENT: usize = 16 << 20;

/// Cuts a stream of bytes into events: everything up to and including an empty line.
#[derive(Debug)]
pub(super) struct Splitter {
    buffer: Vec<u8>,
    /// Where the event under way begins.
    start: usize,
    /// Up to where the buffer was looked at.
    seen: usize,
    line_is_empty: bool,
    /// The last byte was a carriage return; a line feed would belong to it.
    after_return: bool,
    /// The event is over unless that line feed comes.
    over: bool,
    /// The event is too long, and its beginning is out already.
    too_long: bool,
}

/// Bytes of the stream.
#[derive(Debug)]
pub(super) enum Piece {
    /// A whole event.
    Event(Vec<u8>),
    /// Something to be passed on unread.
    Raw(Vec<u8>),
}

impl Splitter {
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

    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.seen -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next piece, as far as the bytes go.
    pub fn next(&mut self) -> Option<Piece> {
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
        if self.seen - self.start > MAX_EVENT {
            self.too_long = true;
            return Some(self.take());
        }
        None
    }

    /// What is left when the stream ends: an event that no empty line ends, as some servers leave it.
    pub fn rest(&mut self) -> Option<Piece> {
        (self.start < self.buffer.len()).then(|| self.cut())
    }

    #[cfg(test)]
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    fn cut(&mut self) -> Piece {
        let piece = self.take();
        (self.line_is_empty, self.over, self.too_long) = (true, false, false);
        piece
    }

    fn take(&mut self) -> Piece {
        let bytes = self.buffer[self.start..self.seen].to_vec();
        self.start = self.seen;
        if self.too_long || bytes.len() > MAX_EVENT { Piece::Raw(bytes) } else { Piece::Event(bytes) }
    }
}

/// The data of an event, and where it stands if it stands on one line.
pub(super) fn data(event: &[u8]) -> Option<(Cow<'_, str>, Option<usize>)> {
    let text = std::str::from_utf8(event).ok()?;
    let mut found: Option<(Cow<'_, str>, Option<usize>)> = None;
    for line in lines(text) {
        let Some(value) = line.strip_prefix("data").and_then(|rest| match rest.strip_prefix(':') {
            Some(value) => Some(value.strip_prefix(' ').unwrap_or(value)),
            None => rest.is_empty().then_some(rest),
        }) else {
            continue;
        };
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

/// The event with its data edited; its other lines stay.
pub(super) fn edited(event: Vec<u8>, edits: Vec<Edit>) -> Vec<u8> {
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
