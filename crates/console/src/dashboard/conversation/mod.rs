//! Conversations: begin one, talk in it, start actions and sessions, share, and see next to it what was sent and why. With the
//! script replies appear as they are written; without it the page waits for them.

mod acts;
mod aside;
mod invitations;
mod last;
mod memory;
mod sharing;

use std::sync::Arc;

use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use larder_conversation::{ALONE, Conversation, ConversationError, which_participant};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_gateway::replies;
use larder_store::{ConversationRecord, Speaker};
use maud::{Markup, html};
use serde::Deserialize;

use super::figures::{moment, name, segment};
use super::layout::{NavItem, PageError, page};
use super::ui::{Column, chip, empty, heading, panel, table};
use crate::api::{
    ConversationTypeInfo, ListedMessage, MessageStatus, NewConversationBody, NewParticipant, Path, Problem,
    Query, begin_for, blocking, blocking_conversation, types_of, with_status,
};

pub use acts::{act, begin_session, show as acts};
pub use aside::show as aside;
pub use invitations::{accept, decline};
pub use last::change as change_last;
pub use memory::{correct, delete, forget, forget_person, give, revoke, show as memory};
pub use sharing::{preview, share};

/// What separates the names of participants in the form.
const COMMA: char = ',';
/// What separates the name of another user's participant from that user.
const OF_USER: char = '=';

/// As whom a page is looked at.
#[derive(Debug, Default, Deserialize)]
pub struct AsParams {
    /// The participant.
    #[serde(rename = "as")]
    participant: Option<String>,
}

/// The address of a page of a conversation, as one participant.
fn address(id: &str, participant: &str, rest: &str) -> String {
    format!("/conversations/{id}{rest}?as={}", segment(participant))
}

/// The caller's side of a conversation, as the address of a page names it.
async fn open(
    app: &Arc<App>,
    caller: &Caller,
    id: String,
    participant: Option<String>,
) -> Result<Conversation, Problem> {
    let (app, caller) = (Arc::clone(app), caller.clone());
    let opening =
        blocking_conversation(move || Ok(app.conversations(&caller).open(&id, participant.as_deref())));
    opening.await?.map_err(|error| match error {
        ConversationError::WhichParticipant { names } => {
            let detail = which_participant(&names, "with `?as=NAME` in the address");
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
        }
        error => error.into(),
    })
}

/// `/conversations`
pub async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Html<String>, PageError> {
    Ok(listing(app, &caller, None).await?)
}

/// The list of conversations, with a form that begins one: as it was filled in, if that was refused, and why.
async fn listing(
    app: Arc<App>,
    caller: &Caller,
    refused: Option<(&BeginForm, &Problem)>,
) -> Result<Html<String>, Problem> {
    let store = caller.store.clone();
    let (types, records, invitations) = blocking(move || {
        let talks = store.conversations();
        Ok((types_of(&app), talks.list()?, talks.invitations()?))
    })
    .await?;
    let about =
        "Try a conversation type: its replies, what is sent for each, what is remembered, and what it costs.";
    let content = html! {
        (heading("Conversations", about, None))
        (invitations::shown(&invitations))
        (panel("begin", "Begin a conversation", begin_form(&types, caller.operator, refused)))
        (panel("all", "Yours", if records.is_empty() { none() } else { listed(caller, &records) }))
    };
    Ok(page(caller, NavItem::Conversations, "Conversations", &content))
}

fn none() -> Markup {
    empty("No conversations", "Those that you began, here, in a terminal or over HTTP, are listed here.")
}

/// `is_operator`: whether others take part without being asked.
fn begin_form(
    types: &[ConversationTypeInfo],
    is_operator: bool,
    refused: Option<(&BeginForm, &Problem)>,
) -> Markup {
    let (kind, people) =
        refused.map_or(("", ALONE), |(form, _)| (form.kind.as_str(), form.participants.as_str()));
    let others = if is_operator {
        "NAME=USER lets another user take part at once."
    } else {
        "NAME=USER invites another user, who accepts under Conversations."
    };
    html! {
        form.inline method="post" action="/conversations" {
            div {
                label for="type" { "Type" }
                select #type name="type" {
                    @for each in types {
                        option value=(each.name) selected[each.name == kind] { (each.name) ": " (each.description) }
                    }
                }
            }
            div {
                label for="participants" { "Participants, with a comma between them" }
                input #participants name="participants" value=(people) autofocus[refused.is_some()]
                    aria-describedby=(if refused.is_some() { "begin-problem invites" } else { "invites" });
                @if let Some((_, problem)) = refused { p.problem #begin-problem role="alert" { (problem.detail) } }
                p.muted #invites { (others) }
            }
            button type="submit" { "Begin" }
        }
    }
}

fn listed(caller: &Caller, records: &[ConversationRecord]) -> Markup {
    let columns = [
        Column::text("Title").heading(),
        Column::text("Type"),
        Column::text("As"),
        Column::text("Begun (UTC)"),
    ];
    let rows = records.iter().map(|record| {
        let own: Vec<&str> = record
            .participants
            .iter()
            .filter(|one| one.user == caller.store.user())
            .map(|one| one.name.as_str())
            .collect();
        let title = if record.title.is_empty() { &record.id } else { &record.title };
        [
            html! {
                @match own.first() {
                    Some(first) => { a href=(address(&record.id, first, "")) { (name(title)) } }
                    None => { (name(title)) }
                }
            },
            name(&record.kind),
            html! {
                @for participant in &own { a href=(address(&record.id, participant, "")) { (name(participant)) } " " }
            },
            moment(record.created),
        ]
    });
    table("Your conversations", columns, rows)
}

/// The fields of the form that begins a conversation.
#[derive(Debug, Deserialize)]
pub struct BeginForm {
    #[serde(rename = "type")]
    kind: String,
    participants: String,
}

/// `POST /conversations`: leads to the conversation, or shows the form again with what was typed.
pub async fn begin(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    form: Result<Form<BeginForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form.map_err(Problem::from)?;
    let problem = match begun_by(&app, &caller, &form).await {
        Ok(to) => return Ok(Redirect::to(&to).into_response()),
        Err(problem) => problem,
    };
    let again = listing(app, &caller, Some((&form, &problem))).await?;
    Ok((problem.status(), again).into_response())
}

/// Begins what a form asks for, and gives the address of the page that shows it.
async fn begun_by(app: &Arc<App>, caller: &Caller, form: &BeginForm) -> Result<String, Problem> {
    let people = form.participants.split(COMMA).map(str::trim).filter(|named| !named.is_empty());
    let participants = people.map(participant_of).collect::<Result<Vec<_>, Problem>>()?;
    let named: Vec<String> = participants.iter().map(|one| one.name.clone()).collect();
    let new = NewConversationBody { kind: form.kind.clone(), title: String::new(), participants };
    let (app, begins) = (Arc::clone(app), caller.clone());
    let begun = blocking_conversation(move || begin_for(&app, &begins, new)).await?;
    let own = begun.participants.iter().filter(|one| one.user == caller.store.user());
    let first = own.min_by_key(|one| named.iter().position(|name| *name == one.name));
    Ok(match first {
        Some(own) => address(&begun.id, &own.name, ""),
        // An operator may begin a conversation of others alone.
        None => "/conversations".to_owned(),
    })
}

/// Someone whom the form names, as `NAME` or `NAME=USER`. What is missing is said as it was typed: the form knows neither
/// ids nor their lengths.
fn participant_of(named: &str) -> Result<NewParticipant, Problem> {
    let Some((name, user)) = named.split_once(OF_USER) else {
        return Ok(NewParticipant { name: named.to_owned(), user: None });
    };
    let (name, user) = (name.trim(), user.trim());
    let missing = if name.is_empty() {
        format!("{named} names no participant; write NAME=USER")
    } else if user.is_empty() {
        format!("{name}= names no user; write {name}=USER, or {name} alone to take part as {name} yourself")
    } else {
        return Ok(NewParticipant { name: name.to_owned(), user: Some(user.to_owned()) });
    };
    Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, missing))
}

/// `/conversations/{id}`
pub async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
) -> Result<Html<String>, PageError> {
    let conversation = open(&app, &caller, id, participant).await?;
    page_of(app, caller, conversation, None).await
}

/// The page of a conversation as it is now, with what an act has just given besides messages.
async fn page_of(
    app: Arc<App>,
    caller: Caller,
    conversation: Conversation,
    given: Option<Markup>,
) -> Result<Html<String>, PageError> {
    let shown = blocking_conversation(move || {
        let record = app.conversations(&caller).show(conversation.id())?;
        let content = chat(&conversation, &record, &caller, given)?;
        Ok(page(&caller, NavItem::Conversations, "Conversation", &content))
    });
    Ok(shown.await?)
}

/// The chat with what is below and next to it, for its caller.
fn chat(
    conversation: &Conversation,
    record: &ConversationRecord,
    caller: &Caller,
    given: Option<Markup>,
) -> Result<Markup, ConversationError> {
    let (id, participant) = (conversation.id(), conversation.participant());
    let messages = conversation.messages(None)?;
    let acts = acts::shown(conversation, record, &messages)?;
    let messages = with_status(messages);
    let own = record.participants.iter().filter(|one| one.user == caller.store.user());
    let tools = html! {
        @for other in own.filter(|other| other.name != participant) {
            a href=(address(id, &other.name, "")) { "As " (name(&other.name)) }
        }
        a href=(address(id, participant, "/memory")) { "Memory and consent" }
    };
    let about = html! { "You speak as " (name(participant)) ". Nobody else sees what is said here." };
    let title = if record.title.is_empty() { &record.kind } else { &record.title };
    let post = address(id, participant, "/messages");
    let said = html! {
        ol.messages #messages aria-live="polite" aria-label="Messages" tabindex="0" {
            @for message in &messages { (bubble(conversation, message)) }
        }
        p.problem #chat-problem role="alert" {}
        form.say method="post" action=(post) data-converse=(id) data-as=(participant)
            data-acts=(address(id, participant, "/acts")) data-aside=(address(id, participant, "/aside")) {
            label for="text" { "Your message" }
            textarea #text name="text" rows="3" required {}
            button type="submit" { "Send" }
        }
    };
    Ok(html! {
        (heading(name(title), about, Some(tools)))
        div.chat {
            div {
                (panel("chat", "Conversation", said))
                @if let Some(given) = given { (given) }
                div #acts { (acts) }
            }
            div #aside { (aside::shown(conversation, None)?) }
        }
    })
}

fn bubble(conversation: &Conversation, ListedMessage { message, status }: &ListedMessage) -> Markup {
    let is_own = message.speaker == Speaker::Participant;
    let draft = (!is_own).then(|| conversation.read_reply(message).draft).flatten();
    html! {
        li class=(if is_own { "own" } else { "reply" }) {
            strong { @if is_own { (name(conversation.participant())) } @else { "Assistant" } }
            @match status {
                Some(MessageStatus::Waiting) => { " " (chip("warn", "waits for its reply")) }
                Some(MessageStatus::Unanswered) => { " " (chip("warn", "has no reply; send it again")) }
                Some(MessageStatus::Answered) | None => {}
            }
            p dir="auto" { (message.text) }
            @if let Some(draft) = draft.filter(|draft| *draft != message.text) {
                span.muted { "A draft, which nobody else has until you share it:" }
                blockquote dir="auto" { (draft) }
            }
        }
    }
}

/// The fields of the form that posts.
#[derive(Debug, Deserialize)]
pub struct SayForm {
    text: String,
}

/// `POST /conversations/{id}/messages`: waits for the reply, and shows the page with it.
pub async fn say(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
    form: Result<Form<SayForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(SayForm { text }) = form.map_err(Problem::from)?;
    let conversation = open(&app, &caller, id, participant).await?;
    let back = address(conversation.id(), conversation.participant(), "");
    let started = larder_engine::blocking::run(move || {
        let number = conversation.post(&text, None)?.number;
        replies::answer(&app, &caller, conversation, number, true)
    });
    let stream = started.await.map_err(|error| Problem::internal(&error))??;
    stream.read(None).ended().await?;
    Ok(Redirect::to(&back).into_response())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
