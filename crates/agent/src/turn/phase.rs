//! The context of a phase, and how it is saved: the documents, the state, the budget and the clock of one turn. Knows
//! no phase.

use std::sync::atomic::{AtomicBool, Ordering};

use larder_core::recipe::{Layer, Recipe};
use larder_store::{StoreError, TurnDraft};
use larder_text::tokens::Counter;
use larder_vault::{Meta, Tag};

use super::Turns;
use super::clock::TurnClock;
use super::condense::TurnCondenser;
use super::documents::{CONTEXT, TurnDocument};
use super::error::TurnError;
use super::event::Events;
use super::limits::TurnBudget;
use super::recipes::RecipeRunner;
use super::state::TurnState;
use super::turn_phase::TurnPhase;

/// The result of a phase.
#[derive(Debug)]
pub(super) struct PhaseOutcome {
    /// The phase to run next.
    pub(super) next: TurnPhase,
    /// The result in a line, for people.
    pub(super) text: String,
}

impl PhaseOutcome {
    pub(super) fn new(next: TurnPhase, text: impl Into<String>) -> Self {
        Self { next, text: text.into() }
    }
}

/// One turn, as its phases see it.
pub(super) struct PhaseContext<'a> {
    pub(super) turns: &'a Turns,
    pub(super) events: Events<'a>,
    /// Number, mode, query and files of the turn.
    pub(super) draft: TurnDraft,
    /// `context.md`.
    pub(super) document: TurnDocument<'a>,
    pub(super) state: TurnState,
    pub(super) clock: TurnClock,
    pub(super) budget: TurnBudget,
    /// The state at the last checkpoint.
    saved: TurnState,
    /// A call with side effects was permitted, and its result is not saved yet.
    call_begun: AtomicBool,
}

impl<'a> PhaseContext<'a> {
    /// A turn at the checkpoint that `state` is.
    pub(super) fn new(turns: &'a Turns, draft: TurnDraft, state: TurnState, events: Events<'a>) -> Self {
        let text = draft.files.get(CONTEXT).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let planner = turns.engine.candidate(Layer::Mind, Some(draft.mode));
        // If there is no such model, the first run reports it; nothing is counted before.
        let counter =
            planner.map_or_else(|_| Counter::unknown(), |candidate| turns.engine.counter(&candidate.spec));
        let query = state.analysis.as_ref().map_or(&draft.query, |analysis| &analysis.resolved_query);
        let budget = TurnBudget::new(turns.limits, &state);
        let condenser = TurnCondenser::new(&turns.engine, counter, query.clone(), &budget);
        Self {
            document: TurnDocument::new(text.unwrap_or_default(), draft.place.context(), condenser, events),
            clock: TurnClock::new(turns.engine.store.store(), state.moment, state.spent_ms),
            budget,
            saved: state.clone(),
            call_begun: AtomicBool::new(false),
            turns,
            events,
            draft,
            state,
        }
    }

    /// The query with its references resolved.
    pub(super) fn query(&self) -> &str {
        &self.document.condenser.query
    }

    /// Runs recipes for a phase.
    pub(super) fn recipes(&mut self) -> RecipeRunner<'_> {
        RecipeRunner {
            events: self.events,
            engine: &self.turns.engine,
            draft: &self.draft,
            document: &self.document,
            state: &mut self.state,
            clock: &mut self.clock,
            budget: &mut self.budget,
        }
    }

    /// A recipe of `pipeline/`, which a project may have replaced with its own.
    pub(super) fn recipe(&self, name: &str) -> Option<&'a Recipe> {
        self.turns.engine.find(&format!("pipeline/{name}"), Some(self.draft.mode)).ok()
    }

    /// The recipe by which a phase works in the turn's mode.
    pub(super) fn by_mode(&self, name: &str) -> String {
        format!("{name}_{}", self.draft.mode)
    }

    /// The tools that a recipe may use, as its prompt lists them.
    pub(super) fn tools_for(&self, recipe: &str) -> String {
        let named = self.recipe(recipe).map(|recipe| recipe.tools.clone()).unwrap_or_default();
        larder_tools::describe(&self.turns.tools.specs(self.draft.mode, &named))
    }

    /// The frontmatter of a document that the turn writes now.
    pub(super) fn meta(&self, kind: &str) -> Meta {
        let user = self.turns.documents.user();
        Meta::for_turn(self.draft.number, kind, user, self.clock.last()).holding(&[], &[] as &[Tag])
    }

    /// Saves everything that is needed to resume the turn from here.
    pub(super) fn checkpoint(&mut self) -> Result<(), TurnError> {
        // A section may have been condensed by a model since the last run of a recipe.
        self.budget.settle(&mut self.state);
        self.state.receipts.extend(self.document.condenser.take_asked());
        self.state.spent_ms = self.clock.spent();
        self.state.moment = self.clock.last();
        self.draft.files.insert(CONTEXT.to_owned(), self.document.text.clone().into_bytes());
        let state = self.serialized(&self.state)?;
        let before = std::mem::replace(&mut self.draft.state, state);
        if let Err(error) = self.turns.documents.drafts().checkpoint(&self.draft) {
            // An abandoned turn is saved with the files of its last checkpoint, and needs the state of that.
            self.draft.state = before;
            return Err(error.into());
        }
        self.saved = self.state.clone();
        *self.call_begun.get_mut() = false;
        Ok(())
    }

    /// Saves that the next call of the current round is about to run. A resumed turn does not repeat it.
    pub(super) fn announce_call(&self) -> Result<(), StoreError> {
        self.call_begun.store(true, Ordering::Relaxed);
        let mut saved = self.saved.clone();
        if let Some(round) = saved.rounds.as_mut().and_then(|rounds| rounds.under_way.as_mut()) {
            round.begun = true;
        }
        let state = serde_json::to_value(saved).unwrap_or_else(|_| self.draft.state.clone());
        self.turns.documents.drafts().save_state(&self.draft, &state)
    }

    /// Saves what an abandoned turn has spent since its last checkpoint, from which it will be resumed, and that a
    /// call made since then must not be repeated.
    pub(super) fn save_abandoned(&mut self) -> Result<(), TurnError> {
        self.budget.settle(&mut self.state);
        let call_begun = *self.call_begun.get_mut();
        let current = self.state.rounds.as_ref().and_then(|rounds| rounds.under_way.as_ref());
        let saved = self.saved.rounds.as_mut().and_then(|rounds| rounds.under_way.as_mut());
        if let (Some(current), Some(saved)) = (current, saved) {
            saved.begun = current.begun || call_begun || current.called.len() > saved.called.len();
        }
        self.saved.usage = self.state.usage;
        self.saved.cost = self.state.cost;
        self.saved.spent_ms = self.clock.spent();
        self.saved.moment = self.clock.last();
        let state = self.serialized(&self.saved)?;
        Ok(self.turns.documents.drafts().save_state(&self.draft, &state)?)
    }

    fn serialized(&self, state: &TurnState) -> Result<serde_json::Value, TurnError> {
        serde_json::to_value(state)
            .map_err(|error| TurnError::State { turn: self.draft.number, reason: error.to_string() })
    }
}
