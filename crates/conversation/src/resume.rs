//! Which conversation a client goes on with that sends its whole history, as clients of models do: the messages that are
//! stored already are never stored again.

use futures::future::{BoxFuture, FutureExt};
use larder_store::{ConversationMessage, Speaker, StoreError, Track};

use crate::conversation::{ALONE, Conversation, Conversations};
use crate::error::ConversationError;

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
    /// Posts a message of a client that names no conversation and has `before` of one: to the conversation of a type that
    /// has exactly that, or with nothing before it to a new one. A message that is sent again is the one of then: by its key
    /// wherever it was posted, without one where it is the last. `None` if `before` is of no conversation.
    ///
    /// # Errors
    /// There is no such type, the key belongs to another text, or the store fails.
    pub fn resume<'a>(
        &'a self,
        kind: &'a str,
        participant: Option<&'a str>,
        before: &'a [Remembered],
        (text, key): (&'a str, Option<&'a str>),
    ) -> BoxFuture<'a, Result<Option<(Conversation, u64)>, ConversationError>> {
        async move {
            self.types.find(kind)?;
            // Of two requests at once the second finds what the first began.
            let user = self.engine.store.user();
            let _once = self.lease_of(Track { conversation: "resume", participant: user }).await?;
            let keyed = key.map(|key| self.keyed(kind, participant, key)).transpose()?.flatten();
            let found = match keyed {
                Some(conversation) => Some((conversation, Continuation::New)),
                None => self.continuing(kind, participant, before, (text, key))?,
            };
            let (conversation, continuation) = match found {
                Some(found) => found,
                None if before.is_empty() => {
                    let name = participant.unwrap_or(ALONE);
                    let begun = self.begin(kind, "", &[(name.to_owned(), user.to_owned())])?;
                    (self.open(&begun.id, Some(name))?, Continuation::New)
                }
                None => return Ok(None),
            };
            let number = match continuation {
                Continuation::Posted(number) => {
                    conversation.await_reply(number)?;
                    number
                }
                _ => conversation.post(text, key)?.number,
            };
            Ok(Some((conversation, number)))
        }
        .boxed()
    }

    /// The conversation of a type to which a message with a key was posted.
    fn keyed(
        &self,
        kind: &str,
        participant: Option<&str>,
        key: &str,
    ) -> Result<Option<Conversation>, ConversationError> {
        for record in self.store().list()?.iter().filter(|record| record.kind == kind).take(COMPARED) {
            let Ok(conversation) = self.open(&record.id, participant) else { continue };
            // One whose message was deleted has had the key, too.
            let has = match self.store().posted(conversation.track(), key, None) {
                Err(StoreError::KeyGone { .. }) => true,
                found => found?.is_some(),
            };
            if has {
                return Ok(Some(conversation));
            }
        }
        Ok(None)
    }

    /// The conversation of a type whose current session is exactly what a client has, and the number of the client's last
    /// message if it was posted there before. Two that are the same so far are interchangeable, so that one with the message
    /// comes first.
    fn continuing(
        &self,
        kind: &str,
        participant: Option<&str>,
        before: &[Remembered],
        (text, key): (&str, Option<&str>),
    ) -> Result<Option<(Conversation, Continuation)>, ConversationError> {
        let mut new = None;
        let records = self.store().list()?;
        for record in records.iter().filter(|record| record.kind == kind).take(COMPARED) {
            let Ok(conversation) = self.open(&record.id, participant) else { continue };
            let messages = conversation.messages(None)?;
            let continuation = match messages.as_slice() {
                // A first message may be said in many conversations; one that still waits for its reply is sent again.
                [only] if before.is_empty() && key.is_none() && only.pending && only.text == text => {
                    Some(Continuation::Posted(only.number))
                }
                messages => conversation.behind(messages, before, text),
            };
            match continuation {
                // Without a name, nothing of a conversation is taken back.
                Some(Continuation::Revised) | None => {}
                Some(Continuation::New) => new = new.or(Some((conversation, Continuation::New))),
                posted => return Ok(posted.map(|posted| (conversation, posted))),
            }
        }
        Ok(new)
    }
}
