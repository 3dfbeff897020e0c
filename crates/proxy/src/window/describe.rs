//! The report on a decided window: tokens by kind, every part with its rendition and the reason, and the changes
//! since the previous request. Plain data; decides nothing.

use std::borrow::Cow;

use larder_core::pack::Rendition;
use larder_core::policy::{
    BudgetDecision, Conversation, ConversationItem, DecidedItem, DecidedWindow, Verdict,
};
use larder_text::message::Role;

use super::{Kinds, kind_of};
use crate::record::{Compaction, LeftAlone, RequestRecord, Tokens, WindowPart, cut_name};
use crate::wire::Request;

/// Parts that are listed one by one. In longer windows, which otherwise would be listed anew with each request of a long
/// conversation, small whole neighbours are listed as one.
const MAX_PARTS: usize = 64;
/// A part is small if it has less than one in this many of the window's tokens.
const SMALL_SHARE: usize = 50;
/// Maximum items per part in a valid record.
const MAX_ITEMS: usize = 1 << 20;
/// The region of parts that are sent with every request.
const TOOLS: &str = "tools";

/// The report on a decided window, for the record of its request.
#[derive(Debug)]
pub struct WindowReport {
    tokens: Tokens,
    decision: BudgetDecision,
    window: Vec<WindowPart>,
    compactions: Vec<Compaction>,
    moved_prefix: bool,
    left_alone: Vec<LeftAlone>,
}

impl WindowReport {
    /// Whether an epoch was declared since the last request of the conversation: the prompt does not extend that one's.
    pub fn moved_prefix(&self) -> bool {
        self.moved_prefix
    }

    /// Puts the report into the record of its request.
    pub fn write_to(self, record: &mut RequestRecord) {
        record.summary.tokens = self.tokens;
        record.summary.decision = Some(self.decision);
        record.window = self.window;
        record.compactions = self.compactions;
        record.summary.left_alone = self.left_alone;
    }
}

/// The rendition and the tokens of each message of a conversation's last request, read from the window in its record.
#[derive(Debug, Clone, Default)]
pub struct LastRenditions(Vec<(Rendition, u64)>);

impl LastRenditions {
    /// The forms in a recorded window; none if the record, like old ones, does not say how many items its parts
    /// cover.
    pub fn from_window(window: &[WindowPart]) -> Self {
        // Every message has an item, so messages are only skipped where neighbours were listed as one.
        let skips = |pair: &[WindowPart]| match (pair[0].message, pair[1].message) {
            (Some(before), Some(after)) => after > before.saturating_add(1),
            _ => false,
        };
        if window.windows(2).any(skips) && window.iter().all(|part| part.items == 1) {
            return Self::default();
        }
        let parts = window.iter().filter(|part| part.slot != TOOLS);
        let items = |part: &WindowPart| usize::try_from(part.items).unwrap_or(0).min(MAX_ITEMS);
        Self(parts.flat_map(|part| std::iter::repeat_n((part.rendition, part.tokens), items(part))).collect())
    }

    /// The form of the message at this place, unless it was sent whole. Whole messages may share a part, so their own
    /// tokens are unknown.
    fn reduced(&self, at: usize) -> Option<(Rendition, u64)> {
        self.0.get(at).copied().filter(|(rendition, _)| *rendition != Rendition::Whole)
    }
}

/// Reports on a window. `last` are the renditions of the request before.
pub fn describe(
    request: &Request<'_>,
    window: &DecidedWindow,
    conversation: &Conversation<'_>,
    last: &LastRenditions,
    kinds: &Kinds,
    left_alone: Vec<LeftAlone>,
) -> WindowReport {
    let offered = if offers(window) { conversation.fixed.rehydrate_tool } else { 0 };
    let tools = number(conversation.fixed.tools + offered);
    WindowReport {
        tokens: tokens(window, conversation, tools),
        decision: window.decision.clone(),
        window: parts(request, window, conversation, tools),
        compactions: compactions(request, window, conversation, last, kinds),
        moved_prefix: window.epoch.moved_prefix,
        left_alone,
    }
}

fn tokens(window: &DecidedWindow, conversation: &Conversation<'_>, tools: u64) -> Tokens {
    let decision = &window.decision;
    let sum = |system: bool| -> u64 {
        let items = conversation.items.iter().zip(&window.items);
        let of_kind = items.filter(|(item, _)| (item.role == Role::System) == system);
        of_kind.map(|(_, decided)| number(decided.tokens)).fold(0, u64::saturating_add)
    };
    let after = if window.verdict == Verdict::AsItCame { window.tokens_before } else { window.tokens_after };
    Tokens {
        system: sum(true),
        tools,
        messages: sum(false).saturating_add(number(conversation.fixed.framing)),
        before: number(window.tokens_before),
        after: number(after),
        budget: if decision.prompt_budget == usize::MAX { 0 } else { number(decision.prompt_budget) },
        reserve: number(decision.response_reserve),
        output: number(conversation.max_output.unwrap_or(decision.response_reserve)),
    }
}

fn parts(
    request: &Request<'_>,
    window: &DecidedWindow,
    conversation: &Conversation<'_>,
    tools: u64,
) -> Vec<WindowPart> {
    let mut parts: Vec<WindowPart> = (tools > 0).then(|| fixed_part(TOOLS, tools)).into_iter().collect();
    let large = number(window.tokens_before / SMALL_SHARE);
    for (at, (item, decided)) in conversation.items.iter().zip(&window.items).enumerate() {
        let part = part(request, at, item, decided);
        match parts.last_mut() {
            Some(before) if window.items.len() > MAX_PARTS && mergeable(before, &part, large) => {
                merge(before, &part);
            }
            _ => parts.push(part),
        }
    }
    parts
}

/// Whether Larder's tool is part of the request that is sent.
pub fn offers(window: &DecidedWindow) -> bool {
    window.verdict == Verdict::Edited && window.offer_tool
}

fn part(request: &Request<'_>, at: usize, item: &ConversationItem<'_>, decided: &DecidedItem) -> WindowPart {
    WindowPart {
        slot: if item.role == Role::System { "system" } else { "messages" }.into(),
        role: item.role.as_str().into(),
        label: label(request, at),
        rendition: decided.form.rendition(),
        tokens: number(decided.tokens),
        original_tokens: number(decided.tokens_before),
        reason: decided.reason.as_str().into(),
        pointer: decided.form.pointer().cloned(),
        message: message(request, at),
        epoch: number(decided.epoch),
        items: 1,
    }
}

fn fixed_part(slot: &'static str, tokens: u64) -> WindowPart {
    WindowPart {
        slot: slot.into(),
        role: Role::System.as_str().into(),
        label: String::new(),
        rendition: Rendition::Whole,
        tokens,
        original_tokens: tokens,
        reason: larder_core::pack::PartReason::Protected.as_str().into(),
        pointer: None,
        message: None,
        epoch: 0,
        items: 1,
    }
}

/// Whether two neighbours are listed as one: both are whole, in one slot and small.
fn mergeable(before: &WindowPart, part: &WindowPart, large: u64) -> bool {
    let fits =
        |part: &WindowPart| part.rendition == Rendition::Whole && (part.items > 1 || part.tokens < large);
    fits(before) && fits(part) && before.slot == part.slot
}

/// Lists a part as one with its neighbour. What they do not share is left out.
fn merge(before: &mut WindowPart, part: &WindowPart) {
    before.tokens += part.tokens;
    before.original_tokens += part.original_tokens;
    before.items += part.items;
    before.epoch = before.epoch.max(part.epoch);
    if before.role != part.role {
        before.role = Cow::Borrowed("");
    }
    if before.label != part.label {
        before.label.clear();
    }
}

fn compactions(
    request: &Request<'_>,
    window: &DecidedWindow,
    conversation: &Conversation<'_>,
    last: &LastRenditions,
    kinds: &Kinds,
) -> Vec<Compaction> {
    let decided = window.items.iter().zip(conversation.items).enumerate();
    let changed = decided.filter_map(|(at, (decided, item))| {
        let to = decided.form.rendition();
        let whole = (Rendition::Whole, number(decided.tokens_before));
        let (from, before) = last.reduced(at).unwrap_or(whole);
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
            reason: decided.reason.as_str().into(),
            pointer: decided.form.pointer().cloned(),
            content_type: content_type(item, kinds),
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

/// What an item is condensed as, or of several texts the longest; only detected when its rendition changes.
fn content_type(item: &ConversationItem<'_>, kinds: &Kinds) -> String {
    let longest = item.texts.iter().max_by_key(|range| range.len());
    let longest =
        longest.map(|range| kind_of(&item.text[range.clone()])).or_else(|| kinds.get(&item.hash).copied());
    let detected = longest.unwrap_or_else(|| kind_of(item.text));
    serde_json::to_value(detected).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

fn number(tokens: usize) -> u64 {
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_without_the_items_of_their_parts_have_no_renditions() {
        let part = |message: u64, items: u64, rendition: Rendition| WindowPart {
            slot: "messages".into(),
            message: Some(message),
            items,
            rendition,
            ..fixed_part("", 7)
        };
        let renditions = |items: u64, next: u64| {
            let parts = [part(0, items, Rendition::Whole), part(next, 1, Rendition::Pointer)];
            LastRenditions::from_window(&parts)
                .0
                .into_iter()
                .map(|(rendition, _)| rendition)
                .collect::<Vec<_>>()
        };
        assert_eq!(renditions(1, 1), [Rendition::Whole, Rendition::Pointer]);
        assert_eq!(renditions(1, 0), [Rendition::Whole, Rendition::Pointer], "two results in one message");
        assert_eq!(
            renditions(3, 3),
            [Rendition::Whole, Rendition::Whole, Rendition::Whole, Rendition::Pointer]
        );
        assert_eq!(renditions(1, 3), []);
    }

    #[test]
    fn small_whole_neighbours_are_listed_as_one_whoever_wrote_them() {
        let part = |role: &'static str, tokens: u64, rendition: Rendition| WindowPart {
            role: role.into(),
            rendition,
            ..fixed_part("messages", tokens)
        };
        let user = || part("user", 3, Rendition::Whole);
        let mut listed = user();
        merge(&mut listed, &part("user", 4, Rendition::Whole));
        assert_eq!((&*listed.role, listed.items, listed.tokens, listed.original_tokens), ("user", 2, 7, 7));
        merge(&mut listed, &part("assistant", 5, Rendition::Whole));
        assert_eq!((&*listed.role, listed.items, listed.tokens), ("", 3, 12));
        assert!(mergeable(&listed, &user(), 10));
        assert!(!mergeable(&listed, &part("tool", 10, Rendition::Whole), 10));
        assert!(!mergeable(&part("tool", 10, Rendition::Whole), &user(), 10));
        assert!(!mergeable(&user(), &part("tool", 1, Rendition::Pointer), 10));
        assert!(!mergeable(&fixed_part("system", 1), &user(), 10));
    }
}
