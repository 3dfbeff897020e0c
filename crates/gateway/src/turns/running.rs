//! Running turns and the events of each so far. In memory and bounded; a turn is removed when it ends. Knows no phase.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use larder_agent::turn::TurnEvent;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum events kept per turn; the oldest are dropped first.
const MAX_EVENTS: usize = 1_000;
/// Minimum interval between updates to watchers.
const PACE: Duration = Duration::from_millis(250);

/// User and number of a turn.
type Key = (String, u32);

/// The running turns of all users.
#[derive(Debug)]
pub struct RunningTurns {
    running: Mutex<BTreeMap<Key, Arc<TurnStream>>>,
    stop: CancellationToken,
}

/// The events of one running turn.
#[derive(Debug)]
pub struct TurnStream {
    events: Mutex<VecDeque<TurnEvent>>,
    /// How many events there were; `u64::MAX` when the turn ended.
    seen: watch::Sender<u64>,
    stop: CancellationToken,
}

/// Keeps a turn listed as running until it is dropped.
#[derive(Debug)]
pub struct Running {
    turns: Arc<RunningTurns>,
    key: Key,
    stream: Arc<TurnStream>,
}

impl RunningTurns {
    /// No running turns. Watching ends when `stop` is cancelled.
    pub fn new(stop: CancellationToken) -> Self {
        Self { running: Mutex::default(), stop }
    }

    /// Lists a turn as running; `None` if it already is.
    pub fn begin(self: &Arc<Self>, user: &str, turn: u32) -> Option<Running> {
        let key = (user.to_owned(), turn);
        let mut running = lock(&self.running);
        if running.contains_key(&key) {
            return None;
        }
        let stream =
            TurnStream { events: Mutex::default(), seen: watch::Sender::new(0), stop: self.stop.clone() };
        let stream = Arc::new(stream);
        running.insert(key.clone(), Arc::clone(&stream));
        Some(Running { turns: Arc::clone(self), key, stream })
    }

    /// The events of a turn of this user, while it runs.
    pub fn get(&self, user: &str, turn: u32) -> Option<Arc<TurnStream>> {
        lock(&self.running).get(&(user.to_owned(), turn)).cloned()
    }

    /// Cancelled when the gateway stops.
    pub const fn stop(&self) -> &CancellationToken {
        &self.stop
    }
}

impl Running {
    /// Publishes an event to all who watch the turn.
    pub fn publish(&self, event: &TurnEvent) {
        let mut events = lock(&self.stream.events);
        if events.len() == MAX_EVENTS {
            events.pop_front();
        }
        events.push_back(event.clone());
        drop(events);
        self.stream.seen.send_modify(|seen| *seen += 1);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.turns.running).remove(&self.key);
        self.stream.seen.send_replace(u64::MAX);
    }
}

impl TurnStream {
    /// The events so far, oldest first.
    pub fn events(&self) -> Vec<TurnEvent> {
        lock(&self.events).iter().cloned().collect()
    }

    /// Watches the turn from now on.
    pub fn watch(self: &Arc<Self>) -> TurnWatch {
        TurnWatch { stream: Arc::clone(self), seen: self.seen.subscribe(), last_sent: None, ended: false }
    }
}

/// Watches one turn.
#[derive(Debug)]
pub struct TurnWatch {
    stream: Arc<TurnStream>,
    seen: watch::Receiver<u64>,
    last_sent: Option<Instant>,
    ended: bool,
}

impl TurnWatch {
    /// The events so far, and whether the turn has ended: at once the first time, then when something happened.
    /// `None` after its end, and when the gateway shuts down.
    pub async fn next(&mut self) -> Option<(Vec<TurnEvent>, bool)> {
        if self.ended {
            return None;
        }
        let stop = self.stream.stop.clone();
        let due = async {
            if let Some(last_sent) = self.last_sent {
                // The sender lives as long as the stream, which this watcher holds.
                let _ = self.seen.changed().await;
                tokio::time::sleep_until(last_sent + PACE).await;
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return None,
            () = due => {}
        }
        self.ended = *self.seen.borrow_and_update() == u64::MAX;
        self.last_sent = Some(Instant::now());
        Some((self.stream.events(), self.ended))
    }
}

/// A panic elsewhere leaves a list that is at worst one event short.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
