//! Requests to remember or to forget something (C99). What is to be remembered is put into one sentence, judged, and
//! remembered as far as the person's consent reaches; of what is to be forgotten, the facts are erased that the request
//! names. What became of it is said with the next reply.

use std::collections::BTreeSet;

use larder_engine::executor::{ProgressObserver, RunOutcome};
use larder_engine::inputs::{InputDocument, RunInput};
use larder_store::{ConversationMessage, MemoryChange};
use larder_text::tokens::Counter;
use larder_text::words::is_stop_word;
use serde::Deserialize;

use crate::background::AfterReply;
use crate::conversation::Conversation;
use crate::error::ConversationError;
use crate::intent;
use crate::kind::{Block, Intent};
use crate::memory::{Fact, FactScope, Request, Shown};
use crate::reply::{line, past};

/// The job that remembers what a message asked for.
pub const REMEMBER: &str = "conversation_remember";
/// What the validator is asked for.
const JUDGE_QUERY: &str = "Decide whether this may be remembered.";
/// What the person is told of a message that rules take for a request and a model does not.
const NO_REQUEST: &str = "Nothing was remembered or forgotten: the message was not understood as a wish for that. Name what \
                          is to be remembered, as in \"Remember that I am called Sam.\"";
/// What the person is told of a request to remember without anything in it.
const NO_STATEMENT: &str = "Nothing was remembered: the message does not say what. Name it, as in \"Remember that I am called \
                            Sam.\"";
/// The newest messages before the request, for what "this" refers to.
const MESSAGES_BEFORE: usize = 6;
/// Characters by which two forms of a word are the same.
const STEM: usize = 4;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wish {
    Remember,
    Forget,
    #[default]
    None,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    action: Wish,
    text: String,
    quote: String,
    /// The ids of the facts to forget.
    facts: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Judged {
    valid: bool,
    reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Mentioned {
    people: Vec<Person>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Person {
    name: String,
    relation: String,
}

impl Conversation {
    /// Remembers or forgets what a message asked for, or notes why not.
    pub(crate) async fn remember_request(
        &self,
        after: &AfterReply,
        observer: &dyn ProgressObserver,
    ) -> Result<(), ConversationError> {
        let rules = &self.loaded.kind.memory;
        let (Some(formatter), Some(validator)) = (&rules.formatter, &rules.validator) else { return Ok(()) };
        // What was deleted meanwhile is not remembered, and what a job before has remembered not twice.
        let Ok(message) = self.message(after.message) else { return Ok(()) };
        let counter = Counter::cl100k();
        if self.memory(&counter).is_remembered(message.number)? {
            return Ok(());
        }
        let before = self.before(&message)?;
        let held = self.memory(&counter).visible(after.session)?;
        let facts: Vec<String> =
            held.iter().map(|shown| format!("{} {}", shown.item.id, shown.item.said.fact)).collect();
        let given = [(Block::Messages, before.as_str()), (Block::Facts, &facts.join("\n"))];
        let read = self.ask(after, formatter, &message.text, &given, &held, observer).await?;
        let asked: Asked = serde_json::from_value(read.output).unwrap_or_default();
        let text = told(asked.text.trim(), &message.text, &self.loaded.kind.intents.memory_request);
        match asked.action {
            Wish::None => return self.settle(after, None, NO_REQUEST.to_owned()).await,
            Wish::Forget => {
                let named = held.into_iter().map(|shown| shown.item.id).filter(|id| asked.facts.contains(id));
                return self.forget_facts(after, &named.collect::<Vec<_>>()).await;
            }
            Wish::Remember if text.is_empty() => {
                return self.settle(after, None, NO_STATEMENT.to_owned()).await;
            }
            Wish::Remember => {}
        }
        let judged = self.ask(after, validator, JUDGE_QUERY, &[(Block::Draft, text)], &[], observer).await?;
        let judged: Judged = serde_json::from_value(judged.output).unwrap_or_default();
        if !judged.valid {
            return self.settle(after, None, format!("Not remembered: \"{text}\". {}", judged.reason)).await;
        }
        let mut people = Vec::new();
        if let Some(finder) = &rules.people {
            let given = [(Block::Messages, before.as_str())];
            let found = self.ask(after, finder, &message.text, &given, &[], observer).await?;
            let found: Mentioned = serde_json::from_value(found.output).unwrap_or_default();
            let named = found.people.into_iter().filter(|person| !person.name.trim().is_empty());
            people.extend(named.map(|person| match person.relation.trim() {
                "" => person.name,
                relation => format!("{} ({relation})", person.name),
            }));
        }
        let run = read.run_id.to_string();
        let request = Request { message: message.number, text, quote: &asked.quote, people, run: &run };
        self.settle(after, Some(request), format!("\"{text}\"")).await
    }

    /// Erases facts, and notes how many. The notice repeats nothing of them.
    async fn forget_facts(&self, after: &AfterReply, ids: &[String]) -> Result<(), ConversationError> {
        let lease = self.lease().await?;
        let counter = Counter::cl100k();
        let mut forgotten = 0_usize;
        for id in ids {
            forgotten += usize::from(self.memory(&counter).erase(id)?);
        }
        drop(lease);
        // What was erased here does not stand against the notice.
        let since = Some(self.all.store().memory().erasures()?);
        let after = &AfterReply { since, ..after.clone() };
        let notice = match forgotten {
            0 => "Asked to forget something; nothing fits it that is remembered of this conversation, or of others with \
                  consent. The page of the person lists everything."
                .to_owned(),
            1 => "One fact was forgotten, as asked.".to_owned(),
            many => format!("{many} facts were forgotten, as asked."),
        };
        let rest = "Messages stay as they were written until they are deleted.";
        self.settle(after, None, format!("{notice} {rest}")).await
    }

    /// Runs a recipe behind a reply with some of these texts, and counts what it cost. `seen` are the facts among them.
    async fn ask(
        &self,
        after: &AfterReply,
        name: &str,
        query: &str,
        given: &[(Block, &str)],
        seen: &[Shown<Fact>],
        observer: &dyn ProgressObserver,
    ) -> Result<RunOutcome, ConversationError> {
        let engine = &self.all.engine;
        let recipe = engine.find(name, None).map_err(|source| engine.missing(name, source))?;
        let takes = |block: Block| recipe.input_docs.iter().any(|doc| doc.name == block.as_str());
        let read = given.iter().filter(|(block, text)| takes(*block) && !text.is_empty());
        let documents = read.map(|(block, text)| InputDocument::whole(block.as_str(), block.as_str(), *text));
        let input = RunInput {
            query: Some(query.to_owned()),
            documents: documents.collect(),
            session_id: Some(self.session_id(after.session)),
            ..RunInput::default()
        };
        let outcome = self.run_charged((&after.stage, REMEMBER), name, &input, observer).await?;
        let origins = self.memory(&Counter::cl100k()).origins(seen, |fact| fact.id.clone());
        self.note_run(after, REMEMBER, &outcome, origins)?;
        Ok(outcome)
    }

    /// The messages right before one, a line each.
    fn before(&self, message: &ConversationMessage) -> Result<String, ConversationError> {
        let messages = self.all.store().messages_before(self.track(), message.session, message.turn)?;
        let kept = messages.len().saturating_sub(MESSAGES_BEFORE);
        let lines = messages[kept..].iter().map(past).map(|one| line(one.number, one.role, &one.text));
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    /// Writes what is remembered together with the notice that says so.
    async fn settle(
        &self,
        after: &AfterReply,
        request: Option<Request<'_>>,
        mut notice: String,
    ) -> Result<(), ConversationError> {
        let _lease = self.lease().await?;
        if self.message(after.message).is_err() {
            return Ok(());
        }
        let counter = Counter::cl100k();
        let memory = self.memory(&counter);
        let mut change = MemoryChange { since: after.since, ..MemoryChange::default() };
        if let Some(request) = request {
            let fact = memory.requested(&request)?;
            notice = match fact.said.scope {
                FactScope::Session => {
                    format!(
                        "Remembered in this session only, because there is no consent to keep it longer: {notice}"
                    )
                }
                _ => format!("Remembered: {notice}"),
            };
            change.put.push(memory.record_of(&fact));
        }
        let (session, mut state) = self.standing()?;
        // What was asked for in one session is not told in another.
        if session == after.session {
            state.notices.push(notice);
            let state = serde_json::to_value(&state).unwrap_or_default();
            change.states.push((self.id.clone(), self.participant.clone(), state));
        }
        self.all.store().memory().apply(&change)?;
        Ok(memory.limit_profile()?)
    }
}

/// What a model wrote of a request, or the person's own words where it wrote something else: where no word of it is one of
/// the message, apart from those that ask.
fn told<'t>(written: &'t str, message: &'t str, asking: &Intent) -> &'t str {
    let asks: BTreeSet<String> = asking.phrases.iter().flat_map(|phrase| intent::words(phrase)).collect();
    let stems = |text: &str| -> BTreeSet<String> {
        let words = intent::words(text).into_iter();
        let telling =
            words.filter(|word| !asks.contains(word) && !word.contains('\'') && !is_stop_word(word));
        telling.map(|word| word.chars().take(STEM).collect()).collect()
    };
    let said = stems(message);
    // "Remember this" points to what was said before.
    if written.is_empty() || said.is_empty() || !said.is_disjoint(&stems(written)) {
        return written;
    }
    message.trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_does_not_say_is_not_remembered_in_its_place() {
        let asking = Intent { phrases: vec!["remember that".to_owned()], ..Intent::default() };
        let message = "Please remember that I live in Graz";
        for written in ["The user lives in Graz.", "User lives there.", ""] {
            assert_eq!(told(written, message, &asking), written);
        }
        for written in
            ["You cannot see the order, but you know when it is due.", "I'm glad to remember that."]
        {
            assert_eq!(told(written, message, &asking), message, "{written}");
        }
        assert_eq!(
            told("The order is due on Friday.", "Remember that!", &asking),
            "The order is due on Friday."
        );
    }
}
