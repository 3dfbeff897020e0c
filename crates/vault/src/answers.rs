//! `ticket.md` and `response.md`: the full plan and the full answer, where the sections contain digests.

use super::VaultPath;
use super::blocks::{BlockWriter, Grammar, blocks};
use super::context::TaskPlan;
use super::file::DocumentValue;
use super::links::Reference;
use super::problem::{ParseProblem, ParsedDocument};
use larder_text::sections::SectionId;

const TICKET: &str = "# Ticket";
const RESPONSE: &str = "# Response";
const SOURCES: &str = "## Source References";
const SOURCES_WIKI: &str = "## Source References (Obsidian)";

static RESPONSE_GRAMMAR: Grammar = Grammar { heads: &[RESPONSE, SOURCES, SOURCES_WIKI], labels: &[] };

/// The plan as the planner wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket(pub TaskPlan);

impl DocumentValue for Ticket {
    fn write_body(&self, at: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&super::context::PLAN);
        writer.head(TICKET);
        // A plan that follows another says how that one failed.
        let attempt = if self.0.previous_failure.is_some() { 2 } else { 1 };
        writer.linked_turn(at, SectionId::TaskPlan, attempt);
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The answer.
    pub text: String,
    /// What its numbers lead to, in order: 2 for `[2]`.
    pub sources: Vec<(u32, Reference)>,
}

impl DocumentValue for Response {
    fn write_body(&self, at: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&RESPONSE_GRAMMAR);
        writer.head(RESPONSE);
        writer.text(&self.text);
        if !self.sources.is_empty() {
            writer.head(SOURCES);
            writer.list(self.sources.iter().map(|(number, source)| source.numbered(*number as usize, at)));
            writer.head(SOURCES_WIKI);
            writer.list(self.sources.iter().map(|(_, source)| source.wiki()));
        }
        writer.finish()
    }

    fn read_body(body: &str, line: usize, at: &VaultPath) -> ParsedDocument<Self> {
        let blocks = blocks(body, &RESPONSE_GRAMMAR, line);
        let under = |head: &str| blocks.iter().find(|block| block.head == head);
        let items = |head: &str| under(head).map(|block| block.items("")).unwrap_or_default();
        let number = |item: &str| item.strip_prefix('[')?.split_once(']')?.0.parse().ok();
        // The links for Obsidian have the labels too.
        let (numbered, wiki) = (items(SOURCES), items(SOURCES_WIKI));
        let source = |(index, (_, item)): (usize, &(usize, &str))| {
            let named = wiki.get(index).and_then(|(_, item)| Reference::read(item, at));
            Some((number(item)?, named.or_else(|| Reference::read(item, at))?))
        };
        let sources = numbered.iter().enumerate().filter_map(source).collect();
        match under(RESPONSE) {
            Some(block) => {
                let text = block.text("").unwrap_or_default();
                ParsedDocument::new(Some(Self { text, sources }), Vec::new())
            }
            None => {
                ParsedDocument::new(None, vec![ParseProblem::new(line, format!("{RESPONSE:?} is missing"))])
            }
        }
    }
}
