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
    /// The goal of this round, if there are several.
    pub goal: Option<u32>,
    /// The model's reasoning.
    pub reasoning: String,
    /// The calls, independent of each other.
    pub calls: Vec<ToolRequest>,
    /// Confidence that the goal is reached.
    pub goal_confidence: Option<Score>,
    /// The state of knowledge, for DONE.
    pub progress: Option<String>,
    /// Claims that the results so far support.
    pub claims: Vec<ClaimAnswer>,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRequest {
    /// The name of the tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// A claim that the model derives from results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimAnswer {
    /// The claim in one sentence.
    pub claim: String,
    /// Its confidence.
    pub confidence: Score,
    /// Its source: an address, a file, a turn.
    pub source: String,
    /// How long it is valid.
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
    /// Iteration `number` of §4, without results yet, and the claims it adds. Every claim names its source (R0-14.8).
    ///
    /// # Errors
    /// If an action lacks what it needs, the plan does not contain a goal, or a claim has no source.
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

    /// The goal, if the plan has several.
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
    /// The claim as a row of a document; the caller locates it in the results.
    ///
    /// # Errors
    /// An empty claim, or one without a source.
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
