//! A reply as server-sent events.

use std::convert::Infallible;

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use larder_gateway::replies::{ReplyEvent, ReplyReader};
use serde_json::json;

use crate::api::turns::EVENTS;

/// What a client sends that has read a part of the stream.
const LAST_EVENT_ID: &str = "last-event-id";

/// Whether the client wants events.
pub(super) fn wanted(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).any(|value| value.contains(EVENTS))
}

/// The last event that the client has.
pub(super) fn last(headers: &HeaderMap) -> Option<&str> {
    headers.get(LAST_EVENT_ID)?.to_str().ok().map(str::trim).filter(|id| !id.is_empty())
}

/// The events of a reply from where the reader is.
pub(super) fn stream(reader: ReplyReader) -> Response {
    let events = futures::stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok::<_, Infallible>(event_of(event)), reader))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

fn event_of(event: ReplyEvent) -> Event {
    let (kind, id, data) = match event {
        ReplyEvent::Text { id, text } => ("text", Some(id), json!({ "text": text })),
        ReplyEvent::Restart => ("restart", None, json!({})),
        ReplyEvent::Draft(text) => ("draft", None, json!({ "text": text })),
        ReplyEvent::Done(reply) => ("done", None, json!(reply)),
        ReplyEvent::Problem(problem) => ("problem", None, json!(problem)),
    };
    let event = Event::default().event(kind).data(data.to_string());
    match id {
        Some(id) => event.id(id),
        None => event,
    }
}
