//! The checked recipe: the contract of one model call, on which everything after the check relies.
//!
//! Owns the types only. Knows nothing of YAML, files or how a recipe is checked; values of these types have passed
//! every check, so users need not repeat any.

use std::collections::{BTreeMap, BTreeSet};

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use larder_condense::ContentType;
use larder_text::hash::ContentHash;
use larder_text::message::Role;
use larder_text::{Layer, Mode};

use crate::pack::{Cap, Slot};

/// Tokens of `response_reserve` that a budget should leave (R0-11.2); less is legal but warned about (C16).
pub const ADVISED_RESERVE: usize = 200;
/// Default number of retries after an answer that failed its gates (R0-14.4).
pub const DEFAULT_MAX_RETRIES: u32 = 2;
/// The highest section number of `context.md` (R0-11.19).
pub const LAST_SECTION: u8 = 6;
/// Default priority of a document or slot; on the scale of 0 to 100, higher is kept longer (R2-8.7).
pub const DEFAULT_PRIORITY: u8 = 50;

/// One checked recipe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recipe {
    /// The unique identifier, as logs print it (C73).
    pub name: String,
    /// The folder under `recipes/`.
    pub category: String,
    /// Other names that load this recipe: the file stem if it differs from `name`, and declared aliases.
    pub aliases: Vec<String>,
    /// Changes with any byte of the recipe file and any character of a prompt it uses; line ends in prompts count as
    /// LF.
    pub version: ContentHash,
    /// What the recipe is for.
    pub description: String,
    /// The recipe's part in a workflow, such as `reflection`; code addresses phases by it.
    pub role: Option<String>,
    /// The harm that a wrong answer can do.
    pub risk: Risk,
    /// The model layer.
    pub layer: Layer,
    /// The preset of the router that replaces the layer by that of a tier.
    pub router: Option<String>,
    /// The token allotments.
    pub budget: TokenBudget,
    /// The system prompt, in order.
    pub system: Vec<PromptTemplate>,
    /// Prompts that templates may include, by name: those reachable from `system` and `variants`.
    pub includes: BTreeMap<String, String>,
    /// The documents it reads, in order.
    pub input_docs: Vec<InputDoc>,
    /// The sections of `context.md` it reads, ascending. Section 0 is always read as well.
    pub input_sections: Vec<u8>,
    /// Name → template of the value that prompts see.
    pub variables: BTreeMap<String, String>,
    /// Names that `variables` refers to and the caller must supply.
    pub inputs: BTreeSet<String>,
    /// The shape of the answer.
    pub output: OutputSpec,
    /// When an answer is good enough.
    pub gates: Gates,
    /// What to do if the documents do not fit.
    pub compression: Compression,
    /// Chat or code only; `None` supports both.
    pub mode: Option<Mode>,
    /// Tools that the prompt may describe.
    pub tools: Vec<String>,
    /// Whether the prompt contains the user's query; false only in category `compress` (C54).
    pub needs_query: bool,
    /// What stands around the query; `None` sends the query alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_format: Option<QueryFormat>,
    /// Slots in prompt order; empty if `budget`, `input_docs` and `input_sections` say everything.
    pub slots: Vec<SlotSpec>,
    /// Caps that the settings give the slots of a recipe without `slots`, by their names in layouts.
    #[serde(skip)]
    pub derived_caps: BTreeMap<String, usize>,
    /// Stage → its prompts; empty if the recipe has no stages.
    pub variants: BTreeMap<String, Variant>,
    /// The variant of a run that names no state (C64, C65); set exactly if there are variants.
    pub default_variant: Option<String>,
}

impl Recipe {
    /// `category/name`, the recipe's full name.
    pub fn id(&self) -> String {
        format!("{}/{}", self.category, self.name)
    }

    /// The variant for `state` in any usual spelling (`error_fixing`, `error-fixing`, `ErrorFixing`), or the default
    /// without a state. `None` if there is no such variant.
    pub fn variant(&self, state: Option<&str>) -> Option<(&str, &Variant)> {
        let found = match state {
            None => self.variants.get_key_value(self.default_variant.as_deref()?),
            Some(state) => {
                let alike = |name: &str| spelled_alike(name, state);
                self.variants
                    .get_key_value(state)
                    .or_else(|| self.variants.iter().find(|(name, _)| alike(name)))
            }
        };
        found.map(|(name, variant)| (name.as_str(), variant))
    }
}

/// Whether two names differ only in case and in what joins their words.
fn spelled_alike(one: &str, other: &str) -> bool {
    let letters = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    letters(one) == letters(other)
}

/// What stands around the query, which itself is sent verbatim (R4-6.11, C105).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueryFormat {
    /// Before it.
    pub before: String,
    /// After it.
    pub after: String,
}

/// The harm that a wrong answer can do.
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

/// Token allotments of one call, with `prompt + input + output + response_reserve ≤ total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBudget {
    /// The hard limit of the whole call.
    pub total: usize,
    /// For the system prompt.
    pub prompt: usize,
    /// For documents, sections and the query. A soft allotment: unused `prompt` tokens may be added to it (C18).
    pub input: usize,
    /// Maximum tokens of the reply.
    pub output: usize,
    /// Reserve for framing; 0 by default (C15).
    pub response_reserve: usize,
}

/// One Markdown template of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptTemplate {
    /// The path under `prompts/` without extension, such as `pipeline/planner/common`; `category/name#system_prompt`
    /// for a prompt inside the recipe.
    pub name: String,
    /// The template.
    pub text: String,
}

/// A document that the recipe reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InputDoc {
    /// A file name or kind, such as `context.md` or `source_files`; a kind may be supplied several times.
    pub name: String,
    /// Whether the call is refused without it.
    pub required: bool,
    /// From 0 to 100; lower is shortened first.
    pub priority: u8,
    /// The content type; detected from the text if absent.
    pub content_type: Option<ContentType>,
    /// Whether it must be included byte for byte, or the call is refused.
    pub protect: bool,
    /// The stages in which it is read; empty means all.
    pub variants: Vec<String>,
    /// Read only while its slot has more than this many tokens left.
    pub min_remaining: usize,
    /// The heading under which it is sent, in a fence; without one, it is sent in tags.
    pub heading: Option<String>,
    /// The line under which it is sent as it is, for text that the caller wrote: what follows it looks the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// The format of an answer.
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
    /// Declared tags, with the reply outside them.
    Tagged,
}

/// The shape of the answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutputSpec {
    /// The format.
    pub format: OutputFormat,
    /// The JSON Schema of the parsed answer; always present for [`OutputFormat::Json`] (C70).
    pub schema: Option<serde_json::Value>,
    /// The declared tags; non-empty exactly for [`OutputFormat::Tagged`].
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
    /// Whether its content is hidden from the user.
    pub hidden: bool,
    /// Whether its content is text of the reply, in its place: the caller of the run reads it no other way.
    #[serde(skip)]
    pub inline: bool,
    /// The JSON Schema of its content: of the text if its type is `string`, otherwise of its `Field: value` lines.
    pub schema: Option<serde_json::Value>,
}

/// When an answer is good enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gates {
    /// Validate against the schema.
    pub schema_validation: bool,
    /// The minimum `confidence` of an answer, 0 to 1.
    pub confidence_threshold: Option<f64>,
    /// Whether the answer must cite parts of the pack.
    pub evidence_required: bool,
    /// Retries after a failed gate.
    pub max_retries: u32,
    /// The timeout of a call in milliseconds; `None` leaves it to the model.
    pub timeout_ms: Option<u64>,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            schema_validation: true,
            confidence_threshold: None,
            evidence_required: false,
            max_retries: DEFAULT_MAX_RETRIES,
            timeout_ms: None,
        }
    }
}

/// What to do if the documents do not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compression {
    /// Whether a model may condense; otherwise only the deterministic condensers run.
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

/// How a slot over its cap may be shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverflowPolicy {
    /// Condense parts.
    Condense,
    /// Replace parts with pointers.
    Point,
    /// Drop the oldest parts.
    DropOldest,
    /// Cut at a section or message boundary.
    TruncateAtBoundary,
    /// Refuse the call.
    Refuse,
}

/// The slots that a prompt has besides those of its recipe, each with one part of the same name.
pub mod own_slots {
    /// The user's query.
    pub const QUERY: &str = "query";
    /// Why the last answer was rejected.
    pub const NOTE: &str = "note";
    /// That parts of the prompt are condensed.
    pub const MARKS: &str = "marks";
    /// How to cite.
    pub const CITING: &str = "citing";
    /// The schema of the answer, where the provider does not enforce it.
    pub const OUTPUT_SCHEMA: &str = "output_schema";
    /// All of them; slots and documents of recipes have other names.
    pub const ALL: [&str; 5] = [QUERY, NOTE, MARKS, CITING, OUTPUT_SCHEMA];
    /// Names of slots that only prompts are in: runs count what is there as the prompt.
    pub const OF_PROMPTS: [&str; 2] = ["system", "agent"];
}

/// A slot of the prompt and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotSpec {
    /// The slot in the packer's form.
    pub slot: Slot,
    /// The role of its text in the request; messages of a conversation keep their own role.
    pub role: Role,
    /// What fills it.
    pub source: SlotSource,
    /// The policies as listed in the recipe, from which `slot.overflow` is derived; never empty.
    pub overflow: Vec<OverflowPolicy>,
    /// The documents it holds, in order.
    pub docs: Vec<String>,
}

/// Serializes as in a recipe, with percentages.
impl Serialize for SlotSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Slot { name, cap, floor, priority, soft, protect_last, .. } = &self.slot;
        let percent = |share: f64| (share * 100.0).round() as u8;
        let cap = match *cap {
            Cap::Tokens(tokens) => serde_json::json!({ "tokens": tokens }),
            Cap::Share(share) => serde_json::json!({ "share": percent(share) }),
            Cap::Flexible => "flexible".into(),
        };
        let mut slot = serializer.serialize_struct("SlotSpec", 10)?;
        slot.serialize_field("name", &**name)?;
        slot.serialize_field("role", &self.role)?;
        slot.serialize_field("source", &self.source)?;
        slot.serialize_field("cap", &cap)?;
        slot.serialize_field("floor", floor)?;
        slot.serialize_field("overflow", &self.overflow)?;
        slot.serialize_field("soft", &soft.map(percent))?;
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
    /// Its part of the system prompt, which follows the recipe's own.
    pub system: Vec<PromptTemplate>,
}
