//! Builds a history message by message: the form of each as it enters, given the messages before it, and its form
//! after an epoch.
//!
//! Knows texts, counts and the memo; does not know when an epoch begins or how large it may be.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::above::Above;
use super::choose::{Choice, Ladder};
use super::entry_cap::{entry_cap, file_of};
use super::history::{
    Complete, DecisionContext, HistoryLimits, MessageForm, Substitution, mark_tokens, runs,
};
use super::items::LinkedItem;
use super::receipt::Rendition;
use super::render::pointer_text;
use super::superseded::superseded;
use super::texts::{condense_sections, sections};
use super::watermark::{Messages, Saving};
use larder_condense::{
    CONDENSER_VERSION, CondenseError, CondenseRequest, Condensed, ContentType, KnownText, ReaderView,
};
use larder_text::file_calls::names_file;
use larder_text::hash::ContentHash;
use larder_text::message::Role;
use larder_text::pointer::Pointer;

/// Incremented whenever the same history would be decided differently; part of every memo key.
const VERSION: u8 = 8;
/// Results of at most this many tokens always stay whole, without being analysed.
const SMALL_RESULT: usize = 48;
/// A result stays whole up to this multiple of its cap: closer to the cap, header and gap markers cost more than
/// condensing saves.
const WHOLE_UP_TO: (usize, usize) = (5, 4);
/// A result is written tersely and without its own repeats up to this multiple of the entry cap: more of it would not fit
/// nevertheless.
const RESTATED_UP_TO: usize = 8;
/// The fewest tokens that replacing a result must save.
const MIN_SAVED: usize = 24;
/// The most bytes that each source contributes to the query.
const QUERY_BYTES: usize = 2_000;
/// How far back a result may refer to what stands above instead of repeating it, in tokens. Over longer distances
/// models find lines less reliably.
const REACH: usize = 50_000;
/// The share of turns in which a model reads back what an epoch replaced: in recorded runs of a coding agent, 6.0 % of
/// the turns needed something of the results before the ten newest.
const READS: f64 = 0.06;
/// What a reading costs besides one more request over the window, in tokens of input: the part that is read and the
/// words of the call.
const READING: f64 = 1_500.0;
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
    /// Tokens of the messages before each message, and of all so far.
    before: Vec<usize>,
    /// Texts of earlier messages, collected only when a result has to be rendered anew.
    above: Above<'a>,
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
        let (forms, above) = (Vec::with_capacity(entries.len()), Above::default());
        let start = start(limits, context);
        let (paid, unpaid) = (limits.first_saving == 0, BTreeSet::new());
        let before = vec![0];
        Self { entries, limits, context, forms, start, chain: start, before, above, seen: 0, paid, unpaid }
    }

    /// Adds the next message in the chosen form and returns its tokens.
    fn push(&mut self, choice: Choice) -> usize {
        let index = self.forms.len();
        let entry = &self.entries[index];
        let plain = !entry.is_compressible() || entry.tokens <= SMALL_RESULT;
        if plain && choice != Choice::Absent && entry.item.role == Role::Tool {
            self.chain = follow_call(self.chain, entry);
        }
        let (form, tokens) = match choice {
            Choice::Absent => (MessageForm::Dropped, None),
            Choice::Whole if plain => (MessageForm::Whole, Some(entry.tokens)),
            _ => match self.substitution(index, choice) {
                Some(made) if !self.stays_unpaid(index, choice, &made) => {
                    let tokens = made.tokens;
                    (MessageForm::Replaced(made), Some(tokens))
                }
                _ => (MessageForm::Whole, Some(entry.tokens)),
            },
        };
        self.paid |= form.hides();
        self.forms.push(form);
        let tokens = tokens.map_or(0, |tokens| tokens.saturating_add(entry.item.opaque_tokens));
        self.before.push(self.before[index].saturating_add(tokens));
        tokens
    }

    /// Whether a result stays as it came: no pointer is before it, and it alone would not pay for the tool that a
    /// pointer needs. That remains so for the rest of the conversation, unless an epoch replaces it.
    fn stays_unpaid(&mut self, index: usize, choice: Choice, made: &Substitution) -> bool {
        if choice != Choice::Whole || made.complete.is_some() {
            return false;
        }
        let saved = self.entries[index].tokens.saturating_sub(made.tokens);
        if !self.paid && !self.pays_for_tool(index, saved) {
            self.unpaid.insert(index);
        }
        self.unpaid.contains(&index)
    }

    /// Whether the first replacement saves more than the tool that it makes necessary costs. The tool's definition comes
    /// first in a prompt, so the provider's cache of all that is before the result is lost once, too.
    fn pays_for_tool(&self, index: usize, saved: usize) -> bool {
        let prompt = self.before[index].saturating_add(self.entries[index].tokens);
        let cache = self.limits.price.cache.of_prompt(prompt);
        let net = saved.saturating_sub(self.limits.first_saving) as f64;
        let moved = self.before[index] as f64;
        net * (cache.write + cache.read * self.turns(index)) > moved * (cache.write - cache.read)
    }

    /// The expected number of further requests after the first `count` messages.
    fn turns(&self, count: usize) -> f64 {
        let answers = || {
            let so_far = self.entries[..count].iter();
            so_far.filter(|entry| entry.item.role == Role::Assistant).count()
        };
        self.limits.price.turns.unwrap_or_else(answers) as f64
    }

    /// The text that replaces a result, if any: from the memo, or rendered with regard to the messages before it.
    fn substitution(&mut self, index: usize, choice: Choice) -> Option<Arc<Substitution>> {
        let entry = &self.entries[index];
        let from = self.before.partition_point(|before| before.saturating_add(REACH) < self.before[index]);
        self.chain = follow(self.chain, self.entries, index, choice, from);
        let paid = [u8::from(self.paid), u8::from(self.unpaid.contains(&index))];
        self.chain = ContentHash::new(&[self.chain.as_bytes().as_slice(), &paid].concat());
        if choice == Choice::Pointer {
            return Some(self.renderer(entry).pointer());
        }
        self.context.memo.get_or(self.chain, || {
            for at in self.seen..index {
                let (entry, form) = (&self.entries[at], &self.forms[at]);
                if !matches!(form, MessageForm::Dropped) {
                    self.above.add(at, entry, shown(entry, form));
                }
            }
            self.seen = index;
            let renderer = self.renderer(entry);
            match choice {
                Choice::Condensed(target) => {
                    renderer.condensed(target.saturating_sub(entry.item.opaque_tokens), &[])
                }
                _ => renderer.entering(&self.above, from),
            }
        })
    }

    fn renderer(&self, entry: &'a LinkedItem<'a>) -> MessageRenderer<'a> {
        let Self { entries, limits, context, start, .. } = *self;
        MessageRenderer { entries, entry, limits, context, start }
    }
}

/// The start of every hash chain: everything that affects all decisions.
fn start(limits: &HistoryLimits, context: DecisionContext<'_>) -> ContentHash {
    let owner = context.key.mint(ContentHash::new(b""));
    let text = format!(
        "{VERSION} {CONDENSER_VERSION} {} {} {} {} {} {}",
        context.counter.name(),
        limits.flood,
        limits.first_saving,
        limits.refers_above,
        limits.terse_json,
        owner.as_str()
    );
    ContentHash::new(text.as_bytes())
}

/// Extends the chain by the call of a result: references tell results by their calls, and count those that are alike.
fn follow_call(chain: ContentHash, entry: &LinkedItem<'_>) -> ContentHash {
    let mut bytes = chain.as_bytes().to_vec();
    if let Some(answered) = entry.answers {
        bytes.extend_from_slice(&answered.call.name.len().to_le_bytes());
        bytes.extend_from_slice(answered.call.name.as_bytes());
        bytes.extend_from_slice(answered.call.arguments.as_bytes());
    }
    ContentHash::new(&bytes)
}

/// Extends the chain by a result, its call, the chosen rendition, and the first message to refer to.
fn follow(
    chain: ContentHash,
    entries: &[LinkedItem<'_>],
    index: usize,
    choice: Choice,
    from: usize,
) -> ContentHash {
    let entry = &entries[index];
    let mut bytes = Vec::with_capacity(256);
    bytes.extend_from_slice(chain.as_bytes());
    bytes.extend_from_slice(entry.item.hash.as_bytes());
    entry.item.texts.iter().for_each(|range| bytes.extend_from_slice(&range.end.to_le_bytes()));
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
    bytes.extend_from_slice(&index.to_le_bytes());
    bytes.extend_from_slice(&from.to_le_bytes());
    bytes.extend_from_slice(&target.to_le_bytes());
    bytes.extend_from_slice(&entry.entry_cap.to_le_bytes());
    bytes.push(u8::from(entry.is_error()));
    bytes.push(u8::from(entry.item.spared));
    follow_call(ContentHash::new(&bytes), entry)
}

/// The text of a result that stands above later ones, as it is sent, and whether it hides nothing.
fn shown<'a>(entry: &'a LinkedItem<'_>, form: &'a MessageForm) -> Option<(&'a str, bool)> {
    match form {
        _ if !entry.is_compressible() || entry.tokens <= SMALL_RESULT => None,
        MessageForm::Whole => Some((entry.item.text, true)),
        MessageForm::Replaced(made) if made.rendition == Rendition::Condensed => {
            Some((&made.text, made.complete.is_some()))
        }
        _ => None,
    }
}

impl Messages for HistoryBuilder<'_> {
    fn enter(&mut self, _index: usize) -> (Choice, usize) {
        (Choice::Whole, self.push(Choice::Whole))
    }

    fn ladders(&self, count: usize) -> Cow<'_, [Ladder]> {
        let superseded = superseded(&self.entries[..count]);
        let ladder = |(index, superseded): (usize, bool)| {
            let ladder = self.renderer(&self.entries[index]).ladder(self.unpaid.contains(&index));
            // What is out of date goes first, errors go last.
            let priority = if superseded && self.limits.superseded_first { 0 } else { 1 + ladder.priority };
            Ladder { priority, ..ladder }
        };
        Cow::Owned(superseded.into_iter().enumerate().map(ladder).collect())
    }

    fn redecide(&mut self, choices: &[Choice]) -> Vec<usize> {
        let unpaid = std::mem::take(&mut self.unpaid);
        *self = Self { paid: true, unpaid, ..Self::new(self.entries, self.limits, self.context) };
        let mut costs: Vec<usize> = choices.iter().map(|&choice| self.push(choice)).collect();
        let dropped = runs(choices.iter().map(|choice| *choice == Choice::Absent));
        for (run, mark) in dropped.iter().zip(mark_tokens(dropped.len(), self.context)) {
            costs[run.start] = costs[run.start].saturating_add(mark);
        }
        costs
    }

    fn marks(&self, runs: usize) -> usize {
        mark_tokens(runs, self.context).sum()
    }

    fn pays(&self, saving: &Saving) -> bool {
        let turns = self.turns(saving.at_message);
        let total = self.before.last().copied().unwrap_or(0);
        let cache = self.limits.price.cache.of_prompt(total);
        // The first pointer also costs the tool, whose definition comes before everything else.
        let (tool, moved) = if self.paid { (0, saving.moved) } else { (self.limits.first_saving, total) };
        let saved = saving.saved.saturating_sub(tool) as f64;
        let reading = cache.read * total as f64 + READING;
        saved * cache.read * turns > moved as f64 * (cache.write - cache.read) + READS * turns * reading
    }
}

/// Renders one message.
#[derive(Clone, Copy)]
struct MessageRenderer<'a> {
    entries: &'a [LinkedItem<'a>],
    entry: &'a LinkedItem<'a>,
    limits: &'a HistoryLimits,
    context: DecisionContext<'a>,
    start: ContentHash,
}

impl MessageRenderer<'_> {
    fn ladder(&self, unpaid: bool) -> Ladder {
        let entry = self.entry;
        let is_result = entry.is_compressible() && entry.tokens > SMALL_RESULT;
        let cap = if is_result && !unpaid { self.cap(entry.tokens) } else { usize::MAX };
        let tokens = if stays_whole(entry.tokens, cap) { entry.tokens } else { cap };
        let size = tokens.saturating_add(entry.item.opaque_tokens);
        let pointer = if is_result {
            self.pointer().tokens.saturating_add(entry.item.opaque_tokens)
        } else {
            usize::MAX / 4
        };
        Ladder {
            whole: Some(size),
            size,
            full: (size, true),
            pointer,
            frame: entry.item.opaque_tokens,
            priority: u8::from(entry.is_error()),
            relevance: 1.0,
            summarizable: is_result,
            min_remaining: 0,
        }
    }

    /// The maximum tokens of the text when it enters, given those of its complete form.
    fn cap(&self, tokens: usize) -> usize {
        let (cap, flood) = (self.entry.entry_cap, self.limits.flood);
        match stays_whole(tokens, cap) {
            _ if self.entry.item.spared => usize::MAX,
            true => cap,
            false => entry_cap(self.entry, cap, self.context.key).min(flood),
        }
    }

    /// The replacement of a result as it enters; `None` keeps it whole. References lead to message number `from` or
    /// after it.
    fn entering(&self, above: &Above<'_>, from: usize) -> Option<Arc<Substitution>> {
        let text = self.entry.item.text;
        let restated = self.restated(above, from);
        let tokens = restated.as_ref().map_or(self.entry.tokens, |restated| restated.tokens);
        let cap = self.cap(tokens);
        if stays_whole(tokens, cap) {
            return restated.map(Arc::new);
        }
        let repeats: Vec<Range<usize>> = match restated {
            Some(_)
                if self.limits.refers_above
                    && larder_condense::structure_of(text).is_none()
                    && sections(self.entry.item).is_empty() =>
            {
                above.repeats(text, from).into_iter().map(|repeat| repeat.bytes).collect()
            }
            _ => Vec::new(),
        };
        self.condensed(cap, &repeats)
    }

    /// The text in fewer tokens with nothing hidden: JSON written tersely, and without what stands above. An error, and a
    /// file that may be edited by repeating its text, stay as they are.
    fn restated(&self, above: &Above<'_>, from: usize) -> Option<Substitution> {
        let is_small = self.is_small();
        let may_be_terse = is_small && self.limits.terse_json && !self.entry.is_error();
        let terse = may_be_terse.then(|| larder_condense::terse_json(self.entry.item.text)).flatten();
        let call = self.entry.answers.map(|answered| answered.call);
        let terse = terse.filter(|_| !call.is_some_and(|call| names_file(&call.name, &call.arguments)));
        let shown = terse.as_deref().unwrap_or(self.entry.item.text);
        let referring = if self.limits.refers_above { above.referring(shown, from, is_small) } else { None };
        let complete = if referring.is_some() { Complete::StandsAbove } else { Complete::Terse };
        let text = referring.or(terse)?;
        let tokens = self.context.counter.count(&text);
        let saves = tokens.saturating_add(MIN_SAVED) <= self.entry.tokens;
        saves.then(|| Substitution {
            rendition: Rendition::Condensed,
            text,
            tokens,
            pointer: None,
            gaps: Vec::new(),
            complete: Some(complete),
        })
    }

    /// Whether the text may fit once it is restated: a much larger one is condensed nevertheless.
    fn is_small(&self) -> bool {
        self.entry.item.spared || self.entry.tokens <= self.entry.entry_cap.saturating_mul(RESTATED_UP_TO)
    }

    /// The text in at most `target` tokens: `None` if it fits whole, a pointer if it cannot be condensed that far.
    /// Ranges `above` are not shown again.
    fn condensed(&self, target: usize, above: &[Range<usize>]) -> Option<Arc<Substitution>> {
        match self.condense(target, above) {
            Ok(condensed) if condensed.text == self.entry.item.text => None,
            Ok(Condensed { text, tokens, pointer, gaps, .. }) => Some(Arc::new(Substitution {
                rendition: Rendition::Condensed,
                text,
                tokens,
                pointer: Some(pointer),
                gaps,
                complete: None,
            })),
            Err(_) => Some(self.pointer()),
        }
    }

    fn condense(&self, target: usize, above: &[Range<usize>]) -> Result<Condensed, CondenseError> {
        let item = self.entry.item;
        let in_sections =
            |range: &Range<usize>, tokens, share| self.condense_range(range, tokens, share, &[]);
        let in_sections = || condense_sections(item, target, self.context.counter, in_sections);
        match above.is_empty().then(in_sections).flatten() {
            Some(condensed) => Ok(condensed),
            None => self.condense_range(&(0..item.text.len()), self.entry.tokens, target, above),
        }
    }

    /// A range of the text, which has so many tokens, in at most `target` tokens.
    fn condense_range(
        &self,
        range: &Range<usize>,
        tokens: usize,
        target: usize,
        above: &[Range<usize>],
    ) -> Result<Condensed, CondenseError> {
        let DecisionContext { counter, key, .. } = self.context;
        let (query, text) = (self.query(), self.entry.item.text);
        let request = CondenseRequest {
            text: &text[range.clone()],
            content_type: self.content_type(),
            target,
            query: Some(&query).filter(|query| !query.is_empty()).map(String::as_str),
            pins: &[],
            counter,
            key,
        };
        let known = Some(KnownText { hash: self.entry.item.hash, tokens });
        let before = (range.start, text[..range.start].matches('\n').count());
        let view = ReaderView { seen: above, markers_known: true, known, skip_probes: true, before };
        larder_condense::condense_in_view(&request, view)
    }

    /// A file of source code is one by its name; all else is what its structure shows.
    fn content_type(&self) -> ContentType {
        let named = file_of(self.entry).and_then(|path| larder_condense::by_extension(&path));
        named.filter(|named| *named == ContentType::Code).unwrap_or(ContentType::ToolResult)
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
            let pointer = Some(pointer);
            Substitution { rendition: Rendition::Pointer, text, tokens, pointer, gaps, complete: None }
        };
        let found = self.context.memo.get_or(ContentHash::new(&key), || Some(Arc::new(make())));
        found.unwrap_or_else(|| Arc::new(make()))
    }
}

fn stays_whole(tokens: usize, cap: usize) -> bool {
    tokens <= cap.saturating_mul(WHOLE_UP_TO.0) / WHOLE_UP_TO.1
}
