//! Answers Larder's own tool: returns the part of an original that a model requests, within limits on rounds and
//! tokens, and never over the prompt's budget. Knows no wire format.

use std::collections::BTreeSet;

use larder_proxy::record::{Rehydration, RequestRecord, WindowPart, cut_name};
use larder_proxy::wire::{HiddenSteps, RehydrateCall, ReplyPlace};
use larder_store::{Selection, StoreError, UserStore};
use larder_text::hash::ContentHash;
use larder_text::pointer::Pointer;
use larder_text::tokens::Counter;
use serde::Deserialize;

use crate::error::RequestError;

/// Maximum tokens of the note on a truncated answer.
const NOTE_TOKENS: usize = 80;
/// Tokens around a call and its answer, in addition to their texts.
const FRAMING: usize = 64;

/// The key of the id under which the provider holds a history with pointers, whether or not round trips are hidden in
/// it.
pub const STORED_UNDER: &str = "stored_under";

/// Under which name round trips are stored with a history that the provider holds under `id`.
pub fn held_session(id: &str) -> String {
    format!("held-{}", ContentHash::new(id.as_bytes()).to_hex())
}

/// Answers the calls of Larder's tool in the reply to one request.
pub struct Rehydrator {
    /// The name under which it is offered.
    pub tool: &'static str,
    /// The store of the originals' owner.
    pub store: UserStore,
    /// The conversation.
    pub session: String,
    /// The conversation that the provider adds the reply to, if it holds one.
    pub held_in: Option<String>,
    /// The place of the reply in it, as the client knows it.
    pub place: ReplyPlace,
    /// Counts tokens as the model does.
    pub counter: Counter,
    /// Remaining rounds.
    pub rounds: u32,
    /// Tokens of one answer.
    pub max_tokens: usize,
    /// Tokens by which the prompt may still grow.
    pub room: usize,
}

/// The arguments of a call. Unknown fields are ignored: models invent some.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RehydrateArguments {
    id: String,
    lines: Option<String>,
    bytes: Option<String>,
    #[serde(alias = "grep")]
    pattern: Option<String>,
    path: Option<String>,
}

/// One answer, and its record.
struct ToolAnswer {
    text: String,
    record: Rehydration,
}

impl Rehydrator {
    /// Why `calls` cannot be answered, if so: no rounds are left, or the prompt would exceed its budget. `said` as
    /// for [`Self::answer`].
    pub const fn limit(&self, calls: usize, said: usize) -> Option<&'static str> {
        if self.rounds == 0 {
            return Some(
                "the model asked more often than it may within one reply (rehydrate_rounds under [gateway] in \
                 larder.toml)",
            );
        }
        let needed = said.saturating_add(calls.saturating_mul(FRAMING + NOTE_TOKENS));
        if self.room < needed { Some("the budget of the prompt has no room for more") } else { None }
    }

    /// The answers to `calls`, which lengthen the prompt. `said` is the token count of the reply that made them.
    ///
    /// # Errors
    /// When the prompt has no room for any answer, or the store failed.
    pub async fn answer(
        &mut self,
        calls: &[RehydrateCall],
        said: usize,
        exchange: &mut RequestRecord,
    ) -> Result<Vec<String>, RequestError> {
        self.rounds = self.rounds.saturating_sub(1);
        self.room = self.room.saturating_sub(said);
        let last = self.rounds == 0;
        let (store, counter, mut room, max_tokens) =
            (self.store.clone(), self.counter.clone(), self.room, self.max_tokens);
        let calls: Vec<String> = calls.iter().map(|call| call.arguments.clone()).collect();
        let answering = tokio::task::spawn_blocking(move || {
            let mut answers = Vec::new();
            for arguments in &calls {
                let share = max_tokens.min(room.saturating_sub(FRAMING));
                let answer = answer(&store, &counter, arguments, share, last)?;
                let taken =
                    usize::try_from(answer.record.tokens).unwrap_or(usize::MAX).saturating_add(FRAMING);
                room = room.saturating_sub(taken);
                answers.push(answer);
            }
            Ok((answers, room))
        });
        let answered: Result<_, StoreError> =
            answering.await.map_err(|error| RequestError::bug(&error.to_string()))?;
        let (answers, room) = answered?;
        self.room = room;
        let (texts, records): (Vec<_>, Vec<_>) =
            answers.into_iter().map(|answer| (answer.text, answer.record)).unzip();
        let window = &exchange.window;
        exchange.rehydrations.extend(
            records
                .into_iter()
                .map(|record| Rehydration { tool: tool_of(window, &record.pointer), ..record }),
        );
        Ok(texts)
    }

    /// Tokens of calls, for providers that do not report the reply's usage.
    pub fn size(&self, calls: &[RehydrateCall]) -> usize {
        calls.iter().map(|call| self.counter.count(&call.arguments)).sum()
    }

    /// Keeps the round trips that the client does not see, also with the reply that the provider stores under
    /// `stored_under`, of which a request that continues from it names either id. When it returns they survive a crash.
    pub async fn remember(&self, hidden: Vec<HiddenSteps>, stored_under: Option<(&str, &str)>) {
        if hidden.is_empty() && stored_under.is_none() {
            return;
        }
        let (store, session) = (self.store.clone(), self.session.clone());
        let last = stored_under.map(|(last, _)| last.to_owned()).unwrap_or_default();
        let ids = stored_under.into_iter().flat_map(|(last, first)| [last, first]);
        let held: BTreeSet<String> = ids.chain(self.held_in.as_deref()).map(held_session).collect();
        let kept = tokio::task::spawn_blocking(move || {
            let rows: Vec<(Vec<String>, String)> = hidden
                .into_iter()
                .map(|hidden| (hidden.keys.clone(), serde_json::to_string(&hidden).unwrap_or_default()))
                .collect();
            if !rows.is_empty() {
                store.round_trips().insert(&session, &rows)?;
            }
            let rows: Vec<_> = rows.into_iter().chain([(vec![STORED_UNDER.to_owned()], last)]).collect();
            held.iter().try_for_each(|held| store.round_trips().insert(held, &rows))
        });
        // Everything works without them: the model calls again.
        if let Err(error) = kept.await.unwrap_or(Ok(())) {
            tracing::error!(%error, "round trips with the model could not be stored");
        }
    }
}

/// The answer to one call, of at most `max_tokens` tokens.
fn answer(
    store: &UserStore,
    counter: &Counter,
    arguments: &str,
    max_tokens: usize,
    last: bool,
) -> Result<ToolAnswer, StoreError> {
    let (pointer, found) = match look_up(store, arguments) {
        Ok((pointer, selected)) => (pointer, Ok(selected)),
        Err(Miss::Explained { pointer, words }) => (pointer, Err(words)),
        Err(Miss::Failed(error)) => return Err(error),
    };
    let is_found = found.is_ok();
    let (mut text, bytes) = match found {
        Ok(selected) => (cut(counter, &selected, max_tokens), selected.content.len()),
        Err(words) => (counter.prefix(&words, max_tokens).to_owned(), 0),
    };
    if last {
        text.push_str("\n[larder: this was the last call in this reply; answer with what you have]");
    }
    let tokens = u64::try_from(counter.count(&text)).unwrap_or(u64::MAX);
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    let record = Rehydration {
        pointer: cut_name(&pointer),
        found: is_found,
        bytes,
        tokens,
        tool: String::new(),
        spent_tokens: 0,
        cost: None,
    };
    Ok(ToolAnswer { text, record })
}

/// The tool whose result the pointer leads to, if the window shows it.
fn tool_of(window: &[WindowPart], pointer: &str) -> String {
    let Ok(read) = pointer.parse::<Pointer>() else { return String::new() };
    let is_read = |part: &&WindowPart| part.pointer.as_ref().is_some_and(|pointer| pointer.id == read.id);
    window.iter().find(is_read).map(|part| part.label.clone()).unwrap_or_default()
}

/// Why nothing was found.
enum Miss {
    /// The model gets an explanation, and may ask again.
    Explained { pointer: String, words: String },
    /// The store failed.
    Failed(StoreError),
}

/// The selected part of an original.
struct Selected {
    content: Vec<u8>,
    /// Its range, if it is one: in lines or bytes, from and to.
    range: Option<(&'static str, usize, usize)>,
}

fn look_up(store: &UserStore, arguments: &str) -> Result<(String, Selected), Miss> {
    let told = |pointer: &str, words: String| Miss::Explained { pointer: pointer.to_owned(), words };
    let wanted: RehydrateArguments = serde_json::from_str(arguments)
        .map_err(|error| told("", format!("the arguments are not what larder_rehydrate takes: {error}")))?;
    let id = wanted.id.trim();
    let pointer: Pointer = id.parse().map_err(|error| told(id, format!("{error}")))?;
    let found = match selection(&wanted).map_err(|error| told(id, error))? {
        None => store.pointers().resolve(&pointer),
        Some(selection) => store.pointers().rehydrate(&pointer, &selection),
    };
    let content = found.map_err(|error| match error {
        StoreError::NotOurs { .. }
        | StoreError::UnknownPointer { .. }
        | StoreError::Expired { .. }
        | StoreError::Select(_) => told(id, error.to_string()),
        other => Miss::Failed(other),
    })?;
    let range = match (&wanted.lines, &wanted.bytes, &wanted.pattern, &wanted.path) {
        (Some(lines), ..) => numbers(lines).map(|(first, last)| ("lines", first, last)),
        (None, Some(bytes), ..) => numbers(bytes).map(|(start, end)| ("bytes", start, end)),
        (None, None, None, None) if pointer.fragment.is_none() => Some(("bytes", 0, content.len())),
        _ => None,
    };
    let range = range.filter(|_| std::str::from_utf8(&content).is_ok());
    Ok((id.to_owned(), Selected { content, range }))
}

/// The ends of a range, however they are divided.
fn numbers(range: &str) -> Option<(usize, usize)> {
    let (from, to) = range.split_once([':', '-'])?;
    Some((from.trim().parse().ok()?, to.trim().parse().ok()?))
}

fn selection(wanted: &RehydrateArguments) -> Result<Option<Selection>, String> {
    let given = [&wanted.lines, &wanted.bytes, &wanted.pattern, &wanted.path];
    if given.iter().filter(|part| part.is_some()).count() > 1 {
        return Err("give only one of lines, bytes, pattern and path".to_owned());
    }
    let made = match given.map(|part| part.as_deref()) {
        [Some(lines), ..] => Selection::lines(&lines.replace('-', ":")),
        [_, Some(bytes), ..] => Selection::bytes(&bytes.replace('-', ":")),
        [_, _, Some(pattern), _] => Selection::grep(pattern),
        [.., Some(path)] => Selection::path(path),
        [None, None, None, None] => return Ok(None),
    };
    made.map(Some).map_err(|error| error.to_string())
}

/// The content as text, or the first `max_tokens` tokens of it with instructions for reading on.
fn cut(counter: &Counter, selected: &Selected, max_tokens: usize) -> String {
    let text = String::from_utf8_lossy(&selected.content);
    if text.is_empty() {
        return "[larder: nothing matches]".to_owned();
    }
    if counter.count_up_to(&text, max_tokens).is_some() {
        return text.into_owned();
    }
    let head = counter.prefix(&text, max_tokens.saturating_sub(NOTE_TOKENS));
    // Whole lines, unless one line is most of it.
    let head = match head.rfind('\n') {
        Some(at) if at >= head.len() / 2 => &head[..=at],
        _ => head,
    };
    let total = text.len();
    let more = match selected.range {
        Some(("lines", first, last)) if head.ends_with('\n') => {
            format!("read on with lines {}:{last}", first + head.matches('\n').count())
        }
        Some(("bytes", start, end)) => format!("read on with bytes {}:{end}", start + head.len()),
        _ => "ask for less, with a narrower pattern, path or range".to_owned(),
    };
    format!("{head}\n[larder: these are {} of {total} bytes; {more}]", head.len())
}
