//! Why a turn did not finish, and how a phase stops it.

use larder_store::{RunId, StoreError};

use super::turn_phase::TurnPhase;
use larder_engine::executor::RunError;
use larder_retrieval::RetrievalError;

/// Why a turn did not finish. It remains a draft, unless it never started.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The query is empty.
    #[error("the query is empty: it has no visible text; ask something")]
    EmptyQuery,
    /// The query is no text.
    #[error("the query contains a NUL character, which no text has; leave it out")]
    NulInQuery,
    /// There is no unfinished turn with this number.
    #[error("there is no unfinished turn {0}; `larder turn list` shows those that can be resumed or dropped")]
    NoDraft(u32),
    /// Another process is running it.
    #[error("turn {0} is running in another process; wait for it, or stop it")]
    Running(u32),
    /// The draft was written by a version with another format of the state.
    #[error(
        "turn {turn} was left in a state that this version cannot read ({reason}); discard it and ask again"
    )]
    State {
        /// The turn.
        turn: u32,
        /// What is wrong.
        reason: String,
    },
    /// A recipe could not be run.
    #[error(
        "turn {turn} stopped in phase {phase} ({name}): {source}; fix that, then run `larder turn resume {turn}`"
    )]
    Stopped {
        /// The turn.
        turn: u32,
        /// The phase.
        phase: u8,
        /// Its name.
        name: &'static str,
        /// Why.
        source: Box<RunError>,
    },
    /// A committed turn could not be summarized; it is complete otherwise.
    #[error("turn {turn} has no summary: {reason}")]
    Summary {
        /// The turn.
        turn: u32,
        /// Why.
        reason: String,
    },
    /// Retrieval failed.
    #[error(transparent)]
    Gather(#[from] RetrievalError),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl TurnError {
    /// The failure of the store behind it, if that cannot be used just now.
    pub fn of_store(&self) -> Option<&StoreError> {
        let error = match self {
            Self::Store(error) | Self::Gather(RetrievalError::Store(error)) => error,
            Self::Stopped { source, .. } => match &**source {
                RunError::Store(error) => error,
                _ => return None,
            },
            _ => return None,
        };
        Some(error).filter(|error| error.is_unwritable() || matches!(error, StoreError::Locked { .. }))
    }
}

/// How a phase ends when it has no next step.
#[derive(Debug)]
pub(super) enum Stop {
    /// The turn ends without an answer.
    Fail(String),
    /// A limit is reached: the best answer so far is delivered, marked as unverified, or the turn fails (C68).
    Exhausted(String),
    /// No answer of a run passed its gates (C66). Ends the turn, unless the phase can use the last answer.
    Unmet {
        run: RunId,
        reason: String,
        /// What its last answer cites although it was not given it.
        unknown_citations: Vec<String>,
    },
    /// A run failed for a reason outside the turn, which can be resumed once that is fixed.
    Run(Box<RunError>),
    /// The turn cannot continue now; it remains a draft.
    Error(TurnError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Error(error.into())
    }
}

impl From<RetrievalError> for Stop {
    fn from(error: RetrievalError) -> Self {
        Self::Error(error.into())
    }
}

impl From<RunError> for Stop {
    /// Answers that never passed their checks and prompts that cannot fit end the turn (C66), since repeating the
    /// call would give the same result. Reasons outside the turn stop it where it is.
    fn from(error: RunError) -> Self {
        match error {
            RunError::Spent { .. } | RunError::Unaffordable { .. } => Self::Exhausted(error.to_string()),
            RunError::Gates { ref run_id, ref unknown_citations, .. } => Self::Unmet {
                run: run_id.clone(),
                reason: error.to_string(),
                unknown_citations: unknown_citations.to_vec(),
            },
            RunError::Unusable { .. }
            | RunError::Refused { .. }
            | RunError::Pack(_)
            | RunError::Condense(_) => Self::Fail(error.to_string()),
            RunError::Store(error) => error.into(),
            error => Self::Run(Box::new(error)),
        }
    }
}

impl Stop {
    /// The error of a turn that remains a draft.
    pub(super) fn into_error(self, turn: u32, phase: TurnPhase) -> TurnError {
        match self {
            Self::Run(source) => {
                TurnError::Stopped { turn, phase: phase.number(), name: phase.name(), source }
            }
            Self::Error(error) => error,
            Self::Fail(reason) | Self::Exhausted(reason) | Self::Unmet { reason, .. } => {
                TurnError::State { turn, reason }
            }
        }
    }
}
