//! Events of a turn, as plain data. Knows nothing of how they are displayed.

use larder_models::price::Usd;
use larder_vault::TurnStatus;
use serde::{Deserialize, Serialize};

/// Something that happened in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TurnEvent {
    /// The turn has a number and a folder; sent again when it is resumed.
    Started {
        /// Its number, per user.
        turn: u32,
        /// Its folder in the vault.
        folder: String,
    },
    /// A phase starts.
    Phase {
        /// 0 to 7.
        number: u8,
        /// A name such as `planner`.
        name: String,
        /// From 1; more after REVISE or RETRY.
        attempt: u32,
    },
    /// A phase ended and was saved.
    PhaseDone {
        /// 0 to 7.
        number: u8,
        /// Input and output tokens.
        tokens: u64,
        /// Milliseconds it took.
        millis: u64,
        /// Its result in a line.
        text: String,
    },
    /// A tool is called.
    Tool {
        /// A call such as `doc.search(query="…")`.
        call: String,
    },
    /// A tool returned its result.
    ToolDone {
        /// SUCCESS, ERROR, TIMEOUT or DENIED.
        status: String,
        /// The result in a line.
        summary: String,
        /// Size of the whole result.
        bytes: u64,
        /// Milliseconds it took.
        millis: u64,
    },
    /// The documents that gathering considered.
    Gathered {
        /// Each document with its score, whether it was used, and why.
        #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
        considered: Vec<serde_json::Value>,
    },
    /// A section exceeded its budget; from here on, prompts contain its older text in condensed form.
    Compacted {
        /// The number of the section.
        section: u8,
        /// Tokens before.
        from: usize,
        /// Tokens after.
        to: usize,
    },
    /// The answer, once it is validated (C69).
    Answer {
        /// In Markdown.
        text: String,
    },
    /// The turn needs to know more from the user.
    Clarify {
        /// The question to the user.
        question: String,
    },
    /// The turn is committed.
    Finished {
        /// Complete, clarify or failed.
        #[cfg_attr(feature = "schema", schema(value_type = String))]
        status: TurnStatus,
        /// The answer did not pass validation.
        unverified: bool,
        /// Input and output tokens.
        tokens: u64,
        /// In US dollars.
        #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
        cost: Option<Usd>,
        /// Milliseconds spent.
        millis: u64,
    },
    /// Something went wrong that does not end the turn.
    Warning {
        /// The problem.
        text: String,
    },
}

/// Receives the events of a turn.
pub trait TurnObserver: Send + Sync {
    /// Called for each event, in order.
    fn event(&self, event: &TurnEvent);
}

/// Ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopTurnObserver;

impl TurnObserver for NoopTurnObserver {
    fn event(&self, _: &TurnEvent) {}
}

/// The events of one turn on their way to its observer.
#[derive(Clone, Copy)]
pub(super) struct Events<'a>(pub(super) &'a dyn TurnObserver);

impl Events<'_> {
    pub(super) fn send(self, event: &TurnEvent) {
        self.0.event(event);
    }

    /// Reports a problem that does not end the turn.
    pub(super) fn warn(self, text: impl Into<String>) {
        self.send(&TurnEvent::Warning { text: text.into() });
    }
}
