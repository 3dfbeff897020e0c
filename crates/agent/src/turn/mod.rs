//! A turn: one question through the phases 0 to 7 over one `context.md` (R1-3.72 to R1-3.86). Owns the logic of a
//! turn; knows no terminal, no HTTP, how a recipe is run, or how a document is stored.
//!
//! Each phase is a function over a `PhaseContext` that returns the phase to run next. The machine
//! saves a checkpoint after each phase and each round of the coordinator. Everything a phase knows is in the documents and
//! the state, so a turn can be resumed from any checkpoint.
//!
//! | phase | | module |
//! |---|---|---|
//! | 0 | what the query refers to | `analyze` |
//! | 1 | proceed, or ask the user | `reflect` |
//! | 2 | what is known already | `gathering` |
//! | 3 | plan and route | `plan`, `goals` |
//! | 4 | tools | `coordinate`, `round_rules`, `calls`, `evidence`, `shown_results`, `tool_log`, `shrink` |
//! | 5 | the answer | `synthesize`, `known`, `empty_sources`, `doubts`, and `figures` of the tools |
//! | 6 | the verdict | `validate` |
//! | 7 | saving, then the summary and vectors in the background | `save`, `notes`, `background`, `summarize`, `embeddings` |
//!
//! `pasted` moves what was pasted into a query to attachments before the first phase; `paragraphs` knows what a paragraph is by its form, `requests` what reads as a
//! request. Phases share `documents` and `files` (what they write), `recipes` (asking models), `limits`, `clock`, `condense`, `digest`
//! and `ending`; `machine` runs them.

mod absent;
mod analyze;
pub mod answers;
pub mod background;
mod calls;
mod clock;
mod condense;
mod coordinate;
mod digest;
mod documents;
mod doubts;
mod embeddings;
mod empty_sources;
mod ending;
mod error;
mod event;
mod evidence;
mod files;
pub mod gathered_documents;
mod gathering;
mod goals;
mod host;
mod known;
mod limits;
mod machine;
mod notes;
mod old_prices;
mod old_research;
mod paragraphs;
mod pasted;
mod phase;
mod plan;
mod recipes;
mod reflect;
mod requests;
mod round_rules;
mod save;
mod shown_results;
mod shrink;
mod sites;
mod small_talk;
mod state;
mod summarize;
mod synthesize;
mod tool_log;
mod turn_phase;
mod validate;

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use larder_engine::settings::TurnLimits;
use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_store::UserDocuments;
use larder_vault::{Mode, TurnStatus};
use serde::Serialize;

pub use self::error::TurnError;
pub use self::event::{NoopTurnObserver, TurnEvent, TurnObserver};
pub use self::host::{HostError, TurnHost};
pub use self::turn_phase::TurnPhase;

use self::machine::Machine;
use larder_engine::Engine;
use larder_tools::{Confirm, ToolBox};

/// A question to a turn.
#[derive(Debug, Clone)]
pub struct TurnRequest {
    /// What the user typed and pasted. Pasted bulk becomes an attachment of the turn.
    pub query: String,
    /// Selects recipes and tools (R0-17.4).
    pub mode: Mode,
    /// The conversation it belongs to (C85).
    pub session: Option<String>,
    /// The folder that tools of mode `code` work in.
    pub workspace: Option<PathBuf>,
}

/// What a number in an answer leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AnswerSource {
    /// The number: 2 for `[2]`.
    pub number: u32,
    /// The document in the vault, with `#^` and a block where it is a part of one.
    pub document: String,
    /// The pointer to the bytes that were cited.
    pub pointer: Option<String>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnOutcome {
    /// Its number, per user.
    pub turn: u32,
    /// Its folder in the vault.
    pub folder: String,
    /// Complete, clarify or failed.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub status: TurnStatus,
    /// The answer; if `unverified`, its first line says so.
    pub answer: Option<String>,
    /// What the numbers in the answer lead to, in order.
    pub sources: Vec<AnswerSource>,
    /// The question to the user, with status clarify.
    pub question: Option<String>,
    /// Why there is no answer, for status failed.
    pub reason: Option<String>,
    /// The answer did not pass validation (C68).
    pub unverified: bool,
    /// Tokens of all models and tools.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub usage: Usage,
    /// Their price in US dollars, as far as prices are known.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub cost: Option<Usd>,
    /// Calls of tools.
    pub tool_calls: u32,
    /// Milliseconds spent, pauses between stopping and resuming not counted.
    pub latency_ms: u64,
}

/// Runs the turns of one user.
pub struct Turns {
    /// Recipes and models.
    pub engine: Engine,
    /// The user's vault.
    pub documents: UserDocuments,
    /// What the coordinator may call.
    pub tools: Arc<ToolBox>,
    /// Limits of one turn.
    pub limits: TurnLimits,
    /// The embedding model that helps to gather turns and research; without one, only words are searched.
    pub embedding: Option<String>,
    /// Permits dangerous calls.
    pub confirm: Arc<dyn Confirm>,
}

impl Turns {
    /// Runs a turn to its end; it is committed when this returns, together with the jobs behind it, which
    /// [`Background`](background::Background) does (C5).
    ///
    /// # Errors
    /// An empty query. A store, a provider or a recipe that fails: the turn is then a draft that
    /// [`resume`](Self::resume) continues from its last checkpoint.
    pub fn run<'a>(
        &'a self,
        request: &'a TurnRequest,
        observer: &'a dyn TurnObserver,
    ) -> BoxFuture<'a, Result<TurnOutcome, TurnError>> {
        async move { Machine::begin(self, request, observer)?.finish().await }.boxed()
    }

    /// Continues a turn that was stopped, from its last checkpoint.
    ///
    /// # Errors
    /// If there is no such draft, or another process is running it; otherwise as for [`run`](Self::run).
    pub fn resume<'a>(
        &'a self,
        number: u32,
        observer: &'a dyn TurnObserver,
    ) -> BoxFuture<'a, Result<TurnOutcome, TurnError>> {
        async move { Machine::resume(self, number, observer)?.finish().await }.boxed()
    }
}
