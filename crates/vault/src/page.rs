//! A captured page: `manifest.json`, `page_content.md`, `extracted_data.json`. The text of a page is untrusted, so it
//! is written inside fences.

use larder_text::pointer::Pointer;
use larder_text::sections::SectionId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::blocks::{BlockWriter, Grammar, HeadedBlock, LINKED_TURN, blocks};
use super::file::DocumentValue;
use super::problem::{ParseProblem, ParsedDocument};
use super::quote::{inline, uninline};
use super::{DocumentTime, VaultPath};

const TITLE: &str = "# Page Content: ";
const TEXT: &str = "## Page Text";
const ELEMENTS: &str = "## Visible Elements";

const MAIN: &str = "Main Text";
const OTHER: &str = "Other Text";

static GRAMMAR: Grammar = Grammar {
    heads: &[TITLE, TEXT, ELEMENTS],
    labels: &[LINKED_TURN, "URL", "Captured", "Original", MAIN, OTHER],
};

/// `manifest.json`: what was captured, and which questions it can answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The page's URL, after all redirects.
    pub url: String,
    /// Other URLs that were asked for and led to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirected_from: Vec<String>,
    /// The name of the capture's folder.
    pub url_slug: String,
    /// The page's title.
    pub title: String,
    /// When it was visited.
    pub visited_at: DocumentTime,
    /// The turn that visited it.
    pub turn_number: u32,
    /// The files next to the manifest.
    #[serde(default)]
    pub captured: Captured,
    /// Simple facts, to be consulted first.
    #[serde(default)]
    pub content_summary: ContentSummary,
    /// Short questions that the capture answers.
    #[serde(default)]
    pub answerable_questions: Vec<String>,
}

/// The files next to the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Captured {
    /// `page_content.md`.
    pub page_content: bool,
    /// `screenshot.png`.
    pub screenshot: bool,
    /// `extracted_data.json`.
    pub extracted_data: bool,
}

/// Simple facts about a page.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContentSummary {
    /// A kind such as `forum_thread`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The site it is on.
    pub site: String,
    /// Whether it is one page of several.
    pub has_pagination: bool,
    /// Page information such as `Page 1 of 3`.
    pub page_info: Option<String>,
    /// The number of comments.
    pub comment_count: Option<u64>,
    /// Elements such as `title`, `comments`, `sidebar`.
    pub visible_elements: Vec<String>,
}

/// `extracted_data.json`: structured data, different for every kind of page.
pub type ExtractedData = Map<String, Value>;

/// What every page has, and raw metadata: no value that was extracted from this page.
const GENERAL: [&str; 7] = ["url", "title", "site", "address", "meta", "open_graph", "json_ld"];
/// Lists of things with properties, whose names are values too.
const THINGS: [&str; 4] = ["products", "products_mentioned", "specifications", "json"];

/// The names of the values that were extracted from a page: `price`, `top_comments`, the properties of its products, the
/// columns of its tables. A value that is null or empty is none.
pub fn value_names(data: &ExtractedData) -> Vec<String> {
    let mut names = Vec::new();
    for (name, value) in
        data.iter().filter(|(name, value)| !GENERAL.contains(&name.as_str()) && is_given(value))
    {
        names.push(name.clone());
        match (name.as_str(), value) {
            ("tables", Value::Array(tables)) => {
                let headers = tables.iter().filter_map(|table| table.get("headers")?.as_array());
                names.extend(headers.flatten().filter_map(Value::as_str).map(str::to_owned));
            }
            (name, value) if THINGS.contains(&name) => {
                let things = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                for thing in things.iter().filter_map(Value::as_object) {
                    names.extend(
                        thing.iter().filter(|(_, value)| is_given(value)).map(|(name, _)| name.clone()),
                    );
                    let named = (name == "specifications").then(|| thing.get("name")).flatten();
                    names.extend(named.and_then(Value::as_str).map(str::to_owned));
                }
            }
            _ => {}
        }
    }
    names.sort();
    names.dedup();
    names
}

fn is_given(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// `page_content.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageContent {
    /// The page's title.
    pub title: String,
    /// The page's URL.
    pub url: String,
    /// When it was captured.
    pub captured: DocumentTime,
    /// A pointer to what the server sent.
    pub original: Option<Pointer>,
    /// The page's whole visible text, in its order.
    pub text: Vec<PageStretch>,
    /// The elements visible on it.
    pub visible_elements: Vec<String>,
}

/// A stretch of a page's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageStretch {
    /// Whether it is main content, and not navigation, a sidebar, a footer or the like.
    pub main: bool,
    /// The text.
    pub text: String,
}

impl PageContent {
    /// The whole text.
    pub fn whole_text(&self) -> String {
        joined(self.text.iter())
    }

    /// The main text.
    pub fn main_text(&self) -> String {
        joined(self.text.iter().filter(|stretch| stretch.main))
    }

    /// The text around the main text.
    pub fn other_text(&self) -> String {
        joined(self.text.iter().filter(|stretch| !stretch.main))
    }
}

fn joined<'t>(stretches: impl Iterator<Item = &'t PageStretch>) -> String {
    stretches.map(|stretch| stretch.text.as_str()).collect::<Vec<_>>().join("\n\n")
}

impl DocumentValue for PageContent {
    fn write_body(&self, at: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&GRAMMAR);
        writer.head(&format!("{TITLE}{}", inline(&self.title)));
        writer.linked_turn(at, SectionId::ToolExecution, 1);
        writer.text_field("URL", &self.url);
        writer.field("Captured", &self.captured.to_string());
        if let Some(original) = &self.original {
            writer.field("Original", &original.to_string());
        }
        writer.head(TEXT);
        for stretch in &self.text {
            writer.label(if stretch.main { MAIN } else { OTHER });
            writer.fenced(&stretch.text);
        }
        writer.head(ELEMENTS);
        writer.list(self.visible_elements.iter().map(|element| inline(element)));
        writer.finish()
    }

    fn read_body(body: &str, line: usize, _: &VaultPath) -> ParsedDocument<Self> {
        let mut problems = Vec::new();
        let blocks = blocks(body, &GRAMMAR, line);
        let under = |head: &str| blocks.iter().find(|block| block.head == head);
        let Some(title) = under(TITLE) else {
            return ParsedDocument::new(
                None,
                vec![ParseProblem::new(line, format!("{TITLE:?} followed by a title is missing"))],
            );
        };
        let captured = title.required("Captured", &mut problems);
        let elements = under(ELEMENTS).map(|block| block.items("")).unwrap_or_default();
        let value = captured.map(|captured| Self {
            title: uninline(&title.rest),
            url: title.text("URL").unwrap_or_default(),
            captured,
            original: title.line("Original").and_then(|(_, pointer)| pointer.parse().ok()),
            text: under(TEXT).map(stretches).unwrap_or_default(),
            visible_elements: elements.iter().map(|(_, element)| uninline(element)).collect(),
        });
        ParsedDocument::new(value, problems)
    }
}

fn stretches(block: &HeadedBlock<'_>) -> Vec<PageStretch> {
    // Text without a label is that of a capture which somebody edited.
    block.texts().map(|(label, text)| PageStretch { main: label != OTHER, text }).collect()
}
