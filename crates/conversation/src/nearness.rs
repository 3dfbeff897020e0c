//! Vectors of what was said and remembered, by the embedding model that the settings name: of messages, of facts, and of
//! sessions by their facts and summary (R4-4.1, R4-4.4). They only choose; what is sent is read from the store (R4-4.16).
//!
//! They are made behind replies. A reply waits for the vector of its own message and for no other; without a model, or
//! where it fails, the past is searched by words.

use std::collections::{BTreeMap, BTreeSet};

use larder_engine::embedding::{Embedder, EmbeddingError};
use larder_engine::executor::{Meter, ProgressObserver};
use larder_retrieval::dialogue::of_unit_length;
use larder_store::{MemoryChange, MemoryFilter, MemoryKind, MemoryRecord, Timestamp, Track};
use larder_text::hash::ContentHash;
use larder_text::tokens::Counter;
use serde_json::json;

use crate::background::AfterReply;
use crate::blocks;
use crate::conversation::Conversation;
use crate::error::ConversationError;
use crate::kind::Stage;
use crate::past::{KeptVector, Person, SaidMessage};
use crate::reply::spent;
use crate::retrieve::spoken;

/// The job that makes missing vectors of a person.
pub const EMBED: &str = "conversation_embed";
/// What vectors of messages that are answered are called among the costs.
pub(crate) const QUERY: &str = "query_vector";
/// Vectors that are stored together.
const TOGETHER: usize = 64;

/// The vector of a message that is being answered, which is compared with those of the same model.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearness {
    /// The message's vector, of unit length.
    pub query: Vec<f32>,
    /// The cosine from which a text is related.
    pub threshold: f64,
    /// The model, by what tells it from others.
    pub model: String,
}

/// What the vectors say about a message: nothing if its stage asks for none, or why the model gave none.
pub(crate) type Near = Result<Option<Nearness>, String>;

/// What keys of vectors of messages begin with.
pub(crate) const MESSAGE_KEY: &str = "message:";

fn message_key(number: u64) -> String {
    format!("{MESSAGE_KEY}{number}")
}

/// The key of the vector of a fact.
pub(crate) fn fact_key(id: &str) -> String {
    format!("fact:{id}")
}

/// The key of the vector of a session's facts and summary.
pub(crate) fn session_key(id: &str) -> String {
    format!("session:{id}")
}

/// A text of which there should be a vector.
struct Wanted {
    key: String,
    text: String,
    conversation: String,
    session: u64,
}

/// What the vectors of a person lack.
#[derive(Default)]
struct Lacking {
    texts: Vec<Wanted>,
    messages: Vec<SaidMessage>,
    /// Vectors of what is no longer there.
    gone: Vec<(MemoryKind, String)>,
}

impl Conversation {
    /// What the vectors say about a message: nothing if the stage has no threshold for the model, and an explanation if
    /// the model gave no vector. What it cost is reported to `observer` and written with what it is for: a reply that is
    /// about to be asked for waits for no writer of the store.
    pub(crate) async fn nearness(&self, text: &str, stage: &Stage, observer: &dyn ProgressObserver) -> Near {
        let Some(name) = self.all.embedding.as_deref() else { return Ok(None) };
        let models = &self.all.engine.models;
        let Some(&threshold) =
            models.table().model(name).and_then(|spec| stage.retrieval.thresholds.get(&spec.id))
        else {
            return Ok(None);
        };
        let asked = async {
            let embedder = Embedder::open(models, name)?;
            let vector = embedder.query(text, observer).await?;
            Ok::<_, EmbeddingError>((of_unit_length(vector.numbers), embedder.identity().to_owned()))
        };
        let (query, identity) = match asked.await {
            Ok(made) => made,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => {
                tracing::warn!(%error, conversation = self.id, "the past is searched by words alone");
                return Err(format!("{name} gave no vector: {error}"));
            }
        };
        Ok(Some(Nearness { query, threshold, model: identity }))
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
            let Lacking { texts: mut batch, messages, gone: remove } = self.lacking(embedder.identity())?;
            for said in messages {
                let track = Track { conversation: &said.conversation, participant: &self.participant };
                let Ok(message) = self.all.store().text_of(track, said.number) else { continue };
                batch.push(Wanted {
                    key: message_key(said.number),
                    text: spoken(&message.text, message.speaker, &self.participant),
                    conversation: said.conversation.to_string(),
                    session: said.session,
                });
            }
            let texts: Vec<String> = batch.iter().map(|one| one.text.clone()).collect();
            let vectors = embedder.texts(&texts, observer).await.map_err(EmbeddingError::from)?;
            if vectors.is_empty() && remove.is_empty() {
                return Ok(());
            }
            let record = |(one, vector): (&Wanted, Option<Vec<f32>>)| MemoryRecord {
                number: 0,
                kind: MemoryKind::Vector,
                id: one.key.clone(),
                participant: self.participant.clone(),
                conversation: Some(one.conversation.clone()),
                session: Some(one.session),
                consent: None,
                data: json!({"model": embedder.identity(), "text": ContentHash::new(one.text.as_bytes())}),
                vector,
                created: Timestamp::from_millis(0),
                ended: None,
            };
            let put = batch.iter().zip(vectors).map(record).collect();
            self.all.store().memory().apply(&MemoryChange { put, remove, ..MemoryChange::default() })?;
        }
    }

    /// What lacks a vector by a model, the newest first and as much as is made together, and what has one in vain.
    fn lacking(&self, model: &str) -> Result<Lacking, ConversationError> {
        let store = self.all.store();
        let kind = Some(MemoryKind::Summary);
        let filter = MemoryFilter { kind, participant: Some(&self.participant), ..MemoryFilter::default() };
        let summaries = store.memory().list(&filter)?;
        let counter = Counter::cl100k();
        let (memory, now) = (self.memory(&counter), self.all.engine.store.store().now().as_millis());
        let look = |past: &Person| {
            let mut wanted = Vec::new();
            let mut sessions: BTreeMap<(String, u64), Vec<String>> = BTreeMap::new();
            for (_, fact, _) in past.facts().filter(|(_, fact, _)| memory.holds(fact, now)) {
                let (conversation, session, text) =
                    (fact.conversation.clone(), fact.session, fact.said.fact.clone());
                sessions.entry((conversation.clone(), session)).or_default().push(text.clone());
                wanted.push(Wanted { key: fact_key(&fact.id), text, conversation, session });
            }
            for MemoryRecord { conversation, session, data, .. } in &summaries {
                if let (Some(conversation), Some(session)) = (conversation, session) {
                    let lines = sessions.entry((conversation.clone(), *session)).or_default();
                    lines.push(blocks::summary(&data["summary"]));
                }
            }
            for ((conversation, session), lines) in sessions {
                let key = session_key(&format!("{conversation}/{}/{session}", self.participant));
                wanted.push(Wanted { key, text: lines.join("\n"), conversation, session });
            }
            let has = |vector: Option<&KeptVector>, hash: ContentHash| {
                vector.is_some_and(|vector| vector.model == model && vector.text == Some(hash))
            };
            let numbers: BTreeSet<u64> = past.said().map(|said| said.number).collect();
            let keys: BTreeSet<&str> = wanted.iter().map(|one| one.key.as_str()).collect();
            let (messages, others) = past.with_vectors();
            let gone = messages.filter(|number| !numbers.contains(number)).map(message_key);
            let gone = gone.chain(others.filter(|key| !keys.contains(key.as_str())).cloned());
            let gone = gone.map(|key| (MemoryKind::Vector, key)).collect();
            wanted.retain(|one| !has(past.vector_of(&one.key), ContentHash::new(one.text.as_bytes())));
            wanted.reverse();
            wanted.truncate(TOGETHER);
            let messages =
                past.said().rev().filter(|said| !has(past.vector_of_message(said.number), said.hash));
            let messages = messages.take(TOGETHER - wanted.len()).cloned().collect();
            Lacking { texts: wanted, messages, gone }
        };
        Ok(self.all.past.look(&self.all.engine.store, &self.participant, look)?)
    }
}
