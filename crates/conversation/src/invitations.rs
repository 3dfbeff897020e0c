//! How conversations begin: with participants who take part at once, and with those who are asked first.

use larder_store::{ConversationRecord, NewConversation, Track};

use crate::conversation::{ALONE, Conversations};
use crate::error::ConversationError;
use crate::state::ParticipantState;

/// The most invitations of one user that may be open at once, over all conversations: whoever is invited sees each of them,
/// and nobody is to fill the list of another. One conversation has as many as its type has participants.
const OPEN_INVITATIONS: u64 = 50;
/// Characters of a title.
const TITLE_CHARS: usize = 60;

impl Conversations {
    /// Begins a conversation of a type. Participants are names and users; without any, the user is alone in it.
    ///
    /// # Errors
    /// The type does not exist or has errors, there are too many participants, or the store fails.
    pub fn begin(
        &self,
        kind: &str,
        title: &str,
        participants: &[(String, String)],
    ) -> Result<ConversationRecord, ConversationError> {
        self.begin_inviting(kind, title, participants, &[])
    }

    /// Begins a conversation to which others are invited: they take part once they [`accept`](Self::accept), and until then
    /// nothing is kept of them and nothing of the conversation is theirs.
    ///
    /// # Errors
    /// As [`begin`](Self::begin), nobody but those who are invited is named, or too many invitations of this user are open.
    pub fn begin_inviting(
        &self,
        kind: &str,
        title: &str,
        participants: &[(String, String)],
        invited: &[(String, String)],
    ) -> Result<ConversationRecord, ConversationError> {
        let loaded = self.types.find(kind)?;
        let (given, most) = (participants.len() + invited.len(), loaded.kind.participants.most);
        if given > usize::from(most) {
            return Err(ConversationError::TooMany { given, kind: kind.to_owned(), most });
        }
        if !invited.is_empty() {
            let open = self.store().invitations_made()?;
            if open.saturating_add(invited.len() as u64) > OPEN_INVITATIONS {
                return Err(ConversationError::TooManyInvitations { open, most: OPEN_INVITATIONS });
            }
        }
        let alone = [(ALONE.to_owned(), self.engine.store.user().to_owned())];
        let participants = if given == 0 { &alone } else { participants };
        let title: String = title.chars().take(TITLE_CHARS).collect();
        let state = &serde_json::to_value(ParticipantState::default()).unwrap_or_default();
        let new = NewConversation { kind: &loaded.kind.name, title: &title, participants, invited, state };
        Ok(self.store().create(&new)?)
    }

    /// Takes part in a conversation to which this user was invited under a name.
    ///
    /// # Errors
    /// There is no such invitation, or the store fails.
    pub fn accept(&self, id: &str, name: &str) -> Result<ConversationRecord, ConversationError> {
        let state = serde_json::to_value(ParticipantState::default()).unwrap_or_default();
        self.store().accept(Track { conversation: id, participant: name }, &state)?;
        self.show(id)
    }
}
