//! The list of tools and how one is called. One file per tool.

mod ask;
mod condense;
mod count;
mod explain;
mod rehydrate;
mod search;

use std::pin::Pin;

use larder_agent::ask::{Quote, SearchReport};
use larder_core::recipe::RecipeError;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::progress::CallProgress;
use super::sources::CallError;
use super::{McpCaller, brief, schema};

/// A tool; the type itself holds its arguments.
trait McpTool: DeserializeOwned + JsonSchema + Send {
    /// The structured result, for programs.
    type Output: Serialize + JsonSchema;
    const NAME: &'static str;
    const TITLE: &'static str;
    /// When to use it, for a model.
    const DESCRIPTION: &'static str;
    /// Whether it calls a model, which costs money, instead of only reading. Storing originals does not count as a change.
    const CALLS_MODEL: bool = false;

    /// Runs the tool. Returns the structured result and the same as text. May block.
    fn call(
        self,
        caller: &McpCaller,
        progress: &CallProgress,
    ) -> impl Future<Output = Result<(Self::Output, String), CallError>> + Send;
}

/// Parses the arguments of a tool and calls it.
pub(super) type Call = for<'a> fn(JsonObject, &'a McpCaller, &'a CallProgress) -> Called<'a>;

/// The pending result of a call.
type Called<'a> = Pin<Box<dyn Future<Output = CallToolResult> + Send + 'a>>;

struct ToolEntry {
    name: &'static str,
    describe: fn() -> rmcp::model::Tool,
    call: Call,
}

impl ToolEntry {
    const fn of<T: McpTool>() -> Self {
        Self { name: T::NAME, describe: describe::<T>, call: call::<T> }
    }
}

const TOOLS: [ToolEntry; 6] = [
    ToolEntry::of::<rehydrate::Rehydrate>(),
    ToolEntry::of::<search::SearchFor>(),
    ToolEntry::of::<ask::Ask>(),
    ToolEntry::of::<condense::Condense>(),
    ToolEntry::of::<count::Count>(),
    ToolEntry::of::<explain::Explain>(),
];

/// Every tool, as clients list them.
pub(super) fn list() -> Vec<rmcp::model::Tool> {
    TOOLS.iter().map(|entry| (entry.describe)()).collect()
}

/// The tool of this name.
pub(super) fn find(name: &str) -> Result<Call, ErrorData> {
    let found = TOOLS.iter().find(|entry| entry.name == name);
    found.map(|entry| entry.call).ok_or_else(|| {
        let names: Vec<&str> = TOOLS.iter().map(|entry| entry.name).collect();
        ErrorData::invalid_params(
            format!("unknown tool {:?}; use one of {}", brief(name), names.join(", ")),
            None,
        )
    })
}

fn describe<T: McpTool>() -> rmcp::model::Tool {
    let hints = ToolAnnotations::with_title(T::TITLE)
        .read_only(!T::CALLS_MODEL)
        .destructive(false)
        .idempotent(!T::CALLS_MODEL)
        .open_world(T::CALLS_MODEL);
    rmcp::model::Tool::new(T::NAME, T::DESCRIPTION, schema::input::<T>())
        .with_title(T::TITLE)
        .with_raw_output_schema(schema::output::<T::Output>())
        .with_annotations(hints)
}

fn call<'a, T: McpTool>(
    arguments: JsonObject,
    caller: &'a McpCaller,
    progress: &'a CallProgress,
) -> Called<'a> {
    Box::pin(async move {
        let called = called::<T>(arguments, caller, progress).await;
        called.unwrap_or_else(|CallError(words)| CallToolResult::error(vec![ContentBlock::text(words)]))
    })
}

async fn called<T: McpTool>(
    arguments: JsonObject,
    caller: &McpCaller,
    progress: &CallProgress,
) -> Result<CallToolResult, CallError> {
    let read = serde_json::from_value::<T>(Value::Object(arguments));
    let read = read.map_err(|error| {
        CallError(format!("invalid arguments for {}: {}", T::NAME, brief(&error.to_string())))
    });
    let (output, text) = read?.call(caller, progress).await?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(serde_json::to_value(output)?);
    Ok(result)
}

/// A passage of a text, with a pointer to it.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownPassage {
    /// The document: a path or a pointer.
    source: String,
    /// First and last line, from 1.
    lines: [usize; 2],
    /// First byte, and one past the last.
    bytes: [usize; 2],
    /// Restores exactly these bytes.
    pointer: String,
    /// The text; cut off where it ends in `…` and `cut` is true.
    text: String,
    /// Whether `text` is only the beginning.
    cut: bool,
}

/// Characters of a passage that are shown; only texts with very long lines exceed them.
const SHOWN_CHARS: usize = 2_000;

impl ShownPassage {
    fn of(quote: Quote, caller: &McpCaller) -> Self {
        let end = quote.text.char_indices().nth(SHOWN_CHARS).map(|(at, _)| at);
        Self {
            source: caller.roots.shown(&quote.source),
            lines: quote.lines.into(),
            bytes: quote.bytes.into(),
            pointer: quote.pointer.to_string(),
            cut: end.is_some(),
            text: end.map_or(quote.text.clone(), |end| format!("{}…", &quote.text[..end])),
        }
    }

    /// Its place, then its text.
    fn print(&self) -> String {
        let [first, last] = self.lines;
        format!("{}:{first}-{last} {}\n{}\n", self.source, self.pointer, self.text.trim_end())
    }
}

/// How much was read for an answer.
#[derive(Debug, Serialize, JsonSchema)]
struct Reading {
    /// Files read.
    files: usize,
    /// Bytes read.
    bytes: u64,
    /// The first files that were skipped, and why.
    skipped: Vec<String>,
}

/// Skipped files that are named.
const SKIPPED_NAMED: usize = 10;

impl Reading {
    fn of(search: &SearchReport, caller: &McpCaller) -> Self {
        let failed = search.skipped.iter().filter(|skipped| !skipped.is_expected).take(SKIPPED_NAMED);
        let skipped = failed.map(|skipped| caller.roots.shown(&skipped.to_string())).collect();
        Self { files: search.files, bytes: search.bytes, skipped }
    }
}

/// A missing recipe is reported to the caller here; a run of it would raise an intervention instead.
fn missing(error: &RecipeError) -> CallError {
    CallError(format!("{}. {}", brief(&error.to_string()), error.help()))
}

/// The name of a variant, as in JSON.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
