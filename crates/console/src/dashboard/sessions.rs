//! Sessions, and the compaction map over the life of one (R3-4.33).

use axum::Extension;
use axum::response::Html;
use larder_core::pack::Rendition;
use larder_gateway::auth::Caller;
use larder_proxy::record::RequestSummary;
use maud::{Markup, html};

use super::figures::{
    form, moment, money, money_saved, name, number, percent, segment, share, short, short_id,
};
use super::layout::{NavItem, PageError, page};
use super::map::legend;
use crate::api::{CompactionMap, Path, Problem, SessionCosts, blocking};

/// Sessions of the list.
const LISTED: u64 = 100;
/// Columns that the map always has room for, so that a short session does not fill it with two blocks.
const LEAST_COLUMNS: usize = 24;

/// `/sessions`
pub async fn list(Extension(caller): Extension<Caller>) -> Result<Html<String>, PageError> {
    let store = caller.store.clone();
    let found = blocking(move || store.exchanges().sessions(LISTED)).await?;
    let sessions: Vec<SessionCosts> = found.into_iter().map(SessionCosts::from).collect();
    let content = html! {
        div.head { div { h1 { "Sessions" } p { "Conversations, the one used last first." } } }
        section.panel {
            @if sessions.is_empty() {
                div.empty {
                    strong { "No sessions" }
                    "Requests of one conversation are recognised by their history, or by the header "
                    code { "x-larder-session" } "."
                }
            } @else { (table(&sessions)) }
        }
    };
    Ok(page(&caller, NavItem::Sessions, "Sessions", &content))
}

fn table(sessions: &[SessionCosts]) -> Markup {
    html! {
        div.scroll role="group" aria-label="Sessions" tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Session" }
                        th scope="col" { "Last used (UTC)" }
                        th.figure scope="col" { "Requests" }
                        th.figure scope="col" { "Tokens sent" }
                        th.figure scope="col" { "Saved" }
                        th.figure scope="col" { "Compactions" }
                        th.figure scope="col" { "Cost" }
                        th.figure scope="col" { "Money saved" }
                    }
                }
                tbody {
                    @for session in sessions {
                        @let saved = session.tokens_before.saturating_sub(session.tokens_after);
                        tr {
                            td { a href={ "/sessions/" (segment(&session.session)) } { (name(&session.session)) } }
                            td { (moment(session.last)) }
                            td.figure { (number(session.requests)) }
                            td.figure { (short(session.tokens_after)) }
                            td.figure { (percent(saved, session.tokens_before)) }
                            td.figure { (number(session.compactions)) }
                            td.figure { (money(session.cost)) }
                            td.figure { (money_saved(session.cost, session.cost_without)) }
                        }
                    }
                }
            }
        }
    }
}

/// `/sessions/{session}`
pub async fn one(
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
) -> Result<Html<String>, PageError> {
    let store = caller.store.clone();
    let map = blocking(move || CompactionMap::read(&store, &session)).await?;
    let map = map.ok_or_else(|| Problem::not_found("no request belongs to this session"))?;
    let content = html! {
        div.head {
            div {
                h1 { "Session " (name(&map.session)) }
                p { (map.requests.len()) " requests, " (map.compactions.len()) " compactions" }
            }
            div.tools {
                a href={ "/sessions/" (segment(&map.session)) "/transcript" } { "Its transcript" } " "
                a href={ "/requests?session=" (segment(&map.session)) } { "Its requests" }
            }
        }
        section.panel aria-labelledby="map" {
            h2 #map { "Compaction map" }
            p.muted {
                "One column for each request: what its window held, by form. The hatched part on top came \
                 and was not sent; a dashed line marks an epoch, where the prompt does not extend the one before."
            }
            (columns(&map.requests))
            (legend())
        }
        section.panel aria-labelledby="entries" {
            h2 #entries { "What changed form, and when" }
            @if map.compactions.is_empty() { p.muted { "Everything stood whole all along." } }
            @else { (entries(&map)) }
        }
    };
    Ok(page(&caller, NavItem::Sessions, "Session", &content))
}

fn column_words(at: usize, head: &RequestSummary) -> String {
    let tokens = head.shape.tokens;
    format!(
        "Request {}: {} tokens sent of {}; whole {}, condensed {}, pointers {}; epoch {}",
        at + 1,
        number(head.tokens.after),
        number(head.tokens.before),
        number(tokens.whole),
        number(tokens.condensed),
        number(tokens.pointer),
        head.shape.epoch
    )
}

fn columns(requests: &[RequestSummary]) -> Markup {
    let most = requests.iter().map(|head| head.tokens.before.max(head.tokens.after)).max().unwrap_or(0);
    let slots = requests.len().max(LEAST_COLUMNS) as u64 * 8;
    html! {
        div.map data-map="" {
            svg.chart width="100%" height="260" role="group" aria-label="Compaction map" {
                @for (at, head) in requests.iter().enumerate() {
                    @let moved = at > 0 && head.shape.epoch != requests[at - 1].shape.epoch;
                    @let x = share(at as u64 * 8, slots);
                    @if moved { line.epoch x1=(x) x2=(x) y1="0" y2="100%" {} }
                    a.column href={ "/requests/" (segment(&head.id)) } aria-label=(column_words(at, head))
                        data-why=(column_words(at, head)) {
                        (column(at, head, most, slots))
                        title { (column_words(at, head)) }
                    }
                }
            }
            output.why aria-live="polite" data-why-line="" {
                "Point at a request, or move to one with the arrow keys."
            }
        }
    }
}

/// From the bottom: whole parts with framing, condensed parts, pointers, and what was saved.
fn column(at: usize, head: &RequestSummary, most: u64, slots: u64) -> Markup {
    let forms = head.shape.tokens;
    let whole = head.tokens.after.saturating_sub(forms.condensed).saturating_sub(forms.pointer);
    let saved = head.tokens.saved();
    let mut top = 0_u64;
    let layers = [
        (whole, "fill-whole"),
        (forms.condensed, "fill-condensed"),
        (forms.pointer, "fill-pointer"),
        (saved, "fill-saved"),
    ];
    let layers: Vec<_> = layers
        .into_iter()
        .filter(|(tokens, _)| *tokens > 0)
        .map(|(tokens, fill)| {
            top = top.saturating_add(tokens);
            (tokens, top, fill)
        })
        .collect();
    html! {
        @for (tokens, top, fill) in layers {
            rect x=(share(at as u64 * 8 + 1, slots)) width=(share(6, slots))
                y=(share(most.saturating_sub(top), most)) height=(share(tokens, most))
                fill={ "url(#" (fill) ")" } {}
        }
    }
}

fn entries(map: &CompactionMap) -> Markup {
    html! {
        div.scroll role="group" aria-label="Compactions" tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Form" }
                        th scope="col" { "Epoch" }
                        th scope="col" { "Request" }
                        th scope="col" { "Message" }
                        th scope="col" { "Part" }
                        th.figure scope="col" { "Tokens" }
                        th scope="col" { "Why" }
                    }
                }
                tbody {
                    @for entry in &map.compactions {
                        @let of = &entry.compaction;
                        tr {
                            td { (changed(of.from, of.to, of.pointer.as_ref())) }
                            td { (of.epoch) }
                            td { a href={ "/requests/" (segment(&entry.request)) } { (short_id(&entry.request)) } }
                            td { (of.message + 1) }
                            td { (name(&of.label)) }
                            td.figure { (number(of.before)) " → " (number(of.after)) }
                            td { (of.reason) }
                        }
                    }
                }
            }
        }
    }
}

/// From which form to which; the badge opens to the original.
fn changed(from: Rendition, to: Rendition, pointer: Option<&larder_text::pointer::Pointer>) -> Markup {
    let words = html! { (form(from)) " → " (form(to)) };
    let Some(pointer) = pointer else { return words };
    let address = format!("/pointers/{}", segment(&pointer.to_string()));
    html! {
        details.badge data-load=(address) {
            summary { (words) span.hidden { ", show the original" } }
            div.raw { a href=(address) { "Open the original" } }
        }
    }
}
