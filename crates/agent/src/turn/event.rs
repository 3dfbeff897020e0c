//! What a turn tells whoever watches it. Plain data; who shows it is nobody's business here.

use larder_models::price::Usd;
use larder_vault::TurnStatus;
use serde::{Deserialize, Serialize};

/// Something that happened in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TurnEvent {
    /// The turn has its number and folder; also when it goes on after a stop.
    Started {
        /// Its number, per user.
        turn: u32,
        /// Its folder in the vault.
        folder: String,
    },
    /// A phase begins.
    Phase {
        /// 0 to 7.
        number: u8,
        /// Such as `planner`.
        name: String,
        /// From 1; more after REVISE or RETRY.
        attempt: u32,
    },
    /// A phase ended and is saved.
    PhaseDone {
        /// 0 to 7.
        number: u8,
        /// In and out.
        tokens: u64,
        /// Time it took.
        millis: u64,
        /// What came of it, in a line.
        text: String,
    },
    /// A tool is called.
    Tool {
        /// Such as `doc.search(query="…")`.
        call: String,
    },
    /// A tool gave its result.
    ToolDone {
        /// SUCCESS, ERROR, TIMEOUT or DENIED.
        status: String,
        /// The result in a line.
        summary: String,
        /// Size of the whole result.
        bytes: u64,
        /// Time it took.
        millis: u64,
    },
    /// What gathering looked at.
    Gathered {
        /// Each document with its score, whether it was used, and why.
        #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
        considered: Vec<serde_json::Value>,
    },
    /// A section came too near its budget and its older text stands condensed from here on.
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
        /// What is asked.
        question: String,
    },
    /// The turn is committed.
    Finished {
        /// Complete, clarify or failed.
        #[cfg_attr(feature = "schema", schema(value_type = String))]
        status: TurnStatus,
        /// The answer did not pass validation.
        unverified: bool,
        /// In and out.
        tokens: u64,
        /// In US dollars.
        #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
        cost: Option<Usd>,
        /// Time spent.
        millis: u64,
    },
    /// Something went wrong that does not end the turn.
    Warning {
        /// What.
        text: String,
    },
}

/// Watches a turn.
pub trait TurnObserver: Send + Sync {
    /// Something happened.
    fn event(&self, event: &TurnEvent);
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopTurnObserver;

impl TurnObserver for NoopTurnObserver {
    fn event(&self, _: &TurnEvent) {}
}
