//! Tables of a turn: time and cost by phase, tool calls, claims, and the documents that gathering considered.

use larder_agent::turn::TurnPhase;
use larder_models::price::Usd;
use larder_vault::context::{CallStatus, Claim, ClaimOrigin};
use larder_vault::links::Reference;
use larder_vault::{RunMetrics, ToolResult, VaultPath};
use maud::{Markup, html};
use serde_json::Value;

use super::super::documents::when;
use super::super::figures::{money, name, number, segment, short, span};
use super::super::links::{address, block_id, vault_address};
use super::super::ui::{self, Column, chip, panel};
use super::read::TurnDocuments;

/// Picodollars of a millionth of a dollar.
const PICOS_PER_MICRO: u64 = 1_000_000;

/// The name of a phase.
pub fn phase_name(phase: u8) -> String {
    TurnPhase::from_number(phase).map_or("unknown", TurnPhase::name).replace('_', " ")
}

/// The time and cost of the turn by phase.
pub fn took(shown: &TurnDocuments) -> Markup {
    let Some(metrics) = &shown.metrics else { return html! {} };
    let mut runs: Vec<&RunMetrics> = metrics.runs.iter().collect();
    runs.sort_by_key(|run| run.phase);
    let columns = [
        Column::text("Phase"),
        Column::text("Recipe"),
        Column::text("Model").wide(),
        Column::number("Tokens in"),
        Column::number("Tokens out"),
        Column::number("Cost").wide(),
        Column::number("Took"),
    ];
    panel(
        "took",
        "Time and cost",
        html! {
            (ui::facts([
                ("Time", span(metrics.total_duration_ms.saturating_mul(1_000))),
                ("Tokens", number(metrics.total_tokens)),
                ("Cost", micros(metrics.total_cost_microdollars)),
                ("Tool calls", number(metrics.tool_calls)),
            ]))
            (ui::table("Phases", columns, runs.into_iter().map(run_row)))
        },
    )
}

fn run_row(run: &RunMetrics) -> [Markup; 7] {
    [
        html! { (run.phase) " " (phase_name(run.phase)) },
        html! { a href={ "/runs/" (segment(&run.run)) } { (name(&run.recipe)) } },
        name(&run.model),
        html! { (number(run.tokens_in)) },
        html! { (number(run.tokens_out)) },
        html! { (micros(run.cost_microdollars)) },
        html! { (span(run.duration_ms.saturating_mul(1_000))) },
    ]
}

fn micros(microdollars: u64) -> String {
    money(Usd::from_picos(microdollars.saturating_mul(PICOS_PER_MICRO)))
}

/// Every call of a tool, with its whole result behind a link.
pub fn tools(results: &[ToolResult], at: Option<&VaultPath>) -> Markup {
    if results.is_empty() {
        return html! {};
    }
    let columns = [
        Column::number("#"),
        Column::text("Call"),
        Column::text("Status"),
        Column::number("Round").wide(),
        Column::number("Bytes"),
        Column::text("Whole result"),
        Column::text("Ended (UTC)").wide(),
    ];
    panel(
        "tools",
        "Tools",
        ui::table("Tool calls", columns, results.iter().map(|result| result_row(result, at))),
    )
}

fn result_row(result: &ToolResult, at: Option<&VaultPath>) -> [Markup; 7] {
    [
        html! { (result.number) },
        html! { span.mono { (name(&result.call)) } },
        call_status(result.status),
        html! { (result.iteration) },
        html! { (short(result.bytes)) },
        html! {
            @if let Some(at) = at {
                a href={ (vault_address(at)) "#" (block_id(result.block().as_str())) } { "as a document" }
            }
            @if let Some(original) = &result.original {
                " · " a href={ "/pointers/" (segment(&original.to_string())) } { "its bytes" }
            }
        },
        when(result.at),
    ]
}

/// The status of a tool call.
pub fn call_status(status: CallStatus) -> Markup {
    let kind = match status {
        CallStatus::Success => "good",
        CallStatus::Error | CallStatus::Timeout => "bad",
        CallStatus::Denied => "warn",
    };
    chip(kind, status.to_string().to_lowercase())
}

/// The claims, each with links to its evidence.
pub fn claims(claims: &[Claim], turn: u32) -> Markup {
    if claims.is_empty() {
        return html! {};
    }
    let columns = [
        Column::text("Claim"),
        Column::number("Confidence"),
        Column::text("Source"),
        Column::text("Holds for"),
        Column::text("Evidence"),
    ];
    let rows = claims.iter().map(|claim| {
        [
            name(&claim.claim),
            html! { (claim.confidence) },
            name(&claim.source),
            html! { (claim.ttl) },
            claim.origin.as_ref().map_or_else(unknown, |origin| way(origin, turn)),
        ]
    });
    panel("claims", "Claims", ui::table("Claims", columns, rows))
}

/// What the numbers of the answer lead to.
pub fn sources(sources: &[(u32, Reference)]) -> Markup {
    if sources.is_empty() {
        return html! {};
    }
    let columns = [Column::text("Number"), Column::text("Document").wide(), Column::text("Bytes")];
    let rows = sources.iter().map(|(number, source)| {
        [
            html! { "[" (number) "]" },
            html! { a href=(linked(&source.link)) { (name(&source.link.label)) } },
            html! {
                @if !source.note.is_empty() {
                    a.mono href={ "/pointers/" (segment(&source.note)) } { "bytes" }
                }
            },
        ]
    });
    panel("sources", "What the answer cites", ui::table("Sources", columns, rows))
}

fn unknown() -> Markup {
    html! { span.muted { "what was gathered" } }
}

/// Links from a claim to its evidence.
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

/// The documents that gathering considered, and why each was used or not.
pub fn considered(entries: &[Value]) -> Markup {
    if entries.is_empty() {
        return html! {};
    }
    let word = |entry: &Value, key: &str| {
        let value = entry.get(key).unwrap_or(&Value::Null);
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    let columns = [
        Column::text("Document"),
        Column::text("Kind").wide(),
        Column::number("Score").wide(),
        Column::text("Used"),
        Column::number("Tokens"),
        Column::text("Why"),
    ];
    let rows = entries.iter().map(|entry| {
        let document = word(entry, "document");
        let is_used = entry.get("used").and_then(Value::as_bool) == Some(true);
        [
            html! {
                @match VaultPath::new(&document) {
                    Some(path) => a href=(address(&path)) { (name(path.short())) },
                    None => (name(&document)),
                }
            },
            name(&word(entry, "kind")),
            name(&word(entry, "score")),
            if is_used { chip("good", "used") } else { chip("", "left out") },
            name(&word(entry, "tokens")),
            name(&word(entry, "why")),
        ]
    });
    panel("considered", "What gathering looked at", ui::table("Documents considered", columns, rows))
}
