//! `rehydrate`: returns the original bytes behind a pointer, whole or in part.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use larder_engine::rehydrate::passages;
use larder_store::Selection;
use larder_text::pointer::Pointer;
use larder_text::tokens::Counter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::progress::CallProgress;
use super::super::sources::CallError;
use super::super::{McpCaller, brief};
use super::McpTool;

/// The default limit in tokens: an original that was kept out of a window must not flood it by surprise.
const LIMIT: usize = 20_000;

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rehydrate {
    /// The pointer as it appears in the text: lp1-…, with or without #L… or #B….
    id: String,
    /// Only lines a:b or a-b, from 1, both included, such as 10:40, or one line, such as 7.
    lines: Option<String>,
    /// Only bytes a:b or a-b, from 0, b excluded, such as 0:1024.
    bytes: Option<String>,
    /// Only lines that match this regular expression; of lines too long for the limit, the text around each match and its
    /// bytes.
    #[serde(alias = "grep")]
    pattern: Option<String>,
    /// Only the value at this JSONPath ($.orders[0].id) or JSON pointer (/orders/0/id).
    path: Option<String>,
    /// The most tokens to return; larger results are refused with their size. Default: 20000.
    limit: Option<usize>,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Original {
    /// The pointer.
    id: String,
    /// What kind of content it is.
    kind: String,
    /// One line that says what it is.
    display_text: String,
    /// Bytes of the whole content behind the pointer.
    total_bytes: u64,
    /// The requested bytes, if they are text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The requested bytes, if they are not UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl McpTool for Rehydrate {
    type Output = Original;
    const NAME: &'static str = "rehydrate";
    const TITLE: &'static str = "Restore an original";
    const DESCRIPTION: &'static str = "Returns the original bytes behind a pointer (lp1-…), \
        unchanged. Narrow it to what you need with one of lines, bytes, pattern (a regular expression) \
        or path (into JSON).";

    async fn call(self, caller: &McpCaller, _: &CallProgress) -> Result<(Original, String), CallError> {
        let pointer: Pointer =
            self.id.trim().parse().map_err(|error| CallError(format!("{:?} is {error}", brief(&self.id))))?;
        let store = &caller.engine.store;
        let stored = store.pointers().get(&pointer)?;
        let (limit, selection) = (self.limit.unwrap_or(LIMIT), self.selection()?);
        let mut bytes = match &selection {
            Some(selection) => store.pointers().rehydrate(&pointer, selection)?,
            None => store.pointers().resolve(&pointer)?,
        };
        let fits = |text: &str| Counter::cl100k().count_up_to(text, limit).is_some();
        if let Some(selection) = selection.filter(|_| self.pattern.is_some())
            && std::str::from_utf8(&bytes).is_ok_and(|text| !fits(text))
            && let Some(found) = passages(&store.pointers().resolve(&pointer)?, &selection)
        {
            bytes = found.into_bytes();
        }
        let (text, base64) = match String::from_utf8(bytes) {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(BASE64_STANDARD.encode(error.as_bytes()))),
        };
        let shown = text.as_ref().or(base64.as_ref()).cloned().unwrap_or_default();
        if !fits(&shown) {
            let lines = shown.lines().count();
            return Err(CallError(format!(
                "the requested text has {} bytes in {lines} lines, more than {limit} tokens; narrow it \
                 with lines, bytes, pattern or path, find the relevant lines with `search`, or raise `limit`",
                shown.len()
            )));
        }
        let shown = match &self.pattern {
            Some(pattern) if shown.is_empty() => format!("(no line matches {:?})", brief(pattern)),
            _ => shown,
        };
        let original = Original {
            id: pointer.to_string(),
            kind: stored.kind,
            display_text: stored.display_text,
            total_bytes: stored.bytes,
            text,
            base64,
        };
        Ok((original, shown))
    }
}

impl Rehydrate {
    fn selection(&self) -> Result<Option<Selection>, CallError> {
        let given = [
            ("lines", &self.lines),
            ("bytes", &self.bytes),
            ("pattern", &self.pattern),
            ("path", &self.path),
        ];
        let given: Vec<_> =
            given.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
        match given.as_slice() {
            [] => Ok(None),
            [("lines", range)] => Ok(Some(Selection::lines(range)?)),
            [("bytes", range)] => Ok(Some(Selection::bytes(range)?)),
            [("pattern", pattern)] => Ok(Some(Selection::grep(pattern)?)),
            [(_, path)] => Ok(Some(Selection::path(path)?)),
            many => {
                let names: Vec<&str> = many.iter().map(|(name, _)| *name).collect();
                Err(CallError(format!(
                    "give one of lines, bytes, pattern and path, not {}",
                    names.join(" and ")
                )))
            }
        }
    }
}
