//! A model with safe retries within its timeout, and a circuit breaker. Knows no provider.
//!
//! Retries errors that [`ModelError::is_retryable`] permits: those that leave nothing done and nothing billed, which
//! excludes timeouts. A stream is retried only before its first event. The clock is tokio's, so tests can stop it;
//! randomness is injected.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use tokio::time::{Instant, sleep, timeout_at};

pub use crate::breaker::BreakerPolicy;
use crate::breaker::{Breaker, BreakerPermit};
use crate::chat::{
    ChatEvent, ChatModel, ChatReply, ChatRequest, EmbeddingModel, Embeddings, ModelError, Usage,
};
use crate::decode::NEVER;
use crate::table::DEFAULT_RETRIES;

/// Texts embedded, and retried, together. Servers accept from 256 to 2,048 per request.
const EMBED_BATCH: usize = 256;

/// How many times, and after what pause, a call is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum retries of a call.
    pub retries: u32,
    /// The longest pause before the first retry; it doubles with each.
    pub backoff: Duration,
    /// The longest pause before any retry.
    pub max_backoff: Duration,
    /// The longest pause that a provider may ask for. A longer one ends the call with its error.
    pub max_retry_after: Duration,
    /// When to leave the provider alone.
    pub breaker: BreakerPolicy,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: DEFAULT_RETRIES,
            backoff: Duration::from_millis(500),
            max_backoff: Duration::from_secs(8),
            max_retry_after: Duration::from_secs(30),
            breaker: BreakerPolicy::default(),
        }
    }
}

/// Gives numbers from 0 up to 1, evenly spread: where in its range a pause falls.
pub type Jitter = Arc<dyn Fn() -> f64 + Send + Sync>;

/// The jitter of production: fast and not for secrets.
pub fn random_jitter() -> Jitter {
    Arc::new(fastrand::f64)
}

/// The wrapper. `M` is the model's trait object.
pub struct Resilient<M: ?Sized> {
    name: String,
    policy: RetryPolicy,
    jitter: Jitter,
    breaker: Breaker,
    model: Arc<M>,
}

impl<M: ?Sized> Resilient<M> {
    /// Wraps `model`, which errors call `name`.
    pub fn new(name: &str, model: Arc<M>, policy: RetryPolicy, jitter: Jitter) -> Self {
        let breaker = Breaker::new(policy.breaker);
        Self { name: name.to_owned(), policy, jitter, breaker, model }
    }

    /// Calls `attempt` until it succeeds, may not be repeated, or the time or retries are used up.
    async fn repeat<'a, T, F>(
        &'a self,
        time: Time,
        mut attempt: impl FnMut() -> F,
    ) -> Result<(T, BreakerPermit<'a>), ModelError>
    where
        F: Future<Output = Result<T, ModelError>>,
    {
        let mut ticket = self.breaker.admit().map_err(|(failures, retry_in)| ModelError::BreakerOpen {
            provider: self.name.clone(),
            failures,
            retry_in,
        })?;
        for retry in 0.. {
            let error = match time.limit(&self.name, attempt()).await {
                Ok(value) => return Ok((value, ticket)),
                Err(error) => error,
            };
            ticket.report(Err::<(), _>(&error));
            let Some(pause) = self.pause(&error, retry, time.deadline) else { return Err(error) };
            tracing::warn!(model = self.name, retry = retry + 1, pause_ms = pause.as_millis(), %error, "asking again");
            sleep(pause).await;
            // If the breaker has opened meanwhile, the original error is more informative.
            let Ok(next) = self.breaker.admit() else { return Err(error) };
            ticket = next;
        }
        Err(time.late(&self.name))
    }

    /// The pause before the given retry, counted from 0; `None` if there is no retry.
    fn pause(&self, error: &ModelError, retry: u32, deadline: Instant) -> Option<Duration> {
        if !error.is_retryable() || retry >= self.policy.retries {
            return None;
        }
        let widest =
            self.policy.backoff.saturating_mul(2_u32.saturating_pow(retry)).min(self.policy.max_backoff);
        let spread = Some((self.jitter)()).filter(|spread| !spread.is_nan()).unwrap_or(0.0);
        let mut pause = widest.mul_f64(spread.clamp(0.0, 1.0));
        if let ModelError::RateLimited { retry_after: Some(asked), .. } = error {
            if *asked > self.policy.max_retry_after {
                return None;
            }
            pause = pause.max(*asked);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        (pause < left).then_some(pause)
    }
}

impl ChatModel for Resilient<dyn ChatModel> {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        async move {
            let time = Time::from_now(request.timeout);
            let (reply, ticket) = self.repeat(time, || self.model.chat(request)).await?;
            ticket.report(Ok(()));
            Ok(reply)
        }
        .boxed()
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> BoxStream<'a, Result<ChatEvent, ModelError>> {
        let time = Time::from_now(request.timeout);
        let open = async move {
            let attempt = || async {
                let mut events = self.model.stream(request);
                let first = events.next().await.unwrap_or_else(|| {
                    let detail = "the stream was empty".to_owned();
                    Err(ModelError::Protocol { provider: self.name.clone(), detail })
                })?;
                Ok((first, events))
            };
            let ((first, rest), ticket) = self.repeat(time, attempt).await?;
            let events = stream::once(std::future::ready(Ok(first))).chain(rest).boxed();
            Ok(stream::try_unfold(
                Watched { name: &self.name, time, events, ticket: Some(ticket) },
                Watched::next,
            ))
        };
        stream::once(open).try_flatten().boxed()
    }
}

/// The time for all attempts of a call together.
#[derive(Clone, Copy)]
struct Time {
    limit: Duration,
    deadline: Instant,
}

impl Time {
    fn from_now(limit: Duration) -> Self {
        Self { limit, deadline: Instant::now() + limit.min(NEVER) }
    }

    async fn limit<T>(
        &self,
        name: &str,
        call: impl Future<Output = Result<T, ModelError>>,
    ) -> Result<T, ModelError> {
        timeout_at(self.deadline, call).await.unwrap_or_else(|_| Err(self.late(name)))
    }

    fn late(&self, name: &str) -> ModelError {
        ModelError::Timeout { provider: name.to_owned(), after: self.limit }
    }
}

/// A stream that has begun: passed on within its time, and reported to the breaker when it ends.
struct Watched<'a> {
    name: &'a str,
    time: Time,
    events: BoxStream<'a, Result<ChatEvent, ModelError>>,
    ticket: Option<BreakerPermit<'a>>,
}

impl Watched<'_> {
    async fn next(mut self) -> Result<Option<(ChatEvent, Self)>, ModelError> {
        let event = self.time.limit(self.name, self.events.try_next()).await;
        if (event.is_err() || matches!(event, Ok(Some(ChatEvent::Done(_)))))
            && let Some(ticket) = self.ticket.take()
        {
            ticket.report(event.as_ref());
        }
        Ok(event?.map(|event| (event, self)))
    }
}

impl EmbeddingModel for Resilient<dyn EmbeddingModel> {
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        async move {
            let mut all = Embeddings { vectors: Vec::with_capacity(texts.len()), usage: Usage::default() };
            for texts in texts.chunks(EMBED_BATCH) {
                // The model limits its own time; a batch is retried as often as the policy allows.
                let (mut some, ticket) =
                    self.repeat(Time::from_now(NEVER), || self.model.embed(texts)).await?;
                ticket.report(Ok(()));
                if some.vectors.len() != texts.len() {
                    let detail = format!("{} vectors for {} texts", some.vectors.len(), texts.len());
                    return Err(ModelError::Protocol { provider: self.name.clone(), detail });
                }
                all.vectors.append(&mut some.vectors);
                all.usage += some.usage;
            }
            Ok(all)
        }
        .boxed()
    }

    fn dimensions(&self) -> usize {
        self.model.dimensions()
    }
}
