//! `count`: counts the tokens of a text as a model charges for them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::McpCaller;
use super::super::progress::CallProgress;
use super::super::sources::CallError;
use super::{McpTool, word};

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Count {
    /// The text itself; or give `source`.
    text: Option<String>,
    /// A pointer or the path of a file; or give `text`.
    source: Option<String>,
    /// Count as this model does: a name in the model table, a model id, or a tokenizer. Default: cl100k_base.
    model: Option<String>,
    /// Stop counting once this is exceeded.
    limit: Option<usize>,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Counted {
    /// Tokens charged; left out when they exceed the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<usize>,
    /// Whether they exceed the limit.
    over_limit: bool,
    /// The tokenizer that counted.
    tokenizer: String,
    /// The accuracy of the count: exact, bounded (never less than charged) or estimated (with its margin).
    label: String,
    /// Bytes of the text.
    bytes: usize,
}

impl McpTool for Count {
    type Output = Counted;
    const NAME: &'static str = "count";
    const TITLE: &'static str = "Count tokens";
    const DESCRIPTION: &'static str = "Counts the tokens of a text, a file or the original behind \
        a pointer, for a model. Use it to see whether something fits before you read it.";

    async fn call(self, caller: &McpCaller, _: &CallProgress) -> Result<(Counted, String), CallError> {
        let counter = caller.counter(self.model.as_deref())?;
        let text = caller.given(self.text, self.source.as_deref())?.text;
        let tokens = match self.limit {
            Some(limit) => counter.count_up_to(&text, limit),
            None => Some(counter.count(&text)),
        };
        let counted = Counted {
            tokens,
            over_limit: tokens.is_none(),
            tokenizer: counter.name().to_owned(),
            label: word(&counter.label()),
            bytes: text.len(),
        };
        let number = match (tokens, self.limit) {
            (Some(tokens), _) => tokens.to_string(),
            (None, limit) => format!("more than {}", limit.unwrap_or_default()),
        };
        let shown =
            format!("{number} tokens ({}, {}), {} bytes", counted.tokenizer, counted.label, counted.bytes);
        Ok((counted, shown))
    }
}
