//! Streamed answers: bytes in chunks of any size in, events for the user and finally the parsed answer out.
//!
//! The concatenated events and the result depend only on the bytes, never on how they were chunked.

use super::tagged::Tagged;
use super::{OutputError, Parsed, json, yaml};
use crate::recipe::{OutputFormat, OutputSpec};

/// What a user may see of an incomplete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputEvent {
    /// The next piece of the reply.
    Reply(String),
    /// A complete visible tag. Hidden tags produce no event.
    Tag {
        /// The tag's name as declared.
        name: String,
        /// Its content, trimmed.
        text: String,
    },
}

/// An answer being received. Data (JSON, YAML) produces no event before the end, since half a value is not a value.
#[derive(Debug, Clone)]
pub struct OutputStream {
    format: OutputFormat,
    utf8: Utf8,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    Whole(String),
    Tagged(Box<Tagged>),
}

impl OutputStream {
    /// Creates a stream for answers of this shape.
    pub fn new(spec: &OutputSpec) -> Self {
        let body = match spec.format {
            OutputFormat::Tagged => Body::Tagged(Box::new(Tagged::new(&spec.tags))),
            _ => Body::Whole(String::new()),
        };
        Self { format: spec.format, utf8: Utf8::default(), body }
    }

    /// Accepts the next bytes, which may end inside a character or a tag.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<OutputEvent> {
        let mut events = Vec::new();
        let Self { format, utf8, body } = self;
        utf8.push(bytes, |text| match body {
            Body::Tagged(tagged) => tagged.push(text, &mut events),
            Body::Whole(whole) => {
                whole.push_str(text);
                if matches!(format, OutputFormat::Markdown | OutputFormat::Text) && !text.is_empty() {
                    events.push(OutputEvent::Reply(text.to_owned()));
                }
            }
        });
        events
    }

    /// Ends the answer: returns the remaining events and the parsed answer.
    ///
    /// # Errors
    /// The first problem that keeps the answer from being parsed, with its position.
    pub fn end(self) -> (Vec<OutputEvent>, Result<Parsed, OutputError>) {
        let mut events = Vec::new();
        let parsed = self.utf8.finish().and_then(|()| match self.body {
            Body::Tagged(tagged) => {
                let (value, reply) = tagged.finish(&mut events)?;
                let says_something =
                    value.as_object().is_none_or(|tags| tags.values().any(|tag| !tag.is_null()));
                if reply.trim().is_empty() && !says_something {
                    return Err(OutputError::Empty { expected: "text" });
                }
                Ok(Parsed { value, reply })
            }
            Body::Whole(text) => whole(self.format, text),
        });
        (events, parsed)
    }

    /// As [`salvage`](super::salvage).
    pub(super) fn salvage(self) -> Parsed {
        match self.body {
            Body::Tagged(tagged) => {
                let (value, reply) = tagged.salvage();
                Parsed { value, reply }
            }
            Body::Whole(text) => Parsed { value: text.as_str().into(), reply: text },
        }
    }

    /// As [`end`](Self::end), for callers that display nothing before the answer is checked.
    ///
    /// # Errors
    /// As for [`end`](Self::end).
    pub fn finish(self) -> Result<Parsed, OutputError> {
        self.end().1
    }
}

fn whole(format: OutputFormat, text: String) -> Result<Parsed, OutputError> {
    let (value, range) = match format {
        OutputFormat::Json => json::parse(&text)?,
        OutputFormat::Yaml => yaml::parse(&text)?,
        OutputFormat::Markdown | OutputFormat::Text | OutputFormat::Tagged => {
            if text.trim().is_empty() {
                return Err(OutputError::Empty { expected: "text" });
            }
            return Ok(Parsed { value: text.as_str().into(), reply: text });
        }
    };
    Ok(Parsed { value, reply: text.get(range).unwrap_or_default().to_owned() })
}

/// Decodes UTF-8 across chunk boundaries. Stops at the first invalid byte: nothing after it can be trusted.
#[derive(Debug, Clone, Default)]
struct Utf8 {
    partial: Vec<u8>,
    offset: usize,
    bad: Option<usize>,
}

impl Utf8 {
    fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&str)) {
        if self.bad.is_some() {
            return;
        }
        self.partial.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.partial);
        let (valid, error) = match std::str::from_utf8(&bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
                (std::str::from_utf8(valid).unwrap_or_default(), Some(error))
            }
        };
        take(valid);
        self.offset += valid.len();
        match error.map(|error| error.error_len()) {
            None => {}
            Some(None) => self.partial = bytes.get(valid.len()..).unwrap_or_default().to_vec(),
            Some(Some(_)) => self.bad = Some(self.offset),
        }
    }

    fn finish(&self) -> Result<(), OutputError> {
        match self.bad.or_else(|| (!self.partial.is_empty()).then_some(self.offset)) {
            Some(offset) => Err(OutputError::NotUtf8 { offset }),
            None => Ok(()),
        }
    }
}
