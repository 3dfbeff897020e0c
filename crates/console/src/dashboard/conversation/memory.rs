//! What a conversation remembers of a person, in words for that person: what is kept, by which consent, and how to correct,
//! forget, revoke and take it along.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::response::{Html, Redirect};
use axum::{Extension, Form};
use larder_conversation::Conversation;
use larder_conversation::memory::{Consent, EVERYTHING, consent_text};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_text::tokens::Counter;
use larder_text::words::is_blank;
use maud::{Markup, Render, html};
use serde::Deserialize;

use super::super::figures::{moment, name, segment};
use super::super::layout::{NavItem, PageError, page};
use super::super::ui::{chip, empty, heading, panel};
use super::{AsParams, address, open};
use crate::api::{
    ConsentList, ConsentScope, Path, Problem, Query, RememberedFact, blocking_conversation, remembered,
};

/// What a person agrees to, as the page shows it and as it is recorded.
fn text_of(scope: &ConsentScope) -> String {
    consent_text(match scope.scope.as_str() {
        EVERYTHING => None,
        name => Some((name, &scope.about)),
    })
}

/// `/conversations/{id}/memory`
pub async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
) -> Result<Html<String>, PageError> {
    let conversation = open(&app, &caller, id, participant).await?;
    let content = blocking_conversation(move || {
        let (facts, consents) = (remembered(&conversation)?, ConsentList::read(&conversation)?);
        Ok(content(&conversation, &facts, &consents))
    });
    Ok(page(&caller, NavItem::Conversations, "Memory and consent", &content.await?))
}

fn content(conversation: &Conversation, facts: &[RememberedFact], consents: &ConsentList) -> Markup {
    let to = |rest: &str| address(conversation.id(), conversation.participant(), rest);
    let about = html! { "What is remembered of " (name(conversation.participant())) ", and what you decide about it." };
    html! {
        (heading("Memory and consent", about, Some(html! { a href=(to("")) { "Back to the conversation" } })))
        (panel("short", "In short", html! {
            ul {
                li { "What you say is yours. Other people in this conversation see nothing of it, unless you share a text yourself." }
                li { "While you talk, short notes are made of what matters. Below you see every note, and the words of yours it comes from." }
                li { "Notes end with their session, unless you agree below that they may be kept." }
                li { "You can take an agreement back at any time. From your next message on nothing is used any more, and within a minute it is erased." }
            }
        }))
        (panel("consents", "What you agreed to", consents_of(conversation, consents)))
        (panel("notes", "What is noted about you", notes(conversation, facts, consents)))
        (panel("leave", "Take along or leave", html! {
            p {
                a href=(export_of(conversation)) download={ (conversation.id()) ".json" } {
                    "Download everything you said here"
                }
                " as " (name(conversation.participant())) ", with all replies, as a file."
            }
            (confirmed(&to("/delete"), "Delete this conversation", html! {
                "Your messages here as " (name(conversation.participant())) ", their replies and the notes from them are erased."
            }))
            (confirmed(&to("/forget-me"), "Forget me", "Everything that was said under this name, in all conversations, all notes and all agreements are erased."))
            p.muted { "Copies that were made before, such as backups, keep what they have until they are deleted." }
        }))
    }
}

/// The address of the file with one side of a conversation, without those of other names of the user.
fn export_of(conversation: &Conversation) -> String {
    let (id, participant) = (conversation.id(), segment(conversation.participant()));
    format!("/api/v1/conversations/{id}/export?participant={participant}")
}

/// A form that does something that cannot be undone, behind a box to tick.
fn confirmed(to: &str, title: &str, consequence: impl Render) -> Markup {
    html! {
        form.inline method="post" action=(to) {
            p { (consequence) " This cannot be undone." }
            label { input type="checkbox" required; " I want that" }
            button.secondary type="submit" { (title) }
        }
    }
}

fn consents_of(conversation: &Conversation, list: &ConsentList) -> Markup {
    let to = |rest: &str| address(conversation.id(), conversation.participant(), rest);
    let in_force = |scope: &ConsentScope| {
        list.consents.iter().find(|consent| consent.scope == scope.scope && consent.revoked.is_none())
    };
    let past: Vec<&Consent> = list.consents.iter().filter(|consent| consent.revoked.is_some()).collect();
    html! {
        ul.notes {
            @for scope in &list.scopes {
                li {
                    @match in_force(scope) {
                        Some(held) => {
                            p { (chip("good", "agreed")) " " (name(&held.shown)) }
                            p.muted { "since " (moment(held.since)) }
                            form method="post" action=(to(&format!("/consents/{}/revoke", held.id))) {
                                button.secondary type="submit" { "Revoke, and erase what was kept by it" }
                            }
                        }
                        None => {
                            p { (chip("", "not agreed")) " " (text_of(scope)) }
                            form method="post" action=(to("/consents")) {
                                input type="hidden" name="scope" value=(scope.scope);
                                button type="submit" { "I agree" }
                            }
                        }
                    }
                }
            }
        }
        @if !past.is_empty() {
            details {
                summary { "What you agreed to before" }
                ul {
                    @for consent in past {
                        li { (name(&consent.shown)) " From " (moment(consent.since))
                            @if let Some(end) = consent.revoked { " to " (moment(end)) } }
                    }
                }
            }
        }
    }
}

/// How long a note is kept. What was made by an agreement that is over is still there until a job has erased it.
fn kept(consent: Option<&str>, list: &ConsentList) -> &'static str {
    let is_in_force = |id: &str| list.consents.iter().any(|held| held.id == id && held.revoked.is_none());
    match consent {
        None => "for its session only",
        Some(id) if is_in_force(id) => "kept, because you agreed",
        Some(_) => "agreement revoked: will be erased within a minute",
    }
}

fn notes(conversation: &Conversation, facts: &[RememberedFact], consents: &ConsentList) -> Markup {
    let to = |rest: &str| address(conversation.id(), conversation.participant(), rest);
    if facts.is_empty() {
        return empty(
            "Nothing",
            "Notes are made behind replies, where you said something that matters later.",
        );
    }
    html! {
        ul.notes {
            @for RememberedFact { fact, words } in facts {
                li {
                    p { (name(&fact.said.fact)) " " (chip("", &fact.said.category)) }
                    p.muted {
                        @match words {
                            Some(words) => { "From what was said: \u{201c}" (name(words)) "\u{201d}" }
                            None => { "The message it comes from was deleted." }
                        }
                        " · " (moment(fact.created)) " · "
                        (kept(fact.consent.as_deref(), consents))
                        @if let Some(end) = fact.valid_until { " · no longer used since " (moment(end)) }
                    }
                    @if fact.valid_until.is_none() {
                        form.inline method="post" action=(to(&format!("/facts/{}", fact.id))) {
                            label.visually-hidden for={ "correct-" (fact.id) } { "What is right" }
                            input id={ "correct-" (fact.id) } name="fact" value=(fact.said.fact) required;
                            button.secondary type="submit" { "Correct" }
                        }
                    }
                    form method="post" action=(to(&format!("/facts/{}/forget", fact.id))) {
                        button.secondary type="submit" { "Forget" }
                    }
                }
            }
        }
    }
}

/// Changes something that is remembered, and leads back to the page.
async fn changed(
    app: &Arc<App>,
    caller: &Caller,
    id: String,
    participant: Option<String>,
    change: impl FnOnce(&Conversation) -> Result<bool, larder_conversation::ConversationError> + Send + 'static,
) -> Result<Redirect, PageError> {
    let conversation = open(app, caller, id, participant).await?;
    let back = address(conversation.id(), conversation.participant(), "/memory");
    match blocking_conversation(move || change(&conversation)).await? {
        true => Ok(Redirect::to(&back)),
        false => Err(Problem::not_found("it is no longer there; the page was older than that").into()),
    }
}

/// The field of the form that agrees.
#[derive(Debug, Deserialize)]
pub struct ConsentForm {
    scope: String,
}

/// `POST /conversations/{id}/consents`
pub async fn give(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
    form: Result<Form<ConsentForm>, FormRejection>,
) -> Result<Redirect, PageError> {
    let Form(ConsentForm { scope }) = form.map_err(Problem::from)?;
    let giving = changed(&app, &caller, id, participant, move |conversation| {
        let list = ConsentList::read(conversation)?;
        let Some(scope) = list.scopes.iter().find(|known| known.scope == scope) else { return Ok(false) };
        conversation.memory(&Counter::cl100k()).grant(&scope.scope, &text_of(scope))?;
        Ok(true)
    });
    giving.await
}

/// `POST /conversations/{id}/consents/{consent}/revoke`
pub async fn revoke(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((id, consent)): Path<(String, String)>,
    Query(AsParams { participant }): Query<AsParams>,
) -> Result<Redirect, PageError> {
    let revoking = changed(&app, &caller, id, participant, move |conversation| {
        Ok(conversation.memory(&Counter::cl100k()).revoke(&consent)?.is_some())
    });
    revoking.await
}

/// The field of the form that corrects.
#[derive(Debug, Deserialize)]
pub struct FactForm {
    fact: String,
}

/// `POST /conversations/{id}/facts/{fact}`
pub async fn correct(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((id, fact)): Path<(String, String)>,
    Query(AsParams { participant }): Query<AsParams>,
    form: Result<Form<FactForm>, FormRejection>,
) -> Result<Redirect, PageError> {
    let Form(FactForm { fact: text }) = form.map_err(Problem::from)?;
    let correcting = changed(&app, &caller, id, participant, move |conversation| {
        if is_blank(&text) {
            return Err(larder_conversation::ConversationError::Empty);
        }
        Ok(conversation.memory(&Counter::cl100k()).correct(&fact, &text)?.is_some())
    });
    correcting.await
}

/// `POST /conversations/{id}/facts/{fact}/forget`
pub async fn forget(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((id, fact)): Path<(String, String)>,
    Query(AsParams { participant }): Query<AsParams>,
) -> Result<Redirect, PageError> {
    let forgetting = changed(&app, &caller, id, participant, move |conversation| {
        Ok(conversation.memory(&Counter::cl100k()).erase(&fact)?)
    });
    forgetting.await
}

/// `POST /conversations/{id}/delete`
pub async fn delete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
) -> Result<Redirect, PageError> {
    // The user may take part under other names, too, and what was said under those stays.
    let side = open(&app, &caller, id, participant).await?;
    let (id, participant) = (side.id().to_owned(), side.participant().to_owned());
    let erasing = larder_engine::blocking::spawn(async move {
        app.conversations(&caller).delete(&id, Some(&participant)).await
    });
    erasing.await.map_err(|error| Problem::internal(&error))?.map_err(Problem::from)?;
    Ok(Redirect::to("/conversations"))
}

/// `POST /conversations/{id}/forget-me`
pub async fn forget_person(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
) -> Result<Redirect, PageError> {
    let person = open(&app, &caller, id, participant).await?.participant().to_owned();
    let erasing =
        larder_engine::blocking::spawn(async move { app.conversations(&caller).forget(&person).await });
    erasing.await.map_err(|error| Problem::internal(&error))?.map_err(Problem::from)?;
    Ok(Redirect::to("/conversations"))
}
