//! What of persons' pasts is kept in memory between messages, so that looking something up costs about the same after ten
//! thousand messages as after ten: words of what was said, facts, and the vectors of both.
//!
//! It follows the store: before each use what is new is read, and what was erased is forgotten. Texts of messages are not
//! kept; they are read when they are sent (R4-4.16).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use larder_retrieval::dialogue::{Dialogue, Utterance, of_unit_length};
use larder_store::{
    ConversationMessage, MemoryKind, MemoryRecord, PersonSeen, StoreError, Timestamp, UserStore,
};
use larder_text::hash::ContentHash;

use crate::memory::{Fact, statement};
use crate::nearness::{MESSAGE_KEY, Nearness};
use crate::retrieve::{author, spoken};

/// Bytes of all persons together, about. A person with more than that is read anew for each message.
const MOST_BYTES: usize = 64 << 20;
/// Bytes of a message or a fact besides its words and its vector, about.
const ENTRY_BYTES: usize = 400;

/// The pasts of persons that were looked at lately.
#[derive(Debug, Default)]
pub struct Past(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// How often anyone was looked at.
    looks: u64,
    /// By user and participant.
    persons: HashMap<(String, String), KeptPerson>,
}

#[derive(Debug, Default)]
struct KeptPerson {
    last_look: u64,
    bytes: usize,
    person: Arc<Mutex<Person>>,
}

/// Where a message is: its conversation, its session, and its turn with its number.
type Place = (Arc<str>, u64, (u64, u64));

/// The past of one person, who is a user and the name of a participant.
#[derive(Debug, Default)]
pub struct Person {
    seen: PersonSeen,
    conversations: BTreeSet<Arc<str>>,
    /// What was said, one session after the other.
    said: BTreeMap<Place, SaidMessage>,
    /// Words of what was said, by number.
    pub(crate) words: Dialogue,
    /// By the moment and the number of their records.
    facts: BTreeMap<(Timestamp, u64), KeptFact>,
    fact_keys: HashMap<String, (Timestamp, u64)>,
    /// Words of facts, by the numbers of their records.
    pub(crate) fact_words: Dialogue,
    /// Of messages, by number, and of everything else, by key.
    vectors: (HashMap<u64, KeptVector>, HashMap<String, KeptVector>),
    floats: usize,
}

/// A message that was said.
#[derive(Debug, Clone)]
pub(crate) struct SaidMessage {
    pub conversation: Arc<str>,
    pub session: u64,
    pub number: u64,
    pub created: Timestamp,
    /// Of its text, with who says it.
    pub hash: ContentHash,
}

/// A fact, and what it shares with those that say the same.
#[derive(Debug)]
struct KeptFact {
    fact: Fact,
    statement: ContentHash,
}

/// A vector, and what it is of.
#[derive(Debug)]
pub(crate) struct KeptVector {
    number: u64,
    pub model: String,
    pub text: Option<ContentHash>,
    /// Of unit length.
    floats: Vec<f32>,
}

impl Past {
    /// Looks at the past of a person as it is in the store now.
    pub(crate) fn look<T>(
        &self,
        store: &UserStore,
        participant: &str,
        look: impl FnOnce(&Person) -> T,
    ) -> Result<T, StoreError> {
        let key = (store.user().to_owned(), participant.to_owned());
        let person = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.looks += 1;
            let now = kept.looks;
            let held = kept.persons.entry(key.clone()).or_default();
            held.last_look = now;
            Arc::clone(&held.person)
        };
        let mut person = person.lock().unwrap_or_else(PoisonError::into_inner);
        person.follow(store, participant)?;
        let result = look(&person);
        let bytes = person.bytes();
        drop(person);
        self.limit(&key, bytes);
        Ok(result)
    }

    /// Forgets what is kept of a user.
    pub(crate) fn forget(&self, user: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).persons.retain(|(of, _), _| of != user);
    }

    /// Forgets those who were not looked at for the longest time, while all take too much.
    fn limit(&self, key: &(String, String), bytes: usize) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = kept.persons.get_mut(key) {
            held.bytes = bytes;
        }
        while kept.persons.values().map(|held| held.bytes).sum::<usize>() > MOST_BYTES {
            let oldest = kept.persons.iter().min_by_key(|(_, held)| held.last_look);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { return };
            kept.persons.remove(&oldest);
        }
    }
}

impl Person {
    /// Takes in what is new in the store, and forgets what is no longer there.
    pub(crate) fn follow(&mut self, store: &UserStore, participant: &str) -> Result<(), StoreError> {
        let changes = store.conversations().changes(participant, self.seen)?;
        if changes.erasures != self.seen.erasures {
            *self = Self::default();
            self.seen.erasures = changes.erasures;
        }
        // One that waits is looked at again until it has its reply.
        let mut waiting = 0;
        let mut first_waiting = None;
        for (conversation, message) in changes.said {
            if message.pending {
                waiting += 1;
                first_waiting.get_or_insert(message.number);
            } else {
                self.seen.message = self.seen.message.max(message.number);
                self.take_message(participant, &conversation, &message);
            }
        }
        if let Some(first) = first_waiting {
            self.seen.message = self.seen.message.min(first.saturating_sub(1));
        }
        for record in changes.records {
            self.seen.record = self.seen.record.max(record.number);
            self.take_record(record);
        }
        let records = self.facts.len() + self.vectors.0.len() + self.vectors.1.len();
        if [self.said.len() + waiting, records] != changes.there {
            let [messages, records] = store.conversations().numbers(participant)?;
            let is_there = |number: u64| messages.binary_search(&number).is_ok();
            self.said.retain(|(_, _, (_, number)), _| is_there(*number));
            self.words.retain(is_there);
            let is_there = |number: u64| records.binary_search(&number).is_ok();
            self.facts.retain(|(_, number), _| is_there(*number));
            self.fact_keys.retain(|_, (_, number)| is_there(*number));
            self.fact_words.retain(is_there);
            self.vectors.0.retain(|_, vector| is_there(vector.number));
            self.vectors.1.retain(|_, vector| is_there(vector.number));
        }
        Ok(())
    }

    fn take_message(&mut self, participant: &str, conversation: &str, message: &ConversationMessage) {
        let shared = self.conversations.get(conversation).cloned();
        let conversation = shared.unwrap_or_else(|| Arc::from(conversation));
        self.conversations.insert(Arc::clone(&conversation));
        let key = (Arc::clone(&conversation), message.session, message.position());
        if self.said.contains_key(&key) {
            return;
        }
        let spoken = spoken(&message.text, message.speaker, participant);
        let utterance = Utterance {
            text: &message.text,
            author: author(message.speaker, participant),
            millis: message.created.as_millis(),
        };
        self.words.add(message.number, &utterance);
        let said = SaidMessage {
            conversation,
            session: message.session,
            number: message.number,
            created: message.created,
            hash: ContentHash::new(spoken.as_bytes()),
        };
        self.said.insert(key, said);
    }

    fn take_record(&mut self, mut record: MemoryRecord) {
        let number = record.number;
        if record.kind == MemoryKind::Vector {
            // One without numbers says that the model gives none for the text.
            let floats = of_unit_length(record.vector.take().unwrap_or_default());
            self.floats = self.floats.max(floats.len());
            let text = |field: &str| record.data[field].as_str().unwrap_or_default();
            let (model, text) = (text("model").to_owned(), text("text").parse().ok());
            let vector = KeptVector { number, model, text, floats };
            match record.id.strip_prefix(MESSAGE_KEY).and_then(|number| number.parse().ok()) {
                Some(message) => drop(self.vectors.0.insert(message, vector)),
                None => drop(self.vectors.1.insert(record.id, vector)),
            }
            return;
        }
        let Some(fact) = Fact::read(record) else { return };
        let key = (fact.created, number);
        if let Some(before) = self.fact_keys.insert(fact.id.clone(), key) {
            self.facts.remove(&before);
            self.fact_words.retain(|other| other != before.1);
        }
        let text = fact.said.searched();
        let utterance = Utterance { text: &text, author: "", millis: fact.created.as_millis() };
        self.fact_words.add(number, &utterance);
        let statement = ContentHash::new(statement(&fact.said).as_bytes());
        self.facts.insert(key, KeptFact { fact, statement });
    }

    /// What was said, one session after the other, and each in order.
    pub(crate) fn said(&self) -> impl DoubleEndedIterator<Item = &SaidMessage> {
        self.said.values()
    }

    /// All facts with the numbers of their records, oldest first; those that ended included. Those that say the same share a
    /// hash.
    pub(crate) fn facts(&self) -> impl DoubleEndedIterator<Item = (u64, &Fact, ContentHash)> {
        self.facts.iter().map(|((_, number), kept)| (*number, &kept.fact, kept.statement))
    }

    /// The vector of a message.
    pub(crate) fn vector_of_message(&self, number: u64) -> Option<&KeptVector> {
        self.vectors.0.get(&number)
    }

    /// The vector of something else.
    pub(crate) fn vector_of(&self, key: &str) -> Option<&KeptVector> {
        self.vectors.1.get(key)
    }

    /// The messages that have vectors, and the keys of everything else that has one.
    pub(crate) fn with_vectors(&self) -> (impl Iterator<Item = u64>, impl Iterator<Item = &String>) {
        (self.vectors.0.keys().copied(), self.vectors.1.keys())
    }

    /// About how much memory it takes.
    fn bytes(&self) -> usize {
        let vectors = self.vectors.0.len() + self.vectors.1.len();
        self.words.bytes()
            + self.fact_words.bytes()
            + vectors * (self.floats * size_of::<f32>() + ENTRY_BYTES / 2)
            + (self.said.len() + self.facts.len()) * ENTRY_BYTES
    }
}

impl KeptVector {
    /// The vector, if it is by the model of what is being answered.
    pub(crate) fn near(&self, near: &Nearness) -> Option<&[f32]> {
        (self.model == near.model && !self.floats.is_empty()).then_some(self.floats.as_slice())
    }
}
