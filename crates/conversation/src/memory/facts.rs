//! Facts: written as differences with the words they come from (R4-4.8, C101), limited by rule, and shown by relevance,
//! then recency (C102).

use larder_retrieval::dialogue::{Asked, Candidate};
use larder_store::{MemoryChange, MemoryFilter, MemoryKind, MemoryRecord, NewJob, StoreError, Track};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::consent::consent_for;
use super::quote::{find_quote, span_of};
use super::{Eraser, Fact, FactScope, PersonMemory, Shown, Sought, Statement};
use crate::nearness::fact_key;
use crate::past::Person;

/// The kind of the job that merges a profile with too many facts; its payload names the track.
pub const CONSOLIDATE: &str = "conversation_consolidate";
const MILLIS_PER_DAY: u64 = 86_400_000;

/// What a model says has changed about the facts of a session.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct FactDiff {
    /// Facts that are new, or that replace others.
    #[serde(default)]
    pub upsert: Vec<FactUpsert>,
    /// Ids of facts that no longer hold.
    #[serde(default)]
    pub delete: Vec<String>,
}

/// A fact that is new, or that replaces another.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct FactUpsert {
    /// The fact that it replaces.
    #[serde(default)]
    pub id: Option<String>,
    /// One of the categories.
    pub category: String,
    /// The statement.
    pub fact: String,
    /// Words of a message of the session, as they were written, from which it follows.
    pub quote: String,
    /// How sure it is, from 0 to 1.
    #[serde(default = "sure")]
    pub confidence: f64,
}

const fn sure() -> f64 {
    1.0
}

/// What became of a difference.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FactReport {
    /// Ids of the facts that were written.
    pub written: Vec<String>,
    /// What was refused.
    pub refused: Vec<RefusedFact>,
}

/// What a person asked to be remembered, as recipes understood it.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    /// The message in which it was asked.
    pub message: u64,
    /// One sentence.
    pub text: &'a str,
    /// The words of the message that ask for it.
    pub quote: &'a str,
    /// The people that the message names.
    pub people: Vec<String>,
    /// The run that put it into a sentence.
    pub run: &'a str,
}

/// A fact that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedFact {
    /// The statement.
    pub fact: String,
    /// Why.
    pub reason: &'static str,
}

impl PersonMemory<'_> {
    /// All facts of the person, in all sessions, oldest first; those that ended included.
    ///
    /// # Errors
    /// The store fails.
    pub fn all_facts(&self) -> Result<Vec<Fact>, StoreError> {
        let kind = Some(MemoryKind::Fact);
        let records = self.records(MemoryFilter { kind, ..MemoryFilter::default() })?;
        Ok(records.into_iter().filter_map(Fact::read).collect())
    }

    /// The facts that hold now: neither contradicted nor older than their category is kept.
    pub(crate) fn holding(&self) -> Result<Vec<Fact>, StoreError> {
        let now = self.store.store().now().as_millis();
        let mut facts = self.all_facts()?;
        facts.retain(|fact| self.holds(fact, now));
        Ok(facts)
    }

    pub(crate) fn holds(&self, fact: &Fact, now: u64) -> bool {
        let category = self.rules.categories.iter().find(|known| known.name == fact.said.category);
        let days = category.and_then(|category| category.keep_days).map_or(u64::MAX, u64::from);
        fact.valid_until.is_none() && now.saturating_sub(fact.created.as_millis()) / MILLIS_PER_DAY < days
    }

    /// The facts of a session that hold now, with their ids, for the call that updates them.
    ///
    /// # Errors
    /// The store fails.
    pub fn session_facts(&self, session: u64) -> Result<Vec<Fact>, StoreError> {
        let (kind, conversation) = (Some(MemoryKind::Fact), Some(self.track.conversation));
        let of_session =
            MemoryFilter { kind, conversation, session: Some(session), ..MemoryFilter::default() };
        let now = self.store.store().now().as_millis();
        let facts = self.records(of_session)?.into_iter().filter_map(Fact::read);
        Ok(facts.filter(|fact| self.holds(fact, now)).collect())
    }

    /// The facts of the person's profile that hold now and whose consents are in force.
    ///
    /// # Errors
    /// The store fails.
    pub fn profile_facts(&self) -> Result<Vec<Fact>, StoreError> {
        let consents = self.in_force()?;
        let mut facts = self.holding()?;
        facts.retain(|fact| {
            let is_allowed = consents.iter().any(|held| Some(&held.id) == fact.consent.as_ref());
            is_allowed && fact.said.scope == FactScope::Profile
        });
        Ok(facts)
    }

    /// The facts that a window of this session shows for a query: as many as the type says.
    ///
    /// # Errors
    /// The store fails.
    pub fn facts_to_show(&self, session: u64, query: &Sought<'_>) -> Result<Vec<Shown<Fact>>, StoreError> {
        self.show(session, query, self.rules.shown_facts, |fact| !fact.said.preference)
    }

    /// The preferences that a window of this session shows for a query (R4-6.5).
    ///
    /// # Errors
    /// The store fails.
    pub fn preferences_to_show(
        &self,
        session: u64,
        query: &Sought<'_>,
    ) -> Result<Vec<Shown<Fact>>, StoreError> {
        self.show(session, query, self.rules.shown_preferences, |fact| fact.said.preference)
    }

    /// What the person reflected on in sessions of its own, which are `asides` (R4-6.7).
    ///
    /// # Errors
    /// The store fails.
    pub fn reflections_to_show(
        &self,
        session: u64,
        asides: &[u64],
        query: &Sought<'_>,
    ) -> Result<Vec<Shown<Fact>>, StoreError> {
        self.show(session, query, self.rules.shown_reflections, |fact| {
            fact.conversation == self.track.conversation
                && fact.session != session
                && asides.contains(&fact.session)
        })
    }

    /// Every fact that holds and may be seen from a session.
    pub(crate) fn visible(&self, session: u64) -> Result<Vec<Shown<Fact>>, StoreError> {
        let consents = self.in_force()?;
        let shown = |item: Fact| {
            let consent = self.right(&consents, &item, session)?.map(str::to_owned);
            Some(Shown { item, consent })
        };
        Ok(self.holding()?.into_iter().filter_map(shown).collect())
    }

    /// What may be seen from a session, by relevance to the query, then the newest first.
    fn show(
        &self,
        session: u64,
        query: &Sought<'_>,
        most: usize,
        fits: impl Fn(&Fact) -> bool,
    ) -> Result<Vec<Shown<Fact>>, StoreError> {
        let mut read = Person::default();
        let past = match query.past {
            Some(past) => past,
            None => {
                read.follow(self.store, self.track.participant)?;
                &read
            }
        };
        let consents = self.in_force()?;
        let now = self.store.store().now().as_millis();
        let mut shown: Vec<(u64, &Fact, Option<&str>)> = Vec::new();
        let mut said = std::collections::HashSet::new();
        let fitting = past.facts().rev().filter(|(_, fact, _)| fits(fact) && self.holds(fact, now));
        for (number, fact, statement) in fitting {
            let Some(consent) = self.right(&consents, fact, session) else { continue };
            // Of the same statement, the newest is shown.
            if said.insert(statement) {
                shown.push((number, fact, consent));
            }
        }
        // Facts do not continue one another.
        let among = shown.iter().enumerate().map(|(session, (number, fact, _))| Candidate {
            number: *number,
            session,
            vector: query.near.and_then(|near| past.vector_of(&fact_key(&fact.id))?.near(near)),
            ..Candidate::default()
        });
        let asked = Asked {
            text: query.text,
            millis: now,
            vector: query.near.map(|near| near.query.as_slice()),
            threshold: query.near.map_or(0.0, |near| near.threshold),
        };
        let related = past.fact_words.related(&asked, &among.collect::<Vec<_>>());
        let mut order: Vec<usize> = related.iter().map(|found| found.place).take(most).collect();
        let rest = (0..shown.len()).filter(|at| related.iter().all(|found| found.place != *at));
        order.extend(rest.take(most - order.len()));
        let shown = order.into_iter().map(|at| {
            let (_, fact, consent) = &shown[at];
            Shown { item: (*fact).clone(), consent: consent.map(str::to_owned) }
        });
        Ok(shown.collect())
    }

    /// Writes what has changed about the facts of a session. A fact whose words are in no message of the session is
    /// refused. `run` is the run that found it, and is recorded even if nothing changed.
    ///
    /// # Errors
    /// The store fails.
    pub fn update_facts(&self, session: u64, diff: &FactDiff, run: &str) -> Result<FactReport, StoreError> {
        let messages = self.talks().messages(self.track, session, 0..u64::MAX)?;
        let consents = self.in_force()?;
        let now = self.store.store().now();
        let mut facts = self.session_facts(session)?;
        let mut report = FactReport::default();
        let mut changed = Vec::new();
        for id in &diff.delete {
            if let Some(at) = facts.iter().position(|fact| fact.id == *id) {
                changed.push(Fact { valid_until: Some(now), ..facts.remove(at) });
            }
        }
        for new in &diff.upsert {
            let refuse = |reason| RefusedFact { fact: new.fact.clone(), reason };
            let fact = new.fact.split_whitespace().collect::<Vec<_>>().join(" ");
            let Some((source, start, end)) = find_quote(&messages, &new.quote).filter(|_| !fact.is_empty())
            else {
                report.refused.push(refuse("its words are in no message of the session"));
                continue;
            };
            let known =
                self.rules.categories.iter().find(|known| known.name.eq_ignore_ascii_case(&new.category));
            let category = known.or(self.rules.categories.last()).map_or("", |known| &known.name);
            let replaced = new.id.as_ref().map(|id| facts.iter().position(|fact| fact.id == *id));
            if replaced == Some(None) {
                report.refused.push(refuse("there is no fact with its id"));
                continue;
            }
            let consent = consent_for(&consents, Some(category));
            let said = Statement {
                category: category.to_owned(),
                fact,
                message: source,
                start,
                end,
                scope: if consent.is_some() { FactScope::Profile } else { FactScope::Session },
                confidence: new.confidence.clamp(0.0, 1.0),
                supersedes: new.id.clone(),
                merged: Vec::new(),
                people: Vec::new(),
                preference: false,
                run: Some(run.to_owned()),
            };
            if facts.iter().any(|held| statement(&held.said) == statement(&said)) {
                continue;
            }
            if let Some(at) = replaced.flatten() {
                changed.push(Fact { valid_until: Some(now), ..facts.remove(at) });
            }
            let fact = self.new_fact(session, said, consent)?;
            report.written.push(fact.id.clone());
            facts.push(fact);
        }
        let mut change = MemoryChange { since: self.since, ..MemoryChange::default() };
        let mut kept: Vec<&Fact> = facts.iter().rev().collect();
        // The least sure go first, of those the oldest.
        kept.sort_by(|a, b| b.said.confidence.total_cmp(&a.said.confidence));
        for fact in kept.iter().skip(self.rules.per_session).filter(|fact| !fact.said.preference) {
            change.remove.push((MemoryKind::Fact, fact.id.clone()));
        }
        let gone = |id: &String| change.remove.iter().any(|(_, removed)| removed == id);
        report.written.retain(|id| !gone(id));
        let written = facts.iter().filter(|fact| report.written.contains(&fact.id));
        change.put.extend(changed.iter().chain(written).map(|fact| fact.write(self)));
        let newest = messages.last().map_or(0, |message| message.number);
        change.put.push(self.ran(run, session, newest));
        self.talks().memory().apply(&change)?;
        self.limit_profile()?;
        Ok(report)
    }

    /// Whether what a message asked to remember is remembered, or was until it was deleted.
    pub(crate) fn is_remembered(&self, message: u64) -> Result<bool, StoreError> {
        let facts = self.all_facts()?;
        let here = |fact: &Fact| fact.conversation == self.track.conversation && fact.said.message == message;
        Ok(facts.iter().any(|fact| fact.said.preference && here(fact)))
    }

    /// The fact that the person asked to remember, of the category for what fits nowhere else. It reaches as far as the
    /// consents that are in force.
    pub(crate) fn requested(&self, request: &Request<'_>) -> Result<Fact, StoreError> {
        let asked = self.talks().get_message(self.track, request.message)?;
        let category = self.rules.categories.last().map_or("", |category| category.name.as_str());
        let consent = consent_for(&self.in_force()?, Some(category));
        let words: Vec<String> = request.quote.split_whitespace().map(str::to_lowercase).collect();
        let span = if words.is_empty() { None } else { span_of(&asked.text, &words) };
        let (start, end) = span.unwrap_or((0, asked.text.len()));
        let said = Statement {
            category: category.to_owned(),
            fact: request.text.split_whitespace().collect::<Vec<_>>().join(" "),
            message: request.message,
            start,
            end,
            scope: if consent.is_some() { FactScope::Profile } else { FactScope::Session },
            confidence: 1.0,
            supersedes: None,
            merged: Vec::new(),
            people: request.people.clone(),
            preference: true,
            run: Some(request.run.to_owned()),
        };
        self.new_fact(asked.session, said, consent)
    }

    /// A fact as a record of the store.
    pub(crate) fn record_of(&self, fact: &Fact) -> MemoryRecord {
        fact.write(self)
    }

    /// Puts what the person says in the place of a fact, which ends; the source stays. `None` if there is no such fact that
    /// holds.
    ///
    /// # Errors
    /// The store fails.
    pub fn correct(&self, id: &str, text: &str) -> Result<Option<Fact>, StoreError> {
        let since = Some(self.talks().memory().erasures()?);
        let Some(old) = self.holding()?.into_iter().find(|fact| fact.id == id) else { return Ok(None) };
        let said = Statement {
            fact: text.split_whitespace().collect::<Vec<_>>().join(" "),
            confidence: 1.0,
            supersedes: Some(old.id.clone()),
            run: None,
            ..old.said.clone()
        };
        if said.fact == old.said.fact {
            return Ok(Some(old));
        }
        let new =
            Fact { said, id: self.talks().new_id("fact")?, created: self.store.store().now(), ..old.clone() };
        let old = Fact { valid_until: Some(new.created), ..old };
        let put = vec![old.write(self), new.write(self)];
        self.talks().memory().apply(&MemoryChange { put, since, ..MemoryChange::default() })?;
        self.limit_profile()?;
        Ok(Some(new))
    }

    /// Erases a fact with its history, and what replies have of it. `false` if the person has none of this id.
    ///
    /// # Errors
    /// The store fails.
    pub fn erase(&self, id: &str) -> Result<bool, StoreError> {
        let is_own = self.all_facts()?.iter().any(|fact| fact.id == id);
        Ok(is_own && Eraser { store: self.store }.fact(id)?)
    }

    /// The words that a fact comes from; `None` if their message is gone.
    ///
    /// # Errors
    /// The store fails.
    pub fn source(&self, fact: &Fact) -> Result<Option<String>, StoreError> {
        let track = Track { conversation: &fact.conversation, participant: self.track.participant };
        match self.talks().get_message(track, fact.said.message) {
            Ok(message) => Ok(message.text.get(fact.said.start..fact.said.end).map(str::to_owned)),
            Err(StoreError::UnknownMessage { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn new_fact(&self, session: u64, said: Statement, consent: Option<String>) -> Result<Fact, StoreError> {
        Ok(Fact {
            id: self.talks().new_id("fact")?,
            said,
            conversation: self.track.conversation.to_owned(),
            session,
            consent,
            created: self.store.store().now(),
            valid_until: None,
        })
    }

    /// Holds the profile within its limits (C100, N31). Statements said twice are one. What is over the limits leaves the
    /// profile, the least sure first and of those the oldest, and can still be retrieved; a job has a model merge it.
    pub(crate) fn limit_profile(&self) -> Result<(), StoreError> {
        let since = Some(self.talks().memory().erasures()?);
        let mut profile = self.profile_facts()?;
        profile.reverse();
        profile.sort_by(|a, b| b.said.confidence.total_cmp(&a.said.confidence));
        let mut keys = std::collections::BTreeSet::new();
        let (mut count, mut tokens, mut is_over) = (0, 0, false);
        let mut change = MemoryChange { since, ..MemoryChange::default() };
        for mut fact in profile {
            let is_new = keys.insert(statement(&fact.said));
            let cost = self.counter.count(&fact.said.fact);
            let fits = count < self.rules.per_profile && tokens + cost <= self.rules.profile_tokens;
            if is_new && fits {
                (count, tokens) = (count + 1, tokens + cost);
                continue;
            }
            is_over |= is_new;
            fact.said.scope = FactScope::Session;
            change.put.push(fact.write(self));
        }
        if is_over {
            let track =
                json!({"conversation": self.track.conversation, "participant": self.track.participant});
            change.jobs.push(NewJob {
                kind: CONSOLIDATE,
                key: format!("{CONSOLIDATE} {}", self.track.participant),
                session: None,
                payload: track,
                after: 0,
            });
        }
        if change.put.is_empty() { Ok(()) } else { self.talks().memory().apply(&change) }
    }
}

/// What two facts share that say the same.
pub(crate) fn statement(said: &Statement) -> String {
    let words = said.fact.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(said.category.clone(), |statement, word| statement + "\0" + &word.to_lowercase())
}
