//! A conversation as the policy sees it, whatever the wire format: items with what they cost and what they answer.
//! Works out which items belong together.

use hashbrown::HashMap;

use crate::pack::{Asked, Call, Entry, Fate};
use larder_condense::salience::reports_failure;
use larder_text::hash::ContentHash;
use larder_text::message::Role;
use larder_text::tokens::Counter;

use super::settings::Settings;

/// Tokens that are sent whatever is decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fixed {
    /// Instructions that are no item of the conversation.
    pub system: usize,
    /// The definitions of the client's tools.
    pub tools: usize,
    /// What opens the answer, the schema of the answer, and whatever else is no item.
    pub framing: usize,
    /// The definition of our tool as this format writes it, whether it is offered or not.
    pub rehydrate_tool: usize,
}

/// What is about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<'a> {
    /// What is sent whatever is decided.
    pub fixed: Fixed,
    /// The history, the oldest first.
    pub items: &'a [Item<'a>],
    /// Tokens that the request allows its answer, if it names a number.
    pub max_output: Option<usize>,
    /// Our tool can be offered. Where it cannot, no pointer may stand in the window, so nothing is replaced.
    pub can_offer: bool,
}

/// A message, or one tool result of a message that holds several: what can be replaced or left out on its own.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// Who speaks; a tool's result is [`Role::Tool`] in every format.
    pub role: Role,
    /// The text that a decision replaces, whole.
    pub text: &'a str,
    /// The hash of the text.
    pub hash: ContentHash,
    /// Tokens of the text.
    pub tokens: usize,
    /// The tokens are an estimate. What may stand whole is counted all the same.
    pub sampled: bool,
    /// Tokens of everything else that the item holds: its marks, ids and calls, pictures, reasoning.
    pub opaque_tokens: usize,
    /// What stands beside the text as it came, pictures and reasoning: given back with it where it is left out.
    pub others: &'a [&'a str],
    /// What this message of the model asks of tools.
    pub calls: &'a [Call<'a>],
    /// The id of the call that this result answers.
    pub result_of: Option<&'a str>,
    /// The request says that the result reports a failure; what [begins like a report](reports_failure) is taken for
    /// one in any case.
    pub is_error: bool,
    /// Whether it may be condensed (R3-4.28).
    pub summarizable: bool,
    /// It was read through a pointer, so it is never condensed again.
    pub rehydrated: bool,
}

impl Item<'_> {
    /// Tokens of the item as it came.
    pub(super) fn whole(&self) -> usize {
        self.tokens.saturating_add(self.opaque_tokens)
    }
}

/// The items as the packer decides them. A step of the model (all it says and asks before the results come, and the
/// results) is left out as one or not at all.
pub(super) fn entries<'a>(items: &'a [Item<'a>], settings: &Settings, counter: &Counter) -> Vec<Entry<'a>> {
    let mut ties = Ties::default();
    let mut entry = |(at, item): (usize, &'a Item<'a>)| {
        let entry = ties.entry(at, item, settings);
        let stands = entry.fate != Fate::Result { is_error: false };
        let tokens = if item.sampled && stands { counter.count(item.text) } else { item.tokens };
        Entry { tokens, ..entry }
    };
    items.iter().enumerate().map(&mut entry).collect()
}

/// What is known of the items so far.
#[derive(Default)]
struct Ties<'a> {
    /// Calls that wait for their result: the item they stand in, its group, and the call.
    open: HashMap<&'a str, (usize, usize, Call<'a>)>,
    /// The first item of the model's newest step.
    step: Option<usize>,
    /// Something else than the model has spoken since.
    answered: bool,
    request: Option<usize>,
}

impl<'a> Ties<'a> {
    fn entry(&mut self, at: usize, item: &'a Item<'a>, settings: &Settings) -> Entry<'a> {
        let (mut group, mut asked) = (at, None);
        match item.role {
            Role::Assistant => {
                if self.answered {
                    // A call that the model goes on without has been given up.
                    self.open.clear();
                    self.step = None;
                }
                self.answered = false;
                group = *self.step.get_or_insert(at);
                self.open.extend(item.calls.iter().map(|call| (call.id, (at, group, *call))));
            }
            Role::Tool => {
                self.answered = true;
                if let Some((by, step, call)) = item.result_of.and_then(|id| self.open.remove(id)) {
                    group = step;
                    asked = Some(Asked { by, call });
                }
            }
            Role::User | Role::System => self.answered = true,
        }
        let entry = Entry {
            role: item.role,
            text: item.text,
            hash: item.hash,
            tokens: item.tokens,
            beside: item.opaque_tokens,
            fate: fate(item, asked.as_ref(), settings),
            group,
            settled: self.open.is_empty(),
            asked,
            request: self.request,
            calls: item.calls,
            others: item.others,
        };
        if item.role == Role::User {
            self.request = Some(at);
        }
        entry
    }
}

fn fate(item: &Item<'_>, asked: Option<&Asked<'_>>, settings: &Settings) -> Fate {
    match item.role {
        Role::System | Role::User => Fate::Verbatim,
        Role::Assistant => Fate::Kept,
        Role::Tool => {
            let opted_out = asked.is_some_and(|asked| settings.opts_out(asked.call.name));
            if item.summarizable && !item.rehydrated && !opted_out {
                Fate::Result { is_error: item.is_error || reports_failure(item.text) }
            } else {
                Fate::Kept
            }
        }
    }
}
