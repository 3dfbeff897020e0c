//! Builds a history message by message: the form of each as it enters, given the messages before it, and its form
//! after an epoch.
//!
//! Knows texts, counts and the memo; does not know when an epoch begins or how large it may be.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::choose::{Choice, Ladder};
use super::history::{CachePrice, DecisionContext, HistoryLimits, MessageForm, Substitution};
use super::items::LinkedItem;
use super::receipt::Rendition;
use super::render::pointer_text;
use super::watermark::{Messages, Saving};
use larder_condense::{
    CONDENSER_VERSION, CondenseError, CondenseRequest, Condensed, ContentType, Gap, KnownText, ReaderView,
    SeenText,
};
use larder_text::hash::ContentHash;
use larder_text::message::Role;
use larder_text::pointer::Pointer;

/// Incremented whenever the same history would be decided differently; part of every memo key.
const VERSION: u8 = 1;
/// Results of at most this many tokens always stay whole, without being analysed.
const SMALL_RESULT: usize = 48;
/// A result stays whole up to this multiple of its cap: closer to the cap, header and gap markers cost more than
/// condensing saves.
const WHOLE_UP_TO: (usize, usize) = (5, 4);
/// The fewest tokens that replacing a result must save.
const MIN_SAVED: usize = 24;
/// Errors and texts that contain pointers should stay whole if possible, so their cap is this many times larger.
const ROOMY_FACTOR: usize = 4;
/// A text is reduced to what is new in it once at least one part in this many appears in earlier messages.
const REPEATED_SHARE: usize = 4;
/// The most bytes that each source contributes to the query.
const QUERY_BYTES: usize = 2_000;
/// The most bytes of a tool's name that a pointer shows.
const NAME_BYTES: usize = 64;

/// A history under construction.
pub(super) struct HistoryBuilder<'a> {
    entries: &'a [LinkedItem<'a>],
    limits: &'a HistoryLimits,
    context: DecisionContext<'a>,
    pub forms: Vec<MessageForm>,
    start: ContentHash,
    /// The hash of everything that the next message's form depends on except the message itself.
    chain: ContentHash,
    /// Texts of earlier messages, collected only when a result has to be rendered anew.
    above: SeenText,
    /// The number of messages that `above` covers.
    seen: usize,
    /// Whether an earlier replacement has paid for Larder's tool.
    paid: bool,
    /// Messages that entered whole because their replacement would not have paid for the tool.
    unpaid: BTreeSet<usize>,
}

impl<'a> HistoryBuilder<'a> {
    pub fn new(
        entries: &'a [LinkedItem<'a>],
        limits: &'a HistoryLimits,
        context: DecisionContext<'a>,
    ) -> Self {
        let (forms, above) = (Vec::with_capacity(entries.len()), SeenText::default());
        let start = start(limits, context);
        let (paid, unpaid) = (limits.first_saving == 0, BTreeSet::new());
        Self { entries, limits, context, forms, start, chain: start, above, seen: 0, paid, unpaid }
    }

    /// Adds the next message in the chosen form and returns its tokens.
    fn push(&mut self, choice: Choice) -> usize {
        let index = self.forms.len();
        let entry = &self.entries[index];
        let plain = !entry.is_compressible() || entry.tokens <= SMALL_RESULT;
        let (form, tokens) = match choice {
            Choice::Absent => (MessageForm::Dropped, None),
            Choice::Whole if plain => (MessageForm::Whole, Some(entry.tokens)),
            _ => match self.substitution(index, choice) {
                Some(made) if !self.stays_unpaid(index, choice, made.tokens) => {
                    let tokens = made.tokens;
                    (MessageForm::Replaced(made), Some(tokens))
                }
                _ => (MessageForm::Whole, Some(entry.tokens)),
            },
        };
        self.paid |= form != MessageForm::Whole;
        self.forms.push(form);
        tokens.map_or(0, |tokens| tokens.saturating_add(entry.item.opaque_tokens))
    }

    /// Whether a result stays as it came: no pointer is before it, and it alone would not pay for the tool that a
    /// pointer needs. That remains so for the rest of the conversation, unless an epoch replaces it.
    fn stays_unpaid(&mut self, index: usize, choice: Choice, tokens: usize) -> bool {
        if choice != Choice::Whole {
            return false;
        }
        let saved = self.entries[index].tokens.saturating_sub(tokens);
        if !self.paid && saved <= self.limits.first_saving {
            self.unpaid.insert(index);
        }
        self.unpaid.contains(&index)
    }

    /// The text that replaces a result, if any: from the memo, or rendered with regard to the messages before it.
    fn substitution(&mut self, index: usize, choice: Choice) -> Option<Arc<Substitution>> {
        let entry = &self.entries[index];
        self.chain = follow(self.chain, self.entries, entry, choice);
        let paid = [u8::from(self.paid), u8::from(self.unpaid.contains(&index))];
        self.chain = ContentHash::new(&[self.chain.as_bytes().as_slice(), &paid].concat());
        if choice == Choice::Pointer {
            return Some(self.renderer(entry).pointer());
        }
        self.context.memo.get_or(self.chain, || {
            for at in self.seen..index {
                add_shown(&mut self.above, &self.entries[at], &self.forms[at]);
            }
            self.seen = index;
            let renderer =
                MessageRenderer { entries: self.entries, entry, context: self.context, start: self.start };
            match choice {
                Choice::Condensed(target) => {
                    renderer.condensed(target.saturating_sub(entry.item.opaque_tokens))
                }
                _ => renderer.entering(self.limits, &self.above),
            }
        })
    }

    fn renderer(&self, entry: &'a LinkedItem<'a>) -> MessageRenderer<'a> {
        MessageRenderer { entries: self.entries, entry, context: self.context, start: self.start }
    }
}

/// The start of every hash chain: everything that affects all decisions.
fn start(limits: &HistoryLimits, context: DecisionContext<'_>) -> ContentHash {
    let owner = context.key.mint(ContentHash::new(b""));
    let text = format!(
        "{VERSION} {CONDENSER_VERSION} {} {} {} {} {}",
        context.counter.name(),
        limits.entry_cap,
        limits.first_saving,
        limits.refers_above,
        owner.as_str()
    );
    ContentHash::new(text.as_bytes())
}

/// Extends the chain by a result, the call it answers, and the chosen rendition.
fn follow(
    chain: ContentHash,
    entries: &[LinkedItem<'_>],
    entry: &LinkedItem<'_>,
    choice: Choice,
) -> ContentHash {
    let mut bytes = Vec::with_capacity(256);
    bytes.extend_from_slice(chain.as_bytes());
    bytes.extend_from_slice(entry.item.hash.as_bytes());
    let said = [entry.user_message, entry.answers.map(|answered| answered.item)];
    for at in said {
        let hash = at.and_then(|at| entries.get(at)).map(|entry| entry.item.hash);
        bytes.extend_from_slice(&hash.map_or([0; 32], |hash| *hash.as_bytes()));
    }
    let (kind, target) = match choice {
        Choice::Whole => (b'w', 0),
        Choice::Condensed(target) => (b'c', target.saturating_sub(entry.item.opaque_tokens)),
        Choice::Pointer => (b'p', 0),
        Choice::Absent => (b'a', 0),
    };
    bytes.push(kind);
    bytes.extend_from_slice(&target.to_le_bytes());
    bytes.push(u8::from(entry.is_error()));
    bytes.push(u8::from(entry.item.spared));
    if let Some(answered) = entry.answers {
        bytes.extend_from_slice(&answered.call.name.len().to_le_bytes());
        bytes.extend_from_slice(answered.call.name.as_bytes());
        bytes.extend_from_slice(answered.call.arguments.as_bytes());
    }
    ContentHash::new(&bytes)
}

/// Adds the visible text of a sent result to `above`.
fn add_shown(above: &mut SeenText, entry: &LinkedItem<'_>, form: &MessageForm) {
    if !entry.is_compressible() || entry.tokens <= SMALL_RESULT {
        return;
    }
    match form {
        MessageForm::Whole => above.add(entry.item.text),
        MessageForm::Replaced(made) if made.complete => above.add(entry.item.text),
        MessageForm::Replaced(made) if made.rendition == Rendition::Condensed => above.add(&made.text),
        _ => {}
    }
}

impl Messages for HistoryBuilder<'_> {
    fn enter(&mut self, _index: usize) -> (Choice, usize) {
        (Choice::Whole, self.push(Choice::Whole))
    }

    fn ladders(&self, count: usize) -> Cow<'_, [Ladder]> {
        let cap =
            |index: &usize| if self.unpaid.contains(index) { usize::MAX } else { self.limits.entry_cap };
        let ladder = |index: usize| self.renderer(&self.entries[index]).ladder(cap(&index));
        Cow::Owned((0..count).map(ladder).collect())
    }

    fn redecide(&mut self, choices: &[Choice]) -> Vec<usize> {
        let unpaid = std::mem::take(&mut self.unpaid);
        *self = Self { paid: true, unpaid, ..Self::new(self.entries, self.limits, self.context) };
        choices.iter().map(|&choice| self.push(choice)).collect()
    }

    fn pays(&self, saving: &Saving) -> bool {
        let CachePrice { cached, turns } = self.limits.price;
        let answers = || {
            let so_far = self.entries[..saving.at_message].iter();
            so_far.filter(|entry| entry.item.role == Role::Assistant).count()
        };
        let turns = turns.unwrap_or_else(answers);
        // The first pointer also costs the tool.
        let saved = saving.saved.saturating_sub(if self.paid { 0 } else { self.limits.first_saving });
        saved as f64 * cached * turns as f64 > saving.moved as f64 * (1.0 - cached)
    }
}

/// Renders one message.
#[derive(Clone, Copy)]
struct MessageRenderer<'a> {
    entries: &'a [LinkedItem<'a>],
    entry: &'a LinkedItem<'a>,
    context: DecisionContext<'a>,
    start: ContentHash,
}

impl MessageRenderer<'_> {
    /// The maximum tokens of the text when it enters.
    fn cap(&self, entry_cap: usize) -> usize {
        if self.entry.item.spared {
            return usize::MAX;
        }
        let is_error = self.entry.is_error();
        // A text with our pointers was condensed before, or refers to something that was.
        let roomy = is_error || !self.context.key.find_in(self.entry.item.text).is_empty();
        if roomy { entry_cap.saturating_mul(ROOMY_FACTOR) } else { entry_cap }
    }

    fn ladder(&self, entry_cap: usize) -> Ladder {
        let entry = self.entry;
        let is_result = entry.is_compressible() && entry.tokens > SMALL_RESULT;
        let over = is_result && !entry.item.spared && !stays_whole(entry.tokens, entry_cap);
        let cap = if over { self.cap(entry_cap) } else { entry_cap };
        let tokens = if over && !stays_whole(entry.tokens, cap) { cap } else { entry.tokens };
        let size = tokens.saturating_add(entry.item.opaque_tokens);
        let pointer = if is_result {
            self.pointer().tokens.saturating_add(entry.item.opaque_tokens)
        } else {
            usize::MAX / 4
        };
        Ladder {
            whole: Some(size),
            size,
            pointer,
            frame: entry.item.opaque_tokens,
            priority: u8::from(entry.is_error()),
            relevance: 1.0,
            summarizable: is_result,
            min_remaining: 0,
        }
    }

    /// The replacement of a result as it enters; `None` keeps it whole.
    fn entering(&self, limits: &HistoryLimits, above: &SeenText) -> Option<Arc<Substitution>> {
        let (text, tokens, cap) = (self.entry.item.text, self.entry.tokens, self.cap(limits.entry_cap));
        let whole = stays_whole(tokens, cap);
        if whole && self.entry.is_error() {
            return None;
        }
        let news = limits.refers_above.then(|| self.news(above, tokens.saturating_sub(MIN_SAVED).min(cap)));
        let news = news.flatten();
        match news {
            Some(news) if news.complete => Some(Arc::new(news)),
            _ if whole => None,
            Some(news) if larder_condense::structure_of(text).is_none() => Some(Arc::new(news)),
            _ => self.condensed(cap),
        }
    }

    /// What is new in the text, if enough of it appears in earlier messages.
    fn news(&self, above: &SeenText, target: usize) -> Option<Substitution> {
        let repeats = above.repeats(self.entry.item.text);
        let bytes: usize = repeats.iter().map(ExactSizeIterator::len).sum();
        if bytes * REPEATED_SHARE < self.entry.item.text.len() {
            return None;
        }
        let condensed = self.condense(target, &repeats).ok()?;
        let is_above = |gap: &Gap| {
            repeats.iter().any(|above| above.start <= gap.bytes.start && gap.bytes.end <= above.end)
        };
        let complete = condensed.gaps.iter().all(is_above);
        Some(Substitution { complete, ..condensed_form(condensed) })
    }

    /// The text in at most `target` tokens: `None` if it fits whole, a pointer if it cannot be condensed that far.
    fn condensed(&self, target: usize) -> Option<Arc<Substitution>> {
        match self.condense(target, &[]) {
            Ok(condensed) if condensed.text == self.entry.item.text => None,
            Ok(condensed) => Some(Arc::new(condensed_form(condensed))),
            Err(_) => Some(self.pointer()),
        }
    }

    fn condense(&self, target: usize, above: &[Range<usize>]) -> Result<Condensed, CondenseError> {
        let DecisionContext { counter, key, .. } = self.context;
        let query = self.query();
        let request = CondenseRequest {
            text: self.entry.item.text,
            content_type: ContentType::ToolResult,
            target,
            query: Some(&query).filter(|query| !query.is_empty()).map(String::as_str),
            pins: &[],
            counter,
            key,
        };
        let known = Some(KnownText { hash: self.entry.item.hash, tokens: self.entry.tokens });
        larder_condense::condense_in_view(
            &request,
            ReaderView { seen: above, markers_known: true, known, skip_probes: true },
        )
    }

    /// The query for condensing: the call, the message that made it, and the newest user message before it.
    fn query(&self) -> String {
        let said = |at: usize| self.entries.get(at).map_or("", |entry| entry.item.text);
        let answers = self.entry.answers;
        let parts = [
            answers.map_or("", |answered| &*answered.call.name),
            answers.map_or("", |answered| &*answered.call.arguments),
            answers.map_or("", |answered| said(answered.item)),
            self.entry.user_message.map_or("", said),
        ];
        let begin = |part: &&str| part[..part.floor_char_boundary(QUERY_BYTES)].to_owned();
        parts.iter().filter(|part| !part.is_empty()).map(begin).collect::<Vec<_>>().join("\n")
    }

    /// A one-line pointer, the same wherever the result appears.
    fn pointer(&self) -> Arc<Substitution> {
        let name = self.entry.answers.map_or("", |answered| &*answered.call.name);
        let name = &name[..name.floor_char_boundary(NAME_BYTES)];
        let key = [self.start.as_bytes(), self.entry.item.hash.as_bytes(), name.as_bytes()].concat();
        let make = || {
            let pointer = Pointer::whole(self.context.key.mint(self.entry.item.hash));
            let text = pointer_text(&format!("result of {name}"), self.entry.item.text, &pointer);
            let (tokens, gaps) = (self.context.counter.count(&text), Vec::new());
            Substitution { rendition: Rendition::Pointer, text, tokens, pointer, gaps, complete: false }
        };
        let found = self.context.memo.get_or(ContentHash::new(&key), || Some(Arc::new(make())));
        found.unwrap_or_else(|| Arc::new(make()))
    }
}

fn stays_whole(tokens: usize, cap: usize) -> bool {
    tokens <= cap.saturating_mul(WHOLE_UP_TO.0) / WHOLE_UP_TO.1
}

fn condensed_form(condensed: Condensed) -> Substitution {
    let Condensed { text, tokens, pointer, gaps, .. } = condensed;
    let complete = gaps.is_empty();
    Substitution { rendition: Rendition::Condensed, text, tokens, pointer, gaps, complete }
}
