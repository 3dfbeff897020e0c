//! What is done behind a reply, as durable jobs in the order of the track: facts, the summary of older messages, the vectors
//! of both, references for the next turn, requests to remember. Each can be repeated at any time, and no reply waits for one.

use futures::future::{BoxFuture, FutureExt};
use larder_engine::executor::{ModelSet, ProgressObserver, RunOutcome};
use larder_store::{
    ConversationMessage, ERASE_JOB, KeyId, MemoryChange, MemoryFilter, MemoryKind, MemoryRecord, NewJob,
    StoreError, Timestamp, Track,
};
use larder_text::tokens::Counter;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::calls::{DETECT_REFERENCES, TurnCall};
use crate::conversation::{Conversation, Conversations};
use crate::error::ConversationError;
use crate::intent::MemoryIntent;
use crate::kind::CallTime;
use crate::memory::CONSOLIDATE;
use crate::nearness::EMBED;
use crate::prepare::Prepared;
use crate::requests::REMEMBER;
use crate::state::ParticipantState;

/// The job that summarizes older messages of a session.
pub const SUMMARIZE: &str = "conversation_summary";
/// The job that updates the facts of a session (R4-4.2).
pub const UPDATE_FACTS: &str = "conversation_facts";

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
    /// The number of the message that was answered.
    pub message: u64,
    /// The consent that was revoked, of a job that erases.
    pub consent: Option<String>,
    /// What had been erased before the job read anything.
    #[serde(skip)]
    pub(crate) since: Option<u64>,
}

/// The jobs that a reply leaves.
pub(crate) fn after_reply(
    conversation: &Conversation,
    message: &ConversationMessage,
    prepared: &Prepared<'_>,
    state: &ParticipantState,
) -> Vec<NewJob> {
    let (kind, stage) = (&conversation.loaded.kind, prepared.stage);
    let after = AfterReply {
        conversation: conversation.id.clone(),
        participant: conversation.participant.clone(),
        session: message.session,
        stage: stage.name.clone(),
        key: conversation.all.engine.payer.clone(),
        message: message.number,
        consent: None,
        since: None,
    };
    let session = conversation.session_id(message.session);
    let payload = serde_json::to_value(&after).unwrap_or_default();
    let references = &kind.calls.references;
    let is_withheld = prepared.found.memory.is_some_and(MemoryIntent::withholds);
    let detects = references.runs == CallTime::Behind
        && !is_withheld
        && conversation.holds(&references.when, prepared, state, message);
    // Whether a summary is due is looked at when the job is done; below the kept tail it cannot be.
    let messages = prepared.past.len() + 2;
    let summarizes = kind.calls.summary.runs == CallTime::Behind && messages > kind.summary_in(stage).keep;
    let remembers =
        prepared.found.asks_to_remember && kind.memory.formatter.is_some() && kind.memory.validator.is_some();
    let embeds = kind.calls.embedding.runs == CallTime::Behind && conversation.all.embedding.is_some();
    // One that waits covers all messages, unless it is about one of them.
    let due = [
        (detects, DETECT_REFERENCES, format!("{DETECT_REFERENCES} {session} {}", message.number)),
        (kind.calls.facts.runs == CallTime::Behind, UPDATE_FACTS, format!("{UPDATE_FACTS} {session}")),
        (remembers, REMEMBER, format!("{REMEMBER} {session} {}", message.number)),
        (summarizes, SUMMARIZE, format!("{SUMMARIZE} {session}")),
        (embeds, EMBED, format!("{EMBED} {}", conversation.participant)),
    ];
    let due = due.into_iter().filter(|(is_due, ..)| *is_due);
    due.map(|(_, kind, key)| NewJob {
        kind,
        key,
        session: Some(session.clone()),
        payload: payload.clone(),
        after: 0,
    })
    .collect()
}

/// Whether a job is one of these.
pub fn knows(kind: &str) -> bool {
    matches!(kind, SUMMARIZE | UPDATE_FACTS | DETECT_REFERENCES | REMEMBER | CONSOLIDATE | EMBED | ERASE_JOB)
}

impl Conversations {
    /// Every model that a job may ask.
    pub fn reach(&self, after: &AfterReply) -> ModelSet {
        let mut reach = ModelSet::default();
        let Ok(conversation) = self.open(&after.conversation, Some(&after.participant)) else { return reach };
        let kind = &conversation.loaded.kind;
        let Some(stage) = kind.stage(&after.stage).or_else(|| kind.stages.first()) else { return reach };
        let memory = &kind.memory;
        let summary = kind.summary_in(stage).recipe;
        let named = [
            Some(&summary),
            Some(&memory.facts),
            Some(&memory.consolidate),
            kind.calls.references.recipe.as_ref(),
        ]
        .into_iter()
        .chain([&memory.formatter, &memory.validator, &memory.people].map(Option::as_ref));
        for name in named.flatten() {
            if let Ok(recipe) = self.engine.find(name, None) {
                reach.join(self.engine.reachable_models(recipe, None));
            }
        }
        if let Some(name) = &self.embedding {
            reach.add(self.engine.models.table(), name);
        }
        reach
    }

    /// Does a job behind a reply. If something is erased while it is done, nothing of what it made stays.
    ///
    /// # Errors
    /// A model, its answer or the store fails, or something was erased meanwhile; nothing has changed then.
    pub fn work<'a>(
        &'a self,
        kind: &'a str,
        after: &'a AfterReply,
        observer: &'a dyn ProgressObserver,
    ) -> BoxFuture<'a, Result<(), ConversationError>> {
        async move {
            if kind == ERASE_JOB {
                self.past.forget(self.engine.store.user());
            }
            if let Some(consent) = after.consent.as_ref().filter(|_| kind == ERASE_JOB) {
                return Ok(self.eraser().consent(consent)?);
            }
            let (memory, began) = (self.store().memory(), self.engine.store.store().now());
            let since = memory.erasures()?;
            let track = Track { conversation: &after.conversation, participant: &after.participant };
            // What was deleted meanwhile needs nothing, and what was made of it goes.
            let Ok(conversation) = self.open(track.conversation, Some(track.participant)) else {
                return Ok(self.eraser().runs(track, after.session, Timestamp::from_millis(0))?);
            };
            conversation.require_money()?;
            let after = &AfterReply { since: Some(since), ..after.clone() };
            let worked = match kind {
                SUMMARIZE => conversation.summarize(after, observer).await,
                UPDATE_FACTS => conversation.update_facts(after, observer).await,
                EMBED => conversation.embed(after, observer).await,
                DETECT_REFERENCES => conversation.detect_references(after, observer).await,
                REMEMBER => conversation.remember_request(after, observer).await,
                CONSOLIDATE => conversation.consolidate(after, observer).await,
                _ => Ok(()),
            };
            if memory.erasures()? != since {
                self.eraser().runs(track, after.session, began)?;
            }
            worked
        }
        .boxed()
    }
}

impl Conversation {
    /// Notes a run behind a reply, so that it counts in the record of its turn and can be erased.
    pub(crate) fn note_run(
        &self,
        after: &AfterReply,
        call: &str,
        outcome: &RunOutcome,
        origins: Vec<MemoryRecord>,
    ) -> Result<(), ConversationError> {
        let counter = Counter::cl100k();
        let newest = self.all.store().messages(self.track(), after.session, 0..u64::MAX)?;
        let newest = newest.iter().map(|message| message.number).max().unwrap_or(after.message);
        let mut record = self.memory(&counter).ran(outcome.run_id.as_str(), after.session, newest);
        if let Value::Object(data) = &mut record.data {
            let call = serde_json::to_value(TurnCall::new(call, outcome)).unwrap_or_default();
            data.extend([("behind".to_owned(), after.message.into()), ("call".to_owned(), call)]);
        }
        self.put_run(record, origins, after.since)
    }

    /// Records a run that gave no message, and by which right it read what it read.
    pub(crate) fn put_run(
        &self,
        run: MemoryRecord,
        origins: Vec<MemoryRecord>,
        since: Option<u64>,
    ) -> Result<(), ConversationError> {
        let of_run = |origin: MemoryRecord| MemoryRecord {
            id: format!("{}/{}", run.id, origin.id),
            conversation: run.conversation.clone(),
            session: run.session,
            data: serde_json::json!({"item": origin.data["item"], "message": run.data["message"]}),
            ..origin
        };
        let mut put: Vec<MemoryRecord> = origins.into_iter().map(of_run).collect();
        put.push(run);
        Ok(self.all.store().memory().apply(&MemoryChange { put, since, ..MemoryChange::default() })?)
    }

    /// Everything that one message made: the calls of its reply, and those behind it so far (R4-8.8).
    ///
    /// # Errors
    /// There is no such message, or the store fails.
    pub fn turn(&self, message: u64) -> Result<Vec<TurnCall>, ConversationError> {
        let reply = self.all.store().reply_to(self.track(), message)?;
        let reply = reply.ok_or(StoreError::UnknownMessage { number: message })?;
        let mut calls = self.record(reply.number)?.calls;
        let filter = MemoryFilter {
            kind: Some(MemoryKind::Run),
            participant: Some(&self.participant),
            conversation: Some(&self.id),
            session: Some(reply.session),
            ..MemoryFilter::default()
        };
        let runs = self.all.store().memory().list(&filter)?;
        let behind = runs.iter().filter(|run| run.data["behind"].as_u64() == Some(message));
        calls.extend(behind.filter_map(|run| serde_json::from_value(run.data["call"].clone()).ok()));
        Ok(calls)
    }
}
