//! Originals that a model reads back through the rehydrate tool: what a call returns, and how much it may add to a
//! prompt. Shared by the executor and the gateway; knows no wire format, no run and no record.

use larder_store::{Selection, StoreError, UserStore};
use larder_text::picture::Picture;
use larder_text::pointer::{Fragment, Pointer};
use larder_text::tokens::Counter;
use serde::Deserialize;

/// How many times within one reply a model may read originals back, where no setting says otherwise.
pub(crate) const ROUNDS: u32 = 4;
/// Maximum tokens of one answer, where no setting says otherwise.
pub(crate) const ANSWER_TOKENS: usize = 4_000;
/// Maximum tokens of the note on a truncated answer.
const NOTE_TOKENS: usize = 80;
/// Tokens around a call and its answer, in addition to their texts.
const FRAMING: usize = 64;
/// What follows the answers of the last round.
pub(crate) const LAST: &str = "\n[larder: this was the last call in this reply; answer with what you have]";

/// How much a model may read back within one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RehydrationLimits {
    /// Rounds; 0 if the tool is not offered.
    pub rounds: u32,
    /// Tokens of one answer.
    pub tokens: usize,
}

impl Default for RehydrationLimits {
    fn default() -> Self {
        Self { rounds: ROUNDS, tokens: ANSWER_TOKENS }
    }
}

/// What is left of the rounds and tokens by which calls of tools may lengthen a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptRoom {
    /// Remaining rounds.
    pub rounds: u32,
    /// Tokens of one answer.
    pub max_tokens: usize,
    /// Tokens by which the prompt may still grow.
    pub room: usize,
    /// Calls of this round that are not answered yet.
    pub unanswered: usize,
}

impl PromptRoom {
    /// Why `calls` cannot be answered, if so: no rounds are left, or the prompt would exceed its budget. `said` is the
    /// token count of the reply that made them.
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

    /// Starts a round: the reply that made so many calls joins the prompt.
    pub const fn begin_round(&mut self, said: usize, calls: usize) {
        self.unanswered = calls;
        self.rounds = self.rounds.saturating_sub(1);
        self.room = self.room.saturating_sub(said);
    }

    /// Tokens that the next answer may have, so that each of the others has room for a note.
    pub fn share(&self) -> usize {
        let others = self.unanswered.saturating_sub(1).saturating_mul(FRAMING + NOTE_TOKENS);
        self.max_tokens.min(self.room.saturating_sub(FRAMING).saturating_sub(others))
    }

    /// An answer as the model reads it: never more than its share, with what must be said after the last one.
    pub fn limited(&self, counter: &Counter, text: &str) -> String {
        let last = if self.rounds == 0 { LAST } else { "" };
        let share = self.share().saturating_sub(counter.count(last));
        let text =
            if counter.count_up_to(text, share).is_some() { text } else { counter.prefix(text, share) };
        format!("{text}{last}")
    }

    /// Takes the tokens of an answer from the room.
    pub const fn take(&mut self, tokens: usize) {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.room = self.room.saturating_sub(tokens.saturating_add(FRAMING));
    }

    /// Returns the answer to a call of the rehydrate tool, and takes it from the room. Blocks.
    ///
    /// # Errors
    /// If the store failed; a pointer that leads nowhere is an answer.
    pub fn open(
        &mut self,
        store: &UserStore,
        counter: &Counter,
        arguments: &str,
    ) -> Result<OpenedOriginal, StoreError> {
        let (pointer, found) = match look_up(store, arguments) {
            Ok((pointer, selected)) => (pointer, Ok(selected)),
            Err(Miss::Explained { pointer, words }) => (pointer, Err(words)),
            Err(Miss::Failed(error)) => return Err(error),
        };
        let last = if self.rounds == 0 { counter.count(LAST) } else { 0 };
        let (is_found, share) = (found.is_ok(), self.share().saturating_sub(last));
        let (text, bytes) = match found {
            Ok(selected) => {
                let bytes = selected.content.len();
                (not_text(&selected.content).unwrap_or_else(|| cut(counter, &selected, share)), bytes)
            }
            Err(words) => (words, 0),
        };
        let text = self.limited(counter, &text);
        let tokens = counter.count(&text);
        self.take(tokens);
        Ok(OpenedOriginal { text, pointer, is_found, bytes, tokens })
    }
}

/// The answer to a model that asks for content that is not text.
fn not_text(content: &[u8]) -> Option<String> {
    if std::str::from_utf8(content).is_ok() {
        return None;
    }
    let bytes = content.len();
    Some(Picture::from_file(content).map_or_else(
        || format!("{bytes} bytes that are not text; they cannot be shown here"),
        |picture| format!("a picture ({}, {bytes} bytes); it cannot be shown here", picture.media_type()),
    ))
}

/// The answer to a call of the rehydrate tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedOriginal {
    /// What the model reads.
    pub text: String,
    /// The pointer as the model wrote it.
    pub pointer: String,
    /// Whether the requested part exists.
    pub is_found: bool,
    /// Bytes of that part.
    pub bytes: usize,
    /// Tokens of the text.
    pub tokens: usize,
}

/// The arguments of a call. Unknown fields are ignored: models invent some.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RehydrateArguments {
    id: String,
    /// What models also call it.
    pointer: String,
    lines: Option<String>,
    bytes: Option<String>,
    #[serde(alias = "grep")]
    pattern: Option<String>,
    path: Option<String>,
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
    /// What to show instead if it is too long.
    passages: Option<String>,
}

fn look_up(store: &UserStore, arguments: &str) -> Result<(String, Selected), Miss> {
    let told = |pointer: &str, words: String| Miss::Explained { pointer: pointer.to_owned(), words };
    let wanted: RehydrateArguments = serde_json::from_str(arguments)
        .map_err(|error| told("", format!("the arguments are not what larder_rehydrate takes: {error}")))?;
    let id = if wanted.id.is_empty() { wanted.pointer.trim() } else { wanted.id.trim() };
    if id.is_empty() {
        return Err(told("", "`id` is missing: give the pointer as `id`".to_owned()));
    }
    let pointer: Pointer = id.parse().map_err(|error| told(id, format!("{error}")))?;
    let selection = selection(&wanted).map_err(|error| told(id, error))?;
    let missed = |error| match error {
        StoreError::NotOurs { .. }
        | StoreError::UnknownPointer { .. }
        | StoreError::Expired { .. }
        | StoreError::Select(_) => told(id, error.to_string()),
        other => Miss::Failed(other),
    };
    let (content, passages) = match &selection {
        Some(selection) if wanted.pattern.is_some() => {
            let whole = store.pointers().resolve(&pointer).map_err(missed)?;
            let found = selection.apply(&whole).map_err(|error| told(id, error.to_string()))?;
            (found, passages(&whole, selection))
        }
        Some(selection) => (store.pointers().rehydrate(&pointer, selection).map_err(missed)?, None),
        None => (store.pointers().resolve(&pointer).map_err(missed)?, None),
    };
    let range = match selection.as_ref().map(Selection::fragment) {
        Some(Some(Fragment::Lines { first, last })) => Some(("lines", first, last)),
        Some(Some(Fragment::Bytes { start, end })) => Some(("bytes", start, end)),
        None if pointer.fragment.is_none() => Some(("bytes", 0, content.len())),
        _ => None,
    };
    let range = range.filter(|_| std::str::from_utf8(&content).is_ok());
    Ok((id.to_owned(), Selected { content, range, passages }))
}

fn selection(wanted: &RehydrateArguments) -> Result<Option<Selection>, String> {
    let given = [&wanted.lines, &wanted.bytes, &wanted.pattern, &wanted.path];
    if given.iter().filter(|part| part.is_some()).count() > 1 {
        return Err("give only one of lines, bytes, pattern and path".to_owned());
    }
    let made = match given.map(|part| part.as_deref()) {
        [Some(lines), ..] => Selection::lines(lines),
        [_, Some(bytes), ..] => Selection::bytes(bytes),
        [_, _, Some(pattern), _] => Selection::grep(pattern),
        [.., Some(path)] => Selection::path(path),
        [None, None, None, None] => return Ok(None),
    };
    made.map(Some).map_err(|error| error.to_string())
}

/// The text around the matches of a pattern, each passage with its place, for lines that are too long to be shown; `None`
/// if there are none, or the content is not text.
pub fn passages(content: &[u8], pattern: &Selection) -> Option<String> {
    let text = std::str::from_utf8(content).ok()?;
    let found = pattern.passages(content)?;
    let shown = found.into_iter().map(|range| {
        let (start, end) = (range.start, range.end);
        text.get(range).map(|passage| format!("[bytes {start}:{end}] {}\n", passage.trim_end_matches('\n')))
    });
    shown.collect()
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
    if let Some(passages) = &selected.passages {
        let content = passages.as_bytes().to_vec();
        return cut(counter, &Selected { content, range: None, passages: None }, max_tokens);
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
