//! `larder condense`: a smaller text, with the original stored behind its pointer first.

use larder_core::content::{self, CondenseRequest, ContentType};

use crate::args::{CondenseArgs, Format};
use crate::context::Context;
use crate::error::CliError;
use crate::{files, output};

pub fn run(context: &Context, args: CondenseArgs) -> Result<(), CliError> {
    let counter = context.counter(args.tokenizer.as_deref())?;
    let text = files::read_text(&args.file)?;
    let explicit = args.content_type.as_deref().map(parse_type).transpose()?;
    let name = args.file.to_string_lossy();
    let store = context.store()?;
    let condensed = content::condense(&CondenseRequest {
        text: &text,
        content_type: content::detect(explicit, &name, false, &text),
        target: args.to,
        query: args.query.as_deref(),
        pins: &args.pins,
        counter: &counter,
        key: store.key(),
    })?;
    // The way back exists before the text is shown.
    store.put(text.as_bytes(), "document", &name)?;
    match context.global.format {
        Format::Json => output::json(&condensed),
        Format::Plain => output::bytes(condensed.text.as_bytes()),
    }
}

fn parse_type(name: &str) -> Result<ContentType, CliError> {
    serde_json::from_value(serde_json::Value::from(name.replace('-', "_")))
        .map_err(|error| CliError::Usage(format!("--type {name}: {error}")))
}
