//! Requests: the list, one as a picture, and what is behind each of its parts.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_proxy::record::{DecisionStatus, Outcome, RequestRecord, RequestSummary, RoundTrips, WindowPart};
use larder_store::{StoreError, UserStore};
use larder_text::hash::ContentHash;
use maud::{Markup, html};
use serde::Deserialize;

use super::figures::{
    chip, form, moment, money, money_saved, name, number, segment, share, short, short_id, span,
};
use super::layout::{NavItem, PageError, page};
use super::map::{self, PartLink, WindowMap};
use super::pointers::{self, StoredText};
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
    let content = html! {
        div.head {
            div {
                h1 { "Requests" }
                @if let Some(session) = &session { p { "of session " (name(session)) } }
            }
        }
        section.panel {
            @if rows.is_empty() { (none()) } @else { (table(&rows)) }
            div.pages {
                @if let Some(next) = &found.next {
                    a href={ "/requests?before=" (segment(next)) (of_session) } { "Older requests" }
                }
            }
        }
    };
    Ok(page(&caller, NavItem::Requests, "Requests", &content))
}

fn none() -> Markup {
    html! { div.empty { strong { "No requests" } "What comes through the gateway is listed here." } }
}

/// Requests as rows.
pub fn table(rows: &[&RequestSummary]) -> Markup {
    let most = rows.iter().map(|head| head.tokens.before.max(head.tokens.after)).max().unwrap_or(0);
    html! {
        div.scroll role="group" aria-label="Requests" tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Time (UTC)" }
                        th scope="col" { "Model" }
                        th scope="col" { "Decision" }
                        th.figure scope="col" { "Prompt tokens" }
                        th.optional scope="col" { "Window" }
                        th.figure.optional scope="col" { "Cost" }
                        th.figure.optional scope="col" { "Took" }
                        th scope="col" { "Outcome" }
                    }
                }
                tbody { @for head in rows { (row(head, most)) } }
            }
        }
    }
}

fn row(head: &RequestSummary, most: u64) -> Markup {
    let tokens = head.tokens;
    html! {
        tr {
            td { a href={ "/requests/" (segment(&head.id)) } { (moment(head.time)) } }
            td {
                @match &head.answered_by {
                    Some(model) => (name(&model.name)),
                    None => span.muted { (name(&head.model)) },
                }
                @if let Some(recipe) = &head.recipe { br; span.muted { (name(recipe)) } }
            }
            td { (decision(head)) }
            td.figure {
                @if tokens.saved() > 0 { span.muted { (short(tokens.before)) " → " } }
                (short(tokens.after))
            }
            td.optional {
                svg.bar.mini width="100%" height="12" aria-hidden="true" {
                    rect width=(share(tokens.before, most)) height="100%" fill="url(#fill-saved)" {}
                    rect width=(share(tokens.after, most)) height="100%" fill="url(#fill-whole)" {}
                }
            }
            td.figure.optional { @if let Some(bill) = head.bill { (money(bill.cost)) } @else { "–" } }
            td.figure.optional { (span(head.times.total_us)) }
            td { (outcome(head)) }
        }
    }
}

fn decision(head: &RequestSummary) -> Markup {
    let Some(decision) = &head.decision else { return html! { span.muted { "–" } } };
    let (kind, word) = match decision.status {
        DecisionStatus::Ok => ("good", "fits"),
        DecisionStatus::NeedsSummary => ("warn", "shrunk"),
        DecisionStatus::Reject => ("bad", "rejected"),
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
    chip(kind, &head.outcome.as_str().replace('_', " "))
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
    html! {
        div.head {
            div {
                h1 { "Request " (short_id(&head.id)) }
                p { (moment(head.time)) " · " (name(&head.model)) }
            }
            div.tools { (decision(head)) (outcome(head)) }
        }
        section.panel { (facts(head)) }
        (windows(exchange, PartLink::Request(&format!("/requests/{}", segment(&head.id)))))
    }
}

/// Window, parts, compactions and rehydrations.
pub fn windows(exchange: &RequestRecord, behind: PartLink<'_>) -> Markup {
    let window = WindowMap::from(exchange);
    html! {
        section.panel aria-labelledby="window" {
            h2 #window { "The window" }
            @if window.parts.is_empty() {
                p.muted { "Nothing was decided here, so there is no window to show." }
            } @else { (map::picture(&window)) }
        }
        @if !window.parts.is_empty() {
            section.panel aria-labelledby="parts" {
                h2 #parts { "Its parts" }
                @if matches!(behind, PartLink::Request(_)) {
                    p.muted { "A form opens to show what was sent beside the original." }
                }
                (map::table(&window, behind))
            }
        }
        @if !exchange.compactions.is_empty() { (compactions(exchange)) }
        @if !exchange.rehydrations.is_empty() { (rehydrations(exchange)) }
    }
}

fn fact(word: &str, value: &Markup) -> Markup {
    html! { div { dt { (word) } dd { (value) } } }
}

fn facts(head: &RequestSummary) -> Markup {
    let times = head.times;
    let took = html! {
        (span(times.total_us)) span.muted { ", of which " (span(times.overhead_us())) " here" }
    };
    html! {
        dl.facts {
            @if let Some(decision) = &head.decision {
                (fact("Decision", &html! {
                    (decision.reason)
                    @if decision.deficit > 0 { "; " (number(decision.deficit)) " tokens too many" }
                }))
            }
            @if let Some(model) = &head.answered_by {
                (fact("Answered by", &html! {
                    (name(&model.name)) @if model.id != model.name { " " span.muted { (name(&model.id)) } }
                    @if let Some(server) = &model.server { " " span.muted { "through " (name(server)) } }
                }))
            }
            @if let Some(route) = &head.route { (fact("Passed as it came", &name(route))) }
            @if let Some(trips) = head.round_trips {
                (fact("Round trips with the model", &html! {
                    @match trips {
                        RoundTrips::Restored => "put back",
                        RoundTrips::LeftOut => "left out: with them it could not be made to fit",
                    }
                }))
            }
            @if let Some(recipe) = &head.recipe { (fact("Recipe", &name(recipe))) }
            @if let Some(run) = &head.run {
                (fact("Run", &html! { a href={ "/runs/" (run) } { (short_id(run.as_str())) } }))
            }
            @if let Some(session) = &head.session {
                (fact("Session", &html! { a href={ "/sessions/" (segment(session)) } { (name(session)) } }))
            }
            (fact("Spoke", &html! {
                (head.wire.as_str().replace('_', " ")) @if head.stream { ", streamed" } ", HTTP " (head.status)
            }))
            (fact("Took", &took))
            @if let Some(usage) = &head.usage {
                @let words = match (head.outcome == Outcome::Ok, head.usage_estimated) {
                    (true, false) => "Provider counted",
                    (true, true) => "Estimated",
                    (false, _) => "Counted until it ended",
                };
                (fact(words, &html! {
                    (number(usage.input)) " in, of which " (number(usage.cached_input)) " cached; "
                    (number(usage.output)) " out"
                }))
            }
            @if let Some(bill) = &head.bill {
                (fact("Cost", &html! {
                    (money(bill.cost)) span.muted { "; saved " (money_saved(bill.cost, bill.without)) }
                }))
            }
            @if let Some(error) = &head.error { (fact("Error", &name(error))) }
            @if let Some(key) = &head.key { (fact("Key", &name(key))) }
        }
    }
}

fn compactions(exchange: &RequestRecord) -> Markup {
    html! {
        section.panel aria-labelledby="compactions" {
            h2 #compactions { "What changed form" }
            div.scroll role="group" aria-label="Compactions" tabindex="0" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Message" }
                            th scope="col" { "Part" }
                            th scope="col" { "From" }
                            th scope="col" { "To" }
                            th.figure scope="col" { "Tokens" }
                            th scope="col" { "Why" }
                        }
                    }
                    tbody {
                        @for entry in &exchange.compactions {
                            tr {
                                td { (entry.message + 1) }
                                td { (name(&entry.label)) }
                                td { (form(entry.from)) }
                                td { (form(entry.to)) }
                                td.figure { (number(entry.before)) " → " (number(entry.after)) }
                                td { (entry.reason) span.muted { " · epoch " (entry.epoch) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn rehydrations(exchange: &RequestRecord) -> Markup {
    html! {
        section.panel aria-labelledby="rehydrations" {
            h2 #rehydrations { "What the model asked back" }
            ul {
                @for entry in &exchange.rehydrations {
                    li {
                        span.mono { (name(&entry.pointer)) } ": "
                        @if entry.found { (number(entry.bytes)) " bytes, " (number(entry.tokens)) " tokens" }
                        @else { "not one of this user's pointers" }
                    }
                }
            }
        }
    }
}

/// Whether only the piece is wanted, for a page that is there already.
#[derive(Debug, Deserialize)]
pub struct RangeParams {
    #[serde(default)]
    piece: bool,
}

/// `/requests/{id}/parts/{part}`: what was sent beside the original.
pub async fn part(
    Extension(caller): Extension<Caller>,
    Path((id, index)): Path<(String, usize)>,
    Query(RangeParams { piece }): Query<RangeParams>,
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
    let content = html! {
        div.head {
            div {
                h1 { (name(map::title(&part))) }
                p {
                    "part " (index + 1) " of " a href={ "/requests/" (segment(&id)) "#part-" (index) } {
                        "request " (short_id(&id))
                    }
                }
            }
            div.tools { (form(part.rendition)) }
        }
        section.panel aria-labelledby="behind" {
            h2 #behind { "What was sent, and the original" }
            (pair)
        }
    };
    Ok(page(&caller, NavItem::Requests, map::title(&part), &content))
}

/// What the transcript and the store keep of a part. Blocks.
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
