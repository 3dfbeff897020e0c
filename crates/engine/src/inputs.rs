//! The inputs of a run: documents, a query, values, a conversation. Knows no recipe and no pack.

use std::collections::BTreeMap;
use std::sync::Arc;

use larder_core::pack::Slice;
use larder_core::recipe::Mode;
use larder_text::message::Message;
use larder_text::picture::Picture;

use crate::history::HistoryOriginal;
use crate::routing::RouteInput;

/// A document passed to a run.
#[derive(Debug, Clone)]
pub struct InputDocument {
    /// The input it fills, as named in the recipe: a file name such as `context.md` or a kind such as `passages`.
    pub input: String,
    /// Its display name: its path.
    pub name: String,
    /// The text.
    pub text: Arc<str>,
    /// The larger document of which it is a part, if any.
    pub slice: Option<Slice>,
    /// How well it answers the query, relative to others of its kind; 1.0 is neutral.
    pub relevance: f64,
    /// The picture that it is, whose text is empty.
    pub picture: Option<Picture>,
}

impl InputDocument {
    /// Creates an input from a whole document.
    pub fn whole(input: impl Into<String>, name: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        Self {
            input: input.into(),
            name: name.into(),
            text: text.into(),
            slice: None,
            relevance: 1.0,
            picture: None,
        }
    }

    /// Creates an input from a picture.
    pub fn picture(input: impl Into<String>, name: impl Into<String>, picture: Picture) -> Self {
        Self { picture: Some(picture), ..Self::whole(input, name, "") }
    }
}

/// Limits of one run below the budget of its recipe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetLimits {
    /// Tokens of the prompt besides the query.
    pub context: Option<usize>,
    /// Maximum tokens of the reply.
    pub output: Option<usize>,
}

/// All inputs of one recipe run.
#[derive(Debug, Clone, Default)]
pub struct RunInput {
    /// Documents in order.
    pub documents: Vec<InputDocument>,
    /// The user's query, verbatim.
    pub query: Option<String>,
    /// Pictures next to the query.
    pub pictures: Vec<Picture>,
    /// Values for the recipe's variables.
    pub values: BTreeMap<String, serde_json::Value>,
    /// Chat or code.
    pub mode: Option<Mode>,
    /// The stage that selects a variant.
    pub variant: Option<String>,
    /// The conversation so far.
    pub history: Vec<Message>,
    /// What is kept of the conversation besides its messages; stored before the prompt is sent.
    pub history_originals: Vec<HistoryOriginal>,
    /// The conversation's id, for the record (C85).
    pub session_id: Option<String>,
    /// The turn's id, for the record: `turn_000042`.
    pub turn_id: Option<String>,
    /// The tags of the answer that the caller reads, if it takes every other visible tag for text of the reply.
    pub tags_read: Option<Vec<String>>,
    /// What the router is told in addition.
    pub routing: RouteInput,
    /// Limits below the recipe's budget.
    pub limits: BudgetLimits,
    /// The most tokens of the reply that the caller takes: text that reaches them ends there, and the run succeeds.
    pub max_output: Option<usize>,
    /// What else the caller asked for, and the run leaves out; for the record.
    pub ignored: Vec<String>,
    /// The id of the gateway request to which the run is charged, for the record.
    pub request_id: Option<String>,
}
