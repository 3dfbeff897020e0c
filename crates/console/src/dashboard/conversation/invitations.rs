//! Invitations of the person at the browser: who asks, for what, and forms to accept and to decline.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Redirect;
use larder_conversation::ALONE;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_store::{Invitation, Track};
use maud::{Markup, html};

use super::super::figures::{moment, name};
use super::super::layout::PageError;
use super::super::ui::{Column, panel, table};
use super::{AsParams, address};
use crate::api::{Path, Query, blocking, blocking_conversation};

/// The invitations that wait; nothing without any.
pub(super) fn shown(invitations: &[Invitation]) -> Markup {
    let columns = [
        Column::text("From").heading(),
        Column::text("Type"),
        Column::text("As"),
        Column::text("Since (UTC)"),
        Column::text("Answer"),
    ];
    let rows = invitations.iter().map(|one| {
        let act = |act: &str, label: &str| {
            html! {
                form method="post" action=(address(&one.conversation, &one.name, act)) {
                    button type="submit" { (label) }
                }
            }
        };
        [
            name(&one.from),
            name(&one.kind),
            name(&one.name),
            moment(one.created),
            html! { (act("/accept", "Take part")) (act("/decline", "Decline")) },
        ]
    });
    html! {
        @if !invitations.is_empty() {
            (panel("invitations", "Invitations", html! {
                p { "Until you accept, nothing is kept of you, and you see nothing of what is said." }
                (table("Your invitations", columns, rows))
            }))
        }
    }
}

/// `POST /conversations/{id}/accept`
pub async fn accept(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
) -> Result<Redirect, PageError> {
    let person = participant.unwrap_or_else(|| ALONE.to_owned());
    let back = address(&id, &person, "");
    blocking_conversation(move || app.conversations(&caller).accept(&id, &person)).await?;
    Ok(Redirect::to(&back))
}

/// `POST /conversations/{id}/decline`
pub async fn decline(
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
) -> Result<Redirect, PageError> {
    let person = participant.unwrap_or_else(|| ALONE.to_owned());
    blocking(move || caller.store.conversations().decline(Track { conversation: &id, participant: &person }))
        .await?;
    Ok(Redirect::to("/conversations"))
}
