//! Replies that no provider wrote: the answer of a recipe or in a conversation, for a format to put into its own form, in
//! one piece or as it is written. Knows nothing of how answers are produced.

use larder_text::usage::Usage;
use serde_json::{Value, json};

use super::api_error::ApiError;
use super::dialect::ApiDialect;

/// The member with what formats have no place for.
pub(super) const EXTENSION: &str = "larder";
/// Events before the text, in the format that numbers them.
pub(super) const EVENTS_BEFORE_TEXT: u64 = 4;

/// An answer to be sent in some dialect.
#[derive(Debug)]
pub struct RecipeReply<'a> {
    /// The id of the request.
    pub id: &'a str,
    /// Seconds since 1970.
    pub created: u64,
    /// The requested model's name.
    pub model: &'a str,
    /// The text of the answer.
    pub text: &'a str,
    /// A text that the client's user may share, next to the answer. A stream has it at its end.
    pub draft: Option<&'a str>,
    /// Whether it ends at the most tokens that the request allows for it.
    pub is_cut: bool,
    /// The tokens it used.
    pub usage: Usage,
    /// Whether a stream of chat completions ends in a chunk with the usage.
    pub include_usage: bool,
}

impl RecipeReply<'_> {
    /// What formats have no place for, as the member [`EXTENSION`] of a reply or of the event that ends a stream.
    pub(super) fn extension(&self) -> Option<Value> {
        self.draft.map(|draft| json!({"draft": draft}))
    }

    /// Adds the extension to an object.
    pub(super) fn extend(&self, mut object: Value) -> Value {
        if let Some(extension) = self.extension() {
            object[EXTENSION] = extension;
        }
        object
    }

    /// The reply in one piece.
    pub fn whole(&self, dialect: ApiDialect) -> String {
        dialect.format().recipe_reply(self)
    }

    /// The reply as a stream of events.
    pub fn events(&self, dialect: ApiDialect) -> Vec<u8> {
        let parts =
            [ReplyPart::Begin, ReplyPart::Text { piece: self.text, at: 0 }, ReplyPart::End { pieces: 1 }];
        parts.iter().flat_map(|part| self.part(dialect, part)).collect()
    }

    /// A part of the stream. The usage is known at its end only, where clients look for it then.
    pub fn part(&self, dialect: ApiDialect, part: &ReplyPart<'_>) -> Vec<u8> {
        let format = dialect.format();
        format.framing().laid_out(format.recipe_events(self, part))
    }

    /// An error that ends the stream after so many pieces of the text.
    pub fn failure(dialect: ApiDialect, error: &ApiError, pieces: u64) -> Vec<u8> {
        let format = dialect.format();
        format.framing().laid_out(format.error_event(error, EVENTS_BEFORE_TEXT + pieces))
    }
}

/// A part of a streamed reply.
#[derive(Debug)]
pub enum ReplyPart<'a> {
    /// What comes before the text.
    Begin,
    /// A piece of the text, behind so many others.
    Text {
        /// The piece.
        piece: &'a str,
        /// The pieces before it.
        at: u64,
    },
    /// What comes after the text; the reply has all of it.
    End {
        /// The pieces of the text.
        pieces: u64,
    },
}

/// Events named after their type.
pub(super) fn named(events: &[Value]) -> String {
    let event = |event: &Value| {
        let name = event.get("type").and_then(Value::as_str).unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(event).collect()
}
