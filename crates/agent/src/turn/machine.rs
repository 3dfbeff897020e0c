//! Runs phase after phase, with a checkpoint after each. Knows the order of the phases and nothing of what happens
//! inside one.

use larder_store::{ForegroundWork, TurnDraft, TurnLease};
use larder_text::pointer::Pointer;
use larder_text::sections::SectionId;
use larder_text::tokens::Counter;
use larder_text::words::is_blank;
use larder_vault::{Attachment, Attachments, ContentKind, Meta, Tag};

use super::documents::CONTEXT;
use super::error::{Stop, TurnError};
use super::event::{Events, TurnEvent, TurnObserver};
use super::pasted::{self, DividedQuery};
use super::phase::{PhaseContext, PhaseOutcome};
use super::state::{TurnState, VERSION};
use super::turn_phase::TurnPhase;
use super::{TurnOutcome, TurnRequest, Turns};
use super::{analyze, coordinate, ending, files, gathering, plan, reflect, save, synthesize, validate};

/// A turn that is running.
pub(super) struct Machine<'a> {
    cx: PhaseContext<'a>,
    /// Whether the turn is committed, so that nothing is left to save.
    is_committed: bool,
    /// Keeps other processes from running this turn.
    _lease: TurnLease,
    /// Keeps background work from the model until the turn has ended.
    _first: Option<ForegroundWork>,
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        if self.is_committed {
            return;
        }
        let turn = self.cx.draft.number;
        if let Err(error) = self.cx.save_abandoned() {
            tracing::warn!(%error, turn, "the spending of the abandoned turn since its last checkpoint was not saved");
        }
    }
}

impl<'a> Machine<'a> {
    /// Reserves a number for a turn and writes its §0 (R1-3.72).
    pub(super) fn begin(
        turns: &'a Turns,
        request: &TurnRequest,
        observer: &'a dyn TurnObserver,
    ) -> Result<Self, TurnError> {
        if is_blank(&request.query) {
            return Err(TurnError::EmptyQuery);
        }
        // Editors and tools would take the documents of the turn for binary files.
        if request.query.contains('\0') {
            return Err(TurnError::NulInQuery);
        }
        let divided = pasted::divide(&request.query, &Counter::cl100k());
        let attachments = attachments(turns, &request.query, &divided)?;
        let mut state = None;
        let user = turns.documents.user();
        let draft = turns.documents.drafts().begin_with(
            request.mode,
            request.session.as_deref(),
            &divided.words,
            |draft| {
                let new = TurnState::new(draft.created_at, request.workspace.clone());
                // A state that cannot be serialized is reported by the first checkpoint.
                draft.state = serde_json::to_value(&new).unwrap_or_default();
                let context = opening(draft, user, &attachments);
                draft.files.insert(CONTEXT.to_owned(), context.into_bytes());
                if !attachments.is_empty() {
                    let meta = Meta::for_turn(draft.number, "attachments", user, draft.created_at);
                    let value = Attachments { attachments: attachments.clone() };
                    let at = draft.place.attachments();
                    files::insert_document(draft, &at, meta.holding(&[], &[] as &[Tag]), value);
                }
                state = Some(new);
            },
        )?;
        let lease = turns.documents.leases().acquire(draft.number)?;
        let state = state.unwrap_or_else(|| TurnState::new(draft.created_at, request.workspace.clone()));
        Self::start(turns, draft, state, lease, observer)
    }

    /// Continues a draft from its last checkpoint.
    pub(super) fn resume(
        turns: &'a Turns,
        number: u32,
        observer: &'a dyn TurnObserver,
    ) -> Result<Self, TurnError> {
        let lease = turns.documents.leases().acquire(number)?;
        let draft = turns.documents.drafts().get(number)?.ok_or(TurnError::NoDraft(number))?;
        if lease.is_none() {
            return Err(TurnError::Running(number));
        }
        let invalid = |reason: String| TurnError::State { turn: number, reason };
        let state: TurnState =
            serde_json::from_value(draft.state.clone()).map_err(|error| invalid(error.to_string()))?;
        if state.version != VERSION {
            return Err(invalid(format!("version {}", state.version)));
        }
        Self::start(turns, draft, state, lease, observer)
    }

    fn start(
        turns: &'a Turns,
        draft: TurnDraft,
        state: TurnState,
        lease: Option<TurnLease>,
        observer: &'a dyn TurnObserver,
    ) -> Result<Self, TurnError> {
        let lease = lease.ok_or(TurnError::Running(draft.number))?;
        let events = Events(observer);
        events.send(&TurnEvent::Started { turn: draft.number, folder: draft.place.folder().to_owned() });
        let cx = PhaseContext::new(turns, draft, state, events);
        Ok(Self { cx, is_committed: false, _lease: lease, _first: turns.engine.enter_foreground() })
    }

    /// Runs phase after phase until the turn is committed.
    pub(super) async fn finish(mut self) -> Result<TurnOutcome, TurnError> {
        while self.cx.state.next != TurnPhase::Save {
            self.phase().await?;
        }
        let prepared = save::prepare(&mut self.cx);
        let jobs = save::jobs(&mut self.cx, &prepared);
        self.cx.turns.documents.drafts().commit_with(&self.cx.draft, &jobs)?;
        self.is_committed = true;
        Ok(save::conclude(&mut self.cx, prepared))
    }

    async fn phase(&mut self) -> Result<(), TurnError> {
        let cx = &mut self.cx;
        let phase = cx.state.next;
        let (began, tokens) = (cx.clock.now(), cx.state.tokens());
        cx.events.send(&TurnEvent::Phase {
            number: phase.number(),
            name: phase.name().to_owned(),
            attempt: cx.state.attempt(phase),
        });
        let finished = cx.draft.phase;
        let outcome = match run(phase, cx).await {
            Ok(outcome) => {
                cx.draft.phase = Some(phase.number());
                outcome
            }
            Err(Stop::Fail(reason) | Stop::Unmet { reason, .. }) => {
                ending::fail(&mut cx.state, cx.events, reason)
            }
            Err(Stop::Exhausted(reason)) => ending::exhausted(&mut cx.state, cx.events, &reason),
            Err(stop) => return Err(stop.into_error(cx.draft.number, phase)),
        };
        cx.state.next = outcome.next;
        if let Err(error) = cx.checkpoint() {
            cx.draft.phase = finished;
            return Err(error);
        }
        let tokens = cx.state.tokens().saturating_sub(tokens);
        let millis = cx.clock.millis_since(began);
        cx.events.send(&TurnEvent::PhaseDone { number: phase.number(), tokens, millis, text: outcome.text });
        Ok(())
    }
}

async fn run(phase: TurnPhase, cx: &mut PhaseContext<'_>) -> Result<PhaseOutcome, Stop> {
    match phase {
        TurnPhase::Analyze => analyze::run(cx).await,
        TurnPhase::Reflect => reflect::run(cx).await,
        TurnPhase::Gather => gathering::run(cx).await,
        TurnPhase::Plan => plan::run(cx).await,
        TurnPhase::Coordinate => coordinate::run(cx).await,
        TurnPhase::Synthesize => synthesize::run(cx).await,
        TurnPhase::Validate => validate::run(cx).await,
        TurnPhase::Save => Ok(PhaseOutcome::new(TurnPhase::Save, "")),
    }
}

/// What was pasted into a query. The query as typed is stored, so that each pointer gives back what was pasted.
fn attachments(turns: &Turns, typed: &str, divided: &DividedQuery) -> Result<Vec<Attachment>, TurnError> {
    if divided.pasted.is_empty() {
        return Ok(Vec::new());
    }
    let whole = turns.engine.store.pointers().insert(typed.as_bytes(), "query", "a query as it was typed")?;
    let attachment = |(number, pasted): (u32, &pasted::Pasted)| {
        let content = &typed[pasted.bytes.clone()];
        Attachment {
            number,
            kind: pasted.kind.to_owned(),
            words: content.split_whitespace().count() as u64,
            original: Some(Pointer::bytes(whole.pointer_id.id.clone(), pasted.bytes.clone())),
            content: content.to_owned(),
        }
    };
    Ok((1..).zip(&divided.pasted).map(attachment).collect())
}

/// `context.md` with its §0 (R1-3.72): the user's own words, and a line for each attachment (C30).
fn opening(draft: &TurnDraft, user: &str, attachments: &[Attachment]) -> String {
    let meta = Meta::for_turn(draft.number, "context", user, draft.created_at)
        .holding(&[ContentKind::Context], &[Tag::Context]);
    let lines: Vec<String> = attachments.iter().map(Attachment::line).collect();
    let mut query = draft.query.clone();
    if !lines.is_empty() {
        query += &format!("\n\n{}", lines.join("\n"));
    }
    let mut context = meta.write().as_str().to_owned();
    let body = larder_vault::query_body(&query);
    context += &larder_vault::append_section(&context, SectionId::UserQuery, &body);
    context
}
