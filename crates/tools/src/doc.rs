//! `doc.search` and `doc.read`: the user's own documents, by their words and by their places. Nothing of another user
//! can be reached: the documents are handed in as one user's.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use larder_condense::ContentType;
use larder_condense::sections::SectionId;
use larder_store::DocumentKind;
use larder_vault::links::NoteOutline;
use larder_vault::{VaultPath, select};
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments;
use super::context::ToolContext;
use super::spec::{Tool, ToolClass, ToolError, ToolModes, ToolOutput, ToolSpec};

/// Hits that are shown when nobody says how many, and at most.
const HITS: u64 = 10;
const MOST_HITS: u64 = 50;
/// Bytes of one document that are read out.
const MOST_BYTES: usize = 400_000;

/// The tools of documents.
pub(super) fn tools() -> Vec<Box<dyn Tool>> {
    vec![Box::new(Search::new()), Box::new(Read::new())]
}

fn spec(name: &str, description: &str, parameters: Value) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
        class: ToolClass::Read,
        summarizable: true,
        timeout: Duration::from_secs(30),
        max_bytes: MOST_BYTES,
        modes: ToolModes::Both,
    }
}

struct Search {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct SearchArguments {
    query: String,
    #[serde(default)]
    kinds: Vec<DocumentKind>,
    limit: Option<u64>,
}

impl Search {
    fn new() -> Self {
        let kinds = json!({"type": "array", "maxItems": 5,
            "items": {"enum": ["context", "research", "page", "memory", "other"]},
            "description": "only these: turns, research, captured pages, memory, others; all if left out"});
        let fields = json!({
            "query": arguments::text("words to look for", 1_000),
            "kinds": kinds,
            "limit": arguments::number("how many documents to show; 10 if left out", 1, MOST_HITS),
        });
        let description = "Search the documents of earlier turns: answers, research, captured pages, memory. Gives \
                           paths for doc.read.";
        Self { spec: spec("doc.search", description, arguments::object(&["query"], fields)) }
    }
}

impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let SearchArguments { query, kinds, limit } = arguments::read(arguments)?;
            let hits = context.documents.search(&query, &kinds, limit.unwrap_or(HITS))?;
            let summary = match hits.len() {
                0 => "No document holds these words".to_owned(),
                1 => "1 document".to_owned(),
                found => format!("{found} documents"),
            };
            let content = serde_json::to_string_pretty(&hits).unwrap_or_default();
            Ok(ToolOutput::success(summary, content).typed(ContentType::Json))
        }
        .boxed()
    }
}

struct Read {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct ReadArguments {
    path: String,
    section: Option<String>,
    from: Option<usize>,
    to: Option<usize>,
}

impl Read {
    fn new() -> Self {
        let fields = json!({
            "path": arguments::text("the document, as doc.search or a link gives it", 1_024),
            "section": arguments::text("only this section: its heading, a block such as ^claim-001, or §4", 300),
            "from": arguments::number("first line, from 1", 1, 10_000_000),
            "to": arguments::number("last line", 1, 10_000_000),
        });
        let description = "Read one of the user's documents: whole, one section of it, or a range of lines.";
        Self { spec: spec("doc.read", description, arguments::object(&["path"], fields)) }
    }
}

impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let ReadArguments { path, section, from, to } = arguments::read(arguments)?;
            let (path, text) = find(&path, context).await?;
            let part = match &section {
                Some(section) => part_of(&text, section).ok_or_else(|| no_section(&path, &text, section))?,
                None => text,
            };
            let (part, lines) = range(&part, from, to);
            let summary = format!("{path}: {lines} lines, {} bytes", part.len());
            Ok(ToolOutput::success(summary, part).typed(kind_of(&path)))
        }
        .boxed()
    }
}

/// The document that a path leads to: as it stands, or within the user's folder or the folder of the user's turns. What
/// this turn has written so far is there too.
async fn find(path: &str, context: &ToolContext<'_>) -> Result<(VaultPath, String), ToolError> {
    let shown: String = path.chars().take(200).collect();
    let own = context.documents.place().facts();
    let folders = [String::new(), format!("{}/turns/", own.folder()), format!("{}/", own.folder())];
    let bare = path.trim().trim_start_matches("./");
    let candidates: Vec<VaultPath> =
        folders.iter().filter_map(|folder| VaultPath::new(&format!("{folder}{bare}"))).collect();
    if candidates.is_empty() {
        return Err(ToolError::Arguments(format!(
            "{shown:?} is no path of a document: names joined by /, without .. and \\"
        )));
    }
    for path in candidates {
        let in_turn =
            path.as_str().strip_prefix(context.turn.folder()).and_then(|rest| rest.strip_prefix('/'));
        if let Some(bytes) = in_turn.and_then(|name| context.draft_files.get(name)) {
            let text = String::from_utf8(bytes.clone())
                .map_err(|_| ToolError::Failed(format!("{path} is no text")))?;
            return Ok((path, text));
        }
        if !may_be_read(&path, own.folder()) {
            continue;
        }
        if let Some(text) = context.documents.read_text(&path).await? {
            return Ok((path, text));
        }
    }
    Err(ToolError::Failed(format!("there is no document {shown:?}; doc.search gives paths")))
}

/// The user's own folder, the user's archive, and what is there for all.
fn may_be_read(path: &VaultPath, own: &str) -> bool {
    let name = own.strip_prefix("users/").unwrap_or(own);
    let mut parts = path.as_str().split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("users"), Some(user), Some(_)) => user == name,
        (Some("archive"), Some(_), Some(user)) => user == name,
        (Some("site_knowledge"), Some(_), None) => true,
        _ => false,
    }
}

/// A section of `context.md` by its number, or any part that a link could lead to.
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

/// The lines from `from` to `to`, both included, and how many they are.
fn range(text: &str, from: Option<usize>, to: Option<usize>) -> (String, usize) {
    let first = from.unwrap_or(1).max(1) - 1;
    let count = to.map_or(usize::MAX, |to| to.saturating_sub(first));
    let lines: Vec<&str> = text.split_inclusive('\n').skip(first).take(count).collect();
    (lines.concat(), lines.len())
}

fn kind_of(path: &VaultPath) -> ContentType {
    match path.name() {
        "context.md" => ContentType::PriorTurn,
        "research.md" => ContentType::ResearchDoc,
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

    #[test]
    fn only_the_users_own_places_are_read() {
        for (path, may) in [
            ("users/ann/facts.md", true),
            ("users/bob/facts.md", false),
            ("users/ann", false),
            ("archive/2026-01/ann/turn_000001/context.md", true),
            ("archive/2026-01/bob/turn_000001/context.md", false),
            ("site_knowledge/x.json", true),
            ("observability/daily/x.json", false),
            ("users/annabel/facts.md", false),
        ] {
            assert_eq!(may_be_read(&VaultPath::new(path).unwrap(), "users/ann"), may, "{path}");
        }
    }
}
