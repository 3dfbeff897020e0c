//! One call of a tool: made within what the turn may spend, written whole to `toolresults.md`, stored behind a pointer,
//! and shown in §4 as far as it fits (C29). What a tool gave is data; its files enter the turn's folder under names
//! that are not the turn's own.

use std::sync::atomic::Ordering;

use larder_condense::ContentType;
use larder_store::StoreError;
use larder_text::pointer::Pointer;
use larder_vault::context::{CallResult, CallStatus, GoalId, Iteration};
use larder_vault::links::DualLink;
use larder_vault::{Document, ToolResult, ToolResults, VaultPath};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answers::ToolRequest;
use super::coordinate::NEWEST;
use super::documents::Shorter;
use super::error::Stop;
use super::event::TurnEvent;
use super::machine::Machine;
use larder_tools::{RemainingBudget, ToolContext, ToolOutput};

/// Bytes of a result that `toolresults.md` holds; a longer one stands there with its beginning and its pointer.
const WHOLE_RESULT: usize = 1024 * 1024;
/// Characters of the line that says what a call gave.
const SHOWN_LINE: usize = 300;
/// Tokens below which the beginning of a result says nothing.
const LEAST_SHOWN: usize = 40;
/// Documents that the machine writes itself, and no tool.
const OWN: [&str; 8] = [
    "context.md",
    "query_analysis.json",
    "ticket.md",
    "response.md",
    "toolresults.md",
    "metrics.json",
    "metadata.json",
    "receipts.json",
];

/// What is said of a call of which only its beginning is known.
const UNKNOWN_END: &str = "this call was under way when the turn was interrupted; whether it was carried out is not known: \
     look at what it should have changed before you call it again";

/// A call that was made, or refused.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Called {
    /// The call as §4 shows it.
    pub(super) text: String,
    status: CallStatus,
    /// The result in a line.
    summary: String,
    /// The whole result, where it is text that says more than its line. Not saved with the turn: its pointer gives it
    /// back.
    #[serde(skip)]
    content: Option<String>,
    content_type: ContentType,
    /// Whether only a part of it may be shown.
    summarizable: bool,
    /// Where the whole result stands.
    full: Option<DualLink>,
    pointer: Option<Pointer>,
}

impl Called {
    /// A call that was not made.
    pub(super) fn denied(request: &ToolRequest, reason: String) -> Self {
        Self {
            text: larder_tools::call_text(&request.tool, &request.value()),
            status: CallStatus::Denied,
            summary: reason,
            content: None,
            content_type: ContentType::Generic,
            summarizable: true,
            full: None,
            pointer: None,
        }
    }
}

impl Machine<'_> {
    /// Makes a call.
    pub(super) async fn call(
        &mut self,
        request: &ToolRequest,
        iteration: u32,
        goal: Option<GoalId>,
    ) -> Result<Called, Stop> {
        self.tell(&TurnEvent::Tool { call: larder_tools::call_text(&request.tool, &request.value()) });
        let began = self.clock.now();
        let output = self.perform(request).await;
        let millis = self.clock.millis_since(began);
        self.tell(&TurnEvent::ToolDone {
            status: output.status.to_string(),
            summary: line(&output.summary),
            bytes: output.content.len() as u64,
            millis,
        });
        self.called(request, iteration, goal, &output)
    }

    /// A call that was under way when the turn was interrupted: it may have changed something, so it is not made again.
    pub(super) fn call_of_unknown_end(
        &mut self,
        request: &ToolRequest,
        iteration: u32,
        goal: Option<GoalId>,
    ) -> Result<Called, Stop> {
        let output = ToolOutput::failure(CallStatus::Error, UNKNOWN_END);
        self.called(request, iteration, goal, &output)
    }

    /// Counts a call and writes down what it gave.
    fn called(
        &mut self,
        request: &ToolRequest,
        iteration: u32,
        goal: Option<GoalId>,
        output: &ToolOutput,
    ) -> Result<Called, Stop> {
        self.state.tool_calls += 1;
        self.state.rounds.get_or_insert_default().calls += 1;
        let (pointer, link) = self.write_result(request, iteration, goal, output)?;
        let specs = self.turns.tools.specs(self.draft.mode, std::slice::from_ref(&request.tool));
        let summarizable = specs.first().is_none_or(|spec| spec.summarizable);
        let research = self.take_files(output);
        let summary = line(&output.summary);
        // Not trimmed: places in it are places in what is stored.
        let content = std::str::from_utf8(&output.content).ok();
        self.add_tool_claims(output, &pointer, &link, content);
        Ok(Called {
            text: larder_tools::call_text(&request.tool, &request.value()),
            status: output.status,
            content: shown_content(&output.content, &summary),
            summary,
            content_type: output.content_type.unwrap_or(ContentType::ToolResult),
            summarizable,
            full: Some(research.map_or(link, |research| self.link(research))),
            pointer: Some(pointer),
        })
    }

    /// A call with its result, which stands behind its pointer if the turn was interrupted since.
    pub(super) fn with_content(&self, called: Called) -> Result<Called, Stop> {
        let (Some(pointer), None) = (&called.pointer, &called.content) else { return Ok(called) };
        let bytes = self.turns.engine.store.pointers().resolve(pointer)?;
        Ok(Called { content: shown_content(&bytes, &called.summary), ..called })
    }

    async fn perform(&mut self, request: &ToolRequest) -> ToolOutput {
        let turns = self.turns;
        let now = self.clock.now();
        let arguments = request.value();
        let budget =
            RemainingBudget { tokens: self.tokens_left(), cost: self.cost_left(), deadline: self.until };
        let begun = || self.note_begun();
        let context = ToolContext {
            engine: &turns.engine,
            documents: &turns.documents,
            turn: &self.draft.place,
            draft_files: &self.draft.files,
            original_query: &self.draft.query,
            mode: self.draft.mode,
            now,
            workspace: self.state.workspace.as_deref(),
            confirm: &*turns.confirm,
            observer: &*self.meter,
            begun: &begun,
            budget,
        };
        let call = turns.tools.call(&request.tool, &arguments, &context);
        let output = match self.until {
            None => call.await,
            Some(until) => match tokio::time::timeout_at(until, call).await {
                Ok(output) => output,
                Err(_) => ToolOutput::failure(CallStatus::Timeout, self.out_of_time()),
            },
        };
        // Whatever came of it, what it took counts.
        self.settle_meter();
        output
    }

    /// Saves that the next call of the round under way is being made.
    fn note_begun(&self) -> Result<(), StoreError> {
        self.call_begun.store(true, Ordering::Relaxed);
        let mut state = self.draft.state.clone();
        if let Some(begun) = state.pointer_mut("/rounds/under_way/begun") {
            *begun = Value::Bool(true);
        }
        self.turns.documents.drafts().save_state(&self.draft, &state)
    }

    /// Stores the result and writes it to `toolresults.md`.
    fn write_result(
        &mut self,
        request: &ToolRequest,
        iteration: u32,
        goal: Option<GoalId>,
        output: &ToolOutput,
    ) -> Result<(Pointer, DualLink), Stop> {
        let call = request.text();
        let pointer = self.keep(&output.content, "tool_result", &line(&call))?;
        self.state.results += 1;
        let text = String::from_utf8_lossy(&output.content);
        let end = text.floor_char_boundary(WHOLE_RESULT);
        let result = ToolResult {
            number: self.state.results,
            call,
            iteration,
            goal,
            status: output.status,
            at: self.clock.now(),
            bytes: output.content.len() as u64,
            original: Some(pointer.clone()),
            content: text.get(..end).unwrap_or_default().to_owned(),
        };
        let at = self.draft.place.tool_results();
        let before = match self.text_of(&at) {
            Some(text) => text.to_owned(),
            None => Document::new(self.meta("toolresults"), ToolResults::default()).write(&at),
        };
        self.put(&at, (before + &result.write()).into_bytes());
        let block = result.block();
        let label = block.as_str().to_owned();
        Ok((pointer, DualLink::to_block(at, block, &label)))
    }

    /// Takes the files that a tool made into the turn's folder; gives its research, if it made one.
    fn take_files(&mut self, output: &ToolOutput) -> Option<VaultPath> {
        let folder = self.draft.place.folder().to_owned();
        let mut research = None;
        for (name, bytes) in &output.files {
            let Some(path) = VaultPath::new(&format!("{folder}/{name}")).filter(|_| !is_own(name)) else {
                self.warn(format!("a tool named a file {name:?}, which is not its to write; it is left out"));
                continue;
            };
            if path.name().starts_with("research") && path.name().ends_with(".md") {
                research = Some(path.clone());
            }
            self.put(&path, bytes.clone());
        }
        research
    }

    /// Puts the results into a round so that its piece of §4 takes at most [`NEWEST`] tokens: each whole if all fit,
    /// else the beginning of each and where the rest stands.
    pub(super) fn shown_results(&self, iteration: &mut Iteration, called: &[Called]) {
        let share = |tokens: usize| tokens / called.len().max(1);
        let bare = {
            iteration.results = called.iter().map(|called| self.result(called, 0).0).collect();
            self.counter.count(&iteration.write(&self.at()))
        };
        let room = NEWEST.saturating_sub(bare);
        // Signs that a list escapes take tokens too, so the first share may prove too large.
        for part in [room, room * 3 / 4, room / 2, room / 4] {
            let with = called.iter().map(|called| self.result(called, share(part)));
            let (with, shorter): (Vec<CallResult>, Vec<Option<Shorter>>) = with.unzip();
            let bare = std::mem::replace(&mut iteration.results, with);
            if self.counter.count_up_to(&iteration.write(&self.at()), NEWEST).is_some() {
                shorter.iter().flatten().for_each(|shorter| self.stands(shorter));
                return;
            }
            iteration.results = bare;
        }
    }

    /// A result in the room there is, and how it was condensed for that.
    fn result(&self, called: &Called, room: usize) -> (CallResult, Option<Shorter>) {
        let content = called.content.as_deref().filter(|_| room >= LEAST_SHOWN);
        let fits = |content: &&str| self.counter.count_up_to(content, room).is_some();
        let whole = content.filter(fits);
        let shorter = content.filter(|_| whole.is_none() && called.summarizable);
        let shorter = shorter.and_then(|content| self.condensed_plainly(content, called.content_type, room));
        let shown = whole.or(shorter.as_ref().map(|shorter| shorter.made.text.as_str()));
        let text = match (shown, &called.pointer) {
            (Some(shown), _) => format!("{}\n{shown}", called.summary),
            (None, Some(pointer)) if called.content.is_some() => format!("{} ({pointer})", called.summary),
            (None, _) => called.summary.clone(),
        };
        (CallResult { status: called.status, text, full: called.full.clone() }, shorter)
    }
}

/// A result as text, if it says more than its line.
fn shown_content(bytes: &[u8], summary: &str) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    (!text.is_empty() && text != summary).then(|| text.to_owned())
}

fn is_own(name: &str) -> bool {
    OWN.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// One line of a text that anybody may have written.
fn line(text: &str) -> String {
    let first = text.trim().lines().next().unwrap_or_default();
    match first.char_indices().nth(SHOWN_LINE) {
        Some((end, _)) => format!("{}…", &first[..end]),
        None => first.to_owned(),
    }
}
