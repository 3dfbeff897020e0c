//! How a message is answered: what rules find in it, what of the past is sent, one run of the stage's recipe, and the
//! commit of the reply with everything that follows from it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use larder_core::output::OutputEvent;
use larder_core::pack::Receipt;
use larder_engine::executor::{ProgressObserver, RunOutcome, RunReceipt};
use larder_engine::inputs::{InputDocument, RunInput};
use larder_store::{ConversationCost, ConversationMessage, NewReply, Speaker};
use larder_text::message::Role;
use larder_text::price::Usd;
use larder_text::usage::Usage;
use serde_json::Value;

use crate::background;
use crate::blocks::{Block, BlockSources, blocks};
use crate::conversation::{Conversation, ConversationError, Reply, ReplyRecord, WindowRecord};
use crate::intent::{self, Found};
use crate::kind::{Block as Input, Gives, Stage, Trigger};
use crate::state::{Happened, ParticipantState};
use crate::window::{Coverage, HistoryRules, PastMessage, SessionWindow, choose};

/// The slots of a reply's recipe that hold the system prompt and the history.
const SYSTEM: &str = "system";
const HISTORY: &str = "history";

/// What replies are called among the costs.
const REPLY: &str = "reply";

/// What is known before the reply is asked for.
pub(crate) struct Prepared<'k> {
    pub stage: &'k Stage,
    pub found: Found,
    /// The messages before this one.
    pub past: Vec<PastMessage>,
    pub window: SessionWindow,
    pub sources: BlockSources,
    pub blocks: Vec<Block>,
    pub record: WindowRecord,
    /// The recipe, which depends on the window of the model.
    pub recipe: String,
}

/// What was said in the turn.
#[derive(Default)]
struct Said {
    text: String,
    fields: BTreeMap<String, String>,
    intensity: Option<u8>,
    draft: Option<String>,
    action: Option<String>,
    more_runs: Vec<String>,
    usage: Usage,
    cost: Option<Usd>,
    problems: Vec<String>,
}

impl Conversation {
    /// Answers a message that was posted, after those that were posted before it. One that was answered already keeps its
    /// reply. `observer` may be passed the text as it is written; if the reply fails, the message waits for another try.
    ///
    /// # Errors
    /// A model or the store failed, or a ceiling is reached.
    pub async fn answer(
        &self,
        number: u64,
        observer: &dyn ProgressObserver,
    ) -> Result<Reply, ConversationError> {
        let _lease = self.lease().await?;
        for waiting in self.all.store().pending(self.track())? {
            if waiting.number == number {
                return self.write_reply(&waiting, observer).await;
            }
            if waiting.number > number {
                break;
            }
            // Nobody waits for this reply any more, but the next one is to follow it.
            if let Err(error) = self.write_reply(&waiting, &Quiet(observer)).await {
                tracing::warn!(%error, message = waiting.number, "a message stays without reply");
                self.all.store().leave(self.track(), waiting.number)?;
            }
        }
        self.written(number)?.ok_or_else(|| larder_store::StoreError::UnknownMessage { number }.into())
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
        let record: ReplyRecord = serde_json::from_value(message.data.clone()).unwrap_or_default();
        Reply {
            number: message.number,
            to: message.reply_to,
            text: message.text.clone(),
            next_stage: record.next_stage,
            stage: record.stage,
            draft: record.draft,
            action: record.action,
            safety: record.window.safety,
            model: record.model,
            usage: record.usage,
            cost: record.cost,
            latency_ms: record.latency_ms,
            problems: record.problems,
        }
    }

    async fn write_reply(
        &self,
        message: &ConversationMessage,
        observer: &dyn ProgressObserver,
    ) -> Result<Reply, ConversationError> {
        let began = Instant::now();
        self.require_money()?;
        let (_, state) = self.standing()?;
        let prepared = self.prepare(message, &state)?;
        let pieces = Pieces { observer, lengths: Mutex::default() };
        let input = RunInput {
            query: Some(message.text.clone()),
            documents: documents(&prepared.blocks),
            history: prepared.window.sent.clone(),
            variant: Some(prepared.stage.name.clone()),
            session_id: Some(self.session_id(message.session)),
            turn_id: Some(format!("turn_{:06}", state.turns.saturating_add(1))),
            ..RunInput::default()
        };
        let outcome = self.all.engine.run(&prepared.recipe, &input, &pieces).await?;
        let mut said = self.said(&outcome, prepared.stage);
        if let Some(name) = said.action.clone() {
            self.dispatch(&name, message, &prepared, &state, &pieces, &mut said).await?;
        }
        self.commit(message, prepared, state, said, (&outcome, pieces, began))
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
            more_runs: Vec::new(),
            usage: outcome.usage,
            cost: outcome.cost,
            problems: outcome.failures.clone(),
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
        let may = |on: &[Trigger]| on.contains(&Trigger::Dispatch);
        let Some((known, action)) = named.filter(|(_, action)| may(&action.on)) else {
            said.problems.push(format!("the reply names an action {name:?} that does not exist"));
            said.action = None;
            return Ok(());
        };
        if !said.text.is_empty() {
            pieces.output(&OutputEvent::Reply("\n\n".to_owned()));
        }
        let documents = self.documents_of(&action.reads, prepared, state, None);
        let outcome = self.act_on(&action.recipe, &message.text, documents, message.session, pieces).await?;
        said.action = Some(known.clone());
        said.more_runs.push(outcome.run_id.to_string());
        said.usage += outcome.usage;
        said.cost = match (said.cost, outcome.cost) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        match action.gives {
            Gives::Draft => said.draft = Some(outcome.reply),
            _ if said.text.is_empty() => said.text = outcome.reply,
            _ => said.text = format!("{}\n\n{}", said.text, outcome.reply),
        }
        Ok(())
    }

    /// Runs the recipe of an action.
    pub(crate) async fn act_on(
        &self,
        recipe: &str,
        query: &str,
        documents: Vec<InputDocument>,
        session: u64,
        observer: &dyn ProgressObserver,
    ) -> Result<RunOutcome, ConversationError> {
        let input = RunInput {
            query: Some(query.to_owned()),
            documents,
            session_id: Some(self.session_id(session)),
            ..RunInput::default()
        };
        Ok(self.all.engine.run(recipe, &input, observer).await?)
    }

    fn commit(
        &self,
        message: &ConversationMessage,
        prepared: Prepared<'_>,
        state: ParticipantState,
        said: Said,
        (outcome, pieces, began): (&RunOutcome, Pieces<'_>, Instant),
    ) -> Result<Reply, ConversationError> {
        let kind = &self.loaded.kind;
        let Prepared { stage, mut record, past, recipe, .. } = prepared;
        sizes(&mut record, &outcome.receipt.receipt);
        let mut next = state.clone();
        next.heard(&said.fields, said.intensity);
        let others = self.other_stages()?;
        next.advance(kind, Happened { action: None, others: &others });
        let record = ReplyRecord {
            run: outcome.run_id.to_string(),
            more_runs: said.more_runs,
            recipe,
            model: outcome.receipt.model.clone(),
            stage: stage.name.clone(),
            next_stage: next.stage(kind).map(|stage| stage.name.clone()).unwrap_or_default(),
            fields: said.fields,
            draft: said.draft,
            action: said.action,
            window: record,
            usage: said.usage,
            cost: said.cost,
            latency_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            problems: said.problems,
            pieces: pieces.lengths.into_inner().unwrap_or_else(PoisonError::into_inner),
            before: state,
        };
        self.log(&record);
        let data = serde_json::to_value(&record).unwrap_or_default();
        let jobs = background::after_reply(self, message, past.len() + 2, stage);
        let written = self.all.store().answer(
            self.track(),
            &NewReply {
                to: Some(message.number),
                text: &said.text,
                data: &data,
                state: &serde_json::to_value(&next).unwrap_or_default(),
                memory: &[],
                jobs: &jobs,
                cost: spent(&record.stage, REPLY, &record.usage, record.cost),
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
            unused = record.window.available_tokens.saturating_sub(
                record.window.system_tokens + record.window.history_tokens + record.window.last_tokens
            ),
            run_id = record.run,
            "the window of a reply"
        );
    }

    /// Everything that is decided before a model is asked.
    pub(crate) fn prepare(
        &self,
        message: &ConversationMessage,
        state: &ParticipantState,
    ) -> Result<Prepared<'_>, ConversationError> {
        let kind = &self.loaded.kind;
        let stage = state.stage(kind).ok_or_else(|| ConversationError::NoAside {
            name: state.aside.clone().unwrap_or_default(),
            help: format!("the type {} has no stage", kind.name),
        })?;
        let found = intent::find(&kind.intents, &message.text);
        let safety = kind.safety.from_intensity.is_some_and(|from| {
            found.intensity.is_some_and(|now| now >= from)
                || state.intensity().is_some_and(|last| last >= from)
        });
        let (rules, recipe) = kind.for_window(self.window_of(&kind.recipe)?);
        let past = self.past(message)?;
        let summary = if found.memory.is_some_and(intent::MemoryIntent::withholds) {
            None
        } else {
            self.summary(message.session)?
        };
        let watermark = summary.as_ref().map(|(watermark, _)| *watermark);
        let window = choose(&past, watermark, &HistoryRules::of(kind, stage, &rules), &found);
        let count = |wanted: fn(&Coverage) -> bool| window.coverage.iter().filter(|one| wanted(one)).count();
        let sent = past.iter().zip(&window.coverage).filter(|(_, covered)| **covered == Coverage::Sent);
        let record = WindowRecord {
            sent: sent.map(|(message, _)| message.number).collect(),
            summarized: count(|one| matches!(one, Coverage::Summarized)),
            withheld: count(|one| matches!(one, Coverage::Withheld(_))),
            intent: found.memory,
            watermark,
            safety,
            ..WindowRecord::default()
        };
        let mut prepared = Prepared {
            stage,
            found,
            past,
            window,
            sources: BlockSources::default(),
            blocks: Vec::new(),
            record,
            recipe: recipe.to_owned(),
        };
        self.gather(message, state, summary.map(|(_, value)| value), &mut prepared)?;
        prepared.blocks = blocks(&kind.fields, state, &prepared.sources);
        Ok(prepared)
    }

    /// The tokens of the window of the model that answers by a recipe.
    fn window_of(&self, recipe: &str) -> Result<usize, ConversationError> {
        let engine = &self.all.engine;
        let layer = engine.find(recipe, None).map_err(|source| engine.missing(recipe, source))?.layer;
        Ok(engine.candidate(layer, None)?.spec.window)
    }

    /// The messages of the session before this one, as they were written.
    fn past(&self, message: &ConversationMessage) -> Result<Vec<PastMessage>, ConversationError> {
        let messages = self.all.store().messages(self.track(), message.session, 0..message.number)?;
        Ok(messages.iter().map(past).collect())
    }

    /// The texts that blocks are made of, as far as the intents and the safety rules allow.
    fn gather(
        &self,
        message: &ConversationMessage,
        state: &ParticipantState,
        summary: Option<Value>,
        prepared: &mut Prepared<'_>,
    ) -> Result<(), ConversationError> {
        let (kind, found) = (&self.loaded.kind, prepared.found);
        let mut pieces: Vec<&str> = Vec::new();
        let mut piece = |path: &Option<String>| {
            if let Some(text) =
                path.as_deref().map(|path| self.loaded.text(path)).filter(|text| !text.is_empty())
            {
                pieces.push(text.trim());
            }
        };
        if prepared.record.safety {
            piece(&kind.safety.text);
        }
        if found.asks_about_process {
            piece(&kind.pieces.process_overview);
        }
        if state.came_from.is_some() {
            piece(
                prepared
                    .stage
                    .transition
                    .as_ref()
                    .map_or(&kind.pieces.transition, |_| &prepared.stage.transition),
            );
        }
        if state.just_shared {
            piece(&kind.pieces.post_share);
        }
        if found.memory == Some(intent::MemoryIntent::AvoidRecall) {
            piece(&kind.pieces.avoid_recall);
        }
        if found.asks_to_remember {
            piece(&kind.pieces.memory_request);
        }
        prepared.sources.pieces = pieces.into_iter().map(str::to_owned).collect();
        if found.memory.is_some_and(intent::MemoryIntent::withholds) {
            return Ok(());
        }
        prepared.sources.summary = summary;
        self.recall(message, state, prepared)
    }

    /// The documents that an action reads, of what a reply has and of what it asks for besides.
    pub(crate) fn documents_of(
        &self,
        reads: &[Input],
        prepared: &Prepared<'_>,
        state: &ParticipantState,
        given: Option<(Input, &str)>,
    ) -> Vec<InputDocument> {
        let own = |input: Input| match input {
            Input::Messages => {
                let lines = prepared.past.iter().map(|one| line(one.number, one.role, &one.text));
                Some(lines.collect::<Vec<_>>().join("\n"))
            }
            Input::Process => Some(self.process(state)),
            _ => prepared.blocks.iter().find(|block| block.input == input).map(|block| block.text.clone()),
        };
        let text = |input: Input| match given {
            Some((given, text)) if given == input => Some(text.to_owned()),
            _ => own(input),
        };
        let documents = reads.iter().filter_map(|&input| Some((input, text(input)?)));
        documents.map(|(input, text)| InputDocument::whole(input.as_str(), input.as_str(), text)).collect()
    }

    /// The stages of the main line, and which of them the participant is in.
    fn process(&self, state: &ParticipantState) -> String {
        let kind = &self.loaded.kind;
        let here = state.stage(kind).map(|stage| stage.name.as_str());
        let told = kind.stages.iter().filter_map(|stage| Some((stage, stage.about.as_deref()?)));
        let lines = told.map(|(stage, about)| {
            let mark = if Some(stage.name.as_str()) == here { " (here)" } else { "" };
            format!("- {}{mark}: {}", stage.name, about.trim())
        });
        lines.collect::<Vec<_>>().join("\n")
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

/// Sizes of the prompt, from its receipt.
fn sizes(record: &mut WindowRecord, receipt: &Receipt) {
    let slot = |name: &str| {
        receipt.budget.slots.iter().filter(|slot| slot.name == name).map(|slot| slot.tokens).sum()
    };
    (record.system_tokens, record.history_tokens) = (slot(SYSTEM), slot(HISTORY));
    record.last_tokens = receipt.total.saturating_sub(record.system_tokens + record.history_tokens);
    record.available_tokens = receipt.budget.available;
    let shown =
        receipt.parts.iter().filter(|part| Input::OF_REPLY.iter().any(|input| input.as_str() == &*part.id));
    record.blocks = shown.map(|part| (part.id.to_string(), part.tokens)).collect();
    let absent = |tokens: usize| tokens == 0;
    record.left_out =
        receipt.parts.iter().filter(|part| &*part.slot == HISTORY && absent(part.tokens)).count();
}

/// Forwards everything, and notes in which pieces the text is passed on.
struct Pieces<'a> {
    observer: &'a dyn ProgressObserver,
    lengths: Mutex<Vec<usize>>,
}

impl Pieces<'_> {
    fn lengths(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        self.lengths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressObserver for Pieces<'_> {
    fn stage(&self, text: &str) {
        self.observer.stage(text);
    }
    fn packed(&self, receipt: &RunReceipt) {
        self.observer.packed(receipt);
    }
    fn spent(&self, usage: Usage, cost: Option<Usd>) {
        self.observer.spent(usage, cost);
    }
    fn unanswered(&self, max: Usage, cost: Option<Usd>) {
        self.observer.unanswered(max, cost);
    }
    fn may_spend(&self) -> bool {
        self.observer.may_spend()
    }
    fn is_wanted(&self) -> bool {
        self.observer.is_wanted()
    }
    fn wants_output(&self) -> bool {
        self.observer.wants_output()
    }
    fn output(&self, event: &OutputEvent) {
        if let OutputEvent::Reply(text) = event {
            self.lengths().push(text.len());
        }
        self.observer.output(event);
    }
    fn restarted(&self) {
        self.lengths().clear();
        self.observer.restarted();
    }
}

/// Reports what is spent, and nothing else.
struct Quiet<'a>(&'a dyn ProgressObserver);

impl ProgressObserver for Quiet<'_> {
    fn stage(&self, _: &str) {}
    fn packed(&self, _: &RunReceipt) {}
    fn spent(&self, usage: Usage, cost: Option<Usd>) {
        self.0.spent(usage, cost);
    }
    fn unanswered(&self, max: Usage, cost: Option<Usd>) {
        self.0.unanswered(max, cost);
    }
    fn may_spend(&self) -> bool {
        self.0.may_spend()
    }
}
