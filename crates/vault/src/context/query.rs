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
    /// The query with its references resolved.
    pub query: String,
    /// What it refers to.
    pub query_type: ReferenceType,
    /// Whether any reference had to be resolved.
    pub was_resolved: bool,
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
        writer.text_field("Resolved", &self.query);
        writer.field("Query Type", self.query_type.as_str());
        writer.field("Was Resolved", Truth::from(self.was_resolved).as_str());
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
        let resolved = block.text("Resolved").and_then(|query| {
            let query_type = block.required("Query Type", &mut problems);
            let was_resolved = block.value("Was Resolved", &mut problems) == Some(Truth::True);
            Some(ResolvedQuery {
                query,
                query_type: query_type?,
                was_resolved,
                content_reference: reference(&block.items("Content Reference")),
                reasoning: block.text("Reasoning").unwrap_or_default(),
            })
        });
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
