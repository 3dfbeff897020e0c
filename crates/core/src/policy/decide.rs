//! Deciding a whole conversation: the packer decides its history, and the result is judged against the budget.

use super::REHYDRATE;
use super::budget::{BudgetDecision, BudgetStatus, ContextBudgetPolicy, sum};
use super::conversation::Conversation;
use super::settings::ToolOffer;
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
        if !self.may_change(conversation) {
            return self.unchanged(conversation, before);
        }
        let is_exempt = |tool: &str| self.settings.opts_out(tool);
        let limits = self.limits(conversation, context.counter);
        let history = decide_history(items, &limits, &is_exempt, context);
        let fixed = self.fixed(conversation);
        let changed = history.items.iter().any(|item| item.form != MessageForm::Whole);
        let from_the_first = self.settings.offer_tool == ToolOffer::WithTools && conversation.fixed.tools > 0;
        let offer_tool = changed || from_the_first || items.iter().any(is_ours);
        let unoffered = if offer_tool { 0 } else { conversation.fixed.rehydrate_tool };
        let after =
            fixed.saturating_add(sum(history.items.iter().map(|item| item.tokens))).saturating_sub(unoffered);
        let came = fixed.saturating_add(before).saturating_sub(conversation.fixed.rehydrate_tool);
        let decision = self.judged(conversation, changed, came, after);
        let verdict = match decision.status {
            // A dry run only reports.
            _ if self.settings.dry_run => Verdict::AsItCame,
            BudgetStatus::Reject => Verdict::Refuse,
            _ if offer_tool => Verdict::Edited,
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

    /// The window of a conversation in which nothing may be replaced.
    fn unchanged(&self, conversation: &Conversation<'_>, items: usize) -> DecidedWindow {
        let tokens = self.fixed(conversation).saturating_add(items);
        let mut decision = self.decision(conversation, BudgetStatus::Ok, "it fits".to_owned(), tokens);
        let mut verdict = Verdict::AsItCame;
        if decision.deficit > 0 {
            let why = if self.settings.enabled {
                "the model could not open pointers in it"
            } else {
                "the policy is off"
            };
            decision.status = BudgetStatus::Reject;
            decision.reason = format!("the prompt exceeds its budget, and {why}, so nothing is condensed");
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
            false => (BudgetStatus::Ok, "it fits".to_owned()),
            true if came > budget => {
                (BudgetStatus::NeedsSummary, "the original prompt exceeds its budget".to_owned())
            }
            true => (BudgetStatus::NeedsSummary, "tool results exceed their cap".to_owned()),
        };
        let deficit = came.saturating_sub(budget);
        BudgetDecision { deficit, ..self.decision(conversation, status, reason, after) }
    }
}

/// Whether an item calls Larder's tool or is its result. Providers reject calls to a tool that the request does not
/// define.
fn is_ours(item: &ConversationItem<'_>) -> bool {
    item.rehydrated || item.calls.iter().any(|call| call.name == REHYDRATE)
}
