//! The events of a reply, as they happen or as they were: every reader gets the same ones, and one that was cut off
//! continues after the last that it has.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use larder_conversation::{Reply, ReplyRecord};
use tokio::sync::watch;

use crate::problem::Problem;

/// Hexadecimal digits of the digest in an id.
const DIGEST: usize = 12;

/// Something that happens while a reply is written.
#[derive(Debug, Clone)]
pub enum ReplyEvent {
    /// The next piece of its text.
    Text {
        /// The message that is answered, a digest of the text up to here, and its length in bytes: whoever has the text
        /// of this id continues after it.
        id: String,
        /// The piece.
        text: String,
    },
    /// The text so far is void, and the reply begins anew.
    Restart,
    /// A text that the participant may share.
    Draft(String),
    /// The reply, as it is committed.
    Done(Box<Reply>),
    /// Why there is none.
    Problem(Problem),
}

/// The events of one reply.
#[derive(Debug)]
pub struct ReplyStream {
    message: u64,
    written: Mutex<Written>,
    /// How many events there are.
    seen: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Written {
    events: Vec<ReplyEvent>,
    /// The first event that still holds: after the last restart.
    valid: usize,
    text: String,
    digest: blake3::Hasher,
}

/// The replies that this process writes, by the numbers of their messages.
pub type RunningReplies = Mutex<BTreeMap<u64, Arc<ReplyStream>>>;

impl ReplyStream {
    /// A reply to this message of which there is nothing yet.
    pub fn new(message: u64) -> Self {
        Self { message, written: Mutex::default(), seen: watch::Sender::new(0) }
    }

    /// A reply that was committed before, in the pieces in which it was written.
    pub fn of(message: u64, reply: Reply, record: &ReplyRecord) -> Arc<Self> {
        let stream = Self::new(message);
        stream.done(reply, &record.pieces);
        Arc::new(stream)
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, with: impl FnOnce(&mut Written)) {
        let mut written = self.written();
        with(&mut written);
        let events = written.events.len();
        drop(written);
        self.seen.send_replace(events);
    }

    /// Adds a piece of the text.
    pub(super) fn text(&self, piece: &str) {
        self.add(|written| {
            written.text.push_str(piece);
            written.digest.update(piece.as_bytes());
            let digest = written.digest.finalize().to_hex();
            let digest = digest.get(..DIGEST).unwrap_or_default();
            let id = format!("{}.{digest}.{}", self.message, written.text.len());
            written.events.push(ReplyEvent::Text { id, text: piece.to_owned() });
        });
    }

    /// What was written is void.
    pub(super) fn restart(&self) {
        self.add(|written| {
            written.events.push(ReplyEvent::Restart);
            written.valid = written.events.len();
            written.text.clear();
            written.digest.reset();
        });
    }

    /// The end: the committed reply, whose text readers have then, in pieces of these lengths if it was not read before.
    pub(super) fn done(&self, reply: Reply, pieces: &[usize]) {
        let before = std::mem::take(&mut self.written().text);
        if before != reply.text {
            if !before.is_empty() {
                self.restart();
            }
            for piece in divided(&reply.text, pieces) {
                self.text(piece);
            }
        }
        self.add(|written| {
            written.events.extend(reply.draft.clone().map(ReplyEvent::Draft));
            written.events.push(ReplyEvent::Done(Box::new(reply)));
        });
    }

    /// The end without a reply.
    pub(super) fn failed(&self, problem: Problem) {
        self.add(|written| written.events.push(ReplyEvent::Problem(problem)));
    }

    fn has_ended(&self) -> bool {
        matches!(self.written().events.last(), Some(ReplyEvent::Done(_) | ReplyEvent::Problem(_)))
    }

    /// Reads the events, from the first that holds or after the one with this id. One who has the text of another id is
    /// told first that it is void.
    pub fn read(self: &Arc<Self>, last: Option<&str>) -> ReplyReader {
        let written = self.written();
        let valid = written.events.get(written.valid..).unwrap_or_default();
        let is_last =
            |event: &ReplyEvent| matches!(event, ReplyEvent::Text { id, .. } if Some(id.as_str()) == last);
        let found = valid.iter().position(is_last);
        let next = found.map_or(written.valid, |at| written.valid + at + 1);
        let void = last.is_some() && found.is_none();
        drop(written);
        ReplyReader { stream: Arc::clone(self), next, void, seen: self.seen.subscribe() }
    }
}

/// A text in pieces of these lengths; whole, if they are not those of the text.
fn divided<'t>(text: &'t str, lengths: &[usize]) -> Vec<&'t str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    for &length in lengths.iter().filter(|&&length| length > 0) {
        let Some((piece, after)) = rest.split_at_checked(length) else { return vec![text] };
        pieces.push(piece);
        rest = after;
    }
    if rest.is_empty() { pieces } else { vec![text] }
}

/// Reads the events of one reply.
#[derive(Debug)]
pub struct ReplyReader {
    stream: Arc<ReplyStream>,
    next: usize,
    void: bool,
    seen: watch::Receiver<usize>,
}

impl ReplyReader {
    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<ReplyEvent> {
        if std::mem::take(&mut self.void) {
            return Some(ReplyEvent::Restart);
        }
        loop {
            self.seen.mark_unchanged();
            if let Some(event) = self.stream.written().events.get(self.next).cloned() {
                self.next += 1;
                return Some(event);
            }
            if self.stream.has_ended() {
                return None;
            }
            // The sender lives as long as the stream.
            let _ = self.seen.changed().await;
        }
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// There is no reply.
    pub async fn ended(mut self) -> Result<Reply, Problem> {
        while let Some(event) = self.next().await {
            match event {
                ReplyEvent::Done(reply) => return Ok(*reply),
                ReplyEvent::Problem(problem) => return Err(problem),
                _ => {}
            }
        }
        Err(Problem::internal(&"a reply broke off"))
    }
}

/// Lists a reply as being written, until it is dropped.
pub(super) struct Running<'a> {
    pub(super) stream: Arc<ReplyStream>,
    replies: &'a RunningReplies,
    /// What it ended with; `None` while it is written, and if that breaks off.
    outcome: Option<Result<(Reply, Vec<usize>), Problem>>,
}

impl<'a> Running<'a> {
    pub(super) const fn new(stream: Arc<ReplyStream>, replies: &'a RunningReplies) -> Self {
        Self { stream, replies, outcome: None }
    }

    /// The reply is written, in pieces of these lengths, or there is none.
    pub(super) fn end(mut self, outcome: Result<(Reply, Vec<usize>), Problem>) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let broken = || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the reply broke off; send it again");
        let outcome = self.outcome.take().unwrap_or_else(|| Err(broken()));
        // Before anyone reads the end: who then sends the message again begins a new reply.
        self.replies.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.stream.message);
        match outcome {
            Ok((reply, pieces)) => self.stream.done(reply, &pieces),
            Err(problem) => self.stream.failed(problem),
        }
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
