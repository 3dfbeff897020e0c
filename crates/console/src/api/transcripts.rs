//! Transcripts over REST (R3-4.35, R3-5.14): the messages of a session in their order, as they came and as they were
//! sent. Of a session, however long, the lines are read once, which are small; of what was said only what a page shows.

use std::collections::{BTreeMap, BTreeSet};

use axum::response::Response;
use axum::{Extension, Json};
use larder_gateway::auth::Caller;
use larder_proxy::wire::{Called, MessageText};
use larder_store::{LineKind, PayloadRef, StoreError, Timestamp, TranscriptLine, UserStore, branch_of};
use larder_text::hash::ContentHash;
use larder_text::pointer::Pointer;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Problem;
use super::extract::{Path, Query, blocking};
use super::limit;
use super::pointers::raw;

/// Bytes of what one message says, and of the arguments of one of its calls, that an answer holds.
const TEXT_BYTES: usize = 1 << 20;
/// Bytes of a message that is read for an answer: its pictures stand in it, and reading takes several times as much.
const READ_BYTES: u64 = 4 << 20;
/// Bytes of messages after which an answer ends, however little they say.
const PAGE_BYTES: u64 = 16 << 20;
/// Messages before those of a page that are looked through for the calls that these answer.
const LOOK_BACK: usize = 32;
/// Bytes of a message that is looked through for them.
const LOOK_BYTES: u64 = 1 << 20;

/// The messages of a transcript to list.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TranscriptParams {
    /// The history of this branch; that of the newest unless said.
    pub branch: Option<u32>,
    /// Every line in the order written instead: earlier forms, all branches and all replies too.
    #[serde(default)]
    pub all: bool,
    /// Leave out so many at the beginning: the `next` of the page before.
    pub after: Option<u64>,
    /// At most so many; 50 unless said, 500 at most. Long texts make pages shorter.
    pub limit: Option<u64>,
}

/// A page of a transcript.
#[derive(Debug, Serialize, ToSchema)]
pub struct Transcript {
    /// The session.
    pub session: String,
    /// Whose history it is; `null` where all lines were asked for.
    pub branch: Option<u32>,
    /// The branches that there are: a history that does not go on from what is known makes a new one.
    pub branches: Vec<u32>,
    /// How many messages there are in all.
    pub total: u64,
    /// Oldest first; the reply to the last one at the end.
    pub messages: Vec<TranscriptMessage>,
    /// What to give as `after` for the next page; `null` on the last.
    pub next: Option<u64>,
}

/// One message of a transcript.
#[derive(Debug, Serialize, ToSchema)]
pub struct TranscriptMessage {
    /// Its number in the session, in the order written; names it in addresses.
    pub line: u64,
    /// When it was written.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    /// The branch on which it was written.
    pub branch: u32,
    /// Its place in the history, from 1; of a reply, that of the message it answers.
    pub message: u32,
    /// `message`, `rendition` (a message of before, sent in another form from here on) or `reply`.
    #[schema(value_type = String, example = "message")]
    pub kind: LineKind,
    /// Who says it: `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The tool whose result it is, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// How it went to the model.
    pub sent_as: SentAs,
    /// What the model read of it, or said, as text. Of a message that is too large to be read here, where it is had.
    pub text: String,
    /// Whether `text` is not all of it.
    pub cut: bool,
    /// The tools that it calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<TranscriptCall>,
    /// The pointers that stood in it, each to an original.
    #[schema(value_type = Vec<String>)]
    pub pointers: Vec<Pointer>,
    /// The message as it came.
    pub raw: TranscriptPayload,
    /// As it was sent, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<TranscriptPayload>,
}

/// How a message went to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SentAs {
    /// As it came.
    Whole,
    /// Condensed, or as a pointer.
    Shortened,
    /// Not at all.
    LeftOut,
}

/// A call of a tool.
#[derive(Debug, Serialize, ToSchema)]
pub struct TranscriptCall {
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// Whether `arguments` are only the beginning.
    pub cut: bool,
}

/// Bytes that are kept.
#[derive(Debug, Serialize, ToSchema)]
pub struct TranscriptPayload {
    /// Their hash.
    #[schema(value_type = String)]
    pub hash: ContentHash,
    /// How many.
    pub bytes: u64,
    /// Where they are had.
    pub href: String,
}

/// One of the two forms in which a message is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PayloadForm {
    /// As it came.
    Raw,
    /// As it was sent.
    Sent,
}

impl SentAs {
    /// The word on pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Shortened => "shortened",
            Self::LeftOut => "left out",
        }
    }

    fn of(line: &TranscriptLine) -> Self {
        match line.sent {
            None => Self::Whole,
            Some(PayloadRef { bytes: 0, .. }) => Self::LeftOut,
            Some(_) => Self::Shortened,
        }
    }
}

/// The lines of a session of which pages are asked for, one after the other.
#[derive(Debug)]
pub struct TranscriptLines {
    session: String,
    branch: Option<u32>,
    branches: Vec<u32>,
    lines: Vec<TranscriptLine>,
}

impl TranscriptLines {
    /// Reads the lines; `None` where nothing is kept. A branch that is not there has none. Blocks.
    ///
    /// # Errors
    /// When the store fails.
    pub fn read(
        store: &UserStore,
        session: &str,
        branch: Option<u32>,
        all: bool,
    ) -> Result<Option<Self>, StoreError> {
        let lines = store.transcripts().lines(session)?;
        let Some(newest) = lines.last().map(|line| line.branch) else { return Ok(None) };
        let branches: BTreeSet<u32> = lines.iter().map(|line| line.branch).collect();
        let branch = (!all).then_some(branch.unwrap_or(newest));
        Ok(Some(Self {
            session: session.to_owned(),
            branch,
            branches: branches.into_iter().collect(),
            lines: match branch {
                Some(branch) => history(&lines, branch),
                None => lines,
            },
        }))
    }

    /// Whose history it is; none where it is all lines.
    pub const fn branch(&self) -> Option<u32> {
        self.branch
    }

    /// The branches of the session.
    pub fn branches(&self) -> &[u32] {
        &self.branches
    }

    /// At most so many messages behind the first `after`. Blocks.
    ///
    /// # Errors
    /// When the store fails.
    pub fn page(&self, store: &UserStore, after: u64, most: u64) -> Result<Transcript, StoreError> {
        let lines = &self.lines;
        let from = usize::try_from(after).unwrap_or(usize::MAX).min(lines.len());
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut names = names(store, lines.get(from.saturating_sub(LOOK_BACK)..from).unwrap_or_default())?;
        let (mut messages, mut held, mut read) = (Vec::new(), 0, 0);
        for line in lines.iter().skip(from).take(most) {
            // One is always given, so that every page leads on.
            if held > TEXT_BYTES || read > PAGE_BYTES {
                break;
            }
            let message = message(store, &self.session, line, &mut names)?;
            held += message.held();
            read +=
                Some(line.sent.unwrap_or(line.raw).bytes).filter(|bytes| *bytes <= READ_BYTES).unwrap_or(0);
            messages.push(message);
        }
        let end = from + messages.len();
        Ok(Transcript {
            session: self.session.clone(),
            branch: self.branch,
            branches: self.branches.clone(),
            total: lines.len() as u64,
            messages,
            next: (end < lines.len()).then_some(end as u64),
        })
    }
}

impl TranscriptMessage {
    /// Bytes of what it says.
    fn held(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.name.len() + call.arguments.len());
        self.text.len() + calls.sum::<usize>()
    }
}

impl Transcript {
    /// Reads a page; `None` where nothing is kept. Blocks.
    ///
    /// # Errors
    /// When the store fails.
    pub fn read(
        store: &UserStore,
        session: &str,
        which: &TranscriptParams,
    ) -> Result<Option<Self>, StoreError> {
        let lines = TranscriptLines::read(store, session, which.branch, which.all)?;
        lines.map(|lines| lines.page(store, which.after.unwrap_or(0), limit(which.limit))).transpose()
    }

    /// Reads one line; `None` where there is none. Blocks.
    ///
    /// # Errors
    /// When the store fails.
    pub fn line(store: &UserStore, session: &str, line: u64) -> Result<Option<TranscriptLine>, StoreError> {
        Ok(store.transcripts().lines(session)?.into_iter().find(|one| one.line == line))
    }
}

/// The history of a branch, with the reply to its last message.
fn history(all: &[TranscriptLine], branch: u32) -> Vec<TranscriptLine> {
    let mut lines = branch_of(all, branch);
    let last = lines.last().map(|line| line.message);
    let answers = |line: &&TranscriptLine| {
        line.kind == LineKind::Reply && line.branch == branch && Some(line.message) == last
    };
    // Asked more than once, it was answered more than once.
    lines.extend(all.iter().rfind(answers).cloned());
    lines
}

/// The tools that messages call, by the ids of the calls.
type Names = BTreeMap<String, String>;

fn names(store: &UserStore, lines: &[TranscriptLine]) -> Result<Names, StoreError> {
    let mut names = Names::new();
    for line in lines.iter().filter(|line| line.role == "assistant" && line.raw.bytes <= LOOK_BYTES) {
        learn(&mut names, &MessageText::of(&store.contents().get(line.raw.hash)?));
    }
    Ok(names)
}

fn learn(names: &mut Names, words: &MessageText) {
    let calls = words.calls.iter().filter(|call| !call.id.is_empty());
    names.extend(calls.map(|Called { id, name, .. }| (id.clone(), name.clone())));
}

fn message(
    store: &UserStore,
    session: &str,
    line: &TranscriptLine,
    names: &mut Names,
) -> Result<TranscriptMessage, StoreError> {
    let href = |form: &str| format!("/api/v1/sessions/{}/transcript/{}/{form}", encoded(session), line.line);
    let read = line.sent.unwrap_or(line.raw);
    let is_large = read.bytes > READ_BYTES;
    let mut words = if is_large {
        let whole = href(if line.sent.is_some() { "sent" } else { "raw" });
        let text = format!("[larder: too large to be shown: {} bytes, which are had at {whole}]", read.bytes);
        MessageText { text, ..MessageText::default() }
    } else {
        MessageText::of(&store.contents().get(read.hash)?)
    };
    // What stands in the place of a message says no more whose result that was.
    if words.answers.is_empty() && line.sent.is_some() && line.raw.bytes <= LOOK_BYTES {
        words.answers = MessageText::of(&store.contents().get(line.raw.hash)?).answers;
    }
    learn(names, &words);
    let cut = cut(&mut words.text) || is_large;
    let payload =
        |of: PayloadRef, form: &str| TranscriptPayload { hash: of.hash, bytes: of.bytes, href: href(form) };
    Ok(TranscriptMessage {
        line: line.line,
        time: line.time,
        branch: line.branch,
        message: line.message,
        kind: line.kind,
        role: line.role.clone(),
        tool: words.answers.iter().find_map(|id| names.get(id)).cloned(),
        sent_as: SentAs::of(line),
        text: words.text,
        cut,
        calls: words
            .calls
            .into_iter()
            .map(|Called { name, mut arguments, .. }| {
                let cut = self::cut(&mut arguments);
                TranscriptCall { name, arguments, cut }
            })
            .collect(),
        pointers: line.pointers.clone(),
        raw: payload(line.raw, "raw"),
        sent: line.sent.map(|sent| payload(sent, "sent")),
    })
}

/// Leaves the beginning of a text that is too long. Gives whether it was.
fn cut(text: &mut String) -> bool {
    let whole = text.len();
    text.truncate(text.floor_char_boundary(TEXT_BYTES));
    text.len() < whole
}

/// A name as a segment of an address.
fn encoded(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// What is said where nothing is kept.
pub fn no_transcript() -> Problem {
    Problem::not_found(
        "no transcript is kept of this session: it has none yet, or gateway.transcripts is off; one that has just \
         ended takes a moment to be recorded",
    )
}

/// Show the transcript of one session: its messages in their order
#[utoipa::path(
    get, path = "/api/v1/sessions/{session}/transcript", tag = "exchanges",
    params(("session" = String, Path, description = "The session"), TranscriptParams),
    responses(
        (status = 200, description = "A page of it", body = Transcript),
        (status = 404, description = "None is kept", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn show(
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
    Query(which): Query<TranscriptParams>,
) -> Result<Json<Transcript>, Problem> {
    let page = blocking(move || Transcript::read(&caller.store, &session, &which)).await?;
    page.map(Json).ok_or_else(no_transcript)
}

/// Read one message of a transcript as it came or as it was sent, byte for byte
#[utoipa::path(
    get, path = "/api/v1/sessions/{session}/transcript/{line}/{form}", tag = "exchanges",
    params(
        ("session" = String, Path, description = "The session"),
        ("line" = u64, Path, description = "The message's `line`"),
        ("form" = PayloadForm, Path, description = "`raw`, as it came, or `sent`"),
    ),
    responses(
        (status = 200, description = "The bytes; text where they are UTF-8", content(
            (String = "text/plain"),
            (Vec<u8> = "application/octet-stream"),
        )),
        (status = 404, description = "No such message", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn payload(
    Extension(caller): Extension<Caller>,
    Path((session, line, form)): Path<(String, u64, PayloadForm)>,
) -> Result<Response, Problem> {
    let bytes = blocking(move || {
        let Some(line) = Transcript::line(&caller.store, &session, line)? else { return Ok(None) };
        let of = if form == PayloadForm::Sent { line.sent.unwrap_or(line.raw) } else { line.raw };
        caller.store.contents().get(of.hash).map(Some)
    });
    bytes.await?.map(raw).ok_or_else(|| Problem::not_found("the transcript has no such message"))
}

#[cfg(test)]
#[path = "transcripts_tests.rs"]
mod tests;
