//! The messages of a conversation as the caller supplies them, with their links and permitted changes.
//!
//! Does not know costs, limits or renditions.

use std::borrow::Cow;
use std::ops::Range;

use larder_condense::salience::reports_failure;
use larder_text::call_links::{CallLink, Linker};
use larder_text::hash::ContentHash;
use larder_text::message::Role;
use larder_text::tokens::Counter;

/// A tool call that the model made.
#[derive(Debug, Clone)]
pub struct ItemCall<'a> {
    /// The id that its result refers to; empty where the format has none.
    pub id: Cow<'a, str>,
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// The arguments: JSON text, or plain text for custom tools.
    pub arguments: Cow<'a, str>,
}

/// A message, or one tool result in a message with several: the unit that can be replaced or dropped.
#[derive(Debug, Clone, Copy)]
pub struct ConversationItem<'a> {
    /// The author; [`Role::Tool`] for a tool result in every format.
    pub role: Role,
    /// The whole text that may be replaced.
    pub text: &'a str,
    /// Where in `text` each of the texts is that it consists of, each with the line feed between it and the next; empty if
    /// it is one.
    pub texts: &'a [Range<usize>],
    /// The hash of `text`.
    pub hash: ContentHash,
    /// Tokens of `text`.
    pub tokens: usize,
    /// Whether `tokens` is an estimate. An item that may be sent whole is counted exactly before the decision.
    pub sampled: bool,
    /// Tokens of everything else in the item: framing, ids, calls, pictures, reasoning.
    pub opaque_tokens: usize,
    /// Pictures and reasoning as received, stored with the text if the item is dropped.
    pub opaque: &'a [&'a str],
    /// The tool calls that the item makes.
    pub calls: &'a [ItemCall<'a>],
    /// The id of the call that the item answers.
    pub result_of: Option<&'a str>,
    /// The request marks the result as an error. A text that [reads like one](reports_failure) counts as one anyway.
    pub is_error: bool,
    /// Whether the item may be condensed.
    pub summarizable: bool,
    /// Whether something of it may be hidden only if the prompt would not fit otherwise.
    pub spared: bool,
    /// Whether the item was read through a pointer; such items are never condensed again.
    pub rehydrated: bool,
}

impl ConversationItem<'_> {
    /// Tokens of the original item.
    pub fn total_tokens(&self) -> usize {
        self.tokens.saturating_add(self.opaque_tokens)
    }
}

/// The permitted changes to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compressibility {
    /// Always sent byte for byte.
    Verbatim,
    /// Sent whole, or dropped with its group if the hard limit requires it.
    WholeOrDropped,
    /// A tool result: condensed when it enters, later replaced by a pointer.
    Compressible {
        /// It reports a failure, so it stays whole as long as it fits.
        is_error: bool,
    },
}

/// The call that a result answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnsweredCall<'a> {
    /// The index of the item that made the call.
    pub item: usize,
    pub call: &'a ItemCall<'a>,
}

/// An item and its links to earlier items.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkedItem<'a> {
    pub item: &'a ConversationItem<'a>,
    /// Tokens of the text: exact wherever it may be sent whole.
    pub tokens: usize,
    pub compressibility: Compressibility,
    /// The index of the first item of its group. A group is dropped as a unit.
    pub group: usize,
    /// No call is waiting for a result after this item.
    pub settled: bool,
    pub answers: Option<AnsweredCall<'a>>,
    /// Maximum tokens of its text when it enters, if it is an ordinary result.
    pub entry_cap: usize,
    /// The index of the last user message before it.
    pub user_message: Option<usize>,
}

impl LinkedItem<'_> {
    pub const fn is_error(&self) -> bool {
        matches!(self.compressibility, Compressibility::Compressible { is_error: true })
    }

    pub const fn is_compressible(&self) -> bool {
        matches!(self.compressibility, Compressibility::Compressible { .. })
    }
}

/// Links the items of a conversation. `cap_of`: the entry cap for results of a tool; where it is `None`, they stay whole.
/// `entry_cap`: that for results of no known tool.
pub(super) fn link<'a>(
    items: &'a [ConversationItem<'a>],
    entry_cap: usize,
    cap_of: &dyn Fn(&str) -> Option<usize>,
    counter: &Counter,
) -> Vec<LinkedItem<'a>> {
    let mut linker = Linker::default();
    let mut user_message = None;
    let mut entry = |(at, item): (usize, &'a ConversationItem<'a>)| {
        let calls = item.calls.iter().map(|call| (&*call.id, call));
        let link = linker.link(at, item.role, calls, item.result_of);
        let answers = link.answers.map(|(item, call)| AnsweredCall { item, call });
        let cap = answers.map_or(Some(entry_cap), |answers| cap_of(&answers.call.name));
        let compressibility = compressibility(item, cap.is_none());
        let may_stay_whole = match compressibility {
            Compressibility::Compressible { is_error } => is_error,
            Compressibility::Verbatim | Compressibility::WholeOrDropped => true,
        };
        let tokens = if item.sampled && may_stay_whole { counter.count(item.text) } else { item.tokens };
        let CallLink { group, settled, .. } = link;
        let entry_cap = cap.unwrap_or(usize::MAX);
        let entry =
            LinkedItem { item, tokens, compressibility, group, settled, answers, entry_cap, user_message };
        if item.role == Role::User {
            user_message = Some(at);
        }
        entry
    };
    items.iter().enumerate().map(&mut entry).collect()
}

fn compressibility(item: &ConversationItem<'_>, exempt: bool) -> Compressibility {
    match item.role {
        Role::System | Role::User => Compressibility::Verbatim,
        Role::Assistant => Compressibility::WholeOrDropped,
        Role::Tool => {
            if item.summarizable && !item.rehydrated && !exempt {
                Compressibility::Compressible { is_error: item.is_error || reports_failure(item.text) }
            } else {
                Compressibility::WholeOrDropped
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &'static str, name: &'static str) -> ItemCall<'static> {
        ItemCall { id: id.into(), name: name.into(), arguments: "{}".into() }
    }

    fn item<'a>(role: Role, calls: &'a [ItemCall<'a>], result_of: Option<&'a str>) -> ConversationItem<'a> {
        ConversationItem {
            role,
            text: "some text",
            texts: &[],
            hash: ContentHash::new(b"some text"),
            tokens: 2,
            sampled: false,
            opaque_tokens: 3,
            opaque: &[],
            calls,
            result_of,
            is_error: false,
            summarizable: true,
            spared: false,
            rehydrated: false,
        }
    }

    fn linked<'a>(items: &'a [ConversationItem<'a>]) -> Vec<LinkedItem<'a>> {
        link(items, 500, &|tool| (tool != "exempt").then_some(90), &Counter::default())
    }

    #[test]
    fn a_result_knows_its_call_and_the_user_message_before_it() {
        let calls = [call("a", "read")];
        let items = [
            item(Role::User, &[], None),
            item(Role::Assistant, &calls, None),
            item(Role::Tool, &[], Some("a")),
        ];
        let entries = linked(&items);
        assert_eq!(entries[2].answers.map(|answers| (answers.item, &*answers.call.name)), Some((1, "read")));
        assert_eq!((entries[2].group, entries[2].user_message), (1, Some(0)));
        assert_eq!((entries[1].entry_cap, entries[2].entry_cap), (500, 90), "that of its tool");
    }

    #[test]
    fn only_results_that_may_be_condensed_are_compressible() {
        let calls = [call("a", "read"), call("b", "exempt")];
        let result = |id| item(Role::Tool, &[], Some(id));
        let items = [
            item(Role::System, &[], None),
            item(Role::Assistant, &calls, None),
            result("a"),
            result("b"),
            ConversationItem { rehydrated: true, ..result("a") },
            ConversationItem { summarizable: false, ..result("a") },
            ConversationItem { is_error: true, ..result("unknown") },
        ];
        let found: Vec<Compressibility> = linked(&items).iter().map(|entry| entry.compressibility).collect();
        let (whole, result) =
            (Compressibility::WholeOrDropped, |is_error| Compressibility::Compressible { is_error });
        assert_eq!(
            found,
            [Compressibility::Verbatim, whole, result(false), whole, whole, whole, result(true)]
        );
    }
}
