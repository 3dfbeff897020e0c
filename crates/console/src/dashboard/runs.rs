//! Recipe runs: the list, and one with its window, its answer and what it took.

use axum::Extension;
use axum::response::Html;
use larder_engine::executor::RunReceipt;
use larder_gateway::auth::Caller;
use larder_store::{RunFilter, RunId, RunRecord, RunStatus, StoreError};
use maud::{Markup, html};

use super::figures::{chip, moment, name, number, short, short_id, span};
use super::layout::{NavItem, PageError, page};
use super::map::{self, PartLink, WindowMap};
use super::pointers::verbatim;
use crate::api::{Path, Problem, RunDetail, blocking};

/// Runs of the list.
const LISTED: u64 = 100;

/// `/runs`
pub async fn list(Extension(caller): Extension<Caller>) -> Result<Html<String>, PageError> {
    let store = caller.store.clone();
    let filter = RunFilter { limit: Some(LISTED), ..RunFilter::default() };
    let runs = blocking(move || store.runs().list(&filter)).await?;
    let content = html! {
        div.head { div { h1 { "Runs" } p { "The last " (LISTED) " runs of recipes." } } }
        section.panel {
            @if runs.is_empty() {
                div.empty {
                    strong { "No runs" }
                    code { "larder run" } ", or a request for the model " code { "recipe/category/name" }
                    ", leaves one here."
                }
            } @else { (table(&runs)) }
        }
    };
    Ok(page(&caller, NavItem::Runs, "Runs", &content))
}

fn table(runs: &[RunRecord]) -> Markup {
    html! {
        div.scroll role="group" aria-label="Runs" tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Time (UTC)" }
                        th scope="col" { "Recipe" }
                        th.optional scope="col" { "Model" }
                        th.figure scope="col" { "Tokens" }
                        th.figure.optional scope="col" { "Saved" }
                        th.figure.optional scope="col" { "Cost" }
                        th.figure scope="col" { "Took" }
                        th scope="col" { "Status" }
                    }
                }
                tbody {
                    @for run in runs {
                        @let facts = &run.facts;
                        tr {
                            td { a href={ "/runs/" (run.run_id) } { (moment(run.timestamp)) } }
                            td { (name(&facts.recipe)) }
                            td.optional { (name(&facts.model)) }
                            td.figure { (short(facts.tokens.total())) }
                            td.figure.optional { (short(facts.compression_savings)) }
                            td.figure.optional { (cost(facts.cost_usd)) }
                            td.figure { (span(facts.latency_ms.saturating_mul(1_000))) }
                            td { (status(facts.status)) }
                        }
                    }
                }
            }
        }
    }
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
    html! {
        div.head {
            div {
                h1 { (name(&receipt.recipe)) }
                p { "run " (short_id(record.run_id.as_str())) " · " (moment(record.timestamp)) }
            }
            div.tools { (status(facts.status)) }
        }
        section.panel {
            dl.facts {
                div { dt { "Model" } dd { (name(&facts.model)) span.muted { " as " (facts.model_layer) } } }
                div { dt { "Tokens" } dd {
                    (number(facts.tokens.prompt)) " prompt, " (number(facts.tokens.input)) " input, "
                    (number(facts.tokens.output)) " output"
                } }
                div { dt { "Saved" } dd { (number(facts.compression_savings)) " tokens" } }
                div { dt { "Took" } dd { (span(facts.latency_ms.saturating_mul(1_000))) ", " (facts.retries) " retries" } }
                div { dt { "Cost" } dd { (cost(facts.cost_usd)) } }
                @if let Some(error) = &facts.error { div { dt { "Error" } dd { (name(error)) } } }
                div { dt { "Receipt" } dd { a href={ "/api/v1/runs/" (record.run_id) "/receipt" } { "as JSON" } } }
            }
            @if let Some(refused) = &receipt.receipt.refused { p.notice { (refused) } }
        }
        section.panel aria-labelledby="window" {
            h2 #window { "The window" }
            (map::picture(&window))
        }
        section.panel aria-labelledby="parts" {
            h2 #parts { "Its parts" }
            (map::table(&window, PartLink::Pointer))
        }
        @if let Some(output) = &run.output {
            section.panel aria-labelledby="answer" {
                h2 #answer { "The answer" }
                pre.payload tabindex="0" role="group" aria-label="The answer" dir="auto" { (verbatim(output)) }
            }
        }
    }
}
