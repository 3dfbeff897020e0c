//! What became of a conversation: the decision, every item's form, and the receipt that explains each token.

use std::sync::Arc;

use super::budget::{BudgetDecision, ContextBudgetPolicy, Status, name, sum};
use super::conversation::{Conversation, Item};
use crate::pack::{
    Budget, Epoch, Ledger, NextRung, Original, PartReceipt, Reason, Receipt, Refusal, Rendition, Replaced,
    SlotLedger, Stands,
};
use larder_text::hash::ContentHash;
use larder_text::message::Role;
use larder_text::tokens::Counter;

/// What to do with the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Send it as it came.
    AsItCame,
    /// Send it with what was decided for its items, and with our tool where that is offered.
    Edited,
    /// Send nothing.
    Refuse,
}

/// What became of one item.
#[derive(Debug, Clone)]
pub struct Decided {
    /// Its form.
    pub stands: Stands,
    /// Tokens of the item as it came.
    pub tokens_before: usize,
    /// Tokens of the item as it stands.
    pub tokens: usize,
    /// Why.
    pub reason: Reason,
    /// The epoch in which it was decided; 0 when it entered before the first.
    pub epoch: usize,
}

/// A conversation with every item decided.
#[derive(Debug)]
pub struct Window {
    /// The decision with its reason; under a dry run, what would have been done.
    pub decision: BudgetDecision,
    /// What to do.
    pub verdict: Verdict,
    /// Per item of the conversation.
    pub items: Vec<Decided>,
    /// Put our tool into the request: where pointers stand, and where it was called before. It is there from a
    /// conversation's first request on where the client has tools and the settings say so: adding it when the first
    /// pointer comes moves the provider's cached prefix.
    pub offer_tool: bool,
    /// When compaction last moved the prefix; `moved_prefix` says whether it did since the last request.
    pub epoch: Epoch,
    /// Tokens of the prompt as it came.
    pub tokens_before: usize,
    /// Tokens of the prompt as decided, our tool included.
    pub tokens_after: usize,
    /// What the marks of left-out items lead to.
    pub(super) notes: Vec<Original>,
}

/// Bytes that a pointer in the window leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept<'a> {
    /// Their hash, if it is known already.
    pub hash: Option<ContentHash>,
    /// The bytes.
    pub text: &'a str,
    /// What they are, in a word.
    pub kind: &'static str,
    /// One line for people.
    pub display: String,
}

impl Window {
    /// Everything that must be stored before the request leaves; `items` are those that were decided.
    pub fn originals<'a>(&'a self, items: &'a [Item<'a>]) -> impl Iterator<Item = Kept<'a>> {
        let replaced = items.iter().zip(&self.items).enumerate().filter_map(|(at, (item, decided))| {
            let replaced = matches!(decided.stands, Stands::Replaced(_));
            let kept =
                || Kept { hash: Some(item.hash), text: item.text, kind: "part", display: name(at, item) };
            replaced.then(kept)
        });
        let note = |note: &'a Original| Kept {
            hash: None,
            text: &note.text,
            kind: note.kind,
            display: note.display.clone(),
        };
        replaced.chain(self.notes.iter().map(note))
    }

    /// Pointers that stand in the window.
    pub fn pointers(&self) -> usize {
        let points =
            |decided: &&Decided| matches!(decided.stands, Stands::Replaced(_) | Stands::DroppedFor(_));
        self.items.iter().filter(points).count()
    }

    /// The receipt of the window, in the packer's own form.
    pub fn receipt(
        &self,
        policy: &ContextBudgetPolicy,
        conversation: &Conversation<'_>,
        counter: &Counter,
    ) -> Receipt {
        let items = || conversation.items.iter().zip(&self.items);
        let fixed = self.tokens_after.saturating_sub(sum(self.items.iter().map(|decided| decided.tokens)));
        let budget = self.decision.prompt_budget;
        let slot = |slot: &'static str| {
            let inside = items().filter(|(item, _)| slot_of(item) == slot);
            let tokens = sum(inside.map(|(_, decided)| decided.tokens));
            let soft_trigger = slot == HISTORY && self.tokens_after > policy.trace_threshold();
            SlotLedger { name: slot.to_owned(), allowed: budget, tokens, soft_trigger }
        };
        let output = self.decision.response_reserve;
        let total = budget.saturating_add(output).saturating_add(self.decision.emergency_floor);
        let refused = (self.decision.status == Status::Reject)
            .then(|| Refusal { deficit: self.decision.deficit, parts: self.decision.largest.clone() });
        Receipt {
            budget: Ledger {
                limits: Budget {
                    total,
                    window: policy.window(),
                    output,
                    response_reserve: 0,
                    emergency_floor: self.decision.emergency_floor,
                },
                available: budget,
                framing: fixed,
                used: self.tokens_after,
                slots: vec![slot(SYSTEM), slot(HISTORY)],
                tokenizer: counter.name().into(),
                label: counter.label(),
            },
            total: self.tokens_after,
            refused,
            parts: items().enumerate().map(|(at, (item, decided))| part(at, item, decided)).collect(),
            epoch: Some(self.epoch),
        }
    }
}

const SYSTEM: &str = "system";
const HISTORY: &str = "history";

fn slot_of(item: &Item<'_>) -> &'static str {
    if item.role == Role::System { SYSTEM } else { HISTORY }
}

fn part(at: usize, item: &Item<'_>, decided: &Decided) -> PartReceipt {
    let made: Option<&Replaced> = match &decided.stands {
        Stands::Whole | Stands::Dropped => None,
        Stands::Replaced(made) | Stands::DroppedFor(made) => Some(made),
    };
    let rendition = match &decided.stands {
        Stands::Whole => Rendition::Whole,
        Stands::Replaced(made) => made.rendition,
        Stands::Dropped | Stands::DroppedFor(_) => Rendition::Absent,
    };
    let whole = NextRung { rendition: Rendition::Whole, tokens: decided.tokens_before };
    PartReceipt {
        id: format!("message {}", at + 1).into(),
        slot: slot_of(item).into(),
        source: Arc::from(name(at, item)),
        bytes: None,
        lines: None,
        rendition,
        tokens: decided.tokens,
        original_tokens: Some(decided.tokens_before),
        reason: decided.reason,
        pointer: made.map(|made| made.pointer.clone()),
        gaps: made.map(|made| made.gaps.clone()).unwrap_or_default(),
        author: None,
        next: (rendition != Rendition::Whole).then_some(whole),
    }
}
