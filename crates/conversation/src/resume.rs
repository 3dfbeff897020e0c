//! Which conversation a client goes on with that sends its whole history, as clients of models do: the messages that are
//! stored already are never stored again.

use larder_store::{ConversationMessage, Speaker};

use crate::conversation::{Conversation, ConversationError, Conversations};

/// The newest conversations of a type that are compared with a history.
const COMPARED: usize = 64;

/// A message as a client remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// Who said it.
    pub speaker: Speaker,
    /// What was said.
    pub text: String,
}

/// What the last message of a history is to a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    /// It is new.
    New,
    /// It was posted before, as the message with this number.
    Posted(u64),
    /// It takes the place of the last message of the participant.
    Revised,
}

impl Conversation {
    /// What `text` is to the current session for a client that has `before` of it. A client need not have everything: a
    /// message is new unless what comes before it says otherwise.
    ///
    /// # Errors
    /// The store fails.
    pub fn continuation(&self, before: &[Remembered], text: &str) -> Result<Continuation, ConversationError> {
        let messages = self.messages(None)?;
        if let Some(last) = messages.last().filter(|last| last.pending && last.text == text) {
            return Ok(Continuation::Posted(last.number));
        }
        Ok(self.behind(&messages, before, text).unwrap_or(Continuation::New))
    }

    /// The same for a client that has all of the session; `None` if it has not.
    fn behind(
        &self,
        messages: &[ConversationMessage],
        before: &[Remembered],
        text: &str,
    ) -> Option<Continuation> {
        // What the assistant said by itself reaches only clients that read it.
        let exchanged: Vec<_> = messages
            .iter()
            .filter(|one| one.speaker == Speaker::Participant || one.reply_to.is_some())
            .collect();
        let is_same = |message: &ConversationMessage, remembered: &Remembered| {
            message.speaker == remembered.speaker && message.text.trim() == remembered.text.trim()
        };
        let has_all = !before.is_empty()
            && before.len() <= exchanged.len()
            && exchanged.iter().zip(before).all(|(message, remembered)| is_same(message, remembered));
        match exchanged.get(before.len()..).filter(|_| has_all)? {
            [] => Some(Continuation::New),
            [last] | [last, _] if last.speaker == Speaker::Participant => Some(match last.text == text {
                true => Continuation::Posted(last.number),
                false => Continuation::Revised,
            }),
            _ => None,
        }
    }
}

impl Conversations {
    /// The conversation of a type whose current session is exactly what a client has, and the number of the client's last
    /// message if it was posted there before. Two that are the same so far are interchangeable.
    ///
    /// # Errors
    /// The store fails.
    pub fn continuing(
        &self,
        kind: &str,
        participant: Option<&str>,
        before: &[Remembered],
        text: &str,
    ) -> Result<Option<(Conversation, Continuation)>, ConversationError> {
        let mut posted = None;
        let records = self.store().list()?;
        for record in records.iter().filter(|record| record.kind == kind).take(COMPARED) {
            let Ok(conversation) = self.open(&record.id, participant) else { continue };
            match conversation.behind(&conversation.messages(None)?, before, text) {
                Some(Continuation::New) => return Ok(Some((conversation, Continuation::New))),
                Some(again @ Continuation::Posted(_)) => posted = posted.or(Some((conversation, again))),
                // Without a name, nothing of a conversation is taken back.
                Some(Continuation::Revised) | None => {}
            }
        }
        Ok(posted)
    }
}
