//! What a prompt may take under a model's window, and the decision about one conversation.

use serde::{Deserialize, Serialize};

use super::conversation::Conversation;
use super::settings::PolicySettings;
use super::usage::SessionUsage;
use crate::pack::{CachePrice, ConversationItem, DecisionContext, HistoryLimits};
use larder_text::message::Role;
use larder_text::tokens::Counter;

/// The emergency floor where none is set, as one part in so many of the window (C38).
const FLOOR_SHARE: usize = 20;
/// The trace threshold where none is set, in per cent of the prompt budget (C38).
const THRESHOLD: usize = 80;
/// Parts that a refusal names.
const NAMED: usize = 3;

/// What the policy has to know of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelProfile {
    /// Tokens of prompt and answer together.
    pub window: usize,
    /// Tokens of the longest answer, where known.
    pub max_output: Option<usize>,
    /// Price of a cached input token relative to an uncached one, if known.
    pub cache_price: Option<f64>,
}

/// Keeps the windows of conversations with one model.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextBudgetPolicy {
    pub(super) settings: PolicySettings,
    model: ModelProfile,
    reserve: usize,
    floor: usize,
}

/// What the policy says of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetStatus {
    /// It can go as it is.
    Ok,
    /// It goes once something in it is smaller.
    NeedsSummary,
    /// It cannot fit.
    Reject,
}

impl BudgetStatus {
    /// As events and metrics write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NeedsSummary => "needs_summary",
            Self::Reject => "reject",
        }
    }
}

/// A status with its reason: the payload of the event `context_budget_decision`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetDecision {
    /// What may happen.
    pub status: BudgetStatus,
    /// Why, in a sentence.
    pub reason: String,
    /// Tokens too many: as it came, or, where it is rejected, after all that could be done.
    pub deficit: usize,
    /// Tokens of the prompt that this speaks of.
    pub prompt_tokens: usize,
    /// Tokens that it may have.
    pub prompt_budget: usize,
    /// Tokens kept for the answer.
    pub response_reserve: usize,
    /// Tokens kept free.
    pub emergency_floor: usize,
    /// Nothing was changed for it.
    pub dry_run: bool,
    /// Of a rejected prompt, the three largest parts with their tokens, the largest first.
    pub largest: Vec<(String, usize)>,
}

impl ContextBudgetPolicy {
    /// The policy for one model.
    pub fn from_settings(settings: &PolicySettings, model: &ModelProfile) -> Self {
        let most = model.max_output.unwrap_or(usize::MAX);
        Self {
            reserve: settings.response_reserve.min(most),
            floor: settings.emergency_floor.unwrap_or(model.window / FLOOR_SHARE),
            settings: settings.clone(),
            model: *model,
        }
    }

    /// What the policy was made of.
    pub fn settings(&self) -> &PolicySettings {
        &self.settings
    }

    /// Tokens kept for the answer of a request that allows it `max_output`: exactly those (C34), or the reserve.
    pub fn response_reserve(&self, max_output: Option<usize>) -> usize {
        max_output.unwrap_or(self.reserve)
    }

    /// Maximum tokens of the prompt of such a request (C18): the window without answer and emergency floor.
    pub fn prompt_budget(&self, max_output: Option<usize>) -> usize {
        let left =
            self.model.window.saturating_sub(self.response_reserve(max_output)).saturating_sub(self.floor);
        self.settings.prompt_budget_override.map_or(left, |most| most.min(left))
    }

    /// Tokens of a prompt above which older tool results are compacted when that pays. It does not depend on what a
    /// request allows its answer: the same history must be decided the same way.
    pub fn trace_threshold(&self) -> usize {
        let usual = self.prompt_budget(None).saturating_mul(THRESHOLD) / 100;
        self.settings.trace_threshold_tokens.unwrap_or(usual)
    }

    /// Tokens of the model's window.
    pub fn window(&self) -> usize {
        self.model.window
    }

    /// Tokens that always stay free.
    pub fn emergency_floor(&self) -> usize {
        self.floor
    }

    /// The decision about a conversation with tool results that are about to be added: what
    /// [`decide`](Self::decide) says of both together, and nothing of what would become of them.
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

    /// Notes what a request used, and whether it was over what [`prompt_budget`](Self::prompt_budget) leaves
    /// next to its reserve: `context_budget_violation`, which stays 0 as long as nothing is sent that was rejected (C87). A
    /// dry run enforces nothing and so breaks nothing: its decisions say what would have been refused.
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

    /// Whether anything may be replaced at all.
    pub(super) fn may_change(&self, conversation: &Conversation<'_>) -> bool {
        self.settings.enabled && conversation.can_offer
    }

    /// Whether the settings allow replacing results of this tool that are too large.
    pub fn replaces(&self, tool: &str) -> bool {
        self.settings.enabled && !self.settings.dry_run && !self.settings.opts_out(tool)
    }

    /// Tokens that are sent in any case. Larder's own tool is counted if it may have to be offered.
    pub(super) fn fixed(&self, conversation: &Conversation<'_>) -> usize {
        let fixed = conversation.fixed;
        let tool = if self.may_change(conversation) { fixed.rehydrate_tool } else { 0 };
        sum([fixed.system, fixed.tools, fixed.framing, tool].into_iter())
    }

    pub(super) fn limits(&self, conversation: &Conversation<'_>, counter: &Counter) -> HistoryLimits {
        let fixed = self.fixed(conversation);
        HistoryLimits {
            entry_cap: counter.charge_of(self.settings.entry_cap),
            soft: self.trace_threshold().saturating_sub(fixed),
            hard: self.prompt_budget(conversation.max_output).saturating_sub(fixed),
            low: self.settings.low_watermark,
            protect_last: self.settings.protect_last,
            price: CachePrice {
                cached: self.model.cache_price.unwrap_or(self.settings.cache_price),
                turns: self.settings.expected_turns,
            },
        }
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

    /// The three largest parts as they came, the largest first.
    pub(super) fn largest(&self, conversation: &Conversation<'_>) -> Vec<(String, usize)> {
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
        parts
    }
}

/// What an item is called in receipts and refusals.
pub(super) fn name(at: usize, item: &ConversationItem<'_>) -> String {
    let role = match item.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    format!("message {} ({role})", at + 1)
}

pub(super) fn sum(tokens: impl Iterator<Item = usize>) -> usize {
    tokens.fold(0, usize::saturating_add)
}
