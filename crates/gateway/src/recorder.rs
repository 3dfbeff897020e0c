//! What a request leaves behind, written off its path: records, settled budgets, transcripts. One thread writes, many
//! records in one transaction; the queue is bounded by bytes and emptied before the process ends. Knows no wire format.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use larder_models::price::Usd;
use larder_proxy::record::{Bill, RequestRecord, Tokens};
use larder_store::{ForegroundWork, NewExchange, Store, UserStore};
use larder_text::pointer::PointerId;
use larder_text::tokens::Counter;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::auth::BudgetReservation;
use crate::metrics::Metrics;
use crate::revisions;
use crate::storage_health::{StorageHealth, StoredFor};
use crate::transcript::TranscriptEntry;

/// KiB that may wait to be written. Requests wait when it is more.
const MAX_KIB: u32 = 4 << 10;
/// What a record weighs in addition to its texts, in KiB.
const RECORD_KIB: u32 = 2;
/// What one entry in the lists of a record weighs, in bytes: its words, once in memory and once as JSON.
const ENTRY_BYTES: usize = 256;
/// How long a request waits for queue space before it is admitted.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How long the first record of a batch waits for others: at most, and at least.
const LINGER: Duration = Duration::from_millis(50);
const SHORTEST_LINGER: Duration = Duration::from_millis(1);
/// The records that a batch waits for, if so many arrive. On a busy machine requests wait while a batch is written, so few
/// are better for the slowest requests, and many take less time for each record: batches of 50 took 7 % less of the
/// processor than those of 12 and left the 99th percentile of small requests as it was; those of 100 raised it.
const WANTED: u32 = 50;
/// The most records in one transaction.
const BATCH: usize = 512;
/// How many times a batch is attempted before it is dropped, with a pause in between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// Everything one request leaves behind.
pub struct RecordJob {
    /// Whose it is.
    pub store: UserStore,
    /// Its record.
    pub record: Box<RequestRecord>,
    /// Its reservations and its actual usage.
    pub settlement: Option<Settlement>,
    /// Its entry in the conversation's transcript.
    pub transcript: Option<TranscriptEntry>,
    /// The originals that it used.
    pub originals: Vec<PointerId>,
    /// What it shows of how far estimates of the model's tokens are off.
    pub observation: Option<Observation>,
    /// Ends the wait of those who look for the record.
    pub pending: Option<Pending>,
    /// Keeps background work waiting until the record's batch is taken from the queue: under load another request has come by
    /// then, so the lock that other processes see is not released and taken again by every request.
    pub foreground: Option<ForegroundWork>,
}

/// User and id of a request.
type RequestKey = (String, String);

/// Requests that are not recorded yet.
#[derive(Default)]
struct AllPending {
    keys: Mutex<BTreeSet<Arc<RequestKey>>>,
    /// Wakes those who wait for one of them, whenever one is recorded.
    one_less: Notify,
}

impl AllPending {
    fn keys(&self) -> MutexGuard<'_, BTreeSet<Arc<RequestKey>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request whose record is not written yet. Waiting callers continue when this is dropped.
pub struct Pending {
    key: Arc<RequestKey>,
    all: Arc<AllPending>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.all.keys().remove(&self.key);
        self.all.one_less.notify_waiters();
    }
}

/// A prompt of a model with estimated tokens, and the provider's count.
pub struct Observation {
    /// The provider's id of the model.
    pub model: String,
    /// The estimate of its tokens.
    pub counter: Counter,
    /// Tokens by that estimate, not corrected.
    pub estimated: u64,
    /// Tokens as the provider reported them.
    pub reported: u64,
}

/// The reservations of one request and its actual usage.
pub struct Settlement {
    /// One for the request, and one for each further round.
    pub reservations: Vec<BudgetReservation>,
    /// Tokens and money used; `None` if nothing was sent.
    pub used: Option<(u64, Usd)>,
}

/// Ends a request that nobody finished, and returns what it leaves behind.
type EndAbandoned = Box<dyn FnOnce() -> RecordJob + Send>;

/// The end of a request.
enum Ending {
    Finished(Box<RecordJob>),
    Abandoned(EndAbandoned),
}

/// Something in the queue, with its share of the queue's room. Where there is no room it has none, and keeps the place of
/// its request until it is written, so that no more such jobs can wait than there are places.
struct Queued<T> {
    job: T,
    permit: Option<OwnedSemaphorePermit>,
}

impl Queued<Ending> {
    /// What the request leaves behind. A panic while it is completed costs this request its record, and no other: the
    /// thread that writes is the only one.
    fn end(self, metrics: &Metrics) -> Option<Queued<RecordJob>> {
        let job = match self.job {
            Ending::Finished(job) => *job,
            Ending::Abandoned(end) => match catch_unwind(AssertUnwindSafe(end)) {
                Ok(job) => job,
                Err(_) => {
                    tracing::error!("an abandoned request could not be completed; its record is lost");
                    metrics.lose_records(1);
                    return None;
                }
            },
        };
        Some(Queued { job, permit: self.permit })
    }
}

/// The queue and the thread behind it.
pub struct Recorder {
    queue: Mutex<Option<mpsc::Sender<Queued<Ending>>>>,
    room: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
    pending: Arc<AllPending>,
    metrics: Arc<Metrics>,
}

/// What the thread writes with.
struct RecordWriter {
    store: Store,
    health: Arc<StorageHealth>,
    metrics: Arc<Metrics>,
    /// The pause before another attempt.
    pause: Duration,
}

impl Recorder {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(store: Store, health: Arc<StorageHealth>, metrics: Arc<Metrics>) -> std::io::Result<Self> {
        let (queue, jobs) = mpsc::channel();
        let writer = RecordWriter { store, health, metrics: Arc::clone(&metrics), pause: PAUSE };
        let thread =
            std::thread::Builder::new().name("recorder".to_owned()).spawn(move || writer.write_all(&jobs))?;
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            room: Arc::new(Semaphore::new(MAX_KIB as usize)),
            thread: Mutex::new(Some(thread)),
            pending: Arc::default(),
            metrics,
        })
    }

    /// Announces a record of this request.
    pub fn expect(&self, user: &str, id: &str) -> Pending {
        let key = Arc::new((user.to_owned(), id.to_owned()));
        self.pending.keys().insert(Arc::clone(&key));
        Pending { key, all: Arc::clone(&self.pending) }
    }

    /// Waits until the record of a request is written; returns at once if none is expected.
    pub fn recorded(&self, user: &str, id: &str) -> impl Future<Output = ()> + use<> {
        let (key, pending) = ((user.to_owned(), id.to_owned()), Arc::clone(&self.pending));
        async move {
            loop {
                // Before looking, so that no end is missed.
                let one_less = pending.one_less.notified();
                if !pending.keys().contains(&key) {
                    return;
                }
                one_less.await;
            }
        }
    }

    /// Waits, for at most ten seconds, until there is space for a record, so that requests are admitted no faster
    /// than their records are written.
    pub async fn has_room(&self) {
        if self.room.available_permits() >= RECORD_KIB as usize {
            return;
        }
        let _ = tokio::time::timeout(LONGEST_WAIT, self.room.acquire_many(RECORD_KIB)).await;
    }

    /// Queues a job. `place` is its request's slot.
    pub fn record(&self, job: RecordJob, place: Option<OwnedSemaphorePermit>) {
        let weight = weight(&job.record, job.transcript.as_ref().map_or(0, TranscriptEntry::size));
        self.queue(Ending::Finished(Box::new(job)), weight, place);
    }

    /// Queues the end of a request that nobody finished; `weight` as by [`weight`].
    pub fn record_abandoned(&self, weight: u32, place: Option<OwnedSemaphorePermit>, end: EndAbandoned) {
        self.queue(Ending::Abandoned(end), weight, place);
    }

    fn queue(&self, job: Ending, weight: u32, place: Option<OwnedSemaphorePermit>) {
        let room = Arc::clone(&self.room).try_acquire_many_owned(weight).ok();
        let queued = Queued { job, permit: room.or(place) };
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let refused = match queue {
            Some(queue) => queue.send(queued).err().map(|error| error.0),
            None => Some(queued),
        };
        if let Some(queued) = refused {
            tracing::error!("a record arrived after the last one was written and is lost");
            // Metrics and logs count the request all the same.
            if queued.end(&self.metrics).is_some() {
                self.metrics.lose_records(1);
            }
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

/// KiB of the queue that a record takes, with so many bytes for a transcript.
pub fn weight(record: &RequestRecord, transcript: usize) -> u32 {
    let RequestRecord { window, compactions, rehydrations, .. } = record;
    let entries = window.len().saturating_add(compactions.len()).saturating_add(rehydrations.len());
    kib(entries, transcript)
}

/// The weight of a record with this many list entries and bytes; at most the whole queue.
fn kib(entries: usize, bytes: usize) -> u32 {
    let bytes = entries.saturating_mul(ENTRY_BYTES).saturating_add(bytes);
    let kib = u32::try_from(bytes >> 10).unwrap_or(MAX_KIB);
    kib.saturating_add(RECORD_KIB).min(MAX_KIB)
}

impl RecordWriter {
    fn write_all(&self, jobs: &mpsc::Receiver<Queued<Ending>>) {
        let (mut more_waits, mut linger) = (false, LINGER);
        while let Ok(first) = jobs.recv() {
            let mut batch: Vec<_> = first.end(&self.metrics).into_iter().collect();
            // While it sleeps, this thread is not woken for every record that arrives. Once records arrive faster than one
            // batch per pause, requests would soon wait for room in the queue.
            if !more_waits {
                std::thread::sleep(linger);
            }
            batch.extend(jobs.try_iter().take(BATCH - 1).filter_map(|queued| queued.end(&self.metrics)));
            more_waits = batch.len() == BATCH;
            linger = next_linger(linger, batch.len());
            batch.iter_mut().for_each(|queued| queued.job.foreground = None);
            self.write(batch);
        }
    }

    fn write(&self, mut batch: Vec<Queued<RecordJob>>) {
        let store = &self.store;
        let observations: Vec<_> =
            batch.iter_mut().filter_map(|queued| queued.job.observation.take()).collect();
        append_transcripts(store, &mut batch);
        for Queued { job, .. } in &mut batch {
            if let Some(settlement) = job.settlement.take() {
                settlement.settle();
            }
        }
        let texts: Vec<String> = batch
            .iter()
            .map(|queued| serde_json::to_string(&queued.job.record).unwrap_or_default())
            .collect();
        let names: Vec<Vec<&str>> = batch
            .iter()
            .map(|Queued { job, .. }| job.originals.iter().map(PointerId::name).collect())
            .collect();
        let rows: Vec<(&UserStore, NewExchange<'_>)> = batch
            .iter()
            .zip(texts.iter().zip(&names))
            .map(|(Queued { job, .. }, (text, used))| {
                (&job.store, NewExchange { used, ..row(&job.record, text) })
            })
            .collect();
        for attempt in 1..=TRIES {
            let recorded = store.record_exchanges(&rows);
            self.health.note(StoredFor::Records, &recorded);
            match recorded {
                Ok(_) => break,
                Err(error) if attempt == TRIES => {
                    tracing::error!(%error, records = rows.len(), "records of requests are lost");
                    self.metrics.lose_records(rows.len());
                }
                Err(error) => {
                    tracing::warn!(%error, attempt, "records of requests could not be written; trying again");
                    std::thread::sleep(self.pause);
                }
            }
        }
        // After the records: a conversation is older than a revision that its own requests lead to.
        for observation in observations {
            observation.keep(store);
        }
    }
}

/// How long the next batch waits after one of so many records.
fn next_linger(linger: Duration, records: usize) -> Duration {
    let records = u32::try_from(records).unwrap_or(u32::MAX).max(1);
    (linger * WANTED / records).clamp(SHORTEST_LINGER, LINGER)
}

/// Appends to transcripts, and notes in each record the branch that it became part of.
fn append_transcripts(store: &Store, batch: &mut [Queued<RecordJob>]) {
    let entries = batch.iter().filter_map(|Queued { job, .. }| Some((&job.store, job.transcript.as_ref()?)));
    let mut branches = TranscriptEntry::append_all(store, &entries.collect::<Vec<_>>()).into_iter();
    for Queued { job, .. } in batch {
        match job.transcript.take().and_then(|_| branches.next()) {
            Some(Ok(branch)) => job.record.summary.branch = Some(branch),
            Some(Err(error)) => tracing::error!(%error, "the transcript of a request could not be stored"),
            None => {}
        }
    }
}

impl Observation {
    fn keep(&self, store: &Store) {
        if let Err(error) = revisions::learn_factor(store, self) {
            tracing::error!(%error, "what a request shows of the accuracy of estimates could not be stored");
        }
    }
}

impl Settlement {
    /// Charges all usage to the first reservation and releases the others.
    pub fn settle(self) {
        let mut used = self.used;
        for reservation in self.reservations {
            match used.take() {
                Some((tokens, cost)) => reservation.settle_or_log(tokens, cost),
                None => reservation.release_or_log(),
            }
        }
    }
}

/// A record as stored; `json` is the record as JSON.
pub fn row<'a>(record: &'a RequestRecord, json: &'a str) -> NewExchange<'a> {
    let summary = &record.summary;
    let usage = summary.usage.unwrap_or_default();
    // What was never sent saved nothing and cost nothing.
    let sent = summary.outcome.sent();
    let tokens = if sent { summary.tokens } else { Tokens::default() };
    let bill = summary.bill.or_else(|| (!sent).then(Bill::default));
    NewExchange {
        id: &summary.id,
        session: summary.session.as_deref(),
        time: summary.time,
        // Costs are grouped by these: client-chosen names must not add rows without end.
        model: summary.booked_model(),
        recipe: summary.booked_recipe(),
        status: summary.status,
        tokens_in: usage.input,
        tokens_out: usage.output,
        tokens_before: tokens.before,
        tokens_after: tokens.after,
        cost_picos: bill.map(|bill| bill.cost.picos()),
        without_picos: bill.map(|bill| bill.without.picos()),
        compactions: summary.shape.compactions,
        used: &[],
        json,
    }
}

#[cfg(test)]
mod tests {
    use larder_proxy::record::{Endpoint, Outcome};
    use larder_store::{ExchangeFilter, StoreOptions};
    use larder_text::time::Timestamp;

    use super::*;

    fn job(store: &Store, id: &str) -> RecordJob {
        RecordJob {
            store: store.user("alice").unwrap(),
            record: Box::new(RequestRecord::blank(id, store.now(), "alice", Endpoint::Passed)),
            settlement: None,
            transcript: None,
            originals: Vec::new(),
            observation: None,
            pending: None,
            foreground: None,
        }
    }

    #[test]
    fn an_abandoned_request_is_recorded_and_one_that_panics_costs_no_other_its_record() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home"), StoreOptions::default()).unwrap();
        let recorder = Recorder::start(store.clone(), Arc::default(), Arc::default()).unwrap();
        let (before, after) = (job(&store, "before"), job(&store, "after"));
        recorder.record_abandoned(RECORD_KIB, None, Box::new(move || before));
        recorder.record_abandoned(RECORD_KIB, None, Box::new(|| panic!("a fault in completing a record")));
        recorder.record(after, None);
        recorder.finish();
        let found = store.user("alice").unwrap().exchanges().list(&ExchangeFilter::default()).unwrap();
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn without_room_in_the_queue_an_abandoned_request_keeps_its_place_until_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home"), StoreOptions::default()).unwrap();
        let recorder = Recorder::start(store.clone(), Arc::default(), Arc::default()).unwrap();
        let _full = Arc::clone(&recorder.room).try_acquire_many_owned(MAX_KIB).unwrap();
        let places = Arc::new(Semaphore::new(1));
        let place = Arc::clone(&places).try_acquire_owned().unwrap();
        let (job, (write, written)) = (job(&store, "late"), mpsc::channel());
        let end = move || {
            written.recv().unwrap();
            job
        };
        recorder.record_abandoned(RECORD_KIB, Some(place), Box::new(end));
        assert_eq!(places.available_permits(), 0);
        write.send(()).unwrap();
        recorder.finish();
        assert_eq!(places.available_permits(), 1);
    }

    #[test]
    fn a_request_that_is_abandoned_after_the_last_record_is_still_completed() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home"), StoreOptions::default()).unwrap();
        let recorder = Recorder::start(store.clone(), Arc::default(), Arc::default()).unwrap();
        recorder.finish();
        let (job, (ended, was_ended)) = (job(&store, "late"), mpsc::channel());
        let end = move || {
            ended.send(()).unwrap();
            job
        };
        recorder.record_abandoned(RECORD_KIB, None, Box::new(end));
        assert!(was_ended.try_recv().is_ok());
        assert_eq!(lost(&recorder.metrics), 1);
    }

    fn lost(metrics: &Metrics) -> u64 {
        let text = metrics.text().unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("larder_records_lost_total "));
        line.unwrap().parse().unwrap()
    }

    #[test]
    fn records_that_the_store_never_takes_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("home"), StoreOptions::default()).unwrap();
        let index = rusqlite::Connection::open(dir.path().join("home/index.sqlite")).unwrap();
        let full = "CREATE TRIGGER full BEFORE INSERT ON exchanges BEGIN SELECT raise(ABORT, 'full'); END";
        index.execute_batch(full).unwrap();
        let metrics = Arc::<Metrics>::default();
        let writer = RecordWriter {
            store: store.clone(),
            health: Arc::default(),
            metrics: Arc::clone(&metrics),
            pause: Duration::ZERO,
        };
        let queued = |id: &str| Queued { job: job(&store, id), permit: None };
        writer.write(vec![queued("one"), queued("two")]);
        assert_eq!(lost(&metrics), 2);
        index.execute_batch("DROP TRIGGER full").unwrap();
        writer.write(vec![queued("three")]);
        assert_eq!(lost(&metrics), 2);
    }

    #[test]
    fn what_was_never_sent_cost_nothing_and_what_was_sent_may_have_no_price() {
        let mut record = RequestRecord::blank("a", Timestamp::from_millis(0), "alice", Endpoint::Embeddings);
        let costs = |record: &RequestRecord| (row(record, "").cost_picos, row(record, "").without_picos);
        record.summary.outcome = Outcome::Ok;
        assert_eq!(costs(&record), (None, None));
        record.summary.outcome = Outcome::Refused;
        assert_eq!(costs(&record), (Some(0), Some(0)));
    }

    #[test]
    fn batches_wait_less_the_faster_records_arrive() {
        let settled = |per_second: u32| {
            (0..20).fold(LINGER, |linger, _| next_linger(linger, (linger * per_second).as_secs() as usize))
        };
        assert_eq!((settled(0), settled(100), settled(1_000_000)), (LINGER, LINGER, SHORTEST_LINGER));
        assert!((9..12).contains(&settled(5_000).as_millis()), "{:?}", settled(5_000));
    }

    #[test]
    fn weight_grows_with_entries_and_bytes_up_to_all_room() {
        assert_eq!((kib(0, 0), kib(0, 8 << 10)), (RECORD_KIB, RECORD_KIB + 8));
        assert_eq!(kib(4_096, 1 << 10), RECORD_KIB + 1_025);
        assert_eq!((kib(40_000, 0), kib(1, usize::MAX)), (MAX_KIB, MAX_KIB), "it still finds room");
    }
}
