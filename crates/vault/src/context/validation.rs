//! §6: the verdict on the answer (C10).

use crate::blocks::{BlockWriter, Grammar, HeadedBlock, blocks, parsed};
use crate::problem::{ParseProblem, ParsedDocument};
use crate::quote::uninline;
use crate::value::{Truth, words};
use crate::{BlockId, Score, VaultPath};
use larder_text::sections::SectionId;

use super::{GoalId, SectionValue, decision, decision_line};

const CHECKS: &str = "### Checks";
const GOALS: &str = "### Per-Goal Validation";
const ISSUES: &str = "### Issues";
const HINTS: &str = "### Revision Hints";
const NOTES: &str = "### Notes";

static GRAMMAR: Grammar = Grammar {
    heads: &[CHECKS, GOALS, ISSUES, HINTS, NOTES],
    labels: &["Decision", "Outcome", "Confidence", "Overall Quality", "Suggested Fixes"],
};

words! {
    /// The verdict of validation.
    Verdict, "APPROVE, REVISE, RETRY or FAIL":
    /// The answer is accepted.
    Approve = "APPROVE",
    /// The answer is rewritten.
    Revise = "REVISE",
    /// The turn is planned again.
    Retry = "RETRY",
    /// There will be no answer.
    Fail = "FAIL",
}

words! {
    /// The result of a check.
    CheckResult, "PASS or FAIL":
    /// The check passed.
    Pass = "PASS",
    /// The check failed.
    Fail = "FAIL",
}

words! {
    /// A check of the answer.
    Check, "Claims Supported, No Hallucinations, Query Addressed or Coherent Format":
    /// Every claim has evidence.
    ClaimsSupported = "Claims Supported",
    /// Nothing is invented.
    NoHallucinations = "No Hallucinations",
    /// The query is answered.
    QueryAddressed = "Query Addressed",
    /// The format is appropriate.
    CoherentFormat = "Coherent Format",
}

/// The verdict on one of several goals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalVerdict {
    /// The goal.
    pub goal: GoalId,
    /// Whether the answer addresses it.
    pub addressed: bool,
    /// How well it does so.
    pub quality: Score,
    /// A remark.
    pub notes: String,
}

/// The content of §6.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validation {
    /// The verdict.
    pub decision: Verdict,
    /// The confidence in the verdict.
    pub confidence: Score,
    /// The checks and their results.
    pub checks: Vec<(Check, CheckResult)>,
    /// The verdicts by goal, if there are several. The overall quality is their mean.
    pub goals: Vec<GoalVerdict>,
    /// The problems found.
    pub issues: Vec<String>,
    /// For REVISE: what to write differently.
    pub revision_hints: Vec<String>,
    /// For RETRY: what to plan differently.
    pub suggested_fixes: Vec<String>,
    /// Anything else.
    pub notes: String,
    /// The block id of the decision: `decision-validation`.
    pub block: Option<BlockId>,
}

const CHECK: [&str; 2] = ["Check", "Result"];
const GOAL: [&str; 4] = ["Goal", "Addressed", "Quality", "Notes"];

impl Validation {
    /// The mean quality of the goals; `None` without goals.
    pub fn overall_quality(&self) -> Option<Score> {
        Score::mean(self.goals.iter().map(|goal| goal.quality))
    }
}

impl SectionValue for Validation {
    const ID: SectionId = SectionId::Validation;

    fn write(&self, _: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&GRAMMAR);
        writer.field("Decision", &decision_line(self.decision.as_str(), self.block.as_ref()));
        writer.field("Confidence", &self.confidence.to_string());
        if !self.suggested_fixes.is_empty() {
            writer.label("Suggested Fixes");
            writer.numbered(self.suggested_fixes.iter());
        }
        if let Some(quality) = self.overall_quality() {
            writer.field("Overall Quality", &quality.to_string());
            writer.head(GOALS);
            writer.table(GOAL, self.goals.iter().map(goal_row));
        }
        if !self.checks.is_empty() {
            writer.head(CHECKS);
            let rows = self.checks.iter();
            writer.table(CHECK, rows.map(|(check, result)| [check.to_string(), result.to_string()]));
        }
        writer.head(ISSUES);
        if self.issues.is_empty() {
            writer.line("None");
        }
        writer.numbered(self.issues.iter());
        if !self.revision_hints.is_empty() {
            writer.head(HINTS);
            writer.numbered(self.revision_hints.iter());
        }
        if !self.notes.is_empty() {
            writer.head(NOTES);
            writer.text(&self.notes);
        }
        writer.finish()
    }

    fn is_followed(&self) -> bool {
        matches!(self.decision, Verdict::Revise | Verdict::Retry)
    }

    fn read(body: &str, line: usize, _: &VaultPath) -> ParsedDocument<Self> {
        let mut problems = Vec::new();
        let blocks = blocks(body, &GRAMMAR, line);
        let block = &blocks[0];
        let label = if block.has("Decision") { "Decision" } else { "Outcome" };
        let decision = decision(block, label, &mut problems);
        if !block.has(label) {
            problems.push(ParseProblem::new(line, "**Decision:** is missing"));
        }
        // The layout for several goals states a quality and may omit the confidence.
        let confidence = match block.has("Confidence") {
            true => block.value("Confidence", &mut problems),
            false => block.required("Overall Quality", &mut problems),
        };
        let value = decision.zip(confidence).map(|((decision, id), confidence)| Self {
            decision,
            confidence,
            checks: rows(&blocks, CHECKS, CHECK).iter().filter_map(|row| check(row, &mut problems)).collect(),
            goals: rows(&blocks, GOALS, GOAL).iter().filter_map(|row| goal(row, &mut problems)).collect(),
            issues: listed(&blocks, ISSUES),
            revision_hints: listed(&blocks, HINTS),
            suggested_fixes: super::texts(&block.items("Suggested Fixes")),
            notes: under(&blocks, NOTES).and_then(|block| block.text("")).unwrap_or_default(),
            block: id,
        });
        ParsedDocument::new(value, problems)
    }
}

fn under<'b, 't>(blocks: &'b [HeadedBlock<'t>], head: &str) -> Option<&'b HeadedBlock<'t>> {
    blocks.iter().find(|block| block.head == head)
}

fn rows<const N: usize>(
    blocks: &[HeadedBlock<'_>],
    head: &str,
    names: [&str; N],
) -> Vec<(usize, [String; N])> {
    under(blocks, head).map(|block| block.rows("", names)).unwrap_or_default()
}

fn listed(blocks: &[HeadedBlock<'_>], head: &str) -> Vec<String> {
    let items = under(blocks, head).map(|block| block.items("")).unwrap_or_default();
    items.iter().map(|(_, item)| uninline(item)).collect()
}

fn check(
    (line, [check, result]): &(usize, [String; 2]),
    problems: &mut Vec<ParseProblem>,
) -> Option<(Check, CheckResult)> {
    let check = parsed(check, *line, "Check", problems);
    Some((check?, parsed(result, *line, "Result", problems)?))
}

fn goal_row(goal: &GoalVerdict) -> [String; 4] {
    [
        goal.goal.to_string(),
        Truth::from(goal.addressed).to_string(),
        goal.quality.to_string(),
        goal.notes.clone(),
    ]
}

fn goal((line, row): &(usize, [String; 4]), problems: &mut Vec<ParseProblem>) -> Option<GoalVerdict> {
    let [goal, addressed, quality, notes] = row;
    let goal = parsed(goal, *line, "Goal", problems);
    let addressed = parsed::<Truth>(addressed, *line, "Addressed", problems);
    let quality = parsed(quality, *line, "Quality", problems);
    Some(GoalVerdict {
        goal: goal?,
        addressed: addressed? == Truth::True,
        quality: quality?,
        notes: notes.clone(),
    })
}
