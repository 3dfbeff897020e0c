//! The token budget of a prompt under a model's window, and the decision about one conversation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::conversation::{Conversation, PointerReader};
use super::mechanisms::Mechanisms;
use super::settings::{MIN_ENTRY_CAP, PolicySettings, ToolOffer};
use super::usage::SessionUsage;
use crate::pack::{CachePrice, ConversationItem, DecisionContext, HistoryLimits};
use larder_text::price::CacheShares;
use larder_text::tokens::Counter;

/// The emergency floor where none is set, as one part in so many of the window (C38).
const FLOOR_SHARE: usize = 20;
/// The trace threshold where none is set, in per cent of the prompt budget (C38).
const THRESHOLD: usize = 80;
/// Tokens of an ordinary tool result when it enters, where no cap is set. In recorded agent runs, smaller caps save
/// nothing: they hide what the next steps need, or what later results could refer to (docs/benchmarks.md).
const ENTRY_CAP: usize = 2_000;
/// The same for small windows, as one part in so many of the window.
const ENTRY_CAP_SHARE: usize = 64;
/// How many parts a refusal names.
const NAMED: usize = 3;

/// The window of a model that nobody knows.
pub const UNKNOWN_WINDOW: usize = usize::MAX;

/// The properties of a model that the policy needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelProfile {
    /// Tokens of prompt and reply together; [`UNKNOWN_WINDOW`] if nobody knows: then nothing is refused for its length, and
    /// nothing shortened but floods.
    pub window: usize,
    /// Tokens of the prompt, where the provider limits them apart from the reply; `None` if both share the window.
    pub input_limit: Option<usize>,
    /// Tokens of the longest possible reply, if known.
    pub max_output: Option<usize>,
    /// Prices of the provider's prompt cache, if known.
    pub cache: Option<CacheShares>,
}

/// Keeps conversations with one model within their budget.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextBudgetPolicy {
    /// Shared by its copies: every request takes some.
    pub(super) settings: Arc<PolicySettings>,
    model: ModelProfile,
    reserve: usize,
    floor: usize,
    mechanisms: Mechanisms,
}

/// The policy's verdict on a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = DecisionStatus))]
#[serde(rename_all = "snake_case")]
pub enum BudgetStatus {
    /// Fits as it is, even if some of it is shortened because that is cheaper.
    Ok,
    /// Fits only once something in it is shortened.
    NeedsSummary,
    /// It cannot fit.
    Reject,
}

impl BudgetStatus {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Ok, Self::NeedsSummary, Self::Reject];

    /// The name used in records, events, metrics and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NeedsSummary => "needs_summary",
            Self::Reject => "reject",
        }
    }
}

/// The policy's decision about a conversation and the reason for it: the payload of the event
/// `context_budget_decision`. Records omit the sizes of prompt, budget and reserve here because they store them
/// separately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Decision))]
pub struct BudgetDecision {
    /// The verdict.
    pub status: BudgetStatus,
    /// The reason, in a sentence.
    pub reason: String,
    /// Tokens over budget: of the original prompt, or if it was rejected, after everything possible was done. 0 if it
    /// fits.
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub deficit: usize,
    /// Tokens of the prompt.
    #[serde(skip)]
    pub prompt_tokens: usize,
    /// Maximum tokens of the prompt.
    #[serde(skip)]
    pub prompt_budget: usize,
    /// Tokens reserved for the reply.
    #[serde(skip)]
    pub response_reserve: usize,
    /// Tokens that are always kept free.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub emergency_floor: usize,
    /// The three largest parts of a rejected prompt, largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub largest: Vec<LargestPart>,
    /// Whether the decision was only reported, not enforced.
    pub dry_run: bool,
}

/// A part of a prompt that is too large. Messages are identified by number and role, never by their content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Largest))]
pub struct LargestPart {
    /// Its name, such as `message 4 (tool)`.
    pub part: String,
    /// Tokens of the original part.
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub tokens: usize,
}

impl ContextBudgetPolicy {
    /// Creates the policy for one model.
    pub fn from_settings(settings: &PolicySettings, model: &ModelProfile) -> Self {
        let most = model.max_output.unwrap_or(usize::MAX);
        Self {
            reserve: settings.response_reserve.min(most),
            floor: settings.emergency_floor.unwrap_or(match model.window {
                UNKNOWN_WINDOW => 0,
                window => model.input_limit.unwrap_or(window) / FLOOR_SHARE,
            }),
            settings: Arc::new(settings.clone()),
            model: *model,
            mechanisms: Mechanisms::default(),
        }
    }

    /// The policy with only some of its mechanisms, for evaluations.
    #[must_use]
    pub fn with_mechanisms(self, mechanisms: Mechanisms) -> Self {
        Self { mechanisms, ..self }
    }

    /// The policy for the same model with other settings, and with this window if its own is unknown.
    #[must_use]
    pub fn revised(&self, settings: &PolicySettings, window: Option<usize>) -> Self {
        let window = window.filter(|_| self.model.window == UNKNOWN_WINDOW).unwrap_or(self.model.window);
        let revised = Self::from_settings(settings, &ModelProfile { window, ..self.model });
        revised.with_mechanisms(self.mechanisms)
    }

    /// The settings of the policy.
    pub fn settings(&self) -> &PolicySettings {
        &self.settings
    }

    /// Tokens reserved for the reply: exactly `max_output` if the request sets it (C34), otherwise the configured
    /// reserve.
    pub fn response_reserve(&self, max_output: Option<usize>) -> usize {
        max_output.unwrap_or(self.reserve)
    }

    /// The longest reply that the model gives; `None` if nobody knows.
    pub const fn longest_reply(&self) -> Option<usize> {
        self.model.max_output
    }

    /// Whether prompts have no limit: the window is unknown, and no setting replaces it.
    pub fn is_unlimited(&self) -> bool {
        self.model.window == UNKNOWN_WINDOW && self.settings.prompt_budget_override.is_none()
    }

    /// Maximum prompt tokens of such a request (C18): the window minus reply and emergency floor, or where prompts
    /// have a limit of their own that minus the floor, whatever the reply asks for; `usize::MAX` if [unlimited](Self::is_unlimited).
    pub fn prompt_budget(&self, max_output: Option<usize>) -> usize {
        let left = match (self.model.window, self.model.input_limit) {
            (UNKNOWN_WINDOW, _) => usize::MAX,
            (_, Some(limit)) => limit.saturating_sub(self.floor),
            (window, None) => {
                window.saturating_sub(self.response_reserve(max_output)).saturating_sub(self.floor)
            }
        };
        self.settings.prompt_budget_override.map_or(left, |most| most.min(left))
    }

    /// Prompt tokens above which older tool results are compacted if that saves money. Independent of the request's
    /// reply limit: the same history must always be decided the same way.
    pub fn trace_threshold(&self) -> usize {
        if self.is_unlimited() {
            return usize::MAX;
        }
        let usual = self.prompt_budget(None).saturating_mul(THRESHOLD) / 100;
        self.settings.trace_threshold_tokens.unwrap_or(usual)
    }

    /// What the provider's cache costs, for its usual lifetime.
    pub fn cache_shares(&self) -> CacheShares {
        self.model.cache.unwrap_or(CacheShares {
            minimum: 0,
            read: self.settings.cache_price,
            write: 1.0,
            write_hour: 1.0,
        })
    }

    /// Tokens of the model's window.
    pub fn window(&self) -> usize {
        self.model.window
    }

    /// Tokens that always stay free.
    pub fn emergency_floor(&self) -> usize {
        self.floor
    }

    /// The decision about a conversation with tool results about to be added: what [`decide`](Self::decide) would
    /// report for both together, without the decided window.
    pub fn evaluate(
        &self,
        conversation: &Conversation<'_>,
        pending: &[ConversationItem<'_>],
        context: DecisionContext<'_>,
    ) -> BudgetDecision {
        let items: Vec<ConversationItem<'_>> = conversation.items.iter().chain(pending).copied().collect();
        self.decide(&Conversation { items: &items, ..*conversation }, context).decision
    }

    /// [`evaluate`](Self::evaluate) under the name that callers of the policy's predecessor use (C88).
    pub fn tokens_available(
        &self,
        conversation: &Conversation<'_>,
        pending: &[ConversationItem<'_>],
        context: DecisionContext<'_>,
    ) -> BudgetDecision {
        self.evaluate(conversation, pending, context)
    }

    /// Records what a request used, and counts a `context_budget_violation` if it exceeded the
    /// [`prompt_budget`](Self::prompt_budget) left next to its reserve. The counter stays 0 as long as nothing is
    /// sent that was rejected (C87). A dry run enforces nothing and so violates nothing: its decisions report what
    /// would have been refused.
    pub fn record_usage(
        &self,
        usage: &mut SessionUsage,
        turn_id: &str,
        prompt_tokens: usize,
        response_tokens_reserved: usize,
    ) {
        let budget = self.prompt_budget(Some(response_tokens_reserved));
        let over = !self.settings.dry_run && prompt_tokens > budget;
        usage.record(turn_id, prompt_tokens, response_tokens_reserved, over);
    }

    /// Whether Larder's tool is offered as soon as the request has a pointer.
    pub(super) fn may_offer(&self, conversation: &Conversation<'_>) -> bool {
        self.settings.enabled && conversation.reader == PointerReader::Larder
    }

    /// Whether Larder's tool is offered from the first request on.
    pub(super) fn offers_always(&self, conversation: &Conversation<'_>) -> bool {
        let with_tools = self.settings.offer_tool == ToolOffer::WithTools && conversation.fixed.tools > 0;
        self.may_offer(conversation) && with_tools
    }

    /// Whether results of this tool are never condensed.
    pub fn opts_out(&self, tool: &str) -> bool {
        self.settings.opts_out(tool)
    }

    /// Whether the settings allow replacing results of this tool that are too large.
    pub fn replaces(&self, tool: &str) -> bool {
        self.settings.enabled && !self.settings.dry_run && !self.settings.opts_out(tool)
    }

    /// Tokens that are sent in any case. Larder's own tool is included if it may have to be offered.
    pub(super) fn fixed(&self, conversation: &Conversation<'_>) -> usize {
        let fixed = conversation.fixed;
        let tool = if self.may_offer(conversation) { fixed.rehydrate_tool } else { 0 };
        sum([fixed.system, fixed.tools, fixed.framing, tool].into_iter())
    }

    pub(super) fn limits(&self, conversation: &Conversation<'_>, counter: &Counter) -> HistoryLimits {
        let fixed = self.fixed(conversation);
        let Mechanisms { references, terse_json, caps, tool_pays, epochs, superseded_first } =
            self.mechanisms;
        let entry_cap = if self.is_unlimited() { self.settings.unknown_model_cap } else { self.entry_cap() };
        let entry_cap = if caps { counter.charge_of(entry_cap) } else { usize::MAX };
        let paid = self.offers_always(conversation) || !self.may_offer(conversation) || !tool_pays;
        // Where the model cannot open a pointer, compacting early would save money at its expense.
        let soft = match conversation.reader {
            PointerReader::Larder | PointerReader::Client if epochs => self.trace_threshold(),
            _ => usize::MAX,
        };
        // The marks of this request price the whole history that it replays: earlier ones are not in it. A client that
        // changes their lifetime within a conversation may move its prefix once; assuming the usual lifetime would
        // misjudge every epoch of those that cache for an hour, and of those that cache nothing.
        let cache = self.cache_shares().of_request(conversation.writes);
        HistoryLimits {
            entry_cap,
            flood: if self.is_unlimited() { entry_cap } else { usize::MAX },
            first_saving: if paid { 0 } else { conversation.fixed.rehydrate_tool },
            refers_above: conversation.refers_above && references,
            terse_json,
            superseded_first,
            soft: soft.saturating_sub(fixed),
            hard: self.prompt_budget(conversation.max_output).saturating_sub(fixed),
            low: self.settings.low_watermark,
            protect_last: self.settings.protect_last,
            price: CachePrice {
                // What comes before the messages counts towards the shortest prompt that is cached.
                cache: CacheShares { minimum: cache.minimum.saturating_sub(fixed), ..cache },
                turns: self.settings.expected_turns,
            },
        }
    }

    /// Maximum tokens of an ordinary result of this tool when it enters; `None` if its results always stay whole.
    pub(super) fn cap_of(&self, tool: &str, limits: &HistoryLimits, counter: &Counter) -> Option<usize> {
        let own = || self.settings.tool_cap(tool).filter(|_| self.mechanisms.caps && !self.is_unlimited());
        let cap = || own().map_or(limits.entry_cap, |cap| counter.charge_of(cap));
        (!self.settings.opts_out(tool)).then(cap)
    }

    /// Maximum tokens of an ordinary result when it enters.
    fn entry_cap(&self) -> usize {
        let usual = || (self.model.window / ENTRY_CAP_SHARE).clamp(MIN_ENTRY_CAP, ENTRY_CAP);
        self.settings.entry_cap.unwrap_or_else(usual)
    }

    pub(super) fn decision(
        &self,
        conversation: &Conversation<'_>,
        status: BudgetStatus,
        reason: String,
        prompt_tokens: usize,
    ) -> BudgetDecision {
        let prompt_budget = self.prompt_budget(conversation.max_output);
        BudgetDecision {
            status,
            reason,
            deficit: prompt_tokens.saturating_sub(prompt_budget),
            prompt_tokens,
            prompt_budget,
            response_reserve: self.response_reserve(conversation.max_output),
            emergency_floor: self.floor,
            dry_run: self.settings.dry_run,
            largest: Vec::new(),
        }
    }

    /// The three largest original parts, largest first.
    pub(super) fn largest(&self, conversation: &Conversation<'_>) -> Vec<LargestPart> {
        let fixed = conversation.fixed;
        let mut parts = vec![
            ("system prompt".to_owned(), fixed.system),
            ("tool definitions".to_owned(), fixed.tools),
            ("framing".to_owned(), fixed.framing),
        ];
        let items = conversation.items.iter().enumerate();
        parts.extend(items.map(|(at, item)| (name(at, item), item.total_tokens())));
        parts.sort_by_key(|&(_, tokens)| std::cmp::Reverse(tokens));
        parts.truncate(NAMED);
        parts.into_iter().map(|(part, tokens)| LargestPart { part, tokens }).collect()
    }
}

/// The name of an item in receipts and refusals.
pub(super) fn name(at: usize, item: &ConversationItem<'_>) -> String {
    let role = item.role.as_str();
    format!("message {} ({role})", at + 1)
}

pub(super) fn sum(tokens: impl Iterator<Item = usize>) -> usize {
    tokens.fold(0, usize::saturating_add)
}
