//! Turns a request into the one that is sent: applies the policy's decisions as edits of its text, and reports them.
//! Knows neither servers nor clients.

mod attachment_tokens;
mod describe;
mod image_size;
mod left_alone;
mod preview;
mod transcript;

use std::collections::BTreeMap;

use bytes::Bytes;
use larder_condense::ContentType;
use larder_core::policy::{
    ContextBudgetPolicy, Conversation, ConversationItem, DecidedWindow, DecisionContext, FixedTokens, Memo,
    MessageForm, PointerReader, Verdict,
};
use larder_text::hash::ContentHash;
use larder_text::json;
use larder_text::pointer::PointerKey;
use larder_text::price::CacheWrites;
use larder_text::tokens::Counter;

use crate::wire::{self, OpaqueKind, Request};
use describe::{describe, offers};

pub use describe::{LastRenditions, WindowReport};
pub use preview::{Preview, preview};
pub use transcript::Transcript;

/// Why a request may not leave.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// Its body cannot be understood.
    #[error(transparent)]
    Unreadable(#[from] wire::ReadError),
    /// It cannot be made to fit; with the message of its format for that, and advice.
    #[error("{0}")]
    TooLong(String),
    /// The decision cannot be written into the body, which is a bug.
    #[error(transparent)]
    Unwritable(#[from] json::EditError),
}

/// Cached counts of one counter: returns the count under a key, computing it if necessary.
pub type Counts<'a> = &'a dyn Fn(ContentHash, &dyn Fn() -> usize) -> usize;

/// Takes an original and its hash, on another thread.
pub type StoreAhead<'a> = &'a (dyn Fn(ContentHash, &str) + Sync);

/// A request that may be sent, and what must be stored first.
pub struct PreparedRequest {
    /// Its body.
    pub body: Bytes,
    /// The name under which Larder's tool was offered, if it was.
    pub offered: Option<&'static str>,
    /// What it leaves out and is not stored yet.
    pub missing: Vec<UnstoredOriginal>,
    /// The transcript, if enabled.
    pub transcript: Option<Transcript>,
}

/// An original that must be stored before the request is sent.
pub struct UnstoredOriginal {
    /// The hash of its text.
    pub hash: ContentHash,
    /// The original; `None` if [`WindowBuilder::ahead`] was called with it.
    pub text: Option<String>,
    /// What it is, in a word.
    pub kind: &'static str,
    /// One line for people.
    pub display: String,
}

/// A decided request: its report, and what may be sent.
pub struct DecidedRequest {
    /// The report on its window, whether or not it may be sent.
    pub report: WindowReport,
    /// The request to send.
    pub outcome: Result<PreparedRequest, WindowError>,
}

/// What a window is decided with.
pub struct WindowBuilder<'a> {
    /// Cached renditions.
    pub memo: &'a Memo,
    /// Cached counts.
    pub counts: Counts<'a>,
    /// The policy that decides.
    pub policy: &'a ContextBudgetPolicy,
    /// Counts tokens as the model does.
    pub counter: &'a Counter,
    /// Mints the pointers of the conversation's owner.
    pub key: &'a PointerKey,
    /// The renditions in the conversation's request before.
    pub last: &'a LastRenditions,
    /// Whether the model's requests for originals are answered.
    pub rehydrates: bool,
    /// Whether the history that the provider holds contains pointers.
    pub holds_pointers: bool,
    /// The body as received.
    pub body: &'a Bytes,
    /// What the request has the provider write to its cache.
    pub writes: CacheWrites,
    /// Whether the request is only to be counted.
    pub counts_only: bool,
    /// Whether a transcript is recorded.
    pub transcribes: bool,
    /// Whether an original is already stored.
    pub is_stored: &'a dyn Fn(ContentHash) -> bool,
    /// Called with large originals that are not known to be stored, on another thread while the window is decided, which
    /// replaces them unless their cap is as large.
    pub ahead: Option<StoreAhead<'a>>,
}

impl WindowBuilder<'_> {
    /// Decides a request. `model` is the name to write into the body, if it differs from the one there.
    pub fn decide(&self, request: &Request<'_>, model: Option<&str>) -> DecidedRequest {
        let opaque: Vec<Vec<&str>> = request.items.iter().map(opaque).collect();
        let reader = self.reader(request);
        let items = self.items(request, &opaque, reader);
        let conversation = Conversation {
            fixed: self.fixed(request),
            items: &items,
            max_output: request.max_output.and_then(|max| usize::try_from(max).ok()),
            reader,
            needs_tool: self.holds_pointers || self.calls_ours(request) || self.names_pointers(request),
            refers_above: request.edited_elsewhere.is_none(),
            writes: self.writes,
        };
        let context = DecisionContext { counter: self.counter, key: self.key, memo: self.memo };
        let (large, ahead) = (self.large(&items), self.ahead);
        let (kinds, window) = self.counter.workers().join_if_worth(
            !large.is_empty(),
            || ahead.map_or_else(BTreeMap::new, |ahead| store_ahead(&large, ahead)),
            || self.policy.decide(&conversation, context),
        );
        let left_alone = left_alone::list(self, request, reader, &items);
        let report = describe(request, &window, &conversation, self.last, &kinds, left_alone);
        DecidedRequest { report, outcome: self.prepare(request, &window, &items, &kinds, model) }
    }

    /// Who opens the pointers of a request.
    fn reader(&self, request: &Request<'_>) -> PointerReader {
        match (self.unoffered(request), request.reader_of_client()) {
            (None, _) => PointerReader::Larder,
            (Some(_), Some(_)) => PointerReader::Client,
            (Some(_), None) => PointerReader::Nobody,
        }
    }

    /// Why Larder's tool is not offered, if so.
    fn unoffered(&self, request: &Request<'_>) -> Option<&'static str> {
        let off = (!self.rehydrates).then_some("rehydrate_rounds under [gateway] is 0");
        off.or_else(|| request.unofferable())
    }

    /// Whether the model has called Larder's tool: providers reject calls of a tool that the request does not define.
    fn calls_ours(&self, request: &Request<'_>) -> bool {
        let ours = |call: &wire::ItemCall<'_>| call.name == request.tool_name();
        request.items.iter().flat_map(|item| &item.calls).any(ours)
    }

    /// Whether a text of the client contains a pointer of its user, such as its own summary of a longer conversation.
    fn names_pointers(&self, request: &Request<'_>) -> bool {
        !self.key.find_in(request.body).is_empty()
    }

    fn prepare(
        &self,
        request: &Request<'_>,
        window: &DecidedWindow,
        items: &[ConversationItem<'_>],
        kinds: &Kinds,
        model: Option<&str>,
    ) -> Result<PreparedRequest, WindowError> {
        // A client that asks for the length of a prompt needs the answer most when it is too long.
        if window.verdict == Verdict::Refuse && !self.counts_only {
            return Err(too_long(request, window));
        }
        let edited = window.verdict == Verdict::Edited;
        let forms = window.items.iter().map(|decided| &decided.form).enumerate();
        let forms: Vec<(usize, &MessageForm)> =
            forms.filter(|(_, form)| edited && **form != MessageForm::Whole).collect();
        let mut edits = request.rewrite(&forms);
        let changed = edited.then_some((window, edits.as_slice()));
        let transcript = self.transcribes.then(|| Transcript::new(request, items, changed, self.body));
        edits.extend(model.and_then(|name| request.set_model(name)));
        if offers(window) {
            edits.extend(request.offer());
        }
        let body = match edits.is_empty() {
            true => self.body.clone(),
            false => json::apply(request.body, edits)?.into(),
        };
        let missing = if edited { self.missing(window, items, kinds) } else { Vec::new() };
        Ok(PreparedRequest {
            body,
            offered: offers(window).then(|| request.tool_name()),
            missing,
            transcript,
        })
    }

    /// Large results that are replaced, unless their cap is as large, and that are not known to be stored.
    fn large<'i>(&self, items: &'i [ConversationItem<'_>]) -> Vec<(ContentHash, &'i str)> {
        if self.ahead.is_none() {
            return Vec::new();
        }
        let large = items.iter().filter(|item| item.sampled && !(self.is_stored)(item.hash));
        large.map(|item| (item.hash, item.text)).collect()
    }

    /// What the window omits and is not known to be stored.
    fn missing(
        &self,
        window: &DecidedWindow,
        items: &[ConversationItem<'_>],
        kinds: &Kinds,
    ) -> Vec<UnstoredOriginal> {
        let kept = window.originals(items).filter_map(|kept| {
            let hash = kept.hash.unwrap_or_else(|| ContentHash::new(kept.text.as_bytes()));
            let ahead = kinds.get(&hash).copied();
            let missing = !(self.is_stored)(hash);
            missing.then(|| UnstoredOriginal {
                hash,
                text: ahead.is_none().then(|| kept.text.to_owned()),
                // A message, or a note of dropped ones.
                kind: match (ahead, kept.hash) {
                    (Some(kind), _) => kind.as_str(),
                    (None, Some(_)) => kind_of(kept.text).as_str(),
                    (None, None) => kept.kind,
                },
                display: kept.display,
            })
        });
        kept.collect()
    }

    fn items<'r>(
        &self,
        request: &'r Request<'_>,
        opaque: &'r [Vec<&'r str>],
        reader: PointerReader,
    ) -> Vec<ConversationItem<'r>> {
        let items = request.items.iter().zip(opaque);
        items
            .map(|(item, opaque)| {
                let (text, hash) = (item.text(), item.hash());
                let result = item.result.as_ref();
                let name = result.and_then(|result| result.name.as_deref());
                let rehydrated = name.is_some_and(|name| request.reads_back(name));
                let is_error = result.is_some_and(|result| result.error);
                let summarizable = result.is_some_and(|result| result.summarizable) && !item.interleaved;
                // A tool whose call the provider holds may have opted out.
                let is_unknown = request.history_elsewhere && name.is_none();
                let spared = reader == PointerReader::Nobody || is_unknown;
                let replaced = summarizable && !rehydrated && !is_error && !spared;
                let sampled =
                    text.len() >= SAMPLED && replaced && self.policy.replaces(name.unwrap_or_default());
                ConversationItem {
                    role: item.role(),
                    text,
                    texts: item.ranges(),
                    hash,
                    tokens: if sampled { self.sampled(hash, text) } else { self.count(hash, text) },
                    sampled,
                    opaque_tokens: self.opaque(item),
                    opaque,
                    calls: &item.calls,
                    result_of: result.map(|result| result.id.as_ref()),
                    is_error,
                    summarizable,
                    spared,
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
                OpaqueKind::Image => image_size::tokens(opaque.raw, framing.pictures),
                OpaqueKind::Audio => attachment_tokens::audio(opaque.raw, framing),
                OpaqueKind::File => attachment_tokens::file(self.pages(opaque.raw), opaque.raw, framing),
                OpaqueKind::Sealed => opaque.counted.len() / BYTES_PER_SEALED_TOKEN,
                OpaqueKind::Reasoning | OpaqueKind::Other => self.counter.count(opaque.counted),
            })
            .sum();
        let id = item.result.as_ref().map_or(0, |result| self.counter.count(&result.id));
        framing.per_message + 1 + calls + others + id
    }

    fn fixed(&self, request: &Request<'_>) -> FixedTokens {
        let framing = self.counter.framing();
        let tools: usize = request.tools.iter().map(|tool| framing.per_tool + self.count_raw(tool.raw)).sum();
        let rest: usize = request.fixed.iter().map(|fixed| self.count_raw(fixed.raw)).sum();
        let ours = framing.per_tool
            + self.count_raw(&wire::rehydrate_tool_json(request.dialect, request.tool_name()));
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

    /// The number of pages of a file. It is cached under a separate key; the cost per page depends on the model.
    fn pages(&self, raw: &str) -> Option<usize> {
        let key =
            ContentHash::new(&[b"pages ", ContentHash::new(raw.as_bytes()).as_bytes().as_slice()].concat());
        Some(self.remembered(key, || attachment_tokens::pages(raw).unwrap_or(0))).filter(|&pages| pages > 0)
    }

    fn count_raw(&self, text: &str) -> usize {
        self.count(ContentHash::new(text.as_bytes()), text)
    }

    fn count(&self, hash: ContentHash, text: &str) -> usize {
        self.remembered(hash, || self.counter.count(text))
    }

    /// The approximate tokens of the text.
    fn sampled(&self, hash: ContentHash, text: &str) -> usize {
        // Under a separate key: if the text must be sent, its count is exact.
        let key = ContentHash::new(&[b"sampled ", hash.as_bytes().as_slice()].concat());
        self.remembered(key, || self.counter.sampled(text))
    }

    fn remembered(&self, key: ContentHash, count: impl Fn() -> usize) -> usize {
        (self.counts)(key, &count)
    }
}

/// Bytes of a sealed thought for which one token is charged. The seal is the base64 of the encrypted text, so they stand
/// for three bytes of it, and a token of reasoning has more than that on average.
const BYTES_PER_SEALED_TOKEN: usize = 4;

/// Results from this size on are only estimated if they are replaced in any case: reports then state their
/// approximate size.
const SAMPLED: usize = 256 << 10;

/// Passes on originals, and returns what each is.
fn store_ahead(originals: &[(ContentHash, &str)], ahead: &(dyn Fn(ContentHash, &str) + Sync)) -> Kinds {
    let kind = |&(hash, text): &(ContentHash, &str)| {
        ahead(hash, text);
        (hash, kind_of(text))
    };
    originals.iter().map(kind).collect()
}

/// What a result is by its content.
fn kind_of(text: &str) -> ContentType {
    larder_condense::detect(None, "", false, text)
}

/// What originals are, as far as it is known.
type Kinds = BTreeMap<ContentHash, ContentType>;

fn opaque<'r>(item: &'r wire::Item<'_>) -> Vec<&'r str> {
    item.opaque.iter().map(|opaque| opaque.raw).collect()
}

fn too_long(request: &Request<'_>, window: &DecidedWindow) -> WindowError {
    let error = wire::ApiError::too_long(request.dialect, &window.decision);
    let no_room = " The tokens that the reply may take (max_tokens) or those kept free (policy.emergency_floor) leave the \
                   prompt no room: lower them.";
    let advice = if window.decision.prompt_budget == 0 { no_room } else { "" };
    WindowError::TooLong(error.message + advice)
}
