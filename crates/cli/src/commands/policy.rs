//! `larder policy`: shows the prompt budget of each model, or the decision about a request, or tunes the settings.

mod budgets;
mod tune;

use std::path::Path;
use std::process::ExitCode;

use larder_core::policy::PolicySettings;
use larder_engine::config::Config;
use larder_gateway::model_budget::ModelBudget;
use larder_gateway::request::inspect::{self, InspectRequest};
use larder_proxy::record::{Endpoint, Outcome, RequestRecord};
use serde::Serialize;

use crate::args::{Format, PolicyArgs, PolicyCommand};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::{files, output};

/// How many of the largest parts are named.
const LARGEST: usize = 3;

/// A number of tokens and its source.
#[derive(Serialize)]
struct Figure {
    tokens: u64,
    source: String,
}

/// The budget of prompts to one model.
#[derive(Serialize)]
struct Budget {
    name: String,
    id: String,
    window: Figure,
    /// Where the prompt has a limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_limit: Option<Figure>,
    response_reserve: Figure,
    emergency_floor: Figure,
    prompt_budget: Figure,
    trace_threshold: Figure,
}

pub fn run(context: &CommandContext, args: &PolicyArgs) -> Result<ExitCode, CliError> {
    match (&args.command, &args.request) {
        (Some(PolicyCommand::Tune { conversation: Some(kind), apply, runs }), _) => {
            budgets::run(context, kind, *apply, *runs)
        }
        (Some(PolicyCommand::Tune { conversation: None, apply, runs }), _) => {
            tune::run(context, *apply, *runs)
        }
        (None, Some(request)) => decide(context, args, request),
        (None, None) => show(context, args.model.as_deref()),
    }
}

fn show(context: &CommandContext, only: Option<&str>) -> Result<ExitCode, CliError> {
    let (config, _) = context.learned()?;
    let engine = context.engine_to_read()?;
    let all = inspect::budgets(&config, &engine).map_err(CliError::Fixable)?;
    let input_limit = |name: &str| engine.models.table().model(name)?.input_limit;
    let wanted = |model: &ModelBudget| only.is_none_or(|only| only == model.name || only == model.id);
    let shown: Vec<Budget> = all
        .iter()
        .filter(|model| wanted(model))
        .map(|model| explained(&config, model, input_limit(&model.name)))
        .collect();
    if let Some(only) = only.filter(|_| shown.is_empty()) {
        let names: Vec<&str> = all.iter().map(|model| model.name.as_str()).collect();
        return Err(CliError::Fixable(format!(
            "there is no model {only}; the table has {}",
            names.join(", ")
        )));
    }
    if context.global.format == Format::Json {
        output::json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    for Budget {
        name,
        id,
        window,
        input_limit,
        response_reserve,
        emergency_floor,
        prompt_budget,
        trace_threshold,
    } in &shown
    {
        output::text(&if name == id { name.clone() } else { format!("{name} ({id})") })?;
        for (what, figure) in [
            ("window", Some(window)),
            ("input limit", input_limit.as_ref()),
            ("response reserve", Some(response_reserve)),
            ("emergency floor", Some(emergency_floor)),
            ("prompt budget", Some(prompt_budget)),
            ("trace threshold", Some(trace_threshold)),
        ] {
            let Some(figure) = figure else { continue };
            output::line(&format!("  {what:<17} {:>9}  {}", figure.tokens, figure.source))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Each figure with its setting, or the rule that applies without one.
fn explained(config: &Config, model: &ModelBudget, input_limit: Option<usize>) -> Budget {
    let settings: PolicySettings = config.context_policy();
    let all = config.settings();
    let from = |key: &str| {
        let origin = all.iter().find(|setting| setting.key == key).map(|setting| setting.origin.to_string());
        format!("{key} ({})", origin.unwrap_or_default())
    };
    let of = |set: bool, key: &str, rule: &str| if set { from(key) } else { rule.to_owned() };
    let (share, left) = match input_limit {
        Some(_) => ("5% of the input limit", "the input limit less the floor"),
        None => ("5% of the window", "the window less reserve and floor"),
    };
    let lowered = settings.prompt_budget_override.and_then(|tokens| u64::try_from(tokens).ok());
    let reserved = u64::try_from(settings.response_reserve).is_ok_and(|reserve| reserve == model.reserve);
    let figure = |tokens, source| Figure { tokens, source };
    Budget {
        name: model.name.clone(),
        id: model.id.clone(),
        window: figure(model.window, "the model table".to_owned()),
        input_limit: input_limit
            .and_then(|tokens| u64::try_from(tokens).ok())
            .map(|tokens| figure(tokens, "the model table".to_owned())),
        response_reserve: figure(
            model.reserve,
            of(reserved, "policy.response_reserve", "the maximum reply of the model"),
        ),
        emergency_floor: figure(
            model.floor,
            of(settings.emergency_floor.is_some(), "policy.emergency_floor", share),
        ),
        prompt_budget: figure(
            model.budget,
            of(lowered == Some(model.budget), "policy.prompt_budget_override", left),
        ),
        trace_threshold: figure(
            model.trace_threshold,
            of(
                settings.trace_threshold_tokens.is_some(),
                "policy.trace_threshold_tokens",
                "80% of the prompt budget",
            ),
        ),
    }
}

fn decide(context: &CommandContext, args: &PolicyArgs, request: &Path) -> Result<ExitCode, CliError> {
    let body = files::read_text(request)?;
    let engine = context.engine_to_read()?;
    let endpoint = Endpoint::Generate(args.wire.into());
    let asked = InspectRequest { endpoint, model: args.model.as_deref(), body: &body };
    let exchange = inspect::inspect_by(&context.config, &engine, engine.store.store(), asked)
        .map_err(|words| CliError::Fixable(format!("{}: {words}", request.display())))?;
    match context.global.format {
        Format::Json => output::json(&exchange)?,
        Format::Plain => output::text(&describe(&exchange))?,
    }
    // In a dry run, requests are sent even if they would have been refused.
    let head = &exchange.summary;
    match (head.outcome, &head.error) {
        (Outcome::Refused, _) => Ok(ExitCode::FAILURE),
        (Outcome::Ok, None) => Ok(ExitCode::SUCCESS),
        (_, error) => {
            let error = error.as_deref().unwrap_or("it failed");
            Err(CliError::Fixable(format!("{}: {error}", request.display())))
        }
    }
}

/// The decision, the largest parts, and every part of the window.
fn describe(exchange: &RequestRecord) -> String {
    let head = &exchange.summary;
    let mut lines = Vec::new();
    if let Some(decision) = &head.decision {
        let dry = if decision.dry_run { "; dry run: sent unchanged" } else { "" };
        lines.push(format!("{}: {}{dry}", decision.status.as_str(), decision.reason));
        let name = head.answered_by.as_ref().map_or(head.model.as_str(), |model| model.name.as_str());
        let tokens = &head.tokens;
        let budget = if head.unknown_window {
            "unknown, so nothing is shortened but floods".to_owned()
        } else {
            tokens.budget.to_string()
        };
        lines.push(format!(
            "model {name}: {} tokens, {} before; budget {budget}, reply {}, emergency floor {}, deficit {}",
            tokens.after, tokens.before, tokens.output, decision.emergency_floor, decision.deficit
        ));
        lines.push(format!("largest: {}", largest(exchange).join(", ")));
    }
    lines.push(format!("{:<24} {:<9} {:>9} {:>9}  {}", "part", "rendition", "tokens", "whole", "why"));
    for part in &exchange.window {
        let label = if part.label.is_empty() { &*part.slot } else { &*part.label };
        let name = match part.message {
            Some(message) => format!("{} {} {label}", message + 1, part.role),
            None => label.to_owned(),
        };
        let pointer = part.pointer.as_ref().map(|pointer| format!("  {pointer}")).unwrap_or_default();
        let form = part.rendition.as_str();
        let (tokens, whole) = (part.tokens, part.original_tokens);
        lines.push(format!("{name:<24} {form:<9} {tokens:>9} {whole:>9}  {}{pointer}", part.reason));
    }
    lines.join("\n")
}

/// The largest parts before condensing, largest first.
fn largest(exchange: &RequestRecord) -> Vec<String> {
    let named =
        exchange.summary.decision.as_ref().map(|decision| decision.largest.as_slice()).unwrap_or_default();
    if !named.is_empty() {
        return named.iter().map(|part| format!("{} {}", part.part, part.tokens)).collect();
    }
    let mut parts: Vec<_> = exchange.window.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.original_tokens));
    let name = |message: Option<u64>, slot: &str, role: &str| match message {
        Some(message) => format!("message {} ({role})", message + 1),
        None => slot.to_owned(),
    };
    let told = |part: &&larder_proxy::record::WindowPart| {
        format!("{} {}", name(part.message, &part.slot, &part.role), part.original_tokens)
    };
    parts.iter().take(LARGEST).map(told).collect()
}
