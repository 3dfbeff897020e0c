//! Vectors of what was said and remembered, by the embedding model that the settings name: of messages, of facts, and of
//! sessions by their facts and summary (R4-4.1, R4-4.4). They only choose; what is sent is read from the store (R4-4.16).
//!
//! They are made behind replies. A reply waits for the vector of its own message and for no other; without a model, or
//! where it fails, the past is searched by words.

use std::collections::{BTreeMap, BTreeSet};

use larder_engine::embedding::{Embedder, EmbeddingError};
use larder_engine::executor::{Meter, ProgressObserver};
use larder_store::{MemoryChange, MemoryFilter, MemoryKind, MemoryRecord, Timestamp};
use larder_text::hash::ContentHash;
use larder_text::tokens::Counter;
use serde_json::json;

use crate::background::AfterReply;
use crate::blocks;
use crate::conversation::{Conversation, ConversationError};
use crate::kind::Stage;
use crate::reply::spent;
use crate::retrieve::spoken;

/// The job that makes missing vectors of a person.
pub const EMBED: &str = "conversation_embed";
/// What vectors of messages that are answered are called among the costs.
const QUERY: &str = "query_vector";
/// Vectors that are stored together.
const TOGETHER: usize = 64;

/// The vector of a message that is being answered, next to those of what may be related to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearness {
    /// The message's vector.
    pub query: Vec<f32>,
    /// The cosine from which a text is related.
    pub threshold: f64,
    /// Vectors of the same model, by what they are of.
    pub of: BTreeMap<String, Vec<f32>>,
}

impl Nearness {
    /// The vector of a message.
    pub fn message(&self, number: u64) -> Option<&[f32]> {
        self.of.get(&message_key(number)).map(Vec::as_slice)
    }

    /// The vector of a fact.
    pub fn fact(&self, id: &str) -> Option<&[f32]> {
        self.of.get(&fact_key(id)).map(Vec::as_slice)
    }

    /// The vector of a session's facts and summary.
    pub fn session(&self, id: &str) -> Option<&[f32]> {
        self.of.get(&session_key(id)).map(Vec::as_slice)
    }
}

fn message_key(number: u64) -> String {
    format!("message:{number}")
}

fn fact_key(id: &str) -> String {
    format!("fact:{id}")
}

fn session_key(id: &str) -> String {
    format!("session:{id}")
}

/// A text of which there should be a vector.
struct Wanted {
    key: String,
    text: String,
    conversation: String,
    session: u64,
}

impl Conversation {
    /// What the vectors say about a message: nothing if the stage has no threshold for the model, and an explanation if
    /// the model gave no vector.
    pub(crate) async fn nearness(
        &self,
        text: &str,
        stage: &Stage,
        observer: &dyn ProgressObserver,
    ) -> Result<Result<Option<Nearness>, String>, ConversationError> {
        let Some(name) = self.all.embedding.as_deref() else { return Ok(Ok(None)) };
        let models = &self.all.engine.models;
        let Some(&threshold) =
            models.table().model(name).and_then(|spec| stage.retrieval.thresholds.get(&spec.id))
        else {
            return Ok(Ok(None));
        };
        let meter = Meter::new(observer, None, None);
        let asked = async {
            let embedder = Embedder::open(models, name)?;
            let vector = embedder.query(text, &meter).await?;
            Ok::<_, EmbeddingError>((vector.numbers, embedder.identity().to_owned()))
        };
        let made = asked.await;
        let total = meter.total();
        if total.usage.input > 0 {
            self.all.store().add_cost(self.track(), &spent(&stage.name, QUERY, &total.usage, total.cost))?;
        }
        let (query, identity) = match made {
            Ok(made) => made,
            Err(error) if error.is_missing() => return Ok(Ok(None)),
            Err(error) => {
                tracing::warn!(%error, conversation = self.id, "the past is searched by words alone");
                return Ok(Err(format!("{name} gave no vector: {error}")));
            }
        };
        let records = self.vectors()?.into_iter().filter(|record| record.data["model"] == identity.as_str());
        let of = records.filter_map(|record| Some((record.id, record.vector?))).collect();
        Ok(Ok(Some(Nearness { query, threshold, of })))
    }

    /// The vectors of the person.
    fn vectors(&self) -> Result<Vec<MemoryRecord>, ConversationError> {
        let kind = Some(MemoryKind::Vector);
        let filter = MemoryFilter { kind, participant: Some(&self.participant), ..MemoryFilter::default() };
        Ok(self.all.store().memory().list(&filter)?)
    }

    /// Makes the vectors that the person lacks, the newest first, and removes those of what is no longer there. Vectors of
    /// another model, and of texts that are other ones now, are made anew.
    pub(crate) async fn embed(
        &self,
        after: &AfterReply,
        observer: &dyn ProgressObserver,
    ) -> Result<(), ConversationError> {
        let Some(name) = self.all.embedding.as_deref() else { return Ok(()) };
        let embedder = match Embedder::open(&self.all.engine.models, name).map_err(EmbeddingError::from) {
            // Without the model, the past is searched by words.
            Err(error) if error.is_missing() => {
                tracing::info!(%error, "no vectors are made");
                return Ok(());
            }
            opened => opened?,
        };
        let meter = Meter::new(observer, None, None);
        let made = self.fill(&embedder, &meter).await;
        let total = meter.total();
        if total.usage.input > 0 {
            self.all.store().add_cost(self.track(), &spent(&after.stage, EMBED, &total.usage, total.cost))?;
        }
        made
    }

    /// Looks again after each batch, so that nothing is kept of what was erased meanwhile.
    async fn fill(
        &self,
        embedder: &Embedder,
        observer: &dyn ProgressObserver,
    ) -> Result<(), ConversationError> {
        loop {
            let wanted = self.wanted()?;
            let held: BTreeMap<String, MemoryRecord> =
                self.vectors()?.into_iter().map(|record| (record.id.clone(), record)).collect();
            let mark =
                |text: &str| json!({"model": embedder.identity(), "text": ContentHash::new(text.as_bytes())});
            let keys: BTreeSet<&str> = wanted.iter().map(|one| one.key.as_str()).collect();
            let gone = held.keys().filter(|key| !keys.contains(key.as_str()));
            let remove: Vec<_> = gone.map(|key| (MemoryKind::Vector, key.clone())).collect();
            let is_missing =
                |one: &&Wanted| held.get(&one.key).is_none_or(|record| record.data != mark(&one.text));
            let batch: Vec<&Wanted> = wanted.iter().rev().filter(is_missing).take(TOGETHER).collect();
            let texts: Vec<String> = batch.iter().map(|one| one.text.clone()).collect();
            let vectors = embedder.texts(&texts, observer).await.map_err(EmbeddingError::from)?;
            if vectors.is_empty() && remove.is_empty() {
                return Ok(());
            }
            let record = |(one, vector): (&&Wanted, Option<Vec<f32>>)| MemoryRecord {
                number: 0,
                kind: MemoryKind::Vector,
                id: one.key.clone(),
                participant: self.participant.clone(),
                conversation: Some(one.conversation.clone()),
                session: Some(one.session),
                consent: None,
                data: mark(&one.text),
                vector,
                created: Timestamp::from_millis(0),
                ended: None,
            };
            let put = batch.iter().zip(vectors).map(record).collect();
            self.all.store().memory().apply(&MemoryChange { put, remove, ..MemoryChange::default() })?;
        }
    }

    /// Everything of the person that has a vector, oldest first.
    fn wanted(&self) -> Result<Vec<Wanted>, ConversationError> {
        let store = self.all.store();
        let mut wanted = Vec::new();
        for (conversation, message) in store.said(&self.participant, None)? {
            if !message.pending {
                wanted.push(Wanted {
                    key: message_key(message.number),
                    text: spoken(&message.text, message.speaker, &self.participant),
                    conversation,
                    session: message.session,
                });
            }
        }
        let counter = Counter::cl100k();
        let mut sessions: BTreeMap<(String, u64), Vec<String>> = BTreeMap::new();
        for fact in self.memory(&counter).holding()? {
            let lines = sessions.entry((fact.conversation.clone(), fact.session)).or_default();
            lines.push(fact.said.fact.clone());
            wanted.push(Wanted {
                key: fact_key(&fact.id),
                text: fact.said.fact,
                conversation: fact.conversation,
                session: fact.session,
            });
        }
        let kind = Some(MemoryKind::Summary);
        let filter = MemoryFilter { kind, participant: Some(&self.participant), ..MemoryFilter::default() };
        for record in store.memory().list(&filter)? {
            if let (Some(conversation), Some(session)) = (record.conversation, record.session) {
                sessions
                    .entry((conversation, session))
                    .or_default()
                    .push(blocks::summary(&record.data["summary"]));
            }
        }
        for ((conversation, session), lines) in sessions {
            let key = session_key(&format!("{conversation}/{}/{session}", self.participant));
            wanted.push(Wanted { key, text: lines.join("\n"), conversation, session });
        }
        Ok(wanted)
    }
}
