//! The queue of background jobs: what is to be done behind replies. Knows no kind of job and how none is done.
//!
//! A job is done at least once: it stays in the queue until its worker reports its end, and what a killed worker was
//! doing is done again. One that waits is replaced by a newer one with the same key, and the jobs of a session are done
//! in the order in which they were added. A job that fails is repeated after a pause, and becomes a request for a human
//! after the last attempt. One process at a time works for all users of a home.

use std::path::PathBuf;

use larder_text::time::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::Serialize;
use serde_json::Value;

use crate::interventions::{self, NewIntervention};
use crate::pointers::to_sql;
use crate::store::{Store, UserStore};
use larder_disk::StoreError;
use larder_disk::locks::{TurnLease, take_sole_lease};

/// The type of the request for a human that a failed job becomes.
pub const JOB_FAILED: &str = "job_failed";

/// Attempts before a job has failed for good: with their pauses they last four and a half hours.
const MAX_ATTEMPTS: u64 = 6;
/// Starts before a job whose workers die has failed for good.
const MAX_STARTS: u64 = 30;
/// The pause after the first failed attempt, in milliseconds, and the factor by which each following one is longer.
const PAUSE: u64 = 10_000;
const LONGER: u64 = 6;

/// Why a job waits whose worker was killed.
const WORKER_ENDED: &str = "its worker ended before it did";

const COLUMNS: &str =
    "id, user, kind, key, session, payload, state, attempts, created, due, reason, intervention";

/// What becomes of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum JobState {
    /// It waits until it is due, for earlier jobs of its session, or for a worker.
    Waiting,
    /// A worker does it, or has been killed meanwhile.
    Running,
    /// It has failed for good, and a human is asked.
    Failed,
}

/// A job to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    /// What is to be done.
    pub kind: &'static str,
    /// What it is done to. A job with the key of one that waits replaces that one's payload, in its place.
    pub key: String,
    /// The conversation whose jobs are done in order.
    pub session: Option<String>,
    /// What the worker needs to know.
    pub payload: Value,
    /// Milliseconds from now until it is due. A job that waits already keeps its time.
    pub after: u64,
}

/// A job in the queue.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Job {
    /// Its number, which no other job of the home ever has.
    pub id: u64,
    /// Whose it is.
    pub user: String,
    /// What is to be done.
    pub kind: String,
    /// What it is done to.
    pub key: String,
    /// The conversation whose jobs are done in order.
    pub session: Option<String>,
    /// What the worker needs to know.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub payload: Value,
    /// What becomes of it.
    pub state: JobState,
    /// How often it was started.
    pub attempts: u64,
    /// When it was added.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created: Timestamp,
    /// When it may start.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub due: Timestamp,
    /// Why the last attempt failed, or what it waits for.
    pub reason: Option<String>,
    /// The request for a human that it has become.
    pub intervention: Option<u64>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    /// It is done and leaves the queue.
    Done,
    /// It failed for this reason.
    Failed(String),
    /// It failed for this reason, and no further attempt is to follow.
    GivenUp(String),
    /// It cannot be done before this moment, for this reason. This is no attempt.
    NotBefore(Timestamp, String),
}

/// The jobs of one user; from [`UserStore::jobs`].
#[derive(Debug, Clone, Copy)]
pub struct Jobs<'s> {
    pub(crate) store: &'s UserStore,
}

impl Jobs<'_> {
    /// Adds a job; when this returns it survives a crash of the machine.
    ///
    /// # Errors
    /// The store fails.
    pub fn add(&self, new: &NewJob) -> Result<(), StoreError> {
        self.store.write(|tx| insert(tx, self.store.user(), new, self.store.now()))
    }

    /// The jobs of this user, oldest first.
    ///
    /// # Errors
    /// The store fails.
    pub fn list(&self) -> Result<Vec<Job>, StoreError> {
        self.store.index().read(|tx| {
            let mut query =
                tx.prepare_cached(&format!("SELECT {COLUMNS} FROM jobs WHERE user = ?1 ORDER BY id"))?;
            let jobs = query.query_map([self.store.user()], read)?;
            Ok(jobs.map(|job| Ok(self.with_worker(job?))).collect::<Result<_, rusqlite::Error>>()?)
        })
    }

    /// Replaces what the next attempt of a job needs to know.
    ///
    /// # Errors
    /// The store fails.
    pub fn set_payload(&self, id: u64, payload: &Value) -> Result<(), StoreError> {
        self.store.write(|tx| {
            tx.prepare_cached("UPDATE jobs SET payload = ?3 WHERE user = ?1 AND id = ?2")?
                .execute(params![self.store.user(), to_sql(id), payload.to_string()])?;
            Ok(())
        })
    }

    /// One job.
    ///
    /// # Errors
    /// There is none of this number, or the store fails.
    pub fn get(&self, id: u64) -> Result<Job, StoreError> {
        self.store.index().read(|tx| self.require(tx, id))
    }

    fn require(&self, tx: &Transaction<'_>, id: u64) -> Result<Job, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM jobs WHERE user = ?1 AND id = ?2");
        let job = tx.query_row(&sql, params![self.store.user(), to_sql(id)], read).optional()?;
        job.map(|job| self.with_worker(job)).ok_or(StoreError::UnknownJob { id })
    }

    /// A job as it is: one whose worker was killed waits for the next worker, which will write that down.
    fn with_worker(&self, job: Job) -> Job {
        if job.state != JobState::Running || TurnLease::is_held(&lease(self.store.store())) {
            return job;
        }
        Job { state: JobState::Waiting, reason: Some(WORKER_ENDED.to_owned()), ..job }
    }

    /// Makes a job due that waits or has failed, with all its attempts, and settles its request for a human.
    ///
    /// # Errors
    /// There is none of this number, it is running, or the store fails.
    pub fn retry(&self, id: u64) -> Result<Job, StoreError> {
        self.store.write(|tx| {
            let job = self.settle(tx, id, "retried")?;
            if waits(tx, &job)? {
                remove(tx, id)?;
                return Ok(job);
            }
            tx.execute(
                "UPDATE jobs SET state = 0, attempts = 0, due = ?2, intervention = NULL WHERE id = ?1",
                params![to_sql(id), to_sql(self.store.now().as_millis())],
            )?;
            self.require(tx, id)
        })
    }

    /// Removes a job that waits or has failed, and settles its request for a human.
    ///
    /// # Errors
    /// There is none of this number, it is running, or the store fails.
    pub fn cancel(&self, id: u64) -> Result<Job, StoreError> {
        self.store.write(|tx| {
            let job = self.settle(tx, id, "cancelled")?;
            remove(tx, id)?;
            Ok(job)
        })
    }

    fn settle(&self, tx: &Transaction<'_>, id: u64, resolution: &str) -> Result<Job, StoreError> {
        let job = self.require(tx, id)?;
        if job.state == JobState::Running {
            return Err(StoreError::JobRunning { id });
        }
        tx.execute(
            "UPDATE interventions SET resolved_at = ?3, resolution = ?4
             WHERE user = ?1 AND id = ?2 AND resolved_at IS NULL",
            params![
                self.store.user(),
                job.intervention.map(to_sql),
                to_sql(self.store.now().as_millis()),
                resolution
            ],
        )?;
        Ok(job)
    }
}

/// The jobs of all users; from [`Store::job_queue`].
#[derive(Debug, Clone, Copy)]
pub struct JobQueue<'s> {
    pub(crate) store: &'s Store,
}

impl JobQueue<'_> {
    /// The moment at which the next job is due that waits for no earlier one of its session. One that is running counts,
    /// since its worker may have been killed.
    ///
    /// # Errors
    /// The store fails.
    pub fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let least = "SELECT min(due) FROM jobs AS job WHERE state < 2
             AND NOT EXISTS (SELECT 1 FROM jobs AS other WHERE other.user = job.user AND other.state < 2
                 AND other.session = job.session AND other.id < job.id)";
        let least = self.store.index().read_once(|index| {
            Ok(index.prepare_cached(least)?.query_row([], |row| row.get::<_, Option<i64>>(0))?)
        })?;
        Ok(least.map(time))
    }

    /// Becomes the worker of this home; `None` while another process, or another handle of this one, is it. What a
    /// killed worker was doing waits again.
    ///
    /// # Errors
    /// The store fails, or its file system has no locks, by which workers know of each other.
    pub fn acquire(&self) -> Result<Option<JobWorker>, StoreError> {
        let Some(lease) = take_sole_lease(lease(self.store))? else { return Ok(None) };
        let running = self.store.index().read(|tx| {
            let mut query = tx.prepare(&format!("SELECT {COLUMNS} FROM jobs WHERE state = 1"))?;
            Ok(query.query_map([], read)?.collect::<Result<Vec<_>, _>>()?)
        })?;
        let worker = JobWorker { store: self.store.clone(), _lease: lease };
        for job in running {
            let started = job.attempts;
            let end = if started >= MAX_STARTS {
                JobEnd::Failed(format!("its worker ended {started} times before it did"))
            } else {
                JobEnd::NotBefore(job.due, WORKER_ENDED.to_owned())
            };
            // The start counts, since a job may be what kills its workers.
            worker.store.index().write_unsynced(|tx| worker.end_in(tx, &job, &end, started))?;
        }
        Ok(Some(worker))
    }
}

/// The lock of the one worker of a home.
fn lease(store: &Store) -> PathBuf {
    store.home().join("turns/jobs")
}

/// The one worker of a home, until it is dropped.
#[derive(Debug)]
pub struct JobWorker {
    store: Store,
    _lease: TurnLease,
}

impl JobWorker {
    /// Starts the oldest job that is due, whose session has no earlier one, and whose key none that is running.
    ///
    /// # Errors
    /// The store fails.
    pub fn claim(&self) -> Result<Option<Job>, StoreError> {
        loop {
            let now = to_sql(self.store.now().as_millis());
            let found = self.store.index().read(|tx| {
                let mut query = tx.prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM jobs AS job WHERE state = 0 AND due <= ?1
                     AND NOT EXISTS (SELECT 1 FROM jobs AS other WHERE other.user = job.user AND other.state < 2
                         AND other.session = job.session AND other.id < job.id)
                     AND NOT EXISTS (SELECT 1 FROM jobs AS other WHERE other.user = job.user AND other.state = 1
                         AND other.key = job.key)
                     ORDER BY id LIMIT 1"
                ))?;
                Ok(query.query_row([now], read).optional()?)
            })?;
            let Some(mut job) = found else { return Ok(None) };
            let started = self.store.index().write_unsynced(|tx| {
                let mut start = tx.prepare_cached(
                    "UPDATE jobs SET state = 1, attempts = attempts + 1, reason = NULL WHERE id = ?1 AND state = 0
                     RETURNING payload",
                )?;
                Ok(start.query_row([to_sql(job.id)], |row| payload(row, 0)).optional()?)
            })?;
            // Otherwise it was cancelled meanwhile.
            if let Some(payload) = started {
                (job.state, job.payload, job.attempts) = (JobState::Running, payload, job.attempts + 1);
                return Ok(Some(job));
            }
        }
    }

    /// Reports how an attempt ended. Nothing happens if the job's user was deleted meanwhile.
    ///
    /// # Errors
    /// The store fails.
    pub fn end(&self, job: &Job, end: &JobEnd) -> Result<(), StoreError> {
        let attempts = match end {
            JobEnd::NotBefore(..) => job.attempts.saturating_sub(1),
            JobEnd::Done | JobEnd::Failed(_) | JobEnd::GivenUp(_) => job.attempts,
        };
        self.store.index().write(|tx| self.end_in(tx, job, end, attempts))
    }

    fn end_in(&self, tx: &Transaction<'_>, job: &Job, end: &JobEnd, attempts: u64) -> Result<(), StoreError> {
        let now = self.store.now();
        let (due, reason) = match end {
            // One with its key was added while it was running, and is done in its place.
            JobEnd::NotBefore(..) | JobEnd::Failed(_) | JobEnd::GivenUp(_) if waits(tx, job)? => {
                return remove(tx, job.id);
            }
            JobEnd::Done => return remove(tx, job.id),
            JobEnd::NotBefore(due, reason) => (*due, reason),
            JobEnd::Failed(reason) if attempts < MAX_ATTEMPTS => {
                let pause =
                    PAUSE.saturating_mul(LONGER.saturating_pow(u32::try_from(attempts).unwrap_or(1) - 1));
                (Timestamp::from_millis(now.as_millis().saturating_add(pause)), reason)
            }
            JobEnd::Failed(reason) | JobEnd::GivenUp(reason) => return bury(tx, job, reason, now),
        };
        tx.prepare_cached("UPDATE jobs SET state = 0, due = ?2, reason = ?3, attempts = ?4 WHERE id = ?1")?
            .execute(params![to_sql(job.id), to_sql(due.as_millis()), reason, to_sql(attempts)])?;
        Ok(())
    }
}

/// Makes a job that has failed for good a request for a human.
fn bury(tx: &Transaction<'_>, job: &Job, reason: &str, now: Timestamp) -> Result<(), StoreError> {
    let known = tx.query_row("SELECT 1 FROM jobs WHERE id = ?1", [to_sql(job.id)], |_| Ok(())).optional()?;
    if known.is_none() {
        return Ok(());
    }
    let Job { id, kind, key, .. } = job;
    let message = format!(
        "Background job {id} ({kind}: {key}) failed {} times: {reason}; `larder jobs retry {id}` repeats it, \
         `larder jobs cancel {id}` drops it",
        job.attempts
    );
    let new = NewIntervention { kind: JOB_FAILED.to_owned(), message, recipe: None, run_id: None };
    let intervention = interventions::insert(tx, &job.user, &new, now)?;
    tx.execute(
        "UPDATE jobs SET state = 2, reason = ?2, intervention = ?3 WHERE id = ?1",
        params![to_sql(*id), reason, to_sql(intervention)],
    )?;
    Ok(())
}

/// Adds a job of a user.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    user: &str,
    new: &NewJob,
    now: Timestamp,
) -> Result<(), StoreError> {
    let now = now.as_millis();
    tx.prepare_cached(
        "INSERT INTO jobs (user, kind, key, session, payload, state, attempts, created, due)
         VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, ?6, ?7)
         ON CONFLICT (user, key) WHERE state = 0 DO UPDATE SET payload = excluded.payload",
    )?
    .execute(params![
        user,
        new.kind,
        new.key,
        new.session,
        new.payload.to_string(),
        to_sql(now),
        to_sql(now.saturating_add(new.after))
    ])?;
    Ok(())
}

/// Whether another job with the key of this one waits.
fn waits(tx: &Transaction<'_>, job: &Job) -> Result<bool, StoreError> {
    let mut other =
        tx.prepare_cached("SELECT 1 FROM jobs WHERE user = ?1 AND key = ?2 AND state = 0 AND id <> ?3")?;
    Ok(other.exists(params![job.user, job.key, to_sql(job.id)])?)
}

fn remove(tx: &Transaction<'_>, id: u64) -> Result<(), StoreError> {
    tx.prepare_cached("DELETE FROM jobs WHERE id = ?1")?.execute([to_sql(id)])?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Job> {
    let number = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.unsigned_abs());
    Ok(Job {
        id: number(0)?,
        user: row.get(1)?,
        kind: row.get(2)?,
        key: row.get(3)?,
        session: row.get(4)?,
        payload: payload(row, 5)?,
        state: match number(6)? {
            0 => JobState::Waiting,
            1 => JobState::Running,
            _ => JobState::Failed,
        },
        attempts: number(7)?,
        created: time(row.get(8)?),
        due: time(row.get(9)?),
        reason: row.get(10)?,
        intervention: row.get::<_, Option<i64>>(11)?.map(i64::unsigned_abs),
    })
}

fn payload(row: &Row<'_>, column: usize) -> rusqlite::Result<Value> {
    Ok(serde_json::from_str(&row.get::<_, String>(column)?).unwrap_or_default())
}

fn time(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis.unsigned_abs())
}
