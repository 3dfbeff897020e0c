//! What was written in a session after something that is erased, and has it: replies, facts, summaries, vectors, runs.

use larder_store::{
    ConversationMessage, MemoryFilter, MemoryKind, MemoryRecord, NewJob, ReplacedMessage, RunId, Speaker,
    StoreError, Track,
};
use serde_json::{Value, json};

use super::erase::{Eraser, Place, Plan, REBUILD, runs_of, session_id};
use super::redact::{Erased, Redaction};
use super::{Share, number, text};
use crate::nearness::EMBED;

/// What a state has of what was said.
const IN_STATE: [&str; 4] = ["/fields", "/references", "/notices", "/preview"];
/// What the record of a reply has of it.
const IN_RECORD: [&str; 9] = [
    "/fields",
    "/draft",
    "/problems",
    "/notices",
    "/window/searches",
    "/before/fields",
    "/before/references",
    "/before/notices",
    "/before/preview",
];
/// What a text that was given to others has of it.
const IN_SHARE: [&str; 1] = ["/text"];

impl Eraser<'_> {
    /// Takes what is erased out of what was written in a session from a message on.
    pub(super) fn clean_session(
        &self,
        plan: &mut Plan,
        place: &Place,
        first: u64,
        date: &str,
    ) -> Result<(), StoreError> {
        let (conversation, participant, session) = place;
        let track = Track { conversation, participant };
        let messages = self.talks().messages(track, *session, 0..u64::MAX)?;
        for message in messages.iter().filter(|message| plan.whole.contains(&message.number)) {
            let erased = Erased::Message(message.text.clone());
            if !plan.texts.contains(&erased) {
                plan.texts.push(erased);
            }
        }
        let gone = plan.erasure.messages.clone();
        let stays = |number: &u64| !gone.contains(number);
        let own = messages.iter().filter(|said| said.speaker == Speaker::Participant && stays(&said.number));
        let redaction = Redaction::new(&plan.texts, own.map(|said| said.text.as_str()), date);
        if let Some(since) = messages.iter().find(|message| message.number >= first) {
            plan.erasure.runs.extend(self.runs_in(track, *session, since.created)?);
        }
        let later = |message: &&ConversationMessage| message.number >= first && stays(&message.number);
        let mut changed = Vec::new();
        for message in messages.iter().filter(later).filter(|one| one.speaker == Speaker::Assistant) {
            plan.erasure.runs.extend(runs_of(message));
            let is_whole = plan.whole.contains(&message.number);
            let text =
                if is_whole { Some(redaction.notice(&message.text)) } else { redaction.text(&message.text) };
            let data = if is_whole { Some(Value::Null) } else { redaction.within(&message.data, &IN_RECORD) };
            if text.is_some() || data.is_some() {
                changed.push(message.number);
                plan.erasure.replace.retain(|earlier| earlier.number != message.number);
                plan.erasure.replace.push(ReplacedMessage {
                    number: message.number,
                    text: text.unwrap_or_else(|| message.text.clone()),
                    data: data.unwrap_or_else(|| message.data.clone()),
                });
            }
        }
        let (mut rebuild, mut embed, mut facts) = (false, false, Vec::new());
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
                    if let Some(data) = redaction.within(&record.data, &IN_SHARE) {
                        plan.erasure.redacted.push((record.kind, record.id.clone(), data));
                        self.clean_recipients(&record)?;
                    }
                }
                MemoryKind::Fact if changed.contains(&number(&record, "message")) => {
                    facts.push(record);
                }
                _ => {}
            }
        }
        let Ok(now) = self.talks().participant(track) else { return Ok(()) };
        if let Some(state) = redaction.within(&now.state, &IN_STATE) {
            plan.erasure.states.retain(|(of, name, _)| (of, name) != (conversation, participant));
            plan.erasure.states.push((conversation.clone(), participant.clone(), state));
        }
        let stage = messages.iter().rev().find_map(|message| message.data["stage"].as_str());
        for (kind, is_due) in [(REBUILD, rebuild), (EMBED, embed)] {
            if is_due {
                plan.erasure.jobs.push(job_again(kind, track, *session, stage.unwrap_or_default()));
            }
        }
        for fact in facts {
            if plan.erasure.records.contains(&(fact.kind, fact.id.clone())) {
                continue;
            }
            self.plan_fact(plan, &fact)?;
            for merged in self.merged_from(&fact.id)? {
                self.plan_fact(plan, &merged)?;
            }
        }
        Ok(())
    }

    /// Takes a text of which something is erased out of replies to those whom it was given; nothing else that is erased,
    /// which they never had.
    fn clean_recipients(&self, share: &MemoryRecord) -> Result<(), StoreError> {
        let Some(conversation) = &share.conversation else { return Ok(()) };
        let given = Share::read(share);
        for other in self.talks().get(conversation)?.participants {
            if !given.to.contains(&other.name) {
                continue;
            }
            let store = self.store.store().user(&other.user)?;
            let eraser = Eraser { store: &store };
            let track = Track { conversation, participant: &other.name };
            let mut plan = Plan { texts: vec![Erased::Message(given.text.clone())], ..Plan::default() };
            for session in eraser.talks().sessions(track)? {
                let messages = eraser.talks().messages(track, session.session, 0..u64::MAX)?;
                let since = messages.iter().find(|message| message.created >= share.created);
                if let Some(first) = since {
                    plan.start((conversation.clone(), other.name.clone(), session.session), first.number);
                }
            }
            eraser.carry_out(plan)?;
        }
        Ok(())
    }
}

/// The job that makes something of a session again.
fn job_again(kind: &'static str, track: Track<'_>, session: u64, stage: &str) -> NewJob {
    let Track { conversation, participant } = track;
    let id = session_id(track, session);
    NewJob {
        kind,
        key: format!("{kind} {id}"),
        session: Some(id),
        payload: json!({"conversation": conversation, "participant": participant, "session": session, "stage": stage, "key": null}),
        after: 0,
    }
}
