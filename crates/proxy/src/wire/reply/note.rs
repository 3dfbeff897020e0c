//! The note in a reply that would otherwise be empty: the model only requested originals, and received no more.
//! Clients show nothing for such a reply, and providers reject a history that contains one.

use larder_text::hash::ContentHash;
use larder_text::json::{self, Document, Edit, Value, encoded};

use super::super::dialect::ApiDialect;
use super::{ReplyRound, ReplyRounds, text};

/// Hexadecimal digits of the id of an item.
const DIGITS: usize = 48;

/// A sentence in place of an answer.
#[derive(Debug)]
pub struct LimitNote {
    text: String,
    /// Whether something else precedes it.
    follows: bool,
}

impl ReplyRounds {
    /// The note for a reply that ends although the model waits for a result, if the reply says nothing else.
    pub(in super::super) fn note(&self) -> Option<LimitNote> {
        let waits = self.done.last().is_some_and(|round| round.asks_us_alone() && !round.failed);
        if !waits || self.done.iter().any(|round| round.says_something(self.dialect)) {
            return None;
        }
        let limit = self.limit.unwrap_or("the provider cut the reply off");
        let text =
            format!("[larder: the answer ends here, since originals could be read back no further: {limit}]");
        Some(LimitNote { text, follows: !self.shown().is_empty() })
    }
}

impl ReplyRound {
    /// Whether any of it would do as an answer: reasoning alone does not, and empty text is rejected.
    fn says_something(&self, dialect: ApiDialect) -> bool {
        let says = |raw: &str| {
            let Ok(doc) = Document::parse(raw) else { return true };
            let kind = text(doc.root(), "type");
            let thinks = kind.ends_with("thinking")
                || kind == "reasoning"
                || doc.root().given("reasoningContent").is_some();
            !thinks && dialect.format().said(doc.root()).is_none_or(|text| !text.trim().is_empty())
        };
        // A reply that is too long to keep is not empty.
        if self.lost {
            return true;
        }
        if dialect.format().has_one_text() {
            return !self.text.trim().is_empty();
        }
        self.units.iter().any(|unit| unit.ours.is_none() && says(&unit.raw))
    }
}

impl LimitNote {
    /// The words, as a string literal.
    pub fn literal(&self) -> String {
        encoded(&self.text)
    }

    /// A block of Anthropic's.
    pub fn block(&self) -> String {
        format!(r#"{{"type":"text","text":{}}}"#, self.literal())
    }

    /// The content of an item of OpenAI's responses.
    pub fn part(&self) -> String {
        format!(r#"{{"type":"output_text","text":{},"annotations":[]}}"#, self.literal())
    }

    /// An item in OpenAI's responses format. `response` is the id of its response: a history contains each id once.
    pub fn item(&self, response: &str) -> String {
        let (id, part) = (Self::id(response), self.part());
        format!(
            r#"{{"id":{id},"type":"message","status":"completed","role":"assistant","content":[{part}]}}"#
        )
    }

    /// The id of that item, as a string literal.
    pub fn id(response: &str) -> String {
        let mut id = ContentHash::new(format!("note\0{response}").as_bytes()).to_hex();
        id.truncate(DIGITS);
        encoded(&format!("msg_{id}"))
    }

    /// Appends a block or an item to what remains of a list.
    pub fn behind(&self, list: Value<'_, '_>, unit: &str) -> Edit {
        let comma = if self.follows { "," } else { "" };
        Edit::insert(list.span().end - 1, format!("{comma}{unit}"))
    }

    /// Makes it the content of a chat completions message that only calls Larder's tool.
    pub fn in_place_of_calls(&self, message: Value<'_, '_>) -> Vec<Edit> {
        let content = self.literal();
        let mut edits = json::without(message, &["tool_calls"]);
        edits.push(match message.get("content") {
            Some(given) => Edit::replace(given.span(), content),
            None => {
                let stays = message.members().any(|(key, _)| !key.is("tool_calls"));
                let comma = if stays { "," } else { "" };
                Edit::insert(message.span().start + 1, format!(r#""content":{content}{comma}"#))
            }
        });
        edits
    }
}
