//! `condense`: condenses a text by rules; stores its original behind a pointer first.

use std::time::Instant;

use larder_condense::{CondenseRequest, ContentType, Gap, GapUnit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::progress::CallProgress;
use super::super::sources::{CallError, SourceText};
use super::super::{McpCaller, brief};
use super::McpTool;

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Condense {
    /// The text itself; or give `source`.
    text: Option<String>,
    /// A pointer or the path of a file, so that the text need not enter your window at all; or give `text`.
    source: Option<String>,
    /// The most tokens that the result may have.
    target_tokens: usize,
    /// The content type; detected unless given.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ContentType::ALL))]
    content_type: Option<String>,
    /// The question at hand: text that answers it is kept first.
    query: Option<String>,
    /// Texts in it that must survive byte for byte.
    #[serde(default)]
    pins: Vec<String>,
    /// Count as this model does: a name in the model table, a model id, or a tokenizer. Default: cl100k_base.
    model: Option<String>,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Smaller {
    /// The condensed text. Markers name the pointers that restore what is left out.
    text: String,
    /// Its tokens.
    tokens: usize,
    /// Tokens of the original.
    original_tokens: usize,
    /// The tokenizer that counted.
    tokenizer: String,
    /// The content type it was condensed as.
    #[serde(rename = "type")]
    content_type: String,
    /// Restores the whole original.
    pointer: String,
    /// The parts that are left out, in order.
    gaps: Vec<LeftOut>,
}

/// A part that is left out.
#[derive(Debug, Serialize, JsonSchema)]
struct LeftOut {
    /// First and last line, from 1; if the gap is counted in lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<[usize; 2]>,
    /// First byte, and one past the last.
    bytes: [usize; 2],
    /// Restores exactly these bytes.
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

impl McpTool for Condense {
    type Output = Smaller;
    const NAME: &'static str = "condense";
    const TITLE: &'static str = "Condense a text";
    const DESCRIPTION: &'static str = "Condenses a text (log, diff, JSON, code, HTML, table, Markdown, \
        prose …) to at most target_tokens, by rules and without a model, keeping the most salient parts \
        and what answers the query. Nothing is lost: the original is stored first, and every gap names \
        the pointer that restores it.";

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
        // The pointers in the text must resolve before anybody reads it.
        caller.engine.store.pointers().insert(text.as_bytes(), "document", &name)?;
        let smaller = Smaller {
            tokens: condensed.tokens,
            original_tokens: condensed.original_tokens,
            tokenizer: counter.name().to_owned(),
            content_type: condensed.content_type.as_str().to_owned(),
            pointer: condensed.pointer.to_string(),
            gaps: condensed.gaps.iter().map(LeftOut::of).collect(),
            text: condensed.text.clone(),
        };
        Ok((smaller, condensed.text))
    }
}

fn content_type(name: &str) -> Result<ContentType, CallError> {
    serde_json::from_value(Value::from(name)).map_err(|_| {
        CallError(format!(
            "unknown type {:?}; use one of {}",
            brief(name),
            ContentType::ALL.map(ContentType::as_str).join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_as_in_json() {
        for known in ContentType::ALL {
            assert_eq!(content_type(known.as_str()).unwrap(), known);
        }
        assert!(content_type("novel").unwrap_err().0.contains("prose"));
    }
}
