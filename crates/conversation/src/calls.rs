//! The calls of a turn besides the reply (R4-7.1 to R4-7.8): whether a message refers to something that is not in view, and
//! what to look up for it. Rules decide first. A model is asked where they cannot, behind the reply and for the next turn;
//! only planning may keep a reply waiting, for as long as the type says (C98, R4-9.8).

use std::collections::BTreeMap;
use std::time::Duration;

use larder_engine::executor::{Meter, ProgressObserver, RunKind, RunOutcome, SpendingOnly};
use larder_engine::inputs::{InputDocument, RunInput};
use larder_store::ConversationMessage;
use larder_text::price::Usd;
use larder_text::usage::Usage;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::background::AfterReply;
use crate::conversation::Conversation;
use crate::error::ConversationError;
use crate::intent::MemoryIntent;
use crate::kind::{Aside, Block, Breaker, Call, CallTime, CallWhen, Depth};
use crate::prepare::Prepared;
use crate::reply::{line, past};
use crate::state::ParticipantState;

/// The job that detects what a message refers to, for the next turn.
pub const DETECT_REFERENCES: &str = "conversation_references";
/// What planning is called among the calls of a turn.
pub(crate) const PLANNING: &str = "planning";
const REFERENCES: &str = "references";
/// How much longer than its limit a call may be waited for, in which the engine records that it was late.
const GRACE: Duration = Duration::from_millis(100);

/// One call of a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct TurnCall {
    /// `reply`, `planning`, the name of an action, or the kind of a job.
    pub call: String,
    /// The run.
    pub run: String,
    /// Tokens.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub usage: Usage,
    /// Their price.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub cost: Option<Usd>,
}

impl TurnCall {
    /// A call with what its run spent.
    pub(crate) fn new(call: &str, outcome: &RunOutcome) -> Self {
        Self {
            call: call.to_owned(),
            run: outcome.run_id.to_string(),
            usage: outcome.usage,
            cost: outcome.cost,
        }
    }
}

/// The tokens and the price of calls; no price if none has one.
pub(crate) fn total(calls: &[TurnCall]) -> (Usage, Option<Usd>) {
    let mut usage = Usage::default();
    calls.iter().for_each(|call| usage += call.usage);
    let mut prices = calls.iter().filter_map(|call| call.cost).peekable();
    let cost = prices.peek().is_some().then(|| prices.sum());
    (usage, cost)
}

/// How a guarded call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    /// It was made in time.
    Made,
    /// It failed, or took too long; rules decided.
    Failed,
    /// It was left out, because it failed too often; rules decided.
    Skipped,
}

/// For guarded calls: failures in a row, and until when one is left out, in milliseconds (C66).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Breakers(BTreeMap<String, (u32, u64)>);

impl Breakers {
    /// Whether a call may be made now.
    fn admits(&self, call: &str, now: u64) -> bool {
        self.0.get(call).is_none_or(|(_, until)| now >= *until)
    }

    /// Notes how a call ended. When its pause is over it is tried once, and a failure begins the next pause.
    fn note(&mut self, call: &str, breaker: Option<Breaker>, succeeded: bool, now: u64) {
        let Some(breaker) = breaker.filter(|_| !succeeded) else {
            self.0.remove(call);
            return;
        };
        let (failures, until) = self.0.entry(call.to_owned()).or_default();
        *failures = failures.saturating_add(1);
        if *failures >= breaker.failures {
            *until = now.saturating_add(breaker.pause_s.saturating_mul(1_000));
            tracing::warn!(
                event = "breaker_open",
                call,
                failures = *failures,
                "the call is left out for a while"
            );
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Detected {
    refers: bool,
    references: Vec<Reference>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reference {
    search: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Planned {
    searches: Vec<Search>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Search {
    text: String,
}

impl Conversation {
    /// Decides what to look up for a message besides its words: what it is known to refer to and, at full depth, what a
    /// planning call asks for (R4-7.4). Returns the calls that were made.
    pub(crate) async fn plan(
        &self,
        message: &ConversationMessage,
        state: &mut ParticipantState,
        prepared: &mut Prepared<'_>,
        observer: &dyn ProgressObserver,
    ) -> Vec<TurnCall> {
        let mut made = Vec::new();
        if prepared.record.safety || prepared.found.memory.is_some_and(MemoryIntent::withholds) {
            state.references.clear();
            return made;
        }
        let (references, planning) = (&self.loaded.kind.calls.references, &self.loaded.kind.calls.planning);
        if references.runs == CallTime::Before && self.holds(&references.when, prepared, state, message) {
            let input = self.about(message, prepared, state, &[Block::Messages]);
            let (end, outcome) =
                self.guarded(REFERENCES, references, &mut state.breakers, &input, observer).await;
            prepared.record.calls.push((REFERENCES.to_owned(), end));
            if let Some(outcome) = outcome {
                made.push(TurnCall::new(REFERENCES, &outcome));
                state.references = searched(read(&outcome));
            }
        }
        prepared.searches = std::mem::take(&mut state.references);
        prepared.record.refers = prepared.found.refers_to_past || !prepared.searches.is_empty();
        if planning.runs == CallTime::Before && self.holds(&planning.when, prepared, state, message) {
            let input = self.about(message, prepared, state, &[Block::Messages, Block::Facts]);
            let (end, outcome) =
                self.guarded(PLANNING, planning, &mut state.breakers, &input, observer).await;
            prepared.record.calls.push((PLANNING.to_owned(), end));
            if let Some(outcome) = outcome {
                made.push(TurnCall::new(PLANNING, &outcome));
                let planned: Planned = read(&outcome);
                prepared.searches.extend(planned.searches.into_iter().map(|search| search.text));
            }
        }
        prepared.searches.retain(|text| !text.trim().is_empty());
        prepared.record.searches.clone_from(&prepared.searches);
        made
    }

    /// Whether all of the conditions hold for a message.
    pub(crate) fn holds(
        &self,
        when: &[CallWhen],
        prepared: &Prepared<'_>,
        state: &ParticipantState,
        message: &ConversationMessage,
    ) -> bool {
        when.iter().all(|when| match when {
            CallWhen::FullDepth => {
                let stage = || prepared.stage.retrieval.depth_in(state.stage_turns.saturating_add(1));
                prepared.found.depth.unwrap_or_else(stage) == Depth::Full
            }
            CallWhen::ReferenceDetected => prepared.record.refers,
            CallWhen::Undecided => !prepared.found.refers_to_past && has_more(prepared, message),
            CallWhen::Aside => prepared.stage.aside != Aside::No,
        })
    }

    /// A message with the newest before it, and what else a call reads.
    fn about(
        &self,
        message: &ConversationMessage,
        prepared: &Prepared<'_>,
        state: &ParticipantState,
        reads: &[Block],
    ) -> RunInput {
        RunInput {
            query: Some(message.text.clone()),
            documents: self.documents_of(reads, prepared, state, &[]),
            session_id: Some(self.session_id(message.session)),
            ..RunInput::default()
        }
    }

    /// Makes a call that rules can replace: within its time, and not while its breaker is open.
    async fn guarded(
        &self,
        name: &str,
        call: &Call,
        breakers: &mut Breakers,
        input: &RunInput,
        observer: &dyn ProgressObserver,
    ) -> (CallEnd, Option<RunOutcome>) {
        let engine = &self.all.engine;
        let now = || engine.store.store().now().as_millis();
        let Some(recipe) = call.recipe.as_deref().and_then(|name| engine.find(name, None).ok()) else {
            return (CallEnd::Failed, None);
        };
        if !breakers.admits(name, now()) {
            return (CallEnd::Skipped, None);
        }
        let until = call.timeout_ms.map(|limit| tokio::time::Instant::now() + Duration::from_millis(limit));
        let observer = SpendingOnly(observer);
        let run = engine.run_recipe(recipe, input, &observer, RunKind::Planning { until });
        let ended = match until {
            Some(until) => tokio::time::timeout_at(until + GRACE, run).await.ok(),
            None => Some(run.await),
        };
        let outcome = match ended {
            Some(Ok(outcome)) => Some(outcome),
            Some(Err(error)) => {
                tracing::info!(call = name, %error, "rules decide in place of a call");
                None
            }
            None => None,
        };
        breakers.note(name, call.breaker, outcome.is_some(), now());
        (if outcome.is_some() { CallEnd::Made } else { CallEnd::Failed }, outcome)
    }

    /// Detects what a message refers to that is not in view, for the next turn. One that has been followed by another
    /// message meanwhile changes nothing.
    pub(crate) async fn detect_references(
        &self,
        after: &AfterReply,
        observer: &dyn ProgressObserver,
    ) -> Result<(), ConversationError> {
        let call = &self.loaded.kind.calls.references;
        let Ok(message) = self.message(after.message) else { return Ok(()) };
        let before = self.all.store().messages_before(self.track(), after.session, message.turn)?;
        let kept = before.len().saturating_sub(self.loaded.kind.window.protected);
        let lines: Vec<String> =
            before[kept..].iter().map(past).map(|one| line(one.number, one.role, &one.text)).collect();
        let document =
            InputDocument::whole(Block::Messages.as_str(), Block::Messages.as_str(), lines.join("\n"));
        let input = RunInput {
            query: Some(message.text.clone()),
            documents: vec![document],
            session_id: Some(self.session_id(after.session)),
            ..RunInput::default()
        };
        let (_, mut state) = self.standing()?;
        let meter = Meter::new(observer, None, None);
        let (end, outcome) = self.guarded(REFERENCES, call, &mut state.breakers, &input, &meter).await;
        self.charge_metered((&after.stage, DETECT_REFERENCES), &meter)?;
        let detected = outcome.as_ref().map(|outcome| searched(read(outcome)));
        if let Some(outcome) = &outcome {
            self.note_run(after, DETECT_REFERENCES, outcome, Vec::new())?;
        }
        if end == CallEnd::Skipped {
            return Ok(());
        }
        let _lease = self.lease().await?;
        let (session, mut now) = self.standing()?;
        now.breakers = state.breakers;
        let newest = self.all.store().messages(self.track(), session, message.number..u64::MAX)?;
        let is_newest = newest
            .iter()
            .all(|other| other.number == message.number || other.reply_to == Some(message.number));
        if session == after.session && is_newest {
            now.references = detected.unwrap_or_default();
        }
        let state = serde_json::to_value(&now).unwrap_or_default();
        Ok(self.all.store().set_state(self.track(), &state)?)
    }
}

/// Whether there is more of the past than what is in view.
fn has_more(prepared: &Prepared<'_>, message: &ConversationMessage) -> bool {
    prepared.record.summarized > 0 || message.session > 1
}

fn searched(detected: Detected) -> Vec<String> {
    let found = detected.references.into_iter().filter(|_| detected.refers);
    found.map(|reference| reference.search).filter(|search| !search.trim().is_empty()).collect()
}

fn read<T: DeserializeOwned + Default>(outcome: &RunOutcome) -> T {
    serde_json::from_value(outcome.output.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breaker_opens_after_failures_in_a_row_and_lets_one_try_after_its_pause() {
        let (rules, mut breakers) = (Some(Breaker { failures: 2, pause_s: 60 }), Breakers::default());
        breakers.note("planning", rules, false, 0);
        breakers.note("planning", rules, true, 0);
        breakers.note("planning", rules, false, 0);
        assert!(breakers.admits("planning", 1), "one failure in a row");
        breakers.note("planning", rules, false, 1_000);
        assert!(!breakers.admits("planning", 60_999) && breakers.admits("references", 0));
        assert!(breakers.admits("planning", 61_000));
        breakers.note("planning", rules, false, 61_000);
        assert!(!breakers.admits("planning", 62_000), "another failure begins another pause");
        breakers.note("planning", rules, true, 121_000);
        assert_eq!(breakers, Breakers::default());
        breakers.note("planning", None, false, 0);
        assert!(breakers.admits("planning", 0), "without a breaker it is always made");
    }
}
