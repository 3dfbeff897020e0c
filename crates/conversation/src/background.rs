//! What is done behind a reply, as durable jobs in the order of the track: the facts, the summary of older messages, the
//! vectors of both. Each can be
//! repeated at any time, and no reply waits for one.

use larder_engine::executor::{ModelSet, ProgressObserver};
use larder_engine::inputs::{InputDocument, RunInput};
use larder_store::{
    ConversationMessage, ERASE_JOB, KeyId, MemoryChange, MemoryFilter, MemoryKind, MemoryRecord, NewJob,
    Timestamp,
};
use larder_text::tokens::Counter;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::{Conversation, ConversationError, Conversations};
use crate::kind::{Block, CallTime, Stage};
use crate::memory::Eraser;
use crate::nearness::EMBED;
use crate::reply::{line, past, spent};
use crate::window::summary_due;

/// The job that summarizes older messages of a session.
pub const SUMMARIZE: &str = "conversation_summary";
/// The job that updates the facts of a session (R4-4.2).
pub const UPDATE_FACTS: &str = "conversation_facts";
/// What facts are asked for.
const FACTS_QUERY: &str = "Update the facts.";
/// The newest messages that facts are found in.
const FACTS_FROM: usize = 6;
/// What a summary is asked for.
const SUMMARY_QUERY: &str = "Write the summary.";

/// What a job behind a reply needs to know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AfterReply {
    /// The conversation.
    pub conversation: String,
    /// The participant.
    pub participant: String,
    /// The session.
    pub session: u64,
    /// The stage in which the reply was written.
    pub stage: String,
    /// The key whose budget pays.
    pub key: Option<KeyId>,
    /// The consent that was revoked, of a job that erases.
    pub consent: Option<String>,
}

/// The jobs that a reply leaves; `messages` is the number of messages of the session with it.
pub(crate) fn after_reply(
    conversation: &Conversation,
    message: &ConversationMessage,
    messages: usize,
    stage: &Stage,
) -> Vec<NewJob> {
    let kind = &conversation.loaded.kind;
    let after = AfterReply {
        conversation: conversation.id.clone(),
        participant: conversation.participant.clone(),
        session: message.session,
        stage: stage.name.clone(),
        key: conversation.all.engine.payer.clone(),
        consent: None,
    };
    let session = conversation.session_id(message.session);
    let payload = serde_json::to_value(&after).unwrap_or_default();
    let mut jobs = Vec::new();
    if kind.calls.facts.runs == CallTime::Behind {
        let (key, payload) = (format!("{UPDATE_FACTS} {session}"), payload.clone());
        jobs.push(NewJob { kind: UPDATE_FACTS, key, session: Some(session.clone()), payload, after: 0 });
    }
    // Whether one is due is looked at when the job is done; below the kept tail it cannot be.
    if kind.calls.summary.runs == CallTime::Behind && messages > kind.summary_in(stage).keep {
        let (key, payload) = (format!("{SUMMARIZE} {session}"), payload.clone());
        jobs.push(NewJob { kind: SUMMARIZE, key, session: Some(session.clone()), payload, after: 0 });
    }
    if kind.calls.embedding.runs == CallTime::Behind && conversation.all.embedding.is_some() {
        // One that waits covers all of the person.
        let key = format!("{EMBED} {}", conversation.participant);
        jobs.push(NewJob { kind: EMBED, key, session: Some(session), payload, after: 0 });
    }
    jobs
}

/// Whether a job is one of these.
pub fn knows(kind: &str) -> bool {
    matches!(kind, SUMMARIZE | UPDATE_FACTS | EMBED | ERASE_JOB)
}

impl Conversations {
    /// Every model that a job may ask.
    pub fn reach(&self, after: &AfterReply) -> ModelSet {
        let mut reach = ModelSet::default();
        let Ok(conversation) = self.open(&after.conversation, Some(&after.participant)) else { return reach };
        let kind = &conversation.loaded.kind;
        let Some(stage) = kind.stage(&after.stage) else { return reach };
        for name in [kind.summary_in(stage).recipe, kind.memory.facts.clone()] {
            if let Ok(recipe) = self.engine.find(&name, None) {
                reach.join(self.engine.reachable_models(recipe, None));
            }
        }
        if let Some(name) = &self.embedding {
            reach.add(self.engine.models.table(), name);
        }
        reach
    }

    /// Does a job behind a reply.
    ///
    /// # Errors
    /// A model, its answer or the store fails; nothing has changed then.
    pub async fn work(
        &self,
        kind: &str,
        after: &AfterReply,
        observer: &dyn ProgressObserver,
    ) -> Result<(), ConversationError> {
        if let Some(consent) = after.consent.as_ref().filter(|_| kind == ERASE_JOB) {
            return Ok(Eraser { store: &self.engine.store }.consent(consent)?);
        }
        // What was deleted meanwhile needs nothing.
        let Ok(conversation) = self.open(&after.conversation, Some(&after.participant)) else {
            return Ok(());
        };
        match kind {
            SUMMARIZE => conversation.summarize(after, observer).await,
            UPDATE_FACTS => conversation.update_facts(after, observer).await,
            EMBED => conversation.embed(after, observer).await,
            _ => Ok(()),
        }
    }
}

impl Conversation {
    /// The summary of a session with the last message that it covers.
    pub(crate) fn summary(&self, session: u64) -> Result<Option<(u64, Value)>, ConversationError> {
        let id = self.session_id(session);
        let filter =
            MemoryFilter { kind: Some(MemoryKind::Summary), id: Some(&id), ..MemoryFilter::default() };
        let found = self.all.store().memory().list(&filter)?.pop();
        Ok(found.and_then(|record| {
            Some((record.data.get("watermark")?.as_u64()?, record.data.get("summary")?.clone()))
        }))
    }

    /// Updates the facts of a session by its newest messages.
    async fn update_facts(
        &self,
        after: &AfterReply,
        observer: &dyn ProgressObserver,
    ) -> Result<(), ConversationError> {
        let rules = &self.loaded.kind.memory;
        let counter = Counter::cl100k();
        let memory = self.memory(&counter);
        let messages = self.messages(Some(after.session))?;
        let newest = &messages[messages.len().saturating_sub(FACTS_FROM)..];
        let newest: Vec<_> =
            newest.iter().map(past).map(|one| line(one.number, one.role, &one.text)).collect();
        let held: Vec<_> = memory
            .session_facts(after.session)?
            .into_iter()
            .map(|fact| format!("{} [{}] {}", fact.id, fact.said.category, fact.said.fact))
            .collect();
        let recipe = self.all.engine.find(&rules.facts, None);
        let recipe = recipe.map_err(|source| self.all.engine.missing(&rules.facts, source))?;
        let takes = |input: &Block| recipe.input_docs.iter().any(|doc| doc.name == input.as_str());
        let documents = [(Block::Facts, held.join("\n")), (Block::Messages, newest.join("\n"))];
        let documents = documents.into_iter().filter(|(input, text)| takes(input) && !text.is_empty());
        let mut input = RunInput {
            query: Some(FACTS_QUERY.to_owned()),
            documents: documents
                .map(|(input, text)| InputDocument::whole(input.as_str(), input.as_str(), text))
                .collect(),
            session_id: Some(self.session_id(after.session)),
            ..RunInput::default()
        };
        let categories: Vec<_> = rules
            .categories
            .iter()
            .map(|category| format!("- {}: {}", category.name, category.about))
            .collect();
        if recipe.inputs.contains("categories") {
            input.values.insert("categories".to_owned(), categories.join("\n").into());
        }
        let outcome = self.all.engine.run(&rules.facts, &input, observer).await?;
        self.all
            .store()
            .add_cost(self.track(), &spent(&after.stage, UPDATE_FACTS, &outcome.usage, outcome.cost))?;
        let diff = serde_json::from_value(outcome.output).unwrap_or_default();
        let report = memory.update_facts(after.session, &diff, outcome.run_id.as_str())?;
        tracing::info!(
            event = "facts_updated",
            conversation = self.id,
            written = report.written.len(),
            refused = report.refused.len(),
            "the facts of a session"
        );
        Ok(())
    }

    /// Summarizes what is due: the summary so far, with the messages that it does not cover up to the kept tail.
    async fn summarize(
        &self,
        after: &AfterReply,
        observer: &dyn ProgressObserver,
    ) -> Result<(), ConversationError> {
        let kind = &self.loaded.kind;
        let Some(stage) = kind.stage(&after.stage) else { return Ok(()) };
        let rules = kind.summary_in(stage);
        let messages = self.messages(Some(after.session))?;
        let messages: Vec<_> = messages.iter().map(past).collect();
        let before = self.summary(after.session)?;
        let watermark = before.as_ref().map(|(watermark, _)| *watermark);
        let counter = Counter::cl100k();
        let Some(upto) = summary_due(&messages, watermark, &rules, |message| counter.count(&message.text))
        else {
            return Ok(());
        };
        let open = messages
            .iter()
            .filter(|one| one.number <= upto && watermark.is_none_or(|mark| one.number > mark));
        let open: Vec<String> = open.map(|one| line(one.number, one.role, &one.text)).collect();
        let recipe = self.all.engine.find(&rules.recipe, None);
        let recipe = recipe.map_err(|source| self.all.engine.missing(&rules.recipe, source))?;
        let texts = [
            (Block::Messages, open.join("\n")),
            (Block::Summary, before.map(|(_, value)| value.to_string()).unwrap_or_default()),
        ];
        let takes = |input: Block| recipe.input_docs.iter().any(|doc| doc.name == input.as_str());
        let given = texts.into_iter().filter(|(input, text)| takes(*input) && !text.is_empty());
        let mut input = RunInput {
            query: Some(SUMMARY_QUERY.to_owned()),
            documents: given
                .map(|(input, text)| InputDocument::whole(input.as_str(), input.as_str(), text))
                .collect(),
            session_id: Some(self.session_id(after.session)),
            ..RunInput::default()
        };
        if recipe.inputs.contains("words") {
            input.values.insert("words".to_owned(), rules.words.into());
        }
        let outcome = self.all.engine.run(&rules.recipe, &input, observer).await?;
        self.all
            .store()
            .add_cost(self.track(), &spent(&after.stage, SUMMARIZE, &outcome.usage, outcome.cost))?;
        let data = serde_json::json!({
            "watermark": upto,
            "summary": outcome.output,
            "run": outcome.run_id.to_string(),
        });
        let record = MemoryRecord {
            number: 0,
            kind: MemoryKind::Summary,
            id: self.session_id(after.session),
            participant: self.participant.clone(),
            conversation: Some(self.id.clone()),
            session: Some(after.session),
            consent: None,
            data,
            vector: None,
            created: Timestamp::from_millis(0),
            ended: None,
        };
        Ok(self.all.store().memory().apply(&MemoryChange { put: vec![record], ..MemoryChange::default() })?)
    }
}
