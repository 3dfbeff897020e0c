//! `toolresults.md`: every tool call with its full result. It grows by one block per call; tool output is written in
//! fences.

use super::blocks::{BlockWriter, Grammar, HeadedBlock, LINKED_TURN, blocks};
use super::context::{CallStatus, GoalId};
use super::file::DocumentValue;
use super::problem::{ParseProblem, ParsedDocument};
use super::value::{Number, Size};
use super::write::escape;
use super::{BlockId, DocumentTime, VaultPath};
use larder_text::pointer::Pointer;
use larder_text::sections::SectionId;

const TITLE: &str = "# Tool Results";
const RESULT: &str = "## Result ";

static GRAMMAR: Grammar = Grammar {
    heads: &[TITLE, RESULT],
    labels: &[LINKED_TURN, "Call", "Iteration", "Goal", "At", "Bytes", "Original", "Status", "Content"],
};

/// All results of a turn, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolResults {
    /// One for each call.
    pub results: Vec<ToolResult>,
}

/// One call and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The number across all iterations, from 1. Links refer to it as `^result-001`.
    pub number: u32,
    /// The call, such as `internet.research(query="...")`.
    pub call: String,
    /// The coordinator's iteration.
    pub iteration: u32,
    /// The goal, if there are several.
    pub goal: Option<GoalId>,
    /// The outcome of the call.
    pub status: CallStatus,
    /// When it ended.
    pub at: DocumentTime,
    /// The size of the full result in bytes.
    pub bytes: u64,
    /// The pointer to the full result; required if `content` is only its beginning.
    pub original: Option<Pointer>,
    /// The tool's output.
    pub content: String,
}

impl ToolResult {
    /// The block id that links refer to.
    pub fn block(&self) -> BlockId {
        BlockId::numbered("result", usize::try_from(self.number).unwrap_or(usize::MAX))
    }

    /// The text to append to the document.
    pub fn write(&self) -> String {
        escape(&self.write_body()).into_owned()
    }

    fn write_body(&self) -> String {
        let mut writer = BlockWriter::new(&GRAMMAR);
        writer.head(&format!("{RESULT}{}", self.number));
        writer.text_field("Call", &self.call);
        writer.field("Iteration", &self.iteration.to_string());
        if let Some(goal) = self.goal {
            writer.field("Goal", &goal.to_string());
        }
        writer.field("At", &self.at.to_string());
        writer.field("Bytes", &self.bytes.to_string());
        if let Some(original) = &self.original {
            writer.field("Original", &original.to_string());
        }
        writer.field("Status", self.status.as_str());
        writer.gap();
        writer.label("Content");
        writer.fenced(&self.content);
        // The block is the content.
        writer.line(&self.block().to_string());
        format!("\n{}", writer.finish())
    }

    fn read(block: &HeadedBlock<'_>, problems: &mut Vec<ParseProblem>) -> Option<Self> {
        let number = super::blocks::parsed::<Number>(&block.rest, block.line, "Result", problems);
        let iteration = block.required::<Number>("Iteration", problems);
        let status = block.line("Status").and_then(|(line, value)| {
            let word = value.split_whitespace().next().unwrap_or_default();
            super::blocks::parsed(word, line, "Status", problems)
        });
        if !block.has("Status") {
            problems.push(ParseProblem::new(block.line, "**Status:** is missing"));
        }
        let at = block.required("At", problems);
        let content = block.text_of_block("Content").unwrap_or_default();
        let bytes = block.value::<Size>("Bytes", problems);
        Some(Self {
            call: block.text("Call").unwrap_or_default(),
            goal: block.value("Goal", problems),
            bytes: bytes.map_or_else(|| u64::try_from(content.len()).unwrap_or(u64::MAX), |bytes| bytes.0),
            original: block.line("Original").and_then(|(_, pointer)| pointer.parse().ok()),
            number: number?.0,
            iteration: iteration?.0,
            status: status?,
            at: at?,
            content,
        })
    }
}

impl DocumentValue for ToolResults {
    fn write_body(&self, at: &VaultPath) -> String {
        let turn = at.folder().rsplit('/').next().unwrap_or_default();
        let mut writer = BlockWriter::new(&GRAMMAR);
        writer.head(TITLE);
        writer.line(&format!("All calls of {turn} and what came of them."));
        writer.linked_turn(at, SectionId::ToolExecution, 1);
        let results: String = self.results.iter().map(ToolResult::write_body).collect();
        writer.finish() + &results
    }

    fn read_body(body: &str, line: usize, _: &VaultPath) -> ParsedDocument<Self> {
        let mut problems = Vec::new();
        let blocks = blocks(body, &GRAMMAR, line);
        let results = blocks.iter().filter(|block| block.head == RESULT);
        let results = results.filter_map(|block| ToolResult::read(block, &mut problems)).collect();
        ParsedDocument::new(Some(Self { results }), problems)
    }
}
