//! Transcripts over REST: the messages of a session in order, as they came in and as they were sent. The lines of a
//! session are small and read at once; message texts are read only for the page shown.

use std::collections::{BTreeMap, BTreeSet};

use axum::response::Response;
use axum::{Extension, Json};
use larder_gateway::auth::Caller;
use larder_proxy::wire::MessageText;
use larder_store::{LineKind, PayloadRef, StoreError, Timestamp, TranscriptLine, UserStore, branch_of};
use larder_text::hash::ContentHash;
use larder_text::message::ToolCall;
use larder_text::pointer::Pointer;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Problem;
use super::endpoint::{Endpoints, routes};
use super::extract::{Path, Query, blocking};
use super::limit;
use super::pointers::raw;

/// The endpoints of transcripts.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, show, payload);
}

/// The most bytes of the text of one message, and of the arguments of one call, in a response.
const TEXT_BYTES: usize = 1 << 20;
/// The most bytes of a message that is parsed: it may contain pictures, and parsing takes several times its size.
const READ_BYTES: u64 = 4 << 20;
/// Bytes of messages after which a page ends, even if their texts are short.
const PAGE_BYTES: u64 = 16 << 20;
/// Messages before a page that are searched for the tool calls that its messages answer.
const LOOK_BACK: usize = 32;
/// The most bytes of a message that is searched for them.
const LOOK_BYTES: u64 = 1 << 20;

/// The text shown for a message whose bytes are lost or damaged.
const DAMAGED: &str =
    "[larder: the stored bytes of this message are lost or damaged; `larder verify` lists all such]";

/// The messages of a transcript to list.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TranscriptParams {
    /// The history of this branch. Default: the newest branch.
    pub branch: Option<u32>,
    /// Every line in the order written: earlier renditions, all branches and all replies.
    #[serde(default)]
    pub all: bool,
    /// Skip this many: the `next` of the previous page.
    pub after: Option<u64>,
    /// The number of entries. Default: 50, at most 500. Long texts make pages shorter.
    pub limit: Option<u64>,
}

/// A page of a transcript.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Transcript)]
pub struct TranscriptPage {
    /// The session.
    pub session: String,
    /// The branch; `null` if all lines were requested.
    pub branch: Option<u32>,
    /// All branches. A history that does not continue a known one starts a new branch.
    pub branches: Vec<u32>,
    /// The number of all messages.
    pub total: u64,
    /// Oldest first, with the reply to the last one at the end.
    pub messages: Vec<TranscriptPageMessage>,
    /// The `after` of the next page; `null` on the last page.
    pub next: Option<u64>,
}

/// One message of a transcript.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TranscriptMessage)]
pub struct TranscriptPageMessage {
    /// Its number in the session, in the order written; used in paths.
    pub line: u64,
    /// When it was written.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    /// The branch on which it was written.
    pub branch: u32,
    /// Its position in the history, from 1; for a reply, that of the message it answers.
    pub message: u32,
    /// `message`, `rendition` (an earlier message, sent in another rendition from here on) or `reply`.
    #[schema(value_type = String, example = "message")]
    pub kind: LineKind,
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The tool whose result it is, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// How it was sent.
    pub sent_as: SentAs,
    /// What the model read of it, or wrote. For a message too large to be shown, where to get it; for one whose stored bytes
    /// are lost or damaged, a note that says so.
    pub text: String,
    /// Whether `text` is truncated.
    pub cut: bool,
    /// The tools that it calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<TranscriptCall>,
    /// The pointers in it, each to an original.
    #[schema(value_type = Vec<String>)]
    pub pointers: Vec<Pointer>,
    /// The message as it came in.
    pub raw: TranscriptPayload,
    /// As it was sent, if that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<TranscriptPayload>,
}

/// How a message was sent to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SentAs {
    /// As it came in.
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
    /// Whether `arguments` is truncated.
    pub cut: bool,
}

/// Stored bytes.
#[derive(Debug, Serialize, ToSchema)]
pub struct TranscriptPayload {
    /// Their hash.
    #[schema(value_type = String)]
    pub hash: ContentHash,
    /// Their number.
    pub bytes: u64,
    /// Their address.
    pub href: String,
}

/// One of the two stored versions of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PayloadForm {
    /// As it came in.
    Raw,
    /// As it was sent.
    Sent,
}

impl SentAs {
    /// The word for pages.
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

/// The lines of a session, to be read page by page.
#[derive(Debug)]
pub struct TranscriptLines {
    session: String,
    branch: Option<u32>,
    branches: Vec<u32>,
    lines: Vec<TranscriptLine>,
}

impl TranscriptLines {
    /// Reads the lines; `None` without a transcript. An unknown branch has no lines. Blocks.
    ///
    /// # Errors
    /// If the store fails.
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

    /// The branch; `None` for all lines.
    pub const fn branch(&self) -> Option<u32> {
        self.branch
    }

    /// The branches of the session.
    pub fn branches(&self) -> &[u32] {
        &self.branches
    }

    /// Reads at most `max` messages after the first `after`. Blocks.
    ///
    /// # Errors
    /// If the store fails.
    pub fn page(&self, store: &UserStore, after: u64, max: u64) -> Result<TranscriptPage, StoreError> {
        let lines = &self.lines;
        let from = usize::try_from(after).unwrap_or(usize::MAX).min(lines.len());
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let mut names = names(store, lines.get(from.saturating_sub(LOOK_BACK)..from).unwrap_or_default())?;
        let (mut messages, mut held, mut read) = (Vec::new(), 0, 0);
        for line in lines.iter().skip(from).take(max) {
            // Every page has at least one message, so that reading all pages ends.
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
        Ok(TranscriptPage {
            session: self.session.clone(),
            branch: self.branch,
            branches: self.branches.clone(),
            total: lines.len() as u64,
            messages,
            next: (end < lines.len()).then_some(end as u64),
        })
    }
}

impl TranscriptPageMessage {
    /// Bytes of its text and calls.
    fn held(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.name.len() + call.arguments.len());
        self.text.len() + calls.sum::<usize>()
    }
}

impl TranscriptPage {
    /// Reads a page; `None` without a transcript. Blocks.
    ///
    /// # Errors
    /// If the store fails.
    pub fn read(
        store: &UserStore,
        session: &str,
        which: &TranscriptParams,
    ) -> Result<Option<Self>, StoreError> {
        let lines = TranscriptLines::read(store, session, which.branch, which.all)?;
        lines.map(|lines| lines.page(store, which.after.unwrap_or(0), limit(which.limit))).transpose()
    }

    /// Reads one line; `None` if there is none. Blocks.
    ///
    /// # Errors
    /// If the store fails.
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
    // A message that was sent again has several replies: take the last.
    lines.extend(all.iter().rfind(answers).cloned());
    lines
}

/// The tools that messages call, by the ids of the calls.
type Names = BTreeMap<String, String>;

fn names(store: &UserStore, lines: &[TranscriptLine]) -> Result<Names, StoreError> {
    let mut names = Names::new();
    for line in lines.iter().filter(|line| line.role == "assistant" && line.raw.bytes <= LOOK_BYTES) {
        if let Some(bytes) = undamaged(store, line.raw)? {
            learn(&mut names, &MessageText::read(&bytes));
        }
    }
    Ok(names)
}

/// Stored bytes; `None` if they are lost or damaged, which must not hide the other messages.
fn undamaged(store: &UserStore, stored: PayloadRef) -> Result<Option<Vec<u8>>, StoreError> {
    match store.contents().get(stored.hash) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_damage() => {
            tracing::warn!(%error, "a message of a transcript cannot be read");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn learn(names: &mut Names, words: &MessageText) {
    let calls = words.calls.iter().filter(|call| !call.id.is_empty());
    names.extend(calls.map(|ToolCall { id, name, .. }| (id.clone(), name.clone())));
}

fn message(
    store: &UserStore,
    session: &str,
    line: &TranscriptLine,
    names: &mut Names,
) -> Result<TranscriptPageMessage, StoreError> {
    let href = |form: &str| format!("/api/v1/sessions/{}/transcript/{}/{form}", encoded(session), line.line);
    let read = line.sent.unwrap_or(line.raw);
    let is_large = read.bytes > READ_BYTES;
    let mut words = if is_large {
        let whole = href(if line.sent.is_some() { "sent" } else { "raw" });
        let text = format!("[larder: too large to show: {} bytes, available at {whole}]", read.bytes);
        MessageText::from_text(text)
    } else if let Some(bytes) = undamaged(store, read)? {
        MessageText::read(&bytes)
    } else {
        MessageText::from_text(DAMAGED.to_owned())
    };
    // A replaced message no longer names the call it answers; the original does.
    if words.answers.is_empty()
        && line.sent.is_some()
        && line.raw.bytes <= LOOK_BYTES
        && let Some(bytes) = undamaged(store, line.raw)?
    {
        words.answers = MessageText::read(&bytes).answers;
    }
    learn(names, &words);
    let cut = cut(&mut words.text) || is_large;
    let payload =
        |of: PayloadRef, form: &str| TranscriptPayload { hash: of.hash, bytes: of.bytes, href: href(form) };
    Ok(TranscriptPageMessage {
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
            .map(|ToolCall { name, mut arguments, .. }| {
                let cut = self::cut(&mut arguments);
                TranscriptCall { name, arguments, cut }
            })
            .collect(),
        pointers: line.pointers.clone(),
        raw: payload(line.raw, "raw"),
        sent: line.sent.map(|sent| payload(sent, "sent")),
    })
}

/// Truncates a text that is too long; returns whether it did.
fn cut(text: &mut String) -> bool {
    let whole = text.len();
    text.truncate(text.floor_char_boundary(TEXT_BYTES));
    text.len() < whole
}

/// A name as a path segment.
fn encoded(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// The problem for a session without a transcript.
pub fn no_transcript() -> Problem {
    Problem::not_found(
        "this session has no transcript: nothing was recorded yet, it has expired, or gateway.transcripts is off; a request \
         that has just ended takes a moment to be recorded",
    )
}

/// Show the transcript of one session: its messages in order
#[utoipa::path(
    get, path = "/api/v1/sessions/{session}/transcript", tag = "exchanges",
    params(("session" = String, Path, description = "The session"), TranscriptParams),
    responses(
        (status = 200, description = "A page of it", body = TranscriptPage),
        (status = 404, description = "No transcript", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn show(
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
    Query(which): Query<TranscriptParams>,
) -> Result<Json<TranscriptPage>, Problem> {
    let page = blocking(move || TranscriptPage::read(&caller.store, &session, &which)).await?;
    page.map(Json).ok_or_else(no_transcript)
}

/// Read one message of a transcript byte for byte, as it came in or as it was sent
#[utoipa::path(
    get, path = "/api/v1/sessions/{session}/transcript/{line}/{form}", tag = "exchanges",
    params(
        ("session" = String, Path, description = "The session"),
        ("line" = u64, Path, description = "The message's `line`"),
        ("form" = inline(PayloadForm), Path, description = "`raw`, as it came in, or `sent`"),
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
        let Some(line) = TranscriptPage::line(&caller.store, &session, line)? else { return Ok(None) };
        let of = if form == PayloadForm::Sent { line.sent.unwrap_or(line.raw) } else { line.raw };
        caller.store.contents().get(of.hash).map(Some)
    });
    bytes.await?.map(raw).ok_or_else(|| Problem::not_found("the transcript has no such message"))
}

#[cfg(test)]
#[path = "transcripts_tests.rs"]
mod tests;
