//! What a run gives, and who is told of its course. Plain data.

use larder_core::pack::Receipt;
use larder_models::chat::Usage;
use larder_models::price::Usd;
use larder_store::RunId;
use larder_text::message::Message;
use serde::{Deserialize, Serialize};

/// The receipt of a pack, with what it was packed for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReceipt {
    /// `category/name`.
    pub recipe: String,
    /// The recipe's version.
    pub version: String,
    /// The model's name in the table.
    pub model: String,
    /// Who counted.
    pub tokenizer: String,
    /// The pack's own receipt.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// The prompt itself.
    pub messages: Vec<Message>,
    /// What condensing by a model took, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub condensing: Option<CondensingTally>,
}

/// What condensing by a model took. Each call has a run record of its own, so its tokens and price are not part of
/// the run it was made for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CondensingTally {
    /// Renditions by a model.
    pub renditions: usize,
    /// Those of them that were in the cache.
    pub cached: usize,
    /// Calls of the model.
    pub calls: usize,
    /// Tokens of these calls.
    pub usage: Usage,
    /// Price of these calls, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost: Option<Usd>,
    /// Which renditions failed, and why; they were made by rule.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub failures: Vec<String>,
}

/// A citation resolved to the stretch of the document it stands on (R0-14.8).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResolvedCitation {
    /// The part.
    pub part: String,
    /// The document.
    pub source: String,
    /// The document's version: its content address, when it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Bytes of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<(usize, usize)>,
    /// Lines of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<(usize, usize)>,
}

/// What a run gives.
#[derive(Debug, Clone, Serialize)]
pub struct RunOutcome {
    /// The run's record.
    pub run_id: RunId,
    /// The checked answer: a value, or text.
    pub output: serde_json::Value,
    /// What of it a user may read.
    #[serde(skip)]
    pub reply: String,
    /// What it stands on.
    pub citations: Vec<ResolvedCitation>,
    /// How the prompt was packed.
    pub receipt: RunReceipt,
    /// Tokens of all calls of the run.
    pub usage: Usage,
    /// Price of all calls, in US dollars.
    pub cost: Option<Usd>,
    /// From start to end.
    pub latency_ms: u64,
}

/// Told what a run is doing, for whoever waits for it.
pub trait ProgressObserver: Send + Sync {
    /// A stage begins.
    fn stage(&self, text: &str);
    /// So much of the stage's work is done, in bytes.
    fn progress(&self, _done: u64, _total: u64) {}
    /// A prompt is packed and about to leave.
    fn packed(&self, receipt: &RunReceipt);
    /// A call of a model was answered and took so much: a call of the run, or one that condensed for it. Told whatever
    /// becomes of the run; the price is none where the model has none.
    fn spent(&self, _usage: Usage, _cost: Option<Usd>) {}
    /// A call of a model was not answered in its time. It may have been carried out all the same, and have taken so
    /// much at most.
    fn unanswered(&self, _most: Usage, _cost: Option<Usd>) {}
    /// Whether more may be spent. A run asks before every call but its first, about which whoever starts it decides,
    /// and but those that take the place of one that surely took nothing.
    fn may_spend(&self) -> bool {
        true
    }
    /// Whether somebody still waits. Reading many files ends soon after nobody does.
    fn is_wanted(&self) -> bool {
        true
    }
}

/// Says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopObserver;

impl ProgressObserver for NoopObserver {
    fn stage(&self, _: &str) {}
    fn packed(&self, _: &RunReceipt) {}
}
