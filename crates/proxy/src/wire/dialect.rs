//! The names of the wire formats. Knows nothing of what they look like, so every module here may import it.

use serde::{Deserialize, Serialize};

/// What a body is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiDialect {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages; a request to count tokens has the same body.
    Messages,
    /// Amazon Bedrock's `Converse` and `ConverseStream`.
    Converse,
    /// Anthropic's messages as Amazon Bedrock's `InvokeModel` takes them.
    Invoke,
}

impl ApiDialect {
    /// Every dialect, in the order in which they are listed.
    pub const ALL: [Self; 5] = [Self::Chat, Self::Responses, Self::Messages, Self::Converse, Self::Invoke];
}

// A variant that is missing in `ALL` does not compile, as long as `Invoke` stays the last one.
const _: () = assert!(ApiDialect::ALL.len() == ApiDialect::Invoke as usize + 1);
