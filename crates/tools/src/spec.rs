//! The definition of a tool and its output. Knows no tool.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use futures::future::BoxFuture;
use larder_condense::ContentType;
use larder_retrieval::{RetrievalError, TraceEntry};
use larder_store::StoreError;
use larder_vault::context::{CallStatus, Claim};
use larder_vault::{Mode, VaultPath};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::context::ToolContext;
use super::typed::described;

/// Maximum characters of an argument in the text of a call; the full call is in `toolresults.md` (R1-3.40).
const SHOWN_ARGUMENT: usize = 200;
/// Characters of a description that planners see; MCP servers can send any length.
const SHOWN_DESCRIPTION: usize = 600;
/// Characters of a name that providers accept.
const WIRE_NAME: usize = 64;
/// Default timeout and result size of a tool.
const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_BYTES: usize = 400_000;

/// What a tool may do to the world; harm grows from one to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolClass {
    /// It only reads.
    Read,
    /// It makes a change that can be reverted; needs confirmation in code mode.
    Write,
    /// It can do harm; always needs confirmation.
    Danger,
}

/// The turns in which a tool is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolModes {
    /// Conversations only.
    Chat,
    /// Code only.
    Code,
    /// All.
    Both,
}

impl ToolModes {
    /// Whether turns of this mode are offered the tool.
    pub const fn include(self, mode: Mode) -> bool {
        matches!((self, mode), (Self::Both, _) | (Self::Chat, Mode::Chat) | (Self::Code, Mode::Code))
    }
}

/// What a tool is, for models and for the box that guards it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSpec {
    /// A name such as `web.visit`.
    pub name: String,
    /// What it does and when to use it, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
    /// What it may do to the world.
    pub class: ToolClass,
    /// Whether its result may be condensed on the way into a prompt.
    pub summarizable: bool,
    /// The timeout of a call.
    pub timeout: Duration,
    /// Bytes of a result that are kept.
    pub max_bytes: usize,
    /// Where it is offered.
    pub modes: ToolModes,
}

impl ToolSpec {
    /// The name under which a model calls the tool: providers allow neither points in it nor more than 64 characters.
    pub fn wire_name(&self) -> String {
        let legal = |char: char| if char.is_ascii_alphanumeric() || char == '-' { char } else { '_' };
        self.name.chars().map(legal).take(WIRE_NAME).collect()
    }

    /// The definition of a read-only tool for any mode, with the description and schema of an argument struct, a
    /// timeout of 30 seconds and at most 400,000 bytes. Override what differs with struct update syntax.
    pub fn from_args<A: JsonSchema>(name: &str) -> Self {
        let (description, parameters) = described::<A>();
        Self {
            name: name.to_owned(),
            description,
            parameters,
            class: ToolClass::Read,
            summarizable: true,
            timeout: TIMEOUT,
            max_bytes: MAX_BYTES,
            modes: ToolModes::Both,
        }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// How it ended.
    pub status: CallStatus,
    /// A one-line summary for **Results:** (R1-3.41).
    pub summary: String,
    /// The whole result; any bytes.
    pub content: Vec<u8>,
    /// The type of the result, where the tool knows it.
    pub content_type: Option<ContentType>,
    /// Claims that the tool found; their origins may be empty.
    pub claims: Vec<Claim>,
    /// Files for the turn's folder, by their path in it: `webpage_cache/…`, `research.md`.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The documents that the call read: uses of them, which are recorded if the answer holds.
    pub read: Vec<VaultPath>,
    /// What retrieval considered for the call, for the turn's receipt.
    pub considered: Vec<TraceEntry>,
}

impl ToolOutput {
    /// A successful result with its summary line.
    pub fn success(summary: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self::of(CallStatus::Success, summary.into(), content.into())
    }

    /// A failure with a text that says how to proceed; the text is also the result.
    pub fn failure(status: CallStatus, text: impl Into<String>) -> Self {
        let text = text.into();
        let line = text.lines().next().unwrap_or_default().to_owned();
        Self::of(status, line, text.into_bytes())
    }

    /// The output with its content type.
    #[must_use]
    pub fn typed(self, content_type: ContentType) -> Self {
        Self { content_type: Some(content_type), ..self }
    }

    fn of(status: CallStatus, summary: String, content: Vec<u8>) -> Self {
        Self {
            status,
            summary,
            content,
            content_type: None,
            claims: Vec::new(),
            files: BTreeMap::new(),
            read: Vec::new(),
            considered: Vec::new(),
        }
    }
}

/// Why a call has no result. The model that called reads the text.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// A setting is invalid.
    #[error("{0}")]
    Settings(String),
    /// The arguments are invalid.
    #[error("{0}")]
    Arguments(String),
    /// The call is not permitted.
    #[error("{0}")]
    Denied(String),
    /// The call took too long.
    #[error("{what} took longer than {} s", after.as_secs_f64())]
    Timeout {
        /// What took too long.
        what: String,
        /// The limit.
        after: Duration,
    },
    /// The call failed.
    #[error("{0}")]
    Failed(String),
    /// The documents could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<RetrievalError> for ToolError {
    fn from(error: RetrievalError) -> Self {
        match error {
            RetrievalError::Store(error) => Self::Store(error),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl ToolError {
    /// The status of the call in §4.
    pub const fn status(&self) -> CallStatus {
        match self {
            Self::Denied(_) => CallStatus::Denied,
            Self::Timeout { .. } => CallStatus::Timeout,
            _ => CallStatus::Error,
        }
    }
}

/// A tool. Implement [`TypedTool`](super::TypedTool) instead unless the schema is known only at run time.
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> &ToolSpec;

    /// Runs one call. The arguments satisfy the schema, and permission has been given where the class needs it.
    ///
    /// # Errors
    /// [`ToolError`], whose text helps the model to correct its call.
    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// A call as displayed in §4 (R1-3.40): `internet.research(query="...", mode="commerce")`. Long arguments are
/// truncated.
pub fn call_text(name: &str, arguments: &Value) -> String {
    written(name, arguments, SHOWN_ARGUMENT)
}

/// The whole call, for confirmation: the user must see everything that it would do.
pub(super) fn whole_call_text(name: &str, arguments: &Value) -> String {
    written(name, arguments, usize::MAX)
}

fn written(name: &str, arguments: &Value, max_chars: usize) -> String {
    let shown = |value: &Value| {
        let text = value.to_string();
        match text.char_indices().nth(max_chars) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    };
    let arguments = match arguments {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{key}={}", shown(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
        Value::Null => String::new(),
        other => shown(other),
    };
    format!("{name}({arguments})")
}

/// The tools as shown to planners and coordinators: name, description and arguments, one paragraph each.
pub fn describe(specs: &[&ToolSpec]) -> String {
    let mut text = String::new();
    for spec in specs {
        let words: Vec<&str> = spec.description.split_whitespace().collect();
        let description: String = words.join(" ").chars().take(SHOWN_DESCRIPTION).collect();
        let _ = writeln!(text, "- {}: {description}", spec.name);
        let _ = writeln!(text, "  arguments: {}", arguments_of(&spec.parameters));
    }
    text
}

/// `query: string, limit?: integer`, where `?` marks optional arguments.
fn arguments_of(parameters: &Value) -> String {
    let required = |name: &str| {
        let names = parameters.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|known| known == name))
    };
    let properties = parameters.get("properties").and_then(Value::as_object);
    let one = |(name, schema): (&String, &Value)| {
        let kind = match (schema.get("enum"), schema.get("type")) {
            (Some(Value::Array(words)), _) => {
                words.iter().map(ToString::to_string).collect::<Vec<_>>().join("|")
            }
            (_, Some(Value::String(kind))) => kind.clone(),
            _ => "any".to_owned(),
        };
        format!("{name}{}: {kind}", if required(name) { "" } else { "?" })
    };
    let all: Vec<String> = properties.into_iter().flatten().map(one).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}
