//! Splits a request to a recipe into its question, which is the text of the user's last message with the pictures next
//! to it, and the conversation before it.

use larder_text::message::Role;
use larder_text::picture::Picture;
use larder_text::pointer::PointerKey;
use serde_json::{Value, json};

use super::message::{MessageReader, is_cache_point};
use super::{History, HistoryReader, METADATA, conversation, is_empty, place, role};

/// What a request asks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// The text of the user's last message.
    pub query: String,
    /// Pictures in that message, or in messages of their own after it.
    pub pictures: Vec<Picture>,
    /// The messages before it, and what is kept of the request.
    pub history: History,
    /// Fields of the question's messages that are not read, such as `message 3: name`.
    pub unread: Vec<String>,
}

/// Reads a request whose last message is the user's. A picture may be in a message of its own after the text.
///
/// # Errors
/// As [`super::read`], or if the last message is not the user's, has no text, or holds something other than text and
/// pictures.
pub fn question(request: &str, key: &PointerKey) -> Result<Question, Vec<String>> {
    let (system, mut list) = conversation(request)?;
    let first = list.iter().rposition(asks).unwrap_or(list.len());
    let asked = list.split_off(first);
    // In Anthropic's form the results of earlier calls are in the same message as the text after them.
    let results: Vec<&Value> = asked.first().into_iter().flat_map(blocks).filter(is_result).collect();
    if !results.is_empty() {
        list.push(json!({"role": "user", "content": results}));
    }
    let mut before = HistoryReader::new(request, key);
    before.instructions(system.as_ref());
    before.messages(&list);
    if asked.is_empty() {
        before.problems.push("a recipe needs a message of the user: its text is the query".to_owned());
    }
    let mut reader = QuestionReader {
        key,
        texts: Vec::new(),
        read: Question::default(),
        is_last: true,
        problems: Vec::new(),
    };
    for (at, message) in (first..).zip(&asked) {
        reader.message(at, at == first, message);
    }
    if !reader.is_last {
        let last = place(first + asked.len() - 1);
        before
            .problems
            .push(format!("{last}: the last message has to be the user's: a recipe answers its text"));
    }
    before.problems.append(&mut reader.problems);
    let history = before.finish()?;
    Ok(Question { query: reader.texts.join("\n"), history, ..reader.read })
}

/// The question being read.
struct QuestionReader<'k> {
    key: &'k PointerKey,
    texts: Vec<String>,
    read: Question,
    /// Whether nothing but pictures of the user's follows the text.
    is_last: bool,
    problems: Vec<String>,
}

impl QuestionReader<'_> {
    fn message(&mut self, at: usize, is_first: bool, message: &Value) {
        let place = place(at);
        let is_users = match message.as_object().filter(|fields| fields.contains_key("role")) {
            Some(fields) => match role(&place, fields) {
                Ok(role) => role == Role::User,
                Err(problem) => return self.problems.push(problem),
            },
            None => false,
        };
        let content = &message["content"];
        let is_picture = |block: &Value| text_of(block).is_none() && !is_result(&block);
        if !is_users || !is_first && (content.is_string() || !blocks(message).all(is_picture)) {
            self.is_last = false;
            return;
        }
        if !is_first && is_empty(content) {
            return self.problems.push(format!("{place}: it has no content"));
        }
        self.texts.extend(content.as_str().map(str::to_owned));
        for block in blocks(message).filter(|block| !is_result(block) && !is_cache_point(block)) {
            match text_of(block) {
                Some(text) => {
                    self.texts.push(text.to_owned());
                    let cited = ["annotations", "citations"].into_iter();
                    let cited = cited.filter(|name| !is_empty(&block[name]));
                    self.read.unread.extend(cited.map(|name| format!("{place}: {name}")));
                }
                None => self.picture(place.clone(), block),
            }
        }
        let fields = message.as_object().into_iter().flatten().filter(|(_, value)| !is_empty(value));
        let names = fields.map(|(name, _)| name.as_str());
        let unread = names.filter(|name| !["role", "content"].contains(name) && !METADATA.contains(name));
        self.read.unread.extend(unread.map(|name| format!("{place}: {name}")));
    }

    fn picture(&mut self, place: String, block: &Value) {
        let mut reader = MessageReader::new(place.clone(), Role::User, self.key);
        reader.block(block);
        if let Some(picture) = reader.picture.take() {
            return self.read.pictures.push(picture);
        }
        let (.., mut problems) = reader.finish();
        if problems.is_empty() {
            let words =
                "a recipe takes text and pictures (PNG, JPEG, GIF or WebP in the request) as its question";
            problems.push(format!("{place}: {words}"));
        }
        self.problems.append(&mut problems);
    }
}

/// Whether a message is the user's and says something.
fn asks(message: &Value) -> bool {
    let content = message["content"].as_str();
    let mut texts = content.into_iter().chain(blocks(message).filter_map(text_of));
    message["role"] == "user" && texts.any(|text| !text.trim().is_empty())
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    message["content"].as_array().into_iter().flatten()
}

fn text_of(block: &Value) -> Option<&str> {
    let is_text = block
        .get("type")
        .is_none_or(|kind| matches!(kind.as_str(), Some("text" | "input_text" | "output_text")));
    block["text"].as_str().filter(|_| is_text)
}

/// Whether a block holds the result of a call, in Anthropic's form or that of Bedrock's `Converse`.
fn is_result(block: &&Value) -> bool {
    block["type"] == "tool_result" || block.get("toolResult").is_some()
}
