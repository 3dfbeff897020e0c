//! A captured page: `manifest.json`, `page_content.md`, `extracted_data.json`. The text of a page is untrusted, so it
//! is written inside a fence.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::blocks::{BlockWriter, Grammar, blocks};
use super::file::DocumentValue;
use super::problem::{ParseProblem, ParsedDocument};
use super::quote::{inline, uninline};
use super::{DocumentTime, VaultPath};

const TITLE: &str = "# Page Content: ";
const TEXT: &str = "## Page Text";
const ELEMENTS: &str = "## Visible Elements";

static GRAMMAR: Grammar = Grammar { heads: &[TITLE, TEXT, ELEMENTS], labels: &["URL", "Captured"] };

/// `manifest.json`: what was captured, and which questions it can answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The page's URL.
    pub url: String,
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

/// `page_content.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageContent {
    /// The page's title.
    pub title: String,
    /// The page's URL.
    pub url: String,
    /// When it was captured.
    pub captured: DocumentTime,
    /// The page's full text.
    pub text: String,
    /// The elements visible on it.
    pub visible_elements: Vec<String>,
}

impl DocumentValue for PageContent {
    fn write_body(&self, _: &VaultPath) -> String {
        let mut writer = BlockWriter::new(&GRAMMAR);
        writer.head(&format!("{TITLE}{}", inline(&self.title)));
        writer.text_field("URL", &self.url);
        writer.field("Captured", &self.captured.to_string());
        writer.head(TEXT);
        writer.fenced(&self.text);
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
            text: under(TEXT).and_then(|block| block.text("")).unwrap_or_default(),
            visible_elements: elements.iter().map(|(_, element)| uninline(element)).collect(),
        });
        ParsedDocument::new(value, problems)
    }
}
