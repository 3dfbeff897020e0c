//! The machine: from step to step, with a checkpoint behind each. Knows what comes after what, and nothing of what
//! happens inside a phase.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use larder_condense::sections::SectionId;
use larder_core::recipe::Layer;
use larder_models::price::Usd;
use larder_store::{TurnDraft, TurnLease};
use larder_text::tokens::Counter;
use larder_vault::{ContentKind, Meta, Tag, VaultPath};
use serde_json::Value;
use tokio::time::Instant;

use super::clock::TurnClock;
use super::error::{Stop, TurnError};
use super::event::{TurnEvent, TurnObserver};
use super::state::{Ending, State, Step, VERSION};
use super::{TurnOutcome, TurnRequest, Turns};
use larder_engine::executor::{Meter, NoopObserver, Spending};

/// The file in the turn's folder that grows.
pub(super) const CONTEXT: &str = "context.md";

/// A turn under way.
pub(super) struct Machine<'a> {
    pub(super) turns: &'a Turns,
    pub(super) observer: &'a dyn TurnObserver,
    pub(super) draft: TurnDraft,
    /// `context.md` as it stands now.
    pub(super) context: String,
    pub(super) state: State,
    pub(super) clock: TurnClock,
    /// Counts sections: the tokenizer of the model that plans.
    pub(super) counter: Counter,
    /// When time runs out.
    pub(super) until: Option<Instant>,
    /// Counts what models take from here on.
    pub(super) meter: Arc<Meter<'static>>,
    /// What of that the state holds.
    charged: Spending,
    /// A call that may change something was let through, and what came of it is not saved yet.
    pub(super) call_begun: AtomicBool,
    /// The turn is committed: nothing is left to save.
    pub(super) committed: bool,
    /// Nobody else goes on with this turn meanwhile.
    _hold: Option<TurnLease>,
}

impl Drop for Machine<'_> {
    /// A turn that is given up goes on from its last checkpoint. What it took since is paid for all the same, and a call
    /// that was made since is not made again.
    fn drop(&mut self) {
        if self.committed {
            return;
        }
        self.settle_meter();
        self.state.spent_ms = self.clock.spent();
        self.state.moment = self.clock.last();
        self.keep_what_counts();
        if let Err(error) = self.turns.documents.drafts().save_state(&self.draft, &self.draft.state) {
            tracing::warn!(%error, turn = self.draft.number, "what a turn took before it was given up was not saved");
        }
    }
}

/// A phase came to its end.
pub(super) struct Done {
    pub(super) next: Step,
    /// What came of it, in a line.
    pub(super) text: String,
}

impl Done {
    pub(super) fn new(next: Step, text: impl Into<String>) -> Self {
        Self { next, text: text.into() }
    }
}

impl<'a> Machine<'a> {
    /// Takes a number for a turn and writes its §0 (R1-3.72).
    pub(super) fn begin(
        turns: &'a Turns,
        request: &TurnRequest,
        observer: &'a dyn TurnObserver,
    ) -> Result<Self, TurnError> {
        if request.query.trim().is_empty() {
            return Err(TurnError::EmptyQuery);
        }
        let mut state = None;
        let user = turns.documents.user();
        let draft = turns.documents.drafts().begin_with(
            request.mode,
            request.session.as_deref(),
            &request.query,
            |draft| {
                let new = State::new(draft.created_at, request.workspace.clone());
                // What cannot be written down is begun anew by whoever resumes the turn.
                draft.state = serde_json::to_value(&new).unwrap_or_default();
                draft.files.insert(CONTEXT.to_owned(), opening(draft, user).into_bytes());
                state = Some(new);
            },
        )?;
        let hold = turns.documents.leases().acquire(draft.number)?;
        if hold.is_none() {
            return Err(TurnError::Running(draft.number));
        }
        let state = state.unwrap_or_else(|| State::new(draft.created_at, request.workspace.clone()));
        let machine = Self::open(turns, draft, state, hold, observer);
        machine.tell_started();
        Ok(machine)
    }

    /// Takes a draft up again.
    pub(super) fn resume(
        turns: &'a Turns,
        number: u32,
        observer: &'a dyn TurnObserver,
    ) -> Result<Self, TurnError> {
        let hold = turns.documents.leases().acquire(number)?;
        let draft = turns.documents.drafts().get(number)?.ok_or(TurnError::NoDraft(number))?;
        if hold.is_none() {
            return Err(TurnError::Running(number));
        }
        let invalid = |reason: String| TurnError::State { turn: number, reason };
        let state: State =
            serde_json::from_value(draft.state.clone()).map_err(|error| invalid(error.to_string()))?;
        if state.version != VERSION {
            return Err(invalid(format!("version {}", state.version)));
        }
        let machine = Self::open(turns, draft, state, hold, observer);
        machine.tell_started();
        Ok(machine)
    }

    fn open(
        turns: &'a Turns,
        draft: TurnDraft,
        state: State,
        hold: Option<TurnLease>,
        observer: &'a dyn TurnObserver,
    ) -> Self {
        let context = draft.files.get(CONTEXT).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let clock = TurnClock::new(turns.engine.store.store(), state.moment, state.spent_ms);
        let left = turns.limits.time.map(|time| time.saturating_sub(Duration::from_millis(state.spent_ms)));
        let mind = turns.engine.candidate(Layer::Mind, Some(draft.mode));
        // Without such a model the first run says so; nothing is counted before.
        let counter =
            mind.map_or_else(|_| Counter::unknown(), |candidate| turns.engine.counter(&candidate.spec));
        let tokens = turns.limits.tokens.map(|limit| limit.saturating_sub(state.tokens()));
        let spent = state.cost.unwrap_or_default().picos();
        let cost = turns.limits.cost.map(|limit| Usd::from_picos(limit.picos().saturating_sub(spent)));
        Self {
            meter: Arc::new(Meter::new(&NoopObserver, tokens, cost)),
            charged: Spending::default(),
            call_begun: AtomicBool::new(false),
            committed: false,
            context: context.unwrap_or_default(),
            until: left.and_then(|left| Instant::now().checked_add(left)),
            turns,
            observer,
            draft,
            state,
            clock,
            counter,
            _hold: hold,
        }
    }

    fn tell_started(&self) {
        let folder = self.draft.place.folder().to_owned();
        self.tell(&TurnEvent::Started { turn: self.draft.number, folder });
    }

    /// Goes from step to step until the turn is saved.
    pub(super) async fn finish(mut self) -> Result<TurnOutcome, TurnError> {
        while self.state.step != Step::Save {
            self.phase().await?;
        }
        self.save().await
    }

    async fn phase(&mut self) -> Result<(), TurnError> {
        let step = self.state.step;
        let (began, tokens) = (self.clock.now(), self.state.tokens());
        self.tell(&TurnEvent::Phase {
            number: step.phase(),
            name: step.name().to_owned(),
            attempt: self.state.attempt(step),
        });
        let finished = self.draft.phase;
        let done = match self.step(step).await {
            Ok(done) => {
                self.draft.phase = Some(step.phase());
                done
            }
            Err(Stop::Fail(reason) | Stop::Unmet(_, reason)) => self.fail(reason),
            Err(Stop::Exhausted(reason)) => self.exhausted(&reason),
            Err(stop) => return Err(stop.into_error(self.draft.number, step)),
        };
        self.state.step = done.next;
        self.checkpoint().inspect_err(|_| self.draft.phase = finished)?;
        let tokens = self.state.tokens().saturating_sub(tokens);
        let millis = self.clock.millis_since(began);
        self.tell(&TurnEvent::PhaseDone { number: step.phase(), tokens, millis, text: done.text });
        Ok(())
    }

    async fn step(&mut self, step: Step) -> Result<Done, Stop> {
        match step {
            Step::Analyze => self.analyze().await,
            Step::Reflect => self.reflect().await,
            Step::Gather => self.gather().await,
            Step::Plan => self.plan().await,
            Step::Coordinate => self.coordinate().await,
            Step::Synthesize => self.synthesize().await,
            Step::Validate => self.validate().await,
            Step::Save => Ok(Done::new(Step::Save, "")),
        }
    }

    /// Ends the turn without an answer (R1-3.77).
    pub(super) fn fail(&mut self, reason: String) -> Done {
        self.tell(&TurnEvent::Warning { text: reason.clone() });
        let done = Done::new(Step::Save, format!("failed: {reason}"));
        self.state.ending = Some(Ending::Failed { reason });
        done
    }

    /// Ends the turn with a question to the user (C6).
    pub(super) fn clarify(&mut self, question: String) -> Done {
        let done = Done::new(Step::Save, format!("CLARIFY: {question}"));
        self.state.ending = Some(Ending::Clarify { question });
        done
    }

    /// Saves everything that is needed to go on from here.
    pub(super) fn checkpoint(&mut self) -> Result<(), TurnError> {
        self.state.spent_ms = self.clock.spent();
        self.state.moment = self.clock.last();
        self.draft.files.insert(CONTEXT.to_owned(), self.context.clone().into_bytes());
        let state = serde_json::to_value(&self.state)
            .map_err(|error| TurnError::State { turn: self.draft.number, reason: error.to_string() })?;
        let before = std::mem::replace(&mut self.draft.state, state);
        let saved = self.turns.documents.drafts().checkpoint(&self.draft);
        if saved.is_err() {
            // What is saved when the turn is given up goes with the files of the last checkpoint.
            self.draft.state = before;
        }
        Ok(saved?)
    }

    /// Adds what the meter has counted since the last time to what the turn has taken; gives that.
    pub(super) fn settle_meter(&mut self) -> Spending {
        let now = self.meter.total();
        let taken = now.since(&self.charged);
        self.charged = now;
        self.state.charge(taken);
        taken
    }

    /// Brings the saved state up to date in what holds whether or not the phase under way comes to its end.
    fn keep_what_counts(&mut self) {
        let Ok(state) = serde_json::to_value(&self.state) else { return };
        let made = self.state.rounds.as_ref().and_then(|rounds| rounds.under_way.as_ref());
        let made = made.map(|round| (round.called.len(), round.begun));
        let call_begun = *self.call_begun.get_mut();
        if let (Some((calls, begun)), Some(saved)) = (made, self.draft.state.pointer_mut("/rounds/under_way"))
        {
            let known = saved["called"].as_array().map_or(0, Vec::len);
            saved["begun"] = Value::Bool(begun || call_begun || calls > known);
        }
        if let Some(saved) = self.draft.state.as_object_mut() {
            for name in ["usage", "cost", "spent_ms", "moment"] {
                saved.insert(name.to_owned(), state[name].clone());
            }
        }
    }

    pub(super) fn tell(&self, event: &TurnEvent) {
        self.observer.event(event);
    }

    pub(super) fn warn(&self, text: impl Into<String>) {
        self.tell(&TurnEvent::Warning { text: text.into() });
    }

    /// Where `context.md` stands.
    pub(super) fn at(&self) -> VaultPath {
        self.draft.place.context()
    }

    /// The query with its references resolved.
    pub(super) fn resolved(&self) -> &str {
        self.state.analysis.as_ref().map_or(&self.draft.query, |analysis| &analysis.resolved_query)
    }
}

/// `context.md` with its §0 (R1-3.72).
fn opening(draft: &TurnDraft, user: &str) -> String {
    let meta = Meta::for_turn(draft.number, "context", user, draft.created_at)
        .holding(&[ContentKind::Context], &[Tag::Context]);
    let mut context = meta.write().as_str().to_owned();
    let body = larder_vault::query_body(&draft.query);
    context += &larder_vault::append_section(&context, SectionId::UserQuery, &body);
    context
}
