//! A recorded run: the messages of an agent's conversation, cut into the turns of its model. Knows no policy.

use std::collections::BTreeSet;

use larder_text::json::encoded;
use larder_text::message::Role;

use super::needs::{Need, needs};
use crate::wire::{self, ApiDialect, Item, ReadError, Request};

/// Messages that are not a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A message is not JSON.
    #[error("message {0} of the run is not JSON")]
    Json(usize),
    /// They are not messages of the format.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
}

/// A recorded run of an agent.
#[derive(Debug)]
pub struct RecordedRun {
    dialect: ApiDialect,
    /// A request body up to its messages.
    head: String,
    /// Each message as compact JSON.
    messages: Vec<String>,
    turns: Vec<Turn>,
    results: Vec<RunResult>,
}

/// A turn of the model.
#[derive(Debug)]
pub(super) struct Turn {
    /// Messages in its request.
    pub messages: usize,
    /// What the model's message needs of the results before it.
    pub needs: Vec<Need>,
}

/// The result of a tool.
#[derive(Debug)]
pub(super) struct RunResult {
    /// The tool's name, if known.
    pub tool: String,
    pub text: String,
}

impl RecordedRun {
    /// A run of these messages, each the JSON text of an element of `messages` or `input`. Every tool that is called counts
    /// as offered, with a minimal definition: transcripts do not hold definitions.
    ///
    /// # Errors
    /// If they are not messages of the format.
    pub fn new<'m>(
        dialect: ApiDialect,
        messages: impl IntoIterator<Item = &'m str>,
    ) -> Result<Self, RunError> {
        let compact = |(at, raw): (usize, &str)| {
            let value: serde_json::Value = serde_json::from_str(raw).map_err(|_| RunError::Json(at + 1))?;
            Ok(value.to_string())
        };
        let messages = messages.into_iter().enumerate().map(compact).collect::<Result<Vec<_>, RunError>>()?;
        let list = match dialect {
            ApiDialect::Chat | ApiDialect::Messages | ApiDialect::Converse | ApiDialect::Invoke => "messages",
            ApiDialect::Responses => "input",
        };
        let body = format!(r#"{{"{list}":[{}]}}"#, messages.join(","));
        let request = wire::read(dialect, &body)?;
        let tools = dialect.tools_member(&format!("[{}]", tools(&request)));
        let head = format!(r#"{{"model":"recorded",{tools},"{list}":["#);
        let (turns, results) = turns(&request);
        Ok(Self { dialect, head, messages, turns, results })
    }

    /// What its messages are written in.
    pub const fn dialect(&self) -> ApiDialect {
        self.dialect
    }

    pub(super) fn turns(&self) -> &[Turn] {
        &self.turns
    }

    pub(super) fn result(&self, at: usize) -> &RunResult {
        &self.results[at]
    }

    pub(super) fn results(&self) -> &[RunResult] {
        &self.results
    }

    pub(super) fn messages_of(&self, turn: &Turn) -> &[String] {
        &self.messages[..turn.messages]
    }

    /// The body of the request before a turn.
    pub(super) fn body(&self, turn: &Turn) -> String {
        let mut body = self.head.clone();
        for (at, message) in self.messages_of(turn).iter().enumerate() {
            if at > 0 {
                body.push(',');
            }
            body.push_str(message);
        }
        body.push_str("]}");
        body
    }
}

/// Minimal definitions of the tools that a request calls.
fn tools(request: &Request<'_>) -> String {
    let calls = request.items.iter().flat_map(|item| &item.calls);
    let names: BTreeSet<&str> = calls.map(|call| &*call.name).collect();
    let parameters = r#"{"type":"object","properties":{}}"#;
    let define = |name: &str| {
        let name = encoded(name);
        wire::tool_json(request.dialect, &name, &name, parameters)
    };
    names.into_iter().map(define).collect::<Vec<_>>().join(",")
}

/// All text of an item.
pub(super) fn said(item: &Item<'_>) -> String {
    let mut said = item.text().to_owned();
    said.push('\n');
    for call in &item.calls {
        said.push_str(&call.arguments);
        said.push('\n');
    }
    said
}

/// The turns of the model, with what they need, and the results of tools.
fn turns(request: &Request<'_>) -> (Vec<Turn>, Vec<RunResult>) {
    let items = &request.items;
    let (mut turns, mut tools, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    let mut others = String::new();
    for (at, item) in items.iter().enumerate() {
        let asked = at > 0 && matches!(items[at - 1].role(), Role::User | Role::Tool);
        if item.role() == Role::Assistant && asked {
            let said = || items[at..].iter().take_while(|item| item.role() == Role::Assistant);
            let arguments = said().flat_map(|item| &item.calls).map(|call| &*call.arguments);
            let needs = needs(said().map(Item::text), arguments, &texts, &others);
            turns.extend(item.message.map(|messages| Turn { messages, needs }));
        }
        if let Some(result) = &item.result {
            tools.push(result.name.as_deref().unwrap_or_default().to_owned());
            texts.push(item.text().to_owned());
        } else {
            others.push_str(&self::said(item));
        }
    }
    let results = tools.into_iter().zip(texts).map(|(tool, text)| RunResult { tool, text });
    (turns, results.collect())
}
