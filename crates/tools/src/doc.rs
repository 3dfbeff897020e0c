//! `doc.search` and `doc.read`: the user's own documents, by words and by path. Documents of other users cannot be
//! reached: the context holds those of one user.

use larder_condense::ContentType;
use larder_retrieval::{FoundDocuments, OpenedDocument};
use larder_store::DocumentKind;
use larder_text::sections::SectionId;
use larder_text::words::counted;
use larder_vault::layout::is_research;
use larder_vault::links::NoteOutline;
use larder_vault::{VaultPath, select};
use schemars::JsonSchema;
use serde::Deserialize;

use super::context::ToolContext;
use super::spec::{Tool, ToolError, ToolOutput, ToolSpec};
use super::typed::{TypedTool, typed};

/// Hits that are shown by default, and at most.
const HITS: u64 = 10;
const MAX_HITS: u64 = 50;

/// The tools of documents.
pub(super) fn tools() -> Vec<Box<dyn Tool>> {
    vec![typed(DocSearch), typed(DocRead)]
}

struct DocSearch;

/// Search the documents of earlier turns: answers, research, captured pages, memory. Gives paths for doc.read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DocSearchArgs {
    /// words to look for
    #[schemars(length(min = 1, max = 1_000))]
    query: String,
    /// only these: turns, research, captured pages, memory, others; all by default
    #[serde(default)]
    #[schemars(with = "Vec<String>", length(max = 5), extend("items" = {"enum": KINDS}))]
    kinds: Vec<DocumentKind>,
    /// how many documents to show; 10 by default
    #[schemars(range(min = 1, max = MAX_HITS))]
    limit: Option<u64>,
}

const KINDS: [DocumentKind; 5] = [
    DocumentKind::Context,
    DocumentKind::Research,
    DocumentKind::Page,
    DocumentKind::Memory,
    DocumentKind::Other,
];

impl TypedTool for DocSearch {
    type Args = DocSearchArgs;

    fn spec(&self) -> ToolSpec {
        ToolSpec::from_args::<DocSearchArgs>("doc.search")
    }

    async fn run(&self, args: DocSearchArgs, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let limit = args.limit.unwrap_or(HITS);
        let FoundDocuments { hits, considered } =
            context.retrieval().search_documents(&args.query, &args.kinds, limit)?;
        let summary = match hits.len() {
            0 => "No document contains these words".to_owned(),
            found => counted(found as u64, "document"),
        };
        let content = serde_json::to_string_pretty(&hits).unwrap_or_default();
        let output = ToolOutput::success(summary, content).typed(ContentType::Json);
        Ok(ToolOutput { considered, ..output })
    }
}

struct DocRead;

/// Read one of the user's documents: whole, one section of it, or a range of lines.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DocReadArgs {
    /// the document, as doc.search or a link gives it
    #[schemars(length(min = 1, max = 1_024))]
    path: String,
    /// only this section: its heading, a block such as ^claim-001, or §4
    #[schemars(length(min = 1, max = 300))]
    section: Option<String>,
    /// first line, from 1
    #[schemars(range(min = 1, max = 10_000_000))]
    from: Option<usize>,
    /// last line
    #[schemars(range(min = 1, max = 10_000_000))]
    to: Option<usize>,
}

impl TypedTool for DocRead {
    type Args = DocReadArgs;

    fn spec(&self) -> ToolSpec {
        ToolSpec::from_args::<DocReadArgs>("doc.read")
    }

    async fn run(&self, args: DocReadArgs, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let unsaved = |path: &VaultPath| {
            let name = path.as_str().strip_prefix(context.turn.folder())?.strip_prefix('/')?;
            String::from_utf8(context.draft_files.get(name)?.clone()).ok()
        };
        let Some(found) = context.retrieval().open(&args.path, &unsaved)? else {
            let shown: String = args.path.chars().take(200).collect();
            return Err(ToolError::Failed(format!("there is no document {shown:?}; doc.search gives paths")));
        };
        let OpenedDocument { path, text, mut considered } = found;
        let part = match &args.section {
            Some(section) => part_of(&text, section).ok_or_else(|| no_section(&path, &text, section))?,
            None => text,
        };
        let (part, lines) = range(&part, args.from, args.to);
        considered.tokens = context.counter.count(&part);
        let summary = format!("{path}: {lines} lines, {} bytes", part.len());
        let output = ToolOutput::success(summary, part).typed(kind_of(&path));
        Ok(ToolOutput { read: vec![path], considered: vec![considered], ..output })
    }
}

/// A section of `context.md` by its number, or any part that a link can refer to.
fn part_of(text: &str, section: &str) -> Option<String> {
    let section = section.trim();
    let number = section.strip_prefix('§').and_then(|number| number.trim().parse().ok());
    if let Some(id) = number.and_then(SectionId::from_number) {
        let view = select(text, [id]);
        let found = view.sections.iter().find(|found| found.id == id)?;
        return Some(view.text_of(found).into_owned());
    }
    let outline = NoteOutline::parse(text);
    let wanted = section.trim_start_matches('#').trim();
    let by_link = outline.find(wanted).or_else(|| outline.find(section));
    let by_words = || {
        let words = wanted.to_lowercase();
        outline.headings.iter().find(|heading| heading.text.to_lowercase().contains(&words))
    };
    let range = by_link.or_else(|| by_words().map(|heading| heading.section.clone()))?;
    text.get(range).map(str::to_owned)
}

fn no_section(path: &VaultPath, text: &str, section: &str) -> ToolError {
    let headings: Vec<String> = NoteOutline::parse(text)
        .headings
        .into_iter()
        .take(40)
        .map(|heading| format!("- {}", heading.text))
        .collect();
    ToolError::Failed(format!("{path} has no section {section:?}; it has\n{}", headings.join("\n")))
}

/// The lines from `from` to `to`, both included, and their number.
fn range(text: &str, from: Option<usize>, to: Option<usize>) -> (String, usize) {
    let first = from.unwrap_or(1).max(1) - 1;
    let count = to.map_or(usize::MAX, |to| to.saturating_sub(first));
    let lines: Vec<&str> = text.split_inclusive('\n').skip(first).take(count).collect();
    (lines.concat(), lines.len())
}

fn kind_of(path: &VaultPath) -> ContentType {
    match path.name() {
        "context.md" => ContentType::PriorTurn,
        name if is_research(name) => ContentType::ResearchDoc,
        "page_content.md" => ContentType::PageDoc,
        name if name.ends_with(".json") => ContentType::Json,
        name if name.ends_with(".md") => ContentType::Markdown,
        _ => ContentType::Generic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_number_heading_and_block() {
        let context = "---\nid: x\n---\n## 0. User Query\n\nhello\n\n## 4. Tool Execution\n\n### Claims Extracted\n\nthe claim ^claim-001\n";
        assert!(part_of(context, "§4").unwrap().contains("the claim"));
        assert!(part_of(context, "claims").unwrap().starts_with("### Claims Extracted"));
        assert!(part_of(context, "^claim-001").unwrap().contains("the claim"));
        assert_eq!(part_of(context, "§6"), None);
        assert_eq!(part_of(context, "nothing like it"), None);
    }

    #[test]
    fn ranges_are_cut_by_lines() {
        assert_eq!(range("a\nb\nc\n", Some(2), Some(2)), ("b\n".to_owned(), 1));
        assert_eq!(range("a\nb\nc", Some(3), None), ("c".to_owned(), 1));
        assert_eq!(range("a\n", Some(9), Some(3)), (String::new(), 0));
    }
}
