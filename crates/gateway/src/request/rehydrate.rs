//! Answers Larder's own tool within the limits of one request, records what was read back, and keeps the round trips
//! that the client does not see. Knows no wire format.

use std::collections::BTreeSet;

use larder_engine::blocking;
use larder_engine::rehydrate::{OpenedOriginal, PromptRoom};
use larder_proxy::record::{Rehydration, RequestRecord, WindowPart, cut_name};
use larder_proxy::wire::{HiddenSteps, RehydrateCall, ReplyPlace};
use larder_store::{StoreError, UserStore};
use larder_text::hash::ContentHash;
use larder_text::pointer::{Pointer, PointerId};
use larder_text::tokens::Counter;

use crate::error::RequestError;

/// The key of the id under which the provider holds a history with pointers, whether or not round trips are hidden in
/// it.
pub const STORED_UNDER: &str = "stored_under";

/// The key of the pointers in a history that the provider holds, whose originals are used as long as it is.
pub const POINTERS: &str = "pointers";

/// Under which name round trips are stored with a history that the provider holds under `id`.
pub fn held_session(id: &str) -> String {
    format!("held-{}", ContentHash::new(id.as_bytes()).to_hex())
}

/// Answers the calls of Larder's tool in the reply to one request.
pub struct Rehydrator {
    /// The name under which it is offered.
    pub tool: &'static str,
    /// The store of the originals' owner.
    pub store: UserStore,
    /// The conversation.
    pub session: String,
    /// The conversation that the provider adds the reply to, if it holds one.
    pub held_in: Option<String>,
    /// The pointers in the prompt, those in what the provider holds included.
    pub pointers: BTreeSet<PointerId>,
    /// The place of the reply in it, as the client knows it.
    pub place: ReplyPlace,
    /// Counts tokens as the model does.
    pub counter: Counter,
    /// What calls may still add to the prompt.
    pub left: PromptRoom,
}

impl Rehydrator {
    /// The answers to `calls`, which lengthen the prompt. `said` is the token count of the reply that made them.
    ///
    /// # Errors
    /// When the prompt has no room for any answer, or the store failed.
    pub async fn answer(
        &mut self,
        calls: &[RehydrateCall],
        said: usize,
        exchange: &mut RequestRecord,
    ) -> Result<Vec<String>, RequestError> {
        let (store, counter, mut left) = (self.store.clone(), self.counter.clone(), self.left);
        left.begin_round(said, calls.len());
        let calls: Vec<String> = calls.iter().map(|call| call.arguments.clone()).collect();
        let answering = blocking::run(move || {
            let answers: Result<Vec<OpenedOriginal>, StoreError> =
                calls.iter().map(|arguments| left.open(&store, &counter, arguments)).collect();
            answers.map(|answers| (answers, left))
        });
        let answered = answering.await.map_err(|error| RequestError::bug(&error.to_string()))?;
        let (answers, left) = answered?;
        self.left = left;
        let mut texts = Vec::new();
        for answer in answers {
            exchange.rehydrations.push(recorded(&answer, &exchange.window));
            texts.push(answer.text);
        }
        Ok(texts)
    }

    /// Tokens of calls, for providers that do not report the reply's usage.
    pub fn size(&self, calls: &[RehydrateCall]) -> usize {
        calls.iter().map(|call| self.counter.count(&call.arguments)).sum()
    }

    /// Keeps the round trips that the client does not see, also with the reply that the provider stores under
    /// `stored_under`, of which a request that continues from it names either id. When it returns they survive a crash.
    pub async fn remember(&self, hidden: Vec<HiddenSteps>, stored_under: Option<(&str, &str)>) {
        if hidden.is_empty() && stored_under.is_none() {
            return;
        }
        let (store, session) = (self.store.clone(), self.session.clone());
        let mut pointers = self.pointers.clone();
        let last = stored_under.map(|(last, _)| last.to_owned()).unwrap_or_default();
        let ids = stored_under.into_iter().flat_map(|(last, first)| [last, first]);
        let held: BTreeSet<String> = ids.chain(self.held_in.as_deref()).map(held_session).collect();
        let kept = blocking::run(move || {
            let rows: Vec<(Vec<String>, String)> = hidden
                .into_iter()
                .map(|hidden| (hidden.keys.clone(), serde_json::to_string(&hidden).unwrap_or_default()))
                .collect();
            if !rows.is_empty() {
                store.round_trips().insert(&session, &rows)?;
            }
            let read_back = rows.iter().flat_map(|(_, document)| store.key().find_in(document));
            pointers.extend(read_back.map(|(_, pointer)| pointer.id));
            let pointers = pointers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let of_history = [(STORED_UNDER, last), (POINTERS, pointers)];
            let of_history = of_history.map(|(key, document)| (vec![key.to_owned()], document));
            let rows: Vec<_> = rows.into_iter().chain(of_history).collect();
            held.iter().try_for_each(|held| store.round_trips().insert(held, &rows))
        });
        // Everything works without them: the model calls again.
        if let Err(error) = kept.await.unwrap_or(Ok(())) {
            tracing::error!(%error, "round trips with the model could not be stored");
        }
    }
}

/// The record of an answer.
fn recorded(answer: &OpenedOriginal, window: &[WindowPart]) -> Rehydration {
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let pointer = cut_name(&answer.pointer);
    Rehydration {
        tool: tool_of(window, &pointer),
        pointer,
        found: answer.is_found,
        bytes: number(answer.bytes),
        tokens: number(answer.tokens),
        spent_tokens: 0,
        cost: None,
    }
}

/// The tool whose result the pointer leads to, if the window shows it.
fn tool_of(window: &[WindowPart], pointer: &str) -> String {
    let Ok(read) = pointer.parse::<Pointer>() else { return String::new() };
    let is_read = |part: &&WindowPart| part.pointer.as_ref().is_some_and(|pointer| pointer.id == read.id);
    window.iter().find(is_read).map(|part| part.label.clone()).unwrap_or_default()
}
