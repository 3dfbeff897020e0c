//! The last message of the participant: said in other words, answered once more, or deleted.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::response::Redirect;
use axum::{Extension, Form};
use larder_conversation::{Conversation, ConversationError};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_gateway::replies;
use larder_store::{ConversationMessage, Speaker, StoreError};
use maud::{Markup, html};
use serde::Deserialize;

use super::super::layout::PageError;
use super::super::ui::panel;
use super::{AsParams, address, open};
use crate::api::{Path, Problem, Query};

/// The last message in a session.
fn last(messages: &[ConversationMessage], session: u64) -> Option<&ConversationMessage> {
    messages.iter().rfind(|message| message.session == session && message.speaker == Speaker::Participant)
}

/// The panel; nothing before the first message of a session.
pub(super) fn shown(conversation: &Conversation, messages: &[ConversationMessage], session: u64) -> Markup {
    let Some(last) = last(messages, session) else { return html! {} };
    let content = html! {
        details {
            summary { "Change it, have it answered once more, or delete it" }
            form method="post" action=(address(conversation.id(), conversation.participant(), "/last")) {
                input type="hidden" name="number" value=(last.number);
                label for="last-text" { "In other words" }
                textarea #last-text name="text" rows="3" dir="auto" { (last.text) }
                p.muted { "What was answered to it, and what was noted from it, goes." }
                button.secondary type="submit" name="change" value="edit" { "Say this instead" }
                " "
                button.secondary type="submit" name="change" value="again" { "Answer once more" }
                " "
                button.secondary type="submit" name="change" value="delete" { "Delete with its reply" }
            }
        }
    };
    panel("last-said", "Your last message", content)
}

/// What the form asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LastChange {
    /// Another text.
    Edit,
    /// Another reply.
    Again,
    /// Neither message nor reply.
    Delete,
}

/// The fields of the form.
#[derive(Debug, Deserialize)]
pub struct LastForm {
    number: u64,
    text: String,
    change: LastChange,
}

/// `POST /conversations/{id}/last`: waits for the reply where there is one.
pub async fn change(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
    form: Result<Form<LastForm>, FormRejection>,
) -> Result<Redirect, PageError> {
    let Form(LastForm { number, text, change }) = form.map_err(Problem::from)?;
    let conversation = open(&app, &caller, id, participant).await?;
    let (side, back) = (conversation.clone(), address(conversation.id(), conversation.participant(), ""));
    let changing = larder_engine::blocking::spawn(async move {
        let (session, _) = side.standing()?;
        // The page may be older than the last message.
        if last(&side.messages(Some(session))?, session).is_none_or(|last| last.number != number) {
            return Err(StoreError::NotLast { number }.into());
        }
        match change {
            LastChange::Delete => side.delete_message(number).await.map(|()| None),
            LastChange::Edit => side.revise(Some(&text), None).await.map(Some),
            LastChange::Again => side.revise(None, None).await.map(Some),
        }
    });
    let changed: Result<Option<ConversationMessage>, ConversationError> =
        changing.await.map_err(|error| Problem::internal(&error))?;
    if let Some(posted) = changed.map_err(Problem::from)? {
        let answering = larder_engine::blocking::run(move || {
            replies::answer(&app, &caller, conversation, posted.number, true)
        });
        let stream = answering.await.map_err(|error| Problem::internal(&error))??;
        stream.read(None).ended().await?;
    }
    Ok(Redirect::to(&back))
}
