//! A decided conversation: the decision, the outcome for every item, and the receipt that accounts for each token.

use std::sync::Arc;

use super::budget::{BudgetDecision, BudgetStatus, ContextBudgetPolicy, name, sum};
use super::conversation::Conversation;
use crate::pack::{
    BudgetLedger, CallBudget, ConversationItem, DecidedItem, Epoch, MessageForm, NextRung, PackOriginal,
    PackRefusal, PartKind, PartReceipt, Receipt, RefusalLimit, Rendition, SlotLedger,
};
use larder_text::hash::ContentHash;
use larder_text::message::Role;
use larder_text::tokens::Counter;

/// How to proceed with the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Send it unchanged.
    AsItCame,
    /// Send the decided items, and Larder's tool if it is offered.
    Edited,
    /// Refuse it.
    Refuse,
}

/// A conversation with every item decided.
#[derive(Debug)]
pub struct DecidedWindow {
    /// The decision with its reason; in a dry run, the decision that would have been enforced.
    pub decision: BudgetDecision,
    /// How to proceed.
    pub verdict: Verdict,
    /// The decision for each item of the conversation.
    pub items: Vec<DecidedItem>,
    /// Whether the request needs Larder's tool: because it contains pointers, because the tool was called before, or
    /// because the settings offer it from the first request on. Adding it later moves the provider's cached prefix.
    pub offer_tool: bool,
    /// When compaction last moved the prefix; `moved_prefix` says whether it did since the last request.
    pub epoch: Epoch,
    /// Tokens of the original prompt.
    pub tokens_before: usize,
    /// Tokens of the decided prompt, Larder's tool included.
    pub tokens_after: usize,
    /// The originals behind the markers of dropped items.
    pub(super) notes: Vec<PackOriginal>,
}

/// Original content that a pointer in the window refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowOriginal<'a> {
    /// The hash, if already known.
    pub hash: Option<ContentHash>,
    /// The content.
    pub text: &'a str,
    /// A one-word kind, such as `part`.
    pub kind: &'static str,
    /// A one-line description for people.
    pub display: String,
}

impl DecidedWindow {
    /// Everything that must be stored before the request is sent; `items` must be those that were decided.
    pub fn originals<'a>(
        &'a self,
        items: &'a [ConversationItem<'a>],
    ) -> impl Iterator<Item = WindowOriginal<'a>> {
        let replaced = items.iter().zip(&self.items).enumerate().filter_map(|(at, (item, decided))| {
            let replaced = matches!(decided.form, MessageForm::Replaced(_)) && decided.form.hides();
            let kept = || WindowOriginal {
                hash: Some(item.hash),
                text: item.text,
                kind: "part",
                display: name(at, item),
            };
            replaced.then(kept)
        });
        let note = |note: &'a PackOriginal| WindowOriginal {
            hash: None,
            text: &note.text,
            kind: note.kind,
            display: note.display.clone(),
        };
        replaced.chain(self.notes.iter().map(note))
    }

    /// The number of pointers in the window.
    pub fn pointers(&self) -> usize {
        self.items.iter().filter(|decided| decided.form.pointer().is_some()).count()
    }

    /// The receipt of the window, in the packer's format.
    pub fn receipt(
        &self,
        policy: &ContextBudgetPolicy,
        conversation: &Conversation<'_>,
        counter: &Counter,
    ) -> Receipt {
        let items = || conversation.items.iter().zip(&self.items);
        let fixed = self.tokens_after.saturating_sub(sum(self.items.iter().map(|decided| decided.tokens)));
        let budget = self.decision.prompt_budget;
        let hides = |decided: &DecidedItem| decided.tokens_before.saturating_sub(decided.tokens);
        let hidden = sum(self.items.iter().map(hides));
        let slot = |slot: &'static str| {
            let inside = items().filter(|(item, _)| slot_of(item) == slot);
            let tokens = sum(inside.map(|(_, decided)| decided.tokens));
            let soft_trigger = slot == HISTORY && self.tokens_after > policy.trace_threshold();
            SlotLedger { name: slot.to_owned(), allowed: budget, tokens, soft_trigger, spans: Vec::new() }
        };
        let output = self.decision.response_reserve;
        let total = budget.saturating_add(output).saturating_add(self.decision.emergency_floor);
        let refused = (self.decision.status == BudgetStatus::Reject).then(|| PackRefusal {
            deficit: self.decision.deficit,
            limit: RefusalLimit::Window,
            parts: self.decision.largest.iter().map(|large| (large.part.clone(), large.tokens)).collect(),
            switched_off: None,
        });
        Receipt {
            budget: BudgetLedger {
                limits: CallBudget {
                    total,
                    window: policy.window(),
                    output,
                    response_reserve: 0,
                    emergency_floor: self.decision.emergency_floor,
                    declared: None,
                },
                available: budget,
                kept_free: 0,
                framing: fixed,
                used: self.tokens_after,
                slots: vec![slot(SYSTEM), slot(HISTORY)],
                tokenizer: counter.name().into(),
                label: counter.label(),
            },
            total: self.tokens_after,
            whole: self.tokens_after.saturating_add(hidden),
            whole_is_estimate: false,
            refused,
            parts: items().enumerate().map(|(at, (item, decided))| part(at, item, decided)).collect(),
            epoch: Some(self.epoch),
        }
    }
}

const SYSTEM: &str = "system";
const HISTORY: &str = "history";

fn slot_of(item: &ConversationItem<'_>) -> &'static str {
    if item.role == Role::System { SYSTEM } else { HISTORY }
}

fn part(at: usize, item: &ConversationItem<'_>, decided: &DecidedItem) -> PartReceipt {
    let (with, rendition) = (decided.form.substitution(), decided.form.rendition());
    let whole = NextRung { rendition: Rendition::Whole, tokens: decided.tokens_before };
    PartReceipt {
        id: format!("message {}", at + 1).into(),
        kind: Some(match item.role {
            Role::System => PartKind::RolePrompt,
            Role::Tool => PartKind::ToolResults,
            Role::User | Role::Assistant => PartKind::Context,
        }),
        slot: slot_of(item).into(),
        source: Arc::from(name(at, item)),
        bytes: None,
        lines: None,
        rendition,
        tokens: decided.tokens,
        original_tokens: Some(decided.tokens_before),
        reason: decided.reason,
        pointer: decided.form.pointer().cloned(),
        gaps: with.map(|with| with.gaps.clone()).unwrap_or_default(),
        author: None,
        next: (rendition != Rendition::Whole).then_some(whole),
    }
}
