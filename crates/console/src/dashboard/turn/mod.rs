//! The page of one turn: `context.md` section by section, its time and cost, its tools, its claims and their sources, and
//! its documents; while it runs, its progress.

mod claims;
mod live;
mod read;
mod sections;
mod tables;

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use maud::{Markup, html};

pub use claims::one as claim;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
pub use live::events;
use read::TurnDocuments;
pub use sections::properties;

use super::documents::{files, status, when};
use super::figures::name;
use super::layout::{NavItem, PageError, page};
use super::links::{raw_address, vault_address};
use super::markdown::MarkdownPage;
use super::ui::{chip, heading, panel};
use crate::api::{Path, Problem, blocking};

/// `/turns/{number}`
pub async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(number): Path<u32>,
) -> Result<Html<String>, PageError> {
    let (of, who) = (app.clone(), caller.clone());
    let found = blocking(move || TurnDocuments::read(&of, &who, number)).await?;
    let shown = found.ok_or_else(|| Problem::not_found(format!("there is no turn {number}")))?;
    Ok(page(&caller, NavItem::Documents, &format!("Turn {number}"), &whole(&shown, number)))
}

fn whole(shown: &TurnDocuments, number: u32) -> Markup {
    let mut sheet = MarkdownPage::new(&shown.links, 2);
    for id in [
        "main",
        "took",
        "tools",
        "sources",
        "claims",
        "considered",
        "files",
        "backlinks",
        "live-state",
        "live-pause",
    ] {
        sheet.take(id.to_owned());
    }
    let documents = shown.files.iter().filter(|file| !file.name().ends_with(".json.md"));
    html! {
        (head(shown, number))
        @if shown.is_running { (live::panel(number)) }
        @else if shown.is_elsewhere {
            p.notice role="note" {
                "This turn is running in another process. Reload this page to see its progress."
            }
        }
        @else if let Some(draft) = &shown.draft {
            p.notice role="note" {
                "This turn was stopped"
                @if let Some(phase) = draft.phase { " after phase " (phase) }
                ". " code { "larder turn resume " (number) } " or " code { "POST /api/v1/turns/" (number) "/resume" }
                " resumes it."
            }
        }
        (sections::all(&shown.context, &mut sheet))
        (tables::sources(&shown.sources))
        (tables::claims(&shown.claims, number))
        (tables::tools(&shown.results, shown.place("toolresults.md").as_ref()))
        (tables::took(shown))
        (tables::considered(&shown.considered))
        (panel("files", "Its documents", files(documents, shown.folder())))
        (backlinks(shown))
    }
}

fn head(shown: &TurnDocuments, number: u32) -> Markup {
    let at = &shown.at;
    let about = html! {
        "Turn " (number)
        @if let Some(row) = &shown.row {
            " · " (when(row.created_at))
            @if let Some(topic) = &row.topic { " · " (name(topic)) }
            @if let Some(quality) = row.quality { " · quality " (quality) }
            @if let Some(session) = &row.session { " · session " (name(session)) }
        }
    };
    let tools = html! {
        @match (&shown.row, shown.is_running || shown.is_elsewhere) {
            (Some(row), _) => { (status(row.status)) @if row.archived { (chip("", "archived")) } },
            (None, true) => (chip("good", "running")),
            (None, false) => (chip("warn", "stopped")),
        }
        a href=(vault_address(at)) { "As one document" }
        a href=(raw_address(at)) { "Raw" }
    };
    html! {
        (heading(name(&shown.query), about, Some(tools)))
        @if let Some(summary) = shown.row.as_ref().and_then(|row| row.summary.as_ref()) {
            p.lead dir="auto" { (summary) }
        }
    }
}

fn backlinks(shown: &TurnDocuments) -> Markup {
    html! {
        @if !shown.backlinks.is_empty() {
            (panel("backlinks", "What links here", files(shown.backlinks.iter(), "")))
        }
    }
}

#[cfg(test)]
mod tests;
