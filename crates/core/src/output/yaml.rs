//! Extracts one YAML document from an answer: tolerant of a ```` ```yaml ```` fence around all of it, strict inside.

use std::ops::Range;

use serde_json::Value;

use super::json::Strict;
use super::{OutputError, shorten};

const FORMAT: &str = "YAML";
/// Maximum nesting depth; anything deeper is an attack or a loop.
const MAX_DEPTH: usize = 64;
/// How many characters of the parser's message are passed on.
const PROBLEM_CHARS: usize = 300;

/// The value in `answer` and its position.
pub(super) fn parse(answer: &str) -> Result<(Value, Range<usize>), OutputError> {
    let range = unfenced(answer);
    let text = &answer[range.clone()];
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Err(OutputError::Empty { expected: "one YAML document" });
    }
    // Anchors and aliases enable expansion bombs, and no answer needs them.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_aliases: 0,
            max_anchors: 0,
            max_documents: 1,
            max_events: 4_000_000,
            max_nodes: 4_000_000,
            max_merge_keys: 0,
        },
        strict_booleans: true,
        with_snippet: false,
    };
    match serde_saphyr::from_str_with_options::<Strict>(text, options) {
        Ok(Strict(value)) => Ok((value, range)),
        Err(error) => Err(syntax(answer, &range, &error)),
    }
}

/// The content of the fence if the answer is one fenced block, otherwise all of it.
fn unfenced(answer: &str) -> Range<usize> {
    let whole = 0..answer.len();
    let start =
        answer.len() - answer.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').len();
    let end = start + answer[start..].trim_end().len();
    let block = &answer[start..end];
    let opening = block.split_inclusive('\n').next().unwrap_or_default();
    let info = opening.strip_prefix("```").map(str::trim);
    let fenced =
        info.is_some_and(|info| ["", "yaml", "yml"].iter().any(|name| info.eq_ignore_ascii_case(name)));
    match block
        .strip_suffix("```")
        .filter(|body| fenced && body.len() >= opening.len() && body.ends_with('\n'))
    {
        Some(body) => start + opening.len()..start + body.len(),
        None => whole,
    }
}

fn syntax(answer: &str, range: &Range<usize>, error: &serde_saphyr::Error) -> OutputError {
    let lines_before = answer[..range.start].matches('\n').count();
    let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let problem = shorten(error.to_string().lines().next().unwrap_or_default(), PROBLEM_CHARS);
    let line = number(line).saturating_add(lines_before);
    OutputError::Syntax { format: FORMAT, line, column: number(column), problem }
}
