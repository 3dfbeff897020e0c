//! How a message is answered: what rules find in it, what of the past is sent, one run of the stage's recipe, and the
//! commit of the reply with everything that follows from it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures::future::{BoxFuture, FutureExt};
use larder_core::pack::Receipt;
use larder_core::recipe::Recipe;
use larder_engine::executor::{Meter, ProgressObserver, RunError, RunOutcome, Spending, SpendingOnly};
use larder_engine::inputs::{BudgetLimits, InputDocument, RunInput};
use larder_engine::routing::RouteInput;
use larder_store::{ConversationCost, ConversationMessage, NewReply, Speaker};
use larder_text::message::Role;
use larder_text::price::Usd;
use larder_text::usage::Usage;
use serde_json::Value;

use crate::background;
use crate::blocks::Block;
use crate::calls::{self, TurnCall};
use crate::conversation::{Conversation, Reply, ReplyRecord, WindowRecord};
use crate::error::ConversationError;
use crate::kind::{Action, Block as Input, Gives, Stage, Trigger};
use crate::nearness::QUERY;
use crate::observe::Pieces;
use crate::prepare::Prepared;
use crate::state::{Happened, ParticipantState};
use crate::window::PastMessage;

/// The slots of a reply's recipe that hold the system prompt and the history.
const SYSTEM: &str = "system";
const HISTORY: &str = "history";

/// What replies are called among the costs.
pub(crate) const REPLY: &str = "reply";

/// What was said in the turn.
#[derive(Default)]
struct Said {
    text: String,
    fields: BTreeMap<String, String>,
    intensity: Option<u8>,
    draft: Option<String>,
    action: Option<String>,
    /// Whether it was cut short, at the most tokens that it may have or by the model's decoder.
    is_cut: bool,
    /// The most tokens that its reader wants.
    max_output: Option<usize>,
    calls: Vec<TurnCall>,
    problems: Vec<String>,
    /// What the reply tells of earlier messages.
    notices: Vec<String>,
    /// What the vector of the message cost.
    vectors: Spending,
}

/// What holds for a reply besides its message.
#[derive(Default)]
struct Asked {
    /// The most tokens that its reader wants.
    max_output: Option<usize>,
    /// What it tells of earlier messages.
    notices: Vec<String>,
}

impl Conversation {
    /// Answers a message that was posted, after those that were posted before it. One that was answered already keeps its
    /// reply. `observer` may be passed the text as it is written; if the reply fails, the message waits for another try.
    ///
    /// # Errors
    /// A model or the store failed, or a ceiling is reached.
    pub fn answer<'a>(
        &'a self,
        number: u64,
        observer: &'a dyn ProgressObserver,
    ) -> BoxFuture<'a, Result<Reply, ConversationError>> {
        async move {
            let _lease = self.lease().await?;
            let waiting = self.all.store().pending(self.track())?;
            if let Some(at) = waiting.iter().position(|message| message.number == number) {
                let mut notices = Vec::new();
                for earlier in &waiting[..at] {
                    // Nobody waits for this reply any more, but the next one is to follow it.
                    let quiet = SpendingOnly(observer);
                    if let Err(error) = self.write_reply(earlier, Asked::default(), &quiet).await {
                        tracing::warn!(%error, message = earlier.number, "a message stays without reply");
                        self.all.store().leave(self.track(), earlier.number)?;
                        let why = match error {
                            ConversationError::TooLong { .. } => "it is too long; send it in parts",
                            _ => "its model failed again; send it again to have it answered",
                        };
                        notices
                            .push(format!("Message {} stays without a reply, since {why}.", earlier.number));
                    }
                }
                let asked = Asked { max_output: self.max_output, notices };
                return self.write_reply(&waiting[at], asked, observer).await;
            }
            self.written(number)?.ok_or_else(|| larder_store::StoreError::UnknownMessage { number }.into())
        }
        .boxed()
    }

    /// The reply to a message, if it was written.
    ///
    /// # Errors
    /// The store fails.
    pub fn written(&self, number: u64) -> Result<Option<Reply>, ConversationError> {
        let found = self.all.store().reply_to(self.track(), number)?;
        Ok(found.map(|message| self.read_reply(&message)))
    }

    /// A stored message of the assistant as a reply.
    pub fn read_reply(&self, message: &ConversationMessage) -> Reply {
        let record = self.record_of(message);
        Reply {
            number: message.number,
            to: message.reply_to,
            text: message.text.clone(),
            next_stage: record.next_stage,
            stage: record.stage,
            draft: record.draft,
            action: record.action,
            safety: record.window.safety,
            is_cut: record.is_cut,
            left_out: record.window.left_out,
            model: record.model,
            usage: record.usage,
            cost: record.cost,
            latency_ms: record.latency_ms,
            problems: record.problems,
            notices: record.notices,
        }
    }

    async fn write_reply(
        &self,
        message: &ConversationMessage,
        asked: Asked,
        observer: &dyn ProgressObserver,
    ) -> Result<Reply, ConversationError> {
        self.require_money()?;
        let (_, before) = self.standing()?;
        let (meter, vectors) = (Meter::new(observer, None, None), Meter::new(observer, None, None));
        let written = self.try_reply((message, asked), before.clone(), (&meter, &vectors)).await;
        if written.is_err() {
            let stage = before.stage(&self.loaded.kind).map_or("", |stage| stage.name.as_str());
            self.charge_metered((stage, REPLY), &meter)?;
            self.charge_metered((stage, QUERY), &vectors)?;
        }
        if matches!(written, Err(ConversationError::TooLong { .. })) {
            // It would be refused again.
            self.all.store().leave(self.track(), message.number)?;
        }
        written
    }

    /// Writes a reply. `meter` counts what is spent on it, except for vectors, which `vectors` counts.
    async fn try_reply(
        &self,
        (message, asked): (&ConversationMessage, Asked),
        before: ParticipantState,
        (meter, vectors): (&Meter<'_>, &Meter<'_>),
    ) -> Result<Reply, ConversationError> {
        let began = Instant::now();
        // A message is answered where its session is held, even if another has begun meanwhile.
        let mut state = ParticipantState { aside: self.aside_of(message.session)?, ..before.clone() };
        let mut prepared = self.prepare(message, &state)?;
        let near = self.near(message, &state, &prepared, vectors);
        let (near, mut calls) = tokio::join!(near, self.plan(message, &mut state, &mut prepared, meter));
        self.complete(message, &state, &mut prepared, near)?;
        self.renew_budgets(message.session, &mut prepared.record, &mut state)?;
        let pieces = Pieces::new(meter);
        let mut input = RunInput {
            query: Some(message.text.clone()),
            documents: documents(&prepared.blocks),
            history: prepared.window.sent.clone(),
            variant: Some(prepared.stage.name.clone()),
            session_id: Some(self.session_id(message.session)),
            turn_id: Some(format!("turn_{:06}", state.turns.saturating_add(1))),
            routing: self.routing(&state, prepared.found.intensity, prepared.record.safety),
            max_output: asked.max_output,
            limits: state.budgets.limits(&self.loaded.kind, &prepared.recipe),
            tags_read: Some(self.loaded.kind.fields.tags()),
            ..RunInput::default()
        };
        let engine = &self.all.engine;
        let mut ended = engine.run(&prepared.recipe, &input, &pieces).await;
        if matches!(ended, Err(RunError::Refused { .. })) && input.limits != BudgetLimits::default() {
            // What the type allows is never refused for what was learned.
            (input.limits, prepared.record.revision) = (BudgetLimits::default(), 0);
            ended = engine.run(&prepared.recipe, &input, &pieces).await;
        }
        let outcome = ended.map_err(ConversationError::of_reply)?;
        calls.push(TurnCall::new(REPLY, &outcome));
        let mut said = Said {
            calls,
            notices: asked.notices,
            max_output: asked.max_output,
            ..self.said(&outcome, prepared.stage)
        };
        if let Some(name) = said.action.clone() {
            self.dispatch(&name, message, &prepared, &state, &pieces, &mut said).await?;
        }
        said.vectors = vectors.total();
        self.commit(message, prepared, (before, state), said, (&outcome, pieces, began))
    }

    /// What the router is told: the intensity of the message or of the last reply, and the tier that safety demands.
    pub(crate) fn routing(&self, state: &ParticipantState, found: Option<u8>, safety: bool) -> RouteInput {
        let kind = &self.loaded.kind;
        let intensity = found.max(state.intensity()).map(|value| ("intensity".to_owned(), value.into()));
        RouteInput {
            preset: kind.router.clone(),
            fields: intensity.into_iter().collect(),
            floor: kind.safety.tier.clone().filter(|_| safety),
        }
    }

    /// What a reply says, its fields apart from its text.
    fn said(&self, outcome: &RunOutcome, stage: &Stage) -> Said {
        let rules = &self.loaded.kind.fields;
        let tag = |name: &Option<String>| name.as_deref().and_then(|name| outcome.output.get(name));
        let text =
            |value: &Value| value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let mut fields = BTreeMap::new();
        for (name, value) in tag(&rules.tag).and_then(Value::as_object).into_iter().flatten() {
            let counts_elsewhere = self.loaded.kind.stages.iter().any(|other| other.fields.contains(name))
                && !stage.fields.contains(name);
            if !counts_elsewhere {
                fields.insert(name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            }
        }
        let intensity = rules.intensity.as_ref().and_then(|name| fields.get(name));
        Said {
            text: outcome.reply.clone(),
            intensity: intensity
                .and_then(|value| value.trim().parse().ok())
                .filter(|value| (1..=10).contains(value)),
            draft: tag(&rules.draft).and_then(text),
            action: tag(&rules.dispatch).and_then(text),
            fields,
            is_cut: outcome.is_cut,
            max_output: None,
            calls: Vec::new(),
            problems: outcome.failures.clone(),
            notices: Vec::new(),
            vectors: Spending::default(),
        }
    }

    /// Runs the action that a reply names in place of its text.
    async fn dispatch(
        &self,
        name: &str,
        message: &ConversationMessage,
        prepared: &Prepared<'_>,
        state: &ParticipantState,
        pieces: &Pieces<'_>,
        said: &mut Said,
    ) -> Result<(), ConversationError> {
        let actions = &self.loaded.kind.actions;
        let named = actions.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let may = |action: &Action| action.on.contains(&Trigger::Dispatch) && action.fits(prepared.stage);
        let Some((known, action)) = named.filter(|(_, action)| may(action)) else {
            said.problems.push(format!("the reply names an action {name:?} that it cannot start here"));
            said.action = None;
            return Ok(());
        };
        // What was said besides is void: the action speaks in its place.
        if !said.text.is_empty() {
            pieces.restarted();
        }
        let documents = self.documents_of(&action.reads, prepared, state, &[]);
        let outcome = self.act_on(&action.recipe, &message.text, documents, prepared.stage, pieces).await?;
        said.action = Some(known.clone());
        said.calls.push(TurnCall::new(known, &outcome));
        said.is_cut = outcome.is_cut;
        match action.gives {
            Gives::Draft => {
                let draft = self.draft_in(&outcome).unwrap_or_else(|| outcome.reply.clone());
                said.text = if outcome.reply.is_empty() { draft.clone() } else { outcome.reply };
                said.draft = Some(draft);
            }
            _ => (said.text, said.draft) = (outcome.reply, None),
        }
        Ok(())
    }

    /// A text in a reply that may be shared.
    pub(crate) fn draft_in(&self, outcome: &RunOutcome) -> Option<String> {
        let draft = outcome.output.get(self.loaded.kind.fields.draft.as_deref()?)?.as_str()?.trim();
        (!draft.is_empty()).then(|| draft.to_owned())
    }

    /// Runs the recipe of an action; if it has variants, that of the stage.
    pub(crate) async fn act_on(
        &self,
        recipe: &str,
        query: &str,
        documents: Vec<InputDocument>,
        stage: &Stage,
        observer: &dyn ProgressObserver,
    ) -> Result<RunOutcome, ConversationError> {
        let (session, _) = self.standing()?;
        let has_variant = |recipe: &Recipe| recipe.variant(Some(&stage.name)).is_some();
        let input = RunInput {
            query: Some(query.to_owned()),
            documents,
            variant: Some(stage.name.clone())
                .filter(|_| self.all.engine.find(recipe, None).is_ok_and(has_variant)),
            session_id: Some(self.session_id(session)),
            max_output: self.max_output,
            tags_read: Some(self.loaded.kind.fields.tags()),
            ..RunInput::default()
        };
        Ok(self.all.engine.run(recipe, &input, observer).await?)
    }

    fn commit(
        &self,
        message: &ConversationMessage,
        prepared: Prepared<'_>,
        (before, state): (ParticipantState, ParticipantState),
        said: Said,
        (outcome, pieces, began): (&RunOutcome, Pieces<'_>, Instant),
    ) -> Result<Reply, ConversationError> {
        let kind = &self.loaded.kind;
        let jobs = background::after_reply(self, message, &prepared, &state);
        let Prepared { stage, mut record, recipe, origins, .. } = prepared;
        sizes(&mut record, &outcome.receipt.receipt);
        record.reported_tokens = outcome.usage.input;
        let (usage, cost) = calls::total(&said.calls);
        let mut next = state;
        let mut notices = std::mem::take(&mut next.notices);
        notices.extend(said.notices);
        let vectors = said.vectors;
        if kind.trusts_fields_of(&recipe) {
            next.heard(&said.fields, said.intensity);
        } else {
            next.heard(&BTreeMap::new(), None);
        }
        let others = self.stages_of_others()?;
        next.advance(kind, Happened { action: None, others: &others });
        let next_stage = next.stage(kind).map(|stage| stage.name.clone()).unwrap_or_default();
        next.aside.clone_from(&before.aside);
        let record = ReplyRecord {
            run: outcome.run_id.to_string(),
            more_runs: said
                .calls
                .iter()
                .map(|call| call.run.clone())
                .filter(|run| *run != outcome.run_id.to_string())
                .collect(),
            recipe,
            model: outcome.receipt.model.clone(),
            stage: stage.name.clone(),
            next_stage,
            fields: said.fields,
            draft: said.draft,
            action: said.action,
            window: record,
            usage,
            cost,
            latency_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            problems: said.problems,
            notices,
            is_cut: said.is_cut,
            max_output: said.max_output,
            calls: said.calls,
            pieces: pieces.into_lengths(),
            before,
        };
        self.log(&record);
        let data = serde_json::to_value(&record).unwrap_or_default();
        let costs = [
            spent(&record.stage, REPLY, &record.usage, record.cost),
            spent(&record.stage, QUERY, &vectors.usage, vectors.cost),
        ];
        let written = self.all.store().answer(
            self.track(),
            &NewReply {
                to: Some(message.number),
                text: &said.text,
                data: &data,
                state: &serde_json::to_value(&next).unwrap_or_default(),
                memory: &origins,
                jobs: &jobs,
                costs: if vectors.usage.input > 0 { &costs } else { &costs[..1] },
                chars: kind.window.message_chars,
            },
        )?;
        Ok(self.read_reply(&written))
    }

    /// The sizes of what was sent (R4-8.7).
    fn log(&self, record: &ReplyRecord) {
        let block = |names: &[&str]| -> usize {
            let named = record.window.blocks.iter().filter(|(name, _)| names.contains(&name.as_str()));
            named.map(|(_, tokens)| tokens).sum()
        };
        tracing::info!(
            event = "context_sizes",
            conversation = self.id,
            pinned = record.window.system_tokens,
            summary = block(&["summary"]),
            recent = record.window.history_tokens,
            rag = block(&["facts", "reflections", "earlier", "related"]),
            counted = counted(&record.window),
            reported = record.window.reported_tokens,
            unused = record.window.unused_tokens,
            reserved = record.window.reserved_tokens,
            revision = record.window.revision,
            run_id = record.run,
            "the window of a reply"
        );
    }

    /// The aside in which a session is held.
    fn aside_of(&self, session: u64) -> Result<Option<String>, ConversationError> {
        let sessions = self.all.store().sessions(self.track())?;
        let held = sessions.iter().find(|held| held.session == session);
        Ok(held.and_then(|held| held.opening["aside"].as_str()).map(str::to_owned))
    }

    /// The id of a session in records of runs.
    pub(crate) fn session_id(&self, session: u64) -> String {
        format!("{}/{}/{session}", self.id, self.participant)
    }
}

/// What a call cost, for the sums of the conversation.
pub(crate) fn spent<'a>(
    stage: &'a str,
    call: &'a str,
    usage: &Usage,
    cost: Option<Usd>,
) -> ConversationCost<'a> {
    ConversationCost {
        stage,
        call,
        input: usage.input,
        cached_input: usage.cached_input,
        output: usage.output,
        picos: cost.unwrap_or_default().picos(),
    }
}

/// A stored message as the window sees it.
pub(crate) fn past(message: &ConversationMessage) -> PastMessage {
    PastMessage {
        number: message.number,
        role: match message.speaker {
            Speaker::Participant => Role::User,
            Speaker::Assistant => Role::Assistant,
        },
        text: Arc::from(message.text.as_str()),
        pointer: message.pointer.as_ref().map(ToString::to_string).unwrap_or_default(),
    }
}

/// A message as a line of a document: its number, who says it, and what.
pub(crate) fn line(number: u64, role: Role, text: &str) -> String {
    let who = if role == Role::Assistant { "Assistant" } else { "User" };
    format!("[{number}] {who}: {}", crate::blocks::plain(text))
}

fn documents(blocks: &[Block]) -> Vec<InputDocument> {
    let document =
        |block: &Block| InputDocument::whole(block.input.as_str(), block.input.as_str(), block.text.as_str());
    blocks.iter().map(document).collect()
}

/// The tokens of the prompt as they were counted.
const fn counted(window: &WindowRecord) -> usize {
    window.system_tokens + window.history_tokens + window.last_tokens
}

/// Sizes of the prompt, from its receipt.
fn sizes(record: &mut WindowRecord, receipt: &Receipt) {
    let slot = |name: &str| {
        receipt.budget.slots.iter().filter(|slot| slot.name == name).map(|slot| slot.tokens).sum()
    };
    (record.system_tokens, record.history_tokens) = (slot(SYSTEM), slot(HISTORY));
    record.last_tokens = receipt.total.saturating_sub(record.system_tokens + record.history_tokens);
    record.available_tokens = receipt.budget.available;
    record.reserved_tokens = receipt.budget.limits.output;
    record.unused_tokens = record.available_tokens.saturating_sub(receipt.total);
    let shown =
        receipt.parts.iter().filter(|part| Input::OF_REPLY.iter().any(|input| input.as_str() == &*part.id));
    record.blocks = shown.map(|part| (part.id.to_string(), part.tokens)).collect();
    let absent = |tokens: usize| tokens == 0;
    record.left_out =
        receipt.parts.iter().filter(|part| &*part.slot == HISTORY && absent(part.tokens)).count();
}
