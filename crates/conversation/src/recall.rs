//! What of the past enters a prompt besides the history of the session.

use larder_store::ConversationMessage;

use crate::conversation::{Conversation, ConversationError};
use crate::prepare::Prepared;
use crate::state::ParticipantState;

impl Conversation {
    /// Fills in what was shared, remembered and looked up.
    pub(crate) fn recall(
        &self,
        _message: &ConversationMessage,
        _state: &ParticipantState,
        _prepared: &mut Prepared<'_>,
    ) -> Result<(), ConversationError> {
        Ok(())
    }
}
