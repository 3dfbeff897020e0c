//! Running one turn for a caller: within the budget of the caller's key, on a thread that may block, until it ends or
//! the caller leaves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use larder_agent::turn::{TurnError, TurnEvent, TurnObserver, TurnOutcome, TurnRequest, Turns};
use larder_engine::blocking;
use larder_engine::executor::{Meter, NoopObserver, RunError};
use larder_models::chat::{ModelError, Usage};
use larder_models::price::Usd;
use larder_store::{StoreError, TurnDraft, UserDocuments};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::running::{Running, RunningTurns};
use crate::app::App;
use crate::auth::{AuthError, Caller, Held};
use crate::problem::Problem;

/// Tokens that are held for a turn of a key with a budget where no setting limits turns …
const HELD_TOKENS: u64 = 200_000;
/// … and US dollars, where the key is limited in money.
const HELD_COST: Usd = Usd::from_picos(1_000_000_000_000);
/// The phase that commits.
const SAVE: u8 = 7;
/// Tokens that are held for what follows a turn: its summary, two calls of a recipe, and vectors as far as they go.
const SUMMARY_TOKENS: u64 = 12_000;

/// What is to be done.
#[derive(Debug)]
pub enum TurnJob {
    /// Answer a question.
    Ask(TurnRequest),
    /// Go on with the turn of this number.
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
    /// The turn did not come to its end.
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
/// As many requests as are allowed at once are under way.
pub fn start(app: &Arc<App>, caller: &Caller, job: TurnJob) -> Result<StartedTurn, Problem> {
    let place = app.place().ok_or_else(|| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many requests are under way; come again in a moment",
        )
    })?;
    let (tell, events) = mpsc::unbounded_channel();
    let (done, end) = oneshot::channel();
    let left = CancellationToken::new();
    let leave = left.clone().drop_guard();
    let work = Work { app: Arc::clone(app), caller: caller.clone(), left, _place: place };
    // Turns count tokens, rank passages and write files between their waits.
    blocking::spawn(async move {
        match work.app.turns(&work.caller).await {
            Ok(turns) => work.run(turns, job, tell, done).await,
            Err(problem) => drop(done.send(Err(problem))),
        }
    });
    Ok(StartedTurn { events, end, leave })
}

struct Work {
    app: Arc<App>,
    caller: Caller,
    /// Cancelled when the caller leaves.
    left: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Work {
    async fn run(
        self,
        mut turns: Turns,
        job: TurnJob,
        tell: UnboundedSender<TurnEvent>,
        done: oneshot::Sender<Result<TurnOutcome, Problem>>,
    ) {
        let ended = self.turn(&mut turns, job, tell).await;
        let outcome = ended.as_ref().ok().cloned();
        // Who asked may have left.
        let _ = done.send(ended);
        if let Some(outcome) = outcome {
            self.conclude(&turns, &outcome).await;
        }
    }

    async fn turn(
        &self,
        turns: &mut Turns,
        job: TurnJob,
        tell: UnboundedSender<TurnEvent>,
    ) -> Result<TurnOutcome, Problem> {
        let teller = Teller {
            running_turns: Arc::clone(&self.app.running_turns),
            user: self.caller.store.user().to_owned(),
            under: Mutex::default(),
            saving: AtomicBool::new(false),
            tell,
        };
        self.caller.may_ask(&turns.reach()).map_err(refused)?;
        let mut before = (Usage::default(), Usd::default());
        if let TurnJob::Resume(number) = job {
            let draft = turns.documents.drafts().get(number)?;
            let draft = draft.ok_or_else(|| problem_of(&TurnError::NoDraft(number)))?;
            if draft.state.get("workspace").is_some_and(|folder| !folder.is_null()) {
                let words = format!(
                    "turn {number} works in a folder of its machine; `larder turn resume {number}` goes on with it there"
                );
                return Err(Problem::new(StatusCode::CONFLICT, words));
            }
            before = spent(&draft);
            teller.resume(number)?;
        }
        let held = self.hold(turns, before)?;
        let run = async {
            match &job {
                TurnJob::Ask(request) => turns.run(request, &teller).await,
                TurnJob::Resume(number) => turns.resume(*number, &teller).await,
            }
        };
        tokio::pin!(run);
        let ended = tokio::select! {
            biased;
            ended = &mut run => ended,
            () = self.left.cancelled() => {
                // Nobody knows what was under way: all that was held counts.
                if !teller.saving.load(Ordering::Relaxed) {
                    return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the client left"));
                }
                // A commit that is cut off would stand in the journal alone until the documents are opened anew.
                run.as_mut().await
            }
        };
        settle(held, &ended, before, &turns.documents);
        ended.map_err(|error| problem_of(&error))
    }

    /// Holds what the turn may take: as much as is left today, and no more than a turn may take in all; a turn of a key
    /// with a budget then takes no more.
    fn hold(&self, turns: &mut Turns, before: (Usage, Usd)) -> Result<Held, Problem> {
        let (mut tokens, mut cost) = (0, Usd::default());
        if let Some(day) = self.app.auth.spent(&self.caller)?.filter(|_| !self.caller.limits.is_unlimited()) {
            let limits = self.caller.limits;
            let left = |limit: u64, used: u64, held: u64| limit.saturating_sub(used.saturating_add(held));
            // Where nothing is left, holding anything is refused, in words.
            let of = |most: u64, taken: u64, left: u64| most.saturating_sub(taken).min(left).max(1);
            let tokens_left =
                limits.tokens_per_day.map_or(u64::MAX, |limit| left(limit, day.used.tokens, day.held.tokens));
            let taken = total(before.0);
            tokens = of(turns.limits.tokens.unwrap_or(HELD_TOKENS), taken, tokens_left);
            turns.limits.tokens = Some(taken.saturating_add(tokens));
            if let Some(limit) = limits.picos_per_day {
                let most = turns.limits.cost.unwrap_or(HELD_COST).picos();
                cost =
                    Usd::from_picos(of(most, before.1.picos(), left(limit, day.used.picos, day.held.picos)));
                turns.limits.cost = Some(before.1 + cost);
            }
        }
        let held = self.app.auth.reserve(&self.caller, tokens, cost);
        held.map_err(refused)
    }

    /// Has a turn summarized at the cost of the key that asked; without means there is no summary. One that fails costs
    /// what its calls took.
    async fn conclude(&self, turns: &Turns, outcome: &TurnOutcome) {
        let turn = outcome.turn;
        let reach = turns.reach_of_conclusion();
        let Ok(held) = self.app.auth.reserve_for(&self.caller, SUMMARY_TOKENS, &reach) else {
            tracing::info!(turn, "a turn was not summarized: the budget of its key does not cover it");
            return;
        };
        // No more than is held begins; vectors that older turns lack are made by the turns that follow.
        let meter = Meter::new(&NoopObserver, Some(SUMMARY_TOKENS), None);
        tokio::select! {
            concluded = turns.conclude(outcome, &meter) => {
                if let Err(error) = concluded {
                    tracing::warn!(%error, turn, "a turn was not summarized");
                }
            }
            () = self.app.running_turns.stop().cancelled() => {}
        }
        let taken = meter.total();
        tell(held.settle(taken.tokens(), taken.cost.unwrap_or_default()));
    }
}

fn refused(error: AuthError) -> Problem {
    match error {
        AuthError::Store(error) => error.into(),
        error => Problem::new(error.status(), error.to_string()),
    }
}

/// What a draft has spent so far, as its state says.
fn spent(draft: &TurnDraft) -> (Usage, Usd) {
    let usage = draft.state.get("usage").cloned().and_then(|usage| serde_json::from_value(usage).ok());
    let cost = draft.state.get("cost").cloned().and_then(|cost| serde_json::from_value(cost).ok());
    (usage.unwrap_or_default(), cost.unwrap_or_default())
}

/// Counts what this run of the turn took. Where it is not known, all that was held counts.
fn settle(
    held: Held,
    ended: &Result<TurnOutcome, TurnError>,
    before: (Usage, Usd),
    documents: &UserDocuments,
) {
    let after = match ended {
        Ok(outcome) => (outcome.usage, outcome.cost.unwrap_or_default()),
        Err(
            TurnError::EmptyQuery | TurnError::NoDraft(_) | TurnError::Running(_) | TurnError::State { .. },
        ) => return tell(held.release()),
        // Every call but the last was answered and stands in the draft; the last one was refused or never arrived.
        Err(TurnError::Stopped { turn, source, .. }) if !may_be_billed(source) => {
            match documents.drafts().get(*turn) {
                Ok(Some(draft)) => spent(&draft),
                _ => return drop(held),
            }
        }
        Err(_) => return drop(held),
    };
    let cost = Usd::from_picos(after.1.picos().saturating_sub(before.1.picos()));
    tell(held.settle(total(after.0).saturating_sub(total(before.0)), cost));
}

/// Whether the call that failed may have been carried out all the same.
fn may_be_billed(error: &RunError) -> bool {
    matches!(error, RunError::Model { source: ModelError::Timeout { .. }, .. })
}

/// Tokens in and out.
const fn total(usage: Usage) -> u64 {
    usage.input.saturating_add(usage.output)
}

fn tell(settled: Result<(), StoreError>) {
    if let Err(error) = settled {
        tracing::error!(%error, "a budget could not be settled; all that was reserved counts as used");
    }
}

/// The status of each way in which a turn fails.
fn problem_of(error: &TurnError) -> Problem {
    let status = match error {
        TurnError::EmptyQuery => StatusCode::UNPROCESSABLE_ENTITY,
        TurnError::NoDraft(_) => StatusCode::NOT_FOUND,
        TurnError::State { .. } | TurnError::Running(_) => StatusCode::CONFLICT,
        TurnError::Stopped { .. } | TurnError::Summary { .. } => StatusCode::BAD_GATEWAY,
        _ => return Problem::internal(error),
    };
    Problem::new(status, error.to_string())
}

/// Tells the caller and whoever watches.
struct Teller {
    running_turns: Arc<RunningTurns>,
    user: String,
    under: Mutex<Option<Running>>,
    /// The turn is being committed.
    saving: AtomicBool,
    tell: UnboundedSender<TurnEvent>,
}

impl Teller {
    /// Takes up a turn that was stopped; two at once would both write it.
    fn resume(&self, turn: u32) -> Result<(), Problem> {
        let under = self.running_turns.begin(&self.user, turn);
        let words = format!("turn {turn} is under way already; GET /api/v1/turns/{turn} says how it stands");
        let under = under.ok_or_else(|| Problem::new(StatusCode::CONFLICT, words))?;
        *self.under.lock().unwrap_or_else(PoisonError::into_inner) = Some(under);
        Ok(())
    }
}

impl TurnObserver for Teller {
    fn event(&self, event: &TurnEvent) {
        if matches!(event, TurnEvent::Phase { number: SAVE, .. }) {
            self.saving.store(true, Ordering::Relaxed);
        }
        let mut under = self.under.lock().unwrap_or_else(PoisonError::into_inner);
        if let (TurnEvent::Started { turn, .. }, None) = (event, under.as_ref()) {
            *under = self.running_turns.begin(&self.user, *turn);
        }
        if let Some(under) = under.as_ref() {
            under.tell(event);
        }
        // Who asked may want the outcome alone.
        let _ = self.tell.send(event.clone());
    }
}
