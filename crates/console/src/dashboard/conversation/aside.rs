//! Next to a chat: what was sent for the newest reply and why, what the reply said in its fields, what is remembered, and
//! what the conversation costs.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use larder_conversation::{Conversation, ConversationError, ReplyRecord, WindowRecord};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_models::price::Usd;
use larder_store::ConversationCostRow;
use maud::{Markup, html};

use super::super::figures::{counted, money, name, number, span};
use super::super::layout::PageError;
use super::super::ui::{Column, chip, facts, panel, table};
use super::{AsParams, open};
use crate::api::{Path, Query, RememberedFact, ReplyWindow, blocking_conversation, remembered};

/// `/conversations/{id}/aside`: what the script puts next to the chat after a reply.
pub async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
) -> Result<Html<String>, PageError> {
    let conversation = open(&app, &caller, id, participant).await?;
    let shown = blocking_conversation(move || shown(&conversation, None)).await?;
    Ok(Html(shown.into_string()))
}

/// All panels, for a reply or the newest one. Blocks.
pub(super) fn shown(conversation: &Conversation, reply: Option<u64>) -> Result<Markup, ConversationError> {
    let window = match ReplyWindow::read(conversation, reply) {
        Ok(window) => Some(window.record),
        Err(ConversationError::Store(larder_store::StoreError::UnknownMessage { .. })) => None,
        Err(error) => return Err(error),
    };
    let remembered = remembered(conversation)?;
    let costs = conversation.costs()?;
    Ok(html! {
        (panel("window", "What was sent for the last reply", html! {
            @match &window {
                Some(record) => { (sent(record)) }
                None => { p.muted { "Nothing yet: say something." } }
            }
        }))
        @if let Some(record) = &window { (panel("fields", "What the reply says of the conversation", fields(record))) }
        (panel("facts", "Remembered", known(&remembered)))
        (panel("costs", "Costs", spent(&costs)))
    })
}

/// The window, its sizes and its reasons.
fn sent(record: &ReplyRecord) -> Markup {
    let WindowRecord { sent, summarized, withheld, intent, watermark, blocks, blocked_by_consent, .. } =
        &record.window;
    let window = &record.window;
    let tokens = |tokens: usize| number(tokens as u64);
    let lines = [
        (
            "Stage",
            html! { (name(&record.stage)) @if record.next_stage != record.stage { " → " (name(&record.next_stage)) } },
        ),
        ("Model", name(&record.model)),
        ("Instructions", html! { (tokens(window.system_tokens)) " tokens" }),
        (
            "History",
            html! { (counted(sent.len() as u64, "message")) ", " (tokens(window.history_tokens)) " tokens" },
        ),
        ("Your message with its blocks", html! { (tokens(window.last_tokens)) " tokens" }),
        ("Room", html! { (tokens(window.available_tokens)) " tokens" }),
        ("Reserved for the reply", html! { (tokens(window.reserved_tokens)) " tokens" }),
        ("Budgets of revision", html! { (number(window.revision)) }),
        ("Took", html! { (span(record.latency_ms.saturating_mul(1_000))) }),
    ];
    html! {
        (facts(lines))
        ul {
            @if *summarized > 0 {
                li { (counted(*summarized as u64, "earlier message")) " in the summary"
                    @if let Some(last) = watermark { ", which covers up to message " (last) } "." }
            }
            @if *withheld > 0 {
                li { (counted(*withheld as u64, "message")) " withheld"
                    @if let Some(intent) = intent { ", because of what you asked (" (name(&json(intent))) ")" } "." }
            }
            @if window.left_out > 0 {
                li { (counted(window.left_out as u64, "message")) " did not fit; the prompt has a pointer to what was left out." }
            }
            @if record.is_cut { li { (chip("warn", "cut")) " The reply was cut short." } }
            @for asked in blocked_by_consent { li { (chip("warn", "not sent")) " There is no consent for " (name(asked)) ", so what was asked for from them was not sent." } }
            @if window.safety { li { (chip("warn", "safety")) " The safety rules applied." } }
        }
        @if !blocks.is_empty() {
            (table("Blocks before your message", [Column::text("Block").heading(), Column::number("Tokens")],
                blocks.iter().map(|(block, tokens)| [name(block), html! { (number(*tokens as u64)) }])))
        }
        p { a href={ "/runs/" (record.run) } { "The run with its whole prompt" } }
    }
}

/// A value as its name in records.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn fields(record: &ReplyRecord) -> Markup {
    html! {
        @if record.fields.is_empty() { p.muted { "The reply has no fields." } }
        @else { (facts(record.fields.iter().map(|(field, value)| (name(field), name(value))))) }
        @if let Some(draft) = &record.draft { p { strong { "A draft to share: " } (name(draft)) } }
        @if let Some(action) = &record.action { p { "The action " (name(action)) " took the place of the reply." } }
        @for problem in &record.problems { p { (chip("warn", "form")) " " (name(problem)) } }
    }
}

fn known(remembered: &[RememberedFact]) -> Markup {
    let holds: Vec<_> = remembered.iter().filter(|one| one.fact.valid_until.is_none()).collect();
    html! {
        @if holds.is_empty() { p.muted { "Nothing yet." } }
        ul { @for one in holds { li { (name(&one.fact.said.fact)) " " span.muted { (name(&one.fact.said.category)) } } } }
    }
}

fn spent(rows: &[ConversationCostRow]) -> Markup {
    let columns = [
        Column::text("Call").heading(),
        Column::number("Calls"),
        Column::number("Tokens in"),
        Column::number("Cached"),
        Column::number("Tokens out"),
        Column::number("Cost"),
    ];
    let rows = rows.iter().map(|row| {
        [
            html! { (name(&row.call)) " " span.muted { (name(&row.stage)) } },
            html! { (number(row.calls)) },
            html! { (number(row.input)) },
            html! { (number(row.cached_input)) },
            html! { (number(row.output)) },
            html! { (money(Usd::from_picos(row.picos))) },
        ]
    });
    table("Costs of this conversation", columns, rows)
}
