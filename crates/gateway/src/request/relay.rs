//! From the upstream's reply to the client's: forwards bytes as they arrive, answers and hides Larder's own calls.
//! Never holds more than one chunk of a stream; when the client leaves, this is dropped, and with it the upstream
//! connection.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::header::{self, HeaderMap};
use axum::http::response::{Builder, Response};
use bytes::Bytes;
use futures::stream;
use larder_engine::blocking;
use larder_models::chat::ModelError;
use larder_models::upstream::{Incoming, Outgoing, RetryLimits, UpstreamTarget};
use larder_proxy::wire::{ApiDialect, ReadError, RehydrateCall, ReplyRounds, StreamedReply, WholeReply};
use larder_text::tokens::Counter;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::RequestError;
use crate::model_route::Correction;
use crate::recorder::Observation;
use crate::request::active::ActiveRequest;
use crate::request::rehydrate::Rehydrator;
use crate::request::reply::{copied, refuse};
use crate::revisions;

/// Bytes of a reply that is not streamed.
const MAX_REPLY_BYTES: usize = 64 << 20;

/// The relay of one reply, in one round or several.
pub struct ResponseRelay {
    /// The request.
    pub active: ActiveRequest,
    /// What it is written in.
    pub dialect: ApiDialect,
    /// The number of requested choices.
    pub choices: u64,
    /// How it leaves.
    pub sending: InFlightRequest,
    /// Answers calls of Larder's tool, if it was offered.
    pub rehydrator: Option<Rehydrator>,
    /// The correction of the model's estimates; `None` if its tokens are counted exactly, or the request says nothing
    /// about estimates.
    pub correction: Option<Correction>,
    /// Whether a refusal of the prompt's length shows the window of the model.
    pub learns: bool,
    /// Larder's headers for the client.
    pub ours: HeaderMap,
}

/// A request on its way to a server.
pub struct InFlightRequest {
    /// The server.
    pub target: Arc<UpstreamTarget>,
    /// What is sent.
    pub outgoing: Outgoing,
    /// How long to wait for it.
    pub patience: RetryLimits,
}

impl InFlightRequest {
    /// Sends it as one more round of `active`.
    ///
    /// # Errors
    /// As [`UpstreamTarget::send`].
    pub async fn send(&self, active: &mut ActiveRequest) -> Result<Incoming, ModelError> {
        let started = Instant::now();
        active.begin_round();
        let incoming = self.target.send(&self.outgoing, self.patience).await;
        active.timing.add_wait(started.elapsed());
        incoming
    }
}

/// What follows a round in which the model called Larder's tool.
enum NextRound {
    /// Nothing: the reply is whole.
    Close,
    /// The reply continues here.
    Continue(Incoming),
    /// The upstream refuses to continue.
    Refused(Incoming),
}

/// A reply in rounds, streamed or not.
trait InRounds {
    fn rounds(&mut self) -> &mut ReplyRounds;
    fn next(&mut self, request: &str) -> Result<Option<String>, ReadError>;
}

impl InRounds for StreamedReply {
    fn rounds(&mut self) -> &mut ReplyRounds {
        Self::rounds(self)
    }

    fn next(&mut self, request: &str) -> Result<Option<String>, ReadError> {
        Self::next(self, request)
    }
}

impl InRounds for WholeReply {
    fn rounds(&mut self) -> &mut ReplyRounds {
        Self::rounds(self)
    }

    fn next(&mut self, request: &str) -> Result<Option<String>, ReadError> {
        Self::next(self, request)
    }
}

impl ResponseRelay {
    /// The client's reply to the upstream's. Anything that is not a reply of the dialect is forwarded unchanged.
    pub async fn respond(self: Box<Self>, incoming: Incoming) -> Response<Body> {
        let plain = !incoming.headers.contains_key(header::CONTENT_ENCODING);
        let kind = incoming.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        match kind.filter(|_| plain && incoming.status.is_success()) {
            Some(kind) if kind.starts_with(self.dialect.stream_type()) => self.stream(incoming),
            Some(kind) if kind.starts_with("application/json") => self.whole(incoming).await,
            _ if plain && self.learns && !incoming.status.is_success() => self.refusal(incoming).await,
            _ => pass(self.active, incoming, &self.ours),
        }
    }

    /// Forwards an error whose text may say what the model takes; what it says is learned before the client can go on.
    async fn refusal(mut self: Box<Self>, mut incoming: Incoming) -> Response<Body> {
        let started = Instant::now();
        let body = match incoming.body(MAX_REPLY_BYTES).await {
            Ok(body) => body,
            Err(error) => return refuse(self.active, self.dialect, error.into()),
        };
        self.active.timing.add_wait(started.elapsed());
        self.active.respond(incoming.status);
        if let Some(limit) = std::str::from_utf8(&body).ok().and_then(larder_models::context_limit) {
            self.learn_window(limit).await;
        }
        self.active.complete(incoming.status);
        self.active.finish();
        send(copied(&incoming, &self.ours, true), Body::from(body))
    }

    async fn learn_window(&self, limit: u64) {
        let head = &self.active.record.summary;
        let (Some(model), Some(session)) = (&head.answered_by, head.session.clone()) else { return };
        let (model, tokens) = (model.id.clone(), head.tokens.after.saturating_add(head.tokens.output));
        let store = self.active.caller.store.clone();
        let learning = move || revisions::learn_window(&store, &session, &model, limit, tokens);
        match blocking::run(learning).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the window of a model could not be stored"),
            Err(error) => tracing::error!(%error, "the window of a model was not learned"),
        }
    }

    /// The name of Larder's tool, if it was offered.
    fn tool(&self) -> Option<&'static str> {
        self.rehydrator.as_ref().map(|rehydrator| rehydrator.tool)
    }

    async fn whole(mut self: Box<Self>, mut incoming: Incoming) -> Response<Body> {
        let mut reply = WholeReply::new(self.dialect, self.tool());
        loop {
            let started = Instant::now();
            let body = match incoming.body(MAX_REPLY_BYTES).await {
                Ok(body) => body,
                Err(error) => return refuse(self.active, self.dialect, error.into()),
            };
            self.active.timing.add_wait(started.elapsed());
            if !std::str::from_utf8(&body).is_ok_and(|text| reply.take(text).is_ok()) {
                self.active.complete(incoming.status);
                self.active.finish();
                return send(copied(&incoming, &self.ours, true), Body::from(body));
            }
            self.active.usage.update(reply.rounds().last());
            match self.again(&mut reply).await {
                Ok(NextRound::Continue(next)) => incoming = next,
                Ok(NextRound::Close) => break,
                Ok(NextRound::Refused(refusal)) => return pass(self.active, refusal, &self.ours),
                Err(error) => return refuse(self.active, self.dialect, error),
            }
        }
        self.close(reply.rounds(), &incoming).await;
        match reply.close() {
            Ok(body) => {
                self.active.capture(body.as_bytes());
                self.active.finish();
                send(copied(&incoming, &self.ours, false), Body::from(body))
            }
            Err(error) => refuse(self.active, self.dialect, RequestError::bug(&error.to_string())),
        }
    }

    fn stream(mut self: Box<Self>, incoming: Incoming) -> Response<Body> {
        self.active.respond(incoming.status);
        let head = copied(&incoming, &self.ours, false);
        let reply = StreamedReply::new(self.dialect, self.tool()).with_choices(self.choices);
        let relay = StreamRelay { call: self, incoming, reply, ended: false };
        send(head, Body::from_stream(stream::unfold(Box::new(relay), StreamRelay::step)))
    }

    /// Answers the calls of Larder's tool in the round that has just ended, and asks the model to continue.
    async fn again(&mut self, reply: &mut impl InRounds) -> Result<NextRound, RequestError> {
        let calls = reply.rounds().calls();
        if self.rehydrator.is_none() || calls.is_empty() {
            return Ok(NextRound::Close);
        }
        // Most replies need no room for this.
        Box::pin(self.continue_after(calls, reply)).await
    }

    async fn continue_after(
        &mut self,
        calls: Vec<RehydrateCall>,
        reply: &mut impl InRounds,
    ) -> Result<NextRound, RequestError> {
        let Some(rehydrator) = &mut self.rehydrator else { return Ok(NextRound::Close) };
        let rounds = reply.rounds();
        let reported = rounds.last().usage.map(|usage| usage.output);
        let said = reported
            .and_then(|tokens| usize::try_from(tokens).ok())
            .unwrap_or_else(|| rehydrator.size(&calls));
        if let Some(limit) = rehydrator.left.limit(calls.len(), said) {
            rounds.give_up(limit);
            return Ok(NextRound::Close);
        }
        let room = rehydrator.left.room;
        let answers = rehydrator.answer(&calls, said, &mut self.active.record).await?;
        let longer = u64::try_from(room.saturating_sub(rehydrator.left.room)).unwrap_or(u64::MAX);
        if let Err(limit) = self.active.reserve_further_round(longer).await {
            reply.rounds().give_up(limit);
            return Ok(NextRound::Close);
        }
        reply.rounds().answer(answers);
        let bug = |error: &dyn std::error::Error| RequestError::bug(&error.to_string());
        let sent = std::str::from_utf8(&self.sending.outgoing.body).map_err(|error| bug(&error))?;
        let Some(next) = reply.next(sent).map_err(|error| bug(&error))? else { return Ok(NextRound::Close) };
        self.sending.outgoing.body = next.into();
        let incoming = self.sending.send(&mut self.active).await?;
        Ok(if incoming.status.is_success() {
            NextRound::Continue(incoming)
        } else {
            NextRound::Refused(incoming)
        })
    }

    /// How far the estimates of the model's tokens were off. Further rounds contain more than was counted for the
    /// prompt, so nothing is learned from them.
    fn observation(&self, rounds: &ReplyRounds) -> Option<Observation> {
        let Correction { counter, factor } = self.correction.clone().filter(|_| rounds.count() == 1)?;
        let summary = &self.active.record.summary;
        Some(Observation {
            model: summary.answered_by.as_ref()?.id.clone(),
            counter,
            estimated: Counter::uncorrected(summary.tokens.after, factor),
            reported: rounds.usage()?.input,
        })
    }

    /// Completes the reply: records its usage, and stores the round trips that it hides.
    async fn close(&mut self, rounds: &mut ReplyRounds, incoming: &Incoming) {
        self.active.observation = self.observation(rounds);
        if let Some(rehydrator) = &self.rehydrator {
            let hidden = rounds.hidden(&rehydrator.place);
            rehydrator.remember(hidden, rounds.stored_under()).await;
        }
        self.active.complete(incoming.status);
        if rounds.failed() {
            self.active.complete_with_error();
        }
    }
}

/// Forwards a reply unchanged, chunk by chunk.
pub fn pass(mut active: ActiveRequest, incoming: Incoming, ours: &HeaderMap) -> Response<Body> {
    let head = copied(&incoming, ours, true);
    active.respond(incoming.status);
    // A body of known length is never polled for its end: the server stops at the last byte.
    let length = incoming.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let left = length.and_then(|length| length.parse::<usize>().ok());
    if left == Some(0) {
        active.complete(incoming.status);
        active.finish();
        return send(head, Body::empty());
    }
    let pieces = stream::unfold(Some((active, incoming, left)), |state| async move {
        let (mut active, mut incoming, left) = state?;
        match incoming.chunk().await {
            Ok(Some(bytes)) => {
                let left = left.map(|left| left.saturating_sub(bytes.len()));
                if left != Some(0) {
                    return Some((Ok(bytes), Some((active, incoming, left))));
                }
                active.complete(incoming.status);
                active.finish();
                Some((Ok(bytes), None))
            }
            Ok(None) => {
                active.complete(incoming.status);
                active.finish();
                None
            }
            Err(error) => {
                let error = active.fail(error.into());
                active.finish();
                Some((Err(error), None))
            }
        }
    });
    send(head, Body::from_stream(pieces))
}

/// As [`pass`], for replies that are not recorded; `place` is held until the end.
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
struct StreamRelay {
    call: Box<ResponseRelay>,
    incoming: Incoming,
    reply: StreamedReply,
    ended: bool,
}

impl StreamRelay {
    /// The next bytes for the client.
    async fn step(mut self: Box<Self>) -> Option<(Result<Bytes, RequestError>, Box<Self>)> {
        let (mut out, work) = (Vec::new(), self.call.active.timing.begin_work());
        while out.is_empty() && !self.ended {
            if let Err(error) = self.advance(&mut out).await {
                let error = self.call.active.fail(error);
                self.reply.fail(&error.problem(), &mut out);
                self.ended = true;
            }
        }
        self.call.active.capture(&self.reply.readable(&out));
        self.call.active.timing.end_work(&work);
        if out.is_empty() {
            self.call.active.finish();
            return None;
        }
        Some((Ok(Bytes::from(out)), self))
    }

    async fn advance(&mut self, out: &mut Vec<u8>) -> Result<(), RequestError> {
        let started = Instant::now();
        let chunk = self.incoming.chunk().await;
        self.call.active.timing.add_wait(started.elapsed());
        if let Some(bytes) = chunk? {
            self.reply.push(&bytes, out);
            self.call.active.usage.update(self.reply.known());
            if self.reply.is_told() {
                // The client may leave now, before the provider's connection ends.
                self.call.active.complete(self.incoming.status);
                self.call.active.budget.mark_ended();
            }
            return Ok(());
        }
        self.reply.end(out);
        self.call.active.usage.update(self.reply.rounds().last());
        match self.call.again(&mut self.reply).await? {
            NextRound::Continue(next) => self.incoming = next,
            NextRound::Refused(mut refusal) => {
                return Err(RequestError::refused_by_upstream(&mut refusal).await);
            }
            NextRound::Close => {
                let rounds = self.reply.rounds();
                if !rounds.last().ended && !rounds.failed() {
                    return Err(RequestError::cut_off());
                }
                self.call.close(self.reply.rounds(), &self.incoming).await;
                self.reply.close(out);
                self.ended = true;
            }
        }
        Ok(())
    }
}
