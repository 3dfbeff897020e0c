//! `larder explain`: what a run would send, and why.

use std::process::ExitCode;

use larder_core::pack::{Rendition, layout};
use larder_engine::executor::RunReceipt;

use crate::args::{ExplainArgs, Format};
use crate::context::Context;
use crate::error::CliError;
use crate::{commands, output};

pub fn run(context: &Context, args: ExplainArgs) -> Result<ExitCode, CliError> {
    let engine = context.engine()?;
    let input = commands::run::read_input(&args.input)?;
    let receipt = engine.explain(&args.input.recipe, &input)?;
    context.note_on_counting(&receipt.model, &receipt.tokenizer);
    let refused = receipt.receipt.refused.is_some();
    let code = if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    if context.global.format == Format::Json {
        output::json(&receipt)?;
        return Ok(code);
    }
    output::line(&format!("{} {} for {}", receipt.recipe, &receipt.version[..12], receipt.model))?;
    output::line(&layout(&receipt.receipt))?;
    if args.messages {
        for message in &receipt.messages {
            output::line(&format!("--- {:?}\n{}", message.role, message.joined_text()))?;
        }
    }
    let more = engine.explain_with(&args.input.recipe, &input, args.extra)?;
    output::line(&gains(&receipt, &more, args.extra))?;
    Ok(code)
}

/// What more tokens would let in, part by part.
fn gains(now: &RunReceipt, more: &RunReceipt, extra: usize) -> String {
    if now.receipt.parts.iter().all(|part| part.rendition == Rendition::Whole)
        && now.receipt.refused.is_none()
    {
        return "Everything stands whole.".to_owned();
    }
    let mut text = format!("With {extra} more tokens:\n");
    for after in &more.receipt.parts {
        let before = now.receipt.parts.iter().find(|part| part.id == after.id);
        let tokens = before.map_or(0, |part| part.tokens);
        if after.tokens > tokens {
            let was = before.map_or("absent", |part| part.rendition.as_str());
            text.push_str(&format!(
                "  {} {was} {tokens} → {} {}\n",
                after.source,
                after.rendition.as_str(),
                after.tokens
            ));
        }
    }
    text
}
