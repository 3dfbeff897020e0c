//! The record of one request through the gateway: its caller, its window with reasons, its cost. Contains sizes,
//! names and pointers only: payloads stay in blobs (C104). Knows neither how requests are served nor how records are
//! stored.

mod answered;
mod endpoint;
mod outcome;

use std::borrow::Cow;

use larder_core::pack::Rendition;
use larder_core::policy::{self, BudgetDecision, ContextBudgetPolicy};
use larder_text::pointer::Pointer;
use larder_text::price::Usd;
use larder_text::time::Timestamp;
use larder_text::usage::Usage;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::answered::{AnsweredBy, ModelShare, NO_MODEL, OTHER_MODEL};
pub use self::endpoint::Endpoint;
pub use self::outcome::Outcome;

/// Maximum bytes of names that clients choose.
pub const MAX_NAME_BYTES: usize = 200;

/// The complete record of a request; created with [`RequestRecord::new`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RequestRecord)]
pub struct RequestRecord {
    /// Everything but the lists. A record can be read as its head alone, which leaves the lists unread.
    #[serde(flatten)]
    pub summary: RequestSummary,
    /// The parts of the window, in order; empty if nothing was decided.
    pub window: Vec<WindowPart>,
    /// Parts whose rendition differs from the one in the previous request.
    pub compactions: Vec<Compaction>,
    /// Originals that the model read back while it answered.
    pub rehydrations: Vec<Rehydration>,
}

/// The part of a record shown in lists and used for totals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RequestSummary)]
pub struct RequestSummary {
    /// Its id, a UUID of version 7: later ones sort later.
    pub id: String,
    /// When it was received.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    /// Whose it is.
    pub user: String,
    /// The id of its key.
    pub key: Option<String>,
    /// The conversation it belongs to.
    pub session: Option<String>,
    /// Which branch of the session's transcript its messages are.
    pub branch: Option<u32>,
    /// The trace that the client wants it in: its `traceparent` header.
    pub traceparent: Option<String>,
    /// The requested endpoint.
    #[serde(rename = "wire")]
    pub endpoint: Endpoint,
    /// Method and path of a request that was forwarded unchanged, cut to 200 bytes.
    #[serde(default)]
    pub route: Option<String>,
    /// The requested model, as written, cut to 200 bytes; the name of its server if it was forwarded unchanged and
    /// named none.
    pub model: String,
    /// The model that answered; `None` if none did.
    pub answered_by: Option<AnsweredBy>,
    /// Whether the model is one of the table, of the catalogue or of this gateway's recipes and conversation types, or its
    /// provider confirmed it. Any other name is the client's text: reports that group by model do not repeat it.
    #[serde(default)]
    pub model_is_known: bool,
    /// The recipe it ran (`category/name`), for `model: "recipe/…"`.
    pub recipe: Option<String>,
    /// The record of that run.
    pub run: Option<String>,
    /// Whether the reply was to be streamed.
    pub stream: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// The HTTP status that the client received; `error` describes a reply that broke off afterwards.
    pub status: u16,
    /// The class of the error, such as `timeout`; never its payload.
    pub error: Option<String>,
    /// The revision of learned values that it was decided with, 0 if nothing was learned; `None` if there is nothing to
    /// decide, and in records from before revisions.
    #[serde(default)]
    pub revision: Option<u64>,
    /// Whether nobody knows the window of the model: the prompt was counted, not limited, and only floods were shortened.
    #[serde(default)]
    pub unknown_window: bool,
    /// The policy's decision; `None` if there is nothing to decide, as for embeddings.
    pub decision: Option<BudgetDecision>,
    /// What happened to round trips with the model that its client does not know; `None` if there were none.
    #[serde(default)]
    pub round_trips: Option<RoundTripFate>,
    /// What was not shortened although it might have been, and why; empty if nothing was decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_alone: Vec<LeftAlone>,
    /// Fields of the request that a recipe or a conversation left out, such as `temperature`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// What its provider bills apart from tokens of text, such as `web_search_options`: the cost does not contain it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpriced: Vec<String>,
    /// Tokens as we counted them.
    pub tokens: Tokens,
    /// Tokens as reported by the provider, over all calls of this request. For a reply that did not reach its end,
    /// those reported until then, and our own count for the rest; the same applies if its end came without a report.
    pub usage: Option<Usage>,
    /// Whether any of these tokens are our own count rather than reported.
    #[serde(default)]
    pub usage_estimated: bool,
    /// The cost; `None` if the model has no price or the usage is unknown.
    pub bill: Option<Bill>,
    /// What each model used, if a recipe ran: its own model, fallbacks, other layers, and what condensed or was called for
    /// it. Empty for other requests, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelShare>,
    /// Rounds that were sent over budget, which must never happen (R3-2.2).
    #[serde(default)]
    pub violations: u64,
    /// How long it took.
    pub times: Times,
    /// The totals of the record's lists; filled in by [`RequestRecord::new`].
    pub shape: WindowTotals,
}

/// What became of round trips in the history that the client does not know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RoundTrips)]
pub enum RoundTripFate {
    /// They were restored: the model sees its calls and our answers.
    Restored,
    /// The prompt would not fit with them, so it was sent as its client knows it.
    LeftOut,
}

/// Something that was sent as it came, for a reason of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeftAlone {
    /// What, in a few words, such as `2 tool results`.
    pub what: String,
    /// Why, in a sentence.
    pub why: String,
}

/// Tokens of a request as we counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tokens {
    /// Of the system prompt.
    pub system: u64,
    /// Of the tools' schemas.
    pub tools: u64,
    /// Of the messages as sent, framing included.
    pub messages: u64,
    /// Of the whole prompt as received.
    pub before: u64,
    /// Of the whole prompt as sent, or as it would have been.
    pub after: u64,
    /// Maximum tokens of the prompt; 0 if unlimited.
    pub budget: u64,
    /// Kept free in addition to the reply (R3-4.9).
    pub reserve: u64,
    /// That the reply may have.
    pub output: u64,
}

impl Tokens {
    /// Tokens that did not have to be sent.
    pub const fn saved(&self) -> u64 {
        self.before.saturating_sub(self.after)
    }
}

/// What a request cost and would have cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bill {
    /// By the provider's own figures.
    #[schema(value_type = String, example = "0.0105")]
    pub cost: Usd,
    /// The estimated cost, with cache effects, if this and all earlier requests had been sent unchanged. The
    /// difference is the net saving; it may be negative.
    #[schema(value_type = String, example = "0.042")]
    pub without: Usd,
}

/// One part of the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WindowPart {
    /// Its region: `system`, `tools`, `messages` … or a slot of a recipe.
    #[schema(value_type = String)]
    pub slot: Cow<'static, str>,
    /// The author: `system`, `user`, `assistant`, `tool`; empty if messages of several are listed as this one part.
    #[schema(value_type = String)]
    pub role: Cow<'static, str>,
    /// What it is, in a few words, such as the tool's name; the client's text, cut to 200 bytes. Not there when empty.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub label: String,
    /// Its rendition.
    #[schema(value_type = String, example = "condensed")]
    pub rendition: Rendition,
    /// Its tokens; of an absent part those of the marker in its place, if any.
    pub tokens: u64,
    /// Tokens of the whole part.
    pub original_tokens: u64,
    /// Why it has this rendition, in words.
    #[schema(value_type = String)]
    pub reason: Cow<'static, str>,
    /// How to get the original back, unless it is whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>)]
    pub pointer: Option<Pointer>,
    /// The message of the request that it belongs to, from 0; `None` for system prompt and tools.
    pub message: Option<u64>,
    /// The epoch in which its form was decided, from 0.
    pub epoch: u64,
    /// How many adjacent whole messages are listed as this one part; omitted if it is one.
    #[serde(skip_serializing_if = "is_one", default = "one")]
    pub items: u64,
}

const fn one() -> u64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_one(items: &u64) -> bool {
    *items == 1
}

/// A part whose rendition changed: an entry of the compaction map (R3-4.33).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Compaction {
    /// The epoch that this change belongs to; 0 is the rendition a part got when it was first seen.
    pub epoch: u64,
    /// The message, from 0.
    pub message: u64,
    /// What it is, as in [`WindowPart::label`].
    pub label: String,
    /// Its previous rendition.
    #[schema(value_type = String, example = "whole")]
    pub from: Rendition,
    /// The rendition it has now.
    #[schema(value_type = String, example = "pointer")]
    pub to: Rendition,
    /// Tokens it took.
    pub before: u64,
    /// Tokens of the new rendition.
    pub after: u64,
    /// Why, in words.
    pub reason: String,
    /// How to get the original back.
    #[schema(value_type = Option<String>)]
    pub pointer: Option<Pointer>,
    /// The content type it was condensed as (R0-27.6).
    pub content_type: String,
}

/// An original that the model read back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Rehydration {
    /// The pointer as the model wrote it, cut to 200 bytes.
    pub pointer: String,
    /// Whether the requested part exists.
    pub found: bool,
    /// Bytes it got.
    pub bytes: u64,
    /// Tokens that this added to the window.
    pub tokens: u64,
    /// The tool whose result it was, cut to 200 bytes; empty if the window shows no pointer to it, and in records from
    /// before it was recorded.
    #[serde(default)]
    pub tool: String,
    /// Its share of the tokens that the further calls of the model took, prompts and replies.
    #[serde(default)]
    pub spent_tokens: u64,
    /// Its share of what these calls cost; `None` without a price.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "0.0021")]
    pub cost: Option<Usd>,
}

/// How long a request took, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Times {
    /// From the first byte in to the last byte out.
    pub total_us: u64,
    /// Of that, waiting for the upstream or for the client to read.
    pub upstream_us: u64,
    /// Of that, deciding and condensing.
    pub policy_us: u64,
}

impl Times {
    /// What the gateway added: the total without the wait for the upstream.
    pub const fn overhead_us(&self) -> u64 {
        self.total_us.saturating_sub(self.upstream_us)
    }
}

/// One number for each rendition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ByForm)]
pub struct ByRendition {
    /// Of whole parts.
    pub whole: u64,
    /// Of condensed parts.
    pub condensed: u64,
    /// Of parts replaced by a pointer.
    pub pointer: u64,
    /// Of absent parts.
    pub absent: u64,
}

impl ByRendition {
    fn add(&mut self, form: Rendition, number: u64) {
        let sum = match form {
            Rendition::Whole => &mut self.whole,
            Rendition::Condensed => &mut self.condensed,
            Rendition::Pointer => &mut self.pointer,
            Rendition::Absent => &mut self.absent,
        };
        *sum = sum.saturating_add(number);
    }
}

/// The totals of a record's lists, for readers of the head alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Shape)]
pub struct WindowTotals {
    /// Parts by rendition.
    pub parts: ByRendition,
    /// Their tokens by rendition.
    pub tokens: ByRendition,
    /// Pointers that the model sees.
    pub pointers: u64,
    /// Parts whose rendition changed; 0 in a dry run, and if nothing was sent.
    pub compactions: u64,
    /// Of these, parts that became condensed.
    #[serde(default)]
    pub summaries: u64,
    /// Originals that the model read back.
    pub rehydrations: u64,
    /// The newest epoch of the window.
    pub epoch: u64,
}

impl RequestRecord {
    /// An initial record, which counts as abandoned by its client until something else is recorded.
    pub fn blank(id: &str, time: Timestamp, user: &str, endpoint: Endpoint) -> Self {
        let summary = RequestSummary {
            id: id.to_owned(),
            time,
            user: user.to_owned(),
            key: None,
            session: None,
            endpoint,
            route: None,
            model: String::new(),
            answered_by: None,
            model_is_known: false,
            recipe: None,
            run: None,
            stream: false,
            outcome: Outcome::ClientGone,
            status: 200,
            error: None,
            revision: None,
            unknown_window: false,
            decision: None,
            round_trips: None,
            left_alone: Vec::new(),
            ignored: Vec::new(),
            unpriced: Vec::new(),
            tokens: Tokens::default(),
            usage: None,
            usage_estimated: false,
            bill: None,
            models: Vec::new(),
            violations: 0,
            times: Times::default(),
            branch: None,
            traceparent: None,
            shape: WindowTotals::default(),
        };
        Self::new(summary, Vec::new(), Vec::new(), Vec::new())
    }

    /// A record, with its totals worked out.
    pub fn new(
        summary: RequestSummary,
        window: Vec<WindowPart>,
        compactions: Vec<Compaction>,
        rehydrations: Vec<Rehydration>,
    ) -> Self {
        let mut record = Self { summary, window, compactions, rehydrations };
        record.seal();
        record
    }

    /// Computes the totals of the record's lists.
    pub fn seal(&mut self) {
        let changed = if self.summary.took_effect() { self.compactions.as_slice() } else { &[] };
        let is_summary = |compaction: &&Compaction| compaction.to == Rendition::Condensed;
        let mut shape = WindowTotals {
            compactions: changed.len() as u64,
            summaries: changed.iter().filter(is_summary).count() as u64,
            rehydrations: self.rehydrations.len() as u64,
            ..WindowTotals::default()
        };
        for part in &self.window {
            shape.parts.add(part.rendition, part.items);
            shape.tokens.add(part.rendition, part.tokens);
            shape.pointers += u64::from(part.pointer.is_some());
            shape.epoch = shape.epoch.max(part.epoch);
        }
        self.summary.shape = shape;
    }
}

impl RequestSummary {
    /// Records a round with its prompt's size, and whether it was over budget.
    pub fn record_round(
        &mut self,
        policy: &ContextBudgetPolicy,
        rounds: &mut policy::SessionUsage,
        prompt: u64,
    ) {
        let size = |tokens: u64| usize::try_from(tokens).unwrap_or(usize::MAX);
        policy.record_usage(rounds, &self.id, size(prompt), size(self.tokens.reserve));
        self.violations = rounds.violations as u64;
    }

    /// Whether the decision was applied: nothing changes in a dry run, nor if nothing is sent.
    pub fn took_effect(&self) -> bool {
        self.outcome.sent() && !self.decision.as_ref().is_some_and(|decision| decision.dry_run)
    }
}

/// What was saved, in dollars; negative where Larder cost more than it saved.
pub fn saved(cost: Usd, without: Usd) -> String {
    let sign = if cost > without { "-" } else { "" };
    format!("{sign}{}", Usd::from_picos(cost.picos().abs_diff(without.picos())))
}

/// A name that a client chose, cut at a character to [`MAX_NAME_BYTES`].
pub fn cut_name(name: &str) -> String {
    name[..name.floor_char_boundary(MAX_NAME_BYTES)].to_owned()
}
