//! From the upstream's reply to the client's: bytes as they come, our own calls answered and hidden. Never holds more
//! of a stream than one piece; when the client leaves, this is dropped, and with it the upstream's connection.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::header::{self, HeaderMap};
use axum::http::response::{Builder, Response};
use bytes::Bytes;
use futures::stream;
use larder_models::chat::ModelError;
use larder_models::upstream::{Incoming, Outgoing, Patience, Target};
use larder_proxy::wire::{ApiDialect, ReadError, Rounds, StreamedReply, WholeReply};
use tokio::sync::OwnedSemaphorePermit;

use crate::request::fault::Fault;
use crate::request::ledger::Ledger;
use crate::request::rehydrate::Answerer;
use crate::request::reply::{copied, refuse};

/// Bytes of a reply that is not streamed.
const MAX_REPLY_BYTES: usize = 64 << 20;

/// A request under way: its account, how it was sent, and who answers our calls in its reply.
pub struct Call {
    /// Its account.
    pub ledger: Ledger,
    /// What it speaks.
    pub format: ApiDialect,
    /// Replies that it asks for at once.
    pub choices: u64,
    /// How it leaves.
    pub sending: Sending,
    /// Who answers calls of our tool, where it was offered.
    pub answerer: Option<Answerer>,
    /// Headers of ours for the client.
    pub ours: HeaderMap,
}

/// A request on its way to a server.
pub struct Sending {
    /// The server.
    pub target: Arc<Target>,
    /// What is sent.
    pub outgoing: Outgoing,
    /// How long to wait for it.
    pub patience: Patience,
}

impl Sending {
    /// Sends it. `ledger` is told how long that took.
    ///
    /// # Errors
    /// As [`Target::send`].
    pub async fn send(&self, ledger: &mut Ledger) -> Result<Incoming, ModelError> {
        let started = Instant::now();
        ledger.leaves();
        let incoming = self.target.send(&self.outgoing, self.patience).await;
        ledger.waited(started.elapsed());
        incoming
    }
}

/// What follows a round in which the model called our tool.
enum Again {
    /// Nothing: the reply is whole.
    Close,
    /// The reply goes on here.
    Continue(Incoming),
    /// The upstream refuses to go on.
    Refused(Incoming),
}

/// A reply in rounds, streamed or not.
trait InRounds {
    fn rounds(&mut self) -> &mut Rounds;
    fn next(&mut self, request: &str) -> Result<Option<String>, ReadError>;
}

impl InRounds for StreamedReply {
    fn rounds(&mut self) -> &mut Rounds {
        Self::rounds(self)
    }

    fn next(&mut self, request: &str) -> Result<Option<String>, ReadError> {
        Self::next(self, request)
    }
}

impl InRounds for WholeReply {
    fn rounds(&mut self) -> &mut Rounds {
        Self::rounds(self)
    }

    fn next(&mut self, request: &str) -> Result<Option<String>, ReadError> {
        Self::next(self, request)
    }
}

impl Call {
    /// The client's reply to the upstream's. What is no reply of the format passes as it is.
    pub async fn respond(self, incoming: Incoming) -> Response<Body> {
        let plain = !incoming.headers.contains_key(header::CONTENT_ENCODING);
        let kind = incoming.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        match kind.filter(|_| plain && incoming.status.is_success()) {
            Some(kind) if kind.starts_with("text/event-stream") => self.stream(incoming),
            Some(kind) if kind.starts_with("application/json") => self.whole(incoming).await,
            _ => pass(self.ledger, incoming, &self.ours),
        }
    }

    async fn whole(mut self, mut incoming: Incoming) -> Response<Body> {
        let mut reply = WholeReply::new(self.format, self.answerer.is_some());
        loop {
            let started = Instant::now();
            let body = match incoming.body(MAX_REPLY_BYTES).await {
                Ok(body) => body,
                Err(error) => return refuse(self.ledger, self.format, error.into()),
            };
            self.ledger.waited(started.elapsed());
            if !std::str::from_utf8(&body).is_ok_and(|text| reply.take(text).is_ok()) {
                self.ledger.end(incoming.status);
                return send(copied(&incoming, &self.ours, true), Body::from(body));
            }
            self.ledger.knows(reply.rounds().last());
            match self.again(&mut reply).await {
                Ok(Again::Continue(next)) => incoming = next,
                Ok(Again::Close) => break,
                Ok(Again::Refused(refusal)) => return pass(self.ledger, refusal, &self.ours),
                Err(fault) => return refuse(self.ledger, self.format, fault),
            }
        }
        self.close(reply.rounds(), &incoming).await;
        match reply.close() {
            Ok(body) => {
                self.ledger.says(body.as_bytes());
                send(copied(&incoming, &self.ours, false), Body::from(body))
            }
            Err(error) => refuse(self.ledger, self.format, Fault::bug(&error.to_string())),
        }
    }

    fn stream(mut self, incoming: Incoming) -> Response<Body> {
        self.ledger.responds(incoming.status);
        let head = copied(&incoming, &self.ours, false);
        let reply = StreamedReply::new(self.format, self.answerer.is_some()).of_choices(self.choices);
        let relay = Relay { call: self, incoming, reply, ended: false };
        send(head, Body::from_stream(stream::unfold(relay, Relay::step)))
    }

    /// Answers what the model asked of our tool in the round that has just ended, and asks it to go on.
    async fn again(&mut self, reply: &mut impl InRounds) -> Result<Again, Fault> {
        let Some(answerer) = &mut self.answerer else { return Ok(Again::Close) };
        let rounds = reply.rounds();
        let calls = rounds.calls();
        let reported = rounds.last().usage.map(|usage| usage.output);
        let said =
            reported.and_then(|tokens| usize::try_from(tokens).ok()).unwrap_or_else(|| answerer.size(&calls));
        if calls.is_empty() {
            return Ok(Again::Close);
        }
        if let Some(limit) = answerer.limit(calls.len(), said) {
            rounds.give_up(limit);
            return Ok(Again::Close);
        }
        let room = answerer.room;
        let answers = answerer.answer(&calls, said, &mut self.ledger.exchange).await?;
        let longer = u64::try_from(room.saturating_sub(answerer.room)).unwrap_or(u64::MAX);
        if let Err(limit) = self.ledger.reserve_round(longer).await {
            reply.rounds().give_up(limit);
            return Ok(Again::Close);
        }
        reply.rounds().answer(answers);
        let bug = |error: &dyn std::error::Error| Fault::bug(&error.to_string());
        let sent = std::str::from_utf8(&self.sending.outgoing.body).map_err(|error| bug(&error))?;
        let Some(next) = reply.next(sent).map_err(|error| bug(&error))? else { return Ok(Again::Close) };
        self.sending.outgoing.body = next.into();
        let incoming = self.sending.send(&mut self.ledger).await?;
        Ok(if incoming.status.is_success() { Again::Continue(incoming) } else { Again::Refused(incoming) })
    }

    /// The reply is whole: takes down what it used and which round trips it hides.
    async fn close(&mut self, rounds: &mut Rounds, incoming: &Incoming) {
        self.ledger.learns(rounds.usage(), rounds.count());
        if let Some(answerer) = &self.answerer {
            answerer.remember(rounds.hidden(&answerer.place)).await;
        }
        self.ledger.end(incoming.status);
        if rounds.failed() {
            self.ledger.end_in_error();
        }
    }
}

/// A reply that passes as it is, piece by piece.
pub fn pass(mut ledger: Ledger, incoming: Incoming, ours: &HeaderMap) -> Response<Body> {
    let head = copied(&incoming, ours, true);
    ledger.responds(incoming.status);
    // A body whose length is known is never asked for its end: whoever writes it out stops at the last byte.
    let length = incoming.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let left = length.and_then(|length| length.parse::<usize>().ok());
    if left == Some(0) {
        ledger.end(incoming.status);
    }
    let pieces = stream::unfold(Some((ledger, incoming, left)), |state| async move {
        let (mut ledger, mut incoming, left) = state?;
        match incoming.chunk().await {
            Ok(Some(bytes)) => {
                let left = left.map(|left| left.saturating_sub(bytes.len()));
                if left == Some(0) {
                    ledger.end(incoming.status);
                }
                Some((Ok(bytes), Some((ledger, incoming, left))))
            }
            Ok(None) => {
                ledger.end(incoming.status);
                None
            }
            Err(error) => Some((Err(ledger.fail(error.into())), None)),
        }
    });
    send(head, Body::from_stream(pieces))
}

/// The same for what is not recorded; `place` stays taken until the end.
pub fn forward(incoming: Incoming, place: OwnedSemaphorePermit) -> Response<Body> {
    let head = copied(&incoming, &HeaderMap::new(), true);
    let pieces = stream::try_unfold((incoming, place), |(mut incoming, place)| async move {
        let chunk = incoming.chunk().await?;
        Ok::<_, ModelError>(chunk.map(|bytes| (bytes, (incoming, place))))
    });
    send(head, Body::from_stream(pieces))
}

fn send(head: Builder, body: Body) -> Response<Body> {
    head.body(body).unwrap_or_default()
}

/// A stream on its way to the client.
struct Relay {
    call: Call,
    incoming: Incoming,
    reply: StreamedReply,
    ended: bool,
}

impl Relay {
    /// The next bytes for the client.
    async fn step(mut self) -> Option<(Result<Bytes, Fault>, Self)> {
        let (mut out, work) = (Vec::new(), self.call.ledger.begin_work());
        while out.is_empty() && !self.ended {
            if let Err(fault) = self.advance(&mut out).await {
                let fault = self.call.ledger.fail(fault);
                self.reply.fail(&fault.problem(), &mut out);
                self.ended = true;
            }
        }
        self.call.ledger.says(&out);
        self.call.ledger.end_work(work);
        (!out.is_empty()).then(|| (Ok(Bytes::from(out)), self))
    }

    async fn advance(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        let started = Instant::now();
        let chunk = self.incoming.chunk().await;
        self.call.ledger.waited(started.elapsed());
        if let Some(bytes) = chunk? {
            self.reply.push(&bytes, out);
            self.call.ledger.knows(self.reply.known());
            if self.reply.is_told() {
                // Its client may go now, before the provider's connection ends.
                self.call.ledger.end(self.incoming.status);
            }
            return Ok(());
        }
        self.reply.end(out);
        self.call.ledger.knows(self.reply.rounds().last());
        match self.call.again(&mut self.reply).await? {
            Again::Continue(next) => self.incoming = next,
            Again::Refused(mut refusal) => return Err(Fault::refused_by_upstream(&mut refusal).await),
            Again::Close => {
                let rounds = self.reply.rounds();
                if !rounds.last().ended && !rounds.failed() {
                    return Err(Fault::cut_off());
                }
                self.call.close(self.reply.rounds(), &self.incoming).await;
                self.reply.close(out);
                self.ended = true;
            }
        }
        Ok(())
    }
}
