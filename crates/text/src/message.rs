//! Messages, tools and calls as providers understand them, independent of any provider's wire format.

use crate::hash::ContentHash;
use crate::pointer::Pointer;
use serde::{Deserialize, Serialize};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions from the application.
    System,
    /// The user, or text gathered for the model on the user's behalf.
    User,
    /// The model, including its tool calls.
    Assistant,
    /// The result of a tool call.
    Tool,
}

impl Role {
    /// The role's name in records and requests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One message of a prompt or a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The author of the message.
    pub role: Role,
    /// The content blocks, in order.
    pub content: Vec<Content>,
    /// Calls that an assistant message asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Content {
    /// Text.
    Text {
        /// The text, as the model reads it.
        text: String,
    },
    /// A picture, for vision models (layer EYES).
    Image {
        /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
        media_type: String,
        /// The file, base64-encoded.
        data: String,
    },
}

impl Message {
    /// Creates a message with one text block.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            content: vec![Content::Text { text: text.into() }],
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }

    /// All text of the message, joined without separators.
    pub fn joined_text(&self) -> String {
        self.content
            .iter()
            .filter_map(|content| match content {
                Content::Text { text } => Some(text.as_str()),
                Content::Image { .. } => None,
            })
            .collect()
    }
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id for the call, which the result refers to.
    pub id: String,
    /// The name of the called tool.
    pub name: String,
    /// The arguments as JSON text, exactly as the model wrote them.
    pub arguments: String,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDef {
    /// The name by which the model calls the tool.
    pub name: String,
    /// What the tool does, written for the model.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub parameters: serde_json::Value,
}

/// One message of a request's history, as a transcript stores it.
#[derive(Debug, Clone, Copy)]
pub struct TranscriptMessage<'a> {
    /// Identifies the message across requests: the hash of its stable content. It excludes what clients move from
    /// message to message, such as cache breakpoints.
    pub identity: ContentHash,
    /// The author.
    pub role: &'a str,
    /// The message as the client sent it.
    pub raw: &'a [u8],
    /// The message as forwarded upstream, where that differs; empty if it was left out.
    pub sent: Option<&'a [u8]>,
    /// The pointers in the message as forwarded; each must resolve.
    pub pointers: &'a [Pointer],
}

impl TranscriptMessage<'_> {
    /// For each message the hash of the history up to it.
    pub fn histories(messages: &[Self]) -> Vec<[u8; 32]> {
        let mut history = blake3::Hasher::new();
        let extended = messages.iter().map(|message| {
            history.update(message.identity.as_bytes());
            *history.finalize().as_bytes()
        });
        extended.collect()
    }

    /// The hash for the form of an unchanged message.
    pub fn unchanged() -> [u8; 32] {
        *blake3::hash(b"").as_bytes()
    }

    /// The hash of the form in which it is forwarded; `None` if that is unchanged.
    pub fn form(&self) -> Option<[u8; 32]> {
        if self.sent.is_none() && self.pointers.is_empty() {
            return None;
        }
        let mut form = blake3::Hasher::new();
        form.update(blake3::hash(self.sent.unwrap_or_default()).as_bytes());
        for pointer in self.pointers {
            form.update(pointer.to_string().as_bytes()).update(b"\n");
        }
        Some(*form.finalize().as_bytes())
    }
}
