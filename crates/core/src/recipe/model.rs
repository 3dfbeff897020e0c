//! The checked recipe: the contract of one model call, as everything behind the check may rely on it.
//!
//! Owns the types only. Knows nothing of YAML, files or how a recipe is checked; a value of these types has passed
//! every check, so users need not repeat one.

use std::collections::{BTreeMap, BTreeSet};

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use larder_condense::ContentType;
use larder_text::Mode;
use larder_text::hash::ContentHash;
use larder_text::message::Role;

use crate::pack::{Cap, Slot};

/// Tokens of `response_reserve` that a budget should leave (R0-11.2); less is legal but warned about (C16).
pub const ADVISED_RESERVE: usize = 200;
/// Retries after an answer that failed its gates, when the recipe does not say (R0-14.4).
pub const DEFAULT_MAX_RETRIES: u32 = 2;
/// Milliseconds one call may take, when the recipe does not say (R0-14.5).
pub const DEFAULT_TIMEOUT_MS: u64 = 30_000;
/// The highest section number of `context.md` (R0-11.19).
pub const LAST_SECTION: u8 = 6;
/// Priority of a document or slot that states none; the scale is 0 to 100, higher is kept longer (R2-8.7).
pub const DEFAULT_PRIORITY: u8 = 50;

/// One checked recipe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recipe {
    /// The unique identifier, as logs print it (C73).
    pub name: String,
    /// The folder under `recipes/`.
    pub category: String,
    /// Further names that load this recipe: the file stem when it differs from `name`, and those it declares.
    pub aliases: Vec<String>,
    /// Changes with any byte of the recipe file and any character of a prompt it uses; line ends of prompts count as LF.
    pub version: ContentHash,
    /// What the recipe is for.
    pub description: String,
    /// The part the recipe plays in a flow, such as `reflection`; code addresses phases by it (C1).
    pub role: Option<String>,
    /// The harm a wrong answer can do.
    pub risk: Risk,
    /// The model layer.
    pub layer: Layer,
    /// Tokens for what.
    pub budget: TokenBudget,
    /// The system prompt, in order.
    pub system: Vec<PromptTemplate>,
    /// Prompts that templates may include, by name; holds what `system` and `variants` reach.
    pub includes: BTreeMap<String, String>,
    /// The documents it reads, in order.
    pub input_docs: Vec<InputDoc>,
    /// The sections of `context.md` it reads, ascending. Section 0 is always read as well.
    pub input_sections: Vec<u8>,
    /// Name → template of the value that prompts see.
    pub variables: BTreeMap<String, String>,
    /// Names that `variables` refers to and the caller has to supply.
    pub inputs: BTreeSet<String>,
    /// The shape of the answer.
    pub output: OutputSpec,
    /// When an answer is good enough.
    pub gates: Gates,
    /// What to do when the documents do not fit.
    pub compression: Compression,
    /// Chat or code only; `None` serves both.
    pub mode: Option<Mode>,
    /// Tools that the prompt may describe.
    pub tools: Vec<String>,
    /// Whether the prompt contains the user's query; false only in category `compress` (C54).
    pub needs_query: bool,
    /// Budgeted regions in prompt order; empty when `budget`, `input_docs` and `input_sections` say it all.
    pub slots: Vec<SlotSpec>,
    /// Stage → its prompts; empty when the recipe has no stages.
    pub variants: BTreeMap<String, Variant>,
    /// The stage for any state that `variants` does not name (C64, C65); set exactly when there are variants.
    pub default_variant: Option<String>,
}

impl Recipe {
    /// `category/name`, the recipe's full name.
    pub fn id(&self) -> String {
        format!("{}/{}", self.category, self.name)
    }

    /// The variant for `state`, or the default one when the state has none of its own (C65); `None` for a
    /// recipe without variants.
    pub fn variant(&self, state: Option<&str>) -> Option<(&str, &Variant)> {
        state
            .and_then(|state| self.variants.get_key_value(state))
            .or_else(|| self.variants.get_key_value(self.default_variant.as_deref()?))
            .map(|(name, variant)| (name.as_str(), variant))
    }
}

/// The role a model plays. The discriminants are the numbers of the layers (R0-3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Layer {
    /// Fast classification and gating.
    Reflex = 0,
    /// Condensing.
    Nerves = 1,
    /// Planning and reasoning.
    Mind = 2,
    /// What the user reads.
    Voice = 4,
    /// Pictures.
    Eyes = 6,
}

impl Layer {
    /// Every layer, with the name recipes use.
    pub const ALL: [(&'static str, Self); 5] = [
        ("REFLEX", Self::Reflex),
        ("NERVES", Self::Nerves),
        ("MIND", Self::Mind),
        ("VOICE", Self::Voice),
        ("EYES", Self::Eyes),
    ];

    /// The name recipes use, such as `MIND`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reflex => "REFLEX",
            Self::Nerves => "NERVES",
            Self::Mind => "MIND",
            Self::Voice => "VOICE",
            Self::Eyes => "EYES",
        }
    }
}

/// The harm a wrong answer can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// A wrong answer is noticed or costs little.
    #[default]
    Low,
    /// A wrong answer costs work.
    Medium,
    /// A wrong answer can do lasting harm.
    High,
}

/// Token allotments of one call. `prompt + input + output + response_reserve ≤ total` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBudget {
    /// The hard limit of the whole call.
    pub total: usize,
    /// For the system prompt.
    pub prompt: usize,
    /// For documents, sections and the query. A soft allotment: unused `prompt` may be lent to it (C18).
    pub input: usize,
    /// Tokens asked from the model at most.
    pub output: usize,
    /// Safety for framing; 0 when the recipe does not say (C15).
    pub response_reserve: usize,
}

/// One Markdown template of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptTemplate {
    /// Path below `prompts/` without extension, such as `pipeline/planner/common`; `category/name#system_prompt` for
    /// a prompt written inside the recipe.
    pub name: String,
    /// The template.
    pub text: String,
}

/// A document that the recipe reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InputDoc {
    /// File name or kind, such as `context.md` or `source_files`; a kind may be supplied several times.
    pub name: String,
    /// Whether the call is refused without it.
    pub required: bool,
    /// 0 to 100; lower loses first.
    pub priority: u8,
    /// What it is; detected from the text when absent.
    pub content_type: Option<ContentType>,
    /// Stands byte for byte, or the call is refused.
    pub protect: bool,
    /// Stages in which it is read; empty means all.
    pub variants: Vec<String>,
    /// Read only while its slot has more than this many tokens left.
    pub min_remaining: usize,
}

/// How an answer is written (C109).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    /// One JSON value.
    Json,
    /// One YAML document.
    Yaml,
    /// Markdown.
    Markdown,
    /// Plain text.
    Text,
    /// Declared tags, and text after them.
    Tagged,
}

/// The shape of the answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutputSpec {
    /// How it is written.
    pub format: OutputFormat,
    /// JSON Schema of the parsed answer; always there for [`OutputFormat::Json`] (C70).
    pub schema: Option<serde_json::Value>,
    /// Declared tags; non-empty exactly for [`OutputFormat::Tagged`].
    pub tags: Vec<TagSpec>,
}

/// A declared tag of a tagged answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TagSpec {
    /// The name between `<` and `>`.
    pub name: String,
    /// Whether an answer without it is invalid.
    pub required: bool,
    /// Whether it may appear more than once.
    pub multiple: bool,
    /// Whether its content is kept from the user.
    pub hidden: bool,
    /// JSON Schema of its content: of the text when its type is `string`, otherwise of its `Field: value` lines.
    pub schema: Option<serde_json::Value>,
}

/// When an answer is good enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gates {
    /// Validate against the schema.
    pub schema_validation: bool,
    /// The least `confidence` of an answer, 0 to 1.
    pub confidence_threshold: Option<f64>,
    /// The answer must cite parts of the pack.
    pub evidence_required: bool,
    /// Retries after a failed gate.
    pub max_retries: u32,
    /// Milliseconds one call may take.
    pub timeout_ms: u64,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            schema_validation: true,
            confidence_threshold: None,
            evidence_required: false,
            max_retries: DEFAULT_MAX_RETRIES,
            timeout_ms: DEFAULT_TIMEOUT_MS,
        }
    }
}

/// What to do when the documents do not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compression {
    /// Whether a model may condense; without it only the deterministic condensers do.
    pub enabled: bool,
    /// Always [`Layer::Nerves`].
    pub layer: Layer,
    /// What is never condensed: see [`super::PRESERVE`].
    pub preserve: Vec<String>,
}

impl Default for Compression {
    fn default() -> Self {
        Self { enabled: true, layer: Layer::Nerves, preserve: Vec::new() }
    }
}

/// What fills a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotSource {
    /// The recipe's own prompt.
    Prompt,
    /// The prompt of the current stage.
    Variant,
    /// The messages of the conversation.
    Messages,
    /// The documents that `docs` names.
    Documents,
}

/// What may be done to a slot that exceeds its cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverflowPolicy {
    /// Make parts smaller.
    Condense,
    /// Replace parts by pointers.
    Point,
    /// Leave out the oldest parts.
    DropOldest,
    /// Cut at a section or message boundary.
    TruncateAtBoundary,
    /// Refuse the call.
    Refuse,
}

/// A slot of the prompt and what fills it.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotSpec {
    /// The slot as the packer takes it.
    pub slot: Slot,
    /// The role of its text in the request; messages of a conversation keep their own.
    pub role: Role,
    /// What fills it.
    pub source: SlotSource,
    /// The policies as the recipe lists them, from which `slot.overflow` follows; never empty.
    pub overflow: Vec<OverflowPolicy>,
    /// Percent of the cap at which condensing is forced (C19).
    pub hard: u8,
    /// The documents it holds, in order.
    pub docs: Vec<String>,
}

/// As the recipe states it, in percent.
impl Serialize for SlotSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Slot { name, cap, floor, priority, soft, protect_last, .. } = &self.slot;
        let percent = |share: f64| (share * 100.0).round() as u8;
        let cap = match *cap {
            Cap::Tokens(tokens) => serde_json::json!({ "tokens": tokens }),
            Cap::Share(share) => serde_json::json!({ "share": percent(share) }),
            Cap::Flexible => "flexible".into(),
        };
        let mut slot = serializer.serialize_struct("SlotSpec", 11)?;
        slot.serialize_field("name", &**name)?;
        slot.serialize_field("role", &self.role)?;
        slot.serialize_field("source", &self.source)?;
        slot.serialize_field("cap", &cap)?;
        slot.serialize_field("floor", floor)?;
        slot.serialize_field("overflow", &self.overflow)?;
        slot.serialize_field("soft", &soft.map(percent))?;
        slot.serialize_field("hard", &self.hard)?;
        slot.serialize_field("protect_last", protect_last)?;
        slot.serialize_field("docs", &self.docs)?;
        slot.serialize_field("priority", priority)?;
        slot.end()
    }
}

/// The prompts of one stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Variant {
    /// What the stage is for.
    pub description: Option<String>,
    /// Its part of the system prompt, after the recipe's own.
    pub system: Vec<PromptTemplate>,
}
