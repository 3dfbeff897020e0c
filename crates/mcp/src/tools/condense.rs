//! `condense`: a smaller text by rule, with its original stored behind a pointer first.

use std::time::Instant;

use larder_condense::{CondenseRequest, ContentType, Gap, GapUnit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::progress::CallProgress;
use super::super::sources::{CallError, SourceText};
use super::super::{McpCaller, brief};
use super::{Tool, word};

/// Every content type, as it is written.
const TYPES: [&str; 15] = [
    "context_doc",
    "research_doc",
    "page_doc",
    "tool_result",
    "prior_turn",
    "prose",
    "markdown",
    "chat",
    "json",
    "log",
    "diff",
    "code",
    "html",
    "table",
    "generic",
];

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Condense {
    /// The text itself; or give `source`.
    text: Option<String>,
    /// A pointer or the path of a file, so that the text need not enter your window at all; or give `text`.
    source: Option<String>,
    /// Tokens that the result may have at most.
    target_tokens: usize,
    /// What it is; detected unless given.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = TYPES))]
    content_type: Option<String>,
    /// The question in view: what answers it is kept first.
    query: Option<String>,
    /// Texts in it that must survive byte for byte.
    #[serde(default)]
    pins: Vec<String>,
    /// The model whose tokens count: a name of the model table, a model id, or a tokenizer. cl100k_base unless given.
    model: Option<String>,
}

/// What it gives.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Smaller {
    /// The condensed text: what is left out is marked, with the pointer that gives it back.
    text: String,
    /// Its tokens.
    tokens: usize,
    /// Tokens of the original.
    original_tokens: usize,
    /// Who counted.
    tokenizer: String,
    /// As what it was condensed.
    #[serde(rename = "type")]
    content_type: String,
    /// Gives the whole original back.
    pointer: String,
    /// What is not shown, in order.
    gaps: Vec<LeftOut>,
}

/// A stretch that is not shown.
#[derive(Debug, Serialize, JsonSchema)]
struct LeftOut {
    /// First and last line, from 1; if the gap is counted in lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<[usize; 2]>,
    /// First byte, and one past the last.
    bytes: [usize; 2],
    /// Gives exactly these bytes back.
    pointer: String,
}

impl LeftOut {
    fn of(gap: &Gap) -> Self {
        Self {
            lines: (gap.unit == GapUnit::Line).then_some(gap.range.into()),
            bytes: [gap.bytes.start, gap.bytes.end],
            pointer: gap.pointer.to_string(),
        }
    }
}

impl Tool for Condense {
    type Output = Smaller;
    const NAME: &'static str = "condense";
    const TITLE: &'static str = "Make a text smaller";
    const DESCRIPTION: &'static str = "Makes a text (log, diff, JSON, code, HTML, table, Markdown, \
        prose …) as small as target_tokens says, by rule and without a model, keeping what tells most \
        and what answers the query. Nothing is lost: the original is stored first, and every gap names \
        the pointer that gives it back.";

    async fn call(self, caller: &McpCaller, _: &CallProgress) -> Result<(Smaller, String), CallError> {
        let explicit = self.content_type.as_deref().map(content_type).transpose()?;
        let counter = caller.counter(self.model.as_deref())?;
        let SourceText { name, text } = caller.given(self.text, self.source.as_deref())?;
        let began = Instant::now();
        let condensed = larder_condense::condense(&CondenseRequest {
            text: &text,
            content_type: larder_condense::detect(explicit, &name, false, &text),
            target: self.target_tokens,
            query: self.query.as_deref(),
            pins: &self.pins,
            counter: &counter,
            key: caller.engine.store.key(),
        })?;
        caller.engine.report_condensed(&condensed, began.elapsed());
        // The way back exists before the text is shown.
        caller.engine.store.pointers().insert(text.as_bytes(), "document", &name)?;
        let smaller = Smaller {
            tokens: condensed.tokens,
            original_tokens: condensed.original_tokens,
            tokenizer: counter.name().to_owned(),
            content_type: word(&condensed.content_type),
            pointer: condensed.pointer.to_string(),
            gaps: condensed.gaps.iter().map(LeftOut::of).collect(),
            text: condensed.text.clone(),
        };
        Ok((smaller, condensed.text))
    }
}

fn content_type(name: &str) -> Result<ContentType, CallError> {
    serde_json::from_value(Value::from(name))
        .map_err(|_| CallError(format!("there is no type {:?}; there are {}", brief(name), TYPES.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_named_as_the_core_names_it() {
        let types: Vec<ContentType> = TYPES.iter().map(|name| content_type(name).unwrap()).collect();
        let names: Vec<String> = types.iter().map(word).collect();
        assert_eq!(names, TYPES);
        assert!(content_type("novel").unwrap_err().0.contains("prose"));
    }
}
