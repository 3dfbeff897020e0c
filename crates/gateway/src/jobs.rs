//! Works the queue of background jobs: next to the traffic of a gateway, or alone until nothing is left to do. Knows the
//! kinds of jobs, and that one process at a time works for a home.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use larder_agent::turn::background::{AfterTurn, EMBED, SUMMARIZE};
use larder_conversation::ConversationError;
use larder_conversation::background::{AfterReply, knows};
use larder_engine::Engine;
use larder_engine::blocking;
use larder_engine::condensing::{CONDENSE_HISTORY, CondenseHistory};
use larder_engine::executor::{Meter, ModelSet, NoopObserver};
use larder_store::{
    ERASE_JOB, Job, JobEnd, JobState, JobWorker, KeyId, KeyLimits, LOCAL_USER, NewJob, StoreError, Timestamp,
};

use crate::app::App;
use crate::auth::{AuthError, BudgetReservation, Caller};
use crate::collection;

/// Jobs that are done at once.
const PARALLEL: usize = 4;
/// How often the queue is looked at.
const PERIOD: Duration = Duration::from_millis(500);
/// How often a process tries to become the worker, or to reach a store that fails.
const AGAIN: Duration = Duration::from_secs(5);
/// Tokens reserved for a job behind a turn: a summary takes two recipe calls, and vectors as far as this allows.
const RESERVED: u64 = 12_000;
/// Most tokens reserved for a summary ahead of time. What is done within them is kept, and the next run goes on.
const MOST_AHEAD: u64 = 50_000;
/// Attempts at a summary ahead of time.
const ATTEMPTS_AHEAD: u64 = 2;
/// Removes what has expired and converts what an older version has stored.
const COLLECT: &str = "collect";
/// Moves expired research to the archive (R1-12.4).
const CLEAN_UP: &str = "clean_up";
/// Sums the figures of days and weeks anew.
const ROLL_UP: &str = "roll_up";
/// Jobs that come again, and the time between them.
const MAINTENANCE: [(&str, Duration); 3] = [
    (COLLECT, Duration::from_hours(1)),
    (CLEAN_UP, Duration::from_hours(6)),
    (ROLL_UP, Duration::from_hours(24)),
];
/// How often regular jobs are looked for that the queue lacks.
const REGULAR: Duration = Duration::from_hours(1);
/// Milliseconds before a job is looked at again that would have to wait for its model.
const SOON: u64 = 1_000;
/// The least time, in milliseconds, before a job whose budget is reserved by others is looked at again.
const BUSY: u64 = 30_000;

/// Works until the gateway stops.
pub(crate) async fn serve(app: Arc<App>) {
    loop {
        if let Some(worker) = worker(&app).await {
            work_off(&app, worker, None, &mut 0).await;
        }
        if app.stop.run_until_cancelled(tokio::time::sleep(AGAIN)).await.is_none() {
            return;
        }
    }
}

/// Works until no job is due within `wait`. Gives how many jobs were taken up; `None`, at once, if another process is at
/// work.
pub async fn work(app: Arc<App>, wait: Duration) -> Option<usize> {
    let mut taken = None;
    let holding = Arc::clone(&app);
    let renewing = tokio::spawn(crate::serve::renew(move || holding.auth.renew()));
    while let Some(worker) = worker(&app).await {
        if !work_off(&app, worker, Some(wait), taken.get_or_insert(0)).await {
            // The next command starts another process, when the store may work again.
            break;
        }
        // A job may have been added while no other process could become the worker.
        if app.stop.is_cancelled() || is_idle(&app, wait) {
            break;
        }
    }
    renewing.abort();
    let _ = blocking::run(move || app.recorder.finish()).await;
    taken
}

async fn worker(app: &Arc<App>) -> Option<Arc<JobWorker>> {
    let store = app.store.clone();
    let working = Arc::clone(app);
    let acquired = blocking::run(move || -> Result<_, StoreError> {
        let worker = store.job_queue().acquire()?;
        if worker.is_some() {
            add_regular(&working)?;
        }
        Ok(worker)
    });
    match acquired.await.unwrap_or(Ok(None)) {
        Ok(worker) => worker.map(Arc::new),
        Err(error) => {
            tracing::warn!(%error, "background jobs cannot be done now");
            None
        }
    }
}

/// Whether nothing is due within this time.
fn is_idle(app: &App, wait: Duration) -> bool {
    let until =
        app.store.now().as_millis().saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    !matches!(app.store.job_queue().next_due(), Ok(Some(due)) if due.as_millis() <= until)
}

/// Works until the process is asked to stop or, with `wait`, until nothing is due within that time, and counts the jobs
/// that it takes up. `false` if the queue cannot be used.
async fn work_off(app: &Arc<App>, worker: Arc<JobWorker>, wait: Option<Duration>, taken: &mut usize) -> bool {
    let mut regular = Instant::now();
    let mut running = FuturesUnordered::new();
    while !app.stop.is_cancelled() {
        // There may be new users, and regular jobs that somebody removed.
        if regular.elapsed() > REGULAR {
            regular = Instant::now();
            if let Err(error) = add_regular(app) {
                tracing::warn!(%error, "regular jobs were not added to the queue");
            }
        }
        while running.len() < PARALLEL {
            let job = match worker.claim() {
                Ok(Some(job)) => job,
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "the queue of background jobs cannot be used now");
                    while running.next().await.is_some() {}
                    return false;
                }
            };
            *taken += 1;
            running.push(guarded(Arc::clone(app), Arc::clone(&worker), job));
        }
        if running.is_empty() && wait.is_some_and(|wait| is_idle(app, wait)) {
            return true;
        }
        tokio::select! {
            Some(_) = running.next() => {}
            () = tokio::time::sleep(PERIOD) => {}
            () = app.stop.cancelled() => {}
        }
    }
    while running.next().await.is_some() {}
    true
}

/// Does a job; one that panics has failed.
async fn guarded(app: Arc<App>, worker: Arc<JobWorker>, job: Job) {
    let attempted = blocking::spawn(attempt(app, Arc::clone(&worker), job.clone())).await;
    if attempted.is_err()
        && let Err(error) = worker.end(&job, &JobEnd::Failed("it panicked".to_owned()))
    {
        tracing::error!(%error, job = job.id, "the end of a background job was not recorded");
    }
}

/// Does a job, and reports its end. Where the process is asked to stop, the job waits for the next worker.
async fn attempt(app: Arc<App>, worker: Arc<JobWorker>, job: Job) {
    let end = match app.stop.run_until_cancelled(work_on(&app, &job)).await {
        Some(Ok(end)) => end,
        Some(Err(error)) => JobEnd::Failed(error.to_string()),
        None => JobEnd::NotBefore(job.due, "its worker was stopped".to_owned()),
    };
    match &end {
        JobEnd::Done => tracing::info!(job = job.id, kind = job.kind, "a background job is done"),
        JobEnd::NotBefore(_, reason) | JobEnd::Failed(reason) | JobEnd::GivenUp(reason) => {
            tracing::warn!(job = job.id, kind = job.kind, reason, "a background job was not done");
        }
    }
    while let Err(error) = worker.end(&job, &end) {
        tracing::error!(%error, job = job.id, "the end of a background job was not recorded");
        if app.stop.run_until_cancelled(tokio::time::sleep(AGAIN)).await.is_none() {
            // It is done again by the next worker.
            return;
        }
    }
    if matches!(end, JobEnd::Failed(_) | JobEnd::GivenUp(_))
        && let Err(error) = add_regular(&app)
    {
        tracing::warn!(%error, "regular jobs were not added to the queue");
    }
}

async fn work_on(app: &Arc<App>, job: &Job) -> Result<JobEnd, StoreError> {
    match job.kind.as_str() {
        SUMMARIZE | EMBED => after_turn(app, job).await,
        CONDENSE_HISTORY => condense_history(app, job).await,
        COLLECT | CLEAN_UP | ROLL_UP => maintain(app, job).await,
        kind if knows(kind) => after_reply(app, job).await,
        kind => Ok(JobEnd::Failed(format!("this version knows no job {kind}"))),
    }
}

/// Summarizes a turn, or creates vectors.
async fn after_turn(app: &App, job: &Job) -> Result<JobEnd, StoreError> {
    let after: AfterTurn = match read(job) {
        Ok(after) => after,
        Err(end) => return Ok(end),
    };
    let background = app.background(job)?;
    if let Some(end) = waits(app, &background.engine) {
        return Ok(end);
    }
    let reach = background.reach(&job.kind);
    let (reservation, meter) = match app.pay(job, after.key.as_ref(), RESERVED, &reach)? {
        Ok(paid) => paid,
        Err(end) => return Ok(end),
    };
    let worked = background.work(&job.kind, &after, &meter).await;
    settle(reservation, &meter);
    match worked {
        Ok(next) => {
            next.iter().try_for_each(|next| background.engine.store.jobs().add(next))?;
            Ok(JobEnd::Done)
        }
        Err(error) => {
            // All attempts together hold the limits of the turn.
            let after = after.less(&meter.total());
            let payload = serde_json::to_value(&after).unwrap_or_default();
            background.engine.store.jobs().set_payload(job.id, &payload)?;
            Ok(match after.left().exhausted() {
                Some(why) => JobEnd::GivenUp(format!("{error}; of what its turn may take, {why}")),
                None => JobEnd::Failed(error.to_string()),
            })
        }
    }
}

/// Does what follows a reply of a conversation.
async fn after_reply(app: &App, job: &Job) -> Result<JobEnd, StoreError> {
    let after: AfterReply = match read(job) {
        Ok(after) => after,
        Err(end) => return Ok(end),
    };
    let conversations = app.conversations_behind(job)?;
    if job.kind == ERASE_JOB {
        // It asks no model, and is due within a minute.
        let erased = conversations.work(&job.kind, &after, &NoopObserver).await;
        return Ok(erased.map_or_else(|error| JobEnd::Failed(error.to_string()), |()| JobEnd::Done));
    }
    if let Some(end) = waits(app, &conversations.engine) {
        return Ok(end);
    }
    let reach = conversations.reach(&after);
    let (reservation, meter) = match app.pay(job, after.key.as_ref(), RESERVED, &reach)? {
        Ok(paid) => paid,
        Err(end) => return Ok(end),
    };
    let worked = conversations.work(&job.kind, &after, &meter).await;
    settle(reservation, &meter);
    Ok(match worked {
        Ok(()) => JobEnd::Done,
        // A later one takes in what this one would have.
        Err(error @ ConversationError::Ceiling { .. }) => JobEnd::GivenUp(error.to_string()),
        Err(error) => JobEnd::Failed(error.to_string()),
    })
}

/// Summarizes a history for its next run.
async fn condense_history(app: &App, job: &Job) -> Result<JobEnd, StoreError> {
    let ahead: CondenseHistory = match read(job) {
        Ok(ahead) => ahead,
        Err(end) => return Ok(end),
    };
    let engine = app.background(job)?.engine;
    if let Some(end) = waits(app, &engine) {
        return Ok(end);
    }
    let reach = engine.models_of_history(&ahead);
    let most = ahead.tokens.min(MOST_AHEAD);
    let (reservation, meter) = match app.pay(job, ahead.key.as_ref(), most, &reach)? {
        Ok(paid) => paid,
        Err(end) => return Ok(end),
    };
    let condensed = engine.condense_history(&ahead, &meter).await;
    settle(reservation, &meter);
    Ok(match condensed {
        Ok(()) => JobEnd::Done,
        // The next run can do without it: nobody is asked.
        Err(error) if job.attempts >= ATTEMPTS_AHEAD => {
            tracing::warn!(job = job.id, %error, "a summary ahead of time is given up");
            JobEnd::Done
        }
        Err(error) => JobEnd::Failed(error.to_string()),
    })
}

/// Puts a job off while replies need its model, so that it holds no budget that they may need.
fn waits(app: &App, engine: &Engine) -> Option<JobEnd> {
    let soon = Timestamp::from_millis(app.store.now().as_millis().saturating_add(SOON));
    engine
        .must_wait()
        .then(|| JobEnd::NotBefore(soon, "someone waits for the model that it needs".to_owned()))
}

/// Keeps the store small and the figures right, and comes again.
async fn maintain(app: &Arc<App>, job: &Job) -> Result<JobEnd, StoreError> {
    let (working, kind, user) = (Arc::clone(app), job.kind.clone(), job.user.clone());
    let done = blocking::run(move || -> Result<(), StoreError> {
        let documents = &working.documents;
        match kind.as_str() {
            COLLECT => collection::run(&working),
            ROLL_UP => documents.roll_up(),
            _ => documents.user(&user)?.clean_up(working.store.now().into()).map(drop),
        }
    });
    match done.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Ok(JobEnd::Failed(error.to_string())),
        Err(error) => return Ok(JobEnd::Failed(error.to_string())),
    }
    for (kind, period) in MAINTENANCE {
        if kind == job.kind {
            app.store.user(&job.user)?.jobs().add(&regular(kind, period))?;
        }
    }
    Ok(JobEnd::Done)
}

fn regular(kind: &'static str, period: Duration) -> NewJob {
    let after = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
    NewJob { kind, key: kind.to_owned(), session: None, payload: serde_json::Value::Null, after }
}

/// Has what has expired removed soon: the settings say something else of it.
pub(crate) fn collect_soon(app: &App) -> Result<(), StoreError> {
    let now = NewJob { key: format!("{COLLECT} by new settings"), ..regular(COLLECT, Duration::ZERO) };
    app.store.user(LOCAL_USER)?.jobs().add(&now)
}

/// Adds the regular jobs that are not in the queue. What concerns the whole home belongs to the user of this machine.
fn add_regular(app: &App) -> Result<(), StoreError> {
    let add = |user: &str, kinds: &[&'static str]| -> Result<(), StoreError> {
        let store = app.store.user(user)?;
        let known = store.jobs().list()?;
        for (kind, period) in MAINTENANCE.into_iter().filter(|(kind, _)| kinds.contains(kind)) {
            let known: Vec<&Job> = known.iter().filter(|job| job.kind == kind).collect();
            if known.iter().all(|job| job.state == JobState::Failed) {
                // It comes again, even if the last one has failed for good.
                let after = if known.is_empty() { Duration::ZERO } else { period };
                store.jobs().add(&regular(kind, after))?;
            }
        }
        Ok(())
    };
    add(LOCAL_USER, &[COLLECT, ROLL_UP])?;
    app.documents.users()?.iter().try_for_each(|user| add(user.user(), &[CLEAN_UP]))
}

fn read<T: serde::de::DeserializeOwned>(job: &Job) -> Result<T, JobEnd> {
    serde_json::from_value(job.payload.clone())
        .map_err(|error| JobEnd::Failed(format!("its payload cannot be read: {error}")))
}

fn settle(reservation: BudgetReservation, meter: &Meter<'_>) {
    let taken = meter.total();
    reservation.settle_or_log(taken.tokens(), taken.cost.unwrap_or_default());
}

impl App {
    /// Reserves tokens for a job at the expense of a key. Without budget, the job waits for the next day; where no day's
    /// budget is large enough, or the key does not exist any more, it is dropped.
    fn pay(
        &self,
        job: &Job,
        key: Option<&KeyId>,
        tokens: u64,
        reach: &ModelSet,
    ) -> Result<Result<(BudgetReservation, Meter<'static>), JobEnd>, StoreError> {
        let store = self.store.user(&job.user)?;
        let mut caller = Caller { store, key: None, limits: KeyLimits::default(), operator: false };
        if let Some(id) = key {
            let Some(known) = self.store.keys().get(id)? else { return Ok(Err(JobEnd::Done)) };
            (caller.key, caller.limits) = (Some(id.clone()), known.record.limits);
        }
        // No call starts that the reservation does not cover.
        let meter = || Meter::new(&NoopObserver, Some(tokens), None);
        let reserved = self.auth.reserve_for(&caller, tokens, reach);
        let limits = caller.limits;
        let never = limits.tokens_per_day.is_some_and(|most| most < tokens)
            || limits.picos_per_day.is_some_and(|most| most < reach.max_cost(tokens).picos());
        Ok(match reserved {
            Ok(reservation) => Ok((reservation, meter())),
            Err(AuthError::Store(error)) => return Err(error),
            Err(AuthError::OverLimit(shortage)) if !never => {
                let soon = self.store.now().as_millis().saturating_add(BUSY);
                let due = if shortage.passes() { soon } else { shortage.resets.as_millis().max(soon) };
                let reason = "the budget of its key is used up".to_owned();
                Err(JobEnd::NotBefore(Timestamp::from_millis(due), reason))
            }
            Err(error) => {
                tracing::info!(%error, job = job.id, "a background job was dropped, since its key does not pay for it");
                Err(JobEnd::Done)
            }
        })
    }
}
