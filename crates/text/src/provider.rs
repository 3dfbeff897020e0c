//! The providers that models come from, with one description for each. Plain data: connects to nothing.
//!
//! To add a provider, start here: once its variant and description exist, the compiler reports every other place to
//! update.

use serde::{Deserialize, Serialize};

/// The kind of server, or of code in this process, that serves a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Servers that implement OpenAI's chat completions: OpenAI, vLLM, llama.cpp, Ollama, Kimi …
    OpenAi,
    /// Servers that implement Anthropic's Messages API: Anthropic, Amazon Bedrock …
    Anthropic,
    /// Amazon Bedrock: `Converse`, and `InvokeModel` for Titan embeddings.
    Bedrock,
    /// The model that runs inside Larder.
    Embedded,
    /// Recorded replies in a folder.
    Replay,
}

/// Static facts about a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderInfo {
    /// Its name in `larder.toml`.
    pub name: &'static str,
    /// Its name in traces, as OpenTelemetry's conventions list it.
    pub telemetry_name: &'static str,
    /// Whether it has embedding models.
    pub embeds: bool,
    /// Whether its models require `folder` in the model table; other providers reject it.
    pub needs_folder: bool,
    /// How its servers are reached; `None` for models inside this process.
    pub server: Option<ServerInfo>,
}

/// How the servers of a provider are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerInfo {
    /// The provider's own address, used unless the model table sets another. `${NAME:-default}` is an environment
    /// variable.
    pub base_url: &'static str,
    /// The prefix of the gateway's paths that base URLs of this provider already contain.
    pub path_in_base_url: &'static str,
    /// The header that carries the key. As `authorization`, the key is a bearer token.
    pub key_header: &'static str,
    /// The environment variable that holds the key for the provider's own servers.
    pub key_env: &'static str,
    /// Headers that every request must carry.
    pub headers: &'static [(&'static str, &'static str)],
    /// The start of the paths, outside of `/v1/`, under which the gateway forwards every request to this provider.
    pub gateway_prefix: Option<&'static str>,
    /// How gateway clients reach its chat models: the name of the format and the path. `None` if the gateway
    /// forwards no chat requests to it.
    pub gateway_format: Option<(&'static str, &'static str)>,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 5] = [Self::OpenAi, Self::Anthropic, Self::Bedrock, Self::Embedded, Self::Replay];

    /// The description of a provider.
    pub const fn info(self) -> ProviderInfo {
        match self {
            Self::OpenAi => ProviderInfo {
                name: "openai",
                telemetry_name: "openai",
                embeds: true,
                needs_folder: false,
                server: Some(ServerInfo {
                    base_url: "https://api.openai.com/v1",
                    path_in_base_url: "v1/",
                    key_header: "authorization",
                    key_env: "OPENAI_API_KEY",
                    headers: &[],
                    gateway_prefix: None,
                    gateway_format: Some(("OpenAI's formats", "/v1/chat/completions")),
                }),
            },
            Self::Anthropic => ProviderInfo {
                name: "anthropic",
                telemetry_name: "anthropic",
                embeds: false,
                needs_folder: false,
                server: Some(ServerInfo {
                    base_url: "https://api.anthropic.com",
                    path_in_base_url: "",
                    key_header: "x-api-key",
                    key_env: "ANTHROPIC_API_KEY",
                    headers: &[("anthropic-version", "2023-06-01")],
                    gateway_prefix: None,
                    gateway_format: Some(("Anthropic's format", "/v1/messages")),
                }),
            },
            Self::Bedrock => ProviderInfo {
                name: "bedrock",
                telemetry_name: "aws.bedrock",
                embeds: true,
                needs_folder: false,
                server: Some(ServerInfo {
                    base_url: "https://bedrock-runtime.${AWS_REGION:-us-east-1}.amazonaws.com",
                    path_in_base_url: "",
                    key_header: "authorization",
                    key_env: "AWS_BEARER_TOKEN_BEDROCK",
                    headers: &[],
                    gateway_prefix: Some("/model/"),
                    gateway_format: Some(("Bedrock's formats", "/model/ID/converse")),
                }),
            },
            Self::Embedded => ProviderInfo {
                name: "embedded",
                telemetry_name: "larder",
                embeds: true,
                needs_folder: false,
                server: None,
            },
            Self::Replay => ProviderInfo {
                name: "replay",
                telemetry_name: "larder",
                embeds: false,
                needs_folder: true,
                server: None,
            },
        }
    }

    /// The name in `larder.toml`.
    pub const fn as_str(self) -> &'static str {
        self.info().name
    }

    /// The provider with this name in `larder.toml`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.as_str() == name)
    }

    /// Whether the provider is reached over HTTP.
    pub const fn is_remote(self) -> bool {
        self.info().server.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_is_listed_once_under_its_serialized_name() {
        for (at, provider) in Provider::ALL.into_iter().enumerate() {
            assert_eq!(provider as usize, at);
            assert_eq!(serde_json::to_value(provider).ok(), Some(provider.as_str().into()));
            assert_eq!(Provider::from_name(provider.as_str()), Some(provider));
        }
    }
}
