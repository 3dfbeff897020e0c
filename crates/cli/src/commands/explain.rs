//! `larder explain`: what a run would send, and why.

use std::process::ExitCode;
use std::sync::Arc;

use larder_core::pack::{PartReason, PartReceipt, Rendition, layout};
use larder_engine::executor::{PromptSection, RunReceipt};
use larder_text::message::Message;
use serde::Serialize;

use crate::args::{ExplainArgs, Format};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::recipe_tools::{self, ToolAccess};
use crate::turns::confirm::Refusing;
use crate::{commands, output};

/// What `--format json` prints.
#[derive(Serialize)]
struct Explained<'a> {
    #[serde(flatten)]
    receipt: &'a RunReceipt,
    sections: Vec<PromptSection>,
}

pub async fn run(context: &CommandContext, args: ExplainArgs) -> Result<ExitCode, CliError> {
    let input = commands::run::read_input(context, &args.input)?;
    let access = ToolAccess { confirm: Arc::new(Refusing), workspace: None };
    let store = context.store_to_explain()?;
    let engine = recipe_tools::engine(context, store, &args.input.recipe, &input, access).await?;
    commands::run::note_on_project(context, &engine);
    let receipt = engine.explain(&args.input.recipe, &input)?;
    context.note_on_counting(&receipt.model, &receipt.tokenizer);
    let refused = receipt.receipt.refused.is_some();
    let code = if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    if context.global.format == Format::Json {
        output::json(&Explained { sections: receipt.sections(), receipt: &receipt })?;
        return Ok(code);
    }
    output::line(&format!("{} {} for {}", receipt.recipe, &receipt.version[..12], receipt.model))?;
    if let Some(route) = &receipt.route {
        output::line(&format!("{}\n{}", super::route::headline(route), super::route::factors(route)))?;
    }
    output::line(&layout(&receipt.receipt))?;
    if let Some(pointer) = &receipt.history {
        output::line(&format!("the conversation as given: {pointer}"))?;
    }
    for tool in &receipt.tools {
        output::line(&format!("tool {:<46} definition {:>5}  in the framing", tool.name, tool.tokens))?;
    }
    if args.messages {
        for message in &receipt.messages {
            output::line(&shown(message))?;
        }
    }
    let more = engine.explain_with(&args.input.recipe, &input, args.extra)?;
    output::line(&gains(&receipt, &more, args.extra))?;
    Ok(code)
}

/// A message with its calls, and the id of the call that it answers.
fn shown(message: &Message) -> String {
    let of = message.tool_call_id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
    let text = message.joined_text();
    let calls =
        message.tool_calls.iter().map(|call| format!("call {}: {} {}", call.id, call.name, call.arguments));
    let lines: Vec<String> = Some(text).filter(|text| !text.is_empty()).into_iter().chain(calls).collect();
    format!("--- {:?}{of}\n{}", message.role, lines.join("\n"))
}

/// The parts that would grow with more tokens, for the call and for every slot.
fn gains(now: &RunReceipt, more: &RunReceipt, extra: usize) -> String {
    if now.receipt.parts.iter().all(|part| part.rendition == Rendition::Whole)
        && now.receipt.refused.is_none()
    {
        return "Every part is sent whole.".to_owned();
    }
    let mut lines = String::new();
    for after in &more.receipt.parts {
        // The text of older messages is a part of its own, named after those that it covers.
        let is_same = |part: &&PartReceipt| part.id == after.id;
        let is_gone = |part: &&PartReceipt| !more.receipt.parts.iter().any(|other| other.id == part.id);
        let parts = || now.receipt.parts.iter().filter(|part| part.slot == after.slot);
        let before = parts().find(is_same).or_else(|| parts().find(is_gone));
        let tokens = before.map_or(0, |part| part.tokens);
        if after.tokens > tokens {
            let was = before.map_or("absent", |part| match part.reason {
                PartReason::Summarized => "summarized",
                _ => part.rendition.as_str(),
            });
            let source = before.map_or(&after.source, |part| &part.source);
            let now_named =
                if *source == after.source { String::new() } else { format!("{} ", after.source) };
            let (rendition, more) = (after.rendition.as_str(), after.tokens);
            lines.push_str(&format!("  {source} {was} {tokens} → {now_named}{rendition} {more}\n"));
        }
    }
    if lines.is_empty() {
        return format!("With {extra} more tokens nothing changes.");
    }
    format!("With {extra} more tokens:\n{lines}")
}
