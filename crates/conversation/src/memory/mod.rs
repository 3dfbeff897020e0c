//! What is remembered of a person: facts with the words they come from, kept within their session unless the person
//! consented (C97), and erased with what was made of them when a consent is revoked.
//!
//! A person is a user and the name of a participant. Everything is a record of the store that names the consent under which
//! it was made; nothing is found by searching the texts of others.

mod clean;
mod consent;
mod erase;
mod facts;
mod merge;
mod quote;
mod redact;
mod share;

use larder_store::{
    Conversations, MemoryFilter, MemoryKind, MemoryRecord, StoreError, Timestamp, Track, UserStore,
};
use larder_text::tokens::Counter;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kind::MemoryRules;
use crate::nearness::Nearness;
use crate::past::Person;

pub use self::consent::{Consent, EVERYTHING, consent_text};
pub use self::erase::Eraser;
pub use self::facts::{CONSOLIDATE, FactDiff, FactReport, FactUpsert, RefusedFact};
pub(crate) use self::facts::{Request, statement};
pub use self::merge::{MergeReport, MergedFact, MergedFacts};
pub use self::share::Share;

/// A remembered statement (C103).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Fact {
    /// Its id, which never changes.
    pub id: String,
    /// What it says, and where from.
    #[serde(flatten)]
    pub said: Statement,
    /// The conversation of its source.
    pub conversation: String,
    /// The session of its source.
    pub session: u64,
    /// The consent under which it is remembered beyond its session.
    pub consent: Option<String>,
    /// When it was first written.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created: Timestamp,
    /// Until when it held, if a newer one contradicts it.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, format = DateTime))]
    pub valid_until: Option<Timestamp>,
}

/// What a fact says, and where from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Statement {
    /// One of the categories of the type.
    pub category: String,
    /// The statement.
    pub fact: String,
    /// The number of the message it comes from.
    pub message: u64,
    /// The first byte of the words in that message …
    pub start: usize,
    /// … and the byte after them.
    pub end: usize,
    /// How far it reaches.
    pub scope: FactScope,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// The fact it contradicts.
    pub supersedes: Option<String>,
    /// The facts that it was merged from; what it says of its source is that of the newest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
    /// The people whom it is about (R4-7.20).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub people: Vec<String>,
    /// Whether the person asked for it to be remembered.
    pub preference: bool,
    /// The run that wrote it.
    pub run: Option<String>,
}

impl Statement {
    /// The text by which it is found: the statement, and whom it is about.
    pub(crate) fn searched(&self) -> String {
        [std::slice::from_ref(&self.fact), &self.people].concat().join(" ")
    }
}

/// How far a fact reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FactScope {
    /// Its session, and other sessions of the person while its consent is in force.
    Session,
    /// All sessions of the person.
    Profile,
    /// The participants of the conversation that were named.
    Shared,
}

/// What is looked for in memory.
#[derive(Debug, Clone, Copy)]
pub struct Sought<'a> {
    /// A message, or any words.
    pub text: &'a str,
    /// Its vector.
    pub(crate) near: Option<&'a Nearness>,
    /// The past of the person; without it, it is read from the store.
    pub(crate) past: Option<&'a Person>,
}

impl<'a> Sought<'a> {
    /// Looks for words alone.
    pub const fn words(text: &'a str) -> Self {
        Self { text, near: None, past: None }
    }
}

/// Something that may enter a window, and by which right it is there if it crosses a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shown<T> {
    /// What is shown.
    pub item: T,
    /// The consent, for what comes from another session.
    pub consent: Option<String>,
}

/// What is remembered of one participant, seen from its newest session or another one.
#[derive(Debug, Clone, Copy)]
pub struct PersonMemory<'a> {
    /// The user's store.
    pub store: &'a UserStore,
    /// The participant and the conversation.
    pub track: Track<'a>,
    /// What the type says of memory.
    pub rules: &'a MemoryRules,
    /// Counts the tokens of a profile.
    pub counter: &'a Counter,
    /// What had been erased before anything was read that is written now; see [`MemoryChange::since`].
    ///
    /// [`MemoryChange::since`]: larder_store::MemoryChange::since
    pub since: Option<u64>,
}

impl<'a> PersonMemory<'a> {
    const fn talks(&self) -> Conversations<'a> {
        self.store.conversations()
    }

    fn records(&self, filter: MemoryFilter<'_>) -> Result<Vec<MemoryRecord>, StoreError> {
        self.talks().memory().list(&MemoryFilter { participant: Some(self.track.participant), ..filter })
    }

    /// A new record of this person.
    fn record(&self, kind: MemoryKind, id: String, data: &impl Serialize) -> MemoryRecord {
        MemoryRecord {
            number: 0,
            kind,
            id,
            participant: self.track.participant.to_owned(),
            conversation: None,
            session: None,
            consent: None,
            data: serde_json::to_value(data).unwrap_or_default(),
            vector: None,
            created: self.store.store().now(),
            ended: None,
        }
    }

    /// What says that a reply was made with these things of other sessions in view: part of the reply's transaction.
    pub fn origins<'s, T: 's>(
        &self,
        shown: impl IntoIterator<Item = &'s Shown<T>>,
        key: impl Fn(&T) -> String,
    ) -> Vec<MemoryRecord> {
        let crossing = shown.into_iter().filter_map(|shown| Some((key(&shown.item), shown.consent.clone()?)));
        let record = |(item, consent): (String, String)| MemoryRecord {
            consent: Some(consent),
            ..self.record(MemoryKind::Origin, item.clone(), &serde_json::json!({ "item": item }))
        };
        crossing.map(record).collect()
    }

    /// What says that a run worked on a session, so that its receipt and answer can be erased.
    pub fn ran(&self, run: &str, session: u64, message: u64) -> MemoryRecord {
        MemoryRecord {
            conversation: Some(self.track.conversation.to_owned()),
            session: Some(session),
            ..self.record(
                MemoryKind::Run,
                run.to_owned(),
                &serde_json::json!({"run": run, "message": message}),
            )
        }
    }
}

impl Fact {
    pub(crate) fn read(record: MemoryRecord) -> Option<Self> {
        Some(Self {
            said: serde_json::from_value(record.data).ok()?,
            id: record.id,
            conversation: record.conversation?,
            session: record.session?,
            consent: record.consent,
            created: record.created,
            valid_until: record.ended,
        })
    }

    fn write(&self, memory: &PersonMemory<'_>) -> MemoryRecord {
        MemoryRecord {
            conversation: Some(self.conversation.clone()),
            session: Some(self.session),
            consent: self.consent.clone(),
            created: self.created,
            ended: self.valid_until,
            ..memory.record(MemoryKind::Fact, self.id.clone(), &self.said)
        }
    }
}

/// The text of a field of a record.
fn text<'r>(record: &'r MemoryRecord, field: &str) -> &'r str {
    record.data.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The number in a field of a record.
fn number(record: &MemoryRecord, field: &str) -> u64 {
    record.data.get(field).and_then(Value::as_u64).unwrap_or_default()
}
