//! The vault: its tree next to the turns, and any document in it as a page, rendered or raw. Text by others is always
//! escaped, and only PNG files of the vault are shown as pictures.

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
use super::figures::{name, number};
use super::layout::{NavItem, PageError, page};
use super::links::{Links, raw_address, vault_address};
use super::markdown::MarkdownPage;
use super::sharing;
use super::turn::properties;
use super::ui::{self, Column, chip, empty, heading, panel, payload, untitled_panel};
use crate::api::{Path, Problem, Query, SharedList, blocking, document, place_in_turn, vault_path};

/// Research and captures of the tree.
const LISTED: usize = 200;
/// Bytes of a document that is rendered; a larger one is shown raw.
const RENDERED: usize = 512 * 1024;
/// Bytes of a raw document that a page shows.
const SHOWN: usize = 64 * 1024;
/// The signature of a PNG file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

struct FolderTree {
    memory: Vec<VaultPath>,
    research: Vec<ResearchRow>,
    captures: Vec<CaptureRow>,
    sites: Vec<VaultPath>,
    folder: String,
}

impl FolderTree {
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
    let read = blocking(move || {
        let documents = app.documents_of(&store)?;
        Ok((FolderTree::read(&documents)?, SharedList::read(&documents)))
    });
    let (tree, shared) = read.await?;
    let shared = shared.inspect_err(|error| tracing::warn!(%error, "what may be shared is not shown"));
    let shared = shared.ok().and_then(|shared| sharing::shared(&caller, &shared));
    let about = "What Larder remembers, what it looked up, and the pages it read.";
    let memory = if tree.memory.is_empty() {
        empty("Nothing is remembered", "Preferences and facts of turns are kept here.")
    } else {
        files(tree.memory.iter(), &tree.folder)
    };
    let content = html! {
        (heading("The vault", about, Some(html! { a href="/documents" { "Turns" } })))
        (panel("memory", "Memory", memory))
        (panel("research", "Research", research(&tree.research)))
        (panel("captures", "Captured pages", captures(&tree.captures)))
        @if let Some(shared) = shared { (shared) }
        @if !tree.sites.is_empty() { (panel("sites", "Sites", files(tree.sites.iter(), "site_knowledge"))) }
    };
    Ok(page(&caller, NavItem::Documents, "The vault", &content))
}

fn research(rows: &[ResearchRow]) -> Markup {
    if rows.is_empty() {
        return empty("No research", html! { "Findings of " code { "internet.research" } " are kept here." });
    }
    let columns = [
        Column::text("Research"),
        Column::text("Topic"),
        Column::number("Turn"),
        Column::number("Quality").wide(),
        Column::number("Uses").wide(),
        Column::text("Created (UTC)").wide(),
        Column::text("Valid"),
    ];
    let row = |row: &ResearchRow| {
        [
            html! { a href=(vault_address(&row.document)) { (name(&row.title)) } },
            name(&row.topic),
            html! { a href={ "/turns/" (row.turn) } { (row.turn) } },
            html! { (row.quality) },
            html! { (number(row.use_count)) },
            when(row.created_at),
            html! {
                @if row.superseded_by.is_some() { (chip("warn", "superseded")) }
                @else if let Some(expires) = row.expires_at { "until " (when(expires)) }
                @else { (chip("good", "evergreen")) }
            },
        ]
    };
    ui::table("Research", columns, rows.iter().map(row))
}

fn captures(rows: &[CaptureRow]) -> Markup {
    if rows.is_empty() {
        return empty("No pages", html! { "Pages read by " code { "web.visit" } " are kept here." });
    }
    let columns = [
        Column::text("Page"),
        Column::text("Address").wide(),
        Column::number("Turn"),
        Column::text("Captured (UTC)"),
        Column::text("Documents"),
    ];
    let row = |row: &CaptureRow| {
        let sibling = |file: &str| VaultPath::new(&format!("{}/{file}", row.manifest.folder()));
        [
            name(&row.title),
            name(&row.url),
            html! { a href={ "/turns/" (row.turn) } { (row.turn) } },
            when(row.captured_at),
            html! {
                a href=(vault_address(&row.manifest)) { "manifest" }
                @if let Some(content) = sibling("page_content.md") { " · " a href=(vault_address(&content)) { "text" } }
                @if let Some(data) = sibling("extracted_data.json") { " · " a href=(vault_address(&data)) { "data" } }
            },
        ]
    };
    ui::table("Captured pages", columns, rows.iter().map(row))
}

/// How to show a document.
#[derive(Debug, Deserialize)]
pub struct DocumentPageParams {
    #[serde(default)]
    view: Option<String>,
}

/// A document and what its page needs.
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
    let about = html! { span.mono { (name(at.folder())) } " · " (number(shown.bytes.len() as u64)) " bytes" };
    let tools = html! {
        @if let Some(turn) = shown.turn { a href={ "/turns/" (turn) } { "Turn " (turn) } }
        @if is_raw { a href=(vault_address(&at)) { "Rendered" } }
        @else { a href={ (vault_address(&at)) "?view=raw" } { "Raw" } }
        a href=(raw_address(&at)) { "The file" }
    };
    let content = html! {
        (heading(name(at.name()), about, Some(tools)))
        (body(&shown, &at, is_raw))
        (around("links", "What it links to", &shown.leads_to))
        (around("backlinks", "What links here", &shown.linked_from))
    };
    Ok(page(&caller, NavItem::Documents, at.name(), &content))
}

fn body(shown: &OpenDocument, at: &VaultPath, is_raw: bool) -> Markup {
    if shown.bytes.starts_with(PNG) {
        let picture = html! { img.screenshot src=(raw_address(at)) alt={ "The picture " (at.name()) }; };
        return untitled_panel(picture);
    }
    let Ok(text) = std::str::from_utf8(&shown.bytes) else {
        return untitled_panel(
            html! { p.muted { "This file is not text. Open the file itself to read it." } },
        );
    };
    if is_raw || !is_rendered(at, text) {
        let (first, more) = text.split_at(text.floor_char_boundary(SHOWN));
        return untitled_panel(html! {
            div.full-height { (payload("The document, raw", first)) }
            @if !more.is_empty() { p.muted { "and " (number(more.len() as u64)) " bytes more, in the file" } }
        });
    }
    let note = Note::parse(text);
    let mut sheet = MarkdownPage::new(&shown.links, 1);
    for id in ["main", "links", "backlinks"] {
        sheet.take(id.to_owned());
    }
    html! {
        (properties(&note))
        section.panel.prose { (sheet.show(&note.body)) }
    }
}

fn around(id: &str, title: &str, paths: &[VaultPath]) -> Markup {
    html! {
        @if !paths.is_empty() { (panel(id, title, files(paths.iter(), ""))) }
    }
}
