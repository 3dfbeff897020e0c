//! Everything that the page of a turn shows, read at once. A document that cannot be parsed is left out; its link still
//! leads to it.

use std::sync::Arc;

use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_store::{DraftSummary, StoreError, TurnRow, UserDocuments};
use larder_text::sections::{SectionId, Sections};
use larder_vault::context::{self, Claim, ToolLog};
use larder_vault::links::Reference;
use larder_vault::{Document, Response, ToolResult, ToolResults, TurnMetrics, VaultPath};
use serde_json::Value;

use super::super::links::Links;
use crate::api::{document, files_of_turn};

/// A turn and what its page needs.
pub struct TurnDocuments {
    /// Its row, once it is committed.
    pub row: Option<TurnRow>,
    /// Its draft, until then.
    pub draft: Option<DraftSummary>,
    /// Whether this gateway is running it.
    pub is_running: bool,
    /// Whether another process is.
    pub is_elsewhere: bool,
    /// What was asked.
    pub query: String,
    /// The path of its `context.md`.
    pub at: VaultPath,
    /// Its `context.md`.
    pub context: String,
    /// What the numbers of its answer lead to.
    pub sources: Vec<(u32, Reference)>,
    /// Claims of all attempts.
    pub claims: Vec<Claim>,
    /// Results of tools.
    pub results: Vec<ToolResult>,
    /// What it took.
    pub metrics: Option<TurnMetrics>,
    /// What gathering looked at.
    pub considered: Vec<Value>,
    /// Its documents.
    pub files: Vec<VaultPath>,
    /// Documents that link to it.
    pub backlinks: Vec<VaultPath>,
    /// Where its links lead.
    pub links: Links,
}

impl TurnDocuments {
    /// Reads a turn. Blocks.
    ///
    /// # Errors
    /// The store fails.
    pub fn read(app: &Arc<App>, caller: &Caller, number: u32) -> Result<Option<Self>, StoreError> {
        let documents = app.documents_of(&caller.store)?;
        let row = documents.catalog().turn(number)?;
        let drafts = if row.is_none() { documents.drafts().list()? } else { Vec::new() };
        let draft = drafts.into_iter().find(|draft| draft.number == number);
        let (at, query) = match (&row, &draft) {
            (Some(row), _) => (row.context.clone(), row.query.clone()),
            (None, Some(draft)) => (documents.place().turn(number).context(), draft.query.clone()),
            (None, None) => return Ok(None),
        };
        let files = files_of_turn(&documents, number)?;
        let context = text(&documents, &at)?;
        let mut shown = Self {
            is_elsewhere: draft.is_some() && documents.leases().is_held(number),
            is_running: app.running_turns.get(documents.user(), number).is_some(),
            claims: claims(&context, &at),
            sources: Vec::new(),
            results: Vec::new(),
            metrics: None,
            considered: Vec::new(),
            backlinks: documents.catalog().links_to(&at)?,
            links: Links::of(&documents, &at, &context)?,
            row,
            draft,
            query,
            at,
            context,
            files,
        };
        shown.read_siblings(&documents)?;
        Ok(Some(shown))
    }

    /// Reads the documents next to `context.md`.
    fn read_siblings(&mut self, documents: &UserDocuments) -> Result<(), StoreError> {
        if let Some(at) = self.place("toolresults.md") {
            self.results = results(&text(documents, &at)?, &at);
        }
        if let Some(at) = self.place("response.md") {
            let read = Document::<Response>::read(&text(documents, &at)?, &at).value;
            self.sources = read.map(|document| document.value.sources).unwrap_or_default();
        }
        if let Some(at) = self.place("metrics.json") {
            self.metrics = serde_json::from_str(&text(documents, &at)?).ok();
        }
        if let Some(at) = self.place("receipts.json") {
            let receipts: Value = serde_json::from_str(&text(documents, &at)?).unwrap_or_default();
            self.considered =
                receipts.get("considered").and_then(Value::as_array).cloned().unwrap_or_default();
        }
        Ok(())
    }

    /// The turn's folder.
    pub fn folder(&self) -> &str {
        self.at.folder()
    }

    /// One of its documents, if it is there.
    pub fn place(&self, name: &str) -> Option<VaultPath> {
        let path = format!("{}/{name}", self.folder());
        self.files.iter().find(|file| file.as_str() == path).cloned()
    }
}

/// A document as text, with invalid UTF-8 replaced; empty if there is none.
pub fn text(documents: &UserDocuments, at: &VaultPath) -> Result<String, StoreError> {
    let bytes = document(documents, at)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The results of tools in `toolresults.md`.
pub fn results(text: &str, at: &VaultPath) -> Vec<ToolResult> {
    let read = Document::<ToolResults>::read(text, at).value;
    read.map(|document| document.value.results).unwrap_or_default()
}

/// The claims of every version of §4.
pub fn claims(context: &str, at: &VaultPath) -> Vec<Claim> {
    let sections = Sections::parse(context);
    let logs = sections.attempts(SectionId::ToolExecution);
    let logs = logs.filter_map(|section| context::read::<ToolLog>(context, section, at).value);
    logs.flat_map(|log| log.claims).collect()
}
