//! What conversations may cost.

use crate::catalog::LoadedType;
use crate::conversation::{Conversation, Conversations};
use crate::error::ConversationError;

/// Millionths of a millionth of a US dollar in one.
const PICOS: f64 = 1e12;

impl Conversation {
    /// Fails if the ceilings of the type are reached.
    pub(crate) fn require_money(&self) -> Result<(), ConversationError> {
        self.all.require_money(&self.loaded, Some(&self.id))
    }
}

impl Conversations {
    /// Fails if the ceilings of a type are reached: of a day and, with its id, of a conversation.
    pub(crate) fn require_money(
        &self,
        loaded: &LoadedType,
        conversation: Option<&str>,
    ) -> Result<(), ConversationError> {
        let ceilings = &loaded.kind.ceilings;
        let per_conversation = ceilings.per_conversation.filter(|_| conversation.is_some());
        let limits = [
            (per_conversation, "a conversation", "per_conversation", conversation),
            (ceilings.per_day, "one day of one user", "per_day", None),
        ];
        for (limit, of, key, conversation) in limits {
            if let Some(limit) = limit
                && self.store().spent(conversation)? as f64 >= limit * PICOS
            {
                return Err(ConversationError::Ceiling { limit, of, key });
            }
        }
        Ok(())
    }
}
