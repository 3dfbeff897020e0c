//! §4: the log of tool calls, their results, and the resulting claims.
//!
//! An iteration for one of several goals uses the goal layout, any other the iteration layout; both contain the same
//! information.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::blocks::{BlockWriter, Grammar, HeadedBlock, blocks, parsed};
use crate::links::DualLink;
use crate::problem::{ParseProblem, ParsedDocument};
use crate::quote::{block_id_at_end, inline, uninline};
use crate::value::{ValueError, words};
use crate::{BlockId, Score, Ttl, VaultPath};
use larder_text::pointer::Pointer;
use larder_text::sections::SectionId;

use super::{GoalId, SectionValue};

const ITERATION: &str = "### Iteration ";
const GOAL_RESULTS: &str = "### 4.";
const CLAIMS: &str = "### Claims Extracted";
const TERMINATION: &str = "### Termination";

static GRAMMAR: Grammar = Grammar {
    heads: &[ITERATION, GOAL_RESULTS, CLAIMS, TERMINATION],
    labels: &[
        "Action",
        "Goal",
        "Reasoning",
        "Tools Called",
        "Tool",
        "Confidence",
        "Results",
        "Result",
        "Progress Summary",
        "Reason",
        "Iterations",
        "Tool Calls",
    ],
};

words! {
    /// The action of an iteration.
    Action, "TOOL_CALL or DONE":
    /// It calls tools.
    ToolCall = "TOOL_CALL",
    /// It ends the tool loop.
    Done = "DONE",
}

words! {
    /// The outcome of a call.
    CallStatus, "SUCCESS, ERROR, TIMEOUT or DENIED":
    /// It returned a result.
    Success = "SUCCESS",
    /// It returned an error.
    Error = "ERROR" | "FAILED",
    /// It timed out.
    Timeout = "TIMEOUT",
    /// It was not permitted.
    Denied = "DENIED",
}

/// The content of §4.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolLog {
    /// The iterations, in order.
    pub iterations: Vec<Iteration>,
    /// The claims established so far.
    pub claims: Vec<Claim>,
    /// How the loop ended; `None` while it is running.
    pub termination: Option<Termination>,
}

/// One iteration of the coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iteration {
    /// Its number, from 1.
    pub number: u32,
    /// Its action.
    pub action: Action,
    /// The goal it works on, if there are several.
    pub goal: Option<IterationGoal>,
    /// The reasoning behind it.
    pub reasoning: String,
    /// The calls, such as `internet.research(query="...", mode="commerce")`.
    pub calls: Vec<String>,
    /// Their results, in the same order.
    pub results: Vec<CallResult>,
    /// The confidence in the results.
    pub confidence: Option<Score>,
    /// The state of knowledge, for DONE.
    pub progress: Option<String>,
}

/// The goal that an iteration works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IterationGoal {
    /// Its id.
    pub id: GoalId,
    /// What the goal is.
    pub description: String,
}

/// A one-line summary of a call's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    /// The outcome of the call.
    pub status: CallStatus,
    /// The summary, such as `Found 12 products across 4 vendors`.
    pub text: String,
    /// The document with the full result.
    pub full: Option<DualLink>,
}

/// A statement established by tool results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The statement, such as `Lenovo LOQ 15 @ $697`.
    pub claim: String,
    /// The confidence in it.
    pub confidence: Score,
    /// Its source.
    pub source: String,
    /// How long it may be relied on.
    pub ttl: Ttl,
    /// Its provenance.
    pub origin: Option<ClaimOrigin>,
}

/// The provenance of a claim: a linkable block, and the bytes that support it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimOrigin {
    /// The block id, such as `claim-001`.
    pub block: BlockId,
    /// The supporting bytes of a tool's result.
    pub bytes: Option<Pointer>,
    /// The document that contains them.
    pub document: Option<DualLink>,
}

/// How the tool loop ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Termination {
    /// The reason.
    pub reason: String,
    /// Iterations, out of the limit.
    pub iterations: Quota,
    /// Calls, out of the limit.
    pub tool_calls: Quota,
}

/// A count and its limit: `2/10`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The count.
    pub done: u32,
    /// The limit.
    pub limit: u32,
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.done, self.limit)
    }
}

impl FromStr for Quota {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let numbers = || {
            let (done, limit) = text.split_once('/')?;
            Some(Self { done: done.trim().parse().ok()?, limit: limit.trim().parse().ok()? })
        };
        numbers().ok_or_else(|| ValueError::new("two numbers such as 2/10", text))
    }
}

const CLAIM: [&str; 4] = ["Claim", "Confidence", "Source", "TTL"];

impl SectionValue for ToolLog {
    const ID: SectionId = SectionId::ToolExecution;

    fn write(&self, at: &VaultPath) -> String {
        let iterations = self.iterations.iter().map(|iteration| iteration.write(at));
        let claims = (!self.claims.is_empty()).then(|| Claim::write_all(&self.claims, at));
        let end = self.termination.as_ref().map(Termination::write);
        iterations.chain(claims).chain(end).collect::<Vec<_>>().join("\n")
    }

    fn read(body: &str, line: usize, at: &VaultPath) -> ParsedDocument<Self> {
        let mut problems = Vec::new();
        let mut log = Self::default();
        for block in blocks(body, &GRAMMAR, line) {
            match block.head {
                ITERATION | GOAL_RESULTS => log.iterations.extend(Iteration::read(&block, at, &mut problems)),
                CLAIMS => log.claims.extend(Claim::read_all(&block, at, &mut problems)),
                TERMINATION => log.termination = Termination::read(&block, &mut problems),
                _ => {}
            }
        }
        ParsedDocument::new(Some(log), problems)
    }
}

impl Iteration {
    /// The text to append to §4, for [`extend_section`](crate::extend_section).
    pub fn write(&self, at: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&GRAMMAR);
        match &self.goal {
            None => writer.line(&format!("{ITERATION}{}", self.number)),
            Some(goal) => {
                writer.line(&format!("{GOAL_RESULTS}{} Research Results ({})", self.number, goal.id))
            }
        }
        writer.gap();
        writer.field("Action", self.action.as_str());
        if let Some(goal) = &self.goal {
            writer.text_field("Goal", &goal.description);
        }
        if !self.reasoning.is_empty() {
            writer.text_field("Reasoning", &self.reasoning);
        }
        let results: Vec<String> = self.results.iter().map(|result| result.write(at)).collect();
        let calls: Vec<String> = self.calls.iter().map(|call| inline(call)).collect();
        let [called, resulted] =
            if self.goal.is_some() { ["Tool", "Result"] } else { ["Tools Called", "Results"] };
        list(&mut writer, called, calls);
        if let Some(confidence) = self.confidence {
            writer.field("Confidence", &confidence.to_string());
        }
        // Code marks in text around a link in the same paragraph could turn the link into code.
        let linked = self.results.iter().any(|result| result.full.is_some());
        if linked {
            writer.gap();
        }
        list(&mut writer, resulted, results);
        if linked {
            writer.gap();
        }
        if let Some(progress) = &self.progress {
            writer.text_field("Progress Summary", progress);
        }
        writer.finish()
    }

    fn read(block: &HeadedBlock<'_>, at: &VaultPath, problems: &mut Vec<ParseProblem>) -> Option<Self> {
        let number = block.rest.split_whitespace().next().and_then(|number| number.parse().ok());
        if number.is_none() {
            problems
                .push(ParseProblem::new(block.line, "expected the number of the iteration in its heading"));
        }
        let tag =
            block.rest.rsplit_once('(').and_then(|(_, tag)| tag.trim_end().strip_suffix(')')?.parse().ok());
        let goal = tag.filter(|_| block.head == GOAL_RESULTS);
        let action = block.value("Action", problems).unwrap_or(Action::ToolCall);
        let calls = read_list(block, ["Tools Called", "Tool"]);
        let results = read_list(block, ["Results", "Result"]);
        let results = results.iter().filter_map(|(line, item)| CallResult::read(item, *line, at, problems));
        let results = results.collect();
        let confidence = block.value("Confidence", problems);
        Some(Self {
            number: number?,
            action,
            goal: goal.map(|id| IterationGoal { id, description: block.text("Goal").unwrap_or_default() }),
            reasoning: block.text("Reasoning").unwrap_or_default(),
            calls: calls.iter().map(|(_, call)| uninline(call)).collect(),
            results,
            confidence,
            progress: block.text("Progress Summary"),
        })
    }
}

/// Writes a label and its list; in the goal layout, a single entry is on the label's line.
fn list(writer: &mut BlockWriter, label: &'static str, items: Vec<String>) {
    match items.as_slice() {
        [] => {}
        [one] if matches!(label, "Tool" | "Result") && !one.is_empty() => writer.field(label, one),
        _ => {
            writer.label(label);
            writer.list(items.into_iter());
        }
    }
}

fn read_list<'t>(block: &HeadedBlock<'t>, labels: [&str; 2]) -> Vec<(usize, &'t str)> {
    let label = labels.into_iter().find(|label| block.has(label)).unwrap_or_default();
    match block.line(label).filter(|(_, value)| !value.is_empty() && !label.is_empty()) {
        Some(one) => vec![one],
        None if label.is_empty() => Vec::new(),
        None => block.items(label),
    }
}

impl CallResult {
    fn write(&self, at: &VaultPath) -> String {
        let full = self.full.as_ref().map(|full| format!(" ({})", full.both(at))).unwrap_or_default();
        format!("{}: {}{full}", self.status, inline(&self.text))
    }

    fn read(item: &str, line: usize, at: &VaultPath, problems: &mut Vec<ParseProblem>) -> Option<Self> {
        // Untrusted text never contains `](`, so the first one is ours.
        let link = item.find("](").and_then(|link| item[..link].rfind(" ([")).unwrap_or(item.len());
        let (text, full) = item.split_at(link);
        let (status, text) = text.split_once(':').unwrap_or((text, ""));
        Some(Self {
            status: parsed(status, line, "Results", problems)?,
            text: uninline(text),
            full: DualLink::read(full, at),
        })
    }
}

impl Claim {
    /// The text to append to §4, for [`extend_section`](crate::extend_section): the table, followed by one line for
    /// each claim with known provenance, since Obsidian cannot link to a table row. The line ends with the claim.
    pub fn write_all(claims: &[Self], at: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&GRAMMAR);
        writer.line(CLAIMS);
        Self::write_rows(claims, &mut writer, at);
        writer.finish()
    }

    pub(crate) fn write_rows(claims: &[Self], writer: &mut BlockWriter, at: &VaultPath) {
        let row = |claim: &Self| {
            [claim.claim.clone(), claim.confidence.to_string(), claim.source.clone(), claim.ttl.to_string()]
        };
        writer.table(CLAIM, claims.iter().map(row));
        let known =
            (1..).zip(claims).filter_map(|(number, claim)| Some((number, claim, claim.origin.as_ref()?)));
        writer.list(known.map(|(number, claim, origin): (usize, &Self, &ClaimOrigin)| {
            let bytes = origin.bytes.as_ref().map(|bytes| format!(" from {bytes}")).unwrap_or_default();
            let document = origin.document.as_ref().map(|document| format!(" in {}", document.both(at)));
            let document = document.unwrap_or_default();
            format!("claim {number}{bytes}{document}: {} {}", inline(&claim.claim), origin.block)
        }));
    }

    pub(crate) fn read_all(
        block: &HeadedBlock<'_>,
        at: &VaultPath,
        problems: &mut Vec<ParseProblem>,
    ) -> Vec<Self> {
        let origins = block.items("");
        let origin = |number: usize| {
            let start = format!("claim {number}");
            let rests = origins.iter().filter_map(|(_, item)| item.strip_prefix(&start));
            let mut rests = rests.filter(|rest| rest.starts_with([' ', ':']));
            rests.find_map(|rest| ClaimOrigin::read(rest, at))
        };
        let rows = block.rows("", CLAIM).into_iter().enumerate();
        rows.filter_map(|(place, (line, [claim, confidence, source, ttl]))| {
            let confidence = parsed(&confidence, line, "Confidence", problems);
            let ttl = parsed(&ttl, line, "TTL", problems);
            Some(Self { claim, confidence: confidence?, source, ttl: ttl?, origin: origin(place + 1) })
        })
        .collect()
    }
}

impl ClaimOrigin {
    fn read(text: &str, at: &VaultPath) -> Option<Self> {
        let (place, block) = block_id_at_end(text)?;
        let text = text[..place].trim();
        let bytes = text.strip_prefix("from ").and_then(Pointer::parse_prefix);
        let document = text.split_once("in [").and_then(|(_, link)| DualLink::read(&format!("[{link}"), at));
        Some(Self { block: BlockId::new(block)?, bytes: bytes.map(|(_, pointer)| pointer), document })
    }
}

impl Termination {
    /// The text to append at the end of §4.
    pub fn write(&self) -> String {
        let mut writer = BlockWriter::new(&GRAMMAR);
        writer.line(TERMINATION);
        writer.gap();
        writer.text_field("Reason", &self.reason);
        writer.field("Iterations", &self.iterations.to_string());
        writer.field("Tool Calls", &self.tool_calls.to_string());
        writer.gap();
        writer.finish()
    }

    fn read(block: &HeadedBlock<'_>, problems: &mut Vec<ParseProblem>) -> Option<Self> {
        let iterations = block.required("Iterations", problems);
        let tool_calls = block.required("Tool Calls", problems);
        Some(Self {
            reason: block.text("Reason").unwrap_or_default(),
            iterations: iterations?,
            tool_calls: tool_calls?,
        })
    }
}
