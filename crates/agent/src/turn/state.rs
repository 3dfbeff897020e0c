//! The state of a turn besides its documents: the next phase, counters, and spending. Saved with every checkpoint.
//! Knows no recipe.

use std::path::PathBuf;

use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_vault::context::{Claim, Goal, GoalId};
use larder_vault::{DocumentTime, Intent, QueryAnalysis, RunMetrics, Score, VaultPath};
use serde::{Deserialize, Serialize};

use super::AnswerSource;
use super::answers::IterationAnswer;
use super::calls::CallRecord;
use super::round_rules::GoalCalls;
use super::turn_phase::TurnPhase;
use larder_engine::executor::Spending;

/// The version of the saved state; a draft of another version cannot be resumed.
pub(super) const VERSION: u32 = 1;

/// Everything a turn remembers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TurnState {
    /// [`VERSION`].
    pub(super) version: u32,
    /// The phase to run next.
    #[serde(rename = "step")]
    pub(super) next: TurnPhase,
    /// The folder that tools of mode `code` work in.
    pub(super) workspace: Option<PathBuf>,
    /// The last reading of the turn's clock.
    pub(super) moment: DocumentTime,
    /// Milliseconds spent, pauses not counted.
    pub(super) spent_ms: u64,
    /// Tokens of all models and tools.
    pub(super) usage: Usage,
    /// Their price, as far as prices are known.
    pub(super) cost: Option<Usd>,
    /// One entry for each run of a recipe.
    pub(super) runs: Vec<RunMetrics>,
    /// The short receipt of each run: its inputs and their renditions.
    pub(super) receipts: Vec<serde_json::Value>,
    /// The documents that retrieval considered, for gathering and for tools.
    pub(super) considered: Vec<serde_json::Value>,
    /// The result of phase 0.
    pub(super) analysis: Option<QueryAnalysis>,
    /// Documents that §2 refers to.
    pub(super) references: Vec<VaultPath>,
    /// Documents that tools read.
    #[serde(default)]
    pub(super) read: Vec<VaultPath>,
    /// The facts that gathering was shown, with their ids.
    #[serde(default)]
    pub(super) facts: Vec<(String, String)>,
    /// Words of §2 that may be of names and that nothing which gathering was shown has, in lower case and sorted.
    #[serde(default)]
    pub(super) unstated: Vec<String>,
    /// When the prices were looked up that gathering was shown and that no longer hold.
    #[serde(default)]
    pub(super) old_days: Vec<DocumentTime>,
    /// The result of phase 3.
    pub(super) plan: Option<PlanSummary>,
    /// The loop of phase 4 while it runs.
    pub(super) rounds: Option<RoundsState>,
    /// Calls of tools so far.
    pub(super) tool_calls: u32,
    /// Results in `toolresults.md` so far.
    pub(super) results: u32,
    /// Claims so far; their blocks are numbered throughout the turn.
    pub(super) claims: usize,
    /// How many times the answer was rewritten.
    pub(super) revisions: u32,
    /// How many times the turn was replanned.
    pub(super) retries: u32,
    /// The changes requested by the last verdict.
    pub(super) hints: Vec<String>,
    /// Every answer that was written, with its verdict.
    pub(super) attempts: Vec<AnswerAttempt>,
    /// How the turn ends, once known.
    pub(super) ending: Option<Ending>,
}

/// The part of the plan that later phases need.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlanSummary {
    pub(super) intent: Intent,
    pub(super) topic: Option<String>,
    /// Empty when there is only one goal.
    pub(super) goals: Vec<Goal>,
    /// What phase 4 left unreached.
    #[serde(default)]
    pub(super) unreached: Vec<String>,
}

/// The coordinator's loop: its counters and findings so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct RoundsState {
    pub(super) iterations: u32,
    pub(super) calls: u32,
    pub(super) claims: Vec<Claim>,
    /// What the calls for each goal came to, and those without one.
    #[serde(default)]
    pub(super) by_goal: Vec<(Option<GoalId>, GoalCalls)>,
    /// The round whose calls are not yet complete.
    #[serde(default)]
    pub(super) under_way: Option<PendingRound>,
    /// Why the loop ends, once known.
    pub(super) ended: Option<String>,
}

/// A round whose answer was parsed and whose calls are not yet complete. Saved before and after each call, so that a
/// resumed turn repeats none of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PendingRound {
    pub(super) number: u32,
    pub(super) answer: IterationAnswer,
    /// The calls made so far, with their results.
    pub(super) called: Vec<CallRecord>,
    /// Whether the next call has side effects and was permitted, so that it may have been completed.
    pub(super) begun: bool,
}

/// One version of the answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AnswerAttempt {
    pub(super) answer: String,
    /// Values that it states and none of its documents does.
    #[serde(default)]
    pub(super) unsupported: Vec<String>,
    /// Goals that were not reached when it was written.
    #[serde(default)]
    pub(super) unreached: Vec<String>,
    /// What its citations lead to.
    #[serde(default)]
    pub(super) sources: Vec<AnswerSource>,
    /// `None` until it is validated.
    pub(super) verdict: Option<AttemptVerdict>,
}

/// The verdict of validation on one answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AttemptVerdict {
    pub(super) confidence: Score,
    pub(super) quality: Option<Score>,
    /// Checks that passed.
    pub(super) passed: usize,
    /// A claim has no evidence or is invented.
    pub(super) claims_failed: bool,
    pub(super) issues: Vec<String>,
}

/// How a turn ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub(super) enum Ending {
    /// With an answer.
    Answer {
        text: String,
        unverified: bool,
        quality: Option<Score>,
        note: Option<String>,
        #[serde(default)]
        sources: Vec<AnswerSource>,
    },
    /// With a question.
    Clarify { question: String },
    /// Without either.
    Failed { reason: String },
}

impl TurnState {
    /// The state of a new turn.
    pub(super) fn new(moment: DocumentTime, workspace: Option<PathBuf>) -> Self {
        Self {
            version: VERSION,
            next: TurnPhase::Analyze,
            workspace,
            moment,
            spent_ms: 0,
            usage: Usage::default(),
            cost: None,
            runs: Vec::new(),
            receipts: Vec::new(),
            considered: Vec::new(),
            analysis: None,
            references: Vec::new(),
            read: Vec::new(),
            facts: Vec::new(),
            unstated: Vec::new(),
            old_days: Vec::new(),
            plan: None,
            rounds: None,
            tool_calls: 0,
            results: 0,
            claims: 0,
            revisions: 0,
            retries: 0,
            hints: Vec::new(),
            attempts: Vec::new(),
            ending: None,
        }
    }

    /// Tokens in and out.
    pub(super) const fn tokens(&self) -> u64 {
        self.usage.input.saturating_add(self.usage.output)
    }

    /// Adds what a run or a tool spent.
    pub(super) fn charge(&mut self, spent: Spending) {
        self.usage += spent.usage;
        if let Some(cost) = spent.cost {
            self.cost = Some(self.cost.map_or(cost, |sum| sum + cost));
        }
    }

    /// The number of a phase's current attempt, from 1.
    pub(super) fn attempt(&self, phase: TurnPhase) -> u32 {
        let answers = u32::try_from(self.attempts.len()).unwrap_or(u32::MAX);
        match phase {
            TurnPhase::Plan | TurnPhase::Coordinate => self.retries + 1,
            TurnPhase::Synthesize => answers + 1,
            TurnPhase::Validate => answers,
            _ => 1,
        }
    }

    /// What the plan's calls did not reach.
    pub(super) fn unreached(&self) -> Vec<String> {
        self.plan.as_ref().map(|plan| plan.unreached.clone()).unwrap_or_default()
    }

    /// The goals of a plan with several.
    pub(super) fn goals(&self) -> &[Goal] {
        self.plan.as_ref().map(|plan| plan.goals.as_slice()).unwrap_or_default()
    }

    /// The loop of phase 4, created on first use.
    pub(super) fn rounds(&mut self) -> &mut RoundsState {
        self.rounds.get_or_insert_default()
    }
}
