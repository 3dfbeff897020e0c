//! The summary of a committed turn, written by a model (C5): a background job whose failure costs only the summary.

use std::sync::Arc;

use larder_text::hash::ContentHash;
use larder_vault::layout::wrapper;
use larder_vault::{TurnMetadata, VaultPath, Wrapper, turn_name};

use super::TurnError;
use super::answers::SummaryAnswer;
use super::background::Background;
use super::documents::CONTEXT;
use larder_engine::answer;
use larder_engine::executor::ProgressObserver;
use larder_engine::inputs::{InputDocument, RunInput};

/// The recipe that summarizes.
pub(super) const RECIPE: &str = "pipeline/phase7_summarizer";

impl Background {
    /// Summarizes a committed turn and writes the summary to its `metadata.json`, unless the summary there is another
    /// than `interim`: then that was done before, or a person has written it. `observer` is notified of the cost.
    ///
    /// # Errors
    /// The turn does not exist, or the model, its answer, or the store fails. The turn is unchanged then.
    pub async fn summarize(
        &self,
        number: u32,
        interim: Option<&str>,
        observer: &dyn ProgressObserver,
    ) -> Result<(), TurnError> {
        let failed = |reason: String| TurnError::Summary { turn: number, reason };
        let row = self
            .documents
            .catalog()
            .turn(number)?
            .ok_or_else(|| failed("there is no such turn".to_owned()))?;
        let text = self.documents.files().read_text(&row.context)?.unwrap_or_default();
        let at = VaultPath::new(&format!("{}/metadata.json", row.context.folder()));
        let at = at.ok_or_else(|| failed("its folder has no place for metadata".to_owned()))?;
        let before = self.documents.files().read_text(&at)?.unwrap_or_default();
        let read = larder_vault::read_json::<TurnMetadata>(&before).value;
        let mut metadata = read.ok_or_else(|| failed(format!("{at} cannot be read")))?;
        if interim.is_some() && metadata.summary.as_deref() != interim {
            return self.show_again(&at, &row.context, &before, interim);
        }
        let input = RunInput {
            documents: vec![InputDocument::whole(CONTEXT, row.context.as_str(), Arc::from(text))],
            mode: Some(metadata.mode),
            session_id: metadata.session_id.clone().or_else(|| Some(metadata.user_id.clone())),
            turn_id: Some(turn_name(number)),
            ..RunInput::default()
        };
        let outcome =
            self.engine.run(RECIPE, &input, observer).await.map_err(|error| failed(error.to_string()))?;
        let answer: SummaryAnswer =
            answer::read(&outcome.output).map_err(|unusable| failed(unusable.to_string()))?;
        // Later turns read only the summary.
        let doubt = if metadata.unverified { "Not verified: " } else { "" };
        metadata.summary = Some(format!("{doubt}{}", answer.summary));
        metadata.topic.get_or_insert(answer.topic());
        let after =
            larder_vault::rewrite_json(&before, &metadata).map_err(|problem| failed(problem.to_string()))?;
        self.documents.files().write(&at, after.as_bytes(), Some(ContentHash::new(before.as_bytes())))?;
        self.show_metadata(&at, &row.context, [&before, &after])
    }

    /// Updates the note that a crash between the two files has left behind.
    fn show_again(
        &self,
        at: &VaultPath,
        context: &VaultPath,
        now: &str,
        interim: Option<&str>,
    ) -> Result<(), TurnError> {
        let Some(metadata) = larder_vault::read_json::<TurnMetadata>(now).value else { return Ok(()) };
        for topic in [metadata.topic.clone(), None] {
            let summary = interim.map(str::to_owned);
            let before = TurnMetadata { summary, topic, ..metadata.clone() };
            if let Ok(before) = larder_vault::rewrite_json(now, &before) {
                self.show_metadata(at, context, [&before, now])?;
            }
        }
        Ok(())
    }

    /// Updates the note next to `metadata.json`, unless someone has changed the note.
    fn show_metadata(
        &self,
        at: &VaultPath,
        context: &VaultPath,
        [before, after]: [&str; 2],
    ) -> Result<(), TurnError> {
        let note = wrapper(at);
        let Some(text) = self.documents.files().read_text(&note)? else { return Ok(()) };
        let shown = |text: &str| {
            Wrapper::new(at, context, &larder_vault::read_json(text).value.unwrap_or(serde_json::Value::Null))
        };
        let Some(mut read) = larder_vault::Document::<Wrapper>::read(&text, &note).value else {
            return Ok(());
        };
        if read.value == shown(before) {
            read.value = shown(after);
            let seen = ContentHash::new(text.as_bytes());
            self.documents.files().write(&note, read.write(&note).as_bytes(), Some(seen))?;
        }
        Ok(())
    }
}
