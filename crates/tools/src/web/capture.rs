//! A visited page as a capture: `webpage_cache/{slug}/` with its manifest, text and data (R1-6). Everything on the page
//! passes through the documents' own writers, which neutralize links and headings in it.

use std::collections::BTreeMap;

use larder_condense::{ContentType, WebPage, web_page};
use larder_models::web::WebReply;
use larder_vault::{
    Captured, ContentSummary, Document, Manifest, Meta, PageContent, Tag, VaultPath, write_json,
};
use serde_json::{Map, Value, json};

use super::decode::{Decoded, PageForm, decode};
use super::shown;
use crate::context::ToolContext;
use crate::spec::{ToolError, ToolOutput};

/// Maximum bytes of JSON kept as data; larger JSON is only in the text.
const LARGEST_JSON: usize = 512 << 10;
/// The data shown before the text; the rest is in the text.
const SHOWN: [&str; 14] = [
    "author",
    "published",
    "modified",
    "price",
    "currency",
    "availability",
    "brand",
    "rating",
    "reviews",
    "pagination",
    "comment_count",
    "products",
    "top_comments",
    "description",
];

/// A page that was visited.
pub(crate) struct Visited {
    /// Its address after all redirects.
    pub(crate) url: String,
    /// Its title.
    pub(crate) title: String,
    /// Its kind, such as `product` (R1-6.6).
    pub(crate) kind: &'static str,
    /// Its text.
    pub(crate) text: String,
    /// Its `page_content.md`.
    pub(crate) document: VaultPath,
    /// For the turn's folder.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Notes about it, such as that it was cut.
    notes: Vec<String>,
    data: Map<String, Value>,
    form: PageForm,
}

/// Reads the response and writes the capture.
pub(super) fn capture(
    url: &str,
    got: &WebReply,
    picture: Option<Result<Vec<u8>, String>>,
    context: &ToolContext<'_>,
) -> Result<Visited, ToolError> {
    if !(200..=299).contains(&got.status) {
        return Err(ToolError::Failed(refusal(url, got.status)));
    }
    let content_type = got.content_type.as_deref();
    let Some(decoded) = decode(content_type, &got.body) else {
        let kind = content_type.unwrap_or("no text").chars().take(80).collect::<String>();
        return Err(ToolError::Failed(format!(
            "{} is {kind} ({} bytes), which cannot be read as a page",
            shown(url),
            got.body.len()
        )));
    };
    let mut notes = Vec::new();
    if got.truncated {
        notes.push(format!("only the first {} bytes of the page were read", got.body.len()));
    }
    if decoded.damaged {
        notes.push("some bytes are invalid in the page's encoding and were replaced with U+FFFD".to_owned());
    }
    let form = decoded.form;
    let mut page = read(url, decoded);
    if page.text.is_empty() {
        notes.push("the page contains no text; scripts may draw it, which are not run".to_owned());
    }
    page.data.insert("url".to_owned(), json!(url));
    let picture = match picture {
        Some(Ok(bytes)) => Some(bytes),
        Some(Err(why)) => {
            notes.push(format!("no screenshot: {why}"));
            None
        }
        None => None,
    };
    let place = context.turn.page(url);
    let files = files(url, &page, picture, context);
    let WebPage { title, kind, text, data, .. } = page;
    Ok(Visited {
        url: url.to_owned(),
        title,
        kind,
        text,
        document: place.content(),
        files,
        notes,
        data,
        form,
    })
}

fn refusal(url: &str, status: u16) -> String {
    let why = match status {
        401 | 403 => "it denies access",
        404 | 410 => "there is no such page",
        429 => "it received too many requests; try another source",
        500.. => "it fails",
        _ => "it returned no page",
    };
    format!("{} answered {status}: {why}", shown(url))
}

fn read(url: &str, decoded: Decoded) -> WebPage {
    let Decoded { form, text, .. } = decoded;
    let mut page = match form {
        PageForm::Html => web_page(&text),
        PageForm::Json | PageForm::Text => {
            let mut page = WebPage { kind: "text", elements: vec!["text"], ..WebPage::default() };
            if form == PageForm::Json {
                page.kind = "json";
                let value = (text.len() <= LARGEST_JSON).then(|| serde_json::from_str(&text).ok()).flatten();
                page.data.extend(value.map(|value: Value| ("json".to_owned(), value)));
            }
            page.text = text;
            page
        }
    };
    if page.title.trim().is_empty() {
        page.title = url.split_once("://").map_or(url, |(_, rest)| rest).chars().take(200).collect();
    }
    page
}

/// The files of the capture, by their path in the turn's folder.
fn files(
    url: &str,
    page: &WebPage,
    picture: Option<Vec<u8>>,
    context: &ToolContext<'_>,
) -> BTreeMap<String, Vec<u8>> {
    let place = context.turn.page(url);
    let inside = |path: &VaultPath| {
        let path = path.as_str();
        let name = path.strip_prefix(context.turn.folder()).and_then(|rest| rest.strip_prefix('/'));
        name.unwrap_or(path).to_owned()
    };
    let captured = Captured { page_content: true, screenshot: picture.is_some(), extracted_data: true };
    let manifest = Manifest {
        url: url.to_owned(),
        url_slug: place.slug().to_owned(),
        title: page.title.clone(),
        visited_at: context.now,
        turn_number: context.turn.number(),
        captured,
        content_summary: summary(url, page),
        answerable_questions: questions(page),
    };
    let content = PageContent {
        title: page.title.clone(),
        url: url.to_owned(),
        captured: context.now,
        text: page.text.clone(),
        visible_elements: page.elements.iter().map(|element| (*element).to_owned()).collect(),
    };
    let kind = format!("page_{}", place.slug());
    let mut meta = Meta::for_turn(context.turn.number(), &kind, context.documents.user(), context.now);
    meta.tags = vec![Tag::Turn.to_string()];
    let text = Document::new(meta, content).write(&place.content());
    let mut files = BTreeMap::from([
        (inside(&place.manifest()), write_json(&manifest).into_bytes()),
        (inside(&place.content()), text.into_bytes()),
        (inside(&place.data()), write_json(&page.data).into_bytes()),
    ]);
    files.extend(picture.map(|picture| (inside(&place.screenshot()), picture)));
    files
}

fn summary(url: &str, page: &WebPage) -> ContentSummary {
    let host =
        url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?']).next().unwrap_or_default();
    ContentSummary {
        kind: page.kind.to_owned(),
        site: page.site.clone().unwrap_or_else(|| host.strip_prefix("www.").unwrap_or(host).to_owned()),
        has_pagination: page.continues || page.pagination.is_some_and(|(_, total)| total > 1),
        page_info: page.pagination.map(|(current, total)| format!("Page {current} of {total}")),
        comment_count: page.comments,
        visible_elements: page.elements.iter().map(|element| (*element).to_owned()).collect(),
    }
}

/// Questions that the capture can answer without another visit (R1-6.7).
fn questions(page: &WebPage) -> Vec<String> {
    let has = |name: &str| page.data.contains_key(name);
    let all = [
        (true, "what is the page about"),
        (page.pagination.is_some(), "how many pages are there"),
        (page.comments.is_some(), "how many comments are there"),
        (has("top_comments"), "who wrote the top comment"),
        (has("author"), "who wrote it"),
        (has("published"), "when was it published"),
        (has("price") || has("products"), "what did it cost when it was captured"),
        (has("tables"), "what do the tables say"),
    ];
    all.into_iter().filter(|(can, _)| *can).map(|(_, question)| question.to_owned()).collect()
}

impl Visited {
    /// The page as the result of a call: its address, its data, its text.
    pub(super) fn output(mut self) -> ToolOutput {
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut content = format!("Title: {}\nURL: {}\n", line(&self.title), self.url);
        for note in &self.notes {
            content.push_str(&format!("Note: {note}\n"));
        }
        self.data.retain(|name, _| SHOWN.contains(&name.as_str()));
        if !self.data.is_empty() {
            content.push_str(&format!("Data: {}\n", Value::Object(self.data)));
        }
        content.push('\n');
        content.push_str(&self.text);
        let mut summary = format!("Visited {} ({} characters)", line(&self.title), self.text.chars().count());
        if let Some(note) = self.notes.first() {
            summary = format!("{summary}; {note}");
        }
        let kind = if self.form == PageForm::Html { ContentType::Markdown } else { ContentType::Generic };
        let output = ToolOutput::success(summary, content).typed(kind);
        ToolOutput { files: self.files, ..output }
    }
}
