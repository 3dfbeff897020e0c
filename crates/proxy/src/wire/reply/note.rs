//! What a reply says that would otherwise be empty: the model asked only for originals, and got no more.
//! Clients show nothing of such a reply, and providers refuse a history that holds one.

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
    /// Something else comes before it.
    follows: bool,
}

impl ReplyRounds {
    /// The note for a reply that ends although the model waits for us, where nothing else in it says anything.
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
    /// Whether anything of it would do as an answer: thoughts alone are none, and nobody takes an empty text.
    fn says_something(&self, dialect: ApiDialect) -> bool {
        let says = |raw: &str| {
            let Ok(doc) = Document::parse(raw) else { return true };
            let kind = text(doc.root(), "type");
            let thinks = kind.ends_with("thinking") || kind == "reasoning";
            !thinks && dialect.format().said(doc.root()).is_none_or(|text| !text.trim().is_empty())
        };
        // What is too long to be kept says something.
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

    /// An item of OpenAI's responses. `response` is the id of its response: a history holds each id once.
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

    /// Puts a block or an item behind what stays of a list.
    pub fn behind(&self, list: Value<'_, '_>, unit: &str) -> Edit {
        let comma = if self.follows { "," } else { "" };
        Edit::insert(list.span().end - 1, format!("{comma}{unit}"))
    }

    /// Makes it the content of a message of chat completions whose calls are all ours.
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
