//! Works the queue of background jobs: next to the traffic of a gateway, or alone until nothing is left to do. Knows the
//! kinds of jobs, and that one process at a time works for a home.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use larder_agent::turn::background::{AfterTurn, EMBED, SUMMARIZE};
use larder_engine::blocking;
use larder_engine::executor::{Meter, NoopObserver};
use larder_store::{Job, JobEnd, JobWorker, KeyLimits, StoreError, Timestamp};

use crate::app::App;
use crate::auth::{AuthError, Caller};

/// Jobs that are done at once.
const PARALLEL: usize = 4;
/// How often the queue is looked at.
const PERIOD: Duration = Duration::from_millis(500);
/// Tokens reserved for a job behind a turn: a summary takes two recipe calls, and vectors as far as this allows.
const RESERVED: u64 = 12_000;
/// The least time, in milliseconds, before a job whose budget is reserved by others is looked at again.
const BUSY: u64 = 30_000;

/// Works until the gateway stops.
pub(crate) async fn serve(app: Arc<App>) {
    loop {
        if let Some(worker) = worker(&app).await {
            work_off(&app, worker, None).await;
        }
        if app.stop.run_until_cancelled(tokio::time::sleep(PERIOD)).await.is_none() {
            return;
        }
    }
}

/// Works until no job is due within `wait`, or returns at once if another process is at work.
pub async fn work(app: Arc<App>, wait: Duration) {
    let holding = Arc::clone(&app);
    let renewing = tokio::spawn(crate::serve::renew(move || holding.auth.renew()));
    while let Some(worker) = worker(&app).await {
        work_off(&app, worker, Some(wait)).await;
        // A job may have been added while no other process could become the worker.
        if app.stop.is_cancelled() || is_idle(&app, wait) {
            break;
        }
    }
    renewing.abort();
    let _ = tokio::task::spawn_blocking(move || app.recorder.finish()).await;
}

async fn worker(app: &Arc<App>) -> Option<Arc<JobWorker>> {
    let store = app.store.clone();
    let acquired = tokio::task::spawn_blocking(move || store.job_queue().acquire()).await;
    match acquired.unwrap_or(Ok(None)) {
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

/// Works until the process is asked to stop or, with `wait`, until nothing is due within that time.
async fn work_off(app: &Arc<App>, worker: Arc<JobWorker>, wait: Option<Duration>) {
    let mut running = FuturesUnordered::new();
    while !app.stop.is_cancelled() {
        while running.len() < PARALLEL {
            let found = worker.claim().unwrap_or_else(|error| {
                tracing::warn!(%error, "the queue of background jobs cannot be read");
                None
            });
            let Some(job) = found else { break };
            running.push(blocking::spawn(attempt(Arc::clone(app), Arc::clone(&worker), job)));
        }
        if running.is_empty() && wait.is_some_and(|wait| is_idle(app, wait)) {
            return;
        }
        tokio::select! {
            Some(_) = running.next() => {}
            () = tokio::time::sleep(PERIOD) => {}
            () = app.stop.cancelled() => {}
        }
    }
    while running.next().await.is_some() {}
}

/// Does a job, and reports its end. Where the process is asked to stop, the job waits for the next worker.
async fn attempt(app: Arc<App>, worker: Arc<JobWorker>, job: Job) {
    let end = match app.stop.run_until_cancelled(app.work_on(&job)).await {
        Some(Ok(end)) => end,
        Some(Err(error)) => JobEnd::Failed(error.to_string()),
        None => JobEnd::NotBefore(job.due, "its worker was stopped".to_owned()),
    };
    match &end {
        JobEnd::Done => tracing::info!(job = job.id, kind = job.kind, "a background job is done"),
        JobEnd::NotBefore(_, reason) | JobEnd::Failed(reason) => {
            tracing::warn!(job = job.id, kind = job.kind, reason, "a background job was not done");
        }
    }
    if let Err(error) = worker.end(&job, &end) {
        // It is done again by the next worker.
        tracing::error!(%error, job = job.id, "the end of a background job was not recorded");
    }
}

impl App {
    async fn work_on(&self, job: &Job) -> Result<JobEnd, StoreError> {
        match job.kind.as_str() {
            SUMMARIZE | EMBED => self.after_turn(job).await,
            kind => Ok(JobEnd::Failed(format!("this version knows no job {kind}"))),
        }
    }

    /// Summarizes a turn, or creates vectors, at the expense of the key of the turn. Without budget, it waits for the
    /// next day; where no day's budget is large enough, nothing is done.
    async fn after_turn(&self, job: &Job) -> Result<JobEnd, StoreError> {
        let after: AfterTurn = match serde_json::from_value(job.payload.clone()) {
            Ok(after) => after,
            Err(error) => return Ok(JobEnd::Failed(format!("its payload cannot be read: {error}"))),
        };
        let background = self.background(&job.user)?;
        let Some(caller) = self.payer(job, &after)? else { return Ok(JobEnd::Done) };
        let reach = background.reach(&job.kind);
        let reservation = match self.auth.reserve_for(&caller, RESERVED, &reach) {
            Ok(reservation) => reservation,
            Err(error) => return Ok(self.unpaid(&caller, error, reach.max_cost(RESERVED).picos())),
        };
        // No call starts that the reservation does not cover.
        let meter = Meter::new(&NoopObserver, Some(RESERVED), None);
        let worked = background.work(&job.kind, &after, &meter).await;
        let taken = meter.total();
        reservation.settle_or_log(taken.tokens(), taken.cost.unwrap_or_default());
        match worked {
            Ok(next) => {
                next.iter().try_for_each(|next| caller.store.jobs().add(next))?;
                Ok(JobEnd::Done)
            }
            Err(error) => Ok(JobEnd::Failed(error.to_string())),
        }
    }

    /// Who pays for a job; `None` where the key does not exist any more.
    fn payer(&self, job: &Job, after: &AfterTurn) -> Result<Option<Caller>, StoreError> {
        let store = self.store.user(&job.user)?;
        let Some(id) = &after.key else {
            return Ok(Some(Caller { store, key: None, limits: KeyLimits::default(), operator: false }));
        };
        let known = self.store.keys().get(id)?;
        Ok(known.map(|known| Caller {
            store,
            key: Some(id.clone()),
            limits: known.record.limits,
            operator: false,
        }))
    }

    /// What becomes of a job that its key does not pay for.
    fn unpaid(&self, caller: &Caller, error: AuthError, picos: u64) -> JobEnd {
        let limits = caller.limits;
        let never = limits.tokens_per_day.is_some_and(|most| most < RESERVED)
            || limits.picos_per_day.is_some_and(|most| most < picos);
        match error {
            AuthError::Store(error) => JobEnd::Failed(error.to_string()),
            AuthError::OverLimit(shortage) if !never => {
                let soon = self.store.now().as_millis().saturating_add(BUSY);
                let due = if shortage.passes() { soon } else { shortage.resets.as_millis().max(soon) };
                JobEnd::NotBefore(Timestamp::from_millis(due), "the budget of its key is used up".to_owned())
            }
            error => {
                tracing::info!(%error, "a background job was dropped, since its key does not pay for it");
                JobEnd::Done
            }
        }
    }
}
