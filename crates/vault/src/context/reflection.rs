//! §1: whether to proceed or to ask the user for clarification.

use crate::blocks::{BlockWriter, Grammar, blocks};
use crate::problem::ParsedDocument;
use crate::value::{Truth, words};
use crate::{BlockId, Score, VaultPath};
use larder_text::sections::SectionId;

use super::{SectionValue, decision, decision_line};

static GRAMMAR: Grammar = Grammar {
    heads: &[],
    labels: &["Decision", "Confidence", "Query Type", "Is Follow-up", "Reasoning", "Clarification Question"],
};

words! {
    /// What reflection decides.
    ReflectionDecision, "PROCEED or CLARIFY":
    /// The query is clear.
    Proceed = "PROCEED",
    /// The user must be asked for clarification.
    Clarify = "CLARIFY",
}

words! {
    /// Whether the query asks for an action, as shown in the section.
    Ask, "ACTION or QUESTION":
    /// The query asks for an action.
    Action = "ACTION",
    /// The query asks for an answer.
    Question = "QUESTION",
}

/// The content of §1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reflection {
    /// The decision.
    pub decision: ReflectionDecision,
    /// The confidence in the decision.
    pub confidence: Score,
    /// Whether the query asks for an action.
    pub is_action: bool,
    /// Whether it follows up on an earlier query.
    pub is_follow_up: bool,
    /// The reasoning behind the decision.
    pub reasoning: String,
    /// The question to the user, for CLARIFY.
    pub question: Option<String>,
    /// The block id of the decision: `decision-reflection`.
    pub block: Option<BlockId>,
}

impl SectionValue for Reflection {
    const ID: SectionId = SectionId::Reflection;

    fn write(&self, _: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&GRAMMAR);
        writer.field("Decision", &decision_line(self.decision.as_str(), self.block.as_ref()));
        writer.field("Confidence", &self.confidence.to_string());
        let ask = if self.is_action { Ask::Action } else { Ask::Question };
        writer.field("Query Type", ask.as_str());
        writer.field("Is Follow-up", Truth::from(self.is_follow_up).as_str());
        writer.text_field("Reasoning", &self.reasoning);
        if let Some(question) = &self.question {
            writer.text_field("Clarification Question", question);
        }
        writer.finish()
    }

    fn read(body: &str, line: usize, _: &VaultPath) -> ParsedDocument<Self> {
        let mut problems = Vec::new();
        let blocks = blocks(body, &GRAMMAR, line);
        let block = &blocks[0];
        let decision = decision(block, "Decision", &mut problems);
        let confidence = block.required("Confidence", &mut problems);
        let ask = block.value::<Ask>("Query Type", &mut problems);
        let follow_up = block.value::<Truth>("Is Follow-up", &mut problems);
        if decision.is_none() && !block.has("Decision") {
            problems.push(crate::ParseProblem::new(line, "**Decision:** is missing"));
        }
        let value = decision.zip(confidence).map(|((decision, id), confidence)| Self {
            decision,
            confidence,
            is_action: ask == Some(Ask::Action),
            is_follow_up: follow_up == Some(Truth::True),
            reasoning: block.text("Reasoning").unwrap_or_default(),
            question: block.text("Clarification Question"),
            block: id,
        });
        ParsedDocument::new(value, problems)
    }
}
