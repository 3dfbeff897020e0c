//! Erasing what was made under a consent, or of a message, a fact, a conversation or a person, by references alone.
//!
//! In a session, everything written after the first thing that is erased may repeat it: replies lose the same text, facts
//! that were found in such replies go, receipts and answers of runs go, whether they ended in a reply or not, summaries and
//! vectors go and are made again from what remains. Messages of persons stay.

use std::collections::{BTreeMap, BTreeSet};

use super::redact::Erased;
use super::{number, text};
use larder_store::{
    ConversationMessage, Conversations, Erasure, MemoryFilter, MemoryKind, MemoryRecord, RunId, StoreError,
    Timestamp, Track, UserStore,
};

/// The kind of the job that summarizes a session again; its payload names the track and the session.
pub const REBUILD: &str = "conversation_summary";

/// Erases things of one user.
#[derive(Debug, Clone, Copy)]
pub struct Eraser<'a> {
    /// The user's store.
    pub store: &'a UserStore,
}

/// A session of a participant of this user.
pub(super) type Place = (String, String, u64);

/// What is being erased.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) texts: Vec<Erased>,
    /// The first message of each session from which on something may repeat it.
    pub(super) from: BTreeMap<Place, u64>,
    /// Where that was done, from which message on and how many texts there were.
    pub(super) done: BTreeMap<Place, (u64, usize)>,
    /// Replies of which it is unknown what they repeat.
    pub(super) whole: BTreeSet<u64>,
    pub(super) erasure: Erasure,
}

impl Plan {
    pub(super) fn start(&mut self, place: Place, message: u64) {
        self.from.entry(place).and_modify(|first| *first = (*first).min(message)).or_insert(message);
    }

    pub(super) fn remove(&mut self, record: &MemoryRecord) {
        self.erasure.records.push((record.kind, record.id.clone()));
    }
}

impl Eraser<'_> {
    pub(super) const fn talks(&self) -> Conversations<'_> {
        self.store.conversations()
    }

    pub(super) fn list(&self, filter: &MemoryFilter<'_>) -> Result<Vec<MemoryRecord>, StoreError> {
        self.talks().memory().list(filter)
    }

    /// Erases everything that was made under a consent. Done twice, it erases what came in between.
    ///
    /// # Errors
    /// The store fails; then it is to be done again.
    pub fn consent(&self, id: &str) -> Result<(), StoreError> {
        let mut plan = Plan::default();
        for record in self.list(&MemoryFilter { consent: Some(id), ..MemoryFilter::default() })? {
            let (Some(conversation), Some(session)) = (record.conversation.clone(), record.session) else {
                plan.remove(&record);
                continue;
            };
            let place = (conversation, record.participant.clone(), session);
            match record.kind {
                MemoryKind::Fact => {
                    plan.texts.push(Erased::Statement(text(&record, "fact").to_owned()));
                    plan.start(place, number(&record, "message"));
                }
                MemoryKind::Origin => {
                    match self.text_of(&record.participant, text(&record, "item"))? {
                        Some(erased) => plan.texts.push(erased),
                        None => drop(plan.whole.insert(number(&record, "message"))),
                    }
                    plan.start(place, number(&record, "message"));
                }
                MemoryKind::Summary => plan.start(place, number(&record, "watermark")),
                _ => {}
            }
            plan.remove(&record);
        }
        self.carry_out(plan)
    }

    /// The text of a thing that a reply had in view.
    fn text_of(&self, participant: &str, item: &str) -> Result<Option<Erased>, StoreError> {
        let found = |kind, field: &str| -> Result<Option<String>, StoreError> {
            let filter = MemoryFilter { kind: Some(kind), id: Some(item), ..MemoryFilter::default() };
            Ok(self.list(&filter)?.first().map(|record| text(record, field).to_owned()))
        };
        if let Some((conversation, message)) =
            item.strip_prefix("message:").and_then(|rest| rest.split_once('#'))
        {
            let track = Track { conversation, participant };
            let message = self.talks().get_message(track, message.parse().unwrap_or_default());
            return Ok(message.ok().map(|message| Erased::Message(message.text)));
        }
        match found(MemoryKind::Fact, "fact")? {
            None => {
                let filter = MemoryFilter {
                    kind: Some(MemoryKind::Summary),
                    id: Some(item),
                    ..MemoryFilter::default()
                };
                let summary = self.list(&filter)?.pop();
                Ok(summary.map(|record| Erased::Message(record.data["summary"].to_string())))
            }
            fact => Ok(fact.map(Erased::Statement)),
        }
    }

    /// Erases a fact with its history.
    ///
    /// # Errors
    /// The store fails.
    pub fn fact(&self, id: &str) -> Result<bool, StoreError> {
        let mut plan = Plan::default();
        let mut next = Some(id.to_owned());
        while let Some(id) = next.take() {
            let filter =
                MemoryFilter { kind: Some(MemoryKind::Fact), id: Some(&id), ..MemoryFilter::default() };
            let Some(record) = self.list(&filter)?.pop() else { break };
            next = Some(text(&record, "supersedes").to_owned());
            self.plan_fact(&mut plan, &record)?;
        }
        let is_found = !plan.texts.is_empty();
        for merged in self.merged_from(id)? {
            self.plan_fact(&mut plan, &merged)?;
        }
        self.carry_out(plan)?;
        Ok(is_found)
    }

    /// The facts that were merged from a fact, and those that were merged from them.
    pub(super) fn merged_from(&self, id: &str) -> Result<Vec<MemoryRecord>, StoreError> {
        let all = self.list(&MemoryFilter { kind: Some(MemoryKind::Fact), ..MemoryFilter::default() })?;
        let (mut found, mut open) = (Vec::new(), vec![id.to_owned()]);
        while let Some(id) = open.pop() {
            let is_from = |record: &&MemoryRecord| {
                record.data["merged"]
                    .as_array()
                    .is_some_and(|from| from.iter().any(|one| one.as_str() == Some(&id)))
            };
            for record in all.iter().filter(is_from) {
                open.push(record.id.clone());
                found.push(record.clone());
            }
        }
        Ok(found)
    }

    /// A fact goes, and with it what replies in any session have of it.
    pub(super) fn plan_fact(&self, plan: &mut Plan, record: &MemoryRecord) -> Result<(), StoreError> {
        plan.texts.push(Erased::Statement(text(record, "fact").to_owned()));
        if let (Some(conversation), Some(session)) = (&record.conversation, record.session) {
            plan.start(
                (conversation.clone(), record.participant.clone(), session),
                number(record, "message"),
            );
        }
        let kind = Some(MemoryKind::Origin);
        let filter = MemoryFilter { kind, participant: Some(&record.participant), ..MemoryFilter::default() };
        for origin in self.list(&filter)?.iter().filter(|origin| text(origin, "item") == record.id) {
            if let (Some(conversation), Some(session)) = (&origin.conversation, origin.session) {
                plan.start(
                    (conversation.clone(), origin.participant.clone(), session),
                    number(origin, "message"),
                );
            }
            plan.remove(origin);
        }
        plan.remove(record);
        Ok(())
    }

    /// Erases a message with its reply, what was remembered from them, and what later replies repeat of them.
    ///
    /// # Errors
    /// The track has no such message, or the store fails.
    pub fn message(&self, track: Track<'_>, number_of: u64) -> Result<(), StoreError> {
        let message = self.talks().get_message(track, number_of)?;
        let reply = self.talks().reply_to(track, number_of)?;
        let mut plan = Plan::default();
        let place = (track.conversation.to_owned(), track.participant.to_owned(), message.session);
        plan.start(place, number_of);
        let gone: Vec<_> = [Some(message), reply].into_iter().flatten().collect();
        let numbers: Vec<u64> = gone.iter().map(|message| message.number).collect();
        for fact in self.facts_from(track, &numbers)? {
            self.plan_fact(&mut plan, &fact)?;
        }
        plan.erasure.messages.extend(gone.iter().map(|message| message.number));
        plan.erasure.runs.extend(gone.iter().flat_map(runs_of));
        plan.texts.extend(gone.into_iter().map(|message| Erased::Message(message.text)));
        self.carry_out(plan)
    }

    /// Erases what a participant said and was told in a conversation, and what was remembered from it.
    ///
    /// # Errors
    /// The store fails.
    pub fn track(&self, track: Track<'_>) -> Result<(), StoreError> {
        let mut plan = Plan::default();
        self.plan_track(&mut plan, track)?;
        plan.erasure.tracks.push((track.conversation.to_owned(), track.participant.to_owned()));
        self.carry_out(plan)
    }

    /// Erases a conversation that this user owns, with the tracks of this user. Those of other users stay theirs.
    ///
    /// # Errors
    /// The user takes no part in such a conversation, or the store fails.
    pub fn conversation(&self, id: &str) -> Result<(), StoreError> {
        let mut plan = Plan::default();
        for participant in self.talks().get(id)?.participants {
            if participant.user == self.store.user() {
                self.plan_track(&mut plan, Track { conversation: id, participant: &participant.name })?;
            }
        }
        plan.erasure.conversations.push(id.to_owned());
        self.carry_out(plan)
    }

    /// Erases a person: its tracks in all conversations, its consents, and everything that was remembered.
    ///
    /// # Errors
    /// The store fails.
    pub fn person(&self, participant: &str) -> Result<(), StoreError> {
        let mut plan = Plan::default();
        for conversation in self.talks().list()? {
            let is_person = |other: &larder_store::ParticipantRecord| {
                other.name == participant && other.user == self.store.user()
            };
            if conversation.participants.iter().any(is_person) {
                self.plan_track(&mut plan, Track { conversation: &conversation.id, participant })?;
                plan.erasure.tracks.push((conversation.id, participant.to_owned()));
            }
        }
        for record in
            self.list(&MemoryFilter { participant: Some(participant), ..MemoryFilter::default() })?
        {
            plan.remove(&record);
        }
        self.carry_out(plan)
    }

    /// Plans what goes with a track: its runs, and what replies in other conversations have of its facts.
    fn plan_track(&self, plan: &mut Plan, track: Track<'_>) -> Result<(), StoreError> {
        let filter = MemoryFilter {
            participant: Some(track.participant),
            conversation: Some(track.conversation),
            ..MemoryFilter::default()
        };
        for record in self.list(&filter)? {
            match record.kind {
                MemoryKind::Fact => self.plan_fact(plan, &record)?,
                MemoryKind::Run | MemoryKind::Summary => {
                    plan.erasure.runs.extend(text(&record, "run").parse::<RunId>())
                }
                _ => {}
            }
        }
        for session in self.talks().sessions(track)? {
            let messages = self.talks().messages(track, session.session, 0..u64::MAX)?;
            plan.erasure.runs.extend(messages.iter().flat_map(runs_of));
            let since = Timestamp::from_millis(0);
            plan.erasure.runs.extend(self.runs_in(track, session.session, since)?);
        }
        Ok(())
    }

    /// The runs of a session since a moment, whatever became of them.
    pub(super) fn runs_in(
        &self,
        track: Track<'_>,
        session: u64,
        since: Timestamp,
    ) -> Result<Vec<RunId>, StoreError> {
        self.store.runs().of_session(&session_id(track, session), since)
    }

    /// Erases what runs of a session left since a moment.
    ///
    /// # Errors
    /// The store fails.
    pub fn runs(&self, track: Track<'_>, session: u64, since: Timestamp) -> Result<(), StoreError> {
        let runs = self.runs_in(track, session, since)?;
        self.carry_out(Plan { erasure: Erasure { runs, ..Erasure::default() }, ..Plan::default() })
    }

    /// What is erased with the newest message of a participant when another takes its place: what was remembered from it.
    /// The state of the participant is the caller's.
    pub(crate) fn with_last(&self, track: Track<'_>, number_of: u64) -> Result<Erasure, StoreError> {
        let mut plan = Plan::default();
        for fact in self.facts_from(track, &[number_of])? {
            self.plan_fact(&mut plan, &fact)?;
        }
        let session = self.talks().get_message(track, number_of)?.session;
        plan.start((track.conversation.to_owned(), track.participant.to_owned(), session), number_of);
        plan.erasure.messages.push(number_of);
        plan.erasure.messages.extend(self.talks().reply_to(track, number_of)?.map(|reply| reply.number));
        self.complete(&mut plan)?;
        let is_own =
            |conversation: &str, name: &str| (conversation, name) == (track.conversation, track.participant);
        plan.erasure.states.retain(|(conversation, name, _)| !is_own(conversation, name));
        Ok(plan.erasure)
    }

    /// The facts that were found in messages with these numbers, and those that were merged from them.
    fn facts_from(&self, track: Track<'_>, numbers: &[u64]) -> Result<Vec<MemoryRecord>, StoreError> {
        let mut facts = self.list(&MemoryFilter {
            kind: Some(MemoryKind::Fact),
            participant: Some(track.participant),
            conversation: Some(track.conversation),
            ..MemoryFilter::default()
        })?;
        facts.retain(|fact| numbers.contains(&number(fact, "message")));
        for fact in facts.clone() {
            facts.extend(self.merged_from(&fact.id)?);
        }
        Ok(facts)
    }

    pub(super) fn carry_out(&self, mut plan: Plan) -> Result<(), StoreError> {
        self.complete(&mut plan)?;
        if plan.erasure.is_empty() { Ok(()) } else { self.talks().erase(&plan.erasure) }
    }

    /// Adds what was written in sessions after the first thing that is erased there.
    fn complete(&self, plan: &mut Plan) -> Result<(), StoreError> {
        let date = self.store.store().now().date();
        // What is found in one session may be in another one, or be more to look for.
        loop {
            let texts = plan.texts.len();
            let is_open = |(place, first): &(&Place, &u64)| plan.done.get(*place) != Some(&(**first, texts));
            let Some((place, first)) = plan.from.iter().find(is_open) else { break };
            let (place, first) = (place.clone(), *first);
            plan.done.insert(place.clone(), (first, texts));
            self.clean_session(plan, &place, first, &date)?;
        }
        let erasure = &mut plan.erasure;
        let mut seen = BTreeSet::new();
        erasure.runs.retain(|run| seen.insert(run.clone()));
        let mut seen = BTreeSet::new();
        erasure.jobs.retain(|job| seen.insert(job.key.clone()));
        Ok(())
    }
}

/// The runs that wrote a reply.
pub(super) fn runs_of(message: &ConversationMessage) -> impl Iterator<Item = RunId> {
    let more = message.data["more_runs"].as_array();
    let ids = std::iter::once(&message.data["run"]).chain(more.into_iter().flatten());
    ids.filter_map(|id| id.as_str()?.parse().ok())
}

/// The id of a session in records of runs and jobs.
pub(super) fn session_id(track: Track<'_>, session: u64) -> String {
    format!("{}/{}/{session}", track.conversation, track.participant)
}
