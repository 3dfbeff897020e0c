//! Decides the messages of a conversation that is forwarded with only some texts replaced: the gateway's entry point
//! to the packer. Owns how each message is sent and the marker for dropped messages.
//!
//! Does not know settings, models or wire formats. Each decision depends only on the messages before it, so a growing
//! history keeps its earlier decisions.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use super::choose::Choice;
use super::choose_messages::Presence;
use super::history_builder::HistoryBuilder;
use super::items::{Compressibility, ConversationItem, LinkedItem, link};
use super::memo::Memo;
use super::receipt::{Epoch, OriginalText, PackOriginal, PartReason, Rendition};
use super::render::left_out_mark;
use super::slot::Overflow;
use super::watermark::{self, CallGroups, MessageDecisions, Watermarks};
use larder_condense::Gap;
use larder_text::hash::ContentHash;
use larder_text::message::{Message, Role};
use larder_text::pointer::{Pointer, PointerKey};
use larder_text::price::CacheShares;
use larder_text::tokens::Counter;

/// The text sent in place of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Substitution {
    /// The form of the text: condensed, a pointer, or the marker for dropped messages ([`Rendition::Absent`]).
    pub rendition: Rendition,
    /// The text.
    pub text: String,
    /// Tokens of `text`.
    pub tokens: usize,
    /// The pointer to the original; `None` if the text is complete.
    pub pointer: Option<Pointer>,
    /// What a condensed text omits.
    pub gaps: Vec<Gap>,
    /// Why nothing is hidden from the model; `None` if something is.
    pub complete: Option<Complete>,
}

/// Why a text that replaces another hides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complete {
    /// What it leaves out stands above, in the messages that it names.
    StandsAbove,
    /// It is the same JSON in fewer tokens.
    Terse,
}

impl Substitution {
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.gaps.len() * size_of::<Gap>()
    }
}

/// How a message is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageForm {
    /// Unchanged.
    Whole,
    /// With this text in place of the original.
    Replaced(Arc<Substitution>),
    /// Not sent.
    Dropped,
    /// Not sent, and first in a run of dropped messages: an assistant message with this text replaces the run.
    DroppedFor(Arc<Substitution>),
}

impl MessageForm {
    /// The rendition of the message in the prompt.
    pub fn rendition(&self) -> Rendition {
        match self {
            Self::Whole => Rendition::Whole,
            Self::Replaced(with) => with.rendition,
            Self::Dropped | Self::DroppedFor(_) => Rendition::Absent,
        }
    }

    /// The pointer to what is not shown, if any.
    pub fn pointer(&self) -> Option<&Pointer> {
        self.substitution()?.pointer.as_ref()
    }

    /// Whether something of the message is hidden from the model.
    pub fn hides(&self) -> bool {
        match self {
            Self::Whole => false,
            Self::Replaced(with) => with.complete.is_none(),
            Self::Dropped | Self::DroppedFor(_) => true,
        }
    }

    /// The text sent in its place, if any.
    pub fn substitution(&self) -> Option<&Substitution> {
        match self {
            Self::Replaced(with) | Self::DroppedFor(with) => Some(with),
            Self::Whole | Self::Dropped => None,
        }
    }
}

/// The decision about one message.
#[derive(Debug, Clone)]
pub struct DecidedItem {
    /// How it is sent.
    pub form: MessageForm,
    /// Tokens of the original message.
    pub tokens_before: usize,
    /// Tokens of the message as it is sent.
    pub tokens: usize,
    /// The reason for the form.
    pub reason: PartReason,
    /// The epoch in which it was decided; 0 if before the first epoch.
    pub epoch: usize,
}

/// Decides whether compaction saves more than it costs: it invalidates the provider's prompt cache behind the first
/// changed message.
#[derive(Debug, Clone, Copy)]
pub struct CachePrice {
    /// The prices of cached tokens.
    pub cache: CacheShares,
    /// Expected number of further requests; `None` assumes as many as there have been.
    pub turns: Option<usize>,
}

/// Token limits of a history.
#[derive(Debug, Clone, Copy)]
pub struct HistoryLimits {
    /// Maximum tokens of an ordinary result's text when it enters, where its tool is not known; source code and errors may
    /// have more.
    pub entry_cap: usize,
    /// Tokens that the first replacement has to save in addition: those of the tool that it makes necessary.
    pub first_saving: usize,
    /// Whether a result may be shortened by referring to text above it.
    pub refers_above: bool,
    /// Whether JSON is written tersely.
    pub terse_json: bool,
    /// Whether an epoch gives up results first that later ones supersede.
    pub superseded_first: bool,
    /// Maximum tokens of any result's text when it enters.
    pub flood: usize,
    /// Above this, older results are compacted if that saves money.
    pub soft: usize,
    /// The maximum that can be sent.
    pub hard: usize,
    /// The share of `soft` or `hard` that compaction reduces the history to.
    pub low: f64,
    /// The number of newest messages exempt from compaction.
    pub protect_last: usize,
    /// The inputs for deciding whether compaction saves money.
    pub price: CachePrice,
}

/// The services needed to decide a history.
#[derive(Debug, Clone, Copy)]
pub struct DecisionContext<'a> {
    /// Counts tokens with the model's tokenizer.
    pub counter: &'a Counter,
    /// Mints the pointers of the conversation's owner.
    pub key: &'a PointerKey,
    /// Substitutions made for earlier requests.
    pub memo: &'a Memo,
}

/// A decided history.
#[derive(Debug)]
pub struct History {
    /// The decision for each message.
    pub items: Vec<DecidedItem>,
    /// When compaction last moved the prefix; `moved_prefix` says whether it did since the last request.
    pub epoch: Epoch,
    /// The originals behind the markers of dropped messages.
    pub originals: Vec<PackOriginal>,
}

/// The share of the hard limit above which messages are dropped, so that there is room for the next ones.
const FULL: f64 = 0.8;
/// How many runs of dropped messages share a pointer: one each can take more than the user's messages between them.
const RUNS: usize = 8;
/// The text that replaces a run if the pointer to it has replaced an earlier one.
const RUN_MARK: &str = "[⋯]";

/// Decides every message, oldest first. `cap_of`: the entry cap for ordinary results of a tool; where it is `None`, they
/// stay whole. The outcome exceeds the hard limit only if the messages that must stay do.
pub fn decide_history(
    items: &[ConversationItem<'_>],
    limits: &HistoryLimits,
    cap_of: &dyn Fn(&str) -> Option<usize>,
    context: DecisionContext<'_>,
) -> History {
    let entries = link(items, limits.entry_cap, cap_of, context.counter);
    let share = |tokens: usize, share: f64| (tokens as f64 * share) as usize;
    let low = share(limits.soft.min(limits.hard), limits.low);
    let marks = Watermarks {
        refused_above: limits.hard,
        soft: Some((limits.soft, low)),
        hard: limits.hard,
        low,
        drop_above: Some(share(limits.hard, FULL)),
        overflow: Overflow::LADDER,
    };
    let group_of: Vec<usize> = entries.iter().map(|entry| entry.group).collect();
    let settled: Vec<bool> = entries.iter().map(|entry| entry.settled).collect();
    let presence: Vec<Presence> = entries
        .iter()
        .map(|entry| match entry.compressibility {
            Compressibility::Verbatim => Presence::Whole,
            _ => Presence::Optional,
        })
        .collect();
    let groups = CallGroups {
        group_of: &group_of,
        settled: &settled,
        presence: &presence,
        protect_last: limits.protect_last,
    };
    let mut builder = HistoryBuilder::new(&entries, limits, context);
    let MessageDecisions { choices, mut costs, since, forced, mut epoch } =
        watermark::decide(&groups, &marks, &mut builder);
    let mut forms = builder.forms;
    let runs = runs(forms.iter().map(|form| *form == MessageForm::Dropped));
    epoch.from_message = first_change(&runs, epoch.from_message);
    epoch.moved_prefix = moved(&entries, &epoch);
    let originals = mark_dropped(&entries, &runs, &mut forms, &mut costs, context);
    let decided = entries.iter().zip(forms).zip(costs.into_iter().zip(since)).zip(choices);
    let decided = decided.map(|(((entry, form), (tokens, epoch)), choice)| DecidedItem {
        // What an epoch leaves as it entered has the reason for which it entered so.
        reason: reason(entry, &form, forced.get(epoch.wrapping_sub(1)).filter(|_| choice != Choice::Whole)),
        form,
        tokens_before: entry.tokens.saturating_add(entry.item.opaque_tokens),
        tokens,
        epoch,
    });
    History { items: decided.collect(), epoch, originals }
}

/// Whether the newest epoch began after the last request, which ended at the model's most recent message.
fn moved(entries: &[LinkedItem<'_>], epoch: &Epoch) -> bool {
    let spoke = entries.iter().rposition(|entry| entry.item.role == Role::Assistant);
    spoke.is_some_and(|at| epoch.number > 0 && epoch.at_message > entries[at].group)
}

/// Why a message has its form; `forced` is whether the hard limit required the epoch that gave it this form.
fn reason(entry: &LinkedItem<'_>, form: &MessageForm, forced: Option<&bool>) -> PartReason {
    match form {
        MessageForm::Whole => match entry.compressibility {
            Compressibility::Verbatim => PartReason::Critical,
            Compressibility::WholeOrDropped if entry.item.role == Role::Tool => PartReason::Protected,
            _ => PartReason::Fits,
        },
        MessageForm::Dropped | MessageForm::DroppedFor(_) => PartReason::GroupDropped,
        MessageForm::Replaced(with) => match with.complete {
            Some(Complete::StandsAbove) => PartReason::StandsAbove,
            Some(Complete::Terse) => PartReason::Terse,
            None if forced == Some(&true) => PartReason::CallOverBudget,
            None if forced == Some(&false) => PartReason::OverThreshold,
            None if with.rendition == Rendition::Pointer => PartReason::PinsTooLarge,
            None => PartReason::OverEntryCap,
        },
    }
}

/// The runs of messages that are dropped.
pub(super) fn runs(dropped: impl Iterator<Item = bool>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in dropped.enumerate().filter(|(_, dropped)| *dropped) {
        match runs.last_mut().filter(|run| run.end == at) {
            Some(run) => run.end += 1,
            None => runs.push(at..at + 1),
        }
    }
    runs
}

/// The first message that is sent otherwise if the choices from number `from` on are new: runs that share a pointer change it.
fn first_change(runs: &[Range<usize>], from: usize) -> usize {
    let known = runs.partition_point(|run| run.end <= from);
    runs.get(known).map_or(from, |_| runs[known / RUNS * RUNS].start.min(from))
}

/// The most tokens of the messages in place of so many runs, for each run.
pub(super) fn mark_tokens(runs: usize, context: DecisionContext<'_>) -> impl Iterator<Item = usize> {
    let count = |text: &str| context.counter.count_message(&Message::text(Role::Assistant, text));
    let pointer = Pointer::whole(context.key.mint(ContentHash::new(b"")));
    // Pointers take more or fewer tokens by their characters.
    let pointer = count(left_out_mark("the conversation", &pointer).trim_end()) * 5 / 4;
    let mark = count(RUN_MARK);
    (0..runs).map(move |number| if number % RUNS == 0 { pointer } else { mark })
}

/// Adds a marker to the first message of every dropped run, and returns the originals behind the markers.
fn mark_dropped(
    entries: &[LinkedItem<'_>],
    runs: &[Range<usize>],
    forms: &mut [MessageForm],
    costs: &mut [usize],
    context: DecisionContext<'_>,
) -> Vec<PackOriginal> {
    let mut originals = Vec::new();
    for sharing in runs.chunks(RUNS) {
        let dropped: String = sharing.iter().map(|run| transcript(&entries[run.clone()])).collect();
        let pointer = Pointer::whole(context.key.mint(ContentHash::new(dropped.as_bytes())));
        let mut text = left_out_mark("the conversation", &pointer).trim_end().to_owned();
        for run in sharing {
            costs[run.start] = context.counter.count_message(&Message::text(Role::Assistant, text.as_str()));
            forms[run.start] = MessageForm::DroppedFor(Arc::new(Substitution {
                rendition: Rendition::Absent,
                tokens: context.counter.count(&text),
                text: std::mem::replace(&mut text, RUN_MARK.to_owned()),
                pointer: Some(pointer.clone()),
                gaps: Vec::new(),
                complete: None,
            }));
        }
        originals.push(PackOriginal {
            text: OriginalText::Joined(dropped),
            kind: "left_out",
            display: "messages that were left out".to_owned(),
        });
    }
    originals
}

/// Messages in readable form, including all text, opaque parts and calls.
fn transcript(entries: &[LinkedItem<'_>]) -> String {
    let mut text = String::new();
    for LinkedItem { item, .. } in entries {
        let role = item.role.as_str();
        let _ = writeln!(text, "[{role}]\n{}", item.text);
        for opaque in item.opaque {
            let _ = writeln!(text, "{opaque}");
        }
        for call in item.calls {
            let _ = writeln!(text, "→ {} {}", call.name, call.arguments);
        }
    }
    text
}
