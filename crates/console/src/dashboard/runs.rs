//! Recipe runs: the list, and one run with its window, its answer and its cost.

use axum::Extension;
use axum::response::Html;
use larder_core::route::{FactorScore, RouteDecision};
use larder_engine::executor::RunReceipt;
use larder_gateway::auth::Caller;
use larder_store::{ModelUsage, RunFilter, RunId, RunRecord, RunStatus, StoreError};
use maud::{Markup, html};

use super::figures::{counted, moment, name, number, short, short_id, span};
use super::layout::{NavItem, PageError, page};
use super::map::{self, PartLink, WindowMap};
use super::ui::{self, Column, chip, empty, heading, panel, payload, untitled_panel};
use crate::api::{Path, Problem, RunDetail, blocking};

/// Runs of the list.
const LISTED: u64 = 100;

/// `/runs`
pub async fn list(Extension(caller): Extension<Caller>) -> Result<Html<String>, PageError> {
    let store = caller.store.clone();
    let filter = RunFilter { limit: Some(LISTED), ..RunFilter::default() };
    let runs = blocking(move || store.runs().list(&filter)).await?;
    let content = html! {
        (heading("Runs", format!("The last {LISTED} runs of recipes."), None))
        (untitled_panel(if runs.is_empty() { none() } else { table(&runs) }))
    };
    Ok(page(&caller, NavItem::Runs, "Runs", &content))
}

fn none() -> Markup {
    empty(
        "No runs",
        html! {
            code { "larder run" } ", or a request for the model " code { "recipe/category/name" } ", leaves one here."
        },
    )
}

fn table(runs: &[RunRecord]) -> Markup {
    let columns = [
        Column::text("Time (UTC)"),
        Column::text("Recipe"),
        Column::text("Model").wide(),
        Column::number("Tokens"),
        Column::number("Saved").wide(),
        Column::number("Cost").wide(),
        Column::number("Took"),
        Column::text("Status"),
    ];
    let row = |run: &RunRecord| {
        let facts = &run.facts;
        [
            html! { a href={ "/runs/" (run.run_id) } { (moment(run.timestamp)) } },
            name(&facts.recipe),
            name(&facts.model),
            html! { (short(facts.tokens.total())) },
            html! { (short(facts.compression_savings)) },
            html! { (cost(facts.cost_usd)) },
            html! { (span(facts.latency_ms.saturating_mul(1_000))) },
            status(facts.status),
        ]
    };
    ui::table("Runs", columns, runs.iter().map(row))
}

fn cost(dollars: Option<f64>) -> String {
    dollars.map_or_else(|| "–".to_owned(), |dollars| format!("${dollars:.4}"))
}

fn status(status: RunStatus) -> Markup {
    match status {
        RunStatus::Completed => chip("good", "completed"),
        RunStatus::Refused => chip("warn", "refused"),
        RunStatus::Failed => chip("bad", "failed"),
        RunStatus::Intervention => chip("warn", "intervention"),
    }
}

/// `/runs/{id}`
pub async fn one(
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
) -> Result<Html<String>, PageError> {
    let id: RunId = text.parse().map_err(|_| Problem::not_found("no such run"))?;
    let store = caller.store.clone();
    let read = move || {
        let run = RunDetail::read(&store, &id)?;
        let receipt = store.contents().get(run.record.receipt)?;
        let receipt: RunReceipt = serde_json::from_slice(&receipt)
            .map_err(|source| StoreError::Record { what: format!("the receipt of run {id}"), source })?;
        Ok((run, receipt))
    };
    let (run, receipt) = blocking(read).await?;
    Ok(page(
        &caller,
        NavItem::Runs,
        &format!("Run {}", short_id(run.record.run_id.as_str())),
        &whole(&run, &receipt),
    ))
}

fn whole(run: &RunDetail, receipt: &RunReceipt) -> Markup {
    let (record, facts) = (&run.record, &run.record.facts);
    let window = WindowMap::of_run(&receipt.receipt, facts.compression_savings);
    let about = html! { "run " (short_id(record.run_id.as_str())) " · " (moment(record.timestamp)) };
    html! {
        (heading(name(&receipt.recipe), about, Some(status(facts.status))))
        (untitled_panel(html! {
            (ui::facts(run_facts(record, receipt)))
            @if let Some(refused) = &receipt.receipt.refused { p.notice { (refused) } }
        }))
        @if let Some(route) = &receipt.route { (panel("router", "The router", decision(route))) }
        (panel("window", "The window", map::picture(&window)))
        (panel("parts", "Its parts", map::table(&window, PartLink::Pointer)))
        @if let Some(output) = &run.output { (panel("answer", "The answer", payload("The answer", output))) }
    }
}

/// What the router decided, and why (R4-9.9).
fn decision(route: &RouteDecision) -> Markup {
    let row = |factor: &FactorScore| {
        let reason = factor.reason.as_deref().unwrap_or("–");
        [html! { (factor.name) }, html! { (factor.score) }, html! { (reason) }]
    };
    let columns = [Column::text("Factor"), Column::number("Score"), Column::text("Because of")];
    html! {
        p {
            (name(&route.tier)) " by router " (name(&route.preset)) ", score " (route.score)
            @if let Some(floor) = &route.floor { "; at least " (name(floor)) " was asked for" }
            @for tier in &route.excluded { "; not " (name(&tier.tier)) ": " (tier.reason) }
        }
        (ui::table("Factors", columns, route.factors.iter().map(row)))
    }
}

/// What each model used, if a run asked several.
fn by_model(models: &[ModelUsage]) -> Markup {
    html! {
        @for usage in models {
            div {
                (name(&usage.model)) ": " (counted(usage.calls.into(), "call")) ", "
                (number(usage.input_tokens)) " tokens in, " (number(usage.output_tokens)) " out, " (cost(usage.cost_usd))
            }
        }
    }
}

fn run_facts(record: &RunRecord, receipt: &RunReceipt) -> Vec<(&'static str, Markup)> {
    let facts = &record.facts;
    let tokens = facts.tokens;
    let mut found = vec![
        ("Model", html! { (name(&facts.model)) span.muted { " as " (facts.model_layer) } }),
        (
            "Tokens",
            html! {
                (number(tokens.prompt)) " prompt, " (number(tokens.input)) " input, " (number(tokens.output)) " output"
            },
        ),
        ("Saved", html! { (number(facts.compression_savings)) " tokens" }),
        ("Took", html! { (span(facts.latency_ms.saturating_mul(1_000))) ", " (facts.retries) " retries" }),
        ("Cost", html! { (cost(facts.cost_usd)) }),
    ];
    if facts.models.len() > 1 {
        found.push(("By model", by_model(&facts.models)));
    }
    if !receipt.failed.is_empty() {
        let failed = receipt.failed.iter().map(|call| call.error.as_str());
        found.push(("Failed calls", html! { @for error in failed { div { (error) } } }));
    }
    if !receipt.ignored.is_empty() {
        found.push(("Fields left out", name(&receipt.ignored.join(", "))));
    }
    found.extend(facts.error.as_ref().map(|error| ("Error", name(error))));
    found.push(("Receipt", html! { a href={ "/api/v1/runs/" (record.run_id) "/receipt" } { "as JSON" } }));
    found
}
