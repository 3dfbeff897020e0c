//! Sessions, and the compaction map over the life of one (R3-4.33).

use axum::Extension;
use axum::response::Html;
use larder_core::pack::Rendition;
use larder_gateway::auth::Caller;
use larder_proxy::record::RequestSummary;
use larder_store::SessionSummary;
use maud::{Markup, html};

use super::figures::{
    counted, moment, money, money_saved, name, number, percent, segment, share, short, short_id,
};
use super::layout::{NavItem, PageError, page};
use super::map::legend;
use super::ui::{self, Column, disclosure, empty, heading, panel, rendition, untitled_panel};
use crate::api::{CompactionMap, MapEntry, Path, Priced, Problem, blocking};

/// Sessions of the list.
const LISTED: u64 = 100;
/// Columns that the map has room for at least, so that a short session does not fill it with two blocks.
const MIN_COLUMNS: usize = 24;

/// `/sessions`
pub async fn list(Extension(caller): Extension<Caller>) -> Result<Html<String>, PageError> {
    let store = caller.store.clone();
    let found = blocking(move || store.exchanges().sessions(LISTED)).await?;
    let sessions: Vec<Priced<SessionSummary>> = found.into_iter().map(Priced::from).collect();
    let list = if sessions.is_empty() {
        empty(
            "No sessions",
            html! {
                "Requests of one conversation are recognised by their history, or by the header " code { "x-larder-session" } "."
            },
        )
    } else {
        table(&sessions)
    };
    let content = html! {
        (heading("Sessions", "Conversations, most recently used first.", None))
        (untitled_panel(list))
    };
    Ok(page(&caller, NavItem::Sessions, "Sessions", &content))
}

fn table(sessions: &[Priced<SessionSummary>]) -> Markup {
    let columns = [
        Column::text("Session"),
        Column::text("Last used (UTC)"),
        Column::number("Requests"),
        Column::number("Tokens sent"),
        Column::number("Saved"),
        Column::number("Compactions"),
        Column::number("Cost"),
        Column::number("Money saved"),
    ];
    let row = |session: &Priced<SessionSummary>| {
        let sums = &session.sums;
        let saved = sums.tokens_before.saturating_sub(sums.tokens_after);
        [
            html! { a href={ "/sessions/" (segment(&sums.session)) } { (name(&sums.session)) } },
            moment(sums.last),
            html! { (number(sums.requests)) },
            html! { (short(sums.tokens_after)) },
            html! { (percent(saved, sums.tokens_before)) },
            html! { (number(sums.compactions)) },
            html! { (money(session.cost)) },
            html! { (money_saved(session.cost, session.cost_without)) },
        ]
    };
    ui::table("Sessions", columns, sessions.iter().map(row))
}

/// `/sessions/{session}`
pub async fn one(
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
) -> Result<Html<String>, PageError> {
    let store = caller.store.clone();
    let read = move || {
        let has_transcript = !store.transcripts().lines(&session)?.is_empty();
        Ok(CompactionMap::read(&store, &session)?.map(|map| (map, has_transcript)))
    };
    let found = blocking(read).await?;
    let (map, has_transcript) =
        found.ok_or_else(|| Problem::not_found("no request belongs to this session"))?;
    let title = html! { "Session " (name(&map.session)) };
    let about = {
        let (requests, compactions) = (map.requests.len() as u64, map.compactions.len() as u64);
        format!("{}, {}", counted(requests, "request"), counted(compactions, "compaction"))
    };
    let tools = html! {
        @if has_transcript {
            a href={ "/sessions/" (segment(&map.session)) "/transcript" } { "Its transcript" } " "
        }
        a href={ "/requests?session=" (segment(&map.session)) } { "Its requests" }
    };
    let content = html! {
        (heading(title, about, Some(tools)))
        (panel("map", "Compaction map", html! {
            p.muted {
                "One column for each request, divided by rendition. The hatched part on top arrived but was not sent. \
                 A dashed line marks an epoch, where a prompt does not extend the one before it."
            }
            (columns(&map.requests))
            (legend())
        }))
        (panel("entries", "What changed, and when", html! {
            @if map.compactions.is_empty() { p.muted { "Nothing changed: every part was sent whole." } }
            @else { (entries(&map)) }
        }))
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
    let slots = requests.len().max(MIN_COLUMNS) as u64 * 8;
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
            output.explanation aria-live="polite" data-why-line="" {
                "Point at a request, or move to one with the arrow keys."
            }
        }
    }
}

/// From the bottom up: whole parts with framing, condensed parts, pointers, saved tokens.
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
    let columns = [
        Column::text("Rendition"),
        Column::text("Epoch"),
        Column::text("Request"),
        Column::text("Message"),
        Column::text("Part"),
        Column::number("Tokens"),
        Column::text("Why"),
    ];
    let rows = map.compactions.iter().map(|MapEntry { request, compaction }| {
        [
            changed(compaction.from, compaction.to, compaction.pointer.as_ref()),
            html! { (compaction.epoch) },
            html! { a href={ "/requests/" (segment(request)) } { (short_id(request)) } },
            html! { (compaction.message + 1) },
            name(&compaction.label),
            html! { (number(compaction.before)) " → " (number(compaction.after)) },
            html! { (compaction.reason) },
        ]
    });
    ui::table("Compactions", columns, rows)
}

/// The change of rendition, which opens to the original.
fn changed(from: Rendition, to: Rendition, pointer: Option<&larder_text::pointer::Pointer>) -> Markup {
    let change = html! { (rendition(from)) " → " (rendition(to)) };
    match pointer {
        Some(pointer) => {
            let address = format!("/pointers/{}", segment(&pointer.to_string()));
            disclosure(&address, change, "show the original", "Open the original")
        }
        None => change,
    }
}
