//! `larder count`: tokens of a file.

use std::path::Path;

use serde::Serialize;

use crate::args::Format;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::{files, output};

#[derive(Serialize)]
struct CountReport {
    tokens: Option<usize>,
    label: larder_text::tokens::Label,
    tokenizer: String,
    over_limit: bool,
}

pub fn run(
    context: &CommandContext,
    file: &Path,
    tokenizer: &str,
    limit: Option<usize>,
) -> Result<(), CliError> {
    let counter = context.counter(tokenizer)?;
    let text = files::read_text(file)?;
    let tokens = match limit {
        Some(limit) => counter.count_up_to(&text, limit),
        None => Some(counter.count(&text)),
    };
    let count = CountReport {
        tokens,
        label: counter.label(),
        tokenizer: counter.name().to_owned(),
        over_limit: tokens.is_none(),
    };
    match (context.global.format, tokens) {
        (Format::Json, _) => output::json(&count),
        (Format::Plain, Some(tokens)) => output::line(&tokens.to_string()),
        (Format::Plain, None) => output::line(&format!("more than {}", limit.unwrap_or_default())),
    }
}
