//! Erasing what was made under a consent, or of a message, a fact, a conversation or a person, by references alone.
//!
//! In a session, everything written after the first thing that is erased may repeat it: replies lose the same text,
//! receipts and answers of runs go, summaries and vectors go and are made again from what remains. Messages of persons stay.

use std::collections::{BTreeMap, BTreeSet};

use larder_store::{
    ConversationMessage, Conversations, Erasure, MemoryFilter, MemoryKind, MemoryRecord, NewJob,
    ReplacedMessage, RunId, Speaker, StoreError, Track, UserStore,
};
use serde_json::{Value, json};

use super::redact::Redaction;
use super::{Share, number, text};
use crate::nearness::EMBED;

/// The kind of the job that summarizes a session again; its payload names the track and the session.
pub const REBUILD: &str = "conversation_summary";

/// Erases things of one user.
#[derive(Debug, Clone, Copy)]
pub struct Eraser<'a> {
    /// The user's store.
    pub store: &'a UserStore,
}

/// A session of a participant of this user.
type Place = (String, String, u64);

/// What is being erased.
#[derive(Default)]
struct Plan {
    texts: Vec<String>,
    /// The first message of each session from which on something may repeat it.
    from: BTreeMap<Place, u64>,
    /// Replies of which it is unknown what they repeat.
    whole: BTreeSet<u64>,
    erasure: Erasure,
}

impl Plan {
    fn start(&mut self, place: Place, message: u64) {
        self.from.entry(place).and_modify(|first| *first = (*first).min(message)).or_insert(message);
    }

    fn remove(&mut self, record: &MemoryRecord) {
        self.erasure.records.push((record.kind, record.id.clone()));
    }
}

impl Eraser<'_> {
    const fn talks(&self) -> Conversations<'_> {
        self.store.conversations()
    }

    fn list(&self, filter: &MemoryFilter<'_>) -> Result<Vec<MemoryRecord>, StoreError> {
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
                    plan.texts.push(text(&record, "fact").to_owned());
                    plan.start(place, number(&record, "message"));
                }
                MemoryKind::Origin => {
                    match self.text_of(&record.participant, text(&record, "item"))? {
                        Some(text) => plan.texts.push(text),
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
    fn text_of(&self, participant: &str, item: &str) -> Result<Option<String>, StoreError> {
        let found = |kind, field: &str| -> Result<Option<String>, StoreError> {
            let filter = MemoryFilter { kind: Some(kind), id: Some(item), ..MemoryFilter::default() };
            Ok(self.list(&filter)?.first().map(|record| text(record, field).to_owned()))
        };
        if let Some((conversation, message)) =
            item.strip_prefix("message:").and_then(|rest| rest.split_once('#'))
        {
            let track = Track { conversation, participant };
            let message = self.talks().get_message(track, message.parse().unwrap_or_default());
            return Ok(message.ok().map(|message| message.text));
        }
        match found(MemoryKind::Fact, "fact")? {
            None => {
                let filter = MemoryFilter {
                    kind: Some(MemoryKind::Summary),
                    id: Some(item),
                    ..MemoryFilter::default()
                };
                Ok(self.list(&filter)?.first().map(|record| record.data["summary"].to_string()))
            }
            fact => Ok(fact),
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
    fn merged_from(&self, id: &str) -> Result<Vec<MemoryRecord>, StoreError> {
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
    fn plan_fact(&self, plan: &mut Plan, record: &MemoryRecord) -> Result<(), StoreError> {
        plan.texts.push(text(record, "fact").to_owned());
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
        plan.texts.extend(gone.into_iter().map(|message| message.text));
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
            // Those of tracks are planned already; others ended after their track was erased.
            let run = text(&record, "run").parse::<RunId>().ok().filter(|_| record.kind == MemoryKind::Run);
            plan.erasure.runs.extend(run.filter(|run| !plan.erasure.runs.contains(run)));
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
        }
        Ok(())
    }

    /// What is erased with the newest message of a participant when another takes its place: what was remembered from it.
    /// The state of the participant is the caller's.
    pub(crate) fn with_last(&self, track: Track<'_>, number_of: u64) -> Result<Erasure, StoreError> {
        let mut plan = Plan::default();
        for fact in self.facts_from(track, &[number_of])? {
            self.plan_fact(&mut plan, &fact)?;
        }
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

    fn carry_out(&self, mut plan: Plan) -> Result<(), StoreError> {
        self.complete(&mut plan)?;
        if plan.erasure.is_empty() { Ok(()) } else { self.talks().erase(&plan.erasure) }
    }

    /// Adds what was written in sessions after the first thing that is erased there.
    fn complete(&self, plan: &mut Plan) -> Result<(), StoreError> {
        let date = self.store.store().now().date();
        for (place, first) in std::mem::take(&mut plan.from) {
            self.clean_session(plan, &place, first, &date)?;
        }
        Ok(())
    }

    /// Takes what is erased out of what was written in a session from a message on.
    fn clean_session(
        &self,
        plan: &mut Plan,
        place: &Place,
        first: u64,
        date: &str,
    ) -> Result<(), StoreError> {
        let (conversation, participant, session) = place;
        let track = Track { conversation, participant };
        let messages = self.talks().messages(track, *session, 0..u64::MAX)?;
        let whole = messages.iter().filter(|message| plan.whole.contains(&message.number));
        plan.texts.extend(whole.map(|message| message.text.clone()));
        let stays = |number: &u64| !plan.erasure.messages.contains(number);
        let own = messages.iter().filter(|said| said.speaker == Speaker::Participant && stays(&said.number));
        let texts = plan.texts.iter().map(String::as_str);
        let redaction = Redaction::new(texts, own.map(|said| said.text.as_str()), date);
        for message in messages.iter().filter(|message| message.number >= first && stays(&message.number)) {
            if message.speaker == Speaker::Participant {
                continue;
            }
            plan.erasure.runs.extend(runs_of(message));
            let is_whole = plan.whole.contains(&message.number);
            let text =
                if is_whole { Some(redaction.notice(&message.text)) } else { redaction.text(&message.text) };
            let data = if is_whole { Some(Value::Null) } else { redaction.value(&message.data) };
            if text.is_some() || data.is_some() {
                plan.erasure.replace.push(ReplacedMessage {
                    number: message.number,
                    text: text.unwrap_or_else(|| message.text.clone()),
                    data: data.unwrap_or_else(|| message.data.clone()),
                });
            }
        }
        let (mut rebuild, mut embed) = (false, false);
        let filter = MemoryFilter {
            participant: Some(participant),
            conversation: Some(conversation),
            session: Some(*session),
            ..MemoryFilter::default()
        };
        for record in self.list(&filter)? {
            match record.kind {
                MemoryKind::Run if number(&record, "message") >= first => {
                    plan.erasure.runs.extend(text(&record, "run").parse::<RunId>());
                    plan.remove(&record);
                }
                MemoryKind::Summary if number(&record, "watermark") >= first => {
                    rebuild = true;
                    plan.erasure.runs.extend(text(&record, "run").parse::<RunId>());
                    plan.remove(&record);
                }
                MemoryKind::Vector => {
                    embed = true;
                    plan.remove(&record);
                }
                MemoryKind::Share => {
                    if let Some(data) = redaction.value(&record.data) {
                        plan.erasure.redacted.push((record.kind, record.id.clone(), data));
                        self.clean_recipients(&plan.texts, &record, date)?;
                    }
                }
                _ => {}
            }
        }
        let Ok(now) = self.talks().participant(track) else { return Ok(()) };
        if let Some(state) = redaction.value(&now.state) {
            plan.erasure.states.push((conversation.clone(), participant.clone(), state));
        }
        let stage = messages.iter().rev().find_map(|message| message.data["stage"].as_str());
        for (kind, is_due) in [(REBUILD, rebuild), (EMBED, embed)] {
            if is_due {
                plan.erasure.jobs.push(job_again(kind, track, *session, stage.unwrap_or_default()));
            }
        }
        Ok(())
    }

    /// Takes what is erased out of replies to those whom a text was given that had it.
    fn clean_recipients(&self, texts: &[String], share: &MemoryRecord, date: &str) -> Result<(), StoreError> {
        let Some(conversation) = &share.conversation else { return Ok(()) };
        let given = Share::read(share);
        for other in self.talks().get(conversation)?.participants {
            if !given.to.contains(&other.name) {
                continue;
            }
            let store = self.store.store().user(&other.user)?;
            let eraser = Eraser { store: &store };
            let track = Track { conversation, participant: &other.name };
            let mut plan = Plan { texts: texts.to_vec(), ..Plan::default() };
            for session in eraser.talks().sessions(track)? {
                let messages = eraser.talks().messages(track, session.session, 0..u64::MAX)?;
                let since = messages.iter().find(|message| message.created >= share.created);
                if let Some(first) = since {
                    let place = (conversation.clone(), other.name.clone(), session.session);
                    eraser.clean_session(&mut plan, &place, first.number, date)?;
                }
            }
            if !plan.erasure.is_empty() {
                eraser.talks().erase(&plan.erasure)?;
            }
        }
        Ok(())
    }
}

/// The runs that wrote a reply.
fn runs_of(message: &ConversationMessage) -> impl Iterator<Item = RunId> {
    let more = message.data["more_runs"].as_array();
    let ids = std::iter::once(&message.data["run"]).chain(more.into_iter().flatten());
    ids.filter_map(|id| id.as_str()?.parse().ok())
}

/// The job that makes something of a session again.
fn job_again(kind: &'static str, track: Track<'_>, session: u64, stage: &str) -> NewJob {
    let Track { conversation, participant } = track;
    let id = format!("{conversation}/{participant}/{session}");
    NewJob {
        kind,
        key: format!("{kind} {id}"),
        session: Some(id),
        payload: json!({"conversation": conversation, "participant": participant, "session": session, "stage": stage, "key": null}),
        after: 0,
    }
}
