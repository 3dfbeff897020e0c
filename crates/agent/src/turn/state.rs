//! What a turn remembers between its phases, beside its documents: what comes next, counters, and what was spent. It is
//! saved with every checkpoint. Knows no recipe.

use std::path::PathBuf;

use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_vault::context::{Claim, Goal};
use larder_vault::{Intent, QueryAnalysis, RunMetrics, Score, Timestamp, VaultPath};
use serde::{Deserialize, Serialize};

use super::answers::IterationAnswer;
use super::calls::Called;
use larder_engine::executor::Spending;

/// The version of the state; a draft of another one cannot go on.
pub(super) const VERSION: u32 = 1;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// Phase 0.
    Analyze,
    /// Phase 1.
    Reflect,
    /// Phase 2.
    Gather,
    /// Phase 3.
    Plan,
    /// Phase 4.
    Coordinate,
    /// Phase 5.
    Synthesize,
    /// Phase 6.
    Validate,
    /// Phase 7.
    Save,
}

impl Step {
    /// 0 to 7.
    pub(super) const fn phase(self) -> u8 {
        self as u8
    }

    /// What the phase is called.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Analyze => "query_analyzer",
            Self::Reflect => "reflection",
            Self::Gather => "context_gatherer",
            Self::Plan => "planner",
            Self::Coordinate => "coordinator",
            Self::Synthesize => "synthesizer",
            Self::Validate => "validator",
            Self::Save => "save",
        }
    }
}

/// Everything a turn remembers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct State {
    /// [`VERSION`].
    pub(super) version: u32,
    /// What comes next.
    pub(super) step: Step,
    /// The folder that tools of mode `code` work in.
    pub(super) workspace: Option<PathBuf>,
    /// The last moment of the turn's clock.
    pub(super) moment: Timestamp,
    /// Milliseconds spent.
    pub(super) spent_ms: u64,
    /// Tokens of all models and tools.
    pub(super) usage: Usage,
    /// Their price, as far as it is known.
    pub(super) cost: Option<Usd>,
    /// One for each run of a recipe.
    pub(super) runs: Vec<RunMetrics>,
    /// What each run read.
    pub(super) receipts: Vec<serde_json::Value>,
    /// What gathering looked at.
    pub(super) considered: Vec<serde_json::Value>,
    /// What phase 0 found out.
    pub(super) analysis: Option<QueryAnalysis>,
    /// Documents that §2 stands on.
    pub(super) references: Vec<VaultPath>,
    /// What phase 3 planned.
    pub(super) plan: Option<Plan>,
    /// The loop of phase 4 while it goes on.
    pub(super) rounds: Option<Rounds>,
    /// Calls of tools so far.
    pub(super) tool_calls: u32,
    /// Results in `toolresults.md` so far.
    pub(super) results: u32,
    /// Claims so far: their blocks are numbered through the turn.
    pub(super) claims: usize,
    /// Times the answer was written again.
    pub(super) revisions: u32,
    /// Times it was planned again.
    pub(super) retries: u32,
    /// What the last verdict wants to be done otherwise.
    pub(super) hints: Vec<String>,
    /// Every answer that was written, with its verdict.
    pub(super) attempts: Vec<Attempt>,
    /// How the turn ends, once that is known.
    pub(super) ending: Option<Ending>,
}

/// What the later phases need of the plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) intent: Intent,
    pub(super) topic: Option<String>,
    /// Empty when there is one goal only.
    pub(super) goals: Vec<Goal>,
}

/// The coordinator's loop.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Rounds {
    pub(super) iterations: u32,
    pub(super) calls: u32,
    pub(super) claims: Vec<Claim>,
    /// The round whose calls are being made.
    #[serde(default)]
    pub(super) under_way: Option<Round>,
    /// Why it ended, once it did.
    pub(super) ended: Option<String>,
}

/// A round whose answer was read and whose calls are not all made. It is saved before and after each call, so that a
/// turn that goes on makes none of them twice.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Round {
    pub(super) number: u32,
    pub(super) answer: IterationAnswer,
    /// What came of the calls that were made.
    pub(super) called: Vec<Called>,
    /// The call after these may change something and was let through: whether it was made to its end is not known.
    pub(super) begun: bool,
}

/// One answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Attempt {
    pub(super) answer: String,
    /// None until it was validated.
    pub(super) verdict: Option<Judged>,
}

/// What validation said of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Judged {
    pub(super) confidence: Score,
    pub(super) quality: Option<Score>,
    /// Checks that passed.
    pub(super) passed: usize,
    /// A claim failed: it has no evidence, or it is made up.
    pub(super) claims_failed: bool,
    pub(super) issues: Vec<String>,
}

/// How a turn ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub(super) enum Ending {
    /// With an answer.
    Answer { text: String, unverified: bool, quality: Option<Score>, note: Option<String> },
    /// With a question.
    Clarify { question: String },
    /// Without either.
    Failed { reason: String },
}

impl State {
    /// A turn that has only begun.
    pub(super) fn new(moment: Timestamp, workspace: Option<PathBuf>) -> Self {
        Self {
            version: VERSION,
            step: Step::Analyze,
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

    /// Adds what a run or a tool took.
    pub(super) fn charge(&mut self, taken: Spending) {
        self.usage += taken.usage;
        if let Some(cost) = taken.cost {
            self.cost = Some(self.cost.map_or(cost, |sum| sum + cost));
        }
    }

    /// Which attempt a step is at, from 1.
    pub(super) fn attempt(&self, step: Step) -> u32 {
        let answers = u32::try_from(self.attempts.len()).unwrap_or(u32::MAX);
        match step {
            Step::Plan | Step::Coordinate => self.retries + 1,
            Step::Synthesize => answers + 1,
            Step::Validate => answers,
            _ => 1,
        }
    }

    /// The goals, if there are several.
    pub(super) fn goals(&self) -> &[Goal] {
        self.plan.as_ref().map(|plan| plan.goals.as_slice()).unwrap_or_default()
    }
}
