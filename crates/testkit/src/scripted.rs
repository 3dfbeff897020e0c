//! A chat model that answers from a script and records its requests.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use larder_models::chat::{ChatEvent, ChatModel, ChatReply, ChatRequest, ModelError, StopReason, Usage};
use tokio::sync::watch;
use tokio::time::timeout;

/// Longest wait for a call; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(120);

/// One answer of a script.
#[derive(Debug, Clone)]
pub enum Act {
    /// A reply or an error, at once.
    Say(Result<ChatReply, ModelError>),
    /// Nothing, ever; the caller's timeout ends it.
    Hang,
    /// The same as the answer inside, after a while of tokio's clock.
    After(Duration, Box<Act>),
    /// Only when streamed: these pieces of text, then the error.
    Break(Vec<String>, ModelError),
}

/// A reply of some text that ended by itself. Its usage counts words, so that costs are not zero.
pub fn text(text: &str) -> ChatReply {
    let output = text.split_whitespace().count() as u64;
    let usage = Usage { input: 10, output, ..Usage::default() };
    ChatReply { text: text.to_owned(), tool_calls: Vec::new(), stop: StopReason::Stop, usage }
}

/// A model that performs its acts in order, and fails the test if none is left.
#[derive(Debug, Default)]
pub struct ScriptedModel {
    acts: Mutex<VecDeque<Act>>,
    requests: watch::Sender<Vec<ChatRequest>>,
}

impl ScriptedModel {
    /// A model that performs `acts`.
    pub fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        Self { acts: Mutex::new(acts.into_iter().collect()), requests: watch::Sender::default() }
    }

    /// A model that answers with these texts.
    pub fn saying<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        Self::new(texts.into_iter().map(|words| Act::Say(Ok(text(words)))))
    }

    /// All requests, in order.
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.requests.borrow().clone()
    }

    /// Waits until it has been asked so many times.
    pub async fn asked(&self, times: usize) {
        let mut requests = self.requests.subscribe();
        let waited = timeout(PATIENCE, requests.wait_for(|requests| requests.len() >= times)).await;
        waited.expect("the model is asked again").expect("the sender is alive");
    }

    /// The number of remaining acts.
    pub fn left(&self) -> usize {
        lock(&self.acts).len()
    }

    fn next(&self, request: &ChatRequest) -> Act {
        self.requests.send_modify(|requests| requests.push(request.clone()));
        let asked = self.requests.borrow().len();
        lock(&self.acts)
            .pop_front()
            .unwrap_or_else(|| panic!("call {asked} has no act in the script: {request:#?}"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no other test thread has panicked")
}

fn perform(act: Act) -> BoxStream<'static, Result<ChatEvent, ModelError>> {
    match act {
        Act::Say(Ok(reply)) => stream::iter(reply.into_events().map(Ok)).boxed(),
        Act::Say(Err(error)) => stream::iter([Err(error)]).boxed(),
        Act::Hang => stream::pending().boxed(),
        Act::After(pause, act) => stream::once(async move { tokio::time::sleep(pause).await })
            .flat_map(move |()| perform((*act).clone()))
            .boxed(),
        Act::Break(pieces, error) => {
            let pieces = pieces.into_iter().map(|piece| Ok(ChatEvent::Text(piece)));
            stream::iter(pieces.chain([Err(error)])).boxed()
        }
    }
}

impl ChatModel for ScriptedModel {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        let mut events = perform(self.next(request));
        async move {
            while let Some(event) = events.try_next().await? {
                if let ChatEvent::Done(reply) = event {
                    return Ok(reply);
                }
            }
            panic!("an act ended without a reply")
        }
        .boxed()
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> BoxStream<'a, Result<ChatEvent, ModelError>> {
        perform(self.next(request))
    }
}
