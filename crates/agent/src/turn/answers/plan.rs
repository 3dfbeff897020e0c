//! Phase 3: goals, tasks and the next step.

use std::collections::BTreeSet;

use larder_vault::context::{Goal, GoalId, GoalStatus, NextStep, PlanStep, TaskPlan};
use larder_vault::{Intent, Score};
use serde::{Deserialize, Serialize};

use larder_engine::answer::{UnusableAnswer, stated};

/// What `phase3_planner_chat` and `phase3_planner_code` answer (C12).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanAnswer {
    /// The goal of the turn.
    pub goal: String,
    /// The intent of the query.
    pub intent: Intent,
    /// The planner's confidence.
    pub confidence: Score,
    /// The next step.
    pub next_step: NextStep,
    /// With `clarify`: the question to the user.
    pub question: Option<String>,
    /// The goals, if there are several.
    pub goals: Vec<GoalAnswer>,
    /// The tasks in order.
    pub tasks: Vec<TaskAnswer>,
    /// What to do first, if there are several goals.
    pub focus: Option<String>,
    /// On a second attempt: why the first plan failed.
    pub previous_failure: Option<String>,
    /// On a second attempt: what is done differently.
    pub new_approach: Option<String>,
    /// Dotted, such as `commerce.laptop`.
    pub topic: String,
}

/// One goal of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoalAnswer {
    /// From 1.
    pub id: u32,
    /// What the goal is.
    pub description: String,
    /// Goals that must be achieved first.
    pub dependencies: Vec<u32>,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskAnswer {
    /// Its goal, if there are several.
    pub goal: Option<u32>,
    /// The task in words.
    pub text: String,
}

impl PlanAnswer {
    /// §3 of attempt number `attempt`, from 1. A single goal is not listed (R1-3.82); the first goal without dependencies
    /// is in progress. Goals that depend on each other in a [circle](Self::circular) are worked on in their order.
    ///
    /// # Errors
    /// If a route lacks what it needs, goals do not exist, or a second plan does not state what is different.
    pub fn plan(&self, attempt: u32) -> Result<TaskPlan, UnusableAnswer> {
        UnusableAnswer::unless(!self.goal.trim().is_empty(), || {
            "goal is empty; say what the turn is to reach".into()
        })?;
        let question = self.check_route()?;
        let several = self.goals.len() > 1;
        let goals = if several { self.goals()? } else { Vec::new() };
        let (previous_failure, new_approach) = if attempt > 1 { self.difference()? } else { (None, None) };
        Ok(TaskPlan {
            previous_failure,
            new_approach,
            goal: self.goal.trim().to_owned(),
            intent: self.intent,
            confidence: Some(self.confidence),
            steps: self.steps(several)?,
            focus: if several { stated(self.focus.as_ref()) } else { None },
            goals,
            next: self.next_step,
            question,
            ticket: None,
        })
    }

    fn check_route(&self) -> Result<Option<String>, UnusableAnswer> {
        let question = stated(self.question.as_ref());
        match self.next_step {
            NextStep::Clarify if question.is_none() => Err(UnusableAnswer::new(
                "next_step is clarify and question is empty; put the question to the user there",
            )),
            NextStep::Clarify => Ok(question),
            NextStep::Coordinator if self.tasks.iter().all(|task| task.text.trim().is_empty()) => {
                Err(UnusableAnswer::new(
                    "next_step is coordinator and tasks is empty; list what the coordinator has to do",
                ))
            }
            NextStep::Coordinator | NextStep::Synthesis => Ok(None),
        }
    }

    fn difference(&self) -> Result<(Option<String>, Option<String>), UnusableAnswer> {
        let (failure, approach) =
            (stated(self.previous_failure.as_ref()), stated(self.new_approach.as_ref()));
        UnusableAnswer::unless(failure.is_some() && approach.is_some(), || {
            "this is a second attempt: previous_failure and new_approach must say what failed and what is done \
             otherwise"
                .into()
        })?;
        Ok((failure, approach))
    }

    fn goals(&self) -> Result<Vec<Goal>, UnusableAnswer> {
        let ids: Vec<u32> = self.goals.iter().map(|goal| goal.id).collect();
        let expected = 1..=u32::try_from(ids.len()).unwrap_or(u32::MAX);
        UnusableAnswer::unless(ids.iter().copied().eq(expected), || {
            format!("goals have the ids {ids:?}; number them 1, 2, 3 … in order")
        })?;
        for goal in &self.goals {
            for other in &goal.dependencies {
                UnusableAnswer::unless(ids.contains(other), || {
                    format!("goal {} depends on goal {other}, which is not in goals {ids:?}", goal.id)
                })?;
            }
        }
        // Of dependencies that are part of a circle, only those on earlier goals hold.
        let needs = |goal: &GoalAnswer| -> Vec<GoalId> {
            let holds = |other: &u32| *other < goal.id || !self.waits(*other, goal.id);
            goal.dependencies.iter().copied().filter(holds).map(GoalId).collect()
        };
        let first = self.goals.iter().find(|goal| needs(goal).is_empty()).map(|goal| goal.id);
        let status = |id| if Some(id) == first { GoalStatus::InProgress } else { GoalStatus::Pending };
        let goal = |goal: &GoalAnswer| Goal {
            id: GoalId(goal.id),
            description: goal.description.trim().to_owned(),
            status: status(goal.id),
            dependencies: needs(goal),
        };
        Ok(self.goals.iter().map(goal).collect())
    }

    /// The goals that wait for themselves, by way of others in a circle.
    pub fn circular(&self) -> Vec<u32> {
        self.goals.iter().map(|goal| goal.id).filter(|id| self.waits(*id, *id)).collect()
    }

    /// Whether a goal depends on another, itself or by way of others.
    fn waits(&self, goal: u32, other: u32) -> bool {
        let needs = |id: u32| {
            let goal = self.goals.iter().find(|goal| goal.id == id);
            goal.map(|goal| goal.dependencies.as_slice()).unwrap_or_default()
        };
        let (mut seen, mut left) = (BTreeSet::new(), needs(goal).to_vec());
        while let Some(next) = left.pop() {
            if next == other {
                return true;
            }
            if seen.insert(next) {
                left.extend(needs(next));
            }
        }
        false
    }

    fn steps(&self, several: bool) -> Result<Vec<PlanStep>, UnusableAnswer> {
        let mut steps = Vec::new();
        for task in self.tasks.iter().filter(|task| !task.text.trim().is_empty()) {
            let goal = task.goal.filter(|_| several);
            let is_known = goal.is_none_or(|id| self.goals.iter().any(|goal| goal.id == id));
            UnusableAnswer::unless(is_known, || {
                format!(
                    "the task {:?} is for goal {}, which is not in goals",
                    task.text,
                    goal.unwrap_or_default()
                )
            })?;
            steps.push(PlanStep { goal: goal.map(GoalId), text: task.text.trim().to_owned() });
        }
        Ok(steps)
    }
}
