//! Requests: the list, one request as a picture, and the text behind each of its parts.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use larder_core::policy::BudgetStatus;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_proxy::record::{Outcome, RequestRecord, RequestSummary, RoundTripFate, WindowPart};
use larder_store::{StoreError, UserStore};
use larder_text::hash::ContentHash;
use maud::{Markup, html};

use super::figures::{moment, money, money_saved, name, number, segment, short, short_id, span};
use super::layout::{FragmentParams, NavItem, PageError, page};
use super::map::{self, PartLink, WindowMap};
use super::pointers::{self, StoredText};
use super::ui::{self, Column, chip, empty, heading, pager, panel, rendition, untitled_panel};
use crate::api::{Path, Problem, Query, RequestListParams, RequestPage, blocking, unknown, when_recorded};

/// `/requests`
pub async fn list(
    Extension(caller): Extension<Caller>,
    Query(which): Query<RequestListParams>,
) -> Result<Html<String>, PageError> {
    let store = caller.store.clone();
    let session = which.session.clone();
    let found = blocking(move || RequestPage::read(&store, &which)).await?;
    let rows: Vec<&RequestSummary> = found.exchanges.iter().collect();
    let of_session =
        session.as_ref().map(|session| format!("&session={}", segment(session))).unwrap_or_default();
    let about = html! { @if let Some(session) = &session { "of session " (name(session)) } @else { "Newest first." } };
    let older = found
        .next
        .as_ref()
        .map(|next| ("Older requests", format!("/requests?before={}{of_session}", segment(next))));
    let content = html! {
        (heading("Requests", about, None))
        (untitled_panel(html! {
            @if rows.is_empty() { (empty("No requests", "Requests through the gateway are listed here.")) }
            @else { (table(&rows)) }
            (pager(older.as_slice()))
        }))
    };
    Ok(page(&caller, NavItem::Requests, "Requests", &content))
}

/// Requests as rows.
pub fn table(rows: &[&RequestSummary]) -> Markup {
    let most = rows.iter().map(|head| head.tokens.before.max(head.tokens.after)).max().unwrap_or(0);
    let columns = [
        Column::text("Time (UTC)"),
        Column::text("Model"),
        Column::text("Decision"),
        Column::number("Prompt tokens"),
        Column::text("Window").wide(),
        Column::number("Cost").wide(),
        Column::number("Took").wide(),
        Column::text("Outcome"),
    ];
    ui::table("Requests", columns, rows.iter().map(|head| row(head, most)))
}

fn row(head: &RequestSummary, most: u64) -> [Markup; 8] {
    let tokens = head.tokens;
    [
        html! { a href={ "/requests/" (segment(&head.id)) } { (moment(head.time)) } },
        html! {
            @match &head.answered_by {
                Some(model) => (name(&model.name)),
                None => span.muted { (name(&head.model)) },
            }
            @if let Some(recipe) = &head.recipe { br; span.muted { (name(recipe)) } }
        },
        decision(head),
        html! {
            @if tokens.saved() > 0 { span.muted { (short(tokens.before)) " → " } }
            (short(tokens.after))
        },
        ui::bar((tokens.before, "saved"), (tokens.after, "whole"), most),
        html! { @if let Some(bill) = head.bill { (money(bill.cost)) } @else { "–" } },
        html! { (span(head.times.total_us)) },
        outcome(head),
    ]
}

fn decision(head: &RequestSummary) -> Markup {
    let Some(decision) = &head.decision else { return html! { span.muted { "–" } } };
    let (kind, word) = match decision.status {
        BudgetStatus::Ok if head.tokens.after < head.tokens.before => ("good", "shortened"),
        BudgetStatus::Ok => ("good", "fits"),
        BudgetStatus::NeedsSummary => ("warn", "shrunk"),
        BudgetStatus::Reject => ("bad", "rejected"),
    };
    html! {
        (chip(kind, word))
        @if decision.dry_run { " " (chip("", "dry run")) }
    }
}

fn outcome(head: &RequestSummary) -> Markup {
    let kind = match head.outcome {
        Outcome::Ok => "good",
        Outcome::ClientGone | Outcome::Refused | Outcome::Invalid => "warn",
        Outcome::UpstreamError | Outcome::UpstreamFailed | Outcome::Failed => "bad",
    };
    chip(kind, head.outcome.as_str().replace('_', " "))
}

/// Reads one request. Blocks.
fn read(store: &UserStore, id: &str) -> Result<Option<RequestRecord>, StoreError> {
    let Some(json) = store.exchanges().get(id)? else { return Ok(None) };
    let parsed = serde_json::from_str(&json);
    parsed.map(Some).map_err(|source| StoreError::Record { what: format!("request {id}"), source })
}

/// `/requests/{id}`
pub async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Html<String>, PageError> {
    let exchange = when_recorded(&app, &caller, &id, read).await?.ok_or_else(unknown)?;
    let title = format!("Request {}", short_id(&exchange.summary.id));
    Ok(page(&caller, NavItem::Requests, &title, &whole(&exchange)))
}

fn whole(exchange: &RequestRecord) -> Markup {
    let head = &exchange.summary;
    let about = html! { (moment(head.time)) " · " (name(&head.model)) };
    let tools = html! { (decision(head)) (outcome(head)) };
    html! {
        (heading(format!("Request {}", short_id(&head.id)), about, Some(tools)))
        (untitled_panel(ui::facts(facts(head))))
        (windows(exchange, PartLink::Request(&format!("/requests/{}", segment(&head.id)))))
    }
}

/// Window, parts, compactions and rehydrations.
pub fn windows(exchange: &RequestRecord, link: PartLink<'_>) -> Markup {
    let window = WindowMap::from(exchange);
    let picture = if window.parts.is_empty() {
        html! { p.muted { "Larder decided nothing about this request, so there is no window to show." } }
    } else {
        map::picture(&window)
    };
    html! {
        (panel("window", "The window", picture))
        @if !window.parts.is_empty() {
            (panel("parts", "Its parts", html! {
                @if matches!(link, PartLink::Request(_)) {
                    p.muted { "Open a rendition to compare what was sent with the original." }
                }
                (map::table(&window, link))
            }))
        }
        @if !exchange.compactions.is_empty() { (compactions(exchange)) }
        @if !exchange.rehydrations.is_empty() { (rehydrations(exchange)) }
    }
}

fn facts(head: &RequestSummary) -> Vec<(&'static str, Markup)> {
    let mut facts = Vec::new();
    if let Some(decision) = &head.decision {
        facts.push((
            "Decision",
            html! {
                (decision.reason)
                @if decision.deficit > 0 { "; " (number(decision.deficit as u64)) " tokens too many" }
            },
        ));
    }
    if head.unknown_window {
        let words = "unknown: the prompt was counted, and nothing shortened but floods";
        facts.push(("Window of the model", html! { (words) }));
    }
    if let Some(revision) = head.revision {
        let words = if revision == 0 { "0: the settings alone".to_owned() } else { revision.to_string() };
        facts.push(("Revision of the settings", html! { (words) }));
    }
    if let Some(model) = &head.answered_by {
        facts.push((
            "Answered by",
            html! {
                (name(&model.name)) @if model.id != model.name { " " span.muted { (name(&model.id)) } }
                @if let Some(server) = &model.server { " " span.muted { "through " (name(server)) } }
            },
        ));
    }
    facts.extend(head.route.as_ref().map(|route| ("Forwarded unchanged", name(route))));
    if !head.left_alone.is_empty() {
        let list = html! {
            ul.plain { @for left in &head.left_alone { li { (name(&left.what)) span.muted { ": " (left.why) } } } }
        };
        facts.push(("Left alone", list));
    }
    if !head.ignored.is_empty() {
        facts.push(("Fields left out", name(&head.ignored.join(", "))));
    }
    if !head.unpriced.is_empty() {
        facts.push(("Not in the cost", name(&head.unpriced.join(", "))));
    }
    facts.extend(head.round_trips.map(|trips| {
        let words = match trips {
            RoundTripFate::Restored => "put back",
            RoundTripFate::LeftOut => "left out: with them the prompt could not be made to fit",
        };
        ("Round trips with the model", html! { (words) })
    }));
    facts.extend(head.recipe.as_ref().map(|recipe| ("Recipe", name(recipe))));
    if let Some(run) = &head.run {
        facts.push(("Run", html! { a href={ "/runs/" (run) } { (short_id(run.as_str())) } }));
    }
    if let Some(session) = &head.session {
        facts.push(("Session", html! { a href={ "/sessions/" (segment(session)) } { (name(session)) } }));
    }
    facts.push((
        "Format",
        html! {
            (head.endpoint.as_str().replace('_', " ")) @if head.stream { ", streamed" } ", HTTP " (head.status)
        },
    ));
    facts.extend(took_and_cost(head));
    facts.extend(head.error.as_ref().map(|error| ("Error", name(error))));
    facts.extend(head.key.as_ref().map(|key| ("Key", name(key))));
    facts
}

fn took_and_cost(head: &RequestSummary) -> Vec<(&'static str, Markup)> {
    let times = head.times;
    let mut facts = vec![(
        "Took",
        html! {
            (span(times.total_us)) span.muted { ", of which " (span(times.overhead_us())) " here" }
        },
    )];
    if let Some(usage) = &head.usage {
        let term = match (head.outcome == Outcome::Ok, head.usage_estimated) {
            (true, false) => "Provider counted",
            (true, true) => "Estimated",
            (false, _) => "Counted until it ended",
        };
        facts.push((
            term,
            html! {
                (number(usage.input)) " in, of which " (number(usage.cached_input)) " cached; "
                (number(usage.output)) " out"
            },
        ));
    }
    if let Some(bill) = &head.bill {
        facts.push((
            "Cost",
            html! {
                (money(bill.cost)) span.muted { "; saved " (money_saved(bill.cost, bill.without)) }
            },
        ));
    }
    facts
}

fn compactions(exchange: &RequestRecord) -> Markup {
    let columns = [
        Column::text("Message"),
        Column::text("Part"),
        Column::text("From"),
        Column::text("To"),
        Column::number("Tokens"),
        Column::text("Why"),
    ];
    let rows = exchange.compactions.iter().map(|entry| {
        [
            html! { (entry.message + 1) },
            name(&entry.label),
            rendition(entry.from),
            rendition(entry.to),
            html! { (number(entry.before)) " → " (number(entry.after)) },
            html! { (entry.reason) span.muted { " · epoch " (entry.epoch) } },
        ]
    });
    panel("compactions", "What changed", ui::table("Compactions", columns, rows))
}

fn rehydrations(exchange: &RequestRecord) -> Markup {
    panel(
        "rehydrations",
        "Originals the model read back",
        html! {
            ul {
                @for entry in &exchange.rehydrations {
                    li {
                        span.mono { (name(&entry.pointer)) } ": "
                        @if entry.found { (number(entry.bytes)) " bytes, " (number(entry.tokens)) " tokens" }
                        @else { "not one of this user's pointers" }
                    }
                }
            }
        },
    )
}

/// `/requests/{id}/parts/{part}`: what was sent next to the original.
pub async fn part(
    Extension(caller): Extension<Caller>,
    Path((id, index)): Path<(String, usize)>,
    Query(FragmentParams { piece }): Query<FragmentParams>,
) -> Result<Html<String>, PageError> {
    let (store, of) = (caller.store.clone(), id.clone());
    let found = blocking(move || {
        let Some(exchange) = read(&store, &of)? else { return Ok(None) };
        let Some(part) = exchange.window.get(index) else { return Ok(None) };
        Ok(Some((kept(&store, &exchange.summary, part)?, part.clone())))
    });
    let (kept, part) = found.await?.ok_or_else(|| Problem::not_found("this request has no such part"))?;
    let pair = pointers::pair(&kept);
    if piece {
        return Ok(Html(pair.into_string()));
    }
    let about = html! {
        "part " (index + 1) " of " a href={ "/requests/" (segment(&id)) "#part-" (index) } { "request " (short_id(&id)) }
    };
    let content = html! {
        (heading(name(map::title(&part)), about, Some(rendition(part.rendition))))
        (panel("behind", "What was sent, and the original", pair))
    };
    Ok(page(&caller, NavItem::Requests, map::title(&part), &content))
}

/// A part as sent and its original, as far as transcript and store hold them. Blocks.
fn kept(store: &UserStore, head: &RequestSummary, part: &WindowPart) -> Result<StoredText, StoreError> {
    let mut kept = StoredText { pointer: part.pointer.clone(), ..StoredText::default() };
    if let Some(pointer) = &part.pointer {
        kept.original = Some(store.pointers().resolve(pointer)?);
    }
    let (Some(session), Some(branch), Some(message)) = (&head.session, head.branch, part.message) else {
        return Ok(kept);
    };
    let lines = store.transcripts().branch(session, branch)?;
    // Transcripts count messages from 1.
    if let Some(line) = lines.iter().find(|line| u64::from(line.message) == message.saturating_add(1)) {
        let sent: ContentHash = line.sent.map_or(line.raw.hash, |sent| sent.hash);
        kept.sent = Some(store.contents().get(sent)?);
        if kept.original.is_none() {
            kept.original = Some(store.contents().get(line.raw.hash)?);
        }
    }
    Ok(kept)
}
