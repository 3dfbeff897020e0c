//! Which messages stand or fall together, which never fall, and in which order the others do.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::message::{Message, Role};

/// What a group of messages is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupKind {
    /// Instructions.
    System,
    /// Something the person said.
    User,
    /// Something the model said without calling a tool.
    Assistant,
    /// Calls of the model and their results, with whatever stands between them.
    Call,
    /// A tool result that answers no call of the trace.
    Orphan,
}

/// Messages that may only be kept or dropped together. Groups tile the trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The messages, by index.
    pub range: Range<usize>,
    /// What they are.
    pub kind: GroupKind,
    /// Must stand as it is: a system message, the newest user message, or one of the newest messages asked for.
    pub protected: bool,
}

/// A call without its result, or a result without its call. A provider refuses a request with any of these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairingFault {
    /// A call that no later message answers.
    #[error(
        "message {message}: the call {call:?} has no result; expected a tool message with that id after it"
    )]
    Unanswered {
        /// Index of the assistant message.
        message: usize,
        /// The call's id.
        call: String,
    },
    /// A result whose call is not there, was answered before, or is not named.
    #[error(
        "message {message}: a tool result for {call:?}, which is no open call; expected the call before it"
    )]
    Unasked {
        /// Index of the tool message.
        message: usize,
        /// The id it names, empty if none.
        call: String,
    },
}

/// Calls matched with results, in one pass. Ids may be used again once answered: some servers count per message.
#[derive(Debug, Default)]
struct Pairing<'m> {
    /// Open calls by id, oldest first, each with its message.
    open: BTreeMap<&'m str, Vec<usize>>,
    /// Call message → the message of its last result.
    spans: BTreeMap<usize, usize>,
    faults: Vec<PairingFault>,
}

impl<'m> Pairing<'m> {
    fn of(messages: &'m [Message]) -> Self {
        let mut pairing = Self::default();
        for (index, message) in messages.iter().enumerate() {
            for call in &message.tool_calls {
                pairing.open.entry(&call.id).or_default().push(index);
                pairing.spans.entry(index).or_insert(index);
            }
            if message.role == Role::Tool {
                pairing.answer(index, message.tool_call_id.as_deref().unwrap_or_default());
            }
        }
        for (call, asked) in std::mem::take(&mut pairing.open) {
            let unanswered = |message| PairingFault::Unanswered { message, call: call.to_owned() };
            pairing.faults.extend(asked.into_iter().map(unanswered));
        }
        pairing.faults.sort_by_key(|fault| match fault {
            PairingFault::Unanswered { message, .. } | PairingFault::Unasked { message, .. } => *message,
        });
        pairing
    }

    fn answer(&mut self, index: usize, call: &str) {
        // The newest open call of that id: an older one that was never answered belongs to an aborted step.
        match self.open.get_mut(call).and_then(Vec::pop) {
            Some(asked) => {
                self.spans.insert(asked, index);
            }
            None => self.faults.push(PairingFault::Unasked { message: index, call: call.to_owned() }),
        }
    }
}

/// Every call without a result and every result without a call, in the order of the messages. Calls may be parallel,
/// and a trace that ends in a call has a fault: it cannot be sent yet.
pub fn pairing_faults(messages: &[Message]) -> Vec<PairingFault> {
    Pairing::of(messages).faults
}

/// Divides a trace into groups, in order. `protect_last` is the number of newest messages that must stand
/// ([`PROTECTED_MESSAGES`](super::PROTECTED_MESSAGES) in conversations); a group is protected as a whole.
pub fn groups(messages: &[Message], protect_last: usize) -> Vec<Group> {
    let spans = Pairing::of(messages).spans;
    let protected_from = messages.len().saturating_sub(protect_last);
    let newest_user = messages.iter().rposition(|message| message.role == Role::User);
    let mut groups: Vec<Group> = Vec::new();
    let mut start = 0;
    while let Some(message) = messages.get(start) {
        let kind = match message.role {
            _ if !message.tool_calls.is_empty() => GroupKind::Call,
            Role::System => GroupKind::System,
            Role::User => GroupKind::User,
            Role::Assistant => GroupKind::Assistant,
            Role::Tool => GroupKind::Orphan,
        };
        // A span may reach over further calls, whose own spans then count as well.
        let (mut end, mut next) = (start + 1, start);
        while next < end {
            end = end.max(spans.get(&next).map_or(0, |&last| last + 1));
            next += 1;
        }
        let range = start..end;
        let protected = end > protected_from
            || newest_user.is_some_and(|user| range.contains(&user))
            || messages.iter().take(end).skip(start).any(|message| message.role == Role::System);
        groups.push(Group { range, kind, protected });
        start = end;
    }
    groups
}

/// The groups that may be made smaller, by index, in the order in which they should be: calls with their results
/// oldest first (R3-4.32), then what the model said, oldest first. Never system or user messages, nor what is
/// protected, nor a call group that a user message stands in.
pub fn eviction_order(messages: &[Message], groups: &[Group]) -> Vec<usize> {
    let holds_user = |group: &Group| {
        messages.get(group.range.clone()).is_none_or(|inside| inside.iter().any(|m| m.role == Role::User))
    };
    let of_kinds = |kinds: &'static [GroupKind]| {
        let candidates = groups.iter().enumerate();
        candidates
            .filter(move |(_, g)| !g.protected && kinds.contains(&g.kind) && !holds_user(g))
            .map(|(at, _)| at)
    };
    let mut order: Vec<usize> = of_kinds(&[GroupKind::Call, GroupKind::Orphan]).collect();
    order.extend(of_kinds(&[GroupKind::Assistant]));
    order
}
