//! What is made of the messages of a session behind its replies: facts and the summary. A recipe reads as many messages at
//! once as its budget holds whole, and goes on from there, so that none is passed over.

use larder_core::pack::Rendition;
use larder_engine::executor::{Meter, ProgressObserver, RunOutcome};
use larder_engine::inputs::{InputDocument, RunInput};
use larder_store::{ConversationMessage, MemoryChange, MemoryFilter, MemoryKind, MemoryRecord, Timestamp};
use larder_text::tokens::Counter;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::background::{AfterReply, SUMMARIZE, UPDATE_FACTS};
use crate::conversation::Conversation;
use crate::error::ConversationError;
use crate::kind::Block;
use crate::reply::{line, past, spent};
use crate::window::{PastMessage, summary_due};

/// What facts are asked for.
const FACTS_QUERY: &str = "Update the facts.";
/// What a summary is asked for.
const SUMMARY_QUERY: &str = "Write the summary.";

/// The summary of a session.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SessionSummary {
    /// The highest number among the messages that it covers.
    pub watermark: u64,
    /// The place of the last message that it covers; that of the watermark in records of earlier versions.
    upto: Option<(u64, u64)>,
    /// What it says.
    #[serde(rename = "summary")]
    pub text: Value,
    /// The run that wrote it.
    #[serde(default)]
    run: String,
}

impl SessionSummary {
    /// How many of a session's messages it covers, from the first on.
    pub(crate) fn covered(&self, messages: &[ConversationMessage]) -> usize {
        let upto = self.upto.unwrap_or((self.watermark, self.watermark));
        messages.partition_point(|message| message.position() <= upto)
    }
}

/// What a recipe behind a reply reads, besides messages.
struct Reads<'a> {
    recipe: &'a str,
    query: &'a str,
    other: (Block, String),
    value: (&'a str, Value),
}

impl Conversation {
    /// The summary of a session.
    pub(crate) fn summary(&self, session: u64) -> Result<Option<SessionSummary>, ConversationError> {
        let found = self.progress(MemoryKind::Summary, session)?;
        Ok(found.and_then(|data| serde_json::from_value(data).ok()))
    }

    /// What is kept of a session as the only record of its kind.
    fn progress(&self, kind: MemoryKind, session: u64) -> Result<Option<Value>, ConversationError> {
        let id = self.session_id(session);
        let filter = MemoryFilter { kind: Some(kind), id: Some(&id), ..MemoryFilter::default() };
        Ok(self.all.store().memory().list(&filter)?.pop().map(|record| record.data))
    }

    fn put_progress(
        &self,
        kind: MemoryKind,
        after: &AfterReply,
        data: Value,
    ) -> Result<(), ConversationError> {
        let record = MemoryRecord {
            number: 0,
            kind,
            id: self.session_id(after.session),
            participant: self.participant.clone(),
            conversation: Some(self.id.clone()),
            session: Some(after.session),
            consent: None,
            data,
            vector: None,
            created: Timestamp::from_millis(0),
            ended: None,
        };
        let change = MemoryChange { put: vec![record], since: after.since, ..MemoryChange::default() };
        Ok(self.all.store().memory().apply(&change)?)
    }

    /// The messages of a session up to the first that waits for its reply, since what follows has no place yet.
    fn settled(&self, session: u64) -> Result<Vec<ConversationMessage>, ConversationError> {
        let mut messages = self.messages(Some(session))?;
        let waiting = messages.iter().position(|message| message.pending);
        messages.truncate(waiting.unwrap_or(messages.len()));
        Ok(messages)
    }

    /// Updates the facts of a session by the messages that they were not looked for in.
    pub(crate) async fn update_facts(
        &self,
        after: &AfterReply,
        observer: &dyn ProgressObserver,
    ) -> Result<(), ConversationError> {
        while self.update_facts_further(after, observer).await? {}
        Ok(())
    }

    /// Takes one step; returns whether messages are left.
    async fn update_facts_further(
        &self,
        after: &AfterReply,
        observer: &dyn ProgressObserver,
    ) -> Result<bool, ConversationError> {
        let rules = &self.loaded.kind.memory;
        let counter = Counter::cl100k();
        let memory = self.memory_since(&counter, after.since);
        let messages = self.settled(after.session)?;
        let read = self.progress(MemoryKind::Progress, after.session)?;
        let read: (u64, u64) = read.and_then(|read| serde_json::from_value(read).ok()).unwrap_or_default();
        let new = messages.partition_point(|message| message.position() <= read);
        if new == messages.len() {
            return Ok(false);
        }
        let from = new.saturating_sub(rules.facts_again);
        let held: Vec<_> = memory
            .session_facts(after.session)?
            .into_iter()
            .map(|fact| format!("{} [{}] {}", fact.id, fact.said.category, fact.said.fact))
            .collect();
        let categories: Vec<_> = rules
            .categories
            .iter()
            .map(|category| format!("- {}: {}", category.name, category.about))
            .collect();
        let reads = Reads {
            recipe: &rules.facts,
            query: FACTS_QUERY,
            other: (Block::Facts, held.join("\n")),
            value: ("categories", categories.join("\n").into()),
        };
        let (outcome, many) = self
            .read_whole(after, UPDATE_FACTS, &reads, (&messages[from..], new - from + 1), observer)
            .await?;
        let diff = serde_json::from_value(outcome.output.clone()).unwrap_or_default();
        let report = memory.update_facts(after.session, &diff, outcome.run_id.as_str())?;
        self.note_run(after, UPDATE_FACTS, &outcome, Vec::new())?;
        let last = messages[from + many - 1].position();
        self.put_progress(MemoryKind::Progress, after, serde_json::to_value(last).unwrap_or_default())?;
        tracing::info!(
            event = "facts_updated",
            conversation = self.id,
            written = report.written.len(),
            refused = report.refused.len(),
            "the facts of a session"
        );
        Ok(from + many < messages.len())
    }

    /// Summarizes what is due: the summary so far, with the messages that it does not cover up to the kept tail.
    pub(crate) async fn summarize(
        &self,
        after: &AfterReply,
        observer: &dyn ProgressObserver,
    ) -> Result<(), ConversationError> {
        while self.summarize_further(after, observer).await? {}
        Ok(())
    }

    /// Takes one step; returns whether messages that were due are left.
    async fn summarize_further(
        &self,
        after: &AfterReply,
        observer: &dyn ProgressObserver,
    ) -> Result<bool, ConversationError> {
        let kind = &self.loaded.kind;
        let Some(stage) = kind.stage(&after.stage) else { return Ok(false) };
        let rules = kind.summary_in(stage);
        let messages = self.settled(after.session)?;
        let said: Vec<PastMessage> = messages.iter().map(past).collect();
        let before = self.summary(after.session)?;
        let covered = before.as_ref().map(|summary| summary.covered(&messages));
        let counter = Counter::cl100k();
        let due = summary_due(&said, covered, &rules, |message| counter.count(&message.text));
        let Some(end) = due else { return Ok(false) };
        let from = covered.unwrap_or(0);
        let reads = Reads {
            recipe: &rules.recipe,
            query: SUMMARY_QUERY,
            other: (Block::Summary, before.map(|summary| summary.text.to_string()).unwrap_or_default()),
            value: ("words", rules.words.into()),
        };
        let (outcome, many) =
            self.read_whole(after, SUMMARIZE, &reads, (&messages[from..end], 1), observer).await?;
        self.note_run(after, SUMMARIZE, &outcome, Vec::new())?;
        let covers = &messages[..from + many];
        let summary = SessionSummary {
            watermark: covers.iter().map(|message| message.number).max().unwrap_or_default(),
            upto: covers.last().map(ConversationMessage::position),
            text: outcome.output,
            run: outcome.run_id.to_string(),
        };
        let data = serde_json::to_value(&summary).unwrap_or_default();
        self.put_progress(MemoryKind::Summary, after, data)?;
        Ok(from + many < end)
    }

    /// Runs a recipe with as many of the messages, from the first on, as it reads whole, but at least so many; returns how
    /// many it read.
    async fn read_whole(
        &self,
        after: &AfterReply,
        call: &str,
        reads: &Reads<'_>,
        (messages, least): (&[ConversationMessage], usize),
        observer: &dyn ProgressObserver,
    ) -> Result<(RunOutcome, usize), ConversationError> {
        let engine = &self.all.engine;
        let recipe = engine.find(reads.recipe, None);
        let recipe = recipe.map_err(|source| engine.missing(reads.recipe, source))?;
        let takes = |input: Block| recipe.input_docs.iter().any(|doc| doc.name == input.as_str());
        let lines: Vec<String> =
            messages.iter().map(past).map(|one| line(one.number, one.role, &one.text)).collect();
        let with = |many: usize| {
            let (other, text) = &reads.other;
            let documents = [(*other, text.clone()), (Block::Messages, lines[..many].join("\n"))];
            let documents = documents.into_iter().filter(|(input, text)| takes(*input) && !text.is_empty());
            let mut input = RunInput {
                query: Some(reads.query.to_owned()),
                documents: documents
                    .map(|(input, text)| InputDocument::whole(input.as_str(), input.as_str(), text))
                    .collect(),
                session_id: Some(self.session_id(after.session)),
                ..RunInput::default()
            };
            let (name, value) = &reads.value;
            if recipe.inputs.contains(*name) {
                input.values.insert((*name).to_owned(), value.clone());
            }
            input
        };
        let mut many = lines.len();
        while many > least && !self.is_whole(reads.recipe, &with(many))? {
            many = least.max(many / 2);
        }
        let stage = after.stage.as_str();
        let outcome = self.run_charged((stage, call), reads.recipe, &with(many), observer).await?;
        Ok((outcome, many))
    }

    /// Whether all of the messages would be in the prompt of a recipe, and none of them shortened.
    fn is_whole(&self, recipe: &str, input: &RunInput) -> Result<bool, ConversationError> {
        let packed = self.all.engine.explain_with(recipe, input, 0)?;
        let parts = packed.receipt.parts.iter().filter(|part| &*part.source == Block::Messages.as_str());
        Ok(parts.into_iter().all(|part| part.rendition == Rendition::Whole))
    }

    /// Runs a recipe behind a reply. What it spends counts even if it fails.
    pub(crate) async fn run_charged(
        &self,
        (stage, call): (&str, &str),
        recipe: &str,
        input: &RunInput,
        observer: &dyn ProgressObserver,
    ) -> Result<RunOutcome, ConversationError> {
        let meter = Meter::new(observer, None, None);
        let ended = self.all.engine.run(recipe, input, &meter).await;
        self.charge_metered((stage, call), &meter)?;
        Ok(ended?)
    }

    /// Adds what was spent on a call to the costs, if anything was.
    pub(crate) fn charge_metered(
        &self,
        (stage, call): (&str, &str),
        meter: &Meter<'_>,
    ) -> Result<(), ConversationError> {
        let total = meter.total();
        if total.usage.input + total.usage.output > 0 {
            self.all.store().add_cost(self.track(), &spent(stage, call, &total.usage, total.cost))?;
        }
        Ok(())
    }
}
