//! Replies that no provider wrote: a recipe's answer, for a format to put into its own form. Knows nothing of how
//! answers are produced.

use larder_text::usage::Usage;
use serde_json::Value;

use super::dialect::ApiDialect;

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
    /// The tokens it used.
    pub usage: Usage,
    /// Whether a stream of chat completions ends in a chunk with the usage.
    pub include_usage: bool,
}

impl RecipeReply<'_> {
    /// The reply in one piece.
    pub fn whole(&self, dialect: ApiDialect) -> String {
        dialect.format().recipe_reply(self)
    }

    /// The reply as a stream of events.
    pub fn events(&self, dialect: ApiDialect) -> Vec<u8> {
        let format = dialect.format();
        format.framing().laid_out(format.recipe_events(self))
    }
}

/// Events named after their type.
pub(super) fn named(events: &[Value]) -> String {
    let event = |event: &Value| {
        let name = event.get("type").and_then(Value::as_str).unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(event).collect()
}
