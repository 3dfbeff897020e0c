//! From a request to the one that leaves: what the policy decides over it, as edits of its text, and what is recorded of
//! that. Knows neither servers nor clients.

mod attached;
mod describe;
mod picture;
mod preview;
mod transcript;

use bytes::Bytes;
use larder_core::policy::{
    ContextBudgetPolicy, Conversation, ConversationItem, DecidedItem, DecisionContext, FixedTokens, Memo,
    MessageForm, Verdict, Window,
};
use larder_text::hash::ContentHash;
use larder_text::json;
use larder_text::pointer::PointerKey;
use larder_text::tokens::Counter;

use crate::record::RequestRecord;
use crate::wire::{self, Change, Kind, Request};
use describe::{describe, offers};

pub use describe::Forms;
pub use preview::{Preview, preview};
pub use transcript::{Line, Transcript};

/// Why a request may not leave.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its body cannot be understood.
    #[error(transparent)]
    Unreadable(#[from] wire::ReadError),
    /// It cannot be made to fit; with the words of its format for that, and advice.
    #[error("{0}")]
    TooLong(String),
    /// What was decided cannot be put into the body, which is a bug of ours.
    #[error(transparent)]
    Unwritable(#[from] json::EditError),
}

/// Counts of one counter that were made before: gives the count under a key, or makes it.
pub type Counts<'a> = &'a dyn Fn(ContentHash, &dyn Fn() -> usize) -> usize;

/// A request that may leave, and what must be stored before it does.
pub struct Prepared {
    /// Its body.
    pub body: Bytes,
    /// The forms of its items.
    pub forms: Forms,
    /// Whether our tool was offered.
    pub offered: bool,
    /// What it leaves out and is not stored yet.
    pub missing: Vec<Missing>,
    /// What goes into the transcript, where that is kept.
    pub transcript: Option<Transcript>,
}

/// An original that must be stored before the request leaves.
pub struct Missing {
    /// Its hash.
    pub hash: ContentHash,
    /// It.
    pub text: String,
    /// What it is, in a word.
    pub kind: &'static str,
    /// One line for people.
    pub display: String,
}

/// With what a window is decided.
pub struct WindowBuilder<'a> {
    /// Renditions made before.
    pub memo: &'a Memo,
    /// Counts made before.
    pub counts: Counts<'a>,
    /// What decides.
    pub policy: &'a ContextBudgetPolicy,
    /// What counts.
    pub counter: &'a Counter,
    /// Whose pointers.
    pub key: &'a PointerKey,
    /// The forms of the conversation's request before.
    pub last: &'a Forms,
    /// Whether the model can be answered when it asks originals back.
    pub rehydrates: bool,
    /// The body as it came.
    pub body: &'a Bytes,
    /// Whether the request is only to be counted.
    pub counts_only: bool,
    /// Whether a transcript is kept.
    pub transcribes: bool,
    /// Whether an original is known to be stored.
    pub is_stored: &'a dyn Fn(ContentHash) -> bool,
}

/// The name of the model as the body must give it, where that is not as it does.
pub type Rename<'a> = Option<&'a str>;

impl WindowBuilder<'_> {
    /// Decides over a request; `exchange` is told everything.
    ///
    /// # Errors
    /// When the request cannot be made to fit.
    pub fn prepare(
        &self,
        request: &Request<'_>,
        rename: Rename<'_>,
        exchange: &mut RequestRecord,
    ) -> Result<Prepared, Refusal> {
        let opaque: Vec<Vec<&str>> = request.items.iter().map(opaque).collect();
        let can_offer = self.rehydrates && request.unofferable().is_none();
        let items = self.items(request, &opaque, can_offer);
        let fixed = self.fixed(request);
        let conversation = Conversation {
            fixed,
            items: &items,
            max_output: request.max_output.and_then(|most| usize::try_from(most).ok()),
            can_offer,
        };
        let context = DecisionContext { counter: self.counter, key: self.key, memo: self.memo };
        let window = self.policy.decide(&conversation, context);
        let forms = describe(request, &window, &conversation, self.last, exchange);
        // Whoever asks how long a prompt is wants to know that above all where it is too long.
        if window.verdict == Verdict::Refuse && !self.counts_only {
            let decision = &window.decision;
            let problem = wire::ApiError::too_long(request.format, decision);
            let no_room = " The tokens that the reply may take (max_tokens) or those kept free (policy.emergency_floor) \
                           leave the prompt no room: lower them.";
            let advice = if decision.prompt_budget == 0 { no_room } else { "" };
            return Err(Refusal::TooLong(problem.message + advice));
        }
        let edited = window.verdict == Verdict::Edited;
        let mut edits = request.rewrite(&if edited { changes(&window) } else { Vec::new() });
        let changed = edited.then_some((&window, edits.as_slice()));
        let transcript = self.transcribes.then(|| Transcript::of(request, &items, changed, self.body));
        edits.extend(rename.and_then(|name| request.set_model(name)));
        if offers(&window) {
            edits.extend(request.offer());
        }
        let body = match edits.is_empty() {
            true => self.body.clone(),
            false => json::apply(request.body, edits)?.into(),
        };
        let missing = if edited { self.missing(&window, &items) } else { Vec::new() };
        Ok(Prepared { body, forms, offered: offers(&window), missing, transcript })
    }

    /// What the window leaves out and is not known to be stored.
    fn missing(&self, window: &Window, items: &[ConversationItem<'_>]) -> Vec<Missing> {
        let kept = window.originals(items).filter_map(|kept| {
            let hash = kept.hash.unwrap_or_else(|| ContentHash::new(kept.text.as_bytes()));
            let missing = !(self.is_stored)(hash);
            missing.then(|| Missing {
                hash,
                text: kept.text.to_owned(),
                kind: kept.kind,
                display: kept.display,
            })
        });
        kept.collect()
    }

    fn items<'r>(
        &self,
        request: &'r Request<'_>,
        opaque: &'r [Vec<&'r str>],
        can_offer: bool,
    ) -> Vec<ConversationItem<'r>> {
        let items = request.items.iter().zip(opaque);
        items
            .map(|(item, opaque)| {
                let (text, hash) = (item.text(), item.hash());
                let result = item.result.as_ref();
                let name = result.and_then(|result| result.name.as_deref());
                let rehydrated = name == Some(wire::REHYDRATE);
                let is_error = result.is_some_and(|result| result.error);
                let summarizable =
                    !request.history_elsewhere && result.is_some_and(|result| result.summarizable);
                let replaced = can_offer && summarizable && !rehydrated && !is_error;
                let sampled =
                    text.len() >= SAMPLED && replaced && self.policy.replaces(name.unwrap_or_default());
                ConversationItem {
                    role: item.role(),
                    text,
                    hash,
                    tokens: if sampled { self.sampled(hash, text) } else { self.count(hash, text) },
                    sampled,
                    opaque_tokens: self.opaque(item),
                    opaque,
                    calls: &item.calls,
                    result_of: result.map(|result| result.id.as_ref()),
                    is_error,
                    summarizable,
                    rehydrated,
                }
            })
            .collect()
    }

    /// Tokens of everything in an item but its text.
    fn opaque(&self, item: &wire::Item<'_>) -> usize {
        let framing = self.counter.framing();
        let calls: usize = item
            .calls
            .iter()
            .map(|call| {
                framing.per_call
                    + self.counter.count(&call.id)
                    + self.counter.count(&call.name)
                    + self.counter.count(&call.arguments)
            })
            .sum();
        let others: usize = item
            .opaque
            .iter()
            .map(|opaque| match opaque.kind {
                Kind::Image | Kind::Audio => attached::tokens(opaque.kind, opaque.raw, framing),
                Kind::File => attached::file(self.pages(opaque.raw), opaque.raw, framing),
                Kind::Reasoning | Kind::Other => self.counter.count(opaque.raw),
            })
            .sum();
        let id = item.result.as_ref().map_or(0, |result| self.counter.count(&result.id));
        framing.per_message + 1 + calls + others + id
    }

    fn fixed(&self, request: &Request<'_>) -> FixedTokens {
        let framing = self.counter.framing();
        let tools: usize = request.tools.iter().map(|tool| framing.per_tool + self.count_raw(tool.raw)).sum();
        let rest: usize = request.fixed.iter().map(|fixed| self.count_raw(fixed.raw)).sum();
        let ours = framing.per_tool + self.count_raw(wire::rehydrate_tool_json(request.format));
        // What comes with tools at all comes with the client's, or else with ours.
        let (with_theirs, with_ours) =
            if request.tools.is_empty() { (0, framing.tools) } else { (framing.tools, 0) };
        FixedTokens {
            system: 0,
            tools: tools + with_theirs,
            framing: framing.priming + rest,
            rehydrate_tool: ours + with_ours,
        }
    }

    /// The pages of a file. They are counted once, under a key of their own; what one costs is the model's.
    fn pages(&self, raw: &str) -> Option<usize> {
        let key =
            ContentHash::new(&[b"pages ", ContentHash::new(raw.as_bytes()).as_bytes().as_slice()].concat());
        Some(self.remembered(key, || attached::pages(raw).unwrap_or(0))).filter(|&pages| pages > 0)
    }

    fn count_raw(&self, text: &str) -> usize {
        self.count(ContentHash::new(text.as_bytes()), text)
    }

    fn count(&self, hash: ContentHash, text: &str) -> usize {
        self.remembered(hash, || self.counter.count(text))
    }

    /// About as many tokens as the text has.
    fn sampled(&self, hash: ContentHash, text: &str) -> usize {
        // Under a key of its own: where the text must stand, its count is exact.
        let key = ContentHash::new(&[b"sampled ", hash.as_bytes().as_slice()].concat());
        self.remembered(key, || self.counter.sampled(text))
    }

    fn remembered(&self, key: ContentHash, count: impl Fn() -> usize) -> usize {
        (self.counts)(key, &count)
    }
}

/// Results from this size on are not counted to the last token where they are replaced in any case: reports then say
/// about how large they were.
const SAMPLED: usize = 256 << 10;

fn opaque<'r>(item: &'r wire::Item<'_>) -> Vec<&'r str> {
    item.opaque.iter().map(|opaque| opaque.raw).collect()
}

/// What was decided, as changes of the body.
fn changes(window: &Window) -> Vec<(usize, Change<'_>)> {
    let decided = window.items.iter().enumerate();
    decided.filter_map(|(at, decided)| Some((at, change(decided)?))).collect()
}

fn change(decided: &DecidedItem) -> Option<Change<'_>> {
    match &decided.form {
        MessageForm::Whole => None,
        MessageForm::Replaced(with) => Some(Change::Replace(&with.text)),
        MessageForm::DroppedFor(with) => Some(Change::DropFor(&with.text)),
        MessageForm::Dropped => Some(Change::Drop),
    }
}
