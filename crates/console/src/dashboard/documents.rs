//! The documents of a user: turns, newest first, search, and the tree of everything else in the vault.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_store::{DocumentHit, TurnRow};
use larder_vault::{Timestamp, TurnStatus, VaultPath};
use maud::{Markup, html};
use serde::Deserialize;

use super::figures::{chip, moment, name};
use super::layout::{NavItem, PageError, page};
use super::links::address;
use crate::api::{Hits, Query, SearchParams, TurnList, TurnListParams, UnfinishedTurn, blocking};

/// Turns of a page.
const LISTED: u64 = 50;

/// Which page, or what is sought.
#[derive(Debug, Deserialize)]
pub struct DocumentListParams {
    before: Option<u32>,
    q: Option<String>,
}

/// `/documents`
pub async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Query(DocumentListParams { before, q }): Query<DocumentListParams>,
) -> Result<Html<String>, PageError> {
    let sought = q.filter(|q| !q.trim().is_empty());
    let found = match &sought {
        Some(q) => hits(&app, &caller, q.clone()).await?,
        None => turns(&app, &caller, before).await?,
    };
    let content = html! {
        div.head {
            div {
                h1 { "Documents" }
                p { "Every question is a folder of documents: what was asked, known, planned, done, answered and found right." }
            }
            div.tools { a href="/vault" { "Memory, research, captures" } }
        }
        section.panel aria-labelledby="search" {
            h2 #search { "Search" }
            form.inline method="get" role="search" aria-label="Documents" {
                div {
                    label for="q" { "Words" }
                    input #q name="q" type="search" value=[sought.as_deref()] placeholder="laptop price";
                }
                button type="submit" { "Search" }
                @if sought.is_some() { a href="/documents" { "All turns" } }
            }
        }
        (found)
    };
    Ok(page(&caller, NavItem::Documents, "Documents", &content))
}

async fn hits(app: &Arc<App>, caller: &Caller, q: String) -> Result<Markup, PageError> {
    let (app, store) = (app.clone(), caller.store.clone());
    let sought = SearchParams { q, kind: None, limit: Some(LISTED) };
    let found = blocking(move || Hits::read(&app.documents_of(&store)?, &sought)).await?;
    Ok(html! {
        section.panel aria-labelledby="found" {
            h2 #found { "Found" }
            @if found.hits.is_empty() {
                div.empty { strong { "Nothing" } "No document holds these words." }
            } @else {
                ol.hits { @for hit in &found.hits { (shown_hit(hit)) } }
            }
        }
    })
}

fn shown_hit(hit: &DocumentHit) -> Markup {
    let kind = serde_json::to_value(hit.kind).unwrap_or_default();
    html! {
        li {
            a href=(address(&hit.document)) { (name(hit.document.short())) } " "
            (chip("", kind.as_str().unwrap_or("other")))
            @if let Some(turn) = hit.turn { " " a href={ "/turns/" (turn) } { "turn " (turn) } }
            p dir="auto" { (hit.snippet) }
        }
    }
}

async fn turns(app: &Arc<App>, caller: &Caller, before: Option<u32>) -> Result<Markup, PageError> {
    let (of, who) = (app.clone(), caller.clone());
    let which = TurnListParams { before, limit: Some(LISTED) };
    let found = blocking(move || TurnList::read(&of, &who, &which)).await?;
    Ok(html! {
        @if !found.unfinished.is_empty() { (unfinished(&found.unfinished)) }
        section.panel aria-labelledby="turns" {
            h2 #turns { "Turns" }
            @if found.turns.is_empty() {
                div.empty {
                    strong { "No turns" }
                    code { "larder turn \"…\"" } ", or " code { "POST /api/v1/turns" } ", leaves one here."
                }
            } @else { (table(&found.turns)) }
            div.pages {
                @if before.is_some() { a href="/documents" { "Newest turns" } }
                @if let Some(next) = found.next { a href={ "/documents?before=" (next) } { "Older turns" } }
            }
        }
    })
}

fn unfinished(drafts: &[UnfinishedTurn]) -> Markup {
    html! {
        section.panel aria-labelledby="unfinished" {
            h2 #unfinished { "Not finished" }
            ul.plain {
                @for draft in drafts {
                    li {
                        a href={ "/turns/" (draft.draft.number) } { "Turn " (draft.draft.number) } " "
                        @if draft.running { (chip("good", "running")) } @else { (chip("warn", "stopped")) }
                        " " (name(&draft.draft.query))
                    }
                }
            }
        }
    }
}

fn table(rows: &[TurnRow]) -> Markup {
    html! {
        div.scroll role="group" aria-label="Turns" tabindex="0" {
            table {
                thead {
                    tr {
                        th.figure scope="col" { "Turn" }
                        th scope="col" { "Question" }
                        th.optional scope="col" { "Summary" }
                        th.optional scope="col" { "Topic" }
                        th.figure.optional scope="col" { "Quality" }
                        th scope="col" { "Began (UTC)" }
                        th scope="col" { "Status" }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            td.figure { a href={ "/turns/" (row.number) } { (row.number) } }
                            td { a href={ "/turns/" (row.number) } tabindex="-1" { (name(&row.query)) } }
                            td.optional dir="auto" { @if let Some(summary) = &row.summary { (name(summary)) } }
                            td.optional { @if let Some(topic) = &row.topic { (name(topic)) } }
                            td.figure.optional { @if let Some(quality) = row.quality { (quality) } @else { "–" } }
                            td { (when(row.created_at)) }
                            td { (status(row.status)) @if row.archived { " " (chip("", "archived")) } }
                        }
                    }
                }
            }
        }
    }
}

/// How a turn stands, in a word.
pub fn status(status: TurnStatus) -> Markup {
    let kind = match status {
        TurnStatus::Complete => "good",
        TurnStatus::Failed => "bad",
        TurnStatus::Clarify | TurnStatus::Running | TurnStatus::Interrupted => "warn",
    };
    chip(kind, status.as_str())
}

/// A moment as documents write it.
pub fn when(time: Timestamp) -> Markup {
    match u64::try_from(time.as_millis()) {
        Ok(millis) => moment(larder_store::Timestamp::from_millis(millis)),
        Err(_) => html! { (time) },
    }
}

/// A list of documents, each a link.
pub fn files<'p>(paths: impl Iterator<Item = &'p VaultPath>, from: &str) -> Markup {
    html! {
        ul.plain.columns {
            @for path in paths {
                @let shown = path.as_str().strip_prefix(from).unwrap_or(path.as_str()).trim_start_matches('/');
                li { a href=(super::links::vault_address(path)) { (name(shown)) } }
            }
        }
    }
}
