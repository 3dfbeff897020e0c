//! Which data goes when: rules by age and size, and the collection that applies them next to the traffic. It also moves
//! contents of older formats, and what is left of segments that are mostly erased.
//!
//! An original goes in two steps. A first transaction, synced, removes its pointer, leaves a tombstone and notes the
//! content for erasure; a second one erases the bytes of noted contents that nothing names any more. In this order a
//! crash leaves bytes without a name, which the next collection erases; the reverse order would leave a pointer to
//! nothing, which looks like loss. Erasing re-checks the names while it holds the index's write lock: a content that a
//! request has named again in the meantime stays.

mod convert;
mod erase;
mod expire;
pub(crate) mod holds;
pub(crate) mod limit;
mod rewrite;

pub(crate) use self::convert::user_after;
pub(crate) use self::erase::is_named;
pub(crate) use self::expire::remove_named;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use self::expire::{Going, Kind};
use crate::documents::Documents;
use crate::pointers::to_sql;
use crate::repair::REPAIRED;
use crate::store::Store;
use larder_disk::StoreError;
use larder_disk::locks;
use larder_disk::{MILLIS_PER_DAY, Timestamp};

pub(crate) const USE_STEP_MILLIS: u64 = 3_600_000;
/// Uses are recorded once an hour at most: more would write an index row for each item of each request.
pub const USE_STEP: Duration = Duration::from_millis(USE_STEP_MILLIS);
/// How long nothing expires after its use, whatever the size, in milliseconds: a day, and the step.
const SPARED_MILLIS: u64 = MILLIS_PER_DAY + USE_STEP_MILLIS;
/// How long a caller may rely on an original that it stored or saw stored, unless [`Store::early_erasures`] moves: half of
/// the day in which none expires.
pub const STORED_FOR: Duration = Duration::from_millis(MILLIS_PER_DAY / 2);

/// How long data is kept, by class. `None` is without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Originals behind pointers, from their last use on. One that a document or a message of a conversation refers to does not
    /// expire.
    pub originals: Option<Duration>,
    /// Transcripts, and what else belongs to a conversation, from its last request on.
    pub transcripts: Option<Duration>,
    /// Records of requests and runs with their receipts, settled interventions, daily spending, and when originals expired,
    /// which is kept as long as a transcript names them, too.
    pub records: Option<Duration>,
    /// Conversations with persons, from their newest message on. They go by [`Store::resting_sides`], with what was made from
    /// them, and not by [`Documents::collect`].
    pub conversations: Option<Duration>,
    /// Bytes that blobs and index may take on disk. Beyond it the least recently used goes first, but nothing that was
    /// used within a day.
    pub max_bytes: Option<u64>,
}

/// A class of data that expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionClass {
    /// Originals behind pointers.
    Originals,
    /// What clients sent through the gateway.
    Transcripts,
    /// Requests, runs and the like.
    Records,
    /// Conversations with persons.
    Conversations,
    /// Facts about persons.
    Facts,
}

/// Items and their bytes on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Collected {
    /// How many.
    pub items: u64,
    /// Their bytes on disk, of rows and files that nothing else needs.
    pub bytes: u64,
}

impl Collected {
    fn add(&mut self, items: u64, bytes: u64) {
        self.items = self.items.saturating_add(items);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// What a collection removed, or would remove.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CollectionReport {
    /// For their age.
    pub by_age: BTreeMap<RetentionClass, Collected>,
    /// For the limit on the size.
    pub by_size: BTreeMap<RetentionClass, Collected>,
    /// Bytes that blobs and index take on disk, after the collection. Pages of the index that are free for reuse are not
    /// counted.
    pub bytes: u64,
    /// Whether it is still more than the limit, because the rest may not go.
    pub over_limit: bool,
}

impl Documents {
    /// Removes what has expired, in small transactions. Before each, `go_on` is called with the time that the last
    /// one took; it waits, so that others can write, and returns whether to continue. Stopping loses nothing: the next
    /// collection goes on, as it does after a crash.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn collect(
        &self,
        retention: &Retention,
        go_on: &dyn Fn(Duration) -> bool,
    ) -> Result<CollectionReport, StoreError> {
        // What documents refer to is known once they have been read.
        self.build_missing()?;
        self.store().collect(retention, go_on)
    }

    /// What a collection would remove now. Changes nothing.
    ///
    /// # Errors
    /// Reading fails.
    pub fn preview_collection(&self, retention: &Retention) -> Result<CollectionReport, StoreError> {
        // With a full disk, what is known of documents has to do.
        self.build_missing().or_else(|error| if error.is_unwritable() { Ok(()) } else { Err(error) })?;
        self.store().preview(retention)
    }
}

impl Retention {
    /// The moment before which items of a kind expire; `None` if they do not.
    fn cutoff(&self, kind: Kind, now: Timestamp) -> Option<i64> {
        let keep = match kind.class() {
            RetentionClass::Originals => self.originals,
            RetentionClass::Transcripts => self.transcripts,
            RetentionClass::Records => self.records,
            RetentionClass::Conversations => self.conversations,
            RetentionClass::Facts => None,
        }?;
        let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX).max(SPARED_MILLIS);
        Some(to_sql(now.as_millis().saturating_sub(keep)))
    }
}

/// A collection under way.
struct Collector<'a> {
    store: &'a Store,
    go_on: &'a dyn Fn(Duration) -> bool,
    /// Where each kind goes on: what was used earlier has gone, or a document or a message refers to it.
    from: BTreeMap<Kind, i64>,
    stopped: bool,
    report: CollectionReport,
}

impl Store {
    pub(crate) fn collect(
        &self,
        retention: &Retention,
        go_on: &dyn Fn(Duration) -> bool,
    ) -> Result<CollectionReport, StoreError> {
        let (from, report) = (BTreeMap::new(), CollectionReport::default());
        let mut collector = Collector { store: self, go_on, from, stopped: false, report };
        if let Some(cutoff) = retention.cutoff(Kind::Conversation, self.now()) {
            self.expire_nameless(cutoff)?;
        }
        // What an earlier collection left when it was stopped.
        collector.erase()?;
        collector.convert()?;
        collector.by_age(retention)?;
        collector.report.bytes = self.bytes_on_disk()?;
        if let Some(max) = retention.max_bytes {
            if collector.report.bytes > max {
                self.expire_nameless(spared(self.now()))?;
                collector.erase()?;
                collector.report.bytes = self.bytes_on_disk()?;
            }
            collector.by_size(max)?;
            collector.report.over_limit = collector.report.bytes > max;
        }
        collector.erase()?;
        collector.rewrite()?;
        locks::sweep(&self.home().join("turns"))?;
        limit::set(self, collector.report.over_limit)?;
        Ok(collector.report)
    }

    /// Reads only; the items that go are held in memory.
    fn preview(&self, retention: &Retention) -> Result<CollectionReport, StoreError> {
        let mut report = CollectionReport { bytes: self.bytes_on_disk()?, ..CollectionReport::default() };
        let now = self.now();
        self.index().read(|tx| {
            let mut going = Going::default();
            for kind in Kind::ALL {
                if let Some(cutoff) = retention.cutoff(kind, now) {
                    going.add_before(tx, kind, cutoff)?;
                }
            }
            for (kind, bytes) in going.sizes(self, tx)? {
                report.by_age.entry(kind.class()).or_default().add(1, bytes);
                report.bytes = report.bytes.saturating_sub(bytes);
            }
            let Some(max) = retention.max_bytes else { return Ok(()) };
            while report.bytes > max {
                let Some(until) = expire::oldest_hour(tx, &going.until, spared(now))? else { break };
                for kind in Kind::BY_SIZE {
                    going.add_before(tx, kind, until)?;
                    // As many as go at once.
                    for batch in going.sizes(self, tx)?.chunks(expire::BATCH) {
                        if report.bytes > max {
                            for (kind, bytes) in batch {
                                report.by_size.entry(kind.class()).or_default().add(1, *bytes);
                                report.bytes = report.bytes.saturating_sub(*bytes);
                            }
                        }
                    }
                }
            }
            report.over_limit = report.bytes > max;
            Ok(())
        })?;
        Ok(report)
    }
}

impl Store {
    /// After a repair: notes for erasure what only transcripts and records named, which has lost its names with the index.
    /// It is kept as long as transcripts, since the damaged index may still show what it was, but goes first at the size
    /// limit.
    fn expire_nameless(&self, cutoff: i64) -> Result<(), StoreError> {
        let is_due = "SELECT 1 FROM meta WHERE key = ?1 AND CAST(value AS INTEGER) < ?2";
        if !self.index().read(|tx| Ok(tx.prepare_cached(is_due)?.exists((REPAIRED, cutoff))?))? {
            return Ok(());
        }
        self.index().write(|tx| {
            tx.execute("DELETE FROM meta WHERE key = ?1", [REPAIRED])?;
            // What something has named again stays.
            tx.execute(
                "INSERT INTO erasures (user, hash) SELECT user, hash FROM segment_contents WHERE flags & 1 = 0
                 ON CONFLICT DO NOTHING",
                [],
            )?;
            Ok(())
        })
    }

    /// Erases everything that is noted for it, from files, the index and the log of its writes.
    pub(crate) fn finish_erasing(&self) -> Result<(), StoreError> {
        while self.erase_batch()?.is_some() {}
        let locked = || StoreError::Locked { path: self.index().path().to_path_buf() };
        if self.empty_log()? { Ok(()) } else { Err(locked()) }
    }
}

/// What was used from this moment on does not expire, whatever the size.
fn spared(now: Timestamp) -> i64 {
    to_sql(now.as_millis().saturating_sub(SPARED_MILLIS))
}

impl Collector<'_> {
    fn by_age(&mut self, retention: &Retention) -> Result<(), StoreError> {
        for kind in Kind::ALL {
            let Some(cutoff) = retention.cutoff(kind, self.store.now()) else { continue };
            while let Some(removed) = self.batch(kind, cutoff)? {
                self.report.by_age.entry(kind.class()).or_default().add(removed.items, removed.bytes);
            }
        }
        Ok(())
    }

    /// Removes the least recently used of all kinds, an hour of uses at a time, until the rest fits.
    fn by_size(&mut self, max: u64) -> Result<(), StoreError> {
        let mut freed = 0;
        loop {
            if self.report.bytes.saturating_sub(freed) <= max {
                let (before, after) = (self.report.bytes, self.store.bytes_on_disk()?);
                self.report.bytes = after;
                if after <= max || after >= before {
                    return Ok(());
                }
                freed = 0;
            }
            let spared = spared(self.store.now());
            let oldest = self.store.index().read(|tx| expire::oldest_hour(tx, &self.from, spared))?;
            let Some(until) = oldest.filter(|_| !self.stopped) else {
                self.report.bytes = self.store.bytes_on_disk()?;
                return Ok(());
            };
            for kind in Kind::BY_SIZE {
                while self.report.bytes.saturating_sub(freed) > max {
                    let Some(removed) = self.batch(kind, until)? else { break };
                    freed = freed.saturating_add(removed.bytes);
                    self.report.by_size.entry(kind.class()).or_default().add(removed.items, removed.bytes);
                }
            }
        }
    }

    /// Removes a batch of a kind, with the bytes that only they needed; `None` if nothing is left, or it was stopped.
    fn batch(&mut self, kind: Kind, before: i64) -> Result<Option<Collected>, StoreError> {
        if self.stopped {
            return Ok(None);
        }
        let started = Instant::now();
        let from = self.from.entry(kind).or_default();
        let now = self.store.now();
        let mut removed = self.store.index().write(|tx| expire::remove_batch(tx, kind, from, before, now))?;
        if removed.items == 0 {
            return Ok(None);
        }
        self.stopped = !(self.go_on)(started.elapsed());
        removed.bytes = removed.bytes.saturating_add(self.erase()?);
        Ok(Some(removed))
    }

    /// Does a small part of the work, unless the collection was stopped.
    fn paced(&mut self, work: impl FnOnce() -> Result<u64, StoreError>) -> Result<(), StoreError> {
        if self.stopped {
            return Ok(());
        }
        let started = Instant::now();
        match work() {
            // What is left of the user goes with the deletion.
            Err(StoreError::BeingDeleted { .. }) => {}
            done => drop(done?),
        }
        self.stopped = !(self.go_on)(started.elapsed());
        Ok(())
    }

    /// Erases all contents that are noted for it, and returns the bytes that this frees.
    fn erase(&mut self) -> Result<u64, StoreError> {
        let mut freed = 0;
        while !self.stopped {
            let started = Instant::now();
            let Some(bytes) = self.store.erase_batch()? else { break };
            freed += bytes;
            self.stopped = !(self.go_on)(started.elapsed());
        }
        Ok(freed)
    }
}
