//! Deciding a whole conversation: the packer's decisions about its history, judged against the budget.

use super::REHYDRATE;
use super::budget::{BudgetDecision, ContextBudgetPolicy, Status, sum};
use super::conversation::{Conversation, Item, entries};
use super::settings::Offer;
use super::window::{Decided, Verdict, Window};
use crate::pack::{Entry, Epoch, Fate, History, Means, Reason, Rendition, Stands, decide_history};
use larder_text::message::Role;

impl ContextBudgetPolicy {
    /// Decides every item. A refusal is a decision, too: it says how many tokens are missing and where they are.
    ///
    /// The same settings, model and history give the same bytes; a history that grows keeps what was decided for its
    /// beginning, except where [`Window::epoch`] says that the prefix moved.
    pub fn decide(&self, conversation: &Conversation<'_>, means: Means<'_>) -> Window {
        let items = conversation.items;
        let before = sum(items.iter().map(Item::whole));
        if !self.may_change(conversation) {
            return self.unchanged(conversation, before);
        }
        let entries = entries(items, &self.settings, means.counter);
        let history = decide_history(&entries, &self.limits(conversation, means.counter), means);
        let fixed = self.fixed(conversation);
        let shrunk = history.stands.iter().any(|stands| *stands != Stands::Whole);
        let from_the_first = self.settings.offer_tool == Offer::WithTools && conversation.fixed.tools > 0;
        let offer_tool = shrunk || from_the_first || items.iter().any(is_ours);
        let unoffered = if offer_tool { 0 } else { conversation.fixed.rehydrate_tool };
        let after = fixed.saturating_add(sum(history.costs.iter().copied())).saturating_sub(unoffered);
        let came = fixed.saturating_add(before).saturating_sub(conversation.fixed.rehydrate_tool);
        let decision = self.judged(conversation, shrunk, came, after);
        let verdict = match decision.status {
            // Only reported (R3-5.1).
            _ if self.settings.dry_run => Verdict::AsItCame,
            Status::Reject => Verdict::Refuse,
            _ if offer_tool => Verdict::Edited,
            _ => Verdict::AsItCame,
        };
        let epoch = Epoch { moved_prefix: moved(&entries, &history.epoch), ..history.epoch };
        let items = decided(&entries, &history);
        let History { originals, .. } = history;
        Window {
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

    /// The window of a conversation in which nothing may be replaced.
    fn unchanged(&self, conversation: &Conversation<'_>, items: usize) -> Window {
        let tokens = self.fixed(conversation).saturating_add(items);
        let mut decision = self.decision(conversation, Status::Ok, "it fits".to_owned(), tokens);
        let mut verdict = Verdict::AsItCame;
        if decision.deficit > 0 {
            let why = if self.settings.enabled {
                "a pointer could not be opened in it"
            } else {
                "the policy is off"
            };
            decision.status = Status::Reject;
            decision.reason = format!("the prompt exceeds its budget, and {why}, so nothing is condensed");
            decision.largest = self.largest(conversation);
            if !self.settings.dry_run {
                verdict = Verdict::Refuse;
            }
        }
        let whole = |item: &Item<'_>| {
            let tokens = item.whole();
            Decided { stands: Stands::Whole, tokens_before: tokens, tokens, reason: Reason::Fits, epoch: 0 }
        };
        Window {
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
        shrunk: bool,
        came: usize,
        after: usize,
    ) -> BudgetDecision {
        let budget = self.prompt_budget(conversation.max_output);
        if after > budget {
            let reason =
                "even with everything condensed that may be, the prompt exceeds its budget".to_owned();
            let largest = self.largest(conversation);
            return BudgetDecision { largest, ..self.decision(conversation, Status::Reject, reason, after) };
        }
        let (status, reason) = match shrunk {
            false => (Status::Ok, "it fits".to_owned()),
            true if came > budget => {
                (Status::NeedsSummary, "the prompt exceeds its budget as it came".to_owned())
            }
            true => (Status::NeedsSummary, "tool results exceed what they may take".to_owned()),
        };
        let deficit = came.saturating_sub(budget);
        BudgetDecision { deficit, ..self.decision(conversation, status, reason, after) }
    }
}

/// Whether an item calls our tool or is its result. Providers refuse calls of a tool that the request does not define.
fn is_ours(item: &Item<'_>) -> bool {
    item.rehydrated || item.calls.iter().any(|call| call.name == REHYDRATE)
}

/// Whether the newest epoch is newer than the last request, which ended where the model last began to speak.
fn moved(entries: &[Entry<'_>], epoch: &Epoch) -> bool {
    let spoke = entries.iter().rposition(|entry| entry.role == Role::Assistant);
    spoke.is_some_and(|at| epoch.number > 0 && epoch.at_message > entries[at].group)
}

fn decided(entries: &[Entry<'_>], history: &History) -> Vec<Decided> {
    let one = |(at, stands): (usize, &Stands)| {
        let entry = &entries[at];
        Decided {
            stands: stands.clone(),
            tokens_before: entry.tokens.saturating_add(entry.beside),
            tokens: history.costs[at],
            reason: reason(entry, stands, history.since[at]),
            epoch: history.since[at],
        }
    };
    history.stands.iter().enumerate().map(one).collect()
}

fn reason(entry: &Entry<'_>, stands: &Stands, since: usize) -> Reason {
    match stands {
        Stands::Whole => match entry.fate {
            Fate::Verbatim => Reason::Critical,
            Fate::Kept if entry.role == Role::Tool => Reason::Protected,
            _ => Reason::Fits,
        },
        Stands::Dropped | Stands::DroppedFor(_) => Reason::GroupDropped,
        Stands::Replaced(_) if since > 0 => Reason::CallOverBudget,
        Stands::Replaced(made) if made.tells_all && !made.gaps.is_empty() => Reason::StandsAbove,
        Stands::Replaced(made) if made.rendition == Rendition::Pointer => Reason::PinsTooLarge,
        Stands::Replaced(_) => Reason::OverEntryCap,
    }
}
