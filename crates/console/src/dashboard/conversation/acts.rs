//! What a participant does besides writing messages: where they stand, what they can start there, and a new session. What is
//! shared stands next to it.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use larder_conversation::actions::OPEN;
use larder_conversation::kind::{Sight, Stage};
use larder_conversation::{ActionResult, Conversation, ConversationError};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_gateway::replies::{self, Act, Acted};
use larder_store::{ConversationMessage, ConversationRecord};
use larder_text::words::is_blank;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::super::figures::name;
use super::super::layout::PageError;
use super::super::ui::{facts, panel};
use super::{AsParams, address, last, open, page_of, sharing};
use crate::api::{ActionInfo, ActionList, Path, Problem, Query, blocking_conversation};

/// `/conversations/{id}/acts`: what the script puts below the chat after a reply.
pub async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
) -> Result<Html<String>, PageError> {
    let conversation = open(&app, &caller, id, participant).await?;
    let content = blocking_conversation(move || {
        let record = app.conversations(&caller).show(conversation.id())?;
        shown(&conversation, &record, &conversation.messages(None)?)
    });
    Ok(Html(content.await?.into_string()))
}

/// All panels, with the messages of the session. Blocks.
pub(super) fn shown(
    conversation: &Conversation,
    record: &ConversationRecord,
    messages: &[ConversationMessage],
) -> Result<Markup, ConversationError> {
    let (session, state) = conversation.standing()?;
    let Some(stage) = state.stage(&conversation.kind().kind) else { return Ok(html! {}) };
    let ActionList { mut actions } = ActionList::read(conversation)?;
    // Where nothing was said yet, the assistant may speak first.
    actions.sort_by_key(|action| action.name != OPEN);
    let content = html! {
        (standing(conversation, record, stage, session))
        ul.notes { @for action in &actions { li { (start_form(conversation, stage, action)) } } }
        (session_form(conversation))
    };
    Ok(html! {
        (last::shown(conversation, messages, session))
        (sharing::shown(conversation, record, messages)?)
        (panel("acts-now", "What you can do now", content))
    })
}

/// Where the participant is, and how far the others have come, as far as the type lets that be seen.
fn standing(conversation: &Conversation, record: &ConversationRecord, stage: &Stage, session: u64) -> Markup {
    let kind = &conversation.kind().kind;
    let first = kind.stages.first().map_or("", |stage| stage.name.as_str());
    let others = record.participants.iter().filter(|one| one.name != conversation.participant());
    let others = others.filter(|_| kind.participants.sees.contains(&Sight::Stage));
    html! {
        p {
            "You are at " strong { (title(&stage.name)) } " (session " (session) ")"
            @if let Some(about) = &stage.about { ": " (about) } @else { "." }
        }
        @for other in others {
            p.muted { (name(&other.name)) " is at " (title(other.state["stage"].as_str().unwrap_or(first))) "." }
        }
        @for invited in &record.invited { p.muted { (name(&invited.name)) " is invited and does not take part yet." } }
    }
}

/// The form that starts an action. Steps take no words.
fn start_form(conversation: &Conversation, stage: &Stage, ActionInfo { name, about }: &ActionInfo) -> Markup {
    let is_action = conversation.kind().kind.actions.contains_key(name);
    let field = format!("say-{name}");
    html! {
        form.inline method="post" action=(address(conversation.id(), conversation.participant(), "/actions")) {
            p { @if is_action { (about) } @else { (step(conversation, stage, name)) } }
            input type="hidden" name="action" value=(name);
            @if is_action {
                label.visually-hidden for=(field) { "What you say to it, if anything" }
                input id=(field) name="text" placeholder="What you say to it, if anything";
            }
            button.secondary type="submit" { @if name == OPEN { "Let the assistant begin" } @else { (title(name)) } }
        }
    }
}

/// What a step leads to, in words.
fn step(conversation: &Conversation, stage: &Stage, step: &str) -> Markup {
    let kind = &conversation.kind().kind;
    let is_step = |action: &Option<String>| action.as_deref() == Some(step);
    let milestones = kind.milestones.iter().filter(|milestone| is_step(&milestone.when.action));
    html! {
        @if step == OPEN { "The assistant writes the first message." }
        @for rule in stage.next.iter().filter(|rule| is_step(&rule.when.action)) {
            "Leads to " strong { (title(&rule.to)) }
            @if let Some(others) = &rule.when.others_at { ", once everyone has come to " (title(others)) }
            @if let Some(about) = kind.stage(&rule.to).and_then(|to| to.about.as_ref()) { ": " (about) } @else { "." }
            " "
        }
        @for milestone in milestones { "Notes: " (milestone.text) " " }
    }
}

fn session_form(conversation: &Conversation) -> Markup {
    let kind = &conversation.kind().kind;
    html! {
        h3 { "A new session" }
        p.muted {
            "The chat begins anew, and without your consent nothing of what was said before is used in it. \
             Your stage and what was shared stay."
        }
        form.inline method="post" action=(address(conversation.id(), conversation.participant(), "/sessions")) {
            div {
                label for="session-in" { "Where" }
                select #session-in name="aside" {
                    option value="" { "The main conversation" }
                    @for aside in kind.stages.iter().filter(|stage| kind.asides().any(|aside| aside == stage.name)) {
                        option value=(aside.name) {
                            "Aside: " (title(&aside.name)) @if let Some(about) = &aside.about { ". " (about) }
                        }
                    }
                }
            }
            button.secondary type="submit" { "Begin a session" }
        }
    }
}

/// A name of a type as words: `feel_heard` is "Feel heard".
pub(super) fn title(name: &str) -> String {
    let words = name.replace(['_', '-'], " ");
    let mut chars = words.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// What an action gave besides a message, which is kept nowhere.
pub(super) fn given(action: &str, data: &Value) -> Markup {
    let about = html! {
        p.muted { "Only you see this, and only now: it is not kept. Copy what you need." }
        (lists(data))
    };
    panel("given-data", title(action), about)
}

/// Data as lists that people read.
fn lists(value: &Value) -> Markup {
    html! {
        @match value {
            Value::Object(fields) => { (facts(fields.iter().map(|(key, value)| (title(key), lists(value))))) }
            Value::Array(items) => { ul { @for item in items { li { (lists(item)) } } } }
            Value::String(text) => { (name(text)) }
            Value::Null => { "nothing" }
            other => { (other.to_string()) }
        }
    }
}

/// The fields of the form that starts an action.
#[derive(Debug, Deserialize)]
pub struct ActionForm {
    action: String,
    #[serde(default)]
    text: String,
}

/// `POST /conversations/{id}/actions`: waits for what it gives, and shows the page with it.
pub async fn act(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
    form: Result<Form<ActionForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(ActionForm { action, text }) = form.map_err(Problem::from)?;
    let conversation = open(&app, &caller, id, participant).await?;
    let text = Some(text).filter(|text| !is_blank(text));
    let acted = replies::act(&app, &caller, conversation.clone(), Act::Action(action, text)).await?;
    let result = match acted {
        Acted::Action(result) => Some(result),
        Acted::Preview(_) | Acted::Shared(_) => None,
    };
    after(app, caller, conversation, result).await
}

/// The page after an act. Data that it gave is shown in the answer itself; everything else is part of the conversation.
pub(super) async fn after(
    app: Arc<App>,
    caller: Caller,
    conversation: Conversation,
    result: Option<ActionResult>,
) -> Result<Response, PageError> {
    let back = address(conversation.id(), conversation.participant(), "");
    match result {
        Some(ActionResult { action, data: Some(data), .. }) => {
            Ok(page_of(app, caller, conversation, Some(given(&action, &data))).await?.into_response())
        }
        _ => Ok(Redirect::to(&back).into_response()),
    }
}

/// The field of the form that begins a session.
#[derive(Debug, Deserialize)]
pub struct SessionForm {
    /// The stage of an aside; empty for the main line.
    aside: String,
}

/// `POST /conversations/{id}/sessions`
pub async fn begin_session(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
    form: Result<Form<SessionForm>, FormRejection>,
) -> Result<Redirect, PageError> {
    let Form(SessionForm { aside }) = form.map_err(Problem::from)?;
    let conversation = open(&app, &caller, id, participant).await?;
    let back = address(conversation.id(), conversation.participant(), "");
    conversation
        .begin_session(Some(aside.as_str()).filter(|aside| !aside.is_empty()))
        .await
        .map_err(Problem::from)?;
    Ok(Redirect::to(&back))
}
