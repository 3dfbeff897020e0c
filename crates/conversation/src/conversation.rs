//! Conversations of one user: begins them, posts messages, answers them in order, and records what was sent and why.
//!
//! A message is stored before anything is asked, and its reply is committed with the participant's state and the jobs
//! behind it in one transaction. Whoever answers holds the lock of the track, so that two processes answer in order and
//! once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use larder_engine::Engine;
use larder_engine::executor::ProgressObserver;
use larder_store::{
    ConversationCostRow, ConversationMessage, NewMessage, ParticipantRecord, StoreError, Track,
};
use larder_text::price::Usd;
use larder_text::usage::Usage;
use larder_text::words::is_blank;
use serde::{Deserialize, Serialize};

use crate::calls::{CallEnd, TurnCall};
use crate::catalog::{LoadedType, TypeCatalog};
use crate::error::ConversationError;
use crate::intent::MemoryIntent;
use crate::kind::Aside;
use crate::past::Past;
use crate::retrieve::RetrievedMessage;
use crate::state::ParticipantState;

/// The name of a participant who is alone.
pub const ALONE: &str = "user";
/// How often the lock of a track is tried.
const AGAIN: Duration = Duration::from_millis(20);

/// The conversations of one user.
#[derive(Clone)]
pub struct Conversations {
    /// Recipes, models and the user's store.
    pub engine: Engine,
    /// The types.
    pub types: Arc<TypeCatalog>,
    /// The name of the embedding model; without one, the past is searched by words alone.
    pub embedding: Option<String>,
    /// What is kept in memory of the past: shared by everyone who answers in this process.
    pub past: Arc<Past>,
}

/// One participant's side of a conversation.
#[derive(Clone)]
pub struct Conversation {
    pub(crate) all: Conversations,
    pub(crate) id: String,
    pub(crate) participant: String,
    pub(crate) loaded: Arc<LoadedType>,
    /// The most tokens of a reply, if its reader wants fewer than the type allows.
    pub(crate) max_output: Option<usize>,
}

/// A reply of the assistant.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reply {
    /// Its number.
    pub number: u64,
    /// The number of the message that it answers; `None` for one that the assistant says by itself.
    pub to: Option<u64>,
    /// The text.
    pub text: String,
    /// The stage in which it was written.
    pub stage: String,
    /// The stage in which the participant is now.
    pub next_stage: String,
    /// A text that the participant may share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<String>,
    /// The action that took the place of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Whether safety rules applied.
    pub safety: bool,
    /// Whether it was cut short, at the most tokens that it may have or by the model's decoder.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
    /// Messages of the session that the budget left out, with a pointer in their place.
    pub left_out: usize,
    /// The model.
    pub model: String,
    /// Tokens of all calls.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub usage: Usage,
    /// Their price in US dollars; `None` for models without one.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub cost: Option<Usd>,
    /// Milliseconds from the message to the end.
    pub latency_ms: u64,
    /// What is wrong with the form of the reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What became of what the participant asked to be remembered before, and of earlier messages that waited for replies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// What is kept of a reply besides its text: how it was made, by references and sizes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplyRecord {
    /// The run.
    pub run: String,
    /// Runs of actions behind it.
    pub more_runs: Vec<String>,
    /// The recipe.
    pub recipe: String,
    /// The model.
    pub model: String,
    /// The stage.
    pub stage: String,
    /// The stage after it.
    pub next_stage: String,
    /// The fields of the hidden tag.
    pub fields: BTreeMap<String, String>,
    /// A text that the participant may share.
    pub draft: Option<String>,
    /// The action that took the place of the reply.
    pub action: Option<String>,
    /// What was sent.
    pub window: WindowRecord,
    /// Tokens of all calls.
    pub usage: Usage,
    /// Their price.
    pub cost: Option<Usd>,
    /// Milliseconds.
    pub latency_ms: u64,
    /// What is wrong with the form of the reply.
    pub problems: Vec<String>,
    /// What became of what the participant asked to be remembered before, and of earlier messages that waited for replies.
    pub notices: Vec<String>,
    /// Whether it was cut short, at the most tokens that it may have or by the model's decoder.
    pub is_cut: bool,
    /// The most tokens that its reader asked for.
    pub max_output: Option<usize>,
    /// The calls that were made for it; those behind it are added by [`Conversation::turn`].
    pub calls: Vec<TurnCall>,
    /// The pieces in which the text was passed on, in bytes.
    pub pieces: Vec<usize>,
    /// What the participant was before the message.
    pub before: ParticipantState,
}

/// What was sent for a reply, and why.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowRecord {
    /// Messages of the session that were sent, by number, in order.
    pub sent: Vec<u64>,
    /// Those of them that were sent by their beginning and a pointer to the rest.
    pub shortened: Vec<u64>,
    /// Messages that the summary covers and that were not sent.
    pub summarized: usize,
    /// Messages that were withheld.
    pub withheld: usize,
    /// What the message asks of memory.
    pub intent: Option<MemoryIntent>,
    /// The last message that the summary covers.
    pub watermark: Option<u64>,
    /// The blocks before the user's message, with their tokens.
    pub blocks: Vec<(String, usize)>,
    /// The facts that were shown, by id.
    pub facts: Vec<String>,
    /// Messages that were looked up, in the order in which they were sent.
    pub retrieved: Vec<RetrievedMessage>,
    /// Why the past was searched by words alone, where it should not have been.
    pub without_vectors: Option<String>,
    /// What was asked for without a consent.
    pub blocked_by_consent: Vec<String>,
    /// Whether the safety rules applied.
    pub safety: bool,
    /// Tokens of the system prompt.
    pub system_tokens: usize,
    /// Tokens of the history.
    pub history_tokens: usize,
    /// Tokens of the last message, blocks included.
    pub last_tokens: usize,
    /// The revision of learned budgets that was used; 0 for the type's own.
    pub revision: u64,
    /// Tokens that were reserved for the reply.
    pub reserved_tokens: usize,
    /// Tokens that the prompt could have had.
    pub available_tokens: usize,
    /// Tokens of those that were reserved and not used (R4-9.3).
    pub unused_tokens: usize,
    /// Tokens that the provider reports for the prompt, next to those that were counted (R4-9.6).
    pub reported_tokens: u64,
    /// Whether the message refers to something in the past, as far as rules and the call behind the last reply say.
    pub refers: bool,
    /// What was looked for besides the words of the message.
    pub searches: Vec<String>,
    /// The calls that rules can replace, and how they ended.
    pub calls: Vec<(String, CallEnd)>,
    /// Messages of the window that the budget left out, with a pointer in their place.
    pub left_out: usize,
}

impl Conversations {
    /// The conversations of the engine's user, with the types of its project and those that ship.
    pub fn new(engine: Engine, embedding: Option<String>) -> Self {
        let types = Arc::new(TypeCatalog::of(&engine));
        Self { engine, types, embedding, past: Arc::default() }
    }

    pub(crate) fn store(&self) -> larder_store::Conversations<'_> {
        self.engine.store.conversations()
    }

    /// One participant's side of a conversation. Without a name, the only participant of this user.
    ///
    /// # Errors
    /// The user does not take part in it under this name, its type cannot be used any more, or the store fails.
    pub fn open(&self, id: &str, participant: Option<&str>) -> Result<Conversation, ConversationError> {
        let record = self.store().get(id)?;
        let own: Vec<&ParticipantRecord> =
            record.participants.iter().filter(|one| one.user == self.engine.store.user()).collect();
        let found = match participant {
            Some(name) => own.iter().find(|one| one.name == name).copied(),
            None if own.len() == 1 => own.first().copied(),
            None => None,
        };
        let Some(found) = found else {
            if participant.is_none() && own.len() > 1 {
                let names: Vec<&str> = own.iter().map(|one| one.name.as_str()).collect();
                return Err(ConversationError::WhichParticipant { names: names.join(" and ") });
            }
            return Err(StoreError::UnknownConversation { id: record.id }.into());
        };
        let loaded = Arc::clone(self.types.find(&record.kind)?);
        let (id, participant) = (record.id, found.name.clone());
        Ok(Conversation { all: self.clone(), id, participant, loaded, max_output: None })
    }
}

impl Conversations {
    /// Takes the lock of a track, as soon as it is free.
    pub(crate) async fn lease_of(
        &self,
        track: Track<'_>,
    ) -> Result<larder_store::TurnLease, ConversationError> {
        loop {
            if let Some(lease) = self.store().take_lease(track)? {
                return Ok(lease);
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

impl Conversation {
    /// The same side, for a reader who wants replies of at most so many tokens, if that is less than the type allows. A reply
    /// that reaches it is cut there.
    #[must_use]
    pub fn with_max_output(self, max_output: Option<usize>) -> Self {
        Self { max_output, ..self }
    }

    /// The conversation's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The participant's name.
    pub fn participant(&self) -> &str {
        &self.participant
    }

    /// The names of the other participants.
    ///
    /// # Errors
    /// The store fails.
    pub fn others(&self) -> Result<Vec<String>, ConversationError> {
        let all = self.all.store().get(&self.id)?.participants.into_iter().map(|one| one.name);
        Ok(all.filter(|name| *name != self.participant).collect())
    }

    /// The conversation's type.
    pub fn kind(&self) -> &LoadedType {
        &self.loaded
    }

    pub(crate) fn track(&self) -> Track<'_> {
        Track { conversation: &self.id, participant: &self.participant }
    }

    /// The participant's session, and where the participant stands.
    ///
    /// # Errors
    /// The store fails.
    pub fn standing(&self) -> Result<(u64, ParticipantState), ConversationError> {
        let ParticipantRecord { session, state, .. } = self.all.store().participant(self.track())?;
        let mut state: ParticipantState = serde_json::from_value(state).unwrap_or_default();
        state.catch_up(&self.loaded.kind, &self.stages_of_others()?);
        Ok((session, state))
    }

    /// Stores a message of the participant. With a key that was used for the same text before, it is the message of then.
    ///
    /// # Errors
    /// The message is empty, the key belongs to another text, or the store fails.
    pub fn post(&self, text: &str, key: Option<&str>) -> Result<ConversationMessage, ConversationError> {
        if is_blank(text) {
            return Err(ConversationError::Empty);
        }
        let data = serde_json::json!({});
        let chars = self.loaded.kind.window.message_chars;
        Ok(self.all.store().post(self.track(), &NewMessage { text, key, data: &data, chars })?)
    }

    /// Has a message that was posted before wait for a reply again if it was left without one.
    ///
    /// # Errors
    /// There is no such message, or the store fails.
    pub fn await_reply(&self, number: u64) -> Result<(), ConversationError> {
        Ok(self.all.store().await_reply(self.track(), number)?)
    }

    /// Posts a message and answers it.
    ///
    /// # Errors
    /// As [`post`](Self::post) and [`answer`](Self::answer).
    pub fn say<'a>(
        &'a self,
        text: &'a str,
        observer: &'a dyn ProgressObserver,
    ) -> BoxFuture<'a, Result<Reply, ConversationError>> {
        async move {
            let posted = self.post(text, None)?;
            self.answer(posted.number, observer).await
        }
        .boxed()
    }

    /// Begins a session: with a name, in that aside; otherwise on the main line.
    ///
    /// # Errors
    /// There is no such aside, or the store fails.
    pub fn begin_session<'a>(
        &'a self,
        aside: Option<&'a str>,
    ) -> BoxFuture<'a, Result<u64, ConversationError>> {
        async move {
            let _lease = self.lease().await?;
            let kind = &self.loaded.kind;
            let stage = aside
                .map(|name| kind.stage(name).filter(|stage| stage.aside != Aside::No))
                .unwrap_or_default();
            if let (Some(name), None) = (aside, stage) {
                let asides: Vec<&str> = kind.asides().collect();
                let help = match asides.as_slice() {
                    [] => format!("conversations of type {} have none", kind.name),
                    asides => format!("use {}", asides.join(", ")),
                };
                return Err(ConversationError::NoAside { name: name.to_owned(), help });
            }
            let (session, mut state) = self.standing()?;
            let linked = stage.is_some_and(|stage| stage.aside == Aside::Linked).then_some(session);
            state.aside = aside.map(str::to_owned);
            // What the last replies found belongs to their session, as everything that is remembered without a consent does.
            state.references.clear();
            state.notices.clear();
            state.intensities.clear();
            state.fields.clear();
            let opening = serde_json::json!({ "aside": aside, "linked": linked });
            let state = serde_json::to_value(&state).unwrap_or_default();
            Ok(self.all.store().begin_session(self.track(), &opening, &state)?)
        }
        .boxed()
    }

    /// The messages of a session, in order; of the current one without a number.
    ///
    /// # Errors
    /// There is no such session, or the store fails.
    pub fn messages(&self, session: Option<u64>) -> Result<Vec<ConversationMessage>, ConversationError> {
        let newest = self.all.store().participant(self.track())?.session;
        let session = session.unwrap_or(newest);
        if session == 0 || session > newest {
            return Err(ConversationError::UnknownSession { session, newest });
        }
        Ok(self.all.store().messages(self.track(), session, 0..u64::MAX)?)
    }

    /// A message of this track.
    ///
    /// # Errors
    /// There is none with this number, or the store fails.
    pub fn message(&self, number: u64) -> Result<ConversationMessage, ConversationError> {
        Ok(self.all.store().get_message(self.track(), number)?)
    }

    /// What the participant's user spent on the conversation.
    ///
    /// # Errors
    /// The store fails.
    pub fn costs(&self) -> Result<Vec<ConversationCostRow>, ConversationError> {
        Ok(self.all.store().costs_of(&self.id)?)
    }

    /// What was sent for a reply, and why.
    ///
    /// # Errors
    /// There is no such reply, or the store fails.
    pub fn record(&self, number: u64) -> Result<ReplyRecord, ConversationError> {
        Ok(self.record_of(&self.message(number)?))
    }

    /// What is kept of a message of the assistant.
    pub(crate) fn record_of(&self, message: &ConversationMessage) -> ReplyRecord {
        serde_json::from_value(message.data.clone()).unwrap_or_default()
    }

    /// The stages that each of the other participants has reached.
    pub(crate) fn stages_of_others(&self) -> Result<Vec<Vec<String>>, ConversationError> {
        let others = self.all.store().values_of_others(self.track(), "$.reached")?;
        let first = || self.loaded.kind.stages.iter().take(1).map(|stage| stage.name.clone()).collect();
        let reached = |stages| Some(serde_json::from_value(stages).unwrap_or_default());
        let of = |stages| reached(stages).filter(|stages: &Vec<_>| !stages.is_empty()).unwrap_or_else(first);
        // Whoever has not accepted the invitation has been nowhere.
        let invited = self.all.store().get(&self.id)?.invited.into_iter().map(|_| Vec::new());
        Ok(others.into_iter().map(|(_, stages)| of(stages)).chain(invited).collect())
    }

    /// Takes the lock of the track.
    pub(crate) async fn lease(&self) -> Result<larder_store::TurnLease, ConversationError> {
        self.all.lease_of(self.track()).await
    }
}
