//! §3: goals, steps and the next phase.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::blocks::{BlockWriter, Grammar, HeadedBlock, LINKED_TURN, blocks, parsed};
use crate::links::DualLink;
use crate::problem::{ParseProblem, ParsedDocument};
use crate::quote::{inline, uninline};
use crate::value::{ValueError, as_text, words};
use crate::{Intent, Score, VaultPath};
use larder_text::sections::SectionId;

use super::SectionValue;

const GOALS: &str = "### Goals Identified";
const FOCUS: &str = "### Current Focus";
const EXECUTION: &str = "### Execution Plan";

pub(crate) static GRAMMAR: Grammar = Grammar {
    heads: &[GOALS, FOCUS, EXECUTION],
    labels: &[
        "Previous Attempt Failed",
        "New Approach",
        "Goal",
        "Intent",
        "Confidence",
        "Subtasks",
        "Route To",
        "Clarification Question",
        "Ticket",
        LINKED_TURN,
    ],
};

words! {
    /// The phase to which the planner sends the turn.
    NextStep, "coordinator, synthesis or clarify":
    /// Tool calls: phase 4.
    Coordinator = "coordinator",
    /// Directly to the answer: phase 5.
    Synthesis = "synthesis",
    /// A clarifying question to the user.
    Clarify = "clarify",
}

words! {
    /// The status of a goal.
    GoalStatus, "pending, in_progress, done or failed":
    /// Not started.
    Pending = "pending",
    /// In progress.
    InProgress = "in_progress",
    /// Achieved.
    Done = "done" | "completed",
    /// Abandoned.
    Failed = "failed",
}

/// A goal of the turn, from 1; written `GOAL_1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoalId(pub u32);

impl fmt::Display for GoalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GOAL_{}", self.0)
    }
}

impl FromStr for GoalId {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let number = text
            .trim()
            .strip_prefix("GOAL_")
            .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let number = number.and_then(|number| number.parse().ok());
        number.map(Self).ok_or_else(|| ValueError::new("GOAL_ and a number", text))
    }
}

as_text!(GoalId);

/// One of several goals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// Its id.
    pub id: GoalId,
    /// What the goal is.
    pub description: String,
    /// Its status.
    pub status: GoalStatus,
    /// Goals that must be achieved first.
    pub dependencies: Vec<GoalId>,
}

/// One step of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// The goal it serves, if there are several.
    pub goal: Option<GoalId>,
    /// What to do.
    pub text: String,
}

/// The content of §3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPlan {
    /// Why the previous plan failed.
    pub previous_failure: Option<String>,
    /// What this plan does differently.
    pub new_approach: Option<String>,
    /// The goal of the turn.
    pub goal: String,
    /// The intent of the query.
    pub intent: Intent,
    /// The planner's confidence.
    pub confidence: Option<Score>,
    /// The steps, in order.
    pub steps: Vec<PlanStep>,
    /// The goals if there are several.
    pub goals: Vec<Goal>,
    /// The goal to start with, if there are several.
    pub focus: Option<String>,
    /// The next phase.
    pub next: NextStep,
    /// The question to the user, for `clarify`.
    pub question: Option<String>,
    /// The full plan, if the section contains a digest.
    pub ticket: Option<DualLink>,
}

const GOAL: [&str; 4] = ["ID", "Description", "Status", "Dependencies"];

impl SectionValue for TaskPlan {
    const ID: SectionId = SectionId::TaskPlan;

    fn write(&self, at: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&GRAMMAR);
        self.write_into(&mut writer, at);
        writer.finish()
    }

    fn read(body: &str, line: usize, at: &VaultPath) -> ParsedDocument<Self> {
        let mut problems = Vec::new();
        let value = Self::read_from(&blocks(body, &GRAMMAR, line), at, &mut problems);
        ParsedDocument::new(value, problems)
    }
}

impl TaskPlan {
    pub(crate) fn write_into(&self, writer: &mut BlockWriter, at: &VaultPath) {
        let texts = [
            ("Previous Attempt Failed", self.previous_failure.as_ref()),
            ("New Approach", self.new_approach.as_ref()),
            ("Goal", Some(&self.goal)),
        ];
        for (label, text) in texts {
            if let Some(text) = text {
                writer.text_field(label, text);
            }
        }
        writer.field("Intent", self.intent.as_str());
        if let Some(confidence) = self.confidence {
            writer.field("Confidence", &confidence.to_string());
        }
        if self.goals.is_empty() {
            writer.label("Subtasks");
            self.write_steps(writer);
        }
        writer.field("Route To", self.next.as_str());
        if let Some(question) = &self.question {
            writer.text_field("Clarification Question", question);
            writer.gap();
        }
        if let Some(ticket) = &self.ticket {
            writer.field("Ticket", &ticket.both(at));
        }
        if !self.goals.is_empty() {
            writer.head(GOALS);
            writer.table(GOAL, self.goals.iter().map(goal_row));
        }
        if let Some(focus) = &self.focus {
            writer.head(FOCUS);
            writer.text(focus);
        }
        if !self.goals.is_empty() {
            writer.head(EXECUTION);
            self.write_steps(writer);
        }
    }

    fn write_steps(&self, writer: &mut BlockWriter) {
        for (number, step) in self.steps.iter().enumerate() {
            let goal = step.goal.map(|goal| format!("[{goal}] ")).unwrap_or_default();
            writer.line(&format!("{}. {goal}{}", number + 1, inline(&step.text)));
        }
        writer.gap();
    }

    pub(crate) fn read_from(
        blocks: &[HeadedBlock<'_>],
        at: &VaultPath,
        problems: &mut Vec<ParseProblem>,
    ) -> Option<Self> {
        let block = blocks.first()?;
        let under = |head: &str| blocks.iter().find(|block| block.head == head);
        let rows = under(GOALS).map(|block| block.rows("", GOAL)).unwrap_or_default();
        let goals: Vec<Goal> =
            rows.into_iter().filter_map(|(line, row)| goal(line, &row, problems)).collect();
        let steps = match under(EXECUTION) {
            Some(block) => block.items(""),
            None => block.items("Subtasks"),
        };
        if !block.has("Goal") {
            problems.push(ParseProblem::new(block.line, "**Goal:** is missing"));
        }
        let intent = block.required("Intent", problems);
        let next = block.required("Route To", problems);
        let confidence = block.value("Confidence", problems);
        Some(Self {
            previous_failure: block.text("Previous Attempt Failed"),
            new_approach: block.text("New Approach"),
            goal: block.text("Goal")?,
            intent: intent?,
            confidence,
            steps: steps.into_iter().map(|(_, item)| step(item)).collect(),
            goals,
            focus: under(FOCUS).map(|block| block.text("").unwrap_or_default()),
            next: next?,
            question: block.text("Clarification Question"),
            ticket: block.line("Ticket").and_then(|(_, link)| DualLink::read(link, at)),
        })
    }
}

fn goal_row(goal: &Goal) -> [String; 4] {
    let ids: Vec<String> = goal.dependencies.iter().map(ToString::to_string).collect();
    let dependencies = if ids.is_empty() { "-".to_owned() } else { ids.join(", ") };
    [goal.id.to_string(), goal.description.clone(), goal.status.to_string(), dependencies]
}

fn goal(
    line: usize,
    [id, description, status, dependencies]: &[String; 4],
    problems: &mut Vec<ParseProblem>,
) -> Option<Goal> {
    let id = parsed(id, line, "ID", problems);
    let status = parsed(status, line, "Status", problems);
    let names = dependencies.split(',').map(str::trim).filter(|name| !matches!(*name, "" | "-" | "none"));
    let dependencies = names.filter_map(|name| parsed(name, line, "Dependencies", problems)).collect();
    Some(Goal { id: id?, description: description.clone(), status: status?, dependencies })
}

fn step(item: &str) -> PlanStep {
    let tag = item.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match tag.and_then(|(goal, text)| Some((goal.parse().ok()?, text))) {
        Some((goal, text)) => PlanStep { goal: Some(goal), text: uninline(text) },
        None => PlanStep { goal: None, text: uninline(item) },
    }
}
