//! Deciding a whole conversation: the packer decides its history, and the result is judged against the budget.

use super::budget::{BudgetDecision, BudgetStatus, ContextBudgetPolicy, sum};
use super::conversation::Conversation;
use super::window::{DecidedWindow, Verdict};
use crate::pack::{
    ConversationItem, DecidedItem, DecisionContext, Epoch, History, MessageForm, PartReason, decide_history,
};

impl ContextBudgetPolicy {
    /// Decides every item. A refusal is a decision, too: it reports how many tokens over budget the prompt is and
    /// which parts cause it.
    ///
    /// The same settings, model and history produce the same bytes. A growing history keeps the decisions about its
    /// beginning, except where [`DecidedWindow::epoch`] reports that the prefix moved.
    pub fn decide(&self, conversation: &Conversation<'_>, context: DecisionContext<'_>) -> DecidedWindow {
        let capped = self.is_unlimited().then(|| self.only_floods(conversation, context));
        let conversation = match &capped {
            Some(items) => &Conversation { items, ..*conversation },
            None => conversation,
        };
        let items = conversation.items;
        let before = sum(items.iter().map(ConversationItem::total_tokens));
        if !self.settings.enabled {
            return self.unchanged(conversation, before);
        }
        let limits = self.limits(conversation, context.counter);
        let cap_of = |tool: &str| self.cap_of(tool, &limits, context.counter);
        let history = decide_history(items, &limits, &cap_of, context);
        let fixed = self.fixed(conversation);
        let changed = history.items.iter().any(|item| item.form != MessageForm::Whole);
        let hides = history.items.iter().any(|item| item.form.hides());
        let needs_tool = hides || conversation.needs_tool || self.offers_always(conversation);
        let offer_tool = needs_tool && self.may_offer(conversation);
        let tool = if self.may_offer(conversation) { conversation.fixed.rehydrate_tool } else { 0 };
        let unoffered = if offer_tool { 0 } else { tool };
        let after =
            fixed.saturating_add(sum(history.items.iter().map(|item| item.tokens))).saturating_sub(unoffered);
        let came = fixed.saturating_add(before).saturating_sub(tool);
        let decision = self.judged(conversation, changed, came, after);
        let verdict = match decision.status {
            // A dry run only reports.
            _ if self.settings.dry_run => Verdict::AsItCame,
            BudgetStatus::Reject => Verdict::Refuse,
            _ if offer_tool || changed => Verdict::Edited,
            _ => Verdict::AsItCame,
        };
        let History { items, epoch, originals } = history;
        DecidedWindow {
            decision,
            verdict,
            items,
            offer_tool,
            epoch,
            tokens_before: came,
            tokens_after: after,
            notes: originals,
        }
    }

    /// The items, of which only results above the cap for unknown models may be shortened.
    fn only_floods<'a>(
        &self,
        conversation: &Conversation<'a>,
        context: DecisionContext<'_>,
    ) -> Vec<ConversationItem<'a>> {
        let cap = context.counter.charge_of(self.settings.unknown_model_cap);
        let capped = |item: &ConversationItem<'a>| ConversationItem {
            summarizable: item.summarizable && item.tokens > cap,
            ..*item
        };
        conversation.items.iter().map(capped).collect()
    }

    /// The window of a conversation while condensing is switched off.
    fn unchanged(&self, conversation: &Conversation<'_>, items: usize) -> DecidedWindow {
        let tokens = self.fixed(conversation).saturating_add(items);
        let mut decision = self.decision(conversation, BudgetStatus::Ok, "it fits".to_owned(), tokens);
        let mut verdict = Verdict::AsItCame;
        if decision.deficit > 0 {
            decision.status = BudgetStatus::Reject;
            decision.reason =
                "the prompt exceeds its budget, and condensing is switched off (policy.enabled or \
                 policy.compression_enabled)"
                    .to_owned();
            decision.largest = self.largest(conversation);
            if !self.settings.dry_run {
                verdict = Verdict::Refuse;
            }
        }
        let whole = |item: &ConversationItem<'_>| {
            let tokens = item.total_tokens();
            let (form, reason) = (MessageForm::Whole, PartReason::Fits);
            DecidedItem { form, tokens_before: tokens, tokens, reason, epoch: 0 }
        };
        DecidedWindow {
            decision,
            verdict,
            items: conversation.items.iter().map(whole).collect(),
            offer_tool: false,
            epoch: Epoch { number: 0, at_message: 0, from_message: 0, moved_prefix: false },
            tokens_before: tokens,
            tokens_after: tokens,
            notes: Vec::new(),
        }
    }

    fn judged(
        &self,
        conversation: &Conversation<'_>,
        changed: bool,
        came: usize,
        after: usize,
    ) -> BudgetDecision {
        let budget = self.prompt_budget(conversation.max_output);
        if after > budget {
            let reason =
                "the prompt exceeds its budget even with everything condensed that can be".to_owned();
            let largest = self.largest(conversation);
            return BudgetDecision {
                largest,
                ..self.decision(conversation, BudgetStatus::Reject, reason, after)
            };
        }
        let (status, reason) = match changed {
            false => (BudgetStatus::Ok, "it fits"),
            true if came > budget => (BudgetStatus::NeedsSummary, "the original prompt exceeds its budget"),
            true => (BudgetStatus::Ok, "it fits; tool results are shortened where that pays"),
        };
        let reason = reason.to_owned();
        let deficit = came.saturating_sub(budget);
        BudgetDecision { deficit, ..self.decision(conversation, status, reason, after) }
    }
}
