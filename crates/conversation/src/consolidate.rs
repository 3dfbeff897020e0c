//! The job that has a model merge the facts of a profile that has too many (R4-4.11, C100). The rule has limited the profile
//! before, and does so again behind it; whatever the model answers, a profile is never over its limits.

use larder_engine::executor::ProgressObserver;
use larder_engine::inputs::{InputDocument, RunInput};
use larder_text::tokens::Counter;

use crate::background::AfterReply;
use crate::conversation::Conversation;
use crate::error::ConversationError;
use crate::kind::Block;
use crate::memory::{CONSOLIDATE, MergedFacts, Shown};

/// What the recipe is asked for.
const QUERY: &str = "Merge the facts.";

impl Conversation {
    /// Merges the facts of the profile, if they are too many.
    pub(crate) async fn consolidate(
        &self,
        after: &AfterReply,
        observer: &dyn ProgressObserver,
    ) -> Result<(), ConversationError> {
        let rules = &self.loaded.kind.memory;
        let counter = Counter::cl100k();
        let memory = self.memory_since(&counter, after.since);
        let facts = memory.to_merge()?;
        if facts.is_empty() {
            return Ok(());
        }
        let (engine, name) = (&self.all.engine, &rules.consolidate);
        let recipe = engine.find(name, None).map_err(|source| engine.missing(name, source))?;
        let lines: Vec<String> = facts
            .iter()
            .map(|fact| {
                format!("{} [{}] ({}) {}", fact.id, fact.said.category, fact.created.date(), fact.said.fact)
            })
            .collect();
        let (session, _) = self.standing()?;
        let mut input = RunInput {
            query: Some(QUERY.to_owned()),
            session_id: Some(self.session_id(session)),
            ..RunInput::default()
        };
        if recipe.input_docs.iter().any(|doc| doc.name == Block::Facts.as_str()) {
            let name = Block::Facts.as_str();
            input.documents.push(InputDocument::whole(name, name, lines.join("\n")));
        }
        for (key, value) in [("most", rules.per_profile), ("tokens", rules.profile_tokens)] {
            if recipe.inputs.contains(key) {
                input.values.insert(key.to_owned(), value.into());
            }
        }
        let stage = self.loaded.kind.stages.first().map_or("", |stage| stage.name.as_str());
        let stage = if after.stage.is_empty() { stage } else { after.stage.as_str() };
        let outcome = self.run_charged((stage, CONSOLIDATE), name, &input, observer).await?;
        let read = facts.iter().map(|fact| Shown { consent: fact.consent.clone(), item: fact.id.clone() });
        let origins = memory.origins(&read.collect::<Vec<_>>(), String::clone);
        self.note_run(&AfterReply { session, ..after.clone() }, CONSOLIDATE, &outcome, origins)?;
        let merged: MergedFacts = serde_json::from_value(outcome.output).unwrap_or_default();
        let report = memory.merge(&facts, &merged, outcome.run_id.as_str())?;
        tracing::info!(
            event = "profile_merged",
            conversation = self.id,
            written = report.written,
            merged = report.merged,
            refused = report.refused,
            "the facts of a profile"
        );
        Ok(())
    }
}
