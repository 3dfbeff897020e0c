//! One call of a tool: made within the turn's budget, recorded in full in `toolresults.md`, and stored behind a pointer
//! (C29). What a tool returns is data; its files enter the turn's folder under names that the turn does not use itself.

use std::sync::Arc;

use larder_condense::ContentType;
use larder_store::UserStore;
use larder_text::pointer::Pointer;
use larder_tools::{ToolContext, ToolOutput};
use larder_vault::context::{CallStatus, GoalId};
use larder_vault::links::DualLink;
use larder_vault::{Document, ToolResult, ToolResults, VaultPath};
use serde::{Deserialize, Serialize};

use super::answers::ToolRequest;
use super::empty_sources::says_nothing;
use super::error::Stop;
use super::event::TurnEvent;
use super::evidence;
use super::files;
use super::phase::PhaseContext;

/// Maximum bytes of a result in `toolresults.md`; a longer one is truncated and has a pointer.
const MAX_RESULT_BYTES: usize = 1024 * 1024;
/// Characters of a result's summary.
const SUMMARY_CHARS: usize = 300;
/// Documents that the turn writes itself; tools must not.
const RESERVED_NAMES: [&str; 9] = [
    "context.md",
    "attachments.md",
    "query_analysis.json",
    "ticket.md",
    "response.md",
    "toolresults.md",
    "metrics.json",
    "metadata.json",
    "receipts.json",
];

/// The result of a call that was interrupted.
const INTERRUPTED: &str = "this call was under way when the turn was interrupted; whether it was carried out is not known: \
     look at what it should have changed before you call it again";

/// A call that was made or refused.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CallRecord {
    /// The call as §4 shows it.
    pub(super) text: String,
    pub(super) status: CallStatus,
    /// Whether it found or did anything: a search without hits succeeds and has no result.
    #[serde(default)]
    pub(super) has_result: bool,
    /// The result in a line.
    pub(super) summary: String,
    /// The full result, if it is text that says more than the summary. Not saved with the turn, since the pointer
    /// returns it.
    #[serde(skip)]
    pub(super) content: Option<String>,
    pub(super) content_type: ContentType,
    /// Whether it may be shown condensed.
    pub(super) summarizable: bool,
    /// Where the whole result is.
    pub(super) full: Option<DualLink>,
    pub(super) pointer: Option<Pointer>,
}

impl CallRecord {
    /// Records a call that was not made.
    pub(super) fn denied(request: &ToolRequest, reason: String) -> Self {
        Self {
            text: larder_tools::call_text(&request.tool, &request.value()),
            status: CallStatus::Denied,
            has_result: false,
            summary: reason,
            content: None,
            content_type: ContentType::Generic,
            summarizable: true,
            full: None,
            pointer: None,
        }
    }

    /// The record with its result, which is behind its pointer if the turn was interrupted since the call.
    pub(super) fn with_content(self, store: &UserStore) -> Result<Self, Stop> {
        let (Some(pointer), None) = (&self.pointer, &self.content) else { return Ok(self) };
        let bytes = store.pointers().resolve(pointer)?;
        Ok(Self { content: content(&bytes, &self.summary), ..self })
    }
}

/// Makes a call.
pub(super) async fn call(
    cx: &mut PhaseContext<'_>,
    request: &ToolRequest,
    iteration: u32,
    goal: Option<GoalId>,
) -> Result<CallRecord, Stop> {
    cx.events.send(&TurnEvent::Tool { call: larder_tools::call_text(&request.tool, &request.value()) });
    let began = cx.clock.now();
    let output = match evidence::invented_memory(cx, request) {
        Some(refusal) => ToolOutput::failure(CallStatus::Denied, refusal),
        None => perform(cx, request).await,
    };
    let millis = cx.clock.millis_since(began);
    cx.events.send(&TurnEvent::ToolDone {
        status: output.status.to_string(),
        summary: summary(&output.summary),
        bytes: output.content.len() as u64,
        millis,
    });
    record(cx, request, iteration, goal, &output)
}

/// Records a call that was in progress when the turn was interrupted. It may have had side effects, so it is not
/// repeated.
pub(super) fn interrupted(
    cx: &mut PhaseContext<'_>,
    request: &ToolRequest,
    iteration: u32,
    goal: Option<GoalId>,
) -> Result<CallRecord, Stop> {
    record(cx, request, iteration, goal, &ToolOutput::failure(CallStatus::Error, INTERRUPTED))
}

async fn perform(cx: &mut PhaseContext<'_>, request: &ToolRequest) -> ToolOutput {
    let turns = cx.turns;
    let now = cx.clock.now();
    let arguments = request.value();
    let meter = Arc::clone(&cx.budget.meter);
    let begun = || cx.announce_call();
    let context = ToolContext {
        engine: &turns.engine,
        documents: &turns.documents,
        counter: &cx.document.condenser.counter,
        turn: &cx.draft.place,
        draft_files: &cx.draft.files,
        original_query: &cx.draft.query,
        intent: cx.state.plan.as_ref().map(|plan| plan.intent),
        topic: cx.state.plan.as_ref().and_then(|plan| plan.topic.as_deref()),
        mode: cx.draft.mode,
        now,
        workspace: cx.state.workspace.as_deref(),
        confirm: &*turns.confirm,
        observer: &*meter,
        begun: &begun,
        budget: cx.budget.remaining(&cx.state),
    };
    let output = cx.budget.within(turns.tools.call(&request.tool, &arguments, &context)).await;
    // Usage counts whatever the result.
    cx.budget.settle(&mut cx.state);
    output.unwrap_or_else(|| ToolOutput::failure(CallStatus::Timeout, cx.budget.out_of_time()))
}

/// Counts a call and records its result, its files and its claims.
fn record(
    cx: &mut PhaseContext<'_>,
    request: &ToolRequest,
    iteration: u32,
    goal: Option<GoalId>,
    output: &ToolOutput,
) -> Result<CallRecord, Stop> {
    cx.state.tool_calls += 1;
    cx.state.rounds().calls += 1;
    let (pointer, link) = write_result(cx, request, iteration, goal, output)?;
    let specs = cx.turns.tools.specs(cx.draft.mode, std::slice::from_ref(&request.tool));
    let summarizable = specs.first().is_none_or(|spec| spec.summarizable);
    let research = take_files(cx, output);
    let own = format!("{}/", cx.draft.place.folder());
    for read in output.read.iter().filter(|read| !read.as_str().starts_with(&own)) {
        if !cx.state.read.contains(read) {
            cx.state.read.push(read.clone());
        }
    }
    let considered = output.considered.iter().filter_map(|entry| serde_json::to_value(entry).ok());
    cx.state.considered.extend(considered);
    let summary = summary(&output.summary);
    // Not trimmed: positions in it are positions in the stored bytes.
    let text = std::str::from_utf8(&output.content).ok();
    evidence::add_tool_claims(cx, output, &pointer, &link, text);
    Ok(CallRecord {
        text: larder_tools::call_text(&request.tool, &request.value()),
        status: output.status,
        has_result: output.status == CallStatus::Success && !text.is_some_and(says_nothing),
        content: content(&output.content, &summary),
        summary,
        content_type: output.content_type.unwrap_or(ContentType::ToolResult),
        summarizable,
        full: Some(research.map_or(link, files::link)),
        pointer: Some(pointer),
    })
}

/// Stores the result and adds it to `toolresults.md`.
fn write_result(
    cx: &mut PhaseContext<'_>,
    request: &ToolRequest,
    iteration: u32,
    goal: Option<GoalId>,
    output: &ToolOutput,
) -> Result<(Pointer, DualLink), Stop> {
    let call = request.text();
    let pointer = cx.document.condenser.store(&output.content, "tool_result", &summary(&call))?;
    cx.state.results += 1;
    let text = String::from_utf8_lossy(&output.content);
    let end = text.floor_char_boundary(MAX_RESULT_BYTES);
    let mut content = text.get(..end).unwrap_or_default().to_owned();
    if end < text.len() {
        content.push_str(&format!(
            "\n[{} more bytes are left out here; all of it: {pointer}]",
            text.len() - end
        ));
    }
    let result = ToolResult {
        number: cx.state.results,
        call,
        iteration,
        goal,
        status: output.status,
        at: cx.clock.now(),
        bytes: output.content.len() as u64,
        original: Some(pointer.clone()),
        content,
    };
    let at = cx.draft.place.tool_results();
    let before = match files::text(&cx.draft, &at) {
        Some(text) => text.to_owned(),
        None => Document::new(cx.meta("toolresults"), ToolResults::default()).write(&at),
    };
    files::insert(&mut cx.draft, &at, (before + &result.write()).into_bytes());
    let block = result.block();
    let label = block.as_str().to_owned();
    Ok((pointer, DualLink::to_block(at, block, &label)))
}

/// Adds the files of a tool to the turn's folder; returns its research document, if there is one.
fn take_files(cx: &mut PhaseContext<'_>, output: &ToolOutput) -> Option<VaultPath> {
    let folder = cx.draft.place.folder().to_owned();
    let mut research = None;
    for (name, bytes) in &output.files {
        let path = VaultPath::new(&format!("{folder}/{name}")).filter(|_| !is_reserved(name));
        let Some(path) = path else {
            cx.events.warn(format!("a tool named the file {name:?}, which it may not write; it is omitted"));
            continue;
        };
        if larder_vault::layout::is_research(name) {
            research = Some(path.clone());
        }
        files::insert(&mut cx.draft, &path, bytes.clone());
    }
    research
}

/// A result as text, if it says more than its summary.
fn content(bytes: &[u8], summary: &str) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    (!text.is_empty() && text != summary).then(|| text.to_owned())
}

fn is_reserved(name: &str) -> bool {
    let is_own = RESERVED_NAMES.iter().any(|reserved| reserved.eq_ignore_ascii_case(name));
    is_own || larder_vault::layout::is_earlier_attempt(&name.to_ascii_lowercase())
}

/// The first line of an untrusted text, cut.
pub(super) fn summary(text: &str) -> String {
    let first = text.trim().lines().next().unwrap_or_default();
    match first.char_indices().nth(SUMMARY_CHARS) {
        Some((end, _)) => format!("{}…", &first[..end]),
        None => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_summary_is_one_line_and_cut() {
        assert_eq!(summary("  first\nsecond"), "first");
        let cut = summary(&"é".repeat(SUMMARY_CHARS + 1));
        assert_eq!(cut.chars().count(), SUMMARY_CHARS + 1);
        assert!(cut.ends_with("é…"));
    }

    #[test]
    fn content_is_text_that_says_more_than_the_summary() {
        assert_eq!(content(b" more \n", "summary").as_deref(), Some("more"));
        for bytes in [&b"summary\n"[..], b" ", b"\xff"] {
            assert_eq!(content(bytes, "summary"), None);
        }
    }

    #[test]
    fn names_of_the_turn_are_reserved_in_any_case() {
        assert!(is_reserved("context.md") && is_reserved("Metadata.JSON") && is_reserved("Response_1.md"));
        assert!(!is_reserved("research.md") && !is_reserved("webpage_cache/x/context.md"));
    }

    #[test]
    fn a_refused_call_has_its_reason_for_a_result() {
        let request: ToolRequest =
            serde_json::from_value(json!({"tool": "doc.read", "arguments": {"path": "a"}})).unwrap();
        let record = CallRecord::denied(&request, "the limit is reached".to_owned());
        assert_eq!((record.text.as_str(), record.status), ("doc.read(path=\"a\")", CallStatus::Denied));
        assert_eq!((record.summary.as_str(), record.pointer), ("the limit is reached", None));
    }

    #[test]
    fn a_saved_record_omits_its_content() {
        let request: ToolRequest =
            serde_json::from_value(json!({"tool": "doc.read", "arguments": {}})).unwrap();
        let record =
            CallRecord { content: Some("text".to_owned()), ..CallRecord::denied(&request, String::new()) };
        let saved = serde_json::to_value(&record).unwrap();
        assert_eq!(saved.get("content"), None);
        assert_eq!(serde_json::from_value::<CallRecord>(saved).unwrap().content, None);
    }
}
