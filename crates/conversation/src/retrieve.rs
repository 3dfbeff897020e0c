//! What of the past is looked up for a message (R4-4): older messages of the session that are not sent and, with a consent
//! alone, what the person said elsewhere. Words and vectors choose; the text is read from the store (R4-4.16).

use std::collections::{BTreeMap, BTreeSet};

use larder_retrieval::dialogue::{Asked, Related, Utterance, opening_name, related};
use larder_retrieval::has_search_terms;
use larder_store::{ConversationMessage, Speaker};
use larder_text::tokens::Counter;
use serde::{Deserialize, Serialize};

use crate::blocks::plain;
use crate::conversation::{ALONE, Conversation, ConversationError};
use crate::kind::{Limit, WindowRules};
use crate::memory::Shown;
use crate::nearness::Nearness;
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

/// A message that may be looked up, with its conversation.
struct SaidMessage {
    conversation: String,
    message: ConversationMessage,
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
    /// The vectors, if there are any.
    pub near: Option<&'a Nearness>,
}

impl Conversation {
    /// Fills in what may help with a message, within the limits of the type.
    pub(crate) fn retrieve(
        &self,
        lookup: &Lookup<'_>,
        prepared: &mut Prepared<'_>,
    ) -> Result<(), ConversationError> {
        let query = [std::slice::from_ref(&lookup.message.text), lookup.also].concat().join("\n");
        if !has_search_terms(&query) {
            return Ok(());
        }
        let said = self.candidates(lookup, &prepared.record.sent)?;
        let found = self.rank(lookup, &query, &said, prepared.stage.retrieval.linked_boost)?;
        let mut chosen = Chosen::new(&self.loaded.kind.window);
        for found in &found {
            if chosen.is_full() {
                break;
            }
            let one = &said[found.place];
            let place = self.place(one, lookup.message.session);
            chosen.offer(found, place, one, || self.line(&one.message));
        }
        self.show(lookup, &said, chosen, prepared)
    }

    /// What may be looked up: of this session what is not sent, of others what was said before, one session after the
    /// other.
    fn candidates(&self, lookup: &Lookup<'_>, sent: &[u64]) -> Result<Vec<SaidMessage>, ConversationError> {
        let within = lookup.consent.is_none().then_some(self.id.as_str());
        let said = self.all.store().said(&self.participant, within)?.into_iter();
        let mut said: Vec<SaidMessage> =
            said.map(|(conversation, message)| SaidMessage { conversation, message }).collect();
        let sent: BTreeSet<u64> = sent.iter().copied().collect();
        said.retain(|one| {
            let here = self.place(one, lookup.message.session) == Place::Here;
            let may = here || lookup.consent.is_some();
            may && one.message.number < lookup.message.number
                && !one.message.pending
                && !sent.contains(&one.message.number)
        });
        said.sort_by_cached_key(|one| (one.conversation.clone(), one.message.session, one.message.number));
        Ok(said)
    }

    fn rank(
        &self,
        lookup: &Lookup<'_>,
        query: &str,
        said: &[SaidMessage],
        boost: f64,
    ) -> Result<Vec<Related>, ConversationError> {
        let linked = if boost > 0.0 { self.linked(lookup.message.session)? } else { BTreeSet::new() };
        let mut sessions: BTreeMap<(&str, u64), usize> = BTreeMap::new();
        let mut utterances = Vec::with_capacity(said.len());
        for SaidMessage { conversation, message } in said {
            let next = sessions.len();
            let session = *sessions.entry((conversation, message.session)).or_insert(next);
            let id = || format!("{conversation}/{}/{}", self.participant, message.session);
            utterances.push(Utterance {
                text: &message.text,
                author: author(message.speaker, &self.participant),
                millis: message.created.as_millis(),
                session,
                vector: lookup.near.and_then(|near| near.message(message.number)),
                session_vector: lookup.near.and_then(|near| near.session(&id())),
                boost: if *conversation == self.id && linked.contains(&message.session) {
                    boost
                } else {
                    0.0
                },
            });
        }
        let asked = Asked {
            text: query,
            millis: lookup.message.created.as_millis(),
            vector: lookup.near.map(|near| near.query.as_slice()),
            threshold: lookup.near.map_or(0.0, |near| near.threshold),
        };
        Ok(related(&asked, &utterances))
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
        match (said.conversation == self.id, said.message.session == session) {
            (true, true) => Place::Here,
            (true, false) => Place::Before,
            (false, _) => Place::Elsewhere,
        }
    }

    /// A message on a line.
    fn line(&self, message: &ConversationMessage) -> String {
        let pointer = message.pointer.as_ref().map(ToString::to_string).unwrap_or_default();
        let text = shown(&message.text, &pointer, self.loaded.kind.window.message_chars);
        plain(&spoken(&text, message.speaker, &self.participant))
    }

    /// Writes what was chosen into the blocks and the record, oldest first.
    fn show(
        &self,
        lookup: &Lookup<'_>,
        said: &[SaidMessage],
        chosen: Chosen,
        prepared: &mut Prepared<'_>,
    ) -> Result<(), ConversationError> {
        let mut chosen = chosen.lines;
        // What was given is in order within a session; sessions are in the order in which they began.
        let mut began: BTreeMap<(&str, u64), u64> = BTreeMap::new();
        for (_, found, _) in &chosen {
            let SaidMessage { conversation, message } = &said[found.place];
            let first = began.entry((conversation, message.session)).or_insert(message.number);
            *first = (*first).min(message.number);
        }
        chosen.sort_by_key(|(_, found, _)| {
            let SaidMessage { conversation, message } = &said[found.place];
            (began.get(&(conversation.as_str(), message.session)).copied(), found.place)
        });
        let mut last: Option<&SaidMessage> = None;
        let mut crossing = Vec::new();
        for (place, found, text) in chosen {
            let one = &said[found.place];
            let consent = lookup.consent.filter(|_| place != Place::Here).map(str::to_owned);
            let before = last.replace(one).filter(|last| session_of(last) == session_of(one));
            let lines = match place {
                Place::Here => &mut prepared.sources.earlier,
                _ => &mut prepared.sources.related,
            };
            if place != Place::Here && before.is_none() {
                lines.push(heading(one));
            }
            let follows = before.is_some_and(|last| last.message.number + 1 == one.message.number);
            lines.push(if follows { text } else { numbered(one.message.number) + &text });
            crossing.push(Shown {
                item: (one.conversation.clone(), one.message.number),
                consent: consent.clone(),
            });
            prepared.record.retrieved.push(RetrievedMessage {
                number: one.message.number,
                conversation: one.conversation.clone(),
                session: one.message.session,
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
fn author(speaker: Speaker, participant: &str) -> &str {
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
    (&said.conversation, said.message.session)
}

/// What a line begins with that does not follow the line above it; one without a number has the next one.
fn numbered(number: u64) -> String {
    format!("[{number}] ")
}

/// The line above what was said in a session: its day.
fn heading(said: &SaidMessage) -> String {
    format!("On {}:", said.message.created.date())
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
    fn new(rules: &WindowRules) -> Self {
        let pool = |place, left| Pool { place, left, misses: 0 };
        Self {
            counter: Counter::cl100k(),
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

    /// Takes a message if its limit allows it.
    fn offer(&mut self, found: &Related, place: Place, said: &SaidMessage, line: impl FnOnce() -> String) {
        let Some(pool) = self.pools.iter_mut().find(|pool| pool.place == place && !pool.is_closed()) else {
            return;
        };
        let line = line();
        match &mut pool.left {
            Limit::Messages(left) => *left -= 1,
            Limit::Tokens { tokens } => {
                // A line break after each line.
                let mut cost = self.counter.count(&line) + 1;
                let number = said.message.number;
                if !self.taken.contains(&(number + 1)) && !self.taken.contains(&number.saturating_sub(1)) {
                    cost += self.counter.count(&numbered(number));
                }
                let session = (said.conversation.clone(), said.message.session);
                if place != Place::Here && !self.headed.contains(&session) {
                    cost += self.counter.count(&heading(said)) + 1;
                }
                if cost > *tokens {
                    pool.misses += 1;
                    return;
                }
                *tokens -= cost;
                pool.misses = 0;
                self.headed.insert(session);
            }
        }
        self.taken.insert(said.message.number);
        self.lines.push((place, *found, line));
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
