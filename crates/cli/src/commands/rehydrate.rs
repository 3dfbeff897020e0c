//! `larder rehydrate`: prints the bytes behind a pointer and nothing else, or in JSON the pointer and the text.

use larder_store::Selection;
use larder_text::pointer::Pointer;
use serde_json::json;

use crate::args::{Format, SelectArgs};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

pub fn run(context: &CommandContext, id: &str, select: SelectArgs) -> Result<(), CliError> {
    let pointer: Pointer =
        id.trim().parse().map_err(|error| CliError::Usage(format!("{id:?} is {error}")))?;
    let store = context.user_to_read()?;
    let selection = match (&select.lines, &select.bytes, &select.grep, &select.path) {
        (Some(range), ..) => Some(Selection::lines(range)?),
        (_, Some(range), ..) => Some(Selection::bytes(range)?),
        (_, _, Some(pattern), _) => Some(Selection::grep(pattern)?),
        (.., Some(path)) => Some(Selection::path(path)?),
        _ => None,
    };
    let bytes = match selection {
        Some(selection) => store.pointers().rehydrate(&pointer, &selection)?,
        None => store.pointers().resolve(&pointer)?,
    };
    if let (Some(pattern), true) = (&select.grep, bytes.is_empty()) {
        output::say(&format!("no line matches {pattern:?}"));
    }
    match (context.global.format, String::from_utf8(bytes)) {
        (Format::Json, Ok(text)) => output::json(&json!({"pointer": pointer, "text": text})),
        (Format::Json, Err(_)) => Err(CliError::Fixable(format!(
            "{pointer} leads to bytes that are not UTF-8, which JSON cannot hold; leave out --format json"
        ))),
        (Format::Plain, Ok(text)) => output::bytes(text.as_bytes()),
        (Format::Plain, Err(bytes)) => output::bytes(bytes.as_bytes()),
    }
}
