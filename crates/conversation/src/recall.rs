//! What of the past enters a prompt besides the history of the session.

use larder_engine::executor::ProgressObserver;
use larder_retrieval::has_search_terms;
use larder_store::ConversationMessage;
use larder_text::tokens::Counter;

use crate::conversation::Conversation;
use crate::error::ConversationError;
use crate::intent::MemoryIntent;
use crate::kind::{Aside, Depth};
use crate::memory::{Fact, PersonMemory, Shown, Sought};
use crate::nearness::Near;
use crate::past::Person;
use crate::prepare::Prepared;
use crate::retrieve::Lookup;
use crate::state::ParticipantState;

/// What a record says was asked for without a consent (C97).
const OTHER_SESSIONS: &str = "other sessions";

impl Conversation {
    /// What is remembered of the participant.
    pub fn memory<'a>(&'a self, counter: &'a Counter) -> PersonMemory<'a> {
        let rules = &self.loaded.kind.memory;
        PersonMemory { store: &self.all.engine.store, track: self.track(), rules, counter, since: None }
    }

    /// What is remembered of the participant, for work that writes nothing if something was erased since.
    pub(crate) fn memory_since<'a>(&'a self, counter: &'a Counter, since: Option<u64>) -> PersonMemory<'a> {
        PersonMemory { since, ..self.memory(counter) }
    }

    /// How deep the past is searched for a message. In great distress it is not (R4-4.24), nor where the message withholds it.
    fn depth(state: &ParticipantState, prepared: &Prepared<'_>) -> Depth {
        if prepared.record.safety || prepared.found.memory.is_some_and(MemoryIntent::withholds) {
            return Depth::None;
        }
        let stage = || prepared.stage.retrieval.depth_in(state.stage_turns + 1);
        prepared.found.depth.unwrap_or_else(stage)
    }

    /// The vector of a message, if the past is searched for it: what else is decided before its reply does not wait for it.
    pub(crate) fn near<'a>(
        &'a self,
        message: &'a ConversationMessage,
        state: &ParticipantState,
        prepared: &Prepared<'a>,
        observer: &'a dyn ProgressObserver,
    ) -> impl Future<Output = Near> + Send + use<'a> {
        let is_wanted = Self::depth(state, prepared) >= Depth::Light && has_search_terms(&message.text);
        let stage = prepared.stage;
        async move { if is_wanted { self.nearness(&message.text, stage, observer).await } else { Ok(None) } }
    }

    /// Fills in what was shared and remembered.
    pub(crate) fn recall(
        &self,
        message: &ConversationMessage,
        state: &ParticipantState,
        prepared: &mut Prepared<'_>,
        near: Near,
    ) -> Result<(), ConversationError> {
        let counter = Counter::cl100k();
        let memory = self.memory(&counter);
        let given = memory.shared_with_me()?;
        let shown = given.len().saturating_sub(self.loaded.kind.participants.shown_shares);
        if shown > 0 {
            let earlier = format!("{shown} earlier texts that others shared are not repeated here.");
            prepared.sources.shared.push(earlier);
        }
        let newest = given[shown..].iter().map(|share| format!("{} shared: {}", share.from, share.text));
        prepared.sources.shared.extend(newest);
        prepared.sources.shared.extend(state.notices.iter().cloned());
        for name in self.released_actions()? {
            let about = self.loaded.kind.actions.get(&name).map_or("", |action| action.about.as_str());
            let line = format!(
                "Everyone has released a statement for `{name}`, which can be asked for now: {about}"
            );
            prepared.sources.shared.push(line);
        }
        let (stage, found) = (prepared.stage, prepared.found);
        let depth = Self::depth(state, prepared);
        if depth == Depth::None {
            return Ok(());
        }
        let asks_across = found.across_sessions.unwrap_or(stage.retrieval.across_sessions);
        let consent = memory.consent_to_everything()?.filter(|_| asks_across);
        if asks_across && consent.is_none() {
            prepared.record.blocked_by_consent.push(OTHER_SESSIONS.to_owned());
            tracing::info!(
                event = "blocked_by_consent",
                conversation = self.id,
                "other sessions are not searched"
            );
        }
        let near = near.unwrap_or_else(|why| {
            prepared.record.without_vectors = Some(why);
            None
        });
        let searches = std::mem::take(&mut prepared.searches);
        let lookup = Lookup { message, also: &searches, consent: consent.as_deref(), near: near.as_ref() };
        let look = |past: &Person| self.look_up(&lookup, depth, past, prepared);
        self.all.past.look(&self.all.engine.store, &self.participant, look)?
    }

    /// Fills in what is remembered and what was said before.
    fn look_up(
        &self,
        lookup: &Lookup<'_>,
        depth: Depth,
        past: &Person,
        prepared: &mut Prepared<'_>,
    ) -> Result<(), ConversationError> {
        let counter = Counter::cl100k();
        let memory = self.memory(&counter);
        let session = lookup.message.session;
        let text = [std::slice::from_ref(&lookup.message.text), lookup.also].concat().join("\n");
        let query = Sought { text: &text, near: lookup.near, past: Some(past) };
        let preferences = memory.preferences_to_show(session, &query)?;
        let facts = memory.facts_to_show(session, &query)?;
        let mut reflections = memory.reflections_to_show(session, &self.asides()?, &query)?;
        // What is a fact of the window already is not shown twice.
        reflections.retain(|other| facts.iter().all(|fact| fact.item.id != other.item.id));
        let texts = |shown: &[Shown<Fact>]| shown.iter().map(|fact| fact.item.said.fact.clone()).collect();
        prepared.sources.preferences = texts(&preferences);
        prepared.sources.reflections = texts(&reflections);
        let with_category =
            |fact: &Shown<Fact>| (fact.item.said.category.clone(), fact.item.said.fact.clone());
        prepared.sources.facts = facts.iter().map(with_category).collect();
        let all = preferences.iter().chain(&facts).chain(&reflections);
        prepared.record.facts = all.clone().map(|fact| fact.item.id.clone()).collect();
        prepared.origins = memory.origins(all, |fact| fact.id.clone());
        if depth < Depth::Light { Ok(()) } else { self.retrieve(lookup, past, prepared) }
    }

    /// The sessions of this track that were begun in an aside.
    fn asides(&self) -> Result<Vec<u64>, ConversationError> {
        let kind = &self.loaded.kind;
        let is_aside = |name: &str| kind.stage(name).is_some_and(|stage| stage.aside != Aside::No);
        let sessions = self.all.store().sessions(self.track())?;
        let asides =
            sessions.iter().filter(|session| session.opening["aside"].as_str().is_some_and(is_aside));
        Ok(asides.map(|session| session.session).collect())
    }
}
