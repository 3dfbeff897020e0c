//! Turns under way, and what happened in each so far. In memory and bounded; a turn leaves when it ends.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use larder_agent::turn::TurnEvent;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Events of one turn that are remembered; older ones are forgotten.
const REMEMBERED: usize = 1_000;
/// Watchers hear of news at most this often.
const PACE: Duration = Duration::from_millis(250);

/// Whose turn, and which.
type Key = (String, u32);

/// The turns under way, of all users.
#[derive(Debug)]
pub struct RunningTurns {
    running: Mutex<BTreeMap<Key, Arc<TurnStream>>>,
    stop: CancellationToken,
}

/// One turn under way.
#[derive(Debug)]
pub struct TurnStream {
    events: Mutex<VecDeque<TurnEvent>>,
    /// How many events there were; `u64::MAX` when the turn ended.
    seen: watch::Sender<u64>,
    stop: CancellationToken,
}

/// Keeps a turn among those under way until it is dropped.
#[derive(Debug)]
pub struct Running {
    running_turns: Arc<RunningTurns>,
    key: Key,
    course: Arc<TurnStream>,
}

impl RunningTurns {
    /// None yet. Watching ends when `stop` is cancelled.
    pub fn new(stop: CancellationToken) -> Self {
        Self { running: Mutex::default(), stop }
    }

    /// Puts a turn among those under way; none if it is there already.
    pub fn begin(self: &Arc<Self>, user: &str, turn: u32) -> Option<Running> {
        let key = (user.to_owned(), turn);
        let mut running = lock(&self.running);
        if running.contains_key(&key) {
            return None;
        }
        let course =
            TurnStream { events: Mutex::default(), seen: watch::Sender::new(0), stop: self.stop.clone() };
        let course = Arc::new(course);
        running.insert(key.clone(), Arc::clone(&course));
        Some(Running { running_turns: Arc::clone(self), key, course })
    }

    /// A turn of this user, while it is under way.
    pub fn get(&self, user: &str, turn: u32) -> Option<Arc<TurnStream>> {
        lock(&self.running).get(&(user.to_owned(), turn)).cloned()
    }

    /// Cancelled when the gateway stops.
    pub const fn stop(&self) -> &CancellationToken {
        &self.stop
    }
}

impl Running {
    /// Something happened.
    pub fn tell(&self, event: &TurnEvent) {
        let mut events = lock(&self.course.events);
        if events.len() == REMEMBERED {
            events.pop_front();
        }
        events.push_back(event.clone());
        drop(events);
        self.course.seen.send_modify(|seen| *seen += 1);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.running_turns.running).remove(&self.key);
        self.course.seen.send_replace(u64::MAX);
    }
}

impl TurnStream {
    /// What happened so far, oldest first.
    pub fn events(&self) -> Vec<TurnEvent> {
        lock(&self.events).iter().cloned().collect()
    }

    /// Watches it from now on.
    pub fn watch(self: &Arc<Self>) -> TurnWatch {
        TurnWatch { course: Arc::clone(self), seen: self.seen.subscribe(), heard: None, ended: false }
    }
}

/// One who watches a turn.
#[derive(Debug)]
pub struct TurnWatch {
    course: Arc<TurnStream>,
    seen: watch::Receiver<u64>,
    heard: Option<Instant>,
    ended: bool,
}

impl TurnWatch {
    /// What happened so far, and whether the turn has ended: at once the first time, then when something happened.
    /// `None` after its end, and when the gateway stops.
    pub async fn next(&mut self) -> Option<(Vec<TurnEvent>, bool)> {
        if self.ended {
            return None;
        }
        let stop = self.course.stop.clone();
        let due = async {
            if let Some(heard) = self.heard {
                // The sender lives as long as the course does, which this watcher holds.
                let _ = self.seen.changed().await;
                tokio::time::sleep_until(heard + PACE).await;
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return None,
            () = due => {}
        }
        self.ended = *self.seen.borrow_and_update() == u64::MAX;
        self.heard = Some(Instant::now());
        Some((self.course.events(), self.ended))
    }
}

/// A panic elsewhere leaves a list that is at worst one event short.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
