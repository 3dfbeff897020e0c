//! What participants give to each other: by an explicit act, after a preview, to those who are named. A statement for a
//! comparison is released for that purpose only, and read once every participant has released one.

use larder_store::{MemoryChange, MemoryFilter, MemoryKind, MemoryRecord, StoreError, Timestamp};
use serde::Serialize;
use serde_json::json;

use super::{PersonMemory, number, text};

/// A text that a participant gave to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Share {
    /// Its id.
    pub id: String,
    /// Who gave it.
    pub from: String,
    /// To whom.
    pub to: Vec<String>,
    /// The text, as it was previewed.
    pub text: String,
    /// The action for which it was released, if it was given to no one.
    pub purpose: Option<String>,
    /// The message it was taken from.
    pub message: u64,
    /// When.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created: Timestamp,
}

impl Share {
    pub(crate) fn read(record: &MemoryRecord) -> Self {
        let to = record.data.get("to").and_then(serde_json::Value::as_array);
        let names = to.into_iter().flatten().filter_map(|name| name.as_str()).map(str::to_owned);
        Self {
            id: record.id.clone(),
            from: record.participant.clone(),
            to: names.collect(),
            text: text(record, "text").to_owned(),
            purpose: Some(text(record, "purpose")).filter(|purpose| !purpose.is_empty()).map(str::to_owned),
            message: number(record, "message"),
            created: record.created,
        }
    }
}

impl PersonMemory<'_> {
    /// Gives a text to participants who are named, or with a purpose releases it for that. Call it only for a text that the
    /// participant previewed and confirmed. `message` is the message it was taken from.
    ///
    /// # Errors
    /// A name is of no other participant, the message is not of this track, or the store fails.
    pub fn share(
        &self,
        message: u64,
        text: &str,
        to: &[String],
        purpose: Option<&str>,
    ) -> Result<Share, StoreError> {
        let record = self.sharing(self.talks().new_id("share")?, message, text, to, purpose)?;
        self.talks()
            .memory()
            .apply(&MemoryChange { put: vec![record.clone()], ..MemoryChange::default() })?;
        Ok(Share::read(&record))
    }

    /// What says that a text is given.
    pub(crate) fn sharing(
        &self,
        id: String,
        message: u64,
        text: &str,
        to: &[String],
        purpose: Option<&str>,
    ) -> Result<MemoryRecord, StoreError> {
        let source = self.talks().get_message(self.track, message)?;
        let others = self.talks().get(self.track.conversation)?.participants;
        for name in to {
            let is_other = name != self.track.participant && others.iter().any(|other| other.name == *name);
            if !is_other {
                let reason = "not another participant of this conversation";
                return Err(StoreError::InvalidName { what: "participant", name: name.clone(), reason });
            }
        }
        let data = json!({"text": text, "to": to, "purpose": purpose, "message": message});
        Ok(MemoryRecord {
            conversation: Some(self.track.conversation.to_owned()),
            session: Some(source.session),
            ..self.record(MemoryKind::Share, id, &data)
        })
    }

    /// What this participant gave in the conversation, oldest first.
    ///
    /// # Errors
    /// The store fails.
    pub fn shared_by_me(&self) -> Result<Vec<Share>, StoreError> {
        let (kind, conversation) = (Some(MemoryKind::Share), Some(self.track.conversation));
        let filter = MemoryFilter { kind, conversation, ..MemoryFilter::default() };
        Ok(self.records(filter)?.iter().map(Share::read).collect())
    }

    /// What others gave to this participant, oldest first.
    ///
    /// # Errors
    /// The store fails.
    pub fn shared_with_me(&self) -> Result<Vec<Share>, StoreError> {
        Ok(self.talks().shared_with(self.track)?.iter().map(Share::read).collect())
    }

    /// What every participant released for a purpose; empty until each of them has.
    ///
    /// # Errors
    /// The store fails.
    pub fn released(&self, purpose: &str) -> Result<Vec<Share>, StoreError> {
        Ok(self.talks().released(self.track, purpose)?.iter().map(Share::read).collect())
    }
}
