//! What of the past is looked up for a message (R4-4): older messages of the session that are not sent and, with a consent
//! alone, what the person said elsewhere. Words and vectors choose; the text is read from the store (R4-4.16).

use std::collections::{BTreeMap, BTreeSet};

use larder_retrieval::dialogue::{Asked, Candidate, Related, opening_name, opens_with_yes_or_no};
use larder_retrieval::has_search_terms;
use larder_retrieval::index::asks;
use larder_store::{ConversationMessage, Speaker, StoreError, Track};
use larder_text::tokens::Counter;
use serde::{Deserialize, Serialize};

use crate::blocks::plain;
use crate::conversation::{ALONE, Conversation};
use crate::error::ConversationError;
use crate::kind::{Limit, WindowRules};
use crate::memory::Shown;
use crate::nearness::{Nearness, session_key};
use crate::past::{Person, SaidMessage};
use crate::prepare::Prepared;
use crate::window::shown;

/// Messages in a row that do not fit, after which no other is tried.
const MISSES: usize = 8;

/// A message that was looked up, and by which right it was sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetrievedMessage {
    /// Its number, by which it can be read.
    pub number: u64,
    /// Its conversation.
    pub conversation: String,
    /// Its session.
    pub session: u64,
    /// The consent by which it crossed a session; `None` for one of the same session.
    pub consent: Option<String>,
    /// Whether it, or what was said next to it, shares words with the message.
    pub by_words: bool,
    /// The cosine, if it is related by its meaning.
    pub cosine: Option<f64>,
}

/// Where a message is, seen from the session that is being answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// In the same session.
    Here,
    /// In an earlier session of the same conversation.
    Before,
    /// In another conversation.
    Elsewhere,
}

/// What is looked for.
pub(crate) struct Lookup<'a> {
    /// The message that is being answered.
    pub message: &'a ConversationMessage,
    /// What is looked for, besides its text.
    pub also: &'a [String],
    /// The consent by which other sessions are searched, if they are.
    pub consent: Option<&'a str>,
    /// Its vector, if there is one.
    pub near: Option<&'a Nearness>,
}

impl Conversation {
    /// Fills in what may help with a message, within the limits of the type.
    pub(crate) fn retrieve(
        &self,
        lookup: &Lookup<'_>,
        past: &Person,
        prepared: &mut Prepared<'_>,
    ) -> Result<(), ConversationError> {
        let query = [std::slice::from_ref(&lookup.message.text), lookup.also].concat().join("\n");
        if !has_search_terms(&query) {
            return Ok(());
        }
        let said = self.candidates(lookup, past, &prepared.record.sent);
        let found = self.rank(lookup, &query, past, &said, prepared.stage.retrieval.linked_boost)?;
        let mut chosen = Chosen::new(&self.loaded.kind.window, self.all.engine.sizes());
        for found in &found {
            if chosen.is_full() {
                break;
            }
            let one = said[found.place];
            let place = self.place(one, lookup.message.session);
            if chosen.takes(one, place)
                && let Some(line) = self.line(one)?
            {
                let question = question_before(&said, found).filter(|_| opens_with_yes_or_no(&line));
                if chosen.offer(found, place, one, line)
                    && let Some(question) = question
                    && chosen.takes(said[question.place], place)
                    && let Some(line) = self.line(said[question.place])?.filter(|line| asks(line))
                {
                    chosen.offer(&question, place, said[question.place], line);
                }
            }
        }
        self.show(lookup, &said, chosen, prepared)
    }

    /// What may be looked up: of this session what is not sent, of others what was said before, one session after the
    /// other.
    fn candidates<'p>(&self, lookup: &Lookup<'_>, past: &'p Person, sent: &[u64]) -> Vec<&'p SaidMessage> {
        let sent: BTreeSet<u64> = sent.iter().copied().collect();
        let may = |one: &&SaidMessage| {
            let here = self.place(one, lookup.message.session) == Place::Here;
            (here || lookup.consent.is_some())
                && one.number < lookup.message.number
                && !sent.contains(&one.number)
        };
        past.said().filter(may).collect()
    }

    fn rank(
        &self,
        lookup: &Lookup<'_>,
        query: &str,
        past: &Person,
        said: &[&SaidMessage],
        boost: f64,
    ) -> Result<Vec<Related>, ConversationError> {
        let linked = if boost > 0.0 { self.linked(lookup.message.session)? } else { BTreeSet::new() };
        let near = lookup.near;
        let mut among: Vec<Candidate<'_>> = Vec::with_capacity(said.len());
        let mut last: Option<&SaidMessage> = None;
        for one in said {
            let before = last.replace(one).filter(|last| session_of(last) == session_of(one));
            let (session, session_vector) = match (before, among.last()) {
                (Some(_), Some(before)) => (before.session, before.session_vector),
                (_, before) => {
                    let id = format!("{}/{}/{}", one.conversation, self.participant, one.session);
                    let vector = near.and_then(|near| past.vector_of(&session_key(&id))?.near(near));
                    (before.map_or(0, |before| before.session + 1), vector)
                }
            };
            let is_linked = *one.conversation == *self.id && linked.contains(&one.session);
            among.push(Candidate {
                number: one.number,
                session,
                vector: near.and_then(|near| past.vector_of_message(one.number)?.near(near)),
                session_vector,
                boost: if is_linked { boost } else { 0.0 },
            });
        }
        let asked = Asked {
            text: query,
            millis: lookup.message.created.as_millis(),
            vector: near.map(|near| near.query.as_slice()),
            threshold: near.map_or(0.0, |near| near.threshold),
        };
        Ok(past.words.related(&asked, &among))
    }

    /// The sessions that this one is linked with: the one it was begun in, and those that were begun in it.
    fn linked(&self, session: u64) -> Result<BTreeSet<u64>, ConversationError> {
        let mut linked = BTreeSet::new();
        for other in self.all.store().sessions(self.track())? {
            match other.opening["linked"].as_u64() {
                Some(to) if other.session == session => linked.extend([to]),
                Some(to) if to == session => linked.extend([other.session]),
                _ => {}
            }
        }
        Ok(linked)
    }

    fn place(&self, said: &SaidMessage, session: u64) -> Place {
        match (*said.conversation == *self.id, said.session == session) {
            (true, true) => Place::Here,
            (true, false) => Place::Before,
            (false, _) => Place::Elsewhere,
        }
    }

    /// A message on a line, if it is still there.
    fn line(&self, said: &SaidMessage) -> Result<Option<String>, ConversationError> {
        let track = Track { conversation: &said.conversation, participant: &self.participant };
        let message = match self.all.store().text_of(track, said.number) {
            Err(StoreError::UnknownMessage { .. }) => return Ok(None),
            found => found?,
        };
        let pointer = message.pointer.as_ref().map(ToString::to_string).unwrap_or_default();
        let text = shown(&message.text, &pointer, self.loaded.kind.window.message_chars);
        Ok(Some(plain(&spoken(&text, message.speaker, &self.participant))))
    }

    /// Writes what was chosen into the blocks and the record, oldest first.
    fn show(
        &self,
        lookup: &Lookup<'_>,
        said: &[&SaidMessage],
        chosen: Chosen,
        prepared: &mut Prepared<'_>,
    ) -> Result<(), ConversationError> {
        let mut chosen = chosen.lines;
        // What was given is in order within a session; sessions are in the order in which they began.
        let mut began: BTreeMap<(&str, u64), u64> = BTreeMap::new();
        for (_, found, _) in &chosen {
            let one = said[found.place];
            let first = began.entry(session_of(one)).or_insert(one.number);
            *first = (*first).min(one.number);
        }
        chosen.sort_by_key(|(_, found, _)| (began.get(&session_of(said[found.place])).copied(), found.place));
        let mut last: Option<&SaidMessage> = None;
        let mut crossing = Vec::new();
        for (place, found, text) in chosen {
            let one = said[found.place];
            let consent = lookup.consent.filter(|_| place != Place::Here).map(str::to_owned);
            let before = last.replace(one).filter(|last| session_of(last) == session_of(one));
            let lines = match place {
                Place::Here => &mut prepared.sources.earlier,
                _ => &mut prepared.sources.related,
            };
            if place != Place::Here && before.is_none() {
                lines.push(heading(one));
            }
            let follows = before.is_some_and(|last| last.number + 1 == one.number);
            lines.push(if follows { text } else { numbered(one.number) + &text });
            crossing
                .push(Shown { item: (one.conversation.to_string(), one.number), consent: consent.clone() });
            prepared.record.retrieved.push(RetrievedMessage {
                number: one.number,
                conversation: one.conversation.to_string(),
                session: one.session,
                consent,
                by_words: found.by_words,
                cosine: found.cosine,
            });
        }
        if let Some(path) = &self.loaded.kind.pieces.memory_guidance
            && !crossing.is_empty()
        {
            prepared.sources.guidance = Some(self.loaded.text(path).trim().to_owned());
        }
        let counter = Counter::cl100k();
        let memory = self.memory(&counter);
        let origins =
            memory.origins(&crossing, |(conversation, number)| format!("message:{conversation}#{number}"));
        prepared.origins.extend(origins);
        Ok(())
    }
}

/// Who says something.
pub(crate) fn author(speaker: Speaker, participant: &str) -> &str {
    match speaker {
        Speaker::Assistant => "Assistant",
        Speaker::Participant if participant == ALONE => "User",
        Speaker::Participant => participant,
    }
}

/// A text with the name of who says it, unless it opens with a name.
pub(crate) fn spoken(text: &str, speaker: Speaker, participant: &str) -> String {
    if opening_name(text).is_some() {
        text.to_owned()
    } else {
        format!("{}: {text}", author(speaker, participant))
    }
}

/// The session of a message.
fn session_of(said: &SaidMessage) -> (&str, u64) {
    (&said.conversation, said.session)
}

/// The message before the one that was found, if it may be what that answers.
fn question_before(said: &[&SaidMessage], found: &Related) -> Option<Related> {
    let (place, answer) = (found.place.checked_sub(1)?, said[found.place]);
    let before = said[place];
    let follows = session_of(before) == session_of(answer) && before.number + 1 == answer.number;
    follows.then_some(Related { place, cosine: None, ..*found })
}

/// What a line begins with that does not follow the line above it; one without a number has the next one.
fn numbered(number: u64) -> String {
    format!("[{number}] ")
}

/// The line above what was said in a session: its day.
fn heading(said: &SaidMessage) -> String {
    format!("On {}:", said.created.date())
}

/// What is taken within the limits.
struct Chosen {
    counter: Counter,
    pools: [Pool; 3],
    /// Sessions whose heading is counted.
    headed: BTreeSet<(String, u64)>,
    /// The numbers of what is taken.
    taken: BTreeSet<u64>,
    lines: Vec<(Place, Related, String)>,
}

/// What may still be taken from one place.
struct Pool {
    place: Place,
    left: Limit,
    misses: usize,
}

impl Chosen {
    fn new(rules: &WindowRules, counter: Counter) -> Self {
        let pool = |place, left| Pool { place, left, misses: 0 };
        Self {
            counter,
            pools: [
                pool(Place::Here, rules.from_this_session),
                pool(Place::Before, rules.from_before),
                pool(Place::Elsewhere, rules.from_other_sessions),
            ],
            headed: BTreeSet::new(),
            taken: BTreeSet::new(),
            lines: Vec::new(),
        }
    }

    /// Whether no pool has anything left.
    fn is_full(&self) -> bool {
        self.pools.iter().all(Pool::is_closed)
    }

    /// Whether a message of a place may be taken: it is not yet, and the place has something left.
    fn takes(&self, said: &SaidMessage, place: Place) -> bool {
        let is_open = self.pools.iter().any(|pool| pool.place == place && !pool.is_closed());
        is_open && !self.taken.contains(&said.number)
    }

    /// Takes a message if its limit allows it; returns whether it does.
    fn offer(&mut self, found: &Related, place: Place, said: &SaidMessage, line: String) -> bool {
        let Some(pool) = self.pools.iter_mut().find(|pool| pool.place == place) else { return false };
        match &mut pool.left {
            Limit::Messages(left) => *left -= 1,
            Limit::Tokens { tokens } => {
                // A line break after each line.
                let mut cost = self.counter.count(&line) + 1;
                let number = said.number;
                if !self.taken.contains(&(number + 1)) && !self.taken.contains(&number.saturating_sub(1)) {
                    cost += self.counter.count(&numbered(number));
                }
                let session = (said.conversation.to_string(), said.session);
                if place != Place::Here && !self.headed.contains(&session) {
                    cost += self.counter.count(&heading(said)) + 1;
                }
                if cost > *tokens {
                    pool.misses += 1;
                    return false;
                }
                *tokens -= cost;
                pool.misses = 0;
                self.headed.insert(session);
            }
        }
        self.taken.insert(said.number);
        self.lines.push((place, *found, line));
        true
    }
}

impl Pool {
    const fn is_closed(&self) -> bool {
        match self.left {
            Limit::Messages(left) => left == 0,
            Limit::Tokens { .. } => self.misses >= MISSES,
        }
    }
}
