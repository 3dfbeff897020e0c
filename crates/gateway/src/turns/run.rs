//! Running one turn for a caller: within the budget of the caller's key, on a thread that may block, until it ends or
//! the caller leaves. Knows no phase.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use larder_agent::turn::{TurnError, TurnEvent, TurnObserver, TurnOutcome, TurnRequest, Turns};
use larder_engine::blocking;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::budget::{Spent, TurnReservation};
use super::running::{Running, RunningTurns};
use crate::app::App;
use crate::auth::{AuthError, Caller};
use crate::problem::Problem;

/// The phase that commits.
const SAVE: u8 = 7;

/// What to do with a turn.
#[derive(Debug)]
pub enum TurnJob {
    /// Answer a question.
    Ask(TurnRequest),
    /// Resume the turn of this number.
    Resume(u32),
}

/// A turn that has been started. Dropped, it stops the turn, which stays a draft then.
#[derive(Debug)]
pub struct StartedTurn {
    /// What happens, as it happens; ends when the turn does.
    pub events: UnboundedReceiver<TurnEvent>,
    /// How it ended.
    pub end: oneshot::Receiver<Result<TurnOutcome, Problem>>,
    leave: DropGuard,
}

impl StartedTurn {
    /// Waits for the end.
    ///
    /// # Errors
    /// The turn did not reach its end.
    pub async fn ended(self) -> Result<TurnOutcome, Problem> {
        let Self { end, leave, events } = self;
        drop(events);
        let ended = end.await;
        drop(leave);
        ended.unwrap_or_else(|_| Err(Problem::internal(&"a turn broke off")))
    }
}

/// Starts a turn.
///
/// # Errors
/// The maximum number of concurrent requests is reached.
pub fn start(app: &Arc<App>, caller: &Caller, job: TurnJob) -> Result<StartedTurn, Problem> {
    let place = app.place().ok_or_else(|| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many concurrent requests; retry in a moment")
    })?;
    let (events_out, events) = mpsc::unbounded_channel();
    let (done, end) = oneshot::channel();
    let left = CancellationToken::new();
    let leave = left.clone().drop_guard();
    let work = TurnWorker { app: Arc::clone(app), caller: caller.clone(), left, _place: place };
    // Turns count tokens, rank passages and write files between their waits.
    blocking::spawn(async move {
        match work.app.turns(&work.caller).await {
            Ok(turns) => work.run(turns, job, events_out, done).await,
            Err(problem) => drop(done.send(Err(problem))),
        }
    });
    Ok(StartedTurn { events, end, leave })
}

struct TurnWorker {
    app: Arc<App>,
    caller: Caller,
    /// Cancelled when the caller leaves.
    left: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl TurnWorker {
    async fn run(
        self,
        mut turns: Turns,
        job: TurnJob,
        events_out: UnboundedSender<TurnEvent>,
        done: oneshot::Sender<Result<TurnOutcome, Problem>>,
    ) {
        let ended = self.turn(&mut turns, job, events_out).await;
        // The caller may have left.
        let _ = done.send(ended);
    }

    async fn turn(
        &self,
        turns: &mut Turns,
        job: TurnJob,
        events_out: UnboundedSender<TurnEvent>,
    ) -> Result<TurnOutcome, Problem> {
        let reporter = TurnReporter {
            running_turns: Arc::clone(&self.app.running_turns),
            user: self.caller.store.user().to_owned(),
            running_turn: Mutex::default(),
            saving: AtomicBool::new(false),
            events: events_out,
        };
        self.caller.may_ask(&turns.reach()).map_err(refused)?;
        let mut before = Spent::default();
        if let TurnJob::Resume(number) = job {
            let draft = turns.documents.drafts().get(number)?;
            let draft = draft.ok_or_else(|| problem_of(&TurnError::NoDraft(number)))?;
            if draft.state.get("workspace").is_some_and(|folder| !folder.is_null()) {
                let words = format!(
                    "turn {number} works in a folder of its machine; resume it there with `larder turn resume {number}`"
                );
                return Err(Problem::new(StatusCode::CONFLICT, words));
            }
            before = Spent::from_draft(&draft);
            reporter.resume(number)?;
        }
        let budget = TurnReservation::reserve(&self.app.auth, &self.caller, &mut turns.limits, before);
        let budget = budget.map_err(refused)?;
        let run = async {
            match &job {
                TurnJob::Ask(request) => turns.run(request, &reporter).await,
                TurnJob::Resume(number) => turns.resume(*number, &reporter).await,
            }
        };
        tokio::pin!(run);
        let ended = tokio::select! {
            biased;
            ended = &mut run => ended,
            () = self.left.cancelled() => {
                // The call in progress has an unknown outcome, so the full reservation counts.
                if !reporter.saving.load(Ordering::Relaxed) {
                    return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the client left"));
                }
                // A commit that is cut off would be in the journal alone until the documents are opened again.
                run.as_mut().await
            }
        };
        budget.settle(&ended, &turns.documents);
        ended.map_err(|error| problem_of(&error))
    }
}

fn refused(error: AuthError) -> Problem {
    match error {
        AuthError::Store(error) => error.into(),
        error => Problem::new(error.status(), error.to_string()),
    }
}

/// The status of each way in which a turn fails.
fn problem_of(error: &TurnError) -> Problem {
    if let Some(error) = error.of_store() {
        return error.into();
    }
    let status = match error {
        TurnError::EmptyQuery | TurnError::NulInQuery => StatusCode::UNPROCESSABLE_ENTITY,
        TurnError::NoDraft(_) => StatusCode::NOT_FOUND,
        TurnError::State { .. } | TurnError::Running(_) => StatusCode::CONFLICT,
        TurnError::Stopped { .. } | TurnError::Summary { .. } => StatusCode::BAD_GATEWAY,
        _ => return Problem::internal(error),
    };
    Problem::new(status, error.to_string())
}

/// Reports events to the caller and to all who watch the turn.
struct TurnReporter {
    running_turns: Arc<RunningTurns>,
    user: String,
    running_turn: Mutex<Option<Running>>,
    /// The turn is being committed.
    saving: AtomicBool,
    events: UnboundedSender<TurnEvent>,
}

impl TurnReporter {
    /// Resumes a stopped turn; two runs at once would both write it.
    fn resume(&self, turn: u32) -> Result<(), Problem> {
        let running = self.running_turns.begin(&self.user, turn);
        let words = format!("turn {turn} is already running; see GET /api/v1/turns/{turn}");
        let running = running.ok_or_else(|| Problem::new(StatusCode::CONFLICT, words))?;
        *self.running_turn.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
        Ok(())
    }
}

impl TurnObserver for TurnReporter {
    fn event(&self, event: &TurnEvent) {
        if matches!(event, TurnEvent::Phase { number: SAVE, .. }) {
            self.saving.store(true, Ordering::Relaxed);
        }
        let mut running = self.running_turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let (TurnEvent::Started { turn, .. }, None) = (event, running.as_ref()) {
            *running = self.running_turns.begin(&self.user, *turn);
        }
        if let Some(running) = running.as_ref() {
            running.publish(event);
        }
        // The caller may want the outcome alone.
        let _ = self.events.send(event.clone());
    }
}

#[cfg(test)]
mod tests {
    use larder_engine::executor::RunError;
    use larder_store::StoreError;

    use super::*;

    #[test]
    fn a_turn_whose_store_cannot_be_written_fails_as_a_conversation_does() {
        let full =
            || StoreError::DiskFull { path: "/home/ada/.larder/index.sqlite".into(), action: "writing" };
        let stopped = || RunError::Store(full());
        for error in [
            TurnError::Store(full()),
            TurnError::Stopped { turn: 1, phase: 2, name: "gather", source: Box::new(stopped()) },
        ] {
            let problem = problem_of(&error);
            assert_eq!(problem.status, 507, "{error}");
            assert!(!problem.detail.contains("ada"), "{}", problem.detail);
        }
        let read_only =
            StoreError::ReadOnly { path: "/home/ada/.larder/turns/ada-2".into(), action: "opening" };
        assert_eq!(problem_of(&TurnError::Store(read_only)).status, 503);
    }
}
