//! The documents of a user: turns, newest first, search, and the tree of everything else in the vault.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_store::{DocumentHit, TurnRow};
use larder_vault::{DocumentTime, TurnStatus, VaultPath};
use maud::{Markup, html};
use serde::Deserialize;

use super::figures::{moment, name};
use super::layout::{NavItem, PageError, page};
use super::links::address;
use super::ui::{self, Column, chip, empty, heading, pager, panel};
use crate::api::{Hits, Query, SearchParams, TurnList, TurnListParams, UnfinishedTurn, blocking};

/// Turns of a page.
const LISTED: u64 = 50;

/// The page of the list, or the words to search for.
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
    let about = "Every question is a folder of documents: what was asked, known, planned, done, answered and found right.";
    let vault = html! { a href="/vault" { "Memory, research, captures" } };
    let content = html! {
        (heading("Documents", about, Some(vault)))
        (panel("search", "Search", html! {
            form.inline method="get" role="search" aria-label="Documents" {
                div {
                    label for="q" { "Words" }
                    input #q name="q" type="search" value=[sought.as_deref()] placeholder="laptop price";
                }
                button type="submit" { "Search" }
                @if sought.is_some() { a href="/documents" { "All turns" } }
            }
        }))
        (found)
    };
    Ok(page(&caller, NavItem::Documents, "Documents", &content))
}

async fn hits(app: &Arc<App>, caller: &Caller, q: String) -> Result<Markup, PageError> {
    let (app, store) = (app.clone(), caller.store.clone());
    let sought = SearchParams { q, kind: None, limit: Some(LISTED) };
    let found = blocking(move || Hits::read(&app.documents_of(&store)?, &sought)).await?;
    Ok(panel(
        "found",
        "Found",
        html! {
            @if found.hits.is_empty() { (empty("Nothing", "No document holds these words.")) }
            @else { ol.search-hits { @for hit in &found.hits { (shown_hit(hit)) } } }
        },
    ))
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
    let mut pages = Vec::new();
    pages.extend(before.map(|_| ("Newest turns", "/documents".to_owned())));
    pages.extend(found.next.map(|next| ("Older turns", format!("/documents?before={next}"))));
    Ok(html! {
        @if !found.unfinished.is_empty() { (unfinished(&found.unfinished)) }
        (panel("turns", "Turns", html! {
            @if found.turns.is_empty() {
                (empty("No turns", html! {
                    code { "larder turn \"…\"" } ", or " code { "POST /api/v1/turns" } ", leaves one here."
                }))
            } @else { (table(&found.turns)) }
            (pager(&pages))
        }))
    })
}

fn unfinished(drafts: &[UnfinishedTurn]) -> Markup {
    panel(
        "unfinished",
        "Not finished",
        html! {
            ul.plain {
                @for draft in drafts {
                    li {
                        a href={ "/turns/" (draft.draft.number) } { "Turn " (draft.draft.number) } " "
                        @if draft.running { (chip("good", "running")) } @else { (chip("warn", "stopped")) }
                        " " (name(&draft.draft.query))
                    }
                }
            }
        },
    )
}

fn table(rows: &[TurnRow]) -> Markup {
    let columns = [
        Column::number("Turn"),
        Column::text("Question"),
        Column::text("Summary").wide(),
        Column::text("Topic").wide(),
        Column::number("Quality").wide(),
        Column::text("Began (UTC)"),
        Column::text("Status"),
    ];
    let row = |row: &TurnRow| {
        [
            html! { a href={ "/turns/" (row.number) } { (row.number) } },
            html! { a href={ "/turns/" (row.number) } tabindex="-1" { (name(&row.query)) } },
            html! { @if let Some(summary) = &row.summary { (name(summary)) } },
            html! { @if let Some(topic) = &row.topic { (name(topic)) } },
            html! { @if let Some(quality) = row.quality { (quality) } @else { "–" } },
            when(row.created_at),
            html! { (status(row.status)) @if row.archived { " " (chip("", "archived")) } },
        ]
    };
    ui::table("Turns", columns, rows.iter().map(row))
}

/// The status of a turn.
pub fn status(status: TurnStatus) -> Markup {
    let kind = match status {
        TurnStatus::Complete => "good",
        TurnStatus::Failed => "bad",
        TurnStatus::Clarify | TurnStatus::Running | TurnStatus::Interrupted => "warn",
    };
    chip(kind, status.as_str())
}

/// A time as documents write it.
pub fn when(time: DocumentTime) -> Markup {
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
