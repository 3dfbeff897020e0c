//! Tables of a turn: what it took, phase by phase; its calls of tools; its claims; what gathering looked at.

use std::collections::BTreeMap;

use larder_models::price::Usd;
use larder_vault::context::{CallStatus, Claim, ClaimOrigin};
use larder_vault::{RunMetrics, ToolResult, VaultPath};
use maud::{Markup, html};
use serde_json::Value;

use super::super::documents::when;
use super::super::figures::{chip, money, name, number, segment, short, span};
use super::super::links::{address, block_id, vault_address};
use super::read::TurnDocuments;

/// What the phases are called.
const PHASES: [&str; 8] = [
    "query analyzer",
    "reflection",
    "context gatherer",
    "planner",
    "coordinator",
    "synthesizer",
    "validator",
    "save",
];
/// Picodollars of a millionth of a dollar.
const PICOS_PER_MICRO: u64 = 1_000_000;

/// What a phase is called.
pub fn phase_name(phase: u8) -> &'static str {
    PHASES.get(usize::from(phase)).copied().unwrap_or("unknown")
}

/// What the turn took, phase by phase.
pub fn took(shown: &TurnDocuments) -> Markup {
    let Some(metrics) = &shown.metrics else { return html! {} };
    let mut phases: BTreeMap<u8, Vec<&RunMetrics>> = BTreeMap::new();
    for run in &metrics.runs {
        phases.entry(run.phase).or_default().push(run);
    }
    html! {
        section.panel aria-labelledby="took" {
            h2 #took { "What it took" }
            dl.facts {
                div { dt { "Time" } dd { (span(metrics.total_duration_ms.saturating_mul(1_000))) } }
                div { dt { "Tokens" } dd { (number(metrics.total_tokens)) } }
                div { dt { "Cost" } dd { (micros(metrics.total_cost_microdollars)) } }
                div { dt { "Calls of tools" } dd { (number(metrics.tool_calls)) } }
            }
            div.scroll role="group" aria-label="Phases" tabindex="0" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Phase" }
                            th scope="col" { "Recipe" }
                            th.optional scope="col" { "Model" }
                            th.figure scope="col" { "Tokens in" }
                            th.figure scope="col" { "Tokens out" }
                            th.figure.optional scope="col" { "Cost" }
                            th.figure scope="col" { "Took" }
                        }
                    }
                    tbody { @for (phase, runs) in &phases { @for run in runs { (run_row(*phase, run)) } } }
                }
            }
        }
    }
}

fn run_row(phase: u8, run: &RunMetrics) -> Markup {
    html! {
        tr {
            td { (phase) " " (phase_name(phase)) }
            td { a href={ "/runs/" (segment(&run.run)) } { (name(&run.recipe)) } }
            td.optional { (name(&run.model)) }
            td.figure { (number(run.tokens_in)) }
            td.figure { (number(run.tokens_out)) }
            td.figure.optional { (micros(run.cost_microdollars)) }
            td.figure { (span(run.duration_ms.saturating_mul(1_000))) }
        }
    }
}

fn micros(microdollars: u64) -> String {
    money(Usd::from_picos(microdollars.saturating_mul(PICOS_PER_MICRO)))
}

/// Every call of a tool, with its whole result behind a link.
pub fn tools(results: &[ToolResult], at: &Option<VaultPath>) -> Markup {
    html! {
        @if !results.is_empty() {
            section.panel aria-labelledby="tools" {
                h2 #tools { "Tools" }
                div.scroll role="group" aria-label="Calls of tools" tabindex="0" {
                    table {
                        thead {
                            tr {
                                th.figure scope="col" { "#" }
                                th scope="col" { "Call" }
                                th scope="col" { "Status" }
                                th.figure.optional scope="col" { "Round" }
                                th.figure scope="col" { "Bytes" }
                                th scope="col" { "Whole result" }
                                th.optional scope="col" { "Ended (UTC)" }
                            }
                        }
                        tbody { @for result in results { (result_row(result, at)) } }
                    }
                }
            }
        }
    }
}

fn result_row(result: &ToolResult, at: &Option<VaultPath>) -> Markup {
    html! {
        tr {
            td.figure { (result.number) }
            td { span.mono { (name(&result.call)) } }
            td { (call_status(result.status)) }
            td.figure.optional { (result.iteration) }
            td.figure { (short(result.bytes)) }
            td {
                @if let Some(at) = at {
                    a href={ (vault_address(at)) "#" (block_id(result.block().as_str())) } { "as a document" }
                }
                @if let Some(original) = &result.original {
                    " · " a href={ "/pointers/" (segment(&original.to_string())) } { "its bytes" }
                }
            }
            td.optional { (when(result.at)) }
        }
    }
}

/// How a call ended, in a word.
pub fn call_status(status: CallStatus) -> Markup {
    let kind = match status {
        CallStatus::Success => "good",
        CallStatus::Error | CallStatus::Timeout => "bad",
        CallStatus::Denied => "warn",
    };
    chip(kind, &status.to_string().to_lowercase())
}

/// What was found to be so, each with the way back to where it was said.
pub fn claims(claims: &[Claim], turn: u32) -> Markup {
    html! {
        @if !claims.is_empty() {
            section.panel aria-labelledby="claims" {
                h2 #claims { "Claims" }
                div.scroll role="group" aria-label="Claims" tabindex="0" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Claim" }
                                th.figure scope="col" { "Confidence" }
                                th scope="col" { "Source" }
                                th scope="col" { "Holds for" }
                                th scope="col" { "Where it comes from" }
                            }
                        }
                        tbody {
                            @for claim in claims {
                                tr {
                                    td { (name(&claim.claim)) }
                                    td.figure { (claim.confidence) }
                                    td { (name(&claim.source)) }
                                    td { (claim.ttl) }
                                    td { (claim.origin.as_ref().map_or_else(unknown, |origin| way(origin, turn))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn unknown() -> Markup {
    html! { span.muted { "what was gathered" } }
}

/// The way from a claim to the bytes that say it.
fn way(origin: &ClaimOrigin, turn: u32) -> Markup {
    html! {
        a href={ "/turns/" (turn) "/claims/" (segment(origin.block.as_str())) } { "Trace " (origin.block.as_str()) }
        @if let Some(document) = &origin.document {
            " · " a href=(linked(document)) { (name(&document.label)) }
        }
        @if let Some(bytes) = &origin.bytes {
            " · " a.mono href={ "/pointers/" (segment(&bytes.to_string())) } { "bytes" }
        }
    }
}

/// The page that a link of ours leads to.
pub fn linked(link: &larder_vault::links::DualLink) -> String {
    let anchor = link.block.as_ref().map(|block| format!("#{}", block_id(block.as_str())));
    address(&link.file) + &anchor.unwrap_or_default()
}

/// What gathering looked at, and why it was used or not.
pub fn considered(entries: &[Value]) -> Markup {
    let word = |entry: &Value, key: &str| {
        let value = entry.get(key).unwrap_or(&Value::Null);
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    let used = |entry: &Value| entry.get("used").and_then(Value::as_bool) == Some(true);
    html! {
        @if !entries.is_empty() {
            section.panel aria-labelledby="considered" {
                h2 #considered { "What gathering looked at" }
                div.scroll role="group" aria-label="Documents considered" tabindex="0" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Document" }
                                th.optional scope="col" { "Kind" }
                                th.figure.optional scope="col" { "Score" }
                                th scope="col" { "Used" }
                                th.figure scope="col" { "Tokens" }
                                th scope="col" { "Why" }
                            }
                        }
                        tbody {
                            @for entry in entries {
                                @let path = VaultPath::new(&word(entry, "document"));
                                tr {
                                    td { @match &path {
                                        Some(path) => a href=(address(path)) { (name(path.short())) },
                                        None => (name(&word(entry, "document"))),
                                    } }
                                    td.optional { (name(&word(entry, "kind"))) }
                                    td.figure.optional { (name(&word(entry, "score"))) }
                                    td { @if used(entry) { (chip("good", "used")) } @else { (chip("", "left out")) } }
                                    td.figure { (name(&word(entry, "tokens"))) }
                                    td { (name(&word(entry, "why"))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
