//! A streamed reply: bytes → events → pieces of a [`ChatReply`], under one deadline. Knows no provider; each brings
//! its [`Decoder`].

use std::collections::VecDeque;
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use tokio::time::Instant;

use crate::chat::{ChatEvent, ChatReply, ModelError};
use crate::http::{HttpEndpoint, HttpReply};
use crate::sse::{SseParser, StreamEvent};

/// The latest deadline; a longer timeout means none.
pub const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What an event brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeStep {
    /// Text to show.
    Text(String),
    /// Nothing to show yet.
    More,
    /// The provider reported the end.
    End,
}

/// Splits the bytes of a stream into events.
pub trait EventParser: Default + Send {
    /// Takes the next bytes and appends the events they complete to `events`.
    ///
    /// # Errors
    /// If they are no such stream; the parser is of no use after that.
    fn push(&mut self, bytes: &[u8], events: &mut Vec<StreamEvent>) -> Result<(), String>;

    /// Ends the stream.
    ///
    /// # Errors
    /// If its end is no event.
    fn finish(self, events: &mut Vec<StreamEvent>) -> Result<(), String>;
}

impl EventParser for SseParser {
    fn push(&mut self, bytes: &[u8], events: &mut Vec<StreamEvent>) -> Result<(), String> {
        Self::push(self, bytes, events).map_err(|error| error.to_string())
    }

    fn finish(self, events: &mut Vec<StreamEvent>) -> Result<(), String> {
        Self::finish(self, events).map_err(|error| error.to_string())
    }
}

/// Decodes a provider's stream.
pub trait Decoder: Send {
    /// What the stream is made of.
    type Parser: EventParser;

    /// Takes one event.
    ///
    /// # Errors
    /// When the event is malformed, or is the provider's own report of an error.
    fn event(&mut self, event: StreamEvent, from: &HttpEndpoint) -> Result<DecodeStep, ModelError>;

    /// The whole reply, after the last event. `said_end`: whether an event was [`DecodeStep::End`].
    ///
    /// # Errors
    /// What is missing, when the stream broke off.
    fn finish(&mut self, said_end: bool) -> Result<ChatReply, String>;
}

/// Opens a reply and decodes it; all of it must happen within `limit`.
pub fn run<'a, D, F>(
    name: &'a str,
    limit: Duration,
    open: F,
    decoder: D,
) -> BoxStream<'a, Result<ChatEvent, ModelError>>
where
    D: Decoder + 'a,
    F: Future<Output = Result<HttpReply<'a>, ModelError>> + Send + 'a,
{
    let opened = stream::once(async move {
        let reply = open.await?;
        if !reply.is_no_stream() {
            return Ok(Live::new(reply, decoder));
        }
        let endpoint = reply.endpoint();
        let body = reply.json().await?;
        Err(endpoint.protocol(format!("expected a stream, but received: {body}")))
    });
    let events = opened.map_ok(|live| stream::try_unfold(live, Live::step)).try_flatten();
    until(name, limit, events.boxed())
}

/// `events`, ended by [`ModelError::Timeout`] when they take longer than `limit` from now.
pub fn until<'a>(
    name: &'a str,
    limit: Duration,
    events: BoxStream<'a, Result<ChatEvent, ModelError>>,
) -> BoxStream<'a, Result<ChatEvent, ModelError>> {
    let deadline = Instant::now() + limit.min(NEVER);
    stream::unfold(Some(events), move |events| async move {
        let mut events = events?;
        match tokio::time::timeout_at(deadline, events.next()).await {
            Ok(event) => event.map(|event| (event, Some(events))),
            // Dropping `events` closes the connection.
            Err(_) => Some((Err(ModelError::Timeout { provider: name.to_owned(), after: limit }), None)),
        }
    })
    .boxed()
}

/// A stream in progress.
struct Live<'a, D: Decoder> {
    reply: HttpReply<'a>,
    /// `None` once no more bytes are needed.
    parser: Option<D::Parser>,
    decoder: D,
    /// Decoded events that have not been returned. Errors are queued too, so that chunking cannot change the order.
    ready: VecDeque<Result<ChatEvent, ModelError>>,
}

impl<'a, D: Decoder> Live<'a, D> {
    fn new(reply: HttpReply<'a>, decoder: D) -> Self {
        Self { reply, parser: Some(D::Parser::default()), decoder, ready: VecDeque::new() }
    }

    async fn step(mut self) -> Result<Option<(ChatEvent, Self)>, ModelError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return event.map(|event| Some((event, self)));
            }
            let Some(parser) = self.parser.take() else { return Ok(None) };
            let bytes = self.reply.chunk().await?;
            if let Err(error) = self.read(parser, bytes.as_deref()) {
                self.ready.push_back(Err(error));
            }
        }
    }

    /// Decodes the next bytes; `None` is the end of the body.
    fn read(&mut self, mut parser: D::Parser, bytes: Option<&[u8]>) -> Result<(), ModelError> {
        let mut events = Vec::new();
        let (parsed, rest) = match bytes {
            Some(bytes) => (parser.push(bytes, &mut events), Some(parser)),
            None => (parser.finish(&mut events), None),
        };
        for event in events {
            match self.decoder.event(event, self.reply.endpoint())? {
                DecodeStep::Text(text) if text.is_empty() => {}
                DecodeStep::Text(text) => self.ready.push_back(Ok(ChatEvent::Text(text))),
                DecodeStep::More => {}
                DecodeStep::End => return self.end(true),
            }
        }
        parsed.map_err(|error| self.reply.endpoint().protocol(error))?;
        match rest {
            Some(parser) => self.parser = Some(parser),
            None => self.end(false)?,
        }
        Ok(())
    }

    fn end(&mut self, said_end: bool) -> Result<(), ModelError> {
        let reply = self.decoder.finish(said_end).map_err(|why| self.reply.endpoint().protocol(why))?;
        // The text has already been returned.
        self.ready.extend(reply.into_events().filter(|event| !matches!(event, ChatEvent::Text(_))).map(Ok));
        Ok(())
    }
}

/// The events of a reply that arrives complete.
pub fn whole<'a>(
    reply: impl Future<Output = Result<ChatReply, ModelError>> + Send + 'a,
) -> BoxStream<'a, Result<ChatEvent, ModelError>> {
    let events = async move { Ok(stream::iter(reply.await?.into_events().map(Ok))) };
    stream::once(events).try_flatten().boxed()
}
