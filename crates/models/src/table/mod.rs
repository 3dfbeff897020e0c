//! The model table: the model of each layer, and the metadata of each model (C55). Owns its types and the built-in
//! tables; `read` parses it. Connects to nothing.

mod problem;
mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use larder_text::{Layer, Mode};
use serde::{Deserialize, Serialize};

pub use larder_text::provider::{Provider, ProviderInfo, ServerInfo};
pub use problem::{Problems, TableProblem, TableProblemCode};

use crate::catalogue::Catalogue;
use crate::price::Prices;

/// The default timeout of a call in milliseconds, if neither recipe nor table sets one (R0-14.5).
pub const DEFAULT_TIMEOUT_MS: u64 = 30_000;
/// The default number of retries of a retryable call.
pub const DEFAULT_RETRIES: u32 = 2;

/// The built-in tables, by name (C55). They are data: nothing else in Larder names a model.
pub const SHIPPED: [(&str, &str); 5] = [
    ("embedded", include_str!("../../cookbook/models/embedded.toml")),
    ("five-model", include_str!("../../cookbook/models/five-model.toml")),
    ("single-mind", include_str!("../../cookbook/models/single-mind.toml")),
    ("coding", include_str!("../../cookbook/models/coding.toml")),
    ("conversation", include_str!("../../cookbook/models/conversation.toml")),
];
/// The table used if `larder.toml` has none: everything runs in process, without a key.
pub const DEFAULT_TABLE: &str = "embedded";

/// What a model can do, or needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Holds replies to a JSON Schema.
    JsonSchema,
    /// Calls tools.
    Tools,
    /// Sees pictures.
    Vision,
    /// Caches prompt prefixes that requests mark.
    Cache,
    /// Streams replies.
    Streaming,
    /// Makes vectors of texts; it cannot chat.
    Embedding,
    /// Stays loaded and serves several calls at once, so background work does not queue behind others (C57).
    AlwaysHot,
    /// Takes a budget for hidden reasoning (C63).
    Thinking,
    /// Wants the limit as `max_completion_tokens`, as OpenAI's newer models do, rather than `max_tokens`.
    MaxCompletionTokens,
}

impl Capability {
    const NAMES: [(&'static str, Self); 9] = [
        ("json_schema", Self::JsonSchema),
        ("tools", Self::Tools),
        ("vision", Self::Vision),
        ("cache", Self::Cache),
        ("streaming", Self::Streaming),
        ("embedding", Self::Embedding),
        ("always_hot", Self::AlwaysHot),
        ("thinking", Self::Thinking),
        ("max_completion_tokens", Self::MaxCompletionTokens),
    ];
}

impl std::fmt::Display for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            Self::NAMES.iter().find(|(_, capability)| capability == self).map_or("", |(name, _)| name),
        )
    }
}

/// One model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelSpec {
    /// Who serves it.
    pub provider: Provider,
    /// The server's address; `None` is the provider's own. `${NAME:-default}` is an environment variable.
    pub base_url: Option<String>,
    /// The provider's id of the model.
    pub id: String,
    /// Its tokenizer, as the token registry names it; `None` leaves it to the registry to know the id.
    pub tokenizer: Option<String>,
    /// Tokens of prompt and reply together.
    pub window: usize,
    /// Whether settings state the window, of the model or of its entry in the catalogue.
    #[serde(skip)]
    pub states_window: bool,
    /// Tokens of the prompt, where the provider limits them apart from the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_limit: Option<usize>,
    /// Tokens a reply may have at most; 0 for embedding models.
    pub max_output: u32,
    /// Sampling temperature unless the layer sets one; `None` leaves it to the provider.
    pub temperature: Option<f32>,
    /// Its token prices; `None` if unknown.
    pub prices: Option<Prices>,
    /// What it can do.
    pub capabilities: BTreeSet<Capability>,
    /// Time for one call where the recipe states none, or, if it is longer than the default, less.
    pub timeout: Duration,
    /// Number of retries of a retryable call.
    pub retries: u32,
    /// The model to use if this one is unavailable; prompts are packed again for its window (C66).
    pub fallback: Option<String>,
    /// The environment variable with the key.
    pub api_key_env: Option<String>,
    /// The file with the key, relative to `larder.toml`.
    pub api_key_file: Option<String>,
    /// The header that carries the key, if not the provider's usual one.
    pub key_header: Option<String>,
    /// The profile whose AWS credentials sign requests (provider `bedrock`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_profile: Option<String>,
    /// Length of the vectors of an embedding model.
    pub dimensions: Option<usize>,
    /// Folder of recorded replies, relative to `larder.toml` (provider `replay`).
    pub folder: Option<String>,
    /// Size as its makers state it; information only (C58).
    pub size: Option<String>,
    /// Fields added to every request body.
    pub extra_body: serde_json::Map<String, serde_json::Value>,
}

impl ModelSpec {
    /// Whether the model has a capability.
    pub fn can(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }
}

/// What a layer is bound to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Binding {
    /// The model.
    pub model: String,
    /// The model for recipes of mode `code` (C56).
    pub code_model: Option<String>,
    /// The model used if `use_alternative` is on (R4-1.14).
    pub alternative: Option<String>,
    /// Sampling temperature of the role (R1-2.11 to R1-2.14).
    pub temperature: Option<f32>,
    /// Tokens of a reply that the model may spend on hidden reasoning, if it has the capability `thinking` (C63).
    pub thinking_budget: Option<u32>,
    /// How fast answers should come; measured, not enforced (C71).
    pub target: Option<Duration>,
}

/// A layer's model, found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResolvedModel<'a> {
    /// The model's name in the table.
    pub name: &'a str,
    /// The model.
    pub spec: &'a ModelSpec,
    /// Sampling temperature; `None` leaves it to the provider.
    pub temperature: Option<f32>,
    /// Tokens of a reply that it may spend on hidden reasoning.
    pub thinking_budget: Option<u32>,
    /// How fast answers should come.
    pub target: Option<Duration>,
}

/// Layers and models. Every name in a binding or fallback is a model of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelTable {
    layers: BTreeMap<Layer, Binding>,
    models: BTreeMap<String, ModelSpec>,
    use_alternative: bool,
    /// What is known about models that no setting describes.
    #[serde(skip)]
    catalogue: Catalogue,
}

impl ModelTable {
    /// Parses the `[models]` table of a `larder.toml`; other tables are ignored. Without one, this is
    /// [`DEFAULT_TABLE`].
    ///
    /// # Errors
    /// Every problem of the table, in the order of the file.
    pub fn parse(larder_toml: &str) -> Result<Self, Problems> {
        Self::parse_with(larder_toml, &Catalogue::built_in())
    }

    /// As [`parse`](Self::parse), with what is known about models from this catalogue.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with(larder_toml: &str, catalogue: &Catalogue) -> Result<Self, Problems> {
        read::table(larder_toml, catalogue)
    }

    /// A table that ships, by its name in [`SHIPPED`].
    pub fn shipped(name: &str) -> Option<Self> {
        Self::shipped_with(name, &Catalogue::built_in())
    }

    fn shipped_with(name: &str, catalogue: &Catalogue) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(shipped, _)| *shipped == name)?;
        Self::parse_with(text, catalogue).ok()
    }

    /// The model of `layer` for recipes of `mode`; `None` if no model is bound to the layer.
    pub fn resolve(&self, layer: Layer, mode: Option<Mode>) -> Option<ResolvedModel<'_>> {
        let binding = self.layers.get(&layer)?;
        let code = binding.code_model.as_ref().filter(|_| mode == Some(Mode::Code));
        let alternative = binding.alternative.as_ref().filter(|_| self.use_alternative);
        let name = alternative.or(code).unwrap_or(&binding.model);
        let (name, spec) = self.models.get_key_value(name)?;
        Some(ResolvedModel {
            name,
            spec,
            temperature: binding.temperature.or(spec.temperature),
            thinking_budget: binding.thinking_budget,
            target: binding.target,
        })
    }

    /// A model by its name in the table.
    pub fn model(&self, name: &str) -> Option<&ModelSpec> {
        self.models.get(name)
    }

    /// What is known about models, in this table or not, by the ids that providers use.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// All models, by name.
    pub fn models(&self) -> impl Iterator<Item = (&str, &ModelSpec)> {
        self.models.iter().map(|(name, spec)| (name.as_str(), spec))
    }

    /// All bound layers, by number.
    pub fn layers(&self) -> impl Iterator<Item = (Layer, &Binding)> {
        self.layers.iter().map(|(layer, binding)| (*layer, binding))
    }

    /// Whether layers use their alternative models (R4-1.14).
    pub fn uses_alternative(&self) -> bool {
        self.use_alternative
    }

    /// Turns the alternative models on or off, as a setting from outside the file may (C86).
    pub fn set_use_alternative(&mut self, on: bool) {
        self.use_alternative = on;
    }
}

#[cfg(test)]
#[path = "../table_tests.rs"]
mod tests;
