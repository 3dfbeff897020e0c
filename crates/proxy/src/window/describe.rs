//! What is told of a decided window: tokens by kind, every part with its form and why, and what changed since the
//! request before. Plain data; decides nothing.

use larder_core::pack::Rendition;
use larder_core::policy::{BudgetStatus, Conversation, ConversationItem, DecidedItem, Verdict, Window};
use larder_text::message::Role;

use crate::record::{
    Compaction, Decision, DecisionStatus, Largest, RequestRecord, Tokens, WindowPart, cut_name,
};
use crate::wire::Request;

/// Parts that are told one by one; in longer windows, neighbours that stand whole are told as one.
const MOST_PARTS: usize = 200;
/// Items that a part of a record can stand for; more is no record of ours.
const MOST_ITEMS: usize = 1 << 20;
/// The region of what is sent with every request.
const TOOLS: &str = "tools";

/// The forms that the items of a conversation's last request had.
#[derive(Debug, Clone, Default)]
pub struct Forms(Vec<(Rendition, u64)>);

impl Forms {
    /// Those of a window as it was recorded; none of one that does not say how many items its parts stand for, as records
    /// once did not.
    pub fn of(window: &[WindowPart]) -> Self {
        // Every message has an item, so messages are only passed over where neighbours were told as one.
        let skips = |pair: &[WindowPart]| match (pair[0].message, pair[1].message) {
            (Some(before), Some(after)) => after > before.saturating_add(1),
            _ => false,
        };
        if window.windows(2).any(skips) && window.iter().all(|part| part.items == 1) {
            return Self::default();
        }
        let parts = window.iter().filter(|part| part.slot != TOOLS);
        let items = |part: &WindowPart| usize::try_from(part.items).unwrap_or(0).min(MOST_ITEMS);
        Self(parts.flat_map(|part| vec![(part.rendition, part.tokens); items(part)]).collect())
    }
}

/// Tells `exchange` of a window. `last` are the forms of the request before; gives those of this one.
pub fn describe(
    request: &Request<'_>,
    window: &Window,
    conversation: &Conversation<'_>,
    last: &Forms,
    exchange: &mut RequestRecord,
) -> Forms {
    let decision = &window.decision;
    let sum = |system: bool| -> u64 {
        let of_kind = conversation
            .items
            .iter()
            .zip(&window.items)
            .filter(|(item, _)| (item.role == Role::System) == system);
        of_kind.map(|(_, decided)| number(decided.tokens)).fold(0, u64::saturating_add)
    };
    let offered = if offers(window) { conversation.fixed.rehydrate_tool } else { 0 };
    let head = &mut exchange.summary;
    head.tokens = Tokens {
        system: sum(true),
        tools: number(conversation.fixed.tools + offered),
        messages: sum(false).saturating_add(number(conversation.fixed.framing)),
        before: number(window.tokens_before),
        after: number(if window.verdict == Verdict::AsItCame {
            window.tokens_before
        } else {
            window.tokens_after
        }),
        budget: number(decision.prompt_budget),
        reserve: number(decision.response_reserve),
        output: number(conversation.max_output.unwrap_or(decision.response_reserve)),
    };
    head.decision = Some(Decision {
        status: match decision.status {
            BudgetStatus::Ok => DecisionStatus::Ok,
            BudgetStatus::NeedsSummary => DecisionStatus::NeedsSummary,
            BudgetStatus::Reject => DecisionStatus::Reject,
        },
        reason: decision.reason.clone(),
        deficit: number(decision.deficit),
        emergency_floor: number(decision.emergency_floor),
        largest: decision
            .largest
            .iter()
            .map(|(part, tokens)| Largest { part: part.clone(), tokens: number(*tokens) })
            .collect(),
        dry_run: decision.dry_run,
    });
    exchange.window.clear();
    let tools = number(conversation.fixed.tools + offered);
    if tools > 0 {
        exchange.window.push(fixed_part(TOOLS, tools));
    }
    for (at, (item, decided)) in conversation.items.iter().zip(&window.items).enumerate() {
        let part = part(request, at, item, decided);
        match exchange.window.last_mut() {
            Some(before) if window.items.len() > MOST_PARTS && mergeable(before, &part) => {
                before.tokens += part.tokens;
                before.original_tokens += part.original_tokens;
                before.items += 1;
            }
            _ => exchange.window.push(part),
        }
    }
    exchange.compactions = compactions(request, window, conversation, last);
    Forms(window.items.iter().map(|decided| (decided.form.rendition(), number(decided.tokens))).collect())
}

/// Whether our tool stands in the request that leaves.
pub fn offers(window: &Window) -> bool {
    window.verdict == Verdict::Edited && window.offer_tool
}

fn part(request: &Request<'_>, at: usize, item: &ConversationItem<'_>, decided: &DecidedItem) -> WindowPart {
    WindowPart {
        slot: if item.role == Role::System { "system" } else { "messages" }.to_owned(),
        role: role(item.role).to_owned(),
        label: label(request, at),
        rendition: decided.form.rendition(),
        tokens: number(decided.tokens),
        original_tokens: number(decided.tokens_before),
        reason: decided.reason.as_str().to_owned(),
        pointer: decided.form.substitution().map(|with| with.pointer.clone()),
        message: message(request, at),
        epoch: number(decided.epoch),
        items: 1,
    }
}

fn fixed_part(slot: &str, tokens: u64) -> WindowPart {
    WindowPart {
        slot: slot.to_owned(),
        role: role(Role::System).to_owned(),
        label: String::new(),
        rendition: Rendition::Whole,
        tokens,
        original_tokens: tokens,
        reason: larder_core::pack::Reason::Protected.as_str().to_owned(),
        pointer: None,
        message: None,
        epoch: 0,
        items: 1,
    }
}

/// Whether two neighbours are told as one: both stand whole, and are of one kind.
fn mergeable(before: &WindowPart, part: &WindowPart) -> bool {
    let whole = |part: &WindowPart| part.rendition == Rendition::Whole;
    whole(before) && whole(part) && before.slot == part.slot && before.role == part.role
}

fn compactions(
    request: &Request<'_>,
    window: &Window,
    conversation: &Conversation<'_>,
    last: &Forms,
) -> Vec<Compaction> {
    let decided = window.items.iter().zip(conversation.items).enumerate();
    let changed = decided.filter_map(|(at, (decided, item))| {
        let to = decided.form.rendition();
        // What stood whole, in a record perhaps as one part with others, took what it came with.
        let whole = (Rendition::Whole, number(decided.tokens_before));
        let stood = last.0.get(at).copied().filter(|(form, _)| *form != Rendition::Whole);
        let (from, before) = stood.unwrap_or(whole);
        if from == to {
            return None;
        }
        Some(Compaction {
            epoch: number(decided.epoch),
            message: message(request, at).unwrap_or_default(),
            label: label(request, at),
            from,
            to,
            before,
            after: number(decided.tokens),
            reason: decided.reason.as_str().to_owned(),
            pointer: decided.form.substitution().map(|with| with.pointer.clone()),
            content_type: content_type(item),
        })
    });
    changed.collect()
}

fn message(request: &Request<'_>, at: usize) -> Option<u64> {
    request.items.get(at).and_then(|item| item.message).map(number)
}

/// What an item is, in a few words of the client's.
fn label(request: &Request<'_>, at: usize) -> String {
    let Some(item) = request.items.get(at) else { return String::new() };
    let of_result = item.result.as_ref().and_then(|result| result.name.as_deref());
    let of_call = item.calls.first().map(|call| call.name.as_ref());
    cut_name(of_result.or(of_call).unwrap_or_default())
}

/// What an item is condensed as; only looked at when its form changes.
fn content_type(item: &ConversationItem<'_>) -> String {
    let detected = larder_condense::detect(None, "", false, item.text);
    serde_json::to_value(detected).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The word for a role.
pub const fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

fn number(tokens: usize) -> u64 {
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_does_not_say_what_its_parts_stand_for_tells_no_forms() {
        let part = |message: u64, items: u64, rendition: Rendition| WindowPart {
            slot: "messages".to_owned(),
            message: Some(message),
            items,
            rendition,
            ..fixed_part("", 7)
        };
        let forms = |items: u64, next: u64| {
            let parts = [part(0, items, Rendition::Whole), part(next, 1, Rendition::Pointer)];
            Forms::of(&parts).0.into_iter().map(|(form, _)| form).collect::<Vec<_>>()
        };
        assert_eq!(forms(1, 1), [Rendition::Whole, Rendition::Pointer]);
        assert_eq!(forms(1, 0), [Rendition::Whole, Rendition::Pointer], "two results in one message");
        assert_eq!(forms(3, 3), [Rendition::Whole, Rendition::Whole, Rendition::Whole, Rendition::Pointer]);
        assert_eq!(forms(1, 3), []);
    }
}
