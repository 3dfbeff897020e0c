//! §0: the user's query, verbatim, and phase 0's analysis of it.

use crate::blocks::{BlockWriter, Grammar, blocks};
use crate::problem::ParsedDocument;
use crate::quote::{inline, uninline};
use crate::value::Truth;
use crate::{ReferenceType, VaultPath};
use larder_text::sections::SectionId;

use super::SectionValue;

static GRAMMAR: Grammar = Grammar {
    heads: &[],
    labels: &["Original", "Resolved", "Query Type", "Was Resolved", "Content Reference", "Reasoning"],
};

/// The content of §0. It is written once and extended once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserQuery {
    /// Exactly what the user typed.
    pub original: String,
    /// Phase 0's additions.
    pub resolved: Option<ResolvedQuery>,
}

/// Phase 0's analysis of the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedQuery {
    /// The query with its references resolved; `None` if it has none.
    pub query: Option<String>,
    /// What it refers to.
    pub query_type: ReferenceType,
    /// The content it refers to, if any.
    pub content_reference: Option<SourceReference>,
    /// The reasoning behind the analysis.
    pub reasoning: String,
}

/// Content that a query refers to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceReference {
    /// Its title.
    pub title: String,
    /// The kind of content, such as `thread`.
    pub content_type: String,
    /// The site it is on.
    pub site: String,
    /// The turn that captured it.
    pub source_turn: Option<u32>,
}

/// The body of a new §0 containing `query`, for [`append_section`](crate::append_section).
pub fn query_body(query: &str) -> String {
    let mut writer = BlockWriter::new(&GRAMMAR);
    writer.text_field("Original", query);
    writer.finish()
}

impl ResolvedQuery {
    /// The text to append to §0, for [`extend_section`](crate::extend_section).
    pub fn write(&self) -> String {
        let mut writer = BlockWriter::new(&GRAMMAR);
        if let Some(query) = &self.query {
            writer.text_field("Resolved", query);
        }
        writer.field("Query Type", self.query_type.as_str());
        writer.field("Was Resolved", Truth::from(self.query.is_some()).as_str());
        match &self.content_reference {
            None => writer.field("Content Reference", "none"),
            Some(reference) => {
                writer.label("Content Reference");
                let texts = [
                    ("Title", &reference.title),
                    ("Type", &reference.content_type),
                    ("Site", &reference.site),
                ];
                let lines = texts.map(|(name, text)| format!("{name}: {}", inline(text)));
                let turn = reference.source_turn.map(|turn| format!("Source Turn: {turn}"));
                writer.list(lines.into_iter().chain(turn));
            }
        }
        writer.text_field("Reasoning", &self.reasoning);
        writer.finish()
    }
}

impl SectionValue for UserQuery {
    const ID: SectionId = SectionId::UserQuery;

    fn write(&self, _: &VaultPath) -> String {
        let mut body = query_body(&self.original);
        if let Some(resolved) = &self.resolved {
            body = body.trim_end().to_owned() + "\n\n" + &resolved.write();
        }
        body
    }

    fn read(body: &str, line: usize, _: &VaultPath) -> ParsedDocument<Self> {
        let mut problems = Vec::new();
        let blocks = blocks(body, &GRAMMAR, line);
        let block = &blocks[0];
        let Some(original) = original_in(body) else {
            problems.push(crate::ParseProblem::new(line, "**Original:** is missing, so there is no query"));
            return ParsedDocument::new(None, problems);
        };
        let is_analyzed = block.has("Resolved") || block.has("Query Type");
        let mut analysis = || {
            let query_type = block.required("Query Type", &mut problems);
            let was_resolved = block.value("Was Resolved", &mut problems) == Some(Truth::True);
            Some(ResolvedQuery {
                query: block.text("Resolved").filter(|_| was_resolved),
                query_type: query_type?,
                content_reference: reference(&block.items("Content Reference")),
                reasoning: block.text("Reasoning").unwrap_or_default(),
            })
        };
        let resolved = if is_analyzed { analysis() } else { None };
        ParsedDocument::new(Some(Self { original, resolved }), problems)
    }
}

/// The query in the body of §0: the `**Original:**` field, or the whole body if a hand-written §0 has no fields.
pub(crate) fn original_in(body: &str) -> Option<String> {
    let blocks = blocks(body, &GRAMMAR, 1);
    let has_fields = GRAMMAR.labels.iter().any(|label| blocks[0].has(label));
    let label = if has_fields { "Original" } else { "" };
    blocks[0].text(label).filter(|query| !query.is_empty())
}

/// The body of §0 with a reference to the message that contains the query, in place of the query.
pub(crate) fn without_original(body: &str) -> String {
    let mut kept = String::new();
    let mut is_query = true;
    for line in body.split_inclusive('\n') {
        if let Some((label, _)) = GRAMMAR.label(line) {
            is_query = label == "Original";
        }
        if !is_query {
            kept.push_str(line);
        }
    }
    format!("**Original:** in the user's own message\n{kept}")
}

fn reference(items: &[(usize, &str)]) -> Option<SourceReference> {
    let value = |name: &str| {
        let found = items.iter().find_map(|(_, item)| item.strip_prefix(name)?.strip_prefix(':'));
        found.map(uninline)
    };
    (!items.is_empty()).then(|| SourceReference {
        title: value("Title").unwrap_or_default(),
        content_type: value("Type").unwrap_or_default(),
        site: value("Site").unwrap_or_default(),
        source_turn: value("Source Turn").and_then(|turn| turn.trim_start_matches("turn_").parse().ok()),
    })
}
