//! Phase 4: one round of the coordinator.

use larder_vault::context::{Action, Claim, Iteration, IterationGoal, TaskPlan};
use larder_vault::{Score, Ttl};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use larder_engine::answer::{UnusableAnswer, stated};

/// What `phase4_coordinator_chat` and `phase4_coordinator_code` answer, once a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IterationAnswer {
    /// Whether to call tools or to end the loop.
    pub action: Action,
    /// The goal that is worked at, if there are several.
    pub goal: Option<u32>,
    /// Why.
    pub reasoning: String,
    /// The calls, independent of each other.
    pub calls: Vec<ToolRequest>,
    /// How well the goal is reached by now.
    pub goal_confidence: Option<Score>,
    /// With DONE: what is known now.
    pub progress: Option<String>,
    /// What the results so far show to be so.
    pub claims: Vec<ClaimAnswer>,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRequest {
    /// Its name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// Something found to be so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimAnswer {
    /// In one sentence.
    pub claim: String,
    /// How sure it is.
    pub confidence: Score,
    /// Who says so: an address, a file, a turn.
    pub source: String,
    /// How long it may be believed.
    pub ttl: Ttl,
}

impl ToolRequest {
    /// `internet.research(query="…", mode="commerce")`, as §4 shows it (R1-3.40).
    pub fn text(&self) -> String {
        let arguments: Vec<String> =
            self.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{}({})", self.tool, arguments.join(", "))
    }

    /// The arguments as one value.
    pub fn value(&self) -> Value {
        Value::Object(self.arguments.clone())
    }
}

impl IterationAnswer {
    /// Round number `number` of §4, still without results, and the claims it adds. Every claim names its source
    /// (R0-14.8).
    ///
    /// # Errors
    /// An action without what it needs, a goal that is not in the plan, a claim without a source.
    pub fn iteration(&self, number: u32, plan: &TaskPlan) -> Result<(Iteration, Vec<Claim>), UnusableAnswer> {
        let progress = stated(self.progress.as_ref());
        match self.action {
            Action::ToolCall => UnusableAnswer::unless(!self.calls.is_empty(), || {
                "action is TOOL_CALL and calls is empty; name a tool with its arguments, or answer DONE"
                    .into()
            })?,
            Action::Done => {
                UnusableAnswer::unless(self.calls.is_empty(), || {
                    "action is DONE and calls is not empty; call the tools with TOOL_CALL, or leave them out"
                        .into()
                })?;
                UnusableAnswer::unless(progress.is_some(), || {
                    "action is DONE and progress is empty; say in a few sentences what is known now".into()
                })?;
            }
        }
        let iteration = Iteration {
            number,
            action: self.action,
            goal: self.goal_of(plan)?,
            reasoning: self.reasoning.trim().to_owned(),
            calls: self.calls.iter().map(ToolRequest::text).collect(),
            results: Vec::new(),
            confidence: self.goal_confidence,
            progress,
        };
        let claims: Result<Vec<Claim>, UnusableAnswer> = self.claims.iter().map(ClaimAnswer::claim).collect();
        Ok((iteration, claims?))
    }

    /// The goal of a plan with several; of a plan with one, none.
    fn goal_of(&self, plan: &TaskPlan) -> Result<Option<IterationGoal>, UnusableAnswer> {
        let Some(id) = self.goal.filter(|_| !plan.goals.is_empty()) else { return Ok(None) };
        let found = plan.goals.iter().find(|goal| goal.id.0 == id);
        let goal = found.ok_or_else(|| {
            let ids: Vec<u32> = plan.goals.iter().map(|goal| goal.id.0).collect();
            UnusableAnswer::new(format!("goal {id} is not in the plan, which has the goals {ids:?}"))
        })?;
        Ok(Some(IterationGoal { id: goal.id, description: goal.description.clone() }))
    }
}

impl ClaimAnswer {
    /// The claim as a row of a document; where exactly it stands is found out by whoever holds the results.
    ///
    /// # Errors
    /// A claim that says nothing, or names no source.
    pub fn claim(&self) -> Result<Claim, UnusableAnswer> {
        UnusableAnswer::unless(!self.claim.trim().is_empty(), || "a claim is empty; leave it out".into())?;
        UnusableAnswer::unless(!self.source.trim().is_empty(), || {
            format!("the claim {:?} names no source; give the address, file or turn that says so", self.claim)
        })?;
        Ok(Claim {
            claim: self.claim.trim().to_owned(),
            confidence: self.confidence,
            source: self.source.trim().to_owned(),
            ttl: self.ttl,
            origin: None,
        })
    }
}
