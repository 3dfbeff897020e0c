//! What a provider adds around the texts of a request: message, tool and schema markers. Knows messages and counts;
//! the providers' wire formats are elsewhere.

use serde_json::Value;

use super::{Counter, Pictures};
use crate::message::{Content, Message, Role, ToolCall, ToolDef};

/// Tokens that a family of providers adds to the texts of a request.
///
/// Names, ids, arguments, descriptions and schemas are counted as text; this is the markup around them. Where a
/// provider renders tools and schemas more compactly than JSON, the JSON is the upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    /// Around each message, not counting the name of its role.
    pub per_message: usize,
    /// To prime the reply.
    pub priming: usize,
    /// Around each tool call in an assistant message.
    pub per_call: usize,
    /// Once per request that has tools.
    pub tools: usize,
    /// Around each tool's definition.
    pub per_tool: usize,
    /// Around the response schema.
    pub schema: usize,
    /// The cost of pictures in tokens.
    pub pictures: Pictures,
}

impl Framing {
    /// OpenAI chat: 3 tokens per message and 3 to prime the reply, as measured in OpenAI's cookbook. Small models
    /// charge more for pictures.
    pub const OPENAI: Self = Self {
        per_message: 3,
        priming: 3,
        per_call: 8,
        tools: 16,
        per_tool: 19,
        schema: 24,
        pictures: Pictures::OPENAI,
    };
    /// Anthropic messages: the system text that accompanies tools is documented at up to 530 tokens.
    pub const ANTHROPIC: Self = Self {
        per_message: 5,
        priming: 3,
        per_call: 16,
        tools: 530,
        per_tool: 16,
        schema: 32,
        pictures: Pictures::ANTHROPIC,
    };
    /// Open models with a ChatML-like template: `<|im_start|>`, role, line break, text, `<|im_end|>`, line break.
    pub const CHATML: Self = Self {
        per_message: 4,
        priming: 4,
        per_call: 16,
        tools: 128,
        per_tool: 8,
        schema: 32,
        pictures: Pictures::AtMost(2_048),
    };
    /// ChatML-like templates with each marker charged by its bytes, for models whose tokenizer is not known.
    pub const BYTES: Self = Self {
        per_message: 40,
        priming: 32,
        per_call: 64,
        tools: 640,
        per_tool: 32,
        schema: 128,
        pictures: Pictures::AtMost(4_784),
    };
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

impl Counter {
    /// The framing that this counter's family of providers adds.
    pub fn framing(&self) -> Framing {
        self.settings.framing
    }

    /// Tokens to charge for a whole request: framed messages, tool definitions, and the response schema. Tools and
    /// schema are counted as compact JSON.
    pub fn count_messages(&self, messages: &[Message], tools: &[ToolDef], schema: Option<&Value>) -> usize {
        let framing = self.framing();
        let messages: usize = messages.iter().map(|message| self.count_message(message)).sum();
        let tools = match tools {
            [] => 0,
            tools => framing.tools + tools.iter().map(|tool| self.count_tool(tool)).sum::<usize>(),
        };
        let schema = schema.map_or(0, |schema| framing.schema + self.count(&schema.to_string()));
        framing.priming + messages + tools + schema
    }

    /// Tokens to charge for one message within a request.
    pub fn count_message(&self, message: &Message) -> usize {
        let framing = self.framing();
        let content = message.content.iter().map(|content| match content {
            Content::Text { text } => self.count(text),
            Content::Image { data, .. } => framing.pictures.tokens(data),
        });
        let call = |call: &ToolCall| {
            framing.per_call + self.count(&call.id) + self.count(&call.name) + self.count(&call.arguments)
        };
        framing.per_message
            + self.count(message.role.word())
            + content.sum::<usize>()
            + message.tool_calls.iter().map(call).sum::<usize>()
            + message.tool_call_id.as_deref().map_or(0, |id| self.count(id))
    }

    fn count_tool(&self, tool: &ToolDef) -> usize {
        self.framing().per_tool
            + self.count(&tool.name)
            + self.count(&tool.description)
            + self.count(&tool.parameters.to_string())
    }
}
