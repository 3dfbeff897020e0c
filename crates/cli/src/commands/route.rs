//! `larder route`: which tier of models the router asks for a message, and why.

use larder_core::recipe::suggest;
use larder_core::route::{Fields, RouteDecision, RouteDocument, RouteRequest};
use larder_engine::routing;
use larder_text::tokens::Counter;
use serde_json::Value;

use crate::args::{Format, RouteArgs};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output;

pub fn run(context: &CommandContext, args: RouteArgs) -> Result<(), CliError> {
    let project = context.project()?;
    let Some(preset) = project.routers().get(&args.preset) else {
        let help = suggest(&args.preset, project.routers().keys().map(String::as_str));
        return Err(CliError::Fixable(format!("there is no usable router {:?}; {help}", args.preset)));
    };
    let output_tokens = args.max_output;
    let floor = args.floor.clone();
    let explain = args.explain;
    let request = request(args)?;
    let models = context.config.models();
    let decision = routing::decide(preset, models, None, (&request, output_tokens), floor.as_deref());
    if context.global.format == Format::Json {
        return output::json(&decision);
    }
    output::line(&headline(&decision))?;
    if explain {
        output::line(&factors(&decision))?;
    }
    Ok(())
}

fn request(args: RouteArgs) -> Result<RouteRequest, CliError> {
    let usage = |what: &str, text: &str| CliError::Usage(format!("{what}, not {text:?}"));
    let mut fields = Fields::new();
    for text in &args.fields {
        let (name, value) = text.split_once('=').ok_or_else(|| usage("--field is NAME=VALUE", text))?;
        fields.insert(name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| Value::from(value)));
    }
    let mut documents = Vec::new();
    for text in &args.documents {
        let parsed = text.split_once(':').and_then(|(kind, tokens)| Some((kind, tokens.parse().ok()?)));
        let (kind, tokens) =
            parsed.ok_or_else(|| usage("--document is KIND:TOKENS, such as code:1200", text))?;
        documents.push(RouteDocument { kind: kind.to_owned(), tokens });
    }
    let counter = Counter::cl100k();
    let texts = args.history.iter().chain([&args.message]).map(|text| counter.sampled(text));
    let read = texts.chain(documents.iter().map(|document| document.tokens)).fold(0, usize::saturating_add);
    Ok(RouteRequest {
        message: args.message,
        history: args.history,
        tasks: args.tasks,
        stage: args.stage,
        output: args.output,
        fields,
        documents,
        images: args.images,
        tools: args.tools,
        tokens: read.saturating_add(args.max_output),
    })
}

/// The decision in a line.
pub fn headline(decision: &RouteDecision) -> String {
    let model = if decision.model.is_empty() { "no model" } else { &decision.model };
    let layer = decision.layer.as_str();
    format!("{} ({layer}, {model}): score {} by router {}", decision.tier, decision.score, decision.preset)
}

/// Every factor, those that hold first, and what else bound the decision.
pub fn factors(decision: &RouteDecision) -> String {
    let mut lines = Vec::new();
    let (held, other): (Vec<_>, Vec<_>) = decision.factors.iter().partition(|factor| factor.reason.is_some());
    for factor in held {
        let reason = factor.reason.as_deref().unwrap_or_default();
        lines.push(format!("  {:+5} {}: {reason}", factor.score, factor.name));
    }
    lines.extend(other.iter().map(|factor| format!("  {:>5} {}", 0, factor.name)));
    lines.extend(decision.floor.iter().map(|tier| format!("  at least {tier} was asked for")));
    lines.extend(decision.excluded.iter().map(|tier| format!("  not {}: {}", tier.tier, tier.reason)));
    lines.join("\n")
}
