//! What participants give to each other, as forms: a preview of what goes to whom and what speaks against it, the act that
//! confirms exactly that, and what was given and received.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::response::{Redirect, Response};
use axum::{Extension, Form};
use larder_conversation::kind::Sight;
use larder_conversation::memory::Share;
use larder_conversation::sharing::{NewShare, SharePreview};
use larder_conversation::{Conversation, ConversationError};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_gateway::replies::{self, Act, Acted};
use larder_store::{ConversationMessage, ConversationRecord, Speaker};
use maud::{Markup, html};
use serde::Deserialize;

use super::super::figures::{moment, name, segment};
use super::super::layout::PageError;
use super::super::ui::{chip, panel_with_tools};
use super::acts::{after, title};
use super::{AsParams, address, open};
use crate::api::{Path, Problem, Query, ShareList};

/// The panel; nothing where participants see nothing of each other, or there is nobody else. Blocks.
pub(super) fn shown(
    conversation: &Conversation,
    record: &ConversationRecord,
    messages: &[ConversationMessage],
) -> Result<Markup, ConversationError> {
    let kind = &conversation.kind().kind;
    let others = conversation.others()?;
    if !kind.participants.sees.contains(&Sight::Shared) || (others.is_empty() && record.invited.is_empty()) {
        return Ok(html! {});
    }
    let ShareList { given, received } = ShareList::read(conversation)?;
    let preview = conversation.preview()?;
    let draft = conversation.newest_draft(messages).map(|(_, draft)| draft);
    let has_source =
        draft.is_some() || messages.iter().any(|message| message.speaker == Speaker::Participant);
    // What was given already is no longer a draft.
    let draft = draft.filter(|draft| given.iter().all(|share| share.text != *draft));
    // Who was left out of the preview that waits is not ticked again.
    let ticked = preview.as_ref().map(|preview| &preview.to).filter(|to| !to.is_empty()).unwrap_or(&others);
    let to = |rest: &str| address(conversation.id(), conversation.participant(), rest);
    let content = html! {
        p.muted { "Others get nothing of what is said here unless you share it: you see first what would go to whom, and confirm that." }
        @if let Some(preview) = &preview { (previewed(conversation, preview, &others)) }
        h3 { "Shared with you" }
        @if received.is_empty() { p.muted { "Nothing yet." } } @else { (listed(&received)) }
        @if !given.is_empty() { h3 { "Shared by you" } (listed(&given)) }
        h3 { "Share something" }
        @if others.is_empty() { p.muted { "Nobody else takes part yet." } }
        @else if !has_source { p.muted { "Say something first; what you share comes from the conversation." } }
        @else {
            form method="post" action=(to("/shares/preview")) {
                label for="share-text" { "What you want to share" }
                @if draft.is_some() { p.muted { "This is the assistant's draft. Change it as you like." } }
                textarea #share-text name="text" rows="4" required { (draft.unwrap_or_default()) }
                (recipients("share", &others, ticked))
                button type="submit" { "Preview" }
            }
            @for purpose in conversation.purposes()? {
                @let about = kind.actions.get(&purpose).map_or("", |action| action.about.as_str());
                form method="post" action=(to("/shares/preview")) {
                    h3 { "Release for: " (title(&purpose)) }
                    p.muted { (about) " It reads what you release once everyone has released something, and nobody else gets it." }
                    label for={ "release-" (purpose) } { "What you release" }
                    textarea id={ "release-" (purpose) } name="text" rows="4" required {}
                    input type="hidden" name="purpose" value=(purpose);
                    button type="submit" { "Preview" }
                }
            }
        }
    };
    let tools = html! { a href=(to("")) { "Look for news" } };
    Ok(panel_with_tools("sharing", "Sharing", tools, content))
}

/// Who gets the text of a form: the one other, or those who are ticked. The script keeps ticks by their ids, which are made of
/// names: by numbers, the tick of one could become another's when someone joins.
fn recipients(form: &str, others: &[String], ticked: &[String]) -> Markup {
    html! {
        @match others {
            [only] => { input type="hidden" name="to" value=(only); }
            others => fieldset {
                legend { "Who gets it" }
                @for other in others {
                    label.choice {
                        input id={ (form) "-to-" (segment(other)) } type="checkbox" name="to" value=(other)
                            checked[ticked.contains(other)];
                        " " (name(other))
                    }
                }
            }
        }
    }
}

fn previewed(conversation: &Conversation, preview: &SharePreview, others: &[String]) -> Markup {
    let to = |rest: &str| address(conversation.id(), conversation.participant(), rest);
    let goes = preview.purpose.as_ref().map_or_else(
        || preview.to.join(", "),
        |purpose| format!("{}, once everyone has released something", title(purpose)),
    );
    let stopping: Vec<_> = preview.verdicts.iter().filter(|verdict| verdict.stops).collect();
    let suggested = stopping.iter().map(|verdict| verdict.suggestion.as_str()).find(|text| !text.is_empty());
    html! {
        div.preview #preview role="group" aria-labelledby="previewed" {
            h3 #previewed { "Preview: nothing has been given yet" }
            p { "Goes to " strong { (name(&goes)) } ":" }
            blockquote dir="auto" { (preview.text) }
            @for verdict in &stopping {
                p.notice role="alert" {
                    (chip("bad", "stopped")) " This cannot be shared as it is: it attacks who reads it."
                    @if !verdict.spans.is_empty() { " These words do: " (quoted(&verdict.spans)) "." }
                }
            }
            @if preview.verdicts.is_empty() && preview.purpose.is_none() {
                p.muted { "The conversation type names no check of what is shared, so nobody judged this text." }
            }
            @if !preview.warnings.is_empty() {
                p.notice role="alert" {
                    (chip("warn", "may attack")) " Who reads this may take it as an attack, because of: "
                    (quoted(&preview.warnings)) ". Share it only if you mean it."
                }
            }
            @if preview.may_be_shared() {
                form method="post" action=(to("/shares")) {
                    input type="hidden" name="confirm" value=(preview.confirm);
                    button type="submit" { "Give exactly this to " (name(&goes)) }
                }
            }
            details #change open[!preview.may_be_shared()] {
                summary { "Change it" }
                form method="post" action=(to("/shares/preview")) {
                    label for="change-text" { @if suggested.is_some() { "A suggestion, which you can change" } @else { "The text" } }
                    textarea #change-text name="text" rows="4" required { (suggested.unwrap_or(&preview.text)) }
                    @match &preview.purpose {
                        Some(purpose) => { input type="hidden" name="purpose" value=(purpose); }
                        None => { (recipients("change", others, &preview.to)) }
                    }
                    button.secondary type="submit" { "Preview this instead" }
                }
            }
        }
    }
}

fn quoted(words: &[String]) -> Markup {
    html! { @for (at, words) in words.iter().enumerate() { @if at > 0 { ", " } "\u{201c}" (name(words)) "\u{201d}" } }
}

fn listed(shares: &[Share]) -> Markup {
    html! {
        ul.notes {
            @for share in shares {
                li {
                    p.muted {
                        (name(&share.from)) " → "
                        @match &share.purpose { Some(purpose) => (title(purpose)), None => (name(&share.to.join(", "))) }
                        ", " (moment(share.created))
                    }
                    blockquote dir="auto" { (share.text) }
                }
            }
        }
    }
}

/// What a form names: its fields by name, `to` once for each participant. A browser sends line ends as two characters.
fn named(fields: Vec<(String, String)>) -> NewShare {
    let mut new = NewShare::default();
    for (field, value) in fields {
        match field.as_str() {
            "text" => new.text = Some(value.replace("\r\n", "\n")),
            "to" => new.to.push(value),
            "purpose" => new.purpose = Some(value),
            _ => {}
        }
    }
    new
}

/// `POST /conversations/{id}/shares/preview`: has the text judged, and shows what would go to whom.
pub async fn preview(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
    form: Result<Form<Vec<(String, String)>>, FormRejection>,
) -> Result<Redirect, PageError> {
    let Form(fields) = form.map_err(Problem::from)?;
    let conversation = open(&app, &caller, id, participant).await?;
    let back = address(conversation.id(), conversation.participant(), "") + "#preview";
    replies::act(&app, &caller, conversation, Act::Preview(named(fields))).await?;
    Ok(Redirect::to(&back))
}

/// The field of the form that confirms.
#[derive(Debug, Deserialize)]
pub struct ConfirmForm {
    confirm: String,
}

/// `POST /conversations/{id}/shares`: gives what was previewed.
pub async fn share(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(AsParams { participant }): Query<AsParams>,
    form: Result<Form<ConfirmForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(ConfirmForm { confirm }) = form.map_err(Problem::from)?;
    let conversation = open(&app, &caller, id, participant).await?;
    let result = match replies::act(&app, &caller, conversation.clone(), Act::Share(confirm)).await? {
        Acted::Shared(shared) => shared.result,
        Acted::Action(_) | Acted::Preview(_) => None,
    };
    after(app, caller, conversation, result).await
}
