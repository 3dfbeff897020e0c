//! `larder rehydrate`: prints the bytes behind a pointer and nothing else.

use larder_store::Selection;
use larder_text::pointer::Pointer;

use crate::args::SelectArgs;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

pub fn run(context: &CommandContext, id: &str, select: SelectArgs) -> Result<(), CliError> {
    let pointer: Pointer =
        id.trim().parse().map_err(|error| CliError::Usage(format!("{id:?} is {error}")))?;
    let store = context.store()?;
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
    output::bytes(&bytes)
}
