//! The content of a capture at the chosen level, with its age (R1-6.10 to R1-6.13, R1-14.5, R1-14.7). The text of a
//! page is data and is passed on unchanged.

use larder_text::words::counted;
use larder_vault::lifecycle::PER_DOCUMENT_CAP;
use larder_vault::{Document, ExtractedData, Manifest, PageContent, VaultPath, read_json, value_names};
use serde_json::Value;

use super::rules::{LevelChoice, PageContents, PageLevel, choose_level, is_one_of, is_stale};
use super::{FoundCapture, PageAnswer, SMALL_PAGE, SmallPage};
use crate::Retrieval;
use crate::extract::cut;
use crate::index::{Index, Query, Record};
use crate::phrases::PaddedQuery;
use crate::records::divide;
use crate::render::{line, when};

/// The files next to a manifest.
struct CaptureFiles {
    data: Option<(VaultPath, ExtractedData)>,
    content: Option<(VaultPath, PageContent)>,
}

/// The answer of a capture to `query`.
pub(super) async fn write(
    retrieval: &Retrieval<'_>,
    query: &str,
    capture: &FoundCapture,
    manifest: &Manifest,
) -> PageAnswer {
    let files = CaptureFiles::read(retrieval, &capture.manifest).await;
    let age = retrieval.age(manifest.visited_at);
    let choice = choose_level(query, Some(&holds(manifest, &files, age)));
    let (text, document) = match choice.level {
        PageLevel::Navigate | PageLevel::Search => elsewhere(retrieval, query, capture, manifest, &files),
        _ => files.say(retrieval, query, choice, capture, manifest),
    };
    let small_page = files.small_page(retrieval).filter(|page| page.document != document);
    PageAnswer {
        level: choice.level,
        text: cut(&text, PER_DOCUMENT_CAP, retrieval.counter, document.as_str()).0,
        source_url: manifest.url.clone(),
        captured_at: manifest.visited_at,
        age_seconds: age,
        may_be_stale: is_stale(manifest.visited_at, retrieval.now),
        document,
        small_page,
        why: choice.why.to_owned(),
    }
}

fn holds(manifest: &Manifest, files: &CaptureFiles, age: u64) -> PageContents {
    let summary = &manifest.content_summary;
    let data = files.data.iter().flat_map(|(_, data)| value_names(data));
    PageContents {
        pages: summary.page_info.is_some(),
        comments: summary.comment_count.is_some(),
        data: data.collect(),
        topic: topic(manifest, files.data.as_ref().map(|(_, data)| data)),
        content: files.content.as_ref().is_some_and(|(_, content)| !content.whole_text().trim().is_empty()),
        age,
    }
}

/// What names the page and its products.
fn topic(manifest: &Manifest, data: Option<&ExtractedData>) -> String {
    let summary = &manifest.content_summary;
    let mut names = vec![&manifest.title, &manifest.url, &summary.kind, &summary.site];
    let products = data.and_then(|data| data.get("products")?.as_array());
    let things = products.into_iter().flatten().filter_map(Value::as_object).chain(data);
    for thing in things {
        let named = ["name", "brand", "model", "category"].iter().filter_map(|name| thing.get(*name));
        names.extend(
            named.filter_map(|value| if let Value::String(text) = value { Some(text) } else { None }),
        );
    }
    names.into_iter().map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// The captured text, for a query that needs the page itself: the model sees both, and how old the capture is.
fn elsewhere(
    retrieval: &Retrieval<'_>,
    query: &str,
    capture: &FoundCapture,
    manifest: &Manifest,
    files: &CaptureFiles,
) -> (String, VaultPath) {
    let words = PaddedQuery::new(query);
    let names = files.data.as_ref().map(|(_, data)| value_names(data)).unwrap_or_default();
    let named = names.iter().any(|name| words.name(name));
    let level = if named { PageLevel::Data } else { PageLevel::Manifest };
    let choice = LevelChoice { level, why: "", values: &[] };
    let (said, document) = files.say(retrieval, query, choice, capture, manifest);
    let visited = when(manifest.visited_at, retrieval.age(manifest.visited_at));
    let text = format!(
        "The page was visited ({visited}) and may have changed since. For how it is now go to {}.\nAt that visit:\n{said}",
        line(&manifest.url),
    );
    (text, document)
}

impl CaptureFiles {
    /// Reads whatever is readable; missing or broken files are ignored.
    async fn read(retrieval: &Retrieval<'_>, manifest: &VaultPath) -> Self {
        let data = sibling(retrieval, manifest, "extracted_data.json").await;
        let content = sibling(retrieval, manifest, "page_content.md").await;
        Self {
            data: data.and_then(|(path, text)| Some((path, read_json::<ExtractedData>(&text).value?))),
            content: content.and_then(|(path, text)| {
                let page = Document::<PageContent>::read(&text, &path).value?.value;
                Some((path, page))
            }),
        }
    }

    /// The text of the page, if all of it may be said.
    fn small_page(&self, retrieval: &Retrieval<'_>) -> Option<SmallPage> {
        let (document, page) = self.content.as_ref()?;
        let text = page.whole_text();
        let is_small = retrieval.counter.count_up_to(&text, SMALL_PAGE).is_some() && !text.trim().is_empty();
        is_small.then(|| SmallPage { document: document.clone(), text })
    }

    /// The answer of a level, and the file it is from.
    fn say(
        &self,
        retrieval: &Retrieval<'_>,
        query: &str,
        choice: LevelChoice,
        capture: &FoundCapture,
        manifest: &Manifest,
    ) -> (String, VaultPath) {
        match (choice.level, &self.data, &self.content) {
            (PageLevel::Data, Some((path, data)), _) => (from_data(query, choice.values, data), path.clone()),
            (PageLevel::Content, _, Some((path, page))) => {
                let whole = self.small_page(retrieval).map(|page| page.text);
                (whole.unwrap_or_else(|| from_text(retrieval, query, page)), path.clone())
            }
            _ => (from_manifest(manifest), capture.manifest.clone()),
        }
    }
}

async fn sibling(retrieval: &Retrieval<'_>, manifest: &VaultPath, name: &str) -> Option<(VaultPath, String)> {
    let path = manifest.join(name)?;
    let text = retrieval.documents.files().read_text(&path).ok()??;
    Some((path, text))
}

/// Simple facts, in sentences (R1-14.5).
fn from_manifest(manifest: &Manifest) -> String {
    let summary = &manifest.content_summary;
    let kind = summary.kind.rsplit('_').next().filter(|kind| !kind.is_empty()).unwrap_or("page");
    let mut lines = Vec::new();
    if let Some(info) = &summary.page_info {
        let pages = info.rsplit_once(" of ").and_then(|(_, count)| count.trim().parse::<u64>().ok());
        lines.push(match pages {
            Some(pages) => format!("The {kind} has {} (from cached visit record).", counted(pages, "page")),
            None => format!("Pages: {} (from cached visit record).", line(info)),
        });
    }
    if let Some(count) = summary.comment_count {
        lines.push(format!("The {kind} has {} (from cached visit record).", counted(count, "comment")));
    }
    lines.push(format!("Title: {}", line(&manifest.title)));
    if !summary.site.is_empty() {
        lines.push(format!("Site: {}", line(&summary.site)));
    }
    lines.push(format!("Address: {}", line(&manifest.url)));
    if !summary.visible_elements.is_empty() {
        lines.push(format!("To be seen on it: {}", line(&summary.visible_elements.join(", "))));
    }
    lines.join("\n")
}

/// The values that the rule asks for or the query names; all if there are none.
fn from_data(query: &str, values: &[&str], data: &ExtractedData) -> String {
    let words = PaddedQuery::new(query);
    let touched = |name: &str| {
        is_one_of(name, values) || PaddedQuery::new(name).subjects().any(|word| words.name(word))
    };
    let is_asked = |name: &String, value: &Value| {
        let one = ExtractedData::from_iter([(name.clone(), value.clone())]);
        value_names(&one).iter().any(|name| touched(name))
    };
    let mut shown = data.clone();
    shown.retain(|name, value| is_asked(name, value));
    let shown = if shown.is_empty() { data.clone() } else { shown };
    serde_json::to_string_pretty(&Value::Object(shown)).unwrap_or_default()
}

/// The best-matching passages of the page, in order, up to the cap; the beginning of its main text if none matches.
fn from_text(retrieval: &Retrieval<'_>, query: &str, page: &PageContent) -> String {
    let text = page.whole_text();
    let passages: Vec<&str> = divide(&text).into_iter().map(|stretch| &text[stretch.bytes]).collect();
    let mut index = Index::for_query(query);
    for text in &passages {
        index.add(&Record { text, ..Record::default() });
    }
    let hits = index.search(&Query::new(query));
    if hits.is_empty() {
        let main = page.main_text();
        return if main.is_empty() { text } else { main };
    }
    let (mut kept, mut left) = (Vec::new(), PER_DOCUMENT_CAP);
    for hit in hits {
        let Some(tokens) = retrieval.counter.count_up_to(passages[hit.record], left) else { break };
        left -= tokens;
        kept.push(hit.record);
    }
    kept.sort_unstable();
    let mut said = String::new();
    for (place, &at) in kept.iter().enumerate() {
        if place > 0 && kept[place - 1] + 1 != at {
            said.push_str("\n[…]\n");
        }
        said.push_str(passages[at]);
    }
    said
}
