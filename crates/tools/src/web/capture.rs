//! A visited page as a capture: `webpage_cache/{slug}/` with its manifest, text and data (R1-6). Everything on the page
//! passes through the documents' own writers, which neutralize links and headings in it.

use std::collections::BTreeMap;

use larder_condense::{ContentType, PageText, WebPage, web_page};
use larder_models::web::WebReply;
use larder_vault::layout::PagePlace;
use larder_vault::{
    Captured, ContentSummary, Document, Manifest, Meta, PageContent, PageStretch, Tag, VaultPath, read_json,
    value_names, write_json,
};
use serde_json::{Map, Value, json};

use super::decode::{Decoded, PageForm, decode};
use super::shown;
use crate::context::ToolContext;
use crate::spec::{ToolError, ToolOutput};

/// Maximum bytes of JSON kept as data; larger JSON is only in the text.
const LARGEST_JSON: usize = 512 << 10;
/// The data shown before the text; the rest is in the text.
const SHOWN: [&str; 15] = [
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
    "specifications",
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
    /// Its whole visible text.
    pub(crate) text: String,
    /// Its `page_content.md`.
    pub(crate) document: VaultPath,
    /// What was extracted from it.
    pub(super) data: Map<String, Value>,
    /// Notes about it, such as that it was cut.
    pub(super) notes: Vec<String>,
    /// The addresses that led to it.
    pub(crate) redirected_from: Vec<String>,
    place: PagePlace,
    summary: ContentSummary,
    content: PageContent,
    picture: Option<Vec<u8>>,
    form: PageForm,
}

/// Reads the response and stores its bytes. `asked` are the addresses that led to the page, `url` is its own, after all
/// redirects.
pub(super) fn capture(
    asked: &[String],
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
    if page.text.iter().all(|stretch| stretch.text.is_empty()) {
        notes.push("the page contains no text; scripts may draw it, which are not run".to_owned());
    }
    page.data.insert("url".to_owned(), json!(url));
    let picture =
        picture.and_then(|picture| picture.map_err(|why| notes.push(format!("no screenshot: {why}"))).ok());
    let original = context.documents.store().pointers().insert(&got.body, "web_page", &page.title)?;
    let place = context.turn.page(url);
    let summary = summary(url, &page);
    let content = PageContent {
        title: page.title.clone(),
        url: url.to_owned(),
        captured: context.now,
        original: Some(original.pointer_id),
        text: page.text.into_iter().map(|PageText { main, text }| PageStretch { main, text }).collect(),
        visible_elements: summary.visible_elements.clone(),
    };
    Ok(Visited {
        url: url.to_owned(),
        title: page.title,
        kind: page.kind,
        text: content.whole_text(),
        document: place.content(),
        data: page.data,
        notes,
        redirected_from: redirected_from(asked, url, &place, context),
        place,
        summary,
        content,
        picture,
        form,
    })
}

/// The addresses that led to the page in this turn, apart from its own.
fn redirected_from(asked: &[String], url: &str, place: &PagePlace, context: &ToolContext<'_>) -> Vec<String> {
    let manifest = context.draft_files.get(&inside(context, &place.manifest()));
    let earlier = manifest.and_then(|bytes| read_json::<Manifest>(std::str::from_utf8(bytes).ok()?).value);
    let mut known = earlier.map(|manifest| manifest.redirected_from).unwrap_or_default();
    for asked in asked {
        if asked != url && !known.contains(asked) {
            known.push(asked.clone());
        }
    }
    known
}

/// The path of a file in the turn's folder.
fn inside(context: &ToolContext<'_>, path: &VaultPath) -> String {
    let name = path.as_str().strip_prefix(context.turn.folder()).and_then(|rest| rest.strip_prefix('/'));
    name.unwrap_or(path.as_str()).to_owned()
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
            page.text = vec![PageText { main: true, text }];
            page
        }
    };
    if page.title.trim().is_empty() {
        page.title = url.split_once("://").map_or(url, |(_, rest)| rest).chars().take(200).collect();
    }
    page
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

impl Visited {
    /// The files of the capture, by their path in the turn's folder.
    pub(crate) fn files(&self, context: &ToolContext<'_>) -> BTreeMap<String, Vec<u8>> {
        let manifest = Manifest {
            url: self.url.clone(),
            redirected_from: self.redirected_from.clone(),
            url_slug: self.place.slug().to_owned(),
            title: self.title.clone(),
            visited_at: context.now,
            turn_number: context.turn.number(),
            captured: Captured {
                page_content: true,
                screenshot: self.picture.is_some(),
                extracted_data: !value_names(&self.data).is_empty(),
            },
            content_summary: self.summary.clone(),
            answerable_questions: self.questions(),
        };
        let kind = format!("page_{}", self.place.slug());
        let user = context.documents.user();
        let mut meta = Meta::for_turn(context.turn.number(), &kind, user, context.now);
        meta.tags = vec![Tag::Turn.to_string()];
        let text = Document::new(meta, self.content.clone()).write(&self.place.content());
        let mut files = BTreeMap::from([
            (inside(context, &self.place.manifest()), write_json(&manifest).into_bytes()),
            (inside(context, &self.place.content()), text.into_bytes()),
            (inside(context, &self.place.data()), write_json(&self.data).into_bytes()),
        ]);
        let picture =
            self.picture.clone().map(|picture| (inside(context, &self.place.screenshot()), picture));
        files.extend(picture);
        files
    }

    /// Its screenshot, if there is one.
    pub(super) fn picture(&self) -> Option<&[u8]> {
        self.picture.as_deref()
    }

    /// Adds what a model saw on the screenshot to the main text.
    pub(super) fn add_seen(&mut self, text: &str) {
        self.notes.push("the page has little text; a model described its screenshot".to_owned());
        let text = format!("On the screenshot, as a model read it:\n\n{text}");
        self.content.text.push(PageStretch { main: true, text });
        self.text = self.content.whole_text();
    }

    /// Questions that the capture can answer without another visit (R1-6.7).
    fn questions(&self) -> Vec<String> {
        let values = value_names(&self.data);
        let has = |name: &str| values.iter().any(|value| value == name);
        let all = [
            (true, "what is the page about"),
            (self.summary.page_info.is_some(), "how many pages are there"),
            (self.summary.comment_count.is_some(), "how many comments are there"),
            (has("top_comments"), "who wrote the top comment"),
            (has("author"), "who wrote it"),
            (has("published"), "when was it published"),
            (has("price"), "what did it cost when it was captured"),
            (has("specifications"), "what are the specifications"),
            (has("tables"), "what do the tables say"),
        ];
        all.into_iter().filter(|(can, _)| *can).map(|(_, question)| question.to_owned()).collect()
    }

    /// What the page states as data for machines, such as a price that its text does not show, in a line.
    fn shown_data(&self) -> Option<String> {
        let mut data = self.data.clone();
        data.retain(|name, _| SHOWN.contains(&name.as_str()));
        (!data.is_empty()).then(|| format!("Data: {}\n", Value::Object(data)))
    }

    /// All that the page states: its text, then its data.
    pub(crate) fn stated(&self) -> String {
        self.shown_data().map_or_else(|| self.text.clone(), |data| format!("{}\n\n{data}", self.text))
    }

    /// The page as the result of a call: its address, its data, its main text, then the text around it.
    pub(super) fn output(self, context: &ToolContext<'_>) -> ToolOutput {
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut content = format!("Title: {}\nURL: {}\n", line(&self.title), self.url);
        for note in &self.notes {
            content.push_str(&format!("Note: {note}\n"));
        }
        content.extend(self.shown_data());
        content.push('\n');
        content.push_str(&self.content.main_text());
        let other = self.content.other_text();
        if !other.is_empty() {
            content.push_str(&format!("\n\nText around the main text:\n\n{other}"));
        }
        let mut summary = format!("Visited {} ({} characters)", line(&self.title), self.text.chars().count());
        if let Some(note) = self.notes.first() {
            summary = format!("{summary}; {note}");
        }
        let kind = if self.form == PageForm::Html { ContentType::Markdown } else { ContentType::Generic };
        let output = ToolOutput::success(summary, content).typed(kind);
        ToolOutput { files: self.files(context), ..output }
    }
}
