//! The threads on which the model runs, one reply at a time, and the way to them. Knows nothing of how replies are
//! made.

use std::sync::mpsc;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout_at};

use super::generate::{Generator, Listener};
use super::{PROVIDER, broken};
use larder_models::chat::{ChatEvent, ChatReply, ChatRequest, ModelError};

/// Stack of each thread: grammars of deeply nested schemas recurse.
const STACK_BYTES: usize = 16 << 20;

type Event = Result<ChatEvent, ModelError>;

struct WorkerJob {
    request: ChatRequest,
    events: UnboundedSender<Event>,
}

/// A queue in front of one generator. Requests are answered in the order in which they came; one whose reply nobody
/// waits for any more is dropped.
#[derive(Debug, Clone)]
pub(super) struct Worker(mpsc::Sender<WorkerJob>);

impl Worker {
    /// Starts the threads; they end when the last clone is gone.
    pub(super) fn start(mut generator: Generator) -> Result<Self, rayon::ThreadPoolBuildError> {
        let (sender, jobs) = mpsc::channel::<WorkerJob>();
        // The generator runs inside the pool that its products use: from outside, each product would put the calling
        // thread to sleep and wake it again, hundreds of times a token.
        let pool = rayon::ThreadPoolBuilder::new()
            .thread_name(|index| format!("larder-embedded-{index}"))
            .stack_size(STACK_BYTES)
            .panic_handler(|_| tracing::error!("the embedded model failed and answers no more"))
            .build()?;
        let run = move || {
            for job in jobs {
                let listener = Channel(job.events);
                if listener.is_gone() {
                    continue;
                }
                match generator.answer(&job.request, &listener) {
                    Ok(Some(reply)) => listener.conclude(reply),
                    Ok(None) => {}
                    Err(error) => listener.send(Err(error)),
                }
            }
        };
        // The pool lives as long as this work in it.
        pool.spawn(run);
        Ok(Self(sender))
    }

    /// The events of a reply. Waiting in the queue counts against the request's time.
    pub(super) fn ask(&self, request: &ChatRequest) -> BoxStream<'static, Event> {
        let (events, receiver) = unbounded_channel();
        // Where nobody works any more the sender is dropped, which ends the stream.
        let _ = self.0.send(WorkerJob { request: request.clone(), events });
        let waiting = Waiting { receiver, deadline: None, time: request.timeout };
        stream::unfold(Some(waiting), |waiting| async { waiting?.next().await }).boxed()
    }
}

struct Waiting {
    receiver: UnboundedReceiver<Event>,
    deadline: Option<Instant>,
    time: Duration,
}

impl Waiting {
    async fn next(mut self) -> Option<(Event, Option<Self>)> {
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.time);
        let event = match timeout_at(deadline, self.receiver.recv()).await {
            Ok(Some(event)) => event,
            Ok(None) => Err(broken("the model failed earlier and answers no more")),
            Err(_) => Err(ModelError::Timeout { provider: PROVIDER.to_owned(), after: self.time }),
        };
        let is_last = matches!(event, Ok(ChatEvent::Done(_)) | Err(_));
        Some((event, (!is_last).then_some(self)))
    }
}

struct Channel(UnboundedSender<Event>);

impl Channel {
    fn send(&self, event: Event) {
        // Nobody listening is noticed through `is_gone`.
        let _ = self.0.send(event);
    }

    fn conclude(&self, reply: ChatReply) {
        for call in &reply.tool_calls {
            self.send(Ok(ChatEvent::ToolCall(call.clone())));
        }
        self.send(Ok(ChatEvent::Done(reply)));
    }
}

impl Listener for Channel {
    fn tell(&self, event: ChatEvent) {
        self.send(Ok(event));
    }

    fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}
