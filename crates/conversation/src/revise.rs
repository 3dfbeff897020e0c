//! What is changed or removed after it was said: the last message once more or in other words, a message with its reply, a
//! participant's side of a conversation. And what a reply may cost, before it is asked for.

use futures::future::{BoxFuture, FutureExt};
use larder_engine::executor::{ModelSet, max_call_usage};
use larder_store::{ConversationMessage, MemoryFilter, ParticipantRecord, Speaker, StoreError, Track};
use larder_text::words::is_blank;

use crate::conversation::{Conversation, Conversations};
use crate::error::ConversationError;
use crate::kind::Trigger;
use crate::memory::Eraser;

impl Conversation {
    /// Takes the last message of the participant and its reply back, and posts it anew: with another text, or to be answered
    /// once more. The participant is where it was before that message, and what was remembered from it goes. With a key that
    /// was used for the same before, it is the message of then.
    ///
    /// # Errors
    /// The session has no message, another was posted after it meanwhile, something was shared or done since, the new text is
    /// empty, the key belongs to another text, or the store fails.
    pub fn revise<'a>(
        &'a self,
        text: Option<&'a str>,
        key: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ConversationMessage, ConversationError>> {
        async move {
            if text.is_some_and(is_blank) {
                return Err(ConversationError::Empty);
            }
            let named = last_said(&self.messages(None)?).map(|last| last.number);
            let _lease = self.lease().await?;
            if let Some(key) = key
                && let Some(earlier) = self.all.store().posted(self.track(), key, text)?
            {
                return Ok(earlier);
            }
            let (session, state) = self.standing()?;
            let messages = self.messages(Some(session))?;
            let named = named.ok_or(StoreError::UnknownMessage { number: 0 })?;
            // What was meant is the message that was the last one when this was asked for.
            let last = last_said(&messages).filter(|last| last.number == named);
            let last = last.ok_or(StoreError::NotLast { number: named })?;
            let reply = self.all.store().reply_to(self.track(), named)?;
            let before = reply.map(|reply| self.record_of(&reply).before);
            if before.as_ref().is_some_and(|before| before.acts != state.acts) {
                return Err(ConversationError::Acted { number: named });
            }
            let state = serde_json::to_value(before.unwrap_or(state)).unwrap_or_default();
            let chars = self.loaded.kind.window.message_chars;
            let mut erasure = self.all.eraser().with_last(self.track(), named)?;
            // What actions gave behind it goes, too.
            for given in
                messages.iter().filter(|one| one.position() > last.position() && one.reply_to.is_none())
            {
                let record = self.record_of(given);
                erasure.messages.push(given.number);
                erasure
                    .runs
                    .extend([record.run].iter().chain(&record.more_runs).filter_map(|run| run.parse().ok()));
            }
            let new = (text, key);
            Ok(self.all.store().replace_last(self.track(), named, new, &state, chars, &erasure)?)
        }
        .boxed()
    }

    /// Erases a message with its reply, or a reply alone, and what was made from them.
    ///
    /// # Errors
    /// There is no such message, or the store fails.
    pub fn delete_message<'a>(&'a self, number: u64) -> BoxFuture<'a, Result<(), ConversationError>> {
        async move {
            let _lease = self.lease().await?;
            self.all.store().retire_key(self.track(), number)?;
            Ok(self.all.eraser().message(self.track(), number)?)
        }
        .boxed()
    }

    /// The most tokens of a reply with one action behind it, and every model that it may ask.
    pub fn reply_budget(&self) -> (u64, ModelSet) {
        let (kind, engine) = (&self.loaded.kind, &self.all.engine);
        let mut reach = ModelSet::default();
        let mut most = |names: &mut dyn Iterator<Item = &str>| {
            let tokens = names.filter_map(|name| {
                let recipe = engine.find(name, None).ok()?;
                reach.join(engine.reachable_by(recipe, None, kind.router.as_deref()));
                let usage = max_call_usage(recipe);
                Some(usage.input.saturating_add(usage.output))
            });
            tokens.max().unwrap_or_default()
        };
        let small = kind.small.as_ref().map(|small| small.recipe.as_str());
        let reply = most(&mut [Some(kind.recipe.as_str()), small].into_iter().flatten());
        let actions = kind.actions.values().filter(|action| action.on.contains(&Trigger::Dispatch));
        let action = most(&mut actions.map(|action| action.recipe.as_str()));
        (reply.saturating_add(action), reach)
    }
}

/// The newest message of the participant.
pub(crate) fn last_said(messages: &[ConversationMessage]) -> Option<&ConversationMessage> {
    messages.iter().rev().find(|message| message.speaker == Speaker::Participant)
}

impl Conversations {
    /// Erases a person of this user: what it said and was told in all conversations, its consents, everything remembered, and
    /// the invitations of its name.
    ///
    /// # Errors
    /// There is no such person, or the store fails.
    pub fn forget<'a>(&'a self, participant: &'a str) -> BoxFuture<'a, Result<(), ConversationError>> {
        async move {
            let user = self.engine.store.user();
            let is_person = |one: &ParticipantRecord| one.name == participant && one.user == user;
            let mut records = self.store().list()?;
            records.retain(|record| record.participants.iter().any(is_person));
            let kept = MemoryFilter { participant: Some(participant), ..MemoryFilter::default() };
            let mut invitations = self.store().invitations()?;
            invitations.retain(|invitation| invitation.name == participant);
            if records.is_empty() && invitations.is_empty() && self.store().memory().list(&kept)?.is_empty() {
                return Err(ConversationError::UnknownPerson {
                    name: participant.chars().take(80).collect(),
                });
            }
            for invitation in &invitations {
                self.store().decline(Track { conversation: &invitation.conversation, participant })?;
            }
            let mut leases = Vec::new();
            for record in &records {
                leases.push(self.lease_of(Track { conversation: &record.id, participant }).await?);
            }
            Ok(self.eraser().person(participant)?)
        }
        .boxed()
    }

    pub(crate) const fn eraser(&self) -> Eraser<'_> {
        Eraser { store: &self.engine.store }
    }

    /// Erases this user's sides of a conversation, or only that of a participant, with what was made from them. Without the
    /// last of them, the user who began it has no conversation left.
    ///
    /// # Errors
    /// There is no such conversation or participant of this user, or the store fails.
    pub fn delete<'a>(
        &'a self,
        id: &'a str,
        participant: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), ConversationError>> {
        async move {
            let record = self.store().get(id)?;
            let own = record.participants.iter().filter(|one| one.user == self.engine.store.user());
            let (erased, kept): (Vec<_>, Vec<_>) =
                own.partition(|one| participant.is_none_or(|name| one.name == name));
            if participant.is_some() && erased.is_empty() {
                return Err(StoreError::UnknownConversation { id: record.id }.into());
            }
            let mut leases = Vec::new();
            for participant in &erased {
                let track = Track { conversation: &record.id, participant: &participant.name };
                leases.push(self.lease_of(track).await?);
            }
            let eraser = self.eraser();
            match erased[..] {
                [one] if !kept.is_empty() => {
                    eraser.track(Track { conversation: &record.id, participant: &one.name })?;
                }
                _ => eraser.conversation(&record.id)?,
            }
            Ok(())
        }
        .boxed()
    }
}
