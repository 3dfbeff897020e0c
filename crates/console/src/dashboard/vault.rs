//! The vault: its tree beside the turns, and any document in it as a page, rendered or raw. Text that others wrote stays
//! text; a picture is shown only if it is a PNG of the vault.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Html;
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_store::{CaptureRow, ResearchRow, StoreError, UserDocuments};
use larder_vault::{Note, VaultPath};
use maud::{Markup, html};
use serde::Deserialize;

use super::documents::{files, when};
use super::figures::{chip, name, number};
use super::layout::{NavItem, PageError, page};
use super::links::{Links, raw_address, vault_address};
use super::markdown::MarkdownPage;
use super::pointers::verbatim;
use super::turn::properties;
use crate::api::{Path, Problem, Query, blocking, document, place_in_turn, vault_path};

/// Research and captures of the tree.
const LISTED: usize = 200;
/// Bytes of a document that is rendered; a larger one is shown raw.
const RENDERED: usize = 512 * 1024;
/// Bytes of a raw document that a page shows.
const SHOWN: usize = 64 * 1024;
/// How a PNG begins.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

struct Tree {
    memory: Vec<VaultPath>,
    research: Vec<ResearchRow>,
    captures: Vec<CaptureRow>,
    sites: Vec<VaultPath>,
    folder: String,
}

impl Tree {
    fn read(documents: &UserDocuments) -> Result<Self, StoreError> {
        let place = documents.place();
        let mut memory = Vec::new();
        let notes = [place.preferences(), place.facts(), place.turns_index(), place.research_index()];
        for path in notes {
            if documents.files().read(&path)?.is_some() {
                memory.push(path);
            }
        }
        memory.extend(documents.files().list(place.memory_index().folder())?);
        let mut captures = documents.catalog().captures(None, None)?;
        captures.truncate(LISTED);
        Ok(Self {
            memory,
            research: documents.catalog().research(None, LISTED as u64)?,
            captures,
            sites: documents.files().list("site_knowledge")?,
            folder: place.preferences().folder().to_owned(),
        })
    }
}

/// `/vault`
pub async fn tree(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Html<String>, PageError> {
    let store = caller.store.clone();
    let tree = blocking(move || Tree::read(&app.documents_of(&store)?)).await?;
    let content = html! {
        div.head {
            div { h1 { "The vault" } p { "What is remembered, what was looked up, and the pages that were read." } }
            div.tools { a href="/documents" { "Turns" } }
        }
        section.panel aria-labelledby="memory" {
            h2 #memory { "Memory" }
            @if tree.memory.is_empty() { div.empty { strong { "Nothing is remembered" } "Preferences and facts of turns are kept here." } }
            @else { (files(tree.memory.iter(), &tree.folder)) }
        }
        section.panel aria-labelledby="research" {
            h2 #research { "Research" }
            @if tree.research.is_empty() { div.empty { strong { "No research" } "What " code { "internet.research" } " finds out is kept here." } }
            @else { (research(&tree.research)) }
        }
        section.panel aria-labelledby="captures" {
            h2 #captures { "Captured pages" }
            @if tree.captures.is_empty() { div.empty { strong { "No pages" } "What " code { "web.visit" } " reads is kept here." } }
            @else { (captures(&tree.captures)) }
        }
        @if !tree.sites.is_empty() {
            section.panel aria-labelledby="sites" { h2 #sites { "Sites" } (files(tree.sites.iter(), "site_knowledge")) }
        }
    };
    Ok(page(&caller, NavItem::Documents, "The vault", &content))
}

fn research(rows: &[ResearchRow]) -> Markup {
    html! {
        div.scroll role="group" aria-label="Research" tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Research" }
                        th scope="col" { "Topic" }
                        th.figure scope="col" { "Turn" }
                        th.figure.optional scope="col" { "Quality" }
                        th.figure.optional scope="col" { "Uses" }
                        th.optional scope="col" { "Made (UTC)" }
                        th scope="col" { "Stands" }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            td { a href=(vault_address(&row.document)) { (name(&row.title)) } }
                            td { (name(&row.topic)) }
                            td.figure { a href={ "/turns/" (row.turn) } { (row.turn) } }
                            td.figure.optional { (row.quality) }
                            td.figure.optional { (number(row.use_count)) }
                            td.optional { (when(row.created_at)) }
                            td {
                                @if row.superseded_by.is_some() { (chip("warn", "superseded")) }
                                @else if let Some(expires) = row.expires_at { "until " (when(expires)) }
                                @else { (chip("good", "evergreen")) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn captures(rows: &[CaptureRow]) -> Markup {
    html! {
        div.scroll role="group" aria-label="Captured pages" tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Page" }
                        th.optional scope="col" { "Address" }
                        th.figure scope="col" { "Turn" }
                        th scope="col" { "Captured (UTC)" }
                        th scope="col" { "Documents" }
                    }
                }
                tbody {
                    @for row in rows {
                        @let beside = |file: &str| VaultPath::new(&format!("{}/{file}", row.manifest.folder()));
                        tr {
                            td { (name(&row.title)) }
                            td.optional { (name(&row.url)) }
                            td.figure { a href={ "/turns/" (row.turn) } { (row.turn) } }
                            td { (when(row.captured_at)) }
                            td {
                                a href=(vault_address(&row.manifest)) { "manifest" }
                                @if let Some(content) = beside("page_content.md") { " · " a href=(vault_address(&content)) { "text" } }
                                @if let Some(data) = beside("extracted_data.json") { " · " a href=(vault_address(&data)) { "data" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// How a document is to be shown.
#[derive(Debug, Deserialize)]
pub struct DocumentPageParams {
    #[serde(default)]
    view: Option<String>,
}

/// A document as its page shows it.
struct OpenDocument {
    bytes: Vec<u8>,
    links: Links,
    leads_to: Vec<VaultPath>,
    linked_from: Vec<VaultPath>,
    turn: Option<u32>,
}

impl OpenDocument {
    fn read(documents: &UserDocuments, at: &VaultPath) -> Result<Option<Self>, StoreError> {
        let Some(bytes) = document(documents, at)? else { return Ok(None) };
        let text = std::str::from_utf8(&bytes).ok().filter(|text| is_rendered(at, text)).unwrap_or_default();
        let links = Links::of(documents, at, text)?;
        let (leads_to, linked_from) =
            (documents.catalog().links_from(at)?, documents.catalog().links_to(at)?);
        let turn = place_in_turn(documents, at).map(|(turn, _)| turn);
        Ok(Some(Self { links, leads_to, linked_from, turn, bytes }))
    }
}

fn is_rendered(at: &VaultPath, text: &str) -> bool {
    at.name().ends_with(".md") && text.len() <= RENDERED
}

/// `/vault/{path}`
pub async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
    Query(DocumentPageParams { view }): Query<DocumentPageParams>,
) -> Result<Html<String>, PageError> {
    let at = vault_path(&path)?;
    let (store, of) = (caller.store.clone(), at.clone());
    let found = blocking(move || OpenDocument::read(&app.documents_of(&store)?, &of)).await?;
    let shown = found.ok_or_else(|| Problem::not_found("there is no such document"))?;
    let is_raw = view.as_deref() == Some("raw");
    let content = html! {
        div.head {
            div {
                h1 { (name(at.name())) }
                p { span.mono { (name(at.folder())) } " · " (number(shown.bytes.len() as u64)) " bytes" }
            }
            div.tools {
                @if let Some(turn) = shown.turn { a href={ "/turns/" (turn) } { "Turn " (turn) } }
                @if is_raw { a href=(vault_address(&at)) { "Rendered" } }
                @else { a href={ (vault_address(&at)) "?view=raw" } { "Raw" } }
                a href=(raw_address(&at)) { "The file" }
            }
        }
        (body(&shown, &at, is_raw))
        (around("links", "What it links to", &shown.leads_to))
        (around("backlinks", "What links here", &shown.linked_from))
    };
    Ok(page(&caller, NavItem::Documents, at.name(), &content))
}

fn body(shown: &OpenDocument, at: &VaultPath, is_raw: bool) -> Markup {
    if shown.bytes.starts_with(PNG) {
        return html! { section.panel { img.shot src=(raw_address(at)) alt={ "The picture " (at.name()) }; } };
    }
    let Ok(text) = std::str::from_utf8(&shown.bytes) else {
        return html! { section.panel { p.muted { "This file is no text; it can be had as it is." } } };
    };
    if is_raw || !is_rendered(at, text) {
        let (first, more) = text.split_at(text.floor_char_boundary(SHOWN));
        return html! {
            section.panel {
                pre.payload.tall tabindex="0" role="group" aria-label="The document, raw" dir="auto" { (verbatim(first)) }
                @if !more.is_empty() { p.muted { "and " (number(more.len() as u64)) " bytes more, in the file" } }
            }
        };
    }
    let note = Note::parse(text);
    let mut sheet = MarkdownPage::new(&shown.links, 1);
    for id in ["main", "links", "backlinks"] {
        sheet.take(id.to_owned());
    }
    html! {
        (properties(&note))
        section.panel.doc { (sheet.show(&note.body)) }
    }
}

fn around(id: &str, title: &str, paths: &[VaultPath]) -> Markup {
    html! {
        @if !paths.is_empty() {
            section.panel aria-labelledby=(id) { h2 id=(id) { (title) } (files(paths.iter(), "")) }
        }
    }
}
