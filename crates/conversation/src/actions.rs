//! What a participant starts explicitly: calls besides those of each turn, such as a guided meditation, and steps that lead
//! to another stage (R4-7.15 to R4-7.26). What an action gives is the participant's; others see of it what is shared.

use futures::future::{BoxFuture, FutureExt};
use larder_engine::executor::{Meter, ModelSet, ProgressObserver, RunOutcome, SpendingOnly, max_call_usage};
use larder_engine::inputs::InputDocument;
use larder_store::{ConversationMessage, MemoryRecord, NewReply, Speaker};
use larder_text::tokens::Counter;
use serde::Serialize;
use serde_json::Value;

use crate::calls::{TurnCall, total};
use crate::conversation::{Conversation, Conversations, Reply, ReplyRecord};
use crate::error::ConversationError;
use crate::kind::{Action, Block, Condition, ConversationType, Gives, Stage, Trigger};
use crate::memory::Share;
use crate::nearness::QUERY;
use crate::observe::Pieces;
use crate::prepare::Prepared;
use crate::reply::spent;
use crate::sharing::SHARE;
use crate::state::{Happened, ParticipantState};

/// The act of having the assistant speak first in a session.
pub const OPEN: &str = "open";
/// What an opening is asked for.
const OPENING_QUERY: &str = "Begin.";

/// What an action gave.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ActionResult {
    /// Its name.
    pub action: String,
    /// The stage in which the participant is now.
    pub stage: String,
    /// The message of the assistant that it gave, with a draft if it gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Reply>,
    /// Data that it gave, which nobody else has seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub data: Option<Value>,
    /// The calls that were made.
    pub calls: Vec<TurnCall>,
}

/// An action being carried out.
struct Acting<'k> {
    stage: &'k Stage,
    prepared: Prepared<'k>,
    state: ParticipantState,
    before: ParticipantState,
    calls: Vec<TurnCall>,
}

impl Conversation {
    /// Does what a participant asks for by its name: an action that can be requested, one for which everyone has released a
    /// statement, a step that leads on in the participant's stage, or [`OPEN`]. `text` is what the participant says to it.
    ///
    /// # Errors
    /// There is no such action now, a model or the store failed, or a ceiling or the size limit of the store is reached.
    pub fn act<'a>(
        &'a self,
        name: &'a str,
        text: Option<&'a str>,
        observer: &'a dyn ProgressObserver,
    ) -> BoxFuture<'a, Result<ActionResult, ConversationError>> {
        async move {
            let _lease = self.lease().await?;
            self.act_within(name, text, observer).await
        }
        .boxed()
    }

    pub(crate) async fn act_within(
        &self,
        name: &str,
        text: Option<&str>,
        observer: &dyn ProgressObserver,
    ) -> Result<ActionResult, ConversationError> {
        let kind = &self.loaded.kind;
        let (_, state) = self.standing()?;
        let stage = state.stage(kind).ok_or_else(|| self.no_action(name))?;
        if name == OPEN {
            return self.open_session(stage, observer).await;
        }
        let action = kind.actions.get(name).filter(|action| action.fits(stage));
        let is_ready = match action {
            Some(action) if action.on.contains(&Trigger::Request) => true,
            Some(action) if action.on.contains(&Trigger::Released) => {
                self.released_actions()?.iter().any(|ready| ready == name)
            }
            _ => false,
        };
        // What waits for statements is not done by naming it, and a text is shared by its own act alone.
        let waits = action.is_some_and(|action| action.on.contains(&Trigger::Released)) && !is_ready;
        let is_step = name != SHARE && !waits && self.steps(stage).any(|step| step == name);
        if !is_ready && !is_step {
            return Err(self.no_action(name));
        }
        let mut result = ActionResult {
            action: name.to_owned(),
            stage: String::new(),
            reply: None,
            data: None,
            calls: Vec::new(),
        };
        if let Some(action) = action.filter(|_| is_ready) {
            self.require_money()?;
            self.all.engine.store.store().require_room()?;
            let acting = self.acting(stage, &state, text.unwrap_or(&action.about), observer).await?;
            self.run_action((name, action), text, acting, observer, &mut result).await?;
        }
        let (_, mut state) = self.standing()?;
        if is_step {
            let others = self.stages_of_others()?;
            state.act(kind, Happened { action: Some(name), others: &others });
            self.all.store().set_state(self.track(), &serde_json::to_value(&state).unwrap_or_default())?;
        }
        result.stage = state.stage(kind).map(|stage| stage.name.clone()).unwrap_or_default();
        Ok(result)
    }

    /// What a participant can do now, by name.
    ///
    /// # Errors
    /// The store fails.
    pub fn actions(&self) -> Result<Vec<String>, ConversationError> {
        let kind = &self.loaded.kind;
        let (session, state) = self.standing()?;
        let Some(stage) = state.stage(kind) else { return Ok(Vec::new()) };
        let on_request = kind
            .actions
            .iter()
            .filter(|(_, action)| action.fits(stage) && action.on.contains(&Trigger::Request));
        let mut names: Vec<String> = on_request.map(|(name, _)| name.clone()).collect();
        names.extend(self.released_actions()?);
        let waits = |step: &str| {
            let waiting = kind.actions.get(step).filter(|action| action.fits(stage));
            step == SHARE || waiting.is_some_and(|action| action.on.contains(&Trigger::Released))
        };
        names.extend(self.steps(stage).filter(|step| !waits(step)).map(str::to_owned));
        if stage.opening.is_some() && self.messages(Some(session))?.is_empty() {
            names.push(OPEN.to_owned());
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The actions for which every participant has released a statement.
    pub(crate) fn released_actions(&self) -> Result<Vec<String>, ConversationError> {
        let counter = Counter::cl100k();
        let memory = self.memory(&counter);
        let mut ready = Vec::new();
        for (name, action) in &self.loaded.kind.actions {
            if action.on.contains(&Trigger::Released) && !memory.released(name)?.is_empty() {
                ready.push(name.clone());
            }
        }
        Ok(ready)
    }

    /// The explicit steps that lead on from a stage, or are noted as reached in it.
    fn steps<'k>(&'k self, stage: &'k Stage) -> impl Iterator<Item = &'k str> {
        let step = |when: &'k Condition| when.action.as_deref();
        let milestones = self.loaded.kind.milestones.iter().map(|milestone| &milestone.when);
        stage.next.iter().map(|next| &next.when).chain(milestones).filter_map(step)
    }

    fn no_action(&self, name: &str) -> ConversationError {
        let help = match self.actions().unwrap_or_default().as_slice() {
            [] => "there is nothing to do by name now".to_owned(),
            names => format!("use {}", names.join(", ")),
        };
        ConversationError::NoAction { name: name.to_owned(), help }
    }

    /// What an action of this session may read.
    async fn acting(
        &self,
        stage: &Stage,
        state: &ParticipantState,
        text: &str,
        observer: &dyn ProgressObserver,
    ) -> Result<Acting<'_>, ConversationError> {
        let (session, _) = self.standing()?;
        let asked = ConversationMessage {
            number: u64::MAX,
            turn: u64::MAX,
            session,
            speaker: Speaker::Participant,
            text: text.to_owned(),
            pointer: None,
            reply_to: None,
            pending: false,
            data: Value::Null,
            // Days that it names ("yesterday") are seen from now.
            created: self.all.engine.store.store().now(),
        };
        let mut prepared = self.prepare(&asked, state)?;
        let vectors = Meter::new(observer, None, None);
        let near = self.near(&asked, state, &prepared, &vectors).await;
        self.charge_metered((&prepared.stage.name, QUERY), &vectors)?;
        self.complete(&asked, state, &mut prepared, near)?;
        let stage = self.loaded.kind.stage(&stage.name).unwrap_or(prepared.stage);
        Ok(Acting { stage, prepared, state: state.clone(), before: state.clone(), calls: Vec::new() })
    }

    /// Runs an action and those that it leads to. What others released for it is for this purpose alone: the records of its
    /// runs, which who asked for it may read, keep nothing of their texts.
    async fn run_action(
        &self,
        (name, action): (&str, &Action),
        text: Option<&str>,
        acting: Acting<'_>,
        observer: &dyn ProgressObserver,
        result: &mut ActionResult,
    ) -> Result<(), ConversationError> {
        let began = self.all.engine.store.store().now();
        let done = self.run_steps((name, action), text, acting, observer, result).await;
        if action.reads.contains(&Block::Released) {
            let (session, _) = self.standing()?;
            self.all.eraser().runs(self.track(), session, began)?;
        }
        done
    }

    async fn run_steps(
        &self,
        (name, action): (&str, &Action),
        text: Option<&str>,
        mut acting: Acting<'_>,
        observer: &dyn ProgressObserver,
        result: &mut ActionResult,
    ) -> Result<(), ConversationError> {
        let kind = &self.loaded.kind;
        let mut given = Vec::new();
        if action.reads.contains(&Block::Released) {
            given.push((Block::Released, released_text(&self.memory(&Counter::cl100k()).released(name)?)));
        }
        let mut next = Some((name, action));
        while let Some((name, action)) = next.take() {
            // Data is no text to read while it is written.
            let quiet = SpendingOnly(observer);
            let is_read = matches!(action.gives, Gives::Reply | Gives::Draft);
            let pieces = Pieces::new(if is_read { observer } else { &quiet });
            let query = text.unwrap_or(&action.about);
            let documents = self.documents_of(&action.reads, &acting.prepared, &acting.state, &given);
            let outcome =
                self.act_alone(name, &action.recipe, (query, documents), acting.stage, &pieces).await?;
            acting.calls.push(TurnCall::new(name, &outcome));
            match action.gives {
                Gives::Reply | Gives::Draft => {
                    let reply = self.keep(name, action.gives, &mut acting, &outcome, pieces)?;
                    given.push((Block::Result, reply.text.clone()));
                    result.reply = Some(reply);
                }
                Gives::Data | Gives::Verdict => {
                    let own = action.own_entries(outcome.output.clone(), &self.participant);
                    given.push((Block::Result, own.to_string()));
                    self.charge(name, acting.stage, &outcome, std::mem::take(&mut acting.prepared.origins))?;
                    result.data = Some(own);
                }
            }
            next = action.then.as_deref().and_then(|then| Some((then, kind.actions.get(then)?)));
        }
        result.calls = acting.calls;
        Ok(())
    }

    /// Runs the recipe of an action that is no part of a reply. What it spends counts even if it fails.
    pub(crate) async fn act_alone(
        &self,
        name: &str,
        recipe: &str,
        (query, documents): (&str, Vec<InputDocument>),
        stage: &Stage,
        observer: &dyn ProgressObserver,
    ) -> Result<RunOutcome, ConversationError> {
        let meter = Meter::new(observer, None, None);
        let ended = self.act_on(recipe, query, documents, stage, &meter).await;
        if ended.is_err() {
            self.charge_metered((&stage.name, name), &meter)?;
        }
        ended
    }

    /// Stores what an action gave as a message of the assistant.
    fn keep(
        &self,
        name: &str,
        gives: Gives,
        acting: &mut Acting<'_>,
        outcome: &RunOutcome,
        pieces: Pieces<'_>,
    ) -> Result<Reply, ConversationError> {
        let kind = &self.loaded.kind;
        let draft =
            (gives == Gives::Draft).then(|| self.draft_in(outcome).unwrap_or_else(|| outcome.reply.clone()));
        let text =
            if outcome.reply.is_empty() { draft.clone().unwrap_or_default() } else { outcome.reply.clone() };
        let call = TurnCall::new(name, outcome);
        let (usage, cost) = total(std::slice::from_ref(&call));
        let mut window = acting.prepared.record.clone();
        (window.sent, window.shortened, window.summarized) = (Vec::new(), Vec::new(), 0);
        let record = ReplyRecord {
            run: outcome.run_id.to_string(),
            recipe: outcome.receipt.recipe.clone(),
            model: outcome.receipt.model.clone(),
            stage: acting.stage.name.clone(),
            next_stage: acting.stage.name.clone(),
            draft,
            action: Some(name.to_owned()),
            window,
            usage,
            cost,
            latency_ms: outcome.latency_ms,
            problems: outcome.failures.clone(),
            is_cut: outcome.is_cut,
            max_output: self.max_output,
            calls: vec![call],
            pieces: pieces.into_lengths(),
            before: acting.before.clone(),
            ..ReplyRecord::default()
        };
        let written = self.all.store().answer(
            self.track(),
            &NewReply {
                to: None,
                text: &text,
                data: &serde_json::to_value(&record).unwrap_or_default(),
                state: &serde_json::to_value(&acting.state).unwrap_or_default(),
                memory: &std::mem::take(&mut acting.prepared.origins),
                jobs: &[],
                costs: &[spent(&acting.stage.name, name, &usage, cost)],
                chars: kind.window.message_chars,
            },
        )?;
        Ok(self.read_reply(&written))
    }

    /// Notes a call that gave no message: what it cost, its run, and by which right it read what it read.
    pub(crate) fn charge(
        &self,
        name: &str,
        stage: &Stage,
        outcome: &RunOutcome,
        origins: Vec<MemoryRecord>,
    ) -> Result<(), ConversationError> {
        self.all.store().add_cost(self.track(), &spent(&stage.name, name, &outcome.usage, outcome.cost))?;
        let (session, _) = self.standing()?;
        let newest = self.messages(Some(session))?.iter().map(|message| message.number).max().unwrap_or(0);
        let counter = Counter::cl100k();
        self.put_run(self.memory(&counter).ran(outcome.run_id.as_str(), session, newest), origins, None)
    }

    /// Has the assistant speak first in a session without messages, where the stage says so (R4-2.24).
    async fn open_session(
        &self,
        stage: &Stage,
        observer: &dyn ProgressObserver,
    ) -> Result<ActionResult, ConversationError> {
        let (session, state) = self.standing()?;
        let is_empty = self.messages(Some(session))?.is_empty();
        let Some(opening) = stage.opening.as_ref().filter(|_| is_empty) else {
            return Err(self.no_action(OPEN));
        };
        self.require_money()?;
        let engine = &self.all.engine;
        engine.store.store().require_room()?;
        let recipe = engine.find(opening, None).map_err(|source| engine.missing(opening, source))?;
        let reads = Block::OF_REPLY
            .into_iter()
            .filter(|block| recipe.input_docs.iter().any(|doc| doc.name == block.as_str()));
        let reads: Vec<Block> = reads.collect();
        let mut acting = self.acting(stage, &state, OPENING_QUERY, observer).await?;
        let pieces = Pieces::new(observer);
        let documents = self.documents_of(&reads, &acting.prepared, &state, &[]);
        let asked = (OPENING_QUERY, documents);
        let outcome = self.act_alone(OPEN, opening, asked, acting.stage, &pieces).await?;
        let reply = self.keep(OPEN, Gives::Reply, &mut acting, &outcome, pieces)?;
        Ok(ActionResult {
            action: OPEN.to_owned(),
            stage: acting.stage.name.clone(),
            calls: vec![TurnCall::new(OPEN, &outcome)],
            reply: Some(reply),
            data: None,
        })
    }

    /// The most tokens of what an action asks for, and every model that it may ask.
    pub fn action_budget(&self, name: &str) -> (u64, ModelSet) {
        let kind = &self.loaded.kind;
        match name {
            OPEN => self.all.budget_of(kind.stages.iter().filter_map(|stage| stage.opening.as_deref())),
            SHARE => {
                let actions = kind.actions.values().map(|action| action.recipe.as_str());
                self.all.budget_of(actions.chain(kind.safety.attacks.as_deref()))
            }
            name => self.all.budget_of(kind.chain(kind.actions.get(name))),
        }
    }
}

impl Conversations {
    /// The most tokens of one call of each of these recipes, and every model that they may ask.
    pub(crate) fn budget_of<'a>(&self, recipes: impl Iterator<Item = &'a str>) -> (u64, ModelSet) {
        let mut reach = ModelSet::default();
        let mut tokens = 0_u64;
        for recipe in recipes.filter_map(|name| self.engine.find(name, None).ok()) {
            reach.join(self.engine.reachable_models(recipe, None));
            let usage = max_call_usage(recipe);
            tokens = tokens.saturating_add(usage.input).saturating_add(usage.output);
        }
        (tokens, reach)
    }
}

impl ConversationType {
    /// The recipes of an action and of those that it leads to.
    pub(crate) fn chain<'k>(&'k self, first: Option<&'k Action>) -> impl Iterator<Item = &'k str> {
        let then = |action: &&'k Action| action.then.as_ref().and_then(|then| self.actions.get(then));
        let all = std::iter::successors(first, then).take(self.actions.len());
        all.map(|action| action.recipe.as_str())
    }
}

impl Action {
    /// Whether it can be started in a stage.
    pub(crate) fn fits(&self, stage: &Stage) -> bool {
        self.stages.is_empty() || self.stages.contains(&stage.name)
    }

    /// A result without the entries about other participants.
    fn own_entries(&self, mut result: Value, participant: &str) -> Value {
        fn keep(value: &mut Value, field: &str, name: &str) {
            match value {
                Value::Array(items) => {
                    items.retain(|item| item.get(field).is_none_or(|of| of.as_str() == Some(name)));
                    items.iter_mut().for_each(|item| keep(item, field, name));
                }
                Value::Object(fields) => fields.values_mut().for_each(|value| keep(value, field, name)),
                _ => {}
            }
        }
        if let Some(field) = &self.entries_about {
            keep(&mut result, field, participant);
        }
        result
    }
}

/// The statements that were released, with the names of who released them.
fn released_text(released: &[Share]) -> String {
    let texts = released.iter().map(|share| format!("{} wrote:\n{}", share.from, share.text));
    texts.collect::<Vec<_>>().join("\n\n")
}
