//! `ticket.md` and `response.md`: the full plan and the full answer, where the sections contain digests.

use super::VaultPath;
use super::blocks::{BlockWriter, Grammar, blocks};
use super::context::TaskPlan;
use super::file::DocumentValue;
use super::problem::{ParseProblem, ParsedDocument};

const TICKET: &str = "# Ticket";
const RESPONSE: &str = "# Response";

static RESPONSE_GRAMMAR: Grammar = Grammar { heads: &[RESPONSE], labels: &[] };

/// The plan as the planner wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket(pub TaskPlan);

impl DocumentValue for Ticket {
    fn write_body(&self, at: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&super::context::PLAN);
        writer.head(TICKET);
        self.0.write_into(&mut writer, at);
        writer.finish()
    }

    fn read_body(body: &str, line: usize, at: &VaultPath) -> ParsedDocument<Self> {
        let mut problems = Vec::new();
        let plan = TaskPlan::read_from(&blocks(body, &super::context::PLAN, line), at, &mut problems);
        ParsedDocument::new(plan.map(Self), problems)
    }
}

/// The answer as sent to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response(pub String);

impl DocumentValue for Response {
    fn write_body(&self, _: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&RESPONSE_GRAMMAR);
        writer.head(RESPONSE);
        writer.text(&self.0);
        writer.finish()
    }

    fn read_body(body: &str, line: usize, _: &VaultPath) -> ParsedDocument<Self> {
        let blocks = blocks(body, &RESPONSE_GRAMMAR, line);
        match blocks.iter().find(|block| block.head == RESPONSE) {
            Some(block) => ParsedDocument::new(Some(Self(block.text("").unwrap_or_default())), Vec::new()),
            None => {
                ParsedDocument::new(None, vec![ParseProblem::new(line, format!("{RESPONSE:?} is missing"))])
            }
        }
    }
}
