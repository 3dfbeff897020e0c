//! Streamed replies: forwarded as the original bytes, except that calls of Larder's tool are removed and a continued
//! reply is joined to the one before.
//!
//! Only events that belong to a call of Larder's tool, and the end of a reply with hidden parts, are held back. An
//! unreadable event is forwarded unchanged. Owns the state of one reply; each format knows its own events.

mod chat;
mod converse;
mod messages;
mod responses;

use std::borrow::Cow;

use larder_text::json::{Document, Edit};
use larder_text::sse::{EventPiece, MAX_EVENT_BYTES};

use super::api_error::ApiError;
use super::dialect::ApiDialect;
use super::framing::{Framing, StreamSplitter};
use super::read::ReadError;
use super::reply::{LimitNote, PartialUsage, ReplyRound, ReplyRounds};

/// The replies of one request, each a stream of events, as one stream.
#[derive(Debug)]
pub struct StreamedReply {
    framing: Framing,
    splitter: StreamSplitter,
    rounds: ReplyRounds,
    round: ReplyRound,
    /// Bytes of the reply that are kept.
    kept: usize,
    state: DialectState,
    /// Events that may belong to a call of Larder's tool.
    waiting: Vec<Vec<u8>>,
    waiting_bytes: usize,
    /// The end of the round, while it may still continue.
    held: Vec<Vec<u8>>,
    held_bytes: usize,
}

#[derive(Debug)]
enum DialectState {
    Chat(chat::ChatState),
    Responses(responses::ResponsesState),
    Messages(messages::MessagesState),
    Converse(converse::ConverseState),
}

/// What becomes of an event.
enum EventAction {
    /// It is passed on, edited.
    Pass(Vec<Edit>),
    /// It belongs to something hidden.
    Drop,
    /// It belongs to the end of the round, and is passed on, edited, if the reply ends with it.
    End(Vec<Edit>),
}

/// What an event may look at and add to.
struct RoundContext<'a> {
    /// The name of our tool, if it was offered: its calls are hidden.
    tool: Option<&'static str>,
    /// Whether output is kept.
    keep: bool,
    /// The rounds before this one.
    earlier: &'a ReplyRounds,
    round: &'a mut ReplyRound,
}

impl RoundContext<'_> {
    const fn is_first(&self) -> bool {
        self.earlier.done.is_empty()
    }

    /// Whether the forwarded bytes differ from the provider's.
    const fn is_spliced(&self) -> bool {
        !self.is_first() || self.round.has_ours
    }
}

impl StreamedReply {
    /// Expects the first reply. `tool`: the name of Larder's, if it was offered, so that its calls are hidden.
    pub fn new(dialect: ApiDialect, tool: Option<&'static str>) -> Self {
        let state = match dialect {
            ApiDialect::Chat => DialectState::Chat(chat::ChatState::default()),
            ApiDialect::Responses => DialectState::Responses(responses::ResponsesState::default()),
            ApiDialect::Messages | ApiDialect::Invoke => {
                DialectState::Messages(messages::MessagesState::default())
            }
            ApiDialect::Converse => DialectState::Converse(converse::ConverseState::default()),
        };
        let framing = dialect.format().framing();
        Self {
            framing,
            splitter: framing.splitter(),
            rounds: ReplyRounds::new(dialect, tool),
            round: ReplyRound::default(),
            kept: 0,
            state,
            waiting: Vec::new(),
            waiting_bytes: 0,
            held: Vec::new(),
            held_bytes: 0,
        }
    }

    /// Expects this many choices in each reply (chat completions). If fewer arrive, the reply ends at `[DONE]`.
    pub fn with_choices(mut self, choices: u64) -> Self {
        if let DialectState::Chat(state) = &mut self.state {
            state.expect(choices);
        }
        self
    }

    /// Processes the provider's next bytes and appends to `out` what the client receives now.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.splitter.push(bytes);
        while let Some(piece) = self.splitter.next_piece() {
            self.take(piece, out);
        }
    }

    /// The provider's stream has ended. Next are [`ReplyRounds::calls`], [`next`](Self::next), [`close`](Self::close).
    pub fn end(&mut self, out: &mut Vec<u8>) {
        match self.splitter.rest() {
            // The stream broke off within an event that may be Larder's; clients drop such an event anyway.
            Some(EventPiece::Event(event)) if self.is_spliced() && !self.is_whole(&event) => {}
            Some(piece) => self.take(piece, out),
            None => {}
        }
        self.settle(out);
        match &mut self.state {
            DialectState::Chat(state) => state.finish(&mut self.round),
            DialectState::Messages(state) => state.finish(),
            DialectState::Responses(state) => state.finish(),
            DialectState::Converse(state) => state.finish(&mut self.round),
        }
        self.rounds.done.push(std::mem::take(&mut self.round));
        (self.splitter, self.kept) = (self.framing.splitter(), 0);
    }

    /// What is known about the current round.
    pub fn known(&self) -> PartialUsage {
        self.round.known(self.rounds.dialect)
    }

    /// Whether the client has the complete reply: its provider reported its end, and nothing of it is hidden.
    pub const fn is_told(&self) -> bool {
        self.round.ended && !self.round.failed && !self.round.has_ours && self.held.is_empty()
    }

    /// The output so far, as of the last [`end`](Self::end).
    pub const fn rounds(&mut self) -> &mut ReplyRounds {
        &mut self.rounds
    }

    /// The next request, if the model waits for us alone and has its answers; its reply is to be pushed as well. None if
    /// the reply can be closed.
    ///
    /// # Errors
    /// If `request`, the last body sent, is not valid in its format.
    pub fn next(&mut self, request: &str) -> Result<Option<String>, ReadError> {
        let next = self.rounds.next(request)?;
        if next.is_some() {
            self.forget_end();
        }
        Ok(next)
    }

    /// Sends the client the rest of the reply's end.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        let gave_up = self.rounds.gave_up();
        // A failed reply has no end to insert anything before.
        let note = self.rounds.note().filter(|_| !self.held.is_empty());
        if let Some(note) = &note {
            let said = match &self.state {
                DialectState::Chat(state) => state.say(note),
                DialectState::Responses(state) => state.say(note),
                DialectState::Messages(state) => state.say(note),
                DialectState::Converse(state) => state.say(note),
            };
            out.extend(self.framing.laid_out(said));
        }
        for event in std::mem::take(&mut self.held) {
            let edits = if gave_up { self.end_edits(&event, note.as_ref()) } else { Vec::new() };
            out.extend(self.framing.edited(event, edits));
        }
        self.held_bytes = 0;
    }

    /// Ends the reply with an error in place of [`close`](Self::close).
    pub fn fail(&mut self, problem: &ApiError, out: &mut Vec<u8>) {
        self.forget_end();
        let sequence = match &self.state {
            DialectState::Responses(state) => state.next_sequence(),
            DialectState::Chat(_) | DialectState::Messages(_) | DialectState::Converse(_) => 0,
        };
        let event = self.rounds.dialect.format().error_event(problem, sequence);
        out.extend(self.framing.laid_out(event));
    }

    fn forget_end(&mut self) {
        self.held.clear();
        self.held_bytes = 0;
        if let DialectState::Responses(state) = &mut self.state {
            state.forget_end();
        }
    }

    const fn is_spliced(&self) -> bool {
        !self.rounds.done.is_empty() || self.round.has_ours
    }

    fn take(&mut self, piece: EventPiece, out: &mut Vec<u8>) {
        let event = match piece {
            EventPiece::Event(event) => event,
            EventPiece::TooLong(bytes) => {
                // Not parsed, but it keeps its place, and may be the end. Its text counts.
                self.round.ended = true;
                self.round.said = self.round.said.saturating_add(bytes.len());
                self.settle(out);
                return self.pass(bytes, out);
            }
        };
        if let DialectState::Chat(state) = &mut self.state {
            let read = self.framing.read(&event);
            let doc = read.as_ref().and_then(|event| Document::parse(&event.data).ok());
            if let Some((chunk, tool)) = doc.as_ref().zip(self.rounds.tool) {
                state.classify(chunk.root(), tool, &mut self.round);
            }
            if state.is_undecided() {
                self.waiting_bytes += event.len();
                self.waiting.push(event);
                if self.waiting_bytes > MAX_EVENT_BYTES {
                    self.settle(out);
                }
                return;
            }
        }
        self.go_on(out);
        self.emit(event, out);
    }

    /// Forwards undecided events.
    fn settle(&mut self, out: &mut Vec<u8>) {
        if let DialectState::Chat(state) = &mut self.state {
            state.decide(&mut self.round);
        }
        self.go_on(out);
    }

    fn go_on(&mut self, out: &mut Vec<u8>) {
        self.waiting_bytes = 0;
        for event in std::mem::take(&mut self.waiting) {
            self.emit(event, out);
        }
    }

    fn emit(&mut self, event: Vec<u8>, out: &mut Vec<u8>) {
        let action = match self.framing.read(&event) {
            Some(read) if read.fails => {
                self.round.failed = true;
                EventAction::Pass(Vec::new())
            }
            Some(read) => {
                self.kept = self.kept.saturating_add(read.data.len());
                self.round.lost |= self.kept > super::reply::MAX_KEPT;
                self.judge(read.kind, &read.data)
            }
            // A comment, or unreadable.
            None => EventAction::Pass(Vec::new()),
        };
        match action {
            EventAction::Drop => {}
            EventAction::Pass(edits) => self.pass(self.framing.edited(event, edits), out),
            EventAction::End(edits) => {
                let event = self.framing.edited(event, edits);
                self.held_bytes += event.len();
                self.held.push(event);
            }
        }
    }

    fn judge(&mut self, kind: &str, data: &str) -> EventAction {
        let tool = self.rounds.tool;
        let keep = tool.is_some() && !self.round.lost;
        let mut context = RoundContext { tool, keep, earlier: &self.rounds, round: &mut self.round };
        if data.trim() == "[DONE]" {
            context.round.ended = true;
            return match &self.state {
                DialectState::Chat(_) => chat::ChatState::done(&context),
                _ => EventAction::Pass(Vec::new()),
            };
        }
        let Ok(doc) = Document::parse(data) else { return EventAction::Pass(Vec::new()) };
        match &mut self.state {
            DialectState::Chat(state) => state.event(doc.root(), &mut context),
            DialectState::Responses(state) => state.event(doc.root(), &mut context),
            DialectState::Messages(state) => state.event(doc.root(), &mut context),
            DialectState::Converse(state) => state.event(kind, doc.root(), &mut context),
        }
    }

    /// Passes bytes on, behind the end of the round if that is held back.
    fn pass(&mut self, bytes: Vec<u8>, out: &mut Vec<u8>) {
        if self.held.is_empty() {
            out.extend(bytes);
            return;
        }
        self.held_bytes += bytes.len();
        self.held.push(bytes);
        if self.held_bytes > MAX_EVENT_BYTES {
            // So long an end is not an end. The round has ended for us.
            self.round.lost = true;
            for bytes in std::mem::take(&mut self.held) {
                out.extend(bytes);
            }
            self.held_bytes = 0;
        }
    }

    /// Whole events for the client, as one who reads a record of the stream finds them.
    pub fn readable<'e>(&self, events: &'e [u8]) -> Cow<'e, [u8]> {
        self.framing.readable(events)
    }

    /// Whether the data of an event can be parsed, or there is none.
    fn is_whole(&self, event: &[u8]) -> bool {
        match self.framing.read(event) {
            Some(event) => event.data.trim() == "[DONE]" || Document::parse(&event.data).is_ok(),
            None => self.framing == Framing::Events,
        }
    }

    /// The edits that make a held event the end of a reply although the model waits for a result. `note` precedes the
    /// event.
    fn end_edits(&self, event: &[u8], note: Option<&LimitNote>) -> Vec<Edit> {
        let Some(event) = self.framing.read(event) else { return Vec::new() };
        let Ok(doc) = Document::parse(&event.data) else { return Vec::new() };
        let root = doc.root();
        let chat = root.given("choices").and_then(|choices| choices.items().next());
        let chat = super::reply::stop_edit(chat.and_then(|choice| choice.get("finish_reason")), true, "stop");
        let messages = root.given("delta").and_then(|delta| delta.get("stop_reason"));
        let messages = super::reply::stop_edit(messages, true, "end_turn");
        let responses = note.map(|note| responses::end_edits(root, note)).unwrap_or_default();
        let converse = super::reply::stop_edit(root.get("stopReason"), true, "end_turn");
        chat.into_iter().chain(messages).chain(responses).chain(converse).collect()
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod frames_tests;
#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
