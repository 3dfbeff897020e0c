//! The kinds of providers and their names. Knows no server.

use serde::{Deserialize, Serialize};

/// The kind of server that answers for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Any server that speaks OpenAI's chat completions: OpenAI, vLLM, llama.cpp, Ollama, Kimi …
    OpenAi,
    /// Any server that speaks Anthropic's Messages API: Anthropic, Amazon Bedrock …
    Anthropic,
    /// Amazon Bedrock's `InvokeModel`, for Titan embeddings.
    Bedrock,
    /// The model inside Larder.
    Embedded,
    /// Recorded replies in a folder.
    Replay,
}

impl Provider {
    /// Every provider with its name in `larder.toml`.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("openai", Self::OpenAi),
        ("anthropic", Self::Anthropic),
        ("bedrock", Self::Bedrock),
        ("embedded", Self::Embedded),
        ("replay", Self::Replay),
    ];

    /// The name in `larder.toml`.
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(_, provider)| *provider == self).map_or("", |(name, _)| name)
    }

    /// Whether the provider is reached over HTTP.
    pub const fn is_remote(self) -> bool {
        matches!(self, Self::OpenAi | Self::Anthropic | Self::Bedrock)
    }
}
