//! What a request leaves behind, written off its path: records, settled budgets, transcripts. One thread writes, many
//! records in one transaction; the queue is bounded by bytes and emptied before the process ends. Knows no wire format.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use larder_models::price::Usd;
use larder_proxy::record::{RequestRecord, Tokens};
use larder_store::{NewExchange, Store, StoreError, UserStore};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::auth::Held;

use crate::request::transcript::Said;

/// KiB that may wait to be written. Requests wait when it is more.
const MOST_KIB: u32 = 4 << 10;
/// What a record weighs beside its texts, in KiB.
const RECORD_KIB: u32 = 2;
/// What one entry in the lists of a record weighs, in bytes: its words, once in memory and once as JSON.
const ENTRY_BYTES: usize = 256;
/// How long a request waits for room before it is let in.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How long the first record of a batch waits for others.
const LINGER: Duration = Duration::from_millis(50);
/// Records in one transaction.
const BATCH: usize = 512;
/// Times a batch is tried before it is given up, with a pause between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// Everything one request leaves behind.
pub struct Job {
    /// Whose it is.
    pub store: UserStore,
    /// Its record.
    pub exchange: Box<RequestRecord>,
    /// What was set aside for it, with what it came to.
    pub spent: Option<Spent>,
    /// What goes into the transcript of its conversation.
    pub said: Option<Said>,
    /// Further work with the store; what it fails with is logged.
    pub after: Vec<Work>,
    /// Bytes that `said` and `after` hold on to.
    pub bytes: usize,
    /// Ends the wait of those who look for the record.
    pub pending: Option<Pending>,
}

/// User and id of a request.
type RequestKey = (String, String);
/// Requests that are not recorded yet; each receiver ends when its request is.
type AllPending = Arc<Mutex<BTreeMap<RequestKey, watch::Receiver<()>>>>;

/// A request whose record is not written yet. Those who wait for it go on when this is dropped.
pub struct Pending {
    key: RequestKey,
    all: AllPending,
    _open: watch::Sender<()>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// Work of one request with its user's store, which may add to the record.
pub type Work = Box<dyn FnOnce(&UserStore, &mut RequestRecord) -> Result<(), StoreError> + Send>;

/// What a reservation came to.
pub struct Spent {
    /// The reservations: one for the request, and one for each further round.
    pub held: Vec<Held>,
    /// Tokens and money used; `None` when nothing was sent.
    pub used: Option<(u64, Usd)>,
}

/// The queue and the thread behind it.
pub struct Recorder {
    queue: Mutex<Option<mpsc::Sender<(Job, OwnedSemaphorePermit)>>>,
    room: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
    pending: AllPending,
}

impl Recorder {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(store: Store) -> std::io::Result<Self> {
        let (queue, jobs) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || write_all(&store, &jobs))?;
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            room: Arc::new(Semaphore::new(MOST_KIB as usize)),
            thread: Mutex::new(Some(thread)),
            pending: AllPending::default(),
        })
    }

    /// Says that a record of this request will come.
    pub fn expect(&self, user: &str, id: &str) -> Pending {
        let (key, (open, ended)) = ((user.to_owned(), id.to_owned()), watch::channel(()));
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), ended);
        Pending { key, all: Arc::clone(&self.pending), _open: open }
    }

    /// Waits until the record of a request is written; not at all where none is expected.
    pub fn recorded(&self, user: &str, id: &str) -> impl Future<Output = ()> + use<> {
        let key = (user.to_owned(), id.to_owned());
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        async move {
            if let Some(mut pending) = pending {
                // Nothing is ever sent: it fails when the other end is dropped.
                while pending.changed().await.is_ok() {}
            }
        }
    }

    /// Waits until there is room for a record, so that requests come in no faster than they are written down; not longer
    /// than ten seconds.
    pub async fn has_room(&self) {
        if self.room.available_permits() >= RECORD_KIB as usize {
            return;
        }
        let _ = tokio::time::timeout(LONGEST_WAIT, self.room.acquire_many(RECORD_KIB)).await;
    }

    /// Queues a job, if there is room for it at once.
    ///
    /// # Errors
    /// The job, when there is none.
    #[allow(clippy::result_large_err, reason = "a job that finds no place goes back to its owner")]
    pub fn try_record(&self, job: Job) -> Result<(), Job> {
        match Arc::clone(&self.room).try_acquire_many_owned(weight(&job)) {
            Ok(room) => {
                self.queue(job, room);
                Ok(())
            }
            Err(_) => Err(job),
        }
    }

    /// Queues a job as soon as there is room for it.
    pub async fn record(&self, job: Job) {
        if let Ok(room) = Arc::clone(&self.room).acquire_many_owned(weight(&job)).await {
            self.queue(job, room);
        }
    }

    fn queue(&self, job: Job, room: OwnedSemaphorePermit) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = queue.as_ref().is_some_and(|queue| queue.send((job, room)).is_ok());
        if !sent {
            tracing::error!("a record came after the last was written and is lost");
        }
    }

    /// Writes everything that is queued, and ends.
    pub fn finish(&self) {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that writes records has failed");
        }
    }
}

fn weight(job: &Job) -> u32 {
    let RequestRecord { window, compactions, rehydrations, .. } = &*job.exchange;
    let entries = window.len().saturating_add(compactions.len()).saturating_add(rehydrations.len());
    let bytes = entries.saturating_mul(ENTRY_BYTES).saturating_add(job.bytes);
    let kib = u32::try_from(bytes >> 10).unwrap_or(MOST_KIB);
    kib.saturating_add(RECORD_KIB).min(MOST_KIB)
}

fn write_all(store: &Store, jobs: &mpsc::Receiver<(Job, OwnedSemaphorePermit)>) {
    while let Ok(first) = jobs.recv() {
        let mut batch = vec![first];
        // Sleeping through it, this thread is not woken for every record that comes meanwhile.
        std::thread::sleep(LINGER);
        batch.extend(jobs.try_iter().take(BATCH - 1));
        write(store, batch);
    }
}

/// Keeps what was said, and tells each record the branch that it is.
fn transcribe(store: &Store, batch: &mut [(Job, OwnedSemaphorePermit)]) {
    let all: Vec<_> =
        batch.iter().filter_map(|(job, _)| job.said.as_ref().map(|said| (&job.store, said))).collect();
    let mut branches = Said::keep(store, &all).into_iter();
    for (job, _) in batch {
        match job.said.take().and_then(|_| branches.next()) {
            Some(Ok(branch)) => job.exchange.summary.branch = Some(branch),
            Some(Err(error)) => tracing::error!(%error, "what was said in a request could not be kept"),
            None => {}
        }
    }
}

fn write(store: &Store, mut batch: Vec<(Job, OwnedSemaphorePermit)>) {
    transcribe(store, &mut batch);
    for (job, _) in &mut batch {
        for work in job.after.drain(..) {
            if let Err(error) = work(&job.store, &mut job.exchange) {
                tracing::error!(%error, "what a request left behind could not be kept");
            }
        }
        if let Some(Spent { held, used }) = job.spent.take() {
            let mut used = used;
            for held in held {
                // The first takes all that was used, whatever it was set aside for.
                let settled = match used.take() {
                    Some((tokens, cost)) => held.settle(tokens, cost),
                    None => held.release(),
                };
                if let Err(error) = settled {
                    tracing::error!(%error, "a budget could not be settled; all that was reserved counts as used");
                }
            }
        }
    }
    let texts: Vec<String> =
        batch.iter().map(|(job, _)| serde_json::to_string(&job.exchange).unwrap_or_default()).collect();
    let rows: Vec<(&UserStore, NewExchange<'_>)> =
        batch.iter().zip(&texts).map(|((job, _), text)| (&job.store, row(&job.exchange, text))).collect();
    for attempt in 1..=TRIES {
        match store.record_exchanges(&rows) {
            Ok(_) => return,
            Err(error) if attempt == TRIES => {
                tracing::error!(%error, records = rows.len(), "records of requests are lost");
            }
            Err(error) => {
                tracing::warn!(%error, attempt, "records of requests could not be written; trying again");
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// A record as the store keeps it; `json` is the record as JSON.
pub fn row<'a>(exchange: &'a RequestRecord, json: &'a str) -> NewExchange<'a> {
    let head = &exchange.summary;
    let usage = head.usage.unwrap_or_default();
    // What never left saved nothing.
    let tokens = if head.outcome.sent() { head.tokens } else { Tokens::default() };
    NewExchange {
        id: &head.id,
        session: head.session.as_deref(),
        time: head.time,
        // Costs are grouped by it: what clients make up may not add rows without end.
        model: head.reported_model().unwrap_or(&head.model),
        recipe: head.recipe.as_deref(),
        status: head.status,
        tokens_in: usage.input,
        tokens_out: usage.output,
        tokens_before: tokens.before,
        tokens_after: tokens.after,
        cost_picos: head.bill.map(|bill| bill.cost.picos()),
        without_picos: head.bill.map(|bill| bill.without.picos()),
        compactions: head.shape.compactions,
        json,
    }
}

#[cfg(test)]
mod tests {
    use larder_store::{StoreOptions, Timestamp};

    use super::*;
    use larder_proxy::record::{Endpoint, Rehydration};

    #[test]
    fn a_record_weighs_what_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home"), StoreOptions::default()).unwrap();
        let entry = Rehydration { pointer: String::new(), found: false, bytes: 0, tokens: 0 };
        let weighed = |entries: usize, bytes: usize| {
            let mut exchange =
                Box::new(RequestRecord::blank("", Timestamp::from_millis(0), "ada", Endpoint::Chat));
            exchange.rehydrations = vec![entry.clone(); entries];
            let store = store.user("ada").unwrap();
            weight(&Job { store, exchange, spent: None, said: None, after: Vec::new(), bytes, pending: None })
        };
        assert_eq!((weighed(0, 0), weighed(0, 8 << 10)), (RECORD_KIB, RECORD_KIB + 8));
        assert_eq!(weighed(4_096, 1 << 10), RECORD_KIB + 1_025);
        assert_eq!((weighed(40_000, 0), weighed(1, usize::MAX)), (MOST_KIB, MOST_KIB), "it still finds room");
    }
}
