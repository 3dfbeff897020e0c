//! The progress of a running turn. The pieces of the page are sent as events, like those of the overview.

use std::sync::Arc;

use std::collections::BTreeMap;
use std::convert::Infallible;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::Stream;
use larder_agent::turn::TurnEvent;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_gateway::turns::TurnWatch;
use maud::{Markup, html};

use super::super::figures::{counted, name, number, span};
use super::super::ui::{chip, live_controls, panel_with_tools};
use super::tables::phase_name;
use crate::api::Path;

/// The panel before the first event arrives.
pub fn panel(turn: u32) -> Markup {
    panel_with_tools(
        "live",
        "Under way",
        live_controls(),
        html! {
            div data-live={ "/live/turns/" (turn) } { div #live-turn { (pieces(&[], false, turn)) } }
        },
    )
}

/// `/live/turns/{number}`: events `pieces` as on the overview, and `end` when the turn has ended.
pub async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(number): Path<u32>,
) -> Response {
    match app.running_turns.get(caller.store.user(), number) {
        Some(course) => {
            Sse::new(event_stream(course.watch(), number)).keep_alive(KeepAlive::default()).into_response()
        }
        // With this status a browser does not reconnect.
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

fn event_stream(watch: TurnWatch, turn: u32) -> impl Stream<Item = Result<Event, Infallible>> {
    futures::stream::unfold((watch, false), move |(mut watch, ended)| async move {
        if ended {
            return None;
        }
        let (events, over) = watch.next().await?;
        let html = pieces(&events, over, turn).into_string();
        let pieces = BTreeMap::from([("live-turn", html)]);
        // The last pieces say that the turn has ended; a browser that reconnects is refused.
        let event = Event::default().event("pieces").json_data(pieces).unwrap_or_default();
        Some((Ok(event), (watch, over)))
    })
}

fn pieces(events: &[TurnEvent], ended: bool, turn: u32) -> Markup {
    html! {
        @if events.is_empty() { p.muted { "The progress of this turn appears here." } }
        ol.events { @for event in events { li { (line(event)) } } }
        @if ended {
            p { (chip("good", "ended")) " " a href={ "/turns/" (turn) } { "Show the whole turn" } }
        }
    }
}

fn line(event: &TurnEvent) -> Markup {
    let took = |tokens: u64, millis: u64| {
        html! { span.muted { (number(tokens)) " tokens, " (span(millis.saturating_mul(1_000))) } }
    };
    match event {
        TurnEvent::Started { turn, .. } => html! { "Turn " (turn) " started" },
        TurnEvent::Phase { number, attempt, .. } => html! {
            strong { "Phase " (number) ", " (phase_name(*number)) }
            @if *attempt > 1 { " " (chip("warn", format!("attempt {attempt}"))) }
        },
        TurnEvent::PhaseDone { tokens, millis, text, .. } => html! {
            (name(text)) " " (took(*tokens, *millis))
        },
        TurnEvent::Tool { call } => html! { "calls " span.mono { (name(call)) } },
        TurnEvent::ToolDone { status, summary, bytes, millis } => html! {
            (chip(if status == "SUCCESS" { "good" } else { "warn" }, status.to_lowercase())) " " (name(summary)) " "
            span.muted { (number(*bytes)) " bytes, " (span(millis.saturating_mul(1_000))) }
        },
        TurnEvent::Gathered { considered } => {
            html! { (counted(considered.len() as u64, "document")) " considered" }
        }
        TurnEvent::Compacted { section, from, to } => html! {
            "§" (section) " condensed, " (number(*from as u64)) " → " (number(*to as u64)) " tokens"
        },
        TurnEvent::Answer { text } => html! {
            strong { "The answer" }
            p.answer dir="auto" { (text) }
        },
        TurnEvent::Clarify { question } => html! { strong { "Asks: " } (name(question)) },
        TurnEvent::Finished { status, unverified, tokens, millis, .. } => html! {
            (super::super::documents::status(*status))
            @if *unverified { " " (chip("warn", "unverified")) }
            " " (took(*tokens, *millis))
        },
        TurnEvent::Warning { text } => html! { (chip("warn", "warning")) " " (name(text)) },
    }
}
